"""Where documents begin, by what the classifier does not read."""

from __future__ import annotations

import time

import pytest
from builders import GENOMIC, NOTE, OTHER, RADIOLOGY, answer, compose_single_type, document, page, parse_answer, segment
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.offline.second_opinion_boundaries import (
    BEGINNING_THRESHOLD,
    BOUNDARY_DOUBT_CODE,
    CONTINUATION_THRESHOLD,
    collect_boundary_signs,
    find_boundary_issues,
)
from evalkit.classification.schema import DocumentType
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.documents.bundle import Page
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.issue import Issue

STORY = (
    "The patient reports pain and denies fever. Blood pressure 128/76. We discussed the plan with her. "
    "She takes tamoxifen 20 mg daily. She will return in two weeks."
)
PICTURES = (
    "CT without contrast, axial images. Liver is unremarkable. No acute fracture. There is a hypoechoic area. "
    "The lungs are clear. FDG 12 mCi uptake."
)
RESULTS = "WBC 8.2 4.0 - 11.0\nHemoglobin 13.4 12.0 - 16.0\nPlatelets 240 150 - 400\nGlucose 99 70 - 100"


def sheet(number: int, text: str, furniture: tuple[str, ...] = ()) -> Page:
    return page(number, text, furniture=furniture).model_copy(
        update={"identifiers": find_patient_identifiers(text, ())}
    )


def score(*texts: str, contained: frozenset[DocumentType] = frozenset(), total: int = 9) -> float:
    """How much speaks for a beginning on the last of these pages."""
    pages = [sheet(number, text) for number, text in enumerate(texts, 1)]
    return sum(sign.weight for sign in collect_boundary_signs(pages[:-1], pages[-1], total, contained))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{STORY}\nPage 2 of 2", f"{STORY}\nPage 1 of 3"),
        (f"{STORY}\nSigned by Dr. Lee\nPage 2 of 2", STORY),
        (f"MRN: 1234567\n{STORY}", f"MRN: 7654321\n{STORY}"),
        (STORY, f"Pine Hill Hospital\n12 Elm Street Tel (555) 555-0100\nDate of service: 02/03/2024\n{STORY}"),
        (f"{STORY}\nElectronically signed by Dr. Lee", f"RADIOLOGY REPORT\n{STORY}"),
        (STORY, f"DISCHARGE SUMMARY\nDate of admission: 01/02/2024\n{STORY}"),
        (PICTURES, STORY),
        (f"{STORY}\nSincerely,\nDr. Lee", f"Dear Dr. Roth,\nPROGRESS NOTE\n{STORY}"),
    ],
)
def test_a_document_begins(before: str, after: str) -> None:
    assert score(before, after) >= BEGINNING_THRESHOLD


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (STORY, STORY),
        (STORY, RESULTS),  # results and reports are copied into notes
        (STORY, PICTURES),
        (f"{STORY}\nPage 1 of 3", f"{STORY}\nPage 2 of 3"),
        (f"MRN: 1234567\n{STORY}", f"MRN: 1234567\n{STORY}"),
        (f"MRN: 1234567\nstamp 7654321\n{STORY}", f"MRN: 7654321\n{STORY}"),
        (f"Pine Hill Hospital, Tel (555) 555-0100\n{STORY}", f"Pine Hill Hospital, Tel (555) 555-0100\n{STORY}"),
        (
            f"{STORY}\nSomatic Tumor Diagnostics, Medical Report Page 8 of 8",
            f"{STORY}\nSupplement Somatic Tumor Diagnostics, Medical Report Page 1 of 4",
        ),
        (STORY, "\n".join([STORY] * 6) + "\nsee page 1 of 4 of the guideline\n" + "\n".join([STORY] * 9)),
    ],
)
def test_a_document_goes_on(before: str, after: str) -> None:
    assert score(before, after) < BEGINNING_THRESHOLD


def test_the_packets_own_count_tells_nothing() -> None:
    assert score(f"{STORY}\nPage 1 of 9", f"{STORY}\nPage 2 of 9", total=9) == 0
    assert score(f"{STORY}\nPage 1 of 3", f"{STORY}\nPage 2 of 3", total=9) <= CONTINUATION_THRESHOLD


def test_pages_of_a_type_that_the_document_contains_are_no_turn() -> None:
    assert score(STORY, PICTURES, contained=frozenset({DocumentType.RADIOLOGY_REPORT})) == 0


