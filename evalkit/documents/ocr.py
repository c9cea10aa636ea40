"""Recognising the print of a page that is only a picture, on this machine: nothing is sent anywhere.

The engine is whichever is installed: tesseract, a program of its own, or RapidOCR, a Python library
(the extra ``ocr``). The rest of evalkit sees neither: it gets words with boxes and confidences.

Recognising costs a second or more a page, and asking which way is up costs as much again. So a page is levelled, read
as it stands, and turned only if next to nothing could be read: of 115 pages, print that stood right was recognised
with a confidence of 87 and more, turned print with 30 and less.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any, Literal, Protocol

import numpy as np
from PIL import Image

from evalkit.documents.quality import GOOD, Quality, Recognised, judge, sureness
from evalkit.documents.upright import Back, Upright, cleaned, flattened, is_blank, upright
from evalkit.errors import DocumentError, EvalkitError, UsageError
from evalkit.extras import installing

DPI = 200
"""What pages should be drawn at: finer costs time and gains no words, at 150 small print suffers."""
EngineName = Literal["auto", "tesseract", "rapidocr", "none"]

#: Below this a page is so poorly recognised that it may stand the wrong way.
_SURE = 60
#: Tesseract's own measure of how sure it is of a page's turn. Measured: right from 3 up at 200 dpi, wrong up to 1.3.
_SURE_OF_TURN = 3.0
#: The share of a page's seconds that asking for its turn, and each try of one, may take: what takes longer is no print.
_TRIAL = 1 / 6
#: The order in which turns are tried where nothing tells: sheets are more often fed upside down than sideways.
_TURNS = (2, 1, 3)
#: Tesseract takes at most 32767 pixels a side; beyond 50 megapixels any engine takes too much memory.
_MAX_SIDE, _MAX_PIXELS = 16_000, 50_000_000
#: So many pixels a side cannot hold a letter.
_MIN_SIDE = 8
#: What RapidOCR is sure of nonsense with, so that its confidences mean what tesseract's do.
_RAPID_WRONG = 0.55
_PR_SET_PDEATHSIG = 1
_PRCTL: Callable[..., int] | None = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class Engine(Protocol):
    """What recognises print."""

    @property
    def name_and_version(self) -> str:
        """Such as ``tesseract 5.3.0 eng``: part of what a bundle says about its reader."""

    def recognise(self, image: Image.Image, *, dpi: int, seconds: float) -> list[Recognised]:
        """The words of the picture (mode L or RGB), line by line, in its pixels; empty where there are none.

        DocumentError OCR-TIMEOUT after ``seconds``, OCR-FAILED where the engine breaks down.
        """

    def turn(self, image: Image.Image, *, dpi: int, seconds: float) -> int | None:
        """By how many quarter turns clockwise, 0..3, the picture stands turned; None where that is not sure.

        Errors as ``recognise``.
        """


@dataclass(frozen=True)
class Reading:
    """What was recognised on a page that is a picture."""

    words: tuple[Recognised, ...]
    """Line by line, in pixels of the upright picture; ``back.box`` places them on the page as it came."""
    width: int
    """Pixels of the upright picture."""
    height: int
    turn: int
    """Quarter turns clockwise, 0..3, by which the page stands turned."""
    angle: float
    """Degrees clockwise by which it is tilted besides."""
    back: Back
    quality: Quality


def engine(name: EngineName = "auto") -> Engine | None:
    """The engine of that name; ``auto`` is tesseract if it is installed, else RapidOCR, else None, as is ``none``.

    UsageError OCR-MISSING where an engine is asked for by name and is not installed.
    """
    if name == "none":
        return None
    if name in ("auto", "tesseract") and (found := _tesseract()):
        return found
    if name in ("auto", "rapidocr") and _has_rapidocr():
        return RapidOcr()
    if name == "auto":
        return None
    install = {
        "tesseract": "Install it (apt-get install tesseract-ocr, or brew install tesseract)",
        "rapidocr": f"Install it ({installing('ocr')})",
    }[name]
    raise UsageError(
        f"the OCR engine {name} is not installed",
        code="OCR-MISSING",
        remedy=f"{install}, or choose auto or none.",
    )


def read_image(image: Image.Image, engine: Engine, *, dpi: int = DPI, seconds: float = 60) -> Reading | None:
    """What stands on the picture of a page drawn at ``dpi``, however it is turned or tilted; None where it is blank.

    ``seconds`` are for recognising it once; mending a poor page and finding its turn may take twice as
    long again. Words are in pixels
    of the upright picture, which is smaller than ``image`` where that is beyond 50 megapixels. A page that is too poor
    raises nothing: ``quality.readable`` is False. DocumentError: OCR-TIMEOUT, OCR-FAILED, or OCR-IMAGE for a picture
    whose file is broken.
    """
    picture, scale = _fitted(image)
    dpi = max(round(dpi * scale), 1)
    picture = cleaned(picture)
    if min(picture.size) < _MIN_SIDE or is_blank(picture):
        return None
    page = upright(picture)
    words = engine.recognise(page.image, dpi=dpi, seconds=seconds)
    if judge(words, page.image, dpi).score < GOOD and (flat := flattened(picture)):
        flat = cleaned(flat)
        again = upright(flat)
        found = _tried(engine, again, dpi, seconds)
        if judge(found, again.image, dpi).score >= judge(words, page.image, dpi).score:
            picture, page, words = flat, again, found
    if sureness(words) < _SURE or _lies_sideways(words):
        page, words = _turned(page, words, picture, engine, dpi, seconds * _TRIAL)
    return Reading(
        words=tuple(words),
        width=page.image.width,
        height=page.image.height,
        turn=page.turn,
        angle=page.angle,
        back=page.back,
        quality=judge(words, page.image, dpi),
    )


def _tried(engine: Engine, page: Upright, dpi: int, seconds: float) -> list[Recognised]:
    """The page's words; none where the engine fails, as something was read before that is worth keeping."""
    try:
        return engine.recognise(page.image, dpi=dpi, seconds=seconds)
    except DocumentError:
        return []


