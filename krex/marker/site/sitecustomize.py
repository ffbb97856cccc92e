# SPDX-License-Identifier: Apache-2.0
"""Runs at the start of every Python of a command; marks known functions, then lets others' run.

`krex run` puts this directory first on PYTHONPATH. An interpreter imports one sitecustomize only,
so the one that it would have found without us comes after ours, and takes its place. Any Python may
get here: this file is valid in Python 2, and does nothing there.
"""

import os
import sys


def _mark():  # type: ignore[no-untyped-def]
    if sys.version_info < (3, 8) or os.environ.get("KREX_REGION") == "none":
        return
    try:
        from _krex_marker import start  # type: ignore[import-not-found]

        start.start()
    except Exception:
        pass  # the program is to run as it would without us


def _chain():  # type: ignore[no-untyped-def]
    here = os.path.dirname(os.path.abspath(__file__))
    ours = [(i, path) for i, path in enumerate(sys.path) if os.path.abspath(path) == here]
    own = sys.modules.pop("sitecustomize")
    for _, path in ours:
        sys.path.remove(path)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        missing = getattr(error, "name", None) or str(error).split()[-1]
        if missing != "sitecustomize":
            raise
    finally:
        for i, path in ours:
            sys.path.insert(i, path)
        sys.modules.setdefault("sitecustomize", own)


_mark()  # type: ignore[no-untyped-call]
_chain()  # type: ignore[no-untyped-call]
