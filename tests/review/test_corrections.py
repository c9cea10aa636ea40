"""What the rules make of corrections and validations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from builders import drop_expert_questions
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    MixtureEntry,
    PresenceLevel,
    Segment,
    TypePresence,
    convert_to_decimals,
)
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import EXPERT_QUESTION_CODES, V2ConsistencyChecker
from evalkit.documents.bundle import DocumentBundle, LayoutMetadata, Page, PageStatus
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.errors import ReviewRefused
from evalkit.issue import Issue, IssueSeverity
from evalkit.review.corrections import (
    CLASSIFICATION_PARTS,
    ClassificationPart,
    correct_classification,
    correct_overall_type,
    find_rule_violations,
    repair_validated_classification,
)

DEFAULT: tuple[ClassificationPart, ...] = ("dominant_type", "segments")


def is_clean(answer: ClassificationOutput, bundle: DocumentBundle) -> bool:
    found = [*V1SchemaValidator().validate(answer, bundle), *V2ConsistencyChecker().validate(answer, bundle)]
    return all(issue.severity is IssueSeverity.MINOR for issue in drop_expert_questions(found))


@pytest.fixture
def five(build: Any) -> Any:
    """A document of five pages."""
    return build.bundle([["text"]] * 5)


def test_validating_applies_the_repairs_and_says_which(build: Any, five: Any) -> None:
    answer = build.single("Other", pages=5).model_copy(update={"number_of_segments": 3})
    issues = V1SchemaValidator().validate(answer, five)
    repaired, repairs = repair_validated_classification(answer, issues, five, DEFAULT)
    assert repaired == answer.model_copy(update={"number_of_segments": 1})
    assert [(one.code, one.before, one.after) for one in repairs] == [("V1-SEGMENT-COUNT", 3, 1)]


def test_validating_is_refused_with_a_reason_per_fault(build: Any, five: Any) -> None:
    answer = build.answer(
        [build.segment(1, 1, 3, "Other"), build.segment(2, 3, 4, "Clinical Note")],
        {"Other": 0.6, "Clinical Note": 0.4},
        "Other",
    )
    with pytest.raises(ReviewRefused, match=r"V2-PAGE-OVERLAP: .*page 3.*; V2-PAGE-GAP: .*page 5"):
        repair_validated_classification(answer, [], five, DEFAULT)
    assert repair_validated_classification(answer, [], five, ["mixture"])[0] == answer


def test_nothing_to_agree_with(five: Any) -> None:
    with pytest.raises(ReviewRefused, match="nothing to validate"):
        repair_validated_classification(None, [], five, DEFAULT)


@pytest.mark.parametrize(
    ("change", "code", "counts_for"),
    [
        ({"number_of_segments": 9}, "V1-SEGMENT-COUNT", ["segments"]),
        ({"dominant_type_overall": None}, "V2-CANNOT-TELL", [(), "dominant_type", "segments", "mixture"]),
        ({"dominant_type_overall": DocumentType.OTHER}, "V2-DOMINANT-OVERALL", [DEFAULT, ("dominant_type", "mixture")]),
        ({"mixture": {"Pathology Report": 1.0}}, "V2-MIXTURE", ["mixture"]),
        ({"mixture": {"Pathology Report": 0.6, "Other": 0.3}}, "V2-MIXTURE-SHARE-SUM", ["mixture"]),
        ({"mixture": {"Pathology Report": 1.2, "Other": -0.2}}, "V1-SHARE-RANGE", ["mixture"]),
        ({"second": {"dominant_type": None}}, "V2-CANNOT-TELL", ["segments"]),
        ({"second": {"dominant_type": DocumentType.RADIOLOGY_REPORT}}, "V2-DOMINANT-SEGMENT", ["segments"]),
        ({"second": {"segment_page_count": 7}}, "V1-PAGE-COUNT", ["segments"]),
        ({"second": {"segment_index": 1}}, "V1-SEGMENT-INDEX", ["segments"]),
        ({"second": {"start_page": 3}}, "V2-PAGE-OVERLAP", ["segments"]),
        ({"second": {"start_page": 5}}, "V2-PAGE-GAP", ["segments"]),
        ({"second": {"end_page": 6}}, "V1-PAGE-RANGE", ["segments"]),
    ],
)
def test_a_fault_counts_where_its_part_is_vouched_for(
    build: Any, five: Any, change: dict[str, Any], code: str, counts_for: list[Any]
) -> None:
    second = build.segment(2, 4, 5, "Other").model_copy(update=change.get("second", {}))
    mixture = change.get("mixture", {"Pathology Report": 0.6, "Other": 0.4})
    answer = build.answer([build.segment(1, 1, 3, "Pathology Report"), second], mixture, "Pathology Report")
    answer = answer.model_copy(update={key: change[key] for key in change if key not in ("second", "mixture")})
    needed = [frozenset([parts] if isinstance(parts, str) else parts) for parts in counts_for]
    for vouched in (
        frozenset(part for at, part in enumerate(CLASSIFICATION_PARTS) if bits >> at & 1) for bits in range(8)
    ):
        found = {issue.code for issue in find_rule_violations(answer, five, vouched)}
        assert (code in found) is any(parts <= vouched for parts in needed), vouched


def test_who_agrees_has_answered_what_the_classifier_doubted(build: Any) -> None:
    five = build.bundle([["A text."]] * 5)
    doubted = build.single("Other", pages=5).model_copy(
        update={"self_evaluation": {"doubtful_joins": [{"page": 3, "begins": 0.4}]}}
    )
    issues = V2ConsistencyChecker().validate(doubted, five)
    assert [one.code for one in issues] == ["V2-BOUNDARY-DOUBT"]
    assert repair_validated_classification(doubted, issues, five, CLASSIFICATION_PARTS)[0].segments == doubted.segments


@pytest.mark.parametrize("code", sorted(EXPERT_QUESTION_CODES))
def test_a_question_to_the_expert_refuses_no_validation(
    build: Any, five: Any, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Ruling 37: their word is the answer, whatever the severity. Any other code of V2 refuses."""
    answer = build.single("Other", pages=5)
    for raised, is_refused in ((code, False), ("V2-ANOTHER", True)):
        issue = Issue.create("V2", raised, IssueSeverity.BLOCKER, "a question", segment_index=1, page=1)
        monkeypatch.setattr("evalkit.review.corrections.find_consistency_issues", lambda *_, raised=issue: [raised])
        assert bool(find_rule_violations(answer, five, CLASSIFICATION_PARTS)) is is_refused
        if is_refused:
            with pytest.raises(ReviewRefused, match=raised):
                repair_validated_classification(answer, [issue], five, CLASSIFICATION_PARTS)
        else:
            assert repair_validated_classification(answer, [issue], five, CLASSIFICATION_PARTS) == (answer, [])
            segments = [(1, 5, "Clinical Note")]
            after = correct_classification(answer, five, segments=segments, vouched_parts=CLASSIFICATION_PARTS)
            assert after.dominant_type_overall is DocumentType.CLINICAL_NOTE


