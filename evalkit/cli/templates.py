"""The commands ``build-template``, ``review-template`` and ``apply-template``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalkit.cli.options import (
    EvenPurgedOption,
    JsonOption,
    ModelOption,
    NoProbeOption,
    create_output_option,
    load_settings,
    open_output,
)
from evalkit.cli.render import format_usage, render_export_comparison, render_statement, render_template_review
from evalkit.cli.terminal import print_blocks, print_json, print_notes, print_outcome
from evalkit.core.clocks import format_zulu_now
from evalkit.errors import NotFound, UsageError

if TYPE_CHECKING:
    from evalkit.documents.bundle import DocumentBundle
    from evalkit.pipeline.statement_templates import TemplateReviewSummary
    from evalkit.statements.bank_export import ExportComparison, ExportedRow
    from evalkit.statements.reconciliation import ReconciliationReport
    from evalkit.statements.statement_parser import ParsedStatement, Transaction

TemplateArgument = Annotated[
    Path, typer.Argument(metavar="T.toml", help="Template: a file, or the name of a template in the output folder.")
]
StatementArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PDF", exists=True, dir_okay=False, help="Bank statement of the bank that the template is for."
    ),
]


def build_template(
    pdf: Annotated[
        Path,
        typer.Argument(metavar="PDF", exists=True, dir_okay=False, help="Bank statement to build the template from."),
    ],
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="T.toml", help="File to write.", show_default="templates/ in the output folder"),
    ] = None,
    model: ModelOption = None,
    no_probe: NoProbeOption = False,
    output: Annotated[str | None, create_output_option("Folder or bucket to write to without --to")] = None,
    as_json: JsonOption = False,
) -> None:
    """Draft a template from a bank statement.

    Prints the transactions that the draft reads, and whether the transactions add up to each sum on the statement.

    Example: evalkit build-template statement.pdf --to bank.toml
    """
    from evalkit.evaluation.private_files import write_private_file
    from evalkit.pipeline import statement_templates
    from evalkit.statements.applied_template import rate_transactions
    from evalkit.statements.statement_template import render_template_toml
    from evalkit.store import template_file_name

    bundle = _read_pdf_in_worker(pdf)
    proposed, usage, proposed_by = statement_templates.build_template(bundle, pdf, model=model, probe=not no_probe)
    if to is None:
        output_folder = open_output(output)
        template_id = statement_templates.choose_template_id(output_folder, proposed.template, bundle.sha256)
        name = template_file_name(template_id)
        target = f"{output_folder.root}/{name}"
        if statement_templates.has_stable_template(output_folder, template_id):
            raise UsageError(
                f"{target} is an approved template",
                code="TEMPLATE",
                remedy="Give another file with --to, or check that template with this statement: `evalkit review-template`.",
            )
        proposed = proposed.apply_other_template(proposed.template.model_copy(update={"template_id": template_id}))
        output_folder.write_text(name, render_template_toml(proposed.template))
    else:
        target = str(to)
        write_private_file(
            render_template_toml(proposed.template),
            to,
            error_code="TEMPLATE",
            remedy="Name another output file with --to.",
        )
    if as_json:
        print_json(
            {"template": target, **_convert_statement_to_json(rate_transactions(proposed), proposed.reconciliation)}
        )
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
    output: Annotated[
        str | None, create_output_option("Folder or bucket to write the template and its reviews to")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Have two reviewers check a template.

    The reviewers compare the template with a statement. An accepted template becomes stable; after a rejection further
    templates are built and reviewed, until one is accepted or a person has to decide.

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
            "that case and the template in the output folder were not changed"
        )
    last_cycle = template_review.review_result.cycles[-1]
    if template_review.reviewed_id != last_cycle.template_id:
        print_notes(
            f"{template_review.reviewed_id} belongs to another statement and stays as it is; this statement's own template "
            f"is {last_cycle.template_id}"
        )
    _print_drift(template_review.reviewed_id, template_review.drift)
    if template_review.drift and last_cycle.outcome != "approved":
        raise typer.Exit(1)


def apply_template(
    template: TemplateArgument,
    pdf: StatementArgument,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="OUT.csv", help="Also write the transactions to this file: OUT.csv, OUT.xlsx or OUT.ofx."
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="FILE",
            help="Compare dates and amounts with the bank's own CSV or OFX file of the same month; exit status 1 if they differ.",
        ),
    ] = None,
    year: Annotated[
        int | None,
        typer.Option(
            "--year",
            metavar="YEAR",
            min=1900,
            max=2100,
            help="Year of the last transaction, if the statement prints no year.",
        ),
    ] = None,
    output: Annotated[
        str | None, create_output_option("Folder or bucket that holds the template, if T.toml is a name")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read a bank statement with a template.

    Prints the transactions, the lines that belong to no transaction, and whether the transactions add up to each sum on
    the statement.

    Example: evalkit apply-template bank.toml statement.pdf --to transactions.csv
    """
    from evalkit.evaluation.private_files import write_private_file
    from evalkit.statements.applied_template import AppliedTemplate, rate_transactions
    from evalkit.statements.bank_export import compare_with_export, read_bank_export
    from evalkit.statements.statement_template import TemplateStatus, parse_template_toml
    from evalkit.statements.template_drift import find_template_drift
    from evalkit.statements.transaction_files import StatementReading, select_file_writer

    render_file = select_file_writer(to) if to else None
    exported_rows = read_bank_export(check) if check else None
    statement_template = parse_template_toml(*_read_template_text_and_file_name(template, output))
    bundle = _read_pdf_in_worker(pdf)
    applied_template = AppliedTemplate.create(statement_template, bundle)
    if year is not None:
        applied_template = applied_template.complete_years(year)
    statement, reconciliation = rate_transactions(applied_template), applied_template.reconciliation
    if to is not None and render_file is not None:
        reading = StatementReading(statement_template, statement, [page.text for page in bundle.pages])
        write_private_file(render_file(reading), to, error_code="TEMPLATE-TABLE")
    if statement_template.status is TemplateStatus.DRAFT:
        print_notes(
            f"{statement_template.template_id} is a draft: neither the reviewers nor a person approved this template"
        )
    comparison = None if exported_rows is None else compare_with_export(statement.transactions, exported_rows)
    drift = find_template_drift(applied_template, bundle.sha256)
    status = {"status": statement_template.status.value}
    print_outcome(
        chain(render_statement(statement, reconciliation), render_export_comparison(comparison) if comparison else ()),
        lambda: (
            status
            | _convert_statement_to_json(statement, reconciliation)
            | ({"check": _convert_comparison_to_json(comparison)} if comparison else {})
            | ({"drift": drift} if drift else {})
        ),
        as_json=as_json,
    )
    _print_drift(statement_template.template_id, drift)
    if drift or (comparison and not comparison.is_same):
        raise typer.Exit(1)


