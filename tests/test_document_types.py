"""The table of document types: records, codes, titles."""

from __future__ import annotations

import pytest

from evalkit.document_types import get_report_category, get_type_coding, load_type_records
from evalkit.classification.schema import DocumentType


def test_each_type_has_a_record_and_a_key() -> None:
    records = load_type_records()
    assert list(records) == [kind.value for kind in DocumentType]
    assert len({record.key for record in records.values()}) == len(records)


@pytest.mark.parametrize(
    ("document_type", "text", "code"),
    [
        ("Clinical Note", "", "34109-9"),
        ("Clinical Note", "St. Example Hospital\n\n** Discharge  Summary: **\nPatient: X", "18842-5"),
        ("Clinical Note", "See the discharge summary of March.", "34109-9"),
        ("Clinical Note", "\n".join(["Address"] * 5 + ["Discharge Summary"]), "34109-9"),
        ("Clinical Note", "H&P", "34117-2"),
        ("Pathology Report", "Discharge Summary", "11526-1"),
        ("Genomic Report", "", "51969-4"),
        ("Radiology Report", "CT CHEST", "18748-4"),
        ("Other", "", "UNK"),
        ("Other", "LABORATORY REPORT", "11502-2"),
    ],
)
def test_title_chooses_the_narrower_code(document_type: str, text: str, code: str) -> None:
    assert get_type_coding(document_type, text).code == code


def test_titles_are_written_as_they_are_compared() -> None:
    for document_type, record in load_type_records().items():
        for coding in record.titles:
            for name in coding.names:
                assert get_type_coding(document_type, name.upper()).code == coding.code


def test_only_reports_of_results_have_a_category() -> None:
    categories = {kind: get_report_category(kind) for kind in DocumentType}
    assert [kind for kind, category in categories.items() if category is None] == ["Clinical Note", "Other"]
    assert categories[DocumentType.RADIOLOGY_REPORT].code == "LP29684-5"  # type: ignore[union-attr]
