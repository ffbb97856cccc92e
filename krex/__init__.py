# SPDX-License-Identifier: Apache-2.0
"""KREX: many benchmarking commands on one GPU, each measuring as if it were alone on it."""

from krex.marker import region

__all__ = ["region"]
__version__ = "0.1.0"