def _print_drift(template_id: str, drift: Sequence[str]) -> None:
    from evalkit.statements.template_drift import DRIFT_REMEDY

    if drift:
        print_notes(
            f"{template_id} no longer fits what the bank prints:", *(f"  {message}" for message in drift), DRIFT_REMEDY
        )


def _read_pdf_in_worker(pdf: Path) -> DocumentBundle:
    """Read one PDF in a separate process. DocumentError if the PDF cannot be read."""
    from evalkit.pipeline.document_discovery import sanitise_file_stem
    from evalkit.pipeline.event_loop import run_sync
    from evalkit.pipeline.executor.reader_pool import ReaderPool
    from evalkit.pipeline.run_setup import build_reader_config

    with ReaderPool(1, build_reader_config(load_settings())) as reader_pool:
        return run_sync(
            reader_pool.read(pdf.absolute(), doc_id=sanitise_file_stem(pdf), processing_timestamp=format_zulu_now())
        ).bundle


def _read_template_text_and_file_name(template: Path, output: str | None) -> tuple[str, str]:
    """Return a template's text and file name without folder.

    ``template``: a path, or the name of a template in the output folder. UsageError if there is none, or the file is
    too large.
    """
    from evalkit.core.safe_io import FileTooLarge, read_regular_file
    from evalkit.store import template_file_name

    name = template_file_name(template.name.removesuffix(".toml"))
    is_file = template.is_file() or template.parent != Path()
    try:
        text = (read_regular_file(template) if is_file else open_output(output).read_bytes(name)).decode()
    except FileTooLarge as error:
        raise UsageError(
            f"{template} is not a template: {error.strerror}",
            code="TEMPLATE",
            remedy="Give a file that `evalkit build-template` wrote.",
        ) from error
    except (OSError, NotFound, UnicodeDecodeError) as error:
        raise UsageError(
            f"there is no template {template}",
            code="TEMPLATE",
            remedy="Give a file that `evalkit build-template` wrote, or the name of a template in the output folder.",
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
        "drift": list(template_review.drift),
        "cost": template_review.review_result.cost.model_dump(mode="json"),
    }


def _convert_statement_to_json(statement: ParsedStatement, reconciliation: ReconciliationReport) -> dict[str, Any]:
    return {
        "statement": statement.model_dump(mode="json"),
        "reconciliation": {"is_met": reconciliation.has_only_met_checks, **reconciliation.model_dump(mode="json")},
    }


def _convert_comparison_to_json(comparison: ExportComparison) -> dict[str, Any]:
    def convert(transaction: Transaction | None, row: ExportedRow | None) -> dict[str, Any]:
        return {
            "read": transaction
            and transaction.model_dump(mode="json", include={"date", "description", "amount", "page"}),
            "bank": row and {"dates": row.dates, "description": row.description, "amount": str(row.amount)},
        }

    return {
        "is_same": comparison.is_same,
        "equal": len(comparison.equal),
        "differing": [convert(*pair) for pair in comparison.differing],
        "missing": [convert(None, row) for row in comparison.missing],
        "extra": [convert(transaction, None) for transaction in comparison.extra],
    }
