"""Calibrated probabilities of the types of some pages, with their reasons.

The lexicon's opinion and the learned terms are added up, divided by the temperature, and become probabilities that sum
to 1. Every part of the sum can be named, so that a person can see what speaks for and against a type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from evalkit.classification.offline.lexicon import (
    CueMatch,
    LexiconReading,
    Span,
    apply_lexicon,
    find_body_spans,
    score_cues,
)
from evalkit.classification.offline.model_weights import (
    LEXICON_FEATURE_NAMES,
    EmbeddedModelWeights,
    TermWeights,
    load_embedded_weights,
)
from evalkit.classification.schema import DocumentType
from evalkit.documents.bundle import Page

#: The beginning and the end of a document: so much of it, but at least so many characters.
_EDGE_SHARE, _MIN_EDGE_LENGTH = 0.15, 250
#: Below so many known terms each counts as if there were so many, or one word would decide a line.
_MIN_TERM_COUNT = 40
#: Added to the sum that shares are shares of: what hardly speaks has no share.
_SHARE_SMOOTHING = 5.0
#: So much of the lexicon's evidence is believed by half.
_DAMPING_CONSTANT = 3.0
_WORD_PATTERN = re.compile(r"[A-Za-z]{2,}")
_MIN_WORD_LENGTH = 3

LexiconFeatures = dict[str, tuple[float, ...]]


class Term(NamedTuple):
    """A word or a pair of words, and its place in the page's text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class ScoredPage:
    """A page: what the lexicon found, and its words."""

    lexicon_reading: LexiconReading
    terms: tuple[str, ...]
    """Those that weigh anything, each once, in order of appearance."""
    unknown_words: frozenset[str]
    """Those that weigh nothing: they were not learned from."""
    model_weights: EmbeddedModelWeights
    """By what they are weighed."""

    @cached_property
    def type_scores(self) -> ClassificationScores:
        """Scores of the types by this page alone."""
        return combine_page_scores([self])

    @cached_property
    def term_cues(self) -> tuple[CueMatch, ...]:
        """Places where learned terms speak for a type; searched when first needed."""
        return tuple(_find_term_cues(self))


@dataclass(frozen=True)
class ScoreContribution:
    """One thing that spoke for or against types."""

    name: str
    """A term, or one of ``LEXICON_FEATURE_NAMES``."""
    weights: tuple[float, ...]
    """Its contribution to each type, in the order of ``DocumentType``."""
    is_term: bool


@dataclass(frozen=True)
class ClassificationScores:
    """Scores of some pages together."""

    lexicon_scores: Mapping[DocumentType, float]
    """The lexicon's."""
    lexicon_features: LexiconFeatures
    """Features of the lexicon: for each of ``LEXICON_FEATURE_NAMES`` a number a type."""
    terms: tuple[str, ...]
    """Those that were found, each once."""
    unknown_word_count: int
    """Number of different words that were not learned from."""
    model_weights: EmbeddedModelWeights

    @cached_property
    def probabilities(self) -> dict[DocumentType, float]:
        """Probability of each type; they sum to 1.

        Near equal for pages of little text, or unlike all that was learned.
        """
        return self._compute_probabilities(self.damping)

    @cached_property
    def damping(self) -> float:
        """Trust in the scores, 0 to 1."""
        known_word_count = sum(" " not in term for term in self.terms)
        familiarity = compute_familiarity(
            known_word_count, known_word_count + self.unknown_word_count, self.model_weights.min_known_share
        )
        return familiarity * compute_damping_factor(math.fsum(self.lexicon_scores.values()))

    @property
    def probabilities_undamped(self) -> dict[DocumentType, float]:
        """Probabilities without damping, however little text there is."""
        return self._compute_probabilities(1.0)

    def _compute_probabilities(self, damping: float) -> dict[DocumentType, float]:
        scale = damping / self.model_weights.temperature
        return dict(zip(DocumentType, softmax([type_sum * scale for type_sum in self._type_sums]), strict=True))

    @cached_property
    def _type_sums(self) -> list[float]:
        weights_by_term = self.model_weights.weights_by_term
        term_weight = compute_term_weight(len(self.terms))
        term_sums = [
            sum(column) * term_weight for column in zip(*(weights_by_term[term] for term in self.terms), strict=True)
        ]
        weighted_features = list(zip(self.model_weights.lexicon_weights, self.lexicon_features.values(), strict=True))
        return [
            bias
            + sum(weight * feature[type_index] for weight, feature in weighted_features)
            + (term_sums[type_index] if term_sums else 0.0)
            for type_index, bias in enumerate(self.model_weights.bias)
        ]

    @property
    def iter_contributions(self) -> Iterator[ScoreContribution]:
        """Iterate over all contributions to the scores.

        With the bias, damped and divided by the temperature, their sum makes the probabilities.
        """
        for weight, (name, features) in zip(
            self.model_weights.lexicon_weights, self.lexicon_features.items(), strict=True
        ):
            yield ScoreContribution(name, tuple(weight * feature for feature in features), is_term=False)
        term_weight = compute_term_weight(len(self.terms))
        for term in self.terms:
            yield ScoreContribution(
                term, tuple(weight * term_weight for weight in self.model_weights.weights_by_term[term]), is_term=True
            )

    @property
    def types_by_probability(self) -> list[DocumentType]:
        """The types, the most probable first."""
        return sorted(DocumentType, key=lambda kind: -self.probabilities[kind])


