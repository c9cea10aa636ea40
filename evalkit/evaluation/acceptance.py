"""Which documents might be accepted without a person, with the proof that blind audits give for it.

The arbiter's table is not changed by any of this: a threshold is offered beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """At most this share of what is accepted is wrong …"""
    level: float
    """… with this probability."""
    certificate: Certificate
    audits: int
    """Blind audits of one design that it rests on."""
    set_aside: int
    """Audits that were drawn with a higher probability than others, left out by chance to make them equal."""
    simulated: int
    """Of the audits, those that a program made."""
    wrong: tuple[str, ...]
    """The doc_ids of the audits that found a wrong type."""


def calibration(study: Study) -> Calibration:
    """Confidence against truth, each document weighing as many as it stands for."""
    known = [(one, right) for one in study.reviewed if (right := type_is_right(one)) is not None]
    usable = [(one, right) for one, right in known if _confidence(one) is not None]
    said = [_confidence(one) or 0.0 for one, _ in usable]
    was = [right == 1 for _, right in usable]
    weights = [1 / one.probability if one.probability else 1.0 for one, _ in usable]
    return Calibration(
        len(usable),
        len(known) - len(usable),
        reliability(said, was, weights),
        risk_coverage(said, was, weights),
        expected_calibration_error(said, was, weights),
        brier(said, was, weights),
    )


def offer(study: Study, *, rate: float = 0.05, level: float = 0.95) -> Offer:
    """The lowest confidence from which at most ``rate`` of the accepted documents are wrong, shown by blind audits.

    An audit is a document that the arbiter accepted and chance drew, and that an expert answered before seeing the
    agent's answer.
    """
    audits = [one for one in study.reviewed if _is_blind_audit(one) and type_is_right(one) is not None]
    stays = set(thinned([one.probability or 1.0 for one in audits], _SEED).tolist()) if audits else set()
    kept = [one for place, one in enumerate(audits) if place in stays]
    right = [type_is_right(one) == 1 for one in kept]
    said = [_confidence(one) or 0.0 for one in kept]
    return Offer(
        rate,
        level,
        certificate(said, right, rate=rate, level=level, candidates=THRESHOLDS),
        len(kept),
        len(audits) - len(kept),
        _simulated(kept),
        tuple(one.doc_id for one, was in zip(kept, right, strict=True) if not was),
    )


def _is_blind_audit(one: Document) -> bool:
    return (
        one.is_accepted
        and one.truth is not None
        and one.truth.review_reason in ("audit", "sample")
        and bool(one.answers)
        and one.answers[0].was_blind
    )


def _confidence(one: Document) -> float | None:
    """In 0..1; None where there is none that can be used."""
    said = one.agent.confidence if one.agent else None
    return said if said is not None and 0 <= said <= 1 else None


def _simulated(some: Sequence[Document]) -> int:
    return sum(one.truth.is_simulated for one in some if one.truth)
