"""Page images for a language model: which pages, why, and how large.

A picture costs tokens, so only those pages are shown whose text may lack something that a person sees: pages that were
not read or read poorly, pages with tick boxes or stamps, and recognised pages with tables.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.documents.deskew import detect_ink_in_downscaled_image
from evalkit.documents.mupdf import OpenedPdf
from evalkit.documents.quality import GOOD_SCORE
from evalkit.documents.render import encode_png, open_pdf_to_render, render_opened_page
from evalkit.errors import DocumentError

#: Reasons to show a page's picture, the most useful first: no text could be read; the text is poor or incomplete; tick
#: boxes; ink that is no text, such as a stamp, a signature or handwriting; a table on a recognised page.
PictureReason = Literal["image", "poor", "tick_boxes", "stamp", "table"]
_REASONS_BY_USE: tuple[PictureReason, ...] = get_args(PictureReason)

#: Resolution at which marks are searched for; lengths below are in its pixels, about a quarter of a millimetre.
_MARK_DPI = 100
#: Sides of a tick box, its largest ratio of sides, and the smallest share of each side that is drawn.
_TICK_BOX_SIDES, _MAX_SIDE_RATIO, _MIN_DRAWN_SIDE = range(7, 27), 1.25, 0.9
_MIN_TICK_BOX_POINTS, _MAX_TICK_BOX_POINTS = 4, 20
#: A tick box is filled less than this: otherwise it is a bullet.
_MAX_TICK_BOX_FILL = 0.9
#: A tick box has a word at most so many sides beside it. One box alone is taken for a sign or a logo.
_MAX_LABEL_DISTANCE, _MIN_TICK_BOXES = 4, 2
#: Thinner ink is a rule or an underline.
_MAX_RULE_WIDTH = 4
#: Ink around words, such as a frame or a table's grid: the most of its rectangle that it fills, the least that words do.
_MAX_FRAME_FILL, _MIN_FRAMED_WORDS = 0.2, 0.03
#: Margin around a word inside which all ink is the word's; cells that touch belong to one stamp if both have ink.
_WORD_MARGIN, _CELL = 3, 8
#: Least width, height and ink of a stamp: 12 by 6 millimetres.
_MIN_STAMP_WIDTH, _MIN_STAMP_HEIGHT, _MIN_STAMP_INK = 48, 24, 150
#: Marks at the same place of several pages, in so many steps of the page, are a letterhead's logo.
_PLACE_STEPS = 40

_Rectangle = tuple[int, int, int, int]
#: Rows and columns of connected ink.
_Slices = tuple[slice, slice]


class PageImage(NamedTuple):
    """A page as an image for a model."""

    page_number: int
    """Number of the page, from 1."""
    png: bytes
    reasons: tuple[PictureReason, ...] = ()
    """Reasons to show the page; empty if all pages are shown."""

    @property
    def may_show_unread_words(self) -> bool:
        """True if the picture may show words that the page's text lacks."""
        return bool(set(self.reasons) - {"table"})


def render_page_images(
    pdf: Path | bytes, reasons_by_page: Mapping[int, tuple[PictureReason, ...]], max_pixels: int
) -> tuple[PageImage, ...]:
    """Render these pages (from 1) as images for a model, in that order.

    ``max_pixels``: of one image. DocumentError if a page cannot be drawn.
    """
    opened_pdf, path = open_pdf_to_render(pdf)
    with opened_pdf.document:
        return tuple(
            PageImage(
                page_number,
                encode_png(render_opened_page(opened_pdf, path, page_number, 150, max_pixels=max_pixels)),
                reasons,
            )
            for page_number, reasons in reasons_by_page.items()
        )


def choose_and_render_page_images(
    pdf: Path | bytes, bundle: DocumentBundle, max_images: int, max_pixels: int
) -> tuple[PageImage, ...]:
    """Render the pages whose image tells a model more than their text, in order.

    Of more than ``max_images`` pages, those with the most useful reasons; then the first. Errors as
    ``render_page_images``.
    """
    opened_pdf, path = open_pdf_to_render(pdf)
    with opened_pdf.document:
        reasons_by_page = find_picture_reasons(opened_pdf, path, bundle)
    chosen_pages = sorted(
        reasons_by_page, key=lambda page_number: _REASONS_BY_USE.index(reasons_by_page[page_number][0])
    )[:max_images]
    return render_page_images(pdf, {number: reasons_by_page[number] for number in sorted(chosen_pages)}, max_pixels)


