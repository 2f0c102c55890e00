"""Job schedules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from batch_emulator.clock import Timer
from batch_emulator.state.jobs import Job
from batch_emulator.state.resources import Resource
from batch_emulator.state.states import JobScheduleState


@dataclass(kw_only=True, eq=False)
class JobSchedule(Resource):
    """One job schedule. `next_due` is in seconds of service time, `next_run` the same as a date for clients.

    `opportunity_ends`, in service time too, is set while a job is due that could not be created yet because
    the one before still runs. `recent_job` is the last one created, `expired` says that no more will be.
    """

    state: JobScheduleState = JobScheduleState.ACTIVE
    previous_state: JobScheduleState | None = None
    previous_state_since: datetime | None = None
    next_due: float | None = None
    next_run: datetime | None = None
    opportunity_ends: float | None = None
    jobs_created: int = 0
    recent_job: Job | None = None
    ended: datetime | None = None
    expired: bool = False
    run_timer: Timer | None = None
    expiry_timer: Timer | None = None

    def move(self, state: JobScheduleState, at: datetime) -> None:
        """Change the state."""
        self.previous_state, self.previous_state_since = self.state, self.state_since
        self.state, self.state_since = state, at

    def cancel_timers(self) -> None:
        """Create no more jobs."""
        for timer in (self.run_timer, self.expiry_timer):
            if timer:
                timer.cancel()
        self.run_timer = self.expiry_timer = self.next_due = self.next_run = self.opportunity_ends = None
