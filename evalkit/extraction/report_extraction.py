"""Extraction of all clinical reports in a file: choose templates, skip bad pages.

Source: specification 002, sections 7.1 and 7.2. The reliability loop runs once for each report of a file; unreadable
pages are left out and raise an issue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from evalkit.core.log_events import log_event
from evalkit.documents.addressed_text import build_addressed_issues
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.identity.file_persons import compare_page_patients, get_page_patient_identity
from evalkit.documents.identity.same_person import SamePersonVerdict
from evalkit.documents.page_damage import build_damage_issues
from evalkit.documents.quality import MIN_READABLE_SCORE
from evalkit.extraction.clinical.clinical_reader import list_first_pass_values
from evalkit.extraction.clinical.report_structure import ClinicalReport
from evalkit.extraction.extraction_schema import NO_TYPE, Extraction
from evalkit.extraction.field_template import FieldNeed, FieldTemplate, get_field_template, list_field_templates
from evalkit.extraction.reliability_loop import (
    ReliabilityLoop,
    ReliabilityLoopResult,
    build_extraction,
)
from evalkit.issue import Issue, IssueSeverity

log = logging.getLogger(__name__)

#: Reports of one file that are extracted at the same time: with more, a loop's deadline could pass while its calls wait
#: for the calls of other loops.
MAX_CONCURRENT_LOOPS = 4
UNREADABLE_MESSAGE = "Document quality too low for extraction"


@dataclass(frozen=True)
class ReportPageRange:
    """The pages of one clinical report in a file, and its type."""

    start_page: int
    end_page: int
    """Last page, inclusive."""
    document_type: str
    """The report's type: one of the five clinical document types; empty: not known yet, nothing is extracted."""
    template_name: str | None = None
    """Name of the template to use; None: choose it by type and text."""
    type_doubt: str = ""
    """The reason for which the type may be wrong; a person then decides."""


class LoopMetric(NamedTuple):
    """A metric of the reliability loop and its alert threshold.

    Source: specification 002, section 8.1.
    """

    name: str
    measure: Callable[[Extraction, float], Sequence[float]]
    """Returns the metric's values for one extraction and its seconds; empty if nothing was measured."""
    is_alert: Callable[[float], bool]
    alert_message: str
    """The alert's meaning, as the log names it."""


LOOP_METRICS = (
    LoopMetric("marc.iteration_count", lambda extraction, _: [extraction.iterations], lambda count: count > 3,
               "more than 3 attempts: check the prompts"),
    LoopMetric("marc.final_score", lambda extraction, _: [] if extraction.score is None else [extraction.score],
               lambda score: score < 0.8, "final score below 0.8: a person reviews the report first"),
    LoopMetric("marc.processing_time_ms", lambda _, seconds: [seconds * 1000],
               lambda milliseconds: milliseconds > 45_000, "extraction took longer than 45 seconds"),
    LoopMetric("marc.improvement_per_iteration",
               lambda extraction, _: [attempt.improvement for attempt in extraction.history
                                      if attempt.improvement is not None],
               lambda improvement: improvement < 0.02, "an attempt improved the score by less than 0.02"),
)  # fmt: skip
#: Smallest share of reports whose score should meet the threshold, over many documents. Source: as for ``LoopMetric``.
MIN_THRESHOLD_MET_RATE = 0.9


async def extract_reports(
    bundle: DocumentBundle, reports: Sequence[ReportPageRange], loop: ReliabilityLoop
) -> list[Extraction]:
    """Extract the fields of every report; the result is in page order.

    UsageError TEMPLATE-NAME if a report names a template that does not exist.
    """
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_LOOPS)

    async def extract_in_turn(report: ReportPageRange) -> Extraction:
        async with semaphore:
            return await _extract_report(bundle, report, loop)

    return await asyncio.gather(*map(extract_in_turn, sorted(reports, key=lambda report: report.start_page)))


async def _extract_report(bundle: DocumentBundle, report: ReportPageRange, loop: ReliabilityLoop) -> Extraction:
    if not report.document_type:  # a person has to decide the type first
        return Extraction(
            template="unknown",
            document_type="",
            start_page=report.start_page,
            end_page=report.end_page,
            score=None,
            confidence=0.0,
            met_threshold=False,
            stopped_reason=NO_TYPE,
            iterations=0,
            decision=None,
            fields={},
        )
    pages = list(bundle.iter_pages(report.start_page, report.end_page))
    readable = [page for page in pages if is_readable_page(page)]
    unreadable = [page for page in pages if not is_readable_page(page)]
    template = (
        get_field_template(report.template_name)
        if report.template_name
        else choose_clinical_template(report.document_type, readable)
    )
    problems = list(dict.fromkeys(problem for page in unreadable for problem in page.problems))
    reason = "; ".join(problems[:3]) or "no text could be read on it"
    page_issues = [_build_unreadable_issue(unreadable, report, reason)] if unreadable else []
    page_issues += build_damage_issues(
        pages, f"pages {report.start_page}-{report.end_page}", document_type=report.document_type
    )
    page_issues += build_addressed_issues(pages, document_type=report.document_type)
    page_issues += [_build_type_issue(report)] if report.type_doubt else []
    page_issues += list(_iter_patient_issues(readable, report))
    if any(page.text.strip() for page in readable):
        result = await loop.execute(bundle, [page.page_num for page in readable], template)
    else:
        result = ReliabilityLoopResult(None, (), False, UNREADABLE_MESSAGE, 0.0)
        page_issues = page_issues or [_build_unreadable_issue(pages, report, "Every page is blank")]
    extraction = build_extraction(
        result, template, report.document_type, (report.start_page, report.end_page), page_issues=page_issues
    )
    _log_alerts(bundle, extraction, result.processing_seconds)
    return extraction


