"""What each verifier and each rule is worth: what it raises, what it alone costs, which errors it stops, what it misses.

Everything is computed from a :class:`~evalkit.evaluation.study.Study`; what the arbiter would say of fewer issues is asked
of the arbiter. Every frame says in ``simulated`` how many of the judgements behind a row a program made.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pandas as pd

from evalkit.classification.v5_arbiter import Decision, V5DecisionMaker
from evalkit.evaluation.domain import Certain, Drawn, share_within
from evalkit.evaluation.estimates import is_certain
from evalkit.evaluation.intervals import Estimate, exact
from evalkit.evaluation.metrics import is_exact, merged
from evalkit.evaluation.study import Document, Finding, Labels, Study, Truth
from evalkit.issue import Issue
from evalkit.pipeline.supplied_labels import MAX_PAGE_NUMBER, PageSpan
from evalkit.review.case import COUNTED_ISSUES_BY_RULE
from evalkit.review.packet import ADJUDICATION_SUFFIX, SECOND_SUFFIX

PAYS_FROM = 0.1
"""Share of needed escalations from which a rule pays: a wrong accept costs more than nine cases looked at for nothing."""

_MOST_CASES = 10_000
"""Beyond this, no number of further cases is promised to tell."""

Level = Literal["type", "segments", "segments merged"]
LEVELS: tuple[Level, ...] = ("type", "segments", "segments merged")

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

Rule = tuple[str, str, str]
"""Agent, code, origin."""


# ---------------------------------------------------------------------------------------------------------------------
# What each rule raises and costs


def by_rule(study: Study, *, pays_from: float = PAYS_FROM) -> pd.DataFrame:
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
            nobody has told.
        minutes, untimed: active time of the experts on these, where it was measured; answers where it was not.
        verdict: in words; a judgement only where the interval of corrected among validated and corrected is on one side
            of ``pays_from`` (0..1).
        simulated: documents of the row on whose case a program said something.
    """
    found: dict[Rule, list[tuple[Document, list[Finding]]]] = defaultdict(list)
    for one in study.documents:
        by_key: dict[Rule, list[Finding]] = defaultdict(list)
        for finding in one.findings:
            by_key[rule_of(finding)].append(finding)
        for key, findings in by_key.items():
            found[key].append((one, findings))
    rows = [_rule_row(rule, raised, pays_from) for rule, raised in sorted(found.items())]
    return pd.DataFrame(rows, columns=list(RULE_COLUMNS))


def rule_of(finding: Finding) -> Rule:
    """By what findings are counted together."""
    return finding.agent, finding.code, finding.origin


def escalated_alone(document: Document, rule: Rule) -> bool:
    """Whether the arbiter would have accepted the document without that rule's issues."""
    if document.decision != Decision.ESCALATE_TO_SME:
        return False
    remaining = [_issue(one) for one in document.findings if rule_of(one) != rule]
    return V5DecisionMaker().decide(remaining).decision is Decision.AUTO_ACCEPT


def _issue(finding: Finding) -> Issue:
    """The finding as the arbiter takes it."""
    # The verdict is an expert's there and that of a quote here; the group decides nothing.
    return Issue.model_validate(finding._asdict() | {"verdict": None, "ig_id": ""})


def _rule_row(rule: Rule, raised: Sequence[tuple[Document, list[Finding]]], pays_from: float) -> dict[str, Any]:
    verdicts = [finding.verdict for _, findings in raised for finding in findings]
    confirmed, dismissed = verdicts.count("confirmed"), verdicts.count("dismissed")
    precision = exact(confirmed, confirmed + dismissed)
    alone = [one for one, _ in raised if escalated_alone(one, rule)]
    needed = [_was_needed(one) for one in alone]
    seconds = [answer.seconds for one in alone for answer in one.answers if answer.outcome != "reopened"]
    return {
        **dict(zip(("agent", "code", "origin"), rule, strict=True)),
        "documents": len(raised),
        "raised": len(verdicts),
        "confirmed": confirmed,
        "dismissed": dismissed,
        "unjudged": verdicts.count(None),
        "judged": confirmed + dismissed,
        "precision": precision.value,
        "low": precision.low,
        "high": precision.high,
        "method": precision.method,
        "alone": len(alone),
        "validated": needed.count(False),
        "corrected": needed.count(True),
        "open": needed.count(None),
        "minutes": sum(one for one in seconds if one is not None) / 60,
        "untimed": seconds.count(None),
        "verdict": worth(needed.count(True), needed.count(False), pays_from) if alone else "escalates nothing alone",
        "simulated": sum(_by_program(one) for one, _ in raised),
    }


