# SPDX-License-Identifier: Apache-2.0
"""Commands of several processes. Each process prints one line when it is done (device_work.report).

The first argument says how the processes come to be. PoCL does not work in the child of a process
that has used it, so a process that forks gets its context afterwards; until then it is registered
by a region.
"""

import contextlib
import multiprocessing
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from device_work import Work

import krex

REGIONS = 2


def leaf(role: str = "leaf") -> None:
    """What a process without children does."""
    work = Work()
    for index in range(REGIONS):
        work.burst(5)
        work.timed(f"{role}-{index}")
    work.report(role)


def register() -> None:
    """Be known to the controller, without a context."""
    with krex.region("registers"):
        pass


def in_child(function: Callable[[], None]) -> int:
    """Fork a child that does this and nothing else; its pid."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        function()
        status = 0
    finally:
        os._exit(status)


def reap(pid: int) -> None:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def busy_while(goes_on: Callable[[], bool]) -> None:
    """Be a sibling that never stops submitting, and then a holder."""
    work = Work()
    while goes_on():
        work.burst(2)
    work.timed("parent")
    work.report("parent")


def busy() -> None:
    """A sibling until its stdin ends."""
    work = Work()
    work.burst(5)
    print("busy", flush=True)
    while not select.select([0], [], [], 0)[0]:
        work.burst(2)
    work.report("busy")


def fork() -> None:
    register()
    pid = in_child(lambda: leaf("child"))
    busy_while(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None)
    reap(pid)


def fork_exec() -> None:
    register()
    child = subprocess.Popen([sys.executable, __file__, "leaf"])
    busy_while(lambda: child.poll() is None)
    assert child.returncode == 0


def replaced() -> None:
    """Become another of these, with work submitted that nobody waited for."""
    work = Work()
    work.timed("before")
    work.submit(2)
    os.execv(sys.executable, [sys.executable, __file__, sys.argv[2]])


def workers(method: str) -> None:
    register()
    context = multiprocessing.get_context(method)
    started = [context.Process(target=leaf, args=(f"worker-{i}",)) for i in range(2)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0, 0]


def daemon() -> None:
    """Leave a process behind that shares nothing with the command but its group."""
    register()
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 4096)
    os.open("/dev/null", os.O_RDWR)
    out = os.open("daemon.out", os.O_WRONLY | os.O_CREAT)
    os.dup2(out, 1)
    os.dup2(out, 2)
    work = Work()
    work.burst(2)
    Path("daemon.pid").write_text(str(os.getpid()))
    deadline = time.monotonic() + 30  # of a test that failed
    while not Path("daemon.stop").exists() and time.monotonic() < deadline:
        work.burst(2)
    work.report("daemon")


def threads() -> None:
    """Two regions at once, neither of which ends without the other, when told to."""
    work = Work()
    work.burst(1)
    both = threading.Barrier(2)

    def run(name: str) -> None:
        with work.region(name):
            both.wait()
            work.burst(5)

    print("ready", flush=True)
    sys.stdin.readline()
    started = [threading.Thread(target=run, args=(f"thread-{i}",)) for i in range(2)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    work.report("threads")


@contextlib.contextmanager
def holder_of_the_same_command() -> Iterator[None]:
    """A process that is in a region until our stdin ends; nobody of its command is frozen."""
    inside_read, inside_write = os.pipe()

    def first() -> None:
        with krex.region("first"):
            os.write(inside_write, b"!")
            sys.stdin.readline()

    register()
    holder = in_child(first)
    os.read(inside_read, 1)
    yield
    reap(holder)


def threads_behind() -> None:
    """The same behind a holder."""
    words = [sys.executable, __file__, "threads"]
    pipe = subprocess.PIPE
    waiting = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)
    assert waiting.stdout.readline() == "ready\n"
    with holder_of_the_same_command():
        waiting.communicate("go\n")


def waits_behind() -> None:
    """A region behind a holder."""

    def second() -> None:
        try:
            with krex.region("second"):
                print("second", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)

    with holder_of_the_same_command():
        print("first", flush=True)
        reap(in_child(second))
    print("over", flush=True)


def asked() -> None:
    """A region when told to."""
    work = Work()
    work.burst(1)
    print("ready", flush=True)
    sys.stdin.readline()
    work.timed("asked")


def pauses() -> None:
    """A region when told to, until told again."""
    register()
    print("ready", flush=True)
    sys.stdin.readline()
    with krex.region("pauses"):
        print("inside", flush=True)
        sys.stdin.readline()


def loaded() -> None:
    """A sibling that has a lot of work outstanding, and submits no more."""
    work = Work()
    work.burst(1)
    work.submit(1500)
    print("loaded", flush=True)
    sys.stdin.readline()


def crowd() -> None:
    """More threads in regions than the board has marks for."""
    everybody = threading.Barrier(12)

    def run() -> None:
        with krex.region("crowd"):
            everybody.wait()

    started = [threading.Thread(target=run) for _ in range(12)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def thread_ends_inside() -> None:
    """A thread forgets to leave its region; its process goes on."""
    thread = threading.Thread(target=lambda: krex.region("forgotten").__enter__())
    thread.start()
    thread.join()
    print("ended", flush=True)
    sys.stdin.readline()


def child_inside() -> None:
    """An early and a late child work inside the parent's region, which waits for both of them."""

    def early() -> None:
        work = Work()
        with os.fdopen(go_read) as go:
            go.read()
        work.burst(5)
        work.report("early")

    go_read, go_write = os.pipe()
    register()
    first = in_child(lambda: (os.close(go_write), early())[1])
    os.close(go_read)
    with krex.region("outer"):
        os.close(go_write)
        second = subprocess.run([sys.executable, __file__, "leaf"])
        reap(first)
    assert second.returncode == 0


