"""Validation texts that new weights must still classify right (``guard.json``).

The texts are invented. Of each, the file holds the type, the lexicon's features and the numbers of its terms in the
sorted vocabulary of the shipped weights, so that weights which have forgotten what they knew are noticed at any site. ``tests/benchmarks/guard.py`` writes the file.
"""

import json
import math
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from evalkit.classification.offline.model_weights import (
    LEXICON_FEATURE_NAMES,
    EmbeddedModelWeights,
    load_shipped_weights,
)
from evalkit.classification.offline.type_scoring import ClassificationScores
from evalkit.classification.schema import DocumentType
from evalkit.classification.training.labelled_texts import DOCUMENT_TYPES
from evalkit.document_types import FIVE_TYPES

GUARD_FILE = "guard.json"


class GuardErrors(NamedTuple):
    """Number of validation texts, and how many of them are classified wrong."""

    texts: int
    errors: int


@cache
def _load_guard() -> tuple[tuple[DocumentType, int, dict[str, tuple[float, ...]], tuple[str, ...]], ...]:
    stored = json.loads((files("evalkit.classification.training") / GUARD_FILE).read_text("utf-8"))
    vocabulary = sorted(load_shipped_weights().weights_by_term)
    return tuple(
        (
            DOCUMENT_TYPES[type_index],
            unknown_count,
            dict(zip(LEXICON_FEATURE_NAMES, map(tuple, features), strict=True)),
            tuple(vocabulary[number] for number in terms),
        )
        for type_index, unknown_count, features, terms in stored["texts"]
    )


def count_guard_errors(weights: EmbeddedModelWeights) -> GuardErrors:
    """Count the validation texts that these weights classify wrong."""
    rows = _load_guard()
    errors = 0
    for document_type, unknown_count, features, terms in rows:
        known_terms = tuple(term for term in terms if term in weights.weights_by_term)
        lexicon_scores = {kind: math.expm1(value) for kind, value in zip(FIVE_TYPES, features["evidence"], strict=True)}
        scores = ClassificationScores(lexicon_scores, features, known_terms, unknown_count, weights)
        errors += scores.types_by_probability[0] is not document_type
    return GuardErrors(len(rows), errors)
