"""What a job does on each node besides its tasks: preparation before the first of them, release after the
last.

A node whose preparation failed takes no tasks of the job until it is reimaged, and the tasks that were
waiting for it go back to active.

Source: https://learn.microsoft.com/azure/batch/batch-job-prep-release
"""

from __future__ import annotations

from batch_emulator.rules import jobs, launching, side_tasks
from batch_emulator.rules import tasks as task_rules
from batch_emulator.rules.world import World
from batch_emulator.state import Job, JobOnNode, Json, Node, SideTask, SideTaskState, Task


def accepts(job: Job, node: Node) -> bool:
    """Whether a node may be given tasks of the job: not if its preparation there has failed."""
    here = job.on_nodes.get(node.id)
    if here is None or here.preparation is None or here.preparation.state is not SideTaskState.COMPLETED:
        return True
    return here.preparation.succeeded or not _waits_for_success(job)


def begin_task(world: World, task: Task, node: Node) -> None:
    """Begin a task that has been placed on a node, after the job's preparation there if it has one."""
    job = task.job
    spec: Json | None = job.spec.get("jobPreparationTask")
    if spec is None:
        task_rules.begin(world, task)
        return
    here = job.on_nodes.setdefault(node.id, JobOnNode(node=node))
    if here.preparation is None:
        launch = launching.job_task_launch(world, job, node, spec, launching.preparation_path(job))
        here.preparation = side_tasks.begin(
            world, node, spec, launch, lambda side: _prepared(world, job, here, side)
        )
    if here.preparation.state is SideTaskState.RUNNING and _waits_for_success(job):
        here.waiting.append(task)
    else:
        task_rules.begin(world, task)


def forget_task(task: Task, node: Node) -> None:
    """Let a task wait for a preparation no longer."""
    here = task.job.on_nodes.get(node.id)
    if here is not None and task in here.waiting:
        here.waiting.remove(task)


def node_restarts(world: World, jobs_of_pool: list[Job], node: Node, *, anew: bool) -> None:
    """Let preparations of a node run again after a restart; `anew`: the node keeps nothing of before."""
    for job in jobs_of_pool:
        here = job.on_nodes.get(node.id)
        if here is None:
            continue
        side_tasks.abandon(world, here.preparation)
        preparation = here.preparation
        again = bool((job.spec.get("jobPreparationTask") or {}).get("rerunOnNodeRebootAfterSuccess", True))
        if (
            anew
            or preparation is None
            or preparation.state is SideTaskState.RUNNING
            or (preparation.succeeded and again)
        ):
            here.preparation = None
        _give_up_release(world, job, here)
        if anew and here.release is None:
            del job.on_nodes[node.id]


def node_left(world: World, jobs_of_pool: list[Job], node: Node) -> None:
    """Forget a node that is gone."""
    for job in jobs_of_pool:
        here = job.on_nodes.get(node.id)
        if here is not None:
            side_tasks.abandon(world, here.preparation)
            _give_up_release(world, job, here)
            job.on_nodes.pop(node.id, None)


def begin_release(world: World, job: Job) -> None:
    """Run the job's release task on every node that its preparation ran on, if it has not been run there."""
    spec: Json | None = job.spec.get("jobReleaseTask")
    if spec is None:
        return
    for here in job.on_nodes.values():
        if here.release is None and here.preparation is not None:
            launch = launching.job_task_launch(world, job, here.node, spec, launching.release_path(job))
            here.release = side_tasks.begin(
                world, here.node, spec, launch, lambda _: jobs.follow_up(world, job)
            )


def releasing(job: Job) -> bool:
    """Whether a release task still runs."""
    return any(
        here.release is not None and here.release.state is SideTaskState.RUNNING
        for here in job.on_nodes.values()
    )


def stop_preparations(world: World, job: Job) -> None:
    """End the preparations in progress of a job that ends; release follows there too."""
    for here in job.on_nodes.values():
        preparation = here.preparation
        if preparation is not None and preparation.state is SideTaskState.RUNNING:
            side_tasks.end(world, preparation)


def remove_files(world: World, job: Job) -> None:
    """Delete what the job's preparation and release left on nodes."""
    for here in job.on_nodes.values():
        if here.preparation is not None:
            world.effects.remove_files(here.node, here.preparation.path)
        if here.release is not None:
            world.effects.remove_files(here.node, here.release.path)


def _prepared(world: World, job: Job, here: JobOnNode, side: SideTask) -> None:
    waiting, here.waiting = here.waiting, []
    for task in waiting:
        if side.succeeded:
            task_rules.begin(world, task)
        else:
            task_rules.requeue(world, task, counts=False)
    if not side.succeeded:
        task_rules.after_node_change(world, here.node)
    jobs.follow_up(world, job)


def _waits_for_success(job: Job) -> bool:
    return bool((job.spec.get("jobPreparationTask") or {}).get("waitForSuccess", True))


def _give_up_release(world: World, job: Job, here: JobOnNode) -> None:
    if here.release is not None and here.release.state is SideTaskState.RUNNING:
        side_tasks.end(world, here.release)
        jobs.follow_up(world, job)
