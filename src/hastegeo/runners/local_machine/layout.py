"""The folders and variables of a task, as on a Batch node."""

from __future__ import annotations

from pathlib import Path

from hastegeo.domain import TaskRef
from hastegeo.runners.local_machine.records import POOL_ID


def task_folder(root: Path, ref: TaskRef) -> Path:
    """Return a task's directory: its streams are in it, and its working directory `wd`."""
    return root / "workitems" / ref.job_id / "job-1" / ref.task_id


def task_environment(root: Path, ref: TaskRef) -> dict[str, str]:
    """Return the variables that Batch sets for a task.

    Source: https://learn.microsoft.com/azure/batch/batch-compute-node-environment-variables
    """
    folder = task_folder(root, ref)
    return {
        "AZ_BATCH_ACCOUNT_NAME": POOL_ID,
        "AZ_BATCH_POOL_ID": POOL_ID,
        "AZ_BATCH_NODE_ID": POOL_ID,
        "AZ_BATCH_JOB_ID": ref.job_id,
        "AZ_BATCH_TASK_ID": ref.task_id,
        "AZ_BATCH_NODE_ROOT_DIR": str(root),
        "AZ_BATCH_TASK_DIR": str(folder),
        "AZ_BATCH_TASK_WORKING_DIR": str(folder / "wd"),
    }
