"""Field extraction from many documents: ``evalkit extract``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from evalkit.classification.document_result import UsageReport, UsageTotal
from evalkit.core.clocks import format_zulu_now
from evalkit.core.data_frames import TEXT, build_frame
from evalkit.core.notebook_cards import format_card
from evalkit.core.timings import Times
from evalkit.core.wording import count_names, format_count
from evalkit.errors import EvalkitError, ExecutorError, RunStopped
from evalkit.extraction.extraction_schema import Extraction
from evalkit.pipeline.batch_execution import BatchSummary, process_documents
from evalkit.pipeline.document_discovery import (
    SourceDocument,
    discover_documents,
    encode_path_as_text,
)
from evalkit.pipeline.document_reading import (
    load_bundle_if_current,
    log_and_wrap_unexpected_error,
    map_doc_ids_by_sha256,
    read_document_and_save_bundle,
)
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
from evalkit.pipeline.options import ProcessingOptions, resolve_settings
from evalkit.pipeline.purge import exclude_purged
from evalkit.pipeline.run_history import ResultWriter, read_run_records
from evalkit.pipeline.run_setup import build_reader_config
from evalkit.pipeline.site_weights import use_weights_in_force
from evalkit.review.index_rebuild import open_index
from evalkit.statements.statement_detection import refuse_bank_statement
from evalkit.store import OutputFolder, OutputIndex, extraction_file_name, open_output_folder, store_own_types

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class ExtractOptions(ProcessingOptions):
    """Options of ``extract``.

    Options without a description are as for :class:`~evalkit.pipeline.options.RunOptions`.

    Args:
        template: the template for every document; ``auto`` chooses by the reports and forms found in the document.
        tax_year: the required year; forms of another year are reviewed by a person.
        model: the model that extracts fields and judges them.
    """

    template: str = AUTO_TEMPLATE
    tax_year: int | None = None
    on_progress: Callable[[ExtractedDocument, int, int], None] | None = None


@dataclass(frozen=True)
class ExtractedDocument:
    """The fields extracted from one document."""

    doc_id: str
    pdf_filename: str
    extractions: tuple[Extraction, ...] = ()
    resumed: bool = False
    """True if an earlier run extracted the fields, so that this run did nothing."""
    error: str | None = None
    """The reason why the document failed, and the remedy; None if it did not fail."""
    calls: int = 0
    """The number of calls of models in this run."""
    tokens: int = 0
    """The input and output tokens of this run's calls."""
    cost_usd: str | None = "0"
    """The cost of this run's calls in US dollars, as decimal text; None if a price is unknown."""


