"""Documents in, verified decisions out.

What is finished stays finished: a document's files are written first and its row of the index last, so a killed run
does again only what was under way. A document whose fingerprint is unchanged is neither read nor asked about again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalkit.classification.document_result import DocumentFailure, DocumentResult, Failure
from evalkit.classification.lexicon import load_lexicon
from evalkit.classification.model_weights import load_model_weights
from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator, UnparseableClassification
from evalkit.classification.schema import load_type_definitions
from evalkit.classification.traps import load_traps
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v5_arbiter import Decision, count_open_issues
from evalkit.core.clocks import current_timestamp
from evalkit.core.log_events import log_event
from evalkit.core.timings import FAILED_STEP, Times
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import DocumentError, EvalkitError, ExecutorError, StoreError, UsageError
from evalkit.grounding import get_grounding_version
from evalkit.issue import IssueSeverity
from evalkit.llm.model import Usage
from evalkit.llm.prompts import compute_prompt_versions
from evalkit.pipeline.audit_sampling import AuditPlan
from evalkit.pipeline.batch_execution import BatchSummary, open_executor, process_documents, run_storage_io
from evalkit.pipeline.document_discovery import SourceDocument, discover_documents, sanitise_file_stem
from evalkit.pipeline.field_extraction import FieldExtractionPipeline, extract_or_load
from evalkit.pipeline.model_session import ModelSession
from evalkit.pipeline.purge import exclude_purged
from evalkit.pipeline.reader_pool import Executor, ReaderConfig, ReaderPool, ReadResult
from evalkit.pipeline.reindex import rebuild_index
from evalkit.pipeline.sample_draws import read_sampled_probabilities
from evalkit.pipeline.supplied_labels import (
    check_supplied_classification,
    read_classifications,
    read_production_labels,
    report_unused_labels,
    store_production_labels,
)
from evalkit.review.ground_truth import (
    find_newest_revision,
    read_silver_probability,
    withdraw_silver_ground_truth,
    withdraw_unconfirmed_fields,
    write_silver_ground_truth,
)
from evalkit.review.loaders import read_bundle, read_result
from evalkit.review.packet import (
    EXTRACTION_SUFFIX,
    SMEPacketGenerator,
    is_packet_frozen,
    publish_packet,
    withdraw_packet,
)
from evalkit.review.seeded_cases import iterate_seeded_cases
from evalkit.review.write_lock import hold_write_lock
from evalkit.settings import Settings
from evalkit.store import (
    RESULTS_FOLDER,
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    hash_canonical_json,
    packet_file_name,
    result_file_name,
)

if TYPE_CHECKING:
    import pandas as pd

    from evalkit.documents.documentai import DocumentAiReader

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Reasons for which a document may be read all the same the next time.
_TRANSIENT_ERROR_CODES = frozenset(
    {"READER-CRASHED", "READER-MEMORY", "READER-UNREADABLE", "READER-CHANGED", "UNEXPECTED"}
) | {f"DOCUMENTAI-{suffix}" for suffix in ("KEY", "MALFORMED", "PROCESSOR", "RATE", "SERVER", "TIMEOUT", "UNREACHABLE")}


@dataclass(frozen=True)
class DocumentSummary:
    """What became of one document."""

    doc_id: str
    pdf_filename: str
    pages: int | None
    decision: str | None
    """AUTO_ACCEPT, ESCALATE_TO_SME; None where it failed."""
    decision_rule: str | None
    dominant_type: str | None
    blocker: int
    major: int
    minor: int
    """Open issues."""
    raised_by: tuple[str, ...]
    """The agents of the open BLOCKER and MAJOR issues."""
    attempts: int
    evidence_quality_score: float | None
    calls: int
    """Calls of a model that this run made."""
    resumed: bool
    """Finished by an earlier run; nothing was done now."""
    error: str | None = None
    """Why it failed, and the remedy."""
    tokens: int = 0
    """Input and output of these calls."""
    cost_usd: str | None = "0"
    """Of these calls, a decimal number as text; None where nobody knows the price."""


_ISSUE_COLUMNS = (
    "issue_id",
    "agent",
    "severity",
    "code",
    "message",
    "location",
    "segment_index",
    "page",
    "quote",
    "verdict",
    "status",
)


@dataclass(frozen=True)
class RunSummary(BatchSummary[DocumentSummary]):
    """What became of a run."""

    def to_frame(self) -> pd.DataFrame:
        """One row per document, columns as the fields of :class:`DocumentSummary`."""
        import pandas as pd

        columns = list(DocumentSummary.__dataclass_fields__)
        return pd.DataFrame([vars(document) for document in self.documents], columns=columns)

    def issues_frame(self) -> pd.DataFrame:
        """One row per issue of these documents, read from their results: doc_id and the issue's main fields."""
        import pandas as pd

        output_folder = OutputFolder(self.output)
        results = [
            output_folder.read_json(result_file_name(document.doc_id))
            for document in self.documents
            if document.decision
        ]
        rows = [{"doc_id": result["doc_id"]} | issue for result in results for issue in result["issues"]]
        return pd.DataFrame(rows, columns=["doc_id", *_ISSUE_COLUMNS])


