"""The command line. Commands import what they need when they run, so that ``evalkit --help`` is quick."""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from evalkit.errors import EvalkitError, NotFound, UsageError

if TYPE_CHECKING:
    from evalkit.batch.extract import ExtractedDocument, ExtractSummary
    from evalkit.batch.purge import Purged
    from evalkit.batch.round import Summary
    from evalkit.batch.runner import DocumentSummary, RunSummary
    from evalkit.batch.templates import TemplateReview
    from evalkit.classification.result import DocumentFailure, DocumentResult, UsageTotal
    from evalkit.documents.bundle import DocumentBundle
    from evalkit.evaluation.challenge import Challenge
    from evalkit.evaluation.comparison import Comparison
    from evalkit.evaluation.contrast import Overall, Paired
    from evalkit.evaluation.intervals import Estimate
    from evalkit.evaluation.report import Report
    from evalkit.llm.model import Usage
    from evalkit.logs import Form
    from evalkit.review.packet import SMEPacket
    from evalkit.statements.apply import Statement
    from evalkit.statements.reconcile import Reconciliation
    from evalkit.store import Files

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
PurgedOption = Annotated[bool, typer.Option("--even-purged", help="Take documents in again that were purged.")]

_INTERRUPTED = 130
"""Exit status after Ctrl-C, of Typer and of the shell."""
_KNOWN_FROM = {"given": "given", "A": "from reviews of A alone", "B": "from reviews of B alone", "both": "from both"}
_MOST_ROWS = 60
"""Rows of the summary table; longer runs are counted."""


class Example(StrEnum):
    """What may stand before the experts' screen."""

    nginx = "nginx"
    jupyterhub = "jupyterhub"


class RoleName(StrEnum):
    """What a reviewer may do."""

    expert = "expert"
    adjudicator = "adjudicator"
    analyst = "analyst"


class LogFormat(StrEnum):
    """How the log is written."""

    text = "text"
    json = "json"


@app.callback()
def _logging(
    context: typer.Context,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens to standard error.")] = False,
    log_format: Annotated[
        LogFormat | None, typer.Option(help="How the log is written: json is one object a line.", show_default="text")
    ] = None,
) -> None:
    from evalkit.logs import Lines

    context.obj = form = log_format.value if log_format else _log_format()
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(form))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])


def _log_format() -> Form:
    from evalkit.settings import Settings

    try:
        return Settings.load().log_format
    except UsageError:  # the command itself says what is wrong, if it needs settings at all
        return "text"


