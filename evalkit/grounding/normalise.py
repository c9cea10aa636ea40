"""Canonical form of text, with a mapping back to the original characters.

Two texts with the same canonical form may differ in compatibility forms and ligatures (NFKC), composed and combining
accents, curly and straight quotes, kinds of dashes, upper and lower case, white space, and hyphens between letters.
Numbers keep their form: superscript and subscript digits stay different from others (10³ is not 103), a hyphen next to a
digit stays (3-5 is not 35), and so does the space between two numbers (1 2 is not 12).
"""

import re
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import compress

from evalkit.core.document_cache import cache_document_text

#: All characters that are drawn as a dash or hyphen; the canonical form writes each as ASCII's hyphen.
DASHES = "-‐‑‒–—―−⸺⸻⁃﹘﹣－᠆־"

_CHARACTER_FOLDS = (
    dict.fromkeys("‘’‚‛′´`", "'")
    | dict.fromkeys("“”„‟″", '"')
    | dict.fromkeys(DASHES, "-")
    | dict.fromkeys("•▪●·∙", "*")
    | dict.fromkeys("\xad\u200b\u200c\u200d\u2060\ufeff", "")
    | {"×": "x", "≥": ">=", "≤": "<=", "⩾": ">=", "⩽": "<=", "⁻": "^-", "⁺": "^+", "⁄": "/"}
    | {character: f"^{digit}" for digit, character in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
    | {character: f"_{digit}" for digit, character in enumerate("₀₁₂₃₄₅₆₇₈₉")}
)


#: Quotes and bullets, each of which one ASCII character replaces that is no dash.
_ASCII_FOLDS = str.maketrans({letter: fold for letter, fold in _CHARACTER_FOLDS.items() if fold in ("'", '"', "*")})


@dataclass(frozen=True)
class CanonicalText:
    """A text in canonical form (``text``), with a mapping back to the original text."""

    original_text: str
    text: str

    @cached_property
    def original_indices(self) -> Sequence[int]:
        """For each character of the canonical text: its index in the original text.

        Computed only on first access: a long document has a million characters, and only a few pages need the indices.
        """
        text = _fold_to_plain_ascii(self.original_text)
        if text is None:
            return _canonicalise_with_indices(self.original_text)[1]
        is_kept = bytearray(text.encode("ascii").translate(_KEPT_BYTES))
        for index in _find_joining_hyphens(text):
            is_kept[index] = False
        for index in _find_number_gaps(text):
            is_kept[index] = True
        return array("H" if len(text) < 65536 else "i", compress(range(len(text)), is_kept))

    def get_original_span(self, start: int, end: int) -> tuple[int, int]:
        """Convert the span ``start:end`` of the canonical text to a span of the original.

        The span must not be empty.
        """
        return self.original_indices[start], self.original_indices[end - 1] + 1


@cache_document_text(512)  # all verifiers ask for the same pages
def build_canonical_text(text: str) -> CanonicalText:
    """Return a text in canonical form, which also maps back to the original text."""
    return CanonicalText(text, canonicalise(text))


def _canonicalise_with_indices(text: str) -> tuple[str, Sequence[int]]:
    canonical_parts: list[str] = []
    original_indices = array("H" if len(text) < 65536 else "i")
    joining_hyphens = _find_joining_hyphens(text)
    number_gaps = _find_number_gaps(text)
    for match in _CANONICAL_PIECE.finditer(text):
        start, end = match.span()
        indices: Iterable[int] = range(start, end)
        if match["plain"]:
            canonical_piece = match[0].lower()
        else:
            is_joining = start in joining_hyphens
            canonical_piece = "" if is_joining else " " if start in number_gaps else _fold_letter(match[0])
            indices = [start] * len(canonical_piece)
        canonical_parts.append(canonical_piece)
        original_indices.extend(indices)
    return "".join(canonical_parts), original_indices


def canonicalise(text: str) -> str:
    """Return a text with case, accents, dashes and spaces unified (canonical form).

    Plain ASCII is unified as a whole, without the mapping back to the original text that needs every character.
    """
    plain_text = _fold_to_plain_ascii(text)
    if plain_text is None:
        return _canonicalise_with_indices(text)[0]
    marked_text = _SPACE_BETWEEN_NUMBERS.sub(
        lambda match: match[0].rstrip() + _NUMBER_GAP_MARK, _ASCII_JOINING_HYPHEN.sub("", plain_text)
    )
    return "".join(marked_text.lower().split()).replace(_NUMBER_GAP_MARK, " ")


#: Marks a space that stays while all other white space is removed. Texts that contain this character themselves are
#: canonicalised character by character.
_NUMBER_GAP_MARK = "\0"
#: For each byte: 0 if it is white space, else 1.
_KEPT_BYTES = bytes(not chr(byte).isspace() for byte in range(256))


#: A run of ASCII characters of which only the case changes (nearly all text); or a character with its combining
#: accents; or white space.
_CANONICAL_PIECE = re.compile(r"(?P<plain>[!-,.-_a-~]+(?![\u0300-\u036f]))|\S[\u0300-\u036f]*|\s+")


@lru_cache(maxsize=4096)
def _fold_letter(letter: str) -> str:
    if letter in _CHARACTER_FOLDS:
        return _CHARACTER_FOLDS[letter]
    return "".join(
        _CHARACTER_FOLDS.get(character, character)
        for character in unicodedata.normalize("NFKC", letter).casefold()
        if not character.isspace()
    )


_PLAIN_TRANSLATION = str.maketrans(_CHARACTER_FOLDS)
# In these patterns the hyphen comes first and a look-behind follows, so that the regex engine can skip to the next
# hyphen.
_LINE_END_HYPHEN = re.compile(r"-(?<=[^\W\d_A-Z]-)\s+(?=[^\W\d_])")

_DOUBLE_HYPHEN = re.compile(r"(?<=\w)-{2,3}(?=\w)")


def _fold_to_plain_ascii(text: str) -> str | None:
    """Fold quotes and bullets of a text; None if it has other special characters."""
    plain_text = text if is_plain_ascii(text) else text.translate(_ASCII_FOLDS)
    return plain_text if plain_text.isascii() and _NUMBER_GAP_MARK not in plain_text else None


def is_plain_ascii(text: str) -> bool:
    """Return True if a text is ASCII without backticks: no character needs replacing."""
    return text.isascii() and "`" not in text


def normalise_characters(text: str) -> str:
    """Return a text with normalised letters, quotes and dashes; case and spaces stay.

    Invisible characters and hyphens at the ends of lines are removed.
    """
    normalised_text = (
        text
        if is_plain_ascii(text)
        else unicodedata.normalize("NFKC", text.translate(_PLAIN_TRANSLATION)).translate(_PLAIN_TRANSLATION)
    )
    if "-" not in normalised_text:
        return normalised_text
    return _DOUBLE_HYPHEN.sub("-", _LINE_END_HYPHEN.sub("", normalised_text))


# Two hyphens in a row count as one, because they are typed for a dash.
_ASCII_JOINING_HYPHEN = re.compile(r"-(?:(?<=[A-Za-z]-)(?=[A-Za-z])|(?<=[a-z]-)(?=\s+[A-Za-z])|(?=-))")
_SPACE_BETWEEN_NUMBERS = re.compile(r"\d[.,]?(\s+)(?=\d)|\d(\s+)(?=[.,]\d)")
# A hyphen between a capital and a space is a sign ("blood type A- was found"), and a long dash divides clauses: both
# stay.
_JOINING_HYPHEN = re.compile(
    rf"[{DASHES}](?:(?<![—―⸺⸻])(?:(?<=[^\W\d_].)(?=[^\W\d_])|(?<=[^\W\d_A-Z].)(?=\s+[^\W\d_]))|(?=[{DASHES}]))"
)


def _find_number_gaps(text: str) -> set[int]:
    return {match.start(match.lastindex or 0) for match in _SPACE_BETWEEN_NUMBERS.finditer(text)}


def _find_joining_hyphens(text: str) -> frozenset[int]:
    pattern = _ASCII_JOINING_HYPHEN if text.isascii() else _JOINING_HYPHEN
    return frozenset([match.start() for match in pattern.finditer(text)])
