# SPDX-License-Identifier: Apache-2.0
"""The committed schemas are fresh, say everything, and refuse what is wrong; so do the docs."""

import ast
import copy
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from krex import command_record, reasons, record, schemas, status
from krex.schemas import __main__ as generator
from krex.schemas.reference import fill, walk

ROOT = Path(__file__).resolve().parents[2]
NAMES = list(schemas.SCHEMAS)

RECORD = {
    "schema": "krex.region",
    "schema_version": 1,
    "region_id": "r-1-1",
    "command": "c-1-1",
    "tenant": "1000",
    "pid": 17,
    "device": "cpu:0",
    "marker": "explicit",
    "name": "sgemm",
    "index": 0,
    "hold_id": "h-1-2",
    "exclusive": True,
    "reasons": [],
    "protect": "freeze",
    "granted_ns": 10,
    "released_ns": 20,
    "holder_pids": [17],
    "wait_s": 0.001,
    "hold_s": 0.2,
    "cpus": {"slice": [0, 1, 2], "reserved": [3], "notes": [], "pinned": 1, "pin_failed": 0},
}
STATUS = {
    "schema": "krex.status",
    "schema_version": 1,
    "controller": {"pid": 1, "version": "0.1.0", "socket": "/run/s", "started_unix_s": 1.5},
    "simulator": {"pid": 5, "socket": "/run/sim.sock", "devices": 2, "log": "/run/log.tsv"},
    "devices": [
        {
            "device": "cpu:0",
            "gate": "closed",
            "epoch": 3,
            "slots": 16,
            "slots_used": 1,
            "hold": {"hold_id": "h-1-2", "command": "c-1-1", "since_s": 0.1, "marks": 1},
            "queue": [{"command": "c-1-2", "pid": 18, "waited_s": 0.1}],
            "admission": [
                {
                    "command": "c-1-3",
                    "tenant": "1",
                    "argv": ["x"],
                    "alone": True,
                    "place": 1,
                    "waited_s": 1.5,
                    "expected_wait_s": None,
                }
            ],
            "processes": [
                {"pid": 17, "command": "c-1-1", "state": "live", "clean": False, "submissions": 3}
            ],
        }
    ],
    "commands": [
        {
            "command": "c-1-1",
            "tenant": "1000",
            "argv": ["sleep", "1"],
            "device": "cpu:0",
            "root_pid": 17,
            "frozen": False,
            "frozen_s": 0.0,
            "cgroup": None,
        }
    ],
}
DOCTOR = {
    "schema": "krex.doctor",
    "schema_version": 1,
    "ok": True,
    "checks": [{"id": "freezer", "status": "ok", "needed": False, "detail": "0.1 ms", "fix": None}],
    "devices": [{"key": "cpu:0", "name": "a CPU", "platform": "PoCL", "loader": "system"}],
}
SPREAD = {"q1": 1.0, "median": 2.0, "q3": 3.0}
EVAL = {
    "overhead": {
        "rounds": 3, "calls_per_round": 9, "direct_ns": 2.0, "control_ns": 0.1, "added_ns": 2.5,
        "added_in_region_ns": 2.6, "added_full_fence_ns": 7.0, "quartiles_ns": {"direct": SPREAD},
    },
    "startup": {
        "rounds": 3, "direct_ms": 1.0, "control_ms": 0.0, "added_ms": 30.0,
        "quartiles_ms": {"direct": SPREAD},
    },
    "handshake": {
        "siblings": 1, "regions": 9, "exclusive": 9, "grant_s_p50": 0.1, "grant_s_p99": 0.2,
        "release_s_p50": 0.1, "release_s_p99": 0.2, "steps_s_p50": {"drain_s": 0.1},
    },
    "mix": {
        "commands": 2, "regions": 4, "exclusive": 3, "falsely_exclusive": 0,
        "reasons": {"process_died": 1}, "together_s": 1.0, "one_by_one_s": 2.0,
        "solo_ratio": [0.9, 1.0, 1.1, 1.2], "krex_ratio": [0.9, 1.0, 1.1, 1.2],
        "inside_solo_range": 1.0,
    },
}  # fmt: skip
COMMAND = {
    "schema": "krex.command",
    "schema_version": 1,
    "command": "c-1-1",
    "tenant": "1000",
    "device": "cpu:0",
    "argv": ["timeout", "1", "bench"],
    "status": 124,
    "duration_s": 2.5,
    "freezes": 2,
    "frozen_s": 1.5,
    "longest_freeze_s": 1.25,
    "after_thaw_s": 0.01,
    "limit_suspected": True,
}
SAMPLES = {"region-record": RECORD, "command-record": COMMAND, "status": STATUS, "doctor": DOCTOR}
SAMPLES["audit"] = {
    "schema": "krex.audit",
    "schema_version": 1,
    "regions": 3,
    "findings": [
        {
            "code": "cold_start",
            "severity": "warning",
            "command": "c-1-1",
            "region_id": "r-1-1",
            "name": "sgemm",
            "pid": 17,
            "detail": "nothing was launched before it",
            "meaning": "It is slow.",
            "fix": "Warm up.",
        }
    ],
}
SAMPLES["sim-check"] = {
    "schema": "krex.sim-check",
    "schema_version": 1,
    "simulated": True,
    "regions": 2,
    "exclusive": 1,
    "commands": 9,
    "covered_ns": 5000,
    "uncovered": 0,
    "after_log": 0,
    "heavy_beside": 0,
    "violations": [
        {
            "invariant": "G1", "device": "sim:0", "region_id": "r", "command": "c-1-1",
            "granted_ns": 1000, "released_ns": 2000, "pid": 7, "kind": "run", "name": "gemm",
            "seq": 3, "arrival_ns": 1500, "start_ns": 1500, "end_ns": 1600,
        }
    ],
}  # fmt: skip
SAMPLES |= {
    f"eval-{name}": {"schema": f"krex.eval.{name}", "schema_version": 1} | sample
    for name, sample in EVAL.items()
}


