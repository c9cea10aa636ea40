"""``evalkit extract`` and ``run --extract``: files, resuming, tables, errors of single files."""

from __future__ import annotations

import csv
import json
import random
import stat
from pathlib import Path

import pymupdf
import pytest
from benchmarks.tax_forms import draw, form_1099, form_w2
from typer.testing import CliRunner

from evalkit.cli import app
from evalkit.errors import UsageError
from evalkit.extraction.extraction_schema import Extractions
from evalkit.pipeline import extract, run
from evalkit.pipeline.fields_run import ExtractSummary
from evalkit.settings import Settings

SETTINGS = Settings(ocr="none", workers=1)


@pytest.fixture
def forms(tmp_path: Path) -> Path:
    """A folder with a W-2, a 1099-NEC and a file that is no PDF."""
    folder = tmp_path / "taxes"
    folder.mkdir()
    for name, one in (("w2", form_w2(random.Random(1))), ("nec", form_1099(random.Random(2), "1099-NEC"))):
        document = pymupdf.open()
        draw(one, random.Random(4), document.new_page(width=612, height=792))
        document.save(folder / f"{name}.pdf")
    (folder / "torn.pdf").write_bytes(b"%PDF-1.7 nothing")
    return folder


def extracted(forms: Path, tmp_path: Path, **options: object) -> ExtractSummary:
    return extract([forms], output=tmp_path / "out", settings=SETTINGS, **options)  # type: ignore[arg-type]


def test_each_document_has_its_file_and_the_others_go_on(forms: Path, tmp_path: Path) -> None:
    summary = extracted(forms, tmp_path)
    assert [(one.doc_id, bool(one.error)) for one in summary.documents] == [
        ("nec", False), ("torn", True), ("w2", False),
    ]  # fmt: skip
    assert summary.exit_status == 1
    for name, form in (("nec", "1099-NEC"), ("w2", "W-2")):
        path = tmp_path / "out" / "extractions" / f"{name}.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        read = Extractions.model_validate_json(path.read_text())
        assert [one.template for one in read.extractions] == [form]
        assert read.usage["by_agent"]["extractor"]["calls"] == 1
    assert not (tmp_path / "out" / "extractions" / "torn.json").exists()


def test_a_second_run_does_nothing_and_is_equal(forms: Path, tmp_path: Path) -> None:
    extracted(forms, tmp_path)
    before = (tmp_path / "out" / "extractions" / "w2.json").read_bytes()
    again = extracted(forms, tmp_path)
    assert [one.resumed for one in again.documents if not one.error] == [True, True]
    assert (tmp_path / "out" / "extractions" / "w2.json").read_bytes() == before


def test_another_year_or_template_is_done_anew(forms: Path, tmp_path: Path) -> None:
    extracted(forms, tmp_path)
    other = extracted(forms, tmp_path, tax_year=2099)
    assert not any(one.resumed for one in other.documents)
    reasons = {one.stopped_reason for document in other.documents for one in document.extractions}
    assert reasons == {"Wrong tax year"}
    named = extracted(forms, tmp_path, template="1099-INT")
    assert {one.template for document in named.documents for one in document.extractions} == {"1099-INT"}


def test_a_repeated_run_gives_equal_files_but_for_its_times(forms: Path, tmp_path: Path) -> None:
    extracted(forms, tmp_path)
    path = tmp_path / "out" / "extractions" / "w2.json"
    first = json.loads(path.read_text())
    extracted(forms, tmp_path, fresh=True)
    second = json.loads(path.read_text())
    assert first.pop("times").keys() == second.pop("times").keys()
    assert first == second


