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


BODY = "\n" + "\n".join(["The lungs are clear and the heart is of normal size."] * 13)
HELEN = {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Name/DOB/MRN: MARSH, HELEN A / 03/22/1971 / 4091712", {**HELEN, "mrn": "4091712"}),
        ("MARSH,HELEN A\nMRN:4091712\nDOB:03/22/1971 54 yrs Female", {**HELEN, "mrn": "4091712", "age": "54", "sex": "F"}),
        ("HELEN MARSH / 22-Mar-1971 / F / TM409171\nSeen 05/04/2024", {**HELEN, "mrn": "TM409171"}),
        ("MARSH^HELEN^A\n4091712\n19710322 F 20240504", {**HELEN, "mrn": "4091712"}),
        ("Helen Marsh\nBorn 22 March 1971 (53 years), female", {**HELEN, "age": "53", "sex": "F"}),
        ("PATIENT ............ MARSH,HELEN A\nBORN ............... 22 MAR 1971", HELEN),
        ("Surname: Marsh\nGiven name(s): Helen\nDate of birth: 22/03/1971 Sex: [ ] M [x] F [ ] I", {**HELEN, "sex": "F"}),
        ("Surname: Marsh\nForename: Helen\nDate of birth: 22/03/1971 Sex: M [x] F [ ]", {**HELEN, "sex": "M"}),
        ("It was a pleasure to meet Mrs. Imogen Wong today.", {"patient": "WONG IMOGEN"}),
        ("Page 1 of 3 of the record of Helen Marsh (born 22 March 1971, number 4055132)", {**HELEN, "mrn": "4055132"}),
    ],
)  # fmt: skip
def test_identity_that_no_single_label_names(text: str, expected: dict[str, str]) -> None:
    assert of(text + BODY) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Patient: Marsh, Helen\nHer son Tom Grant, DOB: 02/02/2010, Sex: M (MRN: 50017222)", {"patient": "MARSH HELEN"}),
        ("Maternal Name: Anna Weber  Maternal DOB: 05/05/1994  Maternal MRN: 334455", {}),
        ("Health care agent: Lisa Roe DOB 04/04/1980", {}),
        ("SPOUSE/PARTNER NAME\nKarl Marsh\nMRN 4091712", {"mrn": "4091712"}),
        ("Patient: Marsh, Helen\nGender: Male / Female / Other", {"patient": "MARSH HELEN"}),
        ("Springfield, Illinois\nTel 217-555-0100", {}),
        ("New Haven, Connecticut 06510", {}),
        ("Priory Way, Aldhelm BA9 4ZQ Tel 01632 960 411", {}),
        ("Metformin, Glipizide\nLisinopril", {}),
        ("Hepatitis B 01/02/2020\nB: 12/12/2020 booster", {}),
        ("Clinic number: 0113 555 0123\nHospital no. 12 of 30 beds", {}),
        ("First: Shingrix\nLast: Fluzone", {}),
        ("Patient: Stable Condition", {}),
    ],
)  # fmt: skip
def test_nobody_else_is_taken_for_the_patient(text: str, expected: dict[str, str]) -> None:
    assert of(text + BODY) == expected


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("Board No. C2105112", "C2105112"),
        ("Clin. history: NHC-306123", "NHC306123"),
        ("Dossier TM/40/917122", "TM40917122"),
        ("Surgery ID 898514", "898514"),
        ("RHRN 78302508", "78302508"),
        ("Casebook # 366-22-58", "3662258"),
        ("Folio number\n4091712", None),
        ("Marsh, Helen A  03/22/1971  TM40917122  1 of 3", "TM40917122"),
        ("Payroll no. E487011", None),
        ("Dr Carys Low (no. 6919312)", None),
        ("Aetna ID 3459871", None),
        ("Her son's file number 3459871", None),
        ("Filed under no. 22/03/1971", None),
        ("Lab ref S24-45663", None),
    ],
)
def test_labels_of_any_spelling_name_a_number(line: str, number: str | None) -> None:
    assert of(f"Patient: Marsh, Helen A\nDOB: 03/22/1971\n{line}{BODY}").get("mrn") == number