RunProgressCallback = Callable[[DocumentSummary, int, int], None]
"""Called after each document: what became of it, how many are done, how many there are."""


def run(
    paths: Iterable[Path | str],
    *,
    output: Path | str | None = None,
    model: str | None = None,
    reader: str | None = None,
    profile: str | None = None,
    production: Path | str | None = None,
    classifications: Path | str | None = None,
    workers: int | None = None,
    executor: str | None = None,
    fresh: bool = False,
    extract: bool = False,
    even_purged: bool = False,
    on_progress: RunProgressCallback | None = None,
    settings: Settings | None = None,
) -> RunSummary:
    """Read, classify, verify and decide PDFs and folders of PDFs; write bundles, results, packets, ground truth.

    Works inside Jupyter too. Documents that fail are named in the summary; the others are finished.

    Args:
        paths: PDF files, and folders that are searched.
        output: the folder to write to.
        model: who classifies and answers the verifiers' questions.
        reader: ``local`` or ``documentai``.
        profile: ``full``, or ``lean``: two calls a document instead of four.
        production: CSV or JSON with the production classifier's labels.
        classifications: folder with ``{doc_id}.json``: answers of another system, to be verified instead of asking.
        workers: processes that read PDFs; 0 is one per core.
        executor: ``local``, or ``dask://HOST:PORT``: where PDFs are read, and decided about without a language model.
        fresh: do everything again, also what an earlier run finished.
        extract: extract the fields of reports and forms too.
        even_purged: take documents in again that were purged.
        on_progress: called after each document.
        settings: instead of the environment, ``evalkit.toml`` and the options from ``model`` to ``executor``.

    Raises:
        UsageError: nothing could be begun.
    """
    return run_sync(
        arun(
            paths,
            output=output,
            model=model,
            reader=reader,
            profile=profile,
            production=production,
            classifications=classifications,
            workers=workers,
            executor=executor,
            fresh=fresh,
            extract=extract,
            even_purged=even_purged,
            on_progress=on_progress,
            settings=settings,
        )
    )


async def arun(
    paths: Iterable[Path | str],
    *,
    output: Path | str | None = None,
    model: str | None = None,
    reader: str | None = None,
    profile: str | None = None,
    production: Path | str | None = None,
    classifications: Path | str | None = None,
    workers: int | None = None,
    executor: str | None = None,
    fresh: bool = False,
    extract: bool = False,
    even_purged: bool = False,
    on_progress: RunProgressCallback | None = None,
    settings: Settings | None = None,
) -> RunSummary:
    """The asynchronous twin of :func:`run`."""
    monotonic_start = time.monotonic()
    resolved_settings = resolve_settings(
        settings, output=output, model=model, workers=workers, reader=reader, profile=profile, executor=executor
    )
    output_folder = OutputFolder(output or resolved_settings.output, resolved_settings.database)
    reader_config = build_reader_config(resolved_settings)
    with output_folder.run_lock(), OutputIndex(output_folder.root, resolved_settings.database) as index:
        if not index.list_documents() and output_folder.list_json_files(
            RESULTS_FOLDER
        ):  # it only indexes: lost, it is made again
            rebuild_index(output_folder, index)
        row_by_sha256 = {row["sha256"]: row for row in index.list_documents() if row["sha256"]}
        doc_id_by_sha256 = {sha256: row["doc_id"] for sha256, row in row_by_sha256.items()}
        discovered = discover_documents(
            paths, doc_id_by_sha256, reserved_ids=(case_id for case_id, _ in iterate_seeded_cases(output_folder))
        )
        discovered = exclude_purged(output_folder, discovered, doc_id_by_sha256, even_purged=even_purged)
        label_by_doc_id, label_problems = None, []
        if production is not None:
            supplied_labels = read_production_labels(Path(production))
            label_by_doc_id = supplied_labels.select_labels(discovered.sources)
            store_production_labels(output_folder, label_by_doc_id)
            path_by_earlier_id = {row["doc_id"]: row["file_path"] for row in index.list_documents()}
            label_problems = report_unused_labels(supplied_labels, discovered.sources, path_by_earlier_id)
        supplied_by_doc_id, classification_problems = (
            read_classifications(Path(classifications), discovered.sources) if classifications is not None else ({}, [])
        )
        row_by_doc_id = {row["doc_id"]: row for row in row_by_sha256.values()}
        async with ModelSession(
            resolved_settings, index.call_journal, fresh=fresh, for_extraction=extract
        ) as model_session:
            batch_run = _BatchRun(
                resolved_settings,
                reader_config,
                output_folder,
                index,
                model_session,
                row_by_doc_id,
                label_by_doc_id,
                supplied_by_doc_id,
                fresh,
                extract,
            )
            documents = await batch_run.process_sources(discovered.sources, on_progress)
            model_session.finish()
    return RunSummary.create(
        documents,
        discovered,
        output=output_folder.root,
        monotonic_start=monotonic_start,
        by_agent=model_session.ledger.usage_by_role,
        further_problems=[*label_problems, *classification_problems],
    )


