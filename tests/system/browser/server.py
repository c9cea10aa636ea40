"""A running `evalkit review`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patience import SECONDS, eventually
from places import open_folder

from evalkit.review.roster import Roster


@dataclass(frozen=True)
class Served:
    """Where it is, what it works on, and the experts' codes."""

    address: str
    output: Path
    pid: int
    codes: dict[str, str]


@contextmanager
def serving(output: Path, names: Sequence[str], **environ: str) -> Iterator[Served]:
    """`evalkit review` over an output folder, for these experts."""
    roster = Roster(open_folder(output))
    codes = {name: roster.add_reviewer(name) for name in names}
    words = [sys.executable, "-m", "evalkit", "review", "--port", "0", "--output", str(output)]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ | environ
    )
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
        assert eventually(lambda: _answers(address))
        yield Served(address, output, process.pid, codes)
    finally:
        process.terminate()
        process.wait(SECONDS)


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(f"{address}/login", timeout=SECONDS).close()
    except (urllib.error.URLError, OSError):
        return False
    return True