def fork_inside() -> None:
    """A child that was forked inside a region enters one of its own when that has ended."""

    def child() -> None:
        outer.__exit__()  # unwinds what its parent entered
        os.close(go_write)
        with os.fdopen(go_read) as go:
            go.read()
        leaf("child")

    go_read, go_write = os.pipe()
    outer = krex.region("outer")
    with outer:
        pid = in_child(child)
        time.sleep(0.05)
    os.close(go_write)
    reap(pid)


def closes_everything() -> None:
    """Close descriptors that are not ours to close, and give their numbers to something else."""
    register()
    last = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    os.closerange(3, last + 1)
    own, other_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    numbers = range(100, last + 1)
    for number in numbers:
        os.dup2(own.fileno(), number)

    def use() -> None:
        for _ in range(2):
            register()
        assert all(os.path.sameopenfile(number, own.fileno()) for number in numbers)

    use()
    reap(in_child(use))
    other_end.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        raise AssertionError(f"somebody wrote to it: {other_end.recv(100)!r}")


def nested() -> None:
    """A command that uses `krex run` itself."""
    work = Work()
    work.timed("outer")
    run = [sys.executable, "-m", "krex.cli", "run", *sys.argv[2:], "--"]
    assert subprocess.run([*run, sys.executable, __file__, "leaf"]).returncode == 0


WAYS: dict[str, Callable[[], None]] = {
    "leaf": leaf,
    "busy": busy,
    "fork": fork,
    "fork-exec": fork_exec,
    "replaced": replaced,
    "mp-fork": lambda: workers("fork"),
    "mp-spawn": lambda: workers("spawn"),
    "mp-forkserver": lambda: workers("forkserver"),
    "daemon": daemon,
    "threads": threads,
    "threads-behind": threads_behind,
    "waits-behind": waits_behind,
    "asked": asked,
    "pauses": pauses,
    "loaded": loaded,
    "crowd": crowd,
    "thread-ends-inside": thread_ends_inside,
    "child-inside": child_inside,
    "fork-inside": fork_inside,
    "closes-everything": closes_everything,
    "nested": nested,
}

if __name__ == "__main__":
    WAYS[sys.argv[1]]()
