"""Direction of each row (money in or out), proven from the page alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import product
from typing import Literal, NamedTuple

from evalkit.core.document_cache import cache_document_text
from evalkit.core.grouping import group_pairs
from evalkit.statements.statement_audit import (
    AuditRow,
    AuditSum,
    PrintedAmount,
    StatementAudit,
    has_word,
    read_direction,
)

DirectionProof = Literal["", "titles", "headings", "marks", "running balance", "sums", "wording"]
Sign = Literal[-1, 0, 1]
#: Classes of rows with unknown directions that are tried in all combinations.
_MAX_OPEN_CLASSES = 6
#: Fewer are tried against amounts of any label, which more combinations would meet by chance.
_MAX_CLASSES_BY_PLACE = 2
#: Share of the rows of a class that must speak of repayments, and that the other rows must stay below.
_MIN_REPAYMENT_SHARE = 0.5
_MAX_OTHER_SHARE = 0.1
#: Fewer rows do not show if money is held or owed; nor do rows of which not this many times more take than give, or
#: whose amounts together are a smaller share of a balance.
_MIN_ROWS_OF_KIND, _MIN_SPENT_RATIO, _MIN_TURNOVER = 8, Decimal("1.5"), Decimal("0.5")
_SIGN_BY_WORD: dict[str, Sign] = {"in": 1, "out": -1, "": 0}


class ProvenDirection(NamedTuple):
    """Direction of a row: 1 for a deposit, -1 for a withdrawal, 0 if unproven."""

    sign: Sign
    proof: DirectionProof


class _Movement(NamedTuple):
    row: AuditRow
    amount: PrintedAmount | None
    row_class: tuple[object, ...]
    """Rows of one class go the same way: the same column, mark and heading."""


class _KnownDirections(NamedTuple):
    audit: StatementAudit
    movements: Sequence[_Movement]
    directions: Sequence[ProvenDirection]
    orientation: Sign

    @property
    def pairs(self) -> Iterator[tuple[_Movement, ProvenDirection]]:
        """Return each row with an amount and what is known of its direction."""
        return (pair for pair in zip(self.movements, self.directions, strict=True) if pair[0].amount)


@cache_document_text(8)  # several checks ask for the same pages
def prove_directions(audit: StatementAudit) -> tuple[ProvenDirection, ...]:
    """Return the direction of each row of the audit."""
    movements = [_build_movement(audit, row) for row in audit.rows]
    directions = [_read_row_direction(audit, movement) for movement in movements]
    orientation = find_balance_orientation(audit, directions)
    steps = list(_compute_balance_steps(audit, movements))
    for index, step in enumerate(steps):
        # Arithmetic outweighs a mark or a title.
        if step and orientation:
            directions[index] = _build_direction(orientation * step, "running balance")
    for solve in (_solve_by_balances, _solve_by_sums, _solve_by_marks, _solve_by_wording):
        for row_class, direction in solve(_KnownDirections(audit, movements, directions, orientation)).items():
            directions = [
                direction if movement.row_class == row_class and not known.sign else known
                for movement, known in zip(movements, directions, strict=True)
            ]
    return tuple(directions)


def find_balance_orientation(audit: StatementAudit, directions: Sequence[ProvenDirection] = ()) -> Sign:
    """Return 1 if unmarked balances are held, -1 if owed, 0 if unknown.

    Codes beside the balances, titles and headings count more than the words for the kind of statement.
    """
    movements = [_build_movement(audit, row) for row in audit.rows]
    steps = _compute_balance_steps(audit, movements)
    votes = sum(
        direction.sign * step
        for direction, step, movement in zip(directions, steps, movements, strict=False)
        if direction.proof in ("titles", "headings") or (movement.amount and movement.amount.mark in ("in", "out"))
    )
    if votes:
        return 1 if votes > 0 else -1
    return find_kind_orientation(audit)


@cache_document_text(8)
def find_kind_orientation(audit: StatementAudit) -> Sign:
    """Return 1 if this kind of statement shows money held, -1 if owed, else 0.

    If no word names a kind, the rows do: they take from what is held more often than they give, and in a month much of
    it. A debt mostly grows, and a loan hardly changes.
    """
    if audit.is_owed is not None:
        return -1 if audit.is_owed else 1
    movements = [_build_movement(audit, row) for row in audit.rows]
    amounts = [movement.amount for movement in movements if movement.amount]
    balances = [balance for row in audit.rows if (balance := audit.find_balance(row))]
    steps = [*_compute_balance_steps(audit, movements)]
    if not any(steps):
        steps = [-1 if amount.mark == "minus" else 1 for amount in amounts]
    largest = max((each.value for each in balances or [each.amount for each in audit.sums]), default=Decimal(0))
    is_held = (
        len(amounts) >= _MIN_ROWS_OF_KIND
        and steps.count(-1) > _MIN_SPENT_RATIO * steps.count(1)
        and sum(amount.value for amount in amounts) >= _MIN_TURNOVER * largest
        and not _names_debt(audit)
    )
    return 1 if is_held else 0


def _names_debt(audit: StatementAudit) -> bool:
    return any(has_word(line.text, "kind", "owed") for line in audit.other_lines)


def _build_direction(sign: int, proof: DirectionProof) -> ProvenDirection:
    return ProvenDirection(1, proof) if sign > 0 else ProvenDirection(-1, proof) if sign < 0 else ProvenDirection(0, "")


def _build_movement(audit: StatementAudit, row: AuditRow) -> _Movement:
    amount = audit.find_movement(row)
    column = audit.find_column(amount) if amount else None
    return _Movement(row, amount, (column.x if column else None, amount.mark if amount else "", row.heading))


def _read_row_direction(audit: StatementAudit, movement: _Movement) -> ProvenDirection:
    """Read the direction from the column's title, else the heading, else the mark."""
    row, amount = movement.row, movement.amount
    column = audit.find_column(amount) if amount else None
    if amount is None or column is None:
        return ProvenDirection(0, "")
    by_title: Sign = 1 if column.role == "credit" else -1 if column.role == "debit" else 0
    if not by_title:
        by_title = _SIGN_BY_WORD[read_direction(column.title, is_owed=audit.is_owed)]
    base = by_title or _SIGN_BY_WORD[read_direction(row.heading, is_owed=audit.is_owed)]
    proof: DirectionProof = "titles" if by_title else "headings"
    if amount.mark in ("in", "out"):
        return _build_direction(1 if amount.mark == "in" else -1, "marks")
    if base:
        is_reversal = amount.mark == "minus" and _is_rare_mark(audit, movement)
        return _build_direction(-base if is_reversal else base, proof)
    return _build_direction(_read_plain_mark(audit, amount), "marks")


