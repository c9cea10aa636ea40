"""The open half of the files to be cut: each idea is a way in which a page's file holds what belongs to another page."""

from __future__ import annotations

import io
from collections.abc import Iterator
from email.message import EmailMessage

import pymupdf
from PIL import Image, ImageDraw, ImageFont

from .packets import (
    Ideas,
    Packet,
    Segment,
    SourceFile,
    append_revision,
    draw_code,
    draw_scan,
    draw_text,
    embed_font,
    hexadecimal,
    octal,
    scan_page,
    stream_body,
    subset_font,
    text,
    utf16,
)

idea = Ideas("open")


def build() -> Iterator[SourceFile]:
    """All files of this half."""
    return idea.build()


@idea("plain_two", "A2 B1", "nothing is shared")
def _(p: Packet) -> None:
    pass


@idea("plain_six", "A1 B2 A1 C1 B1 C3", "three patients in six documents, nothing is shared")
def _(p: Packet) -> None:
    p.catalog["PageLayout"] = "/SinglePage"


@idea("one_form", "A2 B1 A1", "all pages draw one Form XObject, each through its own window")
def _(p: Packet) -> None:
    parts = [f"q 1 0 0 1 {1000 * page} 0 cm {p.take(page)} Q\n" for page in p.pages]
    p.resources["XObject"] = {"All": p.form("".join(parts), "0 0 9000 792")}
    for page in p.pages:
        p.contents[page] = f"q 0 0 612 792 re W n 1 0 0 1 {-1000 * page} 0 cm /All Do Q"


@idea("nested_forms", "A1 B1 B1", "a form in a form in a form, of which the innermost has the text of every page")
def _(p: Packet) -> None:
    inner = p.form("".join(f"q 1 0 0 1 0 {1000 * page} cm {p.take(page)} Q\n" for page in p.pages), "0 0 612 9000")
    middle = p.form("/Inner Do", "0 0 612 9000", resources=f"/XObject << /Inner {inner} >>")
    p.resources["XObject"] = {
        "Outer": p.form("/Middle Do", "0 0 612 9000", resources=f"/XObject << /Middle {middle} >>")
    }
    for page in p.pages:
        p.contents[page] = f"q 0 0 612 792 re W n 1 0 0 1 0 {-1000 * page} cm /Outer Do Q"


@idea("one_scan", "A1 B1", "one wide scan of two sheets, of which each page shows its half")
def _(p: Packet) -> None:
    image = Image.new("L", (1700, 1100), 248)
    for page in p.pages:
        image.paste(scan_page(p, page), (850 * (page - 1), 0))
    p.resources["XObject"] = {"Scan": p.picture(image)}
    for page in p.pages:
        p.contents[page] = f"q 1224 0 0 792 {-612 * (page - 1)} 0 cm /Scan Do Q"


@idea("tall_scan", "A1 B2 C1", "one endless scan of a feeder, of which each page shows a stretch by a clip")
def _(p: Packet) -> None:
    image = Image.new("L", (640, 828 * len(p.pages)), 250)
    for page in p.pages:
        image.paste(scan_page(p, page, (640, 828)), (0, 828 * (page - 1)))
    p.resources["XObject"] = {"Im0": p.picture(image)}
    count = len(p.pages)
    for page in p.pages:
        p.contents[page] = f"q 0 0 612 792 re W n 612 0 0 {792 * count} 0 {-792 * (count - page)} cm /Im0 Do Q"


@idea("shared_resources", "A1 B1 C1", "pages inherit one dictionary of resources with the forms of all pages")
def _(p: Packet) -> None:
    p.resources["XObject"] = {f"P{page}": p.form(p.take(page)) for page in p.pages}
    for page in p.pages:
        p.contents[page] = f"/P{page} Do"


@idea("shared_images", "A1 B1 A1", "pages inherit one dictionary of resources with the scans of all pages")
def _(p: Packet) -> None:
    p.resources["XObject"] = {f"Im{page}": p.picture(scan_page(p, page)) for page in p.pages}
    for page in p.pages:
        p.contents[page] = f"q 612 0 0 792 0 0 cm /Im{page} Do Q"


