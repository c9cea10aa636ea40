"""The sealed half of the files to be cut: other ways in which a page's file holds what belongs to another page."""

from __future__ import annotations

import base64
import io
import zipfile
import zlib
from collections.abc import Iterator
from email.message import EmailMessage

import numpy as np
import pymupdf
from PIL import Image, ImageCms, ImageDraw, ImageOps

from .packets import (
    Ideas,
    Packet,
    Segment,
    SourceFile,
    append_revision,
    draw_code,
    draw_text,
    hexadecimal,
    octal,
    portable,
    scan_page,
    stream_body,
    subset_font,
    text,
    utf16,
)

idea = Ideas("sealed")
FULL = "q 612 0 0 792 0 0 cm /Im0 Do Q"


def build() -> Iterator[SourceFile]:
    """All files of this half."""
    return idea.build()


@idea("plain_turned", "A3 B2 A1", "nothing is shared; pages are turned by a quarter, one in two")
def _(p: Packet) -> None:
    for page in p.pages[::2]:
        p.entries[page] |= {"Rotate": "90", "MediaBox": "[0 0 792 612]"}
        p.contents[page] = f"q 0 1 -1 0 792 0 cm {p.contents[page]} Q"


@idea("plain_one_patient", "A1 A2 A1 A1", "four documents of one patient, nothing is shared")
def _(p: Packet) -> None:
    p.tree_entries["Rotate"] = "0"


@idea("tiling_pattern", "A1 B1", "the pages are painted with one tiling pattern whose cell is the spread")
def _(p: Packet) -> None:
    cell = "".join(f"q 1 0 0 1 {612 * (page - 1)} 0 cm {p.take(page)} Q\n" for page in p.pages)
    keys = "/Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 1224 792] /XStep 1224 /YStep 792"
    fonts = f"/Resources << /Font << /F1 {p.font} >> >>"
    for page in p.pages:
        shift = f"/Matrix [1 0 0 1 {-612 * (page - 1)} 0]"
        p.own_resources[page] = {"Pattern": {"Cell": p.pdf.stream(cell, f"{keys} {fonts} {shift}")}}
        p.contents[page] = "/Pattern cs /Cell scn 0 0 612 792 re f"


@idea("soft_mask", "A1 B1", "a soft mask whose group has the neighbour's text far outside the page")
def _(p: Packet) -> None:
    for page in p.pages:
        words = draw_text(5000, 5000, p.hide(p.stranger(page)))
        group = p.form(f"1 g 0 0 612 792 re f {words}", "0 0 612 792", "/Group << /S /Transparency /CS /DeviceGray >>")
        state = p.pdf.add(f"<< /Type /ExtGState /SMask << /Type /Mask /S /Luminosity /G {group} >> >>")
        p.own_resources[page] = {"ExtGState": {"Masked": state}}
        p.contents[page] = f"/Masked gs\n{p.contents[page]}"


@idea("inline_image", "A1 B1", "an inline image outside the window whose samples spell the neighbour's name")
def _(p: Packet) -> None:
    for page in p.pages:
        samples = p.hide(p.stranger(page)).encode().hex()
        inline = f"q 0 0 1 1 re W n 9 0 0 1 900 900 cm BI /W 9 /H 1 /CS /G /BPC 8 /F /AHx ID {samples}> EI Q\n"
        p.contents[page] += inline


@idea("rows_below", "A1 B1", "the samples of each scan go on below its declared height with the other page")
def _(p: Packet) -> None:
    scans = {page: scan_page(p, page, (640, 828)) for page in p.pages}
    for page, image in scans.items():
        p.own_resources[page] = {"XObject": {"Im0": p.picture(image, extra=scans[p.stranger(page)].tobytes())}}
        p.contents[page] = FULL


@idea("image_metadata", "A1 B1", "both scans refer to one metadata stream with both names")
def _(p: Packet) -> None:
    metadata = p.pdf.stream(f"<x>{p.hide(1)}</x><y>{p.hide(2)}</y>", "/Type /Metadata /Subtype /XML")
    for page in p.pages:
        p.own_resources[page] = {"XObject": {"Im0": p.picture(scan_page(p, page), f"/Metadata {metadata}")}}
        p.contents[page] = FULL


def composite_font(p: Packet, letters: str, map_name: str = "Adobe-Identity-UCS") -> tuple[str, dict[str, int]]:
    """A font whose codes are glyph numbers, with a map to letters, and the number of each letter."""
    from fontTools.ttLib import TTFont

    data = subset_font(letters)
    font = TTFont(io.BytesIO(data))
    glyphs = {chr(code): font.getGlyphID(name) for code, name in font.getBestCmap().items()}
    rows = "\n".join(f"<{glyph:04X}> <{ord(letter):04X}>" for letter, glyph in glyphs.items())
    table = f"/CIDInit /ProcSet findresource begin begincmap /CMapName /{map_name} def\n1 begincodespacerange <0000> <FFFF> endcodespacerange\n"
    mapping = p.pdf.stream(f"{table}{len(glyphs)} beginbfchar\n{rows}\nendbfchar endcmap end")
    program = p.pdf.stream(data, f"/Length1 {len(data)}")
    descriptor = p.pdf.add(
        "<< /Type /FontDescriptor /FontName /AAAAAA+Sans /Flags 4 /FontBBox [-1000 -300 1500 1000] /ItalicAngle 0 /Ascent 900 "
        f"/Descent -200 /CapHeight 700 /StemV 80 /FontFile2 {program} >>"
    )
    inner = p.pdf.add(
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /AAAAAA+Sans /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) "
        f"/Supplement 0 >> /FontDescriptor {descriptor} /DW 650 /CIDToGIDMap /Identity >>"
    )
    return p.pdf.add(
        f"<< /Type /Font /Subtype /Type0 /BaseFont /AAAAAA+Sans /Encoding /Identity-H /DescendantFonts [{inner}] /ToUnicode {mapping} >>"
    ), glyphs


