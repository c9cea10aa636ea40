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

from evalkit.batch.asking import Asking
from evalkit.batch.audit import AuditPlan
from evalkit.batch.draws import sampled
from evalkit.batch.extracting import FieldExtraction, ensure
from evalkit.batch.identity import Source, find, stem_of
from evalkit.batch.labels import checked, idle, keep_production, read_classifications, read_production
from evalkit.batch.purge import without_purged
from evalkit.batch.reading import Executor, How, Read, Readers
from evalkit.batch.reindex import rebuild
from evalkit.batch.round import Summary, beside, each, executor_of
from evalkit.classification.learned import learned
from evalkit.classification.lexicon import lexicon
from evalkit.classification.orchestrator import Outcome, RetryOrchestrator, Unparseable
from evalkit.classification.result import DocumentFailure, DocumentResult, Failure
from evalkit.classification.schema import type_definitions
from evalkit.classification.traps import traps_of
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v5_arbiter import Decision, count
from evalkit.clocks import now
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import DocumentError, EvalkitError, ExecutorError, StoreError, UsageError
from evalkit.grounding import grounding_version
from evalkit.issue import IssueSeverity
from evalkit.llm.model import Usage
from evalkit.llm.prompts import prompt_versions
from evalkit.logs import tell
from evalkit.review.ground_truth import (
    accept_silver,
    newest_revision,
    silver_probability,
    withdraw_silver,
    withdraw_unbacked,
)
from evalkit.review.lock import writing
from evalkit.review.packet import EXTRACTION, SMEPacketGenerator, is_frozen, publish, withdraw
from evalkit.review.seeded import seeded_cases
from evalkit.review.stored import read_bundle, read_result
from evalkit.settings import Settings
from evalkit.store import RESULTS, Files, Index, bundle_name, digest, packet_name, result_name
from evalkit.times import FAILING, Times

if TYPE_CHECKING:
    import pandas as pd

    from evalkit.documents.documentai import DocumentAi

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Reasons for which a document may be read all the same the next time.
_MAY_PASS = frozenset({"READER-CRASHED", "READER-MEMORY", "READER-UNREADABLE", "READER-CHANGED", "UNEXPECTED"}) | {
    f"DOCUMENTAI-{why}" for why in ("KEY", "MALFORMED", "PROCESSOR", "RATE", "SERVER", "TIMEOUT", "UNREACHABLE")
}


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
class RunSummary(Summary[DocumentSummary]):
    """What became of a run."""

    def to_frame(self) -> pd.DataFrame:
        """One row per document, columns as the fields of :class:`DocumentSummary`."""
        import pandas as pd

        columns = list(DocumentSummary.__dataclass_fields__)
        return pd.DataFrame([vars(document) for document in self.documents], columns=columns)

    def issues_frame(self) -> pd.DataFrame:
        """One row per issue of these documents, read from their results: doc_id and the issue's main fields."""
        import pandas as pd

        files = Files(self.output)
        results = [files.read(result_name(one.doc_id)) for one in self.documents if one.decision]
        rows = [{"doc_id": result["doc_id"]} | issue for result in results for issue in result["issues"]]
        return pd.DataFrame(rows, columns=["doc_id", *_ISSUE_COLUMNS])


