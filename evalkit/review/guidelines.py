"""The organisation's guidelines for reviewers: ``guidelines.md``."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from evalkit.errors import NotFound, StoreError
from evalkit.store import OutputFolder

GUIDELINES_FILE = "guidelines.md"
#: A longer file is not shown: it would slow down each screen that is opened.
MAX_GUIDELINES_BYTES = 64_000

_LIST_MARKER = re.compile(r"([-*+]|\d{1,3}[.)])\s+")
_HEADING_MARKER = re.compile(r"#+\s*")


def read_guidelines(output_folder: OutputFolder) -> list[dict[str, Any]]:
    """Read the guidelines as blocks: ``{kind, lines}``; empty if there are none.

    ``kind`` is ``heading``, ``list`` or ``text``. If the file cannot be read, the only block says so.
    """
    try:
        content = output_folder.read_bytes(GUIDELINES_FILE, MAX_GUIDELINES_BYTES + 1)
        if len(content) <= MAX_GUIDELINES_BYTES:
            return list(_iterate_blocks(content.decode("utf-8-sig")))
        problem = f"it is longer than {MAX_GUIDELINES_BYTES // 1000} kB"
    except NotFound:
        return []
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except StoreError as error:
        problem = error.message
    return [{"kind": "text", "lines": [f"{GUIDELINES_FILE} cannot be shown: {problem}. Tell your operator."]}]


def _iterate_blocks(markdown: str) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a small subset of Markdown; all else stays plain text."""
    lines = ("".join(filter(str.isprintable, line.expandtabs())).strip() for line in markdown.splitlines())
    for kind, group in groupby(lines, _classify_line):
        marker = {"heading": _HEADING_MARKER, "list": _LIST_MARKER}.get(kind)
        if kind:
            yield {"kind": kind, "lines": [marker.sub("", line, count=1) if marker else line for line in group]}


def _classify_line(line: str) -> str:
    if line.startswith("#"):
        return "heading"
    return "list" if _LIST_MARKER.match(line) else "text" if line else ""
