"""The queue of cases: counts, filters, and one page at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles

from evalkit.store import database_tables
from evalkit.store.database import Database, fold_for_search

# The values of ``standing`` of a waiting audit or sample, and of a finished case.
_DRAWN_STANDING, _FINISHED_STANDING = 1, 3

WORST_FIRST = (
    *(database_tables.cases.c[name].desc() for name in ("blocker", "major", "minor")),
    database_tables.cases.c.case_id,
)
OrderColumns = tuple[sa.ColumnElement[Any], ...]
_created_at, _folded_name, _page_count, _errors_per_minute = (
    database_tables.cases.c[name] for name in ("created_at", "folded_name", "pages", "errors_per_minute")
)
_BEST_FIRST = (
    *(database_tables.cases.c[name] for name in ("blocker", "major", "minor")),
    database_tables.cases.c.case_id.desc(),
)
#: Columns to sort by, by the name of the order: counted from the front, and from the end.
_SORT_ORDERS: dict[str, tuple[OrderColumns, OrderColumns]] = {
    "errors": ((_errors_per_minute.desc(), *WORST_FIRST), (_errors_per_minute, *_BEST_FIRST)),
    "worst": (WORST_FIRST, _BEST_FIRST),
    "oldest": ((_created_at.asc().nulls_last(), *WORST_FIRST), (_created_at.desc().nulls_first(), *_BEST_FIRST)),
    "newest": ((_created_at.desc().nulls_last(), *WORST_FIRST), (_created_at.asc().nulls_first(), *_BEST_FIRST)),
    "name": ((_folded_name, *WORST_FIRST), (_folded_name.desc(), *_BEST_FIRST)),
    "pages": ((_page_count, *WORST_FIRST), (_page_count.desc(), *_BEST_FIRST)),
}
#: Orders that have a partial index of their own in SQLite.
_PARTIALLY_INDEXED_ORDERS = ("errors", "worst")
#: Filters whose columns are part of PostgreSQL's covering index.
_INDEXED_FACETS = {"severity", "age"}
#: Columns of a page of the queue that come from the table of cases.
_LISTED_COLUMNS = (
    *(
        column
        for column in database_tables.cases.columns
        if column.computed is None and column.name not in (*database_tables.FACET_COLUMNS, "folded_name", "folded_id")
    ),
    *(database_tables.cases.c[column].label(name) for name, column in database_tables.FACET_COLUMNS.items()),
    database_tables.cases.c.is_hidden,
)


class _TextPosition(sa.sql.functions.GenericFunction[int]):
    """SQL function: position of the second text in the first, from 1; 0 if absent."""

    type = sa.Integer()
    name = "instr"
    inherit_cache = True


@compiles(_TextPosition, "postgresql")
def _compile_text_position(element: _TextPosition, compiler: Any, **options: Any) -> str:
    return f"strpos{compiler.process(element.clause_expr, **options)}"


@dataclass(frozen=True)
class CaseAgeCutoffs:
    """Times that separate the age groups of cases in the queue (ISO 8601, UTC)."""

    now: str
    day_ago: str
    week_ago: str


@dataclass(frozen=True)
class CaseList:
    """Queries on the queue of cases; the caller chooses the listed statuses."""

    _database: Database

    def count_by_status(self, tasks: Sequence[str] = ()) -> dict[str, int]:
        """Count the cases of each review status; only those of ``tasks``, if any."""
        status = database_tables.cases.c.review_status
        query = sa.select(status, sa.func.count().label("case_count")).group_by(status)
        query = query.where(*_build_task_conditions(tasks))
        return {row["review_status"]: row["case_count"] for row in self._database.fetch_rows(query)}

    def has_withheld_cases(self, reviewer: str) -> bool:
        """Return True if ``reviewer`` may not yet see some finished case.

        A case is withheld while another case, which shows the same document under another name, may still come to the
        reviewer. Usually there is none, and checking each finished case would take longer than the rest of a page.
        """
        return bool(self._database.fetch_column(_select_withheld_documents(reviewer).limit(1)))

    def count_cases_by_facets(
        self,
        age_cutoffs: CaseAgeCutoffs,
        *,
        include_finished: bool,
        name_search: str = "",
        hide_withheld_from: str | None = None,
        tasks: Sequence[str] = (),
    ) -> list[dict[str, Any]]:
        """Count the cases of each combination of facets, as rows with the key ``count``.

        Facets are ``severity`` (of the worst open issue, or none), ``dominant_type`` (or ``cannot tell``), ``agents``
        (joined by commas), ``review_reason``, ``source``, ``kind`` and ``age`` (day, week, older). A facet that a blind
        case must not show yet is empty. A combination has a row for each ``standing`` that its cases have.

        ``name_search`` is a part of a file name or case id, case-insensitive and without wildcards. Cases withheld from
        the reviewer ``hide_withheld_from``, if one is named, are left out: see ``has_withheld_cases``. Only cases of
        ``tasks`` are counted, if any are named.
        """
        age_conditions = _build_age_conditions(age_cutoffs)
        key_columns = (database_tables.cases.c.standing, database_tables.cases.c.told)
        query = (
            sa.select(*key_columns, *(sa.func.count().filter(age) for age in age_conditions.values()))
            .where(*_build_list_conditions(include_finished, name_search, hide_withheld_from, tasks))
            .group_by(*key_columns)
        )
        with self._database.open_index_scan_connection() as connection:
            return [
                {
                    **dict(
                        zip(
                            database_tables.FACET_COLUMNS,
                            joined_facets.split(database_tables.FACET_SEPARATOR),
                            strict=True,
                        )
                    ),
                    "age": age,
                    "standing": standing,
                    "count": count,
                }
                for standing, joined_facets, *counts in connection.execute(query)
                for age, count in zip(age_conditions, counts, strict=True)
                if count
            ]

    def list_queue_page(
        self,
        age_cutoffs: CaseAgeCutoffs,
        *,
        include_finished: bool,
        name_search: str = "",
        hide_withheld_from: str | None = None,
        tasks: Sequence[str] = (),
        facet_values: Mapping[str, str],
        order: str,
        limit: int,
        offset: int,
        known_matching_count: int | None = None,
        left_out_ids: Sequence[str] = (),
        added_ids: Sequence[str] = (),
    ) -> list[dict[str, Any]]:
        """List one page of the queue: cases with their facets, claim and deferral.

        The keys of a claim are ``holder``, ``session``, ``since`` and ``expires_at``, of a deferral ``deferred_by`` and
        ``deferred_because``. ``facet_values`` has the wanted value of each filtered facet, by the names of
        ``count_cases_by_facets``; for ``agents`` the name of one agent. ``order`` is
        ``errors`` (the most per minute first), ``worst``, ``oldest``, ``newest``, ``name`` or ``pages`` (the fewest first); deferred cases come after pending
        ones, completed ones last. The drawn cases ``left_out_ids`` are not listed, those of ``added_ids`` in addition to the
        page, whether or not they match. With ``known_matching_count``, pages of the second half are counted from the end,
        which takes at most half as long.
        """
        claim, case = database_tables.claims.c, database_tables.cases.c
        # Claims and deferrals are looked up only for the cases of the page.
        page_ids = sa.select(database_tables.cases.c.case_id).where(
            # Facets first: searching names takes SQLite longer.
            *(_build_facet_condition(*facet, age_cutoffs) for facet in facet_values.items()),
            *_build_list_conditions(include_finished, name_search, hide_withheld_from, tasks),
            # Asked first, the standing spares most rows the search through the ids.
            *([sa.or_(case.standing != _DRAWN_STANDING, case.case_id.not_in(left_out_ids))] if left_out_ids else []),
        )
        forward_order, backward_order = _SORT_ORDERS[order]
        sort_columns = (database_tables.cases.c.standing, *forward_order)
        is_filtered = name_search or facet_values  # only the index for ``errors`` has the filters
        if not include_finished and (order == "errors" or (order == "worst" and not is_filtered)):
            page_ids = page_ids.where(database_tables.UNFINISHED_CONDITION)
        if known_matching_count is not None and offset > known_matching_count // 2:
            remaining = max(known_matching_count - offset, 0)
            limit = min(limit, remaining)
            page_ids = page_ids.order_by(database_tables.cases.c.standing.desc(), *backward_order).offset(
                remaining - limit
            )
        else:
            page_ids = page_ids.order_by(*sort_columns).offset(offset)
        # One list of ids: if two conditions were joined by OR, PostgreSQL would read the whole table.
        listed_ids = sa.union_all(
            sa.select(page_ids.limit(limit).subquery().c.case_id),
            *([sa.select(case.case_id).where(case.case_id.in_(added_ids))] if added_ids else []),
        )
        query = (
            sa.select(
                *_LISTED_COLUMNS,
                claim.reviewer.label("holder"),
                claim.session,
                claim.since,
                claim.expires_at,
                database_tables.deferrals.c.reviewer.label("deferred_by"),
                database_tables.deferrals.c.reason.label("deferred_because"),
            )
            .outerjoin(
                database_tables.claims,
                sa.and_(claim.case_id == database_tables.cases.c.case_id, claim.expires_at > age_cutoffs.now),
            )
            .outerjoin(
                database_tables.deferrals, database_tables.deferrals.c.case_id == database_tables.cases.c.case_id
            )
            .where(database_tables.cases.c.case_id.in_(listed_ids))  # a join takes SQLite longer
            .order_by(*sort_columns)
        )
        is_sorted_from_index = order not in _PARTIALLY_INDEXED_ORDERS and facet_values.keys() <= _INDEXED_FACETS
        with (
            self._database.open_index_scan_connection()
            if is_sorted_from_index
            else self._database.open_autocommit_connection() as connection
        ):
            return [dict(row) for row in connection.execute(query).mappings()]

    def count_drawn_cases(self, reviewer: str, tasks: Sequence[str] = ()) -> tuple[int, str | None]:
        """Count the waiting audits and samples that ``reviewer`` may decide.

        Also find when the oldest was created. Only cases of ``tasks`` are counted, if any are named.
        """
        query = sa.select(sa.func.count(), sa.func.min(database_tables.cases.c.created_at))
        query = query.where(*_build_drawn_conditions(reviewer, tasks))
        with self._database.open_index_scan_connection() as connection:
            count, oldest = connection.execute(query).one()
        return int(count), oldest

    def list_drawn_cases(
        self,
        age_cutoffs: CaseAgeCutoffs,
        *,
        reviewer: str,
        tasks: Sequence[str] = (),
        name_search: str = "",
        facet_values: Mapping[str, str],
        limit: int,
    ) -> list[dict[str, Any]]:
        """List the oldest waiting audits and samples for ``reviewer``, at most ``limit``.

        The keys are ``case_id`` and ``is_matching``: True if the case matches search and facets, by which the list is not
        limited. Only cases of ``tasks`` are listed, if any are named.
        """
        row = database_tables.cases.c
        is_matching = sa.and_(
            *_build_list_conditions(False, name_search, None, ()),
            *(_build_facet_condition(*facet, age_cutoffs) for facet in facet_values.items()),
        )
        query = sa.select(row.case_id, is_matching.label("is_matching")).where(
            *_build_drawn_conditions(reviewer, tasks)
        )
        return self._database.fetch_rows(query.order_by(row.created_at, row.case_id).limit(limit))

    def count_cases_before(
        self,
        case_id: str,
        age_cutoffs: CaseAgeCutoffs,
        *,
        name_search: str = "",
        tasks: Sequence[str] = (),
        facet_values: Mapping[str, str],
        order: str,
    ) -> int:
        """Count the waiting cases before a case in the queue, without random audits.

        0 for an unknown case. The list is that of ``list_queue_page`` with the same arguments.
        """
        place = database_tables.cases.alias("place")
        is_before, place_order = [], _build_ascending_columns(place.c, order)
        row_order = _build_ascending_columns(database_tables.cases.c, order)
        if order == "newest":
            is_before.append(row_order[0] > place_order[0])
            is_before.append(
                sa.and_(row_order[0] == place_order[0], sa.tuple_(*row_order[1:]) < sa.tuple_(*place_order[1:]))
            )
        else:
            is_before.append(sa.tuple_(*row_order) < sa.tuple_(*place_order))
        query = (
            sa.select(sa.func.count())
            .select_from(database_tables.cases, place)
            .where(
                place.c.case_id == case_id,
                database_tables.cases.c.standing == 0,
                *_build_list_conditions(False, name_search, None, tasks),
                *(_build_facet_condition(*facet, age_cutoffs) for facet in facet_values.items()),
                sa.or_(*is_before),
            )
        )
        (count,) = self._database.fetch_column(query)
        return int(count)

    def find_case_ids_contradicting_claims(self, now: str) -> list[str]:
        """List the cases whose status contradicts their claims at the time ``now``.

        Contradictions are ``in_review`` without a live claim, and ``pending`` or ``deferred`` with a live claim.
        """
        status = database_tables.cases.c.review_status
        live_claims = sa.select(database_tables.claims.c.case_id).where(database_tables.claims.c.expires_at > now)
        unclaimed_open = sa.select(database_tables.cases.c.case_id).where(
            status == "in_review", database_tables.cases.c.case_id.not_in(live_claims)
        )
        is_waiting = sa.exists().where(
            database_tables.cases.c.case_id == database_tables.claims.c.case_id, status.in_(("pending", "deferred"))
        )
        claimed_waiting = live_claims.where(is_waiting)  # few cases are claimed, and many wait
        return self._database.fetch_column(unclaimed_open.union(claimed_waiting))


def _build_task_conditions(tasks: Sequence[str]) -> list[sa.ColumnElement[bool]]:
    return [database_tables.cases.c.task.in_(tasks)] if tasks else []


def _build_drawn_conditions(reviewer: str, tasks: Sequence[str]) -> Iterator[sa.ColumnElement[bool]]:
    yield database_tables.cases.c.review_status == "pending"
    yield database_tables.cases.c.standing == _DRAWN_STANDING
    yield sa.not_(_build_contains_name_condition(database_tables.cases.c.barred, reviewer))
    yield from _build_task_conditions(tasks)


def _build_ascending_columns(row: Any, order: str) -> list[sa.ColumnElement[Any]]:
    """Build an order's columns, all ascending but the first of ``newest``."""
    first_columns = {
        "errors": [-row.errors_per_minute],
        "oldest": [sa.func.coalesce(row.created_at, "~")],
        "newest": [sa.func.coalesce(row.created_at, "")],
        "name": [row.folded_name],
        "pages": [row.pages],
    }
    return [*first_columns.get(order, []), -row.blocker, -row.major, -row.minor, row.case_id]


