"""Columns, furniture keys and tables as pure geometry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.documents.layout import PrevailingTypography, fold_case_and_mask_digits, lay_out_blocks, measure_typography
from evalkit.documents.page_content import PageContent, PageLine, PageToken
from evalkit.documents.ruled_tables import RulingLine, find_grids

USUAL = PrevailingTypography(font_size=10, is_bold=False, is_capitals=False)


def line(text: str, x: float, y: float, **look: float) -> PageLine:
    """A line whose letters are 5 points wide; ``y`` is its upper edge."""
    tokens = []
    for word in text.split():
        tokens.append(PageToken(word, x, y, x + 5 * len(word), y + 10))
        x += 5 * (len(word) + 1)
    return PageLine(
        tuple(tokens),
        font_size=look.get("size", 10),
        bold_share=look.get("bold", 0.0),
        quarter_turns=int(look.get("turn", 0)),
    )


def page(*lines: PageLine) -> PageContent:
    """A page of 600 by 800 points with these lines."""
    return PageContent(
        600,
        800,
        lines,
        hidden_lines=(),
        grids=(),
        horizontal_rules=(),
        image_share=0,
        ocr_layer=(),
        shape_count=0,
        is_blank=False,
    )


def grid(columns: list[float], rows: list[float]) -> tuple[list[RulingLine], list[RulingLine]]:
    """The rules of a table with lines at these places."""
    across = [RulingLine(y, columns[0], columns[-1]) for y in rows]
    return across, [RulingLine(x, rows[0], rows[-1]) for x in columns]


@given(
    columns=st.lists(st.integers(0, 40), min_size=3, max_size=7, unique=True).map(sorted),
    rows=st.lists(st.integers(0, 40), min_size=3, max_size=7, unique=True).map(sorted),
)
def test_a_grid_has_a_cell_between_each_two_lines(columns: list[int], rows: list[int]) -> None:
    xs, ys = [15.0 * x for x in columns], [15.0 * y for y in rows]
    (found,) = find_grids(*grid(xs, ys))
    assert len(found.cells) == (len(xs) - 1) * (len(ys) - 1)
    assert (found.column_edges, found.row_edges) == (xs[:-1], ys[:-1])
    assert found.box == (xs[0], ys[0], xs[-1], ys[-1])
    for cell in found.cells:
        assert found.find_nearest_cell((cell.x0 + cell.x1) / 2, (cell.y0 + cell.y1) / 2) == cell


def test_lines_in_pieces_and_slightly_off_are_one_line() -> None:
    across, down = grid([0, 100, 200], [0, 20, 40])
    pieces = [
        RulingLine(at + shift, start, end)
        for at, _, _ in across
        for shift, start, end in ((0, 0, 101), (0.8, 102, 200))
    ]
    (found,) = find_grids(pieces, down)
    assert len(found.cells) == 4


def test_a_merged_cell_reaches_over_two_columns() -> None:
    across, down = grid([0, 100, 200], [0, 20, 40])
    down[1] = RulingLine(100, 20, 40)
    (found,) = find_grids(across, down)
    assert sorted(found.cells) == [(0, 0, 200, 20), (0, 20, 100, 40), (100, 20, 200, 40)]


def test_a_line_with_a_gap_closes_no_cell() -> None:
    across, down = grid([0, 100, 200], [0, 50, 100])
    across[1:2] = [RulingLine(50, 0, 20), RulingLine(50, 80, 200)]
    (found,) = find_grids(across, down)
    assert (0, 0, 100, 50) not in found.cells
    assert (0, 0, 100, 100) in found.cells


@pytest.mark.parametrize(
    "rules",
    [
        ([], []),
        grid([0, 100], [0, 50, 100]),
        ([RulingLine(float(y), 0, 500) for y in range(0, 800, 20)], []),
        ([RulingLine(4.0 * n, 0, 3000) for n in range(900)], [RulingLine(4.0 * n, 0, 3000) for n in range(900)]),
    ],
)
def test_what_is_no_table(rules: tuple[list[RulingLine], list[RulingLine]]) -> None:
    assert find_grids(*rules) == []


def test_two_tables_apart() -> None:
    first, second = grid([0, 50, 100], [0, 20, 40]), grid([0, 50, 100], [300, 320, 340])
    assert len(find_grids(first[0] + second[0], first[1] + second[1])) == 2


def test_tables_with_misaligned_edges_keep_their_own_edges() -> None:
    upper, lower = grid([0, 50, 100.3], [0, 20, 40]), grid([0, 50, 100], [300, 320, 340])
    found = find_grids(upper[0] + lower[0], upper[1] + lower[1])
    assert [len(one.cells) for one in found] == [4, 4]


def test_every_word_is_laid_out_once() -> None:
    lines = [line(f"word{n} of line {n}", 40 + 37 * (n % 9), 90 + 11 * (n // 2), turn=n % 5 % 4) for n in range(60)]
    laid = [token for block in lay_out_blocks(page(*lines), set(), USUAL) for token in block.tokens]
    assert sorted(token.text for token in laid) == sorted(token.text for one in lines for token in one.tokens)
    places = {(token.text, round(token.x0), round(token.y0)) for one in lines for token in one.tokens}
    assert {(token.text, round(token.x0), round(token.y0)) for token in laid} == places


def test_typography_is_that_of_most_characters() -> None:
    lines = [line("A TITLE", 0, 0, size=20, bold=1.0), line("the body of the text", 0, 30), line("goes on", 0, 45)]
    assert measure_typography(lines).typography == PrevailingTypography(font_size=10, is_bold=False, is_capitals=False)


def test_a_page_in_capitals_has_no_headings_by_capitals() -> None:
    title = line("GROSS DESCRIPTION", 50, 100)
    assert lay_out_blocks(page(title), set(), USUAL)[0].type == "heading"
    assert (
        lay_out_blocks(page(title), set(), PrevailingTypography(10, is_bold=False, is_capitals=True))[0].type
        == "paragraph"
    )


def test_masking_makes_running_numbers_equal() -> None:
    assert fold_case_and_mask_digits("Page 1 of 12, MRN 0042") == fold_case_and_mask_digits("PAGE 3 of 9, mrn 7")


@pytest.mark.parametrize(
    ("text", "y", "is_furniture"),
    [
        ("Page 3 of 12", 770, True),
        ("- 4 -", 20, True),
        ("7/9", 770, True),
        ("2025-01-02 10:22 FAX 555 010", 10, True),
        ("Page 3 of 12", 400, False),
        ("Carcinoma", 770, False),
        ("Seen at 10:22", 10, False),
    ],
)
def test_furniture_by_its_looks(text: str, y: float, is_furniture: bool) -> None:
    (block,) = lay_out_blocks(page(line(text, 50, y)), set(), USUAL)
    assert block.is_furniture is is_furniture


def test_stamps_below_the_margin_are_furniture_too() -> None:
    body = [line(f"The liver is of ordinary size, number {n}", 50, 150 + 14 * n) for n in range(8)]
    notice = line("CONFIDENTIAL: this page is intended only for the clinic named above.", 50, 300)
    title = line("ULTRASOUND OF THE ABDOMEN", 50, 120)
    stamp = line("Printed on 06/11/2023 08:04", 50, 100)
    blocks = lay_out_blocks(page(stamp, title, *body, notice), set(), USUAL)
    texts = [" ".join(token.text for token in block.tokens) for block in blocks]
    assert [block.is_furniture for block in blocks][:2] == [True, False]
    assert [text for text, block in zip(texts, blocks, strict=True) if block.is_furniture] == [stamp.text, notice.text]
    assert texts[1] == title.text
