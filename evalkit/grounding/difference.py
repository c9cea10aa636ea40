"""What differs between a quote and the passage it comes from, by kind.

A similarity score cannot tell a misprint from a changed finding, so the words of the two are aligned and each
difference is named. Noise is only what spoils an ordinary word without making another one of it; numbers, units,
names, negations and every other word that decides may not differ at all. The words that decide are data,
``difference.toml``.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from evalkit.grounding.normalise import plain

IsWord = Callable[[str, int], bool]
"""Whether a folded word is a real one: known, or used at least so many times in the document. A misprint makes none."""


class Kind(StrEnum):
    """What a difference is about."""

    NUMBER = "number"
    DECIMAL = "decimal point"
    DATE = "date"
    UNIT = "unit"
    COMPARATOR = "comparator"
    NEGATION = "negation"
    MODAL = "degree of certainty"
    LATERALITY = "side or site"
    POLARITY = "finding"
    PATHOGENICITY = "pathogenicity"
    GENE = "gene or variant"
    WORD = "word"
    DIVISION = "division into words"


_NAMED = {
    "negation": Kind.NEGATION,
    "polarity": Kind.POLARITY,
    "modal": Kind.MODAL,
    "laterality": Kind.LATERALITY,
    "pathogenicity": Kind.PATHOGENICITY,
    "gene or variant": Kind.GENE,
    "unit": Kind.UNIT,
    "comparator": Kind.COMPARATOR,
    "date": Kind.DATE,
    "number": Kind.NUMBER,
}


class Difference(NamedTuple):
    """One place where quote and page disagree."""

    kind: Kind
    quoted: str
    """As the quote says it; empty if the quote leaves it out."""
    written: str
    """As the page says it; empty if the quote adds it."""
    is_doubtful: bool = False
    """It may come from reading or copying, so a person has to look."""

    def __str__(self) -> str:
        """One clause for a clinician."""
        if not self.written:
            return f"{self.kind}: the quote adds “{self.quoted}”"
        if not self.quoted:
            return f"{self.kind}: the quote leaves out “{self.written}”"
        return f"{self.kind}: the document says “{self.written}”, the quote “{self.quoted}”"


class _Token(NamedTuple):
    key: str
    """Folded, to compare by."""
    text: str
    """As written."""
    is_loose: bool
    """After a line break or between table cells, where a division into words may be the page's, not the writer's."""


class Comparison(NamedTuple):
    """A quote beside a passage."""

    differences: tuple[Difference, ...]
    matched: float
    """The share of the quote's words that stand in the passage, 0..1."""