@app.command()
def samples(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to draw them.")]) -> None:
    """Draw the demo's documents, of no real patient.

    Example: evalkit samples .demo
    """
    from evalkit.samples import draw

    try:
        drawn = draw(folder)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written ({error.strerror})", code="SAMPLES", remedy="Name another folder."
        ) from error
    typer.echo(f"{len(drawn)} documents drawn in {folder}")


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
    classifications: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with {doc_id}.json to be verified instead of asking.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that read PDFs.", show_default="one per core")] = None,
    executor: ExecutorOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do again what an earlier run finished.")] = False,
    with_fields: Annotated[
        bool, typer.Option("--extract", help="Also extract the fields of reports and forms.")
    ] = False,
    even_purged: PurgedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read, classify, verify and decide PDFs; resumes where an earlier run stopped.

    Example: evalkit run records/ --production labels.csv
    """
    from evalkit.batch import progress_bar
    from evalkit.batch import run as run_batch

    with progress_bar(stderr=True) if sys.stderr.isatty() else nullcontext() as on_progress:
        summary = run_batch(
            paths,
            output=output,
            model=model,
            reader=reader,
            profile=profile,
            production=production,
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
        _print_summary(summary)
    _end(summary)


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
    even_purged: PurgedOption = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """The fields of reports and forms, each with its place on the page.

    Example: evalkit extract taxes/ --tax-year 2020
    """
    from evalkit.batch.extract import extract as extract_all
    from evalkit.evaluation.export import save_table

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
        save_table(summary.to_frame(), to)
    if as_json:
        _print_json(summary.to_json(_extracted_json))
    else:
        _print_extracted(summary)
    _end(summary)


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
    from evalkit.batch.templates import build_template as build
    from evalkit.batch.templates import is_stable
    from evalkit.evaluation.export import replacing, write_private
    from evalkit.statements.template import write_template
    from evalkit.store import Files, template_name

    made, usage, proposed_by = build(_read_alone(pdf), pdf, model=model)
    if to is None:
        files, name = Files(_output(output)), template_name(made.template.template_id)
        target = f"{files.root}/{name}"
        if is_stable(files, made.template.template_id):
            raise UsageError(
                f"{target} is a template that was approved",
                code="TEMPLATE",
                remedy="Name another file with --to, or review that one against this statement: `evalkit review-template`.",
            )
        files.write_text(name, write_template(made.template))
    else:
        target = str(to)
        try:
            with replacing(to) as temporary:
                write_private(temporary, write_template(made.template))
        except OSError as error:
            raise UsageError(
                f"{to} cannot be written ({error.strerror})", code="TEMPLATE", remedy="Name another file."
            ) from error
    if as_json:
        _print_json({"template": target, **_statement_json(made.statement, made.reconciliation)})
    else:
        _print_statement(made.statement, made.reconciliation)
        if usage.calls:
            typer.echo(f"builder: {_cost(usage)}")
        by = f", as {proposed_by} proposed it," if proposed_by else ""
        typer.echo(f"Draft of {made.template.identity.bank}'s template{by} written to {target}")


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
    even_purged: PurgedOption = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let two reviewers compare a template with a statement: it becomes stable, or another is tried, or a person decides.

    Example: evalkit review-template bank.toml statement.pdf
    """
    from evalkit.batch.templates import review_template as review

    made = review(*_template_text(template, output), pdf, output=output, model=model, even_purged=even_purged)
    if as_json:
        _print_json(_reviewed_json(made))
    else:
        _print_reviewed(made)
    if made.is_taken:
        _complain(
            f"{made.reviewed.template.template_id}: somebody has an earlier case of it open, or has decided it; "
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

    from evalkit.evaluation.export import save_table
    from evalkit.statements.apply import CSV_COLUMNS, apply
    from evalkit.statements.reconcile import reconcile
    from evalkit.statements.template import Status, read_template

    given = read_template(*_template_text(template, output))
    statement = apply(given, _read_alone(pdf))
    report = reconcile(given, statement)
    if to is not None:
        rows = [one.model_dump(include=set(CSV_COLUMNS)) for one in statement.transactions]
        save_table(pd.DataFrame(rows, columns=list(CSV_COLUMNS), dtype=object), to)
    if given.status is Status.DRAFT:
        _complain(f"{given.template_id} is a draft: nobody has vouched for it yet")
    if as_json:
        _print_json({"status": given.status.value, **_statement_json(statement, report)})
    else:
        _print_statement(statement, report)


@app.command()
def queue(output: OutputOption = None, as_json: JsonOption = False) -> None:
    """The cases that wait for an expert, worst first.

    Example: evalkit queue
    """
    from evalkit.review.queue import pending
    from evalkit.store import Index

    with Index(_existing(output)) as index:
        rows = pending(index)
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
    from evalkit.classification.result import DocumentFailure
    from evalkit.issue import by_severity
    from evalkit.review.packet import EXTRACTION, base_of, issue_text, read_packet
    from evalkit.review.seeded import shown_result
    from evalkit.statements.record import STATEMENT_TEMPLATE
    from evalkit.store import Files

    files = Files(_existing(output))
    if base_of(doc_id).endswith((EXTRACTION, STATEMENT_TEMPLATE)):
        packet = read_packet(files, doc_id)
        if as_json:
            _print_json(packet.model_dump(mode="json"))
        else:
            _print_case(packet)
        return
    result = shown_result(files, doc_id)
    if as_json:
        _print_json(result.model_dump(mode="json") | (_reasons(files, result) if why else {}))
        return
    if isinstance(result, DocumentFailure):
        _say(f"{doc_id}: not read\n{result.error.code}: {result.error.message}. {result.error.remedy}")
        return
    _say(f"{doc_id}: {result.decision.value} (rule {result.decision_rule}): {result.decision_reason}")
    for line in _described(result):
        _say(line)
    for issue in by_severity(result.issues):
        typer.echo("\n" + issue_text(issue) + ("\n  (repaired)" if issue.status == "repaired" else ""))
    if why and result.classification:
        from evalkit.classification.explanation import lines
        from evalkit.review.seeded import shown_document
        from evalkit.review.stored import read_bundle

        typer.echo("\nWhat speaks on its pages, by the built-in model:")
        for line in lines(read_bundle(files, shown_document(files, doc_id)), result.classification):
            _say(line)


def _print_case(packet: SMEPacket) -> None:
    """A case that is not about a classification."""
    from evalkit.review.fields import label, shown
    from evalkit.review.packet import issue_text

    _say(f"{packet.case_id}: {packet.v5_decision.value}: {packet.decision_reason}")
    for one in packet.extractions:
        _say(f"\n{one.document_type}, pages {one.start_page}-{one.end_page}: {one.decision}, {one.stopped_reason}")
        found = {name: value for name, value in one.fields.items() if value.value is not None}
        _print_table([[label(one, name), shown(value)] for name, value in found.items()], ("field", "value"))
    if packet.template_case:
        _say("\n" + packet.template_case.template.removesuffix("\n"))
    for issue in packet.issues:
        typer.echo("\n" + issue_text(issue) + ("\n  (repaired)" if issue.status == "repaired" else ""))


def _reasons(files: Files, result: DocumentResult | DocumentFailure) -> dict[str, Any]:
    from evalkit.classification.explanation import why
    from evalkit.classification.result import DocumentFailure
    from evalkit.review.seeded import shown_document
    from evalkit.review.stored import read_bundle

    if isinstance(result, DocumentFailure) or result.classification is None:
        return {"why": None}
    return {"why": why(read_bundle(files, shown_document(files, result.doc_id)), result.classification).to_json()}


class ExportFormat(StrEnum):
    """How ground truth is written."""

    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"
    folder = "folder"


class ExportLevel(StrEnum):
    """What one row of an export is about."""

    document = "document"
    segment = "segment"
    page = "page"


@app.command()
def export(
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="PATH", help="Write to a file, or a folder.", show_default="standard output"),
    ] = None,
    file_format: Annotated[
        ExportFormat, typer.Option("--format", help="`folder` is a data card and JSON Lines by part.")
    ] = ExportFormat.jsonl,
    level: Annotated[ExportLevel, typer.Option(help="One row for each.")] = ExportLevel.document,
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

    count = export_ground_truth(
        _existing(output),
        to,
        file_format=file_format.value,
        level=level.value,
        silver=silver,
        deidentify=deidentify,
        split=None if split is None else {"train": split, "test": 1 - split},
        seed=seed,
        with_text=with_text,
    )
    if to is not None and as_json:
        _print_json({"rows": count, "to": str(to), "format": file_format.value, "level": level.value})
    elif to is not None:
        typer.echo(f"{count} rows written to {to}", err=True)


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
        Example | None, typer.Option(help="Print a configuration of nginx or JupyterHub to begin with, and end.")
    ] = None,
    output: OutputOption = None,
    *,
    context: typer.Context,
) -> None:
    """Serve the experts' screen on this machine, behind a login; runs until Ctrl-C.

    Example: evalkit review --port 8866
    """
    from evalkit.serving.launch import example as example_of
    from evalkit.serving.launch import review as serve
    from evalkit.settings import Settings

    if example:
        typer.echo(example_of(example.value), nl=False)
        return
    settings = Settings.load()
    serve(
        _existing(output),
        port,
        public_url,
        settings.review,
        settings.database,
        typer.echo,
        log_format=context.obj,
        is_of_hub=jupyterhub,
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
    from evalkit.review.roster import Roster
    from evalkit.store import Files

    code = Roster(Files(_existing(output))).add(name, role=role.value if role else None)
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
    from evalkit.review.roster import Roster
    from evalkit.store import Files

    Roster(Files(_existing(output))).appoint(name, role.value)
    typer.echo(f"{name} is an {role.value} now")


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
    from evalkit.review.roster import Roster
    from evalkit.store import Files

    Roster(Files(_existing(output))).remove(name)
    typer.echo(f"{name} is no longer a reviewer here")


@reviewers.command("list")
def list_reviewers(output: OutputOption = None, as_json: JsonOption = False) -> None:
    """The reviewers and their roles.

    Example: evalkit reviewers list
    """
    from evalkit.review.roster import Roster
    from evalkit.store import Files

    roles = Roster(Files(_existing(output))).roles()
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
    from datetime import UTC, datetime

    from evalkit.evaluation.report import build, to_json, write_html
    from evalkit.evaluation.study import read_study
    from evalkit.settings import Settings

    foreign = Settings.load().foreign_types
    study = read_study(_existing(output), truth=truth, production=production, foreign_types=foreign)
    made = build(study, made_at=datetime.now(UTC).isoformat(timespec="seconds"), rate=rate)
    if to is not None:
        write_html(made, to)
    if as_json:
        _print_json(to_json(made))
    else:
        _print_report(made, to)
    raise typer.Exit(1 if study.problems else 0)


class SampleBy(StrEnum):
    """What the drawn documents are spread over."""

    production = "production"
    type = "type"
    decision = "decision"


@app.command()
def sample(
    number: Annotated[int, typer.Argument(metavar="N", min=1, help="How many documents.")],
    by: Annotated[
        SampleBy | None,
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
    from evalkit.clocks import now
    from evalkit.evaluation.sampling import sample as draw
    from evalkit.settings import Settings

    folder = _existing(output)
    if seeded:
        if by is not None:
            raise UsageError(
                "--by says nothing about cases with a planted fault",
                code="SAMPLE-BY",
                remedy="Give --seeded or --by, not both.",
            )
        _sample_seeded(folder, number, seed=Settings.load().audit_seed, drawn_at=now(), as_json=as_json)
        return
    by = by or SampleBy.type
    made = draw(folder, number, by.value, seed=Settings.load().audit_seed, drawn_at=now())
    if as_json:
        _print_json(made.model_dump(mode="json"))
        return
    rows = [
        [one.value, str(len(one.probability)), str(len(one.drawn)), f"{max(one.probability.values()):.3g}"]
        for one in made.strata
    ]
    _print_table(rows, (by.value, "accepted", "drawn now", "highest probability"))
    typer.echo(f"{sum(len(one.drawn) for one in made.strata)} documents wait in the queue: {_queue_of(str(folder))}")


def _sample_seeded(folder: Path | str, number: int, *, seed: str, drawn_at: str, as_json: bool) -> None:
    from evalkit.evaluation.seeding import sample_seeded
    from evalkit.review.seeded import described

    made = sample_seeded(folder, number, seed=seed, drawn_at=drawn_at)
    rows = [[one.packet.case_id, one.doc_id, one.fault.kind, described(one.fault)] for one in made.cases]
    if as_json:
        cases = [dict(zip(("case_id", "doc_id", "kind", "fault"), row, strict=True)) for row in rows]
        _print_json({"cases": cases, "nobody": list(made.nobody)})
        return
    _print_table(rows, ("case", "document", "kind", "planted fault"))
    fewer = f"; no fault can be planted in any other document yet ({number} were asked for)" * (len(rows) < number)
    typer.echo(f"{len(rows)} cases with a planted fault wait in the queue among the others{fewer}")
    typer.echo("Your experts should know that such cases exist; which they are, the screen tells after each answer.")
    for case_id in made.nobody:
        _complain(f"{case_id}: nobody may take it, because everybody in the roster knows its document")


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
    from evalkit.evaluation.comparison import compare as compare_studies
    from evalkit.evaluation.study import read_study
    from evalkit.settings import Settings

    foreign = Settings.load().foreign_types
    studies = [read_study(folder, truth=truth, foreign_types=foreign) for folder in (a, b)]
    compared = compare_studies(*studies)
    if as_json:
        _print_json(compared.to_json())
    else:
        _print_comparison(compared)
    for line in dict.fromkeys(line for study in studies for line in (*study.problems, *study.remarks)):
        _complain(line)
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
    caught, but by none of the agents that should see that kind of fault, which may be asleep. A verifier that could not
    answer has caught nothing; the setting on_agent_failure counts as "escalate" here.

    Example: evalkit challenge output --model gemini:gemini-2.5-flash --kinds semantic --limit 10
    """
    from evalkit.evaluation.challenge import conduct

    made = conduct(
        paths,
        model=model,
        profile=profile,
        classifications=classifications,
        kinds=filter(None, map(str.strip, (kinds or "").split(","))),
        limit=limit,
        seed=seed,
    )
    if as_json:
        _print_json(made.to_json())
    else:
        _print_challenge(made)
    for line in made.problems:
        _complain(line)
    raise typer.Exit(1 if made.problems else 0)


@app.command()
def schema(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Without a name: which there are.")] = None,
) -> None:
    """JSON Schemas of evalkit's files.

    Example: evalkit schema packet
    """
    from pydantic import BaseModel

    from evalkit.batch.draws import Draw
    from evalkit.batch.labels import StoredProduction
    from evalkit.classification.result import DocumentFailure, DocumentResult
    from evalkit.classification.schema import ClassificationOutput
    from evalkit.documents.bundle import DocumentBundle
    from evalkit.evaluation.export import ExportedTruth
    from evalkit.extraction.schema import Extractions
    from evalkit.issue import Issue
    from evalkit.review import FieldsGroundTruth, GroundTruth, Review, SMEPacket, TemplateGroundTruth
    from evalkit.review.seeded import Seeded
    from evalkit.statements.arbitration import ArbitrationReport
    from evalkit.statements.record import Cycle
    from evalkit.statements.report import ReviewerReport
    from evalkit.statements.template import StatementTemplate

    models: dict[str, type[BaseModel]] = {
        "arbitration_report": ArbitrationReport,
        "bundle": DocumentBundle,
        "classification": ClassificationOutput,
        "draw": Draw,
        "extraction": Extractions,
        "export": ExportedTruth,
        "failure": DocumentFailure,
        "ground_truth": GroundTruth,
        "ground_truth_fields": FieldsGroundTruth,
        "ground_truth_template": TemplateGroundTruth,
        "issue": Issue,
        "packet": SMEPacket,
        "production": StoredProduction,
        "result": DocumentResult,
        "review": Review,
        "reviewer_report": ReviewerReport,
        "seeded": Seeded,
        "statement_template": StatementTemplate,
        "template_review": Cycle,
    }
    if name is None:
        typer.echo("\n".join(models))
    elif name in models:
        _print_json(models[name].model_json_schema())
    else:
        raise UsageError(f"there is no schema {name!r}", code="SCHEMA", remedy=f"There are {', '.join(models)}.")


@app.command()
def reindex(output: OutputOption = None) -> None:
    """Rebuild the index from the files.

    Example: evalkit reindex
    """
    from evalkit.batch.reindex import reindex as rebuild

    documents, cases = rebuild(_existing(output))
    typer.echo(f"{documents} documents and {cases} cases indexed")


@app.command("move-database")
def move_database(output: OutputOption = None) -> None:
    """Move claims, drafts, journal and index from evalkit.sqlite to the PostgreSQL database that is set.

    Example: EVALKIT_DATABASE=postgresql://evalkit@db/evalkit evalkit move-database
    """
    from evalkit.batch.reindex import move_database as move
    from evalkit.settings import Settings
    from evalkit.store import MOVED

    url = Settings.load().database
    if url is None:
        raise UsageError(
            "no PostgreSQL database is set",
            code="DATABASE",
            remedy="Set EVALKIT_DATABASE, or `database` in evalkit.toml, to postgresql://USER@HOST/NAME.",
        )
    moved = move(_existing(output), url)
    typer.echo(f"{sum(moved.values())} rows of {len(moved)} tables moved; {MOVED} is a backup now")


@app.command()
def doctor(
    live: Annotated[
        bool, typer.Option("--live", help="Ask the language models, and Document AI, once; a few tokens.")
    ] = False,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="As for `run`.")] = None,
    executor: ExecutorOption = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="DIR|URL", help="What of the last run in this output folder was slow."),
    ] = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """What is installed, configured or missing, and what mends it; or what of a run was slow, and why.

    Example: evalkit doctor --live --model gemini:gemini-2.5-flash
    """
    if run is not None:
        _print_pace(_existing(run), as_json=as_json)
        return
    from evalkit.doctor import examine
    from evalkit.settings import Settings

    settings = Settings.load(output=output, models={"default": model} if model is not None else None, executor=executor)
    checks = examine(settings, live=live)
    if as_json:
        _print_json([vars(check) for check in checks])
    else:
        rows = [
            ["ok" if one.is_fine else "missing", one.name, one.found, "" if one.is_fine else one.remedy]
            for one in checks
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
    yes: Annotated[bool, typer.Option("--yes", help="Really remove what was not named but is old.")] = False,
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

    Documents that are not named but old (--older-than, --expired) are only listed, unless --yes is said. Names do not go
    together with these two.

    Example: evalkit purge doc2_6 --dry-run
    """
    from evalkit.batch.purge import is_begun, recorded, removable
    from evalkit.batch.purge import purge as purge_documents
    from evalkit.review.packet import moment, utc_now

    if doc_ids and (is_expired or older_than is not None):
        raise UsageError(
            "documents are named beside --older-than or --expired, which name others",
            code="PURGE-NAMED",
            remedy="Purge the named ones first, and the old ones by a second call.",
        )
    folder, now = _existing(output), utc_now()
    wanted, before = doc_ids or [], None
    old: tuple[str, ...] = ()
    if is_expired:
        older_than = _retention(older_than)
    if older_than is not None:
        before = now - timedelta(days=older_than)
        old = _old(folder, before)
    if again:
        wanted += recorded(folder)
    if not (wanted or again or before or dry_run or is_begun(folder)):
        raise UsageError("no document was named", code="PURGE-NOTHING", remedy="Name one; --older-than names several.")
    if dry_run or (before and not yes):
        would = removable(folder, [*wanted, *old])
        if as_json:
            _print_json(would)
        else:
            for name in (name for names in would.values() for name in names):
                typer.echo(name)
            how = "" if dry_run else "; say --yes to remove them"
            typer.echo(f"{len(would)} documents would be purged; nothing was removed{how}")
        return
    done = purge_documents(folder, wanted, purged_at=moment(now), old=old, before=before)
    for doc_id in sorted({*old} - {one.doc_id for one in done}):
        _complain(f"{doc_id} is as old, and stays: somebody has come back to it meanwhile")
    _print_purged(done, as_json=as_json)


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
    from evalkit.batch.integrity import verify

    checked = verify(_existing(output), against=against)
    if as_json:
        _print_json(checked.to_json())
    else:
        for one in checked.faults:
            _complain(f"{one.file}: {one.what}. {one.remedy}")
        counted = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in checked.counts.items())
        typer.echo(f"{counted}: {len(checked.faults)} faults")
    raise typer.Exit(1 if checked.faults else 0)


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

    from evalkit.batch.decisions import COLUMNS, decisions
    from evalkit.evaluation.export import save_json, save_table

    events, problems = decisions(_existing(output))
    if to is not None and to.suffix.lower() == ".csv":
        save_table(pd.DataFrame(events, columns=list(COLUMNS)), to)
    elif to is not None:
        save_json({"schema_version": 1, "events": events}, to)
    if as_json:
        _print_json({"schema_version": 1, "events": events})
    elif to is None:
        shown = ("event", "at", "who", "case_id", "revision", "outcome", "decided", "seconds_active")
        _print_table([["" if one[name] is None else str(one[name]) for name in shown] for one in events], shown)
    for line in problems:
        _complain(line)
    raise typer.Exit(1 if problems else 0)


def _old(folder: Path | str, before: datetime) -> tuple[str, ...]:
    """The documents that have been finished since; of others that are as old it is said why they stay."""
    from evalkit.batch.purge import expired

    found = expired(folder, before=before)
    for doc_id in found.waiting:
        _complain(f"{doc_id} is as old, and stays: a case of it waits")
    for doc_id in found.unreadable:
        _complain(f"{doc_id} may be as old, and stays: a review of it cannot be read (`evalkit audit verify` names it)")
    return found.finished


def _retention(older_than: int | None) -> int:
    """The days of the setting. UsageError where there are none, or where others were given beside it."""
    from evalkit.settings import Settings

    days = Settings.load().retention.days
    if not days or older_than is not None:
        raise UsageError(
            "--expired takes the days of [retention], and "
            + ("--older-than gives others" if days else "none are set there"),
            code="RETENTION",
            remedy="Say --older-than DAYS alone." if days else "Set [retention] days, or say --older-than DAYS.",
        )
    return days


def _print_purged(done: list[Purged], *, as_json: bool) -> None:
    if as_json:
        _print_json([one.to_json() for one in done])
        return
    rows = [
        [one.doc_id, str(len(one.files)), str(sum(one.rows.values())), str(one.reviews), ", ".join(one.was_open)]
        for one in done
    ]
    if rows:
        _print_table(rows, ("purged", "files", "rows", "reviews", "was open"))
    for line in (line for one in done for line in one.stays):
        typer.echo(f"Left: {line}")
    typer.echo(f"{len(done)} documents purged")


def _print_pace(folder: Path | str, *, as_json: bool) -> None:
    from dataclasses import asdict

    from evalkit.batch.pace import STEPS, pace

    found = pace(folder)
    if as_json:
        _print_json(asdict(found) | {"reasons": [{"why": why, "remedy": remedy} for why, remedy in found.reasons]})
        return
    typer.echo(
        f"The run that began at {found.began_at} was done with {found.documents} documents in {found.seconds:.1f} s "
        f"({found.seconds / found.documents:.2f} s each). Together they waited {found.waiting:.1f} s for a process that reads."
    )
    whole = sum(found.steps.values()) or 1.0
    rows = [[step, f"{took:.1f}", f"{took / whole:.0%}", STEPS[step][0]] for step, took in found.steps.items()]
    _print_table(rows, ("step", "seconds of all documents", "share", "what that is"))
    for why, remedy in found.reasons:
        typer.echo(f"{why}. {remedy}")
    slowest = [[one.doc_id, f"{one.seconds:.1f}", f"{one.step} ({one.share:.0%})"] for one in found.slowest]
    _print_table(slowest, ("slowest documents", "seconds at work", "most of it"))


def main() -> NoReturn:
    """The ``evalkit`` command: errors are one line on standard error, exit statuses those of the contract."""
    _open_what_is_closed()
    try:
        code = app(standalone_mode=False)  # 130 where it was interrupted
    except EvalkitError as error:
        _complain(f"evalkit: {error}")
        code = 2 if isinstance(error, UsageError | NotFound) else 1
    except OSError as error:
        if error.filename is not None:  # a file's, and not of what is printed
            raise
        _complain(f"evalkit: what it prints cannot be written ({error.strerror})")
        _drop_what_is_printed()
        code = 1
    except Exception as error:
        if not hasattr(error, "format_message"):  # what Typer raises for options that it does not understand
            raise
        _complain(f"evalkit: {error.format_message()} See `evalkit --help`.")
        code = 2
    if code == _INTERRUPTED:
        _complain("evalkit: interrupted; run the same command again to go on")
    sys.exit(code or 0)


def _open_what_is_closed() -> None:
    """Standard input, output and error lead somewhere, if to nowhere: else a file that is opened later would take their
    place, and processes that read could not be started.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # Python had found it closed
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _drop_what_is_printed() -> None:
    """What still waits to be printed goes nowhere; Python would try, and complain, once more when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)


def _complain(line: str) -> None:
    """One line on standard error, if it can be written; a file's name cannot send control sequences to the terminal."""
    with suppress(OSError):
        typer.echo(_visible(line), err=True)


def _say(text: str) -> None:
    """Lines on standard output that may hold words of a document or a model."""
    typer.echo("\n".join(map(_visible, text.split("\n"))))


def _output(output: str | None) -> Path | str:
    from evalkit.settings import Settings
    from evalkit.store import located

    return located(Settings.load(output=output).output)


def _existing(output: str | None) -> Path | str:
    from evalkit.store import Files

    folder = _output(output)
    Files(folder).require_ours()
    return folder


def _extracted_json(document: ExtractedDocument) -> dict[str, Any]:
    return vars(document) | {"extractions": [one.model_dump(mode="json") for one in document.extractions]}


def _end(summary: Summary[Any]) -> NoReturn:
    """Name what failed, and end."""
    for document in summary.failed:
        _complain(f"{document.doc_id}: {document.error}")
    for line in (*summary.problems, *summary.copies):
        _complain(line)
    raise typer.Exit(summary.exit_status)


def _read_alone(pdf: Path) -> DocumentBundle:
    """One PDF, in a process of its own. DocumentError where it cannot be read."""
    from evalkit.batch.identity import stem_of
    from evalkit.batch.reading import Readers
    from evalkit.batch.runner import how_of, in_a_thread
    from evalkit.clocks import now
    from evalkit.settings import Settings

    with Readers(1, how_of(Settings.load())) as readers:
        return in_a_thread(readers.read(pdf.absolute(), doc_id=stem_of(pdf), timestamp=now())).bundle


def _template_text(template: Path, output: str | None) -> tuple[str, str]:
    """The template of that file, or where only a name is given of that name in the output folder; the file's bare name."""
    from evalkit.regular import TooLarge, read_regular
    from evalkit.store import Files, template_name

    name = template_name(template.name.removesuffix(".toml"))
    is_file = template.is_file() or template.parent != Path()
    try:
        text = (read_regular(template) if is_file else Files(_output(output)).raw(name)).decode()
    except TooLarge as error:
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


def _reviewed_json(made: TemplateReview) -> dict[str, Any]:
    last = made.reviewed.cycles[-1]
    return {
        "template_id": last.template_id,
        "status": made.reviewed.template.status.value,
        "outcome": last.outcome,
        "because": last.because,
        "attempts": len(made.reviewed.cycles),
        "issues": [one.model_dump(mode="json") for one in last.issues],
        "escalation": made.reviewed.case.escalation.model_dump(mode="json") if made.reviewed.case else None,
        "template": made.template,
        "cycles": list(made.cycles),
        "case_id": made.case_id,
        "is_taken": made.is_taken,
        "cost": made.reviewed.cost.model_dump(mode="json"),
    }


def _print_reviewed(made: TemplateReview) -> None:
    for cycle in made.reviewed.cycles:
        typer.echo(f"Attempt {cycle.attempt}: {cycle.because}")
        for role, why in cycle.failures.items():
            typer.echo(f"  {role}: {why}")
        for one in cycle.issues:
            where = "" if one.issue.page is None else f", page {one.issue.page}"
            by = ", ".join(one.reported_by)
            typer.echo(_visible(f"  {one.issue.severity} {one.issue.category}{where} ({by}): {one.issue.message}"))
    for agent, usage in made.by_agent.items():
        typer.echo(f"{agent}: {_cost(usage)}")
    last = made.reviewed.cycles[-1]
    if made.reviewed.case is None and made.is_taken:
        typer.echo(f"{last.template_id} is passed by the reviewers; what a person decides of it counts")
    elif made.reviewed.case is None:
        typer.echo(f"{last.template_id} is approved and stable: {made.template}")
    else:
        told = made.reviewed.case.escalation
        typer.echo(
            f"{last.template_id} stays a draft; a person decides ({told.escalation_reason}): {told.recommendation}"
        )


def _statement_json(statement: Statement, report: Reconciliation) -> dict[str, Any]:
    return {
        "statement": statement.model_dump(mode="json"),
        "reconciliation": {"is_met": report.is_met, **report.model_dump(mode="json")},
    }


def _print_statement(statement: Statement, report: Reconciliation) -> None:
    from evalkit.statements.apply import CSV_COLUMNS

    rows = [
        ["" if (cell := getattr(one, name)) is None else str(cell) for name in CSV_COLUMNS]
        for one in statement.transactions
    ]
    if rows and len(rows) <= _MOST_ROWS:
        _print_table(rows, CSV_COLUMNS)
    checks = [
        ["met" if one.is_met else "DIFFERS", one.name.replace("_", " "), one.account, one.message]
        for one in report.checks
    ]
    if checks:
        _print_table(checks[:_MOST_ROWS], ("", "check", "account", ""))
    else:
        typer.echo("The statement prints no sum that its transactions could be checked by.")
    for one in (*statement.left_over, *statement.outside)[:_MOST_ROWS]:
        where = "left over" if one in statement.left_over else "outside of the regions"
        _say(f"{where}, page {one.page}: {one.text} ({one.reason})")
    unmet = sum(not one.is_met for one in report.checks)
    typer.echo(
        f"{len(rows)} transactions, {len(statement.left_over)} lines left over, {len(statement.outside)} rows outside; "
        f"{len(report.checks)} checks, {unmet} not met"
    )


def _print_extracted(summary: ExtractSummary) -> None:
    rows = [
        [
            document.doc_id,
            f"{one.start_page}-{one.end_page}",
            one.document_type,
            one.decision,
            "" if one.score is None else f"{one.score:.2f}",
            f"{sum(value.is_found for value in one.fields.values())}/{len(one.fields)}",
            one.stopped_reason,
        ]
        for document in summary.documents
        for one in document.extractions
    ]
    if rows and len(rows) <= _MOST_ROWS:
        _print_table(rows, ("document", "pages", "type", "decision", "score", "fields found", "stopped"))
    decisions = [one.decision for document in summary.documents for one in document.extractions]
    counted = ", ".join(f"{decisions.count(name)} {name}" for name in sorted(set(decisions)))
    typer.echo(
        f"{len(decisions)} reports and forms in {len(summary.documents)} documents" + f": {counted}" * bool(counted)
    )
    for agent, usage in summary.by_agent.items():
        typer.echo(f"{agent}: {_cost(usage)}")
    waiting = f" Waiting cases: {_queue_of(summary.output)}" if "ESCALATE_TO_SME" in decisions else ""
    typer.echo(f"Fields in {summary.output}/extractions ({summary.seconds:.1f} s).{waiting}")


def _print_summary(summary: RunSummary) -> None:
    documents = summary.documents
    if len(documents) <= _MOST_ROWS:
        rows = [
            [
                one.doc_id,
                str(one.pages or ""),
                f"{one.decision or 'NOT READ'}{_after_repair(one)}",
                one.decision_rule or "",
                one.dominant_type or "",
                f"{one.blocker}/{one.major}/{one.minor}",
                ", ".join(one.raised_by),
            ]
            for one in documents
        ]
        columns = ("document", "pages", "decision", "rule", "dominant type", "blocker/major/minor", "raised by")
        _print_table(rows, columns)
    decisions = [one.decision or "NOT READ" for one in documents]
    counted = ", ".join(f"{decisions.count(name)} {name}" for name in sorted(set(decisions)))
    resumed = sum(one.resumed for one in documents)
    typer.echo(f"{len(documents)} documents: {counted}" + (f"; {resumed} were finished before" if resumed else ""))
    for agent, usage in summary.by_agent.items():
        typer.echo(f"{agent}: {_cost(usage)}")
    typer.echo(f"Results in {summary.output} ({summary.seconds:.1f} s). Waiting cases: {_queue_of(summary.output)}")


def _queue_of(output: str) -> str:
    """The command that shows the cases of this output folder."""
    return "evalkit queue" if output == str(_output(None)) else f"evalkit queue --output {shlex.quote(output)}"


def _cost(usage: Usage | UsageTotal) -> str:
    price = "price unknown" if usage.cost_usd is None else f"{Decimal(usage.cost_usd):.4f} US dollars"
    return f"{usage.calls} call{'s' * (usage.calls != 1)}, {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, {price}"


def _after_repair(document: DocumentSummary) -> str:
    repairs = document.attempts - 1
    return f" after {repairs} repair{'s' * (repairs > 1)}" if repairs > 0 else ""


def _print_report(made: Report, to: Path | None) -> None:
    from evalkit.evaluation.report import cell

    for warning in made.warnings:
        _complain(warning)
    for table in [table for section in made.sections[:2] for table in section.tables]:
        rows = [[cell(value) for value in row] for row in table.frame.itertuples(index=False, name=None)]
        _print_table(rows, tuple(str(name) for name in table.frame.columns))
    typer.echo(f"The whole report: {to}" if to else "The whole report: evalkit report --to report.html")


def _print_challenge(made: Challenge) -> None:
    from evalkit.evaluation.challenge import lines

    head, rows, tail = lines(made)
    _print_table(rows, head)
    for line in tail:
        typer.echo(line)
    for agent, usage in made.by_agent.items():
        typer.echo(f"{agent}: {_cost(usage)}")


def _print_comparison(compared: Comparison) -> None:
    from evalkit.evaluation.comparison import records
    from evalkit.evaluation.verifiers import LEVELS

    alone = f"{len(compared.only_a)} only in A, {len(compared.only_b)} only in B"
    typer.echo(f"A is {compared.a}, B is {compared.b}: {len(compared.documents)} documents in both, {alone}")
    for name, doc_ids in (("A", compared.only_a), ("B", compared.only_b)):
        if doc_ids:
            more = f" and {len(doc_ids) - _MOST_ROWS} more" * (len(doc_ids) > _MOST_ROWS)
            typer.echo(f"Only in {name}: {', '.join(doc_ids[:_MOST_ROWS])}{more}")
    if not len(compared.documents):
        return
    decisions = [[str(cell) for cell in row] for row in compared.decisions.reset_index().to_numpy()]
    _print_table(decisions, ("decision of A, of B →", *compared.decisions.columns))
    if len(compared.types):
        types = [[str(cell) for cell in row.values()] for row in records(compared.types)]
        _print_table(types, ("type by A", "type by B", "documents"))
    changed = records(compared.changed)
    if changed:
        columns = ("document", "decision", "segments", "issues", "evidence", "type is")
        _print_table([_changes(one) for one in changed[:_MOST_ROWS]], columns)
    left_out = f", of which {_MOST_ROWS} are shown (--json has all)" * (len(changed) > _MOST_ROWS)
    typer.echo(f"{len(changed)} documents changed{left_out}")
    known = (compared.type, compared.segments, compared.segments_merged)
    names = ("Type", "Segments exactly", "Segments exactly, neighbours of one type merged")
    for name, level, outcome in zip(names, LEVELS, known, strict=True):
        typer.echo(f"{name}: {_overall(compared.overall[level], compared.drawn_by)}")
        typer.echo(f"{name}, reviewed only: {_paired(outcome)}")
    _print_truths(compared)
    effort = [[one["measure"], *(_amount(one[side]) for side in "ab")] for one in records(compared.effort)]
    _print_table(effort, ("", "A", "B"))


def _print_truths(compared: Comparison) -> None:
    if known := ", ".join(f"{n} {_KNOWN_FROM[name]}" for name, n in compared.known_from.items() if n):
        typer.echo(f"Truths: {known}")
    if compared.leaning:
        typer.echo(compared.leaning)
    if compared.disputed:
        typer.echo(f"The folders know different truths of {', '.join(compared.disputed)}: left out")
    if compared.simulated:
        typer.echo(f"{compared.simulated} of the truths are those of simulated reviewers")


def _changes(row: dict[str, Any]) -> list[str]:
    """A document's line: what it was in A, and in B where that is something else."""
    from evalkit.evaluation.comparison import CANNOT_TELL

    scores = ("none" if (score := row[f"score_{side}"]) is None else f"{score:.2f}" for side in "ab")
    return [
        row["doc_id"],
        _step(*(f"{row[f'decision_{side}']} {row[f'rule_{side}'] or ''}".strip() for side in "ab")),
        _step(*(row[f"segments_{side}"] or CANNOT_TELL for side in "ab")),
        ", ".join(filter(None, [_codes("+", row["appeared"]), _codes("−", row["disappeared"])])),
        _step(*scores),
        _step(*({None: "", True: "right", False: "wrong"}[row[f"right_{side}"]] for side in "ab")),
    ]


def _step(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _codes(sign: str, counted: dict[str, int]) -> str:
    return ", ".join(f"{sign}{code}{f' ×{n}' if n > 1 else ''}" for code, n in sorted(counted.items()))


def _overall(outcome: Overall, drawn_by: str) -> str:
    return (
        f"of all {outcome.population} documents in both, estimated from {outcome.documents} by the draws of {drawn_by}: "
        f"A right {_interval(outcome.a, '.3f')}, B {_interval(outcome.b, '.3f')}; B − A {_interval(outcome.difference, '+.3f')}"
    )


def _interval(estimate: Estimate, form: str) -> str:
    value = "not known" if estimate.value is None else format(estimate.value, form)
    return f"{value} (95 % interval {estimate.low:{form}} to {estimate.high:{form}})"


def _paired(outcome: Paired) -> str:
    if not outcome.documents:
        return "nobody knows the truth of any document in both"
    return (
        f"{outcome.documents} documents with a known truth: both right {outcome.both}, "
        f"only A {outcome.only_a}, only B {outcome.only_b}, none {outcome.neither}; "
        f"B − A {_interval(outcome.difference, '+.3f')}; "
        + (f"exact McNemar p {outcome.p_value:.3g}; " if outcome.p_value is not None else "")
        + outcome.verdict
    )


def _amount(value: Decimal | float | None) -> str:
    if value is None:
        return "not known"
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:,.4f}" if isinstance(value, Decimal) else f"{value:,.1f}"
    )


def _described(result: DocumentResult) -> Iterator[str]:
    answer = result.classification
    if answer is None:
        yield "No usable classification."
    else:
        yield f"Dominant type: {answer.dominant_type_overall or 'cannot tell'}"
        for segment in answer.segments:
            yield f"  pages {segment.start_page}–{segment.end_page}: {segment.dominant_type or 'cannot tell'}"
    if result.evidence_quality_score is not None:
        yield f"Evidence quality: {result.evidence_quality_score:.2f}"
    for agent, usage in sorted(result.usage.by_agent.items()):
        if usage.input_tokens:
            yield f"{agent}: {_cost(usage)}"


def _print_table(rows: list[list[str]], columns: tuple[str, ...]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_visible(cell)) for cell in row))  # as text: file names are not markup
    console = Console()
    if not console.is_terminal:
        console.width = 160  # a pipe has no width of its own
    console.print(table)


def _visible(text: str) -> str:
    """Words of a document or a model must not reach a terminal as control sequences."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _print_json(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # A file's name may have bytes that are no text; Python has them as halves of characters, which JSON writes as \udcff.
    typer.echo(text.encode("utf-8", "backslashreplace").decode())
