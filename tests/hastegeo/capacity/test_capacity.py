"""The snapshot: two calls, shared for a moment, and reservations that no two submissions share."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from azure.batch import BatchClient, models
from azure.core.exceptions import HttpResponseError, ServiceRequestError, ServiceResponseTimeoutError

from hastegeo.capacity import Capacity
from hastegeo.domain import CapacitySnapshot, Decision, NodeCounts, TaskRef
from hastegeo.errors import CapacityError
from hastegeo.routing import select_pool

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
REF = TaskRef("job", "task")


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class FakeClient:
    """As much of a Batch client as the snapshot uses; values as the service sends them."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.counts: dict[str, dict[str, int]] = {}
        self.pools: list[dict[str, Any]] = []
        self.errors: dict[str, Exception] = {}
        self.options: dict[str, Any] = {}

    def list_pool_node_counts(self, **options: Any) -> Iterator[models.BatchPoolNodeCounts]:
        self._count("node_counts", options)
        for pool_id, counts in self.counts.items():
            yield models.BatchPoolNodeCounts({"poolId": pool_id, "lowPriority": counts})

    def list_pools(self, **options: Any) -> Iterator[models.BatchPool]:
        self._count("pools", options)
        yield from (models.BatchPool(pool) for pool in self.pools)

    def _count(self, name: str, options: dict[str, Any]) -> None:
        self.calls[name] += 1
        self.options[name] = options
        if name in self.errors:
            raise self.errors[name]


def autoscaled(pool_id: str, most: int = 2, **changes: Any) -> dict[str, Any]:
    return {
        "id": pool_id,
        "state": "Active",
        "allocationState": "steady",
        "allocationStateTransitionTime": "2026-03-01T11:59:20Z",
        "vmSize": "standard_nc16as_t4_v3",
        "enableAutoScale": True,
        "metadata": [{"name": "haste_tier", "value": "t4"}, {"name": "haste_max_nodes", "value": str(most)}],
        **changes,
    }


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client() -> FakeClient:
    found = FakeClient()
    found.pools = [autoscaled("t4"), autoscaled("h100", most=1)]
    found.counts = {"t4": {}, "h100": {}}
    return found


@pytest.fixture
def capacity(client: FakeClient, clock: Clock) -> Capacity:
    return Capacity(cast(BatchClient, client), clock=clock)


def choose(snapshot: CapacitySnapshot) -> Decision:
    return select_pool(["t4", "h100"], snapshot)


def submit(capacity: Capacity, number: int = 0) -> str:
    decision, reservation = capacity.decide(choose)
    capacity.confirm(reservation, TaskRef("job", f"task-{number}"))
    return decision.chosen


def test_a_snapshot_is_two_calls_and_is_shared_for_a_moment(
    client: FakeClient, capacity: Capacity, clock: Clock
) -> None:
    client.pools += [autoscaled(f"pool-{number}") for number in range(50)]
    for _ in range(10):
        capacity.snapshot()
    assert client.calls == {"node_counts": 1, "pools": 1}
    assert client.options["node_counts"]["max_results"] == client.options["pools"]["max_results"] == 1000
    clock.advance(6)
    capacity.snapshot()
    assert client.calls == {"node_counts": 2, "pools": 2}
    clock.advance(1)
    capacity.snapshot(fresh=True)
    assert client.calls == {"node_counts": 3, "pools": 3}


def test_a_pool_is_read_as_the_service_tells_it(client: FakeClient, capacity: Capacity) -> None:
    client.counts["t4"] = {
        **{
            "idle": 1,
            "running": 2,
            "creating": 1,
            "waitingForStartTask": 1,
            "preempted": 1,
            "leavingPool": 1,
        },
        **{"unusable": 1, "startTaskFailed": 1, "offline": 1, "total": 10},
    }
    results = "$TargetLowPriorityNodes=3;$NodeDeallocationOption=taskcompletion;pendingTasks=5;queued=4"
    run = {"timestamp": "2026-03-01T11:58:00Z", "results": results}
    error = {"code": "AllocationFailed", "message": "no capacity"}
    client.pools = [autoscaled("t4", autoScaleRun=run, resizeErrors=[error])]
    found = capacity.snapshot().pools["t4"]
    assert found.nodes == NodeCounts(idle=1, running=2, starting=2, preempted=1, unusable=3, leaving=1)
    assert found.details is not None
    assert found.details.sku is not None
    assert (found.details.tier, found.details.max_nodes, found.details.sku.tier) == ("t4", 2, "t4")
    assert (found.details.queued, found.details.queued_at) == (3, datetime(2026, 3, 1, 11, 58, tzinfo=UTC))
    (failure,) = found.details.failures
    assert (failure.code, (START - failure.at).total_seconds()) == ("AllocationFailed", 40)


@pytest.mark.parametrize(
    "results",
    ["", "$TargetLowPriorityNodes=3", "pendingTasks=5", "pendingTasks=many;queued=1", "nonsense;;="],
)
def test_an_autoscale_run_that_tells_no_queue_is_no_error(
    client: FakeClient, capacity: Capacity, results: str
) -> None:
    run = {"timestamp": "2026-03-01T11:58:00Z", "results": results}
    client.pools = [autoscaled("t4", autoScaleRun=run)]
    details = capacity.snapshot().pools["t4"].details
    assert details is not None
    assert details.queued is None