# A chunk of letters and digits with the signs that hang inside it (c.5266dupC, 17q21.31, 3-5, mg/dL), an amount without
# its unit, or a sign that says something. What else is punctuation says nothing here.
_UNITS = r"(?:mm|cm|m|km|mg|mcg|ug|µg|μg|g|gm|kg|ng|pg|lbs?|oz|ml|l|dl|cc|iu|u|meq|mmol|hrs?|h|min|bp|kb|mb|gy|x|yo|y)"
_TOKEN = re.compile(
    r"(?P<variant>(?<!\w)[cgmnpr]\.\(?(?=[\w*>+=?-]*\d)[\w*>+=?-]*[\w*=?])"
    rf"|(?P<amount>\d+(?:[.,]\d+)*(?={_UNITS}(?!\w)))"
    r"|(?P<point>(?<![\w.])\.\d+)"
    r"|(?P<chunk>[^\W_]+(?:'[^\W_]+|[.,:>*^_-](?=\d)[^\W_]+|(?<=\d)[-:>/.,][^\W_]+)*)"
    r"|(?P<minus>(?<![\w.)])-(?=\.?\d))"
    r"|(?P<sign>[<>=≤≥±~≈%?°^+])",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_AMOUNT = re.compile(r"-?\d*[.,:/-]?[\d.,:/x-]*\d")
_DATE = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}|(19|20)\d\d")
_VARIANT = re.compile(r"[cgmnpr]\.|rs\d+$|\d{1,2}[pq]\d|ivs|del|dup|ins")
_NAME = re.compile(r"[A-Z][A-Z0-9-]*[A-Z0-9]")
#: What an engine or a typist takes for one another; folded.
_LOOKALIKES = (("rn", "m"), ("cl", "d"), ("vv", "w"), ("li", "h"), ("ii", "u"), ("nn", "m"))
_OPPOSITES = (
    ("hypo", "hyper"), ("intra", "inter"), ("intra", "extra"), ("infra", "supra"), ("ab", "ad"), ("ante", "anti"),
    ("pre", "post"), ("pre", "peri"), ("pre", "pro"), ("endo", "exo"), ("macro", "micro"), ("brady", "tachy"),
    ("dys", "eu"), ("hemi", "semi"), ("uni", "bi"), ("mono", "bi"), ("mono", "poly"), ("per", "pre"), ("sub", "supra"),
    ("an", "a"), ("in", "im"), ("ile", "ili"), ("perin", "periton"), ("hyp", "hyper"), ("para", "peri"),
)  # fmt: skip
_PREFIXES = (
    "a",
    "an",
    "un",
    "in",
    "im",
    "ir",
    "il",
    "non",
    "dis",
    "de",
    "anti",
    "re",
    "mal",
    "mis",
    "sub",
    "hemi",
    "semi",
)
_ENDINGS = (
    ("ectomy", "otomy"), ("ectomy", "ostomy"), ("otomy", "ostomy"), ("itis", "osis"), ("oma", "osis"), ("oma", "itis"),
    ("emia", "uria"), ("ia", "ic"), ("penia", "philia"), ("penia", "cytosis"), ("phasia", "phagia"), ("gram", "graph"),
    ("um", "al"), ("us", "al"), ("ium", "eum"), ("ine", "one"), ("ol", "il"),
)  # fmt: skip
#: Letters of a word that a misprint can spoil and leave recognisable, and of one that two misprints can.
_SHORTEST_MISPRINT, _LONG = 5, 8
#: So many words the passage found by letters may be off at either end.
_SHIFT = 5
#: More often than any document uses a word: asks whether it is known at all.
_EVERYWHERE = 10**9
#: Raise it with every change that alters a verdict.
_RULES_VERSION = 1
#: Where a stretch differs in several ways, the first of these names it.
_WEIGHTIEST = (
    Kind.NEGATION, Kind.POLARITY, Kind.GENE, Kind.PATHOGENICITY, Kind.LATERALITY, Kind.MODAL, Kind.COMPARATOR,
    Kind.DATE, Kind.NUMBER, Kind.DECIMAL, Kind.UNIT,
)  # fmt: skip


@cache
def _data() -> tuple[dict[str, Kind], dict[str, frozenset[str]]]:
    data = tomllib.loads((files("evalkit.grounding") / "difference.toml").read_text("utf-8"))
    kinds: dict[str, Kind] = {}
    for row in data["kind"]:
        for word in row["words"]:
            kinds.setdefault(_key(word), _NAMED[row["name"]])
    sets = {f"negated {name}": frozenset(words) for name, words in data["negated"].items()}
    sets["cue words"] = frozenset(
        word for name in ("before", "after") for cue in data["negated"][name] for word in cue.split()
    )
    sets["articles"] = frozenset(data["articles"]["words"])
    sets["stop"] = frozenset(data["stop"]["words"])
    return kinds, sets


def grounding_version() -> str:
    """Of the rules here and of the words that decide: part of every fingerprint."""
    return f"{_RULES_VERSION} words " + str(
        tomllib.loads((files("evalkit.grounding") / "difference.toml").read_text("utf-8"))["version"]
    )


def says_something(text: str) -> bool:
    """Whether the text has a word or number beyond articles, prepositions and the like."""
    stop = _data()[1]["stop"]
    return any(match.group().casefold() not in stop for match in _WORD.finditer(text))


def compare(quote: str, before: str, passage: str, after: str, *, is_recognised: bool, is_word: IsWord) -> Comparison:
    """The differences of a quote to a passage that is about as long, or a little more or less of the text around it.

    ``is_recognised``: the passage comes from OCR, which may have misread a digit. ``is_word`` tells real words.
    """
    asked, said = _tokens(quote), _tokens(passage)
    if not asked or not said:
        return Comparison((), 0.0)
    blocks = _blocks(asked, _nearest(asked, _tokens(before), said, _tokens(after)))
    equal = len(asked)
    found: list[Difference] = []
    for mine, theirs in blocks:
        equal -= len(mine)
        differences = list(_differences(mine, theirs, is_recognised, is_word))
        found += differences
        if not differences or all(one.kind is Kind.DIVISION for one in differences):
            equal += len(mine)
    return Comparison(tuple(found), max(equal, 0) / len(asked))


