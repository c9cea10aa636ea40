"""Learned weights of the built-in model: ``weights.json``, checked on loading.

Terms are words and pairs of words that several groups of training records share, letters only, never names. Each term
has a weight for each type. The lexicon's features have four weights that are the same for all types, so that a type
with few training records is not favoured. ``training`` makes the file. A site's own weights have the same form, and
the letterheads that the site has seen.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator

from evalkit.core.grouping import group_pairs
from evalkit.core.records import StrictRecord, describe_first_error
from evalkit.document_types import FIVE_TYPES
from evalkit.errors import UsageError

WEIGHTS_FILE = "weights.json"

#: Features of the lexicon: the amount of evidence, each type's share of it, and the shares at a document's beginning
#: and end, because a note that quotes a report begins and ends as a note.
LEXICON_FEATURE_NAMES = ("evidence", "share", "opening", "closing")

#: Highest temperature; the probabilities of the types are then nearly equal.
MAX_TEMPERATURE = 100.0

#: Name of the bias among the adjustments of ``acts``.
ACT_BIAS = "bias"

_Number = Annotated[float, Field(strict=True)]
_Probability = Annotated[float, Field(strict=True, ge=0, le=1)]
_Term = Annotated[str, Field(pattern="^[a-z]+(?: [a-z]+)?$")]
TypeWeights = Annotated[tuple[_Number, ...], Field(min_length=len(FIVE_TYPES), max_length=len(FIVE_TYPES))]
_LexiconWeights = Annotated[
    tuple[_Number, ...], Field(min_length=len(LEXICON_FEATURE_NAMES), max_length=len(LEXICON_FEATURE_NAMES))
]


def add_type_weights(first: Sequence[float], second: Sequence[float]) -> tuple[float, ...]:
    """Add two rows of type weights.

    >>> add_type_weights((1.0, 2.0), (0.5, -2.0))
    (1.5, 0.0)
    """
    return tuple(round(weight + added, 3) for weight, added in zip(first, second, strict=True))


class _JoinWeights(StrictRecord):
    """Weights of the signs at a page break, and the influence of the pages' types."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Number]
    types: _Probability


class TermWeights(StrictRecord):
    """Weights of words and word pairs, one number for each type.

    In the order of ``FIVE_TYPES``.
    """

    weights_by_term: dict[_Term, TypeWeights] = Field(alias="terms")

    @cached_property
    def second_words_by_first(self) -> dict[str, frozenset[str]]:
        """First word of a word pair → second words of all pairs with this first word."""
        pairs = (term.partition(" ") for term in self.weights_by_term)
        seconds_by_first = group_pairs((first, second) for first, space, second in pairs if space)
        return {first: frozenset(seconds) for first, seconds in seconds_by_first.items()}


class EmbeddedModelWeights(TermWeights):
    """Checked contents of ``weights.json``.

    A ``TypeWeights`` has one number for each type, in the order of ``FIVE_TYPES``.
    """

    schema_version: Literal[1]
    version: str = Field(min_length=1)
    """First digits of the hash of all weights."""
    training_group_counts: Mapping[str, Annotated[int, Field(strict=True)]] = Field(alias="learned_from")
    """Document type → number of groups of training records."""
    types: tuple[str, ...]
    """Names of the types in the order of the weights: that of ``FIVE_TYPES``."""
    bias: TypeWeights
    lexicon_weights: _LexiconWeights = Field(alias="lexicon")
    """One weight for each of ``LEXICON_FEATURE_NAMES``."""
    temperature: Annotated[float, Field(strict=True, ge=0.01, le=MAX_TEMPERATURE)]
    """Divisor of the types' sums; above 1 makes the probabilities less extreme."""
    min_probability: _Probability = Field(alias="least")
    """Lowest probability at which a type is named; below it the answer is "cannot tell"."""
    max_contradicted_probability: _Probability = Field(alias="contradicts")
    """Another program's type is contradicted if it is less probable than this."""
    min_known_share: _Probability = Field(alias="familiar")
    """Share of a text's different words that must be known; below it the scores are damped."""
    joins: _JoinWeights
    letterhead_salt: str = ""
    """Salt of the keys of ``weights_by_letterhead``."""
    weights_by_letterhead: dict[str, TypeWeights] = Field(default_factory=dict, alias="letterheads")
    """Key of a line of page furniture (``letterheads``) → log odds of each type; empty in the shipped weights."""
    act_adjustments: dict[str, TypeWeights] = Field(default_factory=dict, alias="acts")
    """Feature of ``acts``, or ``ACT_BIAS`` → what a site adds to its weights; empty in the shipped weights."""

    @field_validator("types")
    @classmethod
    def _require_known_types(cls, types: tuple[str, ...]) -> tuple[str, ...]:
        if types != FIVE_TYPES:
            raise ValueError("must list the five document types in the order of types.toml")
        return types

    @property
    def transition_weights(self) -> Mapping[str, float]:
        """Sign at a page break → weight (log odds), above 0 for a new document."""
        return self.joins.__pydantic_extra__

    @property
    def page_type_influence(self) -> float:
        """Influence (0 to 1) of the pages' types on where documents begin."""
        return self.joins.types


#: Weights of a site, which are used instead of the shipped ones.
_SITE_WEIGHTS: ContextVar[EmbeddedModelWeights | None] = ContextVar("a site's weights", default=None)


def load_embedded_weights() -> EmbeddedModelWeights:
    """Return the site's weights within ``use_site_weights``, else evalkit's own."""
    return get_site_weights() or load_shipped_weights()


def get_site_weights() -> EmbeddedModelWeights | None:
    """Return the site's weights in use; None if evalkit's own weights are used."""
    return _SITE_WEIGHTS.get()


@contextmanager
def use_site_weights(site_weights: EmbeddedModelWeights | None) -> Iterator[None]:
    """Use a site's weights (None: evalkit's own) in this task and tasks it starts."""
    token = _SITE_WEIGHTS.set(site_weights)
    try:
        yield
    finally:
        _SITE_WEIGHTS.reset(token)


@cache
def load_shipped_weights() -> EmbeddedModelWeights:
    """Load ``weights.json``, which comes with evalkit; cached.

    UsageError if the file is damaged.
    """
    try:
        data = json.loads((files("evalkit.classification.offline") / WEIGHTS_FILE).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _build_weights_error("the file cannot be read as JSON") from error
    return parse_weights_json(data)


def parse_weights_json(weights_json: Mapping[str, Any]) -> EmbeddedModelWeights:
    """Convert the contents of ``weights.json`` to checked weights.

    UsageError that names the wrong entry.
    """
    try:
        return EmbeddedModelWeights.model_validate(weights_json)
    except ValidationError as error:
        raise _build_weights_error(describe_first_error(error)) from error


def _build_weights_error(problem: str) -> UsageError:
    return UsageError(
        f"{WEIGHTS_FILE}: {problem}",
        code="WEIGHTS-ENTRY",
        remedy="Reinstall evalkit to restore the file, or train the weights again (see evalkit docs models).",
    )
