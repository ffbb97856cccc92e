# SPDX-License-Identifier: Apache-2.0
"""Which CPUs a device gets, on machines that are described, not had; refusals included."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from support.machines import NOT_TOLD, Core, Machine, laptop, server

from krex.controller import cores
from krex.protect import slices, topology
from krex.protect.slices import Plan, Refusal, Site, Slice
from krex.protect.topology import Cpu, Topology

GPUS = ["0000:1a:00.0", "0000:3b:00.0", "0000:c1:00.0", "0000:d8:00.0"]
KEYS = [f"pci:{address}" for address in GPUS]


def cpus(*ranges: tuple[int, int]) -> tuple[int, ...]:
    """Both ends belong to a range."""
    return tuple(n for first, last in ranges for n in range(first, last + 1))


def plan(machine: Machine, keys: Sequence[str], reserved: int = 1) -> Plan:
    """As the controller does: read what there is, and divide it."""
    root = str(machine.root)
    found = topology.read(root)
    sites = [
        slices.site(key, found, topology.read_pci(key.removeprefix("pci:"), root)) for key in keys
    ]
    return slices.plan(found, sites, reserved)


def granted(made: Plan, key: str) -> Slice:
    found = made.find(key)
    assert isinstance(found, Slice), found
    return found


def refused(made: Plan, key: str) -> Refusal:
    found = made.find(key)
    assert isinstance(found, Refusal), found
    return found


# Machines.


def epyc(root: Path) -> Machine:
    """Two sockets of 16 cores with SMT, and two GPUs on each."""
    machine = Machine(root, server(packages=2, cores=16))
    for address in GPUS[:2]:
        machine.gpu(address, 0, cpus((0, 15), (32, 47)))
    for address in GPUS[2:]:
        machine.gpu(address, 1, cpus((16, 31), (48, 63)))
    return machine


def test_a_server_with_two_gpus_a_socket(tmp_path):
    made = plan(epyc(tmp_path), KEYS)
    assert [part.cpus for part in made.slices] == [
        cpus((0, 7), (32, 39)),
        cpus((8, 15), (40, 47)),
        cpus((16, 23), (48, 55)),
        cpus((24, 31), (56, 63)),
    ]
    assert [part.reserved for part in made.slices] == [(7, 39), (15, 47), (23, 55), (31, 63)]
    assert [part.measuring for part in made.slices] == [(7,), (15,), (23,), (31,)]
    assert made.refusals == made.left == () and made.reserved == (7, 15, 23, 31, 39, 47, 55, 63)


def test_one_gpu_has_the_cores_near_it_and_no_other(tmp_path):
    made = plan(epyc(tmp_path), KEYS[3:])
    assert granted(made, KEYS[3]).cpus == cpus((16, 31), (48, 63))
    assert made.left == (slices.Left("not_near", cpus((0, 15), (32, 47))),)


def test_more_cores_can_be_reserved_while_three_in_four_stay(tmp_path):
    two, three = (plan(epyc(tmp_path), KEYS, reserved=n) for n in (2, 3))
    assert granted(two, KEYS[0]).reserved == (6, 7, 38, 39)
    assert granted(two, KEYS[0]).commands == cpus((0, 5), (32, 37))
    # Eight cores a device: two can be reserved, and it says so.
    assert granted(three, KEYS[0]).reserved == granted(two, KEYS[0]).reserved
    assert granted(three, KEYS[0]).notes == ("fewer_reserved",)
    assert granted(two, KEYS[0]).notes == ()


def test_where_threads_are_pinned(tmp_path):
    part = granted(plan(epyc(tmp_path), KEYS, reserved=2), KEYS[0])
    # One a core, its sibling idle; then the siblings too; and more would push each other off.
    assert [part.room_for(n) for n in (1, 2)] == [(6, 7)] * 2
    assert [part.room_for(n) for n in (3, 4)] == [(6, 7, 38, 39)] * 2
    assert part.room_for(5) is None


def test_a_laptop_gets_its_fast_cores(tmp_path):
    machine = Machine(tmp_path, laptop(performance=6, efficient=8))
    key = machine.gpu("0000:01:00.0", NOT_TOLD)
    part = granted(plan(machine, [key]), key)
    # All fast ones, also those that clock a few percent less than the favoured one.
    assert part.cpus == cpus((0, 11)) and part.reserved == (10, 11)
    assert part.notes == ("locality_unknown",)
    assert plan(machine, [key]).left == (slices.Left("slower_class", cpus((12, 19))),)


def test_too_few_fast_cores_are_not_mixed_with_slow_ones(tmp_path):
    machine = Machine(tmp_path, laptop(performance=2, efficient=8))
    key = machine.gpu("0000:01:00.0", NOT_TOLD)
    refusal = refused(plan(machine, [key]), key)
    assert refusal.reason == "mixed_classes"
    assert "2 whole cores" in refusal.detail and "8 of a slower class" in refusal.detail


def test_big_and_little_cores(tmp_path):
    machine = Machine(tmp_path, [Core([n], capacity=446 if n < 4 else 1024) for n in range(8)])
    key = machine.gpu("0000:01:00.0", NOT_TOLD)
    part = granted(plan(machine, [key]), key)
    assert part.cpus == (4, 5, 6, 7) and part.reserved == (7,)


def test_fast_cores_of_two_clock_rates_are_one_class(tmp_path):
    speeds = [718] * 5 + [997] * 5 + [718] * 5 + [1024] * 5
    machine = Machine(tmp_path, [Core([n], capacity=speed) for n, speed in enumerate(speeds)])
    key = machine.gpu("000f:01:00.0", 0)
    assert granted(plan(machine, [key]), key).cpus == cpus((5, 9), (15, 19))


def test_a_container_that_only_has_slow_cores_uses_those(tmp_path):
    machine = Machine(tmp_path, laptop(performance=4, efficient=8))
    machine.limit(range(8, 16))
    key = machine.gpu("0000:01:00.0", NOT_TOLD)
    assert granted(plan(machine, [key]), key).cpus == cpus((8, 15))


def test_smt_switched_off(tmp_path):
    machine = Machine(tmp_path, server(packages=1, cores=8), offline=range(8, 16))
    key = machine.gpu("0000:01:00.0", 0)
    part = granted(plan(machine, [key]), key)
    assert part.cpus == cpus((0, 7)) and part.reserved == part.measuring == (7,)


def test_a_core_with_an_offline_sibling_is_whole_all_the_same(tmp_path):
    machine = Machine(tmp_path, server(packages=1, cores=4), offline=[7])
    key = machine.gpu("0000:01:00.0", 0)
    part = granted(plan(machine, [key]), key)
    assert part.cpus == cpus((0, 6)) and part.reserved == (3,)


def test_a_container_with_three_cpus_is_refused(tmp_path):
    machine = Machine(tmp_path, server(packages=1, cores=8, threads=1))
    machine.limit([1, 2, 3])
    key = machine.gpu("0000:01:00.0", 0)
    made = plan(machine, [key])
    refusal = refused(made, key)
    assert refusal.reason == "too_few_cores" and "3 whole cores" in refusal.detail
    assert made.left == (
        slices.Left("not_allowed", (0, 4, 5, 6, 7)),
        slices.Left("refused", (1, 2, 3)),
    )


def test_half_of_every_core_is_no_core(tmp_path):
    # GIVEN a container that has the first thread of each core, and somebody else the second
    machine = Machine(tmp_path, server(packages=1, cores=8))
    machine.limit(range(8))
    key = machine.gpu("0000:01:00.0", 0)
    refusal = refused(plan(machine, [key]), key)
    assert refusal.reason == "split_cores" and "8 with siblings" in refusal.detail


def test_half_a_core_is_for_commands_only(tmp_path):
    # GIVEN four whole cores, and the last core without its second thread
    machine = Machine(tmp_path, server(packages=1, cores=5))
    machine.limit(range(9))
    key = machine.gpu("0000:01:00.0", 0)
    part = granted(plan(machine, [key]), key)
    assert part.reserved == (3, 8) and 4 in part.commands


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_small_virtual_machine_is_refused(tmp_path, count):
    machine = Machine(tmp_path, server(packages=1, cores=count, threads=1))
    key = machine.gpu("0000:00:04.0", NOT_TOLD)
    assert refused(plan(machine, [key]), key).reason == "too_few_cores"


def test_threads_are_not_cores(tmp_path):
    machine = Machine(tmp_path, server(packages=1, cores=3, threads=2))
    key = machine.gpu("0000:00:04.0", 0)
    assert refused(plan(machine, [key]), key).reason == "too_few_cores"


def test_four_cores_give_one(tmp_path):
    machine = Machine(tmp_path, server(packages=1, cores=4, threads=1))
    key = machine.gpu("0000:00:04.0", NOT_TOLD)
    part = granted(plan(machine, [key]), key)
    assert part.reserved == (3,) and part.commands == (0, 1, 2)


def test_cpus_that_do_not_know_their_cores_are_cores(tmp_path):
    machine = Machine(tmp_path, [])
    machine.write("sys/devices/system/cpu/online", "0-7")
    machine.limit(range(8))
    made = plan(machine, ["sim:0", "sim:1"])
    assert [part.cpus for part in made.slices] == [cpus((0, 3)), cpus((4, 7))]


def test_without_any_topology_there_is_no_slice(tmp_path):
    Machine(tmp_path, [])
    made = slices.plan(topology.read(str(tmp_path)), [Site("sim:0")])
    assert refused(made, "sim:0").reason == "no_topology" and made.left == ()


def test_on_a_cpu_the_cores_are_the_device(tmp_path):
    machine = epyc(tmp_path)
    made = plan(machine, ["cpu:0"])
    assert refused(made, "cpu:0").reason == "cores_are_the_device"
    assert made.slices == () and made.left == (slices.Left("refused", tuple(machine.online)),)
    # Beside it a GPU has what it would have without.
    assert plan(machine, ["cpu:0", *KEYS]).slices == plan(machine, KEYS).slices


def test_isolated_cpus_are_left_out(tmp_path):
    machine = Machine(tmp_path, server(packages=1, cores=8, threads=1))
    machine.write("sys/devices/system/cpu/isolated", "6-7")
    key = machine.gpu("0000:01:00.0", 0)
    made = plan(machine, [key])
    assert granted(made, key).cpus == cpus((0, 5))
    assert made.left == (slices.Left("isolated", (6, 7)),)


def test_a_device_far_from_all_that_is_allowed_takes_what_there_is(tmp_path):
    machine = epyc(tmp_path)
    machine.limit(cpus((0, 15), (32, 47)))
    part = granted(plan(machine, KEYS[3:]), KEYS[3])
    assert part.cpus == cpus((0, 15), (32, 47)) and part.notes == ("not_near",)


def test_devices_of_unknown_place_share_all_cores_evenly(tmp_path):
    machine = Machine(tmp_path, server(packages=2, cores=8, threads=1))
    for address in GPUS[:2]:
        machine.gpu(address, NOT_TOLD)
    made = plan(machine, KEYS[:2])
    assert [part.cpus for part in made.slices] == [cpus((0, 7)), cpus((8, 15))]
    assert {part.notes for part in made.slices} == {("locality_unknown",)}


def test_a_slice_over_two_nodes_reserves_cores_of_one(tmp_path):
    machine = Machine(tmp_path, server(packages=2, cores=8, threads=1))
    part = granted(plan(machine, ["sim:0"], reserved=4), "sim:0")
    assert part.cpus == cpus((0, 15)) and part.reserved == cpus((12, 15))


def test_a_stranger_takes_the_cores_near_nobody(tmp_path):
    made = plan(epyc(tmp_path), [KEYS[0], "sim:0"])
    assert granted(made, KEYS[0]).cpus == cpus((0, 15), (32, 47))
    assert granted(made, "sim:0").cpus == cpus((16, 31), (48, 63))


def test_a_stranger_among_devices_everywhere_joins_the_least_crowded(tmp_path):
    made = plan(epyc(tmp_path), [KEYS[0], KEYS[1], KEYS[2], "sim:0"])
    assert granted(made, KEYS[0]).cpus == cpus((0, 7), (32, 39))
    assert granted(made, KEYS[2]).cpus == cpus((16, 23), (48, 55))
    assert granted(made, "sim:0").cpus == cpus((24, 31), (56, 63))


def test_a_device_near_a_whole_socket_yields_to_one_near_a_part_of_it():
    machine = Topology(cpus=tuple(Cpu(id=n) for n in range(16)))
    wide, narrow = Site("pci:a", cpus((0, 15))), Site("pci:b", cpus((0, 7)))
    made = slices.plan(machine, [wide, narrow])
    assert granted(made, "pci:b").cpus == cpus((0, 7))
    assert granted(made, "pci:a").cpus == cpus((8, 15))
    # And where nothing is left of its own, it joins.
    others = [Site("pci:c", cpus((8, 15)))]
    made = slices.plan(machine, [wide, narrow, *others])
    assert granted(made, "pci:a").cpus == cpus((0, 3))
    assert granted(made, "pci:b").cpus == cpus((4, 7))


def test_too_many_devices_on_one_node_are_all_refused(tmp_path):
    machine = Machine(tmp_path, server(packages=2, cores=8, threads=1))
    for address in GPUS[:3]:
        machine.gpu(address, 0, range(8))
    machine.gpu(GPUS[3], 1, range(8, 16))
    made = plan(machine, KEYS)
    assert [refusal.device for refusal in made.refusals] == KEYS[:3]
    assert "8 whole cores for 3 device(s)" in made.refusals[0].detail
    assert granted(made, KEYS[3]).cpus == cpus((8, 15))
    assert made.left == (slices.Left("refused", cpus((0, 7))),)


def test_a_device_that_came_later_has_no_slice(tmp_path):
    assert refused(plan(epyc(tmp_path), KEYS), "sim:7").reason == "not_planned"


@pytest.mark.parametrize(
    ("keys", "reserved", "text"),
    [(["sim:0", "sim:0"], 1, "named twice"), (["sim:0"], 0, "at least one core")],
)
def test_a_question_that_makes_no_sense(tmp_path, keys, reserved, text):
    with pytest.raises(ValueError, match=text):
        slices.plan(Topology(cpus=()), [Site(key) for key in keys], reserved)


# What holds of every plan, of machines made by chance; the seed is in the test's name.


def any_machine(dice: random.Random) -> Topology:
    packages, threads = dice.choice([1, 1, 2, 4]), dice.choice([1, 2, 2, 4])
    cores = server(packages, dice.randint(1, 12), threads, dice.choice([1, 1, 2]))
    numbers = [n for core in cores for n in core.cpus]
    offline = {n for n in numbers if dice.random() < dice.choice([0, 0.2])} - {0}
    known, hybrid = dice.random() < 0.8, dice.random() < 0.3
    found = []
    for core in cores:
        online = tuple(n for n in core.cpus if n not in offline)
        slow = hybrid and dice.random() < 0.4
        found += [
            Cpu(
                id=n,
                siblings=online if known else None,
                package=core.package,
                node=core.node if known else None,
                kind=("efficient" if slow else "performance") if hybrid and known else None,
                capacity=dice.choice([400, 700]) if slow else dice.choice([1000, 1024]),
            )
            for n in online
        ]
    limits = [
        None if dice.random() < 0.6 else tuple(n for n in numbers if dice.random() < 0.8)
        for _ in range(2)
    ]
    isolated = tuple(n for n in numbers if dice.random() < 0.1) if dice.random() < 0.2 else ()
    by_id = tuple(sorted(found, key=lambda cpu: cpu.id))
    return Topology(cpus=by_id, isolated=isolated, affinity=limits[0], cpuset=limits[1])


def any_sites(dice: random.Random, machine: Topology) -> list[Site]:
    sites = []
    for number in range(dice.randint(0, 5)):
        node = dice.choice([cpu.node for cpu in machine.cpus])
        near = tuple(cpu.id for cpu in machine.cpus if cpu.node == node)
        sites.append(Site(f"sim:{number}", dice.choice([None, near, near, machine.online])))
    return sites + ([Site("cpu:0")] if dice.random() < 0.2 else [])


def classes(machine: Topology, of: Iterable[int]) -> set[object]:
    """Kinds, or else slow and fast: the generator's two."""
    by_id = {cpu.id: cpu for cpu in machine.cpus}
    return {by_id[n].kind or (by_id[n].capacity or 0) >= 1000 for n in of}


