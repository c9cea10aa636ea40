"""A small writer of PDFs whose every object is under control, and packets of invented patients made with it.

A packet is laid out by a row such as ``A2 B1 A1``: two pages of patient A, one of B, one of A again, each group a segment.
Words of a packet are unique: nine letters that no language has. Where a word is planted decides whose it is.
"""

from __future__ import annotations

import io
import logging
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import zxingcpp
from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

logging.getLogger("fontTools").setLevel(logging.ERROR)

TYPES = ("Pathology Report", "Clinical Note", "Radiology Report", "Genomic Report", "Other")
BODIES = {
    "Pathology Report": (
        "Surgical pathology report",
        "Specimen: skin of the left forearm, excision",
        "Gross: an ellipse of skin, 21 x 9 x 5 mm",
        "Diagnosis: basal cell carcinoma, nodular, margins clear",
    ),
    "Clinical Note": (
        "Progress note, outpatient visit",
        "Seen today with her daughter. Cough for two weeks.",
        "Examination: chest clear, no fever",
        "Plan: rest, fluids, review in ten days",
    ),
    "Radiology Report": (
        "Radiology: chest radiograph, two views",
        "Indication: cough",
        "Findings: lungs are clear, heart of normal size",
        "Impression: no acute disease",
    ),
    "Genomic Report": (
        "Molecular pathology: panel of 52 genes",
        "KRAS c.35G>A p.(Gly12Asp) detected, allele fraction 23 %",
        "EGFR: no variant",
        "Interpretation: therapy with EGFR antibodies is not expected to help",
    ),
    "Other": (
        "Request for release of records",
        "Please send the records named below by fax",
        "Purpose: continuing care",
        "Signed by the patient",
    ),
}
WIDTH, HEIGHT = 612, 792


class Segment(NamedTuple):
    """Pages of one document: of the file itself, or of the part of that name (an attachment, a body)."""

    start: int
    end: int
    document_type: str
    patient: str
    part: str = ""


class SourceFile(NamedTuple):
    """A file to be cut, with what each cut must show and what it must not hold anywhere."""

    name: str
    what: str
    suffix: str
    data: bytes
    segments: tuple[Segment, ...]
    words_of_page: Mapping[tuple[str, int], tuple[str, ...]]
    foreign_words: tuple[tuple[str, ...], ...]
    """For each segment the words of other pages and other patients: in no byte of its cut."""


def text(value: str) -> str:
    """A literal string of PDF."""
    return "(" + value.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") + ")"


def hexadecimal(value: str) -> str:
    """A string of PDF in hexadecimal digits."""
    return f"<{value.encode('latin-1').hex()}>"


def utf16(value: str) -> str:
    """A string of PDF in UTF-16 with its mark, in hexadecimal digits."""
    return f"<FEFF{value.encode('utf-16-be').hex().upper()}>"


def octal(value: str) -> str:
    """A literal string of PDF, each letter as an octal escape."""
    return "(" + "".join(f"\\{ord(letter):03o}" for letter in value) + ")"


def draw_text(x: float, y: float, value: str, size: float = 13, font: str = "F1", before: str = "") -> str:
    """The operators that show a line."""
    return f"BT {before} /{font} {size} Tf {x} {y} Td {text(value)} Tj ET\n"


class Pdf:
    """Objects of a PDF in the order of their numbers."""

    def __init__(self) -> None:
        self.objects: list[bytes] = []

    def add(self, body: str | bytes = b"null") -> str:
        """The reference of a new object."""
        self.objects.append(body.encode("latin-1") if isinstance(body, str) else body)
        return f"{len(self.objects)} 0 R"

    def set(self, reference: str, body: str | bytes) -> None:
        self.objects[int(reference.split(maxsplit=1)[0]) - 1] = (
            body.encode("latin-1") if isinstance(body, str) else body
        )

    def stream(self, data: str | bytes, entries: str = "", *, packed: bool = True) -> str:
        return self.add(stream_body(data, entries, packed=packed))

    def write(self, root: str, trailer: str = "", *, in_streams: frozenset[int] | None = None) -> bytes:
        """The file; the objects of these numbers go into one object stream, with a cross-reference stream."""
        data = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
        offsets: dict[int, int] = {}
        for number, body in enumerate(self.objects, 1):
            if in_streams is None or number not in in_streams:
                offsets[number] = len(data)
                data += b"%d 0 obj\n" % number + body + b"\nendobj\n"
        if in_streams is None:
            return bytes(data) + _write_table(len(data), len(self.objects), offsets, f"/Root {root} {trailer}")
        holder, table = len(self.objects) + 1, len(self.objects) + 2
        pairs, bodies = [], bytearray()
        for number in sorted(in_streams):
            pairs.append(f"{number} {len(bodies)}")
            bodies += self.objects[number - 1] + b"\n"
        head = " ".join(pairs).encode() + b"\n"
        offsets[holder] = len(data)
        data += b"%d 0 obj\n" % holder
        data += stream_body(head + bytes(bodies), f"/Type /ObjStm /N {len(pairs)} /First {len(head)}") + b"\nendobj\n"
        offsets[table] = len(data)
        rows = [bytes([0, 0, 0, 0, 0, 255])]
        places = {number: index for index, number in enumerate(sorted(in_streams))}
        for number in range(1, table + 1):
            if number in places:
                rows.append(bytes([2]) + holder.to_bytes(4, "big") + bytes([places[number]]))
            else:
                rows.append(bytes([1]) + offsets[number].to_bytes(4, "big") + b"\0")
        entries = f"/Type /XRef /W [1 4 1] /Size {table + 1} /Root {root} {trailer}"
        data += b"%d 0 obj\n" % table + stream_body(b"".join(rows), entries) + b"\nendobj\n"
        return bytes(data) + b"startxref\n%d\n%%%%EOF\n" % offsets[table]