def evaluate(
    path: Path | str,
    *,
    classification: Mapping[str, Any] | None = None,
    model: str | None = None,
    reader: str | None = None,
    profile: str | None = None,
    settings: Settings | None = None,
) -> DocumentResult:
    """Read, classify, verify and decide one PDF; nothing is written. DocumentError where it cannot be read.

    ``classification`` is an answer of another system, to be verified instead of asking.
    """
    return run_sync(
        aevaluate(path, classification=classification, model=model, reader=reader, profile=profile, settings=settings)
    )


async def aevaluate(
    path: Path | str,
    *,
    classification: Mapping[str, Any] | None = None,
    model: str | None = None,
    reader: str | None = None,
    profile: str | None = None,
    settings: Settings | None = None,
) -> DocumentResult:
    """The asynchronous twin of :func:`evaluate`."""
    resolved_settings = resolve_settings(settings, model=model, reader=reader, profile=profile)
    started_at = current_timestamp()
    absolute_path = Path(os.path.abspath(path))  # noqa: ASYNC240 - it looks at no disk
    reader_config = build_reader_config(resolved_settings)
    with ReaderPool(1, reader_config) as reader_pool:
        bundle = (await reader_pool.read(absolute_path, doc_id=sanitise_file_stem(path), timestamp=started_at)).bundle
    supplied_classification = None if classification is None else check_supplied_classification(classification)
    async with ModelSession(resolved_settings) as model_session:
        outcome = await create_orchestrator(resolved_settings, model_session).evaluate(bundle, supplied_classification)
    result_fingerprint = compute_fingerprint(
        bundle.sha256, resolved_settings, reader_config.reader, supplied_classification
    )
    return _create_result(
        bundle,
        outcome,
        resolved_settings,
        result_fingerprint,
        Times(started_at=started_at, finished_at=current_timestamp()),
    )


def resolve_settings(
    settings: Settings | None = None,
    *,
    output: Path | str | None = None,
    model: str | None = None,
    workers: int | None = None,
    reader: str | None = None,
    profile: str | None = None,
    executor: str | None = None,
) -> Settings:
    """The settings in force: these, or else the environment's with the options that were given.

    UsageError where both are given, but for ``output``, which every caller takes from its own argument first.
    """
    options = {"model": model, "workers": workers, "reader": reader, "profile": profile, "executor": executor}
    option_names = [name for name, value in options.items() if value is not None]
    if settings is not None:
        if option_names:
            raise UsageError(
                f"settings are given, and beside them {', '.join(option_names)}",
                code="SETTINGS",
                remedy="Give one of the two: Settings.load(…) takes what is to be different.",
            )
        return settings
    return Settings.load(
        output=None if output is None else str(output),
        models={"default": model} if model is not None else None,
        workers=workers,
        reader=reader,
        profile=profile,
        executor=executor,
    )


def build_reader_config(settings: Settings) -> ReaderConfig:
    """What reads. UsageError where it cannot: an engine that is missing, a processor that cannot be asked."""
    reader_config = ReaderConfig(
        settings.read_seconds,
        settings.ocr,
        settings.ocr_seconds,
        _create_pinned_document_ai(settings),
        settings.read_memory_mb,
    )
    _ = reader_config.reader  # a reader that is missing is one error, not one for every document
    return reader_config


