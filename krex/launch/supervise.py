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
from krex.launch.report import Regions
from krex.launch.signals import SignalQueue, stop_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from krex.launch.channel import Channel, Message
    from krex.launch.guard import Guard
    from krex.launch.messages import Messages
    from krex.launch.options import RunOptions
    from krex.launch.report import Report
    from krex.launch.spawn import Child

_LEASE_CHECK_S = 0.5
_FAREWELL_S = 1.0


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
        self._signals = SignalQueue()
        self._poll = select.poll()
        self._poll.register(self._signals.fd, select.POLLIN)
        self._poll.register(channel.fileno(), select.POLLIN)
        self._status: int | None = None
        self._child: Child | None = None

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
        self._poll.register(child.news_fd, select.POLLIN)
        self._send({"op": "started", "pid": child.pid})
        while self._status is None:
            self._turn(_LEASE_CHECK_S)
        self._read_news()
        self._farewell(self._status)
        if child.exec_errno:
            raise exec_error(self._options.command[0], child.exec_errno)
        return self._verdict(self._status)

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

    def _on_signal(self, number: int, from_a_process: bool) -> None:
        if number == signal.SIGCHLD:
            self._on_child_change()
        elif from_a_process and self._status is None and self._child is not None:
            # Not reaped yet, so the pid is still the command's, dead or alive.
            try:
                os.kill(self._child.pid, number)
            except PermissionError:
                self._messages.warn(
                    f"signal {number} cannot be passed on: the command changed user"
                )

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
        if child.no_cgroup_errno:
            reason = os.strerror(child.no_cgroup_errno)
            self._messages.warn(
                f"the command is not in a cgroup of its own ({reason}) and cannot be frozen; "
                "run `krex serve` to see why"
            )

    # -- the controller

    def _send(self, message: Message) -> None:
        if self._channel is not None and not self._channel.send(message):
            self._lost()

    def _read_messages(self) -> None:
        while self._channel is not None:
            try:
                message, fds = self._channel.receive(wait=False)
            except BlockingIOError:
                return
            except ControllerError as error:
                self._messages.error(str(error))
                message, fds = None, []
            for fd in fds:
                os.close(fd)
            if message is None:
                self._lost()
            else:
                self._on_message(message)

    def _on_message(self, message: Message) -> None:
        operation = message.get("op")
        record = message.get("record")
        if operation == "region_open" and isinstance(record, dict):
            self._regions.begin(record)
        elif operation == "region" and isinstance(record, dict):
            self._end_region(record)
        elif operation == "error":
            self._messages.error(str(message.get("message")))
        elif operation == "bye":
            self._hang_up()

    def _end_region(self, record: dict[str, object]) -> None:
        self._regions.end(record)
        self._messages.info(_describe(record))
        if self._report is None:
            return
        try:
            self._report.write(record)
        except OSError as error:
            self._messages.error(f"cannot write to {self._report.path}: {error.strerror}")

    def _lost(self) -> None:
        """The controller is gone: nobody else will thaw the command, or end its records."""
        self._hang_up()
        self._guard.thaw()
        for record in self._regions.abandon():
            self._end_region(record)
        # What the command does, or did, without a controller nobody can vouch for.
        self._regions.unknown = True
        if self._status is None:
            self._messages.warn("the controller is gone; the command goes on without protection")

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
        if regions.not_exclusive:
            self._messages.warn(self._summary())
        if not self._options.require:
            return status
        if regions.not_exclusive:
            raise _required(
                f"{regions.not_exclusive} of {regions.ended} regions were not exclusive"
            )
        if regions.unknown:
            raise _required("the controller was lost before the last record")
        return status

    def _summary(self) -> str:
        regions = self._regions
        text = f"{regions.not_exclusive} of {regions.ended} regions not exclusive"
        text += f", mostly: {regions.commonest_reason()}"
        if self._report is not None:
            return f"{text} (all in {self._report.path})"
        return f"{text} (--report FILE tells all)"


def _required(text: str) -> KrexError:
    return LaunchError(text, "--require asked for all to be; run again when the device is quieter")


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
