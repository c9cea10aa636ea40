"""Offline readers of findings in pathology reports: margins, grades, stage, tumor size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from evalkit.extraction.clinical.labelled_values import (
    LIKELY_CONFIDENCE,
    FieldReader,
    LocatedClinicalValue,
    read_labelled_values,
)
from evalkit.extraction.clinical.report_passages import ReportPassage, get_passages
from evalkit.extraction.clinical.report_structure import ClinicalReport, PageTextSpan
from evalkit.extraction.clinical_formats import normalise_margin_status
from evalkit.extraction.field_template import TemplateField
from evalkit.extraction.patterns import get_pattern

#: Function that yields start and end of a field's values in a passage's text.
PassageReader = Callable[[ReportPassage], Iterator[tuple[int, int]]]


def make_passage_reader(find_spans: PassageReader) -> FieldReader:
    """Build a reader that finds values at labels, then anywhere in the report's passages."""

    def read_passages(
        field: TemplateField, report: ClinicalReport, is_second_pass: bool
    ) -> Iterator[LocatedClinicalValue]:
        yield from read_labelled_values(field, report, is_second_pass)
        for passage in get_passages(report):
            for start, end in find_spans(passage):
                if field.normalise(passage.text[start:end]) is not None:
                    yield LocatedClinicalValue(
                        passage.page, passage.start + start, passage.start + end, LIKELY_CONFIDENCE
                    )

    return read_passages


def find_margin_spans(passage: ReportPassage) -> Iterator[tuple[int, int]]:
    """Find clauses that state whether a margin is involved, not those that only give a distance."""
    has_topic = get_pattern("margin_topic").search(passage.topic) is not None
    for start, end in passage.iter_clauses():
        clause = passage.text[start:end]
        is_about_margins = get_pattern("margin_word").search(clause) or (
            has_topic and not get_pattern("statement_subject").match(clause)
        )
        state = normalise_margin_status(clause) if is_about_margins else None
        if state and not state[0].isdigit() and not get_pattern("untold").match(clause):
            yield start + len(clause) - len(clause.lstrip(" -•*\t")), start + len(clause.rstrip(" .,;:\t"))


def find_grade_spans(passage: ReportPassage) -> Iterator[tuple[int, int]]:
    """Find each grade and each degree of differentiation of the tumor."""
    for match in get_pattern("stated_grade").finditer(passage.text):
        if not get_pattern("other_lesion").search(passage.text, max(match.start() - 60, 0), match.start()):
            yield match.span()


def read_stages(field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """Read pathologic categories, also on several lines; then labelled stages and stage groups."""
    passages = get_passages(report)
    readings = []
    for number, passage in enumerate(passages):
        for match in get_pattern("tumor_category").finditer(passage.text):
            end = get_pattern("category_after").match(passage.text, match.end()).end()  # type: ignore[union-attr]
            further_spans = _find_further_categories(passages[number : number + 4]) if end == match.end() else ()
            start_on_page, end_on_page = passage.start + match.start(), passage.start + end
            readings.append(
                LocatedClinicalValue(
                    passage.page, start_on_page, end_on_page, LIKELY_CONFIDENCE, continued_spans=further_spans
                )
            )
    yield from sorted(readings, key=lambda reading: "N" not in reading.text)
    yield from make_passage_reader(_find_stage_groups)(field, report, is_second_pass)


def _find_further_categories(passages: Sequence[ReportPassage]) -> tuple[PageTextSpan, ...]:
    """Find the first N and the first M category that begin a line, on the first passage's page."""
    spans: dict[str, PageTextSpan] = {}
    for passage in passages:
        match = get_pattern("further_category").search(passage.text, 0, 40)
        if match and passage.page is passages[0].page:
            span = (passage.page, passage.start + match.start(), passage.start + match.end())
            spans.setdefault("M" if "M" in match.group() else "N", span)
    return tuple(spans[category] for category in "NM" if category in spans)


def _find_stage_groups(passage: ReportPassage) -> Iterator[tuple[int, int]]:
    for match in get_pattern("stated_stage_group").finditer(passage.text):
        yield match.span()


def find_tumor_size_spans(passage: ReportPassage) -> Iterator[tuple[int, int]]:
    """Find the sizes of the tumor itself."""
    for match in get_pattern("tumor_size").finditer(passage.text):
        yield match.span(match.lastgroup or 0)
