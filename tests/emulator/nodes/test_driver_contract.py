"""What every driver promises of a run, the unconfined one included."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import uuid
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from batch_emulator.nodes import LocalNodeAgent, create_agent
from batch_emulator.nodes.contract import FailureCategory, TaskLaunch, TaskOutcome

from .support import (
    IMAGES,
    PYTHON,
    MakeNode,
    Node,
    container,
    processes_with,
    quote,
    until,
    wait_until,
    whole_node,
)


def a_mark() -> str:
    """A number of seconds to sleep for that no other process has as its argument."""
    return f"{uuid.uuid4().int % 10**9 + 10**6}.5"


def test_output_exit_code_and_times(node: Node) -> None:
    result = node.shell("echo out; echo err >&2; pwd; exit 0")
    assert result.outcome.exit_code == 0
    assert result.outcome.failure is None
    assert result.stdout.splitlines()[0] == "out"
    assert result.stdout.splitlines()[1].endswith("workitems/job/job-1/task/wd")
    assert result.stderr == "err\n"
    assert [result.outcome.started] == result.started
    assert result.outcome.started is not None
    assert result.outcome.started <= result.outcome.ended
    assert not result.outcome.terminated


def test_a_failing_exit_code_is_a_user_error(node: Node) -> None:
    result = node.shell("exit 3")
    assert result.outcome.exit_code == 3
    assert result.code == "FailureExitCode"
    assert result.outcome.failure is not None
    assert result.outcome.failure.category is FailureCategory.USER_ERROR
    assert result.outcome.failure.phase == "run"


def test_a_signal_gives_128_and_its_number(node: Node) -> None:
    assert node.shell("kill -KILL $$").outcome.exit_code == 128 + signal.SIGKILL


def test_there_is_no_shell_unless_called(node: Node) -> None:
    result = node.run("/bin/echo $HOME * '$(id)' \"two words\"")
    assert result.stdout == "$HOME * $(id) two words\n"
    assert node.shell("echo $GREETING", environment={"GREETING": "hello"}).stdout == "hello\n"


def test_the_task_sees_its_own_environment_alone(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMULATOR_SECRET", "canary")
    result = node.run("/usr/bin/env", environment={"AZ_BATCH_POOL_ID": "pool", "PLAIN": "näme"})
    assert "canary" not in result.stdout
    seen = dict(line.split("=", 1) for line in result.stdout.splitlines())
    assert seen["AZ_BATCH_POOL_ID"] == "pool"
    assert seen["PLAIN"] == "näme"
    assert seen["AZ_BATCH_TASK_WORKING_DIR"] == f"{seen['AZ_BATCH_TASK_DIR']}/wd"


def test_the_directories_of_the_environment_exist(node: Node) -> None:
    names = ["ROOT_DIR", "SHARED_DIR", "STARTUP_DIR", "MOUNTS_DIR"]
    wanted = " ".join(f'"$AZ_BATCH_NODE_{name}"' for name in names)
    wanted += ' "$AZ_BATCH_TASK_DIR" "$AZ_BATCH_TASK_WORKING_DIR"'
    script = f'for d in {wanted}; do test -d "$d" || exit 1; done'
    result = node.shell(script, environment={"AZ_BATCH_NODE_ROOT_DIR": "/mnt/batch/tasks"})
    assert result.outcome.exit_code == 0


def test_standard_input_is_empty(node: Node) -> None:
    assert node.run("/bin/cat").outcome.exit_code == 0


def test_no_descriptor_of_the_emulator_is_inherited(node: Node) -> None:
    result = node.python("import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])")
    assert result.stdout == "[0, 1, 2]\n"


def test_standard_output_can_be_opened_again(node: Node) -> None:
    result = node.shell("echo one; echo two >> /dev/stdout; echo three; echo four >> /dev/stderr")
    assert result.outcome.exit_code == 0, result.stderr
    assert result.stdout == "one\ntwo\nthree\n"
    assert result.stderr == "four\n"


def test_a_program_that_is_not_there(node: Node) -> None:
    result = node.run("no-such-program --flag")
    assert result.code == "CommandProgramNotFound"
    assert "no-such-program" in result.outcome.failure.message  # type: ignore[union-attr]
    assert result.outcome.exit_code is None
    assert result.outcome.started is None
    assert result.started == []


@pytest.mark.parametrize("command_line", ["/etc", "'unbalanced", "   "])
def test_a_command_that_cannot_be_started(node: Node, command_line: str) -> None:
    result = node.run(command_line)
    assert result.code == "CommandLaunchFailed"
    assert result.started == []


def test_the_working_directory_is_fresh_for_each_run(node: Node) -> None:
    assert node.shell("test ! -e left && touch left ../left").outcome.exit_code == 0
    assert node.shell("test ! -e left && test ! -e ../left").outcome.exit_code == 0
    # The control: it is the same directory, and the file would have been there.
    assert node.shell("touch left && test -e left").outcome.exit_code == 0


def test_the_wall_clock_ends_the_whole_tree(node: Node) -> None:
    marks = [a_mark(), a_mark(), a_mark()]
    script = f"sleep {marks[0]} & setsid sleep {marks[1]} & exec sleep {marks[2]}"

    async def scenario() -> TaskOutcome:
        run = node.start(f"/bin/sh -c {quote(script)}", max_wall_clock=timedelta(seconds=1.5))
        # The control: while it runs, the processes are found.
        await until(lambda: all(processes_with(mark) for mark in marks))
        return await run.wait()

    outcome = node.runner.run(scenario())
    assert [processes_with(mark) for mark in marks] == [[], [], []]
    assert outcome.exit_code is None
    assert outcome.failure is not None
    assert outcome.failure.code == "TaskEnded"
    assert "maxWallClockTime" in outcome.failure.message
    assert not outcome.terminated


def test_what_the_program_leaves_behind_ends_with_it(node: Node) -> None:
    marks = [a_mark(), a_mark()]
    result = node.shell(f"sleep {marks[0]} & setsid sh -c 'sleep {marks[1]} & sleep {marks[1]}' & sleep 0.3")
    assert result.outcome.exit_code == 0
    assert [processes_with(mark) for mark in marks] == [[], []]


def test_terminate_ends_the_whole_tree(node: Node) -> None:
    marks = [a_mark(), a_mark()]

    async def scenario() -> TaskOutcome:
        run = node.start(f"/bin/sh -c 'setsid sleep {marks[0]} & exec sleep {marks[1]}'")
        await until(lambda: all(processes_with(mark) for mark in marks))
        run.terminate()
        run.terminate()
        return await run.wait()

    outcome = node.runner.run(scenario())
    assert [processes_with(mark) for mark in marks] == [[], []]
    assert outcome.terminated
    assert outcome.exit_code is None
    assert outcome.failure is not None
    assert outcome.failure.code == "TaskEnded"


def test_terminate_right_after_start(node: Node) -> None:
    mark = a_mark()

    async def scenario() -> TaskOutcome:
        run = node.start(f"/bin/sleep {mark}")
        run.terminate(upload=False)
        return await run.wait()

    outcome = node.runner.run(scenario())
    assert outcome.terminated
    assert outcome.exit_code is None
    assert processes_with(mark) == []


def test_on_started_comes_on_the_event_loop_while_the_program_runs(node: Node) -> None:
    threads: list[threading.Thread] = []
    mark = a_mark()

    async def scenario() -> None:
        started = asyncio.Event()

        def on_started(_: datetime) -> None:
            threads.append(threading.current_thread())
            started.set()

        launch = TaskLaunch(
            node_root=node.root, task_path="workitems/j/job-1/t", command_line=f"sleep {mark}"
        )
        run = node.agent.start(launch, on_started=on_started)
        await started.wait()
        # A process shows its own command line only once it has got from fork to exec.
        async with asyncio.timeout(10):
            while not processes_with(mark):  # noqa: ASYNC110 - nothing tells when /proc changes
                await asyncio.sleep(0.01)
        run.terminate()
        await run.wait()

    node.runner.run(scenario())
    assert threads == [threading.current_thread()]


def test_runs_on_one_node_do_not_disturb_each_other(node: Node) -> None:
    async def scenario() -> list[TaskOutcome]:
        runs = [node.start(f"/bin/sh -c 'echo {i}; exit {i}'", task=f"t{i}") for i in range(6)]
        return [await run.wait() for run in runs]

    outcomes = node.runner.run(scenario())
    assert [outcome.exit_code for outcome in outcomes] == list(range(6))
    for i in range(6):
        assert (node.root / node.task_path(f"t{i}") / "stdout.txt").read_text() == f"{i}\n"


def test_close_ends_every_run_and_refuses_new_ones(node: Node) -> None:
    mark = a_mark()

    async def scenario() -> TaskOutcome:
        run = node.start(f"/bin/sleep {mark}")
        await until(lambda: bool(processes_with(mark)))
        await node.agent.close()
        assert processes_with(mark) == []
        return await run.wait()

    assert node.runner.run(scenario()).terminated

    async def refused() -> None:
        node.start("/bin/true")

    with pytest.raises(RuntimeError, match="closed"):
        node.runner.run(refused())


def test_task_files_can_be_removed_whatever_the_task_made_of_them(node: Node) -> None:
    script = """
    import os
    os.mkdir('locked'); open('locked/file', 'w').close(); os.chmod('locked', 0)
    os.symlink('/etc', 'link'); os.mkfifo('pipe')
    for _ in range(1500):
        os.mkdir('deep'); os.chdir('deep')
    """
    result = node.python(textwrap.dedent(script))
    assert result.outcome.exit_code == 0, result.stderr
    assert (result.directory / "wd" / "deep").is_dir()
    node.agent.remove_task_files(node.root, node.task_path("task"))
    assert not result.directory.exists()
    assert Path("/etc/passwd").exists()
    # It may be told again, and of a task that never was.
    node.agent.remove_task_files(node.root, node.task_path("task"))
    node.agent.remove_task_files(node.root, node.task_path("never", job="never"))


def test_a_container_runs_the_command_of_its_image(node: Node) -> None:
    result = node.run("'echo from the image; echo $1' name argument", container=whole_node())
    assert result.stdout == "from the image\nargument\n"


def test_an_unknown_image_fails_and_names_the_known_ones(node: Node) -> None:
    result = node.run("true", container=whole_node("registry.example/unknown:1"))
    assert result.code == "ContainerInvalidImage"
    assert "test/shell:latest" in result.outcome.failure.message  # type: ignore[union-attr]
    assert result.started == []


@pytest.mark.parametrize(
    "options", ["--privileged", "--network host", "--pid=host", "-v /:/host", "--cap-add=ALL"]
)
def test_run_options_that_a_sandbox_does_not_give_are_refused(node: Node, options: str) -> None:
    result = node.run("true", container=container(options=options))
    assert result.code == "ContainerInvalidRunOptions"
    assert options.replace("=", " ").split()[0] in result.outcome.failure.message  # type: ignore[union-attr]


def test_hardening_run_options_and_variables_are_accepted(node: Node) -> None:
    options = "--cap-drop=ALL --security-opt=no-new-privileges --shm-size=32m --env OPTION=given"
    result = node.run("'echo $OPTION'", container=container(options=options))
    assert result.stdout == "given\n"


def test_the_agents_environment_lies_below_the_tasks(make_node: MakeNode, driver: str) -> None:
    node = make_node(driver, environment={"A": "agent", "B": "agent"})
    assert node.shell("echo $A $B", environment={"B": "task"}).stdout == "agent task\n"


def test_the_agent_also_works_on_uvloop(driver: str, tmp_path: Path) -> None:
    uvloop = pytest.importorskip("uvloop")
    mark = a_mark()

    async def scenario() -> tuple[TaskOutcome, TaskOutcome]:
        agent = create_agent(driver, IMAGES)
        agent.prepare_node(tmp_path / "node")
        node = Node(agent, tmp_path / "node", asyncio.Runner())
        first = await node.start("/bin/sh -c 'exit 7'").wait()
        run = node.start(f"/bin/sleep {mark}", task="two")
        await until(lambda: bool(processes_with(mark)))
        run.terminate()
        second = await run.wait()
        await agent.close()
        return first, second

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        first, second = runner.run(scenario())
    assert first.exit_code == 7
    assert second.terminated
    assert processes_with(mark) == []


_EMULATOR = """
import asyncio, sys
from pathlib import Path
from batch_emulator.nodes import create_agent
from batch_emulator.nodes.contract import TaskLaunch

