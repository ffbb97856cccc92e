# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/*.md, written from the schemas: one text for both."""

import re
from collections.abc import Iterator
from typing import Any

from krex.audit import KINDS
from krex.reasons import REASONS

_BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(page: str, schemas: dict[str, dict[str, Any]]) -> str:
    """Replace what stands in a page between `<!-- generated: NAME -->` and `<!-- end -->`.

    NAME is a schema's, `reasons` or `findings`. Raises KeyError for any other.
    """

    def block(match: re.Match[str]) -> str:
        name = match[2]
        tables = {"reasons": _reasons, "findings": _findings}
        lines = tables[name]() if name in tables else _keys(schemas[name])
        return match[1] + "\n".join(lines) + "\n" + match[3]

    return _BLOCK.sub(block, page)


def _reasons() -> Iterator[str]:
    yield "| reason | what happened | what to do |"
    yield "| --- | --- | --- |"
    for name, reason in REASONS.items():
        yield f"| `{name}` | {reason.meaning} | {reason.remedy} |"


def _findings() -> Iterator[str]:
    yield "| finding | severity | what it means | what to do |"
    yield "| --- | --- | --- | --- |"
    for code, kind in KINDS.items():
        yield f"| `{code}` | {kind.severity} | {kind.meaning} | {kind.fix} |"


def _keys(schema: dict[str, Any]) -> Iterator[str]:
    yield "| key | value | meaning |"
    yield "| --- | --- | --- |"
    for path, node, required in walk(schema, schema, ""):
        absent = "" if required else ", may be absent"
        yield f"| `{path}` | {_value(path, node)}{absent} | {_meaning(schema, node)} |"


def walk(
    schema: dict[str, Any], node: dict[str, Any], at: str
) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Give (dotted path, schema, whether required) of every key below a node."""
    if "anyOf" in node:
        node = next(n for n in node["anyOf"] if n.get("type") != "null")
    if "$ref" in node:
        node = _target(schema, node)
    if "items" in node:
        yield from walk(schema, node["items"], f"{at}[]")
    for key, child in node.get("properties", {}).items():
        path = f"{at}.{key}" if at else key
        yield path, child, key in node["required"]
        yield from walk(schema, child, path)


def _target(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    target: dict[str, Any] = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return target


def _value(path: str, node: dict[str, Any]) -> str:
    if "anyOf" in node:
        return " or ".join(_value(path, n) for n in node["anyOf"])
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return " or ".join(f"`{value}`" for value in node["enum"])
    if "$ref" in node:
        return "object"
    if node["type"] == "array":
        return f"list of {_value(path, node['items'])}s"
    is_duration = path.endswith("_s") and node["type"] == "number"
    return "seconds" if is_duration else str(node["type"])


def _meaning(schema: dict[str, Any], node: dict[str, Any]) -> str:
    """Its own description, after that of the object which it is, or a list of which."""
    texts = [node.get("description", "")]
    inner = node.get("items", node)
    for choice in [*inner.get("anyOf", []), inner]:
        if "$ref" in choice:
            each = "Each: " if "items" in node else ""
            texts.insert(0, each + _target(schema, choice)["description"])
    return " ".join(text for text in texts if text)
