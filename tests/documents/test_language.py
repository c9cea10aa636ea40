"""Detection of the language of pages."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from evalkit.classification.orchestrator import collect_reader_issues
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.language import detect_language
from evalkit.documents.readers import read_document

ENGLISH = "The patient was admitted with chest pain and has been seen by the cardiologist. She may go home tomorrow."
GERMAN = "Der Befund wurde mit dem Patienten besprochen, eine Kontrolle erfolgt in vier Wochen bei uns."
SPANISH = "Se recomienda continuar con el mismo tratamiento y acudir a la próxima revisión dentro de seis meses."


def read_pages(*texts: str) -> DocumentBundle:
    with pymupdf.open() as document:
        for text in texts:
            document.new_page().insert_textbox((50, 50, 550, 700), text)
        content = document.tobytes()
    return read_document(Path("letter.pdf"), doc_id="letter", processing_timestamp="", file_bytes=content)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (GERMAN, "de"),
        (GERMAN.upper(), "de"),
        ("Laborbefund Ergebnis Einheit Referenzbereich Leukozyten Harnstoff Blutsenkung bis 15 Nüchternzucker", "de"),
        ("胸部影像学检查所见 双肺野清晰 未见明显实质性病变 心影大小正常 双侧膈面光滑", "zh"),
        ("रोगी को तीन दिनों से पेट में दर्द है और बुखार नहीं है", "hi"),
        ("ÜBERWEISUNG ZUR KONTROLLE NACH OPERATION, BITTE UM TERMIN IN DER NÄCHSTEN WOCHE", "de"),
        (f'He said: "{SPANISH[:40]}". {ENGLISH}', "en"),
        (
            "Patient name: María de los Ángeles Iturralde. Address: Calle de la Virgen del Remedio. Insurance: none",
            "en",
        ),
        (
            "García López, María\nFernández Ruiz, José\nMartínez Soler, Carmen\nde la Fuente, Pilar\nVidal del Río, Ana",
            "",
        ),
        ("Staphylococcus aureus\nPseudomonas aeruginosa\nEnterococcus faecalis\nProteus mirabilis", ""),
        ("TP53 c.743G>A p.Arg248Gln 41.2\nKRAS c.35G>T p.Gly12Val 38.0", ""),
        ("αβ γδ ε FONT symbol alphabetum", ""),
        ("Szczepański, Wawrzyniec", ""),
        ("", ""),
    ],
)
def test_a_text_has_the_language_of_its_sentences(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_each_page_of_a_file_has_its_language() -> None:
    bundle = read_pages(ENGLISH, GERMAN, "117/80   36.9")
    assert [page.language for page in bundle.pages] == ["en", "de", ""]
    assert bundle.language == "de"
    assert "language" not in bundle.model_dump(mode="json")["pages"][2]


def test_short_pages_are_judged_together() -> None:
    bundle = read_pages(*(GERMAN[start : start + 40] for start in range(0, len(GERMAN), 40)))
    assert {page.language for page in bundle.pages} == {"de"}


def test_another_language_is_an_issue_that_names_it() -> None:
    bundle = read_pages(ENGLISH, GERMAN, SPANISH, GERMAN)
    issues = [issue for issue in collect_reader_issues(bundle) if issue.code == "READER-LANGUAGE"]
    assert [(issue.facts["language"], issue.facts["pages"]) for issue in issues] == [
        ("German", "2, 4"),
        ("Spanish", "3"),
    ]
    assert issues[0].message == "This document is in German (page 2, 4); evalkit checks English text only"
    assert [issue.facts["language"] for issue in collect_reader_issues(bundle, ("en", "es"))] == ["German"]
    assert not list(collect_reader_issues(read_pages(ENGLISH, f"{ENGLISH} {GERMAN[:40]}")))
