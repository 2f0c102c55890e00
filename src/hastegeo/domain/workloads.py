"""The kinds of work that share the pools."""

from __future__ import annotations

from enum import StrEnum


class Workload(StrEnum):
    """What a task does; each workload has its own ordered list of candidate pools."""

    TRAINING = "training"
    INFERENCE = "inference"
    IMAGERYPREP = "imageryprep"
    EMBEDDING = "embedding"
    ARTIFACTS = "artifacts"
