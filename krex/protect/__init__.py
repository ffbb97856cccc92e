# SPDX-License-Identifier: Apache-2.0
"""What keeps sibling commands off the machine during a region."""
