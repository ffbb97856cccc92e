# SPDX-License-Identifier: Apache-2.0
"""The command's way out of a freeze whose controller is gone or stuck.

`krex run` is never frozen itself, so it is the watchdog: it opens the freeze file while all is
well and thaws when the connection ends or the controller's lease on the board runs out.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class LeaseLike(Protocol):
        def remaining_ns(self) -> int: ...

        def reopen(self) -> None: ...


# How often to look for what carries a pin: at each check, until a fork that was under way at the
# controller's end has shown its child.
_LOOKS = 4


class Lease:
    """The controller's promise on the board that it is alive."""

    def __init__(self, library: str, board_fd: int) -> None:
        """Map the board; raises OSError if it cannot be mapped or the library cannot be loaded."""
        import ctypes

        try:
            shim = ctypes.CDLL(library)
            shim.krex_lease_open.restype = ctypes.c_void_p
            shim.krex_lease_open.argtypes = [ctypes.c_int]
            shim.krex_lease_remaining_ns.restype = ctypes.c_int64
            shim.krex_lease_remaining_ns.argtypes = [ctypes.c_void_p]
            shim.krex_lease_reopen.argtypes = [ctypes.c_int]
        except AttributeError as error:
            raise OSError(str(error)) from None
        self._remaining = shim.krex_lease_remaining_ns
        self._reopen = shim.krex_lease_reopen
        self._fd = board_fd
        self._board = shim.krex_lease_open(board_fd)
        if not self._board:
            raise OSError("the board cannot be mapped")

    def remaining_ns(self) -> int:
        """Nanoseconds until the lease runs out; negative if it has."""
        return int(self._remaining(self._board))

    def reopen(self) -> None:
        """Open the gates in place of a controller that is known to be dead."""
        self._reopen(self._fd)


class Guard:
    """Thaws one command's cgroup, and gets its threads off the reserved CPUs."""

    def __init__(self, cgroup: str | None, freeze_fd: int = -1) -> None:
        """Take the freeze file, or open it; without a cgroup, or the right to, there is no guard.

        The controller sends the file, because in a container, or to another user, its path is of no
        use. The file, and not the directory: from that, container's root could reach the host's.
        """
        self._fd = freeze_fd
        self._cgroup = cgroup
        self._lease: LeaseLike | None = None
        self._expired = False
        self.root_pid = 0  # the command's first process, once there is one
        self._cpus: set[int] = set()
        self._reserved: set[int] = set()
        self._looks_left = _LOOKS
        if cgroup is None or freeze_fd >= 0:
            return
        try:
            self._fd = os.open(os.path.join(cgroup, "cgroup.freeze"), os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            pass

    @property
    def armed(self) -> bool:
        """Whether this guard could thaw."""
        return self._fd >= 0

    def watch(self, lease: LeaseLike) -> None:
        """Look at this lease on every `check`."""
        self._lease = lease

    def know_cpus(self, cpus: set[int], reserved: set[int]) -> None:
        """The command runs on `cpus`, and its threads are pinned to `reserved` in its regions."""
        self._cpus, self._reserved = cpus, reserved

    def check(self) -> bool:
        """Thaw as long as the lease is run out; True when that begins.

        Again and again: a controller that stood still just before it froze us, and goes on, freezes
        us before it sees that its lease is gone, and may then stand still again.
        """
        if self._lease is None:
            return False
        was_expired = self._expired
        self._expired = self._lease.remaining_ns() < 0
        if not was_expired:
            self._looks_left = _LOOKS
        return self._expired and self.thaw() and not was_expired

    def reopen(self) -> None:
        """Open the gates for a dead controller: who waits there would wait for the lease's end."""
        if self._lease is not None:
            self._lease.reopen()

    def thaw(self) -> bool:
        """Thaw now, and end its pins; False if there was no way to thaw."""
        thawed = self._thaw()
        self._unpin()
        return thawed

    def _unpin(self) -> None:
        if self._reserved and self._looks_left > 0:
            from krex.launch.cores import give_back

            self._looks_left -= 1
            give_back(self._cgroup, self.root_pid, self._cpus, self._reserved)

    def _thaw(self) -> bool:
        if not self.armed:
            return False
        try:
            os.pwrite(self._fd, b"0", 0)
        except OSError:
            return False  # the cgroup is gone, and so is everything that was in it
        return True

    def remove(self) -> None:
        """Remove the cgroup, if it is empty: for when its owner, the controller, is gone."""
        if self._cgroup is not None:
            try:
                os.rmdir(self._cgroup)
            except OSError:
                pass  # processes are left in it: the next controller removes it after them
