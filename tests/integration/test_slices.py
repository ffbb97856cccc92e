# SPDX-License-Identifier: Apache-2.0
"""Pinning the threads of other processes and giving them back, whatever these do meanwhile.

The program has workers that do as they are told; what the kernel says of a thread is what counts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest
from support.waiting import DEADLINE_S, ended, wait_for

from krex.protect import pin
from krex.protect.pin import Pinning
from krex.protect.processes import below

CPUS = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="two CPUs are needed to see a difference")

A, B, ALL = {CPUS[0]}, {CPUS[-1]}, set(CPUS)

PROGRAM = """
    import json, os, queue, signal, sys, threading, time

    orders = {}

    def work():
        tid = threading.get_native_id()
        orders[tid] = queue.Queue()
        told.put(tid)
        while (job := orders[tid].get()) is not None:
            answer = job()
            if answer != "the new thread tells":
                told.put(answer)

    def thread():
        threading.Thread(target=work, daemon=True).start()
        return "the new thread tells"

    def fork(orphan=False):
        read, write = os.pipe()
        if os.fork() == 0:
            if orphan and os.fork():
                os._exit(0)
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
            os.write(write, json.dumps([os.getpid(), *map(int, os.listdir("/proc/self/task"))])
                     .encode())
            signal.pause()
        if orphan:
            os.wait()
        return json.loads(os.read(read, 4096))

    calm = threading.Event()

    def storm():
        # Each generation is born of the one before, and ends.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        def live(depth):
            if not calm.is_set():
                threading.Thread(target=live, args=(depth + 1,), daemon=True).start()
                if depth % 50 == 0 and os.fork() == 0:
                    time.sleep(0.01)
                    os._exit(0)
        live(0)

    told = queue.Queue()
    main = os.getpid()
    print(json.dumps(main), flush=True)
    for line in sys.stdin:
        who, what, *rest = json.loads(line)
        job = {
            "thread": thread,
            "fork": fork,
            "orphan": lambda: fork(orphan=True),
            "set": lambda: os.sched_setaffinity(0, rest),
            "storm": storm,
            "calm": calm.set,
        }.get(what)
        if who == main:
            answer = job()
            answer = told.get() if answer == "the new thread tells" else answer
        else:
            orders[who].put(job)
            answer = told.get() if job else None
        print(json.dumps(answer), flush=True)
"""


class Program:
    """The program, told what to do; its first thread has the pid's number."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-u", "-c", textwrap.dedent(PROGRAM)]
        self._child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )
        self.pid = int(self._answer())
        self.forked: list[int] = []

    def _answer(self) -> str:
        line = self._child.stdout.readline()
        assert line, "the program ended"
        return line

    def __call__(self, who: int, what: str | None, *rest: int):
        """Have a thread do something."""
        self._child.stdin.write(json.dumps([who, what, *rest]) + "\n")
        self._child.stdin.flush()
        answer = json.loads(self._answer())
        if isinstance(answer, list):
            self.forked.append(answer[0])
        return answer

    def thread(self, cpus: set[int] | None = None) -> int:
        """A thread of the first one, which may choose its CPUs itself."""
        tid = self(self.pid, "thread")
        if cpus:
            self(tid, "set", *cpus)
        return tid

    def end(self, tid: int) -> None:
        self(tid, None)
        wait_for(lambda: tid not in pin.threads(self.pid))

    def masks(self) -> list[set[int]]:
        """Of all its threads and of those of its children."""
        pids = below([self.pid])
        found = [pin.mask_of(tid) for pid in pids for tid in pin.threads(pid)]
        return [set(mask) for mask in found if mask is not None]

    def kill(self) -> None:
        for pid in [*self.forked, self.pid]:
            if not ended(pid):
                os.kill(pid, signal.SIGKILL)
        self._child.wait(DEADLINE_S)

    def close(self) -> None:
        self.kill()
        self._child.stdin.close()
        self._child.stdout.close()


