# SPDX-License-Identifier: Apache-2.0
"""What the generators of api.def share when they fetch a vendor's headers and read them."""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class HeaderError(Exception):
    """The headers say something that the generator has no answer to."""


class Param(NamedTuple):
    """A parameter, with its type as the header spells it."""

    type: str
    name: str


# --- fetching ---


def download_wheel(requirement: str, digest: str, folder: Path) -> Path:
    """Download a wheel by pip, by its hash; what is in it is the same for all platforms."""
    pinned = folder / "requirements.txt"
    pinned.write_text(f"{requirement} --hash=sha256:{digest}\n")
    options = ["--no-deps", "--only-binary=:all:", "--platform=manylinux2014_x86_64"]
    options += ["--platform=manylinux_2_28_x86_64", "--python-version=3.11"]
    command = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", "download"]
    command += [*options, "--require-hashes", "--dest", str(folder), "-r", str(pinned)]
    if subprocess.run(command, check=False).returncode:
        raise HeaderError(f"could not fetch {requirement}")
    return next(folder.glob("*.whl"))


def download_package(requirement: str, digest: str, folder: Path) -> Path:
    """Download a package of Debian's by apt; another distribution's is not the same."""
    # As root it would go to a user who cannot write here.
    command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", requirement]
    if not shutil.which("apt-get") or subprocess.run(command, check=False, cwd=folder).returncode:
        raise HeaderError(f"could not fetch {requirement}: apt of Debian 12 can")
    package = next(folder.glob("*.deb"))
    if hashlib.sha256(package.read_bytes()).hexdigest() != digest:
        raise HeaderError(f"{package.name} is not what it was")
    return package


# --- reading ---

ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")


def spell(text: str) -> str:
    """One spelling for a type: `const void*` and `const  void *` are both `const void *`."""
    text = re.sub(r"\s*\*\s*", " * ", text)
    text = re.sub(r"\s+", " ", text).strip().replace("* *", "**")
    return re.sub(r"\bunsigned(?! (int|char|short|long))", "unsigned int", text)


def parse_params(text: str) -> tuple[Param, ...]:
    """The parameters of a declaration; the headers name all of them."""
    if text.strip() in ("", "void"):
        return ()
    params = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\w.*[\s*])(\w+)\s*", part, re.S)
        if not match or "(" in part:
            raise HeaderError(f"a parameter that can't be read: {part.strip()}")
        params.append(Param(spell(match[1]), match[2]))
    return tuple(params)


def declare(param: Param) -> str:
    """A parameter as in a declaration."""
    return param.type + ("" if param.type.endswith("*") else " ") + param.name
