"""Spoofed fonts: fonts that show other characters than their text has.

A person then sees other characters than a program reads. In simple fonts that select glyphs by name, the names are
compared with the ToUnicode map. The glyphs that the file itself brings are also drawn and compared with other fonts.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from evalkit.core.document_cache import cache_document_text
from evalkit.documents.mupdf import load_pymupdf

_CHAR_MAPPING = re.compile(rb"<([0-9A-Fa-f\s]+)>\s*<([0-9A-Fa-f\s]+)>")
_RANGE_MAPPING = re.compile(rb"<([0-9A-Fa-f\s]+)>\s*<([0-9A-Fa-f\s]+)>\s*(?:<([0-9A-Fa-f\s]+)>|\[([^\[\]]*)\])")
_TARGET_HEX = re.compile(rb"<([0-9A-Fa-f\s]+)>")
#: Encodings that give letters and digits the same codes as ASCII.
_BASE_ENCODING = re.compile(r"/(WinAnsi|MacRoman|Standard)Encoding")
_ENCODING_DIFFERENCES = re.compile(r"/Differences\s*\[(.*?)\]", re.DOTALL)
_GLYPH_NAME_OR_CODE = re.compile(r"/[^\s/\[\]<>()]+|\d+")
#: Codes that a simple font has.
_CODE_COUNT = 256
#: Characters whose glyphs are drawn and compared: those with which a text can lie about a finding, and empty ones.
CHECKED_CHARACTERS = frozenset(
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-<>.\u2212\u00b5\u03bc \u00a0\u200b\u200c\u200d\u2060\ufeff"
)
_REPLACEMENT_CODE_POINT = 0xFFFD


def find_misleading_characters(document: Any, font_xref: int, *, has_own_glyphs: bool) -> set[str]:
    """Find characters whose glyph has the name or shape of another character.

    ``document`` is a ``pymupdf.Document``, ``font_xref`` the font's object number in it. ``has_own_glyphs``: the file
    brings the glyphs (an embedded font, or Type 3). Each font of a document is checked once. Empty if the font is honest,
    or cannot be checked.
    """
    characters_by_font = _get_characters_by_font(document._graft_id)  # noqa: SLF001 - the document would stay in memory
    if font_xref not in characters_by_font:
        text_by_code = _read_to_unicode_map(document, font_xref)
        characters_by_font[font_xref] = _find_renamed_characters(document, font_xref, text_by_code)
        if has_own_glyphs:
            characters_by_font[font_xref] |= _find_misdrawn_characters(document, font_xref, text_by_code)
    return characters_by_font[font_xref]


@cache_document_text(1)
def _get_characters_by_font(_document_number: int) -> dict[int, set[str]]:
    """Return the findings by font for the document with this PyMuPDF number.

    Only the last document's findings are remembered.
    """
    return {}


def _read_to_unicode_map(document: Any, font_xref: int) -> dict[int, str]:
    kind, reference = document.xref_get_key(font_xref, "ToUnicode")
    return dict(_iter_cmap_mappings(document.xref_stream(int(reference.split()[0])) or b"")) if kind == "xref" else {}


def _find_renamed_characters(document: Any, font_xref: int, text_by_code: dict[int, str]) -> set[str]:
    if not text_by_code or document.xref_get_key(font_xref, "Subtype")[1] not in ("/Type1", "/MMType1", "/TrueType"):
        return set()
    encoded_by_code = _read_character_by_code(document, font_xref)
    return {text for code, text in text_by_code.items() if _is_other_letter(encoded_by_code.get(code, ""), text)}


def _find_misdrawn_characters(document: Any, font_xref: int, text_by_code: dict[int, str]) -> set[str]:
    from evalkit.documents.glyph_shapes import find_misdrawn_characters  # NumPy, which most files do without

    try:
        return find_misdrawn_characters(document, font_xref, text_by_code, CHECKED_CHARACTERS)
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base; a font that cannot be drawn shows nothing
        return set()


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
    for section in cmap.split(b"beginbf")[1:]:
        section_body = section.partition(b"endbf")[0]
        if section.startswith(b"char"):
            for code, target in _CHAR_MAPPING.findall(section_body):
                yield _parse_hex_number(code), _decode_hex_text(target)
            continue
        for first, last, target, targets in _RANGE_MAPPING.findall(section_body):
            start, end, text = _parse_hex_number(first), _parse_hex_number(last), _decode_hex_text(target)
            if targets:
                yield from zip(range(start, end + 1), map(_decode_hex_text, _TARGET_HEX.findall(targets)), strict=False)
            elif text:
                shift = ord(text[-1]) - start
                # A range may be huge; of codes that only composite fonts have, the checked characters are enough.
                checked_codes = (ord(character) - shift for character in CHECKED_CHARACTERS)
                for code in {*range(start, min(end + 1, _CODE_COUNT)), *checked_codes}:
                    if start <= code <= end:
                        yield code, text[:-1] + chr(min(code + shift, 0x10FFFF))


def _parse_hex_number(hex_digits: bytes) -> int:
    """Parse a hexadecimal number; PDF allows white space between its digits."""
    return int(b"".join(hex_digits.split()) or b"0", 16)


def _decode_hex_text(hex_digits: bytes) -> str:
    hex_digits = b"".join(hex_digits.split())
    return bytes.fromhex(hex_digits.decode() + "0" * (len(hex_digits) % 2)).decode("utf-16-be", "replace")
