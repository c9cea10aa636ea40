"""Render the results of commands as texts and tables; nothing is read or printed."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from evalkit.cli.terminal import ConsoleTable
from evalkit.core.wording import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from evalkit.classification.document_result import DocumentFailure, DocumentResult, UsageTotal
    from evalkit.cli.terminal import Printable
    from evalkit.doctor import DoctorCheck
    from evalkit.evaluation.challenge.report import MutationTestReport
    from evalkit.evaluation.headline_estimates import AuditsForPrecision
    from evalkit.evaluation.intervals import Estimate
    from evalkit.evaluation.report import EvaluationReport
    from evalkit.evaluation.run_comparison import OverallAccuracyComparison, PairedAccuracy, RunComparison
    from evalkit.evaluation.site_learning import ProposalOutcome
    from evalkit.issue import Issue
    from evalkit.llm.model import Usage
    from evalkit.pipeline.fields_run import ExtractSummary
    from evalkit.pipeline.purge import PurgedDocument
    from evalkit.pipeline.run_estimate import RunEstimate
    from evalkit.pipeline.run_summary import DocumentSummary, RunSummary
    from evalkit.pipeline.sample_draws import Draw
    from evalkit.pipeline.statement_templates import TemplateReviewSummary
    from evalkit.review.packet import SMEPacket
    from evalkit.statements.bank_export import ExportComparison
    from evalkit.statements.reconciliation import ReconciliationReport
    from evalkit.statements.statement_parser import ParsedStatement

_TRUTH_ORIGIN_LABELS = {
    "given": "given",
    "A": "from reviews of A alone",
    "B": "from reviews of B alone",
    "both": "from both",
}
_EFFORT_LABELS = {"calls": "model calls, those of the built-in model included", "cost_usd": "US dollars"}
#: Tables with more rows are left out or cut.
_MAX_TABLE_ROWS = 60


# ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def render_run_summary(summary: RunSummary, format_queue_command: Callable[[str], str]) -> Iterator[Printable]:
    """Render a run: a row per document, counts of decisions, usage, hints and times."""
    documents = summary.documents
    if len(documents) <= _MAX_TABLE_ROWS:
        rows = [
            (
                document.doc_id,
                str(document.pages or ""),
                f"{document.decision or 'NOT READ'}{_format_repairs(document)}",
                document.decision_rule or "",
                document.dominant_type or "",
                f"{document.blocker}/{document.major}/{document.minor}",
                ", ".join(document.raised_by),
            )
            for document in documents
        ]
        columns = ("document", "pages", "decision", "rule", "dominant type", "blocker/major/minor", "raised by")
        yield ConsoleTable(columns, rows)
    yield summary.headline
    yield from _render_usages(summary.by_agent)
    notes = (summary.kept_classifications, summary.weights_note, summary.label_hint, summary.setting_hint)
    yield from filter(None, notes)
    yield summary.timings.format_timing_line(summary.seconds)
    yield f"Results in {summary.output}, run {summary.run}. Waiting cases: {format_queue_command(summary.output)}"


def render_runs(summaries: Sequence[Mapping[str, Any]], by_day: Sequence[Mapping[str, Any]]) -> Iterator[Printable]:
    """Render a row per run, and a row per day and model."""
    if not summaries:
        yield "There is no run yet; begin one with: evalkit run PATH"
        return
    columns = ("run", "started (UTC)", "documents", "accepted", "escalated", "not read", "decided", "models", "prompts")
    yield ConsoleTable((*columns, "calls", "US dollars", "seconds"), list(map(_format_run, summaries)))
    rows = [
        (
            row["day"],
            row["model"],
            str(row["calls"]),
            f"{row['tokens']:,}",
            _format_dollars(row["cost_usd"]),
            f"{row['seconds']:.1f}",
        )
        for row in by_day
    ]
    if rows:
        yield ConsoleTable(("day", "model", "calls", "tokens", "US dollars", "seconds"), rows)


def _format_run(summary: Mapping[str, Any]) -> list[str]:
    models = summary["settings"].get("models", {})
    return [
        summary["name"] + ("" if summary["is_complete"] or not models else " (stopped)"),
        summary["started_at"][:16].replace("T", " "),
        *(str(summary[name]) for name in ("documents", "accepted", "escalated", "failed", "decided")),
        ", ".join(dict.fromkeys(filter(None, (models.get("default"), *models.values())))),
        summary["prompts"],
        str(summary["calls"]),
        _format_dollars(summary["cost_usd"]),
        f"{summary['seconds']:.1f}",
    ]


def _format_dollars(cost_usd: str | None) -> str:
    return "unknown" if cost_usd is None else f"{Decimal(cost_usd):.4f}"


def render_run_estimate(estimate: RunEstimate) -> Iterator[Printable]:
    """Render an estimate: a row per model and role, the total, and exclusions."""
    rows = [
        (
            row.model,
            row.role,
            str(row.usage.calls),
            f"{row.usage.input_tokens:,}",
            f"{row.usage.output_tokens:,}",
            str(row.images),
            _format_dollars(row.usage.cost_usd),
            f"{row.seconds_per_call:.1f}{'' if row.is_time_measured else ' (assumed)'}",
        )
        for row in estimate.rows
    ]
    if rows:
        columns = ("model", "role", "calls", "tokens in", "tokens out", "images", "US dollars", "seconds a call")
        yield ConsoleTable(columns, rows)
    finished = f"; {estimate.finished} were finished before and cost nothing" if estimate.finished else ""
    yield f"{format_count(estimate.documents, 'document')}{finished}"
    yield (
        f"Estimate: {format_count(estimate.usage.calls, 'call')}, {estimate.format_cost()}, {estimate.minutes:.1f} minutes "
        f"at {estimate.calls_in_flight} calls at a time"
    )
    if rows:
        yield "No model was asked. Reasoning and repeated calls come on top; answers in the journal cost nothing."


def render_extract_summary(summary: ExtractSummary, format_queue_command: Callable[[str], str]) -> Iterator[Printable]:
    """Render an extraction: a row per report or form, counts of decisions, usage."""
    extractions = [
        (document.doc_id, extraction) for document in summary.documents for extraction in document.extractions
    ]
    rows = [
        (
            doc_id,
            f"{extraction.start_page}-{extraction.end_page}",
            extraction.document_type,
            extraction.decision or "NOT JUDGED",
            "" if extraction.score is None else f"{extraction.score:.2f}",
            f"{sum(field_value.is_found for field_value in extraction.fields.values())}/{len(extraction.fields)}",
            extraction.stopped_reason,
        )
        for doc_id, extraction in extractions
    ]
    if 0 < len(rows) <= _MAX_TABLE_ROWS:
        yield ConsoleTable(("document", "pages", "type", "decision", "score", "fields found", "stopped"), rows)
    yield summary.headline
    yield from _render_usages(summary.by_agent)
    queue_hint = f" Waiting cases: {format_queue_command(summary.output)}" if summary.has_escalation else ""
    yield f"Fields in {summary.output}/extractions ({summary.seconds:.1f} s).{queue_hint}"


def _format_repairs(document: DocumentSummary) -> str:
    repairs = document.attempts - 1
    return f" after {repairs} repair{'s' * (repairs > 1)}" if repairs > 0 else ""


def _render_usages(usage_by_agent: Mapping[str, Usage | UsageTotal]) -> Iterator[str]:
    yield from (f"{agent}: {format_usage(usage)}" for agent, usage in usage_by_agent.items())


def format_usage(usage: Usage | UsageTotal) -> str:
    """Format model usage in one line: calls, input and output tokens, price."""
    price = "price unknown" if usage.cost_usd is None else f"{Decimal(usage.cost_usd):.4f} US dollars"
    return f"{usage.calls} call{'s' * (usage.calls != 1)}, {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, {price}"


# ── documents and cases ─────────────────────────────────────────────────────────────────────────────────────────────


def render_queue(rows: Sequence[Mapping[str, Any]], lost_count: int = 0) -> Iterator[Printable]:
    """Render the waiting cases as a table, in the given order.

    ``lost_count`` is the number of cases that cannot be listed.
    """
    columns = ("case_id", "pages", "blocker", "major", "minor", "review_reason", "review_status", "decision_reason")
    if rows:
        yield ConsoleTable(columns, [[str(row[name]) for name in columns] for row in rows])
    elif not lost_count:
        yield "No cases are waiting for an expert."
    if lost_count:
        yield f"{format_count(lost_count, 'case')} cannot be listed, because their files in sme_packets/ are missing. Restore that folder from a backup, or run the documents again."


def render_result(doc_id: str, result: DocumentResult | DocumentFailure) -> Iterator[Printable]:
    """Render a document's decision, segments, usage and issues, worst issue first."""
    from evalkit.classification.document_result import DocumentFailure
    from evalkit.issue import sort_by_severity

    if isinstance(result, DocumentFailure):
        yield f"{doc_id}: not read\n{result.error.code}: {result.error.message}. {result.error.remedy}"
        return
    yield f"{doc_id}: {result.decision.value} (rule {result.decision_rule}): {result.decision_reason}"
    answer = result.classification
    if answer is None:
        yield "No usable classification."
    else:
        yield f"Dominant type: {answer.dominant_type_overall or 'cannot tell'}"
        for segment in answer.segments:
            yield f"  pages {segment.start_page}–{segment.end_page}: {segment.dominant_type or 'cannot tell'}"
            if segment.patient:
                keys = {"name": segment.patient.name_key, "number": segment.patient.number_key}
                yield "    patient keys: " + ", ".join(f"{fact} {key or 'none'}" for fact, key in keys.items())
    score = result.evidence_quality_score
    yield f"Evidence quality: {'not checked' if score is None else f'{score:.2f}'}"
    usage_by_agent = sorted(result.usage.by_agent.items())
    yield from _render_usages({agent: usage for agent, usage in usage_by_agent if usage.input_tokens})
    yield from _render_issues(sort_by_severity(result.issues))


