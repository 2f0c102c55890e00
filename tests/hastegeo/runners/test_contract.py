"""The Runner contract, held against every runner; storage is Azurite, the programs are real."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from azure.batch import BatchClient, models
from azure.core.credentials import AzureNamedKeyCredential

from hastegeo.domain import (
    BlobInput,
    BlobOutput,
    GrantKind,
    GrantVariable,
    OutputCondition,
    TaskRef,
    TaskSpec,
    TaskState,
    TaskStatus,
    Workload,
)
from hastegeo.errors import GrantRefusedError, InputError, RunnerError, TaskConflictError, TaskNotFoundError
from hastegeo.runners import AzureBatchRunner, LocalRunner, Runner
from hastegeo.settings import Settings

PATIENCE = timedelta(seconds=60)
POLL = timedelta(seconds=0.1)


@dataclass(frozen=True)
class World:
    """A runner and what its tasks can reach. `make` gives another one on the same tasks."""

    make: Callable[[], Runner]
    runner: Runner
    container_url: str
    foreign_url: str
    owner: Any

    def spec(self, program: str = "pass", **changes: Any) -> TaskSpec:
        values: dict[str, Any] = {
            "key": f"task-{uuid4().hex}",
            "tenant": "dev1",
            "workload": Workload.IMAGERYPREP,
            "image": "haste/test:1",
            "command": (sys.executable, "-c", program),
            "max_wall_clock": timedelta(minutes=5),
        }
        return TaskSpec(**(values | changes))

    def run(self, program: str = "pass", **changes: Any) -> TaskStatus:
        return self.runner.wait(
            self.runner.submit(self.spec(program, **changes)).ref, timeout=PATIENCE, poll=POLL
        )

    def until(self, ref: TaskRef, state: TaskState) -> TaskStatus:
        deadline = time.monotonic() + PATIENCE.total_seconds()
        while (status := self.runner.status(ref)).state is not state:
            assert not status.state.is_final, status
            assert time.monotonic() < deadline, status
            time.sleep(POLL.total_seconds())
        return status

    def stored(self, prefix: str) -> dict[str, bytes]:
        names = [blob.name for blob in self.owner.list_blobs(name_starts_with=prefix)]
        return {name: self.owner.download_blob(name).readall() for name in names}


def local_world(storage: Any, folder: Path) -> World:
    url = storage.address("dev1store").url
    settings = Settings.load(
        {
            "RUNNER_TYPE": "local",
            "HASTE_TENANT": "dev1",
            "AZURE_BATCH_USE_SAS": "true",
            "AZURE_BATCH_OUTPUT_CONTAINER_URL": url,
            "HASTE_LOCAL_ROOT": str(folder / "local"),
            "HASTE_GRANT_LEDGER": str(folder / "grants.jsonl"),
            "HASTE_LOCAL_SLOTS": "2",
        }
    )
    return World(
        make=lambda: LocalRunner(settings, storage.credential),
        runner=LocalRunner(settings, storage.credential),
        container_url=url,
        foreign_url=storage.address("dev2store").url,
        owner=storage.owner("dev1store"),
    )


@pytest.fixture(scope="session")
def emulator(storage: Any) -> Iterator[Any]:
    from batch_emulator.clock import SystemClock
    from batch_emulator.nodes.images import Image, ImageTable
    from batch_emulator.testing import running_emulator

    # The tests' programs need this Python and its certificates, and nothing else of this machine.
    image = Image(read_only_paths=(Path(sys.prefix), Path(sys.base_prefix)))
    with running_emulator(
        clock=SystemClock(200),
        images=ImageTable({"haste/test:1": image}),
        task_environment={"SSL_CERT_FILE": os.environ["SSL_CERT_FILE"]},
    ) as found:
        key = AzureNamedKeyCredential(found.account_name, found.account_key)
        with BatchClient(found.endpoint, key) as client:
            client.create_pool(
                models.BatchPoolCreateOptions(
                    id="test-pool",
                    vm_size="Standard_NC16as_T4_v3",
                    virtual_machine_configuration=models.VirtualMachineConfiguration(
                        image_reference=models.BatchVmImageReference(publisher="p", offer="o", sku="s"),
                        node_agent_sku_id="batch.node.ubuntu 24.04",
                    ),
                    target_dedicated_nodes=2,
                )
            )
        yield found


def batch_world(storage: Any, emulator: Any, folder: Path) -> World:
    url = storage.address("dev1store").url
    settings = Settings.load(
        {
            "HASTE_TENANT": "dev1",
            "AZURE_BATCH_URL": emulator.endpoint,
            "AZURE_BATCH_ACCOUNT_NAME": emulator.account_name,
            "AZURE_BATCH_ACCOUNT_KEY": emulator.account_key,
            "AZURE_BATCH_USE_SAS": "true",
            "AZURE_BATCH_MANAGE_POOLS": "false",
            "AZURE_BATCH_IMAGERYPREP_POOL_IDS": "test-pool",
            "AZURE_BATCH_OUTPUT_CONTAINER_URL": url,
            "HASTE_GRANT_LEDGER": str(folder / "grants.jsonl"),
        }
    )
    return World(
        make=lambda: AzureBatchRunner(settings, storage.credential),
        runner=AzureBatchRunner(settings, storage.credential),
        container_url=url,
        foreign_url=storage.address("dev2store").url,
        owner=storage.owner("dev1store"),
    )


@pytest.fixture(params=["local", "azure_batch"])
def world(request: pytest.FixtureRequest, storage: Any, tmp_path: Path) -> Iterator[World]:
    if request.param == "local":
        made = local_world(storage, tmp_path)
    else:
        made = batch_world(storage, request.getfixturevalue("emulator"), tmp_path)
    yield made
    for status in list(made.runner.list()):
        made.runner.cleanup(status.ref)
    made.owner.close()


def test_a_task_succeeds_and_says_where_and_when(world: World) -> None:
    status = world.run("print('hello')")
    assert (status.state, status.exit_code, status.retries, status.requeues) == (TaskState.SUCCEEDED, 0, 0, 0)
    assert status.created is not None
    assert status.started is not None
    assert status.ended is not None
    assert status.created <= status.started <= status.ended
    assert status.pool_id


def test_inputs_are_there_and_outputs_are_stored(world: World) -> None:
    prefix = f"results/{uuid4().hex}"
    program = (
        "import pathlib, sys\n"
        "assert pathlib.Path('in/raw/a.tif').read_bytes() == b'pixels', list(pathlib.Path().rglob('*'))\n"
        "assert pathlib.Path('one.tif').read_bytes() == b'pixels'\n"
        "out = pathlib.Path('out/deep'); out.mkdir(parents=True)\n"
        "(out / 'x.tif').write_bytes(b'x'); (out / '.hidden').write_bytes(b'h')\n"
        "pathlib.Path('out/y.txt').write_bytes(b'y'); pathlib.Path('report.json').write_bytes(b'{}')\n"
    )
    status = world.run(
        program,
        inputs=(
            BlobInput(container_url=world.container_url, prefix="raw/", path="in"),
            BlobInput(container_url=world.container_url, blob="raw/a.tif", path="one.tif"),
        ),
        outputs=(
            BlobOutput(pattern="out/**/*", container_url=world.container_url, prefix=f"{prefix}/all"),
            BlobOutput(pattern="out/*.tif", container_url=world.container_url, prefix=f"{prefix}/none"),
            BlobOutput(pattern="report.json", container_url=world.container_url, prefix=f"{prefix}/r.json"),
            BlobOutput(
                pattern="report.json",
                container_url=world.container_url,
                prefix=f"{prefix}/failed.json",
                condition=OutputCondition.FAILURE,
            ),
        ),
    )
    assert status.state is TaskState.SUCCEEDED, status
    assert world.stored(prefix) == {
        f"{prefix}/all/deep/x.tif": b"x",
        f"{prefix}/all/y.txt": b"y",
        f"{prefix}/r.json": b"{}",
    }


def test_a_failed_program_keeps_its_exit_code_and_saves_what_failure_asks_for(world: World) -> None:
    prefix = f"results/{uuid4().hex}"
    status = world.run(
        "import pathlib, sys; pathlib.Path('trace.txt').write_text('why'); sys.exit(7)",
        outputs=tuple(
            BlobOutput(
                pattern="trace.txt",
                container_url=world.container_url,
                prefix=f"{prefix}/{condition}",
                condition=condition,
            )
            for condition in OutputCondition
        ),
    )
    assert (status.state, status.exit_code) == (TaskState.FAILED, 7)
    assert status.reason == "the program exited with 7"
    assert set(world.stored(prefix)) == {f"{prefix}/failure", f"{prefix}/completion"}


# Counts its tries in storage, for a try may run on another node; fails unless it is the third.
COUNT_TRIES = """
import os, pathlib, sys, urllib.error, urllib.request
assert not pathlib.Path("left-behind").exists(); pathlib.Path("left-behind").touch()
url = os.environ["STATE_URL"].replace("?", "/" + os.environ["TRIES"] + "?")
try:
    tries = len(urllib.request.urlopen(url).read())
