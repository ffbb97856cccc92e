# SPDX-License-Identifier: Apache-2.0
"""Machines as trees of files: what Linux would show of them below / ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

NOT_TOLD = -1


class Core(NamedTuple):
    """One physical core."""

    cpus: Sequence[int]
    package: int = 0
    node: int | None = 0
    kind: str | None = None  # "cpu_core" or "cpu_atom", as on hybrid Intel machines
    capacity: int | None = None


def as_list(cpus: Iterable[int]) -> str:
    """The kernel's way to write it: '0-3,8'."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def server(packages: int, cores: int, threads: int = 2, nodes_a_package: int = 1) -> list[Core]:
    """A server: all first threads are numbered first, package after package."""
    total = packages * cores
    return [
        Core(
            [number + total * thread for thread in range(threads)],
            package=number // cores,
            node=number * nodes_a_package // cores,
        )
        for number in range(total)
    ]


def laptop(performance: int, efficient: int) -> list[Core]:
    """A hybrid one: fast cores with two neighbouring threads each, then slow ones with one."""
    first = 2 * performance
    return [
        # The favoured one clocks a little higher, and its capacity says so.
        Core([2 * n, 2 * n + 1], kind="cpu_core", capacity=1024 if n == 1 else 920)
        for n in range(performance)
    ] + [Core([first + n], kind="cpu_atom", capacity=631) for n in range(efficient)]


class Machine:
    """Writes one, below `root`."""

    def __init__(self, root: Path, cores: Sequence[Core], offline: Iterable[int] = ()) -> None:
        self.root = root
        gone = set(offline)
        self.online = sorted({cpu for core in cores for cpu in core.cpus} - gone)
        self.write("sys/devices/system/cpu/online", as_list(self.online))
        self.write("sys/devices/system/cpu/isolated", "")
        for core in cores:
            self._core(core, [cpu for cpu in core.cpus if cpu not in gone])
        for core in cores:
            for cpu in gone.intersection(core.cpus):  # it has a directory, and no topology in it
                self.write(f"sys/devices/system/cpu/cpu{cpu}/online", "0")
        self._lists(cores, gone)
        self.limit(self.online)

    def _core(self, core: Core, online: list[int]) -> None:
        for cpu in online:
            place = f"sys/devices/system/cpu/cpu{cpu}"
            self.write(f"{place}/topology/thread_siblings_list", as_list(online))
            self.write(f"{place}/topology/physical_package_id", core.package)
            self.write(f"{place}/topology/core_id", core.cpus[0])
            if core.capacity is not None:
                self.write(f"{place}/cpu_capacity", core.capacity)

    def _lists(self, cores: Sequence[Core], gone: set[int]) -> None:
        groups: dict[str, set[int]] = {}
        for core in cores:
            for place in (
                None if core.node is None else f"sys/devices/system/node/node{core.node}/cpulist",
                core.kind and f"sys/devices/{core.kind}/cpus",
            ):
                if place:
                    groups.setdefault(place, set()).update(set(core.cpus) - gone)
        for place, cpus in groups.items():
            self.write(place, as_list(cpus))

    def write(self, path: str, value: object) -> None:
        """One file, with the line end that the kernel writes."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{value}\n")

    def limit(self, affinity: Iterable[int]) -> None:
        """The process's own affinity."""
        text = f"Name:\tpython\nCpus_allowed:\tff\nCpus_allowed_list:\t{as_list(affinity)}"
        self.write("proc/self/status", text)

    def group(self, cgroup: str, mounts: str, **files: Iterable[int]) -> None:
        """Its cgroup; `files` by the path below /sys/fs/cgroup, with '__' for '/'."""
        self.write("proc/self/cgroup", cgroup)
        self.write("proc/self/mounts", mounts)
        for name, cpus in files.items():
            self.write("sys/fs/cgroup/" + name.replace("__", "/"), as_list(cpus))

    def gpu(self, address: str, node: int, cpus: Iterable[int] | None = None) -> str:
        """A GPU; near all CPUs where the node is not told, as Linux says then."""
        near = self.online if cpus is None else cpus
        place = f"sys/bus/pci/devices/{address}"
        self.write(f"{place}/numa_node", node)
        self.write(f"{place}/local_cpulist", as_list(near))
        self.write(f"{place}/vendor", "0x10de")
        self.write(f"{place}/class", "0x030200")
        return f"pci:{address}"
