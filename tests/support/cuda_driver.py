# SPDX-License-Identifier: Apache-2.0
"""A driver library that does nothing but count: `libcuda.so.1` made from api.def, of any release.

Every listed function is there, counts its calls and succeeds. The few in BODIES answer something,
as the environment says (FAKE_*); `fake_calls` and `fake_log` tell what was called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from support.counting_library import SHIM, Function, compile_library, source

LINE = re.compile(
    r"KREX_CU_API\((\w+), CUresult, (\w+), (\w+), (\d+), (\w+), (.+), \((.*)\), \(([^()]*)\)\)"
)


class Line(NamedTuple):
    """What this needs of a line of api.def."""

    kind: str
    symbol: str
    base: str
    version: int
    flag: str
    params: str


def read_lines() -> list[Line]:
    text = (SHIM / "cuda" / "api.def").read_text().splitlines()
    found = [LINE.fullmatch(line) for line in text if line.startswith("KREX_CU_API(")]
    return [Line(m[1], m[2], m[3], int(m[4]), m[5], m[7]) for m in found if m]


LINES = read_lines()

HEAD = r"""
#include "cuda/types.h"
static CUcontext fake_current;
static CUresult fake_resolve(const char *name, void **to, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
    struct function *best = fake_find(name, version, flags == 2);
    if (status) *status = best ? 0 : 1;
    if (!best) return CUDA_ERROR_NOT_FOUND;
    *to = best->address;
    return CUDA_SUCCESS;
}
"""

BODIES = {
    "cuCtxGetCurrent": "*pctx = fake_current; return 0;",
    "cuCtxSetCurrent": "return 0;",
    "cuCtxGetDevice": "*device = 0; return 0;",
    "cuCtxCreate_v2": "fake_current = *pctx = (CUcontext)0xc0; return 0;",
    "cuDevicePrimaryCtxRetain": "fake_current = *pctx = (CUcontext)0xc1; return 0;",
    "cuDevicePrimaryCtxGetState": '*active = fake_env("FAKE_ACTIVE", 0); return 0;',
    "cuDeviceGetPCIBusId": 'snprintf(pciBusId, len, "%s", getenv("FAKE_ADDRESS") ? : '
    '"0000:1B:00.0"); return 0;',
    "cuDeviceGetName": 'snprintf(name, len, "%s", getenv("FAKE_NAME") ? : "a card"); return 0;',
    "cuDeviceGetUuid": "memset(uuid, 0xab, 16); return 0;",
    "cuDeviceGetUuid_v2": 'memset(uuid, fake_env("FAKE_UUID", 0xab), 16); return 0;',
    "cuStreamIsCapturing": "*captureStatus = hStream == (CUstream)0xca; return 0;",
    "cuGetProcAddress": "return fake_resolve(symbol, pfn, cudaVersion, flags, 0);",
    "cuGetProcAddress_v2": "return fake_resolve(symbol, pfn, cudaVersion, flags, symbolStatus);",
    # Waits inside, as a copy from memory that is pageable does: until it can read a byte.
    "cuMemcpyDtoH_v2": 'char c; if (fake_env("FAKE_SLOW", 0)) read(0, &c, 1); '
    'fake_note("copied"); return 0;',
    "cuEventCreate": "*phEvent = (CUevent)0xe0; return 0;",
}


def build(
    folder: Path,
    name: str = "libcuda.so.1",
    *,
    lacks: Iterable[str] = (),
    more: Iterable[Line] = (),
    own_addresses: bool = False,
    extra: str = "",
    flags: Iterable[str] = ("-Wl,-soname,libcuda.so.1",),
) -> Path:
    """Compile one into a folder; `lacks` are symbols that it does not have."""
    missing = {*lacks}
    functions = [
        Function("CUresult", x.symbol, x.params, BODIES.get(x.symbol, "return 0;"), *x[2:5])
        for x in (*LINES, *more)
        if x.symbol not in missing
    ]
    text = source(HEAD, functions, own_addresses) + extra
    return compile_library(folder / name, text, flags)
