"""Fields of many documents: ``evalkit extract``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from evalkit.batch.asking import Asking
from evalkit.batch.extracting import AUTO, FieldExtraction, ensure, year_of
from evalkit.batch.identity import Source, find
from evalkit.batch.purge import without_purged
from evalkit.batch.reading import Executor
from evalkit.batch.round import Summary, each, executor_of
from evalkit.batch.runner import (
    as_text,
    how_of,
    in_a_thread,
    read_document,
    settings_of,
    stored_bundle,
    unexpected,
    versions,
)
from evalkit.clocks import now
from evalkit.errors import EvalkitError, ExecutorError, StoreError
from evalkit.extraction.schema import Extraction
from evalkit.review.stored import read_extractions
from evalkit.settings import Settings
from evalkit.store import EXTRACTIONS, Files, Index
from evalkit.times import Times

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
class ExtractSummary(Summary[ExtractedDocument]):
    """What became of ``evalkit extract``."""

    def rows(self) -> list[dict[str, Any]]:
        """One row per field of every report and form, for a table."""
        return [
            {
                "doc_id": document.doc_id,
                "template": one.template,
                "document_type": one.document_type,
                "start_page": one.start_page,
                "end_page": one.end_page,
                "decision": one.decision,
                "field": name,
                "status": value.status.value,
                "value": value.value,
                "raw": value.raw,
                "page": value.page,
                "confidence": value.confidence,
            }
            for document in self.documents
            for one in document.extractions
            for name, value in one.fields.items()
        ]

    def to_frame(self) -> pd.DataFrame:
        """``rows`` as a table."""
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=ROW, dtype=object)


ROW = [
    "doc_id", "template", "document_type", "start_page", "end_page", "decision", "field", "status", "value", "raw",
    "page", "confidence",
]  # fmt: skip

Progress = Callable[[ExtractedDocument, int, int], None]


def extract(
    paths: Iterable[Path | str],
    *,
    template: str = AUTO,
    tax_year: int | None = None,
    output: Path | str | None = None,
    model: str | None = None,
    reader: str | None = None,
    workers: int | None = None,
    executor: str | None = None,
    fresh: bool = False,
    even_purged: bool = False,
    on_progress: Progress | None = None,
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
    given = settings_of(settings, output=output, model=model, workers=workers, reader=reader, executor=executor)
    files = Files(output or given.output, given.database)
    return in_a_thread(
        _extract(paths, files, given, template, tax_year, on_progress, fresh=fresh, even_purged=even_purged)
    )


async def _extract(
    paths: Iterable[Path | str],
    files: Files,
    given: Settings,
    template: str,
    tax_year: int | None,
    on_progress: Progress | None,
    *,
    fresh: bool,
    even_purged: bool,
) -> ExtractSummary:
    began = time.monotonic()
    how = how_of(given)
    with files.run_lock(), Index(files.root, given.database) as index:
        known = _known(files, index)
        found = find(paths, known)
        found = without_purged(files, found, known, even_purged=even_purged)
        async with Asking(given, index.calls, fresh=fresh, extracts=True) as asking:
            work = FieldExtraction(given, asking, versions(), name=template, tax_year=year_of(tax_year))
            treat = partial(
                _document, files=files, index=index, work=work, reader=how.reader, run_started_at=now(), fresh=fresh
            )
            executor = executor_of(given, how, found.sources, decides=not asking.is_remote)
            documents = await each(found.sources, executor, treat, on_progress=on_progress)
            asking.end()
    return ExtractSummary.of(documents, found, output=files.root, began=began, by_agent=asking.ledger.spent)


def _known(files: Files, index: Index) -> dict[str, str]:
    """The doc_id of every document that was run, or of which fields were extracted, by SHA-256."""
    known = {row["sha256"]: row["doc_id"] for row in index.documents() if row["sha256"]}
    for name in files.names(EXTRACTIONS):
        with suppress(StoreError):
            one = read_extractions(files, PurePath(name).stem)
            known.setdefault(one.sha256, one.doc_id)
    return known


async def _document(
    source: Source,
    readers: Executor,
    *,
    files: Files,
    index: Index,
    work: FieldExtraction,
    reader: str,
    run_started_at: str,
    fresh: bool,
) -> ExtractedDocument:
    """One document, whatever happens to it."""
    if source.fault:
        return _failed(source, source.fault)
    try:
        times = Times(run_started_at=run_started_at, started_at=now())
        bundle = None if fresh else stored_bundle(files, source, reader)
        if bundle is None:
            bundle, times["seconds"] = await read_document(files, source, readers, times["started_at"])
        made, resumed = await ensure(files, index, work, bundle, readers, times, fresh=fresh)
    except ExecutorError:
        raise
    except EvalkitError as error:
        return _failed(source, error)
    except Exception as error:  # noqa: BLE001 - one document's fault must not end the others' run
        return _failed(source, unexpected(source, error))
    return ExtractedDocument(source.doc_id, as_text(source.path.name), made.extractions, resumed)


def _failed(source: Source, error: EvalkitError) -> ExtractedDocument:
    return ExtractedDocument(source.doc_id, as_text(source.path.name), error=f"{error.message}. {error.remedy}")
