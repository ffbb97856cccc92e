# SPDX-License-Identifier: Apache-2.0
"""One controller for the machine; commands of other users, in namespaces of their own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import PROGRAM, Krex
from support.sandbox import NOBODY, as_user, needs_freezer, needs_root, needs_setpriv
from support.waiting import DEADLINE_S, wait_for

from krex.protect.freezer import cgroup_of, find_base

pytestmark = [needs_root, needs_setpriv, needs_freezer]

HERE = Path(__file__).parent
BUSY = HERE / "busy_program.py"
SOMEBODY = 65533
REGIONS = 4
CGROUP2 = next(
    (
        line.split()[1]
        for line in Path("/proc/self/mounts").read_text().splitlines()
        if line.split()[2] == "cgroup2"
    ),
    "",
)


class Container:
    """Words that run a command as another user, in own pid, mount and cgroup namespaces.

    The controller's socket is mounted where it is looked for; cgroups are read-only, and /dev/shm
    is empty: as in a container of Docker's or Kubernetes'.
    """

    def __init__(self, host: Krex, user: int) -> None:
        self.host, self.user = host, user
        self.home = host.folder / f"home-{uuid.uuid4().hex[:6]}"
        self.home.mkdir()
        os.chown(self.home, user, user)
        self.env = {**host.env, "HOME": str(self.home), "XDG_CACHE_HOME": str(self.home)}
        self.env.pop("KREX_SOCKET")
        self.env.pop("XDG_RUNTIME_DIR", None)

    def words(self, *command: str, join: str = "") -> list[str]:
        """`join`: a cgroup to enter first."""
        script = f"""
            {f"echo $$ > {join}/cgroup.procs" if join else ""}
            exec unshare --pid --mount --cgroup --fork --kill-child --mount-proc sh -ec '
            mount -t tmpfs none /run
            mkdir -p /run/krex
            mount --bind {self.host.folder}/run /run/krex
            mount -o remount,bind,ro /run/krex
            mount -o remount,bind,ro {CGROUP2}
            mount -t tmpfs -o ro none /dev/shm
            mount -t tmpfs -o mode=1777 none /mnt
            exec "$@"' sh "$@"
            """
        return ["sh", "-ec", script, "sh", *as_user(self.user), *command]

    def start(self, *command: str, join: str = "", **env: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            self.words(*command, join=join),
            env=self.env | env,
            cwd=self.home,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        self.host.started.append(child)
        return child

    def krex_run(self, program: Path, *words: str, **how: Any) -> subprocess.Popen[str]:
        options = how.pop("options", ())
        run = [*self.host.base, "run", *options, "--", self.host.python_path, str(program)]
        return self.start(*run, *words, **how)

    def records(self, name: str = "r") -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.home / name).read_text().splitlines()]


@pytest.fixture
def host(place: Path) -> Iterator[Krex]:
    """The machine, on which root runs `krex serve --system`."""
    pytest.importorskip("pyopencl")
    place.chmod(0o755)
    (place / "run").mkdir(mode=0o755)
    host = Krex(place)
    host.env["KREX_SOCKET"] = str(place / "run/control.sock")
    try:
        host.start_controller("--system")
        wait_for(lambda: Path(host.env["KREX_SOCKET"]).stat().st_mode & 0o006)
        yield host
    finally:
        host.close()


def finish(child: subprocess.Popen[str], said: str = "") -> dict[str, Any]:
    out, err = child.communicate(said, timeout=DEADLINE_S)
    assert child.returncode == 0, err
    return json.loads(out)


def check(records: list[dict[str, Any]], holder: dict[str, Any], sibling: dict[str, Any]) -> None:
    """All but one exclusive at least, with the sibling frozen, and none of its kernels inside."""
    assert len(records) == REGIONS
    assert sum(r["exclusive"] for r in records) >= REGIONS - 1, [r["reasons"] for r in records]
    assert len(sibling["kernels"]) > 5
    for record, (begin, end) in zip(records, holder["regions"], strict=True):
        if record["exclusive"]:
            assert [k for k in sibling["kernels"] if k[0] < end and k[1] > begin] == []
            frozen = record["siblings"]
            assert (frozen["commands_frozen"], frozen["processes_not_frozen"]) == (1, 0)


# ---------------------------------------------------------------- exclusive, in all directions


def test_a_region_in_a_container_is_exclusive_beside_a_command_on_the_host(host: Krex) -> None:
    sibling = host.python(BUSY, "device")
    assert sibling.stdout.readline() == "ready\n"
    container = Container(host, NOBODY)
    mine = finish(container.krex_run(PROGRAM, str(REGIONS), options=("--report", "r")))
    check(container.records(), mine, json.loads(sibling.communicate("", DEADLINE_S)[0]))
    for record in container.records():
        # THEN records name user and process as the controller sees them, not the container
        assert record["tenant"] == str(NOBODY)
        assert record["pid"] > mine["pid"]


def test_a_region_on_the_host_is_exclusive_beside_a_command_in_a_container(host: Krex) -> None:
    container = Container(host, NOBODY)
    sibling = container.krex_run(BUSY, "device")
    assert sibling.stdout.readline() == "ready\n"
    holder = host.program("--report", str(host.folder / "r"), regions=REGIONS)
    mine = json.loads(holder.communicate(timeout=DEADLINE_S)[0])
    check(host.records("r"), mine, finish(sibling))


def test_two_containers_of_two_users(host: Krex) -> None:
    sibling = Container(host, SOMEBODY).krex_run(BUSY, "device")
    assert sibling.stdout.readline() == "ready\n"
    container = Container(host, NOBODY)
    mine = finish(container.krex_run(PROGRAM, str(REGIONS), options=("--report", "r")))
    check(container.records(), mine, finish(sibling))


def test_a_computing_command_in_a_container_stands_still(host: Krex) -> None:
    # It never waits at the gate: only being frozen keeps it off the cores.
    sibling = Container(host, NOBODY).krex_run(BUSY, "processor")
    assert sibling.stdout.readline() == "ready\n"
    holder = host.program("--report", str(host.folder / "r"), regions=REGIONS)
    holder.communicate(timeout=DEADLINE_S)
    sibling.communicate("", timeout=DEADLINE_S)
    assert [r["reasons"] for r in host.records("r")].count([]) >= REGIONS - 1


# ---------------------------------------------------------------- where the group is


@pytest.fixture
def outer() -> Iterator[Path]:
    """The cgroup that a runtime made for a container."""
    base = find_base()
    assert base is not None
    group = base / f"krex-test-{uuid.uuid4().hex[:8]}"
    group.mkdir()
    yield group
    group.rmdir()  # fails if anything is left in it


def test_the_group_is_inside_that_of_the_container(host: Krex, outer: Path) -> None:
    # GIVEN a container in a cgroup of its own, whose limits hold for what is below it
    sibling = Container(host, NOBODY).krex_run(BUSY, "device", join=str(outer))
    assert sibling.stdout.readline() == "ready\n"
    [command] = host.status()["commands"]
    assert Path(command["cgroup"]).parent == outer
    assert cgroup_of(command["root_pid"]) == Path(command["cgroup"])
    # Its `krex run` is not in it.
    members = (outer / "cgroup.procs").read_text().split()
    assert str(command["root_pid"]) not in members and members
    finish(sibling)
    wait_for(lambda: not host.status()["commands"])
    wait_for(lambda: not [path for path in outer.iterdir() if path.is_dir()])
    wait_for(lambda: not (outer / "cgroup.procs").read_text())


def test_the_command_is_in_its_group_before_it_runs(host: Krex) -> None:
    words = [*host.base, "run", "--", "grep", "^0::", "/proc/self/cgroup"]
    out, err = Container(host, NOBODY).start(*words).communicate(timeout=DEADLINE_S)
    assert "/krex-c-" in out and err == ""


def test_a_frozen_container_goes_on_when_the_controller_dies(host: Krex) -> None:
    # GIVEN a command of another user, frozen, which has no right to that cgroup of root's
    sibling = Container(host, NOBODY).krex_run(BUSY, "processor")
    assert sibling.stdout.readline() == "ready\n"
    [command] = host.status()["commands"]
    holder = host.program(regions=1, how="pause")
    assert holder.stdout.readline() == "inside\n"
    events = Path(command["cgroup"], "cgroup.events")
    assert "frozen 1" in events.read_text()
    # WHEN the controller is killed, THEN its `krex run` lets it go on
    host.serve.send_signal(signal.SIGKILL)
    host.serve.wait(DEADLINE_S)
    wait_for(lambda: "frozen 0" in events.read_text())
    holder.communicate("\n", timeout=DEADLINE_S)
    _, err = sibling.communicate("", timeout=DEADLINE_S)
    assert sibling.returncode == 0 and "without protection" in err
    # and the next controller removes what it could not.
    host.start_controller("--system")
    wait_for(lambda: not events.exists())


# ---------------------------------------------------------------- users are told apart


def test_another_users_process_cannot_claim_to_belong_to_a_command(host: Krex) -> None:
    mine = host.python(BUSY, "device")
    assert mine.stdout.readline() == "ready\n"
    [command] = host.status()["commands"]
    # GIVEN a process of somebody else's that knows its name
    library = host("lib-path").stdout.strip()
    claim = {"LD_PRELOAD": library, "KREX_COMMAND": command["command"]}
    container = Container(host, SOMEBODY)
    other = container.start(host.python_path, str(BUSY), "device", **claim)
    assert other.stdout.readline() == "ready\n"
    # THEN it is counted for itself
    processes = {p["command"] for d in host.status()["devices"] for p in d["processes"]}
    assert len(processes) == 2 and command["command"] in processes
    tenants = {c["command"]: c["tenant"] for c in host.status()["commands"]}
    assert sorted(tenants.values()) == ["0", str(SOMEBODY)]
    # and so is one of the same user's, which may.
    same = host.popen(host.python_path, str(BUSY), "device", **claim)
    assert same.stdout.readline() == "ready\n"
    assert len(host.status()["commands"]) == 2
    for child in (other, same, mine):
        child.communicate("", timeout=DEADLINE_S)


def test_nobody_is_another_users_tenant_or_sees_their_command_line(host: Krex) -> None:
    mine = host.python(BUSY, "device", options=("--tenant", "team"))
    assert mine.stdout.readline() == "ready\n"
    theirs = Container(host, NOBODY).krex_run(BUSY, "device", options=("--tenant", "0/team"))
    assert theirs.stdout.readline() == "ready\n"
    shown = {c["tenant"]: c["argv"] for c in host.status()["commands"]}
    assert set(shown) == {"0/team", f"{NOBODY}/0/team"} and all(shown.values())
    asked = Container(host, NOBODY).start(*host.base, "status", "--json")
    shown = {c["tenant"]: c["argv"] for c in finish(asked)["commands"]}
    assert shown["0/team"] == [] and shown[f"{NOBODY}/0/team"] != []
    mine.communicate("", timeout=DEADLINE_S)
    finish(theirs)


def test_a_group_keeps_others_out(host: Krex) -> None:
    host.stop_controller()
    host.start_controller("--system", "--group", "nogroup")  # NOBODY's
    member = Container(host, NOBODY).start(*host.base, "run", "--", "echo", "ran")
    out, err = member.communicate(timeout=DEADLINE_S)
    assert (member.returncode, out, err) == (0, "ran\n", "")
    env = {"KREX_SOCKET": host.env["KREX_SOCKET"]}
    other = Container(host, SOMEBODY).start(*host.base, "run", "--", "echo", "ran", **env)
    out, err = other.communicate(timeout=DEADLINE_S)
    assert (other.returncode, out) == (0, "ran\n")
    assert "without protection" in err and "Permission denied" in err


# ---------------------------------------------------------------- KREX_REPORT


def preloaded(container: Container, script: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in which "$@" is a program with regions that has the library preloaded."""
    library = container.host("lib-path").stdout.strip()
    program = [container.host.python_path, str(PROGRAM), "2"]
    script = f'export LD_PRELOAD={library}\n"$@" > /dev/null\nunset LD_PRELOAD\n{script}'
    child = container.start("sh", "-ec", script, "sh", *program, **env)
    out, err = child.communicate(timeout=DEADLINE_S)
    return subprocess.CompletedProcess(script, child.returncode, out, err)


