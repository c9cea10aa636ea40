"""Quality of the page risks as a ranking: errors found per checked page.

If documents and pages are sorted by their risk (``page_risks``), wrong ones should come first. This is only measured:
no decision depends on the ranking.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from evalkit.evaluation.intervals import BOOTSTRAP_SEED, Estimate, estimate_by_bootstrap
from evalkit.evaluation.metrics import find_boundaries, list_page_types
from evalkit.evaluation.study import Study
from evalkit.pipeline.supplied_labels import TypedPageRange

#: Shares of all pages, riskiest first, for which the caught errors are reported.
PAGE_SHARES = (0.05, 0.10, 0.20)
#: Resamples for an interval: each sorts all pages.
_REPEATS = 100


class RankedDocument(NamedTuple):
    """The risks and page errors of a document with known truth."""

    risk: float
    """Risk (0..1) that any type or boundary is wrong, see ``combine_page_risks``."""
    page_risks: Sequence[float]
    page_errors: Sequence[bool]
    """For each page, True if its type or the boundary before it is wrong."""
    sampling_weight: float = 1.0
    """Number of documents that this document represents, at least 1."""


class CaughtErrors(NamedTuple):
    """Share of the errors found if only the riskiest pages are checked."""

    page_share: float
    """Share (0..1) of all pages that is checked, riskiest first."""
    caught_share: Estimate
    """Share (0..1) of the wrong pages among the checked pages."""
    best_possible_share: float
    """The ``caught_share`` of a perfect ranking, in which all wrong pages come first."""


class ErrorRanking(NamedTuple):
    """Measures of how well risks separate wrong from right documents and pages."""

    document_count: int
    wrong_count: int
    auroc: Estimate
    """Probability that a random wrong document has a higher risk than a random right one; None without both."""
    page_count: int
    wrong_page_count: int
    page_auroc: Estimate
    """The same of pages."""
    caught_errors: tuple[CaughtErrors, ...]
    """One entry for each of ``PAGE_SHARES``; empty if no page is wrong."""


def mark_page_errors(
    true_spans: Sequence[TypedPageRange], predicted_spans: Sequence[TypedPageRange], page_count: int
) -> list[bool]:
    """Return for each page True if its type or the boundary before it is wrong.

    >>> mark_page_errors([(1, 2, "Note"), (3, 4, "Other")], [(1, 3, "Note"), (4, 4, "Other")], 4)
    [False, False, True, True]
    """
    type_pairs = zip(list_page_types(true_spans, page_count), list_page_types(predicted_spans, page_count), strict=True)
    wrong_seams = find_boundaries(true_spans) ^ find_boundaries(predicted_spans)
    return [
        predicted_type is None or predicted_type != true_type or page in wrong_seams
        for page, (true_type, predicted_type) in enumerate(type_pairs, 1)
    ]


def rank_errors(documents: Sequence[RankedDocument]) -> ErrorRanking:
    """Measure how well page risks rank documents and pages, by sampling weight.

    Intervals are by bootstrap over documents. Source of the measure: area under the receiver operating characteristic
    (Hanley and McNeil, Radiology 143, 1982), as scikit-learn computes it.
    """
    is_wrong = np.array([any(document.page_errors) for document in documents])
    document_risks = np.array([document.risk for document in documents])
    page_counts = [len(document.page_risks) for document in documents]
    page_risks = np.array([risk for document in documents for risk in document.page_risks])
    page_errors = np.array([error for document in documents for error in document.page_errors], dtype=float)
    weights = [document.sampling_weight for document in documents]
    page_weights = np.repeat(weights, page_counts)

    def estimate(compute: Callable[[npt.NDArray[np.float64]], float]) -> Estimate:
        return estimate_by_bootstrap(
            lambda rows: compute(np.bincount(rows, minlength=len(documents)).astype(float)),
            len(documents),
            seed=BOOTSTRAP_SEED,
            repeats=_REPEATS,
            weights=weights,
        )

    def compute_caught_share(page_share: float, row_counts: npt.NDArray[np.float64]) -> float:
        return _compute_caught_share(page_share, page_risks, page_errors, np.repeat(row_counts, page_counts))

    return ErrorRanking(
        len(documents),
        int(is_wrong.sum()),
        estimate(lambda row_counts: compute_auroc(is_wrong, document_risks, row_counts)),
        len(page_risks),
        int(page_errors.sum()),
        estimate(lambda row_counts: compute_auroc(page_errors > 0, page_risks, np.repeat(row_counts, page_counts))),
        tuple(
            CaughtErrors(
                page_share,
                estimate(partial(compute_caught_share, page_share)),
                min(1.0, page_share * float(page_weights.sum() / (page_errors * page_weights).sum())),
            )
            for page_share in (PAGE_SHARES if page_errors.any() else ())
        ),
    )


def compute_auroc(
    is_wrong: npt.NDArray[np.bool_], risks: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> float:
    """Compute the weighted AUROC; NaN without right or without wrong units."""
    if not 0 < weights[is_wrong].sum() < weights.sum():
        return float("nan")
    return float(roc_auc_score(is_wrong, risks, sample_weight=weights))


def list_ranked_documents(study: Study) -> list[RankedDocument]:
    """List page risks and errors of documents whose segments an expert confirmed."""
    return [
        RankedDocument(
            document.risk,
            document.page_risks,
            mark_page_errors(
                document.truth.labels.segments,
                document.agent_labels.segments if document.agent_labels else (),
                len(document.page_risks),
            ),
            document.sampling_weight,
        )
        for document in study.reviewed_documents
        if document.truth and document.truth.is_vouched("segments") and document.page_risks
    ]


def _compute_caught_share(
    page_share: float,
    risks: npt.NDArray[np.float64],
    errors: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
) -> float:
    """Compute the weighted share of errors on the riskiest pages; NaN without errors."""
    if not (errors * weights).any():
        return float("nan")
    order = np.argsort(-risks, kind="stable")
    # Pages of equal risk have no order: of their errors, the same share counts as caught as of the pages.
    last_of_ties = np.append(np.flatnonzero(np.diff(risks[order])), len(order) - 1)
    page_shares, error_shares = (
        np.append(0.0, (np.cumsum(amounts[order]) / amounts.sum())[last_of_ties])
        for amounts in (weights, errors * weights)
    )
    return float(np.interp(page_share, page_shares, error_shares))
