"""Learned numbers of the embedded model: ``weights.json``, checked on loading.

Terms are words and pairs of words that several groups of records share, letters only, never names. Each has a weight
for each type; the lexicon's opinion has four weights for all types together, so that no type is favoured by the few
records there are of it. ``training`` makes the file.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator

from evalkit.classification.schema import DocumentType
from evalkit.core.records import StrictRecord, describe_first_error
from evalkit.errors import UsageError

WEIGHTS_FILE = "weights.json"

#: Features of the lexicon: all that it found, each type's share, and the shares at a document's beginning and end.
#: A note that quotes a report begins and ends as a note.
LEXICON_FEATURE_NAMES = ("evidence", "share", "opening", "closing")

MAX_TEMPERATURE = 100.0
"""Temperature at which nothing is believed."""

_Number = Annotated[float, Field(strict=True)]
_Probability = Annotated[float, Field(strict=True, ge=0, le=1)]
_Term = Annotated[str, Field(pattern="^[a-z]+(?: [a-z]+)?$")]
TypeWeights = Annotated[tuple[_Number, ...], Field(min_length=len(DocumentType), max_length=len(DocumentType))]
_LexiconWeights = Annotated[
    tuple[_Number, ...], Field(min_length=len(LEXICON_FEATURE_NAMES), max_length=len(LEXICON_FEATURE_NAMES))
]


class _JoinWeights(StrictRecord):
    """Weights of the signs at a join of two pages, and of the pages' types."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Number]
    types: _Probability


class TermWeights(StrictRecord):
    """Words and word pairs, each with a number a type (``DocumentType`` order)."""

    weights_by_term: dict[_Term, TypeWeights] = Field(alias="terms")

    @cached_property
    def second_words_by_first(self) -> dict[str, frozenset[str]]:
        """First word → the second words of the terms that are pairs."""
        seconds_by_first: dict[str, set[str]] = defaultdict(set)
        for term in self.weights_by_term:
            first, space, second = term.partition(" ")
            if space:
                seconds_by_first[first].add(second)
        return {first: frozenset(seconds) for first, seconds in seconds_by_first.items()}


class EmbeddedModelWeights(TermWeights):
    """The checked contents of ``weights.json``.

    Rows have one number a type, in the order of ``DocumentType``.
    """

    schema_version: Literal[1]
    version: str = Field(min_length=1)
    """The beginning of the numbers' hash."""
    training_group_counts: Mapping[str, Annotated[int, Field(strict=True)]] = Field(alias="learned_from")
    """Number of groups of records of each type."""
    types: tuple[str, ...]
    """The names of the types, in the order of the numbers."""
    bias: TypeWeights
    lexicon_weights: _LexiconWeights = Field(alias="lexicon")
    """One number for each of ``LEXICON_FEATURE_NAMES``."""
    temperature: Annotated[float, Field(strict=True, ge=0.01, le=MAX_TEMPERATURE)]
    """The sums are divided by it: above 1 makes the model less sure than it learned to be."""
    min_probability: _Probability = Field(alias="least")
    """Below this probability the answer is "cannot tell"."""
    max_contradicted_probability: _Probability = Field(alias="contradicts")
    """A type that another program claims is contradicted if it is less probable than this."""
    min_known_share: _Probability = Field(alias="familiar")
    """Share of different words. Texts with fewer known words are believed less."""
    joins: _JoinWeights

    @field_validator("types")
    @classmethod
    def _require_known_types(cls, types: tuple[str, ...]) -> tuple[str, ...]:
        if types != tuple(DocumentType):
            raise ValueError("they are not the five of types.toml in their order")
        return types

    @property
    def transition_weights(self) -> Mapping[str, float]:
        """Weight of each sign at a join of two pages; above 0 for a new document."""
        return self.joins.__pydantic_extra__

    @property
    def page_type_influence(self) -> float:
        """Influence of a page's types on where documents begin, 0 to 1."""
        return self.joins.types


@cache
def load_embedded_weights() -> EmbeddedModelWeights:
    """Load the shipped numbers, once."""
    try:
        data = json.loads((files("evalkit.classification.offline") / WEIGHTS_FILE).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _build_weights_error("the file cannot be read as JSON") from error
    return parse_weights_json(data)


def parse_weights_json(weights_json: Mapping[str, Any]) -> EmbeddedModelWeights:
    """Check the numbers of the JSON object.

    UsageError that names what is wrong with it.
    """
    try:
        return EmbeddedModelWeights.model_validate(weights_json)
    except ValidationError as error:
        raise _build_weights_error(describe_first_error(error)) from error


def _build_weights_error(problem: str) -> UsageError:
    return UsageError(
        f"{WEIGHTS_FILE}: {problem}",
        code="WEIGHTS-ENTRY",
        remedy="Restore the file that came with evalkit, then learn it again (evalkit docs models).",
    )
