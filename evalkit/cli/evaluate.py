"""Commands that export, report, sample, compare, challenge, or write a dossier."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evalkit.cli.options import (
    JsonOption,
    ModelOption,
    ProfileOption,
    TruthOption,
    create_output_option,
    format_queue_command,
    load_settings,
    open_existing_output,
)
from evalkit.cli.render import (
    render_attention_checks,
    render_audits_for_precision,
    render_challenge,
    render_comparison,
    render_evaluation_report,
    render_sample,
)
from evalkit.cli.terminal import ConsoleTable, print_blocks, print_json, print_notes, print_outcome
from evalkit.core.clocks import format_iso_seconds, format_zulu_now, utc_now
from evalkit.core.wording import format_count
from evalkit.errors import UsageError

if TYPE_CHECKING:
    from evalkit.store import OutputFolder


def export(
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="PATH",
            help="File to write, or folder to write with --format folder, labelstudio or fhir.",
            show_default="standard output",
        ),
    ] = None,
    file_format: Annotated[
        Literal["jsonl", "csv", "parquet", "folder", "labelstudio", "fhir", "xlsx"],
        typer.Option(
            "--format",
            help="Format of the data. folder: a data card and a file per part; labelstudio: tasks, page pictures and "
            "config; fhir: a FHIR R4 Bundle per file; xlsx: queue, issues, fields, truth and report.",
        ),
    ] = "jsonl",
    level: Annotated[
        Literal["document", "segment", "page"],
        typer.Option(
            help="What one row of the file is: a document, a segment (successive pages of one document), or a page."
        ),
    ] = "document",
    silver: Annotated[
        bool, typer.Option("--silver", help="Also export AUTO_ACCEPTED answers, which no expert has seen.")
    ] = False,
    deidentify: Annotated[
        bool,
        typer.Option(
            "--deidentify", help="Mask text that identifies patients, as far as patterns find it; some may remain."
        ),
    ] = False,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE[,SHARE]",
            help="Shares (0 to 1) for training and validation; the rest is for testing. A patient is never in two parts.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random split; another seed divides differently.")] = 0,
    with_text: Annotated[bool, typer.Option("--with-text", help="Also export the text of each page.")] = False,
    output: Annotated[str | None, create_output_option("Folder or bucket of the run to export")] = None,
    as_json: JsonOption = False,
) -> None:
    """Export the ground truth as a data set.

    Example: evalkit export --format folder --to dataset --level page --split 0.7,0.15 --deidentify
    """
    from evalkit.evaluation.export import export_ground_truth
    from evalkit.evaluation.splitting import parse_split_shares

    documents_by_part: dict[str, int] = {}
    row_count = export_ground_truth(
        open_existing_output(output).root,
        to,
        file_format=file_format,
        level=level,
        silver=silver,
        deidentify=deidentify,
        split=None if split is None else parse_split_shares(split),
        seed=seed,
        with_text=with_text,
        report_split=documents_by_part.update,
    )
    total = sum(documents_by_part.values()) or 1
    if documents_by_part and not as_json:
        reached = ", ".join(f"{part} {count} ({count / total:.0%})" for part, count in documents_by_part.items())
        print_notes(f"Documents in each part: {reached}. Related documents stay together.")
    if to is not None and as_json:
        outcome = {"rows": row_count, "to": str(to), "format": file_format, "level": level}
        print_json(outcome | ({"documents_by_part": documents_by_part} if documents_by_part else {}))
    elif to is not None:
        print_notes(f"{format_count(row_count, 'row')} written to {to}")


def import_answers(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File that Label Studio exported with format JSON.")],
    annotators: Annotated[
        list[str],
        typer.Option(
            "--annotator", metavar="NAME=WHO", help="A reviewer and their e-mail address or number in Label Studio."
        ),
    ],
    output: Annotated[str | None, create_output_option("Folder or bucket whose cases were answered")] = None,
    as_json: JsonOption = False,
) -> None:
    """Import Label Studio's answers as reviews.

    The cases come from `evalkit export --format labelstudio`. An imported review confirms only what the
    annotation states, and no page counts as seen. If an answer cannot be imported, the command prints the reason and
    imports the other answers.

    Example: evalkit import-answers project.json --annotator dr_lee=lee@hospital.org
    """
    from evalkit.evaluation.label_studio.answers_import import import_label_studio_answers, parse_annotators

    rows = import_label_studio_answers(open_existing_output(output).root, file, parse_annotators(annotators))
    table = ConsoleTable(
        ("task", "case", "annotator", "result", ""),
        [(row.task, row.case_id, row.annotator, row.status, row.message) for row in rows],
    )
    counts = Counter(row.status for row in rows)
    total = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    print_outcome(
        [table, total] if rows else ["The file has no task"], lambda: [vars(row) for row in rows], as_json=as_json
    )
    raise typer.Exit(1 if counts["refused"] or counts["not read"] else 0)


def report(
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Write the whole report to this HTML file.")
    ] = None,
    truth: TruthOption = None,
    production: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV or JSON file with the production classifier's labels, if `run` was not given them.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=0.5,
            help="Tolerated share of wrong answers among the accepted documents.",
            show_default="setting certificate.max_error_rate",
        ),
    ] = None,
    output: Annotated[str | None, create_output_option("Folder or bucket of the run to report on")] = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the accuracy over all documents.

    Every estimate is given with its confidence interval.

    Example: evalkit report --to report.html
    """
    from evalkit.evaluation.api import report as build_report
    from evalkit.evaluation.report import convert_report_to_json

    evaluation_report = build_report(
        open_existing_output(output).root,
        truth=truth,
        production=production,
        max_error_rate=rate,
        settings=load_settings(),
    )
    if to is not None:
        evaluation_report.write_html(to)
    print_notes(*(() if as_json else evaluation_report.warnings))
    build_json = partial(convert_report_to_json, evaluation_report)
    print_outcome(render_evaluation_report(evaluation_report, to), build_json, as_json=as_json)
    raise typer.Exit(1 if evaluation_report.study.problems else 0)


