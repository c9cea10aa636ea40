"""Offline reader of clinical reports: finds values by labels, tables and wordings.

The first pass reads the usual places. The second pass, for fields with problems in an earlier attempt, also tries
less usual labels, the lines next to a label, and words anywhere in the report; more of its values are wrong. Every
value is a place on a page; whether the value is true is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import NamedTuple

from evalkit.extraction.clinical.labelled_values import (
    GUESSED_CONFIDENCE,
    LIKELY_CONFIDENCE,
    SENTENCE_END,
    SPECIMEN_BEFORE,
    SURE_CONFIDENCE,
    FieldReader,
    LocatedClinicalValue,
    StatementRole,
    compile_lexicon_pattern,
    find_formatted_span,
    find_labelled_text,
    read_labelled_values,
)
from evalkit.extraction.clinical.named_values import (
    read_all_sizes,
    read_genes,
    read_lab_results,
    read_markers,
    read_variants,
)
from evalkit.extraction.clinical.pathology_values import (
    find_grade_spans,
    find_margin_spans,
    find_tumor_size_spans,
    make_passage_reader,
    read_stages,
)
from evalkit.extraction.clinical.report_passages import find_statement_role
from evalkit.extraction.clinical.report_structure import ClinicalReport, ReportLine, load_clinical_lexicon
from evalkit.extraction.clinical_formats import (
    normalise_msi,
    normalise_tmb,
)
from evalkit.extraction.field_template import TemplateField
from evalkit.grounding.critical_terms import DifferenceKind
from evalkit.grounding.omitted_context import find_omitted_context

#: Values of one field beyond this number are ignored, so that a hostile file cannot cost unlimited time.
MAX_VALUES_PER_FIELD = 200

_CLAUSE_END = re.compile(r"[.;](?=\s|$)|\n|\t")
_MSI_STATUS = re.compile(r"(?i)\bMSI-?H(?:igh)?\b|\bMSI-?L(?:ow)?\b|(?-i:\bMSS\b)|\bmicrosatellite[- ]stable\b")
_MSI_WORD = re.compile(r"(?i)\bmicrosatellite\b|(?-i:\bMSI\b)")
_PER_MEGABASE = r"(?:\s*(?:somatic\s+)?(?:mut(?:ation)?s?|variants)\.?)?\s*(?:/|per)\s*(?:mb|megabase)"
_TMB_WITH_NAME = re.compile(
    rf"(?i)\b(?:TMB|mutation(?:al)? (?:burden|load))\b[^.;\n\t\d]{{0,30}}(?P<size>\d+(?:\.\d+)?{_PER_MEGABASE})"
)
_TMB_WITHOUT_NAME = re.compile(rf"(?i)(?P<size>(?<![\d.])\d+(?:\.\d+)?{_PER_MEGABASE})")
_NAME_BEFORE_TUMOR = re.compile(r"[\s:.\t-]*(?P<name>(?:[A-Za-z][\w-]*[ ,]+){0,5})")
_BIRTH_WORD = re.compile(r"(?i)\b(?:birth|dob|born)\b")


def find_field_values(
    field: TemplateField, report: ClinicalReport, *, include_second_pass: bool = False
) -> list[LocatedClinicalValue]:
    """Find a field's values in the report, the most likely first.

    ``include_second_pass``: also add values of the second pass, which are less reliable.
    """
    readings = list(islice(_drop_duplicates(list_first_pass_values(field, report)), MAX_VALUES_PER_FIELD))
    if include_second_pass:
        second_readings = _rank_by_role(_choose_reader(field)(field, report, True), field, report)
        further_readings = islice(_drop_duplicates(second_readings), MAX_VALUES_PER_FIELD)
        readings += [reading for reading in further_readings if not _is_known_reading(reading, readings)]
    if field.format in _NUMBERED_FORMATS and field.many:
        readings = [replace(reading, item=str(number)) for number, reading in enumerate(readings, 1)]
    return readings


def list_first_pass_values(field: TemplateField, report: ClinicalReport) -> tuple[LocatedClinicalValue, ...]:
    """List all values that the first pass finds, with repetitions and without limit."""
    # Cached, because every attempt and every check of a value for contradictions needs them.
    readings: tuple[LocatedClinicalValue, ...] | None = report.reading_cache.get(field)
    if readings is None:
        readings = report.reading_cache[field] = _rank_by_role(
            _choose_reader(field)(field, report, False), field, report
        )
    return readings


def _rank_by_role(
    readings: Iterable[LocatedClinicalValue], field: TemplateField, report: ClinicalReport
) -> tuple[LocatedClinicalValue, ...]:
    """Sort readings by role, the latest correction first; drop those that are not about this report's field."""
    if not (field.format in _FORMATS_WITH_ROLES or field.reader == "histology") or (
        field.format == "measurement" and field.many
    ):
        return tuple(readings)
    placed_readings = (
        replace(reading, role=find_statement_role(report, reading.page, reading.start, reading.end))
        for reading in readings
    )
    stated_readings = [reading for reading in placed_readings if reading.role is not StatementRole.ASIDE]
    roles = list(StatementRole)
    stated_readings.sort(
        key=lambda reading: (
            roles.index(reading.role),
            (-reading.page.page_num, -reading.start) if reading.role in _LATE_ROLES else (0, 0),
            (field.normalise(reading.text) or "").startswith(_LESS_CERTAIN_STARTS.get(field.format, ())),
        )
    )
    return tuple(stated_readings)