def siblings(machine: Topology, cpu: int) -> set[int]:
    found = next(c for c in machine.cpus if c.id == cpu)
    return set(found.siblings or (cpu,))


@pytest.mark.parametrize("seed", range(300))
def test_every_plan(seed):
    dice = random.Random(seed)
    machine = any_machine(dice)
    sites, wanted = any_sites(dice, machine), dice.randint(1, 3)
    made = slices.plan(machine, sites, wanted)
    usable = set(machine.allowed) - set(machine.isolated)

    # THEN every device has one answer, and every CPU one place
    answered = [part.device for part in made.slices] + [r.device for r in made.refusals]
    assert sorted(answered) == sorted(s.device for s in sites)
    placed = [n for part in (*made.slices, *made.left) for n in part.cpus]
    assert sorted(placed) == list(machine.online)
    assert all(left.reason in slices.LEFT_OUT for left in made.left)
    assert all(refusal.reason in slices.REFUSALS for refusal in made.refusals)

    for part in made.slices:
        own, reserved, commands = map(set, (part.cpus, part.reserved, part.commands))
        # AND nothing is given that is not ours, and all threads of a core go together
        assert own <= usable
        for n in own:
            assert siblings(machine, n) & usable <= own
        # AND what is reserved is whole cores of one class, and CPU 0 is not
        for n in reserved:
            assert siblings(machine, n) <= reserved
        assert reserved and 0 not in reserved and len(classes(machine, own)) == 1
        assert len(part.measuring) == sum(n == min(siblings(machine, n)) for n in reserved)
        assert 1 <= len(part.measuring) <= wanted
        # AND commands keep three cores for each that is reserved
        whole = {min(siblings(machine, n)) for n in commands if siblings(machine, n) <= own}
        assert len(whole) >= 3 * len(part.measuring)
        assert reserved | commands == own and not reserved & commands
        # AND it is near the device, if anything usable is
        near = set(next(s for s in sites if s.device == part.device).near or own)
        fast = {n for p in made.slices for n in p.cpus}
        assert own <= {m for n in near for m in siblings(machine, n)} or not near & fast


