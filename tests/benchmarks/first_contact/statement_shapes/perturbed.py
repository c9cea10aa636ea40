"""Draw known shapes with columns, titles, lines and numbers that nobody has thought of; what is true stays true."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partialmethod
from typing import Any
from unittest.mock import patch

from benchmarks.first_contact.statement_shapes.drawing import Cells, Column, Entry, Sheet, Statement, Table

_KINDS = ("date last", "text last", "amounts rotated", "shifted", "stacked titles", "amounts below", "decimals", "font")
_NUMBER = re.compile(r"\d{1,3}(?:([.,' ])\d{3})*([.,])\d\d(?![\d.,/])")
_MOST_SHIFTED = 4.0
#: Room for an amount, and between columns, in points.
_AMOUNT_WIDTH, _GAP = 62.0, 14.0


def choose_kinds(shape: str, number: int) -> set[str]:
    """Choose what is changed: at least one kind, seldom more than four."""
    rng = random.Random(f"{shape} {number}")
    return {rng.choice(_KINDS), *(kind for kind in _KINDS if rng.random() < 0.3)}


@contextmanager
def perturb(shape: str, number: int) -> Iterator[set[str]]:
    """Draw otherwise within the block, and yield the kinds of changes."""
    drawer = _Drawer(choose_kinds(shape, number), random.Random(f"{shape} {number} places"))
    with ExitStack() as stack:
        for owner, name, method in (
            (Sheet, "__init__", drawer.begin), (Sheet, "write", drawer.write), (Sheet, "finish", drawer.finish),
            (Table, "head", drawer.print_head), (Table, "row", drawer.print_row), (Table, "_print_entry", drawer.print_entry),
        ):  # fmt: skip
            stack.enter_context(patch.object(owner, name, partialmethod(_call, method, getattr(owner, name))))
        yield drawer.kinds


def _call(self: object, method: Callable[..., Any], original: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return method(original, self, *args, **options)


class _Drawer:
    """Draws as ``kinds`` say: each method gets the one that it replaces, and what that gets."""

    def __init__(self, kinds: set[str], rng: random.Random) -> None:
        self.kinds = kinds
        self._rng = rng
        self._font, self._scale = rng.choice(("helv", "tiro")), rng.uniform(0.9, 1.0)
        self._places: dict[tuple[Column, ...], tuple[Column, ...]] = {}

    def begin(
        self, original: Any, sheet: Sheet, rng: random.Random, *, font: str = "", size: float = 9.0, **more: Any
    ) -> None:
        """Choose another font of a similar size."""
        if "font" in self.kinds and font in {"", "helv", "tiro", "cour"}:
            font, size = self._font, size * self._scale
        original(sheet, rng, font=font, size=size, **more)

    def write(self, original: Any, sheet: Sheet, x: float, text: str, *args: Any, **options: Any) -> None:
        """Print point and comma exchanged."""
        original(sheet, x, self._print_numbers(text), *args, **options)

    def finish(self, original: Any, sheet: Sheet, *args: Any, **options: Any) -> Statement:
        """Note descriptions as they are printed."""
        statement: Statement = original(sheet, *args, **options)
        rows = tuple(replace(row, description=self._print_numbers(row.description)) for row in statement.rows)
        return replace(statement, rows=rows)

    def print_head(self, original: Any, table: Table) -> None:
        """Print each word of a title on a line of its own."""
        columns = [replace(each, head=tuple(" ".join(filter(None, each.head)).split())) for each in table.columns]
        original(replace(table, columns=columns) if "stacked titles" in self.kinds else table)

    def print_row(self, original: Any, table: Table, cells: Cells, *, bold: bool = False) -> None:
        """Print the columns elsewhere."""
        key = tuple(replace(each, head=()) for each in table.columns)
        if key not in self._places:
            self._places[key] = _arrange(key, self.kinds, self._rng)
        original(replace(table, columns=self._places[key]), cells, bold=bold)

    def print_entry(self, original: Any, table: Table, entry: Entry, cells: dict[str, str]) -> None:
        """Print the amounts beside the last line of a description."""
        if len(entry.lines) < 2 or "amounts below" not in self.kinds or table.is_split:
            original(table, entry, cells)
            return
        amounts = {each.key for each in table.columns if each.side == "r"}
        for position, text in enumerate(entry.lines):
            is_printed = {"first": position == 0, "last": position == len(entry.lines) - 1}
            marks = {"mark": entry.marks[position]} if position < len(entry.marks) else {}
            there = {key: cell for key, cell in cells.items() if is_printed["last" if key in amounts else "first"]}
            table.sheet.down(table.sheet.size * table.inner if position else 0)
            table.row(there | {"text": text} | marks)
        table.sheet.down(table.sheet.step)

    def _print_numbers(self, text: str) -> str:
        return _exchange_decimals(text) if "decimals" in self.kinds else text


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
