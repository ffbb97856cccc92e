# SPDX-License-Identifier: Apache-2.0
"""What a `krex run` asks for. Any user may send anything, so types and ranges are checked here."""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from krex.launch.channel import PROTOCOL

DEFAULT_DEVICE = "cpu:0"
_DEVICE = re.compile(r"(pci|mig|cpu|sim):[\w:.-]{1,48}")

Limit = Annotated[float, Meta(ge=0)]
Amount = Annotated[int, Meta(ge=1)]


class Refusal(Exception):
    """It can't be admitted; the text says why. `fail_open`: it had better run without us."""

    def __init__(self, text: str, *, fail_open: bool = False) -> None:
        super().__init__(text)
        self.fail_open = fail_open


class Simulated(Struct, kw_only=True):
    """Which simulated devices are wanted; None where nothing was said."""

    devices: Annotated[int, Meta(ge=1)] | None = None
    model: Annotated[str, Meta(max_length=1 << 16)] | None = None  # as the device process reads it
    log: Annotated[str, Meta(max_length=4096)] | None = None
    # The user's variables, each of which counts what those before it have left.
    visible: Annotated[
        dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=4096)]],
        Meta(max_length=3),
    ] = {}


class Request(Struct, kw_only=True):
    """A `run` message."""

    argv: list[str]
    protocol: int = 0
    tenant: Annotated[str, Meta(max_length=256)] | None = None
    devices: Annotated[list[str], Meta(min_length=1, max_length=64)] | None = None
    simulated: Simulated | None = None
    exclusive: str = "region"
    protect: Literal["gate", "pin", "freeze"] = "freeze"
    memory: Amount | None = None  # bytes to reserve
    region: str = "auto"
    max_wait_s: Limit | None = None
    max_hold_s: Limit | None = None
    cpus: Annotated[list[Annotated[int, Meta(ge=0)]], Meta(max_length=1 << 16)] | None = None


def is_device_key(text: str) -> bool:
    """Whether it has the form of a device's stable key."""
    return _DEVICE.fullmatch(text) is not None


def parse(message: dict[str, Any]) -> Request:
    """Check a message. Raises Refusal."""
    if message.get("protocol") != PROTOCOL:
        raise Refusal(
            f"the controller speaks protocol {PROTOCOL}, and this krex {message.get('protocol')}; "
            "`krex doctor` says what to do",
            fail_open=True,
        )
    try:
        request = msgspec.convert(message, Request)
    except msgspec.ValidationError as error:
        raise Refusal(f"not a request of this protocol: {error}") from None
    for key in request.devices or ():
        if not is_device_key(key):
            raise Refusal(
                f"{key!r} is not a device; say pci:<address>, mig:<uuid>, cpu:0, or with --sim "
                "sim:<number>"
            )
    return request
