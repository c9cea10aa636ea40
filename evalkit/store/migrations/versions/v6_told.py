"""Schema 6: what the queue's cases are counted by is one text, and PostgreSQL too has all that is asked in one index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"

_BYTES = {"created_at": 40, "dominant_type": 200, "source": 200, "folded_name": 1400, "folded_id": 200}


def upgrade() -> None:
    """Cut what no index of PostgreSQL holds, add the text, and have it in the index in the place of its parts."""
    is_server = op.get_bind().dialect.name == "postgresql"
    cases = sa.table("cases", *map(sa.column, _BYTES))
    for column in (cases.c.dominant_type, cases.c.source):
        parted = sa.func.replace(column, "\x1f", " ")
        op.execute(sa.update(cases).where(column.contains("\x1f")).values({column: parted}))
    for name, most in _BYTES.items() if is_server else ():
        column = cases.c[name]
        # A sign has four bytes at most.
        cut = sa.update(cases).values({column: sa.func.substr(column, 1, most // 4)})
        op.execute(cut.where(sa.func.octet_length(column) > most))
    hidden = "is_blind AND review_status != 'completed'"
    facets = (
        f"CASE WHEN {hidden} THEN '' WHEN blocker > 0 THEN 'BLOCKER' WHEN major > 0 THEN 'MAJOR' "
        "WHEN minor > 0 THEN 'MINOR' ELSE 'none' END",
        f"CASE WHEN ({hidden}) OR created_at IS NULL THEN '' WHEN dominant_type = '' THEN 'cannot tell' "
        "ELSE dominant_type END",
        f"CASE WHEN {hidden} THEN '' ELSE agents END",
        *(f"coalesce({name}, '')" for name in ("review_reason", "source", "kind")),
    )
    text = sa.String(collation="C") if is_server else sa.String()
    # SQLite adds none that is stored to a table that is there, PostgreSQL has no other.
    told = sa.Computed(" || '\x1f' || ".join(facets), persisted=True if is_server else None)
    op.add_column("cases", sa.Column("told", text, told))
    op.drop_index("ix_cases_told" if is_server else "ix_cases_asked", "cases")
    counted = ("standing", "told", "created_at", "folded_name", "folded_id", "told_severity")
    filtered = () if is_server else ("told_type", "told_agents", "review_reason", "source", "kind")
    shown = ("pages", "blocker", "major", "minor", "doc_id", "case_id")
    op.create_index("ix_cases_told" if is_server else "ix_cases_asked", "cases", [*counted, *filtered, *shown])
