"""Commands ``audit verify``, ``audit export``, ``audit release`` and ``purge``."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evalkit.cli.options import JsonOption, create_output_option, load_settings, open_existing_output
from evalkit.cli.render import render_purge, render_purge_preview
from evalkit.cli.terminal import ConsoleTable, print_blocks, print_json, print_notes, print_outcome
from evalkit.core.clocks import format_iso_seconds, format_zulu_now, utc_now
from evalkit.core.wording import format_count
from evalkit.errors import UsageError

if TYPE_CHECKING:
    from evalkit.store import OutputFolder

audit = typer.Typer(
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]…",
    rich_markup_mode=None,
    help="Check and export the records of decisions.",
)


@audit.command()
def verify(
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="JSON file of an earlier `audit export`; report each of its events that is now missing or changed.",
        ),
    ] = None,
    dossier: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="HTML file that `evalkit dossier` wrote; compute its numbers again, and report each number that differs.",
        ),
    ] = None,
    output: Annotated[str | None, create_output_option("Folder or bucket to check, without changing it")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that no record was changed.

    Checks the hash chains of reviews, events and changed files, all files that they list, the draws of audits, and who
    may read the files. Exit status 1 if a record was changed or is missing. Documents that were added or purged after
    a dossier was written, and reviewers and login codes added after an export, are listed but are no error.

    Example: evalkit audit verify --against decisions_2026-01.json
    """
    from evalkit.pipeline.audit.verify import verify_integrity

    output_folder = open_existing_output(output)
    integrity_report = verify_integrity(output_folder, earlier_export_path=against)
    notes = integrity_report.notes
    if dossier is not None:
        from evalkit.evaluation.dossier import verify_dossier

        verification = verify_dossier(output_folder, dossier, fault_count=len(integrity_report.faults))
        integrity_report = replace(integrity_report, faults=(*integrity_report.faults, *verification.faults))
        notes += verification.notes
    if as_json:
        print_json(integrity_report.to_json() | {"notes": list(notes)})
    else:
        print_notes(*(f"{fault.file}: {fault.what}. {fault.remedy}" for fault in integrity_report.faults), *notes)
        fault_count = format_count(len(integrity_report.faults), "fault")
        counts = [_format_kind_count(*item) for item in integrity_report.count_by_kind.items() if item[1]]
        print_blocks(": ".join(filter(None, [fault_count, ", ".join(counts)])))
    raise typer.Exit(1 if integrity_report.faults else 0)


def _format_kind_count(kind: str, count: int) -> str:
    """Format a count of records: ``1 chain without head``, ``2 recorded files``."""
    words = kind.replace("_", " ")
    return f"{count} {words if count != 1 else re.sub('s(?= |$)', '', words)}"


@audit.command()
def export(
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="File to write: CSV if the name ends in .csv, JSON otherwise.",
            show_default="a table",
        ),
    ] = None,
    output: Annotated[str | None, create_output_option("Folder or bucket whose records are exported")] = None,
    as_json: JsonOption = False,
) -> None:
    """Export decisions, views and purges by person.

    Each event has its time, person, outcome, versions and duration.

    Example: evalkit audit export --to decisions.csv
    """
    import pandas as pd

    from evalkit.evaluation.private_files import write_private_csv, write_private_json
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


@audit.command()
def release(
    stratum: Annotated[str, typer.Argument(metavar="STRATUM", help="Group to release, as `run` prints it.")],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Name of the analyst who releases the documents.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason for the release; it is stored in the event log.")],
    output: Annotated[str | None, create_output_option("Folder or bucket of the run")] = None,
    as_json: JsonOption = False,
) -> None:
    """Stop auditing every document of a group.

    A group is all accepted documents of one type and source. If audits show a rising error rate, evalkit puts a brake on
    the group: every document of the group is audited, until the documents accepted since then are certified or an analyst
    releases the group with this command. Name and reason are recorded.

    Example: evalkit audit release "Pathology Report | inbox" --by dr_lee --reason "form template updated"
    """
    from evalkit.evaluation.drift_monitoring import describe_release, release_stratum
    from evalkit.pipeline.event_log import read_events

    output_folder = open_existing_output(output)
    with output_folder.hold_run_lock():
        event = release_stratum(
            output_folder, read_events(output_folder), stratum, reason=reason, released_by=by, now=format_zulu_now()
        )
    print_outcome([describe_release(event)], lambda: event.model_dump(mode="json"), as_json=as_json)


