"""What the embedded model reads in clinical reports: labels with their answers, tables, and the words of findings.

A first look takes what stands where such reports put it. Another look, at the fields that the evaluator asked for, takes
less usual labels, the lines beside a label, and words anywhere in the report: more is found so, and more of it wrongly,
which is why it is not the first. Nothing here knows whether a value is true; every value is a place on a page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import NamedTuple

from evalkit.documents.bundle import Page
from evalkit.extraction.clinical.report_structure import (
    ClinicalReport,
    PageTextSpan,
    ReportCell,
    ReportLine,
    load_clinical_lexicon,
)
from evalkit.extraction.clinical_formats import (
    ALTERATION_PATTERN,
    GENE_PATTERN,
    HGVS_PATTERN,
    NO_VARIANT_PATTERN,
    is_gene_symbol,
    normalise_grade,
    normalise_lab_result,
    normalise_margin_status,
    normalise_marker_result,
    normalise_msi,
    normalise_stage,
    normalise_tmb,
    normalise_variant,
)
from evalkit.extraction.field_template import TemplateField
from evalkit.grounding.omitted_context import find_omitted_context

SURE_CONFIDENCE, LIKELY_CONFIDENCE, GUESSED_CONFIDENCE = 0.95, 0.9, 0.8
"""Of what stands beside its label, of what words say, of what only another look found: an order, no probabilities."""
MAX_VALUES_PER_FIELD = 200
"""So many values of one field are read; a file made to hold more costs no more."""

_SENTENCE_END = re.compile(r"[.;](?=\s|$)|\n")
_CLAUSE_END = re.compile(r"[.;](?=\s|$)|\n|\t")
_NEXT_LABEL = re.compile(r"[.;,]?\s+(?=[A-Z][A-Za-z /()-]{2,40}:(?:\s|$))")
_SIZE_WITH_UNIT = re.compile(
    r"(?<![\d.,-])\d+(?:\.\d+)?(?:\s*(?:mm|cm))?(?:\s*[x×]\s*\d+(?:\.\d+)?(?:\s*(?:mm|cm))?){0,2}\s*-?(?:mm|cm)\b(?!\s*(?:[23²³]|H2?O|Hg|slice|section|thick|collimation|interval|axial|cut))",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?<!\d)(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.-]\d{1,2}[/.-](?:\d{4}|\d{2})|[A-Z][a-z]{2,8}\.? \d{1,2},? \d{4}|\d{1,2} [A-Z][a-z]{2,8} \d{4})(?!\d)"
)
_GRADE = re.compile(
    r"(?i)(?<!nuclear )\b(?:(?:nottingham|figo|histologic(?:al)?|overall|who|sbr|bloom[- ]richardson|tumou?r|combined)[\s,-]{1,3}){0,4}\bgrade[:\s]{1,3}(?:of\s+)?(?:[1-3]|i{1,3})(?:\s?(?:/|of)\s?3)?(?!\w|\.\d)"
)
_DIFFERENTIATION = re.compile(
    r"(?i)\b(?:well|moderately|poorly)[\s-]+differentiated\b|(?-i:\bG[1-3]\b)|(?-i:\bNHG\s?[1-3])"
)
_MARGIN_STATE = re.compile(
    r"(?i)\b(?:all\s+)?(?:[\w-]+\s+){0,2}margins?\s+(?:of resection\s+)?(?:(?:is|are|were|was)\s+)?(?:\w+ly\s+)?(?:negative|free|clear|uninvolved|not involved|positive|involved)\b[^.;\n\t]*"
)
_MARGIN_WORD = re.compile(r"(?i)\bmargins?\b")
_PTNM_STAGE = re.compile(r"\b[ycra]{0,2}pT(?:is|[0-4X][a-d]?)[^\n\t]{0,30}")
_GREATEST_DIMENSION = re.compile(
    r"(?i)(?P<size>\d+(?:\.\d+)?\s*(?:mm|cm))\s*,?\s*(?:in|is the)?\s*(?:greatest|maximum|maximal|largest) (?:dimension|diameter|extent)"
)
_SPECIMEN_BEFORE = re.compile(r"(?i)\bspecimen\b[^.;]*$")
_STAGE_GROUP = re.compile(r"(?i)\bstage\s+(?:IV|III|II|I)[A-C]?\b")
_MSI_STATUS = re.compile(r"(?i)\bMSI-?H(?:igh)?\b|\bMSI-?L(?:ow)?\b|(?-i:\bMSS\b)|\bmicrosatellite[- ]stable\b")
_MSI_WORD = re.compile(r"(?i)\bmicrosatellite\b|(?-i:\bMSI\b)")
_PER_MEGABASE = r"(?:\s*(?:somatic\s+)?(?:mut(?:ation)?s?|variants)\.?)?\s*(?:/|per)\s*(?:mb|megabase)"
_TMB_WITH_NAME = re.compile(
    rf"(?i)\b(?:TMB|mutation(?:al)? (?:burden|load))\b[^.;\n\t\d]{{0,30}}(?P<size>\d+(?:\.\d+)?{_PER_MEGABASE})"
)
_TMB_WITHOUT_NAME = re.compile(rf"(?i)(?P<size>(?<![\d.])\d+(?:\.\d+)?{_PER_MEGABASE})")
_MASS_SIZE = re.compile(
    r"(?i)\b(?:mass|tumou?r|lesion|nodule)\b[^.;\n\t]{0,50}?\b(?:measur(?:es|ing|ed)|of|is|,)\s*(?:about |approximately )?(?P<size>\d+(?:\.\d+)?(?:\s*[x×]\s*\d+(?:\.\d+)?){0,2}\s*(?:mm|cm))"
)
_LAB_RESULT_WITH_RANGE = re.compile(
    r"(?P<name>[A-Z][A-Za-z0-9/ -]{1,40}?(?:\s*\([A-Za-z0-9/ -]{1,12}\))?)\s*(?:count)?\s*(?::|\s)\s*(?P<value>[<>]?\s*\d+(?:[.,]\d+)*\s*(?:[A-Za-z%µ^x*/0-9.]+(?:/[A-Za-z0-9µ^]+)?)?\s*\((?:(?:ref(?:erence)?(?: range)?|normal|range)\.?:?\s*)?[^()\n]{1,40}\))"
)
_RESULT_COLUMN = re.compile(
    r"(?i)^(?:(?:test )?results?|values?|in range|out of range|your value|today|observed|measured)$"
)
_TEST_NAME_COLUMN = re.compile(r"(?i)\b(?:test|analyte|component|assay|name|parameter|investigation)\b")
_BIRTH_WORD = re.compile(r"(?i)\b(?:birth|dob|born)\b")
_EARLIER_EXAM_COLUMN = re.compile(r"(?i)^(?:previous|prior|baseline|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4})")


@dataclass(frozen=True)
class LocatedClinicalValue:
    """A value, where it stands: characters of the page's text."""

    page: Page
    start: int
    end: int
    confidence: float
    item: str = ""
    """Of a field of many values: which one, ``ER``."""
    continued_spans: tuple[PageTextSpan, ...] = ()
    """Where a long text goes on, on the pages behind."""

    @property
    def spans(self) -> tuple[PageTextSpan, ...]:
        """All places of it, one for each page."""
        return ((self.page, self.start, self.end), *self.continued_spans)

    @property
    def text(self) -> str:
        """Its words."""
        return "\n".join(page.text[start:end] for page, start, end in self.spans)


