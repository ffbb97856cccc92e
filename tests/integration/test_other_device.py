# SPDX-License-Identifier: Apache-2.0
"""G6 beside a process that works on another device than the one its command was admitted to."""

from pathlib import Path

BUSY = Path(__file__).with_name("busy_program.py")


def test_a_stranger_on_the_device_makes_its_regions_not_exclusive(krex):
    # GIVEN a command that was admitted elsewhere, and computes on cpu:0 all the same
    stranger = krex.python(BUSY, "device", options=("--device", "sim:1"))
    assert stranger.stdout.readline() == "ready\n"
    assert krex.program("--report", str(krex.folder / "r"), regions=2).wait(60) == 0
    found = [(r["exclusive"], r["reasons"]) for r in krex.records("r")]
    assert found == [(False, ["unregistered_process"])] * 2
    # WHEN it has ended THEN regions are certain again
    stranger.communicate(timeout=60)
    assert krex.program("--report", str(krex.folder / "s"), regions=1).wait(60) == 0
    assert [r["reasons"] for r in krex.records("s")] == [[]]


def test_a_process_that_joins_half_way_makes_regions_not_exclusive(krex):
    # GIVEN a library that mapped the board, could not go on, hung up, and whose program runs on
    script = """
import mmap, os, socket, sys
from krex.native import ffi, lib
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(os.environ["KREX_SOCKET"])
values = {"magic": lib.KREX_WIRE_MAGIC, "type": lib.KREX_WIRE_HELLO, "text": b"cpu:0"}
s.send(bytes(ffi.buffer(ffi.new("struct krex_wire *", values))))
_, fds, _, _ = socket.recv_fds(s, 4096, 1)
board = mmap.mmap(fds[0], 0)
s.close()
print("ready", flush=True)
sys.stdin.read()
"""
    half = krex.popen(krex.python_path, "-c", script)
    assert half.stdout.readline() == "ready\n"
    assert krex.program("--report", str(krex.folder / "r"), regions=1).wait(60) == 0
    assert [r["reasons"] for r in krex.records("r")] == [["unregistered_process"]]
    half.communicate(timeout=60)
