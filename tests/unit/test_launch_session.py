# SPDX-License-Identifier: Apache-2.0
"""`krex run` as a process, against a controller that is a script in this file.

So each thing a controller may do, dying and stalling included, happens exactly when the test says.
"""

from __future__ import annotations

import json
import mmap
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DEADLINE_S = 20

# The library is a stand-in, so that these tests need no build.
DRIVER = """
import sys
import krex.paths
library = sys.argv.pop(1)
krex.paths.library_path = lambda: library
from krex.cli import main
main()
"""
STUB = """
#include <stdint.h>
#include <sys/mman.h>
void *krex_lease_open(int fd)
{
    void *board = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
    return board == MAP_FAILED ? 0 : board;
}
int64_t krex_lease_remaining_ns(void *board) { return *(volatile int64_t *)board; }
"""


class Connection:
    """The controller's end of one `krex run`."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        sock.settimeout(DEADLINE_S)

    def receive(self) -> dict[str, Any] | None:
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:  # gone, with something of ours unread
            return None
        return json.loads(data) if data else None

    def expect(self, operation: str) -> dict[str, Any]:
        message = self.receive()
        assert message is not None and message["op"] == operation, message
        return message

    def send(self, operation: str, *, fds: list[int] | None = None, **rest: Any) -> None:
        data = json.dumps({"op": operation, **rest}).encode()
        socket.send_fds(self.socket, [data], fds or [])

    def admit(self, **rest: Any) -> dict[str, Any]:
        """Admit the command; its `started` message."""
        answer: dict[str, Any] = {"command": "c7", "device": "cpu:0", "cgroup": None, "lacking": []}
        self.send("admitted", **{**answer, **rest})
        return self.expect("started")

    def finish(self) -> dict[str, Any]:
        ended = self.expect("ended")
        self.send("bye")
        return ended


Script = Callable[[Connection], None]


class Controller:
    """Listens, and plays one script a connection; `check` raises what went wrong in them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.requests: list[dict[str, Any]] = []
        self._failures: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(str(path))
        self._socket.listen(8)
        self._socket.settimeout(DEADLINE_S)

    def play(self, *scripts: Script) -> None:
        thread = threading.Thread(target=self._serve, args=(scripts,), daemon=True)
        thread.start()
        self._threads.append(thread)

    def check(self) -> None:
        for thread in self._threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()
        if self._failures:
            raise self._failures[0]

    def close(self) -> None:
        self._socket.close()

    def _serve(self, scripts: tuple[Script, ...]) -> None:
        try:
            for script in scripts:
                accepted, _ = self._socket.accept()
                with accepted:
                    connection = Connection(accepted)
                    request = connection.receive()
                    assert request is not None
                    self.requests.append(request)
                    script(connection)
        except BaseException as failure:  # noqa: BLE001 - raised again by check()
            self._failures.append(failure)


def plain(connection: Connection) -> None:
    connection.admit()
    connection.finish()


@pytest.fixture
def place() -> Iterator[Path]:
    # Not tmp_path: a socket's name has 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="krex-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def controller(place: Path) -> Iterator[Controller]:
    fake = Controller(place / "s")
    yield fake
    fake.close()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stub")
    (directory / "stub.c").write_text(STUB)
    path = directory / "libkrex.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", path, directory / "stub.c"], check=True, timeout=60
    )
    return path


class Runner:
    """Starts `krex` with the socket of the fake controller."""

    def __init__(self, place: Path, library: Path) -> None:
        self.base = [sys.executable, "-c", DRIVER, str(library)]
        kept = {name: text for name, text in os.environ.items() if not name.startswith("KREX_")}
        self.environment = {**kept, "KREX_SOCKET": str(place / "s"), "PYTHONPATH": str(ROOT)}

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        settings: dict[str, Any] = {"stdout": pipe, "stderr": pipe, "text": True}
        settings |= {"env": self.environment} | options
        return subprocess.Popen([*self.base, *words], **settings)

    def run(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        process = self.start("run", *words, **options)
        out, err = process.communicate(timeout=DEADLINE_S)
        return subprocess.CompletedProcess(words, process.returncode, out, err)


@pytest.fixture
def krex(place: Path, library: Path) -> Runner:
    return Runner(place, library)


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.005)
    raise AssertionError("did not happen in time")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# ---------------------------------------------------------------- the plain life of a command


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
)
def test_the_exit_status_is_the_commands(
    krex: Runner, controller: Controller, script: str, status: int
) -> None:
    ended: list[dict[str, Any]] = []
    controller.play(lambda c: (c.admit(), ended.append(c.finish()))[0])
    result = krex.run("--", "sh", "-c", script)
    controller.check()
    assert (result.returncode, result.stdout, result.stderr) == (status, "", "")
    assert ended == [{"op": "ended", "status": status}]


