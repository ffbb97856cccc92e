# SPDX-License-Identifier: Apache-2.0
"""Named stop points, at which a test kills or stops whom it likes.

KREX_TEST_STOP_AT=NAME:ACTION; NAME is one point, or `*` for all of them. ACTION is what happens to
the process that gets there: `kill` (SIGKILL) or `stop` (SIGSTOP) by its own hand; or the path of a
unix socket: it connects, writes "NAME PID" and a newline, and goes on when the other side closes.
shim/stop.h is the same for the library. Without the variable, which is read once, a point is a call
of an empty function.
"""

from __future__ import annotations

import os

VARIABLE = "KREX_TEST_STOP_AT"


def _ask(path: str, name: str) -> None:
    """Say where we are, and wait; a test that is gone lets us go on."""
    import socket

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as test:
            test.connect(path)
            test.sendall(f"{name} {os.getpid()}\n".encode())
            test.recv(1)
    except OSError:
        pass


def _stop(name: str) -> None:
    import signal

    wanted, _, action = os.environ[VARIABLE].partition(":")
    if wanted not in (name, "*"):
        return
    if action.startswith("/"):
        _ask(action, name)
    else:
        os.kill(os.getpid(), signal.SIGKILL if action == "kill" else signal.SIGSTOP)


def _pass(name: str) -> None:
    """Nobody tests."""


stop_at = _stop if VARIABLE in os.environ else _pass
