"""Azurite comes up over verified TLS; a missing Node or network is said clearly."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from hastegeo.errors import LocalCloudError
from hastegeo.local_cloud import azurite
from hastegeo.local_cloud.certificates import create_certificates


def test_azurite_comes_up_over_verified_tls(tmp_path: Path) -> None:
    certificates = create_certificates(tmp_path / "certificates")
    process, url = azurite.start(
        azurite.install(),
        accounts={"one": base64.b64encode(os.urandom(32)).decode()},
        certificates=certificates,
        data_dir=tmp_path / "data",
        log_file=tmp_path / "azurite.log",
    )
    try:
        trusting = ssl.create_default_context(cafile=str(certificates.authority))
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/one?comp=list", context=trusting, timeout=10)
        refused.value.close()
        assert refused.value.code == 403  # it answers, and wants a credential
        strange = create_certificates(tmp_path / "other")
        distrusting = ssl.create_default_context(cafile=str(strange.authority))
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(f"{url}/one?comp=list", context=distrusting, timeout=10)
    finally:
        process.stop()


def test_keys_are_not_on_the_command_line(tmp_path: Path) -> None:
    key = base64.b64encode(os.urandom(32)).decode()
    process, _ = azurite.start(
        azurite.install(),
        accounts={"one": key},
        certificates=create_certificates(tmp_path / "certificates"),
        data_dir=tmp_path / "data",
        log_file=tmp_path / "azurite.log",
    )
    try:
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode()
        environment = Path(f"/proc/{process.pid}/environ").read_bytes().decode()
    finally:
        process.stop()
    assert "node" in command
    assert key not in command
    assert key in environment


def test_a_folder_that_cannot_be_made_is_one_sentence_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalCloudError, match=r"cannot be installed in .*file/azurite.*virtual environment"):
        azurite.install(tmp_path / "file" / "azurite")


def test_a_missing_node_is_one_sentence_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert azurite.node_executable().exists()  # control
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LocalCloudError, match=r"Node is missing.*pip install 'hastegeo\[local\]'"):
        azurite.node_executable()


def test_an_unreachable_npm_registry_is_one_sentence_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    monkeypatch.setattr(azurite, "_FETCH_RETRIES", 0)
    with pytest.raises(LocalCloudError, match=r"npm could not install Azurite.*check the network"):
        azurite.install(tmp_path / "azurite")
    assert not (tmp_path / "azurite" / ".installed").exists()


def test_npm_itself_runs() -> None:
    # `npm ci` downloads a lot; that it can be run at all is what an install stands on.
    command = azurite._npm_command(azurite.node_executable())
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout[0].isdigit()
