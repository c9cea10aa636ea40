"""A workbook of an output folder: what people filter, as a spreadsheet reads it."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from evalkit.core.spreadsheets import Sheet, render_workbook
from evalkit.errors import StoreError, UsageError
from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.exports import workbook as workbook_module
from evalkit.pipeline import RunSummary
from evalkit.review import SMEReviewHelper


@pytest.fixture
def output(demo_run: RunSummary, tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo_run.output, tmp_path / "output"))


def read_rows(path: Path, sheet: str) -> list[dict[str, Any]]:
    head, *rows = openpyxl.load_workbook(path)[sheet].iter_rows(values_only=True)
    return [dict(zip(map(str, head), row, strict=True)) for row in rows]


def test_the_sheets_hold_what_the_folder_holds(output: Path, tmp_path: Path) -> None:
    helper = SMEReviewHelper(output, "dr_lee")
    helper.save_review("doc2_6", agrees=False, corrected_dominant_type="Other", correction_notes="=HYPERLINK(A1)")
    pending = helper.list_pending_reviews()
    path = tmp_path / "all.xlsx"
    count = export_ground_truth(output, path, file_format="xlsx")
    assert path.stat().st_mode & 0o777 == 0o600
    queue, issues, truth = (read_rows(path, name) for name in ("queue", "issues", "ground truth"))
    assert [row["case_id"] for row in queue] == list(pending["case_id"])
    stored = [
        (result["doc_id"], issue["code"])
        for result in (json.loads(file.read_text()) for file in sorted((output / "results").iterdir()))
        for issue in result.get("issues", [{"code": result.get("error", {}).get("code")}])
    ]
    assert sorted((row["document"], row["code"]) for row in issues) == sorted(stored)
    assert [row["doc_id"] for row in truth] == ["doc2_6"]
    assert isinstance(truth[0]["reviewed_at"], datetime)
    assert truth[0]["correction_notes"] == "=HYPERLINK(A1)"
    figures = read_rows(path, "report")
    assert {"section", "table", "row", "column", "value", "low", "high"} == figures[0].keys()
    reviewed = [row["value"] for row in figures if (row["row"], row["column"]) == ("reviewed", "documents")]
    assert reviewed[0] == 1
    assert count == sum(len(read_rows(path, name)) for name in ("queue", "issues", "fields", "ground truth", "report"))
    for sheet in openpyxl.load_workbook(path):
        assert sheet.freeze_panes == "B2"
        assert sheet.auto_filter.ref


def test_fields_are_a_row_each(output: Path, tmp_path: Path) -> None:
    path = tmp_path / "all.xlsx"
    field = {
        "status": "found",
        "value": "2025-02-01",
        "raw": "02/01/2025",
        "page": 1,
        "quote": "Date: 02/01/2025",
        "confidence": 0.5,
    }
    form = {
        "template": "report",
        "document_type": "Pathology Report",
        "start_page": 1,
        "end_page": 2,
        "score": 1.0,
        "confidence": 1.0,
        "met_threshold": True,
        "stopped_reason": "x",
        "iterations": 1,
        "decision": None,
        "fields": {"date": field, "grade": {"status": "not_present"}},
    }
    stored = {
        "schema_version": 1,
        "doc_id": "one",
        "sha256": "0" * 64,
        "fingerprint": "f",
        "model": "m",
        "reader": "r",
        "extractions": [form],
    }
    folder = output / "extractions"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "one.json").write_text(json.dumps(stored))
    (folder / "torn.json").write_text("{")
    with pytest.raises(StoreError, match=r"rows were written.*torn"):
        export_ground_truth(output, path, file_format="xlsx")
    rows = read_rows(path, "fields")
    assert [(row["document"], row["field"], row["status"], row["confidence"]) for row in rows] == [
        ("one", "date", "found", 0.5),
        ("one", "grade", "not_present", 0),
    ]
    assert [row["value"] for row in rows] == [datetime(2025, 2, 1), None]  # noqa: DTZ001 - a cell has no zone


def test_days_before_the_calendar_of_spreadsheets_stay_text() -> None:
    texts = ["1899-05-01", "0024-03-05", "1900-02-28", "1850-01-01T00:00:00Z"]
    assert [workbook_module._convert_cell(text) for text in texts] == texts


def test_too_many_rows_are_refused_before_writing(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook_module, "MAX_SHEET_ROWS", 3)
    with pytest.raises(UsageError, match="sheet"):
        export_ground_truth(output, tmp_path / "t.xlsx", file_format="xlsx")
    assert not (tmp_path / "t.xlsx").exists()


def _cells(*values: Any) -> Iterator[Any]:
    content = render_workbook([Sheet("one", ["value"], [[value] for value in values])])
    sheet = openpyxl.load_workbook(io.BytesIO(content))["one"]
    yield from (row[0] for row in sheet.iter_rows(min_row=2))


def test_cells_have_types_and_no_text_becomes_a_formula() -> None:
    moment = datetime(2025, 3, 1, 12, 30, tzinfo=UTC)
    texts = ["=1+1", "+49 30", "-1", "@SUM(A1)", "\t=1", "half \ud800", "a\x07b", "https://x.org", "x" * 40_000]
    cells = list(_cells(date(2025, 2, 1), moment, True, 3, 0.5, None, float("nan"), *texts))
    assert [cell.data_type for cell in cells] == ["d", "d", "b", "n", "n", "n", "n", *["s"] * len(texts)]
    assert cells[1].value == moment.replace(tzinfo=None)
    assert [cell.value for cell in cells[5:7]] == [None, None]
    assert [cell.value for cell in cells[7:11]] == texts[:4]
    assert all(cell.quotePrefix for cell in cells[7:11])
    assert all(cell.hyperlink is None for cell in cells)
    assert cells[12].value == "half ?"
    assert (len(cells[-1].value), cells[-1].value[-1]) == (32_767, "…")
    assert all(cell.alignment.wrap_text for cell in cells if cell.value is not None)
