"""Commands about accuracy: export, report, sample, compare, challenge."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evalkit.cli.options import (
    JsonOption,
    ModelOption,
    OutputOption,
    ProfileOption,
    TruthOption,
    format_queue_command,
    load_settings,
    open_existing_output,
)
from evalkit.cli.render import (
    render_attention_checks,
    render_challenge,
    render_comparison,
    render_evaluation_report,
    render_sample,
)
from evalkit.cli.terminal import print_blocks, print_json, print_notes, print_outcome
from evalkit.errors import UsageError

if TYPE_CHECKING:
    from evalkit.store import OutputFolder


def export(
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="PATH", help="The file or folder to write.", show_default="standard output"),
    ] = None,
    file_format: Annotated[
        Literal["jsonl", "csv", "parquet", "folder"],
        typer.Option("--format", help="The format; folder: a data card, and JSON Lines by part."),
    ] = "jsonl",
    level: Annotated[
        Literal["document", "segment", "page"], typer.Option(help="Write one row for each of these.")
    ] = "document",
    silver: Annotated[
        bool, typer.Option("--silver", help="Also export AUTO_ACCEPTED records, which no expert has seen.")
    ] = False,
    deidentify: Annotated[
        bool, typer.Option("--deidentify", help="Mask what identifies patients, by patterns; without guarantee.")
    ] = False,
    split: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="SHARE", help="Divide into train (this share) and test, by patient."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the split.")] = 0,
    with_text: Annotated[bool, typer.Option("--with-text", help="Also export the text of the pages.")] = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export the ground truth as data.

    Example: evalkit export --format folder --to dataset --level page --split 0.8 --deidentify
    """
    from evalkit.evaluation.export import export_ground_truth

    row_count = export_ground_truth(
        open_existing_output(output).root,
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
        print_json({"rows": row_count, "to": str(to), "format": file_format, "level": level})
    elif to is not None:
        print_notes(f"{row_count} rows written to {to}")


def report(
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Write the whole report as one HTML file.")
    ] = None,
    truth: TruthOption = None,
    production: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV or JSON with the production classifier's labels, if no run had them."),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0.001, max=0.5, help="The share of wrong acceptances that is tolerated.")
    ] = 0.05,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the accuracy over all documents.

    Every estimate has an interval.

    Example: evalkit report --to report.html
    """
    from evalkit.core.clocks import format_iso_seconds, utc_now
    from evalkit.evaluation.report import build_report, convert_report_to_json, write_html_report
    from evalkit.evaluation.study import read_folder_study

    study = read_folder_study(
        open_existing_output(output), truth=truth, production=production, foreign_types=load_settings().foreign_types
    )
    evaluation_report = build_report(study, made_at=format_iso_seconds(utc_now()), max_error_rate=rate)
    if to is not None:
        write_html_report(evaluation_report, to)
    print_notes(*(() if as_json else evaluation_report.warnings))
    build_json = partial(convert_report_to_json, evaluation_report)
    print_outcome(render_evaluation_report(evaluation_report, to), build_json, as_json=as_json)
    raise typer.Exit(1 if study.problems else 0)


def sample(
    number: Annotated[int, typer.Argument(metavar="N", min=1, help="The number of documents.")],
    by: Annotated[
        Literal["production", "type", "decision"] | None,
        typer.Option(
            "--by", help="Draw evenly by production's labels, the program's types, or decisions.", show_default="type"
        ),
    ] = None,
    seeded: Annotated[
        bool, typer.Option("--seeded", help="Instead queue cases with a planted fault, which experts should notice.")
    ] = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw accepted documents for expert review.

    Each is drawn with a known probability and put into the queue. With --seeded, decided documents with a planted fault
    are put there instead.

    Example: evalkit sample 50 --by production
    """
    from evalkit.core.clocks import format_zulu_now
    from evalkit.evaluation.sampling import draw_and_queue_sample as draw

    output_folder, drawn_at = open_existing_output(output), format_zulu_now()
    if seeded:
        if by is not None:
            raise UsageError(
                "--by does not apply to cases with a planted fault (--seeded)",
                code="SAMPLE-BY",
                remedy="Give --seeded or --by, not both.",
            )
        _draw_attention_checks(output_folder, number, drawn_at=drawn_at, as_json=as_json)
        return
    by, settings = by or "type", load_settings()
    draw_record = draw(
        output_folder, number, by, seed=settings.audit_seed, drawn_at=drawn_at, foreign_types=settings.foreign_types
    )
    blocks = render_sample(draw_record, by, partial(format_queue_command, str(output_folder.root)))
    print_outcome(blocks, partial(draw_record.model_dump, mode="json"), as_json=as_json)


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
    unassignable = ", because every reviewer knows its document"
    print_notes(*(f"{case_id}: nobody may take it{unassignable}" for case_id in check_draw.unassignable_case_ids))


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The output folder of a run.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The output folder of another run over the same documents.")],
    truth: TruthOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs, document by document.

    Prints what changed, why, and which run was right more often.

    Example: evalkit compare output output_lean
    """
    from evalkit.evaluation.run_comparison import compare_studies
    from evalkit.evaluation.study import read_study

    settings = load_settings()
    studies = [
        read_study(output, truth=truth, foreign_types=settings.foreign_types, settings=settings) for output in (a, b)
    ]
    comparison = compare_studies(*studies)
    print_outcome(render_comparison(comparison), comparison.to_json, as_json=as_json)
    print_notes(*dict.fromkeys(line for study in studies for line in (*study.problems, *study.label_warnings)))
    raise typer.Exit(1 if any(study.problems for study in studies) else 0)


def challenge(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH…", help="Output folders with accepted documents; PDFs, and folders of PDFs."),
    ],
    model: ModelOption = None,
    profile: ProfileOption = None,
    classifications: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of {doc_id}.json: right answers for the PDFs.")
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(metavar="KIND,…", help="Plant only these kinds: names, structural, quote, semantic."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="The largest number of cases of each kind.")] = 40,
    seed: Annotated[int, typer.Option(help="The same seed plants the same faults.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Plant faults and count which are caught.

    Plants faults into right answers, one at a time. Nothing is written.

    Caught: a new BLOCKER or MAJOR issue sends the document to a person, or a repair undoes the fault. "By another":
    caught, but by none of the verifiers or codes that should see that kind of fault, which may have stopped working. A
    verifier that could not answer has caught nothing; the setting on_agent_failure counts as "escalate" here. False alarms
    are counted on answers that another system gave, or that an expert validated or corrected.

    Example: evalkit challenge output --model gemini:gemini-2.5-flash --kinds semantic --limit 10
    """
    from evalkit.evaluation.challenge import run_mutation_test

    settings = load_settings(models={"default": model} if model is not None else None, profile=profile)
    challenge_outcome = run_mutation_test(
        paths,
        settings,
        classifications_folder=classifications,
        kinds=filter(None, map(str.strip, (kinds or "").split(","))),
        max_cases_per_kind=limit,
        seed=seed,
    )
    print_outcome(render_challenge(challenge_outcome), challenge_outcome.to_json, as_json=as_json)
    print_notes(*challenge_outcome.problems)
    raise typer.Exit(1 if challenge_outcome.problems else 0)
