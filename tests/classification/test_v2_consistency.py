"""V2: arithmetic that must agree with itself, and one question about the text."""

from __future__ import annotations

from typing import Any

import pytest
from builders import (
    GENOMIC,
    NOTE,
    OTHER,
    PATHOLOGY,
    RADIOLOGY,
    Json,
    answer,
    codes,
    compose_shares,
    copy_with,
    doc2_6,
    doc2_6_answer,
    drop_expert_questions,
    evidence,
    finding,
    mixture,
    one_segment,
    parse_answer,
    segment,
)

from evalkit.classification.findings import Findings
from evalkit.classification.offline.model_weights import load_embedded_weights
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.issue import Issue
from evalkit.llm.model import Answer

QUOTE = evidence("BRCA1 c.5266dupC was detected", 2)


def find_issues(value: Json) -> list[Issue]:
    return V2ConsistencyChecker().validate(parse_answer(value), doc2_6())


def faults(value: Json) -> list[Issue]:
    """The arithmetic's faults: most answers here are wrong about what the pages are."""
    return drop_expert_questions(find_issues(value))


def two_segments(first: dict[str, float], second: dict[str, float], split: int, overall: str, **shares: float) -> Json:
    """A document of 8 pages: the first part on 1..split; overall shares by the type's first word."""
    names = {"genomic": GENOMIC, "note": NOTE, "radiology": RADIOLOGY, "other": OTHER}
    return answer(
        segment(1, 1, split, next(iter(first)), compose_shares(first, QUOTE)),
        segment(2, split + 1, 8, next(iter(second)), compose_shares(second, QUOTE)),
        overall=overall,
        shares={names[name]: share for name, share in shares.items()},
    )


def test_the_slides_own_classification_agrees_with_itself() -> None:
    assert find_issues(doc2_6_answer()) == []


# ------------------------------------------------------------------------------------------------------- sums

SUMS = [
    (1.0, None),
    (0.99, None),
    (1.01, None),
    (0.9899, True),
    (1.0101, True),
    (0.90, True),
    (1.10, True),
    (0.8999, False),
    (1.1001, False),
    (0.0, False),
    (5.0, False),
]


@pytest.mark.parametrize(("total", "auto_fixable"), SUMS)
@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("segments.0.segment_composition.0.segment_share", "V2-SEGMENT-SHARE-SUM"),
        ("document_mixture.0.overall_share", "V2-MIXTURE-SHARE-SUM"),
    ],
)
def test_shares_sum_to_one_within_the_tolerance(place: str, code: str, total: float, auto_fixable: bool | None) -> None:
    """± 0.01 both ends in; repairable up to ± 0.10, both ends in (ruling 2)."""
    issues = [
        issue for issue in faults(copy_with(one_segment(GENOMIC, 8, QUOTE), {place: total})) if issue.code == code
    ]
    if auto_fixable is None:
        assert issues == []
    else:
        (issue,) = issues
        assert (issue.severity, issue.auto_fixable, issue.ig_id) == ("MAJOR", auto_fixable, "IG-2")
        assert f"{total:.3f}" in issue.message


def test_a_sum_of_binary_fractions_is_weighed_as_it_is_written() -> None:
    """0.33 + 0.33 + 0.33 is exactly 0.99, whatever floats make of it."""
    thirds = compose_shares({GENOMIC: 0.33, NOTE: 0.33, OTHER: 0.33}, QUOTE)
    value = one_segment(GENOMIC, 8, QUOTE) | {"segments": [segment(1, 1, 8, GENOMIC, thirds)]}
    assert "V2-SEGMENT-SHARE-SUM" not in codes(faults(value))


def test_a_sum_with_a_negative_share_cannot_be_normalised() -> None:
    shares = compose_shares({GENOMIC: 1.15, NOTE: -0.10}, QUOTE)
    value = one_segment(GENOMIC, 8, QUOTE) | {"segments": [segment(1, 1, 8, GENOMIC, shares)]}
    (issue,) = [issue for issue in faults(value) if issue.code == "V2-SEGMENT-SHARE-SUM"]
    assert not issue.auto_fixable


