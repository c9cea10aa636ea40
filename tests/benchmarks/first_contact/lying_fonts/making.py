"""A maker of small PDFs whose fonts draw one thing and may say another.

A line of text is plain, with marks where what a person sees differs from what the file says:

    {5.2|1.3}   drawn 5.2, and the font says 1.3 (glyph by glyph, the rest on the last glyph)
    [5.2|1.3]   drawn 5.2, and an /ActualText around it says 1.3
    «5.2|1.3»   the font draws and says 1.3, and a picture of 5.2 lies over it
    §           at the start of a line: in the second font

Outlines come from the fonts that matplotlib brings, so that the same files are made everywhere.
"""

from __future__ import annotations

import io
import logging
import re
import unicodedata
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
from fontTools.agl import UV2AGL
from fontTools.fontBuilder import FontBuilder
from fontTools.misc.eexec import encrypt
from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.pens.transformPen import TransformPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont

# Some of the fonts were made before 1970, says their head.
logging.getLogger("fontTools").setLevel(logging.ERROR)

FOLDER = Path(mpl.get_data_path()) / "fonts" / "ttf"

Kind = Literal["type0", "type0cff", "truetype", "type1c", "type1", "type3", "type3bitmap", "base14"]
Outline = list[tuple[str, tuple[Any, ...]]]


class LyingFont(NamedTuple):
    """A file of which the font says what it shows, or does not."""

    file: Path
    lies: bool
    shown: str
    """What a person sees, line by line."""
    read: str
    """What the text layer says, line by line."""
    what: str
    """What is special about the file."""


@cache
def source(name: str) -> tuple[TTFont, Any]:
    font = TTFont(FOLDER / f"{name}.ttf")
    return font, font.getGlyphSet()


#: What the Computer Modern fonts hold in places of their own.
MODERN = {"−": "minus", "ﬁ": "fi", "ﬂ": "fl", "ﬀ": "ff", "ﬃ": "ffi", "’": "quoteright", "–": "endash"}


@cache
def outline(name: str, char: str) -> tuple[tuple[tuple[str, tuple[Any, ...]], ...], int]:
    """Return the outline of a character and its width, with 1000 units to the em."""
    font, glyphs = source(name)
    glyph = font.getBestCmap().get(ord(char)) or MODERN.get(char, "")
    if glyph not in glyphs and char == "\N{MICRO SIGN}":
        glyph = font.getBestCmap().get(0x3BC, "")
    if char in " \u00a0":
        return (), 300
    if glyph not in glyphs:
        raise KeyError(f"{name} has no {char!r}")
    scale = 1000 / font["head"].unitsPerEm
    pen = DecomposingRecordingPen(glyphs)
    glyphs[glyph].draw(TransformPen(pen, (scale, 0, 0, scale, 0, 0)))
    return tuple((operator, arguments) for operator, arguments in pen.value), round(glyphs[glyph].width * scale)


# -------------------------------------------------------------------------------------------------------- the file


class Pdf:
    """Objects of a PDF, written one after the other."""

    def __init__(self) -> None:
        self.objects: list[bytes] = [b"", b""]

    def add(self, body: str | bytes) -> int:
        self.objects.append(body.encode("latin-1") if isinstance(body, str) else body)
        return len(self.objects)

    def stream(self, data: bytes, entries: str = "", *, packed: bool = True) -> int:
        filters = " /Filter /FlateDecode" if packed else ""
        data = zlib.compress(data) if packed else data
        head = f"<< {entries}{filters} /Length {len(data)} >>\nstream\n".encode("latin-1")
        return self.add(head + data + b"\nendstream")

    def write(self, path: Path, pages: Sequence[int], producer: str) -> None:
        kids = " ".join(f"{page} 0 R" for page in pages)
        self.objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
        self.objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()
        info = self.add(f"<< /Producer ({producer}) >>")
        out = bytearray(b"%PDF-1.6\n%\xe2\xe3\xcf\xd3\n")
        places = []
        for number, body in enumerate(self.objects, start=1):
            places.append(len(out))
            out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
        start = len(out)
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
        out += b"".join(b"%010d 00000 n \n" % place for place in places)
        out += b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
            len(places) + 1,
            info,
            start,
        )
        path.write_bytes(out)


# -------------------------------------------------------------------------------------------------------- the fonts


