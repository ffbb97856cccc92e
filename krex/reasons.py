# SPDX-License-Identifier: Apache-2.0
"""Why a region was not exclusive: the reasons of region records. Imports next to nothing."""

from typing import Final, NamedTuple


class Reason(NamedTuple):
    """What a reason in a record means, and what its reader can do."""

    meaning: str
    remedy: str


_AGAIN = "Run it again; if it comes back, stop the controller and look at `krex serve`."

# All there are. docs/records.md shows this table; a test keeps the three (code, table, page) alike.
REASONS: Final = {
    "exclusive_none": Reason(
        "The command was run with `--exclusive none`.", "Leave that option out."
    ),
    "max_wait_exceeded": Reason(
        "The device did not become free within `--max-wait`.",
        "Raise `--max-wait`; `krex status` shows who holds the device and who queues.",
    ),
    "left_while_waiting": Reason(
        "The region ended before it was granted: interrupted, or its thread ended.",
        "Nothing, if you interrupted it.",
    ),
    "process_died": Reason(
        "The process ended inside the region.",
        "Leave the region before the process ends; see why it died.",
    ),
    "max_hold_exceeded": Reason(
        "The region held the device for `--max-hold` seconds; it then went on without.",
        "Mark less, or raise `--max-hold`.",
    ),
    "yielded_idle": Reason(
        "The region, which nobody wrote into the program, stood idle for 0.2 s while others "
        "waited, so it gave the device up; and what was timed in it is not known to lie in its "
        "holds: a pair of events reached beyond one, or there was none, as with a clock of the "
        "host.",
        "Do what the host does elsewhere; or mark the timed part with `krex.region`, which never "
        "yields.",
    ),
    "krex_run_died": Reason(
        "The command's `krex run` ended before it: nobody was left to say when it did.",
        "Do not kill `krex run`; it passes signals on to the command.",
    ),
    "heavy_call_running": Reason(
        "A sibling was inside an allocation, or the making of a context or queue, for over 2 s.",
        "Run it again; siblings that allocate less often are better company.",
    ),
    "capture_open": Reason(
        "A sibling had a stream capture open for over 2 s; to wait for its device meanwhile would "
        "have spoiled the capture.",
        "Run it again; compile and load what a capture needs before it begins.",
    ),
    "submission_in_flight": Reason(
        "A sibling's driver call that submits work did not return within 5 s: its launch queue is "
        "full, or code has to be loaded, behind work that does not end. Or its thread jumped out "
        "of the call.",
        "Run it beside other siblings, or when that one has ended.",
    ),
    "sibling_not_drained": Reason(
        "Work of a sibling, or of one that died, did not complete within 5 s: a long kernel, or "
        "one that waits for something that its own program has yet to do, such as an event "
        "callback that waits at the gate.",
        "Run it beside other siblings, or when that one has ended.",
    ),
    "freeze_incomplete": Reason(
        "A sibling command did not stand still within 0.1 s of being frozen.",
        "Look for a sibling process that hangs in the kernel (state D).",
    ),
    "sibling_ran": Reason(
        "On a CPU device, where the cores are the device: a sibling that was not frozen, since it "
        "can't be or the holder depends on it (a pipe, a file lock), used more than 1 % of a core "
        "meanwhile.",
        "Start it by `krex run`, on a machine with a writable cgroup v2; take locks, and write to "
        "pipes, outside the region.",
    ),
    "sibling_not_frozen": Reason(
        "On a CPU device: a sibling that could not be frozen ended meanwhile, or the kernel does "
        "not count, so nobody knows how much it computed.",
        "Start that command by `krex run`, on a machine with a writable cgroup v2.",
    ),
    "sibling_thawed": Reason(
        "A sibling command was let run on while the region lasted: by `krex thaw`, or by its `krex "
        "run` because the controller had stood still.",
        "Do not thaw by hand what `krex status` shows as frozen by a hold.",
    ),
    "unregistered_process": Reason(
        "A process of a command uses the device without being registered: KREX's library is not "
        "in it (`LD_PRELOAD` was cleared, as by `env -i` and `sudo`; a setuid or a static program) "
        "or is passed by; the board is full; or its controller died and another one serves the "
        "device now.",
        "Keep the environment that the command was given; run fewer processes on the device; wait "
        "for the end of those that were running when the controller died, or start them again.",
    ),
    "foreign_process": Reason(
        "A process that is of no command has a context on the device, by the device's own word; "
        "nobody knows what it does there. `foreign_processes` names it.",
        "Start it by `krex run`, or end it.",
    ),
    "bypass": Reason(
        "A registered process reaches the device past KREX's hooks too. On a simulated device: it "
        "had work there, or submitted some, while the region had the device. On a real one: it has "
        "loaded the driver's library twice.",
        "Look for `dlmopen` and `RTLD_DEEPBIND` in what it loads, or run that program alone.",
    ),
    "unlisted_submission": Reason(
        "A process on the device asked for a function that can submit work and that KREX does not "
        "intercept.",
        "Leave out the extension that needs it, or run that program alone.",
    ),
    "device_lost": Reason(
        "The process of the simulated devices ended: nothing that the command has there works any "
        "more.",
        "Run it again: the next command starts another one. If it comes back, `krex run -v` may "
        "say why.",
    ),
    "protect_too_low": Reason(
        "On a CPU device, where the cores are the device: the command was started with `--protect` "
        "gate or pin, which let siblings run on them.",
        "Leave that option out.",
    ),
    "context_on_other_device": Reason(
        "The region's process has a context on a second device as well.",
        "Use one device a command.",
    ),
    "affinity_widened": Reason(
        "A thread of the region's own command, or of a sibling that was not frozen, may run on the "
        "CPUs reserved for the region: it widened the affinity that it was started with.",
        "Leave the affinity as it is, or set it within `cpus.slice`; look for `taskset`, `numactl` "
        "and thread binding (`OMP_PLACES`) inside the command.",
    ),
    "gate_found_closed": Reason("The gate was closed although nobody held the device.", _AGAIN),
    "no_membarrier": Reason(
        "The kernel refused the controller a membarrier, and a process on the device relies on it.",
        "`krex doctor` says why; run controller and commands under the same seccomp profile.",
    ),
    "lease_lost": Reason(
        "The controller stood still for more than a second, and waiting processes reopened the "
        "gate.",
        "Look for a machine without a free core, or one that was suspended.",
    ),
    "began_without_grant": Reason(
        "The controller stood still for more than a second, and the region began without it.",
        "Look for a machine without a free core, or one that was suspended.",
    ),
    "controller_lost": Reason(
        "The controller ended while the region was open; `krex run` wrote the record.",
        "Run it again; if you did not end the controller, `krex serve` shows why it ends.",
    ),
    "open_at_end": Reason(
        "The region was still open when the command ended, in a process that lives on.",
        "Have the command wait for its workers, or end them.",
    ),
    "controller_error": Reason(
        "A fault in KREX itself; what failed follows after a colon.", "Report it, please."
    ),
}