def _turned(
    page: Upright, words: list[Recognised], picture: Image.Image, engine: Engine, dpi: int, seconds: float
) -> tuple[Upright, list[Recognised]]:
    """The page and its words as they are read best; as given, if no turn is better."""
    try:
        known = engine.turn(page.image, dpi=dpi, seconds=seconds)
        tried = _TURNS if known is None else (known,) if known else ()
        for turn in tried:
            other = upright(picture, turn, page.angle)
            found = engine.recognise(other.image, dpi=dpi, seconds=seconds)
            if _lies_sideways(words) or (sureness(found) > sureness(words) and not _lies_sideways(found)):
                page, words = other, found
            if sureness(words) >= _SURE and not _lies_sideways(words):
                break
    except DocumentError:
        # What was read at first is something; its quality tells what it is worth.
        return page, words
    return page, words


def _lies_sideways(words: Sequence[Recognised]) -> bool:
    """Whether most longer words are taller than wide: some engines read them as they stand, line order lost."""
    longer = [word for word in words if len(word.text) > 3]
    return sum(word.y1 - word.y0 > word.x1 - word.x0 for word in longer) > len(longer) / 2


def _fitted(image: Image.Image) -> tuple[Image.Image, float]:
    """The picture in grey and no larger than engines take, and by how much it was made smaller."""
    try:
        image.load()
    except (OSError, SyntaxError, ValueError):  # SyntaxError is how PIL calls a broken PNG
        raise DocumentError(
            "the picture of a page is broken", code="OCR-IMAGE", remedy="Scan or export the document again."
        ) from None
    if image.has_transparency_data:
        paper = Image.new("RGBA", image.size, "white")
        paper.alpha_composite(image.convert("RGBA"))
        image = paper
    grey = image.convert("L")
    pixels = max(grey.width * grey.height, 1)
    scale = min(1.0, _MAX_SIDE / max(*grey.size, 1), math.sqrt(_MAX_PIXELS / pixels))
    if scale < 1:
        grey = grey.resize((max(round(grey.width * scale), 1), max(round(grey.height * scale), 1)))
    return grey, scale


