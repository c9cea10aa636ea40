"""The roster of patients: what is read, what is refused without repeating anybody's name, and what a run makes of it."""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from commands import evalkit_command
from hypothesis import given
from hypothesis import strategies as st

import evalkit
from evalkit.classification.patient_check import ANY_PATIENT, PatientExpectation
from evalkit.errors import UsageError
from evalkit.pipeline.document_discovery import SourceDocument
from evalkit.pipeline.fingerprint import compute_fingerprint
from evalkit.pipeline.patient_roster import build_patient_expectation, read_patient_roster
from evalkit.pipeline.run_summary import DocumentSummary, RunSummary
from evalkit.settings import Settings

HEADER = "doc_id,filename,name,birth_date,record_number\n"
MARKERS = ("Quagmire", "QUAGMIRE", "Zebulon", "1950", "55512", "MRN")


def write_roster(folder: Path, text: str, name: str = "patients.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_rows_become_comparable_facts(tmp_path: Path) -> None:
    path = write_roster(tmp_path, HEADER + 'a,,"Marsh, Helen A.",02/03/1950,MRN-40917\n,b.pdf,,,TM 17\n')
    sources = [SourceDocument(doc_id, Path(f"/x/{doc_id}.pdf"), None) for doc_id in "abc"]
    identities = read_patient_roster(path).map_identities_by_doc_id(sources)
    facts = {doc_id: [(fact.kind, fact.normal) for fact in identity] for doc_id, identity in identities.items()}
    assert facts == {
        "a": [("patient", "MARSH HELEN"), ("date_of_birth", "1950-02-03"), ("mrn", "MRN40917")],
        "b": [("mrn", "TM17")],
    }


def test_json_rows_are_read_as_csv_rows(tmp_path: Path) -> None:
    row = {"doc_id": "a", "name": "Helen Marsh", "birth_date": "1950-02-03", "record_number": None}
    path = write_roster(tmp_path, json.dumps([row]), "patients.json")
    assert [fact.kind for fact in read_patient_roster(path).rows.label_by_key["a"]["identity"]] == [
        "patient",
        "date_of_birth",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (HEADER + "a,,Helen Marsh,1950-02-03,\n,,Zebulon Quagmire,,\n", "row 2 needs text in the column doc_id"),
        (HEADER + "a,,,,\n", "row 1 has no name, birth_date or record_number"),
        (HEADER + "a,,Zebulon Quagmire,31.31.1950,\n", "row 1: its birth_date is not valid"),
        (HEADER + "a,,Zebulon Quagmire,1950-02-03 or later,MRN-55512\n,,,,\n", "row"),
        (HEADER + "a,,7,,\n", "row 1: its name is not valid"),
        (HEADER + f"a,,{'Zebulon ' * 30},,\n", "row 1: its name is not a text of at most"),
        (HEADER + "a,,Zebulon Quagmire,,\na,,Zebulon Quagmire,1950-02-03,\n", "row 2 names another patient"),
        (HEADER + "a,,Zebulon Quagmire,,,Quagmire\n", "row 1 has more cells"),
        ("doc_id,Quagmire,Quagmire\na,b,c\n", "several columns have the same name"),
        (HEADER, "no rows"),
        ("", "no rows"),
        ("Quagmire\0", ""),
    ],
)
def test_a_wrong_row_is_named_but_nobody_in_it(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(UsageError, match=rf"patients\.csv: .*{fault}") as refused:
        read_patient_roster(write_roster(tmp_path, text))
    assert refused.value.code == "ROSTER"
    assert "columns doc_id or filename" in refused.value.remedy
    assert not any(marker in str(refused.value) for marker in MARKERS)


@given(text=st.text(max_size=60))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("roster") / "patients.csv"
    path.write_bytes((HEADER + text).encode("utf-8", "replace"))
    try:
        assert read_patient_roster(path).rows.label_by_key
    except UsageError as error:
        assert error.code == "ROSTER"  # noqa: PT017 - most texts are refused, some are read


def test_unused_and_ambiguous_rows_are_reported_by_number(tmp_path: Path) -> None:
    text = HEADER + ",same.pdf,Ann Quagmire,,\nb,,Ann Quagmire,,\nZebulon,,Ann Quagmire,,\n,gone.pdf,Ann Quagmire,,\n"
    roster = read_patient_roster(write_roster(tmp_path, text))
    sources = [SourceDocument(doc_id, Path(f"/{doc_id}/same.pdf"), None) for doc_id in ("a", "b", "c")]
    ambiguous, unknown = roster.list_unused_row_problems(sources, {"old": "/old/gone.pdf"})
    assert (ambiguous.code, unknown.code) == ("ROSTER-AMBIGUOUS", "ROSTER-UNKNOWN")
    assert "row 1 matches several documents" in str(ambiguous)
    assert "row 3 belongs" in str(unknown)
    assert not any(marker in f"{ambiguous}{unknown}" for marker in MARKERS)


@pytest.mark.parametrize(
    ("path", "patients"),
    [
        ("a.pdf", "one"),
        ("mail/a.pdf", "several"),
        ("mail/deep/a.pdf", "several"),
        ("mail/charts/a.pdf", "one"),
        ("mail/charts/bulk/a.pdf", "several"),
        ("mailbox/a.pdf", "one"),
    ],
)
def test_the_innermost_folder_decides(tmp_path: Path, path: str, patients: str, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    by_folder = {"mail/charts": "one", "mail": "several", str(tmp_path / "mail/charts/bulk/"): "several"}
    expectation = build_patient_expectation(Settings(patients_by_folder=by_folder), tmp_path / path)
    assert expectation.patients_per_file == patients


def test_only_what_is_expected_changes_the_fingerprint(tmp_path: Path) -> None:
    path = write_roster(tmp_path, HEADER + "a,,Helen Marsh,1950-02-03,\nb,,Helen Marsh,1950-02-04,\n")
    identities = [row["identity"] for row in read_patient_roster(path).rows.label_by_key.values()]
    expectations = [ANY_PATIENT, PatientExpectation("several"), *(PatientExpectation("one", row) for row in identities)]
    fingerprints = [compute_fingerprint("0" * 64, Settings(), "r", None, expected) for expected in expectations]
    assert len(set(fingerprints)) == 4
    assert fingerprints[0] == compute_fingerprint("0" * 64, Settings(), "r", None)


def test_run_names_another_patient_and_stores_no_row(samples: Path, tmp_path: Path, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    records, output = tmp_path / "records", tmp_path / "output"
    records.mkdir()
    shutil.copy(samples / "quest_cbc.pdf", records)
    roster = write_roster(tmp_path, HEADER + "quest_cbc,,Zebulon Quagmire,02/28/1904,MRN-55512\nnone,,Ann Quagmire,,\n")
    first = evalkit.run([records], output=output, workers=1, patients_file=roster)
    again = evalkit.run([records], output=output, workers=1, patients_file=roster)
    without_roster = evalkit.run([records], output=tmp_path / "plain", workers=1)
    codes = [issue["code"] for issue in json.loads((output / "results/quest_cbc.json").read_text())["issues"]]
    assert "V2-PATIENT-OTHER" in codes
    assert again.documents[0].resumed
    assert without_roster.documents[0].blocker < first.documents[0].blocker
    assert first.exit_status == 1  # a row that belongs to no document
    stored = b"".join(path.read_bytes() for path in output.rglob("*") if path.is_file())
    shown = f"{caplog.text}{first}{again}"
    for marker in ("Quagmire", "QUAGMIRE", "Zebulon", "1904", "55512"):
        assert marker.encode() not in stored
        assert marker not in shown


def test_command_line_takes_a_roster(samples: Path, tmp_path: Path) -> None:
    roster = write_roster(tmp_path, HEADER + "quest_cbc,,Zebulon Quagmire,tomorrow,\n")
    refused = evalkit_command("run", samples / "quest_cbc.pdf", "--output", tmp_path / "output", "--patients", roster)
    assert refused.returncode == 2
    assert "row 1: its birth_date is not valid" in refused.stderr
    assert "Quagmire" not in refused.stderr


@pytest.mark.parametrize(("several", "is_named"), [(0, False), (1, False), (2, False), (3, True), (10, True)])
def test_summary_names_the_setting_beyond_a_fifth(several: int, is_named: bool) -> None:
    document = DocumentSummary("a", "a.pdf", 1, None, None, None, 0, 0, 0, (), 1, None, 0, False)
    documents = [replace(document, has_unexpected_patients=number < several) for number in range(10)]
    hint = RunSummary(tuple(documents), (), (), "output", 1.0).setting_hint
    assert (hint is not None and 'patients = "several"' in hint) == is_named
