"""Sizes of lesions in radiology reports: the present ones, each once."""

from __future__ import annotations

import pytest
from builders import document
from extraction.reports import page_of

from evalkit.extraction.clinical.clinical_reader import find_field_values
from evalkit.extraction.clinical.report_structure import ClinicalReport
from evalkit.extraction.field_template import get_field_template

SURE = 0.85


def read_sizes(report: ClinicalReport) -> list[str]:
    """Return the sizes in normal form; a doubtful one ends with a question mark."""
    field = get_field_template("radiology").get_field("measurements")
    assert field is not None
    return [
        f"{field.normalise(reading.text)}{'' if reading.confidence >= SURE else ' ?'}"
        for reading in find_field_values(field, report)
    ]


REPORTS = [
    (
        "Findings\nA 14-millimeter nodule, previously measured 9 mm.\nImpression\nThe 1.4 cm nodule is growing.",
        ["14 mm"],
    ),
    ("Findings\nThe lesion has decreased from 31 mm to 23 mm.", ["23 mm"]),
    ("Findings\nThe mass has grown to 4.1 x 3.3 cm from 3.0 x 2.6 cm.", ["4.1 x 3.3 cm"]),
    ("Findings\nNode, 11 mm (previously 17 mm).", ["11 mm"]),
    ("Findings\nA 2.1 x 1.8 by 1.5 cm mass.\nImpression\nA 2.1 cm mass.", ["2.1 x 1.8 x 1.5 cm"]),
    ("Findings\nTwo nodules: 6 mm in the right lobe and 6 mm in the left lobe.", ["6 mm", "6 mm"]),
    ("Findings\nA 3 mm nodule. No node larger than 10 mm. Mass 4 cm from the nipple.", ["3 mm"]),
    ("Findings\nA 3 mm nodule on 5 mm axial images.\nImpression\nBiopsy if 15 mm or larger.", ["3 mm"]),
    ("Findings\nA mass of 18 mm.\nImpression\nA mass of 18 cm.", ["18 mm", "18 cm ?"]),
    ("Findings\nA mass of 18 mm.\nImpression\nA mass of 81 mm.", ["18 mm", "81 mm ?"]),
]


@pytest.mark.parametrize(("text", "sizes"), REPORTS)
def test_present_sizes_of_each_lesion(text: str, sizes: list[str]) -> None:
    assert read_sizes(ClinicalReport(document(text).pages)) == sizes


def test_the_latest_of_two_dated_columns() -> None:
    table = "Lesion\t01/02/2023\t03/04/2024\nNodule\t6 mm\t8 mm"
    assert read_sizes(ClinicalReport([page_of([("table", table)])])) == ["8 mm"]
