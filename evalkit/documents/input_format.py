"""Describe the formats that documents arrive in.

A file in ``readers/`` holds one :class:`InputFormat`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from evalkit.documents.bundle import Page

if TYPE_CHECKING:  # OCR brings NumPy, which most commands do without
    from evalkit.documents.scanned_pages import PageOcrSettings


class PagesRead(NamedTuple):
    """The pages of a file."""

    pages: tuple[Page, ...]
    """All of them, from page 1 on, blank and unreadable ones too."""
    is_repaired: bool = False
    """The file was damaged and only opened after a repair."""
    converted_pdf: bytes | None = None
    """The PDF whose pages a person is shown; None: the file itself is a PDF."""


class Reader(Protocol):
    """Reads the pages of files."""

    @property
    def reader_version(self) -> str:
        """Name and version. UsageError if it cannot be fetched.

        Those of a run's readers, joined, are part of each fingerprint and bundle.
        """

    def read_pages(self, content: bytes, file_name: str) -> PagesRead:
        """Read the pages of a file's bytes; ``file_name`` only names it in errors.

        A broken page alone becomes a ``failed`` one. DocumentError (READER-…) if the file cannot be read.
        """


@dataclass(frozen=True)
class ReaderOptions:
    """The parts that a run has set up for its readers, with their time limits."""

    ocr_settings: PageOcrSettings | None = None
    """Recognises pages that are pictures; None: they stay without text."""
    pdf_reader: Reader | None = None
    """Reads PDFs instead of this machine."""


@dataclass(frozen=True)
class InputFormat:
    """A format that can be read."""

    name: str
    """As people call it, ``PDF``."""
    suffixes: tuple[str, ...]
    """Endings by which files are found in folders, in small letters: ``.pdf``."""
    has_signature: Callable[[bytes], bool]
    """Recognise the format by a file's bytes, whatever its name says."""
    create_reader: Callable[[ReaderOptions], Reader]
    """A reader of other formats makes a PDF, and lets the reader of PDFs read that."""
