"""What differs between a quote and the passage it comes from, by kind.

A similarity score cannot tell a misprint from a changed finding, so the words of the two are aligned and each
difference is named. Noise is only what spoils a word in a way that engines and typists do, so that it is none any more;
every other difference in words, numbers and the signs that ``tokens.py`` knows is told. Punctuation counts only beside
a negation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz.distance import Editop, Levenshtein, Opcode

from evalkit.grounding.deciding import Kind, data_version, kinds, words
from evalkit.grounding.normalise import plain
from evalkit.grounding.tokens import Token, count, tokens

IsWord = Callable[[str, int], bool]
"""Whether a folded word is a real one: known, or used at least so many times in the document. A misprint makes none."""


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


class Comparison(NamedTuple):
    """A quote beside a passage."""

    differences: tuple[Difference, ...]
    matched: float
    """The share of the quote's words that stand in the passage, 0..1."""
    span: tuple[int, int] | None = None
    """Where what the quote was compared with stands in ``before + passage + after``; None: it cannot be told."""


#: What may stand between two letters of a word that the canonical form reads as one.
_DIVIDED = r"(?:[-\u2010\u2011]\s+|[\u00ad\u200b]+)?"
_STOPS = re.compile(r"[^.,;:]")
_WORD = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_AMOUNT = re.compile(r"[-.]?\d[\d.,:/x^-]*")
_DATE = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}|(19|20)\d\d")
_VARIANT = re.compile(r"[cgmnpr]\.|rs\d+$|\d{1,2}[pq]\d|ivs|del|dup|ins")
_GENE = re.compile(r"[A-Z]{2,6}\d{1,3}[A-Z]{0,2}")
_NAME = re.compile(r"[A-Z][A-Z0-9-]*[A-Z0-9]")
#: What an engine or a typist takes for one another; folded.
_LOOKALIKES = (("rn", "m"), ("cl", "d"), ("vv", "w"), ("li", "h"), ("ii", "u"), ("nn", "m"))
_ALIKE = str.maketrans("10l|!5", "ioiiis")
_CONFUSED = frozenset(map(frozenset, ("ec", "oc", "li", "ij", "lt", "tf", "nh", "hb", "uv", "nu", "gq", "yv", "rn")))
_OPPOSITES = (
    ("hypo", "hyper"), ("intra", "inter"), ("intra", "extra"), ("infra", "supra"), ("ab", "ad"), ("ante", "anti"),
    ("pre", "post"), ("pre", "peri"), ("pre", "pro"), ("endo", "exo"), ("macro", "micro"), ("brady", "tachy"),
    ("dys", "eu"), ("hemi", "semi"), ("uni", "bi"), ("mono", "bi"), ("mono", "poly"), ("per", "pre"), ("sub", "supra"),
    ("an", "a"), ("in", "im"), ("ile", "ili"), ("perin", "periton"), ("hyp", "hyper"), ("para", "peri"),
)  # fmt: skip
_FIRST_OPPOSITES = tuple({first for first, _ in _OPPOSITES})
_PREFIXES = frozenset(
    ("a", "an", "un", "in", "im", "ir", "il", "non", "dis", "de", "anti", "re", "mal", "mis", "sub", "hemi", "semi")
)
_ENDINGS = (
    ("ectomy", "otomy"), ("ectomy", "ostomy"), ("otomy", "ostomy"), ("itis", "osis"), ("oma", "osis"), ("oma", "itis"),
    ("emia", "uria"), ("ia", "ic"), ("penia", "philia"), ("penia", "cytosis"), ("phasia", "phagia"), ("gram", "graph"),
    ("um", "al"), ("us", "al"), ("ium", "eum"), ("ine", "one"), ("ol", "il"),
)  # fmt: skip
_FIRST_ENDINGS = tuple({first for first, _ in _ENDINGS})
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
    Kind.DATE, Kind.NUMBER, Kind.DECIMAL, Kind.UNIT, Kind.NAME,
)  # fmt: skip


def grounding_version() -> str:
    """Of the rules here and of the words that decide: part of every fingerprint."""
    return f"{_RULES_VERSION} words {data_version()}"


def says_something(text: str) -> bool:
    """Whether the text has a word or number beyond articles, prepositions and the like."""
    stop = words("stop")
    return any(match.group().casefold() not in stop for match in _WORD.finditer(text))


