"""`python -m hastegeo.local_cloud.install_azurite` installs Azurite into this virtual environment."""

from __future__ import annotations

import sys

from hastegeo.errors import HasteError
from hastegeo.local_cloud import azurite


def main() -> int:
    """Install Azurite, or say in one sentence why it could not be done."""
    try:
        azurite.install()
    except HasteError as error:
        print(f"setup: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
