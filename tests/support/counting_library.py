# SPDX-License-Identifier: Apache-2.0
"""A library of functions that count their calls: what a vendor's fake driver is made of.

`fake_calls` and `fake_log` tell what was called, `fake_function` gives a function as a table would.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

SHIM = Path(__file__).resolve().parents[2] / "shim"

HEAD = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define LEGACY 0
#define PTDS 1
#define PTSZ 1
#define SPT 1
static struct function { const char *symbol, *base; int version, flag; void *address; int calls; }
    fake_functions[];
static char fake_text[1 << 16];
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
/* As the documentation of cuGetProcAddress says: the newest of that name, and not too new. */
static struct function *fake_find(const char *name, int version, int flag) {
    struct function *best = NULL;
    for (struct function *f = fake_functions; f->symbol; f++)
        if (!strcmp(f->base, name) && f->version <= version && f->flag <= flag &&
            (!best || f->flag > best->flag ||
             (f->flag == best->flag && f->version > best->version)))
            best = f;
    return best;
}
"""


class Function(NamedTuple):
    """A function of the library: it counts, and then does what its body says."""

    ret: str
    symbol: str
    params: str
    body: str
    base: str = ""  # what a resolver calls it
    version: int = 0
    flag: str = "LEGACY"


def source(head: str, functions: Sequence[Function], own_addresses: bool) -> str:
    """The library's text. With own_addresses its resolver gives out functions nobody exports."""
    # The table is defined at the end, after the functions; C has no tables of unknown size before.
    parts = [HEAD.replace("fake_functions[];", f"fake_functions[{len(functions) + 1}];"), head]
    table = []
    for f in functions:
        known = f'fake_count("{f.symbol}"); {f.body}'
        parts.append(f"{f.ret} {f.symbol}({f.params}) {{ {known} }}")
        address = f.symbol
        if own_addresses:
            address = f"own_{f.symbol}"
            parts.append(f"static {f.ret} {address}({f.params}) {{ {known} }}")
        table.append(f'    {{"{f.symbol}", "{f.base}", {f.version}, {f.flag}, {address}}},')
    end = ["static struct function fake_functions[] = {", *table, "    {0}};"]
    return "\n".join([*parts, *end])


def compile_library(path: Path, text: str, flags: Iterable[str]) -> Path:
    """Compile a text into a library, which calls its own functions whoever else has the names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_name(f"{path.name}.c")
    file.write_text(text)
    words = ["cc", "-w", "-O0", "-shared", "-fPIC", f"-I{SHIM}", "-Wl,-Bsymbolic", *flags]
    subprocess.run([*words, "-o", path, file], check=True, timeout=60)
    return path
