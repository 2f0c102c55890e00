"""The schema is what azure-batch 15.1 and 14.2 send, with the ranges of its integers."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.batch import models as batch

from batch_emulator.errors import BatchError
from batch_emulator.wire.validation import validate

TASK: dict[str, Any] = {"id": "task", "commandLine": "true"}
ROOT = Path(__file__).parents[3]


def sent(model: Any) -> dict[str, Any]:
    """What the SDK sends for one of its models."""
    from azure.batch._utils.model_base import SdkJSONEncoder

    body: dict[str, Any] = json.loads(json.dumps(model, cls=SdkJSONEncoder, exclude_readonly=True))
    return body


def refuse(model: str, body: object) -> tuple[str, dict[str, str]]:
    with pytest.raises(BatchError) as raised:
        validate(model, body)
    assert raised.value.status == 400
    return raised.value.code, dict(raised.value.values)


def test_the_schema_is_current() -> None:
    command = [sys.executable, str(ROOT / "tools/generate_batch_schema.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0


def test_a_pool_of_the_sdk_is_accepted() -> None:
    pool = batch.BatchPoolCreateOptions(
        id="pool",
        vm_size="Standard_NC40ads_H100_v5",
        virtual_machine_configuration=batch.VirtualMachineConfiguration(
            image_reference=batch.BatchVmImageReference(publisher="microsoft-dsvm", offer="ubuntu-hpc"),
            node_agent_sku_id="batch.node.ubuntu 24.04",
            container_configuration=batch.BatchContainerConfiguration(type="dockerCompatible"),
        ),
        enable_auto_scale=True,
        auto_scale_formula="$TargetLowPriorityNodes = 1;",
        auto_scale_evaluation_interval=timedelta(minutes=5),
        start_task=batch.BatchStartTask(command_line="true", wait_for_success=True),
        metadata=[batch.BatchMetadataItem(name="group", value="dev")],
    )
    checked = validate("BatchPoolCreateOptions", sent(pool))
    assert checked == {**sent(pool), "autoScaleEvaluationInterval": "PT5M"}


@pytest.mark.parametrize(
    ("model", "body"),
    [
        ("BatchTaskCreateOptions", {**TASK, "authenticationTokenSettings": {"access": ["job"]}}),
        ("BatchPoolUpdateOptions", {"targetNodeCommunicationMode": "simplified", "resourceTags": {"a": "b"}}),
        (
            "BatchPoolReplaceOptions",
            {
                "applicationPackageReferences": [],
                "metadata": [],
                "certificateReferences": [{"thumbprint": "ab", "thumbprintAlgorithm": "sha1"}],
            },
        ),
    ],
)
def test_what_only_azure_batch_14_sends_is_accepted(model: str, body: dict[str, Any]) -> None:
    assert validate(model, body) == body


@pytest.mark.parametrize("sent_as", ["dockercompatible", "DOCKERCOMPATIBLE", "dockerCompatible"])
def test_an_enum_keeps_the_capitals_of_the_service(sent_as: str) -> None:
    assert validate("BatchContainerConfiguration", {"type": sent_as}) == {"type": "dockerCompatible"}


def test_a_misplaced_secret_is_not_repeated() -> None:
    secret = "https://store.test/c?sig=c2VjcmV0"
    misplaced = {
        "requiredSlots": secret,
        "displayName": [secret],
        "constraints": secret,
        "resourceFiles": secret,
    }
    for name, value in misplaced.items():
        assert "sig" not in str(refuse("BatchTaskCreateOptions", {**TASK, name: value}))


@pytest.mark.parametrize(
    ("priority", "allowed"), [(-1001, False), (-1000, True), (1000, True), (1001, False)]
)
def test_a_job_priority_has_a_range(priority: int, allowed: bool) -> None:
    body = {"priority": priority}
    if allowed:
        assert validate("BatchJobUpdateOptions", body) == body
    else:
        assert refuse("BatchJobUpdateOptions", body)[1]["PropertyName"] == "priority"


@pytest.mark.parametrize("exit_code", [-(2**31), -1, 2**31 - 1])
def test_an_integer_without_a_range_has_32_bits(exit_code: int) -> None:
    body = {"code": exit_code, "exitOptions": {}}
    assert validate("ExitCodeMapping", body) == body


def test_dates_are_kept_as_they_were_sent() -> None:
    body = {"doNotRunUntil": "2026-01-02T12:00:00.0000000Z"}
    assert validate("BatchJobScheduleConfiguration", body) == body
    assert refuse("BatchJobScheduleConfiguration", {"doNotRunUntil": "soon"})[1]["PropertyName"]


def test_a_date_of_the_sdk_is_accepted() -> None:
    schedule = batch.BatchJobScheduleConfiguration(do_not_run_until=datetime(2026, 1, 2, tzinfo=UTC))
    assert validate("BatchJobScheduleConfiguration", sent(schedule)) == sent(schedule)
