"""A claimed value is proven on the page or it is none."""

from __future__ import annotations

import pytest
from builders import document, page, scanned_page

from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.extraction.field_template import TemplateField
from evalkit.extraction.value_grounding import FieldClaim, ground_claim
from evalkit.grounding import QuoteLocator
from evalkit.issue import Issue, IssueSeverity, QuoteVerdict

WAGES = TemplateField(name="wages", description="Wages", format="currency")
NAME = TemplateField(name="name", description="Employer")
SIGNED = TemplateField(name="signed", description="Date", format="date")


def prove(
    claim: FieldClaim, field: TemplateField, bundle: DocumentBundle, pages: tuple[int, ...] = (1,)
) -> tuple[FieldValue, Issue | None]:
    return ground_claim(claim, field, bundle, QuoteLocator(bundle), pages, "extractor")


@pytest.mark.parametrize(
    ("text", "field", "value", "kept", "raw"),
    [
        ("Wages 24,410.00 and tips", WAGES, "24410.00", "24410.00", "24,410.00"),
        ("Wages $24,410 and tips", WAGES, "24410", "24410.00", "$24,410"),
        ("Lost (1,200.50).", WAGES, "-1200.50", "-1200.50", "(1,200.50)"),
        ("Signed February 1, 2025.", SIGNED, "2025-02-01", "2025-02-01", "February 1, 2025"),
        ("Employer NORTH 312 Inc.", NAME, "North 312", "North 312", "NORTH 312"),
    ],
)
def test_any_writing_of_the_value_proves_it(text: str, field: TemplateField, value: str, kept: str, raw: str) -> None:
    found = prove(FieldClaim(value), field, document(text))[0]
    assert (found.status, found.value, found.raw, found.page) == (FieldStatus.FOUND, kept, raw, 1)
    assert found.quote == text
    assert len(found.boxes) == 1


@pytest.mark.parametrize("value", ["24,411.00", "24.41", "4,410.00", "24,41"])
def test_what_is_not_on_the_page_is_not_a_value(value: str) -> None:
    field_value, issue = prove(FieldClaim(value, raw=f"Wages {value}"), WAGES, document("Wages 24,410.00 and tips"))
    assert (field_value.status, field_value.value) == (FieldStatus.NOT_PRESENT, None)
    assert issue is not None
    assert (issue.code, issue.severity) == ("EXTRACTION-NOT-ON-PAGE", IssueSeverity.BLOCKER)
    assert issue.location == "wages"


def test_the_issue_tells_the_typed_difference() -> None:
    _, issue = prove(
        FieldClaim("24,411.00", raw="Wages 24,411.00 and tips"), WAGES, document("Wages 24,410.00 and tips")
    )
    assert issue is not None
    assert issue.verdict is QuoteVerdict.ALTERED
    assert "24,410.00" in (issue.difference or "")


def test_a_misread_sign_on_a_recognised_page_is_a_doubt() -> None:
    bundle = document(page(1, "Wages 24,410.00 and tips", status="ocr"))
    field_value, issue = prove(FieldClaim("24,418.00", raw="Wages 24,418.00 and tips"), WAGES, bundle)
    assert field_value.status is FieldStatus.AMBIGUOUS
    assert field_value.value is None
    assert issue is not None
    assert issue.severity is IssueSeverity.MAJOR


@pytest.mark.parametrize(("second", "candidates"), [("24,470.00", ("24410.00", "24470.00")), ("", ())])
def test_a_value_of_a_doubtful_word_is_ambiguous(second: str, candidates: tuple[str, ...]) -> None:
    bundle = document(scanned_page(1, "Wages 24,410.00 and tips 13.00", {"24,410.00": second}))
    field_value, issue = prove(FieldClaim("24,410.00", raw="Wages 24,410.00 and tips"), WAGES, bundle)
    assert (field_value.status, field_value.value, issue) == (FieldStatus.AMBIGUOUS, "24410.00", None)
    assert field_value.candidates == candidates
    assert prove(FieldClaim("13.00"), WAGES, bundle)[0].is_found


def test_the_quoted_passage_says_which_of_two_equal_values_it_is() -> None:
    bundle = document("Wages 24,410.00\nTips 24,410.00")
    found = prove(FieldClaim("24,410.00", raw="Tips 24,410.00"), WAGES, bundle)[0]
    assert found.quote == "Tips 24,410.00"


def test_pages_of_another_document_prove_nothing() -> None:
    field_value, issue = prove(FieldClaim("24,410.00"), WAGES, document("Nothing here", "Wages 24,410.00"), (1,))
    assert field_value.value is None
    assert "outside this document" in (issue.message if issue else "")


@pytest.mark.parametrize(("status", "found"), [("ocr", True), ("text", False)])
def test_letters_are_misread_digits_on_recognised_pages_only(status: str, found: bool) -> None:
    bundle = document(page(1, "Wages 24,4l0.OO and tips", status=status))
    field_value, _ = prove(FieldClaim("24,410.00"), WAGES, bundle)
    assert field_value.is_found is found
    assert field_value.value == ("24410.00" if found else None)


def test_the_lines_of_an_address_are_proven_one_by_one() -> None:
    bundle = document("NORTH 312\n24,410.00\n151 N Market Street\n1,513.42\nWooster OH 44691")
    claim = FieldClaim("NORTH 312, 151 N Market Street, Wooster OH 44691")
    field_value, _ = prove(claim, NAME, bundle)
    assert field_value.raw == "NORTH 312\n151 N Market Street\nWooster OH 44691"
    assert len(field_value.boxes) == 3
    assert prove(FieldClaim("NORTH 312, 151 S Market Street"), NAME, bundle)[0].value is None


@pytest.mark.parametrize("value", [None, "", "  "])
def test_no_value_is_not_present_and_no_issue(value: str | None) -> None:
    field_value, issue = prove(FieldClaim(value), WAGES, document("Wages 24,410.00"))
    assert (field_value.status, issue) == (FieldStatus.NOT_PRESENT, None)


def test_a_value_in_the_wrong_format_keeps_its_words() -> None:
    found = prove(FieldClaim("$-"), WAGES, document("Wages $- and tips"))[0]
    assert (found.status, found.value) == (FieldStatus.FOUND, "$-")