def test_the_request_says_what_the_user_asked(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    krex.environment["KREX_REGION"] = "whole"
    words = ["--device", "cpu:0", "--tenant", "t", "--exclusive", "none", "--max-wait", "1.5"]
    assert krex.run(*words, "--max-hold", "2", "--", "echo", "a b").stdout == "a b\n"
    controller.check()
    assert controller.requests == [
        {
            "op": "run",
            "protocol": 1,
            "argv": ["echo", "a b"],
            "tenant": "t",
            "device": "cpu:0",
            "exclusive": "none",
            "region": "whole",
            "max_wait_s": 1.5,
            "max_hold_s": 2.0,
        }
    ]


def test_the_defaults_of_a_request(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    krex.run("true")
    controller.check()
    (request,) = controller.requests
    assert request["exclusive"] == "region" and request["region"] == "auto"
    assert request["max_hold_s"] == 30.0 and request["max_wait_s"] is None
    assert request["tenant"] is None and request["device"] is None


def test_the_command_sees_its_environment(
    krex: Runner, controller: Controller, library: Path
) -> None:
    started: list[int] = []
    controller.play(lambda c: (started.append(c.admit()["pid"]), c.finish())[0])
    result = krex.run("--", "sh", "-c", "echo $$ $KREX_COMMAND $KREX_SOCKET $LD_PRELOAD")
    controller.check()
    assert result.stdout.split() == [
        str(started[0]), "c7", krex.environment["KREX_SOCKET"], str(library),
    ]  # fmt: skip


def test_the_command_inherits_no_descriptor_of_ours(
    krex: Runner, controller: Controller, place: Path
) -> None:
    board = os.memfd_create("board")
    os.ftruncate(board, 4096)
    controller.play(lambda c: (c.admit(fds=[board]), c.finish())[0])
    script = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"
    report = str(place / "r")
    result = krex.run("--report", report, "--", sys.executable, "-c", script)
    controller.check()
    # The fourth is the directory being listed.
    assert result.stdout == "['0', '1', '2', '3']\n"


def test_descriptors_of_the_caller_are_passed_on(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    read_end, write_end = os.pipe()
    script = f"import os; os.write({write_end}, b'hello')"
    krex.run("--", sys.executable, "-c", script, pass_fds=[write_end])
    controller.check()
    os.close(write_end)
    assert os.read(read_end, 100) == b"hello"
    os.close(read_end)


def test_closed_stdio_stays_closed(krex: Runner, controller: Controller, place: Path) -> None:
    controller.play(plain)
    script = "ls /proc/self/fd > seen; exit 3"
    words = [*krex.base, "run", "--report", "r", "--", "sh", "-c", script]
    result = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words],
        env=krex.environment,
        cwd=place,
        timeout=DEADLINE_S,
        check=False,
    )
    controller.check()
    assert result.returncode == 3
    # The shell's redirection is 1; ls opened the directory as the lowest free one.
    assert (place / "seen").read_text().split() == ["0", "1"]
    assert (place / "r").read_text() == ""


def test_signal_dispositions_are_those_we_were_started_with(
    krex: Runner, controller: Controller
) -> None:
    controller.play(plain)
    script = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
    direct = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    assert krex.run("--", "sh", "-c", script).stdout == direct.stdout
    controller.check()


def test_stdin_is_the_commands(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    process = krex.start("run", "--", "cat", stdin=subprocess.PIPE)
    assert process.communicate("through\n", timeout=DEADLINE_S)[0] == "through\n"
    controller.check()


def test_a_script_without_a_first_line_runs_as_in_a_shell(
    krex: Runner, controller: Controller, place: Path
) -> None:
    (place / "script").write_text("echo $1; exit 5\n")
    (place / "script").chmod(0o755)
    controller.play(plain)
    result = krex.run("--", str(place / "script"), "arg")
    controller.check()
    assert (result.returncode, result.stdout) == (5, "arg\n")


# ---------------------------------------------------------------- failures to start


@pytest.mark.parametrize(
    ("command", "status"), [("no-such-tool", 127), ("/no/such/tool", 127), ("/etc/passwd", 126)]
)
def test_a_command_that_cannot_run_is_refused_at_once(
    krex: Runner, command: str, status: int
) -> None:
    result = krex.run("--", command)
    assert result.returncode == status
    assert result.stderr.startswith("krex: ") and result.stderr.count("\n") == 1


def test_a_missing_interpreter_is_found_out_by_exec(
    krex: Runner, controller: Controller, place: Path
) -> None:
    (place / "script").write_text("#!/no/such/interpreter\n")
    (place / "script").chmod(0o755)
    controller.play(plain)
    result = krex.run("--", str(place / "script"))
    controller.check()
    assert result.returncode == 127 and "interpreter" in result.stderr


@pytest.mark.parametrize("words", [[], ["--"], ["--gpux", "0", "true"], ["--exclusive", "x", "a"]])
def test_usage_errors_are_2(krex: Runner, words: list[str]) -> None:
    result = krex.run(*words)
    assert result.returncode == 2 and "Usage: krex run" in result.stderr and not result.stdout


def test_an_unwritable_report_stops_us_before_the_start(krex: Runner, place: Path) -> None:
    result = krex.run("--report", "/no/such/r", "--", "touch", str(place / "ran"))
    assert result.returncode == 125 and "/no/such/r" in result.stderr
    assert not (place / "ran").exists()


def test_a_refusal_is_125_with_its_reason(krex: Runner, controller: Controller) -> None:
    controller.play(lambda c: c.send("error", message="there is no device cpu:9"))
    result = krex.run("--device", "cpu:9", "true")
    controller.check()
    assert result.returncode == 125 and "no device cpu:9" in result.stderr


def test_without_a_controller_the_command_runs_unprotected(krex: Runner) -> None:
    krex.environment["KREX_SOCKET"] = "/proc/none/s"
    result = krex.run("-q", "--", "sh", "-c", "echo $KREX_COMMAND; exit 4")
    assert (result.returncode, result.stdout) == (4, "\n")
    assert "without protection" in result.stderr and result.stderr.count("\n") == 1


def test_require_refuses_to_run_unprotected(krex: Runner) -> None:
    krex.environment["KREX_SOCKET"] = "/proc/none/s"
    result = krex.run("--require", "--", "echo", "ran")
    assert (result.returncode, result.stdout) == (125, "")


def test_an_older_controller_may_ask_us_to_run_unprotected(
    krex: Runner, controller: Controller
) -> None:
    controller.play(lambda c: c.send("error", message="another protocol", fail_open=True))
    result = krex.run("echo", "ran")
    controller.check()
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert "another protocol" in result.stderr


def test_a_controller_that_hangs_up_first_is_asked_again(
    krex: Runner, controller: Controller
) -> None:
    controller.play(lambda c: None, plain)
    assert krex.run("echo", "ran").stdout == "ran\n"
    controller.check()
    assert len(controller.requests) == 2


def test_krex_disable_takes_us_out_of_the_way(krex: Runner) -> None:
    krex.environment["KREX_DISABLE"] = "1"
    result = krex.run("--", "sh", "-c", "echo $KREX_COMMAND$LD_PRELOAD; exit 6")
    assert (result.returncode, result.stdout, result.stderr) == (6, "\n", "")


def test_a_static_program_is_warned_about_once(
    krex: Runner, controller: Controller, place: Path
) -> None:
    (place / "s.c").write_text("int main(void) { return 9; }\n")
    subprocess.run(["cc", "-static", "-o", place / "p", place / "s.c"], check=True, timeout=60)
    controller.play(plain)
    result = krex.run("--", str(place / "p"))
    controller.check()
    assert result.returncode == 9 and result.stderr.count("cannot be protected") == 1


# ---------------------------------------------------------------- nested


def test_a_nested_run_joins_the_enclosing_command(
    krex: Runner, controller: Controller, place: Path
) -> None:
    controller.play(plain)
    krex.environment["KREX_COMMAND"] = "c1"
    result = krex.run(
        "--report", "r", "--", "sh", "-c", "echo $KREX_COMMAND $KREX_REPORT", cwd=place
    )
    assert result.stdout == f"c1 {place}/r\n" and result.stderr == ""
    assert controller.requests == []


def test_nested_options_without_effect_say_so(krex: Runner, controller: Controller) -> None:
    krex.environment["KREX_COMMAND"] = "c1"
    result = krex.run("--require", "true")
    assert result.returncode == 125 and "give it to the outer krex run" in result.stderr
    result = krex.run("--device", "cpu:0", "true")
    assert result.returncode == 0 and "--device has no effect" in result.stderr


def test_a_left_over_krex_command_is_not_nested(krex: Runner) -> None:
    krex.environment |= {"KREX_COMMAND": "c1", "KREX_SOCKET": "/proc/none/s"}
    assert "without protection" in krex.run("true").stderr


# ---------------------------------------------------------------- waiting, words, records


def test_the_queue_is_visible(krex: Runner, controller: Controller) -> None:
    def script(connection: Connection) -> None:
        connection.send("waiting", place=3, why="16 commands run on cpu:0")
        connection.admit(lacking=["nothing can be frozen; run `krex doctor`"])
        connection.finish()

    controller.play(script, script, script)
    assert krex.run("true").stderr.splitlines() == [
        "krex: waiting, place 3: 16 commands run on cpu:0",
        "krex: nothing can be frozen; run `krex doctor`",
    ]
    assert krex.run("-q", "true").stderr == ""
    assert "krex: command c7 admitted to cpu:0\n" in krex.run("-v", "true").stderr
    controller.check()


def test_a_waiting_run_can_be_interrupted(krex: Runner, controller: Controller) -> None:
    waiting, gone = threading.Event(), threading.Event()

    def script(connection: Connection) -> None:
        connection.send("waiting", place=1, why="busy")
        waiting.set()
        assert connection.receive() is None
        gone.set()

    controller.play(script)
    process = krex.start("run", "true")
    assert waiting.wait(DEADLINE_S)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE_S)
    controller.check()
    assert process.returncode == -signal.SIGINT and "Traceback" not in err and gone.is_set()


def regions(connection: Connection) -> None:
    connection.admit()
    for index, exclusive in enumerate((True, False, False)):
        known = {"region_id": str(index), "name": "loop"}
        connection.send("region_open", record=known)
        reasons = [] if exclusive else ["sibling_not_frozen"]
        connection.send("region", record={**known, "exclusive": exclusive, "reasons": reasons})
    connection.finish()


def test_records_are_reported_and_summed_up(
    krex: Runner, controller: Controller, place: Path
) -> None:
    controller.play(regions, regions)
    result = krex.run("--report", "r", "--", "sleep", "0.1", cwd=place)
    assert result.returncode == 0
    assert result.stderr == (
        "krex: 2 of 3 regions not exclusive, mostly: sibling_not_frozen (all in r)\n"
    )
    records = [json.loads(line) for line in (place / "r").read_text().splitlines()]
    assert [record["exclusive"] for record in records] == [True, False, False]
    result = krex.run("-q", "--require", "--", "true")
    controller.check()
    assert result.returncode == 125
    assert "2 of 3 regions were not exclusive" in result.stderr


def test_verbose_tells_each_region(krex: Runner, controller: Controller) -> None:
    controller.play(regions)
    result = krex.run("-v", "true")
    controller.check()
    assert result.stderr.count("region loop: ") == 3


def test_a_full_disk_does_not_stop_the_command(krex: Runner, controller: Controller) -> None:
    controller.play(regions)
    result = krex.run("--report", "/dev/full", "--", "sh", "-c", "exit 3")
    controller.check()
    assert result.returncode == 3 and "cannot write to /dev/full" in result.stderr


# ---------------------------------------------------------------- a controller that dies or stalls


def test_the_end_of_the_controller_ends_open_records(
    krex: Runner, controller: Controller, place: Path
) -> None:
    def script(connection: Connection) -> None:
        connection.admit()
        connection.send("region_open", record={"region_id": "1", "wait_s": 0.25})

    controller.play(script, script)
    words = ["--", "sh", "-c", "sleep 0.3; exit 8"]
    result = krex.run("--report", "r", *words, cwd=place)
    assert result.returncode == 8
    assert json.loads((place / "r").read_text()) == {
        "region_id": "1", "wait_s": 0.25, "exclusive": False, "reasons": ["controller_lost"],
    }  # fmt: skip
    assert "controller is gone" in result.stderr
    assert krex.run("--require", *words).returncode == 125
    controller.check()


def test_require_does_not_vouch_for_what_a_lost_controller_missed(
    krex: Runner, controller: Controller
) -> None:
    controller.play(lambda c: c.admit() and None)
    assert krex.run("--require", "sleep", "0.3").returncode == 125
    controller.check()


def test_a_silent_controller_delays_the_end_by_a_second_at_most(
    krex: Runner, controller: Controller
) -> None:
    def script(connection: Connection) -> None:
        connection.admit()
        connection.expect("ended")
        assert connection.receive() is None

    controller.play(script)
    before = time.monotonic()
    assert krex.run("true").returncode == 0
    assert time.monotonic() - before < 3
    controller.check()


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup v2 group of our own, in the unified or the hybrid hierarchy."""
    for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        group = root / f"krex-test-{os.getpid()}-{threading.get_ident()}"
        if not (root / "cgroup.procs").exists():
            continue
        try:
            group.mkdir()
        except OSError:
            continue
        if not (group / "cgroup.freeze").exists():
            group.rmdir()
            continue
        yield group
        if not group.exists():
            return  # a run whose controller died removed it
        (group / "cgroup.freeze").write_text("0")
        members = group / "cgroup.procs"
        wait_for(lambda members=members: not members.read_text())
        group.rmdir()
        return
    pytest.skip("no cgroup v2 group can be made here")


def is_frozen(group: Path) -> bool:
    return "frozen 1" in (group / "cgroup.events").read_text()


def test_the_command_is_born_in_its_cgroup(
    krex: Runner, controller: Controller, cgroup: Path
) -> None:
    controller.play(lambda c: (c.admit(cgroup=str(cgroup)), c.finish())[0])
    result = krex.run("--", "grep", "^0::", "/proc/self/cgroup")
    controller.check()
    assert result.stdout == f"0::/{cgroup.name}\n" and result.stderr == ""


def test_a_lost_cgroup_is_survived(krex: Runner, controller: Controller) -> None:
    controller.play(lambda c: (c.admit(cgroup="/no/such/cgroup"), c.finish())[0])
    result = krex.run("echo", "ran")
    controller.check()
    assert result.stdout == "ran\n" and "cannot be frozen" in result.stderr


def test_a_frozen_command_is_thawed_when_the_controller_dies(
    krex: Runner, controller: Controller, cgroup: Path
) -> None:
    def script(connection: Connection) -> None:
        connection.admit(cgroup=str(cgroup))
        (cgroup / "cgroup.freeze").write_text("1")
        wait_for(lambda: is_frozen(cgroup))

    controller.play(script)
    assert krex.run("--", "sh", "-c", "sleep 0.2; exit 5").returncode == 5
    controller.check()


def test_a_command_may_be_born_frozen(krex: Runner, controller: Controller, cgroup: Path) -> None:
    (cgroup / "cgroup.freeze").write_text("1")

    def script(connection: Connection) -> None:
        pid = connection.admit(cgroup=str(cgroup))["pid"]
        assert str(pid) in (cgroup / "cgroup.procs").read_text().split()
        (cgroup / "cgroup.freeze").write_text("0")
        connection.finish()

    controller.play(script)
    assert krex.run("echo", "ran").stdout == "ran\n"
    controller.check()


def test_a_frozen_command_is_thawed_when_the_lease_runs_out(
    krex: Runner, controller: Controller, cgroup: Path
) -> None:
    board = os.memfd_create("board")
    os.ftruncate(board, 4096)
    words = mmap.mmap(board, 4096)
    words[:8] = struct.pack("=q", 10**9)

    def script(connection: Connection) -> None:
        connection.admit(cgroup=str(cgroup), fds=[board])
        (cgroup / "cgroup.freeze").write_text("1")
        wait_for(lambda: is_frozen(cgroup))
        time.sleep(0.7)
        assert is_frozen(cgroup)  # the lease holds, and so does the freeze
        words[:8] = struct.pack("=q", -1)
        connection.finish()

    controller.play(script)
    result = krex.run("--", "sh", "-c", "sleep 0.2; exit 5")
    controller.check()
    assert result.returncode == 5 and "lease" in result.stderr


# ---------------------------------------------------------------- signals

COUNTER = """
import os, signal, sys, time
seen = []
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), lambda number, _: seen.append(number))
print("ready", flush=True)
time.sleep(0.5) if not sys.argv[1:] else None
while not seen:
    time.sleep(0.01)
