"""The command line. Commands import what they need when they run, so that ``evalkit --help`` is quick."""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from evalkit.errors import EvalkitError, NotFound, UsageError

if TYPE_CHECKING:
    from evalkit.classification.document_result import DocumentFailure, DocumentResult, UsageTotal
    from evalkit.core.log_events import LogLineFormat
    from evalkit.documents.bundle import DocumentBundle
    from evalkit.evaluation.intervals import Estimate
    from evalkit.evaluation.mutation_testing import MutationTestReport
    from evalkit.evaluation.paired_accuracy import OverallAccuracyComparison, PairedAccuracy
    from evalkit.evaluation.report import EvaluationReport
    from evalkit.evaluation.run_comparison import RunComparison
    from evalkit.issue import Issue
    from evalkit.llm.model import Usage
    from evalkit.pipeline.batch_execution import BatchSummary
    from evalkit.pipeline.extract import ExtractedDocument, ExtractSummary
    from evalkit.pipeline.purge import PurgedDocument
    from evalkit.pipeline.run_summary import DocumentSummary, RunSummary
    from evalkit.pipeline.statement_templates import TemplateReviewSummary
    from evalkit.review.packet import SMEPacket
    from evalkit.review.roster import ReviewerRoster
    from evalkit.settings import Settings
    from evalkit.statements.reconciliation import ReconciliationReport
    from evalkit.statements.statement_parser import ParsedStatement
    from evalkit.store import OutputFolder

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help drawn by rich would cost half a second
    help="May an AI's reading of a clinical document be trusted? Reads PDFs, checks the classification, decides, "
    "and keeps what an expert must see.",
)

OutputOption = Annotated[
    str | None,
    typer.Option("--output", metavar="DIR|URL", help="The output folder, or s3://… or gs://….", show_default="output"),
]
ExecutorOption = Annotated[
    str | None,
    typer.Option(help="What reads: local, or dask://HOST:PORT, the scheduler of a Dask cluster.", show_default="local"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]
EvenPurgedOption = Annotated[bool, typer.Option("--even-purged", help="Take documents in again that were purged.")]

_EXIT_INTERRUPTED = 130
"""Exit status after Ctrl-C, of Typer and of the shell."""
_TRUTH_ORIGIN_LABELS = {
    "given": "given",
    "A": "from reviews of A alone",
    "B": "from reviews of B alone",
    "both": "from both",
}
_MAX_TABLE_ROWS = 60
"""Rows of the summary table; longer runs are counted."""


RoleName = Literal["expert", "adjudicator", "analyst"]


@app.callback()
def _configure_logging(
    context: typer.Context,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens to standard error.")] = False,
    log_format: Annotated[
        Literal["text", "json"] | None,
        typer.Option(help="How the log is written: json is one object a line.", show_default="text"),
    ] = None,
) -> None:
    from evalkit.core.log_events import EventFormatter

    context.obj = chosen_format = log_format or _load_log_format()
    handler = logging.StreamHandler()
    handler.setFormatter(EventFormatter(chosen_format))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])


def _load_log_format() -> LogLineFormat:
    try:
        return _load_settings().log_format
    except UsageError:  # the command itself says what is wrong, if it needs settings at all
        return "text"


@app.command()
def samples(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to draw them.")]) -> None:
    """Draw the demo's documents, of no real patient.

    Example: evalkit samples .demo
    """
    from evalkit.samples import write_demo_folder

    try:
        sample_paths = write_demo_folder(folder)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written ({error.strerror})", code="SAMPLES", remedy="Name another folder."
        ) from error
    typer.echo(f"{len(sample_paths)} documents drawn in {folder}")


@app.command()
def run(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="PDF files, and folders that are searched.")],
    output: OutputOption = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Who classifies and answers the checks, such as gemini:MODEL.", show_default="embedded"
        ),
    ] = None,
    reader: Annotated[
        str | None, typer.Option(help="What reads PDFs: local or documentai.", show_default="local")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="full: four calls a document; lean: two.", show_default="full")
    ] = None,
    production: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV or JSON with production's labels.")
    ] = None,
    patients: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV or JSON: the patient of each document.")
    ] = None,
    classifications: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with {doc_id}.json to be verified instead of asking.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that read PDFs.", show_default="one per core")] = None,
    executor: ExecutorOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do again what an earlier run finished.")] = False,
    with_fields: Annotated[
        bool, typer.Option("--extract", help="Also extract the fields of reports and forms.")
    ] = False,
    even_purged: EvenPurgedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read, classify, verify and decide PDFs; resumes where an earlier run stopped.

    Example: evalkit run records/ --production labels.csv
    """
    from evalkit import pipeline

    with pipeline.show_progress_bar(stderr=True) if sys.stderr.isatty() else nullcontext() as on_progress:
        summary = pipeline.run(
            paths,
            output=output,
            model=model,
            reader=reader,
            profile=profile,
            production=production,
            patients_file=patients,
            classifications=classifications,
            workers=workers,
            executor=executor,
            fresh=fresh,
            extract=with_fields,
            even_purged=even_purged,
            on_progress=on_progress,
        )
    if as_json:
        _print_json(summary.to_json(vars))
    else:
        _print_run_summary(summary)
    _exit_with_summary(summary)


@app.command()
def extract(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="PDF files, and folders that are searched.")],
    template: Annotated[
        str, typer.Option(metavar="NAME", help="What every document is taken for; auto: whatever stands in it.")
    ] = "auto",
    tax_year: Annotated[
        int | None, typer.Option(metavar="YEAR", help="The year that is needed; forms of another go to a person.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Also write all fields as a table (CSV).")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who extracts and judges.", show_default="embedded")
    ] = None,
    reader: Annotated[
        str | None, typer.Option(help="What reads PDFs: local or documentai.", show_default="local")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that read PDFs.", show_default="one per core")] = None,
    executor: ExecutorOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do again what an earlier run finished.")] = False,
    even_purged: EvenPurgedOption = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """The fields of reports and forms, each with its place on the page.

    Example: evalkit extract taxes/ --tax-year 2020
    """
    from evalkit.evaluation.export import write_private_csv
    from evalkit.pipeline.extract import extract as extract_all

    summary = extract_all(
        paths,
        template=template,
        tax_year=tax_year,
        output=output,
        model=model,
        reader=reader,
        workers=workers,
        executor=executor,
        fresh=fresh,
        even_purged=even_purged,
    )
    if to is not None:
        write_private_csv(summary.to_frame(), to)
    if as_json:
        _print_json(summary.to_json(_convert_extracted_document_to_json))
    else:
        _print_extract_summary(summary)
    _exit_with_summary(summary)


@app.command("build-template")
def build_template(
    pdf: Annotated[Path, typer.Argument(metavar="PDF", exists=True, dir_okay=False, help="A bank statement.")],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="T.toml", help="Where to write it.", show_default="templates/ in the output folder"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who may propose a better one than is measured, such as gemini:MODEL.",
            show_default="embedded",
        ),
    ] = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a draft of the template that reads a bank's statements, and tell which of the statement's sums it meets.

    Example: evalkit build-template statement.pdf --to bank.toml
    """
    from evalkit.evaluation.export import create_private_file, replace_file_atomically
    from evalkit.pipeline import statement_templates
    from evalkit.statements.statement_template import render_template_toml
    from evalkit.store import template_file_name

    proposed, usage, proposed_by = statement_templates.build_template(_read_pdf_in_worker(pdf), pdf, model=model)
    if to is None:
        output_folder, name = _open_output(output), template_file_name(proposed.template.template_id)
        target = f"{output_folder.root}/{name}"
        if statement_templates.has_stable_template(output_folder, proposed.template.template_id):
            raise UsageError(
                f"{target} is a template that was approved",
                code="TEMPLATE",
                remedy="Name another file with --to, or review that one against this statement: `evalkit review-template`.",
            )
        output_folder.write_text(name, render_template_toml(proposed.template))
    else:
        target = str(to)
        try:
            with replace_file_atomically(to) as temporary:
                create_private_file(temporary, render_template_toml(proposed.template))
        except OSError as error:
            raise UsageError(
                f"{to} cannot be written ({error.strerror})", code="TEMPLATE", remedy="Name another file."
            ) from error
    if as_json:
        _print_json({"template": target, **_convert_statement_to_json(proposed.statement, proposed.reconciliation)})
    else:
        _print_statement(proposed.statement, proposed.reconciliation)
        if usage.calls:
            typer.echo(f"builder: {_format_usage(usage)}")
        proposer = f", as {proposed_by} proposed it," if proposed_by else ""
        typer.echo(f"Draft of {proposed.template.identity.bank}'s template{proposer} written to {target}")