def _create_pinned_document_ai(settings: Settings) -> DocumentAiReader | None:
    """The processor with its version, which is asked once if it was not named."""
    if settings.reader == "local":
        return None
    processor = create_document_ai(settings)
    return replace(processor, processor=processor.processor_version_name)


def create_document_ai(settings: Settings) -> DocumentAiReader:
    """The processor that is set. UsageError where there is none, or it is not named as Google names it."""
    if not settings.documentai_processor:
        raise UsageError(
            "no processor of Document AI is named",
            code="DOCUMENTAI-PROCESSOR",
            remedy="Set documentai_processor: projects/PROJECT/locations/us/processors/ID/processorVersions/VERSION.",
        )
    from evalkit.documents.documentai import DocumentAiReader

    return DocumentAiReader(
        settings.documentai_processor,
        settings.documentai_endpoint,
        settings.documentai_seconds,
        settings.documentai_transport,
    )


def create_orchestrator(
    settings: Settings, model_session: ModelSession, *, include_rule_findings: bool = True
) -> RetryOrchestrator:
    """What decides about documents as the settings say, asking these models; ``include_rule_findings``: see RetryOrchestrator."""
    return RetryOrchestrator(
        model_session.model,
        lossless_repair=settings.lossless_repair,
        on_agent_failure=settings.on_agent_failure,
        profile=settings.profile,
        window_characters=settings.window_characters if model_session.has_language_models else None,
        v3=V3TrapDetector(load_traps(settings.traps_file)),
        include_rule_findings=include_rule_findings,
    )


@cache
def collect_versions(traps_file: str | None = None) -> dict[str, Any]:
    """Of everything that makes a result: code, tables, prompts. UsageError for a site's traps that cannot be read."""
    traps = load_traps(traps_file)
    return {
        "evalkit": version("evalkit"),
        "grounding": get_grounding_version(),
        "types": load_type_definitions()["version"],
        "lexicon": load_lexicon().version,
        "weights": load_model_weights().version,
        "traps": traps.version,
        "tables_sha256": hash_canonical_json([load_type_definitions(), traps.model_dump(mode="json")]),
        "prompts": compute_prompt_versions(),
    }


def compute_fingerprint(sha256: str, settings: Settings, reader_name: str, supplied_classification: Any) -> str:
    """Of all that makes a document's result; workers, output and production's labels are none of it."""
    return hash_canonical_json(
        {
            "sha256": sha256,
            "reader": reader_name,
            "ocr_seconds": settings.ocr_seconds,
            "models": settings.models.model_dump(),
            "profile": settings.profile,
            "window_characters": settings.window_characters,
            "own_servers": [settings.openai_base_url, settings.ollama_base_url],
            "lossless_repair": settings.lossless_repair,
            "on_agent_failure": settings.on_agent_failure,
            "versions": collect_versions(settings.traps_file),
            "supplied": None
            if supplied_classification is None
            else hash_canonical_json(_supplied_to_json(supplied_classification)),
        }
    )


def _supplied_to_json(supplied_classification: Any) -> Any:
    return (
        {"unparseable": supplied_classification.reason}
        if isinstance(supplied_classification, UnparseableClassification)
        else supplied_classification
    )


def _create_result(
    bundle: DocumentBundle, outcome: ClassificationOutcome, settings: Settings, result_fingerprint: str, times: Times
) -> DocumentResult:
    return DocumentResult(
        doc_id=bundle.doc_id,
        sha256=bundle.sha256,
        fingerprint=result_fingerprint,
        decision=outcome.verdict.decision,
        decision_rule=outcome.verdict.rule,
        decision_reason=outcome.verdict.reason,
        classification=outcome.classification,
        issues=outcome.issues,
        attempts=outcome.attempts,
        evidence_quality_score=outcome.evidence_quality_score,
        grounded_ratio=outcome.grounded_ratio,
        unanswered=outcome.unanswered,
        usage=outcome.usage,
        model=settings.models.default,
        reader=bundle.reader,
        versions=collect_versions(settings.traps_file)
        | ({"models": settings.models.models_by_role} if settings.models.models_by_role else {}),
        times=times,
    )


