# SPDX-License-Identifier: Apache-2.0
"""A section's checks, each in a child of its own: what crashes or hangs is a row, not the end."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable

from gpu.rows import Job
from gpu.runner import describe, end_group, ended_within

_LONGEST = 500  # of what an error says


class NotRun(Exception):
    """A check cannot be made here; the text completes "not run, because ..."."""


def attempt(job: Job, check: str, function: Callable[[], None], limit_s: float) -> None:
    """Have `function` write its rows. It finds no device opened yet: the parent never opens one.

    What it leaves behind, of whatever it started, ends with it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        _in_child(job, check, function)
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)  # whoever of the two comes first
    in_time = ended_within(pid, limit_s)
    end_group(pid)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not in_time:
        job.failed(check, f"did not end within {limit_s:g} s")
    elif status:
        job.failed(check, describe(status))


def _in_child(job: Job, check: str, function: Callable[[], None]) -> None:
    try:
        function()
    except NotRun as why:
        job.not_run(check, str(why))
    except BaseException as error:  # noqa: BLE001 - nothing may get out into the parent's copy
        traceback.print_exc()
        job.failed(check, f"{type(error).__name__}: {error}"[:_LONGEST])
    finally:
        sys.stderr.flush()
        os._exit(0)  # a driver's exit handlers are not what is checked
