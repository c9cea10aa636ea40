"""How much a regular expression may have to try before it gives up: a site's own are looked at before one is used.

Python's engine tries all ways in which a text can be divided among the repeats of an expression. What matters is
therefore whether one and the same text can be divided in several ways: within one repeat the ways double with each
letter, between repeats that follow each other they multiply. Both are read from the expression's positions and which of
them follow each other; what an expression asserts without taking it is looked at by itself.

Source: Weideman et al., Analyzing Matching Time Behavior of Backtracking Regular Expression Matchers (CIAA 2016); the
positions are those of Glushkov (1961). What is optional without any repeat is not followed: ``a?a?a?…`` shows when it is
tried on long texts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import product
from re import _constants as _op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

LONG = 10_000
"""Letters of a long page."""
MOST_STEPS = LONG**3 // 10
"""The most on such a page, as counted here, which is more than real pages ask: no third repeat without a bound."""
_MOST_PLACES = 20_000
"""That are looked at for one question about an expression."""
_COPIES = 64
"""Positions to which an exact repeat is written out."""
_ALPHABET = "".join(map(chr, range(256))) + "ıſΩλ中–—’”•™ "

Charset = int
"""One bit for each letter of the alphabet."""


class Endless(ValueError):
    """An expression that may take forever; the message says why, and what helps."""


def check(pattern: str) -> None:
    r"""Whether the expression may be searched for in any text, case ignored. Endless where not.

    >>> check(r"page\s+\d+ of \d+")
    >>> check("(a+)+$")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    evalkit.classification.backtracking.Endless: a repeat within a repeat, ...
    """
    _Expression(_parser.parse(pattern), _alphabet(pattern)).check()


def _alphabet(pattern: str) -> str:
    return "".join(dict.fromkeys(_ALPHABET + pattern))


@dataclass
class _Part:
    """A part of an expression: the positions with which it can begin and end, and whether it can be nothing."""

    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    nothing: bool = True


class _Expression:
    """Its positions, each with the letters that can stand there and the positions that can follow."""

    def __init__(self, parsed: Any, alphabet: str) -> None:
        self._alphabet = alphabet
        self._letters: list[Charset] = []
        self._follow: list[list[int]] = []
        self._asserted: list[Any] = []
        self._bounds: dict[int, int] = {}
        """Position → how often repeats take it, at most."""
        anywhere = self._position((1 << len(alphabet)) - 1, repeated=True)  # a search begins at every letter
        self._join(anywhere, self._sequence(parsed))

    def check(self) -> None:
        """Endless where it may take forever."""
        loops = self._loops()
        for loop in set(loops.values()):
            self._check_one(loop)
        if self._steps(loops) > MOST_STEPS:
            raise Endless(
                "several repeats can share one text, and each way of sharing is tried; write what is between them, or "
                "bound them, as in [^.\\n]{0,40} instead of .*"
            )
        for part in self._asserted:
            _Expression(part, self._alphabet).check()

    # ------------------------------------------------------------------------------------------------- positions

    def _position(self, letters: Charset, *, repeated: bool = False) -> _Part:
        place = len(self._letters)
        self._letters.append(letters)
        self._follow.append([place] if repeated else [])
        if repeated:
            self._bounds[place] = LONG
        return _Part([place], [place], False)

    def _join(self, one: _Part, other: _Part) -> _Part:
        for place in one.last:
            self._follow[place] += other.first
        return _Part(
            one.first + (other.first if one.nothing else []),
            other.last + (one.last if other.nothing else []),
            one.nothing and other.nothing,
        )

    def _sequence(self, items: Iterable[tuple[Any, Any]]) -> _Part:
        whole = _Part()
        for item in items:
            whole = self._join(whole, self._part(*item))
        return whole

    def _part(self, op: Any, given: Any) -> _Part:
        if op in _LETTERS:
            return self._position(_letters(self._alphabet, op, _frozen(given)))
        if op is _op.AT:
            return _Part()
        if op in (_op.ASSERT, _op.ASSERT_NOT):
            self._asserted.append(given[1])
            return _Part()
        if op in (_op.SUBPATTERN, _op.ATOMIC_GROUP):
            return self._sequence(given[3] if op is _op.SUBPATTERN else given)
        if op is _op.BRANCH:
            parts = [self._sequence(one) for one in given[1]]
            if sum(one.nothing for one in parts) > 1:
                raise Endless("several of its choices are the same, or can be nothing; leave all but one away")
            return _Part(
                [place for one in parts for place in one.first],
                [place for one in parts for place in one.last],
                any(one.nothing for one in parts),
            )
        if op in (_op.MAX_REPEAT, _op.MIN_REPEAT, _op.POSSESSIVE_REPEAT):
            return self._repeat(*given)
        raise Endless("it refers back to what a group found, and nobody can say how long that takes; write it out")

    def _repeat(self, least: int, most: int, body: Any) -> _Part:
        width = body.getwidth()
        if most <= 1 or (least == most and width[0] == width[1] and width[0] * least <= _COPIES):
            whole = _Part()
            for _ in range(most):
                whole = self._join(whole, self._sequence(body))
            return _Part(whole.first, whole.last, whole.nothing or least == 0)
        begin = len(self._letters)
        part = self._sequence(body)
        if part.nothing:
            raise Endless("what is repeated can be nothing at all; leave away the ?, * or {0,…} in it")
        for place in part.last:
            self._follow[place] += part.first
        times = min(LONG, LONG if most == _op.MAXREPEAT else most)
        for place in range(begin, len(self._letters)):
            self._bounds[place] = min(LONG, self._bounds.get(place, 1) * times)
        return _Part(part.first, part.last, least == 0)

    # ------------------------------------------------------------------------------------------------- ambiguity

    def _loops(self) -> dict[int, frozenset[int]]:
        """Repeated position → all that it comes back to itself by."""
        ahead = {place: _reached([place], lambda one: self._follow[one]) for place in self._bounds}
        return {
            place: frozenset(one for one in reached if place in ahead.get(one, ()))
            for place, reached in ahead.items()
            if place in reached
        }

    def _check_one(self, loop: frozenset[int]) -> None:
        """Endless where a text leads from a position of the loop back to it in two ways: they part, and meet again."""
        for place in loop:
            after = [one for one in self._follow[place] if one in loop]
            if len(after) > len(set(after)):
                raise _nested()

        def apart(pair: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            for one, other in self._together(pair, (loop, loop)):
                if one != other:
                    yield one, other
                elif pair[0] != pair[1]:
                    raise _nested()

        _reached([(place, place) for place in loop], apart)

    def _together(self, places: tuple[int, ...], among: Sequence[frozenset[int] | None]) -> Iterator[tuple[int, ...]]:
        """Where these can go on by one and the same letter, each within its own positions."""
        choices = [
            {one for one in self._follow[place] if own is None or one in own}
            for place, own in zip(places, among, strict=True)
        ]
        for step in product(*choices):
            common = -1
            for place in step:
                common &= self._letters[place]
            if common:
                yield step

    def _steps(self, loops: dict[int, frozenset[int]]) -> int:
        """The most ways in which one text can be shared by repeats that follow each other."""
        each = list(dict.fromkeys(loops.values()))
        ahead = {loop: _reached([min(loop)], lambda one: self._follow[one]) for loop in each}
        shares = {
            loop: [
                other for other in each if other is not loop and other <= ahead[loop] and self._can_share(loop, other)
            ]
            for loop in each
        }

        @cache
        def most(loop: frozenset[int]) -> int:
            own = max(self._bounds[place] for place in loop)
            return own * max((most(other) for other in shares[loop]), default=1)

        return max(map(most, each))

    def _can_share(self, one: frozenset[int], other: frozenset[int]) -> bool:
        """Whether some text can be taken by the one repeat, by the other, and by going from one to the other."""

        def onward(places: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            return self._together(places, (one, None, other))

        begins = [(first, first, last) for first, last in product(one, other)]
        return any(place in other and place == last for _, place, last in _reached(begins, onward))


def _nested() -> Endless:
    return Endless(
        "a repeat within a repeat, or choices of one repeat, can share one text in ever more ways; write (a+)+ as a+, and "
        "let each choice begin with another letter"
    )


def _reached(begin: Iterable[Any], onward: Any) -> set[Any]:
    """All that can be come to in one step or more."""
    found: set[Any] = set()
    waiting = list(begin)
    while waiting:
        for one in onward(waiting.pop()):
            if one not in found:
                found.add(one)
                waiting.append(one)
        if len(found) > _MOST_PLACES:
            raise Endless("it is too long to be looked through; divide it among several rows")
    return found


# ------------------------------------------------------------------------------------------------------------ letters

_LETTERS = (_op.LITERAL, _op.NOT_LITERAL, _op.ANY, _op.IN)
_CATEGORIES: Mapping[Any, Callable[[str], bool]] = {
    _op.CATEGORY_DIGIT: str.isdecimal,
    _op.CATEGORY_SPACE: str.isspace,
    _op.CATEGORY_WORD: lambda letter: letter.isalnum() or letter == "_",
}
_OPPOSITES = {
    _op.CATEGORY_NOT_DIGIT: _op.CATEGORY_DIGIT,
    _op.CATEGORY_NOT_SPACE: _op.CATEGORY_SPACE,
    _op.CATEGORY_NOT_WORD: _op.CATEGORY_WORD,
}


def _frozen(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


@lru_cache(maxsize=4096)
def _letters(alphabet: str, op: Any, given: Any) -> Charset:
    """The letters that can stand there, case ignored."""
    found = 0
    for place, letter in enumerate(alphabet):
        if any(_is_among(one, op, given) for one in {letter, letter.lower(), letter.upper()} if len(one) == 1):
            found |= 1 << place
    return found


def _is_among(letter: str, op: Any, given: Any) -> bool:
    if op is _op.ANY:
        return letter != "\n"
    if op is _op.LITERAL:
        return bool(ord(letter) == given)
    if op is _op.NOT_LITERAL:
        return bool(ord(letter) != given)
    negated = bool(given) and given[0][0] is _op.NEGATE
    return negated != any(_is_item(letter, *item) for item in given[negated:])


def _is_item(letter: str, op: Any, given: Any) -> bool:
    if op is _op.RANGE:
        return bool(given[0] <= ord(letter) <= given[1])
    if op is _op.CATEGORY:
        opposite = _OPPOSITES.get(given)
        return _CATEGORIES[opposite or given](letter) != bool(opposite)
    return bool(ord(letter) == given)


# -------------------------------------------------------------------------------------------------------------- trial

SECONDS = 2.0
"""For one expression on all texts that it is tried on."""
_TRIED = 2000
"""Letters of each: enough for what grows with the third power of them."""
_TRIAL = """
import json, re, sys
given = json.load(sys.stdin)
expression = re.compile(given["pattern"], re.IGNORECASE | re.MULTILINE)
for text in given["texts"]:
    expression.search(text)
"""


def long_texts(pattern: str, examples: Iterable[str] = ()) -> list[str]:
    """Texts of some thousand letters that ask much of the expression: each of its letters and those of its classes again and
    again, and the examples, all ending in what no expression expects.
    """
    letters = dict.fromkeys([*"aA1 \n.-,", *(one for one in pattern if one.isalnum())])
    runs = [*letters, *(one for one in examples if one), "a ", "a1", "1 a, "]
    return [(run * (_TRIED // len(run) + 1))[:_TRIED] + "\x00" for run in runs]


def is_quick(pattern: str, examples: Iterable[str] = (), seconds: float = SECONDS) -> bool:
    """Whether another process is done with the expression and long texts in time; it is ended if not."""
    import json
    import subprocess

    given = json.dumps({"pattern": pattern, "texts": long_texts(pattern, examples)})
    try:
        subprocess.run(  # noqa: S603 - this Python, these lines
            [sys.executable, "-I", "-c", _TRIAL], input=given, text=True, timeout=seconds, check=True,
            capture_output=True,
        )  # fmt: skip
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return False
    return True