SUGARS = (
    "Results of the week are below.\nGlucose was high in the morning.\nIt was lower in the evening.\n"
    "Ketones were absent on each day.\nThe sensor was changed twice.\nNobody was called about it.\n"
    "Insulin was drawn up by the nurse.\nMeals were taken in the ward."
)
SALTS = (
    "Sodium was low on arrival.\nIt rose within the day.\nPotassium was within its range.\nChloride followed the sodium.\n"
    "Urea was a little high.\nUrine was sent twice.\nFluids were given by drip.\nIntake was written down."
)
FILMS = "The lungs are clear.\nNo acute fracture is seen on the axial images."


def weigh(subject: str, *texts: str) -> float:
    """The weight of the signs about a subject on the last of these pages."""
    pages = [sheet(number, text) for number, text in enumerate(texts, 1)]
    return sum(sign.weight for sign in collect_boundary_signs(pages[:-1], pages[-1], 9) if subject in sign.description)


@pytest.mark.parametrize(
    ("counts", "weight"),
    [
        (("Page 1 of 2", "Page 2 of 2"), 3),
        (("", "Page 2 of 2"), 2),
        (("Page 1 of 1",), 2),
        (("Page 1 of 3", "Page 2 of 3"), 0),
    ],
)
def test_a_document_ends_with_its_last_counted_page(counts: tuple[str, ...], weight: float) -> None:
    assert weigh("comes after page", *(f"{SUGARS}\n{count}" for count in counts), SALTS) == weight


@pytest.mark.parametrize(
    ("last_line", "weight"),
    [
        ("E. Roth-Obi CPNP", 1),
        ("V. Grieve MD, 4/11/2024 1512", 1),
        ("Dr. P. Danvers, FRCP", 1),
        ("She was seen with E. Roth MD", 0),
        ("REFERRAL TO CARDIOLOGY", 0),
    ],
)
def test_a_name_with_a_degree_is_a_signature(last_line: str, weight: float) -> None:
    assert weigh("signature", f"{SUGARS}\n{last_line}", SALTS) == weight


@pytest.mark.parametrize(
    ("before", "after", "weight"),
    [
        ("Accession: S24-1111", "Accession: S24-2222", 3),
        ("Accession: S24-1111", "Accession: S24-1111", -2),
        ("no number here", "Accession: S24-2222", 0),
        ("Accession: S24-1111", "no number here", 0),
        # A report of two specimens names both, and each of its pages is headed by the specimen that it describes.
        ("Accession: S24-1111\nAccession: S24-2222", "Accession: S24-2222", 0),
        ("Accession: S24-1111", "Accession: NM_007294.4", 0),
        ("Accession: NM_000059.3", "Accession: ENST00000380152", 0),
    ],
)
def test_another_accession_number_begins_a_document(before: str, after: str, weight: float) -> None:
    assert weigh("accession number", f"{before}\n{SUGARS}", f"{after}\n{SALTS}") == weight
    assert weigh("accession number", f"{before}\n{SUGARS}", SALTS, f"{after}\n{SUGARS}") == weight


@pytest.mark.parametrize(
    ("before", "after", "weight"),
    [
        (f"03/04/2024\n{SUGARS}", f"05/06/2024\n{SALTS}", 1),
        (f"Pine Hill Clinic\n03/04/2024\n{SUGARS}", f"Pine Hill Clinic\n05/06/2024\n{SALTS}", 2),
        (f"03/04/2024\n{SUGARS}", f"PROGRESS NOTE\n05/06/2024\n{SALTS}", 2),
        (f"Date of service: 03/04/2024\n{SUGARS}", f"Date of service: 05/06/2024\n{SALTS}", 2),
        (f"March 4, 2024\n{SUGARS}", f"03/04/2024\n{SALTS}", -1),
        (f"03/04/2024\n{SUGARS}", f"{SALTS}\n05/06/2024", 0),
        (f"03/04/2024\n{SUGARS}", f"05/06/2024\n{SALTS}\nCompared with 03/04/2024.", 0),
        (f"03/04/2024\n{SUGARS}\nAgain on 05/06/2024.", f"05/06/2024\n{SALTS}", 0),
        (f"DOB: 03/04/1984 Seen: 01/02/2024\n{SUGARS}", f"DOB: 03/04/1984 Seen: 05/06/2024\n{SALTS}", 1),
        (f"The first twin was born 03/04/2024.\n{SUGARS}", f"The second twin was born 03/05/2024.\n{SALTS}", 0),
    ],
    ids=[
        "bare",
        "letterhead",
        "title",
        "labelled",
        "same",
        "below the head",
        "refers back",
        "announced",
        "beside a birth date",
        "of birth",
    ],
)
def test_another_date_at_the_head_speaks_for_a_beginning(before: str, after: str, weight: float) -> None:
    assert weigh("date", before, after) == weight


