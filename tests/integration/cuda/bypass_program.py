# SPDX-License-Identifier: Apache-2.0
"""Does a piece of work on the device for each line that it reads, by a way past KREX.

Arguments: `works.c` as a library; how to load that: `plain`, `deepbind` or `dlmopen`; `registered`,
for a context besides that KREX knows of.
"""

from __future__ import annotations

import ctypes
import os
import sys

NEW_NAMESPACE = -1  # LM_ID_NEWLM


def load(path: str, way: str) -> ctypes.CDLL:
    if way != "dlmopen":
        return ctypes.CDLL(path, mode=os.RTLD_DEEPBIND if way == "deepbind" else os.RTLD_LOCAL)
    dlmopen = ctypes.CDLL(None).dlmopen
    dlmopen.restype = ctypes.c_void_p
    handle = dlmopen(ctypes.c_long(NEW_NAMESPACE), path.encode(), os.RTLD_NOW)
    assert handle
    return ctypes.CDLL(path, handle=handle)


path, way, *more = sys.argv[1:]
if more == ["registered"]:
    cuda = ctypes.CDLL("libcuda.so.1")
    assert cuda.cuInit(0) == 0
    assert cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0) == 0
works = load(path, way)
assert works.works_begin() == 0
print(os.getpid(), flush=True)
for _ in sys.stdin:
    print(works.works_do(), flush=True)