def render_fields_or_template_case(packet: SMEPacket) -> Iterator[Printable]:
    """Render a case about extracted fields or a template: answer and issues."""
    from evalkit.review.kinds import CASE_KINDS

    yield f"{packet.case_id}: {packet.v5_decision.value}: {packet.decision_reason}"
    for text, rows in CASE_KINDS[packet.kind].list_answer_sections(packet):
        yield "\n" + text
        if rows is not None:
            yield ConsoleTable(("field", "value"), rows)
    yield from _render_issues(packet.issues)


def _render_issues(issues: Iterable[Issue]) -> Iterator[str]:
    from evalkit.review.packet import issue_text

    yield from ("\n" + issue_text(issue) + ("\n  (repaired)" if issue.status == "repaired" else "") for issue in issues)


def render_sample(draw: Draw, by: str, format_queue_command: Callable[[], str]) -> Iterator[Printable]:
    """Render a drawn sample: a row per stratum, and the number of queued documents."""
    rows = [
        (
            stratum.value,
            str(len(stratum.probability)),
            str(len(stratum.drawn)),
            f"{max(stratum.probability.values()):.3g}",
        )
        for stratum in draw.strata
    ]
    yield ConsoleTable((by, "accepted", "drawn now", "highest probability"), rows)
    drawn_count = sum(len(stratum.drawn) for stratum in draw.strata)
    yield f"{drawn_count} documents wait in the queue: {format_queue_command()}"


