# SPDX-License-Identifier: Apache-2.0
"""Get a real HIP runtime library, for tests that compare api.def with what it exports.

    python shim/hip/hip_library.py

It is Debian 12's, from its package, by its hash, into build/hip-library. Nothing is installed, and
it is never run: it needs other libraries, and a driver. Exit status 1: it could not be had.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "gpu"))

from api_source import HeaderError, download_package

PACKAGE = "libamdhip64-5=5.2.3-8"
DIGEST = "e89c3757b6ca16b7a03374a0a42402ab19e9e7000251d47379838be965330ebd"
FOLDER = Path(__file__).resolve().parents[2] / "build" / "hip-library" / DIGEST[:8]


def fetched() -> list[Path]:
    """The library under its full name, whose number is its release; none: it is not here."""
    return sorted(FOLDER.glob("libamdhip64.so.*.*.*"))


def fetch() -> None:
    """Fetch it unless it is here. Raises HeaderError."""
    if fetched():
        return
    with tempfile.TemporaryDirectory() as scratch:
        package = download_package(PACKAGE, DIGEST, Path(scratch))
        subprocess.run(["dpkg-deb", "-x", package, scratch], check=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        for library in Path(scratch).glob("usr/lib/*/libamdhip64.so.*.*.*"):
            (FOLDER / library.name).write_bytes(library.read_bytes())


if __name__ == "__main__":
    try:
        fetch()
    except HeaderError as error:
        sys.exit(f"hip_library: {error}")
