"""Calibrated probabilities of the types of some pages, with their reasons.

The weighted features of the lexicon and the weights of learned terms are added up, damped, divided by the temperature,
and converted to probabilities by softmax. Each summand has a name, so that a person can see the reasons. A letterhead
that the site knows adds its log odds last.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from evalkit.classification.offline.letterheads import choose_strongest_weights, find_letterhead_weights
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
from evalkit.core.document_cache import cache_by_identity
from evalkit.document_types import FIVE_TYPES
from evalkit.documents.bundle import Page

#: Share of a document that counts as its beginning, and as its end, and the minimum in characters.
_EDGE_SHARE, _MIN_EDGE_LENGTH = 0.15, 250
#: Texts with fewer known terms are weighed as if they had this many, so that one word does not decide a short line.
_MIN_TERM_COUNT = 40
#: Added to the total before shares are computed, so that little evidence gives small shares.
_SHARE_SMOOTHING = 5.0
#: Sum of lexicon scores at which the damping factor is one half.
_DAMPING_CONSTANT = 3.0
_WORD_PATTERN = re.compile(r"[A-Za-z]{2,}")
_MIN_WORD_LENGTH = 3

LexiconFeatures = dict[str, tuple[float, ...]]


class Term(NamedTuple):
    """Word or pair of words in lower case, and its place in the page's text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class ScoredPage:
    """Page with its lexicon matches, its known terms and its unknown words."""

    lexicon_reading: LexiconReading
    terms: tuple[str, ...]
    """Terms that have learned weights, each once."""
    unknown_words: frozenset[str]
    """Words that have no learned weights."""
    model_weights: EmbeddedModelWeights
    """Weights by which the page is scored."""
    letterhead_weights: tuple[float, ...] = ()
    """Log odds of the types by the page's best-known letterhead; empty if it has none."""

    @cached_property
    def type_scores(self) -> ClassificationScores:
        """Scores of this page alone."""
        return combine_page_scores([self])

    @cached_property
    def term_cues(self) -> tuple[CueMatch, ...]:
        """Positions of learned terms, each with the type that it supports most."""
        return tuple(_find_term_cues(self))


@dataclass(frozen=True)
class ScoreContribution:
    """Summand of the types' scores: a lexicon feature or a learned term."""

    name: str
    """The term, or one of ``LEXICON_FEATURE_NAMES``."""
    weights: tuple[float, ...]
    """Contribution to each type's score, in the order of ``FIVE_TYPES``."""
    is_term: bool


@dataclass(frozen=True)
class ClassificationScores:
    """Features of some pages together, and the types' probabilities from them."""

    lexicon_scores: Mapping[DocumentType, float]
    """Sum of the weights of the lexicon's matches for each type."""
    lexicon_features: LexiconFeatures
    """Name of ``LEXICON_FEATURE_NAMES`` → one number for each type."""
    terms: tuple[str, ...]
    """Terms with learned weights on the pages, each once."""
    unknown_word_count: int
    """Number of different words without learned weights."""
    model_weights: EmbeddedModelWeights
    letterhead_weights: tuple[float, ...] = ()
    """Log odds of the types by the pages' best-known letterhead; empty if they have none."""

    @cached_property
    def probabilities(self) -> dict[DocumentType, float]:
        """Probability of each type; the sum is 1.

        Nearly equal for pages of little text, or of text unlike the training texts.
        """
        return self._compute_probabilities(self.damping)

    @cached_property
    def damping(self) -> float:
        """Damping of the scores, 0 to 1; small for little evidence or unknown words."""
        known_word_count = sum(" " not in term for term in self.terms)
        familiarity = compute_familiarity(
            known_word_count, known_word_count + self.unknown_word_count, self.model_weights.min_known_share
        )
        return familiarity * compute_damping_factor(math.fsum(self.lexicon_scores.values()))

    @property
    def probabilities_undamped(self) -> dict[DocumentType, float]:
        """Probability of each type without damping, however little text there is."""
        return self._compute_probabilities(1.0)

    def _compute_probabilities(self, damping: float) -> dict[DocumentType, float]:
        scale = damping / self.model_weights.temperature
        log_odds = self.letterhead_weights or (0.0,) * len(FIVE_TYPES)
        logits = [type_sum * scale + odds for type_sum, odds in zip(self._type_sums, log_odds, strict=True)]
        return dict(zip(FIVE_TYPES, softmax(logits), strict=True))

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
        """All contributions to the scores: lexicon features, then terms.

        Their sum and the bias, damped and divided by the temperature, and the log odds of the letterhead, are the inputs of
        softmax.
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
        """The five types, most probable first."""
        return sorted(FIVE_TYPES, key=lambda kind: -self.probabilities[kind])


def compute_damping_factor(lexicon_score_sum: float) -> float:
    """Compute the damping factor, 0 to 1, from the sum of the lexicon's scores."""
    return lexicon_score_sum / (lexicon_score_sum + _DAMPING_CONSTANT)


def compute_familiarity(known_word_count: int, word_count: int, min_known_share: float) -> float:
    """Compute the factor, 0 to 1, that lowers scores of texts with few known words.

    Below 1 only if the share of known words is below ``min_known_share``.

    >>> compute_familiarity(60, 100, 0.5), compute_familiarity(10, 100, 0.5), compute_familiarity(0, 0, 0.5)
    (1.0, 0.2, 1.0)
    """
    return min(1.0, known_word_count / (word_count * min_known_share)) if word_count and min_known_share else 1.0


