"""Request bodies: what the real SDK sends passes, and what is wrong is named."""

from __future__ import annotations

import contextlib
import copy
import json
from datetime import timedelta
from typing import Any

import pytest
from azure.batch import models as batch
from hypothesis import given
from hypothesis import strategies as st

from batch_emulator.errors import BatchError
from batch_emulator.wire.validation import validate

TASK: dict[str, Any] = {"id": "task", "commandLine": "run"}
POOL: dict[str, Any] = {"id": "pool", "vmSize": "standard_d4s_v3"}
JOB: dict[str, Any] = {"id": "job", "poolInfo": {"poolId": "pool"}}


def refused(model: str, body: object) -> tuple[str, dict[str, str]]:
    """Return the code and the details of the refusal."""
    with pytest.raises(BatchError) as raised:
        validate(model, body)
    assert raised.value.status == 400
    return raised.value.code, dict(raised.value.values)


def test_what_the_sdk_sends_of_a_large_task_passes() -> None:
    task = batch.BatchTaskCreateOptions(
        id="task",
        command_line="run",
        container_settings=batch.BatchTaskContainerSettings(
            image_name="image",
            container_host_batch_bind_mounts=[
                batch.ContainerHostBatchBindMountEntry(source="Task", is_read_only=False)
            ],
        ),
        constraints=batch.BatchTaskConstraints(
            max_wall_clock_time=timedelta(minutes=15), max_task_retry_count=-1
        ),
        depends_on=batch.BatchTaskDependencies(
            task_ids=["a"], task_id_ranges=[batch.BatchTaskIdRange(start=1, end=9)]
        ),
        exit_conditions=batch.ExitConditions(
            exit_codes=[
                batch.ExitCodeMapping(
                    code=3, exit_options=batch.ExitOptions(dependency_action=batch.DependencyAction.SATISFY)
                )
            ]
        ),
        environment_settings=[batch.EnvironmentSetting(name="A", value="b")],
        resource_files=[batch.ResourceFile(http_url="https://x.test/b", file_path="b")],
    )
    sent = json.loads(json.dumps(task.as_dict()))
    checked = validate("BatchTaskCreateOptions", sent)
    assert checked.pop("constraints") == {"maxWallClockTime": "PT15M", "maxTaskRetryCount": -1}
    assert checked == {name: value for name, value in sent.items() if name != "constraints"}


@pytest.mark.parametrize(
    ("model", "body", "where"),
    [
        ("BatchTaskCreateOptions", {**TASK, "comandLine": "x"}, "comandLine"),
        ("BatchTaskCreateOptions", {**TASK, "constraints": {"retries": 1}}, "constraints.retries"),
        (
            "BatchTaskCreateOptions",
            {**TASK, "environmentSettings": [{"name": "A"}, {"nme": "B"}]},
            "environmentSettings[1].nme",
        ),
    ],
)
def test_a_property_that_does_not_exist_is_named(model: str, body: object, where: str) -> None:
    code, details = refused(model, body)
    assert (code, details["PropertyName"]) == ("InvalidRequestBody", where)


@pytest.mark.parametrize(
    ("model", "body", "where"),
    [
        ("BatchTaskCreateOptions", {"id": "task"}, "commandLine"),
        ("BatchTaskCreateOptions", {"id": "task", "commandLine": None}, "commandLine"),
        ("BatchJobCreateOptions", {"id": "job"}, "poolInfo"),
        ("BatchTaskCreateOptions", {**TASK, "environmentSettings": [{}]}, "environmentSettings[0].name"),
        ("BatchTaskGroup", {}, "value"),
        ("BatchTaskGroup", {"value": [TASK, {"id": "b"}]}, "value[1].commandLine"),
    ],
)
def test_a_property_that_is_missing_is_named(model: str, body: object, where: str) -> None:
    assert refused(model, body) == ("MissingRequiredProperty", {"PropertyName": where})


