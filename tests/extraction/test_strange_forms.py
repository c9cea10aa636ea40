"""Tax forms in layouts of payroll makers, banks and brokers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pymupdf
import pytest

from evalkit.documents.readers import read_document
from evalkit.extraction.extraction_schema import Extraction
from evalkit.extraction.form_filling import FormFieldExtractor
from evalkit.llm.embedded import EmbeddedModel

HEAD = (
    (40, 40, "2023 Form 1099-INT Interest Income"),
    (40, 70, "Old Ferry Trust Company"),
    (40, 82, "12 Larch Court"),
    (40, 94, "Dayton, OH 45402"),
    (40, 130, "Hector M Doyle"),
    (40, 142, "7 Wexford Lane"),
    (40, 154, "Reading, PA 19601"),
    (330, 70, "Payer's TIN: 27-6805772"),
    (330, 84, "Recipient's TIN: 601-94-2771"),
)
LIST = (
    (40, 220, "Box 1"), (90, 220, "Interest income"), (440, 220, "2,965.98"),
    (40, 238, "Box 2"), (90, 238, "Early withdrawal penalty"),
    (40, 256, "Box 4"), (90, 256, "Federal income tax withheld"), (440, 256, "711.84"),
    (40, 274, "Box 8"), (90, 274, "Tax-exempt interest"),
)  # fmt: skip


def fill(tmp_path: Path, *texts: tuple[float, float, str]) -> list[Extraction]:
    document = pymupdf.open()
    page = document.new_page(width=612, height=792)
    for x, y, text in texts:
        page.insert_text((x, y), text, fontsize=8)
    path = tmp_path / "form.pdf"
    document.save(path)
    bundle = read_document(path, doc_id="form", processing_timestamp="2026-01-01T00:00:00Z")
    return list(asyncio.run(FormFieldExtractor(EmbeddedModel()).extract_forms(bundle)))


def values(extraction: Extraction) -> dict[str, str | None]:
    return {name: value.value for name, value in extraction.fields.items() if value.is_found}


def test_letter_with_a_list_of_boxes_is_read(tmp_path: Path) -> None:
    (form,) = fill(tmp_path, *HEAD, *LIST)
    assert values(form) == {
        "tax_year": "2023", "payer_tin": "27-6805772", "recipient_tin": "601-94-2771",
        "payer_name": "Old Ferry Trust Company, 12 Larch Court, Dayton, OH 45402",
        "recipient_name": "Hector M Doyle", "recipient_street": "7 Wexford Lane",
        "recipient_city": "Reading, PA 19601", "interest_income": "2965.98", "box_4": "711.84",
    }  # fmt: skip
    assert form.decision == "AUTO_ACCEPT"


def test_missing_required_field_goes_to_a_person(tmp_path: Path) -> None:
    (form,) = fill(tmp_path, *(text for text in HEAD if "Payer's TIN" not in text[2]), *LIST)
    assert form.decision == "ESCALATE_TO_SME"
    assert [issue.location for issue in form.issues] == ["payer_tin"]


def test_statement_of_two_forms_has_one_head(tmp_path: Path) -> None:
    dividends = (
        (40, 320, "Form 1099-DIV Dividends and Distributions"),
        (40, 340, "1a"), (90, 340, "Total ordinary dividends"), (440, 340, "4,127.60"),
        (40, 356, "1b"), (90, 356, "Qualified dividends"), (440, 356, "2,930.60"),
        (40, 372, "3"), (90, 372, "Nondividend distributions"), (440, 372, "0.00"),
        (40, 388, "7"), (90, 388, "Foreign tax paid"), (440, 388, "86.73"),
    )  # fmt: skip
    title = (40, 200, "Form 1099-INT Interest Income")
    head = ((40, 40, "2023 Consolidated Form 1099"), *HEAD[1:])
    interest, dividend = fill(tmp_path, *head, title, *LIST, *dividends)
    assert (interest.document_type, dividend.document_type) == ("1099-INT", "1099-DIV")
    assert values(dividend)["total_dividends"] == "4127.60"
    assert values(interest)["payer_tin"] == values(dividend)["payer_tin"] == "27-6805772"


@pytest.mark.parametrize("distance", [0, 60], ids=["second line", "second box"])
def test_second_state_is_a_field_of_its_own(tmp_path: Path, distance: float) -> None:
    labels = (
        (40, 300, "15 State Employer's state ID number"), (220, 300, "16 State wages, tips, etc."),
        (360, 300, "17 State income tax"),
    )  # fmt: skip
    first = ((44, 312, "OH 12-3456789"), (224, 312, "31,000.00"), (364, 312, "1,330.00"))
    second = tuple(
        (x, y + (distance or 11), text.replace("OH 12", "MI 77").replace("31,", "28,"))
        for x, y, text in (*(labels if distance else ()), *first)
    )
    people = (
        (40, 40, "W-2 Wage and Tax Statement 2022"), (40, 70, "a Employee's SSA number"), (44, 84, "201-55-1234"),
        (300, 70, "b Employer's FED ID number"), (304, 84, "84-3016358"),
        (40, 110, "c Employer's name, address, and ZIP code"), (44, 122, "Pinewater Freight Corp."),
        (44, 132, "8 Beacon Hill Ave"), (44, 142, "Albany, NY 12207"),
        (40, 170, "1 Wages, tips, other comp."), (44, 182, "59,000.00"),
        (300, 170, "2 Fed. income tax withheld"), (304, 182, "6,700.00"),
        (40, 210, "3 Soc. sec. wages"), (44, 222, "59,000.00"),
        (300, 210, "4 Soc. sec. tax withheld"), (304, 222, "3,658.00"),
    )  # fmt: skip
    (form,) = fill(tmp_path, *people, *labels, *first, *second)
    read = values(form)
    assert (read["box_15"], read["box_16"]) == ("OH 12-3456789", "31000.00")
    assert (read["box_15_2"], read["box_16_2"]) == ("MI 77-3456789", "28000.00")
    assert (read["employee_ssn"], read["employer_ein"]) == ("201-55-1234", "84-3016358")
