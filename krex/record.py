# SPDX-License-Identifier: Apache-2.0
"""The region record and its versioned schema. Times are seconds; an absent key means unknown."""

import msgspec


class Siblings(msgspec.Struct, omit_defaults=False):
    """The other processes of the device when the region was granted."""

    processes: int = 0
    clean: int = 0
    drained: int = 0
    commands_frozen: int = 0
    processes_not_frozen: int = 0


class RegionRecord(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One outermost mark: was the device its own, and if not, why."""

    schema: str
    schema_version: int
    region_id: str
    command: str
    tenant: str
    pid: int
    device: str
    marker: str
    name: str
    index: int
    hold_id: str | None = None
    exclusive: bool
    reasons: list[str]
    wait_s: float
    hold_s: float | None = None
    handshake: dict[str, float] | None = None
    siblings: Siblings | None = None
    submissions: int | None = None
    longest_gate_wait_s: float | None = None
    work_at_end: bool | None = None


SCHEMA = "krex.region"
SCHEMA_VERSION = 1
