"""Building and review of bank-statement templates: ``evalkit review-template``."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path, PurePath

from rapidfuzz import fuzz

from evalkit.core.clocks import format_zulu_now
from evalkit.documents.bundle import BUNDLE_SCHEMA_VERSION as BUNDLE_VERSION
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.page_pictures import PageImage, render_page_images
from evalkit.errors import RunStopped, StoreError, UsageError
from evalkit.llm.model import Usage
from evalkit.pipeline.document_discovery import SourceDocument, discover_documents, sanitise_file_stem
from evalkit.pipeline.document_reading import (
    load_bundle_if_current,
    map_doc_ids_by_sha256,
    read_document_and_save_bundle,
)
from evalkit.pipeline.event_loop import run_sync
from evalkit.pipeline.executor.reader_pool import ReaderPool
from evalkit.pipeline.model_session import EMBEDDED_MODEL_NAME, ModelSession
from evalkit.pipeline.options import resolve_settings
from evalkit.pipeline.purge import exclude_purged
from evalkit.pipeline.run_setup import build_reader_config
from evalkit.review import (
    SMEPacketGenerator,
    hold_case_write_lock,
    is_packet_frozen,
    open_index,
    publish_packet_unless_frozen,
    withdraw_packet_unless_frozen,
)
from evalkit.review.shown_documents import load_shown_pdf
from evalkit.review.template_editing import read_stored_template
from evalkit.settings import Settings
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.convergence import MAX_RETRIES_BY_SCENARIO, RetryScenario
from evalkit.statements.review_cycles import SCHEMA_VERSION, TEMPLATE_CASE_SUFFIX, ReviewCycle
from evalkit.statements.reviewer_report import SHOWN_ISSUE_CAPS
from evalkit.statements.statement_template import (
    StatementTemplate,
    TemplateStatus,
    parse_template_toml,
    render_template_toml,
)
from evalkit.statements.template_builder import ProposalResult, build_best_template, build_draft_template
from evalkit.statements.template_drift import find_template_drift
from evalkit.statements.template_review_loop import (
    ReviewLoopConfig,
    TemplateReviewLoop,
    TemplateReviewResult,
)
from evalkit.statements.worker_thread import run_in_daemon_thread
from evalkit.store import (
    BUNDLES_FOLDER,
    TEMPLATE_REVIEWS_FOLDER,
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    open_output_folder,
    template_file_name,
    template_review_file_name,
)

#: Maximum number of pages shown to a model: the first pages and the last one.
_MAX_PICTURES = 20
#: Similarity in percent from which two bank names count as the same: an OCR engine may misread a letter.
_SAME_NAME_PERCENT = 85.0


@dataclass(frozen=True)
class TemplateReviewSummary:
    """Summary of ``evalkit review-template``: review result, written files and case."""

    doc_id: str
    """The doc_id of the bank statement."""
    review_result: TemplateReviewResult
    template_path: str
    """The template's file in the output folder."""
    cycle_paths: tuple[str, ...]
    """The files of the review cycles."""
    case_id: str | None
    """The case that a person has to decide; None if the template was approved."""
    is_case_frozen: bool
    """True if a person has an earlier case of the template open, or has decided it: then case and template stay
    unchanged."""
    by_agent: Mapping[str, Usage]
    """The usage of language models by role."""
    reviewed_id: str
    """The id of the template that was to be reviewed; another one if it belongs to another statement."""
    drift: tuple[str, ...]
    """Why a stable template no longer fits what the bank prints, as sentences."""


def review_and_publish_template(
    template_toml: str,
    toml_file_name: str,
    statement_pdf: Path,
    *,
    output: Path | str | None = None,
    model: str | None = None,
    even_purged: bool = False,
    settings: Settings | None = None,
) -> TemplateReviewSummary:
    """Review a template against a bank statement, and store the outcome.

    The review cycles, the template, and a case if a person must decide are written. Works inside Jupyter too.

    Args:
        template_toml: the template as TOML.
        toml_file_name: the name of the template's file, for errors.
        statement_pdf: the bank statement.
        output: the folder to write to.
        model: the model that reviews, arbitrates and builds, unless ``[vllm_review.reviewers]`` names another.
        even_purged: import the statement again if it was purged.
        settings: used instead of the environment and ``evalkit.toml``.

    Raises:
        UsageError: the template is invalid or of another bank; the statement was purged; the review cannot start.
        DocumentError: the statement cannot be read.
    """
    resolved_settings = resolve_settings(settings=settings, output=output, model=model)
    output_folder = open_output_folder(output or resolved_settings.output, resolved_settings.database)
    return run_sync(
        _review_and_publish_template(
            parse_template_toml(template_toml, toml_file_name),
            statement_pdf,
            output_folder,
            resolved_settings,
            even_purged=even_purged,
        )
    )


