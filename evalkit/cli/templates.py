"""Commands about templates: build-template, review-template, apply-template."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalkit.cli.options import EvenPurgedOption, JsonOption, ModelOption, OutputOption, load_settings, open_output
from evalkit.cli.render import format_usage, render_statement, render_template_review
from evalkit.cli.terminal import print_blocks, print_json, print_notes, print_outcome
from evalkit.errors import NotFound, UsageError

if TYPE_CHECKING:
    from evalkit.documents.bundle import DocumentBundle
    from evalkit.pipeline.statement_templates import TemplateReviewSummary
    from evalkit.statements.reconciliation import ReconciliationReport
    from evalkit.statements.statement_parser import ParsedStatement

TemplateArgument = Annotated[
    Path, typer.Argument(metavar="T.toml", help="A template file, or its name in the output folder.")
]
StatementArgument = Annotated[
    Path, typer.Argument(metavar="PDF", exists=True, dir_okay=False, help="A statement of the template's bank.")
]


def build_template(
    pdf: Annotated[Path, typer.Argument(metavar="PDF", exists=True, dir_okay=False, help="A bank statement.")],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="T.toml", help="The file to write.", show_default="templates/ in the output folder"
        ),
    ] = None,
    model: ModelOption = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draft a template from a bank statement.

    Prints the transactions that the draft reads, and which of the statement's printed sums they add up to.

    Example: evalkit build-template statement.pdf --to bank.toml
    """
    from evalkit.evaluation.export import create_private_file, replace_file_atomically
    from evalkit.pipeline import statement_templates
    from evalkit.statements.statement_template import render_template_toml
    from evalkit.store import template_file_name

    proposed, usage, proposed_by = statement_templates.build_template(_read_pdf_in_worker(pdf), pdf, model=model)
    if to is None:
        output_folder, name = open_output(output), template_file_name(proposed.template.template_id)
        target = f"{output_folder.root}/{name}"
        if statement_templates.has_stable_template(output_folder, proposed.template.template_id):
            raise UsageError(
                f"{target} is an approved template",
                code="TEMPLATE",
                remedy="Name another file with --to, or compare that one with this statement: `evalkit review-template`.",
            )
        output_folder.write_text(name, render_template_toml(proposed.template))
    else:
        target = str(to)
        try:
            with replace_file_atomically(to) as temporary:
                create_private_file(temporary, render_template_toml(proposed.template))
        except OSError as error:
            raise UsageError(
                f"{to} cannot be written ({error.strerror})", code="TEMPLATE", remedy="Name another file with --to."
            ) from error
    if as_json:
        print_json({"template": target, **_convert_statement_to_json(proposed.statement, proposed.reconciliation)})
        return
    proposer = f", as {proposed_by} proposed it," if proposed_by else ""
    print_blocks(
        *render_statement(proposed.statement, proposed.reconciliation),
        *([f"builder: {format_usage(usage)}"] if usage.calls else ()),
        f"Draft of {proposed.template.identity.bank}'s template{proposer} written to {target}",
    )


