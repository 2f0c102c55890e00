"""A local cloud comes up whole or not at all, and goes without a trace."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hastegeo.errors import LocalCloudError
from hastegeo.local_cloud import azurite
from hastegeo.local_cloud.cloud import LocalCloud, LocalCloudOptions, account_name, running_cloud


@pytest.fixture
def options(tmp_path: Path) -> LocalCloudOptions:
    images = tmp_path / "images.toml"
    images.write_text('["a:latest"]\n')
    return LocalCloudOptions(tenants=("dev1", "dev2"), images_file=images, driver="process")


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder below which the cloud keeps its files."""
    with tempfile.TemporaryDirectory(prefix="hc-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("tenant", "account"), [("dev1", "hastedev1"), ("Demo-5", "hastedemo5"), ("a_b.c", "hasteabc")]
)
def test_a_storage_account_has_letters_and_digits_only(tenant: str, account: str) -> None:
    assert account_name(tenant) == account


def test_it_comes_up_shows_no_secret_and_goes_without_a_trace(
    options: LocalCloudOptions, temporary: Path
) -> None:
    with running_cloud(options) as cloud:
        cloud.check()
        pids = [process.pid for process in cloud.processes.values()]
        assert sorted(cloud.processes) == ["azurite", "batch", "identity"]
        assert cloud.directory.parent == temporary
        assert cloud.directory.stat().st_mode & 0o077 == 0
        assert cloud.certificates.server_key.stat().st_mode & 0o077 == 0
        assert not cloud.isolated
        assert cloud.account_url("dev1") == f"{cloud.blob_url}/hastedev1"
        secrets = [cloud.batch_key, cloud.identity_header, *cloud.storage_keys.values()]
        commands = "".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in pids)
        assert not any(secret in repr(cloud) or secret in commands for secret in secrets)
        assert cloud.client_environment()["IDENTITY_HEADER"] == cloud.identity_header
    assert not any(is_alive(pid) for pid in pids)
    assert not list(temporary.iterdir())


def kept_cloud(options: LocalCloudOptions) -> LocalCloud:
    with running_cloud(replace(options, keep=True)) as cloud:
        return cloud


def test_what_is_kept_stays_up(options: LocalCloudOptions, temporary: Path) -> None:
    cloud = kept_cloud(options)
    try:
        cloud.check()
        assert cloud.directory.is_dir()
    finally:
        for process in cloud.processes.values():
            process.stop()


def failing_run(options: LocalCloudOptions, pids: list[int]) -> None:
    with running_cloud(options) as cloud:
        pids += [process.pid for process in cloud.processes.values()]
        raise KeyError("the run failed")


def test_nothing_is_kept_of_a_run_that_failed(options: LocalCloudOptions, temporary: Path) -> None:
    pids: list[int] = []
    with pytest.raises(KeyError):
        failing_run(replace(options, keep=True), pids)
    assert len(pids) == 3
    assert not any(is_alive(pid) for pid in pids)
    assert not list(temporary.iterdir())


def test_servers_that_came_up_are_stopped_where_the_next_one_does_not(
    options: LocalCloudOptions, temporary: Path, tmp_path: Path
) -> None:
    started: list[int] = []
    original = azurite.start

    def recording(*arguments: object, **named: object) -> object:
        process, url = original(*arguments, **named)  # type: ignore[arg-type]
        started.append(process.pid)
        return process, url

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(azurite, "start", recording)
        with (
            pytest.raises(LocalCloudError, match=r"The local Azure Batch ended .*missing.toml"),
            running_cloud(replace(options, images_file=tmp_path / "missing.toml")),
        ):
            pass
    assert len(started) == 1
    assert not is_alive(started[0])
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("option", ["blob_port", "batch_port"])
def test_a_port_in_use_is_said_before_anything_starts(
    options: LocalCloudOptions, temporary: Path, option: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(LocalCloudError, match=f"Port {port} on 127.0.0.1 is in use"),
            running_cloud(replace(options, **{option: port})),
        ):
            pass
    assert not list(temporary.iterdir())