def test_a_report_is_written_where_the_client_sees_it(host: Krex) -> None:
    # GIVEN a path in a file system that only the container has mounted
    container = Container(host, NOBODY)
    wait = 'while [ "$(wc -l < /mnt/r)" -lt 2 ]; do sleep 0.05; done; stat -c %u /mnt/r; cat /mnt/r'
    result = preloaded(container, wait, KREX_REPORT="/mnt/r")
    owner, *lines = result.stdout.splitlines()
    assert (result.returncode, owner) == (0, str(NOBODY))
    assert [json.loads(line)["tenant"] for line in lines] == [str(NOBODY)] * 2
    assert not Path("/mnt/r").exists()


def test_a_report_is_written_with_the_clients_rights_only(host: Krex) -> None:
    # GIVEN a file that the controller may write to, and the client may not
    target = host.folder / "precious"
    target.write_text("kept\n")
    result = preloaded(Container(host, NOBODY), "", KREX_REPORT=str(target))
    assert result.returncode == 0
    [line] = result.stderr.splitlines()
    assert "cannot write to KREX_REPORT" in line
    assert target.read_text() == "kept\n"


def test_a_report_that_takes_nothing_holds_up_nobody(host: Krex) -> None:
    # GIVEN a pipe that is full
    container = Container(host, NOBODY)
    pipe = container.home / "pipe"
    os.mkfifo(pipe)
    os.chown(pipe, NOBODY, NOBODY)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        with contextlib.suppress(BlockingIOError):
            while os.write(reader, bytes(4096)):
                pass
        assert preloaded(container, "", KREX_REPORT=str(pipe)).returncode == 0
        # THEN the controller goes on
        assert host.program("--require", regions=1).wait(DEADLINE_S) == 0
    finally:
        os.close(reader)


