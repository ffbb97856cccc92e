# SPDX-License-Identifier: Apache-2.0
"""Where things are: the build products, the header, the socket.

Plain strings and os.path: this module is on the path of every `krex run`, and pathlib is not free.
"""

import os
import stat

from krex.errors import ControllerError, NotBuiltError

_PACKAGE = os.path.dirname(os.path.abspath(__file__))

# sun_path holds 108 bytes with its terminating NUL.
_LONGEST_SOCKET_PATH = 107

# The machine's controller, `krex serve --system`: a folder of its own, to be mounted in containers.
SYSTEM_SOCKET = "/run/krex/control.sock"


def package_parent() -> str:
    """The directory that must be on sys.path for `import krex` to find this very package."""
    return os.path.dirname(_PACKAGE)


def library_path() -> str:
    """The path of the preload library; raises NotBuiltError if it was not built."""
    path = os.path.join(_PACKAGE, "lib", "libkrex.so")
    if not os.path.isfile(path):
        raise NotBuiltError(path)
    return path


def simulator_dir() -> str:
    """The directory of the simulated devices' drivers and process; raises NotBuiltError."""
    directory = os.path.join(_PACKAGE, "lib", "sim")
    for name in ("libcuda.so.1", "libamdhip64.so", "krex-sim-device"):
        path = os.path.join(directory, name)
        if not os.path.isfile(path):
            raise NotBuiltError(path)
    return directory


def include_dir() -> str:
    """The directory that holds krex.h; raises NotBuiltError if there is none.

    An installed package carries the header in krex/include, a source tree in shim/.
    """
    installed = os.path.join(_PACKAGE, "include")
    for directory in (installed, os.path.join(package_parent(), "shim")):
        if os.path.isfile(os.path.join(directory, "krex.h")):
            return directory
    raise NotBuiltError(os.path.join(installed, "krex.h"))


def bridge_dir() -> str:
    """The directory that makes `import krex` work in an interpreter that has no krex."""
    return os.path.join(_PACKAGE, "marker", "bridge")


def watch_dir() -> str:
    """The directory whose sitecustomize marks known functions in an interpreter."""
    return os.path.join(_PACKAGE, "marker", "site")


def own_socket_path(*, system: bool = False) -> str:
    """Where a controller of ours listens: KREX_SOCKET, else the place for users', or the machine's.

    Raises ControllerError if the path is relative, or longer than a socket's name can be.
    """
    path = os.environ.get("KREX_SOCKET")
    if path and not os.path.isabs(path):
        # Programs that the command starts elsewhere would look for it elsewhere.
        raise ControllerError(
            f"KREX_SOCKET={path} is not an absolute path", f"set it to {os.path.abspath(path)}"
        )
    if not path and system:
        path = SYSTEM_SOCKET
    if not path:
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        # Ours and 0700, or refused by prepare_socket_dir.
        fallback = f"/tmp/krex-{os.getuid()}"  # noqa: S108
        directory = os.path.join(runtime, "krex") if runtime else fallback
        path = os.path.join(directory, "control.sock")
    path = os.path.abspath(path)
    if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH:
        raise ControllerError(
            f"the socket path {path} is longer than {_LONGEST_SOCKET_PATH} bytes",
            "set KREX_SOCKET to a shorter one",
        )
    return path


def socket_path() -> str:
    """The controller's socket: KREX_SOCKET; else our own; else the machine's, if only that listens.

    The shim tries the same places on its own; keep the two alike. Raises ControllerError.
    """
    path = own_socket_path()
    if os.environ.get("KREX_SOCKET") or not os.path.exists(SYSTEM_SOCKET):
        return path
    return SYSTEM_SOCKET if not _listens(path) and _listens(SYSTEM_SOCKET) else path


def _listens(path: str) -> bool:
    """Whether a controller is there that takes us."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK) as client:
        try:
            client.connect(path)
        except BlockingIOError:  # it is there, and has not come round to others yet
            return True
        except OSError:
            return False
        return True


def _refuse_what_is_no_socket(path: str) -> None:
    """A controller replaces what is at its socket's path: that had better be a socket."""
    try:
        found = os.lstat(path)
    except OSError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ControllerError(
            f"{path} is there already, and is not a socket",
            "set KREX_SOCKET to a path at which there is nothing yet",
        )


def simulator_socket(socket: str) -> str:
    """Where the simulated devices of the controller behind `socket` are to be found."""
    return os.path.join(os.path.dirname(socket), "sim.sock")


def lock_path(socket: str) -> str:
    """The file whose flock says who the controller behind `socket` is."""
    return os.path.join(os.path.dirname(socket), "controller.lock")


def prepare_socket_dir(socket: str, *, system: bool = False) -> None:
    """Make the socket's directory or check it; raises ControllerError if it is not ours alone.

    A user's is 0700; the machine's is 0755, for others to connect. A directory that was chosen by
    KREX_SOCKET is the user's own affair once it exists, and those above it must: one that does not
    is a misspelling.
    """
    directory = os.path.dirname(socket)
    hint = "remove it, or set KREX_SOCKET to a path in a directory of yours"
    way = "run it as root" if system else "set KREX_SOCKET to a path in a directory you can write"
    mode, forbidden = (0o755, 0o022) if system else (0o700, 0o077)
    above = os.path.dirname(directory)
    if os.environ.get("KREX_SOCKET") and not os.path.isdir(above):
        raise ControllerError(
            f"there is no directory {above} for {socket}", "correct KREX_SOCKET, or make it"
        )
    try:
        os.makedirs(directory, mode=mode, exist_ok=True)
        found = os.lstat(directory)
    except OSError as error:
        raise ControllerError(f"cannot make {directory}: {error.strerror}", way) from None
    _refuse_what_is_no_socket(socket)
    if os.environ.get("KREX_SOCKET"):
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ControllerError(f"{directory} is not a directory of yours", hint)
    if stat.S_IMODE(found.st_mode) & forbidden:
        raise ControllerError(f"{directory} is open to other users", f"chmod {mode:o} {directory}")
