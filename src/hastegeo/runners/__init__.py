"""The Runner contract, and the runners that keep it."""

from hastegeo.runners._client import connect_batch
from hastegeo.runners.azure_batch import AzureBatchRunner
from hastegeo.runners.contract import LogStream, Runner, Submission
from hastegeo.runners.explain import Explanation, explain
from hastegeo.runners.local_machine.runner import LocalRunner

__all__ = [
    "AzureBatchRunner",
    "Explanation",
    "LocalRunner",
    "LogStream",
    "Runner",
    "Submission",
    "connect_batch",
    "explain",
]