def _was_needed(document: Document) -> bool | None:
    """Whether the answer has to be corrected, as it is now; None: nobody has told.

    What an expert once corrected may be right today: a later run may have answered otherwise.
    """
    truth, agent = document.truth, document.agent
    if truth is None:
        return None
    if agent is None:
        return True
    parts = [_differs(agent, truth, level) for level in LEVELS]
    if truth.source == "SME_CORRECTED" and truth.says("mixture"):
        said, true = agent, truth.labels
        parts.append((said.presence, said.mixture) != (true.presence, true.mixture))
    return True if True in parts else False if False in parts else None


def _by_program(document: Document) -> bool:
    return any(one.is_simulated for one in document.answers) or bool(document.truth and document.truth.is_simulated)


def worth(corrected: int, validated: int, pays_from: float = PAYS_FROM) -> str:
    """Whether a rule gives more than it costs, in words.

    ``pays_from`` is the share 0..1 of needed escalations from which it does. Where the interval does not tell, how many
    more cases would, if they went on like those that are judged; with none judged, if all were needless.

    >>> worth(0, 40), worth(8, 2), worth(1, 9)
    ('costs more than it gives', 'gives more than it costs', 'as good as even: no number of cases would tell')
    >>> worth(0, 3), worth(0, 0)
    ('too few judged: 33 more', 'too few judged: 36 more')
    """
    judged = corrected + validated
    share = corrected / judged if judged else 0.0

    def tells(n: int) -> bool:
        estimate = exact(share * n, n)
        return estimate.high < pays_from or estimate.low > pays_from

    if tells(judged):
        return "costs more than it gives" if share < pays_from else "gives more than it costs"
    enough = bisect_left(range(judged, _MOST_CASES), True, key=tells)
    if judged + enough >= _MOST_CASES:
        return "as good as even: no number of cases would tell"
    return f"too few judged: {enough} more"


# ---------------------------------------------------------------------------------------------------------------------
# Which errors were stopped


@dataclass(frozen=True)
class _Stopper:
    """Somebody or something whose share of the classifier's errors is asked for."""

    kind: Literal["any", "none", "agent", "code"]
    who: str
    stops: Callable[[frozenset[tuple[str, str]]], object]
    """True, or not empty, of the agents and codes that escalated a document where it is one of them."""
    accepted: float = 0.0
    """The share of errors among accepted documents that it has by definition."""


class _Answered(NamedTuple):
    """A document with an answer."""

    document: Document
    is_wrong: bool | None
    """None: nobody has told."""
    escalated_by: frozenset[tuple[str, str]]
    """Agents and codes."""


class _Answers(NamedTuple):
    """The documents with an answer, by how they came to be looked at."""

    errors: list[_Answered]
    """Those that are known."""
    certain: list[_Answered]
    """Chance has no say in them, and they are not known to be right."""
    drawn: list[Drawn]
    """Of the others those that were looked at; inside: an error. Nothing escalated them."""
    rest: int
    """How many others there are."""

    @classmethod
    def of(cls, answered: Sequence[_Answered]) -> _Answers:
        others = [(one.document, one.is_wrong) for one in answered if not is_certain(one.document)]
        return cls(
            [one for one in answered if one.is_wrong],
            [one for one in answered if is_certain(one.document) and one.is_wrong is not False],
            [
                Drawn(is_wrong, is_hit=False, probability=one.probability)
                for one, is_wrong in others
                if one.probability and one.was_looked_at
            ],
            len(others),
        )


