"""Words next to a quote that it omits although they change its meaning.

Such context is a negation, a hedge, another time or person, a condition, a question: a quote without it can say the
opposite of the document, word for word. The rest of the quote's sentence is searched for the cues in
``difference.toml`` and ``omitted_context.toml``; other cues are not recognised.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple

from evalkit.core.document_cache import cache_document_text
from evalkit.core.package_tables import load_package_table
from evalkit.grounding.critical_terms import PATTERNS, DifferenceKind, load_terms
from evalkit.grounding.difference import QuoteDifference
from evalkit.grounding.tokens import tokenise

#: A negation applies to a quote if at most this many words are between the two.
_NEGATION_REACH_WORDS = 20
#: Number of characters before and after a quote that are searched for cues.
_MAX_CHARACTERS_BEFORE, _MAX_CHARACTERS_AFTER = 220, 120
_MAX_LABEL_CHARACTERS = 50
#: Number of words at a quote's start that are searched for the beginning of a new clause.
_OPENING_WORDS = 6
_MAX_QUERY_MARKS = 2
_WORD_START = r"\b"
_CLASS_NAME = re.compile(r"\{([a-z_]+)\}")


class ContextCue(NamedTuple):
    """A phrase that changes the meaning of a quote next to it, e.g. "possible"."""

    kind: DifferenceKind
    position: str
    """Position of the cue: ``before`` or ``after`` the quote, or ``label`` for the label of the quote's line."""
    pattern: re.Pattern[str]
    max_words_between: int
    """The most words that may be between the cue and the quote."""
    crosses_commas: bool
    unless: re.Pattern[str] | None
    """Pattern that cancels the cue, if found between cue and quote or at the start of the quote; None without one."""


#: Return the tables of ``omitted_context.toml``: cues, word classes, boundaries.
load_context_tables = partial(load_package_table, "evalkit.grounding", "omitted_context.toml")


@cache
def _load_cues(position: str) -> tuple[ContextCue, ...]:
    return tuple(
        ContextCue(
            DifferenceKind(row["kind"]),
            position,
            _compile(row[position] if position == "label" else rf"{_WORD_START}(?:{row[position]})"),
            row.get("reach", 0),
            row.get("commas", False),
            _compile(row["unless"]) if "unless" in row else None,
        )
        for row in load_context_tables()["cue"]
        if position in row
    )


