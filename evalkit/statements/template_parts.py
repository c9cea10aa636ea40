"""Derive a template's columns, regions, headings and sum labels from a statement."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice, pairwise, product, takewhile
from typing import Literal

from evalkit.documents.bundle import Box
from evalkit.statements.amounts import MINUS_MARKS, find_currency_codes, parse_amount
from evalkit.statements.bank_vocabulary import load_bank_vocabulary, match_at_line_start, strip_accents
from evalkit.statements.layout_survey import (
    AlignedColumn,
    LayoutSurvey,
    build_pattern_with_any_numbers,
    find_line_amounts,
    find_line_dates,
)
from evalkit.statements.statement_parser import ParsedStatement
from evalkit.statements.statement_template import (
    Column,
    ColumnName,
    Direction,
    PageKind,
    PrintedSumLabels,
    Region,
    SectionHeading,
    StatementTemplate,
    TotalLabel,
)
from evalkit.statements.text_lines import TextLine

#: Space left beside a column's outermost words, so that longer words fit too, in page widths.
_COLUMN_MARGIN = 0.03
NARROW_MARGIN = 0.004
_WIDE_REGION_MARGIN = 0.03
_MAX_HEADING_WORDS = 8
#: Most characters of a bank or a product in a template's id.
_MAX_ID_PART = 60
#: Smallest share of numbers among the words of a column of check numbers.
_MIN_CHECK_NUMBER_SHARE = 0.8
#: Amounts that fewer rows make are no proof of a sum.
_MIN_ROWS_OF_SUMS = 3
#: Default top and bottom of a region, in page heights; lines below the footer's top count as footer.
_DEFAULT_REGION_TOP, _FOOTER_TOP, _DEFAULT_REGION_BOTTOM = 0.06, 0.9, 0.96


def build_columns(layout: LayoutSurvey, column_names: Sequence[ColumnName]) -> tuple[Column, ...]:
    """Build the template's columns from left to right, without gaps between them.

    ``column_names``: the meaning of each surveyed column of amounts.
    """
    spans: list[tuple[ColumnName, float, float]] = [("date", layout.date_column.x0, layout.date_column.x1)]
    if layout.value_date_column:
        spans.append(("value_date", layout.value_date_column.x0, layout.value_date_column.x1))
    spans += [
        (name, amount_column.x0, amount_column.x1)
        for name, amount_column in zip(column_names, layout.amount_columns, strict=True)
    ]
    spans += [("other", column.x0, column.x1) for column in layout.reference_columns]
    if layout.direction_column:
        spans.append(("direction", layout.direction_column.x0, layout.direction_column.x1))
    if check_number_column := _find_check_number_column(layout):
        spans.append(("check_number", check_number_column.x0, check_number_column.x1))
    spans.append(("description", *_find_description_span(layout, [span[1:] for span in spans])))
    spans.sort(key=lambda span: span[1])
    edges = [
        max(spans[0][1] - _COLUMN_MARGIN, 0.0),
        *(_compute_column_edge(a, b) for a, b in pairwise(spans)),
        min(spans[-1][2] + _COLUMN_MARGIN, layout.panels[0].box[2] if layout.panels else 1.0),
    ]
    return tuple(
        Column(name=name, x=(round(x0, 4), round(x1, 4)), title=_read_column_title(layout, x0, x1))
        for (name, *_), (x0, x1) in zip(spans, pairwise(edges), strict=True)
    )


def _compute_column_edge(
    left_span: tuple[ColumnName, float, float], right_span: tuple[ColumnName, float, float]
) -> float:
    """Compute the x of the edge between two columns.

    Amounts are right-aligned and may be longer on the left; texts may be longer on the right.
    """
    left_limit = min(left_span[2], right_span[1] - NARROW_MARGIN)
    return max(
        left_limit + NARROW_MARGIN / 2,
        right_span[1]
        - (_COLUMN_MARGIN if right_span[0] in ("debit", "credit", "amount", "balance", "other") else NARROW_MARGIN),
    )


def _find_description_span(layout: LayoutSurvey, taken_spans: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Find the left and right edge of the descriptions.

    These are the words right of the dates and outside the taken spans.
    """
    row_spans: list[tuple[float, float]] = []
    first_amount_x = min(amount_column.x0 for amount_column in layout.amount_columns)
    for placed_text in layout.date_column.dates_or_amounts:
        words = [
            word
            for word in placed_text.line.words
            if placed_text.x1 < word.box[0]
            and not any(x0 - NARROW_MARGIN <= word.center_x <= x1 + NARROW_MARGIN for x0, x1 in taken_spans)
        ]
        if words:
            row_spans.append((words[0].box[0], max(word.box[2] for word in words)))
    if not row_spans:
        return layout.date_column.x1 + NARROW_MARGIN, first_amount_x - NARROW_MARGIN
    starts = sorted(x0 for x0, _ in row_spans)
    return starts[len(starts) // 20], max(
        x1 for _, x1 in row_spans if x1 < first_amount_x or x1 == max(x for _, x in row_spans)
    )


