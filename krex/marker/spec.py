# SPDX-License-Identifier: Apache-2.0
"""KREX_REGION: what it may say. `krex run` refuses what this does; the shim reads the same.

    KREX_REGION = item,item,...
    item        = call:NAME | nvtx:RANGE | events | whole | none | auto

NAME is a dotted name, module first; after a `call:` further names need no `call:`. RANGE is what
stands before the next comma. `none` stands alone. Empty or unset: auto.
"""

_WORDS = ("auto", "events", "whole", "none")
# What the shim has room for (ranges.h, ranges.c).
_MOST_RANGES, _LONGEST_RANGE = 16, 127
_HINT = "items are call:MODULE.FUNCTION, nvtx:RANGE, events, whole, none, auto, with commas"


class Spec:
    """What a KREX_REGION asks for."""

    __slots__ = ("calls", "ranges", "words")

    def __init__(self) -> None:
        self.calls = []  # type: list[str]
        self.ranges = []  # type: list[str]
        self.words = set()  # type: set[str]


def parse(text: str) -> Spec:
    """Read a KREX_REGION. Raises ValueError, which says what is wrong and what may stand there."""
    spec = Spec()
    before = ""
    for item in (text or "auto").split(","):
        before = _take(item, before, spec)
    if "none" in spec.words and "," in text:
        raise ValueError("'none' cannot be combined; leave it out, or all others")
    return spec


def _take(item: str, before: str, spec: Spec) -> str:
    """Put one item into `spec`; returns its kind. `before` is that of the one before it."""
    kind, colon, name = item.partition(":")
    if item in _WORDS:
        spec.words.add(item)
        return item
    if not colon and before == "call":
        kind, name = "call", item
    if kind == "call":
        if not is_function_name(name):
            raise ValueError(f"{name!r} is not the dotted name of a function, MODULE.FUNCTION")
        spec.calls.append(name)
    elif kind == "nvtx" and name:
        spec.ranges.append(_range(name, spec))
    else:
        raise ValueError(f"{item!r} is none of its items; {_HINT}")
    return kind


def _range(name: str, spec: Spec) -> str:
    if len(name.encode("utf-8", "surrogateescape")) > _LONGEST_RANGE:
        raise ValueError(f"{name!r} has more than {_LONGEST_RANGE} bytes; name another range")
    if len(spec.ranges) == _MOST_RANGES:
        raise ValueError(f"more than {_MOST_RANGES} nvtx ranges; name one around them, or fewer")
    return name


def is_function_name(name: str) -> bool:
    """Whether it has the form MODULE.FUNCTION, of as many parts as there are."""
    parts = name.split(".")
    return len(parts) > 1 and all(part.isidentifier() for part in parts)