def purge(
    doc_ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DOC_ID…", help="Documents to delete: the doc_ids that `run` printed.", show_default=False
        ),
    ] = None,
    older_than: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS",
            min=0,
            max=36_525,
            help="Delete every document that was finished at least this many days ago and has no waiting case.",
        ),
    ] = None,
    is_expired: Annotated[
        bool,
        typer.Option("--expired", help="Like --older-than, with the number of days in the setting [retention] days."),
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Delete the documents that --older-than, --expired or --patient-key selects, instead of only listing them.",
        ),
    ] = False,
    patient_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Delete every document of the patient with this key (`evalkit show` prints the keys)."
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--recorded", help="Delete purged documents again that were restored from a backup.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the files that would be deleted; delete nothing.")
    ] = False,
    output: Annotated[str | None, create_output_option("Folder or bucket to delete from")] = None,
    as_json: JsonOption = False,
) -> None:
    """Delete documents and all derived files.

    Of reviews only hashes are kept, without any text or name. Deleting cannot be undone. Source PDFs, exports, reports
    and backups outside the output folder stay. If the purge was interrupted, run the same command again to finish it;
    without any DOC_ID, the command finishes every purge that was begun.

    Documents that are selected by age (--older-than, --expired) or by patient (--patient-key) are only listed, unless
    --yes is given. A DOC_ID or --patient-key cannot be combined with --older-than or --expired. A file with several
    patients is deleted as a whole.

    Example: evalkit purge doc2_6 --dry-run
    """
    from evalkit.evaluation.certificate import open_answers_for_purge
    from evalkit.pipeline.purge import (
        find_doc_ids_of_patient,
        find_restored_purged_doc_ids,
        is_purge_unfinished,
        map_purge_file_names_by_doc_id,
    )
    from evalkit.pipeline.purge import purge as purge_documents

    if (doc_ids or patient_key) and (is_expired or older_than is not None):
        raise UsageError(
            "document names or --patient-key cannot be combined with --older-than or --expired",
            code="PURGE-NAMED",
            remedy="Purge the named documents first, and the old documents with a second command.",
        )
    output_folder, now = open_existing_output(output), utc_now()
    requested_ids = [
        *(doc_ids or ()),
        *(find_doc_ids_of_patient(output_folder, patient_key) if patient_key is not None else ()),
        *(find_restored_purged_doc_ids(output_folder) if again else ()),
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
            "no document to delete is named",
            code="PURGE-NOTHING",
            remedy="Give a DOC_ID, --patient-key or --older-than DAYS.",
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
        read_answer=open_answers_for_purge(output_folder),
    )
    reopened_ids = sorted({*expired_ids} - {purged.doc_id for purged in purged_documents})
    print_notes(
        *(f"{doc_id} is old enough, but is kept: it was used again while this command ran" for doc_id in reopened_ids)
    )
    print_outcome(
        render_purge(purged_documents), lambda: [purged.to_json() for purged in purged_documents], as_json=as_json
    )


def _find_expired_ids_and_print_others(output_folder: OutputFolder, expired_before: datetime) -> tuple[str, ...]:
    """Find documents finished before a time; print why other old documents are kept."""
    from evalkit.pipeline.purge import find_expired_documents

    expired_documents = find_expired_documents(output_folder, unchanged_since=expired_before)
    unreadable = "but is kept: one of its reviews cannot be read (`evalkit audit verify` names the file)"
    print_notes(
        *(f"{doc_id} is old enough, but is kept: one of its cases still waits" for doc_id in expired_documents.waiting),
        *(f"{doc_id} may be old enough, {unreadable}" for doc_id in expired_documents.unreadable),
    )
    return expired_documents.finished


def _resolve_retention_days(older_than: int | None) -> int:
    """Read the setting [retention] days. UsageError if not set, or with --older-than."""
    days = load_settings().retention.days
    if not days or older_than is not None:
        raise UsageError(
            "--expired uses the setting [retention] days, "
            + (f"but --older-than gives {older_than}" if days else "but it is not set"),
            code="RETENTION",
            remedy="Give --older-than DAYS alone." if days else "Set [retention] days, or give --older-than DAYS.",
        )
    return days
