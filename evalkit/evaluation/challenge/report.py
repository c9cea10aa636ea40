"""The report of a mutation test: detected faults, by whom, and false alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from evalkit.core.grouping import group_by
from evalkit.core.notebook_cards import format_card
from evalkit.evaluation.challenge.fault_kinds import FAULT_BY_ID
from evalkit.evaluation.challenge.judge_performance import (
    JUDGING_ROLES,
    JudgePerformance,
    RoleJudgement,
    is_fault_meant_for,
    measure_judge,
)
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
    """One planted fault and how the verifiers judged it."""

    doc_id: str
    kind: str
    nature: str
    place: int
    """Number, from 0, of the random draw of a place for this kind in the document."""
    caught: bool
    caught_by_other: bool
    """True if the fault was caught, but no new issue has one of the kind's expected codes."""
    outcome: str
    """``escalated``, ``undone`` (a repair restored the clean answer), ``repaired_otherwise`` or ``missed``."""
    severity: str | None
    """Severity of the worst new issue; None if there is no new issue."""
    agents: tuple[str, ...]
    """The agents that raised a new BLOCKER or MAJOR issue."""
    codes: tuple[str, ...]
    """Codes of the new BLOCKER and MAJOR issues."""
    decision: str
    decision_rule: str
    unanswered: bool
    """True if a verifier gave no answer; it then counts as having detected nothing."""
    judgements: tuple[RoleJudgement, ...] = ()
    """Verdicts of each asked role's model."""


NOT_COUNTED_REASONS = {
    AnswerOrigin.UNVALIDATED: "the program's own answers, which nobody has validated and which may be wrong",
    AnswerOrigin.SIMULATED: "validated by a simulated reviewer, not by a person",
}


@dataclass(frozen=True)
class FalseAlarm:
    """A document that was escalated although its answer is known to be right."""

    doc_id: str
    codes: tuple[str, ...]
    """Codes of the document's BLOCKER and MAJOR issues."""


