"""Calibration of the temperature and of the probabilities that decide an answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import softmax

from evalkit.classification.offline.acts import ActWeights, read_act_of_pages
from evalkit.classification.offline.model_weights import MAX_TEMPERATURE
from evalkit.classification.offline.second_reading import combine_readings
from evalkit.classification.training.labelled_texts import DOCUMENT_TYPES, LabelledText, build_pages_from_text
from evalkit.classification.training.training_set import FloatArray, TrainingSet

CANDIDATE_THRESHOLDS = tuple(round(0.4 + 0.05 * step, 2) for step in range(12))
#: Maximum share of wrong answers among those that are probable enough and that the reading of acts does not contradict.
MAX_ERROR_RATE = 0.02
#: Maximum share of right types that the second reading may contradict, as the mean of the types' shares.
MAX_CONTRADICTED_RATE = 0.02


class ProbabilityCalibration(NamedTuple):
    """Temperature, and the probabilities that decide if a type is named."""

    temperature: float
    min_probability: float
    max_contradicted_probability: float


class ActJudgements(NamedTuple):
    """Acts of the text variants: arrays with one row per variant, one column per type."""

    probabilities: FloatArray
    """Probability of each type's act; equal for all types if the variant is too short or not a whole text."""
    contradictions: npt.NDArray[np.bool_]
    """True for each type that the text's act contradicts."""


def judge_acts(
    training_set: TrainingSet, select_weights: Callable[[LabelledText], ActWeights | None] = lambda _: None
) -> ActJudgements:
    """Judge the acts of all variants that are whole texts.

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
