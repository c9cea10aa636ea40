"""The examples of slides 4 to 8 and of specification 001, with the inputs and outcomes that are printed there.

Where the contract rules otherwise, the ruling's outcome stands, and the test names the ruling.
"""

from __future__ import annotations

import asyncio

import pytest
from builders import (
    DOC2_6,
    EMBEDDED_RAW,
    GENOMIC,
    NO_EVIDENCE,
    NOTE,
    OTHER,
    PATHOLOGY,
    PRIMARY,
    RADIOLOGY,
    CountingModel,
    an_issue,
    answer,
    compose_single_type,
    copy_with,
    doc2_6,
    doc2_6_answer,
    document,
    evidence,
    finding,
    one_segment,
    parse_answer,
    presence,
    segment,
)

from evalkit.classification.autofix import AutoFixEngine
from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor, compute_quality_score
from evalkit.classification.v5_arbiter import V5DecisionMaker
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.model import Answer

SHARES_106 = [0.50, 0.30, 0.10, 0.08, 0.08]
IN_SLIDE_ORDER = [GENOMIC, NOTE, PATHOLOGY, RADIOLOGY, OTHER]


def test_slide_4_v1_issue_caught() -> None:
    """number_of_segments = 3, the actual segments array has 2 items."""
    claimed = copy_with(doc2_6_answer(), {"number_of_segments": 3})
    (issue,) = V1SchemaValidator().validate(parse_answer(claimed), doc2_6())
    assert issue.issue_id == "V1-0001"
    assert issue.severity == "BLOCKER"
    assert issue.message == "number_of_segments is 3 but segments array has 2 items"
    assert issue.auto_fixable is True
    assert issue.ig_id == "IG-1"


def test_slide_4_v1_evidence_alignment() -> None:
    """Segment 1, Genomic Report: PRIMARY, top_evidence = []. It is the fourth fault here, as on the slide."""
    claimed = copy_with(
        doc2_6_answer(),
        {
            "number_of_segments": 3,
            "segments.0.segment_page_count": 4,
            "segments.0.segment_composition.1.confidence": 1.3,
            "segments.0.segment_composition.0.top_evidence": [],
        },
    )
    issue = V1SchemaValidator().validate(parse_answer(claimed), doc2_6())[3]
    assert issue.issue_id == "V1-0004"
    assert issue.severity == "MINOR"
    assert issue.message == "Genomic Report is PRIMARY but has no evidence snippets"
    assert issue.auto_fixable is False


def test_slide_4_v2_share_sum_error() -> None:
    claimed = copy_with(
        doc2_6_answer(),
        {f"segments.1.segment_composition.{place}.segment_share": share for place, share in enumerate(SHARES_106)}
        | {"segments.1.dominant_type": GENOMIC},
    )
    issue = V2ConsistencyChecker().validate(parse_answer(claimed), doc2_6())[0]
    assert issue.issue_id == "V2-0001"
    assert issue.severity == "MAJOR"
    assert issue.message == "Segment 2 shares sum to 1.060 instead of 1.0"
    assert issue.auto_fixable is True
    repaired, _ = AutoFixEngine().apply(parse_answer(claimed), [issue])
    assert [one.segment_share for one in repaired.segments[1].segment_composition] == pytest.approx(
        [share / 1.06 for share in SHARES_106], abs=0.0001
    )


def test_slide_4_v2_semantic_inconsistency() -> None:
    """Genomic Report → PRIMARY (confidence 0.91) over a routine blood panel."""
    text = "CBC with differential... WBC 8.2... Hemoglobin 13.4..."
    claimed = one_segment(GENOMIC, 1, evidence("CBC with differential", 1))
    claimed = copy_with(claimed, {"segments.0.segment_composition.0.confidence": 0.91})
    (question,) = V2ConsistencyChecker().questions(parse_answer(claimed), document(text))
    (issue,) = V2ConsistencyChecker().read([Answer(question, question.offline())])
    assert issue.severity == "MAJOR"
    assert issue.message == (
        "Segment 1 text contains routine lab values inconsistent with Genomic Report PRIMARY classification"
    )