async def main():
    agent = create_agent(sys.argv[1])
    root = Path(sys.argv[2])
    agent.prepare_node(root)
    launch = TaskLaunch(node_root=root, task_path="workitems/j/job-1/t", command_line=sys.argv[3])
    await agent.start(launch, on_started=lambda _: None).wait()

asyncio.run(main())
"""


def test_tasks_die_with_a_killed_emulator(driver: str, tmp_path: Path) -> None:
    marks = [a_mark(), a_mark()]
    script, expected = f"setsid sleep {marks[1]} & exec sleep {marks[0]}", marks
    if driver == "process":
        # It takes only its first process along; that is one of the reasons why it is the last resort.
        script, expected = f"exec sleep {marks[0]}", marks[:1]
    emulator = subprocess.Popen(
        [PYTHON, "-c", _EMULATOR, driver, str(tmp_path / "node"), f"/bin/sh -c {quote(script)}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        wait_until(lambda: all(processes_with(mark) for mark in expected))
        emulator.kill()
        wait_until(lambda: not any(processes_with(mark) for mark in expected))
    finally:
        emulator.kill()
        emulator.wait()


def test_the_agent_says_whether_it_confines(node: Node, driver: str) -> None:
    agent: LocalNodeAgent = node.agent
    assert agent.driver_name == driver
    assert agent.enforces_isolation == (driver != "process")
