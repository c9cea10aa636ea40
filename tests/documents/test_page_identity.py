"""Whose page and of when: found as data, compared by one form."""

import time

import pytest

from evalkit.documents.bundle import WordPosition
from evalkit.documents.identity.page_identity import find_patient_identifiers


def of(text: str) -> dict[str, str]:
    return {one.kind: one.normal for one in find_patient_identifiers(text, ())}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Patient: Helen Marsh DOB: 03/22/1971\nMRN: TM-40917 Date: 02/06/2025",
            {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22", "mrn": "TM40917", "report_date": "2025-02-06"},
        ),
        ("Patient:\tMARSH, HELEN A.\tDOB:\t22-Mar-1971", {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22"}),
        ("Marsh, Helen     MRN TM-40917\nVariant analysis", {"patient": "MARSH HELEN", "mrn": "TM40917"}),
        ("Name: Ms. Helen Marsh\nDate of birth\nMarch 22, 1971", {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22"}),
        ("Date: 01/02/2025\nCollected 01/03/2025\nDate reported: 01/05/2025", {"report_date": "2025-01-05"}),
        ("Medical Record Number: 0012345", {"mrn": "0012345"}),
        ("D.O.B. 1985-03-15", {"date_of_birth": "1985-03-15"}),
        ("The patient was seen. Her name is known.", {}),
        ("Patient: see below\nDOB: unknown", {}),
        ("Brookfield, WI 53005\nTelephone 555-0100", {}),
        ("Patient: Evergreen Mutual Insurance Company", {}),
        ("DOB: 02/30/1971", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_what_a_strip_says(text: str, found: dict[str, str]) -> None:
    assert of(text) == found


def test_one_patient_is_one_form_however_the_page_writes_it() -> None:
    ways = ("Patient: Helen Marsh", "PATIENT NAME: MARSH, HELEN", "Name: Helen A. Marsh", "Marsh, Helen")
    assert {of(way)["patient"] for way in ways} == {"MARSH HELEN"}


def test_first_identifier_wins_and_box_covers_label_and_value() -> None:
    text = "MRN: 111222 and MRN: 333444"
    words: list[WordPosition] = [
        (0, 4, 1000, 500, 1400, 600),
        (5, 11, 1500, 500, 2200, 600),
        (16, 20, 4000, 500, 4400, 600),
    ]
    (one,) = find_patient_identifiers(text, words)
    assert (one.value, one.box) == ("111222", (0.1, 0.05, 0.22, 0.06))


def test_a_strip_at_the_foot_of_a_long_page_is_found() -> None:
    assert of("word " * 1000 + "\nMRN 5550123") == {"mrn": "5550123"}


def test_empty_cells_take_no_time() -> None:
    began = time.process_time()
    find_patient_identifiers("name" + "\t" * 1190, ())
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Patient Name: Lucas Little\nGuarantor: Dana Little DOB: 02/08/1969", {"patient": "LITTLE LUCAS"}),
        ("Mother's name: Helen Marsh\nMother's DOB: 03/22/1971", {}),
        ("Referring Provider: Dr. Uwe Ott\nPatient: Helen Marsh", {"patient": "MARSH HELEN"}),
        ("Marsh, Helen A  DOB 03/22/1971  54Y F", {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22", "age": "54", "sex": "F"}),
        ("RE: Helen Marsh\nDOB: 22 March 1971", {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22"}),
        ("Last name: Marsh\nFirst name: Helen", {"patient": "MARSH HELEN"}),
        (
            "I saw Mrs. Helen Marsh, a 54-year-old woman born 22 March 1971, today.",
            {"patient": "MARSH HELEN", "sex": "F", "date_of_birth": "1971-03-22"},
        ),
        ("Medications\n- Name: Ibuprofen\n- Dosage: 400 mg", {}),
        ("Patient Name ____________ Date of Birth ________", {}),
        ("Account #: 7141020614 Visit ID: V9050 Accession: S25-83186", {"account": "7141020614", "visit": "V9050", "accession": "S2583186"}),
    ],
)  # fmt: skip
def test_whose_name_it_is_depends_on_its_label(text: str, expected: dict[str, str]) -> None:
    assert of(text) == expected


def test_misread_labels_and_digits_of_scans_are_read() -> None:
    text = "Patient: Marsh, Helen DO8: 0S/22/1971"
    words: list[WordPosition] = []
    position = 0
    for word in text.split():
        words.append((position, position + len(word), position * 100, 500, (position + len(word)) * 100, 600))
        position += len(word) + 1
    identifiers = {
        identifier.kind: identifier for identifier in find_patient_identifiers(text, words, [96, 97, 95, 80, 61])
    }
    assert (identifiers["date_of_birth"].normal, identifiers["date_of_birth"].confidence) == ("1971-05-22", 0.61)
    assert identifiers["patient"].value == "Marsh, Helen"
