"""What a quote leaves out of its own clause: a negation, a condition, another subject.

Cut rightly, the words of a document can say the opposite of it. What stands beside a quote in its clause is looked at;
what the lists, ``difference.toml``, do not know is not seen.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter

from evalkit.grounding.critical_terms import DifferenceKind, load_terms
from evalkit.grounding.difference import QuoteDifference
from evalkit.grounding.normalise import normalise_characters
from evalkit.grounding.tokens import tokenise

#: So many words before a quote may hold a negation that reaches it, or something that frames it.
_NEGATION_REACH_WORDS, _FRAMING_REACH_WORDS = 20, 4
#: So many characters are looked at.
_MAX_CHARACTERS_BEFORE, _MAX_CHARACTERS_AFTER = 220, 60
# A sentence goes on behind a break where a small letter follows. All signs stand first: the engine skips to the next.
_CLAUSE_END = re.compile(r"[.;!?:\t\n](?:(?<=[.;!?])(?=\s|$)|(?<=:)(?=\s)|(?<=\t)|(?<=\n)(?![^\W\d_A-Z]))")
_SENTENCE_END = re.compile(r"[.,;!?\n](?:(?<=\n)|(?=\s|$))")
_ZERO_OF_COUNT = re.compile(r"0/\d+")
# The line goes on behind its break: it ends in one of these, and is neither a cell nor a label with its answer.
_OPEN_LINE_ENDINGS = (
    "no",
    "not",
    "without",
    "denies",
    "for",
    "of",
    "any",
    "the",
    "a",
    "an",
    "or",
    "and",
    "with",
    "no evidence",
)
_CONTINUED_LINE = re.compile(rf"(?:^|\n)[^\n\t:]*\b(?:{'|'.join(_OPEN_LINE_ENDINGS)})\n$", re.IGNORECASE)
# Where a clause ends whatever stands before: not every one of ``_CLAUSE_END``, but none that is taken back.
_CERTAIN_CLAUSE_END = re.compile(
    r"[.;!?\t\n](?:(?<=[.;!?])(?=\s|$)|(?<=\t)|(?<=\n)(?<!\n\n)(?![^\W\d_A-Z])"
    + "".join(rf"(?<!(?i:{word})\n)" for word in _OPEN_LINE_ENDINGS)
    + ")"
)
# A sign that may be or make a cue: zero alone, the hyphen of a divided word, what is not ASCII, or cuts numbers up.
_POSSIBLE_CUE_CHARACTER = re.compile(
    r"[-0^\x80-\U0010ffff](?:(?<=0)(?<!\d0)(?!\d|[.,]\d)|(?<=[a-z]-)(?=\s)|(?<=\^)|(?<=[^\x00-\x7f]))"
)
_LABEL_END = re.compile(r"[ \t]*(?::|\t)")


def find_omitted_context(text: str, start: int, end: int) -> QuoteDifference | None:
    """What beside ``text[start:end]`` turns what it says, or puts it in doubt; None where nothing does.

    Nearly all quotes have no cue near, which is known at once; only where one is near, the clause is read.
    """
    omission = _find_cue_before(text, start, end) if _has_possible_cue_before(text, start) else None
    return omission or (_find_cue_after(text, start, end) if _compile_cue_after_pattern().match(text, end) else None)


def _has_possible_cue_before(text: str, start: int) -> bool:
    """Whether there may be a cue in the clause before ``start``; always, where there is one."""
    window_start = max(start - _MAX_CHARACTERS_BEFORE, 0)
    cue_positions = _find_cue_positions(text)
    cue_index = bisect_left(cue_positions, start)
    search_start = cue_positions[cue_index - 1] if cue_index else -1
    if search_start < window_start:  # what is cut off there may be a cue where the whole word is none: pia|no, 1|0
        window_opening, search_start = text[window_start:start].lower(), window_start
        if not window_start or not (
            window_opening.startswith("0") or _compile_cue_before_pattern().match(window_opening)
        ):
            return False
    # The quote's first letter is looked at too: it tells whether a break before it ends the clause.
    clause_end = _CERTAIN_CLAUSE_END.search(text, search_start, start + 1)
    return clause_end is None or clause_end.start() == start


@lru_cache(maxsize=512)  # every verifier looks at the same pages
def _find_cue_positions(text: str) -> Sequence[int]:
    """Where a cue may begin, or a sign stands that may make one of what is beside it; in order."""
    lowercase_text = text.lower()
    if len(lowercase_text) != len(text):  # İ becomes two signs, and the places would be wrong
        return range(len(text))
    cue_positions = [match.start() for match in _compile_cue_before_pattern().finditer(lowercase_text)]
    character_matches = (
        match
        for match in _POSSIBLE_CUE_CHARACTER.finditer(lowercase_text)
        if match.group().isascii() or _can_make_words(match.group())
    )
    return sorted((*cue_positions, *(match.start() for match in character_matches)))


@cache
def _compile_cue_before_pattern() -> re.Pattern[str]:
    """What a cue before a quote begins with, in small letters."""
    return re.compile(
        rf"(?<![a-z])(?:{_build_openings_pattern(load_terms('negated', 'before') | load_terms('framed', 'before'))})(?![a-z])"
    )


@cache
def _compile_cue_after_pattern() -> re.Pattern[str]:
    """What a cue behind a quote may begin with, or what may be folded to that; or a question mark."""
    opening_pattern = _build_openings_pattern(load_terms("negated", "after") | load_terms("negated", "linking"))
    return re.compile(
        rf" ?\?|[^a-z0-9\x80-\U0010ffff]*+(?:(?:{opening_pattern})(?![a-z])|\S*?(?:ly(?![a-z])|-\s|[^\x00-\x7f]))",
        re.IGNORECASE,
    )


def _build_openings_pattern(phrases: Iterable[str]) -> str:
    """A pattern for the first word of each phrase where the second stands behind it; by first letter, to be fast."""
    escaped_phrases = ([re.escape(word) for word in phrase.split()] for phrase in phrases if not phrase[0].isdigit())
    openings = sorted(
        {
            first_word + "".join(rf"(?=[\W_]+{word}(?![a-z]))" for word in other_words[:1])
            for first_word, *other_words in escaped_phrases
        }
    )
    tails_by_letter = {
        letter: [opening[1:] for opening in group] for letter, group in groupby(openings, key=itemgetter(0))
    }
    return "|".join(f"{letter}(?:{'|'.join(group)})" for letter, group in tails_by_letter.items())


@cache
def _can_make_words(character: str) -> bool:
    """Whether a sign that is not ASCII may make or join words when it is folded: ﬁ, ’, –, ½, a soft hyphen."""
    folded_character = normalise_characters(character).casefold()
    is_punctuation = folded_character and not folded_character.strip('"*.<>=/ ')
    return folded_character != character and not is_punctuation


def _find_cue_before(text: str, start: int, end: int) -> QuoteDifference | None:
    clause = _extract_clause_before(text, start)
    clause_words: Sequence[str] = [
        "0" if _ZERO_OF_COUNT.fullmatch(token.folded) else token.folded for token in tokenise(clause)
    ]
    clause_words = _drop_until_terminator(clause_words, load_terms("negated", "ending"))
    quote_opening = {token.folded for token in tokenise(text[start:end])[:1]}
    if load_terms("negated", "own").isdisjoint(quote_opening) and (
        cue := _find_first_cue(clause_words[-_NEGATION_REACH_WORDS:], load_terms("negated", "before"))
    ):
        return QuoteDifference(DifferenceKind.NEGATION, "", cue)
    if cue := _find_first_cue(clause_words[-_FRAMING_REACH_WORDS:], load_terms("framed", "before")):
        return QuoteDifference(DifferenceKind.MODAL, "", cue, is_doubtful=True)
    return None


def _find_cue_after(text: str, start: int, end: int) -> QuoteDifference | None:
    # From the last character on: where the quote ends its sentence, nothing behind it belongs to it.
    clause = _SENTENCE_END.split(text[end - 1 : end + _MAX_CHARACTERS_AFTER], maxsplit=1)[0][1:]
    clause_words = [token.folded for token in tokenise(clause)]
    while clause_words and (clause_words[0] in load_terms("negated", "linking") or clause_words[0].endswith("ly")):
        clause_words = clause_words[1:]
    for phrase_length in (2, 1):
        if (cue := " ".join(clause_words[:phrase_length])) in load_terms("negated", "after"):
            return None if _is_section_label(text, start, end) else QuoteDifference(DifferenceKind.NEGATION, "", cue)
    is_question = text[end : end + 2].lstrip(" ").startswith("?")
    return QuoteDifference(DifferenceKind.MODAL, "", "?") if is_question else None


def _is_section_label(text: str, start: int, end: int) -> bool:
    """Whether it is the label of a section, which says nothing about what stands in it: Family History: none."""
    last_words = [token.folded for token in tokenise(text[start:end])][-1:]
    is_at_line_start = not text[text.rfind("\n", 0, start) + 1 : start].strip(" •*-–0123456789.")
    return (
        is_at_line_start and bool(_LABEL_END.match(text, end)) and bool(load_terms("headings").intersection(last_words))
    )


def _drop_until_terminator(clause_words: Sequence[str], terminators: frozenset[str]) -> Sequence[str]:
    """The words behind the last one that begins another clause."""
    for index in range(len(clause_words) - 1, -1, -1):
        if clause_words[index] in terminators:
            return clause_words[index + 1 :]
    return clause_words


def _find_first_cue(clause_words: Sequence[str], cues: frozenset[str]) -> str | None:
    """The first cue among the words, of one to three of them."""
    for index in range(len(clause_words)):
        for phrase_length in (3, 2, 1):
            phrase = " ".join(clause_words[index : index + phrase_length])
            if phrase in cues and not _is_pseudo_cue(clause_words, index, phrase):
                return phrase
    return None


def _is_pseudo_cue(clause_words: Sequence[str], index: int, phrase: str) -> bool:
    """Whether the cue is none here: record no 123, with and without contrast."""
    if phrase == "no":
        return index + 1 < len(clause_words) and clause_words[index + 1][:1].isdigit()
    return (
        phrase == "without"
        and index >= 2
        and clause_words[index - 2] == "with"
        and clause_words[index - 1] in ("and", "or")
    )


def _extract_clause_before(text: str, start: int) -> str:
    """The end of the clause before ``start``."""
    window = text[max(start - _MAX_CHARACTERS_BEFORE, 0) : start + 1]
    clause_ends = [match.end() for match in _CLAUSE_END.finditer(window) if match.end() < len(window)]
    while clause_ends:
        window_head = window[: clause_ends[-1]]
        label_cue = window_head.endswith(":") and _find_first_cue(
            [token.folded for token in tokenise(window_head)][-3:], load_terms("negated", "label")
        )
        if not label_cue and not (
            window_head.endswith("\n") and _CONTINUED_LINE.search(window_head, max(window_head.rfind("\n", 0, -2), 0))
        ):
            break
        clause_ends.pop()
    return window[clause_ends[-1] if clause_ends else 0 : -1]