@app.command("review-template")
def review_template(
    template: Annotated[
        Path, typer.Argument(metavar="T.toml", help="A template's file, or its name in the output folder.")
    ],
    pdf: Annotated[Path, typer.Argument(metavar="PDF", exists=True, dir_okay=False, help="A statement of its bank.")],
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who reviews on top of what is measured.", show_default="embedded"),
    ] = None,
    even_purged: EvenPurgedOption = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let two reviewers compare a template with a statement: it becomes stable, or another is tried, or a person decides.

    Example: evalkit review-template bank.toml statement.pdf
    """
    from evalkit.pipeline.statement_templates import review_and_publish_template

    template_review = review_and_publish_template(
        *_read_template_text_and_file_name(template, output), pdf, output=output, model=model, even_purged=even_purged
    )
    if as_json:
        _print_json(_convert_template_review_to_json(template_review))
    else:
        _print_template_review(template_review)
    if template_review.is_case_frozen:
        _print_to_stderr(
            f"{template_review.review_result.template.template_id}: somebody has an earlier case of it open, or has decided it; "
            "that one and the template in the output folder stay as they are"
        )


@app.command("apply-template")
def apply_template(
    template: Annotated[
        Path, typer.Argument(metavar="T.toml", help="A template's file, or its name in the output folder.")
    ],
    pdf: Annotated[Path, typer.Argument(metavar="PDF", exists=True, dir_okay=False, help="A bank statement.")],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="OUT.csv", help="Write the transactions as a table (CSV).")
    ] = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read a bank statement with a template: its transactions, what was left over, and which printed sums they meet.

    Example: evalkit apply-template bank.toml statement.pdf --to transactions.csv
    """
    import pandas as pd

    from evalkit.evaluation.export import write_private_csv
    from evalkit.statements.reconciliation import reconcile_statement
    from evalkit.statements.statement_parser import TRANSACTION_CSV_COLUMNS, parse_statement
    from evalkit.statements.statement_template import TemplateStatus, parse_template_toml

    statement_template = parse_template_toml(*_read_template_text_and_file_name(template, output))
    statement = parse_statement(statement_template, _read_pdf_in_worker(pdf))
    reconciliation = reconcile_statement(statement_template, statement)
    if to is not None:
        rows = [transaction.model_dump(include=set(TRANSACTION_CSV_COLUMNS)) for transaction in statement.transactions]
        write_private_csv(pd.DataFrame(rows, columns=list(TRANSACTION_CSV_COLUMNS), dtype=object), to)
    if statement_template.status is TemplateStatus.DRAFT:
        _print_to_stderr(f"{statement_template.template_id} is a draft: nobody has vouched for it yet")
    if as_json:
        _print_json(
            {"status": statement_template.status.value, **_convert_statement_to_json(statement, reconciliation)}
        )
    else:
        _print_statement(statement, reconciliation)


@app.command()
def queue(output: OutputOption = None, as_json: JsonOption = False) -> None:
    """The cases that wait for an expert, worst first.

    Example: evalkit queue
    """
    from evalkit.review.queue import list_pending_cases_worst_first
    from evalkit.store import OutputIndex

    with OutputIndex(_open_existing_output(output)) as index:
        rows = list_pending_cases_worst_first(index)
    if as_json:
        _print_json(rows)
    elif not rows:
        typer.echo("Nothing waits for an expert.")
    else:
        columns = ("case_id", "pages", "blocker", "major", "minor", "review_reason", "review_status", "decision_reason")
        _print_table([[str(row[name]) for name in columns] for row in rows], columns)