@idea("glyph_codes", "A1 B1", "the neighbour's name in glyph numbers of a shared font, left of the page")
def _(p: Packet) -> None:
    words = {page: p.hide(p.stranger(page)) for page in p.pages}
    font, glyphs = composite_font(p, "".join(words.values()))
    p.resources["Font"]["F2"] = font
    for page, word in words.items():
        codes = "".join(f"{glyphs[letter]:04X}" for letter in word)
        p.contents[page] += f"BT /F2 12 Tf -900 300 Td <{codes}> Tj ET\n"


@idea("map_names", "A1 B1", "a font's map to letters is named after a patient")
def _(p: Packet) -> None:
    for page in p.pages:
        font, glyphs = composite_font(p, "Copy", p.hide(page))
        p.resources["Font"][f"F{page + 1}"] = font
        codes = "".join(f"{glyphs[letter]:04X}" for letter in "Copy")
        p.contents[page] += f"BT /F{page + 1} 12 Tf 60 300 Td <{codes}> Tj ET\n"


@idea("glyph_names", "A1 B1", "a shared font's differences have patients' names as glyphs")
def _(p: Packet) -> None:
    names = " ".join(f"/{p.hide(page)}" for page in p.pages)
    p.resources["Font"]["F2"] = p.pdf.add(
        f"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Type /Encoding /Differences [200 {names}] >> >>"
    )
    for page in p.pages:
        p.contents[page] += draw_text(60, 300, "stamp", 13, "F2")


@idea("spot_colours", "A1 B1", "spot colours named after patients, with colorants of both")
def _(p: Packet) -> None:
    tint = p.pdf.add("<< /FunctionType 2 /Domain [0 1] /C0 [1] /C1 [0] /N 1 >>")
    names = {page: p.hide(page) for page in p.pages}
    rows = " ".join(f"/{name} [/Separation /{name} /DeviceGray {tint}]" for name in names.values())
    p.resources["ColorSpace"] = {
        "Cs1": p.pdf.add(f"[/DeviceN [/{names[1]}] /DeviceGray {tint} << /Colorants << {rows} >> >>]"),
        "Cs2": p.pdf.add(f"[/Separation /{names[2]} /DeviceGray {tint}]"),
    }
    for page in p.pages:
        p.contents[page] = f"/Cs{page} cs 1 scn\n{p.contents[page]}"
        p.entries[page]["SeparationInfo"] = f"<< /DeviceColorant /{names[p.stranger(page)]} >>"


@idea("colour_profile", "A1 B1", "one colour profile for both pages whose description is a patient's name")
def _(p: Packet) -> None:
    old = "sRGB built-in"
    word = p.hide(1).ljust(len(old))
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    profile = profile.replace(old.encode("utf-16-be"), word.encode("utf-16-be")).replace(old.encode(), word.encode())
    profile = profile[:24] + bytes(12) + profile[36:]  # the time at which it was made
    space = p.pdf.stream(profile, "/N 3 /Alternate /DeviceRGB")
    p.resources["ColorSpace"] = {"Cs1": f"[/ICCBased {space}]"}
    p.catalog["OutputIntents"] = (
        f"[<< /Type /OutputIntent /S /GTS_PDFA1 /OutputConditionIdentifier {text(p.hide(2))} /Info {utf16(p.hide(1))} "
        f"/DestOutputProfile {space} >>]"
    )
    for page in p.pages:
        p.contents[page] = f"/Cs1 cs 0 0 0 scn\n{p.contents[page]}"


@idea("trailer_words", "A1 B1", "the file's identifiers and a key of a vendor in the trailer")
def _(p: Packet) -> None:
    p.trailer = f"/ID [{text(p.hide(1))} {hexadecimal(p.hide(2))}] /VendorQueue [{octal(p.hide(2))} {utf16(p.hide(1))}]"


@idea("print_parts", "A1 B1 C1", "variable data printing: the metadata of each record has its patient")
def _(p: Packet) -> None:
    root, node = p.pdf.add(), p.pdf.add()
    parts = []
    for page in p.pages:
        record = f"<< /CIP4_Recipient << /Name {utf16(p.hide(page))} /Street {text(p.hide(page))} >> >>"
        parts.append(p.pdf.add(
            f"<< /Type /DPart /Parent {node} /Start {p.references[page]} /End {p.references[page]} /DPM << /CIP4_Root {record} >> >>"
        ))  # fmt: skip
        p.entries[page]["DPart"] = parts[-1]
    p.pdf.set(node, f"<< /Type /DPart /Parent {root} /DParts [[{' '.join(parts)}]] >>")
    p.pdf.set(root, f"<< /Type /DPartRoot /DPartRootNode {node} /NodeNameList [/Root /{p.hide()}] >>")
    p.catalog["DPartRoot"] = root