def find_picture_reasons(
    opened_pdf: OpenedPdf, path_for_errors: Path, bundle: DocumentBundle
) -> dict[int, tuple[PictureReason, ...]]:
    """Map page numbers to the reasons for showing a model the page's image.

    Pages that cannot be drawn are left out.
    """
    shown_pages = [page for page in bundle.pages if page.status not in (PageStatus.BLANK, PageStatus.FAILED)]
    reasons_by_page: dict[int, set[PictureReason]] = {
        page.page_num: _find_reasons_in_text(page) for page in shown_pages
    }
    stamps_by_page: dict[int, list[_Rectangle]] = {}
    for page in shown_pages:
        if page.status is PageStatus.TEXT and not _may_have_marks(opened_pdf, page.page_num):
            continue
        try:
            image = render_opened_page(opened_pdf, path_for_errors, page.page_num, _MARK_DPI)
        except DocumentError:
            del reasons_by_page[page.page_num]
            continue
        has_tick_boxes, stamps_by_page[page.page_num] = _find_marks(image, page)
        reasons_by_page[page.page_num] |= {"tick_boxes"} if has_tick_boxes else set()
    page_counts = Counter(stamp for stamps in stamps_by_page.values() for stamp in set(stamps))
    for page_number, stamps in stamps_by_page.items():
        reasons_by_page[page_number] |= {"stamp"} if any(page_counts[stamp] == 1 for stamp in stamps) else set()
    return {
        page_number: tuple(sorted(reasons, key=_REASONS_BY_USE.index))
        for page_number, reasons in reasons_by_page.items()
        if reasons
    }


def _find_reasons_in_text(page: Page) -> set[PictureReason]:
    is_read_poorly = page.quality is not None and page.quality < GOOD_SCORE
    reasons: dict[PictureReason, bool] = {
        "image": page.status is PageStatus.IMAGE,
        "poor": is_read_poorly or bool(page.problems or page.unread or page.damage),
        # Printed tables are in the text, cell by cell; of recognised ones the columns are guessed.
        "table": page.layout_metadata.has_tables and page.status is PageStatus.OCR,
    }
    return {reason for reason, is_present in reasons.items() if is_present}


def _may_have_marks(opened_pdf: OpenedPdf, page_number: int) -> bool:
    """Tell from what a page of text draws if it may have tick boxes or a stamp.

    Words, long rules and large rectangles are neither; drawing every page would take ten times as long.
    """
    try:
        page = opened_pdf.document.load_page(page_number - 1)
        if (
            page.first_annot
            or page.first_widget
            or any("text" not in operation and "path" not in operation for operation, _ in page.get_bboxlog())
        ):
            return True
        small_piece_count = 0
        for piece_kind, *points in (piece for path in page.get_cdrawings() for piece in path["items"]):
            if piece_kind not in ("re", "l"):
                return True
            x0, y0, x1, y1 = points[0] if piece_kind == "re" else (*points[0], *points[1])
            width, height = abs(x1 - x0), abs(y1 - y0)
            if piece_kind == "l" and min(width, height) > 1:
                return True
            small_piece_count += _MIN_TICK_BOX_POINTS <= max(width, height) <= _MAX_TICK_BOX_POINTS
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base; if drawing fails too, the page is left out
        return True
    return small_piece_count >= _MIN_TICK_BOXES


