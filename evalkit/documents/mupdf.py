"""The one door to PyMuPDF: loaded late, kept silent, and whatever is wrong with a file becomes a DocumentError.

PyMuPDF is not thread-safe: read in one thread of a process, or in several processes.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from evalkit.errors import DocumentError

MAX_PAGES = 20_000
#: Readers accept this many bytes of mail headers or printer commands before the PDF begins.
_JUNK_ALLOWED = 1024
_MAGIC = b"%PDF-"
_REFERENCE = re.compile(r"(\d+) \d+ R")


class OpenPdf(NamedTuple):
    """A document that can be read, page by page."""

    document: Any
    """A ``pymupdf.Document``; the caller closes it."""
    total_pages: int
    """As many as the file has or claims to have, whichever is more; at least 1."""
    is_mended: bool
    """Whether the page tree contradicted itself and was put right here."""


def library() -> Any:
    """PyMuPDF, imported on first use because it costs 0.2 s and most commands never read a PDF."""
    import pymupdf

    # MuPDF talks to stderr about every flaw of every file; a batch would drown in it.
    tools: Any = pymupdf.TOOLS
    tools.mupdf_display_errors(False)
    tools.mupdf_display_warnings(False)
    tools.set_subset_fontnames(True)  # else several parts of one font are called the same
    return pymupdf


def open_pdf(source: bytes | Path, file_path: str) -> OpenPdf:
    """The document in these bytes, or in the file there, of which only what a page needs is then read.

    ``file_path`` only names it in errors. DocumentError: READER-EMPTY, READER-NOT-PDF, READER-ENCRYPTED,
    READER-DAMAGED or READER-TOO-MANY-PAGES; OSError where the file cannot be read.
    """
    name = PurePath(file_path).name
    head = _head(source)
    if not head:
        raise DocumentError(
            f"{name} is empty (0 bytes)", code="READER-EMPTY", remedy="Export or scan the document again."
        )
    if _MAGIC not in head:
        raise DocumentError(
            f"{name} is not a PDF, whatever its name says",
            code="READER-NOT-PDF",
            remedy="Open it in the program it came from and save it as PDF.",
        )
    mupdf = library()
    try:
        where = {"filename": str(source)} if isinstance(source, Path) else {"stream": source}
        document = mupdf.open(**where, filetype="pdf")
        locked = bool(document.needs_pass)
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base, and may quote the document: not chained
        raise _damaged(name) from None
    if locked:
        document.close()
        raise DocumentError(
            f"{name} is locked with a password",
            code="READER-ENCRYPTED",
            remedy="Open it with its password, save a copy without one, and give us the copy.",
        )
    try:
        claimed, pages = _claimed_pages(document), _page_numbers(document)
        total = max(claimed, len(pages))
        is_mended = len(pages) > 0 and not len(pages) == claimed == _counted_pages(document)
        if is_mended and total <= MAX_PAGES:
            _flatten(document, pages)
        total = total if is_mended else _counted_pages(document)
    except Exception:  # noqa: BLE001 - as above
        document.close()
        raise _damaged(name) from None
    if total > MAX_PAGES:
        document.close()
        raise DocumentError(
            f"{name} claims {total:,} pages; the limit is {MAX_PAGES:,}",
            code="READER-TOO-MANY-PAGES",
            remedy="Split it into smaller files; if it is not that long, it is damaged: export it again.",
        )
    if total < 1:
        document.close()
        raise _damaged(name)
    return OpenPdf(document, total, is_mended)


def _head(source: bytes | Path) -> bytes:
    length = _JUNK_ALLOWED + len(_MAGIC)
    if isinstance(source, bytes):
        return source[:length]
    with source.open("rb") as file:
        return file.read(length)


def _damaged(name: str) -> DocumentError:
    return DocumentError(
        f"{name} is damaged and cannot be opened, or has no pages",
        code="READER-DAMAGED",
        remedy="It may have been cut off while it was copied: fetch it again from where it came from.",
    )


def _counted_pages(document: Any) -> int:
    """MuPDF's own count; 0 where it refuses to count because the tree contradicts itself."""
    try:
        return int(document.page_count)
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base but Exception
        return 0


def _claimed_pages(document: Any) -> int:
    """What the root of the page tree says; 0 where it says nothing of use."""
    kind, value = document.xref_get_key(document.pdf_catalog(), "Pages/Count")
    return max(int(value), 0) if kind == "int" else 0


def _page_numbers(document: Any) -> list[int]:
    """The object numbers of the pages, found by walking the tree; at most one more than ``MAX_PAGES``.

    MuPDF trusts the tree's counts: where a count is too low, it drops the pages at the end without a word.
    """
    kind, root = document.xref_get_key(document.pdf_catalog(), "Pages")
    if kind != "xref":
        return []
    root_number = int(root.split()[0])
    has_kids = document.xref_get_key(root_number, "Kids")[0] != "null"
    if not has_kids and document.xref_get_key(root_number, "Type")[1] != "/Page":
        return []
    found: list[int] = []
    ancestors_seen: set[int] = set()
    waiting = [root_number]
    while waiting and len(found) <= MAX_PAGES:
        number = waiting.pop()
        # A page that is referred to but not there is a page all the same: nobody knows what it said.
        kind, kids = document.xref_get_key(number, "Kids") if number < document.xref_length() else ("null", "")
        if kind == "null":
            found.append(number)
        elif number not in ancestors_seen:
            ancestors_seen.add(number)
            if kind == "xref":
                kids = document.xref_object(int(kids.split()[0]), compressed=True)
            waiting.extend(int(match) for match in reversed(_REFERENCE.findall(kids)))
    return found


def _flatten(document: Any, pages: list[int]) -> None:
    """Make the page tree one honest list. Inherited attributes stay: they are looked up through each page's parent."""
    root = int(document.xref_get_key(document.pdf_catalog(), "Pages")[1].split()[0])
    document.xref_set_key(root, "Kids", "[" + " ".join(f"{number} 0 R" for number in pages) + "]")
    document.xref_set_key(root, "Count", str(len(pages)))
