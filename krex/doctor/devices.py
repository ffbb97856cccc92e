# SPDX-License-Identifier: Apache-2.0
"""Which devices commands can use here, by which driver, and which of them KREX sees."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from krex.doctor import opencl
from krex.doctor.isolate import Died
from krex.doctor.report import Check, Device, failed, passed, warned

# Python packages whose wheels carry an OpenCL loader of their own.
_PACKAGES = ("pyopencl",)
_VENDORS = "/etc/OpenCL/vendors"
_NO_DRIVER = (
    "install one: pip install 'krex-gpu[cpu]' runs kernels on the CPU; for a GPU the vendor's "
    f"OpenCL driver, which puts a .icd file into {_VENDORS}"
)


def loaders() -> dict[str, Callable[[], list[Device]]]:
    """What to run, each in a process of its own."""
    packages = [name for name in _PACKAGES if find_spec(name)]
    return {"system": opencl.system_devices} | {
        name: partial(opencl.package_devices, name) for name in packages
    }


def check(outcomes: Mapping[str, list[Device] | Died]) -> Check:
    """Judge what the loaders' processes said."""
    devices = found(outcomes)
    deaths = {name: out for name, out in outcomes.items() if isinstance(out, Died)}
    trouble = "; ".join(f"{_loader(name)} {death.why}" for name, death in deaths.items())
    text = "; ".join(_lines(devices))
    if not devices:
        seen = f"no OpenCL device: {trouble}" if deaths else "no OpenCL device is visible"
        return failed("devices", seen, _fix_for_death(deaths) if deaths else _NO_DRIVER)
    if deaths:
        return warned("devices", f"{text}; but {trouble}", _fix_for_death(deaths), needed=True)
    if any(device.key == opencl.UNKNOWN_KEY for device in devices):
        return warned("devices", f"{text}: KREX cannot tell devices of unknown address apart, so "
                      "they share one gate", "use a driver that tells the PCI address "
                      "(cl_khr_pci_bus_info)", needed=True)  # fmt: skip
    return passed("devices", text)


def found(outcomes: Mapping[str, list[Device] | Died]) -> list[Device]:
    """All devices, in the loaders' order."""
    lists = [out for out in outcomes.values() if not isinstance(out, Died)]
    return [device for devices in lists for device in devices]


def _lines(devices: Sequence[Device]) -> list[str]:
    """One text a device, however many loaders found it."""
    texts: dict[tuple[str, str, str], list[str]] = {}
    for device in devices:
        texts.setdefault((device.key, device.name, device.platform), []).append(device.loader)
    return [
        f"{key} {name} ({platform}, by {' and '.join(map(_loader, sorted(set(by))))})"
        for (key, name, platform), by in texts.items()
    ]


def _loader(name: str) -> str:
    return "the system's loader" if name == "system" else f"the loader of {name}"


def _fix_for_death(deaths: Mapping[str, Died]) -> str:
    if all(death.timed_out for death in deaths.values()):
        return (
            f"a driver hangs or wakes up slowly{_drivers()}: try krex doctor --timeout 60, then "
            "without each driver (NVIDIA: nvidia-smi -pm 1 keeps it awake)"
        )
    return f"a driver crashes when it is loaded{_drivers()}: update it, or move its .icd file away"


def _drivers() -> str:
    """The files that name drivers, for the reader who has to find the bad one."""
    place = Path(os.environ.get("OCL_ICD_VENDORS") or _VENDORS)
    files = sorted(place.glob("*.icd")) if place.is_dir() else [place] if place.exists() else []
    return f" ({', '.join(map(str, files))})" if files else ""
