# SPDX-License-Identifier: Apache-2.0
"""Section a: what KREX takes the driver to do, asked of the driver. Without KREX in the way."""

from __future__ import annotations

import sys

from gpu.attempt import attempt
from gpu.question_addresses import addresses
from gpu.question_captures import captures
from gpu.question_context_events import context_events
from gpu.question_lock import lock
from gpu.rows import Job


def main(job: Job) -> None:
    """In order of value; the last may hang, by what is known of it."""
    attempt(job, "addresses", lambda: addresses(job), 20)
    attempt(job, "context events", lambda: context_events(job), 20)
    attempt(job, "queries and captures", lambda: captures(job), 20)
    attempt(job, "process lock", lambda: lock(job), 25)


if __name__ == "__main__":
    main(Job.from_argument(sys.argv[1]))
