"""Schema 1: a new database, or the file of an evalkit that did not number its schemas and lacks what came later.

It is what it was: later changes of ``tables`` are revisions of their own.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """Make what is not there; rows of an older file stay."""
    connection = op.get_bind()
    inspector = sa.inspect(connection)
    there = set(inspector.get_table_names())
    for table in _tables(is_server=connection.dialect.name == "postgresql").sorted_tables:
        if table.name not in there:
            table.create(connection)
            continue
        columns = {column["name"] for column in inspector.get_columns(table.name)}
        for column in table.columns:
            if column.name not in columns:
                op.add_column(table.name, column._copy())  # noqa: SLF001 - Alembic's own way to take a table's column
        for index in table.indexes:
            index.create(connection, checkfirst=True)


def _tables(*, is_server: bool) -> sa.MetaData:
    text = sa.String(collation="C") if is_server else sa.String()
    hidden = "is_blind AND review_status != 'completed'"

    def key(name: str) -> sa.Column[str]:
        return sa.Column(name, text, primary_key=True)

    def told(name: str, kind: sa.types.TypeEngine[Any], sql: str) -> sa.Column[Any]:
        # SQLite adds none that is stored to a table that is there, PostgreSQL indexes none that is not.
        return sa.Column(name, kind, sa.Computed(sql, persisted=True if is_server else None))

    def given(name: str) -> sa.Column[str]:
        return sa.Column(name, text, nullable=False)

    def added(name: str) -> sa.Column[str]:
        return sa.Column(name, text, nullable=False, server_default="")

    metadata = sa.MetaData()
    worst: tuple[Any, ...] = (sa.desc("blocker"), sa.desc("major"), sa.desc("minor"), "case_id")
    sa.Table(
        "documents",
        metadata,
        key("doc_id"),
        sa.Column("sha256", text, index=True),
        sa.Column("file_path", text),
        *(sa.Column(name, text) for name in ("processed_at", "fingerprint", "decision", "error_code")),
        sa.Column("replaced", sa.Boolean, nullable=False),
        # A hash: a long path would not fit into an ordered index of PostgreSQL.
        sa.Index("ix_documents_file_path", "file_path", postgresql_using="hash"),
    )
    sa.Table(
        "cases",
        metadata,
        key("case_id"),
        sa.Column("doc_id", text, index=True),
        *(sa.Column(name, text) for name in ("kind", "pdf_filename")),
        *(sa.Column(name, sa.Integer) for name in ("pages", "blocker", "major", "minor")),
        *(sa.Column(name, text) for name in ("decision_reason", "review_reason")),
        sa.Column("review_status", text, index=True),
        sa.Column("created_at", text),
        *(added(name) for name in ("dominant_type", "agents", "source")),
        sa.Column("is_blind", sa.Boolean, nullable=False, server_default=sa.false()),
        *(added(name) for name in ("barred", "shows")),
        told(
            "standing",
            sa.Integer(),
            "CASE review_status WHEN 'completed' THEN 2 WHEN 'deferred' THEN 1 ELSE 0 END",
        ),
        told("is_hidden", sa.Boolean(), hidden),
        told(
            "told_severity",
            text,
            f"CASE WHEN {hidden} THEN '' WHEN blocker > 0 THEN 'BLOCKER' WHEN major > 0 THEN 'MAJOR' "
            "WHEN minor > 0 THEN 'MINOR' ELSE 'none' END",
        ),
        told(
            "told_type",
            text,
            f"CASE WHEN ({hidden}) OR created_at IS NULL THEN '' WHEN dominant_type = '' THEN 'cannot tell' "
            "ELSE dominant_type END",
        ),
        told("told_agents", text, f"CASE WHEN {hidden} THEN '' ELSE agents END"),
        sa.Index("ix_cases_worst", "review_status", *worst),
        sa.Index("ix_cases_listed", "standing", *worst),
        sa.Index(
            "ix_cases_told",
            *("standing", "told_severity", "told_type", "told_agents", "review_reason", "source", "kind"),
            "created_at",
        ),
    )
    sa.Table(
        "closings",
        metadata,
        key("case_id"),
        sa.Column("reviewer", text, nullable=False, index=True),
        sa.Column("closed_at", text, nullable=False, index=True),
        sa.Column("seconds_active", sa.Float),
    )
    sa.Table(
        "claims", metadata, key("case_id"), *(given(name) for name in ("reviewer", "session", "since", "expires_at"))
    )
    sa.Table(
        "drafts",
        metadata,
        *(key(name) for name in ("case_id", "reviewer", "session")),
        *(given(name) for name in ("packet_sha256", "draft", "saved_at")),
    )
    sa.Table("deferrals", metadata, key("case_id"), *(given(name) for name in ("reviewer", "reason", "deferred_at")))
    sa.Table(
        "calls",
        metadata,
        sa.Column("number", sa.Integer, primary_key=True),
        *(sa.Column(name, text, nullable=False, index=True) for name in ("question", "document")),
        *(given(name) for name in ("role", "model", "asked_at")),
        sa.Column("seconds", sa.Float, nullable=False),
        *(sa.Column(name, text) for name in ("answer", "failure")),
        *(sa.Column(f"{name}_tokens", sa.Integer, nullable=False) for name in ("input", "output", "cached", "thought")),
        sa.Column("cost_usd", text),
        sqlite_autoincrement=True,
    )
    sa.Table("fresh", metadata, sa.Column("after", sa.Integer, primary_key=True))
    return metadata
