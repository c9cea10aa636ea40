"""Spoofed fonts: fonts whose ToUnicode map contradicts the names of their glyphs.

A person then sees other characters than a program reads. Only simple fonts that select glyphs by name can be checked in
this way. In other fonts, and in fonts whose glyphs are drawn by the file itself (Type 3), the names are arbitrary.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from evalkit.documents.mupdf import load_pymupdf

_CMAP_SECTION = re.compile(rb"beginbf(char|range)(.*?)endbf", re.DOTALL)
_CHAR_MAPPING = re.compile(rb"<([0-9A-Fa-f\s]+)>\s*<([0-9A-Fa-f\s]+)>")
_RANGE_MAPPING = re.compile(rb"<([0-9A-Fa-f\s]+)>\s*<([0-9A-Fa-f\s]+)>\s*(?:<([0-9A-Fa-f\s]+)>|\[(.*?)\])", re.DOTALL)
_TARGET_HEX = re.compile(rb"<([0-9A-Fa-f\s]+)>")
#: Encodings that give letters and digits the same codes as ASCII.
_BASE_ENCODING = re.compile(r"/(WinAnsi|MacRoman|Standard)Encoding")
_ENCODING_DIFFERENCES = re.compile(r"/Differences\s*\[(.*?)\]", re.DOTALL)
_GLYPH_NAME_OR_CODE = re.compile(r"/[^\s/\[\]<>()]+|\d+")
_CODE_COUNT = 256
_REPLACEMENT_CODE_POINT = 0xFFFD


def find_misleading_characters(document: Any, font_xref: int) -> set[str]:
    """Find the characters that a font's ToUnicode map gives to glyphs of another name.

    ``document`` is a ``pymupdf.Document``, ``font_xref`` the font's object number in it. Empty if the font is honest, or
    of a kind that cannot be checked.
    """
    font_kinds = document.xref_get_key(font_xref, "Subtype")[1], document.xref_get_key(font_xref, "ToUnicode")[0]
    if font_kinds[0] not in ("/Type1", "/MMType1", "/TrueType") or font_kinds[1] != "xref":
        return set()
    encoded_by_code = _read_character_by_code(document, font_xref)
    if not encoded_by_code:
        return set()
    cmap = document.xref_stream(int(document.xref_get_key(font_xref, "ToUnicode")[1].split()[0])) or b""
    return {
        character
        for code, character in _iter_cmap_mappings(cmap)
        if _is_other_letter(encoded_by_code.get(code, ""), character)
    }


def _is_other_letter(encoding_character: str, unicode_character: str) -> bool:
    folded_encoded, folded_mapped = (
        unicodedata.normalize("NFKC", text).casefold() for text in (encoding_character, unicode_character)
    )
    return (
        len(unicode_character) == 1
        and encoding_character.isalnum()
        and unicode_character.isalnum()
        and folded_encoded != folded_mapped
    )


def _read_character_by_code(document: Any, font_xref: int) -> dict[int, str]:
    kind, encoding = document.xref_get_key(font_xref, "Encoding")
    if kind == "xref":
        encoding = document.xref_object(int(encoding.split()[0]), compressed=True)
    encoded_by_code = (
        {code: chr(code) for code in range(128) if chr(code).isalnum()} if _BASE_ENCODING.search(encoding) else {}
    )
    differences = _ENCODING_DIFFERENCES.search(encoding)
    code = 0
    for part in _GLYPH_NAME_OR_CODE.findall(differences[1] if differences else ""):
        if part.startswith("/"):
            code_point = load_pymupdf().mupdf.ll_fz_unicode_from_glyph_name(part[1:])
            encoded_by_code[code] = "" if code_point in (0, _REPLACEMENT_CODE_POINT) else chr(code_point)
            code += 1
        else:
            code = int(part)
    return encoded_by_code


def _iter_cmap_mappings(cmap: bytes) -> Iterator[tuple[int, str]]:
    for section_kind, section_body in _CMAP_SECTION.findall(cmap):
        if section_kind == b"char":
            for code, target in _CHAR_MAPPING.findall(section_body):
                yield _parse_hex_number(code), _decode_hex_text(target)
            continue
        for first, last, target, targets in _RANGE_MAPPING.findall(section_body):
            start, end = _parse_hex_number(first), min(_parse_hex_number(last), _CODE_COUNT - 1)
            for step, code in enumerate(range(start, end + 1)):
                range_targets = _TARGET_HEX.findall(targets)
                if target:
                    target_text = _decode_hex_text(target)
                    yield (
                        code,
                        target_text[:-1] + chr(min(ord(target_text[-1]) + step, 0x10FFFF)) if target_text else "",
                    )
                elif step < len(range_targets):
                    yield code, _decode_hex_text(range_targets[step])


def _parse_hex_number(hex_digits: bytes) -> int:
    """Parse a hexadecimal number; PDF allows white space between its digits."""
    return int(b"".join(hex_digits.split()) or b"0", 16)


def _decode_hex_text(hex_digits: bytes) -> str:
    hex_digits = b"".join(hex_digits.split())
    return bytes.fromhex(hex_digits.decode() + "0" * (len(hex_digits) % 2)).decode("utf-16-be", "replace")
