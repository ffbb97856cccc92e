# SPDX-License-Identifier: Apache-2.0
"""Which modules a Python program names, read from its source: nothing of it is run.

Modules that lie beside the program are read too. Imports that are made by name at run time, and
those of programs that it starts, are not seen.
"""

from __future__ import annotations

import ast
import os

_MOST_FILES = 200


class Imports:
    """What `of` found: each module with the first place, FILE:LINE, that names it."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: set[str] = set()
        self.places: dict[str, str] = {}

    def read(self, path: str) -> None:
        """Add the imports of a file, and of the local modules that it imports."""
        waiting = [path]
        while waiting and len(self._seen) < _MOST_FILES:
            path = waiting.pop()
            if path in self._seen:
                continue
            self._seen.add(path)
            for module, line in _names(path):
                self.places.setdefault(module, f"{os.path.relpath(path, self._root)}:{line}")
                waiting += self._local(module)

    def _local(self, module: str) -> list[str]:
        """The files of a module, and of the packages around it, that lie below the root."""
        parts = module.split(".")
        stems = [os.path.join(self._root, *parts[:n]) for n in range(1, len(parts) + 1)]
        files = [f for stem in stems for f in (f"{stem}.py", os.path.join(stem, "__init__.py"))]
        return [file for file in files if os.path.isfile(file)]


def of(script: str) -> dict[str, str]:
    """The modules that a script and its neighbours name, with where they first do so."""
    script = os.path.abspath(script)
    found = Imports(os.path.dirname(script))
    found.read(script)
    return found.places


def of_module(module: str) -> dict[str, str]:
    """The same for `python -m module`; one that does not lie here is in it all the same."""
    found = Imports(os.getcwd())
    stem = os.path.join(os.getcwd(), *module.split("."))
    for path in (f"{stem}.py", os.path.join(stem, "__main__.py")):
        if os.path.isfile(path):
            found.read(path)
    return {module: "the command line"} | found.places


def _names(path: str) -> list[tuple[str, int]]:
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), path)
    except (OSError, SyntaxError, ValueError):
        return []
    return [pair for node in ast.walk(tree) for pair in _named_by(node)]


def _named_by(node: ast.AST) -> list[tuple[str, int]]:
    if isinstance(node, ast.Import):
        return [(alias.name, node.lineno) for alias in node.names]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return [
            (f"{node.value.id}.{node.attr}", node.lineno)
        ]  # as torch.compile, of `import torch`
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        # What is imported from a package may be a module, too.
        below = [f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*"]
        return [(name, node.lineno) for name in [node.module, *below]]
    return []
