# SPDX-License-Identifier: Apache-2.0
"""Why no cgroup can be made here, and how to get a place for them."""

from __future__ import annotations

import os
from pathlib import Path

from krex.doctor import syscalls


def why_no_base(process: str) -> tuple[str, str]:
    """What stands in the way of groups beside that process ("self", or a pid), and the fix."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    mount = next((fields for fields in mounts if fields[2] == "cgroup2"), None)
    if mount is None:
        return "no cgroup v2 is mounted", _mount()
    own = _cgroup_of(process)
    if own is None or own.startswith("/.."):
        return f"our cgroup is not in what is mounted at {mount[1]}", container()
    where = f"{mount[1]}{own}".rstrip("/")
    if "ro" in mount[3].split(","):
        return f"{where} is mounted read-only", container()
    return f"user {os.geteuid()} may not make cgroups in {where}", permission()


def container() -> str:
    """For a container whose cgroups are not its own."""
    return (
        "give the container a cgroup namespace and a writable cgroup mount: docker run "
        "--cgroupns=private --privileged, or --security-opt writable-cgroups=true where Docker "
        "has that; or run krex serve --system on the host and mount its /run/krex"
    )


def permission() -> str:
    """For a user who may not write where groups go."""
    if os.path.isdir("/run/systemd/system"):
        return (
            "work in a shell whose cgroup is yours: systemd-run --user --scope -p Delegate=yes "
            "$SHELL, and start all commands that use KREX there"
        )
    return (
        "have root give you a cgroup G in the cgroup2 mount: mkdir G; chown YOU G "
        "G/cgroup.procs G/cgroup.threads G/cgroup.subtree_control; echo YOUR_SHELL_PID > "
        "G/cgroup.procs (where systemd runs: systemd-run --user --scope -p Delegate=yes $SHELL)"
    )


def sandbox() -> str:
    """For groups that can be made and do not do what they should."""
    if syscalls.is_filtered():
        return "a seccomp profile is in force: try docker run --security-opt seccomp=unconfined"
    return "use Linux 5.2 or newer, outside sandboxes that emulate cgroups, and try once more"


def _mount() -> str:
    if any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv"))):
        return container()
    return (
        "boot with systemd.unified_cgroup_hierarchy=1, or as root: mkdir -p "
        "/sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified"
    )


def _cgroup_of(process: str) -> str | None:
    try:
        lines = Path("/proc", process, "cgroup").read_text().splitlines()
    except OSError:
        return None
    return next((line[3:] for line in lines if line.startswith("0::")), None)
