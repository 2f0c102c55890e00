"""The demo: the whole road on one machine, through the same code as in the cloud."""

from hastegeo.demo.run import DemoOptions, run_demo

__all__ = ["DemoOptions", "run_demo"]
