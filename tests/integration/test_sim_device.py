# SPDX-License-Identifier: Apache-2.0
"""The process of the simulated devices, by its protocol: times, deaths, and clients gone wrong."""

import itertools
import json
import os
import signal
import subprocess
import time

import pytest
from support.sim_device import (
    DEVICE,
    Flag,
    Kind,
    Op,
    build_client,
    running_device,
    write_model,
)
from support.waiting import wait_for

from krex.sim import check
from krex.sim import log as sim_log

OK, OUT_OF_MEMORY, INVALID = range(3)
MS = 1_000_000
LONG = 3_600_000 * MS
FAST = {"contexts__context_ns": 0, "contexts__teardown_ns": 20 * MS}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if not DEVICE.exists():
        pytest.skip("not built: run `make build`")
    return build_client(tmp_path_factory.mktemp("client"))


@pytest.fixture
def start(program, tmp_path):
    """Starts a device process of a model; ends it after the test."""
    with_all = []

    def start_one(*arguments, keys=FAST, **options):
        model = write_model(tmp_path / "model", **keys)
        context = running_device(tmp_path, program, "--model", model, *arguments, **options)
        with_all.append(context)
        return context.__enter__()

    yield start_one
    for context in with_all:
        context.__exit__(None, None, None)


@pytest.fixture
def device(start):
    return start("--devices", "2")


def is_gone(device, pid):
    """Ask whether nothing of a process is left; wait until it is so."""
    other = device.client()
    return other.ask(Op.GONE, value=pid).status == OK


def works(device):
    """Whether a new client can use it."""
    client = device.client().hello()
    seq = client.run(client.context(), 1000)
    result = client.wait(seq)
    return result.status == OK and result.end - result.start == 1000


def test_a_kernel_takes_exactly_its_time(device):
    # GIVEN a client with a context
    client = device.client().hello()
    context = client.context()
    # WHEN it runs kernels, one behind the other
    before = time.monotonic_ns()
    seqs = [client.run(context, 1_234_567) for _ in range(5)]
    results = [client.wait(seq) for seq in seqs]
    # THEN each took its time to the nanosecond, and not before it was submitted
    assert [r.end - r.start for r in results] == [1_234_567] * 5
    assert before < results[0].start
    assert all(a.end <= b.start for a, b in itertools.pairwise(results))
    assert results[-1].end <= time.monotonic_ns()


def test_what_clients_see_of_a_device(device):
    client = device.client().hello()
    name, memory, number = client.tell("device 1").split("|")
    assert (name, number) == ("KREX simulated H20", "1")
    answer = client.ask(Op.MEMORY, device=1)
    assert (answer.value, answer.value2) == (int(memory), int(memory))


def test_memory_is_shared_by_all(device):
    # GIVEN two processes on one device, of which one has most of the memory
    one, two = device.client().hello(), device.client().hello()
    context, other = one.context(), two.context()
    free = one.ask(Op.MEMORY).value
    assert one.ask(Op.ALLOCATE, context=context, value=free - 1000).status == OK
    # WHEN the other one wants more than is left THEN it is refused
    assert two.ask(Op.ALLOCATE, context=other, value=1001).status == OUT_OF_MEMORY
    # WHEN the first one dies THEN there is room
    one.kill()
    assert is_gone(device, one.pid)
    assert two.ask(Op.ALLOCATE, context=other, value=1001).status == OK


def test_idle_it_does_nothing(device):
    # GIVEN clients that did some work, and the log of it written
    client, quiet = device.client().hello(), device.client().hello()
    client.wait(client.run(client.context(), MS))
    quiet.context()
    wait_for(lambda: "# covered" in device.log.read_text())
    asleep = device.wake_ups()
    ticks = device.cpu_ticks()
    # WHEN half a second passes
    time.sleep(0.5)
    # THEN it has not run
    assert (device.wake_ups(), device.cpu_ticks()) == (asleep, ticks)


def test_the_log_has_what_was_on_the_device(device):
    client = device.client().hello()
    context = client.context(1)
    seq = client.run(context, 5000, stream=3)
    result = client.wait(seq)
    client.wait(client.send(Kind.EVENT, context, 3))
    device.stop()
    found = sim_log.read(device.log)
    made, ran = found.intervals
    assert (made.kind, made.device, made.pid) == ("context", "sim:1", client.pid)
    assert ran[:6] == ("sim:1", context, client.pid, "run", 3, seq)
    assert (ran.start_ns, ran.end_ns, ran.status, ran.name) == (*result[1:], "ok", "spin")
    assert ran.arrival_ns <= ran.start_ns
    assert found.covered_ns >= ran.end_ns


