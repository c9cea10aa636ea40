"""What the README's section "Operations" has in its code blocks."""

from __future__ import annotations

import re
from pathlib import Path

_SECTION = (Path(__file__).parents[2] / "README.md").read_text().partition("\n## Operations\n")[2].partition("\n## ")[0]
_BLOCKS = [
    [line.partition("  #")[0].rstrip() for line in block.splitlines()]
    for block in re.findall(r"^```\n(.*?)^```$", _SECTION, re.DOTALL | re.MULTILINE)
]

#: What is exported, and the run.
TWO_COMMANDS: list[str] = _BLOCKS[0]
#: What is installed, the database, the scheduler and a worker.
SETUP: list[str] = _BLOCKS[1]
