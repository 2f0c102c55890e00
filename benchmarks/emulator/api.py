"""Requests a second that the emulator answers, and what a page of a long listing costs.

    python benchmarks/emulator/api.py [--seconds 5] [--tasks 100000]

The emulator runs as a process of its own (in memory, process driver), and one client sends signed requests
over one kept-alive connection. Figures depend on the machine; the ratio of the last pages' cost to the first
ones' does not.
"""

from __future__ import annotations

import argparse
import base64
import hmac
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlsplit

ACCOUNT = "bench"
KEY = base64.b64encode(b"k" * 64).decode()
VERSION = "api-version=2025-06-01"
TYPE = "application/json; odata=minimalmetadata"


class Client:
    """One kept-alive connection with SharedKey."""

    def __init__(self, endpoint: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(endpoint).netloc)
        self._key = base64.b64decode(KEY)

    def call(self, method: str, path: str, body: object = None, query: str = "") -> dict[str, object]:
        content = json.dumps(body).encode() if body is not None else b""
        date = formatdate(usegmt=True)
        length = str(len(content)) if content else ("" if method == "GET" else "0")
        kind = TYPE if content else ""
        lines = [method, "", "", length, "", kind, "", "", "", "", "", ""]
        pairs = sorted([VERSION, *(query.split("&") if query else [])])
        text = "\n".join(lines) + f"\nocp-date:{date}\n/{ACCOUNT}{path}"
        text += "".join("\n" + pair.replace("=", ":", 1) for pair in pairs)
        signature = base64.b64encode(hmac.digest(self._key, text.encode(), "sha256")).decode()
        headers = {"ocp-date": date, "Authorization": f"SharedKey {ACCOUNT}:{signature}"}
        if content:
            headers["Content-Type"] = kind
        self._connection.request(method, f"{path}?{'&'.join(pairs)}", content or None, headers)
        answer = self._connection.getresponse()
        received = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {received[:300]!r}")
        return json.loads(received) if received else {}


def rate(seconds: float, call: Callable[[int], object]) -> float:
    began = time.perf_counter()
    count = 0
    while time.perf_counter() - began < seconds:
        call(count)
        count += 1
    return count / (time.perf_counter() - began)


def task(name: str) -> dict[str, str]:
    return {"id": name, "commandLine": "/bin/true"}


def measure(endpoint: str, seconds: float, tasks: int, pid: int) -> None:
    client = Client(endpoint)
    image = {"publisher": "a", "offer": "b", "sku": "c"}
    client.call(
        "POST",
        "/pools",
        {
            "id": "pool",
            "vmSize": "Standard_D2s_v3",
            "virtualMachineConfiguration": {
                "imageReference": image,
                "nodeAgentSKUId": "batch.node.ubuntu 24.04",
            },
        },
    )
    for job in ("one", "many"):
        client.call("POST", "/jobs", {"id": job, "poolInfo": {"poolId": "pool"}})
    print(
        f"GET of a pool           {rate(seconds, lambda _: client.call('GET', '/pools/pool')):8.0f} a second"
    )
    adds = rate(seconds, lambda n: client.call("POST", "/jobs/one/tasks", task(f"t{n}")))
    print(f"adding one task a call  {adds:8.0f} a second")
    began = time.perf_counter()
    for start in range(0, tasks, 100):
        group = {"value": [task(f"t{number}") for number in range(start, min(start + 100, tasks))]}
        client.call("POST", "/jobs/many/addtaskcollection", group)
    print(
        f"adding 100 tasks a call {tasks / (time.perf_counter() - began):8.0f} tasks a second ({tasks} tasks)"
    )
    costs = page_costs(client)
    tenth = max(1, len(costs) // 10)
    ratio = sum(costs[-tenth:]) / sum(costs[:tenth])
    print(
        f"listing                 {1000 / (sum(costs) / len(costs)):8.0f} tasks a second, {len(costs)} pages"
    )
    print(f"last tenth of the pages / first tenth: {ratio:.2f}")
    resident = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmRSS" in line)
    print(f"memory of the emulator  {int(resident.split()[1]) / 1024:8.0f} MiB")


def page_costs(client: Client) -> list[float]:
    costs: list[float] = []
    query = "maxresults=1000"
    while True:
        began = time.perf_counter()
        page = client.call("GET", "/jobs/many/tasks", query=query)
        costs.append(time.perf_counter() - began)
        link = page.get("odata.nextLink")
        if not isinstance(link, str):
            return costs
        token = next(p for p in urlsplit(link).query.split("&") if "skiptoken" in p)
        query = f"maxresults=1000&$skiptoken={token.partition('=')[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--tasks", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        command = [sys.executable, "-m", "batch_emulator", "start", "--account", ACCOUNT]
        command += ["--driver", "process", "--ready-file", str(ready)]
        environment = {**os.environ, "BATCH_EMULATOR_ACCOUNT_KEY": KEY}
        server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        try:
            while not ready.exists():
                if server.poll() is not None:
                    raise SystemExit("the emulator did not start")
                time.sleep(0.05)
            measure(json.loads(ready.read_text())["endpoint"], options.seconds, options.tasks, server.pid)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
