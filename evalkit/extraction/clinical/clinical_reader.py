"""Offline reader of clinical reports: finds values by labels, tables and phrases.

The first pass reads the usual places. The second pass, for fields with problems in an earlier attempt, also tries
less usual labels, the lines next to a label, and words anywhere in the report; more of its values are wrong. Every
value is a place on a page; whether the value is true is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice, pairwise
from statistics import median

from evalkit.documents.bundle import Page
from evalkit.extraction.clinical.finding_values import (
    find_grade_spans,
    find_margin_spans,
    make_passage_reader,
    read_all_sizes,
    read_lab_results,
    read_markers,
    read_stages,
    read_tumor_size,
)
from evalkit.extraction.clinical.report_statements import (
    GUESSED_CONFIDENCE,
    LIKELY_CONFIDENCE,
    SURE_CONFIDENCE,
    FieldReader,
    LocatedClinicalValue,
    StatementRole,
    find_formatted_span,
    find_labelled_text,
    find_statement_role,
    read_labelled_values,
)
from evalkit.extraction.clinical.report_structure import ClinicalReport, ReportLine, load_clinical_lexicon
from evalkit.extraction.clinical.variants import is_own_finding, read_genes, read_variants
from evalkit.extraction.field_template import TemplateField
from evalkit.extraction.patterns import get_pattern
from evalkit.extraction.printed_rows import PrintedCell, PrintedPage
from evalkit.extraction.value_grounding import has_day_first, normalise_on_page
from evalkit.grounding.critical_terms import DifferenceKind
from evalkit.grounding.omitted_context import find_omitted_context

_MAX_MENTIONS_PER_LINE = 3
#: Printed lines of a letterhead; its large letters are this many times as high as the text's.
_LETTERHEAD_LINES, _LARGE_LETTERS = 8, 1.15
#: Values of one field beyond this number are ignored, so that a hostile file cannot cost unlimited time.
MAX_VALUES_PER_FIELD = 200


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
    """List all values found by the first pass, with repetitions and without limit."""
    # Cached, because every attempt and every check of a value for contradictions needs them.
    return report.remember(field, lambda: _rank_by_role(_choose_reader(field)(field, report, False), field, report))


def _rank_by_role(
    readings: Iterable[LocatedClinicalValue], field: TemplateField, report: ClinicalReport
) -> tuple[LocatedClinicalValue, ...]:
    """Sort the readings of this report's field by role, the latest correction first.

    Others are dropped.
    """
    if not (field.format in _FORMATS_WITH_ROLES or field.reader == "histology") or (
        field.format == "measurement" and field.many
    ):
        return tuple(readings)
    placed_readings = (
        replace(reading, role=find_statement_role(report, reading.page, reading.start, reading.end))
        for reading in islice(readings, MAX_VALUES_PER_FIELD)
    )
    dropped_roles = {StatementRole.ASIDE, *([] if field.format == "measurement" else [StatementRole.GROSS])}
    stated_readings = [reading for reading in placed_readings if reading.role not in dropped_roles]
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
    if field.reader == "section":
        section_names = {*field.labels, *field.more_labels}
        return next((line for line in report.body_lines if line.section in section_names), None)
    for line in report.finding_lines:
        text = f"{line.text}\n"
        if (mention := field.mentions.search(text)) and not get_pattern("untold").search(
            text,
            min(mention.start(), text.find("neither ", max(mention.start() - 80, 0)) % len(text)),
            min(mention.end() + 60, len(text)),
        ):
            return line
    return None


def find_values_near_mentions(field: TemplateField, report: ClinicalReport) -> Iterator[LocatedClinicalValue]:
    """Find values in the field's format on the lines that mention it, and on the next.

    This third pass searches the whole report, history and method included, so that a person gets a suggestion. It skips
    fields without a format of their own, and repeated fields.
    """
    if field.mentions is None or field.many or field.format in ("text", "pattern"):
        return
    mentions = (
        (line, next_line, mention)
        for line, next_line in pairwise((*report.body_lines, None))
        if line
        for mention in islice(field.mentions.finditer(line.text), _MAX_MENTIONS_PER_LINE)
    )
    for line, next_line, mention in islice(mentions, MAX_VALUES_PER_FIELD):
        starts = [(line, line.start + mention.start()), (line, line.start + mention.end())]
        for near_line, start in (*starts, *([(next_line, next_line.start)] if next_line else [])):
            if span := find_formatted_span(field, near_line.page, start, near_line.end):
                yield LocatedClinicalValue(near_line.page, *span, GUESSED_CONFIDENCE)


def _read_histology(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Read tumor names that are not negated: at a label, then in the diagnosis.

    The second pass reads all findings, and a benign diagnosis if there is no tumor.
    """
    for line, start, end in find_labelled_text(field, report, is_second_pass):
        for reading in _sort_by_word_count(_find_affirmed_tumors(line, start, end, SURE_CONFIDENCE)):
            yield _take_whole_name(reading, start)
    lines = sorted(report.finding_lines, key=lambda line: "diagnos" not in line.section)
    secondary_terms = tuple(load_clinical_lexicon()["histology"]["beside"])
    confidence = GUESSED_CONFIDENCE if is_second_pass else LIKELY_CONFIDENCE
    line_readings = (
        [
            _take_whole_name(reading, line.start)
            for reading in _sort_by_word_count(_find_affirmed_tumors(line, line.start, line.end, confidence))
        ]
        for line in lines
    )
    readings = list(islice(chain.from_iterable(line_readings), MAX_VALUES_PER_FIELD))
    names = {reading.text.lower() for reading in readings}
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
            if match := get_pattern("tumor_benign").search(line.text):
                yield LocatedClinicalValue(
                    line.page, line.start + match.start(), line.start + match.end(), GUESSED_CONFIDENCE
                )