def test_slide_5_trap_1() -> None:
    text = "Quest Diagnostics\nCBC panel\nWBC 8.2\nRBC 4.5\nPLT 240"
    claimed = one_segment(GENOMIC, 1, evidence("WBC 8.2 RBC 4.5", 1), vendor_signals=["Quest Diagnostics"])
    claimed = copy_with(claimed, {"document_mixture.0.confidence": 0.78})
    (issue,) = V3TrapDetector().validate(parse_answer(claimed), document(text))
    assert issue.issue_id == "V3-0001"
    assert issue.severity == "BLOCKER"
    assert issue.message == "Routine lab vendor detected (Quest Diagnostics) but Genomic Report marked PRIMARY"
    assert issue.suggested_fix == "Reclassify as 'Other' or downgrade to MENTION_ONLY"
    assert issue.location == "document_mixture → Genomic Report"  # slide 9


def test_slide_5_trap_2() -> None:
    """document_mixture: Pathology Report → EMBEDDED_RAW over a requisition form."""
    claimed = answer(segment(1, 1, 1, OTHER, compose_single_type(OTHER)), overall=OTHER, shares={OTHER: 1.0})
    claimed = copy_with(claimed, {"document_mixture.2.presence_level": EMBEDDED_RAW})
    assert claimed["document_mixture"][2]["document_type"] == PATHOLOGY
    (issue,) = V3TrapDetector().validate(parse_answer(claimed), document("Test Request Authorization #4821"))
    assert issue.severity == "BLOCKER"
    assert issue.message == ("Administrative keywords found ('test request') but Pathology Report marked EMBEDDED_RAW")


def test_slide_6_fabricated_evidence() -> None:
    page_3 = "Patient history reviewed. No prior genetic testing.\nFamily history: mother with breast cancer age 52."
    snippet = "BRCA1 pathogenic variant c.5266dupC detected"
    claimed = one_segment(GENOMIC, 3, evidence(snippet, 3, "Variant Classification"))
    bundle = document("First page of the record.", "Second page of the record.", page_3)
    assessment = V4EvidenceQualityAssessor().validate(parse_answer(claimed), bundle)
    quote, anchor = assessment.issues
    assert quote.severity == "BLOCKER"
    assert quote.message == (
        f"Evidence snippet '{snippet}' not found in actual PDF text on page 3. Possible hallucination."
    )
    assert (anchor.code, anchor.severity) == ("V4-ANCHOR-ABSENT", "MAJOR")  # 001's table
    assert assessment.score == 0.55


def test_slide_6_weak_evidence() -> None:
    claimed = one_segment(GENOMIC, 2, evidence("See attached results", 2), level=PRIMARY)
    claimed = copy_with(claimed, {"segments.0.segment_composition.0.confidence": 0.85})
    bundle = document("Letter", "See attached results")
    assert V4EvidenceQualityAssessor().validate(parse_answer(claimed), bundle).issues == []  # it does stand there
    (question,) = V4EvidenceQualityAssessor().questions(parse_answer(claimed), bundle)
    (issue,) = V4EvidenceQualityAssessor().read([Answer(question, question.offline())])
    assert issue.severity == "MAJOR"
    assert issue.message.startswith("Evidence snippet 'See attached results' is a generic reference, not specific")
    assert "Confidence 0.85 is not supported" in issue.message


def test_slide_7_auto_retry() -> None:
    """V5 alone: two fixable MAJORs and a MINOR."""
    verdict = V5DecisionMaker().decide(
        [
            an_issue("MAJOR", auto_fixable=True),
            an_issue("MAJOR", auto_fixable=True),
            an_issue("MINOR", auto_fixable=False, agent="V1"),
        ]
    )
    assert (verdict.counts.blocker, verdict.counts.major, verdict.counts.minor) == (0, 2, 1)
    assert (verdict.rule, verdict.decision) == ("5", "AUTO_RETRY")


def test_slide_7_escalate_to_sme() -> None:
    verdict = V5DecisionMaker().decide([an_issue("BLOCKER", agent="V3")])
    assert (verdict.counts.blocker, verdict.rule, verdict.decision) == (1, "1", "ESCALATE_TO_SME")


