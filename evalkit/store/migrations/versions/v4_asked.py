"""Schema 4: SQLite finds all that a page of the queue is searched and sorted by in one index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"


def upgrade() -> None:
    """Make it in the place of those that had less; in both databases, one of seeded cases and one of incomplete rows."""
    op.create_index("ix_cases_shows", "cases", ["shows"])
    unknown = sa.text("created_at IS NULL")
    op.create_index("ix_cases_unknown", "cases", ["case_id"], sqlite_where=unknown, postgresql_where=unknown)
    if op.get_bind().dialect.name != "sqlite":
        return
    for name in ("ix_cases_told", "ix_cases_listed"):
        op.drop_index(name, "cases")
    facets = ("told_severity", "told_type", "told_agents", "review_reason", "source", "kind")
    op.create_index(
        "ix_cases_asked",
        "cases",
        [
            *("standing", *facets, "created_at", "folded_name", "folded_id"),
            *("pages", "blocker", "major", "minor", "doc_id", "case_id"),
        ],
    )
