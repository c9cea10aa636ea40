"""The content of a file, read once: the single source of truth.

Every page 1..``total_pages`` is there, blank and unreadable ones too, and is looked up by its number. Boxes are
fractions 0..1 of the page as it is displayed (after rotation), x to the right, y downwards.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import chain
from sys import intern
from typing import Any, Literal, Self, overload

from pydantic import GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

from evalkit.core.records import StrictRecord

BUNDLE_SCHEMA_VERSION = 1

#: x0, y0, x1, y1 as fractions 0..1 of the displayed page.
Box = tuple[float, float, float, float]

#: start and end (characters of ``Page.text``, end exclusive), then x0, y0, x1, y1 in ten-thousandths of the page.
WordPosition = tuple[int, int, int, int, int, int]

_NUMBERS_PER_WORD = 6


class PackedWords(Sequence[WordPosition]):
    """The words of a page, packed: 12 bytes a word instead of some 300.

    It reads, compares and serialises like a tuple of them. A file of 500 pages has 160,000 words, of which a screen
    asks for those of a few pages. On a page of more than 65,535 characters, or with a word outside its edges, a word
    takes 24 bytes.
    """

    __slots__ = ("_numbers",)

    def __init__(self, words: Iterable[Sequence[int]] = ()) -> None:
        """Pack words of six whole numbers, each of at most 31 bits.

        ValueError, which quotes none of them, if a word is not that.
        """
        rows = tuple(words)
        try:
            is_valid = {_NUMBERS_PER_WORD}.issuperset(map(len, rows))
            try:
                self._numbers = array("H", chain.from_iterable(rows))
            except OverflowError:
                self._numbers = array("i", chain.from_iterable(rows))
        except (TypeError, OverflowError):
            is_valid = False
        if not is_valid:
            raise ValueError("a word is not six whole numbers of at most 31 bits")

    def __len__(self) -> int:
        return len(self._numbers) // _NUMBERS_PER_WORD

    def __iter__(self) -> Iterator[WordPosition]:
        numbers = iter(self._numbers)
        return zip(numbers, numbers, numbers, numbers, numbers, numbers, strict=True)

    @overload
    def __getitem__(self, index: int) -> WordPosition: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[WordPosition, ...]: ...
    def __getitem__(self, index: int | slice) -> WordPosition | tuple[WordPosition, ...]:
        offsets = range(0, len(self._numbers), _NUMBERS_PER_WORD)[index]
        if isinstance(offsets, range):
            return tuple(self._read_word(offset) for offset in offsets)
        return self._read_word(offsets)

    def _read_word(self, offset: int) -> WordPosition:
        return tuple(self._numbers[offset : offset + _NUMBERS_PER_WORD])  # type: ignore[return-value]  # six of them

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedWords):
            return self._numbers == other._numbers
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        tuple_schema = handler(tuple[WordPosition, ...])
        return core_schema.no_info_wrap_validator_function(
            lambda words, validate: words if isinstance(words, cls) else cls(validate(words)),
            tuple_schema,
            serialization=core_schema.plain_serializer_function_ser_schema(tuple, return_schema=tuple_schema),
        )


def compact_page_json_in_place(page_json: dict[str, Any]) -> dict[str, Any]:
    """Pack a page's words and intern its texts while a bundle's JSON is loaded.

    So a long document's words are never in memory one by one, and the page's text, paragraphs and blocks, which mostly
    repeat each other, not three times. JSON of another shape is left for the model to refuse.
    """
    if type(text := page_json.get("text")) is str:
        page_json["text"] = intern(text)
    if isinstance(paragraphs := page_json.get("paragraphs"), list):
        page_json["paragraphs"] = [
            intern(paragraph) if type(paragraph) is str else paragraph for paragraph in paragraphs
        ]
    if isinstance(words := page_json.get("words"), list):
        with suppress(ValueError):
            page_json["words"] = PackedWords(words)
    return page_json


BlockType = Literal["heading", "paragraph", "list_item", "table"]


class PageStatus(StrEnum):
    """The source of a page's text."""

    TEXT = "text"
    OCR = "ocr"
    BLANK = "blank"
    """Nothing is drawn on it."""
    IMAGE = "image"
    """Something is drawn, but no text could be read."""
    FAILED = "failed"
    """The page itself is broken."""

    @property
    def is_readable(self) -> bool:
        """The text holds everything that the page says; a blank page says nothing."""
        return self in (PageStatus.TEXT, PageStatus.OCR, PageStatus.BLANK)


