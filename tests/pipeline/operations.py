"""The code blocks of "From one machine to many" in evalkit/docs/operations.md."""

from __future__ import annotations

import re
from pathlib import Path

_PAGE = (Path(__file__).parents[2] / "evalkit/docs/operations.md").read_text()
_SECTION = _PAGE.partition("\n## From one machine to many\n")[2].partition("\n## ")[0]
_BLOCKS = [
    [line.partition("  #")[0].rstrip() for line in block.splitlines()]
    for block in re.findall(r"^```\n(.*?)^```$", _SECTION, re.DOTALL | re.MULTILINE)
]

#: What is exported, and the run.
TWO_COMMANDS: list[str] = _BLOCKS[0]
#: What is installed, the database, the scheduler and a worker.
SETUP: list[str] = _BLOCKS[1]
