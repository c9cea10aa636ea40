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

_SUPERSCRIPT_DIGITS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True))
_SUBSCRIPT_DIGITS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_CHARACTER_FOLDS = (
    dict.fromkeys("‘’‚‛′´`", "'")
    | dict.fromkeys("“”„‟″", '"')
    | dict.fromkeys("‐‑‒–—―−﹘﹣－", "-")
    | dict.fromkeys("•▪●·∙", "*")
    | dict.fromkeys("\xad\u200b\u200c\u200d\u2060\ufeff", "")
    | {"×": "x", "≥": ">=", "≤": "<=", "⩾": ">=", "⩽": "<=", "⁻": "^-", "⁺": "^+", "⁄": "/"}
    | {character: f"^{digit}" for character, digit in _SUPERSCRIPT_DIGITS.items()}
    | {character: f"_{digit}" for character, digit in _SUBSCRIPT_DIGITS.items()}
)


@dataclass(frozen=True)
class CanonicalText:
    """A text in canonical form."""

    original_text: str
    text: str

    @cached_property
    def original_indices(self) -> Sequence[int]:
        """For each canonical character, the original character it came from.

        Worked out again when it is asked for: a long document has a million of them, and only a few pages are lit.
        """
        return _canonicalise_with_indices(self.original_text)[1]

    def get_original_span(self, start: int, end: int) -> tuple[int, int]:
        """The original characters behind the canonical ones ``start:end`` (not empty)."""
        return self.original_indices[start], self.original_indices[end - 1] + 1


@lru_cache(maxsize=512)  # every verifier looks at the same pages
def build_canonical_text(text: str) -> CanonicalText:
    """The canonical form of a text."""
    return CanonicalText(text, _canonicalise_with_indices(text)[0])


def _canonicalise_with_indices(text: str) -> tuple[str, Sequence[int]]:
    """The canonical form, and for each of its characters the original one it came from."""
    canonical_parts: list[str] = []
    original_indices = array("H" if len(text) < 65536 else "i")
    joining_hyphens = _find_joining_hyphens(text)
    ascii_spaced_text = text if text.isascii() else _NON_ASCII_SPACE.sub(" ", text)
    ink_mask = ascii_spaced_text.encode("ascii", "replace").translate(_INK_TABLE)
    position = 0
    # Nearly all is between these: words that are lowered, and spaces that are left out.
    for start, end in _find_special_spans(text, joining_hyphens):
        canonical_parts += text[position:start].lower().split()
        original_indices.extend(compress(range(position, start), ink_mask[position:start]))
        position = end
        if text[start].isspace():
            canonical_parts.append(" ")
            original_indices.append(start)
            continue
        for letter_match in _LETTER_WITH_ACCENTS.finditer(text, start, end):
            index = letter_match.start()
            folded_letter = "" if index in joining_hyphens else _fold_letter(letter_match.group())
            canonical_parts.append(folded_letter)
            original_indices.extend([index] * len(folded_letter))
    canonical_parts += text[position:].lower().split()
    original_indices.extend(compress(range(position, len(text)), ink_mask[position:]))
    return "".join(canonical_parts), original_indices


def _find_special_spans(text: str, joining_hyphens: frozenset[int]) -> list[tuple[int, int]]:
    """The words that are not ASCII or are joined by a hyphen, and the spaces between two numbers; in order."""
    special_positions = (
        joining_hyphens
        if is_plain(text)
        else joining_hyphens.union(match.start() for match in _NOT_PLAIN.finditer(text))
    )
    word_spans, end = [], 0
    for special_position in sorted(special_positions):
        if special_position >= end:  # not in the word before
            text_before = text[end:special_position]
            start = special_position - (
                0 if text_before[-1:].isspace() else len("".join(text_before.rsplit(maxsplit=1)[-1:]))
            )
            end = _WORD.match(text, special_position).end()  # type: ignore[union-attr]
            word_spans.append((start, end))
    return sorted([*word_spans, *(match.span(match.lastindex or 0) for match in _SPACE_BETWEEN_NUMBERS.finditer(text))])


