"""Separate what is printed side by side: tables in several panels, and lists beside a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from evalkit.core.grouping import group_by
from evalkit.statements.statement_template import Region
from evalkit.statements.text_lines import PageWord, TextLine

_AMOUNTS_ONLY = re.compile(r"[^\w]*(?:[A-Z]{1,3}\b\s*)?\d[\d.,' ]*[.,]\d\d\b[^\w]*(?:[A-Z]{1,3})?")


class PlacedLine(NamedTuple):
    """A line of a page, or the part of a line that is in a panel or beside all panels."""

    line: TextLine
    """The line as printed; of a line that was divided, the part."""
    line_in_panel: TextLine | None
    """Its words inside the panel, where they would be in the first panel; None outside all panels."""


def split_lines_into_panels(lines: Sequence[TextLine], panels: Sequence[Region]) -> list[PlacedLine]:
    """Order the lines of a page by panel, and divide those that reach into several.

    A line with a cell across the edge of a panel, or with a label and an amount on either side, is not divided: it ends
    the rows above it in all panels.
    """
    placed_lines: list[PlacedLine] = []
    #: The lines of each panel since the last undivided line; the last list: lines beside all panels.
    pending: list[list[PlacedLine]] = [[] for _ in (*panels, None)]
    for line in lines:
        parts = _divide_line(line, panels)
        is_inside = any(position < len(panels) for position in parts)
        is_level = any(panel.box[1] <= line.deskewed_center_y <= panel.box[3] for panel in panels)
        if (is_inside or is_level) and not (len(parts) > 1 and _is_undivided(line, list(parts.values()))):
            for position, part in parts.items():
                part_in_panel = None if position == len(panels) else shift_line(part, panels[position].shift)
                pending[position].append(PlacedLine(part, part_in_panel))
            continue
        placed_lines += (pending_line for panel_lines in pending for pending_line in panel_lines)
        pending = [[] for _ in pending]
        first_part = next((line.clip_to_box(panel.box) for panel in panels if line.clip_to_box(panel.box)), None)
        placed_lines.append(PlacedLine(line, first_part))
    return [*placed_lines, *(pending_line for panel_lines in pending for pending_line in panel_lines)]


def shift_line(line: TextLine, shift: float) -> TextLine:
    """Move a line to the left by a share of the page's width; its boxes on the page stay."""
    if not shift:
        return line

    def shift_word(word: PageWord) -> PageWord:
        x0, y0, x1, y1 = word.box
        return replace(word, box=(x0 - shift, y0, x1 - shift, y1), page_box=word.page_box or word.box)

    return replace(line, words=tuple(map(shift_word, line.words)))


def _divide_line(line: TextLine, panels: Sequence[Region]) -> dict[int, TextLine]:
    """Divide a line by panel, from the left; the last position is for words outside all."""
    words_by_position = group_by(
        line.words,
        lambda word: next(
            (
                number
                for number, (x0, y0, x1, y1) in enumerate(panel.box for panel in panels)
                if x0 <= word.center_x <= x1 and y0 <= (word.box[1] + word.box[3]) / 2 <= y1
            ),
            len(panels),
        ),
    )
    if len(words_by_position) == 1:
        return dict.fromkeys(words_by_position, line)
    return {position: replace(line, words=tuple(words)) for position, words in words_by_position.items()}


def _is_undivided(line: TextLine, parts: Sequence[TextLine]) -> bool:
    """Return True if a cell is in two parts, or a label in one and its amount in another."""
    part_by_word_id = {id(word): part for part in parts for word in part.words}
    if any(len({id(part_by_word_id[id(word)]) for word in cell.words}) > 1 for cell in line.cells):
        return True
    *left_parts, last_part = sorted(parts, key=lambda part: part.box[0])
    return bool(_AMOUNTS_ONLY.fullmatch(last_part.text)) and not any(
        re.search(r"\d[.,]\d\d\b", part.text) for part in left_parts
    )
