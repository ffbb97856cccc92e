# SPDX-License-Identifier: Apache-2.0
"""One `krex run`, from the command line's meaning to the exit status."""

from __future__ import annotations

import os

from krex import paths, presets
from krex.errors import ControllerError, KrexError, LaunchError, UsageError
from krex.launch import environment, program, spawn
from krex.launch.autostart import connect_or_start
from krex.launch.channel import PROTOCOL, Channel, Message
from krex.launch.guard import Guard
from krex.launch.messages import Messages
from krex.launch.report import Report
from krex.launch.signals import Dispositions, use_default_interrupt
from krex.launch.supervise import Supervisor
from krex.marker.spec import Spec, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select

    from krex.launch.options import RunOptions
    from krex.launch.progress import Progress

# A controller that exits because it is idle may do so between our connect and our request.
_ATTEMPTS = 3
# The request is one packet; a longer command line is cut for the display that it is for.
_LONGEST_ARGV_BYTES = 32768
_SILENCE_S = 5.0


class Unprotected(Exception):
    """There is no protection to be had, for the reason given; the command can run without."""


class Enclosed(Exception):
    """The controller knows this `krex run` as part of a command, whatever the environment says."""

    def __init__(self, message: Message) -> None:
        super().__init__()
        self.command = str(message.get("command"))
        self.device = str(message.get("device"))
        self.simulated = message.get("simulated") is True
        self.lacking = _texts(message.get("lacking"))


class Admission:
    """What the controller granted: an identity, a device, a cgroup, a board."""

    __slots__ = (
        "board_fd",
        "cgroup",
        "channel",
        "command",
        "cpus",
        "device",
        "freeze_fd",
        "lacking",
        "reserved",
        "simulated",
    )

    def __init__(self, channel: Channel, message: Message, fds: list[int]) -> None:
        cgroup = message.get("cgroup")
        self.channel = channel
        self.command = str(message.get("command"))
        self.device = str(message.get("device"))
        self.simulated = message.get("simulated") is True
        self.cgroup = str(cgroup) if cgroup else None
        self.lacking = _texts(message.get("lacking"))
        # Where the command runs, and where it does in a region only; none: as it was started.
        self.cpus, self.reserved = _cpus(message.get("cpus")), _cpus(message.get("reserved"))
        if message.get("aside") is True and len(fds) > 1:
            channel.listen_aside(fds.pop(1))
        self.board_fd, self.freeze_fd = (*fds, -1, -1)[:2]


def _texts(value: object) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []


def _cpus(value: object) -> set[int]:
    return {cpu for cpu in value if isinstance(cpu, int)} if isinstance(value, list) else set()


def run(options: RunOptions) -> int:
    """Run the command; its exit status, or ours. Raises KrexError if it was not started.

    Does not return at all where the command needs nobody to wait for it: it takes our place.
    """
    _fill_standard_descriptors()
    dispositions = Dispositions()
    use_default_interrupt()
    messages = Messages(quiet=options.quiet, verbose=options.verbose)
    _region()  # before anything starts
    os.environ.update(presets.variables(options.presets))
    path = program.find_program(options.command[0])
    _tell_blind(path, options.command, messages)
    # Without a controller there are no simulated devices, and the command is not to find others.
    needs_us = "--require" if options.require else "--sim" if options.sim else None
    if os.environ.get("KREX_DISABLE", "0") not in ("", "0"):
        if needs_us:
            raise LaunchError("KREX_DISABLE is set", f"unset it, or leave out {needs_us}")
        raise _replace(options, path, dict(os.environ), dispositions)
    try:
        return _run_protected(options, path, dispositions, messages)
    except Unprotected as why:
        if needs_us:
            hint = f"or leave out {needs_us} to run unprotected"
            raise LaunchError(str(why), hint) from None
        messages.error(f"running without protection: {why}")
        raise _replace(options, path, dict(os.environ), dispositions) from None


