# SPDX-License-Identifier: Apache-2.0
"""Functions that KREX_REGION names and that had no region: nobody else sees a misspelt module."""

from __future__ import annotations

import os

from krex.marker.spec import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


def unseen(regions: Collection[str]) -> str:
    """What to tell of the functions that are not among the names of these regions; or nothing."""
    names = [name for name in parse(os.environ.get("KREX_REGION", "")).calls if name not in regions]
    if not names:
        return ""
    return (
        f"no region of {', '.join(names)}, which KREX_REGION names: not called, or only inside "
        "another region, or nothing was timed, or the Python that called it was started with -I, "
        "-E, -S or without this command's PYTHONPATH; if it is misspelt, correct it"
    )