def find_field_values(
    field: TemplateField, report: ClinicalReport, *, include_second_pass: bool = False
) -> list[LocatedClinicalValue]:
    """The values of a field that the report has, the likeliest first; fields of many values in the order of the page.

    ``include_second_pass``: another look, where the first one is known not to have been enough.
    """
    readings = list(islice(_drop_duplicates(list_first_pass_values(field, report)), MAX_VALUES_PER_FIELD))
    if include_second_pass:
        further_readings = islice(_drop_duplicates(_choose_reader(field)(field, report, True)), MAX_VALUES_PER_FIELD)
        readings += [reading for reading in further_readings if not _is_known_reading(reading, readings)]
    if field.format in _NUMBERED_FORMATS and field.many:
        readings = [replace(reading, item=str(number)) for number, reading in enumerate(readings, 1)]
    return readings


def list_first_pass_values(field: TemplateField, report: ClinicalReport) -> tuple[LocatedClinicalValue, ...]:
    """List all places of a first look, not capped: a value that appears twice, or two values of one name, come as often."""
    # Each attempt asks for them, and the judge once more for every value: looked for once.
    readings: tuple[LocatedClinicalValue, ...] | None = report.reading_cache.get(field)
    if readings is None:
        readings = report.reading_cache[field] = tuple(_choose_reader(field)(field, report, False))
    return readings


