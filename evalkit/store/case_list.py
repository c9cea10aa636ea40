"""The queue of cases, read a page at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles

from evalkit.store import tables
from evalkit.store.database import Database, folded

_FINISHED = 2  # of ``standing``

WORST_FIRST = (*(tables.cases.c[name].desc() for name in ("blocker", "major", "minor")), tables.cases.c.case_id)
Order = tuple[sa.ColumnElement[Any], ...]
_created, _name, _pages = (tables.cases.c[name] for name in ("created_at", "folded_name", "pages"))
_BEST_FIRST = (*(tables.cases.c[name] for name in ("blocker", "major", "minor")), tables.cases.c.case_id.desc())
_ORDERS: dict[str, tuple[Order, Order]] = {
    "worst": (WORST_FIRST, _BEST_FIRST),
    "oldest": ((_created.asc().nulls_last(), *WORST_FIRST), (_created.desc().nulls_first(), *_BEST_FIRST)),
    "newest": ((_created.desc().nulls_last(), *WORST_FIRST), (_created.asc().nulls_first(), *_BEST_FIRST)),
    "name": ((_name, *WORST_FIRST), (_name.desc(), *_BEST_FIRST)),
    "pages": ((_pages, *WORST_FIRST), (_pages.desc(), *_BEST_FIRST)),
}
"""By name: from the front and from the end."""
_INDEXED = {"severity", "age"}
"""The filters that PostgreSQL's index of all that is asked holds too."""
_SHOWN = (
    *(
        column
        for column in tables.cases.columns
        if column.computed is None and column.name not in (*tables.FACETS, "folded_name", "folded_id")
    ),
    *(tables.cases.c[column].label(name) for name, column in tables.FACETS.items()),
    tables.cases.c.is_hidden,
)
"""What is told of a case itself."""


class _Place(sa.sql.functions.GenericFunction[int]):
    """Where the second text begins in the first, from 1; 0 where it does not stand there."""

    type = sa.Integer()
    name = "instr"
    inherit_cache = True


@compiles(_Place, "postgresql")
def _place(element: _Place, compiler: Any, **given: Any) -> str:
    return f"strpos{compiler.process(element.clause_expr, **given)}"


@dataclass(frozen=True)
class Moments:
    """The present, as a queue sees it (ISO 8601, UTC)."""

    now: str
    day_ago: str
    week_ago: str


