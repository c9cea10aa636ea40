"""The journal of language models' answers."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database


@dataclass(frozen=True)
class ModelCall:
    """One call of a language model."""

    question: str
    """SHA-256 of the whole request and the model's name."""
    document: str
    """SHA-256 of the document."""
    role: str
    model: str
    asked_at: str
    seconds: float
    answer: str | None
    """The model's whole text, which quotes the document. None if no complete answer came."""
    failure: str | None
    """The code of the failure; None if the answer was usable."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    thought_tokens: int
    cost_usd: str | None
    """A decimal number; None if the price is unknown."""


@dataclass(frozen=True)
class CallJournal:
    """The journal of calls: an answer is on disk before it is used."""

    _database: Database

    def add_call(self, call: ModelCall) -> None:
        """Append a call."""
        self._database.execute(sa.insert(database_tables.model_calls).values(**vars(call)))

    def find_calls(self, question_sha256: str, *, after_call_number: int = 0) -> list[ModelCall]:
        """Find the calls of a question after ``after_call_number``, oldest first."""
        row = database_tables.model_calls.c
        query = (
            sa.select(*(column for column in row if column.name != "number"))
            .where(row.question == question_sha256, row.number > after_call_number)
            .order_by(row.number)
        )
        return [ModelCall(**call_row) for call_row in self._database.fetch_rows(query)]

    def get_or_mark_last_call_before_run(self) -> int:
        """Return the number of the last call before the unfinished fresh run.

        Starts one if there is none.
        """
        with self._database.transaction() as connection:
            start_number = connection.execute(sa.select(database_tables.fresh_runs.c.after)).scalar()
            if start_number is None:
                start_number = (
                    connection.execute(sa.select(sa.func.max(database_tables.model_calls.c.number))).scalar() or 0
                )
                connection.execute(sa.insert(database_tables.fresh_runs).values(after=start_number))
            return int(start_number)

    def forget_last_call_before_run(self) -> None:
        """End the fresh run."""
        self._database.execute(sa.delete(database_tables.fresh_runs))
