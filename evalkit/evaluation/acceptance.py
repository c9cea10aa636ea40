"""Which documents might be accepted without a person, with the proof that blind audits give for it.

The arbiter's table is not changed by any of this: a threshold is offered beside it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from evalkit.evaluation.calibration import (
    Certificate,
    brier,
    certificate,
    expected_calibration_error,
    reliability,
    risk_coverage,
    thinned,
)
from evalkit.evaluation.estimates import type_is_right
from evalkit.evaluation.study import Document, Study

_SEED = 20
THRESHOLDS = tuple(round(step / 20, 2) for step in range(20))
"""What may be offered: fixed before any outcome is known, 0 to 0.95. The lowest accepts all that the arbiter accepts."""


@dataclass(frozen=True)
class Calibration:
    """Whether the confidence in the type can be believed, of all documents whose truth is known."""

    documents: int
    without_confidence: int
    """Reviewed documents without a type or confidence: they are not in the figures."""
    reliability: pd.DataFrame
    """Per bin: ``low, high, n, confidence, accuracy, accuracy_low, accuracy_high``."""
    risk_coverage: pd.DataFrame
    """``threshold, coverage, risk, n``: to be looked at, not to choose by."""
    calibration_error: float
    brier: float


@dataclass(frozen=True)
class Offer:
    """What blind audits show about accepting from some confidence upwards."""

    rate: float
    """At most this share of what is accepted has a wrong type …"""
    level: float
    """… with this probability."""
    certificate: Certificate
    """Where ``otherwise_wrong`` is not empty, or ``never_drawn`` not 0, one without a threshold."""
    audits: int
    """Blind audits of one design that it rests on."""
    cannot_tell: int
    """Of these, those whose type nobody can tell, or that are disputed or put off: they count as wrong."""
    set_aside: int
    """Audits that were looked at with a higher probability than others, left out by chance to make them equal."""
    simulated: int
    """Of the audits, those that a program made."""
    wrong: tuple[str, ...]
    """The doc_ids of the audits that count as wrong."""
    otherwise_wrong: tuple[str, ...]
    """Accepted documents with a wrong type that were looked at for another reason than an audit: they are known to be
    among what would be accepted, and no audit speaks for them, so nothing is offered."""
    never_drawn: int = 0
    """Accepted documents that had no chance of being drawn, or of which nobody knows it: no audit speaks for them."""


def calibration(study: Study) -> Calibration:
    """Confidence against truth, each document weighing as many as it stands for."""
    known = [(one, right) for one in study.reviewed if (right := type_is_right(one)) is not None]
    usable = [(one, right) for one, right in known if _confidence(one) is not None]
    said = [_confidence(one) or 0.0 for one, _ in usable]
    was = [right == 1 for _, right in usable]
    weights = [one.weight for one, _ in usable]
    return Calibration(
        len(usable),
        len(known) - len(usable),
        reliability(said, was, weights),
        risk_coverage(said, was, weights),
        expected_calibration_error(said, was, weights),
        brier(said, was, weights),
    )


def offer(study: Study, *, rate: float = 0.05, level: float = 0.95) -> Offer:
    """The lowest confidence from which at most ``rate`` of the accepted documents have a wrong type, shown by blind audits.

    An audit is a document that the arbiter accepted and chance drew, and whose first answer was given before the agent's
    was shown. Labels that were given replace what an audit found, never that it was one.
    """
    accepted = [one for one in study.documents if one.is_accepted]
    audits = [one for one in accepted if _is_blind_audit(one)]
    drawn, answered = Counter(one.cell for one in accepted if _is_drawn(one)), Counter(one.cell for one in audits)
    chances = [(one.drawn_with or 1.0) * answered[one.cell] / drawn[one.cell] for one in audits]  # of being one by now
    stays = set(thinned(chances, _SEED).tolist()) if audits else set()
    kept = [one for place, one in enumerate(audits) if place in stays]
    right = [_is_right(one) for one in kept]
    otherwise = tuple(
        one.doc_id for one in accepted if one.was_looked_at and not _is_drawn(one) and type_is_right(one) == 0
    )
    never_drawn = sum(not one.drawn_with for one in accepted)
    proof = certificate([_confidence(one) or 0.0 for one in kept], right, rate=rate, level=level, candidates=THRESHOLDS)
    return Offer(
        rate,
        level,
        proof._replace(threshold=None, coverage=0.0) if otherwise or never_drawn else proof,
        len(kept),
        sum(type_is_right(one) is None for one in kept),
        len(audits) - len(kept),
        sum(any(answer.is_simulated for answer in one.answers) for one in kept),
        tuple(one.doc_id for one, was in zip(kept, right, strict=True) if not was),
        otherwise,
        never_drawn,
    )


def _is_drawn(one: Document) -> bool:
    return one.review_reason in ("audit", "sample")


def _is_blind_audit(one: Document) -> bool:
    return _is_drawn(one) and one.was_looked_at and (not one.answers or one.answers[0].was_blind)


def _is_right(one: Document) -> bool:
    """Whether an audit found the agent's type: its truth, and the first answer, which nobody had led."""
    first = one.answers[0].labels if one.answers else None
    said = one.agent.dominant_type if one.agent else None
    return type_is_right(one) == 1 and (first is None or first.dominant_type == said)


def _confidence(one: Document) -> float | None:
    """In 0..1; None where there is none that can be used."""
    said = one.agent.confidence if one.agent else None
    return said if said is not None and 0 <= said <= 1 else None
