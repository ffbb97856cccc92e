# SPDX-License-Identifier: Apache-2.0
"""A HIP runtime that does nothing but count: `libamdhip64.so.5` made from api.def.

Every listed function is there, counts its calls and succeeds, in the version node that the real
library has it in (data/hip_exports.tsv), or in that of its newest. The few in BODIES answer
something, as the environment says (FAKE_*).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from support.counting_library import SHIM, Function, compile_library, source

LINE = re.compile(
    r"KREX_HIP_API\((\w+), ([\w *]+), (\w+), (\w+), .+?, \((.*?)\), \(([^()]*)\)\)",
)
EXPORTS = Path(__file__).resolve().parents[1] / "unit" / "data" / "hip_exports.tsv"


class Line(NamedTuple):
    """What this needs of a line of api.def."""

    kind: str
    ret: str
    symbol: str
    flag: str
    params: str


def read_lines() -> list[Line]:
    text = (SHIM / "hip" / "api.def").read_text().splitlines()
    found = [LINE.fullmatch(line) for line in text if line.startswith("KREX_HIP_API(")]
    return [Line(*m.groups()[:5]) for m in found if m]


def read_exports(release: str = "") -> dict[str, str]:
    """The functions of Debian's libraries, or that of one release, and the version node of each."""
    rows = [row.split("\t") for row in EXPORTS.read_text().splitlines() if not row.startswith("#")]
    return {name: node for name, node, in_ in rows if not release or release in in_.split()}


LINES = read_lines()
NODES = ["hip_4.2", "hip_4.3", "hip_4.4", "hip_4.5", "hip_5.0", "hip_5.1", "hip_5.2", "hip_5.3"]
NODES += ["hip_5.5", "hip_5.6", "hip_6.0", "hip_6.1", "hip_6.2", "hip_6.4", "hip_7.2"]

HEAD = r"""
#include <dlfcn.h>
#include "hip/types.h"
static __thread int fake_device, fake_last;
/* As the real one: an error stays until it is read. */
static int fake_says(int result) { return result ? (fake_last = result) : 0; }
static int fake_resolve(const char *name, void **to, int per_thread, unsigned *status) {
    char thread_s[128];
    snprintf(thread_s, sizeof thread_s, "%s_spt", name);
    /* As the real one does: by its own handle. */
    void *self = dlopen(getenv("FAKE_SELF") ?: "libamdhip64.so.5", RTLD_NOLOAD | RTLD_LAZY);
    void *found = per_thread ? dlsym(self, thread_s) : NULL;
    if (!found) found = dlsym(self, name);
    if (status) *status = found ? 0 : 1;
    if (found) *to = found;
    return found ? 0 : 500;
}
"""

BODIES = {
    "hipGetLastError": "int last = fake_last; fake_last = 0; return last;",
    "hipPeekAtLastError": "return fake_last;",
    "hipGetDevice": 'if (fake_env("FAKE_DEVICES", 2) < 1) return fake_says(100); '
    "*deviceId = fake_device; return 0;",
    "hipSetDevice": "fake_device = deviceId; return 0;",
    "hipDeviceGetPCIBusId": 'snprintf(pciBusId, len, getenv("FAKE_ADDRESS") ?: "0000:%02X:00.0", '
    "0x1b + device); return 0;",
    "hipMalloc": 'return fake_env("FAKE_MALLOC", 0);',
    "hipStreamIsCapturing": "*pCaptureStatus = stream == (hipStream_t)0xca; "
    "return fake_says(stream == (hipStream_t)0xcb ? 906 : 0);",
    "hipStreamCreate": "*stream = (hipStream_t)0x50; return 0;",
    "hipStreamCreateWithFlags": "*stream = (hipStream_t)0x51; return 0;",
    "hipStreamQuery": 'return stream == (hipStream_t)0x50 && fake_env("FAKE_BUSY", 0) ? 600 : 0;',
    "hipGetProcAddress": "return fake_resolve(symbol, pfn, flags == 2, symbolStatus);",
    "hipGetProcAddress_spt": "return fake_resolve(symbol, pfn, 1, symbolStatus);",
    "hipGetDriverEntryPoint": "return fake_resolve(symbol, funcPtr, flags == 2, status);",
    "hipGetDriverEntryPoint_spt": "return fake_resolve(symbol, funcPtr, 1, status);",
    # Waits inside, as a copy to memory that is pageable does: until it can read a byte.
    "hipMemcpyDtoH": 'char c; if (fake_env("FAKE_SLOW", 0)) read(0, &c, 1); '
    'fake_note("copied"); return 0;',
}
ENDS = {"void": "return;", "hipChannelFormatDesc": "hipChannelFormatDesc d = {0}; return d;"}


def version_script(symbols: Iterable[str]) -> str:
    """Each symbol in its node, and each node after the one before."""
    known, places = read_exports(), defaultdict(list)
    for symbol in symbols:
        places[known.get(symbol, NODES[-1])].append(symbol)
    text, before = "", ""
    for node in NODES:
        names = [f"{symbol};" for symbol in places[node]]
        names += [] if before else ["fake_*; krex_sim_*; local: *;"]
        text += f"{node} {{ {'global:' if names else ''} {' '.join(names)} }} {before};\n"
        before = node
    return text


def build(
    folder: Path,
    name: str = "libamdhip64.so.5",
    *,
    lacks: Iterable[str] = (),
    more: Iterable[Line] = (),
    extra: str = "",
    flags: Iterable[str] = ("-Wl,-soname,libamdhip64.so.5",),
) -> Path:
    """Compile one into a folder; `lacks` are symbols that it does not have."""
    missing = {*lacks}
    functions = [
        Function(
            x.ret, x.symbol, x.params, BODIES.get(x.symbol, ENDS.get(x.ret, "return 0;")), x.symbol
        )
        for x in (*LINES, *more)
        if x.symbol not in missing
    ]
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "map"
    script.write_text(version_script(f.symbol for f in functions))
    text = source(HEAD, functions, own_addresses=False) + extra
    return compile_library(folder / name, text, [f"-Wl,--version-script={script}", *flags])
