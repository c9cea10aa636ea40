"""Rules that detect wrong, contradictory or impossible values in clinical fields.

Each rule is a table row. Source: specification 002, section 3.3.1; contract ruling 16.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from evalkit.extraction.clinical.report_structure import load_clinical_lexicon
from evalkit.extraction.clinical_formats import (
    normalise_grade,
    normalise_marker_result,
    strip_grading_system,
)
from evalkit.extraction.extraction_schema import FieldValue
from evalkit.extraction.patterns import get_pattern
from evalkit.grounding.locate import find_whole_word_spans
from evalkit.grounding.normalise import canonicalise
from evalkit.grounding.omitted_context import find_omitted_context

#: Values by field name; values of a multi-value field by field and item: ``ihcMarkers.ER``.
FieldValues = Mapping[str, FieldValue]
_MAX_QUOTE_LENGTH = 120


def get_base_field_name(name: str) -> str:
    """Return the field name of a value name: ``ihcMarkers`` for ``ihcMarkers.ER``."""
    return name.partition(".")[0]


def get_found_values(fields: FieldValues, name: str) -> dict[str, FieldValue]:
    """Return the values of a field that were found on the page, by value name."""
    return {key: value for key, value in fields.items() if get_base_field_name(key) == name and value.is_found}


class ValueContext(NamedTuple):
    """One occurrence of a value's words in its quote."""

    field_name: str
    """Name of the value, with its item: ``ihcMarkers.ER``."""
    value_text: str
    text_before: str
    """The quote before the value."""
    clause_after: str
    """The quote after the value, up to the end of the clause or row."""
    quote: str
    start: int
    """Position of the value in the quote, as ``end``."""
    end: int


@dataclass(frozen=True)
class AccuracyRule:
    """A rule that detects values which are on the page, but misread or incomplete."""

    name: str
    field_names: tuple[str, ...]
    describe_error: Callable[[ValueContext], str | None]
    """Returns a sentence about the error at one occurrence of the value; None without error."""
    score_if_violated: float
    """Accuracy score of a value that breaks the rule, 0..1."""

    def describe_value_problem(self, field_name: str, value: FieldValue) -> str | None:
        """Describe why a value breaks the rule; None if it does not, or for other fields.

        A value that occurs several times in its quote breaks the rule only if every occurrence does.
        """
        if get_base_field_name(field_name) not in self.field_names:
            return None
        errors = [self.describe_error(context) for context in find_value_contexts(field_name, value)]
        return errors[0] if errors and all(errors) else None


def find_value_contexts(field_name: str, value: FieldValue) -> list[ValueContext]:
    """Find every occurrence of a value's words in its quote."""
    quote = value.quote or ""
    spans = find_whole_word_spans(canonicalise(value.raw), quote) if value.raw else ()
    return [
        ValueContext(
            field_name,
            shorten_quote(value.raw),
            quote[:start],
            get_pattern("sentence_end").split(quote[end:], maxsplit=1)[0],
            quote,
            start,
            end,
        )
        for start, end in spans
    ]


def _describe_omission(context: ValueContext, pattern_name: str, part: str, *, is_included: bool) -> str | None:
    """Return an error if a result's percentage or distance was left out, else None."""
    match = None if is_included else get_pattern(pattern_name).match(context.clause_after)
    return match and (
        f'Extracted as "{context.value_text}" but the source goes on with "{match["omitted"].strip()}": include the {part}'
    )


def _describe_denial(context: ValueContext) -> str | None:
    """Return an error if the text negates the value ("negative for …"); or None."""
    denial = find_omitted_context(context.quote, context.start, context.end)
    return f'The source denies or doubts "{context.value_text}": {denial}' if denial else None


def _describe_unnamed_marker(context: ValueContext) -> str | None:
    """Return an error if the quote does not name the stain before its result; or None."""
    item = context.field_name.partition(".")[2]
    marker_names = _load_synonyms_by_marker().get(item.lower())
    # Behind a result that begins a list: "negative for CK7", "lack CD10".
    result_and_clause = context.value_text + context.clause_after
    list_after = context.clause_after if get_pattern("list_after").match(result_and_clause) else ""
    names_text = canonicalise(f"{context.text_before} {list_after}")
    if marker_names is None or any(canonicalise(marker_name) in names_text for marker_name in marker_names):
        return None
    return f"The passage does not name {item}"