# A client with a report that blocks, and a region.
BLOCKING = """
import os, socket, sys
from krex.native import ffi, lib
ends = os.pipe()
os.set_blocking(ends[1], False)
try:
    while os.write(ends[1], bytes(4096)):
        pass
except BlockingIOError:
    os.set_blocking(ends[1], True)
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect("/run/krex/control.sock")
def say(kind, fds):
    message = ffi.new("struct krex_wire *", {"magic": lib.KREX_WIRE_MAGIC, "type": kind})
    socket.send_fds(client, [bytes(ffi.buffer(message))], fds)
say(lib.KREX_WIRE_HELLO, [ends[1]])
client.recv(4096)
say(lib.KREX_WIRE_ENTER, [])
say(lib.KREX_WIRE_LEAVE, [])
print("left", flush=True)
sys.stdin.readline()
"""


def test_a_client_with_a_report_that_blocks_holds_up_nobody(host: Krex) -> None:
    client = Container(host, NOBODY).start(host.python_path, "-c", BLOCKING)
    assert client.stdout.readline() == "left\n"
    # THEN the controller goes on: it is another process that waits
    assert host.program(regions=1).wait(DEADLINE_S) == 0
    assert host.status()["controller"]
    client.communicate("", timeout=DEADLINE_S)