def test_slide_8_successful_auto_fix() -> None:
    """Attempt 0: 1.06, AUTO_RETRY; attempt 1: no issues, AUTO_ACCEPT."""
    quotes = {GENOMIC: evidence("BRCA1 c.5266dupC was detected", 2), NOTE: evidence("The patient reports no pain", 6)}
    composition = [
        presence(
            kind,
            PRIMARY if kind in quotes else NO_EVIDENCE,
            0.9 if kind in quotes else 0.0,
            share,
            *([quotes[kind]] if kind in quotes else []),
        )
        for kind, share in zip(IN_SLIDE_ORDER, SHARES_106, strict=True)
    ]
    claimed = answer(
        segment(1, 1, 8, GENOMIC, composition),
        overall=GENOMIC,
        shares=dict(zip(IN_SLIDE_ORDER, [0.472, 0.283, 0.095, 0.075, 0.075], strict=True)),
    )
    as_one = document(*DOC2_6[:5], "as told by letter. The patient reports no pain", *DOC2_6[6:])
    outcome = asyncio.run(RetryOrchestrator(CountingModel()).evaluate(as_one, claimed))
    first, second = outcome.attempts
    assert (first.decision, second.decision) == ("AUTO_RETRY", "AUTO_ACCEPT")
    (repair,) = first.repairs
    assert repair.before == SHARES_106
    assert repair.after == pytest.approx([0.472, 0.283, 0.094, 0.075, 0.075], abs=0.001)
    assert outcome.verdict.decision == "AUTO_ACCEPT"
    assert second.issues == ()
    (issue,) = outcome.issues
    assert (issue.message, issue.status) == ("Segment 1 shares sum to 1.060 instead of 1.0", "repaired")
    assert first.issues == (issue.issue_id,)


# ------------------------------------------------------------------------------------------- specification 001


@pytest.mark.parametrize(
    ("severities", "score"),
    [
        ([], 1.0),
        (["MINOR"], 0.95),
        (["MAJOR"], 0.85),
        (["BLOCKER"], 0.70),
        (["BLOCKER", "MAJOR", "MINOR"], 0.50),
        (["BLOCKER", "BLOCKER", "BLOCKER"], 0.10),
        (["BLOCKER"] * 4, 0.0),
        (["MAJOR"] * 7, 0.0),
        (["MINOR"] * 3, 0.85),
    ],
)
def test_001_quality_score(severities: list[str], score: float) -> None:
    assert compute_quality_score([an_issue(severity, agent="V4") for severity in severities]) == score


def issues_of_001(snippet: str, page: int, *anchors: str) -> list[Issue]:
    quotes = [] if not snippet else [evidence(snippet, page, *anchors)]
    return V4EvidenceQualityAssessor().validate(parse_answer(one_segment(GENOMIC, 8, *quotes)), doc2_6()).issues


@pytest.mark.parametrize(
    ("issues", "severity"),
    [
        (issues_of_001("", 0), "BLOCKER"),  # missing evidence for PRIMARY
        (issues_of_001("TP53 was deleted in all samples", 2), "BLOCKER"),  # snippet not in the PDF
        (issues_of_001("BRCA1 c.5266dupC was detected", 2, "exon 20"), "MAJOR"),  # anchor not on the page
        (issues_of_001("heterozygous", 2), "MINOR"),  # too short
    ],
)
def test_001_severity_guidelines_that_are_computed(issues: list[Issue], severity: str) -> None:
    (issue,) = issues
    assert (issue.severity, issue.ig_id, issue.agent) == (IssueSeverity(severity), "IG-3", "V4")


def test_001_severity_guidelines_that_a_model_judges() -> None:
    """Weak evidence and confidence out of line are MAJOR, and cost the score its 0.15."""
    model = CountingModel(findings={"V4": [finding("MAJOR", "Confidence 0.92 is not supported by this evidence")]})
    outcome = asyncio.run(RetryOrchestrator(model).evaluate(doc2_6(), doc2_6_answer()))
    (issue,) = outcome.issues
    assert (issue.severity, issue.ig_id, issue.agent) == ("MAJOR", "IG-3", "V4")
    assert outcome.evidence_quality_score == 0.85
    assert outcome.verdict.decision == "ESCALATE_TO_SME"


def test_001_a_v4_that_cannot_answer() -> None:
    """001 returns ([], 1.0); ruling 5 makes it a BLOCKER without a score, a setting restores 001."""
    strict = RetryOrchestrator(CountingModel(failing=["V4"]))
    outcome = asyncio.run(strict.evaluate(doc2_6(), doc2_6_answer()))
    assert [(issue.code, issue.severity) for issue in outcome.issues] == [("V4-AGENT-FAILED", "BLOCKER")]
    assert outcome.evidence_quality_score is None
    lenient = RetryOrchestrator(CountingModel(failing=["V4"]), on_agent_failure="ignore")
    restored = asyncio.run(lenient.evaluate(doc2_6(), doc2_6_answer()))
    assert (restored.issues, restored.evidence_quality_score) == ((), 1.0)
    assert restored.verdict.decision == "AUTO_ACCEPT"
