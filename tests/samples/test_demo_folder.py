"""The demo's documents say what they are supposed to say, in every draw the same."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evalkit.classification.schema import ClassificationOutput, DocumentType, Evidence, PresenceLevel
from evalkit.samples import write_demo_folder
from evalkit.samples.manuscript import Manuscript, parse_blocks
from evalkit.samples.pdf_drawing import draw_pdf

PAGES = {
    "adjoining_notes": 2,
    "altered_quotes": 2,
    "clinical_note": 3,
    "consent_form": 2,
    "doc2_6": 8,
    "fabricated_quote": 4,
    "faxed_packet": 6,
    "genomic_report": 4,
    "misfiled_page": 4,
    "pathology_report": 3,
    "poor_scan": 1,
    "quest_cbc": 2,
    "quest_genomic": 2,
    "radiology_report": 2,
    "requisition": 2,
    "scanned": 2,
    "segment_count": 4,
    "shares_106": 5,
    "with_blank_page": 3,
}
#: Documents of other formats than PDF, and the report that is attached to the mail.
ARRIVING = {"faxed_result": "tif", "mailed_report": "eml", "word_letter": "docx"}
ATTACHED = "colon_biopsy"
SUPPLIED = ("altered_quotes", "fabricated_quote", "quest_genomic", "segment_count", "shares_106")
FABRICATED = "BRCA1 pathogenic variant c.5266dupC detected"
ALTERED = (
    "POSITIVE: BRCA2 c.5266dupC was detected in a heterozygous state.",
    "It can exclude another variant of BRCA1, a variant of another gene, or a large deletion or duplication.",
)
ADMINISTRATIVE = ("requisition", "authorization number", "fax cover", "test request", "specimen receipt")
FURNITURE = re.compile(r"page \d+ of \d+|\bfax\b|\bmrn\b|date of birth|\bdob\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("demo")
    write_demo_folder(where)
    return where


@pytest.fixture(scope="module")
def texts(folder: Path) -> dict[str, list[str]]:
    """Each document's pages, white space made equal."""
    import pymupdf

    # Annotated: PyMuPDF's own annotations leave its constructor untyped.
    open_pdf: Callable[[Path], Any] = pymupdf.open
    found = {}
    for path in sorted(folder.glob("*.pdf")):
        with open_pdf(path) as document:
            found[path.stem] = [" ".join(document[i].get_text().split()) for i in range(document.page_count)]
    return found


def supplied(folder: Path, doc_id: str) -> ClassificationOutput:
    return ClassificationOutput.model_validate_json((folder / "classifications" / f"{doc_id}.json").read_bytes())


def evidence(classification: ClassificationOutput) -> list[tuple[int, int, Evidence]]:
    """Each quote with the first and last page of the segment that claims it."""
    return [
        (segment.start_page, segment.end_page, quote)
        for segment in classification.segments
        for presence in segment.segment_composition
        for quote in presence.top_evidence
    ]


