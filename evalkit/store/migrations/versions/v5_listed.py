"""Schema 5: SQLite too has the cases sorted, for the pages that are neither searched nor filtered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "5"
down_revision = "4"


def upgrade() -> None:
    """Make the index that PostgreSQL has kept, of those alone that are not finished."""
    if op.get_bind().dialect.name == "sqlite":
        worst: list[sa.UnaryExpression[str]] = [sa.desc(name) for name in ("blocker", "major", "minor")]
        waiting = sa.text("standing < 2")
        op.create_index("ix_cases_listed", "cases", ["standing", *worst, "case_id"], sqlite_where=waiting)
