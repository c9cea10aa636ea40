"""The rules that a clinical extraction is judged by: what a value may not be, and what may not stand beside it.

Each rule is a row. Source: specification 002, section 3.3.1; contract ruling 16.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from evalkit.extraction.clinical_formats import HGVS, grade, marker, stripped_grade
from evalkit.extraction.report import lexicon
from evalkit.extraction.schema import FieldValue
from evalkit.grounding.clause import left_out
from evalkit.grounding.locate import occurrences
from evalkit.grounding.normalise import canonical_text

Fields = Mapping[str, FieldValue]
"""By name; those of a field of many values by its name and theirs: ``ihcMarkers.ER``."""
_QUOTED = 120


def base(name: str) -> str:
    """The template's name of a field: ``ihcMarkers`` of ``ihcMarkers.ER``."""
    return name.partition(".")[0]


def values_of(fields: Fields, name: str) -> dict[str, FieldValue]:
    """The values of a field that stand on the page, by name."""
    return {key: value for key, value in fields.items() if base(key) == name and value.is_found}


# ------------------------------------------------------------------------------------------------- accuracy


class Place(NamedTuple):
    """Where a value's own words stand in the passage around it."""

    name: str
    """The field's whole name."""
    words: str
    before: str
    """What stands before them in the passage."""
    behind: str
    """What follows, up to the end of the clause or row."""
    quote: str
    start: int
    end: int


@dataclass(frozen=True)
class AccuracyRule:
    """A way in which a value that stands on the page may still not be what the page says."""

    name: str
    fields: tuple[str, ...]
    """Names of the template's fields."""
    wrong: Callable[[Place], str | None]
    """What is wrong, in a sentence, or None. Words that stand twice in the passage are wrong if both places are."""
    score: float

    def broken(self, name: str, value: FieldValue) -> str | None:
        """What is wrong with the value, if anything is."""
        if base(name) not in self.fields:
            return None
        said = [self.wrong(place) for place in places(name, value)]
        return said[0] if said and all(said) else None


def places(name: str, value: FieldValue) -> list[Place]:
    """Every place of the value in its passage."""
    quote = value.quote or ""
    found = occurrences(canonical_text(value.raw), quote) if value.raw else ()
    return [
        Place(name, short(value.raw), quote[:start], _CLAUSE.split(quote[end:], maxsplit=1)[0], quote, start, end)
        for start, end in found
    ]


def _leaves_out_share(place: Place) -> str | None:
    """ER "positive" where the line says "ER: positive (95 %)"."""
    share = _SHARE_BEHIND.match(place.behind)
    if share and "%" not in (marker(place.words) or ""):
        said = share["share"].strip()
        return f'Extracted as "{place.words}" but the source goes on with "{said}": include the percentage'
    return None


def _leaves_out_distance(place: Place) -> str | None:
    """Margins "clear" where the source says "clear (0.3 cm)"."""
    size = _SIZE_BEHIND.match(place.behind)
    if size and not re.search(r"\d", place.words):
        said = size["size"].strip()
        return f'Extracted as "{place.words}" but the source goes on with "{said}": include the distance'
    return None


def _is_denied(place: Place) -> str | None:
    """A value whose clause denies it: "carcinoma" of "negative for carcinoma"."""
    denied = left_out(place.quote, place.start, place.end)
    return f'The source denies or doubts "{place.words}": {denied}' if denied else None


def _is_birthday(place: Place) -> str | None:
    """The date of a report that is the patient's."""
    is_birth = re.search(r"(?i)\b(?:birth|dob|born)\b[^\d]*$", place.before[-24:])
    return f'"{place.words}" is a date of birth in the source' if is_birth else None


def _is_nuclear(place: Place) -> str | None:
    """A nuclear grade is not the grade of the tumor."""
    is_nuclear = re.search(r"(?i)\bnuclear\s+(?:grade\W*)?$", place.before[-18:]) or place.words.lower().startswith(
        "nuclear"
    )
    return f'"{place.words}" is a nuclear grade in the source' if is_nuclear else None


def _is_other_marker(place: Place) -> str | None:
    """A result whose passage does not name its stain before it."""
    item = place.name.partition(".")[2]
    words = _marker_words().get(item.lower())
    before = canonical_text(place.before)
    if words is None or any(canonical_text(word) in before for word in words):
        return None
    return f"The passage does not name {item}"


