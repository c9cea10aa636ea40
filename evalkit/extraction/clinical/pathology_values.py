"""Offline readers of findings in pathology reports: margins, grades, stage, tumor size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from evalkit.extraction.clinical.labelled_values import (
    LIKELY_CONFIDENCE,
    FieldReader,
    LocatedClinicalValue,
    compile_lexicon_pattern,
    read_labelled_values,
)
from evalkit.extraction.clinical.report_passages import ReportPassage, get_passages
from evalkit.extraction.clinical.report_structure import ClinicalReport, PageTextSpan
from evalkit.extraction.clinical_formats import normalise_margin_status
from evalkit.extraction.field_template import TemplateField

#: Function that yields start and end of a field's values in a passage's text.
PassageReader = Callable[[ReportPassage], Iterator[tuple[int, int]]]

_MARGIN_WORD = re.compile(
    r"(?i)\bmargins?\b|\bink(?:ed)?\b|\bresection (?:status|edges?|lines?)\b|\bresidual tumou?r\b|\bR[012]\b|"
    r"\b(?:completely|incompletely) excised\b|\b(?:complete|incomplete) excision\b|\bexcision (?:is|appears) (?:in)?complete|"
    r"\b(?:surgical|cauteri[sz]ed|inked|medial|lateral|deep|proximal|distal|radial|superior|inferior|anterior|posterior|resection|excision|specimen|painted)\s+(?:edges?|surfaces?)\b|^\W*\w+ edges?\s*:"
)
_MARGIN_TOPIC = re.compile(r"\bmargins?\b|\bresection status\b|\br status\b")
_GRADE = re.compile(
    r"(?i)(?<!nuclear )(?<!architectural )(?<!regression )(?<!cytologic )\b(?:(?:nottingham|figo|histologic(?:al)?|overall|who|isup|who/isup|fuhrman(?: nuclear)?|sbr|"
    r"bloom[- ]richardson|tumou?r|combined)[\s,-]{1,3}){0,4}\bgrade[:\s]{1,3}(?:(?:is|of|reads|was|now|be|read|to|should|changed|corrected|revised|upgraded|downgraded|from\s+[1-3])\s+){0,4}(?:[1-4]|i{1,3}|iv)(?:\s?(?:/|of)\s?[34])?(?!\w|\.\d)"
    r"|\b(?:well|moderately|poorly)(?:[\s-]+to[\s-]+(?:moderately|poorly))?[\s-]+differentiated\b|(?-i:\bG[1-3]\b)|(?-i:\bNHG\s?[1-3])"
    r"|\bgleason\s+(?:(?:score|grade|pattern|sum)\s*)?(?:of\s+|is\s+)?:?\s*[3-5]\s*\+\s*[3-5](?:\s*=\s*\d+)?|\bgrade group\s*:?\s*[1-5]"
    r"|\b(?:high|low)[- ]grade(?= (?:\w+ ){0,3}(?:carcinoma|sarcoma)\b(?! in situ))|(?:(?<=carcinoma, )|(?<=sarcoma, ))(?:high|low)[- ]grade\b"
    r"|\b[1-3]\s*\+\s*[1-3]\s*\+\s*[1-3](?:\s*=\s*[3-9])?|\btub\w*\D{1,30}[1-3]\W{1,3}(?:nucle|pleo)\D{1,30}[1-3]\W{1,3}mito\D{1,30}[1-3]|(?:\btotal|\bscore)\s*:?\s*(?:of\s+)?[3-9]\s?(?:/|of)\s?9\b"
)
#: Lesions with a grade of their own, before a grade in its clause.
_OTHER_LESION = re.compile(r"(?i)\b(?:DCIS|LCIS|in situ|dysplasia|PanIN|metastas[ie]s|node)\b[^.;]*$")
_TUMOR_CATEGORY = re.compile(r"\b(?P<prefix>[ycra]{0,2}p)T(?:is|[0-4X][a-d]?\d?)(?:\s*\((?:DCIS|m|\d)\))?")
_FURTHER_CATEGORY = re.compile(
    r"\b[ycra]{0,2}p(?:N[0-3X][a-c]?(?:mi)?(?:\s*\((?:sn|i[+-]|mol[+-])\))?|M[01X][a-c]?)(?!\w)"
)
_CATEGORY_AFTER = re.compile(
    r"(?:[\s,;.]*\b[ycra]{0,2}p?N[0-3X][a-c]?(?:mi)?(?:\s*\((?:sn|i[+-]|mol[+-])\))?)?(?:[\s,;.]*\b[cp]?M[01X][a-c]?\b)?"
)
_STAGE_GROUP = re.compile(r"(?i)\bstage(?: group)?:?\s+(?:IV|III|II|I)[A-C]?\d?\b")
_TUMOR_SIZE = re.compile(
    r"(?i)\b(?:mass|tumou?r|lesion|carcinoma)(?: (?:focus|nodule))?\s+(?:(?:size|of|is|measur(?:es|ing|ed)|was|with a diameter of|\()\s*:?\s*)+(?:about |approximately |up to )?"
    r"(?P<size>\d+(?:\.\d+)?(?:\s*[x×]\s*\d+(?:\.\d+)?){0,2}\s*(?:mm|cm))\b(?!\s*(?:from|deep|to the)\b)"
    r"|(?<!metastatic )\b\w*(?:carcinoma|sarcoma|melanoma)\b(?:(?!\b(?:nodes?|metasta\w+|margins?|invad\w+|depth|stage)\b)[^.;]){0,80}?,\s*(?:measuring\s+(?:about\s+)?)?"
    r"(?P<named>\d+(?:\.\d+)?(?:\s*[x×]\s*\d+(?:\.\d+)?){0,2}\s*(?:mm|cm))\b(?!\s*(?:deep|from|to|clear|thick|in depth|in (?:greatest|maximum)))"
    r"|(?<!metastasis: )(?P<greatest>\d+(?:\.\d+)?\s*(?:mm|cm))\s*,?\s*(?:in|is the)?\s*(?:greatest|maximum|maximal|largest) (?:dimension|diameter|extent)"
    r"|\b(?:greatest|maximum|largest) (?:dimension|diameter)\s*:?\s*(?P<labelled>\d+(?:\.\d+)?\s*(?:mm|cm))\b"
)


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
    has_topic = _MARGIN_TOPIC.search(passage.topic) is not None
    for start, end in passage.iter_clauses():
        clause = passage.text[start:end]
        is_about_margins = _MARGIN_WORD.search(clause) or (
            has_topic and not compile_lexicon_pattern("statements", "subject").match(clause)
        )
        state = normalise_margin_status(clause) if is_about_margins else None
        if state and not state[0].isdigit() and not compile_lexicon_pattern("untold", "words").match(clause):
            yield start + len(clause) - len(clause.lstrip(" -•*\t")), start + len(clause.rstrip(" .,;:\t"))


def find_grade_spans(passage: ReportPassage) -> Iterator[tuple[int, int]]:
    """Find each grade and each degree of differentiation of the tumor."""
    for match in _GRADE.finditer(passage.text):
        if not _OTHER_LESION.search(passage.text, max(match.start() - 60, 0), match.start()):
            yield match.span()


def read_stages(field: TemplateField, report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """Read pathologic categories, also on several lines; then labelled stages and stage groups."""
    passages = get_passages(report)
    readings = []
    for number, passage in enumerate(passages):
        for match in _TUMOR_CATEGORY.finditer(passage.text):
            end = _CATEGORY_AFTER.match(passage.text, match.end()).end()  # type: ignore[union-attr]
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
        match = _FURTHER_CATEGORY.search(passage.text, 0, 40)
        if match and passage.page is passages[0].page:
            span = (passage.page, passage.start + match.start(), passage.start + match.end())
            spans.setdefault("M" if "M" in match.group() else "N", span)
    return tuple(spans[category] for category in "NM" if category in spans)


def _find_stage_groups(passage: ReportPassage) -> Iterator[tuple[int, int]]:
    for match in _STAGE_GROUP.finditer(passage.text):
        yield match.span()


def find_tumor_size_spans(passage: ReportPassage) -> Iterator[tuple[int, int]]:
    """Find the sizes of the tumor itself."""
    for match in _TUMOR_SIZE.finditer(passage.text):
        yield match.span(match.lastgroup or 0)