@idea("template_pages", "A1 B1", "pages that are no pages: templates by name, filled in for an earlier patient")
def _(p: Packet) -> None:
    pairs = []
    for number in range(2):
        contents = p.pdf.stream(draw_text(60, 700, p.hide()))
        page = f"<< /Type /Template /MediaBox [0 0 612 792] /Contents {contents} /Resources << /Font << /F1 {p.font} >> >> >>"
        pairs.append((f"{p.hide()}{number}", p.pdf.add(page)))
    p.name_tree("Pages", pairs)


@idea("web_capture", "A1 B1", "captured from a portal: addresses and titles of both patients' pages")
def _(p: Packet) -> None:
    sets = {}
    for page in p.pages:
        address = text(f"https://portal.example.org/chart?name={p.hide(page)}")
        source = f"<< /AU {address} /TS (D:20260301) >>"
        keys = f"/Type /SpiderContentSet /S /SPS /O [{p.references[page]}] /SI {source} /T {text(p.hide(page))}"
        sets[address[1:-1]] = p.pdf.add(f"<< {keys} /ID (id{page}) >>")
    p.name_tree("URLS", list(sets.items()))
    p.catalog["SpiderInfo"] = f"<< /V 1.0 /C [<< /URL {text(p.hide(1))} /P {text(p.hide(2))} >>] >>"


@idea("xfa", "A1 B1", "an XML form with the data of both patients beside empty widgets")
def _(p: Packet) -> None:
    rows = "".join(f"<patient><name>{p.hide(page)}</name></patient>" for page in p.pages)
    data = p.pdf.stream(
        f"<xfa:datasets xmlns:xfa='http://www.xfa.org/schema/xfa-data/1.0/'><xfa:data>{rows}</xfa:data></xfa:datasets>"
    )
    widget = p.pdf.add(
        f"<< /Type /Annot /Subtype /Widget /FT /Tx /T (topmost) /Rect [60 100 300 120] /P {p.references[2]} /DA (/F1 9 Tf) >>"
    )
    p.annotate(2, widget)
    p.catalog["AcroForm"] = f"<< /Fields [{widget}] /XFA [(datasets) {data}] >>"


@idea("page_actions", "A1 B1", "actions when a page opens or the file prints: hide, submit, reset fields of the other")
def _(p: Packet) -> None:
    for page in p.pages:
        other = p.stranger(page)
        hiding = f"<< /S /Hide /T [{text(p.hide(other))}] /Next << /S /ResetForm /Fields [{utf16(p.hide(other))}] >> >>"
        submitting = (
            f"<< /S /SubmitForm /F << /FS /URL /F {text('https://example.org/' + p.hide(other))} >> /Fields [] >>"
        )
        p.entries[page]["AA"] = f"<< /O {hiding} /C {submitting} >>"
    p.catalog["AA"] = f"<< /WP << /S /JavaScript /JS {utf16('app.alert(' + p.hide(2) + ')')} >> >>"


@idea("file_links", "A1 B1", "links that start or open files named after the other patient")
def _(p: Packet) -> None:
    p.catalog["URI"] = f"<< /Base {text('https://example.org/' + p.hide(1) + '/')} >>"
    for page in p.pages:
        other = p.hide(p.stranger(page))
        spaced = "".join(f"%{ord(letter):02X}" for letter in p.hide(p.stranger(page)))
        for action in (
            f"<< /S /Launch /F {text(f'C:/scans/{other}.exe')} >>",
            f"<< /S /GoToR /F {text(other + '.pdf')} /D {text(other)} >>",
            f"<< /S /URI /URI {text('record?n=' + spaced)} >>",
        ):
            p.annotate(page, p.pdf.add(f"<< /Type /Annot /Subtype /Link /Rect [60 50 200 80] /A {action} >>"))


@idea("unfinished_redaction", "A1 B1", "marks for blacking out that nobody applied, over the other patient's line")
def _(p: Packet) -> None:
    for page in p.pages:
        other = p.stranger(page)
        look = p.form("0 g 0 0 300 20 re f", "0 0 300 20")
        p.contents[page] += draw_text(62, 304, p.hide(other), 10)
        p.annotate(page, p.pdf.add(
            f"<< /Type /Annot /Subtype /Redact /Rect [60 300 360 320] /OverlayText {text(p.hide(other))} /AP << /N {look} >> /F 4 >>"
        ))  # fmt: skip


@idea("reply_chain", "A1 B1", "a note on one page is the reply to a note on the other, with rich text")
def _(p: Packet) -> None:
    notes = {page: p.pdf.add() for page in p.pages}
    for page, note in notes.items():
        rich = f'<?xml version="1.0"?><body xmlns="http://www.w3.org/1999/xhtml"><p>{p.hide(page)}</p></body>'
        reply = f"/IRT {notes[p.stranger(page)]} /RT /R" if page == 1 else ""
        keys = f"/RC {text(rich)} /Contents {utf16(p.hide(page))} /NM {text(p.hide(page))} /Subj {text(p.hide(page))} /DA (/F1 9 Tf)"
        p.pdf.set(
            note,
            f"<< /Type /Annot /Subtype /FreeText /Rect [60 20 260 44] /P {p.references[page]} {keys} {reply} /F 2 >>",
        )
        p.annotate(page, note)


