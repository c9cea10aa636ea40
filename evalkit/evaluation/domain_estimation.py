"""Domain estimation: shares within a part of unknown size, such as all errors.

How many errors the accepted documents contain is itself an estimate, from the accepted documents that were drawn for
review. A share of all errors is therefore a ratio with an uncertain denominator; its interval covers the smallest and
the largest possible size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evalkit.evaluation.intervals import Estimate, Observation, estimate_weighted_mean


class CertainlyReviewedCounts(NamedTuple):
    """Counts of the documents whose review was certain (inclusion probability 1).

    The domain is the part of interest, such as the classifier's errors; a hit is a document with the property whose
    share is asked, such as an error that a verifier caught.
    """

    hits: int
    """Number of documents in the domain that are hits."""
    misses: int
    """Number of documents in the domain that are no hits."""
    undetermined_hits: int = 0
    """Number of documents that are hits if they are in the domain, which is unknown."""
    undetermined_misses: int = 0
    """Number of documents that are no hits if they are in the domain, which is unknown."""


class DrawnDocument(NamedTuple):
    """One document that was drawn at random for review."""

    is_in_domain: bool | None
    """True if the document is in the domain; None if that cannot be determined."""
    is_hit: bool
    """True if the document has the asked property; ignored outside the domain or if ``known_drawable_hit_share`` is
    given."""
    inclusion_probability: float
    """Probability with which the document was drawn, above 0 and below 1."""


def estimate_hit_share_in_domain(
    certain_counts: CertainlyReviewedCounts,
    drawn_documents: Sequence[DrawnDocument],
    drawable_count: int,
    *,
    known_drawable_hit_share: float | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate the share of hits among all documents in the domain, reviewed or not.

    Args:
        certain_counts: counts of the documents that were certain to be reviewed.
        drawn_documents: the reviewed documents among those that could only be drawn at random.
        drawable_count: number of documents that could only be drawn at random, reviewed or not.
        known_drawable_hit_share: the share of hits in the domain among these documents if it is known beforehand (no
            verifier stopped an accepted document: 0); None if it has to be estimated too.
        confidence_level: the probability with which the interval holds the true share.

    The value leaves out undetermined documents; the interval assumes the worst and the best of them, because they are
    not undetermined by chance. The domain's size and the hit share among the drawable documents each get half of the
    error probability (Bonferroni), so that their intervals hold together; the size is also bounded by the documents
    already seen inside and outside of the domain. The ratio is monotonic in the size, so its extremes lie at the ends
    of the size's interval. The value is None if no document is in the domain, or if there are drawable documents and
    none was reviewed.

    >>> [round(number, 3) for number in estimate_hit_share_in_domain(CertainlyReviewedCounts(8, 0), [DrawnDocument(True, False, 0.5)] * 2, 4, known_drawable_hit_share=0)[:3]]
    [0.667, 0.667, 0.8]
    """
    part_level = confidence_level if known_drawable_hit_share is not None else 1 - (1 - confidence_level) / 2
    domain_share = estimate_weighted_mean(
        [
            Observation(
                None if candidate.is_in_domain is None else float(candidate.is_in_domain),
                candidate.inclusion_probability,
            )
            for candidate in drawn_documents
        ],
        drawable_count,
        certain_count=0,
        confidence_level=part_level,
    )
    hit_share = (
        Estimate(known_drawable_hit_share, known_drawable_hit_share, known_drawable_hit_share, domain_share.n, "known")
        if known_drawable_hit_share is not None
        else estimate_weighted_mean(
            [
                Observation(float(candidate.is_hit), candidate.inclusion_probability)
                for candidate in drawn_documents
                if candidate.is_in_domain
            ],
            drawable_count,
            certain_count=0,
            confidence_level=part_level,
        )
    )
    inside_count = sum(candidate.is_in_domain is True for candidate in drawn_documents)
    outside_count = sum(candidate.is_in_domain is False for candidate in drawn_documents)
    size_bounds = (
        max(drawable_count * domain_share.low, inside_count),
        min(drawable_count * domain_share.high, drawable_count - outside_count),
    )
    known_count = certain_counts.hits + certain_counts.misses
    min_known_count, max_known_count = (
        known_count + certain_counts.undetermined_misses,
        known_count + certain_counts.undetermined_hits,
    )
    return Estimate(
        _estimate_hit_share(certain_counts, drawable_count, domain_share, hit_share, size_bounds),
        min(
            _divide_or_default(certain_counts.hits + candidate * hit_share.low, min_known_count + candidate, 0.0)
            for candidate in size_bounds
        ),
        max(
            _divide_or_default(
                certain_counts.hits + certain_counts.undetermined_hits + candidate * hit_share.high,
                max_known_count + candidate,
                1.0,
            )
            for candidate in size_bounds
        ),
        known_count + hit_share.n,
        "weighted",
    )


def _estimate_hit_share(
    certain_counts: CertainlyReviewedCounts,
    drawable_count: int,
    domain_share: Estimate,
    hit_share: Estimate,
    size_bounds: tuple[float, float],
) -> float | None:
    if drawable_count and domain_share.value is None:
        return None
    # The weighted estimate of the size may contradict the number of documents already seen inside and outside: clip it.
    other_count = min(max(drawable_count * (domain_share.value or 0.0), size_bounds[0]), size_bounds[1])
    domain_size = certain_counts.hits + certain_counts.misses + other_count
    return (certain_counts.hits + other_count * (hit_share.value or 0.0)) / domain_size if domain_size else None


def _divide_or_default(numerator: float, denominator: float, default: float) -> float:
    return numerator / denominator if denominator else default
