"""Everything that stands in for Azure on one machine: certificates, Azurite, the token endpoint, processes."""