@idea("attachment", "A1 B1", "a text file for each patient is attached to the file")
def _(p: Packet) -> None:
    pairs = []
    for page in p.pages:
        body = p.pdf.stream(
            f"Referral of {p.person(page)}: {p.hide(page)}", "/Type /EmbeddedFile /Subtype /text#2Fplain"
        )
        name = text(f"{p.hide(page)}.txt")
        pairs.append((f"file{page}", p.pdf.add(f"<< /Type /Filespec /F {name} /UF {name} /EF << /F {body} >> >>")))
    p.name_tree("EmbeddedFiles", pairs)


@idea("attached_pdf", "A2 B1", "the page of one patient carries the whole packet of another as an attached PDF")
def _(p: Packet) -> None:
    inner = Packet("open", "attached_inner", "", "Z1")
    inner.contents[1] += draw_text(60, 400, p.hide())
    body = p.pdf.stream(inner.write().data, "/Type /EmbeddedFile /Subtype /application#2Fpdf")
    spec = p.pdf.add(f"<< /Type /Filespec /F (record.pdf) /UF (record.pdf) /EF << /F {body} >> >>")
    p.annotate(
        3, p.pdf.add(f"<< /Type /Annot /Subtype /FileAttachment /Rect [500 60 520 80] /FS {spec} /Contents (record) >>")
    )


@idea("outlines", "A2 B1 C1", "bookmarks with the names of all patients, in a tree")
def _(p: Packet) -> None:
    top = p.pdf.add()
    items = [p.pdf.add() for _ in p.pages]
    for page, item in zip(p.pages, items, strict=True):
        kin = f"/Next {items[page]}" if page < len(items) else ""
        kin += f" /Prev {items[page - 2]}" if page > 1 else ""
        title = (text, utf16)[page % 2](f"{p.person(page)} {p.hide(page)}")
        p.pdf.set(item, f"<< /Title {title} /Parent {top} {kin} /Dest [{p.references[page]} /Fit] >>")
    p.pdf.set(top, f"<< /Type /Outlines /First {items[0]} /Last {items[-1]} /Count {len(items)} >>")
    p.catalog["Outlines"] = top


@idea("named_destinations", "A1 B1", "each page has a link by a name to the other, the names are patients'")
def _(p: Packet) -> None:
    words = {page: p.hide(page) for page in p.pages}
    p.name_tree("Dests", [(words[page], f"[{p.references[page]} /Fit]") for page in p.pages])
    for page in p.pages:
        target = text(words[p.stranger(page)])
        p.annotate(page, p.pdf.add(f"<< /Type /Annot /Subtype /Link /Rect [60 50 200 80] /Dest {target} >>"))


@idea("old_destinations", "A1 B1 B1", "destinations as names in the catalog's old dictionary")
def _(p: Packet) -> None:
    p.catalog["Dests"] = "<< " + " ".join(f"/{p.hide(page)} [{p.references[page]} /Fit]" for page in p.pages) + " >>"


@idea("page_labels", "A1 B1 C1", "the numbers of pages have patients' names before them")
def _(p: Packet) -> None:
    rows = " ".join(f"{page - 1} << /S /D /P {text(p.hide(page) + '-')} >>" for page in p.pages)
    p.catalog["PageLabels"] = f"<< /Nums [{rows}] >>"


@idea("popup_notes", "A1 B1", "notes with popups that name a page as their own, though another lists them")
def _(p: Packet) -> None:
    for page in p.pages:
        note, popup = p.pdf.add(), p.pdf.add()
        words = f"/Contents {text(p.hide(page))} /T {utf16(p.hide(page))}"
        p.pdf.set(
            note,
            f"<< /Type /Annot /Subtype /Text /Rect [20 20 40 40] /P {p.references[page]} /Popup {popup} {words} >>",
        )
        p.pdf.set(
            popup, f"<< /Type /Annot /Subtype /Popup /Rect [50 20 200 90] /Parent {note} /P {p.references[page]} >>"
        )
        p.annotate(page, note)
        p.annotate(p.stranger(page), popup)


@idea("form_fields", "A1 B1 A1", "an entry form with fields on every page, in one list")
def _(p: Packet) -> None:
    fields = []
    for page in p.pages:
        keys = f"/FT /Tx /T {text(p.hide(page))} /V {utf16(p.hide(page))} /TU {text(p.hide(page))} /DA (/F1 10 Tf 0 g)"
        widget = p.pdf.add(f"<< /Type /Annot /Subtype /Widget /Rect [60 100 300 120] /P {p.references[page]} {keys} >>")
        p.annotate(page, widget)
        fields.append(widget)
    p.catalog["AcroForm"] = (
        f"<< /Fields [{' '.join(fields)}] /DR << /Font << /F1 {p.font} >> >> /NeedAppearances true >>"
    )