def lost_negation(text: str, start: int, end: int) -> Difference | None:
    """The negation, or question mark, beside ``text[start:end]`` in its clause that the cut has left out."""
    return _lost_before(text, start, end) or _lost_behind(text, end)


def _lost_before(text: str, start: int, end: int) -> Difference | None:
    clause, sets = _clause_before(text, start), _data()[1]
    if not _has_cue(clause):
        return None
    before = [token.key for token in _tokens(clause)]
    for at in range(len(before) - 1, -1, -1):
        if before[at] in sets["negated ending"]:
            before = before[at + 1 :]
            break
    opening = [token.key for token in _tokens(text[start:end])[:1]]
    if sets["negated own"].intersection(opening):  # what begins with its own negation has lost none
        return None
    cue = _cue(before[-_REACH:], sets["negated before"])
    return Difference(Kind.NEGATION, "", cue) if cue else None


def _lost_behind(text: str, end: int) -> Difference | None:
    clause, sets = _clause_behind(text, end), _data()[1]
    if _has_cue(clause):
        words = [token.key for token in _tokens(clause)]
        while words and words[0] in sets["negated linking"]:
            words = words[1:]
        for size in (2, 1):
            if (cue := " ".join(words[:size])) in sets["negated after"]:
                return Difference(Kind.NEGATION, "", cue)
    return Difference(Kind.MODAL, "", "?") if text[end : end + 1] == "?" else None


def _has_cue(clause: str) -> bool:
    """Whether a word of any negation is in it: most clauses have none, and need no closer look."""
    return not _data()[1]["cue words"].isdisjoint(_CUE_WORD.findall(plain(clause).casefold()))


def _cue(words: Sequence[str], cues: frozenset[str]) -> str | None:
    """The first cue among the words, of one to three of them."""
    phrases = (" ".join(words[at : at + size]) for at in range(len(words)) for size in (3, 2, 1))
    return next((phrase for phrase in phrases if phrase in cues), None)


#: So many words before a quote may hold a negation that reaches it, and so many characters are looked at.
_REACH = 10
_BEFORE, _BEHIND = 140, 60
# A sentence goes on behind a break where a small letter follows. All signs stand first: the engine skips to the next.
_SENTENCE_END = re.compile(r"[.;!?\n](?:(?<=\n)|(?=\s|$))")
_CUE_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_CLAUSE_END = re.compile(r"[.;!?:\t\n](?:(?<=[.;!?])(?=\s|$)|(?<=:)(?=\s)|(?<=\t)|(?<=\n)(?![^\W\d_A-Z]))")


def _clause_before(text: str, start: int) -> str:
    """The end of the clause before ``start``."""
    from_word = text.find(" ", start - _BEFORE, start) if start > _BEFORE else 0
    # The quote's first letter is looked at too: it tells whether a break before it ends the clause.
    return _CLAUSE_END.split(text[max(from_word, 0) : start + 1])[-1][:-1]


def _clause_behind(text: str, end: int) -> str:
    """What follows ``end`` in the same sentence or the next cell."""
    # From the last character on: where the quote ends its sentence, nothing behind it belongs to it.
    return _SENTENCE_END.split(text[end - 1 : end + _BEHIND], maxsplit=1)[0][1:]


# Words


@lru_cache(maxsize=1024)
def _tokens(text: str) -> tuple[_Token, ...]:
    whole = plain(text)
    tokens: list[_Token] = []
    last = 0
    for match in _TOKEN.finditer(whole):
        between = whole[last : match.start()]
        is_loose = not between or "\n" in between or "\t" in between or "-" in between
        tokens.append(_Token(_key(match.group()), match.group(), is_loose))
        last = match.end()
    return tuple(tokens)


def _key(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("μ", "u").replace("µ", "u")
    return re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])|\s", "", folded)


