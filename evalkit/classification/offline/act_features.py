"""Language features of a text: function words, mood, gaps to fill in, text forms.

The rows of ``act_features.toml`` are function words and patterns that show a text's register; none is a title, a
vendor or a word of the embedded model's lexicon. ``acts`` judges by them and by the signs of
``second_opinion_types``, which are counted here too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from evalkit.classification.offline.second_opinion_types import TYPE_SIGNS, count_type_signs, lower_ascii
from evalkit.core.package_tables import load_package_table

_WORD_PATTERN = re.compile(r"[a-z][a-z/]*(?:['’.-][a-z]+)*")
#: Shorter texts are counted as this many words, so that one word does not decide a short line.
_MIN_WORDS = 60


class WordFeature(NamedTuple):
    """Language feature that is the count of a set of words and word pairs."""

    name: str
    description: str
    """End of the sentence "The text …" about a text that has the words."""
    words: frozenset[str]
    """Single words, and pairs of words with a space between."""


class PatternFeature(NamedTuple):
    """Language feature that is the count of a pattern's matches."""

    name: str
    description: str
    pattern: re.Pattern[str]
    is_case_sensitive: bool
    """True if the pattern is matched against the original text instead of lower-case text."""


class ActFeatures(NamedTuple):
    """Checked rows of ``act_features.toml``, with indices for counting."""

    version: str
    word_features: tuple[WordFeature, ...]
    pattern_features: tuple[PatternFeature, ...]
    indices_by_word: dict[str, tuple[int, ...]]
    """Word or pair → positions in ``word_features`` of the features that count it."""
    first_words: frozenset[str]
    """First words of all word pairs."""

    @property
    def descriptions(self) -> dict[str, str]:
        """Feature name → end of the sentence "the text …" about a text that has it."""
        words = {feature.name: feature.description for feature in self.word_features}
        forms = {feature.name: feature.description for feature in self.pattern_features}
        return words | forms | {sign.name: f"has {sign.name}" for sign in TYPE_SIGNS}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all features in counting order: word features, patterns, type signs."""
        return (
            *(feature.name for feature in self.word_features),
            *(feature.name for feature in self.pattern_features),
            *(sign.name for sign in TYPE_SIGNS),
        )


class FeatureCounts(NamedTuple):
    """Number of words of a text, and its count of each feature."""

    word_count: int
    word_and_pattern_counts: tuple[int, ...]
    type_sign_counts: tuple[int, ...]


@cache
def load_act_features() -> ActFeatures:
    """Load ``act_features.toml``; cached."""
    rows = load_package_table("evalkit.classification.offline", "act_features.toml")
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
    """Count each feature in a text, such as the body of a page; cached."""
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
    """Return ln(1 + count per hundred words) of each feature over these pages.

    In the order of ``ActFeatures.names``.
    """
    scale = 100 / max(sum(counts.word_count for counts in counts_by_page), _MIN_WORDS)
    columns = zip(
        *((*counts.word_and_pattern_counts, *counts.type_sign_counts) for counts in counts_by_page), strict=True
    )
    return [math.log1p(sum(column) * scale) for column in columns]


def iter_feature_spans(name: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the places (start, end) where a text shows the named feature, in order.

    Matches of white space alone are left out.
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
