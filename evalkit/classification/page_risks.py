"""Estimated risk that a page's or a whole file's classification is wrong.

A page's risk combines the confidence in the segment's type, the stated doubt about the page break before the page, and
the open issues about the page. The arbiter's decision does not depend on it; how often an accepted document is drawn
for audit does.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from evalkit.classification.v2_consistency import get_stated_beginning_probabilities
from evalkit.issue import RISK_BY_SEVERITY, IssueSeverity

_SEAM_CODE = "V2-BOUNDARY-DOUBT"
#: Codes about patients and missing pages, which say little about types and boundaries and count as MINOR.
_CODES_OF_OTHER_QUESTIONS = ("V2-PATIENT-", "V2-PAGES-")

#: Risks are limited to this distance from 0 and 1, so that their logits are finite.
_SMALLEST_RISK = 1e-4
#: Standard deviation of the prior of a calibration's intercept and slope, around "the stated risks are right".
_PRIOR_DEVIATIONS = np.array([1.0, 0.5])
_NEWTON_STEPS = 25


class RiskCalibration(NamedTuple):
    """Logistic calibration of the program's estimated risks.

    logit(p) = intercept + slope * logit(stated risk).
    """

    intercept: float = 0.0
    slope: float = 1.0

    def apply(self, stated_risk: float) -> float:
        """Return the calibrated risk, 0..1.

        >>> round(RiskCalibration(intercept=-2.2).apply(0.5), 3), round(RiskCalibration().apply(0.25), 3)
        (0.1, 0.25)
        """
        return float(self.apply_to_all([stated_risk])[0])

    def apply_to_all(self, stated_risks: Sequence[float]) -> npt.NDArray[np.float64]:
        """Return the calibrated risks, 0..1."""
        calibrated: npt.NDArray[np.float64] = expit(self.intercept + self.slope * _compute_logits(stated_risks))
        return calibrated


def _compute_logits(risks: Sequence[float]) -> npt.NDArray[np.float64]:
    logits: npt.NDArray[np.float64] = logit(np.clip(np.asarray(risks, dtype=float), _SMALLEST_RISK, 1 - _SMALLEST_RISK))
    return logits


def fit_risk_calibration(
    stated_risks: Sequence[float], is_wrong: Sequence[float], weights: Sequence[float] | None = None
) -> RiskCalibration:
    """Fit the calibration of estimated risks to reviewed documents.

    ``is_wrong`` may also be the wrong share (0..1) of each document. ``weights`` are the numbers of documents that each reviewed one represents. With few reviews, or none, the result
    stays near the stated risks: intercept 0 and slope 1 are the centre of a normal prior.

    Source: Platt, Probabilistic outputs for support vector machines (1999); maximum a posteriori by Newton's method.

    >>> fit_risk_calibration([], [])
    RiskCalibration(intercept=0.0, slope=1.0)
    """
    logits = _compute_logits(stated_risks)
    outcomes = np.asarray(is_wrong, dtype=float)
    row_weights = np.ones(len(logits)) if weights is None else np.asarray(weights, dtype=float)
    if len(logits):
        row_weights = row_weights * row_weights.sum() / (row_weights**2).sum()  # sum: Kish's effective sample size
    features = np.column_stack([np.ones(len(logits)), logits])
    centre, precision = np.array([0.0, 1.0]), np.diag(_PRIOR_DEVIATIONS**-2.0)
    coefficients = centre
    for _ in range(_NEWTON_STEPS):
        fitted = expit(features @ coefficients)
        gradient = features.T @ (row_weights * (outcomes - fitted)) - precision @ (coefficients - centre)
        hessian = features.T @ (features * (row_weights * fitted * (1 - fitted))[:, None]) + precision
        # Limited steps: far from the optimum, Newton's full step can overshoot.
        coefficients = coefficients + np.clip(np.linalg.solve(hessian, gradient), -1.0, 1.0)
    return RiskCalibration(*map(float, coefficients))


def compute_document_risk(
    classification: Mapping[str, Any] | None,
    issues: Sequence[Mapping[str, Any]],
    page_count: int,
    calibration: RiskCalibration | None = None,
) -> float:
    """Compute the risk, 0..1, that a file's answer is wrong in any type or boundary.

    Arguments and errors as ``compute_page_risks``. The pages of one segment share their doubt, so that a segment is as
    doubtful as its most doubtful page; segments count as independent. Without a ``calibration`` it is the risk that the
    program states.
    """
    page_risks = compute_page_risks(classification, issues, page_count)
    page_ranges = (
        [(part["start_page"], part["end_page"]) for part in classification["segments"]] if classification else []
    )
    stated_risk = combine_page_risks(page_risks, page_ranges)
    return calibration.apply(stated_risk) if calibration else stated_risk


def combine_page_risks(page_risks: Sequence[float], page_ranges: Sequence[tuple[int, int]]) -> float:
    """Combine the pages' risks to the file's, by segments (first page, last page).

    >>> combine_page_risks([0.1, 0.1, 0.2], [(1, 2), (3, 3)])
    0.28
    """
    covered_pages = {
        page
        for first_page, last_page in page_ranges
        for page in range(max(first_page, 1), min(last_page, len(page_risks)) + 1)
    }
    loose_pages = [(page, page) for page in range(1, len(page_risks) + 1) if page not in covered_pages]
    segment_risks = [
        max(page_risks[max(first_page - 1, 0) : last_page], default=0.0)
        for first_page, last_page in (*page_ranges, *loose_pages)
    ]
    return round(1 - float(np.prod([1 - risk for risk in segment_risks])), 6) if segment_risks else 1.0


def compute_page_risks(
    classification: Mapping[str, Any] | None, issues: Sequence[Mapping[str, Any]], page_count: int
) -> list[float]:
    """Compute the risk, 0..1, that a page's type or the boundary before it is wrong.

    ``classification`` and ``issues`` as in a stored result; all risks are 1 if the classification is None. KeyError and
    TypeError if they have another shape.
    """
    if classification is None:
        return [1.0] * page_count
    certainties = np.zeros(page_count)
    beginnings = set()
    pages_by_segment: dict[int | None, range] = {None: range(1, page_count + 1)}
    for segment in classification["segments"]:
        pages = range(max(1, segment["start_page"]), min(page_count, segment["end_page"]) + 1)
        beginnings.add(segment["start_page"])
        pages_by_segment[segment["segment_index"]] = pages
        for presence in segment["segment_composition"]:
            if presence["document_type"] == segment["dominant_type"]:
                certainties[pages.start - 1 : pages.stop - 1] = presence["confidence"]
    for page, probability in get_stated_beginning_probabilities(classification["self_evaluation"]).items():
        # the self-evaluation of another system may have any content
        if 1 < page <= page_count and type(probability) in (int, float) and 0 <= probability <= 1:
            certainties[page - 1] *= probability if page in beginnings else 1 - probability
    for issue in issues:
        if issue["status"] == "open":
            is_other_question = issue["code"].startswith(_CODES_OF_OTHER_QUESTIONS)
            risk = RISK_BY_SEVERITY[IssueSeverity.MINOR if is_other_question else IssueSeverity(issue["severity"])]
            for page in _find_pages_at_issue(issue, pages_by_segment):
                certainties[page - 1] *= 1 - risk
    return [1 - certainty for certainty in np.clip(certainties, 0, 1).tolist()]


def _find_pages_at_issue(issue: Mapping[str, Any], pages_by_segment: Mapping[int | None, range]) -> range:
    is_about_page = issue["code"] == _SEAM_CODE or issue["segment_index"] is None
    if is_about_page and issue["page"] in pages_by_segment[None]:
        return range(issue["page"], issue["page"] + 1)
    return pages_by_segment.get(issue["segment_index"], range(0))