# ------------------------------------------------------------------------------------------------------ pages


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(1, 8)], []),
        ([(1, 5), (6, 8)], []),
        ([(6, 8), (1, 5)], []),
        ([(1, 1), (2, 2), (3, 8)], []),
        ([(1, 5), (5, 8)], ["V2-PAGE-OVERLAP"]),
        ([(5, 8), (1, 5)], ["V2-PAGE-OVERLAP"]),
        ([(1, 8), (3, 4)], ["V2-PAGE-OVERLAP"]),
        ([(1, 8), (2, 3), (5, 6)], ["V2-PAGE-OVERLAP", "V2-PAGE-OVERLAP"]),
        ([(1, 8), (1, 8)], ["V2-PAGE-OVERLAP"]),
        ([(2, 8)], ["V2-PAGE-GAP"]),
        ([(1, 7)], ["V2-PAGE-GAP"]),
        ([(1, 3), (5, 8)], ["V2-PAGE-GAP"]),
        ([(2, 3), (5, 7)], ["V2-PAGE-GAP", "V2-PAGE-GAP", "V2-PAGE-GAP"]),
        ([(1, 4), (3, 6)], ["V2-PAGE-GAP", "V2-PAGE-OVERLAP"]),
        ([], ["V2-PAGE-GAP"]),
    ],
)
def test_every_page_belongs_to_exactly_one_segment(ranges: list[tuple[int, int]], expected: list[str]) -> None:
    parts = [
        segment(index, start, end, GENOMIC, compose_shares({GENOMIC: 1.0}, QUOTE))
        for index, (start, end) in enumerate(ranges, 1)
    ]
    issues = faults(answer(*parts, overall=GENOMIC, shares={GENOMIC: 1.0}))
    assert codes(issues) == expected
    assert {issue.severity for issue in issues} <= {"BLOCKER"}


# --------------------------------------------------------------------------------------------- dominant types


def test_a_segment_is_called_by_its_largest_share() -> None:
    (issue,) = faults(copy_with(doc2_6_answer(), {"segments.1.dominant_type": GENOMIC}))
    assert (issue.code, issue.severity, issue.auto_fixable) == ("V2-DOMINANT-SEGMENT", "MAJOR", False)
    assert issue.segment_index == 2


def test_primary_type_breaks_tie_of_segment_shares() -> None:
    value = two_segments({GENOMIC: 0.5, NOTE: 0.5}, {NOTE: 1.0}, 4, NOTE, genomic=0.25, note=0.75)
    assert faults(copy_with(value, {"segments.0.dominant_type": GENOMIC})) == []
    assert codes(faults(copy_with(value, {"segments.0.dominant_type": NOTE}))) == ["V2-DOMINANT-PRESENCE"]


@pytest.mark.parametrize("level", ["EMBEDDED_RAW", "MENTION_ONLY", "NO_EVIDENCE"])
def test_the_largest_share_alone_does_not_make_a_type_dominant(level: str) -> None:
    whole = copy_with(doc2_6_answer(), {"document_mixture.0.presence_level": level})
    part = copy_with(doc2_6_answer(), {"segments.0.segment_composition.0.presence_level": level})
    for value, place in ((whole, None), (part, 1)):
        issue = next(one for one in faults(value) if one.code == "V2-DOMINANT-PRESENCE")
        assert (issue.severity, issue.auto_fixable, issue.segment_index) == ("MAJOR", False, place)


@pytest.mark.parametrize(("note_share", "expected"), [(0.5, ["V2-DOMINANT-PRESENCE"]), (0.3, [])])
def test_of_two_primary_types_the_shares_decide(note_share: float, expected: list[str]) -> None:
    shares, genomic = {GENOMIC: 1 - note_share, NOTE: note_share}, (1 - note_share) / 2
    one = two_segments(shares, {NOTE: 1.0}, 4, NOTE, genomic=genomic, note=1 - genomic)
    kinds = [row["document_type"] for row in one["segments"][0]["segment_composition"]]
    levels = {
        f"segments.0.segment_composition.{kinds.index(kind)}.presence_level": "PRIMARY" for kind in (GENOMIC, NOTE)
    }
    issues = faults(copy_with(one, levels | {"segments.0.dominant_type": GENOMIC}))
    assert codes(issues) == expected
    assert [issue.facts["others"] for issue in issues] == ["Clinical Note"] * len(expected)


