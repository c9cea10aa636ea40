"""Writer of the demo folder: documents, answers, labels, expected decisions."""

import io
import json
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import EmailMessage
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from PIL import Image

from evalkit.samples.manuscript import Manuscript, ManuscriptBlock, parse_blocks
from evalkit.samples.pdf_drawing import draw_pdf

#: Dots per inch of a fax in fine mode, across and down.
_FAX_DPI = (204, 196)
_DOCX_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>',
}
_WORD_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
#: The same time for every file in a Word document: a clock would make two draws differ.
_ZIP_TIME = (2025, 1, 1, 0, 0, 0)


def draw_file(manuscript: Manuscript) -> bytes:
    """Draw a manuscript in its file format. ValueError if a page's text is too long."""
    if manuscript.saved_as == "docx":
        return _write_docx(manuscript)
    pdf = draw_pdf(manuscript)
    if manuscript.saved_as == "tif":
        return _draw_fax(pdf)
    return _write_mail(manuscript, pdf) if manuscript.saved_as == "eml" else pdf


def _draw_fax(pdf: bytes) -> bytes:
    import pymupdf

    with pymupdf.open(stream=pdf, filetype="pdf") as document:  # type: ignore[no-untyped-call]
        matrix = pymupdf.Matrix(*(dpi / 72 for dpi in _FAX_DPI))  # type: ignore[no-untyped-call]
        pixmaps = [page.get_pixmap(matrix=matrix, colorspace=pymupdf.csGRAY) for page in document]
    images = [
        Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples).point(lambda grey: 255 * (grey > 160), "1")
        for pixmap in pixmaps
    ]
    buffer = io.BytesIO()
    images[0].save(buffer, "TIFF", compression="group4", dpi=_FAX_DPI, save_all=True, append_images=images[1:])
    return buffer.getvalue()


def _write_mail(manuscript: Manuscript, pdf: bytes) -> bytes:
    mail = EmailMessage()
    for header, text in manuscript.mail.items():
        if header not in ("body", "attachment"):
            mail[header] = text
    mail.set_content(manuscript.mail["body"])
    mail.add_attachment(pdf, maintype="application", subtype="pdf", filename=manuscript.mail["attachment"])
    mail.set_boundary("evalkit-samples")
    return mail.as_bytes()


def _write_docx(manuscript: Manuscript) -> bytes:
    paragraphs = []
    for part in manuscript.part:
        paragraphs += [_format_paragraph(line) for line in (part.organisation, *part.address)]
        paragraphs += [_format_paragraph(f"{label}: {text}") for label, text in part.patient]
        paragraphs += [_format_block(block) for page in part.pages for block in parse_blocks(page)]
    document = f'<w:document xmlns:w="{_WORD_NAMESPACE}"><w:body>{"".join(paragraphs)}</w:body></w:document>'
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, xml in (*_DOCX_PARTS.items(), ("word/document.xml", document)):
            archive.writestr(zipfile.ZipInfo(name, _ZIP_TIME), f'<?xml version="1.0" encoding="UTF-8"?>{xml}')
    return buffer.getvalue()


def _format_block(block: ManuscriptBlock) -> str:
    if block.kind == "table":
        rows = ("".join(f"<w:tc>{_format_paragraph(cell)}</w:tc>" for cell in row) for row in block.cells)
        return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    is_bold = block.kind in ("title", "heading")
    return "".join(_format_paragraph(line.replace("**", ""), is_bold=is_bold) for line in block.lines)


def _format_paragraph(text: str, *, is_bold: bool = False) -> str:
    style = "<w:rPr><w:b/></w:rPr>" * is_bold
    return f'<w:p><w:r>{style}<w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


EXPECTED_FILE = "expected.toml"
PRODUCTION_FILE = "production.csv"
TRUTH_FILE = "truth.csv"
CLASSIFICATIONS_FOLDER = "classifications"


def write_demo_folder(folder: Path) -> list[Path]:
    """Write the demo's files into a folder; return the paths of the documents, sorted.

    The folder is created if it is missing. Files: ``{doc_id}.pdf`` or another ending, for some documents
    ``classifications/{doc_id}.json``, ``expected.json``, ``production.csv``, and the true labels in ``truth.csv``.
    Every call writes the same bytes.
    """
    (folder / CLASSIFICATIONS_FOLDER).mkdir(parents=True, exist_ok=True)
    content_folder = files("evalkit.samples") / "content"
    document_paths: list[Path] = []
    for doc_id, manuscript in read_manuscripts(content_folder):
        path = folder / f"{doc_id}.{manuscript.saved_as}"
        path.write_bytes(draw_file(manuscript))
        document_paths.append(path)
    for classification_file in (content_folder / CLASSIFICATIONS_FOLDER).iterdir():
        (folder / CLASSIFICATIONS_FOLDER / classification_file.name).write_bytes(classification_file.read_bytes())
    for table_name in (PRODUCTION_FILE, TRUTH_FILE):
        (folder / table_name).write_bytes((content_folder / table_name).read_bytes())
    # TOML has no null: a document of unknown type has no key "dominant_type".
    rows = tomllib.loads((content_folder / EXPECTED_FILE).read_text("utf-8")).items()
    expected_json = {"schema_version": 1, "documents": {doc_id: _add_null_dominant_type(row) for doc_id, row in rows}}
    (folder / "expected.json").write_text(json.dumps(expected_json, indent=2, sort_keys=True) + "\n", "utf-8")
    return document_paths


def _add_null_dominant_type(row: dict[str, Any]) -> dict[str, Any]:
    return {"dominant_type": None} | {
        key: _add_null_dominant_type(value) if isinstance(value, dict) else value for key, value in row.items()
    }


def read_manuscripts(content_folder: Traversable) -> Iterator[tuple[str, Manuscript]]:
    """Yield (doc_id, manuscript) of each document in the folder, sorted by doc_id."""
    for file in sorted(content_folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml") and file.name != EXPECTED_FILE:
            yield file.name.removesuffix(".toml"), Manuscript.parse_toml(file.read_text("utf-8"))
