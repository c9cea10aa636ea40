"""The sealed half of the arriving files: only tests may look at these."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING

from documents.arrivals.making import (
    NAMESPACES,
    Folder,
    attached,
    cda,
    docx,
    drawing,
    head,
    interlaced,
    mail,
    multipart,
    ole,
    para,
    part,
    pdf,
    picture,
    plain_entries,
    png,
    run,
    saved,
    section,
    squeezed,
    table,
    text_part,
    tiff,
    tiff_pages,
    zipped,
)
from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path

    from documents.arrivals.arrival import Arrival

TRANSFER = """ST. BRANNOC GENERAL - TRANSFER SHEET
Name: Yusuf Havelock     Unit no. 550318
From: Intensive care     To: Ward Cedar
Diagnosis: community acquired pneumonia
Oxygen: 2 litres by nasal cannula
Last dose of ceftriaxone at 06:30
Weight 81.5 kg   Height 178 cm"""
ECHO = """Cardiac Imaging, Tollgate Clinic
Echocardiogram of 21 October 2023
Left ventricular ejection fraction 52 %
Mitral valve: mild regurgitation
Aortic root 3.6 cm
No pericardial effusion"""
PRESCRIPTION = """Repeat prescription
1. Levothyroxine 75 micrograms
2. Bisoprolol 2.5 mg
3. Apixaban 5 mg twice daily
Prescriber: P. Nakamura"""
TRIAGE = """Emergency department triage
Arrived 23:14, category 3
Complaint: fall from ladder
Pain score 6 of 10, GCS 15
Tetanus booster given"""
SLIP = """Appointment slip
Eye clinic, 17 July, 14:20
Please bring your glasses"""


def build(folder: Path) -> list[Arrival]:
    """Write all files of the sealed half into a folder."""
    into = Folder(folder)
    for kind in (_tiff, _jpeg, _png, _docx, _html, _txt, _eml, _cda):
        kind(into)
    return into.arrivals


def _tiff(into: Folder) -> None:
    add = into.add
    wide = picture(ECHO, font="tiro", width=842, height=595, size=16)
    bilevel = picture(TRANSFER, dpi=(200, 200), mode="1", font="cour", size=13)
    finest = picture(TRIAGE, dpi=(204, 391), mode="1", size=13)
    coarse = picture(PRESCRIPTION, dpi=(204, 98), mode="1", font="tiro", size=18)
    small = picture(SLIP, width=300, height=200, size=14)
    add(
        "rx-0001.tiff",
        "TIFF",
        saved(finest, "TIFF", compression="group4", dpi=(204, 391)),
        "Superfine fax: pixels twice as wide as tall.",
        TRIAGE,
        pages=1,
    )
    pages = [coarse, bilevel, wide, small, finest]
    add(
        "bundle of five.TIF",
        "TIFF",
        tiff_pages(
            pages,
            [(204, 98), (200, 200), (200, 200), (200, 200), (204, 391)],
            ["group3", "group4", "tiff_adobe_deflate", "packbits", "tiff_lzw"],
        ),
        "Five sheets of five sizes and five compressions.",
        f"{PRESCRIPTION} {TRANSFER} {ECHO} {SLIP} {TRIAGE}",
        pages=5,
    )
    add(
        "cmyk.tif",
        "TIFF",
        saved(picture(SLIP, mode="CMYK", size=18), "TIFF", compression="tiff_lzw", dpi=(200, 200)),
        "Four printing colours in LZW.",
        SLIP,
        pages=1,
    )
    tile = 256
    across, down = -(-bilevel.width // tile), -(-bilevel.height // tile)
    grey = bilevel.convert("L")
    tiles = [
        zlib.compress(grey.crop((x * tile, y * tile, x * tile + tile, y * tile + tile)).tobytes())
        for y in range(down)
        for x in range(across)
    ]
    entries = [one for one in plain_entries(grey, compression=8) if one[0] != 278] + [
        (322, 3, [tile]),
        (323, 3, [tile]),
    ]
    add(
        "archive_tiles.tif",
        "TIFF",
        tiff([(entries, tiles)], is_tiled=True),
        "An archive that stores tiles.",
        TRANSFER,
        pages=1,
    )
    add(
        "cover_blank.tif",
        "TIFF",
        tiff_pages([Image.new("1", bilevel.size, 1), bilevel], [(200, 200)] * 2, ["group4"] * 2),
        "The first page is a blank separator; nothing is wrong.",
        TRANSFER,
        pages=2,
    )
    add(
        "bits_swapped.tif",
        "TIFF",
        tiff(
            [
                (
                    [*plain_entries(bilevel, bits=1), (266, 3, [2])],
                    [bytes(int(f"{b:08b}"[::-1], 2) for b in bilevel.tobytes())],
                )
            ]
        ),
        "Bits in the other order within a byte.",
        TRANSFER,
        pages=1,
    )
    add(
        "huge_format.tif",
        "TIFF",
        tiff(
            [
                (plain_entries(wide, compression=8), [zlib.compress(wide.tobytes())]),
                (plain_entries(small), [small.tobytes()]),
            ],
            big=True,
            order=">",
        ),
        "A BigTIFF, big-endian, of two sheets.",
        f"{ECHO} {SLIP}",
        pages=2,
        may_be_named=True,
    )
    add(
        "head_down.tif",
        "TIFF",
        saved(
            bilevel.transpose(Image.Transpose.ROTATE_180),
            "TIFF",
            compression="group4",
            dpi=(200, 200),
            tiffinfo={274: 3},
        ),
        "Fed upside down, and its orientation tag says so.",
        TRANSFER,
        pages=1,
    )
    add(
        "sixteen.tif",
        "TIFF",
        tiff([(plain_entries(small, bits=16), [bytes(b for v in small.tobytes() for b in (v, v))])]),
        "16 bits a pixel, little-endian.",
        SLIP,
        pages=1,
    )
    add(
        "inverted_grey.tif",
        "TIFF",
        tiff([(plain_entries(small, photometric=0), [bytes(255 - v for v in small.tobytes())])]),
        "Grey where zero is white.",
        SLIP,
        pages=1,
    )
    add(
        "jpeg_grey.tif",
        "TIFF",
        saved(wide, "TIFF", compression="jpeg", quality=80, dpi=(200, 200)),
        "Grey JPEG inside of TIFF.",
        ECHO,
        pages=1,
    )
    add(
        "fax.pdf",
        "TIFF",
        saved(bilevel, "TIFF", compression="group4", dpi=(200, 200)),
        "A fax with the ending of a PDF.",
        TRANSFER,
        pages=1,
    )
    chain = tiff(
        [
            (plain_entries(small), [small.tobytes()]),
            (plain_entries(wide, compression=8), [zlib.compress(wide.tobytes())]),
        ],
        last=0,
    )
    add(
        "circle_of_two.tif",
        "TIFF",
        chain,
        "Two pages, and the second points back to the first.",
        f"{SLIP} {ECHO}",
        pages=2,
        is_damaged=True,
    )
    ifd = struct.pack("<H", 9) + b"".join(
        struct.pack("<HHII", *row)
        for row in (
            (256, 3, 1, 1),
            (257, 3, 1, 1),
            (258, 3, 1, 8),
            (259, 3, 1, 1),
            (262, 3, 1, 1),
            (273, 4, 1, 4),
            (277, 3, 1, 1),
            (278, 3, 1, 1),
            (279, 4, 1, 1),
        )
    )
    step = len(ifd) + 4
    into.named(
        "frames.tif",
        "TIFF",
        b"II*\0\x08\0\0\0"
        + b"".join(ifd + struct.pack("<I", 8 + (n + 1) * step if n < 99_999 else 0) for n in range(100_000)),
        "A hundred thousand pages of one pixel.",
    )
    wide_lie = [
        (256, 4, [4_000_000_000]),
        (257, 4, [3]),
        (258, 3, [8]),
        (259, 3, [1]),
        (262, 3, [1]),
        (277, 3, [1]),
        (278, 4, [3]),
    ]
    into.named("wide.tif", "TIFF", tiff([(wide_lie, [b"\0" * 64])]), "Claims a width of four thousand million.")
    into.named(
        "cut_early.tif", "TIFF", saved(bilevel, "TIFF", compression="group4")[:20], "Breaks off before any page."
    )
    into.named("nil.tiff", "TIFF", b"", "Nothing arrived.")


def _jpeg(into: Folder) -> None:
    add = into.add
    photo = picture(TRIAGE, mode="RGB", dpi=(170, 170), font="tiro", size=14)
    exif = Image.Exif()
    exif[274] = 8
    add(
        "PXL_8841.jpg",
        "JPEG",
        saved(photo.transpose(Image.Transpose.ROTATE_270), "JPEG", quality=82, exif=exif),
        "A photograph held the other way, with EXIF rotation 8.",
        TRIAGE,
        pages=1,
    )
    plain = Image.Exif()
    plain[274] = 1
    add(
        "PXL_8842.jpeg",
        "JPEG",
        saved(photo, "JPEG", quality=82, exif=plain),
        "Upright, and EXIF says so.",
        TRIAGE,
        pages=1,
    )
    mirrored = Image.Exif()
    mirrored[274] = 2
    add(
        "front_camera.jpg",
        "JPEG",
        saved(photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT), "JPEG", quality=82, exif=mirrored),
        "Mirrored by the camera, and EXIF says so.",
        TRIAGE,
        pages=1,
    )
    add(
        "print_shop.jpg",
        "JPEG",
        saved(picture(ECHO, mode="CMYK"), "JPEG", quality=90),
        "Four printing colours without a resolution.",
        ECHO,
        pages=1,
    )
    add(
        "grey_progressive.JPG",
        "JPEG",
        saved(picture(TRANSFER, font="cour", size=13), "JPEG", progressive=True, quality=75, dpi=(200, 200)),
        "Grey and progressive.",
        TRANSFER,
        pages=1,
    )
    add(
        "coarse_colour.jpg",
        "JPEG",
        saved(picture(PRESCRIPTION, mode="RGB", size=15), "JPEG", quality=70, subsampling=2, dpi=(72, 72)),
        "Colour at a quarter of the resolution; states 72 dots per inch and has 200.",
        PRESCRIPTION,
        pages=1,
    )
    add(
        "scan_a3.jpg",
        "JPEG",
        saved(picture(ECHO, dpi=(400, 400), width=842, height=1191, size=18), "JPEG", quality=50, dpi=(400, 400)),
        "A3 at 400 dpi, 31 million pixels.",
        ECHO,
        pages=1,
    )
    add(
        "absurd_dpi.jpg",
        "JPEG",
        saved(picture(SLIP), "JPEG", dpi=(9600, 9600)),
        "States 9600 dots per inch; the page would be smaller than a stamp.",
        SLIP,
        pages=1,
    )
    add("photo.docx", "JPEG", saved(picture(SLIP), "JPEG"), "A JPEG with the ending of a Word letter.", SLIP, pages=1)
    commented = saved(picture(PRESCRIPTION), "JPEG", comment=b"zzcomment " * 500)
    add(
        "comment.jpg",
        "JPEG",
        commented,
        "A long comment in the file, which is not seen.",
        PRESCRIPTION,
        pages=1,
        absent=("zzcomment",),
    )
    torn = saved(
        picture(
            "Insulin glargine 18 units at night\nHbA1c 58 mmol/mol" + "\n" * 26 + "Next visit in May\nSigned: K. Strand"
        ),
        "JPEG",
        quality=92,
    )
    add(
        "torn.jpg",
        "JPEG",
        torn[: int(len(torn) * 0.62)],
        "The lower part is lost.",
        "Insulin glargine 18 units at night HbA1c 58 mmol/mol",
        pages=1,
        is_damaged=True,
    )
    into.named("nil.jpg", "JPEG", b"", "Nothing arrived.")
    into.named("two_bytes.jpg", "JPEG", b"\xff\xd8", "Only two bytes arrived.")
    into.named(
        "error_page.jpg",
        "JPEG",
        torn[:2] + b"<Error><Code>AccessDenied</Code></Error>",
        "A store's refusal behind the first bytes of a picture.",
    )


def _png(into: Folder) -> None:
    add = into.add
    sheet = picture(ECHO, font="tiro", size=13)
    pale = Image.new("LA", sheet.size, 0)
    pale.putalpha(sheet.point(lambda value: 255 - value))
    add("annotation_layer.png", "PNG", saved(pale, "PNG"), "Grey letters on a clear ground.", ECHO, pages=1)
    opaque = sheet.convert("RGBA")
    add(
        "opaque_alpha.png",
        "PNG",
        saved(opaque, "PNG", compress_level=1),
        "Has a channel of transparency and does not use it.",
        ECHO,
        pages=1,
    )
    few = picture(TRIAGE, mode="1", size=13).convert("P")
    add("two_colours.png", "PNG", saved(few, "PNG", bits=1), "A palette of two colours.", TRIAGE, pages=1)
    small = picture(SLIP, width=300, height=200, size=14)
    rgb = b"".join(
        b"\0" + bytes(b for v in small.tobytes()[y * small.width : (y + 1) * small.width] for b in (v, 0) * 3)
        for y in range(small.height)
    )
    add(
        "deep_colour.png",
        "PNG",
        png(small.width, small.height, 16, 2, zlib.compress(rgb)),
        "16 bits a colour.",
        SLIP,
        pages=1,
    )
    add("adam7.png", "PNG", interlaced(picture(TRANSFER, font="cour", size=13)), "Interlaced.", TRANSFER, pages=1)
    add(
        "tablet.png",
        "PNG",
        saved(picture(PRESCRIPTION, dpi=(144, 144), size=15, mode="RGB"), "PNG"),
        "A screenshot of a tablet.",
        PRESCRIPTION,
        pages=1,
    )
    add(
        "inverse.png",
        "PNG",
        saved(picture(SLIP, size=17).point(lambda v: 230 - v * 200 // 255), "PNG"),
        "Light letters on dark grey.",
        SLIP,
        pages=1,
    )
    add(
        "white.PNG",
        "PNG",
        saved(Image.new("RGB", (1240, 1754), "white"), "PNG"),
        "A blank sheet, which is no fault.",
        pages=1,
    )
    add(
        "label.png",
        "PNG",
        saved(picture("Tube 7731 EDTA", width=220, height=90, size=14), "PNG", dpi=(200, 200)),
        "The picture of a label.",
        "Tube 7731 EDTA",
        pages=1,
    )
    add("scan.txt", "PNG", saved(picture(TRIAGE), "PNG"), "A PNG with the ending of a text.", TRIAGE, pages=1)
    torn = saved(
        picture("Dialysis three times a week\nDry weight 64.0 kg" + "\n" * 27 + "Last line of the sheet"),
        "PNG",
        compress_level=0,
    )
    add(
        "torn.png",
        "PNG",
        torn[: len(torn) * 2 // 5],
        "Two fifths of the file; the first lines are whole.",
        "Dialysis three times a week Dry weight 64.0 kg",
        pages=1,
        is_damaged=True,
    )
    into.named("nil.png", "PNG", b"", "Nothing arrived.")
    into.named(
        "tower.png", "PNG", png(100, 2_000_000_000, 8, 0, squeezed(50_000_000)), "Claims two thousand million rows."
    )
    into.named("no_width.png", "PNG", png(0, 0, 8, 0, zlib.compress(b"")), "A picture of no size.")
    into.named("heading.png", "PNG", b"\x89PNG\r\n\x1a\n" + b"garbage" * 90, "The heading of a picture, and then none.")


def _docx(into: Folder) -> None:
    add = into.add
    memo = (
        para("Tollgate Clinic") + para("Re: Ms. Ngozi Brandt") + para("Biopsy of the sigmoid: tubular adenoma, 6 mm…")
    )
    seen = "Tollgate Clinic Re: Ms. Ngozi Brandt Biopsy of the sigmoid: tubular adenoma, 6 mm…"
    add("memo.DOCX", "DOCX", docx(memo), "A short memo; the ending is in capitals.", seen)
    add(
        "grid.docx",
        "DOCX",
        docx(table(("", "Mon", "Tue"), ("Fluid in", "1400", ""), ("", "", ""), ("Fluid out", "", "900"))),
        "A chart with an empty corner and an empty row.",
        "Mon Tue Fluid in 1400 Fluid out 900",
    )
    refs = '<w:headerReference w:type="first" r:id="rP0"/><w:headerReference w:type="default" r:id="rP1"/><w:titlePg/>'
    parts = {
        "header1.xml": ("header", head("hdr", "Unit no. 550318")),
        "header2.xml": ("header", head("hdr", "continued 550318")),
    }
    add(
        "first_header.docx",
        "DOCX",
        docx(para("Only one page."), parts, section=refs),
        "The first page has a header of its own; the other header is never seen.",
        "Unit no. 550318 Only one page.",
    )
    notes = f'<w:endnotes {NAMESPACES}><w:endnote w:id="3">{para("By the Cockcroft formula.")}</w:endnote></w:endnotes>'
    add(
        "endnote.docx",
        "DOCX",
        docx(
            para("Clearance 54 ml/min.", '<w:r><w:endnoteReference w:id="3"/></w:r>') + para("Dose halved."),
            {"endnotes.xml": ("endnotes", notes)},
        ),
        "An endnote.",
        "Clearance 54 ml/min. Dose halved. By the Cockcroft formula.",
    )
    who = 'w:id="7" w:author="Consultant" w:date="2024-02-02T00:00:00Z"'
    moved = para(f"<w:moveFrom {who}>{run('zzmoved')}</w:moveFrom>", run("Stage ")) + para(
        "II",
        f"<w:del {who}><w:r><w:delText>I zzgone</w:delText></w:r></w:del>",
        f"<w:ins {who}>{run(', node negative')}</w:ins>",
    )
    add(
        "changes.docx",
        "DOCX",
        docx(moved),
        "Moved, deleted and inserted words.",
        "Stage II, node negative",
        absent=("zzmoved", "zzgone"),
    )
    comments = f'<w:comments {NAMESPACES}><w:comment w:id="1" w:author="x">{para("zzremark")}</w:comment></w:comments>'
    add(
        "comments.docx",
        "DOCX",
        docx(
            para(
                '<w:commentRangeStart w:id="1"/>',
                run("Allergic to iodine."),
                '<w:commentRangeEnd w:id="1"/><w:r><w:commentReference w:id="1"/></w:r>',
            ),
            {"comments.xml": ("comments", comments)},
        ),
        "A remark in the margin; it may be read or not, the text must be.",
        "Allergic to iodine.",
    )
    numbering = f'<w:numbering {NAMESPACES}><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
    item = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
    add(
        "numbered.docx",
        "DOCX",
        docx(
            para("Problems") + para("Gout", style=item) + para("Hypertension", style=item),
            {"numbering.xml": ("numbering", numbering)},
        ),
        "A numbered list, whose numbers Word makes.",
        "Problems Gout Hypertension",
    )
    control = f"<w:sdt><w:sdtPr/><w:sdtContent>{para('Smoking status: former')}</w:sdtContent></w:sdt>"
    add(
        "form.docx",
        "DOCX",
        docx(para("Questionnaire") + control + para("Signed")),
        "An answer in a content control of a form.",
        "Questionnaire Smoking status: former Signed",
    )
    field = (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> MERGEFIELD zzfield </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>'
        + run("Ada Wren")
        + '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
    add(
        "merge.docx",
        "DOCX",
        docx(para(run("Patient: "), field, run(", female"))),
        "A merge field shows its result.",
        "Patient: Ada Wren, female",
        absent=("zzfield",),
    )
    spaced = para(
        run("pT2"),
        "<w:r><w:tab/></w:r>",
        run("pN0"),
        "<w:r><w:br/></w:r>",
        run("R0"),
        "<w:r><w:noBreakHyphen/></w:r>",
        run("resection"),
    )
    add(
        "tabs.docx",
        "DOCX",
        docx(spaced),
        "A tabulator, a line break and a hard hyphen between runs.",
        "pT2 pN0 R0-resection",
    )
    image = '<Relationship Id="rQ" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" Target="media/scan.png"/>'
    add(
        "only_scan.docx",
        "DOCX",
        docx(
            para(drawing("rQ")),
            raw={"word/media/scan.png": saved(picture("Visual acuity 0.8 both eyes", width=300, height=100), "PNG")},
            links=image,
        ),
        "A Word file around a scan, without any text.",
        "Visual acuity 0.8 both eyes",
    )
    add("letter.zip", "DOCX", docx(memo), "A Word letter with the ending of an archive.", seen)
    add(
        "split.docx",
        "DOCX",
        docx(para(run("Metopro"), run("lol 47"), run(".5 mg", "<w:b/>"))),
        "Words and numbers are split over runs.",
        "Metoprolol 47.5 mg",
    )
    into.named(
        "locked.docx",
        "DOCX",
        ole({"EncryptedPackage": bytes(range(255, -1, -1)) * 30, "EncryptionInfo": b"\4\0\4\0\x40\0\0\0<encryption/>"}),
        "Protected with a password.",
    )
    into.named(
        "report97.docx",
        "DOC",
        ole({"1Table": b"\0", "WordDocument": b"\xec\xa5\xc1\0Report"}),
        "Word 97 with the ending of today's Word.",
    )
    into.named(
        "sheet.docx",
        "XLSX",
        zipped({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": b"<workbook/>"}),
        "A workbook with the ending of a letter.",
    )
    whole = docx(memo)
    into.named("torn.docx", "DOCX", whole[:200], "The first 200 bytes of the archive.")
    into.named("nil.docx", "DOCX", b"", "Nothing arrived.")
    into.named(
        "laughs.docx",
        "DOCX",
        zipped(
            {
                "[Content_Types].xml": b"<Types/>",
                "word/document.xml": _laughs().encode()
                + f"<w:document {NAMESPACES}><w:body>{para('&k8;')}</w:body></w:document>".encode(),
            }
        ),
        "Entities that unpack without end.",
        ("zzha",),
    )
    into.named("blanks.docx", "DOCX", docx(para(" ") + table(("", ""))), "An empty form: a table without a word.")


def _laughs() -> str:
    names = "".join(f'<!ENTITY k{n} "{f"&k{n - 1};" * 12}">' for n in range(1, 9))
    return f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY k0 "zzha">{names}]>'


def _html(into: Folder) -> None:
    add = into.add
    body = "<h2>Röntgen</h2><p>Größe 1,2 cm – kein Erguss, Dosis 3 µGy</p>"
    seen = "Röntgen Größe 1,2 cm – kein Erguss, Dosis 3 µGy"
    add(
        "declared_1252.html",
        "HTML",
        f'<html><meta charset="windows-1252">{body}</html>'.encode("cp1252"),
        "Windows-1252, declared.",
        seen,
    )
    add(
        "latin_is_1252.html",
        "HTML",
        f'<html><meta charset="iso-8859-1">{body}</html>'.encode("cp1252"),
        "Says Latin-1 and has a dash of Windows, as browsers allow.",
        seen,
    )
    add(
        "big_endian.htm",
        "HTML",
        b"\xfe\xff" + f"<html>{body}</html>".encode("utf-16-be"),
        "UTF-16, big-endian, with a mark.",
        seen,
    )
    add(
        "marked.html", "HTML", f"<html>{body}</html>".encode("utf-8-sig"), "UTF-8 with a mark and no declaration.", seen
    )
    add(
        "xhtml.xhtml",
        "HTML",
        f'<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head><body>{body}</body></html>'.encode(),
        "XHTML.",
        seen,
    )
    add(
        "fragment.html",
        "HTML",
        b"<b>Urine culture</b><br>no growth<hr>reported 5 May",
        "No heading and no body.",
        "Urine culture no growth reported 5 May",
    )
    add(
        "concealed.html",
        "HTML",
        b"<html><body><template>zztemplate</template><noscript>Please print</noscript><p style='visibility:hidden'>zzghost</p><p STYLE='Display : None'>zznone</p><p>Hepatitis B immune</p><!--[if mso]>zzoffice<![endif]--></body></html>",
        "Templates, hidden paragraphs and remarks for Office are not seen.",
        "Hepatitis B immune",
        absent=("zztemplate", "zzghost", "zznone", "zzoffice"),
    )
    add(
        "spans.html",
        "HTML",
        b"<table><tr><th rowspan=2>Eye</th><th colspan=2>Pressure</th></tr><tr><th>am</th><th>pm</th></tr><tr><td>Right</td><td>14</td><td></td></tr><tr><td>Left</td><td></td><td>19</td></tr></table>",
        "Cells over several rows and columns, and empty ones.",
        "Eye Pressure am pm Right 14 Left 19",
    )
    add(
        "lists.html",
        "HTML",
        b"<ul><li>Avoid alcohol<li>Walk daily</ul><dl><dt>Contact<dd>Nurse Pell</dl><pre>pH   7.41\npCO2 38</pre>",
        "Lists without closing tags, and fixed text.",
        "Avoid alcohol Walk daily Contact Nurse Pell pH 7.41 pCO2 38",
    )
    add(
        "less_than.html",
        "HTML",
        b"<p>CRP < 5 mg/l and platelets > 150</p><p>R&D &copy; 2024 &unknown; end</p>",
        "A naked sign and an unknown entity, shown as they stand.",
        "CRP < 5 mg/l and platelets > 150 R&D © 2024 &unknown; end",
    )
    add(
        "tracker.html",
        "HTML",
        b'<meta http-equiv=refresh content="0;url=http://192.0.2.9/"><base href="http://192.0.2.9/"><p>Hip film normal</p><object data="file:///etc/passwd"></object><img src="../../../../etc/hostname" alt="">',
        "Would fetch and move on; nothing may be fetched.",
        "Hip film normal",
        absent=("root:x",),
    )
    shot = base64.b64encode(saved(picture("Lactate 1.1 mmol/l", width=300, height=100), "JPEG", quality=92)).decode()
    add(
        "inline_photo.html",
        "HTML",
        f'<h3>Blood gas</h3><div><img width="600" src="data:image/jpeg;base64,{shot}"></div><p>Taken at noon</p>'.encode(),
        "A value stands in an embedded photograph.",
        "Blood gas Lactate 1.1 mmol/l Taken at noon",
    )
    add(
        "report.jpg",
        "HTML",
        f'<!DOCTYPE html><html><meta charset="utf-8">{body}</html>'.encode(),
        "HTML with the ending of a picture.",
        seen,
    )
    add(
        "torn.html",
        "HTML",
        b"<!DOCTYPE html><html><body><h1>Lumbar puncture</h1><p>Cells 2 per microlitre.</p><table><tr><td>Protein</td><td>0.3",
        "Breaks off within a table.",
        "Lumbar puncture Cells 2 per microlitre.",
        is_damaged=True,
    )
    into.named("nil.html", "HTML", b"", "Nothing arrived.")
    into.named(
        "shell.html",
        "HTML",
        b"<html><head><title>Results</title><style>p{}</style></head><body>&nbsp;</body></html>",
        "A frame of a page without words.",
    )


def _txt(into: Folder) -> None:
    add = into.add
    note = "Fräulein Åse Brøndum\nSchmerzen 3/10, Größe 1,68 m\nKosten: keine\n"
    add("notiz.txt", "TXT", note.encode("latin-1"), "Latin-1 with letters of the north.", note)
    euro = "Café – “stable” … €20 copay\nÉtat général: bon\n"
    add("quotes.txt", "TXT", euro.encode("cp1252"), "Windows-1252 with quotes and a euro.", euro)
    add("no_mark_16.txt", "TXT", note.encode("utf-16-le"), "UTF-16 without a mark.", note)
    add(
        "marked.text",
        "TXT",
        note.encode("utf-8-sig").replace(b"\n", b"\r\n"),
        "UTF-8 with a mark, Windows line ends, another ending.",
        note,
    )
    add(
        "old_mac.txt",
        "TXT",
        b"Sedation level 2\rPupils equal\rFamily informed\r",
        "Line ends of an old Mac.",
        "Sedation level 2 Pupils equal Family informed",
    )
    aligned = "DRUG            DOSE      LAST\nheparin         5000 U    08:00\nparacetamol               12:00\n"
    add("aligned.txt", "TXT", aligned.encode(), "Columns of blanks with an empty cell.", aligned)
    feed = "Sheet one of three\fSheet two\f\fSheet three after a blank one\n"
    add("feeds.txt", "TXT", feed.encode(), "Form feeds with a blank sheet between.", feed)
    wide = "|".join(f"field{n}=value{n}" for n in range(900))
    add(
        "no_blanks.txt",
        "TXT",
        (f"Export begins {wide} Export ends").encode(),
        "A word of 15,000 letters that no line can hold; wherever it is broken, all around it is there.",
        "Export begins Export ends",
    )
    greek = "β-blocker stopped; Δ weight −2.5 kg; SpO₂ 96 %; 5 × 10⁹/l\nПациент в сознании\n"
    add("signs.txt", "TXT", greek.encode(), "Greek, signs, raised figures and Cyrillic.", greek)
    hl7 = "MSH|^~\\&|LAB|TOLLGATE|EHR|X|202401010000||ORU^R01|1|P|2.3\rOBX|1|NM|GLU||5.6|mmol/l\r"
    add("message.txt", "TXT", hl7.encode(), "A message of a laboratory machine, which is still text.", hl7)
    bell = "Vital signs\x07 stable\x1b[0m\nSaturation 97 %\x00\n"
    add("control.txt", "TXT", bell.encode(), "A few control characters of a terminal.", "Saturation 97 %")
    add(
        "tag_talk.txt",
        "TXT",
        b"The field <name> was left blank.\n<html> is no part of this note.\n",
        "Speaks of tags and is text.",
        "The field <name> was left blank. <html> is no part of this note.",
    )
    add(
        "rows.txt",
        "TXT",
        "".join(f"{n:05} respiration {12 + n % 9} per minute\n" for n in range(30_000)).encode(),
        "A monitor's log of 1 MB: read whole or named, never in part.",
        " ".join(f"{n:05} respiration {12 + n % 9} per minute" for n in range(30_000)),
        may_be_named=True,
    )
    into.named("nil.txt", "TXT", b"", "Nothing arrived.")
    into.named("mark_only.txt", "TXT", b"\xef\xbb\xbf\r\n", "A mark and an empty line.")
    into.named(
        "letter.txt",
        "RTF",
        rb"{\rtf1\ansi\deff0 Blood pressure normal.\par}",
        "RTF with the ending of a text; its commands are no words.",
    )
    into.named("noise.txt", "TXT", bytes((n * 197 + n // 7) % 256 for n in range(9000)), "Noise from a broken disk.")


def _eml(into: Folder) -> None:
    add = into.add
    top = 'From: "Tollgate, Desk" <desk@tollgate.invalid>\nTo: inbox@tollgate.invalid\nDate: Tue, 7 May 2024 08:15:00 +0200\nSubject: '
    note = text_part("Report enclosed, please call back.")
    seen = "Report enclosed, please call back."
    add(
        "html_only.eml",
        "EML",
        mail(
            top + "Results",
            text_part(
                "<style>zzstyle{}</style><table><tr><td>CEA</td><td>2.9</td></tr></table><p>Within range</p>", "html"
            ),
        ),
        "HTML alone.",
        "Results CEA 2.9 Within range",
        absent=("zzstyle",),
    )
    add(
        "soft.eml",
        "EML",
        mail(
            top + "=?iso-8859-1?B?TvxjaHRlcm4=?=",
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nF=C3=BCr morgen n=C3=BCchtern, 8=\n:00 Uhr =3D fr=C3=BCh.\n",
        ),
        "Quoted-printable with equals signs.",
        "Nüchtern Für morgen nüchtern, 8:00 Uhr = früh.",
    )
    add(
        "wrong_charset.eml",
        "EML",
        mail(
            top + "Visit",
            b"Content-Type: text/plain; charset=us-ascii\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
            + "Temperature 38 °C in Malmö\r\n".encode(),
        ),
        "Says ASCII and is UTF-8.",
        "Visit Temperature 38 °C in Malmö",
    )
    page = saved(picture(TRIAGE), "JPEG", quality=85)
    shot = part("image/jpeg", page, "Content-ID: <p1>", 'Content-Disposition: inline; filename="image001.jpg"')
    add(
        "phone.eml",
        "EML",
        mail(top + "Photo", multipart("related", text_part('<p>See sheet</p><img src="cid:p1">', "html"), shot)),
        "A photographed sheet stands inline: it is the document.",
        "Photo See sheet",
        attachments=("image001.jpg",),
    )
    logo = part(
        "image/gif",
        saved(Image.new("P", (120, 40), 3), "GIF"),
        "Content-ID: <l>",
        'Content-Disposition: inline; filename="crest.gif"',
    )
    both = multipart(
        "related",
        multipart(
            "alternative",
            note,
            text_part("<p>Report enclosed, please call back.</p><img src='cid:l'>", "html"),
            mark="=_in",
        ),
        logo,
        mark="=_mid",
    )
    add(
        "layers.eml",
        "EML",
        mail(
            top + "Layers", multipart("mixed", both, attached("echo.pdf", "application/pdf", pdf(ECHO)), mark="=_out")
        ),
        "Three layers, a crest and a PDF.",
        "Layers " + seen,
        attachments=("echo.pdf",),
    )
    add(
        "octets.eml",
        "EML",
        mail(top + "Scan", multipart("mixed", note, attached("scan.PDF", "application/octet-stream", pdf(TRIAGE)))),
        "A PDF declared as octets.",
        "Scan " + seen,
        attachments=("scan.PDF",),
    )
    coded = part(
        'application/pdf; name="=?utf-8?B?QmVmdW5kIMOWLnBkZg==?="', pdf(SLIP), "Content-Disposition: attachment"
    )
    add(
        "coded_name.eml",
        "EML",
        mail(top + "Befund", multipart("mixed", note, coded)),
        "The name is coded and stands only in the type.",
        "Befund " + seen,
        attachments=("Befund Ö.pdf",),
    )
    add(
        "windows_path.eml",
        "EML",
        mail(
            top + "Path",
            multipart("mixed", note, attached("C:\\\\scans\\\\today\\\\slip.pdf", "application/pdf", pdf(SLIP))),
        ),
        "A name with folders of Windows.",
        "Path " + seen,
        attachments=("slip.pdf",),
    )
    fax = tiff_pages([picture(PRESCRIPTION, mode="1"), picture(TRIAGE, mode="1")], [(200, 200)] * 2, ["group4"] * 2)
    many = multipart(
        "mixed",
        note,
        attached("a.tif", "image/tiff", fax),
        attached("b.docx", "application/octet-stream", docx(para("Plan kept."))),
        attached("c.txt", "text/plain", b"Weight 70 kg"),
        attached("d.html", "text/html", b"<p>Diet</p>"),
    )
    add(
        "many.eml",
        "EML",
        mail(top + "Four", many),
        "A fax, a letter, a text and a page.",
        "Four " + seen,
        attachments=("a.tif", "b.docx", "c.txt", "d.html"),
    )
    deepest = mail(
        top + "Innermost",
        multipart("mixed", text_part("Core"), attached("core.pdf", "application/pdf", pdf(SLIP)), mark="=_x"),
    ).decode()
    inner = mail(
        top + "Middle",
        multipart(
            "mixed",
            text_part("Shell"),
            f'Content-Type: message/rfc822\nContent-Disposition: attachment; filename="core.eml"\n\n{deepest}',
            mark="=_y",
        ),
    ).decode()
    add(
        "onion.eml",
        "EML",
        mail(
            top + "Outer",
            multipart(
                "mixed",
                note,
                f'Content-Type: message/rfc822\nContent-Disposition: attachment; filename="shell.eml"\n\n{inner}',
                mark="=_z",
            ),
        ),
        "A mail in a mail in a mail, with a PDF in the innermost.",
        "Outer " + seen,
        attachments=("shell.eml", "core.eml", "core.pdf"),
    )
    meeting = 'Content-Type: text/calendar; method=REQUEST\nContent-Disposition: attachment; filename="invite.ics"\n\nBEGIN:VCALENDAR\nEND:VCALENDAR\n'
    add(
        "invite.eml",
        "EML",
        mail(top + "Tumour board", multipart("mixed", note, meeting)),
        "An invitation, to be named.",
        "Tumour board " + seen,
        named_attachments=("invite.ics",),
    )
    pack = attached("archive.zip", "application/zip", zipped({"x.pdf": pdf(SLIP)}))
    add(
        "zip.eml",
        "EML",
        mail(top + "Archive", multipart("mixed", note, pack, attached("nil.pdf", "application/pdf", b""))),
        "An archive and an empty PDF, both to be named.",
        "Archive " + seen,
        named_attachments=("archive.zip", "nil.pdf"),
    )
    add("unix.eml", "EML", mail(top + "Unix", note).replace(b"\r\n", b"\n"), "Line ends of Unix.", "Unix " + seen)
    torn = mail(top + "Torn", multipart("mixed", note, attached("echo.pdf", "application/pdf", pdf(ECHO))))
    add(
        "torn.eml",
        "EML",
        torn[: torn.index(b"filename=") + 300],
        "Breaks off early in the attachment.",
        "Torn " + seen,
        is_damaged=True,
    )
    add(
        "no_end.eml",
        "EML",
        mail(top + "Open end", multipart("mixed", note, attached("slip.pdf", "application/pdf", pdf(SLIP)))).rsplit(
            b"--=_edge_1--", 1
        )[0],
        "The last boundary is missing, as some gateways send it; nothing is lost.",
        "Open end " + seen,
        attachments=("slip.pdf",),
    )
    into.named("nil.eml", "EML", b"", "Nothing arrived.")
    into.named(
        "sealed.eml",
        "EML",
        mail(
            top,
            part(
                'application/pkcs7-mime; smime-type=enveloped-data; name="smime.p7m"', b"\x30\x80\x06\x09" + bytes(400)
            ),
        ),
        "An encrypted mail, which nobody can read without its key.",
    )


def _cda(into: Folder) -> None:
    add = into.add
    meds = section(
        "Medications",
        "<table><caption>Current</caption><tbody><tr><th>Drug</th><th>Dose</th><th>Until</th></tr><tr><td ID='m1'>Apixaban</td><td>5 mg</td><td></td></tr></tbody></table><footnote>Checked by pharmacy</footnote>",
    )
    seen = "Medications Current Drug Dose Until Apixaban 5 mg Checked by pharmacy"
    whole = cda(meds, title="Transfer summary", patient="<given>Yusuf</given><family>Havelock</family>")
    titled = "Transfer summary " + seen
    add("transfer.xml", "C-CDA", whole.encode(), "A caption, an empty cell and a footnote.", titled)
    add("transfer16.xml", "C-CDA", whole.replace("UTF-8", "UTF-16").encode("utf-16"), "UTF-16.", titled)
    add(
        "sheet.xml",
        "C-CDA",
        whole.replace(
            "<ClinicalDocument",
            '<?xml-stylesheet type="text/xsl" href="http://192.0.2.3/CDA.xsl"?>\n<ClinicalDocument',
            1,
        ).encode(),
        "Names a style sheet that must not be fetched.",
        titled,
    )
    inner = section("Social history", "<paragraph>Lives alone</paragraph>").replace(
        "</section>", section("Tobacco", "<paragraph>Stopped 2009</paragraph>") + "</section>", 1
    )
    add(
        "subsections.xml",
        "C-CDA",
        cda(inner).encode(),
        "A section within a section.",
        "Social history Lives alone Tobacco Stopped 2009",
    )
    add(
        "nested_list.xml",
        "C-CDA",
        cda(
            section(
                "Plan of care",
                "<list listType='ordered'><caption>Steps</caption><item>Stop clopidogrel<list><item>five days before</item></list></item><item>Fast &amp; rest</item></list>",
            )
        ).encode(),
        "A list within a list.",
        "Plan of care Steps Stop clopidogrel five days before Fast & rest",
    )
    add(
        "cdata.xml",
        "C-CDA",
        cda(section("Assessment", "<![CDATA[eGFR < 60 & stable]]>")).encode(),
        "Narrative in CDATA.",
        "Assessment eGFR < 60 & stable",
    )
    add(
        "null.xml",
        "C-CDA",
        cda(
            section("Immunizations", "")
            + section("Functional status", "Independent <linkHtml href='http://192.0.2.4/'>walker</linkHtml>")
        ).encode(),
        "A section without narrative, which is no fault.",
        "Immunizations Functional status Independent walker",
    )
    deleted = "<paragraph>Penicillin <content revised='delete'>zzmild</content><content revised='insert'>severe</content> reaction</paragraph>"
    add(
        "revised.xml",
        "C-CDA",
        cda(section("Allergies", deleted)).encode(),
        "Narrative with revisions: which are shown is told by the standard.",
        "Allergies Penicillin severe reaction",
    )
    coded = base64.b64encode(pdf(TRANSFER, ECHO, font="tiro")).decode()
    add(
        "pdf_inside.xml",
        "C-CDA",
        cda(
            "",
            body=f"<nonXMLBody><text representation='B64' mediaType='application/pdf'>\n  {coded}\n </text></nonXMLBody>",
        ).encode(),
        "The body is a PDF of two pages.",
        f"{TRANSFER} {ECHO}",
    )
    tif = base64.b64encode(saved(picture(TRIAGE, mode="1"), "TIFF", compression="group4", dpi=(200, 200))).decode()
    add(
        "tiff_inside.xml",
        "C-CDA",
        cda(
            "", body=f'<nonXMLBody><text mediaType="image/tiff" representation="B64">{tif}</text></nonXMLBody>'
        ).encode(),
        "The body is a fax.",
        TRIAGE,
    )
    media = section(
        "Images",
        "<paragraph>Fundus</paragraph><renderMultiMedia referencedObject='mm1'/><paragraph>No haemorrhage</paragraph>",
    )
    add(
        "media.xml",
        "C-CDA",
        cda(media).encode(),
        "Refers to a picture that is not there.",
        "Images Fundus No haemorrhage",
    )
    add("cda.html", "C-CDA", whole.encode(), "A clinical document with the ending of a page.", titled)
    into.named(
        "grows.xml",
        "C-CDA",
        _laughs().encode() + cda(section("Plan", "&k8;"), declaration="").strip().encode(),
        "Entities that unpack without end.",
        ("zzha",),
    )
    into.named(
        "fetches.xml",
        "C-CDA",
        cda(
            section("Plan", "text"),
            declaration='<?xml version="1.0"?><!DOCTYPE x [<!ENTITY % p SYSTEM "file:///etc/hostname"> %p;]>',
        ).encode(),
        "A parameter entity that points to a file.",
    )
    into.named(
        "bundle.xml",
        "C-CDA",
        b'<Bundle xmlns="http://hl7.org/fhir"><type value="document"/></Bundle>',
        "Another standard's XML.",
    )
    into.named(
        "stranger.xml",
        "C-CDA",
        b'<ClinicalDocument xmlns="urn:example:other"><text>x</text></ClinicalDocument>',
        "The right root of another namespace.",
    )
    into.named(
        "bad_body.xml",
        "C-CDA",
        cda(
            "", body='<nonXMLBody><text mediaType="application/pdf" representation="B64">@@@@</text></nonXMLBody>'
        ).encode(),
        "The embedded PDF is none.",
    )
    into.named("nil.xml", "C-CDA", b"", "Nothing arrived.")
    torn = cda(section("Procedures", "<paragraph>Hip replacement 2016</paragraph>") + meds).encode()
    add(
        "torn.xml",
        "C-CDA",
        torn[: torn.index(b"Apixaban") + 4],
        "The second section breaks off; the first is whole.",
        "Procedures Hip replacement 2016",
        is_damaged=True,
    )
