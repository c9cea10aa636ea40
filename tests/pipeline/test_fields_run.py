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