class CaseList:
    """The queue of cases, read a page at a time. Which statuses are listed is the caller's choice."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def by_status(self) -> dict[str, int]:
        """How many cases there are of each review status."""
        status = tables.cases.c.review_status
        with self._database.statement() as connection:
            found = connection.execute(sa.select(status, sa.func.count()).group_by(status)).all()
        return {row[0]: row[1] for row in found}

    def withholds(self, reader: str) -> bool:
        """Whether ``reader`` must not read some case yet, because a seeded case about its document may come to them.

        Mostly there is none; to look for each finished case whether it is one takes longer than the rest of a page.
        """
        with self._database.statement() as connection:
            return connection.execute(_withheld(reader).limit(1)).first() is not None

    def groups(
        self, at: Moments, *, is_finished_shown: bool, search: str = "", reader: str | None = None
    ) -> list[dict[str, Any]]:
        """How many cases (``count``) there are of each combination of ``severity`` (of the worst open issue, or none),
        ``dominant_type`` (or ``cannot tell``), ``agents`` (joined by commas), ``review_reason``, ``source``, ``kind``
        and ``age`` (day, week, older). What a blind case must not tell yet is empty. A combination comes more than once
        where some of its cases wait and others do not.

        ``search`` is a part of a file name or case id, whatever its case; all of it is taken as it stands. What
        ``reader``, if one is named, must not read yet is left out: see ``withholds``.
        """
        ages = _ages(at)
        query = (
            sa.select(tables.cases.c.told, *(sa.func.count().filter(age) for age in ages.values()))
            .where(*_listed(is_finished_shown, search, reader))
            .group_by(tables.cases.c.standing, tables.cases.c.told)
        )
        with self._database.reading_most() as connection:
            return [
                {**dict(zip(tables.FACETS, told.split(tables.BETWEEN), strict=True)), "age": age, "count": count}
                for told, *counts in connection.execute(query)
                for age, count in zip(ages, counts, strict=True)
                if count
            ]

    def page(
        self,
        at: Moments,
        *,
        is_finished_shown: bool,
        search: str = "",
        reader: str | None = None,
        facets: Mapping[str, str],
        order: str,
        limit: int,
        offset: int,
        matching: int | None = None,
    ) -> list[dict[str, Any]]:
        """Some of the cases, by column name, each with the facets, ``holder``, ``session`` and ``since`` of its claim,
        and with who put it off (``deferred_by``) and why (``deferred_because``).

        ``facets`` are values by the names of ``groups``; of ``agents`` it names one. ``order`` is ``worst``,
        ``oldest``, ``newest``, ``name`` or ``pages`` (the fewest first); deferred cases come after those that wait,
        and completed ones last. Where it is told how many are ``matching``, pages of the second half are counted off
        from the end, which takes half as long at most.
        """
        claim = tables.claims.c
        # Whose they are is looked up for those of the page alone.
        listed = sa.select(tables.cases.c.case_id).where(
            *_listed(is_finished_shown, search, reader), *(_has(*facet, at) for facet in facets.items())
        )
        forwards, backwards = _ORDERS[order]
        ordered = (tables.cases.c.standing, *forwards)
        if order == "worst" and not (search or facets or is_finished_shown):
            listed = listed.where(tables.UNFINISHED)
        if matching is not None and offset > matching // 2:
            left = max(matching - offset, 0)
            limit = min(limit, left)
            listed = listed.order_by(tables.cases.c.standing.desc(), *backwards).offset(left - limit)
        else:
            listed = listed.order_by(*ordered).offset(offset)
        query = (
            sa.select(
                *_SHOWN,
                claim.reviewer.label("holder"),
                claim.session,
                claim.since,
                tables.deferrals.c.reviewer.label("deferred_by"),
                tables.deferrals.c.reason.label("deferred_because"),
            )
            .outerjoin(tables.claims, sa.and_(claim.case_id == tables.cases.c.case_id, claim.expires_at > at.now))
            .outerjoin(tables.deferrals, tables.deferrals.c.case_id == tables.cases.c.case_id)
            .where(tables.cases.c.case_id.in_(listed.limit(limit)))  # SQLite takes longer to join them
            .order_by(*ordered)
        )
        is_sorted_from_index = order != "worst" and facets.keys() <= _INDEXED
        with self._database.reading_most() if is_sorted_from_index else self._database.statement() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def worst(
        self,
        *,
        barred: str,
        reasons: Sequence[str] | None = None,
        ending: str = "",
        left_to: Sequence[str] = (),
    ) -> str | None:
        """The worst case, of these reasons if any are named, that waits and that ``barred`` may do.

        Cases whose id has that ``ending`` are left to the reviewers ``left_to``, if one of them may do it.
        """
        row = tables.cases.c
        query = (
            sa.select(row.case_id)
            .where(row.review_status == "pending", sa.not_(_names(row.barred, barred)))
            .order_by(*WORST_FIRST)
            .limit(1)
        )
        if reasons is not None:
            query = query.where(row.review_reason.in_(reasons))
        if left_to:
            nobody_else = sa.and_(*(_names(row.barred, one) for one in left_to))
            query = query.where(sa.or_(sa.not_(row.case_id.endswith(ending, autoescape=True)), nobody_else))
        with self._database.statement() as connection:
            return connection.execute(query).scalar()

    def contradicting_claims(self, now: str) -> list[str]:
        """The cases that say ``in_review`` without a claim that lives at ``now``, or wait although there is one."""
        status = tables.cases.c.review_status
        live = sa.select(tables.claims.c.case_id).where(tables.claims.c.expires_at > now)
        left = sa.select(tables.cases.c.case_id).where(status == "in_review", tables.cases.c.case_id.not_in(live))
        waits = sa.exists().where(
            tables.cases.c.case_id == tables.claims.c.case_id, status.in_(("pending", "deferred"))
        )
        hidden = live.where(waits)  # few are claimed, and many wait
        with self._database.statement() as connection:
            return list(connection.execute(left.union(hidden)).scalars())


def _listed(is_finished_shown: bool, search: str, reader: str | None) -> Iterator[sa.ColumnElement[bool]]:
    yield tables.cases.c.standing <= (_FINISHED if is_finished_shown else _FINISHED - 1)
    if reader is not None and is_finished_shown:
        yield sa.or_(tables.cases.c.standing != _FINISHED, tables.cases.c.doc_id.not_in(_withheld(reader)))
    if search:
        wanted = folded(search)
        yield sa.or_(*(_Place(text, wanted) > 0 for text in (tables.cases.c.folded_name, tables.cases.c.folded_id)))


def _withheld(reader: str) -> sa.Select[tuple[str]]:
    """The documents about which a seeded case may come to that reviewer."""
    seeded = tables.cases.alias("seeded").c
    return sa.select(seeded.shows).where(
        seeded.shows > "", seeded.review_status != "completed", sa.not_(_names(seeded.barred, reader))
    )


def _ages(at: Moments) -> dict[str, sa.ColumnElement[bool]]:
    """What it means to be of each age. Cases are counted by these: to group by an age would sort them all."""
    made = tables.cases.c.created_at
    return {
        "": made.is_(None),
        "day": made >= at.day_ago,
        "week": sa.and_(made >= at.week_ago, made < at.day_ago),
        "older": made < at.week_ago,
    }


def _has(facet: str, value: str, at: Moments) -> sa.ColumnElement[bool]:
    if facet == "age":
        return _ages(at)[value]
    column = tables.cases.c[tables.FACETS[facet]]
    return _names(column, value) if facet == "agents" else column == value


def _names(joined: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
    """Whether the name is one of those that are joined by commas."""
    return _Place("," + joined + ",", f",{name},") > 0