@pytest.mark.parametrize(
    ("options", "told"), [({"template": "W-99"}, "no template W-99"), ({"tax_year": 20}, "20 is not a tax year")]
)
def test_wrong_options_are_one_line(forms: Path, tmp_path: Path, options: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        extracted(forms, tmp_path, **options)


def test_the_command_prints_writes_a_table_and_says_what_failed(
    forms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALKIT_OCR", "none")
    table = tmp_path / "fields.csv"
    arguments = ["extract", str(forms), "--output", str(tmp_path / "out"), "--to", str(table)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    assert "AUTO_ACCEPT" in done.output
    assert "torn:" in done.output
    assert stat.S_IMODE(table.stat().st_mode) == 0o600
    rows = list(csv.DictReader(table.open(encoding="utf-8")))
    (wages,) = [row for row in rows if row["doc_id"] == "w2" and row["field"] == "wages_tips"]
    assert (wages["status"], wages["document_type"], wages["page"]) == ("found", "W-2", "1")
    as_json = json.loads(CliRunner().invoke(app, [*arguments[:-2], "--json"]).stdout)
    w2 = as_json["documents"][-1]
    assert w2["extractions"][0]["fields"]["wages_tips"]["value"] == wages["value"]


def test_a_run_extracts_too_where_it_is_asked_to(forms: Path, tmp_path: Path) -> None:
    (forms / "torn.pdf").unlink()
    out = tmp_path / "out"
    run([forms], output=out, settings=SETTINGS)
    assert not (out / "extractions").exists()
    run([forms], output=out, settings=SETTINGS, extract=True)
    first = (out / "extractions" / "w2.json").read_bytes()
    run([forms], output=out, settings=SETTINGS, extract=True)
    assert (out / "extractions" / "w2.json").read_bytes() == first


def test_accepted_fields_are_silver_and_wrong_year_escalates(forms: Path, tmp_path: Path) -> None:
    (forms / "torn.pdf").unlink()
    extracted(forms, tmp_path)
    truth = json.loads((tmp_path / "out" / "ground_truth" / "gt_w2.extraction.json").read_text())
    assert (truth["ground_truth_source"], truth["ground_truth_fields"][0]["template"]) == ("AUTO_ACCEPTED", "W-2")
    extracted(forms, tmp_path, tax_year=2099)
    packet = json.loads((tmp_path / "out" / "sme_packets" / "sme_packet_nec.extraction.json").read_text())
    assert packet["decision_reason"] == "1099-NEC on page 1: it is for another tax year"
    assert not (tmp_path / "out" / "ground_truth" / "gt_nec.extraction.json").exists()
    run([forms], output=tmp_path / "out", settings=SETTINGS, extract=True)
    assert not (tmp_path / "out" / "sme_packets" / "sme_packet_nec.extraction.json").exists()
    assert (tmp_path / "out" / "ground_truth" / "gt_nec.extraction.json").exists()


def test_pages_that_are_no_forms_are_reports(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    lines = ["PATHOLOGY REPORT", "Final diagnosis: invasive ductal carcinoma, grade 2.", "Margins: negative."]
    for at, line in enumerate(lines):
        page.insert_text((72, 100 + 30 * at), line)
    draw(form_w2(random.Random(1)), random.Random(4), document.new_page(width=612, height=792))
    document.save(tmp_path / "mixed.pdf")
    (made,) = extract([tmp_path / "mixed.pdf"], output=tmp_path / "out", settings=SETTINGS).documents
    assert [(one.start_page, one.document_type) for one in made.extractions][-1] == (2, "W-2")
    assert made.extractions[0].end_page == 1
    ids = [issue.issue_id for one in made.extractions for issue in one.issues]
    assert len(ids) == len(set(ids))


def draw_report(path: Path, *lines: str) -> Path:
    """A report of one page."""
    document = pymupdf.open()
    page = document.new_page()
    for number, line in enumerate(lines):
        page.insert_text((72, 80 + 32 * number), line)
    document.save(path)
    return path


PATHOLOGY_LINES = (
    "SURGICAL PATHOLOGY REPORT", "Patient: Jane Roe   DOB: 03/04/1961", "Accession: S24-1001",
    "Final Pathologic Diagnosis", "Colon, sigmoid, resection: Invasive adenocarcinoma, grade 2.", "Margins: negative.",
    "Gross Description", "Received in formalin is a segment of colon, 12 cm in length.",
    "Microscopic Description", "Sections show invasive adenocarcinoma of the colon.",
)  # fmt: skip


def test_a_molecular_block_is_extracted_as_a_part(tmp_path: Path) -> None:
    block = ("Molecular Studies", "KRAS c.35G>A (p.Gly12Asp) detected, pathogenic.")
    path = draw_report(tmp_path / "composite.pdf", *PATHOLOGY_LINES, *block)
    (found,) = extract([path], output=tmp_path / "out", settings=SETTINGS).documents
    assert [(one.template, one.start_page) for one in found.extractions] == [("pathology", 1), ("genomics", 1)]
    values = [value.value for name, value in found.extractions[1].fields.items() if name.startswith("mutations.")]
    assert len(values) == 1
    assert "c.35G>A" in str(values)


def change_classification(output: Path, doc_id: str, **changes: object) -> None:
    """Change the first segment of a stored result."""
    path = output / "results" / f"{doc_id}.json"
    stored = json.loads(path.read_text())
    stored["classification"]["segments"][0] |= changes
    path.write_text(json.dumps(stored))


def test_embedded_reports_are_extracted_by_their_own_template(tmp_path: Path) -> None:
    path = draw_report(tmp_path / "one.pdf", *PATHOLOGY_LINES, "Impression: 3 cm mass of the left lung.")
    run([path], output=tmp_path / "out", settings=SETTINGS)
    stored = json.loads((tmp_path / "out" / "results" / "one.json").read_text())
    composition = stored["classification"]["segments"][0]["segment_composition"]
    for presence in composition:
        if presence["document_type"] in ("Radiology Report", "Clinical Note"):
            presence["presence_level"] = "EMBEDDED_RAW"
    change_classification(tmp_path / "out", "one", segment_composition=composition)
    (found,) = extract([path], output=tmp_path / "out", settings=SETTINGS).documents
    assert [one.template for one in found.extractions] == ["pathology", "radiology"], "a note has no fields to judge"


def test_a_segment_without_a_type_waits_for_it(tmp_path: Path) -> None:
    path = draw_report(tmp_path / "one.pdf", *PATHOLOGY_LINES)
    output = tmp_path / "out"
    run([path], output=output, settings=SETTINGS)
    change_classification(output, "one", dominant_type=None)
    (waiting,) = extract([path], output=output, settings=SETTINGS).documents
    assert [(one.decision, one.stopped_reason, one.fields) for one in waiting.extractions] == [(None, "no_type", {})]
    assert not (output / "sme_packets" / "sme_packet_one.extraction.json").exists()
    assert not (output / "ground_truth" / "gt_one.extraction.json").exists()


def test_an_experts_type_is_used_for_the_fields(tmp_path: Path) -> None:
    path = draw_report(tmp_path / "one.pdf", *PATHOLOGY_LINES)
    output = tmp_path / "out"
    run([path], output=output, settings=SETTINGS)
    truth_path = output / "ground_truth" / "gt_one.json"
    truth = json.loads(truth_path.read_text())
    truth["ground_truth_source"] = "SME_CORRECTED"
    truth["ground_truth_classification"]["segments"][0]["dominant_type"] = "Radiology Report"
    truth_path.write_text(json.dumps(truth))
    (found,) = extract([path], output=output, settings=SETTINGS).documents
    assert [one.template for one in found.extractions] == ["radiology"]


def test_extract_alone_doubts_types_that_the_verifiers_doubt(tmp_path: Path) -> None:
    sure = draw_report(tmp_path / "sure.pdf", *PATHOLOGY_LINES)
    lines = ("Toronto Cancer Hospital", "MOLECULAR GENETICS LABORATORY RESULTS", "Report Date: 2025-05-19",
             "Two variants were detected in the sample.", "Variant 1 of 2", "Gene NACA", "Variant c.17OOC>T", "Pathogenic",
             "METHODOLOGY", "Next Generation Sequencing of 14 genes.")  # fmt: skip
    doubtful = draw_report(tmp_path / "odd.pdf", *lines)
    found = extract([sure, doubtful], output=tmp_path / "out", settings=SETTINGS).documents
    doubts = {one.doc_id: [issue.code for form in one.extractions for issue in form.issues] for one in found}
    assert "EXTRACTION-TYPE" in doubts["odd"]
    assert "EXTRACTION-TYPE" not in doubts["sure"]


def test_a_report_without_fields_to_judge_is_no_case(tmp_path: Path) -> None:
    lines = ("PROGRESS NOTE", "Patient: Jane Roe   DOB: 03/04/1961", "Chief Complaint: cough for two weeks.",
             "History of Present Illness: She denies fever.", "Assessment and Plan: Viral bronchitis. Return in a week.",
             "Physical Exam: Lungs clear.")  # fmt: skip
    path = draw_report(tmp_path / "note.pdf", *lines)
    run([path], output=tmp_path / "out", settings=SETTINGS, extract=True)
    stored = json.loads((tmp_path / "out" / "extractions" / "note.json").read_text())["extractions"]
    assert [(one["template"], one["decision"], one["stopped_reason"]) for one in stored] == [
        ("clinical-notes", None, "no_fields")
    ]
    assert not (tmp_path / "out" / "sme_packets" / "sme_packet_note.extraction.json").exists()
    assert not (tmp_path / "out" / "ground_truth" / "gt_note.extraction.json").exists()