async def _review_and_publish_template(
    template: StatementTemplate,
    statement_pdf: Path,
    output_folder: OutputFolder,
    settings: Settings,
    *,
    even_purged: bool,
) -> TemplateReviewSummary:
    reader_config = build_reader_config(settings)
    with output_folder.hold_run_lock(saves_in_steps=True), open_index(output_folder) as index:
        source = _identify_statement(output_folder, index, statement_pdf, even_purged=even_purged)
        bundle = load_bundle_if_current(output_folder, source, reader_config.reader_version)
        if bundle is None:
            with ReaderPool(1, reader_config) as reader_pool:
                bundle = (
                    await read_document_and_save_bundle(output_folder, source, reader_pool, format_zulu_now())
                ).bundle
        _require_same_bank(template, bundle)
        drifts = find_template_drift(AppliedTemplate.create(template, bundle), bundle.sha256)
        reviewed_id = template.template_id
        own_id = choose_template_id(output_folder, template, bundle.sha256)
        stored_template = read_stored_template(output_folder, template.template_id)
        is_of_other_statement = own_id != template.template_id and (
            stored_template is None or _has_same_rules(stored_template, template)
        )
        if not is_of_other_statement:
            template = template.model_copy(update={"template_id": own_id})
        async with ModelSession(settings, index.call_journal, for_template_review=True) as model_session:
            pictures = (
                render_statement_images(load_shown_pdf(output_folder, bundle), bundle, settings)
                if model_session.has_language_models
                else ()
            )
            review_loop = TemplateReviewLoop(
                model_session.model.get_model, build_review_loop_config(settings), clock=format_zulu_now
            )
            cycle_paths: list[str] = []

            def save_cycle(cycle: ReviewCycle) -> None:
                number = _find_next_cycle_number(output_folder, cycle.template_id)
                cycle_paths.append(template_review_file_name(cycle.template_id, number))
                output_folder.write_json(cycle_paths[-1], cycle.model_dump(mode="json"))

            review_result = await review_loop.review_template(
                template,
                bundle,
                page_images=pictures,
                id_if_rejected=own_id if is_of_other_statement else "",
                first_cycle_number=sum(
                    _find_next_cycle_number(output_folder, template_id)
                    for template_id in {template.template_id, own_id}
                ),
                on_cycle=save_cycle,
            )
            if await model_session.wait_until_up():  # the reviewers' deadlines may have passed during the outage
                raise RunStopped(
                    "a reviewing model's service was down during the review",
                    code="LLM-UNREACHABLE",
                    remedy="Run the same command again: answers so far are stored.",
                )
        if review_result.template.template_id != own_id and stored_template:
            # The template of another statement reads this one too: that statement's template and case stay.
            case_id, is_case_frozen = None, stored_template.status is not TemplateStatus.STABLE
        else:
            case_id, is_case_frozen = _save_template_and_queue_case(output_folder, index, review_result, bundle)
    return TemplateReviewSummary(
        source.doc_id,
        review_result,
        template_file_name(review_result.template.template_id),
        tuple(cycle_paths),
        case_id,
        is_case_frozen,
        model_session.ledger.usage_by_role,
        reviewed_id,
        tuple(drifts),
    )


def build_template(
    bundle: DocumentBundle, statement_pdf: Path, *, model: str | None = None, probe: bool = True
) -> ProposalResult:
    """Build a template for the bank statement in ``bundle``.

    ``statement_pdf`` is the file from which the bundle was read. ``model`` may propose a better template than the
    measured one; ``probe``: ask it a tiny test question first. DocumentError STATEMENT-NO-TABLE if the statement has no
    columns of dates and amounts; UsageError if the model cannot be used.
    """
    return run_sync(_build_template(bundle, statement_pdf, resolve_settings(model=model), probe=probe))


