"""Where results come to be, and what they are called: nothing appears under its name before it is whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.tiles import Event

_MAX_NAME_BYTES: Final = 80
_WORKSPACE: Final = ".prepare.partial"


def output_names(event: Event, project: str, layer: str) -> dict[str, str]:
    """Return the file name of each role of an event's outputs: `raw`, `processed` and `preview`."""
    return {
        "raw": f"raw_imagery_{event}_event_mosaic_cog_{project}_{layer}.tif",
        "processed": f"processed_imagery_{event}_event_mosaic_cog_{project}_{layer}.tif",
        "preview": f"preview_{event}_event_{project}_{layer}.png",
    }


def layer_output_names(project: str, layer: str) -> dict[str, str]:
    """Return the file name of each role of a layer's outputs: `valid_area` and `footprints`."""
    return {
        "valid_area": f"valid_area_mask_{project}_{layer}.geojson",
        "footprints": f"building_footprints_{project}_{layer}.gpkg",
    }


@contextlib.contextmanager
def workspace_in(outputs: Path) -> Iterator[Path]:
    """Give a hidden folder beside the results, on the same disk, and remove it whatever happens.

    One run at a time may write to a folder; what a killed run left behind is cleared. Raises `InputError`
    where the folder cannot be used.
    """
    try:
        outputs.mkdir(parents=True, exist_ok=True)
        handle = os.open(outputs, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(
            f"The outputs folder {outputs} cannot be used ({error.strerror}).", hint="Choose another folder."
        ) from None
    workspace = outputs / _WORKSPACE
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"Another run is writing to {outputs}.", hint="Wait for it, or choose another folder."
            ) from None
        shutil.rmtree(workspace, ignore_errors=True)
        try:
            workspace.mkdir()
            yield workspace
        finally:
            shutil.rmtree(workspace, ignore_errors=True)
    finally:
        os.close(handle)


def check_name(what: str, name: str) -> None:
    """Refuse a name that cannot be part of a file name. Raises `InputError`."""
    if (
        not name
        or name.startswith(".")
        or "/" in name
        or "\\" in name
        or not name.isprintable()
        or len(name.encode()) > _MAX_NAME_BYTES
    ):
        raise InputError(
            f"{name!r} cannot be the name of a {what}: it becomes part of file names.",
            hint=f"Use letters, digits, - and _, at most {_MAX_NAME_BYTES} bytes.",
        )


def check_apart(inputs_dir: str | os.PathLike[str], outputs: Path) -> None:
    """Refuse to write results where the next run would take them for tiles. Raises `InputError`."""
    if not Path(inputs_dir).is_dir():
        return
    inputs = Path(inputs_dir).resolve()
    if inputs in (outputs.resolve(), *outputs.resolve().parents):
        raise InputError(
            f"The outputs folder {outputs} lies in the inputs folder, so results would be taken for tiles.",
            hint="Choose an outputs folder beside it.",
        )
