# SPDX-License-Identifier: Apache-2.0
"""HIP on the simulated device: what its documentation says happens, one scenario each."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "rules_program.py"
SCENARIOS = (
    "null_stream_waits_for_blocking_streams",
    "spt_forms_take_the_threads_own_stream",
    "events_order_streams",
    "errors_are_remembered_until_they_are_read",
    "launches_are_checked",
    "arguments_may_come_packed",
    "ext_launches_count_threads_and_record_events",
    "older_launches_gather_arguments",
    "graphs_are_captured_and_launched",
    "captures_forbid_what_would_wait",
    "graphs_are_made_of_nodes",
    "words_order_streams",
    "modules_have_variables",
    "libraries_are_of_no_device",
    "images_are_checked",
    "addresses_are_known",
    "contexts_are_devices",
    "functions_are_given_out",
)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_rule_holds(devices, code, scenario):
    # GIVEN two devices
    # WHEN a program does what a rule is about
    # THEN it sees what the rule says, or it would not end well
    devices.run(sys.executable, PROGRAM, scenario, code)


def test_a_fault_ends_the_program_as_the_real_runtime_does(devices, code):
    # GIVEN a kernel that uses an address of nobody's
    # WHEN a program waits for it
    done = devices.start(sys.executable, PROGRAM, "faults_end_the_program", code)
    # THEN the runtime ends the program, and says which kernel it was
    assert done.returncode == -signal.SIGABRT
    assert "krex_fill_f32 faulted" in done.stderr