def _take_whole_name(reading: LocatedClinicalValue, start: int) -> LocatedClinicalValue:
    """Add the words before a tumor with which a clause or the text begins.

    The text begins at ``start``. Nothing is added to a clinic's name.
    """
    text = reading.page.text
    clause = get_pattern("clause_start").match(text, start, reading.start)
    name = get_pattern("name_before_tumor").fullmatch(text, clause.end() if clause else start, reading.start)
    is_of_clinic = re.match(r" [A-Z][a-z]", text[reading.end : reading.end + 3])
    return replace(reading, start=name.start("name")) if name and not is_of_clinic else reading


def _find_affirmed_tumors(line: ReportLine, start: int, end: int, confidence: float) -> Iterator[LocatedClinicalValue]:
    for match in _compile_tumor_pattern().finditer(line.page.text, start, end):
        if get_pattern("tumor_compared").search(line.page.text, line.start, match.start()):
            continue
        context = find_omitted_context(line.page.text, *match.span())
        # A diagnosis in somebody's opinion may contradict the report's.
        if context is None or context.kind is DifferenceKind.MODAL:
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
    return re.compile(
        rf"(?i)(?<![\w-])(?!type\b)(?:(?:{qualifiers})[ \n,-]+){{0,6}}(?:{nouns}){words['behind']}(?![\w-])"
    )


def _make_biomarker_reader(pattern_name: str, second_pattern_name: str) -> FieldReader:
    """Build a reader of a biomarker at its labels, then by a pattern.

    The value is the pattern's group ``size``, or the match. The second pass uses the second pattern, and sentences about
    medicine in general.
    """

    def read_biomarker(
        field: TemplateField, report: ClinicalReport, is_second_pass: bool
    ) -> Iterator[LocatedClinicalValue]:
        yield from read_labelled_values(field, report, is_second_pass)
        confidence = GUESSED_CONFIDENCE if is_second_pass else LIKELY_CONFIDENCE
        pattern = get_pattern(second_pattern_name if is_second_pass else pattern_name)
        for line in report.finding_lines:
            for match in pattern.finditer(line.page.text, line.start, line.end):
                span = match.span("size" if "size" in match.re.groupindex else 0)
                if field.normalise(line.page.text[slice(*span)]) is not None and is_own_finding(
                    line.page, *span, include_general=is_second_pass
                ):
                    yield LocatedClinicalValue(line.page, *span, confidence)

    return read_biomarker


_read_msi_status = _make_biomarker_reader("msi_status", "msi_clause")


