"""Learn how reports and notes speak: the weights of ``evalkit.classification.offline.acts``.

    cd tests && ../.venv/bin/python -m benchmarks.act_learning [--learn]

Texts of ``../shared/data``, invented ones, and those of ``first_contact/act_training.jsonl``; each source is judged by weights
that saw nothing of it, and the limits are those of these judgements. The authors of the look-alikes wrote none of the
texts that are learned from. ``--learn`` writes ``act_weights.json`` anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from benchmarks.labelled_texts import collect_act_texts
from benchmarks.measuring import ROOT
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from evalkit.classification.offline.acts import (
    MAX_STANDARD_SCORE,
    WEIGHTS_FILE,
    ActWeights,
    compute_log_feature_rates,
    count_features,
    load_act_features,
    load_act_weights,
)
from evalkit.classification.offline.type_scoring import extract_terms
from evalkit.classification.schema import DocumentType
from evalkit.classification.training import fitting, labelled_texts
from evalkit.classification.training.fitting import FloatArray, TrainingSet, select_vocabulary
from evalkit.classification.training.labelled_texts import LabelledText
from evalkit.documents.bundle import Page
from evalkit.documents.furniture import get_body_text

Rows = npt.NDArray[np.intp]

KINDS = list(DocumentType)
OTHER = KINDS.index(DocumentType.OTHER)
RIDGE, RIDGE_TERMS = 20.0, 0.1
MIN_TERM_GROUPS, MIN_TERM_WEIGHT = 6, 0.02
VARIANTS = {"whole", "misread", "no labels", "beginning"}
"""Of the variants of a text; parts out of its middle need not perform its act."""
MAX_RIGHT_DOUBTED = 0.03
"""Share of right texts, macro over types, that each of the two limits may doubt."""


def compute_rates(pages: Sequence[Page]) -> list[float]:
    """The features of pages as one document."""
    return compute_log_feature_rates([count_features(get_body_text(page)) for page in pages])


class Learned(NamedTuple):
    """Weights of standardised features, and of terms."""

    means: FloatArray
    scales: FloatArray
    weights: FloatArray
    bias: FloatArray
    vocabulary: list[str]
    term_weights: FloatArray

    def compute_sums(self, found: TrainingSet, rates: FloatArray, rows: Rows) -> FloatArray:
        terms = fitting.build_term_matrix(found, rows, self.vocabulary) @ self.term_weights
        return np.asarray(_standardise(rates[rows], self.means, self.scales) @ self.weights + terms + self.bias)


def _standardise(rates: FloatArray, means: FloatArray, scales: FloatArray) -> FloatArray:
    return np.clip((rates - means) / scales, -MAX_STANDARD_SCORE, MAX_STANDARD_SCORE)


def fit(found: TrainingSet, rates: FloatArray, rows: Rows) -> Learned:
    """Multinomial logistic regression with ridges over standardised features and terms."""
    row_weights, kinds = fitting.compute_row_weights(found, rows), found.true_types[rows]
    vocabulary = select_vocabulary(found, rows, MIN_TERM_GROUPS)
    terms = fitting.build_term_matrix(found, rows, vocabulary)
    transposed, chosen, columns = terms.T.tocsr(), rates[rows], len(KINDS)
    means = np.average(chosen, axis=0, weights=row_weights)
    scales = np.sqrt(np.average((chosen - means) ** 2, axis=0, weights=row_weights)) + 0.15
    standard, target = _standardise(chosen, means, scales), np.eye(columns)[kinds]
    end = standard.shape[1] * columns

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        weights, bias = parameters[:end].reshape(-1, columns), parameters[end : end + columns]
        term_weights = parameters[end + columns :].reshape(-1, columns)
        logs = log_softmax(standard @ weights + terms @ term_weights + bias, axis=1)
        errors = (np.exp(logs) - target) * row_weights[:, None]
        penalty = RIDGE * (weights * weights).sum() + RIDGE_TERMS * (term_weights * term_weights).sum()
        total = -(row_weights * (logs * target).sum(axis=1)).sum() + penalty / 2
        gradients = (
            (standard.T @ errors + RIDGE * weights).ravel(),
            errors.sum(axis=0),
            (transposed @ errors + RIDGE_TERMS * term_weights).ravel(),
        )
        return float(total), np.concatenate(gradients)

    start = np.zeros(end + columns + len(vocabulary) * columns)
    parameters = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300}).x
    return Learned(
        means,
        scales,
        parameters[:end].reshape(-1, columns),
        parameters[end : end + columns],
        vocabulary,
        parameters[end + columns :].reshape(-1, columns),
    )


class Judged(NamedTuple):
    """Every variant, and the whole texts judged by weights that saw nothing of their source."""

    found: TrainingSet
    rates: FloatArray
    parts: list[frozenset[str]]
    """The sources of each variant's words."""
    sums: FloatArray

    @property
    def whole(self) -> Rows:
        return np.array([row for row, variant in enumerate(self.found.variants) if variant.name == "whole"])

    @property
    def sources(self) -> list[str]:
        return [self.found.variants[row].original.source for row in self.whole]


