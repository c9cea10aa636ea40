"""The commands ``learn propose``, ``learn promote`` and ``learn revert``."""

from datetime import datetime
from typing import Annotated

import typer

from evalkit.cli.options import JsonOption, create_output_option, load_settings, open_existing_output
from evalkit.cli.render import render_proposal
from evalkit.cli.terminal import print_notes, print_outcome
from evalkit.core.clocks import format_iso_seconds, format_zulu_now

learn = typer.Typer(
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]…",
    rich_markup_mode=None,
    help="Train the built-in model on your reviews.",
)

ByOption = Annotated[str, typer.Option("--by", metavar="NAME", help="Your name, which is recorded with the decision.")]


@learn.command()
def propose(
    until: Annotated[
        datetime | None,
        typer.Option(
            help="Train on answers given before this time (UTC), and test on later answers.",
            show_default="the older two thirds of the answered files",
        ),
    ] = None,
    allow_simulated: Annotated[
        bool,
        typer.Option("--allow-simulated", help="Also train on the answers of simulated reviewers, which are programs."),
    ] = False,
    output: Annotated[str | None, create_output_option("Folder or bucket whose reviews are learned from")] = None,
    as_json: JsonOption = False,
) -> None:
    """Train new weights and test them.

    Trains on blind answers and corrections, and compares the new weights with the weights in use on files that were
    answered later. `run` uses the new weights only after `learn promote`. Exit status 1 if the new weights may not be promoted.

    Example: evalkit learn propose --until 2026-03-01
    """
    from evalkit.evaluation.site_learning import propose_site_weights

    outcome = propose_site_weights(
        open_existing_output(output),
        load_settings(),
        proposed_at=format_zulu_now(),
        cutoff=None if until is None else format_iso_seconds(until),
        allow_simulated=allow_simulated,
    )
    print_outcome(render_proposal(outcome), outcome.to_json, as_json=as_json)
    print_notes(*outcome.problems)
    raise typer.Exit(1 if outcome.challenge.obstacles else 0)


@learn.command()
def promote(
    by: ByOption,
    output: Annotated[str | None, create_output_option("Folder or bucket of the proposal")] = None,
    as_json: JsonOption = False,
) -> None:
    """Use the newest proposed weights from now on.

    The decision is recorded with its figures. All documents are decided again by the next `run`, except those that
    experts have reviewed; certificates of the earlier weights are withdrawn.

    Example: evalkit learn promote --by 'A. Analyst'
    """
    from evalkit.evaluation.site_learning import promote_proposal

    event = promote_proposal(open_existing_output(output), promoted_by=by, promoted_at=format_zulu_now())
    blocks = [f"Weights {event.facts['challenger']} are in force; `evalkit learn revert` takes them back."]
    print_outcome(blocks, lambda: event.model_dump(mode="json"), as_json=as_json)


@learn.command()
def revert(
    by: ByOption,
    output: Annotated[str | None, create_output_option("Folder or bucket of the promotion")] = None,
    as_json: JsonOption = False,
) -> None:
    """Return to the previous weights.

    Reverses the newest `learn promote`. The decision is recorded.

    Example: evalkit learn revert --by 'A. Analyst'
    """
    from evalkit.evaluation.site_learning import revert_promotion

    event = revert_promotion(open_existing_output(output), reverted_by=by, reverted_at=format_zulu_now())
    blocks = [f"Weights {event.facts['restored']} are in force again."]
    print_outcome(blocks, lambda: event.model_dump(mode="json"), as_json=as_json)