@idea(
    "shared_field", "A1 B1", "widgets on two patients' pages are kids of one field; each has an appearance of its own"
)
def _(p: Packet) -> None:
    field = p.pdf.add()
    kids = []
    for page in p.pages:
        look = p.form(draw_text(2, 4, p.show(page), 11), "0 0 240 20")
        keys = f"/Parent {field} /AP << /N {look} >> /P {p.references[page]} /NM {text(p.hide(page))} /F 4"
        kids.append(p.pdf.add(f"<< /Type /Annot /Subtype /Widget /Rect [60 100 300 120] {keys} >>"))
        p.annotate(page, kids[-1])
    p.pdf.set(field, f"<< /FT /Tx /T (Name) /V (see chart) /Kids [{' '.join(kids)}] >>")
    p.catalog["AcroForm"] = f"<< /Fields [{field}] >>"


@idea("choice_lists", "A1 B1 C1", "a choice field on each page lists the patients of all pages")
def _(p: Packet) -> None:
    words = {page: p.hide(page) for page in p.pages}
    options = " ".join(text(word) for word in words.values())
    widgets = []
    for page in p.pages:
        keys = f"/FT /Ch /Ff 131072 /T (Patient{page}) /Opt [{options}] /V {text(words[page])} /P {p.references[page]}"
        widgets.append(p.pdf.add(f"<< /Type /Annot /Subtype /Widget /Rect [60 100 300 120] {keys} >>"))
        p.annotate(page, widgets[-1])
    p.catalog["AcroForm"] = f"<< /Fields [{' '.join(widgets)}] >>"


@idea("information", "A1 B1", "title, subject, keywords and a custom key of the file name both patients")
def _(p: Packet) -> None:
    for key, page in {"Title": 1, "Subject": 2, "Keywords": 1, "MRNList": 2}.items():
        p.information[key] = utf16(f"{p.person(page)} {p.hide(page)}")


@idea("xmp", "A1 B1", "XMP metadata of the file names both patients")
def _(p: Packet) -> None:
    words = "".join(f"<rdf:li xml:lang='x-default'>{p.person(page)} {p.hide(page)}</rdf:li>" for page in p.pages)
    xml = (
        "<?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF "
        "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description rdf:about='' "
        f"xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title><rdf:Alt>{words}</rdf:Alt></dc:title>"
        "</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end='w'?>"
    )
    p.catalog["Metadata"] = p.pdf.stream(xml, "/Type /Metadata /Subtype /XML", packed=False)


@idea("threads", "A1 B1", "an article runs over both pages, its title is a patient's")
def _(p: Packet) -> None:
    thread = p.pdf.add()
    beads = [p.pdf.add() for _ in p.pages]
    for page, bead in zip(p.pages, beads, strict=True):
        other = beads[page % 2]
        p.pdf.set(
            bead, f"<< /Type /Bead /T {thread} /N {other} /V {other} /P {p.references[page]} /R [50 50 560 740] >>"
        )
        p.entries[page]["B"] = f"[{bead}]"
    info = " ".join(f"/{key} {text(p.hide(page))}" for key, page in (("Title", 1), ("Subject", 2)))
    p.pdf.set(thread, f"<< /Type /Thread /F {beads[0]} /I << {info} >> >>")
    p.catalog["Threads"] = f"[{thread}]"


@idea("structure_tree", "A1 B2", "a structure tree with ActualText, Alt and titles of every page")
def _(p: Packet) -> None:
    root = p.pdf.add()
    kids = []
    for page in p.pages:
        words = f"/ActualText {utf16(' '.join([*p.shown['', page], p.hide(page)]))} /Alt {text(p.hide(page))} /T {text(p.hide(page))} /E {text(p.person(page))}"
        kids.append(p.pdf.add(f"<< /Type /StructElem /S /P /P {root} /Pg {p.references[page]} /K 0 {words} >>"))
        p.entries[page]["StructParents"] = str(page - 1)
        p.contents[page] = f"/P << /MCID 0 >> BDC\n{p.contents[page]}EMC\n"
    parents = p.pdf.add("<< /Nums [" + " ".join(f"{page - 1} [{kids[page - 1]}]" for page in p.pages) + "] >>")
    p.pdf.set(root, f"<< /Type /StructTreeRoot /K [{' '.join(kids)}] /ParentTree {parents} /ParentTreeNextKey 9 >>")
    p.catalog |= {"StructTreeRoot": root, "MarkInfo": "<< /Marked true >>"}


