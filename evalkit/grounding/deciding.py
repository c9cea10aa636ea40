"""The words that decide, ``difference.toml``: by kind, and what turns or frames a clause."""

from __future__ import annotations

import tomllib
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from evalkit.grounding.tokens import key


class Kind(StrEnum):
    """What a difference is about."""

    NUMBER = "number"
    DECIMAL = "decimal point"
    DATE = "date"
    UNIT = "unit"
    COMPARATOR = "comparator"
    NEGATION = "negation"
    MODAL = "degree of certainty"
    LATERALITY = "side or site"
    POLARITY = "finding"
    PATHOGENICITY = "pathogenicity"
    GENE = "gene or variant"
    NAME = "name or code"
    WORD = "word"
    DIVISION = "division into words"


_NAMED = {
    "negation": Kind.NEGATION,
    "polarity": Kind.POLARITY,
    "modal": Kind.MODAL,
    "laterality": Kind.LATERALITY,
    "pathogenicity": Kind.PATHOGENICITY,
    "gene or variant": Kind.GENE,
    "unit": Kind.UNIT,
    "comparator": Kind.COMPARATOR,
    "date": Kind.DATE,
    "number": Kind.NUMBER,
}


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads((files("evalkit.grounding") / "difference.toml").read_text("utf-8"))


@cache
def kinds() -> dict[str, Kind]:
    """The kind of each folded word that decides."""
    found: dict[str, Kind] = {}
    for row in _data()["kind"]:
        for word in row["words"]:
            found.setdefault(key(word), _NAMED[row["name"]])
    return found


@cache
def words(table: str, name: str = "words") -> frozenset[str]:
    """A list of another table: words, or phrases of up to three with one space between."""
    return frozenset(_data()[table][name])


def data_version() -> str:
    """Part of every fingerprint."""
    return str(_data()["version"])
