"""Which type are these pages, how probable is it, and what said so?

The lexicon's opinion and the learned terms are added up, divided by the temperature, and become probabilities that sum
to 1. Every part of the sum can be named, so that a person can be told what spoke for and against a type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from evalkit.classification.learned import LEXICON_KINDS, Learned, learned
from evalkit.classification.lexicon import Cue, Lexicon, PageReading, Span, read_page, score
from evalkit.classification.schema import DocumentType
from evalkit.documents.bundle import Page

#: The beginning and the end of a document: so much of it, but at least so many characters.
_EDGE, _LEAST_EDGE = 0.15, 250
#: Below so many known terms each counts as if there were so many, or one word would decide a line.
_LEAST_TERMS = 40
#: Added to the sum that shares are shares of: what hardly speaks has no share.
_SILENCE = 5.0
#: So much of the lexicon's evidence is believed by half.
_LITTLE = 3.0
_WORD = re.compile(r"[A-Za-z]{2,}")
_SHORTEST = 3

Features = dict[str, tuple[float, ...]]


class Term(NamedTuple):
    """A word or a pair of words, and where it stands in the page's text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Heard:
    """A page: what the lexicon found, and its words."""

    reading: PageReading
    terms: tuple[str, ...]
    """Those that weigh anything, each once, in order of appearance."""
    known: Learned
    """By what they are weighed."""

    @cached_property
    def judgement(self) -> Judgement:
        """What the page alone says of the types."""
        return judge([self])

    @cached_property
    def learned_cues(self) -> tuple[Cue, ...]:
        """The places where learned terms spoke, each for one type; looked for once, and only where they are needed."""
        return tuple(_learned_cues(self))


@dataclass(frozen=True)
class Part:
    """One thing that spoke for or against types."""

    name: str
    """A term, or one of ``LEXICON_KINDS``."""
    weights: tuple[float, ...]
    """What it adds for each type, in the order of ``DocumentType``."""
    is_term: bool


@dataclass(frozen=True)
class Judgement:
    """What pages say together."""

    scores: Mapping[DocumentType, float]
    """The lexicon's."""
    kinds: Features
    """How the lexicon is heard: by each of ``LEXICON_KINDS`` a number a type."""
    terms: tuple[str, ...]
    """Those that were found, each once."""
    known: Learned

    @cached_property
    def probabilities(self) -> dict[DocumentType, float]:
        """How probable each type is; they sum to 1. What says little is believed little."""
        return self._chances(heed(math.fsum(self.scores.values())))

    @property
    def unweighed(self) -> dict[DocumentType, float]:
        """As ``probabilities``, however little was said."""
        return self._chances(1.0)

    def _chances(self, factor: float) -> dict[DocumentType, float]:
        scale = factor / self.known.temperature
        return dict(zip(DocumentType, softmax([one * scale for one in self._sums]), strict=True))

    @cached_property
    def _sums(self) -> list[float]:
        rows = self.known.terms
        each = term_value(len(self.terms))
        spoke = [sum(column) * each for column in zip(*(rows[term] for term in self.terms), strict=True)]
        heard = list(zip(self.known.lexicon, self.kinds.values(), strict=True))
        return [
            bias + sum(weight * row[at] for weight, row in heard) + (spoke[at] if spoke else 0.0)
            for at, bias in enumerate(self.known.bias)
        ]

    @property
    def parts(self) -> Iterator[Part]:
        """Everything that spoke; with the bias, heeded and divided by the temperature, its sum makes the probabilities."""
        for weight, (name, row) in zip(self.known.lexicon, self.kinds.items(), strict=True):
            yield Part(name, tuple(weight * one for one in row), is_term=False)
        each = term_value(len(self.terms))
        for term in self.terms:
            yield Part(term, tuple(weight * each for weight in self.known.terms[term]), is_term=True)

    @property
    def ranking(self) -> list[DocumentType]:
        """The types, the most probable first."""
        return sorted(DocumentType, key=lambda kind: -self.probabilities[kind])


def heed(said: float) -> float:
    """How much is believed of what the lexicon's scores, which sum to ``said``, and the terms beside them say: 0 to 1."""
    return said / (said + _LITTLE)