@idea("layer_names", "A1 B1", "a layer for each patient, by name, and both in every page's properties")
def _(p: Packet) -> None:
    layers = {page: p.pdf.add(f"<< /Type /OCG /Name {text(p.hide(page))} >>") for page in p.pages}
    p.resources["Properties"] = {f"L{page}": layer for page, layer in layers.items()}
    for page in p.pages:
        p.contents[page] = f"/OC /L{page} BDC\n{p.contents[page]}EMC\n"
    order = " ".join(layers.values())
    p.catalog["OCProperties"] = f"<< /OCGs [{order}] /D << /Order [{order}] /ON [{order}] >> >>"


@idea("hidden_layer", "A1 B1", "each page has the other patient's text in a layer that is switched off")
def _(p: Packet) -> None:
    layer = p.pdf.add("<< /Type /OCG /Name (Other copy) >>")
    p.resources["Properties"] = {"Off": layer}
    for page in p.pages:
        words = draw_text(60, 400, p.hide(p.stranger(page)))
        p.contents[page] += f"/OC /Off BDC\n{words}EMC\n"
    p.catalog["OCProperties"] = f"<< /OCGs [{layer}] /D << /OFF [{layer}] >> >>"


@idea("scripts", "A1 B1", "scripts at opening and by name that know all patients")
def _(p: Packet) -> None:
    script = f"var roll = ['{p.hide(1)}', '{p.hide(2)}'];"
    p.catalog["OpenAction"] = f"<< /S /JavaScript /JS {text(script)} >>"
    body = p.pdf.stream(f"function name(page) {{ return page ? '{p.hide(2)}' : '{p.hide(1)}'; }}")
    p.name_tree("JavaScript", [("roll", p.pdf.add(f"<< /S /JavaScript /JS {body} >>"))])


@idea("thumbnails", "A1 B1", "the little picture of each page is one picture of both")
def _(p: Packet) -> None:
    image = Image.new("L", (260, 130), 255)
    for page in p.pages:
        image.paste(draw_code(p.hide(page), 4), (130 * (page - 1), 0))
    picture = p.picture(image)
    for page in p.pages:
        p.entries[page]["Thumb"] = picture


@idea(
    "deleted_page",
    "A1 B1",
    "a page of a third patient was deleted by an incremental update; its objects are still there",
)
def _(p: Packet) -> None:
    secret = p.pdf.stream(draw_text(60, 700, f"{p.hide()} {p.hide()}"))
    gone = p.pdf.add(f"<< /Type /Page /Parent {p.tree} /MediaBox [0 0 612 792] /Contents {secret} >>")
    p.extra_kids = [gone]
    p.after = lambda data: append_revision(
        data, {p.tree: p.write_tree([*p.references.values()])}, p.root, len(p.pdf.objects)
    )


@idea("replaced_contents", "A1 B1", "an update put the right text on a page that had shown the other patient's")
def _(p: Packet) -> None:
    wrong = p.pdf.stream(draw_text(60, 700, f"{p.hide(2)} filed by mistake"))
    right = stream_body(p.take(1))
    p.entries[1]["Contents"] = wrong
    p.after = lambda data: append_revision(data, {wrong: right}, p.root, len(p.pdf.objects))


@idea("hidden_text", "A1 B1", "scans with their recognised text invisible below; one page has the other's text as well")
def _(p: Packet) -> None:
    for page in p.pages:
        image = p.picture(scan_page(p, page))
        p.own_resources[page] = {"XObject": {"Im0": image}}
        words = draw_text(60, 300, p.hide(page), before="3 Tr") + draw_text(
            60, 280, p.hide(p.stranger(page)), before="3 Tr"
        )
        p.contents[page] = f"q 612 0 0 792 0 0 cm /Im0 Do Q\n{words}"


