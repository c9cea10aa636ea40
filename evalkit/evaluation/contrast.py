"""Two answers about the same documents: which of them is right more often, where it is known and over all documents.

The documents whose truth is known are no random ones: counts and tests of them are about *reviewed documents only*. Over
all documents of both runs each one that chance drew stands for as many as it stands for in the run that drew it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalkit.evaluation.intervals import Estimate, Observed, exact, weighted

_FEWEST = 6
"""Discordant documents below which no outcome can have a p-value under 0.05: 2 · 0.5⁵ is 0.0625."""
_Z = 1.959963984540054
"""97.5 % of a standard normal distribution lie below."""


@dataclass(frozen=True)
class Paired:
    """How often each of two answers was right about the same documents."""

    both: int
    only_a: int
    only_b: int
    neither: int
    p_value: float | None
    """Of McNemar's exact test: how likely so uneven a count is where none is better; None without discordant ones."""
    difference: Estimate
    """Accuracy of B − accuracy of A, -1..1, with the 95 % interval."""

    @property
    def documents(self) -> int:
        """All of them."""
        return self.both + self.only_a + self.only_b + self.neither

    @property
    def discordant(self) -> int:
        """Those of which only one answer was right: they alone tell the two apart."""
        return self.only_a + self.only_b

    @property
    def verdict(self) -> str:
        """In words."""
        if self.discordant < _FEWEST:
            return f"too few to tell: the answers differ in being right on {self.discordant}, {_FEWEST} are the fewest"
        if self.p_value is None or self.p_value >= 0.05:
            return "no difference shown"
        return "B is right more often" if self.only_b > self.only_a else "A is right more often"


class Case(NamedTuple):
    """One document that both answered."""

    right: tuple[bool, bool] | None
    """Whether A is right, and B; None: nobody has told, or nobody can."""
    is_same: bool
    """Whether both say the same: whatever the truth is, neither is right more than the other."""
    probability: float | None
    """With which it came to be looked at, 0..1; None: nobody knows."""
    was_looked_at: bool


@dataclass(frozen=True)
class Overall:
    """Both answers over all documents that they are about."""

    population: int
    """How many documents these are."""
    documents: int
    """Those that the figures rest on: looked at, and told."""
    a: Estimate
    """Accuracy of A, 0..1."""
    b: Estimate
    """Accuracy of B, 0..1."""
    difference: Estimate
    """Accuracy of B − accuracy of A, -1..1."""


def paired(right: Sequence[tuple[bool, bool]]) -> Paired:
    """Whether A and B were right, one pair per document, counted and tested.

    Source: McNemar, Psychometrika 12 (1947), here exactly, as a binomial test of the discordant pairs; the interval is
    Newcombe's, Statistics in Medicine 17 (1998) 2635, method 10.

    >>> outcome = paired([(True, True)] * 36 + [(False, True)] * 12 + [(True, False)] * 2)
    >>> round(outcome.p_value, 6), [round(number, 4) for number in outcome.difference[:3]], outcome.verdict
    (0.012939, [0.2, 0.0569, 0.3404], 'B is right more often')
    """
    from scipy.stats import binomtest

    counts = Counter((bool(a), bool(b)) for a, b in right)
    both, neither = counts[True, True], counts[False, False]
    only_a, only_b = counts[True, False], counts[False, True]
    discordant = only_a + only_b
    return Paired(
        both,
        only_a,
        only_b,
        neither,
        p_value=float(binomtest(only_b, discordant).pvalue) if discordant else None,
        difference=_difference(both, only_b, only_a, neither),
    )


def _difference(both: int, first: int, second: int, neither: int) -> Estimate:
    """Share right of the first − share right of the second, which judge the same documents."""
    n = both + first + second + neither
    if n == 0:
        return Estimate(None, -1.0, 1.0, 0, "Newcombe")
    right_1, right_2 = both + first, both + second
    share_1, share_2 = right_1 / n, right_2 / n
    (low_1, high_1), (low_2, high_2) = _wilson(right_1, n), _wilson(right_2, n)
    together = both * neither - first * second
    spread = math.sqrt(right_1 * (n - right_1) * right_2 * (n - right_2))
    # A correction for continuity: a few documents show less of how the two go together than they seem to.
    correlation = (max(together - n / 2, 0) if together > 0 else together) / spread if spread else 0.0
    below, above = share_1 - low_1, high_2 - share_2
    further_below = math.sqrt(below**2 - 2 * correlation * below * above + above**2)
    below, above = share_2 - low_2, high_1 - share_1
    further_above = math.sqrt(below**2 - 2 * correlation * below * above + above**2)
    value = (first - second) / n
    return Estimate(value, max(value - further_below, -1.0), min(value + further_above, 1.0), n, "Newcombe")


