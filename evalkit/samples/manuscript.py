"""The text of a sample document, before it is drawn.

A manuscript is a TOML file. Each ``[[part]]`` is one source document with its own letterhead and page count; each of
its ``pages`` is a text in a small markup, one block per group of equal lines::

    # Title                     ## Heading                  plain lines become one paragraph, **bold** inside
    - list item                 1. numbered item            | cell | cell |   (first row is the header)
    [x] ticked  [ ] not ticked  : Label | value | Label | value               (fields of a form)
    ! boxed statement           ~ Signer | role | when      > small print
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Literal

from pydantic import field_validator

from evalkit.core.records import StrictRecord

BlockKind = Literal[
    "title", "heading", "paragraph", "item", "table", "checks", "fields", "callout", "signature", "small"
]

#: First match wins; the last row catches all. Characters that a pattern consumes are not drawn.
BLOCK_MARKERS: tuple[tuple[re.Pattern[str], BlockKind], ...] = (
    (re.compile(r"## "), "heading"),
    (re.compile(r"# "), "title"),
    (re.compile(r"(?=- |\d+\. )"), "item"),
    (re.compile(r"(?=\|)"), "table"),
    (re.compile(r"(?=\[[ x]\] )"), "checks"),
    (re.compile(r": "), "fields"),
    (re.compile(r"! "), "callout"),
    (re.compile(r"~ "), "signature"),
    (re.compile(r"> "), "small"),
    (re.compile(r""), "paragraph"),
)

#: Kinds whose lines flow into one text; the lines of the others stay lines.
FLOWING_KINDS: tuple[BlockKind, ...] = ("paragraph", "small", "callout")


@dataclass(frozen=True)
class ManuscriptBlock:
    """A group of lines that are drawn in the same way."""

    kind: BlockKind
    lines: tuple[str, ...]

    @property
    def cells(self) -> list[list[str]]:
        """The cells of each line, which bars separate."""
        return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in self.lines]


def parse_blocks(page_markup: str) -> list[ManuscriptBlock]:
    r"""Parse a page's markup into blocks, in order.

    A line with two leading spaces continues the one before.

    >>> parse_blocks("## Plan\n- rest\n- return in\n  two weeks")
    [ManuscriptBlock(kind='heading', lines=('Plan',)), ManuscriptBlock(kind='item', lines=('- rest', '- return in two weeks'))]
    """
    groups: list[tuple[BlockKind, list[str]]] = []
    is_new_group = True
    for line in page_markup.splitlines():
        if not line.strip():
            is_new_group = True
            continue
        if line.startswith("  ") and groups and not is_new_group:
            groups[-1][1][-1] += " " + line.strip()
            continue
        kind, text = _classify_line(line.rstrip())
        if is_new_group or groups[-1][0] != kind or kind == "heading":
            groups.append((kind, [text]))
        else:
            groups[-1][1].append(text)
        is_new_group = False
    return [
        ManuscriptBlock(kind, (" ".join(lines),) if kind in FLOWING_KINDS else tuple(lines)) for kind, lines in groups
    ]


def _classify_line(line: str) -> tuple[BlockKind, str]:
    for pattern, kind in BLOCK_MARKERS:
        match = pattern.match(line)
        if match:
            return kind, line[match.end() :]
    raise AssertionError("the last pattern matches every line")


class ManuscriptPart(StrictRecord):
    """One source document: its paper and its text."""

    organisation: str
    """First line of the letterhead, the largest."""
    address: tuple[str, ...] = ()
    """Further lines of the letterhead."""
    colour: tuple[float, float, float] = (0.10, 0.22, 0.42)
    """The colour of letterhead, rules and headings (red, green, blue; 0..1)."""
    font: Literal["sans", "serif", "mono"] = "sans"
    size: float = 10.5
    """The size of the body text, in points."""
    patient: tuple[tuple[str, str], ...] = ()
    """Label and value of each field of the strip under the first letterhead."""
    running_header: str = ""
    """The header from the second page on, where there is no letterhead."""
    misfiled_headers: dict[str, str] = {}
    """Other headers by page number: another patient's page among the part's own."""
    footer: str = ""
    """The footer of every page, next to its number."""
    pages: tuple[str, ...]
    """The markup of each page; an empty one stays blank."""


class Manuscript(StrictRecord):
    """A whole PDF."""

    title: str
    """The title in the file's metadata, which is not drawn."""
    fax: str = ""
    """The line that the fax machine printed at the top of every page, without the page number."""
    scanned: Literal["", "well", "poorly"] = ""
    """Not empty: pages are slightly skewed images without a text layer; ``poorly``: unreadable ones."""
    part: tuple[ManuscriptPart, ...]

    @field_validator("part")
    @classmethod
    def _require_latin_1(cls, parts: tuple[ManuscriptPart, ...]) -> tuple[ManuscriptPart, ...]:
        # The standard fonts of PDF viewers have Latin-1 only; anything else would be drawn as a dot.
        for part in parts:
            part.model_dump_json().encode("latin-1")
        return parts

    @property
    def total_pages(self) -> int:
        """The number of pages of all parts."""
        return sum(len(part.pages) for part in self.part)

    @classmethod
    def parse_toml(cls, toml_text: str) -> Manuscript:
        """Parse the text of a TOML file."""
        return cls.model_validate(tomllib.loads(toml_text))
