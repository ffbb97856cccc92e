# SPDX-License-Identifier: Apache-2.0
"""The options of `krex run`: one table for the click command and for the fast parser.

Importing click costs 35 ms, more than everything else `krex run` does together. A well-formed
command line is therefore parsed here; whatever is not (a misspelling, `--help`, no command) is
left to click, whose answer then is the only one that users see.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_MAX_HOLD_S = 30.0


class Option:
    """One row of the table.

    `kind` is text, list, choice, seconds, number, size, file, flag or count.
    """

    __slots__ = ("choices", "default", "flags", "help", "kind", "metavar", "name")

    def __init__(
        self,
        name: str,
        kind: str,
        flags: tuple[str, ...],
        help_text: str,
        *,
        metavar: str | None = None,
        choices: tuple[str, ...] = (),
        default: str | float | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.flags = flags
        self.help = help_text
        self.metavar = metavar
        self.choices = choices
        self.default = default


OPTIONS = (
    Option(
        "devices",
        "list",
        ("--device",),
        "Run on this device, by the name that `krex status` shows or by the driver's (GPU-..., "
        "MIG-...). Default: cpu:0. Of several, given by commas or again, it gets the one with the "
        "fewest commands.",
        metavar="DEVICE",
    ),
    Option("sim", "flag", ("--sim",), "Run on a simulated GPU, by CUDA or HIP."),
    Option(
        "sim_gpus",
        "number",
        ("--sim-gpus",),
        "Of so many simulated GPUs, run on the one with the fewest commands. Default: those that "
        "are in use, else 1.",
        metavar="N",
    ),
    Option(
        "sim_model",
        "text",
        ("--sim-model",),
        "Take the simulated GPUs' durations from FILE, in TOML.",
        metavar="FILE",
    ),
    Option(
        "sim_log",
        "text",
        ("--sim-log",),
        "Write the simulated GPUs' log of intervals to FILE.",
        metavar="FILE",
    ),
    Option(
        "tenant",
        "text",
        ("--tenant",),
        "Whom the command is counted for, in records and in `krex status`. Default: your user id.",
        metavar="NAME",
    ),
    Option(
        "exclusive",
        "choice",
        ("--exclusive",),
        "What gets the device alone. 'region': each timed region, while it runs. 'command': the "
        "whole command; it starts when no other runs there, and others wait for its end. 'none': "
        "nothing; it shares the device and its records say so.",
        choices=("region", "command", "none"),
        default="region",
    ),
    Option(
        "protect",
        "choice",
        ("--protect",),
        "What a region does to the other commands. 'gate' keeps them off the device, 'pin' off the "
        "cores of the region's threads too, and 'freeze' has them stand still.",
        choices=("gate", "pin", "freeze"),
        default="freeze",
    ),
    Option(
        "mem",
        "size",
        ("--mem",),
        "Reserve so much of the device's memory, as in 8GiB; wait to start until it is there.",
        metavar="SIZE",
    ),
    Option(
        "presets",
        "text",
        ("--presets",),
        "Mark functions of the harnesses that FILE describes too, in TOML.",
        metavar="FILE",
    ),
    Option(
        "report",
        "file",
        ("--report",),
        "Append one line of JSON per region to FILE: whether it was exclusive, and if not, why.",
        metavar="FILE",
    ),
    Option(
        "require",
        "flag",
        ("--require",),
        "Exit with status 125 if any region was not exclusive; the command itself runs to its end. "
        "If it is known before that protection is missing, do not start it.",
    ),
    Option(
        "max_wait",
        "seconds",
        ("--max-wait",),
        "Wait at most this long for exclusivity, then go on without (0: do not wait). "
        "Default: as long as it takes.",
        metavar="SECONDS",
    ),
    Option(
        "max_hold",
        "seconds",
        ("--max-hold",),
        "Give the device back when a marked region has held it for this long.",
        metavar="SECONDS",
        default=DEFAULT_MAX_HOLD_S,
    ),
    Option("quiet", "flag", ("-q", "--quiet"), "Print errors only."),
    Option(
        "verbose",
        "count",
        ("-v", "--verbose"),
        "Say what happens: admission, each region, time spent frozen. Repeat for more.",
    ),
)


class RunOptions:
    """What the user asked of `krex run`; times in seconds, None where nothing was said."""

    __slots__ = (
        "command",
        "devices",
        "exclusive",
        "max_hold",
        "max_wait",
        "mem",
        "presets",
        "protect",
        "quiet",
        "report",
        "require",
        "sim",
        "sim_gpus",
        "sim_log",
        "sim_model",
        "tenant",
        "verbose",
    )

    def __init__(  # noqa: PLR0913 - one argument an option
        self,
        command: Sequence[str],
        *,
        devices: Sequence[str] | None = None,
        sim: bool = False,
        sim_gpus: int | None = None,
        sim_model: str | None = None,
        sim_log: str | None = None,
        tenant: str | None = None,
        exclusive: str = "region",
        protect: str = "freeze",
        mem: int | None = None,
        presets: str | None = None,
        report: str | None = None,
        require: bool = False,
        max_wait: float | None = None,
        max_hold: float = DEFAULT_MAX_HOLD_S,
        quiet: bool = False,
        verbose: int = 0,
    ) -> None:
        self.command = list(command)
        self.devices = split(devices or ()) or None
        self.sim = sim or any(wish is not None for wish in (sim_gpus, sim_model, sim_log))
        self.sim_gpus = sim_gpus
        self.sim_model = sim_model
        self.sim_log = sim_log
        self.tenant = tenant
        self.exclusive = exclusive
        self.protect = protect
        self.mem = mem
        self.presets = presets
        self.report = report
        self.require = require
        self.max_wait = max_wait
        self.max_hold = max_hold
        self.quiet = quiet
        self.verbose = verbose


def seconds(text: str) -> float:
    """Parse a duration in seconds; raises ValueError unless it is finite and not negative."""
    value = float(text)
    if not 0.0 <= value < float("inf"):
        raise ValueError(text)
    return value


def number(text: str) -> int:
    """Parse a whole number; raises ValueError unless it is 1 or more."""
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def size(text: str) -> int:
    """Parse a size such as 512MiB or 1.5GiB into bytes; raises ValueError unless it is one."""
    count = float(text[:-3])
    value = int(count * _UNITS.get(text[-3:], 0)) if 0.0 < count < float("inf") else 0
    if value < 1:
        raise ValueError(text)
    return value


def file_name(text: str) -> str:
    """The name of a file to write; raises ValueError if it is empty, as an unset variable is."""
    if not text:
        raise ValueError(text)
    return text


_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

# How the value of an option is read, by its kind, and what it must be.
READERS = {
    "seconds": (seconds, "a number of seconds, 0 or more"),
    "number": (number, "a whole number, 1 or more"),
    "size": (size, "a size in KiB, MiB, GiB or TiB, such as 8GiB"),
    "file": (file_name, "the name of a file"),
}


def split(words: Sequence[str]) -> list[str]:
    """The devices that are named by these words, each one or several with commas."""
    return [name for word in words for name in word.split(",")]


def parse_fast(arguments: Sequence[str]) -> RunOptions | None:
    """Parse a well-formed command line; None means: let click have it."""
    values: dict[str, object] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if not _take(word, rest, values):
            return None
    if not rest:
        return None
    return RunOptions(rest, **values)  # type: ignore[arg-type]


def _take(word: str, rest: list[str], values: dict[str, object]) -> bool:
    """Parse one option word, with its value from `rest` where it needs one."""
    if not word.startswith("--"):
        return all(_take_switch("-" + letter, values) for letter in word[1:])
    flag, has_value, value = word.partition("=")
    option = _BY_FLAG.get(flag)
    if option is None or option.kind in ("flag", "count"):
        return not has_value and _take_switch(flag, values)
    if not has_value:
        if not rest:
            return False
        value = rest.pop(0)
    return _take_value(option, value, values)


def _take_switch(flag: str, values: dict[str, object]) -> bool:
    option = _BY_FLAG.get(flag)
    if option is None or option.kind not in ("flag", "count"):
        return False
    if option.kind == "flag":
        values[option.name] = True
    else:
        before = values.get(option.name, 0)
        assert isinstance(before, int)
        values[option.name] = before + 1
    return True


def _take_value(option: Option, value: str, values: dict[str, object]) -> bool:
    if option.kind == "choice" and value not in option.choices:
        return False
    if option.kind == "list":
        before = values.setdefault(option.name, [])
        assert isinstance(before, list)
        before.append(value)
        return True
    read, _ = READERS.get(option.kind, (str, ""))
    try:
        values[option.name] = read(value)
    except ValueError:
        return False
    return True


_BY_FLAG = {flag: option for option in OPTIONS for flag in option.flags}
