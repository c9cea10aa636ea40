"""The report of a mutation test: faults detected, by whom, and false alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalkit.core.grouping import group_by
from evalkit.evaluation.challenge.fault_table import FAULT_BY_ID
from evalkit.evaluation.challenge.mutated_answer import (
    AnswerOrigin,
    MutationOperator,
)
from evalkit.evaluation.intervals import Estimate, estimate_proportion
from evalkit.llm.model import Usage

if TYPE_CHECKING:
    import pandas as pd


OUTCOME_NAMES = ("escalated", "undone", "repaired_otherwise", "missed")


KIND_COLUMNS = (
    *("kind", "what", "nature", "seen_by", "n", "caught", "share", "low", "high"),
    *("escalated", "undone", "repaired_otherwise", "missed", "unanswered", "caught_by", "caught_by_other", "skipped"),
)


@dataclass(frozen=True)
class JudgedMutation:
    """One fault, planted once."""

    doc_id: str
    kind: str
    nature: str
    place: int
    """Which of the places in that document, from 0."""
    caught: bool
    caught_by_other: bool
    """Caught, but by none of the issues that the kind names."""
    outcome: str
    """``escalated``, ``undone`` (repaired into the clean answer), ``repaired_otherwise``, ``missed``."""
    severity: str | None
    """The worst of the new issues."""
    agents: tuple[str, ...]
    """Who raised a new BLOCKER or MAJOR issue."""
    codes: tuple[str, ...]
    """Of these issues."""
    decision: str
    decision_rule: str
    unanswered: bool
    """A verifier could not answer; what it might have seen counts as not seen."""


NOT_COUNTED_REASONS = {
    AnswerOrigin.UNVALIDATED: "the program's own answers, which nobody has validated and which may be wrong",
    AnswerOrigin.SIMULATED: "validated by a program in an expert's place",
}


@dataclass(frozen=True)
class FalseAlarm:
    """A clean document whose answer is known to be right, and which escalates."""

    doc_id: str
    codes: tuple[str, ...]
    """Of its BLOCKER and MAJOR issues."""


@dataclass(frozen=True)
class MutationTestReport:
    """Outcome of a mutation test."""

    model: str
    clean_counts: Mapping[AnswerOrigin, int]
    """How many answers were taken for right, by who says so. Nothing is planted into those that escalate by themselves."""
    false_alarms: tuple[FalseAlarm, ...]
    """Those that escalate by themselves although somebody else than the program says that they are right."""
    cases: tuple[JudgedMutation, ...]
    skipped_counts: Mapping[str, int]
    """Documents by kind, to which it does not apply."""
    left_out_doc_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Documents that have no answer taken for right, by reason."""
    problems: tuple[str, ...] = ()
    """What could not be read: one line each."""
    usage_by_agent: Mapping[str, Usage] = field(default_factory=dict)
    """What language models were asked and paid."""

    @property
    def clean_document_count(self) -> int:
        """Number of answers taken for right."""
        return sum(self.clean_counts.values())

    @property
    def false_alarm_rate(self) -> Estimate:
        """Share of escalations among answers known to be right; exact 95 % interval."""
        return estimate_proportion(len(self.false_alarms), sum(self.count_clean_answers(is_counted=True).values()))

    def count_clean_answers(self, *, is_counted: bool) -> dict[AnswerOrigin, int]:
        """Count clean answers by origin: those counted for false alarms, or the others."""
        return {
            origin: self.clean_counts[origin]
            for origin in AnswerOrigin
            if origin.is_vouched_from_outside is is_counted and self.clean_counts.get(origin)
        }

    @property
    def macro_detection_rate(self) -> float | None:
        """Mean detection rate over the kinds; None if nothing was planted."""
        detection_rates = [
            sum(case.caught for case in cases) / len(cases) for cases in self._group_mutations_by_kind().values()
        ]
        return sum(detection_rates) / len(detection_rates) if detection_rates else None

    def _group_mutations_by_kind(self) -> dict[str, list[JudgedMutation]]:
        return group_by(self.cases, lambda case: case.kind)

    def tabulate_fault_kinds(self) -> pd.DataFrame:
        """One row per kind, in the table's order, kinds that applied nowhere too.

        Columns: ``kind, what, nature``; ``seen_by`` who should see it; ``n`` cases; ``caught``, ``share`` with ``low``
        and ``high``, the exact 95 % interval, which takes cases of one document for independent; ``escalated``,
        ``undone``, ``repaired_otherwise``, ``missed``: what became of them; ``unanswered``: cases in which a verifier
        could not answer; ``caught_by``: agents with the number of cases; ``caught_by_other``: cases that were caught, but
        by no issue of ``seen_by``; ``skipped``: documents it does not apply to.
        """
        import pandas as pd

        return pd.DataFrame(self._build_kind_rows(), columns=list(KIND_COLUMNS))

    def _build_kind_rows(self) -> list[dict[str, Any]]:
        cases_by_kind = self._group_mutations_by_kind()
        return [
            _build_kind_row(FAULT_BY_ID[kind], cases_by_kind.get(kind, []), self.skipped_counts.get(kind, 0))
            for kind in FAULT_BY_ID
            if kind in cases_by_kind or kind in self.skipped_counts
        ]

    def to_json(self) -> dict[str, Any]:
        """All of it, for a program."""
        false_alarm_rate = self.false_alarm_rate
        return {
            "model": self.model,
            "documents": self.clean_document_count,
            "false_alarms": {
                "counted": self.count_clean_answers(is_counted=True),
                "not_counted": self.count_clean_answers(is_counted=False),
                "documents": [vars(alarm) for alarm in self.false_alarms],
                "share": false_alarm_rate.value,
                "low": false_alarm_rate.low,
                "high": false_alarm_rate.high,
            },
            "macro": self.macro_detection_rate,
            "kinds": self._build_kind_rows(),
            "cases": [vars(case) for case in self.cases],
            "left_out": {reason: list(doc_ids) for reason, doc_ids in self.left_out_doc_ids.items()},
            "problems": list(self.problems),
            "by_agent": {agent: vars(usage) for agent, usage in self.usage_by_agent.items()},
        }


