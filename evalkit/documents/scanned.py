"""A page that is a picture, recognised and laid out as if it had been printed.

Copiers and scanning programs write what they recognised invisibly over the picture. A person sees the picture alone, so
the picture is read, and such text is kept among what is hidden.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rapidfuzz import fuzz

from evalkit.documents.bundle import LayoutMetadata, Page, PageStatus, Word, Words
from evalkit.documents.drawn import Drawn, Line, Token, pieces
from evalkit.documents.identifiers import identifiers
from evalkit.documents.layout import LaidBlock, Typography, lay_out, margin_keys, setting
from evalkit.documents.mupdf import OpenPdf, library
from evalkit.documents.ocr import DPI, Engine, Reading, read_image
from evalkit.documents.page import page_of
from evalkit.documents.quality import Quality, Recognised
from evalkit.documents.render import drawn_page
from evalkit.errors import DocumentError

#: A point is 1/72 inch.
_POINTS = 72.0
#: What an engine's box around a word holds of the font size: small letters, and what capitals and tails add to them.
_X_HEIGHT, _ASCENDER, _DESCENDER = 0.5, 0.22, 0.22
_HIGH, _LOW = re.compile(r"[A-Z0-9bdfhklt(\[/]"), re.compile(r"[gjpqy,;(\[]")
#: The share of a picture's words that the page's text must have to be all that the picture says.
_NOTHING_NEW = 0.9
#: Words of this confidence, and so many of them, are text in a picture and not what engines see in photographs. So many
#: of any confidence may be: in 33 photographs, micrographs and drawings the engine saw no more than two.
_SURE, _MANY = 60, 5
#: How far (as a share of the page) a recognised word's middle may be beside the page's own word that it is.
_NEAR = 0.003
_SAME = 60
_UNKNOWN = "\ufffd"
_ILLEGIBLE = "the words in a picture could not be recognised: scan the original at 300 dpi, or type what matters"
_Placed = tuple[str, float, float, float, float]
"""A word with its box in fractions of the page."""
#: So many pages are recognised before they are laid out: what repeats in their margins is furniture.
_AT_ONCE = 100
#: What engines take the lines of tables and forms for.
_RULE = re.compile(r"[|¦_—]+")
#: Short letters are what engines make of drawings; short numbers may be results.
_TELLING = re.compile(r"\w{3,}|\d+")


@dataclass(frozen=True)
class Recogniser:
    """What recognises pages that are pictures."""

    engine: Engine
    seconds: float
    """That recognising a page once may take."""
    after_each: Callable[[], None] = lambda: None
    """Called when a page is done: whoever limits the time begins anew."""

    def of(self, opened: OpenPdf, name: str) -> Scans:
        """The pictures of one file, which ``name`` names in errors."""
        return Scans(self, opened, name)


class Scans:
    """The pages of one file that are pictures."""

    def __init__(self, recogniser: Recogniser, opened: OpenPdf, name: str) -> None:
        self._recogniser = recogniser
        self._opened = opened
        self._path = Path(name)
        self._layered: set[int] = set()
        self._pictured: set[int] = set()

    def seen(self, number: int, drawn: Drawn) -> Drawn:
        """The page (from 1) as it is to be laid out; whether its picture has to be read is noted.

        Text that others laid over the picture is hidden: nobody who looks at the page sees it, and whoever wrote it
        wrote what a model would read.
        """
        if drawn.layer:
            self._layered.add(number)
        if drawn.is_pictured:
            self._pictured.add(number)
        return drawn.without_layer if drawn.layer else drawn

    def recognised(self, pages: Sequence[Page]) -> tuple[Page, ...]:
        """The pages, with what stands on those that are pictures or have large ones."""
        portions = (pages[start : start + _AT_ONCE] for start in range(0, len(pages), _AT_ONCE))
        return tuple(page for portion in portions for page in self._portion(portion))

    def _portion(self, pages: Sequence[Page]) -> Iterator[Page]:
        scans = {
            page.page_num: self._scan(page.page_num)
            for page in pages
            if page.status is PageStatus.IMAGE or page.page_num in self._pictured
        }
        margins = Counter(key for scan in scans.values() if isinstance(scan, Scan) for key in margin_keys(scan.drawn))
        repeated = {key for key, count in margins.items() if count > 1}
        for page in pages:
            if page.page_num in scans:
                has_layer = page.page_num in self._layered
                yield _with_scan(page, scans[page.page_num], repeated, has_layer=has_layer)
            else:
                yield page

    def _scan(self, number: int) -> Scan | DocumentError | None:
        """The page (from 1), recognised; None where its picture is blank."""
        tools = library().TOOLS
        tools.mupdf_warnings()  # those of pages before are told, and done with
        try:
            image = drawn_page(self._opened, self._path, number, DPI)
            box = self._opened.document.load_page(number - 1).rect
            # A page too large for the renderer is drawn more coarsely than it was asked for.
            dpi = max(round(_POINTS * image.width / max(box.width, 1.0)), 1)
            reading = read_image(image, self._recogniser.engine, dpi=dpi, seconds=self._recogniser.seconds)
        except DocumentError as error:
            return error
        finally:
            self._recogniser.after_each()
        if reading is None and tools.mupdf_warnings():  # an image that cannot be unpacked is drawn as nothing
            return DocumentError(
                "a picture on the page is broken", code="OCR-IMAGE", remedy="Scan or export the document again."
            )
        return Scan.of(reading, box.width, box.height) if reading else None


def _with_scan(
    page: Page, scan: Scan | DocumentError | None, repeated: set[tuple[str, str]], *, has_layer: bool
) -> Page:
    """The page with what its picture says beside its own text.

    It is a picture still where that cannot be told. A page of text may have a photograph: what an engine makes of that
    is neither added nor held against it, unless somebody's layer says that there is text in it.
    """
    if scan is None:
        return page if page.text else page.model_copy(update={"status": PageStatus.BLANK})
    if isinstance(scan, DocumentError):
        return page.model_copy(update={"status": PageStatus.IMAGE, "problems": (_unrecognised(scan),)})
    told = {"quality": scan.quality.score, "problems": scan.quality.problems}
    own = page if 2 * page.text.count(_UNKNOWN) <= sum(map(len, page.text.split())) else _without_text(page)
    beside = scan.beside(own.text, own.words)
    if page.status is PageStatus.TEXT and not has_layer and not beside.is_telling:
        return page.model_copy(update={"unread": _ILLEGIBLE}) if beside.may_tell else page
    if not scan.quality.readable:
        return page.model_copy(update=told | {"status": PageStatus.IMAGE})
    if own.text and not beside.is_telling and not scan.adds_to(own.text):
        return page.model_copy(update=told | {"status": PageStatus.TEXT})
    return _joined(own, beside, repeated, told)


def _joined(page: Page, scan: Scan, repeated: set[tuple[str, str]], told: dict[str, Any]) -> Page:
    """The page's own blocks, and behind them what was recognised beside them."""
    laid, confidences = scan.laid_out(repeated)
    more = page_of(page.page_num, PageStatus.OCR, laid, scan.displayed)
    text = "\n".join(filter(None, (page.text, more.text)))
    shift = len(text) - len(more.text)
    words = (*page.words, *((word[0] + shift, word[1] + shift, *word[2:]) for word in more.words))
    types = page.layout_metadata.block_types + more.layout_metadata.block_types
    return more.model_copy(
        update=told
        | {
            "text": text,
            "paragraphs": page.paragraphs + more.paragraphs,
            "layout_metadata": LayoutMetadata(block_types=types, has_tables="table" in types),
            "blocks": (*page.visible_blocks, *more.blocks, *(block for block in page.blocks if block.hidden)),
            "words": Words(words),
            "confidences": (*(100 for _ in page.words), *confidences),
            "identifiers": identifiers(text, words),
        }
    )