@pytest.fixture
def program() -> Iterator[Program]:
    started = Program()
    try:
        yield started
    finally:
        started.close()


def mask(tid: int) -> set[int]:
    found = pin.mask_of(tid)
    assert found is not None, f"thread {tid} is gone"
    return set(found)


def test_only_the_given_threads_are_pinned_and_each_gets_back_its_own(program):
    # GIVEN threads that differ
    wide, narrow, bystander = program.thread(), program.thread(B), program.thread()
    before = {tid: mask(tid) for tid in (program.pid, wide, narrow, bystander)}
    assert before[narrow] == B and before[wide] == ALL
    # WHEN two of them are pinned
    pinning = Pinning()
    done = pinning.pin(program.pid, A, [wide, narrow])
    assert (done.pinned, done.partly, done.failed) == ([wide, narrow], [], [])
    assert mask(wide) == mask(narrow) == A
    assert mask(program.pid) == mask(bystander) == ALL
    assert pinning.holds(wide) and not pinning.holds(bystander)
    # THEN they and nobody else are given back
    done = pinning.restore()
    assert sorted(done.restored) == sorted([wide, narrow])
    assert done.born == done.changed == done.ended == done.failed == [] and not done.unstable
    assert {tid: mask(tid) for tid in before} == before and not pinning.holds(wide)


def test_all_threads_of_a_process(program):
    narrow = program.thread(B)
    pinning = Pinning()
    assert sorted(pinning.pin(program.pid, A).pinned) == sorted([program.pid, narrow])
    pinning.restore()
    assert mask(program.pid) == ALL and mask(narrow) == B


def test_a_thread_born_meanwhile_gets_its_creator_s_cpus(program):
    worker = program.thread(B)
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker])
    born = program(worker, "thread")
    grandchild = program(born, "thread")
    assert mask(born) == mask(grandchild) == A
    done = pinning.restore()
    assert sorted(done.born) == sorted([born, grandchild]) and done.guessed == []
    assert mask(worker) == mask(born) == mask(grandchild) == B
    assert mask(program.pid) == ALL


def test_where_the_creator_is_not_known_the_first_thread_s_cpus_are_given_and_it_is_said(program):
    worker = program.thread(B)
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker, program.pid])
    born = program(worker, "thread")
    done = pinning.restore()
    assert done.born == done.guessed == [born]
    assert mask(born) == mask(program.pid) == ALL


def test_what_is_born_while_we_look_is_looked_for_again(program):
    # GIVEN a thread that inherited the pin, and a process that shows itself after the first look
    worker = program.thread(B)
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker])
    born = program(worker, "thread")
    pid, *tids = program(worker, "orphan")
    looks: list[int] = []

    def members() -> list[int]:
        looks.append(len(looks))
        return [program.pid, pid] if len(looks) > 1 else [program.pid]

    assert sorted(pinning.restore(members).born) == sorted([born, *tids])
    assert all(mask(tid) == B for tid in (born, *tids))


@pytest.mark.parametrize("how", ["fork", "orphan"])
def test_a_process_born_meanwhile_with_its_threads(program, how):
    worker = program.thread(B)
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker])
    pid, *tids = program(worker, how)
    assert len(tids) == 2 and all(mask(tid) == A for tid in tids)
    # An orphan is only found by who knows the command's members, as its cgroup does.
    members = [program.pid, pid] if how == "orphan" else None
    done = pinning.restore((lambda: members) if members else None)
    assert sorted(done.born) == sorted(tids)
    assert all(mask(tid) == B for tid in tids) and mask(program.pid) == ALL


def test_a_child_that_is_pinned_too_goes_back_to_its_parent_s_cpus(program):
    # GIVEN a child born with the pin, which then is pinned as one of the holder's processes
    worker = program.thread(B)
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker])
    pid, *tids = program(worker, "fork")
    assert pinning.pin(pid, A).failed == []
    pinning.restore()
    assert all(mask(tid) == B for tid in tids)


