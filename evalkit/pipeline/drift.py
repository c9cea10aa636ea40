"""Detection of rising error rates among accepted documents, from their audits.

Each stratum of documents has a detector that compares its newest audits with its own earlier ones. For each audit that
may be the first after a change, the likelihood of all audits since then with some errors added is divided by their
likelihood without; the detector is the sum of these ratios (Shiryaev and Roberts; as an e-detector: Shin, Ramdas and
Rinaldo, New England Journal of Statistics in Data Science 2, 2024). Without a change, each ratio is 1 on average, so
that the expected sum over all strata is the number of audits drawn. A limit of c on every stratum's detector therefore
gives at most one false brake in c audits of all strata together, however many strata there are. Where unusual input
makes a change likely (``input_monitoring``), the ratio that begins there counts for more, and so does a warning in the
run length. Without wrong answers it brakes nothing.
One ratio more compares a rate that is never tolerated with the highest tolerated one, from the first audit on: a stratum that
is bad from the start has nothing better to be compared with.

*The error rate before the change* is unknown: it is integrated out, with the stratum's earlier audits as data. Audits
are compared with earlier ones of similar risk, because documents are drawn by risk: so no weights are needed, and an
error where the program was sure counts for more. Errors that experts invent or overlook are part of the earlier rate.

*Order.* Audits count in the order of their documents' acceptance, whenever they are answered. Among the newest audits
one without an answer counts as right, so that answers which find errors and come first brake nothing that all answers
would not; among the earlier ones, which show what is usual, only answered audits count.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, logsumexp

from evalkit.core.package_tables import load_package_table
from evalkit.pipeline.event_log import LoggedEvent

FloatArray = npt.NDArray[np.float64]

_TABLE = load_package_table("evalkit.pipeline", "drift.toml")
_ERRORS, _INPUTS = _TABLE["errors"], _TABLE["inputs"]
#: Audits of all strata together in which at most one false brake is expected.
RUN_LENGTH = float(_ERRORS["run_length"])
#: Weight of a warning about unusual input: as many audits as it counts for in the run length.
WARNING_WEIGHT = float(_ERRORS["warning_weight"])
_WINDOW = _ERRORS["window"]
_MIN_EARLIER_AUDITS = _ERRORS["min_earlier_audits"]
_RISK_LIMITS = np.array(_ERRORS["risk_limits"])
#: The detector is shown up to exp(20) times the limit, so that it stays finite.
_MAX_LOG_LEVEL = 20.0


class AuditSequence(NamedTuple):
    """Audits of one stratum, in the order in which the documents were accepted."""

    risks: FloatArray
    """The program's stated risk (0..1) that the answer is wrong."""
    is_answered: npt.NDArray[np.bool_]
    is_found_wrong: npt.NDArray[np.bool_]
    """True if the audit is answered and its answer is that the program was wrong."""
    start_weights: FloatArray
    """Weight of a change that begins at the audit: 1, and ``WARNING_WEIGHT`` more where a warning says so."""


class DriftEvidence(NamedTuple):
    """State of a stratum's drift detector after one wrong answer."""

    position: int
    """Position of the wrong answer among the audits."""
    level: float
    """Value of the detector, as a share of the limit: a brake is due from 1 on."""
    first_position: int
    """Position of the audit that is most likely the first after the change."""


def compute_drift_evidence(audits: AuditSequence, first_position: int = 0) -> list[DriftEvidence]:
    """Compute the detector's state after each wrong answer from ``first_position``.

    Changes before ``first_position`` are not searched for; earlier audits show what is usual. Between two wrong answers
    the detector only falls, but for the ratios that begin there.
    """
    groups = np.digitize(audits.risks, _RISK_LIMITS * (audits.risks.mean() if len(audits.risks) else 0.0))
    is_in_group = groups == np.arange(len(_RISK_LIMITS) + 1)[:, None]
    drawn, answered, wrong = (
        np.pad(np.cumsum(is_in_group & kind, axis=1), ((0, 0), (1, 0))).astype(float)
        for kind in (np.ones_like(audits.is_answered), audits.is_answered, audits.is_found_wrong)
    )
    first_searched = int(np.searchsorted(answered.sum(axis=0), _MIN_EARLIER_AUDITS))
    evidence = []
    for position in map(int, np.flatnonzero(audits.is_found_wrong)):
        if position < first_position:
            continue
        starts = np.arange(max(position + 1 - _WINDOW, first_position, first_searched), position + 1)
        wrong_since = wrong[:, [position + 1]] - wrong[:, starts]
        log_ratios = _compute_log_ratios(
            wrong[:, starts],
            answered[:, starts],
            wrong_since,
            drawn[:, [position + 1]] - drawn[:, starts],
            _ERRORS,
        )
        log_ratios += np.log(audits.start_weights[starts])
        # A stratum that is bad from the start has nothing better to be compared with.
        since_first = audits.is_found_wrong[first_position : position + 1]
        log_ratios = np.append(log_ratios, _compute_intolerable_ratio(since_first))
        starts = np.append(starts, first_position)
        level = _compute_level(log_ratios, RUN_LENGTH)
        evidence.append(DriftEvidence(position, level, int(starts[np.argmax(log_ratios)])))
    return evidence


