"""Attacks on the node: files of other tasks, environments of other processes, services in reach."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hastegeo.workflows.isolation_probe import Outcome, Result, parse_plan, run_attack
from hastegeo.workflows.probe.findings import no_file_or_failed

MARKER = "the tenant's own secret line"
MARKER_SHA256 = hashlib.sha256(MARKER.encode()).hexdigest()


def probe(kind: str, **parameters: object) -> Result:
    entry = {"id": "a", "kind": kind, "expect": "denied", **parameters}
    (attack,) = parse_plan(json.dumps({"attacks": [entry]}))
    return run_attack(attack)


def free_port() -> int:
    with socket.socket() as probing:
        probing.bind(("127.0.0.1", 0))
        return int(probing.getsockname()[1])


# Files


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node root with this task's own directory, which holds the marker too, so that it must be left out."""
    root = tmp_path / "tasks"
    own = root / "workitems" / "job-a" / "job-1" / "own"
    (own / "wd").mkdir(parents=True)
    (own / "wd" / "mine.txt").write_text(f"{MARKER}\n")
    monkeypatch.setenv("AZ_BATCH_NODE_ROOT_DIR", str(root))
    monkeypatch.setenv("AZ_BATCH_TASK_DIR", str(own))
    return root


def leave_residue(node: Path, text: str = MARKER) -> Path:
    victim = node / "workitems" / "job-b" / "job-1" / "victim"
    (victim / "wd").mkdir(parents=True)
    file = victim / "wd" / "residue.txt"
    file.write_text(f"first line\n{text}\nlast line\n")
    return file


def test_residue_is_found_where_it_is_in_sight_and_denied_where_it_is_not(node: Path) -> None:
    confined = probe("file-read", marker_sha256=MARKER_SHA256)
    assert confined.outcome is Outcome.DENIED
    assert confined.evidence == "marker not found in 1 readable task directory, this task's own"
    leave_residue(node)
    found = probe("file-read", marker_sha256=MARKER_SHA256)
    assert found.outcome is Outcome.ALLOWED
    assert found.evidence == "read job-b/job-1/victim/wd/residue.txt of another task"
    assert MARKER not in found.evidence


def test_reading_others_without_finding_the_marker_is_neither_denial_nor_success(node: Path) -> None:
    leave_residue(node, "something else")
    assert probe("file-read", marker_sha256=MARKER_SHA256).outcome is Outcome.ERROR
    assert probe("file-read").outcome is Outcome.ALLOWED  # without a marker, any file of another task counts


def test_a_search_in_the_wrong_place_is_an_error(node: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "workitems").mkdir(parents=True)
    assert probe("file-read", root=str(tmp_path / "elsewhere")).outcome is Outcome.ERROR
    assert probe("file-read", root=str(node)).outcome is Outcome.DENIED


def test_a_node_root_that_is_not_mounted_is_a_denial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZ_BATCH_TASK_DIR", raising=False)
    monkeypatch.delenv("AZ_BATCH_NODE_ROOT_DIR", raising=False)
    result = probe("file-read", root=str(tmp_path / "nowhere"))
    assert result.outcome is Outcome.DENIED
    assert result.evidence == "ENOENT"


def test_links_pipes_and_big_directories_do_not_hold_the_probe_up(node: Path, tmp_path: Path) -> None:
    file = leave_residue(node, "something else")
    os.mkfifo(file.with_name("pipe"))
    secret = tmp_path / "outside.txt"
    secret.write_text(f"{MARKER}\n")
    file.with_name("link").symlink_to(secret)
    # What the link points to is not the victim's file.
    assert probe("file-read", marker_sha256=MARKER_SHA256).outcome is Outcome.ERROR


def test_one_file_is_read_by_its_path_below_the_node_root_or_absolute(node: Path) -> None:
    file = leave_residue(node)
    below = str(file.relative_to(node))
    assert probe("file-read", path=below, marker_sha256=MARKER_SHA256).outcome is Outcome.ALLOWED
    assert probe("file-read", path=str(file)).outcome is Outcome.ALLOWED
    assert probe("file-read", path=str(file), marker_sha256="0" * 64).outcome is Outcome.ERROR
    file.unlink()
    assert probe("file-read", path=below).evidence == "ENOENT"
    assert probe("file-read", path=str(file.parent)).outcome is Outcome.ERROR  # a directory


