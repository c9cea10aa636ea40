"""Fields of many documents: ``evalkit extract``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from evalkit.core.clocks import format_zulu_now
from evalkit.core.timings import Times
from evalkit.errors import EvalkitError, ExecutorError, StoreError
from evalkit.extraction.extraction_schema import Extraction
from evalkit.pipeline.batch_execution import BatchSummary, process_documents
from evalkit.pipeline.document_discovery import SourceDocument, discover_documents, encode_path_as_text
from evalkit.pipeline.document_reading import (
    load_bundle_if_current,
    log_and_wrap_unexpected_error,
    read_document_and_save_bundle,
)
from evalkit.pipeline.event_loop import run_sync
from evalkit.pipeline.executor.protocol import Executor
from evalkit.pipeline.executor.selection import open_executor
from evalkit.pipeline.field_extraction import (
    AUTO_TEMPLATE,
    FieldExtractionPipeline,
    load_or_extract_and_publish_fields,
    parse_tax_year,
)
from evalkit.pipeline.fingerprint import collect_versions
from evalkit.pipeline.model_session import ModelSession
from evalkit.pipeline.purge import exclude_purged
from evalkit.pipeline.run_setup import build_reader_config, resolve_settings
from evalkit.review.loaders import read_extractions
from evalkit.settings import Settings
from evalkit.store import EXTRACTIONS_FOLDER, OutputFolder, OutputIndex, open_output_folder

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ExtractedDocument:
    """What was extracted from one document."""

    doc_id: str
    pdf_filename: str
    extractions: tuple[Extraction, ...] = ()
    resumed: bool = False
    """Extracted by an earlier run; nothing was done now."""
    error: str | None = None
    """Why it failed, and the remedy."""


@dataclass(frozen=True)
class ExtractSummary(BatchSummary[ExtractedDocument]):
    """What became of ``evalkit extract``."""

    def list_field_rows(self) -> list[dict[str, Any]]:
        """One row per field of every report and form, for a table."""
        return [
            {
                "doc_id": document.doc_id,
                "template": extraction.template,
                "document_type": extraction.document_type,
                "start_page": extraction.start_page,
                "end_page": extraction.end_page,
                "decision": extraction.decision,
                "field": field_name,
                "status": field_value.status.value,
                "value": field_value.value,
                "raw": field_value.raw,
                "page": field_value.page,
                "confidence": field_value.confidence,
            }
            for document in self.documents
            for extraction in document.extractions
            for field_name, field_value in extraction.fields.items()
        ]

    def to_frame(self) -> pd.DataFrame:
        """``list_field_rows`` as a table."""
        import pandas as pd

        return pd.DataFrame(self.list_field_rows(), columns=FIELD_COLUMNS, dtype=object)


FIELD_COLUMNS = [
    "doc_id", "template", "document_type", "start_page", "end_page", "decision", "field", "status", "value", "raw",
    "page", "confidence",
]  # fmt: skip

ExtractProgressCallback = Callable[[ExtractedDocument, int, int], None]


def extract(
    paths: Iterable[Path | str],
    *,
    template: str = AUTO_TEMPLATE,
    tax_year: int | None = None,
    output: Path | str | None = None,
    model: str | None = None,
    reader: str | None = None,
    workers: int | None = None,
    executor: str | None = None,
    fresh: bool = False,
    even_purged: bool = False,
    on_progress: ExtractProgressCallback | None = None,
    settings: Settings | None = None,
) -> ExtractSummary:
    """Extract the fields of reports and forms in PDFs and folders of PDFs; writes ``extractions/{doc_id}.json``.

    Works inside Jupyter too. Documents that fail are named in the summary; the others are finished.

    Args:
        paths: PDF files, and folders that are searched.
        template: the name of the template that every document is taken for; ``auto``: whatever stands in it.
        tax_year: the year that is needed; forms of another year go to a person.
        output: the folder to write to.
        model: who extracts and judges.
        reader: ``local`` or ``documentai``.
        workers: processes that read PDFs; 0 is one per core.
        executor: ``local``, or ``dask://HOST:PORT``: where PDFs are read, and their fields without a language model.
        fresh: do everything again, also what an earlier run finished.
        even_purged: take documents in again that were purged.
        on_progress: called after each document.
        settings: instead of the environment and ``evalkit.toml``.

    Raises:
        UsageError: nothing could be begun.
    """
    resolved_settings = resolve_settings(
        settings, output=output, model=model, workers=workers, reader=reader, executor=executor
    )
    output_folder = open_output_folder(output or resolved_settings.output, resolved_settings.database)
    return run_sync(
        _extract_documents(
            paths,
            output_folder,
            resolved_settings,
            template,
            tax_year,
            on_progress,
            fresh=fresh,
            even_purged=even_purged,
        )
    )


async def _extract_documents(
    paths: Iterable[Path | str],
    output_folder: OutputFolder,
    settings: Settings,
    template_name: str,
    tax_year: int | None,
    on_progress: ExtractProgressCallback | None,
    *,
    fresh: bool,
    even_purged: bool,
) -> ExtractSummary:
    monotonic_start = time.monotonic()
    reader_config = build_reader_config(settings)
    with output_folder.hold_run_lock(), OutputIndex(output_folder) as index:
        doc_id_by_sha256 = _map_doc_ids_by_sha256(output_folder, index)
        discovered = discover_documents(paths, doc_id_by_sha256)
        discovered = exclude_purged(output_folder, discovered, doc_id_by_sha256, even_purged=even_purged)
        async with ModelSession(settings, index.call_journal, fresh=fresh, for_extraction=True) as model_session:
            field_extraction = FieldExtractionPipeline(
                settings,
                model_session,
                collect_versions(),
                template_name=template_name,
                tax_year=parse_tax_year(tax_year),
            )
            process_document = partial(
                _extract_document,
                output_folder=output_folder,
                index=index,
                field_extraction=field_extraction,
                reader_version=reader_config.reader_version,
                run_started_at=format_zulu_now(),
                fresh=fresh,
            )
            executor = open_executor(
                settings,
                reader_config,
                [source.path for source in discovered.sources],
                decides_on_workers=not model_session.has_language_models,
            )
            documents = await process_documents(discovered.sources, executor, process_document, on_progress=on_progress)
            model_session.mark_run_finished()
    return ExtractSummary.create(
        documents,
        discovered,
        output=output_folder.root,
        monotonic_start=monotonic_start,
        by_agent=model_session.ledger.usage_by_role,
    )


def _map_doc_ids_by_sha256(output_folder: OutputFolder, index: OutputIndex) -> dict[str, str]:
    """The doc_id of every document that was run, or of which fields were extracted, by SHA-256."""
    doc_id_by_sha256 = {row["sha256"]: row["doc_id"] for row in index.list_documents() if row["sha256"]}
    for name in output_folder.list_json_files(EXTRACTIONS_FOLDER):
        with suppress(StoreError):
            stored_extractions = read_extractions(output_folder, PurePath(name).stem)
            doc_id_by_sha256.setdefault(stored_extractions.sha256, stored_extractions.doc_id)
    return doc_id_by_sha256


async def _extract_document(
    source: SourceDocument,
    executor: Executor,
    *,
    output_folder: OutputFolder,
    index: OutputIndex,
    field_extraction: FieldExtractionPipeline,
    reader_version: str,
    run_started_at: str,
    fresh: bool,
) -> ExtractedDocument:
    """One document, whatever happens to it."""
    if source.read_error:
        return _create_failed_document(source, source.read_error)
    try:
        times = Times(run_started_at=run_started_at, started_at=format_zulu_now())
        bundle = None if fresh else load_bundle_if_current(output_folder, source, reader_version)
        if bundle is None:
            bundle, times["seconds"] = await read_document_and_save_bundle(
                output_folder, source, executor, times["started_at"]
            )
        document_extractions, resumed = await load_or_extract_and_publish_fields(
            output_folder, index, field_extraction, bundle, executor, times, fresh=fresh
        )
    except ExecutorError:
        raise
    except EvalkitError as error:
        return _create_failed_document(source, error)
    except Exception as error:  # noqa: BLE001 - one document's fault must not end the others' run
        return _create_failed_document(source, log_and_wrap_unexpected_error(source, error))
    return ExtractedDocument(
        source.doc_id, encode_path_as_text(source.path.name), document_extractions.extractions, resumed
    )


def _create_failed_document(source: SourceDocument, error: EvalkitError) -> ExtractedDocument:
    return ExtractedDocument(
        source.doc_id, encode_path_as_text(source.path.name), error=f"{error.message}. {error.remedy}"
    )
