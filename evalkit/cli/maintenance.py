"""The commands ``samples``, ``doctor``, ``docs``, ``schema`` and for databases."""

import shlex
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer

from evalkit.cli.options import (
    ExecutorOption,
    JsonOption,
    create_output_option,
    load_settings,
    open_existing_output,
)
from evalkit.cli.render import render_doctor_checks
from evalkit.cli.terminal import print_json, print_notes, print_outcome
from evalkit.core.wording import format_count
from evalkit.errors import UsageError, choose_disk_remedy


def samples(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write the sample PDFs to.")],
    as_json: JsonOption = False,
) -> None:
    """Create the demo's PDFs (invented patients).

    Example: evalkit samples .demo
    """
    from evalkit.samples import write_demo_folder

    try:
        sample_paths = write_demo_folder(folder)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written ({error.strerror})",
            code="SAMPLES",
            remedy=choose_disk_remedy(error, "Choose a folder that you may write to."),
        ) from error
    names = [path.name for path in sample_paths]
    text = f"{format_count(len(names), 'file')} written to {folder}"
    print_outcome([text], lambda: {"folder": str(folder), "documents": names}, as_json=as_json)


def doctor(
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Also send one short test question to each language model, and one request to Document AI."
        ),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Model, such as gemini:MODEL, for every task that has none in the settings.",
        ),
    ] = None,
    executor: ExecutorOption = None,
    output: Annotated[str | None, create_output_option("Folder or bucket to check; nothing is written")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check what is installed and configured.

    Prints, for each problem, the command or step that fixes it.

    Example: evalkit doctor --live --model gemini:gemini-2.5-flash
    """
    from evalkit.doctor import run_doctor_checks

    settings = load_settings(output=output, models={"default": model} if model is not None else None, executor=executor)
    checks = run_doctor_checks(settings, asks_models=live)
    print_outcome(render_doctor_checks(checks), lambda: [vars(check) for check in checks], as_json=as_json)
    raise typer.Exit(0 if all(check.is_fine for check in checks) else 1)


def docs(
    page: Annotated[
        str | None, typer.Argument(metavar="PAGE", help="Name of the documentation page; default: list all pages.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print a page of the documentation.

    Example: evalkit docs settings
    """
    pages = sorted(Path(str(files("evalkit") / "docs")).glob("*.md"))
    text_by_page = {path.stem: path.read_text("utf-8") for path in pages}
    if page is None:
        title_by_page = {name: text.splitlines()[0].lstrip("# ") for name, text in text_by_page.items()}
        lines = [f"{name:<14}{title}" for name, title in title_by_page.items()]
        print_outcome(lines, lambda: title_by_page, as_json=as_json)
    elif page in text_by_page and as_json:
        print_json({"page": page, "text": text_by_page[page]})
    elif page in text_by_page:
        typer.echo(text_by_page[page], nl=False)
    else:
        raise UsageError(
            f"there is no page {page!r} in the documentation",
            code="DOCS",
            remedy=f"The pages are {', '.join(text_by_page)}.",
        )


#: Import path of the class that describes each kind of evalkit's files; importing all of them would take a second.
_SCHEMA_MODELS = {
    "backup": "evalkit.pipeline.backup:BackupManifest",
    "arbitration_report": "evalkit.statements.reviewer_report:ArbitrationReport",
    "bundle": "evalkit.documents.bundle:DocumentBundle",
    "classification": "evalkit.classification.schema:ClassificationOutput",
    "draw": "evalkit.pipeline.sample_draws:Draw",
    "extraction": "evalkit.extraction.extraction_schema:Extractions",
    "export": "evalkit.evaluation.exports.content:ExportedTruth",
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
    "run": "evalkit.pipeline.run_history:RunRecord",
    "seeded": "evalkit.review.attention_checks:AttentionCheck",
    "statement_template": "evalkit.statements.statement_template:StatementTemplate",
    "template_review": "evalkit.statements.review_cycles:ReviewCycle",
}


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Kind of file, such as packet (a case for experts); default: list all kinds."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the JSON Schema of an evalkit file.

    Example: evalkit schema packet
    """
    if name is None:
        print_outcome(_SCHEMA_MODELS, lambda: list(_SCHEMA_MODELS), as_json=as_json)
    elif name in _SCHEMA_MODELS:
        print_json(resolve_name(_SCHEMA_MODELS[name]).model_json_schema())
    else:
        raise UsageError(
            f"there is no schema {name!r}", code="SCHEMA", remedy=f"The schemas are {', '.join(_SCHEMA_MODELS)}."
        )


def reindex(
    output: Annotated[str | None, create_output_option("Folder or bucket whose index is rebuilt")] = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild the index from the stored files.

    Example: evalkit reindex
    """
    from evalkit.review.index_rebuild import reindex as rebuild

    documents, cases = rebuild(open_existing_output(output))
    text = f"{format_count(documents, 'document')} and {format_count(cases, 'case')} indexed"
    print_outcome([text], lambda: {"documents": documents, "cases": cases}, as_json=as_json)


def move_database(
    output: Annotated[str | None, create_output_option("Folder whose SQLite database is moved")] = None,
    as_json: JsonOption = False,
) -> None:
    """Move the SQLite database to PostgreSQL.

    Moves open cases, drafts, stored model answers and the index from evalkit.sqlite to the database of the setting
    `database`.

    Example: EVALKIT_DATABASE=postgresql://db/evalkit evalkit move-database
    """
    from evalkit.review.index_rebuild import move_database as move
    from evalkit.store import MOVED_SQLITE_FILE

    url = load_settings().database
    if url is None:
        raise UsageError(
            "no PostgreSQL database is set",
            code="DATABASE",
            remedy="Set EVALKIT_DATABASE, or `database` in evalkit.toml, to postgresql://USER@HOST/NAME.",
        )
    moved_rows = move(open_existing_output(output), url)
    row_count = sum(moved_rows.values())
    text = f"{row_count} rows of {len(moved_rows)} tables moved; {MOVED_SQLITE_FILE} is the backup"
    print_outcome([text], lambda: {"rows": dict(moved_rows), "backup": MOVED_SQLITE_FILE}, as_json=as_json)


def backup(
    target: Annotated[Path, typer.Argument(metavar="TO", help="Folder of all backups; the new backup is added to it.")],
    output: Annotated[str | None, create_output_option("Folder or bucket to back up, without changing it")] = None,
    as_json: JsonOption = False,
) -> None:
    """Back up an output folder with its database.

    Runs and reviewers may work meanwhile. Each backup is a folder named after its time; files that have not changed
    since the newest backup in TO take no further room. It contains patients' data: protect it like the output folder.
    Purged documents stay in older backups until you remove these.

    Example: evalkit backup /mnt/backup
    """
    from evalkit.pipeline.backup import back_up

    summary = back_up(open_existing_output(output), target)
    left_out = (f"{name} is a link, and was left out: replace it with what it leads to" for name in summary.left_out)
    print_notes(*left_out)
    text = f"{format_count(summary.files, 'file')} ({summary.bytes:,} bytes) backed up to {summary.path}; {summary.linked} unchanged"
    print_outcome([text], lambda: vars(summary), as_json=as_json)
    raise typer.Exit(1 if summary.left_out else 0)


def restore(
    source: Annotated[
        Path,
        typer.Argument(metavar="FROM", help="A backup, or the folder of all backups: its newest backup is restored."),
    ],
    check: Annotated[bool, typer.Option("--check", help="Only check the backup: every file and the database.")] = False,
    purged: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The lost output folder, or its folder purged/: documents recorded there as purged are deleted again.",
        ),
    ] = None,
    output: Annotated[str | None, create_output_option("New folder for what is restored")] = None,
    as_json: JsonOption = False,
) -> None:
    """Restore an output folder from a backup.

    The folder must be missing or empty; if the command is interrupted, nothing is left of it. Documents that were
    purged after the backup are deleted again, as far as a later backup in the same folder or --purged records it.

    Example: evalkit restore /mnt/backup --output work
    """
    from evalkit.pipeline.restore import check_backup, find_backup
    from evalkit.pipeline.restore import restore as restore_backup

    path = find_backup(source)
    if check:
        manifest = check_backup(path)
        text = f"{path} is intact: {format_count(len(manifest.files), 'file')} of {manifest.made_at}"
        print_outcome(
            [text],
            lambda: {"backup": str(path), "made_at": manifest.made_at, "files": len(manifest.files)},
            as_json=as_json,
        )
        return
    summary = restore_backup(path, load_settings(output=output).output, purged=purged)
    text = f"{format_count(summary.files, 'file')} of {summary.made_at} restored to {summary.path}"
    if summary.purged:
        print_notes(f"{format_count(summary.purged, 'document')} purged after the backup: deleted again")
    if purged is None:
        print_notes(
            f"If you purged {'other ' * bool(summary.purged)}documents after {summary.made_at[11:16]} UTC on "
            f"{summary.made_at[:10]}, purge them again, or name the old folder with --purged."
        )
    print_notes(f"Next, check the records: evalkit audit verify --output {shlex.quote(summary.path)}")
    print_outcome([text], lambda: vars(summary), as_json=as_json)
