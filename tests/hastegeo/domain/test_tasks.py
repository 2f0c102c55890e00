"""Task specs refuse what can never run; references and SKUs read as written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hastegeo.domain import (
    BlobInput,
    BlobOutput,
    GpuNeed,
    GrantKind,
    GrantVariable,
    TaskRef,
    TaskSpec,
    Tenant,
    Workload,
    find_sku,
    sku_catalogue,
)
from hastegeo.errors import InputError

CONTAINER = "https://dev1store.blob.core.windows.net/data"


def spec(**changes: Any) -> TaskSpec:
    values: dict[str, Any] = {
        "key": "k",
        "tenant": "dev1",
        "workload": Workload.TRAINING,
        "image": "image:1",
        "command": ("run",),
    }
    return TaskSpec(**(values | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"key": ""},
        {"key": "x" * 257},
        {"tenant": "Dev"},
        {"image": "a b"},
        {"command": ()},
        {"max_retries": -1},
        {"max_wall_clock": timedelta(0)},
        {"environment": {"A B": "1"}},
        {"environment": {"AZ_BATCH_NODE_ID": "1"}},
        {"environment": {"HASTE_TASK_FINGERPRINT": "1"}},
    ],
    ids=str,
)
def test_what_can_never_run_is_refused(changes: dict[str, Any]) -> None:
    assert spec()
    with pytest.raises(InputError):
        spec(**changes)


def test_a_variable_is_set_once() -> None:
    variable = GrantVariable(name="URL", kind=GrantKind.INPUTS, container_url=CONTAINER)
    assert spec(grant_variables=(variable,))
    with pytest.raises(InputError, match="URL more than once"):
        spec(grant_variables=(variable,), environment={"URL": "1"})


def test_inputs_outputs_and_variables_check_their_paths() -> None:
    assert BlobInput(container_url=CONTAINER, blob="a/b.tif", path="in/b.tif")
    assert BlobOutput(pattern="out/**/*.tif", container_url=CONTAINER, prefix="results")
    for wrong in (
        lambda: BlobInput(container_url=CONTAINER, blob="a", prefix="b"),
        lambda: BlobInput(container_url=CONTAINER, path="../x"),
        lambda: BlobOutput(pattern="../../shared/*", container_url=CONTAINER),
        lambda: GrantVariable(name="S", kind=GrantKind.STATE, container_url=CONTAINER),
    ):
        with pytest.raises(InputError):
            wrong()


def test_the_environment_of_a_spec_is_not_in_its_text() -> None:
    assert "hidden-value" not in repr(spec(environment={"TOKEN": "hidden-value"}))


def test_references_read_as_written() -> None:
    assert TaskRef.parse("job/task") == TaskRef("job", "task")
    assert str(TaskRef("job", "task")) == "job/task"
    for wrong in ("job", "job/", "/task", "a/b/c", ""):
        with pytest.raises(InputError):
            TaskRef.parse(wrong)


def test_a_tenant_has_a_legal_name_and_weight() -> None:
    assert Tenant("dev1", frozenset())
    with pytest.raises(InputError):
        Tenant("dev/1", frozenset())
    with pytest.raises(InputError):
        Tenant("dev1", frozenset(), weight=0)


def test_the_catalogue_knows_both_tiers() -> None:
    t4, h100 = find_sku("standard_nc16as_t4_v3"), find_sku("Standard_NC40ads_H100_v5")
    assert t4 is not None
    assert h100 is not None
    assert (t4.tier, h100.tier) == ("t4", "h100")
    assert find_sku("Standard_D2_v3") is None
    assert all(key == sku.vm_size.lower() for key, sku in sku_catalogue().items())
    assert t4.shortfall(GpuNeed()) == ""
    assert t4.shortfall(GpuNeed(1, 16)) == ""
    assert t4.shortfall(GpuNeed(1, 40)) == "has 16 GiB a GPU, the task needs 40 GiB"
    assert h100.shortfall(GpuNeed(2)) == "has 1 GPU a node, the task needs 2"