def _compute_intolerable_ratio(is_found_wrong: npt.NDArray[np.bool_]) -> float:
    """Compute the log likelihood ratio of rates above the tolerated one to that rate."""
    tolerated, rates = _ERRORS["tolerated_rate"], np.array(_ERRORS["intolerable_rates"])
    wrong_count = is_found_wrong.sum()
    right_count = len(is_found_wrong) - wrong_count
    log_ratios = wrong_count * np.log(rates / tolerated) + right_count * np.log((1 - rates) / (1 - tolerated))
    return float(logsumexp(log_ratios) - np.log(len(rates)))


def find_unusual_runs(sums: FloatArray, document_counts: FloatArray) -> int | None:
    """Return how many of the newest runs differ from earlier runs; None if none.

    ``sums`` has, for each run, the sum of a measure (0..1) of its documents. Documents of one run are alike, so that a
    run counts as few of them.
    """
    weights = np.minimum(1.0, _INPUTS["documents_per_run"] / np.maximum(document_counts, 1))
    totals, counts = (np.pad(np.cumsum(values * weights), (1, 0))[None] for values in (sums, document_counts))
    starts = np.arange(_INPUTS["min_earlier_runs"], len(sums))
    if not len(starts):
        return None
    log_ratios = _compute_log_ratios(
        totals[:, starts],
        counts[:, starts],
        totals[:, [-1]] - totals[:, starts],
        counts[:, [-1]] - counts[:, starts],
        _INPUTS,
    )
    is_unusual = _compute_level(log_ratios, _INPUTS["run_length"]) >= 1
    return len(sums) - int(starts[np.argmax(log_ratios)]) if is_unusual else None


def _compute_log_ratios(
    wrong_before: FloatArray,
    count_before: FloatArray,
    wrong_since: FloatArray,
    count_since: FloatArray,
    table: Mapping[str, Any],
) -> FloatArray:
    """Compute a change's log likelihood ratio at each start, from counts.

    The counts are by group and start.
    """
    right_since = count_since - wrong_since
    usual_wrong = wrong_before + table["prior_wrong"]
    usual_right = count_before - wrong_before + table["prior_count"] - table["prior_wrong"]
    unchanged = betaln(usual_wrong + wrong_since, usual_right + right_since) - betaln(usual_wrong, usual_right)
    usual_rates = usual_wrong / (usual_wrong + usual_right)
    changed_rates = usual_rates + (1 - usual_rates) * np.array(table["added_rates"])[:, None, None]
    changed = (wrong_since * np.log(changed_rates) + right_since * np.log1p(-changed_rates)).sum(axis=1)
    mixed = logsumexp(changed, axis=0, b=np.array(table["added_weights"])[:, None])
    return cast("FloatArray", mixed - unchanged.sum(axis=0))


def _compute_level(log_ratios: FloatArray, run_length: float) -> float:
    return float(np.exp(min(logsumexp(log_ratios) - np.log(run_length), _MAX_LOG_LEVEL)))


def find_brakes_by_stratum(events: Iterable[LoggedEvent]) -> dict[str, LoggedEvent]:
    """Map each stratum under a brake (audit of all) to the event that started it."""
    brake_by_stratum = {}
    for event in events:
        if event.kind == "braked":
            brake_by_stratum[event.stratum] = event
        elif event.kind == "released":
            brake_by_stratum.pop(event.stratum, None)
    return brake_by_stratum
