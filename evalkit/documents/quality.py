"""Whether a scanned page can be read at all, and what would help if not (specification 002 §7.1).

An engine always answers something. Below ``THRESHOLD`` about half of its words are wrong, and whatever a model makes of
them is invention: such a page is for a person, with what would help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evalkit.documents.upright import GRAINY, SPECKLED, grain, ink, specks

THRESHOLD = 0.5
"""Below it a page is not readable: about half of its words are wrong."""

#: Measured on real pages made worse step by step: the confidence of words that were all right, and all wrong.
_ALL_RIGHT, _ALL_WRONG = 92.0, 27.0
#: Less of the letters in plausible words than this, and less of the ink in words, lowers the score in proportion. Of 102
#: pages of print with their logos, stamps and rules, the one with the least ink in words has 0.68 there.
_PLAUSIBLE_ENOUGH, _COVERED_ENOUGH = 0.8, 0.65
GOOD = 0.75
"""From here up a page is read well, and nothing is said about its picture."""

_EDGES = " .,;:!?\"'()[]{}<>«»“”‘’*_|/\\-–—=+&%#$°^~`"
_JOINED = re.compile(r"[-–—/.:,;_@&+()=]+")
_PLAUSIBLE = tuple(
    re.compile(pattern)
    for pattern in (
        # Words: all small, all capitals or one capital first; a vowel in all that are longer than an abbreviation.
        r"(?=.{1,4}$|.*[aeiouyäöüéèáàíóAEIOUY])(?!.*[b-df-hj-np-tv-xz]{6})([^\W\d_A-Z]+|[A-Z][^\W\d_A-Z]+|[A-Z]+s?)"
        r"(['’][a-z]{1,2})?",
        # Numbers, dates, clock times, amounts with their unit.
        r"[<>≤≥~±]?\d+([,x×]\d+)*(st|nd|rd|th|[a-zA-Zµμ]{1,4})?",
        # Codes: HER2, T2N0, P53, C50.
        r"[a-zA-Z]{1,6}\d{1,6}[A-Za-z0-9]{0,4}",
        # Variants: c.5266dupC, p.Arg175His.
        r"[cgmnp]\.[\w*>+=-]+",
    )
)


class Recognised(NamedTuple):
    """One recognised word. Pixels of the picture it was recognised in, x to the right, y downwards."""

    text: str
    x0: int
    y0: int
    x1: int
    y1: int
    confidence: int
    """How sure the engine is, 0..100."""
    line: int
    """Words of one line have the same number and follow one another."""


@dataclass(frozen=True)
class Quality:
    """How well a page could be recognised."""

    score: float
    """0..1: about the share of its words that are right."""
    readable: bool
    problems: tuple[str, ...]
    """What is wrong with the picture and what would help, for a clinician. Empty where the page is read well."""


@dataclass(frozen=True)
class _Look:
    """What was measured of a page, whole."""

    words: int
    paper: float
    """How light the paper is, 0..255."""
    contrast: float
    """How much darker the print is, of 255 levels."""
    sharpness: float
    """How much of the contrast the steepest edges bridge from one pixel to the next, 0..1."""
    is_noisy: bool
    height: float
    """Of the words, pixels at 200 dpi."""
    covered: float
    """The share of the ink that is in words."""


#: What is wrong, and what would help; from the page as a whole to its print. Of 115 pages that were drawn well, print
#: bridged 0.3 and more of the contrast in one pixel and was 16 pixels high and more.
_PROBLEMS: tuple[tuple[Callable[[_Look], bool], str], ...] = (
    (lambda look: look.paper < 110, "the page is very dark: scan it again, lighter"),
    (lambda look: look.paper >= 110 and look.contrast < 60, "the print is very pale: scan it again, darker"),
    (lambda look: look.is_noisy, "the page is full of specks: scan the original rather than a copy or a fax"),
    (
        lambda look: look.sharpness < 0.2,
        "the page is blurred or was scanned too coarsely: scan it again at 300 dpi, flat on the glass",
    ),
    (lambda look: look.words > 0 and look.height < 12, "the print is too small: scan it again at 300 dpi"),
    (
        lambda look: look.words > 0 and look.covered < _COVERED_ENOUGH,
        "much of the page is not print: if it is handwriting or a picture, type what matters",
    ),
    (
        lambda look: not look.words,
        "no words could be recognised: if it is a photograph or handwriting, type what matters; "
        "if it is print, scan it again at 300 dpi",
    ),
)
_UNEXPLAINED = "few words could be recognised: scan the original at 300 dpi; if it is handwriting, type what matters"


def judge(words: Sequence[Recognised], grey: Image.Image, dpi: int) -> Quality:
    """How well the picture (mode L, drawn at ``dpi``) was recognised as ``words``, which are in its pixels.

    A picture without words scores 0, whatever is on it; whether it is blank is to be asked before.
    """
    found = ink(grey)
    covered = _covered(words, found, grey)
    score = _score(words, covered)
    problems: tuple[str, ...] = ()
    if score < GOOD:
        look = _look(words, grey, dpi, covered)
        problems = tuple(said for is_so, said in _PROBLEMS if is_so(look))
        problems = problems or ((_UNEXPLAINED,) if score < THRESHOLD else ())
    return Quality(score, score >= THRESHOLD, problems)


def sureness(words: Sequence[Recognised]) -> float:
    """The words' mean confidence, 0..100, each letter counting the same; 0 where there are none."""
    letters = sum(len(word.text) for word in words)
    return sum(word.confidence * len(word.text) for word in words) / letters if letters else 0.0


