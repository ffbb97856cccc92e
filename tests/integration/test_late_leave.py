# SPDX-License-Identifier: Apache-2.0
"""A thread's leave that arrives when its mark was ended already, and the slot is another thread's.

The program is a script that says to the controller what the library says, in that order.
"""

from __future__ import annotations

LEAVES_LATE = """
import mmap, os, socket, time
from krex.native import ffi, lib
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(os.environ["KREX_SOCKET"])
def say(kind, value=0, text=b"", text2=b""):
    values = {"magic": lib.KREX_WIRE_MAGIC, "type": kind, "value": value}
    values |= {"text": text, "text2": text2}
    s.send(bytes(ffi.buffer(ffi.new("struct krex_wire *", values))))
say(lib.KREX_WIRE_HELLO, text2=os.environ["KREX_COMMAND"].encode())
data, fds, _, _ = socket.recv_fds(s, 4096, 1)
block = ffi.from_buffer("struct krex_wire *", bytearray(data)).slot
memory = mmap.mmap(fds[0], 0)
board = ffi.from_buffer("struct krex_board *", memory)
def move(before, after):
    return lib.krex_mark_move(board, block, 0, before, after)
move(lib.KREX_MARK_FREE, lib.KREX_MARK_REQUESTED)
say(lib.KREX_WIRE_ENTER, os.getpid(), b"second", b"explicit")
end = time.monotonic() + 20
while not move(lib.KREX_MARK_EXCLUSIVE, lib.KREX_MARK_EXCLUSIVE) and time.monotonic() < end:
    time.sleep(0.01)
say(lib.KREX_WIRE_LEAVE, 7)  # the first thread's, late
other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
other.connect(os.environ["KREX_SOCKET"])
for _ in range(2):  # by the second answer it has been read
    other.send(b'{"op": "status"}')
    other.recv(1 << 20)
assert move(lib.KREX_MARK_EXCLUSIVE, lib.KREX_MARK_LEAVING), "it was ended"
say(lib.KREX_WIRE_LEAVE, 3)
while not move(lib.KREX_MARK_FREE, lib.KREX_MARK_FREE) and time.monotonic() < end:
    time.sleep(0.01)
"""


def test_a_late_leave_does_not_end_another_thread_s_mark(krex):
    # GIVEN a thread inside its region
    # WHEN the leave arrives of one that had its slot before
    done = krex("run", "--report", "r", "--", krex.python_path, "-c", LEAVES_LATE)
    # THEN the region goes on until its own thread leaves
    assert done.returncode == 0, done.stderr
    [record] = krex.records("r")
    assert (record["exclusive"], record["submissions"]) == (True, 3)
