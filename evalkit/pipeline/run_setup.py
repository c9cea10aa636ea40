"""A run's reader and orchestrator, set up as its settings say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.own_verifiers import load_own_verifiers
from evalkit.classification.traps import load_shipped_and_site_traps
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.errors import UsageError
from evalkit.pipeline.executor.protocol import ReaderConfig
from evalkit.pipeline.model_session import ModelSession
from evalkit.settings import Settings

if TYPE_CHECKING:
    from evalkit.documents.readers.documentai.reader import DocumentAiReader


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
        _create_pinned_document_ai_reader(settings),
        settings.read_memory_mb,
    )
    _ = reader_config.reader_version  # a reader that is missing is one error, not one for every document
    return reader_config


def _create_pinned_document_ai_reader(settings: Settings) -> DocumentAiReader | None:
    """The processor with its version, which is asked once if it was not named."""
    if settings.reader == "local":
        return None
    processor = create_document_ai_reader(settings)
    return replace(processor, processor=processor.fetch_processor_version_name)


def create_document_ai_reader(settings: Settings) -> DocumentAiReader:
    """The processor that is set. UsageError where there is none, or it is not named as Google names it."""
    if not settings.documentai_processor:
        raise UsageError(
            "no processor of Document AI is named",
            code="DOCUMENTAI-PROCESSOR",
            remedy="Set documentai_processor: projects/PROJECT/locations/us/processors/ID/processorVersions/VERSION.",
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
    """What decides about documents as the settings say, asking these models; ``include_rule_findings``: see RetryOrchestrator."""
    return RetryOrchestrator(
        model_session.model,
        lossless_repair=settings.lossless_repair,
        on_agent_failure=settings.on_agent_failure,
        profile=settings.profile,
        window_characters=settings.window_characters if model_session.has_language_models else None,
        v3=V3TrapDetector(load_shipped_and_site_traps(settings.traps_file)),
        own_verifiers=load_own_verifiers(settings.verifiers, settings.verifier_seconds),
        include_rule_findings=include_rule_findings,
    )
