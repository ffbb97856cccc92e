# SPDX-License-Identifier: Apache-2.0
"""The GPU that a command is to find: the vendors' variables, within what the user had set.

As the drivers list them where `krex run` is: in a container they have other numbers than outside.
What differs for AMD's is in amd.py.
"""

from __future__ import annotations

import os

from krex.errors import LaunchError
from krex.launch import amd

VARIABLE = "CUDA_VISIBLE_DEVICES"
GPUS = "/proc/driver/nvidia/gpus"
NAMES = ("GPU-", "MIG-")  # what nvidia-smi calls a card, and a part of one


class Gpu:
    """One of NVIDIA's: `key` as in --device; `uuid` is empty while the driver has not looked."""

    __slots__ = ("key", "model", "uuid")

    def __init__(self, address: str, information: str) -> None:
        lines = {}
        for line in information.splitlines():
            name, _, text = line.partition(":")
            lines[name.strip()] = text.strip()
        uuid = lines.get("GPU UUID", "")
        self.key = f"pci:{address.lower()}"
        self.model = lines.get("Model", "")
        self.uuid = "" if "?" in uuid else uuid


def gpus(folder: str = GPUS) -> list[Gpu]:
    """The cards, in the order of their addresses; none where NVIDIA's driver is not loaded."""
    found = []
    try:
        for address in sorted(os.listdir(folder)):
            with open(os.path.join(folder, address, "information")) as file:
                found.append(Gpu(address, file.read()))
    except OSError:
        return []
    return found


def by_uuid(device: str, folder: str = GPUS, amds: list[amd.Card] | None = None) -> str:
    """The key that the driver's name of a card, which may be cut, or of a part of one stands for.

    Any other name is a key already. Raises LaunchError if no card is meant, or several.
    """
    if not device.startswith(NAMES):
        return device
    if device.startswith("MIG-"):
        return "mig:" + device.removeprefix("MIG-").lower()
    there = [(gpu.key, gpu.uuid) for gpu in gpus(folder)]
    there += [(card.key, card.uuid) for card in (amd.cards() if amds is None else amds)]
    matching = {key for key, uuid in there if uuid.startswith(device)}
    if len(matching) != 1:
        what = "several GPUs" if matching else "no GPU"
        raise LaunchError(
            f"{device} names {what} of this machine", "`nvidia-smi -L` or `rocminfo` lists them"
        )
    return matching.pop()


def seen(found: list[Gpu], text: str, *, by_address: bool) -> list[str] | None:
    """The keys of the cards that CUDA_VISIBLE_DEVICES lets be seen; None: that cannot be told.

    CUDA's own order begins with the fastest card; `by_address`: CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    numbered = by_address or len({gpu.model for gpu in found}) <= 1
    keys = []
    for word in (part.strip() for part in text.split(",")):
        if word.startswith("MIG-") or (word.isdecimal() and not numbered):
            return None
        if word.isdecimal():
            matching = found[int(word) : int(word) + 1]
        else:
            matching = [gpu for gpu in found if word and gpu.uuid.startswith(word)]
        if len(matching) != 1:
            break  # the driver takes what stands before it
        keys.append(matching[0].key)
    return keys


def allowed(
    devices: list[str],
    environment: dict[str, str],
    folder: str = GPUS,
    amds: list[amd.Card] | None = None,
) -> list[str]:
    """Those of the devices that the user lets be seen. Raises LaunchError if none is left."""
    found = gpus(folder)
    if found and VARIABLE in environment:
        text = environment[VARIABLE]
        by_address = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
        visible = seen(found, text, by_address=by_address)
        devices = _left(devices, {gpu.key for gpu in found}, visible, {VARIABLE: text})
    cards, variables = amd.cards() if amds is None else amds, amd.variables(environment)
    if cards and variables:
        visible = amd.seen(cards, variables.values())
        devices = _left(devices, {card.key for card in cards}, visible, variables)
    return devices


def _left(
    devices: list[str], known: set[str], visible: list[str] | None, variables: dict[str, str]
) -> list[str]:
    """The devices without those known ones that are not visible; None: that cannot be told."""
    if visible is None:
        return devices
    left = [key for key in devices if key in visible or key.lower() not in known]
    if not left:
        text = " ".join(f"{name}={value}" for name, value in variables.items())
        raise LaunchError(
            f"{text} leaves none of {', '.join(devices)}", "unset it, or name one of them in it"
        )
    return left


def give(environment: dict[str, str], device: str, folder: str = GPUS) -> None:
    """Let the command see this device only, if it is a card that can be named."""
    for gpu in gpus(folder):
        if gpu.key == device and gpu.uuid and "MIG-" not in environment.get(VARIABLE, ""):
            environment[VARIABLE] = gpu.uuid
    amd.give(environment, device)
