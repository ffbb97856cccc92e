# SPDX-License-Identifier: Apache-2.0
"""The PCI devices that --device names."""

from __future__ import annotations

from pathlib import Path

import pytest

from krex.errors import LaunchError
from krex.launch import devices


def test_pci_devices_are_named_in_full(tmp_path: Path) -> None:
    # GIVEN a machine with two cards
    for address in ("0000:01:00.0", "10de:c1:00.0"):
        (tmp_path / address).mkdir()
    # WHEN they are named in short, in nvidia-smi's way, and in capitals
    words = ["pci:01:00.0", "pci:00000000:01:00.0", "pci:10DE:C1:00.0", "cpu:0"]
    # THEN they are the same devices as for everybody
    one, two = "pci:0000:01:00.0", "pci:10de:c1:00.0"
    assert devices.known(words, str(tmp_path)) == [one, one, two, "cpu:0"]


@pytest.mark.parametrize("key", ["pci:0000:99:00.0", "pci:99:00.0", "pci:..", "pci:x", "pci:"])
def test_a_pci_device_that_is_not_there_is_refused(tmp_path: Path, key: str) -> None:
    (tmp_path / "0000:01:00.0").mkdir()
    with pytest.raises(LaunchError, match=r"is not a PCI device of this machine; `lspci -D`"):
        devices.known([key], str(tmp_path))


def test_where_pci_devices_are_not_shown_any_is_taken(tmp_path: Path) -> None:
    assert devices.known(["pci:99:00.0"], str(tmp_path / "none")) == ["pci:0000:99:00.0"]
    assert devices.known(["pci:99:00.0"], str(tmp_path)) == ["pci:0000:99:00.0"]
