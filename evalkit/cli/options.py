"""Options of several commands, and the settings and folders that they name."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from evalkit.review.roster import ReviewerRoster
    from evalkit.settings import Settings
    from evalkit.store import OutputFolder

PathsArgument = Annotated[
    list[Path], typer.Argument(metavar="PATH…", help="PDF files, and folders to search for them.")
]
OutputOption = Annotated[
    str | None,
    typer.Option("--output", metavar="DIR|URL", help="The output folder, or s3://… or gs://….", show_default="output"),
]
ModelOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The language model, such as gemini:MODEL.", show_default="embedded"),
]
ReaderOption = Annotated[
    str | None, typer.Option(help="The reader of the PDFs: local or documentai.", show_default="local")
]
ProfileOption = Annotated[
    str | None, typer.Option(help="full: four model calls a document; lean: two.", show_default="full")
]
WorkersOption = Annotated[
    int | None, typer.Option(help="The number of processes that read PDFs.", show_default="one per core")
]
ExecutorOption = Annotated[
    str | None,
    typer.Option(help="Where PDFs are read: local, or a Dask scheduler, dask://HOST:PORT.", show_default="local"),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Repeat what an earlier run finished.")]
EvenPurgedOption = Annotated[bool, typer.Option("--even-purged", help="Re-import documents that were purged.")]
TruthOption = Annotated[
    Path | None, typer.Option("--truth", metavar="FILE", help="CSV or JSON with labels known to be right.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def load_settings(**options: Any) -> Settings:
    """Load the settings, with these options in place of some; None changes nothing."""
    from evalkit.settings import Settings

    return Settings.load(**options)


def open_output(output: str | None) -> OutputFolder:
    """Open the output folder of the option or the settings, with its database."""
    from evalkit.store import open_output_folder

    settings = load_settings(output=output)
    return open_output_folder(settings.output, settings.database)


def open_existing_output(output: str | None) -> OutputFolder:
    """Open the output folder of a run. UsageError if it is none."""
    from evalkit.store import require_evalkit_output_folder

    output_folder = open_output(output)
    require_evalkit_output_folder(output_folder)
    return output_folder


def format_queue_command(output: str) -> str:
    """Write the command that lists the waiting cases of an output folder."""
    return "evalkit queue" if output == str(open_output(None).root) else f"evalkit queue --output {shlex.quote(output)}"


def open_roster(output: str | None) -> ReviewerRoster:
    """Open the list of reviewers of an output folder."""
    from evalkit.review.roster import ReviewerRoster

    return ReviewerRoster(open_existing_output(output))
