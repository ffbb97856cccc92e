# SPDX-License-Identifier: Apache-2.0
"""Who feeds whom: the pipes and socket pairs between the standard streams of processes.

Two processes are joined if one can write what the other reads. Both at the same end, as commands
beside each other whose output somebody collects, don't wait for each other; neither do those on one
terminal, /dev/null or log file. Only descriptors 0 to 2 are looked at: that's what shells connect.
"""

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

End = tuple[int, int]  # device and inode: both ends of a pipe have the same

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_UDIAG_SHOW_PEER = 4
_UNIX_DIAG_PEER = 2
_ANY = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBHIIIII")
_ANSWER_BYTES = _HEADER.size + 16  # before the attributes


class Ends(NamedTuple):
    """What the standard streams of some processes are connected to."""

    reads: frozenset[End] = frozenset()
    writes: frozenset[End] = frozenset()

    def joined(self, other: "Ends") -> bool:
        """Whether one side can wait for the other to read or to write."""
        apart = self.reads.isdisjoint(other.writes) and self.writes.isdisjoint(other.reads)
        return not apart

    def union(self, other: "Ends") -> "Ends":
        """Those of both."""
        return Ends(self.reads | other.reads, self.writes | other.writes)


def of(pids: Iterable[int]) -> Ends:
    """Look at the standard streams of processes; those that may not be looked at have none."""
    reads: set[End] = set()
    writes: set[End] = set()
    for pid in pids:
        for fd in range(3):
            with contextlib.suppress(OSError, ValueError):  # closed, gone, or another user's
                _note(pid, fd, reads, writes)
    return Ends(frozenset(reads), frozenset(writes))


def _note(pid: int, fd: int, reads: set[End], writes: set[End]) -> None:
    found = os.stat(f"/proc/{pid}/fd/{fd}")
    end = (found.st_dev, found.st_ino)
    if stat.S_ISFIFO(found.st_mode):
        mode = _flags(pid, fd) & os.O_ACCMODE
        if mode != os.O_WRONLY:
            reads.add(end)
        if mode != os.O_RDONLY:
            writes.add(end)
    elif stat.S_ISSOCK(found.st_mode) and (peer := _peer(found.st_ino)):
        # Each end of a socket pair has an inode; what one writes is what the other reads.
        writes.add(end)
        reads.add((found.st_dev, peer))


def _flags(pid: int, fd: int) -> int:
    for line in Path(f"/proc/{pid}/fdinfo/{fd}").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "flags":
            return int(value, 8)
    raise ValueError(fd)


def _peer(inode: int) -> int:
    """The inode at the other end of a unix socket of this network namespace; 0 if there is none.

    Raises OSError on a kernel that can't be asked.
    """
    request = _REQUEST.pack(socket.AF_UNIX, 0, 0, _ANY, inode, _UDIAG_SHOW_PEER, _ANY, _ANY)
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    with socket.socket(socket.AF_NETLINK, kind, _NETLINK_SOCK_DIAG) as diag:
        size = _HEADER.size + len(request)
        diag.send(_HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0) + request)
        answer = diag.recv(8192, socket.MSG_DONTWAIT)  # the kernel answers within the send
    if _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return 0  # an error: no such socket
    at = _ANSWER_BYTES
    while at + 8 <= len(answer):
        length, attribute, value = struct.unpack_from("=HHI", answer, at)
        if attribute == _UNIX_DIAG_PEER:
            return int(value)
        at += max(length + 3 & ~3, 4)
    return 0