@idea("media", "A1 B1", "a sound, a film and a rendition with names of the patients, in the catalog's names too")
def _(p: Packet) -> None:
    pairs = []
    for page in p.pages:
        sound = p.pdf.stream(p.hide(page).encode() * 3, "/Type /Sound /R 8000")
        p.annotate(page, p.pdf.add(f"<< /Type /Annot /Subtype /Sound /Rect [500 20 520 40] /Sound {sound} /F 2 >>"))
        clip = f"<< /Type /MediaClip /S /MCD /N {text(p.hide(page))} /D << /Type /Filespec /F {text(p.hide(page) + '.mp4')} >> >>"
        pairs.append((f"{p.hide(page)}", p.pdf.add(f"<< /Type /Rendition /S /MR /N {text(p.hide(page))} /C {clip} >>")))
        p.annotate(page, p.pdf.add(
            f"<< /Type /Annot /Subtype /Movie /Rect [530 20 550 40] /T {text(p.hide(page))} /Movie << /F (film.avi) >> /F 2 >>"
        ))  # fmt: skip
    p.name_tree("Renditions", pairs)


@idea("measured_views", "A1 B1", "named viewports with measures, in one array for both pages")
def _(p: Packet) -> None:
    views = " ".join(
        f"<< /Type /Viewport /BBox [0 0 612 792] /Name {text(p.hide(page))} /Measure << /Type /Measure /R {utf16(p.hide(page))} >> >>"
        for page in p.pages
    )
    array = p.pdf.add(f"[{views}]")
    for page in p.pages:
        p.entries[page]["VP"] = array


@idea("associated_files", "A1 B1", "the XML record of each patient is associated with the page and with the file")
def _(p: Packet) -> None:
    specs = []
    for page in p.pages:
        xml = f"<ClinicalDocument xmlns='urn:hl7-org:v3'><family>{p.hide(page)}</family></ClinicalDocument>"
        body = p.pdf.stream(xml, "/Type /EmbeddedFile /Subtype /text#2Fxml")
        keys = f"/F (c{page}.xml) /UF (c{page}.xml) /Desc {utf16(p.hide(page))} /AFRelationship /Source /EF << /F {body} /UF {body} >>"
        specs.append(p.pdf.add(f"<< /Type /Filespec {keys} >>"))
    for page in p.pages:
        p.entries[page]["AF"] = f"[{' '.join(specs)}]"
    p.catalog["AF"] = f"[{' '.join(specs)}]"


@idea("page_metadata", "A1 B1", "the metadata of each page describes the batch, with all names as XML entities")
def _(p: Packet) -> None:
    words = "".join(f"&#{ord(letter)};" for letter in p.hide(1) + " ")
    words += "".join(f"&#x{ord(letter):x};" for letter in p.hide(2))
    shared = p.pdf.stream(f"<batch><names>{words}</names></batch>", "/Type /Metadata /Subtype /XML")
    for page in p.pages:
        p.entries[page]["Metadata"] = shared


@idea("structure_classes", "A1 B1", "classes, roles and identifiers of the structure are named after patients")
def _(p: Packet) -> None:
    root = p.pdf.add()
    kids, pairs = [], []
    for page in p.pages:
        name = p.hide(page)
        kids.append(p.pdf.add(
            f"<< /Type /StructElem /S /{name} /P {root} /Pg {p.references[page]} /K 0 /C /{name} /ID {text(name)} /Lang (en) >>"
        ))  # fmt: skip
        pairs.append((name, kids[-1]))
        p.entries[page]["StructParents"] = str(page - 1)
        p.contents[page] = f"/P << /MCID 0 >> BDC\n{p.contents[page]}EMC\n"
    roles = " ".join(f"/{name} /P" for name, _ in pairs)
    classes = " ".join(f"/{name} << /O /Layout /SpaceBefore 3 >>" for name, _ in pairs)
    parents = "/ParentTree << /Nums [" + " ".join(f"{i} [{kid}]" for i, kid in enumerate(kids)) + "] >>"
    identifiers = " ".join(f"{text(name)} {kid}" for name, kid in sorted(pairs))
    p.pdf.set(
        root,
        f"<< /Type /StructTreeRoot /K [{' '.join(kids)}] /RoleMap << {roles} >> /ClassMap << {classes} >> {parents} "
        f"/IDTree << /Names [{identifiers}] >> >>",
    )
    p.catalog |= {"StructTreeRoot": root, "MarkInfo": "<< /Marked true >>"}


@idea("span_text", "A1 B1", "a decoration of each page has the neighbour's name as what to read in its place")
def _(p: Packet) -> None:
    for page in p.pages:
        other = p.stranger(page)
        p.contents[page] += f"/Span << /ActualText {utf16(p.hide(other))} >> BDC {draw_text(560, 30, '*', 8)} EMC\n"
        p.contents[page] += f"/Artifact << /Alt {text(p.hide(other))} >> BDC 500 20 20 2 re f EMC\n"


@idea("operator_comments", "A1 B1", "comments between the operators of a page, from the printer's queue")
def _(p: Packet) -> None:
    for page in p.pages:
        other = p.stranger(page)
        p.contents[page] = f"% previous job: {p.person(other)} {p.hide(other)}\n{p.contents[page]}%{p.hide(other)}"


