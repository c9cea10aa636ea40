"""The drawn tax forms print what their truth says, and the bench compares values as a person would."""

import importlib

import pymupdf
import pytest
from benchmarks.tax_layouts import is_same


@pytest.mark.parametrize("half", ["open", "sealed"])
def test_every_value_of_the_truth_is_printed(half: str) -> None:
    layouts = importlib.import_module(f"benchmarks.first_contact.tax_layouts.{half}").layouts()
    assert len(layouts) >= 50
    for layout in layouts:
        with pymupdf.open() as document:
            forms = layout.build(document)
            pages = ["".join(page.get_text().split()) for page in document]
        missing = [text for form in forms for text in form.printed if "".join(text.split()) not in pages[form.page - 1]]
        assert not missing, layout.name


@pytest.mark.parametrize(
    ("wanted", "read", "optional", "same"),
    [
        ("$1,204.50", "1204.50", "", True),
        ("0001204.50", "1204.50", "", True),
        ("(310.00)", "-310.00", "", True),
        ("310.00", "-310.00", "", False),
        ("12.00", "1200", "", False),
        ("D 1,500.00", "D1500.00", "", True),
        ("XXX-XX-1234", "***-**-1234", "", True),
        ("OR 1234567-8", "OR12345678", "", True),
        ("03/05/2019", "2019-03-05", "", True),
        ("Oak Bank", "Oak Bank, 4 Elm St", "4 Elm St", True),
        ("Oak Bank", "Oak Bank, Payer's TIN", "4 Elm St", False),
        ("X", "true", "", True),
    ],
)
def test_values_are_compared_without_their_dress(wanted: str, read: str, optional: str, same: bool) -> None:
    assert is_same(wanted, read, optional) is same