def test_mixture_presence_must_agree_with_the_segments() -> None:
    clean = doc2_6_answer()
    kinds = [entry["document_type"] for entry in clean["document_mixture"]]
    denied = copy_with(clean, {f"document_mixture.{kinds.index(NOTE)}.presence_level": "NO_EVIDENCE"})
    unfounded = copy_with(clean, {f"document_mixture.{kinds.index(RADIOLOGY)}.presence_level": "PRIMARY"})
    for value in (denied, unfounded):
        (issue,) = faults(value)
        assert (issue.code, issue.severity, issue.auto_fixable) == ("V2-MIXTURE-PRESENCE", "MAJOR", False)


def test_the_document_is_called_by_its_largest_overall_share() -> None:
    (issue,) = faults(copy_with(doc2_6_answer(), {"dominant_type_overall": NOTE}))
    assert (issue.code, issue.severity, issue.auto_fixable) == ("V2-DOMINANT-OVERALL", "MAJOR", False)


@pytest.mark.parametrize("place", ["dominant_type_overall", "segments.0.dominant_type"])
def test_cannot_tell_needs_a_person(place: str) -> None:
    (issue,) = faults(copy_with(doc2_6_answer(), {place: None}))
    assert (issue.code, issue.severity, issue.auto_fixable) == ("V2-CANNOT-TELL", "MAJOR", False)


MORE_PAGES = ({NOTE: 0.8, GENOMIC: 0.2}, {GENOMIC: 1.0}, 5)  # note 5 pages, genomic 3; overall a half each


@pytest.mark.parametrize(
    ("note", "genomic", "called", "expected"),
    [
        (0.5, 0.5, NOTE, ["V2-DOMINANT-TIE"]),
        (0.505, 0.495, NOTE, ["V2-DOMINANT-TIE"]),
        (0.495, 0.505, NOTE, ["V2-DOMINANT-TIE"]),
        (0.5051, 0.4949, NOTE, []),
        (0.4949, 0.5051, NOTE, ["V2-DOMINANT-OVERALL"]),
        (0.4949, 0.5051, GENOMIC, []),
        (0.505, 0.495, GENOMIC, ["V2-DOMINANT-OVERALL"]),
    ],
)
def test_a_tie_goes_to_the_type_of_more_pages_and_is_remarked(
    note: float, genomic: float, called: str, expected: list[str]
) -> None:
    """Ruling 12: shares that differ by at most 0.01 are a tie."""
    issues = faults(two_segments(*MORE_PAGES, called, note=note, genomic=genomic))
    assert codes(issues) == expected
    assert {issue.severity for issue in issues} <= {"MINOR" if expected == ["V2-DOMINANT-TIE"] else "MAJOR"}


def test_a_tie_on_equal_pages_goes_to_the_report_before_other() -> None:
    value = two_segments({OTHER: 1.0}, {GENOMIC: 1.0}, 4, GENOMIC, other=0.505, genomic=0.495)
    assert codes(faults(value)) == ["V2-DOMINANT-TIE"]
    listed_last = value | {"document_mixture": value["document_mixture"][::-1]}
    assert codes(faults(listed_last)) == ["V2-DOMINANT-TIE"]
    other = two_segments({GENOMIC: 1.0}, {OTHER: 1.0}, 4, OTHER, genomic=0.505, other=0.495)
    assert codes(faults(other)) == ["V2-DOMINANT-OVERALL"]


