"""Claims: who has which case open."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database


@dataclass(frozen=True)
class CaseClaim:
    """A claim on a case: one reviewer in one browser tab."""

    case_id: str
    reviewer: str
    session: str
    """The tab's id; it survives a reload of the tab."""
    since: str
    expires_at: str
    """From this moment on anyone may take the case."""


@dataclass(frozen=True)
class CaseClaims:
    """The claims. Each case has at most one live claim; an expired one has no effect."""

    _database: Database

    def acquire_or_get_live_claim(self, wanted_claim: CaseClaim, *, now: str, take_over: bool = False) -> CaseClaim:
        """Acquire the wanted claim, or return another's live one.

        One statement compares and writes, so of several threads or processes exactly one gets a free case. The same tab
        renews its claim, which keeps its ``since``; ``take_over`` takes it from anyone.
        """
        row = database_tables.claims.c
        is_live = row.expires_at > now
        is_own = sa.and_(row.reviewer == wanted_claim.reviewer, row.session == wanted_claim.session)
        since = sa.case((sa.and_(is_own, is_live), row.since), else_=wanted_claim.since)
        with self._database.transaction() as connection:
            upsert = self._database.build_insert(database_tables.claims).values(**asdict(wanted_claim))
            conditional_upsert = upsert.on_conflict_do_update(
                index_elements=[row.case_id],
                set_={**asdict(wanted_claim), "since": since},
                where=sa.true() if take_over else sa.or_(is_own, sa.not_(is_live)),
            ).returning(database_tables.claims)
            # Where the statement took nothing, the transaction still holds a lock (SQLite the only writer's, PostgreSQL
            # that of the row, which it takes before it compares): the other stays.
            claim_row = (
                connection.execute(conditional_upsert).mappings().first()
                or connection.execute(sa.select(database_tables.claims).where(row.case_id == wanted_claim.case_id))
                .mappings()
                .one()
            )
            return CaseClaim(**claim_row)

    def map_live_claims_by_case_id(self, now: str, case_id: str | None = None) -> dict[str, CaseClaim]:
        """Map case_ids to their live claims; only one case, if it is named."""
        query = sa.select(database_tables.claims).where(database_tables.claims.c.expires_at > now)
        if case_id is not None:
            query = query.where(database_tables.claims.c.case_id == case_id)
        return {row["case_id"]: CaseClaim(**row) for row in self._database.fetch_rows(query)}

    def remove_claim(self, case_id: str) -> None:
        """Remove any claim on a case."""
        self._database.execute(sa.delete(database_tables.claims).where(database_tables.claims.c.case_id == case_id))

    def release_claim_if_unchanged(self, claim: CaseClaim) -> bool:
        """Remove this claim and return True, unless it was renewed or taken since."""
        query = sa.delete(database_tables.claims).where(
            *(column == getattr(claim, column.name) for column in database_tables.claims.columns)
        )
        return self._database.execute(query) > 0
