# SPDX-License-Identifier: Apache-2.0
"""AMD's cards as the kernel driver lists them, and what ROCm's variables let be seen of them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NODES = "/sys/class/kfd/kfd/topology/nodes"
RENDER = "/dev/dri"


class Card:
    """One card, or a part of one, which has the card's key and UUID. Old ones have no UUID."""

    __slots__ = ("key", "uuid")

    def __init__(self, properties: dict[str, int]) -> None:
        place, unique = properties.get("location_id", 0), properties.get("unique_id", 0)
        bus, device, function = (place >> 8) & 0xFF, (place >> 3) & 0x1F, place & 0x7
        self.key = f"pci:{properties.get('domain', 0):04x}:{bus:02x}:{device:02x}.{function}"
        self.uuid = f"GPU-{unique:016x}" if unique else ""


def cards(nodes: str = NODES, render: str = RENDER) -> list[Card]:
    """The cards in the order of the runtime's numbers; none where the driver is not loaded.

    A container's runtime does not count those whose device files it lacks.
    """
    try:
        names = sorted(filter(str.isdecimal, os.listdir(nodes)), key=int)
    except OSError:
        return []
    found = [_properties(os.path.join(nodes, name, "properties")) for name in names]
    return [
        Card(properties)
        for properties in found
        if properties.get("simd_count")
        and os.path.exists(os.path.join(render, f"renderD{properties.get('drm_render_minor', 0)}"))
    ]


def _properties(path: str) -> dict[str, int]:
    """What is known of a node; nothing, if it is not for us."""
    try:
        with open(path) as file:
            pairs = [line.split() for line in file]
    except OSError:
        return {}
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def variables(environment: dict[str, str]) -> dict[str, str]:
    """What the user has set of those that HIP reads, in its order.

    ROCm's own hides all if it is empty; an empty one of the others says nothing.
    """
    rocm = "ROCR_VISIBLE_DEVICES"
    found = {rocm: environment[rocm]} if rocm in environment else {}
    for name in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        if environment.get(name):
            return found | {name: environment[name]}
    return found


def seen(found: list[Card], texts: Iterable[str]) -> list[str]:
    """The keys of the cards that are left when each variable has named some of those before.

    A word that names none, or one that was named, ends the variable.
    """
    for text in texts:
        chosen: list[Card] = []
        for word in text.split(","):
            named = _named(found, word.strip())
            if len(named) != 1 or named[0] in chosen:
                break
            chosen += named
        found = chosen
    return [card.key for card in found]


def _named(found: list[Card], word: str) -> list[Card]:
    if word.isdecimal():
        return found[int(word) : int(word) + 1]
    begun = word.lower()
    return [card for card in found if begun and card.uuid.lower().startswith(begun)]


def give(
    environment: dict[str, str], device: str, nodes: str = NODES, render: str = RENDER
) -> None:
    """Let the command see this card only, if it is one that can be named.

    By ROCm's variable, which takes UUIDs since long before HIP's own does. Parts of a card have the
    same.
    """
    found = [card for card in cards(nodes, render) if card.key == device]
    if len(found) == 1 and found[0].uuid:
        environment["ROCR_VISIBLE_DEVICES"] = found[0].uuid
        environment["HIP_VISIBLE_DEVICES"] = "0"
