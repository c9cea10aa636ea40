"""How much a quote says."""

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
    parse_answer,
)
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification import evidence_strength
from evalkit.classification.evidence_strength import (
    find_result_kinds,
    find_weak_evidence,
    find_weak_evidence_of_other_models,
    find_weakness,
    has_sign_of_type,
    is_statement,
    load_strength_tables,
)
from evalkit.classification.schema import DocumentType

TEXTS = {
    GENOMIC: "NM_007294.4:c.5266dupC, p.Gln1756fs, heterozygous, allele fraction 0.48, pathogenic.",
    PATHOLOGY: "Received in formalin, 3.2 x 2.1 x 1.0 cm, cassettes A1-A4. Margins are negative. Gleason 3 + 4.",
    RADIOLOGY: "CT without contrast, axial images. Liver is unremarkable. No acute fracture. FDG 12 mCi uptake.",
    NOTE: "She denies pain. BP 128/76. Tamoxifen 20 mg daily. We discussed the results. Review of systems negative.",
    OTHER: "WBC 8.2 4.0 - 11.0\nHemoglobin 13.4 12.0 - 16.0\nPlatelets 240 150 - 400\nGlucose 99 70 - 100",
}


def test_the_slides_own_document_has_no_weak_evidence() -> None:
    assert list(find_weak_evidence(parse_answer(doc2_6_answer()), doc2_6())) == []


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
    weakness = find_weakness(snippet, DocumentType.GENOMIC_REPORT)
    assert bool(weakness and weakness.name == "a generic reference") is generic


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
    value = parse_answer(one_segment(GENOMIC, 1, *(evidence(snippet, 1) for snippet in snippets)))
    assert [one.severity for one in find_weak_evidence(value, document("any text"))] == ([severity] if severity else [])


def test_a_mention_may_rest_on_a_generic_quote() -> None:
    value = parse_answer(one_segment(GENOMIC, 1, evidence("See attached results", 1), level=MENTION_ONLY))
    assert list(find_weak_evidence(value, document("See attached results"))) == []


def test_a_culture_is_evidence_of_other() -> None:
    said = "Culture: >100,000 CFU/mL Escherichia coli"
    assert list(find_weak_evidence(parse_answer(one_segment(OTHER, 1, evidence(said, 1))), document(said))) == []


@pytest.mark.parametrize(
    ("snippet", "weak"),
    [
        ("Thank you for allowing us to take part in this patient's care.", True),
        ("Electronically signed on 01/02/2024 at 14:45.", True),
        ("Parking is available behind the main building.", True),
        ("SURGICAL PATHOLOGY REPORT", True),
        ("SURGICAL PATHOLOGY REPORT: invasive carcinoma", False),
        ("The caliceal system shows no stones; kidneys are normal.", False),
        ("Margins are negative.", False),
    ],
)
@pytest.mark.parametrize("kind", [GENOMIC, PATHOLOGY, NOTE])
def test_generic_line_is_weak_evidence_for_a_type(kind: str, snippet: str, weak: bool) -> None:
    found = list(find_weak_evidence(parse_answer(one_segment(kind, 1, evidence(snippet, 1))), document(snippet)))
    assert [one.severity for one in found] == (["MAJOR"] if weak else [])
    beside = one_segment(kind, 1, evidence(snippet, 1), evidence(TEXTS[kind][:60], 1))
    assert list(find_weak_evidence(parse_answer(beside), document(snippet, TEXTS[kind]))) == []


@pytest.mark.parametrize(
    "title", ["FAX COVER SHEET", "Patient Registration", "Certificate of immunization", "Referral"]
)
def test_administrative_title_is_evidence_of_other(title: str) -> None:
    assert list(find_weak_evidence(parse_answer(one_segment(OTHER, 1, evidence(title, 1))), document(title))) == []


@pytest.mark.parametrize("in_the_body", [False, True])
def test_a_type_cannot_rest_on_the_header_of_the_page(in_the_body: bool) -> None:
    header = "Pine Hill Hospital is the place for your heart and lungs"
    text = f"{header}\nMargins are negative." + (f"\nReviewed by {header}" if in_the_body else "")
    value = parse_answer(one_segment(PATHOLOGY, 1, evidence(header, 1)))
    found = list(find_weak_evidence(value, document(page(1, text, furniture=[header]))))
    assert [one.severity for one in found] == ([] if in_the_body else ["MAJOR"])


