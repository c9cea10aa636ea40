"""Planted faults: one at a time, consistent, raised by no check, and with quotes that stand on their pages."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from review.conftest import Build

from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor
from evalkit.classification.v5_arbiter import Decision, V5DecisionMaker
from evalkit.review.attention_checks.planting import plant_answer_fault
from evalkit.review.corrections import CLASSIFICATION_PARTS, correct_classification, repair_validated_classification

TYPES = [kind.value for kind in DocumentType]
READING = Build.issue("reader-0001", "MAJOR", code="READER-PICTURE", page=1)

Drawn = list[tuple[int, int, str]]


@st.composite
def documents(draw: st.DrawFn) -> tuple[Drawn, bool]:
    """Segments of a document, and whether an expert drew them: without quotes, reasons and doubts."""
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    ends = [sum(lengths[: at + 1]) for at in range(len(lengths))]
    kinds = [draw(st.sampled_from(TYPES)) for _ in lengths]
    starts = [1, *(end + 1 for end in ends[:-1])]
    return list(zip(starts, ends, kinds, strict=True)), draw(st.booleans())


def made(segments: Drawn) -> tuple[Any, ClassificationOutput]:
    total = segments[-1][1]
    bundle = Build.bundle(
        [(f"The anchor of page {n} is set here", f"A second line of page {n}") for n in range(1, total + 1)]
    )
    shares: dict[str, float] = {}
    for start, end, kind in segments:
        shares[kind] = shares.get(kind, 0.0) + (end - start + 1) / total
    parts = [
        Build.segment(at, start, end, kind, evidence=[(f"The anchor of page {start} is set here", start)])
        for at, (start, end, kind) in enumerate(segments, 1)
    ]
    dominant = max(shares, key=lambda kind: shares[kind])
    return bundle, Build.answer(parts, shares, dominant)


@settings(max_examples=40, deadline=None)
@given(documents(), st.integers(0, 99))
@example(([(1, 1, "Other"), (2, 2, "Other"), (3, 3, "Genomic Report"), (4, 5, "Clinical Note")], True), 1)
def test_there_is_one_fault_and_nothing_but_a_person_can_see_it(drawn: tuple[Drawn, bool], seed: int) -> None:
    segments, is_expert = drawn
    bundle, agent = made(segments)
    truth = correct_classification(agent, bundle, segments=segments) if is_expert else agent
    packet = Build.packet(Build.result(agent, [READING]), bundle)
    planted = plant_answer_fault(truth, packet, bundle, random.Random(seed))
    if planted is None:  # only a tie of two types leaves nothing to plant in
        _, ended = zip(*((end - start + 1, kind) for start, end, kind in segments), strict=True)
        assert len(set(ended)) > 1
        return
    answer, fault, issues = planted
    shown = [(one.start_page, one.end_page, one.dominant_type) for one in answer.segments]
    if fault.kind == "type":
        assert [one[:2] for one in shown] == [one[:2] for one in segments]
        (differing,) = [at for at, (one, other) in enumerate(zip(shown, segments, strict=True)) if one != other]
        assert (fault.start_page, fault.end_page, fault.shown_type) == shown[differing]
        assert fault.true_type == segments[differing][2]
        assert fault.true_dominant == truth.dominant_type_overall
    else:
        starts, known = ({one[0] for one in each} for each in (shown, segments))
        assert known - starts == {fault.true_start}
        assert starts - known == ({fault.shown_start} if fault.kind == "boundary" else set())
        assert {kind for *_, kind in shown} <= {kind for *_, kind in segments}
    # An expert who overlooks it can validate it, V5 sends it to a person, and no check has more to say than before.
    after, repairs = repair_validated_classification(answer, issues, bundle, CLASSIFICATION_PARTS)
    assert (after, repairs) == (answer, [])
    checks = (V1SchemaValidator(), V2ConsistencyChecker(), V3TrapDetector())
    before = [
        *(issue for one in checks for issue in one.validate(truth, bundle)),
        *V4EvidenceQualityAssessor().validate(truth, bundle).issues,
    ]
    assert Counter(one.code for one in issues) - Counter(one.code for one in before) == {"READER-PICTURE": 1}
    assert V5DecisionMaker().decide(issues).decision is Decision.ESCALATE_TO_SME
    for one in answer.segments:
        assert one.reasoning
        mine = next(row for row in one.segment_composition if row.document_type == one.dominant_type)
        assert mine.top_evidence
        assert mine.confidence == 0.9, "an expert's 1.0 would tell"
        for quote in mine.top_evidence:
            assert one.start_page <= quote.page <= one.end_page
            assert quote.snippet in bundle.page(quote.page).text


def test_what_the_arbiter_would_have_accepted_is_not_used() -> None:
    bundle, agent = made([(1, 2, TYPES[0]), (3, 5, TYPES[1])])
    assert plant_answer_fault(agent, Build.packet(Build.result(agent), bundle), bundle, random.Random(1)) is None
    assert (
        plant_answer_fault(agent, Build.packet(Build.result(agent, [READING]), bundle), bundle, random.Random(1))
        is not None
    )


def test_what_a_model_said_stays_where_it_still_fits() -> None:
    segments = [(1, 2, TYPES[0]), (3, 5, TYPES[1])]
    bundle, agent = made(segments)
    about = [
        Build.issue(f"V2-000{at}", "MAJOR", code="V2-SEMANTIC", origin="rule", segment_index=at, page=start)
        for at, (start, *_) in enumerate(segments, 1)
    ]
    packet = Build.packet(Build.result(agent, about), bundle)
    for seed in range(20):
        planted = plant_answer_fault(agent, packet, bundle, random.Random(seed))
        assert planted is not None
        _, fault, issues = planted
        assert fault.kind == "type", "a moved boundary leaves no segment that was spoken of"
        (kept,) = [one.segment_index for one in issues if one.code == "V2-SEMANTIC"]
        assert kept == (2 if fault.start_page == 1 else 1)


def test_what_an_own_verifier_said_elsewhere_is_kept() -> None:
    """It is not run again: without its issues a planted case would be told from the others."""
    bundle, agent = made([(1, 2, "Genomic Report"), (3, 4, "Clinical Note")])
    issues = [
        *(Build.issue(f"ACME-{page:04d}", "MAJOR", code="ACME-DOSE", page=page) for page in range(1, 5)),
        Build.issue("ACME-0005", "BLOCKER", code="ACME-AGENT-FAILED"),
    ]
    packet = Build.packet(Build.result(agent, issues), bundle)
    planted = plant_answer_fault(agent, packet, bundle, random.Random(1))
    assert planted is not None
    _, fault, shown_issues = planted
    shown = [(issue.code, issue.page) for issue in shown_issues if issue.agent == "ACME"]
    elsewhere = [page for page in range(1, 5) if not fault.start_page <= page <= fault.end_page]
    assert elsewhere
    assert shown == [("ACME-AGENT-FAILED", None), *(("ACME-DOSE", page) for page in elsewhere)]