def load_current_bundle(output_folder: OutputFolder, source: SourceDocument, reader_name: str) -> DocumentBundle | None:
    """The bundle that an earlier run read from the same bytes with the same reader, if any."""
    bundle = _load_if_intact(read_bundle, output_folder, source.doc_id)
    if bundle is None:
        return None
    is_same_input = (bundle.sha256, bundle.reader, bundle.file_path) == (source.sha256, reader_name, str(source.path))
    # What an engine could not do in its time, it may do now.
    is_complete = all(page.quality is not None or not page.problems for page in bundle.pages)
    return bundle if is_same_input and is_complete else None


def _load_if_intact(read_file: Callable[[OutputFolder, str], T], output_folder: OutputFolder, doc_id: str) -> T | None:
    """What an earlier run has left; None where it is made again: it is not there, or torn.

    StoreError where a newer evalkit has written it: that is not written over.
    """
    try:
        return read_file(output_folder, doc_id)
    except StoreError as error:
        if error.code == "STORE-NEWER":
            raise
        return None


async def read_and_save_document(
    output_folder: OutputFolder, source: SourceDocument, executor: Executor, timestamp: str
) -> ReadResult:
    """The document, read and its bundle written. DocumentError where it cannot be read, or changes meanwhile."""
    read_outcome = await executor.read(source.path, doc_id=source.doc_id, timestamp=timestamp)
    if read_outcome.bundle.sha256 != source.sha256:
        raise DocumentError(
            f"{source.path.name} changed while it was being read",
            code="READER-CHANGED",
            remedy="Run it again when nobody writes to it.",
        )
    log_event(
        log,
        logging.INFO,
        "read",
        document_sha256=read_outcome.bundle.sha256,
        pages=read_outcome.bundle.total_pages,
        **read_outcome.seconds_by_step,
    )
    await run_storage_io(output_folder, _write_bundle, output_folder, read_outcome.bundle)
    return read_outcome


def _write_bundle(output_folder: OutputFolder, bundle: DocumentBundle) -> None:
    output_folder.write_json(bundle_file_name(bundle.doc_id), bundle.model_dump(mode="json"), compact=True)


