"""The experts: how long they take, how often they agree, and whether the agent's answer leads them.

Automation bias shows where an expert who saw the agent's answer says the same more often than a colleague who answered
the same case without it; and where a case that was validated is found wrong by others. Cases that are shown and cases that
are hidden at large are not alike: the former are those that escalated.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

import pandas as pd

from evalkit.evaluation.agreement import alpha, boundary_agreement, kappa
from evalkit.evaluation.intervals import Estimate, exact
from evalkit.evaluation.metrics import boundary_scores, is_exact, pooled
from evalkit.evaluation.study import Answer, Document, Labels, Study, Truth
from evalkit.review.packet import ADJUDICATION_SUFFIX, SECOND_SUFFIX


def _standing(one: Document) -> list[Answer]:
    """The answers that stand: of each case the newest that closed it, adjudications left out."""
    cases: dict[str, Answer] = {}
    for answer in one.answers:
        if answer.outcome == "reopened":
            cases.pop(answer.case_id, None)
        else:
            cases[answer.case_id] = answer
    return [answer for case_id, answer in cases.items() if not case_id.endswith(ADJUDICATION_SUFFIX)]


def by_reviewer(study: Study) -> pd.DataFrame:
    """One row per reviewer.

    Columns: ``reviewer``, ``simulated``, ``cases``, ``validated``, ``corrected``, ``undeterminable`` (counts),
    ``median_seconds`` (active seconds per case; None where nobody measured), ``quickest_tenth`` (the tenth percentile of
    them), ``same_shown`` and ``same_hidden`` (of the cases with an answer of the agent, the share in which the
    reviewer said the same type, with it on screen and hidden; ``Estimate``: of different cases, so no measure of bias).
    """
    rows = []
    grouped: dict[str, list[Answer]] = defaultdict(list)
    for one in study.documents:
        for answer in _standing(one):
            grouped[answer.reviewer].append(answer)
    for reviewer, answers in sorted(grouped.items()):
        seconds = sorted(one.seconds for one in answers if one.seconds is not None)
        rows.append(
            {
                "reviewer": reviewer,
                "simulated": answers[0].is_simulated,
                "cases": len(answers),
                **{
                    name: sum(one.outcome == name for one in answers)
                    for name in ("validated", "corrected", "undeterminable")
                },
                "median_seconds": median(seconds) if seconds else None,
                "quickest_tenth": seconds[len(seconds) // 10] if seconds else None,
                "same_shown": acceptance(one for one in answers if not one.was_blind),
                "same_hidden": acceptance(one for one in answers if one.was_blind),
            }
        )
    return pd.DataFrame(rows)


def acceptance(answers: Iterable[Answer]) -> Estimate:
    """How often the reviewer said the agent's type, of the answers that could."""
    said = [one for one in answers if one.before is not None and one.labels is not None]
    return exact(sum(_same_type(one) for one in said), len(said))


def _same_type(one: Answer) -> bool:
    return bool(one.before and one.labels and one.before.dominant_type == one.labels.dominant_type)


@dataclass(frozen=True)
class Agreement:
    """Two experts on the same documents, the second knowing neither the first's answer nor the agent's."""

    pairs: pd.DataFrame
    """One row per document that two experts answered: ``PAIR``; boundaries 0..1."""
    same_type: Estimate
    same_segments: Estimate
    led: Estimate
    """Of the pairs in which the first expert saw the agent's answer: how often that one said the agent's type …"""
    unled: Estimate
    """… and how often the second did, who had not seen it."""
    boundaries: float
    """F1 of where segments begin, of all pairs together; NaN without pairs."""
    kappa: float
    """Cohen's, of the documents' types; NaN where it is not defined."""
    alpha: float
    """Krippendorff's, nominal, of the same."""


PAIR = ("doc_id", "first", "second", "is_same_type", "is_same_segments", "boundaries", "adjudicated", "simulated")


def agreement(study: Study) -> Agreement:
    """How far experts agree, from second opinions."""
    both = [(one, *pair) for one in study.documents if (pair := _pair(one)) is not None]
    pairs = pd.DataFrame([_compared(*one) for one in both], columns=list(PAIR))
    scores = pooled(boundary_scores(first.segments, second.segments) for _, (_, first), (_, second) in both)
    types = [
        [labels.dominant_type for _, labels in answers]
        for answers in ([one for _, one, _ in both], [one for *_, one in both])
    ]
    return Agreement(
        pairs,
        exact(int(pairs["is_same_type"].sum()), len(pairs)),
        exact(int(pairs["is_same_segments"].sum()), len(pairs)),
        acceptance(answer for _, (answer, _), _ in both if not answer.was_blind),
        acceptance(other for _, (answer, _), (other, _) in both if not answer.was_blind),
        scores.f1 if both else math.nan,
        kappa(*types),
        alpha(types),
    )


_Said = tuple[Answer, Labels]


def _pair(one: Document) -> tuple[_Said, _Said] | None:
    """The standing answers of the case and of its second opinion, where both decided something."""
    standing = {answer.case_id: (answer, answer.labels) for answer in _standing(one) if answer.labels is not None}
    first, second = standing.get(one.doc_id), standing.get(f"{one.doc_id}{SECOND_SUFFIX}")
    return (first, second) if first and second else None


def _compared(one: Document, first: _Said, second: _Said) -> dict[str, Any]:
    (answer, said), (other, other_said) = first, second
    return {
        "doc_id": one.doc_id,
        "first": said.dominant_type,
        "second": other_said.dominant_type,
        "is_same_type": said.dominant_type == other_said.dominant_type,
        "is_same_segments": is_exact(said.segments, other_said.segments, typed=True),
        "boundaries": boundary_agreement(said.segments, other_said.segments),
        "adjudicated": any(answer.case_id.endswith(ADJUDICATION_SUFFIX) for answer in one.answers),
        "simulated": answer.is_simulated or other.is_simulated,
    }


def validated_wrongly(study: Study) -> pd.DataFrame:
    """Validated cases whose truth turned out to be another: where the agent's answer led an expert.

    Columns: ``doc_id``, ``reviewer``, ``seconds``, ``validated`` (the type), ``true``, ``known_from`` (who says so).
    """
    rows = [
        {
            "doc_id": one.doc_id,
            "reviewer": answer.reviewer,
            "seconds": answer.seconds,
            "validated": answer.labels.dominant_type,
            "true": one.truth.labels.dominant_type,
            "known_from": one.truth.reviewer or "given labels",
        }
        for one in study.reviewed
        for answer in _standing(one)
        if one.truth and answer.labels and answer.outcome == "validated" and not _agrees(answer.labels, one.truth)
    ]
    return pd.DataFrame(rows, columns=["doc_id", "reviewer", "seconds", "validated", "true", "known_from"])


def _agrees(said: Labels, truth: Truth) -> bool:
    """In the parts that somebody stands for."""
    same_type = not truth.says("dominant_type") or said.dominant_type == truth.labels.dominant_type
    return same_type and (not truth.says("segments") or is_exact(truth.labels.segments, said.segments, typed=True))
