"""Typed values: ``python -m benchmarks.typed_values [--half open|sealed]``.

The rows are by another author, who has not read the rule: a text typed into a field, and whether it must be taken whole or
refused. A text wrongly kept loses facts (the grave error); one wrongly refused costs keys. A whole text counts as kept only
if every number that was typed and is meant is in the kept value.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.extraction.field_template import TemplateField
from evalkit.review.field_answers import check_field_text

FOLDER = Path(__file__).parent / "first_contact" / "typed_values"
_ROMAN = {"iv": "4", "iii": "3", "ii": "2", "i": "1"}
_MONTHS = {
    month: str(number)
    for number, month in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}


@dataclass(frozen=True)
class Outcome:
    """Outcome of one typed text."""

    row: dict[str, Any]
    value: str | None
    problem: str

    @property
    def name(self) -> str:
        """``right``, ``wrongly kept`` (facts lost) or ``wrongly refused`` (keys lost)."""
        if self.value is None:
            return "right" if self.row["outcome"] == "refused" else "wrongly refused"
        if self.row["outcome"] == "refused" or self.lost_numbers:
            return "wrongly kept"
        return "right"

    @property
    def lost_numbers(self) -> set[float]:
        """The typed numbers that the text means, beyond the field's name, and that are not in the value."""
        meant = numbers(self.row["kept_means"]) & numbers(self.row["typed"])
        return meant - numbers(self.row["field"]) - numbers(self.value or "")


def numbers(text: str) -> set[float]:
    """The numbers of a text, of months and Roman numerals too; not those of names such as HER2."""
    words = re.findall(r"[A-Za-z]+|\d+(?:\.\d+)?", text.lower())
    return {float(known) for word in words if (known := _ROMAN.get(word, _MONTHS.get(word[:3], word)))[0].isdigit()}


def read_rows(half: str) -> list[dict[str, Any]]:
    """The rows of a half."""
    return [json.loads(line) for line in (FOLDER / f"{half}.jsonl").read_text("utf-8").splitlines()]


def try_rows(rows: Iterable[dict[str, Any]]) -> Iterator[Outcome]:
    """Type each row's text into a field of its format, which is called as the row says."""
    for row in rows:
        pattern = ".*" if row["format"] == "pattern" else None
        field = TemplateField(name="typed", description=row["field"], format=row["format"], pattern=pattern)
        checked = check_field_text(field, row["typed"])
        yield Outcome(row, checked.value, checked.problem)


def main() -> None:
    """Print how many were right, by what they should have been, and those that were not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--part", choices=("even", "odd"), help="only every second row")
    parser.add_argument("--counts", action="store_true", help="no row is printed")
    asked = parser.parse_args()
    rows = read_rows(asked.half)
    rows = rows if asked.part is None else rows[asked.part == "odd" :: 2]
    outcomes = list(try_rows(rows))
    for wanted in ("whole", "refused"):
        counts = Counter(one.name for one in outcomes if one.row["outcome"] == wanted)
        print(f"{wanted}: {counts.total()}", *(f"{name} {count}" for name, count in sorted(counts.items())), sep="  ")
    if not asked.counts:
        for one in outcomes:
            print(f"{one.name:16} {one.row['id']} [{one.row['format']}] {one.row['typed']!r} -> {one.value!r}")


if __name__ == "__main__":
    main()