def committed(name: str) -> dict:
    return json.loads((schemas.FOLDER / f"{name}.schema.json").read_text())


def keys(name: str):
    schema = committed(name)
    return walk(schema, schema, "")


# ---------------------------------------------------------------- generated files


def test_what_is_committed_is_what_would_be_generated():
    assert {path.name for path, text in generator.files() if path.read_text() != text} == set()


def test_the_check_finds_what_is_stale(tmp_path):
    # GIVEN a copy of the package with one word of one schema changed
    shutil.copytree(ROOT / "krex", tmp_path / "krex")
    path = tmp_path / "krex" / "schemas" / "status.schema.json"
    path.write_text(path.read_text().replace("controller", "ruler", 1))
    check = [sys.executable, "-m", "krex.schemas", "--check"]
    # WHEN it is checked, THEN that file is named
    done = subprocess.run(check, cwd=tmp_path, stderr=-1, text=True, timeout=60)
    assert (done.returncode, done.stderr.split()[0]) == (1, "status.schema.json")
    # AND written anew, it passes
    subprocess.run(check[:-1], cwd=tmp_path, check=True, timeout=60)
    assert subprocess.run(check, cwd=tmp_path, timeout=60).returncode == 0


def test_a_page_s_block_is_filled_and_the_rest_kept():
    page = "before\n<!-- generated: reasons -->\nOUTDATED\n<!-- end -->\nafter\n"
    filled = fill(page, {})
    assert filled.startswith("before\n") and filled.endswith("<!-- end -->\nafter\n")
    assert "OUTDATED" not in filled and "`controller_lost`" in filled


# ---------------------------------------------------------------- what the schemas say


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one(name):
    schema = committed(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    properties = schema["$defs"][schema["$ref"].rpartition("/")[2]]["properties"]
    assert properties["schema_version"]["const"] == schemas.SCHEMAS[name].version
    assert properties["schema"]["const"].startswith("krex.")


@pytest.mark.parametrize("name", NAMES)
def test_every_key_is_described_and_durations_say_their_unit(name):
    for path, node, _ in keys(name):
        assert node.get("description"), path
        types = {each.get("type") for each in [node, *node.get("anyOf", [])]}
        if types == {"integer"} and path.endswith("_ns"):
            continue  # an instant
        # Unless it is a share, a number says its unit; and only numbers do.
        names_unit = re.search(r"_(s|ns|ms)(_p\d\d)?$", path) and "object" not in types
        assert ("number" in types) == bool(names_unit or path.endswith("_range")), path


@pytest.mark.parametrize(
    ("name", "page"),
    [("region-record", "records"), ("command-record", "records"), ("status", "status")],
)
def test_every_key_stands_in_the_docs(name, page):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    assert [path for path, _, _ in keys(name) if f"| `{path}` |" not in text] == []


# ---------------------------------------------------------------- what they accept


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_valid_and_may_have_more_keys(name):
    Draft202012Validator(committed(name)).validate(SAMPLES[name] | {"of_a_later_version": 1})


def test_the_types_write_what_the_schemas_describe():
    read = msgspec.convert(STATUS, status.Status)
    assert msgspec.to_builtins(read) == STATUS
    Draft202012Validator(committed("status")).validate(msgspec.to_builtins(status.nothing()))
    assert msgspec.to_builtins(msgspec.convert(RECORD, record.RegionRecord)) == RECORD
    assert msgspec.to_builtins(msgspec.convert(COMMAND, command_record.CommandRecord)) == COMMAND


@pytest.mark.parametrize("name", NAMES)
def test_no_required_key_may_lack(name):
    validator = Draft202012Validator(committed(name))
    paths = [path for path, _, required in keys(name) if required and "." not in path]
    assert paths
    for path in paths:
        assert not validator.is_valid({k: v for k, v in SAMPLES[name].items() if k != path}), path


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "krex.status"},
        {"schema_version": 2},
        {"wait_s": "0.1"},
        {"wait_s": -1.0},
        {"index": 1.5},
        {"hold_s": None},
        {"exclusive": "true"},
        {"reasons": ["lease_lost"]},
        {"exclusive": False},
        {"handshake": {"drain_s": -0.1}},
        {"siblings": {"processes": 1}},
        {"cpus": {"slice": "0-2"}},
        {"cpus": {"pinned": -1}},
        {"granted_ns": 1.5},
        {"holder_pids": 17},
        {"simulated": None},
    ],
    ids=str,
)
def test_a_wrong_record_is_refused(change):
    assert not Draft202012Validator(committed("region-record")).is_valid(RECORD | change)


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        (lambda s: s, "schema_version", 0),
        (lambda s: s["controller"], "started_unix_s", None),
        (lambda s: s["devices"][0], "gate", "ajar"),
        (lambda s: s["devices"][0]["hold"], "since_s", -1),
        (lambda s: s["devices"][0]["queue"][0], "pid", "18"),
        (lambda s: s["devices"][0]["processes"][0], "clean", 1),
        (lambda s: s["commands"][0], "argv", "sleep 1"),
        (lambda s: s["commands"][0], "cgroup", 1),
    ],
)
def test_a_wrong_status_is_refused(where, key, value):
    changed = copy.deepcopy(STATUS)
    where(changed)[key] = value
    assert not Draft202012Validator(committed("status")).is_valid(changed)