def judge(texts: Sequence[LabelledText]) -> Judged:
    """Fit once for each source that is left out."""
    folds = fitting.assign_folds_to_groups(texts)
    variants = [
        one
        for one in labelled_texts.create_text_variants(texts, folds)
        if one.name in VARIANTS or one.name.startswith("quotes")
    ]
    pages = [labelled_texts.build_pages_from_text(one.text) for one in variants]
    found = TrainingSet(
        variants,
        np.zeros((len(variants), 0, 0)),
        [frozenset(term.text for page in some for term in extract_terms(get_body_text(page))) for some in pages],
        np.array([KINDS.index(one.original.document_type) for one in variants]),
    )
    rates = np.array([compute_rates(some) for some in pages])
    parts = [
        frozenset(text.source for text in (one.original, one.quoted_report) if text is not None) for one in variants
    ]
    sums = np.zeros((len(variants), len(KINDS)))
    judged = Judged(found, rates, parts, sums)
    for source in dict.fromkeys(judged.sources):
        seen = np.array([row for row, part in enumerate(parts) if source not in part])
        rows = judged.whole[[own == source for own in judged.sources]]
        sums[rows] = fit(found, rates, seen).compute_sums(found, rates, rows)
    return judged


def choose_temperature(sums: FloatArray, kinds: Rows) -> float:
    """The temperature that makes the judgements of unseen sources likeliest; never surer than was learned."""

    def loss(logarithm: FloatArray) -> float:
        logs = log_softmax(sums / math.exp(logarithm[0]), axis=1)
        return -float(logs[np.arange(len(kinds)), kinds].sum())

    return max(1.0, math.exp(minimize(loss, np.zeros(1), method="Nelder-Mead").x[0]))


def choose_limits(chances: FloatArray, kinds: Rows) -> tuple[float, float]:
    """The highest claimed probability and the lowest act probability that doubt few right texts, macro over types."""
    own = chances[np.arange(len(kinds)), kinds]
    acts = 1 - chances[kinds == OTHER, OTHER]

    def doubted(limit: float) -> float:
        return float(np.mean([(own[kinds == kind] < limit).mean() for kind in range(len(KINDS)) if kind != OTHER]))

    least = max(limit for limit in np.arange(0.0, 0.9, 0.005) if doubted(limit) <= MAX_RIGHT_DOUBTED)
    most = min(limit for limit in np.arange(0.3, 1.001, 0.005) if (acts >= limit).mean() <= MAX_RIGHT_DOUBTED)
    return round(float(least), 3), round(float(most), 3)