def _find_check_number_column(layout: LayoutSurvey) -> AlignedColumn | None:
    pattern = load_bank_vocabulary().columns["check_number"]
    for cell in (
        cell for line in layout.header_lines for cell in line.cells if match_at_line_start(pattern, cell.text)
    ):
        x0, _, x1, _ = cell.box
        words_below = [
            word
            for placed_text in layout.date_column.dates_or_amounts
            for word in placed_text.line.words
            if word.box[0] < x1 and x0 < word.box[2]
        ]
        number_words = [word for word in words_below if re.fullmatch(r"\W?\d{2,8}\W?", word.text)]
        # If only one table has check numbers here, other tables have texts below this title's place.
        has_numbers = number_words and len(number_words) >= _MIN_CHECK_NUMBER_SHARE * len(words_below)
        if has_numbers and not any(amount_column.overlaps(x0, x1) for amount_column in layout.amount_columns):
            return AlignedColumn(
                min([x0, *(word.box[0] for word in number_words)]),
                max([x1, *(word.box[2] for word in number_words)]),
                (),
            )
    return None


def _read_column_title(layout: LayoutSurvey, x0: float, x1: float) -> str:
    words = (word.text for line in layout.header_lines for word in line.words if x0 <= word.center_x < x1)
    return " ".join(dict.fromkeys(words))


def derive_sum_labels(layout: LayoutSurvey) -> PrintedSumLabels:
    """Derive patterns for the labels of the sums that the statement prints."""
    labels_by_kind: dict[str, dict[str, bool]] = {}
    table_line_ids = {
        id(line) for page_number in layout.row_positions_by_page for line in layout.select_table_lines(page_number)
    }
    for line, labelled_amount in layout.labelled_amounts:
        kind, is_inside_table = labelled_amount.kind, id(line) in table_line_ids
        # Else it is a transaction whose description begins like the label of a sum.
        if (
            kind not in ("deposits", "withdrawals")
            or not is_inside_table
            or match_at_line_start(load_bank_vocabulary().subtotal, labelled_amount.label)
        ):
            labels_by_kind.setdefault(kind, {})[_make_label_pattern(kind, labelled_amount.label)] = is_inside_table
    # If the statement labels both balances "Balance on …", the same label is used for opening and closing balance.
    label_counts = Counter(
        _make_label_pattern(labelled_amount.kind, labelled_amount.label)
        for _, labelled_amount in layout.labelled_amounts
        if labelled_amount.kind == "opening"
    )
    for label, count in label_counts.items():
        if (
            count > 1
            and not labels_by_kind.get("closing")
            and match_at_line_start(load_bank_vocabulary().closing, label.replace("\\", ""))
        ):
            labels_by_kind.setdefault("closing", {})[label] = False
    totals = [TotalLabel(label=label, of="columns") for label in dict.fromkeys(_find_column_total_labels(layout))]
    kinds: tuple[Literal["deposits", "withdrawals"], ...] = ("deposits", "withdrawals")
    for kind in kinds:
        labels = labels_by_kind.get(kind, {})
        grand_total_labels = [label for label in labels if match_at_line_start(load_bank_vocabulary().whole, label)]
        part_labels = [
            label
            for label, is_in_table in labels.items()
            if not is_in_table and not match_at_line_start(load_bank_vocabulary().subtotal, label)
        ]
        table_total_labels = [
            label for label, is_in_table in labels.items() if is_in_table and label not in grand_total_labels
        ]
        chosen_labels = [*grand_total_labels, *table_total_labels] or part_labels
        totals += [
            TotalLabel(label=label, of=kind, part=chosen_labels is part_labels and len(part_labels) > 1)
            for label in chosen_labels
        ]
    totals.sort(
        key=lambda total: -len(total.label)
    )  # longest first: "Total deposits" would also match "Total deposits and credits"
    return PrintedSumLabels(
        opening=tuple(labels_by_kind.get("opening", ())),
        closing=tuple(labels_by_kind.get("closing", ())),
        total=tuple(totals),
    )