def list_under(*headings: str) -> str:
    return "\n".join([*SUGARS.split("\n")[:4], *(f"{heading}: as was written there" for heading in headings)])


@pytest.mark.parametrize(
    ("texts", "weight"),
    [
        ((("Mood", "Sleep", "Appetite"), ("Mood", "Sleep", "Appetite")), 2),
        ((("Mood", "Sleep", "Appetite"), ("Mood", "Sleep", "Gait")), 1),
        ((("Mood", "Sleep", "Appetite"), ("Mood", "Reflexes", "Gait")), 0),
        ((("Mood", "Sleep", "Appetite"), ("Gait",), ("Mood", "Sleep", "Appetite")), 2),
        ((("Mood", "Sleep", "Appetite"),) * 3, 0),  # on every page: the labels of a form
        ((("Mood", "Mood", "Sleep", "Sleep"), ("Mood", "Mood", "Sleep", "Sleep")), 0),  # labels of rows
    ],
)
def test_repeated_headings_speak_for_a_beginning(texts: tuple[tuple[str, ...], ...], weight: float) -> None:
    assert weigh("headings", *(list_under(*headings) for headings in texts)) == weight


@pytest.mark.parametrize(
    ("before", "after", "weight"),
    [
        (f"{FILMS}\nIMPRESSION: Clear lungs.\nSee above.", f"{FILMS}\nIMPRESSION: A small nodule.\nSee above.", 2),
        (f"{FILMS}\nIMPRESSION: Clear lungs.\nSee above.", f"{FILMS}\nOpinion: A small nodule.\nSee above.", 0),
        (FILMS, f"{FILMS}\nIMPRESSION: A small nodule.\nSee above.", 0),
        (f"{FILMS}\nThe impression was that of a fall.", f"{FILMS}\nHer impression is the same.", 0),
        # A note plans for each problem, and again on the next day.
        (f"{STORY}\nPlan: rest and fluids.\nShe agrees.", f"{STORY}\nPlan: physiotherapy.\nShe agrees.", 1),
    ],
    ids=["again", "another kind", "the first", "in a sentence", "in a note"],
)
def test_a_second_conclusion_speaks_for_a_beginning(before: str, after: str, weight: float) -> None:
    assert weigh("second conclusion", before, after) == weight


def test_a_heading_after_a_conclusion_speaks_for_a_beginning() -> None:
    assert weigh("after a conclusion", f"{FILMS}\nIMPRESSION: Clear lungs.", f"Knee Left Side\n{FILMS}") == 1
    assert weigh("after a conclusion", f"{FILMS}\nIMPRESSION: Clear lungs.", f"and the pleura is thin.\n{FILMS}") == 0
    assert weigh("after a conclusion", FILMS, f"Knee Left Side\n{FILMS}") == 0


def issues_of_split(start_of_second: int, *texts: str, kinds: tuple[str, str] = (NOTE, RADIOLOGY)) -> list[Issue]:
    """What is said of two segments, the second of which begins on that page."""
    bundle = document(*(sheet(number, text) for number, text in enumerate(texts, 1)))
    cut = [segment(1, 1, start_of_second - 1, kinds[0], compose_single_type(kinds[0]))]
    cut.append(segment(2, start_of_second, len(texts), kinds[1], compose_single_type(kinds[1])))
    value = answer(*cut, overall=kinds[0], shares={kinds[0]: 0.5, kinds[1]: 0.5})
    return list(find_boundary_issues(parse_answer(value), bundle))


def test_misplaced_boundary_is_found_with_its_page() -> None:
    texts = (STORY, STORY, f"DIAGNOSTIC IMAGING REPORT\n{PICTURES}", PICTURES)
    assert issues_of_split(3, *texts) == []
    (late,) = issues_of_split(4, *texts)
    assert (late.page, late.segment_index, late.severity) == (3, 1, "MAJOR")
    assert late.quote in texts[2]
    (early,) = issues_of_split(2, *texts)
    assert (early.page, early.segment_index) == (3, 2)