def _build_list_conditions(
    include_finished: bool, name_search: str, hide_withheld_from: str | None, tasks: Sequence[str]
) -> Iterator[sa.ColumnElement[bool]]:
    yield from _build_task_conditions(tasks)
    yield database_tables.cases.c.standing <= (_FINISHED_STANDING if include_finished else _FINISHED_STANDING - 1)
    if hide_withheld_from is not None and include_finished:
        yield sa.or_(
            database_tables.cases.c.standing != _FINISHED_STANDING,
            database_tables.cases.c.doc_id.not_in(_select_withheld_documents(hide_withheld_from)),
        )
    if name_search:
        folded_search = fold_for_search(name_search)
        yield sa.or_(
            *(
                _TextPosition(column, folded_search) > 0
                for column in (database_tables.cases.c.folded_name, database_tables.cases.c.folded_id)
            )
        )


def _select_withheld_documents(reviewer: str) -> sa.Select[tuple[str]]:
    """Select the documents that this reviewer may still get as a case of another name."""
    showing_case = database_tables.cases.alias("showing").c
    return sa.select(showing_case.shows).where(
        showing_case.shows > "",
        showing_case.review_status != "completed",
        sa.not_(_build_contains_name_condition(showing_case.barred, reviewer)),
    )


def _build_age_conditions(age_cutoffs: CaseAgeCutoffs) -> dict[str, sa.ColumnElement[bool]]:
    """Build the SQL condition of each age group.

    Grouping by age would sort all cases.
    """
    created_at = database_tables.cases.c.created_at
    return {
        "": created_at.is_(None),
        "day": created_at >= age_cutoffs.day_ago,
        "week": sa.and_(created_at >= age_cutoffs.week_ago, created_at < age_cutoffs.day_ago),
        "older": created_at < age_cutoffs.week_ago,
    }


def _build_facet_condition(facet: str, value: str, age_cutoffs: CaseAgeCutoffs) -> sa.ColumnElement[bool]:
    if facet == "age":
        return _build_age_conditions(age_cutoffs)[value]
    column = database_tables.cases.c[database_tables.FACET_COLUMNS[facet]]
    return _build_contains_name_condition(column, value) if facet == "agents" else column == value


def _build_contains_name_condition(comma_joined_names: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
    return _TextPosition("," + comma_joined_names + ",", f",{name},") > 0
