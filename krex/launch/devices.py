# SPDX-License-Identifier: Apache-2.0
"""The devices that --device names: PCI ones in full, and there at all.

A misspelt address would be a device on which the command is alone, and so never in anybody's way.
"""

from __future__ import annotations

import os

from krex.errors import LaunchError

PCI_DEVICES = "/sys/bus/pci/devices"
_PCI = "pci:"
_DOMAIN_DIGITS = 4


def known(keys: list[str], folder: str = PCI_DEVICES) -> list[str]:
    """The keys as everybody names them. Raises LaunchError if one is no device of this machine."""
    keys = [_in_full(key) if key.startswith(_PCI) else key for key in keys]
    there = _addresses(folder)
    for key in keys:
        if there and key.startswith(_PCI) and key.removeprefix(_PCI) not in there:
            raise LaunchError(
                f"{key} is not a PCI device of this machine", "`lspci -D` lists those that are"
            )
    return keys


def _in_full(key: str) -> str:
    """`pci:01:00.0` and nvidia-smi's `pci:00000000:01:00.0` as Linux has it: pci:0000:01:00.0."""
    address = key.removeprefix(_PCI).lower()
    if address.count(":") == 1:
        return f"{_PCI}0000:{address}"
    domain, colon, rest = address.partition(":")
    return f"{_PCI}{domain.lstrip('0').rjust(_DOMAIN_DIGITS, '0')}{colon}{rest}"


def _addresses(folder: str) -> list[str]:
    """Those of the PCI devices; none where that cannot be told, as in some sandboxes."""
    try:
        return os.listdir(folder)
    except OSError:
        return []
