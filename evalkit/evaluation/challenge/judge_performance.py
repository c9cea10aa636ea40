"""Performance and cost of the models that judge answers, for each verifier.

Only what a model says counts here, not what rules compute beside it. A role is measured on the semantic faults that are
meant for it: structure and quotes are computed, so its model is not asked about them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from evalkit.classification.orchestrator import ClassificationOutcome
from evalkit.classification.v4_evidence_quality import PENALTY_BY_SEVERITY
from evalkit.evaluation.challenge.mutated_answer import MutationOperator
from evalkit.evaluation.error_ranking import compute_auroc
from evalkit.evaluation.intervals import (
    BOOTSTRAP_REPEATS,
    BOOTSTRAP_SEED,
    Estimate,
    estimate_by_bootstrap,
    estimate_prevalence_from_imperfect_test,
    estimate_proportion,
)
from evalkit.issue import Issue


@dataclass(frozen=True)
class JudgingRole:
    """A role in which a model judges answers."""

    agents: frozenset[str]
    """The verifiers for which it speaks."""
    prompt_name: str


JUDGING_ROLES: Mapping[str, JudgingRole] = {
    "V2": JudgingRole(frozenset({"V2"}), "V2_Internal_Consistency_Checker"),
    "V3": JudgingRole(frozenset({"V3"}), "V3_Trap_Detector"),
    "V4": JudgingRole(frozenset({"V4"}), "V4_Evidence_Quality_Assessor"),
    "verifier": JudgingRole(frozenset({"V2", "V3", "V4"}), "Merged_Verifier"),
}


@dataclass(frozen=True)
class RoleJudgement:
    """Verdict of one role's model on one answer."""

    role: str
    has_alarm: bool
    """True if it raised a BLOCKER or MAJOR issue; about a planted fault, one that the clean answer did not raise."""
    suspicion: int
    """Sum of the issues' penalties: 30 for each BLOCKER, 15 for each MAJOR, 5 for each MINOR."""
    calls: int
    cost_usd: str | None
    """Cost of its calls in US dollars, as text; None if the price is unknown."""


def list_role_judgements(outcome: ClassificationOutcome, grave_issues: Sequence[Issue]) -> tuple[RoleJudgement, ...]:
    """List the verdict of each role's model about an answer.

    A role that gave no answer is left out.

    ``grave_issues``: the BLOCKER and MAJOR issues that count as alarms.
    """
    return tuple(
        RoleJudgement(
            role,
            any(issue.origin == "model" and issue.agent in JUDGING_ROLES[role].agents for issue in grave_issues),
            sum(
                PENALTY_BY_SEVERITY[issue.severity]
                for issue in outcome.issues
                if issue.origin == "model" and issue.agent in JUDGING_ROLES[role].agents
            ),
            usage.calls,
            usage.cost_usd,
        )
        for role, usage in outcome.usage.by_agent.items()
        if role in JUDGING_ROLES and JUDGING_ROLES[role].agents.isdisjoint(outcome.unanswered)
    )


@dataclass(frozen=True)
class JudgePerformance:
    """Detection, false alarms and cost of one role's model."""

    role: str
    model: str
    prompt_version: str
    detected: int
    detection_rate: Estimate
    """Share of the planted faults meant for the role that its model noticed; exact interval."""
    false_alarms: int
    false_alarm_rate: Estimate
    """Share of the answers known to be right about which it raised an alarm; exact interval."""
    auroc: Estimate
    """Probability that a planted fault looks more suspicious to it than a right answer, ties counted half."""
    calls_per_error: Estimate
    """Calls for each planted fault that it noticed; the interval is that of the detection rate."""
    usd_per_error: Estimate
    """US dollars for each planted fault that it noticed; without value if a price is unknown."""
    flagged: int
    """Number of alarms about unvalidated answers."""
    wrong_share: Estimate
    """Share of wrong answers among the unvalidated ones: the share of alarms, corrected for missed faults and false
    alarms. Holds if real errors are as easy to notice as planted ones."""

    def to_json(self) -> dict[str, Any]:
        """Return the figures as a JSON-serialisable dictionary.

        An infinite bound becomes None.
        """
        return {
            key: {name: None if number == math.inf else number for name, number in value._asdict().items()}
            if isinstance(value, Estimate)
            else value
            for key, value in vars(self).items()
        }


