# SPDX-License-Identifier: Apache-2.0
"""Functions that time something on a simulated GPU, and may not come back. CPython 3.8 or newer."""

import signal

from call_harness import timed


def hangs(is_inside):
    """Has a pair of events inside, says so by calling what it is given, and never ends."""
    timed()
    is_inside()
    while True:
        signal.sigtimedwait([], 3600)


def returns():
    timed()


def nothing():
    """Is marked, and has no region."""