@pytest.mark.parametrize(
    ("number", "outcome"),
    [
        (errno.EACCES, Outcome.DENIED),
        (errno.EPERM, Outcome.DENIED),
        (errno.ENOENT, Outcome.DENIED),
        (errno.EIO, Outcome.ERROR),
        (errno.EMFILE, Outcome.ERROR),
        (errno.ELOOP, Outcome.ERROR),
    ],
)
def test_only_no_such_file_and_no_permission_are_denials(number: int, outcome: Outcome) -> None:
    finding = no_file_or_failed(OSError(number, "words"))
    assert (finding.outcome, finding.evidence) == (outcome, errno.errorcode[number])


# Environments


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"AZURITE_ACCOUNTS": f"one:first;two:{MARKER.replace(' ', '')}", "PATH": ""},
    )
    assert process.stdout
    assert process.stdin
    process.stdout.readline()
    yield process
    process.stdin.close()
    process.wait(timeout=10)
    process.stdout.close()


def test_a_key_in_another_process_s_environment_is_found_by_name_and_by_value(
    victim: subprocess.Popen[bytes],
) -> None:
    digest = hashlib.sha256(MARKER.replace(" ", "").encode()).hexdigest()
    for looked_for in ({"names": ["AZURITE_ACCOUNTS="]}, {"marker_sha256": [digest]}):
        result = probe("proc-environ", pids=[victim.pid], **looked_for)
        assert result.outcome is Outcome.ALLOWED
        assert result.evidence == f"process {victim.pid} shows AZURITE_ACCOUNTS"


def test_environments_without_it_are_a_denial_that_says_how_many(victim: subprocess.Popen[bytes]) -> None:
    result = probe("proc-environ", pids=[victim.pid], names=["BATCH_EMULATOR_ACCOUNT_KEY"])
    assert result.outcome is Outcome.DENIED
    assert result.evidence == "1 environment read, none holds what was looked for"
    gone = probe("proc-environ", pids=[2**22 + 1, victim.pid], names=["NOTHING"])
    assert gone.evidence == "1 environment read, 1 refused, none holds what was looked for"


def test_the_plan_in_one_s_own_environment_is_not_mistaken_for_a_find() -> None:
    # The plan names the variable and holds the hash, and itself stands in the attacker's environment.
    attack = {
        "id": "env",
        "kind": "proc-environ",
        "expect": "denied",
        "names": ["AZURITE_ACCOUNTS="],
        "marker_sha256": [MARKER_SHA256],
    }
    script = (
        "import json, os, sys\n"
        "from hastegeo.workflows.isolation_probe import parse_plan, run_attack\n"
        "entry = json.loads(os.environ['HASTE_PROBE_PLAN'])['attacks'][0] | {'pids': [os.getpid()]}\n"
        "print(run_attack(parse_plan(json.dumps({'attacks': [entry]}))[0]).outcome.value)\n"
    )
    environment = {"HASTE_PROBE_PLAN": json.dumps({"attacks": [attack]}), "PATH": ""}
    for extra, outcome in (({}, "denied"), ({"AZURITE_ACCOUNTS": "a:b"}, "allowed")):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment | extra,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == outcome


# Services


