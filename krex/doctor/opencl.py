# SPDX-License-Identifier: Apache-2.0
"""The OpenCL devices that one loader shows, with the keys that the shim gives them.

Only for a process of its own: loading a driver may crash, hang or leave threads behind.
"""

from __future__ import annotations

import ctypes
import importlib
import struct
from collections.abc import Callable

from krex.doctor.report import Device

SYSTEM_LOADER = "libOpenCL.so.1"
UNKNOWN_KEY = "unknown:0"

_PLATFORM_NAME = 0x0902
_ALL_TYPES = 0xFFFFFFFF
_TYPE = 0x1000
_NAME = 0x102B
_TYPE_CPU = 1 << 1
_PCI_BUS_INFO_KHR = 0x410F
_PCI_BUS_ID_NV = 0x4008
_PCI_SLOT_ID_NV = 0x4009
_PCI_DOMAIN_ID_NV = 0x400A
_TOPOLOGY_AMD = 0x4037


def system_devices() -> list[Device]:
    """Through the loader that linked programs get; none if the system has no loader."""
    try:
        library = ctypes.CDLL(SYSTEM_LOADER)
    except OSError:
        return []
    return _devices(library, "system")


def package_devices(package: str) -> list[Device]:
    """Through the loader that a Python package brings (pyopencl's wheel does)."""
    importlib.import_module(package)
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        loaded = {line.split(None, 5)[5].strip() for line in maps if "/libOpenCL" in line}
    return [device for path in sorted(loaded) for device in _devices(ctypes.CDLL(path), package)]


def _devices(library: ctypes.CDLL, loader: str) -> list[Device]:
    """All devices of all platforms."""
    found = []
    for platform in _handles(library.clGetPlatformIDs):
        name = _text(library.clGetPlatformInfo, platform, _PLATFORM_NAME)
        for device in _handles(_of_platform(library, platform)):
            info = library.clGetDeviceInfo
            found.append(
                Device(
                    key=_key(info, device),
                    name=_text(info, device, _NAME),
                    platform=name,
                    loader=loader,
                )
            )
    return found


def _of_platform(library: ctypes.CDLL, platform: int) -> Callable[..., int]:
    def get(*rest: object) -> int:
        kinds = ctypes.c_uint64(_ALL_TYPES)
        return int(library.clGetDeviceIDs(ctypes.c_void_p(platform), kinds, *rest))

    return get


def _handles(get: Callable[..., int]) -> list[int]:
    """What a function of the form (entries, array, count) lists; an error is an empty list."""
    count = ctypes.c_uint(0)
    if get(ctypes.c_uint(0), None, ctypes.byref(count)) != 0 or count.value == 0:
        return []
    handles = (ctypes.c_void_p * count.value)()
    if get(count, handles, None) != 0:
        return []
    return [handle for handle in handles if handle]


def _ask(get: Callable[..., int], handle: int, what: int) -> bytes | None:
    size = ctypes.c_size_t(0)
    where = ctypes.c_void_p(handle)
    if get(where, ctypes.c_uint(what), ctypes.c_size_t(0), None, ctypes.byref(size)) != 0:
        return None
    answer = ctypes.create_string_buffer(size.value)
    if get(where, ctypes.c_uint(what), size, answer, None) != 0:
        return None
    return answer.raw


def _text(get: Callable[..., int], handle: int, what: int) -> str:
    return (_ask(get, handle, what) or b"").rstrip(b"\0").decode(errors="replace").strip()


def _number(get: Callable[..., int], device: int, what: int) -> int | None:
    answer = _ask(get, device, what)
    return int.from_bytes(answer, "little") if answer else None


def _key(get: Callable[..., int], device: int) -> str:
    """As device.c of the shim makes it; keep the two alike."""
    if (_number(get, device, _TYPE) or 0) & _TYPE_CPU:
        return "cpu:0"
    pci = _ask(get, device, _PCI_BUS_INFO_KHR)
    if pci and len(pci) >= 16:
        return _pci_key(*struct.unpack_from("=4I", pci))
    bus, slot = _number(get, device, _PCI_BUS_ID_NV), _number(get, device, _PCI_SLOT_ID_NV)
    if bus is not None and slot is not None:
        domain = _number(get, device, _PCI_DOMAIN_ID_NV) or 0
        return _pci_key(domain, bus, slot >> 3, slot & 7)
    amd = _ask(get, device, _TOPOLOGY_AMD)
    if amd and len(amd) >= 24:
        return _pci_key(0, *struct.unpack_from("=3B", amd, 21))
    return UNKNOWN_KEY


def _pci_key(domain: int, bus: int, device: int, function: int) -> str:
    return f"pci:{domain:04x}:{bus:02x}:{device:02x}.{function:x}"
