"""From paths to bundles: which files are meant, and what reads them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.pdf import get_local_reader_version, read_pdf
from evalkit.documents.source_file import read_source_file
from evalkit.errors import UsageError

if TYPE_CHECKING:  # OCR brings NumPy, which most commands do without
    from evalkit.documents.documentai import DocumentAiReader
    from evalkit.documents.ocr import OcrEngineName
    from evalkit.documents.scanned_pages import PageOcrSettings

__all__ = ["get_local_reader_version", "list_input_pdfs", "read_document", "resolve_reader_version"]


def read_document(
    path: Path,
    *,
    doc_id: str,
    processing_timestamp: str,
    ocr_settings: PageOcrSettings | None = None,
    documentai: DocumentAiReader | None = None,
    pdf_bytes: bytes | None = None,
) -> DocumentBundle:
    """The bundle of the PDF at ``path``. Hash and content come from the same bytes, read once; ``pdf_bytes`` are these bytes
    where the file is another machine's.

    ``processing_timestamp`` is the ISO 8601 time that the bundle will carry. ``documentai`` reads it where it is given; else this
    machine, and without ``ocr_settings`` pages that are pictures stay without text. DocumentError where it cannot be read.
    """
    pdf_bytes = read_source_file(path) if pdf_bytes is None else pdf_bytes
    sha256 = hashlib.sha256(pdf_bytes).hexdigest()
    if documentai:
        return documentai.read_pdf(
            pdf_bytes, recorded_path=str(path), doc_id=doc_id, sha256=sha256, processing_timestamp=processing_timestamp
        )
    return read_pdf(
        pdf_bytes,
        recorded_path=str(path),
        doc_id=doc_id,
        sha256=sha256,
        processing_timestamp=processing_timestamp,
        ocr_settings=ocr_settings,
    )


def resolve_reader_version(engine_name: OcrEngineName, documentai: DocumentAiReader | None = None) -> str:
    """Name and version of the reader: of ``documentai`` where it is given, else with the OCR engine of that name.

    UsageError: OCR-MISSING where the engine is not installed; DOCUMENTAI-… where its version cannot be asked.
    """
    if documentai:
        return documentai.reader_version
    from evalkit.documents.ocr import resolve_ocr_engine

    ocr_engine = resolve_ocr_engine(engine_name)
    return get_local_reader_version(ocr_engine.name_and_version if ocr_engine else None)


def list_input_pdfs(paths: Iterable[Path], *, on_problem: Callable[[UsageError], None] | None = None) -> list[Path]:
    """The files that are meant, each once, sorted by path.

    A named file is taken whatever its ending; a folder gives its ``*.pdf`` of any case, at any depth, without hidden
    files and folders. UsageError for a path that is not there and for a folder without PDFs. Folders inside that
    cannot be looked into, links that lead nowhere or out of the folder, and what is no file go to ``on_problem``.
    """
    files_by_real_path: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            pdf_files = list(_walk_pdf_folder(path, on_problem or (lambda _: None)))
            if not pdf_files:
                raise UsageError(
                    f"no PDF in the folder {path}",
                    code="READER-NO-PDFS",
                    remedy="Name a folder with .pdf files, or the files themselves.",
                )
        elif path.is_file():
            pdf_files = [path]
        elif path.exists():
            raise UsageError(
                f"{path} is a pipe or device", code="READER-MISSING", remedy="Save the document to a file first."
            )
        else:
            raise UsageError(f"{path} does not exist", code="READER-MISSING", remedy="Check the path.")
        for file in pdf_files:
            files_by_real_path.setdefault(file.resolve(), file)
    return sorted(files_by_real_path.values())


def _walk_pdf_folder(folder: Path, on_problem: Callable[[UsageError], None]) -> Iterator[Path]:
    """The PDFs of a folder; links to folders in it are followed, each real folder once, so that loops end.

    A link that leads out of the folder is none of it: whoever may put files there need not be allowed to read all others.
    """
    visited: set[Path] = set()
    real_root = folder.resolve()

    for current_folder, subfolders, file_names in os.walk(
        folder,
        followlinks=True,
        onerror=lambda error: on_problem(
            _build_file_skipped_error(f"the folder {error.filename} may not be looked into")
        ),
    ):
        real_folder = Path(current_folder).resolve()
        if real_folder in visited or not real_folder.is_relative_to(real_root):
            if real_folder not in visited:
                on_problem(_build_outside_link_error(Path(current_folder)))
            subfolders.clear()
            continue
        visited.add(real_folder)
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        visible_pdfs = sorted(name for name in file_names if not name.startswith(".") and name.lower().endswith(".pdf"))
        for file in (Path(current_folder, name) for name in visible_pdfs):
            if not file.is_file():
                if file.exists():
                    on_problem(
                        _build_file_skipped_error(
                            f"{file} is a pipe or device, not a file", "Save the document to a file first."
                        )
                    )
                elif file.is_symlink():
                    on_problem(_build_file_skipped_error(f"the link {file} leads nowhere"))
            elif file.resolve().is_relative_to(real_root):
                yield file
            else:
                on_problem(_build_outside_link_error(file))


def _build_outside_link_error(link: Path) -> UsageError:
    return _build_file_skipped_error(
        f"the link {link} leads out of its folder", "Name what it leads to, if that is meant too."
    )


def _build_file_skipped_error(problem: str, remedy: str = "Mend it and run again; the others were read.") -> UsageError:
    return UsageError(problem, code="READER-SKIPPED", remedy=remedy)
