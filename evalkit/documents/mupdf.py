"""Access to PyMuPDF: imported on first use, without messages, clear errors.

PyMuPDF is not thread-safe: use it in one thread of a process only, or in several processes.
"""

import re
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from evalkit.core.package_tables import load_package_table
from evalkit.errors import DocumentError

MAX_PAGES = 20_000
_PDF_MAGIC = b"%PDF-"
#: Bytes that are searched for the beginning of the PDF: other programs accept 1024 bytes of mail headers or printer
#: commands before it.
_SIGNATURE_BYTES = 1024 + len(_PDF_MAGIC)
_OBJECT_REFERENCE = re.compile(r"(\d+) \d+ R")


class OpenedPdf(NamedTuple):
    """An open PDF, with the number of its pages."""

    document: Any
    """A ``pymupdf.Document``; the caller closes it."""
    total_pages: int
    """Number of pages that the file has or claims to have, whichever is more; at least 1."""
    is_page_tree_repaired: bool
    """True if the PDF's list of pages (page tree) contradicted itself and was repaired in memory."""


def load_pymupdf() -> Any:
    """Return the module ``pymupdf``, imported on first use and with its messages off.

    The import takes 0.2 s, and most commands do not need it.
    """
    import pymupdf

    # MuPDF writes a line to stderr for every flaw of every file, which would bury a batch's own messages.
    tools: Any = pymupdf.TOOLS
    tools.mupdf_display_errors(False)
    tools.mupdf_display_warnings(False)
    tools.set_subset_fontnames(True)  # else several subsets of a font have one name
    return pymupdf


def open_pdf(source: bytes | Path, name_for_errors: str) -> OpenedPdf:
    """Open a PDF from its bytes or a path; ``name_for_errors`` is only for errors.

    From a path, only the pages in use are read from the disk. DocumentError: READER-EMPTY, READER-NOT-PDF,
    READER-ENCRYPTED, READER-DAMAGED or READER-TOO-MANY-PAGES. OSError if the file cannot be read.
    """
    name = PurePath(name_for_errors).name
    first_bytes = _read_first_bytes(source)
    if not first_bytes:
        raise DocumentError(
            f"{name} is empty (0 bytes)", code="READER-EMPTY", remedy="Export or scan the document again."
        )
    if not has_pdf_signature(first_bytes):
        unread_format = find_unread_format(first_bytes)
        raise DocumentError(f"{name} is {unread_format['name']}", code="READER-NOT-PDF", remedy=unread_format["remedy"])
    pymupdf = load_pymupdf()
    try:
        open_arguments = {"filename": str(source)} if isinstance(source, Path) else {"stream": source}
        document = pymupdf.open(**open_arguments, filetype="pdf")
        is_locked = bool(document.needs_pass)
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base, and may quote the document: not chained
        raise _build_damaged_pdf_error(name) from None
    if is_locked:
        document.close()
        raise DocumentError(
            f"{name} is locked with a password",
            code="READER-ENCRYPTED",
            remedy="Open the file with its password, save a copy without a password, and use the copy.",
        )
    try:
        claimed_count, page_xrefs = _read_claimed_page_count(document), _find_page_xrefs(document)
        total_pages = max(claimed_count, len(page_xrefs))
        is_contradictory = not len(page_xrefs) == claimed_count == _count_pages(document)
        is_page_tree_repaired = len(page_xrefs) > 0 and (is_contradictory or _has_lost_page(document, page_xrefs))
        if is_page_tree_repaired and total_pages <= MAX_PAGES:
            _flatten_page_tree(document, page_xrefs)
        total_pages = total_pages if is_page_tree_repaired else _count_pages(document)
    except Exception:  # noqa: BLE001 - as above
        document.close()
        raise _build_damaged_pdf_error(name) from None
    if total_pages > MAX_PAGES:
        document.close()
        raise DocumentError(
            f"{name} states that it has {total_pages:,} pages; the limit is {MAX_PAGES:,}",
            code="READER-TOO-MANY-PAGES",
            remedy="Split the file into smaller files. If it really has fewer pages, it is damaged: export it again.",
        )
    if total_pages < 1:
        document.close()
        raise _build_damaged_pdf_error(name)
    return OpenedPdf(document, total_pages, is_page_tree_repaired)


