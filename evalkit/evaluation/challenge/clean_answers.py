"""Clean answers: classifications taken to be right, from output folders and PDFs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.orchestrator import ClassificationOutcome
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v5_arbiter import Decision
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import DocumentError, StoreError
from evalkit.evaluation.challenge.mutated_answer import (
    AnswerOrigin,
    CleanAnswer,
)
from evalkit.evaluation.ground_truth_table import GroundTruthDocument, read_folder_ground_truth
from evalkit.pipeline.document_discovery import SourceDocument, discover_documents
from evalkit.pipeline.executor.reader_pool import ReaderPool
from evalkit.pipeline.run_setup import build_reader_config
from evalkit.pipeline.supplied_labels import read_supplied_classifications
from evalkit.review.loaders import read_bundle, read_result
from evalkit.settings import Settings
from evalkit.store import RESULTS_FOLDER, open_output_folder

T = TypeVar("T")
#: Verifies the given classification of a document; classifies the document itself if the second argument is None.
Evaluate = Callable[[DocumentBundle, Any], Awaitable[ClassificationOutcome]]


LEFT_OUT_ESCALATED = "not accepted, and no expert has said what is right"
LEFT_OUT_CORRECTION = "an expert's correction with segments that are unconfirmed or have no quote"
#: Parts that an expert must vouch for before the corrected answer counts as right.
_STRUCTURE_PARTS = frozenset({"dominant_type", "segments"})
#: Processing time of bundles read here: a constant, because these bundles are never stored.
_BUNDLE_TIMESTAMP = "1970-01-01T00:00:00Z"


def iterate_clean_answers(
    folder_path: Path | str, collected_problems: list[str], collected_left_out: dict[str, list[str]]
) -> Iterator[CleanAnswer]:
    """Yield the answers that an expert vouched for or the arbiter accepted.

    A corrected answer is used only if the expert vouches for type and segments and every segment's type has a quote;
    otherwise the right answer is not completely known. Documents without a usable answer go to ``collected_left_out``
    (doc_ids by reason), unreadable files to ``collected_problems``.
    """
    output_folder = open_output_folder(folder_path)
    ground_truth = read_folder_ground_truth(folder_path)
    collected_problems += ground_truth.problems
    truth_by_doc_id = {document.record.doc_id: document for document in ground_truth.documents}
    for file_name in output_folder.list_json_files(RESULTS_FOLDER):
        doc_id = Path(file_name).stem
        try:
            result = read_result(output_folder, doc_id)
            if not isinstance(result, DocumentResult):
                continue
            answer = _choose_clean_answer(result, truth_by_doc_id.get(doc_id))
            if isinstance(answer, str):
                collected_left_out.setdefault(answer, []).append(doc_id)
            else:
                yield CleanAnswer(read_bundle(output_folder, doc_id), *answer)
        except StoreError as error:
            collected_problems.append(f"{doc_id}: {error}")


def _choose_clean_answer(
    result: DocumentResult, truth: GroundTruthDocument | None
) -> tuple[ClassificationOutput, AnswerOrigin] | str:
    """Return the answer taken to be right and its origin, or a reason to leave it out."""
    if truth is not None and truth.record.ground_truth_classification.segments:
        answer = truth.record.ground_truth_classification
        is_corrected = truth.record.ground_truth_source == "SME_CORRECTED"
        if answer.has_refuted_type or (
            is_corrected and not (_STRUCTURE_PARTS.issubset(truth.record.vouched) and _is_each_type_quoted(answer))
        ):
            return LEFT_OUT_CORRECTION
        if truth.is_simulated:
            return answer, AnswerOrigin.SIMULATED
        return answer, AnswerOrigin.CORRECTED if is_corrected else AnswerOrigin.VALIDATED
    if result.decision is not Decision.AUTO_ACCEPT or not (result.classification and result.classification.segments):
        return LEFT_OUT_ESCALATED
    is_supplied = "classifier" not in result.usage.by_agent
    return result.classification, AnswerOrigin.SUPPLIED if is_supplied else AnswerOrigin.UNVALIDATED


def _is_each_type_quoted(answer: ClassificationOutput) -> bool:
    return all(
        any(row.top_evidence for row in segment.segment_composition if row.document_type is segment.dominant_type)
        for segment in answer.segments
    )


async def classify_pdfs(
    pdf_paths: Sequence[Path],
    settings: Settings,
    evaluate: Evaluate,
    classifications_folder: Path | str | None,
    collected_problems: list[str],
    collected_left_out: dict[str, list[str]],
) -> list[CleanAnswer]:
    """Read PDFs; return their supplied answers, or classify and keep accepted ones.

    PDFs that cannot be read go to ``collected_problems``, PDFs without an accepted answer to ``collected_left_out``.
    """
    discovered_documents = discover_documents(pdf_paths, {})
    collected_problems += [str(problem) for problem in discovered_documents.problems]
    supplied_classifications: Mapping[str, Any] = {}
    if classifications_folder is not None:
        supplied_classifications, label_problems = read_supplied_classifications(
            Path(classifications_folder), discovered_documents.sources
        )
        collected_problems += [str(problem) for problem in label_problems]
    reader_config = build_reader_config(settings)

    async def read_and_classify(source: SourceDocument, reader_pool: ReaderPool) -> CleanAnswer | None:
        try:
            if source.read_error:
                raise source.read_error
            bundle = (
                await reader_pool.read(source.path, doc_id=source.doc_id, processing_timestamp=_BUNDLE_TIMESTAMP)
            ).bundle
        except DocumentError as error:
            collected_problems.append(f"{source.doc_id}: {error}")
            return None
        outcome = await evaluate(bundle, supplied_classifications.get(source.doc_id))
        is_supplied = source.doc_id in supplied_classifications
        is_trusted = is_supplied or outcome.verdict.decision is Decision.AUTO_ACCEPT
        if outcome.classification is None or not is_trusted:
            collected_left_out.setdefault(LEFT_OUT_ESCALATED, []).append(source.doc_id)
            return None
        origin = AnswerOrigin.SUPPLIED if is_supplied else AnswerOrigin.UNVALIDATED
        return CleanAnswer(bundle, outcome.classification, origin)

    with ReaderPool(settings.workers or 1, reader_config) as reader_pool:
        clean_answers = await gather_bounded(
            [partial(read_and_classify, source, reader_pool) for source in discovered_documents.sources], 2
        )
    return [clean_answer for clean_answer in clean_answers if clean_answer is not None]


async def gather_bounded(jobs: Sequence[Callable[[], Awaitable[T]]], max_concurrent: int) -> list[T]:
    """Run at most ``max_concurrent`` jobs at a time; return results in job order."""
    semaphore = asyncio.Semaphore(max_concurrent)

    async def run_job(job: Callable[[], Awaitable[T]]) -> T:
        async with semaphore:
            return await job()

    return list(await asyncio.gather(*map(run_job, jobs)))
