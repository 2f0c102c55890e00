"""Every operation of the API either works or says that it is not supported; nothing is unknown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from azure.batch import BatchClient
from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpRequest

from batch_emulator.errors import BatchError
from batch_emulator.routes.all_operations import registry
from batch_emulator.routes.api import API, ApiOperation
from batch_emulator.routes.registry import Operation

IDS = {operation: f"{operation.method} {operation.path}" for operation in API}


def find(operation: ApiOperation) -> Operation:
    found, _ = registry.match(operation.method, re.sub(r"\{\w+\}", "x", operation.path))
    return found


@pytest.mark.parametrize("operation", API, ids=IDS.get)
def test_every_operation_is_registered_under_its_own_name(operation: ApiOperation) -> None:
    found = find(operation)
    assert (found.method, found.path, found.name) == (operation.method, operation.path, operation.name)


def test_nothing_else_is_registered_but_what_is_below_emulator() -> None:
    known = {(operation.method, operation.path) for operation in API}
    others = [
        operation.path for operation in registry.operations if (operation.method, operation.path) not in known
    ]
    assert others
    assert all(path.startswith("/emulator") or path == "/" for path in others)


def test_ids_in_brackets_are_taken_from_the_path() -> None:
    path = "/certificates(thumbprintAlgorithm=sha1,thumbprint=0aff)"
    operation, ids = registry.match("GET", path)
    assert operation.name == "get_certificate"
    assert ids == {"thumbprintAlgorithm": "sha1", "thumbprint": "0aff"}
    with pytest.raises(BatchError, match="ResourceNotFound"):
        registry.match("GET", "/certificates(thumbprint=0aff)")


def test_what_is_not_supported_says_so_by_name(client: BatchClient) -> None:
    request = HttpRequest("POST", "/certificates?api-version=2024-02-01.19.0", json={"thumbprint": "0aff"})
    with pytest.raises(HttpResponseError) as caught:
        client.send_request(request).raise_for_status()
    assert caught.value.status_code == 501
    assert "create_certificate" in caught.value.response.text()


def test_the_retired_certificates_are_an_empty_list(client: BatchClient) -> None:
    answer = client.send_request(HttpRequest("GET", "/certificates?api-version=2024-02-01.19.0"))
    assert answer.status_code == 200
    assert answer.json()["value"] == []


def test_the_coverage_reference_is_current() -> None:
    generator = Path(__file__).parents[3] / "tools/generate_docs.py"
    checked = subprocess.run(
        [sys.executable, generator, "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
