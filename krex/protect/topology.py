# SPDX-License-Identifier: Apache-2.0
"""What the kernel says of this machine's CPUs, and of where its devices sit. Facts, no decisions.

All of it is read below a root directory, so that any machine can be described by a tree of files.
Whatever a kernel, a sandbox or a virtual machine does not tell is None: unknown, never guessed.
"""

import os
import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

Cpus = tuple[int, ...]  # ascending
Kind = Literal["performance", "efficient", "low_power"]

_CPUS = "sys/devices/system/cpu"
_NODES = "sys/devices/system/node"
_PCI = "sys/bus/pci/devices"
# Where a hybrid Intel machine lists its cores of each kind.
_KINDS: dict[str, Kind] = {
    "cpu_core": "performance",
    "cpu_atom": "efficient",
    "cpu_lowpower": "low_power",
}
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
# What a list may reach at most: a kernel has far fewer, and garbage must not fill the memory.
_MOST_CPUS = 1 << 16


class Cpu(Struct, frozen=True, kw_only=True):
    """One online CPU: what the kernel schedules a thread on."""

    id: int
    siblings: Cpus | None = None  # the threads of its core, itself included
    package: int | None = None
    core: int | None = None  # unique in a package at best; `siblings` says what shares a core
    node: int | None = None
    kind: Kind | None = None  # only hybrid machines have kinds
    capacity: int | None = None  # relative speed; the fastest have 1024


class Topology(Struct, frozen=True, kw_only=True):
    """The CPUs that are online, and which of them a process may have."""

    cpus: tuple[Cpu, ...]
    isolated: Cpus = ()  # no load balancer looks after these
    affinity: Cpus | None = None  # what the process is set to; it may widen that itself
    cpuset: Cpus | None = None  # what its cgroup allows; it can't get beyond

    @property
    def online(self) -> Cpus:
        """The numbers of all CPUs."""
        return tuple(cpu.id for cpu in self.cpus)

    @property
    def allowed(self) -> Cpus:
        """Those that the process may use as things stand."""
        limits = [set(limit) for limit in (self.affinity, self.cpuset) if limit is not None]
        return tuple(sorted(set(self.online).intersection(*limits)))


class PciDevice(Struct, frozen=True, kw_only=True):
    """Where a PCI device sits."""

    address: str
    node: int | None = None  # None: not told, as in most virtual machines
    cpus: Cpus | None = None  # those near it; all of them, where the node is unknown
    vendor: int | None = None
    device_class: int | None = None  # 24 bits; display controllers begin with 0x03


def read(root: str = "/", process: str = "self") -> Topology:
    """Describe the machine and the limits of one process. No CPUs: the kernel says nothing."""
    nodes = {cpu: node for node, cpus in _nodes(root) for cpu in cpus}
    kinds = {cpu: kind for kind, cpus in _kinds(root) for cpu in cpus}
    return Topology(
        cpus=tuple(_cpu(root, cpu, nodes.get(cpu), kinds.get(cpu)) for cpu in _online(root)),
        isolated=_list(root, _CPUS, "isolated") or (),
        affinity=_affinity(root, process),
        cpuset=_cpuset(root, process),
    )


def read_pci(address: str, root: str = "/") -> PciDevice | None:
    """Describe the device at 'domain:bus:device.function'; None if there is none."""
    if not _ADDRESS.fullmatch(address) or not os.path.isdir(os.path.join(root, _PCI, address)):
        return None
    node = _number(root, _PCI, address, "numa_node")
    return PciDevice(
        address=address,
        node=None if node is None or node < 0 else node,
        cpus=_list(root, _PCI, address, "local_cpulist"),
        vendor=_number(root, _PCI, address, "vendor"),
        device_class=_number(root, _PCI, address, "class"),
    )


def read_all_pci(root: str = "/") -> tuple[PciDevice, ...]:
    """Describe all there are, by address."""
    found = (read_pci(name, root) for name in sorted(_entries(root, _PCI)))
    return tuple(device for device in found if device)


