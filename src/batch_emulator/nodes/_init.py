"""PID 1 of a sandbox: starts the task's program, forwards its allowed connections, reaps, reports.

Run as `python -I -S _init.py CONTROL_FD` with the launch (JSON) on standard input. It is one self-contained
file because the sandbox's interpreter runs it without site packages. Its own environment and command line
hold nothing of the task, and it cannot be traced by it.

`CONTROL_FD` is one end of a SOCK_SEQPACKET pair, the other end is the node agent. It is also the sandbox's
lifeline: when the agent closes it or dies, this process exits, and the kernel kills everything in its PID
namespace.

    to the agent    {"started": true} | {"failed": {"step", "errno", "message"}} | {"exit": code}
                    {"connect": id, "endpoint": index}
    from the agent  {"connected": id} with one connected socket attached | {"refused": id}

A connection to an allowed endpoint is opened by the agent, outside of the sandbox, and its descriptor is
handed in: a socket stays in the network namespace where it was made. The program's side only ever talks to
a listener here.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import selectors
import signal
import socket
import sys
import threading
from typing import Any, NoReturn

_CLONE_NEWUSER = 0x1000_0000
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x2008_0522
_COPY_BYTES = 256 * 1024
_MAX_DESCRIPTOR = 1 << 20

_libc = ctypes.CDLL(None, use_errno=True)


class StepError(Exception):
    """A named step of starting the program failed; `code` is its errno, or 0."""

    def __init__(self, step: str, error: OSError) -> None:
        super().__init__(str(error))
        self.step = step
        self.code = error.errno or 0


def main() -> int:
    """Run one launch and return the program's exit code (128 + n when signal n ended it)."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    with os.fdopen(0, encoding="utf-8", closefd=False) as source:
        launch = json.load(source)
    _replace_standard_input()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    wakeup_read, wakeup_write = socket.socketpair()
    wakeup_read.setblocking(False)
    wakeup_write.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wakeup_write.fileno(), warn_on_full_buffer=False)
    try:
        listeners = [_listen(host, port) for host, port in launch["listen"]]
        _hide(launch["identity"])
        program = _start(launch)
        _drop_own_privileges(launch["identity"])
    except StepError as error:
        _send(control, {"failed": {"step": error.step, "errno": error.code, "message": str(error)}})
        return 125
    _send(control, {"started": True})
    code = _Supervisor(control, listeners, wakeup_read, program).run()
    _send(control, {"exit": code})
    return code


def _replace_standard_input() -> None:
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
        listener.setblocking(False)
    except OSError as error:
        raise StepError("listen", error) from error
    return listener


def _start(launch: dict[str, Any]) -> int:
    """Fork the program and return its process id once its `exec` succeeded."""
    report_read, report_write = os.pipe()
    unshared_read, unshared_write = os.pipe()
    mapped_read, mapped_write = os.pipe()
    program = os.fork()
    if program == 0:
        _become_program(launch, report_write, unshared_write, mapped_read)
    for descriptor in {report_write, unshared_write, mapped_read, *launch["stdio"]}:
        os.close(descriptor)
    if launch["identity"] is not None and os.read(unshared_read, 1):
        _map_identity(program, launch["identity"])
        os.write(mapped_write, b"m")
    os.close(mapped_write)
    os.close(unshared_read)
    with os.fdopen(report_read, "rb") as reader:
        report = reader.read()
    if report:
        os.waitpid(program, 0)
        step, code, message = json.loads(report)
        raise StepError(step, OSError(code, message))
    return program


def _become_program(launch: dict[str, Any], report: int, unshared: int, mapped: int) -> NoReturn:
    """Turn the forked child into the program: own user namespace, no capabilities, its files, `exec`."""
    step = "identity"
    try:
        os.setsid()
        if launch["identity"] is not None:
            os.setgroups([])
            _check(_libc.unshare(_CLONE_NEWUSER), "unshare")
            os.write(unshared, b"u")
            os.read(mapped, 1)
            inner = launch["identity"]["inner"]
            os.setresgid(inner, inner, inner)
            os.setresuid(inner, inner, inner)
        step = "capabilities"
        drop_capabilities()
        step = "stdio"
        for number, descriptor in enumerate(launch["stdio"], start=1):
            os.dup2(descriptor, number)
        os.closerange(3, report)
        os.closerange(report + 1, _MAX_DESCRIPTOR)
        step = "directory"
        os.chdir(launch["cwd"])
        os.umask(0o022)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        step = "exec"
        os.execvpe(launch["argv"][0], launch["argv"], launch["environment"])  # noqa: S606 - no shell: as Batch
    except OSError as error:
        os.write(report, json.dumps([step, error.errno or 0, error.strerror or str(error)]).encode())
    except BaseException as error:  # noqa: BLE001 - a forked child must never return into the parent's code
        os.write(report, json.dumps([step, 0, repr(error)]).encode())
    os._exit(127)


