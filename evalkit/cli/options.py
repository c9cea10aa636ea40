"""Options that several commands share, with the settings and folders they set."""

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
    list[Path], typer.Argument(metavar="PATH…", help="PDF files, and folders whose PDF files are all read.")
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Model, such as gemini:MODEL, for every task that has none in the settings.",
        show_default="embedded",
    ),
]
ReaderOption = Annotated[
    str | None,
    typer.Option(
        help="Reader of the PDFs: local (on this machine) or documentai (Google Document AI).", show_default="local"
    ),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        help="full: four model calls per document; lean: two, with one question for the verifiers V2, V3 and V4.",
        show_default="full",
    ),
]
WorkersOption = Annotated[
    int | None, typer.Option(help="Number of processes that read PDFs on this machine.", show_default="one per core")
]
ExecutorOption = Annotated[
    str | None,
    typer.Option(
        help="Machines that read the PDFs: local (this one), or a Dask scheduler, dask://HOST:PORT.",
        show_default="local",
    ),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Also process documents that an earlier run has finished.")]
EvenPurgedOption = Annotated[
    bool, typer.Option("--even-purged", help="Process documents even if `evalkit purge` deleted them before.")
]
UsdPerRunOption = Annotated[
    float | None,
    typer.Option(min=0, metavar="N", help="Highest cost of this run in US dollars; 0: no limit.", show_default=False),
]
NoProbeOption = Annotated[
    bool, typer.Option("--no-probe", help="Send no test question to the language models before the first document.")
]
YesOption = Annotated[
    bool,
    typer.Option(
        "--yes", help="Allow PATH to be /, the home folder or the output folder, and read every document below it."
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Exit with status 1 if any file is skipped because of its format.")
]
TruthOption = Annotated[
    Path | None,
    typer.Option(
        "--truth", metavar="FILE", help="CSV or JSON file with each document's correct labels, to compare answers with."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def create_output_option(purpose: str) -> Any:
    """Create the option --output; ``purpose`` says what the command does there."""
    return typer.Option("--output", metavar="DIR|URL", help=f"{purpose}: DIR, s3://… or gs://….", show_default="output")


def load_settings(**options: Any) -> Settings:
    """Load the settings; options that are not None replace the settings of that name."""
    from evalkit.settings import Settings

    return Settings.load(**options)


def open_output(output: str | None) -> OutputFolder:
    """Open the folder given by --output or, without it, by the settings."""
    from evalkit.store import open_output_folder

    settings = load_settings(output=output)
    return open_output_folder(settings.output, settings.database)


def open_existing_output(output: str | None) -> OutputFolder:
    """Open the output folder of an earlier run. UsageError if there is none."""
    from evalkit.store import open_existing_output_folder

    settings = load_settings(output=output)
    return open_existing_output_folder(settings.output, settings.database)


def format_queue_command(output: str) -> str:
    """Return the ``evalkit queue`` command for an output folder, quoted for a shell."""
    return "evalkit queue" if output == str(open_output(None).root) else f"evalkit queue --output {shlex.quote(output)}"


def open_roster(output: str | None) -> ReviewerRoster:
    """Open the list of reviewers in the output folder of an earlier run."""
    from evalkit.review.roster import ReviewerRoster

    return ReviewerRoster(open_existing_output(output))
