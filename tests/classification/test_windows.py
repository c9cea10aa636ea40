"""Long documents in parts: every page is asked about, and the answers make one."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from typing import Literal

import pytest
from builders import document, read
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.findings import claims
from evalkit.classification.merged_verifier import MergedVerifier
from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.primary_classifier import PrimaryClassifier
from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor
from evalkit.classification.windows import joined, windows
from evalkit.documents.bundle import DocumentBundle
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import A, Answer, Question
from evalkit.llm.prompts import fenced

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

    return read(
        {
            "dominant_type_overall": segments[0][2],
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
            "document_mixture": [],
        }
        | wrong
    )


def ranges(answer: ClassificationOutput) -> list[tuple[int, int, DocumentType | None]]:
    return [(one.start_page, one.end_page, one.dominant_type) for one in answer.segments]


@given(lengths=LENGTHS, most=st.integers(1, 120), shared=st.integers(0, 1))
def test_windows_cover_every_page_in_order_and_are_as_small_as_asked(
    lengths: list[int], most: int, shared: int
) -> None:
    bundle = document(*("x" * length for length in lengths))
    found = windows(bundle, most, shared=shared)
    own = [(first + shared * (number > 0), last) for number, (first, last) in enumerate(found)]
    assert [page for first, last in own for page in range(first, last + 1)] == list(range(1, len(lengths) + 1))
    for first, last in own:
        inside = lengths[first - 1 : last]
        assert sum(inside) <= most or sum(map(bool, inside)) == 1


def test_a_document_that_fits_is_asked_about_whole() -> None:
    bundle = document("short", "pages")
    assert windows(bundle, None) == windows(bundle, 1_000) == [(1, 2)]
    answer = said((1, 2, NOTE))
    assert joined([((1, 2), answer)]) is answer


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
    whole = joined([((1, 4), said((1, 4, NOTE))), ((4, 8), said(*second))])
    assert ranges(whole) == expected
    bundle = document(*["page"] * 8)
    assert not [issue for issue in V1SchemaValidator().validate(whole, bundle) if issue.severity == "BLOCKER"]
    assert [segment.segment_index for segment in whole.segments] == list(range(1, len(expected) + 1))
    if None not in [kind for *_, kind in expected]:
        assert not [issue for issue in V2ConsistencyChecker().validate(whole, bundle) if issue.severity != "MINOR"]


@pytest.mark.parametrize(
    ("second", "code"),
    [
        (said((4, 4, NOTE), (6, 8, NOTE)), "V2-PAGE-GAP"),
        (said((4, 6, NOTE), (6, 8, NOTE)), "V2-PAGE-OVERLAP"),
        (said((4, 8, NOTE), number_of_segments=7), "V1-SEGMENT-COUNT"),
        (said((4, 9, NOTE)), "V1-PAGE-RANGE"),
    ],
    ids=["gap", "overlap", "count", "beyond"],
)
def test_what_is_wrong_in_one_answer_stays_wrong(second: ClassificationOutput, code: str) -> None:
    bundle = document(*["page"] * 8)
    whole = joined([((1, 4), said((1, 4, NOTE))), ((4, 8), second)])
    issues = [*V1SchemaValidator().validate(whole, bundle), *V2ConsistencyChecker().validate(whole, bundle)]
    assert code in {issue.code for issue in issues if issue.severity == "BLOCKER"}


def test_questions_of_a_window_have_its_pages_and_its_segments_alone() -> None:
    bundle = document("first page", "second page", "third page")
    answer = said((1, 1, NOTE), (2, 3, GENOMIC))
    (question,) = V3TrapDetector().questions(answer, bundle, (1, 1))
    assert "first page" in question.prompt()
    assert "second page" not in question.prompt()
    assert [one["start_page"] for one in claims(answer, (3, 3))["segments"]] == [2]
    assert fenced(bundle, bundle.between(2, 3)) in PrimaryClassifier().question(bundle, (2, 3)).prompt()


@pytest.mark.parametrize("profile", ["full", "lean"])
def test_every_page_of_a_long_document_is_in_a_question_of_every_role(profile: Literal["full", "lean"]) -> None:
    class Listening(EmbeddedModel):
        def __init__(self) -> None:
            self.prompts: dict[str, list[str]] = defaultdict(list)

        async def ask(self, question: Question[A]) -> Answer[A]:
            self.prompts[question.role].append(question.prompt())
            return await super().ask(question)

    marks = [f"This is sentence {number} of the note." for number in range(101, 113)]
    model = Listening()
    asyncio.run(
        RetryOrchestrator(model, window=300, profile=profile).evaluate(document(*(7 * f"{one} " for one in marks)))
    )
    roles = ["V2", "V3", "V4"] if profile == "full" else ["verifier"]
    assert sorted(model.prompts) == sorted(["classifier", *roles])
    for prompts in model.prompts.values():
        assert len(prompts) > 2
        assert all(any(mark in prompt for prompt in prompts) for mark in marks)


def test_findings_of_the_merged_question_go_to_whom_they_belong() -> None:
    verifiers = [V2ConsistencyChecker(), V3TrapDetector(), V4EvidenceQualityAssessor()]
    bundle: DocumentBundle = document("A page of text.")
    question = MergedVerifier(verifiers).question(said((1, 1, NOTE)), bundle)
    answer = question.read(
        json.dumps({"findings": [{"check": "V3", "reasoning": "r", "severity": "MAJOR", "message": "an order form"}]})
    )
    issues = MergedVerifier(verifiers).read([Answer(question, answer)])
    assert [(one.agent, one.code, one.issue_id, one.origin) for one in issues] == [
        ("V3", "V3-CONTEXT", "V3-0001", "model")
    ]
    missing = MergedVerifier(verifiers).read([Answer(question, None, failure="nobody answers")])
    assert [one.code for one in missing] == ["V2-AGENT-FAILED", "V3-AGENT-FAILED", "V4-AGENT-FAILED"]
    assert {one.severity for one in missing} == {"BLOCKER"}