def test_tie_of_equal_reports_goes_to_the_first_in_document() -> None:
    """However the mixture happens to list them: here Pathology Report stands before Radiology Report in it."""
    value = answer(
        segment(1, 1, 4, RADIOLOGY, compose_shares({RADIOLOGY: 1.0}, QUOTE)),
        segment(2, 5, 8, PATHOLOGY, compose_shares({PATHOLOGY: 1.0}, QUOTE)),
        overall=RADIOLOGY,
        shares={RADIOLOGY: 0.498, PATHOLOGY: 0.502},
    )
    assert codes(faults(value)) == ["V2-DOMINANT-TIE"]


# ---------------------------------------------------------------------------------------------------- mixture


@pytest.mark.parametrize(
    ("genomic", "note", "expected"),
    [
        (0.90, 0.10, []),
        (0.85, 0.15, []),
        (0.95, 0.05, []),
        (0.8499, 0.1501, ["V2-MIXTURE"]),
        (0.9501, 0.0499, ["V2-MIXTURE"]),
    ],
)
def test_the_mixture_is_the_page_weighted_shares(genomic: float, note: float, expected: list[str]) -> None:
    """Ruling 8: ± 0.05, both ends in."""
    parts = segment(1, 1, 8, GENOMIC, compose_shares({GENOMIC: 0.9, NOTE: 0.1}, QUOTE))
    issues = faults(answer(parts, overall=GENOMIC, shares={GENOMIC: genomic, NOTE: note}))
    assert codes(issues) == expected
    assert all(issue.severity == "MAJOR" and not issue.auto_fixable for issue in issues)


def test_pages_weigh_not_segments() -> None:
    """One genomic page and seven pages of a note are an eighth and seven eighths, not a half each."""
    parts = ({GENOMIC: 1.0}, {NOTE: 1.0}, 1)
    assert faults(two_segments(*parts, NOTE, genomic=0.125, note=0.875)) == []
    halves = two_segments(*parts, NOTE, genomic=0.5, note=0.5)
    assert "V2-MIXTURE" in codes(faults(halves))


def test_wrong_sum_is_not_also_reported_as_wrong_mixture() -> None:
    value = copy_with(
        one_segment(GENOMIC, 8, QUOTE), {"document_mixture": mixture({GENOMIC: 1.08}, {GENOMIC: "PRIMARY"})}
    )
    assert codes(faults(value)) == ["V2-MIXTURE-SHARE-SUM"]


# ------------------------------------------------------------------------------------------- the model's part


@pytest.mark.parametrize(
    ("told", "pages"),
    [
        ({"doubtful_joins": [{"page": 7, "begins": 0.46}]}, [7]),
        ({"doubtful_joins": [{"page": 8, "begins": 0.5}, {"page": 7, "begins": "perhaps"}, {"page": 8}]}, [7, 8]),
        ({"doubtful_joins": [{"page": 6, "begins": 0.46}]}, []),  # a title, an opening: the page itself settles it
        ({"doubtful_joins": []}, []),
        ({"doubtful_joins": [{"page": 0}, {"page": 9}, {"page": 10**12}, {"page": True}, {"page": "6"}, 6, None]}, []),
        ({"doubtful_joins": {"page": 6}}, []),
        ({"certain": True}, []),
        ("unsure of page 6", []),
        (None, []),
    ],
)
def test_boundary_doubted_by_classifier_is_a_major_issue(told: Any, pages: list[int]) -> None:
    found = find_issues(copy_with(doc2_6_answer(), {"self_evaluation": told}))
    assert [(one.code, one.severity, one.page) for one in found] == [("V2-BOUNDARY-DOUBT", "MAJOR", at) for at in pages]
    assert not any(one.auto_fixable for one in found)
    assert [one.segment_index for one in found] == [2] * len(pages)


def test_a_doubt_says_how_probable_the_beginning_is() -> None:
    (found,) = find_issues(
        copy_with(doc2_6_answer(), {"self_evaluation": {"doubtful_joins": [{"page": 7, "begins": 0.46}]}})
    )
    assert found.message == "The classifier itself is unsure whether a document begins on page 7 (46%)"