# ---------------------------------------------------------------- finding it


def test_a_controller_of_ones_own_is_preferred(place: Path) -> None:
    # GIVEN the machine's controller at its usual place (of a mount namespace of this test's own)
    krex = Krex(place)
    for name in ("KREX_SOCKET", "XDG_RUNTIME_DIR"):
        krex.env.pop(name, None)
    krex.env["XDG_RUNTIME_DIR"] = str(place)
    run = " ".join(krex.base)
    script = f"""
        mount -t tmpfs none /run
        {run} serve --system 2>/dev/null & system=$!
        while [ ! -S /run/krex/control.sock ]; do sleep 0.02; done
        {run} status | head -1
        {run} run -- {run} status | head -1
        {run} serve 2>/dev/null & own=$!
        while [ ! -S {place}/krex/control.sock ]; do sleep 0.02; done
        {run} status | head -1
        kill $own; wait $own
        {run} status | head -1
        kill -KILL $system
    """
    words = ["unshare", "--mount", "sh", "-ec", script]
    result = subprocess.run(
        words, env=krex.env, capture_output=True, text=True, timeout=DEADLINE_S, cwd=place
    )
    assert (result.returncode, result.stderr) == (0, "")
    sockets = [line.split()[-1] for line in result.stdout.splitlines()]
    system, own = "/run/krex/control.sock", f"{place}/krex/control.sock"
    assert sockets == [system, system, own, system]
    shutil.rmtree(place / "krex", ignore_errors=True)
