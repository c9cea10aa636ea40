"""Performance of verifiers and rules: cost, errors stopped, errors missed.

Everything is computed from a :class:`~evalkit.evaluation.study.Study`; what the arbiter would say of fewer issues is asked
of the arbiter. Every frame says in ``simulated`` how many of the judgements behind a row a program made.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pandas as pd

from evalkit.classification.v5_arbiter import Decision, V5DecisionMaker
from evalkit.core.grouping import group_by, group_pairs
from evalkit.evaluation.domain_estimation import CertainlyReviewedCounts, DrawnDocument, estimate_hit_share_in_domain
from evalkit.evaluation.headline_estimates import is_outside_random_draw
from evalkit.evaluation.intervals import Estimate, estimate_proportion
from evalkit.evaluation.metrics import is_exact_segmentation, merge_same_type_neighbours
from evalkit.evaluation.study import DocumentLabels, DocumentRecord, IssueWithVerdict, KnownTruth, Study
from evalkit.issue import Issue
from evalkit.pipeline.supplied_labels import MAX_PAGE_NUMBER, TypedPageRange
from evalkit.review.kinds.classification import COUNTED_ISSUES_BY_RULE
from evalkit.review.packet import ADJUDICATION_SUFFIX, SECOND_SUFFIX

#: Share of needed escalations from which a rule pays: a wrong accept costs more than nine cases looked at for nothing.
PAYOFF_SHARE = 0.1

#: Beyond this, no number of further cases is promised to tell.
_MAX_FURTHER_CASES = 10_000

ErrorLevel = Literal["type", "segments", "segments merged"]
ERROR_LEVELS: tuple[ErrorLevel, ...] = ("type", "segments", "segments merged")

RULE_COLUMNS = (
    *("agent", "code", "origin", "documents", "raised", "confirmed", "dismissed", "unjudged"),
    *("judged", "precision", "low", "high", "method"),
    *("alone", "validated", "corrected", "open", "minutes", "untimed", "verdict", "simulated"),
)
STOPPED_COLUMNS = (
    *("level", "kind", "who", "errors", "stopped", "share", "low", "high", "n", "method"),
    *("reviewed_share", "reviewed_low", "reviewed_high", "documents", "simulated"),
)
MISSED_COLUMNS = (
    *("doc_id", "differs", "was", "is", "pages", "remarks", "decision", "reason"),
    *("review_reason", "source", "note_length", "simulated"),
)

#: Agent, code, origin.
RuleKey = tuple[str, str, str]


# ---------------------------------------------------------------------------------------------------------------------
# What each rule raises and costs


def tabulate_rule_performance(study: Study, *, payoff_share: float = PAYOFF_SHARE) -> pd.DataFrame:
    """One row per agent, code and origin, in that order.

    Columns:
        agent, code, origin: who raises it.
        documents, raised: in how many documents, how many issues, repaired ones too.
        confirmed, dismissed, unjudged: what experts said of these issues; nothing was said of the last.
        judged, precision, low, high, method: confirmed among the judged, 0..1, with the exact 95 % interval, which takes
            issues of one document for independent. None where none was judged.
        alone: documents that would have been accepted without the row's issues, by the arbiter's table on the open ones
            that remain. One that would have been sent back for a repair is not among them.
        validated, corrected, open: of these, the answer was right as it was (the escalation was needless), or not, or
            unknown.
        minutes, untimed: active time of the experts on these, where it was measured; answers where it was not.
        verdict: in words; a judgement only where the interval of corrected among validated and corrected is on one side
            of ``payoff_share`` (0..1).
        simulated: documents of the row on whose case a program said something.
    """
    issues_by_rule = group_pairs(
        (rule_key, (document, issues))
        for document in study.documents
        for rule_key, issues in group_by(document.issues, get_rule_key).items()
    )
    rows = [
        _build_rule_row(rule, raised_issues, payoff_share) for rule, raised_issues in sorted(issues_by_rule.items())
    ]
    return pd.DataFrame(rows, columns=list(RULE_COLUMNS))


def get_rule_key(issue: IssueWithVerdict) -> RuleKey:
    """Return the key by which findings are counted together."""
    return issue.agent, issue.code, issue.origin


def is_sole_escalator(document: DocumentRecord, rule_key: RuleKey) -> bool:
    """Return True if the arbiter would have accepted the document without that rule."""
    if document.decision != Decision.ESCALATE_TO_SME:
        return False
    remaining_issues = [_convert_to_issue(issue) for issue in document.issues if get_rule_key(issue) != rule_key]
    return V5DecisionMaker().decide(remaining_issues).decision is Decision.AUTO_ACCEPT


def _convert_to_issue(issue_with_verdict: IssueWithVerdict) -> Issue:
    """Convert the finding to an issue for the arbiter."""
    # The verdict is an expert's there and that of a quote here; the group decides nothing.
    return Issue.model_validate(issue_with_verdict._asdict() | {"verdict": None, "ig_id": ""})


def _build_rule_row(
    rule_key: RuleKey, raised_issues: Sequence[tuple[DocumentRecord, list[IssueWithVerdict]]], payoff_share: float
) -> dict[str, Any]:
    verdicts = [issue.verdict for _, issues in raised_issues for issue in issues]
    confirmed, dismissed = verdicts.count("confirmed"), verdicts.count("dismissed")
    precision = estimate_proportion(confirmed, confirmed + dismissed)
    sole_documents = [record for record, _ in raised_issues if is_sole_escalator(record, rule_key)]
    needed_flags = [_is_escalation_needed(record) for record in sole_documents]
    durations = [
        review.active_seconds for record in sole_documents for review in record.reviews if review.outcome != "reopened"
    ]
    return {
        **dict(zip(("agent", "code", "origin"), rule_key, strict=True)),
        "documents": len(raised_issues),
        "raised": len(verdicts),
        "confirmed": confirmed,
        "dismissed": dismissed,
        "unjudged": verdicts.count(None),
        "judged": confirmed + dismissed,
        "precision": precision.value,
        "low": precision.low,
        "high": precision.high,
        "method": precision.method,
        "alone": len(sole_documents),
        "validated": needed_flags.count(False),
        "corrected": needed_flags.count(True),
        "open": needed_flags.count(None),
        "minutes": sum(record for record in durations if record is not None) / 60,
        "untimed": durations.count(None),
        "verdict": describe_rule_worth(needed_flags.count(True), needed_flags.count(False), payoff_share)
        if sole_documents
        else "escalates nothing alone",
        "simulated": sum(_has_simulated_reviews(record) for record, _ in raised_issues),
    }


def _is_escalation_needed(document: DocumentRecord) -> bool | None:
    """Return True if today's answer needs correction; None if unknown.

    What an expert once corrected may be right today: a later run may have answered otherwise.
    """
    truth, agent_labels = document.truth, document.agent_labels
    if truth is None:
        return None
    if agent_labels is None:
        return True
    differing_parts = [_is_different_from_truth(agent_labels, truth, level) for level in ERROR_LEVELS]
    if truth.source == "SME_CORRECTED" and truth.is_vouched("mixture"):
        claimed_labels, true_labels = agent_labels, truth.labels
        differing_parts.append(
            (claimed_labels.presence_levels, claimed_labels.mixture_shares)
            != (true_labels.presence_levels, true_labels.mixture_shares)
        )
    return True if True in differing_parts else False if False in differing_parts else None


def _has_simulated_reviews(document: DocumentRecord) -> bool:
    return any(review.is_simulated for review in document.reviews) or bool(
        document.truth and document.truth.is_simulated
    )


def describe_rule_worth(corrected_count: int, validated_count: int, payoff_share: float = PAYOFF_SHARE) -> str:
    """Describe in words if a rule gives more than it costs.

    ``payoff_share`` is the share 0..1 of needed escalations from which it does. Where the interval does not tell, how many
    more cases would, if they went on like those that are judged; with none judged, if all were needless.

    >>> describe_rule_worth(0, 40), describe_rule_worth(8, 2), describe_rule_worth(1, 9)
    ('costs more than it gives', 'gives more than it costs', 'as good as even: no number of cases would tell')
    >>> describe_rule_worth(0, 3), describe_rule_worth(0, 0)
    ('too few judged: 33 more', 'too few judged: 36 more')
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
        return "as good as even: no number of cases would tell"
    return f"too few judged: {further_cases} more"