def parse_list(text: str) -> Cpus | None:
    """Read the kernel's '0-3,8': no CPUs if it is empty, None if it is no such list."""
    cpus: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        ends = _RANGE.fullmatch(part)
        if not ends:
            return None
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if not first <= last < _MOST_CPUS:
            return None
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


def _cpu(root: str, cpu: int, node: int | None, kind: Kind | None) -> Cpu:
    place = f"cpu{cpu}"
    return Cpu(
        id=cpu,
        siblings=_list(root, _CPUS, place, "topology/thread_siblings_list") or None,
        package=_known(_number(root, _CPUS, place, "topology/physical_package_id")),
        core=_known(_number(root, _CPUS, place, "topology/core_id")),
        node=node,
        kind=kind,
        capacity=_number(root, _CPUS, place, "cpu_capacity"),
    )


def _known(number: int | None) -> int | None:
    """The kernel writes -1 for what it does not know."""
    return None if number == -1 else number


def _online(root: str) -> Cpus:
    online = _list(root, _CPUS, "online")
    if online is not None:
        return online
    # A kernel without hotplug, or a sandbox: then each directory is one, unless it says no.
    names = [re.fullmatch(r"cpu([0-9]+)", name) for name in _entries(root, _CPUS)]
    found = sorted(int(name[1]) for name in names if name)
    return tuple(cpu for cpu in found if _number(root, _CPUS, f"cpu{cpu}", "online") != 0)


def _nodes(root: str) -> Iterator[tuple[int, Cpus]]:
    for name in _entries(root, _NODES):
        if node := re.fullmatch(r"node([0-9]+)", name):
            yield int(node[1]), _list(root, _NODES, name, "cpulist") or ()


def _kinds(root: str) -> Iterator[tuple[Kind, Cpus]]:
    for name, kind in _KINDS.items():
        yield kind, _list(root, "sys/devices", name, "cpus") or ()


# The limits of a process.


def _affinity(root: str, process: str) -> Cpus | None:
    for line in (_text(root, "proc", process, "status") or "").splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return parse_list(value)
    return None


def _cpuset(root: str, process: str) -> Cpus | None:
    """The CPUs of its cgroup, from the nearest one above it that says."""
    old, new = _cpuset_paths(root, process)
    if old is not None:  # the controller is on v1, so v2 has nothing to say of it
        mount = _mount(root, "cgroup", "cpuset")
        return _upwards(root, mount, old, ("cpuset.effective_cpus", "cpuset.cpus"))
    mount = _mount(root, "cgroup2", None)
    return _upwards(root, mount, new, ("cpuset.cpus.effective",))


def _cpuset_paths(root: str, process: str) -> tuple[str | None, str | None]:
    """The process's group in v1's cpuset hierarchy, and in v2."""
    old = new = None
    for line in (_text(root, "proc", process, "cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "cpuset" in controllers.split(","):
            old = path
        elif number == "0" and not controllers:
            new = path
    return old, new


def _mount(root: str, kind: str, option: str | None) -> str | None:
    for line in (_text(root, "proc/self/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) < 4 or fields[2] != kind:
            continue
        if option is None or option in fields[3].split(","):
            return fields[1].lstrip("/")
    return None


def _upwards(root: str, mount: str | None, path: str | None, names: tuple[str, ...]) -> Cpus | None:
    """In a container the path may be the host's, and the mount its own group: then its top says."""
    if mount is None or path is None or path.startswith("/.."):
        return None
    parts = [part for part in path.split("/") if part]
    for depth in range(len(parts), -1, -1):
        for name in names:
            if cpus := _list(root, mount, *parts[:depth], name):
                return cpus
    return None


# Files.


def _text(root: str, *path: str) -> str | None:
    try:
        with open(os.path.join(root, *path), encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _entries(root: str, *path: str) -> list[str]:
    try:
        return os.listdir(os.path.join(root, *path))
    except OSError:
        return []


def _list(root: str, *path: str) -> Cpus | None:
    text = _text(root, *path)
    return None if text is None else parse_list(text)


def _number(root: str, *path: str) -> int | None:
    try:
        return int(_text(root, *path) or "", 0)
    except ValueError:
        return None
