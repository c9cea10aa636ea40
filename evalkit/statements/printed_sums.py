"""Find labels such as "Closing balance" on a statement, and their amounts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalkit.documents.bundle import Box, enclose_boxes
from evalkit.statements.amounts import Amount, DecimalSeparator, parse_amount
from evalkit.statements.bank_vocabulary import match_at_line_start
from evalkit.statements.text_lines import TextLine

#: A value that is printed below its label is looked for in this many lines.
_MAX_LINES_BELOW_LABEL = 2
#: Most words of an amount: "$ 1 234,56 CR".
_MAX_AMOUNT_WORDS = 4
_COUNT_PATTERN = re.compile(r"[\d#%=+-]*")


@dataclass(frozen=True)
class LabelledAmount:
    """A label with its amount, as printed."""

    kind: str
    """The kind of sum: the key of the pattern that the label matched."""
    label: str
    """The label as printed, without the amount."""
    amount: Amount
    box: Box
    """The box around label and amount."""


def find_labelled_amounts(
    line: TextLine,
    lines_below: Sequence[TextLine],
    patterns_by_kind: Mapping[str, Sequence[str]],
    decimal_separator: DecimalSeparator,
    *,
    cents_optional: bool,
) -> Iterator[LabelledAmount]:
    """Find the labels of a line, each with the amount after or below it.

    ``patterns_by_kind``: patterns of labels by kind of sum. Labels without an amount are left out. Amounts without
    cents count only with ``cents_optional``, and only if there is no amount with cents.
    """
    cells = line.cells
    label_positions = [
        (position, kind)
        for position, cell in enumerate(cells)
        if (kind := _match_label_kind(cell.text, patterns_by_kind))
    ]
    next_positions = [*(position for position, _ in label_positions), len(cells)][1:]
    for (position, kind), next_position in zip(label_positions, next_positions, strict=True) if label_positions else ():
        label_cell = cells[position]
        for skip_cents in (False, True) if cents_optional else (False,):
            if found_amount := _find_amount_after_label(
                cells[position:next_position], decimal_separator, cents_optional=skip_cents
            ) or _find_amount_below_label(label_cell, lines_below, decimal_separator, cents_optional=skip_cents):
                amount, cell, label_length = found_amount
                label_text = " ".join(word.text for word in label_cell.words[:label_length])
                yield LabelledAmount(kind, label_text, amount, enclose_boxes((label_cell.page_box, cell.page_box)))
                break


def _match_label_kind(text: str, patterns_by_kind: Mapping[str, Sequence[str]]) -> str | None:
    return next(
        (
            kind
            for kind, kind_patterns in patterns_by_kind.items()
            if any(match_at_line_start(pattern, text) for pattern in kind_patterns)
        ),
        None,
    )


def _find_amount_after_label(
    cells: Sequence[TextLine], decimal_separator: DecimalSeparator, *, cents_optional: bool
) -> tuple[Amount, TextLine, int | None] | None:
    """Return the amount behind the label, its cell, and the number of the label's words if the cell is the label's."""
    for cell in cells:
        trailing_amount = parse_trailing_amount(cell, decimal_separator, cents_optional=cents_optional)
        if trailing_amount and not (cell is cells[0] and trailing_amount[1] == 0):
            return trailing_amount[0], cell, trailing_amount[1] if cell is cells[0] else None
    return None


def _find_amount_below_label(
    label_cell: TextLine, lines_below: Sequence[TextLine], decimal_separator: DecimalSeparator, *, cents_optional: bool
) -> tuple[Amount, TextLine, None] | None:
    """Return the amount below the label and its cell; None if there is none.

    Only lines that consist of numbers are considered.
    """
    x0, _, x1, _ = label_cell.box
    for line in lines_below[:_MAX_LINES_BELOW_LABEL]:
        parsed_cells = [
            (
                parse_amount(cell.text, decimal_separator, cents_optional=cents_optional, is_ocr_text=cell.is_ocr_text),
                cell,
            )
            for cell in line.cells
        ]
        if all(amount or _COUNT_PATTERN.fullmatch(cell.text) for amount, cell in parsed_cells):
            return next(
                (
                    (amount, cell, None)
                    for amount, cell in parsed_cells
                    if amount and cell.box[0] < x1 and x0 < cell.box[2]
                ),
                None,
            )
    return None


def parse_trailing_amount(
    cell: TextLine,
    decimal_separator: DecimalSeparator,
    *,
    cents_optional: bool,
    is_in_column: bool = False,
    max_words: int = _MAX_AMOUNT_WORDS,
) -> tuple[Amount, int] | None:
    """Return the longest amount at the cell's end and the number of words before it.

    None if the cell does not end with an amount.
    """
    texts = [word.text for word in cell.words]
    for start in range(max(len(texts) - max_words, 0), len(texts)):
        amount = parse_amount(
            " ".join(texts[start:]),
            decimal_separator,
            cents_optional=cents_optional,
            is_ocr_text=cell.is_ocr_text,
            is_in_column=is_in_column,
        )
        if amount:
            return amount, start
    return None