class Service(BaseHTTPRequestHandler):
    """Answers by path; asks for the header where a token is asked for."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/msi/token":
            self.token("X-IDENTITY-HEADER", "the-header", query)
        elif path == "/metadata/identity/oauth2/token":
            self.token("Metadata", "true", query)
        elif path == "/no-identity":
            self.reply(400, {"error": "invalid_request", "error_description": "Identity not found"})
        elif path == "/pools":
            bearer = self.headers.get("Authorization", "")
            self.reply(200 if bearer == "Bearer the-token" else 401, {"value": []})
        elif path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/pools")
            self.end_headers()
        else:
            self.reply(503, {"code": "ServerBusy"})

    def token(self, header: str, value: str, query: str) -> None:
        if self.headers.get(header) != value:
            self.reply(403, {"statusCode": 403})
        elif "resource=https%3A%2F%2F" not in query or "api-version=" not in query:
            self.reply(400, {})
        else:
            self.reply(200, {"access_token": "the-token"})

    def reply(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_port_is_reached_or_refused(service: str) -> None:
    port = int(service.rpartition(":")[2])
    assert probe("tcp-reach", host="127.0.0.1", port=port).outcome is Outcome.ALLOWED
    refused = probe("tcp-reach", host="127.0.0.1", port=free_port())
    assert (refused.outcome, refused.evidence) == (Outcome.DENIED, "ECONNREFUSED")


def test_a_name_that_does_not_resolve_is_an_error() -> None:
    for result in (
        probe("tcp-reach", host="no-such-host.invalid", port=80),
        probe("http-reach", url="http://no-such-host.invalid/"),
    ):
        assert (result.outcome, result.evidence) == (Outcome.ERROR, "the name does not resolve")


def test_a_token_is_had_with_the_secret_header_and_refused_without(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IDENTITY_HEADER", raising=False)
    refused = probe("http-reach", service="token", url=f"{service}/msi/token")
    assert (refused.outcome, refused.evidence) == (Outcome.DENIED, "HTTP 403")
    reached = probe("http-reach", service="token", url=f"{service}/msi/token", goal="connect")
    assert reached.outcome is Outcome.ALLOWED
    monkeypatch.setenv("IDENTITY_HEADER", "the-header")
    had = probe("http-reach", service="token", url=f"{service}/msi/token")
    assert (had.outcome, had.evidence) == (Outcome.ALLOWED, "HTTP 200 with a token")


def test_the_batch_api_is_used_with_a_token_and_refused_without(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_BATCH_URL", service)
    monkeypatch.delenv("IDENTITY_ENDPOINT", raising=False)
    refused = probe("http-reach", service="batch", url_env="AZURE_BATCH_URL")
    assert (refused.outcome, refused.evidence) == (Outcome.DENIED, "HTTP 401")
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{service}/msi/token")
    monkeypatch.setenv("IDENTITY_HEADER", "the-header")
    assert probe("http-reach", service="batch", url_env="AZURE_BATCH_URL").outcome is Outcome.ALLOWED


def test_a_service_out_of_reach_is_a_denial_and_a_broken_one_is_not(service: str) -> None:
    away = probe("http-reach", url=f"http://127.0.0.1:{free_port()}/")
    assert (away.outcome, away.evidence) == (Outcome.DENIED, "ECONNREFUSED")
    assert probe("http-reach", url=f"{service}/busy").outcome is Outcome.ERROR
    assert probe("http-reach", url=f"{service}/moved").outcome is Outcome.ERROR
    assert probe("http-reach", url=f"{service}/msi/token").outcome is Outcome.DENIED


def test_a_service_that_does_not_answer_in_time_is_a_denial() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        result = probe("http-reach", url=url, timeout=0.2)
    assert (result.outcome, result.evidence) == (Outcome.DENIED, "timeout")


def test_the_node_s_identity_is_had_where_the_endpoint_answers(service: str) -> None:
    url = f"{service}/metadata/identity/oauth2/token"
    assert probe("identity-metadata", url=url).evidence == "HTTP 200 with a token"
    none = probe("identity-metadata", url=f"{service}/no-identity")
    assert (none.outcome, none.evidence) == (
        Outcome.DENIED,
        "HTTP 400 invalid_request: the node has no identity",
    )
    away = probe("identity-metadata", url=f"http://127.0.0.1:{free_port()}/")
    assert away.outcome is Outcome.DENIED


def test_a_configured_proxy_is_not_used(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("no_proxy", "")
    assert probe("http-reach", url=f"{service}/busy").evidence == "HTTP 503 ServerBusy"
