"""Documents in, verified decisions out.

What is finished stays finished: a document's files are written first and its row of the index last, so a killed run
does again only what was under way. A document whose fingerprint is unchanged is neither read nor asked about again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.patient_keys import load_or_create_patient_salt
from evalkit.core.clocks import format_zulu_now
from evalkit.core.timings import Times
from evalkit.pipeline.document_discovery import discover_documents, sanitise_file_stem
from evalkit.pipeline.document_run import DocumentRun, create_result
from evalkit.pipeline.event_loop import run_sync
from evalkit.pipeline.executor.reader_pool import ReaderPool
from evalkit.pipeline.fingerprint import compute_fingerprint
from evalkit.pipeline.model_session import ModelSession
from evalkit.pipeline.patient_roster import build_patient_expectation, read_patient_roster
from evalkit.pipeline.purge import exclude_purged
from evalkit.pipeline.reindex import rebuild_and_count_documents_and_cases
from evalkit.pipeline.run_setup import build_reader_config, create_orchestrator, resolve_settings
from evalkit.pipeline.run_summary import RunProgressCallback, RunSummary
from evalkit.pipeline.supplied_labels import (
    list_unknown_production_labels,
    list_unused_label_problems,
    make_storable_classification,
    merge_stored_production_labels,
    read_production_labels,
    read_supplied_classifications,
    translate_production_row,
)
from evalkit.review.attention_checks import iterate_check_case_and_doc_ids
from evalkit.settings import Settings, read_patient_salt
from evalkit.store import RESULTS_FOLDER, OutputIndex, open_output_folder


def run(
    paths: Iterable[Path | str],
    *,
    output: Path | str | None = None,
    model: str | None = None,
    reader: str | None = None,
    profile: str | None = None,
    production: Path | str | None = None,
    patients_file: Path | str | None = None,
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
        patients_file: CSV or JSON with the patient whom each document should be about.
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
            patients_file=patients_file,
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
    patients_file: Path | str | None = None,
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
    output_folder = open_output_folder(output or resolved_settings.output, resolved_settings.database)
    reader_config = build_reader_config(resolved_settings)
    with output_folder.hold_run_lock(), OutputIndex(output_folder) as index:
        if not index.list_documents() and output_folder.list_json_files(
            RESULTS_FOLDER
        ):  # it only indexes: lost, it is made again
            rebuild_and_count_documents_and_cases(output_folder, index)
        row_by_sha256 = {row["sha256"]: row for row in index.list_documents() if row["sha256"]}
        doc_id_by_sha256 = {sha256: row["doc_id"] for sha256, row in row_by_sha256.items()}
        discovered = discover_documents(
            paths,
            doc_id_by_sha256,
            reserved_ids=(case_id for case_id, _ in iterate_check_case_and_doc_ids(output_folder)),
        )
        discovered = exclude_purged(output_folder, discovered, doc_id_by_sha256, even_purged=even_purged)
        label_by_doc_id, label_problems = None, []
        unknown_words: tuple[str, ...] = ()
        if production is not None:
            supplied_labels = read_production_labels(Path(production))
            label_row_by_doc_id = supplied_labels.map_labels_by_doc_id(discovered.sources)
            merge_stored_production_labels(output_folder, label_row_by_doc_id)
            label_by_doc_id = {
                doc_id: translate_production_row(row, resolved_settings.foreign_types)
                for doc_id, row in label_row_by_doc_id.items()
            }
            unknown_words = list_unknown_production_labels(
                label_row_by_doc_id.values(), resolved_settings.foreign_types
            )
            path_by_earlier_id = {row["doc_id"]: row["file_path"] for row in index.list_documents()}
            label_problems = list_unused_label_problems(supplied_labels, discovered.sources, path_by_earlier_id)
        roster_by_doc_id, roster_problems = {}, []
        if patients_file is not None:
            roster = read_patient_roster(Path(patients_file))
            roster_by_doc_id = roster.map_identities_by_doc_id(discovered.sources)
            roster_problems = roster.list_unused_row_problems(
                discovered.sources, {row["doc_id"]: row["file_path"] for row in index.list_documents()}
            )
        supplied_by_doc_id, classification_problems = (
            read_supplied_classifications(Path(classifications), discovered.sources)
            if classifications is not None
            else ({}, [])
        )
        row_by_doc_id = {row["doc_id"]: row for row in row_by_sha256.values()}
        async with ModelSession(
            resolved_settings, index.call_journal, fresh=fresh, for_extraction=extract
        ) as model_session:
            document_run = DocumentRun(
                resolved_settings,
                reader_config,
                output_folder,
                index,
                model_session,
                row_by_doc_id,
                label_by_doc_id,
                supplied_by_doc_id,
                roster_by_doc_id,
                load_or_create_patient_salt(output_folder),
                fresh,
                extract,
            )
            documents = await document_run.process_sources(discovered.sources, on_progress)
            model_session.mark_run_finished()
    summary = RunSummary.create(
        documents,
        discovered,
        output=output_folder.root,
        monotonic_start=monotonic_start,
        by_agent=model_session.ledger.usage_by_role,
        further_problems=[*label_problems, *roster_problems, *classification_problems],
    )
    return replace(summary, timings=document_run.timings, unknown_production_labels=unknown_words)


def evaluate(
    path: Path | str,
    *,
    classification: Mapping[str, Any] | str | None = None,
    model: str | None = None,
    reader: str | None = None,
    profile: str | None = None,
    settings: Settings | None = None,
) -> DocumentResult:
    """Read, classify, verify and decide one PDF; nothing is written. DocumentError where it cannot be read.

    ``classification`` is an answer of another system, as JSON value or text, to be verified instead of asking.
    """
    return run_sync(
        aevaluate(path, classification=classification, model=model, reader=reader, profile=profile, settings=settings)
    )


async def aevaluate(
    path: Path | str,
    *,
    classification: Mapping[str, Any] | str | None = None,
    model: str | None = None,
    reader: str | None = None,
    profile: str | None = None,
    settings: Settings | None = None,
) -> DocumentResult:
    """The asynchronous twin of :func:`evaluate`."""
    resolved_settings = resolve_settings(settings, model=model, reader=reader, profile=profile)
    started_at = format_zulu_now()
    absolute_path = Path(os.path.abspath(path))  # noqa: ASYNC240 - it looks at no disk
    reader_config = build_reader_config(resolved_settings)
    with ReaderPool(1, reader_config) as reader_pool:
        bundle = (
            await reader_pool.read(absolute_path, doc_id=sanitise_file_stem(path), processing_timestamp=started_at)
        ).bundle
    supplied_classification = None if classification is None else make_storable_classification(classification)
    patient_expectation = build_patient_expectation(resolved_settings, absolute_path)
    async with ModelSession(resolved_settings) as model_session:
        outcome = await create_orchestrator(resolved_settings, model_session).evaluate(
            bundle, supplied_classification, patient_expectation
        )
    result_fingerprint = compute_fingerprint(
        bundle.sha256, resolved_settings, reader_config.reader_version, supplied_classification, patient_expectation
    )
    return create_result(
        bundle,
        outcome,
        resolved_settings,
        result_fingerprint,
        Times(started_at=started_at, finished_at=format_zulu_now()),
        salt.encode() if (salt := read_patient_salt()) else None,
    )
