# SPDX-License-Identifier: Apache-2.0
"""What of PyTorch and CuPy timing functions need, on a simulated GPU, where those do not start."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("cuda")))
from cu import Address, Float, Handle, Size, cu, get, ok

SIZE = 1 << 20


class Event:
    """As torch.cuda.Event, and cupy.cuda.Event."""

    def __init__(self, enable_timing=True):
        self.handle = get("cuEventCreate", 0 if enable_timing else 2)

    def record(self):
        ok(cu.cuEventRecord(self.handle, None))

    def synchronize(self):
        ok(cu.cuEventSynchronize(self.handle))

    def elapsed_time(self, end):
        return get("cuEventElapsedTime", self.handle, end.handle, kind=Float).value


class Interface:
    """As torch.cuda."""

    Event = Event

    @staticmethod
    def synchronize():
        ok(cu.cuCtxSynchronize())


class Buffer:
    """As a tensor: what is cleared between repeats, and what a kernel is given."""

    dtype = "float32"

    def __init__(self):
        self.address = get("cuMemAlloc_v2", Size(4 * SIZE), kind=Address)

    def data_ptr(self):
        return self.address.value

    def zero_(self):
        ok(cu.cuMemsetD8Async(self.address, 0, Size(4 * SIZE), None))


def start():
    """Make a context, and have it be this thread's."""
    ok(cu.cuInit(0))
    ok(cu.cuCtxSetCurrent(get("cuDevicePrimaryCtxRetain", 0, kind=Handle)))
