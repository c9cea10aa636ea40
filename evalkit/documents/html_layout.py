"""HTML laid out as a PDF: visible content only, nothing loaded from a network."""

import base64
import binascii
import io
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import lxml.html
from lxml import etree

from evalkit.core.package_tables import PatternTable, load_package_table
from evalkit.documents.input_format import build_damaged_error, build_empty_error, build_too_large_error, serialise_pdf
from evalkit.documents.mupdf import MAX_PAGES, load_pymupdf
from evalkit.documents.picture import open_picture
from evalkit.errors import DocumentError

#: Size and margin of a page in points (A4, 16 mm).
_PAGE_WIDTH, _PAGE_HEIGHT, _MARGIN = 595, 842, 45
#: The widest page in points, to which a page with a wide table grows; PDF allows no more.
_MAX_PAGE_WIDTH = 14_400
_STYLE = (
    "body{font-family:sans-serif;font-size:10pt;line-height:1.3}"
    "p,li,div{overflow-wrap:break-word}"
    "td,th,td *,th *{overflow-wrap:normal}"  # else columns become narrower than their words
    ".unbroken{white-space:nowrap}"
    ".page-break{page-break-before:always}"
    "table{border-collapse:collapse}"
    "td,th{border:1px solid #777;padding:2px 5px;text-align:left;vertical-align:top}"
    "pre{font-family:monospace;white-space:pre-wrap;overflow-wrap:break-word}"
)
#: Patterns of ``html_layout.toml`` by name.
PATTERNS = PatternTable("evalkit.documents", "html_layout.toml")
#: Deeper elements are laid out as if they were at this depth, because MuPDF shows nothing of them.
_MAX_DEPTH = 60
#: A smaller share of the characters than this on the pages means that the layout lost some.
_MIN_LAID_OUT_SHARE = 0.98


@cache
def _load_words(table: str, name: str) -> frozenset[str]:
    return frozenset(load_package_table("evalkit.documents", "html_layout.toml")[table][name].split())


def convert_html_to_pdf(html: str, name: str, *, obeys_styles: bool = True) -> bytes:
    """Lay out untrusted HTML as a PDF; ``name`` is the file's name for errors.

    ``obeys_styles`` is False to show what only style sheets hide. Scripts, hidden elements, and everything that is not in ``html`` itself is left out. DocumentError: READER-EMPTY,
    READER-DAMAGED, READER-TOO-LARGE, READER-TOO-MANY-PAGES.
    """
    try:
        root = lxml.html.document_fromstring(
            PATTERNS["xml_declaration"].sub("", html),
            parser=lxml.html.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=True),
        )
    except (etree.ParserError, ValueError):
        raise build_empty_error(name) from None
    styles = "".join(_list_display_rules(root)) if obeys_styles else ""
    _keep_visible_elements(root, name)
    return lay_out_html(root, name, styles)


def lay_out_html(root: Any, name: str, styles: str = "") -> bytes:
    """Lay out a cleaned lxml tree of HTML on A4 pages, wider for wide tables.

    ``styles`` is CSS that hides elements. Errors as ``convert_html_to_pdf``.
    """
    if not root.text_content().strip() and root.find(".//img") is None:
        raise build_empty_error(name)
    for caption in root.findall(".//table/caption"):  # MuPDF would set it below the table
        caption.tag = "p"
        caption.getparent().addprevious(caption)
    # MuPDF decodes entities twice, and breaks lines after slashes and hyphens, where units and numbers must be whole.
    markup = lxml.html.tostring(root, encoding="unicode").replace("&amp;", "&amp;amp;")
    markup = PATTERNS["tag_or_breakable_word"].sub(lambda m: m[1] or f'<span class="unbroken">{m[2]}</span>', markup)
    document, needed_width = _draw_pages(markup, styles, name, _PAGE_WIDTH)
    if needed_width > _PAGE_WIDTH + 1:
        if needed_width > _MAX_PAGE_WIDTH:
            raise build_too_large_error(name, "the widest page that a PDF can have")
        document, _ = _draw_pages(markup, styles, name, needed_width)
    if not styles:
        _check_nothing_lost(root, document, name)
    document.subset_fonts()
    return serialise_pdf(document)


def _draw_pages(markup: str, styles: str, name: str, width: float) -> tuple[Any, float]:
    """Return the laid out PDF, and the width in points that its widest line needs."""
    pymupdf, buffer = load_pymupdf(), io.BytesIO()
    try:
        story, writer = pymupdf.Story(html=markup, user_css=_STYLE + styles), pymupdf.DocumentWriter(buffer)
        needed_width, has_more, page_count = width, True, 0
        while has_more and page_count <= MAX_PAGES:
            device = writer.begin_page(pymupdf.Rect(0, 0, width, _PAGE_HEIGHT))
            has_more, filled = story.place(pymupdf.Rect(_MARGIN, _MARGIN, width - _MARGIN, _PAGE_HEIGHT - _MARGIN))
            story.draw(device)
            writer.end_page()
            needed_width = max(needed_width, filled[2] + _MARGIN)
            page_count += 1
        writer.close()
        if not has_more:
            return pymupdf.open(stream=buffer.getvalue(), filetype="pdf"), needed_width
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base, and may quote the document: not chained
        raise build_damaged_error(name) from None
    raise build_too_large_error(name, f"{MAX_PAGES:,} pages")


