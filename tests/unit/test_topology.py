# SPDX-License-Identifier: Apache-2.0
"""What is read of a machine, from trees of files that look like it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.machines import NOT_TOLD, Core, Machine, as_list, laptop, server

from krex.protect import topology


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0\n", (0,)),
        ("0-3,8\n", (0, 1, 2, 3, 8)),
        ("9,0-1,1-2", (0, 1, 2, 9)),
        ("\n", ()),
        ("0-", None),
        ("3-1", None),
        ("-1", None),
        ("0,,1", None),
        ("all", None),
        ("0-99999999", None),
    ],
)
def test_a_list_of_cpus(text, cpus):
    assert topology.parse_list(text) == cpus


def test_a_list_reads_back():
    cpus = (0, 1, 2, 5, 7, 8)
    assert topology.parse_list(as_list(cpus)) == cpus


def test_a_server_with_two_sockets_and_smt(tmp_path):
    Machine(tmp_path, server(packages=2, cores=16))
    machine = topology.read(str(tmp_path))
    assert machine.online == machine.allowed == tuple(range(64))
    by_id = {cpu.id: cpu for cpu in machine.cpus}
    assert by_id[33].siblings == by_id[1].siblings == (1, 33)
    assert (by_id[0].package, by_id[0].node, by_id[0].core) == (0, 0, 0)
    assert (by_id[63].package, by_id[63].node, by_id[63].core) == (1, 1, 31)
    assert by_id[0].kind is None and by_id[0].capacity is None


def test_a_hybrid_laptop(tmp_path):
    Machine(tmp_path, laptop(performance=6, efficient=8))
    kinds = [cpu.kind for cpu in topology.read(str(tmp_path)).cpus]
    assert kinds == ["performance"] * 12 + ["efficient"] * 8


def test_big_and_little_cores_differ_in_capacity(tmp_path):
    cores = [Core([n], capacity=446 if n < 4 else 1024) for n in range(8)]
    Machine(tmp_path, cores)
    capacities = [cpu.capacity for cpu in topology.read(str(tmp_path)).cpus]
    assert capacities == [446] * 4 + [1024] * 4


def test_smt_switched_off(tmp_path):
    Machine(tmp_path, server(packages=1, cores=4), offline=[4, 5, 6, 7])
    machine = topology.read(str(tmp_path))
    assert [cpu.siblings for cpu in machine.cpus] == [(0,), (1,), (2,), (3,)]


def test_offline_cpus_are_not_there(tmp_path):
    Machine(tmp_path, server(packages=1, cores=4), offline=[2, 6, 7])
    machine = topology.read(str(tmp_path))
    assert machine.online == machine.allowed == (0, 1, 3, 4, 5)
    assert [cpu.siblings for cpu in machine.cpus] == [(0, 4), (1, 5), (3,), (0, 4), (1, 5)]


def test_without_a_list_of_online_cpus_the_directories_count(tmp_path):
    machine = Machine(tmp_path, server(packages=1, cores=4, threads=1), offline=[2])
    (tmp_path / "sys/devices/system/cpu/online").unlink()
    machine.write("sys/devices/system/cpu/cpufreq/boost", "1")
    assert topology.read(str(tmp_path)).online == (0, 1, 3)


def test_isolated_cpus(tmp_path):
    machine = Machine(tmp_path, server(packages=1, cores=4, threads=1))
    machine.write("sys/devices/system/cpu/isolated", "2-3")
    assert topology.read(str(tmp_path)).isolated == (2, 3)


@pytest.mark.parametrize("rest", ["", "garbage"])
def test_what_is_not_told_is_unknown(tmp_path, rest):
    # GIVEN a sandbox in which there is little but the number of CPUs, or nonsense
    machine = Machine(tmp_path, [])
    machine.write("sys/devices/system/cpu/online", "0-1")
    (tmp_path / "proc/self/status").unlink()
    if rest:
        for name in ("cpu_capacity", "topology/thread_siblings_list", "topology/core_id"):
            machine.write(f"sys/devices/system/cpu/cpu0/{name}", rest)
        machine.write("proc/self/status", "Cpus_allowed_list:\tgarbage")
        machine.write("proc/self/cgroup", "garbage")
    found = topology.read(str(tmp_path))
    assert found.cpus == (topology.Cpu(id=0), topology.Cpu(id=1))
    assert found.affinity is None and found.cpuset is None and found.allowed == (0, 1)


def test_what_the_kernel_does_not_know_is_not_a_number(tmp_path):
    machine = Machine(tmp_path, [Core([0])])
    machine.write("sys/devices/system/cpu/cpu0/topology/physical_package_id", NOT_TOLD)
    assert topology.read(str(tmp_path)).cpus[0].package is None


def test_an_empty_tree_has_no_cpus(tmp_path):
    assert topology.read(str(tmp_path)) == topology.Topology(cpus=())


def test_the_affinity_limits(tmp_path):
    Machine(tmp_path, server(packages=1, cores=4, threads=1)).limit([1, 2])
    machine = topology.read(str(tmp_path))
    assert machine.affinity == machine.allowed == (1, 2) and machine.online == (0, 1, 2, 3)


V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev 0 0"
V1 = "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0"
HYBRID = f"cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n{V1}"


@pytest.mark.parametrize(
    ("group", "mounts", "files"),
    [
        pytest.param("0::/", V2, {"cpuset.cpus.effective": [0, 1, 2]}, id="container with v2"),
        pytest.param(
            "0::/a/b",
            V2,
            {"cpuset.cpus.effective": [0, 1, 2, 3], "a__cpuset.cpus.effective": [0, 1, 2]},
            id="v2, the nearest that says",
        ),
        pytest.param(
            "3:cpuset:/docker/x\n0::/", HYBRID, {"cpuset__cpuset.cpus": [0, 1, 2]}, id="v1"
        ),
        pytest.param(
            "3:cpu,cpuset:/x",
            V1,
            {"cpuset__x__cpuset.effective_cpus": [0, 1, 2], "cpuset__x__cpuset.cpus": [0, 1, 3]},
            id="v1, what is in force",
        ),
    ],
)
def test_a_container_with_three_cpus(tmp_path, group, mounts, files):
    machine = Machine(tmp_path, server(packages=1, cores=8, threads=1))
    machine.group(group, mounts, **files)
    found = topology.read(str(tmp_path))
    assert found.cpuset == found.allowed == (0, 1, 2)


@pytest.mark.parametrize(
    ("group", "mounts"),
    [
        pytest.param("0::/../outside", V2, id="a group outside the namespace"),
        pytest.param("0::/", HYBRID.partition("\n")[0], id="no cpuset controller"),
        pytest.param("0::/", "", id="no mount"),
        pytest.param("", V2, id="no group"),
    ],
)
def test_a_cpuset_that_is_not_told(tmp_path, group, mounts):
    machine = Machine(tmp_path, [Core([0])])
    machine.group(group, mounts)
    if group.startswith("0::/.."):
        machine.write("sys/fs/cgroup/cpuset.cpus.effective", "7")
    assert topology.read(str(tmp_path)).cpuset is None


def test_a_device_knows_its_node(tmp_path):
    machine = Machine(tmp_path, server(packages=2, cores=2, threads=1))
    machine.gpu("0000:c1:00.0", node=1, cpus=[2, 3])
    found = topology.read_pci("0000:c1:00.0", str(tmp_path))
    assert found == topology.PciDevice(
        address="0000:c1:00.0", node=1, cpus=(2, 3), vendor=0x10DE, device_class=0x030200
    )


def test_a_device_of_a_virtual_machine_has_no_node(tmp_path):
    machine = Machine(tmp_path, [Core([0]), Core([1])])
    machine.gpu("0000:00:04.0", node=NOT_TOLD)
    found = topology.read_pci("0000:00:04.0", str(tmp_path))
    assert found and found.node is None and found.cpus == (0, 1)


@pytest.mark.parametrize("address", ["0000:00:05.0", "..", "", "0000:00:04.0/..", "0"])
def test_a_device_that_is_not_there(tmp_path, address):
    Machine(tmp_path, [Core([0])]).gpu("0000:00:04.0", node=0)
    assert topology.read_pci(address, str(tmp_path)) is None


def test_all_devices_in_order(tmp_path):
    machine = Machine(tmp_path, [Core([0])])
    assert topology.read_all_pci(str(tmp_path)) == ()
    machine.gpu("0000:c1:00.0", node=0)
    machine.gpu("0000:1a:00.0", node=0)
    addresses = [device.address for device in topology.read_all_pci(str(tmp_path))]
    assert addresses == ["0000:1a:00.0", "0000:c1:00.0"]


@pytest.mark.skipif(not Path("/sys/devices/system/cpu/online").exists(), reason="no sysfs here")
def test_this_machine():
    # GIVEN the machine that runs the tests, THEN what the kernel lets us do is what was read
    machine = topology.read(process=str(os.getpid()))
    assert machine.allowed == tuple(sorted(os.sched_getaffinity(0)))
    for device in topology.read_all_pci():
        assert device.node is None or device.node >= 0