def derive_sum_labels_by_value(
    layout: LayoutSurvey, statement: ParsedStatement, template: StatementTemplate, *, is_proven: bool
) -> PrintedSumLabels:
    """Add labels of sums whose printed amounts equal sums of the rows.

    An opening and a closing balance are two amounts that differ by all rows; unless the directions are proven
    (``is_proven``), the first is above the rows and the other below. Kinds that have a label keep theirs.
    """
    labels, rules, rows = template.reconciliation, template.amounts, statement.transactions
    if template.rows.accounts or len(rows) < _MIN_ROWS_OF_SUMS:
        return labels
    is_owed, change = rules.balance == "owed", sum((row.amount for row in rows), Decimal(0))
    printed = layout.amounts_of_any_label
    starts, ends = (
        [("", printed_sum.value) for printed_sum in statement.sums if printed_sum.kind == kind]
        or [
            (placed.label, placed.amount.compute_signed_balance(is_debt_if_unmarked=is_owed))
            for placed in printed
            if is_proven or (placed.is_above_rows if kind == "opening" else placed.is_below_rows)
        ]
        for kind in ("opening", "closing")
    )
    pairs = ((a, b) for (a, start), (b, end) in product(starts, ends) if (a or b) and end - start == change)
    opening, closing = next(pairs, ("", "")) if change else ("", "")
    incoming = sum((row.amount for row in rows if row.amount > 0), Decimal(0))
    named = {total.of for total in labels.total}
    totals: tuple[tuple[Literal["deposits", "withdrawals"], Decimal], ...] = (
        ("deposits", incoming),
        ("withdrawals", incoming - change),
    )
    return PrintedSumLabels(
        opening=(*labels.opening, *filter(None, (opening,))),
        closing=(*labels.closing, *filter(None, (closing,))),
        total=(
            *labels.total,
            *(
                TotalLabel(label=label, of=kind)
                for kind, value in totals
                for label, amount, *_ in printed
                if not named & {kind, "columns"} and amount.magnitude == value != 0 and label not in (opening, closing)
            ),
        ),
    )


def _find_column_total_labels(layout: LayoutSurvey) -> Iterator[str]:
    for lines in layout.lines_by_page:
        for line in lines:
            if (
                layout.is_sum_line(line)
                or layout.is_row_start(line)
                or not match_at_line_start(load_bank_vocabulary().subtotal, line.text)
            ):
                continue
            line_amounts = list(find_line_amounts(line, layout.decimal_separator, cents_optional=layout.cents_optional))
            if len(line_amounts) > 1 and all(
                any(
                    amount_column.overlaps(placed_amount.x0, placed_amount.x1)
                    for amount_column in layout.amount_columns
                )
                for placed_amount in line_amounts
            ):
                yield build_pattern_with_any_numbers(
                    " ".join(word.text for word in line.words if word.box[2] <= line_amounts[0].x0)
                )


