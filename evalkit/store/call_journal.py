"""Journal of calls to language models and of their answers."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database


@dataclass(frozen=True)
class ModelCall:
    """Call of a language model: its question, answer, duration, tokens and cost."""

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
    """The cost in US dollars as a decimal number; None if the price is unknown."""


@dataclass(frozen=True)
class CallJournal:
    """Journal of model calls; each answer is saved to disk before it is used."""

    _database: Database

    def add_call(self, call: ModelCall) -> None:
        """Append a call to the journal."""
        self._database.execute(sa.insert(database_tables.model_calls).values(**vars(call)))

    def find_calls(self, question_sha256: str, *, after_call_number: int = 0) -> list[ModelCall]:
        """Find the calls that asked this question, oldest first.

        Only calls with a number above ``after_call_number`` are found.
        """
        row = database_tables.model_calls.c
        query = (
            sa.select(*(column for column in row if column.name != "number"))
            .where(row.question == question_sha256, row.number > after_call_number)
            .order_by(row.number)
        )
        return [ModelCall(**call_row) for call_row in self._database.fetch_rows(query)]

    def measure_mean_seconds(self, model_name: str) -> float | None:
        """Return the mean seconds of a model's answered calls; None if there are none."""
        row = database_tables.model_calls.c
        query = sa.select(sa.func.avg(row.seconds).label("mean")).where(row.model == model_name, row.failure.is_(None))
        (mean_row,) = self._database.fetch_rows(query)
        return None if mean_row["mean"] is None else float(mean_row["mean"])

    def get_or_mark_last_call_before_run(self) -> int:
        """Return the number of the last call before the current ``--fresh`` run.

        If no such run is unfinished, record that one begins now. 0 if there are no calls yet.
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
        """Record that the ``--fresh`` run has ended."""
        self._database.execute(sa.delete(database_tables.fresh_runs))
