"""A clinical report as its lines, the cells of its tables, and the parts that its headings divide it into."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from evalkit.documents.bundle import Block, Page

Group = Literal["history", "method", "other", ""]
"""What a part is about: what was known before, how the examination was made, or the findings; ``""`` before any heading."""

_LONGEST = 1_000
"""Characters of a line; longer ones are cut between sentences."""
_CONTINUED = r"(?:\s*\(?\s*(?:continued|cont\.?|cont'd)\s*\)?)?"
_SIGNED = re.compile(
    r"(?i)^(?:\W*(?:page \d+|end of (?:the )?report|this (?:report|document|test|study) (?:was|has|is)\b).*|\W*(?:electronically )?(?:signed|dictated|transcribed|verified|read) (?:by|and)\b.*|[^.:\n]{2,60}\b(?:M\.?D\.?|D\.?O\.?|PhD)\b(?:[^.:]|\d:\d\d){0,60})$"
)


class Cell(NamedTuple):
    """A cell of a table's row. ``start`` and ``end`` are characters of ``Page.text``."""

    start: int
    end: int
    text: str
    header: str
    """What the table's first row says above it."""


@dataclass(frozen=True)
class Line:
    """A heading, a paragraph or the row of a table; of a paragraph with headings inside, what stands between two."""

    page: Page
    start: int
    """Characters of ``Page.text``."""
    end: int
    kind: Literal["heading", "text", "row"]
    part: str
    """The name of the part it belongs to, in small letters; empty before the first heading."""
    group: Group
    header: tuple[str, ...] = ()
    """Of a row, the cells of the table's first row."""

    @cached_property
    def text(self) -> str:
        """As the page has it."""
        return self.page.text[self.start : self.end]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Of a row; empty for any other line."""
        if self.kind != "row":
            return ()
        cells, at = [], self.start
        for number, text in enumerate(self.text.split("\t")):
            inner = at + len(text) - len(text.lstrip())
            header = self.header[number] if number < len(self.header) else ""
            cells.append(Cell(inner, inner + len(text.strip()), text.strip(), header))
            at += len(text) + 1
        return tuple(cells)


Span = tuple[Page, int, int]
"""A page, and start and end of characters of its text."""


class Part(NamedTuple):
    """What stands below a heading, up to the next one; page by page where it goes on."""

    name: str
    spans: tuple[Span, ...]


class Report:
    """The readable pages of one report."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = tuple(pages)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """In reading order, without headers and footers of pages."""
        return tuple(_lines(self.pages))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """In reading order; one that is continued on the next page is one part."""
        parts: list[Part] = []
        for line in self.lines:
            span = line.page, line.start, line.end
            if not line.part or line.kind == "heading":
                continue
            if parts and parts[-1].name == line.part:
                last = parts[-1].spans[-1]
                joined = (
                    (*parts[-1].spans[:-1], (last[0], last[1], line.end))
                    if last[0] is line.page
                    else (*parts[-1].spans, span)
                )
                parts[-1] = Part(line.part, joined)
            else:
                parts.append(Part(line.part, (span,)))
        return tuple(parts)

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """What was found in it, by what it was looked for with."""
        return {}

    @cached_property
    def told(self) -> tuple[Line, ...]:
        """The lines that may tell a finding: not the history, not the method."""
        return tuple(line for line in self.lines if line.group not in ("history", "method"))


@cache
def lexicon() -> dict[str, Any]:
    """``clinical.toml``."""
    return tomllib.loads((files("evalkit.extraction") / "clinical.toml").read_text("utf-8"))


@cache
def _groups() -> dict[str, Group]:
    return {name: group for group in ("other", "method", "history") for name in lexicon()["sections"][group]}


@cache
def _names() -> str:
    return "|".join(re.escape(name) for name in sorted(_groups(), key=len, reverse=True))


@cache
def _whole() -> re.Pattern[str]:
    """A heading of its own: the name alone, or with what it is about."""
    return re.compile(rf"(?i)^\W*(?:\d+\.\s*)?(?P<name>{_names()}){_CONTINUED}\s*[:.]?\s*$")


@cache
def _opening() -> re.Pattern[str]:
    """A name at the beginning of a line that its text follows."""
    return re.compile(rf"(?i)^\W*(?:\d+\.\s*)?(?P<name>{_names()}){_CONTINUED}\s*(?::|\.(?=\s+[A-Z])|\s[-–]\s)\s*")


@cache
def _inside() -> re.Pattern[str]:
    """A name in capitals within a paragraph."""
    return re.compile(
        rf"(?:(?<=[.:;)]\s)|(?<=[.:;)]\s\s))(?P<name>{_names().upper()})(?:\s*\(CONTINUED\))?\s*[:.](?=\s|\d|[A-Z])"
    )


def _lines(pages: Sequence[Page]) -> Iterator[Line]:
    reader = _Reader()
    for page in pages:
        at = 0
        for block in page.visible_blocks:
            if not block.furniture:
                yield from reader.read(page, block, at)
            at += len(block.text) + 1


class _Reader:
    """Reads block after block, and knows under which heading it is."""

    def __init__(self) -> None:
        self._part = ""
        self._group: Group = ""

    def read(self, page: Page, block: Block, start: int) -> Iterator[Line]:
        """The lines of a block whose text begins at ``start`` of the page's."""
        if block.type == "table":
            yield from _rows(page, block.text, start, self._part, self._group)
        elif block.type == "heading" and not _opening().match(block.text):
            self._title(block.text)
            yield self._line(page, start, start + len(block.text), "heading")
        else:
            for first, last in _cut(block.text):
                yield from self._paragraph(page, start + first, start + last)

    def _title(self, text: str) -> None:
        if known := _whole().match(text):
            self._enter(known["name"])
        elif self._group in ("history", "method"):  # what nobody knows is the title of something else
            self._part, self._group = "", ""

    def _enter(self, name: str) -> None:
        self._part = name.lower()
        self._group = _groups()[self._part]

    def _paragraph(self, page: Page, start: int, end: int) -> Iterator[Line]:
        text = page.text[start:end]
        if known := _whole().match(text):
            self._enter(known["name"])
            yield self._line(page, start, end, "heading")
            return
        if known := _opening().match(text):
            self._enter(known["name"])
            yield self._line(page, start, start + known.end(), "heading")
            start += known.end()
        elif self._part and _SIGNED.match(text):
            self._part, self._group = "", ""
        if page.text[start:end].strip():
            yield self._line(page, start, end, "text")

    def _line(self, page: Page, start: int, end: int, kind: Literal["heading", "text"]) -> Line:
        return Line(page, start, end, kind, self._part, self._group)