@idea("tiny_text", "A1 B1", "the neighbour's address label, shrunk to a dot at the edge")
def _(p: Packet) -> None:
    for page in p.pages:
        words = draw_text(0, 0, p.hide(p.stranger(page)), 12)
        p.contents[page] += f"q 0.002 0 0 0.002 611 1 cm {words} Q\n"


@idea("kerned_outside", "A1 B1", "letter by letter with kerning, far left of the page")
def _(p: Packet) -> None:
    for page in p.pages:
        letters = " -40 ".join(f"({letter})" for letter in p.hide(p.stranger(page)))
        p.contents[page] += f"BT /F1 12 Tf -2000 400 Td [{letters}] TJ ET\n"


@idea("empty_window", "A1 B1", "text within a window of no size, and within one beside the text")
def _(p: Packet) -> None:
    for page in p.pages:
        other = p.stranger(page)
        p.contents[page] += f"q 0 0 0 0 re W n {draw_text(60, 300, p.hide(other))} Q\n"
        p.contents[page] += f"q 500 10 20 20 re W n {draw_text(60, 280, p.hide(other))} Q\n"


@idea("under_picture", "A1 B1", "ordinary text of the neighbour below an opaque picture")
def _(p: Packet) -> None:
    for page in p.pages:
        p.own_resources[page] = {"XObject": {"Im0": p.picture(scan_page(p, page))}}
        other = p.stranger(page)
        p.contents[page] = f"{draw_text(60, 500, p.person(other))}{draw_text(60, 470, p.hide(other))}{FULL}"


@idea("layer_usage", "A1 B1", "layers with plain names whose usage and creator name patients, behind a membership")
def _(p: Packet) -> None:
    layers = []
    for page in p.pages:
        usage = f"<< /CreatorInfo << /Creator {text(p.hide(page))} /Subtype /Artwork >> /User << /Type /Ind /Name {utf16(p.hide(page))} >> >>"
        layers.append(p.pdf.add(f"<< /Type /OCG /Name (Layer {page}) /Usage {usage} >>"))
    order = " ".join(layers)
    member = p.pdf.add(f"<< /Type /OCMD /OCGs [{order}] /P /AnyOn >>")
    p.resources["Properties"] = {"Member": member}
    for page in p.pages:
        p.contents[page] = f"/OC /Member BDC\n{p.contents[page]}EMC\n"
    alternatives = f"[<< /Name {text(p.hide(2))} /Creator {text(p.hide(1))} /OCGs [{order}] >>]"
    p.catalog["OCProperties"] = f"<< /OCGs [{order}] /D << /ON [{order}] >> /Configs {alternatives} >>"


@idea("packed_attachment", "A1 B1", "an archive attached under two filters, with a file for each patient in it")
def _(p: Packet) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for page in p.pages:
            archive.writestr(zipfile.ZipInfo(f"{p.hide(page)}.txt"), f"{p.hide(page)}\n" * 9, zipfile.ZIP_DEFLATED)
    coded = base64.a85encode(zlib.compress(buffer.getvalue())) + b"~>"
    entries = "/Type /EmbeddedFile /Filter [/ASCII85Decode /FlateDecode]"
    body = p.pdf.stream(coded, entries, packed=False)
    p.name_tree(
        "EmbeddedFiles", [("all", p.pdf.add(f"<< /Type /Filespec /F (all.zip) /UF (all.zip) /EF << /F {body} >> >>"))]
    )


@idea("encrypted_aes", "A1 B1", "AES with an empty user password over shared scans")
def _(p: Packet) -> None:
    p.resources["XObject"] = {f"Im{page}": p.picture(scan_page(p, page)) for page in p.pages}
    for page in p.pages:
        p.contents[page] = f"q 612 0 0 792 0 0 cm /Im{page} Do Q"
        p.annotate(
            page,
            p.pdf.add(f"<< /Type /Annot /Subtype /Text /Rect [20 20 40 40] /F 2 /Contents {utf16(p.hide(page))} >>"),
        )

    def encrypt(data: bytes) -> bytes:
        document = pymupdf.open(stream=data, filetype="pdf")
        return document.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw="archive", user_pw="")

    p.after = encrypt


@idea("certificate_store", "A1 B1", "a store of certificates, permissions and a legal statement that name patients")
def _(p: Packet) -> None:
    certificate = p.pdf.stream(b"0\x82\x03\x00" + p.hide(1).encode("utf-16-be") + b"\x0c\x09" + p.hide(2).encode())
    p.catalog["DSS"] = f"<< /Type /DSS /Certs [{certificate}] /VRI << /{p.hide(2)} << /Cert [{certificate}] >> >> >>"
    p.catalog["Legal"] = f"<< /Attestation {text(p.hide(1))} >>"
    p.catalog["Perms"] = (
        f"<< /UR3 << /Type /Sig /Filter /Adobe.PPKLite /Name {text(p.hide(2))} /Msg {utf16(p.hide(1))} >> >>"
    )


