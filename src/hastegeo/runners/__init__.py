"""The Runner contract, and the runners that keep it."""

from hastegeo.runners._client import connect_batch
from hastegeo.runners._submission import DryRun
from hastegeo.runners.azure_batch import AzureBatchRunner
from hastegeo.runners.contract import LogStream, Runner, Submission
from hastegeo.runners.explain import Explanation, explain
from hastegeo.runners.local_machine.runner import LocalRunner

__all__ = [
    "AzureBatchRunner",
    "DryRun",
    "Explanation",
    "LocalRunner",
    "LogStream",
    "Runner",
    "Submission",
    "connect_batch",
    "explain",
]