def stopped(study: Study) -> pd.DataFrame:
    """Which share of the classifier's errors was escalated, by whom: one row per level and stopper.

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
        documents: the doc_ids of ``stopped``.
        simulated: errors whose truth a program told.
    """
    by = [_escalating(one) for one in study.documents]
    stoppers = list(_stoppers({pair for pairs in by for pair in pairs}))
    rows = []
    for level in LEVELS:
        answered = _Answers.of(
            [
                _Answered(one, is_wrong(one, level), pairs)
                for one, pairs in zip(study.documents, by, strict=True)
                if _says(one.agent, level)
            ]
        )
        rows += [{"level": level, **_stopped_row(stopper, answered)} for stopper in stoppers]
    return pd.DataFrame(rows, columns=list(STOPPED_COLUMNS))


def is_wrong(document: Document, level: Level) -> bool | None:
    """Whether the agent's answer is an error; None: nobody stands for that part, or there is no answer."""
    truth, agent = document.truth, document.agent
    if truth is None or agent is None or not _says(agent, level):
        return None
    return _differs(agent, truth, level)


def _differs(agent: Labels, truth: Truth, level: Level) -> bool | None:
    """Whether it is not what is true, be it for want of an answer; None: nobody stands for that part."""
    if level == "type":
        return agent.dominant_type != truth.labels.dominant_type if truth.says("dominant_type") else None
    if not truth.says("segments"):
        return None
    read = merged if level == "segments merged" else list
    return not is_exact(read(truth.labels.segments), read(agent.segments), typed=True)


def _says(agent: Labels | None, level: Level) -> bool:
    """Whether there is an answer that could be wrong."""
    if agent is None:
        return False
    if level == "type":
        return agent.dominant_type is not None
    return bool(agent.segments) and all(kind is not None for *_, kind in agent.segments)


def _escalating(document: Document) -> frozenset[tuple[str, str]]:
    """Agent and code of the open issues that the arbiter's winning row counted, where it escalated."""
    if document.decision != Decision.ESCALATE_TO_SME:
        return frozenset()
    # A row that is not in the table yet could have counted anything.
    counted = COUNTED_ISSUES_BY_RULE.get(document.decision_rule or "", COUNTED_ISSUES_BY_RULE["8"])
    open_ones = (one for one in document.findings if one.status == "open")
    return frozenset((one.agent, one.code) for one in open_ones if counted(_issue(one)))


def _stoppers(pairs: AbstractSet[tuple[str, str]]) -> Iterator[_Stopper]:
    yield _Stopper("any", "any", bool)
    yield _Stopper("none", "none", lambda found: not found, accepted=1.0)
    for name in sorted({agent for agent, _ in pairs}):
        yield _Stopper("agent", name, frozenset(one for one in pairs if one[0] == name).intersection)
    for name in sorted({code for _, code in pairs}):
        yield _Stopper("code", name, frozenset(one for one in pairs if one[1] == name).intersection)


def _stopped_row(stopper: _Stopper, answered: _Answers) -> dict[str, Any]:
    errors = answered.errors
    hits = [one.document.doc_id for one in errors if stopper.stops(one.escalated_by)]
    share = _of_all_errors(stopper, answered)
    seen = exact(len(hits), len(errors))
    return {
        "kind": stopper.kind,
        "who": stopper.who,
        "errors": len(errors),
        "stopped": len(hits),
        "share": share.value,
        "low": share.low,
        "high": share.high,
        "n": share.n,
        "method": share.method,
        "reviewed_share": seen.value,
        "reviewed_low": seen.low,
        "reviewed_high": seen.high,
        "documents": tuple(hits),
        "simulated": sum(bool(one.document.truth and one.document.truth.is_simulated) for one in errors),
    }


def _of_all_errors(stopper: _Stopper, answered: _Answers) -> Estimate:
    certain = Counter((one.is_wrong, bool(stopper.stops(one.escalated_by))) for one in answered.certain)
    return share_within(
        Certain(
            hits=certain[True, True],
            misses=certain[True, False],
            open_hits=certain[None, True],
            open_misses=certain[None, False],
        ),
        answered.drawn,
        answered.rest,
        drawn_share=stopper.accepted,
    )