@dataclass
class Face:
    """One font of a file: its outlines, its codes, and what it says of each code."""

    kind: Kind
    source: str = "DejaVuSans"
    name: str = "ABCDEF+Clinical"
    swap: Mapping[str, str] = field(default_factory=dict)
    """Characters that the font says instead of those drawn, wherever they stand."""
    to_unicode: bool = True
    names: Literal["shown", "told", "g", "a"] = "told"
    """Names of the glyphs: of what is drawn, of what is said, or only numbered."""
    cmap: Literal["shown", "told", "none", "codes"] = "none"
    """What the cmap inside a TrueType file says."""
    first: int = 33
    """First code, of fonts whose codes are not letters."""
    ascii_codes: bool = True
    codes: Mapping[str, int] = field(default_factory=dict)
    duplicate: bool = False
    """Whether a glyph takes turns between two codes."""
    cid_map: bool = False
    """Whether the codes of a composite font lead to glyphs by a table."""
    win_ansi: bool = False
    ranges: bool = False
    """Whether the map to Unicode is written as ranges."""
    composite: bool = False
    """Whether accented letters are made of two glyphs."""
    shape: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    """Characters drawn smaller or wider, and moved: scale x, scale y, move up."""
    slant: float = 0.0
    builtin: bool = False
    """Whether a Type 1 font's own encoding is used."""
    base14: str = "Helvetica"
    _pairs: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    _turn: int = 0

    @property
    def is_wide(self) -> bool:
        return self.kind in ("type0", "type0cff")

    def encode(self, shown: str, told: str) -> list[int]:
        return [self.code(*pair) for pair in self.pairs(shown, told)]

    def pairs(self, shown: str, told: str) -> list[tuple[str, str]]:
        if shown == told:
            return [(char, self.swap.get(char, char)) for char in shown]
        cut = len(shown) - 1
        return [*zip(shown[:cut], told[:cut].ljust(cut, "\u200b"), strict=True), (shown[-1], told[cut:] or "\u200b")]

    def code(self, shown: str, told: str) -> int:
        codes = self._pairs.setdefault((shown, told), [])
        self._turn += 1
        wanted = 2 if self.duplicate else 1
        if len(codes) < wanted and (not codes or self._turn % 2):
            codes.append(self._free(shown, told, again=bool(codes)))
        return codes[self._turn % len(codes)]

    def _free(self, shown: str, told: str, *, again: bool) -> int:
        used = {code for codes in self._pairs.values() for code in codes}
        if self.is_wide:
            return max(used, default=2) + 1
        if not again and (code := self.codes.get(shown)) is not None and code not in used:
            return code
        letter = told if len(told) == 1 else shown
        if self.kind == "base14":
            letter = shown
        if self.ascii_codes and not again and len(letter) == 1:
            with_code = letter.encode("cp1252", "ignore")
            if with_code and with_code[0] not in used:
                return with_code[0]
        start = self.first if not self.ascii_codes else 0xA1
        ahead = [code for code in range(start, 256) if code not in used and code != 127]
        return ahead[0] if ahead else next(code for code in range(1, 33) if code not in used)

    def glyph(self, char: str) -> tuple[Outline, int]:
        ops, width = outline(self.source, char)
        across, up, move = self.shape.get(char, (1.0, 1.0, 0.0))
        pen = DecomposingRecordingPen({})
        turned = TransformPen(pen, (across, 0, self.slant, up, 0, move))
        for operator, arguments in ops:
            getattr(turned, operator)(*arguments)
        return list(pen.value), round(width * across)

    def width(self, shown: str) -> float:
        return sum(self.glyph(char)[1] for char in shown) if shown else 0.0

    def rows(self) -> list[tuple[int, str, str]]:
        return sorted((code, *pair) for pair, codes in self._pairs.items() for code in codes)

    def glyph_name(self, code: int, shown: str, told: str, seen: set[str]) -> str:
        if self.names in ("g", "a"):
            return f"{self.names}{code:02d}"
        char = (shown if self.names == "shown" else told)[:1]
        name = str(UV2AGL.get(ord(char), f"uni{ord(char):04X}"))
        while name in seen:
            name += ".alt"
        seen.add(name)
        return name

    # ---- parts

    def unicode_map(self) -> bytes:
        digits = 4 if self.is_wide else 2
        rows = [(code, told.encode("utf-16-be").hex().upper()) for code, _, told in self.rows()]
        lines = ["/CIDInit /ProcSet findresource begin", "12 dict begin", "begincmap"]
        lines += ["/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def"]
        lines += ["/CMapName /Adobe-Identity-UCS def", "/CMapType 2 def", "1 begincodespacerange"]
        lines += [f"<{'0' * digits}> <{'F' * digits}>", "endcodespacerange"]
        for start in range(0, len(rows), 80):
            part = rows[start : start + 80]
            lines.append(f"{len(part)} {'beginbfrange' if self.ranges else 'beginbfchar'}")
            for code, text in part:
                key = f"<{code:0{digits}X}>"
                lines.append(f"{key} {key} <{text}>" if self.ranges else f"{key} <{text}>")
            lines.append("endbfrange" if self.ranges else "endbfchar")
        lines += ["endcmap", "CMapName currentdict /CMap defineresource pop", "end", "end"]
        return "\n".join(lines).encode()

    def truetype(self, order: Sequence[str], drawn: Mapping[str, str], cmap: Mapping[int, str]) -> bytes:
        builder = FontBuilder(1000, isTTF=True)
        glyphs: dict[str, Any] = {}
        widths: dict[str, tuple[int, int]] = {}
        names = [".notdef", *order]
        for name in order:
            pen = TTGlyphPen(None)
            ops, width = self.glyph(drawn[name])
            base, accent = (*unicodedata.normalize("NFD", drawn[name]), "", "")[:2]
            if self.composite and accent:
                for part, char in ((f"{name}.base", base), (f"{name}.accent", SPACING[accent])):
                    below = TTGlyphPen(None)
                    part_ops, part_width = self.glyph(char)
                    for operator, arguments in part_ops:
                        getattr(below, operator)(*arguments)
                    glyphs[part], widths[part] = below.glyph(), (part_width, 0)
                    names.append(part)
                pen = TTGlyphPen(dict.fromkeys(names))
                pen.addComponent(f"{name}.base", (1, 0, 0, 1, 0, 0))
                shift = (widths[f"{name}.base"][0] - widths[f"{name}.accent"][0]) // 2
                pen.addComponent(f"{name}.accent", (1, 0, 0, 1, shift, 0))
            else:
                for operator, arguments in ops:
                    getattr(pen, operator)(*arguments)
            glyphs[name], widths[name] = pen.glyph(), (width, 0)
        glyphs[".notdef"], widths[".notdef"] = TTGlyphPen(None).glyph(), (500, 0)
        builder.setupGlyphOrder(names)
        builder.setupGlyf(glyphs)
        builder.setupHorizontalMetrics(widths)
        builder.setupHorizontalHeader(ascent=900, descent=-200)
        builder.setupCharacterMap(dict(cmap))
        builder.setupPost()
        builder.setupNameTable({"familyName": "Clinical", "styleName": "Regular"})
        builder.setupOS2()
        builder.font["head"].created = builder.font["head"].modified = 3_800_000_000
        builder.font.recalcTimestamp = False
        if not cmap:
            del builder.font["cmap"]
        elif all(code >= 0xF000 for code in cmap):
            table = builder.font["cmap"].tables[0]
            table.platformID, table.platEncID = 3, 0
            builder.font["cmap"].tables = [table]
        out = io.BytesIO()
        builder.font.save(out)
        return out.getvalue()

    def compact(self, order: Sequence[str], drawn: Mapping[str, str]) -> bytes:
        builder = FontBuilder(1000, isTTF=False)
        strings = {}
        for name in [".notdef", *order]:
            ops, width = self.glyph(drawn[name]) if name in drawn else ([], 500)
            pen = T2CharStringPen(width, None)
            for operator, arguments in ops:
                getattr(pen, operator)(*arguments)
            strings[name] = pen.getCharString()
        builder.setupGlyphOrder([".notdef", *order])
        builder.setupCharacterMap({})
        builder.setupCFF("Clinical", {"FullName": "Clinical"}, strings, {})
        builder.setupHorizontalMetrics(dict.fromkeys([".notdef", *order], (500, 0)))
        builder.setupHorizontalHeader()
        builder.setupNameTable({"familyName": "Clinical", "styleName": "Regular"})
        builder.setupOS2()
        builder.setupPost()
        builder.font["head"].created = builder.font["head"].modified = 3_800_000_000
        builder.font.recalcTimestamp = False
        out = io.BytesIO()
        builder.font.save(out)
        return bytes(TTFont(io.BytesIO(out.getvalue())).reader["CFF "])

    def adobe(self, names: Mapping[int, str], drawn: Mapping[str, str]) -> tuple[bytes, bytes, bytes]:
        """Return the three parts of a Type 1 font program."""
        head = [f"%!PS-AdobeFont-1.0: {self.name.partition('+')[2]}", "11 dict begin"]
        head += ["/FontInfo 2 dict dup begin /version (1.0) readonly def end readonly def"]
        head += [f"/FontName /{self.name.partition('+')[2]} def", "/PaintType 0 def", "/FontType 1 def"]
        head += ["/FontMatrix [0.001 0 0 0.001 0 0] readonly def", "/Encoding 256 array"]
        head += ["0 1 255 {1 index exch /.notdef put} for"]
        head += [f"dup {code} /{name} put" for code, name in names.items()]
        head += [
            "readonly def",
            "/FontBBox {-200 -300 1200 1000} readonly def",
            "currentdict end",
            "currentfile eexec\n",
        ]
        body = bytearray(b"0000dup /Private 8 dict dup begin\n")
        body += b"/RD {string currentfile exch readstring pop} executeonly def\n/ND {noaccess def} executeonly def\n"
        body += b"/NP {noaccess put} executeonly def\n/BlueValues [] def\n/MinFeature {16 16} def\n/password 5839 def\n"
        body += b"2 index /CharStrings %d dict dup begin\n" % (len(drawn) + 1)
        for name in [".notdef", *drawn]:
            ops, width = self.glyph(drawn[name]) if name in drawn else ([], 500)
            string = encrypt(b"\0\0\0\0" + charstring(ops, width), 4330)[0]
            body += f"/{name} {len(string)} RD ".encode() + string + b" ND\n"
        body += (
            b"end\nend\nreadonly put\nnoaccess put\ndup /FontName get exch definefont pop\nmark currentfile closefile\n"
        )
        tail = ("0" * 64 + "\n") * 8 + "cleartomark\n"
        return "\n".join(head).encode(), encrypt(bytes(body), 55665)[0], tail.encode()

    # ---- the whole

    def build(self, pdf: Pdf) -> int:
        said = f" /ToUnicode {pdf.stream(self.unicode_map())} 0 R" if self.to_unicode else ""
        if self.kind == "base14":
            kept = "" if self.base14 in ("Symbol", "ZapfDingbats") else " /Encoding /WinAnsiEncoding"
            return pdf.add(f"<< /Type /Font /Subtype /Type1 /BaseFont /{self.base14}{kept}{said} >>")
        if self.is_wide:
            return self._build_wide(pdf, said)
        if self.kind.startswith("type3"):
            return self._build_type3(pdf, said)
        return self._build_simple(pdf, said)

    def _build_wide(self, pdf: Pdf, said: str) -> int:
        rows = self.rows()
        order, drawn, places = ["blank1", "blank2"], {"blank1": " ", "blank2": " "}, {}
        turned = list(reversed(rows)) if self.cid_map else rows
        for code, shown, _ in turned:
            places[code] = len(order) + 1
            order.append(f"glyph{code:05d}")
            drawn[order[-1]] = shown
        cmap = {}
        if self.cmap in ("shown", "told"):
            for code, shown, told in rows:
                cmap[ord((shown if self.cmap == "shown" else told)[0])] = f"glyph{code:05d}"
        widths = " ".join(f"{code} [{self.glyph(shown)[1]}]" for code, shown, _ in rows)
        if self.kind == "type0":
            program = pdf.stream(self.truetype(order, drawn, cmap))
            kind, key = "CIDFontType2", f"/FontFile2 {program} 0 R"
            pairs = b"".join(places.get(code, 0).to_bytes(2, "big") for code in range(max(places) + 1))
            gids = f" /CIDToGIDMap {pdf.stream(pairs)} 0 R" if self.cid_map else " /CIDToGIDMap /Identity"
        else:
            program = pdf.stream(self.compact(order, drawn), "/Subtype /CIDFontType0C")
            kind, key, gids = "CIDFontType0", f"/FontFile3 {program} 0 R", ""
        below = pdf.add(
            f"<< /Type /Font /Subtype /{kind} /BaseFont /{self.name} /DW 500 /W [{widths}]{gids} /CIDSystemInfo "
            f"<< /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor {self._descriptor(pdf, key)} 0 R >>"
        )
        return pdf.add(
            f"<< /Type /Font /Subtype /Type0 /BaseFont /{self.name} /Encoding /Identity-H "
            f"/DescendantFonts [{below} 0 R]{said} >>"
        )

    def _descriptor(self, pdf: Pdf, key: str, flags: int = 4) -> int:
        return pdf.add(
            f"<< /Type /FontDescriptor /FontName /{self.name} /Flags {flags} /FontBBox [-200 -300 1200 1000] "
            f"/ItalicAngle 0 /Ascent 900 /Descent -200 /CapHeight 700 /StemV 80 {key} >>"
        )

    def _widths(self) -> str:
        rows = {code: shown for code, shown, _ in self.rows()}
        numbers = range(min(rows), max(rows) + 1)
        widths = " ".join(str(self.glyph(rows[code])[1] if code in rows else 0) for code in numbers)
        return f"/FirstChar {numbers[0]} /LastChar {numbers[-1]} /Widths [{widths}]"

    def _build_simple(self, pdf: Pdf, said: str) -> int:
        rows = self.rows()
        seen: set[str] = set()
        names = {code: self.glyph_name(code, shown, told, seen) for code, shown, told in rows}
        drawn = {names[code]: shown for code, shown, _ in rows}
        encoding = " /Encoding << /Type /Encoding /Differences [{}] >>".format(
            " ".join(f"{code} /{name}" for code, name in names.items())
        )
        flags = 4
        if self.kind == "truetype":
            if self.cmap == "codes":
                cmap, encoding = {0xF000 + code: names[code] for code, _, _ in rows}, ""
            else:
                # A code leads by its name to a character, and by the cmap to a glyph.
                cmap = {ord((shown if self.names == "shown" else told)[0]): names[c] for c, shown, told in rows}
                flags = 32
            if self.win_ansi:
                encoding = " /Encoding /WinAnsiEncoding"
            key = f"/FontFile2 {pdf.stream(self.truetype(list(drawn), drawn, cmap))} 0 R"
            kind = "TrueType"
        elif self.kind == "type1c":
            key = f"/FontFile3 {pdf.stream(self.compact(list(drawn), drawn), '/Subtype /Type1C')} 0 R"
            kind = "Type1"
        else:
            parts = self.adobe(names, drawn)
            lengths = " ".join(f"/Length{number} {len(part)}" for number, part in enumerate(parts, start=1))
            key = f"/FontFile {pdf.stream(b''.join(parts), lengths)} 0 R"
            kind = "Type1"
            encoding = "" if self.builtin else encoding
        return pdf.add(
            f"<< /Type /Font /Subtype /{kind} /BaseFont /{self.name} {self._widths()}{encoding}{said} "
            f"/FontDescriptor {self._descriptor(pdf, key, flags)} 0 R >>"
        )

    def _build_type3(self, pdf: Pdf, said: str) -> int:
        rows = self.rows()
        seen: set[str] = set()
        names = {code: self.glyph_name(code, shown, told, seen) for code, shown, told in rows}
        draw = self._bitmap if self.kind == "type3bitmap" else self._path
        drawings = {names[code]: pdf.stream(draw(shown)) for code, shown, _ in rows}
        encoding = " ".join(f"{code} /{name}" for code, name in names.items())
        procedures = " ".join(f"/{name} {number} 0 R" for name, number in drawings.items())
        return pdf.add(
            f"<< /Type /Font /Subtype /Type3 /Name /{self.name.partition('+')[2]} /FontBBox [-200 -300 1200 1000] "
            f"/FontMatrix [0.001 0 0 0.001 0 0] /CharProcs << {procedures} >> /Resources << >> "
            f"/Encoding << /Type /Encoding /Differences [{encoding}] >> {self._widths()}{said} >>"
        )

    def _path(self, char: str) -> bytes:
        ops, width = self.glyph(char)
        lines = [f"{width} 0 -200 -300 1200 1000 d1"]
        for operator, points in cubic(ops):
            numbers = " ".join(f"{number:.1f}" for point in points for number in point)
            lines.append(f"{numbers} {PATH[operator]}")
        return "\n".join([*lines, "f"]).encode()

    def _bitmap(self, char: str) -> bytes:
        width = self.glyph(char)[1]
        font = ImageFont.truetype(str(FOLDER / f"{self.source}.ttf"), 50)
        picture = Image.new("1", (max(8, -(-width * 50 // 1000 // 8) * 8 + 8), 72), 0)
        ImageDraw.Draw(picture).text((4, 50), char, font=font, fill=1, anchor="ls")
        across, down = picture.size
        head = f"{width} 0 -80 -440 {across * 20} 1000 d1 q {across * 20} 0 0 {down * 20} -80 {(50 - down) * 20} cm "
        head += f"BI /W {across} /H {down} /IM true /BPC 1 /D [1 0] ID "
        return head.encode() + picture.tobytes() + b"\nEI Q"


PATH = {"moveTo": "m", "lineTo": "l", "curveTo": "c", "closePath": "h", "endPath": "h"}
SPACING = {
    "\u0301": "´",
    "\u0308": "¨",
    "\u0300": "`",
    "\u0302": "ˆ",
    "\u0303": "˜",
    "\u030a": "˚",
    "\u0327": "¸",
    "\u030c": "ˇ",
}


def cubic(ops: Outline) -> Outline:
    """Return an outline of straight lines and cubic curves only."""
    taken = T2Recorder()
    for operator, arguments in ops:
        getattr(taken, operator)(*arguments)
    return taken.value


class T2Recorder(T2CharStringPen):
    """A pen that keeps cubic curves as they come."""

    def __init__(self) -> None:
        super().__init__(0, None)
        self.value: Outline = []

    def _moveTo(self, pt: Any) -> None:  # noqa: N802
        self.value.append(("moveTo", (pt,)))

    def _lineTo(self, pt: Any) -> None:  # noqa: N802
        self.value.append(("lineTo", (pt,)))

    def _curveToOne(self, pt1: Any, pt2: Any, pt3: Any) -> None:  # noqa: N802
        self.value.append(("curveTo", (pt1, pt2, pt3)))

    def _closePath(self) -> None:  # noqa: N802
        self.value.append(("closePath", ()))


def charstring(ops: Outline, width: int) -> bytes:
    """Return a Type 1 charstring."""

    def number(value: int) -> bytes:
        if -107 <= value <= 107:
            return bytes([value + 139])
        return b"\xff" + value.to_bytes(4, "big", signed=True)

    out = number(0) + number(width) + b"\x0d"
    x = y = 0
    for operator, points in cubic(ops):
        for point in points:
            to_x, to_y = round(point[0]), round(point[1])
            out += number(to_x - x) + number(to_y - y)
            x, y = to_x, to_y
        out += {"moveTo": b"\x15", "lineTo": b"\x05", "curveTo": b"\x08"}.get(operator, b"\x09")
    return out + b"\x0e"


# -------------------------------------------------------------------------------------------------------- the pages

MARKS = re.compile(r"\{([^{}|]+)\|([^{}|]*)\}|\[([^\[\]|]+)\|([^\[\]|]*)\]|«([^«»|]+)\|([^«»|]*)»")


@dataclass
class Layout:
    """Where the lines of a page stand."""

    size: float = 11.0
    left: float = 60.0
    top: float = 770.0
    leading: float = 1.7
    width: int = 595
    height: int = 842
    indent: float = 0.0
    """How far every second line is moved to the right."""
    rule: bool = False
    big_first: bool = True


def runs(line: str) -> list[tuple[str, str, str]]:
    """Return the parts of a line: what kind of mark, what is shown, what is told."""
    parts, place = [], 0
    for found in MARKS.finditer(line):
        if found.start() > place:
            parts.append(("plain", line[place : found.start()], line[place : found.start()]))
        kind = "font" if found[1] else "actual" if found[3] else "picture"
        parts.append((kind, *(text for text in found.groups() if text is not None)))
        place = found.end()
    if place < len(line):
        parts.append(("plain", line[place:], line[place:]))
    return parts


def picture_of(pdf: Pdf, text: str, font: str, across: float, size: float) -> int:
    """Add a picture of a word on white."""
    width, height = max(8, round(across * 4)), round(size * 5)
    picture = Image.new("L", (width, height), 255)
    drawn = ImageFont.truetype(str(FOLDER / f"{font}.ttf"), round(size * 4))
    ImageDraw.Draw(picture).text((1, height - round(size * 1.2)), text, font=drawn, fill=0, anchor="ls")
    entries = (
        f"/Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceGray /BitsPerComponent 8"
    )
    return pdf.stream(picture.tobytes(), entries)


@dataclass
class Made:
    """Files that a list of items writes into a folder."""

    folder: Path
    files: list[LyingFont] = field(default_factory=list)

    def add(
        self,
        stem: str,
        what: str,
        pages: str | Sequence[str],
        face: Face,
        second: Face | None = None,
        *,
        lies: bool,
        layout: Layout | None = None,
        producer: str = "ReportWriter 4.1",
        page_faces: Sequence[Face] = (),
        extra: Callable[[Pdf], tuple[str, str]] | None = None,
    ) -> None:
        """Write one file. ``page_faces`` are first fonts of the pages, where they differ; ``extra`` draws behind."""
        layout = layout or Layout()
        pdf, numbers, shown, told = Pdf(), [], [], []
        sheets = [pages] if isinstance(pages, str) else list(pages)
        faces: list[Face] = []
        drawn = []
        for number, sheet in enumerate(sheets):
            first = page_faces[number] if page_faces else face
            for one in (first, second):
                if one is not None and all(one is not other for other in faces):
                    faces.append(one)
            drawn.append(self._draw(pdf, sheet.strip("\n").split("\n"), first, second, layout, faces, shown, told))
        fonts = " ".join(f"/F{number} {one.build(pdf)} 0 R" for number, one in enumerate(faces))
        for content, pictures in drawn:
            behind, resources = extra(pdf) if extra else ("", "")
            place = pdf.stream(behind.encode("latin-1") + content)
            pictures_named = " ".join(f"/{name} {number} 0 R" for name, number in pictures.items())
            page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {layout.width} {layout.height}] /Contents {place} 0 R "
            page += f"/Resources << /Font << {fonts} >> /XObject << {pictures_named} {resources} >> >> >>"
            numbers.append(pdf.add(page))
        path = self.folder / f"{stem}.pdf"
        pdf.write(path, numbers, producer)
        self.files.append(LyingFont(path, lies, "\n".join(shown), "\n".join(told), what))

    @staticmethod
    def _draw(
        pdf: Pdf,
        lines: Sequence[str],
        first: Face,
        second: Face | None,
        layout: Layout,
        faces: Sequence[Face],
        shown: list[str],
        told: list[str],
    ) -> tuple[bytes, dict[str, int]]:
        out, pictures, y = [], {}, layout.top
        for number, line in enumerate(lines):
            face = second if second is not None and line.startswith("§") else first
            size = layout.size * (1.3 if number == 0 and layout.big_first else 1.0)
            x = layout.left + (layout.indent if number % 2 else 0.0)
            seen, said, over = "", "", []
            out.append(
                f"BT /F{next(n for n, one in enumerate(faces) if one is face)} {size:g} Tf 1 0 0 1 {x:g} {y:g} Tm"
            )
            for kind, visible, text in runs(line.removeprefix("§")):
                drawn = text if kind == "picture" else visible
                pairs = face.pairs(drawn, text if kind == "font" else drawn)
                digits = 4 if face.is_wide else 2
                codes = "".join(f"{face.code(*pair):0{digits}X}" for pair in pairs)
                if kind == "actual":
                    actual = ("\ufeff" + text).encode("utf-16-be").hex().upper()
                    out.append(f"/Span << /ActualText <{actual}> >> BDC <{codes}> Tj EMC")
                else:
                    out.append(f"<{codes}> Tj")
                across = face.width(drawn) * size / 1000
                if kind == "picture":
                    pictures[f"Im{len(pictures)}"] = picture_of(pdf, visible, face.source, across, size)
                    box = f"{across:.2f} 0 0 {size * 1.25:.2f} {x:.2f} {y - size * 0.3:.2f}"
                    over.append(f"q {box} cm /Im{len(pictures) - 1} Do Q")
                x += across
                seen += visible
                said += text if kind == "actual" else "".join(part for _, part in pairs)
            out.append("ET")
            out += over
            if layout.rule:
                out.append(f"0.6 G 0.5 w {layout.left:g} {y - 4:g} m {layout.width - layout.left:g} {y - 4:g} l S 0 G")
            shown.append(seen)
            told.append(said.replace("\u200b", ""))
            y -= size * layout.leading
        return "\n".join(out).encode("latin-1"), pictures


def plain(text: str) -> str:
    """Return a text without what no reader is asked to keep: ligatures, signs of one look, soft hyphens."""
    text = unicodedata.normalize("NFKC", text).replace("\u00ad", "").replace("\u200b", "").casefold()
    return text.translate({ord(dash): "-" for dash in "−–—‐‑"} | {0x3BC: "µ", 0xB5: "µ"}).replace("’", "'")
