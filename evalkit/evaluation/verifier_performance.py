"""Performance of rules: precision and cost.

Everything is computed from a :class:`~evalkit.evaluation.study.Study`. To learn if a rule alone caused an escalation,
the arbiter decides again without that rule's issues. The column ``simulated`` of each table counts judgements by
simulated reviewers (programs).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

import pandas as pd

from evalkit.classification.v5_arbiter import Decision, V5DecisionMaker
from evalkit.core.grouping import group_by
from evalkit.evaluation.intervals import (
    estimate_proportion,
)
from evalkit.evaluation.metrics import is_exact_segmentation, merge_same_type_neighbours
from evalkit.evaluation.study import DocumentLabels, DocumentRecord, IssueWithVerdict, KnownTruth, ReviewRecord, Study
from evalkit.review import ADJUDICATION_SUFFIX, SECOND_SUFFIX, get_issue_answers

#: A rule is worth its cost if more than this share of its escalations is needed: one wrongly accepted document costs
#: more than nine needless reviews.
PAYOFF_SHARE = 0.1

#: Maximum number of cases up to which the number of further cases needed for a judgement is reported.
_MAX_FURTHER_CASES = 10_000

ErrorLevel = Literal["type", "segments", "segments merged"]
ERROR_LEVELS: tuple[ErrorLevel, ...] = ("type", "segments", "segments merged")

RULE_COLUMNS = (
    *("agent", "code", "origin", "documents", "raised", "confirmed", "dismissed", "unjudged"),
    *("judged", "precision", "low", "high", "method", "wrong"),
    *("alone", "validated", "corrected", "open", "minutes", "untimed", "verdict", "simulated"),
)

#: (agent, code, origin) of an issue.
RuleKey = tuple[str, str, str]


# ---------------------------------------------------------------------------------------------------------------------
# What each rule raises and costs


def tabulate_rule_performance(study: Study, *, payoff_share: float = PAYOFF_SHARE) -> pd.DataFrame:
    """Tabulate precision and cost of each rule, by agent, code and origin.

    Columns: agent, code, origin: the rule that raised the issues. documents, raised: number of documents and of issues,
        including repaired issues. confirmed, dismissed, unjudged: number of issues that experts confirmed, dismissed or
        did not judge. judged, precision, low, high, method: number of judged issues; confirmed share of them, 0..1,
        with the exact 95 %
            interval, which treats issues of one document as independent. The precision is None if no issue was judged.
        wrong: number of documents whose answer or quote is known to be wrong: the errors that the rule caught.
        alone: number of escalated documents that the arbiter would have accepted without the rule's issues. Documents
            that would have been retried are not counted.
        validated, corrected, open: number of documents in ``alone`` whose answer was right (the escalation was
            needless), wrong (also if only a quote was struck), or of unknown truth.
        minutes, untimed: the experts' active time on the documents in ``alone``; number of reviews without measured
            time.
        verdict: judgement in words. It is definite only if the interval of the share corrected / (validated +
            corrected) lies entirely below or above ``payoff_share`` (0..1).
        simulated: number of the row's documents with a review or truth by a simulated reviewer (a program).
    """
    return summarise_rule_cases(tabulate_rule_cases(study), payoff_share=payoff_share)


#: The counts of a rule's cases, and the columns of the rules' table into which their sums go.
_CASE_COUNTS = (
    *("documents", "raised", "confirmed", "dismissed", "unjudged", "wrong"),
    *("alone", "validated", "corrected", "open", "minutes", "untimed", "simulated"),
)


def tabulate_rule_cases(study: Study) -> pd.DataFrame:
    """Tabulate the issues of each rule about each document, one row per pair.

    Columns: ``position`` of the document in the study, ``agent``, ``code``, ``origin``, and the counts of
    :func:`tabulate_rule_performance`, of this document alone.
    """
    rows = [
        (position, *rule_key, *_count_rule_case(document, rule_key, issues))
        for position, document in enumerate(study.documents)
        for rule_key, issues in group_by(document.issues, get_rule_key).items()
    ]
    return pd.DataFrame(rows, columns=["position", "agent", "code", "origin", *_CASE_COUNTS])


def _count_rule_case(
    document: DocumentRecord, rule_key: RuleKey, issues: Sequence[IssueWithVerdict]
) -> tuple[float, ...]:
    verdicts = [issue.expert_verdict for issue in issues]
    is_sole, is_needed = is_sole_escalator(document, rule_key), _is_escalation_needed(document)
    durations = [review.active_seconds for review in document.reviews if is_sole and review.outcome != "reopened"]
    return (
        1,
        len(verdicts),
        *(verdicts.count(verdict) for verdict in ("confirmed", "dismissed", None)),
        is_needed is True,
        is_sole,
        *(is_sole and is_needed is outcome for outcome in (False, True, None)),
        sum(seconds for seconds in durations if seconds is not None) / 60,
        durations.count(None),
        _has_simulated_reviews(document),
    )


def summarise_rule_cases(cases: pd.DataFrame, *, payoff_share: float = PAYOFF_SHARE) -> pd.DataFrame:
    """Summarise the rows of :func:`tabulate_rule_cases` by rule."""
    sums = (
        cases.astype(dict.fromkeys(_CASE_COUNTS, float)).groupby(["agent", "code", "origin"])[list(_CASE_COUNTS)].sum()
    )
    table = sums.astype(dict.fromkeys(set(_CASE_COUNTS) - {"minutes"}, int)).reset_index()
    table["judged"] = table["confirmed"] + table["dismissed"]
    precisions = [estimate_proportion(*counts) for counts in zip(table["confirmed"], table["judged"], strict=True)]
    for name, field in (("precision", "value"), ("low", "low"), ("high", "high"), ("method", "method")):
        table[name] = [getattr(precision, field) for precision in precisions]
    table["verdict"] = [
        describe_rule_worth(corrected, validated, payoff_share) if alone else "never the only reason for an escalation"
        for corrected, validated, alone in zip(table["corrected"], table["validated"], table["alone"], strict=True)
    ]
    return table[list(RULE_COLUMNS)]


def get_rule_key(issue: IssueWithVerdict) -> RuleKey:
    """Return the (agent, code, origin) by which issues are grouped into rules."""
    return issue.agent, issue.code, issue.origin


def is_sole_escalator(document: DocumentRecord, rule_key: RuleKey) -> bool:
    """Return True if the document was escalated only because of this rule.

    The arbiter decides again without the rule's issues and would accept the document.
    """
    if document.decision != Decision.ESCALATE_TO_SME:
        return False
    remaining_issues = [issue for issue in document.issues if get_rule_key(issue) != rule_key]
    return V5DecisionMaker().decide(remaining_issues).decision is Decision.AUTO_ACCEPT


def _is_escalation_needed(document: DocumentRecord) -> bool | None:
    """Return True if the current answer or a quote of it is wrong or missing.

    None if unknown. The current answer is compared, because a later run may have corrected what an expert once corrected.
    """
    truth, agent_labels = document.truth, document.agent_labels
    if truth is None:
        return None
    if agent_labels is None or any(map(_is_quote_struck, document.issues)):
        return True
    differing_parts = [_is_different_from_truth(agent_labels, truth, level) for level in ERROR_LEVELS]
    if truth.source == "SME_CORRECTED" and truth.is_vouched("mixture"):
        claimed_labels, true_labels = agent_labels, truth.labels
        differing_parts.append(
            (claimed_labels.presence_levels, claimed_labels.mixture_shares)
            != (true_labels.presence_levels, true_labels.mixture_shares)
        )
    return True if True in differing_parts else False if False in differing_parts else None


def _is_quote_struck(issue: IssueWithVerdict) -> bool:
    return issue.expert_verdict == "confirmed" and get_issue_answers(issue).effect == "strike_quote"


def count_struck_quotes(study: Study) -> tuple[int, int]:
    """Count the quotes that experts struck out, and their documents.

    They are errors of evidence, and never errors of type or segments.
    """
    counts = [review.struck_quotes for document in study.documents if (review := _find_deciding_review(document))]
    return sum(counts), sum(map(bool, counts))


def _has_simulated_reviews(document: DocumentRecord) -> bool:
    return any(review.is_simulated for review in document.reviews) or bool(
        document.truth and document.truth.is_simulated
    )


def describe_rule_worth(corrected_count: int, validated_count: int, payoff_share: float = PAYOFF_SHARE) -> str:
    """Describe whether the errors that a rule finds are worth the expert's time.

    A rule is worth its cost if more than ``payoff_share`` (0..1) of its escalations is needed (the answer was
    corrected). If the interval is inconclusive, the sentence says how many further cases would be needed, assuming the
    same share of corrections (no corrections if no case was judged yet).

    >>> describe_rule_worth(0, 40), describe_rule_worth(8, 2), describe_rule_worth(1, 9)
    ('costs more than it gives', 'gives more than it costs', 'cost and benefit about equal: more cases would not tell')
    >>> describe_rule_worth(0, 3), describe_rule_worth(0, 0)
    ('too few judged: 33 more needed', 'too few judged: 36 more needed')
    """
    judged = corrected_count + validated_count
    corrected_share = corrected_count / judged if judged else 0.0

    def is_conclusive(case_count: int) -> bool:
        estimate = estimate_proportion(corrected_share * case_count, case_count)
        return estimate.high < payoff_share or estimate.low > payoff_share

    if is_conclusive(judged):
        return "costs more than it gives" if corrected_share < payoff_share else "gives more than it costs"
    further_cases = bisect_left(range(judged, _MAX_FURTHER_CASES), True, key=is_conclusive)
    if judged + further_cases >= _MAX_FURTHER_CASES:
        return "cost and benefit about equal: more cases would not tell"
    return f"too few judged: {further_cases} more needed"


def _is_different_from_truth(agent_labels: DocumentLabels, truth: KnownTruth, level: ErrorLevel) -> bool | None:
    """Return True if the labels are missing or differ from the truth at this level.

    None if this part of the truth is not vouched for.
    """
    if level == "type":
        return agent_labels.dominant_type != truth.labels.dominant_type if truth.is_vouched("dominant_type") else None
    if not truth.is_vouched("segments"):
        return None
    normalise_spans = merge_same_type_neighbours if level == "segments merged" else list
    return not is_exact_segmentation(
        normalise_spans(truth.labels.segments), normalise_spans(agent_labels.segments), compare_types=True
    )


def _find_deciding_review(document: DocumentRecord) -> ReviewRecord | None:
    """Find the review that gave the truth; None if no review did."""
    own_reviews = [review for review in document.reviews if not review.case_id.endswith(SECOND_SUFFIX)]
    deciding_reviews = [review for review in own_reviews if review.case_id.endswith(ADJUDICATION_SUFFIX)] or own_reviews
    if not deciding_reviews or document.truth is None or document.truth.source == "GOLD":
        return None
    return deciding_reviews[-1]