def test_questions_to_the_expert_are_those_of_the_ruling() -> None:
    assert {
        "V2-PATIENT-MIXED",
        "V2-SECOND-READING",
        "V2-NO-ACT",
        "V2-ACT-IN-OTHER",
        "V2-UNSURE",
        "V2-BOUNDARY-DOUBT",
    } <= EXPERT_QUESTION_CODES
    assert not any(code.startswith(("V2-PAGE-", "V2-DOMINANT", "V2-MIXTURE")) for code in EXPERT_QUESTION_CODES)


def test_an_unsure_wrong_and_split_answer_can_be_validated(build: Any) -> None:
    """The issues themselves, as V2 raises them of pages that perform no act."""
    order = (
        "Please schedule the patient for an MRI of the knee and call us about the time. Reason: pain, rule out a tear. "
    )
    bundle = build.bundle([[order * 3], ["Please send the report by fax to the clinic that asked for it. " * 4]])
    parts = [build.segment(number, number, number, "Radiology Report") for number in (1, 2)]
    weak = parts[0].segment_composition[3].model_copy(update={"confidence": 0.2})
    assert weak.document_type is DocumentType.RADIOLOGY_REPORT
    composition = (*parts[0].segment_composition[:3], weak, *parts[0].segment_composition[4:])
    parts[0] = parts[0].model_copy(update={"segment_composition": composition})
    answer = build.answer(parts, {"Radiology Report": 1.0}, "Radiology Report")
    issues = V2ConsistencyChecker().validate(answer, bundle)
    assert {one.code for one in issues} == {"V2-UNSURE", "V2-NO-ACT", "V2-BOUNDARY-DOUBT"}
    assert repair_validated_classification(answer, issues, bundle, CLASSIFICATION_PARTS) == (answer, [])


