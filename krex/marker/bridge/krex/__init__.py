# SPDX-License-Identifier: Apache-2.0
"""Makes krex importable in an interpreter that lacks it; one that has its own keeps that."""

import importlib.machinery
import os
import sys

_bridge = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_own = importlib.machinery.PathFinder.find_spec(
    "krex", [p for p in sys.path if os.path.abspath(p) != _bridge]
)
_init = os.path.join(os.path.dirname(os.path.dirname(_bridge)), "__init__.py")
if _own is not None and _own.origin:
    _init = _own.origin
__path__ = [os.path.dirname(_init)]
with open(_init, encoding="utf-8") as _source:
    exec(compile(_source.read(), _init, "exec"))  # noqa: S102