def compare(quote: str, before: str, passage: str, after: str, *, is_recognised: bool, is_word: IsWord) -> Comparison:
    """The differences of a quote to a passage that is about as long, or a little more or less of the text around it.

    ``is_recognised``: the passage comes from OCR, which may have misread a digit. ``is_word`` tells real words.
    """
    text = before + passage + after
    asked, around = tokens(quote), tokens(text)
    first, size = count(before), count(passage)
    if not asked or not size:
        return Comparison((), 0.0)
    letters, letters_around = _as_letters(asked, around)
    start, end = _whole(asked, around, *_nearest(letters, letters_around, first, size))
    said = around[start:end]
    beside = (*around[first:start], *around[end : first + size])
    found = [Difference(Kind.NEGATION, "", token.text) for token in beside if token.key in words("turning")]
    found += _cut_through(around, start, end)
    equal = len(asked)
    for op in _operations(letters, letters_around[start:end]):
        mine, theirs = asked[op.src_start : op.src_end], said[op.dest_start : op.dest_end]
        if op.tag == "equal":
            found += _turned(asked, said, op.src_start, op.dest_start, op.src_end - op.src_start)
            continue
        differences = list(_differences(mine, theirs, is_recognised, is_word))
        found += differences
        if any(one.kind is not Kind.DIVISION for one in differences):
            equal -= len(mine)
    places = range(first, min(first + size, len(around)))  # counted apart, the passage may have a token more
    turning = [at for at in places if around[at].key in words("turning")]  # named, so shown too
    run = min([start, *turning]), max([end, *(at + 1 for at in turning)])
    return Comparison(tuple(found), max(equal, 0) / len(asked), _span(text, around, *run))


def _span(text: str, around: Sequence[Token], start: int, end: int) -> tuple[int, int] | None:
    """Where the tokens start..end stand in ``text``; None where one is written in other characters than it is read."""
    at, first = 0, 0
    for number, token in enumerate(around[:end]):
        found = _next(token, text, at)
        if found is None:
            return None
        if number == start:
            first = found[0]
        at = found[1]
    return first, at


def _next(token: Token, text: str, at: int) -> tuple[int, int] | None:
    """Where the token that follows ``at`` stands; what divides it at the end of a line is in the text alone."""
    place = text.find(token.text, at)
    if place >= 0 and (text[at:place] == token.between or plain(text[at:place]) == token.between):
        return place, place + len(token.text)
    divided = re.compile(_DIVIDED.join(map(re.escape, token.text))).search(text, at)
    if divided is None or plain(text[at : divided.start()]) != token.between:
        return None
    return divided.span()


def _as_letters(*stretches: Sequence[Token]) -> list[str]:
    """Each stretch as a text with a letter for each word, the same for the same word, which is aligned much faster."""
    letters: dict[str, str] = {}
    return ["".join([letters.setdefault(one.key, chr(len(letters))) for one in stretch]) for stretch in stretches]


def _nearest(asked: str, around: str, first: int, size: int) -> tuple[int, int]:
    """Where the run of words that is nearest to the quote begins and ends; ``first`` and ``size`` are about right.

    Of equally near ones the longest: a word in the place of another is a change, not one word less.
    """
    last = first + size

    def distance(start: int, end: int) -> int:
        return Levenshtein.distance(asked, around[start:end])

    start = min(range(max(first - _SHIFT, 0), min(first + _SHIFT, last)), key=lambda at: (distance(at, last), at))
    ends = range(max(last - _SHIFT, start) + 1, min(last + _SHIFT, len(around)) + 1)
    end = min(ends, key=lambda at: (distance(start, at), -at))
    return start, end


def _whole(asked: Sequence[Token], around: Sequence[Token], start: int, end: int) -> tuple[int, int]:
    """The run widened by what belongs to its first and last word: one that the page divides and the quote does not."""
    while start and asked[0].key.endswith(_glued(around[start - 1 : start + 1])):
        start -= 1
    while end < len(around) and asked[-1].key.startswith(_glued(around[end - 1 : end + 1])):
        end += 1
    return start, end


