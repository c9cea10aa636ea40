"""Which words are real: what a misprint never makes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from evalkit.grounding.normalise import plain

_WORD = re.compile(r"[^\W\d_]+")


@cache
def _english() -> frozenset[str]:
    """Folded English words; a list of 160,000 that takes 0.2 s to load, so only when two words are in doubt."""
    from spellchecker import SpellChecker

    return frozenset(SpellChecker().word_frequency.dictionary)


class Vocabulary:
    """English and the words of one document."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._uses = Counter(word for text in texts for word in _WORD.findall(plain(text).casefold()))

    def __call__(self, word: str, uses: int) -> bool:
        """Whether the folded word is English, or used at least so many times in the document."""
        return self._uses.get(word, 0) >= uses or word in _english()