def stream_body(data: str | bytes, entries: str = "", *, packed: bool = True) -> bytes:
    """A stream object's dictionary and bytes."""
    data = data.encode("latin-1") if isinstance(data, str) else data
    if packed:
        data, entries = zlib.compress(data), f"{entries} /Filter /FlateDecode"
    return f"<< {entries} /Length {len(data)} >>\nstream\n".encode("latin-1") + data + b"\nendstream"


def _write_table(place: int, count: int, offsets: Mapping[int, int], trailer: str) -> bytes:
    lines = ["xref", f"0 {count + 1}", "0000000000 65535 f "]
    lines += [f"{offsets[number]:010d} 00000 n " for number in range(1, count + 1)]
    lines += ["trailer", f"<< /Size {count + 1} {trailer} >>", "startxref", str(place), "%%EOF", ""]
    return "\n".join(lines).encode("latin-1")


def append_revision(data: bytes, changes: Mapping[str, str | bytes], root: str, count: int) -> bytes:
    """The file with an incremental update: these references have new bodies."""
    revised = bytearray(data)
    rows = []
    for reference, body in changes.items():
        number = int(reference.split()[0])
        rows.append(f"{number} 1\n{len(revised):010d} 00000 n ")
        revised += b"%d 0 obj\n" % number + (body.encode("latin-1") if isinstance(body, str) else body) + b"\nendobj\n"
    previous = int(data.rsplit(b"startxref", 1)[1].split()[0])
    place = len(revised)
    lines = ["xref", *rows, f"trailer\n<< /Size {count + 1} /Root {root} /Prev {previous} >>", f"startxref\n{place}"]
    return bytes(revised) + "\n".join([*lines, "%%EOF", ""]).encode("latin-1")


