# SPDX-License-Identifier: Apache-2.0
"""The model of the gate and the handshake (tests/model), checked by spin.

What it says of the protocol as it is, that each rule is needed (without it spin finds a
counterexample), that the checks are not vacuous, and that the code it stands for is there.
"""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

MODEL = Path(__file__).resolve().parents[1] / "model"
LIMIT_S = 900  # what the longest takes on a busy machine, many times over
COMPILE = ("-O2", "-w", "-DNOREDUCE", "-DCOLLAPSE", "-DMEMLIM=1800")
RUN = ("-E", "-m100000", "-w22")  # -E: `finally` judges who may be blocked in the end


class Check(NamedTuple):
    """One run of spin: flags of gate.pml, and what it must find; "" is nothing."""

    flags: str
    finds: str = ""
    cycles: bool = False  # looks for a run without an end, instead of a failing assertion

    @property
    def name(self) -> str:
        return self.flags.replace("-D", "").replace(" ", ",") + (",cycles" if self.cycles else "")


HOLDS = [
    # Three clients: two take turns, and one registers late; then with what may go wrong.
    Check("SUBMITS_1=2 REGIONS_2=1"),
    Check("SUBMITS_0=0 SUBMITS_1=1 CRASH"),
    Check("SUBMITS_0=0 SUBMITS_1=1 LEASE BARE"),
    Check("SUBMITS_0=0 SUBMITS_1=1 DEADLINES HANG INTERRUPT"),
    Check("SUBMITS_1=1 CHILD"),
    Check("SUBMITS_1=1 CHILD LATE_2=0"),
    Check("SUBMITS_0=0 SUBMITS_1=1 CHILD CRASH"),
    Check("SUBMITS_1=1 REFUSE"),
    Check("SUBMITS_1=1 JOIN_FAILS"),
    # Two, with more submissions, more regions, and more that goes wrong at once.
    Check("CLIENTS=2 REGIONS_1=1 SUBMITS_1=1 CRASH"),
    Check("CLIENTS=2 LATE_1=1 LEASE INTERRUPT"),
    Check("CLIENTS=2 SUBMITS_1=1 LEASE SLOW_RUN"),
    Check("CLIENTS=2 SUBMITS_0=0 SUBMITS_1=1 REGIONS_1=1 LEASE"),
    Check("CLIENTS=2 SUBMITS_1=1 LEASE CRASH"),
    Check("CLIENTS=2 REGIONS_1=1 SELF_FENCED"),
    # Every run ends, so what `finally` asserts is reached, whatever the schedule.
    Check("CLIENTS=2 SUBMITS_1=1 CRASH", cycles=True),
    Check("CLIENTS=2 SUBMITS_1=1 LEASE DEADLINES", cycles=True),
]

BROKEN = [
    Check("NO_FENCE CLIENTS=2", "G2"),
    Check("NO_FENCE CLIENTS=2 BARE ONLY_G1", "G1"),
    Check("NO_RELEASE_FENCE CLIENTS=2 REGIONS_1=1", "G2"),
    Check("NO_EPOCH_CHECK CLIENTS=2 LEASE", "G2"),
    Check("NO_LAST_CHECK CLIENTS=2 LEASE BARE", "G6"),
    Check("FREEZE_BEFORE_DRAIN CLIENTS=2", "G3"),
    Check("NO_LEASE CLIENTS=2 CRASH", "G3"),
    Check("PASS_LATE CLIENTS=2 REGIONS_1=1", "G2"),
    Check("RELEASE_BY_RECORD CLIENTS=2 INTERRUPT", "G3"),
    Check("THAW_UNSEEN CLIENTS=2 LEASE SLOW_RUN", "G6"),
    Check("GUARD_ONCE CLIENTS=2 SUBMITS_1=1 LEASE CRASH", "G4"),
    Check("HEAVY_OPENS_ALONE CLIENTS=2 LATE_1=1 LEASE", "G3"),
    Check("NOT_HEAVY_FIRST CLIENTS=2 LATE_1=1", "G2"),
    Check("NO_BREACH CLIENTS=2 LATE_1=1 REFUSE", "G6"),
    Check("FAILURE_UNTOLD CLIENTS=2 LATE_1=1 JOIN_FAILS", "G6"),
    Check("LOOKS_FOREVER CLIENTS=2 SUBMITS_1=1 CRASH", "cycle", cycles=True),
]

ALL_FAULTS = "CLIENTS=2 LATE_1=1 LEASE DEADLINES"
REACHED = [
    *(
        Check(f"{ALL_FAULTS} REACH={place}", "REACH")
        for place in (
            "GRANTED_AFTER_DRAIN",
            "RECORDED_EXCLUSIVE",
            "SUBMITTED_WITH_PASS",
            "HEAVY_CALL_WAITED",
            "REOPENED_BY_WAITER",
            "RESUMED_TOO_LATE",
            "REQUEST_TAKEN_BACK",
            "THAWED_BY_RUN",
            "LIMIT_OF_HOLD",
        )
    ),
    Check("SUBMITS_1=1 CHILD REACH=LATE_CHILD_HAS_PASS", "REACH"),
]


