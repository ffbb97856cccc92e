# SPDX-License-Identifier: Apache-2.0
"""A driver library that does nothing but count: `libcuda.so.1` made from api.def, of any release.

Every listed function is there, counts its calls and succeeds. The few in BODIES answer something,
as the environment says (FAKE_*); `fake_calls` and `fake_log` tell what was called.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

SHIM = Path(__file__).resolve().parents[2] / "shim"
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cuda/types.h"
#define LEGACY 0
#define PTDS 1
#define PTSZ 1
static struct function { const char *symbol, *base; int version, flag; void *address; int calls; } fake_functions[];
static char fake_text[1 << 16];
static CUcontext fake_current;
static void fake_note(const char *symbol) {
    strncat(fake_text, symbol, sizeof fake_text - strlen(fake_text) - 1);
    strncat(fake_text, " ", sizeof fake_text - strlen(fake_text) - 1);
}
static void fake_count(const char *symbol) {
    for (struct function *f = fake_functions; f->symbol; f++)
        if (!strcmp(f->symbol, symbol)) __atomic_add_fetch(&f->calls, 1, 5);
    fake_note(symbol);
}
const char *fake_log(void) { return fake_text; }
/* A function as a table would have it: by no name. */
void *fake_function(const char *symbol) {
    for (struct function *f = fake_functions; f->symbol; f++)
        if (!strcmp(f->symbol, symbol)) return f->address;
    return NULL;
}
int fake_calls(const char *symbol) {
    for (struct function *f = fake_functions; f->symbol; f++)
        if (!strcmp(f->symbol, symbol)) return f->calls;
    return -1;
}
static int fake_env(const char *name, int otherwise) {
    return getenv(name) ? atoi(getenv(name)) : otherwise;
}
/* As the documentation of cuGetProcAddress says. */
static CUresult fake_resolve(const char *name, void **to, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
    struct function *best = NULL;
    for (struct function *f = fake_functions; f->symbol; f++)
        if (!strcmp(f->base, name) && f->version <= version && f->flag <= (flags == 2) &&
            (!best || f->flag > best->flag ||
             (f->flag == best->flag && f->version > best->version)))
            best = f;
    if (status) *status = best ? 0 : 1;
    if (!best) return CUDA_ERROR_NOT_FOUND;
    *to = best->address;
    return CUDA_SUCCESS;
}
"""  # noqa: E501

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


def source(lines: Iterable[Line], own_addresses: bool) -> str:
    """The library's text. With own_addresses the resolver gives out functions nobody exports."""
    parts, table, after = [HEAD], [], []
    for line in lines:
        body = BODIES.get(line.symbol, "return 0;")
        known = f'fake_count("{line.symbol}"); {body}'
        parts.append(f"CUresult {line.symbol}({line.params}) {{ {known} }}")
        address = line.symbol
        if own_addresses:
            address = f"own_{line.symbol}"
            parts.append(f"static CUresult {address}({line.params}) {{ {known} }}")
        fields = f'"{line.symbol}", "{line.base}", {line.version}, {line.flag}, {address}'
        table.append(f"    {{{fields}}},")
    after = ["static struct function fake_functions[] = {", *table, "    {0}};"]
    return "\n".join([*parts, *after])


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
    lines = [line for line in (*LINES, *more) if line.symbol not in missing]
    path, text = folder / name, folder / f"{name}.c"
    folder.mkdir(parents=True, exist_ok=True)
    # The table is defined at the end, after the functions; C has no forward tables of unknown size.
    whole = source(lines, own_addresses).replace(
        "fake_functions[];", f"fake_functions[{len(lines) + 1}];", 1
    )
    text.write_text("#define _GNU_SOURCE\n" + whole + extra)
    words = ["cc", "-w", "-O0", "-shared", "-fPIC", f"-I{SHIM}", "-Wl,-Bsymbolic", *flags]
    subprocess.run([*words, "-o", path, text], check=True, timeout=60)
    return path
