"""What these tests share."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # rasterio itself still multiplies transforms with `*`, of which affine 3 warns.
    for item in items:
        if not item.path.is_relative_to(Path(__file__).parent):
            continue
        item.add_marker(pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning"))