async def _build_template(
    bundle: DocumentBundle, statement_pdf: Path, settings: Settings, *, probe: bool
) -> ProposalResult:
    async with ModelSession(settings, for_template_review=True) as model_session:
        if probe:
            await model_session.probe_models()
        builder = model_session.model.get_model("builder")
        pictures = (
            render_statement_images(statement_pdf, bundle, settings) if builder.name != EMBEDDED_MODEL_NAME else ()
        )
        draft = await run_in_daemon_thread(lambda: build_draft_template(bundle))
        return await build_best_template(builder, bundle, draft, page_images=pictures)


def build_review_loop_config(settings: Settings) -> ReviewLoopConfig:
    """Build the review loop's configuration from the setting ``[vllm_review]``."""
    review_settings = settings.vllm_review
    retries: dict[RetryScenario, int] = {
        scenario: min(maximum, review_settings.retry.max_attempts)
        for scenario, maximum in MAX_RETRIES_BY_SCENARIO.items()
    }
    retries["both_fail"] = review_settings.retry.max_attempts
    maximum, timeouts, reviewer_settings = (
        review_settings.pass_criteria,
        review_settings.timeouts,
        review_settings.reviewers,
    )
    return ReviewLoopConfig(
        is_dual_review_enabled=review_settings.enabled,
        max_issues_by_severity={
            "critical": maximum.max_critical,
            "high": maximum.max_high,
            "medium": maximum.max_medium,
            "low": maximum.max_low,
        },
        shown_issue_caps={category: getattr(review_settings.issue_caps, category) for category in SHOWN_ISSUE_CAPS},
        max_retries_by_scenario=retries,
        diverging_below=review_settings.retry.convergence_threshold,
        temperature_by_role={
            "layout_geometry": reviewer_settings.layout_temperature,
            "semantic_financial": reviewer_settings.semantic_temperature,
            "arbitrator": reviewer_settings.arbitrator_temperature,
        },
        reviewer_seconds=timeouts.single_reviewer_seconds,
        both_reviewers_seconds=timeouts.both_reviewers_seconds,
        arbitration_seconds=timeouts.arbitration_seconds,
        cycle_seconds=timeouts.total_cycle_seconds,
    )


def render_statement_images(
    statement_pdf: Path | bytes, bundle: DocumentBundle, settings: Settings
) -> tuple[PageImage, ...]:
    """Render the pages that a model is shown: the first pages and the last page.

    DocumentError if a page cannot be rendered.
    """
    pages = range(1, bundle.total_pages + 1)
    shown_pages = pages if len(pages) <= _MAX_PICTURES else (*pages[: _MAX_PICTURES - 1], pages[-1])
    return render_page_images(statement_pdf, dict.fromkeys(shown_pages, ()), settings.picture_pixels)


def has_stable_template(output_folder: OutputFolder, template_id: str) -> bool:
    """Return True if the output folder has a stable template of this name."""
    stored_template = read_stored_template(output_folder, template_id)
    return stored_template is not None and stored_template.status is TemplateStatus.STABLE


def choose_template_id(output_folder: OutputFolder, template: StatementTemplate, statement_sha256: str) -> str:
    """Choose the id under which a statement's new template is stored.

    The template's id unless it belongs to another statement; then the first number, ``_v2`` and so on, that is free or
    the statement's.
    """
    base_name = re.sub(r"_v\d+$", "", template.template_id)
    numbered_ids = (f"{base_name}_v{number}" for number in count(2))
    return next(
        template_id
        for template_id in chain((template.template_id,), numbered_ids)
        if _find_owner(output_folder, template_id, template) in ("", statement_sha256)
    )


def _find_owner(output_folder: OutputFolder, template_id: str, template: StatementTemplate) -> str:
    """Return the hash of the statement that owns a template id; empty if unknown.

    ``template``: the template to store; its id belongs to its statement if nothing is stored under it.
    """
    stored_template = read_stored_template(output_folder, template_id)
    if stored_template and stored_template.identity.built_from:
        return stored_template.identity.built_from
    if cycle_names := output_folder.list_json_files(f"{TEMPLATE_REVIEWS_FOLDER}/{template_id}"):
        return str(
            output_folder.read_json(cycle_names[0], max_schema_version=SCHEMA_VERSION).get("statement_sha256", "")
        )
    return template.identity.built_from if template_id == template.template_id and not stored_template else ""