#: Rules for values on the page; the evaluator uses the lowest score of the rules that a value breaks.
ACCURACY_RULES: tuple[AccuracyRule, ...] = (
    AccuracyRule("denied", ("histology", "grade"), _describe_denial, 0.0),
    AccuracyRule(
        "nuclear grade",
        ("grade",),
        lambda context: (
            f'"{context.value_text}" is a nuclear grade in the source'
            if re.search(r"(?i)(?<!fuhrman )\bnuclear\s+(?:grade\W*)?$", context.text_before[-26:])
            or context.value_text.lower().startswith("nuclear")
            else None
        ),
        0.3,
    ),
    AccuracyRule("other marker", ("ihcMarkers",), _describe_unnamed_marker, 0.3),
    AccuracyRule(
        "share left out",
        ("ihcMarkers",),
        lambda context: _describe_omission(
            context,
            "share_after",
            "percentage",
            is_included="%" in (normalise_marker_result(context.value_text) or ""),
        ),
        0.6,
    ),
    AccuracyRule(
        "distance left out",
        ("margins",),
        lambda context: _describe_omission(
            context, "size_after", "distance", is_included=bool(re.search(r"\d", context.value_text))
        ),
        0.6,
    ),
)


def shorten_quote(text: str | None) -> str:
    """Shorten a quote to 120 characters for a message, and join its lines."""
    squeezed = " ".join((text or "").split())
    return squeezed if len(squeezed) <= _MAX_QUOTE_LENGTH else f"{squeezed[:_MAX_QUOTE_LENGTH]}…"


@cache
def _load_synonyms_by_marker() -> dict[str, tuple[str, ...]]:
    return {row["name"].lower(): tuple(row["words"]) for row in load_clinical_lexicon()["marker"]}


@dataclass(frozen=True)
class ConsistencyRule:
    """A rule that detects a contradiction between fields."""

    field_name: str
    """The field that the issue points at."""
    is_violated: Callable[[FieldValues, frozenset[str]], bool]
    """Takes all values, and the names of fields that the document does not have."""
    message: str


def _has_value(fields: FieldValues, name: str, contained_text: str = "") -> bool:
    return any(contained_text in (value.value or "").lower() for value in get_found_values(fields, name).values())


def _is_field_missing(fields: FieldValues, absent_fields: frozenset[str], name: str) -> bool:
    return name not in absent_fields and not get_found_values(fields, name)


def _get_found_value(fields: FieldValues, name: str) -> str:
    field_value = fields.get(name)
    return (field_value.value or "") if field_value and field_value.is_found else ""


def _is_receptor_contradictory(fields: FieldValues, _absent_fields: frozenset[str]) -> bool:
    """Return True if ER or PR is positive at 0 %, or negative at 10 % or more."""
    results = [_get_found_value(fields, f"ihcMarkers.{item}") for item in ("ER", "PR")]
    return any(
        (text.startswith("positive") and float(share[1]) == 0)
        or (text.startswith("negative") and float(share[1]) >= 10)
        for text in results
        if (share := re.search(r"(\d+(?:\.\d+)?)%", text))
    )


def _is_her2_contradictory(fields: FieldValues, _absent_fields: frozenset[str]) -> bool:
    """Return True if HER2 is positive at score 0 or 1+, or negative at 3+."""
    her2_text = _get_found_value(fields, "ihcMarkers.HER2")
    low_score_match, is_high_score = re.search(r"\b[01]\+|(?<!\d)0(?![\d.%])", her2_text), "3+" in her2_text
    return (her2_text.startswith("positive") and bool(low_score_match)) or (
        her2_text.startswith("negative") and is_high_score
    )


def _list_sizes(text: str) -> list[tuple[float, float]]:
    """Return each size in a text in mm, with half of its last printed digit."""
    return [
        (scale * float(match["number"]), scale * 0.5 / 10 ** len(match["decimals"] or ""))
        for match in get_pattern("printed_size").finditer(text)
        for scale in [1.0 if (match["unit"] or match["shared"]).lower() == "mm" else 10.0]
    ]


def _is_impression_size_unfounded(fields: FieldValues, _absent_fields: frozenset[str]) -> bool:
    """Return True if a size in the impression is in no finding, even rounded."""
    measured = {
        size
        for value in get_found_values(fields, "measurements").values()
        for size, _ in _list_sizes(value.value or "")
    }
    described = [size for size, _ in _list_sizes(_get_found_value(fields, "findings"))]
    return bool(measured & {*described}) and any(
        size in measured and not any(abs(size - other) <= margin for other in described)
        for size, margin in _list_sizes(_get_found_value(fields, "impression"))
    )


