"""What the loop costs and gains over many documents, and when somebody should look (specification 002, section 8.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from evalkit.extraction.reliability_loop import ReliabilityLoopResult

MetricFunction = Callable[[Sequence[ReliabilityLoopResult]], list[float]]


@dataclass(frozen=True)
class LoopMetric:
    """A figure of the loop."""

    name: str
    """``marc.iteration_count``."""
    value: float
    """The mean; of a rate, the rate."""
    observation_count: int
    """How many observations it rests on."""
    alert_count: int
    """How many of them are beyond the threshold."""
    alert_message: str
    """What a figure beyond it says; empty where none is."""


@dataclass(frozen=True)
class _MetricRule:
    name: str
    measure: MetricFunction
    is_alert: Callable[[float], bool]
    alert_message: str


def _count_iterations(results: Sequence[ReliabilityLoopResult]) -> list[float]:
    return [float(loop_result.iterations) for loop_result in results]


def _collect_final_scores(results: Sequence[ReliabilityLoopResult]) -> list[float]:
    return [loop_result.final_score for loop_result in results if loop_result.final_score is not None]


def _compute_threshold_met_rate(results: Sequence[ReliabilityLoopResult]) -> list[float]:
    return [fmean(float(loop_result.met_threshold) for loop_result in results)] if results else []


def _collect_processing_times(results: Sequence[ReliabilityLoopResult]) -> list[float]:
    return [loop_result.processing_seconds * 1000 for loop_result in results]


def _collect_improvements(results: Sequence[ReliabilityLoopResult]) -> list[float]:
    return [
        iteration.improvement
        for loop_result in results
        for iteration in loop_result.history
        if iteration.improvement is not None
    ]


METRIC_RULES: tuple[_MetricRule, ...] = (
    _MetricRule(
        "marc.iteration_count", _count_iterations, lambda value: value > 3, "more than 3 attempts: look at the prompts"
    ),
    _MetricRule(
        "marc.final_score",
        _collect_final_scores,
        lambda value: value < 0.8,
        "a final score below 0.8: a person looks first",
    ),
    _MetricRule(
        "marc.threshold_met_rate",
        _compute_threshold_met_rate,
        lambda value: value < 0.9,
        "fewer than 90 % of documents meet the threshold",
    ),
    _MetricRule(
        "marc.processing_time_ms", _collect_processing_times, lambda value: value > 45_000, "longer than 45 seconds"
    ),
    _MetricRule(
        "marc.improvement_per_iteration",
        _collect_improvements,
        lambda value: value < 0.02,
        "an attempt that gained less than 0.02",
    ),
)


def compute_loop_metrics(results: Sequence[ReliabilityLoopResult]) -> tuple[LoopMetric, ...]:
    """The five figures; those that nothing was observed for are left out."""
    metrics = []
    for rule in METRIC_RULES:
        values = rule.measure(results)
        if values:
            alert_count = sum(map(rule.is_alert, values))
            observation_count = len(results) if rule.measure is _compute_threshold_met_rate else len(values)
            metrics.append(
                LoopMetric(
                    rule.name, fmean(values), observation_count, alert_count, rule.alert_message if alert_count else ""
                )
            )
    return tuple(metrics)
