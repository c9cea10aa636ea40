"""Which words are real: what a misprint never makes."""

from __future__ import annotations

import gzip
import re
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import islice

from evalkit.grounding.normalise import normalise_characters

_WORD = re.compile(r"[^\W\d_]+")
_JSON_ENTRY = re.compile(r'"([^"\\]+)":')


#: Words of a packed part of the list: so many are looked through at once.
_WORDS_PER_BLOCK = 256


@dataclass(frozen=True)
class CompressedWordList:
    """A long list of words: as a set, English would take 20 MB instead of half of one."""

    first_words: Sequence[str]
    """The first word of each part, in order."""
    compressed_blocks: Sequence[bytes]
    """The words of each part in order, each between spaces, packed."""

    @classmethod
    def from_sorted_words(cls, sorted_words: Iterable[str]) -> CompressedWordList:
        """The words, which come in order."""
        remaining_words, first_words, compressed_blocks = iter(sorted_words), [], []
        while word_block := list(islice(remaining_words, _WORDS_PER_BLOCK)):
            first_words.append(word_block[0])
            compressed_blocks.append(zlib.compress(f" {' '.join(word_block)} ".encode()))
        return cls(first_words, compressed_blocks)

    def __contains__(self, word: str) -> bool:
        block_index = bisect_right(self.first_words, word) - 1
        return block_index >= 0 and f" {word} ".encode(errors="surrogatepass") in _decompress_block(
            self.compressed_blocks[block_index]
        )


@lru_cache(maxsize=64)
def _decompress_block(compressed_block: bytes) -> bytes:
    return zlib.decompress(compressed_block)


@cache
def load_english_words() -> CompressedWordList:
    """Folded English words: pyspellchecker's list of 160,000, read past one by one when it is first asked for.

    Its own reader would have them all in memory with their counts, and leave 10 MB of holes in a kernel for good.
    """
    compressed_json = resources.files("spellchecker").joinpath("resources", "en.json.gz").read_bytes()
    return CompressedWordList.from_sorted_words(
        match[1] for match in _JSON_ENTRY.finditer(gzip.decompress(compressed_json).decode())
    )


class Vocabulary:
    """English and the words of one document."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._use_counts = Counter(
            word for text in texts for word in _WORD.findall(normalise_characters(text).casefold())
        )

    def __call__(self, word: str, min_uses: int) -> bool:
        """Whether the folded word is English, or used at least so many times in the document."""
        return self._use_counts.get(word, 0) >= min_uses or word in load_english_words()