def dossier(
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="HTML file to write.")] = Path("dossier.html"),
    output: Annotated[str | None, create_output_option("Folder or bucket of the run to describe")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the file for an AI committee.

    One HTML file: intended use, versions, validation on your own documents, certificate, drift, incidents, learning,
    human oversight, and the hash of every record. `evalkit audit verify --dossier FILE` checks all of it later.

    Example: evalkit dossier --to dossier.html
    """
    from evalkit.evaluation.dossier import write_dossier

    report = write_dossier(open_existing_output(output), to, load_settings(), made_at=format_iso_seconds(utc_now()))
    print_notes(*report.warnings)
    text = f"The dossier is in {to}. To check it later: evalkit audit verify --dossier {to}"
    print_outcome([text], lambda: {"to": str(to), "warnings": list(report.warnings)}, as_json=as_json)


def sample(
    number: Annotated[
        int | None, typer.Argument(metavar="[N]", min=1, help="Number of documents to draw.", show_default=False)
    ] = None,
    points: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="POINTS",
            min=0.1,
            max=50,
            help="Select no documents; print how many more accepted documents experts must check to know the error rate to ± N percentage points.",
        ),
    ] = None,
    by: Annotated[
        Literal["production", "type", "decision"] | None,
        typer.Option(
            "--by",
            help="Draw evenly from the documents with each value of this property: production's label, the program's type, or the decision.",
            show_default="type",
        ),
    ] = None,
    seeded: Annotated[
        bool,
        typer.Option(
            "--seeded", help="Instead of a sample, queue N cases with a planted fault that experts should notice."
        ),
    ] = False,
    output: Annotated[
        str | None, create_output_option("Folder or bucket of the run; the drawn cases are queued there")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Draw accepted documents for expert review.

    Each document is drawn with a known probability and put into the experts' queue. With --seeded, decided documents
    with a planted fault are queued instead. With --for, only the number of audits is printed.

    Example: evalkit sample 50 --by production (or: evalkit sample --for 1)
    """
    from evalkit.evaluation.sampling import draw_and_queue_sample as draw

    output_folder, drawn_at = open_existing_output(output), format_zulu_now()
    if (number is None) == (points is None) or (points is not None and (seeded or by is not None)):
        raise UsageError(
            "give either the number of documents to draw, or --for without a number of documents",
            code="SAMPLE-NUMBER",
            remedy="Use for example `evalkit sample 50` or `evalkit sample --for 1`.",
        )
    if number is None:
        _print_audits_for_precision(output_folder, (points or 0) / 100, as_json=as_json)
        return
    if seeded:
        if by is not None:
            raise UsageError(
                "--by cannot be used for cases with a planted fault (--seeded)",
                code="SAMPLE-BY",
                remedy="Give either --seeded or --by.",
            )
        _draw_attention_checks(output_folder, number, drawn_at=drawn_at, as_json=as_json)
        return
    by, settings = by or "type", load_settings()
    draw_record = draw(
        output_folder, number, by, seed=settings.audit_seed, drawn_at=drawn_at, foreign_types=settings.foreign_types
    )
    blocks = render_sample(draw_record, by, partial(format_queue_command, str(output_folder.root)))
    print_outcome(blocks, partial(draw_record.model_dump, mode="json"), as_json=as_json)


def _print_audits_for_precision(output_folder: OutputFolder, half_width: float, *, as_json: bool) -> None:
    from evalkit.evaluation.headline_estimates import count_audits_for_precision
    from evalkit.evaluation.study import read_folder_study

    precision = count_audits_for_precision(
        read_folder_study(output_folder, foreign_types=load_settings().foreign_types), half_width
    )
    print_outcome(render_audits_for_precision(precision), precision._asdict, as_json=as_json)


def _draw_attention_checks(output_folder: OutputFolder, number: int, *, drawn_at: str, as_json: bool) -> None:
    from evalkit.evaluation.attention_checks import plant_and_queue_attention_checks
    from evalkit.review.attention_checks import describe_fault

    check_draw = plant_and_queue_attention_checks(
        output_folder, number, seed=load_settings().audit_seed, drawn_at=drawn_at
    )
    rows = [
        (check.packet.case_id, check.doc_id, check.fault.kind, describe_fault(check.fault))
        for check in check_draw.cases
    ]
    if as_json:
        cases = [dict(zip(("case_id", "doc_id", "kind", "fault"), row, strict=True)) for row in rows]
        print_json({"cases": cases, "nobody": list(check_draw.unassignable_case_ids)})
        return
    print_blocks(*render_attention_checks(rows, number))
    unassignable = ", because every reviewer has seen its document before"
    print_notes(
        *(f"{case_id}: no reviewer may answer the case{unassignable}" for case_id in check_draw.unassignable_case_ids)
    )


def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="Name of a run (`evalkit runs`), or an output folder or bucket.")
    ],
    b: Annotated[
        str, typer.Argument(metavar="B", help="Another run over the same documents, or its folder or bucket.")
    ],
    truth: TruthOption = None,
    output: Annotated[str | None, create_output_option("Folder or bucket of the named runs")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs, document by document.

    Prints which decisions, types and issues changed, and which run was right more often. If a run and
    a folder have the same name, the run is used; ./NAME is always a folder.

    Example: evalkit compare baseline new-prompts
    """
    from evalkit.evaluation.api import compare as compare_runs

    comparison = compare_runs(a, b, output=output, truth=truth, settings=load_settings())
    print_outcome(render_comparison(comparison), comparison.to_json, as_json=as_json)
    print_notes(*comparison.problems, *comparison.label_warnings)
    raise typer.Exit(1 if comparison.problems else 0)


def challenge(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH…", help="Output folders with accepted documents, PDF files, or folders of PDF files."
        ),
    ],
    model: ModelOption = None,
    profile: ProfileOption = None,
    classifications: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder with a file {doc_id}.json for each PDF: its correct classification."),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="KIND,…",
            help="Kinds of fault to plant, separated by commas: names, structural, quote, semantic. Default: all kinds.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Highest number of planted faults of each kind.")] = 40,
    seed: Annotated[int, typer.Option(help="Seed of the random choice; the same seed plants the same faults.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Plant faults and count which are caught.

    Plants faults into correct answers, one at a time, and checks each answer. Nothing is written.

    A fault is caught if a new BLOCKER or MAJOR issue sends the document to a person, or if a repair undoes the fault.
    "By another": caught, but by none of the verifiers or issue codes that are meant for this kind of fault; these may
    have stopped working. A verifier that could not answer has caught nothing; the setting on_agent_failure counts as
    "escalate" here. False alarms are counted on answers that another system gave, or that an expert validated or
    corrected.

    Example: evalkit challenge output --model gemini:gemini-2.5-flash --kinds semantic --limit 10
    """
    from evalkit.evaluation.challenge import challenge as plant_faults

    challenge_outcome = plant_faults(
        paths,
        classifications=classifications,
        kinds=filter(None, map(str.strip, (kinds or "").split(","))),
        limit=limit,
        seed=seed,
        settings=load_settings(models={"default": model} if model is not None else None, profile=profile),
    )
    print_outcome(render_challenge(challenge_outcome), challenge_outcome.to_json, as_json=as_json)
    print_notes(*challenge_outcome.problems)
    raise typer.Exit(1 if challenge_outcome.problems else 0)
