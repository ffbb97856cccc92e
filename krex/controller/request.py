# SPDX-License-Identifier: Apache-2.0
"""What a `krex run` asks for. Any user may send anything, so types and ranges are checked here."""

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from krex.launch.channel import PROTOCOL

DEFAULT_DEVICE = "cpu:0"
_DEVICE = re.compile(r"(pci|mig|cpu|sim):[\w:.-]{1,48}")

Limit = Annotated[float, Meta(ge=0)]


class Refusal(Exception):
    """It can't be admitted; the text says why. `fail_open`: it had better run without us."""

    def __init__(self, text: str, *, fail_open: bool = False) -> None:
        super().__init__(text)
        self.fail_open = fail_open


class Request(Struct, kw_only=True):
    """A `run` message."""

    argv: list[str]
    protocol: int = 0
    tenant: Annotated[str, Meta(max_length=256)] | None = None
    device: str | None = None
    exclusive: str = "region"
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
    request.device = request.device or DEFAULT_DEVICE
    if not is_device_key(request.device):
        raise Refusal(f"{request.device!r} is not a device: say pci:<address>, mig:<uuid> or cpu:0")
    return request