class Packet:
    """Pages of invented patients as a PDF that one idea may change before it is written."""

    def __init__(self, half: str, name: str, what: str, layout: str) -> None:
        self.name, self.what = name, what
        self.rng = random.Random(f"{half}/{name}")
        self.pdf = Pdf()
        self.segments: list[Segment] = []
        self.owners: dict[str, frozenset[int]] = {}
        self.shown: dict[tuple[str, int], list[str]] = {}
        for group in layout.split():
            start = self.segments[-1].end + 1 if self.segments else 1
            kind = TYPES[(len(self.segments) + self.rng.randrange(5)) % 5]
            self.segments.append(Segment(start, start + int(group[1:]) - 1, kind, group[0]))
        self.pages = range(1, self.segments[-1].end + 1)
        self.names = {patient: self.new_word() for patient in sorted({segment.patient for segment in self.segments})}
        for patient, word in self.names.items():
            self.owners[word] = frozenset(i for i, segment in enumerate(self.segments) if segment.patient == patient)
        self.root = self.pdf.add()
        self.tree = self.pdf.add()
        self.references = {page: self.pdf.add() for page in self.pages}
        self.font = self.pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
        self.resources: dict[str, dict[str, str]] = {"Font": {"F1": self.font}}
        """What all pages share, by kind and name."""
        self.own_resources: dict[int, dict[str, dict[str, str]]] = {}
        self.entries: dict[int, dict[str, str]] = {page: {} for page in self.pages}
        self.catalog: dict[str, str] = {}
        self.tree_entries: dict[str, str] = {}
        self.information: dict[str, str] = {}
        self.extra_kids: list[str] = []
        """Pages at the end of the tree that a later revision takes out again."""
        self.trailer = ""
        self.in_streams = False
        self.after: Callable[[bytes], bytes] | None = None
        """What is done to the written file."""
        self.before: dict[int, str] = dict.fromkeys(self.pages, "")
        self.contents: dict[int, str] = {page: self._write_page(page) for page in self.pages}

    def new_word(self) -> str:
        return "".join(self.rng.choice("BDFKLMNPRSTVZ" if place % 2 == 0 else "AEOU") for place in range(9))

    def index(self, page: int) -> int:
        return next(i for i, segment in enumerate(self.segments) if segment.start <= page <= segment.end)

    def hide(self, *pages: int) -> str:
        """A word of these pages' segments (of nobody's without pages) that need not be shown."""
        word = self.new_word()
        self.owners[word] = frozenset(self.index(page) for page in pages)
        return word

    def show(self, page: int) -> str:
        """A word that this page's cut must show."""
        word = self.hide(page)
        self.shown.setdefault(("", page), []).append(word)
        return word

    def person(self, page: int) -> str:
        """The name of the page's patient: of all segments of that patient."""
        return self.names[self.segments[self.index(page)].patient]

    def stranger(self, page: int) -> int:
        """The next page of another segment."""
        turn = [*range(page + 1, len(self.pages) + 1), *range(1, page)]
        return next(other for other in turn if self.index(other) != self.index(page))

    def _write_page(self, page: int) -> str:
        lines = BODIES[self.segments[self.index(page)].document_type]
        head = draw_text(60, 720, lines[0], 15) + draw_text(60, 690, f"Patient: {self.person(page)}")
        self.shown.setdefault(("", page), []).append(self.person(page))
        word = self.show(page)
        body = "".join(draw_text(60, 640 - 24 * row, line) for row, line in enumerate(lines[1:]))
        return head + body + draw_text(60, 540, f"Reference {word}") + draw_text(60, 60, f"Page {page}", 10)

    def take(self, page: int) -> str:
        """What the page draws, which it then no longer does itself."""
        contents, self.contents[page] = self.contents[page], ""
        return contents

    def form(self, contents: str, box: str = "0 0 612 792", entries: str = "", resources: str = "") -> str:
        """A Form XObject that draws this."""
        fonts = f"/Font << /F1 {self.font} >> {resources}"
        return self.pdf.stream(
            contents, f"/Type /XObject /Subtype /Form /BBox [{box}] /Resources << {fonts} >> {entries}"
        )

    def picture(self, image: Image.Image, entries: str = "", extra: bytes = b"") -> str:
        """A grey image, without loss."""
        size = f"/Width {image.width} /Height {image.height} /ColorSpace /DeviceGray /BitsPerComponent 8"
        return self.pdf.stream(image.convert("L").tobytes() + extra, f"/Type /XObject /Subtype /Image {size} {entries}")

    def annotate(self, page: int, *annotations: str) -> None:
        before = self.entries[page].get("Annots", "[]")[1:-1]
        self.entries[page]["Annots"] = "[" + " ".join([before, *annotations]) + "]"

    def name_tree(self, kind: str, pairs: Sequence[tuple[str, str]]) -> None:
        """An entry of the catalog's names."""
        names = " ".join(f"{text(key)} {value}" for key, value in sorted(pairs))
        before = self.catalog.get("Names", "<< >>")[2:-2]
        self.catalog["Names"] = f"<<{before} /{kind} << /Names [{names}] >> >>"

    def write(self) -> SourceFile:
        for page in self.pages:
            entries = {"MediaBox": f"[0 0 {WIDTH} {HEIGHT}]", **self.entries[page]}
            if page in self.own_resources:
                entries["Resources"] = _write_resources(self.own_resources[page] | {"Font": self.resources["Font"]})
            if "Contents" not in entries:
                entries["Contents"] = self.pdf.stream(self.before[page] + self.contents[page])
            keys = "".join(f" /{key} {value}" for key, value in entries.items())
            self.pdf.set(self.references[page], f"<< /Type /Page /Parent {self.tree}{keys} >>")
        self.pdf.set(self.tree, self.write_tree([*self.references.values(), *self.extra_kids]))
        self.pdf.set(
            self.root,
            f"<< /Type /Catalog /Pages {self.tree}" + "".join(f" /{k} {v}" for k, v in self.catalog.items()) + " >>",
        )
        trailer = self.trailer
        if self.information:
            trailer += " /Info " + self.pdf.add(
                "<<" + "".join(f" /{k} {v}" for k, v in self.information.items()) + " >>"
            )
        inside = None
        if self.in_streams:
            numbers = range(1, len(self.pdf.objects) + 1)
            inside = frozenset(number for number in numbers if b"stream\n" not in self.pdf.objects[number - 1])
        data = self.pdf.write(self.root, trailer, in_streams=inside)
        return self.finish(self.after(data) if self.after else data, "pdf")

    def write_tree(self, kids: Sequence[str]) -> str:
        """The root of the tree of pages."""
        tree = {"Resources": _write_resources(self.resources), **self.tree_entries}
        keys = "".join(f" /{key} {value}" for key, value in tree.items())
        return f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)}{keys} >>"

    def finish(self, data: bytes, suffix: str) -> SourceFile:
        """The file with what its cuts must show and must not hold."""
        return SourceFile(
            self.name,
            self.what,
            suffix,
            data,
            tuple(self.segments),
            {key: tuple(words) for key, words in self.shown.items()},
            tuple(
                tuple(word for word, owners in self.owners.items() if index not in owners)
                for index in range(len(self.segments))
            ),
        )


