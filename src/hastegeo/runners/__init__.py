"""The Runner contract, and the runners that keep it."""

from hastegeo.runners.contract import LogStream, Runner, Submission

__all__ = ["LogStream", "Runner", "Submission"]
