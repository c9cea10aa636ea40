"""Validation texts that new weights must still read: ``guard.json``, features without a text.

The texts are invented. Of each, the file holds the type, the lexicon's features and the numbers of its terms in the
sorted vocabulary of the shipped weights, so that weights which have forgotten what they knew are noticed at any site.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from evalkit.classification.offline.model_weights import (
    LEXICON_FEATURE_NAMES,
    EmbeddedModelWeights,
    load_shipped_weights,
)
from evalkit.classification.offline.type_scoring import ClassificationScores, combine_page_scores, read_page_for_scoring
from evalkit.classification.schema import DocumentType
from evalkit.classification.training.labelled_texts import DOCUMENT_TYPES, LabelledText, build_pages_from_text

GUARD_FILE = "guard.json"


class GuardErrors(NamedTuple):
    """Number of validation texts, and of those whose likeliest type is wrong."""

    texts: int
    errors: int


def build_guard(labelled_texts: Iterable[LabelledText]) -> dict[str, Any]:
    """Build the contents of ``guard.json`` from texts, by the shipped weights."""
    weights = load_shipped_weights()
    number_by_term = {term: number for number, term in enumerate(sorted(weights.weights_by_term))}
    rows = []
    for text in labelled_texts:
        scores = combine_page_scores(
            [read_page_for_scoring(page, weights) for page in build_pages_from_text(text.text)]
        )
        features = [[round(value, 3) for value in scores.lexicon_features[name]] for name in LEXICON_FEATURE_NAMES]
        terms = sorted(number_by_term[term] for term in scores.terms)
        rows.append([DOCUMENT_TYPES.index(text.document_type), scores.unknown_word_count, features, terms])
    return {"schema_version": 1, "weights": weights.version, "texts": rows}


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
    """Count the validation texts whose likeliest type is wrong by these weights."""
    rows = _load_guard()
    errors = 0
    for document_type, unknown_count, features, terms in rows:
        known_terms = tuple(term for term in terms if term in weights.weights_by_term)
        lexicon_scores = {
            kind: math.expm1(value) for kind, value in zip(DocumentType, features["evidence"], strict=True)
        }
        scores = ClassificationScores(lexicon_scores, features, known_terms, unknown_count, weights)
        errors += scores.types_by_probability[0] is not document_type
    return GuardErrors(len(rows), errors)
