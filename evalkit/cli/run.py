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
    open_output,
)
from evalkit.cli.render import render_extract_summary, render_run_estimate, render_run_summary
from evalkit.cli.spending import run_within_budget
from evalkit.cli.terminal import print_notes, print_outcome

if TYPE_CHECKING:
    from decimal import Decimal

    from evalkit.pipeline.batch_execution import BatchSummary
    from evalkit.pipeline.fields_run import ExtractedDocument, ExtractSummary
    from evalkit.pipeline.run_summary import RunSummary


def run(
    paths: PathsArgument,
    output: Annotated[str | None, create_output_option("Folder or bucket to write the results to")] = None,
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
        ),
    ] = None,
    workers: WorkersOption = None,
    executor: ExecutorOption = None,
    fresh: FreshOption = False,
    with_fields: Annotated[
        bool, typer.Option("--extract", help="After the classification, also extract the fields of reports and forms.")
    ] = False,
    even_purged: EvenPurgedOption = False,
    yes: YesOption = False,
    no_probe: NoProbeOption = False,
    usd_per_run: UsdPerRunOption = None,
    strict: StrictOption = False,
    estimate: Annotated[
        bool,
        typer.Option("--estimate", help="Print calls, tokens, dollars and minutes by model and role; ask no model."),
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
        "model": model,
        "reader": reader,
        "profile": profile,
        "production": production,
        "patients_file": patients,
        "classifications": classifications,
        "workers": workers,
        "executor": executor,
        "fresh": fresh,
        "extract": with_fields,
        "even_purged": even_purged,
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

    _record_monitoring(output, with_certificates=False)  # so that a new brake holds for this run's documents
    summary = run_within_budget(run_with_limit, usd_per_run, estimate_run)
    print_outcome(render_run_summary(summary, format_queue_command), partial(summary.to_json, vars), as_json=as_json)
    _record_monitoring(str(summary.output), with_certificates=True)
    _exit_with_summary(summary, strict=strict)


def _show_progress_bar() -> AbstractContextManager[Any]:
    """Show a progress bar on standard error, if it is a terminal."""
    from evalkit.pipeline import show_progress_bar

    return show_progress_bar(stderr=True) if sys.stderr.isatty() else nullcontext()


def _record_monitoring(output: str | None, *, with_certificates: bool) -> None:
    """Log and print brakes, releases and certificates that follow from the reviews since the last run."""
    from evalkit.core.clocks import format_zulu_now
    from evalkit.errors import EvalkitError
    from evalkit.evaluation.certificate import record_certificate_changes
    from evalkit.evaluation.drift_monitoring import describe_brake, describe_release, record_brake_changes
    from evalkit.evaluation.study import read_folder_study
    from evalkit.pipeline.drift import find_brakes_by_stratum
    from evalkit.store import REVIEWS_FOLDER

    output_folder, settings = open_output(output), load_settings().certificate
    if not output_folder.has_folder(REVIEWS_FOLDER):  # nobody has answered an audit yet
        return
    try:
        with output_folder.hold_run_lock():
            now, study = format_zulu_now(), read_folder_study(output_folder)
            monitored_study = record_brake_changes(output_folder, study, now, settings)
            new_events = list(monitored_study.events[len(study.events) :])
            if with_certificates:
                new_events += record_certificate_changes(output_folder, monitored_study, now, settings)
    except EvalkitError as error:  # the documents are finished; the next run records the certificates
        print_notes(f"brakes and certificates not recorded: {error}")
        return
    for event in new_events:
        if event.kind == "released":
            print_notes(describe_release(event))
        elif event.kind in ("certified", "certificate_withdrawn"):
            subject = event.stratum or "all documents"
            print_notes(
                f"{'Certified' if event.kind == 'certified' else 'Certificate withdrawn'}: {subject}. {event.facts['statement']}"
            )
    if with_certificates:
        print_notes(*map(describe_brake, find_brakes_by_stratum(monitored_study.events).values()))


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
    print_notes(*summary.list_failure_lines(), *skipped)
    raise typer.Exit(1 if strict and summary.skipped else summary.exit_status)
