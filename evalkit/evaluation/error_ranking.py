"""Ranking of answers by risk: how many pages of work find the wrong ones.

Ranked by the risk of their pages (``page_risks``), wrong answers should come first; the order is measured, nothing is
decided by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from evalkit.evaluation.metrics import find_boundaries, list_page_types
from evalkit.evaluation.study import Study
from evalkit.pipeline.supplied_labels import TypedPageRange

#: So many of all pages are looked at, the riskiest first.
PAGE_SHARES = (0.05, 0.10, 0.20)


class RankedDocument(NamedTuple):
    """A document whose truth is known."""

    page_risks: Sequence[float]
    page_errors: Sequence[bool]
    """Whether a page has a wrong type, or a wrong seam before it."""
    sampling_weight: float = 1.0
    """How many documents it represents, at least 1."""

    @property
    def risk(self) -> float:
        """Probability that any page is wrong, 0..1, if pages were independent."""
        return 1 - float(np.prod([1 - risk for risk in self.page_risks]))


class CaughtErrors(NamedTuple):
    """Share of the wrong pages that are among the riskiest pages."""

    page_share: float
    """Of all pages, 0..1, so many are looked at."""
    caught_share: float
    best_possible_share: float
    """If all wrong pages came first."""


class ErrorRanking(NamedTuple):
    """Quality of the risks in separating wrong answers from right ones."""

    document_count: int
    wrong_count: int
    auroc: float
    """Probability that a wrong document has the higher risk than a right one; NaN without both."""
    page_count: int
    wrong_page_count: int
    caught_errors: tuple[CaughtErrors, ...]
    """One for each of ``PAGE_SHARES``; empty where no page is wrong."""


def mark_page_errors(
    true_spans: Sequence[TypedPageRange], predicted_spans: Sequence[TypedPageRange], page_count: int
) -> list[bool]:
    """Mark pages with a wrong type, or with a false or missing boundary before them.

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
    """Measure how well risks rank these documents and pages, by sampling weight.

    Source of the measure: area under the receiver operating characteristic (Hanley and McNeil, Radiology 143, 1982), as
    scikit-learn computes it.
    """
    is_wrong = [any(document.page_errors) for document in documents]
    auroc = (
        float(
            roc_auc_score(
                is_wrong,
                [document.risk for document in documents],
                sample_weight=[document.sampling_weight for document in documents],
            )
        )
        if len(set(is_wrong)) == 2
        else float("nan")
    )
    risks = np.array([risk for document in documents for risk in document.page_risks])
    errors = np.array([error for document in documents for error in document.page_errors], dtype=float)
    weights = np.array([document.sampling_weight for document in documents for _ in document.page_risks])
    return ErrorRanking(
        len(documents),
        sum(is_wrong),
        auroc,
        len(risks),
        int(errors.sum()),
        tuple(_find_caught_errors(risks, errors * weights, weights)) if errors.any() else (),
    )


def list_ranked_documents(study: Study) -> list[RankedDocument]:
    """List the documents whose segments were vouched for."""
    return [
        RankedDocument(
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


def _find_caught_errors(
    risks: npt.NDArray[np.float64], error_weights: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> Iterator[CaughtErrors]:
    order = np.argsort(-risks, kind="stable")
    # Among equal risks the order says nothing: errors there are caught in proportion.
    last_of_ties = np.append(np.flatnonzero(np.diff(risks[order])), len(order) - 1)
    page_shares = np.append(0.0, (np.cumsum(weights[order]) / weights.sum())[last_of_ties])
    error_shares = np.append(0.0, (np.cumsum(error_weights[order]) / error_weights.sum())[last_of_ties])
    for page_share in PAGE_SHARES:
        yield CaughtErrors(
            page_share,
            float(np.interp(page_share, page_shares, error_shares)),
            min(1.0, page_share * float(weights.sum() / error_weights.sum())),
        )
