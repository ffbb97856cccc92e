# SPDX-License-Identifier: Apache-2.0
"""A device's clocks, temperature and power by NVML, read only."""

from __future__ import annotations

import ctypes

_CLOCKS = {"sm_mhz": 1, "memory_mhz": 2}


def read(key: str) -> dict[str, float] | None:
    """As they are now, of the device with that key; None where NVML does not tell."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    handle = ctypes.c_void_p()
    address = key.removeprefix("pci:").encode()
    if library.nvmlInit_v2():
        return None
    try:
        if library.nvmlDeviceGetHandleByPciBusId_v2(address, ctypes.byref(handle)):
            return None
        return _values(library, handle)
    finally:
        library.nvmlShutdown()


def _values(library: ctypes.CDLL, handle: ctypes.c_void_p) -> dict[str, float]:
    found: dict[str, float] = {}
    value = ctypes.c_uint()
    at = ctypes.byref(value)
    for name, kind in _CLOCKS.items():
        if not library.nvmlDeviceGetClockInfo(handle, kind, at):
            found[name] = value.value
        if not library.nvmlDeviceGetMaxClockInfo(handle, kind, at):
            found[f"{name}_most"] = value.value
    if not library.nvmlDeviceGetTemperature(handle, 0, at):
        found["temperature_c"] = value.value
    if not library.nvmlDeviceGetPowerUsage(handle, at):
        found["power_w"] = value.value / 1000
    return found


def describe(found: dict[str, float]) -> str:
    """In words."""
    parts = [
        f"{title} {found[name]:g} of {found.get(f'{name}_most', float('nan')):g} MHz"
        for title, name in (("SM", "sm_mhz"), ("memory", "memory_mhz"))
        if name in found
    ]
    parts += [f"{found['temperature_c']:g} C"] if "temperature_c" in found else []
    parts += [f"{found['power_w']:.0f} W"] if "power_w" in found else []
    return ", ".join(parts)
