"""Damaged pages: text or pictures that are lost because the file is broken.

MuPDF shows what is left of a broken page and warns. ``page_damage.toml`` lists the warnings that show a loss.
"""

import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from PIL import Image

from evalkit.core.package_tables import load_package_table
from evalkit.documents.bundle import Page
from evalkit.documents.mupdf import load_pymupdf
from evalkit.issue import Issue, IssueSeverity, PageBox

#: The damage of a page whose text in the file is not what the page shows.
MISLEADING_FONT = "its text has other letters or digits than it shows, so the page was read from its picture"
_CONTENT_REMOVED = "the content that the page had is missing in the file"
#: The most words of a misleading page that its issue names; more would fill the question and tell nothing new.
_MAX_NAMED_WORDS = 3

#: Hardly any sound JPEG has so many zeros in a row.
_ZEROS = bytes(64)
_SCAN_MARKER, _END_MARKER, _RESTART_MARKER = b"\xff\xda", b"\xff\xd9", b"\xff\xdd\0\4"
#: Any data of a JPEG that differ from zeros.
_OTHER_DATA = bytes(number * number % 251 for number in range(256))


class _MisleadingWord(NamedTuple):
    """A word that a page shows, and the other word that the file's own text has there."""

    page_word: str
    text_word: str
    box: PageBox


def take_warnings() -> str:
    """Return and clear MuPDF's warnings since the last call, one per line."""
    return str(load_pymupdf().TOOLS.mupdf_warnings())


def take_drawing_warnings(page: Any) -> str:
    """Return and clear MuPDF's warnings, and one for zeroed JPEGs of the page.

    MuPDF draws what is left of those without a warning. ``page`` is a ``pymupdf.Page`` that was drawn.
    """
    with suppress(Exception):  # MuPDF's errors share no base; a picture that it cannot read was warned of
        xrefs = [row[0] for row in page.get_images() if "DCTDecode" in page.parent.xref_get_key(row[0], "Filter")[1]]
        zeroed_xrefs = (xref for xref in xrefs if _ZEROS in page.parent.xref_stream_raw(xref))
        if any(_is_jpeg_out_of_step(page.parent.extract_image(xref)["image"]) for xref in zeroed_xrefs):
            return f"{take_warnings()}\njpeg error: zeros"
    return take_warnings()


def _is_jpeg_out_of_step(jpeg: bytes) -> bool:
    """Return True if a JPEG with zeros lacks data that its picture takes.

    Zeros can mean an even surface. But decoding loses its place in zeros that were something else: then the picture
    takes more data than there are, or is complete before the data end.
    """
    start = 2
    while jpeg[start + 1] != _SCAN_MARKER[1]:  # IndexError if the head is broken
        start += 2 + int.from_bytes(jpeg[start + 2 : start + 4])
    end = jpeg.find(_END_MARKER, start)
    if _RESTART_MARKER in jpeg[:start]:  # decoding goes on at the next marker: their numbers have a gap
        markers = re.findall(rb"\xff([\xd0-\xd7])", jpeg[start:end].split(_SCAN_MARKER)[1])
        return any(marker[0] % 8 != number % 8 for number, marker in enumerate(markers))
    try:
        pixels, pixels_if_longer, pixels_if_changed = (
            zlib.crc32(Image.open(io.BytesIO(content)).tobytes())
            for content in (
                jpeg,
                jpeg[:end] + _OTHER_DATA + jpeg[end:],
                jpeg[: end - len(_OTHER_DATA)] + _OTHER_DATA + jpeg[end:],
            )
        )
    except (OSError, SyntaxError, ValueError):
        return True
    return pixels_if_changed == pixels or pixels_if_longer != pixels


def find_losses(warnings: str) -> tuple[str, ...]:
    """Describe for a clinician which content is lost, according to MuPDF's warnings."""
    return tuple(text for text, pattern in _load_loss_patterns() if pattern.search(warnings)) if warnings else ()


def find_removed_content(document: Any, page_xref: int) -> tuple[str, ...]:
    """Return a sentence if a page's content was removed from the file.

    ``document`` is a ``pymupdf.Document``, ``page_xref`` the page's object number.
    """
    is_removed = document.xref_get_key(page_xref, "Contents")[0] == "null" and "/Contents" in document.xref_object(
        page_xref
    )
    return (_CONTENT_REMOVED,) if is_removed else ()


def build_damage_issues(pages: Sequence[Page], location: str = "document", **issue_fields: Any) -> list[Issue]:
    """Build READER-PAGE-DAMAGED for the damaged pages; empty if there are none."""
    damaged_pages = [page for page in pages if page.damage]
    if not damaged_pages:
        return []
    words = list(islice(_find_misleading_words(damaged_pages[0]), _MAX_NAMED_WORDS))
    numbers = ", ".join(str(page.page_num) for page in damaged_pages[:20]) + (" …" if len(damaged_pages) > 20 else "")
    losses = "; ".join(dict.fromkeys(loss for page in damaged_pages for loss in page.damage))
    return [
        Issue.create(
            "reader",
            "READER-PAGE-DAMAGED",
            IssueSeverity.MAJOR,
            f"{len(damaged_pages)} of {len(pages)} pages are damaged (page {numbers}): {losses}",
            location=location,
            suggested_fix="Compare with the original, or have the document sent again",
            page=damaged_pages[0].page_num,
            boxes=tuple(word.box for word in words),
            facts={"pages": numbers, "losses": losses, "cause": "font" if losses == MISLEADING_FONT else "loss"}
            | (
                {
                    "page_words": " … ".join(word.page_word for word in words),
                    "text_words": " … ".join(word.text_word for word in words),
                }
                if words
                else {}
            ),
            **issue_fields,
        )
    ]


def _find_misleading_words(page: Page) -> Iterator[_MisleadingWord]:
    """Find words that a page's image shows differently from its misleading text.

    Words that only one of the two has are left out: OCR loses words and splits them.
    """
    if MISLEADING_FONT not in page.damage:
        return
    text_words = [word for block in page.blocks if block.hidden for word in block.text.split()]
    page_words = [page.text[start:end] for start, end, *_ in page.words]
    for operation, first, last, page_first, page_last in SequenceMatcher(
        None, text_words, page_words, autojunk=False
    ).get_opcodes():
        if operation == "replace" and last - first == page_last - page_first:
            for text_word, position in zip(text_words[first:last], range(page_first, page_last), strict=True):
                x0, y0, x1, y1 = (round(number / 10_000, 4) for number in page.words[position][2:])
                yield _MisleadingWord(page_words[position], text_word, (page.page_num, x0, y0, x1, y1))


@cache
def _load_loss_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    table = load_package_table("evalkit.documents", "page_damage.toml")
    return tuple((row["text"], re.compile("|".join(row["warnings"]))) for row in table["loss"])