def _nearest(
    asked: Sequence[_Token], before: Sequence[_Token], said: Sequence[_Token], after: Sequence[_Token]
) -> Sequence[_Token]:
    """The run of the page's words that is nearest to the quote.

    Of equally near ones the longest: a word in the place of another is a change, not one word less.
    """
    words = (*before, *said, *after)
    keys, others = [one.key for one in asked], [one.key for one in words]
    first, last = len(before), len(before) + len(said)

    def distance(start: int, end: int) -> int:
        return Levenshtein.distance(keys, others[start:end])

    start = min(range(max(first - _SHIFT, 0), min(first + _SHIFT, last)), key=lambda at: (distance(at, last), at))
    end = min(
        range(max(last - _SHIFT, start) + 1, min(last + _SHIFT, len(words)) + 1),
        key=lambda at: (distance(start, at), -at),
    )
    # A word that the page divides and the quote does not is longer than its nearest part.
    while start and asked[0].key.endswith(_glued(words[start - 1 : start + 1])):
        start -= 1
    while end < len(words) and asked[-1].key.startswith(_glued(words[end - 1 : end + 1])):
        end += 1
    return words[start:end]


def _blocks(asked: Sequence[_Token], said: Sequence[_Token]) -> Iterator[tuple[Sequence[_Token], Sequence[_Token]]]:
    """The stretches where the two differ."""
    merged: list[list[int]] = []
    for op in Levenshtein.opcodes([one.key for one in asked], [one.key for one in said]):
        if op.tag == "equal":
            continue
        if merged and merged[-1][1] == op.src_start and merged[-1][3] == op.dest_start:
            merged[-1][1], merged[-1][3] = op.src_end, op.dest_end
        else:
            merged.append([op.src_start, op.src_end, op.dest_start, op.dest_end])
    for start, end, other_start, other_end in merged:
        yield asked[start:end], said[other_start:other_end]


# What a stretch differs in


def _differences(
    mine: Sequence[_Token], theirs: Sequence[_Token], is_recognised: bool, is_word: IsWord
) -> Iterator[Difference]:
    if _glued(mine) == _glued(theirs):
        if not _is_division_loose(mine, theirs):
            yield Difference(Kind.DIVISION, _shown(mine), _shown(theirs), is_doubtful=True)
        return
    if len(mine) == len(theirs):
        for one, other in zip(mine, theirs, strict=True):
            if one.key != other.key and (difference := _pair(one, other, is_recognised, is_word)):
                yield difference
        return
    if mine and theirs and _is_misprint(_glued(mine), _glued(theirs), is_recognised, is_word):
        return
    yield from _unpaired(mine, theirs, is_recognised)


def _unpaired(mine: Sequence[_Token], theirs: Sequence[_Token], is_recognised: bool) -> Iterator[Difference]:
    """Stretches of different length: what decides in them, else the stretch as a whole."""
    keys, others = {token.key for token in mine}, {token.key for token in theirs}
    added = [token for token in mine if token.key not in others]
    left_out = [token for token in theirs if token.key not in keys]
    articles = _data()[1]["articles"]
    if all(token.key in articles for token in (*added, *left_out)):
        yield Difference(Kind.WORD, _shown(mine), _shown(theirs), is_doubtful=True)
        return
    kinds = {kind for token in (*left_out, *added) if (kind := _kind(token))}
    kind = next((kind for kind in _WEIGHTIEST if kind in kinds), Kind.WORD)
    is_doubtful = is_recognised and _looks_alike(_glued(mine), _glued(theirs))
    yield Difference(kind, _shown(mine), _shown(theirs), is_doubtful=is_doubtful)


def _pair(one: _Token, other: _Token, is_recognised: bool, is_word: IsWord) -> Difference | None:
    """What one word in the place of another means; None for a misprint."""
    is_name = any(_NAME.fullmatch(token.text) and not is_word(token.key, _EVERYWHERE) for token in (one, other))
    if not is_name and _is_misprint(one.key, other.key, is_recognised, is_word):
        return None
    kind = _kind_of_pair(one, other)
    is_doubtful = is_recognised and (
        _looks_alike(one.key, other.key)
        if kind
        else not is_word(other.key, 2) and Levenshtein.distance(one.key, other.key) <= len(other.key) // 2
    )
    return Difference(kind or Kind.WORD, one.text, other.text, is_doubtful=is_doubtful)