except urllib.error.HTTPError as error:
    assert error.code == 404
    tries = 0
headers = {"x-ms-blob-type": "BlockBlob"}
urllib.request.urlopen(urllib.request.Request(url, b"x" * (tries + 1), headers, method="PUT")).read()
sys.exit(0 if tries == 2 else 1)
"""


def test_a_failed_program_is_tried_again_as_often_as_asked(world: World) -> None:
    def tried(retries: int) -> TaskStatus:
        state = GrantVariable(
            name="STATE_URL", kind=GrantKind.STATE, container_url=world.container_url, prefix="state"
        )
        tries = f"state/{uuid4().hex}"
        return world.run(
            COUNT_TRIES, environment={"TRIES": tries}, grant_variables=(state,), max_retries=retries
        )

    enough = tried(2)
    assert (enough.state, enough.retries, enough.exit_code) == (TaskState.SUCCEEDED, 2, 0)
    too_few = tried(1)
    assert (too_few.state, too_few.retries, too_few.exit_code) == (TaskState.FAILED, 1, 1)


def test_a_missing_input_fails_the_task_with_its_code(world: World) -> None:
    status = world.run(inputs=(BlobInput(container_url=world.container_url, blob="raw/none.tif"),))
    assert status.state is TaskState.FAILED
    assert status.failure is not None
    assert status.failure.code == "BlobNotFound"
    assert "sig=" not in repr(status)


def test_a_program_that_does_not_exist_fails_the_task(world: World) -> None:
    status = world.run(command=("no-such-program-anywhere",))
    assert status.state is TaskState.FAILED
    assert status.failure is not None


def test_the_wall_clock_ends_the_whole_process_tree(world: World) -> None:
    mark = uuid4().hex
    program = (
        "import subprocess, sys\n"
        f"sleep = [sys.executable, '-c', 'import time; time.sleep(300)', '{mark}']\n"
        "child = subprocess.Popen(sleep, start_new_session=True)\n"
        "print('started', flush=True); child.wait()\n"
    )
    status = world.run(program, max_wall_clock=timedelta(seconds=2))
    assert status.state is TaskState.FAILED
    assert "wall-clock" in status.reason
    assert b"".join(world.runner.logs(status.ref)) == b"started\n"
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in running if mark.encode() in command.split(b"\0")]


def test_programs_get_their_environment_and_grants(world: World) -> None:
    program = (
        "import os, urllib.request\n"
        "print(os.environ['LEVEL'], os.environ['AZ_BATCH_TASK_WORKING_DIR'] == os.getcwd())\n"
        "url = os.environ['INPUTS_URL'].replace('?', '/raw/a.tif?')\n"
        "print(urllib.request.urlopen(url).read().decode())\n"
    )
    status = world.run(
        program,
        environment={"LEVEL": "3"},
        grant_variables=(
            GrantVariable(name="INPUTS_URL", kind=GrantKind.INPUTS, container_url=world.container_url),
        ),
    )
    assert status.state is TaskState.SUCCEEDED, b"".join(world.runner.logs(status.ref, "stderr"))
    assert b"".join(world.runner.logs(status.ref)).decode().split() == ["3", "True", "pixels"]


def test_logs_are_bytes_as_they_were_written(world: World) -> None:
    program = (
        "import sys\n"
        "sys.stdout.buffer.write('füße'.encode() + bytes(range(256)) * 1000)\n"
        "sys.stderr.write('trouble')\n"
    )
    ref = world.run(program).ref
    assert b"".join(world.runner.logs(ref)) == "füße".encode() + bytes(range(256)) * 1000
    assert b"".join(world.runner.logs(ref, "stderr")) == b"trouble"


def test_a_log_is_followed_to_its_end(world: World) -> None:
    program = "import time\nfor n in range(5):\n    print(n, flush=True)\n    time.sleep(0.2)\n"
    ref = world.runner.submit(world.spec(program)).ref
    assert b"".join(world.runner.logs(ref, follow=True)).split() == [b"0", b"1", b"2", b"3", b"4"]
    assert world.runner.status(ref).state is TaskState.SUCCEEDED


def test_files_can_be_listed_and_downloaded(world: World, tmp_path: Path) -> None:
    ref = world.run("open('a b.bin', 'wb').write(b'x' * 5_000_000)").ref
    sizes = {file.path: file.size for file in world.runner.files(ref)}
    assert sizes["wd/a b.bin"] == 5_000_000
    assert "stdout.txt" in sizes
    target = world.runner.download(ref, "wd/a b.bin", tmp_path)
    assert target.read_bytes() == b"x" * 5_000_000
    for path in ("wd/none", "../../../../etc/passwd", "wd/../../.."):
        with pytest.raises((RunnerError, InputError)):
            world.runner.download(ref, path, tmp_path / "stolen")
    assert not (tmp_path / "stolen").exists()


def test_cancelling_ends_a_running_task_and_nothing_else(world: World) -> None:
    ref = world.runner.submit(world.spec("import time; time.sleep(300)")).ref
    other = world.runner.submit(world.spec("import time; time.sleep(300)")).ref
    world.until(ref, TaskState.RUNNING)
    world.until(other, TaskState.RUNNING)
    world.runner.cancel(ref)
    assert world.runner.wait(ref, timeout=PATIENCE, poll=POLL).state is TaskState.CANCELLED
    assert world.runner.status(other).state is TaskState.RUNNING
    world.runner.cancel(ref)
    assert world.runner.status(ref).state is TaskState.CANCELLED


def test_cancelling_an_ended_task_changes_nothing(world: World) -> None:
    ref = world.run().ref
    world.runner.cancel(ref)
    assert world.runner.status(ref).state is TaskState.SUCCEEDED


def test_the_same_submission_is_one_task_from_anywhere(world: World) -> None:
    spec = world.spec("print('once')")
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda runner: runner.submit(spec), [world.runner, world.make()] * 2))
    assert len({submission.ref for submission in found}) == 1
    assert sum(submission.created for submission in found) == 1
    ref = found[0].ref
    assert world.make().wait(ref, timeout=PATIENCE, poll=POLL).state is TaskState.SUCCEEDED
    assert b"".join(world.make().logs(ref)) == b"once\n"


def test_another_definition_under_the_same_key_is_refused(world: World) -> None:
    spec = world.spec()
    world.runner.submit(spec)
    with pytest.raises(TaskConflictError):
        world.make().submit(replace(spec, environment={"CHANGED": "1"}))


def test_foreign_storage_and_foreign_tenants_are_refused(world: World) -> None:
    with pytest.raises(GrantRefusedError):
        world.runner.submit(world.spec(inputs=(BlobInput(container_url=world.foreign_url, prefix="raw"),)))
    with pytest.raises(InputError):
        world.runner.submit(world.spec(tenant="dev2"))
    assert world.run().state is TaskState.SUCCEEDED


def test_many_are_submitted_together_and_listed(world: World) -> None:
    specs = [world.spec(f"print({number})") for number in range(6)]
    specs.append(world.spec(workload=Workload.ARTIFACTS))
    submissions = world.runner.submit_many(specs)
    for submission in submissions:
        world.runner.wait(submission.ref, timeout=PATIENCE, poll=POLL)
    assert [b"".join(world.runner.logs(found.ref)) for found in submissions[:6]] == [
        f"{number}\n".encode() for number in range(6)
    ]
    refs = {submission.ref for submission in submissions}
    assert refs <= {status.ref for status in world.runner.list()}
    assert submissions[-1].ref in {status.ref for status in world.runner.list(workload=Workload.ARTIFACTS)}
    assert submissions[0].ref not in {status.ref for status in world.runner.list(workload=Workload.ARTIFACTS)}


def test_cleaning_up_forgets_one_task_and_keeps_results(world: World) -> None:
    prefix = f"results/{uuid4().hex}"
    output = BlobOutput(pattern="r.txt", container_url=world.container_url, prefix=f"{prefix}/r.txt")
    first = world.run("open('r.txt', 'w').write('kept')", outputs=(output,)).ref
    second = world.run("print('still here')").ref
    world.runner.cleanup(first)
    world.runner.cleanup(first)
    with pytest.raises(TaskNotFoundError):
        world.runner.status(first)
    assert b"".join(world.runner.logs(second)) == b"still here\n"
    assert world.stored(prefix) == {f"{prefix}/r.txt": b"kept"}


def test_what_is_not_known_is_said(world: World, tmp_path: Path) -> None:
    unknown = TaskRef("no-job", "no-task")
    for call in (
        lambda: world.runner.status(unknown),
        lambda: world.runner.cancel(unknown),
        lambda: list(world.runner.logs(unknown)),
        lambda: world.runner.files(unknown),
    ):
        with pytest.raises(TaskNotFoundError):
            call()
    world.runner.cleanup(unknown)
