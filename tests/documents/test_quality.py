from __future__ import annotations

import shutil

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from evalkit.documents.ocr import recognise_page_image, resolve_ocr_engine
from evalkit.documents.quality import (
    MIN_READABLE_SCORE,
    OcrWord,
    assess_ocr_quality,
    compute_mean_confidence,
    is_plausible_token,
)

TEXT = [
    "The specimen was received fresh in the department and was fixed",
    "overnight before it was cut. Sections show an invasive tumour of",
    "the left breast with pushing margins, 3.2 x 1.5 cm, and a brisk",
    "infiltrate of lymphocytes around it. No vessel is seen to be",
]


def page(ink: int = 0, paper: int = 255, size: int = 30) -> tuple[Image.Image, list[OcrWord]]:
    """A page and its words, recognised without a doubt."""
    image = Image.new("L", (1400, 500), paper)
    draw = ImageDraw.Draw(image)
    font = ImageFont.truetype("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", size)
    words = []
    for number, line in enumerate(TEXT):
        x, y = 100.0, 100 + number * 2 * size
        for text in line.split():
            draw.text((x, y), text, ink, font)
            words.append(OcrWord(text, *(round(side) for side in draw.textbbox((x, y), text, font)), 96, number))
            x += draw.textlength(text + " ", font)
    return image, words


def unsure(words: list[OcrWord], confidence: int = 20) -> list[OcrWord]:
    return [word._replace(confidence=confidence) for word in words]


@pytest.mark.parametrize(
    "token",
    [
        "carcinoma,",
        "Lindqvist",
        "HER2",
        "BRCA1",
        "pT2N0",
        "c.5266dupC",
        "p.Arg175His",
        "3.2",
        "08/25/1983",
        "10mg",
        "I",
        "Dr.",
    ],
)
def test_what_reports_print_is_plausible(token):
    assert is_plausible_token(token)


@pytest.mark.parametrize("token", ["|", "~~", "wWlkjJ", "hsqrtzkw", "—", "a¢b", "rlnLTvk", "§°"])
def test_what_smudges_are_taken_for_is_not(token):
    assert not is_plausible_token(token)


def test_sureness_counts_letters():
    assert compute_mean_confidence([OcrWord("a", 0, 0, 1, 1, 0, 0), OcrWord("abc", 0, 0, 1, 1, 100, 0)]) == 75
    assert compute_mean_confidence([]) == 0


def test_confidently_read_page_has_no_problems():
    image, words = page()
    quality = assess_ocr_quality(words, image, 200)
    assert quality.score >= 0.95
    assert quality.is_readable
    assert quality.problems == ()


def test_score_falls_with_confidence_around_the_threshold():
    image, words = page()
    scores = [assess_ocr_quality(unsure(words, confidence), image, 200).score for confidence in (95, 80, 60, 40, 20)]
    assert scores == sorted(scores, reverse=True)
    assert abs(assess_ocr_quality(unsure(words, 56), image, 200).score - MIN_READABLE_SCORE) < 0.05
    assert scores[-1] == 0


def test_nonsense_is_worth_less_than_words():
    image, words = page()
    nonsense = [word._replace(text="rlnLTvk") for word in words]
    assert assess_ocr_quality(nonsense, image, 200).score == 0


def test_words_that_the_engine_passed_over_count():
    image, words = page()
    assert not assess_ocr_quality(words[: len(words) // 4], image, 200).is_readable


def test_a_page_without_words_says_what_would_help():
    image, _ = page()
    quality = assess_ocr_quality([], image, 200)
    assert (quality.score, quality.is_readable) == (0, False)
    assert (
        "no words could be recognised: if it is a photograph or handwriting, type what matters" in quality.problems[0]
    )


@pytest.mark.parametrize(
    ("image", "size", "said"),
    [
        (page(ink=0, paper=70)[0], 30, "the page is very dark: scan it again, lighter"),
        (page(ink=215, paper=250)[0], 30, "the print is very pale: scan it again, darker"),
        (page()[0].filter(ImageFilter.GaussianBlur(4)), 30, "the page is blurred or was scanned too coarsely"),
        (page(size=12)[0], 12, "the print is too small: scan it again at 300 dpi"),
    ],
)
def test_what_is_wrong_with_the_picture_is_said(image, size, said):
    _, words = page(size=size)
    quality = assess_ocr_quality(unsure(words), image, 200)
    assert not quality.is_readable
    assert [problem.startswith(said) for problem in quality.problems] == [True]


def test_noise_is_said():
    image, words = page()
    levels = np.asarray(image) + np.random.default_rng(1).normal(0, 70, (image.height, image.width))
    quality = assess_ocr_quality(unsure(words), Image.fromarray(np.clip(levels, 0, 255).astype(np.uint8)), 200)
    assert quality.problems[0].startswith("the page is full of specks")


def test_where_nothing_explains_it_something_helps_all_the_same():
    image, words = page()
    assert assess_ocr_quality(unsure(words), image, 200).problems == (
        "few words could be recognised: scan the original at 300 dpi; if it is handwriting, type what matters",
    )


def test_print_size_is_judged_by_resolution():
    image, words = page(size=15)
    assert not any("too small" in problem for problem in assess_ocr_quality(unsure(words), image, 100).problems)


def test_a_picture_with_a_pixel_does_no_harm():
    assert assess_ocr_quality([], Image.new("L", (1, 1), 0), 200).score == 0


@pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")
@pytest.mark.parametrize(("blur", "readable"), [(1, True), (5, False)])
def test_a_blurred_page_is_told_from_one_that_can_be_read(blur, readable):
    tesseract = resolve_ocr_engine("tesseract")
    assert tesseract
    reading = recognise_page_image(page()[0].filter(ImageFilter.GaussianBlur(blur)), tesseract)
    assert reading
    assert reading.quality.is_readable == readable


@pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")
def test_scribble_is_not_readable():
    image = Image.new("L", (1000, 700), 255)
    points = np.array([500, 350]) + np.cumsum(np.random.default_rng(5).normal(0, 22, (400, 2)), axis=0)
    ImageDraw.Draw(image).line([tuple(point) for point in points], fill=30, width=3)
    tesseract = resolve_ocr_engine("tesseract")
    assert tesseract
    reading = recognise_page_image(image, tesseract)
    assert reading
    assert not reading.quality.is_readable
    assert any("type what matters" in problem for problem in reading.quality.problems)
