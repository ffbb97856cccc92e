# SPDX-License-Identifier: Apache-2.0
"""One connection: what a shim, a `krex run` or a status reader says, and what it is told."""

import asyncio
import contextlib
import itertools
import json
import os
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

from krex.command_record import CommandRecord
from krex.controller import memory
from krex.controller.command import Command
from krex.controller.device import Device
from krex.controller.farewell import command_record
from krex.controller.mark import CommandMark, Process, ThreadMark, asking
from krex.controller.outbox import Outbox
from krex.controller.peer import Peer, has_ended, receive
from krex.controller.placement import place
from krex.controller.reports import Report
from krex.controller.request import DEFAULT_DEVICE, Refusal, Request, is_device_key, parse
from krex.controller.standing import Standing, Teller
from krex.controller.status import conceal, describe
from krex.controller.waiting import Abort, until
from krex.launch.channel import PROTOCOL
from krex.native import ffi, lib
from krex.record import RegionRecord

if TYPE_CHECKING:
    from krex.controller.server import Server

BYE_S = 0.5
BOARD_FULL = (
    f"the device's board is full ({lib.KREX_BLOCKS} processes), so no region on it is exclusive; "
    "run fewer at once (`krex status`)"
)
OTHER_VERSION = "the controller is of another version (`krex doctor` says what to do)"
# A mark whose thread has not left it.
TAKEN = (
    *(lib.KREX_MARK_REQUESTED, lib.KREX_MARK_EXCLUSIVE, lib.KREX_MARK_SHARED),
    *(lib.KREX_MARK_CLOSING, lib.KREX_MARK_IDLE, lib.KREX_MARK_YIELDED),
)
_ids = itertools.count(1)