def render_proposal(outcome: ProposalOutcome) -> Iterator[Printable]:
    """Render proposed weights: figures of old and new weights, and obstacles."""
    challenge, facts = outcome.challenge, outcome.challenge.facts
    if "wrong_champion" in facts:
        yield ConsoleTable(
            ("later files", "in force", "proposed"),
            [
                (label, f"{facts[f'{name}_champion']:g}", f"{facts[f'{name}_challenger']:g}")
                for label, name in (
                    ("wrong answers", "wrong"),
                    ("wrong answers accepted", "wrong_accepted"),
                    ("right answers sent to experts", "needlessly_escalated"),
                )
            ],
        )
        yield (
            f"Judged by {facts['judged_files']} files answered after {facts['cutoff']}, weighted to all files. Only the "
            f"proposed weights are right on {facts['only_challenger_right']}, only those in force on "
            f"{facts['only_champion_right']} (McNemar, one-sided p {facts['p_value']:.2g})."
        )
    if "learned_documents" in facts:
        yield f"Learned from {facts['learned_documents']} documents."
    for row in challenge.left_out:
        yield f"Left out: {row.answers} answers{f' of {row.who}' if row.who else ''}: {row.reason}"
    yield from (f"Not to be promoted: {obstacle}" for obstacle in challenge.obstacles)
    if not challenge.obstacles:
        yield f"{outcome.file_name} may be promoted: evalkit learn promote --by NAME"


