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

from evalkit.grounding.normalise import plain

_WORD = re.compile(r"[^\W\d_]+")
_ENTRY = re.compile(r'"([^"\\]+)":')


#: Words of a packed part of the list: so many are looked through at once.
_PART = 256


@dataclass(frozen=True)
class Listed:
    """A long list of words: as a set, English would take 20 MB instead of half of one."""

    firsts: Sequence[str]
    """The first word of each part, in order."""
    parts: Sequence[bytes]
    """The words of each part in order, each between spaces, packed."""

    @classmethod
    def of(cls, words: Iterable[str]) -> Listed:
        """The words, which come in order."""
        rest, firsts, parts = iter(words), [], []
        while part := list(islice(rest, _PART)):
            firsts.append(part[0])
            parts.append(zlib.compress(f" {' '.join(part)} ".encode()))
        return cls(firsts, parts)

    def __contains__(self, word: str) -> bool:
        at = bisect_right(self.firsts, word) - 1
        return at >= 0 and f" {word} ".encode(errors="surrogatepass") in _unpacked(self.parts[at])


@lru_cache(maxsize=64)
def _unpacked(part: bytes) -> bytes:
    return zlib.decompress(part)


@cache
def english() -> Listed:
    """Folded English words: pyspellchecker's list of 160,000, read past one by one when it is first asked for.

    Its own reader would have them all in memory with their counts, and leave 10 MB of holes in a kernel for good.
    """
    packed = resources.files("spellchecker").joinpath("resources", "en.json.gz").read_bytes()
    return Listed.of(entry[1] for entry in _ENTRY.finditer(gzip.decompress(packed).decode()))


class Vocabulary:
    """English and the words of one document."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._uses = Counter(word for text in texts for word in _WORD.findall(plain(text).casefold()))

    def __call__(self, word: str, uses: int) -> bool:
        """Whether the folded word is English, or used at least so many times in the document."""
        return self._uses.get(word, 0) >= uses or word in english()
