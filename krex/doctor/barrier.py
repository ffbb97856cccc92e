# SPDX-License-Identifier: Apache-2.0
"""membarrier: what makes a submission cheap."""

from __future__ import annotations

import time

from krex.doctor import syscalls
from krex.doctor.report import Check, passed, warned

_QUERY = 0
_GLOBAL_EXPEDITED = 1 << 1
_REGISTER = 1 << 2


def check() -> Check:
    """Query, register and run GLOBAL_EXPEDITED, as the shim and the controller do."""
    try:
        offered = syscalls.membarrier(_QUERY)
        if not offered & _GLOBAL_EXPEDITED or not offered & _REGISTER:
            return _lacking("the kernel does not offer GLOBAL_EXPEDITED", "use Linux 4.16 or newer")
        syscalls.membarrier(_REGISTER)
        start = time.perf_counter()
        syscalls.membarrier(_GLOBAL_EXPEDITED)
        took_us = (time.perf_counter() - start) * 1e6
    except OSError as error:
        return _lacking(f"membarrier: {error.strerror or error}", _fix())
    return passed(
        "membarrier", f"GLOBAL_EXPEDITED registered, and run in {took_us:.0f} us", needed=False
    )


def _lacking(what: str, fix: str) -> Check:
    text = f"{what}: each submission then pays for a full fence of its own, some 10 ns"
    return warned("membarrier", text, fix)


def _fix() -> str:
    if syscalls.is_filtered():
        return (
            "a seccomp profile is in force: add membarrier to the calls it allows (Docker's and "
            "Podman's default profiles do), or try docker run --security-opt seccomp=unconfined"
        )
    return "use Linux 4.16 or newer with CONFIG_MEMBARRIER, outside sandboxes such as gVisor"
