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
    """One row of the table. `kind` is text, choice, seconds, flag or count."""

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
        "device",
        "text",
        ("--device",),
        "Run on this device, by the name that `krex status` shows. Default: cpu:0.",
        metavar="DEVICE",
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
        "report",
        "text",
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
        "device",
        "exclusive",
        "max_hold",
        "max_wait",
        "quiet",
        "report",
        "require",
        "tenant",
        "verbose",
    )

    def __init__(  # noqa: PLR0913 - one argument an option
        self,
        command: Sequence[str],
        *,
        device: str | None = None,
        tenant: str | None = None,
        exclusive: str = "region",
        report: str | None = None,
        require: bool = False,
        max_wait: float | None = None,
        max_hold: float = DEFAULT_MAX_HOLD_S,
        quiet: bool = False,
        verbose: int = 0,
    ) -> None:
        self.command = list(command)
        self.device = device
        self.tenant = tenant
        self.exclusive = exclusive
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
    if option.kind != "seconds":
        values[option.name] = value
        return True
    try:
        values[option.name] = seconds(value)
    except ValueError:
        return False
    return True


_BY_FLAG = {flag: option for option in OPTIONS for flag in option.flags}
