"""``evalkit build-template`` and ``apply-template``: files, exit statuses, one line per fault."""

from __future__ import annotations

import csv
import json
import stat
from pathlib import Path

import pytest
from statements.drawn import draw
from typer.testing import CliRunner

from evalkit.cli import app
from evalkit.errors import DocumentError, UsageError
from evalkit.statements.statement_template import parse_template_toml


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    path = tmp_path / "statement.pdf"
    path.write_bytes(draw("CR and DR", 1).pdf)
    return path


def test_a_template_is_built_and_applied(pdf: Path, tmp_path: Path) -> None:
    toml, table = tmp_path / "bank.toml", tmp_path / "rows.csv"
    built = CliRunner().invoke(app, ["build-template", str(pdf), "--to", str(toml)])
    assert built.exit_code == 0, built.output
    assert parse_template_toml(toml.read_text(), "bank.toml").status == "draft"
    applied = CliRunner().invoke(app, ["apply-template", str(toml), str(pdf), "--to", str(table)])
    assert applied.exit_code == 0, applied.output
    assert "is a draft" in applied.output
    with table.open() as lines:
        found = list(csv.DictReader(lines))
    rows = draw("CR and DR", 1).rows
    assert list(found[0]) == ["date", "description", "amount", "balance", "page", "confidence"]
    assert {one["confidence"] for one in found} == {"1.0"}, "printed text, and the sums are met"
    assert [tuple(one.values())[:5] for one in found] == [
        (one.date, one.description, f"{one.amount:.2f}", f"{one.balance:.2f}", str(one.page)) for one in rows
    ]
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in (toml, table))


def test_a_template_has_its_place_in_the_output_folder(pdf: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    built = CliRunner().invoke(app, ["build-template", str(pdf), "--output", str(output), "--json"])
    made = json.loads(built.stdout)
    assert made["reconciliation"]["is_met"] is True
    (file,) = (output / "templates").iterdir()
    assert made["template"] == str(file)
    applied = CliRunner().invoke(app, ["apply-template", file.stem, str(pdf), "--output", str(output), "--json"])
    assert json.loads(applied.stdout)["statement"] == made["statement"]


def test_the_banks_own_file_decides_the_exit_status(pdf: Path, tmp_path: Path) -> None:
    toml, table = tmp_path / "bank.toml", tmp_path / "bank.csv"
    CliRunner().invoke(app, ["build-template", str(pdf), "--to", str(toml)])
    rows = draw("CR and DR", 1).rows
    lines = [f"{one.description};{one.date[8:]}.{one.date[5:7]}.{one.date[:4]};{one.amount}" for one in rows]
    table.write_text("\n".join(["Text;Datum;Betrag", *lines]))
    words = ["apply-template", str(toml), str(pdf), "--check", str(table)]
    same = CliRunner().invoke(app, words)
    assert (same.exit_code, f"{len(rows)} rows equal, 0 missing, 0 extra, 0 differing" in same.output) == (0, True)
    table.write_text(
        "\n".join(["Text;Datum;Betrag", *lines[1:], f"{rows[0].description};{lines[0].split(';')[1]};0.07"])
    )
    other = CliRunner().invoke(app, [*words, "--json"])
    assert other.exit_code == 1
    check = json.loads(other.stdout)["check"]
    assert (check["equal"], check["is_same"], len(check["differing"])) == (len(rows) - 1, False, 1)
    assert check["differing"][0]["bank"]["amount"] == "0.07"


def test_a_year_that_is_printed_cannot_be_given(pdf: Path, tmp_path: Path) -> None:
    toml = tmp_path / "bank.toml"
    CliRunner().invoke(app, ["build-template", str(pdf), "--to", str(toml)])
    done = CliRunner().invoke(app, ["apply-template", str(toml), str(pdf), "--year", "2024"])
    assert isinstance(done.exception, UsageError)
    assert done.exception.code == "TEMPLATE-YEAR"


def test_an_unknown_ending_is_refused(pdf: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["apply-template", "bank.toml", str(pdf), "--to", str(tmp_path / "rows.docx")])
    assert isinstance(done.exception, UsageError)
    assert done.exception.code == "TEMPLATE-TABLE"


def test_totals_that_differ_are_no_failure(pdf: Path, tmp_path: Path) -> None:
    toml = tmp_path / "bank.toml"
    CliRunner().invoke(app, ["build-template", str(pdf), "--to", str(toml)])
    toml.write_text(
        toml.read_text()
        .replace('unmarked = "deposit"', 'unmarked = "deposit"')
        .replace('"dr"', '"plus"')
        .replace('"plus", "cr"', '"cr", "dr"')
    )
    applied = CliRunner().invoke(app, ["apply-template", str(toml), str(pdf)])
    assert applied.exit_code == 0, applied.output
    assert "DIFFERS" in applied.output


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (["apply-template", "gone.toml", "statement.pdf"], UsageError, "there is no template gone.toml"),
        (["apply-template", "wrong.toml", "statement.pdf"], UsageError, "wrong.toml, line 1"),
        (["build-template", "statement.pdf", "--to", "no/such/folder/t.toml"], UsageError, "cannot be written"),
        (["build-template", "letter.pdf"], DocumentError, "letter.pdf"),
    ],
)
def test_faults(
    words: list[str], error: type[Exception], says: str, pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pdf.parent)
    Path("wrong.toml").write_text('template_id = "a b"\n')
    Path("letter.pdf").write_bytes(b"no PDF")
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, error)
    assert says in str(done.exception)
