"""Schema 3: who opened which case, and the newest review of each by its digest."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Add the tables."""
    connection = op.get_bind()
    text = sa.String(collation="C") if connection.dialect.name == "postgresql" else sa.String()
    op.create_table(
        "views",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("case_id", text, nullable=False, index=True),
        sa.Column("reviewer", text, nullable=False),
        sa.Column("opened_at", text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "heads",
        sa.Column("case_id", text, primary_key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("sha256", text, nullable=False),
    )
