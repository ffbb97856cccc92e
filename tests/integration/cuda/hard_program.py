# SPDX-License-Identifier: Apache-2.0
"""Gets into states in which a process is hard to drain: `hard_program.py SCENARIO`.

A scenario is a generator. Up to its first `yield` it gets into its state, and says `ready`; it goes
on at the end of a line. Each further `yield` waits for another one. It returns what the program
prints in the end: results of the driver, and what it read from the device.
"""

import ctypes
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cu import (
    GLOBAL,
    PTX,
    Floats,
    Handle,
    Size,
    cu,
    event,
    function,
    get,
    launch,
    module,
    ok,
    pointers,
    stream,
)

# The model of the test says what becomes of these.
IMAGE = PTX + b"".join(
    b".visible .entry %s() { ret; }\n" % name for name in (b"fails", b"hangs", b"vanishes")
)
DEPTH = 1024  # of the launch queue
SHORT_NS, LONG_NS, LONGER_NS = 300_000_000, 1_500_000_000, 6_000_000_000
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
LOOKS = 20  # so often in a row a thread stands still that stands still

Word, Number = ctypes.c_uint32, ctypes.c_uint64
holding = ctypes.PyDLL("libcuda.so.1")  # its calls hold the interpreter's lock


class Flag:
    """A word that kernels wait for."""

    def __init__(self) -> None:
        self.page = get("cuMemAllocHost_v2", Size(4096))
        self.word = ctypes.cast(self.page, ctypes.POINTER(Word))
        self.word[0] = 0

    def set(self) -> None:
        self.word[0] = 1


class Kernels:
    """In the current context; loaded, unless a scenario wants to see that happen."""

    def __init__(self, *lazy: str) -> None:
        image = module(IMAGE)
        names = ("nothing", "krex_spin", "krex_wait_flag", "fails", "hangs", "vanishes")
        self.of = {name: function(image, name) for name in (*names, "krex_copy_f32")}
        for name, kernel in self.of.items():
            if name not in lazy:
                ok(cu.cuFuncLoad(kernel))

    def launch(self, name: str, on: Any, *arguments: Any) -> int:
        return launch(self.of[name], on, *arguments)

    def spin(self, on: Any, ns: int) -> None:
        ok(self.launch("krex_spin", on, Number(ns)))

    def wait_flag(self, on: Any, flag: Flag) -> None:
        ok(self.launch("krex_wait_flag", on, flag.page))

    def launch_holding(self, on: Any) -> int:
        """Without letting go of the interpreter's lock."""
        result: int = holding.cuLaunchKernel(
            self.of["nothing"], 1, 1, 1, 32, 1, 1, 0, on, pointers(()), None
        )
        return result