def _cut_through(around: Sequence[Token], start: int, end: int) -> Iterator[Difference]:
    """What hangs on the first or last of the words start..end and is left out: non-|small, 3|+4, <|5, A|-."""
    for left, right, out in ((start - 1, start, start - 1), (end - 1, end, end)):
        if left >= 0 and right < len(around) and _hangs(around[left], around[right]):
            text = around[out].text
            yield Difference(
                Kind.NEGATION if around[out].key in words("prefixes") else _kind(around[out]) or Kind.WORD, "", text
            )


def _hangs(left: Token, right: Token) -> bool:
    """Whether two neighbours are parts of one word, number or sign."""
    if left.key in words("leading", "signs") and right.key[:1].isdigit():
        return True
    if not right.is_joined or right.between.strip("-/:+"):
        return False
    has_digit = left.key[-1:].isdigit() or right.key[:1].isdigit()
    return right.between == "-" or not right.between or (has_digit and right.between in ("/", ":", "+"))


def _turned(asked: Sequence[Token], said: Sequence[Token], mine: int, theirs: int, size: int) -> Iterator[Difference]:
    """Stops and commas beside a negation that stand in one of two equal stretches only: "No, cancer", "no cancer"."""
    turning = words("turning")
    for at in range(1 if mine == 0 or theirs == 0 else 0, size):
        one, other = asked[mine + at], said[theirs + at]
        before = asked[mine + at - 1].key if mine + at else ""
        if one.key not in turning and before not in turning:
            continue
        if _STOPS.sub("", one.between) != _STOPS.sub("", other.between):
            yield Difference(
                Kind.NEGATION,
                f"{before}{one.between}{one.text}",
                f"{before}{other.between}{other.text}",
                is_doubtful=True,
            )


def _operations(asked: str, said: str) -> Iterator[Opcode]:
    """Equal stretches of words and differing ones in turns, all that differs between two equal ones taken together."""
    differing: Opcode | None = None
    for op in Levenshtein.opcodes(asked, said):
        if op.tag != "equal":
            start = differing or op
            differing = Opcode("replace", start.src_start, op.src_end, start.dest_start, op.dest_end)
            continue
        if differing:
            yield differing
            differing = None
        yield op
    if differing:
        yield differing


# What a stretch differs in


