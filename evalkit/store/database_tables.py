"""The tables of the database.

Times are ISO 8601 in UTC, to the second: they compare as text.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()


class CodePointText(sa.TypeDecorator[str]):
    """Text that compares by code points, as SQLite does, on PostgreSQL too."""

    impl = sa.String
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Choose the collation for PostgreSQL."""
        return sa.String(collation="C") if dialect.name == "postgresql" else sa.String()

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Replace NUL, which a model's answer may contain and PostgreSQL does not store."""
        return value.replace("\0", "\ufffd") if value and dialect.name == "postgresql" else value


def _build_stored_computed(expression: str) -> sa.Computed:
    """Build a stored computed column: PostgreSQL cannot index others."""
    return sa.Computed(expression, persisted=True)


documents = sa.Table(
    "documents",
    metadata,
    sa.Column("doc_id", CodePointText, primary_key=True),
    sa.Column("sha256", CodePointText, index=True),
    sa.Column("file_path", CodePointText, index=True),
    sa.Column("processed_at", CodePointText),
    sa.Column("fingerprint", CodePointText),
    sa.Column("decision", CodePointText),
    sa.Column("error_code", CodePointText),
    sa.Column("replaced", sa.Boolean, nullable=False, default=False),
)

#: The facets of cases besides their age: public name and column.
FACET_COLUMNS = {
    "severity": "told_severity",
    "dominant_type": "told_type",
    "agents": "told_agents",
    "review_reason": "review_reason",
    "source": "source",
    "kind": "kind",
}
#: Until a blind case is answered, nothing may reveal the agent's answer.
_IS_HIDDEN_SQL = "is_blind AND review_status != 'completed'"
_SEVERITY_SQL = (
    f"CASE WHEN {_IS_HIDDEN_SQL} THEN '' WHEN blocker > 0 THEN 'BLOCKER' WHEN major > 0 THEN 'MAJOR' "
    "WHEN minor > 0 THEN 'MINOR' ELSE 'none' END"
)
_TYPE_SQL = (
    f"CASE WHEN ({_IS_HIDDEN_SQL}) OR created_at IS NULL THEN '' "
    "WHEN dominant_type = '' THEN 'cannot tell' ELSE dominant_type END"
)
_AGENTS_SQL = f"CASE WHEN {_IS_HIDDEN_SQL} THEN '' ELSE agents END"

#: Separates the facets of ``told``, and occurs in none of them.
FACET_SEPARATOR = "\x1f"
_ALL_FACETS_SQL = f" || '{FACET_SEPARATOR}' || ".join(
    (_SEVERITY_SQL, _TYPE_SQL, _AGENTS_SQL, *(f"coalesce({name}, '')" for name in ("review_reason", "source", "kind")))
)

#: The condition of SQLite's partial index, used by queries with exactly this text: a filtered page would follow the
#: sorted index too, and look up each case's row on the way, which takes longer than sorting.
UNFINISHED_CONDITION = sa.text("standing < 2")