def render_audits_for_precision(precision: AuditsForPrecision) -> Iterator[Printable]:
    """Render how many more audits a given precision of the error rate needs.

    The error rate is that of the accepted documents.
    """
    current, wanted = (
        f"± {100 * half_width:.2g} percentage point{'s' * (half_width != 0.01)}"
        for half_width in (precision.current_half_width, precision.half_width)
    )
    known = f"{current} after {precision.audit_count} reviewed audits and samples"
    if not precision.more_audits:
        yield f"The error rate of accepted documents is already known to {wanted} or better: {known}."
        return
    yield f"{precision.more_audits} more audits show the error rate of accepted documents to {wanted}; now it is known to {known}."
    if precision.more_audits > precision.unseen_count:
        yield f"Only {precision.unseen_count} accepted documents are left to draw: process more documents first."
    else:
        yield f"Draw them at once with `evalkit sample {precision.more_audits}`, or wait until runs have drawn so many."


def render_attention_checks(rows: Sequence[Sequence[str]], requested_count: int) -> Iterator[Printable]:
    """Render the cases with a planted fault: case_id, doc_id, kind and fault."""
    yield ConsoleTable(("case", "document", "kind", "planted fault"), rows)
    shortfall = f"; no other document can take a planted fault yet ({requested_count} were requested)"
    yield f"{len(rows)} cases with a planted fault wait in the queue among the other cases" + shortfall * (
        len(rows) < requested_count
    )
    yield "Your experts should know that there are cases with planted faults; after each answer the screen says if the case was one."


def render_purge_preview(
    files_by_document: Mapping[str, Iterable[str]], *, is_confirmable: bool
) -> Iterator[Printable]:
    """Render the files that a purge would delete, and how to confirm it."""
    for names in files_by_document.values():
        yield from names
    hint = "; give --yes to remove them" * is_confirmable
    yield f"{format_count(len(files_by_document), 'document')} would be purged; nothing was removed{hint}"


def render_purge(purged_documents: Sequence[PurgedDocument]) -> Iterator[Printable]:
    """Render a row per purged document, and traces that could not be deleted."""
    rows = [
        (
            purged.doc_id,
            str(len(purged.removed_files)),
            str(sum(purged.deleted_row_counts.values())),
            str(purged.digested_review_count),
            ", ".join(purged.open_case_notes),
        )
        for purged in purged_documents
    ]
    if rows:
        yield ConsoleTable(("purged", "files", "rows", "reviews", "was open"), rows)
    yield from (f"Not deleted: {line}" for purged in purged_documents for line in purged.remaining_traces)
    yield f"{format_count(len(purged_documents), 'document')} purged"


def render_doctor_checks(checks: Iterable[DoctorCheck]) -> Iterator[Printable]:
    """Render a row per check, with its remedy if the check failed."""
    rows = [
        ("ok" if check.is_fine else "missing", check.name, check.found, "" if check.is_fine else check.remedy)
        for check in checks
    ]
    yield ConsoleTable(("", "what", "found", "remedy"), rows)


# ── bank statements ─────────────────────────────────────────────────────────────────────────────────────────────────


