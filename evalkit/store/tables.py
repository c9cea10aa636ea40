"""The tables of the database. Times are ISO 8601 in UTC, to the second: they
compare as text.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()


class Text(sa.TypeDecorator[str]):
    """Text that compares by code points, as SQLite does, whatever the language of a PostgreSQL server."""

    impl = sa.String
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """With the collation of that name on PostgreSQL."""
        return sa.String(collation="C") if dialect.name == "postgresql" else sa.String()

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """A model's answer may hold a NUL, which PostgreSQL keeps in no text."""
        return value.replace("\0", "\ufffd") if value and dialect.name == "postgresql" else value


def _stored(expression: str) -> sa.Computed:
    """A column that the database computes and keeps: PostgreSQL has no index over others."""
    return sa.Computed(expression, persisted=True)


documents = sa.Table(
    "documents",
    metadata,
    sa.Column("doc_id", Text, primary_key=True),
    sa.Column("sha256", Text, index=True),
    sa.Column("file_path", Text, index=True),
    sa.Column("processed_at", Text),
    sa.Column("fingerprint", Text),
    sa.Column("decision", Text),
    sa.Column("error_code", Text),
    sa.Column("replaced", sa.Boolean, nullable=False, default=False),
)

#: By what cases are told apart, beside their age: the name for the outside and the column.
FACETS = {
    "severity": "told_severity",
    "dominant_type": "told_type",
    "agents": "told_agents",
    "review_reason": "review_reason",
    "source": "source",
    "kind": "kind",
}
#: Before a reviewer has answered a blind case, nothing may tell what the agent said about it.
_IS_HIDDEN = "is_blind AND review_status != 'completed'"
_SEVERITY = (
    f"CASE WHEN {_IS_HIDDEN} THEN '' WHEN blocker > 0 THEN 'BLOCKER' WHEN major > 0 THEN 'MAJOR' "
    "WHEN minor > 0 THEN 'MINOR' ELSE 'none' END"
)
_TYPE = (
    f"CASE WHEN ({_IS_HIDDEN}) OR created_at IS NULL THEN '' "
    "WHEN dominant_type = '' THEN 'cannot tell' ELSE dominant_type END"
)
_AGENTS = f"CASE WHEN {_IS_HIDDEN} THEN '' ELSE agents END"

#: Stands between the facets of ``told``, and in none of them.
BETWEEN = "\x1f"
_TOLD = f" || '{BETWEEN}' || ".join(
    (_SEVERITY, _TYPE, _AGENTS, *(f"coalesce({name}, '')" for name in ("review_reason", "source", "kind")))
)

#: What SQLite keeps sorted, for a page that says so in these very words: of a page that is also filtered it would follow
#: the sorted index too, and look up the row of each case on the way, which takes longer than to sort.
UNFINISHED = sa.text("standing < 2")

