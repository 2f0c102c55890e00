"""Files of tasks and of nodes: listing, properties, download with ranges, deletion.

A path from a client never leads out of the directory it is relative to, and links are never followed.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from batch_emulator.errors import BatchError
from batch_emulator.routes.listing import list_answer, numbered, start_after
from batch_emulator.routes.registry import Answer, Call, registry
from batch_emulator.state import Json, NodeState, Task
from batch_emulator.wire.times import format_http_time, format_time

_GONE = {NodeState.PREEMPTED, NodeState.LEAVING_POOL, NodeState.CREATING, NodeState.STARTING}
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True)
class FileArea:
    """A directory whose files a client may see, and the URL below which they are."""

    directory: Path
    url: str

    def find(self, path: str) -> Path:
        """Return the file at a client's path. Raises FileNotFound, for what is outside too."""
        parts = PurePosixPath(path.replace("\\", "/").strip("/")).parts
        if not parts or ".." in parts or "\0" in path:
            raise BatchError("FileNotFound")
        place = self.directory
        for part in parts:
            place /= part
            # A link made by a task could lead anywhere on this machine.
            if place.is_symlink():
                raise BatchError("FileNotFound")
        if not place.exists():
            raise BatchError("FileNotFound")
        return place

    def walk(self, *, recursive: bool) -> Iterator[Path]:
        """Yield the files and folders, sorted by path; links are left out."""
        for place in sorted(self.directory.iterdir()) if self.directory.is_dir() else ():
            if place.is_symlink():
                continue
            yield place
            if recursive and place.is_dir():
                yield from FileArea(place, self.url).walk(recursive=True)

    def entry(self, place: Path) -> Json:
        """Return one line of a listing."""
        name = place.relative_to(self.directory).as_posix()
        stat = place.stat()
        shown: Json = {
            "name": name,
            "url": f"{self.url}/{quote(name, safe='')}",
            "isDirectory": place.is_dir(),
        }
        if not place.is_dir():
            changed = format_time(datetime.fromtimestamp(stat.st_mtime, UTC))
            shown["properties"] = {
                "creationTime": format_time(datetime.fromtimestamp(stat.st_ctime, UTC)),
                "lastModified": changed,
                # The service writes this number as a string.
                "contentLength": str(stat.st_size),
                "contentType": "application/octet-stream",
                "fileMode": f"0o{stat.st_mode:o}",
            }
        return shown

    def headers(self, place: Path) -> dict[str, str]:
        """Return the headers that describe one file."""
        stat = place.stat()
        name = place.relative_to(self.directory).as_posix()
        return {
            "Last-Modified": format_http_time(datetime.fromtimestamp(stat.st_mtime, UTC)),
            "ocp-creation-time": format_http_time(datetime.fromtimestamp(stat.st_ctime, UTC)),
            "ocp-batch-file-isdirectory": str(place.is_dir()),
            "ocp-batch-file-url": quote(f"{self.url}/{name}", safe=""),
            "ocp-batch-file-mode": f"0o{stat.st_mode:o}",
            "Content-Type": "application/octet-stream",
            "Content-Length": str(0 if place.is_dir() else stat.st_size),
        }


def _task_area(call: Call) -> FileArea:
    task: Task = call.task
    node = task.last_node
    if node is None:
        raise BatchError("TaskFilesUnavailable")
    if task.files_removed:
        raise BatchError("TaskFilesCleanedup")
    if node.state in _GONE or node.id not in node.pool.nodes:
        raise BatchError("TaskFilesUnavailable", "The node that ran the task is gone.")
    return FileArea(node.root / task.path, f"{call.world.url}/jobs/{task.job.id}/tasks/{task.id}/files")


def _node_area(call: Call) -> FileArea:
    node = call.node
    if node.state in _GONE:
        raise BatchError("OperationNotValidOnNode", "The node is not up.")
    return FileArea(node.root, f"{call.world.url}/pools/{node.pool.id}/nodes/{node.id}/files")


