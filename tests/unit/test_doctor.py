# SPDX-License-Identifier: Apache-2.0
"""Each probe of `krex doctor` says what it found, and says so when its thing is missing."""

import os
import signal
import struct
import time
from functools import partial
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from krex.doctor import delegation, devices, freezer, machine, memory, opencl, preload
from krex.doctor.isolate import Died, read, run_all
from krex.doctor.report import (
    SCHEMA,
    SCHEMA_VERSION,
    Check,
    Device,
    DoctorReport,
    failed,
    passed,
    render,
    warned,
)
from krex.protect.freezer import Group, find_base

PATIENCE_S = 60
CPU = Device(key="cpu:0", name="a processor", platform="PoCL", loader="pyopencl")
GPU = Device(key="pci:0000:41:00.0", name="a card", platform="a vendor", loader="system")


def alone(function, kind=Check, limit_s=PATIENCE_S):
    """What a probe says when it runs the way the doctor runs it."""
    return read(run_all([function], limit_s)[0], kind)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---------------------------------------------------------------- isolation


def test_answers_come_back_in_order_however_long():
    # GIVEN a slow probe, a quick one, and one whose answer is larger than a pipe
    functions = [lambda: (time.sleep(0.2), "slow")[1], lambda: "quick", lambda: "x" * 300_000]
    # WHEN they run side by side
    answers = [read(answer, str) for answer in run_all(functions, PATIENCE_S)]
    # THEN each answer is where its function was
    assert answers == ["slow", "quick", "x" * 300_000]


def test_a_probe_that_crashes_raises_or_exits_is_a_finding():
    functions = [
        lambda: os.kill(os.getpid(), signal.SIGSYS),
        lambda: 1 / 0,
        lambda: os._exit(3),
        lambda: "well",
    ]
    # WHEN probes end without an answer
    answers = [read(answer, str) for answer in run_all(functions, PATIENCE_S)]
    # THEN each says how, and the others are not disturbed
    assert answers[0] == Died("was killed by SIGSYS")
    assert "division by zero" in answers[1].why
    assert answers[2] == Died("ended with status 3")
    assert answers[3] == "well"


def test_a_probe_that_hangs_is_killed_with_its_children(tmp_path):
    pids = tmp_path / "pids"

    def hang() -> None:
        child = os.fork()
        if child:
            pids.write_text(f"{os.getpid()} {child}")
        while True:
            signal.pause()

    # WHEN a probe starts a process, and both hang
    answer = alone(hang, str, 2)
    # THEN the probe is late, and both are gone
    assert answer == Died("gave no answer within 2 s", timed_out=True)
    for pid in map(int, pids.read_text().split()):
        wait_until(lambda pid=pid: not is_alive(pid))


def test_a_probe_prints_nothing(capfd):
    # WHEN a driver writes to both outputs
    alone(lambda: [os.write(1, b"noise"), os.write(2, b"noise")], list[int])
    # THEN neither shows
    assert capfd.readouterr() == ("", "")


# ---------------------------------------------------------------- the machine


@pytest.mark.parametrize(
    ("uname", "status"),
    [
        (("Linux", "6.1.0-28-amd64", "x86_64"), "ok"),
        (("Linux", "5.7.0", "aarch64"), "ok"),
        (("Linux", "5.4.0-150-generic", "x86_64"), "warning"),
        (("Linux", "4.18.0-553.el8", "x86_64"), "failed"),
        (("Linux", "6.1.0", "riscv64"), "failed"),
        (("Darwin", "23.1.0", "x86_64"), "failed"),
    ],
)
def test_the_kernel_is_judged_by_its_version_and_architecture(uname, status):
    check = machine.check_kernel(*uname)
    assert check.status == status
    assert uname[1] in check.detail
    assert (check.fix is None) == (status == "ok")


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("glibc 2.36", "ok"),
        ("glibc 2.28", "ok"),
        ("glibc 2.27", "failed"),
        ("musl 1.2", "failed"),
        (None, "failed"),
    ],
)
def test_the_c_library_must_be_glibc_2_28(version, status):
    assert machine.check_libc(version).status == status


def test_a_pidfd_tells_of_an_end_or_the_probe_fails(monkeypatch):
    # GIVEN the system as it is, then one without pidfds
    assert alone(machine.check_pidfd).status == "ok"

    def refuse(pid, flags=0):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    # THEN the second fails with the reason
    check = alone(machine.check_pidfd)
    assert (check.status, check.needed) == ("failed", True)
    assert "Function not implemented" in check.detail