@pytest.mark.parametrize("seed", range(300, 340))
def test_the_order_of_the_question_does_not_matter(seed):
    dice = random.Random(seed)
    machine = any_machine(dice)
    sites = any_sites(dice, machine)
    first = slices.plan(machine, sites)
    dice.shuffle(sites)
    assert slices.plan(machine, sites) == first


def test_chance_makes_all_kinds_of_machines():
    # The properties above say nothing if there were only refusals, or none of some kind.
    reasons: dict[str, int] = {}
    for seed in range(300):
        dice = random.Random(seed)
        machine = any_machine(dice)
        made = slices.plan(machine, any_sites(dice, machine), dice.randint(1, 3))
        for found in (*made.refusals, *made.left):
            reasons[found.reason] = reasons.get(found.reason, 0) + 1
        for part in made.slices:
            for note in ("slice", *part.notes):
                reasons[note] = reasons.get(note, 0) + 1
    told = {*slices.REFUSALS, *slices.LEFT_OUT, *slices.NOTES} - {"not_planned", "no_topology"}
    assert told <= reasons.keys() and reasons["slice"] > 100


def test_the_page_explains_every_code(root):
    page = (root / "docs" / "slices.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    codes = {*slices.REFUSALS, *slices.NOTES, *slices.LEFT_OUT, *cores.NO_SLICE, *cores.NOTES}
    assert rows == codes
