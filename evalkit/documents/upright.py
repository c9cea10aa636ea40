"""Making a scanned page fit to be recognised: clean, level and upright, and the way back to the page as it came.

A scan stands turned by quarter turns and tilted by a few degrees. The tilt is found without reading a word: where
lines of print run level, the rows of the picture are either full of ink or empty, and no other angle makes them differ
as much (the projection profile; W. Postl, US patent 4723297, 1988). The search costs less than a tenth of what
recognising the page costs. Which way is up cannot be seen in a profile; ``ocr`` asks the engine.

Grain, specks, a shadow or pale print that a person hardly minds leave tesseract without a single word: smoothed, with
its paper made even, such a page is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from evalkit.documents.bundle import Box

#: Degrees to either side within which a tilt is sought: beyond it a sheet lies on the glass on purpose.
MAX_TILT = 12.0
#: Less than this costs no words, and turning the picture would blur it.
_LEVEL_ENOUGH = 0.15
#: The longer side of the picture that ink is sought in, pixels: about 100 dpi of a letter page.
_SMALL = 1100
#: The finest angles are tried last, around the best of the coarser ones: (degrees to either side, step).
_STEPS = ((MAX_TILT, 0.5), (0.5, 0.1), (0.1, 0.02))
#: A page of print has a sharp best angle; a photograph's is hardly better than its others.
_SHARP_PEAK = 1.5
#: So many dots of ink show the tilt as well as all of them.
_ENOUGH_INK = 80_000
#: With fewer dots, or in a strip of so few pixels, nothing can be seen.
_LITTLE_INK, _NARROW = 50, 40
#: Ink is darker than what surrounds it by this much of what the darkest print is, and by so many of 255 levels.
_INK_SHARE, _INK_LEVELS = 0.4, 8
#: How many standard deviations of a page's noise are no noise any more: of a million pixels less than one is.
_BEYOND_NOISE = 5
_NOISIEST = 60
#: Dots of the small picture that dust makes; a letter of 10 points makes twenty to forty.
_DUST = 15
#: Half the side of what "surrounds" means, in pixels of the small picture: a few lines of print.
_AROUND = 12

#: Where grain and specks are looked for: so many pixels a side in the page's middle.
_SAMPLE = 1000
#: How the paper's own shade is found: in a picture so much smaller, the median of a window wider than bold print.
_PAPER_SCALE, _PAPER_WINDOW = 8, 15
#: Paper is even where its darkest part is so much of its lightest; print is faint with so few of 255 levels.
_EVEN, _FAINT = 0.8, 100
#: Standard deviation of the grain, of 255 levels, from which smoothing gains more words than it costs.
GRAINY = 15.0
#: Share of pixels that differ from all their neighbours by so many levels. In clean print there are none.
SPECKLED, _SPECK_LEVELS = 0.002, 60

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Back:
    """From the upright picture back to the picture as it came."""

    width: int
    """Pixels of the picture as it came."""
    height: int
    upright_width: int
    """Pixels of the upright picture."""
    upright_height: int
    degrees: float
    """By how much the picture as it came stands turned clockwise, turn and tilt together."""

    def box(self, x0: float, y0: float, x1: float, y1: float) -> Box:
        """Pixels of the upright picture as fractions 0..1 of the picture as it came.

        The box goes through the middles of the tilted word's four sides. The hull of its corners would be a long
        word's height too high already at a few degrees, and light the lines above and below.
        """
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        middles = [self._point(*middle) for middle in ((x0, y), (x1, y), (x, y0), (x, y1))]
        across, down = [point[0] / self.width for point in middles], [point[1] / self.height for point in middles]
        return _within(min(across)), _within(min(down)), _within(max(across)), _within(max(down))

    def _point(self, x: float, y: float) -> tuple[float, float]:
        # The picture was turned about its middle, which is the middle of both.
        x, y = x - self.upright_width / 2, y - self.upright_height / 2
        cosine, sine = math.cos(math.radians(self.degrees)), math.sin(math.radians(self.degrees))
        return x * cosine - y * sine + self.width / 2, x * sine + y * cosine + self.height / 2


@dataclass(frozen=True)
class Upright:
    """A picture, brought upright."""

    image: Image.Image
    """Grey (mode L)."""
    turn: int
    """Quarter turns clockwise, 0..3, by which the picture stood turned."""
    angle: float
    """Degrees clockwise by which it was tilted besides, -12..12."""
    back: Back


def upright(image: Image.Image, turn: int = 0, angle: float | None = None) -> Upright:
    """The picture, brought upright.

    ``turn`` is how many quarter turns clockwise it stands turned (only reading can tell, see ``ocr``); ``angle`` is its
    tilt in degrees clockwise and is found where it is None. Does not raise for any picture that is loaded.
    """
    grey = image.convert("L")
    angle = tilt(grey) if angle is None else angle
    level = grey
    if angle:
        paper = int(np.percentile(np.asarray(_small(grey)), 80))
        level = grey.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=paper)
    turn %= 4
    if turn:
        level = level.rotate(90 * turn, expand=True)  # exact: PIL moves pixels for quarter turns
    back = Back(*image.size, *level.size, 90 * turn + angle)
    return Upright(level, turn, angle, back)


def cleaned(grey: Image.Image) -> Image.Image:
    """The picture (mode L), smoothed where it is full of specks or grain; the same picture where it is not."""
    is_grainy, is_speckled = grain(grey) > GRAINY, specks(grey) > SPECKLED
    if is_speckled:
        grey = grey.filter(ImageFilter.MedianFilter(3))
    if is_grainy:
        grey = grey.filter(ImageFilter.GaussianBlur(1.0 if is_speckled else 1.5))
    return grey


def flattened(grey: Image.Image) -> Image.Image | None:
    """The picture (mode L) with its paper made evenly white and its print black; None where it is so already.

    White print on dark is lost, so it is for pages that could not be read as they are.
    """
    small = grey.reduce(_PAPER_SCALE).filter(ImageFilter.MedianFilter(_PAPER_WINDOW)).filter(ImageFilter.BoxBlur(8))
    dark, light = np.percentile(np.asarray(small), (5, 95))
    paper = np.asarray(small.resize(grey.size, Image.Resampling.BILINEAR), dtype=np.float32)
    darker = 1 - np.asarray(grey, dtype=np.float32) / np.maximum(paper, 1)
    print_ = float(np.percentile(darker, 99.5))
    if dark > _EVEN * light and print_ * light > _FAINT:
        return None
    return Image.fromarray((255 * (1 - np.clip(darker / max(print_, 0.02), 0, 1))).astype(np.uint8))


def grain(grey: Image.Image) -> float:
    """The standard deviation of the noise on the paper, of 255 levels, in the middle of the picture (mode L).

    After J. Immerkaer, Fast Noise Variance Estimation (1996), with the median so that print does not count.
    """
    levels = np.asarray(_middle(grey), dtype=np.float32)
    if min(levels.shape) < 3:
        return 0.0
    rows = levels[:-2] - 2 * levels[1:-1] + levels[2:]
    second = rows[:, :-2] - 2 * rows[:, 1:-1] + rows[:, 2:]
    # The mask's weights have a root of squares of 6; 0.6745 makes a standard deviation of a median.
    return float(np.median(np.abs(second))) / 6 / 0.6745


def specks(grey: Image.Image) -> float:
    """The share of single pixels that are much lighter or darker than all around them, in the middle (mode L)."""
    middle = _middle(grey)
    levels = np.asarray(middle, dtype=np.int16)
    # Of nine pixels the second darkest: where it is not the middle one itself, the middle one is the darkest.
    darkest, lightest = (np.asarray(middle.filter(ImageFilter.RankFilter(3, rank)), np.int16) for rank in (1, 7))
    lone = (darkest - levels > _SPECK_LEVELS) | (levels - lightest > _SPECK_LEVELS)
    return float(lone.mean()) if lone.size else 0.0


def _middle(grey: Image.Image) -> Image.Image:
    x, y = max(grey.width - _SAMPLE, 0) // 2, max(grey.height - _SAMPLE, 0) // 2
    return grey.crop((x, y, min(x + _SAMPLE, grey.width), min(y + _SAMPLE, grey.height)))


def tilt(grey: Image.Image) -> float:
    """Degrees clockwise, -12..12, by which the lines of print are tilted; 0 where that is little or cannot be seen.

    ``grey`` is mode L and may stand turned by quarter turns: lines that run upwards show their tilt as well.
    """
    found = ink(grey)
    y, x = np.nonzero(found)
    if len(y) < _LITTLE_INK or min(found.shape) < _NARROW:
        return 0.0
    step = -(-len(y) // _ENOUGH_INK)
    y, x = y[::step].astype(np.float64), x[::step].astype(np.float64)
    best = max((_peak(y, -x), _peak(x, y)), key=lambda peak: peak[1])[0]
    return best if abs(best) >= _LEVEL_ENOUGH else 0.0


def ink(grey: Image.Image) -> Mask:
    """Where the picture (mode L) holds print, in a picture made smaller: rows by columns, True for ink.

    Ink is what is darker than its surroundings, so that neither grey paper nor a shadow counts.
    """
    darker = _darker(grey)
    darkest = float(np.percentile(darker, 99.5)) if darker.size else 0.0
    # An almost empty page's few words are rarer than that.
    darkest = max(darkest, 0.5 * float(darker.max(initial=0)))
    found: Mask = darker > max(_INK_SHARE * darkest, _INK_LEVELS)
    return found


def is_blank(grey: Image.Image) -> bool:
    """Whether nothing is on the picture (mode L) but paper, its noise and dust."""
    darker = _darker(grey)
    noise = float(np.median(np.abs(darker))) / 0.6745 if darker.size else 0.0
    # Where print covers half of the page, the median is print: paper is never that noisy.
    return int((darker > max(min(_BEYOND_NOISE * noise, _NOISIEST), _INK_LEVELS)).sum()) <= _DUST


def _darker(grey: Image.Image) -> NDArray[np.int16]:
    """By how many levels each pixel of the small picture is darker than what surrounds it."""
    small = _small(grey)
    around = np.asarray(small.filter(ImageFilter.BoxBlur(_AROUND)), dtype=np.int16)
    return around - np.asarray(small, dtype=np.int16)


def _small(grey: Image.Image) -> Image.Image:
    return grey.reduce(max(round(max(grey.size) / _SMALL), 1))


def _peak(along: NDArray[Any], across: NDArray[Any]) -> tuple[float, float]:
    """The angle at which the profile of ``along`` is sharpest, and how much sharper it is than at most angles."""
    centre, usual, best = 0.0, 0.0, 0.0
    for reach, step in _STEPS:
        angles = np.arange(-reach, reach + step / 2, step) + centre
        sharpness = [_sharpness(along + across * math.tan(math.radians(angle))) for angle in angles]
        best = max(sharpness)
        centre = float(angles[sharpness.index(best)])
        usual = usual or float(np.median(sharpness))
    is_sharp = best > _SHARP_PEAK * usual
    return (round(centre, 2) if is_sharp else 0.0), (best if is_sharp else 0.0)


def _sharpness(position: NDArray[Any]) -> float:
    rows = np.bincount((position - position.min()).astype(np.intp))
    return float(np.square(np.diff(rows)).sum())


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)
