"""Commands about records: audit verify, audit export, purge."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evalkit.cli.options import JsonOption, OutputOption, load_settings, open_existing_output
from evalkit.cli.render import render_purge, render_purge_preview
from evalkit.cli.terminal import ConsoleTable, print_blocks, print_json, print_notes, print_outcome
from evalkit.errors import UsageError

if TYPE_CHECKING:
    from evalkit.store import OutputFolder

audit = typer.Typer(
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]…",
    rich_markup_mode=None,
    help="Check and export who decided what.",
)


@audit.command()
def verify(
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An earlier `audit export` as JSON; all its events must still be there."),
    ] = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that no record was changed.

    Checks every chain of reviews, packets, ground truth, draws and purges. The exit status is 1 if anything was changed.

    Example: evalkit audit verify --against decisions_2026-01.json
    """
    from evalkit.pipeline.audit.verify import verify_integrity

    integrity_report = verify_integrity(open_existing_output(output), earlier_export_path=against)
    if as_json:
        print_json(integrity_report.to_json())
    else:
        print_notes(*(f"{fault.file}: {fault.what}. {fault.remedy}" for fault in integrity_report.faults))
        counts = [f"{count} {name.replace('_', ' ')}" for name, count in integrity_report.count_by_kind.items()]
        print_blocks(f"{', '.join(counts)}: {len(integrity_report.faults)} faults")
    raise typer.Exit(1 if integrity_report.faults else 0)


@audit.command()
def export(
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="The file to write: FILE.csv or FILE.json.", show_default="a table"),
    ] = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export who decided, opened or purged what.

    Each decision has its time, outcome, versions and duration.

    Example: evalkit audit export --to decisions.csv
    """
    import pandas as pd

    from evalkit.evaluation.export import write_private_csv, write_private_json
    from evalkit.pipeline.audit.trail import EVENT_COLUMNS, list_audit_events_and_problems

    events, problems = list_audit_events_and_problems(open_existing_output(output))
    exported = {"schema_version": 1, "events": events}
    if to is not None and to.suffix.lower() == ".csv":
        write_private_csv(pd.DataFrame(events, columns=list(EVENT_COLUMNS)), to)
    elif to is not None:
        write_private_json(exported, to)
    if as_json:
        print_json(exported)
    elif to is None:
        columns = ("event", "at", "who", "case_id", "revision", "outcome", "decided", "seconds_active")
        cells = [["" if event[column] is None else str(event[column]) for column in columns] for event in events]
        print_blocks(ConsoleTable(columns, cells))
    print_notes(*problems)
    raise typer.Exit(1 if problems else 0)


def purge(
    doc_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="DOC_ID…", help="The documents, as `run` names them.", show_default=False),
    ] = None,
    older_than: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS",
            min=0,
            max=36_525,
            help="Delete every document that was finished so many days ago and has no waiting case.",
        ),
    ] = None,
    is_expired: Annotated[
        bool, typer.Option("--expired", help="As --older-than, with the days of the setting [retention] days.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Really delete what --older-than, --expired or --patient-key lists.")
    ] = False,
    patient_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Delete every document of the patient with this key (see `show`).")
    ] = None,
    again: Annotated[
        bool, typer.Option("--recorded", help="Delete purged documents that a backup has brought back.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the files that would be deleted.")] = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete documents and all derived files.

    Only hashes of reviews are kept, without a word or a name. This cannot be undone. Source PDFs, exports, reports and
    backups outside of the output folder are not touched. If it was interrupted, the same command finishes it; without a
    name it finishes whatever was begun.

    Documents that are selected by age (--older-than, --expired) or by patient (--patient-key) are only listed, unless --yes
    is given. Names cannot be combined with --older-than or --expired. A file with several patients is deleted as a whole.

    Example: evalkit purge doc2_6 --dry-run
    """
    from evalkit.core.clocks import format_iso_seconds, utc_now
    from evalkit.pipeline.purge import is_purge_unfinished, map_purge_file_names_by_doc_id
    from evalkit.pipeline.purge import purge as purge_documents

    if (doc_ids or patient_key) and (is_expired or older_than is not None):
        raise UsageError(
            "document names or --patient-key cannot be combined with --older-than or --expired",
            code="PURGE-NAMED",
            remedy="Purge the named ones first, and the old ones in a second call.",
        )
    output_folder, now = open_existing_output(output), utc_now()
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
        raise UsageError(
            "no document is named", code="PURGE-NOTHING", remedy="Name one, or select several with --older-than."
        )
    if dry_run or ((expired_before or patient_key is not None) and not yes):
        files_by_document = map_purge_file_names_by_doc_id(output_folder, [*requested_ids, *expired_ids])
        blocks = render_purge_preview(files_by_document, is_confirmable=not dry_run)
        print_outcome(blocks, lambda: files_by_document, as_json=as_json)
        return
    purged_documents = purge_documents(
        output_folder,
        requested_ids,
        purged_at=format_iso_seconds(now),
        expired_ids=expired_ids,
        expired_before=expired_before,
    )
    reopened_ids = sorted({*expired_ids} - {purged.doc_id for purged in purged_documents})
    print_notes(*(f"{doc_id} is as old, but is kept: somebody has returned to it meanwhile" for doc_id in reopened_ids))
    print_outcome(
        render_purge(purged_documents), lambda: [purged.to_json() for purged in purged_documents], as_json=as_json
    )


def _find_patient_and_restored_doc_ids(
    output_folder: OutputFolder, patient_key: str | None, *, include_restored: bool
) -> list[str]:
    from evalkit.pipeline.purge import find_doc_ids_of_patient, find_restored_purged_doc_ids

    return [
        *(find_doc_ids_of_patient(output_folder, patient_key) if patient_key is not None else ()),
        *(find_restored_purged_doc_ids(output_folder) if include_restored else ()),
    ]


def _find_expired_ids_and_print_others(output_folder: OutputFolder, expired_before: datetime) -> tuple[str, ...]:
    """Find the documents finished before a time; print why others as old are kept."""
    from evalkit.pipeline.purge import find_expired_documents

    expired_documents = find_expired_documents(output_folder, unchanged_since=expired_before)
    unreadable = "but is kept: one of its reviews cannot be read (`evalkit audit verify` names it)"
    print_notes(
        *(f"{doc_id} is as old, but is kept: a case of it waits" for doc_id in expired_documents.waiting),
        *(f"{doc_id} may be as old, {unreadable}" for doc_id in expired_documents.unreadable),
    )
    return expired_documents.finished


def _resolve_retention_days(older_than: int | None) -> int:
    """Read the days of [retention]; UsageError without any, or with --older-than."""
    days = load_settings().retention.days
    if not days or older_than is not None:
        raise UsageError(
            "--expired uses the days of [retention], "
            + (f"but --older-than gives {older_than}" if days else "but none are set there"),
            code="RETENTION",
            remedy="Give --older-than DAYS alone." if days else "Set [retention] days, or give --older-than DAYS.",
        )
    return days