@idea("font_names", "A1 B1", "subset fonts whose names are patients', both in the shared resources")
def _(p: Packet) -> None:
    for page in p.pages:
        word = p.hide(page)
        base = f"AAAAA{'AB'[page - 1]}+{word}"
        p.resources["Font"][f"F{page + 1}"] = embed_font(
            p, base, subset_font("Seen ok", n1=p.hide(page), n4=p.hide(page))
        )
        p.contents[page] += draw_text(60, 400, "Seen ok", 13, f"F{page + 1}")


@idea("portfolio", "A1 B1", "a cover and a portfolio of the patients' files, with a column of names")
def _(p: Packet) -> None:
    pairs = []
    for page in p.pages:
        inner = Packet("open", f"portfolio_{page}", "", "Z1")
        inner.contents[1] += draw_text(60, 400, p.hide(page))
        body = p.pdf.stream(inner.write().data, "/Type /EmbeddedFile /Subtype /application#2Fpdf")
        entry = f"<< /Type /CollectionItem /Patient {text(p.hide(page))} >>"
        spec = f"<< /Type /Filespec /F (f{page}.pdf) /UF (f{page}.pdf) /Desc {text(p.hide(page))} /EF << /F {body} >> /CI {entry} >>"
        pairs.append((f"f{page}", p.pdf.add(spec)))
    p.name_tree("EmbeddedFiles", pairs)
    p.catalog["Collection"] = "<< /Type /Collection /View /D /Schema << /Patient << /Subtype /S /N (Patient) >> >> >>"


@idea("encrypted_rc4", "A1 B1", "encrypted with an empty user password, with bookmarks of all patients")
def _(p: Packet) -> None:
    p.information["Title"] = text(f"{p.hide(1)} {p.hide(2)}")
    item = p.pdf.add()
    top = p.pdf.add(f"<< /Type /Outlines /First {item} /Last {item} /Count 1 >>")
    p.pdf.set(item, f"<< /Title {text(p.hide(2))} /Parent {top} /Dest [{p.references[2]} /Fit] >>")
    p.catalog["Outlines"] = top

    def encrypt(data: bytes) -> bytes:
        document = pymupdf.open(stream=data, filetype="pdf")
        return document.tobytes(encryption=pymupdf.PDF_ENCRYPT_RC4_128, owner_pw="registry", user_pw="", no_new_id=True)

    p.after = encrypt


@idea("signature", "A1 B1", "a signature on the last page whose name, reason and certificate speak of a patient")
def _(p: Packet) -> None:
    blob = b"0\x82\x01\x00" + f"CN={p.hide(2)},OU=consent of {p.person(2)}".encode()
    keys = (
        f"/Name {text(p.hide(2))} /Reason {text(p.hide(2))} /Location {utf16(p.hide(2))} /ContactInfo {text(p.hide(1))}"
    )
    value = p.pdf.add(
        f"<< /Type /Sig /Filter /Adobe.PPKLite /SubFilter /adbe.pkcs7.detached /Contents <{blob.hex():0<2048}> "
        f"/ByteRange [0 100 2200 9000] /M (D:20260301120000Z) {keys} >>"
    )
    widget = p.pdf.add(
        f"<< /Type /Annot /Subtype /Widget /FT /Sig /T (Signature) /V {value} /Rect [0 0 0 0] /P {p.references[2]} /F 132 >>"
    )
    p.annotate(2, widget)
    p.catalog["AcroForm"] = f"<< /Fields [{widget}] /SigFlags 3 >>"


@idea("outside_crop", "A1 B1", "below the CropBox of each page the beginning of the other patient's page is printed")
def _(p: Packet) -> None:
    for page in p.pages:
        p.entries[page] |= {"MediaBox": "[0 -792 612 792]", "CropBox": "[0 0 612 792]"}
        p.contents[page] += draw_text(60, -100, f"Patient: {p.person(p.stranger(page))} {p.hide(p.stranger(page))}")


@idea("booklet", "A1 B1", "one stream for a spread, of which each page's MediaBox is a half")
def _(p: Packet) -> None:
    stream = p.pdf.stream("".join(f"q 1 0 0 1 {612 * (page - 1)} 0 cm {p.take(page)} Q\n" for page in p.pages))
    for page in p.pages:
        p.entries[page] |= {"Contents": stream, "MediaBox": f"[{612 * (page - 1)} 0 {612 * page} 792]"}


