# SPDX-License-Identifier: Apache-2.0
"""The record of a mark that yielded and came back: one, of all its holds."""

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from krex.record import EarlierHold, RegionRecord

if TYPE_CHECKING:
    from krex.controller.timing import Audit


def is_covered(audit: "Audit") -> bool:
    """Whether all that was timed lies in its holds. By the host's clock nobody sees what was."""
    return bool(audit.sums["pairs"]) and not audit.sums["split"]


def take_in(record: RegionRecord, earlier: RegionRecord) -> None:
    """Add to a mark's record what is known of it until it yielded."""
    record.reasons = list(dict.fromkeys([*earlier.reasons, *record.reasons]))
    record.exclusive = not record.reasons
    record.wait_s += earlier.wait_s
    record.hold_s = _sum(record.hold_s, earlier.hold_s)
    record.submissions = _sum(record.submissions, earlier.submissions)
    record.earlier_holds = [
        *(earlier.earlier_holds or []),
        EarlierHold(
            hold_id=earlier.hold_id or "",
            granted_ns=earlier.granted_ns or 0,
            released_ns=earlier.released_ns or 0,
            holder_pids=earlier.holder_pids or [],
        ),
    ]


def _sum(one: Any, other: Any) -> Any:
    """Of two numbers; unknown if one of them is."""
    return UNSET if one is UNSET or other is UNSET else one + other
