"""Word files (DOCX): all text that would be printed, from headers to notes."""

import base64
import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from evalkit.documents.html_layout import convert_html_to_pdf
from evalkit.documents.input_format import (
    ConvertedFile,
    build_damaged_error,
    build_too_large_error,
    define_converted_format,
)
from evalkit.documents.safe_xml import parse_xml
from evalkit.errors import DocumentError

#: The largest unpacked part of a Word file that is read, in bytes.
_MAX_PART_BYTES = 64 * 1024 * 1024
#: Elements without anything that is printed: deleted text, field codes, settings, and copies for old programs.
_UNSEEN_TAGS = frozenset(
    ("del", "moveFrom", "delText", "instrText", "delInstrText", "sectPr", "tblGrid", "sdtPr", "sdtEndPr", "docPr")
)
_SHORT_TEXTS = {"tab": " \u2003", "noBreakHyphen": "-", "cr": "<br>", "ptab": " \u2003"}
#: Signs by font and code; the other signs of Symbol, which change a meaning, become U+FFFD, those of other fonts bullets.
_SIGNS_BY_FONT = {
    "Symbol": dict(
        zip(
            [
                "A3",
                "B3",
                "B1",
                "B0",
                "B4",
                "B8",
                "B9",
                "BB",
                "A5",
                "B7",
                "AC",
                "AD",
                "AE",
                "AF",
                "A2",
                "61",
                "62",
                "63",
                "64",
                "65",
                "67",
                "6C",
                "6D",
                "6E",
                "70",
                "73",
                "74",
                "44",
                "53",
                "57",
            ],
            "≤≥±°×÷≠≈∞•←↑→↓′αβχδεγλμνπστΔΣΩ",
            strict=True,
        )
    ),
    "Wingdings": dict(zip(["FE", "FD", "A8", "6F", "FC", "E0"], "☒☒☐☐✓→", strict=True)),
}
_CHUNK_NOTE = "[A part of this file that cannot be shown]"
_PICTURE_NOTE = "[A picture that cannot be shown]"
_PICTURE_KINDS = {
    b"\x89PNG": "png",
    b"\xff\xd8\xff\xe0": "jpeg",
    b"\xff\xd8\xff\xe1": "jpeg",
    b"\xff\xd8\xff\xdb": "jpeg",
}
#: English Metric Units, in which Word measures pictures, a pixel of CSS.
_EMU_PER_PIXEL = 9525


@dataclass
class _WordFile:
    """Archive of a Word file, and what of it is damaged."""

    archive: zipfile.ZipFile
    name: str
    is_damaged: bool = False
    note_references: dict[str, list[str]] = field(default_factory=lambda: {"footnote": [], "endnote": []})
    """IDs of the notes that the text refers to, in order, by the kind of note."""

    def read(self, part_name: str) -> bytes:
        """Return a part's bytes. DocumentError: READER-DAMAGED, -ENCRYPTED, -TOO-LARGE."""
        try:
            with self.archive.open(part_name) as part:
                content = part.read(_MAX_PART_BYTES + 1)
        except RuntimeError:
            raise DocumentError(
                f"{self.name} is locked with a password",
                code="READER-ENCRYPTED",
                remedy="Open the file with its password, save a copy without a password, and use the copy.",
            ) from None
        except (KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError):
            raise build_damaged_error(self.name) from None
        if len(content) > _MAX_PART_BYTES:
            raise build_too_large_error(self.name, f"{_MAX_PART_BYTES // 1024**2} MB")
        return content

    def parse(self, part_name: str) -> Any:
        """Return the root element of a part; errors as ``read``, and READER-UNSAFE."""
        root, is_damaged = parse_xml(self.read(part_name), self.name)
        self.is_damaged |= is_damaged
        return root

    def read_targets(self, part_name: str) -> dict[str, tuple[str, str]]:
        """Return kind and name of the parts that a part refers to, by the reference's ID."""
        folder, base_name = posixpath.split(part_name)
        relations_name = posixpath.join(folder, "_rels", f"{base_name}.rels")
        if relations_name not in self.archive.namelist():
            return {}
        return {
            relation.get("Id", ""): (
                posixpath.basename(relation.get("Type", "")),
                posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/"),
            )
            for relation in self.parse(relations_name).iter("Relationship")
            if relation.get("TargetMode") != "External"
        }