@app.command()
def show(
    doc_id: Annotated[
        str, typer.Argument(metavar="DOC_ID", help="As the run's summary names it; or a case of its fields.")
    ],
    why: Annotated[
        bool, typer.Option("--why", help="What speaks for and against each type, by the built-in model.")
    ] = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """One document's decision and issues, or those of its fields.

    Example: evalkit show doc2_6 --why
    """
    from evalkit.classification.document_result import DocumentFailure
    from evalkit.issue import sort_by_severity
    from evalkit.review.case_files import read_packet
    from evalkit.review.kinds import find_case_kind
    from evalkit.review.shown_documents import read_bundle_as_shown, read_result_as_shown

    output_folder = _open_existing_output(output)
    if find_case_kind(doc_id).case_id_suffix:
        packet = read_packet(output_folder, doc_id)
        if as_json:
            _print_json(packet.model_dump(mode="json"))
        else:
            _print_fields_or_template_case(packet)
        return
    result = read_result_as_shown(output_folder, doc_id)
    if as_json:
        _print_json(
            result.model_dump(mode="json") | (_explain_classification_as_json(output_folder, result) if why else {})
        )
        return
    if isinstance(result, DocumentFailure):
        _print_text(f"{doc_id}: not read\n{result.error.code}: {result.error.message}. {result.error.remedy}")
        return
    _print_text(f"{doc_id}: {result.decision.value} (rule {result.decision_rule}): {result.decision_reason}")
    for line in _describe_result(result):
        _print_text(line)
    _print_issues(sort_by_severity(result.issues))
    if why and result.classification:
        from evalkit.classification.explanation import explain_as_text_lines

        typer.echo("\nWhat speaks on its pages, by the built-in model:")
        for line in explain_as_text_lines(read_bundle_as_shown(output_folder, doc_id), result.classification.segments):
            _print_text(line)


def _print_fields_or_template_case(packet: SMEPacket) -> None:
    """A case that is not about a classification."""
    from evalkit.review.kinds import CASE_KINDS

    _print_text(f"{packet.case_id}: {packet.v5_decision.value}: {packet.decision_reason}")
    for text, table_rows in CASE_KINDS[packet.kind].list_answer_sections(packet):
        _print_text("\n" + text)
        if table_rows is not None:
            _print_table(table_rows, ("field", "value"))
    _print_issues(packet.issues)


def _print_issues(issues: Iterable[Issue]) -> None:
    from evalkit.review.packet import issue_text

    for issue in issues:
        typer.echo("\n" + issue_text(issue) + ("\n  (repaired)" if issue.status == "repaired" else ""))


def _explain_classification_as_json(
    output_folder: OutputFolder, result: DocumentResult | DocumentFailure
) -> dict[str, Any]:
    from evalkit.classification.document_result import DocumentFailure
    from evalkit.classification.explanation import explain_segment_types
    from evalkit.review.shown_documents import read_bundle_as_shown

    if isinstance(result, DocumentFailure) or result.classification is None:
        return {"why": None}
    return {
        "why": explain_segment_types(
            read_bundle_as_shown(output_folder, result.doc_id), result.classification.segments
        ).to_json()
    }


@app.command()
def export(
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="PATH", help="Write to a file, or a folder.", show_default="standard output"),
    ] = None,
    file_format: Annotated[
        Literal["jsonl", "csv", "parquet", "folder"],
        typer.Option("--format", help="`folder` is a data card and JSON Lines by part."),
    ] = "jsonl",
    level: Annotated[Literal["document", "segment", "page"], typer.Option(help="One row for each.")] = "document",
    silver: Annotated[
        bool, typer.Option("--silver", help="Also AUTO_ACCEPTED records, which no expert has seen.")
    ] = False,
    deidentify: Annotated[
        bool, typer.Option("--deidentify", help="Mask who it is about, by patterns: no guarantee.")
    ] = False,
    split: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="SHARE", help="Divide into train (this share) and test, by patient."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
    with_text: Annotated[bool, typer.Option("--with-text", help="Also what the pages say.")] = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ground truth as data.

    Example: evalkit export --format folder --to dataset --level page --split 0.8 --deidentify
    """
    from evalkit.evaluation.export import export_ground_truth

    row_count = export_ground_truth(
        _open_existing_output(output).root,
        to,
        file_format=file_format,
        level=level,
        silver=silver,
        deidentify=deidentify,
        split=None if split is None else {"train": split, "test": 1 - split},
        seed=seed,
        with_text=with_text,
    )
    if to is not None and as_json:
        _print_json({"rows": row_count, "to": str(to), "format": file_format, "level": level})
    elif to is not None:
        typer.echo(f"{row_count} rows written to {to}", err=True)


@app.command()
def review(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of this machine; 0: any that is free.")] = 8866,
    public_url: Annotated[
        str | None, typer.Option(metavar="URL", help="What experts type, where a TLS proxy stands before the server.")
    ] = None,
    jupyterhub: Annotated[
        bool, typer.Option("--jupyterhub", help="As a service that JupyterHub has started, which says who is who.")
    ] = False,
    example: Annotated[
        Literal["nginx", "jupyterhub"] | None,
        typer.Option(help="Print a configuration of nginx or JupyterHub to begin with, and end."),
    ] = None,
    output: OutputOption = None,
    *,
    context: typer.Context,
) -> None:
    """Serve the experts' screen on this machine, behind a login; runs until Ctrl-C.

    Example: evalkit review --port 8866
    """
    from evalkit.serving.launch import exec_review_server, read_example_configuration

    if example:
        typer.echo(read_example_configuration(example), nl=False)
        return
    exec_review_server(
        _open_existing_output(output),
        port,
        public_url,
        _load_settings().review,
        typer.echo,
        log_format=context.obj,
        is_hub_service=jupyterhub,
    )


reviewers = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Who may log in to `evalkit review`.")
app.add_typer(reviewers, name="reviewers")


@reviewers.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="1 to 40 letters, digits, '.', '_' or '-'.")],
    role: Annotated[
        RoleName | None, typer.Option(help="What they may do.", show_default="expert, or what they were before")
    ] = None,
    output: OutputOption = None,
) -> None:
    """A new reviewer, or a new code for one: it is printed once, the old one is no longer good.

    Example: evalkit reviewers add dr_lee
    """
    code = _open_roster(output).add_reviewer_or_replace_code(name, role=role)
    typer.echo(f"{name}'s code: {code}")
    typer.echo("It is not shown again. Start `evalkit review`, open the address that it prints, and type the code.")


@reviewers.command()
def appoint(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A reviewer.")],
    role: Annotated[RoleName, typer.Argument(metavar="ROLE", help="expert, adjudicator or analyst.")],
    output: OutputOption = None,
) -> None:
    """Give a reviewer another role, at once. Experts answer cases; adjudicators also decide between two answers; analysts look.

    While nobody who could decide between two answers is an adjudicator, any expert may who gave neither.

    Example: evalkit reviewers appoint dr_lee adjudicator
    """
    _open_roster(output).set_role(name, role)
    typer.echo(f"{name} is an {role} now")


@reviewers.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A reviewer.")],
    output: OutputOption = None,
) -> None:
    """Take a reviewer off the roster: their code and logins end, an open page within half a minute.

    What they have reviewed stays, with their name; a case that they had open is anybody's once that page has ended, or at once by
    taking it over. `evalkit reviewers add` lets them in again, as what they were.

    Example: evalkit reviewers remove dr_lee
    """
    _open_roster(output).remove_reviewer(name)
    typer.echo(f"{name} is no longer a reviewer here")


@reviewers.command("list")
def list_reviewers(output: OutputOption = None, as_json: JsonOption = False) -> None:
    """The reviewers and their roles.

    Example: evalkit reviewers list
    """
    roles = _open_roster(output).read_roles()
    if as_json:
        _print_json(roles)
    elif roles:
        _print_table([list(row) for row in roles.items()], ("reviewer", "role"))
    else:
        typer.echo("There is no reviewer yet: evalkit reviewers add NAME")


@app.command()
def report(
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Write the whole report as one HTML file.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV or JSON with labels that are known to be right.")
    ] = None,
    production: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The production classifier's labels, if no run was given them.")
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0.001, max=0.5, help="Wrong acceptances that calibrated acceptance may leave.")
    ] = 0.05,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """How good is everything? Estimates over all processed documents, with intervals.

    Example: evalkit report --to report.html
    """
    from evalkit.core.clocks import format_iso_seconds, utc_now
    from evalkit.evaluation.report import build_report, convert_report_to_json, write_html_report
    from evalkit.evaluation.study import read_folder_study

    study = read_folder_study(
        _open_existing_output(output), truth=truth, production=production, foreign_types=_load_settings().foreign_types
    )
    evaluation_report = build_report(study, made_at=format_iso_seconds(utc_now()), max_error_rate=rate)
    if to is not None:
        write_html_report(evaluation_report, to)
    if as_json:
        _print_json(convert_report_to_json(evaluation_report))
    else:
        _print_evaluation_report(evaluation_report, to)
    raise typer.Exit(1 if study.problems else 0)


@app.command()
def sample(
    number: Annotated[int, typer.Argument(metavar="N", min=1, help="How many documents.")],
    by: Annotated[
        Literal["production", "type", "decision"] | None,
        typer.Option(
            "--by",
            help="Spread evenly over production's labels, the agent's types, or decisions.",
            show_default="type",
        ),
    ] = None,
    seeded: Annotated[
        bool,
        typer.Option("--seeded", help="Instead, cases with a planted fault, to measure how often experts notice it."),
    ] = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put accepted documents into the queue, each drawn with a known probability; or decided ones with a planted fault.

    Example: evalkit sample 50 --by production
    """
    from evalkit.core.clocks import format_zulu_now
    from evalkit.evaluation.sampling import draw_and_queue_sample as draw

    output_folder = _open_existing_output(output)
    if seeded:
        if by is not None:
            raise UsageError(
                "--by says nothing about cases with a planted fault",
                code="SAMPLE-BY",
                remedy="Give --seeded or --by, not both.",
            )
        _draw_attention_checks(
            output_folder, number, seed=_load_settings().audit_seed, drawn_at=format_zulu_now(), as_json=as_json
        )
        return
    by = by or "type"
    settings = _load_settings()
    draw_record = draw(
        output_folder,
        number,
        by,
        seed=settings.audit_seed,
        drawn_at=format_zulu_now(),
        foreign_types=settings.foreign_types,
    )
    if as_json:
        _print_json(draw_record.model_dump(mode="json"))
        return
    rows = [
        [
            stratum.value,
            str(len(stratum.probability)),
            str(len(stratum.drawn)),
            f"{max(stratum.probability.values()):.3g}",
        ]
        for stratum in draw_record.strata
    ]
    _print_table(rows, (by, "accepted", "drawn now", "highest probability"))
    typer.echo(
        f"{sum(len(stratum.drawn) for stratum in draw_record.strata)} documents wait in the queue: {_format_queue_command(str(output_folder.root))}"
    )