@idea(
    "booklet_four", "A1 B1 C1 A1", "a sheet of four pages, each by its CropBox, of one stream under a shrinking matrix"
)
def _(p: Packet) -> None:
    rows = []
    for page in p.pages:
        column, row = (page - 1) % 2, (page - 1) // 2
        rows.append(f"q 0.8 0 0 0.8 {490 * column} {634 * row} cm {p.take(page)} Q\n")
        p.entries[page] |= {"CropBox": f"[{490 * column} {634 * row} {490 * column + 489} {634 * row + 633}]"}
    stream = p.pdf.stream("".join(rows))
    for page in p.pages:
        p.entries[page] |= {"Contents": stream, "MediaBox": "[0 0 980 1268]"}


@idea("titled_links", "A1 B1 A1", "links to other pages with the names of those patients as their text")
def _(p: Packet) -> None:
    for page in p.pages:
        other = p.stranger(page)
        words = f"/Contents {text(p.hide(other))} /T {utf16(p.hide(other))}"
        p.annotate(page, p.pdf.add(
            f"<< /Type /Annot /Subtype /Link /Rect [60 50 200 80] /A << /S /GoTo /D [{p.references[other]} /Fit] >> {words} >>"
        ))  # fmt: skip


@idea("tiff_pages", "A2 B1", "a TIFF of three scanned pages")
def _(p: Packet) -> SourceFile:
    images = [scan_page(p, page).convert("1") for page in p.pages]
    buffer = io.BytesIO()
    images[0].save(buffer, "TIFF", save_all=True, append_images=images[1:], compression="group4", dpi=(100, 100))
    return p.finish(buffer.getvalue(), "tif")


@idea("tiff_tags", "A1 B1", "a TIFF whose first page describes both patients in its tags")
def _(p: Packet) -> SourceFile:
    images = [scan_page(p, page) for page in p.pages]
    buffer = io.BytesIO()
    tags = {270: f"Batch {p.hide(1)} {p.hide(2)}", 285: p.hide(2), 315: p.hide(1)}
    images[0].save(buffer, "TIFF", save_all=True, append_images=images[1:], compression="tiff_lzw", tiffinfo=tags)
    return p.finish(buffer.getvalue(), "tif")


@idea("mail", "A1 B1", "a mail about one patient with the PDF of another attached")
def _(p: Packet) -> SourceFile:
    inner = Packet("open", "mail_inner", "", "B2")
    message = EmailMessage()
    message["From"], message["To"] = "ward7@example.org", "records@example.org"
    first, second = p.hide(1), inner.write()
    message["Subject"] = f"About {p.person(1)}"
    message["Date"] = "Mon, 02 Mar 2026 10:00:00 +0000"
    body = f"Dear colleague,\n\nMrs {p.person(1)} was seen today for a cough. Reference {first}.\nChest clear; review in ten days.\n"
    message.set_content(body)
    message.add_attachment(second.data, maintype="application", subtype="pdf", filename="report.pdf")
    message.set_boundary("=====open-mail=====")
    return join_mail(p, message, first, {"report.pdf": second})


def join_mail(p: Packet, message: EmailMessage, body_word: str, parts: dict[str, SourceFile]) -> SourceFile:
    """The mail as a file whose body and attachments are documents of their own."""
    segments = [Segment(1, 1, "Clinical Note", "A", "body")]
    words: dict[tuple[str, int], tuple[str, ...]] = {("body", 1): (p.names["A"], body_word)}
    for name, part in parts.items():
        segments += [segment._replace(part=name) for segment in part.segments]
        words |= {(name, page): shown for (_, page), shown in part.words_of_page.items()}
    foreign = tuple(
        tuple(sorted({word for (part, _), shown in words.items() if part != segment.part for word in shown}))
        for segment in segments
    )
    return SourceFile(p.name, p.what, "eml", message.as_bytes(), tuple(segments), words, foreign)


@idea("mail_two_reports", "A1 B1", "a mail with the reports of two other patients attached, one in an attached mail")
def _(p: Packet) -> SourceFile:
    first, second = (Packet("open", f"mail_{name}", "", "B1").write() for name in ("one", "two"))
    word = p.hide(1)
    inner = EmailMessage()
    inner["From"], inner["To"], inner["Subject"] = "lab@example.org", "ward7@example.org", "Result"
    inner.set_content("See the attached result.\n")
    inner.add_attachment(second.data, maintype="application", subtype="pdf", filename="two.pdf")
    inner.set_boundary("=====inner=====")
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "ward7@example.org", "records@example.org", "Two results"
    message.set_content(
        f"Patient {p.person(1)}, reference {word}: results of the family are attached. Seen today, well.\n"
    )
    message.add_attachment(first.data, maintype="application", subtype="pdf", filename="one.pdf")
    message.add_attachment(inner)
    message.set_boundary("=====outer=====")
    return join_mail(p, message, word, {"one.pdf": first, "two.pdf": second})


