"""Recognition of real words, which do not count as misprints."""

import gzip
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, cached_property
from importlib import resources
from itertools import groupby
from operator import itemgetter

from evalkit.grounding.normalise import normalise_characters

#: As number of uses, a value that no document reaches: then only dictionary words count as known.
IMPOSSIBLE_USE_COUNT = 10**9

_WORD = re.compile(r"[^\W\d_]+")
_JSON_ENTRY = re.compile(r'"([^"\\]+)":')


@cache
def load_english_word_text_by_prefix() -> dict[str, str]:
    """Return pyspellchecker's 160,000 English words, by their first two letters.

    Each value is a text of all words with these letters, with a space around each word. As single strings, the words
    would take 20 MB.
    """
    words_json = gzip.decompress(resources.files("spellchecker").joinpath("resources", "en.json.gz").read_bytes())
    words = (match[1] for match in _JSON_ENTRY.finditer(words_json.decode()))
    return {prefix: f" {' '.join(group)} " for prefix, group in groupby(words, key=itemgetter(slice(2)))}


def is_english_word(word: str) -> bool:
    """Return True if a folded word is in the list of English words."""
    return f" {word} " in load_english_word_text_by_prefix().get(word[:2], "")


class DocumentVocabulary:
    """Vocabulary of English words and of the words that one document uses."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @cached_property
    def _use_counts(self) -> Counter[str]:
        return Counter(word for text in self._texts for word in _WORD.findall(normalise_characters(text).casefold()))

    def __call__(self, word: str, min_uses: int) -> bool:
        """Return True if a folded word is English, or the document uses it often enough.

        Often enough is at least ``min_uses`` times.
        """
        return is_english_word(word) or (min_uses < IMPOSSIBLE_USE_COUNT and self._use_counts[word] >= min_uses)