def test_who_agrees_has_answered_whose_pages_these_are(build: Any) -> None:
    owners = ("Patient: Jane Roe DOB: 03/02/1981", "Patient: John Doe DOB: 01/15/1970")
    bundle = build.bundle([[text] for text in owners])
    pages = (
        page.model_copy(update={"identifiers": find_patient_identifiers(page.text, page.words)})
        for page in bundle.pages
    )
    bundle = bundle.model_copy(update={"pages": tuple(pages)})
    answer = build.single("Other", pages=2)
    assert "V2-PATIENT-MIXED" in {issue.code for issue in V2ConsistencyChecker().validate(answer, bundle)}
    assert find_rule_violations(answer, bundle, CLASSIFICATION_PARTS) == []


# --- type only -------------------------------------------------------------------------------------------------------

_types = st.sampled_from(DocumentType)
_levels = st.sampled_from(PresenceLevel)
_numbers = st.floats(allow_nan=False, allow_infinity=False)
_counts = st.integers(-(10**6), 10**6)
_presences = st.builds(
    TypePresence,
    document_type=_types,
    presence_level=_levels,
    confidence=_numbers,
    segment_share=_numbers,
    top_evidence=st.lists(st.builds(Evidence, snippet=st.text(max_size=9), page=_counts), max_size=1).map(tuple),
)
_segments = st.builds(
    Segment,
    segment_index=_counts,
    start_page=_counts,
    end_page=_counts,
    segment_page_count=_counts,
    dominant_type=st.none() | _types,
    segment_composition=st.lists(_presences, max_size=6).map(tuple),
)
_entries = st.builds(
    MixtureEntry, document_type=_types, presence_level=_levels, confidence=_numbers, overall_share=_numbers
)
_answers = st.builds(
    ClassificationOutput,
    dominant_type_overall=st.none() | _types,
    number_of_segments=_counts,
    segments=st.lists(_segments, max_size=3).map(tuple),
    document_mixture=st.lists(_entries, max_size=6).map(tuple),
)


def _blank(pages: int) -> DocumentBundle:
    layout = LayoutMetadata(block_types=(), has_tables=False)
    return DocumentBundle(
        doc_id="d",
        file_path="d.pdf",
        sha256="0",
        reader="by hand",
        total_pages=pages,
        processing_timestamp="",
        pages=tuple(
            Page(page_num=n, status=PageStatus.BLANK, text="", paragraphs=(), layout_metadata=layout, blocks=())
            for n in range(1, pages + 1)
        ),
    )


@settings(deadline=None)
@given(answer=st.none() | _answers, kind=_types, pages=st.integers(1, 9))
def test_a_type_only_correction_is_never_refused(
    answer: ClassificationOutput | None, kind: DocumentType, pages: int
) -> None:
    bundle = _blank(pages)
    after = correct_classification(answer, bundle, dominant_type=kind.value, vouched_parts=["dominant_type"])
    assert after == correct_overall_type(answer, kind, bundle)
    assert after.dominant_type_overall is kind
    if answer is not None and len(answer.segments) > 1:
        assert (after.segments, after.document_mixture) == (answer.segments, answer.document_mixture)
    else:
        assert [(one.start_page, one.end_page, one.dominant_type) for one in after.segments] == [(1, pages, kind)]
        assert is_clean(after, bundle)


