"""The sums that a statement prints: opening and closing balance, deposits, withdrawals, wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalkit.documents.bundle import Box
from evalkit.statements.amounts import Amount, DecimalSign, read_amount
from evalkit.statements.lines import Line, around
from evalkit.statements.wording import matches

#: A value may stand so many lines below its label, where labels are a row of titles.
_BELOW = 2
#: An amount is written in at most so many words: "$ 1 234,56 CR".
_MOST_WORDS = 4
#: Begins with a number, or with a word and a number: "5 Jan", "Jan 5", not "Balance of 5 Jan".
_DATE_FIRST = re.compile(r"\W*(?:[^\W\d_]{3,9}\.? )?\d")
_COUNT = re.compile(r"[\d#%=+-]*")


@dataclass(frozen=True)
class Value:
    """A printed sum."""

    kind: str
    """The key of the pattern that its label matched."""
    label: str
    """As printed, without the value."""
    amount: Amount
    box: Box
    """Around label and value."""


def values_on(
    line: Line, below: Sequence[Line], patterns: Mapping[str, Sequence[str]], decimal: DecimalSign, *, is_whole: bool
) -> Iterator[Value]:
    """The labels of the line with their values, from the left: behind a label, else below it among ``below``.

    Sums with cents go before sums without, which only count where ``is_whole``.
    """
    cells = line.cells
    named = [(at, kind) for at, cell in enumerate(cells) if (kind := _kind(cell.text, patterns))]
    ends = [*(at for at, _ in named), len(cells)][1:]
    for (at, kind), end in zip(named, ends, strict=True) if named else ():
        label = cells[at]
        for whole in (False, True) if is_whole else (False,):
            if found := _behind(cells[at:end], decimal, is_whole=whole) or _under(
                label, below, decimal, is_whole=whole
            ):
                amount, cell = found
                text = label.text if cell is not label else _label(label, decimal, is_whole=whole)
                yield Value(kind, text, amount, around((label.box, cell.box)))
                break


def labelled_texts(line: Line, below: Line | None, labels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each label that begins a cell of the line, with what stands behind it, then with the dates in the line below."""
    for at, cell in enumerate(line.cells):
        if label := next((found.group() for one in labels if (found := matches(one, cell.text))), None):
            yield label, " ".join(other.text for other in line.cells[at:])
            yield label, " ".join(other.text for other in below.cells if _DATE_FIRST.match(other.text)) if below else ""


def _kind(text: str, patterns: Mapping[str, Sequence[str]]) -> str | None:
    return next((kind for kind, some in patterns.items() if any(matches(one, text) for one in some)), None)


def _behind(cells: Sequence[Line], decimal: DecimalSign, *, is_whole: bool) -> tuple[Amount, Line] | None:
    for cell in cells:
        tail = tail_amount(cell, decimal, is_whole=is_whole)
        if tail and not (cell is cells[0] and tail[1] == 0):
            return tail[0], cell
    return None


def _label(cell: Line, decimal: DecimalSign, *, is_whole: bool) -> str:
    tail = tail_amount(cell, decimal, is_whole=is_whole)
    return " ".join(word.text for word in cell.words[: tail[1] if tail else None])


def _under(label: Line, below: Sequence[Line], decimal: DecimalSign, *, is_whole: bool) -> tuple[Amount, Line] | None:
    """The amount below the label, in a line of nothing but numbers."""
    x0, _, x1, _ = label.box
    for line in below[:_BELOW]:
        read = [
            (read_amount(cell.text, decimal, is_whole=is_whole, is_recognised=cell.is_recognised), cell)
            for cell in line.cells
        ]
        if all(amount or _COUNT.fullmatch(cell.text) for amount, cell in read):
            return next(
                ((amount, cell) for amount, cell in read if amount and cell.box[0] < x1 and x0 < cell.box[2]), None
            )
    return None


def tail_amount(
    cell: Line, decimal: DecimalSign, *, is_whole: bool, is_in_column: bool = False
) -> tuple[Amount, int] | None:
    """The longest amount at the cell's end, and how many words stand before it; None where it ends otherwise."""
    texts = [word.text for word in cell.words]
    for start in range(max(len(texts) - _MOST_WORDS, 0), len(texts)):
        amount = read_amount(
            " ".join(texts[start:]),
            decimal,
            is_whole=is_whole,
            is_recognised=cell.is_recognised,
            is_in_column=is_in_column,
        )
        if amount:
            return amount, start
    return None