def _make_label_pattern(kind: str, text: str) -> str:
    """Build a pattern of the label without its dates and counts, which change monthly."""
    balance_pattern = {"opening": load_bank_vocabulary().opening, "closing": load_bank_vocabulary().closing}.get(kind)
    match = match_at_line_start(balance_pattern, text) if balance_pattern else None
    label_words = match.group() if match else re.split(r"\s*\(?\d", text, maxsplit=1)[0]
    return build_pattern_with_any_numbers(label_words or text)


def _is_apart(layout: LayoutSurvey, lines: Sequence[TextLine], position: int) -> bool:
    """Return True if a line is further from the one above than the lines of a row."""
    line, above = lines[position], lines[position - 1]
    distance = line.deskewed_center_y - above.deskewed_center_y
    return position > 0 and distance > layout.continuation_gap * above.height


def find_direction_headings(layout: LayoutSurvey) -> tuple[SectionHeading, ...]:
    """Find the headings that say if the amounts below are deposits or withdrawals."""
    section_by_heading = {
        label: SectionHeading(heading=build_pattern_with_any_numbers(label), direction=direction)
        for label, direction in _find_group_totals(layout)
    }
    vocabulary, kind = load_bank_vocabulary(), layout.kind_evidence.kind
    heading_patterns: tuple[tuple[str, Literal["deposit", "withdrawal"]], ...] = (
        ((kind and kind.deposits) or vocabulary.deposits_heading, "deposit"),
        ((kind and kind.withdrawals) or vocabulary.withdrawals_heading, "withdrawal"),
    )
    for lines, row_positions in layout.row_positions_by_page.values():
        for position in range(max(row_positions[0] - 4, 0), row_positions[-1]):
            line = lines[position]
            is_no_heading = (
                layout.is_header_line(line)
                or layout.is_sum_line(line)
                or layout.is_row_start(line)
                or len(line.cells) > 1
                or line.text[-1:].isdigit()
                # The second line of a description begins right of the dates, below a row, and is not apart.
                or (
                    line.box[0] >= layout.date_column.x1
                    and not layout.is_sum_line(lines[position - 1])
                    and not _is_apart(layout, lines, position)
                )
            )
            direction = next(
                (direction for pattern, direction in heading_patterns if match_at_line_start(pattern, line.text)), None
            )
            if direction and not is_no_heading:
                heading = SectionHeading(heading=build_pattern_with_any_numbers(line.text), direction=direction)
                section_by_heading.setdefault(line.text, heading)
    return tuple(section_by_heading.values())


def _find_group_totals(layout: LayoutSurvey) -> list[tuple[str, Direction]]:
    """Find labels of marked totals that are printed above their unmarked rows.

    None unless every amount of the table is a total or a part of the last one.
    """
    totals: list[tuple[str, Direction]] = []
    rest = Decimal(0)
    amounts = layout.amount_columns[-1].dates_or_amounts
    for placed in sorted(amounts, key=lambda placed: (placed.line.page_number, placed.line.deskewed_center_y)):
        amount = parse_amount(placed.text, layout.decimal_separator, cents_optional=layout.cents_optional)
        if amount is None or (amount.sign_mark is None) == (rest == 0):
            return []
        if amount.sign_mark:
            other_words = {*placed.words, *(word for day in find_line_dates(placed.line) for word in day.words)}
            label = " ".join(word.text for word in placed.line.words if word not in other_words)
            totals.append((label, "withdrawal" if amount.sign_mark in MINUS_MARKS else "deposit"))
        rest = amount.magnitude if amount.sign_mark else rest - amount.magnitude
    return [] if rest or len(set(totals)) == len(totals) else totals


