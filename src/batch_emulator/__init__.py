"""A local Azure Batch: the data-plane REST API, its state machines, and nodes that truly run tasks."""

__version__ = "0.1.0"
