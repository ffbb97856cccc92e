# SPDX-License-Identifier: Apache-2.0
"""Waiting for what usually takes microseconds, up to a deadline."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from krex.controller.mark import Mark

# Steps usually take less than this; asyncio's timers are no finer than a millisecond.
PATIENCE_S = 0.002
NOT_DRAINED = "sibling_not_drained"


class Abort(Exception):
    """A deadline was missed; the text is the record's reason."""


class GiveWay(Exception):
    """A hold is to come after this mark's, which is in the queue."""

    def __init__(self, mark: "Mark") -> None:
        super().__init__(mark)
        self.mark = mark


async def until(done: Callable[[], bool], limit_s: float, reason: str) -> None:
    """Wait for done(). Raises Abort(reason) after limit_s."""
    start = time.monotonic()
    while not done():
        waited = time.monotonic() - start
        if waited > limit_s:
            raise Abort(reason)
        if waited < PATIENCE_S:
            time.sleep(0.00005)  # noqa: ASYNC251
        else:
            await asyncio.sleep(0.001)
