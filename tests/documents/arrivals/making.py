"""Writers of the arriving files: pictures, TIFF directories, PNG chunks, Word archives, old Office containers."""

from __future__ import annotations

import base64
import io
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pymupdf
from documents.arrivals.arrival import Arrival
from PIL import Image, TiffImagePlugin

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMESPACES = (
    f'xmlns:w="{W}" xmlns:r="{R}" xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:v="urn:schemas-microsoft-com:vml"'
)


@dataclass
class Folder:
    """The folder that is filled, and the list of what lies there."""

    path: Path
    arrivals: list[Arrival] = field(default_factory=list)

    def add(
        self,
        file: str,
        kind: str,
        content: bytes,
        what: str,
        words: str = "",
        *,
        outcome: Literal["read", "named"] = "read",
        pages: int | None = None,
        attachments: tuple[str, ...] = (),
        is_damaged: bool = False,
        absent: tuple[str, ...] = (),
        named_attachments: tuple[str, ...] = (),
        may_be_named: bool = False,
    ) -> None:
        """Write one file and note what must become of it."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / file).write_bytes(content)
        self.arrivals.append(
            Arrival(
                file,
                kind,
                outcome,
                tuple(words.split()),
                pages,
                attachments,
                what,
                is_damaged,
                absent,
                named_attachments,
                may_be_named,
            )
        )

    def named(self, file: str, kind: str, content: bytes, what: str, absent: tuple[str, ...] = ()) -> None:
        """Write one file that must be refused by name."""
        self.add(file, kind, content, what, outcome="named", absent=absent)


def page(
    text: str, *, font: str = "helv", size: float = 12, width: float = 595, height: float = 842
) -> pymupdf.Document:
    """Set lines of text on one page of a PDF."""
    document = pymupdf.open()
    sheet = document.new_page(width=width, height=height)
    for number, line in enumerate(text.splitlines()):
        sheet.insert_text((50, 60 + number * size * 1.7), line, fontname=font, fontsize=size)
    return document


def pdf(*texts: str, font: str = "helv") -> bytes:
    """Write a PDF with one page for each text."""
    whole = pymupdf.open()
    for text in texts:
        whole.insert_pdf(page(text, font=font))
    return bytes(whole.tobytes(no_new_id=True))


def picture(
    text: str,
    *,
    dpi: tuple[int, int] = (200, 200),
    font: str = "helv",
    size: float = 12,
    width: float = 595,
    height: float = 842,
    mode: str = "L",
) -> Image.Image:
    """Draw lines of text as a page of a scanner."""
    sheet = page(text, font=font, size=size, width=width, height=height)[0]
    pixels = sheet.get_pixmap(matrix=pymupdf.Matrix(dpi[0] / 72, dpi[1] / 72), colorspace=pymupdf.csGRAY)
    drawn = Image.frombytes("L", (pixels.width, pixels.height), pixels.samples)
    if mode == "1":
        return drawn.point(lambda value: 255 if value > 140 else 0).convert("1", dither=Image.Dither.NONE)
    return drawn if mode == "L" else drawn.convert(mode)


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    """Encode a picture with Pillow."""
    into = io.BytesIO()
    image.save(into, kind, **options)
    return into.getvalue()


def tiff_pages(images: list[Image.Image], dpis: list[tuple[int, int]], compressions: list[str]) -> bytes:
    """Write pages of different size, resolution and compression into one TIFF."""
    whole = io.BytesIO()
    with TiffImagePlugin.AppendingTiffWriter(whole, new=True) as writer:
        for image, dpi, compression in zip(images, dpis, compressions, strict=True):
            image.save(writer, "TIFF", dpi=dpi, compression=compression)
            writer.newFrame()
    return whole.getvalue()


Entry = tuple[int, int, list[int]]  # tag, type (3 short, 4 long), values


def tiff(
    images: list[tuple[list[Entry], list[bytes]]],
    *,
    order: str = "<",
    big: bool = False,
    last: int | None = None,
    is_tiled: bool = False,
) -> bytes:
    """Write a TIFF by hand: entries and strips (or tiles) of each page, and where the last directory points to."""
    unit = "Q" if big else "I"
    width = struct.calcsize(unit)
    mark = b"II" if order == "<" else b"MM"
    out = bytearray(mark + (struct.pack(order + "HHHQ", 43, 8, 0, 16) if big else struct.pack(order + "HI", 42, 8)))
    pointer, firsts = len(out) - width, []
    for entries, blocks in images:
        offsets = []
        for block in blocks:
            offsets.append(len(out))
            out += block + b"\0" * (len(block) % 2)
        where, sizes = (324, 325) if is_tiled else (273, 279)
        rows = sorted([*entries, (where, 4, offsets), (sizes, 4, [len(block) for block in blocks])])
        packed = []
        for tag, kind, values in rows:
            raw = struct.pack(f"{order}{len(values)}{'H' if kind == 3 else 'I'}", *values)
            if len(raw) > width:
                spot = len(out)
                out += raw + b"\0" * (len(raw) % 2)
                raw = struct.pack(order + unit, spot)
            packed.append(struct.pack(order + "HH" + unit, tag, kind, len(values)) + raw.ljust(width, b"\0"))
        firsts.append(len(out))
        struct.pack_into(order + unit, out, pointer, len(out))
        out += struct.pack(order + ("Q" if big else "H"), len(packed)) + b"".join(packed)
        pointer = len(out)
        out += b"\0" * width
    if last is not None:
        struct.pack_into(order + unit, out, pointer, firsts[last])
    return bytes(out)


def plain_entries(image: Image.Image, *, bits: int = 8, compression: int = 1, photometric: int = 1) -> list[Entry]:
    """Describe a grey or two-coloured picture of one strip."""
    return [
        (256, 3, [image.width]),
        (257, 3, [image.height]),
        (258, 3, [bits]),
        (259, 3, [compression]),
        (262, 3, [photometric]),
        (277, 3, [1]),
        (278, 3, [image.height]),
    ]


def png(
    width: int, height: int, depth: int, colour: int, data: bytes, extra: bytes = b"", *, interlace: int = 0
) -> bytes:
    """Write a PNG by hand around compressed data."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def chunk(kind: bytes, data: bytes) -> bytes:
    """Pack one chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def interlaced(image: Image.Image) -> bytes:
    """Write a grey picture as an interlaced PNG."""
    rows = bytearray()
    for left, top, across, down in (
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    ):
        raw = image.tobytes()
        for y in range(top, image.height, down):
            rows += b"\0" + raw[y * image.width + left : (y + 1) * image.width : across]
    return png(image.width, image.height, 8, 0, zlib.compress(bytes(rows)), interlace=1)


def squeezed(size: int, value: bytes = b"\0") -> bytes:
    """Compress a long run of one byte without holding it."""
    packer, block, out = zlib.compressobj(1), value * 1_000_000, bytearray()
    for _ in range(size // 1_000_000):
        out += packer.compress(block)
    return bytes(out + packer.flush())


def para(*runs: str, style: str = "") -> str:
    """Write a paragraph of Word from text or ready runs."""
    inner = "".join(one if one.startswith("<") else run(one) for one in runs)
    return f"<w:p>{f'<w:pPr>{style}</w:pPr>' if style else ''}{inner}</w:p>"


def run(text: str, style: str = "") -> str:
    """Write a run of Word; the text is ready for XML."""
    return f'<w:r>{f"<w:rPr>{style}</w:rPr>" if style else ""}<w:t xml:space="preserve">{text}</w:t></w:r>'


def table(*rows: tuple[str, ...]) -> str:
    """Write a table of Word; a cell that begins with a tag is ready."""
    body = "".join(
        "<w:tr>"
        + "".join(f"<w:tc>{cell if cell.startswith('<') else para(cell) if cell else para()}</w:tc>" for cell in row)
        + "</w:tr>"
        for row in rows
    )
    grid = '<w:gridCol w:w="2400"/>' * len(rows[0])
    return f'<w:tbl><w:tblPr><w:tblW w:w="0" w:type="auto"/></w:tblPr><w:tblGrid>{grid}</w:tblGrid>{body}</w:tbl>'


def docx(
    body: str,
    parts: dict[str, tuple[str, str]] | None = None,
    *,
    macros: bool = False,
    raw: dict[str, bytes] | None = None,
    links: str = "",
    section: str = "",
) -> bytes:
    """Write a Word file: body, further parts of word/ as name → (kind, XML), and raw members of the archive."""
    base = "application/vnd.openxmlformats-officedocument.wordprocessingml."
    main = "application/vnd.ms-word.document.macroEnabled.main+xml" if macros else base + "document.main+xml"
    overrides = f'<Override PartName="/word/document.xml" ContentType="{main}"/>'
    relations = links
    files: dict[str, bytes] = {}
    for number, (name, (kind, text)) in enumerate((parts or {}).items()):
        overrides += f'<Override PartName="/word/{name}" ContentType="{base}{kind}+xml"/>'
        relations += f'<Relationship Id="rP{number}" Type="{R}/{kind}" Target="{name}"/>'
        files["word/" + name] = f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
    package = "http://schemas.openxmlformats.org/package/2006"
    types = f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Default Extension="png" ContentType="image/png"/><Default Extension="bin" ContentType="application/vnd.ms-office.vbaProject"/>{overrides}</Types>'
    root = f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{R}/officeDocument" Target="word/document.xml"/></Relationships>'
    size = '<w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1400" w:right="1200" w:bottom="1400" w:left="1200" w:header="600" w:footer="600" w:gutter="0"/>'
    document = f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:document {NAMESPACES}><w:body>{body}<w:sectPr>{section}{size}</w:sectPr></w:body></w:document>'
    members = {
        "[Content_Types].xml": types.encode(),
        "_rels/.rels": root.encode(),
        "word/document.xml": document.encode(),
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{package}/relationships">{relations}</Relationships>'.encode(),
        **files,
        **(raw or {}),
    }
    return zipped(members)


def zipped(members: dict[str, bytes]) -> bytes:
    """Pack members into an archive with a fixed date."""
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content, compresslevel=1 if len(content) > 1_000_000 else None)
    return into.getvalue()


def head(tag: str, text: str) -> str:
    """Write a header ("hdr") or footer ("ftr") part."""
    return f"<w:{tag} {NAMESPACES}>{para(text)}</w:{tag}>"


def drawing(relation: str) -> str:
    """Place a picture of the archive in a run."""
    return f'<w:r><w:drawing><wp:inline><wp:extent cx="3600000" cy="1200000"/><wp:docPr id="1" name="p"/><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:pic><pic:nvPicPr><pic:cNvPr id="1" name="p"/><pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip r:embed="{relation}"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill><pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="3600000" cy="1200000"/></a:xfrm><a:prstGeom prst="rect"/></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>'


def ole(streams: dict[str, bytes]) -> bytes:
    """Write an old Office container (compound file) with streams of 4096 bytes or more."""
    sectors: list[bytes] = []
    chain: list[int] = []
    rows = [("Root Entry", 5, 0xFFFFFFFE, 0)]
    for name, raw in streams.items():
        content = raw.ljust(4096, b"\0")
        parts = [content[i : i + 512].ljust(512, b"\0") for i in range(0, len(content), 512)]
        rows.append((name, 2, len(sectors), len(content)))
        chain += [*range(len(sectors) + 1, len(sectors) + len(parts)), 0xFFFFFFFE]
        sectors += parts
    directory = len(sectors)
    entries = b""
    for index, (name, kind, start, size) in enumerate(rows):
        text = name.encode("utf-16-le")
        right = index + 1 if 0 < index < len(rows) - 1 else 0xFFFFFFFF
        child = 1 if index == 0 else 0xFFFFFFFF
        entries += text.ljust(64, b"\0") + struct.pack("<HBBIII", len(text) + 2, kind, 1, 0xFFFFFFFF, right, child)
        entries += b"\0" * 36 + struct.pack("<IQ", start, size)
    entries = entries.ljust(-(-len(entries) // 512) * 512, b"\0")
    blocks = [entries[i : i + 512] for i in range(0, len(entries), 512)]
    chain += [*range(directory + 1, directory + len(blocks)), 0xFFFFFFFE]
    sectors += blocks
    chain.append(0xFFFFFFFD)
    fat = struct.pack(f"<{len(chain)}I", *chain).ljust(512, b"\xff")
    top = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 16 + struct.pack("<HHHHH", 62, 3, 0xFFFE, 9, 6) + b"\0" * 6
    top += struct.pack("<IIIIIIIII", 0, 1, directory, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    top += struct.pack("<I", len(sectors)) + b"\xff" * 4 * 108
    return top + b"".join(sectors) + fat


def mail(head: str, body: str | bytes = "") -> bytes:
    """Write a mail with network line ends."""
    top = head.strip().replace("\n", "\r\n").encode("utf-8") + b"\r\nMIME-Version: 1.0\r\n"
    return top + (body if isinstance(body, bytes) else body.replace("\r\n", "\n").replace("\n", "\r\n").encode("utf-8"))


def part(kind: str, content: bytes, *more: str) -> str:
    """Write a part of a mail in base64."""
    lines = "".join(f"{one}\n" for one in more)
    return f"Content-Type: {kind}\nContent-Transfer-Encoding: base64\n{lines}\n{base64.encodebytes(content).decode()}"


def attached(name: str, kind: str, content: bytes) -> str:
    """Write an attachment with a plain name."""
    return part(kind, content, f'Content-Disposition: attachment; filename="{name}"')


def text_part(text: str, kind: str = "plain") -> str:
    """Write a text part of a mail in UTF-8."""
    return f"Content-Type: text/{kind}; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{text}\n"


def multipart(kind: str, *parts: str, mark: str = "=_edge_1") -> str:
    """Join parts of a mail; the content begins with its own headings."""
    joined = "".join(f"--{mark}\n{one}\n" for one in parts)
    return f'Content-Type: multipart/{kind}; boundary="{mark}"\n\n{joined}--{mark}--\n'


def cda(
    sections: str,
    *,
    title: str = "",
    declaration: str = '<?xml version="1.0" encoding="UTF-8"?>',
    patient: str = "",
    body: str = "",
) -> str:
    """Write a clinical document (C-CDA) around sections, or around another body."""
    inner = body or f"<structuredBody>{sections}</structuredBody>"
    return f"""{declaration}
<ClinicalDocument xmlns="urn:hl7-org:v3" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<realmCode code="US"/><typeId root="2.16.840.1.113883.1.3" extension="POCD_HD000040"/>
<templateId root="2.16.840.1.113883.10.20.22.1.1"/><id root="2.16.840.1.113883.19.5" extension="77"/>
<code code="34133-9" codeSystem="2.16.840.1.113883.6.1"/>{f"<title>{title}</title>" if title else ""}
<effectiveTime value="20240203"/><confidentialityCode code="N"/>
<recordTarget><patientRole><id extension="1"/><patient><name>{patient}</name></patient></patientRole></recordTarget>
<component>{inner}</component></ClinicalDocument>"""


def section(title: str, narrative: str, entry: str = "") -> str:
    """Write a section of a clinical document."""
    return f"<component><section><title>{title}</title><text>{narrative}</text>{entry}</section></component>"
