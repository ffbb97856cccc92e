# SPDX-License-Identifier: Apache-2.0
"""Small programs, each about one rule of the driver: `rules_program.py NAME` prints findings."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from ctypes import byref
from typing import Any

from cu import Address, Float, Handle, Size, cu, event, function, get, launch, module, ok, stream

SIZE = 4096
LARGE = 1 << 20  # more than is staged
SET = 1  # what lets go whoever waits for the word
DEPTH = 1024  # of the launch queue
Word, Number = ctypes.c_uint32, ctypes.c_uint64


def begin() -> Handle:
    """Have the primary context current."""
    ok(cu.cuInit(0))
    context = get("cuDevicePrimaryCtxRetain", 0)
    ok(cu.cuCtxSetCurrent(context))
    return context


def kernel(name: str) -> Handle:
    """A kernel that is loaded."""
    found = function(module(), name)
    ok(cu.cuFuncLoad(found))
    return found


def allocate(size: int) -> Address:
    return get("cuMemAlloc_v2", Size(size), kind=Address)


def refused_allocation(size: int) -> int:
    """What an allocation says."""
    return cu.cuMemAlloc_v2(byref(Address()), Size(size))


def pinned(size: int) -> Handle:
    return get("cuMemAllocHost_v2", Size(size))


def memory() -> tuple[int, int]:
    """Bytes that are free, and all."""
    free, every = Size(), Size()
    ok(cu.cuMemGetInfo_v2(byref(free), byref(every)))
    return free.value, every.value


def background(call: Callable[[], None]) -> threading.Thread:
    """A thread that calls it, in the same context."""
    context = get("cuCtxGetCurrent")

    def run() -> None:
        ok(cu.cuCtxSetCurrent(context))
        call()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


class Hold:
    """A stream that stands still until let go."""

    def __init__(self, on: Handle) -> None:
        page = pinned(SIZE)
        self.word = ctypes.cast(page, ctypes.POINTER(Word))
        self.word[0] = 0
        ok(cu.cuStreamWaitValue32_v2(on, page, Word(SET), 1))

    def let_go(self) -> None:
        self.word[0] = SET


def fault() -> dict[str, Any]:
    """A kernel of which the model says that it goes wrong."""
    context, other = begin(), Handle()
    ok(launch(kernel("nothing"), None))
    first = cu.cuCtxSynchronize()
    later = [cu.cuStreamQuery(None), refused_allocation(SIZE)]
    created = cu.cuCtxCreate_v2(byref(other), 0, 0)
    fresh = cu.cuCtxSynchronize()
    ok(cu.cuCtxSetCurrent(context))
    return {"first": first, "later": later, "created": created, "fresh": fresh}


def hang() -> dict[str, Any]:
    """A kernel that never ends."""
    begin()
    hung, beside = stream(), stream()
    ok(launch(kernel("nothing"), hung))
    ok(cu.cuStreamSynchronize(beside))
    return {"query": cu.cuStreamQuery(hung), "beside": cu.cuStreamQuery(beside)}


def wild() -> dict[str, Any]:
    """A kernel that computes, and was given addresses that are nobody's."""
    begin()
    arguments = (Word(100), Float(1), Address(4096), Address(8192))
    ok(launch(kernel("krex_axpy_f32"), None, *arguments))
    return {"first": cu.cuCtxSynchronize(), "later": cu.cuStreamQuery(None)}


def killed() -> dict[str, Any]:
    """The process of the devices dies under a wait."""
    begin()
    held = stream()
    Hold(held)
    os.kill(int(sys.argv[2]), signal.SIGKILL)
    return {
        "waited": cu.cuStreamSynchronize(held),
        "later": refused_allocation(SIZE),
    }


def out_of_memory() -> dict[str, Any]:
    begin()
    free, every = memory()
    codes = [refused_allocation(every)]
    most = allocate(free - (64 << 20))  # takes no memory of this machine
    codes.append(refused_allocation(128 << 20))
    left = memory()[0]
    ok(cu.cuMemFree_v2(most))
    return {"codes": codes, "left": left, "again": memory()[0] == free}


