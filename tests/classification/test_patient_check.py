"""V2's verdicts on whose pages these are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from builders import RADIOLOGY, answer, compose_single_type, document, page, parse_answer, segment

from evalkit.classification.patient_check import ANY_PATIENT, PatientExpectation, find_patient_issues
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.documents.bundle import DocumentBundle, Identifier, IdentifierKind, PageStatus
from evalkit.documents.identity.identifier_values import normalise_identifier
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.issue import Issue

LETTERHEAD = "Pine Hill Hospital\nRADIOLOGY REPORT"
ANNA = f"{LETTERHEAD}\nPatient: Anna Kowalski DOB: 03/14/1951 MRN: 4471920"
ANNA_ELSEWHERE = "Lakeside Clinic\nRADIOLOGY REPORT\nPatient: KOWALSKI, ANNA M. DOB: 14 March 1951 MRN: LC-99310"
MARTIN = f"{LETTERHEAD}\nPatient: Martin Delacroix DOB: 11/02/1978 MRN: 9930157"
NAMESAKE = f"{LETTERHEAD}\nPatient: Anna Kowalski DOB: 08/30/1983 MRN: 9930157"
BABY = f"{LETTERHEAD}\nPatient: Baby Boy Kowalski DOB: 02/11/2026 MRN: 5550019"
MISSPELT = f"{LETTERHEAD}\nPatient: Anna Kowalsky DOB: 03/14/1951"
MARTIN_BY_NAME = f"{LETTERHEAD}\nPatient: Martin Delacroix"
ANNA_BORN_LATER = f"{LETTERHEAD}\nPatient: Anna Kowalski DOB: 08/30/1983"
STORY = "The heart is normal in size. No pleural effusion."
SCHEDULE = "\n".join(
    f"{8 + row}:00 {name}  03/0{row + 1}/1961  follow-up"
    for row, name in enumerate(["Marsh, Helen", "Ott, Uwe", "Doe, Jane"])
)


def build_bundle(*texts: str) -> DocumentBundle:
    pages = [
        page(number, text).model_copy(update={"identifiers": find_patient_identifiers(text, ())})
        for number, text in enumerate(texts, 1)
    ]
    return document(*pages)


def check(
    texts: Sequence[str], ranges: Sequence[tuple[int, int]], expectation: PatientExpectation | None = None
) -> list[Issue]:
    segments = [
        segment(index, start, end, RADIOLOGY, compose_single_type(RADIOLOGY))
        for index, (start, end) in enumerate(ranges, 1)
    ]
    classification = parse_answer(answer(*segments, overall=RADIOLOGY, shares={RADIOLOGY: 1.0}))
    checker = V2ConsistencyChecker(expectation) if expectation else V2ConsistencyChecker()
    return [issue for issue in checker.validate(classification, build_bundle(*texts)) if "PATIENT" in issue.code]


@pytest.mark.parametrize(
    ("texts", "ranges", "expected"),
    [
        ([ANNA, STORY, ANNA], [(1, 3)], []),
        ([ANNA, ANNA_ELSEWHERE], [(1, 1), (2, 2)], []),
        ([ANNA, MISSPELT], [(1, 2)], []),
        ([STORY, STORY], [(1, 2)], []),
        ([ANNA, SCHEDULE], [(1, 1), (2, 2)], []),
        ([ANNA, MARTIN], [(1, 2)], [("V2-PATIENT-MIXED", "BLOCKER", 2)]),
        ([ANNA, NAMESAKE], [(1, 2)], [("V2-PATIENT-MIXED", "BLOCKER", 2)]),
        ([ANNA, BABY], [(1, 2)], [("V2-PATIENT-MIXED", "MAJOR", 2)]),
        ([ANNA, ANNA, MARTIN, ANNA], [(1, 4)], [("V2-PATIENT-MIXED", "BLOCKER", 3)]),
        ([ANNA, MARTIN], [(1, 1), (2, 2)], [("V2-PATIENT-SEVERAL", "MAJOR", 2)]),
        ([ANNA, MARTIN_BY_NAME, ANNA], [(1, 3)], [("V2-PATIENT-MIXED", "MAJOR", 2)]),
        ([MARTIN_BY_NAME, f"{LETTERHEAD}\nPatient: KOWALSKI ANNA M"], [(1, 2)], [("V2-PATIENT-MIXED", "MAJOR", 2)]),
        ([ANNA, MARTIN_BY_NAME, MARTIN_BY_NAME], [(1, 1), (2, 3)], [("V2-PATIENT-SEVERAL", "MAJOR", 2)]),
        (
            [ANNA, "Lakeside Clinic\nPatient: Martin Delacroix\nMRN: LC-99310"],
            [(1, 2)],
            [("V2-PATIENT-MIXED", "MAJOR", 2)],
        ),
        # a number alone shows nobody, and a file's number belongs to the nearest person
        (
            [ANNA, f"{LETTERHEAD}\nAccession: S25-10442", MARTIN, MARTIN],
            [(1, 1), (2, 4)],
            [("V2-PATIENT-SEVERAL", "MAJOR", 3)],
        ),
        (
            [ANNA, MARTIN.replace("9930157", "4471920"), f"{STORY}\nMRN: 4471920"],
            [(1, 1), (2, 3)],
            [("V2-PATIENT-SEVERAL", "MAJOR", 2)],
        ),
        ([f"{ANNA}\nAccession: S25-10442", f"{MARTIN_BY_NAME}\nAccession: S25-10442"], [(1, 2)], []),
        ([MARTIN, f"{LETTERHEAD}\nPatient: Anna Delacroix"], [(1, 2)], []),
        ([ANNA, f"{LETTERHEAD}\nPatient: Anne Delacroix"], [(1, 2)], []),
        ([ANNA, ANNA_BORN_LATER], [(1, 1), (2, 2)], [("V2-PATIENT-SEVERAL", "MAJOR", 2)]),
        ([ANNA, ANNA_BORN_LATER, ANNA], [(1, 3)], [("V2-PATIENT-MIXED", "MAJOR", 2)]),
        ([ANNA, f"{LETTERHEAD}\nDOB: 08/30/1983"], [(1, 1), (2, 2)], [("V2-PATIENT-SEVERAL", "MAJOR", 2)]),
        (
            [f"{LETTERHEAD}\nDOB: 03/14/1951 MRN: 4471920", "Lakeside Clinic\nDOB: 08/30/1983 MRN: LC-99310"],
            [(1, 2)],
            [("V2-PATIENT-MIXED", "MAJOR", 2)],
        ),
        ([ANNA, f"{LETTERHEAD}\nDOB: 03/14/1957"], [(1, 2)], []),
        ([ANNA, f"{ANNA_BORN_LATER} MRN: 4471920"], [(1, 2)], []),
        ([ANNA, f"{LETTERHEAD}\nPatient: Anna Kowalski DOB: 03/14/1957"], [(1, 2)], []),
        ([ANNA, f"{LETTERHEAD}\nPatient: Delacroix, M."], [(1, 2)], []),
        ([ANNA, f"{LETTERHEAD}\nName: Baby Boy\nSex: M"], [(1, 2)], []),
        ([ANNA, "Martin Delacroix is a 61-year-old man with a cough."], [(1, 2)], []),
        (
            [f"{ANNA}\nPage 1 of 2", f"{MARTIN}\nFINDINGS (continued)\nPage 2 of 2"],
            [(1, 1), (2, 2)],
            [("V2-PATIENT-MIXED", "BLOCKER", 2)],
        ),
        (
            [f"{ANNA}\nElectronically signed by: R. Example MD", f"FINDINGS (continued): clear.\n{MARTIN}"],
            [(1, 1), (2, 2)],
            [("V2-PATIENT-MIXED", "BLOCKER", 2)],
        ),
    ],
)
def test_patients_are_told_apart(
    texts: list[str], ranges: list[tuple[int, int]], expected: list[tuple[str, str, int]]
) -> None:
    assert [(issue.code, issue.severity, issue.page) for issue in check(texts, ranges)] == expected


@pytest.mark.parametrize(
    ("text", "confidence", "code_count"),
    [
        (MARTIN_BY_NAME, 0.95, 1),
        (f"{LETTERHEAD}\nPatient: Amna Kowalskl", 0.95, 0),
        (f"{LETTERHEAD}\nPatient: Arn Kowa1ski", 0.95, 0),
        (ANNA_BORN_LATER, 0.95, 1),
        (ANNA_BORN_LATER, 0.5, 0),
    ],
)
def test_recognised_facts_differ_unless_misread(text: str, confidence: float, code_count: int) -> None:
    pages = tuple(
        page.model_copy(
            update={
                "status": PageStatus.OCR,
                "identifiers": tuple(
                    fact.model_copy(update={"confidence": confidence})
                    for fact in page.identifiers
                    if fact.kind != "mrn"
                ),
            }
        )
        for page in build_bundle(ANNA, text).pages
    )
    classification = parse_answer(
        answer(segment(1, 1, 2, RADIOLOGY, compose_single_type(RADIOLOGY)), overall=RADIOLOGY, shares={RADIOLOGY: 1.0})
    )
    issues = find_patient_issues(classification, document(*pages), ANY_PATIENT)
    assert [issue.code for issue in issues] == ["V2-PATIENT-MIXED"] * code_count


def test_several_patients_may_be_expected() -> None:
    (issue,) = check([ANNA, MARTIN], [(1, 1), (2, 2)], PatientExpectation(patients_per_file="several"))
    assert (issue.code, issue.severity) == ("V2-PATIENT-SEVERAL", "MINOR")


def test_a_file_of_many_patients_is_one_question() -> None:
    assert len(check([ANNA, MARTIN, NAMESAKE], [(page, page) for page in range(1, 4)])) == 1


def build_roster(name: str, birth_date: str) -> PatientExpectation:
    values: dict[IdentifierKind, str] = {"patient": name, "date_of_birth": birth_date}
    return PatientExpectation(
        roster_identity=tuple(
            Identifier(kind=kind, value=value, normal=normalise_identifier(kind, value) or "", box=(0, 0, 0, 0))
            for kind, value in values.items()
        )
    )


def test_pages_of_somebody_else_than_the_roster_names() -> None:
    assert check([ANNA, STORY], [(1, 2)], build_roster("Kowalski, Anna", "1951-03-14")) == []
    (issue,) = check([MARTIN, STORY], [(1, 2)], build_roster("Kowalski, Anna", "1951-03-14"))
    assert (issue.code, issue.severity, issue.page) == ("V2-PATIENT-OTHER", "BLOCKER", 1)
    for text in (MARTIN_BY_NAME, ANNA_BORN_LATER):
        (issue,) = check([text], [(1, 1)], build_roster("Kowalski, Anna", "1951-03-14"))
        assert (issue.code, issue.severity, issue.page) == ("V2-PATIENT-OTHER", "MAJOR", 1)
    assert (
        check([f"{LETTERHEAD}\nPatient: Anna Delacroix"], [(1, 1)], build_roster("Kowalski, Anna", "1951-03-14")) == []
    )


def test_no_issue_repeats_a_name_a_date_or_a_number() -> None:
    issues = check([ANNA, MARTIN, ANNA, BABY], [(1, 3), (4, 4)], build_roster("Ott, Uwe", "1990-01-01"))
    words = " ".join(issue.model_dump_json() for issue in issues).casefold()
    assert issues
    for secret in ("kowalski", "anna", "martin", "delacroix", "ott", "1951", "1978", "4471920", "9930157"):
        assert secret not in words