# ---------------------------------------------------------------- reasons

# Given to `until` where a missed deadline is no reason: the record has a key of its own for it.
NOT_REASONS = {"", "work_at_end"}


def reasons_given(source: str) -> set[str]:
    """The texts that code gives as reasons.

    They are the first argument of Abort, what is given for a parameter called `reason`, what is
    assigned to a name with "reason" in it, what is appended to one, and what a function with
    "reason" in its name returns.
    """
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    places = {"Abort": 0}
    for function in functions:
        names = [a.arg for a in function.args.args if a.arg != "self"]
        if "reason" in names:
            places[function.name] = names.index("reason")
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            place = places.get(name, len(node.args))
            found += node.args[place : place + 1]
            found += [k.value for k in node.keywords if "reason" in (k.arg or "")]
            if name == "append" and "reason" in ast.unparse(node.func):
                found += node.args
        elif isinstance(node, ast.Assign) and any("reason" in ast.unparse(t) for t in node.targets):
            found.append(node.value)
    found += [
        node.value
        for function in functions
        if "reason" in function.name
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and node.value
    ]
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return set().union(*(texts(node, constants) for node in found))


def texts(node: ast.expr, constants: dict[str, ast.expr]) -> set[str]:
    """The texts that an expression can give (as opposed to those it looks something up by)."""
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.Name(id=name) if name in constants:
            return texts(constants[name], constants)
        case ast.List(elts=nodes) | ast.BoolOp(values=nodes) | ast.Tuple(elts=nodes):
            return set().union(*(texts(n, constants) for n in nodes))
        case ast.IfExp(body=one, orelse=other):
            return texts(one, constants) | texts(other, constants)
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return {text.partition(":")[0]}
    return set()


def all_reasons() -> set[str]:
    launch = ROOT / "krex" / "launch"
    files = [
        *(ROOT / "krex" / "controller").glob("*.py"),
        launch / "report.py",
        launch / "supervise.py",
    ]
    # As one text: a function of one file is called in another.
    whole = "\n".join(path.read_text() for path in files)
    return reasons_given(whole.replace("from __future__ import annotations", "")) - NOT_REASONS


def test_reasons_are_found_where_code_gives_them():
    source = """
LOST = "lost"
def leave(self, mark, reason=None): ...
async def until(done, limit_s, reason): ...
def f(self):
    raise Abort("aborted")
    self.leave(mark, "left" if mark else "gone")
    until(lambda: other("no reason"), 1.0, "late")
    record.reasons.append("appended")
    reason = reason or "assigned"
    reasons = [*others, LOST]
    Record(reasons=["keyword"])
    self.leave(mark, f"error: {failure}")
    print("no reason either")
def why_reason(self):
    return "returned" if self else None
"""
    assert reasons_given(source) == {
        "aborted", "left", "gone", "late", "appended", "assigned", "lost", "keyword", "error",
        "returned",
    }  # fmt: skip


def test_every_reason_that_code_gives_is_documented():
    found = all_reasons()
    assert {"sibling_not_drained", "process_died", "controller_lost", "exclusive_none"} <= found
    assert found - set(reasons.REASONS) == set()


def test_every_documented_reason_is_given_somewhere():
    assert set(reasons.REASONS) - all_reasons() == set()
