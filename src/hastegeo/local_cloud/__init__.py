"""What stands in for Azure on one machine: certificates, Azurite, the token endpoint, processes."""
