# SPDX-License-Identifier: Apache-2.0
"""LD_PRELOAD alone, beside `krex run`: gated and drained, not frozen, and told so."""

import json
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
BUSY, REGIONS = HERE / "busy_program.py", HERE / "region_program.py"
COUNT = 5


def preloaded(krex, *words: str, **env: str) -> subprocess.Popen[str]:
    """Start a Python program as an existing harness has it: with the library, and nothing else."""
    library = krex("lib-path").stdout.strip()
    return krex.popen(krex.python_path, *words, LD_PRELOAD=library, **env)


def finish(process: subprocess.Popen[str]) -> dict:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return json.loads(out)


def check_exclusive(records: list[dict], holder: dict, sibling: dict) -> None:
    """At least four of five, and no kernel of the sibling inside them."""
    assert len(records) == COUNT
    assert sum(r["exclusive"] for r in records) >= COUNT - 1, [r["reasons"] for r in records]
    for record, (begin, end) in zip(records, holder["regions"], strict=True):
        inside = [k for k in sibling["kernels"] if k[0] < end and k[1] > begin]
        assert not record["exclusive"] or inside == []


def test_a_region_is_exclusive_beside_a_preloaded_sibling_and_says_it_was_not_frozen(krex):
    sibling = preloaded(krex, str(BUSY), "device")
    assert sibling.stdout.readline() == "ready\n"
    holder = krex.program("--report", str(krex.folder / "r"), regions=COUNT)
    mine = finish(holder)
    check_exclusive(krex.records("r"), mine, finish(sibling))
    for record in krex.records("r"):
        assert record["siblings"]["processes"] == record["siblings"]["processes_not_frozen"] == 1


def test_a_region_of_a_preloaded_harness_is_exclusive_beside_krex_run(krex):
    sibling = krex.python(BUSY, "device")
    assert sibling.stdout.readline() == "ready\n"
    mine = finish(preloaded(krex, str(REGIONS), str(COUNT), KREX_REPORT=str(krex.folder / "r")))
    check_exclusive(krex.records("r"), mine, finish(sibling))
    for record in krex.records("r"):
        assert record["siblings"]["commands_frozen"] == 1
        assert record["siblings"]["processes_not_frozen"] == 0


def test_a_region_beside_a_preloaded_sibling_that_computes_is_not_exclusive(krex):
    # On a CPU device the cores are the device: the gate alone does not keep a sibling off them.
    sibling = preloaded(krex, str(BUSY), "processor")
    assert sibling.stdout.readline() == "ready\n"
    finish(krex.program("--report", str(krex.folder / "r"), regions=2))
    finish(sibling)
    found = [(r["exclusive"], r["reasons"]) for r in krex.records("r")]
    assert found == [(False, ["sibling_ran"])] * 2


def test_a_preloaded_sibling_that_ends_inside_is_not_taken_for_idle(krex):
    sibling = preloaded(krex, str(BUSY), "processor")
    assert sibling.stdout.readline() == "ready\n"
    holder = krex.program("--report", str(krex.folder / "r"), regions=1, how="pause")
    assert holder.stdout.readline() == "inside\n"
    sibling.kill()
    sibling.wait(30)
    holder.communicate("\n", timeout=60)
    [record] = krex.records("r")
    assert not record["exclusive"] and record["reasons"] == ["sibling_not_frozen"]


def test_without_a_controller_one_line_and_an_unchanged_run(cli):
    program = "import device_work as d; w = d.Work(); w.timed('a'); w.timed('b'); print('done')"
    env = {"PYTHONPATH": str(HERE), "LD_PRELOAD": cli("lib-path").stdout.strip()}
    result = subprocess.run(
        [cli.python_path, "-c", program],
        env=cli.env | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout == "done\n"
    [line] = result.stderr.splitlines()
    assert line.startswith("krex: this process runs unprotected: no controller answers")