def find_account_heading_patterns(layout: LayoutSurvey, *, is_by_place: bool) -> tuple[str, ...]:
    """Return patterns of headings that name an account; empty for a single account.

    Only headings with transactions below them count, and with a balance: the number of a card has none.
    ``is_by_place``: whatever is printed right above the titles of a table is its heading.
    """
    current_heading, headings_of_rows, headings_of_balances = "", list[str](), set[str]()
    balance_line_ids = {id(line) for line, amount in layout.labelled_amounts if amount.kind in ("opening", "closing")}
    has_balance_column = any(
        match_at_line_start(load_bank_vocabulary().columns["balance"], title)
        for column in layout.amount_columns
        for title in column.list_titles(layout.header_lines)
    )
    for lines in layout.lines_by_page:
        is_in_row = False
        for position, line in enumerate(lines):
            if has_balance_column or id(line) in balance_line_ids:
                headings_of_balances.add(current_heading)
            is_in_row = is_in_row and line.box[0] >= layout.date_column.x1 and not _is_apart(layout, lines, position)
            if layout.is_row_start(line):
                is_in_row = True
                headings_of_rows.append(current_heading)
            elif not (is_in_row or layout.is_header_line(line)) and (
                any(map(layout.is_header_line, lines[position + 1 : position + 2]))
                if is_by_place
                else _is_account_heading(layout, line)
            ):
                current_heading = re.sub(r"\W*\(?continued\)?$", "", line.text, flags=re.IGNORECASE)
    headings = [heading for heading in dict.fromkeys(headings_of_rows) if heading in headings_of_balances - {""}]
    patterns = tuple(dict.fromkeys(map(build_pattern_with_any_numbers, headings)))
    return patterns if len(headings) > 1 else ()


def _is_account_heading(layout: LayoutSurvey, line: TextLine) -> bool:
    """Return True if the line is short and names an account, without an amount.

    Left of the descriptions the name of a currency is enough.
    """
    return (
        len(line.words) <= _MAX_HEADING_WORDS
        and not re.search(r"\d[.,]\d\d\b", line.text)
        and (
            bool(match_at_line_start(load_bank_vocabulary().account, line.text))
            or (line.box[0] < layout.date_column.x1 and bool(find_currency_codes(line.text)))
        )
    )


def find_table_box_by_page(layout: LayoutSurvey, *, has_wide_regions: bool) -> dict[int, Box]:
    """Find the table's box on each page that has rows, in full page width.

    The box reaches from the first row down to the footer, because other statements have more rows; the template's
    ``ends`` mark the end of the table within the box. ``has_wide_regions``: extend the box by 3 % of the page up and
    down.
    """
    box_by_page: dict[int, Box] = {}
    for page_number, (lines, row_positions) in layout.row_positions_by_page.items():
        first_row_position = row_positions[0]
        header_position = next(
            (number for number in range(first_row_position - 1, -1, -1) if layout.is_header_line(lines[number])), None
        )
        top = (
            (lines[header_position].box[3] + lines[header_position + 1].box[1]) / 2
            if header_position is not None
            else max(lines[first_row_position].box[1] - lines[first_row_position].height / 2, 0.0)
        )
        footer_line = next(
            (
                line
                for line in lines[_find_last_table_line(layout, lines, row_positions[-1]) + 1 :]
                if line.box[1] > _FOOTER_TOP
            ),
            None,
        )
        bottom = (
            footer_line.box[1] - NARROW_MARGIN
            if footer_line
            else max(_DEFAULT_REGION_BOTTOM, lines[row_positions[-1]].box[3] + NARROW_MARGIN)
        )
        if has_wide_regions:
            top, bottom = max(top - _WIDE_REGION_MARGIN, 0.0), min(bottom + _WIDE_REGION_MARGIN, 1.0)
        box_by_page[page_number] = (0.0, top, 1.0, min(bottom, 1.0))
    return box_by_page


def find_table_end_patterns(layout: LayoutSurvey) -> tuple[str, ...]:
    """Return patterns of the first line after each table, which ends the transactions."""
    end_patterns: dict[str, None] = {}
    headings = [section.heading for section in find_direction_headings(layout)]
    has_begun = False
    for page_number, lines in enumerate(layout.lines_by_page, 1):
        _, row_positions = layout.row_positions_by_page.get(page_number, (lines, ()))
        if not row_positions and has_begun:
            foreign_lines = (line for line in lines if not _is_sum_heading_or_furniture(layout, line, headings))
            end_patterns |= {build_pattern_with_any_numbers(line.text): None for line in islice(foreign_lines, 1)}
        has_begun = has_begun or bool(row_positions)
        for row_position, next_position in pairwise((*row_positions, len(lines))):
            lines_between = lines[row_position + 1 : next_position]
            if next_position < len(lines) and not any(layout.is_header_line(line) for line in lines_between):
                continue
            lines_after_table = lines[
                _find_last_table_line(layout, lines[:next_position], row_position) + 1 : next_position
            ]
            foreign_line = next((line for line in lines_after_table if not layout.is_header_line(line)), None)
            if (
                foreign_line
                and foreign_line.box[1] <= _FOOTER_TOP
                and not _is_sum_heading_or_furniture(layout, foreign_line, headings)
            ):
                end_patterns[build_pattern_with_any_numbers(foreign_line.text)] = None
    return tuple(pattern for pattern in end_patterns if re.search(r"[^\W\d_]{2}", pattern))


