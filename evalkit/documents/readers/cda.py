"""Clinical documents in XML (C-CDA): their text, or the file embedded in them."""

import base64
import binascii
import re
from typing import Any

from lxml import etree, html

from evalkit.documents.charsets import decode_text
from evalkit.documents.html_layout import convert_html_to_pdf
from evalkit.documents.input_format import (
    ConvertedFile,
    build_damaged_error,
    build_empty_error,
    define_converted_format,
)
from evalkit.documents.mupdf import has_pdf_signature
from evalkit.documents.readers.images import convert_picture
from evalkit.documents.readers.text import convert_text
from evalkit.documents.safe_xml import decode_xml, parse_xml
from evalkit.errors import DocumentError

_DETECTION_BYTES = 65_536
#: The root's tag after the declaration, comments and a document type; possessive, because hostile files would take hours.
_ROOT = re.compile(
    r"(?s)\s*+<(?:(?:!--(?:(?!-->).)*+-->|!DOCTYPE(?:[^\[>]|\[(?:(?!\]\s*>).)*+\])*+>|\?[^>]*+>)\s*+<)*+"
    r"(?:[\w.-]+:)?ClinicalDocument[\s>]"
)
#: HTML elements for the elements of a narrative that HTML does not have.
_HTML_TAGS = {"paragraph": "p", "content": "span", "list": "ul", "item": "li", "title": "h2", "text": "div"}


def convert_clinical_document(content: bytes, name: str) -> ConvertedFile:
    """Convert a C-CDA document to a PDF; an embedded PDF is used unchanged.

    DocumentError: READER-EMPTY, READER-DAMAGED, READER-UNSAFE, and those of the format inside.
    """
    root, is_damaged = parse_xml(content, name)
    body = root.find(".//nonXMLBody/text")
    if body is not None:
        converted = _convert_embedded_file(body, name)
        return converted._replace(is_damaged=is_damaged or converted.is_damaged)
    sheet = html.Element("body")
    for section in root.iter("section"):
        sheet.extend(child for child in list(section) if child.tag in ("title", "text"))
    for element in sheet.xpath(".//*[@revised='delete']"):
        element.clear(keep_tail=True)
    if not sheet.xpath("string()").strip() and not sheet.xpath(".//renderMultiMedia"):
        raise build_damaged_error(name) if is_damaged else build_empty_error(name)
    for element in sheet.iter(etree.Element):
        if element.tag == "renderMultiMedia":
            _insert_picture(element, root)
        elif element.tag == "list" and element.get("listType") == "ordered":
            element.tag = "ol"
        element.tag = _HTML_TAGS.get(element.tag, element.tag)
    sheet[:0] = _build_heading(root)
    return ConvertedFile(
        convert_html_to_pdf(etree.tostring(sheet, method="html", encoding="unicode"), name), is_damaged
    )


FORMAT = define_converted_format(
    "C-CDA",
    (".xml", ".cda", ".ccda"),
    lambda content: bool(_ROOT.match(decode_xml(content[:_DETECTION_BYTES]))),
    convert_clinical_document,
    "cda 2",
)


def _build_heading(root: Any) -> list[Any]:
    """Return the title, the dates and the patient's facts as HTML elements."""
    title = html.Element("h1")
    title.text = " ".join(root.findtext("title", "").split())
    names = [
        " ".join(" ".join(name.itertext()).split()) for name in root.iterfind("recordTarget/patientRole/patient/name")
    ]
    identifiers = [identifier.get("extension", "") for identifier in root.iterfind("recordTarget/patientRole/id")]
    facts = (
        ("Patient", names[:1]),
        ("Date of birth", [_format_date(time) for time in root.iterfind("recordTarget/patientRole/patient/birthTime")]),
        ("Patient ID", identifiers),
        ("Date of document", [_format_date(time) for time in root.iterfind("effectiveTime")]),
    )
    lines = []
    for label, texts in facts:
        line = html.Element("div")
        line.text = f"{label}: {', '.join(texts)}"
        lines += [line] if any(texts) else []
    return [title, *lines] if title.text else lines


def _format_date(time: Any) -> str:
    """Return the date of an HL7 time, e.g. 1951-04-12 for 195104121030."""
    digits = time.get("value", "")
    return "-".join(filter(None, (digits[:4], digits[4:6], digits[6:8])))


def _insert_picture(element: Any, root: Any) -> None:
    """Turn a reference to a picture in the document's entries into an HTML picture."""
    for media in root.iter("observationMedia"):
        if media.get("ID") in element.get("referencedObject", "").split():
            kind, body = media.find("value").get("mediaType", ""), media.findtext("value", "")
            element.append(html.Element("img", src=f"data:{kind};base64,{''.join(body.split())}"))
    element.tag = "div"


def _convert_embedded_file(body: Any, name: str) -> ConvertedFile:
    """Convert the file inside a document that has no narrative of its own."""
    text, kind = "".join(body.itertext()), body.get("mediaType", "text/plain")
    try:
        content = base64.b64decode(text) if body.get("representation") == "B64" else text.encode()
    except binascii.Error:
        raise build_damaged_error(name) from None
    if has_pdf_signature(content):
        return ConvertedFile(content)
    if kind.startswith("image/"):
        return convert_picture(content, name)
    if kind == "text/html":
        return ConvertedFile(convert_html_to_pdf(decode_text(content), name))
    if kind == "text/plain":
        return convert_text(content, name)
    raise DocumentError(
        f"{name} contains an embedded file in a format that evalkit cannot read",
        code="READER-NOT-PDF",
        remedy="Open the document in the program it came from and save it as PDF.",
    )