def _without_text(page: Page) -> Page:
    """The page with what it says hidden: signs that stand for nothing."""
    hidden = tuple(block.model_copy(update={"hidden": True}) for block in page.blocks)
    layout = LayoutMetadata(block_types=(), has_tables=False)
    return page.model_copy(
        update={"text": "", "paragraphs": (), "words": Words(), "blocks": hidden, "layout_metadata": layout}
    )


class Laid(NamedTuple):
    """A recognised page, laid out."""

    blocks: list[LaidBlock]
    """In points of the page as it is displayed."""
    confidences: tuple[int, ...]
    """Of their words, in order, 0..100."""


@dataclass(frozen=True)
class Scan:
    """A recognised page."""

    drawn: Drawn
    """As if it had been printed upright, in points."""
    width: float
    """Of the page as it is displayed, points."""
    height: float
    places: dict[Token, Token]
    """Where each word stands on the page as it is displayed, in points."""
    sureness: dict[Token, int]
    """The engine's confidence in each, 0..100."""
    quality: Quality
    words: tuple[Recognised, ...]

    @classmethod
    def of(cls, reading: Reading, width: float, height: float) -> Scan:
        """``width`` and ``height`` are the displayed page's, in points."""
        scale = (height if reading.turn % 2 else width) / max(reading.width, 1)
        places: dict[Token, Token] = {}
        sureness: dict[Token, int] = {}
        lines: list[Line] = []
        printed = (word for word in reading.words if not _RULE.fullmatch(word.text))
        for _, group in groupby(printed, key=lambda word: word.line):
            words = list(group)
            tokens = [Token(word.text, *(scale * edge for edge in word[1:5])) for word in words]
            for word, token in zip(words, tokens, strict=True):
                x0, y0, x1, y1 = reading.back.box(*word[1:5])
                places[token] = Token(word.text, x0 * width, y0 * height, x1 * width, y1 * height)
                sureness[token] = word.confidence
            size = round(median(map(_size, tokens)), 1)
            lines += pieces(Line(tuple(tokens), size), tuple(sorted(tokens, key=lambda token: token.x0)))
        drawn = Drawn(
            width=scale * reading.width,
            height=scale * reading.height,
            lines=tuple(lines),
            hidden=(),
            grids=(),
            rules=(),
            image_share=1.0,
            layer=(),
            shapes=0,
            is_blank=False,
        )
        return cls(drawn, width, height, places, sureness, reading.quality, reading.words)

    @property
    def displayed(self) -> Drawn:
        """The page that the words are placed on."""
        return replace(self.drawn, width=self.width, height=self.height)

    @property
    def typography(self) -> Typography:
        """How most of it is set."""
        return setting(self.drawn.lines).typography

    def laid_out(self, repeated: set[tuple[str, str]]) -> Laid:
        """Its blocks; ``repeated`` as for ``lay_out``."""
        blocks = lay_out(self.drawn, repeated, self.typography)
        return Laid(
            [
                LaidBlock(
                    block.type,
                    tuple(tuple(tuple(self.places[token] for token in cell) for cell in row) for row in block.rows),
                    block.furniture,
                )
                for block in blocks
            ],
            tuple(self.sureness[token] for block in blocks for token in block.tokens),
        )

    def beside(self, text: str, words: Sequence[Word]) -> Scan:
        """The scan without what was recognised where the page has words of its own, which are exact."""
        taken = [
            (text[start:end], x0 / 10_000, y0 / 10_000, x1 / 10_000, y1 / 10_000)
            for start, end, x0, y0, x1, y1 in words
        ]
        lines: list[Line] = []
        for line in self.drawn.lines:
            kept = tuple(token for token in line.tokens if not self._is_taken(token, taken))
            lines += [Line(kept, line.size)] if kept else []
        return replace(self, drawn=replace(self.drawn, lines=tuple(lines)))

    def _is_taken(self, token: Token, taken: Sequence[_Placed]) -> bool:
        """Whether it is one of these: in its place, and not only under a watermark across the page."""
        _, x0, y0, x1, y1 = self.places[token]
        x, y = (x0 + x1) / 2 / self.width, (y0 + y1) / 2 / self.height
        return any(
            left - _NEAR <= x <= right + _NEAR
            and top - _NEAR <= y <= bottom + _NEAR
            and (bottom - top <= 2 * (y1 - y0) / self.height or fuzz.ratio(said, token.text) >= _SAME)
            for said, left, top, right, bottom in taken
        )

    @property
    def is_telling(self) -> bool:
        """Whether it has more words than engines see in logos and photographs."""
        return self._telling(_SURE) >= _MANY

    @property
    def may_tell(self) -> bool:
        """Whether it has so many words if those count too that the engine is not sure of."""
        return self._telling(0) >= _MANY

    def _telling(self, sure: int) -> int:
        tokens = (token for line in self.drawn.lines for token in line.tokens)
        return sum(self.sureness[token] >= sure and bool(_TELLING.search(token.text)) for token in tokens)

    def adds_to(self, text: str) -> bool:
        """Whether the picture says more than the text that the page has anyway: a logo or a drawing does not."""
        seen = _counted(word.text for word in self.words)
        return not text or (seen & _counted([text])).total() < _NOTHING_NEW * seen.total()


def _unrecognised(error: DocumentError) -> str:
    """Why a page could not be recognised, and what would help, in a clause."""
    return f"{error.message}: {error.remedy[:1].lower()}{error.remedy[1:].rstrip('.')}"


def _counted(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in _TELLING.findall(text.casefold()))


def _size(token: Token) -> float:
    """The font size that a word's height tells: letters without heads and tails take up half of it."""
    share = _X_HEIGHT + _ASCENDER * bool(_HIGH.search(token.text)) + _DESCENDER * bool(_LOW.search(token.text))
    return (token.y1 - token.y0) / share
