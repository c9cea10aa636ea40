"""Interfaces of input formats and of the readers that turn files into pages.

Each file in ``readers/`` defines one :class:`InputFormat`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from evalkit.documents.bundle import Page

if TYPE_CHECKING:  # OCR brings NumPy, which most commands do without
    from evalkit.documents.scanned_pages import PageOcrSettings


class PagesRead(NamedTuple):
    """Result of reading a file: its pages, and changes that were needed to read them."""

    pages: tuple[Page, ...]
    """All pages of the file, from page 1 on, blank and unreadable pages too."""
    is_repaired: bool = False
    """True if the file was damaged and could be opened only after a repair."""
    converted_pdf: bytes | None = None
    """PDF made from the file, whose pages a person is shown; None if the file itself is a PDF."""


class Reader(Protocol):
    """Interface of a reader, which turns the bytes of a file into pages."""

    @property
    def reader_version(self) -> str:
        """Name and version of the reader, e.g. ``pymupdf 1.28.2 layout 12``.

        UsageError if the version cannot be fetched. The versions of all readers of a run, joined by commas, are part of
        every fingerprint and bundle.
        """

    def read_pages(self, content: bytes, file_name: str) -> PagesRead:
        """Read all pages of a file from its bytes; ``file_name`` appears only in errors.

        A page that is broken gets the status ``failed``. DocumentError (READER-…) if the whole file cannot be read.
        """


@dataclass(frozen=True)
class ReaderOptions:
    """OCR engine and PDF reader with which a run creates its readers."""

    ocr_settings: PageOcrSettings | None = None
    """OCR engine, with its limits, for pages that are pictures; if None, those pages stay without text."""
    pdf_reader: Reader | None = None
    """Reader to which PDFs are given, and those that other formats become; if None, PDFs are read on this machine."""


@dataclass(frozen=True)
class InputFormat:
    """An input format: name, file endings, and functions to recognise and read it."""

    name: str
    """Name of the format as people write it, e.g. ``PDF``."""
    suffixes: tuple[str, ...]
    """File endings, in small letters, by which folders are searched for the format, e.g. ``.pdf``."""
    has_signature: Callable[[bytes], bool]
    """Function that returns True if a file's bytes are of this format, whatever the file is called."""
    has_weak_signature: bool = field(default=False, kw_only=True)
    """True if nearly any text passes as this format: a file named as another format is then not read as this one."""
    create_reader: Callable[[ReaderOptions], Reader]
    """Function that creates the format's reader. For a format other than PDF, the reader converts the file to a PDF and
    lets the PDF reader read that PDF."""
