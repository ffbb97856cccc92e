# SPDX-License-Identifier: Apache-2.0
"""What `krex run --sim` asks for, and what it gives its command."""

from __future__ import annotations

import os

from krex import paths
from krex.errors import LaunchError, NotBuiltError
from krex.launch.environment import add_simulator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from krex.launch.channel import Message
    from krex.launch.options import RunOptions


def request(options: RunOptions) -> Message:
    """The part of a request that says which simulated devices. Raises LaunchError.

    The model goes as text: its path may mean nothing to the controller.
    """
    directory()
    return {
        "devices": options.sim_gpus,
        "model": None if options.sim_model is None else _model(options.sim_model),
        "log": None if options.sim_log is None else os.path.abspath(options.sim_log),
        "visible": visible(),
    }


def visible() -> dict[str, str]:
    """What the user lets be seen: by ROCm's variable, and of that by either vendor's.

    HIP reads CUDA's too. An empty one of its own says nothing to it.
    """
    hip = "HIP_VISIBLE_DEVICES" if os.environ.get("HIP_VISIBLE_DEVICES") else ""
    either = "CUDA_VISIBLE_DEVICES" if "CUDA_VISIBLE_DEVICES" in os.environ else hip
    names = ("ROCR_VISIBLE_DEVICES", either)
    return {name: os.environ[name] for name in names if name in os.environ}


def directory() -> str:
    """Where the simulated driver is. Raises LaunchError."""
    try:
        return paths.simulator_dir()
    except NotBuiltError as error:
        raise LaunchError(error.message, error.hint) from None


def give(environment: dict[str, str], device: str, socket: str) -> None:
    """Let the command find the device `sim:N` of the controller at `socket`, as we see it."""
    number = device.removeprefix("sim:")
    add_simulator(environment, directory(), paths.simulator_socket(socket), number)


def _model(path: str) -> str:
    from krex.sim.model import flatten, read

    return flatten(read(path))
