"""Training set, fitting and calibration of the built-in model; ``weights.json``."""

import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax, softmax

from evalkit.classification.offline.acts import ActWeights, read_act_of_pages
from evalkit.classification.offline.lexicon import apply_lexicon
from evalkit.classification.offline.model_weights import LEXICON_FEATURE_NAMES, MAX_TEMPERATURE
from evalkit.classification.offline.second_reading import combine_readings
from evalkit.classification.offline.type_scoring import (
    compute_damping_factor,
    compute_familiarity,
    compute_lexicon_features,
    compute_term_weight,
    extract_terms,
)
from evalkit.classification.training.labelled_texts import (
    DOCUMENT_TYPES,
    LabelledText,
    TextVariant,
    build_pages_from_text,
    create_text_variants,
)
from evalkit.documents.identity.identifier_values import load_given_names

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
    """Mark the variants that contain no text from the held-out sources."""
    return np.array([held_out_parts.isdisjoint(variant_parts) for variant_parts in parts_by_variant])


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
    """Mark terms that occur in fewer than ``MIN_TYPE_GROUPS`` groups of a type.

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
    training_set: TrainingSet,
    rows: npt.NDArray[np.intp],
    min_groups: int = MIN_TERM_GROUPS,
    base: FittedWeights | None = None,
) -> FittedWeights:
    """Fit a multinomial logistic regression with ridge penalty to these variants.

    The lexicon's weights are the same for all types. Variants are weighted by ``compute_row_weights``. ``base``: weights
    from which the new ones may differ at a price only; terms that too few groups share keep their base weights. Source:
    Chelba and Acero, Computer Speech & Language 20 (2006), a Gaussian prior around another domain's weights.
    """
    base = base or _create_zero_weights(training_set)
    vocabulary = sorted({*base.terms, *(learned_terms := select_vocabulary(training_set, rows, min_groups))})
    index_by_term = {term: index for index, term in enumerate(vocabulary)}
    base_terms = np.zeros((len(vocabulary), len(DOCUMENT_TYPES)))
    base_terms[[index_by_term[term] for term in base.terms]] = base.term_weights
    learned_indices = np.array([index_by_term[term] for term in learned_terms], dtype=np.intp)
    all_terms = build_term_matrix(training_set, rows, vocabulary)
    term_matrix = all_terms[:, learned_indices]
    transposed = term_matrix.T.tocsr()
    lexicon_features, true_types = training_set.lexicon_features[rows], training_set.true_types[rows]
    base_sums = lexicon_features @ base.lexicon_weights + all_terms @ base_terms + base.bias
    feature_count, type_count = lexicon_features.shape[2], len(DOCUMENT_TYPES)
    target, row_weights = np.eye(type_count)[true_types], compute_row_weights(training_set, rows)

    def compute_loss(loss_parameters: FloatArray) -> tuple[float, FloatArray]:
        lexicon_part, bias_part, term_part = (
            loss_parameters[:feature_count],
            loss_parameters[feature_count : feature_count + type_count],
            loss_parameters[feature_count + type_count :].reshape(-1, type_count),
        )
        log_probabilities = log_softmax(
            base_sums + lexicon_features @ lexicon_part + term_matrix @ term_part + bias_part, axis=1
        )
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

    upper_bounds = np.full(feature_count + type_count + len(learned_terms) * type_count, np.inf)
    upper_bounds[feature_count + type_count :] = np.where(
        mark_unsupported_terms_by_type(training_set, rows, learned_terms), 0.0, np.inf
    ).ravel()
    parameters = minimize(
        compute_loss,
        np.zeros(len(upper_bounds)),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(-np.inf, upper_bounds),
        options={"maxiter": 200},
    ).x
    base_terms[learned_indices] += parameters[feature_count + type_count :].reshape(-1, type_count)
    is_heavy = np.abs(base_terms).max(axis=1, initial=0.0) >= MIN_TERM_WEIGHT
    terms = [term for term, is_kept in zip(vocabulary, is_heavy, strict=True) if is_kept]
    return FittedWeights(
        base.lexicon_weights + parameters[:feature_count],
        base.bias + parameters[feature_count : feature_count + type_count],
        terms,
        base_terms[is_heavy],
        base.min_known_share or _choose_min_known_share(training_set, rows, frozenset(terms)),
    )


def _create_zero_weights(training_set: TrainingSet) -> FittedWeights:
    feature_count, type_count = training_set.lexicon_features.shape[2], len(DOCUMENT_TYPES)
    return FittedWeights(np.zeros(feature_count), np.zeros(type_count), [], np.zeros((0, type_count)))


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
    """Compute each variant's sums by weights learned without its own texts.

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