@idea("piece_information", "A1 B1", "private data of the program that made the file, with the other page's text")
def _(p: Packet) -> None:
    for page in p.pages:
        private = p.pdf.stream(f"%AI9_DataStream {p.hide(p.stranger(page))}")
        p.entries[page] |= {
            "PieceInfo": f"<< /Illustrator << /LastModified (D:20260301) /Private << /AIPrivateData1 {private} >> >> >>",
            "LastModified": "(D:20260301)",
        }


@idea("alternate_images", "A1 B1", "each scan names the other patient's scan as its alternate for printing")
def _(p: Packet) -> None:
    images = {page: p.pdf.add() for page in p.pages}
    scans = {page: scan_page(p, page, (640, 828)) for page in p.pages}
    for page, image in scans.items():
        size = f"/Width {image.width} /Height {image.height} /ColorSpace /DeviceGray /BitsPerComponent 8"
        alternate = f"/Alternates [<< /Image {images[p.stranger(page)]} /DefaultForPrinting true >>]"
        p.pdf.set(images[page], stream_body(image.tobytes(), f"/Type /XObject /Subtype /Image {size} {alternate}"))
        p.own_resources[page] = {"XObject": {"Im0": images[page]}}
        p.contents[page] = "q 612 0 0 792 0 0 cm /Im0 Do Q"


@idea("object_streams", "A1 B1", "all dictionaries are in one compressed object stream, with notes of both patients")
def _(p: Packet) -> None:
    for page in p.pages:
        p.annotate(
            page, p.pdf.add(f"<< /Type /Annot /Subtype /Text /Rect [20 20 40 40] /Contents {text(p.hide(page))} >>")
        )
        p.pdf.add(f"<< /Forgotten {text(p.hide(page))} >>")
    p.in_streams = True


@idea("type3_glyphs", "A1 B1", "a font of drawn glyphs, each glyph a whole page of a patient")
def _(p: Packet) -> None:
    glyphs = {page: p.pdf.stream(f"612 0 d0\n{p.take(page)}") for page in p.pages}
    names = " ".join(f"/page{page} {glyph}" for page, glyph in glyphs.items())
    order = " ".join(f"/page{page}" for page in p.pages)
    p.resources["Font"]["T3"] = p.pdf.add(
        "<< /Type /Font /Subtype /Type3 /FontBBox [0 0 612 792] /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 65 /LastChar 66 "
        f"/Widths [612 612] /CharProcs << {names} >> /Encoding << /Differences [65 {order}] >> "
        f"/Resources << /Font << /F1 {p.font} >> >> >>"
    )
    for page in p.pages:
        p.contents[page] = f"BT /T3 1000 Tf 0 0 Td ({'AB'[page - 1]}) Tj ET"


@idea("resource_names", "A1 B1", "the names of the shared resources are the patients'")
def _(p: Packet) -> None:
    words = {page: p.hide(page) for page in p.pages}
    p.resources["XObject"] = {words[page]: p.form(draw_text(60, 380, "stamp")) for page in p.pages}
    p.resources["ExtGState"] = {p.hide(page): "<< /CA 1 >>" for page in p.pages}
    for page in p.pages:
        p.contents[page] += f"/{words[page]} Do"


@idea("comments", "A1 B1", "comments between objects and after the end of the file")
def _(p: Packet) -> None:
    words = [p.hide(1), p.hide(2)]
    p.pdf.objects[int(p.font.split()[0]) - 1] += f"\n% job of {words[1]}".encode()
    p.after = lambda data: data + f"%%Batch {words[0]} {words[1]}\n".encode()


@idea("orphans", "A1 B1", "objects that nothing refers to: an older page of each patient")
def _(p: Packet) -> None:
    for page in p.pages:
        old = p.pdf.stream(draw_text(60, 700, f"old version {p.hide(page)}"))
        p.pdf.add(f"<< /Type /Page /MediaBox [0 0 612 792] /Contents {old} /Title {octal(p.hide(page))} >>")