@dataclass(frozen=True)
class ExtractSummary(BatchSummary[ExtractedDocument]):
    """Summary of ``evalkit extract``: the extracted fields of each document."""

    def list_field_rows(self) -> list[dict[str, Any]]:
        """List one row per extracted field, with its document, pages, value and status."""
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

    @property
    def headline(self) -> str:
        """Line that counts the reports and forms by decision."""
        decisions = self._list_decisions()
        counts_text = f": {count_names(decisions)}" * bool(decisions)
        return f"{len(decisions)} reports and forms in {format_count(len(self.documents), 'document')}{counts_text}"

    @property
    def has_escalation(self) -> bool:
        """True if an expert has to decide any report or form."""
        return "ESCALATE_TO_SME" in self._list_decisions()

    def _list_decisions(self) -> list[str]:
        return [
            extraction.decision or "NOT JUDGED" for document in self.documents for extraction in document.extractions
        ]

    def _repr_html_(self) -> str:
        review = ((f"evalkit review --output {self.output}", "the waiting cases, for experts"),) * self.has_escalation
        return format_card(
            self.headline,
            (f"Time: {self.seconds:.1f} s", *self.list_failure_lines()),
            (("evalkit.show(extracted.to_frame())", "each field with its value and its page"), *review),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the rows of ``list_field_rows`` as a pandas table."""
        return build_frame(self.list_field_rows(), _DTYPE_BY_FIELD_COLUMN, output=self.output)


_DTYPE_BY_FIELD_COLUMN = {
    **dict.fromkeys(("doc_id", "template", "document_type"), TEXT),
    **dict.fromkeys(("start_page", "end_page"), "Int64"),
    **dict.fromkeys(("decision", "field", "status", "value", "raw"), TEXT),
    "page": "Int64",
    "confidence": "Float64",
}


async def extract_documents(options: ExtractOptions) -> ExtractSummary:
    """Extract fields as :func:`evalkit.pipeline.extract` does, on the caller's loop."""
    settings = resolve_settings(**vars(options))
    output_folder = open_output_folder(options.output or settings.output, settings.database)
    monotonic_start = time.monotonic()
    reader_config = build_reader_config(settings)
    with (
        output_folder.hold_run_lock(saves_in_steps=True),
        use_weights_in_force(output_folder),
        open_index(output_folder) as index,
    ):
        if settings.types_file is not None:
            store_own_types(output_folder, settings.types_file)
        doc_id_by_sha256 = map_doc_ids_by_sha256(output_folder, index)
        discovered = discover_documents(
            options.paths, doc_id_by_sha256, output_root=output_folder.root, yes=options.yes
        )
        discovered = exclude_purged(output_folder, discovered, doc_id_by_sha256, even_purged=options.even_purged)
        async with ModelSession(
            settings, index.call_journal, fresh=options.fresh, for_extraction=True
        ) as model_session:
            process_document = partial(
                _extract_document,
                output_folder=output_folder,
                index=index,
                field_extraction=FieldExtractionPipeline(
                    settings,
                    model_session,
                    collect_versions(prompts_folder=settings.prompts_folder),
                    template_name=options.template,
                    tax_year=parse_tax_year(options.tax_year),
                ),
                reader_version=reader_config.reader_version,
                run_started_at=format_zulu_now(),
                fresh=options.fresh,
                writer=ResultWriter(output_folder, read_run_records(output_folder)),
                refuses_statements=options.template == AUTO_TEMPLATE,
            )
            has_new_document = any(
                not output_folder.has_file(extraction_file_name(source.doc_id)) for source in discovered.sources
            )
            if options.probe and (options.fresh or has_new_document):
                await model_session.probe_models()
            documents = await process_documents(
                discovered.sources,
                open_executor(
                    settings,
                    reader_config,
                    [source.path for source in discovered.sources],
                    decides_on_workers=not model_session.has_language_models,
                ),
                process_document,
                on_progress=options.on_progress,
                find_setup_error=lambda: model_session.setup_error,
            )
            problems = model_session.mark_run_finished()
    return ExtractSummary.create(
        documents,
        discovered,
        output=output_folder.root,
        monotonic_start=monotonic_start,
        by_agent=model_session.ledger.usage_by_role,
        further_problems=(*problems, *filter(None, [output_folder.changes.problem])),
    )


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
    writer: ResultWriter,
    refuses_statements: bool,
) -> ExtractedDocument:
    """Extract one document's fields; a failure is returned as its ``error``."""
    if source.read_error:
        return _create_failed_document(source, source.read_error)
    try:
        times = Times(run_started_at=run_started_at, started_at=format_zulu_now())
        bundle = None if fresh else load_bundle_if_current(output_folder, source, reader_version)
        if bundle is None:
            read_outcome = await read_document_and_save_bundle(output_folder, source, executor, times["started_at"])
            bundle, times["seconds"] = read_outcome.bundle, read_outcome.seconds_by_step
        if refuses_statements:
            refuse_bank_statement(bundle)
        document_extractions, stored_fields = await load_or_extract_and_publish_fields(
            output_folder, index, field_extraction, bundle, executor, times, writer=writer, fresh=fresh
        )
    except (ExecutorError, RunStopped):
        raise
    except EvalkitError as error:
        return _create_failed_document(source, error)
    except Exception as error:  # noqa: BLE001 - one document's defect must not end the run
        return _create_failed_document(source, log_and_wrap_unexpected_error(source, error))
    resumed = stored_fields is None
    usage = UsageTotal() if resumed else UsageReport.model_validate(document_extractions.usage)
    return ExtractedDocument(
        source.doc_id,
        encode_path_as_text(source.path.name),
        document_extractions.extractions,
        resumed,
        calls=usage.calls,
        tokens=usage.input_tokens + usage.output_tokens,
        cost_usd=usage.cost_usd,
    )


def _create_failed_document(source: SourceDocument, error: EvalkitError) -> ExtractedDocument:
    return ExtractedDocument(
        source.doc_id, encode_path_as_text(source.path.name), error=f"{error.message}. {error.remedy}"
    )
