# SPDX-License-Identifier: Apache-2.0
"""Signals of `krex run`: blocked while the command runs, read from a signalfd, passed on.

The command stays in our process group, so whatever the terminal sends has reached it already;
what somebody sent to our pid alone has not.
"""

from __future__ import annotations

import os
import signal
import struct

from krex.launch.libc import open_signalfd

# Not ours to pass on: they cannot be caught, are raised by an instruction of the process itself,
# or concern our own use of the terminal and of pipes.
_LEFT_ALONE = frozenset(
    {
        signal.SIGKILL,
        signal.SIGSTOP,
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGTRAP,
        signal.SIGABRT,
        signal.SIGSYS,
        signal.SIGPIPE,
        signal.SIGTTIN,
        signal.SIGTTOU,
    }
)
# The stops of job control. A plain SIGSTOP is not among them: whoever sends that to the command
# may continue it alone, and we have to notice its end.
_JOB_STOPS = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})

_INFO = struct.Struct("=Iii116x")  # of struct signalfd_siginfo: ssi_signo, ssi_errno, ssi_code


def use_default_interrupt() -> None:
    """Let Ctrl-C end us at once, without a traceback, as long as there is no command to pass it to.

    Stays ignored if it was when we were started (nohup, background jobs of a script).
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


class Dispositions:
    """The signal state that the command is to have: the one we were started with."""

    def __init__(self) -> None:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._child = signal.getsignal(signal.SIGCHLD)
        # An ignored SIGCHLD, inherited, would reap the command behind our back.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def restore(self) -> None:
        """Set it; for the child, before exec."""
        # Python ignores these two at its start, and exec would pass that on.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        if self._child is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


class SignalQueue:
    """Our signals, blocked from construction on and read by `take`."""

    def __init__(self) -> None:
        caught = signal.valid_signals() - _LEFT_ALONE
        signal.pthread_sigmask(signal.SIG_BLOCK, caught)
        self.fd = open_signalfd(caught)

    def take(self) -> list[tuple[int, bool]]:
        """All pending signals: (number, whether a process sent it to us)."""
        try:
            data = os.read(self.fd, 16 * _INFO.size)
        except BlockingIOError:
            return []
        # The kernel's own codes are positive; SI_USER, SI_QUEUE, SI_TKILL are not.
        return [(number, code <= 0) for number, _, code in _INFO.iter_unpack(data)]


def stop_like(number: int) -> None:
    """Stop ourselves if the command was stopped by job control, so that the shell notices."""
    if number in _JOB_STOPS:
        os.kill(os.getpid(), signal.SIGSTOP)