# --- segments and mixture ------------------------------------------------------------------------------------------


def test_segments_without_composition_are_all_of_their_type(build: Any, five: Any) -> None:
    given_segments = [
        {"start_page": 4, "end_page": 5, "dominant_type": "Clinical Note"},
        {"start_page": 1, "end_page": 3, "dominant_type": "Other"},
    ]
    after = correct_classification(
        build.single("Genomic Report", 5), five, segments=given_segments, vouched_parts=DEFAULT
    )
    assert is_clean(after, five)
    assert after.dominant_type_overall == "Other"
    assert [(one.segment_index, one.start_page, one.segment_page_count) for one in after.segments] == [
        (1, 1, 3),
        (2, 4, 2),
    ]
    composition = {
        one.document_type: (one.presence_level, one.segment_share) for one in after.segments[0].segment_composition
    }
    assert composition == {kind: ("PRIMARY", 1.0) if kind == "Other" else ("NO_EVIDENCE", 0.0) for kind in DocumentType}
    mixture = {one.document_type: one.overall_share for one in after.document_mixture if one.overall_share}
    assert mixture == {"Other": 0.6, "Clinical Note": 0.4}
    assert (after.vendor_signals, after.self_evaluation) == (("Quest Diagnostics",), None)


def test_tuples_and_the_packets_own_segments_are_taken_too(build: Any, five: Any) -> None:
    agent = build.single("Genomic Report", 5)
    after = correct_classification(agent, five, segments=[(1, 5, "Other")], vouched_parts=DEFAULT)
    assert after.segments[0].dominant_type == "Other"
    again = correct_classification(agent, five, segments=[agent.to_json()["segments"][0]], vouched_parts=DEFAULT)
    assert again.segments == agent.segments
    assert correct_classification(agent, five, segments=agent.segments, vouched_parts=DEFAULT) == again


@settings(deadline=None)
@given(cuts=st.sets(st.integers(1, 29)), kinds=st.lists(_types, min_size=30, max_size=30))
def test_segments_that_cover_every_page_once_always_pass(cuts: set[int], kinds: list[DocumentType]) -> None:
    bundle = _blank(30)
    edges = [0, *sorted(cuts), 30]
    parts = [(a + 1, b, kind) for a, b, kind in zip(edges, edges[1:], kinds, strict=False)]
    after = correct_classification(None, bundle, segments=parts, vouched_parts=CLASSIFICATION_PARTS)
    assert is_clean(after, bundle)
    assert sum(convert_to_decimals(entry.overall_share for entry in after.document_mixture)) == 1


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([(1, 3, "Other"), (3, 5, "Clinical Note")], "V2-PAGE-OVERLAP"),
        ([(1, 2, "Other"), (4, 5, "Clinical Note")], "V2-PAGE-GAP"),
        ([(1, 6, "Other")], "V1-PAGE-RANGE"),
        ([(0, 5, "Other")], "V1-PAGE-RANGE"),
        ([(5, 1, "Other")], "V1-PAGE-RANGE"),
        ([], "V2-PAGE-GAP"),
    ],
)
@pytest.mark.parametrize("vouched", [DEFAULT, ()])
def test_faulty_segments_are_refused(five: Any, parts: list[Any], code: str, vouched: tuple[Any, ...]) -> None:
    with pytest.raises(ReviewRefused, match=code):
        correct_classification(None, five, segments=parts, vouched_parts=vouched)


@pytest.mark.parametrize("vouched", [DEFAULT, ()])
def test_a_type_that_the_segments_contradict_is_refused(five: Any, vouched: tuple[ClassificationPart, ...]) -> None:
    """What an expert types in must pass, also where they do not stand for it."""
    with pytest.raises(ReviewRefused, match="V2-DOMINANT-OVERALL"):
        correct_classification(
            None, five, dominant_type="Other", segments=[(1, 5, "Clinical Note")], vouched_parts=vouched
        )