@pytest.mark.parametrize(("running", "queued"), [(0, 2), (1, 2), (2, 1), (3, 0), (4, 0)])
def test_tasks_that_waited_at_the_autoscale_run_and_run_now_wait_no_more(
    client: FakeClient, capacity: Capacity, running: int, queued: int
) -> None:
    run = {"timestamp": "2026-03-01T11:58:00Z", "results": "pendingTasks=3;queued=2;running=1"}
    client.pools = [autoscaled("t4", autoScaleRun=run)]
    client.counts = {"t4": {"running": running}}
    details = capacity.snapshot().pools["t4"].details
    assert details is not None
    assert details.queued == queued


def test_a_fixed_pool_holds_what_it_targets(client: FakeClient, capacity: Capacity) -> None:
    client.pools = [
        autoscaled("t4", most=9, enableAutoScale=False, targetDedicatedNodes=1, targetLowPriorityNodes=2)
    ]
    details = capacity.snapshot().pools["t4"].details
    assert details is not None
    assert details.max_nodes == 3


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (HttpResponseError("denied"), "the connection broke"),
        (ServiceRequestError("no route"), "cannot connect"),
        (ServiceResponseTimeoutError("slow"), "timed out"),
    ],
)
def test_a_failed_call_is_said_and_not_raised(
    client: FakeClient, capacity: Capacity, error: Exception, said: str
) -> None:
    client.errors = {"node_counts": error}
    snapshot = capacity.snapshot()
    assert (snapshot.nodes_error, snapshot.details_error) == (said, "")
    assert snapshot.pools["t4"].nodes is None
    assert submit(capacity) == "t4"


def test_submissions_fill_the_nodes_to_come_then_spill_then_queue(capacity: Capacity) -> None:
    assert [submit(capacity, number) for number in range(5)] == ["t4", "t4", "h100", "t4", "t4"]


def test_concurrent_submissions_and_one_idle_node_split(client: FakeClient, capacity: Capacity) -> None:
    client.counts = {"t4": {"idle": 1, "running": 1}, "h100": {"idle": 1}}
    barrier = threading.Barrier(2)

    def run(number: int) -> str:
        barrier.wait()
        return submit(capacity, number)

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(run, range(2))) == ["h100", "t4"]
    assert client.calls == {"node_counts": 1, "pools": 1}


def test_a_failed_submission_gives_its_node_back(capacity: Capacity) -> None:
    _, reservation = capacity.decide(choose)
    assert capacity.snapshot().pools["t4"].reserved == 1
    capacity.release(reservation)
    capacity.release(reservation)
    assert capacity.snapshot().pools["t4"].reserved == 0


def test_a_decision_that_fails_reserves_nothing(capacity: Capacity) -> None:
    with pytest.raises(CapacityError):
        capacity.decide(lambda snapshot: select_pool(["x", "y"], snapshot))
    assert [pool.reserved for pool in capacity.snapshot().pools.values()] == [0, 0]


def test_a_task_waiting_for_a_booting_node_keeps_its_claim(
    client: FakeClient, capacity: Capacity, clock: Clock
) -> None:
    submit(capacity, 0)
    submit(capacity, 1)
    clock.advance(300)
    client.counts["t4"] = {"starting": 1}
    assert capacity.snapshot().pools["t4"].reserved == 2
    assert submit(capacity, 2) == "h100"


def test_a_task_that_runs_is_counted_by_its_node(
    client: FakeClient, capacity: Capacity, clock: Clock
) -> None:
    submit(capacity, 0)
    submit(capacity, 1)
    clock.advance(60)
    client.counts["t4"] = {"running": 1, "starting": 1}
    assert capacity.snapshot().pools["t4"].reserved == 1
    clock.advance(60)
    client.counts["t4"] = {"running": 2}
    assert capacity.snapshot().pools["t4"].reserved == 0


def test_a_task_that_ran_between_two_snapshots_lets_go_once_its_node_stands_idle(
    client: FakeClient, capacity: Capacity, clock: Clock
) -> None:
    client.counts["t4"] = {"idle": 1}
    submit(capacity)
    clock.advance(10)
    assert capacity.snapshot().pools["t4"].reserved == 1  # the service may not have started it yet
    clock.advance(30)
    assert capacity.snapshot().pools["t4"].reserved == 0


def test_a_submission_in_flight_is_not_mistaken_for_a_started_one(
    client: FakeClient, capacity: Capacity, clock: Clock
) -> None:
    _, reservation = capacity.decide(choose)
    clock.advance(40)
    client.counts["t4"] = {"running": 1, "idle": 1}
    assert capacity.snapshot().pools["t4"].reserved == 1
    capacity.confirm(reservation, REF)


def test_a_task_seen_running_lets_go_at_once(capacity: Capacity) -> None:
    decision, reservation = capacity.decide(choose)
    capacity.confirm(reservation, REF)
    capacity.left_queue(TaskRef("job", "other"))
    assert capacity.snapshot().pools[decision.chosen].reserved == 1
    capacity.left_queue(REF)
    assert capacity.snapshot().pools[decision.chosen].reserved == 0


def test_no_claim_is_held_for_ever(capacity: Capacity, clock: Clock) -> None:
    submit(capacity)
    clock.advance(31 * 60)
    assert capacity.snapshot().pools["t4"].reserved == 0


def test_claims_outlive_a_failed_call(client: FakeClient, capacity: Capacity, clock: Clock) -> None:
    submit(capacity)
    clock.advance(60)
    client.errors = {"node_counts": ServiceRequestError("no route")}
    assert capacity.snapshot().pools["t4"].reserved == 1
    client.errors = {}
    clock.advance(60)
    assert capacity.snapshot().pools["t4"].reserved == 1


def test_a_task_without_alternatives_claims_a_node_too(capacity: Capacity) -> None:
    capacity.reserve("t4")
    capacity.reserve("t4")
    assert submit(capacity) == "h100"