def _cut(text: str) -> Iterator[tuple[int, int]]:
    """The lines of a block, each cut before the headings that stand within it."""
    at = 0
    for line in text.split("\n"):
        cuts = [0, *(match.start() for match in _inside().finditer(line)), len(line)]
        for first, last in pairwise(cuts):
            if line[first:last].strip():
                yield from _pieces(line, at, first, last)
        at += len(line) + 1


def _pieces(line: str, at: int, first: int, last: int) -> Iterator[tuple[int, int]]:
    """A line in pieces that are cheap to search: patterns look at a line again from each of its letters."""
    while last - first > _LONGEST:
        window = line[first : first + _LONGEST]
        end = max(window.rfind(". ") + 1, window.rfind("; ") + 1) or window.rfind(" ") or _LONGEST
        end = end if end > 0 else _LONGEST
        yield at + first, at + first + end
        first += end
    if line[first:last].strip():
        yield at + first, at + last


def _rows(page: Page, text: str, start: int, part: str, group: Group) -> Iterator[Line]:
    rows = text.split("\n")
    first = tuple(cell.strip() for cell in rows[0].split("\t"))
    is_header = len(rows) > 1 and _is_header(first)
    at = start
    for number, row in enumerate(rows):
        if not (is_header and number == 0):
            yield Line(page, at, at + len(row), "row", part, group, first if is_header else ())
        at += len(row) + 1


def _is_header(cells: Sequence[str]) -> bool:
    """Whether a table's first row says what its columns are: no value in it, and a word that only such rows have."""
    has_value = any(re.search(r":\s*\S|^[<>]?\d+(?:\.\d+)?(?!\d*/)", cell) for cell in cells)
    return not has_value and any(cell.lower() in lexicon()["tables"]["header"] for cell in cells)
