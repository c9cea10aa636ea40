"""Erasure: what the database knows of a document goes, and no page of its file remembers it."""

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
)


@dataclass(frozen=True)
class DocumentRowEraser:
    """Removes a document's rows."""

    _database: Database

    def list_case_ids_showing_document(self, doc_id: str) -> list[str]:
        """The cases of other names that show the document's pages, as far as the index knows them."""
        query = sa.select(database_tables.cases.c.case_id).where(database_tables.cases.c.shows == doc_id)
        return self._database.fetch_column(query)

    def delete_document_rows(
        self, doc_id: str, case_ids: Iterable[str], document_sha256: str | None, pseudonym_by_case_id: Mapping[str, str]
    ) -> dict[str, int]:
        """Remove the rows of a document and its cases; how many, by table.

        ``pseudonym_by_case_id`` has for each case what stands for it in the view log from now on.
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
        """Write the database's file anew, so that no free page has what was removed; whether nothing of it is left.

        False where somebody else was reading all the time: what was removed may still stand in the write-ahead log then.
        """
        return self._database.vacuum()
