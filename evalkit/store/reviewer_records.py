"""Records of one reviewer: the place in the list, replies to questions."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database


@dataclass(frozen=True)
class QueuePlace:
    """The list of cases as a reviewer left it."""

    reviewer: str
    query: str
    """Filters, order and page as JSON."""
    case_id: str
    """The case after which the reviewer goes on; empty for the top of the list."""


@dataclass(frozen=True)
class ColleagueReply:
    """A reviewer's reply to a colleague's question about a case."""

    case_id: str
    asker: str
    reviewer: str
    sentence: str
    replied_at: str


@dataclass(frozen=True)
class ReviewerRecords:
    """Tables of places in the list and of replies; a case has at most one reply."""

    _database: Database

    def save_place(self, place: QueuePlace) -> None:
        """Save the reviewer's place in the list, replacing the earlier one."""
        self._database.execute(self._database.build_upsert(database_tables.queue_places, asdict(place)))

    def find_place(self, reviewer: str) -> QueuePlace | None:
        """Find the reviewer's place in the list; None if there is none."""
        query = sa.select(database_tables.queue_places).where(database_tables.queue_places.c.reviewer == reviewer)
        return next((QueuePlace(**row) for row in self._database.fetch_rows(query)), None)

    def save_reply(self, reply: ColleagueReply) -> None:
        """Save a reply, replacing an earlier one about the same case."""
        self._database.execute(self._database.build_upsert(database_tables.replies, asdict(reply)))

    def list_replies(self, asker: str) -> list[ColleagueReply]:
        """List the replies to a reviewer about cases that are not closed, newest first."""
        row = database_tables.replies.c
        query = (
            sa.select(database_tables.replies)
            .join(database_tables.cases, database_tables.cases.c.case_id == row.case_id)
            .where(row.asker == asker, database_tables.cases.c.review_status != "completed")
            .order_by(row.replied_at.desc(), row.case_id)
        )
        return [ColleagueReply(**reply_row) for reply_row in self._database.fetch_rows(query)]
