"""The offline second opinion: what a text looks like by its forms, not by the classifier's words."""

from __future__ import annotations

import pytest
from builders import (
    GENOMIC,
    MENTION_ONLY,
    NOTE,
    OTHER,
    PATHOLOGY,
    RADIOLOGY,
    doc2_6,
    doc2_6_answer,
    document,
    evidence,
    one_segment,
    page,
    read,
)
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.corroboration import contradictions, forms_of, is_generic, weak_evidence
from evalkit.classification.schema import DocumentType, Evidence

TEXTS = {
    GENOMIC: "NM_007294.4:c.5266dupC, p.Gln1756fs, heterozygous, allele fraction 0.48, pathogenic.",
    PATHOLOGY: "Received in formalin, 3.2 x 2.1 x 1.0 cm, cassettes A1-A4. Margins are negative. Gleason 3 + 4.",
    RADIOLOGY: "CT without contrast, axial images. Liver is unremarkable. No acute fracture. FDG 12 mCi uptake.",
    NOTE: "She denies pain. BP 128/76. Tamoxifen 20 mg daily. We discussed the results. Review of systems negative.",
    OTHER: "WBC 8.2 4.0 - 11.0\nHemoglobin 13.4 12.0 - 16.0\nPlatelets 240 150 - 400\nGlucose 99 70 - 100",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_the_form_of_a_text_speaks_for_its_type(kind: str) -> None:
    assert forms_of([page(1, TEXTS[kind])]).strongest == kind


def test_a_text_that_says_nothing_speaks_for_no_type() -> None:
    assert forms_of([page(1, "Lorem ipsum dolor sit amet.")]).strongest is None
    assert forms_of([page(1, "")]).strongest is None


def test_a_form_repeated_ten_times_weighs_no_more_than_four_times() -> None:
    def strength(times: int, pages: int = 1) -> float:
        said = [page(number, "see rs12345 here. " * times) for number in range(1, pages + 1)]
        return forms_of(said)[DocumentType.GENOMIC_REPORT]

    assert 0 < strength(1) < strength(4) == strength(10) == strength(2, pages=5)


@pytest.mark.parametrize("label", TEXTS)
@pytest.mark.parametrize("kind", TEXTS)
def test_a_label_is_contradicted_by_text_of_another_type_and_only_by_that(kind: str, label: str) -> None:
    found = list(contradictions(read(one_segment(label, 1)), document(TEXTS[kind])))
    assert bool(found) is (kind != label)
    for one in found:
        assert one.severity == "MAJOR"
        assert one.quote
        assert one.quote in TEXTS[kind]
        assert (one.segment_index, one.document_type, one.page) == (1, label, 1)
        assert kind in one.suggested_fix


def test_only_what_is_called_primary_can_be_contradicted() -> None:
    value = read(one_segment(GENOMIC, 1, level=MENTION_ONLY))
    assert list(contradictions(value, document(TEXTS[OTHER]))) == []


def test_the_slides_own_document_is_not_contradicted() -> None:
    assert list(contradictions(read(doc2_6_answer()), doc2_6())) == []
    assert list(weak_evidence(read(doc2_6_answer()), doc2_6())) == []


def test_little_text_contradicts_nothing() -> None:
    assert list(contradictions(read(one_segment(GENOMIC, 1)), document("Hemoglobin 13.4"))) == []


@pytest.mark.parametrize(
    ("snippet", "generic"),
    [
        ("See attached results", True),
        ("Please see enclosed report", True),
        ("Report to follow", True),
        ("Results are pending", True),
        ("as noted above", True),
        ("See attached: BRCA1 c.5266dupC, pathogenic", False),
        ("See attached: p.V600E", False),
        ("Invasive ductal carcinoma, grade 2", False),
        ("See the long discussion of the tumour board from last Tuesday", False),
    ],
)
def test_a_quote_that_only_points_elsewhere_is_generic(snippet: str, generic: bool) -> None:
    assert is_generic(Evidence(snippet=snippet, page=1)) is generic


@pytest.mark.parametrize(
    ("snippets", "severity"),
    [
        (["See attached results"], "MAJOR"),
        (["See attached results", "BRCA1 c.5266dupC was detected"], "MINOR"),
        (["BRCA1 c.5266dupC was detected"], None),
        ([], None),
    ],
)
def test_a_type_that_rests_on_generic_quotes_alone_is_weak(snippets: list[str], severity: str | None) -> None:
    value = read(one_segment(GENOMIC, 1, *(evidence(snippet, 1) for snippet in snippets)))
    assert [one.severity for one in weak_evidence(value, document("any text"))] == ([severity] if severity else [])


def test_a_mention_may_rest_on_a_generic_quote() -> None:
    value = read(one_segment(GENOMIC, 1, evidence("See attached results", 1), level=MENTION_ONLY))
    assert list(weak_evidence(value, document("See attached results"))) == []


@given(st.text(max_size=400))
def test_any_text_can_be_weighed(text: str) -> None:
    assert all(forms_of([page(1, text)])[kind] >= 0 for kind in DocumentType)
    assert is_generic(Evidence(snippet=text, page=1)) in (True, False)