def _build_type_issue(report: ReportPageRange) -> Issue:
    return Issue.create(
        "evaluator",
        "EXTRACTION-TYPE",
        IssueSeverity.MAJOR,
        f"The fields depend on the pages and their type, which are in doubt: {report.type_doubt}",
        location=f"pages {report.start_page}-{report.end_page}",
        suggested_fix="Decide the type first: run the classification, and review its case",
        document_type=report.document_type,
        page=report.start_page,
    )


def _iter_patient_issues(pages: Sequence[Page], report: ReportPageRange) -> Iterator[Issue]:
    """Yield an issue for each page that may be about another patient than the first.

    The first patient is that of the first page with one.
    """
    identities = list(filter(None, map(get_page_patient_identity, pages)))
    for identity in identities[1:]:
        first, comparison = identities[0], compare_page_patients(identities[0], identity)
        if comparison.differing and comparison.relation is not SamePersonVerdict.SAME:
            yield Issue.create(
                "evaluator",
                "EXTRACTION-PATIENT",
                IssueSeverity.MAJOR,
                f"Page {identity.page_num} may be about another patient than page {first.page_num}",
                location=f"page {identity.page_num}",
                suggested_fix="Compare the names and birth dates on the two pages; divide the report if they differ",
                document_type=report.document_type,
                page=identity.page_num,
                facts={"other_page": first.page_num},
            )


def find_embedded_reports(bundle: DocumentBundle, report: ReportPageRange) -> list[ReportPageRange]:
    """Find the parts of a report that are reports of another kind, on the same pages.

    A part has a section of its own (``FieldTemplate.part_sections``), and a value of each required field.
    """
    lines = ClinicalReport(list(filter(is_readable_page, bundle.iter_pages(report.start_page, report.end_page))))
    return [
        replace(report, document_type=template.document_type)
        for template in list_field_templates("clinical")
        if template.document_type != report.document_type
        if any(section.name in template.part_sections for section in lines.sections)
        if all(list_first_pass_values(field, lines) for field in template.get_fields_by_need(FieldNeed.REQUIRED))
    ]


def _log_alerts(bundle: DocumentBundle, extraction: Extraction, seconds: float) -> None:
    """Log a warning for each metric beyond its alert threshold."""
    for metric in LOOP_METRICS:
        values = metric.measure(extraction, seconds)
        if any(map(metric.is_alert, values)):
            log_event(
                log,
                logging.WARNING,
                f"{metric.alert_message}:",
                document_sha256=bundle.sha256,
                metric=metric.name,
                value=round(fmean(values), 4),
            )


def is_readable_page(page: Page) -> bool:
    """Return True if the page's text is good enough to extract fields from."""
    return page.status.is_readable and (page.quality is None or page.quality >= MIN_READABLE_SCORE)


def choose_clinical_template(document_type: str, pages: Sequence[Page]) -> FieldTemplate:
    """Choose the template of a report by its type, then by the template's signs.

    If several templates have the type, one with at least two signs in the text is chosen; otherwise ``clinical-notes``
    for a clinical note, and ``unknown`` for any other type.
    """
    text = "\n".join(page.text for page in pages)
    candidates = [
        candidate for candidate in list_field_templates("clinical") if candidate.document_type == document_type
    ]
    sign_counts = {candidate.name: sum(sign in text for sign in candidate.signs) for candidate in candidates}
    best = max(candidates, key=lambda candidate: sign_counts[candidate.name], default=None)
    default_template = get_field_template("clinical-notes" if document_type == "Clinical Note" else "unknown")
    if best is None:
        return default_template
    return best if len(candidates) == 1 or sign_counts[best.name] >= 2 else default_template


def _build_unreadable_issue(pages: Sequence[Page], report: ReportPageRange, reason: str) -> Issue:
    numbers = ", ".join(str(page.page_num) for page in pages[:20])
    return Issue.create(
        "reader",
        "READER-NO-TEXT",
        IssueSeverity.BLOCKER,
        f"{UNREADABLE_MESSAGE} (page {numbers}): {reason}",
        location=f"pages {report.start_page}-{report.end_page}",
        suggested_fix="Upload a clearer scan; Use PDF instead of photo",
        document_type=report.document_type,
        page=pages[0].page_num if pages else report.start_page,
        facts={"pages": numbers} if pages else {},
    )
