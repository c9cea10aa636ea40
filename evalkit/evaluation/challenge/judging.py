"""Plant faults into right answers and judge whether the verifiers catch them."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from evalkit.classification.findings import is_agent_failure_issue
from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.patient_check import ANY_PATIENT, PatientExpectation
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v2_consistency import MIXTURE_TOLERANCE
from evalkit.classification.v5_arbiter import Decision
from evalkit.evaluation.challenge.clean_answers import Evaluate, gather_bounded
from evalkit.evaluation.challenge.fault_table import FAULTS
from evalkit.evaluation.challenge.mutated_answer import (
    CleanAnswer,
    FaultNotApplicableError,
    MutatedAnswer,
    MutationOperator,
)
from evalkit.evaluation.challenge.report import FalseAlarm, JudgedMutation, MutationTestReport
from evalkit.issue import Issue, IssueSeverity
from evalkit.store import encode_canonical_json

#: Default limit of cases per fault kind: enough to tell a detection rate of 90 % from 100 %.
DEFAULT_MAX_CASES = 40
#: Default limit of cases per fault kind in one document.
DEFAULT_MAX_PLACES = 8
#: How many random places are tried before a fault kind is taken as not applicable to an answer.
_MAX_PLANTING_ATTEMPTS = 3


async def plant_and_judge_mutations(
    clean_answers: Sequence[CleanAnswer],
    orchestrator: RetryOrchestrator,
    operators: Sequence[MutationOperator] = FAULTS,
    *,
    max_cases_per_kind: int = DEFAULT_MAX_CASES,
    seed: int = 0,
    max_places_per_document: int = DEFAULT_MAX_PLACES,
    max_concurrent: int = 1,
    patient_expectation: PatientExpectation = ANY_PATIENT,
) -> MutationTestReport:
    """Plant faults into accepted clean answers and let the verifiers judge each.

    At most ``max_places_per_document`` faults of one kind are planted into one document. The order of the documents
    depends on the seed, so that the limit of cases favours none. ``patient_expectation``: what is known about the
    patients of every file.
    """
    evaluate = partial(orchestrator.evaluate, patient_expectation=patient_expectation)
    clean_outcomes = await gather_bounded(
        [partial(evaluate, candidate.bundle, candidate.classification.to_json()) for candidate in clean_answers],
        max_concurrent,
    )
    evaluated_pairs = list(zip(clean_answers, clean_outcomes, strict=True))
    # If a verifier gave no answer about the clean document, it is unknown whether that document would have escalated.
    answered_pairs = [pair for pair in evaluated_pairs if not pair[1].unanswered]
    unanswered_problems = [
        f"{clean_answer.bundle.doc_id}: left out, because a verifier gave no answer about this document"
        for clean_answer, clean_outcome in evaluated_pairs
        if clean_outcome.unanswered
    ]
    accepted_pairs = [pair for pair in answered_pairs if pair[1].verdict.decision is Decision.AUTO_ACCEPT]
    false_alarms = [
        _build_false_alarm(clean_answer, clean_outcome)
        for clean_answer, clean_outcome in answered_pairs
        if clean_outcome.verdict.decision is not Decision.AUTO_ACCEPT and clean_answer.origin.is_vouched_from_outside
    ]
    skipped_counts: Counter[str] = Counter()
    mutations: list[_PlantedMutation] = []
    for operator in operators:
        mutations += _plant_faults_of_kind(
            operator, accepted_pairs, max_places_per_document, max_cases_per_kind, seed, skipped_counts
        )
        skipped_counts[operator.fault_id] += 0
    cases = await gather_bounded(
        [partial(_judge_mutation, evaluate, candidate) for candidate in mutations], max_concurrent
    )
    return MutationTestReport(
        "",
        Counter(clean_answer.origin for clean_answer, _ in answered_pairs),
        tuple(false_alarms),
        tuple(cases),
        dict(skipped_counts),
        problems=tuple(unanswered_problems),
    )


@dataclass(frozen=True)
class _PlantedMutation:
    """A planted fault before the verifiers have judged it."""

    operator: MutationOperator
    mutated_answer: MutatedAnswer
    clean_outcome: ClassificationOutcome
    place: int


def _plant_faults_of_kind(
    operator: MutationOperator,
    accepted_pairs: Sequence[tuple[CleanAnswer, ClassificationOutcome]],
    max_places: int,
    max_case_count: int,
    seed: int,
    collected_skipped_counts: Counter[str],
) -> Iterator[_PlantedMutation]:
    """Yield up to ``max_case_count`` mutations of one kind, spread over documents.

    Documents to which the kind does not apply are counted in ``collected_skipped_counts``.
    """
    shuffled_pairs = sorted(
        accepted_pairs, key=lambda pair: _create_random_source(seed, operator.fault_id, pair[0].bundle.sha256).random()
    )
    seen_digests: set[str] = set()
    case_count = 0
    for place in range(max_places):
        for clean_answer, clean_outcome in shuffled_pairs:
            if case_count >= max_case_count:
                return
            mutated_answer = _plant_fault(
                operator,
                clean_answer,
                _create_random_source(seed, operator.fault_id, clean_answer.bundle.sha256, place),
            )
            if mutated_answer is None:
                collected_skipped_counts[operator.fault_id] += place == 0
                continue
            if (content_digest := _digest_visible_content(mutated_answer)) not in seen_digests:
                seen_digests.add(content_digest)
                case_count += 1
                yield _PlantedMutation(operator, mutated_answer, clean_outcome, place)


def _digest_visible_content(mutated_answer: MutatedAnswer) -> str:
    """Hash everything a verifier sees: the PDF's hash, the answer and all page texts."""
    page_texts = [[block.text for block in page.blocks] for page in mutated_answer.bundle.pages]
    return hashlib.sha256(
        encode_canonical_json([mutated_answer.bundle.sha256, mutated_answer.answer_json, page_texts])
    ).hexdigest()