def render_statement(statement: ParsedStatement, reconciliation: ReconciliationReport) -> Iterator[Printable]:
    """Render transactions, checks of printed sums, and unread lines."""
    from evalkit.statements.statement_parser import TRANSACTION_CSV_COLUMNS

    rows = [
        ["" if (cell := getattr(line, name)) is None else str(cell) for name in TRANSACTION_CSV_COLUMNS]
        for line in statement.transactions
    ]
    if 0 < len(rows) <= _MAX_TABLE_ROWS:
        yield ConsoleTable(TRANSACTION_CSV_COLUMNS, rows)
    checks = [
        ("met" if line.is_met else "DIFFERS", line.name.replace("_", " "), line.account, line.message)
        for line in reconciliation.checks
    ]
    if checks:
        yield ConsoleTable(("", "check", "account", ""), checks[:_MAX_TABLE_ROWS])
    else:
        yield "The statement prints no sum to check the transactions with."
    for line in (*statement.left_over, *statement.outside)[:_MAX_TABLE_ROWS]:
        origin = "left over" if line in statement.left_over else "outside of the regions"
        yield f"{origin}, page {line.page}: {line.text} ({line.reason})"
    unmet = sum(not line.is_met for line in reconciliation.checks)
    yield (
        f"{len(rows)} transactions, {len(statement.left_over)} lines left over, {len(statement.outside)} rows outside; "
        f"{len(reconciliation.checks)} checks, {unmet} not met"
    )


def render_export_comparison(comparison: ExportComparison) -> Iterator[Printable]:
    """Render the rows in which the transactions and the bank's own file differ."""
    rows = [
        *(("differs", read, bank) for read, bank in comparison.differing),
        *(("not read", None, bank) for bank in comparison.missing),
        *(("not in the bank's file", read, None) for read in comparison.extra),
    ]
    cells = [
        (
            outcome,
            f"{read.date} {read.amount}" if read else "",
            f"{' or '.join(bank.dates)} {bank.amount}" if bank else "",
            read.description if read else bank.description if bank else "",
        )
        for outcome, read, bank in rows
    ]
    if cells:
        yield ConsoleTable(("", "read", "the bank's file", "description"), cells[:_MAX_TABLE_ROWS])
    yield (
        f"Compared with the bank's file: {len(comparison.equal)} rows equal, {len(comparison.missing)} missing, "
        f"{len(comparison.extra)} extra, {len(comparison.differing)} differing"
    )


def render_template_review(template_review: TemplateReviewSummary) -> Iterator[Printable]:
    """Render each reviewed template with its issues, and the final outcome."""
    from evalkit.statements.statement_template import list_differing_assumptions

    cycles = template_review.review_result.cycles
    for cycle in cycles:
        yield f"Attempt {cycle.attempt}: {cycle.because}"
        yield from (f"  {role}: {reason}" for role, reason in cycle.failures.items())
        for reported in cycle.issues:
            page_text = "" if reported.issue.page is None else f", page {reported.issue.page}"
            heading = f"{reported.issue.severity} {reported.issue.category}{page_text}"
            yield f"  {heading} ({', '.join(reported.reported_by)}): {reported.issue.message}"
    if len(cycles) > 1:
        differing = list_differing_assumptions([cycle.tried for cycle in cycles])
        yield from (f"Attempt {number} assumed: {assumed}" for number, assumed in enumerate(differing, 1))
    yield from _render_usages(template_review.by_agent)
    template_id, template_case = cycle.template_id, template_review.review_result.template_case
    if template_case is not None:
        escalation = template_case.escalation
        yield f"{template_id} stays a draft; a person decides ({escalation.escalation_reason}): {escalation.recommendation}"
    elif template_review.is_case_frozen:
        yield f"{template_id} passed both reviewers, but a person has decided or will decide this template"
    else:
        yield f"{template_id} is approved and stable: {template_review.template_path}"


# ── evaluation ──────────────────────────────────────────────────────────────────────────────────────────────────────


def render_evaluation_report(evaluation_report: EvaluationReport, to: Path | None) -> Iterator[Printable]:
    """Render the tables of the first two sections and of templates.

    The text also says where the rest is.
    """
    from evalkit.evaluation.report import format_cell

    shown_sections = [
        *evaluation_report.sections[:2],
        *(section for section in evaluation_report.sections[2:] if section.key == "templates"),
    ]
    for table in [table for section in shown_sections for table in section.tables]:
        rows = [[format_cell(value) for value in row] for row in table.frame.itertuples(index=False, name=None)]
        yield ConsoleTable([str(name) for name in table.frame.columns], rows)
    yield f"The whole report is in {to}" if to else "To write the whole report: evalkit report --to report.html"


