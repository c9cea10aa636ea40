"""Draw known shapes with columns, titles, lines and numbers that nobody has thought of; what is true stays true."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from benchmarks.first_contact.statement_shapes.drawing import Cells, Column, Entry, Sheet, Statement, Table

_KINDS = ("date last", "text last", "amounts rotated", "shifted", "stacked titles", "amounts below", "decimals", "font")
_NUMBER = re.compile(r"\d{1,3}(?:([.,' ])\d{3})*([.,])\d\d(?![\d.,/])")
_MOST_SHIFTED = 4.0
#: Room for an amount, and between columns, in points.
_AMOUNT_WIDTH, _GAP = 62.0, 6.0


def choose_kinds(shape: str, number: int) -> set[str]:
    """Choose what is changed: at least one kind, seldom more than four."""
    rng = random.Random(f"{shape} {number}")
    return {rng.choice(_KINDS), *(kind for kind in _KINDS if rng.random() < 0.3)}


@contextmanager
def perturb(shape: str, number: int) -> Iterator[set[str]]:
    """Draw otherwise within the block, and yield the kinds of changes."""
    kinds, rng = choose_kinds(shape, number), random.Random(f"{shape} {number} places")
    write, finish, print_row, print_entry, init = (
        Sheet.write, Sheet.finish, Table.row, Table._print_entry, Sheet.__init__,
    )  # fmt: skip
    places: dict[tuple[Column, ...], tuple[Column, ...]] = {}

    def finish_otherwise(self: Sheet, *args: object, **options: object) -> Statement:
        statement = finish(self, *args, **options)  # type: ignore[arg-type]
        if "decimals" not in kinds:
            return statement
        rows = tuple(replace(row, description=_exchange_decimals(row.description)) for row in statement.rows)
        return replace(statement, rows=rows)

    def print_row_otherwise(self: Table, cells: Cells, *, bold: bool = False) -> None:
        key = tuple(self.columns)
        if key not in places:
            places[key] = _arrange(key, kinds, rng)
        print_row(replace(self, columns=places[key]), cells, bold=bold)

    def print_entry_otherwise(self: Table, entry: Entry, cells: dict[str, str]) -> None:
        amounts = {each.key for each in self.columns if each.side == "r"} if "amounts below" in kinds else set[str]()
        if len(entry.lines) < 2 or not amounts or self.is_split:
            print_entry(self, entry, cells)
            return
        first = {key: text for key, text in cells.items() if key not in amounts}
        *upper, last = ({"text": text} for text in entry.lines)
        last |= {key: text for key, text in cells.items() if key in amounts}
        for position, line in enumerate((*upper, last)):
            marks = {"mark": entry.marks[position]} if position < len(entry.marks) else {}
            self.sheet.down(self.sheet.size * self.inner if position else 0)
            self.row((first if not position else {}) | line | marks)
        self.sheet.down(self.sheet.step)

    def head_otherwise(self: Table) -> None:
        columns = [replace(each, head=tuple(" ".join(filter(None, each.head)).split())) for each in self.columns]
        head(replace(self, columns=columns) if "stacked titles" in kinds else self)

    def init_otherwise(self: Sheet, *args: object, font: str = "", size: float = 9.0, **options: object) -> None:
        if "font" in kinds and font in {"", "helv", "tiro", "cour"}:
            font, size = rng.choice(("helv", "tiro")), size * rng.uniform(0.9, 1.0)
        init(self, *args, font=font, size=size, **options)  # type: ignore[arg-type]

    def write_otherwise(self: Sheet, x: float, text: str, *args: object, **options: object) -> None:
        write(self, x, _exchange_decimals(text) if "decimals" in kinds else text, *args, **options)  # type: ignore[arg-type]

    head = Table.head
    with (
        patch.object(Sheet, "__init__", init_otherwise),
        patch.object(Sheet, "write", write_otherwise),
        patch.object(Sheet, "finish", finish_otherwise),
        patch.object(Table, "head", head_otherwise),
        patch.object(Table, "row", print_row_otherwise),
        patch.object(Table, "_print_entry", print_entry_otherwise),
    ):
        yield kinds


def _exchange_decimals(text: str) -> str:
    return _NUMBER.sub(lambda match: match.group().translate(str.maketrans(".,", ",.")), text)


def _arrange(columns: Sequence[Column], kinds: set[str], rng: random.Random) -> tuple[Column, ...]:
    """Place columns anew: some at the end, amounts in another order, each a little elsewhere."""
    for key in ("text", "date"):
        if f"{key} last" in kinds:
            columns = _move_to_end(columns, key)
    amounts = [each for each in columns if each.side == "r" and each.key in {"in", "out", "balance", "amount"}]
    if "amounts rotated" in kinds and len(amounts) > 1:
        keys = {one.key: other for one, other in zip(amounts, (*amounts[1:], amounts[0]), strict=True)}
        columns = [replace(each, x=keys[each.key].x) if each.key in keys else each for each in columns]
    most = _MOST_SHIFTED if "shifted" in kinds else 0.0
    return tuple(replace(each, x=each.x + rng.uniform(-most, most)) for each in columns)


def _move_to_end(columns: Sequence[Column], key: str) -> Sequence[Column]:
    """Move a column of texts behind the last one, and what is behind it to its place."""
    column = next((each for each in columns if each.key == key and each.side == "l"), None)
    behind = [each for each in columns if column and each.x > column.x]
    if column is None or not behind or any(each.side == "c" for each in behind):
        return columns
    lefts = [each.x - (_AMOUNT_WIDTH if each.side == "r" else 0) for each in behind]
    width = min(lefts) - column.x
    last = max(behind, key=lambda each: each.x)
    end = last.x + _GAP if last.side == "r" else last.x + _AMOUNT_WIDTH
    if width <= 0:
        return columns
    moved = {each.key: each.x - width for each in behind} | {key: end - width}
    return [replace(each, x=moved.get(each.key, each.x)) for each in columns]
