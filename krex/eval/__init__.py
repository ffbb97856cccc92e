# SPDX-License-Identifier: Apache-2.0
"""What KREX costs and what it achieves, measured on the machine at hand (`krex eval`)."""