@idea("three_revisions", "A1 B1", "a note was written three times, each version for somebody else")
def _(p: Packet) -> None:
    note = p.pdf.add(f"<< /Type /Annot /Subtype /Text /Rect [20 20 40 40] /F 2 /Contents {text(p.hide())} >>")
    p.annotate(1, note)
    bodies = [
        f"<< /Type /Annot /Subtype /Text /Rect [20 20 40 40] /F 2 /Contents {text(p.hide(page))} >>" for page in (2, 1)
    ]

    def revise(data: bytes) -> bytes:
        for body in bodies:
            data = append_revision(data, {note: body}, p.root, len(p.pdf.objects))
        return data

    p.after = revise


@idea("smaller_box", "A1 B1", "an update made the pages smaller: what was above is now outside")
def _(p: Packet) -> None:
    for page in p.pages:
        p.entries[page]["MediaBox"] = "[0 0 612 2000]"
        other = p.stranger(page)
        p.contents[page] += draw_text(60, 1500, f"{p.person(other)} {p.hide(other)}")

    def shrink(data: bytes) -> bytes:
        changes: dict[str, str | bytes] = {}
        for reference in p.references.values():
            body = p.pdf.objects[int(reference.split()[0]) - 1]
            changes[reference] = body.replace(b"0 0 612 2000", b"0 0 612 792")
        return append_revision(data, changes, p.root, len(p.pdf.objects))

    p.after = shrink


@idea("words_before", "A1 B1", "lines of a mail gateway before the head of the PDF")
def _(p: Packet) -> None:
    line = f"X-Patient: {p.hide(1)}\r\nX-Next: {p.hide(2)}\r\n"

    def put_before(data: bytes) -> bytes:
        document = pymupdf.open(stream=data, filetype="pdf")
        return line.encode() + document.tobytes(no_new_id=True)

    p.after = put_before


@idea("second_file_behind", "A1 B1", "behind the end of the file another patient's whole PDF, packed in an archive")
def _(p: Packet) -> None:
    inner = Packet("sealed", "behind", "", "Z1")
    inner.contents[1] += draw_text(60, 300, p.hide())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in {"old.txt": p.hide(), "old.pdf": inner.write().data}.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    p.after = lambda data: data + buffer.getvalue()


@idea("turned_spread", "A1 B1", "an A3 spread scanned on its side, each page turned and cropped to its half")
def _(p: Packet) -> None:
    spread = Image.new("L", (1700, 1100), 250)
    for page in p.pages:
        spread.paste(scan_page(p, page), (850 * (page - 1), 0))
    p.resources["XObject"] = {"Spread": p.picture(spread.transpose(Image.Transpose.ROTATE_90))}
    for page in p.pages:
        low, high = 612 * (page - 1), 612 * page
        p.entries[page] |= {"MediaBox": "[0 0 792 1224]", "CropBox": f"[0 {low} 792 {high}]", "Rotate": "90"}
        p.contents[page] = "q 792 0 0 1224 0 0 cm /Spread Do Q"


@idea("strips", "A1 B1", "a scan in strips of which the middle one has the end of one page and the head of the next")
def _(p: Packet) -> None:
    tall = Image.new("L", (850, 2200), 248)
    for page in p.pages:
        tall.paste(scan_page(p, page), (0, 1100 * (page - 1)))
        tall.paste(draw_code(p.hide(page), 5), (20, 900 if page == 1 else 1120))
    strips = [tall.crop((0, 0, 850, 700)), tall.crop((0, 700, 850, 1500)), tall.crop((0, 1500, 850, 2200))]
    p.resources["XObject"] = {f"S{number}": p.picture(strip) for number, strip in enumerate(strips)}
    for page in p.pages:
        top = 792 * page
        tops, heights = (2 * 792, 2 * 792 - 504, 504), (504, 576, 504)
        drawn = [0, 1] if page == 1 else [1, 2]
        p.contents[page] = "".join(
            f"q 612 0 0 {heights[n]} 0 {tops[n] - heights[n] - (2 * 792 - top)} cm /S{n} Do Q\n" for n in drawn
        )


@idea("stencil", "A1 B1", "a paper background and one stencil of both pages' print, as compressing scanners make it")
def _(p: Packet) -> None:
    print_of_both = Image.new("1", (1700, 1100), 1)
    for page in p.pages:
        print_of_both.paste(
            scan_page(p, page).point(lambda value: 255 * (value > 128)).convert("1"), (850 * (page - 1), 0)
        )
    keys = "/Type /XObject /Subtype /Image /Width 1700 /Height 1100 /ImageMask true /BitsPerComponent 1"
    p.resources["XObject"] = {
        "Paper": p.picture(Image.new("L", (40, 50), 244)),
        "Print": p.pdf.stream(print_of_both.tobytes(), keys),
    }
    for page in p.pages:
        p.contents[page] = f"q 612 0 0 792 0 0 cm /Paper Do Q q 0 g 1224 0 0 792 {-612 * (page - 1)} 0 cm /Print Do Q"


@idea("transparency_mask", "A1 B1", "a black image whose transparency is the print of both pages")
def _(p: Packet) -> None:
    both = Image.new("L", (1700, 1100), 0)
    for page in p.pages:
        both.paste(
            ImageOps.invert(scan_page(p, page)).point(lambda value: 255 if value > 120 else 0), (850 * (page - 1), 0)
        )
    p.resources["XObject"] = {"Ink": p.picture(Image.new("L", (1, 1), 0), f"/SMask {p.picture(both)}")}
    for page in p.pages:
        p.contents[page] = f"q 0 0 612 792 re W n 1224 0 0 792 {-612 * (page - 1)} 0 cm /Ink Do Q"