def _is_sum_heading_or_furniture(layout: LayoutSurvey, line: TextLine, headings: Sequence[str]) -> bool:
    """Return True if the line is a sum, a heading, or a known non-transaction line."""
    vocabulary = load_bank_vocabulary()
    patterns = (*vocabulary.furniture, vocabulary.deposits_heading, vocabulary.withdrawals_heading, *headings)
    return (
        layout.is_sum_line(line)
        or any(match_at_line_start(pattern, line.text) for pattern in patterns)
        or _is_account_heading(layout, line)
    )


def _find_last_table_line(layout: LayoutSurvey, lines: Sequence[TextLine], last_row_position: int) -> int:
    """Return the position of the table's last line, which may follow its last row.

    Continuation lines, sums and known lines without a transaction still belong to the table.
    """
    for position in range(last_row_position + 1, len(lines)):
        line, previous_line = lines[position], lines[position - 1]
        is_known_line = layout.is_sum_line(line) or any(
            match_at_line_start(pattern, line.text) for pattern in load_bank_vocabulary().furniture
        )
        is_below_text = (
            layout.date_column.x1 < line.box[0]
            # The value date of a row may be printed below its date.
            or any(layout.date_column.overlaps(day.x0, day.x1) for day in find_line_dates(line))
        )
        is_continuation = is_below_text and not any(
            column.overlaps(line.box[0], line.box[2]) for column in layout.amount_columns
        )
        has_amount = not layout.is_row_start(line) and _ends_in_amount(layout, line)
        if (
            line.deskewed_center_y - previous_line.deskewed_center_y > layout.continuation_gap * previous_line.height
            or not (is_known_line or is_continuation or has_amount)
        ):
            return position - 1
    return len(lines) - 1


def _ends_in_amount(layout: LayoutSurvey, line: TextLine) -> bool:
    """Return True if the line's last word belongs to an amount in a column of amounts."""
    return any(
        placed_amount.x1 == line.words[-1].box[2]
        and any(
            amount_column.overlaps(placed_amount.x0, placed_amount.x1 + NARROW_MARGIN)
            for amount_column in layout.amount_columns
        )
        for placed_amount in find_line_amounts(line, layout.decimal_separator, cents_optional=layout.cents_optional)
    )


def find_repeated_line_patterns(layout: LayoutSurvey) -> Iterator[str]:
    """Return patterns of lines outside the table that repeat on several pages.

    Lines that differ only in their numbers count as equal.
    """
    pattern_counts: Counter[str] = Counter()
    table_patterns: set[str] = set()  # a row's last line may be the first on a page
    for page_number, (lines, _) in layout.row_positions_by_page.items():
        table_line_ids = {id(line) for line in layout.select_table_lines(page_number)}
        table_patterns.update(build_pattern_with_any_numbers(line.text) for line in lines if id(line) in table_line_ids)
        pattern_counts.update(
            {
                build_pattern_with_any_numbers(line.text)
                for line in lines
                if not (
                    id(line) in table_line_ids
                    or layout.is_header_line(line)
                    or layout.is_sum_line(line)
                    or _ends_in_amount(layout, line)
                )
            }
        )
    return (
        pattern
        for pattern, count in pattern_counts.items()
        if count > 1 and pattern not in table_patterns and re.search(r"[^\W\d_]{2}", pattern)
    )


