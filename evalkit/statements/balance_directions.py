"""Derive from printed balances whether amounts without a mark came in or went out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalkit.statements.statement_parser import Transaction

#: Most unmarked amounts between two printed balances; more would fit too many ways.
_MAX_UNSIGNED_AMOUNTS = 10


def derive_amounts_from_balances(
    rows: Sequence[Transaction],
    unsigned_positions: AbstractSet[int],
    balances: Mapping[tuple[str, str], Decimal],
    *,
    is_newest_first: bool,
) -> list[Decimal | None]:
    """Return each row's signed amount; None if no or several directions fit.

    ``unsigned_positions``: the rows whose amount has no sign yet. ``balances``: printed balances by account and kind, ``opening`` or ``closing``.
    """
    amounts: list[Decimal | None] = [row.amount for row in rows]
    for account in {rows[position].account for position in unsigned_positions}:
        positions = [position for position, row in enumerate(rows) if row.account == account]
        opening, closing = balances.get((account, "opening")), balances.get((account, "closing"))
        for start, target, run in _split_at_balances(
            rows, positions[::-1] if is_newest_first else positions, opening, closing
        ):
            unsigned = [position for position in run if position in unsigned_positions]
            signed_total = sum((rows[position].amount for position in run if position not in unsigned), Decimal(0))
            solution = (
                None
                if start is None or target is None
                else _find_only_signs(
                    tuple(rows[position].amount for position in unsigned), target - start - signed_total
                )
            )
            for number, position in enumerate(unsigned):
                amounts[position] = solution[number] if solution else None
    return amounts


def _split_at_balances(
    rows: Sequence[Transaction], positions: Sequence[int], opening: Decimal | None, closing: Decimal | None
) -> Iterator[tuple[Decimal | None, Decimal | None, list[int]]]:
    """Split the rows, in order of time, into runs between two printed balances."""
    balance, run = opening, list[int]()
    for position in positions:
        run.append(position)
        if (printed_balance := rows[position].balance) is not None:
            yield balance, printed_balance, run
            balance, run = printed_balance, []
    if run:
        yield balance, closing, run


@lru_cache(maxsize=4096)  # the builder reads the same rows for every hypothesis
def _find_only_signs(magnitudes: tuple[Decimal, ...], target: Decimal) -> tuple[Decimal, ...] | None:
    """Return the signed amounts that add up to ``target``; None unless exactly one choice does."""
    if len(magnitudes) > _MAX_UNSIGNED_AMOUNTS:
        return None
    solutions = {
        signed
        for signs in product((1, -1), repeat=len(magnitudes))
        if sum(signed := tuple(sign * magnitude for sign, magnitude in zip(signs, magnitudes, strict=True))) == target
    }
    return solutions.pop() if len(solutions) == 1 else None