def _map_identity(program: int, identity: dict[str, int]) -> None:
    line = f"{identity['inner']} {identity['outer']} 1\n"
    try:
        for name in ("uid_map", "gid_map"):
            with os.fdopen(os.open(f"/proc/{program}/{name}", os.O_WRONLY), "w") as target:
                target.write(line)
    except OSError as error:
        os.kill(program, signal.SIGKILL)
        raise StepError("identity", error) from error


def _hide(identity: dict[str, int] | None) -> None:
    """Keep the program from looking in here, before there is a program.

    Without a change of user the program is the same user as this process, and could read and trace it from
    its first moment on. With one, this process is another user until it drops its own privileges, and that
    change hides it again (where the system's fs.suid_dumpable is not 1). The program itself is not hidden:
    `exec` ends that.
    """
    if identity is not None:
        return
    try:
        _prctl(_PR_SET_DUMPABLE, 0)
    except OSError as error:
        raise StepError("privileges", error) from error


def _drop_own_privileges(identity: dict[str, int] | None) -> None:
    """Keep nothing that forwarding bytes does not need; the program must not be able to look in here."""
    try:
        if identity is not None:
            os.setgroups([])
            os.setresgid(identity["outer"], identity["outer"], identity["outer"])
            os.setresuid(identity["outer"], identity["outer"], identity["outer"])
        drop_capabilities()
        _prctl(_PR_SET_DUMPABLE, 0)
        # A change of user clears the signal that the driver asked for.
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except OSError as error:
        raise StepError("privileges", error) from error


def drop_capabilities() -> None:
    """Give up every capability for good, and check it: a sandbox with capabilities left must not start."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(64):
        # Ends at the last one the kernel knows, or where the set cannot be changed (then it gives nothing:
        # no_new_privs is set and the permitted set below is empty).
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) != 0:
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    with os.fdopen(os.open("/proc/self/status", os.O_RDONLY), errors="replace") as status:
        held = [line for line in status if line.startswith(("CapInh", "CapPrm", "CapEff", "CapAmb"))]
    if len(held) != 4 or any(int(line.split()[1], 16) for line in held):
        raise OSError(errno.EPERM, "capabilities could not be dropped")


def _prctl(option: int, value: int) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")


def _check(result: int, call: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{call}: {os.strerror(code)}")


def _send(control: socket.socket, message: dict[str, Any]) -> None:
    try:
        control.send(json.dumps(message).encode())
    except OSError:
        # The agent is gone: so is the reason to run.
        os._exit(1)


class _Supervisor:
    """Waits for the program and, meanwhile, reaps orphans and forwards connections."""

    def __init__(
        self, control: socket.socket, listeners: list[socket.socket], wakeup: socket.socket, program: int
    ) -> None:
        self._control = control
        self._listeners = listeners
        self._wakeup = wakeup
        self._program = program
        self._waiting: dict[int, socket.socket] = {}
        self._next_id = 0

    def run(self) -> int:
        """Return the program's exit code."""
        selector = selectors.DefaultSelector()
        selector.register(self._control, selectors.EVENT_READ)
        selector.register(self._wakeup, selectors.EVENT_READ)
        for listener in self._listeners:
            selector.register(listener, selectors.EVENT_READ)
        while True:
            # Reaping comes first: the program may have ended before the signal's wakeup was in place.
            code = self._reap()
            if code is not None:
                return code
            for key, _ in selector.select():
                if key.fileobj is self._control:
                    self._hear()
                elif key.fileobj is self._wakeup:
                    self._wakeup.recv(4096)
                else:
                    self._accept(self._listeners.index(key.fileobj))  # type: ignore[arg-type] # only sockets

    def _reap(self) -> int | None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if process == 0:
                return None
            if process == self._program:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code

    def _accept(self, endpoint: int) -> None:
        try:
            connection, _ = self._listeners[endpoint].accept()
        except OSError:
            return
        connection.setblocking(True)
        self._next_id += 1
        self._waiting[self._next_id] = connection
        _send(self._control, {"connect": self._next_id, "endpoint": endpoint})

    def _hear(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
        if not data:
            os._exit(1)
        message = json.loads(data)
        if "refused" in message:
            self._waiting.pop(message["refused"]).close()
            return
        inside = self._waiting.pop(message["connected"])
        outside = socket.socket(fileno=descriptors[0])
        outside.setblocking(True)
        for source, target in ((inside, outside), (outside, inside)):
            threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Forward one direction until its end, and pass the end on; the other direction may still be in use."""
    try:
        while data := source.recv(_COPY_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


if __name__ == "__main__":
    os._exit(main())
