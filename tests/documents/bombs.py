"""Small files that want to be large: what they unpack to, how deep they are nested, how often they call themselves."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

_PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox%s/Contents 4 0 R/Resources<</Font<</F 5 0 R>>/XObject<</X 10 0 R>>>>>>"
_FORM = b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</Font<</F 5 0 R>>/XObject<</X %d 0 R>>>>%s"
_MEGABYTE = 2**20


def whole(objects: Mapping[int, bytes]) -> bytes:
    """A PDF of these numbered objects; 1 is its catalogue."""
    parts, at, length = [b"%PDF-1.7\n"], {}, 9
    for number, body in objects.items():
        at[number] = length
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        length += len(parts[-1])
    out = b"".join(parts)
    top = max(objects) + 1
    rows = b"".join(b"%010d 00000 n \n" % at.get(number, 0) for number in range(1, top))
    table = b"xref\n0 %d\n0000000000 65535 f \n%s" % (top, rows)
    return out + table + b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (top, len(out))


def stream(data: bytes, about: bytes = b"<<", filters: bytes = b"") -> bytes:
    """A stream object."""
    return b"%s/Length %d%s>>stream\n%s\nendstream" % (about, len(data), filters, data)


def page(content: bytes, more: Mapping[int, bytes] | None = None, box: bytes = b"[0 0 612 792]") -> bytes:
    """A document of one page; ``content`` is a stream object, 10 is drawn as X."""
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    head = {1: b"<</Type/Catalog/Pages 2 0 R>>", 2: pages, 3: _PAGE % box, 4: content, 5: font}
    return whole(head | dict(more or {}))


def packed(unit: bytes, megabytes: int, rounds: int = 1, about: bytes = b"<<") -> bytes:
    """A stream that unpacks to so many megabytes."""
    chunk = unit * (_MEGABYTE // len(unit))
    pack = zlib.compressobj(9)
    data = b"".join([*(pack.compress(chunk) for _ in range(megabytes)), pack.flush()])
    for _ in range(rounds - 1):
        data = zlib.compress(data, 9)
    return stream(data, about, b"/Filter[%s]" % (b"/FlateDecode" * rounds))


def _laughs(each: int, depth: int) -> bytes:
    forms = {10 + n: stream(b"/X Do " * each, _FORM % (11 + n, b"")) for n in range(depth)}
    return page(stream(b"/X Do"), forms | {10 + depth: stream(b"BT /F 9 Tf (ha) Tj ET", _FORM % (999, b""))})


def _image(width: int, megabytes: int) -> bytes:
    about = b"<</Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB/BitsPerComponent 8" % (width, width)
    return page(stream(b"q 600 0 0 700 0 0 cm /X Do Q"), {10: packed(b"\0", megabytes, about=about)})


def _many_pages(number: int) -> bytes:
    kids = b" ".join(b"%d 0 R" % (10 + n) for n in range(number))
    leaf = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]>>"
    head = {1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, number)}
    return whole(head | {10 + n: leaf for n in range(number)})


#: By name; ``strength`` 1 is for every run of the tests, more for the long ones.
BOMBS: Mapping[str, Callable[[int], bytes]] = {
    "blanks that unpack to 64 MB": lambda strength: page(packed(b" ", 64 * strength)),
    "unpacked three times": lambda strength: page(packed(b"0 ", 512 * strength, rounds=3)),
    "a million words": lambda strength: page(packed(b"BT /F 9 Tf 10 10 Td (hello there) Tj ET\n", 40 * strength)),
    "millions of lines": lambda strength: page(packed(b"0 0 m 9 9 l S\n", 2 * strength)),
    "a large picture": lambda strength: _image(8192 * strength, 192 * strength**2),
    "a picture larger than any memory": lambda strength: _image(2_000_000_000, 8),
    "nested brackets": lambda strength: page(stream(b"[" * 1_000_000 * strength)),
    "nested brackets in an object": lambda strength: page(
        stream(b"q Q"), {6: b"[" * 1_000_000 * strength + b"]" * 1_000_000 * strength}
    ),
    "a million saved states": lambda strength: page(packed(b"q ", 2 * strength)),
    "a form that draws itself": lambda strength: page(
        stream(b"/X Do"), {10: stream(b"/X Do /X Do", _FORM % (10, b""))}
    ),
    "a billion laughs": lambda strength: _laughs(10, 9),
    "a page of a thousand kilometres": lambda strength: page(
        stream(b"BT /F 9 Tf 10 10 Td (hello) Tj ET"), box=b"[0 0 1e9 1e9]"
    ),
    "100,000 pages": lambda strength: _many_pages(100_000),
}  # fmt: skip
