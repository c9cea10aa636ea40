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

from evalkit.grounding.deciding import Kind, words
from evalkit.grounding.difference import Difference
from evalkit.grounding.normalise import plain
from evalkit.grounding.tokens import tokens

#: So many words before a quote may hold a negation that reaches it, or something that frames it.
_REACH, _FRAME_REACH = 20, 4
#: So many characters are looked at.
_BEFORE, _BEHIND = 220, 60
# A sentence goes on behind a break where a small letter follows. All signs stand first: the engine skips to the next.
_CLAUSE_END = re.compile(r"[.;!?:\t\n](?:(?<=[.;!?])(?=\s|$)|(?<=:)(?=\s)|(?<=\t)|(?<=\n)(?![^\W\d_A-Z]))")
_SENTENCE_END = re.compile(r"[.,;!?\n](?:(?<=\n)|(?=\s|$))")
_NONE_OF = re.compile(r"0/\d+")
# The line goes on behind its break: it ends in one of these, and is neither a cell nor a label with its answer.
_OPEN = ("no", "not", "without", "denies", "for", "of", "any", "the", "a", "an", "or", "and", "with", "no evidence")
_GOES_ON = re.compile(rf"(?:^|\n)[^\n\t:]*\b(?:{'|'.join(_OPEN)})\n$", re.IGNORECASE)
# Where a clause ends whatever stands before: not every one of ``_CLAUSE_END``, but none that is taken back.
_SURE_END = re.compile(
    r"[.;!?\t\n](?:(?<=[.;!?])(?=\s|$)|(?<=\t)|(?<=\n)(?<!\n\n)(?![^\W\d_A-Z])"
    + "".join(rf"(?<!(?i:{word})\n)" for word in _OPEN)
    + ")"
)
# A sign that may be or make a cue: zero alone, the hyphen of a divided word, what is not ASCII, or cuts numbers up.
_SIGN = re.compile(r"[-0^\x80-\U0010ffff](?:(?<=0)(?<!\d0)(?!\d|[.,]\d)|(?<=[a-z]-)(?=\s)|(?<=\^)|(?<=[^\x00-\x7f]))")
_LABEL_END = re.compile(r"[ \t]*(?::|\t)")


def left_out(text: str, start: int, end: int) -> Difference | None:
    """What beside ``text[start:end]`` turns what it says, or puts it in doubt; None where nothing does.

    Nearly all quotes have no cue near, which is known at once; only where one is near, the clause is read.
    """
    lost = _before(text, start, end) if _is_cue_before(text, start) else None
    return lost or (_behind(text, start, end) if _cue_behind().match(text, end) else None)


def _is_cue_before(text: str, start: int) -> bool:
    """Whether there may be a cue in the clause before ``start``; always, where there is one."""
    edge = max(start - _BEFORE, 0)
    cues = _cues(text)
    at = bisect_left(cues, start)
    last = cues[at - 1] if at else -1
    if last < edge:  # what is cut off there may be a cue where the whole word is none: pia|no, 1|0
        cut, last = text[edge:start].lower(), edge
        if not edge or not (cut.startswith("0") or _cue_pattern().match(cut)):
            return False
    # The quote's first letter is looked at too: it tells whether a break before it ends the clause.
    end = _SURE_END.search(text, last, start + 1)
    return end is None or end.start() == start


@lru_cache(maxsize=512)  # every verifier looks at the same pages
def _cues(text: str) -> Sequence[int]:
    """Where a cue may begin, or a sign stands that may make one of what is beside it; in order."""
    lowered = text.lower()
    if len(lowered) != len(text):  # İ becomes two signs, and the places would be wrong
        return range(len(text))
    found = [match.start() for match in _cue_pattern().finditer(lowered)]
    signs = (match for match in _SIGN.finditer(lowered) if match.group().isascii() or _makes_words(match.group()))
    return sorted((*found, *(match.start() for match in signs)))


@cache
def _cue_pattern() -> re.Pattern[str]:
    """What a cue before a quote begins with, in small letters."""
    return re.compile(rf"(?<![a-z])(?:{_openings(words('negated', 'before') | words('framed', 'before'))})(?![a-z])")


@cache
def _cue_behind() -> re.Pattern[str]:
    """What a cue behind a quote may begin with, or what may be folded to that; or a question mark."""
    cues = _openings(words("negated", "after") | words("negated", "linking"))
    return re.compile(
        rf" ?\?|[^a-z0-9\x80-\U0010ffff]*+(?:(?:{cues})(?![a-z])|\S*?(?:ly(?![a-z])|-\s|[^\x00-\x7f]))",
        re.IGNORECASE,
    )


