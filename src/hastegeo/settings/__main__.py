"""Writes the settings reference to standard output: `python -m hastegeo.settings`."""

import sys

from hastegeo.settings.reference import reference_page

if __name__ == "__main__":
    sys.stdout.write(reference_page())
