# SPDX-License-Identifier: Apache-2.0
"""Region records: written to the report as they come, and counted for the line at the end."""

from __future__ import annotations

import json
import os
import stat

from krex.errors import LaunchError

CONTROLLER_LOST = "controller_lost"
OPEN_AT_END = "open_at_end"


class Report:
    """A file of JSON lines, appended to; several commands may share one."""

    def __init__(self, path: str) -> None:
        """Open for appending; raises LaunchError, before anything is started, if that fails."""
        self.path = path
        self.failed = False  # something could not be written
        if path in ("", "-"):
            raise LaunchError(
                f"--report {path!r} names no file", "give it a path; stdout is the command's alone"
            )
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY
        try:
            self._fd = os.open(path, flags, 0o666)
        except OSError as error:
            raise LaunchError(
                f"cannot write the report {path}: {error.strerror}",
                "give --report a file in a directory you can write",
            ) from None

    def shared_fd(self) -> int:
        """For the controller, to write on if we are killed; -1 where that might block it."""
        return self._fd if stat.S_ISREG(os.fstat(self._fd).st_mode) else -1

    def write(self, record: dict[str, object]) -> None:
        """Append one record; raises OSError.

        One write a line: what several processes append does not mix.
        """
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
        data = memoryview(line.encode("utf-8", "replace"))
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            self.failed = True
            raise


class Regions:
    """The regions of this command: which are open, how many ended, why some were not exclusive."""

    def __init__(self) -> None:
        self.ended = 0
        self.names: set[str] = set()
        self.not_exclusive = 0
        self.unknown = False  # whether there may be regions that nobody told us of
        self.unprotected = ""  # why a process of it could not take part, and has no records
        self.out_of_memory = ""  # what it did not get while others had some
        self._open: dict[str, dict[str, object]] = {}
        self._reasons: dict[str, int] = {}

    def begin(self, record: dict[str, object]) -> None:
        """Remember what is known of a region that began."""
        self._open[str(record.get("region_id"))] = record

    def end(self, record: dict[str, object]) -> None:
        """Count a complete record."""
        self._open.pop(str(record.get("region_id")), None)
        self.ended += 1
        self.names.add(str(record.get("name")))
        if record.get("exclusive") is True:
            return
        self.not_exclusive += 1
        for reason in _reasons(record):
            self._reasons[reason] = self._reasons.get(reason, 0) + 1

    def abandon(self, reason: str) -> list[dict[str, object]]:
        """Records, not exclusive, for the regions of whose end we shall not be told."""
        lost = []
        for record in list(self._open.values()):
            reasons = [*_reasons(record), reason]
            lost.append({**record, "exclusive": False, "reasons": reasons})
        return lost

    def has_several_reasons(self) -> bool:
        """Whether they were not all for the same reason."""
        return len(self._reasons) > 1

    def commonest_reason(self) -> str:
        """The reason most often given for a region that was not exclusive."""
        return max(self._reasons, key=lambda name: self._reasons[name], default="unknown")


def _reasons(record: dict[str, object]) -> list[str]:
    reasons = record.get("reasons")
    return [str(reason) for reason in reasons] if isinstance(reasons, list) else []