def _check_nothing_lost(root: Any, document: Any, name: str) -> None:
    """Raise DocumentError READER-LAYOUT if characters of the HTML are not on pages."""
    expected_count = _count_characters(root.text_content())
    laid_out_count = sum(_count_characters(page.get_text()) for page in document)
    if laid_out_count < _MIN_LAID_OUT_SHARE * expected_count:
        raise DocumentError(
            f"part of the text of {name} could not be laid out on pages",
            code="READER-LAYOUT",
            remedy="Open the file in the program it came from and save it as PDF.",
        )


def _count_characters(text: str) -> int:
    """Count the characters that are no white space; a ligature counts as its letters."""
    return sum(map(len, unicodedata.normalize("NFKC", text).split()))


def _list_display_rules(root: Any) -> Iterator[str]:
    """Iterate over the CSS rules that hide or show elements, and nothing else."""
    for style in root.iter("style"):
        for selector, declarations in PATTERNS["css_rule"].findall(
            PATTERNS["css_comment_or_condition"].sub("", style.text or "")
        ):
            for keyword, setting in PATTERNS["css_display"].findall(declarations):
                is_hidden = setting.lower() in ("none", "hidden", "collapse")
                if is_hidden or keyword.lower() == "display":
                    yield f"{selector.strip()}{{display:{'none' if is_hidden else setting}}}"


def _keep_visible_elements(root: Any, name: str) -> None:
    """Reduce a parsed page to elements and attributes that are laid out, in place."""
    _drop_hidden_text(root)
    for element in list(root.iter(etree.Element)):
        tag, attributes = str(element.tag), element.attrib
        if element.getparent() is None:
            continue
        is_hidden = "hidden" in attributes or PATTERNS["hiding_style"].search(attributes.get("style", ""))
        if tag in _load_words("tags", "unseen") or is_hidden:
            element.drop_tree()
        elif tag in _ELEMENT_WRITERS:
            _ELEMENT_WRITERS[tag](element, name)
        elif tag in _load_words("tags", "blocks"):
            element.tag = "div"
        elif tag not in _load_words("tags", "laid_out"):
            element.drop_tag()
        for attribute in set(attributes) - _load_words("attributes", "kept"):
            del attributes[attribute]
    for element in [element for element in root.iter() if len(list(element.iterancestors())) > _MAX_DEPTH]:
        element.drop_tag()


def _drop_hidden_text(root: Any) -> None:
    """Drop text that its own or an inherited style hides, in place."""
    pending = [(root, False, False)]
    while pending:
        element, is_invisible, is_tiny = pending.pop()
        for declaration in PATTERNS["inherited_style"].finditer(element.get("style", "")):
            if declaration["visibility"]:
                is_invisible = declaration["visibility"].lower() in ("hidden", "collapse")
            else:
                # A share of nothing is nothing.
                is_tiny = not declaration["size"].strip("0.") or (is_tiny and bool(declaration["unit"]))
        if is_invisible or is_tiny:
            element.text = None
        for child in element:
            if is_invisible or is_tiny:
                child.tail = None
            pending.append((child, is_invisible, is_tiny))


def _keep_chosen_options(select: Any, _name: str) -> None:
    options = list(select.iter("option"))
    chosen = [option for option in options if "selected" in option.attrib]
    if not chosen and "multiple" not in select.attrib:
        chosen = options[:1]  # as a browser shows it
    for option in options:
        if option not in chosen:
            option.drop_tree()
    select.drop_tag()


def _keep_embedded_picture(element: Any, name: str) -> None:
    """Keep an ``img`` with its picture in the page; describe others in their place."""
    try:
        head, _, body = element.get("src", "").partition(";base64,")
        content = base64.b64decode(body, validate=False) if head.startswith("data:image/") else b""
        open_picture(content, name)
    except (binascii.Error, DocumentError):
        element.tail = f" {element.get('alt') or ''} {element.tail or ''}"
        element.drop_tree()


def _write_input_as_text(element: Any, _name: str) -> None:
    kind = element.get("type", "text").lower()
    if kind in ("checkbox", "radio"):
        text = "☒" if "checked" in element.attrib else "☐"
    else:
        text = "" if kind in ("hidden", "password") else element.get("value", "")
    element.tail = f" {text} {element.tail or ''}"
    element.drop_tree()


#: Functions that write elements as text or pictures; they take the element and the file's name for errors.
_ELEMENT_WRITERS: Mapping[str, Callable[[Any, str], None]] = {
    "img": _keep_embedded_picture,
    "input": _write_input_as_text,
    "select": _keep_chosen_options,
}
