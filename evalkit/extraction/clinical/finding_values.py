"""Offline readers of margins, grades, stages, sizes, names, stains and tests.

A size of an earlier examination, a distance, a slice thickness or a limit of a guideline is no size of a lesion.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise

from evalkit.extraction.clinical.laboratory_tables import clean_test_name, read_laboratory_tables
from evalkit.extraction.clinical.report_statements import (
    GUESSED_CONFIDENCE,
    LIKELY_CONFIDENCE,
    SURE_CONFIDENCE,
    FieldReader,
    LocatedClinicalValue,
    ReportPassage,
    extract_sentence_parts,
    get_passages,
    read_labelled_values,
)
from evalkit.extraction.clinical.report_structure import ClinicalReport, PageTextSpan, ReportLine, load_clinical_lexicon
from evalkit.extraction.clinical_formats import normalise_lab_result, normalise_margin_status, normalise_marker_result
from evalkit.extraction.field_template import TemplateField
from evalkit.extraction.formats import normalise_value
from evalkit.extraction.patterns import get_pattern
from evalkit.grounding.critical_terms import DifferenceKind
from evalkit.grounding.omitted_context import find_omitted_context

#: Function that yields start and end of a field's values in a passage's text.
PassageReader = Callable[[ReportPassage], Iterator[tuple[int, int]]]


def make_passage_reader(find_spans: PassageReader) -> FieldReader:
    """Build a reader of values at labels, then anywhere in the report's passages."""

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
    """Find clauses that say if a margin is involved, not just give a distance."""
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
    """Read pathologic categories, then labelled stages and stage groups.

    Categories may be on several lines.
    """
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
    yield from make_passage_reader(
        lambda passage: (match.span() for match in get_pattern("stated_stage_group").finditer(passage.text))
    )(field, report, is_second_pass)


def _find_further_categories(passages: Sequence[ReportPassage]) -> tuple[PageTextSpan, ...]:
    """Find the first N and M that begin a line, on the first passage's page."""
    spans: dict[str, PageTextSpan] = {}
    for passage in passages:
        match = get_pattern("further_category").search(passage.text, 0, 40)
        if match and passage.page is passages[0].page:
            span = (passage.page, passage.start + match.start(), passage.start + match.end())
            spans.setdefault("M" if "M" in match.group() else "N", span)
    return tuple(spans[category] for category in "NM" if category in spans)


