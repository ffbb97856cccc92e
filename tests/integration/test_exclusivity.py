# SPDX-License-Identifier: Apache-2.0
"""G1 and G2 on real kernels: no sibling's kernel lies inside a region reported exclusive."""

import json

COMMANDS, REGIONS = 8, 3


def overlaps(region: list[int], kernels: list[list[int]]) -> int:
    return sum(start < region[1] and end > region[0] for start, end in kernels)


def run_side_by_side(krex, exclusive: str):
    """Give (region, sibling overlaps, record) of every region of every command."""
    children = [
        krex.program("--exclusive", exclusive, "--report", str(krex.folder / f"{i}.jsonl"))
        for i in range(COMMANDS)
    ]
    outputs = [json.loads(child.communicate(timeout=90)[0]) for child in children]
    found = []
    for i, output in enumerate(outputs):
        siblings = [k for j, o in enumerate(outputs) if j != i for k in o["kernels"]]
        records = sorted(krex.records(f"{i}.jsonl"), key=lambda r: r["index"])
        assert len(records) == REGIONS
        found += [
            (overlaps(region, siblings), record)
            for region, record in zip(output["regions"], records, strict=True)
        ]
    assert [child.returncode for child in children] == [0] * COMMANDS
    return found


def test_no_sibling_kernel_runs_inside_an_exclusive_region(krex):
    found = run_side_by_side(krex, "region")
    exclusive = [n for n, record in found if record["exclusive"]]
    assert [n for n in exclusive if n] == []
    assert len(exclusive) >= 22, [r["reasons"] for _, r in found if not r["exclusive"]]
    assert all(r["exclusive"] or r["reasons"] for _, r in found)


def test_the_check_finds_overlaps_when_nothing_protects(krex):
    found = run_side_by_side(krex, "none")
    assert sum(n for n, _ in found) > 0
    assert {tuple(r["reasons"]) for _, r in found} == {("exclusive_none",)}