def _find_marks(image: Image.Image, page: Page) -> tuple[bool, list[_Rectangle]]:
    """Find tick boxes, and places of ink that is no text, in steps of the page."""
    ink = detect_ink_in_downscaled_image(image.convert("L"))
    height, width = ink.shape
    word_boxes = [
        (
            round(x0 * width / 10_000),
            round(y0 * height / 10_000),
            round(x1 * width / 10_000),
            round(y1 * height / 10_000),
        )
        for _, _, x0, y0, x1, y1 in page.words
    ]
    word_mask = np.zeros(ink.shape, dtype=np.bool_)
    for x0, y0, x1, y1 in word_boxes:
        word_mask[max(y0 - _WORD_MARGIN, 0) : y1 + _WORD_MARGIN, max(x0 - _WORD_MARGIN, 0) : x1 + _WORD_MARGIN] = True
    labels, _ = ndimage.label(ink, np.ones((3, 3)))
    ink_places: list[_Slices] = ndimage.find_objects(labels)
    boxes = [
        (columns.start, rows.start, columns.stop, rows.stop)
        for number, (rows, columns) in enumerate(ink_places, 1)
        if _has_size_of_tick_box(rows.stop - rows.start, columns.stop - columns.start)
        and _is_tick_box(labels[rows, columns] == number)
        # What a page of text prints as a character is read already.
        and not (page.status is PageStatus.TEXT and word_mask[rows, columns].any())
    ]
    labelled_boxes = [box for box in boxes if _has_label(box, word_boxes)]
    for x0, y0, x1, y1 in labelled_boxes:
        word_mask[y0:y1, x0:x1] = True
    return len(labelled_boxes) >= _MIN_TICK_BOXES, list(_find_stamps(ink, labels, ink_places, word_mask))


def _has_size_of_tick_box(height: int, width: int) -> bool:
    return (
        height in _TICK_BOX_SIDES
        and width in _TICK_BOX_SIDES
        and max(height, width) <= _MAX_SIDE_RATIO * min(height, width)
    )


def _is_tick_box(ink: NDArray[np.bool_]) -> bool:
    """Return True if connected ink has four drawn sides and is not filled."""
    edge = max(round(len(ink) / 8), 1)
    sides = (ink[:edge].any(0), ink[-edge:].any(0), ink[:, :edge].any(1), ink[:, -edge:].any(1))
    return ink.mean() <= _MAX_TICK_BOX_FILL and all(side.mean() >= _MIN_DRAWN_SIDE for side in sides)


def _has_label(box: _Rectangle, word_boxes: Iterable[_Rectangle]) -> bool:
    x0, y0, x1, y1 = box
    reach = _MAX_LABEL_DISTANCE * (x1 - x0)
    return any(
        word_y0 < y1 and word_y1 > y0 and (0 <= word_x0 - x1 <= reach or 0 <= x0 - word_x1 <= reach)
        for word_x0, word_y0, word_x1, word_y1 in word_boxes
    )


def _find_stamps(
    ink: NDArray[np.bool_], labels: NDArray[np.int32], ink_places: Sequence[_Slices], word_mask: NDArray[np.bool_]
) -> Iterator[_Rectangle]:
    """Yield the rectangles of ink that is no word, rule, or frame around words."""
    mark_mask = ink & ~word_mask
    for number, (rows, columns) in enumerate(ink_places, 1):
        height, width = rows.stop - rows.start, columns.stop - columns.start
        if max(height, width) >= _MIN_STAMP_HEIGHT:
            own_ink = labels[rows, columns] == number
            is_frame = own_ink.mean() < _MAX_FRAME_FILL and word_mask[rows, columns].mean() > _MIN_FRAMED_WORDS
            if min(height, width) <= _MAX_RULE_WIDTH or is_frame:
                mark_mask[rows, columns] &= ~own_ink
    height, width = (length // _CELL for length in ink.shape)
    ink_by_cell = mark_mask[: height * _CELL, : width * _CELL].reshape(height, _CELL, width, _CELL).sum((1, 3))
    groups, _ = ndimage.label(ink_by_cell > 1, np.ones((3, 3)))  # a single pixel is dust
    for number, (rows, columns) in enumerate(ndimage.find_objects(groups), 1):
        is_large = (
            _CELL * (columns.stop - columns.start) >= _MIN_STAMP_WIDTH
            and _CELL * (rows.stop - rows.start) >= _MIN_STAMP_HEIGHT
        )
        if is_large and ink_by_cell[rows, columns][groups[rows, columns] == number].sum() >= _MIN_STAMP_INK:
            edges = (columns.start / width, rows.start / height, columns.stop / width, rows.stop / height)
            yield tuple(round(_PLACE_STEPS * edge) for edge in edges)