class Connection:
    """One connected process: a shim, a `krex run` or a status reader."""

    def __init__(self, server: "Server", sock: socket.socket) -> None:
        self.server, self.sock = server, sock
        self.peer = Peer(sock)
        self.pid, self.uid = self.peer.pid, self.peer.uid
        self.process: Process | None = None
        self.command: Command | None = None
        self.marks: dict[int, ThreadMark] = {}
        self.whole: CommandMark | None = None  # the command itself is a region
        self._teller = Teller(self._tell)
        self._admitting: asyncio.Task[None] | None = None
        self._farewell: asyncio.Task[None] | None = None
        self._refused = False
        self.pidfd = -1
        self._outbox = Outbox(server.loop, sock)
        self._untold: list[RegionRecord] = []
        server.loop.add_reader(sock, self.readable)

    def readable(self) -> None:
        """Handle one packet, or the end."""
        fds: list[int] = []
        try:
            packet, fds = receive(self.sock)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        try:
            self._packet(packet, fds)  # takes out of the list what it keeps
        finally:
            for fd in fds:
                os.close(fd)

    def _packet(self, packet: bytes, fds: list[int]) -> None:
        if not packet:
            self.close()
        elif packet[:1] == b"{":
            self._json(packet, fds)
        elif int.from_bytes(packet[:4], sys.byteorder) & 0xFFFFFF == lib.KREX_WIRE_NAME:
            self._wire(packet, fds)

    def close(self) -> None:
        """The other side ended."""
        self.server.loop.remove_reader(self.sock)
        left = [m["record"] for m in self._outbox.close() if m["op"] == "region"]
        self.sock.close()
        self.server.connections.discard(self)
        if self._admitting:
            self._admitting.cancel()
        if self.command:
            self._forsake(self.command, left + self._untold)
        # A process is gone when its pidfd says so: a forked child may hold its socket open, and it
        # may close all its descriptors itself. Or when another program runs in it since an exec.
        if self.process and self._has_left(self.process):
            self.gone()

    def send(self, message: dict[str, Any], *fds: int) -> bool:
        """Send JSON; False: nobody is there any more."""
        return self._outbox.send(message, *fds)

    # krex run and krex status

    def _json(self, packet: bytes, fds: list[int]) -> None:
        try:
            message = json.loads(packet)
            op = message["op"]
        except (ValueError, KeyError, TypeError):
            self.send({"op": "error", "message": "not a message of this protocol"})
            return
        if op == "status":
            picture = describe(self.server)
            conceal(picture, self.server, self.uid)
            self.send({"op": "status", "status": picture})
        elif op == "run":
            self._run(message, fds)
        elif op == "told":
            self._teller.has_read(wants_all=message.get("all") is True)
        elif op == "started" and self.command:
            self._started(self.command, message.get("pid"), fds)
        elif op == "signalled" and self.command:
            self._signalled(self.command)
        elif op == "ended" and self.command:
            self._ended(self.command, message)

    def _signalled(self, command: Command) -> None:
        """Somebody wants to interrupt or end it; frozen, it could do nothing about it."""
        if command.device.hold:
            command.device.hold.let_run(command, "commands_thawed_for_a_signal")

    def _run(self, message: dict[str, Any], fds: list[int]) -> None:
        if enclosing := self.server.command_of(self.pid, "", self.uid):
            self._let_join(enclosing)
            return
        try:
            if why := self.peer.obstacle():
                raise Refusal(why, fail_open=True)
            request = parse(message)
        except Refusal as refusal:
            self._deny(refusal)
            return
        report = self.server.report(self.peer, fds.pop()) if fds else None
        self._admitting = self.server.loop.create_task(self._admit_or_say_why(request, report))

    def _deny(self, refusal: Refusal) -> None:
        self.send({"op": "error", "message": str(refusal), "fail_open": refusal.fail_open})

    def _command_of(self, request: Request, device: Device, report: Report | None) -> Command:
        """What a `krex run` asked for, on the device that was found for it."""
        tenant = self.server.tenant(self.uid, request.tenant)
        command = Command(f"c-{os.getpid()}-{next(_ids)}", tenant, request.argv, device)
        command.uid = self.uid
        command.look_at_stdio(self.pid)  # its first process will have the same
        command.exclusive, command.protect = request.exclusive, request.protect
        command.memory, command.simulated = request.memory or 0, request.simulated is not None
        command.max_hold_s, command.max_wait_s = request.max_hold_s, request.max_wait_s
        # Aside: awake, it would take a core while the siblings need one to come to a stop.
        command.opened = lambda record: self._outbox.aside({"op": "region_open", "record": record})
        command.report = self._tell_region
        command.last_resort = report
        command.out_of_memory = lambda text: self.send({"op": "out_of_memory", "message": text})
        command.notice = lambda text: self.send({"op": "unprotected", "message": text})
        command.warn = lambda text: self.send({"op": "unprotected", "message": text, "say": True})
        return command

    def _tell_who_waits_for_a_region(self, mark: CommandMark) -> None:
        """It would look as if nobody answered: the command starts when the hold has ended."""
        device = mark.command.device
        if device.hold and device.hold.granted and mark in device.queue:
            place, of = device.queue.index(mark) + 1, len(device.queue)
            self._teller.changed(Standing(place, of, "a region has the device", None))

    def _tell_region(self, record: RegionRecord) -> None:
        if not self.send({"op": "region", "record": record}):
            self._untold.append(record)  # it ended, and we have not noticed yet: see close()

    def _let_join(self, enclosing: Command) -> None:
        """A nested `krex run` that was not told so by its environment.

        A slot of its own might be one that its enclosing command keeps it from getting.
        """
        message: dict[str, Any] = {"op": "join", "command": enclosing.id}
        message |= {"device": enclosing.device.key, "simulated": enclosing.simulated}
        if enclosing.id.startswith("p-"):
            text = f"it cannot be frozen: it belongs to the tree of process {enclosing.root_pid}, "
            message["lacking"] = [text + "which only has the library preloaded"]
        self.send(message)

    async def _admit_or_say_why(self, request: Request, report: Report | None) -> None:
        """A fault of ours must not leave a `krex run` waiting for an answer that never comes."""
        try:
            device = await place(self.server, request)
            self.command = self._command_of(request, device, report)
            await self._admit(self.command, request)
        except Refusal as refusal:
            self._deny(refusal)
        except Exception as failure:  # noqa: BLE001 - whatever it is
            text = f"the controller failed: {failure!r}; report it, please"
            self._deny(Refusal(text, fail_open=True))
        finally:
            command = self.command
            if command and command.id not in self.server.commands:
                command.device.admission.leave(command)  # nobody else would

    async def _admit(self, command: Command, request: Request) -> None:
        """Let the command in when it is its turn, with its hold if it is one region."""
        device, asked = command.device, time.monotonic()
        wishes_alone, whole = command.exclusive == "command", request.region == "whole"
        alone = await device.admission.enter(
            command, wishes_alone, self._teller.changed, command.max_wait_s, command.memory
        )
        if request.simulated:  # its devices may have been lost while it waited
            await self.server.simulator().ensure(request.simulated)
        self._teller = Teller(self._tell)
        lacking = self.server.lacking()
        try:
            command.group = self.server.make_group(command.id, self.pid)
        except OSError as failure:
            lacking.append(cannot_freeze(failure))
        theirs = None if request.cpus is None else set(request.cpus)
        command.allotment = self.server.allot(command, theirs)
        self.server.commands[command.id] = command
        device.admitted(command)
        if whole or wishes_alone:
            mark = CommandMark(command, self.pid, "command" if wishes_alone else "whole")
            mark.requested = asked  # the wait for its turn is part of what it costs
            self.whole = mark
            if wishes_alone and not alone:
                mark.not_exclusive("max_wait_exceeded")
                mark.answer()
            else:
                device.enter(mark)
                self._tell_who_waits_for_a_region(mark)
            await mark.answered.wait()
        reply = {
            "op": "admitted",
            "protocol": PROTOCOL,
            "command": command.id,
            "device": device.key,
            "simulated": request.simulated is not None,
            "cgroup": str(command.group.path) if command.group else None,
            "lacking": lacking,
            "aside": True,
        }
        if command.allotment.cpus:
            reply |= {"cpus": command.allotment.cpus, "reserved": command.allotment.reserved}
        freeze = [command.group.freeze_fd] if command.group else []
        self.send(reply, device.board.fd, self._outbox.open_aside(), *freeze)
        if self.whole:
            command.opened(self.whole.record)

    def _tell(self, standing: Standing) -> None:
        self.send({"op": "waiting", **standing._asdict()})

    def _started(self, command: Command, told: object, fds: list[int]) -> None:
        failure, pid = None, 0
        try:
            pid = self.peer.child(told, fds)
            self._place(command, pid)
        except (LookupError, OSError) as why:
            self._give_up_group(command)
            failure = cannot_freeze(why)
        pid = pid or self.pid  # then at least all that it starts is below that
        command.root_pid, command.started = pid, time.monotonic()
        if self.whole:
            self.whole.record.pid = pid
        command.device.started(command)
        command.device.admission.started(command)
        self.send({"op": "placed", "failure": failure})

    def _place(self, command: Command, pid: int) -> None:
        """Move the command's first process into its group, unless it was born there.

        `krex run` holds it before exec until we answer. One of another user or in a container can't
        do that itself: it needs the right to write to the cgroup that the two have in common.
        """
        if command.group and pid and not command.group.has(pid):
            with contextlib.suppress(ProcessLookupError):  # it has ended
                command.group.take(pid)

    def _give_up_group(self, command: Command) -> None:
        """From now on it is a sibling that can't be frozen."""
        group, command.group = command.group, None
        if group:
            with contextlib.suppress(OSError):
                group.thaw()
            group.remove()
            self.server.journal.forget(group.path)

    def _ended(self, command: Command, message: dict[str, Any]) -> None:
        record = command_record(command, message.get("status"))
        if self.whole:
            command.device.leave(self.whole)
        self._farewell = self.server.loop.create_task(self._bye(command, record))

    async def _bye(self, command: Command, record: CommandRecord | None) -> None:
        """Say bye when the command's last record was sent, within half a second."""
        with contextlib.suppress(Abort):
            await until(lambda: not command.device.busy_with(command), BYE_S, "")
        self.send({"op": "bye", "command": record})

    def _forsake(self, command: Command, untold: list[RegionRecord]) -> None:
        """Its `krex run` is gone, whether or not the command is."""
        command.mute(was_killed=self._farewell is None)
        for record in untold:
            command.report(record)
        if self.whole:
            command.device.leave(self.whole, "krex_run_died")
        self.server.sweep()
        if command.id not in self.server.commands:
            command.close()

    # the shim

    def _wire(self, packet: bytes, fds: list[int]) -> None:
        m = ffi.from_buffer("struct krex_wire *", packet.ljust(ffi.sizeof("struct krex_wire")))
        if m.magic != lib.KREX_WIRE_MAGIC or len(packet) != ffi.sizeof("struct krex_wire"):
            self._refuse(OTHER_VERSION, list(self.server.devices.values()))
            return
        text = ffi.string(m.text).decode(errors="replace")
        if m.type == lib.KREX_WIRE_HELLO:
            self._hello(text, os.fsdecode(ffi.string(m.text2)), fds)
        elif self.process is None:
            return
        elif m.type == lib.KREX_WIRE_ENTER and m.slot < lib.KREX_MARKS:
            marker = ffi.string(m.text2).decode(errors="replace") or "explicit"
            before = self.marks.pop(m.slot, None)
            mark = asking(before, self.process, m.slot, text, m.value, marker)
            self.marks[m.slot] = mark
            mark.command.opened(mark.record)
            self.process.device.enter(mark)
        elif m.type == lib.KREX_WIRE_LEAVE and m.slot < lib.KREX_MARKS:
            self._leave(m.slot, m.value)
        elif m.type in {lib.KREX_WIRE_TICKET, lib.KREX_WIRE_TICKET_BACK}:
            asks, tickets = m.type == lib.KREX_WIRE_TICKET, self.server.tickets
            (tickets.ask if asks else tickets.give_back)(self.process, m.value)
        elif m.type == lib.KREX_WIRE_NOTE and text == "context_on_other_device":
            self._visit(ffi.string(m.text2).decode(errors="replace"))
        elif m.type == lib.KREX_WIRE_NOTE and text == "allocation_refused":
            self._out_of_memory(self.process, ffi.string(m.text2))

    def _visit(self, key: str) -> None:
        """It has a context on a device that it is not registered on: nothing stops it there."""
        if is_device_key(key):
            self._note_stranger(os.dup(self.pidfd), [self.server.device(key)])

    def _out_of_memory(self, process: Process, wanted: bytes) -> None:
        asking = memory.refused(process, int(wanted) if wanted.isdigit() else 0)
        task = self.server.loop.create_task(asking)
        process.command.questions.add(task)
        task.add_done_callback(process.command.questions.discard)

    def _leave(self, slot: int, submissions: int) -> None:
        assert self.process
        board, block = self.process.device.board.c, self.process.block
        if any(lib.krex_mark_move(board, block, slot, state, state) for state in TAKEN):
            return  # too late: it was ended by its limit, and another thread has the slot
        mark = self.marks.pop(slot, None)
        if mark and not mark.ended:
            mark.submissions_at_end = submissions
            self.process.device.leave(mark)
        else:
            if mark:
                mark.finish()
            lib.krex_mark_move(board, block, slot, lib.KREX_MARK_LEAVING, lib.KREX_MARK_FREE)

    def _hello(self, key: str, token: str, fds: list[int]) -> None:
        # The same process under another program, while nothing told us of the old one's end.
        if before := self.server.registered.get(self.pid):
            before.gone()
        command = self.server.command_of(self.pid, token, self.uid)
        device = command.device if command else self.server.device(key or DEFAULT_DEVICE)
        why = self.peer.obstacle()
        block = -1 if why else lib.krex_block_reserve(device.board.c, self.pid)
        if block < 0:
            self._refuse(why or BOARD_FULL, [device], command)
            return
        try:
            self.pidfd = self.peer.open_pidfd()
        except OSError:  # it ended
            lib.krex_block_free(device.board.c, block)
            return
        self.process = Process(self.pid, block, command or self._loose(device))
        self.server.registered[self.pid] = self
        if self.process.command.id.startswith("p-"):
            device.admission.take(self.process.command)
        self.process.command.look_at_stdio(self.pid)
        self._take_report(self.process, fds)
        self.server.loop.add_reader(self.pidfd, self.gone)
        device.joined(self.process)
        with contextlib.suppress(OSError):
            answer = _wire_of(lib.KREX_WIRE_WELCOME, slot=block)
            socket.send_fds(self.sock, [answer], [device.board.fd])

    def _loose(self, device: Device) -> Command:
        """The command of a process tree that only has the library preloaded."""
        command = Command(f"p-{self.pid}", str(self.uid), [], device)
        command.root_pid, command.uid = self.pid, self.uid
        self.server.commands[command.id] = command
        return command

    def _take_report(self, process: Process, fds: list[int]) -> None:
        """KREX_REPORT says where a preloaded tree or a nested `krex run` wants its records."""
        report = self.server.report(self.peer, fds.pop()) if fds else None
        if report:
            command = process.command

            def send(record: RegionRecord) -> None:
                report.write(record)
                command.report(record)

            process.send_record = send

    def _refuse(self, why: str, devices: list[Device], command: Command | None = None) -> None:
        """It runs on unprotected, and uses the device: no region beside it is certain."""
        if self._refused:
            return
        self._refused = True
        with contextlib.suppress(OSError):
            self.sock.send(_wire_of(lib.KREX_WIRE_REFUSED, text=why.encode()))
        try:
            pidfd = self.peer.open_pidfd()
        except OSError:
            pidfd = -1  # it ended, or nobody will tell us when
        if self.pid == 0 or pidfd >= 0:
            self._note_stranger(pidfd, devices)
        if command:
            command.told.add(self.pid)
            command.notice(why)

    def _note_stranger(self, pidfd: int, devices: list[Device]) -> None:
        """Count an unprotected process for as long as it lives."""

        def gone() -> None:
            self.server.loop.remove_reader(pidfd)
            os.close(pidfd)
            for device in devices:
                device.departed()

        for device in devices:
            device.refused()
        if pidfd >= 0:
            self.server.loop.add_reader(pidfd, gone)

    def _has_left(self, process: Process) -> bool:
        """Whether a process that hung up is off the board, or never was on it.

        A library that hangs up without having joined could not join; the process runs on.
        """
        board = process.device.board
        joined = lib.krex_block_state(board.c, process.block) != lib.KREX_BLOCK_RESERVED
        if not joined and not has_ended(self.pidfd):
            self._note_stranger(os.dup(self.pidfd), [process.device])
            process.command.told.add(self.pid)
            process.command.notice("its library could not join the board")
        return not joined or not board.is_mapped_by(self.pid)

    def gone(self) -> None:
        """The process ended, or another program runs in it."""
        if self.process is None:
            return
        self.server.loop.remove_reader(self.pidfd)
        os.close(self.pidfd)
        process, self.process = self.process, None
        del self.server.registered[self.pid]
        self.server.tickets.forget(process)
        for mark in self.marks.values():
            mark.finish("process_died")
        process.device.gone(process, self.marks.values())
        command = process.command
        if command.id.startswith("p-") and not command.processes():
            self.server.commands.pop(command.id, None)
            command.device.admission.leave(command)
        elif command.run_ended:
            self.server.sweep()


def _wire_of(kind: int, *, slot: int = 0, text: bytes = b"") -> bytes:
    """A message to a shim."""
    values = {"magic": lib.KREX_WIRE_MAGIC, "type": kind, "slot": slot, "text": text[:127]}
    return bytes(ffi.buffer(ffi.new("struct krex_wire *", values)))


def cannot_freeze(why: Exception) -> str:
    """What a `krex run` says of it."""
    return (
        f"no freezing ({why}): siblings are only kept off the device, and on a CPU device a region "
        "beside a busy one is not exclusive; `krex doctor` says how to mend it"
    )
