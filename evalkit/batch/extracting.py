"""The fields of one document: which of its pages are forms, which are reports, and what was extracted before."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalkit.batch.asking import Asking
from evalkit.batch.reading import Executor
from evalkit.batch.round import beside
from evalkit.classification.primary_classifier import PrimaryClassifier
from evalkit.classification.result import DocumentResult, UsageReport, UsageTotal
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.windows import joined, windows
from evalkit.clocks import now
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import StoreError, UsageError
from evalkit.extraction.clinical_documents import ReportPages, extract_reports
from evalkit.extraction.evaluator import ExtractionEvaluator
from evalkit.extraction.extractor import ClinicalExtractor
from evalkit.extraction.form_filling import FormFilling, form_pages
from evalkit.extraction.optimizer import ReliabilityLoopConfig, configured
from evalkit.extraction.reliability_loop import ReliabilityLoop
from evalkit.extraction.schema import Extraction, Extractions
from evalkit.extraction.template import FieldTemplate, template, templates_version
from evalkit.issue import Issue
from evalkit.llm.model import A, Answer, Model, Question, Usage
from evalkit.logs import tell
from evalkit.review.ground_truth import accept_silver_fields, is_backed, withdraw_silver
from evalkit.review.packet import EXTRACTION, SMEPacketGenerator, is_for_a_person, publish, withdraw
from evalkit.review.stored import read_extractions, read_result
from evalkit.settings import Settings
from evalkit.store import Files, Index, digest, extraction_name, packet_name
from evalkit.times import Times

log = logging.getLogger(__name__)

AUTO = "auto"
#: Raise it with every change that alters what is extracted from the same words.
_RULES_VERSION = 2


@dataclass(frozen=True)
class FieldWork:
    """What reads the fields of a document; where no language model is asked it can be sent to another process."""

    model: Model
    ensemble: tuple[Model, ...]
    config: ReliabilityLoopConfig
    window: int | None
    """Characters of a document that are asked about at once; None: all."""
    template: FieldTemplate | None
    """That the whole document is taken for; None: whatever stands in it."""
    tax_year: int | None

    async def extract(
        self, bundle: DocumentBundle, classification: ClassificationOutput | None
    ) -> tuple[tuple[Extraction, ...], UsageReport]:
        """The fields of each report and form, in the order of their pages, and what answers cost.

        Without a ``classification``, the classifier is asked where one is needed: for pages that are no forms. StoreError
        where an answer could not be kept.
        """
        model = _Counting(self.model)
        fixed = self.template.name if self.template else None
        forms: Sequence[int] = ()
        done: list[Extraction] = []
        if self.template is None or self.template.kind == "tax":
            pages = None if fixed else form_pages(bundle, everything=self.tax_year is not None)
            filling = FormFilling(model, tax_year=self.tax_year, fixed=fixed)
            done += [one.extraction for one in await filling.fill(bundle, pages)]
            forms = range(1, bundle.total_pages + 1) if pages is None else pages
        if len(forms) < bundle.total_pages:
            reports = await self._reports(bundle, model, set(forms), classification)
            made = await extract_reports(bundle, reports, self._loop(model))
            done += [one.extraction for one in made]
        return tuple(_numbered(sorted(done, key=lambda one: (one.start_page, one.end_page)))), model.usage()

    async def _reports(
        self, bundle: DocumentBundle, model: Model, forms: set[int], given: ClassificationOutput | None
    ) -> list[ReportPages]:
        """The clinical reports among the pages that are no forms."""
        if self.template is not None:
            return [ReportPages(1, bundle.total_pages, self.template.document_type, self.template.name)]
        answer = given or await self._classified(bundle, model)
        if answer is None:
            return []
        found: list[ReportPages] = []
        for segment in answer.segments:
            kind = segment.dominant_type.value if segment.dominant_type else "Other"
            last = min(segment.end_page, bundle.total_pages)
            found += [ReportPages(start, end, kind) for start, end in _runs(max(segment.start_page, 1), last, forms)]
        return found

    async def _classified(self, bundle: DocumentBundle, model: Model) -> ClassificationOutput | None:
        if not bundle.has_text:
            return None
        parts = windows(bundle, self.window)
        answers = [await model.ask(PrimaryClassifier().question(bundle, pages)) for pages in parts]
        told = [(pages, answer.value) for pages, answer in zip(parts, answers, strict=True) if answer.value is not None]
        return joined(told) if len(told) == len(parts) else None

    def _loop(self, model: Model) -> ReliabilityLoop:
        return ReliabilityLoop(
            self.config,
            extractor=ClinicalExtractor(model, window=self.window),
            evaluator=ExtractionEvaluator(model, ensemble=self.ensemble, window=self.window),
        )


class FieldExtraction:
    """Extracts the fields of documents; keeps nothing between them."""

    def __init__(
        self, settings: Settings, asking: Asking, versions: Any, *, name: str = AUTO, tax_year: int | None = None
    ) -> None:
        """``name``: the template that the whole document is taken for; ``auto``: whatever stands in it.

        ``versions``: of all that reads and asks. UsageError where there is no such template.
        """
        self._settings = settings
        self._asking = asking
        self._versions = versions
        wanted = settings.reliability_loop
        self._work = FieldWork(
            model=asking.model,
            ensemble=asking.ensemble,
            config=configured(wanted.profile, **wanted.model_dump(exclude={"profile", "ensemble"})),
            window=settings.window_characters if asking.is_remote else None,
            template=None if name == AUTO else template(name),
            tax_year=tax_year,
        )

    async def extract(
        self,
        bundle: DocumentBundle,
        readers: Executor,
        times: Times,
        classification: ClassificationOutput | None = None,
    ) -> Extractions:
        """The document's fields; ``classification`` and StoreError as of ``FieldWork.extract``.

        ``times`` has when it was begun, and the seconds of steps before this one.
        """
        began, waited = time.monotonic(), self._asking.seconds_on(bundle.sha256)
        extractions, usage = await readers.extract(self._work, bundle, classification)
        asking = self._asking.seconds_on(bundle.sha256) - waited
        took = {"asking": asking, "extracting": max(time.monotonic() - began - asking, 0.0)}
        seconds = {step: round(elapsed, 3) for step, elapsed in took.items()}
        tell(log, logging.INFO, "extracted", document=bundle.sha256, extractions=len(extractions), **seconds)
        return Extractions(
            doc_id=bundle.doc_id,
            sha256=bundle.sha256,
            fingerprint=self.fingerprint(bundle, classification),
            extractions=extractions,
            usage=usage.model_dump(mode="json"),
            model=self._settings.models.default,
            reader=bundle.reader,
            times=Times(**times, finished_at=now()) | {"seconds": times.get("seconds", {}) | seconds},
        )

    def fingerprint(self, bundle: DocumentBundle, classification: ClassificationOutput | None) -> str:
        """Of all that makes the extraction."""
        return digest(
            {
                "sha256": bundle.sha256,
                "reader": bundle.reader,
                "models": self._settings.models.model_dump(),
                "window_characters": self._settings.window_characters,
                "own_servers": [self._settings.openai_base_url, self._settings.ollama_base_url],
                "reliability_loop": self._settings.reliability_loop.model_dump(),
                "template": self._work.template.name if self._work.template else AUTO,
                "tax_year": self._work.tax_year,
                "templates": templates_version(),
                "rules": _RULES_VERSION,
                "versions": self._versions,
                "classification": None if classification is None else digest(classification.to_json()),
            }
        )


def stored(files: Files, doc_id: str, fingerprint: str) -> Extractions | None:
    """What an earlier run extracted, if all that made it is the same and everybody answered.

    StoreError where a newer evalkit wrote it.
    """
    try:
        found = read_extractions(files, doc_id)
    except StoreError as error:
        if error.code == "STORE-NEWER":  # nobody's newer work is written over
            raise
        return None
    unanswered = any(issue.code.endswith("-AGENT-FAILED") for one in found.extractions for issue in one.issues)
    return found if found.fingerprint == fingerprint and not unanswered else None


def classified(files: Files, bundle: DocumentBundle) -> ClassificationOutput | None:
    """The classification that an earlier run made of the same bytes."""
    try:
        result = read_result(files, bundle.doc_id)
    except StoreError:
        return None
    is_same = isinstance(result, DocumentResult) and result.sha256 == bundle.sha256
    return result.classification if is_same and isinstance(result, DocumentResult) else None


async def ensure(
    files: Files,
    index: Index,
    extraction: FieldExtraction,
    bundle: DocumentBundle,
    readers: Executor,
    times: Times,
    *,
    fresh: bool,
) -> tuple[Extractions, bool]:
    """The document's fields, written, with the case or ground truth that follows; and whether an earlier run had
    extracted them. ``times`` as of ``FieldExtraction.extract``.
    """
    answer = classified(files, bundle)
    found = None if fresh else stored(files, bundle.doc_id, extraction.fingerprint(bundle, answer))
    made = found or await extraction.extract(bundle, readers, times, answer)
    await beside(files, _keep, files, index, made, bundle, found is None)
    return made, found is not None


def _keep(files: Files, index: Index, made: Extractions, bundle: DocumentBundle, is_new: bool) -> None:
    if is_new:
        files.write(extraction_name(bundle.doc_id), made.model_dump(mode="json"))
    settle(files, index, made, bundle)


def settle(files: Files, index: Index, made: Extractions, bundle: DocumentBundle) -> None:
    """Put a document's fields into the queue where a person has to look at one of its reports or forms.

    Otherwise they are silver ground truth, if the document's own ground truth has reports of these types. A case or
    record of an earlier run that does not hold any more is withdrawn.
    """
    case_id, at = made.doc_id + EXTRACTION, str(made.times.get("started_at", ""))
    if any(map(is_for_a_person, made.extractions)):
        withdraw_silver(files, case_id)
        publish(files, index, SMEPacketGenerator().fields_packet(made, bundle, created_at=at))
        return
    withdraw(files, index, case_id)
    # A case that somebody has open stays, and what they are asked about is not true meanwhile.
    is_asked = files.exists(packet_name(case_id))
    if made.extractions and not is_asked and is_backed(files, made.doc_id, made.extractions):
        accept_silver_fields(files, made, accepted_at=at)
    else:
        withdraw_silver(files, case_id)


class _Counting:
    """A model, and what was asked of it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._usage: dict[str, list[Usage]] = {}

    @property
    def name(self) -> str:
        return self._model.name

    async def ask(self, question: Question[A]) -> Answer[A]:
        answer = await self._model.ask(question)
        self._usage.setdefault(question.role, []).append(answer.usage)
        return answer

    def usage(self) -> UsageReport:
        by_agent = {role: UsageTotal.of(usages) for role, usages in sorted(self._usage.items())}
        whole = UsageTotal.of(usage for usages in self._usage.values() for usage in usages)
        return UsageReport(**whole.model_dump(), by_agent=by_agent)


