"""Quality of OCR: a score per scanned page, and advice (spec 002 §7.1).

An OCR engine returns words for any picture. Below ``MIN_READABLE_SCORE`` about half of the words are wrong, and a model
that reads them would invent content: such a page goes to a person, with advice.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from evalkit.documents.deskew import (
    GRAIN_THRESHOLD,
    SPECKLE_THRESHOLD,
    detect_ink_in_downscaled_image,
    measure_grain,
    measure_speckle,
)

#: A page with a lower score is not readable: about half of its words are wrong.
MIN_READABLE_SCORE = 0.5

#: Mean confidence of an engine whose words were all right, and all wrong; measured by ``benchmarks.fax`` with tesseract's
#: most exact model: 62 for 0.65 of the words, 77 for 0.90, 93 for 0.96.
_CONFIDENCE_ALL_RIGHT, _CONFIDENCE_ALL_WRONG = 92.0, 20.0
#: The score falls in proportion if a smaller share of the letters is in plausible words, or a smaller share of the ink
#: is inside words. Of 102 printed pages with logos, stamps and rules, the lowest share of ink inside words was 0.68.
_MIN_PLAUSIBLE_SHARE, _MIN_COVERED_SHARE = 0.8, 0.65
#: Connected ink longer than this (pixels of the small copy) is a border, not print, if it fills a smaller share of its
#: rectangle than the first number, and words fill a larger share than the second.
_MIN_BORDER_LENGTH, _MAX_BORDER_FILL, _MIN_WORD_SHARE = 200, 0.2, 0.03
#: A page with this score or a higher one is read well, and its picture needs no advice.
GOOD_SCORE = 0.75

_EDGE_PUNCTUATION = " .,;:!?\"'()[]{}<>«»“”‘’*_|/\\-–—=+&%#$°^~`"
_JOINING_PUNCTUATION = re.compile(r"[-–—/.:,;_@&+()=]+")
_PLAUSIBLE_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        # Words: all small, all capitals or one capital first; longer than an abbreviation only with a vowel.
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


class OcrWord(NamedTuple):
    """A word that OCR recognised, with its box in pixels, x to the right, y downwards."""

    text: str
    x0: int
    y0: int
    x1: int
    y1: int
    confidence: int
    """The engine's confidence that the word is right, 0..100."""
    line_number: int
    """Number of the line; words of one line have the same number and follow one another."""


@dataclass(frozen=True)
class PageQuality:
    """Quality of a page's recognition by OCR, with advice if it is poor."""

    score: float
    """About the share (0..1) of the page's words that are right."""
    is_readable: bool
    problems: tuple[str, ...]
    """Sentences for a clinician: faults of the picture, each with advice. Empty if the page is read well."""


def assess_ocr_quality(words: Sequence[OcrWord], grey_image: Image.Image, dpi: int) -> PageQuality:
    """Score the words that OCR recognised in a picture, and describe its faults.

    The picture is of mode L, drawn at ``dpi``; the boxes of ``words`` are in its pixels. A picture without words scores
    0, even if it is blank: check with ``deskew.is_blank_image`` before.
    """
    covered_ink_share = _measure_ink_share_in_words(words, grey_image)
    score = _compute_score(words, covered_ink_share)
    problems: tuple[str, ...] = ()
    if score < GOOD_SCORE:
        problems = _describe_quality_problems(words, grey_image, dpi, covered_ink_share)
        if not problems and score < MIN_READABLE_SCORE:
            problems = (
                "few words could be recognised: scan the original at 300 dpi; if it is handwriting, type what matters",
            )
    return PageQuality(score, score >= MIN_READABLE_SCORE, problems)


def compute_mean_confidence(words: Sequence[OcrWord]) -> float:
    """Return the words' mean confidence, 0..100, weighted by length; 0 without words."""
    letter_count = sum(len(word.text) for word in words)
    return sum(word.confidence * len(word.text) for word in words) / letter_count if letter_count else 0.0


def measure_recognised_text(words: Sequence[OcrWord]) -> int:
    """Sum the lengths of plausible words, weighted by confidence (0..100)."""
    return sum(word.confidence * len(word.text) for word in words if is_plausible_token(word.text))


def is_plausible_token(token: str) -> bool:
    """Return True if a token looks like a word, number or code, not like noise.

    >>> [is_plausible_token(token) for token in ("carcinoma,", "(HER2)", "3.2x1.5", "c.68_69delAG", "wWlkjJ", "|~", "hsqrtzkw")]
    [True, True, True, True, False, False, False]
    """
    trimmed_token = token.strip(_EDGE_PUNCTUATION)
    parts = (
        [trimmed_token]
        if _is_plausible_part(trimmed_token)
        else [part for part in _JOINING_PUNCTUATION.split(trimmed_token) if part]
    )
    return bool(parts) and all(_is_plausible_part(part) for part in parts)


