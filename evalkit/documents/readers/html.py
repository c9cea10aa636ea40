"""HTML pages: exports of portals and of other programs."""

import re

from evalkit.documents.charsets import decode_text
from evalkit.documents.html_layout import convert_html_to_pdf
from evalkit.documents.input_format import ConvertedFile, define_converted_format

_DETECTION_BYTES = 4096
_BEGINNING = re.compile(
    r"(?is)(?:\s|\0|<!--(?:(?!-->).)*-->|<\?xml[^>]*\?>)*<(?:!doctype\s+html|/?(?:html|head|body|meta|title|style|script|link|div|p|h[1-6]|"
    r"table|br|span|center|font|ul|ol|b|i|a|img|pre|section|article|main|header|form)(?:\s[^<]*)?/?>)"
)
_DECLARED_CHARSET = re.compile(rb"(?i)<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w-]{1,40})")


def convert_html_file(content: bytes, name: str) -> ConvertedFile:
    """Convert an HTML file to a PDF. DocumentError as ``convert_html_to_pdf``."""
    declared = _DECLARED_CHARSET.search(content[:_DETECTION_BYTES])
    html = decode_text(content, declared[1].decode() if declared else "")
    # Ends may be left out in HTML, but a program that writes the beginning of the body writes its end, too.
    is_cut = bool(re.search(r"(?i)<(html|body)\b", html)) and not re.search(r"(?i)</(html|body)\b", html)
    return ConvertedFile(convert_html_to_pdf(html, name), is_cut)


FORMAT = define_converted_format(
    "HTML",
    (".html", ".htm", ".xhtml"),
    lambda content: bool(_BEGINNING.match(decode_text(content[:_DETECTION_BYTES]))),
    convert_html_file,
    "html 2",
    has_weak_signature=True,
)