def render_challenge(challenge_outcome: MutationTestReport) -> Iterator[Printable]:
    """Render tables of planted faults by kind and of judging models, and usage."""
    from evalkit.evaluation.challenge.judge_performance import JUDGE_HEAD, format_judge_rows
    from evalkit.evaluation.challenge.report import format_report_table_and_summary

    head, rows, tail = format_report_table_and_summary(challenge_outcome)
    yield ConsoleTable(head, rows)
    yield from tail
    yield ConsoleTable(JUDGE_HEAD, list(format_judge_rows(challenge_outcome.measure_judges())))
    yield from _render_usages(challenge_outcome.usage_by_agent)


def render_comparison(comparison: RunComparison) -> Iterator[Printable]:
    """Render the decisions, types and documents that differ between two runs."""
    from evalkit.core.data_frames import convert_to_records
    from evalkit.evaluation.verifier_performance import ERROR_LEVELS

    yield comparison.headline
    for name, doc_ids in (("A", comparison.only_in_a), ("B", comparison.only_in_b)):
        if doc_ids:
            more = f" and {len(doc_ids) - _MAX_TABLE_ROWS} more" * (len(doc_ids) > _MAX_TABLE_ROWS)
            yield f"Only in {name}: {', '.join(doc_ids[:_MAX_TABLE_ROWS])}{more}"
    yield from _render_field_comparison(comparison)
    if not len(comparison.documents_table):
        return
    rows = convert_to_records(comparison.versions_table)
    shown_rows = [row for row in rows if row["of"].startswith("model") or row["a"] != row["b"]]
    versions = [(row["of"], row["a"], row["b"]) for row in shown_rows]
    if not any(of.startswith("prompt") for of, *_ in versions):
        versions.append(("prompts", *("the same in A and B",) * 2))
    yield ConsoleTable(("models, prompts, and other versions that differ", "A", "B"), versions)
    decisions = [[str(cell) for cell in row] for row in comparison.decision_crosstab.reset_index().to_numpy()]
    yield ConsoleTable(("decision of A, of B →", *comparison.decision_crosstab.columns), decisions)
    if len(comparison.type_changes):
        types = [[str(cell) for cell in row.values()] for row in convert_to_records(comparison.type_changes)]
        yield ConsoleTable(("type by A", "type by B", "documents"), types)
    changed = convert_to_records(comparison.changed_documents)
    if changed:
        columns = ("document", "decision", "segments", "issues", "evidence", "type is")
        yield ConsoleTable(columns, [_format_change(change) for change in changed[:_MAX_TABLE_ROWS]])
    omission = f", of which {_MAX_TABLE_ROWS} are shown (--json has all)" * (len(changed) > _MAX_TABLE_ROWS)
    yield f"{len(changed)} documents changed{omission}"
    paired_outcomes = (comparison.type_accuracy, comparison.segment_accuracy, comparison.merged_segment_accuracy)
    names: tuple[str, ...] = ("Type", "Segments exactly", "Segments exactly, neighbours of one type merged")
    if not any(outcome.document_count for outcome in paired_outcomes):
        yield (
            "Which run is right more often is not known: no document in both has a known truth. "
            "Review documents, or give their labels with --truth FILE."
        )
        names = ()
    for name, level, outcome in zip(names, ERROR_LEVELS, paired_outcomes, strict=False):
        yield f"{name}: {_format_overall_accuracy(comparison.overall_accuracies[level], comparison.sampling_run)}"
        yield f"{name}, reviewed only: {_format_paired_accuracy(outcome)}"
    yield from _render_truth_origins(comparison)
    effort = [
        (_EFFORT_LABELS.get(change["measure"], change["measure"]), *(_format_amount(change[side]) for side in "ab"))
        for change in convert_to_records(comparison.effort_table)
    ]
    yield ConsoleTable(("", "A", "B"), effort)


