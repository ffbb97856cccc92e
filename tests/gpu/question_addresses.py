# SPDX-License-Identifier: Apache-2.0
"""Is what dlsym gives for an export the address that cuGetProcAddress gives for its name?

The shim swaps what cuGetProcAddress returned by its address, looked up among the exports: that is
right if each line of shim/cuda/api.def gets the same address both ways.
"""

from __future__ import annotations

import ctypes
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from gpu.rows import Job

_API = Path(__file__).resolve().parents[2] / "shim" / "cuda" / "api.def"
_LINE = re.compile(r"^KREX_CU_API\(\w+, [^,]+, (\w+), (\w+), (\d+), (\w+),", re.MULTILINE)
_LEGACY, _PER_THREAD = 1, 2  # CU_GET_PROC_ADDRESS_..._STREAM
_SHOWN = 8


class Line(NamedTuple):
    """What api.def says of an export: by which name, version and flag it is asked for."""

    symbol: str
    base: str
    version: int
    flag: str


def addresses(job: Job) -> None:
    """A row for the answer, and one for what the driver exports or hands out on one way only."""
    library = ctypes.CDLL("libcuda.so.1")
    library.cuInit(0)
    groups: dict[str, list[str]] = defaultdict(list)
    lines = [Line(s, b, int(v), f) for s, b, v, f in _LINE.findall(_API.read_text())]
    for line in lines:
        groups[_compare(library, line)].append(line.symbol)
    counts = {name: len(symbols) for name, symbols in groups.items()}
    different = groups["different"]
    text = f"{counts.get('the same', 0)} of {len(lines)} the same both ways, "
    text += f"{len(different)} different{_names(different)}"
    job.judge("addresses", not different and bool(counts.get("the same")), text, counts=counts)
    for name in ("exported, not handed out", "handed out, not exported"):
        if groups[name]:
            text = f"{len(groups[name])} {name}{_names(groups[name])}"
            job.measured("addresses", text, symbols=groups[name])


def _compare(library: ctypes.CDLL, line: Line) -> str:
    exported = _exported(library, line.symbol)
    found, result = ctypes.c_void_p(), ctypes.c_int()
    flag = _LEGACY if line.flag == "LEGACY" else _PER_THREAD
    arguments = (line.version, ctypes.c_uint64(flag), ctypes.byref(result))
    code = library.cuGetProcAddress_v2(line.base.encode(), ctypes.byref(found), *arguments)
    handed_out = None if code else found.value
    if exported == handed_out:
        return "absent" if exported is None else "the same"
    if exported is None:
        return "handed out, not exported"
    return "exported, not handed out" if handed_out is None else "different"


def _exported(library: ctypes.CDLL, symbol: str) -> int | None:
    try:
        return ctypes.cast(library[symbol], ctypes.c_void_p).value
    except AttributeError:
        return None


def _names(symbols: list[str]) -> str:
    more = f" and {len(symbols) - _SHOWN} more" if len(symbols) > _SHOWN else ""
    return f" ({', '.join(symbols[:_SHOWN])}{more})" if symbols else ""