def has_pdf_signature(content: bytes) -> bool:
    """Return True if a file's content begins like a PDF, whatever the file is called."""
    return _PDF_MAGIC in content[:_SIGNATURE_BYTES]


def find_unread_format(first_bytes: bytes) -> dict[str, str]:
    """Return the row of ``unread_formats.toml`` that matches a file's first bytes."""
    rows: list[dict[str, str]] = load_package_table("evalkit.documents", "unread_formats.toml")["format"]
    return next(row for row in rows if first_bytes.decode("latin-1").startswith(row["beginning"]))


def _read_first_bytes(source: bytes | Path) -> bytes:
    if isinstance(source, bytes):
        return source[:_SIGNATURE_BYTES]
    with source.open("rb") as file:
        return file.read(_SIGNATURE_BYTES)


def _build_damaged_pdf_error(name: str) -> DocumentError:
    return DocumentError(
        f"{name} is damaged and cannot be opened, or has no pages",
        code="READER-DAMAGED",
        remedy="The file may have been cut off while it was copied: copy or download it again.",
    )


def _count_pages(document: Any) -> int:
    """Return MuPDF's number of pages; 0 if the page tree contradicts itself."""
    try:
        return int(document.page_count)
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base but Exception
        return 0


def _read_claimed_page_count(document: Any) -> int:
    """Return the number of pages that the page tree's root claims; 0 if invalid."""
    kind, count = document.xref_get_key(document.pdf_catalog(), "Pages/Count")
    return max(int(count), 0) if kind == "int" else 0


def _find_page_xrefs(document: Any) -> list[int]:
    """Find the object numbers of all pages in the tree, at most ``MAX_PAGES`` + 1.

    MuPDF trusts the counts in the tree's nodes: if a count is too low, MuPDF silently drops pages at the end.
    """
    kind, root_reference = document.xref_get_key(document.pdf_catalog(), "Pages")
    if kind != "xref":
        return []
    root_xref = int(root_reference.split()[0])
    has_kids = document.xref_get_key(root_xref, "Kids")[0] != "null"
    if not has_kids and document.xref_get_key(root_xref, "Type")[1] != "/Page":
        return []
    page_xrefs: list[int] = []
    visited_xrefs: set[int] = set()
    pending_xrefs = [root_xref]
    while pending_xrefs and len(page_xrefs) <= MAX_PAGES:
        xref = pending_xrefs.pop()
        # A page that the tree refers to but that is missing in the file counts as a page with unknown content.
        kind, kids = document.xref_get_key(xref, "Kids") if xref < document.xref_length() else ("null", "")
        if kind == "null":
            page_xrefs.append(xref)
        elif xref not in visited_xrefs:
            visited_xrefs.add(xref)
            if kind == "xref":
                kids = document.xref_object(int(kids.split()[0]), compressed=True)
            pending_xrefs.extend(int(match) for match in reversed(_OBJECT_REFERENCE.findall(kids)))
    return page_xrefs


def _has_lost_page(document: Any, page_xrefs: list[int]) -> bool:
    """Return True if a page is listed twice and another page of the file never."""
    listed_xrefs = set(page_xrefs)
    return len(listed_xrefs) < len(page_xrefs) and any(
        document.xref_get_key(xref, "Type")[1] == "/Page"
        for xref in range(1, document.xref_length())
        if xref not in listed_xrefs
    )


def _flatten_page_tree(document: Any, page_xrefs: list[int]) -> None:
    """Make all pages direct children of the page tree's root, with the right count.

    Inherited attributes stay, because they are looked up through each page's parent, which is unchanged.
    """
    root_xref = int(document.xref_get_key(document.pdf_catalog(), "Pages")[1].split()[0])
    document.xref_set_key(root_xref, "Kids", "[" + " ".join(f"{xref} 0 R" for xref in page_xrefs) + "]")
    document.xref_set_key(root_xref, "Count", str(len(page_xrefs)))
