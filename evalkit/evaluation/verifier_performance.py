"""Performance of verifiers and rules: precision, cost and missed errors.

Everything is computed from a :class:`~evalkit.evaluation.study.Study`. To learn if a rule alone caused an escalation,
the arbiter decides again without that rule's issues. The column ``simulated`` of each table counts judgements by
simulated reviewers (programs).
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
from evalkit.core.grouping import group_by
from evalkit.evaluation.headline_estimates import is_outside_random_draw
from evalkit.evaluation.intervals import (
    CertainlyReviewedCounts,
    DrawnDocument,
    Estimate,
    estimate_hit_share_in_domain,
    estimate_proportion,
)
from evalkit.evaluation.metrics import is_exact_segmentation, merge_same_type_neighbours
from evalkit.evaluation.study import DocumentLabels, DocumentRecord, IssueWithVerdict, KnownTruth, ReviewRecord, Study
from evalkit.pipeline.supplied_labels import MAX_PAGE_NUMBER
from evalkit.review import ADJUDICATION_SUFFIX, SECOND_SUFFIX, get_issue_answers
from evalkit.review.kinds.classification import COUNTED_ISSUES_BY_RULE

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
STOPPED_COLUMNS = (
    *("level", "kind", "who", "errors", "stopped", "share", "low", "high", "n", "method"),
    *("reviewed_share", "reviewed_low", "reviewed_high", "documents", "simulated"),
)
MISSED_COLUMNS = (
    *("doc_id", "differs", "was", "is", "pages", "remarks", "decision", "reason"),
    *("review_reason", "source", "note_length", "simulated"),
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


# ---------------------------------------------------------------------------------------------------------------------
# Which errors were stopped


@dataclass(frozen=True)
class _EscalationSource:
    """An agent, a code, or any/none of them, whose share of errors is computed."""

    kind: Literal["any", "none", "agent", "code"]
    name: str
    matches: Callable[[frozenset[tuple[str, str]]], object]
    """Given the (agent, code) pairs that escalated a document, return a true value if this source is one of them."""
    accepted_share: float = 0.0
    """Share of the errors in accepted documents that belong to this source: 1 for ``none``, 0 for all others."""


class _AnsweredDocument(NamedTuple):
    """A document with a usable answer, its correctness and who escalated it."""

    document: DocumentRecord
    is_answer_wrong: bool | None
    """True if the answer is an error; None if unknown."""
    escalators: frozenset[tuple[str, str]]
    """(agent, code) of the issues that made the arbiter escalate; empty if accepted."""


class _AnsweredPopulation(NamedTuple):
    """The documents with a usable answer, by how they were selected for review."""

    known_errors: list[_AnsweredDocument]
    """Documents whose answer is known to be wrong."""
    certain_documents: list[_AnsweredDocument]
    """Documents whose review did not depend on a random draw, without those known to be right."""
    drawn_outcomes: list[DrawnDocument]
    """The reviewed documents among those that could only be drawn; in the domain if the answer is wrong."""
    drawable_count: int
    """Number of documents that could only be drawn, reviewed or not."""

    @classmethod
    def from_documents(cls, documents: Sequence[_AnsweredDocument]) -> _AnsweredPopulation:
        drawable_documents = [
            (record.document, record.is_answer_wrong) for record in documents if _is_drawn_by_chance(record.document)
        ]
        return cls(
            [record for record in documents if record.is_answer_wrong],
            [
                record
                for record in documents
                if not _is_drawn_by_chance(record.document) and record.is_answer_wrong is not False
            ],
            [
                DrawnDocument(is_answer_wrong, is_hit=False, inclusion_probability=record.review_probability)
                for record, is_answer_wrong in drawable_documents
                if record.review_probability and record.has_expert_action
            ],
            len(drawable_documents),
        )


def _is_drawn_by_chance(document: DocumentRecord) -> bool:
    """Return True if only chance decides whether an accepted document is reviewed.

    An escalated document is none of these, also if only some are drawn to be shown whole: its source is known.
    """
    return document.is_accepted and not is_outside_random_draw(document)


def tabulate_escalated_errors(study: Study) -> pd.DataFrame:
    """Tabulate the share of the classifier's errors that were escalated, by source.

    An error is an answer that is wrong in a part that an expert vouched for. A missing answer or "cannot tell" is no
    error here, because it is escalated without any verifier. The pipeline's repairs change neither types nor segments,
    so its answer equals the classifier's first answer in both.

    Columns:
        level: ``type``: the document's type is wrong; ``segments``: not all segments are exactly right, as given;
            ``segments merged``: the same after merging neighbours of one type (contract, ruling 12).
        kind, who: the source of the escalation: ``any``, ``none`` (the error was accepted), each ``agent``, each
            ``code``. A document that several escalated counts for each of them. Only open issues that the arbiter's
            deciding rule counts are considered.
        errors, stopped: number of reviewed documents with an error; number of these that the source escalated.
        share, low, high, n, method: share (0..1) of all errors among the processed documents that the source escalated;
            errors in unreviewed documents are estimated from the random draws. In the 95 % interval, escalated
            documents without a review count as the worst and as the best case. None if no accepted document was
            reviewed. The interval covers uncertainty about these documents only, not about future ones.
        reviewed_share, reviewed_low, reviewed_high: stopped / errors of the reviewed documents, unweighted, with the
            exact interval of a simple sample. Escalated errors are over-represented, so this share is too high.
        documents: the doc_ids of the stopped documents.
        simulated: number of errors whose truth a simulated reviewer (a program) supplied.
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
    """Return True if the agent's answer is wrong at this level.

    None if there is no usable answer or no expert vouched for this part of the truth.
    """
    truth, agent_labels = document.truth, document.agent_labels
    if truth is None or agent_labels is None or not _has_answer(agent_labels, level):
        return None
    return _is_different_from_truth(agent_labels, truth, level)


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


