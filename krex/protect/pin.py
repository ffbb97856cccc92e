# SPDX-License-Identifier: Apache-2.0
"""The holder's submitting threads on the reserved CPUs, for a region, and back exactly after it.

What a pinned thread creates, threads and processes, inherits the pin, and no list of saved threads
has it. So giving back means to look for all that carry it, again and again until there are none.
A fork copies its thread's CPUs before anybody can see the child: one that was under way is found by
`sweep`, a little later.

Nothing here stops a thread; each may end, or change its own CPUs, at any moment. One that did is
left as it wants to be.
"""

import contextlib
import errno
import itertools
import os
import time
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from krex.protect.processes import below

Mask = frozenset[int]

_TICKS = os.sysconf("SC_CLK_TCK")
# Each finds what was born in the one before; who outruns this many is for the next sweep.
_PASSES = 100
# How long a fork may take to show its child: copying the page tables of a big process.
SETTLE_S = 1.0


class Failure(Struct, frozen=True):
    """A thread whose CPUs could not be set, and what the system said."""

    pid: int
    tid: int
    error: str


class Pinned(Struct):
    """What pinning did."""

    pinned: list[int] = field(default_factory=list)  # tids
    partly: list[int] = field(default_factory=list)  # those whose cpuset took some CPUs away
    failed: list[Failure] = field(default_factory=list)


class Restored(Struct):
    """What giving back did; tids."""

    restored: list[int] = field(default_factory=list)  # as they were
    born: list[int] = field(default_factory=list)  # inherited the pin, have their creator's CPUs
    # Of those born: the threads that may have created it differed, it has the main thread's CPUs.
    guessed: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)  # their own wish meanwhile: left alone
    ended: list[int] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    unstable: bool = False  # new ones were born faster than they were found


class Stray(Struct, frozen=True):
    """A thread that may run on CPUs that are not its command's."""

    pid: int
    tid: int
    cpus: tuple[int, ...]  # those, and no others


class _Saved(Struct):
    """A thread that is pinned now."""

    start: int
    before: Mask
    pinned: Mask


class _Process:
    """A process with threads that are pinned, or that may have inherited a pin."""

    def __init__(self, pid: int, start: int, since: int) -> None:
        self.pid, self.start, self.since = pid, start, since
        self.saved: dict[int, _Saved] = {}
        self.masks: set[Mask] = set()  # which pins may have been inherited
        self.heir: Mask = frozenset()  # what a thread born here should have
        self.certain = True
        self.restored = 0.0

    def is_here(self) -> bool:
        return _start(self.pid, self.pid) == self.start

    def note(self, tid: int, saved: _Saved) -> None:
        """Its threads' creators are those that are pinned: who created what, nobody tells."""
        if not self.saved:
            self.heir, self.certain = saved.before, True
        elif saved.before != self.heir:
            self.certain = False
            if tid == self.pid:
                self.heir = saved.before
        self.saved[tid] = saved
        self.masks.add(saved.pinned)

    def has_inherited(self, tid: int, mask: Mask | None) -> bool:
        """Whether it has a pin that it was born with: nobody else gave it one.

        Births are known to a tick (10 ms). A thread that began in the tick of the pin and chose
        exactly these CPUs by itself is taken for one that inherited them.
        """
        if mask not in self.masks or tid in self.saved:
            return False
        start = _start(self.pid, tid)
        return start is not None and start >= self.since


