"""Where documents begin, by what the classifier does not read."""

from __future__ import annotations

import time

import pytest
from builders import GENOMIC, NOTE, OTHER, RADIOLOGY, answer, compose_single_type, document, page, parse_answer, segment
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.schema import DocumentType
from evalkit.classification.second_opinion_boundaries import (
    BEGINNING_THRESHOLD,
    CONTINUATION_THRESHOLD,
    collect_boundary_signs,
    find_doubtful_boundaries,
)
from evalkit.documents.bundle import Page
from evalkit.documents.identity.page_identity import find_patient_identifiers

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


def findings(start_of_second: int, *texts: str, kinds: tuple[str, str] = (NOTE, RADIOLOGY)):
    bundle = document(*(sheet(number, text) for number, text in enumerate(texts, 1)))
    cut = [segment(1, 1, start_of_second - 1, kinds[0], compose_single_type(kinds[0]))]
    cut.append(segment(2, start_of_second, len(texts), kinds[1], compose_single_type(kinds[1])))
    value = answer(*cut, overall=kinds[0], shares={kinds[0]: 0.5, kinds[1]: 0.5})
    return list(find_doubtful_boundaries(parse_answer(value), bundle))


def test_misplaced_boundary_is_found_with_its_page() -> None:
    texts = (STORY, STORY, f"DIAGNOSTIC IMAGING REPORT\n{PICTURES}", PICTURES)
    assert findings(3, *texts) == []
    (late,) = findings(4, *texts)
    assert (late.page, late.segment_index, late.severity) == (3, 1, "MAJOR")
    assert late.quote in texts[2]
    (early,) = findings(2, *texts)
    assert (early.page, early.segment_index) == (3, 2)


def test_a_segment_that_begins_in_mid_document_is_found() -> None:
    texts = (f"{STORY}\nPage 1 of 3", f"{STORY}\nPage 2 of 3", f"{STORY}\nPage 3 of 3", RESULTS)
    said = findings(3, *texts, kinds=(NOTE, OTHER))
    assert any("middle of a document" in one.message and one.page == 3 for one in said)


def test_findings_quote_their_page_and_cost_linear_time() -> None:
    texts = [*([f"{STORY}\nSigned by Dr. Lee\nPage 2 of 2"] * 2), *([STORY] * 400)]
    began = time.process_time()
    said = findings(402, *texts)
    assert time.process_time() - began < 5
    assert [one.page for one in said if "another document" in one.message] == [3]
    assert all(one.quote and one.quote in texts[(one.page or 1) - 1] for one in said)


def test_blank_pages_interrupt_nothing() -> None:
    assert findings(3, STORY, "", f"MRI REPORT\n{PICTURES}") == []
    assert findings(4, STORY, STORY, "", PICTURES, kinds=(NOTE, GENOMIC)) == []


@given(st.lists(st.text(max_size=200), min_size=2, max_size=4))
def test_any_pages_can_be_compared(texts: list[str]) -> None:
    assert isinstance(score(*texts), float | int)
