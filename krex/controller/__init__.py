# SPDX-License-Identifier: Apache-2.0
"""The process that owns boards, groups, holds and leases (`krex serve`)."""
