"""Offline reader of the sizes of lesions: the present ones, each once.

A size of an earlier examination, a distance, a slice thickness or a limit of a guideline is no size of a lesion. The
words that tell these are in ``clinical.toml``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from evalkit.extraction.clinical.labelled_values import (
    GUESSED_CONFIDENCE,
    LIKELY_CONFIDENCE,
    LocatedClinicalValue,
    extract_sentence_parts,
)
from evalkit.extraction.clinical.report_structure import ClinicalReport, ReportLine
from evalkit.extraction.field_template import TemplateField
from evalkit.extraction.formats import normalise_value
from evalkit.extraction.patterns import get_pattern
from evalkit.grounding.critical_terms import DifferenceKind
from evalkit.grounding.omitted_context import find_omitted_context


def read_all_sizes(
    _field: TemplateField, report: ClinicalReport, _is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Read the present size of each lesion.

    A size that the findings and the conclusion both name is read once. A size that only the conclusion has, or that is
    ten times another part's, is doubtful.
    """
    counts_by_section: Counter[tuple[float, str]] = Counter()
    counts: Counter[float] = Counter()
    for line in report.finding_lines:
        for start, end in _iter_cell_spans(line):
            for match in get_pattern("lesion_size").finditer(line.page.text, start, end):
                if not _is_size_of_lesion(line, *match.span()):
                    continue
                millimetres = _measure_largest_dimension(match.group())
                counts_by_section[millimetres, line.section] += 1
                if counts_by_section[millimetres, line.section] <= counts[millimetres]:
                    continue
                sizes_elsewhere = {size for size, section in counts_by_section if section != line.section}
                is_doubtful = bool(sizes_elsewhere) and (
                    line.section in ("impression", "conclusion")
                    or not sizes_elsewhere.isdisjoint((round(millimetres / 10, 1), millimetres * 10))
                )
                counts[millimetres] += 1
                yield LocatedClinicalValue(
                    line.page,
                    *match.span(),
                    GUESSED_CONFIDENCE if is_doubtful else LIKELY_CONFIDENCE,
                    str(counts.total()),
                )


def _iter_cell_spans(line: ReportLine) -> Iterator[tuple[int, int]]:
    """Find the cells of a row that are of the present examination, or the whole line."""
    headers = line.column_headers
    dates = {
        normalise_value(match.group(), "date") or ""
        for header in headers
        if (match := get_pattern("date_in_header").search(header))
        and not any(map(get_pattern("present_column").search, headers))
    }
    for cell in line.cells:
        date = get_pattern("date_in_header").search(cell.column_header)
        is_earlier_date = date and (normalise_value(date.group(), "date") or "") != max(dates, default=None)
        if not (is_earlier_date or get_pattern("earlier_column").match(cell.column_header)):
            yield cell.start, cell.end
    if not line.cells:
        yield line.start, line.end


def _is_size_of_lesion(line: ReportLine, start: int, end: int) -> bool:
    before, after = extract_sentence_parts(line.page.text, start, end)
    former = list(get_pattern("size_former").finditer(before))
    is_former = bool(former) and not get_pattern("size_present").search(before, former[-1].end())
    is_second_size = (
        get_pattern("lesion_size").search(before) is not None and re.search(r"\b(?:was|were)\s*$", before) is not None
    )
    difference = find_omitted_context(line.page.text, start, end)
    return not (
        is_former
        or is_second_size
        or get_pattern("size_former_after").match(after)
        or get_pattern("size_other_before").search(before)
        or get_pattern("size_other_after").match(after)
        or (difference and difference.kind is DifferenceKind.NEGATION)
    )


def _measure_largest_dimension(size: str) -> float:
    """Return the largest dimension in millimetres, rounded as the impression does."""
    factor = 10 if re.search(r"(?i)cm|centi", size) else 1
    largest = max(float(number) for number in re.findall(r"\d*\.?\d+", size)) * factor
    return float(round(largest)) if largest >= 10 else round(largest, 1)