def touch() -> dict[str, Any]:
    """The host touches what is the device's."""
    begin()
    ctypes.string_at(allocate(SIZE).value, 1)
    return {}


def host_access() -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, "touch"])
    return {"signal": -done.returncode}


def fork() -> dict[str, Any]:
    context = begin()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        codes = [cu.cuInit(0), cu.cuCtxSynchronize(), cu.cuCtxSetCurrent(context)]
        os.write(writer, json.dumps(codes).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return {"child": json.loads(os.read(reader, 100)), "parent": cu.cuCtxSynchronize()}


def full_queue() -> dict[str, Any]:
    """A launch into a full queue blocks until there is room."""
    begin()
    held, target = stream(), allocate(SIZE)
    hold, made = Hold(held), [0]

    def submit() -> None:
        for _ in range(DEPTH + 176):
            ok(cu.cuMemsetD8Async(target, 1, Size(SIZE), held))
            made[0] += 1

    thread = background(submit)
    while made[0] < DEPTH - 1:  # the wait is in front of them
        thread.join(0.001)
    thread.join(0.1)
    blocked_at, blocked = made[0], thread.is_alive()
    hold.let_go()
    thread.join()
    ok(cu.cuStreamSynchronize(held))
    return {"blocked_at": blocked_at, "blocked": blocked, "made": made[0]}


def copies() -> dict[str, Any]:
    """When the calls of asynchronous copies return."""
    begin()
    held, on_device, page = stream(), allocate(LARGE), pinned(LARGE)
    small = (ctypes.c_uint8 * SIZE)(*([7] * SIZE))
    large = (ctypes.c_uint8 * LARGE)()
    hold = Hold(held)
    ok(cu.cuMemcpyHtoDAsync_v2(on_device, small, Size(SIZE), held))
    ctypes.memset(small, 9, SIZE)  # it is staged: what is copied is what it was
    ok(cu.cuMemcpyDtoHAsync_v2(page, on_device, Size(LARGE), held))
    after_pinned = cu.cuStreamQuery(held)
    thread = background(lambda: ok(cu.cuMemcpyDtoHAsync_v2(large, on_device, Size(LARGE), held)))
    thread.join(0.1)
    waits = thread.is_alive()
    hold.let_go()
    thread.join()
    query = cu.cuStreamQuery(held)
    return {"after_pinned": after_pinned, "waits": waits, "query": query, "first": large[0]}


def streams() -> dict[str, Any]:
    """Who waits for whom."""
    begin()
    target = allocate(SIZE)
    blocking, free = stream(0), stream()
    hold = Hold(blocking)
    for on in (None, free):
        ok(cu.cuMemsetD8Async(target, 1, Size(16), on))
    ok(cu.cuStreamSynchronize(free))
    legacy = cu.cuStreamQuery(None)
    hold.let_go()
    ok(cu.cuStreamSynchronize(None))
    ids = [Number() for _ in range(3)]
    ok(cu.cuStreamGetId(None, byref(ids[0])))
    ok(cu.cuStreamGetId_ptsz(None, byref(ids[1])))
    ok(cu.cuStreamGetId(Handle(2), byref(ids[2])))
    return {
        "legacy": legacy,
        "after": cu.cuStreamQuery(blocking),
        "own": ids[0].value != ids[1].value == ids[2].value,
    }


def context_event() -> dict[str, Any]:
    """An event of a whole context, and streams that are made to wait for one."""
    context, all_of_it = begin(), event()
    held, beside, target = stream(), stream(), allocate(SIZE)
    hold = Hold(held)
    ok(cu.cuMemsetD8Async(target, 1, Size(16), beside))
    ok(cu.cuCtxRecordEvent(context, all_of_it))
    before = cu.cuEventQuery(all_of_it)
    ok(cu.cuMemsetD8Async(target, 2, Size(16), beside))
    ok(cu.cuStreamSynchronize(beside))  # nobody waits for the event
    ok(cu.cuStreamWaitEvent(beside, all_of_it, 0))
    waits = cu.cuStreamQuery(beside)
    hold.let_go()
    ok(cu.cuEventSynchronize(all_of_it))
    ok(cu.cuStreamSynchronize(beside))
    return {"before": before, "waits": waits, "after": cu.cuEventQuery(all_of_it)}


def words() -> dict[str, Any]:
    """Kernels and streams that wait for a word, and one that is written."""
    begin()
    on, page = stream(), pinned(SIZE)
    word = ctypes.cast(page, ctypes.POINTER(Word))
    ctypes.memset(page, 0, SIZE)
    ok(launch(kernel("krex_wait_flag"), on, page))
    ok(cu.cuStreamWriteValue32_v2(on, Address(page.value + 4), Word(5), 0))
    held = cu.cuStreamQuery(on), word[1]
    word[0] = SET
    ok(cu.cuStreamSynchronize(on))
    return {"held": held, "written": word[1]}


def refused() -> dict[str, Any]:
    """What a launch can't be, and handles that are none."""
    begin()
    spin, ns = kernel("krex_spin"), Number(1)
    addresses = (Handle * 1)(ctypes.addressof(ns))
    garbage, table = Handle(0x1234), Handle(1)

    def launched(of: Handle, *shape: int) -> int:
        return cu.cuLaunchKernel(of, *shape, 0, None, addresses, None)

    return {
        "no_blocks": launched(spin, 0, 1, 1, 1, 1, 1),
        "no_threads": launched(spin, 1, 1, 1, 0, 1, 1),
        "many_threads": launched(spin, 1, 1, 1, 1025, 1, 1),
        "deep": launched(spin, 1, 1, 1, 1, 1, 65),
        "wide": launched(spin, 1, 65536, 1, 1, 1, 1),
        "function": launched(garbage, 1, 1, 1, 1, 1, 1),
        "context": cu.cuCtxGetApiVersion(garbage, byref(Word())),
        "stream": cu.cuStreamQuery(garbage),
        "event": cu.cuEventQuery(garbage),
        "pointer": cu.cuMemcpyDtoH_v2(addresses, Address(8), Size(8)),
        "table": cu.cuGetExportTable(byref(table), ctypes.create_string_buffer(16)),
        "table_is": table.value,
    }


def destroyed() -> dict[str, Any]:
    """A context that is current, and is no more."""
    other = begin()
    context = get("cuCtxCreate_v2", 0, 0)
    background(lambda: ok(cu.cuCtxDestroy_v2(context))).join()
    codes = [cu.cuCtxSynchronize(), cu.cuCtxSetCurrent(context)]
    ok(cu.cuCtxSetCurrent(other))
    ok(cu.cuDevicePrimaryCtxRelease_v2(0))
    return {"codes": codes, "released": cu.cuCtxSynchronize()}


def names() -> dict[str, Any]:
    """All names of api.def, and how cuGetProcAddress hands them out."""
    symbols = sys.argv[2:]
    missing = [name for name in symbols if not hasattr(cu, name)]

    def ask(wanted: str, name: str, version: int, flags: int) -> tuple[int, int, bool]:
        given, status = Handle(), ctypes.c_int(-1)
        out = (byref(given), version, Number(flags), byref(status))
        code = cu.cuGetProcAddress_v2(name.encode(), *out)
        direct = ctypes.cast(getattr(cu, wanted), Handle).value if wanted else None
        return code, status.value, given.value == direct

    found: dict[str, Any] = {"missing": missing}
    for key, *question in (
        ("empty", "", "", 0, 0),
        ("unknown", "", "cuNoSuchName", 13000, 0),
        ("too_old", "", "cuLaunchKernelEx", 2000, 0),
        ("legacy", "cuLaunchKernel", "cuLaunchKernel", 12000, 0),
        ("per_thread", "cuLaunchKernel_ptsz", "cuLaunchKernel", 12000, 2),
        ("first_abi", "cuGetProcAddress", "cuGetProcAddress", 11030, 0),
        ("second_abi", "cuGetProcAddress_v2", "cuGetProcAddress", 12000, 0),
        ("unsupported", "cuTexRefCreate", "cuTexRefCreate", 13000, 0),
    ):
        found[key] = ask(*question)
    found["says"] = cu.cuTexRefCreate(byref(Handle()))
    return found


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
