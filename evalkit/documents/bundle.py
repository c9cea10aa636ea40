"""DocumentBundle: everything that was read from one file, page by page.

Every later step uses the bundle instead of reading the file again. Every page 1..``total_pages`` is in the bundle,
blank and unreadable pages too, and is looked up by its number. Boxes are fractions 0..1 of the page as it is displayed
(after rotation), x to the right, y downwards.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import chain, pairwise
from operator import not_
from sys import intern
from typing import Any, Literal, Self, TypeVar, overload

from pydantic import Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

from evalkit.core.records import StrictRecord

BUNDLE_SCHEMA_VERSION = 1

#: A rectangle: x0, y0, x1, y1 as fractions 0..1 of the displayed page.
Box = tuple[float, float, float, float]

CoordinateT = TypeVar("CoordinateT", int, float)

#: A word's place: start and end in ``Page.text`` (characters, end exclusive), then x0, y0, x1, y1 in ten-thousandths of
#: the page.
WordPosition = tuple[int, int, int, int, int, int]

_NUMBERS_PER_WORD = 6


def enclose_boxes(
    boxes: Iterable[tuple[CoordinateT, CoordinateT, CoordinateT, CoordinateT]],
) -> tuple[CoordinateT, CoordinateT, CoordinateT, CoordinateT]:
    """Return the smallest box around all boxes. ValueError if there is no box."""
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


class PackedWords(Sequence[WordPosition]):
    """Compact sequence of a page's word positions: 12 bytes per word, not some 300.

    The sequence is indexed, compared and serialised like a tuple of ``WordPosition``. A file of 500 pages has 160,000
    words, of which a screen needs only those of a few pages. On a page with more than 65,535 characters, or with a word
    outside the page's edges, each word takes 24 bytes.
    """

    __slots__ = ("_numbers",)

    def __init__(self, words: Iterable[Sequence[int]] = ()) -> None:
        """Pack words, each of six whole numbers (``WordPosition``) of at most 31 bits.

        ValueError if a word is anything else; the message quotes no number.
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
            raise ValueError("a word must consist of six whole numbers of at most 31 bits")

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
    """Replace words and texts in a page's JSON by a compact form, and return it.

    Called while a bundle's JSON is loaded. Words become ``PackedWords`` and equal texts become one object, so that the
    words of a long document are never in memory as separate lists, and page text, paragraphs and blocks, which mostly
    repeat each other, are in memory once instead of three times. JSON of another shape is left unchanged; the model's
    validation refuses it.
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
    """Source of a page's text, or the reason why the page has none."""

    TEXT = "text"
    OCR = "ocr"
    BLANK = "blank"
    """Nothing is drawn on the page."""
    IMAGE = "image"
    """Something is drawn on the page, but no text could be read."""
    FAILED = "failed"
    """The page is broken in the file, or could not be given to the reader."""

    @property
    def is_readable(self) -> bool:
        """True if the page's text is complete; also for a blank page, which has none."""
        return self in (PageStatus.TEXT, PageStatus.OCR, PageStatus.BLANK)


class Block(StrictRecord):
    """A heading, paragraph, list item or table on a page."""

    type: BlockType
    text: str
    """Text of the block; in a table, tabs separate cells and line breaks separate rows."""
    box: Box
    furniture: bool = False
    """True for a header, footer, page number or stamp, which says nothing about the document's content."""
    hidden: bool = False
    """True if a person cannot see the block; its text is then left out of ``Page.text``."""


class LayoutMetadata(StrictRecord):
    """Summary of a page's layout, as slide 3 of the specification asks for."""

    block_types: tuple[BlockType, ...]
    """Type of each paragraph in ``Page.paragraphs``, in the same order."""
    has_tables: bool


IdentifierKind = Literal[
    "patient", "date_of_birth", "sex", "age", "mrn", "account", "accession", "visit", "report_date"
]
IdentifierSource = Literal["label", "running_head", "running_text", "barcode"]


class Identifier(StrictRecord):
    """A fact that a page states about its patient (name, number, …), or its date."""

    kind: IdentifierKind
    value: str
    """The fact as the page writes it."""
    normal: str
    """The fact in the form that comparisons use: names in capitals as ``LAST FIRST``, dates as ISO 8601, numbers
    without separators, sex F, M or X."""
    box: Box
    """Rectangle around the label and the value."""
    issuer: str | None = None
    """For a number: the institution that issued it, named by the label or the page's letterhead; None if unknown."""
    source: IdentifierSource = "label"
    """Evidence that the fact is the patient's: its label, or its place on the page."""
    confidence: float = 1.0
    """OCR's confidence in the least certain word of the value, 0..1; 1 without OCR."""


class AddressedText(StrictRecord):
    """Instruction to a language model that was found outside of a page's text."""

    place: str
    """Place of the words, in a clinician's words: "a comment on the page"."""
    text: str


