"""Claims: who has which case open."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database


@dataclass(frozen=True)
class CaseClaim:
    """Claim on a case, which one reviewer has open in one browser tab."""

    case_id: str
    reviewer: str
    session: str
    """The browser tab's id, which stays the same when the tab is reloaded."""
    since: str
    expires_at: str
    """The time from which anyone may take the case."""


@dataclass(frozen=True)
class CaseClaims:
    """Table of claims; each case has at most one, which has no effect once it expires."""

    _database: Database

    def acquire_or_get_live_claim(
        self, wanted_claim: CaseClaim, *, now: str, own_abandoned_until: str = "", take_over: bool = False
    ) -> CaseClaim:
        """Acquire the wanted claim, or return the live claim of somebody else.

        One statement compares and writes, so of several threads or processes exactly one gets a free case. The same tab
        renews its claim, which keeps its ``since``; ``take_over`` replaces the claim of anyone. A claim of the same
        reviewer in another tab is replaced if it expires at ``own_abandoned_until`` or before.
        """
        row = database_tables.claims.c
        is_live = row.expires_at > now
        is_own = sa.and_(row.reviewer == wanted_claim.reviewer, row.session == wanted_claim.session)
        is_abandoned = sa.and_(row.reviewer == wanted_claim.reviewer, row.expires_at <= own_abandoned_until)
        since = sa.case((sa.and_(is_own, is_live), row.since), else_=wanted_claim.since)
        with self._database.transaction() as connection:
            upsert = self._database.build_insert(database_tables.claims).values(**asdict(wanted_claim))
            conditional_upsert = upsert.on_conflict_do_update(
                index_elements=[row.case_id],
                set_={**asdict(wanted_claim), "since": since},
                where=sa.true() if take_over else sa.or_(is_own, is_abandoned, sa.not_(is_live)),
            ).returning(database_tables.claims)
            # If the statement wrote nothing, the transaction still holds a lock (SQLite the only writer's, PostgreSQL
            # that of the row, which it takes before it compares), so the other claim is still there.
            claim_row = (
                connection.execute(conditional_upsert).mappings().first()
                or connection.execute(sa.select(database_tables.claims).where(row.case_id == wanted_claim.case_id))
                .mappings()
                .one()
            )
            return CaseClaim(**claim_row)

    def map_live_claims_by_case_id(self, now: str, case_id: str | None = None) -> dict[str, CaseClaim]:
        """Map case_ids to their live claims; only that of ``case_id`` if it is given."""
        query = sa.select(database_tables.claims).where(database_tables.claims.c.expires_at > now)
        if case_id is not None:
            query = query.where(database_tables.claims.c.case_id == case_id)
        return {row["case_id"]: CaseClaim(**row) for row in self._database.fetch_rows(query)}

    def remove_claim(self, case_id: str) -> None:
        """Remove the claim on a case, no matter who holds it."""
        self._database.execute(sa.delete(database_tables.claims).where(database_tables.claims.c.case_id == case_id))

    def release_claim_if_unchanged(self, claim: CaseClaim) -> bool:
        """Remove this claim; return False if it was renewed or taken over since."""
        query = sa.delete(database_tables.claims).where(
            *(column == getattr(claim, column.name) for column in database_tables.claims.columns)
        )
        return self._database.execute(query) > 0