# ---------------------------------------------------------------------------------------------------------------------
# Which errors were stopped


@dataclass(frozen=True)
class _EscalationSource:
    """Somebody or something whose share of the classifier's errors is asked for."""

    kind: Literal["any", "none", "agent", "code"]
    name: str
    matches: Callable[[frozenset[tuple[str, str]]], object]
    """True, or not empty, of the agents and codes that escalated a document where it is one of them."""
    accepted_share: float = 0.0
    """The share of errors among accepted documents that it has by definition."""


class _AnsweredDocument(NamedTuple):
    """A document with an answer."""

    document: DocumentRecord
    is_answer_wrong: bool | None
    """None: unknown."""
    escalators: frozenset[tuple[str, str]]
    """Agents and codes."""


class _AnsweredPopulation(NamedTuple):
    """The documents with an answer, by how they came to be looked at."""

    known_errors: list[_AnsweredDocument]
    """Those that are known."""
    certain_documents: list[_AnsweredDocument]
    """Chance has no say in them, and they are not known to be right."""
    drawn_outcomes: list[DrawnDocument]
    """Of the others those that were looked at; inside: an error. Nothing escalated them."""
    drawable_count: int
    """How many others there are."""

    @classmethod
    def from_documents(cls, documents: Sequence[_AnsweredDocument]) -> _AnsweredPopulation:
        drawable_documents = [
            (record.document, record.is_answer_wrong)
            for record in documents
            if not is_outside_random_draw(record.document)
        ]
        return cls(
            [record for record in documents if record.is_answer_wrong],
            [
                record
                for record in documents
                if is_outside_random_draw(record.document) and record.is_answer_wrong is not False
            ],
            [
                DrawnDocument(is_answer_wrong, is_hit=False, inclusion_probability=record.review_probability)
                for record, is_answer_wrong in drawable_documents
                if record.review_probability and record.has_expert_action
            ],
            len(drawable_documents),
        )