#: Formats of values of which a report may state several, and say which counts.
_FORMATS_WITH_ROLES = ("grade", "margin", "stage", "marker", "msi", "tmb", "measurement")
#: By format: starts of values that other values decide: a reflex test the equivocal stain, a status the distance.
_LESS_CERTAIN_STARTS: Mapping[str, tuple[str, ...]] = {"marker": ("equivocal",), "margin": tuple("0123456789")}
_LATE_ROLES = (StatementRole.CORRECTED, StatementRole.ADDED)


def _choose_reader(field: TemplateField) -> FieldReader:
    return _READERS_BY_NAME.get(field.reader) or _READERS_BY_FORMAT.get(field.format, read_labelled_values)


def _is_known_reading(reading: LocatedClinicalValue, known_readings: Iterable[LocatedClinicalValue]) -> bool:
    """Return True if a known reading has the same name or overlaps this reading."""
    return any(
        (reading.item and not reading.item.isdigit() and reading.item == other.item)
        or (reading.page is other.page and reading.start < other.end and other.start < reading.end)
        for other in known_readings
    )


#: Formats whose values have no names: the items of a multi-value field are numbered.
_NUMBERED_FORMATS = ("measurement", "variant")


def find_line_mentioning_field(field: TemplateField, report: ClinicalReport) -> ReportLine | None:
    """Return the first line that mentions the field without "not reported" or similar.

    For a field that is a section, the first line of that section. None if there is no such line, or the field declares
    no ``mentions``.
    """
    if field.mentions is None:
        return None
    pattern, unreported_pattern = re.compile(field.mentions), compile_lexicon_pattern("untold", "words")
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


