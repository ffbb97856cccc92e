# SPDX-License-Identifier: Apache-2.0
"""The process of the simulated devices: the controller starts it, asks it, and ends it.

It is the controller's child, in the controller's cgroup: it runs on while commands stand still, and
outlives them as a card does. When the controller is killed, its end of a pipe closes, and the
process ends with the last command that uses it.
"""

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from krex import paths
from krex.controller.request import Refusal, Simulated
from krex.errors import NotBuiltError
from krex.native import lib
from krex.sim.question import Answer, ask

START_S = 10.0
END_S = 0.5  # nobody uses it then, but commands of other devices wait for us
_POLL_S = 0.002
_LONGEST_PATH = 107  # of a socket
# What a user has set for commands is not for the devices; least of all our own preload.
_KEPT = ("PATH", "LANG", "HOME", "TMPDIR", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")


class Setup(NamedTuple):
    """How the process was started."""

    devices: int
    model: str | None  # in the form that it reads; None: its own
    log: Path


class Simulator:
    """At most one process. Its devices are `sim:0` and so on, on the socket `sim.sock`."""

    def __init__(
        self, folder: Path, is_in_use: Callable[[], bool], lost: Callable[[], None]
    ) -> None:
        """`is_in_use` says whether commands count on it as it is; `lost` is told of its death."""
        self.socket = folder / "sim.sock"
        self.setup: Setup | None = None
        self._own_log = folder / "sim-log.tsv"
        self._errors, self._model = folder / "sim-errors", folder / "sim-model"
        self.memory: tuple[int, ...] = ()  # bytes of each device
        self._is_in_use, self._lost = is_in_use, lost
        self._turn = asyncio.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._leash = self._pidfd = -1

    @property
    def pid(self) -> int:
        """Its process; 0: none runs."""
        return self._child.pid if self._child else 0

    @property
    def keys(self) -> list[str]:
        """The devices of which it has been told how much memory they have."""
        return [f"sim:{number}" for number in range(len(self.memory))]

    def follow(self) -> None:
        """Let it run where we do: we keep off CPUs that were reserved since it was started."""
        if self._child:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self._child.pid, os.sched_getaffinity(0))

    async def ensure(self, wish: Simulated) -> Setup:
        """Have it run as wished; how it runs. Raises Refusal: it can't, or others need it as it is.

        Who returns from here has to count as a user (`is_in_use`) before it waits for anything.
        """
        async with self._turn:
            if self._child and self._child.poll() is not None:
                self._died()
            if self.setup and self._is_in_use():
                _compare(self.setup, wish)
                wanted = self.setup
            else:
                log = Path(wish.log) if wish.log else self._own_log
                wanted = Setup(wish.devices or 1, wish.model, log)
            if wanted != self.setup:
                self.stop()
            if not self._child:
                await self._start(wanted)
            return wanted

    def when_gone(self, pid: int, then: Callable[[], None]) -> None:
        """Call `then` once nothing of a process that ended is left on any device."""
        if self._child:
            ask(self.socket, lib.KREX_SIM_GONE, lambda _: then(), value=pid)
        else:
            then()

    def stop(self) -> None:
        """End it, if it runs: it completes its log first."""
        if self._child:
            self._child.terminate()
            try:
                self._child.wait(END_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
        self._forget()
        self.setup = None
        for path in (self.socket, self._errors, self._model):
            path.unlink(missing_ok=True)

    async def _start(self, setup: Setup) -> None:
        if len(os.fsencode(self.socket)) > _LONGEST_PATH:
            raise Refusal(
                f"{self.socket} is too long for a socket; set KREX_SOCKET to a shorter one"
            )
        # One of a controller that was killed may still serve its commands, and write its log.
        self.socket.unlink(missing_ok=True)
        self._own_log.unlink(missing_ok=True)
        try:
            self._child = self._spawn(setup)
            found = [await self._memory_of(self._child, n) for n in range(setup.devices)]
        except (OSError, NotBuiltError) as failure:
            why = self._complaint() or str(failure)
            self.stop()
            raise Refusal(f"the simulated devices do not start: {why}") from None
        self.setup, self.memory = setup, tuple(found)
        self._pidfd = os.pidfd_open(self._child.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._died)

    def _spawn(self, setup: Setup) -> "subprocess.Popen[bytes]":
        arguments = [os.path.join(paths.simulator_dir(), "krex-sim-device")]
        arguments += ["--socket", str(self.socket), "--devices", str(setup.devices)]
        arguments += ["--log", str(setup.log)]
        if setup.model is not None:
            self._model.write_text(setup.model)
            arguments += ["--model", str(self._model)]
        its_end, self._leash = os.pipe()
        try:
            with self._errors.open("wb") as errors:
                return subprocess.Popen(
                    [*arguments, "--linger", "0", "--parent-fd", str(its_end)],
                    env={name: os.environ[name] for name in _KEPT if name in os.environ},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    pass_fds=[its_end],
                    start_new_session=True,  # a terminal's Ctrl-C is not for it
                )
        finally:
            os.close(its_end)

    async def _memory_of(self, child: "subprocess.Popen[bytes]", device: int) -> int:
        """Ask until it listens. Raises OSError."""
        deadline = time.monotonic() + START_S
        while child.poll() is None and time.monotonic() < deadline:
            future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            ask(self.socket, lib.KREX_SIM_MEMORY, _setter(future), device=device)
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):  # two before Python 3.11
                found = await asyncio.wait_for(future, deadline - time.monotonic())
                if found.ok:
                    return found.value2
            await asyncio.sleep(_POLL_S)
        if child.poll() is not None:
            raise OSError(f"krex-sim-device ended with status {child.returncode}")
        raise OSError(f"no answer at {self.socket} after {START_S:.0f} s")

    def _complaint(self) -> str:
        """The last line that it wrote to stderr."""
        with contextlib.suppress(OSError):
            return self._errors.read_text(errors="replace").strip().rpartition("\n")[2]
        return ""

    def _died(self) -> None:
        """Nobody ended it. The next command starts another one."""
        self._forget()
        self._lost()

    def _forget(self) -> None:
        """Let go of what belongs to the process that ended, or is about to."""
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
        if self._leash >= 0:
            os.close(self._leash)
        self._leash = self._pidfd = -1
        child, self._child = self._child, None
        if child:
            child.wait()


def _setter(future: "asyncio.Future[Answer]") -> Callable[[Answer], None]:
    def answered(answer: Answer) -> None:
        if not future.done():  # else nobody waits for it any more
            future.set_result(answer)

    return answered


def _compare(setup: Setup, wish: Simulated) -> None:
    """Raise Refusal unless the devices that are in use are those wished for."""
    wait = "or wait until `krex status` shows no command on them"
    if wish.devices not in (None, setup.devices):
        raise Refusal(
            f"commands use {setup.devices} simulated GPUs, not {wish.devices}: say --sim-gpus "
            f"{setup.devices}, {wait}"
        )
    if wish.model != setup.model:
        raise Refusal(f"commands use simulated GPUs of another model: say the same, {wait}")
    if wish.log is not None and Path(wish.log) != setup.log:
        raise Refusal(f"the log of the simulated GPUs goes to {setup.log}: leave that out, {wait}")