def test_a_segment_that_begins_in_mid_document_is_found() -> None:
    texts = (f"{STORY}\nPage 1 of 3", f"{STORY}\nPage 2 of 3", f"{STORY}\nPage 3 of 3", RESULTS)
    said = issues_of_split(3, *texts, kinds=(NOTE, OTHER))
    assert any("middle of a document" in one.message and one.page == 3 for one in said)


@pytest.mark.parametrize("kind", [NOTE, RADIOLOGY, OTHER])
def test_split_of_one_type_needs_a_sign_of_a_beginning(kind: str) -> None:
    """Ruling 21: between two types it is enough that nothing shows that the document goes on."""
    (unsupported,) = issues_of_split(2, SUGARS, SALTS, kinds=(kind, kind))
    assert (unsupported.code, unsupported.severity) == (BOUNDARY_DOUBT_CODE, "MAJOR")
    assert (unsupported.page, unsupported.segment_index) == (2, 2)
    assert "no sign that a document begins" in unsupported.message
    assert unsupported.quote in SALTS
    assert issues_of_split(2, SUGARS, f"PROGRESS NOTE\n{SALTS}", kinds=(kind, kind)) == []
    assert issues_of_split(2, SUGARS, SALTS, kinds=(kind, GENOMIC)) == []


def test_a_boundary_of_which_the_classifier_doubts_is_raised_once() -> None:
    bundle = document(SUGARS, SALTS)
    parts = [segment(number, number, number, OTHER, compose_single_type(OTHER)) for number in (1, 2)]
    value = answer(*parts, overall=OTHER, shares={OTHER: 1.0})
    doubted = value | {"self_evaluation": {"doubtful_joins": [{"page": 2, "begins": 0.5}]}}
    for stated, message in ((value, "no sign that a document begins"), (doubted, "classifier itself is unsure")):
        issues = V2ConsistencyChecker().validate(parse_answer(stated), bundle)
        (issue,) = (issue for issue in issues if issue.code == BOUNDARY_DOUBT_CODE)
        assert issue.page == 2
        assert message in issue.message


def test_no_issue_quotes_whose_page_it_is() -> None:
    head = "Patient: Jane Roe DOB: 03/02/1981"
    found = issues_of_split(2, f"{head}\n{SUGARS}", f"{head}\n{SALTS}", kinds=(NOTE, NOTE))
    assert [issue.page for issue in found] == [2]
    assert all(issue.quote and "Roe" not in issue.quote for issue in found)


def test_findings_quote_their_page_and_cost_linear_time() -> None:
    texts = [*([f"{STORY}\nSigned by Dr. Lee\nPage 2 of 2"] * 2), *([STORY] * 400)]
    began = time.process_time()
    said = issues_of_split(402, *texts)
    assert time.process_time() - began < 5
    assert [one.page for one in said if "another document" in one.message] == [3]
    assert all(one.quote and one.quote in texts[(one.page or 1) - 1] for one in said)


def test_blank_pages_interrupt_nothing() -> None:
    assert issues_of_split(3, STORY, "", f"MRI REPORT\n{PICTURES}") == []
    assert issues_of_split(4, STORY, STORY, "", PICTURES, kinds=(NOTE, GENOMIC)) == []


WORDS = st.sampled_from(
    [STORY, PICTURES, SUGARS, "Accession: S24-1111", "05/06/2024", "IMPRESSION: clear", "", "Page 1 of 2"]
)


@given(st.lists(st.lists(WORDS | st.text(max_size=60), max_size=4).map("\n".join), min_size=2, max_size=5), st.data())
def test_each_issue_names_a_page_and_quotes_it(texts: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(2, len(texts)))
    kinds = data.draw(st.tuples(*[st.sampled_from([NOTE, RADIOLOGY, OTHER])] * 2))
    for issue in issues_of_split(start, *texts, kinds=kinds):
        assert issue.code == BOUNDARY_DOUBT_CODE
        assert not issue.auto_fixable
        assert 2 <= issue.page <= len(texts)
        assert issue.quote is None or issue.quote in texts[issue.page - 1]


@given(st.lists(st.text(max_size=200), min_size=2, max_size=4))
def test_any_pages_can_be_compared(texts: list[str]) -> None:
    assert isinstance(score(*texts), float | int)