def _draw_attention_checks(
    output_folder: OutputFolder, number: int, *, seed: str, drawn_at: str, as_json: bool
) -> None:
    from evalkit.evaluation.attention_checks import plant_and_queue_attention_checks
    from evalkit.review.attention_checks import describe_fault

    check_draw = plant_and_queue_attention_checks(output_folder, number, seed=seed, drawn_at=drawn_at)
    rows = [
        [check.packet.case_id, check.doc_id, check.fault.kind, describe_fault(check.fault)]
        for check in check_draw.cases
    ]
    if as_json:
        cases = [dict(zip(("case_id", "doc_id", "kind", "fault"), row, strict=True)) for row in rows]
        _print_json({"cases": cases, "nobody": list(check_draw.unassignable_case_ids)})
        return
    _print_table(rows, ("case", "document", "kind", "planted fault"))
    shortfall = f"; no fault can be planted in any other document yet ({number} were asked for)" * (len(rows) < number)
    typer.echo(f"{len(rows)} cases with a planted fault wait in the queue among the others{shortfall}")
    typer.echo("Your experts should know that such cases exist; which they are, the screen tells after each answer.")
    for case_id in check_draw.unassignable_case_ids:
        _print_to_stderr(f"{case_id}: nobody may take it, because everybody in the roster knows its document")


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The output folder of a run.")],
    b: Annotated[str, typer.Argument(metavar="B", help="That of another one over the same documents.")],
    truth: Annotated[
        Path | None, typer.Option("--truth", metavar="FILE", help="CSV or JSON with labels that are known to be right.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Two runs case by case: what changed, why, and which was right more often.

    Example: evalkit compare output output_lean
    """
    from evalkit.evaluation.run_comparison import compare_studies
    from evalkit.evaluation.study import read_study

    settings = _load_settings()
    studies = [
        read_study(output, truth=truth, foreign_types=settings.foreign_types, settings=settings) for output in (a, b)
    ]
    comparison = compare_studies(*studies)
    if as_json:
        _print_json(comparison.to_json())
    else:
        _print_comparison(comparison)
    for line in dict.fromkeys(line for study in studies for line in (*study.problems, *study.label_warnings)):
        _print_to_stderr(line)
    raise typer.Exit(1 if any(study.problems for study in studies) else 0)


@app.command()
def challenge(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH…", help="Output folders with accepted documents; PDFs, and folders of them."),
    ],
    model: Annotated[str | None, typer.Option(metavar="NAME", help="As for `run`.", show_default="embedded")] = None,
    profile: Annotated[str | None, typer.Option(help="As for `run`.", show_default="full")] = None,
    classifications: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with {doc_id}.json: right answers for the PDFs.")
    ] = None,
    kinds: Annotated[
        str | None, typer.Option(metavar="KIND,…", help="Only these: names, structural, quote, semantic.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Cases of each kind, at most.")] = 40,
    seed: Annotated[int, typer.Option(help="The same seed plants the same faults.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Plant faults into right answers, one at a time, and count who catches them. Nothing is written.

    Caught: a new BLOCKER or MAJOR issue sends the document to a person, or a repair undoes the fault. "By another":
    caught, but by none of the agents or codes that should see that kind of fault, which may be asleep. A verifier that
    could not answer has caught nothing; the setting on_agent_failure counts as "escalate" here. False alarms are counted
    on answers that another system gave, or that an expert validated or corrected.

    Example: evalkit challenge output --model gemini:gemini-2.5-flash --kinds semantic --limit 10
    """
    from evalkit.evaluation.mutation_testing import run_mutation_test

    settings = _load_settings(models={"default": model} if model is not None else None, profile=profile)
    challenge_outcome = run_mutation_test(
        paths,
        settings,
        classifications_folder=classifications,
        kinds=filter(None, map(str.strip, (kinds or "").split(","))),
        max_cases_per_kind=limit,
        seed=seed,
    )
    if as_json:
        _print_json(challenge_outcome.to_json())
    else:
        _print_challenge(challenge_outcome)
    for line in challenge_outcome.problems:
        _print_to_stderr(line)
    raise typer.Exit(1 if challenge_outcome.problems else 0)


#: Where the model of each of evalkit's files is: to load them all takes a second.
_SCHEMA_MODELS = {
    "arbitration_report": "evalkit.statements.arbitration:ArbitrationReport",
    "bundle": "evalkit.documents.bundle:DocumentBundle",
    "classification": "evalkit.classification.schema:ClassificationOutput",
    "draw": "evalkit.pipeline.sample_draws:Draw",
    "extraction": "evalkit.extraction.extraction_schema:Extractions",
    "export": "evalkit.evaluation.export:ExportedTruth",
    "failure": "evalkit.classification.document_result:DocumentFailure",
    "ground_truth": "evalkit.review:GroundTruth",
    "ground_truth_fields": "evalkit.review:FieldsGroundTruth",
    "ground_truth_template": "evalkit.review:TemplateGroundTruth",
    "issue": "evalkit.issue:Issue",
    "packet": "evalkit.review.kinds:StoredPacket",
    "production": "evalkit.pipeline.supplied_labels:StoredProductionLabels",
    "result": "evalkit.classification.document_result:DocumentResult",
    "review": "evalkit.review:Review",
    "reviewer_report": "evalkit.statements.reviewer_report:ReviewerReport",
    "seeded": "evalkit.review.attention_checks:AttentionCheck",
    "statement_template": "evalkit.statements.statement_template:StatementTemplate",
    "template_review": "evalkit.statements.review_cycles:ReviewCycle",
}


@app.command()
def schema(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Without a name: which there are.")] = None,
) -> None:
    """JSON Schemas of evalkit's files.

    Example: evalkit schema packet
    """
    if name is None:
        typer.echo("\n".join(_SCHEMA_MODELS))
    elif name in _SCHEMA_MODELS:
        _print_json(resolve_name(_SCHEMA_MODELS[name]).model_json_schema())
    else:
        raise UsageError(
            f"there is no schema {name!r}", code="SCHEMA", remedy=f"There are {', '.join(_SCHEMA_MODELS)}."
        )


@app.command()
def reindex(output: OutputOption = None) -> None:
    """Rebuild the index from the files.

    Example: evalkit reindex
    """
    from evalkit.pipeline.reindex import reindex as rebuild

    documents, cases = rebuild(_open_existing_output(output))
    typer.echo(f"{documents} documents and {cases} cases indexed")


@app.command("move-database")
def move_database(output: OutputOption = None) -> None:
    """Move claims, drafts, journal and index from evalkit.sqlite to the PostgreSQL database that is set.

    Example: EVALKIT_DATABASE=postgresql://evalkit@db/evalkit evalkit move-database
    """
    from evalkit.pipeline.reindex import move_database as move
    from evalkit.store import MOVED_SQLITE_FILE

    url = _load_settings().database
    if url is None:
        raise UsageError(
            "no PostgreSQL database is set",
            code="DATABASE",
            remedy="Set EVALKIT_DATABASE, or `database` in evalkit.toml, to postgresql://USER@HOST/NAME.",
        )
    moved_rows = move(_open_existing_output(output), url)
    typer.echo(
        f"{sum(moved_rows.values())} rows of {len(moved_rows)} tables moved; {MOVED_SQLITE_FILE} is a backup now"
    )


@app.command()
def doctor(
    live: Annotated[
        bool, typer.Option("--live", help="Ask the language models, and Document AI, once; a few tokens.")
    ] = False,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="As for `run`.")] = None,
    executor: ExecutorOption = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """What is installed, configured or missing, and what mends it.

    Example: evalkit doctor --live --model gemini:gemini-2.5-flash
    """
    from evalkit.doctor import run_doctor_checks

    settings = _load_settings(
        output=output, models={"default": model} if model is not None else None, executor=executor
    )
    checks = run_doctor_checks(settings, asks_models=live)
    if as_json:
        _print_json([vars(check) for check in checks])
    else:
        rows = [
            [
                "ok" if component_check.is_fine else "missing",
                component_check.name,
                component_check.found,
                "" if component_check.is_fine else component_check.remedy,
            ]
            for component_check in checks
        ]
        _print_table(rows, ("", "what", "found", "remedy"))
    raise typer.Exit(0 if all(check.is_fine for check in checks) else 1)


@app.command()
def purge(
    doc_ids: Annotated[
        list[str] | None, typer.Argument(metavar="DOC_ID…", help="Documents, as `run` names them.", show_default=False)
    ] = None,
    older_than: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS", min=0, max=36_525, help="Every document of which nothing waits, finished so many days ago."
        ),
    ] = None,
    is_expired: Annotated[
        bool, typer.Option("--expired", help="The same, after the days of the setting [retention] days.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Really remove what was not named itself.")] = False,
    patient_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Every document of the patient of this key, which `show` shows."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--recorded", help="Every document that was purged and is there again from a backup.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only name the files that would go.")] = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove documents and all that was made of them; of reviews their digests stay, without a word or a name.

    Killed midway, the same command finishes it; without a name it finishes what was begun. It cannot be undone, and PDFs,
    exports, reports and backups outside of the output folder are not touched.

    Documents that are not named but old (--older-than, --expired) or a patient's (--patient-key) are only listed, unless
    --yes is said. Names do not go together with the first two. A file of several patients goes as a whole.

    Example: evalkit purge doc2_6 --dry-run
    """
    from evalkit.core.clocks import format_iso_seconds, utc_now
    from evalkit.pipeline.purge import is_purge_unfinished, map_purge_file_names_by_doc_id
    from evalkit.pipeline.purge import purge as purge_documents

    if (doc_ids or patient_key) and (is_expired or older_than is not None):
        raise UsageError(
            "documents or a patient are named beside --older-than or --expired, which name others",
            code="PURGE-NAMED",
            remedy="Purge the named ones first, and the old ones by a second call.",
        )
    output_folder, now = _open_existing_output(output), utc_now()
    requested_ids = [
        *(doc_ids or ()),
        *_find_patient_and_restored_doc_ids(output_folder, patient_key, include_restored=again),
    ]
    expired_before = None
    expired_ids: tuple[str, ...] = ()
    if is_expired:
        older_than = _resolve_retention_days(older_than)
    if older_than is not None:
        expired_before = now - timedelta(days=older_than)
        expired_ids = _find_expired_ids_and_print_others(output_folder, expired_before)
    if not (requested_ids or again or expired_before or dry_run or is_purge_unfinished(output_folder)):
        raise UsageError("no document was named", code="PURGE-NOTHING", remedy="Name one; --older-than names several.")
    if dry_run or ((expired_before or patient_key is not None) and not yes):
        files_by_document = map_purge_file_names_by_doc_id(output_folder, [*requested_ids, *expired_ids])
        if as_json:
            _print_json(files_by_document)
        else:
            for name in (name for names in files_by_document.values() for name in names):
                typer.echo(name)
            hint = "" if dry_run else "; say --yes to remove them"
            typer.echo(f"{len(files_by_document)} documents would be purged; nothing was removed{hint}")
        return
    purged_documents = purge_documents(
        output_folder,
        requested_ids,
        purged_at=format_iso_seconds(now),
        expired_ids=expired_ids,
        expired_before=expired_before,
    )
    for doc_id in sorted({*expired_ids} - {purged.doc_id for purged in purged_documents}):
        _print_to_stderr(f"{doc_id} is as old, and stays: somebody has come back to it meanwhile")
    _print_purged_documents(purged_documents, as_json=as_json)


audit = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Who decided what, and whether it still stands.")
app.add_typer(audit, name="audit")


@audit.command("verify")
def verify_audit(
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An earlier `audit export` as JSON: whatever it has must still be there."),
    ] = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check every chain of reviews, packets, ground truth, draws and purges; status 1 where anything was changed.

    Example: evalkit audit verify --against decisions_2026-01.json
    """
    from evalkit.pipeline.audit_verify import verify_integrity

    integrity_report = verify_integrity(_open_existing_output(output), earlier_export_path=against)
    if as_json:
        _print_json(integrity_report.to_json())
    else:
        for fault in integrity_report.faults:
            _print_to_stderr(f"{fault.file}: {fault.what}. {fault.remedy}")
        counts_text = ", ".join(
            f"{count} {name.replace('_', ' ')}" for name, count in integrity_report.count_by_kind.items()
        )
        typer.echo(f"{counts_text}: {len(integrity_report.faults)} faults")
    raise typer.Exit(1 if integrity_report.faults else 0)