class Block(StrictRecord):
    """A heading, paragraph, list item or table, in reading order."""

    type: BlockType
    text: str
    """Table cells are separated by tabs, rows by line breaks."""
    box: Box
    furniture: bool = False
    """Header, footer or page number: repeated from page to page, part of no paragraph's meaning."""
    hidden: bool = False
    """Invisible to a person; not part of ``Page.text``."""


class LayoutMetadata(StrictRecord):
    """Slide 3's summary of a page's layout."""

    block_types: tuple[BlockType, ...]
    """One per paragraph, in the same order."""
    has_tables: bool


IdentifierKind = Literal[
    "patient", "date_of_birth", "sex", "age", "mrn", "account", "accession", "visit", "report_date"
]
IdentifierSource = Literal["label", "running_head", "running_text", "barcode"]


class Identifier(StrictRecord):
    """A fact about a page's patient, or its date."""

    kind: IdentifierKind
    value: str
    """As the page writes it."""
    normal: str
    """To compare by: names in capitals as ``LAST FIRST``, dates as ISO 8601, numbers without separators, sex F, M or X."""
    box: Box
    """Around label and value."""
    issuer: str | None = None
    """A number's institution, by the page's letterhead."""
    source: IdentifierSource = "label"
    """The sign that it is the patient's."""
    confidence: float = 1.0
    """OCR's confidence in its least sure word, 0..1; 1 without OCR."""


class Page(StrictRecord):
    """A page of the file."""

    page_num: int
    """From 1, as the PDF counts."""
    status: PageStatus
    text: str
    """The paragraphs, joined by line breaks."""
    paragraphs: tuple[str, ...]
    """The text of each block that a person can see, in reading order."""
    layout_metadata: LayoutMetadata
    blocks: tuple[Block, ...]
    words: PackedWords = PackedWords()
    """The place of each word of ``text``."""
    confidences: tuple[int, ...] = ()
    """OCR's confidence in each of ``words``, 0..100; empty without OCR."""
    quality: float | None = None
    """How well the page was recognised, 0..1; None without OCR."""
    problems: tuple[str, ...] = ()
    """Why the page could not be recognised, or only poorly, and what would help; for a clinician."""
    unread: str | None = None
    """Why a picture on a page of text was not read, and what would help; for a clinician."""
    identifiers: tuple[Identifier, ...] = ()
    """The first of each kind, from the top of the page down."""

    @property
    def visible_blocks(self) -> tuple[Block, ...]:
        """The blocks behind ``paragraphs``, in the same order."""
        return tuple(block for block in self.blocks if not block.hidden)


class DocumentBundle(StrictRecord):
    """A file, read."""

    schema_version: int = BUNDLE_SCHEMA_VERSION
    doc_id: str
    file_path: str
    """The path that the file was read from."""
    sha256: str
    """SHA-256 of the file's bytes: the document's identity."""
    reader: str
    """Name and version of what read it."""
    is_repaired: bool = False
    """The file was damaged and only opened after a repair: content may be missing."""
    total_pages: int
    processing_timestamp: str
    """When it was read (ISO 8601, UTC)."""
    pages: tuple[Page, ...]

    @model_validator(mode="after")
    def _check_page_numbers(self) -> Self:
        if [page.page_num for page in self.pages] != list(range(1, self.total_pages + 1)):
            raise ValueError("pages must be exactly 1..total_pages, in order")
        return self

    def page(self, page_num: int) -> Page:
        """Return the page of that number, from 1. KeyError if there is none."""
        if not 1 <= page_num <= self.total_pages:
            raise KeyError(page_num)
        return self.pages[page_num - 1]

    def iter_pages(self, start_page: int, end_page: int) -> Iterator[Page]:
        """Iterate over the existing pages start..end, both included."""
        return iter(self.pages[max(start_page, 1) - 1 : max(end_page, 0)])

    @property
    def unreadable_pages(self) -> list[int]:
        """The numbers of pages whose content could not be read."""
        return [page.page_num for page in self.pages if not page.status.is_readable]

    @property
    def has_text(self) -> bool:
        """Any page has text."""
        return any(page.text.strip() for page in self.pages)
