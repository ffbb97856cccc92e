# SPDX-License-Identifier: Apache-2.0
"""Is there a device, and which? In a process of its own, since a driver may crash or hang.

Prints the device as JSON; or exits with 77, and says on stderr what is missing.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass

EXIT_NONE = 77
_LIMIT_S = 60.0


class NoDevice(Exception):
    """There is none; the text says why."""


@dataclass(frozen=True)
class Device:
    """The first device that the driver shows."""

    key: str  # as in a region record
    name: str
    driver_version: int  # of the API, as cuDriverGetVersion gives it
    count: int
    simulated: bool


def find(environment: Mapping[str, str], folder: str) -> Device:
    """Ask a child, in a folder. Raises NoDevice."""
    command = [sys.executable, "-m", "gpu.probe"]
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoDevice(f"cuInit did not return within {_LIMIT_S:g} s") from None
    if done.returncode == 0:
        return Device(**json.loads(done.stdout))
    said = done.stderr.strip().splitlines()
    raise NoDevice(said[-1] if said else f"the driver ended its process ({done.returncode})")


def look() -> Device:
    """In this process. Raises NoDevice."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise NoDevice("there is no libcuda.so.1") from None
    if status := library.cuInit(0):
        raise NoDevice(f"cuInit failed with error {status}")
    count, version = ctypes.c_int(), ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    if library.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        raise NoDevice("the driver shows no device")
    device = ctypes.c_int()
    library.cuDeviceGet(ctypes.byref(device), 0)
    text = ctypes.create_string_buffer(128)
    library.cuDeviceGetName(text, len(text), device)
    name = text.value.decode(errors="replace")
    # Only KREX's simulated driver has this function.
    number = getattr(library, "krex_sim_device_number", None)
    if number:
        return Device(f"sim:{number(device)}", name, version.value, count.value, simulated=True)
    library.cuDeviceGetPCIBusId(text, len(text), device)
    key = f"pci:{text.value.decode().lower()}"
    return Device(key, name, version.value, count.value, simulated=False)


if __name__ == "__main__":
    try:
        print(json.dumps(asdict(look())))
    except NoDevice as reason:
        print(reason, file=sys.stderr)
        sys.exit(EXIT_NONE)
