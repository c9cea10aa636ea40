"""The commands ``run`` (PDFs to decisions) and ``extract`` (PDFs to fields)."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from evalkit.cli.options import (
    EvenPurgedOption,
    ExecutorOption,
    FreshOption,
    JsonOption,
    ModelOption,
    NoProbeOption,
    PathsArgument,
    ProfileOption,
    ReaderOption,
    StrictOption,
    UsdPerRunOption,
    WorkersOption,
    YesOption,
    create_output_option,
    format_queue_command,
    load_settings,
    open_existing_output,
    open_output,
)
from evalkit.cli.render import render_extract_summary, render_run_estimate, render_run_summary, render_runs
from evalkit.cli.spending import run_within_budget
from evalkit.cli.terminal import pop_chain_problems, print_notes, print_outcome
from evalkit.core.clocks import format_zulu_now

if TYPE_CHECKING:
    from decimal import Decimal

    from evalkit.evaluation.study import Study
    from evalkit.pipeline.batch_execution import BatchSummary
    from evalkit.pipeline.fields_run import ExtractedDocument, ExtractSummary
    from evalkit.pipeline.run_summary import RunSummary


def run(
    paths: PathsArgument,
    output: Annotated[str | None, create_output_option("Folder or bucket to write the results to")] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the run; if the newest run has the same name, inputs and settings, it is continued.",
            show_default="date and number",
        ),
    ] = None,
    model: ModelOption = None,
    reader: ReaderOption = None,
    profile: ProfileOption = None,
    production: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="CSV or JSON file with the labels that the production classifier gave the documents."
        ),
    ] = None,
    patients: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV or JSON file that names the patient of each document.")
    ] = None,
    classifications: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Check the classifications {doc_id}.json in this folder instead of asking a model for one.",
            show_default="those of the run before",
        ),
    ] = None,
    no_classifications: Annotated[
        bool,
        typer.Option(
            "--no-classifications",
            help="Ask the model for classifications, even if the previous run was given a folder of them.",
        ),
    ] = False,
    workers: WorkersOption = None,
    executor: ExecutorOption = None,
    fresh: FreshOption = False,
    with_fields: Annotated[
        bool, typer.Option("--extract", help="After the classification, also extract the fields of reports and forms.")
    ] = False,
    even_purged: EvenPurgedOption = False,
    settle: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="For a watched folder: skip files that changed in the last SECONDS, and do not fail if no file is left.",
        ),
    ] = 0,
    yes: YesOption = False,
    no_probe: NoProbeOption = False,
    usd_per_run: UsdPerRunOption = None,
    strict: StrictOption = False,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate", help="Print the expected calls, tokens, dollars and minutes by model and role; call no model."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Read, classify, check and decide PDFs.

    To resume a run that was stopped, give the same command again.

    Example: evalkit run records/ --production labels.csv
    """
    from evalkit import pipeline

    options: dict[str, Any] = {
        "output": output,
        "name": name,
        "model": model,
        "reader": reader,
        "profile": profile,
        "production": production,
        "patients_file": patients,
        "classifications": classifications,
        "no_classifications": no_classifications,
        "workers": workers,
        "executor": executor,
        "fresh": fresh,
        "extract": with_fields,
        "even_purged": even_purged,
        "settle_seconds": settle,
        "yes": yes,
        "probe": not no_probe,
    }
    estimate_run = partial(pipeline.estimate, paths, **options)
    if estimate:
        run_estimate = estimate_run()
        print_outcome(render_run_estimate(run_estimate), run_estimate.to_json, as_json=as_json)
        print_notes(*run_estimate.problems)
        raise typer.Exit(1 if run_estimate.problems else 0)

    def run_with_limit(limit: Decimal | float | None) -> RunSummary:
        with _show_progress_bar() as on_progress:
            return pipeline.run(paths, **options, usd_per_run=limit, on_progress=on_progress)

    study = _record_monitoring(output, None)  # first, so that a new brake holds for this run's documents
    summary = run_within_budget(run_with_limit, usd_per_run, estimate_run)
    print_outcome(render_run_summary(summary, format_queue_command), partial(summary.to_json, vars), as_json=as_json)
    has_decided = not all(document.resumed for document in summary.documents)
    _record_monitoring(output, study, reads_again=has_decided, with_certificates=True)
    _exit_with_summary(summary, strict=strict)


def _show_progress_bar() -> AbstractContextManager[Any]:
    from evalkit.pipeline import show_progress_bar

    return show_progress_bar(stderr=True) if sys.stderr.isatty() else nullcontext()


