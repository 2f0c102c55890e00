"""Everything that one account holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from batch_emulator.state.jobs import Job
from batch_emulator.state.pools import Pool
from batch_emulator.state.resources import key
from batch_emulator.state.schedules import JobSchedule


@dataclass
class Account:
    """The pools, jobs and job schedules of one account, by the keys of their ids, in order of creation."""

    name: str
    pools: dict[str, Pool] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    schedules: dict[str, JobSchedule] = field(default_factory=dict)
    _jobs_by_pool: dict[str, dict[str, Job]] = field(default_factory=dict)

    def add_job(self, job: Job) -> None:
        """Keep a new job."""
        self.jobs[key(job.id)] = job
        self._jobs_by_pool.setdefault(key(job.pool_id), {})[key(job.id)] = job

    def discard_job(self, job: Job) -> None:
        """Forget a job."""
        del self.jobs[key(job.id)]
        self._leave_pool(job)

    def rebind_job(self, job: Job, pool_id: str) -> None:
        """Give a job another pool."""
        self._leave_pool(job)
        job.pool_id = pool_id
        self._jobs_by_pool.setdefault(key(pool_id), {})[key(job.id)] = job

    def pool_of(self, job: Job) -> Pool | None:
        """Return the job's pool, or None if it does not exist (any more)."""
        return self.pools.get(key(job.pool_id))

    def jobs_of(self, pool: Pool) -> list[Job]:
        """Return the jobs that are bound to a pool, in no particular order."""
        return list(self._jobs_by_pool.get(key(pool.id), {}).values())

    def _leave_pool(self, job: Job) -> None:
        siblings = self._jobs_by_pool[key(job.pool_id)]
        del siblings[key(job.id)]
        if not siblings:
            del self._jobs_by_pool[key(job.pool_id)]
