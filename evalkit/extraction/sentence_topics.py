"""Doubts about fields from a linear model of what each sentence is about.

A second judge of the fields (contract ruling 20c): it holds no word that somebody chose, and shares nothing with
``clinical/``, ``patterns.toml`` and ``item_count.*``. A topic is a field's name; sentences of all sections that are taken
whole have the topic ``narrative``. ``tests/benchmarks/sentence_topics.py`` learns ``sentence_topics.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evalkit.documents.bundle import Page
from evalkit.extraction.extraction_schema import NOT_PRESENT_VALUE, FieldValue
from evalkit.extraction.optimizer import EvaluationIssue

NARRATIVE = "narrative"
#: Fields whose sentences have the topic ``NARRATIVE``.
NARRATIVE_FIELDS = ("impression", "findings")
#: A sentence of a section is in doubt if it is a narrative with less than this probability.
MIN_NARRATIVE_PROBABILITY = 0.1
#: The report's date is in doubt if another sentence is more probable by this.
MIN_DATE_ADVANTAGE = 0.4

_SENTENCE_END = re.compile(r"(?<=\w\w[.;?])[ \t]+(?=[A-Z(])|\n(?![a-z])")
_HAS_DIGIT = re.compile(r"\d").search
_WORD = re.compile(r"[a-z]+|0+(?:[.,]0+)*|[%+<>/?:]")
#: Words of more letters are also known by so many first and last letters.
_WORD_ENDS = 4
_MAX_QUOTE = 80


class TopicSentence(NamedTuple):
    """A sentence of a report with the probability of each topic."""

    page: int
    text: str
    probabilities: Mapping[str, float]


class TopicWeights(NamedTuple):
    """Contents of ``sentence_topics.json``."""

    topics: Sequence[str]
    index_by_feature: Mapping[str, int]
    bias: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    """One row per feature, one column per topic."""

    def compute_probabilities(self, sentence: str) -> dict[str, float]:
        """Compute for each topic how probable it is that the sentence states it."""
        indices = [
            index for feature in extract_features(sentence) if (index := self.index_by_feature.get(feature)) is not None
        ]
        sums = self.bias + self.weights[indices].sum(axis=0)
        return dict(zip(self.topics, (1 / (1 + np.exp(-sums))).tolist(), strict=True))


@cache
def load_topic_weights() -> TopicWeights:
    """Load ``sentence_topics.json``; cached."""
    return parse_topic_weights(json.loads((files("evalkit.extraction") / "sentence_topics.json").read_text("utf-8")))


def parse_topic_weights(data: Mapping[str, Any]) -> TopicWeights:
    """Convert the contents of ``sentence_topics.json``."""
    return TopicWeights(
        data["topics"],
        {feature: index for index, feature in enumerate(data["features"])},
        np.array(data["bias"]),
        np.array(list(data["features"].values())),
    )


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences and lines; join a line that starts in lower case.

    >>> split_sentences("Margins: clear. Reader: A. Moss, MD")
    ['Margins: clear.', 'Reader: A. Moss, MD']
    """
    return [sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def extract_features(sentence: str) -> set[str]:
    """Return a sentence's words (digits as 0), word pairs, word ends and shape."""
    words = ["^", *_WORD.findall(re.sub(r"\d", "0", sentence.lower())), "$"]
    tokens = sentence.split()
    features = {*words, *map(" ".join, pairwise(words))}
    for word in words:
        if len(word) > _WORD_ENDS:
            features |= {f"{word[:_WORD_ENDS]}-", f"-{word[-_WORD_ENDS:]}"}
    features |= {
        f"words={min(len(tokens) // 3, 6)}",
        f"numbers={min(sum(any(map(str.isdigit, token)) for token in tokens), 4)}",
        f"commas={min(sentence.count(','), 3)}",
        f"end={sentence[-1] if sentence[-1] in '.:;?' else ''}",
    }
    if not sentence.isupper():
        features |= {
            f"capitals={5 * sum(token[0].isupper() for token in tokens) // len(tokens)}",
            f"abbreviations={min(sum(len(token) > 1 and token.isupper() for token in tokens), 3)}",
        }
    return features


def classify_sentences(pages: Iterable[Page]) -> tuple[TopicSentence, ...]:
    """Compute the topics of the sentences that contain a number.

    No other states a date, a stage or a size.
    """
    weights = load_topic_weights()
    return tuple(
        TopicSentence(page.page_num, sentence, weights.compute_probabilities(sentence))
        for page in pages
        for sentence in split_sentences(page.text)
        if _HAS_DIGIT(sentence)
    )


def squeeze_words(text: str) -> str:
    """Return a text's words in lower case, single-spaced, without punctuation."""
    return f" {' '.join(re.findall(r'[a-z0-9]+|[%+<>]', text.lower()))} "


def find_topic_doubts(
    sentences: Sequence[TopicSentence], fields: Mapping[str, FieldValue]
) -> Iterator[EvaluationIssue]:
    """Find values that may not be what the report states.

    These are sections with a sentence of another kind, such as a signature, and a date where another sentence is much
    more probably that of the report's date.
    """
    weights = load_topic_weights()
    for name in NARRATIVE_FIELDS:
        value = fields.get(name, NOT_PRESENT_VALUE)
        foreign_sentence = next(
            (
                sentence
                for sentence in split_sentences(value.raw or "" if value.is_found else "")
                if "\t" not in sentence
                and not sentence.endswith(":")  # no row of a table, no heading
                and weights.compute_probabilities(sentence)[NARRATIVE] < MIN_NARRATIVE_PROBABILITY
            ),
            None,
        )
        if foreign_sentence:
            yield EvaluationIssue("major", name, f'"{_shorten(foreign_sentence)}" in {name} may not belong to it')
    date = fields.get("date", NOT_PRESENT_VALUE)
    own_words = squeeze_words(date.raw or "")
    dated = sorted(sentences, key=lambda sentence: -sentence.probabilities["date"])
    own = next((sentence for sentence in dated if own_words in squeeze_words(sentence.text)), None)
    if date.is_found and own and own.probabilities["date"] < dated[0].probabilities["date"] - MIN_DATE_ADVANTAGE:
        yield EvaluationIssue(
            "major", "date", f'"{date.raw}" may not be the date of the report: see "{_shorten(dated[0].text)}"'
        )


def _shorten(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MAX_QUOTE else f"{words[: _MAX_QUOTE - 1]}…"
