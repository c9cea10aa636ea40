"""How often planted faults are noticed, against counts by hand."""

from __future__ import annotations

from typing import Any

import pytest
from evaluation.studies import document, study, truth
from scipy.stats import beta

from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.evaluation.attention_checks import tabulate_attention_checks, tabulate_reviewer_fault_detection
from evalkit.evaluation.attention_outcomes import AttentionCheckOutcome
from evalkit.evaluation.report import build_report
from evalkit.review.attention_checks import (
    PlantedFault,
    describe_fault,
    format_attention_check_feedback,
    is_fault_corrected,
)
from evalkit.review.ground_truth import Review

NOTE, PATHOLOGY, OTHER, RADIOLOGY = (
    DocumentType.CLINICAL_NOTE,
    DocumentType.PATHOLOGY_REPORT,
    DocumentType.OTHER,
    DocumentType.RADIOLOGY_REPORT,
)


def case(doc_id: str, reviewer: str, kind: str = "type", **fields: Any) -> AttentionCheckOutcome:
    given = {"status": "answered", "outcome": "validated", "active_seconds": 30.0} | fields
    return AttentionCheckOutcome(f"{doc_id}-0a1b2c3d", doc_id, kind, "planted", reviewer=reviewer, **given)


CASES = (
    case("a", "dr_lee", is_fault_noticed=True, outcome="corrected", active_seconds=90.0),
    case("b", "dr_lee"),
    case("c", "dr_lee", "boundary", outcome="undeterminable", active_seconds=None),
    case("d", "dr_ray", "joined", is_fault_noticed=True, outcome="corrected", active_seconds=50.0),
    case("e", "dr_ray", is_colleague_asked=True, active_seconds=10.0),
    case("f", "dr_ray", outcome="corrected"),
    case("g", "simulated_ash", is_simulated=True),
    case("h", None, status="waiting", outcome=None),
    case("i", "dr_lee", status="void"),
)


def test_figures_are_those_counted_by_hand() -> None:
    frame = tabulate_reviewer_fault_detection(CASES).set_index(["reviewer", "simulated", "fault"])
    assert [tuple(frame.loc[key, ["seen", "noticed", "validated", "otherwise"]]) for key in [
        ("dr_lee", False, "all"), ("dr_lee", False, "type"), ("dr_lee", False, "boundary"), ("dr_ray", False, "all"),
        ("(together)", False, "all"), ("(together)", False, "type"), ("simulated_ash", True, "all"), ("(together)", True, "all"),
    ]] == [(3, 1, 1, 1), (2, 1, 1, 0), (1, 0, 0, 1), (3, 1, 0, 2), (6, 2, 1, 3), (4, 1, 1, 2), (1, 0, 1, 0), (1, 0, 1, 0)]  # fmt: skip
    together = frame.loc[("(together)", False, "all")]
    assert together["share"].value == 2 / 6
    assert together["share"].low == pytest.approx(beta.ppf(0.025, 2, 5), abs=1e-9)
    assert together["share"].high == pytest.approx(beta.ppf(0.975, 3, 4), abs=1e-9)
    assert together["median_seconds"] == 30.0
    assert frame.loc[("dr_lee", False, "all"), "median_seconds"] == 60.0
    assert together["documents"] == ("a", "b", "c", "d", "e", "f")
    assert len(frame) == 3 + 3 + 4 + 2 + 2


def test_reviewer_named_together_is_one_reviewer() -> None:
    named = case("j", "together", is_fault_noticed=True, outcome="corrected")
    frame = tabulate_reviewer_fault_detection([*CASES, named]).set_index(["reviewer", "simulated", "fault"])
    assert frame.loc[("together", False, "all"), "seen"] == 1
    assert frame.loc[("(together)", False, "all"), "seen"] == 7
    assert not frame.index.duplicated().any()


def test_pending_and_void_checks_are_listed_but_not_counted() -> None:
    assert tabulate_reviewer_fault_detection(CASES[7:]).empty
    assert list(tabulate_attention_checks(CASES[7:])["doc_id"]) == ["h", "i"]
    assert list(tabulate_attention_checks(CASES)["noticed"])[:2] == [True, False]


def test_the_report_names_the_documents() -> None:
    made = study(document("a", truth=truth()))
    section = build_report(type(made)(made.output, made.documents, (), attention_checks=CASES), made_at="now")[
        "experts"
    ]
    (table,) = [one for one in section.tables if "planted faults" in one.caption]
    assert set(table.frame["documents"].explode()) == set("abcdefg")
    without = build_report(study(document("a", truth=truth())), made_at="now")
    assert "experts" not in {one.key for one in without.sections}


