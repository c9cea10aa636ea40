"""Bench of tables without rules: found as tables, and look-alikes told as tables.

Run in ``tests``: ``python -m benchmarks.aligned_tables --half open``, with ``--scans`` for the scanned twins.
"""

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.first_contact.aligned_tables.drawing import Item, draw_page, load_items, scan_page

from evalkit.documents.bundle import Page
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings

Table = list[list[str]]
_TIMESTAMP = "2026-01-01T00:00:00Z"
_SECONDS_PER_PAGE = 60
_TILTS = (0.0, 0.4, -0.3, 0.0, 0.7)


@dataclass(frozen=True)
class Score:
    """Outcome of one page."""

    item: Item
    found: list[Table]
    is_exact: bool
    is_shape_right: bool
    right_cells: int
    cells: int


def score_item(item: Item, page: Page) -> Score:
    """Compare the tables of a page with those expected, in reading order."""
    found = [_cells_of(block.text) for block in page.blocks if block.type == "table"]
    expected: list[Table] = item["tables"]
    right = sum(_count_right(table, found) for table in expected)
    shapes = [[len(row) for row in table] for table in expected]
    return Score(
        item=item,
        found=found,
        is_exact=found == [_cells_of_rows(table) for table in expected],
        is_shape_right=[[len(row) for row in table] for table in found] == shapes,
        right_cells=right,
        cells=sum(len(row) for table in expected for row in table),
    )


def _cells_of(text: str) -> Table:
    return _cells_of_rows([line.split("\t") for line in text.split("\n")])


def _cells_of_rows(rows: Table) -> Table:
    return [[" ".join(cell.split()) for cell in row] for row in rows]


def _count_right(expected: Table, found: list[Table]) -> int:
    """Return the number of cells at their place in the found table that fits best."""
    wanted = _cells_of_rows(expected)
    return max(
        (
            sum(
                cell == other
                for row, other_row in zip(wanted, table, strict=False)
                for cell, other in zip(row, other_row, strict=False)
            )
            for table in found
        ),
        default=0,
    )


def read_item(item: Item, number: int, folder: Path, scans: bool) -> Page:
    """Draw an item's page, scan it if asked, and read it."""
    path = folder / f"{item['id']}.pdf"
    draw_page(item, path)
    if not scans:
        return read_document(path, doc_id=item["id"], processing_timestamp=_TIMESTAMP).pages[0]
    scanned = folder / f"{item['id']}_scan.pdf"
    scan_page(path, scanned, tilt=_TILTS[number % len(_TILTS)], seed=number)
    settings = PageOcrSettings(resolve_ocr_engine("auto"), _SECONDS_PER_PAGE)
    return read_document(scanned, doc_id=item["id"], processing_timestamp=_TIMESTAMP, ocr_settings=settings).pages[0]


def report(scores: list[Score]) -> str:
    """Return the figures of a half, pages with tables and look-alikes side by side."""
    tables = [score for score in scores if score.item["has_tables"]]
    look_alikes = [score for score in scores if not score.item["has_tables"]]
    cells, right = sum(score.cells for score in tables), sum(score.right_cells for score in tables)
    return "\n".join(
        (
            f"pages with tables      {len(tables):4}   look-alikes            {len(look_alikes):4}",
            f"  any table found      {sum(bool(score.found) for score in tables):4}"
            f"   told as tables         {sum(bool(score.found) for score in look_alikes):4}",
            f"  rows x columns right {sum(score.is_shape_right for score in tables):4}",
            f"  every cell right     {sum(score.is_exact for score in tables):4}",
            f"  cells right          {right} of {cells} ({right / max(cells, 1):.3f})",
        )
    )


def main() -> None:
    """Read every page of a half and print the figures."""
    parser = argparse.ArgumentParser(description="Score the tables found on drawn pages.")
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--scans", action="store_true", help="read scanned twins")
    parser.add_argument("--list", action="store_true", help="name the pages of the open half that went wrong")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scores = [
            score_item(item, read_item(item, number, Path(folder), arguments.scans))
            for number, item in enumerate(load_items(arguments.half))
        ]
    print(report(scores))
    if arguments.list and arguments.half == "open":
        for score in scores:
            if not score.is_exact:
                print(f"{score.item['id']}: {score.item['what']}; {len(score.found)} tables found")


if __name__ == "__main__":
    main()