def is_fault_meant_for(operator: MutationOperator, role: str) -> bool:
    """Return True if the role's model, not arithmetic, should notice the fault."""
    agents = tuple(JUDGING_ROLES[role].agents)
    return operator.nature == "semantic" and any(code.startswith(agents) for code in operator.expected_codes)


def measure_judge(
    role: str,
    planted: Sequence[RoleJudgement],
    right: Sequence[RoleJudgement],
    unvalidated: Sequence[RoleJudgement],
    *,
    model_name: str,
    prompt_version: str,
) -> JudgePerformance:
    """Measure the model of one role by its verdicts.

    ``planted``: about semantic faults that are meant for the role; ``right``: about answers known to be right.
    """
    detected, false_alarms, flagged = (
        sum(judgement.has_alarm for judgement in group) for group in (planted, right, unvalidated)
    )
    detection_rate = estimate_proportion(detected, len(planted))
    costs = [judgement.cost_usd for judgement in planted]
    return JudgePerformance(
        role,
        model_name,
        prompt_version,
        detected,
        detection_rate,
        false_alarms,
        estimate_proportion(false_alarms, len(right)),
        _estimate_auroc(planted, right),
        _divide_by_detections(sum(judgement.calls for judgement in planted), detection_rate),
        _divide_by_detections(
            None if None in costs else float(sum(Decimal(cost) for cost in costs if cost is not None)), detection_rate
        ),
        flagged,
        estimate_prevalence_from_imperfect_test(
            (flagged, len(unvalidated)), (detected, len(planted)), (false_alarms, len(right))
        ),
    )


def _estimate_auroc(planted: Sequence[RoleJudgement], right: Sequence[RoleJudgement]) -> Estimate:
    """Estimate the area under the ROC curve with a bootstrap interval.

    Source: Hanley and McNeil, Radiology 143 (1982), as scikit-learn computes it.
    """
    if not (planted and right):
        return Estimate(None, 0.0, 1.0, len(planted) + len(right), "bootstrap")
    suspicions = np.array([judgement.suspicion for judgement in (*planted, *right)])
    return estimate_by_bootstrap(
        lambda rows: compute_auroc(rows < len(planted), suspicions[rows], np.ones(len(rows))),
        len(suspicions),
        seed=BOOTSTRAP_SEED,
        repeats=BOOTSTRAP_REPEATS,
    )


def _divide_by_detections(total: float | None, detection_rate: Estimate) -> Estimate:
    """Return a total of all planted faults per noticed one, without value if none was."""
    if total is None or not detection_rate.value:
        return Estimate(None, 0.0, math.inf, detection_rate.n, "exact")
    per_fault = total / detection_rate.n
    low, high = per_fault / detection_rate.high, per_fault / detection_rate.low
    return Estimate(per_fault / detection_rate.value, low, high, detection_rate.n, "exact")


JUDGE_HEAD = (
    *("judge", "model", "prompt", "faults noticed", "false alarms", "AUROC"),
    *("calls, dollars per fault noticed", "wrong among unvalidated"),
)


def format_judge_rows(judges: Sequence[JudgePerformance]) -> Iterator[tuple[str, ...]]:
    """Format the judges as rows under ``JUDGE_HEAD``, with 95 % intervals."""
    for judge in judges:
        yield (
            judge.role,
            judge.model,
            judge.prompt_version,
            f"{judge.detected} of {judge.detection_rate.n:g}{_format_share(judge.detection_rate)}",
            f"{judge.false_alarms} of {judge.false_alarm_rate.n:g}{_format_share(judge.false_alarm_rate)}",
            _format_number(judge.auroc, 2),
            f"{_format_number(judge.calls_per_error, 1)}; {_format_number(judge.usd_per_error, 4)}",
            _format_share(judge.wrong_share).removeprefix(": ") or "unknown",
        )


def _format_share(share: Estimate) -> str:
    if share.value is None:
        return ""
    return f": {100 * share.value:.0f} % ({100 * share.low:.0f}–{100 * share.high:.0f})"


def _format_number(estimate: Estimate, digits: int) -> str:
    if estimate.value is None:
        return "unknown"
    return f"{estimate.value:.{digits}f} ({estimate.low:.{digits}f}–{estimate.high:.{digits}f})"
