#!/bin/sh
# Set up VENV with the locked versions and this project, then Azurite inside it. Called by make.
set -eu
venv=$1
lock=$2
python=${PYTHON:-python3}

fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

command -v "$python" >/dev/null 2>&1 || fail "$python is not installed. Install Python 3.11 or newer, or run: make PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "$("$python" --version) is too old. Install Python 3.11 or newer, or run: make PYTHON=/path/to/python3.11"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
  fail "Python's venv module is missing. On Debian and Ubuntu: sudo apt install python3-venv"

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
echo "setup: installing locked Python packages into $venv (once; a few minutes on a slow network)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$lock" ||
  fail "the locked packages could not be installed; read pip's message above. Without a network, nothing can be downloaded: try again online."
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . ||
  fail "the project itself could not be installed; read pip's message above."
"$venv/bin/python" -m hastegeo.local_cloud.install_azurite
echo "setup: done"
