"""Labels and entries on recognised pages, whose words are not all what was printed."""

from __future__ import annotations

import pytest
from builders import page

from evalkit.extraction.field_template import get_field_template
from evalkit.extraction.forms.form_labels import find_labels, is_only_form_print
from evalkit.extraction.forms.form_reader import read_form
from evalkit.extraction.forms.form_sheet import FormSheet

NEC = get_field_template("1099-NEC")
CITY = "City or town, state or province, country, and ZIP or foreign postal code"


def read(*lines: str, status: str = "ocr") -> dict[str, str]:
    sheet = FormSheet.from_page(page(1, "\n".join(lines), status=status))
    return {name: one.entry.value for name, one in read_form(sheet, NEC, allow_misspellings=False).items()}


@pytest.mark.parametrize(("status", "found"), [("ocr", True), ("text", False)])
def test_label_with_misread_short_word_is_found_on_scans_only(status: str, found: bool) -> None:
    sheet = FormSheet.from_page(page(1, CITY.replace(" or ", " of ", 1), status=status))
    named = {
        label.form_box.fields[0].name for label in find_labels(sheet, NEC, allow_misspellings=False) if label.form_box
    }
    assert ("recipient_city" in named) is found


def test_entry_ends_at_an_unrecognised_label() -> None:
    said = read(
        "Street address (including apt. no.)", "6081 Harbor Avenue", "Gxyy ut tqwn state province country and ZIP foreign postal", "Tulsa, OK 74103",
    )  # fmt: skip
    assert said["recipient_street"] == "6081 Harbor Avenue"


def test_what_is_left_of_a_label_is_no_entry() -> None:
    label = "PAYER'S name, street address, city or town, state or province, country, ZIP or foreign"
    said = read(
        label, "postal code, and telephone", "", "no.", "Harbor Partners LP", "8922 Mill Road", "Boise ID 83702"
    )
    assert said["payer_name"] == "Harbor Partners LP, 8922 Mill Road, Boise ID 83702"


@pytest.mark.parametrize(
    ("name", "text", "printed"),
    [
        ("nonemployee_compensation", "1", True),
        ("nonemployee_compensation", "1.00", False),
        ("payer_name", "foreign postal code", True),
        ("payer_name", "Harbor Partners LP", False),
        ("box_2", "2", False),
        ("payer_name", "-", False),
    ],
)
def test_a_forms_own_print(name: str, text: str, printed: bool) -> None:
    field = NEC.get_field(name)
    assert field is not None
    assert is_only_form_print(text, field, NEC) is printed
