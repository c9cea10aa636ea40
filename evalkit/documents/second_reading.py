"""Second reading of a page's numbers, codes and units by another OCR engine.

Of the numbers on a fax that one engine reads and another does not confirm, every second is wrong; of those that both
read alike, hardly any (measured by ``benchmarks.fax``). The second engine gets cut-outs of these words only, because it
takes too long for whole pages and loses the spaces between words.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Protocol

from PIL import Image

from evalkit.core.grouping import split_into_runs
from evalkit.core.package_tables import load_package_table
from evalkit.documents.quality import OcrWord
from evalkit.errors import DocumentError

#: Confidence (0..100) of a word that both engines read alike, unless the first engine's is below the minimum.
_CONFIRMED_CONFIDENCE, _MIN_CONFIRMED_CONFIDENCE = 95, 75
#: A second reading of lower confidence (0..1) confirms nothing.
_MIN_SECOND_CONFIDENCE = 0.95
#: Without a second reading that confirms it, a number is in doubt below this confidence of the first engine.
_MIN_LONE_CONFIDENCE = 95
#: If the engines differ, a number of at least this confidence keeps the first engine's reading.
_MIN_KEPT_CONFIDENCE = 90
#: Margin around a cut-out, and largest gap between numbers that are read together, as shares of the word's height. In a
#: wider gap no hyphen was lost.
_CUT_OUT_MARGIN, _MAX_GAP = 0.2, 1.5
_EDGE_PUNCTUATION = " ,;:.!?\"'()[]{}|_*‘’“”~©-"
#: Separators of words, and of thousands. A comma before another number of digits is a decimal comma.
_WORD_SEPARATORS = re.compile(r"[\s;]+|,(?!\d)")
#: Brackets count as separators too, because the second engine loses the space behind them.
_SEPARATORS = re.compile(rf"{_WORD_SEPARATORS.pattern}|(?<=\d),(?=\d{{3}}(?!\d))|[()\[\]]")
#: Between a clock time and another number, no mark can be lost that would make them one.
_CLOCK_TIME = re.compile(r"\d{1,2}:\d\d(:\d\d)?")
_DASHES = str.maketrans("–—‐−", "----")


class SecondReader(Protocol):
    """Interface of an OCR engine that reads cut-outs of words."""

    @property
    def name_and_version(self) -> str:
        """Name and version of the engine, e.g. ``rapidocr 3.10.0``."""

    def read_cut_outs(self, cut_outs: Sequence[Image.Image]) -> list[tuple[str, float]]:
        """Read one line of print in each picture; return texts with confidences.

        Pictures have mode L, confidences are 0..1; a text is empty if nothing is read.
        DocumentError OCR-FAILED if the engine fails.
        """


def read_words_again(
    words: Sequence[OcrWord], image: Image.Image, reader: SecondReader | None
) -> tuple[list[OcrWord], dict[int, str]]:
    """Read numbers, codes and units with a second engine; return words and doubts.

    ``image`` is the picture (mode L) in whose pixels the words' boxes are. A word that both engines read alike gets a
    high confidence. Where they differ, a number gets the second reading unless the first engine was sure. The doubts
    are, by the word's position, the reading that was not taken; empty if there is no second reading.
    """
    checked_words, doubts = list(words), dict[int, str]()
    groups = _group_words_to_read_again(words)
    second_readings = [("", 0.0)] * len(groups)
    if reader and groups:
        with suppress(DocumentError):  # without a second reading, the first one still counts
            second_readings = reader.read_cut_outs(
                [_cut_out(image, [words[position] for position in group]) for group in groups]
            )
    for group, (second_text, second_confidence) in zip(groups, second_readings, strict=True):
        second_words = _WORD_SEPARATORS.split(_trim(second_text))
        is_aligned = len(group) in (1, len(second_words))
        if _SEPARATORS.sub("", _trim(second_text)) == "".join(
            _SEPARATORS.sub("", _trim(words[position].text)) for position in group
        ):
            second_words = [words[position].text for position in group]
        elif not is_aligned or len(group) == 1:
            second_words = ["".join(second_words) if len(group) == 1 else second_text] * len(group)
        for position, second_word in zip(group, second_words, strict=True):
            checked_words[position], other_reading = _compare_readings(
                words[position], _trim(second_word), second_confidence, is_aligned=is_aligned
            )
            if other_reading is not None:
                doubts[position] = other_reading
        for left, right in pairwise(group):
            # Digits on both sides of a gap: a hyphen, point or slash may be lost that neither engine can see.
            if (
                words[left].text[-1].isdigit()
                and words[right].text[0].isdigit()
                and not any(_CLOCK_TIME.fullmatch(words[position].text) for position in (left, right))
            ):
                doubts |= {position: doubts.get(position, second_text) for position in (left, right)}
    doubts = {position: "" for position, word in enumerate(words) if _matches_rule("doubt", word.text, word)} | doubts
    return checked_words, dict(sorted(doubts.items()))


def _compare_readings(
    word: OcrWord, second: str, second_confidence: float, *, is_aligned: bool
) -> tuple[OcrWord, str | None]:
    """Return the word to take, and the other reading; None if there is no doubt."""
    first = _trim(word.text)
    if not second or (first == second and second_confidence < _MIN_SECOND_CONFIDENCE):
        return word, "" if word.confidence < _MIN_LONE_CONFIDENCE else None
    if first == second:
        is_confirmed = word.confidence >= _MIN_CONFIRMED_CONFIDENCE
        return word._replace(confidence=max(word.confidence, _CONFIRMED_CONFIDENCE)) if is_confirmed else word, None
    is_number = _has_digit(first) and _has_digit(second)
    if is_number and is_aligned and word.confidence < _MIN_KEPT_CONFIDENCE:
        return word._replace(text=word.text.translate(_DASHES).replace(first, second)), first
    return word, second


def _group_words_to_read_again(words: Sequence[OcrWord]) -> list[list[int]]:
    return split_into_runs(
        (position for position, word in enumerate(words) if _matches_rule("token", _trim(word.text), word)),
        lambda group, position: _are_near_numbers(words[group[-1]], words[position], position - group[-1]),
    )


def _are_near_numbers(left: OcrWord, right: OcrWord, distance: int) -> bool:
    return (
        distance == 1
        and left.line_number == right.line_number
        and _has_digit(left.text)
        and _has_digit(right.text)
        and right.x0 - left.x1 <= _MAX_GAP * max(left.y1 - left.y0, right.y1 - right.y0)
    )


def _matches_rule(kind: str, text: str, word: OcrWord) -> bool:
    return any(
        word.confidence <= max_confidence and pattern.fullmatch(text) for pattern, max_confidence in _load_rules(kind)
    )


@cache
def _load_rules(kind: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    return tuple(
        (re.compile(row["pattern"]), row["max_confidence"])
        for row in load_package_table("evalkit.documents", "second_reading.toml")[kind]
    )


def _cut_out(image: Image.Image, words: Sequence[OcrWord]) -> Image.Image:
    x0, y0 = min(word.x0 for word in words), min(word.y0 for word in words)
    x1, y1 = max(word.x1 for word in words), max(word.y1 for word in words)
    margin = round(_CUT_OUT_MARGIN * (y1 - y0))
    return image.crop(
        (max(x0 - margin, 0), max(y0 - margin, 0), min(x1 + margin, image.width), min(y1 + margin, image.height))
    )


def _trim(text: str) -> str:
    """Return a word without punctuation at its edges.

    A sign or point before a digit stays.
    """
    text = text.translate(_DASHES).rstrip(_EDGE_PUNCTUATION)
    core = text.lstrip(_EDGE_PUNCTUATION)
    edge = text[: len(text) - len(core)]
    return core if not core[:1].isdigit() else edge[len(edge.rstrip("-.")) :][-2:] + core


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))
