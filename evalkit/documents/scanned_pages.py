"""OCR of a file's scanned pages, with the same layout steps as printed pages.

Copiers and scanning programs write the text that they recognised invisibly over the picture (an OCR layer). A person
sees only the picture; so the picture is recognised again here, and the OCR layer is stored as hidden text.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from PIL import Image
from rapidfuzz import fuzz

from evalkit.documents.bundle import LayoutMetadata, PackedWords, Page, PageStatus, WordPosition
from evalkit.documents.deskew import FAX_OCR_DPI, restore_fax
from evalkit.documents.identity.barcodes import Barcode, add_barcode_identifiers, read_barcodes
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.documents.layout import LayoutBlock, collect_masked_margin_texts, lay_out_blocks, measure_typography
from evalkit.documents.mupdf import OpenedPdf
from evalkit.documents.ocr import OCR_DPI, OcrEngine, OcrPageResult, find_second_reader, recognise_page_image
from evalkit.documents.page_builder import build_page
from evalkit.documents.page_content import PageContent, PageLine, PageToken, split_at_wide_gaps
from evalkit.documents.page_damage import find_losses, take_drawing_warnings, take_warnings
from evalkit.documents.quality import OcrWord, PageQuality
from evalkit.documents.render import MAX_RENDER_PIXELS, render_opened_page
from evalkit.documents.second_reading import SecondReader
from evalkit.errors import DocumentError

#: A point is 1/72 inch.
_POINTS_PER_INCH = 72.0
#: Height of a recognised word's box as a share of the font size: with small letters only, and the additional shares of
#: capitals and ascenders, and of descenders.
_X_HEIGHT_SHARE, _ASCENDER_SHARE, _DESCENDER_SHARE = 0.5, 0.22, 0.22
_ASCENDING_CHARACTER, _DESCENDING_CHARACTER = re.compile(r"[A-Z0-9bdfhklt(\[/]"), re.compile(r"[gjpqy,;(\[]")
#: If the page's own text has at least this share of a picture's words, the picture adds nothing.
_MIN_KNOWN_SHARE = 0.9
#: At least this many words with at least this confidence are text in a picture, not words that engines see in
#: photographs. That many words of lower confidence may be text: in 33 photographs, micrographs and drawings the engine
#: saw at most two words.
_MIN_SURE_CONFIDENCE, _MIN_TEXT_WORDS = 60, 5
#: A recognised word is the same as one of the page's own words if its middle is at most this far (as a share of the
#: page) outside the own word's box.
_POSITION_TOLERANCE = 0.003
_MIN_SIMILARITY = 60
_REPLACEMENT_CHARACTER = "\ufffd"
#: A fax is a black-and-white picture that covers at least this share of the page's width and height, within these
#: resolutions.
_MIN_FAX_SHARE, _MIN_FAX_DPI, _MAX_FAX_DPI = 0.9, 60, 260
#: A word, and its box x0, y0, x1, y1 in fractions of the page.
_PlacedWord = tuple[str, float, float, float, float]
#: Number of pages that are recognised before they are laid out, so that texts repeated in their margins are known.
_BATCH_SIZE = 100
#: Characters as which engines read the lines of tables and forms.
_RULE_CHARACTERS = re.compile(r"[|¦_—]+")
#: Words of one or two letters do not count, because engines see them in drawings; short numbers may be results.
_MEANINGFUL_WORD = re.compile(r"\w{3,}|\d+")


@dataclass(frozen=True)
class PageOcrSettings:
    """OCR engine with its time limit per page, for all files of a run."""

    engine: OcrEngine
    seconds_per_page: float
    """Seconds of processor time that one pass of the engine over a page may take."""
    on_page_done: Callable[[], None] = lambda: None
    """Function that is called after each recognised page, e.g. to restart a time limit."""
    count_workers: Callable[[], int] = lambda: 1
    """Function that returns how many pages may be recognised at a time; the number may change."""

    @cached_property
    def second_reader(self) -> SecondReader | None:
        """Engine that reads numbers again; None unless another engine is installed."""
        return find_second_reader(self.engine.name_and_version)

    @property
    def name_and_version(self) -> str:
        """Names and versions of the engines, joined by ``+``."""
        engines = (self.engine, self.second_reader) if self.second_reader else (self.engine,)
        return " + ".join(engine.name_and_version for engine in engines)

    def create_file_ocr(self, opened_pdf: OpenedPdf, file_name: str) -> FileOcr:
        """Create the object that recognises one file's pages.

        ``file_name`` appears only in errors.
        """
        return FileOcr(self, opened_pdf, file_name)


class FileOcr:
    """OCR for one file: notes the pages that need OCR, then recognises them."""

    def __init__(self, recogniser: PageOcrSettings, opened_pdf: OpenedPdf, file_name: str) -> None:
        self._recogniser = recogniser
        self._opened_pdf = opened_pdf
        self._path = Path(file_name)
        self._layered_pages: set[int] = set()
        self._pages_needing_ocr: set[int] = set()
        self._barcodes_by_page: dict[int, tuple[Barcode, ...]] = {}
        self._warnings_by_page: dict[int, str] = {}

    def note_ocr_need_and_hide_layer(self, page_num: int, content: PageContent) -> PageContent:
        """Record whether a page needs OCR; return its content with the OCR layer hidden.

        The layer is hidden because a person does not see it, and its author could write anything into it for a model to
        read.
        """
        if content.ocr_layer:
            self._layered_pages.add(page_num)
        if content.needs_ocr:
            self._pages_needing_ocr.add(page_num)
        return content.copy_with_ocr_layer_hidden if content.ocr_layer else content

    def add_recognised_text(self, pages: Sequence[Page]) -> tuple[Page, ...]:
        """Return the pages; pages that need OCR get the recognised text.

        These are pages with status IMAGE and pages noted by ``note_ocr_need_and_hide_layer``.
        """
        batches = (pages[start : start + _BATCH_SIZE] for start in range(0, len(pages), _BATCH_SIZE))
        return tuple(page for batch in batches for page in self._add_recognised_text_to_batch(batch))

    def _add_recognised_text_to_batch(self, pages: Sequence[Page]) -> Iterator[Page]:
        recognised_by_page = self._recognise_pages(
            page.page_num
            for page in pages
            if page.status is PageStatus.IMAGE or page.page_num in self._pages_needing_ocr
        )
        margin_counts = Counter(
            key
            for recognised in recognised_by_page.values()
            if isinstance(recognised, RecognisedPage)
            for key in collect_masked_margin_texts(recognised.upright_content)
        )
        repeated_margin_keys = {key for key, count in margin_counts.items() if count > 1}
        for page in pages:
            if page.page_num in recognised_by_page:
                merged_page = _merge_ocr_into_page(
                    page,
                    recognised_by_page[page.page_num],
                    repeated_margin_keys,
                    has_ocr_layer=page.page_num in self._layered_pages,
                )
                losses = find_losses(self._warnings_by_page.get(page.page_num, ""))
                damage = tuple(dict.fromkeys((*page.damage, *losses)))
                yield add_barcode_identifiers(
                    merged_page.model_copy(update={"damage": damage}), self._barcodes_by_page.get(page.page_num, ())
                )
            else:
                yield page

    def _recognise_pages(self, page_numbers: Iterable[int]) -> dict[int, RecognisedPage | DocumentError | None]:
        """Recognise pages (from 1) side by side, as many at a time as there are workers.

        The engine is another program, or releases Python's lock, so threads suffice; MuPDF draws in this thread only.
        Few pages wait in memory: together no more pixels than the largest page has.
        """
        recognised_by_page: dict[int, RecognisedPage | DocumentError | None] = {}
        pixels_by_future: dict[Future[None], int] = {}

        def await_room(page_count: int, pixel_count: int) -> None:
            while len(pixels_by_future) > page_count or sum(pixels_by_future.values(), pixel_count) > MAX_RENDER_PIXELS:
                if not pixels_by_future:
                    return
                finished, _ = wait(pixels_by_future, return_when=FIRST_COMPLETED)
                for future in finished:
                    del pixels_by_future[future]
                    future.result()
                    self._recogniser.on_page_done()

        def recognise(page_num: int, image: Image.Image, page_rect: Any) -> None:
            recognised_by_page[page_num] = self._recognise_drawn_page(page_num, image, page_rect)

        with ThreadPoolExecutor(os.cpu_count()) as thread_pool:
            for page_num in page_numbers:
                await_room(self._recogniser.count_workers() - 1, 0)
                try:
                    image, page_rect = self._draw_page(page_num)
                except DocumentError as error:
                    recognised_by_page[page_num] = error
                    self._recogniser.on_page_done()
                    continue
                pixel_count = image.width * image.height
                await_room(self._recogniser.count_workers() - 1, pixel_count)
                pixels_by_future[thread_pool.submit(recognise, page_num, image, page_rect)] = pixel_count
            await_room(0, 0)
        return recognised_by_page

    def _draw_page(self, page_num: int) -> tuple[Image.Image, Any]:
        """Return a page's picture and its rectangle in points.

        Damage that MuPDF reports is noted.
        """
        take_warnings()  # about earlier pages
        page = self._opened_pdf.document.load_page(page_num - 1)
        if fax_resolution := self._measure_fax_resolution(page_num):
            x_dpi, y_dpi = fax_resolution
            fax = render_opened_page(self._opened_pdf, self._path, page_num, x_dpi, y_stretch=y_dpi / x_dpi)
            image = restore_fax(fax.convert("L"), x_dpi, y_dpi)
        else:
            image = render_opened_page(self._opened_pdf, self._path, page_num, OCR_DPI)
        self._warnings_by_page[page_num] = take_drawing_warnings(page)
        return image, page.rect

    def _measure_fax_resolution(self, page_num: int) -> tuple[float, float] | None:
        """Return the dpi across and down of a page that is one picture of a fax.

        None for another page, or if the picture is too fine for a fax or too large.
        """
        page = self._opened_pdf.document.load_page(page_num - 1)
        try:
            images = page.get_image_info()
        except Exception:  # noqa: BLE001 - MuPDF's errors share no base; drawing the page reports them
            return None
        if len(images) != 1 or images[0]["bpc"] != 1:
            return None
        width, _, _, height, *_ = map(abs, images[0]["transform"])
        if width < _MIN_FAX_SHARE * page.rect.width or height < _MIN_FAX_SHARE * page.rect.height:
            return None
        x_dpi, y_dpi = (
            _POINTS_PER_INCH * images[0][name] / length for name, length in (("width", width), ("height", height))
        )
        pixel_count = page.rect.width * page.rect.height * (FAX_OCR_DPI / _POINTS_PER_INCH) ** 2
        is_fax = _MIN_FAX_DPI <= y_dpi <= 1.05 * x_dpi <= _MAX_FAX_DPI and pixel_count <= MAX_RENDER_PIXELS
        return (x_dpi, y_dpi) if is_fax else None

    def _recognise_drawn_page(
        self, page_num: int, image: Image.Image, page_rect: Any
    ) -> RecognisedPage | DocumentError | None:
        """Recognise a page and read its bar codes; None if its picture is blank.

        A DocumentError is returned, not raised.
        """
        # The actual resolution: a very large page is rendered coarser than requested.
        dpi = max(round(_POINTS_PER_INCH * image.width / max(page_rect.width, 1.0)), 1)
        try:
            self._barcodes_by_page[page_num] = read_barcodes(image)
            reading = recognise_page_image(
                image,
                self._recogniser.engine,
                dpi=dpi,
                seconds_per_pass=self._recogniser.seconds_per_page,
                second_reader=self._recogniser.second_reader,
            )
        except DocumentError as error:
            return error
        if reading is None and self._warnings_by_page[page_num]:  # MuPDF draws a broken image as nothing
            return DocumentError(
                "an image on the page is damaged", code="OCR-IMAGE", remedy="Scan or export the document again."
            )
        return RecognisedPage.from_ocr_result(reading, page_rect.width, page_rect.height) if reading else None


def _merge_ocr_into_page(
    page: Page,
    recognised: RecognisedPage | DocumentError | None,
    repeated_margin_keys: set[tuple[str, str]],
    *,
    has_ocr_layer: bool,
) -> Page:
    """Merge text that OCR recognised into a page, which may have text of its own.

    ``recognised`` is None for a blank picture, and a DocumentError if OCR failed. If the picture cannot be read well,
    the page gets the status IMAGE. A page of text may have a photograph: the few words that an engine sees there are
    neither added nor counted as unread, unless an OCR layer shows that the picture contains text.
    """
    if recognised is None:
        return page if page.text else page.model_copy(update={"status": PageStatus.BLANK})
    if isinstance(recognised, DocumentError):
        remedy = f"{recognised.remedy[:1].lower()}{recognised.remedy[1:].rstrip('.')}"
        return page.model_copy(update={"status": PageStatus.IMAGE, "problems": (f"{recognised.message}: {remedy}",)})
    quality_update = {"quality": recognised.quality.score, "problems": recognised.quality.problems}
    own_page = (
        page
        if 2 * page.text.count(_REPLACEMENT_CHARACTER) <= sum(map(len, page.text.split()))
        else _hide_page_text(page)
    )
    additional = recognised.drop_words_of_page_text(own_page.text, own_page.words)
    if page.status is PageStatus.TEXT and not has_ocr_layer and not additional.has_enough_words(_MIN_SURE_CONFIDENCE):
        note = "the words in a picture could not be recognised: scan the original at 300 dpi, or type what matters"
        return page.model_copy(update={"unread": note}) if additional.has_enough_words(min_confidence=0) else page
    if not recognised.quality.is_readable:
        return page.model_copy(update=quality_update | {"status": PageStatus.IMAGE})
    if (
        own_page.text
        and not additional.has_enough_words(_MIN_SURE_CONFIDENCE)
        and not recognised.has_new_words(own_page.text)
    ):
        return page.model_copy(update=quality_update | {"status": PageStatus.TEXT})
    return _append_recognised_text(own_page, additional, repeated_margin_keys, quality_update)


def _append_recognised_text(
    page: Page, recognised: RecognisedPage, repeated_margin_keys: set[tuple[str, str]], quality_update: dict[str, Any]
) -> Page:
    layout_blocks, confidences, doubts = recognised.lay_out_with_confidences(repeated_margin_keys)
    page_content = replace(recognised.upright_content, width=recognised.page_width, height=recognised.page_height)
    recognised_part = build_page(page.page_num, PageStatus.OCR, layout_blocks, page_content)
    text = "\n".join(filter(None, (page.text, recognised_part.text)))
    offset = len(text) - len(recognised_part.text)
    words = (*page.words, *((word[0] + offset, word[1] + offset, *word[2:]) for word in recognised_part.words))
    all_confidences = (*(100 for _ in page.words), *confidences)
    # A patient fact of a doubtful word is never certain, so that a misread number alone makes no other patient.
    identity_confidences = [
        0 if position - len(page.words) in doubts else confidence for position, confidence in enumerate(all_confidences)
    ]
    block_types = page.layout_metadata.block_types + recognised_part.layout_metadata.block_types
    return recognised_part.model_copy(
        update=quality_update
        | {
            "text": text,
            "paragraphs": page.paragraphs + recognised_part.paragraphs,
            "layout_metadata": LayoutMetadata(block_types=block_types, has_tables="table" in block_types),
            "blocks": (
                *page.visible_blocks,
                *recognised_part.blocks,
                *(block for block in page.blocks if block.hidden),
            ),
            "words": PackedWords(words),
            "confidences": all_confidences,
            "doubtful": tuple(len(page.words) + position for position in doubts),
            "second_readings": tuple(doubts.values()),
            "identifiers": find_patient_identifiers(text, words, identity_confidences),
        }
    )


def _hide_page_text(page: Page) -> Page:
    return page.model_copy(
        update={
            "text": "",
            "paragraphs": (),
            "words": PackedWords(),
            "blocks": tuple(block.model_copy(update={"hidden": True}) for block in page.blocks),
            "layout_metadata": LayoutMetadata(block_types=(), has_tables=False),
        }
    )


@dataclass(frozen=True)
class RecognisedPage:
    """Words that OCR recognised on a page, with their places and confidences."""

    upright_content: PageContent
    """Content of the page as if it had been printed upright and straight, in points."""
    page_width: float
    """Width of the displayed page, in points."""
    page_height: float
    displayed_tokens: dict[PageToken, PageToken]
    """For each word of ``upright_content``: the word in points of the displayed page."""
    token_confidences: dict[PageToken, int]
    """For each word of ``upright_content``: the engine's confidence, 0..100."""
    token_doubts: dict[PageToken, str]
    """For each doubtful word of ``upright_content``: the other engine's reading."""
    quality: PageQuality
    words: tuple[OcrWord, ...]

    @classmethod
    def from_ocr_result(cls, ocr_result: OcrPageResult, page_width: float, page_height: float) -> RecognisedPage:
        """Convert an OCR result from pixels to points; the page's size is in points."""
        upright_image = ocr_result.deskewed_image.image
        scale = (page_height if ocr_result.deskewed_image.clockwise_quarter_turns % 2 else page_width) / max(
            upright_image.width, 1
        )
        displayed_tokens: dict[PageToken, PageToken] = {}
        token_confidences: dict[PageToken, int] = {}
        token_doubts: dict[PageToken, str] = {}
        lines: list[PageLine] = []
        print_words = (row for row in enumerate(ocr_result.words) if not _RULE_CHARACTERS.fullmatch(row[1].text))
        for _, group in groupby(print_words, key=lambda row: row[1].line_number):
            positions, words = zip(*group, strict=True)
            tokens = [PageToken(word.text, *(scale * edge for edge in word[1:5])) for word in words]
            for position, word, token in zip(positions, words, tokens, strict=True):
                x0, y0, x1, y1 = ocr_result.deskewed_image.map_to_source_box(*word[1:5])
                displayed_tokens[token] = PageToken(
                    word.text, x0 * page_width, y0 * page_height, x1 * page_width, y1 * page_height
                )
                token_confidences[token] = word.confidence
                if position in ocr_result.doubts:
                    token_doubts[token] = ocr_result.doubts[position]
            font_size = round(median(map(_estimate_font_size, tokens)), 1)
            lines += split_at_wide_gaps(
                PageLine(tuple(tokens), font_size), tuple(sorted(tokens, key=lambda token: token.x0))
            )
        upright_content = PageContent(
            width=scale * upright_image.width,
            height=scale * upright_image.height,
            visible_lines=tuple(lines),
            hidden_lines=(),
            grids=(),
            horizontal_rules=(),
            image_share=1.0,
            ocr_layer=(),
            shape_count=0,
            is_blank=False,
        )
        return cls(
            upright_content,
            page_width,
            page_height,
            displayed_tokens,
            token_confidences,
            token_doubts,
            ocr_result.quality,
            ocr_result.words,
        )

    def lay_out_with_confidences(
        self, repeated_margin_keys: set[tuple[str, str]]
    ) -> tuple[list[LayoutBlock], tuple[int, ...], dict[int, str]]:
        """Arrange the words as blocks, in points of the displayed page.

        Also returns the confidence of each word, 0..100, in the order of the blocks' words, and the other reading of each
        doubtful word, by its position in that order. ``repeated_margin_keys`` as
        for ``lay_out_blocks``.
        """
        typography = measure_typography(self.upright_content.visible_lines).typography
        blocks = lay_out_blocks(self.upright_content, repeated_margin_keys, typography)
        displayed_blocks = [block.map_tokens(self.displayed_tokens.__getitem__) for block in blocks]
        tokens = [token for block in blocks for token in block.tokens]
        doubts = {
            position: self.token_doubts[token] for position, token in enumerate(tokens) if token in self.token_doubts
        }
        return displayed_blocks, tuple(self.token_confidences[token] for token in tokens), doubts

    def drop_words_of_page_text(self, page_text: str, page_words: Sequence[WordPosition]) -> RecognisedPage:
        """Return a copy without recognised words that the page's own text contains."""
        placed_words = [
            (page_text[start:end], x0 / 10_000, y0 / 10_000, x1 / 10_000, y1 / 10_000)
            for start, end, x0, y0, x1, y1 in page_words
        ]
        remaining_tokens = (
            (tuple(token for token in line.tokens if not self._is_page_word(token, placed_words)), line.font_size)
            for line in self.upright_content.visible_lines
        )
        lines = tuple(PageLine(tokens, font_size) for tokens, font_size in remaining_tokens if tokens)
        return replace(self, upright_content=replace(self.upright_content, visible_lines=lines))

    def _is_page_word(self, token: PageToken, placed_words: Sequence[_PlacedWord]) -> bool:
        """Return True if a recognised word is one of the page's own words.

        It is if it is at the same place; under a much higher word, such as a watermark, only if the text is similar.
        """
        _, x0, y0, x1, y1 = self.displayed_tokens[token]
        x, y = (x0 + x1) / 2 / self.page_width, (y0 + y1) / 2 / self.page_height
        return any(
            left - _POSITION_TOLERANCE <= x <= right + _POSITION_TOLERANCE
            and top - _POSITION_TOLERANCE <= y <= bottom + _POSITION_TOLERANCE
            and (
                bottom - top <= 2 * (y1 - y0) / self.page_height or fuzz.ratio(page_word, token.text) >= _MIN_SIMILARITY
            )
            for page_word, left, top, right, bottom in placed_words
        )

    def has_enough_words(self, min_confidence: int) -> bool:
        """Return True if enough words have ``min_confidence`` to be real text.

        That is more words than engines see in logos and photographs.
        """
        tokens = (token for line in self.upright_content.visible_lines for token in line.tokens)
        word_count = sum(
            self.token_confidences[token] >= min_confidence and bool(_MEANINGFUL_WORD.search(token.text))
            for token in tokens
        )
        return word_count >= _MIN_TEXT_WORDS

    def has_new_words(self, page_text: str) -> bool:
        """Return True if the image shows more than a few words missing in ``page_text``.

        A few are ignored, because engines see words in logos and drawings.
        """
        word_counts = _count_words(word.text for word in self.words)
        return (
            not page_text or (word_counts & _count_words([page_text])).total() < _MIN_KNOWN_SHARE * word_counts.total()
        )


def _count_words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in _MEANINGFUL_WORD.findall(text.casefold()))


def _estimate_font_size(token: PageToken) -> float:
    """Estimate the font size from the height of a recognised word.

    A word without ascenders and descenders is half as high as its font size.
    """
    size_share = (
        _X_HEIGHT_SHARE
        + _ASCENDER_SHARE * bool(_ASCENDING_CHARACTER.search(token.text))
        + _DESCENDER_SHARE * bool(_DESCENDING_CHARACTER.search(token.text))
    )
    return (token.y1 - token.y0) / size_share
