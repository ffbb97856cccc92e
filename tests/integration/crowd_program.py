# SPDX-License-Identifier: Apache-2.0
"""Takes blocks of a board: so many processes that only say hello. Prints each answer's type.

With `hangs-up`, one that hangs up as a library does that cannot join, and lives on.
"""

import os
import socket
import sys

from krex.native import ffi, lib


def say_hello() -> socket.socket:
    """As the library does; the connection, with the answer to come."""
    controller = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    controller.connect(os.environ["KREX_SOCKET"])
    hello = {"magic": lib.KREX_WIRE_MAGIC, "type": lib.KREX_WIRE_HELLO}
    token = os.environ.get("KREX_COMMAND", "").encode()
    controller.send(bytes(ffi.buffer(ffi.new("struct krex_wire *", hello | {"text2": token}))))
    return controller


def answer_of(controller: socket.socket) -> int:
    packet, fds, _, _ = socket.recv_fds(controller, 4096, 1)
    for fd in fds:
        os.close(fd)
    return int(ffi.from_buffer("struct krex_wire *", packet).type)


def child(said: int, until: int) -> None:
    with say_hello() as controller:
        os.write(said, f"{answer_of(controller)}\n".encode())
        if "hangs-up" not in sys.argv:
            os.read(until, 1)
            return
    os.read(until, 1)


def main(count: int) -> None:
    said_read, said = os.pipe()
    until, until_write = os.pipe()
    for _ in range(count):
        if os.fork() == 0:
            try:
                os.close(until_write)
                child(said, until)
            finally:
                os._exit(0)
    with open(said_read) as answers:  # noqa: PTH123
        kinds = [int(answers.readline()) for _ in range(count)]
    print(kinds.count(lib.KREX_WIRE_WELCOME), kinds.count(lib.KREX_WIRE_REFUSED), flush=True)
    sys.stdin.readline()
    os.close(until_write)
    for _ in range(count):
        os.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