@pytest.mark.parametrize(("confidence", "is_unsure"), [(0.03, True), (0.49, True), (0.5, False), (0.92, False)])
def test_a_type_that_the_classifier_hardly_believes_is_unsure(confidence: float, is_unsure: bool) -> None:
    found = find_issues(copy_with(doc2_6_answer(), {"segments.1.segment_composition.1.confidence": confidence}))
    assert codes(found) == (["V2-UNSURE"] if is_unsure else [])
    for issue in found:
        assert (issue.severity, issue.auto_fixable, issue.document_type) == ("MAJOR", False, NOTE)
        assert (issue.segment_index, issue.page) == (2, 6)
        assert f"{confidence:g}" in issue.message


def test_only_the_dominant_primary_type_must_be_believed() -> None:
    """A mention may be doubtful, and a type that is not PRIMARY has an issue of its own."""
    value = doc2_6_answer()
    assert find_issues(copy_with(value, {"segments.0.segment_composition.1.confidence": 0.01})) == []
    also = {"presence_level": "PRIMARY", "confidence": 0.1, "segment_share": 0.1}
    changes = {f"segments.0.segment_composition.1.{key}": number for key, number in also.items()}
    assert "V2-UNSURE" not in codes(find_issues(copy_with(value, changes)))
    unclaimed = {"segments.0.segment_composition.0.confidence": 0.1}
    level = {"segments.0.segment_composition.0.presence_level": "EMBEDDED_RAW"}
    assert "V2-UNSURE" in codes(find_issues(copy_with(value, unclaimed)))
    assert "V2-UNSURE" not in codes(find_issues(copy_with(value, unclaimed | level)))


def test_answers_of_others_alone_are_read_a_second_time() -> None:
    wrong = parse_answer(one_segment(RADIOLOGY, 8, QUOTE))
    alone, again = (
        V2ConsistencyChecker(second_reader=reader).validate(wrong, doc2_6())
        for reader in (None, load_embedded_weights())
    )
    assert set(codes(again)) - set(codes(alone)) == {"V2-SECOND-READING"}


def test_question_holds_claims_and_full_text_of_all_pages() -> None:
    (question,) = V2ConsistencyChecker().questions(parse_answer(doc2_6_answer()), doc2_6())
    prompt = question.prompt()
    assert question.role == "V2"
    assert all(text in prompt for page in doc2_6().pages for text in page.paragraphs)
    assert "BRCA1 c.5266dupC was detected" in prompt.split("</document-")[1]


def test_model_findings_become_issues_without_repair() -> None:
    (question,) = V2ConsistencyChecker().questions(parse_answer(doc2_6_answer()), doc2_6())
    said = Findings(findings=(finding("MAJOR", segment_index=1, document_type=GENOMIC, page=2), finding("MINOR")))
    first, second = V2ConsistencyChecker().read([Answer(question, said)])
    assert (first.issue_id, second.issue_id) == ("V2-0001", "V2-0002")
    assert (first.origin, first.severity, first.auto_fixable, first.segment_index) == ("model", "MAJOR", False, 1)
    assert first.message == "the text says otherwise"
    assert second.severity == "MINOR"


def test_a_type_that_a_model_invents_is_not_taken_over() -> None:
    (question,) = V2ConsistencyChecker().questions(parse_answer(doc2_6_answer()), doc2_6())
    said = Findings(findings=(finding("MAJOR", document_type="Dermatology"),))
    (issue,) = V2ConsistencyChecker().read([Answer(question, said)])
    assert issue.document_type is None
    assert issue.severity == "MAJOR"


def test_no_findings_and_no_answer_are_two_things() -> None:
    (question,) = V2ConsistencyChecker().questions(parse_answer(doc2_6_answer()), doc2_6())
    assert V2ConsistencyChecker().read([Answer(question, Findings(findings=()))]) == []
    (issue,) = V2ConsistencyChecker().read([Answer(question, None, failure="it was cut off")])
    assert (issue.code, issue.severity, issue.auto_fixable) == ("V2-AGENT-FAILED", "BLOCKER", False)
    assert "it was cut off" in issue.message
