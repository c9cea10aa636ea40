"""Run over many documents: read each, decide on it, and store the results."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.classification.document_result import DocumentFailure, DocumentResult, Failure
from evalkit.classification.orchestrator import ClassificationOutcome
from evalkit.classification.patient_check import PatientExpectation
from evalkit.classification.patient_keys import (
    attach_patient_keys,
    compute_patient_keys_by_page_range,
    load_or_create_patient_salt,
)
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.clocks import format_zulu_now
from evalkit.core.log_events import log_event
from evalkit.core.timings import FAILED_STEP, Times
from evalkit.documents.attachments import get_source_folder
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.file_properties import describe_file
from evalkit.documents.identity.file_persons import group_pages_by_person
from evalkit.errors import DocumentError, EvalkitError, ExecutorError, RunStopped, StoreError
from evalkit.llm.model import Usage
from evalkit.pipeline.batch_execution import process_documents, run_uninterrupted_storage_operation
from evalkit.pipeline.document_discovery import (
    DiscoveredDocuments,
    SourceDocument,
    discover_documents,
    encode_path_as_text,
    list_paths,
)
from evalkit.pipeline.document_reading import (
    create_and_save_unread_bundle,
    load_bundle_if_current,
    log_and_wrap_unexpected_error,
    read_document_and_save_bundle,
)
from evalkit.pipeline.drift import find_brakes_by_stratum
from evalkit.pipeline.event_log import read_events
from evalkit.pipeline.executor.protocol import BundleWithTimings, Executor, ReaderConfig
from evalkit.pipeline.executor.selection import open_executor
from evalkit.pipeline.field_extraction import FieldExtractionPipeline, load_or_extract_and_publish_fields
from evalkit.pipeline.fingerprint import collect_versions, compute_fingerprint, describe_settings
from evalkit.pipeline.input_monitoring import InputMonitor
from evalkit.pipeline.model_session import EMBEDDED_MODEL_NAME, ModelSession
from evalkit.pipeline.options import RunOptions, resolve_settings
from evalkit.pipeline.patient_roster import build_patient_expectation
from evalkit.pipeline.purge import exclude_purged
from evalkit.pipeline.run_estimate import RunEstimate
from evalkit.pipeline.run_history import ModelUsage, RunInputs, begin_or_continue_run
from evalkit.pipeline.run_setup import build_reader_config, create_orchestrator
from evalkit.pipeline.run_summary import DocumentSummary, RunSummary, RunTimings, summarise_failure, summarise_result
from evalkit.pipeline.sample_draws import (
    AuditDraw,
    compute_result_risk,
    is_drawn_for_audit,
    measure_mean_risk_deviation,
    read_probability_by_drawn_doc_id,
)
from evalkit.pipeline.site_weights import find_promotions_in_force, use_weights_in_force
from evalkit.pipeline.strata import build_stratum_key
from evalkit.pipeline.supplied_inputs import SuppliedInputs, keep_earlier_classifications, read_supplied_inputs
from evalkit.review import (
    SMEPacketGenerator,
    find_newest_revision,
    hold_case_write_lock,
    is_packet_frozen,
    is_simulated_reviewer,
    iterate_check_case_and_doc_ids,
    list_document_case_ids,
    load_if_intact,
    open_index,
    publish_packet_unless_frozen,
    read_bundle,
    read_result,
    withdraw_packet_unless_frozen,
    withdraw_silver_ground_truth,
    write_silver_ground_truth,
)
from evalkit.review.ground_truth import read_silver_audit_probability, remove_mismatched_silver_fields
from evalkit.review.review_plan import ReviewCosts
from evalkit.review.shown_documents import load_shown_pdf
from evalkit.settings import Settings
from evalkit.statements.statement_detection import BANK_STATEMENT_CODE, refuse_bank_statement
from evalkit.store import (
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    converted_file_name,
    extraction_file_name,
    open_output_folder,
    packet_file_name,
    result_file_name,
    store_own_types,
)

if TYPE_CHECKING:
    from evalkit.documents.page_pictures import PageImage

log = logging.getLogger(__name__)

#: Codes of errors that may not occur again when the document is processed again.
_TRANSIENT_ERROR_CODES = frozenset(
    {"READER-CRASHED", "READER-MEMORY", "READER-TIMEOUT", "READER-UNREADABLE", "READER-CHANGED", "UNEXPECTED"}
) | {f"DOCUMENTAI-{suffix}" for suffix in ("KEY", "MALFORMED", "PROCESSOR", "RATE", "SERVER", "TIMEOUT", "UNREACHABLE")}


def create_result(
    bundle: DocumentBundle,
    outcome: ClassificationOutcome,
    settings: Settings,
    result_fingerprint: str,
    times: Times,
    patient_salt: bytes | None,
) -> DocumentResult:
    """Build the record that is stored as a document's result.

    Without a salt, segments get no patient keys.
    """
    answer, persons = outcome.classification, group_pages_by_person(bundle.pages)
    patients = compute_patient_keys_by_page_range(answer, persons, patient_salt) if answer and patient_salt else {}
    return DocumentResult(
        doc_id=bundle.doc_id,
        sha256=bundle.sha256,
        fingerprint=result_fingerprint,
        decision=outcome.verdict.decision,
        decision_rule=outcome.verdict.rule,
        decision_reason=outcome.verdict.reason,
        classification=answer and attach_patient_keys(answer, patients),
        issues=outcome.issues,
        attempts=outcome.attempts,
        evidence_quality_score=outcome.evidence_quality_score,
        grounded_ratio=outcome.grounded_ratio,
        unanswered=outcome.unanswered,
        usage=outcome.usage,
        model=settings.models.default,
        reader=bundle.reader,
        versions=collect_versions(settings.traps_file, settings.verifiers, settings.prompts_folder)
        | ({"models": settings.models.model_name_by_role} if settings.models.model_name_by_role else {}),
        properties=describe_file(bundle.file_path, bundle.pages, persons),
        times=times,
    )


async def run_documents(options: RunOptions) -> RunSummary:
    """Process documents as :func:`evalkit.run` does, on the caller's event loop.

    A finished document stays finished: its files are written first and its row of the index last, so a killed run
    repeats only the documents that were in progress. A document with an unchanged fingerprint is neither read again,
    nor is a model asked about it.
    """
    monotonic_start = time.monotonic()
    async with _open_document_run(options) as document_run:
        if options.probe and document_run.count_finished_documents() < len(document_run.discovered.sources):
            await document_run.model_session.probe_models()
        is_complete = False
        try:
            documents = await document_run.process_sources()
            is_complete = True
        finally:  # a run that is stopped has decided documents too
            document_run.input_monitor.save(document_run.started_at)
            document_run.record_session(time.monotonic() - monotonic_start, is_complete=is_complete)
        document_run.record_problems += document_run.model_session.mark_run_finished()
    return replace(
        RunSummary.create(
            documents,
            document_run.discovered,
            output=document_run.output_folder.root,
            monotonic_start=monotonic_start,
            by_agent=document_run.model_session.ledger.usage_by_role,
            further_problems=(
                *document_run.supplied_inputs.problems,
                *document_run.record_problems,
                *filter(None, [document_run.output_folder.changes.problem]),
            ),
        ),
        timings=document_run.timings,
        unknown_production_labels=document_run.supplied_inputs.unknown_production_labels,
        promotion=document_run.promotion,
        run=document_run.recorder.name,
        kept_classifications=document_run.kept_classifications,
    )


async def estimate_documents(options: RunOptions) -> RunEstimate:
    """Estimate what a run would cost, without any call of a model.

    The documents are read, and their bundles stored for the run; every question is built. No key is needed.
    """
    async with _open_document_run(options, estimates_only=True) as document_run:
        finished = document_run.count_finished_documents()
        problems = await document_run.estimate_sources()
        models = document_run.model_session.estimated_models
        return RunEstimate.create(
            models,
            {model.name: document_run.index.call_journal.measure_mean_seconds(model.name) for model in models},
            documents=len(problems),
            finished=finished,
            problems=(*map(str, document_run.discovered.problems), *filter(None, problems)),
            calls_in_flight=document_run.settings.calls_in_flight,
        )


@asynccontextmanager
async def _open_document_run(options: RunOptions, *, estimates_only: bool = False) -> AsyncIterator[_DocumentRun]:
    """Lock the output folder, find the documents and connect the models of a run."""
    settings = resolve_settings(**vars(options))
    output_folder = open_output_folder(options.output or settings.output, settings.database)
    reader_config = build_reader_config(settings)
    with (
        output_folder.hold_run_lock(saves_in_steps=True),
        use_weights_in_force(output_folder),
        open_index(output_folder) as index,
    ):
        if settings.types_file is not None:
            store_own_types(output_folder, settings.types_file)
        earlier_rows = index.list_documents()
        row_by_sha256 = {row["sha256"]: row for row in earlier_rows if row["sha256"]}
        doc_id_by_sha256 = {sha256: row["doc_id"] for sha256, row in row_by_sha256.items()}
        discovered = discover_documents(
            options.paths,
            doc_id_by_sha256,
            reserved_ids=(case_id for case_id, _ in iterate_check_case_and_doc_ids(output_folder)),
            output_root=output_folder.root,
            yes=options.yes,
            settle_seconds=options.settle_seconds,
        )
        options, kept_classifications = keep_earlier_classifications(output_folder, options)
        discovered = discovered.leave_out_skipped((options.production, options.patients_file, options.classifications))
        discovered = exclude_purged(output_folder, discovered, doc_id_by_sha256, even_purged=options.even_purged)
        supplied_inputs = read_supplied_inputs(
            options,
            settings,
            output_folder,
            discovered.sources,
            {row["doc_id"]: row["file_path"] for row in earlier_rows},
            is_classification_required=not kept_classifications,
        )
        async with ModelSession(
            settings,
            index.call_journal,
            fresh=options.fresh,
            for_extraction=options.extract,
            estimates_only=estimates_only,
        ) as model_session:
            yield _DocumentRun(
                options,
                settings,
                reader_config,
                output_folder,
                index,
                model_session,
                {row["doc_id"]: row for row in row_by_sha256.values()},
                supplied_inputs,
                discovered,
                kept_classifications,
            )


class _DocumentRun:
    def __init__(
        self,
        options: RunOptions,
        settings: Settings,
        reader_config: ReaderConfig,
        output_folder: OutputFolder,
        index: OutputIndex,
        model_session: ModelSession,
        row_by_doc_id: Mapping[str, Mapping[str, Any]],
        supplied_inputs: SuppliedInputs,
        discovered: DiscoveredDocuments,
        kept_classifications: str | None,
    ) -> None:
        self._options = options
        self.kept_classifications = kept_classifications
        self.supplied_inputs = supplied_inputs
        self.discovered = discovered
        self._patient_salt = load_or_create_patient_salt(output_folder)
        self.settings = settings
        self.output_folder = output_folder
        self.index = index
        self._row_by_doc_id = row_by_doc_id
        self._reader_config = reader_config
        self.model_session = model_session
        self._orchestrator = create_orchestrator(settings, model_session)
        self._field_extraction = (
            FieldExtractionPipeline(settings, model_session, collect_versions(prompts_folder=settings.prompts_folder))
            if options.extract
            else None
        )
        self._sampled_probabilities = read_probability_by_drawn_doc_id(output_folder)
        self._braked_strata = find_brakes_by_stratum(read_events(output_folder)).keys()
        self.input_monitor = InputMonitor(output_folder, self._patient_salt)
        self.started_at = format_zulu_now()
        self.timings = RunTimings()
        self._fingerprint_by_doc_id = {
            source.doc_id: compute_fingerprint(
                source.sha256 or "",
                settings,
                self._reader_config.reader_version,
                supplied_inputs.classification_by_doc_id.get(source.doc_id),
                self._build_patient_expectation(source),
            )
            for source in discovered.sources
        }
        self.recorder = begin_or_continue_run(
            output_folder,
            options.name,
            inputs=RunInputs(
                paths=tuple(encode_path_as_text(os.path.abspath(path)) for path in list_paths(options.paths)),
                extract=options.extract,
                **{
                    name: encode_path_as_text(os.path.abspath(path))
                    for name in ("production", "patients_file", "classifications")
                    if (path := getattr(options, name)) is not None
                },
            ),
            settings=describe_settings(settings, reader_config.reader_version),
            fingerprint_by_doc_id=self._fingerprint_by_doc_id,
            started_at=self.started_at,
            fresh=options.fresh,
        )
        self.record_problems: tuple[str, ...] = ()
        self.promotion = next(iter(find_promotions_in_force(output_folder)[-1:]), None)
        self._review_costs = ReviewCosts.from_closings(
            settings.prices, [row for row in index.list_closings() if not is_simulated_reviewer(row["reviewer"])]
        )
        self._audit_draw = self.recorder.audit_draw = AuditDraw.create(
            settings,
            sum(row["review_reason"] == "audit" for row in index.list_cases_worst_first("completed")),
            measure_mean_risk_deviation(
                output_folder,
                (
                    (row["sha256"], doc_id)
                    for doc_id, row in row_by_doc_id.items()
                    if row["decision"] == Decision.AUTO_ACCEPT.value
                ),
            ),
        )

    def record_session(self, seconds: float, *, is_complete: bool) -> None:
        ledger = self.model_session.ledger
        usages = {
            name: ModelUsage(
                calls=usage.calls,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cost_usd=usage.cost_usd,
            )
            for name, usage in ledger.usage_by_model.items()
        }
        seconds_by_model = dict(ledger.seconds_by_model)
        if deciding_seconds := self.timings.seconds_by_step["deciding"]:
            usages[EMBEDDED_MODEL_NAME], seconds_by_model[EMBEDDED_MODEL_NAME] = ModelUsage(), deciding_seconds
        try:
            self.recorder.finish(
                is_complete=is_complete, seconds=seconds, usage_by_model=usages, seconds_by_model=seconds_by_model
            )
        except StoreError as error:  # what the run decided is stored, and still to be told
            self.record_problems = (f"The history of runs lacks this run: {error}",)

    def count_finished_documents(self) -> int:
        return sum(map(self._is_finished, self.discovered.sources))

    def _is_finished(self, source: SourceDocument) -> bool:
        row = self._row_by_doc_id.get(source.doc_id)
        if self._options.fresh or row is None or row["fingerprint"] != self._fingerprint_by_doc_id[source.doc_id]:
            return False
        if self.model_session.estimated_models and self._has_open_question(source):
            return False
        # An earlier run may not have been asked for fields; a document that failed has none.
        return (
            not self._field_extraction
            or row["error_code"] is not None
            or self.output_folder.has_file(extraction_file_name(source.doc_id))
        )

    def _has_open_question(self, source: SourceDocument) -> bool:
        result = load_if_intact(read_result, self.output_folder, source.doc_id)
        return isinstance(result, DocumentResult) and self._is_unanswered(result)

    def _is_unanswered(self, result: DocumentResult) -> bool:
        """Return True if a model failed to answer a question of this document.

        Asked again, the model may answer now; the journal has the other answers.
        """
        codes = {issue.code for issue in result.open_issues}
        is_supplied = result.doc_id in self.supplied_inputs.classification_by_doc_id
        has_failed_agent = bool(result.unanswered) or any(code.endswith("-AGENT-FAILED") for code in codes)
        return has_failed_agent or (not is_supplied and "V1-UNPARSEABLE" in codes)

    async def process_sources(self) -> list[DocumentSummary]:
        """Process all documents, several at a time; return their summaries in order."""
        # While a call waits for the provider, this machine can process another document.
        extra_in_flight = self.settings.calls_in_flight if self.model_session.has_language_models else 0
        return await process_documents(
            self.discovered.sources,
            self._open_executor(),
            self._process_document,
            extra_in_flight=extra_in_flight,
            on_progress=self._options.on_progress,
            find_setup_error=lambda: self.model_session.setup_error,
        )

    async def estimate_sources(self) -> list[str | None]:
        """Count what unfinished documents cost; return the problem of each, or None."""
        return await process_documents(
            self.discovered.sources, self._open_executor(), self._estimate_document, on_progress=None
        )

    def _open_executor(self) -> AbstractAsyncContextManager[Executor]:
        return open_executor(
            self.settings,
            self._reader_config,
            [source.path for source in self.discovered.sources],
            # A site's own verifiers are installed on this machine, not on every worker.
            decides_on_workers=not (self.model_session.has_language_models or self.settings.verifiers),
        )

    async def _estimate_document(self, source: SourceDocument, executor: Executor) -> str | None:
        """Read a document and build its questions; store its bundle, and return a problem."""
        try:
            if source.read_error:
                raise source.read_error
            if self._is_finished(source) or not self.model_session.has_language_models:
                return None
            bundle = self._load_earlier_bundle(source)
            if bundle is None and self._reader_config.documentai:
                return (
                    f"{source.doc_id} is not counted: Document AI has not read it, and a cost estimate must not call a model. "
                    "Add --reader local to estimate by this machine's reading"
                )
            if bundle is None:
                reading = await read_document_and_save_bundle(self.output_folder, source, executor, format_zulu_now())
                bundle = reading.bundle
            supplied_classification = self.supplied_inputs.classification_by_doc_id.get(source.doc_id)
            if supplied_classification is None:
                refuse_bank_statement(bundle)
            outcome = await self._orchestrator.evaluate(
                bundle,
                supplied_classification,
                self._build_patient_expectation(source),
                await self._render_page_images(bundle, executor),
            )
            if self._field_extraction:
                times = Times(run_started_at=self.started_at, started_at=format_zulu_now())
                await self._field_extraction.extract(bundle, executor, times, outcome.classification)
        except ExecutorError:
            raise
        except EvalkitError as error:
            return f"{source.doc_id}: {error}"
        return None

    async def _process_document(self, source: SourceDocument, executor: Executor) -> DocumentSummary:
        monotonic_start = time.monotonic()
        if source.read_error:
            return self._record_failure(source, source.read_error, monotonic_start)
        try:
            supplied_classification = self.supplied_inputs.classification_by_doc_id.get(source.doc_id)
            result_fingerprint = self._fingerprint_by_doc_id[source.doc_id]
            summary = (
                None
                if self._options.fresh
                else await run_uninterrupted_storage_operation(
                    self.output_folder, self._load_finished_summary, source, result_fingerprint
                )
            )
            summary = summary or await self._read_decide_and_save_document(
                source, executor, supplied_classification, result_fingerprint
            )
            if self._field_extraction and summary.error is None:
                bundle = read_bundle(self.output_folder, source.doc_id)
                times = Times(run_started_at=self.started_at, started_at=format_zulu_now())
                extractions, stored_fields = await load_or_extract_and_publish_fields(
                    self.output_folder,
                    self.index,
                    self._field_extraction,
                    bundle,
                    executor,
                    times,
                    writer=self.recorder,
                    fresh=self._options.fresh,
                )
                if stored_fields is None:
                    self.recorder.add_fields(source.doc_id, None)
                else:
                    self.recorder.add_fields(source.doc_id, stored_fields)
                    self.timings.add(source.doc_id, extractions.times["seconds"])
            return summary
        except (ExecutorError, RunStopped):
            raise
        except DocumentError as error:
            return self._record_failure(source, error, monotonic_start)
        except EvalkitError as error:
            return summarise_failure(source, error)
        except Exception as error:  # noqa: BLE001 - one document's fault must not end the others' run
            return self._record_failure(source, log_and_wrap_unexpected_error(source, error), monotonic_start)

    def _build_patient_expectation(self, source: SourceDocument) -> PatientExpectation:
        return build_patient_expectation(
            self.settings, source.path, self.supplied_inputs.identity_by_doc_id.get(source.doc_id, ())
        )

    def _load_finished_summary(self, source: SourceDocument, result_fingerprint: str) -> DocumentSummary | None:
        row = self._row_by_doc_id.get(source.doc_id)
        if row is None or row["fingerprint"] != result_fingerprint or row["file_path"] != str(source.path):
            return None
        result = load_if_intact(read_result, self.output_folder, source.doc_id)
        if result is None:
            return None
        if isinstance(result, DocumentFailure):
            self.recorder.add_document(result)
            return summarise_failure(source, result.error, resumed=True)
        bundle = load_bundle_if_current(self.output_folder, source, self._reader_config.reader_version)
        if bundle is None or "finished_at" not in result.times or self._is_unanswered(result):
            return None
        if self.supplied_inputs.label_by_doc_id is not None or not self._is_packet_or_silver_truth_written(result):
            if self.recorder.is_changed(result):  # no case may be withdrawn for a decision that no run made
                log.warning("a result was changed after its run: %s is decided again", str(source.sha256)[:12])
                return None
            self._write_packet_or_silver_truth(result, bundle, source)
        if row["replaced"]:
            self._index_document(
                source, result_fingerprint, result.decision.value, None
            )  # the path has this earlier version of the file again
        self.recorder.add_document(result)
        return summarise_result(result, source, bundle, None)

    async def _read_decide_and_save_document(
        self, source: SourceDocument, executor: Executor, supplied_classification: Any, result_fingerprint: str
    ) -> DocumentSummary:
        started_at = format_zulu_now()
        seconds_by_step: dict[str, float] = {}
        bundle = await run_uninterrupted_storage_operation(self.output_folder, self._load_earlier_bundle, source)
        if bundle is None:
            read_outcome = await self._read_or_give_up_and_save(source, executor, started_at)
            bundle, seconds_by_step = read_outcome.bundle, dict(read_outcome.seconds_by_step)
        if supplied_classification is None:
            refuse_bank_statement(bundle)
        monotonic_start = time.monotonic()
        evaluate = partial(
            self._orchestrator.evaluate,
            patient_expectation=self._build_patient_expectation(source),
            page_images=await self._render_page_images(bundle, executor),
        )
        outcome = await executor.run_step("decide", evaluate, bundle, supplied_classification)
        # The calls of one document overlap: the time that it waited counts, not the sum of its calls.
        seconds_by_step["asking"] = round(self.model_session.get_seconds_waited(bundle.sha256), 3)
        seconds_by_step["deciding"] = round(max(time.monotonic() - monotonic_start - seconds_by_step["asking"], 0.0), 3)
        self.timings.add(source.doc_id, seconds_by_step)
        log_fields = {"attempts": len(outcome.attempts), "decision": outcome.verdict.decision.value}
        log_event(log, logging.INFO, "decided", document_sha256=bundle.sha256, **log_fields, **seconds_by_step)
        times = Times(
            run_started_at=self.started_at,
            started_at=started_at,
            finished_at=format_zulu_now(),
            seconds=seconds_by_step,
        )
        result = create_result(bundle, outcome, self.settings, result_fingerprint, times, self._patient_salt)
        await run_uninterrupted_storage_operation(
            self.output_folder, self._save_publish_and_index_result, result, bundle, source
        )
        usage = self.model_session.ledger.get_usage_in_this_run(bundle.sha256)
        return summarise_result(
            result, source, bundle, usage if self.model_session.has_language_models else Usage(result.usage.calls)
        )

    async def _render_page_images(self, bundle: DocumentBundle, executor: Executor) -> tuple[PageImage, ...]:
        """Render the pages that models should see; none if no model sees or is asked.

        None either if drawing fails: the document was read, so it is decided, without what only pictures show.
        """
        if not self._orchestrator.seeing_roles or not bundle.has_text:
            return ()
        shown_pdf = await run_uninterrupted_storage_operation(
            self.output_folder, load_shown_pdf, self.output_folder, bundle
        )
        try:
            return await executor.render_page_images(
                shown_pdf, bundle, self.settings.pictures_per_document, self.settings.picture_pixels
            )
        except DocumentError as error:
            log_event(
                log,
                logging.WARNING,
                "pictures not drawn",
                document_sha256=bundle.sha256,
                step="asking",
                code=error.code,
            )
            return ()

    async def _read_or_give_up_and_save(
        self, source: SourceDocument, executor: Executor, started_at: str
    ) -> BundleWithTimings:
        """Read a document and save its bundle, with unread pages if it is too slow.

        If only the clock ran out, the next run tries once more, before a person gets the document. DocumentError as
        ``read_document_and_save_bundle``.
        """
        try:
            return await read_document_and_save_bundle(self.output_folder, source, executor, started_at)
        except DocumentError as error:
            earlier_result = load_if_intact(read_result, self.output_folder, source.doc_id)
            is_second_timeout = (
                error.code == "READER-TIMEOUT"
                and isinstance(earlier_result, DocumentFailure)
                and (earlier_result.error.code, earlier_result.sha256) == (error.code, source.sha256)
            )
            if error.code != "READER-TOO-SLOW" and not is_second_timeout:
                raise
        return await create_and_save_unread_bundle(
            self.output_folder, source, executor, started_at, self._reader_config.reader_version
        )

    def _load_earlier_bundle(self, source: SourceDocument) -> DocumentBundle | None:
        """Load the bundle of an earlier run; None if outdated, or if ``--fresh`` is given.

        StoreError if a newer evalkit wrote the document's result.
        """
        load_if_intact(read_result, self.output_folder, source.doc_id)
        return (
            None
            if self._options.fresh
            else load_bundle_if_current(self.output_folder, source, self._reader_config.reader_version)
        )

    def _save_publish_and_index_result(
        self, result: DocumentResult, bundle: DocumentBundle, source: SourceDocument
    ) -> None:
        """Write the result, then its packet or silver truth, and last its index row."""
        stored_result = self.recorder.write(result_file_name(source.doc_id), result.model_dump(mode="json"))
        self.recorder.add_document(result, stored_result)
        self._write_packet_or_silver_truth(result, bundle, source)
        self._index_document(source, result.fingerprint, result.decision.value, None)
        is_escalated = result.decision is not Decision.AUTO_ACCEPT
        self.input_monitor.add_document(
            bundle,
            _name_stratum(result, bundle),
            is_escalated=is_escalated,
            is_audited=not is_escalated and self.output_folder.has_file(packet_file_name(source.doc_id)),
        )

    def _is_packet_or_silver_truth_written(self, result: DocumentResult) -> bool:
        """Return True if the last file of ``_write_packet_or_silver_truth`` exists.

        An earlier run may have ended, or lost its database, before it wrote that file. The index alone does not show
        this: an index rebuilt from the files has the result.
        """
        inclusion_probability = read_silver_audit_probability(self.output_folder, result.doc_id)
        if result.decision is Decision.AUTO_ACCEPT:
            return inclusion_probability is not None or find_newest_revision(self.output_folder, result.doc_id) > 0
        return inclusion_probability is None and self.output_folder.has_file(packet_file_name(result.doc_id))

    def _write_packet_or_silver_truth(
        self, result: DocumentResult, bundle: DocumentBundle, source: SourceDocument
    ) -> None:
        label = (
            self.supplied_inputs.label_by_doc_id.get(source.doc_id) if self.supplied_inputs.label_by_doc_id else None
        )
        create_packet = partial(
            SMEPacketGenerator().packet,
            result,
            bundle,
            production_row=label,
            created_at=result.times["finished_at"],
        )
        if result.decision is Decision.AUTO_ACCEPT:
            # A document that was accepted by an earlier run keeps its probability.
            earlier_probability = read_silver_audit_probability(self.output_folder, result.doc_id)
            audit_probability = (
                self._compute_audit_probability(result, bundle) if earlier_probability is None else earlier_probability
            )
            if is_drawn_for_audit(self.settings.audit_seed, result.sha256, audit_probability):
                publish_packet_unless_frozen(
                    self.output_folder,
                    self.index,
                    create_packet(review_reason="audit", inclusion_probability=audit_probability),
                )
            elif sample_probability := self._sampled_probabilities.get(result.doc_id):
                publish_packet_unless_frozen(
                    self.output_folder,
                    self.index,
                    create_packet(review_reason="sample", inclusion_probability=sample_probability),
                )
            else:
                withdraw_packet_unless_frozen(self.output_folder, self.index, result.doc_id)
            write_silver_ground_truth(
                self.output_folder,
                result,
                accepted_at=result.times["finished_at"],
                inclusion_probability=audit_probability,
            )
        else:
            withdraw_silver_ground_truth(self.output_folder, result.doc_id)
            publish_packet_unless_frozen(
                self.output_folder,
                self.index,
                create_packet(review_reason="escalated", inclusion_probability=1.0),
                costs=self._review_costs,
            )
        with hold_case_write_lock(self.output_folder, result.doc_id):
            remove_mismatched_silver_fields(self.output_folder, result.doc_id)

    def _compute_audit_probability(self, result: DocumentResult, bundle: DocumentBundle) -> float:
        """Compute an accepted document's audit probability; 1 if its stratum is braked."""
        stratum = _name_stratum(result, bundle)
        usual, warned, braked = self._audit_draw.list_probabilities(compute_result_risk(result.model_dump(mode="json")))
        if stratum in self._braked_strata:
            return braked
        return warned if stratum in self.input_monitor.warned_strata else usual

    def _record_failure(self, source: SourceDocument, error: DocumentError, monotonic_start: float) -> DocumentSummary:
        """Save that a document failed, and return the summary of the failure.

        The seconds since ``monotonic_start`` are saved too. A transient failure (a crash, a time limit, missing
        permissions) is retried by the next run and removes nothing.
        """
        seconds_by_step = {FAILED_STEP: round(time.monotonic() - monotonic_start, 3)}
        self.timings.add(source.doc_id, seconds_by_step)
        log_event(log, logging.INFO, "failed", document_sha256=source.sha256 or "", code=error.code, **seconds_by_step)
        is_transient = source.sha256 is None or error.code in _TRANSIENT_ERROR_CODES
        result_fingerprint = None if is_transient else self._fingerprint_by_doc_id[source.doc_id]
        failure = DocumentFailure(
            doc_id=source.doc_id,
            error=Failure(code=error.code, message=error.message, remedy=error.remedy),
            sha256=source.sha256,
            fingerprint=result_fingerprint,
            times=Times(run_started_at=self.started_at, finished_at=format_zulu_now(), seconds=seconds_by_step),
        )
        try:
            if is_transient and self.output_folder.has_file(result_file_name(source.doc_id)):
                return summarise_failure(source, error)
            with self.output_folder.hold_save_lock():
                stored_failure = self.recorder.write(result_file_name(source.doc_id), failure.model_dump(mode="json"))
                self.recorder.add_document(failure, stored_failure)
                case_ids = list_document_case_ids(source.doc_id)
                # The bundle of a bank statement may belong to the case of a template.
                if error.code != BANK_STATEMENT_CODE and not any(
                    is_packet_frozen(self.output_folder, self.index, case_id, format_zulu_now()) for case_id in case_ids
                ):
                    self.output_folder.remove_file(converted_file_name(source.doc_id))
                    self.output_folder.remove_file(bundle_file_name(source.doc_id))
                for case_id in case_ids:
                    withdraw_silver_ground_truth(self.output_folder, case_id)
                    withdraw_packet_unless_frozen(self.output_folder, self.index, case_id)
                self._index_document(source, result_fingerprint, None, error.code)
        except StoreError as store_error:
            return summarise_failure(source, store_error)
        return summarise_failure(source, error)

    def _index_document(
        self, source: SourceDocument, result_fingerprint: str | None, decision: str | None, error_code: str | None
    ) -> None:
        self.index.upsert_document_and_mark_replaced(
            {
                "doc_id": source.doc_id,
                "sha256": source.sha256,
                "file_path": encode_path_as_text(source.path),
                "processed_at": format_zulu_now(),
                "fingerprint": result_fingerprint,
                "decision": decision,
                "error_code": error_code,
                "replaced": False,
            }
        )


def _name_stratum(result: DocumentResult, bundle: DocumentBundle) -> str:
    return build_stratum_key(
        document_type=result.classification.dominant_type_overall if result.classification else None,
        source=get_source_folder(Path(bundle.file_path)).name,
        reader=result.reader,
        model=result.model,
        versions=result.versions,
    ).drift_name
