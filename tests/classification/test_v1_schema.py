"""V1: slide 4's six structural checks, one case that fires and one that does not for each."""

from __future__ import annotations

from typing import Any

import pytest
from builders import (
    GENOMIC,
    NO_EVIDENCE,
    TYPES,
    Json,
    codes,
    copy_with,
    copy_without,
    doc2_6,
    doc2_6_answer,
    evidence,
    one_segment,
    parse_answer,
)

from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.issue import Issue

SEGMENT_1, SEGMENT_2 = "segments.0", "segments.1"
GENOMIC_IN_1 = "segments.0.segment_composition.0"
NOTE_IN_1 = "segments.0.segment_composition.1"


def faults(value: Json) -> list[Issue]:
    return V1SchemaValidator().validate(parse_answer(value), doc2_6())


def test_the_slides_own_classification_has_no_fault() -> None:
    """Slide 2's example, shares at NO_EVIDENCE included: they are no issue (ruling 6)."""
    assert faults(doc2_6_answer()) == []


FIRES: list[tuple[str, dict[str, Any], str, str, bool]] = [
    ("count too high", {"number_of_segments": 3}, "V1-SEGMENT-COUNT", "BLOCKER", True),
    ("count zero", {"number_of_segments": 0}, "V1-SEGMENT-COUNT", "BLOCKER", True),
    ("count negative", {"number_of_segments": -2}, "V1-SEGMENT-COUNT", "BLOCKER", True),
    ("page 0", {f"{SEGMENT_1}.start_page": 0, f"{SEGMENT_1}.segment_page_count": 6}, "V1-PAGE-RANGE", "BLOCKER", False),
    (
        "page 9 of 8",
        {f"{SEGMENT_2}.end_page": 9, f"{SEGMENT_2}.segment_page_count": 4},
        "V1-PAGE-RANGE",
        "BLOCKER",
        False,
    ),
    ("end before start", {f"{SEGMENT_1}.end_page": 0}, "V1-PAGE-RANGE", "BLOCKER", False),
    ("one page too few", {f"{SEGMENT_1}.segment_page_count": 4}, "V1-PAGE-COUNT", "MAJOR", True),
    ("one page too many", {f"{SEGMENT_2}.segment_page_count": 4}, "V1-PAGE-COUNT", "MAJOR", True),
    ("confidence above 1", {f"{GENOMIC_IN_1}.confidence": 1.0001}, "V1-CONFIDENCE-RANGE", "BLOCKER", False),
    ("confidence below 0", {f"{GENOMIC_IN_1}.confidence": -0.0001}, "V1-CONFIDENCE-RANGE", "BLOCKER", False),
    ("overall confidence", {"document_mixture.1.confidence": 92.0}, "V1-CONFIDENCE-RANGE", "BLOCKER", False),
    ("no evidence for PRIMARY", {f"{GENOMIC_IN_1}.top_evidence": []}, "V1-NO-EVIDENCE", "MINOR", False),
    ("no evidence for MENTION_ONLY", {f"{NOTE_IN_1}.top_evidence": []}, "V1-NO-EVIDENCE", "MINOR", False),
    ("negative share", {f"{GENOMIC_IN_1}.segment_share": -0.85}, "V1-SHARE-RANGE", "BLOCKER", False),
    ("negative overall share", {"document_mixture.4.overall_share": -0.01}, "V1-SHARE-RANGE", "BLOCKER", False),
    ("segment numbers from 0", {f"{SEGMENT_1}.segment_index": 0}, "V1-SEGMENT-INDEX", "MINOR", False),
    ("one segment number twice", {f"{SEGMENT_2}.segment_index": 1}, "V1-SEGMENT-INDEX", "MAJOR", False),
]