def learn_weights(judged: Judged, without: AbstractSet[str] = frozenset()) -> dict[str, Any]:
    """The contents of ``act_weights.json``, of all sources or without some; its limits are those of unseen sources."""
    rows = np.array([row for row, part in enumerate(judged.parts) if part.isdisjoint(without)])
    whole = np.array([row for row in judged.whole if judged.parts[row].isdisjoint(without)])
    kinds = judged.found.true_types[whole]
    temperature = choose_temperature(judged.sums[whole], kinds)
    least, most = choose_limits(softmax(judged.sums[whole] / temperature, axis=1), kinds)
    learned = fit(judged.found, judged.rates, rows)
    columns = zip(learned.means, learned.scales, learned.weights, strict=True)
    content = {
        "learned_from": {kind.value: int((kinds == index).sum()) for index, kind in enumerate(KINDS)},
        "temperature": round(temperature, 3),
        "min_claimed_probability": least,
        "max_act_probability": most,
        "bias": _round(learned.bias),
        "features": {
            name: [round(float(mean), 4), round(float(scale), 4), _round(row)]
            for name, (mean, scale, row) in zip(load_act_features().names, columns, strict=True)
        },
        "terms": {
            term: _round(row)
            for term, row in zip(learned.vocabulary, learned.term_weights, strict=True)
            if np.abs(row).max() >= MIN_TERM_WEIGHT
        },
    }
    version = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    return {"schema_version": 1, "version": version} | content


def _round(numbers: FloatArray) -> list[float]:
    return [round(float(number), 3) + 0.0 for number in numbers]


def learn_without(judged: Judged, sources: AbstractSet[str]) -> ActWeights:
    """Weights that saw nothing of these sources; their temperature and limits are those of the others."""
    return ActWeights.model_validate_json(json.dumps(learn_weights(judged, sources)))


@cache
def judge_all_texts() -> Judged:
    """All texts, judged once a process."""
    return judge(collect_act_texts())


def select_unseen_weights(judged: Judged) -> Callable[[LabelledText], ActWeights]:
    """The weights by which a text is read: without its source, or the shipped ones, which learned nothing of it."""
    weights_by_source: dict[str, ActWeights] = {}

    def select_weights(text: LabelledText) -> ActWeights:
        if text.source not in judged.sources:
            return load_act_weights()
        if text.source not in weights_by_source:
            weights_by_source[text.source] = learn_without(judged, {text.source})
        return weights_by_source[text.source]

    return select_weights


def tabulate(judged: Judged) -> Table:
    """Right judgements of unseen sources, by source and type."""
    table = Table("texts", "n", "right", title="acts, source not seen")
    kinds, sources = judged.found.true_types[judged.whole], np.array(judged.sources)
    right = judged.sums[judged.whole].argmax(axis=1) == kinds
    for name, chosen in [
        *((source, sources == source) for source in dict.fromkeys(sources.tolist())),
        *((kind.value, kinds == KINDS.index(kind)) for kind in KINDS),
        ("all", np.ones(len(right), dtype=bool)),
    ]:
        table.add_row(str(name), str(chosen.sum()), f"{right[chosen].mean():.1%}")
    return table


def format_weights(content: dict[str, Any]) -> str:
    """One line a row, so that two versions can be compared."""
    tables = {key: content[key] for key in ("features", "terms")}
    head = json.dumps({key: content[key] for key in content if key not in tables}, indent=1)[:-2]
    for key, rows in tables.items():
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        head += f',\n "{key}": {{\n{lines}\n }}'
    return head + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learn", action="store_true", help="write act_weights.json anew")
    chosen = parser.parse_args()
    judged = judge_all_texts()
    console = Console(width=120)
    console.print(tabulate(judged))
    data = learn_weights(judged)
    console.print({key: data[key] for key in ("temperature", "min_claimed_probability", "max_act_probability")})
    if chosen.learn:
        ActWeights.model_validate_json(json.dumps(data))
        (ROOT / "evalkit" / "classification" / "offline" / WEIGHTS_FILE).write_text(format_weights(data), "utf-8")


if __name__ == "__main__":
    main()
