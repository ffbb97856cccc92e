# SPDX-License-Identifier: Apache-2.0
"""The controller: its socket, who may connect, all of its state, and when it may go."""

import asyncio
import contextlib
import fcntl
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from krex.controller import reports
from krex.controller.command import Command
from krex.controller.connection import Connection
from krex.controller.cores import Allotment, without
from krex.controller.device import Device
from krex.controller.mark import descends
from krex.controller.peer import Peer
from krex.controller.request import Refusal
from krex.controller.residents import Adapter, Nobody
from krex.controller.tickets import Tickets
from krex.errors import ControllerError
from krex.native import lib
from krex.protect.freezer import Group, cgroup_of, find_base, outside
from krex.protect.journal import Journal
from krex.protect.priority import raise_priority

if TYPE_CHECKING:
    from krex.controller.division import Division
    from krex.sim.process import Simulator

BEAT_S = 0.25
LOCK_S = 1.0
NO_BARRIER = (
    "no membarrier for the controller: each submission pays for a fence of its own, and a region "
    "beside a process that relies on membarrier is not exclusive; `krex doctor` says how to mend it"
)


class Server:
    """All of the controller's state."""

    def __init__(
        self, path: Path, idle_exit_s: float | None, slots: int, *, system: bool = False
    ) -> None:
        self.system = system  # the machine's, for all users, or one user's
        self.loop = asyncio.get_running_loop()
        self.path, self.idle_exit_s, self.slots = path, idle_exit_s, slots
        self.devices: dict[str, Device] = {}
        self.commands: dict[str, Command] = {}
        self.connections: set[Connection] = set()
        self.registered: dict[int, Connection] = {}  # by pid; also some that hung up
        self.started = time.time()
        self.base = find_base()
        self.no_barrier = lib.krex_gate_fence() != 0
        self._scribes: dict[int, reports.Scribe] = {}  # by user
        self.journal = Journal(path)
        self._left = self.journal.recover()
        self._division: Division | None = None
        self.simulated: Simulator | None = None  # once a command asked for it
        self.tickets = Tickets(self._may_make_contexts)

    def device(self, key: str) -> Device:
        """The device of that key; its board is made at first use."""
        if key not in self.devices:
            self.devices[key] = Device(key, self.commands, self.slots, self.journal)
            self.devices[key].orphans = self._left.orphans_on(key)
            self.devices[key].when_acquired = self.tickets.look
            self.devices[key].residents = self._residents(key)
            if self.devices[key].is_simulated:
                self.devices[key].when_gone = self._when_gone_from_simulator
        return self.devices[key]

    def _residents(self, key: str) -> Adapter:
        """Who can say which processes have contexts on the device of that key."""
        kind, _, number = key.partition(":")
        if kind == "sim" and number.isdecimal() and not self.system:
            from krex.sim.residents import Simulated

            return Simulated(self.path.parent / "sim.sock", int(number))
        if kind in {"pci", "mig"}:
            from krex.controller.nvml import Nvml

            return Nvml(key)
        return Nobody()

    def _may_make_contexts(self) -> bool:
        return not any(d.hold and not d.hold.granted for d in self.devices.values())

    def _when_gone_from_simulator(self, pid: int, then: Callable[[], None]) -> None:
        if self.simulated:
            self.simulated.when_gone(pid, then)
        else:
            then()

    def simulator(self) -> "Simulator":
        """The process of the simulated devices, running or not. Raises Refusal."""
        if self.system:
            raise Refusal(
                "the machine's controller has no simulated devices; set KREX_SOCKET to a path of "
                "your own for a controller that does"
            )
        if self.simulated is None:
            from krex.sim.process import Simulator

            self.simulated = Simulator(self.path.parent, self._is_simulated, self._simulator_died)
        return self.simulated

    def _is_simulated(self) -> bool:
        """Whether a command counts on the simulated devices that run."""
        found = [d for d in self.devices.values() if d.is_simulated]
        return any(not c.device_lost for d in found for c in d.admission.commands)

    def _simulator_died(self) -> None:
        for command in self.commands.values():
            if command.device.is_simulated:
                command.device_lost = True
        for device in self.devices.values():
            if device.is_simulated and device.hold:
                device.hold.spoil("device_lost")

    def make_group(self, id: str, pid: int) -> Group:  # noqa: A002
        """A command's own group. Raises OSError.

        The machine's controller makes it in the cgroup of `krex run`, so that the limits of its
        session or container hold on. A user's makes it in its own, which is all it may write to.
        """
        base = self.base
        if self.system:
            its = cgroup_of(pid)
            base = outside(its) if its else None
        if base is None:
            raise OSError("no cgroup v2 directory that the controller may write to")
        return self.journal.make_group(base / f"krex-{id}")

    def allot(self, command: Command, theirs: set[int] | None) -> Allotment:
        """The CPUs of a command that is let in, and may use `theirs` (None: unknown)."""
        if command.device.is_cpu:
            return without(command.device.key)
        from krex.controller.division import Division, allot

        self._division = self._division or Division()
        in_use = any(c.allotment.cpus for c in self.commands.values())
        beside = self.simulated.keys if self.simulated and command.simulated else []
        part = self._division.part(command.device.key, in_use=in_use, beside=beside)
        if self.simulated:
            self.simulated.follow()
        found = allot(part, theirs)
        if command.group and found.cpus:
            self.journal.note_cpus(command.group.path, found.cpus, found.reserved)
        return found

    def tenant(self, uid: int, wish: str | None) -> str:
        """Nobody is another user's tenant."""
        return f"{uid}/{wish}" if wish and self.system else wish or str(uid)

    def lacking(self) -> list[str]:
        """What protection no command here has, a line each."""
        return [NO_BARRIER] if self.no_barrier else []

    def report(self, peer: Peer, fd: int) -> reports.Report | None:
        """Where records of this client's go. Another user's are written by that user's scribe."""
        scribe = None
        if peer.uid != os.geteuid():
            scribe = self._scribes.setdefault(peer.uid, reports.Scribe(peer.uid, peer.gid))
        return reports.accept(fd, scribe)

    def command_of(self, pid: int, token: str, uid: int) -> Command | None:
        """By group first (an environment may be rebuilt), then by token, then by descent.

        Group and descent are the kernel's word. A token is only a claim: it counts for who has the
        right to start such a command.
        """
        group = cgroup_of(pid)
        inside = (group, *group.parents) if group else ()
        for command in self.commands.values():
            if command.group and command.group.path in inside:
                return command
        claimed = self.commands.get(token)
        if claimed and (claimed.uid == uid or descends(pid, claimed.root_pid)):
            return claimed
        loose = (c for c in self.commands.values() if c.id.startswith("p-"))
        return next((c for c in loose if descends(pid, c.root_pid)), None)

    def sweep(self) -> None:
        """Forget commands of which nothing is left: a `krex run` may end before its children do."""
        for command in [c for c in self.commands.values() if c.run_ended]:
            if not command.processes() and self._is_removed(command.group):
                del self.commands[command.id]
                command.device.admission.leave(command)
                command.close()

    def _is_removed(self, group: Group | None) -> bool:
        if group is None or not group.remove():
            return group is None
        self.journal.forget(group.path)
        return True

    async def run(self, listener: socket.socket) -> None:
        """Serve until idle for idle_exit_s."""

        def accept() -> None:
            with contextlib.suppress(BlockingIOError):
                sock, _ = listener.accept()
                sock.setblocking(False)
                self.connections.add(Connection(self, sock))

        self.loop.add_reader(listener, accept)
        idle_since = time.monotonic()
        try:
            while True:
                for device in self.devices.values():
                    device.keep_lease()
                self.sweep()
                self.journal.tidy(self._left)
                if self.connections or self.commands:
                    idle_since = time.monotonic()
                elif time.monotonic() - idle_since > (self.idle_exit_s or math.inf):
                    return
                await asyncio.sleep(BEAT_S)
        finally:
            await self._end()

    async def _end(self) -> None:
        """Leave nothing shut, frozen or running, and as few groups as can be."""
        for device in self.devices.values():
            device.close()
        if self.simulated:
            self.simulated.stop()
        groups = [c.group for c in self.commands.values() if c.group]
        for group in groups:
            with contextlib.suppress(OSError):
                group.thaw()
        for _ in range(20):  # a command that is just ending empties its group in a moment
            groups = [g for g in groups if not self._is_removed(g)]
            if groups:
                await asyncio.sleep(0.05)
        self.journal.recover()  # what runs on without us stays on record