def _list(call: Call, area: FileArea) -> Answer:
    recursive = call.query.get("recursive", "false").lower() == "true"
    items = numbered(area.walk(recursive=recursive), start_after(call))
    return list_answer(call, "files", items, area.entry)


def _properties(call: Call, area: FileArea) -> Answer:
    return Answer(headers=area.headers(area.find(call.path["filePath"])), content=b"")


async def _download(call: Call, area: FileArea) -> Answer:
    place = area.find(call.path["filePath"])
    if place.is_dir():
        raise BatchError("IOError", "The path is a directory.")
    headers = area.headers(place)
    size = place.stat().st_size
    first, last, partial = _span(call.headers.get("ocp-range") or call.headers.get("range"), size)

    def read() -> bytes:
        with place.open("rb") as stream:
            stream.seek(first)
            return stream.read(last - first + 1)

    content = await asyncio.to_thread(read)
    headers["Content-Length"] = str(len(content))
    if partial:
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    return Answer(206 if partial else 200, headers=headers, content=content)


def _span(asked: str | None, size: int) -> tuple[int, int, bool]:
    match = _RANGE.fullmatch(asked.strip()) if asked else None
    if match is None or not any(match.groups()):
        return 0, size - 1, False
    begin, end = match.groups()
    if not begin:
        first, last = max(0, size - int(end)), size - 1
    else:
        first, last = int(begin), min(int(end) if end else size - 1, size - 1)
    if first > last:
        raise BatchError("InvalidRange")
    return first, last, True


async def _delete(call: Call, area: FileArea) -> Answer:
    place = area.find(call.path["filePath"])
    recursive = call.query.get("recursive", "false").lower() == "true"
    if place.is_dir() and not recursive and any(place.iterdir()):
        raise BatchError("IOError", "The directory is not empty; ask for recursive deletion.")
    remove: Callable[[Path], None] = shutil.rmtree if place.is_dir() else Path.unlink
    await asyncio.to_thread(remove, place)
    return Answer(200)


@registry.operation("GET", "/jobs/{jobId}/tasks/{taskId}/files")
def list_task_files(call: Call) -> Answer:
    """List the files of a task."""
    return _list(call, _task_area(call))


@registry.operation("HEAD", "/jobs/{jobId}/tasks/{taskId}/files/{filePath}")
def get_task_file_properties(call: Call) -> Answer:
    """Describe a file of a task."""
    return _properties(call, _task_area(call))


@registry.operation("GET", "/jobs/{jobId}/tasks/{taskId}/files/{filePath}")
async def download_task_file(call: Call) -> Answer:
    """Download a file of a task, or a range of it."""
    return await _download(call, _task_area(call))


@registry.operation("DELETE", "/jobs/{jobId}/tasks/{taskId}/files/{filePath}")
async def delete_task_file(call: Call) -> Answer:
    """Delete a file of a task."""
    return await _delete(call, _task_area(call))


@registry.operation("GET", "/pools/{poolId}/nodes/{nodeId}/files")
def list_node_files(call: Call) -> Answer:
    """List the files of a node."""
    return _list(call, _node_area(call))


@registry.operation("HEAD", "/pools/{poolId}/nodes/{nodeId}/files/{filePath}")
def get_node_file_properties(call: Call) -> Answer:
    """Describe a file of a node."""
    return _properties(call, _node_area(call))


@registry.operation("GET", "/pools/{poolId}/nodes/{nodeId}/files/{filePath}")
async def download_node_file(call: Call) -> Answer:
    """Download a file of a node, or a range of it."""
    return await _download(call, _node_area(call))


@registry.operation("DELETE", "/pools/{poolId}/nodes/{nodeId}/files/{filePath}")
async def delete_node_file(call: Call) -> Answer:
    """Delete a file of a node."""
    return await _delete(call, _node_area(call))