@audit.command("export")
def export_audit(
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="FILE.csv or FILE.json.", show_default="a table")
    ] = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Who decided what, when, with which outcome and versions, and how long it took; who opened what; what was purged.

    Example: evalkit audit export --to decisions.csv
    """
    import pandas as pd

    from evalkit.evaluation.export import write_private_csv, write_private_json
    from evalkit.pipeline.audit_trail import EVENT_COLUMNS, list_audit_events_and_problems

    events, problems = list_audit_events_and_problems(_open_existing_output(output))
    if to is not None and to.suffix.lower() == ".csv":
        write_private_csv(pd.DataFrame(events, columns=list(EVENT_COLUMNS)), to)
    elif to is not None:
        write_private_json({"schema_version": 1, "events": events}, to)
    if as_json:
        _print_json({"schema_version": 1, "events": events})
    elif to is None:
        columns = ("event", "at", "who", "case_id", "revision", "outcome", "decided", "seconds_active")
        _print_table(
            [["" if event[column] is None else str(event[column]) for column in columns] for event in events], columns
        )
    for line in problems:
        _print_to_stderr(line)
    raise typer.Exit(1 if problems else 0)


def _find_patient_and_restored_doc_ids(
    output_folder: OutputFolder, patient_key: str | None, *, include_restored: bool
) -> list[str]:
    """The documents of a patient, and those that are there again after their purge, if these are asked for."""
    from evalkit.pipeline.purge import find_doc_ids_of_patient, find_restored_purged_doc_ids

    return [
        *(find_doc_ids_of_patient(output_folder, patient_key) if patient_key is not None else ()),
        *(find_restored_purged_doc_ids(output_folder) if include_restored else ()),
    ]


def _find_expired_ids_and_print_others(output_folder: OutputFolder, expired_before: datetime) -> tuple[str, ...]:
    """The documents that have been finished since; of others that are as old it is said why they stay."""
    from evalkit.pipeline.purge import find_expired_documents

    expired_documents = find_expired_documents(output_folder, unchanged_since=expired_before)
    for doc_id in expired_documents.waiting:
        _print_to_stderr(f"{doc_id} is as old, and stays: a case of it waits")
    for doc_id in expired_documents.unreadable:
        _print_to_stderr(
            f"{doc_id} may be as old, and stays: a review of it cannot be read (`evalkit audit verify` names it)"
        )
    return expired_documents.finished


def _resolve_retention_days(older_than: int | None) -> int:
    """The days of the setting. UsageError where there are none, or where others were given beside it."""
    days = _load_settings().retention.days
    if not days or older_than is not None:
        raise UsageError(
            "--expired takes the days of [retention], and "
            + ("--older-than gives others" if days else "none are set there"),
            code="RETENTION",
            remedy="Say --older-than DAYS alone." if days else "Set [retention] days, or say --older-than DAYS.",
        )
    return days


def _print_purged_documents(purged_documents: list[PurgedDocument], *, as_json: bool) -> None:
    if as_json:
        _print_json([purged.to_json() for purged in purged_documents])
        return
    rows = [
        [
            purged.doc_id,
            str(len(purged.removed_files)),
            str(sum(purged.deleted_row_counts.values())),
            str(purged.digested_review_count),
            ", ".join(purged.open_case_notes),
        ]
        for purged in purged_documents
    ]
    if rows:
        _print_table(rows, ("purged", "files", "rows", "reviews", "was open"))
    for line in (line for purged in purged_documents for line in purged.remaining_traces):
        typer.echo(f"Left: {line}")
    typer.echo(f"{len(purged_documents)} documents purged")


def main() -> NoReturn:
    """The ``evalkit`` command: errors are one line on standard error, exit statuses those of the contract."""
    _redirect_closed_streams_to_null()
    try:
        exit_status = app(standalone_mode=False)  # 130 where it was interrupted
    except EvalkitError as error:
        _print_to_stderr(f"evalkit: {error}")
        exit_status = 2 if isinstance(error, UsageError | NotFound) else 1
    except OSError as error:
        if error.filename is not None:  # a file's, and not of what is printed
            raise
        _print_to_stderr(f"evalkit: what it prints cannot be written ({error.strerror})")
        _discard_pending_output()
        exit_status = 1
    except Exception as error:
        if not hasattr(error, "format_message"):  # what Typer raises for options that it does not understand
            raise
        _print_to_stderr(f"evalkit: {error.format_message()} See `evalkit --help`.")
        exit_status = 2
    if exit_status == _EXIT_INTERRUPTED:
        _print_to_stderr("evalkit: interrupted; run the same command again to go on")
    sys.exit(exit_status or 0)


def _redirect_closed_streams_to_null() -> None:
    """Standard input, output and error lead somewhere, if to nowhere: else a file that is opened later would take their
    place, and processes that read could not be started.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # Python had found it closed
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))


