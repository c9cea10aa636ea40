"""Training set: features of all text variants as arrays."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from evalkit.classification.offline.lexicon import apply_lexicon
from evalkit.classification.offline.model_weights import LEXICON_FEATURE_NAMES
from evalkit.classification.offline.type_scoring import compute_lexicon_features, compute_term_weight, extract_terms
from evalkit.classification.training.labelled_texts import (
    DOCUMENT_TYPES,
    LabelledText,
    TextVariant,
    build_pages_from_text,
)

FloatArray = npt.NDArray[np.float64]
FOLDS = 5
SourceParts = frozenset[Hashable]


@dataclass(frozen=True)
class TrainingSet:
    """Text variants with their features and types."""

    variants: Sequence[TextVariant]
    lexicon_features: FloatArray
    """Array of shape (variants, types, ``LEXICON_FEATURE_NAMES``)."""
    term_sets: Sequence[frozenset[str]]
    true_types: npt.NDArray[np.intp]


def assign_folds_to_groups(labelled_texts: Iterable[LabelledText], fold_count: int = FOLDS) -> dict[str, int]:
    """Assign each group to a fold, so that each type is spread evenly over the folds.

    Deterministic: equal groups give equal folds.
    """
    type_by_group = {example.group: example.document_type.value for example in labelled_texts}
    ordered_groups = sorted(
        type_by_group, key=lambda group: (type_by_group[group], hashlib.sha256(group.encode()).hexdigest())
    )
    return {group: number % fold_count for number, group in enumerate(ordered_groups)}


def build_training_set(text_variants: Sequence[TextVariant]) -> TrainingSet:
    """Compute the features of all variants."""
    feature_rows, term_sets = [], []
    for variant in text_variants:
        pages = build_pages_from_text(variant.text)
        _, features = compute_lexicon_features([apply_lexicon(page) for page in pages])
        feature_rows.append([features[kind] for kind in LEXICON_FEATURE_NAMES])
        term_sets.append(frozenset(term.text for page in pages for term in extract_terms(page.text)))
    return TrainingSet(
        text_variants,
        np.array(feature_rows).transpose(0, 2, 1),
        term_sets,
        np.array([DOCUMENT_TYPES.index(text_variant.original.document_type) for text_variant in text_variants]),
    )


def build_term_matrix(training_set: TrainingSet, rows: npt.NDArray[np.intp], vocabulary: Sequence[str]) -> csr_matrix:
    """Build the sparse matrix of term weights: a row per variant, a column per term.

    The weights are those of ``type_scoring.compute_term_weight``.
    """
    index_by_term = {term: term_index for term_index, term in enumerate(vocabulary)}
    indices_by_row = [
        sorted(index_by_term[term] for term in training_set.term_sets[row] if term in index_by_term) for row in rows
    ]
    starts = np.cumsum([0, *map(len, indices_by_row)])
    weights = [compute_term_weight(len(term_indices)) for term_indices in indices_by_row for _ in term_indices]
    return csr_matrix(
        (weights, [term_index for term_indices in indices_by_row for term_index in term_indices], starts),
        shape=(len(indices_by_row), len(vocabulary)),
    )


def compute_row_weights(training_set: TrainingSet, rows: npt.NDArray[np.intp]) -> FloatArray:
    """Compute the training weight of each variant; the mean is 1.

    Groups have equal weights within a type; a type's total weight grows with the square root of its number of groups.
    """
    groups = [training_set.variants[row].original.group for row in rows]
    group_sizes = Counter(groups)
    # a group with records of several types counts for each of these types
    type_counts = Counter(kind for _, kind in set(zip(groups, training_set.true_types[rows].tolist(), strict=True)))
    row_weights = np.array(
        [
            1 / group_sizes[group] / math.sqrt(type_counts[kind])
            for group, kind in zip(groups, training_set.true_types[rows], strict=True)
        ]
    )
    return np.asarray(row_weights / row_weights.mean())


def list_source_parts_by_variant(
    training_set: TrainingSet, get_part: Callable[[LabelledText], Hashable]
) -> list[SourceParts]:
    """Return for each variant the parts of its own text and of the quoted report.

    ``get_part`` maps a text to its part, such as its fold or source.
    """
    return [
        frozenset(
            get_part(labelled_text) for labelled_text in (variant.original, variant.quoted_report) if labelled_text
        )
        for variant in training_set.variants
    ]


def mark_independent_rows(
    parts_by_variant: Sequence[SourceParts], held_out_parts: SourceParts
) -> npt.NDArray[np.bool_]:
    """Mark the variants that contain no text of the held-out parts."""
    return np.array([held_out_parts.isdisjoint(variant_parts) for variant_parts in parts_by_variant])
