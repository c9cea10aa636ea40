"""Long documents in parts: every page is asked about, and the answers make one."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pytest
from builders import copy_with, copy_without, document, drop_expert_questions, parse_answer
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.findings import render_unrepairable_claims
from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.page_windows import find_issues_within_windows, join_window_answers, split_into_windows
from evalkit.classification.primary_classifier import ClassifierQuestion
from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor
from evalkit.classification.verifiers import MergedVerifier
from evalkit.documents.bundle import DocumentBundle
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Answer, AnswerT, Question
from evalkit.llm.prompts import fence_document

NOTE, GENOMIC = DocumentType.CLINICAL_NOTE, DocumentType.GENOMIC_REPORT
LENGTHS = st.lists(st.integers(0, 50), min_size=1, max_size=30)


def said(*segments: tuple[int, int, DocumentType | None], **wrong: object) -> ClassificationOutput:
    """A complete answer with these segments: first page, last page, type."""

    def rows(kind: DocumentType | None) -> list[dict[str, object]]:
        main = kind or NOTE
        return [
            {
                "document_type": one,
                "presence_level": "PRIMARY" if one is main else "NO_EVIDENCE",
                "confidence": 0.9 if one is main else 0.0,
                "segment_share": 1.0 if one is main else 0.0,
                "top_evidence": [],
            }
            for one in DocumentType
        ]

    return parse_answer(
        {
            "dominant_type_overall": max(segments, key=lambda one: one[1] - one[0])[2],
            "number_of_segments": len(segments),
            "segments": [
                {
                    "segment_index": number,
                    "start_page": first,
                    "end_page": last,
                    "segment_page_count": last - first + 1,
                    "dominant_type": kind,
                    "segment_composition": rows(kind),
                }
                for number, (first, last, kind) in enumerate(segments, 1)
            ],
            "document_mixture": mixture(segments),
        }
        | wrong
    )


def mixture(segments: Sequence[tuple[int, int, DocumentType | None]]) -> list[dict[str, object]]:
    total = sum(last - first + 1 for first, last, _ in segments)
    shares = {kind: sum(b - a + 1 for a, b, one in segments if (one or NOTE) is kind) / total for kind in DocumentType}
    return [
        {
            "document_type": kind,
            "presence_level": "PRIMARY" if share else "NO_EVIDENCE",
            "confidence": 0.9 if share else 0.0,
            "overall_share": round(share, 4),
        }
        for kind, share in shares.items()
    ]


def ranges(answer: ClassificationOutput) -> list[tuple[int, int, DocumentType | None]]:
    return [(one.start_page, one.end_page, one.dominant_type) for one in answer.segments]


@given(lengths=LENGTHS, most=st.integers(1, 120))
def test_windows_cover_all_pages_in_order_within_the_limit(lengths: list[int], most: int) -> None:
    bundle = document(*("x" * length for length in lengths))
    found = split_into_windows(bundle, most)
    own = [(first + (number > 0), last) for number, (first, last) in enumerate(found)]
    assert [page for first, last in own for page in range(first, last + 1)] == list(range(1, len(lengths) + 1))
    for first, last in own:
        inside = lengths[first - 1 : last]
        assert sum(inside) <= most or sum(map(bool, inside)) == 1


def test_a_document_that_fits_is_asked_about_whole() -> None:
    bundle = document("short", "pages")
    assert split_into_windows(bundle, None) == split_into_windows(bundle, 1_000) == [(1, 2)]
    answer = said((1, 2, NOTE))
    assert join_window_answers([((1, 2), answer)]) is answer


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ([(4, 4, NOTE), (5, 8, GENOMIC)], [(1, 4, NOTE), (5, 8, GENOMIC)]),
        ([(4, 6, NOTE), (7, 8, GENOMIC)], [(1, 6, NOTE), (7, 8, GENOMIC)]),
        ([(4, 8, NOTE)], [(1, 8, NOTE)]),
        ([(4, 6, GENOMIC), (7, 8, NOTE)], [(1, 6, None), (7, 8, NOTE)]),
    ],
    ids=["new document", "goes on", "goes on to the end", "goes on as something else"],
)
def test_whether_a_document_goes_on_shows_on_the_shared_page(
    second: list[tuple[int, int, DocumentType]], expected: list[tuple[int, int, DocumentType | None]]
) -> None:
    whole = join_window_answers([((1, 4), said((1, 4, NOTE))), ((4, 8), said(*second))])
    assert ranges(whole) == expected
    bundle = document(*["page"] * 8)
    assert not [issue for issue in V1SchemaValidator().validate(whole, bundle) if issue.severity == "BLOCKER"]
    assert [segment.segment_index for segment in whole.segments] == list(range(1, len(expected) + 1))
    if None not in [kind for *_, kind in expected]:
        issues = drop_expert_questions(V2ConsistencyChecker().validate(whole, bundle))
        assert not [issue for issue in issues if issue.severity != "MINOR"]


def changed(answer: ClassificationOutput, path: str, value: object) -> ClassificationOutput:
    return parse_answer(copy_with(answer.to_json(), {path: value}))


RIGHT = said((4, 8, NOTE))
_ROWS = "segments.0.segment_composition"
WRONG: dict[str, tuple[ClassificationOutput, ClassificationOutput, str]] = {
    "gap": (said((1, 4, NOTE)), said((4, 4, NOTE), (6, 8, NOTE)), "V2-PAGE-GAP"),
    "overlap": (said((1, 4, NOTE)), said((4, 6, NOTE), (6, 8, NOTE)), "V2-PAGE-OVERLAP"),
    "beyond the file": (said((1, 4, NOTE)), said((4, 9, NOTE)), "V1-PAGE-RANGE"),
    "beyond its window": (said((1, 8, NOTE)), said((4, 4, NOTE)), "V1-PAGE-RANGE"),
    "before its window": (said((1, 4, NOTE)), said((1, 3, GENOMIC), (4, 8, NOTE)), "V1-PAGE-RANGE"),
    "counts that cancel": (
        said((1, 4, NOTE), number_of_segments=2),
        said((4, 8, NOTE), number_of_segments=0),
        "V1-SEGMENT-COUNT",
    ),
    "a missing type": (parse_answer(copy_without(said((1, 4, NOTE)).to_json(), _ROWS, 4)), RIGHT, "V1-MISSING-TYPE"),
    "a confidence below 0": (changed(said((1, 4, NOTE)), f"{_ROWS}.0.confidence", -3.0), RIGHT, "V1-CONFIDENCE-RANGE"),
    "a share below 0": (changed(said((1, 4, NOTE)), f"{_ROWS}.0.segment_share", -1.0), RIGHT, "V1-SHARE-RANGE"),
    "sums that cancel": (
        changed(said((1, 4, NOTE)), f"{_ROWS}.0.segment_share", 0.5),
        changed(said((4, 8, NOTE)), f"{_ROWS}.0.segment_share", 1.5),
        "V2-SEGMENT-SHARE-SUM",
    ),
    "no type overall": (
        said((1, 4, NOTE), dominant_type_overall=None),
        said((4, 8, NOTE), dominant_type_overall=None),
        "V2-CANNOT-TELL",
    ),
    "a mixture at odds": (
        changed(said((1, 4, NOTE)), "document_mixture.0.overall_share", 0.2),
        RIGHT,
        "V2-MIXTURE-SHARE-SUM",
    ),
    "page counts of nothing": (
        changed(said((1, 4, NOTE)), "segments.0.segment_page_count", -4),
        changed(said((4, 8, NOTE)), "segments.0.segment_page_count", 4),
        "V1-PAGE-COUNT",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_one_answer_goes_to_a_person(name: str) -> None:
    first, second, code = WRONG[name]
    told = [((1, 4), first), ((4, 8), second)]
    found = {issue.code: issue for issue in find_issues_within_windows(document(*["page"] * 8), told)}
    assert code in found
    assert not found[code].auto_fixable
    join_window_answers(told)  # whatever it makes of it, it makes something


def test_answers_that_are_right_have_no_faults() -> None:
    told = [((1, 4), said((1, 4, NOTE))), ((4, 8), said((4, 5, NOTE), (6, 8, GENOMIC)))]
    assert find_issues_within_windows(document(*["page"] * 8), told) == []


def test_what_the_whole_document_shows_is_not_asked_of_a_window() -> None:
    """A type that a window's pages do not show, pages of another patient: they are asked about once, of all pages."""
    unsure = changed(said((1, 4, NOTE), (5, 8, NOTE)), f"{_ROWS}.0.confidence", 0.1)
    bundle = document(*["page"] * 8)
    assert {"V2-UNSURE", "V2-BOUNDARY-DOUBT"} <= {one.code for one in V2ConsistencyChecker().validate(unsure, bundle)}
    assert find_issues_within_windows(bundle, [((1, 8), unsure), ((8, 8), said((8, 8, NOTE)))]) == []


