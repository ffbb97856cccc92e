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


def package_parent() -> str:
    """The directory that must be on sys.path for `import krex` to find this very package."""
    return os.path.dirname(_PACKAGE)


def library_path() -> str:
    """The path of the preload library; raises NotBuiltError if it was not built."""
    path = os.path.join(_PACKAGE, "lib", "libkrex.so")
    if not os.path.isfile(path):
        raise NotBuiltError(path)
    return path


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


def socket_path() -> str:
    """The controller's socket: KREX_SOCKET, else in XDG_RUNTIME_DIR, else in a folder in /tmp.

    The shim computes the same path on its own; keep the two alike. Raises ControllerError if the
    path is longer than a socket's name can be.
    """
    path = os.environ.get("KREX_SOCKET")
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


def lock_path(socket: str) -> str:
    """The file whose flock says who the controller behind `socket` is."""
    return os.path.join(os.path.dirname(socket), "controller.lock")


def prepare_socket_dir(socket: str) -> None:
    """Make the socket's directory (0700) or check it; raises ControllerError if it is not ours.

    A directory that was chosen by KREX_SOCKET is the user's own affair once it exists.
    """
    directory = os.path.dirname(socket)
    hint = "remove it, or set KREX_SOCKET to a path in a directory of yours"
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        found = os.lstat(directory)
    except OSError as error:
        raise ControllerError(
            f"cannot make {directory}: {error.strerror}",
            "set KREX_SOCKET to a path in a directory you can write",
        ) from None
    if os.environ.get("KREX_SOCKET"):
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ControllerError(f"{directory} is not a directory of yours", hint)
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise ControllerError(f"{directory} is open to other users", f"chmod 700 {directory}")
