"""What the loop costs and gains over many documents, and when somebody should look (specification 002, section 8.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from evalkit.extraction.reliability_loop import ReliabilityLoopResult

Measured = Callable[[Sequence[ReliabilityLoopResult]], list[float]]


@dataclass(frozen=True)
class LoopMetric:
    """A figure of the loop."""

    name: str
    """``marc.iteration_count``."""
    value: float
    """The mean; of a rate, the rate."""
    n: int
    """How many observations it rests on."""
    alerts: int
    """How many of them are beyond the threshold."""
    because: str
    """What a figure beyond it says; empty where none is."""


@dataclass(frozen=True)
class _Row:
    name: str
    measured: Measured
    is_beyond: Callable[[float], bool]
    because: str


def _counts(results: Sequence[ReliabilityLoopResult]) -> list[float]:
    return [float(one.iterations) for one in results]


def _scores(results: Sequence[ReliabilityLoopResult]) -> list[float]:
    return [one.final_score for one in results if one.final_score is not None]


def _met(results: Sequence[ReliabilityLoopResult]) -> list[float]:
    return [fmean(float(one.met_threshold) for one in results)] if results else []


def _times(results: Sequence[ReliabilityLoopResult]) -> list[float]:
    return [one.processing_seconds * 1000 for one in results]


def _gains(results: Sequence[ReliabilityLoopResult]) -> list[float]:
    return [each.improvement for one in results for each in one.history if each.improvement is not None]


ROWS: tuple[_Row, ...] = (
    _Row("marc.iteration_count", _counts, lambda value: value > 3, "more than 3 attempts: look at the prompts"),
    _Row("marc.final_score", _scores, lambda value: value < 0.8, "a final score below 0.8: a person looks first"),
    _Row("marc.threshold_met_rate", _met, lambda value: value < 0.9, "fewer than 90 % of documents meet the threshold"),
    _Row("marc.processing_time_ms", _times, lambda value: value > 45_000, "longer than 45 seconds"),
    _Row("marc.improvement_per_iteration", _gains, lambda value: value < 0.02, "an attempt that gained less than 0.02"),
)


def loop_metrics(results: Sequence[ReliabilityLoopResult]) -> tuple[LoopMetric, ...]:
    """The five figures; those that nothing was observed for are left out."""
    metrics = []
    for row in ROWS:
        values = row.measured(results)
        if values:
            beyond = sum(map(row.is_beyond, values))
            n = len(results) if row.measured is _met else len(values)
            metrics.append(LoopMetric(row.name, fmean(values), n, beyond, row.because if beyond else ""))
    return tuple(metrics)