def read_tumor_size(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Read the sizes of the tumor itself; in unusual phrases, only the largest."""

    def make_size_reader(pattern_name: str) -> FieldReader:
        return make_passage_reader(
            lambda passage: (
                match.span(match.lastgroup or 0) for match in get_pattern(pattern_name).finditer(passage.text)
            )
        )

    readings = list(make_size_reader("tumor_size")(field, report, is_second_pass))
    loose_readings = [] if readings else make_size_reader("loose_tumor_size")(field, report, is_second_pass)
    yield from readings or sorted(loose_readings, key=lambda reading: -_measure_largest_dimension(reading.text))[:1]


def read_all_sizes(
    _field: TemplateField, report: ClinicalReport, _is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Read the current size of each lesion.

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


def read_markers(_field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """Read the result of each known stain, in its table row or after its name.

    The second pass also reads history and method sections, and results without a colon or similar sign.
    """
    for line in report.body_lines if is_second_pass else report.finding_lines:
        is_stain_section = get_pattern("stain_section").match(line.section)
        if not (is_stain_section or line.kind == "row") and _load_first_marker_words().isdisjoint(
            re.findall(r"[a-z0-9]+", line.text.lower())
        ):
            continue
        if line.kind == "row" and (row_readings := list(_read_marker_row(line))):
            yield from row_readings
            continue
        name_matches = [
            (match, name) for name, pattern in _compile_marker_patterns() for match in pattern.finditer(line.text)
        ]
        name_matches.sort(key=lambda pair: (pair[0].start(), -pair[0].end()))
        leading_results = _find_leading_results(line, [match for match, _ in name_matches])
        names_without_result: list[str] = []
        for number, (match, name) in enumerate(name_matches):
            if number and match.start() < name_matches[number - 1][0].end():
                continue
            # A result before the next stain may be the first word of a list.
            result_end = next(
                (
                    lead
                    if (lead := leading_results.get(other.start(), (0,))[0] - line.start) >= match.end()
                    else other.start()
                    for other, _ in name_matches[number + 1 :]
                    if other.start() >= match.end()
                ),
                len(line.text),
            )
            names = [*names_without_result, name]
            # "MLH1, PMS2 and MSH2 retained": one result of several stains.
            is_listed = get_pattern("list_separator").fullmatch(line.text, match.end(), result_end) is not None
            leading_result = leading_results.get(match.start())
            names_without_result = names if is_listed and not leading_result else []
            span = None if is_listed else _find_marker_result(line, match.end(), result_end, is_second_pass)
            confidence = GUESSED_CONFIDENCE if is_second_pass else LIKELY_CONFIDENCE
            if leading_result:
                share = ((line.page, *span),) if span else ()
                yield LocatedClinicalValue(line.page, *leading_result, confidence, name, share)
            elif span:
                yield from (LocatedClinicalValue(line.page, *span, confidence, name) for name in names)
        if name_matches or is_stain_section:
            yield from _read_unknown_stains(line, [match for match, _ in name_matches])
        for match in get_pattern("triple_negative").finditer(line.text):
            span = (line.start + match.start(), line.start + match.end())
            yield from (
                LocatedClinicalValue(line.page, *span, LIKELY_CONFIDENCE, name) for name in ("ER", "PR", "HER2")
            )


def _read_unknown_stains(line: ReportLine, known: Sequence[re.Match[str]]) -> Iterator[LocatedClinicalValue]:
    """Read stains that the lexicon lacks: behind a result, or as a line's label."""
    readings = [
        (result, name["name"], result.start("names") + part.start() + name.start("name"))
        for result in get_pattern("stains_of_result").finditer(line.text)
        for part in re.finditer(r"(?:(?!\sand\s)[^,&])+", result["names"])
        if (name := get_pattern("listed_stain").fullmatch(part.group()))
    ]
    if not known:
        labels = get_pattern("stain_line").finditer(line.text)
        readings += [(label, label["name"], label.start("name")) for label in labels]
    for result, text, start in readings:
        if not any(stain.start() < start + len(text) and start < stain.end() for stain in known):
            yield LocatedClinicalValue(
                line.page,
                line.start + result.start("result"),
                line.start + result.end("result"),
                LIKELY_CONFIDENCE,
                text,
            )


def _find_leading_results(line: ReportLine, stains: Sequence[re.Match[str]]) -> dict[int, tuple[int, int]]:
    """Find the result before a list of stains, by each stain's start in the line."""
    spans: dict[int, tuple[int, int]] = {}
    result: re.Match[str] | None = None
    for end, stain in zip([0, *(stain.end() for stain in stains)], stains, strict=False):
        if not get_pattern("listed_stain_end").fullmatch(line.text, end, stain.start()):
            result = get_pattern("result_before_list").search(line.text, end, stain.start())
        if result:
            spans[stain.start()] = (line.start + result.start("result"), line.start + result.end("result"))
    return spans


def _read_marker_row(line: ReportLine) -> Iterator[LocatedClinicalValue]:
    name_cell = next((cell for cell in line.cells if cell.text), None)
    if name_cell is None:
        return
    name, name_end = next(
        (
            (name, m.end())
            for name, pattern in _compile_marker_patterns()
            if (m := pattern.match(name_cell.text)) and len(name_cell.text) - m.end() < 14
        ),
        (name_cell.text, len(name_cell.text))
        if get_pattern("stain_section").search(f"{line.section} {name_cell.column_header.lower()}")
        and re.fullmatch(r"[A-Za-z][\w ./-]{1,24}", name_cell.text)
        else ("", 0),
    )
    result_spans = [
        (cell.start, cell.end)
        for cell in line.cells
        if cell.start > name_cell.start and cell.text and normalise_marker_result(cell.text)
    ]
    # The result may begin in the cell of the name: "ER positive," beside "98%".
    words_after_name = name_cell.text[name_end:].lstrip(" :,")
    if normalise_marker_result(words_after_name):
        result_spans.insert(0, (name_cell.start + len(name_cell.text) - len(words_after_name), name_cell.end))
    if name and result_spans:
        yield LocatedClinicalValue(line.page, result_spans[0][0], result_spans[-1][1], SURE_CONFIDENCE, name)


def _find_marker_result(line: ReportLine, start: int, end: int, is_second_pass: bool) -> tuple[int, int] | None:
    """Find the result in the clause after a stain's name; None if there is none.

    ``start`` and ``end``: the text between this stain's name and the next, within the line.
    """
    text = get_pattern("leader").sub(lambda dots: ":".ljust(len(dots.group())), line.text[start:end])
    if not is_second_pass and not get_pattern("result_start").match(text):
        return None
    clause_end = get_pattern("sentence_end").search(text)
    clause = text[: clause_end.start()] if clause_end else text
    if get_pattern("untold").match(re.sub(r"^\W*(?:is|was|were|are)\s+", "", clause)):
        return None
    is_sign = re.fullmatch(r"\s*[-–]+[\s,;.]*", clause) and "+" in line.text
    result_text = clause.strip(" :=,;.\t" if is_sign else " :=,-\t")
    result_text = re.sub(r"[\s,(]+(?:and|by|with)?[\s(]*$", "", result_text)
    if not result_text or normalise_marker_result(result_text) is None or len(result_text) > 120:
        return None
    position = start + text.index(result_text)
    return line.start + position, line.start + position + len(result_text)


@cache
def _load_first_marker_words() -> frozenset[str]:
    """Collect the first words of stains' names, to skip lines without any."""
    names = [name.lower() for row in load_clinical_lexicon()["marker"] for name in row["words"]]
    return frozenset(re.split(r"[^a-z0-9]", name)[0] for name in names) | {"triple"}


@cache
def _compile_marker_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    def compile_names(words: Iterable[str]) -> re.Pattern[str]:
        # Short names match only as they are, or in capitals: "er" in small letters is another word.
        short_words = sorted((word for word in words if len(word) <= 3), key=len, reverse=True)
        exact = "|".join(re.escape(form) for word in short_words for form in (word, word.upper()))
        loose = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if len(word) > 3)
        alternatives = "|".join(filter(None, (f"(?i:{loose})" if loose else "", exact)))
        # "SMA margin": the margin at a vessel
        return re.compile(rf"(?<![\w-])(?:{alternatives})(?!\w|\+\w|-(?!(?:positive|negative)\b)\w|[ /-]margins?\b)")

    return tuple((row["name"], compile_names(row["words"])) for row in load_clinical_lexicon()["marker"])


