"""Offline readers of multi-value fields: stains, sizes, variants, genes, tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from evalkit.documents.bundle import Page
from evalkit.extraction.clinical.labelled_values import (
    GUESSED_CONFIDENCE,
    LIKELY_CONFIDENCE,
    SENTENCE_END,
    SIZE_WITH_UNIT,
    SURE_CONFIDENCE,
    LocatedClinicalValue,
)
from evalkit.extraction.clinical.report_structure import ClinicalReport, ReportCell, ReportLine, load_clinical_lexicon
from evalkit.extraction.clinical_formats import (
    ALTERATION_PATTERN,
    GENE_PATTERN,
    HGVS_PATTERN,
    NO_VARIANT_PATTERN,
    is_gene_symbol,
    normalise_lab_result,
    normalise_marker_result,
    normalise_variant,
)
from evalkit.extraction.field_template import TemplateField
from evalkit.grounding.omitted_context import find_omitted_context

_LAB_RESULT_WITH_RANGE = re.compile(
    r"(?P<name>[A-Z][A-Za-z0-9/ -]{1,40}?(?:\s*\([A-Za-z0-9/ -]{1,12}\))?)\s*(?:count)?\s*(?::|\s)\s*(?P<value>[<>]?\s*\d+(?:[.,]\d+)*\s*(?:[A-Za-z%µ^x*/0-9.]+(?:/[A-Za-z0-9µ^]+)?)?\s*\((?:(?:ref(?:erence)?(?: range)?|normal|range)\.?:?\s*)?[^()\n]{1,40}\))"
)
#: Words between a stain's name and its result: method, "is", a sign; or the beginning of the result.
_RESULT_START = re.compile(
    r"(?i)\s*\)?\s*(?:\([^)]*\)\s*)?(?:(?:by\s+)?(?:[FCSD]?ISH|IHC|immunohistochem\w+|protein|gene|expression|staining|TPS|index|/\s?CEP-?17|ratio)\b\s*){0,3}"
    r"(?:\([^)]*\)\s*)?(?:[:=,+-]|(?:is|was|are|were|of|in (?!situ)|status|now|stains?|stained|labels?|shows?)\b|positive|negative|equivocal|retained|intact|lost|loss|preserved|"
    r"(?:over-?)?expressed|reactive|(?:un)?amplified|not\b|non-|absent|\d|[<>])"
)
_LIST_SEPARATOR = re.compile(r"[\s,;/&]*(?:\band\b)?\s*")
_TRIPLE_NEGATIVE = re.compile(r"(?i)\btriple[- ]negative\b")
_RESULT_COLUMN = re.compile(
    r"(?i)^(?:(?:test )?results?|values?|in range|out of range|your value|today|observed|measured)$"
)
_TEST_NAME_COLUMN = re.compile(r"(?i)\b(?:test|analyte|component|assay|name|parameter|investigation)\b")
_EARLIER_EXAM_COLUMN = re.compile(r"(?i)^(?:previous|prior|baseline|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4})")


def read_markers(_field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """Read the result of each known stain, in its table row or after its name.

    The second pass also reads history and method sections, and results without a colon or similar sign.
    """
    for line in report.body_lines if is_second_pass else report.finding_lines:
        if line.kind == "row":
            yield from _read_marker_row(line)
            continue
        name_matches = [
            (match, name) for name, pattern in _compile_marker_patterns() for match in pattern.finditer(line.text)
        ]
        name_matches.sort(key=lambda pair: (pair[0].start(), -pair[0].end()))
        names_without_result: list[str] = []
        for number, (match, name) in enumerate(name_matches):
            if number and match.start() < name_matches[number - 1][0].end():
                continue
            result_end = next(
                (other.start() for other, _ in name_matches[number + 1 :] if other.start() >= match.end()),
                len(line.text),
            )
            names = [*names_without_result, name]
            # "MLH1, PMS2 and MSH2 retained": one result of several stains.
            is_listed = _LIST_SEPARATOR.fullmatch(line.text, match.end(), result_end) is not None
            names_without_result = names if is_listed else []
            if not is_listed and (span := _find_marker_result(line, match.end(), result_end, is_second_pass)):
                confidence = GUESSED_CONFIDENCE if is_second_pass else LIKELY_CONFIDENCE
                yield from (LocatedClinicalValue(line.page, *span, confidence, name) for name in names)
        for match in _TRIPLE_NEGATIVE.finditer(line.text):
            span = (line.start + match.start(), line.start + match.end())
            yield from (
                LocatedClinicalValue(line.page, *span, LIKELY_CONFIDENCE, name) for name in ("ER", "PR", "HER2")
            )


def _read_marker_row(line: ReportLine) -> Iterator[LocatedClinicalValue]:
    name_cell = next((cell for cell in line.cells if cell.text), None)
    if name_cell is None:
        return
    name = next(
        (
            name
            for name, pattern in _compile_marker_patterns()
            if (m := pattern.match(name_cell.text)) and len(name_cell.text) - m.end() < 14
        ),
        None,
    )
    result_cells = [
        cell for cell in line.cells if cell.start > name_cell.start and cell.text and normalise_marker_result(cell.text)
    ]
    if name and result_cells:
        yield LocatedClinicalValue(line.page, result_cells[0].start, result_cells[-1].end, SURE_CONFIDENCE, name)


def _find_marker_result(line: ReportLine, start: int, end: int, is_second_pass: bool) -> tuple[int, int] | None:
    """Find the result in the clause after a stain's name; None if there is none.

    ``start`` and ``end``: the text between this stain's name and the next, within the line.
    """
    text = line.text[start:end]
    if not is_second_pass and not _RESULT_START.match(text):
        return None
    clause_end = SENTENCE_END.search(text)
    clause = text[: clause_end.start()] if clause_end else text
    result_text = clause.strip(" :=,-\t")
    result_text = re.sub(r"[\s,(]+(?:and|by|with)?[\s(]*$", "", result_text)
    if not result_text or normalise_marker_result(result_text) is None or len(result_text) > 120:
        return None
    position = start + text.index(result_text)
    return line.start + position, line.start + position + len(result_text)


@cache
def _compile_marker_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    def compile_names(words: Iterable[str]) -> re.Pattern[str]:
        # Short names match only in capitals: "er" in small letters is another word.
        exact = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if len(word) <= 3)
        loose = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if len(word) > 3)
        alternatives = "|".join(filter(None, (f"(?i:{loose})" if loose else "", exact)))
        return re.compile(rf"(?<![\w-])(?:{alternatives})(?!\w|\+\w|-(?!(?:positive|negative)\b)\w)")

    return tuple((row["name"], compile_names(row["words"])) for row in load_clinical_lexicon()["marker"])


def read_all_sizes(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Read every size with a unit, without those of earlier examinations."""
    number = 0
    seen_keys: set[tuple[str, str]] = set()
    for line in report.body_lines if is_second_pass else report.finding_lines:
        if line.group in ("history", "method"):
            continue
        spans = [
            (cell.start, cell.end) for cell in line.cells if not _EARLIER_EXAM_COLUMN.match(cell.column_header)
        ] or [(line.start, line.end)]
        for start, end in spans:
            for match in SIZE_WITH_UNIT.finditer(line.page.text, start, end):
                next_word = re.search(r"[A-Za-z-]{4,}", line.page.text[match.end() : match.end() + 30])
                key = (
                    field.normalise(match.group().replace("-", " ")) or "",
                    next_word.group().lower() if next_word else "",
                )
                if key not in seen_keys:
                    seen_keys.add(key)
                    number += 1
                    yield LocatedClinicalValue(line.page, *match.span(), LIKELY_CONFIDENCE, str(number))


