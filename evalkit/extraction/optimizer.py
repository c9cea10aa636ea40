"""Feedback on an extraction attempt, retry prompts, and the retry decision.

Source: specification 002, sections 3.3.2 and appendix A.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from evalkit.llm.prompts import fence_json

EvaluationSeverity = Literal["critical", "major", "minor"]

THRESHOLD_MET = "Quality threshold met"
MAX_ITERATIONS_REACHED = "Max iterations reached"
_ISSUE_TITLES: Mapping[EvaluationSeverity, str] = {
    "critical": "CRITICAL ISSUES (must fix):",
    "major": "MAJOR ISSUES (should fix):",
    "minor": "MINOR ISSUES:",
}


@dataclass(frozen=True)
class EvaluationIssue:
    """A problem with one extracted field."""

    severity: EvaluationSeverity
    field: str
    description: str
    suggested_fix: str = ""
    place: tuple[int, int, int] | None = None
    """What the report prints and no field has: its page, and start and end in the page's text."""


@dataclass(frozen=True)
class EvaluationFeedback:
    """Problems of one extraction attempt, worst first, for the next attempt."""

    overall_score: float | None
    """Score of the attempt, 0..1; None if a judge could not answer."""
    issues: tuple[EvaluationIssue, ...] = ()
    missing_fields: tuple[str, ...] = ()
    """Required and important fields without a value."""
    priority_fields: tuple[str, ...] = ()
    """Fields with critical or major problems, worst first."""
    suggestions: tuple[str, ...] = ()
    """The templates' hints for the priority fields."""


@dataclass(frozen=True)
class ReliabilityLoopConfig:
    """Conditions that end the attempts to extract one report."""

    quality_threshold: float = 0.95
    max_iterations: int = 3
    min_improvement: float = 0.05
    """Stop if the score rose by less than this over the attempt before."""
    timeout_seconds: float = 30.0
    """Stop after this time for all attempts together, model calls included."""
    enabled: bool = True
    """False: make one attempt only, which is still evaluated."""


#: Named configurations. Source: specification 002, section 7.5.
LOOP_PROFILES: Mapping[str, ReliabilityLoopConfig] = {
    "real-time": ReliabilityLoopConfig(quality_threshold=0.85, max_iterations=2),
    "batch": ReliabilityLoopConfig(quality_threshold=0.95, max_iterations=3),
    "clinical": ReliabilityLoopConfig(quality_threshold=0.98, max_iterations=5),
}


def build_loop_config(
    profile: str = "batch",
    *,
    quality_threshold: float | None = None,
    max_iterations: int | None = None,
    min_improvement: float | None = None,
    timeout_ms: float | None = None,
    enabled: bool | None = None,
) -> ReliabilityLoopConfig:
    """Return a profile's configuration with the given values replaced.

    ``profile``: a name in ``LOOP_PROFILES``, else KeyError. None leaves the profile's value. The options are those of
    specification 002, section 4.2.

    >>> build_loop_config("clinical", max_iterations=2)
    ReliabilityLoopConfig(quality_threshold=0.98, max_iterations=2, min_improvement=0.05, timeout_seconds=30.0, enabled=True)
    """
    overrides = {
        "quality_threshold": quality_threshold,
        "max_iterations": max_iterations,
        "min_improvement": min_improvement,
        "timeout_seconds": None if timeout_ms is None else timeout_ms / 1000,
        "enabled": enabled,
    }
    return replace(LOOP_PROFILES[profile], **{name: value for name, value in overrides.items() if value is not None})  # type: ignore[arg-type]


@dataclass(frozen=True)
class ContinuationDecision:
    """The decision whether to make another attempt, and its reason."""

    should_continue: bool
    reason: str


class ExtractionOptimizer:
    """Builds retry prompts from feedback, and decides whether to retry."""

    def build_optimized_prompt(
        self,
        base_prompt: str,
        feedback: EvaluationFeedback,
        previous_attempt: Mapping[str, Any],
        iteration: int,
        *,
        target: float = 0.95,
        instruction: str = "",
    ) -> str:
        """Append feedback and the previous attempt's values to the base prompt.

        ``target``: the score to reach, as the prompt names it. ``instruction``: how to read this time. Source: specification 002, appendix A.2.
        """
        section = self.build_feedback_section(feedback, iteration, target)
        return "\n".join(
            [
                base_prompt.rstrip(),
                "",
                section,
                "",
                "PREVIOUS ATTEMPT (for reference):",
                fence_json(dict(previous_attempt), "previous", base_prompt),
                "",
                "Please re-extract the clinical data, addressing ALL issues above.",
                *([instruction] if instruction else []),
                "Ensure extracted values EXACTLY match what appears in the source document.",
                "",
            ]
        )

    def build_feedback_section(self, feedback: EvaluationFeedback, iteration: int, target: float = 0.95) -> str:
        """Render the feedback for a prompt: problems by severity, missing fields, hints."""
        score = "none" if feedback.overall_score is None else f"{feedback.overall_score * 100:.1f}%"
        parts = [
            f"--- FEEDBACK FROM QUALITY EVALUATION (Iteration {iteration}) ---\n"
            f"Current Score: {score} (Target: {target * 100:.3g}%)",
            *(
                _render_list(title, [_render_issue(issue) for issue in feedback.issues if issue.severity == severity])
                for severity, title in _ISSUE_TITLES.items()
            ),
            _render_list("MISSING FIELDS:", feedback.missing_fields),
            _render_list("SUGGESTIONS:", feedback.suggestions),
        ]
        if feedback.priority_fields:
            parts.append(f"PRIORITY: Focus extraction on these fields: {', '.join(feedback.priority_fields)}")
        return "\n\n".join(filter(None, parts))

    def should_continue(
        self, current_score: float, previous_score: float | None, iteration: int, config: ReliabilityLoopConfig
    ) -> ContinuationDecision:
        """Decide on another attempt by threshold, number of attempts and improvement.

        ``previous_score``: score of the attempt before; None for the first attempt.
        """
        if current_score >= config.quality_threshold:
            return ContinuationDecision(False, THRESHOLD_MET)
        if iteration >= (config.max_iterations if config.enabled else 1):
            return ContinuationDecision(False, MAX_ITERATIONS_REACHED)
        # Rounded like the scores, so that a difference of exactly min_improvement is not below it.
        if (
            previous_score is not None
            and (improvement := round(current_score - previous_score, 4)) < config.min_improvement
        ):
            return ContinuationDecision(
                False, f"Improvement ({improvement * 100:.1f}%) below minimum ({config.min_improvement * 100:.1f}%)"
            )
        return ContinuationDecision(True, "Continue optimization")


def _render_issue(issue: EvaluationIssue) -> str:
    fix = f" → {issue.suggested_fix}" if issue.suggested_fix else ""
    return " ".join(f"[{issue.field}] {issue.description}{fix}".split())


def _render_list(title: str, rows: Iterable[str]) -> str:
    lines = [f"  - {row}" for row in rows]
    return "\n".join([title, *lines]) if lines else ""