CANDIDATE_THRESHOLDS = tuple(round(0.4 + 0.05 * step, 2) for step in range(12))
#: Maximum share of wrong answers among those that are probable enough and that the reading of acts does not contradict.
MAX_ERROR_RATE = 0.02
#: Maximum share of right types that the second reading may contradict, as the mean of the types' shares.
MAX_CONTRADICTED_RATE = 0.02


class ProbabilityCalibration(NamedTuple):
    """Temperature, and the probability limits above which a type is reported."""

    temperature: float
    min_probability: float
    max_contradicted_probability: float


class ActJudgements(NamedTuple):
    """Judged types of the text variants: one row per variant, one column per type."""

    probabilities: FloatArray
    """Probability of each type's act; equal for all types if the variant is too short or not a whole text."""
    contradictions: npt.NDArray[np.bool_]
    """True for each type that the text's act contradicts."""


def judge_acts(
    training_set: TrainingSet, select_weights: Callable[[LabelledText], ActWeights | None] = lambda _: None
) -> ActJudgements:
    """Judge which type each whole text is written like.

    ``select_weights`` returns the weights for a text, learned without its source; None: the shipped weights.
    """
    shape = (len(training_set.variants), len(DOCUMENT_TYPES))
    probabilities, contradictions = np.full(shape, 1 / len(DOCUMENT_TYPES)), np.zeros(shape, dtype=bool)
    for row, variant in enumerate(training_set.variants):
        if variant.name == "whole" and (
            reading := read_act_of_pages(build_pages_from_text(variant.text), select_weights(variant.original))
        ):
            probabilities[row] = [reading.probabilities[kind] for kind in DOCUMENT_TYPES]
            contradictions[row] = [reading.contradicts(kind) for kind in DOCUMENT_TYPES]
    return ActJudgements(probabilities, contradictions)


def calibrate_probabilities(
    type_sums: FloatArray,
    training_set: TrainingSet,
    act_judgements: ActJudgements,
    row_mask: npt.NDArray[np.bool_] | None = None,
) -> ProbabilityCalibration:
    """Choose temperature and limits from sums by weights learned without these texts.

    ``row_mask``: variants to use; None: all. The temperature maximises the likelihood of the right types, but is at least
    1. ``min_probability`` is the lowest of ``CANDIDATE_THRESHOLDS`` from which at most ``MAX_ERROR_RATE`` of the answers
    are wrong, counted over whole texts whose answer the reading of acts does not contradict.
    """
    selected_rows = np.ones(len(type_sums), dtype=bool) if row_mask is None else row_mask
    true_types, type_sums = training_set.true_types[selected_rows], type_sums[selected_rows]

    def compute_loss(log_temperature: FloatArray) -> float:
        return -float(
            np.log(
                compute_probabilities(type_sums, math.exp(log_temperature[0]))[np.arange(len(true_types)), true_types]
                + 1e-300
            ).sum()
        )

    temperature = min(
        MAX_TEMPERATURE, max(1.0, math.exp(minimize(compute_loss, np.zeros(1), method="Nelder-Mead").x[0]))
    )
    probability_rows = compute_probabilities(type_sums, temperature)
    is_whole_text = np.array([candidate.name == "whole" for candidate in training_set.variants])[selected_rows]
    answers = probability_rows.argmax(axis=1)
    is_standing = is_whole_text & ~act_judgements.contradictions[selected_rows][np.arange(len(answers)), answers]
    confidences, is_answer_wrong = probability_rows.max(axis=1)[is_standing], (answers != true_types)[is_standing]
    acceptable_thresholds = (
        candidate
        for candidate in CANDIDATE_THRESHOLDS
        if (is_answer_wrong & (confidences >= candidate)).sum() <= MAX_ERROR_RATE * (confidences >= candidate).sum()
    )
    readings = [
        combine_readings(*(dict(zip(DOCUMENT_TYPES, row.tolist(), strict=True)) for row in both))
        for both in zip(
            probability_rows[is_whole_text], act_judgements.probabilities[selected_rows][is_whole_text], strict=True
        )
    ]
    whole_types = true_types[is_whole_text]
    right_probabilities = [
        reading[DOCUMENT_TYPES[kind]] for reading, kind in zip(readings, whole_types.tolist(), strict=True)
    ]
    return ProbabilityCalibration(
        temperature,
        next(acceptable_thresholds, CANDIDATE_THRESHOLDS[-1]),
        _choose_contradiction_limit(np.array(right_probabilities), whole_types),
    )


