# SPDX-License-Identifier: Apache-2.0
"""Which processes have contexts on a device, by the device's own word and not by that of the board.

An adapter knows how to ask one kind of device. It never makes its caller wait: a question is
asked, and looked at later. pids are the controller's numbers; where a device numbers otherwise, its
adapter says that it does not know.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

# How old an answer may be that a region begins with, where to ask takes milliseconds.
FRESH_S = 1.0
# How long an answer is waited for. Without one nobody knows, which is no reason against a region.
ANSWER_S = 0.1


class Resident(NamedTuple):
    """A process with contexts on the device. None: its device does not say."""

    pid: int  # 0: it can't be seen from here
    held_bytes: int | None = None  # of the device's memory; the contexts themselves included
    submitted: int | None = None  # kernels and copies, ever
    running: int | None = None  # of those, the ones that are on the device now


class Question(Protocol):
    """One that was asked."""

    def done(self) -> bool:
        """Look whether the answer has come; to be called until it has."""

    @property
    def processes(self) -> Sequence[int]:
        """Those that were registered when it was asked."""

    @property
    def residents(self) -> Sequence[Resident] | None:
        """Once it is done: who. None: nobody knows."""

    @property
    def bypassing(self) -> frozenset[int]:
        """Registered ones that have loaded the driver twice, of which the hooks see one."""


class Adapter(Protocol):
    """Asks one device."""

    # Whether an answer takes microseconds: then a region waits for it, and does not begin without.
    is_quick: bool

    def ask(self, processes: Sequence[int], fresh_s: float = 0.0) -> Question:
        """Have it asked. `processes` are those that are registered.

        One that was asked no more than `fresh_s` ago will do, answered or not.
        """

    def close(self) -> None:
        """Let go of what it has open."""


class Unanswered:
    """A question that nobody could be asked."""

    processes: Sequence[int] = ()
    residents = None
    bypassing: frozenset[int] = frozenset()

    def done(self) -> bool:
        """There is nothing to wait for."""
        return True


class Nobody:
    """Of a device that nobody can ask, as those of OpenCL on a CPU."""

    is_quick = True

    def ask(self, processes: Sequence[int], fresh_s: float = 0.0) -> Question:
        """Nobody knows."""
        return Unanswered()

    def close(self) -> None:
        """It has nothing."""
