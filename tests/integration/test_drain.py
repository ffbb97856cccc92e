# SPDX-License-Identifier: Apache-2.0
"""G5: draining a sibling never harms it."""

import sys
from pathlib import Path

QUEUES = Path(__file__).with_name("queue_program.py")


def test_a_sibling_whose_queues_are_gone_survives_its_drain(krex):
    run = [sys.executable, "-m", "krex.cli", "run", "--"]
    sibling = krex.popen(*run, sys.executable, str(QUEUES))
    assert sibling.stdout.readline() == "idle\n"
    holder = krex.program("--report", str(krex.folder / "h.jsonl"), regions=1)
    assert holder.wait(30) == 0
    record = krex.records("h.jsonl")[0]
    assert record["exclusive"], record["reasons"]
    assert record["siblings"]["drained"] == 1
    sibling.stdin.close()
    assert sibling.wait(30) == 0
