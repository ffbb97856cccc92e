# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas (draft 2020-12) of what KREX writes, generated from its own types."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from krex import audit, command_record, record, status
from krex.doctor import report as doctor
from krex.eval import handshake, mix, overhead, startup
from krex.sim import check

FOLDER = Path(__file__).parent
DOCS = FOLDER.parents[1] / "docs"


class Schema(NamedTuple):
    """A documented object: its type, and what must hold that the type can't say."""

    type: type[msgspec.Struct]
    version: int
    rule: dict[str, Any]


# NAME: what NAME.schema.json and the blocks `generated: NAME` of docs/*.md are made from.
SCHEMAS = {
    "region-record": Schema(record.RegionRecord, record.SCHEMA_VERSION, record.CONSISTENCY),
    "command-record": Schema(command_record.CommandRecord, command_record.SCHEMA_VERSION, {}),
    "audit": Schema(audit.AuditReport, audit.SCHEMA_VERSION, {}),
    "status": Schema(status.Status, status.SCHEMA_VERSION, {}),
    "doctor": Schema(doctor.DoctorReport, doctor.SCHEMA_VERSION, {}),
    "eval-overhead": Schema(overhead.Overhead, overhead.SCHEMA_VERSION, {}),
    "eval-startup": Schema(startup.Startup, startup.SCHEMA_VERSION, {}),
    "eval-handshake": Schema(handshake.Handshakes, handshake.SCHEMA_VERSION, {}),
    "eval-mix": Schema(mix.Mix, mix.SCHEMA_VERSION, {}),
    "sim-check": Schema(check.Check, check.SCHEMA_VERSION, {}),
}


def build(name: str) -> dict[str, Any]:
    """A schema as an object."""
    schema = SCHEMAS[name]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:krex:{name}:{schema.version}",
    }
    whole: dict[str, Any] = _with_const(head | msgspec.json.schema(schema.type) | schema.rule)
    return whole


def _with_const(node: Any) -> Any:
    """Say `const` where there is one value to choose from, as people write it by hand."""
    if isinstance(node, list):
        return [_with_const(item) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(values := node.get("enum"), list) and len(values) == 1:
        node = {k: v for k, v in node.items() if k != "enum"} | {"const": values[0]}
    return {key: _with_const(value) for key, value in node.items()}