@dataclass(frozen=True)
class MutationTestReport:
    """Outcome of a mutation test: judged faults, false alarms, and exclusions."""

    model: str
    clean_counts: Mapping[AnswerOrigin, int]
    """Number of clean answers by origin. No fault is planted into clean answers that are escalated."""
    false_alarms: tuple[FalseAlarm, ...]
    """Clean answers that were escalated although an expert or another system says that they are right."""
    cases: tuple[JudgedMutation, ...]
    skipped_counts: Mapping[str, int]
    """Number of documents, by fault kind, into which the kind could not be planted."""
    left_out_doc_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The doc_ids of documents without a clean answer, by the reason for leaving them out."""
    problems: tuple[str, ...] = ()
    """One line for each file that could not be read and each document that could not be verified."""
    usage_by_agent: Mapping[str, Usage] = field(default_factory=dict)
    """Calls, tokens and cost of the language models, by agent."""
    clean_judgements: tuple[tuple[AnswerOrigin, RoleJudgement], ...] = ()
    """What the model of each asked role said about each clean answer, with the answer's origin."""
    model_by_role: Mapping[str, str] = field(default_factory=dict)
    """Models of the roles that do not use ``model``, by role in small letters."""
    prompt_versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the prompts, by name."""

    @property
    def clean_document_count(self) -> int:
        """Number of right answers that were verified."""
        return sum(self.clean_counts.values())

    @property
    def false_alarm_rate(self) -> Estimate:
        """Share of answers known to be right that were escalated; exact 95 % interval."""
        return estimate_proportion(len(self.false_alarms), sum(self.count_clean_answers(is_counted=True).values()))

    def count_clean_answers(self, *, is_counted: bool) -> dict[AnswerOrigin, int]:
        """Count the right answers by origin.

        If ``is_counted``, only origins that count for the false-alarm rate (an expert or another system vouches for the
        answer), otherwise only the remaining origins.
        """
        return {
            origin: self.clean_counts[origin]
            for origin in AnswerOrigin
            if origin.is_vouched_from_outside is is_counted and self.clean_counts.get(origin)
        }

    @property
    def macro_detection_rate(self) -> float | None:
        """Mean detection rate over the kinds of fault; None if nothing was planted."""
        detection_rates = [
            sum(case.caught for case in cases) / len(cases) for cases in self._group_mutations_by_kind().values()
        ]
        return sum(detection_rates) / len(detection_rates) if detection_rates else None

    def _group_mutations_by_kind(self) -> dict[str, list[JudgedMutation]]:
        return group_by(self.cases, lambda case: case.kind)

    def measure_judges(self) -> list[JudgePerformance]:
        """Measure the judging models, in the order of ``JUDGING_ROLES``."""
        return [
            measure_judge(
                role,
                *groups,
                model_name=self.model_by_role.get(role.lower(), self.model),
                prompt_version=self.prompt_versions.get(JUDGING_ROLES[role].prompt_name, ""),
            )
            for role in JUDGING_ROLES
            if any(groups := self._group_judgements(role))
        ]

    def _group_judgements(self, role: str) -> tuple[list[RoleJudgement], ...]:
        """Group a role's verdicts: about planted faults, right and unvalidated answers."""
        planted = [
            judgement
            for case in self.cases
            if is_fault_meant_for(FAULT_BY_ID[case.kind], role)
            for judgement in case.judgements
            if judgement.role == role
        ]
        right, unvalidated = (
            [
                judgement
                for origin, judgement in self.clean_judgements
                if judgement.role == role and origin.is_vouched_from_outside is is_right
            ]
            for is_right in (True, False)
        )
        return planted, right, unvalidated

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the results, one row per fault kind in the order of ``FAULTS``.

        Fault kinds that could be planted into no document have a row too.

        Columns: ``kind, what, nature``; ``seen_by``: expected issue codes or agents; ``n``: number of cases; ``caught``
        (count) and ``share`` with ``low`` and ``high``, the exact 95 % interval, which treats cases of one document as
        independent; ``escalated``, ``undone``, ``repaired_otherwise``, ``missed``: cases by outcome; ``unanswered``:
        cases in which a verifier gave no answer; ``caught_by``: agents with the number of cases that they caught;
        ``caught_by_other``: cases that were caught, but by none of the codes in ``seen_by``; ``skipped``: documents
        into which the kind could not be planted.
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

    def _repr_html_(self) -> str:
        *_, summary_lines = format_report_table_and_summary(self)
        return format_card(
            summary_lines[0],
            (*summary_lines[1:], *self.problems),
            (("evalkit.show(challenge.to_frame())", "a row for each kind of fault"),),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the whole report as a JSON-serialisable dictionary, for ``--json``."""
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
            "judges": [judge.to_json() for judge in self.measure_judges()],
            "prompts": dict(self.prompt_versions),
            "cases": [asdict(case) for case in self.cases],
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
    """Format the report for a terminal: column names, rows, lines below the table."""
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
        for row in report.to_frame().to_dict("records")
    ]
    planted_kind_count = len({case.kind for case in report.cases})
    summary_lines = [
        f"{len(report.cases)} cases"
        + (
            ""
            if report.macro_detection_rate is None
            else f", {100 * report.macro_detection_rate:.1f} % caught (mean over {planted_kind_count} kinds)"
        )
        + (
            f"; {len(table_rows) - planted_kind_count} kinds could not be planted into any of these documents"
            if planted_kind_count < len(table_rows)
            else ""
        )
    ]
    summary_lines += _describe_false_alarms(report)
    if caught_by_other_count := sum(case.caught_by_other for case in report.cases):
        summary_lines.append(
            f"By another: {caught_by_other_count} cases were caught only by checks that are not meant for that kind; "
            "without those checks they would have been missed"
        )
    summary_lines += [
        f"Left out, {reason}: {len(doc_ids)}" for reason, doc_ids in sorted(report.left_out_doc_ids.items())
    ]
    if unanswered_count := sum(case.unanswered for case in report.cases):
        summary_lines.append(
            f"In {unanswered_count} cases a verifier gave no answer; this counts as having detected nothing (on_agent_failure "
            "is treated as escalate here)"
        )
    return (
        ("kind", "what is wrong", "n", "caught", "95 %", "by", "by another", "else", "n/a to"),
        table_rows,
        summary_lines,
    )


def _describe_false_alarms(report: MutationTestReport) -> Iterator[str]:
    """Yield sentences on the false-alarm rate and on the answers not counted for it."""
    counted = report.count_clean_answers(is_counted=True)
    rate = report.false_alarm_rate
    if rate.value is None:
        yield "False alarms: unknown, because no answer was supplied by another system or validated by an expert"
    else:
        code_counts = Counter(code for alarm in report.false_alarms for code in alarm.codes)
        codes = ", ".join(f"{code} {code_count}" for code, code_count in sorted(code_counts.items()))
        yield (
            f"False alarms: {len(report.false_alarms)} of {sum(counted.values())} answers "
            f"({', '.join(f'{count} {origin}' for origin, count in counted.items())}) escalated although no fault was planted, "
            f"{100 * rate.value:.1f} % (95 % interval {100 * rate.low:.1f} to {100 * rate.high:.1f}){codes and f': {codes}'}"
        )
    for origin, count in report.count_clean_answers(is_counted=False).items():
        yield f"Not counted for false alarms, {NOT_COUNTED_REASONS[origin]}: {count}"
