# SPDX-License-Identifier: Apache-2.0
"""`python -m krex.cli` is `krex`."""

from krex.cli import main

if __name__ == "__main__":
    main()