STATED = (
    "Margins are negative.",
    "no residual tumour",
    "Nodular basal cell carcinoma, deep edge involved",
    "Diagnosis: melanoma",
    "Tumor size 2.3 cm",
    "EGFR p.Leu858Arg",
    "BRAF V600E",
    "disc protrusion L4-L5",
    "kein Anhalt auf Tumor",
    "Squamous cell carcinoma.",
    "Block B, invasive ductal carcinoma, left breast core",
    "Small left effusion.",
    "Mild degenerative changes.",
    "Complex tear of the posterior horn of the medial meniscus reaching the inferior surface.",
    "The cut surface reveals a gray-black tissue.",
    "The lesion extends into the left cavernous sinus along the inferior edge of the segment of the left cavernous artery",
    "The report is signed and the specimen of the patient was received in the department of pathology on the same day",
)
NOT_STATED = (
    "SURGICAL PATHOLOGY REPORT",
    "Department of Radiology",
    "FINAL DIAGNOSIS:",
    "Specimen\nMargin\nCarcinoma",
    "BRCA1 TP53 KRAS EGFR gene panel",
    "Small cell carcinoma panel",
    "Center of acute leukemia and the chronic lymphoma",
    "invasive ductal carcinoma specimen margin biopsy gross microscopic diagnosis lymph node stage grade tissue nuclear stain",
    "pathology specimen margin carcinoma biopsy gross microscopic diagnosis invasion lymph node stage grade tissue",
    "radiology ct mri findings impression technique contrast negative axial image opacity nodule effusion lung chest liver",
)


@pytest.mark.parametrize(("quote", "says"), [*((one, True) for one in STATED), *((one, False) for one in NOT_STATED)])
def test_a_title_or_a_list_of_words_states_nothing(quote: str, says: bool) -> None:
    assert is_statement(quote) is says
    (kind,) = [PATHOLOGY]
    found = list(find_weak_evidence(parse_answer(one_segment(kind, 1, evidence(quote, 1))), document(quote)))
    assert bool(found) or says
    # A form is known by its title, and beside a finding a title does no harm.
    assert not any(
        "list of words" in one.message
        for one in find_weak_evidence(parse_answer(one_segment(OTHER, 1, evidence(quote, 1))), document(quote))
    )
    beside = one_segment(kind, 1, evidence(quote, 1), evidence(TEXTS[kind][:60], 1))
    assert not any(
        "list of words" in one.message for one in find_weak_evidence(parse_answer(beside), document(quote, TEXTS[kind]))
    )


@given(st.text(max_size=400))
def test_any_quote_can_be_judged(text: str) -> None:
    for kind in DocumentType:
        weakness = find_weakness(text, kind)
        assert weakness is None or find_result_kinds(text).isdisjoint(weakness.excused_by)


@pytest.mark.parametrize(
    ("name", "example", "has_result"),
    [
        (row["name"], example, has_result)
        for row in load_strength_tables()["result"]
        for key, has_result in (("examples", True), ("counterexamples", False))
        for example in row[key]
    ],
)
def test_each_result_row_finds_its_examples(name: str, example: str, has_result: bool) -> None:
    assert (name in find_result_kinds(example)) is has_result


@pytest.mark.parametrize(
    ("name", "example", "is_weak"),
    [
        (row["name"], example, is_weak)
        for row in load_strength_tables()["weakness"]
        for key, is_weak in (("examples", True), ("counterexamples", False))
        for example in row[key]
    ],
)
def test_each_weakness_row_finds_its_examples(name: str, example: str, is_weak: bool) -> None:
    weakness = find_weakness(example, DocumentType.RADIOLOGY_REPORT)
    assert (weakness and weakness.name) == (name if is_weak else None)


def test_the_embedded_programs_own_quotes_are_not_called_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    weak, bundle = "Parking is available behind the main building.", document("any text")
    own = parse_answer(one_segment(NOTE, 1, evidence(weak, 1)))
    monkeypatch.setattr(evidence_strength, "classify_by_embedded_model", lambda _bundle: own)
    assert list(find_weak_evidence(own, bundle))
    assert not list(find_weak_evidence_of_other_models(own, bundle))
    assert list(find_weak_evidence_of_other_models(parse_answer(one_segment(PATHOLOGY, 1, evidence(weak, 1))), bundle))


@pytest.mark.parametrize(
    ("kind", "example", "shows"),
    [
        (row["type"], example, shows)
        for row in load_strength_tables()["sign"]
        for key, shows in (("examples", True), ("counterexamples", False))
        for example in row[key]
    ],
)
def test_each_sign_row_finds_its_examples(kind: str, example: str, shows: bool) -> None:
    assert has_sign_of_type(example, DocumentType(kind)) is shows