def tabulate_escalated_errors(study: Study) -> pd.DataFrame:
    """Tabulate the share of the classifier's errors escalated, by level and source.

    An error is an answer that is wrong in a part that was vouched for. No answer, and "cannot tell", is none: it is
    escalated for want of an answer, whatever the verifiers can. The pipeline's repairs touch neither types nor
    segments, so that its answer is the classifier's first one in both.

    Columns:
        level: ``type`` of the whole document; ``segments``: all of them exactly, as they were given; ``segments merged``:
            the same with neighbours of one type as one (contract, ruling 12).
        kind, who: ``any`` and ``none``; each ``agent``; each ``code``. A document that several escalated counts for
            each. Only open issues count which the arbiter's winning row counted.
        errors, stopped: documents; those that were seen.
        share, low, high, n, method: of all errors among the processed documents, 0..1, those that nobody saw estimated
            from what was drawn; 95 % interval, in which escalated documents that nobody has judged yet count for the
            worst and the best. None where no accepted document was looked at. What is known of these documents is no
            estimate: the interval is of what was not seen, not of documents still to come.
        reviewed_share, reviewed_low, reviewed_high: reviewed only, unweighted, with the exact interval of a simple
            sample. Escalated errors are too many among them, so that verifiers look better than they are.
        documents: the doc_ids of ``tabulate_escalated_errors``.
        simulated: errors whose truth a program supplied.
    """
    escalators_by_document = [_find_escalating_agents_and_codes(document) for document in study.documents]
    stoppers = list(_iterate_escalation_sources({pair for escalators in escalators_by_document for pair in escalators}))
    rows = []
    for level in ERROR_LEVELS:
        population = _AnsweredPopulation.from_documents(
            [
                _AnsweredDocument(document, is_answer_wrong(document, level), escalators)
                for document, escalators in zip(study.documents, escalators_by_document, strict=True)
                if _has_answer(document.agent_labels, level)
            ]
        )
        rows += [{"level": level, **_build_escalated_row(stopper, population)} for stopper in stoppers]
    return pd.DataFrame(rows, columns=list(STOPPED_COLUMNS))


def is_answer_wrong(document: DocumentRecord, level: ErrorLevel) -> bool | None:
    """Return True if the answer is an error; None if it is unvouched or missing."""
    truth, agent_labels = document.truth, document.agent_labels
    if truth is None or agent_labels is None or not _has_answer(agent_labels, level):
        return None
    return _is_different_from_truth(agent_labels, truth, level)


def _is_different_from_truth(agent_labels: DocumentLabels, truth: KnownTruth, level: ErrorLevel) -> bool | None:
    """Return True if it differs from the truth, even if missing; None if unvouched."""
    if level == "type":
        return agent_labels.dominant_type != truth.labels.dominant_type if truth.is_vouched("dominant_type") else None
    if not truth.is_vouched("segments"):
        return None
    normalise_spans = merge_same_type_neighbours if level == "segments merged" else list
    return not is_exact_segmentation(
        normalise_spans(truth.labels.segments), normalise_spans(agent_labels.segments), compare_types=True
    )


def _has_answer(agent_labels: DocumentLabels | None, level: ErrorLevel) -> bool:
    """Return True if there is an answer that could be wrong."""
    if agent_labels is None:
        return False
    if level == "type":
        return agent_labels.dominant_type is not None
    return bool(agent_labels.segments) and all(segment_type is not None for *_, segment_type in agent_labels.segments)