class Pinning:
    """Pins threads, and remembers until nothing can carry a pin any more.

    One a command, for all its holds: what one hold could not find yet, the next one knows.
    """

    def __init__(self) -> None:
        self._processes: dict[int, _Process] = {}

    def pin(self, pid: int, cpus: Iterable[int], tids: Iterable[int] | None = None) -> Pinned:
        """Pin these threads of a process; all of them if `tids` is None.

        Threads that are pinned already stay as they are. Raises ValueError if there are no CPUs;
        whatever else goes wrong is in the answer.
        """
        mask = frozenset(cpus)
        if not mask:
            raise ValueError("no CPUs to pin to")
        done = Pinned()
        process = self._process(pid)
        if process is None:
            done.failed += [Failure(pid, tid, _name(errno.ESRCH)) for tid in tids or (pid,)]
        elif tids is not None:
            self._pin_threads(process, mask, tids, done)
        else:
            tried: set[int] = set()
            while new := [tid for tid in threads(pid) if tid not in tried]:
                tried.update(new)
                self._pin_threads(process, mask, new, done)
        return done

    def restore(self, members: Callable[[], Iterable[int]] | None = None) -> Restored:
        """Give every pinned thread back its CPUs, and its creator's to all that inherited the pin.

        `members` lists the command's pids, as its cgroup does; without it the descendants of those
        that were pinned are looked through, which takes longer, and misses daemons.
        """
        done = Restored()
        for process in self._processes.values():
            for tid, saved in process.saved.items():
                _give_back(process, tid, saved, done)
            process.saved, process.restored = {}, time.monotonic()
        self._sweep(done, members)
        return done

    def sweep(self, members: Callable[[], Iterable[int]] | None = None) -> Restored:
        """Look once more for what inherited an earlier pin. Nothing while threads are pinned."""
        done = Restored()
        if not any(process.saved for process in self._processes.values()):
            self._sweep(done, members)
        return done

    @property
    def settled(self) -> bool:
        """Nothing is pinned, and no sweep can find anything any more."""
        return not self._processes

    def holds(self, tid: int) -> bool:
        """Whether this thread is pinned now."""
        return any(tid in process.saved for process in self._processes.values())

    def carries(self, pid: int, tid: int, mask: Mask) -> bool:
        """Whether a thread has these CPUs from us: it is pinned, or was born of one that was."""
        self._take_in(pid)
        process = self._processes.get(pid)
        if process is None:
            return False
        return tid in process.saved or process.has_inherited(tid, mask)

    def _process(self, pid: int) -> _Process | None:
        since, start = _now(), _start(pid, pid)
        if start is None:
            return None
        self._take_in(pid)  # a child of the holder may have been born with the pin
        known = self._processes.get(pid)
        if known is None or known.start != start:
            known = self._processes[pid] = _Process(pid, start, since)
        return known

    def _pin_threads(
        self, process: _Process, mask: Mask, tids: Iterable[int], done: Pinned
    ) -> None:
        for tid in tids:
            start, before = _start(process.pid, tid), mask_of(tid)
            saved = process.saved.get(tid)
            if saved and saved.start == start:
                done.pinned.append(tid)
                continue
            if start is None or before is None:
                done.failed.append(Failure(process.pid, tid, _name(errno.ESRCH)))
                continue
            if process.has_inherited(tid, before):
                before = process.heir  # left over from an earlier hold: not its own wish
            if error := _set(tid, mask):
                done.failed.append(Failure(process.pid, tid, _name(error)))
                continue
            now = mask_of(tid) or mask
            process.note(tid, _Saved(start, before, now))
            done.pinned.append(tid)
            if now != mask:
                done.partly.append(tid)

    # Looking for what inherited a pin.

    def _sweep(self, done: Restored, members: Callable[[], Iterable[int]] | None) -> None:
        began, failed = time.monotonic(), set[int]()
        for _ in range(_PASSES):
            for pid in members() if members else below(self._processes):
                self._take_in(pid)
            found = [
                (process, tid)
                for process in self._processes.values()
                for tid in threads(process.pid)
                if tid not in failed and process.has_inherited(tid, mask_of(tid))
            ]
            for process, tid in found:
                if not _hand_down(process, tid, done):
                    failed.add(tid)
            if not found:
                break
        else:
            done.unstable = True
        self._forget(began - SETTLE_S)

    def _take_in(self, pid: int) -> None:
        """Know this process too, if it may have been born of a pinned thread."""
        start = _start(pid, pid)
        known = self._processes.get(pid)
        if start is None or (known and known.start == start):
            return
        parent = self._ancestor(pid)
        if parent and start >= parent.since:
            child = self._processes[pid] = _Process(pid, start, parent.since)
            child.masks, child.restored = parent.masks, parent.restored
            child.heir, child.certain = parent.heir, parent.certain

    def _ancestor(self, pid: int) -> _Process | None:
        """The nearest that is known; of an orphan, any: all are of one command."""
        while (pid := _parent(pid)) > 1:
            if pid in self._processes:
                return self._processes[pid]
        return next(iter(self._processes.values()), None)

    def _forget(self, before: float) -> None:
        """Those that are gone, and those that had their time to show what they forked."""
        for process in list(self._processes.values()):
            settled = not process.saved and process.restored < before
            if settled or not process.is_here():
                del self._processes[process.pid]


