# SPDX-License-Identifier: Apache-2.0
"""What would be marked in a command, and why: said without running it."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence

from msgspec import Struct

from krex.errors import CommandNotFoundError
from krex.launch import interpreter, program
from krex.marker.spec import Spec, parse
from krex.presets import imports
from krex.presets.table import Preset

_ALSO = "Programs that it starts, and what they import, are treated in the same way."


class Harness(Struct, kw_only=True, omit_defaults=True):
    """A known harness. `because` says how it was recognised; `marked`, what is in this command."""

    name: str
    title: str
    because: str = ""
    marked: list[str] = []
    advice: str = ""
    status: str
    checked: str = ""
    why: str
    notes: list[str] = []


class Explanation(Struct, kw_only=True):
    """What `krex explain --json -- COMMAND` prints."""

    schema: str = "krex.explanation"
    schema_version: int = 1
    region: str  # KREX_REGION
    program: str
    python: bool
    obstacles: list[str]  # why something in it cannot be marked
    explicit: list[str]  # where krex is imported
    chosen: list[str]  # the functions that KREX_REGION names
    harnesses: list[Harness]
    verdict: list[str]  # what the regions will be, in sentences


def explain(words: Sequence[str], region: str, presets: dict[str, Preset]) -> Explanation:
    """Explain a command. Raises the errors of a program that is not there, and ValueError."""
    spec = parse(region)
    path = program.find_program(words[0])
    python = interpreter.of(path, words)
    places = _places(python) if python else {}
    blind = python.blind if python else None
    harnesses = list(_recognised(words, places, presets))
    for harness in harnesses:
        if "auto" not in spec.words or blind:
            harness.marked = []
    found = Explanation(
        region=region or "auto",
        program=path,
        python=python is not None,
        obstacles=_obstacles(path, blind),
        explicit=[place for module, place in places.items() if module == "krex"],
        chosen=[] if blind else spec.calls,
        harnesses=harnesses,
        verdict=[],
    )
    found.verdict = list(_verdict(spec, found))
    return found


def describe(name: str, preset: Preset) -> Harness:
    """One row of the table, with all that is marked of it."""
    return Harness(
        name=name,
        title=preset.title,
        marked=preset.hooks + preset.calls,
        advice="" if preset.region == "auto" else f"KREX_REGION={preset.region}",
        status=preset.status,
        checked=preset.checked,
        why=preset.why,
        notes=preset.notes,
    )


def _places(python: interpreter.Python) -> dict[str, str]:
    if python.module:
        return imports.of_module(python.module)
    if python.script and not os.path.exists(python.script):
        raise CommandNotFoundError(f"{python.script} does not exist", "check the path")
    return imports.of(python.script) if python.script else {}


def _obstacles(path: str, blind: str | None) -> list[str]:
    obstacle = program.obstacle(path)
    texts = [f"{path} cannot be protected: {obstacle.why}"] if obstacle else []
    if blind:
        texts.append(
            f"{blind}: no function is marked in it; krex.region needs an installed krex there"
        )
    return texts


def _recognised(
    words: Sequence[str], places: dict[str, str], presets: dict[str, Preset]
) -> Iterator[Harness]:
    for name, preset in presets.items():
        because = _by_import(preset, places) or _by_program(preset, words)
        if because:
            harness = describe(name, preset)
            harness.because = because
            yield harness


def _by_import(preset: Preset, places: dict[str, str]) -> str:
    for wanted in preset.modules:
        for module, place in places.items():
            if f"{module}.".startswith(f"{wanted}."):
                return f"{place} names {module}"
    return ""


def _by_program(preset: Preset, words: Sequence[str]) -> str:
    for word in words:
        if any(fnmatch.fnmatchcase(os.path.basename(word), p) for p in preset.programs):
            return f"the command names {word}"
    return ""


def _verdict(spec: Spec, found: Explanation) -> Iterator[str]:
    """What the regions will be. In the order in which one takes precedence over the next."""
    if "none" in spec.words:
        yield "No regions: marks do nothing."
        return
    if "whole" in spec.words:
        yield "The command is one region, from its start to its end."
    if found.explicit:
        yield (
            f"It imports krex ({found.explicit[0]}): its own marks are regions, and from the first "
            "of them on nothing else is marked in that process."
        )
    if found.chosen:
        yield f"Calls of {', '.join(found.chosen)} are regions."
    marked = [harness.title for harness in found.harnesses if harness.marked]
    if marked:
        yield f"Functions of {', '.join(marked)} are regions."
    if spec.ranges:
        yield f"NVTX ranges {', '.join(spec.ranges)} are regions."
    if "events" in spec.words or ("auto" in spec.words and not found.explicit):
        yield (
            "Elsewhere a region goes from the first event that is recorded for timing to its "
            "read-out."
        )
    yield _ALSO