def _discard_pending_output() -> None:
    """What still waits to be printed goes nowhere; Python would try, and complain, once more when it ends."""
    null_descriptor = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(null_descriptor, descriptor)


def _print_to_stderr(line: str) -> None:
    """One line on standard error, if it can be written; a file's name cannot send control sequences to the terminal."""
    with suppress(OSError):
        typer.echo(_replace_control_characters(line), err=True)


def _print_text(text: str) -> None:
    """Lines on standard output that may hold words of a document or a model."""
    typer.echo("\n".join(map(_replace_control_characters, text.split("\n"))))


def _load_settings(**options: Any) -> Settings:
    """The settings, with what the command line says in the place of some; None says nothing."""
    from evalkit.settings import Settings

    return Settings.load(**options)


def _open_output(output: str | None) -> OutputFolder:
    """Open the output folder of the option or the settings, in the database that is set."""
    from evalkit.store import open_output_folder

    settings = _load_settings(output=output)
    return open_output_folder(settings.output, settings.database)


def _open_existing_output(output: str | None) -> OutputFolder:
    from evalkit.store import require_evalkit_output_folder

    output_folder = _open_output(output)
    require_evalkit_output_folder(output_folder)
    return output_folder


def _open_roster(output: str | None) -> ReviewerRoster:
    from evalkit.review.roster import ReviewerRoster

    return ReviewerRoster(_open_existing_output(output))


def _convert_extracted_document_to_json(document: ExtractedDocument) -> dict[str, Any]:
    return vars(document) | {"extractions": [extraction.model_dump(mode="json") for extraction in document.extractions]}


def _exit_with_summary(summary: BatchSummary[Any]) -> NoReturn:
    """Name what failed, and end."""
    for document in summary.failed:
        _print_to_stderr(f"{document.doc_id}: {document.error}")
    for line in (*summary.problems, *summary.copies):
        _print_to_stderr(line)
    raise typer.Exit(summary.exit_status)


def _read_pdf_in_worker(pdf: Path) -> DocumentBundle:
    """One PDF, in a process of its own. DocumentError where it cannot be read."""
    from evalkit.core.clocks import format_zulu_now
    from evalkit.pipeline.document_discovery import sanitise_file_stem
    from evalkit.pipeline.event_loop import run_sync
    from evalkit.pipeline.executor.reader_pool import ReaderPool
    from evalkit.pipeline.run_setup import build_reader_config

    with ReaderPool(1, build_reader_config(_load_settings())) as reader_pool:
        return run_sync(
            reader_pool.read(pdf.absolute(), doc_id=sanitise_file_stem(pdf), processing_timestamp=format_zulu_now())
        ).bundle


