"""The network of a sandbox: all of this machine's, or the allowed endpoints and nothing else."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from batch_emulator.nodes import create_agent
from batch_emulator.nodes.endpoints import Endpoint, parse_endpoints

from .support import MakeNode, Node, is_root

FETCH = """
import json, sys, urllib.request
answers = []
for url in {urls!r}:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            answers.append(answer.read().decode())
    except OSError as error:
        answers.append("denied: " + str(error))
print(json.dumps(answers))
"""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = f"served {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        digest = hashlib.sha256()
        left = int(self.headers["Content-Length"])
        while left:
            data = self.rfile.read(min(left, 1 << 20))
            digest.update(data)
            left -= len(data)
        body = digest.hexdigest().encode() * 100_000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def serving(host: str = "127.0.0.1", port: int = 0, family: int = socket.AF_INET) -> Iterator[int]:
    """An HTTP server in threads; yields its port."""

    class Server(http.server.ThreadingHTTPServer):
        address_family = socket.AddressFamily(family)
        request_queue_size = 128

    with Server((host, port), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def fetch(node: Node, *urls: str) -> list[str]:
    result = node.python(FETCH.format(urls=list(urls)))
    assert result.outcome.exit_code == 0, result.stderr
    answers: list[str] = json.loads(result.stdout)
    return answers


def test_exactly_the_allowed_endpoints_answer(make_node: MakeNode, sandbox: str) -> None:
    with serving() as allowed, serving() as other:
        urls = (f"http://127.0.0.1:{allowed}/a", f"http://127.0.0.1:{other}/b")
        answers = fetch(make_node(sandbox, egress=[f"127.0.0.1:{allowed}"]), *urls)
        assert answers[0] == "served /a"
        assert answers[1].startswith("denied: ")
        # The controls: with both allowed, and with this machine's network, both answer.
        both = [f"127.0.0.1:{allowed}", f"127.0.0.1:{other}"]
        assert fetch(make_node(sandbox, egress=both), *urls) == ["served /a", "served /b"]
        assert fetch(make_node(sandbox, egress=None), *urls) == ["served /a", "served /b"]
        assert fetch(make_node(sandbox, egress=[]), urls[0])[0].startswith("denied: ")


def test_other_addresses_of_this_machine_do_not_answer(make_node: MakeNode, sandbox: str) -> None:
    with serving("0.0.0.0") as port:
        # 127.0.0.2 is this machine too, and the server listens there.
        urls = [f"http://{host}:{port}/" for host in ("127.0.0.2", *_own_addresses())]
        assert all(a == "served /" for a in fetch(make_node(sandbox, egress=None), *urls))
        confined = make_node(sandbox, egress=[f"127.0.0.1:{port}"])
        assert all(a.startswith("denied: ") for a in fetch(confined, *urls))
        assert fetch(confined, f"http://127.0.0.1:{port}/") == ["served /"]


def _own_addresses() -> list[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("203.0.113.1", 9))  # sends nothing; only finds the interface
        except OSError:
            return []
        return [probe.getsockname()[0]]


def test_there_is_no_way_to_the_metadata_endpoint_or_out(make_node: MakeNode, sandbox: str) -> None:
    node = make_node(sandbox, egress=[])
    answers = fetch(node, "http://169.254.169.254/metadata/instance", "http://203.0.113.1/")
    assert all("Network is unreachable" in answer for answer in answers)
    routes = node.shell("tail -n +2 /proc/net/route; tail -n +3 /proc/net/dev").stdout.split("\n")
    assert [line.split(":")[0].strip() for line in routes if line] == ["lo"]


def test_ipv6_loopback_endpoints(make_node: MakeNode, sandbox: str) -> None:
    try:
        with serving("::1", family=socket.AF_INET6) as port:
            node = make_node(sandbox, egress=[f"[::1]:{port}"])
            assert fetch(node, f"http://[::1]:{port}/six") == ["served /six"]
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")


def test_ports_below_1024(make_node: MakeNode, sandbox: str) -> None:
    # Tests run side by side, and each process needs a port to itself.
    port = 600 + os.getpid() % 400
    if sandbox == "bubblewrap" and not is_root():
        with pytest.raises(ValueError, match="cannot offer ports below 1024"):
            create_agent(sandbox, egress=[f"127.0.0.1:{port}"])
        return
    node = make_node(sandbox, egress=[f"127.0.0.1:{port}"])
    # Even an ordinary user's sandbox can offer the port; nothing serves it yet.
    assert fetch(node, f"http://127.0.0.1:{port}/")[0].startswith("denied: ")
    try:
        with serving(port=port):
            assert fetch(node, f"http://127.0.0.1:{port}/low") == ["served /low"]
    except PermissionError:
        pytest.skip("this user cannot serve on a port below 1024")


def test_much_data_in_both_directions_and_many_connections(make_node: MakeNode, sandbox: str) -> None:
    script = """
import concurrent.futures, hashlib, os, urllib.request
def put(i):
    body = os.urandom(1 << 20) * (1 + i % 3)
    request = urllib.request.Request("http://127.0.0.1:{port}/", data=body, method="PUT")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode() == hashlib.sha256(body).hexdigest() * 100_000
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(sum(pool.map(put, range(16))))
"""
    with serving() as port:
        node = make_node(sandbox, egress=[f"127.0.0.1:{port}"])
        result = node.python(script.format(port=port))
    assert result.stdout == "16\n", result.stderr


def test_the_end_of_one_direction_is_passed_on(make_node: MakeNode, sandbox: str) -> None:
    """A client that ends its half and then reads must get its answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as reader:
                connection.sendall(reader.read()[::-1])

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        script = f"""
import socket
with socket.create_connection(("127.0.0.1", {port}), timeout=10) as connection:
    connection.sendall(b"abc")
    connection.shutdown(socket.SHUT_WR)
    print(connection.makefile("rb").read())
"""
        result = make_node(sandbox, egress=[f"127.0.0.1:{port}"]).python(script)
        thread.join()
    assert result.stdout == "b'cba'\n", result.stderr


def test_an_allowed_endpoint_that_is_down_closes_the_connection(make_node: MakeNode, sandbox: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    node = make_node(sandbox, egress=[f"127.0.0.1:{port}"])
    assert fetch(node, f"http://127.0.0.1:{port}/")[0].startswith("denied: ")
    # The same node reaches it once it is up.
    with serving(port=port):
        assert fetch(node, f"http://127.0.0.1:{port}/up") == ["served /up"]


def test_the_task_may_use_its_own_loopback(make_node: MakeNode, sandbox: str) -> None:
    script = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    with socket.create_connection(server.getsockname()) as connection:
        print("connected")
"""
    assert make_node(sandbox, egress=[]).python(script).stdout == "connected\n"


@pytest.mark.parametrize(
    "text",
    ["example.org:443", "10.0.0.1:80", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000", ":80", "[::1]", "a:b"],
)
def test_what_is_not_a_loopback_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="egress endpoint"):
        create_agent("process", egress=[text])


def test_endpoints_are_read_once_each() -> None:
    parsed = parse_endpoints(["127.0.0.1:81", "[::1]:80", "127.0.0.1:81"])
    assert parsed == (Endpoint("127.0.0.1", 81), Endpoint("::1", 80))