@dataclass(frozen=True)
class _Part:
    """A part of a Word file, rendered as HTML element by element."""

    file: _WordFile
    targets: Mapping[str, tuple[str, str]]

    def render(self, element: Any) -> str:
        """Return the HTML of an element and of all in it."""
        tag = element.tag
        if not isinstance(tag, str) or tag in _UNSEEN_TAGS:
            return ""
        if tag in _SHORT_TEXTS:
            return _SHORT_TEXTS[tag]
        return _RENDERERS.get(tag, _Part.render_children)(self, element)

    def render_children(self, element: Any) -> str:
        return "".join(map(self.render, element))

    def render_run(self, element: Any) -> str:
        if _is_on(element, "rPr/vanish"):
            return ""
        html = self.render_children(element)
        tags = [tag for tag, path in (("b", "rPr/b"), ("i", "rPr/i"), ("s", "rPr/strike")) if _is_on(element, path)]
        tags += {"superscript": ["sup"], "subscript": ["sub"]}.get(_read(element.find("rPr/vertAlign"), "val"), [])
        return "".join(f"<{tag}>" for tag in tags) + html + "".join(f"</{tag}>" for tag in reversed(tags))

    def render_paragraph(self, element: Any) -> str:
        if element.find("pPr/rPr/del") is not None and not element.findall(".//t"):
            return ""
        style = _read(element.find("pPr/pStyle"), "val").lower()
        tag = (
            "h1" if style == "title" else f"h{style[7:8]}" if style[:7] == "heading" and style[7:8] in "123456" else "p"
        )
        bullet = "• " if element.find("pPr/numPr") is not None else ""
        page_break = ' class="page-break"' if _is_on(element, "pPr/pageBreakBefore") else ""
        return f"<{tag}{page_break}>{bullet}{self.render_children(element)}</{tag}>"

    def render_symbol(self, element: Any) -> str:
        font, code = element.get("font", ""), element.get("char", "").upper()[-2:]
        if font == "Symbol" and re.fullmatch("[23][0-9A-F]", code):
            return escape(chr(int(code, 16)))  # digits and punctuation have their usual codes
        return _SIGNS_BY_FONT.get(font, _SIGNS_BY_FONT["Wingdings"]).get(code, "\ufffd" if font == "Symbol" else "•")

    def render_chunk(self, _element: Any) -> str:
        """Note a file of another format within the text, and that it is not read."""
        self.file.is_damaged = True
        return f"<p>{_CHUNK_NOTE}</p>"

    def render_note_reference(self, element: Any) -> str:
        references = self.file.note_references[element.tag.removesuffix("Reference")]
        references.append(element.get("id", ""))
        return f" <sup>{len(references)}</sup>"

    def render_drawing(self, element: Any) -> str:
        extent = element.find(".//extent")
        width = int(_read(extent, "cx") or 0) // _EMU_PER_PIXEL if _read(extent, "cx").isdecimal() else 0
        html = self.render_children(element)
        return html.replace("<img ", f'<img width="{width}" ') if width else html

    def render_picture(self, element: Any) -> str:
        """Return an embedded picture, or a note in its place if it cannot be shown."""
        _, target = self.targets.get(element.get("embed") or element.get("id") or "", ("", ""))
        content = self.file.read(target) if target in self.file.archive.namelist() else b""
        kind = next((kind for mark, kind in _PICTURE_KINDS.items() if content.startswith(mark)), None)
        if kind is None:
            return f" {_PICTURE_NOTE} "
        return f'<img alt="{_PICTURE_NOTE}" src="data:image/{kind};base64,{base64.b64encode(content).decode()}">'