def _compile(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Compile an expression in which ``{name}`` stands for a class of words."""
    classes = load_context_tables()["classes"]
    return re.compile(_CLASS_NAME.sub(lambda match: f"(?:{classes[match[1]]})", expression), flags)


@cache
def _compile_any_cue_pattern(position: str) -> re.Pattern[str]:
    """Return one pattern of all cues of a position, to skip sentences without a cue."""
    expressions = [cue.pattern.pattern.removeprefix(_WORD_START) for cue in _load_cues(position)]
    return re.compile(rf"{_WORD_START}(?:{'|'.join(expressions)})")


@cache
def _compile_boundary_pattern(name: str) -> re.Pattern[str]:
    return _compile("|".join(load_context_tables()[name]), re.IGNORECASE)


def find_omitted_context(text: str, start: int, end: int) -> QuoteDifference | None:
    """Find context that reverses the meaning of the quote ``text[start:end]``.

    Also context that makes the meaning doubtful. None if there is no such context.
    """
    return (
        _find_negation_before(text, start, end)
        or _find_negation_after(text, start, end)
        or next(_iter_context_differences(text, start, end), None)
    )


def _iter_context_differences(text: str, start: int, end: int) -> Iterator[QuoteDifference]:
    """Find hedges, times, conditions, persons and questions around a quote.

    A cue is left out if the quote itself has a cue of the same kind.
    """
    quote = _fold_case_and_spaces(text[start:end]).strip()
    for cue, words in (*_iter_cues_before(text, start, end), *_iter_cues_after(text, start, end)):
        own_matches = (
            other.pattern.search(quote)
            for other in (*_load_cues("before"), *_load_cues("after"))
            if other.kind is cue.kind
        )
        # A cue at the very end of the quote does not count, because the quote ends inside of its phrase.
        if not any(match and match.end() < len(quote) for match in own_matches):
            yield QuoteDifference(cue.kind, "", words)
    if _is_in_question(text, end) or _has_query_mark_before(text, start):
        yield QuoteDifference(DifferenceKind.QUESTION, "", "?")


def _iter_cues_before(text: str, start: int, end: int) -> Iterator[tuple[ContextCue, str]]:
    label, colon, clause = _fold_case_and_spaces(_extract_clause_before(text, start, crosses_colons=True)).rpartition(
        ": "
    )
    if not colon and (label_line := PATTERNS["label_line"].search(text, max(start - _MAX_CHARACTERS_BEFORE, 0), start)):
        label = _fold_case_and_spaces(label_line[1])
    label = label.rpartition(": ")[2].strip(" •*-–.0123456789()")
    yield from ((cue, label) for cue in (_load_cues("label") if label else ()) if cue.pattern.fullmatch(label))
    clause = PATTERNS["insertion_opening"].sub("", _blank_harmless_phrases(clause.lstrip()))
    opening = _extract_opening(text, start, end)
    for cue in _load_cues("before") if _compile_any_cue_pattern("before").search(clause) else ():
        for match in cue.pattern.finditer(clause):
            gap = clause[match.end() :]
            if (
                len(PATTERNS["gap_word"].findall(gap)) <= cue.max_words_between
                and (cue.crosses_commas or "," not in gap or _is_parenthetical(clause[: match.start()], gap))
                # "He" after "his father" may be the father, so the quote's first words do not end the cue's reach.
                and not _ends_before_quote("endings", gap, "" if cue.kind is DifferenceKind.PERSON else opening)
                and not (cue.unless and cue.unless.search(gap + opening))
            ):
                yield cue, match.group().strip()


def _iter_cues_after(text: str, start: int, end: int) -> Iterator[tuple[ContextCue, str]]:
    if _is_section_label(text, start, end):
        return
    clause = _blank_harmless_phrases(
        _fold_case_and_spaces(
            PATTERNS["sentence_end"].split(text[end - 1 : end + _MAX_CHARACTERS_AFTER], maxsplit=1)[0][1:]
        )
    )
    for cue in _load_cues("after") if _compile_any_cue_pattern("after").search(clause) else ():
        if match := cue.pattern.search(clause):
            gap = clause[: match.start()]
            if (
                len(PATTERNS["gap_word"].findall(gap)) <= cue.max_words_between
                and (
                    cue.crosses_commas
                    or not PATTERNS["comma"].search(gap)
                    or _is_parenthetical(gap, clause[match.end() :])
                )
                and not _compile_boundary_pattern("beginnings").search(gap)
                and not (cue.unless and cue.unless.search(gap))
            ):
                yield cue, match.group().strip()


def _extract_opening(text: str, start: int, end: int) -> str:
    return " ".join(_fold_case_and_spaces(text[start:end]).split()[:_OPENING_WORDS])


def _ends_before_quote(boundary: str, gap: str, opening: str) -> bool:
    return any(match.start() <= len(gap) for match in _compile_boundary_pattern(boundary).finditer(gap + opening))


def _is_parenthetical(words_before: str, words_after: str) -> bool:
    """Return True for a cue between commas: the film shows, possibly, a fracture.

    ``words_before`` and ``words_after`` are the text around the cue.
    """
    return bool(PATTERNS["insertion_start"].search(words_before) and PATTERNS["insertion_end"].match(words_after))


def _blank_harmless_phrases(clause: str) -> str:
    """Blank phrases that contain a cue but change no meaning: "no doubt", "not only"."""
    return _compile_boundary_pattern("harmless").sub("░", clause)


def _is_in_question(text: str, end: int) -> bool:
    if text[end - 1] in ".!?;":
        return False
    sentence_end = PATTERNS["sentence_end"].search(text, end, end + _MAX_CHARACTERS_AFTER)
    return (sentence_end is not None and sentence_end.group() == "?") or text[end : end + 2].lstrip(" ").startswith("?")


def _has_query_mark_before(text: str, start: int) -> bool:
    """Return True if a question mark before the quote asks about it: "? appendicitis"."""
    line_start = text.rfind("\n", 0, start) + 1
    if text.find("?", line_start, start) < 0 or not (
        query := PATTERNS["query_before_quote"].search(text, line_start, start)
    ):
        return False
    return (
        bool(PATTERNS["query_mark"].match(text, query.start()))
        and len(PATTERNS["query_mark"].findall(text)) <= _MAX_QUERY_MARKS
    )


def _fold_case_and_spaces(text: str) -> str:
    return re.sub(r"\s+", " ", text.lower()).replace("’", "'")


def _find_negation_before(text: str, start: int, end: int) -> QuoteDifference | None:
    clause = _extract_clause_before(text, start)
    tokens = tokenise(_blank_harmless_phrases(" ".join(clause.split())))
    clause_words: Sequence[str] = [
        "0" if PATTERNS["zero_of_count"].fullmatch(token.folded) else token.folded for token in tokens
    ]
    endings = load_terms("negated", "ending")
    last_ending = max((index for index, word in enumerate(clause_words) if word in endings), default=-1)
    first_index = max(last_ending + 1, len(clause_words) - _NEGATION_REACH_WORDS)
    opening = _extract_opening(text, start, end)
    if not load_terms("negated", "own").isdisjoint(token.folded for token in tokenise(opening)[:1]):
        return None
    for index, cue in _iter_negations(clause_words, load_terms("negated", "before"), first_index):
        gap = "".join(
            f"{',' if ',' in token.gap_before else ''} {token.folded}" for token in tokens[index + len(cue.split()) :]
        )
        if not _ends_before_quote(
            "negation_endings", f"{gap}{', ' if clause.rstrip().endswith(',') else ' '}", opening
        ):
            return QuoteDifference(DifferenceKind.NEGATION, "", cue)
    return None


def _find_negation_after(text: str, start: int, end: int) -> QuoteDifference | None:
    # The text is split from the quote's last character on: if the quote ends its sentence, the clause behind is empty.
    clause = PATTERNS["phrase_end"].split(text[end - 1 : end + _MAX_CHARACTERS_AFTER], maxsplit=1)[0][1:]
    clause_words = [token.folded for token in tokenise(clause)]
    while clause_words and (clause_words[0] in load_terms("negated", "linking") or clause_words[0].endswith("ly")):
        clause_words = clause_words[1:]
    for phrase_length in (2, 1):
        if (cue := " ".join(clause_words[:phrase_length])) in load_terms("negated", "after"):
            return None if _is_section_label(text, start, end) else QuoteDifference(DifferenceKind.NEGATION, "", cue)
    return None


def _is_section_label(text: str, start: int, end: int) -> bool:
    """Return True if the quote is a section's label, as in "Family History: none".

    Words behind a label do not change the label's meaning.
    """
    last_words = [token.folded for token in tokenise(text[start:end])][-1:]
    is_at_line_start = not text[text.rfind("\n", 0, start) + 1 : start].strip(" •*-–0123456789.")
    return (
        is_at_line_start
        and bool(PATTERNS["label_end"].match(text, end))
        and bool(load_terms("headings").intersection(last_words))
    )


def _iter_negations(
    clause_words: Sequence[str], cues: frozenset[str], first_index: int = 0
) -> Iterator[tuple[int, str]]:
    for index in range(max(first_index, 0), len(clause_words)):
        for phrase_length in (3, 2, 1):
            phrase = " ".join(clause_words[index : index + phrase_length])
            if phrase in cues and not _is_pseudo_cue(clause_words, index, phrase):
                yield index, phrase
                break


def _is_pseudo_cue(clause_words: Sequence[str], index: int, phrase: str) -> bool:
    """Return True if a negation is none: "record no 123", "with and without contrast".

    Also "non" before another word, as in "non-small cell carcinoma".
    """
    if phrase == "non":
        return index + 1 < len(clause_words)
    if phrase == "no":
        return index + 1 < len(clause_words) and clause_words[index + 1][:1].isdigit()
    return (
        phrase == "without"
        and index >= 2
        and clause_words[index - 2] == "with"
        and clause_words[index - 1] in ("and", "or")
    )


def _extract_clause_before(text: str, start: int, *, crosses_colons: bool = False) -> str:
    window = text[max(start - _MAX_CHARACTERS_BEFORE, 0) : start + 1]
    clause_ends = [end for end, sign in _find_clause_ends(text, start) if not (crosses_colons and sign == ":")]
    while clause_ends:
        window_head = window[: clause_ends[-1]]
        label_cue = window_head.endswith(":") and any(
            _iter_negations([token.folded for token in tokenise(window_head)][-3:], load_terms("negated", "label"))
        )
        if not label_cue and not (
            window_head.endswith("\n")
            and PATTERNS["continued_line"].search(window_head, max(window_head.rfind("\n", 0, -2), 0))
        ):
            break
        clause_ends.pop()
    return window[clause_ends[-1] if clause_ends else 0 : -1]


@cache_document_text(4)  # called twice for each quote, with and without colons
def _find_clause_ends(text: str, start: int) -> Sequence[tuple[int, str]]:
    """Find the ends of clauses before ``start``, as indices into the searched window.

    Each is returned with the sign or the answer that ends the clause.
    """
    window_start = max(start - _MAX_CHARACTERS_BEFORE, 0)
    window = text[window_start : start + 1]
    clause_ends = [
        (match.end(), match.group())
        for match in PATTERNS["clause_end"].finditer(window)
        if match.end() < len(window) and not _is_mid_sentence_punctuation(window, match.start())
    ]
    if PATTERNS["answer_hint"].search(window):
        clause_ends += [
            (match.end() - window_start, match.group())
            for match in PATTERNS["answer_end"].finditer(text, window_start, start + _MAX_LABEL_CHARACTERS)
            if match.end() <= start
        ]
    return sorted(clause_ends)


def _is_mid_sentence_punctuation(window: str, index: int) -> bool:
    """Return True if a sign does not end a sentence.

    Such signs are the full stop of an abbreviation, and a question mark before the words in question.
    """
    if window[index] == "?":
        return not window[index - 1 : index].strip()
    last_word = re.split(r"[^\w.]", window[max(index - 10, 0) : index])[-1].lower()
    return window[index] == "." and last_word in load_context_tables()["abbreviations"]
