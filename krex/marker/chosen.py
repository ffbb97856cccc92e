# SPDX-License-Identifier: Apache-2.0
"""The start where the user named functions: the main module too, and what was wrong at the end."""

import atexit
import sys

from .farewell import complain
from .found import mark_imported
from .main_module import CAN_WATCH, watch_main
from .spec import parse
from .start import Watch, known_functions


def start_chosen(region: str) -> None:
    """Watch for what `region`, a KREX_REGION, names."""
    try:
        spec = parse(region)
    except ValueError as error:  # `krex run` refuses it; the program has set it by itself
        sys.stderr.write(f"krex: KREX_REGION: {error}; no function is marked\n")
        return
    known = known_functions() if "auto" in spec.words else []
    if not spec.calls and not known:
        return
    watch = Watch(spec.calls + known, spec.calls)
    mark_imported(watch)
    sys.meta_path.insert(0, watch)
    if CAN_WATCH:
        watch_main(watch)
    atexit.register(complain, watch)
