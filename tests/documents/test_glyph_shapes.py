"""Glyphs that a file brings itself are compared with what the text says of them."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest
from benchmarks.first_contact.lying_fonts.making import Face, Made

from evalkit.documents.bundle import PageStatus
from evalkit.documents.font_spoofing import find_misleading_characters
from evalkit.documents.readers import read_document

TEXT = "Tumor size 5.2 cm, margins 0.4 cm\nKi-67 17 %, CRP > 38 mg/l"


def read(folder: Path, text: str, face: Face) -> tuple[str, PageStatus]:
    made = Made(folder)
    made.add("report", "", text, face, lies=False)
    page = read_document(folder / "report.pdf", doc_id="x", processing_timestamp="").pages[0]
    return page.text, page.status


@pytest.mark.parametrize("kind", ["type0", "type0cff", "type1c", "type1", "type3"])
@pytest.mark.parametrize(("honest", "lie"), [("5.2", "{5.2|1.3}"), ("0.4", "0{.|}4"), ("> 38", "{>|<} 38")])
def test_text_that_its_glyphs_do_not_show_is_not_read(tmp_path: Path, kind: str, honest: str, lie: str) -> None:
    assert read(tmp_path, TEXT.replace(honest, lie), Face(kind)) == ("", PageStatus.IMAGE)


def test_glyphs_moved_inside_the_font_file_are_noticed(tmp_path: Path) -> None:
    face = Face("truetype", to_unicode=False, swap={"5": "1", "1": "5", "2": "7", "7": "2"})
    assert read(tmp_path, TEXT, face) == ("", PageStatus.IMAGE)


@pytest.mark.parametrize("kind", ["type0", "type0cff", "truetype", "type1c", "type1", "type3", "type3bitmap"])
@pytest.mark.parametrize("source", ["DejaVuSans", "DejaVuSerif-Bold", "DejaVuSansMono", "STIXGeneral"])
def test_text_that_its_glyphs_show_is_read(tmp_path: Path, kind: str, source: str) -> None:
    text, status = read(tmp_path, TEXT, Face(kind, source))
    assert "size 5.2 cm" in text
    assert status is PageStatus.TEXT


@pytest.mark.parametrize(
    "changes",
    [
        {"CharProcs": "null"},
        {"Resources": "null"},
        {"FontMatrix": "[0 0 0 0 0 0]"},
        {"FontMatrix": "[1e9 0 0 1e9 0 0]"},
        {"Resources": "<</Font<</F0 FONT 0 R>>>>"},
    ],
)
def test_broken_drawn_font_suspects_nothing(tmp_path: Path, changes: dict[str, str]) -> None:
    made = Made(tmp_path)
    made.add("report", "", TEXT, Face("type3"), lies=False)
    with pymupdf.open(tmp_path / "report.pdf") as document:
        font_xref = document[0].get_fonts()[0][0]
        for key, text in changes.items():
            document.xref_set_key(font_xref, key, text.replace("FONT", str(font_xref)))
        assert find_misleading_characters(document, font_xref, has_own_glyphs=True) == set()
