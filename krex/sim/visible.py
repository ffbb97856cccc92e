# SPDX-License-Identifier: Apache-2.0
"""Which simulated devices the vendors' variables let be seen.

As the simulated drivers read them: shim/sim/driver/visible.c.
"""

import uuid

# Of which the number is the last byte: shim/sim/device/channel.c.
_UUID = b"KREX-SIM\x80\0\0\0\0\0\0"


def names(number: int) -> tuple[str, str]:
    """What CUDA and what HIP call a device."""
    whole = _UUID + bytes([number])
    return f"GPU-{uuid.UUID(bytes=whole)}", f"GPU-{whole[8:].hex()}"


def narrowed(devices: list[int], text: str) -> list[int]:
    """Those of the devices that a variable names, by their places in the list or by their names.

    What stands behind a word that names none does not count, and a device that is named twice
    makes it nonsense.
    """
    found: list[int] = []
    for word in text.split(","):
        named = _named(devices, word.strip())
        if len(named) != 1:
            break
        found += named
    return found if len(set(found)) == len(found) else []


def _named(devices: list[int], word: str) -> list[int]:
    if word.isdecimal():
        return devices[int(word) : int(word) + 1]
    if len(word) <= len("GPU-"):
        return []
    begun = word.lower()
    return [n for n in devices if any(name.lower().startswith(begun) for name in names(n))]
