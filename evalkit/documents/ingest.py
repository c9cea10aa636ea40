"""From paths to bundles: which files are meant, and what reads them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.file import load
from evalkit.documents.pdf import read_pdf, reader_version
from evalkit.errors import UsageError

if TYPE_CHECKING:  # OCR brings NumPy, which most commands do without
    from evalkit.documents.documentai import DocumentAi
    from evalkit.documents.ocr import EngineName
    from evalkit.documents.scanned import Recogniser

__all__ = ["find_pdfs", "read", "reader_version", "reader_with"]


def read(
    path: Path,
    *,
    doc_id: str,
    timestamp: str,
    recogniser: Recogniser | None = None,
    documentai: DocumentAi | None = None,
    data: bytes | None = None,
) -> DocumentBundle:
    """The bundle of the PDF at ``path``. Hash and content come from the same bytes, read once; ``data`` are these bytes
    where the file is another machine's.

    ``timestamp`` is the ISO 8601 time that the bundle will carry. ``documentai`` reads it where it is given; else this
    machine, and without ``recogniser`` pages that are pictures stay without text. DocumentError where it cannot be read.
    """
    data = load(path) if data is None else data
    sha256 = hashlib.sha256(data).hexdigest()
    if documentai:
        return documentai.read(data, file_path=str(path), doc_id=doc_id, sha256=sha256, timestamp=timestamp)
    return read_pdf(data, file_path=str(path), doc_id=doc_id, sha256=sha256, timestamp=timestamp, recogniser=recogniser)


def reader_with(ocr: EngineName, documentai: DocumentAi | None = None) -> str:
    """Name and version of the reader: of ``documentai`` where it is given, else with the OCR engine of that name.

    UsageError: OCR-MISSING where the engine is not installed; DOCUMENTAI-… where its version cannot be asked.
    """
    if documentai:
        return documentai.reader_version
    from evalkit.documents.ocr import engine

    found = engine(ocr)
    return reader_version(found.name_and_version if found else None)


def find_pdfs(paths: Iterable[Path], *, on_problem: Callable[[UsageError], None] | None = None) -> list[Path]:
    """The files that are meant, each once, sorted by path.

    A named file is taken whatever its ending; a folder gives its ``*.pdf`` of any case, at any depth, without hidden
    files and folders. UsageError for a path that is not there and for a folder without PDFs. Folders inside that
    cannot be looked into, links that lead nowhere or out of the folder, and what is no file go to ``on_problem``.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            inside = list(_inside(path, on_problem or (lambda _: None)))
            if not inside:
                raise UsageError(
                    f"no PDF in the folder {path}",
                    code="READER-NO-PDFS",
                    remedy="Name a folder with .pdf files, or the files themselves.",
                )
        elif path.is_file():
            inside = [path]
        elif path.exists():
            raise UsageError(
                f"{path} is a pipe or device", code="READER-MISSING", remedy="Save the document to a file first."
            )
        else:
            raise UsageError(f"{path} does not exist", code="READER-MISSING", remedy="Check the path.")
        for file in inside:
            found.setdefault(file.resolve(), file)
    return sorted(found.values())


def _inside(folder: Path, on_problem: Callable[[UsageError], None]) -> Iterator[Path]:
    """The PDFs of a folder; links to folders in it are followed, each real folder once, so that loops end.

    A link that leads out of the folder is none of it: whoever may put files there need not be allowed to read all others.
    """
    visited: set[Path] = set()
    root = folder.resolve()

    def closed(error: OSError) -> None:
        on_problem(_skipped(f"the folder {error.filename} may not be looked into"))

    for here, folders, files in os.walk(folder, followlinks=True, onerror=closed):
        real = Path(here).resolve()
        if real in visited or not real.is_relative_to(root):
            if real not in visited:
                on_problem(_leads_out(Path(here)))
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        named = (Path(here, name) for name in sorted(files) if not name.startswith("."))
        for file in (file for file in named if file.suffix.lower() == ".pdf"):
            if not file.is_file():
                if file.exists():
                    on_problem(
                        _skipped(f"{file} is a pipe or device, not a file", "Save the document to a file first.")
                    )
                elif file.is_symlink():
                    on_problem(_skipped(f"the link {file} leads nowhere"))
            elif file.resolve().is_relative_to(root):
                yield file
            else:
                on_problem(_leads_out(file))


def _leads_out(link: Path) -> UsageError:
    return _skipped(f"the link {link} leads out of its folder", "Name what it leads to, if that is meant too.")


def _skipped(what: str, remedy: str = "Mend it and run again; the others were read.") -> UsageError:
    return UsageError(what, code="READER-SKIPPED", remedy=remedy)
