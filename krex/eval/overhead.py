# SPDX-License-Identifier: Apache-2.0
"""What the gate adds to a submission, and the hooks to a lookup: `krex eval overhead`.

The library's own hook of a launch is called in a loop, with a stand-in for the driver behind it
that does nothing, and so is the stand-in itself. Each round measures all cases one after the other,
and differences are taken within a round: what the machine does meanwhile meets both sides alike.
Functions are looked up in the simulated driver, by the library's dlsym and by libc's.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from krex import paths
from krex.errors import KrexError
from krex.eval.statistics import Spread

SCHEMA: Final = "krex.eval.overhead"
SCHEMA_VERSION: Final = 1
CALLS = 200_000
LOOKUPS = 5_000
_COLUMNS = 5


class Driver(NamedTuple):
    """A simulated one, and two of its functions: one that has a hook, and one that has none."""

    file: str
    hooked: bytes
    not_hooked: bytes


class Api(NamedTuple):
    """Whose launch is measured, and where its functions are looked up, if anywhere."""

    vendor: str
    driver: Driver | None


# By the kind of device on which it can be tried without a GPU.
APIS: Final = {
    "cpu": Api("opencl", None),
    "sim": Api("cuda", Driver("libcuda.so.1", b"cuLaunchKernel", b"cuDeviceGetCount")),
    "sim-hip": Api(
        "hip", Driver("libamdhip64.so", b"hipModuleLaunchKernel", b"hipDriverGetVersion")
    ),
}


class Overhead(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Nanoseconds a submission, and a lookup."""

    schema: Annotated[
        Literal["krex.eval.overhead"], Meta(description="What kind of object this is.")
    ]
    schema_version: Annotated[
        Literal[1], Meta(description="Raised when a key goes, or changes its meaning.")
    ]
    rounds: Annotated[int, Meta(description="How many; the figures are medians over them.")]
    calls_per_round: Annotated[int, Meta(description="How many calls each round is the mean of.")]
    direct_ns: Annotated[float, Meta(description="A call of the stand-in, without KREX.")]
    control_ns: Annotated[
        float, Meta(description="What the same call adds, measured again: noise.")
    ]
    added_ns: Annotated[float, Meta(description="What the hook adds while the gate is open.")]
    added_in_region_ns: Annotated[
        float, Meta(description="What it adds to the holder, whose gate is closed to the others.")
    ]
    added_full_fence_ns: Annotated[
        float, Meta(description="In the region, where the kernel has no membarrier for us.")
    ]
    lookup_ns: Annotated[
        float | UnsetType,
        Meta(
            description="A dlsym of a function that has a hook, without KREX. Absent, like the "
            "next two: not measured, with `--device cpu`."
        ),
    ] = UNSET
    added_to_lookup_ns: Annotated[
        float | UnsetType, Meta(description="What KREX adds to that.")
    ] = UNSET
    added_to_other_lookup_ns: Annotated[
        float | UnsetType,
        Meta(description="What it adds to that of a function of the driver that has no hook."),
    ] = UNSET
    quartiles_ns: Annotated[
        dict[str, Spread], Meta(description="The middle half of the rounds, for each of the above.")
    ]


def measure(rounds: int = 51, calls: int = CALLS, device: str = "cpu") -> Overhead:
    """Measure for one of APIS; takes about 10 ms a round. Raises KrexError where it can't."""
    shim = ctypes.CDLL(paths.library_path())
    vendor, driver = APIS[device]
    q = _submissions(shim, vendor, rounds, calls)
    if driver:
        q |= _lookups(shim, driver, rounds)
    return Overhead(
        schema=SCHEMA,
        schema_version=SCHEMA_VERSION,
        rounds=rounds,
        calls_per_round=calls,
        **{f"{name}_ns": spread.median for name, spread in q.items()},
        quartiles_ns=q,
    )


def _submissions(shim: ctypes.CDLL, vendor: str, rounds: int, calls: int) -> dict[str, Spread]:
    cells = (ctypes.c_double * (_COLUMNS * rounds))()
    status = shim.krex_eval_overhead(
        vendor.encode(), ctypes.c_uint64(calls), ctypes.c_uint32(rounds), cells
    )
    if status:
        raise _error(-status)
    direct, again, opened, region, fenced = (list(cells[i::_COLUMNS]) for i in range(_COLUMNS))
    return {
        "direct": Spread.of(direct),
        "control": Spread.of(_differences(again, direct)),
        "added": Spread.of(_differences(opened, direct)),
        "added_in_region": Spread.of(_differences(region, direct)),
        "added_full_fence": Spread.of(_differences(fenced, direct)),
    }


def _lookups(shim: ctypes.CDLL, driver: Driver, rounds: int) -> dict[str, Spread]:
    library = ctypes.CDLL(os.path.join(paths.simulator_dir(), driver.file))
    handle = library._handle  # noqa: SLF001 - it has no public name
    look_up = shim.krex_eval_lookup
    look_up.restype = ctypes.c_double
    look_up.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64]
    names = (driver.hooked, driver.not_hooked)
    cases = [(of.dlsym, name) for name in names for of in (ctypes.CDLL(None), shim)]
    found = [
        [look_up(dlsym, handle, name, LOOKUPS) for dlsym, name in cases] for _ in range(rounds)
    ]
    plain, hooked, other, other_hooked = map(list, zip(*found, strict=True))
    return {
        "lookup": Spread.of(plain),
        "added_to_lookup": Spread.of(_differences(hooked, plain)),
        "added_to_other_lookup": Spread.of(_differences(other_hooked, other)),
    }


def _differences(a: list[float], b: list[float]) -> list[float]:
    return [x - y for x, y in zip(a, b, strict=True)]


def _error(number: int) -> KrexError:
    if number == errno.EBUSY:
        return KrexError(
            "this process takes part in a board already",
            "run it outside of krex run and LD_PRELOAD",
        )
    if number == errno.EPERM:
        return KrexError(
            "the kernel does not let this process use membarrier",
            "`krex doctor` says why, and what to do",
        )
    return KrexError(f"cannot measure: {os.strerror(number)}", "`krex doctor` may say why")