class Background(threading.Thread):
    """Calls it in the same context. `result` is what that gave."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__()
        self._context, self._call = get("cuCtxGetCurrent"), call
        self.start()

    def run(self) -> None:
        ok(cu.cuCtxSetCurrent(self._context))
        self._result = self._call()

    def result(self) -> Any:
        self.join()
        return self._result

    def await_blocked(self) -> None:
        """Until it stands still."""
        looks = 0
        while looks < LOOKS:
            stat = Path(f"/proc/self/task/{self.native_id}/stat").read_text()
            looks = looks + 1 if stat.rpartition(")")[2].split()[0] == "S" else 0
            time.sleep(0.001)


_scenarios: dict[str, Callable[[], Iterator[None]]] = {}


def scenario(run: Callable[[], Any]) -> Callable[[], Any]:
    """Mark a function that the command line can name."""
    _scenarios[run.__name__] = run
    return run


# --- loading ---


@scenario
def first_launch_at_a_shut_gate() -> Any:
    kernels = Kernels("nothing")
    kernels.spin(None, 1000)
    yield
    first = Background(lambda: kernels.launch("nothing", None))
    first.await_blocked()
    yield
    return [first.result(), cu.cuCtxSynchronize()]


@scenario
def loads_behind_a_long_kernel() -> Any:
    kernels = Kernels("nothing")
    kernels.spin(None, LONG_NS)
    first = Background(lambda: kernels.launch("nothing", stream()))
    first.await_blocked()
    yield
    return [first.result(), cu.cuCtxSynchronize()]


@scenario
def loads_behind_a_kernel_that_waits_for_the_host() -> Any:
    kernels, flag = Kernels("nothing"), Flag()
    kernels.wait_flag(None, flag)
    first = Background(lambda: kernels.launch("nothing", stream()))
    first.await_blocked()
    yield
    yield
    flag.set()
    return [first.result(), cu.cuCtxSynchronize()]


# --- the launch queue is full ---


def fill_queue(kernels: Kernels, on: Any) -> Background:
    """One is under way already; the thread stands in the launch of one too many."""
    for _ in range(DEPTH - 1):
        ok(kernels.launch("nothing", on))
    last = Background(lambda: kernels.launch("nothing", on))
    last.await_blocked()
    return last


@scenario
def queue_is_full_for_long() -> Any:
    kernels, on = Kernels(), stream()
    kernels.spin(on, LONG_NS)
    last = fill_queue(kernels, on)
    yield
    return [last.result(), cu.cuCtxSynchronize()]


@scenario
def queue_is_full_until_the_host_does_something() -> Any:
    kernels, on, flag = Kernels(), stream(), Flag()
    kernels.wait_flag(on, flag)
    last = fill_queue(kernels, on)
    yield
    yield
    flag.set()
    return [last.result(), cu.cuCtxSynchronize()]


# --- callbacks ---


@scenario
def callback_takes_its_time() -> Any:
    on, done = stream(), []
    call = CALLBACK(lambda _: (time.sleep(SHORT_NS * 1e-9), done.append(1)))
    ok(cu.cuLaunchHostFunc(on, call, None))
    yield
    return [cu.cuCtxSynchronize(), done]


@scenario
def callback_waits_for_a_thread_at_the_gate() -> Any:
    on, other, submitted, done = stream(), stream(), threading.Event(), []
    call = CALLBACK(lambda _: done.append(submitted.wait()))
    kernels = Kernels()
    ok(cu.cuLaunchHostFunc(on, call, None))
    yield
    thread = Background(lambda: (kernels.launch("nothing", other), submitted.set())[0])
    yield
    return [thread.result(), cu.cuCtxSynchronize(), done]


@scenario
def callback_needs_the_lock_that_a_thread_at_the_gate_has() -> Any:
    on, other, flag, done = stream(), stream(), Flag(), []
    kernels, call = Kernels(), CALLBACK(lambda _: done.append(1))
    kernels.wait_flag(on, flag)
    ok(cu.cuLaunchHostFunc(on, call, None))
    yield
    sys.setswitchinterval(1000)  # from here to the gate
    flag.set()
    launched = kernels.launch_holding(other)
    sys.setswitchinterval(0.005)
    yield
    return [launched, cu.cuCtxSynchronize(), done]


# --- work that waits for the host ---


def wait_value(on: Any, flag: Flag) -> None:
    ok(cu.cuStreamWaitValue32_v2(on, flag.page, Word(1), 1))


def waits_for_a_free_thread(wait: Callable[[Any, Flag], None]) -> Any:
    """The flag is set by a thread that submits nothing."""
    flag = Flag()
    wait(stream(), flag)
    yield
    flag.set()
    return [cu.cuCtxSynchronize()]


def waits_for_a_thread_at_the_gate(wait: Callable[[Any, Flag], None], kernels: Kernels) -> Any:
    """It is set by one that submits something first."""
    flag, other = Flag(), stream()
    wait(stream(), flag)
    yield
    thread = Background(lambda: (kernels.launch("nothing", other), flag.set())[0])
    yield
    return [thread.result(), cu.cuCtxSynchronize()]


@scenario
def kernel_waits_for_a_free_thread() -> Any:
    return waits_for_a_free_thread(Kernels().wait_flag)


@scenario
def kernel_waits_for_a_thread_at_the_gate() -> Any:
    kernels = Kernels()
    return waits_for_a_thread_at_the_gate(kernels.wait_flag, kernels)


@scenario
def stream_waits_for_a_free_thread() -> Any:
    return waits_for_a_free_thread(wait_value)


@scenario
def stream_waits_for_a_thread_at_the_gate() -> Any:
    return waits_for_a_thread_at_the_gate(wait_value, Kernels())


# --- captures ---


class Captured:
    """A graph that copies; `on` captures it, while there is other work on the device."""

    def __init__(self) -> None:
        self._kernels, self.on = Kernels(), stream()
        self._from, self._to = Floats(1, 2, 3), Floats(0, 0, 0)
        self._kernels.spin(stream(), SHORT_NS)
        ok(cu.cuStreamBeginCapture_v2(self.on, GLOBAL))
        self.copy()

    def copy(self) -> None:
        addresses = (self._to.at, self._from.at, ctypes.c_uint32(3))
        ok(self._kernels.launch("krex_copy_f32", self.on, *addresses))

    def end(self) -> list[float]:
        """What its graph copied."""
        graph = Handle()
        ok(cu.cuStreamEndCapture(self.on, ctypes.byref(graph)))
        ok(cu.cuGraphLaunch(get("cuGraphInstantiateWithFlags", graph, Number(0)), self.on))
        ok(cu.cuStreamSynchronize(self.on))
        return self._to.read()


@scenario
def capture_is_open_for_short() -> Any:
    captured = Captured()
    yield
    captured.copy()
    return captured.end()


@scenario
def capture_is_open_for_long() -> Any:
    captured = Captured()
    yield
    yield
    captured.copy()
    return captured.end()


# --- contexts ---

SM, NON_BLOCKING = 1, 1


def green() -> Any:
    """A context of a part of the device, and a stream there."""
    resource = (ctypes.c_char * 256)()
    ok(cu.cuDeviceGetDevResource(0, resource, SM))
    description = get("cuDevResourceGenerateDesc", resource, 1)
    made = get("cuGreenCtxCreate", description, 0, 1)
    return made, get("cuGreenCtxStreamCreate", made, NON_BLOCKING, 0)


@scenario
def work_in_contexts_of_each_kind() -> Any:
    created = get("cuCtxGetCurrent")
    primary = get("cuDevicePrimaryCtxRetain", 0)
    of_green, on_green = green()
    contexts = [created, primary, get("cuCtxFromGreenCtx", of_green)]
    for context, on in zip(contexts, (None, None, on_green), strict=True):
        ok(cu.cuCtxSetCurrent(context))
        Kernels().spin(on, SHORT_NS)
    yield
    results = []
    for context in contexts:
        ok(cu.cuCtxSetCurrent(context))
        results.append(cu.cuCtxSynchronize())
    return results


@scenario
def work_in_default_streams_of_threads() -> Any:
    kernels = Kernels()
    spin = kernels.of["krex_spin"]

    def submit() -> int:
        parameters = (Number(SHORT_NS),)  # pointers() has only their addresses
        result: int = cu.cuLaunchKernel_ptsz(
            spin, 1, 1, 1, 32, 1, 1, 0, None, pointers(parameters), None
        )
        return result

    results = [thread.result() for thread in [Background(submit) for _ in range(3)]]
    yield
    return [*results, cu.cuCtxSynchronize()]


@scenario
def long_kernel() -> Any:
    Kernels().spin(None, LONGER_NS)
    yield
    return [cu.cuCtxSynchronize()]


@scenario
def contexts_on_two_devices() -> Any:
    with krex_region():
        pass
    yield
    first = get("cuCtxGetCurrent")
    get("cuCtxCreate_v2", 0, 1)
    ok(cu.cuCtxSetCurrent(first))
    with krex_region():
        pass
    yield
    return [cu.cuCtxSynchronize()]


# --- faults ---


@scenario
def kernel_fails_meanwhile() -> Any:
    ok(Kernels().launch("fails", None))
    yield
    return [cu.cuCtxSynchronize(), cu.cuStreamQuery(None)]


@scenario
def kernel_never_ends() -> Any:
    ok(Kernels().launch("hangs", None))
    yield
    return []


@scenario
def device_is_lost_meanwhile() -> Any:
    ok(Kernels().launch("vanishes", None))
    yield
    return [cu.cuCtxSynchronize(), cu.cuStreamQuery(None)]


@scenario
def kernel_fails_in_its_own_region() -> Any:
    return fails_in_region("fails")


@scenario
def device_is_lost_in_its_own_region() -> Any:
    return fails_in_region("vanishes")


@scenario
def kernel_never_ends_in_its_own_region() -> Any:
    kernels = Kernels()
    with krex_region():
        ok(kernels.launch("hangs", None))
    yield
    return []


def fails_in_region(name: str) -> Any:
    kernels, found, read = Kernels(), [], event()
    with krex_region():
        ok(kernels.launch(name, None))
        found.append(cu.cuCtxSynchronize())
        found.append(cu.cuEventRecord(read, None))
    yield
    return found


def krex_region() -> Any:
    import krex

    return krex.region("own")


def main() -> None:
    if sys.argv[1] == "contexts_on_two_devices":
        os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
    ok(cu.cuInit(0))
    get("cuCtxCreate_v2", 0, 0)
    steps = _scenarios[sys.argv[1]]()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            print(json.dumps(end.value), flush=True)
            return
        print("ready", flush=True)
        sys.stdin.readline()


main()
