# SPDX-License-Identifier: Apache-2.0
"""Records for KREX_REPORT, written to a descriptor that the client opened and sent.

So the path means what it means to the client, in its mount namespace and with its rights. Another
user's descriptor may still be anything: a file that never takes a write, or one whose kernel code
looks at the writer's rights. A process of that user's writes it, the scribe, and never we.
"""

import contextlib
import os
import signal
import socket
import stat

import msgspec

from krex.controller.peer import receive
from krex.record import RegionRecord


class Report:
    """Where the records of one process go. Owns the descriptor."""

    def __init__(self, fd: int, scribe: "Scribe | None") -> None:
        self._fd, self._scribe = fd, scribe

    def write(self, record: RegionRecord) -> None:
        """Append one line, in one write, so that several writers do not mix.

        What can't be written is lost: the controller waits for nobody.
        """
        line = msgspec.json.encode(record) + b"\n"
        with contextlib.suppress(OSError):
            if self._scribe:
                self._scribe.write(self._fd, line)
            else:
                os.write(self._fd, line)

    def __del__(self) -> None:
        """The last mark that had a record for it is gone."""
        os.close(self._fd)


def accept(fd: int, scribe: "Scribe | None") -> Report | None:
    """A report of this descriptor, which is ours from now on; None if it is no file or pipe."""
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or stat.S_ISCHR(kind):
        return Report(fd, scribe)
    os.close(fd)
    return None


class Scribe:
    """A process of one user's that writes what it is sent, to the descriptor sent with it.

    It ends with us, by the end of its socket. One that hangs or was killed loses records; a killed
    one is replaced at the next.
    """

    def __init__(self, uid: int, gid: int) -> None:
        self._uid, self._gid = uid, gid
        self._socket: socket.socket | None = None
        self._pid = 0

    def write(self, fd: int, line: bytes) -> None:
        """Pass it on. Raises OSError."""
        try:
            self._send(fd, line)
        except BrokenPipeError:
            self.close()
            self._send(fd, line)

    def _send(self, fd: int, line: bytes) -> None:
        socket.send_fds(self._running(), [line], [fd])

    def close(self) -> None:
        """Let it end."""
        if self._socket:
            self._socket.close()
            self._socket = None
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, os.WNOHANG)

    def _running(self) -> socket.socket:
        if self._socket is None:
            ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._pid = os.fork()
            if self._pid == 0:
                _become(its.fileno(), self._uid, self._gid)
            its.close()
            ours.setblocking(False)  # one that takes nothing loses it
            self._socket = ours
        return self._socket


def _become(fd: int, uid: int, gid: int) -> None:
    """In the new process: let go of all that is the controller's, then write until the end."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        # The lock and the other clients' sockets too. From the highest: fd itself may be any.
        os.dup2(fd, 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        os.chdir("/")
        _write_all(socket.socket(fileno=3))
    finally:
        os._exit(0)


def _write_all(source: socket.socket) -> None:
    while True:
        line, fds = receive(source)
        if not line:
            return
        for fd in fds:
            with contextlib.suppress(OSError):
                os.write(fd, line)
            os.close(fd)