def _write_resources(resources: Mapping[str, Mapping[str, str]]) -> str:
    kinds = (
        f"/{kind} << " + " ".join(f"/{name} {value}" for name, value in entries.items()) + " >>"
        for kind, entries in resources.items()
    )
    return "<< " + " ".join(kinds) + " >>"


Idea = Callable[[Packet], SourceFile | None]


class Ideas:
    """The ideas of one half, each a function that changes a packet or writes another file in its place."""

    def __init__(self, half: str) -> None:
        self.half = half
        self.rows: list[tuple[str, str, str, Idea]] = []

    def __call__(self, name: str, layout: str, what: str) -> Callable[[Idea], Idea]:
        """Put the function down as an idea of this name for packets of this layout."""

        def put_down(function: Idea) -> Idea:
            self.rows.append((name, layout, what, function))
            return function

        return put_down

    def build(self) -> Iterator[SourceFile]:
        """All files of the half."""
        for name, layout, what, function in self.rows:
            packet = Packet(self.half, name, what, layout)
            yield function(packet) or packet.write()


def draw_scan(lines: Sequence[str], code: str, size: tuple[int, int] = (850, 1100)) -> Image.Image:
    """A grey page as a scanner sees it: lines of print and a QR code of the word, so that programs read it too."""
    image = Image.new("L", size, 248)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(size[0] // 30)
    for row, line in enumerate(lines):
        pen.text((size[0] // 12, size[1] // 12 + row * size[0] // 17), line, fill=20, font=font)
    image.paste(draw_code(code, max(size[0] // 220, 2)), (size[0] // 2, size[1] // 2))
    return image


def draw_code(word: str, scale: int = 4) -> Image.Image:
    code = zxingcpp.create_barcode(word, zxingcpp.BarcodeFormat.QRCode)
    return Image.fromarray(np.array(code.to_image(scale=scale)))


def scan_page(packet: Packet, page: int, size: tuple[int, int] = (850, 1100)) -> Image.Image:
    """The page as a scan; its words stay those that must be shown."""
    packet.take(page)
    word = packet.show(page)
    lines = BODIES[packet.segments[packet.index(page)].document_type]
    old = [earlier for earlier in packet.shown["", page] if earlier != word]
    return draw_scan(
        [lines[0], *(f"Patient / reference: {earlier}" for earlier in old), *lines[1:]], " ".join([*old, word]), size
    )


def subset_font(letters: str, **names: str) -> bytes:
    """A TrueType font of these letters; `names` are words of its name table by the number after `n`."""
    font = TTFont(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", recalcTimestamp=False)
    options = subset.Options(name_IDs=["*"], notdef_outline=True, hinting=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=letters)
    subsetter.subset(font)
    for number, word in names.items():
        font["name"].setName(word, int(number[1:]), 3, 1, 0x409)
    buffer = io.BytesIO()
    font.save(buffer)
    return buffer.getvalue()


def embed_font(packet: Packet, base_name: str, data: bytes) -> str:
    """A simple TrueType font with this file in it, for text in the Windows encoding."""
    font = TTFont(io.BytesIO(data))
    scale, glyphs, widths = 1000 / font["head"].unitsPerEm, font.getBestCmap(), font["hmtx"]
    row = " ".join(str(round(widths[glyphs[code]][0] * scale) if code in glyphs else 0) for code in range(32, 127))
    program = packet.pdf.stream(data, f"/Length1 {len(data)}")
    descriptor = packet.pdf.add(
        f"<< /Type /FontDescriptor /FontName /{base_name} /Flags 32 /FontBBox [-1000 -300 1500 1000] /ItalicAngle 0 "
        f"/Ascent 900 /Descent -200 /CapHeight 700 /StemV 80 /FontFile2 {program} >>"
    )
    return packet.pdf.add(
        f"<< /Type /Font /Subtype /TrueType /BaseFont /{base_name} /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 126 "
        f"/Widths [{row}] /FontDescriptor {descriptor} >>"
    )


def portable(value: Any) -> bytes:
    """The bytes of a PIL image as a PNG."""
    buffer = io.BytesIO()
    value.save(buffer, "PNG")
    return buffer.getvalue()
