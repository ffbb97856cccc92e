# SPDX-License-Identifier: Apache-2.0
"""Which CPUs belong to which device, and which of them are kept free for a region's holder.

Pure: the same machine and the same devices give the same plan, and nothing is read or changed here.
docs/slices.md tells users what it does.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from krex.protect.topology import Cpu, Cpus, PciDevice, Topology

# Of a slice's whole cores, so many stay with the commands for each one that is reserved: so a
# device needs four, or nothing could be reserved without starving what runs outside regions.
CORES_PER_RESERVED: Final = 4
# Favoured cores of one design differ by a few percent; another design differs by much more.
SAME_CLASS: Final = 0.95
_KINDS = ("low_power", "efficient", "performance")

REFUSALS: Final = {
    "cores_are_the_device": "The device is the CPU itself: its kernels need all the cores.",
    "no_topology": "The kernel does not say which CPUs there are.",
    "too_few_cores": "Fewer than 4 physical cores for the device: nothing could be reserved "
    "without starving the commands.",
    "split_cores": "Too few cores whose SMT siblings are all allowed: others may run on the rest.",
    "mixed_classes": "Too few cores of the fastest class, and classes are not mixed.",
    "not_planned": "The device was not known when the CPUs were divided.",
}
NOTES: Final = {
    "locality_unknown": "The machine does not say which CPUs are near the device.",
    "not_near": "None of the CPUs near the device can be used.",
    "fewer_reserved": "Fewer cores are reserved than were asked for.",
}
LEFT_OUT: Final = {
    "not_allowed": "Outside the affinity or the cpuset.",
    "isolated": "Isolated at boot: no load balancer would spread commands over them.",
    "slower_class": "Slower than the fastest cores.",
    "not_near": "Near no device.",
    "refused": "Of a device that got no slice.",
}


class Site(Struct, frozen=True):
    """A device, and the CPUs near it; None: unknown."""

    device: str
    near: Cpus | None = None


class Slice(Struct, frozen=True, kw_only=True):
    """The CPUs of one device."""

    device: str
    cpus: Cpus
    reserved: Cpus  # of these, whole cores: for the holder's submitting threads
    measuring: Cpus  # of the reserved, one CPU a core
    notes: tuple[str, ...] = ()

    @property
    def commands(self) -> Cpus:
        """Where commands run, from exec on."""
        return tuple(sorted(set(self.cpus) - set(self.reserved)))

    def room_for(self, threads: int) -> Cpus | None:
        """Where to pin so many threads: one a core while there are cores, the siblings idle.

        None: more threads than reserved CPUs. They would push each other off, where the commands'
        CPUs, with the siblings frozen, are free for them.
        """
        if threads <= len(self.measuring):
            return self.measuring
        return self.reserved if threads <= len(self.reserved) else None


class Refusal(Struct, frozen=True):
    """Why a device has no slice: a code from REFUSALS, and the figures."""

    device: str
    reason: str
    detail: str


class Left(Struct, frozen=True):
    """CPUs in no slice, and why: a code from LEFT_OUT."""

    reason: str
    cpus: Cpus


class Plan(Struct, frozen=True):
    """Every device has a slice or a refusal; every CPU is in one slice or one of `left`."""

    slices: tuple[Slice, ...]
    refusals: tuple[Refusal, ...]
    left: tuple[Left, ...]

    def find(self, device: str) -> Slice | Refusal:
        """What the plan has for a device."""
        for part in self.slices:
            if part.device == device:
                return part
        for refusal in self.refusals:
            if refusal.device == device:
                return refusal
        return Refusal(device, "not_planned", REFUSALS["not_planned"])

    @property
    def reserved(self) -> Cpus:
        """The reserved CPUs of all devices."""
        return tuple(sorted(cpu for part in self.slices for cpu in part.reserved))


def site(device: str, machine: Topology, pci: PciDevice | None) -> Site:
    """What the facts say of where a device is."""
    if pci is None:
        return Site(device)
    near = pci.cpus
    if near is None and pci.node is not None:
        near = tuple(cpu.id for cpu in machine.cpus if cpu.node == pci.node)
    everywhere = near is not None and set(near) >= set(machine.online)
    # Near all CPUs: true on a machine with one node, else what is written for an unknown node.
    return Site(device, None if pci.node is None and everywhere else near)


def plan(machine: Topology, sites: Sequence[Site], reserved: int = 1) -> Plan:
    """Divide the CPUs that are allowed between the devices; reserve so many cores in each slice.

    Raises ValueError if a device is named twice, or nothing is to be reserved.
    """
    if reserved < 1:
        raise ValueError(f"at least one core must be reserved, not {reserved}")
    if len({s.device for s in sites}) < len(sites):
        raise ValueError(f"a device is named twice: {', '.join(s.device for s in sites)}")
    pool = _pool(machine)
    slices: list[Slice] = []
    refusals = [r for s in sites if (r := _hopeless(s, machine))]
    hopeless = {r.device for r in refusals}
    # On a CPU device every core is some device's, though nobody's slice.
    refused = set(machine.online if any(s.device.startswith("cpu:") for s in sites) else ())
    for home in _homes([s for s in sites if s.device not in hopeless], pool.cores):
        if refusal := _refusal(home, pool):
            refusals += [Refusal(s.device, *refusal) for s in home.sites]
            refused.update(_cpus(home.cores))
        else:
            slices += _divide(home, reserved)
    given = {cpu for part in slices for cpu in part.cpus}
    return Plan(
        tuple(sorted(slices, key=lambda s: s.device)),
        tuple(sorted(refusals, key=lambda r: r.device)),
        tuple(_left(machine, pool, given, refused)),
    )


# Cores.


class _Core(NamedTuple):
    """A physical core: those of its CPUs that can be used."""

    unit: tuple[int, int]  # package and node: no slice crosses the finer of them without need
    cpus: Cpus
    whole: bool
    rank: int  # of its kind
    capacity: int


class _Pool(NamedTuple):
    cores: list[_Core]  # of the fastest class, neighbours together
    slower: list[_Core]


def _pool(machine: Topology) -> _Pool:
    usable = set(machine.allowed) - set(machine.isolated)
    cores = [c for cpus in _siblings(machine) if (c := _core(cpus, usable)).cpus]
    cores.sort(key=lambda core: (core.unit, core.cpus))
    rank = max((core.rank for core in cores), default=0)
    fastest = max((core.capacity for core in cores if core.rank == rank), default=0)
    # Of one kind the capacities say how good a sample of it a core is, no more.
    least = 0 if rank else SAME_CLASS * fastest
    fast = {core for core in cores if core.rank == rank and core.capacity >= least}
    return _Pool([c for c in cores if c in fast], [c for c in cores if c not in fast])


def _siblings(machine: Topology) -> list[list[Cpu]]:
    """The CPUs of each core; one that does not know its siblings is a core by itself."""
    left = {cpu.id: cpu for cpu in machine.cpus}
    return [
        [left.pop(i) for i in {cpu.id, *(cpu.siblings or ())} & left.keys()]
        for cpu in machine.cpus
        if cpu.id in left
    ]


def _core(cpus: list[Cpu], usable: set[int]) -> _Core:
    mine = tuple(sorted(cpu.id for cpu in cpus if cpu.id in usable))
    first = cpus[0]
    return _Core(
        unit=(_or_all(first.package), _or_all(first.node)),
        cpus=mine,
        whole=len(mine) == len(cpus),
        rank=min(_KINDS.index(cpu.kind) + 1 if cpu.kind else 0 for cpu in cpus),
        capacity=min(cpu.capacity or 0 for cpu in cpus),
    )


def _or_all(number: int | None) -> int:
    return -1 if number is None else number


# Homes: the cores for which the same devices compete.


class _Home(NamedTuple):
    cores: list[_Core]
    sites: list[Site]
    notes: dict[str, str]  # by device

    @property
    def whole(self) -> list[_Core]:
        return [core for core in self.cores if core.whole]

    def roominess(self) -> float:
        return len(self.whole) / (len(self.sites) + 1)


def _homes(sites: list[Site], cores: list[_Core]) -> list[_Home]:
    """Devices that are near the same cores share them; the others take what is near nobody."""
    homes: list[_Home] = []
    strangers: list[Site] = []
    left = list(cores)
    # The narrowest first: what is near a device among others yields to those near it alone.
    for s in sorted(sites, key=lambda s: (len(_near(s)), _near(s), s.device)):
        near = {core for core in cores if set(core.cpus) & set(_near(s))}
        mine = [core for core in left if core in near]
        if not near:
            strangers.append(s)
        elif mine:
            homes.append(_Home(mine, [s], {}))
            left = [core for core in left if core not in near]
        else:  # it shares with those that are as near
            _roomiest([h for h in homes if near & set(h.cores)]).sites.append(s)
    return _house(strangers, homes, left)


def _house(strangers: list[Site], homes: list[_Home], left: list[_Core]) -> list[_Home]:
    need = CORES_PER_RESERVED * len(strangers)
    notes = {s.device: "not_near" if s.near else "locality_unknown" for s in strangers}
    if strangers and (not homes or sum(core.whole for core in left) >= need):
        return [*homes, _Home(left, strangers, notes)]
    for s in strangers:
        home = _roomiest(homes)
        home.sites.append(s)
        home.notes[s.device] = notes[s.device]
    return homes


def _roomiest(homes: list[_Home]) -> _Home:
    """The first of those with the most cores a device, one more counted."""
    return max(homes, key=_Home.roominess)


def _near(s: Site) -> Cpus:
    return s.near or ()


# Refusals.


def _hopeless(s: Site, machine: Topology) -> Refusal | None:
    reason = None
    if s.device.startswith("cpu:"):
        reason = "cores_are_the_device"
    elif not machine.cpus:
        reason = "no_topology"
    return Refusal(s.device, reason, REFUSALS[reason]) if reason else None


def _refusal(home: _Home, pool: _Pool) -> tuple[str, str] | None:
    """The reason and the figures."""
    need = CORES_PER_RESERVED * len(home.sites)
    if len(home.whole) >= need:
        return None
    units = {core.unit for core in home.cores} or {core.unit for core in pool.slower}
    slower = [core for core in pool.slower if core.unit in units]
    reason = "too_few_cores"
    if len(home.cores) >= need:
        reason = "split_cores"
    elif len(home.cores) + len(slower) >= need:
        reason = "mixed_classes"
    detail = (
        f"{len(home.whole)} whole cores for {len(home.sites)} device(s) that need "
        f"{CORES_PER_RESERVED} each"
    )
    if split := len(home.cores) - len(home.whole):
        detail += f"; {split} with siblings that are not allowed"
    if slower:
        detail += f"; {len(slower)} of a slower class"
    return reason, detail


# Slices.


def _divide(home: _Home, reserved: int) -> Iterable[Slice]:
    """Blocks of neighbours: their caches are shared with the fewest other devices."""
    sites = sorted(home.sites, key=lambda s: s.device)
    split = [core for core in home.cores if not core.whole]
    for index, s in enumerate(sites):
        whole = _block(home.whole, index, len(sites))
        count = min(reserved, len(whole) // CORES_PER_RESERVED)
        kept = _reserve(whole, count)
        notes = [home.notes[s.device]] if s.device in home.notes else []
        if count < reserved:
            notes.append("fewer_reserved")
        yield Slice(
            device=s.device,
            cpus=_cpus([*whole, *_block(split, index, len(sites))]),
            reserved=_cpus(kept),
            measuring=tuple(sorted(core.cpus[0] for core in kept)),
            notes=tuple(notes),
        )


def _block(cores: list[_Core], index: int, blocks: int) -> list[_Core]:
    """One of so many parts that differ by a core at most."""
    return cores[len(cores) * index // blocks : len(cores) * (index + 1) // blocks]


def _reserve(cores: list[_Core], count: int) -> list[_Core]:
    """The last ones, of one unit if possible; never CPU 0, where most interrupts arrive.

    At least three in four stay with the commands, so there always is another.
    """
    able = [core for core in cores if 0 not in core.cpus]
    size = {unit: sum(core.unit == unit for core in able) for unit in {c.unit for c in able}}
    able.sort(key=lambda core: (-size[core.unit], core.unit, [-cpu for cpu in core.cpus]))
    return able[:count]


def _cpus(cores: Iterable[_Core]) -> Cpus:
    return tuple(sorted(cpu for core in cores for cpu in core.cpus))


def _left(machine: Topology, pool: _Pool, given: set[int], refused: set[int]) -> Iterable[Left]:
    """Everything online that nobody was given, by reason."""
    slower = {cpu for core in pool.slower for cpu in core.cpus}
    allowed = set(machine.allowed)
    found: dict[str, list[int]] = {}
    for cpu in machine.online:
        if cpu in given:
            continue
        if cpu not in allowed:
            reason = "not_allowed"
        elif cpu in machine.isolated:
            reason = "isolated"
        elif cpu in slower:
            reason = "slower_class"
        else:
            reason = "refused" if cpu in refused else "not_near"
        found.setdefault(reason, []).append(cpu)
    for reason in LEFT_OUT:
        if reason in found:
            yield Left(reason, tuple(found[reason]))