def _openings(phrases: Iterable[str]) -> str:
    """A pattern for the first word of each phrase where the second stands behind it; by first letter, to be fast."""
    parts = ([re.escape(word) for word in phrase.split()] for phrase in phrases if not phrase[0].isdigit())
    openings = sorted({first + "".join(rf"(?=[\W_]+{word}(?![a-z]))" for word in rest[:1]) for first, *rest in parts})
    tails = {letter: [one[1:] for one in group] for letter, group in groupby(openings, key=itemgetter(0))}
    return "|".join(f"{letter}(?:{'|'.join(group)})" for letter, group in tails.items())


@cache
def _makes_words(sign: str) -> bool:
    """Whether a sign that is not ASCII may make or join words when it is folded: ﬁ, ’, –, ½, a soft hyphen."""
    folded = plain(sign).casefold()
    is_punctuation = folded and not folded.strip('"*.<>=/ ')
    return folded != sign and not is_punctuation


def _before(text: str, start: int, end: int) -> Difference | None:
    clause = _clause_before(text, start)
    said: Sequence[str] = ["0" if _NONE_OF.fullmatch(token.key) else token.key for token in tokens(clause)]
    said = _since(said, words("negated", "ending"))
    opening = {token.key for token in tokens(text[start:end])[:1]}
    if words("negated", "own").isdisjoint(opening) and (cue := _cue(said[-_REACH:], words("negated", "before"))):
        return Difference(Kind.NEGATION, "", cue)
    if cue := _cue(said[-_FRAME_REACH:], words("framed", "before")):
        return Difference(Kind.MODAL, "", cue, is_doubtful=True)
    return None


def _behind(text: str, start: int, end: int) -> Difference | None:
    # From the last character on: where the quote ends its sentence, nothing behind it belongs to it.
    clause = _SENTENCE_END.split(text[end - 1 : end + _BEHIND], maxsplit=1)[0][1:]
    said = [token.key for token in tokens(clause)]
    while said and (said[0] in words("negated", "linking") or said[0].endswith("ly")):
        said = said[1:]
    for size in (2, 1):
        if (cue := " ".join(said[:size])) in words("negated", "after"):
            return None if _is_heading(text, start, end) else Difference(Kind.NEGATION, "", cue)
    is_asked = text[end : end + 2].lstrip(" ").startswith("?")
    return Difference(Kind.MODAL, "", "?") if is_asked else None


def _is_heading(text: str, start: int, end: int) -> bool:
    """Whether it is the label of a section, which says nothing about what stands in it: Family History: none."""
    last = [token.key for token in tokens(text[start:end])][-1:]
    at_line_start = not text[text.rfind("\n", 0, start) + 1 : start].strip(" •*-–0123456789.")
    return at_line_start and bool(_LABEL_END.match(text, end)) and bool(words("headings").intersection(last))


def _since(said: Sequence[str], ending: frozenset[str]) -> Sequence[str]:
    """The words behind the last one that begins another clause."""
    for at in range(len(said) - 1, -1, -1):
        if said[at] in ending:
            return said[at + 1 :]
    return said


def _cue(said: Sequence[str], cues: frozenset[str]) -> str | None:
    """The first cue among the words, of one to three of them."""
    for at in range(len(said)):
        for size in (3, 2, 1):
            phrase = " ".join(said[at : at + size])
            if phrase in cues and not _is_other(said, at, phrase):
                return phrase
    return None


def _is_other(said: Sequence[str], at: int, phrase: str) -> bool:
    """Whether the cue is none here: record no 123, with and without contrast."""
    if phrase == "no":
        return at + 1 < len(said) and said[at + 1][:1].isdigit()
    return phrase == "without" and at >= 2 and said[at - 2] == "with" and said[at - 1] in ("and", "or")


def _clause_before(text: str, start: int) -> str:
    """The end of the clause before ``start``."""
    near = text[max(start - _BEFORE, 0) : start + 1]
    ends = [match.end() for match in _CLAUSE_END.finditer(near) if match.end() < len(near)]
    while ends:
        head = near[: ends[-1]]
        is_label = head.endswith(":") and _cue([token.key for token in tokens(head)][-3:], words("negated", "label"))
        if not is_label and not (head.endswith("\n") and _GOES_ON.search(head, max(head.rfind("\n", 0, -2), 0))):
            break
        ends.pop()
    return near[ends[-1] if ends else 0 : -1]