cases = sa.Table(
    "cases",
    metadata,
    sa.Column("case_id", CodePointText, primary_key=True),
    sa.Column("doc_id", CodePointText, index=True),
    sa.Column("kind", CodePointText),
    sa.Column("pdf_filename", CodePointText),
    sa.Column("pages", sa.Integer),
    sa.Column("blocker", sa.Integer),
    sa.Column("major", sa.Integer),
    sa.Column("minor", sa.Integer),
    sa.Column("decision_reason", CodePointText),
    sa.Column("review_reason", CodePointText),
    sa.Column("review_status", CodePointText, index=True),
    sa.Column("created_at", CodePointText),
    sa.Column("dominant_type", CodePointText, nullable=False, server_default=""),
    sa.Column("agents", CodePointText, nullable=False, server_default=""),
    sa.Column("source", CodePointText, nullable=False, server_default=""),
    sa.Column("is_blind", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("barred", CodePointText, nullable=False, server_default=""),
    # The document whose pages the case shows under a name of its own; otherwise empty.
    sa.Column("shows", CodePointText, nullable=False, server_default="", index=True),
    # File name and case id as a search compares them: folding is Python's, which no server does alike.
    sa.Column("folded_name", CodePointText, nullable=False, server_default=""),
    sa.Column("folded_id", CodePointText, nullable=False, server_default=""),
    # 0 pending or open, 1 deferred, 2 finished: the order of the queue.
    sa.Column(
        "standing",
        sa.Integer,
        _build_stored_computed("CASE review_status WHEN 'completed' THEN 2 WHEN 'deferred' THEN 1 ELSE 0 END"),
    ),
    # What the queue shows of the agent's answer; empty if hidden or unknown.
    sa.Column("is_hidden", sa.Boolean, _build_stored_computed(_IS_HIDDEN_SQL)),
    sa.Column("told_severity", CodePointText, _build_stored_computed(_SEVERITY_SQL)),
    sa.Column("told_type", CodePointText, _build_stored_computed(_TYPE_SQL)),
    sa.Column("told_agents", CodePointText, _build_stored_computed(_AGENTS_SQL)),
    # All facets as one text: counting by one column takes a third of the time of counting by six.
    sa.Column("told", CodePointText, _build_stored_computed(_ALL_FACETS_SQL)),
    sa.Index("ix_cases_worst", "review_status", sa.desc("blocker"), sa.desc("major"), sa.desc("minor"), "case_id"),
    sa.Index(
        "ix_cases_listed",
        *("standing", sa.desc("blocker"), sa.desc("major"), sa.desc("minor"), "case_id"),
        sqlite_where=UNFINISHED_CONDITION,
    ),
    # The columns that a page of the queue is counted, searched and sorted by, in the order of the counting.
    sa.Index(
        "ix_cases_told",
        *("standing", "told", "created_at", "folded_name", "folded_id", "told_severity"),
        *("pages", "blocker", "major", "minor", "doc_id", "case_id"),
    ).ddl_if(dialect="postgresql"),
    # And all filters: SQLite looks up each row if the index lacks a column, which takes longer than sorting.
    sa.Index(
        "ix_cases_asked",
        *("standing", "told", "created_at", "folded_name", "folded_id", *FACET_COLUMNS.values()),
        *("pages", "blocker", "major", "minor", "doc_id", "case_id"),
    ).ddl_if(dialect="sqlite"),
)

closings = sa.Table(
    "closings",
    metadata,
    sa.Column("case_id", CodePointText, primary_key=True),
    sa.Column("reviewer", CodePointText, nullable=False, index=True),
    sa.Column("closed_at", CodePointText, nullable=False, index=True),
    sa.Column("seconds_active", sa.Float),
)

claims = sa.Table(
    "claims",
    metadata,
    sa.Column("case_id", CodePointText, primary_key=True),
    sa.Column("reviewer", CodePointText, nullable=False),
    sa.Column("session", CodePointText, nullable=False),
    sa.Column("since", CodePointText, nullable=False),
    sa.Column("expires_at", CodePointText, nullable=False),
)

# The tab is part of the key: two open tabs of one person must not overwrite each other's work.
drafts = sa.Table(
    "drafts",
    metadata,
    sa.Column("case_id", CodePointText, primary_key=True),
    sa.Column("reviewer", CodePointText, primary_key=True),
    sa.Column("session", CodePointText, primary_key=True),
    sa.Column("packet_sha256", CodePointText, nullable=False),
    sa.Column("draft", CodePointText, nullable=False),
    sa.Column("saved_at", CodePointText, nullable=False),
)

deferrals = sa.Table(
    "deferrals",
    metadata,
    sa.Column("case_id", CodePointText, primary_key=True),
    sa.Column("reviewer", CodePointText, nullable=False),
    sa.Column("reason", CodePointText, nullable=False),
    sa.Column("deferred_at", CodePointText, nullable=False),
)

model_calls = sa.Table(
    "calls",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("question", CodePointText, nullable=False, index=True),
    sa.Column("document", CodePointText, nullable=False, index=True),
    sa.Column("role", CodePointText, nullable=False),
    sa.Column("model", CodePointText, nullable=False),
    sa.Column("asked_at", CodePointText, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("answer", CodePointText),
    sa.Column("failure", CodePointText),
    sa.Column("input_tokens", sa.Integer, nullable=False),
    sa.Column("output_tokens", sa.Integer, nullable=False),
    sa.Column("cached_tokens", sa.Integer, nullable=False),
    sa.Column("thought_tokens", sa.Integer, nullable=False),
    sa.Column("cost_usd", CodePointText),
    sqlite_autoincrement=True,
)

# An interrupted --fresh run resumes with the answers since this call.
fresh_runs = sa.Table("fresh", metadata, sa.Column("after", sa.Integer, primary_key=True))

# Who opened which case; a purged document's digest replaces the case.
case_views = sa.Table(
    "views",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("case_id", CodePointText, nullable=False, index=True),
    sa.Column("reviewer", CodePointText, nullable=False),
    sa.Column("opened_at", CodePointText, nullable=False),
    sqlite_autoincrement=True,
)

review_heads = sa.Table(
    "heads",
    metadata,
    sa.Column("case_id", CodePointText, primary_key=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("sha256", CodePointText, nullable=False),
)

# Not among the tables that are moved and emptied: it has their version.
schema_number = sa.Table("schema_number", sa.MetaData(), sa.Column("number", sa.Integer, nullable=False))

#: The tables whose rows the database itself numbers, as they come.
AUTONUMBERED_TABLES = (model_calls, case_views)