_CLAUSE = re.compile(r"[.;](?=\s|$)|\n")
_SHARE_BEHIND = re.compile(r"[\s,:(\t]*(?:\w+[\s,]+){0,2}?\(?\s*(?P<share>[<>]?\s*\d+(?:\.\d+)?\s*(?:%|percent))")
_SIZE_BEHIND = re.compile(r"[\s,:(]*(?:\w+[\s,]+){0,3}?\(?\s*(?P<size>[<>]?\s*\d+(?:\.\d+)?\s*(?:mm|cm))\b")

ACCURACY: tuple[AccuracyRule, ...] = (
    AccuracyRule("denied", ("histology", "grade", "stage"), _is_denied, 0.0),
    AccuracyRule("date of birth", ("date",), _is_birthday, 0.0),
    AccuracyRule("nuclear grade", ("grade",), _is_nuclear, 0.3),
    AccuracyRule("other marker", ("ihcMarkers",), _is_other_marker, 0.3),
    AccuracyRule("share left out", ("ihcMarkers",), _leaves_out_share, 0.6),
    AccuracyRule("distance left out", ("margins",), _leaves_out_distance, 0.6),
)


def short(text: str | None) -> str:
    """The words of a document as a message quotes them."""
    squeezed = " ".join((text or "").split())
    return squeezed if len(squeezed) <= _QUOTED else f"{squeezed[:_QUOTED]}…"


@cache
def _marker_words() -> dict[str, tuple[str, ...]]:
    return {row["name"].lower(): tuple(row["words"]) for row in lexicon()["marker"]}


# ------------------------------------------------------------------------------------------------- consistency


@dataclass(frozen=True)
class ConsistencyRule:
    """Two fields that do not go together."""

    field: str
    """The one to look at again."""
    wrong: Callable[[Fields, frozenset[str]], bool]
    """By all fields, and the names of those that the document does not have."""
    says: str


def _has(fields: Fields, name: str, word: str = "") -> bool:
    return any(word in (value.value or "").lower() for value in values_of(fields, name).values())


def _lacks(fields: Fields, gone: frozenset[str], name: str) -> bool:
    return name not in gone and not values_of(fields, name)


def _value(fields: Fields, name: str) -> str:
    found = fields.get(name)
    return (found.value or "") if found and found.is_found else ""


def _percent(text: str) -> float | None:
    found = re.search(r"(\d+(?:\.\d+)?)%", text)
    return float(found[1]) if found else None


def _receptor_is_torn(fields: Fields, _gone: frozenset[str]) -> bool:
    """Positive at 0 %, negative at 10 % and more."""
    said = [_value(fields, f"ihcMarkers.{item}") for item in ("ER", "PR")]
    shares = [(text, _percent(text)) for text in said]
    return any(
        share is not None
        and ((text.startswith("positive") and share == 0) or (text.startswith("negative") and share >= 10))
        for text, share in shares
    )


def _her2_is_torn(fields: Fields, _gone: frozenset[str]) -> bool:
    """Positive at 0 or 1+, negative at 3+."""
    said = _value(fields, "ihcMarkers.HER2")
    low, high = re.search(r"\b[01]\+|(?<!\d)0(?![\d.%])", said), "3+" in said
    return (said.startswith("positive") and bool(low)) or (said.startswith("negative") and high)


def _none_and_some(fields: Fields, _gone: frozenset[str]) -> bool:
    said = [value.value for value in values_of(fields, "mutations").values()]
    return "none detected" in said and len(said) > 1


CONSISTENCY: tuple[ConsistencyRule, ...] = (
    ConsistencyRule(
        "grade",
        lambda fields, gone: _has(fields, "histology", "carcinoma") and _lacks(fields, gone, "grade"),
        "Carcinoma identified but grade not extracted",
    ),
    ConsistencyRule(
        "msiStatus",
        lambda fields, gone: _has(fields, "mutations") and _lacks(fields, gone, "msiStatus"),
        "Mutations present but MSI status not extracted",
    ),
    ConsistencyRule("ihcMarkers", _receptor_is_torn, "The share of stained cells contradicts a receptor's result"),
    ConsistencyRule("ihcMarkers", _her2_is_torn, "The HER2 score contradicts the HER2 result"),
    ConsistencyRule("mutations", _none_and_some, "Variants were extracted, and that none was detected"),
)


# ------------------------------------------------------------------------------------------------- clinical validity


@dataclass(frozen=True)
class ValidityRule:
    """What a value must look like to be clinically possible."""

    field: str
    wrong: Callable[[str], bool]
    """By the value, or its own words where it has no normal form."""
    says: str
    items: tuple[str, ...] = ()
    """Of a field of many values: these; empty: all."""


