# SPDX-License-Identifier: Apache-2.0
"""What programs that use CUDA or HIP find here: the vendor's library, its version, its devices.

Only for a process of its own: loading a driver may crash, hang or leave threads behind.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import NamedTuple

from krex.doctor.report import Check, passed, warned

_ID_BYTES = 32
_NAME_BYTES = 256
_SIMULATE = "or try it without one: krex run --sim -- python bench.py"


class Runtime(NamedTuple):
    """A vendor's library, by the names of what is asked of it."""

    id: str
    vendor: str
    libraries: Sequence[str]
    init: str
    version: str
    number_of_devices: str
    name: str
    bus_id: str
    error_name: Callable[[ctypes.CDLL, int], str]
    version_text: Callable[[int], str]
    fix: str


def check_cuda() -> Check:
    """The driver that programs load by libcuda.so.1."""
    return _check(CUDA)


def check_hip() -> Check:
    """The runtime that programs load by one of the names of libamdhip64.so."""
    return _check(HIP)


def _cuda_error(library: ctypes.CDLL, code: int) -> str:
    name = ctypes.c_char_p()
    library.cuGetErrorName(code, ctypes.byref(name))
    return (name.value or b"CUDA error %d" % code).decode()


def _hip_error(library: ctypes.CDLL, code: int) -> str:
    library.hipGetErrorName.restype = ctypes.c_char_p
    return (library.hipGetErrorName(code) or b"HIP error %d" % code).decode()


CUDA = Runtime(
    id="cuda",
    vendor="NVIDIA",
    libraries=("libcuda.so.1",),
    init="cuInit",
    version="cuDriverGetVersion",
    number_of_devices="cuDeviceGetCount",
    name="cuDeviceGetName",
    bus_id="cuDeviceGetPCIBusId",
    error_name=_cuda_error,
    version_text=lambda version: f"{version // 1000}.{version % 1000 // 10}",
    fix="nvidia-smi says whether the driver sees a GPU (in a container: docker run --gpus all)",
)
HIP = Runtime(
    id="hip",
    vendor="AMD",
    libraries=tuple(f"libamdhip64.so{end}" for end in ("", ".7", ".6", ".5")),
    init="hipInit",
    version="hipRuntimeGetVersion",
    number_of_devices="hipGetDeviceCount",
    name="hipDeviceGetName",
    bus_id="hipDeviceGetPCIBusId",
    error_name=_hip_error,
    version_text=lambda version: f"{version // 10_000_000}.{version // 100_000 % 100}",
    fix="rocminfo says whether a GPU is seen: that takes /dev/kfd and /dev/dri, and the groups "
    "video and render (in a container: docker run --device /dev/kfd --device /dev/dri)",
)


def _check(runtime: Runtime) -> Check:
    library, error = _load(runtime.libraries)
    api = runtime.id.upper()
    if library is None and error:
        return warned(runtime.id, f"{error}: programs that use {api} fail",
                      "install what the library needs, or remove it")  # fmt: skip
    if library is None:
        seen = f"no {runtime.libraries[0]}: programs that use {api} find none"
        return passed(runtime.id, seen, needed=False)
    version = ctypes.c_int()
    getattr(library, runtime.version)(ctypes.byref(version))
    simulated = hasattr(library, "krex_sim_device_number")
    what = f"{'the simulated ' if simulated else ''}{runtime.vendor} runtime"
    what += f" {runtime.version_text(version.value)}"
    error, devices = _devices(library, runtime)
    if not devices:
        why = f" ({error})" if error else ""
        return warned(runtime.id, f"{what}, but no device{why}: programs that use {api} fail",
                      f"{runtime.fix}; {_SIMULATE}")  # fmt: skip
    return passed(runtime.id, f"{what}: {'; '.join(devices)}", needed=False)


def _load(names: Sequence[str]) -> tuple[ctypes.CDLL | None, str]:
    """The library, or why one that is there can't be loaded; neither: there is none."""
    for name in names:
        library, error = _try(name)
        if library is not None or not error.startswith(f"{name}: cannot open shared object file"):
            return library, error
    return None, ""


def _try(name: str) -> tuple[ctypes.CDLL | None, str]:
    try:
        return ctypes.CDLL(name), ""
    except OSError as error:
        return None, str(error)


def _devices(library: ctypes.CDLL, runtime: Runtime) -> tuple[str, list[str]]:
    """An error, or the devices as text."""
    count = ctypes.c_int(0)
    code = getattr(library, runtime.init)(0)
    code = code or getattr(library, runtime.number_of_devices)(ctypes.byref(count))
    if code:
        return runtime.error_name(library, code), []
    return "", [_device(library, runtime, ordinal) for ordinal in range(count.value)]


def _device(library: ctypes.CDLL, runtime: Runtime, ordinal: int) -> str:
    name = ctypes.create_string_buffer(_NAME_BYTES)
    bus_id = ctypes.create_string_buffer(_ID_BYTES)
    getattr(library, runtime.name)(name, _NAME_BYTES, ordinal)
    getattr(library, runtime.bus_id)(bus_id, _ID_BYTES, ordinal)
    return f"pci:{bus_id.value.decode().lower()} {name.value.decode(errors='replace')}"