def test_compositions_are_completed_and_checked(build: Any, five: Any) -> None:
    presence = {"document_type": "Other", "presence_level": "PRIMARY", "segment_share": 0.7}
    embedded = {"document_type": "Clinical Note", "presence_level": "EMBEDDED_RAW", "segment_share": 0.3}
    whole = {"start_page": 1, "end_page": 5, "dominant_type": "Other", "segment_composition": [presence, embedded]}
    after = correct_classification(None, five, segments=[whole], vouched_parts=CLASSIFICATION_PARTS)
    assert is_clean(after, five)
    levels = {one.document_type.value: one.presence_level for one in after.document_mixture}
    assert (levels["Other"], levels["Clinical Note"], levels["Genomic Report"]) == (
        "PRIMARY",
        "EMBEDDED_RAW",
        "NO_EVIDENCE",
    )
    with pytest.raises(ReviewRefused, match="V2-SEGMENT-SHARE-SUM"):
        correct_classification(
            None, five, segments=[{**whole, "segment_composition": [presence]}], vouched_parts=DEFAULT
        )
    negative = [{**presence, "segment_share": 1.3}, {**embedded, "segment_share": -0.3}]
    with pytest.raises(ReviewRefused, match="V1-SHARE-RANGE"):
        correct_classification(None, five, segments=[{**whole, "segment_composition": negative}], vouched_parts=DEFAULT)


def test_the_mixture_of_one_segment_is_its_composition(build: Any, five: Any) -> None:
    mixture = [
        {"document_type": "Pathology Report", "overall_share": 0.8},
        {"document_type": "Genomic Report", "overall_share": 0.2, "presence_level": "EMBEDDED_RAW"},
    ]
    after = correct_classification(build.single("Genomic Report", 5), five, mixture=mixture, vouched_parts=["mixture"])
    assert is_clean(after, five)
    assert after.dominant_type_overall == "Pathology Report"
    assert after.segments[0].dominant_type == "Pathology Report"


def test_the_mixture_of_several_segments_must_agree_with_them(build: Any, five: Any) -> None:
    agent = build.answer(
        [build.segment(1, 1, 3, "Other"), build.segment(2, 4, 5, "Clinical Note")], {"Other": 1.0}, "Other"
    )
    good = [
        {"document_type": "Other", "overall_share": 0.6},
        {"document_type": "Clinical Note", "overall_share": 0.4},
    ]
    after = correct_classification(agent, five, mixture=good, vouched_parts=["mixture"])
    assert after.segments == agent.segments
    assert is_clean(after, five)
    with pytest.raises(ReviewRefused, match="V2-MIXTURE"):
        correct_classification(
            agent, five, mixture=[{"document_type": "Other", "overall_share": 1.0}], vouched_parts=["mixture"]
        )


def test_a_near_tie_is_a_tie(build: Any) -> None:
    shares = {"Radiology Report": 0.99, "Other": 0.01}
    mixed = build.segment(1, 1, 2, "Radiology Report", shares)
    after = correct_classification(
        None, build.bundle([["text"]] * 4), segments=[mixed, (3, 4, "Other")], vouched_parts=CLASSIFICATION_PARTS
    )
    assert [entry.overall_share for entry in after.document_mixture if entry.document_type == "Other"] == [0.505]
    assert after.dominant_type_overall == "Radiology Report"


def test_a_tie_goes_to_the_report_with_as_many_pages(build: Any) -> None:
    four = build.bundle([["text"]] * 4)
    after = correct_classification(
        None, four, segments=[(1, 2, "Other"), (3, 4, "Radiology Report")], vouched_parts=CLASSIFICATION_PARTS
    )
    assert after.dominant_type_overall == "Radiology Report"


def test_rules_of_truth_read_no_page(build: Any) -> None:
    """Opening a case of 500 pages must not read them all: what pages ask, the expert answers."""
    answer = build.answer(
        [build.segment(1, 1, 400, "Other"), build.segment(2, 402, 500, "Other")], {"Other": 1.0}, "Other"
    )
    pages_unread: Any = SimpleNamespace(total_pages=500)
    assert [issue.code for issue in find_rule_violations(answer, pages_unread, CLASSIFICATION_PARTS)] == ["V2-PAGE-GAP"]
