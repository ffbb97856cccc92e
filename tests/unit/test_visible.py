# SPDX-License-Identifier: Apache-2.0
"""Which GPU of NVIDIA's a command sees, by what the driver and the user say. AMD's: test_amd.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from krex.errors import LaunchError
from krex.launch.visible import allowed, by_uuid, give

ONE, TWO = "pci:0000:01:00.0", "pci:0000:c1:00.0"
Cards = Callable[..., str]


@pytest.fixture
def cards(tmp_path: Path) -> Cards:
    """The driver's folder with two cards, of which GPU-aaaa has the first address."""

    def make(*models: str, first: str = "GPU-aaaa-1") -> str:
        for key, uuid, model in zip((ONE, TWO), (first, "GPU-abbb-2"), models, strict=True):
            folder = tmp_path / key.removeprefix("pci:")
            folder.mkdir()
            text = f"Model: \t\t {model}\nGPU UUID: \t {uuid}\nBus Location: \t 0000:01:00.0\n"
            (folder / "information").write_text(text)
        return str(tmp_path)

    return make


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("GPU-abbb-2", TWO),
        ("GPU-aa", ONE),
        ("MIG-0a1B-2", "mig:0a1b-2"),
        (ONE, ONE),
        ("cpu:0", "cpu:0"),
    ],
)
def test_a_device_may_have_the_name_that_nvidia_gave_it(cards: Cards, name: str, key: str) -> None:
    assert by_uuid(name, cards("H20", "H20")) == key


@pytest.mark.parametrize("name", ["GPU-c", "GPU-a"])
def test_a_name_of_no_card_or_of_several_is_refused(cards: Cards, name: str) -> None:
    with pytest.raises(LaunchError, match=name):
        by_uuid(name, cards("H20", "H20"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, [ONE, TWO]),
        ("1", [TWO]),
        ("1, 0", [ONE, TWO]),
        ("GPU-aaaa-1", [ONE]),
        ("GPU-ab", [TWO]),
        ("0,7,1", [ONE]),
        ("MIG-5", [ONE, TWO]),  # a part of a card: nobody can tell of which
    ],
)
def test_of_the_named_devices_the_visible_ones_are_taken(
    cards: Cards, text: str | None, wanted: list[str]
) -> None:
    environment = {} if text is None else {"CUDA_VISIBLE_DEVICES": text}
    assert allowed([ONE, TWO], environment, cards("H20", "H20")) == wanted


@pytest.mark.parametrize("text", ["", "-1", "GPU-a", "GPU-zzzz", "7"])
def test_what_shows_none_of_them_is_refused(cards: Cards, text: str) -> None:
    with pytest.raises(LaunchError, match="leaves none of"):
        allowed([ONE, TWO], {"CUDA_VISIBLE_DEVICES": text}, cards("H20", "H20"))


def test_numbers_of_unlike_cards_are_only_known_in_the_order_of_addresses(cards: Cards) -> None:
    folder = cards("H20", "L4")
    environment = {"CUDA_VISIBLE_DEVICES": "0"}
    assert allowed([ONE, TWO], environment, folder) == [ONE, TWO]
    environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    assert allowed([ONE, TWO], environment, folder) == [ONE]


def test_where_there_is_no_driver_nothing_is_left_out(tmp_path: Path) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "9"}
    assert allowed([ONE], environment, str(tmp_path / "none")) == [ONE]
    give(environment, ONE, str(tmp_path / "none"))
    assert environment == {"CUDA_VISIBLE_DEVICES": "9"}


def test_the_command_sees_the_one_that_it_got(cards: Cards) -> None:
    folder = cards("H20", "H20")
    environment = {"CUDA_VISIBLE_DEVICES": "0,1"}
    give(environment, TWO, folder)
    assert environment == {"CUDA_VISIBLE_DEVICES": "GPU-abbb-2"}


def test_a_card_that_cannot_be_named_changes_nothing(cards: Cards) -> None:
    environment: dict[str, str] = {}
    give(environment, ONE, cards("H20", "H20", first="GPU-????????-????"))
    assert environment == {}
