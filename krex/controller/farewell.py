# SPDX-License-Identifier: Apache-2.0
"""What is told of a command at its end: did it fail because it was frozen, or for want of memory?

Deadlines run on while a command stands still, and those that passed fire at its thaw. Nobody can
see from outside why a program failed, so this is a suspicion, with its grounds beside it.
"""

import time
from typing import TYPE_CHECKING

from msgspec import UNSET

from krex.command_record import SCHEMA, SCHEMA_VERSION, CommandRecord
from krex.protect.freezer import Stillness

if TYPE_CHECKING:
    from krex.controller.command import Command

# A limit that passed meanwhile fires at once; the program may take a moment to end of it.
SOON_S = 1.0
# Below these no limit with any margin is missed, and many failures have some thaw before them.
LEAST_S, LEAST_SHARE = 0.1, 0.01
_INTERRUPTED = 130


def command_record(command: "Command", status: object) -> CommandRecord | None:
    """The record of a command that just ended; None if its `krex run` didn't say how."""
    if not isinstance(status, int) or command.started is None:
        return None
    duration_s = time.monotonic() - command.started
    timed = command.audit()
    still = command.group.stillness() if command.group else Stillness()
    return CommandRecord(
        schema=SCHEMA,
        schema_version=SCHEMA_VERSION,
        command=command.id,
        tenant=command.tenant,
        device=command.device.key,
        argv=command.argv,
        status=status,
        duration_s=duration_s,
        freezes=still.times,
        frozen_s=still.total_s,
        longest_freeze_s=still.longest_s,
        after_thaw_s=UNSET if still.ago_s is None else still.ago_s,
        oom_while_shared=list(command.refusals) or UNSET,
        limit_wait_s=command.limit_wait_s() or UNSET,
        timed_pairs_total=timed.sums["pairs"],
        timed_pairs_outside=timed.outside,
        limit_suspected=suspects_limit(still, status, duration_s),
    )


def suspects_limit(still: Stillness, status: int, duration_s: float) -> bool:
    """Whether a time limit of the command's own may have fired because it stood still."""
    failed = status not in {0, _INTERRUPTED}
    soon = still.ago_s is not None and still.ago_s <= SOON_S
    return failed and soon and still.total_s >= max(LEAST_S, LEAST_SHARE * duration_s)
