"""Draw one-page clinical PDFs with an additional text in a place of choice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal
from xml.sax.saxutils import escape

import pymupdf

MUPDF: Any = pymupdf
"""PyMuPDF, whose constructors have no type hints."""
FOLDER = Path(__file__).parent
Half = Literal["open", "sealed", "second_open", "second_sealed"]
PLACE_SLOTS = {"page": "middle", "metadata": "subject", "tiny": "footer", "white": "white", "annotation": "sticky"}
"""Every place, and the slot used there for a text that was written for another place."""

_WIDTH, _HEIGHT, _LEFT, _TOP = 612.0, 792.0, 54.0, 64.0
_FOOTER_TOP = 742.0
_TEXT_SIZE, _FOOTER_SIZE = 10.0, 8.0
_TINY_SIZES = {"middle": 1.5, "end": 2.0, "margin": 3.0, "footer": 4.0}
_LEADING = 1.5
_LINE_CHARACTERS = 92
_CELL_LEFT, _CELL_CHARACTERS = 130.0, 74
_BLACK, _WHITE, _NEAR_WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.985, 0.985, 0.985)
_INVISIBLE_RENDER_MODE = 3
_XMP = (
    '<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:description><rdf:Alt><rdf:li xml:lang="x-default">{}</rdf:li>'
    '</rdf:Alt></dc:description></rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
)


@dataclass(frozen=True)
class AddedText:
    """A text that is added to a clinical page."""

    id: str
    kind: Literal["addressed", "look_alike"]
    place: str
    slot: str
    """Where exactly: a metadata field, a kind of annotation, a way to hide, or a position on the page."""
    mechanism: str
    host: str
    """Name of the clinical page that the text is added to."""
    text: str


def read_added_texts(half: Half) -> Iterator[AddedText]:
    """Read the added texts of a half."""
    for line in (FOLDER / f"{half}.jsonl").read_text("utf-8").splitlines():
        yield AddedText(**json.loads(line))


@lru_cache
def read_hosts(half: Half) -> dict[str, list[str]]:
    """Read the clinical pages of a half: lines of text by name."""
    hosts: dict[str, list[str]] = json.loads((FOLDER / f"{half}_hosts.json").read_text("utf-8"))
    return hosts


def draw_pdf(host_lines: Sequence[str], added: AddedText | None) -> bytes:
    """Draw a clinical page with an added text, or without any."""
    document = MUPDF.open()
    page = document.new_page(width=_WIDTH, height=_HEIGHT)
    lines = list(host_lines)
    if added is not None and added.place == "page":
        lines = _insert_lines(lines, added)
    _draw_lines(page, lines, top=_TOP)
    if added is not None:
        _add_elsewhere(document, page, added, body_bottom=_TOP + len(lines) * _TEXT_SIZE * _LEADING)
    document.subset_fonts()
    pdf: bytes = document.tobytes(garbage=3, deflate=True, no_new_id=True)
    document.close()
    return pdf


def _insert_lines(host_lines: list[str], added: AddedText) -> list[str]:
    if added.slot in {"footer", "cell"}:
        return host_lines
    if added.slot == "interleaved":
        start = len(host_lines) - 1 - added.text.count("\n")
        lines = host_lines[:start]
        for added_line, host_line in zip(added.text.split("\n"), host_lines[start:], strict=True):
            lines += [added_line, host_line]
        return lines
    index = {"top": 1, "middle": len(host_lines) // 2 + 1, "end": len(host_lines)}[added.slot]
    return [*host_lines[:index], "", *_wrap_text(added.text, _LINE_CHARACTERS), "", *host_lines[index:]]


def _wrap_text(text: str, characters: int) -> list[str]:
    if not text.isascii() and not any(character.isspace() for character in text):
        characters //= 2
    return [part for line in text.split("\n") for part in wrap(line, characters) or [""]]


def _draw_lines(page: Any, lines: Sequence[str], *, top: float, size: float = _TEXT_SIZE, **style: Any) -> None:
    for index, line in enumerate(lines):
        if line:
            _insert_line(page, (_LEFT, top + index * size * _LEADING), line, size=size, **style)


def _insert_line(page: Any, point: tuple[float, float], line: str, *, size: float, **style: Any) -> None:
    try:
        line.encode("latin-1")
        font_name = "helv"
    except UnicodeEncodeError:
        font_name = "fallback"
        page.insert_font(fontname=font_name, fontbuffer=_load_fallback_font())
    page.insert_text(point, line, fontsize=size, fontname=font_name, **style)


@lru_cache
def _load_fallback_font() -> bytes:
    buffer: bytes = MUPDF.Font("cjk").buffer
    return buffer


def _add_elsewhere(document: Any, page: Any, added: AddedText, *, body_bottom: float) -> None:
    if added.place == "metadata":
        _add_metadata(document, added)
    elif added.place == "annotation":
        _add_annotation(page, added, body_bottom)
    elif added.place == "tiny":
        _add_tiny_text(page, added, body_bottom)
    elif added.place == "white":
        _add_hidden_text(page, added, body_bottom)
    elif added.slot == "cell":
        _add_table(page, added, body_bottom)
    elif added.slot == "footer":
        characters = round(_LINE_CHARACTERS * _TEXT_SIZE / _FOOTER_SIZE)
        _draw_lines(page, _wrap_text(added.text, characters), top=_FOOTER_TOP, size=_FOOTER_SIZE)


def _add_metadata(document: Any, added: AddedText) -> None:
    if added.slot == "xmp":
        document.set_xml_metadata(_XMP.format(escape(added.text)))
    else:
        document.set_metadata({added.slot: added.text})


def _add_table(page: Any, added: AddedText, body_bottom: float) -> None:
    lines = _wrap_text(added.text, _CELL_CHARACTERS)
    row_height = _TEXT_SIZE * _LEADING
    top = body_bottom + row_height
    for name, cell_lines in (("Item", ["Entry"]), ("Remark", lines)):
        bottom = top + len(cell_lines) * row_height + 4
        for left, right, texts in ((_LEFT, _CELL_LEFT, [name]), (_CELL_LEFT, _WIDTH - _LEFT, cell_lines)):
            page.draw_rect((left, top, right, bottom), color=_BLACK, width=0.5)
            for index, text in enumerate(texts):
                _insert_line(page, (left + 4, top + 12 + index * row_height), text, size=_TEXT_SIZE)
        top = bottom


def _add_annotation(page: Any, added: AddedText, body_bottom: float) -> None:
    if added.slot == "freetext":
        page.add_freetext_annot((330, 20, 590, 50), added.text, fontsize=9)
        return
    if added.slot == "field":
        field = MUPDF.Widget()
        field.field_name, field.field_type = "remarks", MUPDF.PDF_WIDGET_TYPE_TEXT
        field.field_flags = MUPDF.PDF_TX_FIELD_IS_MULTILINE
        field.field_value, field.text_fontsize = added.text, 9
        field.rect = MUPDF.Rect(_LEFT, body_bottom, _WIDTH - _LEFT, body_bottom + 60)
        page.add_widget(field)
        return
    if added.slot == "highlight":
        words = page.get_text("words")
        annotation = page.add_highlight_annot(words[len(words) // 2][:4])
        annotation.set_info(content=added.text)
    else:
        annotation = page.add_text_annot((560, 90), added.text)
    annotation.update()


def _add_tiny_text(page: Any, added: AddedText, body_bottom: float) -> None:
    size = _TINY_SIZES[added.slot]
    if added.slot == "margin":
        page.insert_text((24, 700), added.text.replace("\n", " "), fontsize=size, fontname="helv", rotate=90)
        return
    tops = {"middle": _TOP + 5.5 * _TEXT_SIZE * _LEADING, "end": body_bottom + 10, "footer": _FOOTER_TOP}
    _draw_lines(page, _wrap_text(added.text, _LINE_CHARACTERS * 2), top=tops[added.slot], size=size)


def _add_hidden_text(page: Any, added: AddedText, body_bottom: float) -> None:
    top = body_bottom + 20
    lines = _wrap_text(added.text, _LINE_CHARACTERS)
    if added.slot == "invisible":
        _draw_lines(page, lines, top=top, render_mode=_INVISIBLE_RENDER_MODE)
        return
    color = {"white": _WHITE, "near_white": _NEAR_WHITE, "covered": _BLACK}[added.slot]
    _draw_lines(page, lines, top=top, color=color)
    if added.slot == "covered":
        bottom = top + len(lines) * _TEXT_SIZE * _LEADING
        page.draw_rect((_LEFT - 4, top - 14, _WIDTH - 20, bottom), color=_WHITE, fill=_WHITE)