def test_what_appears_too_late_is_found_by_a_sweep(program):
    # GIVEN a child with the pin that nobody could see at the release
    worker = program.thread(B)
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker])
    pid, *tids = program(worker, "orphan")
    assert pinning.restore().born == [] and not pinning.settled
    assert all(mask(tid) == A for tid in tids)
    # WHEN it is looked for again, THEN it is given back, once
    assert sorted(pinning.sweep(lambda: [pid]).born) == sorted(tids)
    assert all(mask(tid) == B for tid in tids)
    assert pinning.sweep(lambda: [pid]).born == []
    # AND at some time there is nothing left to look for
    wait_for(lambda: pinning.sweep(lambda: [pid]) and pinning.settled)


def test_what_appears_too_late_is_pinned_and_given_back_by_the_next_hold(program):
    worker = program.thread(B)
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker])
    pid, *tids = program(worker, "orphan")
    pinning.restore()
    pinning.pin(pid, A)  # still has the first pin: not its own wish
    pinning.restore()
    assert all(mask(tid) == B for tid in tids)


def test_a_sweep_leaves_alone_what_is_pinned(program):
    worker = program.thread()
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker])
    born = program(worker, "thread")
    assert pinning.sweep().born == []
    assert mask(worker) == mask(born) == A
    pinning.restore()
    assert mask(worker) == mask(born) == ALL


def test_a_thread_that_chose_its_cpus_meanwhile_keeps_them(program):
    worker, other = program.thread(), program.thread()
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker, other])
    program(worker, "set", *B)
    done = pinning.restore()
    assert done.changed == [worker] and done.restored == [other]
    assert mask(worker) == B and mask(other) == ALL


def test_a_thread_that_had_these_cpus_by_its_own_wish_keeps_them(program):
    # GIVEN one that is not pinned and whose CPUs are the same, and one that is pinned
    bystander, worker = program.thread(A), program.thread(A)
    wait_for(lambda: pin._now() > (pin._start(program.pid, worker) or 0))
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker])
    done = pinning.restore()
    assert done.restored == [worker] and done.born == []
    assert mask(bystander) == mask(worker) == A and mask(program.pid) == ALL


def test_a_thread_that_ended_meanwhile(program):
    worker, other = program.thread(), program.thread()
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker, other])
    program.end(worker)
    done = pinning.restore()
    assert done.ended == [worker] and done.restored == [other] and done.failed == []


def test_a_process_that_was_killed_meanwhile(program):
    worker = program.thread()
    pinning = Pinning()
    pinning.pin(program.pid, A, [program.pid, worker])
    program.kill()
    done = pinning.restore()
    assert sorted(done.ended) == sorted([program.pid, worker])
    assert done.failed == [] and pinning.settled


def test_threads_and_processes_that_are_not_there(program):
    pinning = Pinning()
    stranger = os.getpid()  # a thread, but not one of that process
    done = pinning.pin(program.pid, A, [stranger])
    assert [failure.tid for failure in done.failed] == [stranger]
    assert done.failed[0].error.startswith("ESRCH") and mask(stranger) == ALL
    program.kill()
    assert [f.error[:5] for f in pinning.pin(program.pid, A).failed] == ["ESRCH"]
    assert pinning.restore().failed == []


def test_several_marks_share_the_pin(program):
    worker, other = program.thread(B), program.thread()
    pinning = Pinning()
    pinning.pin(program.pid, A, [worker])
    assert pinning.pin(program.pid, A, [worker, other]).pinned == [worker, other]
    done = pinning.restore()
    assert sorted(done.restored) == sorted([worker, other]) and done.born == []
    assert mask(worker) == B and mask(other) == ALL


def test_one_hold_after_another(program):
    worker = program.thread()
    pinning = Pinning()
    for cpus in (B, ALL, B):
        program(worker, "set", *cpus)
        pinning.pin(program.pid, A, [worker])
        born = program(worker, "thread")
        done = pinning.restore()
        assert done.restored == [worker] and done.born == [born]
        assert mask(worker) == mask(born) == cpus


