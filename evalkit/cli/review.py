"""Commands about review: queue, show, review, reviewers."""

from __future__ import annotations

from itertools import chain
from typing import Annotated, Literal

import typer

from evalkit.cli.options import JsonOption, OutputOption, load_settings, open_existing_output, open_roster
from evalkit.cli.render import render_fields_or_template_case, render_queue, render_result
from evalkit.cli.terminal import ConsoleTable, print_blocks, print_outcome

RoleName = Literal["expert", "adjudicator", "analyst"]
ReviewerArgument = Annotated[str, typer.Argument(metavar="NAME", help="A reviewer.")]


def queue(output: OutputOption = None, as_json: JsonOption = False) -> None:
    """List the cases that wait for an expert.

    The worst come first.

    Example: evalkit queue
    """
    from evalkit.review.queue import list_pending_cases_worst_first
    from evalkit.store import OutputIndex

    with OutputIndex(open_existing_output(output)) as index:
        rows = list_pending_cases_worst_first(index)
    print_outcome(render_queue(rows), lambda: rows, as_json=as_json)


def show(
    doc_id: Annotated[
        str, typer.Argument(metavar="DOC_ID", help="A document as `run` names it, or a case of its fields.")
    ],
    why: Annotated[
        bool, typer.Option("--why", help="Also show what speaks for and against each type, by the built-in model.")
    ] = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a document's decision and issues.

    Example: evalkit show doc2_6 --why
    """
    from evalkit.classification.document_result import DocumentFailure
    from evalkit.classification.explanation import explain_as_text_lines, explain_segment_types
    from evalkit.review.case_files import read_packet
    from evalkit.review.kinds import find_case_kind
    from evalkit.review.shown_documents import read_bundle_as_shown, read_result_as_shown

    output_folder = open_existing_output(output)
    if find_case_kind(doc_id).case_id_suffix:
        packet = read_packet(output_folder, doc_id)
        blocks, content = render_fields_or_template_case(packet), packet.model_dump(mode="json")
    else:
        result = read_result_as_shown(output_folder, doc_id)
        blocks, content = render_result(doc_id, result), result.model_dump(mode="json")
        if why and not isinstance(result, DocumentFailure) and result.classification:
            bundle, segments = read_bundle_as_shown(output_folder, doc_id), result.classification.segments
            heading = "\nFor and against each type, by the built-in model:"
            blocks = chain(blocks, [heading], explain_as_text_lines(bundle, segments))
            content["why"] = explain_segment_types(bundle, segments).to_json()
        elif why:
            content["why"] = None
    print_outcome(blocks, lambda: content, as_json=as_json)


def review(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on this machine; 0: any that is free.")] = 8866,
    public_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The address that experts type, if a TLS proxy is in front.")
    ] = None,
    jupyterhub: Annotated[
        bool, typer.Option("--jupyterhub", help="Run as a service that JupyterHub started; the hub logs reviewers in.")
    ] = False,
    example: Annotated[
        Literal["nginx", "jupyterhub"] | None,
        typer.Option(help="Print an example configuration of nginx or JupyterHub, and exit."),
    ] = None,
    output: OutputOption = None,
    *,
    context: typer.Context,
) -> None:
    """Serve the experts' screen, behind a login.

    It is served on this machine only, until Ctrl-C.

    Example: evalkit review --port 8866
    """
    from evalkit.serving.launch import exec_review_server, read_example_configuration

    if example:
        typer.echo(read_example_configuration(example), nl=False)
        return
    exec_review_server(
        open_existing_output(output),
        port,
        public_url,
        load_settings().review,
        typer.echo,
        log_format=context.obj,
        is_hub_service=jupyterhub,
    )


reviewers = typer.Typer(
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]…",
    rich_markup_mode=None,
    help="Manage who may log in to `evalkit review`.",
)


@reviewers.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="1 to 40 letters, digits, '.', '_' or '-'.")],
    role: Annotated[
        RoleName | None,
        typer.Option(help="The reviewer's role.", show_default="expert, or the role that they had before"),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Add a reviewer, or give one a new code.

    The code is printed once; the reviewer's old code stops working.

    Example: evalkit reviewers add dr_lee
    """
    code = open_roster(output).add_reviewer_or_replace_code(name, role=role)
    print_blocks(
        f"{name}'s code: {code}",
        "It is not shown again. Start `evalkit review`, open the address that it prints, and type the code.",
    )


@reviewers.command()
def appoint(
    name: ReviewerArgument,
    role: Annotated[RoleName, typer.Argument(metavar="ROLE", help="expert, adjudicator or analyst.")],
    output: OutputOption = None,
) -> None:
    """Give a reviewer another role, at once.

    Experts answer cases; adjudicators also decide between two answers; analysts only look. While no adjudicator can decide
    between two answers, any expert who gave neither may.

    Example: evalkit reviewers appoint dr_lee adjudicator
    """
    open_roster(output).set_role(name, role)
    print_blocks(f"{name} is an {role} now")


@reviewers.command()
def remove(name: ReviewerArgument, output: OutputOption = None) -> None:
    """Remove a reviewer.

    Their code and logins end at once, an open page within half a minute. Their reviews stay, with their name. A case that
    they had open can be opened by others when that page has ended, or at once by taking it over. `evalkit reviewers add`
    lets them in again, in the same role.

    Example: evalkit reviewers remove dr_lee
    """
    open_roster(output).remove_reviewer(name)
    print_blocks(f"{name} is no longer a reviewer here")


@reviewers.command("list")
def list_reviewers(output: OutputOption = None, as_json: JsonOption = False) -> None:
    """List the reviewers and their roles.

    Example: evalkit reviewers list
    """
    roles = open_roster(output).read_roles()
    table = ConsoleTable(("reviewer", "role"), [*roles.items()])
    print_outcome(
        [table if roles else "There is no reviewer yet: evalkit reviewers add NAME"], lambda: roles, as_json=as_json
    )
