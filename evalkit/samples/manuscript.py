"""What is written on a sample document, before it is drawn.

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

from evalkit.frozen import Frozen

Kind = Literal["title", "heading", "paragraph", "item", "table", "checks", "fields", "callout", "signature", "small"]

MARKS: tuple[tuple[re.Pattern[str], Kind], ...] = (
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
"""First match wins; the last row catches all. What a pattern consumes is not drawn."""

JOINED: tuple[Kind, ...] = ("paragraph", "small", "callout")
"""Kinds whose lines flow into one text; the lines of the others stand for themselves."""


@dataclass(frozen=True)
class Block:
    """A group of lines that are drawn in one manner."""

    kind: Kind
    lines: tuple[str, ...]

    @property
    def cells(self) -> list[list[str]]:
        """Each line, cut at its bars."""
        return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in self.lines]


def blocks(page: str) -> list[Block]:
    r"""A page's markup as blocks, in order. A line that begins with two spaces continues the one before.

    >>> blocks("## Plan\n- rest\n- return in\n  two weeks")
    [Block(kind='heading', lines=('Plan',)), Block(kind='item', lines=('- rest', '- return in two weeks'))]
    """
    found: list[tuple[Kind, list[str]]] = []
    fresh = True
    for line in page.splitlines():
        if not line.strip():
            fresh = True
            continue
        if line.startswith("  ") and found and not fresh:
            found[-1][1][-1] += " " + line.strip()
            continue
        kind, text = _classify(line.rstrip())
        if fresh or found[-1][0] != kind or kind == "heading":
            found.append((kind, [text]))
        else:
            found[-1][1].append(text)
        fresh = False
    return [Block(kind, (" ".join(lines),) if kind in JOINED else tuple(lines)) for kind, lines in found]


def _classify(line: str) -> tuple[Kind, str]:
    for pattern, kind in MARKS:
        match = pattern.match(line)
        if match:
            return kind, line[match.end() :]
    raise AssertionError("the last pattern matches every line")


class Part(Frozen):
    """One source document: its paper, and what stands on it."""

    organisation: str
    """First line of the letterhead, the largest."""
    address: tuple[str, ...] = ()
    """Further lines of the letterhead."""
    colour: tuple[float, float, float] = (0.10, 0.22, 0.42)
    """Of letterhead, rules and headings (red, green, blue; 0..1)."""
    font: Literal["sans", "serif", "mono"] = "sans"
    size: float = 10.5
    """Of the body text, in points."""
    patient: tuple[tuple[str, str], ...] = ()
    """Label and value of each field of the strip under the first letterhead."""
    running_header: str = ""
    """Stands at the top from the second page on, where the letterhead is no more."""
    footer: str = ""
    """Stands at the foot of every page, beside its number."""
    pages: tuple[str, ...]
    """Markup; an empty page stays blank to the last dot."""


class Manuscript(Frozen):
    """A whole PDF."""

    title: str
    """Goes into the file's metadata, is drawn nowhere."""
    fax: str = ""
    """What the sending machine printed on top of every page, the page's number excepted."""
    scanned: Literal["", "well", "poorly"] = ""
    """Whether the pages are pictures of paper, slightly skewed and without a text layer; ``poorly``: nobody can read them."""
    part: tuple[Part, ...]

    @field_validator("part")
    @classmethod
    def _drawable(cls, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        # The fonts that every PDF viewer brings know Latin-1 only; anything else would be drawn as a dot.
        for part in parts:
            part.model_dump_json().encode("latin-1")
        return parts

    @property
    def total_pages(self) -> int:
        """Of all parts."""
        return sum(len(part.pages) for part in self.part)

    @classmethod
    def parse(cls, text: str) -> Manuscript:
        """From the text of a TOML file."""
        return cls.model_validate(tomllib.loads(text))
