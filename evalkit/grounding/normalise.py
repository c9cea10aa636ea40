"""Text in one canonical form, with the way back to the original characters.

Equal are: compatibility forms and ligatures (NFKC), accents in one sign with their letter or behind it, curly and
straight quotes, all dashes, upper and lower case, any whitespace or none, a word hyphenated between letters or not. Numbers stay what they are: superscript and subscript
digits keep their height (10³ is not 103), a hyphen beside a digit stays (3-5 is not 35), and so does the space between
two numbers (1 2 is not 12).
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import compress

_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_SIGNS = (
    dict.fromkeys("‘’‚‛′´`", "'")
    | dict.fromkeys("“”„‟″", '"')
    | dict.fromkeys("‐‑‒–—―−﹘﹣－", "-")
    | dict.fromkeys("•▪●·∙", "*")
    | dict.fromkeys("\xad\u200b\u200c\u200d\u2060\ufeff", "")
    | {"×": "x", "≥": ">=", "≤": "<=", "⩾": ">=", "⩽": "<=", "⁻": "^-", "⁺": "^+", "⁄": "/"}
    | {sign: f"^{digit}" for sign, digit in _RAISED.items()}
    | {sign: f"_{digit}" for sign, digit in _LOWERED.items()}
)


@dataclass(frozen=True)
class Canonical:
    """A text in canonical form."""

    original: str
    text: str

    @cached_property
    def origin(self) -> Sequence[int]:
        """For each canonical character, the original character it came from.

        Worked out again when it is asked for: a long document has a million of them, and only a few pages are lit.
        """
        return _traced(self.original)[1]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original characters behind the canonical ones ``start:end`` (not empty)."""
        return self.origin[start], self.origin[end - 1] + 1


@lru_cache(maxsize=512)  # every verifier looks at the same pages
def canonical(text: str) -> Canonical:
    """The canonical form of a text."""
    return Canonical(text, _traced(text)[0])


def _traced(text: str) -> tuple[str, Sequence[int]]:
    """The canonical form, and for each of its characters the original one it came from."""
    parts: list[str] = []
    origin = array("H" if len(text) < 65536 else "i")
    joined = _joining_hyphens(text)
    spaced = text if text.isascii() else _WIDE_SPACE.sub(" ", text)
    is_inked = spaced.encode("ascii", "replace").translate(_INK)
    at = 0
    # Nearly all is between these: words that are lowered, and spaces that are left out.
    for start, end in _marked(text, joined):
        parts += text[at:start].lower().split()
        origin.extend(compress(range(at, start), is_inked[at:start]))
        at = end
        if text[start].isspace():
            parts.append(" ")
            origin.append(start)
            continue
        for letter in _LETTER.finditer(text, start, end):
            index = letter.start()
            folded = "" if index in joined else _folded(letter.group())
            parts.append(folded)
            origin.extend([index] * len(folded))
    parts += text[at:].lower().split()
    origin.extend(compress(range(at, len(text)), is_inked[at:]))
    return "".join(parts), origin


def _marked(text: str, joined: frozenset[int]) -> list[tuple[int, int]]:
    """The words that are not ASCII or are joined by a hyphen, and the spaces between two numbers; in order."""
    signs = joined if text.isascii() else joined.union(match.start() for match in _NOT_ASCII.finditer(text))
    found, end = [], 0
    for sign in sorted(signs):
        if sign >= end:  # not in the word before
            head = text[end:sign]
            start = sign - (0 if head[-1:].isspace() else len("".join(head.rsplit(maxsplit=1)[-1:])))
            end = _WORD.match(text, sign).end()  # type: ignore[union-attr]
            found.append((start, end))
    return sorted([*found, *(match.span(match.lastindex or 0) for match in _BETWEEN_NUMBERS.finditer(text))])


def canonical_text(text: str) -> str:
    """``canonical(text).text`` without the way back, which takes most of the time."""
    if not text.isascii():
        return " ".join("".join(map(_folded, _LETTER.findall(part))) for part in _GAP.split(_HYPHEN.sub("", text)))
    marked = _ASCII_HYPHEN.sub("", text) if "-" in text else text
    if _BEFORE_GAP.search(marked):  # few texts have two numbers side by side, and looking closer takes long
        marked = _GAP.sub("\0", marked)
    return "".join(marked.lower().split()).replace("\0", " ")


# A sign with the accents behind it.
_LETTER = re.compile(r".[\u0300-\u036f]*", re.DOTALL)


@lru_cache(maxsize=4096)
def _folded(letter: str) -> str:
    if letter in _SIGNS:
        return _SIGNS[letter]
    folded = unicodedata.normalize("NFKC", letter).casefold()
    return "".join(_SIGNS.get(part, part) for part in folded if not part.isspace())


_PLAIN = str.maketrans(_SIGNS)
# In all of these the sign stands first, and what is before it is asked then: the engine skips to the next sign.
_LINE_END_HYPHEN = re.compile(r"-(?<=[^\W\d_A-Z]-)\s+(?=[^\W\d_])")


def plain(text: str) -> str:
    """The text with one form of each letter, quote and dash, nothing invisible, and no hyphen where a line ended."""
    signed = text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_PLAIN)).translate(_PLAIN)
    return _LINE_END_HYPHEN.sub("", signed) if "-" in signed else signed


_GAP = re.compile(r"\s(?:(?<=\d\s)\s*(?=[.,]?\d)|(?<=\d[.,]\s)\s*(?=\d))")
_BEFORE_GAP = re.compile(r"\d[.,]?\s")
_ASCII_HYPHEN = re.compile(r"-(?:(?<=[A-Za-z]-)(?=[A-Za-z])|(?<=[a-z]-)(?=\s+[A-Za-z]))")
_WORD = re.compile(r"\S+")
_NOT_ASCII = re.compile(r"[^\s\x00-\x7f]")
_BETWEEN_NUMBERS = re.compile(r"\d[.,]?(\s+)(?=\d)|\d(\s+)(?=[.,]\d)")
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")
_INK = bytes(not chr(code).isspace() for code in range(256))
# Behind a capital a hyphen before a space is a sign: blood type A- was found.
_HYPHEN = re.compile(r"[-\u2010\u2011](?:(?<=[^\W\d_].)(?=[^\W\d_])|(?<=[^\W\d_A-Z].)(?=\s+[^\W\d_]))")


def _joining_hyphens(text: str) -> frozenset[int]:
    """The hyphens that stand between two letters, at a line's end or not."""
    pattern = _ASCII_HYPHEN if text.isascii() else _HYPHEN
    return frozenset([match.start() for match in pattern.finditer(text)])
