"""What the account holds: resources, their states, their indexes."""
