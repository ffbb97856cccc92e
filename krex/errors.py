# SPDX-License-Identifier: Apache-2.0
"""The errors a user can meet, each with its exit status and the next thing to do.

They are caught once, in `krex.cli.main`, and printed as `krex: MESSAGE; HINT` without a traceback.
"""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_OWN_FAILURE = 125
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127


class KrexError(Exception):
    """A failure that the user can do something about.

    `message` says what went wrong; `hint` says what to do next.
    """

    exit_code = EXIT_FAILED

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}"


class NotBuiltError(KrexError):
    """A build product is missing."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} does not exist", "build it with `python build.py`")


class ControllerError(KrexError):
    """The controller cannot be reached, or answers something unexpected."""


class UsageError(KrexError):
    """What was asked for makes no sense."""

    exit_code = EXIT_USAGE


class LaunchError(KrexError):
    """`krex run` failed before (or with `--require`, because of what happened while) it ran."""

    exit_code = EXIT_OWN_FAILURE


class CommandNotExecutableError(KrexError):
    """The command exists and cannot be executed."""

    exit_code = EXIT_NOT_EXECUTABLE


class CommandNotFoundError(KrexError):
    """The command does not exist."""

    exit_code = EXIT_NOT_FOUND