_RENDERERS: Mapping[str, Callable[[_Part, Any], str]] = {
    "t": lambda _part, element: escape(element.text or ""),
    "r": _Part.render_run,
    "p": _Part.render_paragraph,
    "br": lambda _part, element: '<div class="page-break"></div>' if element.get("type") == "page" else "<br>",
    "sym": _Part.render_symbol,
    "checkBox": lambda _part, element: (
        "☒ " if _is_on(element, "default" if element.find("checked") is None else "checked") else "☐ "
    ),
    "f": lambda part, element: (
        f" {part.render_children(element.find('num'))}/{part.render_children(element.find('den'))} "
    ),
    "sSup": lambda part, element: (
        f"{part.render_children(element.find('e'))}^{part.render_children(element.find('sup'))}"
    ),
    "altChunk": _Part.render_chunk,
    "tbl": lambda part, element: f"<table>{part.render_children(element)}</table>",
    "tr": lambda part, element: (
        "" if element.find("trPr/del") is not None else f"<tr>{part.render_children(element)}</tr>"
    ),
    "tc": lambda part, element: (
        f'<td colspan="{escape(_read(element.find("tcPr/gridSpan"), "val") or "1")}">{part.render_children(element)}</td>'
    ),
    # The first alternative that shows something.
    "AlternateContent": lambda part, element: next(filter(None, map(part.render_children, element)), ""),
    "txbxContent": lambda part, element: f"<div>{part.render_children(element)}</div>",
    "footnoteReference": _Part.render_note_reference,
    "endnoteReference": _Part.render_note_reference,
    "drawing": _Part.render_drawing,
    "blip": _Part.render_picture,
    "imagedata": _Part.render_picture,
}


def convert_docx(content: bytes, name: str) -> ConvertedFile:
    """Convert a Word file to a PDF: headers, body, notes, footers.

    Deleted and hidden text is left out. DocumentError: READER-DAMAGED, READER-EMPTY, READER-ENCRYPTED,
    READER-TOO-LARGE, READER-UNSAFE.
    """
    try:
        word_file = _WordFile(zipfile.ZipFile(io.BytesIO(content)), name)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise build_damaged_error(name) from None
    main_name = next((target for kind, target in word_file.read_targets("").values() if kind == "officeDocument"), "")
    targets, document = word_file.read_targets(main_name), word_file.parse(main_name)
    main_part = _Part(word_file, targets)
    try:
        body = main_part.render_children(document)
        headers, footers = (
            [_render_part(word_file, targets, reference) for reference in _list_references(document, kind)]
            for kind in ("header", "footer")
        )
        notes = [_render_notes(word_file, targets, kind) for kind in word_file.note_references]
    except RecursionError:
        raise build_damaged_error(name) from None
    html = "".join((*headers, body, *notes, *footers))
    return ConvertedFile(convert_html_to_pdf(f"<body>{html}</body>", name), word_file.is_damaged)


FORMAT = define_converted_format(
    "DOCX",
    (".docx", ".docm", ".dotx"),
    lambda content: content.startswith(b"PK\3\4") and b"word/document" in content,
    convert_docx,
    "docx 2",
)


def _list_references(document: Any, kind: str) -> list[str]:
    """List the IDs of the headers or footers that are printed, each once."""
    return list(
        dict.fromkeys(
            reference.get("id", "")
            for section in document.iter("sectPr")
            for reference in section.iterfind(f"{kind}Reference")
            if reference.get("type") != "first" or _is_on(section, "titlePg")
        )
    )


def _render_part(word_file: _WordFile, targets: Mapping[str, tuple[str, str]], reference: str) -> str:
    part_name = targets.get(reference, ("", ""))[1]
    if part_name not in word_file.archive.namelist():
        word_file.is_damaged = True
        return ""
    return _Part(word_file, word_file.read_targets(part_name)).render_children(word_file.parse(part_name))


def _render_notes(word_file: _WordFile, targets: Mapping[str, tuple[str, str]], kind: str) -> str:
    """Return the notes of a kind that the text refers to, each with its number."""
    references = word_file.note_references[kind]
    part_name = next((target for target_kind, target in targets.values() if target_kind == f"{kind}s"), "")
    if not references or part_name not in word_file.archive.namelist():
        word_file.is_damaged |= bool(references)
        return ""
    notes = {note.get("id"): note for note in word_file.parse(part_name).iter(kind)}
    part = _Part(word_file, word_file.read_targets(part_name))
    return "".join(
        f"<div><sup>{number}</sup> {part.render_children(notes[reference])}</div>"
        for number, reference in enumerate(references, start=1)
        if reference in notes
    )


def _read(element: Any, attribute: str) -> str:
    """Return an attribute of an element; "" if there is no such element or attribute."""
    return "" if element is None else str(element.get(attribute, ""))


def _is_on(element: Any, path: str) -> bool:
    """Return True if a switch such as ``rPr/vanish`` is on."""
    switch = element.find(path)
    return switch is not None and switch.get("val", "true").lower() not in ("0", "false", "off")
