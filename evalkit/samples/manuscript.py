"""Text and layout of a sample PDF, read from a TOML file.

Each ``[[part]]`` of the TOML file is one source document with its own letterhead and page count; each of its ``pages``
is text in a small markup, with one block per group of lines of the same kind::

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

#: (pattern, kind) rows: the first pattern that matches a line's start decides on the kind; the last one matches every
#: line. The matched characters are not drawn.
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

#: Kinds of block whose lines are joined to one text; in all other kinds each line is drawn separately.
FLOWING_KINDS: tuple[BlockKind, ...] = ("paragraph", "small", "callout")


@dataclass(frozen=True)
class ManuscriptBlock:
    """A group of consecutive lines of the same kind, such as a table or a list."""

    kind: BlockKind
    lines: tuple[str, ...]

    @property
    def cells(self) -> list[list[str]]:
        """The cells of each line, split at vertical bars."""
        return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in self.lines]


def parse_blocks(page_markup: str) -> list[ManuscriptBlock]:
    r"""Parse a page's markup into blocks, in order.

    A line with two leading spaces continues the line before.

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
    raise AssertionError("no pattern matches the line, although the last pattern should match every line")


class ManuscriptPart(StrictRecord):
    """One source document in the PDF: its letterhead, layout and page texts."""

    organisation: str
    """Name of the organisation, drawn large as the first line of the letterhead."""
    address: tuple[str, ...] = ()
    """Further lines of the letterhead."""
    colour: tuple[float, float, float] = (0.10, 0.22, 0.42)
    """Colour of letterhead, rules and headings: red, green, blue, each 0..1."""
    font: Literal["sans", "serif", "mono"] = "sans"
    size: float = 10.5
    """Font size of the body text, in points."""
    patient: tuple[tuple[str, str], ...] = ()
    """(label, value) of each field in the patient strip below the letterhead."""
    running_header: str = ""
    """Header of the second and all further pages."""
    misfiled_headers: dict[str, str] = {}
    """Page number → header that replaces ``running_header``, to imitate a page of another patient."""
    footer: str = ""
    """Footer of every page, next to the page number."""
    pages: tuple[str, ...]
    """The markup of each page; an empty string gives a blank page."""


class Manuscript(StrictRecord):
    """Content of a whole sample PDF: one or more source documents."""

    title: str
    """Title in the PDF's metadata; it is not drawn."""
    fax: str = ""
    """Fax line drawn at the top of every page, before the page number; empty for no fax line."""
    scanned: Literal["", "well", "poorly"] = ""
    """Empty: pages with a text layer. ``well``: slightly skewed page images without a text layer. ``poorly``: such
    images with a resolution too low to read."""
    saved_as: Literal["pdf", "tif", "eml", "docx"] = "pdf"
    """Format of the file, by its ending: a PDF, a fax, a mail with the PDF attached, or a Word letter."""
    mail: dict[str, str] = {}
    """Headers of the mail, its ``body``, and the file name of its ``attachment``; only for a mail."""
    part: tuple[ManuscriptPart, ...]

    @field_validator("part")
    @classmethod
    def _require_latin_1(cls, parts: tuple[ManuscriptPart, ...]) -> tuple[ManuscriptPart, ...]:
        # The standard fonts of PDF viewers have Latin-1 characters only; any other character would be drawn as a dot.
        for part in parts:
            part.model_dump_json().encode("latin-1")
        return parts

    @property
    def total_pages(self) -> int:
        """Total number of pages of all parts."""
        return sum(len(part.pages) for part in self.part)

    @classmethod
    def parse_toml(cls, toml_text: str) -> Manuscript:
        """Create a manuscript from the text of a TOML file."""
        return cls.model_validate(tomllib.loads(toml_text))
