"""What a sandbox keeps apart. Beside every denial stands the same access where it is allowed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from batch_emulator.nodes import Image, ImageTable
from batch_emulator.nodes.contract import BindMount, Container

from .support import (
    IMAGE,
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

SECRET = "/mnt/batch/tasks/workitems/victim/job-1/secret/wd/secret.txt"


@pytest.fixture
def with_secret(confined: Node) -> Node:
    """A node on which an earlier task of another job has left a file, private to its owner."""
    left = confined.shell("umask 077; echo canary > secret.txt", job="victim", task="secret")
    assert left.outcome.exit_code == 0, left.stderr
    return confined


def can_read(node: Node, settings: Container | None, path: str = SECRET) -> bool:
    command = quote(f"cat {path}") if settings is not None else f"/bin/cat {path}"
    result = node.run(command, container=settings)
    assert result.outcome.exit_code is not None, result.outcome
    return "canary" in result.stdout


def test_residue_of_earlier_tasks_needs_the_whole_node(with_secret: Node) -> None:
    assert can_read(with_secret, whole_node())
    assert can_read(with_secret, None)
    assert not can_read(with_secret, container(BindMount.TASK))
    assert not can_read(with_secret, container())
    others = [mount for mount in BindMount if mount is not BindMount.TASK]
    assert not can_read(with_secret, container(*others))


def test_the_whole_node_is_mounted_read_write(with_secret: Node) -> None:
    overwrite = quote(f"echo overwritten > {SECRET}")
    assert with_secret.run(overwrite, container=container(BindMount.TASK)).outcome.exit_code != 0
    assert can_read(with_secret, whole_node())
    assert with_secret.run(overwrite, container=whole_node()).outcome.exit_code == 0
    assert not can_read(with_secret, whole_node())


@pytest.mark.parametrize(
    ("source", "directory", "variable"),
    [
        (BindMount.SHARED, "shared", "AZ_BATCH_NODE_SHARED_DIR"),
        (BindMount.STARTUP, "startup", "AZ_BATCH_NODE_STARTUP_DIR"),
        (BindMount.VFS_MOUNTS, "fsmounts", "AZ_BATCH_NODE_MOUNTS_DIR"),
        (BindMount.APPLICATIONS, "applications", "AZ_BATCH_APP_PACKAGE_tool"),
        (BindMount.JOB_PREP, "workitems/job/job-1/jobpreparation", "AZ_BATCH_JOB_PREP_DIR"),
    ],
)
def test_each_part_is_seen_only_if_selected(
    confined: Node, source: BindMount, directory: str, variable: str
) -> None:
    path = f"/mnt/batch/tasks/{directory}"
    place = confined.root / directory
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777)
    (place / "file").write_text("canary")
    (place / "file").chmod(0o666)
    environment = {variable: path}
    script = quote(f'echo "${variable}"; cat {path}/file; echo changed > {path}/file && echo wrote')

    def attempt(*mounts: tuple[BindMount, bool]) -> str:
        return confined.run(script, container=container(*mounts), environment=environment).stdout

    assert attempt((BindMount.TASK, False)) == "\n"
    assert attempt((BindMount.TASK, False), (source, True)) == f"{path}\ncanary"
    assert attempt((source, False)) == f"{path}\ncanarywrote\n"


def test_task_variables_are_lost_with_the_task_directory(confined: Node) -> None:
    kept = confined.run("env", container=container(BindMount.TASK)).stdout
    lost = confined.run("env", container=container()).stdout
    for name in ("AZ_BATCH_TASK_DIR", "AZ_BATCH_TASK_WORKING_DIR"):
        assert f"{name}=" in kept
        assert f"{name}=" not in lost
    assert "AZ_BATCH_NODE_ROOT_DIR=" not in kept
    assert "AZ_BATCH_NODE_ROOT_DIR=" in confined.run("env", container=whole_node()).stdout
    assert "AZ_BATCH_TASK_ID=task" in lost


def test_without_its_directory_a_task_works_in_private_memory(confined: Node) -> None:
    script = quote("pwd; echo x > kept; ls")
    private = confined.run(script, container=container())
    assert private.stdout == "/mnt/batch/tasks/workitems/job/job-1/task/wd\nkept\n"
    assert not (private.directory / "wd" / "kept").exists()
    mounted = confined.run(script, container=container(BindMount.TASK))
    assert mounted.stdout == private.stdout
    assert (mounted.directory / "wd" / "kept").exists()


def test_a_read_only_task_directory(confined: Node) -> None:
    script = quote("echo x > file && echo wrote")
    assert confined.run(script, container=container((BindMount.TASK, True))).stdout == ""
    assert confined.run(script, container=container((BindMount.TASK, False))).stdout == "wrote\n"


def test_a_selected_part_that_is_not_there_is_left_out(confined: Node) -> None:
    result = confined.run("true", container=container(BindMount.TASK, BindMount.JOB_PREP))
    assert result.outcome.exit_code == 0


@pytest.fixture
def process_with_secret() -> Iterator[int]:
    """A process of this machine with a secret in its environment."""
    with subprocess.Popen(["/bin/sleep", "600"], env={"ACCOUNT_KEY": "canary-of-the-emulator"}) as process:
        wait_until(lambda: b"canary" in Path(f"/proc/{process.pid}/environ").read_bytes())
        yield process.pid
        process.kill()


def test_environments_of_other_processes_cannot_be_read(confined: Node, process_with_secret: int) -> None:
    # The control outside is the fixture: it has read the secret from /proc.
    script = """
