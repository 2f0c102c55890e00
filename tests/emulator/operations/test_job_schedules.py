"""Job schedules create one job at a time, at their time, and take their jobs along when they go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.batch import BatchClient
from azure.batch import models as batch
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from batch_emulator.errors import BatchError
from batch_emulator.rules import job_schedules, jobs
from batch_emulator.state import JobSchedule, JobScheduleState, JobState
from batch_emulator.testing import PrivateEmulator
from batch_emulator.wire.times import format_time

from ..core.support import completed, new_pool
from ..core.world import Rig

HOUR = 3600.0


@pytest.fixture
def rig() -> Rig:
    return Rig()


def add(rig: Rig, job: dict[str, Any] | None = None, **times: str) -> JobSchedule:
    spec = {"poolInfo": {"poolId": "pool"}, **(job or {})}
    return job_schedules.add(rig.world, {"id": "nightly", "schedule": times, "jobSpecification": spec})


def made(rig: Rig, schedule: JobSchedule) -> list[str]:
    return [job.id for job in job_schedules.jobs_of(rig.world, schedule)]


def end_recent(rig: Rig, schedule: JobSchedule) -> None:
    assert schedule.recent_job is not None
    jobs.terminate(rig.world, schedule.recent_job, "UserTerminate")


def test_without_recurrence_there_is_one_job_and_the_schedule_ends_with_it(rig: Rig) -> None:
    schedule = add(rig)
    rig.advance(0)
    assert made(rig, schedule) == ["nightly:job-1"]
    rig.advance(10 * HOUR)
    assert schedule.state is JobScheduleState.ACTIVE

    end_recent(rig, schedule)

    assert schedule.state is JobScheduleState.COMPLETED
    assert made(rig, schedule) == ["nightly:job-1"]


def test_nothing_runs_before_its_time(rig: Rig) -> None:
    begin = rig.world.now() + timedelta(hours=2)
    schedule = add(rig, doNotRunUntil=format_time(begin))
    rig.advance(2 * HOUR - 1)
    assert made(rig, schedule) == []
    assert schedule.next_run == begin
    rig.advance(1)
    assert made(rig, schedule) == ["nightly:job-1"]


def test_a_recurring_schedule_creates_a_job_each_interval(rig: Rig) -> None:
    schedule = add(rig, recurrenceInterval="PT1H")
    for count in (1, 2, 3):
        rig.advance(0)
        assert len(made(rig, schedule)) == count
        end_recent(rig, schedule)
        rig.advance(HOUR)
    assert schedule.state is JobScheduleState.ACTIVE


def test_a_job_that_is_due_waits_for_the_one_before(rig: Rig) -> None:
    schedule = add(rig, recurrenceInterval="PT1H")
    rig.advance(HOUR + 600)
    assert made(rig, schedule) == ["nightly:job-1"]

    end_recent(rig, schedule)

    assert made(rig, schedule) == ["nightly:job-1", "nightly:job-2"]


def test_a_job_whose_start_window_has_passed_is_left_out(rig: Rig) -> None:
    schedule = add(rig, recurrenceInterval="PT1H", startWindow="PT5M")
    rig.advance(HOUR + 600)
    end_recent(rig, schedule)
    assert made(rig, schedule) == ["nightly:job-1"]
    rig.advance(HOUR - 600)
    assert made(rig, schedule) == ["nightly:job-1", "nightly:job-2"]


def test_no_job_is_created_after_the_end_and_the_running_one_may_finish(rig: Rig) -> None:
    end = rig.world.now() + timedelta(hours=1, minutes=30)
    schedule = add(rig, recurrenceInterval="PT1H", doNotRunAfter=format_time(end))
    rig.advance(10)
    end_recent(rig, schedule)
    rig.advance(5 * HOUR)
    assert made(rig, schedule) == ["nightly:job-1", "nightly:job-2"]
    assert schedule.state is JobScheduleState.ACTIVE
    end_recent(rig, schedule)
    assert schedule.state is JobScheduleState.COMPLETED
    assert schedule.ended == rig.world.now()


def test_a_disabled_schedule_creates_nothing_until_it_is_enabled(rig: Rig) -> None:
    schedule = add(rig, recurrenceInterval="PT1H")
    rig.advance(0)
    end_recent(rig, schedule)
    job_schedules.disable(rig.world, schedule)
    rig.advance(HOUR + 1)
    assert len(made(rig, schedule)) == 1
    job_schedules.enable(rig.world, schedule)
    assert len(made(rig, schedule)) == 2


def test_terminating_ends_the_active_job_and_then_the_schedule(rig: Rig) -> None:
    rig.pool(targetDedicatedNodes=1)
    schedule = add(rig, recurrenceInterval="PT1H")
    rig.advance(0)
    job = schedule.recent_job
    assert job is not None
    rig.task(job)

    job_schedules.terminate(rig.world, schedule)

    assert schedule.state is JobScheduleState.TERMINATING
    assert job.state is JobState.TERMINATING
    rig.end("task", exit_code=None)
    assert job.state is JobState.COMPLETED
    assert schedule.state is JobScheduleState.COMPLETED
    with pytest.raises(BatchError, match="JobScheduleCompleted"):
        job_schedules.enable(rig.world, schedule)
    rig.advance(5 * HOUR)
    assert len(made(rig, schedule)) == 1


def test_deleting_takes_all_jobs_along(rig: Rig) -> None:
    schedule = add(rig, recurrenceInterval="PT1H")
    rig.advance(0)
    end_recent(rig, schedule)
    rig.advance(HOUR)
    assert len(made(rig, schedule)) == 2

    job_schedules.delete(rig.world, schedule)

    assert rig.world.account.schedules == {}
    assert rig.world.account.jobs == {}


def test_a_job_that_ends_at_once_does_not_stop_the_schedule(rig: Rig) -> None:
    schedule = add(rig, job={"onAllTasksComplete": "terminatejob"}, recurrenceInterval="PT1H")
    rig.advance(2 * HOUR)
    assert len(made(rig, schedule)) == 3


def test_a_pool_of_the_schedule_is_shared_by_its_jobs_and_goes_with_it(rig: Rig) -> None:
    automatic = {"poolLifetimeOption": "jobschedule", "pool": {"vmSize": "standard_d4s_v3"}}
    pool_info = {"poolInfo": {"autoPoolSpecification": automatic}}
    schedule = add(rig, job=pool_info, recurrenceInterval="PT1H")
    rig.advance(0)
    end_recent(rig, schedule)
    rig.advance(HOUR)
    assert len(made(rig, schedule)) == 2
    assert list(rig.world.account.pools) == ["nightly"]
    job_schedules.terminate(rig.world, schedule)
    rig.advance(HOUR)
    assert rig.world.account.pools == {}


@pytest.mark.parametrize("times", [{"recurrenceInterval": "PT30S"}, {"startWindow": "PT59S"}])
def test_intervals_below_a_minute_are_refused(rig: Rig, times: dict[str, str]) -> None:
    with pytest.raises(BatchError) as caught:
        add(rig, **times)
    assert caught.value.code == "InvalidPropertyValue"
    add(rig, recurrenceInterval="PT1M", startWindow="PT1M")


def schedule_options(**times: object) -> batch.BatchJobScheduleCreateOptions:
    return batch.BatchJobScheduleCreateOptions(
        id="Nightly",
        schedule=batch.BatchJobScheduleConfiguration(**times),
        job_specification=batch.BatchJobSpecification(
            pool_info=batch.BatchPoolInfo(pool_id="pool"),
            all_tasks_complete_mode=batch.BatchAllTasksCompleteMode.TERMINATE_JOB,
            job_manager_task=batch.BatchJobManagerTask(
                id="manager", command_line="/bin/sh -c 'echo managed'"
            ),
        ),
    )


def test_the_sdk_runs_a_schedule_with_a_job_manager(emulator: PrivateEmulator, client: BatchClient) -> None:
    client.create_pool(new_pool(target_dedicated_nodes=1))
    client.create_job_schedule(schedule_options(recurrence_interval=timedelta(hours=1)))
    emulator.advance(150)

    completed(client, "manager", "Nightly:job-1")

    output = b"".join(client.download_task_file("Nightly:job-1", "manager", "stdout.txt"))
    assert output == b"managed\n"
    shown = client.get_job_schedule("nightly")
    assert shown.id == "Nightly"
    assert shown.execution_info.recent_job.id == "Nightly:job-1"
    assert isinstance(shown.execution_info.next_run_time, datetime)
    emulator.advance(3600)
    assert [job.id for job in client.list_jobs_from_schedule("Nightly")] == ["Nightly:job-1", "Nightly:job-2"]
    completed(client, "manager", "Nightly:job-2")


def test_the_sdk_changes_and_ends_schedules(client: BatchClient) -> None:
    client.create_job_schedule(schedule_options(do_not_run_until=datetime(2100, 1, 1, tzinfo=UTC)))
    assert client.job_schedule_exists("nightly")
    with pytest.raises(ResourceExistsError):
        client.create_job_schedule(schedule_options())
    assert [schedule.id for schedule in client.list_job_schedules(filter="state eq 'active'")] == ["Nightly"]

    client.update_job_schedule(
        "nightly",
        batch.BatchJobScheduleUpdateOptions(metadata=[batch.BatchMetadataItem(name="a", value="b")]),
    )
    assert client.get_job_schedule("nightly").metadata[0].value == "b"
    shown = client.get_job_schedule("nightly")
    shown.metadata = None
    client.replace_job_schedule("nightly", shown)
    assert client.get_job_schedule("nightly").metadata is None
    client.disable_job_schedule("nightly")
    assert client.get_job_schedule("nightly").state == batch.BatchJobScheduleState.DISABLED
    client.enable_job_schedule("nightly")
    assert client.get_job_schedule("nightly").state == batch.BatchJobScheduleState.ACTIVE
    client.begin_terminate_job_schedule("nightly", polling_interval=0).wait()
    with pytest.raises(HttpResponseError) as caught:
        client.disable_job_schedule("nightly")
    assert caught.value.error.code == "JobScheduleCompleted"
    client.begin_delete_job_schedule("nightly", polling_interval=0).wait()
    with pytest.raises(ResourceNotFoundError):
        client.get_job_schedule("nightly")
