"""All reports of a document: which template each has, which of its pages can be read, and the loop over each of them.

Source: specification 002, sections 7.1 and 7.2. The loop runs once for each segment of a composite document; pages that
nobody could read never enter it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.quality import THRESHOLD
from evalkit.extraction.loop_metrics import loop_metrics
from evalkit.extraction.reliability_loop import Progress, ReliabilityLoop, ReliabilityLoopResult, extraction_of
from evalkit.extraction.schema import Extraction
from evalkit.extraction.template import FieldTemplate, template, templates
from evalkit.issue import Issue, IssueSeverity

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Loops of one document under way: each has a deadline, which is not for waiting until the others have asked."""
UNREADABLE = "Document quality too low for extraction"
_BETTER_SCAN = "Upload a clearer scan; Use PDF instead of photo"


@dataclass(frozen=True)
class ReportPages:
    """A run of pages that is one report."""

    start_page: int
    end_page: int
    """Inclusive."""
    document_type: str
    """One of the five clinical types."""
    template: str | None = None
    """Instead of what the type and the text say."""


@dataclass(frozen=True)
class Extracted:
    """One report's fields, and what was answered for them."""

    extraction: Extraction
    result: ReliabilityLoopResult


async def extract_reports(
    bundle: DocumentBundle,
    reports: Sequence[ReportPages],
    loop: ReliabilityLoop,
    on_progress: Progress | None = None,
) -> tuple[Extracted, ...]:
    """The fields of every report, in the order of their pages. UsageError where a template does not exist."""
    ordered = sorted(reports, key=lambda one: one.start_page)
    gate = asyncio.Semaphore(AT_ONCE)

    async def extracted(one: ReportPages) -> tuple[FieldTemplate, ReliabilityLoopResult, list[Issue]]:
        async with gate:
            return await _extracted(bundle, one, loop, on_progress)

    results = await asyncio.gather(*map(extracted, ordered))
    return tuple(
        Extracted(extraction_of(result, form, one.document_type, (one.start_page, one.end_page), more=trouble), result)
        for one, (form, result, trouble) in zip(ordered, results, strict=True)
    )


async def _extracted(
    bundle: DocumentBundle, one: ReportPages, loop: ReliabilityLoop, on_progress: Progress | None
) -> tuple[FieldTemplate, ReliabilityLoopResult, list[Issue]]:
    pages = list(bundle.between(one.start_page, one.end_page))
    readable = [page for page in pages if is_readable(page)]
    form = template(one.template) if one.template else clinical_template(one.document_type, readable)
    trouble = _unreadable([page for page in pages if not is_readable(page)], one)
    if not any(page.text.strip() for page in readable):
        result = ReliabilityLoopResult(None, (), False, UNREADABLE, 0.0)
        return form, result, trouble or [_trouble(pages, one, "Every page is blank")]
    numbers = [page.page_num for page in readable]
    result = await loop.execute(bundle, numbers, form, on_progress)
    _alert(bundle, result)
    return form, result, trouble


def _alert(bundle: DocumentBundle, result: ReliabilityLoopResult) -> None:
    """What of this report is beyond the thresholds of specification 002, section 8.1; the rate is of many reports."""
    for metric in loop_metrics([result]):
        if metric.alerts and metric.name != "marc.threshold_met_rate":
            told = {
                "event": "marc_alert",
                "documentId": bundle.sha256[:12],
                "metric": metric.name,
                "because": metric.because,
            }
            log.warning("%s", json.dumps(told | {"value": round(metric.value, 4)}))


def is_readable(page: Page) -> bool:
    """Whether what the page says is known well enough to extract from it; a blank page says nothing."""
    return page.status.readable and (page.quality is None or page.quality >= THRESHOLD)


def clinical_template(document_type: str, pages: Sequence[Page]) -> FieldTemplate:
    """The template of a report: by its type, and among several of one type by the words that it prints.

    A note without the words of a particular kind is a clinical note, any other document is ``unknown``.
    """
    text = "\n".join(page.text for page in pages)
    candidates = [one for one in templates("clinical") if one.document_type == document_type]
    told = {one.name: sum(sign in text for sign in one.signs) for one in candidates}
    best = max(candidates, key=lambda one: told[one.name], default=None)
    plain = template("clinical-notes" if document_type == "Clinical Note" else "unknown")
    if best is None:
        return plain
    return best if len(candidates) == 1 or told[best.name] >= 2 else plain


def _unreadable(pages: Sequence[Page], one: ReportPages) -> list[Issue]:
    if not pages:
        return []
    problems = list(dict.fromkeys(problem for page in pages for problem in page.problems))
    return [_trouble(pages, one, "; ".join(problems[:3]) or "no text could be read on it")]


def _trouble(pages: Sequence[Page], one: ReportPages, why: str) -> Issue:
    numbers = ", ".join(str(page.page_num) for page in pages[:20])
    return Issue.of(
        "reader",
        "READER-NO-TEXT",
        IssueSeverity.BLOCKER,
        f"{UNREADABLE} (page {numbers}): {why}",
        location=f"pages {one.start_page}-{one.end_page}",
        suggested_fix=_BETTER_SCAN,
        document_type=one.document_type,
        page=pages[0].page_num if pages else one.start_page,
    )