def _create_random_source(*seed_parts: object) -> random.Random:
    return random.Random(":".join(map(str, seed_parts)))  # noqa: S311 - it draws places, no secrets


def _plant_fault(
    operator: MutationOperator, clean_answer: CleanAnswer, random_source: random.Random
) -> MutatedAnswer | None:
    for _ in range(_MAX_PLANTING_ATTEMPTS):
        mutated_answer = MutatedAnswer.from_clean_answer(clean_answer)
        with suppress(FaultNotApplicableError):
            operator.plant(mutated_answer, random_source)
            return mutated_answer
    return None


async def _judge_mutation(evaluate: Evaluate, mutation: _PlantedMutation) -> JudgedMutation:
    mutated_answer, operator = mutation.mutated_answer, mutation.operator
    mutated_outcome = await evaluate(mutated_answer.bundle, mutated_answer.answer_json)
    new_issues = _find_new_issues(mutation.clean_outcome, mutated_outcome)
    outcome = _determine_outcome_name(mutated_answer.clean_answer.classification, mutated_outcome, new_issues)
    is_caught, agents = outcome in ("escalated", "undone"), {issue.agent for issue in new_issues}
    return JudgedMutation(
        doc_id=mutated_answer.bundle.doc_id,
        kind=operator.fault_id,
        nature=operator.nature,
        place=mutation.place,
        caught=is_caught,
        caught_by_other=is_caught and not any(issue.code.startswith(operator.expected_codes) for issue in new_issues),
        outcome=outcome,
        severity=min((issue.severity for issue in new_issues), key=lambda severity: severity.rank, default=None),
        agents=tuple(sorted(agents)),
        codes=tuple(sorted({issue.code for issue in new_issues})),
        decision=mutated_outcome.verdict.decision.value,
        decision_rule=mutated_outcome.verdict.rule,
        unanswered=bool(mutated_outcome.unanswered),
    )


def _build_false_alarm(clean_answer: CleanAnswer, clean_outcome: ClassificationOutcome) -> FalseAlarm:
    grave_issues = (issue for issue in clean_outcome.issues if issue.severity is not IssueSeverity.MINOR)
    return FalseAlarm(clean_answer.bundle.doc_id, tuple(sorted({issue.code for issue in grave_issues})))


def _find_new_issues(clean_outcome: ClassificationOutcome, mutated_outcome: ClassificationOutcome) -> list[Issue]:
    """Return the BLOCKER and MAJOR issues that the clean answer did not raise.

    Repaired issues are included; issues about a failed agent are not.
    """

    def encode_content(issue: Issue) -> str:
        return issue.model_dump_json(exclude={"issue_id", "status", "facts"})

    unmatched_counts = Counter(map(encode_content, clean_outcome.issues))
    new_issues = []
    for issue in mutated_outcome.issues:
        if issue.severity is IssueSeverity.MINOR or is_agent_failure_issue(issue):
            continue
        unmatched_counts[encode_content(issue)] -= 1
        if unmatched_counts[encode_content(issue)] < 0:
            new_issues.append(issue)
    return new_issues


def _determine_outcome_name(
    clean_classification: ClassificationOutput, mutated_outcome: ClassificationOutcome, new_issues: Sequence[Issue]
) -> str:
    if mutated_outcome.verdict.decision is not Decision.AUTO_ACCEPT:
        return "escalated" if new_issues else "missed"  # escalated only because an agent failed: nothing was detected
    if not any(issue.status == "repaired" for issue in new_issues):
        return "missed"
    return (
        "undone"
        if mutated_outcome.classification
        and is_nearly_same_classification(clean_classification, mutated_outcome.classification)
        else "repaired_otherwise"
    )


def is_nearly_same_classification(first: ClassificationOutput, second: ClassificationOutput) -> bool:
    """Return True if two answers are equal, apart from share differences up to 0.05."""
    (first_answer, first_shares), (second_answer, second_shares) = _separate_shares(first), _separate_shares(second)
    are_shares_close = all(
        abs(a - b) <= float(MIXTURE_TOLERANCE) for a, b in zip(first_shares, second_shares, strict=False)
    )
    return first_answer == second_answer and are_shares_close


def _separate_shares(classification: ClassificationOutput) -> tuple[dict[str, Any], list[float]]:
    """Return the answer as JSON without shares, types sorted, and its shares."""
    answer_json = classification.to_json()
    shares: list[float] = []
    for rows, share_key in [
        *((segment["segment_composition"], "segment_share") for segment in answer_json["segments"]),
        (answer_json["document_mixture"], "overall_share"),
    ]:
        rows.sort(key=lambda row: row["document_type"])
        shares += [row.pop(share_key) for row in rows]
    return answer_json, shares
