# SPDX-License-Identifier: Apache-2.0
"""One `krex run`, from the command line's meaning to the exit status."""

from __future__ import annotations

import os

from krex import paths
from krex.errors import ControllerError, KrexError, LaunchError
from krex.launch import environment, program, spawn
from krex.launch.autostart import connect_or_start
from krex.launch.channel import PROTOCOL, Channel, Message
from krex.launch.guard import Guard
from krex.launch.messages import Messages
from krex.launch.report import Report
from krex.launch.signals import Dispositions, use_default_interrupt
from krex.launch.supervise import Supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from krex.launch.options import RunOptions

# A controller that exits because it is idle may do so between our connect and our request.
_ATTEMPTS = 3
# The request is one packet; a longer command line is cut for the display that it is for.
_LONGEST_ARGV_BYTES = 32768
_SILENCE_S = 5.0


class Unprotected(Exception):
    """There is no protection to be had, for the reason given; the command can run without."""


class Admission:
    """What the controller granted: an identity, a device, a cgroup, a board."""

    __slots__ = ("board_fd", "cgroup", "channel", "command", "device", "lacking")

    def __init__(self, channel: Channel, message: Message, fds: list[int]) -> None:
        cgroup = message.get("cgroup")
        lacking = message.get("lacking")
        self.channel = channel
        self.command = str(message.get("command"))
        self.device = str(message.get("device"))
        self.cgroup = str(cgroup) if cgroup else None
        self.lacking = [str(text) for text in lacking] if isinstance(lacking, list) else []
        self.board_fd = fds[0] if fds else -1


def run(options: RunOptions) -> int:
    """Run the command; its exit status, or ours. Raises KrexError if it was not started.

    Does not return at all where the command needs nobody to wait for it: it takes our place.
    """
    _fill_standard_descriptors()
    dispositions = Dispositions()
    use_default_interrupt()
    messages = Messages(quiet=options.quiet, verbose=options.verbose)
    path = program.find_program(options.command[0])
    if os.environ.get("KREX_DISABLE") == "1":
        raise _replace(options, path, dict(os.environ), dispositions)
    try:
        return _run_protected(options, path, dispositions, messages)
    except Unprotected as why:
        if options.require:
            raise LaunchError(str(why), "or leave out --require to run unprotected") from None
        messages.error(f"running without protection: {why}")
        raise _replace(options, path, dict(os.environ), dispositions) from None


def _run_protected(
    options: RunOptions, path: str, dispositions: Dispositions, messages: Messages
) -> int:
    library = _library()
    socket = _socket()
    enclosing = os.environ.get("KREX_COMMAND")
    if enclosing and _reachable(socket):
        _refuse_nested_options(options, messages)
        variables = _child_variables(path, library, socket, enclosing, messages)
        if options.report:
            variables["KREX_REPORT"] = os.path.abspath(options.report)
        raise _replace(options, path, variables, dispositions)

    report = Report(options.report) if options.report else None
    admission = _ask(socket, options, messages)
    messages.info(f"command {admission.command} admitted to {admission.device}")
    for text in admission.lacking:
        messages.warn(text)
    variables = _child_variables(path, library, socket, admission.command, messages)
    if report and os.path.abspath(variables.get("KREX_REPORT", "")) == os.path.abspath(report.path):
        del variables["KREX_REPORT"]  # each record once
    guard = Guard(admission.cgroup)
    supervisor = Supervisor(options, messages, admission.channel, guard, report)
    child = spawn.spawn(
        path, options.command, variables, cgroup=admission.cgroup, dispositions=dispositions
    )
    supervisor.watch_lease(library, admission.board_fd)
    return supervisor.see_through(child)


def _fill_standard_descriptors() -> None:
    """Occupy 0, 1 and 2 if we were started with them closed.

    Otherwise the next file we open would be somebody's stdout. Close-on-exec: the command finds
    them as closed as we did.
    """
    while True:
        fd = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        if fd > 2:
            os.close(fd)
            return


def _library() -> str:
    try:
        library = paths.library_path()
    except KrexError as error:
        raise Unprotected(str(error)) from None
    if not environment.can_preload(library):
        raise Unprotected(
            f"no preload can name {library}; install krex where no ':' is in the path"
        )
    return library


