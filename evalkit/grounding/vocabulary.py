"""Recognise real words: a misprint never makes one."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib import resources
from itertools import groupby
from operator import itemgetter

from evalkit.grounding.normalise import normalise_characters

_WORD = re.compile(r"[^\W\d_]+")
_JSON_ENTRY = re.compile(r'"([^"\\]+)":')


@cache
def load_english_word_text_by_prefix() -> dict[str, str]:
    """Load folded English words, pyspellchecker's 160,000, by their first two letters.

    Each value is the words between spaces: one by one, as pyspellchecker has them, they would take 20 MB.
    """
    words_json = gzip.decompress(resources.files("spellchecker").joinpath("resources", "en.json.gz").read_bytes())
    words = (match[1] for match in _JSON_ENTRY.finditer(words_json.decode()))
    return {prefix: f" {' '.join(group)} " for prefix, group in groupby(words, key=itemgetter(slice(2)))}


def is_english_word(word: str) -> bool:
    """Decide if a folded word is English."""
    return f" {word} " in load_english_word_text_by_prefix().get(word[:2], "")


class DocumentVocabulary:
    """English and the words of one document."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._use_counts = Counter(
            word for text in texts for word in _WORD.findall(normalise_characters(text).casefold())
        )

    def __call__(self, word: str, min_uses: int) -> bool:
        """Decide if a folded word is English, or frequent enough in the document."""
        return self._use_counts.get(word, 0) >= min_uses or is_english_word(word)
