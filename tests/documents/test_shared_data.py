"""Real and broken files from outside the repository: what becomes of each."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from evalkit.documents.ingest import find_pdfs, read
from evalkit.errors import DocumentError

from .test_pdf import assert_whole

DATA = Path(__file__).parents[2].parent / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the developers' data (../shared/data) is not there")

#: An error code, or each page's status, run-length coded; ``repaired`` where the file was.
OUTCOMES = {
    "attachment__attachment.pdf": "text",
    "blank__mesh_shading_empty.pdf": "image repaired",
    "corrupt__bug1606566.pdf": "READER-NOT-PDF",
    "corrupt__bug1980958.pdf": "blank repaired",
    "corrupt__html_named.pdf": "READER-NOT-PDF",
    "corrupt__issue15590.pdf": "READER-DAMAGED",
    "corrupt__issue18986.pdf": "READER-DAMAGED",
    "corrupt__issue19484_1.pdf": "READER-DAMAGED",
    "corrupt__issue21436.pdf": "blank repaired",
    "corrupt__issue5291.pdf": "text repaired",
    "corrupt__issue6069.pdf": "text repaired",
    "corrupt__issue9105_other.pdf": "READER-DAMAGED",
    "corrupt__poppler-91414-0-53.pdf": "text repaired",
    "corrupt__poppler-91414-0-54.pdf": "text repaired",
    "empty__zero_bytes.pdf": "READER-EMPTY",
    "encrypted__issue17215.pdf": "text",
    "encrypted__issue21579.pdf": "READER-ENCRYPTED",
    "encrypted__issue3371.pdf": "READER-ENCRYPTED",
    "encrypted__issue6010_2.pdf": "READER-ENCRYPTED",
    "encrypted__issue7665.pdf": "text",
    "encrypted__pr6531_1.pdf": "READER-ENCRYPTED",
    "encrypted__pr6531_2.pdf": "READER-ENCRYPTED",
    "fonts__ArabicCIDTrueType.pdf": "text",
    "fonts__SimFang-variant.pdf": "text",
    "fonts__noembed-eucjp.pdf": "text",
    "fonts__recursiveCompositGlyf.pdf": "failed",
    "fonts__simpletype3font.pdf": "text",
    "forms__annotation-text-widget.pdf": "text",
    "forms__bug1815476.pdf": "text",
    "manypages__labelled_pages.pdf": "11 blank",
    "manypages__page_with_number.pdf": "17 text",
    "manypages__standard_fonts.pdf": "14 text",
    "notext__decodeACSuccessive.pdf": "image",
    "notext__issue11878_reduced.pdf": "10 image",
    "notext__issue4246.pdf": "image",
    "notext__jp2k-resetprob.pdf": "image",
    "notext__two_pages.pdf": "2 image",
    "rotated__issue14415.pdf": "image",
    "rotated__issue16278.pdf": "blank",
    "rotated__issue6019.pdf": "text",
    "truncated__half.pdf": "READER-DAMAGED",
    "truncated__tail_zeroed.pdf": "READER-DAMAGED",
    "xfa__xfa_issue14315.pdf": "text",
}


def outcome(path: Path) -> str:
    try:
        bundle = read(path, doc_id=path.stem, timestamp="2026-01-02T03:04:05Z")
    except DocumentError as error:
        return error.code
    assert_whole(bundle)
    statuses = {page.status.value for page in bundle.pages}
    count = f"{bundle.total_pages} " if bundle.total_pages > 1 else ""
    return f"{count}{'+'.join(sorted(statuses))}{' repaired' if bundle.is_repaired else ''}"


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcome(name: str) -> None:
    started = time.monotonic()
    assert outcome(DATA / "nasty" / name) == OUTCOMES[name]
    assert time.monotonic() - started < 30


def test_the_table_is_complete() -> None:
    assert {path.name for path in find_pdfs([DATA / "nasty"])} == set(OUTCOMES)


@pytest.mark.parametrize("folder", ["clinical_pdf", "tax", "bank"])
def test_real_documents_keep_the_promises(folder: str) -> None:
    for path in find_pdfs([DATA / folder])[::3]:
        assert_whole(read(path, doc_id=path.stem, timestamp="2026-01-02T03:04:05Z"))


def test_scans_are_told_from_text() -> None:
    folder = DATA / "clinical_pdf"
    for label in map(json.loads, (folder / "labels.jsonl").read_text(encoding="utf-8").splitlines()):
        path = next(folder.rglob(Path(label["file"]).name))
        bundle = read(path, doc_id=path.stem, timestamp="")
        assert bundle.total_pages == label["pages"]
        assert {page.status.value for page in bundle.pages} == ({"image"} if label.get("scan") else {"text"})