@cache
def _compile_lexicon_pattern(part: str, key: str) -> re.Pattern[str]:
    return re.compile(load_clinical_lexicon()[part][key])


def _choose_reader(field: TemplateField) -> _FieldReader:
    return _READERS_BY_NAME.get(field.reader) or _READERS_BY_FORMAT.get(field.format, _read_labelled_values)


def _is_known_reading(reading: LocatedClinicalValue, known_readings: Iterable[LocatedClinicalValue]) -> bool:
    """Whether it has the name, or some of the words, of what was found before."""
    return any(
        (reading.item and not reading.item.isdigit() and reading.item == other.item)
        or (reading.page is other.page and reading.start < other.end and other.start < reading.end)
        for other in known_readings
    )


#: Formats whose values have no names, so that they are counted.
_NUMBERED_FORMATS = ("measurement", "variant")


def find_line_mentioning_field(field: TemplateField, report: ClinicalReport) -> ReportLine | None:
    """The first line that speaks of the field, but for those that say that it was not told."""
    if field.mentions is None:
        return None
    pattern, unreported_pattern = re.compile(field.mentions), _compile_lexicon_pattern("untold", "words")
    if field.reader == "section":
        section_names = {*field.labels, *field.more_labels}
        return next((line for line in report.body_lines if line.section in section_names), None)
    for line in report.finding_lines:
        text = f"{line.text}\n"
        if (mention := pattern.search(text)) and not unreported_pattern.search(
            text, mention.start(), min(mention.end() + 60, len(text))
        ):
            return line
    return None


# ------------------------------------------------------------------------------------------------- labels