def _kind_of_pair(one: _Token, other: _Token) -> Kind | None:
    """The kind that one of two words has; None if both are ordinary."""
    if _AMOUNT.fullmatch(one.key) and _AMOUNT.fullmatch(other.key):
        if re.sub(r"\D", "", one.key) == re.sub(r"\D", "", other.key):
            return Kind.DECIMAL
        if _DATE.fullmatch(one.key) or _DATE.fullmatch(other.key):
            return Kind.DATE
        # A point that moved brings a zero along: .5 and 0.5 are one number, 0.05 and 0.5 are not.
        if re.sub(r"\D", "", one.key).strip("0") == re.sub(r"\D", "", other.key).strip("0"):
            return Kind.DECIMAL
        return Kind.NUMBER
    return _kind(other) or _kind(one)


def _kind(token: _Token) -> Kind | None:
    """What kind of deciding word it is; None for an ordinary one."""
    if kind := _data()[0].get(token.key):
        return kind
    if _AMOUNT.fullmatch(token.key):
        return Kind.DATE if _DATE.fullmatch(token.key) and "/" in token.key else Kind.NUMBER
    if _VARIANT.match(token.key) and (_DIGIT.search(token.key) or "." in token.key):
        return Kind.GENE
    if _DIGIT.search(token.key) or _NAME.fullmatch(token.text):
        return Kind.GENE
    return None


def _glued(tokens: Iterable[_Token]) -> str:
    """The words without divisions; two numbers stay two."""
    text = ""
    for token in tokens:
        text += f" {token.key}" if text[-1:].isdigit() and token.key[:1].isdigit() else token.key
    return text


def _is_division_loose(mine: Sequence[_Token], theirs: Sequence[_Token]) -> bool:
    """Whether the different division stands at line breaks, cell borders, or beside a number or sign."""
    return all(
        right.is_loose or not (left.key[-1:].isalpha() and right.key[:1].isalpha())
        for tokens in (mine, theirs)
        for left, right in pairwise(tokens)
    )


def _shown(tokens: Sequence[_Token]) -> str:
    return " ".join(token.text for token in tokens)


# Misprints


def _is_misprint(quoted: str, written: str, is_recognised: bool, is_word: IsWord) -> bool:
    """Whether it is the same word, spoilt on one side so that it is none any more."""
    if min(len(quoted), len(written)) < _SHORTEST_MISPRINT - 1 or not (quoted.isalpha() and written.isalpha()):
        return False
    kinds = _data()[0]
    if Kind.UNIT in (kinds.get(written), kinds.get(quoted)):  # no dictionary knows them all: mmol, µmol, nmol
        return False
    if quoted in kinds or is_word(quoted, 1):
        # Only an engine turns a real word into something that is none.
        if not is_recognised or is_word(written, 2):
            return False
    elif _is_other_term(quoted, written):
        return False
    allowed = 1 if written in kinds or len(written) < _LONG else 2
    pairs = ((quoted, written), (_relieved(quoted), _relieved(written)))
    return min(Levenshtein.distance(*pair) for pair in pairs) <= allowed


def _relieved(word: str) -> str:
    """The word with what looks alike made equal."""
    for one, other in _LOOKALIKES:
        word = word.replace(one, other)
    return word.translate(str.maketrans("10l|!5", "ioiiis"))


def _looks_alike(one: str, other: str) -> bool:
    """Whether an engine may have read one for the other: a sign or two misread, added or lost."""
    return Levenshtein.distance(one, other) <= (1 if max(len(one), len(other)) < 6 else 2)


def _is_other_term(one: str, other: str) -> bool:
    """Whether a prefix or an ending makes another term of it: hypotension, hypertension."""
    for short, long in ((one, other), (other, one)):
        if any(long == prefix + short for prefix in _PREFIXES):
            return True
        for first, second in _OPPOSITES:
            if short.startswith(first) and long == second + short[len(first) :]:
                return True
        for first, second in _ENDINGS:
            if short.endswith(first) and long == short[: -len(first)] + second:
                return True
    return False
