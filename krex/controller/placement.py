# SPDX-License-Identifier: Apache-2.0
"""On which device a command runs, of those that it may run on."""

from typing import TYPE_CHECKING

from krex.controller.request import DEFAULT_DEVICE, Refusal, Request
from krex.sim.visible import narrowed

if TYPE_CHECKING:
    from krex.controller.device import Device
    from krex.controller.server import Server

MOST_SIMULATED = 16  # KREX_SIM_DEVICES of shim/sim/wire.h


async def place(server: "Server", request: Request) -> "Device":
    """Find a command's device. Raises Refusal: there is none."""
    memory: dict[str, int | None] = dict.fromkeys(request.devices or [DEFAULT_DEVICE])
    if request.simulated:
        simulator = server.simulator()
        await simulator.ensure(request.simulated)
        keys = simulated_keys(request, len(simulator.memory))
        memory = {key: simulator.memory[int(key.removeprefix("sim:"))] for key in keys}
    keys = large_enough(memory, request.memory or 0)
    device = server.device(least_loaded(server, keys, request.memory or 0))
    device.admission.memory = memory[device.key]
    return device


def large_enough(memory: dict[str, int | None], wanted: int) -> list[str]:
    """The devices that have so much memory; None says of one that nobody knows. Raises Refusal."""
    unknown = [key for key, there in memory.items() if there is None]
    if wanted and unknown:
        raise Refusal(f"nobody knows how much memory {unknown[0]} has; leave out --mem")
    keys = [key for key, there in memory.items() if there is None or wanted <= there]
    if not keys:
        most = size(max(there or 0 for there in memory.values()))
        raise Refusal(f"--mem {size(wanted)} is more than the {most} of the device; ask for less")
    return keys


def least_loaded(server: "Server", keys: list[str], memory: int) -> str:
    """The device with the fewest commands on it or waiting for it; of several, the first named.

    One on which there is no room for the memory now comes after all on which there is.
    """

    def cost(key: str) -> tuple[bool, int]:
        device = server.devices.get(key)
        if not device:
            return False, 0
        return not device.admission.has_room(memory), device.admission.load

    return min(keys, key=cost)


def simulated_keys(request: Request, devices: int) -> list[str]:
    """Of so many simulated devices, those that a request allows. Raises Refusal if none is left."""
    assert request.simulated
    there = [f"sim:{n}" for n in range(devices)]
    if unknown := set(request.devices or ()).difference(there):
        raise Refusal(_no_simulated(min(unknown), there))
    keys = [key for key in there if key in (request.devices or there)]
    left = list(range(devices))
    for text in request.simulated.visible.values():
        left = narrowed(left, text)
    found = [key for key in keys if int(key.removeprefix("sim:")) in left]
    if not found:
        variables = " ".join("=".join(item) for item in request.simulated.visible.items())
        raise Refusal(
            f"{variables} leaves none of {_names(keys)}; "
            "unset it, or name one of them by its number"
        )
    return found


def _no_simulated(key: str, there: list[str]) -> str:
    number = key.removeprefix("sim:")
    if number == key:
        return f"--sim runs on simulated GPUs, {key} is none; leave one of the two out"
    text = f"{key} is none of the simulated devices, {_names(there)}; "
    if number.isdecimal() and int(number) < MOST_SIMULATED:
        return f"{text}say --sim-gpus {int(number) + 1}"
    return f"{text}name one of them"


def size(number: int) -> str:
    """Bytes as people write them: 8GiB."""
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= unit:
            return f"{number / unit:.4g}{name}"
    return f"{number} bytes"


def _names(keys: list[str]) -> str:
    return keys[0] if len(keys) == 1 else f"{keys[0]} to {keys[-1]}"
