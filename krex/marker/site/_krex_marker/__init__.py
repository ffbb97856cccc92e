# SPDX-License-Identifier: Apache-2.0
"""krex.marker by a name of its own: `krex` may be somebody else's package in a tenant's Python."""

import os

__path__ = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