def compute_damping_factor(lexicon_score_sum: float) -> float:
    """Compute the trust in scores, 0 to 1, from the evidence there is.

    ``lexicon_score_sum``: sum of the lexicon's scores; terms count besides them.
    """
    return lexicon_score_sum / (lexicon_score_sum + _DAMPING_CONSTANT)


def compute_familiarity(known_word_count: int, word_count: int, min_known_share: float) -> float:
    """Compute the trust in words from the share of known ones, 0 to 1.

    Below 1 only if fewer are known than in learned texts.

    >>> compute_familiarity(60, 100, 0.5), compute_familiarity(10, 100, 0.5), compute_familiarity(0, 0, 0.5)
    (1.0, 0.2, 1.0)
    """
    return min(1.0, known_word_count / (word_count * min_known_share)) if word_count and min_known_share else 1.0


def softmax(logits: Sequence[float]) -> list[float]:
    """Probabilities in proportion to the sums' exponentials.

    >>> softmax([0.0, 0.0]), [round(one, 3) for one in softmax([1000.0, 999.0])]
    ([0.5, 0.5], [0.731, 0.269])
    """
    highest = max(logits)
    exponentials = [math.exp(logit - highest) for logit in logits]
    total = math.fsum(exponentials)
    return [exponential / total for exponential in exponentials]


def read_page_for_scoring(page: Page, model_weights: EmbeddedModelWeights | None = None) -> ScoredPage:
    """Read the page once for all scores."""
    model_weights = load_embedded_weights() if model_weights is None else model_weights
    reading = apply_lexicon(page)
    return ScoredPage(
        reading,
        *find_weighted_terms_and_unknown_words(page.text, reading.furniture_spans, model_weights),
        model_weights,
    )


