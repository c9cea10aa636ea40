"""Shares within a part of unknown size, such as the classifier's errors.

How many errors there are among the documents that were accepted is itself an estimate, from those that were drawn for
a look. A share of all errors is therefore a ratio whose denominator is uncertain: it is bounded by both ends of what
the size may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evalkit.evaluation.intervals import Estimate, Observation, estimate_weighted_mean


class CertainlyReviewedCounts(NamedTuple):
    """The documents that were certain to be looked at, in numbers of documents."""

    hits: int
    """In the part, and as asked."""
    misses: int
    """In the part, and not as asked."""
    undetermined_hits: int = 0
    """Unknown whether they are in the part; if they are, they are hits."""
    undetermined_misses: int = 0
    """Unknown; if they are in the part, they are misses."""


class DrawnDocument(NamedTuple):
    """One document that was drawn for a look."""

    is_in_domain: bool | None
    """Whether it is in the part; None: nobody can tell."""
    is_hit: bool
    """Whether it is as asked; without meaning where it is not in the part, or where the share is given."""
    inclusion_probability: float
    """With which it was drawn, above 0 and below 1."""


def estimate_hit_share_in_domain(
    certain_counts: CertainlyReviewedCounts,
    drawn_documents: Sequence[DrawnDocument],
    drawable_count: int,
    *,
    known_drawable_hit_share: float | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate the share of hits in the part, over all documents.

    Args:
        certain_counts: those with probability 1.
        drawn_documents: what was found in the others that were looked at.
        drawable_count: how many others there are, looked at or not.
        known_drawable_hit_share: the share of hits in the part among those others where it follows from what the part is (an
            accepted document was stopped by nobody: 0); None: it is estimated too.
        confidence_level: how often the interval holds the truth.

    The value leaves out the open ones; the interval counts them for the worst and the best, because they are not open by
    chance. Size and share among the others get half of the doubt each (Bonferroni), so that the interval holds both at
    once, and the size is nothing that was seen to be otherwise; the ratio rises or falls with the size all along, so that the ends of the size give the ends of the ratio. The
    value is None where nothing is in the part, or where there are others and nobody looked at any.

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
    # The weighted size may lie outside of what was seen of the others one by one.
    other_count = min(max(drawable_count * (domain_share.value or 0.0), size_bounds[0]), size_bounds[1])
    domain_size = certain_counts.hits + certain_counts.misses + other_count
    return (certain_counts.hits + other_count * (hit_share.value or 0.0)) / domain_size if domain_size else None


def _divide_or_default(numerator: float, denominator: float, default: float) -> float:
    return numerator / denominator if denominator else default