@idea("proxies", "A1 B1", "the shared letterhead knows the files that it was made from, by patient")
def _(p: Packet) -> None:
    named = text(f"{p.hide(1)}.eps")
    keys = f"/OPI << /2.0 << /Type /OPI /Version 2.0 /F {named} /MainImage {text(p.hide(2))} >> >> /Ref << /F {named} /Page {text(p.hide(2))} >>"
    p.resources["XObject"] = {"Head": p.form(draw_text(400, 760, "Clinic"), entries=f"{keys} /Name /{p.hide(2)}")}
    for page in p.pages:
        p.contents[page] += "/Head Do\n"


@idea("postscript", "A1 B1", "PostScript for the printer within a shared object, and a tint written as a program")
def _(p: Packet) -> None:
    level = p.pdf.stream(f"%%For: {p.hide(2)}")
    program = p.pdf.stream(f"({p.hide(1)}) pop", f"/Type /XObject /Subtype /PS /Level1 {level}")
    tint = p.pdf.stream(f"{{ 1 exch sub % {p.hide(2)}\n}}", "/FunctionType 4 /Domain [0 1] /Range [0 1]")
    p.resources["XObject"] = {"Driver": program}
    p.resources["ColorSpace"] = {"Cs1": p.pdf.add(f"[/Separation /Black /DeviceGray {tint}]")}
    for page in p.pages:
        p.contents[page] = f"/Cs1 cs 1 scn\n{p.contents[page]}"


@idea("vector_code", "A1 B1", "the neighbour's patient code drawn as squares above the page")
def _(p: Packet) -> None:
    for page in p.pages:
        p.entries[page] |= {"MediaBox": "[0 0 612 1000]", "CropBox": "[0 0 612 792]"}
        code = np.asarray(draw_code(p.hide(p.stranger(page)), 1))
        squares = "".join(f"{60 + 5 * x} {960 - 5 * y} 5 5 re " for y, x in np.argwhere(code == 0))
        p.contents[page] += f"{squares}f\n"


@idea("shared_appearance", "A1 B1", "stamps on both pages have one appearance and show their half by its box")
def _(p: Packet) -> None:
    words = {page: p.show(page) for page in p.pages}
    drawn = "".join(draw_text(300 * (page - 1) + 2, 4, word, 11) for page, word in words.items())
    inner = p.form(drawn, "0 0 600 20")
    for page in p.pages:
        left = 300 * (page - 1)
        look = p.form("/Both Do", f"{left} 0 {left + 300} 20", resources=f"/XObject << /Both {inner} >>")
        p.annotate(page, p.pdf.add(f"<< /Type /Annot /Subtype /Stamp /Rect [60 40 360 60] /F 4 /AP << /N {look} >> >>"))


@idea("radio_names", "A1 B1 C1", "one group of radio buttons over all pages, each state named after its patient")
def _(p: Packet) -> None:
    group = p.pdf.add()
    kids = []
    for page in p.pages:
        state = p.hide(page)
        look = (
            f"<< /N << /{state} {p.form('0 0 9 9 re f', '0 0 10 10')} /Off {p.form('0 0 9 9 re S', '0 0 10 10')} >> >>"
        )
        kids.append(p.pdf.add(
            f"<< /Type /Annot /Subtype /Widget /Parent {group} /Rect [60 100 70 110] /P {p.references[page]} /AS /Off /AP {look} >>"
        ))  # fmt: skip
        p.annotate(page, kids[-1])
    names = " ".join(text(p.hide(page)) for page in p.pages)
    p.pdf.set(group, f"<< /FT /Btn /Ff 49152 /T (Patient) /V /Off /Opt [{names}] /Kids [{' '.join(kids)}] >>")
    p.catalog["AcroForm"] = f"<< /Fields [{group}] >>"


@idea("outside_streams", "A1 B1", "streams that name files outside for their contents, by patient")
def _(p: Packet) -> None:
    for page in p.pages:
        other = p.stranger(page)
        outside = p.pdf.stream(
            "", f"/F << /Type /Filespec /F {text(p.hide(other))} /Desc {utf16(p.hide(other))} >>", packed=False
        )
        p.own_resources[page] = {
            "XObject": {"Fm0": p.form(draw_text(400, 760, "Clinic"), entries=f"/Metadata {outside}")}
        }
        p.contents[page] += "/Fm0 Do\n"


@idea("presentation", "A1 B1", "steps of a presentation and slide shows named after the patients")
def _(p: Packet) -> None:
    steps = {page: p.pdf.add() for page in p.pages}
    for page, step in steps.items():
        other = p.stranger(page)
        p.pdf.set(step, f"<< /Type /NavNode /NA << /S /GoTo /D {text(p.hide(other))} >> /Next {steps[other]} >>")
        p.entries[page]["PresSteps"] = step
    show = p.pdf.add(f"<< /Type /SlideShow /Subtype /Embedded /StartResource {text(p.hide(2))} /Resources << >> >>")
    p.name_tree("AlternatePresentations", [(p.hide(1), show)])


