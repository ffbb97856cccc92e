# SPDX-License-Identifier: Apache-2.0
"""What a controller that is killed would leave behind, written down before it exists.

One small file each, in the folder `journal` beside the socket: the cgroups, and the boards. Only
who holds the lock of that folder's controller reads it as a list of what dead ones left, so
nothing in it has to be believed about who lives: not a pid, which means nothing in another pid
namespace. Not synced to disk: neither cgroups nor boards outlive the machine's boot.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import posix_ipc

from krex.launch.cores import give_back
from krex.protect.freezer import Group
from krex.protect.mappings import participants


class GroupEntry(msgspec.Struct, tag="group"):
    """A cgroup. Without its inode it was about to be made, and has not been used."""

    path: str
    boot: str
    inode: int = 0
    # Where its command runs, and where it does in a region only; none where there is no slice.
    cpus: list[int] = []
    reserved: list[int] = []


class BoardEntry(msgspec.Struct, tag="board"):
    """A device's board, by its shared-memory name."""

    name: str
    device: str
    boot: str


class Left(msgspec.Struct):
    """What dead controllers left, and what became of it."""

    thawed: list[str] = msgspec.field(default_factory=list)
    removed: list[str] = msgspec.field(default_factory=list)
    populated: list[str] = msgspec.field(default_factory=list)  # they run on, and stay
    # (device, board, pid) of processes that take part in one: no controller gates those.
    orphans: list[tuple[str, str, int]] = msgspec.field(default_factory=list)

    def orphans_on(self, device: str) -> list[tuple[str, int]]:
        """(board, pid) of those on that device."""
        return [(board, pid) for key, board, pid in self.orphans if key == device]


def boot_id() -> str:
    """Names this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@contextlib.contextmanager
def lock(socket: Path) -> Iterator[bool]:
    """Hold the lock that the controller behind `socket` holds; False: one lives."""
    path = socket.parent / "controller.lock"
    fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(fd)


class Journal:
    """The files.

    What can't be read or written is passed over: on it depends how much is tidied up after a crash,
    and nothing else.
    """

    def __init__(self, socket: Path) -> None:
        self.folder = socket.parent / "journal"
        self.boot = boot_id()

    def make_group(self, path: Path) -> Group:
        """Make a cgroup that is on record from before its birth. Raises OSError."""
        self._write(f"group-{path.name}", GroupEntry(str(path), self.boot))
        try:
            group = Group(path)
        except OSError:
            self.forget(path)
            raise
        self._write(f"group-{path.name}", GroupEntry(str(path), self.boot, path.stat().st_ino))
        return group

    def note_cpus(self, group: Path, cpus: Iterable[int], reserved: Iterable[int]) -> None:
        """A group's command gets these CPUs, and is pinned to the reserved ones in its regions."""
        with contextlib.suppress(OSError):
            inode = group.stat().st_ino
            entry = GroupEntry(str(group), self.boot, inode, list(cpus), list(reserved))
            self._write(f"group-{group.name}", entry)

    def forget(self, group: Path) -> None:
        """The group is gone."""
        self._drop(f"group-{group.name}")

    def note_board(self, name: str, device: str) -> None:
        """A board is about to be made."""
        self._write(f"board-{name.strip('/')}", BoardEntry(name, device, self.boot))

    def groups(self) -> dict[str, GroupEntry]:
        """All groups on record that are still there, by the name of their command."""
        found = {}
        for file, entry in self._entries():
            if isinstance(entry, GroupEntry) and self._is_there(entry):
                found[file.removeprefix("group-krex-")] = entry
        return found

    def recover(self) -> Left:
        """Thaw, and remove, what is on record. For who holds the lock, and has added nothing."""
        left = Left()
        for file, entry in self._entries():
            if isinstance(entry, GroupEntry):
                keep = self._recover_group(entry, left)
            else:
                keep = self._recover_board(entry, left)
            if not keep:
                self._drop(file)
        return left

    def tidy(self, left: Left) -> None:
        """Remove the groups that were still populated, and are not any more."""
        for path in list(left.populated):
            with contextlib.suppress(OSError):
                os.rmdir(path)
            if not os.path.exists(path):
                left.populated.remove(path)
                self.forget(Path(path))

    def _recover_group(self, entry: GroupEntry, left: Left) -> bool:
        """True: it stays on record."""
        if not self._is_there(entry):
            return False
        if entry.inode and thaw(entry.path):
            left.thawed.append(entry.path)
        if entry.reserved:
            give_back(entry.path, 0, set(entry.cpus), set(entry.reserved))
        try:
            os.rmdir(entry.path)
        except OSError:
            if entry.inode:
                left.populated.append(entry.path)
            return entry.inode != 0
        left.removed.append(entry.path)
        return False

    def _recover_board(self, entry: BoardEntry, left: Left) -> bool:
        if entry.boot != self.boot:
            return False
        with contextlib.suppress(posix_ipc.Error, OSError):
            posix_ipc.unlink_shared_memory(entry.name)  # killed before it could do that itself
        found = [(entry.device, entry.name, pid) for pid in participants(entry.name)]
        left.orphans += found
        return bool(found)

    def _is_there(self, entry: GroupEntry) -> bool:
        """Whether that very group is, and not another one of its name."""
        try:
            return entry.boot == self.boot and entry.inode in {0, os.stat(entry.path).st_ino}
        except OSError:
            return False

    def _entries(self) -> list[tuple[str, GroupEntry | BoardEntry]]:
        found: list[tuple[str, GroupEntry | BoardEntry]] = []
        for path in sorted(self.folder.glob("[gb]*-*")):
            try:
                entry = msgspec.json.decode(path.read_bytes(), type=GroupEntry | BoardEntry)
            except (OSError, msgspec.MsgspecError):
                continue
            found.append((path.name, entry))
        return found

    def _write(self, file: str, entry: GroupEntry | BoardEntry) -> None:
        """In one step: a reader finds the old entry or the new one."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            new = self.folder / f".{file}"
            new.write_bytes(msgspec.json.encode(entry))
            new.replace(self.folder / file)

    def _drop(self, file: str) -> None:
        with contextlib.suppress(OSError):
            (self.folder / file).unlink()


def is_asked_to_freeze(group: str) -> bool:
    """Whether a group is to stand still."""
    try:
        return Path(group, "cgroup.freeze").read_text().startswith("1")
    except OSError:
        return False


def thaw(group: str) -> bool:
    """Let a group run; True if it was to stand still."""
    if not is_asked_to_freeze(group):
        return False
    with contextlib.suppress(OSError):  # it is gone, and so is all that was in it
        Path(group, "cgroup.freeze").write_text("0")
    return True
