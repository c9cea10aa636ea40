"""Names of persons as charts write them: parsing and comparison.

The word lists (titles, suffixes, particles, nicknames) are in ``words.toml``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from itertools import permutations, product

from rapidfuzz.distance import OSA

from evalkit.core.document_cache import cache_document_text
from evalkit.core.grouping import group_pairs
from evalkit.core.package_tables import PatternTable, load_package_table
from evalkit.documents.identity.written_dates import WRITTEN_DATE_PATTERN

#: Letters that Unicode does not decompose into a plain letter and an accent, and the plain letters to write instead.
_LETTERS_WITHOUT_PARTS = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE"}
)
#: The most words of a name that are joined in every order, to recognise a name in which OCR lost a space.
_MAX_JOINED_WORDS = 4
#: OCR may have misread one letter of a name's word with at least the first length, two with at least the second.
_MIN_FUZZY_LENGTH, _LONG_LENGTH = 4, 8
#: Characters that OCR confuses, and the one form by which both are replaced; single characters first.
_CONFUSED_LETTERS = (
    ("0", "O"), ("Q", "O"), ("1", "I"), ("L", "I"), ("|", "I"), ("!", "I"), ("5", "S"), ("8", "B"), ("6", "G"), ("2", "Z"), ("RN", "M"), ("VV", "W"), ("CI", "D"),
)  # fmt: skip


class NameAgreement(StrEnum):
    """Result of comparing two names, the best first."""

    AGREE = "agree"
    COMPATIBLE = "close"
    """One name is a shorter form of the other: an initial, a part of a double name."""
    UNCLEAR = "unclear"
    """The names can be those of one or of two persons: a newborn without a given name, another middle initial."""
    DIFFER = "differ"


@dataclass(frozen=True)
class PersonName:
    """A parsed name, in capitals without accents, apostrophes and full stops."""

    given_names: tuple[str, ...]
    """First and middle names or initials, in their order."""
    family_names: tuple[str, ...]
    """Words of the family name, with particles, split at hyphens; empty if the name has only one word."""
    former_names: tuple[str, ...] = ()
    """Names in brackets or behind "née"."""
    suffix: str = ""
    """Suffix of the name: JR, SR, II …; empty without one."""
    is_order_known: bool = False
    """True if a comma shows which words are the family name."""

    @property
    def normal(self) -> str:
        """Family name and first given name, e.g. ``MARSH HELEN``."""
        return " ".join((*self.family_names, *self.given_names[:1]))

    @property
    def is_full(self) -> bool:
        """True if at least two words are written out, apart from particles and "Baby Boy"."""
        return len(_list_telling_words((*self.family_names, *self.given_names))) > 1


#: Patterns of ``patterns.toml`` by name.
PATTERNS = PatternTable("evalkit.documents.identity", "patterns.toml", written_date=WRITTEN_DATE_PATTERN)

#: Return the tables of ``words.toml``: labels, words in names, nicknames, etc.
load_identity_words = partial(load_package_table, "evalkit.documents.identity", "words.toml")


@cache
def get_word_list_for_names(list_name: str) -> frozenset[str]:
    """Return the words of a list in table ``[names]`` of ``words.toml``."""
    return frozenset(load_identity_words()["names"][list_name].split())


@cache
def _load_nickname_rows_by_name() -> dict[str, frozenset[int]]:
    rows = enumerate(load_identity_words()["nicknames"]["rows"].split(";"))
    rows_by_name = group_pairs((name, index) for index, row in rows for name in row.split())
    return {name: frozenset(indices) for name, indices in rows_by_name.items()}


def fold_to_plain_capitals(text: str) -> str:
    """Return the text in capitals, without accents and apostrophes.

    >>> fold_to_plain_capitals("Núñez-O’Brien"), fold_to_plain_capitals("Müller"), fold_to_plain_capitals("Strauß")
    ('NUNEZ-OBRIEN', 'MULLER', 'STRAUSS')
    """
    if text.isascii():
        return PATTERNS["apostrophe"].sub("", text).upper()
    decomposed = unicodedata.normalize("NFKD", PATTERNS["apostrophe"].sub("", text).translate(_LETTERS_WITHOUT_PARTS))
    return "".join(letter for letter in decomposed.upper() if not unicodedata.combining(letter))


@cache_document_text(4096)
def parse_person_name(text: str) -> PersonName | None:
    """Parse a printed name of a person; None if no word of it can be a name.

    >>> parse_person_name("MARSH, HELEN A.").normal, parse_person_name("Ms. Helen A. Marsh").normal
    ('MARSH HELEN', 'MARSH HELEN')
    >>> parse_person_name("Dr. van der Berg, Jan Jr."), parse_person_name("Ann O'Hara (née Bell)").former_names
    (PersonName(given_names=('JAN',), family_names=('VAN', 'DER', 'BERG'), former_names=(), suffix='JR', is_order_known=True), ('BELL',))
    """
    former: list[str] = []
    nicknames: list[str] = []
    for bracketed in PATTERNS["quoted_or_bracketed"].findall(text):
        (former if PATTERNS["maiden"].search(bracketed) or "(" in text else nicknames).extend(_split_words(bracketed))
    bare_text = PATTERNS["quoted_or_bracketed"].sub(" ", text)
    bare_text, *behind_maiden = PATTERNS["maiden"].split(bare_text, maxsplit=1)
    former.extend(word for part in behind_maiden for word in _split_words(part))
    suffix = ""
    parts: list[list[str]] = []
    for part in re.split(r"[,^]", bare_text):  # software writes "MARSH^HELEN^A"
        words = [
            word
            for word in _split_words(part)
            if word not in get_word_list_for_names("titles") | get_word_list_for_names("degrees")
        ]
        suffixes = [word for word in words if word in get_word_list_for_names("suffixes")]
        if suffixes and (len(words) > 1 or parts):
            suffix = {"2ND": "II", "3RD": "III"}.get(suffixes[-1], suffixes[-1])
        names = [word for word in words if word not in suffixes or (len(words) == 1 and not parts)]
        if names:
            parts.append(names)
    if not parts:
        return None
    is_order_known = len(parts) > 1
    family, given_names = parts[:2] if is_order_known else _split_off_family_name(parts[0])
    if not any(len(word) > 1 for word in (*family, *given_names)):
        return None
    return PersonName(
        tuple(given_names),
        tuple(family),
        tuple(word for word in (*former, *nicknames) if not PATTERNS["maiden"].fullmatch(word)),
        suffix,
        is_order_known,
    )


def _split_words(text: str) -> list[str]:
    return [word for word in re.split(r"[^\w'’|!]+", fold_to_plain_capitals(text).replace("_", " ")) if word]


def _split_off_family_name(words: list[str]) -> tuple[list[str], list[str]]:
    """Split words into family name with particles ("van der Berg") and given names."""
    particles = get_word_list_for_names("particles")
    start = len(words) - 1
    while start > 1 and words[start - 1] in particles and len(words[start - 1]) > 1:
        start -= 1
    return (words[start:], words[:start]) if len(words) > 1 else ([], words)


def compare_names(left: PersonName, right: PersonName, *, is_ocr_text: bool = False) -> NameAgreement:
    """Compare two names, whatever their order of words, titles and short forms.

    With ``is_ocr_text``, one of the names comes from OCR, so that letters may be misread.
    """
    if not left.family_names or not right.family_names:
        return _compare_names_one_of_single_word(left, right, is_ocr_text)
    relations = {
        _compare_name_triples(left_reading, right_reading, is_ocr_text)
        for left_reading in _list_family_given_former_triples(left)
        for right_reading in _list_family_given_former_triples(right)
    }
    relation = next(relation for relation in NameAgreement if relation in relations)
    if relation is NameAgreement.DIFFER and not _join_in_every_order(left).isdisjoint(_join_in_every_order(right)):
        return NameAgreement.AGREE  # OCR lost a space
    if (
        relation in (NameAgreement.AGREE, NameAgreement.COMPATIBLE)
        and left.suffix
        and right.suffix
        and left.suffix != right.suffix
    ):
        return NameAgreement.DIFFER
    return relation


def have_same_family_other_given_name(left: PersonName, right: PersonName) -> bool:
    """Return True if family names agree, but given names differ or are unclear."""
    return _compare_family_names(
        left.family_names, right.family_names, is_ocr_text=False
    ) is not NameAgreement.DIFFER and _compare_given_names(left.given_names, right.given_names, is_ocr_text=False) in (
        NameAgreement.DIFFER,
        NameAgreement.UNCLEAR,
    )


def have_common_word(left: PersonName, right: PersonName) -> bool:
    """Return True if a word of one name may be a word of the other.

    It may be misread, a nickname, or a former name.
    """
    sides = [_list_telling_words((*name.given_names, *name.family_names, *name.former_names)) for name in (left, right)]
    return any(_are_given_names_alike(left_word, right_word, True) for left_word, right_word in product(*sides))


def _list_telling_words(words: Iterable[str]) -> list[str]:
    empty_words = get_word_list_for_names("particles") | get_word_list_for_names("placeholders")
    return [word for word in words if len(word) > 1 and word not in empty_words]


def _join_in_every_order(name: PersonName) -> set[str]:
    words = (*name.given_names, *name.family_names)[:_MAX_JOINED_WORDS]
    orders = [(*name.family_names, *name.given_names)] if name.is_order_known else permutations(words)
    return {"".join(order) for order in orders} if len(words) > 1 else set(words)


def _list_family_given_former_triples(
    name: PersonName,
) -> list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    readings = [(name.family_names, name.given_names, name.former_names)]
    words = (*name.given_names, *name.family_names)
    if not name.is_order_known:
        # "Marsh Helen", "Garcia Lopez Maria", "Maria Garcia Lopez", "Nguyen Thi Mai".
        readings += [(words[:count], words[count:], name.former_names) for count in (1, 2) if count < len(words)]
        readings += [(words[-2:], words[:-2], name.former_names)] if len(words) > 2 else []
    return readings


def _compare_name_triples(
    left: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
    right: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
    is_ocr_text: bool,
) -> NameAgreement:
    left_family, left_given, left_former = left
    right_family, right_given, right_former = right
    family = _compare_family_names(left_family, right_family, is_ocr_text)
    if family is NameAgreement.DIFFER and any(
        _are_name_words_alike(former, word, is_ocr_text)
        for formers, words in (
            (left_former, (*right_family, *right_former)),
            (right_former, (*left_family, *left_former)),
        )
        for former in formers
        for word in words
    ):
        family = NameAgreement.COMPATIBLE
    if family is NameAgreement.DIFFER:
        return NameAgreement.DIFFER
    given_names = _compare_given_names(left_given, right_given, is_ocr_text)
    if given_names is NameAgreement.DIFFER and any(
        _are_given_names_alike(former, word, is_ocr_text)
        for formers, words in ((left_former, right_given), (right_former, left_given))
        for former in formers
        for word in words
    ):
        given_names = NameAgreement.COMPATIBLE
    return max(family, given_names, key=list(NameAgreement).index)


def _compare_family_names(left: tuple[str, ...], right: tuple[str, ...], is_ocr_text: bool) -> NameAgreement:
    particles = get_word_list_for_names("particles")
    left_core = tuple(word for word in left if word not in particles) or left
    right_core = tuple(word for word in right if word not in particles) or right
    if _are_name_words_alike("".join(left_core), "".join(right_core), is_ocr_text) or _are_name_words_alike(
        "".join(left), "".join(right), is_ocr_text
    ):
        return NameAgreement.AGREE
    shorter, longer = sorted((left_core, right_core), key=len)
    whole_words = [word for word in shorter if len(word) > 1]
    is_initial = len(shorter) == 1 and len(shorter[0]) == 1 and longer[0].startswith(shorter[0])
    is_part = bool(whole_words) and all(
        any(_are_name_words_alike(word, other, is_ocr_text) for other in longer) for word in whole_words
    )
    return NameAgreement.COMPATIBLE if is_initial or is_part else NameAgreement.DIFFER


def _compare_given_names(left: tuple[str, ...], right: tuple[str, ...], is_ocr_text: bool) -> NameAgreement:
    placeholders = get_word_list_for_names("placeholders")
    has_placeholder = [not placeholders.isdisjoint(names) for names in (left, right)]
    if all(has_placeholder):  # "Baby Girl A" and "Baby Girl B" are twins
        return (
            NameAgreement.AGREE
            if set(left) == set(right)
            else NameAgreement.DIFFER
            if len(left) == len(right)
            else NameAgreement.UNCLEAR
        )
    if not left or not right or any(has_placeholder):
        return NameAgreement.UNCLEAR
    if _are_given_names_alike(left[0], right[0], is_ocr_text):
        middles = left[1:], right[1:]
        is_contradicted = all(middles) and not any(
            _are_given_names_alike(left_middle, right_middle, is_ocr_text)
            or _is_one_initial_of_other(left_middle, right_middle)
            for left_middle in middles[0]
            for right_middle in middles[1]
        )
        return NameAgreement.UNCLEAR if is_contradicted and not is_ocr_text else NameAgreement.AGREE
    # "Anne Marie", "Marie", "AnneMarie".
    joined_pairs = ((left, right), (left[:2], right[:1]), (left[:1], right[:2]))
    if any(_are_name_words_alike("".join(names), "".join(others), is_ocr_text) for names, others in joined_pairs):
        return NameAgreement.AGREE
    is_short_form = _is_one_initial_of_other(left[0], right[0]) or any(
        len(word) > 2 and _are_given_names_alike(word, other, is_ocr_text) for word in left for other in right
    )
    return NameAgreement.COMPATIBLE if is_short_form else NameAgreement.DIFFER


def _compare_names_one_of_single_word(left: PersonName, right: PersonName, is_ocr_text: bool) -> NameAgreement:
    left_words, right_words = (*left.given_names, *left.family_names), (*right.given_names, *right.family_names)
    if any(_are_name_words_alike(word, other, is_ocr_text) for word in left_words for other in right_words):
        return NameAgreement.AGREE if len(left_words) == len(right_words) else NameAgreement.COMPATIBLE
    joined = ["".join(order) for words in (left_words, right_words) for order in permutations(words[:3])]
    return NameAgreement.AGREE if len(set(joined)) < len(joined) else NameAgreement.DIFFER


def _is_one_initial_of_other(left: str, right: str) -> bool:
    shorter, longer = sorted((left, right), key=len)
    return len(shorter) == 1 and longer.startswith(shorter)


def _are_given_names_alike(left: str, right: str, is_ocr_text: bool) -> bool:
    if _are_name_words_alike(left, right, is_ocr_text):
        return True
    nicknames = _load_nickname_rows_by_name()
    return not nicknames.get(left, frozenset()).isdisjoint(nicknames.get(right, frozenset()))


def _are_name_words_alike(left: str, right: str, is_ocr_text: bool) -> bool:
    if left == right or drop_umlaut_e(left) == drop_umlaut_e(right):
        return True
    if not is_ocr_text:
        return False
    left, right = fold_confused_letters(left), fold_confused_letters(right)
    length = min(len(left), len(right))
    tolerance = 2 if length >= _LONG_LENGTH else 1 if length >= _MIN_FUZZY_LENGTH else 0
    return OSA.distance(left, right, score_cutoff=tolerance) <= tolerance


@cache_document_text(4096)
def drop_umlaut_e(word: str) -> str:
    """Remove the E that represents an umlaut: MUELLER becomes MULLER."""
    return re.sub(r"(?<=[AOU])E(?=[^AEIOU])", "", word) if len(word) > 4 else word


@cache_document_text(4096)
def fold_confused_letters(word: str) -> str:
    """Replace characters that OCR confuses by one common form.

    >>> fold_confused_letters("MARSHA11"), fold_confused_letters("MARSHALL")
    ('MARSHAII', 'MARSHAII')
    """
    for written, meant in _CONFUSED_LETTERS:
        word = word.replace(written, meant)
    return word
