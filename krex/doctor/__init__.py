# SPDX-License-Identifier: Apache-2.0
"""What `krex doctor` probes: one file a concern, each with functions that return a Check.

Probes do the real thing (map, freeze, start, load) and run in processes of their own, so one that
crashes or hangs is a finding and not the end. `examine.py` lists them.
"""