def _give_back(process: _Process, tid: int, saved: _Saved, done: Restored) -> None:
    mask = mask_of(tid)
    if mask is None or _start(process.pid, tid) != saved.start:
        done.ended.append(tid)
    elif mask != saved.pinned:
        done.changed.append(tid)
    elif error := _set(tid, saved.before):
        if error == errno.ESRCH:
            done.ended.append(tid)
        else:
            done.failed.append(Failure(process.pid, tid, _name(error)))
    else:
        done.restored.append(tid)


def _hand_down(process: _Process, tid: int, done: Restored) -> bool:
    """Give a thread that was born with the pin its creator's CPUs; False if that failed."""
    error = _set(tid, process.heir)
    if error == errno.ESRCH:
        return True
    if error:
        done.failed.append(Failure(process.pid, tid, _name(error)))
        return False
    done.born.append(tid)
    if not process.certain:
        done.guessed.append(tid)
    return True


def strays(pids: Iterable[int], cpus: Iterable[int], pinning: Pinning | None = None) -> list[Stray]:
    """The threads of a command that may run outside its CPUs: somebody widened their affinity.

    Those that `pinning` has on the reserved CPUs, and what they created, are where they belong.
    """
    mine = frozenset(cpus)
    found = []
    for pid, tid in ((process, thread) for process in pids for thread in threads(process)):
        mask = mask_of(tid) or mine
        outside = mask - mine
        if outside and not (pinning and pinning.carries(pid, tid, mask)):
            found.append(Stray(pid, tid, tuple(sorted(outside))))
    return found


# What the kernel knows of a thread. All of it may be gone by the next line.


def threads(pid: int) -> list[int]:
    """The tids of a process; none if it is gone."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def tids_here(pid: int, tids: Iterable[int]) -> list[int]:
    """The tids that a process in a pid namespace of its own gave itself, as this one has them."""
    inner = {own: tid for tid in threads(pid) if (own := _innermost(pid, tid)) is not None}
    return [inner[tid] for tid in tids if tid in inner]


def mask_of(tid: int) -> Mask | None:
    """The CPUs that a thread may run on; None if it is gone."""
    try:
        return frozenset(os.sched_getaffinity(tid))
    except OSError:
        return None


def _set(tid: int, mask: Mask) -> int:
    """0, or why not: EPERM, ESRCH, EINVAL where its cpuset has none of them."""
    try:
        os.sched_setaffinity(tid, mask)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _name(number: int) -> str:
    return f"{errno.errorcode.get(number, number)}: {os.strerror(number)}"


def _innermost(pid: int, tid: int) -> int | None:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/status") as file:
        for line in file:
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return None


def _stat(pid: int, tid: int) -> list[bytes]:
    """The fields behind the name, which may contain anything; none if it is gone."""
    try:
        with open(f"/proc/{pid}/task/{tid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _parent(pid: int) -> int:
    return int(next(itertools.islice(_stat(pid, pid), 1, None), 0))


def _start(pid: int, tid: int) -> int | None:
    """When it began, in ticks since boot: with it a number names one thread only."""
    fields = _stat(pid, tid)
    return int(fields[19]) if fields else None


def _now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * _TICKS // 1_000_000_000