def test_what_still_runs_at_the_end_is_in_the_log(device):
    client = device.client().hello()
    seq = client.run(client.context(), LONG)
    wait_for(lambda: client.tell(f"send {Kind.EVENT} 0 0 0 0 0"))
    assert device.stop() == ""
    assert device.process.returncode == 0
    assert client.tell(f"wait {seq} 1") == "lost"
    last = sim_log.read(device.log).intervals[-1]
    assert (last.seq, last.status) == (seq, "running")
    assert not device.socket.exists()


def test_a_real_log_is_clean_and_its_mutants_are_not(device, tmp_path):
    # GIVEN a holder's work between two kernels of a sibling, and a record of the time between
    holder, sibling = device.client().hello(), device.client().hello()
    mine, theirs = holder.context(), sibling.context()
    first = sibling.wait(sibling.run(theirs, MS))
    granted = time.monotonic_ns()
    for seq in [holder.run(mine, MS) for _ in range(3)]:
        holder.wait(seq)
    released = time.monotonic_ns()
    last = sibling.wait(sibling.run(theirs, MS))
    device.stop()
    assert first.end <= granted < released <= last.start
    record = {
        "schema": "krex.region", "region_id": "r", "command": "c", "device": "sim:0",
        "exclusive": True, "granted_ns": granted, "released_ns": released,
        "holder_pids": [holder.pid],
    }  # fmt: skip
    report = tmp_path / "report"
    report.write_text(json.dumps(record))
    text = device.log.read_text()

    def violations(log_text):
        device.log.write_text(log_text)
        return check.check(sim_log.read(device.log), check.read_records(report)).violations

    # THEN it is clean, and not when the sibling's times or the holder's pid are others
    assert violations(text) == []
    assert len(violations(text.replace(str(first.end), str(granted + 1)))) == 1
    assert len(violations(text.replace(str(last.start), str(released - 1)))) in (1, 2)
    assert len(violations(text.replace(f"\t{holder.pid}\trun", "\t1\trun"))) == 6


def test_many_clients_at_once(device):
    # GIVEN eight processes with a context on each of two devices
    clients = [device.client().hello() for _ in range(8)]
    contexts = [(client, client.context(n)) for client in clients for n in (0, 1)]
    # WHEN each has a hundred kernels under way in four streams on each
    last = [
        (client, client.run(context, 10_000 + n, stream=n % 4 + 1))
        for n in range(100)
        for client, context in contexts
    ]
    # THEN all of them end well, having taken at least their time
    for client, seq in last:
        result = client.wait(seq)
        assert result.status == OK
        assert result.end - result.start >= 10_000


# --- deaths --------------------------------------------------------------------------------


def die_without_a_word(client):
    pass


def die_after_hello(client):
    client.hello()


def die_while_a_context_is_made(client):
    client.hello().begin(Op.CONTEXT)


def die_with_a_long_kernel(client):
    client.hello().run(client.context(), LONG)


def die_with_a_queue(client):
    context = client.hello().context()
    for stream in range(1, 5):
        for _ in range(50):
            client.run(context, LONG, stream)


def die_with_a_host_function(client):
    context = client.hello().context()
    client.wait_turn(client.send(Kind.HOST, context, 1))


def die_with_a_held_kernel(client):
    context = client.hello().context()
    client.wait_turn(client.run(context, 10, flags=Flag.HELD))


def die_while_code_is_loaded(client):
    context = client.hello().context()
    client.wait_turn(client.run(context, 10, flags=Flag.HELD))
    client.begin(Op.LOAD, context=context, value=100)


def die_with_a_copy(client):
    context = client.hello().context()
    client.send(Kind.COPY_TO, context, 1, 1 << 45)


def die_while_a_context_ends(client):
    context = client.hello().context()
    client.run(context, LONG)
    client.begin(Op.CONTEXT_END, context=context)


DEATHS = [value for name, value in globals().items() if name.startswith("die_")]


@pytest.mark.parametrize("die", DEATHS, ids=lambda die: die.__name__)
def test_a_client_may_die_anywhere(device, die):
    # GIVEN a client that is in the middle of something
    client = device.client()
    die(client)
    # WHEN it is killed
    client.kill()
    # THEN nothing of it is left in the end, and the device serves others
    assert is_gone(device, client.pid)
    assert works(device)
    assert device.process.poll() is None


