"""Tables without ruling lines."""

from __future__ import annotations

import pytest

from evalkit.documents.aligned_tables import TextRow, find_aligned_tables
from evalkit.documents.page_content import PageLine, PageToken


def draw_rows(*rows: dict[int, str], step: float = 14) -> list[TextRow]:
    """Rows of cells by their left x; letters are 5 points wide, rows ``step`` points apart."""
    text_rows = []
    for number, row in enumerate(rows):
        text_row = []
        for x, text in row.items():
            tokens, left = [], float(x)
            for word in text.split():
                tokens.append(PageToken(word, left, step * number, left + 5 * len(word), step * number + 10))
                left += 5 * len(word) + 3
            text_row.append(PageLine(tuple(tokens), font_size=10))
        text_rows.append(text_row)
    return text_rows


def read_tables(text_rows: list[TextRow]) -> list[list[list[str]]]:
    """The tables' cells as text."""
    return [
        [[" ".join(token.text for token in cell) for cell in row] for row in table.cells]
        for table in find_aligned_tables(text_rows)
    ]


LAB = ({60: "Test", 200: "Result", 260: "Flag"}, {60: "Sodium", 200: "131", 260: "L"}, {60: "Potassium", 200: "4.2"})


def test_columns_under_a_header_keep_empty_cells() -> None:
    expected = [["Test", "Result", "Flag"], ["Sodium", "131", "L"], ["Potassium", "4.2", ""]]
    assert read_tables(draw_rows({60: "Chemistry"}, *LAB)) == [expected]


def test_a_wrapped_cell_stays_in_its_row() -> None:
    rows = draw_rows(
        {60: "Medicine", 160: "Dose", 220: "Directions"},
        {60: "Letrozole", 160: "2.5 mg", 220: "One each morning"},
        {220: "With food"},
        {60: "Codeine", 160: "30 mg", 220: "One at night"},
    )
    assert read_tables(rows)[0][1] == ["Letrozole", "2.5 mg", "One each morning With food"]


def test_a_heading_between_rows_is_a_row_and_a_note_is_not() -> None:
    rows = draw_rows(*LAB[:2], {60: "Kidney"}, {60: "Urea", 200: "5.2"}, {60: "* fasting"})
    assert [row[0] for row in read_tables(rows)[0]] == ["Test", "Sodium", "Kidney", "Urea"]


def test_a_repeated_header_begins_another_table() -> None:
    assert len(read_tables(draw_rows(*LAB, *LAB))) == 2


@pytest.mark.parametrize(
    "rows",
    [
        [{60: "Name", 200: "Age"}, *[{60: "Name: Odette", 200: "Age: 12"}] * 4],
        [{60: "Main Hospital", 300: "Marlow"}, {60: "12 Mill Lane", 300: "Tel 5"}, {60: "Bridge", 300: "Fax 6"}] * 2,
        [{60: "Name", 200: "Date", 300: "Age"}, *[{60: "______", 200: "_____", 300: "_____"}] * 4],
        [{60: "Asthma", 200: "Stroke", 300: "Gout"}, {60: "Fever", 200: "Cough", 300: "Pain"}, {60: "A", 200: "B"}],
        [{60: "The patient returned for review and reports no fever."}] * 6,
    ],
    ids=["labels", "addresses", "blanks", "words", "prose"],
)
def test_rows_without_a_header_are_no_table(rows: list[dict[int, str]]) -> None:
    assert read_tables(draw_rows(*rows)) == []
