# SPDX-License-Identifier: Apache-2.0
"""G6 beside a process that works on another device than the one its command was admitted to."""

from pathlib import Path

BUSY = Path(__file__).with_name("busy_program.py")


def test_a_stranger_on_the_device_makes_its_regions_not_exclusive(krex):
    # GIVEN a command that was admitted elsewhere, and computes on cpu:0 all the same
    stranger = krex.python(BUSY, "device", options=("--device", "sim:1"))
    assert stranger.stdout.readline() == "ready\n"
    assert krex.program("--report", str(krex.folder / "r"), regions=2).wait(60) == 0
    found = [(r["exclusive"], r["reasons"]) for r in krex.records("r")]
    assert found == [(False, ["unregistered_process"])] * 2
    # WHEN it has ended THEN regions are certain again
    stranger.communicate(timeout=60)
    assert krex.program("--report", str(krex.folder / "s"), regions=1).wait(60) == 0
    assert [r["reasons"] for r in krex.records("s")] == [[]]