def read_lab_results(
    _field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Read laboratory results: in tables, then in text with a unit or reference range."""
    table_readings = list(read_laboratory_tables(report, is_second_pass))
    yield from table_readings
    for line in report.finding_lines:
        if any(
            reading.page is line.page and line.start <= start < line.end
            for reading in table_readings
            for start in (reading.start,)
        ):
            continue
        entries = list(_iter_lab_entries(line.text.replace("\t", " ")))
        if line.kind == "row" and not (entries and "\t" not in line.text[: entries[0].start("value")]):
            continue
        pattern = (
            get_pattern("corrected_result")
            if get_pattern("lab_correction").search(line.text)
            else get_pattern("lab_result_with_range")
        )
        listed_spans = [entry.span() for entry in entries]
        others = [
            match
            for match in pattern.finditer(line.text)
            if not any(start <= match.start("value") < end for start, end in listed_spans)
        ]
        for match in [*entries, *others]:
            name = clean_test_name(match["name"])
            is_no_test = get_pattern("no_test_name").search(match["name"]) or line.page.text.startswith(f"{name}\n")
            if (
                name
                and not is_no_test
                and (
                    get_pattern("lab_germ_line").fullmatch(match.group().strip())
                    or normalise_lab_result(match["value"])
                )
            ):
                start, end = match.span("value")
                yield LocatedClinicalValue(line.page, line.start + start, line.start + end, LIKELY_CONFIDENCE, name)


def _iter_lab_entries(text: str) -> Iterator[re.Match[str]]:
    """Find the results that a line of text lists: "AFP 318 ng/mL [<7.0]; LDH 410 U/L"."""
    starts = [0, *(match.end() for match in get_pattern("lab_entry_end").finditer(text)), len(text)]
    for start, end in pairwise(starts):
        entry = text[:end].rstrip(" .;,")
        for pattern_name in ("lab_line", "lab_word_line", "lab_germ_line"):
            if match := get_pattern(pattern_name).fullmatch(entry, start):
                yield match
                break