import glob
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        print(open(path).read())
    except OSError as error:
        print(path, error)
"""
    result = confined.python(script, environment={"OWN": "canary-of-the-task"})
    assert "canary-of-the-task" in result.stdout
    assert "canary-of-the-emulator" not in result.stdout
    assert confined.shell(f"test -e /proc/{process_with_secret}").outcome.exit_code != 0


def test_only_the_tasks_own_processes_are_seen(confined: Node) -> None:
    result = confined.python(
        "import os; print([open(f'/proc/{p}/comm').read() for p in os.listdir('/proc') if p.isdigit()])"
    )
    assert result.stdout.count("python") + result.stdout.count("sh") >= 2  # PID 1 and the program
    assert len(eval(result.stdout)) <= 3
    assert len([p for p in Path("/proc").iterdir() if p.name.isdigit()]) > 3


def test_pid_1_is_closed_before_there_is_a_program(confined: Node) -> None:
    # The very first act of a program; when PID 1 was closed a moment later, one in ten of these could read.
    looks = [confined.run("/bin/cat /proc/1/environ", task=f"t{number}") for number in range(40)]
    assert {look.outcome.exit_code for look in looks} == {1}
    assert {look.stdout for look in looks} == {""}
    # Control: its own environment can be read by the same program.
    assert confined.run("/bin/cat /proc/self/environ", task="control").stdout


def test_pid_1_cannot_be_looked_into_or_ended(confined: Node) -> None:
    look = "for f in environ mem maps; do cat /proc/1/$f; done; ls /proc/1/fd"
    result = confined.shell(f"{look}; for s in KILL STOP TERM INT CHLD; do kill -$s 1; done; echo alive")
    assert result.stdout == "alive\n"
    assert result.outcome.exit_code == 0


def test_files_of_this_machine_are_not_there(confined: Node, tmp_path: Path) -> None:
    secret = tmp_path / "outside.txt"
    secret.write_text("canary")
    secret.chmod(0o644)
    assert not can_read(confined, None, str(secret))
    assert confined.shell("ls /home /root/.ssh /etc/shadow /var/lib /opt").outcome.exit_code != 0
    # The control: what was given to every task can be read.
    assert confined.shell("cat /etc/passwd").outcome.exit_code == 0


def test_paths_given_to_tasks_can_be_read_not_written(
    make_node: MakeNode, sandbox: str, tmp_path: Path
) -> None:
    general, special = tmp_path / "general", tmp_path / "special"
    for place in (general, special):
        place.mkdir()
        (place / "file").write_text("canary")
        (place / "file").chmod(0o666)
    images = ImageTable(
        {
            IMAGE: Image(command=("/bin/sh", "-c"), read_only_paths=(special,)),
            "plain": Image(command=("/bin/sh", "-c")),
        }
    )
    node = make_node(sandbox, images, read_only_paths=[general])
    assert can_read(node, whole_node(), f"{general}/file")
    assert can_read(node, whole_node(), f"{special}/file")
    assert not can_read(node, whole_node("plain"), f"{special}/file")
    assert node.shell(f"echo changed > {general}/file").outcome.exit_code != 0
    assert (general / "file").read_text() == "canary"


def test_certificate_files_of_the_environment_can_be_read(
    make_node: MakeNode, sandbox: str, tmp_path: Path
) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("canary")
    bundle.chmod(0o644)
    node = make_node(sandbox, environment={"SSL_CERT_FILE": str(bundle)})
    assert node.shell('cat "$SSL_CERT_FILE"').stdout == "canary"


def test_a_path_that_would_show_the_node_itself_is_refused(
    make_node: MakeNode, sandbox: str, tmp_path: Path
) -> None:
    result = make_node(sandbox, read_only_paths=[tmp_path]).run("/bin/true")
    assert result.code == "CommandLaunchFailed"
    assert "every task can read" in result.outcome.failure.message  # type: ignore[union-attr]


def test_the_system_is_read_only_and_tmp_private(confined: Node, tmp_path: Path) -> None:
    for place in ("/", "/usr", "/etc", "/dev", "/proc/sys/kernel", "/mnt", sys.prefix):
        assert confined.shell(f"touch {place}/created").outcome.exit_code != 0, place
    for place in ("/tmp", "/var/tmp", "/dev/shm", "."):
        assert confined.shell(f"touch {place}/created").outcome.exit_code == 0, place
    assert not Path("/tmp/created").exists()
    assert not Path("/dev/shm/created").exists()


def test_a_task_is_not_root_and_has_no_capabilities(confined: Node) -> None:
    for elevated, user in ((False, "1000"), (True, "0")):
        result = confined.shell("id -u; id -g; grep -E '^(Cap|NoNew)' /proc/self/status", elevated=elevated)
        lines = result.stdout.splitlines()
        assert lines[:2] == [user, user]
        status = dict(line.split(":\t") for line in lines[2:])
        assert status.pop("NoNewPrivs") == "1"
        effective = {name: int(value, 16) for name, value in status.items() if name != "CapBnd"}
        assert effective == {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0}


def test_even_an_elevated_task_cannot_mount(confined: Node) -> None:
    result = confined.shell(
        "mount -t tmpfs none /mnt; mount -o remount,rw /; touch /usr/created", elevated=True
    )
    assert result.outcome.exit_code != 0
    assert not Path("/usr/created").exists()


def test_a_nested_user_namespace_gives_nothing_back(confined: Node) -> None:
    script = (
        "unshare -Urm sh -c 'mount -o remount,bind,rw /usr; umount /etc/passwd; umount /proc; touch /usr/x'"
    )
    result = confined.shell(f"{script}; cat /etc/passwd")
    assert "_azbatch" in result.stdout
    assert not Path("/usr/x").exists()


def test_set_user_id_programs_do_not_work(confined: Node) -> None:
    script = "find /usr/bin -perm -4000 | head -1"
    if not confined.shell(script).stdout:
        pytest.skip("this machine has no set-user-id program")
    assert "nosuid" in confined.shell("grep ' /usr ' /proc/self/mountinfo").stdout


def test_namespaces_are_the_tasks_own(confined: Node) -> None:
    script = "for n in user mnt pid ipc uts cgroup net; do readlink /proc/self/ns/$n; done"
    inside = confined.shell(script).stdout.splitlines()
    outside = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    for here, there in zip(inside, outside.stdout.splitlines(), strict=True):
        # The network is this machine's when no endpoints are given.
        assert (here == there) == here.startswith("net:")


def test_shared_memory_has_the_size_that_was_asked_for(confined: Node) -> None:
    script = quote("df --output=size -B1 /dev/shm | tail -1")
    assert int(confined.run(script, container=whole_node()).stdout) == 64 * 1024**2
    sized = container(options="--shm-size=2m")
    assert int(confined.run(script, container=sized).stdout) == 2 * 1024**2


def command_lines() -> list[bytes]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it may have ended
            lines.append(path.read_bytes())
    return lines


def test_the_environment_is_on_no_command_line(confined: Node) -> None:
    """A secret in a task's environment must not be seen in this machine's process list."""
    with_secret = {"GRANT": "sig=canary-signature"}
    script = "import time; time.sleep(600)"

    async def scenario() -> list[bytes]:
        run = confined.start(f"{PYTHON} -c {quote(script)}", environment=with_secret)
        await until(lambda: bool(processes_with(script)))
        lines = command_lines()
        run.terminate()
        await run.wait()
        return lines

    lines = confined.runner.run(scenario())
    assert any(b"time.sleep(600)" in line for line in lines)
    assert not any(b"canary-signature" in line for line in lines)


def test_a_planted_link_leads_nowhere(confined: Node, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "job-1").mkdir(parents=True)
    (confined.root / "workitems" / "planted").symlink_to(outside)
    result_code = confined.run("/bin/true", job="planted").code
    assert result_code == "ResourceFileWriteFailed"
    assert list((outside / "job-1").iterdir()) == []
    (outside / "job-1" / "task").mkdir()
    confined.agent.remove_task_files(confined.root, confined.task_path("task", "planted"))
    assert (outside / "job-1" / "task").exists()


def test_a_mount_source_that_became_a_link_is_refused(confined: Node, tmp_path: Path) -> None:
    shared = confined.root / "shared"
    shared.rmdir()
    shared.symlink_to(tmp_path)
    result = confined.run("true", container=container(BindMount.TASK, BindMount.SHARED))
    assert result.code == "CommandLaunchFailed"
    assert "symbolic link" in result.outcome.failure.message  # type: ignore[union-attr]


def test_a_task_that_fills_the_output_path_with_links_changes_nothing(confined: Node, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("untouched")
    script = f"rm ../stdout.txt ../stderr.txt; ln -s {target} ../stdout.txt; ln -s {target} ../stderr.txt"
    assert confined.shell(script).outcome.exit_code == 0
    assert confined.shell("echo again").stdout == "again\n"
    assert target.read_text() == "untouched"