def _find_escalating_agents_and_codes(document: DocumentRecord) -> frozenset[tuple[str, str]]:
    """Find agent and code of the open issues that made the arbiter escalate."""
    if document.decision != Decision.ESCALATE_TO_SME:
        return frozenset()
    # A row that is not in the table yet could have counted anything.
    is_counted = COUNTED_ISSUES_BY_RULE.get(document.decision_rule or "", COUNTED_ISSUES_BY_RULE["8"])
    open_issues = (issue for issue in document.issues if issue.status == "open")
    return frozenset((issue.agent, issue.code) for issue in open_issues if is_counted(_convert_to_issue(issue)))


def _iterate_escalation_sources(all_escalators: AbstractSet[tuple[str, str]]) -> Iterator[_EscalationSource]:
    yield _EscalationSource("any", "any", bool)
    yield _EscalationSource("none", "none", lambda escalators: not escalators, accepted_share=1.0)
    for stopper_name in sorted({agent for agent, _ in all_escalators}):
        yield _EscalationSource(
            "agent",
            stopper_name,
            frozenset(escalator for escalator in all_escalators if escalator[0] == stopper_name).intersection,
        )
    for stopper_name in sorted({code for _, code in all_escalators}):
        yield _EscalationSource(
            "code",
            stopper_name,
            frozenset(escalator for escalator in all_escalators if escalator[1] == stopper_name).intersection,
        )


def _build_escalated_row(stopper: _EscalationSource, population: _AnsweredPopulation) -> dict[str, Any]:
    errors = population.known_errors
    stopped_doc_ids = [error.document.doc_id for error in errors if stopper.matches(error.escalators)]
    stopped_share = _estimate_escalated_share(stopper, population)
    reviewed_share = estimate_proportion(len(stopped_doc_ids), len(errors))
    return {
        "kind": stopper.kind,
        "who": stopper.name,
        "errors": len(errors),
        "stopped": len(stopped_doc_ids),
        "share": stopped_share.value,
        "low": stopped_share.low,
        "high": stopped_share.high,
        "n": stopped_share.n,
        "method": stopped_share.method,
        "reviewed_share": reviewed_share.value,
        "reviewed_low": reviewed_share.low,
        "reviewed_high": reviewed_share.high,
        "documents": tuple(stopped_doc_ids),
        "simulated": sum(bool(error.document.truth and error.document.truth.is_simulated) for error in errors),
    }


def _estimate_escalated_share(stopper: _EscalationSource, population: _AnsweredPopulation) -> Estimate:
    certain_outcomes = Counter(
        (document.is_answer_wrong, bool(stopper.matches(document.escalators)))
        for document in population.certain_documents
    )
    return estimate_hit_share_in_domain(
        CertainlyReviewedCounts(
            hits=certain_outcomes[True, True],
            misses=certain_outcomes[True, False],
            undetermined_hits=certain_outcomes[None, True],
            undetermined_misses=certain_outcomes[None, False],
        ),
        population.drawn_outcomes,
        population.drawable_count,
        known_drawable_hit_share=stopper.accepted_share,
    )


# ---------------------------------------------------------------------------------------------------------------------
# What nobody had raised


@dataclass(frozen=True)
class _Correction:
    """One thing that an expert said otherwise."""

    aspect: str
    agent_answer: str
    expert_answer: str
    pages: tuple[int, ...]
    """Empty: the whole document."""

    def is_touched_by(self, issue: IssueWithVerdict) -> bool:
        """Return True if the finding is about one of its pages, or about no page in particular."""
        return issue.page is None or not self.pages or issue.page in self.pages


def tabulate_unraised_corrections(study: Study) -> pd.DataFrame:
    """Tabulate expert corrections that no issue had raised, a row per difference.

    Raised it has who left an open BLOCKER or MAJOR there which no expert dismissed: on one of the pages concerned, or on
    no page in particular. A MINOR remark sends nobody to look. Of segments of another range the pages of both answers are
    concerned; of the type of the whole document, all pages. No rule speaks of what experts flag, so that every flag is a
    row. Documents without an answer are left out: that was raised.

    Columns:
        doc_id: the document.
        differs: ``type`` (of the whole document), ``boundary``, ``segment type`` (of equal pages, in a document of
            several segments), ``flag`` (what an expert remarked about a segment: other_patient, duplicate, out_of_order).
        was, is: the agent's and the expert's word for it.
        pages: concerned; empty: all.
        remarks: open MINOR issues there.
        decision, reason: the arbiter's.
        review_reason: why it was looked at; None for given labels.
        source: who tells the truth: SME_VALIDATED (flags only), SME_CORRECTED, GOLD.
        note_length: characters of the expert's note, which is not copied: a patient may be named there.
        simulated: 1 if a program supplied the truth.
    """
    rows = []
    for document in study.documents:
        if document.truth is None or document.agent_labels is None:
            continue
        unraised_corrections = [
            correction
            for correction in _iterate_corrections(document.agent_labels, document.truth, document.page_count)
            if not _is_raised(document, correction)
        ]
        rows += [
            _build_unraised_row(document, document.truth, correction)
            for correction in (*unraised_corrections, *_iterate_flag_corrections(document))
        ]
    return pd.DataFrame(rows, columns=list(MISSED_COLUMNS))


