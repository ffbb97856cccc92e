# SPDX-License-Identifier: Apache-2.0
"""What the generators of api.def share: the check of the decisions, and the command.

A vendor's api.def is written from what the headers say (the facts) and from what its tables decide.
The headers are not always there, so the file has a digest of the facts.
"""

import argparse
import difflib
import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from api_source import HeaderError


def check_decisions(decisions: Iterable[tuple[str, str]], names: set[str], tables: str) -> None:
    """Each function has one kind, and each kind is of a function that there is."""
    decided = [name for name, _ in decisions]
    problems = {
        f"no kind in {tables} for": names - {*decided},
        f"in {tables} but not in the headers": {*decided} - names,
        f"twice in {tables}": {name for name in decided if decided.count(name) > 1},
    }
    for text, found in problems.items():
        if found:
            raise HeaderError(f"{text}: " + " ".join(sorted(found)))


def digest(lines: Iterable[str]) -> str:
    """Sum up lines that say what the headers do and nobody decides."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def describe(kinds: dict[str, str]) -> str:
    """The kinds, for the comment at the top."""
    return "\n".join(f"//   {kind:<13} {what}" for kind, what in kinds.items())


class Generator(NamedTuple):
    """A vendor's generator, for run()."""

    script: str  # as one calls it
    output: Path
    needs: str  # what a folder has to have
    complete: Callable[[Path], bool]  # a folder has it
    fetch: Callable[[], None]
    folders: Callable[[], list[Path]]
    generate: Callable[[Sequence[Path]], str]
    regenerate: Callable[[str], str]


def _fail(status: int, message: str) -> NoReturn:
    print(f"gen_api: {message}", file=sys.stderr)
    sys.exit(status)


def _compare(script: str, old: str, new: str) -> None:
    """End with a diff if api.def is stale."""
    if old != new:
        before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
        sys.stdout.writelines(difflib.unified_diff(before, after, "api.def", "generated"))
        _fail(1, f"api.def is stale; run python {script} --fetch")


def _parse_options(summary: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("include", nargs="*", type=Path, metavar="DIR", help="include folders")
    parser.add_argument("--fetch", action="store_true", help="get the pinned headers into build/")
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; print a diff and exit 1 if api.def is stale",
    )
    return parser.parse_args()


def _make(gen: Generator, options: argparse.Namespace, old: str) -> str:
    if options.fetch:
        gen.fetch()
    folders = options.include or gen.folders()
    missing = [folder for folder in folders if not gen.complete(folder)]
    if not missing:
        return gen.generate(folders)
    if options.check and not options.include:
        return gen.regenerate(old)
    _fail(2, f"no {gen.needs} in {missing[0]}; --fetch gets the pinned headers")


def run(gen: Generator, summary: str) -> None:
    """Write api.def, or check it."""
    options = _parse_options(summary)
    old = gen.output.read_text(encoding="utf-8") if gen.output.exists() else ""
    try:
        new = _make(gen, options, old)
    except HeaderError as error:
        _fail(1, str(error))
    if options.check:
        _compare(gen.script, old, new)
    else:
        gen.output.write_text(new, encoding="utf-8")