@pytest.mark.parametrize(
    ("model", "body", "where"),
    [
        ("BatchTaskCreateOptions", {**TASK, "commandLine": 5}, "commandLine"),
        ("BatchTaskCreateOptions", {**TASK, "requiredSlots": "1"}, "requiredSlots"),
        ("BatchTaskCreateOptions", {**TASK, "requiredSlots": True}, "requiredSlots"),
        ("BatchTaskCreateOptions", {**TASK, "requiredSlots": 1.0}, "requiredSlots"),
        ("BatchTaskCreateOptions", {**TASK, "requiredSlots": 2**31}, "requiredSlots"),
        ("BatchTaskCreateOptions", {**TASK, "environmentSettings": {}}, "environmentSettings"),
        ("BatchTaskCreateOptions", {**TASK, "commandLine": "\ud800"}, "commandLine"),
        ("BatchPoolCreateOptions", {**POOL, "enableAutoScale": "true"}, "enableAutoScale"),
        ("BatchPoolCreateOptions", {**POOL, "resizeTimeout": "15 minutes"}, "resizeTimeout"),
        ("BatchPoolCreateOptions", {**POOL, "resizeTimeout": 900}, "resizeTimeout"),
        ("BatchJobCreateOptions", {**JOB, "onTaskFailure": "explode"}, "onTaskFailure"),
        ("BatchJobCreateOptions", {**JOB, "onTaskFailure": 1}, "onTaskFailure"),
        (
            "BatchTaskCreateOptions",
            {**TASK, "constraints": {"maxWallClockTime": "PT"}},
            "constraints.maxWallClockTime",
        ),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(model: str, body: object, where: str) -> None:
    code, details = refused(model, body)
    assert (code, details["PropertyName"]) == ("InvalidPropertyValue", where)
    assert details["Reason"]


@pytest.mark.parametrize("body", [None, [], "x", 5, True])
def test_a_body_must_be_an_object(body: object) -> None:
    assert refused("BatchTaskCreateOptions", body)[0] == "InvalidRequestBody"
    assert refused("BatchTaskGroup", {"value": [body]})[0] == "InvalidRequestBody"


def test_enums_are_read_in_any_case_and_kept_in_one() -> None:
    checked = validate("BatchJobCreateOptions", {**JOB, "onAllTasksComplete": "TerminateJob"})
    assert checked["onAllTasksComplete"] == "terminatejob"


def test_what_only_the_service_sets_is_left_out() -> None:
    sent = {"poolInfo": {"poolId": "p"}, "state": "active", "url": "x", "priority": 5}
    assert validate("BatchJob", sent) == {"poolInfo": {"poolId": "p"}, "priority": 5}


def test_null_means_not_given() -> None:
    assert validate("BatchTaskCreateOptions", {**TASK, "constraints": None}) == TASK


@pytest.mark.parametrize("identifier", ["a", "A-b_9", "x" * 64])
@pytest.mark.parametrize(
    ("model", "body"),
    [("BatchPoolCreateOptions", POOL), ("BatchJobCreateOptions", JOB), ("BatchTaskCreateOptions", TASK)],
)
def test_an_id_of_the_service_s_kind_passes(model: str, body: dict[str, Any], identifier: str) -> None:
    assert validate(model, {**body, "id": identifier})["id"] == identifier


@pytest.mark.parametrize("identifier", ["", "x" * 65, "a b", "a/b", "..", "ä", "a\n"])
@pytest.mark.parametrize(
    ("model", "body"),
    [("BatchPoolCreateOptions", POOL), ("BatchJobCreateOptions", JOB), ("BatchTaskCreateOptions", TASK)],
)
def test_any_other_id_is_refused(model: str, body: dict[str, Any], identifier: str) -> None:
    code, details = refused(model, {**body, "id": identifier})
    assert (code, details["PropertyName"]) == ("InvalidPropertyValue", "id")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_any_change_of_a_body_passes_or_is_refused(data: st.DataObject) -> None:
    body = copy.deepcopy(
        {
            **TASK,
            "constraints": {"maxWallClockTime": "PT1H"},
            "environmentSettings": [{"name": "A", "value": "b"}],
            "exitConditions": {"exitCodes": [{"code": 1, "exitOptions": {"jobAction": "none"}}]},
        }
    )
    place: Any = body
    while isinstance(place, dict | list) and place:
        names = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        name = data.draw(st.sampled_from(names))
        if not isinstance(place[name], dict | list) or data.draw(st.booleans()):
            place[name] = data.draw(json_values)
            break
        place = place[name]
    with contextlib.suppress(BatchError):
        checked = validate("BatchTaskCreateOptions", body)
        assert validate("BatchTaskCreateOptions", checked) == checked