class Access(NamedTuple):
    """Who may use a controller: its own user; with `system` a group or, without one, everybody."""

    system: bool = False
    group: int | None = None

    def listen(self, path: Path) -> socket.socket:
        """A listener that only those can connect to."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        before = os.umask(0o077)  # nobody gets in before the mode is set
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        if self.system and self.group is not None:
            os.chown(path, -1, self.group)
        if self.system:
            path.chmod(0o666 if self.group is None else 0o660)
        listener.listen(128)
        return listener


_ELSEWHERE = "set KREX_SOCKET to a path in a directory of its own"


def _say(text: str) -> None:
    """On stderr, which nobody reads if `krex run` started us."""
    with contextlib.suppress(OSError):
        print(f"krex: {text}", file=sys.stderr, flush=True)


def _lock(path: Path) -> bool:
    """Take the folder's lock, for as long as this process lives; False: another one serves.

    `krex thaw --all` holds it for a moment, and so does a controller that is about to serve.
    """
    name = path.parent / "controller.lock"
    try:
        lock = os.open(name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ControllerError(f"cannot open {name}: {error.strerror}", _ELSEWHERE) from None
    deadline = time.monotonic() + LOCK_S
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if _is_served(path):
            os.close(lock)
            return False
        if time.monotonic() > deadline:
            raise ControllerError(f"a controller of another socket holds {name}", _ELSEWHERE)
        time.sleep(0.01)


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK) as visitor:
        try:
            visitor.connect(str(path))
        except BlockingIOError:  # by one that is busy
            return True
        except OSError:
            return False
        return True


def main(
    socket_path: str | os.PathLike[str],
    idle_exit_s: float | None,
    slots: int,
    access: Access = Access(),  # noqa: B008 - it cannot change
) -> int:
    """Run the controller, with so many slots a device.

    Returns 0, also when another one already serves this socket. Raises ControllerError.
    """
    path = Path(socket_path)
    if not _lock(path):
        _say(f"a controller serves {path} already")
        return 0
    path.unlink(missing_ok=True)
    try:
        listener = access.listen(path)
    except OSError as error:
        raise ControllerError(f"cannot listen on {path}: {error.strerror}", _ELSEWHERE) from None
    _say(f"serving on {path}, process {os.getpid()}")
    with contextlib.suppress(OSError):
        raise_priority()

    async def serve() -> None:
        me = asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, me.cancel if me else exit)
        await Server(path, idle_exit_s, slots, system=access.system).run(listener)

    try:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(serve())
    finally:
        path.unlink(missing_ok=True)
    return 0
