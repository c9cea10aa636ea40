"""Creation of a run's PDF reader and orchestrator from its settings."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.own_verifiers import load_own_verifiers
from evalkit.classification.traps import load_shipped_and_site_traps
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.core.install_hint import format_install_hint
from evalkit.errors import UsageError
from evalkit.pipeline.executor.protocol import ReaderConfig
from evalkit.pipeline.fingerprint import find_window_characters
from evalkit.pipeline.model_session import ModelSession, find_seeing_roles
from evalkit.settings import Settings

if TYPE_CHECKING:
    from evalkit.documents.ocr import OcrEngineName
    from evalkit.documents.readers.documentai.reader import DocumentAiReader

log = logging.getLogger(__name__)


def build_reader_config(settings: Settings) -> ReaderConfig:
    """Build the configuration of the PDF reader from the settings.

    A warning is logged if scanned pages have an OCR engine but no second one. UsageError if the OCR engine is missing,
    or if the Document AI processor cannot be reached.
    """
    reader_config = ReaderConfig(
        settings.read_seconds,
        settings.ocr,
        settings.ocr_seconds,
        _create_pinned_document_ai_reader(settings),
        settings.read_memory_mb,
    )
    _ = reader_config.reader_version  # checked here: a missing reader is one error, not one for every document
    if not reader_config.documentai and reader_config.ocr_engine != "none":
        _warn_of_missing_second_reader(reader_config.ocr_engine)
    return reader_config


def _warn_of_missing_second_reader(engine_name: OcrEngineName) -> None:
    from evalkit.documents.ocr import find_second_reader, resolve_ocr_engine

    ocr_engine = resolve_ocr_engine(engine_name)
    if ocr_engine and not find_second_reader(ocr_engine.name_and_version):
        log.warning(
            "no second OCR engine reads the numbers of scanned pages again, so that more of them go to a person: "
            "use tesseract, and install RapidOCR (%s)",
            format_install_hint("ocr"),
        )


def _create_pinned_document_ai_reader(settings: Settings) -> DocumentAiReader | None:
    """Create the Document AI reader with a fixed version; None for the local reader.

    If the settings name no version, the processor is asked for it once.
    """
    if settings.reader == "local":
        return None
    processor = create_document_ai_reader(settings)
    return replace(processor, processor=processor.fetch_processor_version_name)


def create_document_ai_reader(settings: Settings) -> DocumentAiReader:
    """Create the Document AI reader that the settings describe.

    UsageError if the settings name no processor, or if its name is malformed.
    """
    if not settings.documentai_processor:
        raise UsageError(
            "the setting documentai_processor is missing",
            code="DOCUMENTAI-PROCESSOR",
            remedy="Set documentai_processor to projects/PROJECT/locations/us/processors/ID/processorVersions/VERSION.",
        )
    from evalkit.documents.readers.documentai.reader import DocumentAiReader

    return DocumentAiReader(
        settings.documentai_processor,
        settings.documentai_endpoint,
        settings.documentai_seconds,
        settings.documentai_transport,
    )


def create_orchestrator(
    settings: Settings, model_session: ModelSession, *, include_rule_findings: bool = True
) -> RetryOrchestrator:
    """Create the orchestrator that classifies, verifies and decides with these models.

    ``include_rule_findings`` as for ``RetryOrchestrator``.
    """
    return RetryOrchestrator(
        model_session.model,
        lossless_repair=settings.lossless_repair,
        on_agent_failure=settings.on_agent_failure,
        profile=settings.profile,
        window_characters=find_window_characters(settings) if model_session.has_language_models else None,
        v3=V3TrapDetector(load_shipped_and_site_traps(settings.traps_file)),
        own_verifiers=load_own_verifiers(settings.verifiers, settings.verifier_seconds),
        include_rule_findings=include_rule_findings,
        languages=settings.languages,
        seeing_roles=find_seeing_roles(settings),
    )