class _BatchRun:
    """One run over its documents."""

    def __init__(
        self,
        settings: Settings,
        reader_config: ReaderConfig,
        output_folder: OutputFolder,
        index: OutputIndex,
        model_session: ModelSession,
        row_by_doc_id: Mapping[str, Mapping[str, Any]],
        label_by_doc_id: Mapping[str, Mapping[str, Any]] | None,
        supplied_by_doc_id: Mapping[str, Any],
        fresh: bool,
        extract: bool,
    ) -> None:
        self._settings = settings
        self._output_folder = output_folder
        self._index = index
        self._row_by_doc_id = row_by_doc_id
        self._label_by_doc_id = label_by_doc_id
        self._supplied_by_doc_id = supplied_by_doc_id
        self._fresh = fresh
        self._reader_config = reader_config
        self._model_session = model_session
        self._orchestrator = create_orchestrator(settings, model_session)
        self._field_extraction = (
            FieldExtractionPipeline(settings, model_session, collect_versions()) if extract else None
        )
        self._audit_plan = AuditPlan(
            settings.audit_rate_start, settings.audit_rate, settings.audit_target, settings.audit_seed
        )
        self._sampled_probabilities = read_sampled_probabilities(output_folder)
        self._started_at = current_timestamp()
        self._completed_audits = sum(row["review_reason"] == "audit" for row in index.list_cases("completed"))

    async def process_sources(
        self, sources: tuple[SourceDocument, ...], on_progress: RunProgressCallback | None
    ) -> list[DocumentSummary]:
        # Calls wait for the provider, not for this machine: as many documents as calls, beside those that are read.
        extra_in_flight = self._settings.calls_in_flight if self._model_session.has_language_models else 0
        executor = open_executor(
            self._settings, self._reader_config, sources, decides_on_workers=not self._model_session.has_language_models
        )
        return await process_documents(
            sources, executor, self._process_document, extra_in_flight=extra_in_flight, on_progress=on_progress
        )

    async def _process_document(self, source: SourceDocument, executor: Executor) -> DocumentSummary:
        """One document, whatever happens to it."""
        monotonic_start = time.monotonic()
        if source.read_error:
            return self._record_failure(source, source.read_error, monotonic_start)
        try:
            supplied_classification = self._supplied_by_doc_id.get(source.doc_id)
            result_fingerprint = compute_fingerprint(
                source.sha256 or "", self._settings, self._reader_config.reader, supplied_classification
            )
            summary = (
                None
                if self._fresh
                else await run_storage_io(
                    self._output_folder, self._resume_finished_document, source, result_fingerprint
                )
            )
            summary = summary or await self._decide_document(
                source, executor, supplied_classification, result_fingerprint
            )
            if self._field_extraction and summary.error is None:
                bundle = read_bundle(self._output_folder, source.doc_id)
                times = Times(run_started_at=self._started_at, started_at=current_timestamp())
                await extract_or_load(
                    self._output_folder, self._index, self._field_extraction, bundle, executor, times, fresh=self._fresh
                )
            return summary
        except ExecutorError:
            raise
        except DocumentError as error:
            return self._record_failure(source, error, monotonic_start)
        except EvalkitError as error:
            return _summarise_failure(source, error)
        except Exception as error:  # noqa: BLE001 - one document's fault must not end the others' run
            return self._record_failure(source, create_unexpected_error(source, error), monotonic_start)

    def _resume_finished_document(self, source: SourceDocument, result_fingerprint: str) -> DocumentSummary | None:
        """The summary of what an earlier run finished, if all that made it is the same."""
        row = self._row_by_doc_id.get(source.doc_id)
        if row is None or row["fingerprint"] != result_fingerprint or row["file_path"] != str(source.path):
            return None
        result = _load_if_intact(read_result, self._output_folder, source.doc_id)
        if result is None:
            return None
        if isinstance(result, DocumentFailure):
            return _summarise_failure(source, result.error, resumed=True)
        bundle = load_current_bundle(self._output_folder, source, self._reader_config.reader)
        if bundle is None or "finished_at" not in result.times:
            return None
        if _is_unanswered(result, is_supplied=source.doc_id in self._supplied_by_doc_id):
            return None
        if self._label_by_doc_id is not None or not self._is_published(result):
            self._publish_result(result, bundle, source)
        if row["replaced"]:
            self._index_document(
                source, result_fingerprint, result.decision.value, None
            )  # an earlier version came back
        return _summarise_result(result, source, bundle, None)

    async def _decide_document(
        self, source: SourceDocument, executor: Executor, supplied_classification: Any, result_fingerprint: str
    ) -> DocumentSummary:
        started_at = current_timestamp()
        seconds_by_step: dict[str, float] = {}
        bundle = await run_storage_io(self._output_folder, self._load_earlier_bundle, source)
        if bundle is None:
            read_outcome = await read_and_save_document(self._output_folder, source, executor, started_at)
            bundle, seconds_by_step = read_outcome.bundle, dict(read_outcome.seconds_by_step)
        monotonic_start = time.monotonic()
        outcome = await executor.evaluate(self._orchestrator, bundle, supplied_classification)
        # The calls of one document overlap: what counts is how long it waited for any of them.
        seconds_by_step["asking"] = round(self._model_session.get_seconds_waited(bundle.sha256), 3)
        seconds_by_step["deciding"] = round(max(time.monotonic() - monotonic_start - seconds_by_step["asking"], 0.0), 3)
        log_fields = {"attempts": len(outcome.attempts), "decision": outcome.verdict.decision.value}
        log_event(log, logging.INFO, "decided", document_sha256=bundle.sha256, **log_fields, **seconds_by_step)
        times = Times(
            run_started_at=self._started_at,
            started_at=started_at,
            finished_at=current_timestamp(),
            seconds=seconds_by_step,
        )
        result = _create_result(bundle, outcome, self._settings, result_fingerprint, times)
        await run_storage_io(self._output_folder, self._save_result, result, bundle, source)
        usage = self._model_session.ledger.get_document_usage(bundle.sha256)
        return _summarise_result(
            result, source, bundle, usage if self._model_session.has_language_models else Usage(result.usage.calls)
        )

    def _load_earlier_bundle(self, source: SourceDocument) -> DocumentBundle | None:
        """The bundle that an earlier run has left for this one. StoreError where a newer evalkit has decided."""
        _load_if_intact(read_result, self._output_folder, source.doc_id)
        return None if self._fresh else load_current_bundle(self._output_folder, source, self._reader_config.reader)

    def _save_result(self, result: DocumentResult, bundle: DocumentBundle, source: SourceDocument) -> None:
        """Write down what was decided, and what follows from it; the row of the index last."""
        self._output_folder.write_json(result_file_name(source.doc_id), result.model_dump(mode="json"))
        self._publish_result(result, bundle, source)
        self._index_document(source, result.fingerprint, result.decision.value, None)

    def _is_published(self, result: DocumentResult) -> bool:
        """Whether the last thing that ``_publish_result`` writes is there: a run may have ended, or lost its database, before.

        The index alone does not tell: made again from the files it knows the result.
        """
        inclusion_probability = read_silver_probability(self._output_folder, result.doc_id)
        if result.decision is Decision.AUTO_ACCEPT:
            return inclusion_probability is not None or find_newest_revision(self._output_folder, result.doc_id) > 0
        return inclusion_probability is None and self._output_folder.has_file(packet_file_name(result.doc_id))

    def _publish_result(self, result: DocumentResult, bundle: DocumentBundle, source: SourceDocument) -> None:
        """Ground truth and packet, or their withdrawal, as the decision asks."""
        label = self._label_by_doc_id.get(source.doc_id) if self._label_by_doc_id else None
        create_packet = partial(
            SMEPacketGenerator().packet, result, bundle, production=label, created_at=result.times["finished_at"]
        )
        if result.decision is Decision.AUTO_ACCEPT:
            # The probability is that of the moment of drawing: a document that was accepted before keeps it.
            earlier_probability = read_silver_probability(self._output_folder, result.doc_id)
            audit_probability = (
                self._audit_plan.get_inclusion_probability(self._completed_audits)
                if earlier_probability is None
                else earlier_probability
            )
            if self._audit_plan.is_drawn(result.sha256, audit_probability):
                publish_packet(
                    self._output_folder,
                    self._index,
                    create_packet(review_reason="audit", inclusion_probability=audit_probability),
                )
            elif sample_probability := self._sampled_probabilities.get(result.doc_id):
                publish_packet(
                    self._output_folder,
                    self._index,
                    create_packet(review_reason="sample", inclusion_probability=sample_probability),
                )
            else:
                withdraw_packet(self._output_folder, self._index, result.doc_id)
            write_silver_ground_truth(
                self._output_folder,
                result,
                accepted_at=result.times["finished_at"],
                inclusion_probability=audit_probability,
            )
        else:
            withdraw_silver_ground_truth(self._output_folder, result.doc_id)
            publish_packet(
                self._output_folder, self._index, create_packet(review_reason="escalated", inclusion_probability=1.0)
            )
        with hold_write_lock(self._output_folder, result.doc_id):
            withdraw_unconfirmed_fields(self._output_folder, result.doc_id)

    def _record_failure(self, source: SourceDocument, error: DocumentError, monotonic_start: float) -> DocumentSummary:
        """A document that cannot be read leaves a result that says so, and how long that took since ``monotonic_start``.

        What may pass (a crash, a time limit, missing rights) is tried again by the next run and takes nothing away.
        """
        seconds_by_step = {FAILED_STEP: round(time.monotonic() - monotonic_start, 3)}
        log_event(log, logging.INFO, "failed", document_sha256=source.sha256 or "", code=error.code, **seconds_by_step)
        is_transient = source.sha256 is None or error.code in _TRANSIENT_ERROR_CODES
        supplied_classification = self._supplied_by_doc_id.get(source.doc_id)
        result_fingerprint = (
            None
            if is_transient
            else compute_fingerprint(
                source.sha256 or "", self._settings, self._reader_config.reader, supplied_classification
            )
        )
        failure = DocumentFailure(
            doc_id=source.doc_id,
            error=Failure(code=error.code, message=error.message, remedy=error.remedy),
            sha256=source.sha256,
            fingerprint=result_fingerprint,
            times=Times(run_started_at=self._started_at, finished_at=current_timestamp(), seconds=seconds_by_step),
        )
        try:
            if is_transient and self._output_folder.has_file(result_file_name(source.doc_id)):
                return _summarise_failure(source, error)
            self._output_folder.write_json(result_file_name(source.doc_id), failure.model_dump(mode="json"))
            case_ids = (source.doc_id, source.doc_id + EXTRACTION_SUFFIX)
            if not any(
                is_packet_frozen(self._output_folder, self._index, case_id, current_timestamp()) for case_id in case_ids
            ):
                self._output_folder.remove_file(bundle_file_name(source.doc_id))
            for case_id in case_ids:
                withdraw_silver_ground_truth(self._output_folder, case_id)
                withdraw_packet(self._output_folder, self._index, case_id)
            self._index_document(source, result_fingerprint, None, error.code)
        except StoreError as store_error:
            return _summarise_failure(source, store_error)
        return _summarise_failure(source, error)

    def _index_document(
        self, source: SourceDocument, result_fingerprint: str | None, decision: str | None, error_code: str | None
    ) -> None:
        self._index.upsert_document(
            {
                "doc_id": source.doc_id,
                "sha256": source.sha256,
                "file_path": encode_path_as_text(source.path),
                "processed_at": current_timestamp(),
                "fingerprint": result_fingerprint,
                "decision": decision,
                "error_code": error_code,
                "replaced": False,
            }
        )


