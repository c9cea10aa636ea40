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

FILE = "weights.json"

#: How the lexicon is heard: all that it found, whose share that is, and the shares of a document's beginning and end.
#: A note that quotes a report begins and ends as a note.
LEXICON_KINDS = ("evidence", "share", "opening", "closing")

#: What speaks at the join of two pages for or against a new document, and how much the pages' types count in it.
JOINS = "joins"

HOTTEST = 100.0
"""Of temperatures: at it nothing is believed."""

_TERM = re.compile(r"[a-z]+(?: [a-z]+)?")
_KEYS = {
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
Row = tuple[float, ...]


@dataclass(frozen=True)
class Learned:
    """``weights.json``, checked. Rows have one number a type, in the order of ``DocumentType``."""

    version: str
    """Of the numbers: the beginning of their hash."""
    learned_from: Mapping[str, int]
    """How many groups of records of each type."""
    bias: Row
    lexicon: Row
    """One number for each of ``LEXICON_KINDS``."""
    terms: Mapping[str, Row]
    temperature: float
    """The sums are divided by it: above 1 makes the model less sure than it learned to be."""
    least: float
    """Below this probability the answer is "cannot tell"."""
    joins: Mapping[str, float]
    """What each sign at a join of two pages says for a new document, above 0, or against it."""
    page_types: float
    """How much a page's types count in where documents begin, 0 to 1."""

    @cached_property
    def pairs(self) -> dict[str, frozenset[str]]:
        """First word → the second words of the terms that are pairs."""
        found: dict[str, set[str]] = defaultdict(set)
        for term in self.terms:
            first, space, second = term.partition(" ")
            if space:
                found[first].add(second)
        return {first: frozenset(seconds) for first, seconds in found.items()}


@cache
def learned() -> Learned:
    """The shipped numbers, loaded once."""
    try:
        data = json.loads((files("evalkit.classification") / FILE).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _wrong("the file", "cannot be read as JSON") from error
    return parse_learned(data)


def parse_learned(data: Mapping[str, Any]) -> Learned:
    """The numbers that the JSON object holds. UsageError naming what is wrong with it."""
    if not isinstance(data, Mapping):
        raise _wrong("the file", "is no JSON object")
    if missing := sorted(_KEYS - data.keys()):
        raise _wrong("the file", f"lacks {', '.join(missing)}")
    if unknown := sorted(data.keys() - _KEYS):
        raise _wrong("the file", f"has the unknown key {', '.join(unknown)}")
    if data["schema_version"] != 1:
        raise _wrong("schema_version", f"is {data['schema_version']!r}, and only 1 can be read")
    if data["types"] != [kind.value for kind in DocumentType]:
        raise _wrong("types", "are not the five of types.toml in their order")
    if not isinstance(data["version"], str) or not data["version"]:
        raise _wrong("version", "is no text")
    terms = _mapping("terms", data["terms"])
    for term in terms:
        if not _TERM.fullmatch(term):
            raise _wrong(f"term {term!r}", "is not one or two words of small letters")
    return Learned(
        version=data["version"],
        learned_from={
            kind: int(_number(f"learned_from {kind!r}", n))
            for kind, n in _mapping("learned_from", data["learned_from"]).items()
        },
        bias=_row("bias", data["bias"], len(DocumentType)),
        lexicon=_row("lexicon", data["lexicon"], len(LEXICON_KINDS)),
        terms={term: _row(f"term {term!r}", row, len(DocumentType)) for term, row in terms.items()},
        temperature=_within("temperature", data["temperature"], 0.01, HOTTEST),
        least=_within("least", data["least"], 0, 1),
        joins={
            name: _number(f"join {name!r}", value)
            for name, value in _mapping(JOINS, data[JOINS]).items()
            if name != "types"
        },
        page_types=_within("join 'types'", _mapping(JOINS, data[JOINS]).get("types"), 0, 1),
    )


def _wrong(where: str, what: str) -> UsageError:
    return UsageError(
        f"{FILE}: {where} {what}",
        code="WEIGHTS-ENTRY",
        remedy="Restore the file that came with evalkit, then learn it again (README: the built-in model).",
    )


def _mapping(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(where, "is no JSON object")
    return value


def _number(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(where, f"is {value!r}, which is no number")
    return float(value)


def _within(where: str, value: Any, low: float, high: float) -> float:
    if not low <= (number := _number(where, value)) <= high:
        raise _wrong(where, f"is {number:g}, which is not from {low:g} to {high:g}")
    return number


def _row(where: str, value: Any, length: int) -> Row:
    if not isinstance(value, list) or len(value) != length:
        raise _wrong(where, f"has not {length} numbers")
    return tuple(_number(where, one) for one in value)
