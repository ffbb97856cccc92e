# SPDX-License-Identifier: Apache-2.0
"""The controller's priority: what it thaws must not keep it from thawing the next."""

import contextlib
import os

NICE = -10


def raise_priority() -> str:
    """Raise this process's priority as far as it may be; says how far. Raises OSError if it can't.

    A woken sibling takes the core from a controller of ordinary priority, and the rest of the group
    stays frozen for milliseconds. The controller sleeps nearly always, so it may have real-time
    priority; what it starts does not inherit it.
    """
    with contextlib.suppress(OSError):
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(1))
        return "SCHED_FIFO"
    os.setpriority(os.PRIO_PROCESS, 0, NICE)
    return f"nice {NICE}"