Progress = Callable[[DocumentSummary, int, int], None]
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
    on_progress: Progress | None = None,
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
    return in_a_thread(
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
    on_progress: Progress | None = None,
    settings: Settings | None = None,
) -> RunSummary:
    """The asynchronous twin of :func:`run`."""
    began = time.monotonic()
    given = settings_of(
        settings, output=output, model=model, workers=workers, reader=reader, profile=profile, executor=executor
    )
    files = Files(output or given.output, given.database)
    how = how_of(given)
    with files.run_lock(), Index(files.root, given.database) as index:
        if not index.documents() and files.names(RESULTS):  # it only indexes: lost, it is made again
            rebuild(files, index)
        known = {row["sha256"]: row for row in index.documents() if row["sha256"]}
        doc_ids = {sha256: row["doc_id"] for sha256, row in known.items()}
        found = find(paths, doc_ids, reserved=(case_id for case_id, _ in seeded_cases(files)))
        found = without_purged(files, found, doc_ids, even_purged=even_purged)
        labels, idle_rows = None, []
        if production is not None:
            given_labels = read_production(Path(production))
            labels = given_labels.among(found.sources)
            keep_production(files, labels)
            earlier = {row["doc_id"]: row["file_path"] for row in index.documents()}
            idle_rows = idle(given_labels, found.sources, earlier)
        supplied, unknown = (
            read_classifications(Path(classifications), found.sources) if classifications is not None else ({}, [])
        )
        rows = {row["doc_id"]: row for row in known.values()}
        async with Asking(given, index.calls, fresh=fresh, extracts=extract) as asking:
            batch = _Batch(given, how, files, index, asking, rows, labels, supplied, fresh, extract)
            documents = await batch.process(found.sources, on_progress)
            asking.end()
    return RunSummary.of(
        documents,
        found,
        output=files.root,
        began=began,
        by_agent=asking.ledger.spent,
        more=[*idle_rows, *unknown],
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
    return in_a_thread(
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
    given = settings_of(settings, model=model, reader=reader, profile=profile)
    started = now()
    where = Path(os.path.abspath(path))  # noqa: ASYNC240 - it looks at no disk
    how = how_of(given)
    with Readers(1, how) as readers:
        bundle = (await readers.read(where, doc_id=stem_of(path), timestamp=started)).bundle
    supplied = None if classification is None else checked(classification)
    async with Asking(given) as asking:
        outcome = await orchestrator(given, asking).evaluate(bundle, supplied)
    print_ = fingerprint(bundle.sha256, given, how.reader, supplied)
    return _result(bundle, outcome, given, print_, Times(started_at=started, finished_at=now()))


def settings_of(
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
    given = [name for name, value in options.items() if value is not None]
    if settings is not None:
        if given:
            raise UsageError(
                f"settings are given, and beside them {', '.join(given)}",
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


def how_of(settings: Settings) -> How:
    """What reads. UsageError where it cannot: an engine that is missing, a processor that cannot be asked."""
    how = How(settings.read_seconds, settings.ocr, settings.ocr_seconds, _documentai(settings), settings.read_memory_mb)
    _ = how.reader  # a reader that is missing is one error, not one for every document
    return how


def _documentai(settings: Settings) -> DocumentAi | None:
    """The processor with its version, which is asked once if it was not named."""
    if settings.reader == "local":
        return None
    asked = document_ai(settings)
    return replace(asked, processor=asked.pinned)


def document_ai(settings: Settings) -> DocumentAi:
    """The processor that is set. UsageError where there is none, or it is not named as Google names it."""
    if not settings.documentai_processor:
        raise UsageError(
            "no processor of Document AI is named",
            code="DOCUMENTAI-PROCESSOR",
            remedy="Set documentai_processor: projects/PROJECT/locations/us/processors/ID/processorVersions/VERSION.",
        )
    from evalkit.documents.documentai import DocumentAi

    return DocumentAi(
        settings.documentai_processor,
        settings.documentai_endpoint,
        settings.documentai_seconds,
        settings.documentai_transport,
    )


def orchestrator(settings: Settings, asking: Asking, *, observing: bool = True) -> RetryOrchestrator:
    """What decides about documents as the settings say, asking these models; ``observing``: see RetryOrchestrator."""
    return RetryOrchestrator(
        asking.model,
        lossless_repair=settings.lossless_repair,
        on_agent_failure=settings.on_agent_failure,
        profile=settings.profile,
        window=settings.window_characters if asking.is_remote else None,
        v3=V3TrapDetector(traps_of(settings.traps_file)),
        observing=observing,
    )


@cache
def versions(traps_file: str | None = None) -> dict[str, Any]:
    """Of everything that makes a result: code, tables, prompts. UsageError for a site's traps that cannot be read."""
    traps = traps_of(traps_file)
    return {
        "evalkit": version("evalkit"),
        "grounding": grounding_version(),
        "types": type_definitions()["version"],
        "lexicon": lexicon().version,
        "weights": learned().version,
        "traps": traps.version,
        "tables_sha256": digest([type_definitions(), traps.model_dump(mode="json")]),
        "prompts": prompt_versions(),
    }


def fingerprint(sha256: str, settings: Settings, reader: str, supplied: Any) -> str:
    """Of all that makes a document's result; workers, output and production's labels are none of it."""
    return digest(
        {
            "sha256": sha256,
            "reader": reader,
            "ocr_seconds": settings.ocr_seconds,
            "models": settings.models.model_dump(),
            "profile": settings.profile,
            "window_characters": settings.window_characters,
            "own_servers": [settings.openai_base_url, settings.ollama_base_url],
            "lossless_repair": settings.lossless_repair,
            "on_agent_failure": settings.on_agent_failure,
            "versions": versions(settings.traps_file),
            "supplied": None if supplied is None else digest(_json_of(supplied)),
        }
    )


def _json_of(supplied: Any) -> Any:
    return {"unparseable": supplied.reason} if isinstance(supplied, Unparseable) else supplied


def _result(bundle: DocumentBundle, outcome: Outcome, settings: Settings, print_: str, times: Times) -> DocumentResult:
    return DocumentResult(
        doc_id=bundle.doc_id,
        sha256=bundle.sha256,
        fingerprint=print_,
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
        versions=versions(settings.traps_file)
        | ({"models": settings.models.by_role} if settings.models.by_role else {}),
        times=times,
    )


def stored_bundle(files: Files, source: Source, reader: str) -> DocumentBundle | None:
    """The bundle that an earlier run read from the same bytes with the same reader, if any."""
    bundle = _current(read_bundle, files, source.doc_id)
    if bundle is None:
        return None
    same = (bundle.sha256, bundle.reader, bundle.file_path) == (source.sha256, reader, str(source.path))
    # What an engine could not do in its time, it may do now.
    is_done = all(page.quality is not None or not page.problems for page in bundle.pages)
    return bundle if same and is_done else None


def _current(read: Callable[[Files, str], T], files: Files, doc_id: str) -> T | None:
    """What an earlier run has left; None where it is made again: it is not there, or torn.

    StoreError where a newer evalkit has written it: that is not written over.
    """
    try:
        return read(files, doc_id)
    except StoreError as error:
        if error.code == "STORE-NEWER":
            raise
        return None


async def read_document(files: Files, source: Source, readers: Executor, timestamp: str) -> Read:
    """The document, read and its bundle written. DocumentError where it cannot be read, or changes meanwhile."""
    made = await readers.read(source.path, doc_id=source.doc_id, timestamp=timestamp)
    if made.bundle.sha256 != source.sha256:
        raise DocumentError(
            f"{source.path.name} changed while it was being read",
            code="READER-CHANGED",
            remedy="Run it again when nobody writes to it.",
        )
    tell(log, logging.INFO, "read", document=made.bundle.sha256, pages=made.bundle.total_pages, **made.seconds)
    await beside(files, _write_bundle, files, made.bundle)
    return made


def _write_bundle(files: Files, bundle: DocumentBundle) -> None:
    files.write(bundle_name(bundle.doc_id), bundle.model_dump(mode="json"), compact=True)


class _Batch:
    """One run over its documents."""

    def __init__(
        self,
        settings: Settings,
        how: How,
        files: Files,
        index: Index,
        asking: Asking,
        known: Mapping[str, Mapping[str, Any]],
        labels: Mapping[str, Mapping[str, Any]] | None,
        supplied: Mapping[str, Any],
        fresh: bool,
        extract: bool,
    ) -> None:
        self._settings = settings
        self._files = files
        self._index = index
        self._known = known
        self._labels = labels
        self._supplied = supplied
        self._fresh = fresh
        self._how = how
        self._asking = asking
        self._orchestrator = orchestrator(settings, asking)
        self._extraction = FieldExtraction(settings, asking, versions()) if extract else None
        self._audit = AuditPlan(
            settings.audit_rate_start, settings.audit_rate, settings.audit_target, settings.audit_seed
        )
        self._sampled = sampled(files)
        self._started = now()
        self._audits_done = sum(row["review_reason"] == "audit" for row in index.cases("completed"))

    async def process(self, sources: tuple[Source, ...], on_progress: Progress | None) -> list[DocumentSummary]:
        # Calls wait for the provider, not for this machine: as many documents as calls, beside those that are read.
        waiting = self._settings.calls_in_flight if self._asking.is_remote else 0
        executor = executor_of(self._settings, self._how, sources, decides=not self._asking.is_remote)
        return await each(sources, executor, self._document, waiting=waiting, on_progress=on_progress)

    async def _document(self, source: Source, readers: Executor) -> DocumentSummary:
        """One document, whatever happens to it."""
        began = time.monotonic()
        if source.fault:
            return self._failed(source, source.fault, began)
        try:
            supplied = self._supplied.get(source.doc_id)
            print_ = fingerprint(source.sha256 or "", self._settings, self._how.reader, supplied)
            summary = None if self._fresh else await beside(self._files, self._finished, source, print_)
            summary = summary or await self._decide(source, readers, supplied, print_)
            if self._extraction and summary.error is None:
                bundle = read_bundle(self._files, source.doc_id)
                times = Times(run_started_at=self._started, started_at=now())
                await ensure(self._files, self._index, self._extraction, bundle, readers, times, fresh=self._fresh)
            return summary
        except ExecutorError:
            raise
        except DocumentError as error:
            return self._failed(source, error, began)
        except EvalkitError as error:
            return _failure_summary(source, error)
        except Exception as error:  # noqa: BLE001 - one document's fault must not end the others' run
            return self._failed(source, unexpected(source, error), began)

    def _finished(self, source: Source, print_: str) -> DocumentSummary | None:
        """The summary of what an earlier run finished, if all that made it is the same."""
        row = self._known.get(source.doc_id)
        if row is None or row["fingerprint"] != print_ or row["file_path"] != str(source.path):
            return None
        result = _current(read_result, self._files, source.doc_id)
        if result is None:
            return None
        if isinstance(result, DocumentFailure):
            return _failure_summary(source, result.error, resumed=True)
        bundle = stored_bundle(self._files, source, self._how.reader)
        if bundle is None or "finished_at" not in result.times:
            return None
        if _is_unanswered(result, is_supplied=source.doc_id in self._supplied):
            return None
        if self._labels is not None or not self._is_published(result):
            self._publish(result, bundle, source)
        if row["replaced"]:
            self._enter(source, print_, result.decision.value, None)  # an earlier version came back
        return _summary(result, source, bundle, None)

    async def _decide(self, source: Source, readers: Executor, supplied: Any, print_: str) -> DocumentSummary:
        started = now()
        seconds: dict[str, float] = {}
        bundle = await beside(self._files, self._left, source)
        if bundle is None:
            made = await read_document(self._files, source, readers, started)
            bundle, seconds = made.bundle, dict(made.seconds)
        began = time.monotonic()
        outcome = await readers.evaluate(self._orchestrator, bundle, supplied)
        # The calls of one document overlap: what counts is how long it waited for any of them.
        seconds["asking"] = round(self._asking.seconds_on(bundle.sha256), 3)
        seconds["deciding"] = round(max(time.monotonic() - began - seconds["asking"], 0.0), 3)
        told = {"attempts": len(outcome.attempts), "decision": outcome.verdict.decision.value}
        tell(log, logging.INFO, "decided", document=bundle.sha256, **told, **seconds)
        times = Times(run_started_at=self._started, started_at=started, finished_at=now(), seconds=seconds)
        result = _result(bundle, outcome, self._settings, print_, times)
        await beside(self._files, self._keep, result, bundle, source)
        spent = self._asking.ledger.spent_on(bundle.sha256)
        return _summary(result, source, bundle, spent if self._asking.is_remote else Usage(result.usage.calls))

    def _left(self, source: Source) -> DocumentBundle | None:
        """The bundle that an earlier run has left for this one. StoreError where a newer evalkit has decided."""
        _current(read_result, self._files, source.doc_id)
        return None if self._fresh else stored_bundle(self._files, source, self._how.reader)

    def _keep(self, result: DocumentResult, bundle: DocumentBundle, source: Source) -> None:
        """Write down what was decided, and what follows from it; the row of the index last."""
        self._files.write(result_name(source.doc_id), result.model_dump(mode="json"))
        self._publish(result, bundle, source)
        self._enter(source, result.fingerprint, result.decision.value, None)

    def _is_published(self, result: DocumentResult) -> bool:
        """Whether the last thing that ``_publish`` writes is there: a run may have ended, or lost its database, before.

        The index alone does not tell: made again from the files it knows the result.
        """
        silver = silver_probability(self._files, result.doc_id)
        if result.decision is Decision.AUTO_ACCEPT:
            return silver is not None or newest_revision(self._files, result.doc_id) > 0
        return silver is None and self._files.exists(packet_name(result.doc_id))

    def _publish(self, result: DocumentResult, bundle: DocumentBundle, source: Source) -> None:
        """Ground truth and packet, or their withdrawal, as the decision asks."""
        label = self._labels.get(source.doc_id) if self._labels else None
        packet = partial(
            SMEPacketGenerator().packet, result, bundle, production=label, created_at=result.times["finished_at"]
        )
        if result.decision is Decision.AUTO_ACCEPT:
            # The probability is that of the moment of drawing: a document that was accepted before keeps it.
            before = silver_probability(self._files, result.doc_id)
            share = self._audit.share(self._audits_done) if before is None else before
            if self._audit.draws(result.sha256, share):
                publish(self._files, self._index, packet(review_reason="audit", inclusion_probability=share))
            elif probability := self._sampled.get(result.doc_id):
                publish(self._files, self._index, packet(review_reason="sample", inclusion_probability=probability))
            else:
                withdraw(self._files, self._index, result.doc_id)
            accept_silver(self._files, result, accepted_at=result.times["finished_at"], inclusion_probability=share)
        else:
            withdraw_silver(self._files, result.doc_id)
            publish(self._files, self._index, packet(review_reason="escalated", inclusion_probability=1.0))
        with writing(self._files, result.doc_id):
            withdraw_unbacked(self._files, result.doc_id)

    def _failed(self, source: Source, error: DocumentError, began: float) -> DocumentSummary:
        """A document that cannot be read leaves a result that says so, and how long that took since ``began``.

        What may pass (a crash, a time limit, missing rights) is tried again by the next run and takes nothing away.
        """
        seconds = {FAILING: round(time.monotonic() - began, 3)}
        tell(log, logging.INFO, "failed", document=source.sha256 or "", code=error.code, **seconds)
        may_pass = source.sha256 is None or error.code in _MAY_PASS
        supplied = self._supplied.get(source.doc_id)
        print_ = None if may_pass else fingerprint(source.sha256 or "", self._settings, self._how.reader, supplied)
        failure = DocumentFailure(
            doc_id=source.doc_id,
            error=Failure(code=error.code, message=error.message, remedy=error.remedy),
            sha256=source.sha256,
            fingerprint=print_,
            times=Times(run_started_at=self._started, finished_at=now(), seconds=seconds),
        )
        try:
            if may_pass and self._files.exists(result_name(source.doc_id)):
                return _failure_summary(source, error)
            self._files.write(result_name(source.doc_id), failure.model_dump(mode="json"))
            cases = (source.doc_id, source.doc_id + EXTRACTION)
            if not any(is_frozen(self._files, self._index, case_id, now()) for case_id in cases):
                self._files.remove(bundle_name(source.doc_id))
            for case_id in cases:
                withdraw_silver(self._files, case_id)
                withdraw(self._files, self._index, case_id)
            self._enter(source, print_, None, error.code)
        except StoreError as store_error:
            return _failure_summary(source, store_error)
        return _failure_summary(source, error)

    def _enter(self, source: Source, print_: str | None, decision: str | None, error_code: str | None) -> None:
        self._index.put_document(
            {
                "doc_id": source.doc_id,
                "sha256": source.sha256,
                "file_path": as_text(source.path),
                "processed_at": now(),
                "fingerprint": print_,
                "decision": decision,
                "error_code": error_code,
                "replaced": False,
            }
        )


def unexpected(source: Source, error: Exception) -> DocumentError:
    """A defect that one document met, logged without a word of it."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    log.error("document %s: %s in %s", _short(source), type(error).__name__, where.name)
    return DocumentError(
        f"{source.path.name} failed unexpectedly ({type(error).__name__} in {where.name})",
        code="UNEXPECTED",
        remedy="Run it again; if it happens again, report it with this line.",
    )


def _is_unanswered(result: DocumentResult, *, is_supplied: bool) -> bool:
    """Whether a model could not answer then, and may now; what was answered is in the journal."""
    codes = {issue.code for issue in result.open_issues}
    is_open = bool(result.unanswered) or any(code.endswith("-AGENT-FAILED") for code in codes)
    return is_open or (not is_supplied and "V1-UNPARSEABLE" in codes)


def as_text(path: Path | str) -> str:
    """A path as text that can be written; a name need not be text at all."""
    return str(path).encode(errors="replace").decode()


def _short(source: Source) -> str:
    """What a log may call the document: names may be patients'."""
    return source.sha256[:12] if source.sha256 else "without bytes"


def _summary(result: DocumentResult, source: Source, bundle: DocumentBundle, spent: Usage | None) -> DocumentSummary:
    """``spent`` on it by this run; None where an earlier one finished it."""
    paid = spent or Usage()
    counts = count(result.issues)
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
        raised_by=tuple(sorted({one.agent for one in result.open_issues if one.severity is not IssueSeverity.MINOR})),
        attempts=len(result.attempts),
        evidence_quality_score=result.evidence_quality_score,
        calls=paid.calls,
        resumed=spent is None,
        tokens=paid.input_tokens + paid.output_tokens,
        cost_usd=paid.cost_usd,
    )


def _failure_summary(source: Source, error: EvalkitError | Failure, *, resumed: bool = False) -> DocumentSummary:
    return DocumentSummary(
        doc_id=source.doc_id,
        pdf_filename=as_text(source.path.name),
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


def in_a_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on an event loop of its own, in a thread of its own: Jupyter's loop is running already."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    ended = threading.Event()
    threading.Thread(target=_run_to_end, args=(loop, task, ended), name="evalkit", daemon=True).start()
    interrupted: KeyboardInterrupt | None = None
    while not ended.is_set():
        try:
            # In slices: an interrupt reaches the main thread only between them. Not Thread.join, which after an
            # interrupt takes the thread for ended (Python 3.11).
            ended.wait(0.2)
        except KeyboardInterrupt as error:
            # The first starts nothing new and lets calls that are paid for end; the next one drops those too.
            if interrupted is None:
                log.warning("interrupted: waiting for what is under way; Ctrl-C again drops it")
            interrupted = error
            loop.call_soon_threadsafe(task.cancel)
    if interrupted:
        raise interrupted
    return task.result()


def _run_to_end(loop: asyncio.AbstractEventLoop, task: Awaitable[Any], ended: threading.Event) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(asyncio.wait([task]))  # type: ignore[type-var]
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    finally:
        ended.set()
