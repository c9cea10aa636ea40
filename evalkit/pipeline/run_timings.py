"""Seconds of a run, summed by step and by document while the run goes on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from evalkit.core.timings import FAILED_STEP

#: Printed label of each step that counts, in the order of processing. ``waiting`` does not count: there are always more
#: documents than processes.
_LABEL_BY_STEP = {
    "reading": "reading",
    "recognising": "recognising",
    "asking": "models",
    "deciding": "deciding",
    "extracting": "fields",
    FAILED_STEP: "unreadable documents",
}


@dataclass
class RunTimings:
    """Seconds that documents took, by step and by document.

    Many documents are processed at once, so the sum exceeds the run's duration.
    """

    seconds_by_step: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    seconds_by_document: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, doc_id: str, seconds_by_step: Mapping[str, float]) -> None:
        """Add the seconds of a document's steps."""
        for step, seconds in seconds_by_step.items():
            if step in _LABEL_BY_STEP:
                self.seconds_by_step[step] += seconds
                self.seconds_by_document[doc_id] += seconds

    def format_timing_line(self, run_seconds: float) -> str:
        """Format a line: a run's seconds, the steps in percent, and the slowest document.

        >>> timings = RunTimings()
        >>> timings.add("a", {"waiting": 9.0, "reading": 6.0, "asking": 2.5})
        >>> timings.add("b", {"reading": 0.5, "asking": 1.0})
        >>> timings.format_timing_line(7.0)
        'Time: 7.0 s; reading 65 %, models 35 %; slowest document a 8.5 s'
        """
        total = sum(self.seconds_by_step.values())
        if not total:
            return f"Time: {run_seconds:.1f} s"
        percent_by_label = {
            label: round(100 * self.seconds_by_step[step] / total) for step, label in _LABEL_BY_STEP.items()
        }
        parts = ", ".join(f"{label} {percent} %" for label, percent in percent_by_label.items() if percent)
        slowest_id, slowest_seconds = max(self.seconds_by_document.items(), key=lambda document: document[1])
        return f"Time: {run_seconds:.1f} s; {parts}; slowest document {slowest_id} {slowest_seconds:.1f} s"
