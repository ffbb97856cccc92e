# SPDX-License-Identifier: Apache-2.0
"""`krex doctor` as a user has it: on this machine, and on ones that lack something."""

import ctypes.util
import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from support.sandbox import (
    AS_NOBODY,
    KILL,
    NOBODY,
    needs_filter,
    needs_freezer,
    needs_root,
    needs_setpriv,
    refusing,
    unshared,
)
from support.waiting import DEADLINE_S, ended, wait_for

from krex.doctor.report import DoctorReport
from krex.protect.freezer import find_base

ROOT = Path(__file__).parents[2]
IDS = [
    "kernel", "libc", "shared-memory", "wipe-on-fork", "membarrier", "pidfd", "preload",
    "controller", "priority", "freezer", "cuda", "hip", "devices",
]  # fmt: skip
needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
needs_loader = pytest.mark.skipif(
    ctypes.util.find_library("OpenCL") is None, reason="needs the distribution's OpenCL loader"
)


class Doctor:
    """Runs `krex doctor` with folders of this test's own, and knows what it must not leave."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.mark = f"KREX_TEST_DOCTOR={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        self.socket = folder / "control.sock"
        self.env = os.environ | {
            name: value,
            "KREX_SOCKET": str(self.socket),
            "TMPDIR": str(self.temporary),
        }
        self.before = self.traces()

    def words(self, *options: str) -> list[str]:
        return [sys.executable, "-m", "krex.cli", "doctor", "--timeout", "60", *options]

    def __call__(
        self, *options: str, under: list[str] | None = None, **settings: Any
    ) -> subprocess.CompletedProcess[str]:
        settings = {"env": self.env, "cwd": self.folder} | settings
        words = [*(under or []), *self.words(*options)]
        return subprocess.run(words, capture_output=True, text=True, timeout=90, **settings)

    def report(self, *options: str, **settings: Any) -> dict[str, Any]:
        """The JSON object; it fits its schema, and the exit status fits it."""
        done = self("--json", *options, **settings)
        report = json.loads(done.stdout)
        Draft202012Validator(msgspec.json.schema(DoctorReport)).validate(report)
        failures = [check["id"] for check in report["checks"] if check["status"] == "failed"]
        assert report["ok"] == (not failures)
        assert done.returncode == bool(failures), done.stderr
        assert done.stderr == ""
        for check in report["checks"]:
            assert (check["fix"] is None) == (check["status"] == "ok"), check
        return report

    def check(self, name: str, *options: str, **settings: Any) -> dict[str, Any]:
        """One check of the report."""
        checks = self.report(*options, **settings)["checks"]
        return next(check for check in checks if check["id"] == name)

    def traces(self) -> set[str]:
        """Segments, cgroups and folders that doctors made."""
        base = find_base()
        found = [*Path("/dev/shm").glob("krex-doctor-*"), *self.temporary.iterdir()]
        found += [self.socket] if self.socket.exists() else []
        found += [*self.folder.glob("krex-doctor-*"), *self.folder.glob("core*")]
        return set(map(str, [*found, *(base.glob("krex-doctor-*") if base else [])]))

    def processes(self) -> set[int]:
        """The processes of this test's doctors."""
        pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
        return {pid for pid in pids if self.mark in environment_of(pid) and not ended(pid)}

    def assert_nothing_left(self) -> None:
        # The kernel kills processes in its own time; a doctor of somebody else may run just now.
        wait_for(lambda: not self.processes() and self.traces() <= self.before)


@pytest.fixture
def doctor(tmp_path: Path) -> Iterator[Doctor]:
    tmp_path.chmod(0o700)
    doctor = Doctor(tmp_path)
    yield doctor
    doctor.assert_nothing_left()


def environment_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    except OSError:
        return []  # it has ended


