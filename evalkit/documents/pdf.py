"""The local reader: a PDF's bytes become a DocumentBundle, on this machine, with nothing sent anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

from evalkit.documents.bundle import Block, Box, DocumentBundle, LayoutMetadata, Page, PageStatus, Word
from evalkit.documents.drawn import Drawn, Line, Token, look_at
from evalkit.documents.layout import LaidBlock, Typography, lay_out, margin_keys, typography
from evalkit.documents.mupdf import library, open_pdf

#: Of what is decided here about order, blocks and status; raise it with every change that alters a bundle.
LAYOUT_VERSION = 2
#: A page that images cover by this much and that has fewer words than this: what it says is in the images.
_PICTURED = ((0.5, 60), (0.25, 40), (0.15, 15))
#: A page with so many curves and fewer words than this has its letters drawn as outlines.
_OUTLINED = (600, 60)
#: So many characters make a page's own typography; shorter ones are judged by the whole document's.
_OWN_TYPOGRAPHY = 400
_UNKNOWN_CHARACTER = "\ufffd"


def reader_version() -> str:
    """What reads PDFs here: ``pymupdf 1.28.2 layout 1``. It is part of every fingerprint. Does not load PyMuPDF."""
    return f"pymupdf {version('pymupdf')} layout {LAYOUT_VERSION}"


def read_pdf(data: bytes, *, file_path: str, doc_id: str, sha256: str, timestamp: str) -> DocumentBundle:
    """The bundle of the PDF in ``data``; equal bytes give an equal bundle.

    ``sha256`` is the hash of ``data``, ``timestamp`` ISO 8601 UTC; ``file_path`` is recorded, not read.
    DocumentError (READER-…) where the file cannot be opened; a broken page alone becomes a ``failed`` one.
    """
    document, total_pages, is_mended = open_pdf(data, file_path)
    try:
        drawn = [_look(document, number) for number in range(total_pages)]
        is_repaired = is_mended or bool(document.is_repaired)
    finally:
        document.close()
    repeated = _repeated(page for page in drawn if page)
    usual = typography(line for page in drawn if page for line in page.lines)
    return DocumentBundle(
        doc_id=doc_id,
        file_path=file_path,
        sha256=sha256,
        reader=reader_version(),
        is_repaired=is_repaired,
        total_pages=total_pages,
        processing_timestamp=timestamp,
        pages=tuple(
            _page(number, page, repeated, usual) if page else _failed(number) for number, page in enumerate(drawn, 1)
        ),
    )


def _look(document: Any, index: int) -> Drawn | None:
    """What is drawn on the page; None where it is broken."""
    mupdf = library()
    try:
        mupdf.TOOLS.reset_mupdf_warnings()
        page = document.load_page(index)
        drawn = look_at(page)
        # MuPDF shows a page that is missing, or whose content cannot be unpacked, as an empty one.
        if drawn.is_blank and (mupdf.TOOLS.mupdf_warnings() or not _is_page(document, page.xref)):
            return None
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base but Exception, and the other pages may be well
        return None
    return drawn if drawn.width > 0 and drawn.height > 0 else None


def _is_page(document: Any, number: int) -> bool:
    return any(document.xref_get_key(number, key)[0] != "null" for key in ("Type", "Parent", "MediaBox", "Contents"))


def _repeated(pages: Iterable[Drawn]) -> set[tuple[str, str]]:
    counts = Counter(key for page in pages for key in margin_keys(page))
    return {key for key, count in counts.items() if count > 1}


def _page(number: int, drawn: Drawn, repeated: set[tuple[str, str]], usual: Typography) -> Page:
    is_long = sum(len(line.text) for line in drawn.lines) >= _OWN_TYPOGRAPHY
    laid = lay_out(drawn, repeated, typography(drawn.lines) if is_long else usual)
    visible = [_block(block, drawn) for block in laid]
    paragraphs = tuple(block.text for block in visible)
    return Page(
        page_num=number,
        status=_status(drawn, laid),
        text="\n".join(paragraphs),
        paragraphs=paragraphs,
        layout_metadata=LayoutMetadata(
            block_types=tuple(block.type for block in visible),
            has_tables=any(block.type == "table" for block in visible),
        ),
        blocks=(*visible, *(_hidden(line, drawn) for line in drawn.hidden)),
        words=_words(laid, drawn),
    )


def _failed(number: int) -> Page:
    layout = LayoutMetadata(block_types=(), has_tables=False)
    return Page(page_num=number, status=PageStatus.FAILED, text="", paragraphs=(), layout_metadata=layout, blocks=())


def _status(drawn: Drawn, laid: Sequence[LaidBlock]) -> PageStatus:
    tokens = [token for block in laid for token in block.tokens]
    if not tokens:
        return PageStatus.BLANK if drawn.is_blank else PageStatus.IMAGE
    own_words = sum(len(block.tokens) for block in laid if not block.furniture)
    is_read = drawn.layer_share > 0.5  # somebody has laid the text of the images over them
    pictured = _PICTURED[-1:] if is_read else _PICTURED
    if any(drawn.image_share >= share and own_words < words for share, words in pictured):
        return PageStatus.IMAGE
    if drawn.shapes >= _OUTLINED[0] and own_words < _OUTLINED[1]:
        return PageStatus.IMAGE
    text = "".join(token.text for token in tokens)
    if 2 * text.count(_UNKNOWN_CHARACTER) > len(text):
        return PageStatus.IMAGE
    return PageStatus.OCR if is_read else PageStatus.TEXT


def _block(block: LaidBlock, page: Drawn) -> Block:
    text = "\n".join("\t".join(" ".join(token.text for token in cell) for cell in row) for row in block.rows)
    return Block(type=block.type, text=text, box=_box(block.tokens, page), furniture=block.furniture)


def _hidden(line: Line, page: Drawn) -> Block:
    return Block(type="paragraph", text=line.text, box=_box(line.tokens, page), hidden=True)


def _box(tokens: Sequence[Token], page: Drawn) -> Box:
    x0, y0 = min(token.x0 for token in tokens), min(token.y0 for token in tokens)
    x1, y1 = max(token.x1 for token in tokens), max(token.y1 for token in tokens)
    return _share(x0, page.width), _share(y0, page.height), _share(x1, page.width), _share(y1, page.height)


def _ten_thousandths(token: Token, width: float, height: float) -> tuple[int, int, int, int]:
    # One call for each word of a document: this is the reader's innermost loop.
    return (
        round(10_000 * min(max(token.x0 / width, 0.0), 1.0)),
        round(10_000 * min(max(token.y0 / height, 0.0), 1.0)),
        round(10_000 * min(max(token.x1 / width, 0.0), 1.0)),
        round(10_000 * min(max(token.y1 / height, 0.0), 1.0)),
    )


def _share(length: float, whole: float) -> float:
    """The length as a fraction 0..1 of the whole, in ten-thousandths."""
    return round(min(max(length / whole, 0.0), 1.0), 4)


def _words(blocks: Sequence[LaidBlock], page: Drawn) -> tuple[Word, ...]:
    """Where each word stands in the page's text and on the page; the text is the words with one separator each."""
    words: list[Word] = []
    position = 0
    for block in blocks:
        for row in block.rows:
            for cell in row:
                for token in cell:
                    end = position + len(token.text)
                    words.append((position, end, *_ten_thousandths(token, page.width, page.height)))
                    position = end + 1
                # An empty cell is followed by its separator alone.
                position += not cell
    return tuple(words)