def _run_protected(
    options: RunOptions, path: str, dispositions: Dispositions, messages: Messages
) -> int:
    library = _library()
    socket = _socket()
    enclosing = os.environ.get("KREX_COMMAND")
    if enclosing and _reachable(socket):
        variables = _nested_variables(options, path, library, socket, enclosing, messages)
        raise _replace(options, path, variables, dispositions)

    _tell_mere_names(options, messages)
    report = Report(options.report) if options.report else None
    try:
        admission = _ask(socket, options, messages, report)
    except Enclosed as enclosed:
        for text in enclosed.lacking:
            messages.warn(text)
        variables = _nested_variables(options, path, library, socket, enclosed.command, messages)
        _give_device(variables, enclosed, socket)
        raise _replace(options, path, variables, dispositions) from None
    messages.info(f"command {admission.command} admitted to {admission.device}")
    _tell_lacking(admission.lacking, options, messages)
    variables = _child_variables(path, library, socket, admission.command, messages)
    _give_device(variables, admission, socket)
    if report and os.path.abspath(variables.get("KREX_REPORT", "")) == os.path.abspath(report.path):
        del variables["KREX_REPORT"]  # each record once
    guard = Guard(admission.cgroup, admission.freeze_fd)
    if admission.cpus:
        _move_to(admission.cpus, messages)
        guard.know_cpus(admission.cpus, admission.reserved)
    supervisor = Supervisor(options, messages, admission.channel, guard, report)
    child = spawn.spawn(
        path, options.command, variables, cgroup=admission.cgroup, dispositions=dispositions
    )
    supervisor.watch_lease(library, admission.board_fd)
    return supervisor.see_through(child)


def _give_device(variables: dict[str, str], where: Admission | Enclosed, socket: str) -> None:
    """The device that the command is to find; without a word from us it finds them all."""
    if where.simulated:
        from krex.launch import simulated

        simulated.give(variables, where.device, socket)
    elif where.device.startswith("pci:"):
        from krex.launch import visible

        visible.give(variables, where.device)


def _move_to(cpus: set[int], messages: Messages) -> None:
    """The command inherits it, and what it starts. We stay off the reserved CPUs too."""
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        messages.warn(f"the command cannot be kept off the reserved CPUs: {error.strerror}")


def _tell_lacking(lacking: list[str], options: RunOptions, messages: Messages) -> None:
    """What protection is missing here; with --require, that is the end."""
    if lacking and options.require:
        raise LaunchError(lacking[0], "--require asked for all of the protection")
    for text in lacking:
        messages.warn(text)


def _tell_mere_names(options: RunOptions, messages: Messages) -> None:
    """`--device sim:N` alone takes a turn by that name, and gives the command no device."""
    names = [key for key in options.devices or () if key.startswith("sim:")]
    if names and not options.sim:
        messages.warn(
            f"{names[0]} is only a name without --sim; say --sim --device {','.join(names)}"
        )


def _region() -> Spec:
    """A misspelt KREX_REGION would protect less than its user believes. Raises UsageError."""
    try:
        return parse(os.environ.get("KREX_REGION", ""))
    except ValueError as error:
        raise UsageError(f"KREX_REGION: {error}", "correct or unset it") from None


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


def _nested_variables(
    options: RunOptions, path: str, library: str, socket: str, enclosing: str, messages: Messages
) -> dict[str, str]:
    _refuse_nested_options(options, messages)
    variables = _child_variables(path, library, socket, enclosing, messages)
    if options.report:
        variables["KREX_REPORT"] = os.path.abspath(options.report)
    return variables


def _refuse_nested_options(options: RunOptions, messages: Messages) -> None:
    """A nested command is part of the enclosing one, which has its options already."""
    if options.require:
        raise LaunchError(
            "--require cannot be given to a nested krex run", "give it to the outer one"
        )
    given = {
        "--device": options.devices,
        "--sim": options.sim,
        "--tenant": options.tenant,
        "--exclusive": options.exclusive != "region",
        "--protect": options.protect != "freeze",
        "--mem": options.mem,
    }
    for flag, value in given.items():
        if value:
            messages.warn(f"{flag} has no effect in a nested krex run; give it to the outer one")
    messages.info("joining the enclosing krex run")


def _child_variables(
    path: str, library: str, socket: str, command: str, messages: Messages
) -> dict[str, str]:
    obstacle = program.obstacle(path)
    if obstacle is not None:
        # Only this program: what it starts inherits the environment and may well be protected.
        messages.warn(f"{path} itself cannot be protected: {obstacle.why}")
    variables = environment.child_environment(
        os.environ,
        library=None if obstacle is not None and obstacle.harmful else library,
        bridge=paths.bridge_dir(),
        socket=socket,
        command=command,
    )
    environment.add_watch(variables, paths.watch_dir())
    if _region().ranges and not environment.add_nvtx(variables, library):
        messages.warn(
            "NVTX_INJECTION64_PATH names another tool, so NVTX ranges mark nothing; unset it, or "
            "mark otherwise"
        )
    return variables


