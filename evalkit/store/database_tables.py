"""Tables of an output folder's database.

Times are ISO 8601 in UTC, to the second, so that they sort as text.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()


class CodePointText(sa.TypeDecorator[str]):
    """Text column that sorts by code points on PostgreSQL too, as SQLite does."""

    impl = sa.String
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Return the column's type, which has the collation ``C`` on PostgreSQL."""
        return sa.String(collation="C") if dialect.name == "postgresql" else sa.String()

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Replace NUL on PostgreSQL, which cannot store it; a model's answer may have it."""
        return value.replace("\0", "\ufffd") if value and dialect.name == "postgresql" else value


def _build_stored_computed(expression: str) -> sa.Computed:
    """Build a computed column that is stored, because PostgreSQL indexes no other."""
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

#: Column of each facet of cases except their age, by the facet's public name.
FACET_COLUMNS = {
    "severity": "told_severity",
    "dominant_type": "told_type",
    "agents": "told_agents",
    "review_reason": "review_reason",
    "source": "source",
    "kind": "kind",
}
#: Condition of blind cases that are not answered yet, of which nothing may reveal the program's answer.
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

#: Separator of the facets in the column ``told``; no facet contains it.
FACET_SEPARATOR = "\x1f"
_ALL_FACETS_SQL = f" || '{FACET_SEPARATOR}' || ".join(
    (_SEVERITY_SQL, _TYPE_SQL, _AGENTS_SQL, *(f"coalesce({name}, '')" for name in ("review_reason", "source", "kind")))
)

#: Condition of SQLite's partial indexes, which SQLite uses only for queries with exactly this text. Pages with filters
#: need an index that has the filters: looking up each case's row takes SQLite longer than sorting.
UNFINISHED_CONDITION = sa.text("standing < 3")

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
    # The task of the reviewers who should decide the case, see ``review.permissions``.
    sa.Column("task", CodePointText, nullable=False, server_default=""),
    # The document that the case shows under another name; empty if the case has the document's name.
    sa.Column("shows", CodePointText, nullable=False, server_default="", index=True),
    # File name and case id as a search compares them, folded by Python: each database would fold differently.
    sa.Column("folded_name", CodePointText, nullable=False, server_default=""),
    sa.Column("folded_id", CodePointText, nullable=False, server_default=""),
    # Errors that a minute of an expert is expected to find; infinite with a BLOCKER that a rule found.
    sa.Column("errors_per_minute", sa.Float, nullable=False, server_default="0"),
    # 0 pending or open, 1 the same and drawn at random, 2 deferred, 3 finished: the order of the queue.
    sa.Column(
        "standing",
        sa.Integer,
        _build_stored_computed(
            "CASE WHEN review_status = 'completed' THEN 3 WHEN review_status = 'deferred' THEN 2 "
            "WHEN review_reason IN ('audit', 'sample') THEN 1 ELSE 0 END"
        ),
    ),
    # The parts of the agent's answer that the queue shows; empty if hidden or unknown.
    sa.Column("is_hidden", sa.Boolean, _build_stored_computed(_IS_HIDDEN_SQL)),
    sa.Column("told_severity", CodePointText, _build_stored_computed(_SEVERITY_SQL)),
    sa.Column("told_type", CodePointText, _build_stored_computed(_TYPE_SQL)),
    sa.Column("told_agents", CodePointText, _build_stored_computed(_AGENTS_SQL)),
    # All facets as one text: counting by one column takes a third of the time of counting by six.
    sa.Column("told", CodePointText, _build_stored_computed(_ALL_FACETS_SQL)),
    sa.Index("ix_cases_worst", "review_status", sa.desc("blocker"), sa.desc("major"), sa.desc("minor"), "case_id"),
    sa.Index(
        "ix_cases_listed",
        *("standing", sa.desc("blocker"), sa.desc("major"), sa.desc("minor"), "case_id", "task"),
        sqlite_where=UNFINISHED_CONDITION,
    ),
    sa.Index(
        "ix_cases_errors",
        *("standing", sa.desc("errors_per_minute"), sa.desc("blocker"), sa.desc("major"), sa.desc("minor")),
        *("case_id", "task", *FACET_COLUMNS.values(), "created_at", "folded_name", "folded_id"),
        sqlite_where=UNFINISHED_CONDITION,
    ),
    # The audits and samples that wait: what is needed to count them, and to find the oldest ones.
    # It begins with the status: SQLite would take one that begins with ``standing`` for other pages too.
    sa.Index("ix_cases_drawn", "review_status", "standing", "created_at", "case_id", "barred", "task"),
    # The columns that a page of the queue is counted, searched and sorted by, in the order of the counting.
    sa.Index(
        "ix_cases_told",
        *("standing", "told", "created_at", "folded_name", "folded_id", "told_severity"),
        *("pages", "errors_per_minute", "blocker", "major", "minor", "doc_id", "case_id", "task"),
    ).ddl_if(dialect="postgresql"),
    # The same and all filters: if a column is missing, SQLite looks up each row, which takes longer than sorting.
    sa.Index(
        "ix_cases_asked",
        *("standing", "told", "created_at", "folded_name", "folded_id", *FACET_COLUMNS.values()),
        *("pages", "errors_per_minute", "blocker", "major", "minor", "doc_id", "case_id", "task"),
    ).ddl_if(dialect="sqlite"),
)

closings = sa.Table(
    "closings",
    metadata,
    sa.Column("case_id", CodePointText, primary_key=True),
    sa.Column("reviewer", CodePointText, nullable=False, index=True),
    sa.Column("closed_at", CodePointText, nullable=False, index=True),
    sa.Column("seconds_active", sa.Float),
    sa.Column("pages_seen", sa.Integer, nullable=False, server_default="0"),
    # The codes of the issues that the reviewer judged, joined by commas.
    sa.Column("confirmed", CodePointText, nullable=False, server_default=""),
    sa.Column("dismissed", CodePointText, nullable=False, server_default=""),
    # Stated risk of each segment's type, and 1 if the reviewer changed it: ``0.05:0,0.3:1``.
    sa.Column("type_outcomes", CodePointText, nullable=False, server_default=""),
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

# Replies to a colleague's question: why a case was deferred, or what a second expert should look at.
replies = sa.Table(
    "replies",
    metadata,
    sa.Column("case_id", CodePointText, primary_key=True),
    sa.Column("asker", CodePointText, nullable=False, index=True),
    sa.Column("reviewer", CodePointText, nullable=False),
    sa.Column("sentence", CodePointText, nullable=False),
    sa.Column("replied_at", CodePointText, nullable=False),
)

# The list of cases as each reviewer left it: its filters as JSON, and the case after which the reviewer goes on.
queue_places = sa.Table(
    "places",
    metadata,
    sa.Column("reviewer", CodePointText, primary_key=True),
    sa.Column("query", CodePointText, nullable=False),
    sa.Column("case_id", CodePointText, nullable=False),
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

# The last call before a --fresh run that is unfinished: it resumes with the answers given after this call.
fresh_runs = sa.Table("fresh", metadata, sa.Column("after", sa.Integer, primary_key=True))

# Who opened which case; after a purge, the document's digest replaces the document's name.
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

# The version of the tables; with metadata of its own, because it is neither moved nor emptied with them.
schema_number = sa.Table("schema_number", sa.MetaData(), sa.Column("number", sa.Integer, nullable=False))

#: Tables whose rows the database numbers in the order of insertion.
AUTONUMBERED_TABLES = (model_calls, case_views)
