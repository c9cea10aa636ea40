"""Whose page and of when: found as data, compared by one form."""

import time
from itertools import zip_longest

import pytest
from documents.drawing import draw_together, first, lines

from evalkit.documents.bundle import WordPosition
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.documents.identity.person_name import PATTERNS


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
        ("DOB: 02/20/1071", {}),
        ("Patient: Resting Comfortably\nDOB: 03/22/1971", {"date_of_birth": "1971-03-22"}),
        ("Re: Knee Pain\nDOB: 03/22/1971", {"date_of_birth": "1971-03-22"}),
        ("Name: Metoprolol Tartrate\nDOB: 03/22/1971", {"date_of_birth": "1971-03-22"}),
        ("", {}),
    ],
)  # fmt: skip
def test_what_a_strip_says(text: str, found: dict[str, str]) -> None:
    assert of(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "MyHarbor Portal Access\tLog out\n"
            "Welcome, Deborah Quigley\n"
            "Viewing the record of: Tobias Quigley (son)\tDate of birth: 04/19/2014\n"
            "Medical record number: 8812-4401\n"
            "Test results\tMessages\tAppointments\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "QUIGLEY TOBIAS", "mrn": "88124401", "date_of_birth": "2014-04-19"},
        ),
        (
            "SMITH, JOHN A Jr\t11/30/1948 M\n"
            "MRN 00734412\tADM 02/14/2025\n"
            "OPERATIVE NOTE\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "SMITH JOHN", "mrn": "00734412", "date_of_birth": "1948-11-30"},
        ),
        (
            "Millbrook Orthopaedic Group\tBilling statement\n"
            "Guarantor: Raymond Pickering\tGuarantor DOB: 01/05/1961\n"
            "Guarantor account: 55120\n"
            "Patient: Lucy Pickering\tDOB: 08/12/2009\n"
            "Chart no: 227190\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "PICKERING LUCY", "mrn": "227190", "date_of_birth": "2009-08-12"},
        ),
        (
            "ST AIDAN'S INFIRMARY - ADMISSION SHEET\n"
            "NEXT OF KIN\tPATIENT\n"
            "Mrs Moira Kettleby\tMr Alan Kettleby\n"
            "Relationship: wife\n"
            "Tel 01632 960144\tHospital no: K449203\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "KETTLEBY ALAN", "mrn": "K449203"},
        ),
        (
            "Hospital Vall Serena - Informe de alta (translation)\n"
            "Patient: María del Carmen Ibáñez Rueda\n"
            "Date of birth: 03-11-1966\tRecord: HVS-220981\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "RUEDA MARIA", "mrn": "HVS220981", "date_of_birth": "1966-03-11"},
        ),
        (
            "Patient name: Anne-Sophie Delacourt-Mbeki\tD.O.B.: 1979-12-02\n"
            "Unit number: 61-44-09\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "MBEKI ANNE", "mrn": "614409", "date_of_birth": "1979-12-02"},
        ),
        (
            "Pt: HOLLOWAY, GRETA M\tDOS: 05/06/1957\tMRN: 4409213\n"
            "Date of service 02/11/2025\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "HOLLOWAY GRETA", "mrn": "4409213", "date_of_birth": "1957-05-06"},
        ),
        (
            "Lakeview General Hospital\tMRN: LV-330291\n"
            "Transferred from: Cedar Point Hospital, MRN there: CP-88120\n"
            "Patient: Oswald Brandt\tDOB 9/9/1939\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "BRANDT OSWALD", "mrn": "LV330291", "date_of_birth": "1939-09-09"},
        ),
        (
            "CONSENT FOR PROCEDURE\n"
            "I, Yolanda Prewitt, born 03/03/1970, consent to colonoscopy.\n"
            "Witness: Carla Stubbs\tDate: 02/02/2025\n"
            "Interpreter: Samir Haddad\n"
            "The heart is normal in size.",
            {"patient": "PREWITT YOLANDA", "date_of_birth": "1970-03-03"},
        ),
        (
            "Client: Ridgeway Family Practice\tPatient: OKONKWO,CHIDI\tSpecimen: 25-0119-4421\n"
            "Physician: MARLOWE,INGRID\tDOB: 10/25/1988  Sex: M\tCollected: 01/19/2025\n"
            "Acct: 77120\tPatient ID: RFP00912\tReported: 01/20/2025\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "OKONKWO CHIDI", "mrn": "RFP00912", "date_of_birth": "1988-10-25"},
        ),
        (
            "Lindgren, Astrid (MRN 10045528) DOB: 05/17/1990\n"
            "Encounter Date: 03/01/2025\n"
            "Provider: Sauer, Jonas\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "LINDGREN ASTRID", "mrn": "10045528", "date_of_birth": "1990-05-17"},
        ),
        (
            "GENETIC COUNSELING NOTE\n"
            "Patient: Simone Arceneaux  DOB: 01/22/1985\n"
            "Proband: Luc Arceneaux (brother), DOB 04/02/1981, MRN 90021\n"
            "MRN: 4458120\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "ARCENEAUX SIMONE", "mrn": "4458120", "date_of_birth": "1985-01-22"},
        ),
        (
            "EMERGENCY DEPARTMENT\n"
            "Name: UNKNOWN MALE, TRAUMA FOXTROT\tMRN: T-99120\n"
            "Brought in by: Officer Darren Cole\n"
            "\n"
            "The heart is normal in size.",
            {"mrn": "T99120"},
        ),
        (
            "NHI: ZAC5361\tSurname: TE RANGI\tGiven names: Hemi Wiremu\n"
            "DOB: 2 Oct 1971\tGP: Dr L Faleafa\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "TE RANGI HEMI", "date_of_birth": "1971-10-02"},
        ),
        (
            "Student: Jasper Lindholm\tGrade: 4\tDate of birth: 11/11/2015\n"
            "Parent/Guardian: Kirsten Lindholm\tPhone: 555-010-2231\n"
            "The heart is normal in size.",
            {"patient": "LINDHOLM JASPER", "date_of_birth": "2015-11-11"},
        ),
        (
            "The patient tolerated the procedure well.\n"
            "No complications were noted.\n"
            "Discharged home in stable condition.\n"
            "Continue current medications.\n"
            "Call with questions.\n"
            "Return in six weeks.\n"
            "Printed by: Rosalind Beck on 02/03/2025\n"
            "Castellano, Vittorio | 03/19/1947 | 60023817 | Page 3 of 7\n"
            "The heart is normal in size.",
            {"patient": "CASTELLANO VITTORIO", "mrn": "60023817", "date_of_birth": "1947-03-19"},
        ),
        (
            "Ms Geraldine Foxcroft\n"
            "14 Weir Lane\n"
            "Tolbury TB4 2LL\n"
            "Dear Ms Foxcroft,\n"
            "Your son Dominic Foxcroft (date of birth 21/05/2016, hospital number DF20931) was seen in our clinic.\n"
            "The heart is normal in size.",
            {"patient": "FOXCROFT DOMINIC", "mrn": "DF20931", "date_of_birth": "2016-05-21"},
        ),
        (
            "Dept of Pathology\tCase: S25-01921\n"
            "Submitted by: Conrad Ives MD\tPatient: Ives, Marguerite\n"
            "Copy to: Ives, Conrad\tBorn: 12/24/1950 (74) F\n"
            "\n"
            "The heart is normal in size.",
            {"patient": "IVES MARGUERITE", "date_of_birth": "1950-12-24"},
        ),
        (
            "Patient Portal Access\n"
            "Patient: Education Materials\n"
            "Name: Portal Access\n"
            "Patient Rights And Responsibilities\n"
            "The heart is normal in size.",
            {},
        ),
    ],
)
def test_only_the_patients_facts_of_a_page_are_read(text: str, found: dict[str, str]) -> None:
    columns = zip_longest(*(row.split("\t") for row in text.split("\n")), fillvalue="")
    page = first(
        draw_together(*(lines(list(cells), x=48 + 185 * place, size=9) for place, cells in enumerate(columns)))
    )
    kinds = ("patient", "date_of_birth", "mrn")
    assert {fact.kind: fact.normal for fact in page.identifiers if fact.kind in kinds} == found


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
        ("Surname Marsh\tName Helen A\tTitle Mrs", {"patient": "MARSH HELEN"}),
        ("Sname Marsh\nFname Helen\nd.o.b 22/03/1971", {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22"}),
        ("Patient's last name: Marsh   First, middle: Helen   Sex: F", {"patient": "MARSH HELEN", "sex": "F"}),
        ("INSURED'S NAME (Last, First) OTT, UWE\nPATIENT'S NAME (Last, First) MARSH, HELEN", {"patient": "MARSH HELEN"}),
        ("Subject: [SECURE] MARSH, HELEN / 22 MAR 1971\nDOB: 22 MAR 1971", {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22"}),
        ("Surnames Marsh\tNames Helen A\nDOB 03/22/1971", {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22"}),
        (
            "Member name: Uwe Ott\nMember date of birth: 11/02/1968\nPatient: Helen Marsh\nPatient date of birth: 03/22/1971",
            {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22"},
        ),
        ("Client: Birch River Health Centre\nDOB: 03/22/1971", {"date_of_birth": "1971-03-22"}),
        ("Name of physician: Carlos Iturralde\nDOB: 03/22/1971", {"date_of_birth": "1971-03-22"}),
        ("MARSH,HELEN A\n56218457 MAR 22 1971 JAN 18 2023", {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22"}),
        ("Date born: 22 March 1971\nPerson ID: C207497", {"date_of_birth": "1971-03-22", "mrn": "C207497"}),
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
        ("Employee: Other", {}),
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


@pytest.mark.parametrize(("before", "is_contact"), [("Ph 07 ", True), ("Malta +356 ", True), ("MRN 07 ", False)])
def test_telephone_prefixes_are_known(before: str, is_contact: bool) -> None:
    assert (PATTERNS["contact_before_number"].search(before) is not None) is is_contact