def _has_answer(agent_labels: DocumentLabels | None, level: ErrorLevel) -> bool:
    """Return True if the labels give a type, or typed segments, at this level."""
    if agent_labels is None:
        return False
    if level == "type":
        return agent_labels.dominant_type is not None
    return bool(agent_labels.segments) and all(segment_type is not None for *_, segment_type in agent_labels.segments)


def _find_escalating_agents_and_codes(document: DocumentRecord) -> frozenset[tuple[str, str]]:
    """Return (agent, code) of the issues that made the arbiter escalate, if any."""
    if document.decision != Decision.ESCALATE_TO_SME:
        return frozenset()
    # For a decision rule that is not in the table, use the set of issues that rule 8 counts.
    is_counted = COUNTED_ISSUES_BY_RULE.get(document.decision_rule or "", COUNTED_ISSUES_BY_RULE["8"])
    open_issues = (issue for issue in document.issues if issue.status == "open")
    return frozenset((issue.agent, issue.code) for issue in open_issues if is_counted(issue))


def _iterate_escalation_sources(all_escalators: AbstractSet[tuple[str, str]]) -> Iterator[_EscalationSource]:
    yield _EscalationSource("any", "any", bool)
    yield _EscalationSource("none", "none", lambda escalators: not escalators, accepted_share=1.0)
    for agent, escalators in sorted(group_by(all_escalators, lambda pair: pair[0]).items()):
        yield _EscalationSource("agent", agent, frozenset(escalators).intersection)
    for code, escalators in sorted(group_by(all_escalators, lambda pair: pair[1]).items()):
        yield _EscalationSource("code", code, frozenset(escalators).intersection)


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
    """One difference between the agent's and the expert's answer."""

    aspect: str
    agent_answer: str
    expert_answer: str
    pages: tuple[int, ...]
    """Pages that the difference concerns; empty for the whole document."""

    def is_touched_by(self, issue: IssueWithVerdict) -> bool:
        """Return True if the issue names one of the corrected pages, or no page at all."""
        return issue.page is None or not self.pages or issue.page in self.pages


def tabulate_unraised_corrections(study: Study) -> pd.DataFrame:
    """Tabulate expert corrections that no verifier had raised, one row per difference.

    A difference counts as raised if there is an open BLOCKER or MAJOR issue, not dismissed by an expert, on one of its
    pages or without a page. MINOR issues do not count, because they escalate nothing. A wrong boundary concerns the
    pages of the differing segments of both answers; a wrong type of the whole document concerns all pages. No rule
    covers the flags of experts, so every flag has a row. Documents without an answer are left out, because they are
    always escalated.

    Columns:
        doc_id: the document.
        differs: ``type`` (of the whole document), ``boundary``, ``segment type`` (same pages, in a document of several
            segments), ``flag`` (set by an expert on a segment: other_patient, duplicate, out_of_order).
        was, is: the agent's and the expert's answer.
        pages: the pages concerned; empty means all.
        remarks: number of open MINOR issues on these pages.
        decision, reason: the arbiter's decision and its reason.
        review_reason: why the document was reviewed; None if a file of labels gives the truth.
        source: source of the truth: SME_VALIDATED (flags only), SME_CORRECTED or GOLD.
        note_length: number of characters of the expert's note; its text is not copied, because it may name a patient.
        simulated: 1 if a simulated reviewer (a program) supplied the truth.
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
    agent_type_by_range, true_type_by_range = (
        {
            (start_page, end_page): segment_type
            for start_page, end_page, segment_type in sorted(labels.segments, key=lambda span: span[:2])
        }
        for labels in (agent_labels, truth.labels)
    )
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
            yield _Correction(
                "segment type",
                agent_type_by_range[start_page, end_page] or "cannot tell",
                segment_type or "cannot tell",
                tuple(_clip_page_range(start_page, end_page, page_count)),
            )


def _clip_page_range(start_page: int, end_page: int, page_count: int | None) -> range:
    """Return the pages of a range that exist; an answer may name any number."""
    return range(max(start_page, 1), min(end_page, page_count or MAX_PAGE_NUMBER, MAX_PAGE_NUMBER) + 1)


def _format_page_ranges(page_ranges: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{start_page}–{end_page}" for start_page, end_page in page_ranges)


def _iterate_flag_corrections(document: DocumentRecord) -> Iterator[_Correction]:
    """Yield the flags on segments from the newest deciding review."""
    deciding_review = _find_deciding_review(document)
    for flag in deciding_review.segment_flags if deciding_review else ():
        if "flag" in flag:
            start_page, end_page = flag.get("start_page"), flag.get("end_page")
            pages = (
                ()
                if start_page is None or end_page is None
                else tuple(_clip_page_range(start_page, end_page, document.page_count))
            )
            yield _Correction("flag", "", flag["flag"], pages)


def _find_deciding_review(document: DocumentRecord) -> ReviewRecord | None:
    """Find the review that gave the truth; None if no review did."""
    own_reviews = [review for review in document.reviews if not review.case_id.endswith(SECOND_SUFFIX)]
    deciding_reviews = [review for review in own_reviews if review.case_id.endswith(ADJUDICATION_SUFFIX)] or own_reviews
    if not deciding_reviews or document.truth is None or document.truth.source == "GOLD":
        return None
    return deciding_reviews[-1]


def _is_raised(document: DocumentRecord, correction: _Correction) -> bool:
    return any(
        issue.severity != "MINOR" and issue.expert_verdict != "dismissed" and correction.is_touched_by(issue)
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
