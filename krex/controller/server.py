# SPDX-License-Identifier: Apache-2.0
"""The controller's socket: who connects, what they say, and when the controller may go."""

import asyncio
import contextlib
import fcntl
import itertools
import json
import math
import os
import re
import signal
import socket
import struct
import time
from pathlib import Path
from typing import Any

import msgspec

from krex.controller.command import Command
from krex.controller.device import Device
from krex.controller.hold import Abort, until
from krex.controller.mark import CommandMark, Process, ThreadMark, descends
from krex.controller.status import describe
from krex.native import ffi, lib
from krex.protect.freezer import Group, find_base, recover
from krex.protect.priority import raise_priority
from krex.record import RegionRecord

LEASE_S = 1.0
BEAT_S = 0.25
BYE_S = 0.5
DEFAULT_DEVICE = "cpu:0"
_ids = itertools.count(1)


class Connection:
    """One connected process: a shim, a `krex run` or a status reader."""

    def __init__(self, server: "Server", sock: socket.socket) -> None:
        self.server, self.sock = server, sock
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.pid, self.uid, _ = struct.unpack("iII", raw)
        self.process: Process | None = None
        self.command: Command | None = None
        self.marks: dict[int, ThreadMark] = {}
        self.whole: CommandMark | None = None  # the command itself is a region
        self._admitting: asyncio.Task[None] | None = None
        self._farewell: asyncio.Task[None] | None = None
        self.pidfd = -1
        server.loop.add_reader(sock, self.readable)

    def readable(self) -> None:
        """Handle one packet, or the end."""
        try:
            packet = self.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            self.close()
        elif packet[:1] == b"{":
            self._json(packet)
        elif len(packet) == ffi.sizeof("struct krex_wire"):
            self._wire(packet)

    def close(self) -> None:
        """The other side ended."""
        self.server.loop.remove_reader(self.sock)
        self.sock.close()
        self.server.connections.discard(self)
        if self.command:
            self._forsake(self.command)
        # A process is gone when its pidfd says so: a forked child may hold its socket open, and it
        # may close all its descriptors itself. Or when another program runs in it since an exec.
        if self.process and not self.process.device.board.is_mapped_by(self.pid):
            self.gone()

    def send(self, message: dict[str, Any], fd: int = -1) -> None:
        """Send JSON; a reader that is gone or full loses it."""
        data = msgspec.json.encode(message)
        with contextlib.suppress(OSError):
            socket.send_fds(self.sock, [data], [fd] if fd >= 0 else [])

    # krex run and krex status

    def _json(self, packet: bytes) -> None:
        try:
            message = json.loads(packet)
            op = message["op"]
        except (ValueError, KeyError):
            self.send({"op": "error", "message": "not a message of this protocol"})
            return
        if op == "status":
            self.send({"op": "status", "status": describe(self.server)})
        elif op == "run":
            self._run(message)
        elif op == "started" and self.command:
            self._started(self.command, int(message["pid"]))
        elif op == "ended" and self.command:
            self._ended(self.command)

    def _run(self, message: dict[str, Any]) -> None:
        key = message.get("device") or DEFAULT_DEVICE
        if not re.fullmatch(r"(pci|mig|cpu|sim):[\w:.-]{1,48}", key):
            text = f"{key!r} is not a device: say pci:<address>, mig:<uuid> or cpu:0"
            self.send({"op": "error", "message": text})
            return
        command = Command(
            f"c-{os.getpid()}-{next(_ids)}",
            message.get("tenant") or str(self.uid),
            list(message["argv"]),
            self.server.device(key),
        )
        command.exclusive = message.get("exclusive", "region")
        command.max_hold_s = message.get("max_hold_s")
        command.max_wait_s = message.get("max_wait_s")
        command.opened = lambda record: self.send({"op": "region_open", "record": record})
        command.report = lambda record: self.send({"op": "region", "record": record})
        self.command = command
        self._admitting = self.server.loop.create_task(
            self._admit(command, whole=message.get("region") == "whole")
        )

    async def _admit(self, command: Command, *, whole: bool) -> None:
        """Let the command in when it is its turn, with its hold if it is one region."""
        device = command.device
        wishes_alone = command.exclusive == "command"
        alone = await device.admission.enter(command, self._tell_place, command.max_wait_s)
        lacking = []
        try:
            command.group = self.server.make_group(command.id)
        except OSError as failure:
            lacking.append(f"siblings cannot be frozen: {failure}")
        self.server.commands[command.id] = command
        device.admitted(command)
        if whole or wishes_alone:
            mark = CommandMark(command, self.pid, "command" if wishes_alone else "whole")
            self.whole = mark
            if wishes_alone and not alone:
                mark.not_exclusive("max_wait_exceeded")
                mark.answer()
            else:
                device.enter(mark)
            await mark.answered.wait()
        reply = {
            "op": "admitted",
            "command": command.id,
            "device": device.key,
            "cgroup": str(command.group.path) if command.group else None,
            "lacking": lacking,
        }
        self.send(reply, device.board.fd)
        if self.whole:
            command.opened(self.whole.record)

    def _tell_place(self, place: int, why: str) -> None:
        self.send({"op": "waiting", "place": place, "why": why})

    def _started(self, command: Command, pid: int) -> None:
        command.root_pid = pid
        if self.whole:
            self.whole.record.pid = pid
        command.device.started(command)

    def _ended(self, command: Command) -> None:
        if self.whole:
            command.device.leave(self.whole)
        self._farewell = self.server.loop.create_task(self._bye(command))

    async def _bye(self, command: Command) -> None:
        """Say bye when the command's last record was sent, within half a second."""
        with contextlib.suppress(Abort):
            await until(lambda: not command.device.busy_with(command), BYE_S, "")
        self.send({"op": "bye"})

    def _forsake(self, command: Command) -> None:
        """Its `krex run` is gone, whether or not the command is."""
        if self._admitting:
            self._admitting.cancel()
        command.mute()
        if self.whole:
            command.device.leave(self.whole, "krex_run_died")
        if command.id in self.server.commands:
            self.server.sweep()
        else:
            command.device.admission.leave(command)

    # the shim

    def _wire(self, packet: bytes) -> None:
        m = ffi.from_buffer("struct krex_wire *", packet)
        if m.magic != lib.KREX_WIRE_MAGIC:
            return
        text = ffi.string(m.text).decode(errors="replace")
        if m.type == lib.KREX_WIRE_HELLO:
            self._hello(text, *(os.fsdecode(ffi.string(t)) for t in (m.text2, m.text3)))
        elif self.process is None:
            return
        elif m.type == lib.KREX_WIRE_ENTER and m.slot < lib.KREX_MARKS:
            mark = self.marks[m.slot] = ThreadMark(self.process, m.slot, text)
            mark.command.opened(mark.record)
            self.process.device.enter(mark)
        elif m.type == lib.KREX_WIRE_LEAVE and m.slot < lib.KREX_MARKS:
            self._leave(m.slot, m.value)

    def _leave(self, slot: int, submissions: int) -> None:
        assert self.process
        mark = self.marks.pop(slot, None)
        board, block = self.process.device.board.c, self.process.block
        if mark and not mark.ended:
            mark.submissions_at_end = submissions
            self.process.device.leave(mark)
        else:
            lib.krex_mark_move(board, block, slot, lib.KREX_MARK_LEAVING, lib.KREX_MARK_FREE)

    def _hello(self, key: str, token: str, report: str) -> None:
        # The same process under another program, while a child of the old one keeps its socket.
        for other in [c for c in self.server.connections if c.process and c.pid == self.pid]:
            other.gone()
        command = self.server.command_of(self.pid, token)
        device = command.device if command else self.server.device(key or DEFAULT_DEVICE)
        if command is None:
            command = Command(f"p-{self.pid}", str(self.uid), [], device)
            command.root_pid = self.pid
            self.server.commands[command.id] = command
        block = lib.krex_block_reserve(device.board.c, self.pid)
        answer = ffi.new("struct krex_wire *", {"magic": lib.KREX_WIRE_MAGIC})
        if block < 0:
            answer.type, answer.text = lib.KREX_WIRE_REFUSED, b"the device's board is full"
            with contextlib.suppress(OSError):
                self.sock.send(bytes(ffi.buffer(answer)))
            device.refused()
            return
        self.process = Process(self.pid, block, command)
        if report:
            self.process.send_record = lambda record: self._report_twice(command, report, record)
        self.pidfd = os.pidfd_open(self.pid)
        self.server.loop.add_reader(self.pidfd, self.gone)
        device.joined(self.process)
        answer.type, answer.slot = lib.KREX_WIRE_WELCOME, block
        with contextlib.suppress(OSError):
            socket.send_fds(self.sock, [bytes(ffi.buffer(answer))], [device.board.fd])

    def _report_twice(self, command: Command, path: str, record: RegionRecord) -> None:
        """KREX_REPORT says where a preloaded tree or a nested `krex run` wants its records."""
        append_record(path, record)
        command.report(record)

    def gone(self) -> None:
        """The process ended, or another program runs in it."""
        if self.process is None:
            return
        self.server.loop.remove_reader(self.pidfd)
        os.close(self.pidfd)
        process, self.process = self.process, None
        process.device.gone(process)
        command = process.command
        if command.id.startswith("p-") and not command.processes():
            self.server.commands.pop(command.id, None)


