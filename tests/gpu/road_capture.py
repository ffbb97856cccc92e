# SPDX-License-Identifier: Apache-2.0
"""A sibling has a capture open when a region is asked for: the capture has to survive that."""

from __future__ import annotations

import json
import subprocess

from gpu.programs_of import program, python
from gpu.rows import Job
from gpu.stage import Stage, count_exclusive, reasons

_REGIONS = 10
_LIMIT_S = 50.0


def sibling_captures(job: Job, made: Stage) -> None:
    """One row: of the sibling's captures, and of the regions beside it."""
    command = [*made.words(None), *python(program("capture_again.py"))]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=made.environment, stdin=pipe, stdout=pipe, text=True
    ) as sibling:
        assert sibling.stdout
        try:
            if sibling.stdout.readline() != "ready\n":
                raise RuntimeError("the sibling that captures did not start")
            holder = made.run(python(program("regions.py"), str(_REGIONS), "0"), _LIMIT_S)
            out, _ = sibling.communicate("end\n", timeout=_LIMIT_S)
        finally:
            sibling.kill()
    if holder.status:
        raise RuntimeError(f"the holder failed: {holder.why()}")
    found = json.loads(out.splitlines()[-1])
    exclusive = count_exclusive(holder.records)
    text = f"{found['whole']} of {found['captures']} captures whole and right, "
    text += f"{exclusive} of {len(holder.records)} regions exclusive"
    why = reasons(holder.records)
    whole = found["captures"] and found["whole"] == found["captures"]
    right = bool(whole and exclusive == len(holder.records) > 0)
    job.judge("a capture open beside it", right, f"{text}: {why}" if why else text, **found)
