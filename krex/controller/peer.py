# SPDX-License-Identifier: Apache-2.0
"""Who is at the other end of a connection: told by the kernel, in this process's own numbers.

A client may live in other pid, mount and cgroup namespaces, where it has another pid and sees other
paths. So nothing that it says of itself is used here, except to be compared.
"""

import errno
import os
import select
import socket
import struct

from krex.controller.mark import parent_of

# Linux's number on x86-64 and aarch64; Python's socket module does not name it.
_SO_PEERPIDFD = 77
# Kept: to make room for a packet anew takes ten times as long as to receive it.
_room = memoryview(bytearray(1 << 18))


def receive(sock: socket.socket) -> tuple[bytes, list[int]]:
    """One packet, and the descriptor that came with it. Raises OSError.

    Not socket.recv_fds, which leaves out the flags: nobody shall inherit the descriptor.
    """
    control = socket.CMSG_SPACE(4)
    size, ancillary, _, _ = sock.recvmsg_into([_room], control, socket.MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds += [fd for (fd,) in struct.iter_unpack("=i", data[: len(data) // 4 * 4])]
    return bytes(_room[:size]), fds


class Peer:
    """The process that connected. `pid` is 0 if it can't be seen from our pid namespace."""

    def __init__(self, sock: socket.socket) -> None:
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self._socket = sock
        self.pid, self.uid, self.gid = struct.unpack("iII", raw)

    def open_pidfd(self) -> int:
        """Readable once the process has ended. Raises OSError: it has, or can't be seen."""
        try:
            raw = self._socket.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, 4)
        except OSError as error:
            if error.errno != errno.ENOPROTOOPT:
                raise
            return os.pidfd_open(self.pid)  # before Linux 6.5; its pid may be another's by now
        return int(struct.unpack("i", raw)[0])

    def obstacle(self) -> str | None:
        """Why it can't take part in what it can't be seen in, or keep time by our clock."""
        if self.pid == 0:
            return (
                "the controller runs in a pid namespace from which it cannot see this process; "
                "run `krex serve --system` on the host"
            )
        if not self._shares("time"):
            # The lease on the board is a time of CLOCK_MONOTONIC, which has an offset there.
            return "it has a time namespace of its own; leave out `unshare --time`"
        return None

    def child(self, told: object, fds: list[int]) -> int:
        """Our number of a child of the peer's, of which it sent its own number and maybe a pidfd.

        0: it has ended. Raises LookupError: it can't be seen from here, or is no child of the
        peer's, so that nobody has somebody else's process taken for their own.
        """
        pid = _pid_of(fds[0]) if fds else told
        if pid == -1:
            return 0
        if isinstance(pid, int) and pid > 1 and parent_of(pid) == self.pid:
            return pid
        if fds and _pid_of(fds[0]) == -1:  # it ended while we looked
            return 0
        raise LookupError("its first process cannot be seen from where the controller runs")

    def _shares(self, namespace: str) -> bool:
        try:
            theirs = os.stat(f"/proc/{self.pid}/ns/{namespace}").st_ino
            return theirs == os.stat(f"/proc/self/ns/{namespace}").st_ino
        except OSError:  # no such namespaces, or a process that may not be looked at
            return True


def has_ended(pidfd: int) -> bool:
    """Whether the process behind this pidfd has ended, reaped or not."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def _pid_of(pidfd: int) -> int:
    """In our pid namespace; 0 if it isn't a pidfd or not seen from there, -1 once it is reaped."""
    try:
        with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as lines:
            return next((int(line[4:]) for line in lines if line.startswith("Pid:")), 0)
    except OSError:
        return 0
