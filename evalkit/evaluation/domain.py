"""Shares within a part of the documents whose size nobody knows either, such as the classifier's errors.

How many errors there are among the documents that were accepted is itself an estimate, from those that were drawn for
a look. A share of all errors is therefore a ratio whose denominator is uncertain: it is bounded by both ends of what
the size may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evalkit.evaluation.intervals import Estimate, Observed, weighted


class Certain(NamedTuple):
    """The documents that were certain to be looked at, in numbers of documents."""

    hits: int
    """In the part, and as asked."""
    misses: int
    """In the part, and not as asked."""
    open_hits: int = 0
    """Nobody has told whether they are in the part; if they are, they are hits."""
    open_misses: int = 0
    """Nobody has told; if they are in the part, they are misses."""


class Drawn(NamedTuple):
    """One document that was drawn for a look."""

    is_inside: bool | None
    """Whether it is in the part; None: nobody can tell."""
    is_hit: bool
    """Whether it is as asked; without meaning where it is not in the part, or where the share is given."""
    probability: float
    """With which it was drawn, above 0 and below 1."""


def share_within(
    certain: Certain, drawn: Sequence[Drawn], rest: int, *, drawn_share: float | None = None, level: float = 0.95
) -> Estimate:
    """The share of hits in the part, over all documents.

    Args:
        certain: those with probability 1.
        drawn: what was found in the others that were looked at.
        rest: how many others there are, looked at or not.
        drawn_share: the share of hits in the part among those others where it follows from what the part is (an
            accepted document was stopped by nobody: 0); None: it is estimated too.
        level: how often the interval holds the truth.

    The value leaves out the open ones; the interval counts them for the worst and the best, because they are not open by
    chance. Size and share among the others get half of the doubt each (Bonferroni), so that the interval holds both at
    once, and the size is nothing that was seen to be otherwise; the ratio rises or falls with the size all along, so that the ends of the size give the ends of the ratio. The
    value is None where nothing is in the part, or where there are others and nobody looked at any.

    >>> [round(number, 3) for number in share_within(Certain(8, 0), [Drawn(True, False, 0.5)] * 2, 4, drawn_share=0)[:3]]
    [0.667, 0.667, 0.8]
    """
    each = level if drawn_share is not None else 1 - (1 - level) / 2
    size = weighted(
        [Observed(None if one.is_inside is None else float(one.is_inside), one.probability) for one in drawn],
        rest,
        take_all=0,
        level=each,
    )
    share = (
        Estimate(drawn_share, drawn_share, drawn_share, size.n, "known")
        if drawn_share is not None
        else weighted(
            [Observed(float(one.is_hit), one.probability) for one in drawn if one.is_inside],
            rest,
            take_all=0,
            level=each,
        )
    )
    inside = sum(one.is_inside is True for one in drawn)
    outside = sum(one.is_inside is False for one in drawn)
    sizes = (max(rest * size.low, inside), min(rest * size.high, rest - outside))
    known = certain.hits + certain.misses
    least, most = known + certain.open_misses, known + certain.open_hits
    return Estimate(
        _value(certain, rest, size, share),
        min(_ratio(certain.hits + one * share.low, least + one, 0.0) for one in sizes),
        max(_ratio(certain.hits + certain.open_hits + one * share.high, most + one, 1.0) for one in sizes),
        known + share.n,
        "weighted",
    )


def _value(certain: Certain, rest: int, size: Estimate, share: Estimate) -> float | None:
    if rest and size.value is None:
        return None
    others = rest * (size.value or 0.0)
    inside = certain.hits + certain.misses + others
    return (certain.hits + others * (share.value or 0.0)) / inside if inside else None


def _ratio(part: float, whole: float, otherwise: float) -> float:
    return part / whole if whole else otherwise
