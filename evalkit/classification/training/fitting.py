"""Weights of the types, fitted to a training set."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, minimize
from scipy.special import log_softmax

from evalkit.classification.offline.model_weights import LEXICON_FEATURE_NAMES
from evalkit.classification.offline.type_scoring import compute_damping_factor, compute_familiarity
from evalkit.classification.training.labelled_texts import DOCUMENT_TYPES
from evalkit.classification.training.training_set import (
    FloatArray,
    SourceParts,
    TrainingSet,
    build_term_matrix,
    compute_row_weights,
    mark_independent_rows,
)
from evalkit.classification.training.vocabulary import (
    MIN_TERM_GROUPS,
    mark_unsupported_terms_by_type,
    select_vocabulary,
)

UNFAMILIAR_SHARE = 0.01
"""So many of the learned texts are unlike the others: half as many known words as the rest has are still believed in full."""
MIN_TERM_WEIGHT = 0.005
"""Terms that weigh less for every type are left out."""
_RIDGE_TERMS, _RIDGE_BIAS, _RIDGE_LEXICON = 0.1, 10.0, 0.05


class FittedWeights(NamedTuple):
    """Learned weights of the types."""

    lexicon_weights: FloatArray
    bias: FloatArray
    terms: list[str]
    term_weights: FloatArray
    """One row a term, one column a type."""
    min_known_share: float = 0.0
    """Share of known words, 0 to 1, that nearly all learned texts have."""

    def compute_damped_type_sums(self, training_set: TrainingSet, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Compute the damped sums of each type for these variants.

        Damped for texts of little evidence or few known words.
        """
        raw_sums = (
            training_set.lexicon_features[rows] @ self.lexicon_weights
            + build_term_matrix(training_set, rows, self.terms) @ self.term_weights
            + self.bias
        )
        evidence = np.expm1(training_set.lexicon_features[rows, :, LEXICON_FEATURE_NAMES.index("evidence")]).sum(axis=1)
        known_terms = frozenset(self.terms)
        familiarities = [
            compute_familiarity(*_count_known_words(training_set.term_sets[row], known_terms), self.min_known_share)
            for row in rows
        ]
        dampings = [compute_damping_factor(total) for total in evidence.tolist()]
        return np.asarray(raw_sums * np.multiply(dampings, familiarities)[:, None])


def _count_known_words(terms: AbstractSet[str], known_terms: AbstractSet[str]) -> tuple[int, int]:
    words = {term for term in terms if " " not in term}
    return len(words & known_terms), len(words)


def fit_weights(
    training_set: TrainingSet, rows: npt.NDArray[np.intp], min_groups: int = MIN_TERM_GROUPS
) -> FittedWeights:
    """Fit a multinomial logistic regression.

    The lexicon's weights are the same for all types.

    Groups weigh the same within their type, for any number of variants; types by the root of their groups.
    """
    vocabulary = select_vocabulary(training_set, rows, min_groups)
    term_matrix = build_term_matrix(training_set, rows, vocabulary)
    transposed = term_matrix.T.tocsr()
    lexicon_features, true_types = training_set.lexicon_features[rows], training_set.true_types[rows]
    feature_count, type_count = lexicon_features.shape[2], len(DOCUMENT_TYPES)
    target, row_weights = np.eye(type_count)[true_types], compute_row_weights(training_set, rows)

    def compute_loss(loss_parameters: FloatArray) -> tuple[float, FloatArray]:
        lexicon_part, bias_part, term_part = (
            loss_parameters[:feature_count],
            loss_parameters[feature_count : feature_count + type_count],
            loss_parameters[feature_count + type_count :].reshape(-1, type_count),
        )
        type_sums = lexicon_features @ lexicon_part + term_matrix @ term_part + bias_part
        log_probabilities = log_softmax(type_sums, axis=1)
        errors = (np.exp(log_probabilities) - target) * row_weights[:, None]
        loss_sum = -(row_weights * (log_probabilities * target).sum(axis=1)).sum()
        loss_sum += (
            _RIDGE_LEXICON * (lexicon_part @ lexicon_part)
            + _RIDGE_BIAS * (bias_part @ bias_part)
            + _RIDGE_TERMS * (term_part * term_part).sum()
        ) / 2
        gradients = (
            np.einsum("ij,ijk->k", errors, lexicon_features) + _RIDGE_LEXICON * lexicon_part,
            errors.sum(axis=0) + _RIDGE_BIAS * bias_part,
            (transposed @ errors + _RIDGE_TERMS * term_part).ravel(),
        )
        return float(loss_sum), np.concatenate(gradients)

    upper_bounds = np.full(feature_count + type_count + len(vocabulary) * type_count, np.inf)
    upper_bounds[feature_count + type_count :] = np.where(
        mark_unsupported_terms_by_type(training_set, rows, vocabulary), 0.0, np.inf
    ).ravel()
    parameters = minimize(
        compute_loss,
        np.zeros(len(upper_bounds)),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(-np.inf, upper_bounds),
        options={"maxiter": 200},
    ).x
    term_weights = parameters[feature_count + type_count :].reshape(-1, type_count)
    is_heavy = np.abs(term_weights).max(axis=1, initial=0.0) >= MIN_TERM_WEIGHT
    terms = [term for term, is_kept in zip(vocabulary, is_heavy, strict=True) if is_kept]
    return FittedWeights(
        parameters[:feature_count],
        parameters[feature_count : feature_count + type_count],
        terms,
        term_weights[is_heavy],
        _choose_min_known_share(training_set, rows, frozenset(terms)),
    )


def _choose_min_known_share(
    training_set: TrainingSet, rows: npt.NDArray[np.intp], known_terms: AbstractSet[str]
) -> float:
    word_counts = [
        _count_known_words(training_set.term_sets[row], known_terms)
        for row in rows
        if training_set.variants[row].name == "whole"
    ]
    known_shares = [known_count / word_count for known_count, word_count in word_counts if word_count]
    return float(np.quantile(known_shares, UNFAMILIAR_SHARE)) / 2 if known_shares else 0.0


def predict_out_of_fold_sums(
    training_set: TrainingSet,
    parts_by_variant: Sequence[SourceParts],
    trainable_row_mask: npt.NDArray[np.bool_] | None = None,
) -> tuple[FloatArray, dict[SourceParts, FittedWeights]]:
    """Predict each variant's sums by a model that learned none of its parts.

    Quoted parts count as well. Returns the sums and those models.

    ``trainable_row_mask``: which variants may be learned from; None: all.
    """
    allowed_rows = np.ones(len(parts_by_variant), dtype=bool) if trainable_row_mask is None else trainable_row_mask
    type_sums = np.zeros((len(parts_by_variant), len(DOCUMENT_TYPES)))
    weights_by_parts: dict[SourceParts, FittedWeights] = {}
    for held_out_parts in dict.fromkeys(parts_by_variant):
        weights_by_parts[held_out_parts] = fit_weights(
            training_set, np.flatnonzero(mark_independent_rows(parts_by_variant, held_out_parts) & allowed_rows)
        )
        held_out_rows = np.array(
            [row for row, variant_parts in enumerate(parts_by_variant) if variant_parts == held_out_parts]
        )
        type_sums[held_out_rows] = weights_by_parts[held_out_parts].compute_damped_type_sums(
            training_set, held_out_rows
        )
    return type_sums, weights_by_parts
