"""The tables of the database. Times are ISO 8601 in UTC, to the second: they compare as text."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

documents = sa.Table(
    "documents",
    metadata,
    sa.Column("doc_id", sa.String, primary_key=True),
    sa.Column("sha256", sa.String, index=True),
    sa.Column("file_path", sa.String, index=True),
    sa.Column("processed_at", sa.String),
    sa.Column("fingerprint", sa.String),
    sa.Column("decision", sa.String),
    sa.Column("error_code", sa.String),
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
_IS_HIDDEN = "is_blind = 1 AND review_status != 'completed'"

cases = sa.Table(
    "cases",
    metadata,
    sa.Column("case_id", sa.String, primary_key=True),
    sa.Column("doc_id", sa.String, index=True),
    sa.Column("kind", sa.String),
    sa.Column("pdf_filename", sa.String),
    sa.Column("pages", sa.Integer),
    sa.Column("blocker", sa.Integer),
    sa.Column("major", sa.Integer),
    sa.Column("minor", sa.Integer),
    sa.Column("decision_reason", sa.String),
    sa.Column("review_reason", sa.String),
    sa.Column("review_status", sa.String, index=True),
    # NULL in a row that an older evalkit wrote: what stands below is not known of it yet.
    sa.Column("created_at", sa.String),
    sa.Column("dominant_type", sa.String, nullable=False, server_default=""),
    sa.Column("agents", sa.String, nullable=False, server_default=""),
    sa.Column("source", sa.String, nullable=False, server_default=""),
    sa.Column("is_blind", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("barred", sa.String, nullable=False, server_default=""),
    # Of a seeded case the document whose pages it shows; else empty.
    sa.Column("shows", sa.String, nullable=False, server_default=""),
    # 0 waits or is open, 1 put off, 2 finished: the order of the queue.
    sa.Column(
        "standing",
        sa.Integer,
        sa.Computed("CASE review_status WHEN 'completed' THEN 2 WHEN 'deferred' THEN 1 ELSE 0 END"),
    ),
    # What the queue tells of the agent's answer; empty where it is hidden or not known.
    sa.Column("is_hidden", sa.Boolean, sa.Computed(_IS_HIDDEN)),
    sa.Column(
        "told_severity",
        sa.String,
        sa.Computed(
            f"CASE WHEN {_IS_HIDDEN} THEN '' WHEN blocker > 0 THEN 'BLOCKER' WHEN major > 0 THEN 'MAJOR' "
            "WHEN minor > 0 THEN 'MINOR' ELSE 'none' END"
        ),
    ),
    sa.Column(
        "told_type",
        sa.String,
        sa.Computed(
            f"CASE WHEN ({_IS_HIDDEN}) OR created_at IS NULL THEN '' "
            "WHEN dominant_type = '' THEN 'cannot tell' ELSE dominant_type END"
        ),
    ),
    sa.Column("told_agents", sa.String, sa.Computed(f"CASE WHEN {_IS_HIDDEN} THEN '' ELSE agents END")),
    sa.Index("ix_cases_worst", "review_status", sa.desc("blocker"), sa.desc("major"), sa.desc("minor"), "case_id"),
    sa.Index("ix_cases_listed", "standing", sa.desc("blocker"), sa.desc("major"), sa.desc("minor"), "case_id"),
    # All that the numbers beside the filters are counted from, in their order: nothing is sorted, no row is read.
    sa.Index("ix_cases_told", "standing", *FACETS.values(), "created_at"),
)

closings = sa.Table(
    "closings",
    metadata,
    sa.Column("case_id", sa.String, primary_key=True),
    sa.Column("reviewer", sa.String, nullable=False, index=True),
    sa.Column("closed_at", sa.String, nullable=False, index=True),
    sa.Column("seconds_active", sa.Float),
)

claims = sa.Table(
    "claims",
    metadata,
    sa.Column("case_id", sa.String, primary_key=True),
    sa.Column("reviewer", sa.String, nullable=False),
    sa.Column("session", sa.String, nullable=False),
    sa.Column("since", sa.String, nullable=False),
    sa.Column("expires_at", sa.String, nullable=False),
)

# The tab is part of the key: two tabs of one person that are both open must not write over each other's work.
drafts = sa.Table(
    "drafts",
    metadata,
    sa.Column("case_id", sa.String, primary_key=True),
    sa.Column("reviewer", sa.String, primary_key=True),
    sa.Column("session", sa.String, primary_key=True),
    sa.Column("packet_sha256", sa.String, nullable=False),
    sa.Column("draft", sa.String, nullable=False),
    sa.Column("saved_at", sa.String, nullable=False),
)

deferrals = sa.Table(
    "deferrals",
    metadata,
    sa.Column("case_id", sa.String, primary_key=True),
    sa.Column("reviewer", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
    sa.Column("deferred_at", sa.String, nullable=False),
)

calls = sa.Table(
    "calls",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("question", sa.String, nullable=False, index=True),
    sa.Column("document", sa.String, nullable=False, index=True),
    sa.Column("role", sa.String, nullable=False),
    sa.Column("model", sa.String, nullable=False),
    sa.Column("asked_at", sa.String, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("answer", sa.String),
    sa.Column("failure", sa.String),
    sa.Column("input_tokens", sa.Integer, nullable=False),
    sa.Column("output_tokens", sa.Integer, nullable=False),
    sa.Column("cached_tokens", sa.Integer, nullable=False),
    sa.Column("thought_tokens", sa.Integer, nullable=False),
    sa.Column("cost_usd", sa.String),
    sqlite_autoincrement=True,
)

# A run that asks everything anew and was interrupted goes on with what it was answered since this call.
fresh = sa.Table("fresh", metadata, sa.Column("after", sa.Integer, primary_key=True))

# Who opened which case: of a purged document, its digest stands in the place of the case.
views = sa.Table(
    "views",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("case_id", sa.String, nullable=False, index=True),
    sa.Column("reviewer", sa.String, nullable=False),
    sa.Column("opened_at", sa.String, nullable=False),
    sqlite_autoincrement=True,
)

heads = sa.Table(
    "heads",
    metadata,
    sa.Column("case_id", sa.String, primary_key=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("sha256", sa.String, nullable=False),
)
