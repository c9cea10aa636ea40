"""Plain text files: notes, and exports of laboratory systems in columns."""

import re
import textwrap

import lxml.html

from evalkit.documents.charsets import decode_text
from evalkit.documents.html_layout import lay_out_html
from evalkit.documents.input_format import (
    ConvertedFile,
    build_empty_error,
    build_too_large_error,
    define_converted_format,
)

#: The longest text in characters: some 600 full pages.
_MAX_CHARACTERS = 3_000_000
_DETECTION_BYTES = 65_536
#: Characters that no text has, and the beginnings of formats that look like text but whose commands are no words.
_NO_TEXT = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f\ufffd]|%PDF-|\bendobj\b")
_MARKUP_BEGINNINGS = ("{\\rtf", "<?xml", "<ClinicalDocument", "%!PS")
#: Columns of a line, with a step of the tabulator of eight, and the most columns of a page.
_TAB_SIZE, _MAX_COLUMNS = 8, 132
#: Points of text width on a page; letters are 0.6 of their size wide.
_TEXT_WIDTH, _LETTER_SHARE, _FONT_SIZES = 505, 0.6, (6.0, 10.0)


def is_plain_text(content: bytes) -> bool:
    """Return True if a file is plain text, not the source of another format."""
    text = decode_text(content[:_DETECTION_BYTES])
    return not (not content or _NO_TEXT.search(text) or text.lstrip("\ufeff \n\t").startswith(_MARKUP_BEGINNINGS))


def convert_text(content: bytes, name: str) -> ConvertedFile:
    """Convert text to a PDF in a monospaced font; a form feed begins a page.

    DocumentError: READER-EMPTY, READER-TOO-LARGE, READER-LAYOUT.
    """
    text = decode_text(content).expandtabs(_TAB_SIZE)
    if len(text) > _MAX_CHARACTERS:
        raise build_too_large_error(name, f"{_MAX_CHARACTERS:,} characters")
    if not text.strip():
        raise build_empty_error(name)
    column_count = min(max(map(len, text.splitlines())), _MAX_COLUMNS)
    font_size = min(max(_TEXT_WIDTH / _LETTER_SHARE / column_count, _FONT_SIZES[0]), _FONT_SIZES[1])
    body = lxml.html.Element("body")
    for sheet in text.strip("\f\n").split("\f"):
        lines = [line for long_line in sheet.split("\n") for line in _wrap_line(long_line)]
        block = lxml.html.Element("pre", style=f"font-size:{font_size:.2f}pt")
        if len(body):
            block.set("style", block.get("style") + ";page-break-before:always")
        block.text = "\n".join(lines).strip("\n") or "\u00a0"
        body.append(block)
    return ConvertedFile(lay_out_html(body, name))


FORMAT = define_converted_format(
    "TXT", (".txt", ".text"), is_plain_text, convert_text, "text 2", has_weak_signature=True
)


def _wrap_line(line: str) -> list[str]:
    """Break a line that is too long for a page between words."""
    if len(line) <= _MAX_COLUMNS:
        return [line.rstrip()]
    return textwrap.wrap(line, _MAX_COLUMNS, break_on_hyphens=False) or [""]