def _choose_contradiction_limit(right_probabilities: FloatArray, true_types: npt.NDArray[np.intp]) -> float:
    """Choose the highest probability limit that contradicts few right types.

    At most ``MAX_CONTRADICTED_RATE`` of the right types are below the limit, as the mean of the types' shares.
    """
    candidates = [round(0.01 * step, 2) for step in range(91)]
    return max(
        limit
        for limit in candidates
        if np.mean([(right_probabilities[true_types == kind] < limit).mean() for kind in np.unique(true_types)])
        <= MAX_CONTRADICTED_RATE
    )


def compute_probabilities(type_sums: FloatArray, temperature: float) -> FloatArray:
    """Convert sums to probabilities of the types; one row per text."""
    return np.asarray(softmax(type_sums / temperature, axis=1))


def train_model_with_held_out_sums(
    examples: Sequence[LabelledText], transition_weights: Mapping[str, float]
) -> tuple[dict[str, Any], FloatArray, TrainingSet]:
    """Train the built-in model; return the JSON, held-out sums and training set.

    The sums of each variant are computed by weights learned without its fold.
    """
    fold_by_group = assign_folds_to_groups(examples)
    training_set = build_training_set(create_text_variants(examples, fold_by_group))
    type_sums, _ = predict_out_of_fold_sums(
        training_set, list_source_parts_by_variant(training_set, lambda example: fold_by_group[example.group])
    )
    return (
        build_weights_json(
            fit_weights(training_set, np.arange(len(training_set.variants))),
            calibrate_probabilities(type_sums, training_set, judge_acts(training_set)),
            transition_weights,
            examples,
        ),
        type_sums,
        training_set,
    )


def build_weights_json(
    fitted_weights: FittedWeights,
    calibration: ProbabilityCalibration,
    transition_weights: Mapping[str, float],
    counted_examples: Iterable[LabelledText] = (),
    **site_parts: Any,
) -> dict[str, Any]:
    """Build the contents of ``weights.json``, with a version from their hash.

    ``counted_examples`` are used only for the number of groups of each type. ``site_parts``: entries of a site's own
    weights, which replace or follow these.
    """
    group_counts = Counter(
        kind for _, kind in {(example.group, example.document_type.value) for example in counted_examples}
    )
    weights_json: dict[str, Any] = {
        "learned_from": dict(sorted(group_counts.items())),
        "types": [kind.value for kind in DOCUMENT_TYPES],
        "temperature": round(calibration.temperature, 3),
        "least": round(calibration.min_probability, 3),
        "contradicts": round(calibration.max_contradicted_probability, 3),
        "familiar": round(fitted_weights.min_known_share, 3),
        "bias": _round_to_three_decimals(fitted_weights.bias),
        "lexicon": _round_to_three_decimals(fitted_weights.lexicon_weights),
        "joins": {name: round(value, 3) for name, value in transition_weights.items()},
        "terms": {
            term: _round_to_three_decimals(type_weights)
            for term, type_weights in zip(fitted_weights.terms, fitted_weights.term_weights, strict=True)
        },
    } | site_parts
    version = hashlib.sha256(json.dumps(weights_json, sort_keys=True).encode()).hexdigest()[:12]
    return {"schema_version": 1, "version": version} | weights_json


def _round_to_three_decimals(values: FloatArray) -> list[float]:
    return [round(float(value), 3) + 0.0 for value in values]


def format_weights_json(data: Mapping[str, Any]) -> str:
    """Format the contents as JSON with one line per term, for readable diffs."""
    head = json.dumps({key: value for key, value in data.items() if key != "terms"}, indent=1)
    rows = ",\n".join(f"  {json.dumps(term)}: {json.dumps(row)}" for term, row in data["terms"].items())
    return f'{head[:-2]},\n "terms": {{\n{rows}\n }}\n}}\n'