def canonicalise(text: str) -> str:
    """``build_canonical_text(text).text`` without the way back, which takes most of the time."""
    if not is_plain(text):
        return " ".join(
            "".join(map(_fold_letter, _LETTER_WITH_ACCENTS.findall(part)))
            for part in _NUMBER_GAP.split(_JOINING_HYPHEN.sub("", text))
        )
    marked_text = _ASCII_JOINING_HYPHEN.sub("", text) if "-" in text else text
    if _POSSIBLE_NUMBER_GAP.search(
        marked_text
    ):  # few texts have two numbers side by side, and looking closer takes long
        marked_text = _NUMBER_GAP.sub("\0", marked_text)
    return "".join(marked_text.lower().split()).replace("\0", " ")


# A sign with the accents behind it.
_LETTER_WITH_ACCENTS = re.compile(r".[\u0300-\u036f]*", re.DOTALL)


@lru_cache(maxsize=4096)
def _fold_letter(letter: str) -> str:
    if letter in _CHARACTER_FOLDS:
        return _CHARACTER_FOLDS[letter]
    folded_letter = unicodedata.normalize("NFKC", letter).casefold()
    return "".join(_CHARACTER_FOLDS.get(character, character) for character in folded_letter if not character.isspace())


_PLAIN_TRANSLATION = str.maketrans(_CHARACTER_FOLDS)
# In all of these the sign stands first, and what is before it is asked then: the engine skips to the next sign.
_LINE_END_HYPHEN = re.compile(r"-(?<=[^\W\d_A-Z]-)\s+(?=[^\W\d_])")


def is_plain(text: str) -> bool:
    """Whether every character is its own canonical form: ASCII, and no backtick, which is a quote."""
    return text.isascii() and "`" not in text


def normalise_characters(text: str) -> str:
    """The text with one form of each letter, quote and dash, nothing invisible, and no hyphen where a line ended."""
    normalised_text = (
        text
        if is_plain(text)
        else unicodedata.normalize("NFKC", text.translate(_PLAIN_TRANSLATION)).translate(_PLAIN_TRANSLATION)
    )
    return _LINE_END_HYPHEN.sub("", normalised_text) if "-" in normalised_text else normalised_text


_NUMBER_GAP = re.compile(r"\s(?:(?<=\d\s)\s*(?=[.,]?\d)|(?<=\d[.,]\s)\s*(?=\d))")
_POSSIBLE_NUMBER_GAP = re.compile(r"\d[.,]?\s")
_ASCII_JOINING_HYPHEN = re.compile(r"-(?:(?<=[A-Za-z]-)(?=[A-Za-z])|(?<=[a-z]-)(?=\s+[A-Za-z]))")
_WORD = re.compile(r"\S+")
_NOT_PLAIN = re.compile(r"[^\s\x00-\x7f]|`")
_SPACE_BETWEEN_NUMBERS = re.compile(r"\d[.,]?(\s+)(?=\d)|\d(\s+)(?=[.,]\d)")
_NON_ASCII_SPACE = re.compile(r"[^\S\x00-\x7f]")
_INK_TABLE = bytes(not chr(code).isspace() for code in range(256))
# Behind a capital a hyphen before a space is a sign: blood type A- was found.
_JOINING_HYPHEN = re.compile(r"[-\u2010\u2011](?:(?<=[^\W\d_].)(?=[^\W\d_])|(?<=[^\W\d_A-Z].)(?=\s+[^\W\d_]))")


def _find_joining_hyphens(text: str) -> frozenset[int]:
    """The hyphens that stand between two letters, at a line's end or not."""
    pattern = _ASCII_JOINING_HYPHEN if text.isascii() else _JOINING_HYPHEN
    return frozenset([match.start() for match in pattern.finditer(text)])
