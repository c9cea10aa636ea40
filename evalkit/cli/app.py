"""The program ``evalkit``: its commands, error messages and exit statuses."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

import evalkit
from evalkit.cli import audit, evaluate, learn, maintenance, review, run, templates
from evalkit.cli.options import load_settings
from evalkit.cli.terminal import (
    discard_pending_output,
    is_no_chain_problem,
    pop_chain_problems,
    print_notes,
    redirect_closed_streams_to_null,
)
from evalkit.errors import EvalkitError, NotFound, UsageError

if TYPE_CHECKING:
    from evalkit.core.log_events import LogLineFormat

#: Exit status after Ctrl-C, as Typer and shells use it.
_EXIT_INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]…",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help drawn by rich would cost half a second
    help="Check an AI's reading of clinical documents before anyone relies on it.\n\n"
    "evalkit reads PDFs, checks their classification, decides which answers may be accepted, and queues the others for an expert. "
    "`evalkit docs` lists the documentation.",
)
for command in (
    *(maintenance.samples, run.run, run.runs, run.extract),
    *(templates.build_template, templates.review_template, templates.apply_template),
    *(review.queue, review.show, review.review),
    *(
        evaluate.export,
        evaluate.import_answers,
        evaluate.report,
        evaluate.dossier,
        evaluate.sample,
        evaluate.compare,
        evaluate.challenge,
    ),
    *(audit.purge, maintenance.doctor, maintenance.docs, maintenance.schema),
    *(maintenance.reindex, maintenance.move_database, maintenance.backup, maintenance.restore),
):
    app.command()(command)
app.add_typer(review.reviewers, name="reviewers")
app.add_typer(learn.learn, name="learn")
app.add_typer(audit.audit, name="audit")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"evalkit {evalkit.__version__}")
        raise typer.Exit


@app.callback()
def _configure_logging(
    context: typer.Context,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Write a log of each step to standard error.")
    ] = False,
    log_format: Annotated[
        Literal["text", "json"] | None,
        typer.Option(help="Format of the log; json: one JSON object in each line.", show_default="text"),
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    from evalkit.core.log_events import EventFormatter

    context.obj = chosen_format = log_format or _load_log_format()
    handler = logging.StreamHandler()
    handler.setFormatter(EventFormatter(chosen_format))
    handler.addFilter(is_no_chain_problem)
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])


def _load_log_format() -> LogLineFormat:
    try:
        return load_settings().log_format
    except UsageError:  # a command that needs settings reports the error itself
        return "text"


def main() -> NoReturn:
    """Run the command line and exit: 0 success, 1 failure, 2 wrong use, 130 Ctrl-C.

    An error is printed as one line on standard error.
    """
    redirect_closed_streams_to_null()
    try:
        exit_status = app(standalone_mode=False)  # 130 if it was interrupted
    except EvalkitError as error:
        print_notes(f"evalkit: {error}")
        exit_status = 2 if isinstance(error, UsageError | NotFound) else 1
    except OSError as error:
        if error.filename is not None:  # the error is about a file, not about standard output
            raise
        print_notes(
            f"evalkit: standard output cannot be written ({error.strerror}). Send it to another file or program."
        )
        discard_pending_output()
        exit_status = 1
    except Exception as error:
        if not hasattr(error, "format_message"):  # what Typer raises for options that it does not understand
            raise
        print_notes(f"evalkit: {error.format_message().rstrip('.')}. See `evalkit --help`.")
        exit_status = 2
    if problems := pop_chain_problems():
        print_notes(*problems)
        exit_status = exit_status or 1
    if exit_status == _EXIT_INTERRUPTED:
        print_notes("evalkit: interrupted; run the same command again to continue")
    sys.exit(exit_status or 0)