def read_variants(
    _field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Read each variant once, with its gene.

    The second pass also finds everyday names (exon 19 deletion), fusions, and changes without a gene. If there is no
    variant, the statement that none was found is read.
    """
    seen_changes: set[str] = set()
    number = 0
    for page, start, end, confidence in _find_variant_spans(report, is_second_pass):
        changes = _extract_variant_changes(page.text[start:end])
        if changes <= seen_changes:
            continue
        seen_changes |= changes
        number += 1
        yield LocatedClinicalValue(page, start, end, confidence, str(number))
    if not number:
        for line in report.finding_lines:
            if match := NO_VARIANT_PATTERN.search(line.text):
                yield LocatedClinicalValue(
                    line.page, line.start + match.start(), line.start + match.end(), LIKELY_CONFIDENCE, "1"
                )
                return


def _extract_variant_changes(text: str) -> set[str]:
    """Collect the HGVS changes in a text, without ``p.?``; or else its normal form."""
    normal_form = normalise_variant(text) or ""
    return {change.strip(")") for change in HGVS_PATTERN.findall(text) if change != "p.?"} or {normal_form}


#: Page, start and end in its text, and confidence of a variant.
_VariantSpan = tuple[Page, int, int, float]
_GENE_WITH_HGVS = re.compile(
    rf"\b(?P<gene>{GENE_PATTERN})\b(?:\s*[,:(]?\s*(?:NM_\d+(?:\.\d+)?)?[\s,:(-]*)(?:{HGVS_PATTERN.pattern})(?:[\s,;(]*(?:{HGVS_PATTERN.pattern})\)?)?"
)
_GENE_WITH_ALTERATION = re.compile(rf"\b(?P<gene>{GENE_PATTERN})[\s:,(]+(?:{ALTERATION_PATTERN.pattern})")
_GENE_FUSION = re.compile(
    rf"\b(?P<gene>{GENE_PATTERN})\s*(?:::|-|/)\s*{GENE_PATTERN}\s+(?:gene )?(?:fusion|rearrangement)"
)


def _find_variant_spans(report: ClinicalReport, is_second_pass: bool) -> Iterator[_VariantSpan]:
    for line in report.finding_lines:
        row_spans = list(_find_variant_in_row(line))
        yield from row_spans
        if row_spans:
            continue
        yield from _find_affirmed_variants(line, _GENE_WITH_HGVS, LIKELY_CONFIDENCE)
        if is_second_pass:
            yield from _find_affirmed_variants(line, _GENE_WITH_ALTERATION, GUESSED_CONFIDENCE)
            yield from _find_affirmed_variants(line, _GENE_FUSION, GUESSED_CONFIDENCE)
            for match in HGVS_PATTERN.finditer(line.text):
                yield line.page, line.start + match.start(), line.start + match.end(), GUESSED_CONFIDENCE


def _find_variant_in_row(line: ReportLine) -> Iterator[_VariantSpan]:
    """Find the part of a table row from the gene's cell to the last change."""
    gene_cell = next((cell for cell in line.cells if is_gene_symbol(cell.text.split(" ")[0])), None)
    change_cells = [
        cell for cell in line.cells if HGVS_PATTERN.search(cell.text) or ALTERATION_PATTERN.fullmatch(cell.text)
    ]
    if change_cells:
        is_gene_first = gene_cell is not None and gene_cell.start < change_cells[0].start
        yield (
            line.page,
            gene_cell.start if gene_cell and is_gene_first else change_cells[0].start,
            change_cells[-1].end,
            SURE_CONFIDENCE,
        )


def _find_affirmed_variants(line: ReportLine, pattern: re.Pattern[str], confidence: float) -> Iterator[_VariantSpan]:
    for match in pattern.finditer(line.text):
        start, end = line.start + match.start(), line.start + match.end()
        if is_gene_symbol(match["gene"]) and find_omitted_context(line.page.text, start, end) is None:
            yield line.page, start, end, confidence


def read_genes(_field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """Read each gene that has a variant, once."""
    seen_genes: set[str] = set()
    for page, start, end, confidence in _find_variant_spans(report, is_second_pass):
        for match in re.finditer(rf"(?<![\w.]){GENE_PATTERN}(?![\w.])", page.text[start:end]):
            if is_gene_symbol(match.group()) and match.group() not in seen_genes:
                seen_genes.add(match.group())
                yield LocatedClinicalValue(page, start + match.start(), start + match.end(), confidence, match.group())
                break


def read_lab_results(
    _field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Read laboratory results: in table rows, or in text with a reference range.

    A value spans the row from the result to the last cell. The second pass also reads tables without a result column.
    """
    for line in report.finding_lines:
        if line.kind == "row":
            yield from _read_lab_row(line, is_second_pass)
            continue
        for match in _LAB_RESULT_WITH_RANGE.finditer(line.text):
            name = _clean_test_name(match["name"])
            if name and normalise_lab_result(match["value"]):
                yield LocatedClinicalValue(
                    line.page,
                    line.start + match.start("value"),
                    line.start + match.end("value"),
                    LIKELY_CONFIDENCE,
                    name,
                )


def _read_lab_row(line: ReportLine, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    cells = line.cells
    name_cell = next((cell for cell in cells if cell.text), None)
    if name_cell is None or not re.match(r"[A-Za-z]", name_cell.text) or ":" in name_cell.text:
        return
    is_result_table = any(_RESULT_COLUMN.match(cell.column_header) for cell in cells) and (
        _TEST_NAME_COLUMN.search(name_cell.column_header) or not name_cell.column_header
    )
    result_cells: list[ReportCell] = [
        cell
        for cell in cells[1:]
        if re.match(r"[<>≤≥]?\s*\d", cell.text)
        and (
            _RESULT_COLUMN.match(cell.column_header)
            if is_result_table
            else not re.match(r"\d+(?:\.\d+)?\s*[-–]\s*\d", cell.text)
        )
    ]
    is_read = bool(is_result_table) or is_second_pass
    if is_read and result_cells and result_cells[0].start > name_cell.start:
        yield LocatedClinicalValue(
            line.page,
            result_cells[0].start,
            [cell for cell in cells if cell.text][-1].end,
            SURE_CONFIDENCE if is_result_table else GUESSED_CONFIDENCE,
            _clean_test_name(name_cell.text),
        )


def _clean_test_name(text: str) -> str:
    return re.sub(r"(?i)^(?:and|cbc|the)\s+", "", " ".join(text.split())).strip(" .,:;-")[:60]
