"""Index of documents, cases and closings, which can be rebuilt from the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Self

import sqlalchemy as sa

from evalkit.errors import StoreError
from evalkit.store import database_tables
from evalkit.store.call_journal import CallJournal
from evalkit.store.case_list import WORST_FIRST, CaseList
from evalkit.store.database import Database, fold_for_search
from evalkit.store.file_names import CHANGES_FOLDER
from evalkit.store.output_folder import OutputFolder
from evalkit.store.reviewer_records import (
    CaseClaim,
    CaseClaims,
    CaseView,
    ColleagueReplies,
    ColleagueReply,
    Deferral,
    QueuePlace,
    RecordTable,
    ReviewChainHead,
    ReviewChainHeads,
    StoredDraft,
    StoredDrafts,
)

#: Columns of a case that are shown to people; the table has more, for ``CaseList``.
CASE_COLUMNS = (
    *("case_id", "doc_id", "kind", "pdf_filename", "pages", "blocker", "major", "minor"),
    *("decision_reason", "review_reason", "review_status"),
)

#: Maximum bytes of columns by which cases are searched and counted: PostgreSQL indexes 2,700 bytes per row, of which
#: ids take some 140. Of a longer name, only the beginning is searched; no disk allows such names.
_MAX_COLUMN_BYTES = {"created_at": 40, "dominant_type": 200, "source": 200, "folded_name": 1400, "folded_id": 200}
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
#: The tables that are rebuilt from the files.
_INDEX_TABLES = (database_tables.documents, database_tables.cases, database_tables.closings)
#: In place of a case_id, the name of the chain of changes in the table of heads; no case has a slash in its name.
CHANGES_HEAD_ID = f"{CHANGES_FOLDER}/"
# PostgreSQL stores no NUL, and a facet must not contain the separator.
_FACET_TRANSLATION = {0: "\ufffd", ord(database_tables.FACET_SEPARATOR): " "}


class OutputIndex:
    """Access to an output folder's database; rows are dicts by column name."""

    def __init__(self, output_folder: OutputFolder, *, read_only: bool = False) -> None:
        """Open the output folder's database, creating it if missing.

        ``read_only`` as for ``Database``. The rows are not compared with the folder's files: see
        ``evalkit.review.index_rebuild.open_index``. UsageError, StoreError.
        """
        self._output_folder = output_folder
        #: Cases whose packets were found missing when the index was opened.
        self.lost_case_ids: frozenset[str] = frozenset()
        self._database = Database(output_folder, read_only=read_only)
        #: Answer from a copy in memory from now on, so that nothing in the folder is changed.
        self.move_to_memory = self._database.move_to_memory
        #: Refuse changes of the copy in memory from now on.
        self.refuse_changes = self._database.refuse_changes
        #: Raise StoreError if a table in the database file is damaged.
        self.check_rows = self._database.check_rows
        #: Return True if searches for documents, cases or closings find other rows than there are.
        self.has_damaged_index = partial(self._database.has_damaged_index, *_INDEX_TABLES)
        #: Return a ``with`` block that runs all statements of this thread in one transaction, with a single disk sync.
        self.batch_into_one_transaction = self._database.batch_into_one_transaction
        #: Return a ``with`` block with a function that writes the database, as it is now, to a new SQLite file.
        self.hold_snapshot = self._database.hold_snapshot
        #: Write what searches use again from the rows.
        self.rewrite_search_indexes = self._database.rewrite_search_indexes
        self.case_list = CaseList(self._database)
        self.claims = CaseClaims(self._database, database_tables.claims, CaseClaim)
        self.drafts = StoredDrafts(self._database, database_tables.drafts, StoredDraft)
        self.deferrals = RecordTable(self._database, database_tables.deferrals, Deferral)
        self.queue_places = RecordTable(self._database, database_tables.queue_places, QueuePlace)
        self.replies = ColleagueReplies(self._database, database_tables.replies, ColleagueReply)
        self.call_journal = CallJournal(self._database)
        #: Who opened which case, in order; only a purge changes it, and replaces case ids.
        self.view_log = RecordTable(self._database, database_tables.case_views, CaseView)
        self.review_heads = ReviewChainHeads(self._database, database_tables.review_heads, ReviewChainHead)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database, as the end of a ``with`` block does.

        It keeps the digest of the newest link of the chain of changes, as of each case's newest review.
        """
        try:
            with suppress(StoreError):  # a database that may only be read knows an earlier link
                if newest := self._output_folder.changes.append_and_get_newest():
                    head = ReviewChainHead(CHANGES_HEAD_ID, newest.number, newest.sha256)
                    self.review_heads.save_missing_or_newer_heads([head])
        finally:
            self._database.close()

    def list_documents(self) -> list[dict[str, Any]]:
        """List the rows of all documents, sorted by doc_id."""
        query = sa.select(database_tables.documents).order_by(database_tables.documents.c.doc_id)
        return self._database.fetch_rows(query)

    def list_cases_worst_first(self, *statuses: str) -> list[dict[str, Any]]:
        """List the cases with these review statuses (default: all), worst first.

        Worst: most open blockers, then most majors, then most minors. Columns: ``CASE_COLUMNS``.
        """
        query = sa.select(*(database_tables.cases.c[name] for name in CASE_COLUMNS)).order_by(*WORST_FIRST)
        return self._database.fetch_rows(
            query.where(database_tables.cases.c.review_status.in_(statuses)) if statuses else query
        )

    def upsert_document_and_mark_replaced(self, row: dict[str, Any]) -> None:
        """Insert or replace a document's row; mark other rows of its path as replaced."""
        upsert = self._database.build_upsert(database_tables.documents, row)
        with self._database.transaction() as connection:
            connection.execute(
                sa.update(database_tables.documents)
                .where(
                    database_tables.documents.c.file_path == row["file_path"],
                    database_tables.documents.c.doc_id != row["doc_id"],
                )
                .values(replaced=True)
            )
            connection.execute(upsert)

    def upsert_case(self, row: dict[str, Any]) -> None:
        """Insert a case's row, or update the columns that ``row`` has."""
        self._database.execute(self._database.build_upsert(database_tables.cases, _add_search_columns(row)))

    def set_review_status(self, case_id: str, status: str) -> None:
        """Set a case's ``review_status``, and leave its other columns unchanged."""
        self._database.execute(
            sa.update(database_tables.cases)
            .where(database_tables.cases.c.case_id == case_id)
            .values(review_status=status)
        )

    def remove_cases(self, *case_ids: str) -> None:
        """Remove the rows of withdrawn cases, of their deferrals and of replies."""
        with self._database.transaction() as connection:
            for table in (database_tables.cases, database_tables.deferrals, database_tables.replies):
                connection.execute(sa.delete(table).where(table.c.case_id.in_(case_ids)))

    def record_closed_case(self, row: Mapping[str, Any]) -> None:
        """Record a closed case: who closed it when, in how many seconds, and the verdicts.

        ``row`` has the columns of the table ``closings``. If the case is closed again, it replaces the earlier record.
        """
        self._database.execute(self._database.build_upsert(database_tables.closings, row))

    def remove_closed_case(self, case_id: str) -> None:
        """Remove the record that a case was closed, because it was reopened."""
        self._database.execute(sa.delete(database_tables.closings).where(database_tables.closings.c.case_id == case_id))

    def count_closed_cases(self, *, since: str = "", reviewer: str | None = None) -> int:
        """Count the cases closed at or after ``since``, by ``reviewer`` if one is named."""
        query = (
            sa.select(sa.func.count())
            .select_from(database_tables.closings)
            .where(database_tables.closings.c.closed_at >= since)
        )
        if reviewer is not None:
            query = query.where(database_tables.closings.c.reviewer == reviewer)
        (closing_count,) = self._database.fetch_column(query)
        return int(closing_count)

    def list_closed_cases(self, reviewer: str, limit: int) -> list[dict[str, Any]]:
        """List the cases that a reviewer closed last, newest first, with the closing.

        Columns: ``CASE_COLUMNS`` and those of a closing.
        """
        closing = database_tables.closings
        query = (
            sa.select(
                *(database_tables.cases.c[name] for name in CASE_COLUMNS), closing.c.closed_at, closing.c.seconds_active
            )
            .join(closing, closing.c.case_id == database_tables.cases.c.case_id)
            .where(closing.c.reviewer == reviewer)
            .order_by(closing.c.closed_at.desc(), closing.c.case_id)
        )
        return self._database.fetch_rows(query.limit(limit))

    def map_decisions_by_doc_id(self) -> dict[str, str | None]:
        """Map each document to its decision; None if it could not be read."""
        row = database_tables.documents.c
        with self._database.open_autocommit_connection() as connection:
            return dict(map(tuple, connection.execute(sa.select(row.doc_id, row.decision))))

    def list_case_ids(self) -> list[str]:
        """List the ids of all cases, in no order."""
        return self._database.fetch_column(sa.select(database_tables.cases.c.case_id))

    def list_case_ids_showing_document(self, doc_id: str) -> list[str]:
        """List the cases that show a document under another doc_id, by the index."""
        query = sa.select(database_tables.cases.c.case_id).where(database_tables.cases.c.shows == doc_id)
        return self._database.fetch_column(query)

    def list_active_seconds(self, reviewer: str, *, since: str = "") -> list[float]:
        """List the reviewer's active seconds for each case closed since ``since``.

        Cases without a measured time are left out.
        """
        row = database_tables.closings.c
        query = sa.select(row.seconds_active).where(
            row.reviewer == reviewer, row.closed_at >= since, row.seconds_active > 0
        )
        return self._database.fetch_column(query)

    def list_closings(self) -> list[dict[str, Any]]:
        """List all closed cases with their kind, source and review reason.

        They are in no order. Attention checks are left out: their answers have planted faults.
        """
        case_columns = (database_tables.cases.c[name] for name in ("kind", "source", "review_reason"))
        query = sa.select(database_tables.closings, *case_columns).join(
            database_tables.cases, database_tables.cases.c.case_id == database_tables.closings.c.case_id
        )
        return self._database.fetch_rows(query.where(database_tables.cases.c.shows == ""))

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

    def rebuild(
        self,
        documents: Iterable[dict[str, Any]],
        cases: Iterable[dict[str, Any]],
        closed_cases: Iterable[dict[str, Any]],
    ) -> None:
        """Replace all rows of the tables of documents, cases and closed cases.

        Other tables stay unchanged. The rows of a table have the same columns, and are taken one by one, so that a
        hundred thousand need not be in memory. Of several documents from one path, all but the one processed last are
        marked replaced.
        """
        rows_by_table: dict[sa.Table, Iterable[dict[str, Any]]] = {
            database_tables.documents: documents,
            database_tables.cases: map(_add_search_columns, cases),
            database_tables.closings: closed_cases,
        }
        with self._database.replace_all_rows(rows_by_table) as connection:
            _mark_replaced_documents(connection)

    def correct(
        self,
        documents: Iterable[dict[str, Any]],
        cases: Iterable[dict[str, Any]],
        closed_cases: Iterable[dict[str, Any]],
        removed_case_ids: Iterable[str],
    ) -> None:
        """Insert or replace these rows, and remove the rows of these cases.

        All in one transaction. Deferrals and replies of removed cases are kept, in case their files are restored.
        """
        with self._database.batch_into_one_transaction(), self._database.transaction() as connection:
            for table, rows in (
                (database_tables.documents, documents),
                (database_tables.cases, map(_add_search_columns, cases)),
                (database_tables.closings, closed_cases),
            ):
                for row in rows:
                    connection.execute(self._database.build_upsert(table, row))
            for case_id in removed_case_ids:
                for table in (database_tables.cases, database_tables.closings):
                    connection.execute(sa.delete(table).where(table.c.case_id == case_id))
            _mark_replaced_documents(connection)


def _mark_replaced_documents(connection: sa.Connection) -> None:
    """Mark all documents of a path as replaced but the one that was processed last."""
    newer = database_tables.documents.alias("newer")
    newest_time = sa.select(sa.func.max(newer.c.processed_at)).where(
        newer.c.file_path == database_tables.documents.c.file_path
    )
    connection.execute(
        sa.update(database_tables.documents)
        .where(database_tables.documents.c.processed_at < newest_time.scalar_subquery())
        .values(replaced=True)
    )


def _add_search_columns(row: dict[str, Any]) -> dict[str, Any]:
    """Return a case's row with the columns that searches need.

    These columns and the facets are cut to the limits of an index.
    """
    folded_names = {"folded_name": "pdf_filename", "folded_id": "case_id"}
    row = {**row, **{folded: fold_for_search(row[name]) for folded, name in folded_names.items() if name in row}}
    for facet in ("dominant_type", "source"):
        if facet in row:
            row[facet] = row[facet].translate(_FACET_TRANSLATION)
    return row | {
        name: row[name].encode(errors="ignore")[:max_bytes].decode(errors="ignore")
        for name, max_bytes in _MAX_COLUMN_BYTES.items()
        if row.get(name)
    }