def _runs(start: int, end: int, forms: set[int]) -> list[tuple[int, int]]:
    """The runs of pages start..end without those of the forms."""
    runs: list[tuple[int, int]] = []
    for page in range(start, end + 1):
        if page in forms:
            continue
        if runs and runs[-1][1] == page - 1:
            runs[-1] = runs[-1][0], page
        else:
            runs.append((page, page))
    return runs


def _numbered(done: Sequence[Extraction]) -> list[Extraction]:
    """With ids of issues that are unique in the document."""
    counts: dict[str, int] = {}
    told: list[Extraction] = []
    for one in done:
        renamed: dict[str, str] = {}
        issues: list[Issue] = []
        for issue in one.issues:
            counts[issue.agent] = counts.get(issue.agent, 0) + 1
            renamed[issue.issue_id] = f"{issue.agent.upper()}-{counts[issue.agent]:04d}"
            issues.append(issue.model_copy(update={"issue_id": renamed[issue.issue_id]}))
        history = tuple(
            record.model_copy(update={"issues": tuple(renamed.get(name, name) for name in record.issues)})
            for record in one.history
        )
        told.append(one.model_copy(update={"issues": tuple(issues), "history": history}))
    return told


def year_of(text: str | int | None) -> int | None:
    """A tax year as an option gives it. UsageError where it is none."""
    if text is None:
        return None
    year = int(text)
    if not 2000 <= year <= 2099:
        raise UsageError(f"{year} is no tax year", code="TAX-YEAR", remedy="Name a year from 2000 to 2099.")
    return year