def _wilson(right: int, n: int) -> tuple[float, float]:
    """Both ends of a share's interval. Source: Wilson, Journal of the American Statistical Association 22 (1927)."""
    middle = 2 * right + _Z**2
    half = _Z * math.sqrt(_Z**2 + 4 * right * (n - right) / n)
    whole = 2 * (n + _Z**2)
    return (middle - half) / whole, (middle + half) / whole


def overall(cases: Sequence[Case]) -> Overall:
    """Both accuracies and their difference over all documents, with 95 % intervals.

    The accuracies are :func:`~evalkit.evaluation.intervals.weighted` means. The difference needs no look where both
    answers are the same. Of the others, those that were certain to be looked at are counted, and what is missing of
    them may be for A or for B; those that could be drawn are estimated from those that were, a document with
    probability p counting 1 / p times. The ends of their interval are those of the shares that only B and only A has
    right, Clopper-Pearson for the effective number of documents, the sum of weights over the largest, as in
    ``weighted``; of few documents Newcombe's interval holds the truth too rarely. What nobody can tell of them may be
    for A or for B, too.

    >>> met = [Case((False, True), False, 1.0, True)] * 4 + [Case((True, True), True, 0.2, True)] * 20
    >>> unseen = [Case(None, True, 0.2, False)] * 76
    >>> overall(met + unseen).difference
    Estimate(value=0.04, low=0.04, high=0.04, n=4, method='weighted')
    """
    of_a, of_b = (_accuracy(cases, side) for side in (0, 1))
    return Overall(len(cases), sum(one.right is not None for one in cases if _is_seen(one)), of_a, of_b, _net(cases))


def _accuracy(cases: Sequence[Case], side: int) -> Estimate:
    observed = [
        Observed(None if one.right is None else float(one.right[side]), one.probability or 0.0)
        for one in cases
        if _is_seen(one)
    ]
    return weighted(observed, len(cases), take_all=sum(one.probability == 1 for one in cases))


def _is_seen(one: Case) -> bool:
    """Whether it counts as an observation. What is certain to be looked at and not told is missing, not drawn."""
    return one.right is not None if one.probability == 1 else bool(one.probability) and one.was_looked_at


def _net(cases: Sequence[Case]) -> Estimate:
    if not cases:
        return Estimate(None, -1.0, 1.0, 0, "weighted")
    differing = [one for one in cases if not one.is_same]
    certain = [one.right for one in differing if one.probability == 1]
    told = [right for right in certain if right is not None]
    drawn = [one for one in differing if one.probability != 1 and _is_seen(one)]
    rest, untold = len(differing) - len(certain), len(certain) - len(told)
    net = sum(b - a for a, b in told)
    middle, least, most = (_of_drawn(drawn, one) for one in ((False, False), (True, False), (False, True)))
    is_drawn_told = any(one.right is not None for one in drawn)
    is_known = is_drawn_told or (not rest and bool(told or not differing))
    return Estimate(
        (net + rest * (middle.value or 0.0)) / len(cases) if is_known else None,
        (net - untold + rest * least.low) / len(cases),
        (net + untold + rest * most.high) / len(cases),
        len(told) + (middle.n if is_drawn_told else 0),
        "weighted",
    )


def _of_drawn(drawn: Sequence[Case], untold: tuple[bool, bool]) -> Estimate:
    """The difference in what was drawn, where all that nobody can tell came out as ``untold``."""
    weights: dict[tuple[bool, bool], float] = defaultdict(float)
    for one in drawn:
        weights[one.right or untold] += 1 / (one.probability or 1.0)
    largest = max((1 / (one.probability or 1.0) for one in drawn), default=1.0)
    n = sum(weights.values()) / largest
    for_a, for_b = (exact(weights[cell] / largest, n) for cell in ((True, False), (False, True)))
    value = None if for_a.value is None or for_b.value is None else for_b.value - for_a.value
    return Estimate(value, for_b.low - for_a.high, for_b.high - for_a.low, n, "weighted")
