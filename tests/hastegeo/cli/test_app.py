"""The command line: what is printed, where errors go, and the exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hastegeo.cli import main
from hastegeo.errors import HasteError, InputError, LocalCloudError
from hastegeo.samples import make_scene

# rasterio itself still multiplies transforms with `*`, of which affine 3 warns.
pytestmark = pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def haste(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in this process; returns its exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str) -> tuple[int, str, str]:
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            code = main(arguments)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_help_names_the_commands(haste: Run) -> None:
    code, out, _ = haste("--help")
    assert code == 0
    for command in ("demo", "sample", "workload"):
        assert f" {command} " in out


def test_the_version_is_one_line(haste: Run) -> None:
    code, out, _ = haste("--version")
    assert (code, out.split()[0]) == (0, "haste")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["demoo"], "Did you mean 'demo'?"),
        (["demo", "--keepp"], "--keep"),
        (["demo", "extra"], "unexpected extra argument"),
        (["demo", "--driver", "hyper-v"], "'bubblewrap'"),
        (["demo", "--seed", "-1"], "greater than or equal to 0"),
        (["demo", "--blob-port", "0"], "greater than or equal to 1"),
        (["demo", "--batch-port", "65536"], "less than or equal to 65535"),
        (["sample", "make"], "Missing argument"),
        (["sample", "make", "x", "--seed", "many"], "valid integer"),
        (["workload"], "Missing argument"),
        (["workload", "nope"], "Choose one of: prepare_imagery, isolation_probe."),
        (["workload", "prepare_imagery"], "--project"),
    ],
)
def test_a_wrong_command_says_what_is_wrong_and_exits_with_2(
    haste: Run, arguments: list[str], said: str
) -> None:
    code, out, err = haste(*arguments)
    assert code == 2
    assert out == ""
    assert said in err
    assert "Traceback" not in err


def test_a_workload_has_its_own_help_and_exit_code(haste: Run, tmp_path: Path) -> None:
    code, out, _ = haste("workload", "prepare_imagery", "--help")
    assert code == 0
    assert "--project" in out
    empty = str(tmp_path)
    code, _, err = haste(
        *("workload", "prepare_imagery", "--inputs", empty, "--outputs", f"{empty}/out"),
        *("--project", "p", "--layer", "l"),
    )
    assert code == 2
    assert empty in err


def test_a_sample_says_what_was_made_and_what_comes_next(
    haste: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hastegeo.samples.make_scene", partial(make_scene, size=256))
    place = tmp_path / "a town"
    code, out, _ = haste("sample", "make", str(place))
    assert code == 0
    files = [path for path in place.rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert all(str(path) in out for path in files)
    assert f"haste demo --imagery '{place}'" in out
    assert "destroyed" in out
    code, _, err = haste("sample", "make", str(place))
    assert code == 2
    assert "exists and is not an empty folder" in err


def test_a_sample_that_cannot_be_written_says_so(haste: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, err = haste("sample", "make", str(tmp_path / "file"))
    assert code == 2
    assert "is not an empty folder" in err
    code, _, err = haste("sample", "make", str(tmp_path / "file" / "below"))
    assert code == 2
    assert "cannot be written" in err


@pytest.mark.parametrize(
    "error",
    [
        HasteError("It is broken.", hint="Mend it."),
        InputError("The path [a] is no raster.", hint="Give another."),
        LocalCloudError("It was lost."),
    ],
)
def test_an_error_is_its_sentence_its_hint_and_its_exit_code(
    haste: Run, monkeypatch: pytest.MonkeyPatch, error: HasteError
) -> None:
    def broken(options: object) -> int:
        raise error

    monkeypatch.setattr("hastegeo.demo.run_demo", broken)
    code, out, err = haste("demo")
    hint = f"What to do: {error.hint}\n" if error.hint else ""
    assert (code, out, err) == (error.exit_code, "", f"haste: {error.message}\n{hint}")


def test_options_reach_the_demo_and_its_exit_code_comes_back(
    haste: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def noted(options: object) -> int:
        asked.append(options)
        return 3

    monkeypatch.setattr("hastegeo.demo.run_demo", noted)
    code, _, _ = haste(
        *("demo", "--imagery", "tiles", "--output", "out", "--keep", "--seed", "7", "--driver", "unshare"),
        *("--allow-unsandboxed", "--blob-port", "10000", "--batch-port", "10001"),
    )
    from hastegeo.demo import DemoOptions

    assert code == 3
    assert asked == [
        DemoOptions(
            imagery=Path("tiles"),
            output=Path("out"),
            keep=True,
            seed=7,
            driver="unshare",
            allow_unsandboxed=True,
            blob_port=10000,
            batch_port=10001,
        )
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_runs_what_must_be_run_and_gives_130(
    haste: Run, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    cleaned: list[bool] = []

    def interrupted(options: object) -> int:
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            cleaned.append(True)
        return 0

    monkeypatch.setattr("hastegeo.demo.run_demo", interrupted)
    code, _, err = haste("demo")
    assert code == 130
    assert "interrupted" in err
    assert cleaned == [True]


def test_a_workload_starts_without_the_cloud_sdks() -> None:
    shown = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from hastegeo.cli import main; main(['workload', 'isolation_probe', '--help']);"
            " print(sorted(n for n in sys.modules if n.split('.')[0] in ('azure', 'rasterio', 'starlette')))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_leaves_is_no_traceback() -> None:
    haste = subprocess.Popen(
        [sys.executable, "-m", "hastegeo", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert haste.stdout is not None
    haste.stdout.close()
    _, err = haste.communicate()
    assert "Traceback" not in err
    assert "BrokenPipe" not in err
