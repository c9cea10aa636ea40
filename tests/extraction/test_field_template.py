"""Templates are data; what is wrong in one is told by file, line and entry."""

from __future__ import annotations

import pytest

from evalkit.errors import UsageError
from evalkit.extraction.field_template import FieldNeed, FieldTemplate, get_field_template, list_field_templates
from evalkit.store.toml_records import parse_toml_record

GOOD = """name = "1098"
kind = "tax"
document_type = "1098"
display_name = "Form 1098"
threshold = 0.7
min_required = 1

[[field]]
name = "interest"
description = "Mortgage interest"
need = "required"
format = "currency"

[[field]]
name = "tax_year"
description = "Tax year"
format = "pattern"
pattern = '20\\d{2}'
"""


def test_a_template_is_read() -> None:
    read = parse_toml_record(GOOD, "1098.toml", FieldTemplate)
    assert [field.name for field in read.fields] == ["interest", "tax_year"]
    assert read.get_fields_by_need(FieldNeed.REQUIRED) == (read.get_field("interest"),)
    assert read.fields[1].normalise("2020") == "2020"
    assert read.fields[1].normalise("1999") is None


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"currency"', '"money"', ["line 12", "interest", "format"]),
        ('"required"', '"needed"', ["line 11", "interest", "need"]),
        ("0.7", "1.7", ["line 5", "threshold"]),
        ("'20\\d{2}'", "'20(\\d{2}'", ["line 18", "tax_year", "regular expression"]),
        ('description = "Tax year"\n', "", ["line 14", "tax_year", "description"]),
        ('"tax_year"', '"interest"', ["interest", "twice"]),
        ("min_required = 1", "min_required = 2", ["min_required"]),
        ("min_required = 1", "min_required 1", ["line 6"]),
        ('format = "pattern"\n', "", ["line 14", "pattern"]),
    ],
)
def test_what_is_wrong_is_told_by_its_line(old: str, new: str, told: list[str]) -> None:
    with pytest.raises(UsageError) as refused:
        parse_toml_record(GOOD.replace(old, new, 1), "1098.toml", FieldTemplate)
    for part in ["1098.toml", *told]:
        assert part in str(refused.value), str(refused.value)


def test_a_row_is_not_told_by_words_that_are_no_name() -> None:
    with pytest.raises(UsageError, match=r"field → 1 → name") as refused:
        parse_toml_record(GOOD.replace('"interest"', '"Zebulon Quagmire"', 1), "1098.toml", FieldTemplate)
    assert "Zebulon" not in str(refused.value)


def test_an_unknown_template_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="there is no template W-99"):
        get_field_template("W-99")


def test_names_of_templates_belong_to_one_kind() -> None:
    names = [one.name for kind in ("clinical", "tax") for one in list_field_templates(kind)]  # type: ignore[arg-type]
    assert len(names) == len(set(names))
