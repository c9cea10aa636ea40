"""Training of the embedded model and the contents of ``weights.json``."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from evalkit.classification.training.calibration import ProbabilityCalibration, calibrate_probabilities, judge_acts
from evalkit.classification.training.fitting import FittedWeights, fit_weights, predict_out_of_fold_sums
from evalkit.classification.training.labelled_texts import DOCUMENT_TYPES, LabelledText, create_text_variants
from evalkit.classification.training.training_set import (
    FloatArray,
    TrainingSet,
    assign_folds_to_groups,
    build_training_set,
    list_source_parts_by_variant,
)


def train_model_with_held_out_sums(
    examples: Sequence[LabelledText], transition_weights: Mapping[str, float]
) -> tuple[dict[str, Any], FloatArray, TrainingSet]:
    """Train the embedded model; return the JSON, held-out sums and training set.

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
) -> dict[str, Any]:
    """Build the contents of ``weights.json``, with a version from their hash.

    ``counted_examples`` are used only for the number of groups of each type.
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
    }
    version = hashlib.sha256(json.dumps(weights_json, sort_keys=True).encode()).hexdigest()[:12]
    return {"schema_version": 1, "version": version} | weights_json


def _round_to_three_decimals(values: FloatArray) -> list[float]:
    return [round(float(value), 3) + 0.0 for value in values]


def format_weights_json(data: Mapping[str, Any]) -> str:
    """Format the contents as JSON with one line per term, for readable diffs."""
    head = json.dumps({key: value for key, value in data.items() if key != "terms"}, indent=1)
    rows = ",\n".join(f"  {json.dumps(term)}: {json.dumps(row)}" for term, row in data["terms"].items())
    return f'{head[:-2]},\n "terms": {{\n{rows}\n }}\n}}\n'