def test_the_work_of_the_dead_stays_for_the_teardown(device):
    client = device.client().hello()
    context = client.context()
    seq = client.run(context, LONG)
    client.wait(client.send(Kind.EVENT, context, 9))  # it has arrived
    client.kill()
    assert is_gone(device, client.pid)
    device.stop()
    ran = [i for i in sim_log.read(device.log).intervals if i.seq == seq and i.kind == "run"]
    assert [i.status for i in ran] == ["ended"]


def test_a_child_with_the_socket_does_not_keep_the_dead_alive(device):
    # GIVEN a process with a running kernel, and a forked child that has all its descriptors
    client = device.client().hello()
    client.run(client.context(), LONG)
    child = int(client.tell("fork"))
    try:
        # WHEN the process dies and the child lives
        client.kill()
        # THEN its work ends all the same
        assert is_gone(device, client.pid)
    finally:
        os.kill(child, signal.SIGKILL)


def test_gone_waits_for_who_lives(device):
    client = device.client().hello()
    client.context()
    waiting = device.client()
    waiting.begin(Op.GONE, value=client.pid)
    assert works(device)  # meanwhile
    client.kill()
    assert waiting.answer().status == OK


# --- clients gone wrong ----------------------------------------------------------------------


@pytest.mark.parametrize("how", ["ring", "packet", "magic", "seq", "kind"])
def test_who_breaks_the_protocol_is_cut_off(device, how):
    client, other = device.client().hello(), device.client().hello()
    context = other.context()
    assert client.tell(f"break {how}") == "cut off"
    assert other.wait(other.run(context, 1000)).status == OK
    assert works(device)
    assert f"process {client.pid} is cut off" in device.stop()


def test_nobody_can_take_the_channel_away(device):
    client = device.client().hello()
    assert client.tell("break shrink") == "EPERM"
    assert works(device)


def test_what_does_not_exist_is_refused(device):
    client = device.client()
    assert client.ask(Op.CONTEXT).status == INVALID  # before HELLO
    client.hello()
    assert client.ask(Op.HELLO).status == INVALID  # twice
    assert client.ask(Op.CONTEXT, device=2).status == INVALID
    assert client.ask(99).status == INVALID
    assert client.ask(Op.CONTEXT_END, context=77).status == INVALID
    assert client.wait(client.send(Kind.RUN, 77)).status == INVALID
    assert client.ask(Op.LOAD, context=77).status == INVALID


# --- start and end ---------------------------------------------------------------------------


def test_a_second_one_on_the_same_socket_is_refused(device):
    words = [DEVICE, "--socket", device.socket]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "served there already" in done.stderr
    assert works(device)


def test_the_socket_of_a_dead_one_is_taken_over_and_is_the_user_s_own(device, start):
    device.stop(signal.SIGKILL)
    assert device.socket.exists()
    second = start()
    assert works(second)
    assert second.socket.stat().st_mode & 0o777 == 0o600


def test_it_touches_no_file_that_is_no_socket(tmp_path):
    path = tmp_path / "precious"
    path.write_text("kept")
    words = [DEVICE, "--socket", path]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30)
    assert (done.returncode, path.read_text()) == (1, "kept")


def test_it_ends_after_its_last_client(start):
    device = start("--linger", "0")
    assert device.ended() == ""
    assert device.process.returncode == 0


def test_it_outlives_its_clients_while_its_parent_lives(start):
    # GIVEN one that does not linger, whose parent holds the other end of a pipe
    its_end, parents_end = os.pipe()
    device = start("--linger", "0", "--parent-fd", str(its_end), pass_fds=[its_end])
    os.close(its_end)
    client = device.client().hello()
    client.wait(client.run(client.context(), 1000))
    # WHEN its clients are gone THEN it stays
    client.close()
    assert works(device)
    # WHEN the parent ends too THEN it ends
    for other in device._clients:
        other.close()
    os.close(parents_end)
    assert device.ended() == ""
    assert device.process.returncode == 0


def test_a_wrong_model_is_named_with_its_line(program, tmp_path):
    model = write_model(tmp_path / "model", device__memory_bytes=5, sharing__slice_ns="soon")
    words = [DEVICE, "--socket", tmp_path / "s", "--model", model]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert f"{model}:2: sharing.slice_ns" in done.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["--socket"], ["--socket", "s", "--devices", "17"], ["--socket", "s", "x"]]
)
def test_wrong_arguments_show_the_right_ones(arguments):
    done = subprocess.run([DEVICE, *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "usage: krex-sim-device --socket PATH" in done.stderr
