"""The commands ``queue``, ``show``, ``review`` and ``reviewers …``."""

from itertools import chain
from typing import Annotated, Literal

import typer

from evalkit.cli.options import JsonOption, create_output_option, load_settings, open_existing_output, open_roster
from evalkit.cli.render import render_fields_or_template_case, render_queue, render_result
from evalkit.cli.terminal import ConsoleTable, print_outcome

RoleName = Literal["expert", "adjudicator", "analyst"]
ReviewerArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the reviewer.")]


def queue(
    output: Annotated[str | None, create_output_option("Folder or bucket of the run")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the cases that wait for an expert.

    The cases with the worst issues come first. Exit status 1 if packets of cases are missing.

    Example: evalkit queue
    """
    from evalkit.review.index_rebuild import open_index
    from evalkit.review.queue import list_pending_cases_worst_first

    with open_index(open_existing_output(output), read_only=True) as index:
        rows = list_pending_cases_worst_first(index)
    print_outcome(render_queue(rows, len(index.lost_case_ids)), lambda: rows, as_json=as_json)
    raise typer.Exit(1 if index.lost_case_ids else 0)


def show(
    doc_id: Annotated[
        str,
        typer.Argument(
            metavar="DOC_ID", help="The doc_id that `run` printed, or the case_id of a case about fields or a template."
        ),
    ],
    why: Annotated[
        bool,
        typer.Option(
            "--why", help="Also show which words speak for and against each type, according to the built-in model."
        ),
    ] = False,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="NAME", help="Show what this run decided, even if later runs decided otherwise."),
    ] = None,
    output: Annotated[str | None, create_output_option("Folder or bucket of the run")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a document's decision and issues.

    Example: evalkit show doc2_6 --why
    """
    from evalkit.classification.document_result import DocumentFailure
    from evalkit.classification.explanation import explain_as_text_lines, explain_segment_types
    from evalkit.pipeline.run_history import open_run
    from evalkit.pipeline.site_weights import use_weights_in_force
    from evalkit.review.case_files import read_packet
    from evalkit.review.kinds import find_case_kind
    from evalkit.review.shown_documents import read_bundle_as_shown, read_result_as_shown

    output_folder = open_existing_output(output)
    output_folder = open_run(output_folder, run) if run is not None else output_folder
    if find_case_kind(doc_id).case_id_suffix:
        packet = read_packet(output_folder, doc_id)
        blocks, content = render_fields_or_template_case(packet), packet.model_dump(mode="json")
    else:
        result = read_result_as_shown(output_folder, doc_id)
        blocks, content = render_result(doc_id, result), result.model_dump(mode="json")
        if why and not isinstance(result, DocumentFailure) and result.classification:
            bundle, segments = read_bundle_as_shown(output_folder, doc_id), result.classification.segments
            heading = "\nFor and against each type, by the built-in model:"
            with use_weights_in_force(output_folder):
                blocks = chain(blocks, [heading], list(explain_as_text_lines(bundle, segments)))
                content["why"] = explain_segment_types(bundle, segments).to_json()
        elif why:
            content["why"] = None
    print_outcome(blocks, lambda: content, as_json=as_json)


def review(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of this machine to listen on; 0: any free port.")
    ] = 8866,
    public_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address that experts open, if they reach the server through a TLS proxy."),
    ] = None,
    jupyterhub: Annotated[
        bool,
        typer.Option(
            "--jupyterhub", help="Run as a service of JupyterHub, which starts the server and logs reviewers in."
        ),
    ] = False,
    example: Annotated[
        Literal["nginx", "jupyterhub"] | None,
        typer.Option(help="Print an example configuration for nginx or JupyterHub and exit."),
    ] = None,
    output: Annotated[str | None, create_output_option("Folder or bucket whose cases are answered and saved")] = None,
    *,
    context: typer.Context,
) -> None:
    """Serve the experts' screen, behind a login.

    The server accepts connections from this machine only and runs until Ctrl-C.

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
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the reviewer: 1 to 40 letters, digits, '.', '_' or '-'.")
    ],
    role: Annotated[
        RoleName | None,
        typer.Option(help="Role of the reviewer.", show_default="expert, or the role that they had before"),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            metavar="TASK,…",
            help="Tasks of the reviewer: clinical, tax or bank, with commas.",
            show_default="all, or the tasks that they had before",
        ),
    ] = None,
    output: Annotated[str | None, create_output_option("Folder or bucket whose reviewers may log in")] = None,
    as_json: JsonOption = False,
) -> None:
    """Add a reviewer, or replace a login code.

    Prints the login code, which is not shown again. A code that the reviewer had before stops working. The queue offers
    the reviewer only cases of the reviewer's tasks: clinical documents and reports, tax forms, or templates of bank
    statements. Cases of other tasks can still be opened.

    Example: evalkit reviewers add dr_lee --tasks clinical,tax
    """
    from evalkit.review.permissions import parse_tasks

    code = open_roster(output).add_reviewer_or_replace_code(
        name, role=role, tasks=None if tasks is None else parse_tasks(tasks)
    )
    print_outcome(
        [
            f"{name}'s code: {code}",
            "The code is not shown again. To log in: start `evalkit review`, open the address that it prints, and type the code.",
        ],
        lambda: {"reviewer": name, "code": code},
        as_json=as_json,
    )


@reviewers.command()
def appoint(
    name: ReviewerArgument,
    role: Annotated[RoleName, typer.Argument(metavar="ROLE", help="New role: expert, adjudicator or analyst.")],
    output: Annotated[str | None, create_output_option("Folder or bucket of the reviewer")] = None,
    as_json: JsonOption = False,
) -> None:
    """Change the role of a reviewer.

    The change takes effect at once. Experts answer cases; adjudicators also decide between two experts' answers;
    analysts can only read. As long as no adjudicator may decide between two answers, any expert who gave neither of
    them may decide.

    Example: evalkit reviewers appoint dr_lee adjudicator
    """
    open_roster(output).set_role(name, role)
    print_outcome([f"{name} is an {role} now"], lambda: {"reviewer": name, "role": role}, as_json=as_json)


@reviewers.command()
def remove(
    name: ReviewerArgument,
    output: Annotated[str | None, create_output_option("Folder or bucket whose reviewer is removed")] = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a reviewer.

    The reviewer's code and logins stop working at once, an open page within half a minute. Reviews stay, with the
    reviewer's name. If the reviewer had a case open, others can open it once the page has ended, or take it over at
    once. `evalkit reviewers add` lets the reviewer log in again, in the same role.

    Example: evalkit reviewers remove dr_lee
    """
    open_roster(output).remove_reviewer(name)
    text = f"{name} is no longer a reviewer of this output folder"
    print_outcome([text], lambda: {"reviewer": name, "removed": True}, as_json=as_json)


@reviewers.command("list")
def list_reviewers(
    output: Annotated[str | None, create_output_option("Folder or bucket whose reviewers are listed")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the reviewers, their roles and tasks.

    Example: evalkit reviewers list
    """
    roster = open_roster(output)
    roles = roster.read_roles()
    rows = [(name, role, ", ".join(roster.get_permissions(name).tasks) or "all") for name, role in roles.items()]
    table = ConsoleTable(("reviewer", "role", "tasks"), rows)
    print_outcome(
        [table if roles else "There is no reviewer yet; add one with: evalkit reviewers add NAME"],
        lambda: roles,
        as_json=as_json,
    )