def driver(folder: Path, body: str) -> dict[str, str]:
    """The environment in which OpenCL loaders find one driver, which does this when loaded."""
    source, library, vendors = folder / "bad.c", folder / "libbad.so", folder / "vendors"
    source.write_text(
        "#include <stdlib.h>\n#include <unistd.h>\n"
        f"__attribute__((constructor)) static void loaded(void) {{ {body} }}\n"
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    vendors.mkdir()
    (vendors / "bad.icd").write_text(f"{library}\n")
    return {"OCL_ICD_VENDORS": str(vendors)}


# ---------------------------------------------------------------- a machine as it is


def test_json_has_every_check_once_and_in_order(doctor):
    report = doctor.report()
    assert [check["id"] for check in report["checks"]] == IDS


def test_every_check_is_documented():
    page = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")
    table = page.partition("## Checks")[2].partition("\n## ")[0]
    documented = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert documented == IDS


def test_what_the_suite_uses_is_found_well(doctor, library):
    # GIVEN a machine on which the other tests pass
    checks = {check["id"]: check for check in doctor.report()["checks"]}
    # THEN what they use is ok
    for name in ("kernel", "libc", "shared-memory", "wipe-on-fork", "pidfd", "preload"):
        assert checks[name]["status"] == "ok", checks[name]
    assert checks["controller"]["status"] == "ok", checks["controller"]
    assert str(library) in checks["preload"]["detail"]


@needs_freezer
def test_a_process_is_frozen_and_thawed(doctor):
    check = doctor.check("freezer")
    assert check["status"] == "ok"
    assert str(find_base()) in check["detail"]


def test_the_devices_have_the_keys_that_records_have(doctor):
    pytest.importorskip("pyopencl")
    report = doctor.report()
    assert "cpu:0" in {device["key"] for device in report["devices"]}
    assert "cpu:0" in report["checks"][-1]["detail"]


def test_lines_for_people_end_with_the_next_command(doctor):
    done = doctor()
    lines = done.stdout.splitlines()
    names = [line.split()[1] for line in lines if line.startswith(("ok", "warning", "failed"))]
    fixes = [line for line in lines if line.startswith("         fix: ")]
    assert names == IDS
    assert len(fixes) == sum(line.startswith(("warning", "failed")) for line in lines)
    assert ("krex run --" if done.returncode == 0 else "run: krex doctor") in lines[-1]


def test_a_wrong_option_is_a_usage_error(doctor):
    assert doctor("--timeout", "0").returncode == 2
    assert doctor("surplus").returncode == 2


# ---------------------------------------------------------------- without privileges


@needs_root
@needs_setpriv
class TestNobody:
    @pytest.fixture
    def doctor(self, doctor):
        # A folder of nobody's, in which it may have a socket; pytest's own are root's.
        place = Path("/tmp", f"krex-test-{uuid.uuid4().hex[:8]}")
        place.mkdir()
        os.chown(place, NOBODY, NOBODY)
        doctor.env |= {"KREX_SOCKET": str(place / "s"), "TMPDIR": str(place)}
        yield doctor
        left = list(place.iterdir())
        shutil.rmtree(place)
        assert left == []

    def test_what_it_cannot_do_is_said(self, doctor):
        # GIVEN a user without rights, in a cgroup of root's
        checks = {c["id"]: c for c in doctor.report(under=AS_NOBODY)["checks"]}
        # THEN freezing is missing, with the consequence and the remedy, and all else works
        freezer, priority = checks.pop("freezer"), checks.pop("priority")
        assert freezer["status"] != "ok"
        assert "exclusive" in freezer["detail"]
        assert "Delegate=yes" in freezer["fix"] or "docker run" in freezer["fix"]
        assert priority["status"] == "warning"
        for check in checks.values():
            if check["id"] not in ("devices", "cuda", "hip"):
                assert check["status"] == "ok", check

    @needs_freezer
    def test_a_cgroup_of_its_own_is_enough(self, doctor):
        # GIVEN a cgroup that root gave to nobody, with the doctor in it
        group = find_base() / f"krex-test-{uuid.uuid4().hex[:8]}"
        group.mkdir()
        try:
            for name in (".", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"):
                os.chown(group / name, NOBODY, NOBODY)
            join = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
            check = doctor.check("freezer", under=[*join, *AS_NOBODY])
            left = [path for path in group.iterdir() if path.is_dir()]
        finally:
            wait_for(lambda: not (group / "cgroup.procs").read_text())
            group.rmdir()
        # THEN it can freeze, and leaves nothing there
        assert check["status"] == "ok"
        assert str(group) in check["detail"]
        assert left == []


# ---------------------------------------------------------------- something is missing


@needs_root
@needs_filter
@pytest.mark.parametrize(
    ("script", "seen", "fix"),
    [
        ("mount -t tmpfs -o ro none /dev/shm", "shm_open", "remount"),
        ("mount -t tmpfs -o size=64k none /dev/shm", "No space", "--shm-size"),
        (
            "mount -t tmpfs none /dev; mknod /dev/null c 1 3; mknod /dev/urandom c 1 9",
            "shm_open",
            "mount -t tmpfs tmpfs /dev/shm",
        ),
    ],
    ids=["read-only", "too small", "not there"],
)
def test_without_dev_shm_a_memfd_does(doctor, script, seen, fix):
    check = doctor.check("shared-memory", under=unshared(script))
    assert (check["status"], check["needed"]) == ("ok", True)
    assert "memfd" in check["detail"] and seen in check["detail"]
    # WHEN that is refused as well, THEN no board can be made.
    under = [*unshared(script), *refusing("memfd_create", errno.EPERM)]
    check = doctor.check("shared-memory", under=under)
    assert (check["status"], check["needed"]) == ("failed", True)
    assert seen in check["detail"] and "memfd_create" in check["detail"]
    assert fix in check["fix"]


@needs_root
@needs_freezer
def test_a_read_only_cgroup_mount_is_what_containers_have(doctor):
    mount = next(
        line.split()[1]
        for line in Path("/proc/self/mounts").read_text().splitlines()
        if line.split()[2] == "cgroup2"
    )
    check = doctor.check("freezer", under=unshared(f"mount -o remount,bind,ro {mount}"))
    assert check["status"] != "ok"
    assert "read-only" in check["detail"]
    assert "--cgroupns=private" in check["fix"]


@needs_filter
def test_without_membarrier_it_warns(doctor):
    check = doctor.check("membarrier", under=refusing("membarrier", errno.EPERM))
    assert (check["status"], check["needed"]) == ("warning", False)
    assert "Operation not permitted" in check["detail"]
    assert "seccomp" in check["fix"]


@needs_filter
def test_a_call_that_kills_is_a_finding(doctor):
    check = doctor.check("membarrier", under=refusing("membarrier", KILL))
    assert check["status"] == "warning"
    assert "SIGSYS" in check["detail"]
    assert "seccomp" in check["fix"]


@needs_filter
def test_without_pidfds_it_fails(doctor):
    check = doctor.check("pidfd", under=refusing("pidfd_open", errno.EPERM))
    assert (check["status"], check["needed"]) == ("failed", True)
    assert "seccomp" in check["fix"]


@needs_filter
def test_without_wipe_on_fork_it_fails(doctor):
    under = refusing("madvise", errno.EINVAL, argument=(2, 18))
    check = doctor.check("wipe-on-fork", under=under)
    assert (check["status"], check["needed"]) == ("failed", True)
    assert "Invalid argument" in check["detail"]


@needs_filter
@needs_freezer
def test_without_clone3_freezing_still_works_with_a_warning(doctor):
    check = doctor.check("freezer", under=refusing("clone3", errno.ENOSYS))
    assert check["status"] == "warning"
    assert "stood still" in check["detail"]
    assert "clone3" in check["detail"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A krex of this test's own, to take things out of."""
    place = tmp_path / "tree"
    shutil.copytree(ROOT / "krex", place / "krex", ignore=shutil.ignore_patterns("__pycache__"))
    return place


def test_a_library_that_was_not_built_fails(doctor, tree):
    (tree / "krex/lib/libkrex.so").unlink()
    doctor.env["PYTHONPATH"] = str(tree)
    check = doctor.check("preload")
    assert (check["status"], check["needed"]) == ("failed", True)
    assert "build.py" in check["fix"]


def test_a_library_that_does_not_load_fails(doctor, tree):
    library = tree / "krex/lib/libkrex.so"
    library.write_bytes(library.read_bytes()[:4096])
    doctor.env["PYTHONPATH"] = str(tree)
    check = doctor.check("preload")
    assert check["status"] == "failed"
    assert "libkrex.so" in check["detail"]


def test_a_missing_module_fails_where_it_is_needed(doctor, tree):
    # GIVEN a krex without its compiled module
    for path in (tree / "krex").glob("_native*"):
        path.unlink()
    doctor.env["PYTHONPATH"] = str(tree)
    report = doctor.report()
    # THEN no board can be made, and no controller started
    failures = {c["id"]: c for c in report["checks"] if c["status"] == "failed"}
    assert {"shared-memory", "controller"} <= set(failures)
    assert "_native" in failures["controller"]["detail"]


@needs_compiler
@needs_loader
def test_a_driver_that_hangs_is_a_finding_and_is_ended(doctor):
    # GIVEN a driver whose loading never ends
    settings = {"env": doctor.env | driver(doctor.folder, "for (;;) pause();")}
    # WHEN probes have three seconds
    check = doctor.check("devices", "--timeout", "3", **settings)
    # THEN the report says so, and names the file that names the driver
    assert (check["status"], check["needed"]) == ("failed", True)
    assert "gave no answer within 3 s" in check["detail"]
    assert "bad.icd" in check["fix"]


@needs_compiler
@needs_loader
def test_a_driver_that_crashes_is_a_finding(doctor):
    settings = {"env": doctor.env | driver(doctor.folder, "abort();")}
    check = doctor.check("devices", **settings)
    assert check["status"] == "failed"
    assert "SIGABRT" in check["detail"]
    assert "crashes" in check["fix"]


@needs_compiler
@needs_loader
def test_what_a_driver_prints_does_not_reach_the_report(doctor):
    body = 'write(1, "noise\\n", 6); write(2, "noise\\n", 6);'
    settings = {"env": doctor.env | driver(doctor.folder, body)}
    done = doctor(**settings)
    assert "noise" not in done.stdout + done.stderr


# ---------------------------------------------------------------- the controller


def test_without_a_controller_one_is_tried_and_not_left(doctor):
    check = doctor.check("controller")
    assert check["status"] == "ok"
    assert "none runs" in check["detail"]
    assert not doctor.socket.exists()


def test_the_socket_directory_is_not_left_either(doctor):
    doctor.env.pop("KREX_SOCKET")
    doctor.env["XDG_RUNTIME_DIR"] = str(doctor.folder)
    assert doctor.check("controller")["status"] == "ok"
    assert not (doctor.folder / "krex").exists()


def test_a_controller_that_runs_is_left_running(doctor):
    words = [sys.executable, "-m", "krex.cli", "serve"]
    env = {name: text for name, text in doctor.env.items() if name != doctor.mark.split("=")[0]}
    with subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL) as server:
        try:
            wait_for(doctor.socket.exists)
            check = doctor.check("controller")
            assert check["status"] == "ok"
            assert f"pid {server.pid}" in check["detail"]
            assert server.poll() is None
        finally:
            server.terminate()


def serving(path: Path, answer: bytes | None) -> Callable[[], None]:
    """A controller that gives this answer to everything (None: no answer); call it to end it."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(path))
    listener.listen(16)
    kept = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            kept.append(connection)
            if answer is not None and connection.recv(1 << 16):
                connection.send(answer)

    threading.Thread(target=serve, daemon=True).start()

    def close() -> None:
        listener.shutdown(socket.SHUT_RDWR)
        for one in (listener, *kept):
            one.close()
        path.unlink()

    return close


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ({"op": "status", "status": {"controller": {"version": "0.0.1", "pid": 7}}}, "0.0.1"),
        ({"op": "error", "message": "what is that"}, "what is that"),
    ],
)
def test_a_controller_of_another_version_fails(doctor, answer, seen):
    close = serving(doctor.socket, json.dumps(answer).encode())
    try:
        check = doctor.check("controller")
    finally:
        close()
    assert (check["status"], check["needed"]) == ("failed", True)
    assert seen in check["detail"]


def test_a_controller_that_does_not_answer_fails(doctor):
    close = serving(doctor.socket, None)
    try:
        check = doctor.check("controller", "--timeout", "3")
    finally:
        close()
    assert check["status"] == "failed"
    assert "gave no answer" in check["detail"]


@pytest.mark.parametrize("path", ["/proc/krex/control.sock", f"/tmp/{'x' * 120}/control.sock"])
def test_a_socket_that_cannot_be_made_fails(doctor, path):
    doctor.env["KREX_SOCKET"] = path
    check = doctor.check("controller")
    assert check["status"] == "failed"
    assert "KREX_SOCKET" in check["fix"]


def test_a_socket_directory_open_to_others_fails(doctor):
    doctor.env.pop("KREX_SOCKET")
    doctor.env["XDG_RUNTIME_DIR"] = str(doctor.folder)
    place = doctor.folder / "krex"
    place.mkdir()
    place.chmod(0o777)
    check = doctor.check("controller")
    assert check["status"] == "failed"
    assert "chmod 700" in check["fix"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o777


# ---------------------------------------------------------------- interruption

# A doctor whose freezer probe never sees its group frozen: it stands in the middle.
STUCK = """
from krex.protect.freezer import Group
from krex.doctor import freezer
from krex.cli import main
Group.is_frozen = lambda self: False
freezer._PATIENCE_S = 600
main(["doctor", "--timeout", "600"])
"""


@pytest.fixture
def stuck(doctor) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A doctor with a frozen child, and the child's group."""
    base = find_base()
    assert base is not None
    words = [sys.executable, "-c", STUCK]
    with subprocess.Popen(
        words, env=doctor.env, cwd=doctor.folder, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            group = base / f"krex-doctor-{process.pid}"
            events = group / "cgroup.events"
            wait_for(lambda: events.exists() and "frozen 1" in events.read_text())
            yield process, group
        finally:
            process.kill()


@needs_freezer
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_doctor_leaves_nothing(doctor, stuck, number):
    process, group = stuck
    # WHEN it is told to end
    process.send_signal(number)
    process.wait(DEADLINE_S)
    # THEN it does, with the usual status; the fixture looks for what is left
    assert process.returncode == 128 + number
    assert not group.exists()


@needs_freezer
def test_a_killed_doctor_leaves_no_process_and_the_next_one_its_group(doctor, stuck):
    process, group = stuck
    # WHEN it dies without a chance to clear up
    process.kill()
    process.wait(DEADLINE_S)
    # THEN its processes, the frozen one too, die with it
    wait_for(lambda: not doctor.processes())
    # AND the next doctor removes what it left, as the fixture checks
    assert group.exists()
    doctor()
