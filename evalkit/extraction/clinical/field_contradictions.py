"""Comparison of all statements about a field in a report, to choose one.

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
from evalkit.extraction.clinical.report_statements import (
    LIKELY_CONFIDENCE,
    LocatedClinicalValue,
    StatementRole,
)
from evalkit.extraction.clinical.report_structure import ClinicalReport, load_clinical_lexicon
from evalkit.extraction.extraction_schema import FieldPlace, FieldStatus, FieldValue
from evalkit.extraction.field_template import FieldNeed, FieldTemplate, TemplateField
from evalkit.extraction.patterns import get_pattern
from evalkit.extraction.value_grounding import extract_passage

_MAX_PLACES = 20
_GRADE_LEVELS = {"well": "1", "moderately": "2", "poorly": "3", "low": "1", "high": "2"}
_GLEASON_GROUPS = {"3+3": "1", "3+4": "2", "4+3": "3", "4+4": "4", "3+5": "4", "5+3": "4"}
#: States and results from harmless to grave.
_MARGIN_STATES = ("negative", "close", "indeterminate", "positive")
_MARKER_RESULTS = ("negative", "wild type", "retained", "equivocal", "positive", "lost", "aberrant")


class _Meaning(NamedTuple):
    readings: Mapping[str, frozenset[str]]
    """By aspect, all that the value may mean: ``{"T": {"2"}, "N": {"1a"}}``. Empty if it is not compared."""
    gravity: float = 0.0

    def contradicts(self, other: _Meaning) -> bool:
        """Return True if the two values share no reading of an aspect that both have."""
        return any(
            self.readings[aspect].isdisjoint(other.readings[aspect]) for aspect in self.readings.keys() & other.readings
        )


def _interpret_grade(value: str) -> _Meaning:
    if gleason := re.search(r"\d\+\d", value):
        value = f"Grade Group {_GLEASON_GROUPS.get(gleason.group(), '5')}"
    system = re.match(r"Grade Group|(?:high|low) grade", value)
    levels = frozenset(
        _GRADE_LEVELS.get(word, word) for word in re.findall(r"\d|well|moderately|poorly|high|low", value)
    )
    return _Meaning({system.group()[-5:] if system else "grade of 3": levels}, float(max(levels, default="0")))


def _interpret_margin(value: str) -> _Meaning:
    state = value.partition(",")[0]
    if state not in _MARGIN_STATES:  # only a distance
        return _Meaning({})
    return _Meaning({"state": frozenset({state.replace("close", "negative")})}, _MARGIN_STATES.index(state))


def _interpret_stage(value: str) -> _Meaning:
    categories = {kind: frozenset({category}) for kind, category in re.findall(r"([TNM])([\dXi]\w*)", value)}
    tumor = re.search(r"T(\d)", value)
    return _Meaning(categories or {"group": frozenset({value})}, float(tumor[1]) if tumor else 0.0)


def _interpret_marker(value: str) -> _Meaning:
    scores = {"3+": "positive", "2+": "equivocal", "1+": "negative", "0+": "negative", "score 0": "negative"}
    word = re.search("|".join(_MARKER_RESULTS), value) or re.search(r"[0-3]\+|score 0", value)
    if word:
        result = scores.get(word.group(), word.group())
        return _Meaning({"result": frozenset({result})}, _MARKER_RESULTS.index(result))
    share = re.match(r"(\d+(?:\.\d+)?)%", value)
    return _Meaning({"share": frozenset({share[1]})}, float(share[1])) if share else _Meaning({})


def _interpret_size(value: str) -> _Meaning:
    largest = max((float(size) for size in re.findall(r"\d+(?:\.\d+)?", value)), default=0.0)
    millimetres = largest if value.endswith("mm") else largest * 10
    return _Meaning({"size": frozenset({f"{millimetres:.1f}"})}, millimetres)


def _interpret_tumor_name(value: str) -> _Meaning:
    words = load_clinical_lexicon()["histology"]
    if any(term in value.lower() for term in words["beside"]):
        return _Meaning({})
    kinds = {kind for kind, pattern in _compile_tumor_kinds() if pattern.search(value)}
    # An adenocarcinoma may be any of the glandular kinds.
    kinds = kinds | set(words["glandular"]) if kinds == {"adenocarcinoma"} else kinds - {"adenocarcinoma"}
    return _Meaning({"kind": frozenset(kinds)} if kinds else {})


@cache
def _compile_tumor_kinds() -> tuple[tuple[str, re.Pattern[str]], ...]:
    kinds: Mapping[str, str] = load_clinical_lexicon()["histology"]["kinds"]
    return tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in kinds.items())


def _interpret_first_word(value: str) -> _Meaning:
    # A repeated laboratory result may lack flag, unit and range.
    return _Meaning({"result": frozenset({value.partition(" ")[0]})})


#: By the field's reader or format: the meaning of a value in normal form.
_INTERPRETERS: Mapping[str, Callable[[str], _Meaning]] = {
    "histology": _interpret_tumor_name,
    "grade": _interpret_grade,
    "margin": _interpret_margin,
    "stage": _interpret_stage,
    "marker": _interpret_marker,
    "measurement": _interpret_size,
    "msi": _interpret_first_word,
    "tmb": _interpret_first_word,
    "lab": _interpret_first_word,
}


class _Statement(NamedTuple):
    value: str
    meaning: _Meaning
    reading: LocatedClinicalValue | FieldPlace
    """The place: of the extracted value itself, a FieldPlace."""

    def contradicts(self, other: _Statement) -> bool:
        """Return True if the values cannot both be right.

        Of long texts, if neither contains the other.
        """
        if self.meaning.readings or other.meaning.readings:
            return self.meaning.contradicts(other.meaning)
        return self.value not in other.value and other.value not in self.value

    def has_role(self, role: StatementRole) -> bool:
        return isinstance(self.reading, LocatedClinicalValue) and self.reading.role is role

    def is_hybridisation(self) -> bool:
        """Return True for a result of in situ hybridisation: it decides equivocal stains."""
        place = self.build_place()
        return (
            get_pattern("hybridisation").search(place.quote[: place.quote.find(place.raw) + len(place.raw)]) is not None
        )

    def build_place(self) -> FieldPlace:
        if isinstance(self.reading, FieldPlace):
            return self.reading
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
    """Compare found values with other statements; return all fields.

    A contradicted value becomes ambiguous: ``candidates`` has the values, the gravest or latest first, and ``places``
    the places with another value than the first. A value that the report itself corrects stays found, with its places.
    """
    settled_fields = dict(fields)
    for name, value in fields.items():
        base_name, _, item = name.partition(".")
        field = template.get_field(base_name)
        if field and value.is_found and value.value:
            settled_fields[name] = _settle_value(field, value, _list_statements(field, item, report))
    return settled_fields


def _interpret(field: TemplateField, value: str) -> _Meaning:
    is_compared = field.format != "measurement" or not field.many
    interpreter = _INTERPRETERS.get(field.reader) or _INTERPRETERS.get(field.format)
    return interpreter(value) if interpreter and is_compared else _Meaning({})


def _list_statements(field: TemplateField, item: str, report: ClinicalReport) -> list[_Statement]:
    is_section = field.reader == "section" and field.need is FieldNeed.REQUIRED
    statements = [
        _Statement(normal_value, _interpret(field, normal_value), reading)
        for reading in islice(list_first_pass_values(field, report), MAX_VALUES_PER_FIELD)
        if reading.item.lower() == item.lower()
        and reading.confidence >= LIKELY_CONFIDENCE
        and (normal_value := field.normalise(reading.text))
    ]
    statements = [statement for statement in statements if is_section or statement.meaning.readings]
    decided = [statement for statement in statements if not statement.value.startswith("equivocal")]
    is_decided = len(decided) < len(statements) and any(statement.is_hybridisation() for statement in decided)
    return decided if is_decided else statements


def _settle_value(field: TemplateField, value: FieldValue, statements: Sequence[_Statement]) -> FieldValue:
    stored_value = value.value or ""
    own_place = FieldPlace(
        value=stored_value, raw=value.raw or "", page=value.page or 1, quote=value.quote or "", boxes=value.boxes
    )
    own_statement = _Statement(stored_value, _interpret(field, stored_value), own_place)
    corrected = [statement for statement in statements if statement.has_role(StatementRole.CORRECTED)]
    past_roles = (StatementRole.GROSS, StatementRole.SUPERSEDED)
    current = corrected or [statement for statement in statements if not any(map(statement.has_role, past_roles))]
    contradictions = [statement for statement in current if statement.contradicts(own_statement)]
    rivals = contradictions if corrected else [own_statement, *contradictions]
    chosen = max(rivals, key=lambda statement: statement.meaning.gravity) if contradictions else own_statement
    other_places = [
        statement.build_place() for statement in (own_statement, *statements) if statement.contradicts(chosen)
    ]
    places = tuple({(place.value, place.page, place.quote): place for place in other_places}.values())[:_MAX_PLACES]
    if not contradictions:
        return value.model_copy(update={"places": places})
    candidates = dict.fromkeys((chosen.value, *(place.value for place in places)))
    return value.model_copy(
        update={
            **dict(chosen.build_place()),
            "status": FieldStatus.AMBIGUOUS,
            "candidates": () if field.reader == "section" else tuple(candidates),
            "places": places,
        }
    )
