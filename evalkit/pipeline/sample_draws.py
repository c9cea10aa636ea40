"""Random selection of accepted documents for review: audits and samples.

Source: contract ruling 11. A document is selected for an audit if its hash, mixed with the seed, falls below its
probability. That depends on the document's risk, on the number of audits completed and on the risks of documents that
were accepted before the run began: not on the order within a run. It is recorded when the document is first accepted,
and never changed, so that a run that is repeated or resumed selects the same documents.

Doubtful documents are drawn more often, in proportion to √(p (1 − p)) for a risk p, which estimates the error rate best
if the risks are right (Neyman, Journal of the Royal Statistical Society 97, 1934). Two thirds of the audits are spread
evenly: wrong risks can do little harm then, and a certificate, which trusts no risk, takes few more. The expected
number of audits is that of an even draw.

``draws/0001.json``, ``0002.json`` …: one draw each, changed only by a purge. A draw names every document that it could
have drawn: from then on each of them has a higher inclusion probability than its audit's, drawn or not.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from heapq import nsmallest
from statistics import fmean
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from evalkit.classification.document_result import SCHEMA_VERSION as RESULT_SCHEMA_VERSION
from evalkit.classification.page_risks import compute_document_risk
from evalkit.core.records import StrictRecord
from evalkit.errors import EvalkitError
from evalkit.settings import Settings
from evalkit.store import (
    SAMPLE_DRAWS_FOLDER,
    OutputFolder,
    read_numbered_records,
    result_file_name,
    sample_draw_file_name,
)

SCHEMA_VERSION = 1
#: Version of the formula of probabilities, and of the risks in it: raise it if an answer's probability changes.
PROBABILITY_FORMULA = 1

#: Largest share of the audits that are drawn by risk; the others are spread evenly.
_MAX_RISK_SHARE = 0.35
#: A risk deviation counts as at most so many times the mean one.
_MAX_RELATIVE_DEVIATION = 8.0
_MIN_RESULTS_READ, _MAX_RESULTS_READ = 50, 200


class Stratum(StrictRecord):
    """Documents with the same value of the field by which a sample is stratified."""

    value: str
    """The common value, such as ``Pathology Report``."""
    probability: dict[str, Annotated[float, Field(ge=0, le=1)]]
    """doc_id → the probability (0..1) that the document was selected by this draw, an earlier draw or an audit."""
    drawn: tuple[str, ...]
    """The documents that this draw put into the queue."""

    @model_validator(mode="after")
    def _check_drawn_documents(self) -> Self:
        if not self.probability.keys() >= set(self.drawn):
            raise ValueError("a drawn document has no inclusion probability")
        return self


class Draw(StrictRecord):
    """Record of one ``evalkit sample``: its strata and the drawn documents."""

    schema_version: int = SCHEMA_VERSION
    by: str
    """The field by which documents were grouped: ``production``, ``type`` or ``decision``."""
    drawn_at: str
    """The time of the draw (ISO 8601, UTC)."""
    strata: tuple[Stratum, ...]


class AuditDraw(StrictRecord):
    """Seed, rates and counts by which one session of a run draws audits."""

    seed: str
    rate_start: float
    """Share (0..1) of accepted documents that are audited until ``target`` audits are completed."""
    rate: float
    """Share after that."""
    target: int
    completed_audits: int
    mean_risk_deviation: float | None
    formula: int = PROBABILITY_FORMULA
    """Version of the computation of probabilities."""

    @classmethod
    def create(cls, settings: Settings, completed_audits: int, mean_risk_deviation: float | None) -> Self:
        """Create the audit rates of a session from the settings."""
        return cls(
            seed=settings.audit_seed,
            rate_start=settings.audit_rate_start,
            rate=settings.audit_rate,
            target=settings.audit_target,
            completed_audits=completed_audits,
            mean_risk_deviation=mean_risk_deviation,
        )

    @property
    def usual_rate(self) -> float:
        """Share (0..1) of accepted documents that are audited without any warning."""
        return self.rate_start if self.completed_audits < self.target else self.rate

    def list_probabilities(self, risk: float) -> tuple[float, float, float]:
        """List the audit probabilities: usual, under a warning, and under a brake."""
        usual, warned, braked = (
            compute_audit_probability(rate, risk, self.mean_risk_deviation)
            for rate in (self.usual_rate, max(self.usual_rate, self.rate_start), 1.0)
        )
        return usual, warned, braked


def read_all_draws(output_folder: OutputFolder) -> list[Draw]:
    """Read all draws, oldest first. StoreError if a draw is damaged or missing."""
    # Without the missing draw, the probabilities of its documents would be too low.
    return read_numbered_records(output_folder, SAMPLE_DRAWS_FOLDER, sample_draw_file_name, Draw)


def read_probability_by_eligible_doc_id(output_folder: OutputFolder) -> Mapping[str, float]:
    """Map each document that a sample could draw to its inclusion probability."""
    return {
        doc_id: probability
        for draw in read_all_draws(output_folder)
        for stratum in draw.strata
        for doc_id, probability in stratum.probability.items()
    }


def read_probability_by_drawn_doc_id(output_folder: OutputFolder) -> Mapping[str, float]:
    """Map each drawn document to its inclusion probability."""
    return {
        doc_id: stratum.probability[doc_id]
        for draw in read_all_draws(output_folder)
        for stratum in draw.strata
        for doc_id in stratum.drawn
    }


def compute_risk_deviation(risk: float) -> float:
    """Return the standard deviation of the outcome "wrong" for a risk of 0..1."""
    return math.sqrt(risk * (1 - risk))


def measure_mean_risk_deviation(
    output_folder: OutputFolder, accepted_hashes_and_doc_ids: Iterable[tuple[str, str]]
) -> float | None:
    """Compute the mean risk deviation of up to 200 accepted documents.

    Those with the smallest hashes are read. None if there are fewer than 50: they say too little.
    """
    deviations = []
    for _, doc_id in nsmallest(_MAX_RESULTS_READ, accepted_hashes_and_doc_ids):
        with suppress(EvalkitError, LookupError, TypeError):  # the run reports damaged results
            result = output_folder.read_json(result_file_name(doc_id), max_schema_version=RESULT_SCHEMA_VERSION)
            deviations.append(compute_risk_deviation(compute_result_risk(result)))
    return fmean(deviations) if len(deviations) >= _MIN_RESULTS_READ else None


def compute_result_risk(result: Mapping[str, Any]) -> float:
    """Compute the estimated risk (0..1) that any part of a stored result is wrong.

    KeyError or TypeError if it has another shape.
    """
    segments = result["classification"]["segments"] if result["classification"] else []
    last_page = max((segment["end_page"] for segment in segments), default=0)
    return compute_document_risk(result["classification"], result["issues"], last_page)


def compute_audit_probability(audit_rate: float, risk: float, mean_deviation: float | None) -> float:
    """Compute the probability (0..1) that an accepted document is audited.

    Its mean is ``audit_rate``. The higher the rate, the more even the draw: at 1 every document is audited. Without a
    ``mean_deviation`` of earlier documents, it is ``audit_rate`` for all.

    >>> compute_audit_probability(0.05, 0.002, 0.09), compute_audit_probability(0.05, 0.3, 0.09)
    (0.0416, 0.118)
    """
    if not mean_deviation:
        return audit_rate
    risk_share = _MAX_RISK_SHARE * (1 - audit_rate)
    relative_deviation = min(compute_risk_deviation(risk) / mean_deviation, _MAX_RELATIVE_DEVIATION)
    return round(min(audit_rate * (1 - risk_share + risk_share * relative_deviation), 1.0), 4)


def is_drawn_for_audit(seed: str, document_sha256: str, probability: float) -> bool:
    """Return True if the document with this SHA-256 is selected for an audit."""
    hash_number = int(hashlib.sha256(f"{seed}{document_sha256}".encode()).hexdigest(), 16)
    return hash_number < probability * 2**256