class Spin:
    """Runs the checks that were selected, as many at once as there are cores, two at most."""

    def __init__(self, checks: "list[Check]", folder: Path) -> None:
        self.folder = folder
        self.pool = ThreadPoolExecutor(min(os.cpu_count() or 1, 2))
        self.outcomes = {check: self.pool.submit(self._run, check) for check in checks}

    def _run(self, check: Check) -> str:
        here = self.folder / re.sub(r"\W+", "-", check.name)
        here.mkdir()
        flags = [f"-D{flag}" for flag in check.flags.split()]
        kind = "-DNP" if check.cycles else "-DSAFETY"
        run(here, "spin", "-a", *flags, str(MODEL / "gate.pml"))
        run(here, "gcc", *COMPILE, kind, "-o", "pan", "pan.c")
        return run(here, "./pan", *RUN, *(["-l"] if check.cycles else []))

    def outcome(self, check: Check) -> str:
        """What pan printed."""
        return self.outcomes[check].result(LIMIT_S)


def run(here: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=LIMIT_S)
    # pan's status tells nothing: it is 0 with errors found.
    assert done.returncode == 0 and "Error:" not in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def spin(request, tmp_path_factory):
    if not (shutil.which("spin") and shutil.which("gcc")):
        pytest.skip("spin or gcc is not installed (Debian, Ubuntu: apt-get install spin gcc)")
    items = [item for item in request.session.items if item.path == Path(__file__)]
    selected = [i.callspec.params["check"] for i in items if hasattr(i, "callspec")]
    spin = Spin(selected, tmp_path_factory.mktemp("model"))
    yield spin
    spin.pool.shutdown(cancel_futures=True)


def is_exhaustive(output: str) -> bool:
    return "max search depth too small" not in output and "Search not completed" not in output


all_of = pytest.mark.parametrize
pytestmark = [pytest.mark.slow, pytest.mark.timeout(LIMIT_S)]


@all_of("check", HOLDS, ids=[check.name for check in HOLDS])
def test_the_protocol_holds(spin, check):
    # GIVEN the model of the protocol as the code has it
    # WHEN spin looks at every state that these clients and these faults can lead to
    output = spin.outcome(check)

    # THEN no assertion fails, and nothing was left out
    assert "errors: 0" in output, output
    assert is_exhaustive(output), output


@all_of("check", BROKEN, ids=[check.name for check in BROKEN])
def test_each_rule_is_needed(spin, check):
    # GIVEN the model without one of the rules
    # WHEN spin looks for a run that breaks a property
    output = spin.outcome(check)

    # THEN it finds one, and it is the property that the rule is for
    assert "errors: 1" in output, output
    if check.cycles:
        assert "non-progress cycle" in output
    else:
        assert re.search(r"assertion violated .*(G\d)", output)[1] == check.finds, output


@all_of("check", REACHED, ids=[check.name for check in REACHED])
def test_the_interesting_states_are_reached(spin, check):
    # GIVEN an assertion that a certain state is never reached
    # WHEN spin looks for it
    output = spin.outcome(check)

    # THEN it is reached: what holds there, holds for a reason
    assert "errors: 1" in output, output
    assert re.search(r"assertion violated .*\b(\d+)!=\1\b", output), output


# A comment "these, and those, shim/gate.c" in the model, in one line's length.
NAMES = re.compile(r"((?:[\w.]+(?:, | and ))*[\w.]+),\s(?:\*\s)?((?:shim|krex)/[\w/]+\.(?:c|h|py))")


def references() -> "set[tuple[str, str]]":
    found = set()
    for file in MODEL.glob("*.pml"):
        text = re.sub(r"\s*\n\s*\*?\s*", " ", file.read_text())
        for names, path in NAMES.findall(text):
            found |= {(name, path) for name in re.split(r", | and ", names)}
    return found


def defines(source: str, name: str, path: str) -> bool:
    if path.endswith(".py"):
        owner, _, method = name.rpartition(".")
        start = source.find(f"class {owner}") if owner else 0
        end = source.find("\nclass ", start + 1) if owner else -1
        return start >= 0 and f"def {method}(" in source[start : end if end > 0 else None]
    return bool(
        re.search(rf"^(?:[\w* ]+ \**{name}\(|(?:struct|enum) {name} {{)", source, re.MULTILINE)
    )


def test_what_the_model_names_is_in_the_code(root):
    # GIVEN the functions that the model says its steps stand for
    named = references()

    # WHEN they are looked up where it says they are
    missing = {
        (name, path)
        for name, path in named
        if not ((root / path).exists() and defines((root / path).read_text(), name, path))
    }

    # THEN all are there, and the protocol's own are all named
    assert not missing
    assert {
        ("krex_gate_enter", "shim/gate.h"),
        ("krex_gate_leave", "shim/gate.h"),
        ("wait_at", "shim/gate.c"),
        ("krex_gate_attach", "shim/gate.c"),
        ("krex_gate_swap", "shim/closer.c"),
        ("krex_in_flight", "shim/closer.c"),
        ("krex_block_clean", "shim/closer.c"),
        ("krex_gate_reopen", "shim/reopen.h"),
        ("join_board", "shim/client.c"),
        ("drain", "shim/client.c"),
        ("Hold.acquire", "krex/controller/hold.py"),
        ("Hold.release", "krex/controller/hold.py"),
        ("Hold.undo", "krex/controller/hold.py"),
    } <= named