def _is_plausible_part(part: str) -> bool:
    return any(pattern.fullmatch(part) for pattern in _PLAUSIBLE_PATTERNS)


def _compute_score(words: Sequence[OcrWord], covered_ink_share: float) -> float:
    letter_count = sum(len(word.text) for word in words)
    if not letter_count:
        return 0.0
    confidence_score = (compute_mean_confidence(words) - _CONFIDENCE_ALL_WRONG) / (
        _CONFIDENCE_ALL_RIGHT - _CONFIDENCE_ALL_WRONG
    )
    plausible_share = sum(len(word.text) for word in words if is_plausible_token(word.text)) / letter_count
    score = (
        confidence_score
        * min(plausible_share / _MIN_PLAUSIBLE_SHARE, 1)
        * min(covered_ink_share / _MIN_COVERED_SHARE, 1)
    )
    return round(min(max(score, 0.0), 1.0), 2)


def _measure_ink_share_in_words(words: Sequence[OcrWord], grey: Image.Image) -> float:
    """Return the share (0..1) of the page's ink that is inside the boxes of words.

    The share shows print that the engine missed, which no confidence does.
    """
    ink_mask = detect_ink_in_downscaled_image(grey)
    word_mask = np.zeros_like(ink_mask)
    y_scale, x_scale = ink_mask.shape[0] / grey.height, ink_mask.shape[1] / grey.width
    for word in words:
        word_mask[
            int(word.y0 * y_scale) : int(word.y1 * y_scale) + 2, int(word.x0 * x_scale) : int(word.x1 * x_scale) + 2
        ] = True
    ink_mask = _remove_borders(ink_mask, word_mask)
    return int((ink_mask & word_mask).sum()) / int(ink_mask.sum()) if ink_mask.any() else 1.0


def _remove_borders(ink_mask: NDArray[np.bool_], word_mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask without borders of boxes around words and photographed sheets."""
    labels, _ = ndimage.label(ink_mask, np.ones((3, 3)))
    ink_counts = np.bincount(labels.ravel())
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), 1):
        height, width = rows.stop - rows.start, columns.stop - columns.start
        has_words = word_mask[rows, columns].mean() > _MIN_WORD_SHARE
        if (
            max(height, width) > _MIN_BORDER_LENGTH
            and ink_counts[number] < _MAX_BORDER_FILL * height * width
            and has_words
        ):
            ink_counts[number] = 0
    is_kept = ink_counts > 0
    is_kept[0] = False
    kept_mask: NDArray[np.bool_] = is_kept[labels]
    return kept_mask


def _describe_quality_problems(
    words: Sequence[OcrWord], grey: Image.Image, dpi: int, covered_ink_share: float
) -> tuple[str, ...]:
    """Describe faults of a page's picture with advice: first the page, then its print.

    The limits are from 115 clean pages: edges of the print bridged at least 0.3 of the contrast from one pixel to the
    next, and words were at least 16 pixels high.
    """
    grey_levels = np.asarray(grey, dtype=np.int16)
    paper_level = float(np.percentile(grey_levels, 80))
    print_levels = grey_levels[grey_levels < paper_level - 10]
    contrast = paper_level - float(np.percentile(print_levels, 5)) if print_levels.size else 0.0
    is_speckled = measure_grain(grey) > GRAIN_THRESHOLD or measure_speckle(grey) > SPECKLE_THRESHOLD
    problems = {
        "the page is very dark: scan it again, lighter": paper_level < 110,
        "the print is very pale: scan it again, darker": paper_level >= 110 and contrast < 60,
        "the page is full of specks: scan the original rather than a copy or a fax": is_speckled,
        "the page is blurred or was scanned too coarsely: scan it again at 300 dpi, flat on the glass": (
            _measure_sharpness(grey_levels, contrast) < 0.2
        ),
        "no words could be recognised: if it is a photograph or handwriting, type what matters; "
        "if it is print, scan it again at 300 dpi": not words,
        "the print is too small: scan it again at 300 dpi": (
            bool(words) and median(word.y1 - word.y0 for word in words) * 200 / dpi < 12
        ),
        "much of the page is not print: if it is handwriting or a picture, type what matters": (
            bool(words) and covered_ink_share < _MIN_COVERED_SHARE
        ),
    }
    return tuple(problem for problem, is_present in problems.items() if is_present)


def _measure_sharpness(grey_levels: NDArray[np.int16], contrast: float) -> float:
    """Return the share (0..1) of the contrast that steep edges bridge in one pixel.

    ``contrast`` is the difference between paper and print in grey levels.
    """
    level_steps = np.abs(np.diff(grey_levels, axis=1))
    edge_steps = level_steps[level_steps > 0.05 * contrast]
    return float(np.percentile(edge_steps, 90)) / max(contrast, 1.0) if edge_steps.size else 0.0