time.sleep(0.3)
print(*[signal.Signals(number).name for number in seen], flush=True)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGRTMIN", "SIGQUIT"])
def test_a_signal_sent_to_us_is_passed_on_once(
    krex: Runner, controller: Controller, name: str
) -> None:
    controller.play(plain)
    process = krex.start("run", "--", sys.executable, "-c", COUNTER, name)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=DEADLINE_S)
    controller.check()
    assert (process.returncode, out, err) == (0, f"{name}\n", "")


def test_a_terminated_run_exits_143(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    process = krex.start("run", "--", "sh", "-c", "echo ready; exec sleep 60")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.terminate()
    process.communicate(timeout=DEADLINE_S)
    controller.check()
    assert process.returncode == 143


def test_ctrl_c_reaches_the_command_once(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    pid, terminal = pty.fork()
    if pid == 0:
        words = [*krex.base, "run", "--", sys.executable, "-c", COUNTER, "SIGINT"]
        os.execve(words[0], words, krex.environment)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    controller.check()
    seen += os.read(terminal, 1000)
    assert os.waitstatus_to_exitcode(status) == 0
    assert seen.count(b"SIGINT") == 1
    os.close(terminal)


def test_ctrl_c_ends_an_ordinary_command_with_130(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    pid, terminal = pty.fork()
    if pid == 0:
        words = [*krex.base, "run", "--", "sh", "-c", "echo ready; exec sleep 60"]
        os.execve(words[0], words, krex.environment)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    controller.check()
    assert os.waitstatus_to_exitcode(status) == 130
    os.close(terminal)


def test_job_control_stops_and_continues_both(krex: Runner, controller: Controller) -> None:
    started: list[int] = []
    controller.play(lambda c: (started.append(c.admit()["pid"]), c.finish())[0])
    # In a session of its own the group would be orphaned, and the kernel drop the stop.
    process = krex.start("run", "--", "sleep", "1", process_group=0)
    wait_for(lambda: started)
    wait_for(lambda: state_of(started[0]) == "S")
    process.send_signal(signal.SIGTSTP)
    wait_for(lambda: state_of(started[0]) == "T" and state_of(process.pid) == "T")
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=DEADLINE_S)
    controller.check()
    assert process.returncode == 0


def test_a_command_that_somebody_stops_does_not_stop_us(
    krex: Runner, controller: Controller
) -> None:
    started: list[int] = []
    controller.play(lambda c: (started.append(c.admit()["pid"]), c.finish())[0])
    process = krex.start("run", "--", "sleep", "0.3")
    wait_for(lambda: started)
    os.kill(started[0], signal.SIGSTOP)
    wait_for(lambda: state_of(started[0]) == "T")
    time.sleep(0.1)
    assert state_of(process.pid) == "S"
    os.kill(started[0], signal.SIGCONT)
    process.communicate(timeout=DEADLINE_S)
    controller.check()
    assert process.returncode == 0


def test_an_ignored_sigchld_is_survived_and_passed_on(krex: Runner, controller: Controller) -> None:
    controller.play(plain)
    setup = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
    setup += "os.execv(sys.argv[1], sys.argv[1:])"
    # Not by a shell, which has its own mind about SIGCHLD.
    words = [*krex.base, "run", "--", "grep", "SigIgn", "/proc/self/status"]
    result = subprocess.run(
        [sys.executable, "-c", setup, *words],
        env=krex.environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    controller.check()
    assert result.returncode == 0
    assert int(result.stdout.split()[1], 16) >> (signal.SIGCHLD - 1) & 1


# ---------------------------------------------------------------- the front

STATUS = {
    "schema": "krex.status",
    "schema_version": 1,
    "controller": {"pid": 1, "version": "0", "socket": "/s", "started_unix_s": 0.0},
    "devices": [
        {
            "device": "cpu:0",
            "gate": "closed",
            "epoch": 7,
            "hold": {"hold_id": "h", "command": "c1", "since_s": 0.25, "marks": 2},
            "queue": [{"command": "c2", "pid": 12, "waited_s": 1.5}],
            "processes": [
                {"pid": 11, "command": "c1", "state": "active", "clean": False, "submissions": 9}
            ],
        }
    ],
    "commands": [
        {
            "command": "c1",
            "tenant": "me",
            "argv": ["python", "a b.py"],
            "device": "cpu:0",
            "root_pid": 11,
            "frozen": False,
            "frozen_s": 0.5,
            "cgroup": None,
        }
    ],
}


def cli(krex: Runner, *words: str) -> subprocess.CompletedProcess[str]:
    process = krex.start(*words)
    out, err = process.communicate(timeout=DEADLINE_S)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def test_status_shows_tables_and_json(krex: Runner, controller: Controller) -> None:
    def script(connection: Connection) -> None:
        connection.send("status", status=STATUS)

    controller.play(script, script)
    result = cli(krex, "status", "--json")
    assert result.returncode == 0 and json.loads(result.stdout) == STATUS
    result = cli(krex, "status")
    controller.check()
    assert result.returncode == 0
    for text in (
        "cpu:0: gate closed (epoch 7)",
        "held by c1 for 0.25 s",
        "place 1: c2",
        "'a b.py'",
    ):
        assert text in result.stdout


def test_status_without_a_controller_is_1(krex: Runner) -> None:
    result = cli(krex, "status")
    assert result.returncode == 1 and "no controller runs" in result.stderr and not result.stdout
    result = cli(krex, "status", "--json")
    found = json.loads(result.stdout)
    assert result.returncode == 1 and found["schema"] == "krex.status"
    assert found["schema_version"] == 1 and found["controller"] is None


def test_help_lists_the_commands_and_imports_none(krex: Runner) -> None:
    result = cli(krex, "--help")
    assert result.returncode == 0
    for name in ("run", "serve", "status", "lib-path"):
        assert f"\n  {name} " in result.stdout
    script = (
        "import sys; from krex.cli.group import group; group(['--help'], standalone_mode=False);"
        "print([name for name in sys.modules if name.startswith(('krex.cli', 'krex.launch'))])"
    )
    listed = subprocess.run(
        [sys.executable, "-c", script],
        env=krex.environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert listed.stdout.endswith("['krex.cli', 'krex.cli.group']\n")


def test_a_misspelt_command_is_a_usage_error(krex: Runner) -> None:
    result = cli(krex, "statsu")
    assert result.returncode == 2 and "statsu" in result.stderr


def test_a_run_imports_neither_click_nor_anything_heavy(
    krex: Runner, controller: Controller
) -> None:
    controller.play(plain)
    hook = "import os; leave = os._exit\n"
    hook += "os._exit = lambda status: (print(*sys.modules, flush=True), leave(status))"
    krex.base[2] = DRIVER.replace("main()", f"{hook}\nmain()")
    loaded = set(krex.run("true").stdout.split())
    controller.check()
    assert "krex.launch.session" in loaded
    heavy = {"click", "typing", "dataclasses", "inspect", "subprocess", "asyncio", "pathlib"}
    assert loaded & heavy == set()