def _render_field_comparison(comparison: RunComparison) -> Iterator[Printable]:
    if len(comparison.field_decisions):
        decisions = [[str(cell) for cell in row] for row in comparison.field_decisions.reset_index().to_numpy()]
        yield ConsoleTable(("fields: decision of A, of B →", *comparison.field_decisions.columns), decisions)
    changes = [[str(cell) for cell in row] for row in comparison.field_changes.to_numpy()]
    if changes:
        yield ConsoleTable(("document", "template", "pages", "field", "value of A", "of B"), changes[:_MAX_TABLE_ROWS])
        omission = f", of which {_MAX_TABLE_ROWS} are shown (--json has all)" * (len(changes) > _MAX_TABLE_ROWS)
        yield f"{len(changes)} fields changed{omission}"


def _render_truth_origins(comparison: RunComparison) -> Iterator[str]:
    if origins := ", ".join(
        f"{count} {_TRUTH_ORIGIN_LABELS[name]}" for name, count in comparison.truth_origin_counts.items() if count
    ):
        yield f"Truths: {origins}"
    if comparison.comparability_warning:
        yield comparison.comparability_warning
    if comparison.disputed_doc_ids:
        yield f"Left out, because the folders disagree on the truth: {', '.join(comparison.disputed_doc_ids)}"
    if comparison.simulated_truth_count:
        yield f"{comparison.simulated_truth_count} of the truths come from simulated reviewers"


def _format_change(row: dict[str, Any]) -> list[str]:
    """Format a document as table cells: the value of run A, and of B if it differs."""
    from evalkit.pipeline.supplied_labels import CANNOT_TELL_LABEL

    scores = ("none" if (score := row[f"score_{side}"]) is None else f"{score:.2f}" for side in "ab")
    return [
        row["doc_id"],
        _format_transition(*(f"{row[f'decision_{side}']} {row[f'rule_{side}'] or ''}".strip() for side in "ab")),
        _format_transition(*(row[f"segments_{side}"] or CANNOT_TELL_LABEL for side in "ab")),
        ", ".join(filter(None, [_format_codes("+", row["appeared"]), _format_codes("−", row["disappeared"])])),
        _format_transition(*scores),
        _format_transition(*({None: "", True: "right", False: "wrong"}[row[f"right_{side}"]] for side in "ab")),
    ]


def _format_transition(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _format_codes(prefix: str, count_by_code: dict[str, int]) -> str:
    return ", ".join(
        f"{prefix}{code}{f' ×{count}' if count > 1 else ''}" for code, count in sorted(count_by_code.items())
    )


def _format_overall_accuracy(estimates: OverallAccuracyComparison, sampling_run: str) -> str:
    accuracy_a, accuracy_b = (
        _format_interval(estimate, ".3f") for estimate in (estimates.accuracy_a, estimates.accuracy_b)
    )
    return (
        f"of all {estimates.population_size} documents in both, estimated from {estimates.observed_count} by the draws of "
        f"{sampling_run}: A right {accuracy_a}, B {accuracy_b}; B − A {_format_interval(estimates.difference, '+.3f')}"
        + (
            f"; {estimates.missing_count} that must be reviewed and have no known truth count as wrong"
            if estimates.missing_count
            else ""
        )
    )


def _format_interval(estimate: Estimate, number_format: str) -> str:
    estimate_text = "not known" if estimate.value is None else format(estimate.value, number_format)
    return f"{estimate_text} (95 % interval {estimate.low:{number_format}} to {estimate.high:{number_format}})"


def _format_paired_accuracy(paired_result: PairedAccuracy) -> str:
    if not paired_result.document_count:
        return "no document in both has a known truth"
    return (
        f"{paired_result.document_count} documents with a known truth: both right {paired_result.both_right}, "
        f"only A {paired_result.only_a_right}, only B {paired_result.only_b_right}, none {paired_result.neither_right}; "
        f"B − A {_format_interval(paired_result.difference, '+.3f')}; "
        + (f"exact McNemar p {paired_result.p_value:.3g}; " if paired_result.p_value is not None else "")
        + paired_result.describe_winner()
    )


def _format_amount(amount: Decimal | float | None) -> str:
    if amount is None:
        return "not known"
    decimals = "" if isinstance(amount, int) else ".4f" if isinstance(amount, Decimal) else ".1f"
    return f"{amount:,{decimals}}"
