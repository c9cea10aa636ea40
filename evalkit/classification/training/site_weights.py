"""A site's own weights: evalkit's weights, adapted to its experts' reviews.

The shipped weights are the prior; a word's weight moves only if at least ``MIN_TERM_GROUPS`` patients' documents have
it, and a letterhead counts from as many. So no patient's words are in the weights, and letterheads are salted hashes.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax

from evalkit.classification.offline.acts import load_act_weights, read_act_of_pages
from evalkit.classification.offline.letterheads import choose_strongest_weights, iter_letterhead_keys
from evalkit.classification.offline.lexicon import find_body_spans
from evalkit.classification.offline.model_weights import (
    ACT_BIAS,
    LEXICON_FEATURE_NAMES,
    MAX_TEMPERATURE,
    EmbeddedModelWeights,
    add_type_weights,
    use_site_weights,
)
from evalkit.classification.offline.page_segmentation import JOIN_SIGNS, segment_pages
from evalkit.classification.offline.type_scoring import (
    compute_lexicon_features,
    extract_terms,
    read_page_for_scoring,
)
from evalkit.classification.schema import DocumentType
from evalkit.classification.training.fitting import (
    MIN_TERM_GROUPS,
    FittedWeights,
    FloatArray,
    ProbabilityCalibration,
    TrainingSet,
    assign_folds_to_groups,
    build_weights_json,
    compute_probabilities,
    fit_weights,
)
from evalkit.classification.training.labelled_texts import DOCUMENT_TYPES, LabelledText, TextVariant
from evalkit.core.grouping import group_by, group_pairs
from evalkit.documents.bundle import Page

#: Largest log odds that a letterhead adds to a type.
MAX_LETTERHEAD_ODDS = 2.5
#: Letterheads whose log odds differ less between types tell nothing and are left out.
_MIN_LETTERHEAD_SPREAD = 1.0
#: Documents of each type that are added before a letterhead's shares are computed.
_LETTERHEAD_SMOOTHING = 0.5
#: Standard deviation of the site's log temperature around the shipped one.
_TEMPERATURE_DEVIATION = 0.3
#: Price of a difference from the weights of acts in force.
_RIDGE_ACTS = 5.0
#: Price of a difference from the weights of page breaks in force.
_RIDGE_JOINS = 4.0


@dataclass(frozen=True)
class SiteDocument:
    """One document of a file, with the type that an expert gave it."""

    id: str
    pages: tuple[Page, ...]
    document_type: DocumentType
    group: str
    """The patient, or documents that are nearly the same."""
    week: str
    """Week of the answer, such as ``2026-W07``."""
    reviewers: frozenset[str]
    is_blind: bool
    """True if the expert answered before the program's answer was shown."""
    is_confirmation: bool = False
    """True if the expert saw the program's answer and agreed."""
    has_known_pages: bool = True
    """False if the expert vouched for the file's type, but not for where documents begin."""


class _ActRow(NamedTuple):
    """A document's features of acts, and what the weights in force make of them."""

    document_number: int
    scores: list[float]
    logits: list[float]


class _PageBreak(NamedTuple):
    """A page break of a file, and whether a document begins after it."""

    document_numbers: list[int]
    """Numbers of all documents of the file."""
    signs: list[float]
    log_odds: float
    """Log odds of a beginning by the weights in force."""
    is_beginning: bool


