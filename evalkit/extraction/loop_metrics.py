"""Metrics of the reliability loop and their alerts (specification 002, 8.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from evalkit.extraction.reliability_loop import ReliabilityLoopResult


class LoopMetric(NamedTuple):
    """A metric of the loop."""

    name: str
    measure: Callable[[ReliabilityLoopResult], Sequence[float]]
    """Values for one report; empty if nothing was measured."""
    is_alert: Callable[[float], bool]
    alert_message: str
    """Meaning of a value beyond the threshold."""


LOOP_METRICS = (
    LoopMetric("marc.iteration_count", lambda result: [result.iteration_count], lambda count: count > 3,
               "more than 3 attempts: look at the prompts"),
    LoopMetric("marc.final_score", lambda result: [] if result.final_score is None else [result.final_score],
               lambda score: score < 0.8, "a final score below 0.8: a person looks first"),
    LoopMetric("marc.processing_time_ms", lambda result: [result.processing_seconds * 1000],
               lambda milliseconds: milliseconds > 45_000, "longer than 45 seconds"),
    LoopMetric("marc.improvement_per_iteration",
               lambda result: [attempt.improvement for attempt in result.history if attempt.improvement is not None],
               lambda improvement: improvement < 0.02, "an attempt that gained less than 0.02"),
)  # fmt: skip