CONSISTENCY_RULES: tuple[ConsistencyRule, ...] = (
    ConsistencyRule(
        "measurements",
        _is_impression_size_unfounded,
        "A size in the impression is none of the sizes in the findings",
    ),
    ConsistencyRule(
        "grade",
        lambda fields, absent_fields: (
            _has_value(fields, "histology", "carcinoma") and _is_field_missing(fields, absent_fields, "grade")
        ),
        "Carcinoma identified but grade not extracted",
    ),
    ConsistencyRule(
        "msiStatus",
        lambda fields, absent_fields: (
            _has_value(fields, "mutations") and _is_field_missing(fields, absent_fields, "msiStatus")
        ),
        "Mutations present but MSI status not extracted",
    ),
    ConsistencyRule(
        "ihcMarkers", _is_receptor_contradictory, "The share of stained cells contradicts a receptor's result"
    ),
    ConsistencyRule("ihcMarkers", _is_her2_contradictory, "The HER2 score contradicts the HER2 result"),
    ConsistencyRule(
        "mutations",
        lambda fields, _: (
            _has_value(fields, "mutations", "none detected") and len(get_found_values(fields, "mutations")) > 1
        ),
        "Variants were extracted, and that none was detected",
    ),
)


@dataclass(frozen=True)
class ValidityRule:
    """A rule that detects a clinically impossible value."""

    field_name: str
    is_invalid: Callable[[str], bool]
    """Takes the value's normal form, or its words on the page if it has none."""
    message: str
    item_names: tuple[str, ...] = ()
    """For a multi-value field: the items that the rule applies to; empty: all items."""


def is_histologic_grade(text: str) -> bool:
    """Return True for a histologic grade: 1, 2, 3 or a degree of differentiation.

    >>> [is_histologic_grade(text) for text in ("2", "Grade II", "Nottingham grade 3", "moderately differentiated", "well")]
    [True, True, True, True, True]
    >>> [is_histologic_grade(text) for text in ("High", "4", "wellness", "Grade", "12")]
    [False, False, False, False, False]
    """
    return normalise_grade(text) is not None and bool(strip_grading_system(text))


def has_valid_percentages(text: str) -> bool:
    """Return True if no percentage in the text is above 100.

    >>> has_valid_percentages("positive, 95%"), has_valid_percentages("negative"), has_valid_percentages("950%")
    (True, True, False)
    """
    return all(float(share) <= 100 for share in re.findall(r"(\d+(?:\.\d+)?)\s*%", text))


def is_plausible_lesion_size(text: str) -> bool:
    """Return True if the largest size in the text is below one metre.

    >>> is_plausible_lesion_size("18 cm"), is_plausible_lesion_size("3 x 2 mm"), is_plausible_lesion_size("180 cm"), is_plausible_lesion_size("1500 mm")
    (True, True, False, False)
    """
    largest = max((float(size) for size in re.findall(r"\d+(?:\.\d+)?", text)), default=0.0)
    return largest < (1000 if re.search(r"(?i)mm\b", text) else 100)


def has_variant_change(text: str) -> bool:
    """Return True if a variant names its change, or the text is "none detected".

    >>> [has_variant_change(text) for text in ("BRCA2 c.5946delT", "BRAF V600E", "none detected", "EML4::ALK fusion", "TP53")]
    [True, True, True, True, False]
    """
    return text == "none detected" or get_pattern("hgvs").search(text) is not None or len(text.split()) > 1


def has_variant_gene(text: str) -> bool:
    """Return True if a variant names its gene, or the text is "none detected".

    >>> [has_variant_gene(text) for text in ("BRCA2 c.5946delT", "none detected", "EML4::ALK fusion", "c.35G>A", "p.Gly12Asp")]
    [True, True, True, False, False]
    """
    return text == "none detected" or get_pattern("hgvs").match(text) is None


VALIDITY_RULES: tuple[ValidityRule, ...] = (
    ValidityRule("grade", lambda text: not is_histologic_grade(text), "Invalid grade format"),
    ValidityRule(
        "ihcMarkers",
        lambda text: not get_pattern("receptor_result").search(text),
        "Invalid receptor value",
        item_names=("ER", "PR"),
    ),
    ValidityRule("ihcMarkers", lambda text: not has_valid_percentages(text), "A share of more than 100 %"),
    ValidityRule(
        "measurements", lambda text: not get_pattern("size_with_unit").search(text), "Measurement missing units"
    ),
    ValidityRule(
        "measurements",
        lambda text: get_pattern("size_with_unit").search(text) is not None and not is_plausible_lesion_size(text),
        "Measurement of more than a metre",
    ),
    ValidityRule("tumorSize", lambda text: not get_pattern("size_with_unit").search(text), "Measurement missing units"),
    ValidityRule("msiStatus", lambda text: not get_pattern("msi_status_value").match(text), "Invalid MSI status"),
    ValidityRule("tmb", lambda text: not get_pattern("tmb_value").fullmatch(text), "TMB should be numeric"),
    ValidityRule("mutations", lambda text: not has_variant_change(text), "A gene without its change"),
    ValidityRule("mutations", lambda text: not has_variant_gene(text), "A change without its gene"),
)