class SiteTrainingSet:
    """Features of a site's documents, computed once for all fits of weights."""

    def __init__(self, documents: Sequence[SiteDocument], base: EmbeddedModelWeights, salt: str) -> None:
        """Read the pages. ``base``: weights to adapt; ``salt``: of the letterheads' keys."""
        self.documents, self.base, self.salt = documents, base, salt
        self._base_weights = FittedWeights(
            np.array(base.lexicon_weights),
            np.array(base.bias),
            list(base.weights_by_term),
            np.array(list(base.weights_by_term.values())).reshape(-1, len(DOCUMENT_TYPES)),
            base.min_known_share,
        )
        units = [
            (index, pages)
            for index, document in enumerate(documents)
            for pages in (
                (document.pages, *((page,) for page in document.pages))
                if len(document.pages) > 1
                else (document.pages,)
            )
        ]
        names = _collect_person_names(documents)
        variants, features, term_sets = [], [], []
        for index, pages in units:
            readings = [read_page_for_scoring(page, base).lexicon_reading for page in pages]
            spans = [
                (reading, span)
                for reading in readings
                for span in find_body_spans(reading.page.text, reading.furniture_spans)
            ]
            text = "\n".join(reading.page.text[start:end] for reading, (start, end) in spans)
            _, lexicon_features = compute_lexicon_features(readings)
            features.append([lexicon_features[kind] for kind in LEXICON_FEATURE_NAMES])
            term_sets.append(
                frozenset(
                    term.text
                    for reading in readings
                    for term in extract_terms(reading.page.text, reading.furniture_spans)
                    if names.isdisjoint(term.text.split())
                )
            )
            original = LabelledText(documents[index].id, documents[index].document_type, text, documents[index].group)
            variants.append(TextVariant("whole" if pages is documents[index].pages else "page", original, text))
        self._document_indices = np.array([index for index, _ in units], dtype=np.intp)
        self._training_set = TrainingSet(
            variants,
            np.array(features).reshape(-1, len(LEXICON_FEATURE_NAMES), len(DOCUMENT_TYPES)).transpose(0, 2, 1),
            term_sets,
            np.array([DOCUMENT_TYPES.index(variant.original.document_type) for variant in variants], dtype=np.intp),
        )
        self._whole_rows = np.array(
            [row for row, variant in enumerate(variants) if variant.name == "whole"], dtype=np.intp
        )
        with use_site_weights(base):
            act_weights = load_act_weights()
        self._act_feature_names = tuple(act_weights.features)
        readings_of_acts = [read_act_of_pages(document.pages, act_weights) for document in documents]
        self._act_rows = [
            _ActRow(
                index,
                reading.standard_scores,
                [
                    act_weights.temperature * math.log(probability + 1e-12)
                    for probability in reading.probabilities.values()
                ],
            )
            for index, reading in enumerate(readings_of_acts)
            if reading
        ]
        self._keys_by_document = [
            frozenset(key for page in document.pages for key in iter_letterhead_keys(page, salt))
            for document in documents
        ]

    def fit(self, is_learned: npt.NDArray[np.bool_]) -> FittedWeights:
        """Adapt the base weights to the marked documents."""
        rows = np.flatnonzero(is_learned[self._document_indices])
        return fit_weights(self._training_set, rows, base=self._base_weights) if len(rows) else self._base_weights

    def adjust_acts(self, is_learned: npt.NDArray[np.bool_]) -> dict[str, tuple[float, ...]]:
        """Compute a site's additions to the act weights from the marked documents."""
        rows = [row for row in self._act_rows if is_learned[row.document_number]]
        if not rows:
            return dict(self.base.act_adjustments)
        added = _fit_added_weights(
            np.array([row.logits for row in rows]),
            np.array([[*row.scores, 1.0] for row in rows]),
            self.true_types[[row.document_number for row in rows]],
            _RIDGE_ACTS,
        )
        zero = (0.0,) * len(DOCUMENT_TYPES)
        names = (*self._act_feature_names, ACT_BIAS)
        return {
            name: add_type_weights(self.base.act_adjustments.get(name, zero), row.tolist())
            for name, row in zip(names, added, strict=True)
        }

    @cached_property
    def _page_breaks(self) -> list[_PageBreak]:
        """The page breaks of files whose documents' first pages are known."""
        page_breaks = []
        for indices in group_by(range(len(self.documents)), lambda index: self.documents[index].id).values():
            documents = [self.documents[index] for index in indices]
            first_pages = {document.pages[0].page_num for document in documents}
            pages = [read_page_for_scoring(page, self.base) for document in documents for page in document.pages]
            if all(document.has_known_pages for document in documents):
                page_breaks += [
                    _PageBreak(
                        indices,
                        [transition.signs.get(name, 0.0) for name in JOIN_SIGNS],
                        math.log(transition.probability / (1 - transition.probability)),
                        transition.page_num in first_pages,
                    )
                    for transition in segment_pages(pages).transitions
                ]
        return page_breaks

    def adjust_joins(self, is_learned: npt.NDArray[np.bool_]) -> FloatArray:
        """Compute the changes to the weights of page-break signs from marked whole files."""
        page_breaks = [page_break for page_break in self._page_breaks if is_learned[page_break.document_numbers].all()]
        if not page_breaks:
            return np.zeros(len(JOIN_SIGNS))
        added = _fit_added_weights(
            np.array([[0.0, page_break.log_odds] for page_break in page_breaks]),
            np.array([page_break.signs for page_break in page_breaks]),
            np.array([int(page_break.is_beginning) for page_break in page_breaks]),
            _RIDGE_JOINS,
        )
        return np.asarray(added[:, 1] - added[:, 0])

    def _lower_support_by_joins(self, support: FloatArray, is_learned: npt.NDArray[np.bool_]) -> None:
        """Lower the support of files with a page break that the other weeks contradict."""
        weeks = np.array([document.week for document in self.documents])
        added_by_week = {week: self.adjust_joins(is_learned & (weeks != week)) for week in sorted(set(weeks.tolist()))}
        for page_break in self._page_breaks:
            numbers = page_break.document_numbers
            log_odds = page_break.log_odds + float(np.dot(added_by_week[weeks[numbers[0]]], page_break.signs))
            probability = float(expit(log_odds if page_break.is_beginning else -log_odds))
            support[numbers] = np.minimum(support[numbers], probability)

    def count_letterheads(self, is_learned: npt.NDArray[np.bool_]) -> dict[str, tuple[float, ...]]:
        """Compute the log odds of the types by letterhead from the marked documents.

        A letterhead counts if ``MIN_TERM_GROUPS`` patients' documents have it, answered blind or by two reviewers.
        """
        documents_by_key = group_pairs(
            (key, self.documents[index])
            for index in np.flatnonzero(is_learned).tolist()
            for key in self._keys_by_document[index]
        )
        weights_by_key = {
            key: _compute_letterhead_odds(documents)
            for key, documents in sorted(documents_by_key.items())
            if len({document.group for document in documents}) >= MIN_TERM_GROUPS and _is_agreed(documents)
        }
        return {
            key: weights
            for key, weights in weights_by_key.items()
            if max(weights) - min(weights) >= _MIN_LETTERHEAD_SPREAD
        }

    def compute_log_odds(
        self, fitted: FittedWeights, letterheads: Mapping[str, tuple[float, ...]], indices: Sequence[int]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the documents' damped sums and the log odds of their letterheads."""
        sums = fitted.compute_damped_type_sums(self._training_set, self._whole_rows[list(indices)])
        odds = [
            choose_strongest_weights(
                letterheads[key] for key in sorted(self._keys_by_document[index] & letterheads.keys())
            )
            or (0.0,) * len(DOCUMENT_TYPES)
            for index in indices
        ]
        return sums, np.array(odds).reshape(-1, len(DOCUMENT_TYPES))

    def predict_held_out(
        self, parts: Sequence[str], is_learned: npt.NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray]:
        """Compute each document's sums and odds by weights learned without its group.

        ``parts``: part of each document, such as its week.
        """
        sums, odds = np.zeros((len(parts), len(DOCUMENT_TYPES))), np.zeros((len(parts), len(DOCUMENT_TYPES)))
        groups = np.array([document.group for document in self.documents])
        for part in sorted(set(parts)):
            is_part = np.array([other == part for other in parts])
            is_kept = is_learned & ~is_part & ~np.isin(groups, groups[is_part])
            sums[is_part], odds[is_part] = self.compute_log_odds(
                self.fit(is_kept), self.count_letterheads(is_kept), np.flatnonzero(is_part).tolist()
            )
        return sums, odds

    def compute_support(self, is_learned: npt.NDArray[np.bool_]) -> FloatArray:
        """Compute each answer's probability by weights learned without its week."""
        sums, odds = self.predict_held_out([document.week for document in self.documents], is_learned)
        probabilities = compute_probabilities(sums / self.base.temperature + odds, 1.0)
        support = np.asarray(probabilities[np.arange(len(self.documents)), self.true_types])
        self._lower_support_by_joins(support, is_learned)
        return support

    def build_weights(self, is_learned: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Build the contents of the site's weights file from the marked documents."""
        fold_by_group = assign_folds_to_groups(
            LabelledText(document.id, document.document_type, "", document.group) for document in self.documents
        )
        held_out = self.predict_held_out(
            [str(fold_by_group[document.group]) for document in self.documents], is_learned
        )
        sums, odds = (values[is_learned] for values in held_out)
        temperature = self._choose_temperature(sums, odds, self.true_types[is_learned])
        joins = {"types": self.base.page_type_influence} | {
            name: self.base.transition_weights.get(name, 0.0) + weight
            for name, weight in zip(JOIN_SIGNS, self.adjust_joins(is_learned).tolist(), strict=True)
        }
        return build_weights_json(
            self.fit(is_learned),
            ProbabilityCalibration(temperature, self.base.min_probability, self.base.max_contradicted_probability),
            joins,
            acts=self.adjust_acts(is_learned),
            letterheads=self.count_letterheads(is_learned),
            letterhead_salt=self.salt,
            learned_from=dict(self.base.training_group_counts),
        )

    @property
    def true_types(self) -> npt.NDArray[np.intp]:
        """The index of each document's type, as the expert gave it."""
        return np.array([DOCUMENT_TYPES.index(document.document_type) for document in self.documents], dtype=np.intp)

    def _choose_temperature(self, sums: FloatArray, odds: FloatArray, true_types: npt.NDArray[np.intp]) -> float:
        """Choose the most probable temperature from held-out answers and the shipped one."""
        shipped = math.log(self.base.temperature)

        def compute_loss(log_temperature: float) -> float:
            probabilities = compute_probabilities(sums / math.exp(log_temperature) + odds, 1.0)
            fit = np.log(probabilities[np.arange(len(true_types)), true_types] + 1e-300).sum()
            return float(((log_temperature - shipped) / _TEMPERATURE_DEVIATION) ** 2 / 2 - fit)

        return math.exp(minimize_scalar(compute_loss, bounds=(0.0, math.log(MAX_TEMPERATURE)), method="bounded").x)


def _collect_person_names(documents: Iterable[SiteDocument]) -> frozenset[str]:
    """Collect the words of all patients' names, which several patients may share."""
    return frozenset(
        word
        for document in documents
        for page in document.pages
        for identifier in page.identifiers
        if identifier.kind == "patient"
        for word in re.findall("[a-z]+", identifier.value.casefold())
    )


def _fit_added_weights(
    base_logits: FloatArray, features: FloatArray, true_classes: npt.NDArray[np.intp], ridge: float
) -> FloatArray:
    """Fit weights that are added to given logits.

    The fit is a multinomial logistic regression with a ridge penalty.

    ``features``: one row per example; the result has one row per feature, one column per class.
    """
    shape = features.shape[1], base_logits.shape[1]
    target = np.eye(shape[1])[true_classes]

    def compute_loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        added = parameters.reshape(shape)
        log_probabilities = log_softmax(base_logits + features @ added, axis=1)
        gradient = features.T @ (np.exp(log_probabilities) - target) + ridge * added
        return float(-(log_probabilities * target).sum() + ridge * (added * added).sum() / 2), gradient.ravel()

    solution = minimize(compute_loss, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B").x
    return np.asarray(solution.reshape(shape))


def _is_agreed(documents: Sequence[SiteDocument]) -> bool:
    reviewers: AbstractSet[str] = frozenset().union(*(document.reviewers for document in documents))
    return len(reviewers) > 1 or all(document.is_blind for document in documents)


def _compute_letterhead_odds(documents: Sequence[SiteDocument]) -> tuple[float, ...]:
    group_types = Counter(kind for _, kind in {(document.group, document.document_type) for document in documents})
    logs = [math.log(group_types[kind] + _LETTERHEAD_SMOOTHING) for kind in DOCUMENT_TYPES]
    mean = sum(logs) / len(logs)
    return tuple(round(max(-MAX_LETTERHEAD_ODDS, min(MAX_LETTERHEAD_ODDS, value - mean)), 3) for value in logs)