def _build_kind_row(operator: MutationOperator, cases: Sequence[JudgedMutation], skipped_count: int) -> dict[str, Any]:
    detection_rate = estimate_proportion(sum(case.caught for case in cases), len(cases))
    outcome_counts = Counter(case.outcome for case in cases)
    agent_counts = Counter(agent for case in cases if case.caught for agent in case.agents)
    return {
        "kind": operator.fault_id,
        "what": operator.description,
        "nature": operator.nature,
        "seen_by": ", ".join(operator.expected_codes),
        "n": len(cases),
        "caught": sum(case.caught for case in cases),
        "share": detection_rate.value,
        "low": detection_rate.low,
        "high": detection_rate.high,
        **{outcome_name: outcome_counts[outcome_name] for outcome_name in OUTCOME_NAMES},
        "unanswered": sum(case.unanswered for case in cases),
        "caught_by": ", ".join(f"{agent} {agent_counts[agent]}" for agent in sorted(agent_counts)),
        "caught_by_other": sum(case.caught_by_other for case in cases),
        "skipped": skipped_count,
    }


def format_report_table_and_summary(report: MutationTestReport) -> tuple[tuple[str, ...], list[list[str]], list[str]]:
    """For a terminal: columns, a row for each kind, and what is said below the table."""
    table_rows = [
        [
            row["kind"],
            row["what"],
            str(row["n"]),
            f"{100 * row['share']:.1f} %" if row["n"] else "",
            f"{100 * row['low']:.0f}–{100 * row['high']:.0f}" if row["n"] else "",
            row["caught_by"],
            str(row["caught_by_other"] or ""),
            ", ".join(
                f"{row[outcome_name]} {outcome_name.replace('_', ' ')}"
                for outcome_name in OUTCOME_NAMES[1:]
                if row[outcome_name]
            ),
            str(row["skipped"] or ""),
        ]
        for row in report.tabulate_fault_kinds().to_dict("records")
    ]
    planted_kind_count = len({case.kind for case in report.cases})
    summary_lines = [
        f"{len(report.cases)} cases"
        + (
            ""
            if report.macro_detection_rate is None
            else f", {100 * report.macro_detection_rate:.1f} % caught on the mean of {planted_kind_count} kinds"
        )
        + (
            f"; {len(table_rows) - planted_kind_count} kinds apply to none of these documents"
            if planted_kind_count < len(table_rows)
            else ""
        )
    ]
    summary_lines += _describe_false_alarms(report)
    if caught_by_other_count := sum(case.caught_by_other for case in report.cases):
        summary_lines.append(
            f"By another: {caught_by_other_count} cases were caught, but by no issue that should see that kind; without those that did "
            "they would pass"
        )
    summary_lines += [
        f"Left out, {reason}: {len(doc_ids)}" for reason, doc_ids in sorted(report.left_out_doc_ids.items())
    ]
    if unanswered_count := sum(case.unanswered for case in report.cases):
        summary_lines.append(
            f"In {unanswered_count} cases a verifier could not answer; it has caught nothing in them (on_agent_failure counts as "
            "escalate here)"
        )
    return (
        ("kind", "what is wrong", "n", "caught", "95 %", "by", "by another", "else", "n/a to"),
        table_rows,
        summary_lines,
    )


def _describe_false_alarms(report: MutationTestReport) -> Iterator[str]:
    """Describe the false alarms: counted answers, rate, and answers not counted."""
    counted = report.count_clean_answers(is_counted=True)
    rate = report.false_alarm_rate
    if rate.value is None:
        yield "False alarms: not known, as no answer was supplied by another system or validated by an expert"
    else:
        code_counts = Counter(code for alarm in report.false_alarms for code in alarm.codes)
        codes = ", ".join(f"{code} {code_count}" for code, code_count in sorted(code_counts.items()))
        yield (
            f"False alarms: {len(report.false_alarms)} of {sum(counted.values())} answers "
            f"({', '.join(f'{count} {origin}' for origin, count in counted.items())}) escalate although nothing was planted, "
            f"{100 * rate.value:.1f} % (95 % interval {100 * rate.low:.1f} to {100 * rate.high:.1f}){codes and f': {codes}'}"
        )
    for origin, count in report.count_clean_answers(is_counted=False).items():
        yield f"Not counted for false alarms, {NOT_COUNTED_REASONS[origin]}: {count}"
