# SPDX-License-Identifier: Apache-2.0
"""The JSON schemas of what KREX writes, generated from its own types."""
