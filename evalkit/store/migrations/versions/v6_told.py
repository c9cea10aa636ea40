"""Schema 6: what the queue's cases are counted by is one text, and PostgreSQL too has all that is asked in one index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"

_CHARACTERS = {"created_at": 40, "dominant_type": 100, "source": 100, "folded_name": 400, "folded_id": 400}


def upgrade() -> None:
    """Cut what no index holds, add the text, and have it in the index in the place of its parts."""
    is_server = op.get_bind().dialect.name == "postgresql"
    cases = sa.table("cases", *map(sa.column, _CHARACTERS))
    for name, most in _CHARACTERS.items():
        short = sa.func.substr(cases.c[name], 1, most)
        if name in ("dominant_type", "source"):
            short = sa.func.replace(short, "\x1f", " ")
        op.execute(sa.update(cases).where(cases.c[name] != short).values({name: short}))
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
