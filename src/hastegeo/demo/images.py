"""Which local command stands for each container image in the demo."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import hastegeo

IMAGERYPREP_IMAGE = "haste/imageryprep:latest"


def write_images_file(path: Path) -> Path:
    """Write the image table for the local Azure Batch: the image's entry point is `haste workload`, as built.

    The entry runs in this very Python environment, which nodes mount read-only.
    """
    command = [sys.executable, "-m", "hastegeo", "workload"]
    source = Path(hastegeo.__file__).parent.parent
    path.write_text(
        f'["{IMAGERYPREP_IMAGE}"]\n'
        f"command = {_toml(command)}\n"
        f"read_only_paths = {_toml([os.fspath(source)])}\n",
        encoding="utf-8",
    )
    return path


def _toml(strings: list[str]) -> str:
    # A JSON array of strings is a TOML array of strings, but for JSON's pairs of surrogates.
    return json.dumps(strings, ensure_ascii=False)
