"""Parsing of untrusted XML: no entities, no network, damaged parts skipped."""

import re
from typing import Any

from lxml import etree

from evalkit.documents.charsets import decode_text
from evalkit.documents.input_format import build_damaged_error
from evalkit.errors import DocumentError

_XML_DECLARATION = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.-]{1,40})|<\?xml")


def decode_xml(content: bytes) -> str:
    """Decode XML by byte order mark or declaration, and remove the declaration."""
    declaration = _XML_DECLARATION.match(content.lstrip()[:300])
    text = decode_text(content, (declaration[1] or b"utf-8").decode() if declaration else "")
    return re.sub(r"^\s*<\?xml.*?\?>", "", text, flags=re.DOTALL)


def parse_xml(content: bytes, name: str) -> tuple[Any, bool]:
    """Parse XML; return its root element, and True if part of it is damaged.

    Tags and attributes lose their namespaces.

    DocumentError: READER-DAMAGED; READER-UNSAFE if the XML declares entities.
    """
    text = decode_xml(content)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DocumentError(
            f"{name} contains XML declarations that could expand to huge texts or load other files",
            code="READER-UNSAFE",
            remedy="Ask the sender for the document as PDF; clinical documents need no such declarations.",
        )
    parser = etree.XMLParser(
        recover=True, resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(text.encode("utf-8", errors="replace"), parser)
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        raise build_damaged_error(name)
    for element in root.iter(etree.Element):
        element.tag = etree.QName(element).localname
        for attribute in element.attrib:
            if attribute.startswith("{"):
                element.set(etree.QName(attribute).localname, element.attrib.pop(attribute))
    return root, len(parser.error_log) > 0
