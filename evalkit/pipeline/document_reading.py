"""Reading of one document, or reuse of the bundle of an earlier run."""

import logging
import traceback
from contextlib import suppress
from pathlib import PurePath

from evalkit.core.log_events import log_event
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.page_builder import create_failed_page
from evalkit.errors import DocumentError, StoreError
from evalkit.pipeline.batch_execution import run_uninterrupted_storage_operation
from evalkit.pipeline.document_discovery import SourceDocument
from evalkit.pipeline.executor.protocol import BundleWithTimings, Executor
from evalkit.review.loaders import load_if_intact, read_bundle
from evalkit.store import EXTRACTIONS_FOLDER, OutputFolder, OutputIndex, bundle_file_name, converted_file_name

log = logging.getLogger(__name__)


def map_doc_ids_by_sha256(output_folder: OutputFolder, index: OutputIndex) -> dict[str, str]:
    """Map the SHA-256 of every document that was run or extracted to its doc_id."""
    doc_id_by_sha256 = {row["sha256"]: row["doc_id"] for row in index.list_documents() if row["sha256"]}
    for name in output_folder.list_json_files(EXTRACTIONS_FOLDER):
        with suppress(StoreError, LookupError):
            doc_id_by_sha256.setdefault(output_folder.read_json(name)["sha256"], PurePath(name).stem)
    return doc_id_by_sha256


def load_bundle_if_current(
    output_folder: OutputFolder, source: SourceDocument, reader_version: str
) -> DocumentBundle | None:
    """Load the stored bundle; None if the file, its path or the reader changed.

    None also if the bundle is incomplete.
    """
    bundle = load_if_intact(read_bundle, output_folder, source.doc_id)
    if bundle is None:
        return None
    is_same_input = (bundle.sha256, bundle.reader, bundle.file_path) == (
        source.sha256,
        reader_version,
        str(source.path),
    )
    # An OCR engine that reached its time limit may succeed now.
    is_complete = all(page.quality is not None or not page.problems for page in bundle.pages)
    is_shown = not bundle.is_converted or output_folder.has_file(converted_file_name(source.doc_id))
    return bundle if is_same_input and is_complete and is_shown else None


async def read_document_and_save_bundle(
    output_folder: OutputFolder, source: SourceDocument, executor: Executor, processing_timestamp: str
) -> BundleWithTimings:
    """Read a document and save its bundle; return the bundle with the seconds taken.

    DocumentError if the document cannot be read, or if the file changes meanwhile.
    """
    read_outcome = await executor.read(source.path, doc_id=source.doc_id, processing_timestamp=processing_timestamp)
    if read_outcome.bundle.sha256 != source.sha256:
        raise DocumentError(
            f"{source.path.name} changed while it was being read",
            code="READER-CHANGED",
            remedy="Run the document again when nothing writes to the file.",
        )
    log_event(
        log,
        logging.INFO,
        "read",
        document_sha256=read_outcome.bundle.sha256,
        pages=read_outcome.bundle.total_pages,
        **read_outcome.seconds_by_step,
    )
    await _save_bundle(output_folder, read_outcome.bundle, read_outcome.shown_pdf)
    return read_outcome


async def create_and_save_unread_bundle(
    output_folder: OutputFolder,
    source: SourceDocument,
    executor: Executor,
    processing_timestamp: str,
    reader_version: str,
) -> BundleWithTimings:
    """Save and return an unread bundle for a document that takes too long to read."""
    total_pages = await executor.count_pages(source.path)
    bundle = DocumentBundle(
        doc_id=source.doc_id,
        file_path=str(source.path),
        sha256=source.sha256 or "",
        reader=reader_version,
        is_too_slow=True,
        total_pages=total_pages,
        processing_timestamp=processing_timestamp,
        pages=tuple(map(create_failed_page, range(1, total_pages + 1))),
    )
    await _save_bundle(output_folder, bundle)
    return BundleWithTimings(bundle, {})


async def _save_bundle(output_folder: OutputFolder, bundle: DocumentBundle, shown_pdf: bytes | None = None) -> None:
    def save() -> None:
        if shown_pdf is None:
            output_folder.remove_file(converted_file_name(bundle.doc_id))
        else:
            output_folder.write_bytes(converted_file_name(bundle.doc_id), shown_pdf)
        output_folder.write_json(bundle_file_name(bundle.doc_id), bundle.model_dump(mode="json"), compact=True)

    await run_uninterrupted_storage_operation(output_folder, save)


def log_and_wrap_unexpected_error(source: SourceDocument, error: Exception) -> DocumentError:
    """Log an unexpected error without any document text; return it as DocumentError."""
    last_frame = traceback.extract_tb(error.__traceback__)[-1]
    log_id = source.sha256[:12] if source.sha256 else "without bytes"  # never the file's name, which may be a patient's
    log.error("document %s: %s in %s", log_id, type(error).__name__, last_frame.name)
    return DocumentError(
        f"{source.path.name} failed unexpectedly ({type(error).__name__} in {last_frame.name})",
        code="UNEXPECTED",
        remedy="Run the document again; if the error happens again, report it with this line.",
    )