def test_two_draws_are_equal_to_the_byte(folder: Path, tmp_path: Path) -> None:
    drawn = write_demo_folder(tmp_path)
    names = {doc_id: f"{doc_id}.{ARRIVING.get(doc_id, 'pdf')}" for doc_id in sorted({*PAGES, *ARRIVING})}
    assert [path.name for path in drawn] == [*names.values()]
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    assert files == [path.relative_to(tmp_path) for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert [file for file in files if (folder / file).read_bytes() != (tmp_path / file).read_bytes()] == []


def test_no_two_documents_are_the_same(folder: Path) -> None:
    assert len({path.read_bytes() for path in folder.glob("*.pdf")}) == len(PAGES)


def test_page_counts(texts: dict[str, list[str]]) -> None:
    assert {doc_id: len(pages) for doc_id, pages in texts.items()} == PAGES


def test_only_the_scans_and_the_blank_page_are_without_text(texts: dict[str, list[str]]) -> None:
    silent = [(doc_id, i) for doc_id, pages in texts.items() for i, page in enumerate(pages, 1) if not page]
    assert silent == [("poor_scan", 1), ("scanned", 1), ("scanned", 2), ("with_blank_page", 2)]


def test_administrative_words_stand_where_they_belong(texts: dict[str, list[str]]) -> None:
    found = {
        (doc_id, number)
        for doc_id, pages in texts.items()
        for number, page in enumerate(pages, 1)
        if any(word in page.lower() for word in ADMINISTRATIVE)
    }
    assert found == {("faxed_packet", 1), ("requisition", 1), ("requisition", 2)}


def test_a_fax_machine_printed_on_every_page(texts: dict[str, list[str]]) -> None:
    for number, page in enumerate(texts["faxed_packet"], 1):
        assert f"P. {number:02}/06" in page


def test_only_the_misfiled_page_names_another_patient(texts: dict[str, list[str]]) -> None:
    pages = texts["misfiled_page"]
    assert ["HC-502218" in page for page in pages] == [True, True, False, True]
    assert "Varga, Miriam DOB: 11/30/1972 MRN: HC-617340" in pages[2]
    assert "Page 3 of 4" in pages[2]


def test_expected_and_production_name_the_documents(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    assert expected["schema_version"] == 1
    assert list(expected["documents"]) == sorted({*PAGES, *ARRIVING, ATTACHED})
    for row in expected["documents"].values():
        assert set(row) - {"without_ocr"} == {"decision", "decision_rule", "attempts", "dominant_type", "codes"}
        assert row["codes"] == sorted(row["codes"])
    with (folder / "production.csv").open(newline="", encoding="utf-8") as file:
        production = {row["doc_id"]: row["dominant_type"] for row in csv.DictReader(file)}
    # The scans have no row: production_differs is null there.
    assert set(PAGES) - set(production) == {"poor_scan", "scanned"}
    assert set(production.values()) <= set(DocumentType)
    truth = {doc_id: row["dominant_type"] for doc_id, row in expected["documents"].items()}
    truth["quest_genomic"] = "Other"
    differing = {doc_id for doc_id, label in production.items() if label != truth[doc_id]}
    assert differing == {"doc2_6", "fabricated_quote", "quest_cbc"}


def test_which_documents_bring_a_classification(folder: Path) -> None:
    assert tuple(sorted(path.stem for path in (folder / "classifications").iterdir())) == SUPPLIED


@pytest.mark.parametrize("doc_id", SUPPLIED)
def test_supplied_classifications_are_whole(folder: Path, doc_id: str) -> None:
    classification = supplied(folder, doc_id)
    assert [segment.segment_index for segment in classification.segments] == [
        *range(1, len(classification.segments) + 1)
    ]
    pages = [p for segment in classification.segments for p in range(segment.start_page, segment.end_page + 1)]
    assert pages == [*range(1, PAGES[doc_id] + 1)]
    for segment in classification.segments:
        assert segment.segment_page_count == segment.end_page - segment.start_page + 1
        assert {presence.document_type for presence in segment.segment_composition} == set(DocumentType)
        largest = max(segment.segment_composition, key=lambda presence: presence.segment_share)
        assert segment.dominant_type == largest.document_type
        for presence in segment.segment_composition:
            assert bool(presence.top_evidence) == (presence.presence_level != PresenceLevel.NO_EVIDENCE)
    assert {entry.document_type for entry in classification.document_mixture} == set(DocumentType)
    assert sum(Decimal(str(entry.overall_share)) for entry in classification.document_mixture) == 1
    largest_share = max(classification.document_mixture, key=lambda entry: entry.overall_share)
    assert classification.dominant_type_overall == largest_share.document_type


@pytest.mark.parametrize("doc_id", SUPPLIED)
def test_mixture_is_weighted_by_pages(folder: Path, doc_id: str) -> None:
    classification = supplied(folder, doc_id)
    for entry in classification.document_mixture:
        weighted = 0.0
        for segment in classification.segments:
            shares = {presence.document_type: presence.segment_share for presence in segment.segment_composition}
            weighted += segment.segment_page_count * shares[entry.document_type] / sum(shares.values())
        assert entry.overall_share == pytest.approx(weighted / PAGES[doc_id], abs=0.0001)


@pytest.mark.parametrize("doc_id", SUPPLIED)
def test_quotes_stand_where_they_are_claimed(folder: Path, texts: dict[str, list[str]], doc_id: str) -> None:
    for start, end, quote in evidence(supplied(folder, doc_id)):
        assert start <= quote.page <= end
        assert 3 <= len(quote.snippet.split()) <= 60
        assert not FURNITURE.search(quote.snippet)
        if quote.snippet not in (FABRICATED, *ALTERED):
            assert quote.snippet in texts[doc_id][quote.page - 1]
            for anchor in quote.anchors_found:
                assert anchor in texts[doc_id][quote.page - 1]


def test_fault_of_fabricated_quote(folder: Path, texts: dict[str, list[str]]) -> None:
    (invented,) = (q for _, _, q in evidence(supplied(folder, "fabricated_quote")) if q.snippet == FABRICATED)
    assert (invented.page, invented.anchors_found) == (3, ("Variant Classification",))
    document = " ".join(texts["fabricated_quote"])
    assert not any(word in document for word in ("c.5266dupC", "BRCA1", "Variant Classification"))
    said = "Patient history reviewed. No prior genetic testing. Family history: mother with breast cancer age 52."
    assert said in texts["fabricated_quote"][2]


def test_fault_of_quest_genomic(folder: Path, texts: dict[str, list[str]]) -> None:
    classification = supplied(folder, "quest_genomic")
    assert classification.vendor_signals == ("Quest Diagnostics",)
    genomic = classification.document_mixture[0]
    assert (genomic.document_type, genomic.presence_level, genomic.confidence) == ("Genomic Report", "PRIMARY", 0.78)
    assert texts["quest_genomic"][0].startswith("Quest Diagnostics")


def test_fault_of_shares_106(folder: Path) -> None:
    first, second = supplied(folder, "shares_106").segments
    assert [(p.document_type.value, p.segment_share) for p in second.segment_composition] == [
        ("Genomic Report", 0.50),
        ("Clinical Note", 0.30),
        ("Pathology Report", 0.10),
        ("Radiology Report", 0.08),
        ("Other", 0.08),
    ]
    assert sum(p.segment_share for p in first.segment_composition) == 1


def test_fault_of_segment_count(folder: Path) -> None:
    classification = supplied(folder, "segment_count")
    assert (classification.number_of_segments, len(classification.segments)) == (3, 2)
    for segment in classification.segments:
        assert sum(Decimal(str(p.segment_share)) for p in segment.segment_composition) == 1


def test_text_that_does_not_fit_is_an_error() -> None:
    page = "\n\n".join(["A paragraph of its own."] * 60)
    manuscript = Manuscript.model_validate({"title": "long", "part": [{"organisation": "X", "pages": [page]}]})
    with pytest.raises(ValueError, match=r"page 1 of 'X' is \d+ points too long"):
        draw_pdf(manuscript)


def test_text_that_the_fonts_do_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="latin-1"):
        Manuscript.model_validate({"title": "dash", "part": [{"organisation": "X", "pages": ["a \u2014 b"]}]})


@pytest.mark.parametrize(
    ("page", "kinds"),
    [
        ("# A\n\n## B\ntext\nmore", ["title", "heading", "paragraph"]),
        ("- a\n- b\n  c\n1. d", ["item"]),
        ("| a | b |\n| c | d |", ["table"]),
        ("[x] a    [ ] b", ["checks"]),
        (": a | b\n\n: c | d", ["fields", "fields"]),
        ("! a\n  b\n\n~ c | d | e\n> f", ["callout", "signature", "small"]),
        ("", []),
    ],
)
def test_markup(page: str, kinds: list[str]) -> None:
    assert [block.kind for block in parse_blocks(page)] == kinds