def test_faults_of_a_window_reach_the_arbiter() -> None:
    class Miscounting(EmbeddedModel):
        async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
            answer = await super().ask(question)
            if question.role != "classifier" or answer.value is None:
                return answer
            return replace(answer, value=answer.value.model_copy(update={"number_of_segments": 9}))

    bundle = document(*["A note of a visit. " * 8] * 6)
    outcome = asyncio.run(RetryOrchestrator(Miscounting(), window_characters=300).evaluate(bundle))
    assert outcome.verdict.decision == "ESCALATE_TO_SME"
    assert "V1-SEGMENT-COUNT" in {issue.code for issue in outcome.issues if not issue.auto_fixable}


def doubting(*pages: int, **words: object) -> dict[str, object]:
    return {"doubtful_joins": [{"page": page, "begins": 0.4} for page in pages], **words}


@pytest.mark.parametrize(
    ("first", "second", "pages", "summary"),
    [
        (doubting(3, summary="so"), doubting(6, summary="and so"), [3, 6], "so and so"),
        ("sure", doubting(6), [6], "sure"),
        (doubting(), {"certain": True}, [], "{'certain': True}"),
        ("sure", None, [], "sure"),
        (None, {"doubtful_joins": "page 6"}, [], ""),
    ],
)
def test_doubted_boundary_of_a_window_is_reported_once(
    first: object, second: object, pages: list[int], summary: str
) -> None:
    told = [
        ((1, 4), said((1, 4, NOTE), self_evaluation=first)),
        ((4, 8), said((4, 8, NOTE), self_evaluation=second)),
    ]
    bundle = document(*["A page."] * 8)
    whole = join_window_answers(told)
    found = [*find_issues_within_windows(bundle, told), *V2ConsistencyChecker().validate(whole, bundle)]
    assert [(one.code, one.page) for one in found] == [("V2-BOUNDARY-DOUBT", page) for page in pages]
    opinion = whole.self_evaluation
    assert (opinion["summary"] if isinstance(opinion, dict) else opinion) == summary


