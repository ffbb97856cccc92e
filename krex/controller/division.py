# SPDX-License-Identifier: Apache-2.0
"""Dividing the machine's CPUs between devices, and each device's between reserved and commands.

Not imported before a device is asked for that can have CPUs: the first `krex run` waits for us.
"""

import contextlib
import os
from collections.abc import Sequence

from krex.controller.cores import Allotment
from krex.protect import slices, topology
from krex.protect.slices import Plan, Refusal, Site, Slice
from krex.record import Cores

# DEVICE=SLICE/RESERVED: a plan for machines that are too small for one. Only for tests.
_TEST_PLAN = "KREX_TEST_PLAN"
_NVIDIA, _AMD = 0x10DE, 0x1002
_DISPLAY, _ACCELERATOR = 0x03, 0x1200


def allot(part: Slice | Refusal, theirs: set[int] | None) -> Allotment:
    """Of a command that `krex run` starts; `theirs` is its affinity, None if that is not known.

    Who was started by `taskset` stays inside what that allows.
    """
    if isinstance(part, Refusal):
        return Allotment(record=Cores(no_slice=part.reason))
    theirs = set(part.cpus) if theirs is None else theirs
    cpus = tuple(cpu for cpu in part.commands if cpu in theirs)
    if not cpus:
        return Allotment(record=Cores(no_slice="outside_affinity"))
    may_pin = theirs.issuperset(part.reserved)
    notes = [*part.notes] if may_pin else [*part.notes, "reserved_not_allowed"]
    return Allotment(
        cpus=cpus,
        part=part if may_pin else None,
        reserved=part.reserved,
        record=Cores(slice=list(cpus), reserved=list(part.reserved), notes=notes),
    )


class Division:
    """The machine's CPUs, divided when the first device that can have some is asked for."""

    def __init__(self) -> None:
        self._test = _test_plan(os.environ.get(_TEST_PLAN, ""))
        self._machine: topology.Topology | None = None
        self._plan = Plan((), (), ())

    def part(self, device: str, *, in_use: bool, beside: Sequence[str] = ()) -> Slice | Refusal:
        """What a device gets. Made anew for one that is not planned, unless a slice is in use.

        `beside`: devices that are to have their part as well, when their commands come.
        """
        found = self._plan.find(device)
        if isinstance(found, Refusal) and found.reason == "not_planned" and not in_use:
            self._divide([device, *(key for key in beside if key != device)])
            found = self._plan.find(device)
        return found

    def _divide(self, devices: list[str]) -> None:
        if self._machine is None:
            self._machine = topology.read()  # before we leave the reserved CPUs ourselves
        self._plan = self._test or slices.plan(self._machine, _sites(devices, self._machine))
        ours = set(self._machine.allowed) - set(self._plan.reserved)
        with contextlib.suppress(OSError):  # a seccomp profile forbids it
            os.sched_setaffinity(0, ours)


def _sites(devices: list[str], machine: topology.Topology) -> list[Site]:
    """The devices, and the GPUs: they are to have their CPUs when their commands come."""
    gpus = {f"pci:{pci.address}": pci for pci in topology.read_all_pci() if _is_gpu(pci)}
    asked = {key: topology.read_pci(key.removeprefix("pci:")) for key in devices}
    return [slices.site(key, machine, pci) for key, pci in (asked | gpus).items()]


def _is_gpu(pci: topology.PciDevice) -> bool:
    kind = pci.device_class or 0
    is_one = kind >> 16 == _DISPLAY or kind >> 8 == _ACCELERATOR
    return is_one and pci.vendor in {_NVIDIA, _AMD}


def _test_plan(text: str) -> Plan | None:
    """As in sim:1=0-3/3."""
    device, _, parts = text.partition("=")
    cpus, reserved = (topology.parse_list(part) for part in (parts + "/").split("/")[:2])
    if not cpus or not reserved:
        return None
    part = Slice(device=device, cpus=cpus, reserved=reserved, measuring=reserved)
    return Plan((part,), (), ())
