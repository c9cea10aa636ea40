"""Scans and blank pages from one end to the other: the settings, and the numbers that pages are called by."""

import json
from pathlib import Path

import pytest
from builders import PATHOLOGY, Json, evidence, one_segment
from commands import evalkit_command
from documents.drawing import lines
from documents.scanning import NOTE, needs_tesseract, printed, scan

import evalkit
from evalkit.documents import DocumentBundle
from evalkit.documents.ocr import find_second_reader
from evalkit.pipeline.run_setup import build_reader_config
from evalkit.review import SMEReviewHelper
from evalkit.settings import Settings

SMALL = {"width": 420, "height": 220}
INVENTED = "Metastatic melanoma was found in four of nine axillary lymph nodes"


@pytest.fixture
def scanned(tmp_path: Path) -> Path:
    path = tmp_path / "scan.pdf"
    path.write_bytes(scan(printed(lines(NOTE[:4], x=50, y=80), **SMALL)))
    return path


def bundle_of(output: Path, doc_id: str) -> DocumentBundle:
    return DocumentBundle.model_validate_json((output / f"document_bundles/{doc_id}.json").read_text())


def test_missing_ocr_engine_is_one_line_and_exit_status_2(scanned: Path, tmp_path: Path) -> None:
    (tmp_path / "evalkit.toml").write_text('ocr = "tesseract"\n')
    shown = evalkit_command("run", scanned, "--output", tmp_path / "out", cwd=tmp_path, PATH="")
    assert shown.returncode == 2, shown
    assert shown.stdout == ""
    (line,) = shown.stderr.strip().splitlines()
    assert line == (
        "evalkit: the OCR engine tesseract is not installed. "
        "Install it (apt-get install tesseract-ocr, or brew install tesseract), or set `ocr` to auto or none."
    )
    assert not list(tmp_path.glob("out/results/*"))


def test_no_scan_is_read_where_none_shall_be(scanned: Path, tmp_path: Path) -> None:
    (tmp_path / "evalkit.toml").write_text('ocr = "none"\n')
    shown = evalkit_command("run", scanned, "--output", tmp_path / "out", cwd=tmp_path)
    assert "ESCALATE_TO_SME" in shown.stdout
    page = bundle_of(tmp_path / "out", "scan").page(1)
    assert (page.status, page.text, page.quality) == ("image", "", None)


@needs_tesseract
def test_scans_are_read_where_tesseract_is_asked_for(scanned: Path, tmp_path: Path) -> None:
    shown = evalkit_command("run", scanned, "--output", tmp_path / "out", cwd=tmp_path, EVALKIT_OCR="tesseract")
    assert shown.returncode == 0, shown
    bundle = bundle_of(tmp_path / "out", "scan")
    assert bundle.page(1).text == " ".join(NOTE[:4])
    assert ", tesseract " in bundle.reader


def with_a_blank_page(name: str, samples: Path, folder: Path) -> tuple[Path, str]:
    """A document of three pages whose second is blank, and some words of its third."""
    if name == "blank":
        return samples / "with_blank_page.pdf", "Lymphovascular invasion is not identified in this biopsy."
    first, third = (printed(lines(texts, x=50, y=80), **SMALL) for texts in (NOTE[:3], NOTE[3:]))
    path = folder / "scan.pdf"
    path.write_bytes(scan(first, printed(**SMALL), third))
    return path, "No vessel is seen to be invaded in any of the twelve sections."


@pytest.mark.parametrize("name", ["blank", pytest.param("blank and scanned", marks=needs_tesseract)])
def test_a_blank_page_is_counted(name: str, samples: Path, tmp_path: Path) -> None:
    path, printed_there = with_a_blank_page(name, samples, tmp_path)
    denied = printed_there.replace(" not ", " ").replace("No vessel", "A vessel")
    answer: Json = one_segment(PATHOLOGY, 3, evidence(INVENTED, 3), evidence(denied, 3), evidence(printed_there, 3))
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / f"{path.stem}.json").write_text(json.dumps(answer))
    output = tmp_path / "output"
    evalkit.run([path], output=output, classifications=tmp_path / "answers")
    assert [page.status.value for page in bundle_of(output, path.stem).pages][1] == "blank"
    helper = SMEReviewHelper(output, "dr_lee")
    packet = helper.load_packet(path.stem)
    contexts = {
        issue.quote: helper.get_issue_context(packet, issue.issue_id) for issue in packet.issues if issue.agent == "V4"
    }
    helper.close()
    assert set(contexts) == {INVENTED, denied}

    invented = contexts[INVENTED]
    assert (invented.issue.code, invented.issue.page) == ("V4-QUOTE-ABSENT", 3)
    assert "not found in actual PDF text on page 3." in invented.issue.message
    assert (invented.page_found, invented.paragraphs_matched) == (None, ())
    assert invented.paragraphs_after
    assert {one.page for one in invented.paragraphs_after} == {3}

    altered = contexts[denied]
    assert (altered.issue.page, altered.issue.found_page, altered.page_found) == (3, 3, 3)
    assert "on page 3" in altered.issue.message
    assert {one.page for one in altered.paragraphs_matched} == {3}
    assert {page for page, *_ in altered.boxes} == {3}


@needs_tesseract
@pytest.mark.parametrize("has_second", [False, True])
def test_a_run_says_once_that_it_has_no_second_engine(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, has_second: bool
) -> None:
    monkeypatch.setattr("evalkit.documents.ocr._is_rapidocr_installed", lambda: has_second)
    find_second_reader.cache_clear()
    try:
        build_reader_config(Settings(ocr="tesseract"))
    finally:
        find_second_reader.cache_clear()
    notices = [record.getMessage() for record in caplog.records]
    assert [("no second OCR engine" in notice) for notice in notices] == [True] * (not has_second)