def _has_same_rules(template: StatementTemplate, other_template: StatementTemplate) -> bool:
    """Return True if both templates read alike.

    They differ in version or status at most.
    """
    unified = {"version": other_template.version, "status": other_template.status}
    return template.model_copy(update=unified) == other_template


def _save_template_and_queue_case(
    output_folder: OutputFolder, index: OutputIndex, review_result: TemplateReviewResult, bundle: DocumentBundle
) -> tuple[str | None, bool]:
    """Save a template, and queue a case if a person has to decide.

    A draft replaces no stable template.
    Returns the case_id (None if approved; an earlier case is withdrawn), and True if a person had the case before: then
    the template is not saved, because the person's decision ranks above any review by machines.
    """
    template = review_result.template
    case_id = template.template_id + TEMPLATE_CASE_SUFFIX
    with hold_case_write_lock(output_folder, case_id):
        is_case_frozen = is_packet_frozen(output_folder, index, case_id, format_zulu_now())
        if not is_case_frozen and (
            template.status is not TemplateStatus.DRAFT or not has_stable_template(output_folder, template.template_id)
        ):
            output_folder.write_text(template_file_name(template.template_id), render_template_toml(template))
    if review_result.template_case is None:
        withdraw_packet_unless_frozen(output_folder, index, case_id)
        return None, is_case_frozen
    created_at = str(review_result.cycles[-1].times["ended_at"])
    publish_packet_unless_frozen(
        output_folder,
        index,
        SMEPacketGenerator().template_packet(review_result.template_case, bundle, created_at=created_at),
    )
    return case_id, is_case_frozen


def _identify_statement(
    output_folder: OutputFolder, index: OutputIndex, pdf: Path, *, even_purged: bool
) -> SourceDocument:
    doc_id_by_sha256 = map_doc_ids_by_sha256(output_folder, index)
    # A statement only has a bundle: a bundle with a similar name may be of this file, which then keeps its doc_id.
    file_stem = sanitise_file_stem(pdf)
    bundle_ids = [PurePath(name).stem for name in output_folder.list_json_files(BUNDLES_FOLDER)]
    similar_ids = [doc_id for doc_id in bundle_ids if doc_id == file_stem or doc_id.startswith(f"{file_stem}-")]
    for doc_id in similar_ids:
        with suppress(StoreError, LookupError):
            doc_id_by_sha256.setdefault(
                output_folder.read_json(bundle_file_name(doc_id), max_schema_version=BUNDLE_VERSION)["sha256"], doc_id
            )
    discovered = discover_documents([pdf], doc_id_by_sha256, reserved_ids=similar_ids)
    discovered = exclude_purged(output_folder, discovered, doc_id_by_sha256, even_purged=even_purged)
    for problem in discovered.problems:
        raise problem
    (source,) = discovered.sources
    if source.read_error:
        raise source.read_error
    return source


def _require_same_bank(template: StatementTemplate, bundle: DocumentBundle) -> None:
    """Raise UsageError if the statement is of another bank than the template.

    A template rebuilt from this statement would be of the other bank.
    """
    printed_text = _normalise_text(bundle.pages[0].text)
    bank_marks = [_normalise_text(bank_mark) for bank_mark in template.identity.signs]
    if bank_marks and not any(
        fuzz.partial_ratio(bank_mark, printed_text) >= _SAME_NAME_PERCENT for bank_mark in bank_marks
    ):
        raise UsageError(
            f"the statement contains none of the texts (`signs`) by which template {template.template_id} recognises its bank",
            code="TEMPLATE-OTHER-BANK",
            remedy="Name a statement of the template's bank, or correct `signs` in the template's identity.",
        )


def _normalise_text(text: str) -> str:
    return re.sub(r"\s+", " ", text).casefold()


def _find_next_cycle_number(output_folder: OutputFolder, template_id: str) -> int:
    reviews_folder = f"{TEMPLATE_REVIEWS_FOLDER}/{template_id}"
    numbers = (
        re.fullmatch(r"cycle_(\d+)", PurePath(name).stem) for name in output_folder.list_json_files(reviews_folder)
    )
    return max((int(match[1]) for match in numbers if match), default=0) + 1