def is_grade(text: str) -> bool:
    """1, 2 or 3, or the degree of differentiation, behind whatever the grading is called.

    >>> [is_grade(text) for text in ("2", "Grade II", "Nottingham grade 3", "moderately differentiated", "well")]
    [True, True, True, True, True]
    >>> [is_grade(text) for text in ("High", "4", "wellness", "Grade", "12")]
    [False, False, False, False, False]
    """
    return grade(text) is not None and bool(stripped_grade(text))


def is_receptor(text: str) -> bool:
    """Positive, negative, or a percentage.

    >>> [is_receptor(text) for text in ("positive", "negative, 0%", "95%", "Positive (strong)", "strong", "3+", "95")]
    [True, True, True, True, False, False, False]
    """
    return re.search(r"(?i)\bpositive\b|\bnegative\b|\d+\s*%", text) is not None


def has_unit(text: str) -> bool:
    """A size with its unit.

    >>> [has_unit(text) for text in ("6 mm", "3 x 2 cm", "0.1 m", "6", "6 nodules")]
    [True, True, True, False, False]
    """
    return re.search(r"(?i)\d+\s*(?:mm|cm|m)\b", text) is not None


def is_msi(text: str) -> bool:
    """MSI-H, MSI-L or MSS.

    >>> [is_msi(text) for text in ("MSI-H", "MSS", "stable", "MSI-High", "low", "pending", "lowest")]
    [True, True, True, True, True, False, False]
    """
    return re.match(r"(?i)(?:MSI-?(?:H|High|L|Low)|MSS|stable|high|low)\b", text) is not None


def is_tmb(text: str) -> bool:
    """A number, without its unit (contract ruling 16).

    >>> [is_tmb(text) for text in ("12.4", "8", "12.4 mut/Mb", "high", "")]
    [True, True, True, False, False]
    """
    return (
        re.fullmatch(r"(?i)\s*\d+(?:\.\d+)?\s*(?:(?:mut\w*\.?|variants?)?\s*(?:/|per)\s*(?:mb|megabases?))?\s*", text)
        is not None
    )


def is_share(text: str) -> bool:
    """No percentage above 100.

    >>> is_share("positive, 95%"), is_share("negative"), is_share("950%")
    (True, True, False)
    """
    return all(float(share) <= 100 for share in re.findall(r"(\d+(?:\.\d+)?)\s*%", text))


def is_of_a_body(text: str) -> bool:
    """No lesion of a metre and more.

    >>> is_of_a_body("18 cm"), is_of_a_body("3 x 2 mm"), is_of_a_body("180 cm"), is_of_a_body("1500 mm")
    (True, True, False, False)
    """
    largest = max((float(size) for size in re.findall(r"\d+(?:\.\d+)?", text)), default=0.0)
    return largest < (1000 if re.search(r"(?i)mm\b", text) else 100)


def is_change(text: str) -> bool:
    """A variant with its change, or that there is none.

    >>> [is_change(text) for text in ("BRCA2 c.5946delT", "BRAF V600E", "none detected", "EML4::ALK fusion", "TP53")]
    [True, True, True, True, False]
    """
    return text == "none detected" or HGVS.search(text) is not None or len(text.split()) > 1


def has_gene(text: str) -> bool:
    """A variant with its gene, or that there is none.

    >>> [has_gene(text) for text in ("BRCA2 c.5946delT", "none detected", "EML4::ALK fusion", "c.35G>A", "p.Gly12Asp")]
    [True, True, True, False, False]
    """
    return text == "none detected" or HGVS.match(text) is None


VALIDITY: tuple[ValidityRule, ...] = (
    ValidityRule("grade", lambda text: not is_grade(text), "Invalid grade format"),
    ValidityRule("ihcMarkers", lambda text: not is_receptor(text), "Invalid receptor value", items=("ER", "PR")),
    ValidityRule("ihcMarkers", lambda text: not is_share(text), "A share of more than 100 %"),
    ValidityRule("measurements", lambda text: not has_unit(text), "Measurement missing units"),
    ValidityRule(
        "measurements", lambda text: has_unit(text) and not is_of_a_body(text), "Measurement of more than a metre"
    ),
    ValidityRule("tumorSize", lambda text: not has_unit(text), "Measurement missing units"),
    ValidityRule("msiStatus", lambda text: not is_msi(text), "Invalid MSI status"),
    ValidityRule("tmb", lambda text: not is_tmb(text), "TMB should be numeric"),
    ValidityRule("mutations", lambda text: not is_change(text), "A gene without its change"),
    ValidityRule("mutations", lambda text: not has_gene(text), "A change without its gene"),
)
