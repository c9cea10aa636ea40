"""Patient facts from the bar codes of cover sheets and stickers.

A bar code with labels or HL7 fields states its facts by itself. A bar code with only a number counts if the page also
prints this number behind a label, or if a label directly above, below or left of the bar code names the kind of number.
The facts of a bar code are used all together or not at all: if one of them contradicts the printed facts, the sticker may
be another patient's, and only the print counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from statistics import median
from typing import Any

from PIL import Image

from evalkit.core.grouping import group_by
from evalkit.documents.bundle import Box, Identifier, IdentifierKind, Page, enclose_boxes
from evalkit.documents.identity.identifier_values import normalise_identifier
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.documents.identity.person_name import PATTERNS
from evalkit.documents.identity.same_person import NUMBER_KINDS, SamePersonVerdict, are_numbers_equal, compare_persons
from evalkit.documents.mupdf import load_pymupdf
from evalkit.documents.visibility import VECTOR_BLOCK, Rect

_FORMATS = "Code128,Code39,Codabar,ITF,QRCode,DataMatrix,PDF417,Aztec"
_MAX_CODES, _MAX_TEXT_LENGTH, _MAX_FIELDS, _MAX_VALUE_LENGTH = 20, 1000, 60, 60
#: The most areas of a page that are searched for bar codes, and the least length of an area's shorter side in points.
_MAX_AREAS, _MIN_AREA_SIDE = 8, 8
#: Resolution at which an area is drawn (dpi), the most pixels of the drawing, and the most pixels of a picture on the
#: page: a page with a larger picture is skipped, because decoding the picture may exhaust the machine.
_DPI, _MAX_PIXELS, _MAX_SOURCE_PIXELS = 300, 4_000_000, 20_000_000
#: Points by which an area is enlarged on each side: bar codes are recognised only with white around them.
_QUIET_ZONE = (-9, -9, 9, 9)
#: Least number of bars in a bar code, and in one row of it; largest median width of a bar in points; least and largest
#: share of a row's width that is dark. In tables, nearly all or nearly nothing is dark.
_MIN_BARS, _MIN_ROW_BARS, _MAX_BAR_WIDTH, _MIN_INK, _MAX_INK = 15, 3, 8, 0.2, 0.8
#: Largest distance of a label above or below a bar code, and of a label's words to the left of it, in ten-thousandths
#: of the page.
_LABEL_DISTANCE, _LABEL_SPAN = 200, 2500

#: HL7's codes for types of numbers, and the labels that a page would print for them.
_LABEL_BY_NUMBER_TYPE = {"": "MRN", "MR": "MRN", "PI": "MRN", "AN": "Account number", "VN": "Visit number"}
_CODED_KINDS = frozenset({"patient", "date_of_birth", "sex", *NUMBER_KINDS})

#: A bar code: its text, with only printable characters and line breaks, and its box on the page.
Barcode = tuple[str, Box]


def find_barcode_areas(blocks: Iterable[Mapping[str, Any]], image_areas: Iterable[Rect]) -> tuple[Rect, ...]:
    """Find areas of a page that may contain bar codes: pictures, rows of thin bars.

    The largest areas come first. ``blocks`` are MuPDF's.
    """
    vector_boxes = (block["bbox"] for block in blocks if block["type"] == VECTOR_BLOCK)
    rects = [box for box in vector_boxes if min(box[2] - box[0], box[3] - box[1]) <= _MAX_BAR_WIDTH]
    areas = [area for area in image_areas if min(area[2] - area[0], area[3] - area[1]) >= _MIN_AREA_SIDE]
    if len(rects) >= _MIN_BARS:
        bars = [bar for sideways in (0, 1) for bar in _find_bars(rects, sideways)]
        if len(bars) >= _MIN_BARS:
            areas.append(enclose_boxes(bars))
    return tuple(sorted(areas, key=lambda area: (area[0] - area[2]) * (area[3] - area[1]))[:_MAX_AREAS])


def _find_bars(rects: Iterable[Rect], sideways: int) -> Iterator[Rect]:
    """Find rectangles that stand side by side at one height, like the bars of a code.

    ``sideways`` is 0 for bars side by side, 1 for bars one above the other.
    """
    rows = group_by(rects, lambda rect: (round(rect[1 - sideways], 1), round(rect[3 - sideways], 1)))
    for row in rows.values():
        widths = [rect[2 + sideways] - rect[sideways] for rect in row]
        span = max(rect[2 + sideways] for rect in row) - min(rect[sideways] for rect in row)
        is_row_of_bars = len(row) >= _MIN_ROW_BARS and median(widths) <= _MAX_BAR_WIDTH
        if is_row_of_bars and _MIN_INK * span <= sum(widths) <= _MAX_INK * span:
            yield from row


def read_page_barcodes(
    page: Any, areas: Iterable[Rect], seen_pictures: dict[tuple[object, ...], tuple[Barcode, ...]]
) -> tuple[Barcode, ...]:
    """Read the bar codes in some areas of a ``pymupdf.Page``.

    ``seen_pictures`` has the bar codes of pictures on the file's earlier pages, by hash and place, and is extended: a
    letter's logo is on every page. Empty if the page cannot be drawn, or has a picture too large to be decoded.
    """
    barcodes: list[Barcode] = []
    pymupdf = load_pymupdf()
    try:
        if any(image[2] * image[3] > _MAX_SOURCE_PIXELS for image in page.get_images()):
            return ()
        display_list = page.get_displaylist()
        for area in dict.fromkeys(areas):  # some programs draw each picture twice
            clip = pymupdf.Rect(area) + _QUIET_ZONE
            scale = min(_DPI / 72, math.sqrt(_MAX_PIXELS / clip.get_area()))
            pixmap = display_list.get_pixmap(matrix=pymupdf.Matrix(scale, scale), clip=clip, colorspace=pymupdf.csGRAY)
            page_size = (scale * page.rect.width, scale * page.rect.height)
            picture = (pixmap.digest, *pixmap.irect, *page_size)
            if picture not in seen_pictures:
                image = Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples)
                seen_pictures[picture] = read_barcodes(image, (pixmap.x, pixmap.y), page_size)
            barcodes += seen_pictures[picture]
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base but Exception; the page's text has been read
        return ()
    return tuple(barcodes)


def read_barcodes(
    image: Image.Image, origin: tuple[float, float] = (0, 0), page_size: tuple[float, float] | None = None
) -> tuple[Barcode, ...]:
    """Read up to 20 bar codes, in any orientation, from a picture of a page or part.

    ``origin`` is the upper left corner of the part, ``page_size`` the size of the whole page, both in pixels of the
    picture; the picture is the whole page by default.
    """
    import zxingcpp

    results = zxingcpp.read_barcodes(
        image.convert("L"),
        zxingcpp.barcode_formats_from_str(_FORMATS),
        try_invert=False,
        text_mode=zxingcpp.TextMode.Plain,
    )
    (left, top), (width, height) = origin, page_size or image.size
    barcodes: list[Barcode] = []
    for result in (result for result in results[:_MAX_CODES] if len(result.text) <= _MAX_TEXT_LENGTH):
        place = result.position
        corners = (place.top_left, place.top_right, place.bottom_right, place.bottom_left)
        xs, ys = [(left + corner.x) / width for corner in corners], [(top + corner.y) / height for corner in corners]
        lines = re.sub(r"[\r\n\t\x1c-\x1e]+", "\n", result.text)
        text = "".join(character for character in lines if character.isprintable() or character == "\n").strip()
        barcodes.append((text, (min(xs), min(ys), max(xs), max(ys))))
    return tuple(barcodes)


def add_barcode_identifiers(page: Page, barcodes: Sequence[Barcode]) -> Page:
    """Return the page with facts from its bar codes added.

    Facts that OCR misread are corrected. A bar code that contradicts the printed facts is ignored.
    """
    is_recognised = bool(page.confidences)
    identity: dict[IdentifierKind, Identifier] = {}
    # A page may have two numbers of one kind, e.g. a national number and the institution's.
    further_numbers = [
        identifier
        for identifier in page.identifiers
        if identity.setdefault(identifier.kind, identifier) is not identifier
    ]
    statements = [facts for barcode in barcodes if (facts := _read_barcode_identifiers(barcode, page, identity))]
    confirming = [facts for facts in statements if any(fact.kind in identity for fact in facts)]
    for facts in confirming:
        if not _are_contradictory(identity.values(), facts, is_ocr_text=is_recognised):
            identity |= {
                fact.kind: _merge_printed_and_coded(identity.get(fact.kind), fact, is_ocr_text=is_recognised)
                for fact in facts
            }
    additional = [
        facts
        for facts in statements
        if facts not in confirming and not _are_contradictory(identity.values(), facts, is_ocr_text=is_recognised)
    ]
    if not any(_are_contradictory(*pair, is_ocr_text=False) for pair in combinations(additional, 2)):
        identity |= {fact.kind: fact for facts in additional for fact in facts}
    if not statements:
        return page
    issuer = next((identifier.issuer for identifier in page.identifiers if identifier.issuer), None)
    identifiers = (
        identifier.model_copy(update={"issuer": identifier.issuer or issuer})
        if identifier.kind in NUMBER_KINDS
        else identifier
        for identifier in (*identity.values(), *further_numbers)
    )
    by_place = sorted(identifiers, key=lambda identifier: (identifier.box[1], identifier.box[0]))
    return page.model_copy(update={"identifiers": tuple(by_place)})


def _are_contradictory(left: Iterable[Identifier], right: Iterable[Identifier], *, is_ocr_text: bool) -> bool:
    """Return True if a fact differs, or if the names may be those of two persons.

    A newborn, for example, has its mother's names except for the given name. Numbers of one kind on one page are taken to
    be of one institution, so different numbers contradict each other.
    """
    pairs = [pair for pair in product(left, right) if pair[0].kind == pair[1].kind]
    comparison = compare_persons(left, right, is_ocr_text=is_ocr_text)
    has_agreeing_name = any(agreeing.fact == "name" for agreeing in comparison.agreeing)
    is_name_doubtful = not has_agreeing_name and comparison.relation is not SamePersonVerdict.SAME
    return bool(comparison.differing) or any(
        (fact.kind == "patient" and is_name_doubtful)
        or (fact.kind in NUMBER_KINDS and not are_numbers_equal(fact, other, is_ocr_text=is_ocr_text))
        for fact, other in pairs
    )


def _merge_printed_and_coded(printed: Identifier | None, coded: Identifier, *, is_ocr_text: bool) -> Identifier:
    """Return the better of a printed fact and a bar code's fact of the same kind.

    The printed form stays, e.g. an abbreviated name, unless OCR seems to have misread some characters.
    """
    if printed is None:
        return coded
    if printed.normal == coded.normal:
        return printed.model_copy(update={"source": "barcode", "confidence": 1.0})
    is_misread = is_ocr_text and len(printed.normal) == len(coded.normal)
    return coded.model_copy(update={"box": printed.box}) if is_misread else printed


def _read_barcode_identifiers(
    barcode: Barcode, page: Page, identity: Mapping[IdentifierKind, Identifier]
) -> tuple[Identifier, ...]:
    text, box = barcode
    if PATTERNS["routing"].search(text):
        return ()
    facts = [
        fact.model_copy(update={"box": box, "source": "barcode"})
        for fact in find_patient_identifiers("\n".join(_format_label_lines(text)), ())
        if fact.kind in _CODED_KINDS and len(fact.value) <= _MAX_VALUE_LENGTH
    ]
    if not facts and PATTERNS["bare_number"].fullmatch(text):
        number = Identifier(
            kind="mrn", value=text, normal=normalise_identifier("mrn", text) or "", box=box, source="barcode"
        )
        facts = [number.model_copy(update={"kind": kind}) for kind in _find_number_kinds(number, page, identity)]
    return tuple(facts)


def _format_label_lines(text: str) -> Iterator[str]:
    """Yield a bar code's fields as a page would print them, e.g. "MRN: 123456"."""
    fields = PATTERNS["field_end"].split(text, _MAX_FIELDS)
    if pid := PATTERNS["pid"].search(text):
        pid_fields = ["", *pid[1].split("|"), *[""] * 18]
        numbers = [[*number.split("^"), *[""] * 4] for number in pid_fields[3].split("~")[:_MAX_FIELDS]]
        fields = [f"{_LABEL_BY_NUMBER_TYPE.get(number[4], 'Other')}: {number[0]}" for number in numbers]
        fields += [*pid_fields[5:6], *pid_fields[7:9], f"Account number: {pid_fields[18].partition('^')[0]}"]
    is_behind_name = False
    for field in fields:
        label, sign, value = (part.strip(' "') for part in field.replace("=", ":", 1).partition(":"))
        label, value = (re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", label), value) if sign else ("", label)
        if not 0 < len(value) <= _MAX_VALUE_LENGTH:
            continue
        if name := PATTERNS["name_field"].fullmatch(value):
            value, label, is_behind_name = f"{name[1]}, {name[2]} {name[3]}", label or "Patient name", True
        elif (date := PATTERNS["date_field"].fullmatch(value)) and (
            re.search("birth|dob", label, re.IGNORECASE) or (is_behind_name and not label)
        ):
            value, label = "-".join(date.groups()), label or "DOB"
        elif is_behind_name and value in ("F", "M", "X"):
            label = label or "Sex"
        yield f"{label}: {value}" if label else value


def _find_number_kinds(
    number: Identifier, page: Page, identity: Mapping[IdentifierKind, Identifier]
) -> Iterable[IdentifierKind]:
    """Find the kinds of a bar code's bare number.

    They are the kinds of equal printed numbers; without such, the kind of the only label near the bar code.
    """
    printed_kinds = {
        kind
        for kind in NUMBER_KINDS
        if kind in identity and are_numbers_equal(identity[kind], number, is_ocr_text=bool(page.confidences))
    }
    label_kinds = {
        fact.kind
        for phrase in _find_neighbouring_phrases(number.box, page)
        for fact in find_patient_identifiers(f"{phrase}: {number.value}", ())
        if fact.kind in NUMBER_KINDS and fact.normal == number.normal
    }
    return printed_kinds or (label_kinds if len(label_kinds) == 1 else ())


def _find_neighbouring_phrases(box: Box, page: Page) -> Iterator[str]:
    left, top, right, bottom = (round(10_000 * edge) for edge in box)
    left_side = (left - _LABEL_SPAN, top, left, bottom)
    above, below = (left, top - _LABEL_DISTANCE, right, top), (left, bottom, right, bottom + _LABEL_DISTANCE)
    for x0, y0, x1, y1 in (left_side, above, below):
        words = (
            word for word in page.words if x0 <= (word[2] + word[4]) / 2 <= x1 and y0 <= (word[3] + word[5]) / 2 <= y1
        )
        yield " ".join(page.text[start:end] for start, end, *_ in words).rstrip(" :#")