@idea(
    "mail_with_scans",
    "A1 B1",
    "a mail whose attachments are named after each other's patients, with words before its first part",
)
def _(p: Packet) -> SourceFile:
    report = Packet("sealed", "mail_report", "", "B1").write()
    scan = Packet("sealed", "mail_scan", "", "C2")
    images = [scan_page(scan, page) for page in scan.pages]
    buffer = io.BytesIO()
    images[0].save(buffer, "TIFF", save_all=True, append_images=images[1:], compression="tiff_adobe_deflate")
    pages = scan.finish(buffer.getvalue(), "tif")
    names = {"report.pdf": report, "scan.tif": pages}
    first = p.show(1)
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = (
        "a@example.org",
        "b@example.org",
        f"=?utf-8?q?Re: {p.person(1)}?=",
    )
    message.set_content(
        f"Seen today: {p.person(1)}, reference {first}. Lungs clear, no fever. Plan: review in ten days.\n"
    )
    comment = {"report.pdf": "C", "scan.tif": "B"}
    gossip = {"report.pdf": p.new_word(), "scan.tif": p.new_word()}
    for name, part in names.items():
        kind = ("application", "pdf") if name.endswith("pdf") else ("image", "tiff")
        message.add_attachment(part.data, maintype=kind[0], subtype=kind[1], filename=name)
        last = message.get_payload()[-1]
        last["Content-Description"] = f"with {gossip[name]} of patient {comment[name]}"
    message.preamble = f"Batch {gossip['report.pdf']} {gossip['scan.tif']}\n"
    message.set_boundary("=====sealed=====")
    words = {("body", 1): (p.person(1), first)}
    segments = [Segment(1, 1, "Clinical Note", "A", "body")]
    for name, part in names.items():
        segments += [segment._replace(part=name) for segment in part.segments]
        words |= {(name, page): shown for (_, page), shown in part.words_of_page.items()}
    foreign = tuple(
        (*sorted({word for (part, _), shown in words.items() if part != s.part for word in shown}), *gossip.values())
        for s in segments
    )
    return SourceFile(p.name, p.what, "eml", message.as_bytes(), tuple(segments), words, foreign)


@idea("tiff_leftovers", "A1 B1", "a TIFF with the strip of a deleted third page still in it, and a private tag")
def _(p: Packet) -> SourceFile:
    images = [scan_page(p, page) for page in p.pages]
    buffer = io.BytesIO()
    images[0].save(
        buffer, "TIFF", save_all=True, append_images=images[1:], compression="raw", tiffinfo={65000: p.hide(2)}
    )
    gone = Image.new("L", (200, 200), 255)
    ImageDraw.Draw(gone).text((5, 180), "gone", fill=0)
    gone.paste(draw_code(p.hide(), 4), (10, 10))
    return p.finish(buffer.getvalue() + portable(gone) + p.hide().encode(), "tif")


@idea("tiff_mixed", "A1 A1 B1", "a TIFF of pages of different depth, size and direction")
def _(p: Packet) -> SourceFile:
    images = [scan_page(p, 1).convert("1"), scan_page(p, 2, (1275, 1650)), scan_page(p, 3).convert("RGB")]
    buffer = io.BytesIO()
    images[0].save(buffer, "TIFF", save_all=True, append_images=images[1:], compression="tiff_lzw", dpi=(150, 150))
    return p.finish(buffer.getvalue(), "tif")


@idea(
    "long_batch", "A4 B5 C4 A5 B3 C4", "a batch of 25 pages whose bookmarks, links and fields all refer to one another"
)
def _(p: Packet) -> None:
    top = p.pdf.add()
    items = [p.pdf.add() for _ in p.pages]
    for page, item in zip(p.pages, items, strict=True):
        kin = f"/Next {items[page]}" if page < len(items) else ""
        p.pdf.set(
            item,
            f"<< /Title {octal(p.hide(page))} /Parent {top} {kin} /A << /S /GoTo /D [{p.references[page]} /XYZ 0 0 0] >> >>",
        )
        other = p.references[p.stranger(page)]
        p.annotate(page, p.pdf.add(
            f"<< /Type /Annot /Subtype /Link /Rect [60 50 90 60] /Dest [{other} /Fit] /Contents {text(p.hide(page))} >>"
        ))  # fmt: skip
    p.pdf.set(top, f"<< /Type /Outlines /First {items[0]} /Last {items[-1]} /Count {len(items)} >>")
    p.catalog["Outlines"] = top


@idea("base_streams", "A1 B1", "run-length and hexadecimal filters over a shared form with both patients' lines")
def _(p: Packet) -> None:
    lines = "".join(f"q 1 0 0 1 0 {900 * (page - 1)} cm {p.take(page)} Q\n" for page in p.pages).encode()
    packed = (
        b"".join(bytes([len(lines[i : i + 100]) - 1]) + lines[i : i + 100] for i in range(0, len(lines), 100)) + b"\x80"
    )
    keys = f"/Type /XObject /Subtype /Form /BBox [0 0 612 2000] /Resources << /Font << /F1 {p.font} >> >>"
    coded = packed.hex().encode() + b">"
    form = p.pdf.add(stream_body(coded, f"{keys} /Filter [/ASCIIHexDecode /RunLengthDecode]", packed=False))
    p.resources["XObject"] = {"Both": form}
    for page in p.pages:
        p.contents[page] = f"q 0 0 612 792 re W n 1 0 0 1 0 {-900 * (page - 1)} cm /Both Do Q"
