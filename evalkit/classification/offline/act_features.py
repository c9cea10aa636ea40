"""Measure how a text speaks: to whom, of whom, in which mood, with which gaps.

Rows are data (``act_features.toml``): function words and shapes that show a text's register, none of them a title, a
vendor or a word of the embedded model's lexicon. The forms of the types (``second_opinion_types``) are measured with
them; the two together are what ``acts`` judges by.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from evalkit.classification.offline.second_opinion_types import TYPE_SIGNS, count_type_signs, lower_ascii

_WORD_PATTERN = re.compile(r"[a-z][a-z/]*(?:['’.-][a-z]+)*")
_MIN_WORDS = 60
"""Rates of shorter texts are of so many words, or one word would decide a line."""


class WordFeature(NamedTuple):
    """A set of words, counted together."""

    name: str
    description: str
    """The end of the sentence "The text …" if it has them."""
    words: frozenset[str]
    """Single words, and pairs parted by a space."""


class PatternFeature(NamedTuple):
    """A shape of text."""

    name: str
    description: str
    pattern: re.Pattern[str]
    is_case_sensitive: bool
    """If it is searched in the text as it is, not in lower case."""


class ActFeatures(NamedTuple):
    """The rows of ``act_features.toml``."""

    version: str
    word_features: tuple[WordFeature, ...]
    pattern_features: tuple[PatternFeature, ...]
    indices_by_word: dict[str, tuple[int, ...]]
    """Word or pair → the word features that count it."""
    first_words: frozenset[str]
    """Words that begin a pair."""

    @property
    def descriptions(self) -> dict[str, str]:
        """Feature → what the text does that shows it; finishes "the text …"."""
        words = {feature.name: feature.description for feature in self.word_features}
        forms = {feature.name: feature.description for feature in self.pattern_features}
        return words | forms | {sign.name: f"has {sign.name}" for sign in TYPE_SIGNS}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of a text's numbers: word features, form features, types' forms."""
        return (
            *(feature.name for feature in self.word_features),
            *(feature.name for feature in self.pattern_features),
            *(sign.name for sign in TYPE_SIGNS),
        )


class FeatureCounts(NamedTuple):
    """Counts of each feature in a text."""

    word_count: int
    word_and_pattern_counts: tuple[int, ...]
    type_sign_counts: tuple[int, ...]


@cache
def load_act_features() -> ActFeatures:
    """Load the shipped rows, once."""
    rows = tomllib.loads((files("evalkit.classification.offline") / "act_features.toml").read_text("utf-8"))
    word_features = tuple(
        WordFeature(row["name"], row["sign"], frozenset(word.replace("|", " ") for word in row["words"].split()))
        for row in rows["word"]
    )
    indices_by_word: dict[str, tuple[int, ...]] = {}
    for index, feature in enumerate(word_features):
        for word in feature.words:
            indices_by_word[word] = (*indices_by_word.get(word, ()), index)
    pattern_features = tuple(
        PatternFeature(
            row["name"], row["sign"], re.compile(row["expression"], re.MULTILINE), row.get("is_case_sensitive", False)
        )
        for row in rows["form"]
    )
    first_words = frozenset(word.partition(" ")[0] for word in indices_by_word if " " in word)
    return ActFeatures(rows["version"], word_features, pattern_features, indices_by_word, first_words)


@lru_cache(maxsize=1024)  # several checks ask about the same pages
def count_features(text: str) -> FeatureCounts:
    """Count each feature in a text, such as a page."""
    features = load_act_features()
    lowercase_text = lower_ascii(text)
    words = _WORD_PATTERN.findall(lowercase_text)
    counts = [0] * len(features.word_features)
    for word in words:
        for index in features.indices_by_word.get(word, ()):
            counts[index] += 1
    for first, second in pairwise(words):
        if first in features.first_words:
            for index in features.indices_by_word.get(f"{first} {second}", ()):
                counts[index] += 1
    counts += [
        len(feature.pattern.findall(text if feature.is_case_sensitive else lowercase_text))
        for feature in features.pattern_features
    ]
    return FeatureCounts(len(words), tuple(counts), count_type_signs(text))


def compute_log_feature_rates(counts_by_page: Sequence[FeatureCounts]) -> list[float]:
    """Compute the logarithm of each feature's count per hundred words.

    In the order of ``ActFeatures.names``.
    """
    word_count = sum(counts.word_count for counts in counts_by_page)
    scale = 100 / max(word_count, _MIN_WORDS)
    columns = zip(
        *((*counts.word_and_pattern_counts, *counts.type_sign_counts) for counts in counts_by_page), strict=True
    )
    return [math.log1p(sum(column) * scale) for column in columns]


def iter_feature_spans(name: str, text: str) -> Iterator[tuple[int, int]]:
    """Iterate over the places where a text shows a feature, in order.

    Matches of nothing but line breaks and the like are left out.
    """
    features = load_act_features()
    words = next((feature.words for feature in features.word_features if feature.name == name), None)
    if words is not None:
        yield from _iter_word_spans(words, lower_ascii(text))
        return
    form = next((feature for feature in features.pattern_features if feature.name == name), None)
    if form is not None:
        matches = form.pattern.finditer(text if form.is_case_sensitive else lower_ascii(text))
    else:
        matches = next(sign for sign in TYPE_SIGNS if sign.name == name).pattern.finditer(text)
    yield from (match.span() for match in matches if match.group().strip())


def _iter_word_spans(words: AbstractSet[str], lowercase_text: str) -> Iterator[tuple[int, int]]:
    previous: re.Match[str] | None = None
    for match in _WORD_PATTERN.finditer(lowercase_text):
        if match.group() in words:
            yield match.span()
        elif previous and f"{previous.group()} {match.group()}" in words:
            yield previous.start(), match.end()
        previous = match