def create_unexpected_error(source: SourceDocument, error: Exception) -> DocumentError:
    """A defect that one document met, logged without a word of it."""
    last_frame = traceback.extract_tb(error.__traceback__)[-1]
    log.error("document %s: %s in %s", _get_log_id(source), type(error).__name__, last_frame.name)
    return DocumentError(
        f"{source.path.name} failed unexpectedly ({type(error).__name__} in {last_frame.name})",
        code="UNEXPECTED",
        remedy="Run it again; if it happens again, report it with this line.",
    )


def _is_unanswered(result: DocumentResult, *, is_supplied: bool) -> bool:
    """Whether a model could not answer then, and may now; what was answered is in the journal."""
    codes = {issue.code for issue in result.open_issues}
    has_failed_agent = bool(result.unanswered) or any(code.endswith("-AGENT-FAILED") for code in codes)
    return has_failed_agent or (not is_supplied and "V1-UNPARSEABLE" in codes)


def encode_path_as_text(path: Path | str) -> str:
    """A path as text that can be written; a name need not be text at all."""
    return str(path).encode(errors="replace").decode()


def _get_log_id(source: SourceDocument) -> str:
    """What a log may call the document: names may be patients'."""
    return source.sha256[:12] if source.sha256 else "without bytes"


def _summarise_result(
    result: DocumentResult, source: SourceDocument, bundle: DocumentBundle, usage: Usage | None
) -> DocumentSummary:
    """``usage`` on it by this run; None where an earlier one finished it."""
    usage_of_run = usage or Usage()
    counts = count_open_issues(result.issues)
    answer = result.classification
    return DocumentSummary(
        doc_id=result.doc_id,
        pdf_filename=source.path.name,
        pages=bundle.total_pages,
        decision=result.decision.value,
        decision_rule=result.decision_rule,
        dominant_type=answer.dominant_type_overall if answer else None,
        blocker=counts.blocker,
        major=counts.major,
        minor=counts.minor,
        raised_by=tuple(
            sorted({issue.agent for issue in result.open_issues if issue.severity is not IssueSeverity.MINOR})
        ),
        attempts=len(result.attempts),
        evidence_quality_score=result.evidence_quality_score,
        calls=usage_of_run.calls,
        resumed=usage is None,
        tokens=usage_of_run.input_tokens + usage_of_run.output_tokens,
        cost_usd=usage_of_run.cost_usd,
    )


