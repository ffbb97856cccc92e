# SPDX-License-Identifier: Apache-2.0
"""The rows of a run as one table."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from collections.abc import Sequence

from gpu.rows import FAILED, Row

_NARROWEST = 40


def render(rows: Sequence[Row], columns: int | None = None) -> str:
    """A line or more for each row, as wide as the terminal, and a line that counts them."""
    width = columns or shutil.get_terminal_size((120, 24)).columns
    section, check, verdict = (
        max(len(head), *(len(getattr(row, head)) for row in rows))
        for head in ("section", "check", "verdict")
    )
    left = section + check + verdict + 6
    lines = [f"{'section':{section}}  {'check':{check}}  {'verdict':{verdict}}  what was found"]
    for row in rows:
        found = textwrap.wrap(row.text, max(width - left, _NARROWEST)) or [""]
        head = f"{row.section:{section}}  {row.check:{check}}  {row.verdict:{verdict}}"
        lines.append(f"{head}  {found[0]}")
        lines += [f"{'':{left}}{more}" for more in found[1:]]
    return "\n".join([*lines, "", _count(rows)])


def _count(rows: Sequence[Row]) -> str:
    counts = Counter(row.verdict for row in rows)
    text = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    if any(row.simulated for row in rows):
        text += " (on a simulated device: no figure here says anything about a real one)"
    return text


def any_failed(rows: Sequence[Row]) -> bool:
    """Whether something is not as it should be."""
    return any(row.verdict == FAILED for row in rows)
