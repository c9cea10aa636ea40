"""Compare all statements of a report about a field, and settle which one counts.

Statements with the same meaning in other words agree: grade 2 and moderately differentiated. Of different statements,
the corrected one counts; if the report does not say which is right, the gravest is kept as ambiguous. Source: contract
ruling 27.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from evalkit.documents.search import find_boxes_of_text_span
from evalkit.extraction.clinical.clinical_reader import MAX_VALUES_PER_FIELD, list_first_pass_values
from evalkit.extraction.clinical.labelled_values import (
    LIKELY_CONFIDENCE,
    LocatedClinicalValue,
    StatementRole,
)
from evalkit.extraction.clinical.report_structure import ClinicalReport, load_clinical_lexicon
from evalkit.extraction.extraction_schema import FieldPlace, FieldStatus, FieldValue
from evalkit.extraction.field_template import FieldNeed, FieldTemplate, TemplateField
from evalkit.extraction.value_grounding import extract_passage

_MAX_PLACES = 20
_HYBRIDISATION = re.compile(r"(?i)\b(?:[FCSD]?ISH|in situ hybridi[sz]ation)\b|amplif")
_DIFFERENTIATION_GRADES = {"well": "1", "moderately": "2", "poorly": "3"}
_GLEASON_GROUPS = {"3+3": "1", "3+4": "2", "4+3": "3", "4+4": "4", "3+5": "4", "5+3": "4"}


class Meaning(NamedTuple):
    """The meaning of a value: two values of one aspect contradict each other if they share no reading."""

    readings_by_aspect: Mapping[str, frozenset[str]]
    """For example ``{"T": {"2"}, "N": {"1a"}}``; aspects that only one of two values has are not compared."""
    gravity: float = 0.0

    def contradicts(self, other: Meaning) -> bool:
        """Return True if the two values cannot both be right."""
        return any(
            readings.isdisjoint(other.readings_by_aspect[aspect])
            for aspect, readings in self.readings_by_aspect.items()
            if aspect in other.readings_by_aspect
        )


def _interpret_grade(value: str) -> Meaning:
    if gleason := re.search(r"(\d\+\d)", value):
        group = _GLEASON_GROUPS.get(gleason[1], "5")
        return Meaning({"grade group": frozenset(group)}, float(group))
    if value.startswith("Grade Group"):
        return Meaning({"grade group": frozenset(value[-1])}, float(value[-1]))
    grades = frozenset(
        _DIFFERENTIATION_GRADES.get(word, word) for word in re.findall(r"\d|well|moderately|poorly", value)
    )
    return Meaning({"grade": grades}, float(max(grades, default="0")))


def _interpret_margin(value: str) -> Meaning:
    state = value.partition(",")[0]
    gravity = ("negative", "close", "indeterminate", "positive")
    if state not in gravity:
        return Meaning({})
    return Meaning({"margin": frozenset({"negative" if state == "close" else state})}, gravity.index(state))


def _interpret_stage(value: str) -> Meaning:
    categories = {kind: frozenset({category}) for kind, category in re.findall(r"([TNM])([\dXi]\w*)", value)}
    tumor = re.search(r"T(\d)", value)
    return Meaning(categories or {"group": frozenset({value})}, float(tumor[1]) if tumor else 0.0)


def _interpret_marker(value: str) -> Meaning:
    polarity, score, share = (
        re.search(pattern, value) for pattern in (r"positive|negative|equivocal", r"[0-3]\+|score 0", r"^[\d.]+(?=%)")
    )
    scored_word = {"3+": "positive", "2+": "equivocal"}.get(score.group(), "negative") if score else ""
    word = polarity.group() if polarity else scored_word
    if word:
        return Meaning({"result": frozenset({word})}, ("negative", "equivocal", "positive").index(word))
    return Meaning({"share": frozenset({share.group()})}, float(share.group())) if share else Meaning({})


def _interpret_size(value: str) -> Meaning:
    largest = max((float(size) for size in re.findall(r"\d+(?:\.\d+)?", value)), default=0.0)
    millimetres = largest if value.endswith("mm") else largest * 10
    return Meaning({"size": frozenset({f"{millimetres:.1f}"})}, millimetres)


def _interpret_tumor_name(value: str) -> Meaning:
    """Collect the kinds of tumor that a name allows: an adenocarcinoma may be any glandular kind."""
    kinds = {kind for kind, pattern in _compile_tumor_kinds() if pattern.search(value)}
    glandular_kinds = set(load_clinical_lexicon()["histology"]["glandular"])
    kinds = kinds | glandular_kinds if kinds == {"adenocarcinoma"} else kinds - {"adenocarcinoma"}
    return Meaning({"kinds": frozenset(kinds)} if kinds else {})


@cache
def _compile_tumor_kinds() -> tuple[tuple[str, re.Pattern[str]], ...]:
    kinds: Mapping[str, str] = load_clinical_lexicon()["histology"]["kinds"]
    return tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in kinds.items())


def _interpret_exactly(value: str) -> Meaning:
    return Meaning({"value": frozenset({value})})


def _interpret_lab_result(value: str) -> Meaning:
    """Compare only the result itself: a repetition may lack flag, unit and range."""
    return Meaning({"result": frozenset({value.partition(" ")[0]})})


#: By field format: the meaning of a value in normal form.
_INTERPRETERS: Mapping[str, Callable[[str], Meaning]] = {
    "grade": _interpret_grade,
    "margin": _interpret_margin,
    "stage": _interpret_stage,
    "marker": _interpret_marker,
    "msi": _interpret_exactly,
    "tmb": _interpret_exactly,
    "lab": _interpret_lab_result,
}


def interpret_value(field: TemplateField, value: str) -> Meaning:
    """Return the meaning of a value in normal form; without aspects if values of the field are not compared."""
    if field.reader == "histology":
        return _interpret_tumor_name(value)
    if field.format == "measurement" and not field.many:
        return _interpret_size(value)
    interpreter = _INTERPRETERS.get(field.format)
    return interpreter(value) if interpreter else Meaning({})


class _Statement(NamedTuple):
    reading: LocatedClinicalValue
    value: str
    meaning: Meaning

    def build_place(self) -> FieldPlace:
        page, start, end = self.reading.spans[0]
        return FieldPlace(
            value=self.value,
            raw=self.reading.text,
            page=page.page_num,
            quote=extract_passage(page, start, end),
            boxes=tuple(box for span in self.reading.spans for box in find_boxes_of_text_span(*span)),
        )


def settle_contradictions(
    fields: Mapping[str, FieldValue], template: FieldTemplate, report: ClinicalReport
) -> dict[str, FieldValue]:
    """Compare each found value with the report's statements about its field; return all fields.

    A contradicted value becomes ambiguous: ``candidates`` has the values, the gravest or latest first, and ``places``
    the places with another value than the first. A value that the report itself corrects stays found, with its places.
    """
    settled_fields = dict(fields)
    for name, value in fields.items():
        base_name, _, item = name.partition(".")
        field = template.get_field(base_name)
        if field and value.is_found:
            settled_fields[name] = _settle_value(field, value, _list_statements(field, item, report))
    return settled_fields


def _list_statements(field: TemplateField, item: str, report: ClinicalReport) -> list[_Statement]:
    is_section = field.reader == "section" and field.need is FieldNeed.REQUIRED
    statements = []
    for reading in islice(list_first_pass_values(field, report), MAX_VALUES_PER_FIELD):
        if reading.confidence < LIKELY_CONFIDENCE or reading.item.lower() != item.lower():
            continue
        if normal_value := field.normalise(reading.text):
            meaning = interpret_value(field, normal_value)
            if meaning.readings_by_aspect or is_section:
                statements.append(_Statement(reading, normal_value, meaning))
    decided = [statement for statement in statements if _is_hybridisation(statement)]
    return (
        [statement for statement in statements if not decided or not statement.value.startswith("equivocal")]
        if field.format == "marker"
        else statements
    )


def _is_hybridisation(statement: _Statement) -> bool:
    """Return True for the result of in situ hybridisation, which decides an equivocal stain."""
    page, start, end = statement.reading.spans[0]
    line_start = max(page.text.rfind("\n", 0, start), start - 40, 0)
    return _HYBRIDISATION.search(page.text, line_start, end) is not None


def _settle_value(field: TemplateField, value: FieldValue, statements: Sequence[_Statement]) -> FieldValue:
    stored_value = value.value or ""
    meaning = interpret_value(field, stored_value)

    def is_contradiction(statement: _Statement) -> bool:
        if field.reader == "section":
            return statement.value not in stored_value and stored_value not in statement.value
        return statement.meaning.contradicts(meaning)

    corrected = [statement for statement in statements if statement.reading.role is StatementRole.CORRECTED]
    current = [statement for statement in statements if statement.reading.role is not StatementRole.SUPERSEDED]
    contradictions = [statement for statement in corrected or current if is_contradiction(statement)]
    other_places = [statement.build_place() for statement in statements if is_contradiction(statement)][:_MAX_PLACES]
    if not contradictions:
        return value.model_copy(update={"places": tuple(sorted(other_places, key=lambda place: place.page))})
    gravest = max(contradictions, key=lambda statement: statement.meaning.gravity)
    is_value_kept = not corrected and meaning.gravity >= gravest.meaning.gravity
    own_place = FieldPlace(
        value=stored_value, raw=value.raw or "", page=value.page or 1, quote=value.quote or "", boxes=value.boxes
    )
    chosen = own_place if is_value_kept else gravest.build_place()
    places = [place for place in (own_place, *other_places) if place.value != chosen.value]
    candidates = dict.fromkeys((chosen.value, *(place.value for place in places)))
    return value.model_copy(
        update={
            "status": FieldStatus.AMBIGUOUS,
            "value": chosen.value,
            "raw": chosen.raw,
            "page": chosen.page,
            "quote": chosen.quote,
            "boxes": chosen.boxes,
            "candidates": () if field.reader == "section" else tuple(candidates),
            "places": tuple(places),
        }
    )