def find_balance_line_patterns(layout: LayoutSurvey) -> Iterator[str]:
    """Return patterns of balance lines, which the rows between them add up to.

    Such as balances at the end of each day, printed below the rows' amounts.
    """
    amounts: list[tuple[str, Decimal]] = []
    for lines, row_positions in layout.row_positions_by_page.values():
        for line in lines[row_positions[0] :]:
            *_, placed = [
                None,
                *find_line_amounts(line, layout.decimal_separator, cents_optional=layout.cents_optional),
            ]
            amount = placed and parse_amount(
                placed.text, layout.decimal_separator, cents_optional=layout.cents_optional
            )
            if placed and amount and any(column.overlaps(placed.x0, placed.x1) for column in layout.amount_columns):
                label = " ".join(word.text for word in line.words if word.box[2] <= placed.x0)
                value = -amount.magnitude if amount.sign_mark in MINUS_MARKS else amount.magnitude
                amounts.append((build_pattern_with_any_numbers(label), value))
    counts = Counter(label for label, _ in amounts)
    for label in [label for label, count in counts.items() if label and count >= _MIN_ROWS_OF_SUMS]:
        balance, steps = None, list[bool]()
        for other_label, value in amounts:
            if other_label != label:
                balance = None if balance is None else balance + value
                continue
            steps += [] if balance is None else [balance == value]
            balance = value
        if all(steps):
            yield label


def build_regions(
    box_by_page: Mapping[int, Box], columns: Sequence[Column], panels: Sequence[Region]
) -> tuple[Region, ...]:
    """Build regions for the first page and for later pages, as wide as the columns.

    ``panels``: the tables that are printed side by side; each gets a region.
    """
    left_edge, right_edge = columns[0].x[0], columns[-1].x[1]
    ranges = [
        (max(left_edge + panel.shift, panel.box[0]), min(right_edge + panel.shift, panel.box[2]), panel.shift)
        for panel in panels
    ] or [(left_edge, right_edge, 0.0)]
    first_boxes = [box for page_number, box in box_by_page.items() if page_number == 1]
    later_boxes = [box for page_number, box in box_by_page.items() if page_number > 1]
    # A one-page statement does not show how later pages look.
    boxes_by_kind: dict[PageKind, list[Box]] = {
        "first": first_boxes,
        "later": later_boxes or [(0.0, _DEFAULT_REGION_TOP, 1.0, box[3]) for box in first_boxes],
    }
    return tuple(
        Region(
            pages=page_kind,
            box=(
                round(x0, 4),
                round(min(box[1] for box in boxes), 4),
                round(x1, 4),
                round(max(box[3] for box in boxes), 4),
            ),
            shift=round(shift, 4),
        )
        for page_kind, boxes in boxes_by_kind.items()
        if boxes
        for x0, x1, shift in ranges
    )


def find_bank_name(layout: LayoutSurvey) -> str | None:
    """Return the bank's name: the first cell above the rows that looks like a name."""
    pattern = re.compile(load_bank_vocabulary().bank, re.IGNORECASE)
    return next(
        (
            cell.text
            for line in takewhile(lambda line: not layout.is_row_start(line), layout.lines_by_page[0])
            for cell in line.cells
            if pattern.match(cell.text) and len(cell.words) <= _MAX_HEADING_WORDS
        ),
        None,
    )


def derive_template_id(bank: str | None, product: str, statement_sha256: str) -> str:
    """Derive an id from the bank and its product; from the statement without a bank.

    >>> derive_template_id("Banque d'Été", "Compte courant", "a1" * 32), derive_template_id(None, "", "a1" * 32)
    ('banque_d_ete_compte_courant_v1', 'statement_a1a1a1a1')
    """
    bank_part, product_part = (
        re.sub(r"[^a-z0-9]+", "_", strip_accents(name).casefold()).strip("_")[:_MAX_ID_PART]
        for name in (bank or "", product)
    )
    if not bank_part:
        return f"statement_{statement_sha256[:8]}"
    return "_".join(filter(None, (bank_part, "" if product_part in bank_part else product_part, "v1")))
