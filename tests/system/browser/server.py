"""A running `evalkit review`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from patience import SECONDS, eventually
from places import open_folder

from evalkit.review.roster import ReviewerRoster


@dataclass(frozen=True)
class Served:
    """Where it is, what it works on, and the experts' codes."""

    address: str
    output: Path
    pid: int
    codes: dict[str, str]


def add_reviewers(output: Path, names: Sequence[str]) -> dict[str, str]:
    """Their codes, by name."""
    roster = ReviewerRoster(open_folder(output))
    return {name: roster.add_reviewer_or_replace_code(name) for name in names}


Serve = Callable[[Path, Sequence[str]], AbstractContextManager[Served]]
"""Gives an output folder to these experts."""


@contextmanager
def serving(output: Path, names: Sequence[str], **environ: str) -> Iterator[Served]:
    """`evalkit review` over an output folder, for these experts."""
    codes = add_reviewers(output, names)
    words = [sys.executable, "-m", "evalkit", "review", "--port", "0", "--output", str(output)]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | environ,
        start_new_session=True,
    )
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
        assert eventually(lambda: _answers(address))
        yield Served(address, output, process.pid, codes)
    finally:
        process.terminate()
        process.wait(SECONDS)


@contextmanager
def serving_in_turn(link: Path) -> Iterator[Serve]:
    """One `evalkit review` for many output folders, one after the other: it works on what the link leads to."""
    nothing = link.with_name("nothing")
    nothing.mkdir()
    _lead(link, nothing)
    with serving(link, ["dr_nobody"]) as server:

        @contextmanager
        def serve(output: Path, names: Sequence[str]) -> Iterator[Served]:
            codes = add_reviewers(output, names)
            _lead(link, output)
            try:
                yield replace(server, output=output, codes=codes)
                assert eventually(lambda: len(kernels(server.pid)) <= 1), "only the kernel in reserve is left"
            finally:
                _lead(link, nothing)

        yield serve


def _lead(link: Path, output: Path) -> None:
    other = link.with_name("other")
    other.symlink_to(output)
    other.replace(link)


def kernels(server: int) -> list[int]:
    """The processes of a server's pages, and of the one that waits to be a page's."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    return [int(pid) for pid, parent, words in rows if int(parent) == server and "evalkit.serving.kernel" in words]


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(f"{address}/login", timeout=SECONDS).close()
    except (urllib.error.URLError, OSError):
        return False
    return True
