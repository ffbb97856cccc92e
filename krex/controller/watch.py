# SPDX-License-Identifier: Apache-2.0
"""Looks after a hold whose holder stands still: does it wait for somebody whom we have frozen?"""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from krex.protect import locks, pipes, processes
from krex.protect.opens import Opens

if TYPE_CHECKING:
    from krex.controller.command import Command
    from krex.controller.hold import Hold

# A holder that has submitted nothing for so long may wait for something else than the device.
QUIET_S = 0.1
# Every how many quiet looks the standard streams of all processes are looked at, for pipes that
# were not there when their commands started. It takes 50 us a process.
STREAMS_EVERY = 10
# In how many looks a file is seen opened by who tries for its lock; one may be anybody's.
TRIES = 2
# Every how many quiet looks it is asked who tries: all descriptors of the holder are looked at.
TRIES_EVERY = 3


class Watch:
    """Lets siblings run that the holder waits for. Costs nothing while the holder submits."""

    def __init__(self, hold: "Hold") -> None:
        self._hold = hold
        self._task: asyncio.Task[None] | None = None
        self._let_run: list[Command] = []
        self._opens: Opens | None = None

    def start(self) -> None:
        """Begin, with the hold's grant."""
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """End, with the hold."""
        if self._task:
            self._task.cancel()

    async def _run(self) -> None:
        holder = self._hold.first.command
        before, quiet = -1, 0
        while True:
            now = holder.submissions()
            quiet = quiet + 1 if now == before else 0
            before = now
            if quiet and (frozen := self._hold.frozen()):
                await self._look(frozen, quiet)
            await asyncio.sleep(QUIET_S)

    async def _look(self, frozen: "list[Command]", quiet: int) -> None:
        tries = quiet % TRIES_EVERY == 0
        # In threads: to show all locks the kernel stops all locking, and may wait for that.
        for command in await asyncio.to_thread(self._lockers, frozen, tries=tries):
            self._let_run.append(command)
            self._hold.let_run(command, "commands_thawed_for_a_lock")
        if quiet % STREAMS_EVERY != 1:
            return
        holder = self._hold.first.command
        found = await asyncio.to_thread(_streams, [holder, *frozen])
        for command, ends in found.items():
            command.stdio = command.stdio.union(ends)
            if command is not holder and command.stdio.joined(holder.stdio):
                self._let_run.append(command)
                self._hold.let_run(command, "commands_sharing_a_pipe")

    def _lockers(self, frozen: "list[Command]", *, tries: bool) -> "set[Command]":
        """Whose lock the holder waits for, or who of those that were let run for it.

        With `tries`, also whose it tries for now and then.
        """
        found = locks.read()
        if not found:
            return set()
        waiting = self._hold.first.command.pids().union(*(c.pids() for c in self._let_run))
        # Who has started a command, `flock FILE krex run ...` for one, keeps its own lock until
        # that ends. What has started the holder too says nothing.
        above = processes.above(self._hold.first.command.root_pid)
        others = {c: c.pids() | (processes.above(c.root_pid) - above) for c in frozen}
        needed = locks.blockers(found, waiting, others)
        for command in others.keys() - needed if tries else ():
            mine = {lock.owner for lock in found if lock.owner.pid in others[command]}
            if any(self._is_tried(entry, waiting) for entry in mine):
                needed.add(command)
        return needed

    def _is_tried(self, lock: locks.Entry, waiting: set[int]) -> bool:
        """Whether the holder tries for a lock now and then, instead of waiting for it."""
        if any(locks.has_open(pid, lock.inode) for pid in waiting):
            return True
        if self._opens is None:
            with contextlib.suppress(OSError):
                self._opens = Opens()
        paths = locks.kept(lock.pid, {lock.file}) if self._opens else []
        return any(self._opens.count(path) >= TRIES for path in paths[:1] if self._opens)


def _streams(commands: "list[Command]") -> "dict[Command, pipes.Ends]":
    """What the standard streams of all their processes are connected to by now."""
    return {command: pipes.of(command.pids()) for command in commands}
