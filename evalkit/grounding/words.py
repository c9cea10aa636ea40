"""Which words are real: what a misprint never makes."""

from __future__ import annotations

import gzip
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from io import StringIO

from evalkit.grounding.normalise import plain

_WORD = re.compile(r"[^\W\d_]+")
_ENTRY = re.compile(r'"([^"\\]+)":')


@dataclass(frozen=True)
class Listed:
    """A long list of words: as a set, English would take 20 MB instead of 2."""

    text: str
    """The words in order, each with a space behind it."""
    starts: Sequence[int]
    """Where each begins in ``text``, and where it ends."""

    def __contains__(self, word: str) -> bool:
        at = bisect_left(self.starts, word, hi=len(self.starts) - 1, key=self._word)
        return self.text.startswith(f"{word} ", self.starts[at])

    def _word(self, start: int) -> str:
        return self.text[start : self.text.index(" ", start)]


@cache
def english() -> Listed:
    """Folded English words: pyspellchecker's list of 160,000, read past one by one when it is first asked for.

    Its own reader would have them all in memory with their counts, and leave 10 MB of holes in a kernel for good.
    """
    packed = resources.files("spellchecker").joinpath("resources", "en.json.gz").read_bytes()
    text, starts = StringIO(), array("i", [0])
    for entry in _ENTRY.finditer(gzip.decompress(packed).decode()):
        starts.append(starts[-1] + text.write(f"{entry[1]} "))
    return Listed(text.getvalue(), starts)


class Vocabulary:
    """English and the words of one document."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._uses = Counter(word for text in texts for word in _WORD.findall(plain(text).casefold()))

    def __call__(self, word: str, uses: int) -> bool:
        """Whether the folded word is English, or used at least so many times in the document."""
        return self._uses.get(word, 0) >= uses or word in english()
