"""Fitting of the vocabulary and the types' weights to a training set."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
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
from evalkit.documents.identity.identifier_values import load_given_names

#: Minimum number of groups that share a term of the vocabulary.
MIN_TERM_GROUPS = 4
#: Minimum number of a type's groups with a term that may speak for the type, so that one source's habits do not count.
MIN_TYPE_GROUPS = 3
#: Share of capitalised uses inside of sentences from which a word is a name.
_MIN_NAME_CAPITAL_SHARE = 0.5
_WORD_IN_SENTENCE_PATTERN = re.compile(r"(?<=[\w,;] )([A-Za-z][a-z]+)\b")
_EXCLUDED_TERMS = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
        "mister",
        "miss",
        "mrs",
        "name",
        "usa",
        "utc",
        "doctor",
        "www",
        "com",
        "http",
        "https",
    ]
)
#: Function words; a term of these words alone shows a style, not a type, and is left out.
_STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "after",
        "all",
        "also",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "being",
        "below",
        "but",
        "by",
        "can",
        "could",
        "do",
        "does",
        "done",
        "each",
        "for",
        "from",
        "has",
        "have",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "may",
        "more",
        "most",
        "no",
        "not",
        "of",
        "off",
        "on",
        "or",
        "other",
        "out",
        "over",
        "per",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "this",
        "those",
        "through",
        "to",
        "under",
        "up",
        "upon",
        "us",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "with",
        "within",
        "without",
    ]
)


def find_proper_names(texts: Iterable[str]) -> set[str]:
    """Find words that are mostly capitalised in the middle of a sentence."""
    capital_counts: Counter[str] = Counter()
    lowercase_counts: Counter[str] = Counter()
    for text in texts:
        for match in _WORD_IN_SENTENCE_PATTERN.finditer(text):
            (capital_counts if match[1][0].isupper() else lowercase_counts)[match[1].lower()] += 1
    return {
        word
        for word, count in capital_counts.items()
        if count >= _MIN_NAME_CAPITAL_SHARE * (count + lowercase_counts[word])
    }


def select_vocabulary(
    training_set: TrainingSet, rows: npt.NDArray[np.intp], min_groups: int = MIN_TERM_GROUPS
) -> list[str]:
    """Return the sorted terms that enough groups share and that contain no names."""
    groups_by_term: dict[str, set[str]] = defaultdict(set)
    whole_text_rows = [row for row in rows if training_set.variants[row].name == "whole"]
    for row in whole_text_rows:
        for term in training_set.term_sets[row]:
            groups_by_term[term].add(training_set.variants[row].original.group)
    excluded_words = (
        find_proper_names(training_set.variants[row].text for row in whole_text_rows)
        | load_given_names()
        | _EXCLUDED_TERMS
    )
    return sorted(
        term
        for term, term_groups in groups_by_term.items()
        if len(term_groups) >= min_groups
        and excluded_words.isdisjoint(words := term.split(" "))
        and not _STOP_WORDS.issuperset(words)
        and not any(map(_is_placeholder, words))
    )


def _is_placeholder(word: str) -> bool:
    """Return True if the letters follow each other in the alphabet: ``abc``, ``xyz``."""
    return len(word) > 2 and all(ord(after) - ord(before) == 1 for before, after in pairwise(word))


def mark_unsupported_terms_by_type(
    training_set: TrainingSet, rows: npt.NDArray[np.intp], vocabulary: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Mark terms that less than ``MIN_TYPE_GROUPS`` groups of a type have.

    The array has one row per term, one column per type.
    """
    index_by_term = {term: term_index for term_index, term in enumerate(vocabulary)}
    groups_by_cell: dict[tuple[int, int], set[str]] = defaultdict(set)
    for row in rows:
        if training_set.variants[row].name == "whole":
            for term in training_set.term_sets[row] & index_by_term.keys():
                groups_by_cell[index_by_term[term], int(training_set.true_types[row])].add(
                    training_set.variants[row].original.group
                )
    is_unsupported = np.ones((len(vocabulary), len(DOCUMENT_TYPES)), dtype=bool)
    for (term_index, type_index), groups in groups_by_cell.items():
        is_unsupported[term_index, type_index] = len(groups) < MIN_TYPE_GROUPS
    return is_unsupported


#: Quantile of the training texts' shares of known words; half of that share is ``min_known_share``.
UNFAMILIAR_SHARE = 0.01
#: Minimum absolute weight, for at least one type, of a term that is kept.
MIN_TERM_WEIGHT = 0.005
_RIDGE_TERMS, _RIDGE_BIAS, _RIDGE_LEXICON = 0.1, 10.0, 0.05


class FittedWeights(NamedTuple):
    """Learned weights of lexicon features and terms for each type."""

    lexicon_weights: FloatArray
    bias: FloatArray
    terms: list[str]
    term_weights: FloatArray
    """One row per term, one column per type."""
    min_known_share: float = 0.0
    """Share of known words, 0 to 1, below which scores are damped."""

    def compute_damped_type_sums(self, training_set: TrainingSet, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Compute each type's sum of weights for these variants, damped.

        Sums are smaller for texts of little evidence or few known words. One row per variant, one column per type.
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
    """Fit a multinomial logistic regression with ridge penalty to these variants.

    The lexicon's weights are the same for all types. Variants are weighted by ``compute_row_weights``.
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
        log_probabilities = log_softmax(lexicon_features @ lexicon_part + term_matrix @ term_part + bias_part, axis=1)
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
    """Compute each variant's sums by weights that were learned without its parts.

    The part of a quoted report counts too. Returns the sums, and the weights by the parts that were held out.
    ``trainable_row_mask``: variants that may be learned from; None: all.
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
