"""`python -m hastegeo` is the `haste` command."""

import sys

from hastegeo.cli import main

if __name__ == "__main__":
    sys.exit(main())
