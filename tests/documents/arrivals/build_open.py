"""The open half of the arriving files: builders of readers may look at these."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING

from documents.arrivals.making import (
    NAMESPACES,
    Folder,
    attached,
    cda,
    chunk,
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

REFERRAL = """Harrow Lane Surgery
Referral to the chest clinic
Patient: Odette Farnsworth, born 12 April 1951
Dear colleague,
please see this lady with a cough of nine weeks.
Sputum cultures were negative on 3 March 2024.
She takes salbutamol 100 micrograms as needed.
Kind regards, Dr. Imre Bolton"""
RESULT = """Ridgeway Laboratory
Sample 88213 taken 14.02.2024
Haemoglobin 13.4 g/dl
Leucocytes 7.2 /nl
Creatinine 0.9 mg/dl
Potassium 4.4 mmol/l
Released by T. Okafor"""
PATHOLOGY = """Pathology report 24-0917
Specimen: left breast, core biopsy
Invasive carcinoma, grade 2
Estrogen receptor 90 percent positive
HER2 score 1+
Ki-67 about 15 percent"""
ROUND = """Ward round, 9 May 2024
Mr. Kwabena Lindqvist, bed 14
Temperature 37.9 overnight, pulse 88
Continue piperacillin 4.5 g three times daily
Drain removed without bleeding"""
SHORT = """Discharge note
Ferrous sulphate 200 mg once daily
Review in six weeks"""


def build(folder: Path) -> list[Arrival]:
    """Write all files of the open half into a folder."""
    into = Folder(folder)
    for kind in (_tiff, _jpeg, _png, _docx, _html, _txt, _eml, _cda):
        kind(into)
    return into.arrivals


def _tiff(into: Folder) -> None:
    fine = picture(REFERRAL, dpi=(204, 196), mode="1", size=13)
    low = picture(RESULT, dpi=(204, 98), mode="1", size=15)
    grey = picture(PATHOLOGY)
    add = into.add
    add(
        "fax_20240307_0911.tif",
        "TIFF",
        saved(fine, "TIFF", compression="group4", dpi=(204, 196)),
        "A fine fax of one page in G4.",
        REFERRAL,
        pages=1,
    )
    add(
        "FAX00017.TIF",
        "TIFF",
        saved(low, "TIFF", compression="group3", dpi=(204, 98)),
        "A standard fax whose pixels are twice as tall as wide.",
        RESULT,
        pages=1,
    )
    add(
        "inbox-3-pages.tiff",
        "TIFF",
        tiff_pages([fine, low, grey], [(204, 196), (204, 98), (200, 200)], ["group4", "group3", "tiff_lzw"]),
        "Three pages of different size, resolution and compression.",
        f"{REFERRAL} {RESULT} {PATHOLOGY}",
        pages=3,
    )
    add(
        "scan jpeg inside.tif",
        "TIFF",
        saved(picture(ROUND, mode="RGB", font="tiro"), "TIFF", compression="jpeg", quality=85, dpi=(200, 200)),
        "Colour scan with JPEG inside of TIFF.",
        ROUND,
        pages=1,
    )
    add(
        "deflate.tif",
        "TIFF",
        saved(grey, "TIFF", compression="tiff_adobe_deflate", dpi=(200, 200)),
        "Grey scan in deflate.",
        PATHOLOGY,
        pages=1,
    )
    add(
        "white-is-zero.tif",
        "TIFF",
        tiff([(plain_entries(fine, bits=1, photometric=0), [bytes(255 - b for b in fine.tobytes())])]),
        "Two colours where zero is white, without a resolution.",
        REFERRAL,
        pages=1,
    )
    deep = bytes(b for value in grey.tobytes() for b in (value, value))
    add(
        "sixteen_bits.tif",
        "TIFF",
        tiff([(plain_entries(grey, bits=16), [deep])], order=">"),
        "16 bits a pixel, big-endian, from a film digitiser.",
        PATHOLOGY,
        pages=1,
    )
    turned = grey.transpose(Image.Transpose.ROTATE_90)
    add(
        "orientation.tif",
        "TIFF",
        saved(turned, "TIFF", compression="tiff_lzw", dpi=(200, 200), tiffinfo={274: 6}),
        "Lies on its side, and its orientation tag says so.",
        PATHOLOGY,
        pages=1,
    )
    add(
        "big.tif",
        "TIFF",
        tiff([(plain_entries(grey), [grey.tobytes()])], big=True),
        "A BigTIFF of one page.",
        PATHOLOGY,
        pages=1,
    )
    add(
        "palette.tif",
        "TIFF",
        saved(picture(RESULT, font="cour").convert("P"), "TIFF", compression="packbits", dpi=(200, 200)),
        "Colours from a palette.",
        RESULT,
        pages=1,
    )
    add(
        "with_blank_back.tif",
        "TIFF",
        tiff_pages([fine, Image.new("1", fine.size, 1)], [(204, 196)] * 2, ["group4"] * 2),
        "The back of the sheet is blank; nothing is wrong.",
        REFERRAL,
        pages=2,
    )
    add(
        "really_a_jpeg.tif",
        "JPEG",
        saved(picture(ROUND), "JPEG", quality=90, dpi=(200, 200)),
        "A JPEG with the ending of a TIFF.",
        ROUND,
        pages=1,
    )
    loop = tiff([(plain_entries(grey, compression=8), [zlib.compress(grey.tobytes())])], last=0)
    add(
        "loop.tif",
        "TIFF",
        loop,
        "Its last directory points back to the first: one page is there, the chain is broken.",
        PATHOLOGY,
        pages=1,
        is_damaged=True,
    )
    pair = tiff([(plain_entries(grey), [grey.tobytes()]), (plain_entries(low, bits=1), [low.tobytes()])])
    add(
        "second_page_lost.tif",
        "TIFF",
        pair[: len(pair) - 60],
        "The transfer broke within the directory of page two; page one is whole.",
        PATHOLOGY,
        pages=None,
        is_damaged=True,
    )
    into.named("empty.tif", "TIFF", b"", "Nothing arrived.")
    into.named("header_only.tif", "TIFF", b"II*\0\x08\0\0\0", "Only the first eight bytes arrived.")
    bomb = [
        (256, 4, [60_000]),
        (257, 4, [60_000]),
        (258, 3, [8]),
        (259, 3, [8]),
        (262, 3, [1]),
        (277, 3, [1]),
        (278, 4, [60_000]),
    ]
    into.named("bomb.tif", "TIFF", tiff([(bomb, [squeezed(100_000_000)])]), "Claims 3.6 thousand million pixels.")


def _jpeg(into: Folder) -> None:
    add = into.add
    photo = picture(REFERRAL, mode="RGB", dpi=(180, 180))
    for name, number, move in (
        ("IMG_2291.jpg", 6, Image.Transpose.ROTATE_90),
        ("IMG_2292.JPG", 3, Image.Transpose.ROTATE_180),
    ):
        exif = Image.Exif()
        exif[274] = number
        add(
            name,
            "JPEG",
            saved(photo.transpose(move), "JPEG", quality=85, exif=exif),
            f"A photograph with EXIF rotation {number}.",
            REFERRAL,
            pages=1,
        )
    add(
        "cmyk.jpg",
        "JPEG",
        saved(picture(PATHOLOGY, mode="CMYK"), "JPEG", quality=88, dpi=(200, 200)),
        "Four printing colours.",
        PATHOLOGY,
        pages=1,
    )
    add(
        "grey.jpeg",
        "JPEG",
        saved(picture(RESULT, font="cour"), "JPEG", quality=80, dpi=(200, 200)),
        "A grey scan.",
        RESULT,
        pages=1,
    )
    add(
        "progressive.jpg",
        "JPEG",
        saved(picture(ROUND, mode="RGB"), "JPEG", progressive=True, quality=80),
        "Progressive, without a resolution.",
        ROUND,
        pages=1,
    )
    add(
        "dpi_of_one.jpg",
        "JPEG",
        saved(picture(SHORT, dpi=(150, 150)), "JPEG", dpi=(1, 1), quality=90),
        "States a resolution of one dot per inch; the page would be 30 metres tall.",
        SHORT,
        pages=1,
    )
    add(
        "poster.jpg",
        "JPEG",
        saved(picture(SHORT, dpi=(600, 600), size=16), "JPEG", quality=60, dpi=(600, 600)),
        "A page at 600 dpi, 35 million pixels.",
        SHORT,
        pages=1,
    )
    add(
        "strip.jpg",
        "JPEG",
        saved(picture("Potassium 4.4 mmol/l", height=100, width=300), "JPEG", dpi=(200, 200)),
        "A narrow cutting of one line.",
        "Potassium 4.4 mmol/l",
        pages=1,
    )
    add(
        "whatsapp_forward.png",
        "JPEG",
        saved(picture(ROUND), "JPEG"),
        "A JPEG with the ending of a PNG.",
        ROUND,
        pages=1,
    )
    whole = saved(picture(PATHOLOGY, mode="RGB"), "JPEG", quality=90)
    add(
        "trailing.jpg",
        "JPEG",
        whole + b"\0" * 3000,
        "Zeros after the end of the picture; nothing is lost.",
        PATHOLOGY,
        pages=1,
    )
    tall = picture(
        "Upper half: allergy to penicillin\nNo other allergies known" + "\n" * 28 + "Lower half: signed by Dr. Amsel"
    )
    cut = saved(tall, "JPEG", quality=90)
    add(
        "cut.jpg",
        "JPEG",
        cut[: int(len(cut) * 0.72)],
        "The upload broke; the upper lines are whole, the rest is lost.",
        "Upper half: allergy to penicillin No other allergies known",
        pages=1,
        is_damaged=True,
    )
    into.named("zero.jpg", "JPEG", b"", "Nothing arrived.")
    into.named("only_start.jpg", "JPEG", cut[:150], "Only tables, no picture.")
    into.named("portal_page.jpg", "JPEG", b"\0" * 40_000, "Zeros from a broken disk.")
    vast = bytearray(saved(Image.new("L", (16, 16), 255), "JPEG"))
    at = vast.index(b"\xff\xc0")
    vast[at + 5 : at + 9] = b"\xff\xdc\xff\xdc"
    into.named("vast.jpg", "JPEG", bytes(vast), "Claims 65,500 pixels each way and has data for sixteen.")


def _png(into: Folder) -> None:
    add = into.add
    base = picture(RESULT)
    clear = Image.new("RGBA", base.size, (0, 0, 0, 0))
    clear.putalpha(base.point(lambda value: 255 - value))
    add("portal_export.png", "PNG", saved(clear, "PNG"), "Black letters on a transparent ground.", RESULT, pages=1)
    add(
        "palette.png",
        "PNG",
        saved(picture(PATHOLOGY, font="tiro").convert("P"), "PNG", dpi=(200, 200)),
        "Colours from a palette.",
        PATHOLOGY,
        pages=1,
    )
    add(
        "deep.png",
        "PNG",
        png(
            base.width,
            base.height,
            16,
            0,
            zlib.compress(
                b"".join(
                    b"\0" + bytes(b for v in base.tobytes()[y * base.width : (y + 1) * base.width] for b in (v, v))
                    for y in range(base.height)
                ),
                1,
            ),
        ),
        "16 bits a pixel.",
        RESULT,
        pages=1,
    )
    add("interlaced.png", "PNG", interlaced(picture(ROUND)), "Interlaced.", ROUND, pages=1)
    add(
        "one_bit.png",
        "PNG",
        saved(picture(REFERRAL, mode="1", size=13), "PNG", dpi=(200, 200)),
        "Two colours.",
        REFERRAL,
        pages=1,
    )
    add(
        "dark_mode.png",
        "PNG",
        saved(picture(SHORT, size=16).point(lambda value: 255 - value), "PNG"),
        "White letters on black, from a screen in dark mode.",
        SHORT,
        pages=1,
    )
    add(
        "screenshot_96.png",
        "PNG",
        saved(picture(SHORT, dpi=(96, 96), size=16), "PNG", dpi=(96, 96)),
        "A screenshot in large letters.",
        SHORT,
        pages=1,
    )
    add(
        "blank.png",
        "PNG",
        saved(Image.new("L", (1654, 2339), 255), "PNG"),
        "A blank page: a page without words, and nothing is wrong.",
        pages=1,
    )
    add(
        "chart.jpg", "PNG", saved(picture(ROUND, mode="RGB"), "PNG"), "A PNG with the ending of a JPEG.", ROUND, pages=1
    )
    add("pdf_named.png", "PDF", pdf(SHORT), "A PDF with the ending of a PNG.", SHORT)
    upper = picture("Clinic of Rheumatology Elmstead\nMethotrexate 15 mg weekly" + "\n" * 30 + "Page end")
    cut = saved(upper, "PNG", compress_level=0)
    add(
        "cut.png",
        "PNG",
        cut[: len(cut) // 2],
        "Half of the file; the upper lines are whole.",
        "Clinic of Rheumatology Elmstead Methotrexate 15 mg weekly",
        pages=1,
        is_damaged=True,
    )
    into.named("zero.png", "PNG", b"", "Nothing arrived.")
    into.named(
        "bomb.png",
        "PNG",
        png(50_000, 50_000, 1, 0, squeezed(312_000_000)),
        "2.5 thousand million pixels in a small file.",
    )
    into.named("no_data.png", "PNG", saved(Image.new("L", (900, 900), 255), "PNG")[:33], "A heading without a picture.")
    note = chunk(b"zTXt", b"Comment\0\0" + squeezed(200_000_000, b"x"))
    add(
        "comment_bomb.png",
        "PNG",
        png(
            base.width,
            base.height,
            8,
            0,
            zlib.compress(
                b"".join(b"\0" + base.tobytes()[y * base.width : (y + 1) * base.width] for y in range(base.height))
            ),
            note,
        ),
        "A sound picture with a comment that unpacks to 200 MB.",
        RESULT,
        pages=1,
        may_be_named=True,
    )


def _docx(into: Folder) -> None:
    add = into.add
    letter = (
        para("Dear Dr. Quayle,")
        + para("we report on “Mr. Tomasz O’Dell” – seen on 4 June 2024.")
        + para("Plan: ramipril 5 mg, review in 3 months.")
    )
    add(
        "letter.docx",
        "DOCX",
        docx(letter),
        "A plain letter with smart quotes.",
        "Dear Dr. Quayle, we report on “Mr. Tomasz O’Dell” – seen on 4 June 2024. Plan: ramipril 5 mg, review in 3 months.",
    )
    add(
        "labs.docx",
        "DOCX",
        docx(
            para("Laboratory")
            + table(("Test", "Value", "Unit"), ("Sodium", "", "mmol/l"), ("Ferritin", "23", ""))
            + para("End")
        ),
        "A table with empty cells.",
        "Laboratory Test Value Unit Sodium mmol/l Ferritin 23 End",
    )
    parts = {
        "header1.xml": ("header", head("hdr", "Elmstead Hospital, MRN 40017")),
        "footer1.xml": ("footer", head("ftr", "Confidential")),
    }
    refs = '<w:headerReference w:type="default" r:id="rP0"/><w:footerReference w:type="default" r:id="rP1"/>'
    add(
        "header.docx",
        "DOCX",
        docx(para("Discharged home in good condition."), parts, section=refs),
        "The number of the patient stands only in the header.",
        "Elmstead Hospital, MRN 40017 Discharged home in good condition. Confidential",
    )
    notes = f'<w:footnotes {NAMESPACES}><w:footnote w:type="separator" w:id="-1">{para("<w:r><w:separator/></w:r>")}</w:footnote><w:footnote w:id="2">{para("Measured by echocardiography.")}</w:footnote></w:footnotes>'
    add(
        "footnote.docx",
        "DOCX",
        docx(
            para("Ejection fraction 45 %.", '<w:r><w:footnoteReference w:id="2"/></w:r>') + para("No effusion."),
            {"footnotes.xml": ("footnotes", notes)},
        ),
        "A footnote.",
        "Ejection fraction 45 %. No effusion. Measured by echocardiography.",
    )
    who = 'w:id="1" w:author="Registrar" w:date="2024-01-01T00:00:00Z"'
    changed = para(
        "Warfarin was ",
        f"<w:del {who}><w:r><w:delText>continued</w:delText></w:r></w:del>",
        f"<w:ins {who}>{run('stopped')}</w:ins>",
        run(" before surgery."),
    )
    add(
        "tracked.docx",
        "DOCX",
        docx(changed),
        "A tracked change: the deleted word is not part of the letter.",
        "Warfarin was stopped before surgery.",
        absent=("continued",),
    )
    add(
        "hidden.docx",
        "DOCX",
        docx(para(run("Biopsy benign."), run("zzinternal billing", "<w:vanish/>"), run(" Recall in one year."))),
        "Hidden text is not shown.",
        "Biopsy benign. Recall in one year.",
        absent=("zzinternal",),
    )
    box = f'<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:inline><wp:extent cx="3000000" cy="600000"/><wp:docPr id="3" name="b"/><a:graphic><a:graphicData uri="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"><wps:wsp><wps:cNvSpPr txBox="1"/><wps:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="3000000" cy="600000"/></a:xfrm><a:prstGeom prst="rect"/></wps:spPr><wps:txbx><w:txbxContent>{para("ALLERGY: latex")}</w:txbxContent></wps:txbx><wps:bodyPr/></wps:wsp></a:graphicData></a:graphic></wp:inline></w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape style="width:200pt;height:40pt"><v:textbox><w:txbxContent>{para("ALLERGY: latex")}</w:txbxContent></v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>'
    add(
        "text_box.docx",
        "DOCX",
        docx(para("Anaesthesia record") + para(box) + para("Airway grade 1")),
        "The allergy stands in a text box, once, though the file holds it twice.",
        "Anaesthesia record ALLERGY: latex Airway grade 1",
    )
    nested = table(("Drug", table(("dose", "time"), ("10 mg", "noon")) + para()), ("Route", "oral"))
    add("nested.docx", "DOCX", docx(nested), "A table in the cell of a table.", "Drug dose time 10 mg noon Route oral")
    image = '<Relationship Id="rI" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" Target="media/image1.png"/>'
    shot = saved(picture("Peak flow 410 litres", width=300, height=100), "PNG")
    add(
        "with_picture.docx",
        "DOCX",
        docx(
            para("Spirometry attached:") + para(drawing("rI")) + para("Reported by Dr. Voss"),
            raw={"word/media/image1.png": shot},
            links=image,
        ),
        "A result stands only in an embedded picture.",
        "Spirometry attached: Peak flow 410 litres Reported by Dr. Voss",
    )
    add(
        "macros.docm",
        "DOCX",
        docx(
            para("Consent form signed on 2 May 2024."),
            macros=True,
            raw={"word/vbaProject.bin": b"\xd0\xcf\x11\xe0" + b"\0" * 600},
        ),
        "Holds macros, which must never run; the text is plain.",
        "Consent form signed on 2 May 2024.",
    )
    rel = '<Relationship Id="rL" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink" Target="https://clinic.invalid/x" TargetMode="External"/>'
    add(
        "link.docx",
        "DOCX",
        docx(
            para("See ", f'<w:hyperlink r:id="rL">{run("the guideline")}</w:hyperlink>', run(" for doses."))
            + para('<w:r><w:br w:type="page"/></w:r>')
            + para("Second page"),
            links=rel,
        ),
        "A link and a page break.",
        "See the guideline for doses. Second page",
    )
    into.named("empty_body.docx", "DOCX", docx(para()), "A letter without a word.")
    into.named(
        "encrypted.docx",
        "DOCX",
        ole({"EncryptionInfo": b"\4\0\4\0\x40\0\0\0<encryption/>", "EncryptedPackage": bytes(range(256)) * 20}),
        "Protected with a password.",
    )
    into.named(
        "old.doc",
        "DOC",
        ole({"WordDocument": b"\xec\xa5\xc1\0" + b"Old letter", "1Table": b"\0"}),
        "Word 97, which is not read.",
    )
    whole = docx(letter)
    into.named("cut.docx", "DOCX", whole[: len(whole) // 2], "Half of the archive.")
    into.named("zero.docx", "DOCX", b"", "Nothing arrived.")
    into.named("bomb.docx", "DOCX", docx("<w:p>" + " " * 200_000_000 + "</w:p>"), "Unpacks to 200 MB of blanks.")
    add(
        "slip.docx",
        "DOCX",
        docx(letter, raw={"../../outside.txt": b"zzescaped"}),
        "A member of the archive has a path that leads outside; the letter itself is sound.",
        "Dear Dr. Quayle, we report on “Mr. Tomasz O’Dell” – seen on 4 June 2024. Plan: ramipril 5 mg, review in 3 months.",
        absent=("zzescaped",),
        may_be_named=True,
    )


def _html(into: Folder) -> None:
    add = into.add
    text = "<h1>Endocrinology</h1><p>Señora Peña, TSH 2.1 µU/ml, 37 °C</p>"
    words = "Endocrinology Señora Peña, TSH 2.1 µU/ml, 37 °C"
    page = "<!DOCTYPE html><html><head>{}<title>Viewer 4</title></head><body>" + text + "</body></html>"
    add("utf8.html", "HTML", page.format('<meta charset="utf-8">').encode(), "Declares its letters.", words)
    add("undeclared_utf8.htm", "HTML", page.format("").encode(), "UTF-8 that nobody declares.", words)
    add(
        "latin1.html",
        "HTML",
        page.format('<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">').encode("latin-1"),
        "Latin-1, declared.",
        words,
    )
    add(
        "wrong.html",
        "HTML",
        page.format('<meta charset="utf-8">').encode("cp1252"),
        "Says UTF-8 and is Windows-1252.",
        words,
    )
    add(
        "utf16.html",
        "HTML",
        page.format('<meta charset="utf-8">').encode("utf-16"),
        "UTF-16 with a mark, though it says UTF-8.",
        words,
    )
    add(
        "hidden.html",
        "HTML",
        b"<html><head><style>.x{color:red} #s{display:none}</style><script>var zzscript=1;</script></head><body><p>Biopsy: no malignancy</p><p style='display:none'>zzdraft malignancy</p><div id=s>zzsheet</div><!-- zzcomment --><p hidden>zzattr</p><p>Signed electronically</p></body></html>",
        "Scripts, styles, comments and hidden paragraphs are not seen.",
        "Biopsy: no malignancy Signed electronically",
        absent=("zzscript", "zzdraft", "zzsheet", "zzcomment", "zzattr"),
    )
    add(
        "entities.html",
        "HTML",
        b"<p>Glucose &lt; 5&nbsp;mmol/l &amp; HbA1c 41&#160;mmol/mol, &alpha;-fetoprotein &#x2265; 3</p>",
        "Entities.",
        "Glucose < 5 mmol/l & HbA1c 41 mmol/mol, α-fetoprotein ≥ 3",
    )
    add(
        "table.html",
        "HTML",
        b"<table border=1><tr><th>Drug<th>Dose<th>Stop<tr><td>Enalapril<td>5 mg<td><tr><td>Aspirin<td><td>1 May</table><p>Checked",
        "A table with empty cells and no closing tags.",
        "Drug Dose Stop Enalapril 5 mg Aspirin 1 May Checked",
    )
    add(
        "remote.html",
        "HTML",
        b'<link rel=stylesheet href="http://192.0.2.1/s.css"><p>Result of Mrs. Ode</p><img src="http://192.0.2.1/pixel.gif"><iframe src="file:///etc/passwd"></iframe><img src="file:///etc/hostname"><p>INR 2.3</p>',
        "Points to pictures and files that must not be fetched.",
        "Result of Mrs. Ode INR 2.3",
        absent=("root:x",),
    )
    shot = base64.b64encode(saved(picture("Bilirubin 1.8 mg/dl", width=300, height=100), "PNG")).decode()
    add(
        "data_uri.html",
        "HTML",
        f'<p>Liver panel</p><img width=600 src="data:image/png;base64,{shot}"><p>Dr. Renko</p>'.encode(),
        "A result stands in an embedded picture.",
        "Liver panel Bilirubin 1.8 mg/dl Dr. Renko",
    )
    add("page.txt", "HTML", page.format("").encode(), "HTML with the ending of a text file.", words)
    add(
        "cut.html",
        "HTML",
        b"<html><body><p>Admitted with chest pain.</p><p>Troponin negative twice.</p><p>ECG without st",
        "Breaks off inside of a sentence, without an end.",
        "Admitted with chest pain. Troponin negative twice.",
        is_damaged=True,
    )
    add(
        "deep.html",
        "HTML",
        b"<div>" * 20_000 + b"Chest film clear" + b"</div>" * 20_000,
        "Twenty thousand nested boxes.",
        "Chest film clear",
        may_be_named=True,
    )
    into.named("zero.html", "HTML", b"", "Nothing arrived.")
    into.named(
        "script_only.html",
        "HTML",
        b"<html><body><div id=app></div><script>load('/record/1')</script></body></html>",
        "A page that a browser fills from a server; it holds no words.",
    )


def _txt(into: Folder) -> None:
    add = into.add
    text = "Señor Iñigo Müller\nTemperature 38 °C, dose 250 µg\nNo known allergies – “none”\n"
    add("utf8.txt", "TXT", text.encode(), "UTF-8.", text)
    add("bom.txt", "TXT", text.encode("utf-8-sig"), "UTF-8 with a mark.", text)
    add("utf16.txt", "TXT", text.encode("utf-16"), "UTF-16 with a mark, from Notepad.", text)
    plain = text.replace("–", "-").replace("“", '"').replace("”", '"')
    add("latin1.txt", "TXT", plain.encode("latin-1"), "Latin-1.", plain)
    add("cp1252.TXT", "TXT", text.replace("\n", "\r\n").encode("cp1252"), "Windows-1252 with Windows line ends.", text)
    add(
        "two_pages.txt",
        "TXT",
        b"Operation note\nAppendix removed\f\nPage 2\nNo complications\n",
        "A form feed between pages.",
        "Operation note Appendix removed Page 2 No complications",
    )
    columns = "Test\t\tValue\tUnit\nSodium\t\t141\tmmol/l\nUrea\t\t\tmmol/l\n"
    add("columns.txt", "TXT", columns.encode(), "Columns of tabulators with an empty cell.", columns)
    long = " ".join(f"day{n} pulse {60 + n % 30}" for n in range(4000))
    add("one_line.txt", "TXT", long.encode(), "One line of 70,000 letters, which no page is wide enough for.", long)
    rows = "".join(
        f"2024-01-01 {n // 60 % 24:02}:{n % 60:02} pump {n} rate 12.5 ml/h pressure normal\n" for n in range(196_000)
    )
    add(
        "pump_log.txt",
        "TXT",
        rows.encode(),
        "A device log of 10 MB: read whole or named, never in part.",
        rows,
        may_be_named=True,
    )
    add(
        "starts_like_mail.txt",
        "TXT",
        b"Note: patient asked\nFrom: the ward\nPlan: discharge\n",
        "Looks like the heading of a mail and is a note.",
        "Note: patient asked From: the ward Plan: discharge",
    )
    add(
        "angle.txt",
        "TXT",
        b"Hb <12 and >9; CRP <b 5\nGFR<60\n",
        "Angle brackets that are no HTML.",
        "Hb <12 and >9; CRP <b 5 GFR<60",
    )
    add(
        "noname",
        "TXT",
        b"Telephone note: mother called, fever since Monday.\n",
        "A text without any ending.",
        "Telephone note: mother called, fever since Monday.",
    )
    into.named("zero.txt", "TXT", b"", "Nothing arrived.")
    into.named("blanks.txt", "TXT", b" \r\n\t\r\n\f", "Only blanks.")
    into.named("binary.txt", "TXT", bytes(range(256)) * 50, "No text at all.")
    into.named(
        "dictated.rtf", "RTF", rb"{\rtf1\ansi Seen today.\par}", "RTF, which is not read; its commands are no words."
    )


def _eml(into: Folder) -> None:
    add = into.add
    top = "From: Ward 3 <ward3@elmstead.invalid>\nTo: records@elmstead.invalid\nDate: Mon, 4 Mar 2024 10:00:00 +0000\nSubject: "
    add(
        "plain.eml",
        "EML",
        mail(top + "Bed 4", text_part("Patient moved to bed 4.\nDiet light.")),
        "A plain mail.",
        "Bed 4 Patient moved to bed 4. Diet light.",
    )
    two = multipart("alternative", text_part("INR 2.4 today"), text_part("<p>INR <b>2.4</b> today</p>", "html"))
    add(
        "alternative.eml",
        "EML",
        mail(top + "INR", two),
        "The same text plain and as HTML: to be read once.",
        "INR INR 2.4 today",
    )
    add(
        "quoted.eml",
        "EML",
        mail(
            top + "=?utf-8?Q?M=C3=BCller=2C_Jos=C3=A9?=",
            "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nSehr geehrte Frau M=FCller, Dosis 5=\n0 mg.\n",
        ),
        "Quoted-printable with a soft break within a number.",
        "Müller, José Sehr geehrte Frau Müller, Dosis 50 mg.",
    )
    add(
        "base64.eml",
        "EML",
        mail(top + "Note", part("text/plain; charset=utf-16", "Naïve to opioids".encode("utf-16"))),
        "A body in base64 and UTF-16.",
        "Note Naïve to opioids",
    )
    note = text_part("Please file the letter.")
    add(
        "pdf.eml",
        "EML",
        mail(top + "Letter", multipart("mixed", note, attached("letter.pdf", "application/pdf", pdf(SHORT)))),
        "A PDF attached.",
        "Letter Please file the letter.",
        attachments=("letter.pdf",),
    )
    fax = saved(picture(RESULT, mode="1", dpi=(204, 196)), "TIFF", compression="group4", dpi=(204, 196))
    add(
        "fax_gateway.eml",
        "EML",
        mail(top + "Fax from +49 555 0100", multipart("mixed", text_part(""), attached("fax.tif", "image/tiff", fax))),
        "A fax gateway: the body is empty, all is in the TIFF.",
        "Fax from +49 555 0100",
        attachments=("fax.tif",),
    )
    words = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    named = part(
        words,
        docx(para("Plan agreed.")),
        "Content-Disposition: attachment; filename*=UTF-8''Arztbrief%20M%C3%BCller.docx",
    )
    add(
        "docx.eml",
        "EML",
        mail(top + "Brief", multipart("mixed", note, named)),
        "A Word letter with a coded name.",
        "Brief Please file the letter.",
        attachments=("Arztbrief Müller.docx",),
    )
    add(
        "no_name.eml",
        "EML",
        mail(top + "Scan", multipart("mixed", note, part("application/pdf", pdf(ROUND)))),
        "A PDF without a name.",
        "Scan Please file the letter.",
        attachments=("",),
    )
    twin = attached("labs.pdf", "application/pdf", pdf(RESULT))
    add(
        "twice.eml",
        "EML",
        mail(top + "Labs", multipart("mixed", note, twin, twin)),
        "The same attachment twice.",
        "Labs Please file the letter.",
        attachments=("labs.pdf",),
    )
    other = attached("labs.pdf", "application/pdf", pdf(SHORT))
    add(
        "same_name.eml",
        "EML",
        mail(top + "Two labs", multipart("mixed", note, twin, other)),
        "Two different attachments of one name: neither may be lost.",
        "Two labs Please file the letter.",
        attachments=("labs.pdf", "labs.pdf"),
    )
    logo = part(
        "image/png",
        saved(Image.new("RGB", (180, 60), (10, 60, 140)), "PNG"),
        "Content-ID: <logo1>",
        'Content-Disposition: inline; filename="logo.png"',
    )
    add(
        "signature.eml",
        "EML",
        mail(
            top + "Reply",
            multipart("related", text_part('<p>Agreed, start heparin.</p><img src="cid:logo1">', "html"), logo),
        ),
        "A logo in the signature is no document.",
        "Reply Agreed, start heparin.",
    )
    inner = mail(top + "Old question", text_part("Which dose?")).decode()
    nested = f'Content-Type: message/rfc822\nContent-Disposition: attachment; filename="question.eml"\n\n{inner}'
    add(
        "nested.eml",
        "EML",
        mail(top + "Fwd", multipart("mixed", note, nested)),
        "A mail within a mail.",
        "Fwd Please file the letter.",
        attachments=("question.eml",),
    )
    add(
        "path.eml",
        "EML",
        mail(top + "Report", multipart("mixed", note, attached("../../etc/report.pdf", "application/pdf", pdf(SHORT)))),
        "A name that leads outside of the folder.",
        "Report Please file the letter.",
        attachments=("report.pdf",),
    )
    add(
        "winmail.eml",
        "EML",
        mail(
            top + "From Outlook",
            multipart("mixed", note, attached("winmail.dat", "application/ms-tnef", b"\x78\x9f\x3e\x22" + b"\0" * 90)),
        ),
        "Outlook's own wrapping, which must be named.",
        "From Outlook Please file the letter.",
        named_attachments=("winmail.dat",),
    )
    lost = mail(top + "Broken", multipart("mixed", note, attached("letter.pdf", "application/pdf", pdf(PATHOLOGY))))
    add(
        "cut.eml",
        "EML",
        lost[: len(lost) - 900],
        "The mail ends within its attachment.",
        "Broken Please file the letter.",
        is_damaged=True,
    )
    into.named("zero.eml", "EML", b"", "Nothing arrived.")
    into.named(
        "nothing.eml", "EML", mail("From: a@b.invalid\nTo: c@d.invalid"), "A mail without subject, body or attachment."
    )


def _cda(into: Folder) -> None:
    add = into.add
    rows = "<table><thead><tr><th>Test</th><th>Result</th></tr></thead><tbody><tr><td>Sodium</td><td>139 mmol/L</td></tr><tr><td>Urea</td><td/></tr></tbody></table>"
    first = section("Results", rows) + section(
        "Plan", "<list><item>Repeat urea</item><item>See in <content styleCode='Bold'>two</content> weeks</item></list>"
    )
    seen = "Results Test Result Sodium 139 mmol/L Urea Plan Repeat urea See in two weeks"
    whole = cda(first)
    add("ccd.xml", "C-CDA", whole.encode(), "Sections with a table and a list.", seen)
    add(
        "ccd.cda",
        "C-CDA",
        cda(first, title="Summary of care").encode(),
        "Another ending, and a title.",
        "Summary of care " + seen,
    )
    prefixed = whole.replace('xmlns="urn:hl7-org:v3"', 'xmlns:h="urn:hl7-org:v3"')
    for tag in (
        "ClinicalDocument",
        "realmCode",
        "typeId",
        "templateId",
        "id",
        "code",
        "effectiveTime",
        "confidentialityCode",
        "recordTarget",
        "patientRole",
        "patient",
        "name",
        "component",
        "structuredBody",
        "section",
        "title",
        "text",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "list",
        "item",
        "content",
    ):
        for end in (" ", ">", "/"):
            prefixed = prefixed.replace(f"<{tag}{end}", f"<h:{tag}{end}")
        prefixed = prefixed.replace(f"</{tag}>", f"</h:{tag}>")
    add("prefixed.xml", "C-CDA", prefixed.encode(), "All names carry a prefix.", seen)
    coded = base64.encodebytes(pdf(PATHOLOGY)).decode()
    add(
        "embedded.xml",
        "C-CDA",
        cda(
            "", body=f'<nonXMLBody><text mediaType="application/pdf" representation="B64">{coded}</text></nonXMLBody>'
        ).encode(),
        "The body is a PDF.",
        PATHOLOGY,
    )
    add(
        "unstructured.xml",
        "C-CDA",
        cda("", body='<nonXMLBody><text mediaType="text/plain">Seen today. Wound dry.</text></nonXMLBody>').encode(),
        "The body is plain text.",
        "Seen today. Wound dry.",
    )
    add(
        "latin1.xml",
        "C-CDA",
        cda(
            section("Historia", "<paragraph>Alergia a la penicilina, niño sano</paragraph>"),
            declaration='<?xml version="1.0" encoding="ISO-8859-1"?>',
        ).encode("latin-1"),
        "Latin-1, declared.",
        "Historia Alergia a la penicilina, niño sano",
    )
    add(
        "bare.xml",
        "C-CDA",
        cda(section("Allergies", "No known allergies")).encode(),
        "Narrative without paragraphs.",
        "Allergies No known allergies",
    )
    add(
        "breaks.xml",
        "C-CDA",
        cda(section("Medications", "Metoprolol 50 mg<br/>Aspirin 81 mg<br/>H<sub>2</sub> blocker")).encode(),
        "Line breaks and a lowered figure.",
        "Medications Metoprolol 50 mg Aspirin 81 mg H2 blocker",
    )
    coded_entry = '<entry><observation classCode="OBS" moodCode="EVN"><code code="1" displayName="zzcoded"/></observation></entry>'
    add(
        "entries.xml",
        "C-CDA",
        cda(section("Vitals", "<paragraph>BP 128/76</paragraph>", coded_entry)).encode(),
        "Coded entries are not part of the narrative.",
        "Vitals BP 128/76",
        absent=("zzcoded",),
    )
    add("xml_as.txt", "C-CDA", whole.encode(), "A clinical document with the ending of a text.", seen)
    bomb = (
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "zzlol">'
        + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
        + "]>"
    )
    into.named(
        "laughs.xml",
        "C-CDA",
        cda(section("Plan", "&j;"), declaration=bomb).encode(),
        "Entities that unpack to thousands of millions of letters.",
        ("zzlol",),
    )
    into.named(
        "external.xml",
        "C-CDA",
        cda(
            section("Plan", "&f;"),
            declaration='<?xml version="1.0"?><!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>',
        ).encode(),
        "An entity that points to a file of the machine.",
        ("root:x",),
    )
    into.named(
        "invoice.xml",
        "C-CDA",
        b'<?xml version="1.0"?><Invoice><Total>12</Total></Invoice>',
        "XML that is no clinical document.",
    )
    into.named("cut.xml", "C-CDA", whole.encode()[:300], "Breaks off before any section.")
    late = cda(section("History", "<paragraph>Appendix removed in 1998</paragraph>") + first).encode()
    add(
        "cut_late.xml",
        "C-CDA",
        late[: late.index(b"Sodium") + 3],
        "Breaks off in the second section; the first is whole.",
        "History Appendix removed in 1998",
        is_damaged=True,
    )
    into.named("zero.xml", "C-CDA", b"", "Nothing arrived.")
    into.named("archive.xml", "ZIP", zipped({"a.txt": b"hello"}), "An archive with the ending of a clinical document.")