def softmax(logits: Sequence[float]) -> list[float]:
    """Convert logits to probabilities in proportion to their exponentials.

    >>> softmax([0.0, 0.0]), [round(one, 3) for one in softmax([1000.0, 999.0])]
    ([0.5, 0.5], [0.731, 0.269])
    """
    highest = max(logits)
    exponentials = [math.exp(logit - highest) for logit in logits]
    total = math.fsum(exponentials)
    return [exponential / total for exponential in exponentials]


def read_page_for_scoring(page: Page, model_weights: EmbeddedModelWeights | None = None) -> ScoredPage:
    """Find lexicon matches, known terms and unknown words of a page.

    ``model_weights`` None: the weights in use.
    """
    return _read_page_for_scoring(page, load_embedded_weights() if model_weights is None else model_weights)


@cache_by_identity  # the second reading and the check of weak quotes read the same pages
def _read_page_for_scoring(page: Page, model_weights: EmbeddedModelWeights) -> ScoredPage:
    reading = apply_lexicon(page)
    return ScoredPage(
        reading,
        *find_weighted_terms_and_unknown_words(page.text, reading.furniture_spans, model_weights),
        model_weights,
        find_letterhead_weights(page, model_weights),
    )


def find_weighted_terms_and_unknown_words(
    text: str, furniture_spans: Sequence[Span], model_weights: TermWeights
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the text's terms with learned weights, and its words without.

    The terms are those of :func:`extract_terms`, each once and without its place.
    """
    weighted_terms: dict[str, None] = {}
    unknown_words: set[str] = set()
    for start, end in find_body_spans(text, furniture_spans):
        words = list(map(str.lower, _WORD_PATTERN.findall(text, start, end)))
        for word in dict.fromkeys(words):
            if len(word) >= _MIN_WORD_LENGTH:
                if word in model_weights.weights_by_term:
                    weighted_terms[word] = None
                else:
                    unknown_words.add(word)
        pairs = (
            f"{word} {next_word}"
            for word, next_word in dict.fromkeys(pairwise(words))
            if next_word in model_weights.second_words_by_first.get(word, ())
        )
        weighted_terms.update(dict.fromkeys(pairs))
    return tuple(weighted_terms), frozenset(unknown_words)


def extract_terms(text: str, furniture_spans: Sequence[Span] = ()) -> Iterator[Term]:
    """Yield words of three letters or more, and pairs of neighbouring words.

    The words of a pair have at least two letters. Headers and footers (``furniture_spans``) are left out.
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
    """Combine the features of several pages into the scores of one document."""
    return _combine_page_scores(*pages)


@cache_by_identity  # the second reading and the built-in model often divide the pages alike
def _combine_page_scores(*pages: ScoredPage) -> ClassificationScores:
    lexicon_scores, features = compute_lexicon_features([page.lexicon_reading for page in pages])
    page_terms = dict.fromkeys(term for page in pages for term in page.terms)
    unknown_words = frozenset().union(*(page.unknown_words for page in pages))
    return ClassificationScores(
        lexicon_scores,
        features,
        tuple(page_terms),
        len(unknown_words),
        pages[0].model_weights,
        choose_strongest_weights(page.letterhead_weights for page in pages),
    )


def compute_term_weight(term_count: int) -> float:
    """Compute the factor of each term's weight in a text of ``term_count`` terms."""
    return 1 / math.sqrt(max(term_count, _MIN_TERM_COUNT))


def compute_lexicon_features(readings: Sequence[LexiconReading]) -> tuple[dict[DocumentType, float], LexiconFeatures]:
    """Compute the lexicon's scores and features of these pages as one document.

    The features are those of ``LEXICON_FEATURE_NAMES``, each with one number for each type.
    """
    total_length = sum(len(reading.page.text) for reading in readings)
    edge_length = max(_MIN_EDGE_LENGTH, _EDGE_SHARE * total_length)
    opening_cues: list[CueMatch] = []
    closing_cues: list[CueMatch] = []
    scores = dict.fromkeys(FIVE_TYPES, 0.0)
    offset = 0
    for reading in readings:
        for kind in FIVE_TYPES:
            scores[kind] += reading.scores[kind]
        opening_cues += (cue for cue in reading.cues if offset + cue.start < edge_length)
        closing_cues += (cue for cue in reading.cues if offset + cue.start > total_length - edge_length)
        offset += len(reading.page.text)
    features = (
        tuple(math.log1p(scores[kind]) for kind in FIVE_TYPES),
        _smooth_shares(scores),
        _smooth_shares(score_cues(opening_cues)),
        _smooth_shares(score_cues(closing_cues)),
    )
    return scores, dict(zip(LEXICON_FEATURE_NAMES, features, strict=True))


def _smooth_shares(scores: Mapping[DocumentType, float]) -> tuple[float, ...]:
    total = math.fsum(scores.values()) + _SHARE_SMOOTHING
    return tuple(scores[kind] / total for kind in FIVE_TYPES)


def select_term_cues(page: ScoredPage, kind: DocumentType) -> Iterator[CueMatch]:
    """Return the positions of learned terms that most support this type."""
    return (cue for cue in page.term_cues if cue.document_type is kind)


def _find_term_cues(page: ScoredPage) -> Iterator[CueMatch]:
    document_types, weights_by_term = list(FIVE_TYPES), page.model_weights.weights_by_term
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