def _tell_blind(path: str, command: list[str], messages: Messages) -> None:
    """A Python that cannot see us marks no functions: say so if the user named some."""
    if not _region().calls:
        return
    from krex.launch import interpreter

    python = interpreter.of(path, command)
    if python is not None and python.blind:
        messages.warn(
            f"KREX_REGION names functions, but {python.blind}, so they are not marked; "
            "leave it out, or mark by krex.region or KREX_REGION=events"
        )


def _replace(
    options: RunOptions, path: str, variables: dict[str, str], dispositions: Dispositions
) -> KrexError:
    """Become the command; returns the error to raise if that failed."""
    failure = spawn.replace(path, options.command, variables, dispositions)
    return program.exec_error(options.command[0], failure.errno or 0)


def _ask(socket: str, options: RunOptions, messages: Messages, report: Report | None) -> Admission:
    """Get admitted, however long the queue.

    Raises Unprotected if there is no controller to be had, LaunchError if it refuses, Enclosed.
    """
    request = _request(options)
    try:
        for _ in range(_ATTEMPTS):
            channel = connect_or_start(socket)
            if channel.send(request, report.shared_fd() if report else -1):
                admission = _await_admission(channel, messages, quiet=options.quiet)
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
        "devices": _devices(options),
        "simulated": _simulated(options),
        "exclusive": options.exclusive,
        "protect": options.protect,
        "memory": options.mem,
        "region": "whole"
        if "whole" in _region().words
        else os.environ.get("KREX_REGION") or "auto",
        "max_wait_s": options.max_wait,
        "max_hold_s": options.max_hold,
        "cpus": sorted(os.sched_getaffinity(0)),
    }


def _devices(options: RunOptions) -> list[str] | None:
    if not any(key.startswith(("pci:", "GPU-", "MIG-")) for key in options.devices or ()):
        return options.devices
    from krex.launch import devices, visible

    keys = [visible.by_uuid(name) for name in options.devices or ()]
    return visible.allowed(devices.known(keys), dict(os.environ))


def _simulated(options: RunOptions) -> Message | None:
    if not options.sim:
        return None
    from krex.launch import simulated

    return simulated.request(options)


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


def _await_admission(channel: Channel, messages: Messages, *, quiet: bool) -> Admission | None:
    """Follow the queue; None if the controller hung up. Raises LaunchError, Enclosed."""
    import select

    poll = select.poll()
    poll.register(channel.fileno(), select.POLLIN)
    if not poll.poll(_SILENCE_S * 1000):
        messages.warn("the controller does not answer; still waiting (Ctrl-C gives up)")
    message, fds = channel.receive()
    if message is not None and message.get("op") == "waiting":
        from krex.launch.progress import Progress

        progress = Progress(messages, quiet=quiet)
        try:
            message, fds = _wait_for_slot(channel, progress, message, poll)
        finally:
            progress.clear()
    operation = None if message is None else message.get("op")
    if message is not None and operation == "admitted":
        _check_version(message)
        return Admission(channel, message, fds)
    if message is not None and operation == "join":
        channel.close()
        raise Enclosed(message)
    if message is not None:
        _refused(message)
    return None


def _wait_for_slot(
    channel: Channel, progress: Progress, message: Message | None, poll: select.poll
) -> tuple[Message | None, list[int]]:
    """Show where we stand, until there is an answer (None: the end); it, with its descriptors."""
    fds: list[int] = []
    while message is not None and message.get("op") not in {"admitted", "error"}:
        if message.get("op") == "waiting":
            progress.show(message)
            # It sends the next only now, and unless we draw them, only those with a new reason.
            channel.send({"op": "told", "all": progress.in_place})
        progress.follow(poll)
        message, fds = channel.receive()
    return message, fds


def _check_version(message: Message) -> None:
    """One that does not know our version admits us all the same; the board may differ too."""
    theirs = message.get("protocol")
    if theirs != PROTOCOL:
        raise Unprotected(
            f"the controller speaks protocol {theirs}, and this krex {PROTOCOL}; "
            "`krex doctor` says what to do"
        )


def _refused(message: Message) -> None:
    text = str(message.get("message"))
    if message.get("fail_open"):
        raise Unprotected(text)
    # Most reasons say themselves what to do.
    reason, _, advice = text.rpartition("; ")
    hint = advice if reason else "`krex status` shows what there is"
    raise LaunchError(f"not admitted: {reason or text}", hint)
