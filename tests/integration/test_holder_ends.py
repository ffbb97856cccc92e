# SPDX-License-Identifier: Apache-2.0
"""G3, G4, G6: a holder that crashes, hangs or just ends gives the device back, and says so."""

import time

import pytest


@pytest.mark.parametrize(
    ("how", "reason"),
    [("crash", "process_died"), ("exit", "process_died"), ("hang", "max_hold_exceeded")],
)
def test_the_device_comes_back_within_a_second(krex, how, reason):
    holder = krex.program(
        "--max-hold", "0.5", "--report", str(krex.folder / "h.jsonl"), regions=1, how=how
    )
    assert holder.stdout.readline() == "inside\n"
    # GIVEN a command that starts while the device is held (born frozen)
    began = time.monotonic()
    sibling = krex.program("--report", str(krex.folder / "s.jsonl"), regions=1)
    assert sibling.wait(30) == 0
    assert krex.records("s.jsonl")[0]["exclusive"]
    # a hang is cut at its limit, not at its end (5 s)
    assert time.monotonic() - began < 5 or how != "hang"
    record = krex.records("h.jsonl")[0]
    assert (record["exclusive"], record["reasons"]) == (False, [reason])


def test_a_crash_is_the_command_s_exit_status(krex):
    assert krex.program(regions=1, how="crash").wait(30) == 137