@pytest.mark.parametrize(
    ("changes", "code", "severity", "auto_fixable"), [row[1:] for row in FIRES], ids=[row[0] for row in FIRES]
)
def test_a_structural_fault_is_the_one_issue(
    changes: dict[str, Any], code: str, severity: str, auto_fixable: bool
) -> None:
    (issue,) = faults(copy_with(doc2_6_answer(), changes))
    assert (issue.code, issue.severity, issue.auto_fixable) == (code, severity, auto_fixable)
    assert (issue.issue_id, issue.ig_id, issue.agent, issue.origin) == ("V1-0001", "IG-1", "V1", "rule")


@pytest.mark.parametrize(
    "changes",
    [
        {f"{GENOMIC_IN_1}.confidence": 0.0},
        {f"{GENOMIC_IN_1}.confidence": 1.0},
        {"document_mixture.0.confidence": 1},
        {f"{GENOMIC_IN_1}.segment_share": 1.4},  # above 1 makes the sum wrong, which is V2's to say
        {f"{NOTE_IN_1}.presence_level": NO_EVIDENCE, f"{NOTE_IN_1}.top_evidence": []},
        {f"{SEGMENT_1}.end_page": 6, f"{SEGMENT_1}.segment_page_count": 6},  # an overlap is V2's to say
        {f"{SEGMENT_1}.start_page": 5, f"{SEGMENT_1}.segment_page_count": 1},
        {"dominant_type_overall": None, f"{SEGMENT_1}.dominant_type": None},
    ],
)
def test_what_is_at_the_edge_is_not_a_fault(changes: dict[str, Any]) -> None:
    assert faults(copy_with(doc2_6_answer(), changes)) == []


@pytest.mark.parametrize("missing", range(5))
@pytest.mark.parametrize("place", ["segments.0.segment_composition", "document_mixture"])
def test_each_of_the_five_types_must_be_named(place: str, missing: int) -> None:
    (issue,) = faults(copy_without(doc2_6_answer(), place, missing))
    assert (issue.code, issue.severity) == ("V1-MISSING-TYPE", "BLOCKER")
    assert TYPES[missing] in issue.message
    assert not any(kind in issue.message for kind in TYPES if kind != TYPES[missing])


@pytest.mark.parametrize(
    ("share_left", "auto_fixable"),
    [(1.0, True), (0.99, True), (1.01, True), (0.9899, False), (1.0101, False), (0.15, False)],
)
@pytest.mark.parametrize("where", ["segment", "mixture"])
def test_missing_types_are_fixable_only_if_others_sum_to_1(where: str, share_left: float, auto_fixable: bool) -> None:
    """Ruling 2: the tolerance is 0.01, both ends in."""
    value = one_segment(GENOMIC, 8, evidence("BRCA1 c.5266dupC was detected", 2))
    place = "segments.0.segment_composition" if where == "segment" else "document_mixture"
    share = "segment_share" if where == "segment" else "overall_share"
    (issue,) = faults(copy_with(copy_without(value, place, 4), {f"{place}.0.{share}": share_left}))
    assert (issue.code, issue.auto_fixable) == ("V1-MISSING-TYPE", auto_fixable)


@pytest.mark.parametrize("place", ["segments.0.segment_composition", "document_mixture"])
def test_a_type_that_is_named_twice_is_a_blocker(place: str) -> None:
    value = copy_with(doc2_6_answer(), {f"{place}.4.document_type": "Radiology Report"})
    issues = faults(value)
    assert codes(issues) == ["V1-DUPLICATE-TYPE", "V1-MISSING-TYPE"]
    assert {issue.severity for issue in issues} == {"BLOCKER"}


def test_an_answer_without_segments_says_so() -> None:
    value = copy_with(doc2_6_answer(), {"segments": []})
    (issue,) = faults(value)
    assert issue.message == "number_of_segments is 2 but segments array has 0 items"


def test_several_faults_are_numbered_in_order_and_say_where() -> None:
    issues = faults(copy_with(doc2_6_answer(), {"number_of_segments": 1, f"{SEGMENT_2}.segment_page_count": 1}))
    assert [(issue.issue_id, issue.code, issue.segment_index) for issue in issues] == [
        ("V1-0001", "V1-SEGMENT-COUNT", None),
        ("V1-0002", "V1-PAGE-COUNT", 2),
    ]