def test_priority_that_cannot_be_raised_is_only_a_warning(monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(os, "setpriority", refuse)
    check = machine.check_priority()
    assert (check.status, check.needed) == ("warning", False)
    assert "limits.conf" in check.fix


# ---------------------------------------------------------------- memory


def test_shared_memory_is_used_and_removed():
    name = memory.segment_name(os.getpid())
    check = alone(partial(memory.check_shared, name))
    assert check.status == "ok"
    assert not Path("/dev/shm", name[1:]).exists()


def test_a_segment_that_a_killed_probe_left_is_removed():
    # GIVEN a segment
    name = memory.segment_name(os.getpid())
    path = Path("/dev/shm", name[1:])
    path.write_bytes(b"left behind")
    # WHEN it is removed, twice
    memory.remove(name)
    memory.remove(name)
    # THEN it is gone
    assert not path.exists()


def test_mappings_that_are_not_shared_fail(monkeypatch):
    monkeypatch.setattr(memory, "_is_shared", lambda fd, size: False)
    check = memory.check_shared(memory.segment_name(os.getpid()))
    assert check.status == "failed"
    assert "two mappings" in check.detail


def test_a_page_that_survives_a_fork_fails(monkeypatch):
    # GIVEN the advice of 16 (dump core as usual) instead of 18: the page is not wiped
    assert alone(memory.check_wipe_on_fork).status == "ok"
    monkeypatch.setattr(memory, "_MADV_WIPEONFORK", 16)
    # THEN the probe sees that
    check = alone(memory.check_wipe_on_fork)
    assert (check.status, check.needed) == ("failed", True)
    assert "still sees" in check.detail


# ---------------------------------------------------------------- freezer

needs_cgroup = pytest.mark.skipif(find_base() is None, reason="no writable cgroup v2 directory")


@needs_cgroup
def test_a_child_is_frozen_and_thawed_and_nothing_stays():
    base = find_base()
    check = alone(partial(freezer.check, base, os.getpid()))
    assert check.status == "ok"
    assert not freezer.group_path(base, os.getpid()).exists()


@needs_cgroup
@pytest.mark.parametrize("name", ["freeze", "is_frozen", "thaw"])
def test_a_freezer_that_does_not_work_fails_and_leaves_nothing(monkeypatch, name):
    # GIVEN a group that does not freeze, does not say that it did, or does not thaw
    monkeypatch.setattr(Group, name, lambda self: name == "freeze")
    if name == "freeze":
        monkeypatch.setattr(Group, "is_frozen", lambda self: True)
    monkeypatch.setattr(freezer, "_PATIENCE_S", 0.5)
    base = find_base()
    # WHEN it is probed
    check = alone(partial(freezer.check, base, os.getpid()))
    # THEN that is found out, and group and child are gone
    words = {"freeze": "runs on", "is_frozen": "`frozen 1`", "thaw": "does not go on"}
    assert check.status == "failed"
    assert words[name] in check.detail
    assert not freezer.group_path(base, os.getpid()).exists()


@needs_cgroup
def test_a_probe_killed_with_a_frozen_child_can_be_cleared(monkeypatch):
    # GIVEN a probe that is killed while its child stands still
    monkeypatch.setattr(Group, "is_frozen", lambda self: False)
    monkeypatch.setattr(freezer, "_PATIENCE_S", PATIENCE_S)
    base = find_base()
    path = freezer.group_path(base, os.getpid())
    try:
        killed = alone(partial(freezer.check, base, os.getpid()), limit_s=1)
        assert isinstance(killed, Died), killed
        assert killed.timed_out
        assert path.exists()
    finally:
        # WHEN the doctor clears up
        freezer.clear(path)
    # THEN the group is gone, and so is the child: rmdir would have failed
    assert not path.exists()


@needs_cgroup
def test_groups_of_dead_doctors_are_removed_and_those_of_living_ones_kept():
    base = find_base()
    dead, living = freezer.group_path(base, 1 << 30), freezer.group_path(base, os.getpid())
    try:
        dead.mkdir()
        living.mkdir()
        freezer.clear_stale(base)
        assert not dead.exists()
        assert living.exists()
    finally:
        freezer.clear(dead)
        freezer.clear(living)


def test_a_base_that_cannot_hold_groups_fails(tmp_path):
    # GIVEN a folder that is no cgroup, and one that is not there
    for base in (tmp_path, tmp_path / "missing"):
        check = freezer.check(base, os.getpid())
        # THEN the probe fails, says where, and leaves nothing in it
        assert check.status == "failed"
        assert str(base) in check.detail
        assert check.fix
    assert list(tmp_path.iterdir()) == []


def test_no_base_is_explained():
    check = freezer.check(None, os.getpid())
    assert check.status == "failed"
    assert check.fix


@pytest.mark.parametrize(
    ("mounts", "own", "seen", "fix"),
    [
        ("tmpfs /tmp tmpfs rw 0 0", "0::/", "no cgroup v2", "cgroup"),
        ("none /cg cgroup2 rw 0 0", "0::/../x", "not in what is mounted", "--cgroupns=private"),
        ("none /cg cgroup2 ro,nosuid 0 0", "0::/a", "/cg/a is mounted read-only", "docker run"),
        ("none /cg cgroup2 rw 0 0", "0::/a", "may not make cgroups in /cg/a", "Delegate=yes"),
    ],
)
def test_the_reason_for_no_base_has_its_own_fix(monkeypatch, mounts, own, seen, fix):
    # GIVEN what /proc says
    texts = {"/proc/self/mounts": mounts, "/proc/self/cgroup": f"1:name=x:/\n{own}\n"}
    monkeypatch.setattr(Path, "read_text", lambda self: texts[str(self)])
    # THEN the text names it
    detail, advice = delegation.why_no_base("self")
    assert seen in detail
    assert fix in advice


@pytest.mark.parametrize(
    ("found", "status", "needed", "words"),
    [
        ([CPU], "failed", True, "no region on cpu:0 is exclusive"),
        ([GPU], "warning", False, "exclusive by the gate alone"),
        ([CPU, GPU], "warning", False, "on cpu:0 no region is exclusive"),
        ([], "warning", False, "exclusive by the gate alone"),
    ],
)
def test_what_a_missing_freezer_means_depends_on_the_devices(found, status, needed, words):
    check = failed("freezer", "it does not freeze", "mend it")
    freezer.judge(check, found)
    assert (check.status, check.needed) == (status, needed)
    assert words in check.detail


@pytest.mark.parametrize("found", [[CPU], [GPU]])
def test_a_working_freezer_stays_what_it_is(found):
    for check in (passed("freezer", "well"), warned("freezer", "slow", "newer kernel")):
        before = check.status, check.detail
        freezer.judge(check, found)
        assert (check.status, check.detail) == before
        assert check.needed == (found == [CPU])


# ---------------------------------------------------------------- preload


def test_the_library_is_found_in_a_child(library):
    assert preload.check(str(library)).status == "ok"


def test_the_library_is_found_beside_spaces(library, tmp_path):
    # GIVEN a library in a folder that LD_PRELOAD cannot name
    copy = tmp_path / "a b" / "libkrex.so"
    copy.parent.mkdir()
    copy.write_bytes(library.read_bytes())
    assert preload.check(str(copy)).status == "ok"


@pytest.mark.parametrize(
    ("content", "seen", "fix"),
    [
        (None, "cannot open shared object", "ls -l"),
        (b"not a library", "file too short", "python build.py"),
        (b"\x7fELF" + bytes(4096), "LD_PRELOAD", "python build.py"),
    ],
)
def test_a_library_that_cannot_be_loaded_fails(tmp_path, content, seen, fix):
    path = tmp_path / "libkrex.so"
    if content is not None:
        path.write_bytes(content)
    check = preload.check(str(path))
    assert (check.status, check.needed) == ("failed", True)
    assert seen in check.detail
    assert fix in check.fix


def test_a_library_without_our_functions_fails():
    # GIVEN one that loads, and is another
    check = preload.check("libc.so.6")
    assert check.status == "failed"
    assert "not in it" in check.detail


def test_a_path_that_preloads_cannot_name_fails():
    assert "':'" in preload.check("/a:b/libkrex.so").detail


# ---------------------------------------------------------------- devices


def test_devices_are_listed_once_with_their_loaders():
    twin = msgspec.structs.replace(CPU, loader="system")
    check = devices.check({"system": [twin, GPU], "pyopencl": [CPU]})
    assert check.status == "ok"
    assert check.detail.count("cpu:0") == 1
    assert "the loader of pyopencl and the system's loader" in check.detail
    assert "pci:0000:41:00.0 a card" in check.detail


def test_no_device_fails():
    check = devices.check({"system": [], "pyopencl": []})
    assert (check.status, check.needed) == ("failed", True)
    assert "krex-gpu[cpu]" in check.fix


def test_a_dead_driver_fails_alone_and_warns_beside_devices(tmp_path, monkeypatch):
    # GIVEN a driver that crashes, named by a file
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    (tmp_path / "bad.icd").write_text("libbad.so")
    crash = Died("was killed by SIGSEGV")
    # WHEN it is all there is, and when another loader shows a device
    alone_, beside = devices.check({"system": crash}), devices.check({"system": crash, "p": [CPU]})
    # THEN it fails, or warns; both name the file
    assert (alone_.status, beside.status) == ("failed", "warning")
    for check in (alone_, beside):
        assert "the system's loader was killed by SIGSEGV" in check.detail
        assert "bad.icd" in check.fix


def test_a_slow_driver_is_not_called_crashing():
    check = devices.check({"system": Died("gave no answer within 5 s", timed_out=True)})
    assert "hangs" in check.fix
    assert "--timeout" in check.fix


def test_a_device_of_unknown_address_warns():
    unknown = msgspec.structs.replace(GPU, key=opencl.UNKNOWN_KEY)
    assert devices.check({"system": [unknown]}).status == "warning"


@pytest.mark.parametrize(
    ("answers", "key"),
    [
        ({opencl._TYPE: struct.pack("=Q", 2)}, "cpu:0"),
        ({opencl._TYPE: struct.pack("=Q", 3), opencl._PCI_BUS_ID_NV: bytes(4)}, "cpu:0"),
        ({opencl._PCI_BUS_INFO_KHR: struct.pack("=4I", 1, 0x41, 2, 3)}, "pci:0001:41:02.3"),
        (
            {
                opencl._PCI_BUS_ID_NV: struct.pack("=I", 0xC1),
                opencl._PCI_SLOT_ID_NV: struct.pack("=I", (5 << 3) | 1),
                opencl._PCI_DOMAIN_ID_NV: struct.pack("=I", 0x10),
            },
            "pci:0010:c1:05.1",
        ),
        ({opencl._TOPOLOGY_AMD: struct.pack("=I17x3B", 1, 0x83, 4, 1)}, "pci:0000:83:04.1"),
        ({opencl._TYPE: struct.pack("=Q", 4)}, opencl.UNKNOWN_KEY),
    ],
)
def test_a_key_is_made_of_what_the_driver_tells(answers, key):
    def get_info(device, what, size, answer, size_out):
        data = answers.get(what.value)
        if data is None:
            return -30  # CL_INVALID_VALUE
        if answer is None:
            size_out._obj.value = len(data)
        else:
            answer.raw = data
        return 0

    assert opencl._key(get_info, 1) == key


# ---------------------------------------------------------------- the report


def report_of(*checks: Check) -> DoctorReport:
    return DoctorReport(
        schema=SCHEMA,
        schema_version=SCHEMA_VERSION,
        ok=all(check.status != "failed" for check in checks),
        checks=list(checks),
        devices=[CPU],
    )


def test_lines_are_aligned_and_end_with_the_next_command():
    good, bad = passed("kernel", "well"), failed("shared-memory", "none", "mount it")
    # GIVEN reports that are all well, warn and fail
    lines = render(report_of(good, bad))
    # THEN details stand below each other, a fix below its line, and the next command last
    assert lines[0].index("well") == lines[1].index("none")
    assert lines[2].strip() == "fix: mount it"
    assert lines[2].startswith("   ")
    assert lines[-1].endswith("krex doctor")
    assert "krex run" in render(report_of(good))[-1]
    assert "warnings" in render(report_of(good, warned("freezer", "slow", "newer")))[-1]


def test_the_schema_takes_a_report_and_refuses_other_things():
    validator = Draft202012Validator(msgspec.json.schema(DoctorReport))
    report = msgspec.to_builtins(report_of(failed("libc", "old", "newer")))
    validator.validate(report)
    for broken in (
        report | {"schema_version": 2},
        report | {"checks": [report["checks"][0] | {"status": "fine"}]},
        {key: value for key, value in report.items() if key != "ok"},
    ):
        assert not validator.is_valid(broken)
