"""HASTE shared compute: many environments share a few scarce Azure Batch GPU pools."""

__version__ = "0.1.0"
