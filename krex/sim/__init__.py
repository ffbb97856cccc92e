# SPDX-License-Identifier: Apache-2.0
"""Simulated devices: their model, their log, and the check of what it proves (docs/sim.md)."""
