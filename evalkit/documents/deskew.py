"""Deskew, denoising and rotation of scans for OCR, and the way back to the scan.

A scan may be rotated by quarter turns and skewed by a few degrees. The skew is found without reading a word: if lines
of print are level, the rows of the picture are either full of ink or empty, and no other angle makes them differ as
much (the projection profile; W. Postl, US patent 4723297, 1988). The search takes less than a tenth of the time of OCR.
A profile does not show which way is up; ``ocr`` asks the engine.

With grain, specks, a shadow or pale print that a person hardly notices, tesseract may recognise no word at all. After
smoothing, and with even paper, it reads such a page.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from scipy import ndimage

from evalkit.documents.bundle import Box

#: Skew is searched up to this many degrees to either side; a sheet that is turned further was laid so on purpose.
MAX_SKEW_DEGREES = 12.0
#: A smaller skew (degrees) is not corrected: OCR loses no words by it, and rotating would blur the picture.
_MIN_SKEW_DEGREES = 0.15
#: Longer side (pixels) of the small copy in which ink is searched: a letter page at about 100 dpi.
_SMALL_SIDE = 1100
#: Steps of the search for the skew: degrees to either side of the best angle so far, and the distance between angles.
_SEARCH_STEPS = ((MAX_SKEW_DEGREES, 0.5), (0.5, 0.1), (0.1, 0.02))
#: The best angle counts if its profile is this many times as sharp as the median: so it is for print, not for
#: photographs.
_MIN_PEAK_RATIO = 1.5
#: The most ink pixels that are used; so many show the skew as well as all of them.
_MAX_INK_SAMPLES = 80_000
#: With fewer ink pixels, or a shorter side of the picture, no skew can be detected.
_MIN_INK_PIXELS, _MIN_SIDE_PIXELS = 50, 40
#: A pixel is ink if it is darker than its surroundings by this share of the darkest print's difference, and by this
#: many of 255 grey levels.
_MIN_INK_SHARE, _MIN_INK_LEVELS = 0.4, 8
#: A pixel that deviates by more standard deviations is not noise: less than one noise pixel in a million does.
_NOISE_DEVIATIONS = 5
_MAX_NOISE_LEVEL = 60
#: The most dark pixels of the small copy that dust makes; one letter of 10 points makes twenty to forty.
_MAX_DUST_PIXELS = 15
#: Half the side of a pixel's surroundings, in pixels of the small copy: a few lines of print.
_SURROUND_RADIUS = 12

#: Grain and specks are measured in a square with this side (pixels) in the middle of the page.
_SAMPLE_SIDE = 1000
#: The paper's shade is measured in a copy reduced by this factor, as the median of a window wider than bold print.
_PAPER_SCALE, _PAPER_WINDOW = 8, 15
#: Paper is even if its darkest part has at least this share of the brightness of its lightest part; print is faint if
#: it is darker than the paper by at most this many of 255 grey levels.
_EVEN_PAPER_RATIO, _FAINT_PRINT_LEVELS = 0.8, 100
#: Standard deviation of the grain (of 255 grey levels) above which smoothing gains more words than it loses.
GRAIN_THRESHOLD = 15.0
#: A picture is speckled if a larger share of its pixels differs from all neighbours by more than this many grey levels;
#: in clean print no pixel does.
SPECKLE_THRESHOLD, _SPECK_LEVELS = 0.002, 60

#: Resolution (dpi) at which a fax is recognised, and the smoothing (pixels) that rounds the stairs of its letters.
#: Measured by ``benchmarks.fax``: number recall 0.89 instead of 0.73 as drawn at 200 dpi, and the same at 300 dpi.
FAX_OCR_DPI, _FAX_SMOOTHING = 250, 1.2
#: Dark spots of fewer pixels, in a fax of equal resolution both ways, are specks if no other ink is within this many
#: pixels: a decimal point is near its digits.
_MIN_PRINT_PIXELS, _SPECK_DISTANCE = 5, 5

InkMask = NDArray[np.bool_]


@dataclass(frozen=True)
class DeskewedImage:
    """An upright and level copy of a picture, with the rotation that was undone."""

    image: Image.Image
    """The upright picture, grey (mode L)."""
    clockwise_quarter_turns: int
    """Quarter turns clockwise, 0..3, by which the original picture was rotated."""
    clockwise_skew_degrees: float
    """Degrees clockwise, -12..12, by which the original picture was skewed in addition."""
    source_size: tuple[int, int]
    """Width and height of the original picture, in pixels."""

    def map_to_source_box(self, x0: float, y0: float, x1: float, y1: float) -> Box:
        """Map a word's box from upright pixels to fractions 0..1 of the original picture.

        The box returned goes through the middles of the skewed word's four sides. A box around its corners would be far
        too high for a long word with a few degrees of skew, and would highlight the lines above and below.
        """
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        side_middles = [self._map_to_source_point(*middle) for middle in ((x0, y), (x1, y), (x, y0), (x, y1))]
        x_shares, y_shares = (
            [min(max(point[axis] / self.source_size[axis], 0.0), 1.0) for point in side_middles] for axis in (0, 1)
        )
        return min(x_shares), min(y_shares), max(x_shares), max(y_shares)

    def _map_to_source_point(self, x: float, y: float) -> tuple[float, float]:
        # The picture was rotated about its middle, so both pictures have the same middle.
        x, y = x - self.image.width / 2, y - self.image.height / 2
        rotation = math.radians(90 * self.clockwise_quarter_turns + self.clockwise_skew_degrees)
        cosine, sine = math.cos(rotation), math.sin(rotation)
        source_width, source_height = self.source_size
        return x * cosine - y * sine + source_width / 2, x * sine + y * cosine + source_height / 2


def straighten_image(
    image: Image.Image, clockwise_quarter_turns: int = 0, clockwise_skew_degrees: float | None = None
) -> DeskewedImage:
    """Return a picture with its rotation and skew undone, in grey.

    ``clockwise_quarter_turns`` are the quarter turns clockwise by which the picture is rotated, which only OCR can tell
    (see ``ocr``). ``clockwise_skew_degrees`` is its skew in degrees clockwise; measured if None. Raises no error for a
    picture that is loaded.
    """
    grey = image.convert("L")
    clockwise_skew_degrees = (
        detect_clockwise_skew_degrees(grey) if clockwise_skew_degrees is None else clockwise_skew_degrees
    )
    level_image = grey
    if clockwise_skew_degrees:
        paper_level = int(np.percentile(np.asarray(_downscale(grey)), 80))
        level_image = grey.rotate(clockwise_skew_degrees, Image.Resampling.BICUBIC, expand=True, fillcolor=paper_level)
    clockwise_quarter_turns %= 4
    if clockwise_quarter_turns:
        level_image = level_image.rotate(
            90 * clockwise_quarter_turns, expand=True
        )  # without loss: PIL only moves pixels for quarter turns
    return DeskewedImage(level_image, clockwise_quarter_turns, clockwise_skew_degrees, image.size)


def denoise_image(grey: Image.Image) -> Image.Image:
    """Return a picture (mode L) smoothed if it is full of specks or grain.

    Otherwise the picture itself is returned.
    """
    is_grainy, is_speckled = measure_grain(grey) > GRAIN_THRESHOLD, measure_speckle(grey) > SPECKLE_THRESHOLD
    if is_speckled:
        grey = grey.filter(ImageFilter.MedianFilter(3))
    if is_grainy:
        grey = grey.filter(ImageFilter.GaussianBlur(1.0 if is_speckled else 1.5))
    return grey


def restore_fax(fax: Image.Image, x_dpi: float, y_dpi: float) -> Image.Image:
    """Return a fax (mode L) without specks, smoothed, and with square pixels.

    ``x_dpi`` and ``y_dpi`` are its resolutions across and down, which differ by half in a standard fax; the result has
    ``FAX_OCR_DPI`` both ways.
    """
    levels = np.asarray(fax)
    labels, _ = ndimage.label(levels < 128, np.ones((3, 3)))
    is_print = np.bincount(labels.ravel()) >= round(_MIN_PRINT_PIXELS * y_dpi / x_dpi)
    is_print[0] = False
    window = (2 * max(round(_SPECK_DISTANCE * y_dpi / x_dpi), 1) + 1, 2 * _SPECK_DISTANCE + 1)
    is_print[labels[ndimage.maximum_filter(is_print[labels], window)]] = True
    is_print[0] = True
    cleaned = Image.fromarray(np.where(is_print[labels], levels, 255).astype(np.uint8))
    size = round(fax.width * FAX_OCR_DPI / x_dpi), round(fax.height * FAX_OCR_DPI / y_dpi)
    return cleaned.resize(size, Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(_FAX_SMOOTHING))


def whiten_background_if_uneven(grey: Image.Image) -> Image.Image | None:
    """Return a picture (mode L) with white paper and black print; None if not needed.

    It is needed if the paper is uneven or the print faint. White print on dark is lost, so that callers try this only on
    pages that could not be read before.
    """
    background = (
        grey.reduce(_PAPER_SCALE).filter(ImageFilter.MedianFilter(_PAPER_WINDOW)).filter(ImageFilter.BoxBlur(8))
    )
    dark_level, light_level = np.percentile(np.asarray(background), (5, 95))
    paper_levels = np.asarray(background.resize(grey.size, Image.Resampling.BILINEAR), dtype=np.float32)
    darkness = 1 - np.asarray(grey, dtype=np.float32) / np.maximum(paper_levels, 1)
    print_darkness = float(np.percentile(darkness, 99.5))
    if dark_level > _EVEN_PAPER_RATIO * light_level and print_darkness * light_level > _FAINT_PRINT_LEVELS:
        return None
    return Image.fromarray((255 * (1 - np.clip(darkness / max(print_darkness, 0.02), 0, 1))).astype(np.uint8))


def measure_grain(grey: Image.Image) -> float:
    """Return the noise of the paper, as standard deviation in grey levels (of 255).

    Measured in the middle of a picture of mode L. After J. Immerkaer, Fast Noise Variance Estimation (1996), but with the
    median instead of the mean, so that print does not count.
    """
    levels = np.asarray(_crop_centre(grey), dtype=np.float32)
    if min(levels.shape) < 3:
        return 0.0
    second_differences = np.diff(np.diff(levels, 2, axis=0), 2, axis=1)
    # The root of the sum of the mask's squared weights is 6; a median divided by 0.6745 is a standard deviation.
    return float(np.median(np.abs(second_differences))) / 6 / 0.6745


def measure_speckle(grey: Image.Image) -> float:
    """Return the share (0..1) of specks: pixels unlike all of their neighbours.

    Measured in the middle of a picture of mode L.
    """
    centre = _crop_centre(grey)
    levels = np.asarray(centre, dtype=np.int16)
    # A pixel is a speck if it is much darker than the second darkest of its nine (itself and its neighbours), or much
    # lighter than the second lightest.
    darkest, lightest = (np.asarray(centre.filter(ImageFilter.RankFilter(3, rank)), np.int16) for rank in (1, 7))
    lone_pixels = (darkest - levels > _SPECK_LEVELS) | (levels - lightest > _SPECK_LEVELS)
    return float(lone_pixels.mean()) if lone_pixels.size else 0.0


def _crop_centre(grey: Image.Image) -> Image.Image:
    x, y = max(grey.width - _SAMPLE_SIDE, 0) // 2, max(grey.height - _SAMPLE_SIDE, 0) // 2
    return grey.crop((x, y, min(x + _SAMPLE_SIDE, grey.width), min(y + _SAMPLE_SIDE, grey.height)))


def detect_clockwise_skew_degrees(grey: Image.Image) -> float:
    """Return the skew of the lines of print in degrees clockwise, -12..12.

    0 if the skew is very small or cannot be detected. ``grey`` is of mode L and may be rotated by quarter turns, because
    vertical lines of print show their skew, too.
    """
    ink_mask = detect_ink_in_downscaled_image(grey)
    y, x = np.nonzero(ink_mask)
    if len(y) < _MIN_INK_PIXELS or min(ink_mask.shape) < _MIN_SIDE_PIXELS:
        return 0.0
    stride = -(-len(y) // _MAX_INK_SAMPLES)
    y, x = y[::stride].astype(np.float64), x[::stride].astype(np.float64)
    best_angle = max((_find_sharpest_skew_angle(y, -x), _find_sharpest_skew_angle(x, y)), key=lambda peak: peak[1])[0]
    return best_angle if abs(best_angle) >= _MIN_SKEW_DEGREES else 0.0


def detect_ink_in_downscaled_image(grey: Image.Image) -> InkMask:
    """Return a mask of a small copy of the picture, rows by columns: True for ink.

    The picture is of mode L. Ink is darker than its surroundings, so that neither grey paper nor a shadow counts.
    """
    darkness = _measure_local_darkness(grey)
    darkest = float(np.percentile(darkness, 99.5)) if darkness.size else 0.0
    # On an almost empty page, less than 0.5 % of the pixels are print, so that the percentile misses it.
    darkest = max(darkest, 0.5 * float(darkness.max(initial=0)))
    ink_mask: InkMask = darkness > max(_MIN_INK_SHARE * darkest, _MIN_INK_LEVELS)
    return ink_mask


def is_blank_image(grey: Image.Image) -> bool:
    """Return True if a picture (mode L) shows only paper, noise and dust."""
    darkness = _measure_local_darkness(grey)
    noise = float(np.median(np.abs(darkness))) / 0.6745 if darkness.size else 0.0
    # The noise is limited, because on a page half covered with print the median measures print, not noise.
    return (
        int((darkness > max(min(_NOISE_DEVIATIONS * noise, _MAX_NOISE_LEVEL), _MIN_INK_LEVELS)).sum())
        <= _MAX_DUST_PIXELS
    )


def _measure_local_darkness(grey: Image.Image) -> NDArray[np.int16]:
    small = _downscale(grey)
    surroundings = np.asarray(small.filter(ImageFilter.BoxBlur(_SURROUND_RADIUS)), dtype=np.int16)
    return surroundings - np.asarray(small, dtype=np.int16)


def _downscale(grey: Image.Image) -> Image.Image:
    return grey.reduce(max(round(max(grey.size) / _SMALL_SIDE), 1))


def _find_sharpest_skew_angle(coordinates: NDArray[Any], cross_coordinates: NDArray[Any]) -> tuple[float, float]:
    """Return the angle (degrees) with the sharpest profile, and its sharpness.

    Both are 0 if no angle is much sharper than the others.
    """
    best_angle, usual_sharpness, best_sharpness = 0.0, 0.0, 0.0
    for reach, step in _SEARCH_STEPS:
        angles = np.arange(-reach, reach + step / 2, step) + best_angle
        angle_sharpness = [
            _measure_profile_sharpness(coordinates + cross_coordinates * math.tan(math.radians(angle)))
            for angle in angles
        ]
        best_sharpness = max(angle_sharpness)
        best_angle = float(angles[angle_sharpness.index(best_sharpness)])
        usual_sharpness = usual_sharpness or float(np.median(angle_sharpness))
    is_sharp = best_sharpness > _MIN_PEAK_RATIO * usual_sharpness
    return (round(best_angle, 2) if is_sharp else 0.0), (best_sharpness if is_sharp else 0.0)


def _measure_profile_sharpness(positions: NDArray[Any]) -> float:
    row_counts = np.bincount((positions - positions.min()).astype(np.intp))
    return float(np.square(np.diff(row_counts)).sum())
