"""Schema 2: file name and case id as a search compares them are columns. Folding is Python's, which no server does alike."""

from __future__ import annotations

import unicodedata

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Add the columns and fill them for the rows that are there."""
    connection = op.get_bind()
    text = sa.String(collation="C") if connection.dialect.name == "postgresql" else sa.String()
    for name in ("folded_name", "folded_id"):
        op.add_column("cases", sa.Column(name, text, nullable=False, server_default=""))
    cases = sa.table("cases", *(sa.column(name) for name in ("case_id", "pdf_filename", "folded_name", "folded_id")))
    rows = [
        {"row_id": case_id, "name": _folded(name), "id": _folded(case_id)}
        for case_id, name in connection.execute(sa.select(cases.c.case_id, cases.c.pdf_filename))
    ]
    if rows:
        filling = sa.update(cases).where(cases.c.case_id == sa.bindparam("row_id"))
        connection.execute(filling.values(folded_name=sa.bindparam("name"), folded_id=sa.bindparam("id")), rows)


def _folded(text: str | None) -> str:
    return unicodedata.normalize("NFC", text or "").casefold()
