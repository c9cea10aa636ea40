"""Extraction of fields from one document's forms and reports, or their reuse."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalkit.classification.document_result import DocumentResult, UsageReport, UsageTotal
from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.schema import ClassificationOutput, PresenceLevel, Segment
from evalkit.core.clocks import format_zulu_now
from evalkit.core.grouping import split_into_runs
from evalkit.core.log_events import log_event
from evalkit.core.timings import Times
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import StoreError, UsageError
from evalkit.extraction.clinical.clinical_extractor import ClinicalExtractor
from evalkit.extraction.evaluator import ExtractionEvaluator
from evalkit.extraction.extraction_schema import Extraction, Extractions
from evalkit.extraction.field_template import FieldTemplate, compute_templates_version, get_field_template
from evalkit.extraction.form_filling import FormFieldExtractor, find_tax_form_pages
from evalkit.extraction.optimizer import ReliabilityLoopConfig, build_loop_config
from evalkit.extraction.reliability_loop import ReliabilityLoop, has_fields_to_judge
from evalkit.extraction.report_extraction import (
    ReportPageRange,
    choose_clinical_template,
    extract_reports,
    find_embedded_reports,
)
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.model import Answer, AnswerT, Model, Question, Usage
from evalkit.pipeline.batch_execution import run_uninterrupted_storage_operation
from evalkit.pipeline.executor.protocol import Executor
from evalkit.pipeline.fingerprint import describe_models, find_window_characters
from evalkit.pipeline.model_session import ModelSession
from evalkit.pipeline.run_history import ResultWriter, StoredResult
from evalkit.pipeline.run_setup import create_orchestrator
from evalkit.review import (
    EXTRACTION_SUFFIX,
    SMEPacketGenerator,
    is_extraction_review_required,
    load_if_intact,
    publish_packet_unless_frozen,
    read_extractions,
    read_result,
    withdraw_packet_unless_frozen,
    withdraw_silver_ground_truth,
)
from evalkit.review.ground_truth import (
    has_types_matching_ground_truth,
    load_expert_classification,
    write_silver_fields_if_unreviewed,
)
from evalkit.settings import Settings
from evalkit.store import OutputFolder, OutputIndex, extraction_file_name, hash_canonical_json, packet_file_name

log = logging.getLogger(__name__)

AUTO_TEMPLATE = "auto"
#: Version of the extraction rules. Increase it with every change that alters the fields extracted from the same words.
_RULES_VERSION = 6


@dataclass(frozen=True)
class FieldExtractor:
    """Extractor of the fields of one document's reports and forms.

    Without a language model the extractor can run in another process.
    """

    model: Model
    ensemble: tuple[Model, ...]
    loop_config: ReliabilityLoopConfig
    window_characters: int | None
    """Maximum characters of a document in one question; None for the whole document."""
    template: FieldTemplate | None
    """The template for the whole document; None to choose templates by content."""
    orchestrator: RetryOrchestrator
    """Classifies and verifies a document that no earlier run has classified."""
    tax_year: int | None

    async def extract(
        self, bundle: DocumentBundle, classification: ClassificationOutput | None
    ) -> tuple[tuple[Extraction, ...], UsageReport]:
        """Extract the fields of all reports and forms in page order; also return usage.

        Without a ``classification``, the document is classified and verified first, if it has pages that are not forms; an
        issue of a verifier then puts the types in doubt. StoreError if a model's answer could not be stored.
        """
        model = _UsageCountingModel(self.model)
        fixed_template_name = self.template.name if self.template else None
        pages_of_forms: Sequence[int] = ()
        extractions: list[Extraction] = []
        if self.template is None or self.template.kind == "tax":
            pages = None if fixed_template_name else find_tax_form_pages(bundle, include_all=self.tax_year is not None)
            extractions += await FormFieldExtractor(
                model, expected_tax_year=self.tax_year, forced_template_name=fixed_template_name
            ).extract_forms(bundle, pages)
            pages_of_forms = range(1, bundle.total_pages + 1) if pages is None else pages
        if len(pages_of_forms) < bundle.total_pages:
            reports = await self._find_reports(bundle, model, set(pages_of_forms), classification)
            reliability_loop = ReliabilityLoop(
                self.loop_config,
                extractor=ClinicalExtractor(model, window_characters=self.window_characters),
                evaluator=ExtractionEvaluator(model, ensemble=self.ensemble, window_characters=self.window_characters),
            )
            extractions += await extract_reports(bundle, reports, reliability_loop)
        return tuple(
            _renumber_issues(sorted(extractions, key=lambda extraction: (extraction.start_page, extraction.end_page)))
        ), model.summarise_usage()

    async def _find_reports(
        self,
        bundle: DocumentBundle,
        model: _UsageCountingModel,
        pages_of_forms: set[int],
        classification: ClassificationOutput | None,
    ) -> list[ReportPageRange]:
        if self.template is not None:
            return [ReportPageRange(1, bundle.total_pages, self.template.document_type, self.template.name)]
        type_doubt = ""
        if classification is None:
            outcome = await self.orchestrator.evaluate(bundle)
            model.add_usage(outcome.usage)
            classification = outcome.classification
            type_doubt = _find_type_doubt(outcome.issues)
        if classification is None:
            return [ReportPageRange(*run, "") for run in _find_page_ranges(1, bundle.total_pages, pages_of_forms)]
        reports: list[ReportPageRange] = []
        for segment in classification.segments:
            last_page = min(segment.end_page, bundle.total_pages)
            for start, end in _find_page_ranges(max(segment.start_page, 1), last_page, pages_of_forms):
                document_type = segment.dominant_type.value if segment.dominant_type else ""
                report = ReportPageRange(start, end, document_type, type_doubt=type_doubt if document_type else "")
                reports += [report, *_list_embedded_reports(bundle, report, segment)] if document_type else [report]
        return reports


#: Beginnings of codes of issues that question neither a report's type nor its pages.
_OTHER_DOUBTS = ("READER-", "V2-PATIENT-SEVERAL", "V2-PATIENT-OTHER")


def _find_type_doubt(issues: Iterable[Issue]) -> str:
    """Return the message of the worst open issue that questions a type; empty if none."""
    doubts = [issue for issue in issues if issue.status == "open" and issue.severity is not IssueSeverity.MINOR]
    doubts = [issue for issue in doubts if not issue.code.startswith(_OTHER_DOUBTS)]
    return min(doubts, key=lambda issue: issue.severity.rank).message if doubts else ""


def _list_embedded_reports(bundle: DocumentBundle, report: ReportPageRange, segment: Segment) -> list[ReportPageRange]:
    """List the reports within a report: of the classification, and announced parts.

    Types whose template asks for nothing but the text are left out.
    """
    embedded_types = [
        presence.document_type.value
        for presence in segment.segment_composition
        if presence.presence_level is PresenceLevel.EMBEDDED_RAW and presence.document_type != segment.dominant_type
    ]
    pages = list(bundle.iter_pages(report.start_page, report.end_page))
    candidates = [replace(report, document_type=document_type) for document_type in embedded_types]
    candidates = [
        candidate
        for candidate in candidates
        if has_fields_to_judge(choose_clinical_template(candidate.document_type, pages))
    ]
    return list(dict.fromkeys((*candidates, *find_embedded_reports(bundle, report))))


class FieldExtractionPipeline:
    """Field extraction for a run; it keeps no state between documents."""

    def __init__(
        self,
        settings: Settings,
        model_session: ModelSession,
        versions: Any,
        *,
        template_name: str = AUTO_TEMPLATE,
        tax_year: int | None = None,
    ) -> None:
        """Prepare the extraction with one template, or with ``auto`` to choose by content.

        ``versions`` are those of ``collect_versions``. UsageError if the template is unknown.
        """
        self._settings = settings
        self._model_session = model_session
        self._versions = versions
        loop_settings = settings.reliability_loop
        self._extractor = FieldExtractor(
            model=model_session.model,
            ensemble=model_session.ensemble,
            loop_config=build_loop_config(
                loop_settings.profile, **loop_settings.model_dump(exclude={"profile", "ensemble"})
            ),
            window_characters=find_window_characters(settings) if model_session.has_language_models else None,
            template=None if template_name == AUTO_TEMPLATE else get_field_template(template_name),
            tax_year=tax_year,
            orchestrator=create_orchestrator(settings, model_session),
        )

    async def extract(
        self,
        bundle: DocumentBundle,
        executor: Executor,
        times: Times,
        classification: ClassificationOutput | None = None,
    ) -> Extractions:
        """Extract a document's fields, and return the record that is stored.

        ``classification`` and StoreError as for ``FieldExtractor.extract``. ``times`` has the start time, and the
        seconds of earlier steps.
        """
        monotonic_start, seconds_waited_before = time.monotonic(), self._model_session.get_seconds_waited(bundle.sha256)
        while True:
            extractions, usage = await executor.run_step("extract", self._extractor.extract, bundle, classification)
            # If a model's service is down, the loop's deadline may have ended it; answers so far are in the journal.
            if not await self._model_session.wait_until_up():
                break
        asking_seconds = self._model_session.get_seconds_waited(bundle.sha256) - seconds_waited_before
        elapsed_by_step = {
            "asking": asking_seconds,
            "extracting": max(time.monotonic() - monotonic_start - asking_seconds, 0.0),
        }
        seconds_by_step = {step: round(elapsed, 3) for step, elapsed in elapsed_by_step.items()}
        log_event(
            log,
            logging.INFO,
            "extracted",
            document_sha256=bundle.sha256,
            extractions=len(extractions),
            **seconds_by_step,
        )
        return Extractions(
            doc_id=bundle.doc_id,
            sha256=bundle.sha256,
            fingerprint=self.compute_fingerprint(bundle, classification),
            extractions=extractions,
            usage=usage.model_dump(mode="json"),
            model=self._settings.models.default,
            reader=bundle.reader,
            times=Times(**times, finished_at=format_zulu_now())
            | {"seconds": times.get("seconds", {}) | seconds_by_step},
        )

    def compute_fingerprint(self, bundle: DocumentBundle, classification: ClassificationOutput | None) -> str:
        """Return the hash of everything that determines the extracted fields."""
        return hash_canonical_json(
            {
                "sha256": bundle.sha256,
                "reader": bundle.reader,
                "reliability_loop": self._settings.reliability_loop.model_dump(),
                "template": self._extractor.template.name if self._extractor.template else AUTO_TEMPLATE,
                "tax_year": self._extractor.tax_year,
                "templates": compute_templates_version(),
                "rules": _RULES_VERSION,
                "versions": self._versions,
                "classification": None if classification is None else hash_canonical_json(classification.to_json()),
            }
            | describe_models(self._settings)
        )


def load_finished_extractions(output_folder: OutputFolder, doc_id: str, fingerprint: str) -> Extractions | None:
    """Load stored extractions with this fingerprint; None if missing or incomplete.

    Incomplete: an agent failed. StoreError if a newer evalkit wrote them.
    """
    stored_extractions = load_if_intact(read_extractions, output_folder, doc_id)
    if stored_extractions is None:
        return None
    has_failed_agent = any(
        issue.code.endswith("-AGENT-FAILED")
        for extraction in stored_extractions.extractions
        for issue in extraction.issues
    )
    return stored_extractions if stored_extractions.fingerprint == fingerprint and not has_failed_agent else None


def load_earlier_classification(output_folder: OutputFolder, bundle: DocumentBundle) -> ClassificationOutput | None:
    """Load an expert's classification of the same file, else an earlier run's.

    None if there is none.
    """
    if expert_classification := load_expert_classification(output_folder, bundle.doc_id):
        return expert_classification
    try:
        result = read_result(output_folder, bundle.doc_id)
    except StoreError:
        return None
    is_same = isinstance(result, DocumentResult) and result.sha256 == bundle.sha256
    return result.classification if is_same and isinstance(result, DocumentResult) else None


async def load_or_extract_and_publish_fields(
    output_folder: OutputFolder,
    index: OutputIndex,
    pipeline: FieldExtractionPipeline,
    bundle: DocumentBundle,
    executor: Executor,
    times: Times,
    *,
    writer: ResultWriter,
    fresh: bool,
) -> tuple[Extractions, StoredResult | None]:
    """Load or extract a document's fields, and update its case or ground truth.

    Returns the fields and, if they are new, their digest. ``writer`` stores them. ``times`` as for
    ``FieldExtractionPipeline.extract``.
    """
    classification = load_earlier_classification(output_folder, bundle)
    earlier = (
        None
        if fresh
        else load_finished_extractions(
            output_folder, bundle.doc_id, pipeline.compute_fingerprint(bundle, classification)
        )
    )
    document_extractions = earlier or await pipeline.extract(bundle, executor, times, classification)
    stored_fields = await run_uninterrupted_storage_operation(
        output_folder,
        _save_and_publish,
        output_folder,
        index,
        document_extractions,
        bundle,
        writer if earlier is None else None,
    )
    return document_extractions, stored_fields


def _save_and_publish(
    output_folder: OutputFolder,
    index: OutputIndex,
    document_extractions: Extractions,
    bundle: DocumentBundle,
    writer: ResultWriter | None,
) -> StoredResult | None:
    stored_fields = None
    if writer:
        stored_fields = writer.write(extraction_file_name(bundle.doc_id), document_extractions.model_dump(mode="json"))
    queue_fields_or_write_silver_truth(output_folder, index, document_extractions, bundle)
    return stored_fields


def queue_fields_or_write_silver_truth(
    output_folder: OutputFolder, index: OutputIndex, document_extractions: Extractions, bundle: DocumentBundle
) -> None:
    """Queue a document's fields for an expert, or save them as silver ground truth.

    Otherwise the fields become silver ground truth, if the document's own ground truth has reports of these types. An
    outdated case or record of an earlier run is withdrawn.
    """
    case_id, started_at = (
        document_extractions.doc_id + EXTRACTION_SUFFIX,
        str(document_extractions.times.get("started_at", "")),
    )
    if any(map(is_extraction_review_required, document_extractions.extractions)):
        withdraw_silver_ground_truth(output_folder, case_id)
        publish_packet_unless_frozen(
            output_folder,
            index,
            SMEPacketGenerator().fields_packet(document_extractions, bundle, created_at=started_at),
        )
        return
    withdraw_packet_unless_frozen(output_folder, index, case_id)
    # A case that a person has open stays; meanwhile the fields do not become ground truth.
    has_open_case = output_folder.has_file(packet_file_name(case_id))
    accepted = [extraction for extraction in document_extractions.extractions if extraction.decision]
    if (
        accepted
        and not has_open_case
        and has_types_matching_ground_truth(output_folder, document_extractions.doc_id, accepted)
    ):
        write_silver_fields_if_unreviewed(output_folder, document_extractions, accepted_at=started_at)
    else:
        withdraw_silver_ground_truth(output_folder, case_id)


class _UsageCountingModel:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._usages_by_role: dict[str, list[Usage]] = {}

    @property
    def name(self) -> str:
        return self._model.name

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        answer = await self._model.ask(question)
        self._usages_by_role.setdefault(question.role, []).append(answer.usage)
        return answer

    def add_usage(self, report: UsageReport) -> None:
        """Add the usage of calls that were not made by ``ask``."""
        for role, total in report.by_agent.items():
            self._usages_by_role.setdefault(role, []).append(Usage(**total.model_dump()))

    def summarise_usage(self) -> UsageReport:
        by_agent = {role: UsageTotal.from_usages(usages) for role, usages in sorted(self._usages_by_role.items())}
        total = UsageTotal.from_usages(usage for usages in self._usages_by_role.values() for usage in usages)
        return UsageReport(**total.model_dump(), by_agent=by_agent)


def _find_page_ranges(first_page: int, last_page: int, excluded_pages: set[int]) -> list[tuple[int, int]]:
    pages = (page for page in range(first_page, last_page + 1) if page not in excluded_pages)
    return [(run[0], run[-1]) for run in split_into_runs(pages, lambda run, page: page == run[-1] + 1)]


def _renumber_issues(extractions: Sequence[Extraction]) -> list[Extraction]:
    count_by_agent: dict[str, int] = {}
    renumbered: list[Extraction] = []
    for extraction in extractions:
        new_id_by_old: dict[str, str] = {}
        issues: list[Issue] = []
        for issue in extraction.issues:
            count_by_agent[issue.agent] = count_by_agent.get(issue.agent, 0) + 1
            new_id_by_old[issue.issue_id] = f"{issue.agent.upper()}-{count_by_agent[issue.agent]:04d}"
            issues.append(issue.model_copy(update={"issue_id": new_id_by_old[issue.issue_id]}))
        history = tuple(
            attempt.model_copy(
                update={"issues": tuple(new_id_by_old.get(issue_id, issue_id) for issue_id in attempt.issues)}
            )
            for attempt in extraction.history
        )
        renumbered.append(extraction.model_copy(update={"issues": tuple(issues), "history": history}))
    return renumbered


def parse_tax_year(text: str | int | None) -> int | None:
    """Parse a tax year from 2000 to 2099; None stays None. UsageError otherwise."""
    if text is None:
        return None
    year = int(text)
    if not 2000 <= year <= 2099:
        raise UsageError(f"{year} is not a tax year", code="TAX-YEAR", remedy="Name a year from 2000 to 2099.")
    return year
