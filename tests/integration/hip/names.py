# SPDX-License-Identifier: Apache-2.0
"""For ../cuda/timing_program.py: what HIP calls the same, in place of cu.py."""

from pathlib import Path
from typing import Any

import hiprt
from hiprt import Handle

Float, Size = hiprt.Float, hiprt.Size
Address = Handle
function, in_thread, launch = hiprt.function, hiprt.in_thread, hiprt.launch
ok, stream = hiprt.ok, hiprt.stream

CODE = Path(__file__).parents[2] / "unit" / "data" / "sim" / "kernels.gfx90a.hsaco"
OTHERS = {
    "cuCtxSynchronize": "hipDeviceSynchronize",
    "cuMemAlloc": "hipMalloc",
    "cuMemAllocHost": "hipMallocHost",
}


def hip_name(cuda_name: str) -> str:
    base = cuda_name.removesuffix("_v2")
    return OTHERS.get(base, "hip" + base.removeprefix("cu"))


class Names:
    """The runtime, by the other's names."""

    def __getattr__(self, name: str) -> Any:
        return getattr(hiprt.hip, hip_name(name))

    def cuFuncLoad(self, loaded: Handle) -> int:  # noqa: N802
        """A module is loaded with all its functions."""
        return 0


cu = Names()


def get(name: str, *arguments: Any, kind: Any = Handle) -> Any:
    return hiprt.get(hip_name(name), *arguments, kind=kind)


def event(flags: int = 0) -> Any:
    """By both functions that make one."""
    return hiprt.get("hipEventCreateWithFlags", flags) if flags else hiprt.event()


def module() -> Any:
    return hiprt.module(CODE.read_bytes())
