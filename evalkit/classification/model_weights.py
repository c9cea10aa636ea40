"""What the embedded model has learned: numbers in ``weights.json``, checked on loading.

Terms are words and pairs of words that several groups of records share, letters only, never names. Each has a weight
for each type; the lexicon's opinion has four weights for all types together, so that no type is favoured by the few
records there are of it. ``learning.py`` makes the file.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from evalkit.classification.schema import DocumentType
from evalkit.errors import UsageError

WEIGHTS_FILE = "weights.json"

#: How the lexicon is heard: all that it found, whose share that is, and the shares of a document's beginning and end.
#: A note that quotes a report begins and ends as a note.
LEXICON_FEATURE_NAMES = ("evidence", "share", "opening", "closing")

#: What speaks at the join of two pages for or against a new document, and how much the pages' types count in it.
JOINS_KEY = "joins"

MAX_TEMPERATURE = 100.0
"""Of temperatures: at it nothing is believed."""

_TERM_PATTERN = re.compile(r"[a-z]+(?: [a-z]+)?")
_REQUIRED_KEYS = {
    "schema_version",
    "version",
    "learned_from",
    "bias",
    "lexicon",
    "temperature",
    "least",
    "joins",
    "types",
    "terms",
}
TypeWeights = tuple[float, ...]


@dataclass(frozen=True)
class ModelWeights:
    """``weights.json``, checked. Rows have one number a type, in the order of ``DocumentType``."""

    version: str
    """Of the numbers: the beginning of their hash."""
    training_group_counts: Mapping[str, int]
    """How many groups of records of each type."""
    bias: TypeWeights
    lexicon_weights: TypeWeights
    """One number for each of ``LEXICON_FEATURE_NAMES``."""
    weights_by_term: Mapping[str, TypeWeights]
    temperature: float
    """The sums are divided by it: above 1 makes the model less sure than it learned to be."""
    min_probability: float
    """Below this probability the answer is "cannot tell"."""
    join_weights: Mapping[str, float]
    """What each sign at a join of two pages says for a new document, above 0, or against it."""
    page_type_strength: float
    """How much a page's types count in where documents begin, 0 to 1."""

    @cached_property
    def second_words(self) -> dict[str, frozenset[str]]:
        """First word → the second words of the terms that are pairs."""
        seconds_by_first: dict[str, set[str]] = defaultdict(set)
        for term in self.weights_by_term:
            first, space, second = term.partition(" ")
            if space:
                seconds_by_first[first].add(second)
        return {first: frozenset(seconds) for first, seconds in seconds_by_first.items()}


@cache
def load_model_weights() -> ModelWeights:
    """The shipped numbers, loaded once."""
    try:
        data = json.loads((files("evalkit.classification") / WEIGHTS_FILE).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _build_weights_error("the file", "cannot be read as JSON") from error
    return parse_model_weights(data)


def parse_model_weights(data: Mapping[str, Any]) -> ModelWeights:
    """The numbers that the JSON object holds. UsageError naming what is wrong with it."""
    if not isinstance(data, Mapping):
        raise _build_weights_error("the file", "is no JSON object")
    if missing := sorted(_REQUIRED_KEYS - data.keys()):
        raise _build_weights_error("the file", f"lacks {', '.join(missing)}")
    if unknown := sorted(data.keys() - _REQUIRED_KEYS):
        raise _build_weights_error("the file", f"has the unknown key {', '.join(unknown)}")
    if data["schema_version"] != 1:
        raise _build_weights_error("schema_version", f"is {data['schema_version']!r}, and only 1 can be read")
    if data["types"] != [kind.value for kind in DocumentType]:
        raise _build_weights_error("types", "are not the five of types.toml in their order")
    if not isinstance(data["version"], str) or not data["version"]:
        raise _build_weights_error("version", "is no text")
    terms = _require_mapping("terms", data["terms"])
    for term in terms:
        if not _TERM_PATTERN.fullmatch(term):
            raise _build_weights_error(f"term {term!r}", "is not one or two words of small letters")
    return ModelWeights(
        version=data["version"],
        training_group_counts={
            kind: int(_require_number(f"learned_from {kind!r}", group_count))
            for kind, group_count in _require_mapping("learned_from", data["learned_from"]).items()
        },
        bias=_require_weights("bias", data["bias"], len(DocumentType)),
        lexicon_weights=_require_weights("lexicon", data["lexicon"], len(LEXICON_FEATURE_NAMES)),
        weights_by_term={
            term: _require_weights(f"term {term!r}", weights, len(DocumentType)) for term, weights in terms.items()
        },
        temperature=_require_in_range("temperature", data["temperature"], 0.01, MAX_TEMPERATURE),
        min_probability=_require_in_range("least", data["least"], 0, 1),
        join_weights={
            name: _require_number(f"join {name!r}", value)
            for name, value in _require_mapping(JOINS_KEY, data[JOINS_KEY]).items()
            if name != "types"
        },
        page_type_strength=_require_in_range(
            "join 'types'", _require_mapping(JOINS_KEY, data[JOINS_KEY]).get("types"), 0, 1
        ),
    )


def _build_weights_error(location: str, problem: str) -> UsageError:
    return UsageError(
        f"{WEIGHTS_FILE}: {location} {problem}",
        code="WEIGHTS-ENTRY",
        remedy="Restore the file that came with evalkit, then learn it again (README: the built-in model).",
    )


def _require_mapping(location: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _build_weights_error(location, "is no JSON object")
    return value


def _require_number(location: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _build_weights_error(location, f"is {value!r}, which is no number")
    return float(value)


def _require_in_range(location: str, value: Any, low: float, high: float) -> float:
    if not low <= (number := _require_number(location, value)) <= high:
        raise _build_weights_error(location, f"is {number:g}, which is not from {low:g} to {high:g}")
    return number


def _require_weights(location: str, value: Any, length: int) -> TypeWeights:
    if not isinstance(value, list) or len(value) != length:
        raise _build_weights_error(location, f"has not {length} numbers")
    return tuple(_require_number(location, number) for number in value)
