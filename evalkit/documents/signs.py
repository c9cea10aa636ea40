"""What a font's letters are called, and what the file says that they stand for: the two must not be different letters.

Only simple fonts that choose letters by name can be told to lie so; others, and fonts whose letters are drawn by the
file itself, may call them as they like.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from evalkit.documents.mupdf import library

_SECTION = re.compile(rb"beginbf(char|range)(.*?)endbf", re.DOTALL)
_CHAR = re.compile(rb"<([0-9A-Fa-f\s]+)>\s*<([0-9A-Fa-f\s]+)>")
_RANGE = re.compile(rb"<([0-9A-Fa-f\s]+)>\s*<([0-9A-Fa-f\s]+)>\s*(?:<([0-9A-Fa-f\s]+)>|\[(.*?)\])", re.DOTALL)
_TARGET = re.compile(rb"<([0-9A-Fa-f\s]+)>")
#: Encodings that have letters and digits where ASCII has them.
_BASE = re.compile(r"/(WinAnsi|MacRoman|Standard)Encoding")
_DIFFERENCES = re.compile(r"/Differences\s*\[(.*?)\]", re.DOTALL)
_NAME_OR_CODE = re.compile(r"/[^\s/\[\]<>()]+|\d+")
_CODES = 256
_UNKNOWN = 0xFFFD


def belied(document: Any, number: int) -> set[str]:
    """The characters that the font, object ``number`` of a ``pymupdf.Document``, says for letters of another name."""
    kinds = document.xref_get_key(number, "Subtype")[1], document.xref_get_key(number, "ToUnicode")[0]
    if kinds[0] not in ("/Type1", "/MMType1", "/TrueType") or kinds[1] != "xref":
        return set()
    meant = _meant(document, number)
    if not meant:
        return set()
    said = document.xref_stream(int(document.xref_get_key(number, "ToUnicode")[1].split()[0])) or b""
    return {sign for code, sign in _said(said) if _contradict(meant.get(code, ""), sign)}


def _contradict(meant: str, said: str) -> bool:
    one, other = (unicodedata.normalize("NFKC", text).casefold() for text in (meant, said))
    return len(said) == 1 and meant.isalnum() and said.isalnum() and one != other


def _meant(document: Any, number: int) -> dict[int, str]:
    """By code, the characters that the font's encoding names."""
    kind, value = document.xref_get_key(number, "Encoding")
    if kind == "xref":
        value = document.xref_object(int(value.split()[0]), compressed=True)
    meant = {code: chr(code) for code in range(128) if chr(code).isalnum()} if _BASE.search(value) else {}
    found = _DIFFERENCES.search(value)
    code = 0
    for part in _NAME_OR_CODE.findall(found[1] if found else ""):
        if part.startswith("/"):
            letter = library().mupdf.ll_fz_unicode_from_glyph_name(part[1:])
            meant[code] = "" if letter in (0, _UNKNOWN) else chr(letter)
            code += 1
        else:
            code = int(part)
    return meant


def _said(cmap: bytes) -> Iterator[tuple[int, str]]:
    """Codes, and what they stand for."""
    for kind, body in _SECTION.findall(cmap):
        if kind == b"char":
            for code, target in _CHAR.findall(body):
                yield _number(code), _text(target)
            continue
        for first, last, target, targets in _RANGE.findall(body):
            start, end = _number(first), min(_number(last), _CODES - 1)
            for step, code in enumerate(range(start, end + 1)):
                each = _TARGET.findall(targets)
                if target:
                    text = _text(target)
                    yield code, text[:-1] + chr(min(ord(text[-1]) + step, 0x10FFFF)) if text else ""
                elif step < len(each):
                    yield code, _text(each[step])


def _number(digits: bytes) -> int:
    """PDF lets white space stand between the digits, and takes none at all for nothing."""
    return int(b"".join(digits.split()) or b"0", 16)


def _text(digits: bytes) -> str:
    digits = b"".join(digits.split())
    return bytes.fromhex(digits.decode() + "0" * (len(digits) % 2)).decode("utf-16-be", "replace")