# ---------------------------------------------------------------------------------------------------------------------
# What nobody had raised


@dataclass(frozen=True)
class _Difference:
    """One thing that an expert said otherwise."""

    differs: str
    was: str
    now: str
    pages: tuple[int, ...]
    """Empty: the whole document."""

    def is_touched_by(self, finding: Finding) -> bool:
        """Whether the finding is about a page of it, or about no page in particular."""
        return finding.page is None or not self.pages or finding.page in self.pages


def missed(study: Study) -> pd.DataFrame:
    """What experts corrected although nobody had raised it: one row per document and difference.

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
        simulated: 1 where a program told the truth.
    """
    rows = []
    for one in study.documents:
        if one.truth is None or one.agent is None:
            continue
        unraised = [each for each in _differences(one.agent, one.truth, one.pages) if not _was_raised(one, each)]
        rows += [_missed_row(one, one.truth, each) for each in (*unraised, *_flags(one))]
    return pd.DataFrame(rows, columns=list(MISSED_COLUMNS))


def _differences(agent: Labels, truth: Truth, total: int | None) -> Iterator[_Difference]:
    said, true = agent.dominant_type, truth.labels.dominant_type
    if truth.says("dominant_type") and said != true:
        yield _Difference("type", said or "cannot tell", true or "cannot tell", ())
    if not truth.says("segments"):
        return
    before = {(first, last): kind for first, last, kind in sorted(agent.segments, key=_place)}
    after = {(first, last): kind for first, last, kind in sorted(truth.labels.segments, key=_place)}
    if before.keys() != after.keys():
        pages = {page for first, last in before.keys() ^ after.keys() for page in _pages(first, last, total)}
        yield _Difference("boundary", _ranges(before), _ranges(after), tuple(sorted(pages)))
    for (first, last), kind in after.items():
        if len(after) > 1 and (first, last) in before and before[first, last] != kind:
            was = before[first, last] or "cannot tell"
            yield _Difference("segment type", was, kind or "cannot tell", tuple(_pages(first, last, total)))


def _place(segment: PageSpan) -> tuple[int, int]:
    return segment[:2]


def _pages(first: int, last: int, total: int | None) -> range:
    """These pages, as far as the document has them; an answer may name a page of any number."""
    return range(max(first, 1), min(last, total or MAX_PAGE_NUMBER, MAX_PAGE_NUMBER) + 1)


def _ranges(segments: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{first}–{last}" for first, last in segments)


def _flags(document: Document) -> Iterator[_Difference]:
    """What the expert whose word stands remarked about segments."""
    own = [one for one in document.answers if not one.case_id.endswith(SECOND_SUFFIX)]
    judged = [one for one in own if one.case_id.endswith(ADJUDICATION_SUFFIX)] or own
    if not judged or document.truth is None or document.truth.source == "GOLD":
        return
    for row in judged[-1].flags:
        if "flag" in row:
            first, last = row.get("start_page"), row.get("end_page")
            pages = () if first is None or last is None else tuple(_pages(first, last, document.pages))
            yield _Difference("flag", "", row["flag"], pages)


def _was_raised(document: Document, difference: _Difference) -> bool:
    return any(
        one.severity != "MINOR" and one.verdict != "dismissed" and difference.is_touched_by(one)
        for one in document.findings
        if one.status == "open"
    )


def _missed_row(document: Document, truth: Truth, difference: _Difference) -> dict[str, Any]:
    remarks = [one for one in document.findings if one.severity == "MINOR" and one.status == "open"]
    return {
        "doc_id": document.doc_id,
        "differs": difference.differs,
        "was": difference.was,
        "is": difference.now,
        "pages": difference.pages,
        "remarks": sum(difference.is_touched_by(one) for one in remarks),
        "decision": document.decision,
        "reason": document.decision_reason,
        "review_reason": truth.review_reason,
        "source": truth.source,
        "note_length": len(truth.notes),
        "simulated": int(truth.is_simulated),
    }