def _socket() -> str:
    try:
        return paths.socket_path()
    except ControllerError as error:
        raise Unprotected(str(error)) from None


def _reachable(socket: str) -> bool:
    try:
        Channel(socket).close()
    except OSError:
        return False
    return True


def _refuse_nested_options(options: RunOptions, messages: Messages) -> None:
    """A nested command is part of the enclosing one, which has its options already."""
    if options.require:
        raise LaunchError(
            "--require has no effect in a nested krex run", "give it to the outer krex run"
        )
    given = [("--device", options.device), ("--tenant", options.tenant)]
    given.append(("--exclusive", None if options.exclusive == "region" else options.exclusive))
    for flag, value in given:
        if value is not None:
            messages.warn(f"{flag} has no effect in a nested krex run; give it to the outer one")
    messages.info("joining the enclosing krex run")


def _child_variables(
    path: str, library: str, socket: str, command: str, messages: Messages
) -> dict[str, str]:
    obstacle = program.obstacle(path)
    if obstacle is not None:
        # Only this program: what it starts inherits the environment and may well be protected.
        messages.warn(f"{path} itself cannot be protected: {obstacle.why}")
    return environment.child_environment(
        os.environ,
        library=None if obstacle is not None and obstacle.harmful else library,
        bridge=paths.bridge_dir(),
        socket=socket,
        command=command,
    )


def _replace(
    options: RunOptions, path: str, variables: dict[str, str], dispositions: Dispositions
) -> KrexError:
    """Become the command; returns the error to raise if that failed."""
    failure = spawn.replace(path, options.command, variables, dispositions)
    return program.exec_error(options.command[0], failure.errno or 0)


def _ask(socket: str, options: RunOptions, messages: Messages) -> Admission:
    """Get admitted, however long the queue.

    Raises Unprotected if there is no controller to be had, LaunchError if it refuses.
    """
    try:
        for _ in range(_ATTEMPTS):
            channel = connect_or_start(socket)
            if channel.send(_request(options)):
                admission = _await_admission(channel, messages)
                if admission is not None:
                    return admission
            channel.close()
    except ControllerError as error:
        raise Unprotected(str(error)) from None
    raise Unprotected(f"the controller at {socket} hangs up; run `krex serve` to see why")


def _request(options: RunOptions) -> Message:
    return {
        "op": "run",
        "protocol": PROTOCOL,
        "argv": _displayable(options.command),
        "tenant": options.tenant,
        "device": options.device,
        "exclusive": options.exclusive,
        "region": os.environ.get("KREX_REGION") or "auto",
        "max_wait_s": options.max_wait,
        "max_hold_s": options.max_hold,
    }


def _displayable(argv: list[str]) -> list[str]:
    """The command line as clean Unicode (arguments are bytes, really) that fits into a packet."""
    shown: list[str] = []
    left = _LONGEST_ARGV_BYTES
    for word in argv:
        data = os.fsencode(word)
        if len(data) > left:
            return [*shown, data[:left].decode("utf-8", "replace") + "..."]
        shown.append(data.decode("utf-8", "replace"))
        left -= len(data) + 1
    return shown


def _await_admission(channel: Channel, messages: Messages) -> Admission | None:
    """Follow the queue; None if the controller hung up."""
    import select

    poll = select.poll()
    poll.register(channel.fileno(), select.POLLIN)
    if not poll.poll(_SILENCE_S * 1000):
        messages.warn("the controller does not answer; still waiting (Ctrl-C gives up)")
    while True:
        message, fds = channel.receive()
        if message is None:
            return None
        if message.get("op") == "admitted":
            return Admission(channel, message, fds)
        if message.get("op") == "waiting":
            messages.warn(f"waiting, place {message.get('place')}: {message.get('why')}")
        if message.get("op") == "error":
            _refused(message)


def _refused(message: Message) -> None:
    text = str(message.get("message"))
    if message.get("fail_open"):
        raise Unprotected(text)
    raise LaunchError(f"not admitted: {text}", "`krex status` shows what there is")
