"""`python -m batch_emulator` is the `batch-emulator` command."""

import sys

from batch_emulator.cli import main

if __name__ == "__main__":
    sys.exit(main())