def test_a_storm_of_threads_and_processes_is_given_back_to_the_last(program):
    program(program.pid, "storm")
    pinning, born = Pinning(), list[int]()

    def hold() -> bool:
        pinning.pin(program.pid, A)
        born.extend(pinning.restore().born)
        return len(born) > 20

    wait_for(hold)
    program(program.pid, "calm")
    # A fork that was under way shows itself a little later.
    wait_for(lambda: pinning.sweep() and all(cpus == ALL for cpus in program.masks()))
    assert program.masks()


def test_no_cpus_to_pin_to(program):
    with pytest.raises(ValueError, match="no CPUs"):
        Pinning().pin(program.pid, [])


def test_cpus_that_do_not_exist_are_reported(program):
    done = Pinning().pin(program.pid, [1023], [program.pid])
    assert done.pinned == [] and done.failed[0].error.startswith("EINVAL")
    assert mask(program.pid) == ALL


def test_somebody_else_s_process_is_reported(program):
    # GIVEN a user who may not touch that process
    script = f"""
        import json, msgspec, os
        from krex.protect.pin import Pinning
        if os.geteuid() == 0:
            os.setgroups([]), os.setgid(65534), os.setuid(65534)
        pinning = Pinning()
        done = pinning.pin({program.pid if os.geteuid() == 0 else 1}, {A})
        print(json.dumps([msgspec.to_builtins(x) for x in (done, pinning.restore())]))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    told = subprocess.run(command, stdout=-1, text=True, timeout=DEADLINE_S, check=True)
    pinned, restored = json.loads(told.stdout)
    assert pinned["pinned"] == [] and pinned["failed"]
    assert all(failure["error"].startswith("EPERM") for failure in pinned["failed"])
    assert restored["failed"] == restored["restored"] == []
    assert mask(program.pid) == ALL


# From exec on, and who leaves.


def test_a_command_has_its_slice_from_exec_on_and_widening_is_seen():
    # GIVEN a command whose launcher took the slice's CPUs before it became the command
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, A)
    try:
        command = Program()
    finally:
        os.sched_setaffinity(0, before)
    try:
        worker = command.thread()
        pid, *_ = command(worker, "fork")
        members = [command.pid, pid]
        assert pin.strays(members, A) == []
        # WHEN one thread widens its affinity
        command(worker, "set", *ALL)
        # THEN that one is named, with the CPUs that are not its command's
        outside = tuple(sorted(ALL - A))
        assert pin.strays(members, A) == [pin.Stray(command.pid, worker, outside)]
        # AND one that we pinned there is where it belongs
        pinning = Pinning()
        pinning.pin(pid, B, [pid])
        assert [s.tid for s in pin.strays([pid], A)] == [pid]
        assert pin.strays([pid], A, pinning) == []
        pinning.restore()
        assert mask(pid) == A
        command.kill()
        assert pin.strays(members, A) == []
    finally:
        command.close()


def test_tids_of_a_process_in_our_own_namespace_are_what_they_are(program):
    worker = program.thread()
    assert pin.tids_here(program.pid, [worker, 1 << 22]) == [worker]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a pid namespace")
def test_tids_of_a_process_in_another_namespace():
    # GIVEN a process that is number 1 of a namespace of its own
    script = "import signal; print(1, flush=True); signal.pause()"
    unshare = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", script]
    outer = subprocess.Popen(unshare, stdout=subprocess.PIPE, text=True)
    try:
        if not outer.stdout.readline():
            pytest.skip("no pid namespaces here")
        (inner,) = below([outer.pid]) - {outer.pid}
        assert pin.tids_here(inner, [1]) == [inner] != [1]
    finally:
        outer.kill()
        outer.wait(DEADLINE_S)
        outer.stdout.close()