def test_window_question_holds_only_its_pages_and_segments() -> None:
    bundle = document("first page", "second page", "third page")
    answer = said((1, 1, NOTE), (2, 3, GENOMIC))
    (question,) = V3TrapDetector().questions(answer, bundle, (1, 1))
    assert "first page" in question.prompt()
    assert "second page" not in question.prompt()
    assert re.findall(r"^Segment .*", render_unrepairable_claims(answer, (3, 3)), re.M) == [
        "Segment 2, pages 2-3: Genomic Report"
    ]
    assert fence_document(bundle, bundle.iter_pages(2, 3)) in ClassifierQuestion(bundle, (2, 3)).prompt()


@pytest.mark.parametrize("profile", ["full", "lean"])
def test_long_document_pages_all_reach_every_role(profile: Literal["full", "lean"]) -> None:
    class Listening(EmbeddedModel):
        def __init__(self) -> None:
            self.prompts: dict[str, list[str]] = defaultdict(list)

        async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
            self.prompts[question.role].append(question.prompt())
            return await super().ask(question)

    marks = [f"This is sentence {number} of the note." for number in range(101, 113)]
    model = Listening()
    asyncio.run(
        RetryOrchestrator(model, window_characters=300, profile=profile).evaluate(
            document(*(7 * f"{one} " for one in marks))
        )
    )
    roles = ["V2", "V3", "V4"] if profile == "full" else ["verifier"]
    assert sorted(model.prompts) == sorted(["classifier", *roles])
    for prompts in model.prompts.values():
        assert len(prompts) > 2
        assert all(any(mark in prompt for prompt in prompts) for mark in marks)


def test_findings_of_the_merged_question_go_to_whom_they_belong() -> None:
    verifiers = [V2ConsistencyChecker(), V3TrapDetector(), V4EvidenceQualityAssessor()]
    bundle: DocumentBundle = document("A page of text.")
    question = MergedVerifier(verifiers).build_question(said((1, 1, NOTE)), bundle)
    answer = question.parse_answer(
        json.dumps({"findings": [{"check": "V3", "reasoning": "r", "severity": "MAJOR", "message": "an order form"}]})
    )
    issues = MergedVerifier(verifiers).read([Answer(question, answer)])
    assert [(one.agent, one.code, one.issue_id, one.origin) for one in issues] == [
        ("V3", "V3-CONTEXT", "V3-0001", "model")
    ]
    missing = MergedVerifier(verifiers).read([Answer(question, None, failure="nobody answers")])
    assert [one.code for one in missing] == ["V2-AGENT-FAILED", "V3-AGENT-FAILED", "V4-AGENT-FAILED"]
    assert {one.severity for one in missing} == {"BLOCKER"}