def append_record(path: str, record: RegionRecord) -> None:
    """One line, in one write, so that several writers do not mix."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.write(fd, msgspec.json.encode(record) + b"\n")
        os.close(fd)


class Server:
    """All of the controller's state."""

    def __init__(self, path: Path, idle_exit_s: float | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.path, self.idle_exit_s = path, idle_exit_s
        self.devices: dict[str, Device] = {}
        self.commands: dict[str, Command] = {}
        self.connections: set[Connection] = set()
        self.started = time.time()
        self.base = find_base()
        if self.base:
            recover(self.base)

    def device(self, key: str) -> Device:
        """The device of that key; its board is made at first use."""
        if key not in self.devices:
            self.devices[key] = Device(key, self.commands)
            self.devices[key].board.lease(LEASE_S)
        return self.devices[key]

    def make_group(self, id: str) -> Group:  # noqa: A002
        """A command's own group. Raises OSError."""
        if self.base is None:
            raise OSError("no writable cgroup v2 directory")
        return Group(self.base / f"krex-{id}")

    def command_of(self, pid: int, token: str) -> Command | None:
        """By group first (an environment may be rebuilt), then by token, then by descent."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
                id = line.rpartition("/krex-")[2]  # noqa: A001
                if line.startswith("0::") and id in self.commands:
                    return self.commands[id]
        if token in self.commands:
            return self.commands[token]
        loose = (c for c in self.commands.values() if c.id.startswith("p-"))
        return next((c for c in loose if descends(pid, c.root_pid)), None)

    def sweep(self) -> None:
        """Forget commands of which nothing is left: a `krex run` may end before its children do."""
        for command in [c for c in self.commands.values() if c.run_ended]:
            if command.group is None or command.group.remove():
                del self.commands[command.id]
                command.device.admission.leave(command)

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
                    device.board.lease(LEASE_S)
                self.sweep()
                if self.connections or self.commands:
                    idle_since = time.monotonic()
                elif time.monotonic() - idle_since > (self.idle_exit_s or math.inf):
                    return
                await asyncio.sleep(BEAT_S)
        finally:
            groups = [c.group for c in self.commands.values() if c.group]
            for group in groups:
                with contextlib.suppress(OSError):
                    group.thaw()
            for _ in range(20):  # a command that is just ending empties its group in a moment
                groups = [g for g in groups if not g.remove()]
                if groups:
                    await asyncio.sleep(0.05)


def main(socket_path: str | os.PathLike[str], idle_exit_s: float | None) -> int:
    """Run the controller. Returns 0, also when another one already serves this socket."""
    path = Path(socket_path)
    lock = os.open(path.parent / "controller.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    listener.bind(str(path))
    listener.listen(128)
    with contextlib.suppress(OSError):
        raise_priority()

    async def serve() -> None:
        me = asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, me.cancel if me else exit)
        await Server(path, idle_exit_s).run(listener)

    try:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(serve())
    finally:
        path.unlink(missing_ok=True)
    return 0