def _differences(
    mine: Sequence[Token], theirs: Sequence[Token], is_recognised: bool, is_word: IsWord
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


def _unpaired(mine: Sequence[Token], theirs: Sequence[Token], is_recognised: bool) -> Iterator[Difference]:
    """Stretches of different length: what decides in them, else the stretch as a whole."""
    keys, others = {token.key for token in mine}, {token.key for token in theirs}
    added = [token for token in mine if token.key not in others]
    left_out = [token for token in theirs if token.key not in keys]
    articles = words("articles")
    if all(token.key in articles for token in (*added, *left_out)):
        yield Difference(Kind.WORD, _shown(mine), _shown(theirs), is_doubtful=True)
        return
    kinds = {kind for token in (*left_out, *added) if (kind := _kind(token))}
    kind = next((kind for kind in _WEIGHTIEST if kind in kinds), Kind.WORD)
    is_doubtful = is_recognised and _looks_alike(_glued(mine), _glued(theirs))
    yield Difference(kind, _shown(mine), _shown(theirs), is_doubtful=is_doubtful)


def _pair(one: Token, other: Token, is_recognised: bool, is_word: IsWord) -> Difference | None:
    """What one word in the place of another means; None for a misprint."""
    is_name = any(_NAME.fullmatch(token.text) and not is_word(token.key, _EVERYWHERE) for token in (one, other))
    if not is_name and _is_misprint(one.key, other.key, is_recognised, is_word):
        return None
    kind = _kind_of_pair(one, other)
    is_doubtful = _looks_alike(one.key, other.key) if kind else Levenshtein.distance(one.key, other.key) <= 2
    is_unknown = not kind and not is_name and not is_word(one.key, 1) and not is_word(other.key, _EVERYWHERE)
    return Difference(
        kind or Kind.WORD, one.text, other.text, is_doubtful=is_doubtful and (is_recognised or is_unknown)
    )


def _kind_of_pair(one: Token, other: Token) -> Kind | None:
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


def _kind(token: Token) -> Kind | None:
    """What kind of deciding word it is; None for an ordinary one."""
    if kind := kinds().get(token.key):
        return kind
    if _AMOUNT.fullmatch(token.key):
        return Kind.DATE if _DATE.fullmatch(token.key) and "/" in token.key else Kind.NUMBER
    has_digit = _DIGIT.search(token.key)
    if _GENE.fullmatch(token.text) or (_VARIANT.match(token.key) and (has_digit or "." in token.key)):
        return Kind.GENE
    return Kind.NAME if has_digit or _NAME.fullmatch(token.text) else None


def _glued(tokens: Iterable[Token]) -> str:
    """The words without divisions; two numbers stay two."""
    text = ""
    for token in tokens:
        text += f" {token.key}" if text[-1:].isdigit() and token.key[:1].isdigit() else token.key
    return text


def _is_division_loose(mine: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Whether the different division stands at line breaks, cell borders, or beside a number or sign."""
    return all(
        right.is_loose or not (left.key[-1:].isalpha() and right.key[:1].isalpha())
        for tokens in (mine, theirs)
        for left, right in pairwise(tokens)
    )


def _shown(tokens: Sequence[Token]) -> str:
    return " ".join(token.text for token in tokens)


# Misprints


def _is_misprint(quoted: str, written: str, is_recognised: bool, is_word: IsWord) -> bool:
    """Whether it is the same word, spoilt on one side so that it is none any more.

    On a page that was recognised, a known word in the quote may be what the engine has spoilt.
    """
    if Kind.UNIT in (kinds().get(written), kinds().get(quoted)):  # no dictionary knows them all: mmol, µmol, nmol
        return False
    if is_recognised and quoted.isalpha() and is_word(quoted, 1) and not is_word(written, 2):
        return not _is_other_term(quoted, written) and _is_slip(written, quoted, is_known=is_word(quoted, _EVERYWHERE))
    if not (quoted.isalpha() and written.isalpha()) or quoted in kinds() or is_word(quoted, 1):
        return False
    return not _is_other_term(quoted, written) and _is_slip(quoted, written, is_known=is_word(written, _EVERYWHERE))


def _is_slip(spoilt: str, word: str, *, is_known: bool) -> bool:
    """Whether engines and typists make the one of the other: look-alikes, a letter doubled or halved, or dropped.

    A letter may be dropped from a word that is known only: in a term that no dictionary has, it may be another term.
    """
    if min(len(spoilt), len(word)) < _SHORTEST_MISPRINT - 1:
        return False
    pairs = ((word, spoilt), (_relieved(word), _relieved(spoilt)))
    if pairs[1][0] == pairs[1][1]:
        return True
    allowed = 1 if word in kinds() or len(word) < _LONG else 2
    return any(
        len(edits := Levenshtein.editops(*pair)) <= allowed and all(_is_small(edit, *pair, is_known) for edit in edits)
        for pair in pairs
    )


def _is_small(edit: Editop, word: str, spoilt: str, is_known: bool) -> bool:
    """Whether one edit of ``word`` is such a slip."""
    at, to = edit.src_pos, edit.dest_pos
    if edit.tag == "replace":
        return frozenset((word[at], spoilt[to])) in _CONFUSED
    if edit.tag == "delete":
        return (0 < at < len(word) - 1 and is_known) or word[at] in (word[at - 1 : at], word[at + 1 : at + 2])
    return spoilt[to] in (spoilt[max(to - 1, 0) : to], spoilt[to + 1 : to + 2])


def _relieved(word: str) -> str:
    """The word with what looks alike made equal."""
    for one, other in _LOOKALIKES:
        word = word.replace(one, other)
    return word.translate(_ALIKE)


def _looks_alike(one: str, other: str) -> bool:
    """Whether an engine may have read one for the other: a sign or two misread, added or lost."""
    return Levenshtein.distance(one, other) <= (1 if max(len(one), len(other)) < 6 else 2)


def _is_other_term(one: str, other: str) -> bool:
    """Whether a prefix or an ending makes another term of it: hypotension, hypertension."""
    for short, long in ((one, other), (other, one)):
        if long.endswith(short) and long.removesuffix(short) in _PREFIXES:
            return True
        for first, second in _OPPOSITES if short.startswith(_FIRST_OPPOSITES) else ():
            if short.startswith(first) and long == second + short[len(first) :]:
                return True
        for first, second in _ENDINGS if short.endswith(_FIRST_ENDINGS) else ():
            if short.endswith(first) and long == short[: -len(first)] + second:
                return True
    return False
