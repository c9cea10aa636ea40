"""A bank statement among the documents of `run` and `extract`: named as such, with the command that reads it."""

from __future__ import annotations

import json
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pymupdf
import pytest
from statements.drawn import SHAPES, draw
from statements.undecided import draw_month
from typer.testing import CliRunner

from evalkit import pipeline
from evalkit.cli import app
from evalkit.documents.readers import read_document
from evalkit.review import SMEReviewHelper
from evalkit.statements.alternative_readings import build_opposite_reading, confirm_directions
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.statement_detection import is_bank_statement
from evalkit.store import BUNDLES_FOLDER


def write_letter(path: Path) -> None:
    document = pymupdf.open()
    document.new_page().insert_text((60, 80), "Clinic note\nThe patient was seen on 03/04/2024 for cough.\nPlan: rest.")
    document.save(path)


@pytest.mark.parametrize("command", ["run", "extract"])
def test_a_statement_is_named_with_the_command_that_reads_it(command: str, tmp_path: Path) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "statement.pdf").write_bytes(draw("signed amounts", 1).pdf)
    write_letter(folder / "letter.pdf")
    words = [command, str(folder), "--output", str(output), "--json"]
    for _ in range(2):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 1
        documents = {document["doc_id"]: document for document in json.loads(done.stdout)["documents"]}
        assert documents["letter"]["error"] is None
        assert "this is a bank statement" in documents["statement"]["error"]
        assert "`evalkit build-template`" in documents["statement"]["error"]
    assert not list((output / "ground_truth").glob("*statement*")), "nothing was accepted"


def test_a_statement_costs_nothing_in_the_estimate(tmp_path: Path) -> None:
    (tmp_path / "statement.pdf").write_bytes(draw("signed amounts", 1).pdf)
    estimate = pipeline.estimate(tmp_path, output=tmp_path / "out", model="gemini:gemini-2.5-flash")
    assert estimate.rows == ()
    assert "this is a bank statement" in estimate.problems[0]


def test_a_run_leaves_the_case_of_a_template_its_statement(tmp_path: Path) -> None:
    pdf, output = tmp_path / "statement.pdf", tmp_path / "out"
    pdf.write_bytes(draw("signed amounts", 1).pdf)
    toml = tmp_path / "t.toml"
    CliRunner().invoke(app, ["build-template", str(pdf), "--to", str(toml)])
    CliRunner().invoke(app, ["review-template", str(toml), str(pdf), "--output", str(output)])
    assert CliRunner().invoke(app, ["run", str(pdf), "--output", str(output)]).exit_code == 1
    assert [file.name for file in (output / BUNDLES_FOLDER).iterdir()] == ["statement.json"]


@pytest.mark.parametrize("shape", [name for name, shape in SHAPES.items() if not shape.is_scanned])
def test_statements_of_every_shape_are_recognised(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(draw(shape, 2).pdf)
    assert is_bank_statement(read_document(path, doc_id="a", processing_timestamp=""))


@pytest.mark.parametrize(
    ("titles", "row", "is_statement"),
    [
        ("Date Test Result", "0{day}/02/2024 Potassium 4.{day}0", False),
        ("Date Intake Balance", "0{day}/02/2024 1{day}00 -2{day}0", False),
        ("Date Payee Withdrawals", "0{day}/02/2024 Bakery -2{day}0", True),
    ],
    ids=["laboratory", "fluids", "payments without cents"],
)
def test_tables_of_dates_and_numbers_are_told_apart(titles: str, row: str, is_statement: bool, tmp_path: Path) -> None:
    page = (document := pymupdf.open()).new_page()
    for position, text in enumerate([titles, *(row.format(day=day) for day in range(1, 8))]):
        for column, cell in enumerate(text.split()):
            page.insert_text((60 + 160 * column, 100 + 16 * position), cell)
    document.save(tmp_path / "a.pdf")
    assert is_bank_statement(read_document(tmp_path / "a.pdf", doc_id="a", processing_timestamp="")) is is_statement


def test_a_sign_that_nothing_proves_is_decided_and_next_month_read(tmp_path: Path) -> None:
    output, toml = tmp_path / "out", tmp_path / "t.toml"
    months = [tmp_path / f"{month}.pdf" for month in (2, 3)]
    for month, path in enumerate(months, 2):
        path.write_bytes(draw_month(month, is_silent=True).pdf)
    CliRunner().invoke(app, ["build-template", str(months[0]), "--to", str(toml)])
    reviewed = CliRunner().invoke(
        app, ["review-template", str(toml), str(months[0]), "--output", str(output), "--json"]
    )
    review = json.loads(reviewed.stdout)
    assert review["status"] == "draft", "nothing proves which way the money went"
    assert "sign_logic" in {issue["issue"]["category"] for issue in review["issues"]}
    with closing(SMEReviewHelper(output, "dr_lee")) as helper:
        template = helper.load_packet(review["case_id"]).agent_answer
        readings = [confirm_directions(reading) for reading in (template, build_opposite_reading(template))]
        bundle = read_document(months[0], doc_id="a", processing_timestamp="")
        (right,) = [
            reading
            for reading in readings
            if AppliedTemplate.create(reading, bundle).statement.transactions[0].amount < 0
        ]
        helper.save_review(review["case_id"], corrected_template=right, unmet_sums="no sum is printed")
    words = ["apply-template", review["template_id"], str(months[1]), "--output", str(output), "--json"]
    applied = json.loads(CliRunner().invoke(app, words).stdout)
    assert applied["status"] == "stable"
    amounts = [Decimal(row["amount"]) for row in applied["statement"]["transactions"]]
    assert amounts == [row.amount for row in draw_month(3, is_silent=True).rows]