def softmax(sums: Sequence[float]) -> list[float]:
    """Probabilities in proportion to the sums' exponentials.

    >>> softmax([0.0, 0.0]), [round(one, 3) for one in softmax([1000.0, 999.0])]
    ([0.5, 0.5], [0.731, 0.269])
    """
    highest = max(sums)
    parts = [math.exp(one - highest) for one in sums]
    total = math.fsum(parts)
    return [part / total for part in parts]


def hear(page: Page, words: Lexicon | None = None, known: Learned | None = None) -> Heard:
    """The page, read once for all that is asked of it."""
    known = learned() if known is None else known
    reading = read_page(page, words)
    return Heard(reading, tuple(_known_terms(page.text, reading.furniture, known)), known)


def _known_terms(text: str, furniture: Sequence[Span], known: Learned) -> dict[str, None]:
    """As :func:`terms`, without places, which are rarely asked for."""
    found: dict[str, None] = {}
    cursor = 0
    for start, end in (*furniture, (len(text), len(text))):
        words = [word.lower() for word in _WORD.findall(text, cursor, start)]
        found.update(dict.fromkeys(word for word in words if word in known.terms and len(word) >= _SHORTEST))
        pairs = (f"{word} {after}" for word, after in pairwise(words) if after in known.pairs.get(word, ()))
        found.update(dict.fromkeys(pairs))
        cursor = end
    return found


def terms(text: str, furniture: Sequence[Span] = ()) -> Iterator[Term]:
    """Words of at least three letters, and pairs of neighbours of at least two letters each; nothing of the furniture."""
    cursor = 0
    for start, end in (*furniture, (len(text), len(text))):
        before: Term | None = None
        for match in _WORD.finditer(text, cursor, start):
            word = Term(match.group().lower(), match.start(), match.end())
            if before is not None:
                yield Term(f"{before.text} {word.text}", before.start, word.end)
            if len(word.text) >= _SHORTEST:
                yield word
            before = word
        cursor = end


def judge(pages: Sequence[Heard]) -> Judgement:
    """What these pages, at least one, say of the types as one document."""
    scores, kinds = lexicon_features([page.reading for page in pages])
    found = dict.fromkeys(term for page in pages for term in page.terms)
    return Judgement(scores, kinds, tuple(found), pages[0].known)


def term_value(count: int) -> float:
    """What each of so many different known terms counts."""
    return 1 / math.sqrt(max(count, _LEAST_TERMS))


def lexicon_features(readings: Sequence[PageReading]) -> tuple[dict[DocumentType, float], Features]:
    """The lexicon's scores of all pages together; and by each of ``LEXICON_KINDS`` a number a type."""
    total = sum(len(reading.page.text) for reading in readings)
    edge = max(_LEAST_EDGE, _EDGE * total)
    opening: list[Cue] = []
    closing: list[Cue] = []
    scores = dict.fromkeys(DocumentType, 0.0)
    at = 0
    for reading in readings:
        for kind in DocumentType:
            scores[kind] += reading.scores[kind]
        opening += (cue for cue in reading.cues if at + cue.start < edge)
        closing += (cue for cue in reading.cues if at + cue.start > total - edge)
        at += len(reading.page.text)
    features = (
        tuple(math.log1p(scores[kind]) for kind in DocumentType),
        _shares(scores),
        _shares(score(opening)),
        _shares(score(closing)),
    )
    return scores, dict(zip(LEXICON_KINDS, features, strict=True))


def _shares(scores: Mapping[DocumentType, float]) -> tuple[float, ...]:
    whole = math.fsum(scores.values()) + _SILENCE
    return tuple(scores[kind] / whole for kind in DocumentType)


def learned_cues(page: Heard, kind: DocumentType) -> Iterator[Cue]:
    """The places where learned terms spoke for the type, of those that speak for it more than for any other."""
    return (cue for cue in page.learned_cues if cue.document_type is kind)


def _learned_cues(page: Heard) -> Iterator[Cue]:
    """Each learned term as a cue of the type that it speaks for most, if there is one alone."""
    kinds, rows = list(DocumentType), page.known.terms
    reading = page.reading
    for term in terms(reading.page.text, reading.furniture):
        if term.text not in rows:
            continue
        row = rows[term.text]
        second, first = sorted(row)[-2:]
        if first > second:
            yield Cue(kinds[row.index(first)], "learned", "body", first - second, -1, term.start, term.end, term.text)
