# SPDX-License-Identifier: Apache-2.0
"""What the shims count of timed pairs, for the records (shim/audit.h says what is counted)."""

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from krex.native import ffi, lib
from krex.timing_record import Timing

if TYPE_CHECKING:
    from krex.controller.mark import Process

PROCESS = -1  # in place of a mark: all of the process's life
_SUMS = (
    "events",
    "pairs",
    "pairs_inside",
    "timed_ns",
    "cold",
    "below_floor",
    "empty",
    "uncovered",
    "by_others",
    "after_stop",
    "disturbed",
    "split",
)


class Audit:
    """The counts of one mark, or of several processes together."""

    def __init__(self) -> None:
        self.sums = dict.fromkeys(_SUMS, 0)
        self.shortest: tuple[int, int] | None = None  # ns, launches
        self.gap_ns = 0  # of the mark added last: how long it usually is idle

    def add(self, process: "Process", mark: int = PROCESS) -> None:
        """Add what one of its marks counted, or all of it."""
        found: Any = ffi.new("struct krex_audit *")
        lib.krex_block_audit(process.device.board.c, process.block, mark, found)
        for name in _SUMS:
            self.sums[name] += int(getattr(found, name))
        self.gap_ns = int(found.gap_ns)
        if found.shortest_ns:
            pair = (int(found.shortest_ns), int(found.shortest_launches))
            self.shortest = min(pair, self.shortest or pair)

    def add_all(self, other: "Audit") -> None:
        """Add another's."""
        for name in _SUMS:
            self.sums[name] += other.sums[name]
        if other.shortest:
            self.shortest = min(other.shortest, self.shortest or other.shortest)

    @property
    def outside(self) -> int:
        """Pairs that were not, both ends, in one region."""
        return max(0, self.sums["pairs"] - self.sums["pairs_inside"])

    def timing(self, whole: "Audit") -> Timing:
        """What to say of a region that counted this; `whole` is what its process did until then."""
        sums = self.sums
        return Timing(
            timed_events=sums["events"],
            timed_pairs_inside=sums["pairs"],
            timed_pairs_total=whole.sums["pairs"],
            timed_pairs_outside=whole.outside,
            timed_s=sums["timed_ns"] * 1e-9,
            shortest_pair_s=self.shortest[0] * 1e-9 if self.shortest else UNSET,
            shortest_pair_launches=self.shortest[1] if self.shortest else UNSET,
            cold_start=bool(sums["cold"]),
            below_noise_floor=sums["below_floor"],
            empty_pairs=sums["empty"],
            uncovered_pairs=sums["uncovered"],
            shared_pairs=sums["by_others"],
            pairs_with_work_behind=sums["after_stop"],
            disturbed_pairs=sums["disturbed"],
        )