class _WordingPattern(NamedTuple):
    """A pattern of a finding; the value is its group ``size``, or else the match.

    ``is_whole_clause``: the value is the clause around the match.
    """

    pattern: re.Pattern[str]
    is_whole_clause: bool = False

    def find_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Find values in a text: start and end of each."""
        for match in self.pattern.finditer(text):
            start, end = match.span("size") if "size" in self.pattern.groupindex else match.span()
            if "size" in self.pattern.groupindex and SPECIMEN_BEFORE.search(text, max(start - 50, 0), start):
                continue
            yield _find_clause_bounds(text, start, end) if self.is_whole_clause else (start, end)


def _find_clause_bounds(text: str, start: int, end: int) -> tuple[int, int]:
    """Return start and end of the clause or table cell around ``start..end``."""
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
) -> FieldReader:
    """Build a reader that finds values at labels, then by patterns.

    The first pass uses only ``first_wording``. ``normalise``: a text counts if this does not return None.
    """

    def read_wording(
        field: TemplateField, report: ClinicalReport, is_second_pass: bool
    ) -> Iterator[LocatedClinicalValue]:
        yield from read_labelled_values(field, report, is_second_pass)
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
    """Read tumor names that are not negated: at a label, then in the diagnosis.

    The second pass reads all findings, and a benign diagnosis if there is no tumor.
    """
    for line, start, end in find_labelled_text(field, report, is_second_pass):
        for reading in _sort_by_word_count(_find_affirmed_tumors(line, start, end, SURE_CONFIDENCE)):
            # At its label, the name is taken whole.
            is_name = _NAME_BEFORE_TUMOR.fullmatch(line.page.text, start, reading.start)
            yield replace(reading, start=is_name.start("name")) if is_name else reading
    lines = sorted(report.finding_lines, key=lambda line: "diagnos" not in line.section)
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
    names = {reading.text.lower() for reading in islice(readings, MAX_VALUES_PER_FIELD)}
    names = {name for name in names if not name.startswith("metastatic")}
    # "Carcinoma" alone is a short form of the report's longer name.
    readings = [
        reading
        for reading in readings
        if not any(reading.text.lower() in name and reading.text.lower() != name for name in names)
    ]
    yield from sorted(readings, key=lambda reading: any(word in reading.text.lower() for word in secondary_terms))
    if is_second_pass and not readings:
        for line in report.finding_lines:
            if match := compile_lexicon_pattern("histology", "benign").search(line.text):
                yield LocatedClinicalValue(
                    line.page, line.start + match.start(), line.start + match.end(), GUESSED_CONFIDENCE
                )


def _find_affirmed_tumors(line: ReportLine, start: int, end: int, confidence: float) -> Iterator[LocatedClinicalValue]:
    for match in _compile_tumor_pattern().finditer(line.page.text, start, end):
        if compile_lexicon_pattern("histology", "compared").search(line.page.text, line.start, match.start()):
            continue
        context = find_omitted_context(line.page.text, *match.span())
        # A diagnosis in somebody's opinion may contradict the report's.
        is_stated = context is None or context.kind is DifferenceKind.MODAL
        if is_stated:
            yield LocatedClinicalValue(line.page, *match.span(), confidence)


def _sort_by_word_count(readings: Iterable[LocatedClinicalValue]) -> list[LocatedClinicalValue]:
    """Sort by word count, longest first: "carcinoma" may be short for a longer name."""
    return sorted(readings, key=lambda reading: -len(reading.text.split()))


@cache
def _compile_tumor_pattern() -> re.Pattern[str]:
    words = load_clinical_lexicon()["histology"]
    qualifiers, nouns = (
        "|".join(map(re.escape, sorted(words[key], key=len, reverse=True))) for key in ("before", "nouns")
    )
    return re.compile(rf"(?i)(?<![\w-])(?:(?:{qualifiers})[ \n,-]+){{0,6}}(?:{nouns}){words['behind']}(?![\w-])")


def _read_measurements(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    reader = read_all_sizes if field.many else make_passage_reader(find_tumor_size_spans)
    yield from reader(field, report, is_second_pass)


def _read_section(field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    for label in (*field.labels, *field.more_labels) if is_second_pass else field.labels:
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
    """Read the institution's name at a label, then in the letterhead.

    The second pass searches all lines.
    """
    excluded_pattern = compile_lexicon_pattern("institution", "never")
    for line, start, end in find_labelled_text(field, report, False):
        if line.page.text[line.start : start].strip(" :-•\t").lower() not in field.labels and line.kind != "row":
            continue  # not a label, but the same word within a sentence
        words = SENTENCE_END.split(line.page.text[start:end], maxsplit=1)[0].split("\t")[0].strip(" :,-")
        if 3 <= len(words) <= 80 and not words[0].isdigit() and not excluded_pattern.search(words):
            position = line.page.text.index(words, start)
            yield LocatedClinicalValue(line.page, position, position + len(words), SURE_CONFIDENCE)
    institution_pattern = compile_lexicon_pattern("institution", "words")
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
    """Read dates at labels, sorted by the order of the field's labels."""
    labels = (*field.labels, *field.more_labels) if is_second_pass else field.labels
    ranked_readings: list[tuple[int, LocatedClinicalValue]] = []
    for line, start, end in find_labelled_text(field, report, is_second_pass):
        candidate = find_formatted_span(field, line.page, start, min(end, start + 40))
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


_READERS_BY_NAME: Mapping[str, FieldReader] = {
    "section": _read_section,
    "histology": _read_histology,
    "institution": _read_institution,
    "whole_text": _read_whole_text,
}
_READERS_BY_FORMAT: Mapping[str, FieldReader] = {
    "grade": make_passage_reader(find_grade_spans),
    "margin": make_passage_reader(find_margin_spans),
    "stage": read_stages,
    "measurement": _read_measurements,
    "msi": _make_wording_reader(
        _WordingPattern(_MSI_STATUS), _WordingPattern(_MSI_WORD, is_whole_clause=True), normalise=normalise_msi
    ),
    "tmb": _make_wording_reader(
        _WordingPattern(_TMB_WITH_NAME), _WordingPattern(_TMB_WITHOUT_NAME), normalise=normalise_tmb
    ),
    "marker": read_markers,
    "variant": read_variants,
    "gene": read_genes,
    "lab": read_lab_results,
    "date": _read_dates,
}
