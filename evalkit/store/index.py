"""Index: which documents and cases there are, and who closed them. It can always be rebuilt from the files."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from evalkit.store import tables
from evalkit.store.calls import Calls
from evalkit.store.case_list import WORST_FIRST, CaseList
from evalkit.store.claims import Claims
from evalkit.store.database import Database, folded, inserting, replace
from evalkit.store.deferrals import Deferrals
from evalkit.store.drafts import Drafts
from evalkit.store.erasure import Erasure
from evalkit.store.heads import Heads
from evalkit.store.views import Views

#: What is said of a case in a table, in the order in which people read it; the index knows more, for ``CaseList``.
CASE_COLUMNS = (
    *("case_id", "doc_id", "kind", "pdf_filename", "pages", "blocker", "major", "minor"),
    *("decision_reason", "review_reason", "review_status"),
)

_LONGEST = {"created_at": 40, "dominant_type": 200, "source": 200, "folded_name": 1400, "folded_id": 200}
"""Bytes of what is searched and counted by: an index of PostgreSQL holds 2,700 of a row, with ids of some 140.

Of a name that is longer than any on a disk only the beginning is searched.
"""
# No text of PostgreSQL holds a NUL, and a facet none of what stands between facets.
_NO_TEXT = {0: "\ufffd", ord(tables.BETWEEN): " "}


class Index:
    """The database of an output folder: which documents and cases there are. Rows are plain dicts by column name."""

    def __init__(self, root: Path | str, database: str | None = None) -> None:
        """``database`` is a PostgreSQL URL; None is what is set, and ``evalkit.sqlite`` where nothing is."""
        self._database = Database(root, database)
        self.case_list = CaseList(self._database)
        self.claims = Claims(self._database)
        self.drafts = Drafts(self._database)
        self.deferrals = Deferrals(self._database)
        self.calls = Calls(self._database)
        self.views = Views(self._database)
        self.heads = Heads(self._database)
        self.erasure = Erasure(self._database)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the database back; so does the end of a ``with``."""
        self._database.close()

    def together(self) -> AbstractContextManager[None]:
        """What this thread does with the database inside is one transaction: one sync of the disk instead of many."""
        return self._database.together()

    def documents(self) -> list[dict[str, Any]]:
        """All documents, sorted by doc_id."""
        return self._rows(sa.select(tables.documents).order_by(tables.documents.c.doc_id))

    def cases(self, *statuses: str) -> list[dict[str, Any]]:
        """The cases of these review statuses (all, where none is named), strictly worst first: ``CASE_COLUMNS``."""
        query = sa.select(*(tables.cases.c[name] for name in CASE_COLUMNS)).order_by(*WORST_FIRST)
        return self._rows(query.where(tables.cases.c.review_status.in_(statuses)) if statuses else query)

    def put_document(self, row: dict[str, Any]) -> None:
        """Insert or replace a document's row; an older document from the same path is marked replaced."""
        with self._database.transaction() as connection:
            connection.execute(
                sa.update(tables.documents)
                .where(tables.documents.c.file_path == row["file_path"], tables.documents.c.doc_id != row["doc_id"])
                .values(replaced=True)
            )
            replace(connection, tables.documents, row)

    def put_case(self, row: dict[str, Any]) -> None:
        """Insert a case's row, or change what is named of it."""
        row = _searchable(row)
        with self._database.statement() as connection:
            putting = inserting(connection, tables.cases).values(**row)
            connection.execute(putting.on_conflict_do_update(index_elements=[tables.cases.c.case_id], set_=row))

    def set_status(self, case_id: str, status: str) -> None:
        """Change a case's ``review_status``, and nothing else of its row."""
        with self._database.statement() as connection:
            connection.execute(
                sa.update(tables.cases).where(tables.cases.c.case_id == case_id).values(review_status=status)
            )

    def drop_cases(self, *case_ids: str) -> None:
        """Forget cases that were withdrawn, and that they were put off."""
        with self._database.transaction() as connection:
            for table in (tables.cases, tables.deferrals):
                connection.execute(sa.delete(table).where(table.c.case_id.in_(case_ids)))

    def put_closing(self, case_id: str, reviewer: str, closed_at: str, seconds_active: float | None = None) -> None:
        """Note who closed a case, when, and how long it took (None: not measured); a case's newest review counts."""
        row = {"case_id": case_id, "reviewer": reviewer, "closed_at": closed_at, "seconds_active": seconds_active}
        with self._database.statement() as connection:
            replace(connection, tables.closings, row)

    def drop_closing(self, case_id: str) -> None:
        """Forget that a case was closed: it was reopened."""
        with self._database.statement() as connection:
            connection.execute(sa.delete(tables.closings).where(tables.closings.c.case_id == case_id))

    def closed(self, *, since: str = "", reviewer: str | None = None) -> int:
        """How many cases are closed, at or after ``since``, by ``reviewer`` if one is named."""
        query = sa.select(sa.func.count()).select_from(tables.closings).where(tables.closings.c.closed_at >= since)
        if reviewer is not None:
            query = query.where(tables.closings.c.reviewer == reviewer)
        with self._database.statement() as connection:
            return connection.execute(query).scalar_one()

    def seconds_active(self, reviewer: str, *, since: str = "") -> list[float]:
        """How long each case took that the reviewer closed at or after ``since``, as far as it was measured."""
        row = tables.closings.c
        query = sa.select(row.seconds_active).where(
            row.reviewer == reviewer, row.closed_at >= since, row.seconds_active > 0
        )
        with self._database.statement() as connection:
            return list(connection.execute(query).scalars())

    def rebuild(
        self,
        documents: Iterable[dict[str, Any]],
        cases: Iterable[dict[str, Any]],
        closings: Iterable[dict[str, Any]],
    ) -> None:
        """Replace all rows of documents, cases and closed cases at once; other tables are left alone.

        The rows of a table have the same columns, and are taken as they come: a hundred thousand need not be in memory.
        Of several documents from one path, all but the one processed last are marked replaced.
        """
        given: dict[sa.Table, Iterable[dict[str, Any]]] = {
            tables.documents: documents,
            tables.cases: map(_searchable, cases),
            tables.closings: closings,
        }
        with self._database.exchanging(given) as connection:
            newer = tables.documents.alias("newer")
            newest = sa.select(sa.func.max(newer.c.processed_at)).where(
                newer.c.file_path == tables.documents.c.file_path
            )
            connection.execute(
                sa.update(tables.documents)
                .where(tables.documents.c.processed_at < newest.scalar_subquery())
                .values(replaced=True)
            )

    def _rows(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        with self._database.statement() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


def _searchable(row: dict[str, Any]) -> dict[str, Any]:
    """The row of a case, with what a search compares; that and the facets are cut to what an index holds."""
    name = {"folded_name": folded(row["pdf_filename"])} if "pdf_filename" in row else {}
    row = {**row, **name, "folded_id": folded(row["case_id"])}
    for facet in ("dominant_type", "source"):
        if facet in row:
            row[facet] = row[facet].translate(_NO_TEXT)
    return row | {name: _short(row[name], size) for name, size in _LONGEST.items() if row.get(name)}


def _short(text: str, size: int) -> str:
    """As much of the text as is of that size in UTF-8."""
    return text.encode(errors="ignore")[:size].decode(errors="ignore")
