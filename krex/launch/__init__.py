# SPDX-License-Identifier: Apache-2.0
"""`krex run`: start a command under the controller and see it to its end.

Standard library only, and little of it: `krex run -- true` may cost 50 ms over `true`. So no
typing, dataclasses, subprocess, shutil or pathlib in here.
"""