cases = sa.Table(
    "cases",
    metadata,
    sa.Column("case_id", Text, primary_key=True),
    sa.Column("doc_id", Text, index=True),
    sa.Column("kind", Text),
    sa.Column("pdf_filename", Text),
    sa.Column("pages", sa.Integer),
    sa.Column("blocker", sa.Integer),
    sa.Column("major", sa.Integer),
    sa.Column("minor", sa.Integer),
    sa.Column("decision_reason", Text),
    sa.Column("review_reason", Text),
    sa.Column("review_status", Text, index=True),
    sa.Column("created_at", Text),
    sa.Column("dominant_type", Text, nullable=False, server_default=""),
    sa.Column("agents", Text, nullable=False, server_default=""),
    sa.Column("source", Text, nullable=False, server_default=""),
    sa.Column("is_blind", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("barred", Text, nullable=False, server_default=""),
    # Of a seeded case the document whose pages it shows; else empty.
    sa.Column("shows", Text, nullable=False, server_default="", index=True),
    # File name and case id as a search compares them: folding is Python's, which no server does alike.
    sa.Column("folded_name", Text, nullable=False, server_default=""),
    sa.Column("folded_id", Text, nullable=False, server_default=""),
    # 0 waits or is open, 1 put off, 2 finished: the order of the queue.
    sa.Column(
        "standing",
        sa.Integer,
        _stored("CASE review_status WHEN 'completed' THEN 2 WHEN 'deferred' THEN 1 ELSE 0 END"),
    ),
    # What the queue tells of the agent's answer; empty where it is hidden or not known.
    sa.Column("is_hidden", sa.Boolean, _stored(_IS_HIDDEN)),
    sa.Column("told_severity", Text, _stored(_SEVERITY)),
    sa.Column("told_type", Text, _stored(_TYPE)),
    sa.Column("told_agents", Text, _stored(_AGENTS)),
    # All facets as one text: to count by one takes a third of the time that it takes to count by six.
    sa.Column("told", Text, _stored(_TOLD)),
    sa.Index("ix_cases_worst", "review_status", sa.desc("blocker"), sa.desc("major"), sa.desc("minor"), "case_id"),
    sa.Index(
        "ix_cases_listed",
        *("standing", sa.desc("blocker"), sa.desc("major"), sa.desc("minor"), "case_id"),
        sqlite_where=UNFINISHED,
    ),
    # All that a page of the queue is counted, searched and sorted by, in the order of the counting.
    sa.Index(
        "ix_cases_told",
        *("standing", "told", "created_at", "folded_name", "folded_id", "told_severity"),
        *("pages", "blocker", "major", "minor", "doc_id", "case_id"),
    ).ddl_if(dialect="postgresql"),
    # And all filters: SQLite looks up each row that an index leaves something out of, which takes longer than to sort.
    sa.Index(
        "ix_cases_asked",
        *("standing", "told", "created_at", "folded_name", "folded_id", *FACETS.values()),
        *("pages", "blocker", "major", "minor", "doc_id", "case_id"),
    ).ddl_if(dialect="sqlite"),
)

closings = sa.Table(
    "closings",
    metadata,
    sa.Column("case_id", Text, primary_key=True),
    sa.Column("reviewer", Text, nullable=False, index=True),
    sa.Column("closed_at", Text, nullable=False, index=True),
    sa.Column("seconds_active", sa.Float),
)

claims = sa.Table(
    "claims",
    metadata,
    sa.Column("case_id", Text, primary_key=True),
    sa.Column("reviewer", Text, nullable=False),
    sa.Column("session", Text, nullable=False),
    sa.Column("since", Text, nullable=False),
    sa.Column("expires_at", Text, nullable=False),
)

# The tab is part of the key: two tabs of one person that are both open must not write over each other's work.
drafts = sa.Table(
    "drafts",
    metadata,
    sa.Column("case_id", Text, primary_key=True),
    sa.Column("reviewer", Text, primary_key=True),
    sa.Column("session", Text, primary_key=True),
    sa.Column("packet_sha256", Text, nullable=False),
    sa.Column("draft", Text, nullable=False),
    sa.Column("saved_at", Text, nullable=False),
)

deferrals = sa.Table(
    "deferrals",
    metadata,
    sa.Column("case_id", Text, primary_key=True),
    sa.Column("reviewer", Text, nullable=False),
    sa.Column("reason", Text, nullable=False),
    sa.Column("deferred_at", Text, nullable=False),
)

calls = sa.Table(
    "calls",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("question", Text, nullable=False, index=True),
    sa.Column("document", Text, nullable=False, index=True),
    sa.Column("role", Text, nullable=False),
    sa.Column("model", Text, nullable=False),
    sa.Column("asked_at", Text, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("answer", Text),
    sa.Column("failure", Text),
    sa.Column("input_tokens", sa.Integer, nullable=False),
    sa.Column("output_tokens", sa.Integer, nullable=False),
    sa.Column("cached_tokens", sa.Integer, nullable=False),
    sa.Column("thought_tokens", sa.Integer, nullable=False),
    sa.Column("cost_usd", Text),
    sqlite_autoincrement=True,
)

# A run that asks everything anew and was interrupted goes on with what it was answered since this call.
fresh = sa.Table("fresh", metadata, sa.Column("after", sa.Integer, primary_key=True))

# Who opened which case: of a purged document, its digest stands in the place of the case.
views = sa.Table(
    "views",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("case_id", Text, nullable=False, index=True),
    sa.Column("reviewer", Text, nullable=False),
    sa.Column("opened_at", Text, nullable=False),
    sqlite_autoincrement=True,
)

heads = sa.Table(
    "heads",
    metadata,
    sa.Column("case_id", Text, primary_key=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("sha256", Text, nullable=False),
)

# Not among the tables that are moved and emptied: it says what they are.
schema_number = sa.Table("schema_number", sa.MetaData(), sa.Column("number", sa.Integer, nullable=False))

#: The tables whose rows the database itself numbers, as they come.
numbered = (calls, views)