@idea("stacked_contents", "A1 B1", "each page draws a stream of its own and then one that holds both patients' lines")
def _(p: Packet) -> None:
    lines = "".join(f"q 1 0 0 1 {700 * (page - 1)} 0 cm {draw_text(60, 420, p.show(page))} Q\n" for page in p.pages)
    shared = p.pdf.stream(lines)
    for page in p.pages:
        shift = p.pdf.stream(f"q 0 0 612 792 re W n 1 0 0 1 {-700 * (page - 1)} 0 cm\n")
        end = p.pdf.stream(" Q")
        p.entries[page]["Contents"] = f"[{p.pdf.stream(p.contents[page])} {shift} {shared} {end}]"


@idea("white_box", "A1 B1", "under a white box each page still has the name of the patient whose letter was reused")
def _(p: Packet) -> None:
    for page in p.pages:
        other = p.stranger(page)
        covered = draw_text(62, 402, f"{p.person(other)} {p.hide(other)}")
        p.contents[page] = f"{covered}1 g 50 390 400 40 re f 0 g\n{p.contents[page]}"


@idea("white_text", "A1 B1", "white letters on white: a template's last patient")
def _(p: Packet) -> None:
    for page in p.pages:
        p.contents[page] += "1 g " + draw_text(60, 300, p.hide(p.stranger(page)), 6) + "0 g\n"


@idea(
    "marked_properties", "A1 B1", "marked content with properties that are lists of patients, in the shared resources"
)
def _(p: Packet) -> None:
    rows = {page: p.pdf.add(f"<< /Patient {utf16(p.hide(page))} >>") for page in p.pages}
    p.resources["Properties"] = {f"M{page}": row for page, row in rows.items()}
    for page in p.pages:
        p.contents[page] = f"/Record /M{page} BDC\n{p.contents[page]}EMC\n"


@idea("jpeg_comment", "A1 B1", "one logo for both pages whose JPEG has a comment and Exif data of one patient")
def _(p: Packet) -> None:
    logo = Image.new("L", (120, 40), 200)
    ImageDraw.Draw(logo).text((8, 8), "CLINIC", fill=10, font=ImageFont.load_default(20))
    exif = Image.Exif()
    exif[0x010E] = p.hide(1)
    buffer = io.BytesIO()
    logo.save(buffer, "JPEG", comment=p.hide(1).encode(), exif=exif)
    data = buffer.getvalue()
    keys = f"/Type /XObject /Subtype /Image /Width 120 /Height 40 /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /DCTDecode /Length {len(data)}"
    image = p.pdf.add(f"<< {keys} >>\nstream\n".encode() + data + b"\nendstream")
    p.resources["XObject"] = {"Logo": image}
    for page in p.pages:
        p.contents[page] += "q 120 0 0 40 440 740 cm /Logo Do Q"


@idea(
    "hexadecimal_notes",
    "A1 B1 C1",
    "a stamp on each page has the next patient in its appearance, its text in hexadecimal digits",
)
def _(p: Packet) -> None:
    for page in p.pages:
        other = p.stranger(page)
        look = p.form(f"q 0 0 100 20 re W n Q BT /F1 8 Tf 300 4 Td {hexadecimal(p.hide(other))} Tj ET", "0 0 100 20")
        p.annotate(page, p.pdf.add(
            f"<< /Type /Annot /Subtype /Stamp /Rect [450 40 550 60] /F 4 /AP << /N {look} >> /Subj {hexadecimal(p.hide(page))} >>"
        ))  # fmt: skip


@idea("scan_beyond_edge", "A1 B1", "the scan of a page goes on below its lower edge with the neighbour's page")
def _(p: Packet) -> None:
    for page in p.pages:
        own = scan_page(p, page)
        sheet = Image.new("L", (own.width, own.height + 400), 248)
        sheet.paste(own, (0, 0))
        other = p.stranger(page)
        sheet.paste(
            draw_scan([f"Patient: {p.person(other)}"], p.hide(other), (850, 1100)).crop((0, 500, 850, 900)),
            (0, own.height),
        )
        p.own_resources[page] = {"XObject": {"Im0": p.picture(sheet)}}
        p.contents[page] = (
            f"q 612 0 0 {792 * sheet.height / own.height} 0 {792 - 792 * sheet.height / own.height} cm /Im0 Do Q"
        )
