"""The snapshot of pools, shared and reserved, that routing decides from."""