# ------------------------------------------------------------------------------------------- noticed or not

SWAP = PlantedFault(
    kind="type", start_page=1, end_page=3, shown_type=RADIOLOGY, true_type=PATHOLOGY, true_dominant=PATHOLOGY
)
MOVED = PlantedFault(kind="boundary", start_page=3, end_page=3, shown_start=3, true_start=4)
JOINED = PlantedFault(kind="joined", start_page=1, end_page=4, true_start=4)
Drawn = list[tuple[int, int, DocumentType]]


def answer(dominant: DocumentType | None, *segments: tuple[int, int, DocumentType]) -> ClassificationOutput:
    return ClassificationOutput.model_validate(
        {
            "dominant_type_overall": dominant,
            "number_of_segments": len(segments),
            "segments": [
                {
                    "segment_index": index,
                    "start_page": start,
                    "end_page": end,
                    "segment_page_count": end - start + 1,
                    "dominant_type": kind,
                    "segment_composition": [],
                }
                for index, (start, end, kind) in enumerate(segments, 1)
            ],
            "document_mixture": [],
        }
    )


def said(before: ClassificationOutput, after: ClassificationOutput | None, outcome: str = "corrected") -> Review:
    return Review(
        reviewer="dr_lee", submitted_at="2026-01-01T00:00:00+00:00", seconds_active=1.0, outcome=outcome,
        before=before, after=after, packet_sha256="", versions={},
    )  # fmt: skip


SWAPPED = answer(RADIOLOGY, (1, 3, RADIOLOGY), (4, 4, NOTE))
CUT = answer(PATHOLOGY, (1, 2, PATHOLOGY), (3, 4, NOTE))
WHOLE = answer(PATHOLOGY, (1, 4, PATHOLOGY))
TRUE: Drawn = [(1, 3, PATHOLOGY), (4, 4, NOTE)]


@pytest.mark.parametrize(
    ("fault", "before", "dominant", "segments", "noticed"),
    [
        (SWAP, SWAPPED, PATHOLOGY, TRUE, True),
        (SWAP, SWAPPED, OTHER, [(1, 3, OTHER), (4, 4, NOTE)], True),
        (SWAP, SWAPPED, PATHOLOGY, [(1, 3, RADIOLOGY), (4, 4, NOTE)], True),  # its type alone
        (SWAP, SWAPPED, OTHER, [(1, 3, RADIOLOGY), (4, 4, NOTE)], False),
        (SWAP, SWAPPED, RADIOLOGY, [(1, 3, RADIOLOGY), (4, 4, OTHER)], False),
        (SWAP, SWAPPED, RADIOLOGY, [(1, 2, RADIOLOGY), (3, 4, NOTE)], False),
        (MOVED, CUT, PATHOLOGY, TRUE, True),
        (MOVED, CUT, PATHOLOGY, [(1, 3, PATHOLOGY), (4, 4, OTHER)], True),
        (MOVED, CUT, PATHOLOGY, [(1, 2, PATHOLOGY), (3, 3, NOTE), (4, 4, NOTE)], False),
        (MOVED, CUT, NOTE, [(1, 1, PATHOLOGY), (2, 4, NOTE)], False),
        (JOINED, WHOLE, PATHOLOGY, TRUE, True),
        (JOINED, WHOLE, OTHER, [(1, 4, OTHER)], False),
        (JOINED, WHOLE, PATHOLOGY, [(1, 2, PATHOLOGY), (3, 4, NOTE)], False),
    ],
)
def test_noticed_is_what_was_planted_and_nothing_else(
    fault: PlantedFault, before: ClassificationOutput, dominant: DocumentType, segments: Drawn, noticed: bool
) -> None:
    review = said(before, answer(dominant, *segments))
    assert is_fault_corrected(fault, review) is noticed
    assert ("You noticed it" in format_attention_check_feedback(fault, review)) is noticed
    assert describe_fault(fault) in format_attention_check_feedback(fault, review)


@pytest.mark.parametrize("outcome", ["validated", "undeterminable"])
def test_only_a_correction_notices(outcome: str) -> None:
    assert not is_fault_corrected(
        SWAP, said(SWAPPED, answer(PATHOLOGY, *TRUE) if outcome == "validated" else None, outcome)
    )
