# SPDX-License-Identifier: Apache-2.0
"""The model of the simulated devices: a TOML file, and the flat form that their process reads.

`model.toml` beside this file documents each key; shim/sim/device/model_read.c reads the flat form.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from krex.errors import UsageError

DEFAULT = Path(__file__).with_name("model.toml")

Nanoseconds = Annotated[int, Meta(ge=0, le=10**15)]
Bytes = Annotated[int, Meta(ge=0, le=2**50)]
SomeBytes = Annotated[int, Meta(ge=1, le=2**50)]
Rate = Annotated[int, Meta(ge=1, le=10**15)]
Slowdown = Annotated[int, Meta(ge=0, le=10**9)]
Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Few = Annotated[int, Meta(ge=1, le=65536)]


class Device(Struct, forbid_unknown_fields=True, kw_only=True):
    """What a device is."""

    name: Annotated[str, Meta(pattern=r"^[^\x00-\x1f]+$")] = "KREX simulated H20"
    memory_bytes: SomeBytes = 96 << 30
    context_bytes: Bytes = 400 << 20
    largest_bytes: Bytes = 0
    multiprocessors: Few = 78
    threads_per_mp: Few = 2048
    blocks_per_mp: Few = 32
    clock_khz: Number = 1_980_000
    memory_clock_khz: Number = 2_619_000
    bus_bits: Number = 6144
    l2_bytes: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 60 << 20
    major: Annotated[int, Meta(ge=1, le=99)] = 9
    minor: Annotated[int, Meta(ge=0, le=9)] = 0


class Sharing(Struct, forbid_unknown_fields=True, kw_only=True):
    """What kernels do to each other."""

    mode: Literal["timeslice", "concurrent"] = "timeslice"
    slice_ns: Annotated[int, Meta(ge=1, le=10**15)] = 2_000_000
    switch_ns: Nanoseconds = 50_000
    stream_slowdown_ppm: Slowdown = 900_000
    context_slowdown_ppm: Slowdown = 1_000_000
    gap_ns: Nanoseconds = 1000


class Copies(Struct, forbid_unknown_fields=True, kw_only=True):
    """How long bytes take."""

    copy_ns: Nanoseconds = 5000
    to_bytes_per_s: Rate = 50 * 10**9
    from_bytes_per_s: Rate = 50 * 10**9
    memory_bytes_per_s: Rate = 4 * 10**12
    kernel_beside_copy_ppm: Slowdown = 20_000
    copy_beside_kernel_ppm: Slowdown = 50_000


class Contexts(Struct, forbid_unknown_fields=True, kw_only=True):
    """How long contexts and their code take."""

    context_ns: Nanoseconds = 120_000_000
    teardown_ns: Nanoseconds = 10_000_000
    load_ns: Nanoseconds = 50_000
    load_bytes_per_s: Rate = 2 * 10**9


class Rule(Struct, forbid_unknown_fields=True, kw_only=True):
    """How long the kernels take whose names fit a pattern."""

    pattern: Annotated[str, Meta(pattern=r"^[^\x00-\x1f]+$")]
    fixed_ns: Nanoseconds | None = None
    launch_ns: Nanoseconds = 2000
    wave_ns: Nanoseconds = 20_000
    blocks_per_mp: Annotated[int, Meta(ge=0, le=65536)] = 0
    jitter_ppm: Annotated[int, Meta(ge=0, le=10**6)] = 0
    fault: Literal["none", "illegal_address", "timeout", "hang", "lost"] = "none"


class Model(Struct, forbid_unknown_fields=True, kw_only=True):
    """All of it. What is left out is as in `model.toml`."""

    device: Device = msgspec.field(default_factory=Device)
    sharing: Sharing = msgspec.field(default_factory=Sharing)
    copies: Copies = msgspec.field(default_factory=Copies)
    contexts: Contexts = msgspec.field(default_factory=Contexts)
    rules: list[Rule] = []


class ModelError(UsageError):
    """A file that is no model."""

    def __init__(self, path: str | Path, why: str) -> None:
        super().__init__(
            f"{path} is no model of simulated devices: {why}",
            "see docs/sim.md; `krex sim model` prints one that is",
        )


def read(path: str | Path = DEFAULT) -> Model:
    """Read a TOML file. Raises ModelError, which says what is wrong with which key."""
    try:
        model = msgspec.toml.decode(Path(path).read_bytes(), type=Model)
    except OSError as error:
        raise ModelError(path, str(error.strerror)) from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise ModelError(path, str(error)) from None
    if len(model.device.name.encode()) > 95:
        raise ModelError(path, "device.name is longer than 95 bytes")
    return model


def text(path: str | Path = DEFAULT) -> str:
    """The file as it was written, with its remarks."""
    return Path(path).read_text(encoding="utf-8")


def flatten(model: Model) -> str:
    """The flat form, of which every line stands for itself."""
    return "".join(f"{line}\n" for line in _lines(model))


def _lines(model: Model) -> Iterator[str]:
    for section in ("device", "sharing", "copies", "contexts"):
        keys: dict[str, Any] = msgspec.structs.asdict(getattr(model, section))
        yield from (f"{section}.{key} {value}" for key, value in keys.items())
    for rule in model.rules:
        fixed = "-" if rule.fixed_ns is None else rule.fixed_ns
        yield (
            f"rule {fixed} {rule.launch_ns} {rule.wave_ns} {rule.blocks_per_mp} {rule.jitter_ppm} "
            f"{rule.fault} {rule.pattern}"
        )
