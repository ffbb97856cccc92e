# SPDX-License-Identifier: Apache-2.0
"""How a program of a road says that a package is missing: exit status 77, and what, on stderr."""

import importlib
import sys
from typing import Any


def need(module: str) -> Any:
    """Import it, or end."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        print(f"{module} cannot be imported: {error}", file=sys.stderr)
        sys.exit(77)