def _read_labelled_values(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """What stands beside one of the field's labels and is in its format."""
    for line, start, end in _find_labelled_text(field, report, is_second_pass):
        if field.format == "measurement" and _SPECIMEN_BEFORE.search(
            line.page.text, max(start - 50, line.start), start
        ):
            continue
        if span := _find_formatted_span(field, line.page, start, end):
            yield LocatedClinicalValue(line.page, *span, SURE_CONFIDENCE if not is_second_pass else GUESSED_CONFIDENCE)


def _find_labelled_text(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[tuple[ReportLine, int, int]]:
    labels = (*field.labels, *field.more_labels) if is_second_pass else field.labels
    if not labels:
        return
    lines = (report.body_lines if is_second_pass else report.finding_lines) + report.furniture_lines
    for line_number, line in enumerate(lines):
        if line.group == "history":
            continue
        if line.kind == "row":
            yield from _find_text_in_cells(line, labels)
            continue
        for label_match in _compile_label_pattern(labels, is_second_pass).finditer(line.text):
            start = line.start + label_match.end()
            if line.page.text[start : line.end].strip(" .:\t"):
                yield line, start, line.end
            elif is_second_pass or line.kind == "heading":
                yield from _find_text_in_adjacent_lines(lines, line_number)


def _find_text_in_cells(line: ReportLine, labels: Iterable[str]) -> Iterator[tuple[ReportLine, int, int]]:
    """The cells behind a label, the cell under it, or what follows it in its own cell."""
    label_only_pattern = _compile_label_only_pattern(tuple(labels))
    label_pattern = _compile_label_pattern(tuple(labels), False)
    for number, cell in enumerate(line.cells):
        cells_after = [next_cell for next_cell in line.cells[number + 1 :] if next_cell.text]
        if label_only_pattern.match(cell.text):
            if cells_after:
                yield line, cells_after[0].start, cells_after[0].end
                yield line, cells_after[0].start, cells_after[-1].end
        elif label_match := label_pattern.search(cell.text):
            yield line, cell.start + label_match.end(), cell.end
        elif cell.text and label_only_pattern.match(cell.column_header):
            yield line, cell.start, cell.end


def _find_text_in_adjacent_lines(
    lines: tuple[ReportLine, ...], line_number: int
) -> Iterator[tuple[ReportLine, int, int]]:
    """The line below a label that has nothing behind it, then the line above."""
    for adjacent_number in (line_number + 1, line_number - 1):
        if (
            0 <= adjacent_number < len(lines)
            and lines[adjacent_number].kind != "heading"
            and lines[adjacent_number].page is lines[line_number].page
        ):
            line = lines[adjacent_number]
            first_cell = next((cell for cell in line.cells if cell.text), None)
            yield (line, first_cell.start, first_cell.end) if first_cell else (line, line.start, line.end)


@cache
def _compile_label_pattern(labels: tuple[str, ...], is_loose: bool) -> re.Pattern[str]:
    words = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    separator = r"(?:\s*[:=]\s*|\s+[-–]\s+|\s+(?:is|was|are|were)\s+)"
    qualifier = r"(?:\s*\([^()]{1,30}\))?"
    label_only, label_start = rf"^\W*(?:{words}){qualifier}\s*$", rf"(?<![\w-])(?<!nuclear )(?:{words})"
    return re.compile(
        rf"(?i){label_start}{qualifier}{separator}|{label_only}" + (rf"|{label_start}\s+(?=\S)" if is_loose else "")
    )


@cache
def _compile_label_only_pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    return re.compile(rf"(?i)^(?:{words})(?:\s*\([^()]{{1,30}}\))?\s*:?$")


def _read_margins(field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """Whether they are free comes before how far away the nearest is."""
    reader = _make_wording_reader(
        _WordingPattern(_MARGIN_STATE),
        _WordingPattern(_MARGIN_WORD, is_whole_clause=True),
        normalise=normalise_margin_status,
    )
    yield from sorted(
        reader(field, report, is_second_pass),
        key=lambda reading: (normalise_margin_status(reading.text) or "")[:1].isdigit(),
    )


def _find_formatted_span(field: TemplateField, page: Page, start: int, end: int) -> tuple[int, int] | None:
    """The part of the words that is a value of the field's format; None where it says that there is none."""
    text = page.text[start:end]
    if _compile_lexicon_pattern("untold", "words").match(text.strip(" :-")):
        return None
    if pattern := _EMBEDDED_PATTERNS.get(field.format):
        match = pattern.search(text)
        is_valid = match is not None and field.normalise(match.group()) is not None
        return (start + match.start(), start + match.end()) if match and is_valid else None
    end_pattern = _NEXT_LABEL if field.format == "margin" else _SENTENCE_END
    end_match = end_pattern.search(text)
    clause = text[: end_match.start()] if end_match and end_match.start() else text
    for candidate in dict.fromkeys((clause, text)):
        stripped = candidate.strip(" \t\n.,;:")
        if (
            stripped
            and field.normalise(stripped) is not None
            and len(stripped) <= _MAX_VALUE_LENGTHS.get(field.format, 200)
        ):
            position = start + text.index(stripped)
            return position, position + len(stripped)
    return None


#: Formats whose values are looked for within the words beside a label.
_EMBEDDED_PATTERNS: Mapping[str, re.Pattern[str]] = {"date": _DATE, "measurement": _SIZE_WITH_UNIT}
_MAX_VALUE_LENGTHS: Mapping[str, int] = {"margin": 160, "grade": 60, "msi": 80, "tmb": 80, "stage": 60}


# ------------------------------------------------------------------------------------------------- findings in words


class _WordingPattern(NamedTuple):
    """How a finding is written: the match, its group ``size`` where it has one, or the clause around it."""

    pattern: re.Pattern[str]
    is_whole_clause: bool = False

    def find_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it is written in the text."""
        for match in self.pattern.finditer(text):
            start, end = match.span("size") if "size" in self.pattern.groupindex else match.span()
            if "size" in self.pattern.groupindex and _SPECIMEN_BEFORE.search(text, max(start - 50, 0), start):
                continue
            yield _find_clause_bounds(text, start, end) if self.is_whole_clause else (start, end)


def _find_clause_bounds(text: str, start: int, end: int) -> tuple[int, int]:
    """The clause or cell around ``start..end``."""
    clause_start = max(
        (
            position + len(delimiter)
            for delimiter in (". ", "; ", "\n", "\t")
            if (position := text.rfind(delimiter, 0, start)) >= 0
        ),
        default=0,
    )
    end_match = _CLAUSE_END.search(text, end)
    return clause_start, end_match.start() if end_match else len(text)


def _make_wording_reader(
    first_wording: _WordingPattern, *other_wordings: _WordingPattern, normalise: Callable[[str], str | None]
) -> _FieldReader:
    """A reader of labels, then of the first way in which the finding is written; of the others at another look."""

    def read_wording(
        field: TemplateField, report: ClinicalReport, is_second_pass: bool
    ) -> Iterator[LocatedClinicalValue]:
        yield from _read_labelled_values(field, report, is_second_pass)
        for wording in (first_wording, *other_wordings) if is_second_pass else (first_wording,):
            for line in report.body_lines if is_second_pass else report.finding_lines:
                if line.group == "history":
                    continue
                for start, end in wording.find_spans(line.text):
                    text = line.text[start:end].strip(" .,;:")
                    if text and normalise(text) is not None:
                        position = line.start + line.text.index(text, start)
                        yield LocatedClinicalValue(
                            line.page,
                            position,
                            position + len(text),
                            GUESSED_CONFIDENCE if is_second_pass else LIKELY_CONFIDENCE,
                        )

    return read_wording


def _read_histology(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """A tumor's name: beside its label, then in the diagnosis, at another look anywhere; none that is denied."""
    for line, start, end in _find_labelled_text(field, report, is_second_pass):
        yield from _sort_by_word_count(_find_affirmed_tumors(line, start, end, SURE_CONFIDENCE))
    diagnosis_lines = [line for line in report.body_lines if "diagnosis" in line.section and line.group == "other"]
    lines = list(report.finding_lines) if is_second_pass else diagnosis_lines
    secondary_terms = tuple(load_clinical_lexicon()["histology"]["beside"])
    readings = [
        reading
        for line in lines
        for reading in _sort_by_word_count(
            _find_affirmed_tumors(
                line, line.start, line.end, GUESSED_CONFIDENCE if is_second_pass else LIKELY_CONFIDENCE
            )
        )
    ]
    yield from sorted(readings, key=lambda reading: any(word in reading.text.lower() for word in secondary_terms))
    if is_second_pass and not readings:
        for line in report.finding_lines:
            if match := _compile_lexicon_pattern("histology", "benign").search(line.text):
                yield LocatedClinicalValue(
                    line.page, line.start + match.start(), line.start + match.end(), GUESSED_CONFIDENCE
                )


def _find_affirmed_tumors(line: ReportLine, start: int, end: int, confidence: float) -> Iterator[LocatedClinicalValue]:
    for match in _compile_tumor_pattern().finditer(line.page.text, start, end):
        if find_omitted_context(line.page.text, *match.span()) is None and not re.match(r"(?i)metasta", match.group()):
            yield LocatedClinicalValue(line.page, *match.span(), confidence)


def _sort_by_word_count(readings: Iterable[LocatedClinicalValue]) -> list[LocatedClinicalValue]:
    """Of the names that one line has, the one of most words first: "carcinoma" is short for another of them."""
    return sorted(readings, key=lambda reading: -len(reading.text.split()))


@cache
def _compile_tumor_pattern() -> re.Pattern[str]:
    words = load_clinical_lexicon()["histology"]
    qualifiers, nouns = (
        "|".join(map(re.escape, sorted(words[key], key=len, reverse=True))) for key in ("before", "nouns")
    )
    return re.compile(rf"(?i)(?<![\w-])(?:(?:{qualifiers})[\s,-]+){{0,6}}(?:{nouns}){words['behind']}(?![\w-])")


def _read_markers(
    _field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """One result for each stain that the report names: in the row of a table, or behind the name."""
    for line in report.body_lines if is_second_pass else report.finding_lines:
        if line.kind == "row":
            yield from _read_marker_row(line)
            continue
        name_matches = [
            (match, name) for name, pattern in _compile_marker_patterns() for match in pattern.finditer(line.text)
        ]
        name_matches.sort(key=lambda pair: (pair[0].start(), -pair[0].end()))
        for number, (match, name) in enumerate(name_matches):
            if number and match.start() < name_matches[number - 1][0].end():
                continue
            result_end = next(
                (other.start() for other, _ in name_matches[number + 1 :] if other.start() >= match.end()),
                len(line.text),
            )
            if span := _find_marker_result(line, match.end(), result_end, is_second_pass):
                yield LocatedClinicalValue(
                    line.page, *span, GUESSED_CONFIDENCE if is_second_pass else LIKELY_CONFIDENCE, name
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
    """The result behind a stain's name, up to the next one or the end of its clause."""
    text = line.text[start:end]
    if not is_second_pass and not re.match(
        r"\s*(?:\([^)]*\)\s*)?(?:[:=,-]|is\b|was\b|status\b|positive|negative|equivocal|\d|[<>])", text, re.I
    ):
        return None
    clause_end = _SENTENCE_END.search(text)
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
        # Short names in capitals are other words in small letters.
        exact = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if len(word) <= 3)
        loose = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if len(word) > 3)
        alternatives = "|".join(filter(None, (f"(?i:{loose})" if loose else "", exact)))
        return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w+]|-\w)")

    return tuple((row["name"], compile_names(row["words"])) for row in load_clinical_lexicon()["marker"])


# ------------------------------------------------------------------------------------------------- many values


def _read_measurements(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    reader = (
        _read_all_sizes
        if field.many
        else _make_wording_reader(
            _WordingPattern(_GREATEST_DIMENSION),
            _WordingPattern(_MASS_SIZE),
            normalise=lambda text: text if _SIZE_WITH_UNIT.search(text) else None,
        )
    )
    yield from reader(field, report, is_second_pass)


def _read_all_sizes(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Every size with its unit that the findings tell, but for those of earlier examinations."""
    number = 0
    seen_keys: set[tuple[str, str]] = set()
    for line in report.body_lines if is_second_pass else report.finding_lines:
        if line.group in ("history", "method"):
            continue
        spans = [
            (cell.start, cell.end) for cell in line.cells if not _EARLIER_EXAM_COLUMN.match(cell.column_header)
        ] or [(line.start, line.end)]
        for start, end in spans:
            for match in _SIZE_WITH_UNIT.finditer(line.page.text, start, end):
                next_word = re.search(r"[A-Za-z-]{4,}", line.page.text[match.end() : match.end() + 30])
                key = (
                    field.normalise(match.group().replace("-", " ")) or "",
                    next_word.group().lower() if next_word else "",
                )
                if key not in seen_keys:
                    seen_keys.add(key)
                    number += 1
                    yield LocatedClinicalValue(line.page, *match.span(), LIKELY_CONFIDENCE, str(number))


def _read_variants(
    _field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Every variant once, with its gene: in rows, in words, at another look also in the words of a clinic."""
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
    """The changes in a text; an unknown effect only with its gene, as many variants have it."""
    normal_form = normalise_variant(text) or ""
    return {change.strip(")") for change in HGVS_PATTERN.findall(text) if change != "p.?"} or {normal_form}


VariantSpan = tuple[Page, int, int, float]
"""Where a variant stands, and how sure that is."""
_GENE_WITH_HGVS = re.compile(
    rf"\b(?P<gene>{GENE_PATTERN})\b(?:\s*[,:(]?\s*(?:NM_\d+(?:\.\d+)?)?[\s,:(-]*)(?:{HGVS_PATTERN.pattern})(?:[\s,;(]*(?:{HGVS_PATTERN.pattern})\)?)?"
)
_GENE_WITH_ALTERATION = re.compile(rf"\b(?P<gene>{GENE_PATTERN})[\s:,(]+(?:{ALTERATION_PATTERN.pattern})")
_GENE_FUSION = re.compile(
    rf"\b(?P<gene>{GENE_PATTERN})\s*(?:::|-|/)\s*{GENE_PATTERN}\s+(?:gene )?(?:fusion|rearrangement)"
)


def _find_variant_spans(report: ClinicalReport, is_second_pass: bool) -> Iterator[VariantSpan]:
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


def _find_variant_in_row(line: ReportLine) -> Iterator[VariantSpan]:
    """From the cell with the gene to the last one with a change."""
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


def _find_affirmed_variants(line: ReportLine, pattern: re.Pattern[str], confidence: float) -> Iterator[VariantSpan]:
    """What is said of a gene; not what is denied."""
    for match in pattern.finditer(line.text):
        start, end = line.start + match.start(), line.start + match.end()
        if is_gene_symbol(match["gene"]) and find_omitted_context(line.page.text, start, end) is None:
            yield line.page, start, end, confidence


def _read_genes(_field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    seen_genes: set[str] = set()
    for page, start, end, confidence in _find_variant_spans(report, is_second_pass):
        for match in re.finditer(rf"(?<![\w.]){GENE_PATTERN}(?![\w.])", page.text[start:end]):
            if is_gene_symbol(match.group()) and match.group() not in seen_genes:
                seen_genes.add(match.group())
                yield LocatedClinicalValue(page, start + match.start(), start + match.end(), confidence, match.group())
                break


def _read_lab_results(
    _field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """The row of each test, from its result on; tests told in sentences where they give their range."""
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
    """A test's name as a key."""
    return re.sub(r"(?i)^(?:and|cbc|the)\s+", "", " ".join(text.split())).strip(" .,:;-")[:60]


# ------------------------------------------------------------------------------------------------- parts of a report


def _read_section(field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """The text under one of the field's headings."""
    labels = (*field.labels, *field.more_labels) if is_second_pass else field.labels
    for label in labels:
        for section in report.sections:
            if section.name == label:
                (page, start, end), *further_spans = section.spans
                if page.text[start:end].strip():
                    yield LocatedClinicalValue(
                        page,
                        start,
                        end,
                        SURE_CONFIDENCE if label in field.labels else GUESSED_CONFIDENCE,
                        continued_spans=tuple(further_spans),
                    )


def _read_whole_text(
    _field: TemplateField, report: ClinicalReport, _is_second_look: bool
) -> Iterator[LocatedClinicalValue]:
    page = next((page for page in report.pages if page.text.strip()), None)
    if page:
        yield LocatedClinicalValue(page, 0, len(page.text), SURE_CONFIDENCE)


def _read_institution(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Beside its label, then the letterhead; at another look any short line that has the words of one."""
    excluded_pattern = _compile_lexicon_pattern("institution", "never")
    for line, start, end in _find_labelled_text(field, report, False):
        if line.page.text[line.start : start].strip(" :-•\t").lower() not in field.labels and line.kind != "row":
            continue  # the word within a sentence
        words = _SENTENCE_END.split(line.page.text[start:end], maxsplit=1)[0].split("\t")[0].strip(" :,-")
        if 3 <= len(words) <= 80 and not words[0].isdigit() and not excluded_pattern.search(words):
            position = line.page.text.index(words, start)
            yield LocatedClinicalValue(line.page, position, position + len(words), SURE_CONFIDENCE)
    institution_pattern = _compile_lexicon_pattern("institution", "words")
    for line in (*(report.body_lines if is_second_pass else report.body_lines[:4]), *report.furniture_lines):
        text = re.split(r"\s[-–|]\s|\|", line.text)[0].strip()
        if (
            line.kind != "row"
            and 4 <= len(text) <= 70
            and institution_pattern.search(text)
            and not excluded_pattern.search(text)
            and not text.endswith(".")
        ):
            position = line.start + line.text.index(text)
            yield LocatedClinicalValue(line.page, position, position + len(text), LIKELY_CONFIDENCE)


def _read_dates(field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """A date beside one of the labels; in the order of the labels, as the first is the one meant."""
    labels = (*field.labels, *field.more_labels) if is_second_pass else field.labels
    ranked_readings: list[tuple[int, LocatedClinicalValue]] = []
    for line, start, end in _find_labelled_text(field, report, is_second_pass):
        candidate = _find_formatted_span(field, line.page, start, min(end, start + 40))
        if candidate and not _BIRTH_WORD.search(line.page.text, max(candidate[0] - 40, line.start), candidate[0]):
            text_before = line.page.text[max(start - 60, 0) : start].rstrip(" :=\t\n-–").lower()
            rank = next(
                (label_rank for label_rank, label in enumerate(labels) if text_before.endswith(label)), len(labels)
            )
            ranked_readings.append(
                (
                    rank,
                    LocatedClinicalValue(
                        line.page, *candidate, GUESSED_CONFIDENCE if is_second_pass else SURE_CONFIDENCE
                    ),
                )
            )
    yield from (candidate for _, candidate in sorted(ranked_readings, key=lambda pair: pair[0]))


def _drop_duplicates(readings: Iterable[LocatedClinicalValue]) -> Iterator[LocatedClinicalValue]:
    seen_keys: set[tuple[str, str, int]] = set()
    for reading in readings:
        key = (reading.item, "", 0) if reading.item else ("", reading.text, reading.page.page_num)
        if key not in seen_keys:
            seen_keys.add(key)
            yield reading


_FieldReader = Callable[[TemplateField, ClinicalReport, bool], Iterator[LocatedClinicalValue]]
_READERS_BY_NAME: Mapping[str, _FieldReader] = {
    "section": _read_section,
    "histology": _read_histology,
    "institution": _read_institution,
    "whole_text": _read_whole_text,
}
_READERS_BY_FORMAT: Mapping[str, _FieldReader] = {
    "grade": _make_wording_reader(
        _WordingPattern(_GRADE), _WordingPattern(_DIFFERENTIATION), normalise=normalise_grade
    ),
    "margin": _read_margins,
    "stage": _make_wording_reader(
        _WordingPattern(_PTNM_STAGE), _WordingPattern(_STAGE_GROUP), normalise=normalise_stage
    ),
    "measurement": _read_measurements,
    "msi": _make_wording_reader(
        _WordingPattern(_MSI_STATUS), _WordingPattern(_MSI_WORD, is_whole_clause=True), normalise=normalise_msi
    ),
    "tmb": _make_wording_reader(
        _WordingPattern(_TMB_WITH_NAME), _WordingPattern(_TMB_WITHOUT_NAME), normalise=normalise_tmb
    ),
    "marker": _read_markers,
    "variant": _read_variants,
    "gene": _read_genes,
    "lab": _read_lab_results,
    "date": _read_dates,
}
