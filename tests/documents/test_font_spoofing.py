"""What a ToUnicode table says, however it is written."""

from __future__ import annotations

import pymupdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.documents.font_spoofing import find_misleading_characters


def lies(table: bytes) -> set[str]:
    """Of a font that names its letters as ASCII does, and has that table."""
    with pymupdf.open() as document:
        document.new_page()
        font, stream = document.get_new_xref(), document.get_new_xref()
        document.update_object(stream, "<<>>")
        document.update_stream(stream, table)
        document.update_object(font, f"<</Type/Font/Subtype/Type1/Encoding/WinAnsiEncoding/ToUnicode {stream} 0 R>>")
        return find_misleading_characters(document, font, has_own_glyphs=False)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (b"beginbfchar <41> <0041> endbfchar", set()),
        (b"beginbfchar <41> <0061> endbfchar", set()),  # a small letter for a capital is no other letter
        (b"beginbfchar <41> <0042> endbfchar", {"B"}),
        (b"beginbfchar <4 1>\n< 00 42 > endbfchar", {"B"}),
        (b"beginbfchar < > < > endbfchar", set()),
        (b"beginbfrange <41> <43> <0042> endbfrange", {"B", "C", "D"}),
        (b"beginbfrange <41> <42> [<0041> <0043>] endbfrange", {"C"}),
        (b"beginbfrange <41> <ffffffffffff> <0041> endbfrange", set()),
    ],
)
def test_letters_that_are_called_otherwise_are_told(table: bytes, expected: set[str]) -> None:
    assert lies(table) == expected


@given(st.sampled_from(["char", "range"]), st.text("04F \n", max_size=6), st.text("04DF \n", max_size=9))
def test_no_table_raises(kind: str, code: str, letters: str) -> None:
    table = f"beginbf{kind} <{code}> <{letters}> <{letters}> endbf{kind}"
    assert isinstance(lies(table.encode()), set)