@dataclass(frozen=True)
class Tesseract:
    """Tesseract 4 or 5 through its command line."""

    program: str
    """The path of the program."""
    name_and_version: str

    def recognise(self, image: Image.Image, *, dpi: int, seconds: float) -> list[Recognised]:
        """See ``Engine``."""
        table = self._asked(image, dpi, seconds, "--psm", "3", "-l", "eng", "tsv")
        return list(_words(table))

    def turn(self, image: Image.Image, *, dpi: int, seconds: float) -> int | None:
        """See ``Engine``; None also where its data for this (``osd``) is missing or a page has too few words."""
        try:
            answer = self._asked(image, dpi, seconds, "--psm", "0", "-l", "osd")
        except DocumentError as error:
            if error.code == "OCR-TIMEOUT":
                raise
            return None
        told = dict(re.findall(r"^(Orientation in degrees|Orientation confidence): ([\d.]+)$", answer, re.MULTILINE))
        if float(told.get("Orientation confidence", 0)) < _SURE_OF_TURN:
            return None
        return round(float(told["Orientation in degrees"]) / 90) % 4

    def _asked(self, image: Image.Image, dpi: int, seconds: float, *options: str) -> str:
        grey = image.convert("L")
        # Through a pipe: a patient's page shall not lie in a temporary file.
        picture = b"P5 %d %d 255\n" % grey.size + grey.tobytes()
        return _answer([self.program, "stdin", "stdout", "--dpi", str(max(dpi, 70)), *options], picture, seconds)


def _tesseract() -> Tesseract | None:
    """Tesseract, if it is installed, runs and knows English."""
    program = shutil.which("tesseract")
    name = _name(program) if program else None
    return Tesseract(program, name) if program and name else None


@lru_cache(maxsize=8)
def _name(program: str) -> str | None:
    try:
        told = _answer([program, "--version"], b"", 10)
        languages = _answer([program, "--list-langs"], b"", 10)
    except EvalkitError:
        return None
    number = re.match(r"tesseract v?(\S+)", told)
    return f"tesseract {number[1]} eng" if number and "eng" in languages.splitlines() else None


def _answer(command: list[str], picture: bytes, seconds: float) -> str:
    """What the program writes to standard output. What it says on standard error may quote the page: not kept."""
    try:
        child = subprocess.Popen(  # noqa: S603 - the program is the one on PATH, the options are ours
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # With more threads of its own in each of many readers, tesseract takes up to twenty times as long.
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            process_group=0,
            preexec_fn=partial(_die_with, os.getpid()),  # noqa: PLW1509 - calls two functions that take no locks
        )
    except OSError:
        raise _failed("tesseract") from None
    with child:
        try:
            answer, _ = child.communicate(picture, timeout=max(seconds, 0))
        except subprocess.TimeoutExpired:
            raise DocumentError(
                "recognising a page took longer than allowed",
                code="OCR-TIMEOUT",
                remedy="Scan it again, straight and clean, at 200 to 300 dpi; or allow more seconds.",
            ) from None
        finally:
            if child.poll() is None:
                # The whole group: what is called tesseract may be a script that starts the real one.
                os.killpg(child.pid, signal.SIGKILL)
    if child.returncode:
        raise _failed("tesseract")
    return answer.decode(errors="replace")


def _die_with(parent: int) -> None:
    """Called in the child before it becomes tesseract: let the system end it when the reader dies.

    A reader past its time, or whose run was killed, dies at once and cannot tidy up; tesseract would go on for as long
    as the page takes, one for every reader. Linux ends it then; a watchdog would be one more process for every page.
    Elsewhere it ends when it has done the page and finds nobody to tell.
    """
    if _PRCTL:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before that could be arranged
            os._exit(1)


