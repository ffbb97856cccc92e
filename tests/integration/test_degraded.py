# SPDX-License-Identifier: Apache-2.0
"""Where something is missing, a command runs, and what it lacks is said: once, and what to do."""

from __future__ import annotations

import errno
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.command_line import PROGRAM, Krex
from support.fake_controller import Controller
from support.sandbox import (
    AS_NOBODY,
    NOBODY,
    needs_filter,
    needs_freezer,
    needs_root,
    needs_setpriv,
    refusing,
    unshared,
)
from support.waiting import DEADLINE_S, wait_for

from krex.launch.channel import PROTOCOL
from krex.native import ffi, lib

HERE = Path(__file__).parent
BUSY, CROWD = HERE / "busy_program.py", HERE / "crowd_program.py"


def cgroup2() -> str:
    """Where it is mounted."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return next((line.split()[1] for line in lines if line.split()[2] == "cgroup2"), "")


def regions(krex: Krex, *options: str, count: int = 2) -> subprocess.CompletedProcess[str]:
    """Run a program with real kernels in regions to its end; the report is the file `r`."""
    words = [krex.python_path, str(PROGRAM), str(count)]
    return krex("run", "--report", str(krex.folder / "r"), *options, "--", *words)


def verdicts(krex: Krex) -> list[tuple[bool, list[str]]]:
    return [(r["exclusive"], r["reasons"]) for r in krex.records("r")]


@pytest.fixture
def lacking(request: pytest.FixtureRequest, cli: Krex) -> Krex:
    """The command line in a place that lacks something; so does the controller that it starts."""
    pytest.importorskip("pyopencl")
    cli.env |= {"HOME": str(cli.folder), "XDG_CACHE_HOME": str(cli.folder)}
    cli.base = [*request.param, *cli.base]
    if request.param is AS_NOBODY:
        os.chown(cli.folder, NOBODY, NOBODY)
    return cli


UNPRIVILEGED = AS_NOBODY
READ_ONLY = unshared(f"mount -o remount,bind,ro {cgroup2()}")
UNMOUNTED = unshared(f"umount {cgroup2()}")
NO_BARRIER = refusing("membarrier", errno.EPERM)
needs_cgroup2 = pytest.mark.skipif(not cgroup2(), reason="no cgroup v2 is mounted here")


# ---------------------------------------------------------------- freezing, membarrier


@needs_root
@needs_setpriv
@needs_filter
@needs_cgroup2
@pytest.mark.parametrize(
    ("lacking", "missing"),
    [
        (UNPRIVILEGED, "no freezing"),
        (READ_ONLY, "no freezing"),
        (UNMOUNTED, "no freezing"),
        (NO_BARRIER, "no membarrier"),
    ],
    ids=["unprivileged", "cgroup2 read-only", "no cgroup2", "no membarrier"],
    indirect=["lacking"],
)
def test_what_is_missing_is_said_once_and_the_command_runs(lacking: Krex, missing: str) -> None:
    result = regions(lacking)
    assert result.returncode == 0
    assert len(json.loads(result.stdout)["regions"]) == 2
    # THEN one line names it, and the next thing to do
    [line] = result.stderr.splitlines()
    assert line.startswith(f"krex: {missing}") and "krex doctor" in line
    # and nobody else being there, the regions were exclusive.
    assert verdicts(lacking) == [(True, [])] * 2

    # WHEN all of the protection is required, THEN it isn't even started
    result = regions(lacking, "--require")
    assert (result.returncode, result.stdout) == (125, "")
    [line] = result.stderr.splitlines()
    assert line.startswith(f"krex: {missing}") and "--require" in line


@needs_root
@needs_setpriv
@needs_cgroup2
@pytest.mark.parametrize(
    "lacking", [UNPRIVILEGED, READ_ONLY], ids=["unprivileged", "cgroup2 read-only"], indirect=True
)
def test_a_region_beside_a_busy_sibling_that_cannot_be_frozen_is_not_exclusive(
    lacking: Krex,
) -> None:
    sibling = lacking.python(BUSY, "processor", options=("-q",))
    assert sibling.stdout.readline() == "ready\n"
    result = regions(lacking)
    sibling.communicate("", timeout=DEADLINE_S)
    assert verdicts(lacking) == [(False, ["sibling_ran"])] * 2
    # One line says what is missing, and one what came of it.
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["krex", "krex"]
    assert "sibling_ran" in result.stderr


@needs_filter
@pytest.mark.parametrize("lacking", [NO_BARRIER], ids=["no membarrier"], indirect=True)
def test_without_membarrier_each_submission_fences_itself_and_regions_are_exclusive(
    lacking: Krex,
) -> None:
    # GIVEN three commands at once, none of which may use membarrier; nor may their controller,
    # which would refuse to close the gate beside a process that relies on it
    children = [
        lacking.program("-q", "--report", str(lacking.folder / f"{i}"), regions=2) for i in range(3)
    ]
    outputs = [json.loads(child.communicate(timeout=DEADLINE_S)[0]) for child in children]
    records = [lacking.records(str(i)) for i in range(3)]
    for i, mine in enumerate(outputs):
        siblings = [k for j, o in enumerate(outputs) if j != i for k in o["kernels"]]
        for (begin, end), record in zip(mine["regions"], records[i], strict=True):
            inside = [k for k in siblings if k[0] < end and k[1] > begin]
            assert not record["exclusive"] or inside == []
    reasons = [r["reasons"] for of_one in records for r in of_one if r["reasons"]]
    assert len(reasons) <= 1, reasons


@needs_filter
def test_a_controller_without_membarrier_beside_a_process_that_relies_on_it(cli: Krex) -> None:
    pytest.importorskip("pyopencl")
    # GIVEN a controller that may not use membarrier, and commands that may
    base = cli.base
    cli.base = [*refusing("membarrier", errno.EPERM), *base]
    cli.start_controller()
    cli.base = base
    # THEN it cannot vouch for a region, and says why
    result = regions(cli)
    assert verdicts(cli) == [(False, ["no_membarrier"])] * 2
    assert "krex: no membarrier" in result.stderr.splitlines()[0]
    assert regions(cli, "--require").returncode == 125


# ---------------------------------------------------------------- /dev/shm


NO_SHM = {
    "read-only": "mount -t tmpfs -o ro none /dev/shm",
    "too small": "mount -t tmpfs -o size=64k none /dev/shm",
}


@needs_root
@needs_freezer
@pytest.mark.parametrize("script", [*NO_SHM.values()], ids=[*NO_SHM])
def test_a_client_needs_no_dev_shm(krex: Krex, script: str) -> None:
    # GIVEN a command that has none, and a controller that has
    krex.base = [*unshared(script), *krex.base]
    # THEN it lacks nothing: the board comes as a descriptor
    result = regions(krex, "--require")
    assert (result.returncode, result.stderr) == (0, "")
    assert verdicts(krex) == [(True, [])] * 2


@needs_root
@needs_freezer
@pytest.mark.parametrize(
    "lacking", [unshared(script) for script in NO_SHM.values()], ids=[*NO_SHM], indirect=True
)
def test_a_controller_without_dev_shm_keeps_its_boards_elsewhere(lacking: Krex) -> None:
    sibling = lacking.python(BUSY, "device")
    assert sibling.stdout.readline() == "ready\n"
    result = regions(lacking, "--require")
    theirs = json.loads(sibling.communicate("", timeout=DEADLINE_S)[0])["kernels"]
    # THEN nothing is missing
    assert (result.returncode, result.stderr) == (0, "")
    assert verdicts(lacking) == [(True, [])] * 2
    for begin, end in json.loads(result.stdout)["regions"]:
        assert [k for k in theirs if k[0] < end and k[1] > begin] == []
    # and what the controller asks of a board's mappings is answered as usual.
    wait_for(lambda: not [p for d in lacking.status()["devices"] for p in d["processes"]])


# ---------------------------------------------------------------- another version


@pytest.fixture
def stub(cli: Krex) -> Iterator[Controller]:
    """A controller that is a script of the test."""
    fake = Controller(Path(cli.env["KREX_SOCKET"]))
    yield fake
    fake.close()
    Path(cli.env["KREX_SOCKET"]).unlink()


@pytest.mark.parametrize(
    "answer",
    [
        {"operation": "admitted", "protocol": PROTOCOL - 1, "command": "c", "device": "cpu:0"},
        {"operation": "admitted", "command": "c", "device": "cpu:0"},
        {"operation": "error", "message": "no such protocol; `krex doctor`", "fail_open": True},
    ],
    ids=["older", "oldest", "refuses"],
)
def test_a_controller_of_another_version(
    cli: Krex, stub: Controller, answer: dict[str, object]
) -> None:
    stub.play(*[lambda connection: connection.send(**answer)] * 2)
    result = cli("run", "--", "sh", "-c", "echo ${KREX_COMMAND-none}")
    assert (result.returncode, result.stdout) == (0, "none\n")
    [line] = result.stderr.splitlines()
    assert line.startswith("krex: running without protection: ")
    assert "protocol" in line and "krex doctor" in line
    result = cli("run", "--require", "--", "echo", "ran")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (125, "", 1)
    stub.check()


def test_a_krex_run_of_another_version_runs_unprotected(krex: Krex) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(krex.env["KREX_SOCKET"])
        client.send(json.dumps({"op": "run", "protocol": 1, "argv": ["x"]}).encode())
        answer = json.loads(client.recv(1 << 16))
    assert answer["op"] == "error" and answer["fail_open"]
    assert "protocol" in answer["message"]


def board(abi: int, compat: int) -> int:
    """The descriptor of a board of that version."""
    size = ffi.sizeof("struct krex_board")
    fd = os.memfd_create("board")
    os.ftruncate(fd, size)
    memory = mmap.mmap(fd, size)
    lib.krex_board_init(ffi.cast("struct krex_board *", ffi.from_buffer(memory)), b"cpu:0", 1)
    struct.pack_into("=II", memory, 8, abi, compat)
    return fd


def welcome(magic: int) -> bytes:
    values = {"magic": magic, "type": lib.KREX_WIRE_WELCOME}
    return bytes(ffi.buffer(ffi.new("struct krex_wire *", values)))


@pytest.mark.parametrize(
    ("packet", "versions"),
    [
        (welcome(0x0158524B), (1, 1)),
        (b"\x4b\x52\x58\x01" + bytes(40), (1, 1)),
        (welcome(lib.KREX_WIRE_MAGIC), (0, 0)),
        (welcome(lib.KREX_WIRE_MAGIC), (1000, 1000)),
    ],
    ids=["older messages", "shorter messages", "older board", "newer board"],
)
def test_a_library_and_a_controller_that_do_not_fit(
    cli: Krex, packet: bytes, versions: tuple[int, int]
) -> None:
    pytest.importorskip("pyopencl")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(cli.env["KREX_SOCKET"])
        listener.listen(4)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                fd = board(*versions)
                socket.send_fds(connection, [packet], [fd])
                os.close(fd)

        server = threading.Thread(target=serve)
        server.start()
        env = {"PYTHONPATH": str(HERE), "LD_PRELOAD": cli("lib-path").stdout.strip()}
        program = "import device_work as d; w = d.Work(); w.timed('a'); w.timed('b'); print('done')"
        result = subprocess.run(
            [cli.python_path, "-c", program],
            env=cli.env | env,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        server.join()
    Path(cli.env["KREX_SOCKET"]).unlink()
    assert (result.returncode, result.stdout) == (0, "done\n")
    [line] = result.stderr.splitlines()
    assert line.startswith("krex: this process runs unprotected: the controller is of another")
    assert "krex doctor" in line


# ---------------------------------------------------------------- who cannot take part


def crowd(krex: Krex, count: int, *how: str, answers: str) -> subprocess.Popen[str]:
    """Processes of one command that take a block each; until their stdin ends."""
    child = krex.python(CROWD, str(count), *how, options=("-q",))
    assert child.stdout.readline() == f"{answers}\n"
    return child


def refused(krex: Krex) -> subprocess.Popen[str]:
    """One that found the board full, when there is room again."""
    full = crowd(krex, lib.KREX_BLOCKS, answers=f"{lib.KREX_BLOCKS} 0")
    one = crowd(krex, 1, answers="0 1")
    full.communicate("", timeout=DEADLINE_S)
    wait_for(lambda: not [p for d in krex.status()["devices"] for p in d["processes"]])
    return one


def test_a_full_board(krex: Krex) -> None:
    everybody = crowd(krex, lib.KREX_BLOCKS, answers=f"{lib.KREX_BLOCKS} 0")
    # GIVEN a board without a free block, THEN a process runs unprotected and says so once,
    result = regions(krex)
    assert result.returncode == 0
    [line] = result.stderr.splitlines()
    assert line.startswith("krex: this process runs unprotected: the device's board is full")
    assert "krex status" in line
    assert krex.records("r") == []
    # and its command, which has no records to show for it, does not meet --require.
    result = regions(krex, "--require")
    assert result.returncode == 125
    assert [line.partition(":")[0] for line in result.stderr.splitlines()] == ["krex", "krex"]
    assert "ran unprotected" in result.stderr.splitlines()[1]
    everybody.communicate("", timeout=DEADLINE_S)
    # WHEN there is room again, THEN all is as before.
    wait_for(lambda: not [p for d in krex.status()["devices"] for p in d["processes"]])
    assert (regions(krex, "--require").returncode, verdicts(krex)) == (0, [(True, [])] * 2)


@pytest.mark.parametrize(
    "strangers",
    [
        refused,
        lambda krex: crowd(krex, 1, "hangs-up", answers="1 0"),
    ],
    ids=["board full", "library cannot join"],
)
def test_a_region_beside_a_process_that_could_not_register_is_not_exclusive(
    krex: Krex, strangers: Callable[[Krex], subprocess.Popen[str]]
) -> None:
    # GIVEN a process that uses the device without being registered
    stranger = strangers(krex)
    beside = regions(krex)
    # THEN regions are not exclusive, which is said once,
    assert verdicts(krex) == [(False, ["unregistered_process"])] * 2
    assert beside.stderr.count("unregistered_process") == 1
    stranger.communicate("", timeout=DEADLINE_S)
    # and as soon as it has ended they are.
    assert regions(krex, "--require").returncode == 0


@needs_root
def test_a_process_with_a_clock_of_its_own(krex: Krex) -> None:
    # GIVEN a command whose CLOCK_MONOTONIC is ahead: to it, every lease has run out
    krex.base = ["unshare", "--time", "--monotonic", "100000", "--fork", *krex.base]
    result = regions(krex)
    assert result.returncode == 0
    [line] = result.stderr.splitlines()
    assert line.startswith("krex: running without protection: ") and "time namespace" in line
    assert regions(krex, "--require").returncode == 125


@needs_root
def test_a_process_that_the_controller_cannot_see(cli: Krex) -> None:
    # GIVEN a controller in a pid namespace below ours
    pytest.importorskip("pyopencl")
    base = cli.base
    cli.base = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *base]
    cli.start_controller()
    cli.base = base
    result = regions(cli)
    assert result.returncode == 0
    [line] = result.stderr.splitlines()
    assert line.startswith("krex: running without protection: ") and "pid namespace" in line
    assert "krex serve --system" in line
    assert regions(cli, "--require").returncode == 125
    # unshare itself passes no signal on
    [server] = Path(f"/proc/{cli.serve.pid}/task/{cli.serve.pid}/children").read_text().split()
    os.kill(int(server), signal.SIGTERM)
    cli.serve.wait(DEADLINE_S)


def test_a_fault_in_admission_is_said_and_the_command_runs(cli: Krex) -> None:
    # GIVEN a controller that fails while it admits a command
    script = (
        "from krex.controller.server import Server\n"
        "def fail(*_): raise ZeroDivisionError('on purpose')\n"
        "Server.make_group = fail\n"
        "from krex.cli import main; main(['serve'])"
    )
    serve = cli.popen(cli.python_path, "-c", script)
    wait_for(Path(cli.env["KREX_SOCKET"]).exists)
    # THEN krex run does not wait for an answer for ever
    result = cli("run", "--", "echo", "ran")
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert "without protection" in result.stderr and "on purpose" in result.stderr
    # and what failed keeps nobody's slot
    assert cli.status()["devices"][0]["slots_used"] == 0
    serve.terminate()