def find_weighted_terms_and_unknown_words(
    text: str, furniture_spans: Sequence[Span], model_weights: TermWeights
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Find terms that have weights, and words that have none; without places.

    Otherwise as :func:`extract_terms`.
    """
    weighted_terms: dict[str, None] = {}
    unknown_words: set[str] = set()
    for start, end in find_body_spans(text, furniture_spans):
        words = [word.lower() for word in _WORD_PATTERN.findall(text, start, end)]
        for word in dict.fromkeys(words):
            if len(word) >= _MIN_WORD_LENGTH:
                if word in model_weights.weights_by_term:
                    weighted_terms[word] = None
                else:
                    unknown_words.add(word)
        pairs = (
            f"{word} {next_word}"
            for word, next_word in pairwise(words)
            if next_word in model_weights.second_words_by_first.get(word, ())
        )
        weighted_terms.update(dict.fromkeys(pairs))
    return tuple(weighted_terms), frozenset(unknown_words)


def extract_terms(text: str, furniture_spans: Sequence[Span] = ()) -> Iterator[Term]:
    """Extract words of three letters or more, and pairs of neighbouring words.

    The words of a pair have at least two letters. Page furniture is left out.
    """
    for start, end in find_body_spans(text, furniture_spans):
        previous_word: Term | None = None
        for match in _WORD_PATTERN.finditer(text, start, end):
            word = Term(match.group().lower(), match.start(), match.end())
            if previous_word is not None:
                yield Term(f"{previous_word.text} {word.text}", previous_word.start, word.end)
            if len(word.text) >= _MIN_WORD_LENGTH:
                yield word
            previous_word = word


def combine_page_scores(pages: Sequence[ScoredPage]) -> ClassificationScores:
    """Combine the scores of pages, at least one, to those of one document."""
    lexicon_scores, features = compute_lexicon_features([page.lexicon_reading for page in pages])
    page_terms = dict.fromkeys(term for page in pages for term in page.terms)
    unknown_words = frozenset().union(*(page.unknown_words for page in pages))
    return ClassificationScores(lexicon_scores, features, tuple(page_terms), len(unknown_words), pages[0].model_weights)


def compute_term_weight(term_count: int) -> float:
    """Compute the weight of each of so many different known terms."""
    return 1 / math.sqrt(max(term_count, _MIN_TERM_COUNT))


def compute_lexicon_features(readings: Sequence[LexiconReading]) -> tuple[dict[DocumentType, float], LexiconFeatures]:
    """Compute the lexicon's scores of all pages, and features a type.

    The features are those of ``LEXICON_FEATURE_NAMES``.
    """
    total_length = sum(len(reading.page.text) for reading in readings)
    edge_length = max(_MIN_EDGE_LENGTH, _EDGE_SHARE * total_length)
    opening_cues: list[CueMatch] = []
    closing_cues: list[CueMatch] = []
    scores = dict.fromkeys(DocumentType, 0.0)
    offset = 0
    for reading in readings:
        for kind in DocumentType:
            scores[kind] += reading.scores[kind]
        opening_cues += (cue for cue in reading.cues if offset + cue.start < edge_length)
        closing_cues += (cue for cue in reading.cues if offset + cue.start > total_length - edge_length)
        offset += len(reading.page.text)
    features = (
        tuple(math.log1p(scores[kind]) for kind in DocumentType),
        _smooth_shares(scores),
        _smooth_shares(score_cues(opening_cues)),
        _smooth_shares(score_cues(closing_cues)),
    )
    return scores, dict(zip(LEXICON_FEATURE_NAMES, features, strict=True))


def _smooth_shares(scores: Mapping[DocumentType, float]) -> tuple[float, ...]:
    total = math.fsum(scores.values()) + _SHARE_SMOOTHING
    return tuple(scores[kind] / total for kind in DocumentType)


def select_term_cues(page: ScoredPage, kind: DocumentType) -> Iterator[CueMatch]:
    """Select the learned terms that speak for this type more than for others."""
    return (cue for cue in page.term_cues if cue.document_type is kind)


def _find_term_cues(page: ScoredPage) -> Iterator[CueMatch]:
    document_types, weights_by_term = list(DocumentType), page.model_weights.weights_by_term
    reading = page.lexicon_reading
    for term in extract_terms(reading.page.text, reading.furniture_spans):
        if term.text not in weights_by_term:
            continue
        type_weights = weights_by_term[term.text]
        second_highest, highest = sorted(type_weights)[-2:]
        if highest > second_highest:
            yield CueMatch(
                document_types[type_weights.index(highest)],
                "learned",
                "body",
                highest - second_highest,
                term.start,
                term.end,
                term.text,
            )