def _read_template_text_and_file_name(template: Path, output: str | None) -> tuple[str, str]:
    """The template of that file, or where only a name is given of that name in the output folder; the file's bare name."""
    from evalkit.core.safe_io import FileTooLarge, read_regular_file
    from evalkit.store import template_file_name

    name = template_file_name(template.name.removesuffix(".toml"))
    is_file = template.is_file() or template.parent != Path()
    try:
        text = (read_regular_file(template) if is_file else _open_output(output).read_bytes(name)).decode()
    except FileTooLarge as error:
        raise UsageError(
            f"{template} is no template: {error.strerror}", code="TEMPLATE", remedy="Name another file."
        ) from error
    except (OSError, NotFound, UnicodeDecodeError) as error:
        raise UsageError(
            f"there is no template {template}",
            code="TEMPLATE",
            remedy="Name a file that `evalkit build-template` wrote.",
        ) from error
    return text, name.rpartition("/")[2]


def _convert_template_review_to_json(template_review: TemplateReviewSummary) -> dict[str, Any]:
    last_cycle = template_review.review_result.cycles[-1]
    return {
        "template_id": last_cycle.template_id,
        "status": template_review.review_result.template.status.value,
        "outcome": last_cycle.outcome,
        "because": last_cycle.because,
        "attempts": len(template_review.review_result.cycles),
        "issues": [issue.model_dump(mode="json") for issue in last_cycle.issues],
        "escalation": template_review.review_result.template_case.escalation.model_dump(mode="json")
        if template_review.review_result.template_case
        else None,
        "template": template_review.template_path,
        "cycles": list(template_review.cycle_paths),
        "case_id": template_review.case_id,
        "is_taken": template_review.is_case_frozen,
        "cost": template_review.review_result.cost.model_dump(mode="json"),
    }


def _print_template_review(template_review: TemplateReviewSummary) -> None:
    for cycle in template_review.review_result.cycles:
        typer.echo(f"Attempt {cycle.attempt}: {cycle.because}")
        for role, reason in cycle.failures.items():
            typer.echo(f"  {role}: {reason}")
        for reported in cycle.issues:
            page_text = "" if reported.issue.page is None else f", page {reported.issue.page}"
            reporters = ", ".join(reported.reported_by)
            typer.echo(
                _replace_control_characters(
                    f"  {reported.issue.severity} {reported.issue.category}{page_text} ({reporters}): {reported.issue.message}"
                )
            )
    _print_usages(template_review.by_agent)
    last_cycle = template_review.review_result.cycles[-1]
    if template_review.review_result.template_case is None and template_review.is_case_frozen:
        typer.echo(f"{last_cycle.template_id} is passed by the reviewers; what a person decides of it counts")
    elif template_review.review_result.template_case is None:
        typer.echo(f"{last_cycle.template_id} is approved and stable: {template_review.template_path}")
    else:
        escalation = template_review.review_result.template_case.escalation
        typer.echo(
            f"{last_cycle.template_id} stays a draft; a person decides ({escalation.escalation_reason}): {escalation.recommendation}"
        )


def _convert_statement_to_json(statement: ParsedStatement, reconciliation: ReconciliationReport) -> dict[str, Any]:
    return {
        "statement": statement.model_dump(mode="json"),
        "reconciliation": {"is_met": reconciliation.has_only_met_checks, **reconciliation.model_dump(mode="json")},
    }


def _print_statement(statement: ParsedStatement, reconciliation: ReconciliationReport) -> None:
    from evalkit.statements.statement_parser import TRANSACTION_CSV_COLUMNS

    rows = [
        ["" if (cell := getattr(line, name)) is None else str(cell) for name in TRANSACTION_CSV_COLUMNS]
        for line in statement.transactions
    ]
    if rows and len(rows) <= _MAX_TABLE_ROWS:
        _print_table(rows, TRANSACTION_CSV_COLUMNS)
    checks = [
        ["met" if line.is_met else "DIFFERS", line.name.replace("_", " "), line.account, line.message]
        for line in reconciliation.checks
    ]
    if checks:
        _print_table(checks[:_MAX_TABLE_ROWS], ("", "check", "account", ""))
    else:
        typer.echo("The statement prints no sum that its transactions could be checked by.")
    for line in (*statement.left_over, *statement.outside)[:_MAX_TABLE_ROWS]:
        origin = "left over" if line in statement.left_over else "outside of the regions"
        _print_text(f"{origin}, page {line.page}: {line.text} ({line.reason})")
    unmet = sum(not line.is_met for line in reconciliation.checks)
    typer.echo(
        f"{len(rows)} transactions, {len(statement.left_over)} lines left over, {len(statement.outside)} rows outside; "
        f"{len(reconciliation.checks)} checks, {unmet} not met"
    )


def _print_extract_summary(summary: ExtractSummary) -> None:
    rows = [
        [
            document.doc_id,
            f"{extraction.start_page}-{extraction.end_page}",
            extraction.document_type,
            extraction.decision,
            "" if extraction.score is None else f"{extraction.score:.2f}",
            f"{sum(field_value.is_found for field_value in extraction.fields.values())}/{len(extraction.fields)}",
            extraction.stopped_reason,
        ]
        for document in summary.documents
        for extraction in document.extractions
    ]
    if rows and len(rows) <= _MAX_TABLE_ROWS:
        _print_table(rows, ("document", "pages", "type", "decision", "score", "fields found", "stopped"))
    decisions = [extraction.decision for document in summary.documents for extraction in document.extractions]
    counts_text = ", ".join(f"{decisions.count(name)} {name}" for name in sorted(set(decisions)))
    typer.echo(
        f"{len(decisions)} reports and forms in {len(summary.documents)} documents"
        + f": {counts_text}" * bool(counts_text)
    )
    _print_usages(summary.by_agent)
    queue_hint = f" Waiting cases: {_format_queue_command(summary.output)}" if "ESCALATE_TO_SME" in decisions else ""
    typer.echo(f"Fields in {summary.output}/extractions ({summary.seconds:.1f} s).{queue_hint}")


def _print_run_summary(summary: RunSummary) -> None:
    documents = summary.documents
    if len(documents) <= _MAX_TABLE_ROWS:
        rows = [
            [
                document.doc_id,
                str(document.pages or ""),
                f"{document.decision or 'NOT READ'}{_format_repairs(document)}",
                document.decision_rule or "",
                document.dominant_type or "",
                f"{document.blocker}/{document.major}/{document.minor}",
                ", ".join(document.raised_by),
            ]
            for document in documents
        ]
        columns = ("document", "pages", "decision", "rule", "dominant type", "blocker/major/minor", "raised by")
        _print_table(rows, columns)
    decisions = [document.decision or "NOT READ" for document in documents]
    counts_text = ", ".join(f"{decisions.count(name)} {name}" for name in sorted(set(decisions)))
    resumed_count = sum(document.resumed for document in documents)
    typer.echo(
        f"{len(documents)} documents: {counts_text}"
        + (f"; {resumed_count} were finished before" if resumed_count else "")
    )
    _print_usages(summary.by_agent)
    for hint in filter(None, (summary.label_hint, summary.setting_hint)):
        typer.echo(hint)
    typer.echo(summary.timings.format_timing_line(summary.seconds))
    typer.echo(f"Results in {summary.output}. Waiting cases: {_format_queue_command(summary.output)}")


def _format_queue_command(output: str) -> str:
    """The command that shows the cases of this output folder."""
    return (
        "evalkit queue" if output == str(_open_output(None).root) else f"evalkit queue --output {shlex.quote(output)}"
    )


def _print_usages(usage_by_agent: Mapping[str, Usage | UsageTotal]) -> None:
    for agent, usage in usage_by_agent.items():
        typer.echo(f"{agent}: {_format_usage(usage)}")


