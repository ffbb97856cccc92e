# SPDX-License-Identifier: Apache-2.0
"""Between start and end of the command: one poll over its signals, its controller and itself."""

from __future__ import annotations

import os
import select
import signal
import time

from krex.errors import ControllerError, KrexError, LaunchError
from krex.launch.guard import Lease
from krex.launch.program import exec_error
from krex.launch.report import CONTROLLER_LOST, OPEN_AT_END, Regions
from krex.launch.signals import SignalQueue, stop_like
from krex.launch.unseen import unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from krex.launch.channel import Channel, Message
    from krex.launch.guard import Guard
    from krex.launch.messages import Messages
    from krex.launch.options import RunOptions
    from krex.launch.report import Report
    from krex.launch.spawn import Child

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_LEASE_CHECK_S = 0.5
_FAREWELL_S = 1.0
_PLACE_S = 5.0


class Supervisor:
    """Waits for the command, passes signals on, writes records, thaws if nobody else would.

    Construct before the command is started: from then on no signal is lost.
    """

    def __init__(
        self,
        options: RunOptions,
        messages: Messages,
        channel: Channel,
        guard: Guard,
        report: Report | None,
    ) -> None:
        self._options = options
        self._messages = messages
        self._channel: Channel | None = channel
        self._guard = guard
        self._report = report
        self._regions = Regions()
        # What the program times is ours to mark: that it timed elsewhere too is worth an object.
        asked = os.environ.get("KREX_REGION", "")
        self._marks_for_it = any(word in asked for word in ("events", "call:", "nvtx:"))
        self._signals = SignalQueue()
        self._poll = select.poll()
        self._poll.register(self._signals.fd, select.POLLIN)
        self._poll.register(channel.fileno(), select.POLLIN)
        self._status: int | None = None
        self._child: Child | None = None
        self._placed_by = 0.0  # when a held child goes on all the same

    def watch_lease(self, library: str, board_fd: int) -> None:
        """Look after the controller's lease; without one, only the end of its connection tells."""
        if board_fd < 0 or not self._guard.armed:
            return
        try:
            self._guard.watch(Lease(library, board_fd))
        except OSError as error:
            self._messages.info(f"the controller's lease is not watched: {error}")

    def see_through(self, child: Child) -> int:
        """Wait for the command's end; the exit status. Raises KrexError if exec failed."""
        self._child = child
        self._guard.root_pid = child.pid
        self._poll.register(child.news_fd, select.POLLIN)
        self._placed_by = time.monotonic() + _PLACE_S
        self._say_started(child)
        while self._status is None:
            self._turn(_LEASE_CHECK_S)
        self._read_news()
        self._farewell(self._status)
        if child.exec_errno:
            raise exec_error(self._options.command[0], child.exec_errno)
        return self._verdict(self._status)

    def _say_started(self, child: Child) -> None:
        """The controller may number processes otherwise than we do: a pidfd names it for both."""
        try:
            pidfd = os.pidfd_open(child.pid)
        except OSError:  # a sandbox forbids it
            pidfd = -1
        self._send({"op": "started", "pid": child.pid}, pidfd)
        if pidfd >= 0:
            os.close(pidfd)

    # -- one turn of the loop

    def _turn(self, timeout_s: float) -> None:
        ready = {fd for fd, _ in self._poll.poll(timeout_s * 1000)}
        if self._child is not None and self._child.news_fd in ready:
            self._read_news()
        # The controller before the child's end: a record that is here must not be missed.
        if self._channel is not None and self._channel.fileno() in ready:
            self._read_messages()
        if self._signals.fd in ready:
            for number, from_a_process in self._signals.take():
                self._on_signal(number, from_a_process)
        if self._guard.check():
            self._messages.warn("the controller does not keep its lease; the command was thawed")
        if self._child and self._child.held and time.monotonic() > self._placed_by:
            self._on_placed(self._child, "the controller does not say whether it could be frozen")

    def _on_signal(self, number: int, from_a_process: bool) -> None:
        if number == signal.SIGCHLD:
            self._on_child_change()
            return
        if self._status is not None or self._child is None:
            return
        # When a terminal is closed, only the session's leader is told.
        hung_up = number == signal.SIGHUP and os.getsid(0) == os.getpid()
        if from_a_process or hung_up:
            self._pass_on(self._child.pid, number)
        if number in _ENDING:
            self._send({"op": "signalled"})  # frozen, it could not do anything about it

    def _pass_on(self, pid: int, number: int) -> None:
        """Not reaped yet, so the pid is still the command's, dead or alive."""
        try:
            os.kill(pid, number)
        except PermissionError:
            self._messages.warn(f"signal {number} cannot be passed on: the command changed user")

    def _on_child_change(self) -> None:
        if self._status is not None or self._child is None:
            return
        flags = os.WNOHANG | os.WUNTRACED
        pid, status = os.waitpid(self._child.pid, flags)
        if pid == 0:
            return
        if os.WIFSTOPPED(status):
            stop_like(os.WSTOPSIG(status))
        elif os.WIFSIGNALED(status):
            self._status = 128 + os.WTERMSIG(status)
        else:
            self._status = os.WEXITSTATUS(status)

    def _read_news(self) -> None:
        """Take what the child says about its own start."""
        child = self._child
        if child is None or child.news_fd < 0 or child.read_news():
            return
        self._poll.unregister(child.news_fd)
        os.close(child.news_fd)
        child.news_fd = -1

    def _on_placed(self, child: Child, failure: str | None) -> None:
        """The command is in its cgroup, or (failure) it never will be."""
        if failure and self._options.require:
            child.abandon()
            raise LaunchError(failure, "--require asked for all of the protection")
        if failure:
            self._messages.warn(failure)
        child.release()

    # -- the controller

    def _send(self, message: Message, fd: int = -1) -> None:
        if self._channel is not None and not self._channel.send(message, fd):
            self._lost()

    def _read_messages(self) -> None:
        while self._channel is not None:
            try:
                message, fds = self._channel.receive(wait=False)
            except BlockingIOError:
                return
            except ControllerError as error:
                self._messages.error(str(error))
                self._lost()
                return
            for fd in fds:
                os.close(fd)
            if message is None:
                # Its end, not only its silence. A controller that lives would lose its hold.
                self._guard.reopen()
                self._lost()
            else:
                self._read_aside()
                self._on_message(message)

    def _read_aside(self) -> None:
        """Before anything is done that what was said earlier has a bearing on."""
        try:
            while self._channel is not None and (message := self._channel.receive_aside()):
                self._on_message(message)
        except ControllerError as error:
            self._messages.error(str(error))

    def _on_message(self, message: Message) -> None:
        operation = message.get("op")
        record = message.get("record")
        if operation == "region_open" and isinstance(record, dict):
            self._regions.begin(record)
        elif operation == "region" and isinstance(record, dict):
            self._end_region(record)
        elif operation == "error":
            self._messages.error(str(message.get("message")))
        elif operation == "placed" and self._child is not None:
            failure = message.get("failure")
            self._on_placed(self._child, None if failure is None else str(failure))
        elif operation == "unprotected":
            self._regions.unprotected = str(message.get("message"))
            if message.get("say"):  # else it says so itself, on its stderr
                self._messages.warn(self._regions.unprotected)
        elif operation == "out_of_memory":
            self._regions.out_of_memory = str(message.get("message"))
            self._messages.warn(self._regions.out_of_memory)
        elif operation == "bye":
            self._hang_up()
            self._abandon(OPEN_AT_END)  # by a process that outlives the command
            ended = message.get("command")
            if isinstance(ended, dict):
                self._on_command(ended)

    def _end_region(self, record: dict[str, object]) -> None:
        self._marks_for_it |= record.get("marker") in ("call", "nvtx", "events")
        self._regions.end(record)
        self._messages.info(_describe(record))
        self._write(record)

    def _on_command(self, ended: dict[str, object]) -> None:
        """What the controller says of the whole command."""
        frozen_s, longest_s = _seconds(ended, "frozen_s"), _seconds(ended, "longest_freeze_s")
        if count := ended.get("freezes"):
            self._messages.info(
                f"the command stood still {count} times, for {frozen_s:.3f} s in all, "
                f"{longest_s:.3f} s at most"
            )
        if ended.get("limit_suspected") is True:
            self._messages.warn(
                f"the command ended with status {self._status} just after it had stood still for "
                f"{frozen_s:.1f} s beside other commands' regions: if a time limit of its own "
                "fired, that may be why"
            )
        if waited_s := _seconds(ended, "limit_wait_s"):
            self._messages.warn(
                f"a time limit of the command's own passed while it waited {waited_s:.1f} s for "
                "the device, and a handler in Python runs only after that: raise the limit by what "
                "may be waited, or run fewer commands at once"
            )
        # Only then: a report is a list of regions to most who read it.
        missed = self._marks_for_it and ended.get("timed_pairs_outside")
        told = ended.get("limit_suspected") is True or ended.get("oom_while_shared")
        if told or waited_s or missed:
            self._write(ended)

    def _write(self, record: dict[str, object]) -> None:
        if self._report is None:
            return
        try:
            self._report.write(record)
        except OSError as error:
            self._messages.error(
                f"cannot write to {self._report.path}: {error.strerror}; its records are lost"
            )

    def _lost(self) -> None:
        """The controller is gone: nobody else will thaw the command, or end its records."""
        self._read_aside()
        self._hang_up()
        self._guard.thaw()
        if self._child is not None:
            self._child.release()
        self._abandon(CONTROLLER_LOST)
        # What the command does, or did, without a controller nobody can vouch for.
        self._regions.unknown = True
        if self._status is None:
            self._messages.warn("the controller is gone; the command goes on without protection")

    def _abandon(self, reason: str) -> None:
        for record in self._regions.abandon(reason):
            self._end_region(record)

    def _hang_up(self) -> None:
        if self._channel is None:
            return
        self._poll.unregister(self._channel.fileno())
        self._channel.close()
        self._channel = None

    # -- the end

    def _farewell(self, status: int) -> None:
        """Tell the controller and take the last records; at most a second."""
        self._send({"op": "ended", "status": status})
        deadline = time.monotonic() + _FAREWELL_S
        while self._channel is not None and (left := deadline - time.monotonic()) > 0:
            self._turn(left)
        if self._channel is not None:
            self._lost()
        if self._regions.unknown:
            self._guard.remove()

    def _verdict(self, status: int) -> int:
        regions = self._regions
        if text := unseen(regions.names):
            self._messages.warn(text)
        if not self._options.require:
            if regions.not_exclusive:
                self._messages.warn(self._summary())
            return status
        if regions.out_of_memory:
            raise LaunchError(regions.out_of_memory, "run it again")
        if regions.not_exclusive:
            raise LaunchError(self._summary(), _remedy(regions.commonest_reason()))
        if regions.unprotected:
            raise _required(f"a process of it ran unprotected: {regions.unprotected}")
        if regions.unknown:
            raise _required("the controller was lost before the last record")
        if self._report is not None and self._report.failed:
            raise _required(f"records could not be written to {self._report.path}")
        if not regions.ended and not status:
            raise LaunchError(
                "--require, but no region ran",
                "mark one, or make the command one: KREX_REGION=whole",
            )
        return status

    def _summary(self) -> str:
        regions = self._regions
        text = f"{regions.not_exclusive} of {regions.ended} regions not exclusive: "
        text += regions.commonest_reason() + (", mostly" if regions.has_several_reasons() else "")
        if self._report is not None:
            return f"{text} (all in {self._report.path})"
        return f"{text} (--report FILE tells all)"


def _required(text: str) -> KrexError:
    return LaunchError(text, "--require asked for all to be certain; `krex doctor` may say more")


def _remedy(reason: str) -> str:
    """What to do about a reason; the table takes a moment to import, so only now."""
    from krex.reasons import REASONS

    known = REASONS.get(reason.partition(":")[0])
    return known.remedy if known else "docs/records.md says what to do"


def _seconds(record: dict[str, object], key: str) -> float:
    value = record.get(key)
    return float(value) if isinstance(value, float | int) else 0.0


def _describe(record: dict[str, object]) -> str:
    text = f"region {record.get('name') or record.get('region_id')}: "
    if record.get("exclusive") is True:
        text += "exclusive"
    else:
        reasons = record.get("reasons")
        text += "not exclusive: " + ", ".join(
            map(str, reasons if isinstance(reasons, list) else [])
        )
    for key, what in (("wait_s", "waited"), ("hold_s", "held")):
        value = record.get(key)
        if isinstance(value, float | int):
            text += f", {what} {value:.3f} s"
    return text
