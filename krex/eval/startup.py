# SPDX-License-Identifier: Apache-2.0
"""What `krex run` adds to a command's start and end: `krex eval startup`."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from krex.errors import KrexError
from krex.eval.statistics import Spread

SCHEMA: Final = "krex.eval.startup"
SCHEMA_VERSION: Final = 1
_KREX = [sys.executable, "-m", "krex.cli", "run", "--quiet", "--"]


class Startup(msgspec.Struct, kw_only=True):
    """Milliseconds a command."""

    schema: Annotated[
        Literal["krex.eval.startup"], Meta(description="What kind of object this is.")
    ]
    schema_version: Annotated[
        Literal[1], Meta(description="Raised when a key goes, or changes its meaning.")
    ]
    rounds: Annotated[int, Meta(description="How many; the figures are medians over them.")]
    direct_ms: Annotated[float, Meta(description="`true`, started and waited for.")]
    control_ms: Annotated[float, Meta(description="What the same adds, measured again: noise.")]
    added_ms: Annotated[
        float, Meta(description="What `krex run -- true` adds, with a controller running.")
    ]
    quartiles_ms: Annotated[
        dict[str, Spread], Meta(description="The middle half of the rounds, for each of the above.")
    ]


def measure(rounds: int = 25) -> Startup:
    """Measure, in rounds of all three cases. Raises KrexError if `krex run` fails."""
    _ms([*_KREX, "true"])  # starts the controller, which stays for the rounds
    rows = [[_ms(["true"]), _ms(["true"]), _ms([*_KREX, "true"])] for _ in range(rounds)]
    q = {
        "direct": Spread.of([row[0] for row in rows]),
        "control": Spread.of([row[1] - row[0] for row in rows]),
        "added": Spread.of([row[2] - row[0] for row in rows]),
    }
    return Startup(
        schema=SCHEMA,
        schema_version=SCHEMA_VERSION,
        rounds=rounds,
        direct_ms=q["direct"].median,
        control_ms=q["control"].median,
        added_ms=q["added"].median,
        quartiles_ms=q,
    )


def _ms(command: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    taken = time.perf_counter() - start
    if done.returncode or done.stderr:
        raise KrexError(
            f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}",
            "run it yourself to see why",
        )
    return taken * 1e3