def review_template(
    template: TemplateArgument,
    pdf: StatementArgument,
    model: ModelOption = None,
    even_purged: EvenPurgedOption = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have two reviewers check a template.

    They compare it with a statement. The template becomes stable, or another one is tried, or a person decides.

    Example: evalkit review-template bank.toml statement.pdf
    """
    from evalkit.pipeline.statement_templates import review_and_publish_template

    template_review = review_and_publish_template(
        *_read_template_text_and_file_name(template, output), pdf, output=output, model=model, even_purged=even_purged
    )
    build_json = partial(_convert_template_review_to_json, template_review)
    print_outcome(render_template_review(template_review), build_json, as_json=as_json)
    if template_review.is_case_frozen:
        print_notes(
            f"{template_review.review_result.template.template_id}: an earlier case of this template is open or decided; "
            "that case and the template in the output folder are unchanged"
        )


def apply_template(
    template: TemplateArgument,
    pdf: StatementArgument,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="OUT.csv", help="Write the transactions as a table (CSV).")
    ] = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read a bank statement with a template.

    Prints its transactions, the lines left over, and which of the printed sums the transactions add up to.

    Example: evalkit apply-template bank.toml statement.pdf --to transactions.csv
    """
    import pandas as pd

    from evalkit.evaluation.export import write_private_csv
    from evalkit.statements.reconciliation import reconcile_statement
    from evalkit.statements.statement_parser import TRANSACTION_CSV_COLUMNS, parse_statement
    from evalkit.statements.statement_template import TemplateStatus, parse_template_toml

    statement_template = parse_template_toml(*_read_template_text_and_file_name(template, output))
    statement = parse_statement(statement_template, _read_pdf_in_worker(pdf))
    reconciliation = reconcile_statement(statement_template, statement)
    if to is not None:
        rows = [transaction.model_dump(include=set(TRANSACTION_CSV_COLUMNS)) for transaction in statement.transactions]
        write_private_csv(pd.DataFrame(rows, columns=list(TRANSACTION_CSV_COLUMNS), dtype=object), to)
    if statement_template.status is TemplateStatus.DRAFT:
        print_notes(f"{statement_template.template_id} is a draft: nobody has approved it yet")
    status = {"status": statement_template.status.value}
    print_outcome(
        render_statement(statement, reconciliation),
        lambda: status | _convert_statement_to_json(statement, reconciliation),
        as_json=as_json,
    )


def _read_pdf_in_worker(pdf: Path) -> DocumentBundle:
    """Read one PDF in a process of its own. DocumentError if it cannot be read."""
    from evalkit.core.clocks import format_zulu_now
    from evalkit.pipeline.document_discovery import sanitise_file_stem
    from evalkit.pipeline.event_loop import run_sync
    from evalkit.pipeline.executor.reader_pool import ReaderPool
    from evalkit.pipeline.run_setup import build_reader_config

    with ReaderPool(1, build_reader_config(load_settings())) as reader_pool:
        return run_sync(
            reader_pool.read(pdf.absolute(), doc_id=sanitise_file_stem(pdf), processing_timestamp=format_zulu_now())
        ).bundle


def _read_template_text_and_file_name(template: Path, output: str | None) -> tuple[str, str]:
    """Read a template's text and bare file name, from a path or the output folder."""
    from evalkit.core.safe_io import FileTooLarge, read_regular_file
    from evalkit.store import template_file_name

    name = template_file_name(template.name.removesuffix(".toml"))
    is_file = template.is_file() or template.parent != Path()
    try:
        text = (read_regular_file(template) if is_file else open_output(output).read_bytes(name)).decode()
    except FileTooLarge as error:
        raise UsageError(
            f"{template} is not a template: {error.strerror}", code="TEMPLATE", remedy="Name another file."
        ) from error
    except (OSError, NotFound, UnicodeDecodeError) as error:
        raise UsageError(
            f"there is no template {template}",
            code="TEMPLATE",
            remedy="Name a file that `evalkit build-template` wrote.",
        ) from error
    return text, name.rpartition("/")[2]


def _convert_template_review_to_json(template_review: TemplateReviewSummary) -> dict[str, Any]:
    last_cycle = template_review.review_result.cycles[-1]
    return {
        "template_id": last_cycle.template_id,
        "status": template_review.review_result.template.status.value,
        "outcome": last_cycle.outcome,
        "because": last_cycle.because,
        "attempts": len(template_review.review_result.cycles),
        "issues": [issue.model_dump(mode="json") for issue in last_cycle.issues],
        "escalation": template_review.review_result.template_case.escalation.model_dump(mode="json")
        if template_review.review_result.template_case
        else None,
        "template": template_review.template_path,
        "cycles": list(template_review.cycle_paths),
        "case_id": template_review.case_id,
        "is_taken": template_review.is_case_frozen,
        "cost": template_review.review_result.cost.model_dump(mode="json"),
    }


def _convert_statement_to_json(statement: ParsedStatement, reconciliation: ReconciliationReport) -> dict[str, Any]:
    return {
        "statement": statement.model_dump(mode="json"),
        "reconciliation": {"is_met": reconciliation.has_only_met_checks, **reconciliation.model_dump(mode="json")},
    }