def _record_monitoring(
    output: str | None, study: Study | None, *, reads_again: bool = True, with_certificates: bool = False
) -> Study | None:
    """Log and print brakes, releases and certificates from reviews since the last run.

    Returns the study with them; None if there is none yet. Only ``reads_again`` reads the folder again.
    """
    from evalkit.errors import EvalkitError
    from evalkit.evaluation.certificate import record_certificate_changes
    from evalkit.evaluation.drift_monitoring import describe_brake, describe_release, record_brake_changes
    from evalkit.evaluation.study import read_folder_study
    from evalkit.pipeline.drift import find_brakes_by_stratum
    from evalkit.store import RESULTS_FOLDER, REVIEWS_FOLDER

    output_folder, settings = open_output(output), load_settings().certificate
    # Nobody has answered an audit yet, or the results were lost and this run makes them again.
    if not all(map(output_folder.has_folder, (RESULTS_FOLDER, REVIEWS_FOLDER))):
        return None
    try:
        with output_folder.hold_run_lock():
            now = format_zulu_now()
            if study is None or reads_again:
                study = read_folder_study(output_folder)
            monitored_study = record_brake_changes(output_folder, study, now, settings)
            new_events = list(monitored_study.events[len(study.events) :])
            if with_certificates:
                new_events += record_certificate_changes(output_folder, monitored_study, now, settings)
    except EvalkitError as error:
        if error.code == "OUTPUT-FOLDER" and not with_certificates:
            raise  # before the run, which could not write either
        # The documents are finished; the next run records the certificates.
        print_notes(f"brakes and certificates not recorded: {error}")
        return None
    for event in new_events:
        if event.kind == "released":
            print_notes(describe_release(event))
        elif event.kind in ("certified", "certificate_withdrawn"):
            what = "Certified" if event.kind == "certified" else "Certificate withdrawn"
            print_notes(f"{what}: {monitored_study.describe_stratum(event.stratum)}. {event.facts['statement']}")
    if with_certificates:
        print_notes(*map(describe_brake, find_brakes_by_stratum(monitored_study.events).values()))
    return monitored_study


def runs(
    output: Annotated[str | None, create_output_option("Folder or bucket whose runs are listed")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the runs, and their cost by model.

    Each run with its documents, decisions, models, calls, cost and seconds, oldest first; then calls, cost and seconds of
    each model by day.

    Example: evalkit runs
    """
    from evalkit.pipeline.run_history import read_run_records, tabulate_usage_by_day

    records = read_run_records(open_existing_output(output))
    summaries, by_day = [record.summarise() for record in records], tabulate_usage_by_day(records)
    print_outcome(render_runs(summaries, by_day), lambda: {"runs": summaries, "by_day": by_day}, as_json=as_json)


def extract(
    paths: PathsArgument,
    template: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Field template for every document; auto: choose it by the document's contents."
        ),
    ] = "auto",
    tax_year: Annotated[
        int | None,
        typer.Option(metavar="YEAR", help="Tax year that you need; an expert decides forms of any other year."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Also write all extracted fields as a table to this CSV file."),
    ] = None,
    model: ModelOption = None,
    reader: ReaderOption = None,
    workers: WorkersOption = None,
    executor: ExecutorOption = None,
    fresh: FreshOption = False,
    even_purged: EvenPurgedOption = False,
    yes: YesOption = False,
    no_probe: NoProbeOption = False,
    usd_per_run: UsdPerRunOption = None,
    strict: StrictOption = False,
    output: Annotated[str | None, create_output_option("Folder or bucket to write the results to")] = None,
    as_json: JsonOption = False,
) -> None:
    """Extract the fields of reports and forms.

    Each field is stored with its position on the page.

    Example: evalkit extract taxes/ --tax-year 2020
    """
    from evalkit.evaluation.private_files import write_private_csv
    from evalkit.pipeline import extract as extract_all

    def extract_with_limit(limit: Decimal | float | None) -> ExtractSummary:
        with _show_progress_bar() as on_progress:
            return extract_all(
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
                yes=yes,
                probe=not no_probe,
                usd_per_run=limit,
                on_progress=on_progress,
            )

    summary = run_within_budget(extract_with_limit, usd_per_run)
    if to is not None:
        write_private_csv(summary.to_frame(), to)
    build_json = partial(summary.to_json, _convert_extracted_document_to_json)
    print_outcome(render_extract_summary(summary, format_queue_command), build_json, as_json=as_json)
    _exit_with_summary(summary, strict=strict)


def _convert_extracted_document_to_json(document: ExtractedDocument) -> dict[str, Any]:
    return vars(document) | {"extractions": [extraction.model_dump(mode="json") for extraction in document.extractions]}


def _exit_with_summary(summary: BatchSummary[Any], *, strict: bool) -> NoReturn:
    """Print failures, copies and skipped files on standard error; exit."""
    skipped = (f"skipped: {skipped_file.file}: {skipped_file.reason}" for skipped_file in summary.skipped)
    chain_problems = pop_chain_problems()  # the summary has the one of its own folder
    print_notes(*dict.fromkeys((*summary.list_failure_lines(), *chain_problems, *skipped)))
    raise typer.Exit(1 if chain_problems or (strict and summary.skipped) else summary.exit_status)
