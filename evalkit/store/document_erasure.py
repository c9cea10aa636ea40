"""Erasure of a document from the database and from the free pages of its file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database

#: The tables whose rows are about a case.
_CASE_TABLES = (
    database_tables.cases,
    database_tables.closings,
    database_tables.claims,
    database_tables.drafts,
    database_tables.deferrals,
    database_tables.review_heads,
    database_tables.replies,
    database_tables.queue_places,
)


@dataclass(frozen=True)
class DocumentRowEraser:
    """Operations that erase a document from all tables of the database."""

    _database: Database

    def list_case_ids_showing_document(self, doc_id: str) -> list[str]:
        """List the cases that show the document under another name, as the index knows."""
        query = sa.select(database_tables.cases.c.case_id).where(database_tables.cases.c.shows == doc_id)
        return self._database.fetch_column(query)

    def delete_document_rows(
        self, doc_id: str, case_ids: Iterable[str], document_sha256: str | None, pseudonym_by_case_id: Mapping[str, str]
    ) -> dict[str, int]:
        """Delete the rows of a document and its cases; return their number by table.

        ``pseudonym_by_case_id`` has the name that replaces each case's id in the view log.
        """
        all_case_ids = sorted({*case_ids, *pseudonym_by_case_id})
        conditions: list[tuple[sa.Table, sa.ColumnElement[bool]]] = [
            (table, table.c.case_id.in_(all_case_ids)) for table in _CASE_TABLES
        ]
        conditions.append((database_tables.documents, database_tables.documents.c.doc_id == doc_id))
        if document_sha256 is not None:
            conditions.append((database_tables.model_calls, database_tables.model_calls.c.document == document_sha256))
        with self._database.transaction() as connection:
            removed_counts = {
                table.name: connection.execute(sa.delete(table).where(condition)).rowcount
                for table, condition in conditions
            }
            for case_id, name in pseudonym_by_case_id.items():
                connection.execute(
                    sa.update(database_tables.case_views)
                    .where(database_tables.case_views.c.case_id == case_id)
                    .values(case_id=name)
                )
        return {name: count for name, count in removed_counts.items() if count}

    def vacuum(self) -> bool:
        """Rewrite the database's files, so that they no longer contain deleted rows.

        False if another process was reading all the time: the write-ahead log may still contain deleted rows then.
        """
        return self._database.vacuum()