def _read_msi(field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """Read the microsatellite status.

    A defect of mismatch repair counts only if it contradicts one.
    """
    readings = list(_read_msi_status(field, report, is_second_pass))
    yield from readings
    for line in report.finding_lines if readings else ():
        for match in get_pattern("repair_defect").finditer(line.page.text, line.start, line.end):
            if is_own_finding(line.page, *match.span()):
                yield LocatedClinicalValue(line.page, *match.span(), LIKELY_CONFIDENCE)


def _read_section(field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """Read the sections of the field's first label that the report has.

    The second pass reads those of all labels.
    """
    for label in (*field.labels, *field.more_labels) if is_second_pass else field.labels:
        sections = [section for section in report.sections if section.name == label]
        readings = [
            LocatedClinicalValue(
                page,
                start,
                end,
                SURE_CONFIDENCE if label in field.labels else GUESSED_CONFIDENCE,
                continued_spans=tuple(further_spans),
            )
            for (page, start, end), *further_spans in (section.spans for section in sections)
            if page.text[start:end].strip()
        ]
        yield from readings
        if readings and not is_second_pass:
            return


def _read_whole_text(
    _field: TemplateField, report: ClinicalReport, _is_second_look: bool
) -> Iterator[LocatedClinicalValue]:
    page = next((page for page in report.pages if page.text.strip()), None)
    if page:
        yield LocatedClinicalValue(page, 0, len(page.text), SURE_CONFIDENCE)


def _read_institution(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Read the institution that wrote the report.

    The performing laboratory comes first, then the letterhead, its largest letters first, then other labels, which may
    name the sender. The second pass searches all lines.
    """
    yield from _read_labelled_institutions(field.labels, field, report)
    pages = {page.page_num: PrintedPage(page) for page in report.pages}
    yield from _find_largest_name(pages[report.pages[0].page_num])
    for line in (*(report.body_lines if is_second_pass else report.body_lines[:5]), *report.furniture_lines):
        if line.group not in ("history", "method"):
            for row in pages[line.page.page_num].split_into_rows(line.start, line.end):
                for cell in row:
                    yield from _find_institution_names(line.page, cell)
    yield from _read_labelled_institutions(field.more_labels, field, report)


def _read_labelled_institutions(
    labels: Sequence[str], field: TemplateField, report: ClinicalReport
) -> Iterator[LocatedClinicalValue]:
    excluded_pattern = get_pattern("institution_never")
    for line, start, end in find_labelled_text(field.model_copy(update={"labels": tuple(labels)}), report, False):
        label = re.split(r"\s{3,}", line.page.text[line.start : start].strip(" :-•\t"))[-1]
        if label.lower() not in labels and (line.kind != "row" or line.column_headers):
            continue  # not a label, but the same word within a sentence
        words = get_pattern("sentence_end").split(line.page.text[start:end], maxsplit=1)[0]
        words = re.split(r"\t|,\s*(?=\d)", words)[0].strip(" :,-")
        if 3 <= len(words) <= 80 and not words[0].isdigit() and not excluded_pattern.search(words):
            position = line.page.text.index(words, start)
            yield LocatedClinicalValue(line.page, position, position + len(words), SURE_CONFIDENCE)


def _find_largest_name(page: PrintedPage) -> Iterator[LocatedClinicalValue]:
    """Find the line of a letterhead that is printed in larger letters than the text."""
    rows = page.split_into_rows(0, len(page.page.text))[:_LETTERHEAD_LINES]
    heights = {word[0]: word[5] - word[3] for word in page.page.words}
    largest = max(rows, key=lambda row: heights.get(row[0].start, 0), default=())
    if largest and heights[largest[0].start] > _LARGE_LETTERS * median(heights.values()):
        name = largest[0]
        if not get_pattern("institution_never").search(name.text) and get_pattern("proper_name").fullmatch(name.text):
            yield LocatedClinicalValue(page.page, name.start, name.end, LIKELY_CONFIDENCE)


def _find_institution_names(page: Page, cell: PrintedCell) -> Iterator[LocatedClinicalValue]:
    """Find names of institutions in a part of a letterhead, without title and address."""
    for match in re.finditer(r"[^\s|](?:(?!\s[-–|*•·]\s|\s{3}|[|]).)*", cell.text):
        name = match.group().strip()
        if (
            4 <= len(name) <= 70
            and (not name.endswith(".") or name.lower().endswith(("inc.", "ltd.", "p.c.")))
            and get_pattern("institution_words").search(name)
            and not get_pattern("institution_never").search(name)
        ):
            position = cell.start + match.start()
            yield LocatedClinicalValue(page, position, position + len(name), LIKELY_CONFIDENCE)


def _read_dates(field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """Read dates with a label of the field, in the order of the labels.

    A date of the letterhead comes last. A label is the whole text between the previous column or date and this one, or
    it begins that text: "Reported by". A date whose day and month cannot be told apart is left out if other pages of
    the report have the day first, and so are dates with labels that come after its own.
    """
    labels = (*field.labels, *field.more_labels) if is_second_pass else field.labels
    is_day_first = any(get_pattern("day_first_number").search(page.text) for page in report.pages)
    ranked_readings: list[tuple[tuple[int, int], LocatedClinicalValue]] = []
    last_rank = len(labels)
    letterhead = [*report.body_lines[:8]]
    for line in (*report.body_lines, *report.furniture_lines):
        label_start = line.start
        for match in get_pattern("printed_date").finditer(line.page.text, line.start, line.end):
            label = _find_date_label(line, label_start, match.start())
            label_start = match.end()
            if line.group == "history" and label not in labels:
                continue
            rank = next((rank for rank, name in enumerate(labels) if _is_date_label(label, name)), None)
            if rank is None and get_pattern("report_date_label").match(label):
                rank = labels.index("date")
            if rank is None and line in letterhead and not get_pattern("other_date_word").search(f"{label} "):
                rank = len(labels)
            is_unclear = (
                is_day_first
                and get_pattern("either_order").fullmatch(match.group())
                and not has_day_first(line.page.text)
            )
            if rank is not None and is_unclear:
                last_rank = min(last_rank, rank)
            elif rank is not None and (date := normalise_on_page(field, match.group(), line.page)):
                confidence = GUESSED_CONFIDENCE if is_second_pass else SURE_CONFIDENCE
                ranked_readings.append(
                    (
                        # Without a label, the latest date of the letterhead is the report's.
                        (rank, -int(date.replace("-", "")) * (rank == len(labels))),
                        LocatedClinicalValue(line.page, *match.span(), confidence),
                    )
                )
    yield from (
        reading for order, reading in sorted(ranked_readings, key=lambda pair: pair[0]) if order[0] <= last_rank
    )


def _find_date_label(line: ReportLine, start: int, end: int) -> str:
    """Return the text before a date in small letters, or its column's header."""
    header = next((cell.column_header for cell in line.cells if cell.start <= end < cell.end), "")
    text = header or get_pattern("label_break").split(line.page.text[max(start, end - 80) : end].rstrip())[-1]
    text = re.sub(r"^\W*\d\d?:\d\d\w*\W*", "", text)
    return text.strip(" :.,-–()").lower().replace("/time", "").replace(" and time", "")


def _is_date_label(text: str, label: str) -> bool:
    """Return True if a text is the label, alone or with certain words around it.

    Words may follow it, or another label's value may precede it.

    >>> [_is_date_label(text, "reported") for text in ("reported", "reported by a. venkat, md on", "previously reported")]
    [True, True, False]
    >>> [_is_date_label(text, "date") for text in ("name: lee, jo date", "name: lee, jo collection date", "date seen")]
    [True, False, False]
    """
    if text == label:
        return True
    if text.startswith(f"{label} ") and (" " in label or label.endswith("ed")):
        return not get_pattern("replaced_date").search(text)
    text_before = re.split(r"[:.]\s", re.sub(r"\b[a-z]{1,3}\.", "", text.removesuffix(label)))[-1]
    return (
        text.endswith(f" {label}")
        and (":" in text or " " in label)
        and not get_pattern("other_date_word").search(text_before)
    )


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
    "measurement": lambda field, *rest: (read_all_sizes if field.many else read_tumor_size)(field, *rest),
    "msi": _read_msi,
    "tmb": _make_biomarker_reader("tmb_with_name", "tmb_without_name"),
    "marker": read_markers,
    "variant": read_variants,
    "gene": read_genes,
    "lab": read_lab_results,
    "date": _read_dates,
}
