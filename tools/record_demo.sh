#!/bin/sh
# Record a real run of the demo as docs/images/demo.svg: what its terminal showed, tables and all. Needs tmux.
set -eu
cd "$(dirname "$0")/.."
session="haste-demo-$$"
screen=$(mktemp)
trap 'tmux kill-session -t "$session" 2>/dev/null || true; rm -f "$screen"' EXIT
tmux new-session -d -s "$session" -x 116 -y 170 "make demo; printf 'exit code %s\n' \$?; sleep 600"
until tmux capture-pane -p -t "$session" | grep -q '^exit code'; do sleep 1; done
tmux capture-pane -e -p -t "$session" >"$screen"
.venv/bin/python - "$screen" docs/images/demo.svg <<'PYTHON'
import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

lines = Path(sys.argv[1]).read_text().rstrip().splitlines()
console = Console(record=True, width=116, file=io.StringIO(), force_terminal=True, color_system="truecolor")
console.print("[bold]$ make demo[/]", highlight=False)
for line in lines:
    console.print(Text.from_ansi(line), highlight=False, overflow="ignore", crop=True)
svg = console.export_svg(title="make demo")
# A picture must not fetch fonts: the reader's own monospace font does.
svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")
Path(sys.argv[2]).write_text(re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE))
PYTHON
