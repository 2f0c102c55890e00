"""Every operation, registered by importing the modules that define them."""

from batch_emulator.routes import accounts, faults, files, jobs, nodes, pools, tasks
from batch_emulator.routes.registry import registry

__all__ = ["accounts", "faults", "files", "jobs", "nodes", "pools", "registry", "tasks"]