def _format_usage(usage: Usage | UsageTotal) -> str:
    price = "price unknown" if usage.cost_usd is None else f"{Decimal(usage.cost_usd):.4f} US dollars"
    return f"{usage.calls} call{'s' * (usage.calls != 1)}, {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, {price}"


def _format_repairs(document: DocumentSummary) -> str:
    repairs = document.attempts - 1
    return f" after {repairs} repair{'s' * (repairs > 1)}" if repairs > 0 else ""


def _print_evaluation_report(evaluation_report: EvaluationReport, to: Path | None) -> None:
    from evalkit.evaluation.report import format_cell

    for warning in evaluation_report.warnings:
        _print_to_stderr(warning)
    for table in [table for section in evaluation_report.sections[:2] for table in section.tables]:
        rows = [[format_cell(value) for value in row] for row in table.frame.itertuples(index=False, name=None)]
        _print_table(rows, tuple(str(name) for name in table.frame.columns))
    typer.echo(f"The whole report: {to}" if to else "The whole report: evalkit report --to report.html")


def _print_challenge(challenge_outcome: MutationTestReport) -> None:
    from evalkit.evaluation.mutation_testing import format_report_table_and_summary

    head, rows, tail = format_report_table_and_summary(challenge_outcome)
    _print_table(rows, head)
    for line in tail:
        typer.echo(line)
    _print_usages(challenge_outcome.usage_by_agent)


def _print_comparison(comparison: RunComparison) -> None:
    from evalkit.evaluation.run_comparison import convert_to_records
    from evalkit.evaluation.verifier_performance import ERROR_LEVELS

    unpaired_text = f"{len(comparison.only_in_a)} only in A, {len(comparison.only_in_b)} only in B"
    typer.echo(
        f"A is {comparison.output_a}, B is {comparison.output_b}: {len(comparison.documents_table)} documents in both, {unpaired_text}"
    )
    for name, doc_ids in (("A", comparison.only_in_a), ("B", comparison.only_in_b)):
        if doc_ids:
            more = f" and {len(doc_ids) - _MAX_TABLE_ROWS} more" * (len(doc_ids) > _MAX_TABLE_ROWS)
            typer.echo(f"Only in {name}: {', '.join(doc_ids[:_MAX_TABLE_ROWS])}{more}")
    if not len(comparison.documents_table):
        return
    decisions = [[str(cell) for cell in row] for row in comparison.decision_crosstab.reset_index().to_numpy()]
    _print_table(decisions, ("decision of A, of B →", *comparison.decision_crosstab.columns))
    if len(comparison.type_changes):
        types = [[str(cell) for cell in row.values()] for row in convert_to_records(comparison.type_changes)]
        _print_table(types, ("type by A", "type by B", "documents"))
    changed = convert_to_records(comparison.changed_documents)
    if changed:
        columns = ("document", "decision", "segments", "issues", "evidence", "type is")
        _print_table([_format_change(change) for change in changed[:_MAX_TABLE_ROWS]], columns)
    omission = f", of which {_MAX_TABLE_ROWS} are shown (--json has all)" * (len(changed) > _MAX_TABLE_ROWS)
    typer.echo(f"{len(changed)} documents changed{omission}")
    paired_outcomes = (comparison.type_accuracy, comparison.segment_accuracy, comparison.merged_segment_accuracy)
    names = ("Type", "Segments exactly", "Segments exactly, neighbours of one type merged")
    for name, level, outcome in zip(names, ERROR_LEVELS, paired_outcomes, strict=True):
        typer.echo(f"{name}: {_format_overall_accuracy(comparison.overall_accuracies[level], comparison.sampling_run)}")
        typer.echo(f"{name}, reviewed only: {_format_paired_accuracy(outcome)}")
    _print_truth_origins(comparison)
    effort = [
        [change["measure"], *(_format_amount(change[side]) for side in "ab")]
        for change in convert_to_records(comparison.effort_table)
    ]
    _print_table(effort, ("", "A", "B"))


def _print_truth_origins(comparison: RunComparison) -> None:
    if origins := ", ".join(
        f"{count} {_TRUTH_ORIGIN_LABELS[name]}" for name, count in comparison.truth_origin_counts.items() if count
    ):
        typer.echo(f"Truths: {origins}")
    if comparison.comparability_warning:
        typer.echo(comparison.comparability_warning)
    if comparison.disputed_doc_ids:
        typer.echo(f"The folders know different truths of {', '.join(comparison.disputed_doc_ids)}: left out")
    if comparison.simulated_truth_count:
        typer.echo(f"{comparison.simulated_truth_count} of the truths are those of simulated reviewers")


def _format_change(row: dict[str, Any]) -> list[str]:
    """A document's line: what it was in A, and in B where that is something else."""
    from evalkit.evaluation.run_comparison import CANNOT_TELL_LABEL

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


def _format_overall_accuracy(estimates: OverallAccuracyComparison, drawn_by: str) -> str:
    return (
        f"of all {estimates.population_size} documents in both, estimated from {estimates.observed_count} by the draws of {drawn_by}: "
        f"A right {_format_interval(estimates.accuracy_a, '.3f')}, B {_format_interval(estimates.accuracy_b, '.3f')}; B − A {_format_interval(estimates.difference, '+.3f')}"
    )


def _format_interval(estimate: Estimate, number_format: str) -> str:
    estimate_text = "not known" if estimate.value is None else format(estimate.value, number_format)
    return f"{estimate_text} (95 % interval {estimate.low:{number_format}} to {estimate.high:{number_format}})"


def _format_paired_accuracy(paired_result: PairedAccuracy) -> str:
    if not paired_result.document_count:
        return "nobody knows the truth of any document in both"
    return (
        f"{paired_result.document_count} documents with a known truth: both right {paired_result.both_right}, "
        f"only A {paired_result.only_a_right}, only B {paired_result.only_b_right}, none {paired_result.neither_right}; "
        f"B − A {_format_interval(paired_result.difference, '+.3f')}; "
        + (f"exact McNemar p {paired_result.p_value:.3g}; " if paired_result.p_value is not None else "")
        + paired_result.winner_sentence
    )


def _format_amount(amount: Decimal | float | None) -> str:
    if amount is None:
        return "not known"
    return (
        f"{amount:,}"
        if isinstance(amount, int)
        else f"{amount:,.4f}"
        if isinstance(amount, Decimal)
        else f"{amount:,.1f}"
    )


def _describe_result(result: DocumentResult) -> Iterator[str]:
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
    for agent, usage in sorted(result.usage.by_agent.items()):
        if usage.input_tokens:
            yield f"{agent}: {_format_usage(usage)}"


def _print_table(rows: list[list[str]], columns: tuple[str, ...]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_replace_control_characters(cell)) for cell in row))  # as text: file names are not markup
    console = Console()
    if not console.is_terminal:
        console.width = 160  # a pipe has no width of its own
    console.print(table)


def _replace_control_characters(text: str) -> str:
    """Words of a document or a model must not reach a terminal as control sequences."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def _print_json(content: Any) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=2)
    # A file's name may have bytes that are no text; Python has them as halves of characters, which JSON writes as \udcff.
    typer.echo(text.encode("utf-8", "backslashreplace").decode())