def _iterate_corrections(
    agent_labels: DocumentLabels, truth: KnownTruth, page_count: int | None
) -> Iterator[_Correction]:
    agent_type, true_type = agent_labels.dominant_type, truth.labels.dominant_type
    if truth.is_vouched("dominant_type") and agent_type != true_type:
        yield _Correction("type", agent_type or "cannot tell", true_type or "cannot tell", ())
    if not truth.is_vouched("segments"):
        return
    agent_type_by_range = {
        (start_page, end_page): segment_type
        for start_page, end_page, segment_type in sorted(agent_labels.segments, key=_get_page_range)
    }
    true_type_by_range = {
        (start_page, end_page): segment_type
        for start_page, end_page, segment_type in sorted(truth.labels.segments, key=_get_page_range)
    }
    if agent_type_by_range.keys() != true_type_by_range.keys():
        pages = {
            page_number
            for start_page, end_page in agent_type_by_range.keys() ^ true_type_by_range.keys()
            for page_number in _clip_page_range(start_page, end_page, page_count)
        }
        yield _Correction(
            "boundary",
            _format_page_ranges(agent_type_by_range),
            _format_page_ranges(true_type_by_range),
            tuple(sorted(pages)),
        )
    for (start_page, end_page), segment_type in true_type_by_range.items():
        if (
            len(true_type_by_range) > 1
            and (start_page, end_page) in agent_type_by_range
            and agent_type_by_range[start_page, end_page] != segment_type
        ):
            agent_answer = agent_type_by_range[start_page, end_page] or "cannot tell"
            yield _Correction(
                "segment type",
                agent_answer,
                segment_type or "cannot tell",
                tuple(_clip_page_range(start_page, end_page, page_count)),
            )


def _get_page_range(span: TypedPageRange) -> tuple[int, int]:
    return span[:2]


def _clip_page_range(start_page: int, end_page: int, page_count: int | None) -> range:
    """Clip the pages to the document; an answer may name any number."""
    return range(max(start_page, 1), min(end_page, page_count or MAX_PAGE_NUMBER, MAX_PAGE_NUMBER) + 1)


def _format_page_ranges(page_ranges: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{start_page}–{end_page}" for start_page, end_page in page_ranges)


def _iterate_flag_corrections(document: DocumentRecord) -> Iterator[_Correction]:
    """Yield the current expert's flags on segments."""
    own_reviews = [review for review in document.reviews if not review.case_id.endswith(SECOND_SUFFIX)]
    deciding_reviews = [review for review in own_reviews if review.case_id.endswith(ADJUDICATION_SUFFIX)] or own_reviews
    if not deciding_reviews or document.truth is None or document.truth.source == "GOLD":
        return
    for flag in deciding_reviews[-1].segment_flags:
        if "flag" in flag:
            start_page, end_page = flag.get("start_page"), flag.get("end_page")
            pages = (
                ()
                if start_page is None or end_page is None
                else tuple(_clip_page_range(start_page, end_page, document.page_count))
            )
            yield _Correction("flag", "", flag["flag"], pages)


def _is_raised(document: DocumentRecord, correction: _Correction) -> bool:
    return any(
        issue.severity != "MINOR" and issue.verdict != "dismissed" and correction.is_touched_by(issue)
        for issue in document.issues
        if issue.status == "open"
    )


def _build_unraised_row(document: DocumentRecord, truth: KnownTruth, correction: _Correction) -> dict[str, Any]:
    minor_issues = [issue for issue in document.issues if issue.severity == "MINOR" and issue.status == "open"]
    return {
        "doc_id": document.doc_id,
        "differs": correction.aspect,
        "was": correction.agent_answer,
        "is": correction.expert_answer,
        "pages": correction.pages,
        "remarks": sum(correction.is_touched_by(issue) for issue in minor_issues),
        "decision": document.decision,
        "reason": document.decision_reason,
        "review_reason": truth.review_reason,
        "source": truth.source,
        "note_length": len(truth.notes),
        "simulated": int(truth.is_simulated),
    }