def _read_plain_mark(audit: StatementAudit, amount: PrintedAmount) -> Sign:
    """Return the direction of a plus, a minus or no mark.

    A line that explains the mark decides, or the kind of statement.
    """
    by_legend = _read_legend(audit, amount.mark or "unmarked")
    if by_legend or not amount.mark:
        return by_legend
    # Where a title is understood, a debt would be named.
    is_named = any(column.role in ("debit", "credit", "amount") for column in audit.columns)
    if audit.is_owed or (
        audit.is_owed is None and (_names_debt(audit) or not (is_named or find_kind_orientation(audit)))
    ):
        # On a card plus and minus may mean the debt's growth: only a plus beside unmarked charges is a credit.
        has_minus = any(other.mark == "minus" for row in audit.rows if (other := audit.find_movement(row)))
        return 1 if amount.mark == "plus" and not has_minus else 0
    return 1 if amount.mark == "plus" else -1


def _is_rare_mark(audit: StatementAudit, movement: _Movement) -> bool:
    column = movement.row_class[0]
    marks = [
        other.amount.mark
        for other in (_build_movement(audit, row) for row in audit.rows)
        if other.amount and other.row_class[0] == column and other.row.heading == movement.row.heading
    ]
    return marks.count("minus") * 2 < len(marks)


def _read_legend(audit: StatementAudit, name: str) -> Sign:
    """Return the direction that a line explains for this mark; 0 without such a line."""
    return next(
        (
            sign
            for line in audit.other_lines
            if name != "plus"
            and has_word(line.text, "legend", name)
            and (sign := _SIGN_BY_WORD[read_direction(line.text, is_owed=audit.is_owed)])
        ),
        0,
    )


def _compute_balance_steps(audit: StatementAudit, movements: Sequence[_Movement]) -> Iterator[int]:
    """Yield 1 or -1 for a row whose amount is the balance's rise or fall, else 0.

    Balances are read as printed; the newest row may be the first or the last.
    """
    balances = [audit.find_balance(movement.row) for movement in movements]
    forward, backward = (
        [
            _compare_step(movement, balance, before)
            for movement, balance, before in zip(movements, balances, neighbours, strict=True)
        ]
        for neighbours in (
            [_find_balance_before(audit, index, movements, balances) for index in range(len(balances))],
            [*balances[1:], *balances[:1]],
        )
    )
    yield from forward if sum(map(abs, forward)) >= sum(map(abs, backward)) else backward


def _find_balance_before(
    audit: StatementAudit, index: int, movements: Sequence[_Movement], balances: Sequence[PrintedAmount | None]
) -> PrintedAmount | None:
    account = movements[index].row.account
    if index and movements[index - 1].row.account == account:
        return balances[index - 1]
    openings = [each.amount for each in audit.sums if each.kind in ("opening", "carried") and each.account == account]
    return openings[0] if openings else None


def _compare_step(movement: _Movement, balance: PrintedAmount | None, before: PrintedAmount | None) -> int:
    if balance is None or before is None:
        return 0
    step = balance.signed_value - before.signed_value
    # An amount that was not recognised is what the balance changes by.
    is_other = step == 0 or (movement.amount is not None and abs(step) != movement.amount.value)
    return 0 if is_other else 1 if step > 0 else -1


RowClass = tuple[object, ...]


