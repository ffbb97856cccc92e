# SPDX-License-Identifier: Apache-2.0
"""Which CPUs a command has; krex/controller/division.py says which it gets."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from krex.record import Cores

if TYPE_CHECKING:
    from krex.protect.slices import Slice
    from krex.protect.topology import Cpus

NO_SLICE: Final = {
    "preloaded": "A process tree that only has the library preloaded: it runs already.",
    "outside_affinity": "The affinity with which `krex run` was started has none of the CPUs.",
}
NOTES: Final = {
    "reserved_not_allowed": "The affinity with which `krex run` was started has not all of the "
    "reserved CPUs: no thread is pinned.",
    "too_many_threads": "More threads than reserved CPUs submit: not all of them were pinned.",
}


class Allotment(Struct, frozen=True, kw_only=True):
    """The CPUs of one command."""

    cpus: "Cpus" = ()  # where it runs outside its regions; none: wherever it was started
    part: "Slice | None" = None  # where its submitting threads are pinned; None: nowhere
    reserved: "Cpus" = ()  # those of its device, whether or not it may use them
    record: Cores


def without(device: str) -> Allotment:
    """Of a command that has no CPUs of its own, whatever the machine is like."""
    is_cpu = device.startswith("cpu:")
    return Allotment(record=Cores(no_slice="cores_are_the_device" if is_cpu else "preloaded"))