class Page(StrictRecord):
    """One page of a file: its text, blocks, word positions and patient facts."""

    page_num: int
    """Number of the page in the file, from 1."""
    status: PageStatus
    language: str = Field(default="", exclude_if=not_)
    """ISO 639-1 code of the language that the page is written in; empty if that is not known, or there is too little
    text."""
    text: str
    """All ``paragraphs``, joined by line breaks."""
    paragraphs: tuple[str, ...]
    """Text of each block that a person can see, in reading order."""
    layout_metadata: LayoutMetadata
    blocks: tuple[Block, ...]
    words: PackedWords = PackedWords()
    """Position of each word of ``text`` whose place on the page is known."""
    confidences: tuple[int, ...] = ()
    """OCR's confidence in each word of ``words``, 0..100; empty without OCR."""
    doubtful: tuple[int, ...] = Field(default=(), exclude_if=not_)
    """Positions in ``words``, ascending, of words whose reading is in doubt: a second OCR engine read them differently,
    or there is no second reading and the first engine was not sure."""
    second_readings: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """For each of ``doubtful``: the other engine's reading, which the text does not have; empty if there is none."""
    quality: float | None = None
    """Quality of the page's recognition by OCR, from 0 (unreadable) to 1; None without OCR."""
    damage: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Sentences for a clinician: what of the page is lost because the file is broken, or lies about its letters."""
    problems: tuple[str, ...] = ()
    """Sentences for a clinician: reasons why the page was recognised poorly or not at all, each with advice."""
    addressed: tuple[AddressedText, ...] = Field(default=(), exclude_if=not_)
    """Words that address a program, in comments and form fields of the page; on page 1, also in the file's properties
    and names."""
    unread: str | None = None
    """Sentence for a clinician: the reason why pictures on a page with text were not read, with advice; None if there
    is no such picture."""
    identifiers: tuple[Identifier, ...] = ()
    """Patient facts and the date of the page, from the top of the page down: at most one of each kind and issuer."""

    @model_validator(mode="after")
    def _check_doubtful_words(self) -> Self:
        if not self.doubtful and not self.second_readings:
            return self
        if len(self.doubtful) != len(self.second_readings):
            raise ValueError("doubtful and second_readings must have the same length")
        if not all(low < high for low, high in pairwise((-1, *self.doubtful, len(self.words)))):
            raise ValueError("doubtful must list positions in words, in ascending order")
        return self

    @property
    def visible_blocks(self) -> tuple[Block, ...]:
        """Blocks that a person can see, in the order of ``paragraphs``."""
        return tuple(block for block in self.blocks if not block.hidden)


class DocumentBundle(StrictRecord):
    """Everything that was read from one file, page by page."""

    schema_version: int = BUNDLE_SCHEMA_VERSION
    doc_id: str
    file_path: str
    """Path from which the file was read."""
    sha256: str
    """SHA-256 of the file's bytes, as 64 hex digits; it identifies the document."""
    reader: str
    """Names and versions of all readers of the run, joined by commas."""
    is_repaired: bool = False
    """True if the file was damaged and could be opened only after a repair: content may be missing."""
    is_too_slow: bool = Field(False, exclude_if=not_)
    """True if the file could not be read within the time limits, so that no page was read."""
    is_converted: bool = Field(False, exclude_if=not_)
    """True if the pages are those of a PDF made from the file or attached to it, which the output folder has."""
    total_pages: int
    processing_timestamp: str
    """Time at which the file was read (ISO 8601, UTC)."""
    pages: tuple[Page, ...]

    @model_validator(mode="after")
    def _check_page_numbers(self) -> Self:
        # The pages are counted first: a damaged total may be any number.
        if len(self.pages) != self.total_pages or any(
            page.page_num != number for number, page in enumerate(self.pages, 1)
        ):
            raise ValueError("pages must be exactly 1..total_pages, in order")
        return self

    def page(self, page_num: int) -> Page:
        """Return page ``page_num``, counted from 1. KeyError if the file has no such page."""
        if not 1 <= page_num <= self.total_pages:
            raise KeyError(page_num)
        return self.pages[page_num - 1]

    def iter_pages(self, start_page: int, end_page: int) -> Iterator[Page]:
        """Iterate over the pages from ``start_page`` to ``end_page``, both included.

        Page numbers that the file does not have are ignored.
        """
        return iter(self.pages[max(start_page, 1) - 1 : max(end_page, 0)])

    @property
    def language(self) -> str:
        """ISO 639-1 code of the file's language; empty if it is not known.

        If some pages are in English and others are not, the language of most of the others.
        """
        counts = Counter(page.language for page in self.pages if page.language)
        return max(counts, key=lambda code: (code != "en", counts[code]), default="")

    @property
    def unreadable_pages(self) -> list[int]:
        """Numbers of the pages whose content could not be read."""
        return [page.page_num for page in self.pages if not page.status.is_readable]

    @property
    def has_text(self) -> bool:
        """True if at least one page has text."""
        return any(page.text.strip() for page in self.pages)