def _summarise_failure(
    source: SourceDocument, error: EvalkitError | Failure, *, resumed: bool = False
) -> DocumentSummary:
    return DocumentSummary(
        doc_id=source.doc_id,
        pdf_filename=encode_path_as_text(source.path.name),
        pages=None,
        decision=None,
        decision_rule=None,
        dominant_type=None,
        blocker=0,
        major=0,
        minor=0,
        raised_by=(),
        attempts=0,
        evidence_quality_score=None,
        calls=0,
        resumed=resumed,
        error=f"{error.message}. {error.remedy}",
    )


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on an event loop of its own, in a thread of its own: Jupyter's loop is running already."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(coroutine)
    finished_event = threading.Event()
    threading.Thread(target=_run_event_loop, args=(loop, task, finished_event), name="evalkit", daemon=True).start()
    interruption: KeyboardInterrupt | None = None
    while not finished_event.is_set():
        try:
            # In slices: an interrupt reaches the main thread only between them. Not Thread.join, which after an
            # interrupt takes the thread for ended (Python 3.11).
            finished_event.wait(0.2)
        except KeyboardInterrupt as error:
            # The first starts nothing new and lets calls that are paid for end; the next one drops those too.
            if interruption is None:
                log.warning("interrupted: waiting for what is under way; Ctrl-C again drops it")
            interruption = error
            loop.call_soon_threadsafe(task.cancel)
    if interruption:
        raise interruption
    return task.result()


def _run_event_loop(loop: asyncio.AbstractEventLoop, task: Awaitable[Any], finished_event: threading.Event) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(asyncio.wait([task]))  # type: ignore[type-var]
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    finally:
        finished_event.set()
