"""What a quote leaves out of its own clause: a negation, a condition, another subject.

Cut rightly, the words of a document can say the opposite of it. What stands beside a quote in its clause is looked at;
what the lists, ``difference.toml``, do not know is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalkit.grounding.critical_terms import DifferenceKind, load_terms
from evalkit.grounding.difference import QuoteDifference
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
_CONTINUED_LINE = re.compile(
    r"(?:^|\n)[^\n\t:]*\b(?:no|not|without|denies|for|of|any|the|a|an|or|and|with|no evidence)\n$", re.IGNORECASE
)
_LABEL_END = re.compile(r"[ \t]*(?::|\t)")


def find_omitted_context(text: str, start: int, end: int) -> QuoteDifference | None:
    """Find what beside ``text[start:end]`` reverses it or puts it in doubt, if any."""
    return _find_cue_before(text, start, end) or _find_cue_after(text, start, end)


def _find_cue_before(text: str, start: int, end: int) -> QuoteDifference | None:
    clause = _extract_clause_before(text, start)
    clause_words: Sequence[str] = [
        "0" if _ZERO_OF_COUNT.fullmatch(token.folded) else token.folded for token in tokenise(clause)
    ]
    clause_words = _keep_after_last_terminator(clause_words, load_terms("negated", "ending"))
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


def _keep_after_last_terminator(clause_words: Sequence[str], terminators: frozenset[str]) -> Sequence[str]:
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