def _solve_by_balances(known: _KnownDirections) -> dict[RowClass, ProvenDirection]:
    """Give a class the direction that balances show of its rows, if never both."""
    signs_by_class = group_pairs(
        (movement.row_class, direction.sign)
        for movement, direction in known.pairs
        if direction.proof == "running balance"
    )
    return {
        row_class: _build_direction(signs[0], "running balance")
        for row_class, signs in signs_by_class.items()
        if len(signs) > 1 and len(set(signs)) == 1
    }


def _solve_by_sums(known: _KnownDirections) -> dict[RowClass, ProvenDirection]:
    """Try all directions of open classes against the printed sums.

    Only a single solution counts.
    """
    open_classes = list(dict.fromkeys(movement.row_class for movement, direction in known.pairs if not direction.sign))
    if not open_classes or len(open_classes) > _MAX_OPEN_CLASSES:
        return {}
    totals = _add_up_classes(known)
    counts = {
        signs: _count_met_sums(known, totals, dict(zip(open_classes, signs, strict=True)))
        for signs in product((1, -1), repeat=len(open_classes))
    }
    best_count = max(counts.values())
    best = [signs for signs, count in counts.items() if count == best_count]
    return {
        row_class: _build_direction(signs[0], "sums")
        for row_class, signs in zip(open_classes, zip(*best, strict=True), strict=True)
        if best_count and len(set(signs)) == 1
    }


_ClassTotals = dict[str, list[tuple[RowClass, int, Decimal]]]


def _add_up_classes(known: _KnownDirections) -> _ClassTotals:
    """Map accounts to classes, each with its direction (0 if open) and sum of amounts."""
    amounts = group_pairs(
        ((movement.row.account, movement.row_class, direction.sign), movement.amount.value)
        for movement, direction in known.pairs
        if movement.amount
    )
    return group_pairs(
        (account, (row_class, sign, sum(values, Decimal(0)))) for (account, row_class, sign), values in amounts.items()
    )


def _count_met_sums(known: _KnownDirections, totals: _ClassTotals, sign_by_class: dict[RowClass, int]) -> int:
    count = 0
    for account, classes in totals.items():
        signed = [(sign or sign_by_class.get(row_class, 0)) * value for row_class, sign, value in classes]
        sums = [each for each in known.audit.sums if each.account == account or len(totals) == 1]
        changes = _list_balance_changes(
            known.audit, account, sums, has_few_classes=len(sign_by_class) <= _MAX_CLASSES_BY_PLACE
        )
        count += bool(known.orientation) and known.orientation * sum(signed, Decimal(0)) in changes
        for kind, sign in (("in", 1), ("out", -1)):
            total = abs(sum((value for value in signed if value * sign > 0), Decimal(0)))
            count += bool(total) and any(each.kind == kind and each.amount.value == total for each in sums)
    return count


def _list_balance_changes(
    audit: StatementAudit, account: str, sums: Sequence[AuditSum], *, has_few_classes: bool
) -> set[Decimal]:
    """Return possible changes of the balance.

    Closing minus opening, or any amount below minus any above the rows.
    """
    starts, ends = ([each.amount.signed_value for each in sums if each.kind == kind] for kind in ("opening", "closing"))
    if starts and ends:
        return {ends[-1] - starts[0]}
    if not has_few_classes:
        return set()
    rows = [index for index, row in enumerate(audit.rows) if row.account == account]
    starts = [each.amount.signed_value for each in sums if each.position <= rows[0]]
    ends = [each.amount.signed_value for each in sums if each.position > rows[-1]]
    return {end - start for start, end in product(starts, ends)} - {Decimal(0)}


def _solve_by_marks(known: _KnownDirections) -> dict[RowClass, ProvenDirection]:
    """Take the unmarked amounts of a column for the opposite of its marked ones."""
    solved: dict[RowClass, ProvenDirection] = {}
    for movement, direction in known.pairs:
        if direction.sign or movement.amount is None or movement.amount.mark:
            continue
        marked = {
            other_direction.sign
            for other, other_direction in known.pairs
            if other_direction.proof == "marks"
            and other.row_class[::2] == movement.row_class[::2]
            and other.amount
            and other.amount.mark
        }
        if len(marked) == 1:
            solved[movement.row_class] = _build_direction(-marked.pop(), "marks")
    return solved


def _solve_by_wording(known: _KnownDirections) -> dict[RowClass, ProvenDirection]:
    """Choose the mark for money coming in on a statement of debts.

    Rows with it speak of repayments.
    """
    if known.orientation != -1:
        return {}
    open_rows = group_pairs(
        (movement.row_class, has_word(movement.row.text, "direction", "repayment"))
        for movement, direction in known.pairs
        if not direction.sign
    )
    shares = {row_class: sum(flags) / len(flags) for row_class, flags in open_rows.items()}
    repaid = [row_class for row_class, share in shares.items() if share >= _MIN_REPAYMENT_SHARE]
    others = [row_class for row_class, share in shares.items() if share <= _MAX_OTHER_SHARE]
    if len(repaid) != 1 or len(repaid) + len(others) != len(shares) or not others:
        return {}
    return {repaid[0]: _build_direction(1, "wording"), **{each: _build_direction(-1, "wording") for each in others}}