def test_a_number_with_a_sign_in_each_box_is_read() -> None:
    assert of("Patient: Helen Marsh\nMRN: V M H / 5 7 / 4 9 4 3 7 9 07-Apr-1995")["mrn"] == "VMH57494379"


def test_a_date_behind_a_star_is_a_birth_date() -> None:
    assert of("Marsh, Helen, *22.03.1971, letter of 07.09.2022 Page 2/3" + BODY) == HELEN


@pytest.mark.parametrize(
    ("head", "issuer"),
    [
        ("Ysgol Glan Ceirw\nHeol y Bont, Ceirw LL99 9ZZ - 01632 960 118", "Ysgol Glan Ceirw"),
        ("Harbor Imaging\nDiagnostic Radiology", "Harbor Imaging"),
        ("Anatomic Pathology\nNo acute cardiopulmonary pathology", None),
        ("Lakeside Hospital 22B Strand Road", "Lakeside Hospital"),
        ("Medicare Hospital Plan", None),
    ],
)
def test_a_letterhead_names_the_issuer(head: str, issuer: str | None) -> None:
    identifiers = find_patient_identifiers(f"{head}\nPatient: Helen Marsh\nMRN: 4091712{BODY}", ())
    assert [found.issuer for found in identifiers if found.kind == "mrn"] == [issuer]


@pytest.mark.parametrize(
    "text",
    [
        "77 Confluence Way, Three Forks DOB: 03/22/1971",
        "The chart of Lockyer Plains Hospital, DOB: 03/22/1971",
        "900 Elm Blvd, Suite 120 DOB: 03/22/1971",
    ],
)
def test_places_beside_a_birth_date_are_nobody(text: str) -> None:
    assert "patient" not in of(text + BODY)


def test_who_signs_a_letter_is_not_its_patient() -> None:
    assert of(BODY + "\nYours sincerely\nMr Paul Kerr\nConsultant Surgeon") == {}


def test_columns_of_headings_part_the_persons() -> None:
    rows = [
        ("GUARANTOR", "PATIENT"),
        ("Name: Grant, Karl", "Name: Marsh, Helen"),
        ("DOB: 02/14/1950", "DOB: 03/22/1971"),
    ]
    text, words = "", []
    for line, cells in enumerate(rows):
        for left, cell in zip((1000, 6000), cells, strict=True):
            for word in cell.split():
                words.append(
                    (len(text), len(text) + len(word), left, 500 + line * 200, left + 100 * len(word), 600 + line * 200)
                )
                text += f"{word} "
                left += 100 * len(word) + 60  # noqa: PLW2901 - the next word of the cell
        text = f"{text[:-1]}\n"
    assert {found.kind: found.normal for found in find_patient_identifiers(text, words)} == HELEN


def test_a_nations_number_stands_beside_the_institutions() -> None:
    text = "Lakeside Hospital\nPatient Name: Helen Marsh\nHospital No: 409171 NHS No: 943 476 5919"
    numbers = [(found.normal, found.issuer) for found in find_patient_identifiers(text, ()) if found.kind == "mrn"]
    assert numbers == [("409171", "Lakeside Hospital"), ("9434765919", "NHS")]


@pytest.mark.parametrize(
    "text",
    [
        "DOB: ",
        "MRN\n",
        "Guarantor\tPatient\n",
        "Mr. Ann Grant ",
        "DOB: 01/02/1990 AbAbAbAb",
        "Pt: Al Roe DOB: 1/2/1990 No. 12345\n",
    ],
)
def test_pages_of_nothing_but_labels_take_no_time(text: str) -> None:
    page = text * (20_000 // len(text))
    words = [(start, start + 1, 1000, start % 9000, 1100, start % 9000 + 90) for start in range(0, len(page) - 1, 4)]
    began = time.process_time()
    find_patient_identifiers(page, words)
    assert time.process_time() - began < 5