def is_plausible(token: str) -> bool:
    """Whether a token looks like what people print, a word, a number or a code, not like what smudges are taken for.

    >>> [is_plausible(token) for token in ("carcinoma,", "(HER2)", "3.2x1.5", "c.68_69delAG", "wWlkjJ", "|~", "hsqrtzkw")]
    [True, True, True, True, False, False, False]
    """
    core = token.strip(_EDGES)
    parts = [core] if _matches(core) else [part for part in _JOINED.split(core) if part]
    return bool(parts) and all(_matches(part) for part in parts)


def _matches(part: str) -> bool:
    return any(pattern.fullmatch(part) for pattern in _PLAUSIBLE)


def _score(words: Sequence[Recognised], covered: float) -> float:
    letters = sum(len(word.text) for word in words)
    if not letters:
        return 0.0
    right = (sureness(words) - _ALL_WRONG) / (_ALL_RIGHT - _ALL_WRONG)
    plausible = sum(len(word.text) for word in words if is_plausible(word.text)) / letters
    score = right * min(plausible / _PLAUSIBLE_ENOUGH, 1) * min(covered / _COVERED_ENOUGH, 1)
    return round(min(max(score, 0.0), 1.0), 2)


def _covered(words: Sequence[Recognised], found: NDArray[np.bool_], grey: Image.Image) -> float:
    """The share of the ink that stands within words: words that the engine passed over have no confidence."""
    total = int(found.sum())
    if not total:
        return 1.0
    down, across = found.shape[0] / grey.height, found.shape[1] / grey.width
    in_words = np.zeros_like(found)
    for word in words:
        in_words[int(word.y0 * down) : int(word.y1 * down) + 2, int(word.x0 * across) : int(word.x1 * across) + 2] = (
            True
        )
    return int((found & in_words).sum()) / total


def _look(words: Sequence[Recognised], grey: Image.Image, dpi: int, covered: float) -> _Look:
    levels = np.asarray(grey, dtype=np.int16)
    paper = float(np.percentile(levels, 80))
    print_ = levels[levels < paper - 10]
    contrast = paper - float(np.percentile(print_, 5)) if print_.size else 0.0
    steps = np.abs(np.diff(levels, axis=1))
    edges = steps[steps > 0.05 * contrast]
    return _Look(
        words=len(words),
        paper=paper,
        contrast=contrast,
        sharpness=float(np.percentile(edges, 90)) / max(contrast, 1.0) if edges.size else 0.0,
        is_noisy=grain(grey) > GRAINY or specks(grey) > SPECKLED,
        height=median(word.y1 - word.y0 for word in words) * 200 / dpi if words else 0.0,
        covered=covered,
    )
