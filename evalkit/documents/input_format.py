"""Input formats, the readers that turn files into pages, and conversion to PDF.

Each file in ``readers/`` defines one :class:`InputFormat`. Other formats are converted to PDFs in memory, which are read
and shown. Equal bytes give an equal PDF: it has no dates, no random IDs, and no fonts of this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from evalkit.documents.bundle import Page
from evalkit.documents.page_builder import create_failed_page
from evalkit.errors import DocumentError

if TYPE_CHECKING:  # OCR brings NumPy, which most commands do without
    from evalkit.documents.scanned_pages import PageOcrSettings


class PagesRead(NamedTuple):
    """Result of reading a file: its pages, and repairs that were needed to read it."""

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


class ConvertedFile(NamedTuple):
    """PDF made from a file of another format."""

    pdf: bytes
    is_damaged: bool = False
    """True if part of the file is lost."""
    lost_pages: frozenset[int] = frozenset()
    """Numbers (from 1) of pages that could not be converted; the PDF has a note in their place."""


@dataclass(frozen=True)
class ConvertingReader:
    """Reader of a format that is converted to a PDF first."""

    convert: Callable[[bytes, str], ConvertedFile]
    """Function that converts bytes to a PDF; its second argument is the file's name for errors. DocumentError."""
    reader_version: str
    """Name and version of the converter, e.g. ``text 1``."""
    pdf_reader: Reader

    def read_pages(self, content: bytes, file_name: str) -> PagesRead:
        """Convert the file to a PDF and read its pages; errors as ``Reader.read_pages``."""
        converted = self.convert(content, PurePath(file_name).name)
        pages, is_repaired, _ = self.pdf_reader.read_pages(converted.pdf, file_name)
        pages = tuple(
            create_failed_page(page.page_num) if page.page_num in converted.lost_pages else page for page in pages
        )
        return PagesRead(pages, is_repaired or converted.is_damaged, converted.pdf)


def define_converted_format(
    name: str,
    suffixes: tuple[str, ...],
    has_signature: Callable[[bytes], bool],
    convert: Callable[[bytes, str], ConvertedFile],
    converter_version: str,
    *,
    has_weak_signature: bool = False,
) -> InputFormat:
    """Return the InputFormat of files that ``convert`` converts to a PDF."""

    def create_reader(options: ReaderOptions) -> Reader:
        if options.pdf_reader is None:
            raise ValueError("a format that is converted to PDF needs a reader for the resulting PDF")
        return ConvertingReader(convert, converter_version, options.pdf_reader)

    return InputFormat(name, suffixes, has_signature, create_reader, has_weak_signature=has_weak_signature)


def serialise_pdf(document: Any) -> bytes:
    """Return the bytes of a new PDF, without dates and random IDs, and close it."""
    with document:
        document.set_metadata({})
        return bytes(document.tobytes(no_new_id=True, deflate=True, garbage=3))


def build_damaged_error(name: str) -> DocumentError:
    """Return the error for a file of which nothing can be read."""
    return DocumentError(
        f"{name} is damaged: nothing in it can be read",
        code="READER-DAMAGED",
        remedy="The file may have been cut off while it was copied: copy or download it again.",
    )


def build_too_large_error(name: str, limit: str) -> DocumentError:
    """Return the error for content beyond a limit, e.g. ``100 megapixels``."""
    return DocumentError(
        f"the content of {name} is larger than {limit}",
        code="READER-TOO-LARGE",
        remedy="Split the file into smaller files, or export it with smaller images.",
    )


def build_empty_error(name: str) -> DocumentError:
    """Return the error for a file that contains no words and no pictures."""
    return DocumentError(
        f"{name} contains no words and no pictures",
        code="READER-EMPTY",
        remedy="Open the file in the program it came from, and export or print what you see there as PDF.",
    )
