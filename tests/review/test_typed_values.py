"""What an expert types is taken whole, or refused with the words that would be lost."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.typed_values import read_rows, try_rows

from evalkit.extraction.field_template import TemplateField, get_field_template
from evalkit.review.field_answers import check_field_text


def template_field(template: str, name: str, entry: str = "") -> TemplateField:
    """A template's field, called as the screen calls it."""
    field = get_field_template(template).get_field(name)
    assert field is not None
    return field.model_copy(update={"description": f"{field.description}: {entry}" if entry else field.description})


MARGINS, GRADE = template_field("pathology", "margins"), template_field("pathology", "grade")
ER, HEMOGLOBIN = (
    template_field("pathology", "ihcMarkers", "ER"),
    template_field("lab-report", "labValues", "Hemoglobin"),
)


@pytest.mark.parametrize(
    ("field", "text", "lost_words"),
    [
        (MARGINS, "deep margin positive, lateral margins negative", "deep, lateral, negative"),
        (ER, "3+, HER2 negative", "HER2"),
        (GRADE, "2, focally 3", "focally, 3"),
        (ER, "PR negative", "PR"),
        (ER, "positive?", "?"),
        (ER, "not positive", "not"),
        (MARGINS, "probably negative", "probably"),
        (HEMOGLOBIN, "14.9 g/dL (92 g/L)", "92, g, L"),
    ],
)
def test_words_that_would_be_lost_are_refused(field: TemplateField, text: str, lost_words: str) -> None:
    checked = check_field_text(field, text)
    assert (checked.value, checked.lost_words) == (None, lost_words)
    advice = "entry of its own" if field.many else "Write the rest as a note"
    assert advice in checked.problem


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (MARGINS, "Deep margin: POSITIVE", None),
        (MARGINS, "All margins are negative for carcinoma, 1.6 cm", "negative, 1.6 cm"),
        (ER, "ER: positive (95 % of tumor nuclei)", "positive, 95%"),
        (ER, "strongly positive, 95%", "strongly positive, 95%"),
        (GRADE, "Nottingham grade II", "2"),
        (HEMOGLOBIN, "Hemoglobin 14.9 g/dL (13.2-17.1)", "14.9 g/dL (13.2-17.1)"),
    ],
)
def test_what_says_no_more_than_the_field_is_kept(field: TemplateField, text: str, value: str | None) -> None:
    assert check_field_text(field, text).value == value


def test_a_text_with_two_readings_is_refused() -> None:
    date = template_field("pathology", "date")
    assert check_field_text(date, "03/04/2025").problem == (
        "This can be read in two ways. Write it as 3 Apr 2025 or 2025-04-03."
    )
    assert check_field_text(date, "31/03/2025").value == check_field_text(date, "03/31/2025").value == "2025-03-31"
    assert "two ways" in check_field_text(HEMOGLOBIN, "1,234").problem


def test_typed_values_of_another_author_lose_nothing() -> None:
    counts = Counter(outcome.name for outcome in try_rows(read_rows("open")))
    assert counts["wrongly kept"] <= 4, (
        "a second category, a printed range, a weak plus, two levels of a variant: kept whole"
    )
    assert counts["wrongly refused"] <= 6
