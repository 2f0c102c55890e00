"""Who may import whom: the rooms of spec/architecture.md, held by reading the import statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"

# Room -> the other rooms of hastegeo that it may import. A room that is not listed here fails the test.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "domain": {"errors"},
    "routing": {"domain", "errors"},
    "settings": {"domain", "errors"},
    "samples": {"errors"},
    "workflows": {"domain", "errors"},
    "credentials": {"domain", "errors", "settings"},
    "capacity": {"domain", "errors", "routing", "settings"},
    "runners": {"capacity", "credentials", "domain", "errors", "routing", "settings"},
    "local_cloud": {"errors"},
    "verification": {"credentials", "domain", "errors", "runners", "settings", "workflows"},
    "demo": {
        *("capacity", "credentials", "domain", "errors", "local_cloud", "routing", "runners"),
        *("samples", "settings", "verification", "workflows"),
    },
    "cli": {
        *("capacity", "credentials", "demo", "domain", "errors", "local_cloud", "routing", "runners"),
        *("samples", "settings", "verification", "workflows"),
    },
}
# `domain` and `routing` do no I/O, so nothing that does may be imported there.
IO_MODULES = {
    *("asyncio", "azure", "http", "httpx", "io", "os", "pathlib", "requests", "shutil", "socket"),
    *("sqlite3", "subprocess", "tempfile", "threading", "time", "urllib.request", "rasterio", "pyogrio"),
}
PURE_ROOMS = {"domain", "routing"}


def modules(package: str) -> list[Path]:
    return sorted((SOURCE / package).rglob("*.py"))


def imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide which room is meant"
            assert node.module
            yield node.module
            # `from hastegeo import settings` names the room in the alias.
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "hastegeo")


def room_of(path: Path) -> str:
    parts = path.relative_to(SOURCE / "hastegeo").with_suffix("").parts
    return parts[0]


def rooms_imported(path: Path) -> set[str]:
    return {
        name.split(".")[1] for name in imported_names(path) if name.startswith("hastegeo.") and "." in name
    } - {"__version__"}


@pytest.mark.parametrize("path", modules("hastegeo"), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_the_rooms_below_it(path: Path) -> None:
    room = room_of(path)
    if room in {"__init__", "__main__"}:
        return
    assert room in ALLOWED, f"{room} is a new room: say in spec/architecture.md and here what it may import"
    assert rooms_imported(path) <= ALLOWED[room] | {room}


@pytest.mark.parametrize("path", modules("hastegeo"), ids=lambda path: str(path.relative_to(SOURCE)))
def test_pure_rooms_import_nothing_that_does_input_or_output(path: Path) -> None:
    if room_of(path) not in PURE_ROOMS:
        return
    names = set(imported_names(path))
    assert not {name for name in names if name in IO_MODULES or name.split(".")[0] in IO_MODULES}


@pytest.mark.parametrize(
    ("package", "other"), [("hastegeo", "batch_emulator"), ("batch_emulator", "hastegeo")]
)
def test_the_library_and_the_emulator_do_not_know_each_other(package: str, other: str) -> None:
    assert modules(package)
    for path in modules(package):
        assert not [name for name in imported_names(path) if name.split(".")[0] == other], path


def test_the_rules_can_fail(tmp_path: Path) -> None:
    offender = tmp_path / "offender.py"
    offender.write_text("from hastegeo import runners\nimport hastegeo.cli.app\n")
    assert rooms_imported(offender) == {"runners", "cli"}
