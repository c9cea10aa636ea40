"""Public functions of the pipeline: run, arun, evaluate, aevaluate, extract."""

import os
from pathlib import Path

from evalkit.classification.document_result import DocumentResult
from evalkit.core.clocks import format_zulu_now
from evalkit.core.timings import Times
from evalkit.pipeline.document_discovery import sanitise_file_stem
from evalkit.pipeline.document_run import create_result, estimate_documents, run_documents
from evalkit.pipeline.event_loop import run_sync
from evalkit.pipeline.executor.reader_pool import ReaderPool
from evalkit.pipeline.fields_run import ExtractOptions, ExtractSummary, extract_documents
from evalkit.pipeline.fingerprint import compute_fingerprint
from evalkit.pipeline.model_session import ModelSession, find_seeing_roles
from evalkit.pipeline.options import EvaluateOptions, RunOptions, accept_options, resolve_settings
from evalkit.pipeline.patient_roster import build_patient_expectation
from evalkit.pipeline.run_estimate import RunEstimate
from evalkit.pipeline.run_setup import build_reader_config, create_orchestrator
from evalkit.pipeline.run_summary import RunSummary
from evalkit.pipeline.supplied_labels import make_storable_classification
from evalkit.settings import read_patient_salt


@accept_options(RunOptions)
def run(options: RunOptions) -> RunSummary:
    """Process PDFs: read, classify and verify each, and accept or escalate it.

    Bundles, results, packets and ground truth are written. Works inside Jupyter too. Documents that fail are named in
    the summary; the others are finished. UsageError if nothing could be started.
    """
    return run_sync(run_documents(options))


@accept_options(RunOptions)
async def arun(options: RunOptions) -> RunSummary:
    """Process PDFs as :func:`run` does, on the caller's event loop."""
    return await run_documents(options)


@accept_options(RunOptions)
def estimate(options: RunOptions) -> RunEstimate:
    """Estimate the cost of :func:`run`, without any call of a model.

    Documents are read, and the run need not read them again. Finished documents and answers in the journal cost
    nothing.
    """
    return run_sync(estimate_documents(options))


@accept_options(EvaluateOptions)
def evaluate(options: EvaluateOptions) -> DocumentResult:
    """Read, classify and verify one PDF; return its result without writing anything.

    DocumentError if the PDF cannot be read.
    """
    return run_sync(_evaluate_document(options))


@accept_options(EvaluateOptions)
async def aevaluate(options: EvaluateOptions) -> DocumentResult:
    """Evaluate one PDF as :func:`evaluate` does, on the caller's event loop."""
    return await _evaluate_document(options)


@accept_options(ExtractOptions)
def extract(options: ExtractOptions) -> ExtractSummary:
    """Extract the fields of the reports and forms in PDFs.

    ``extractions/{doc_id}.json`` is written. Works inside Jupyter too. Documents that fail are named in the summary;
    the others are finished. UsageError if nothing could be started.
    """
    return run_sync(extract_documents(options))


async def _evaluate_document(options: EvaluateOptions) -> DocumentResult:
    settings = resolve_settings(**vars(options))
    started_at = format_zulu_now()
    absolute_path = Path(os.path.abspath(options.path))  # noqa: ASYNC240 - it looks at no disk
    reader_config = build_reader_config(settings)
    with ReaderPool(1, reader_config) as reader_pool:
        doc_id = sanitise_file_stem(options.path)
        read_outcome = await reader_pool.read(absolute_path, doc_id=doc_id, processing_timestamp=started_at)
        bundle = read_outcome.bundle
        page_images = (
            await reader_pool.render_page_images(
                read_outcome.shown_pdf or absolute_path,
                bundle,
                settings.pictures_per_document,
                settings.picture_pixels,
            )
            if find_seeing_roles(settings)
            else ()
        )
    supplied_classification = (
        None if options.classification is None else make_storable_classification(options.classification)
    )
    patient_expectation = build_patient_expectation(settings, absolute_path)
    async with ModelSession(settings) as model_session:
        outcome = await create_orchestrator(settings, model_session).evaluate(
            bundle, supplied_classification, patient_expectation, page_images
        )
    return create_result(
        bundle,
        outcome,
        settings,
        compute_fingerprint(
            bundle.sha256, settings, reader_config.reader_version, supplied_classification, patient_expectation
        ),
        Times(started_at=started_at, finished_at=format_zulu_now()),
        salt.encode() if (salt := read_patient_salt()) else None,
    )