def _failed(name: str) -> DocumentError:
    return DocumentError(
        f"{name} broke down over a page",
        code="OCR-FAILED",
        remedy="Print the document to a new PDF and run that one; if others fail too, install the engine again.",
    )


def _words(table: str) -> Iterator[Recognised]:
    """The words of tesseract's table: rows of 12 columns, of which those of level 5 are words."""
    lines: dict[tuple[str, ...], int] = {}
    for row in table.splitlines():
        cells = row.split("\t", 11)
        # Pictures and rules come as words of white space.
        if len(cells) < 12 or cells[0] != "5" or not (text := cells[11].strip()):
            continue
        line = lines.setdefault(tuple(cells[1:5]), len(lines))
        x, y, width, height = map(int, cells[6:10])
        yield Recognised(text, x, y, x + width, y + height, round(min(max(float(cells[10]), 0), 100)), line)


def _has_rapidocr() -> bool:
    return all(importlib.util.find_spec(name) for name in ("rapidocr", "onnxruntime"))


class RapidOcr:
    """RapidOCR 3 (PP-OCR's networks, which its wheel contains) in this process.

    Slower than tesseract, larger, and better at numbers. It cannot be stopped: ``seconds`` is not kept, and the limit
    is that of the process that reads the document.
    """

    def __init__(self) -> None:
        self.name_and_version = f"rapidocr {version('rapidocr')}"

    def recognise(self, image: Image.Image, *, dpi: int, seconds: float) -> list[Recognised]:  # noqa: ARG002
        """See ``Engine``."""
        # Its networks were taught on pictures as OpenCV holds them: blue first.
        pixels = np.asarray(image.convert("RGB"))[:, :, ::-1]
        try:
            found = _rapidocr()(pixels, use_cls=False, return_word_box=True)
        except Exception:  # noqa: BLE001 - its errors share no base, and may quote the document: not chained
            raise _failed("rapidocr") from None
        if found.boxes is None or found.txts is None:
            return []
        words = found.word_results or [()] * len(found.txts)
        lines = zip(found.txts, found.scores, found.boxes, words, strict=True)
        return [word for number, line in enumerate(lines) for word in _line_words(number, *line)]

    def turn(self, image: Image.Image, *, dpi: int, seconds: float) -> int | None:  # noqa: ARG002
        """See ``Engine``; always None: it cannot tell."""
        return None


@lru_cache(maxsize=1)
def _rapidocr() -> Any:
    """Its networks, loaded once. One thread each: the readers share the cores."""
    from rapidocr import RapidOCR  # type: ignore[import-not-found,unused-ignore]

    return RapidOCR(params={"Global.log_level": "critical", "EngineConfig.onnxruntime.intra_op_num_threads": 1})


def _line_words(number: int, text: str, score: float, corners: Any, words: Sequence[Any]) -> Iterator[Recognised]:
    """The words of one recognised line, each with its own box if there is one, else with its share of the line's."""
    boxed = [(word, sure, _hull(quad)) for word, sure, quad in words if word.strip()]
    if not boxed:
        x0, y0, x1, y1 = _hull(corners)
        step = (x1 - x0) / max(len(text), 1)
        boxed = [
            (match[0], score, (round(x0 + step * match.start()), y0, round(x0 + step * match.end()), y1))
            for match in re.finditer(r"\S+", text)
        ]
    for word, sure, box in boxed:
        # It is 0.98 sure of what is right and still 0.58 to 0.79 sure of print that stands on its head.
        comparable = (float(sure) - _RAPID_WRONG) / (1 - _RAPID_WRONG)
        yield Recognised(word, *box, round(100 * min(max(comparable, 0.0), 1.0)), number)


def _hull(corners: Any) -> tuple[int, int, int, int]:
    x, y = np.asarray(corners, dtype=float).reshape(-1, 2).T
    return round(x.min()), round(y.min()), round(x.max()), round(y.max())
