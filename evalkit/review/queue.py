"""The review queue: search, filters, order and pages of the cases, and progress.

A :class:`QueueQuery` selects cases, and a :class:`QueuePage` is the result that one expert sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from evalkit.core.clocks import format_iso_seconds
from evalkit.issue import IssueSeverity, ShippedAgent
from evalkit.review.case_files import PATIENT_QUESTIONS, read_review
from evalkit.review.ground_truth import Review, derive_review_status, find_newest_revision, hash_review_file
from evalkit.review.kinds import CASE_KINDS
from evalkit.review.packet import ReviewReason, ReviewStatus
from evalkit.review.permissions import Permissions, ReviewerRole
from evalkit.store import (
    PACKETS_FOLDER,
    REVIEWS_FOLDER,
    CaseAgeCutoffs,
    OutputFolder,
    OutputIndex,
    ReviewChainHead,
    packet_file_name,
)

#: The statuses of cases that still need a decision: all but ``completed``.
OPEN_STATUSES: tuple[ReviewStatus, ...] = ("pending", "in_review", "deferred")

QueueOrder = Literal["worst", "oldest", "newest", "name", "pages"]
FacetCounts = Mapping[str, Mapping[str, int]]

_ROWS_PER_PAGE = 50
_PACKET_PREFIX = f"{PACKETS_FOLDER}/sme_packet_"


@dataclass(frozen=True)
class QueueQuery:
    """Search, filters, order and page of the queue; None as a filter: every case."""

    search: str = ""
    """Part of a file name or case_id; upper and lower case are the same, and there are no wildcards."""
    severity: str | None = None
    """Severity of the worst open issue: BLOCKER, MAJOR, MINOR or none."""
    dominant_type: str | None = None
    """The agent's overall type of the file, or ``cannot tell``; for fields, the form or report."""
    agent: str | None = None
    """The agent that raised an open issue, or ``V2-PATIENT`` for cases that ask to which patient pages belong."""
    review_reason: str | None = None
    """The reason why the case is in the queue."""
    source: str | None = None
    """The model that gave the agent's answer, or ``supplied`` if another system gave it."""
    kind: str | None = None
    """The kind of case."""
    age: str | None = None
    """Age of the case: ``day`` (at most 24 hours), ``week`` (more than 24 hours, at most 7 days) or ``older``."""
    sort: QueueOrder = "worst"
    """The order; ``pages`` means fewest pages first. Deferred cases always follow the pending ones, finished ones are last."""
    show_finished: bool = False
    """True if completed cases are listed too."""
    page: int = 0
    """The page of the list, from 0; a number beyond the last page selects the last page."""
    rows: int = _ROWS_PER_PAGE
    """Number of cases on a page, at least 1."""

    @classmethod
    def from_message(cls, message: object) -> QueueQuery:
        """Parse a query sent by the browser; invalid parts are replaced by their defaults."""
        requested = message if isinstance(message, Mapping) else {}
        raw_filters = {
            name: requested[name] for name in ("search", *FILTER_VALUES) if isinstance(requested.get(name), str)
        }
        filters = {
            name: word.encode(errors="ignore").decode() for name, word in raw_filters.items()
        }  # drops lone surrogates
        page = requested.get("page")
        return cls(
            search=filters.pop("search", "").strip(),
            **{name: text for name, text in filters.items() if text in (FILTER_VALUES[name] or (text,)) and text},
            sort=requested["sort"] if requested.get("sort") in get_args(QueueOrder) else "worst",
            show_finished=requested.get("show_finished") is True,
            # SQLite's integers have 64 bits, and the page is multiplied by the number of rows.
            page=min(max(page, 0), 2**31) if isinstance(page, int) else 0,
        )


#: The values that each filter of a ``QueueQuery`` may have; None: any value.
FILTER_VALUES: dict[str, tuple[str, ...] | None] = {
    "severity": (*IssueSeverity, "none"),
    "dominant_type": None,  # in a case about fields, the name of the form or report
    "agent": (*get_args(ShippedAgent), PATIENT_QUESTIONS),
    "review_reason": get_args(ReviewReason),
    "source": None,
    "kind": tuple(CASE_KINDS),
    "age": ("day", "week", "older"),
}


@dataclass(frozen=True)
class QueueRow:
    """One case in the list, as one reviewer's browser tab shows it."""

    case_id: str
    doc_id: str
    pdf_filename: str
    pages: int
    blocker: int
    """Number of open BLOCKER issues; 0 in a blind case, like the next two counts."""
    major: int
    minor: int
    decision_reason: str
    """The question of the worst issue, or the reason why a person is asked; empty in a blind case."""
    review_reason: ReviewReason
    status: ReviewStatus
    holder: str | None
    """The reviewer who has the case open; None if nobody has."""
    since: str | None
    """Time since which the case is open (ISO 8601, UTC)."""
    is_mine: bool
    """True if this reviewer has the case open in this tab."""
    created_at: str
    """Time at which the case was created (ISO 8601, UTC); empty if unknown."""
    kind: str
    agents: tuple[str, ...]
    """The agents that raised the open issues, sorted; empty in a blind case."""
    dominant_type: str
    """The agent's overall type of the file, or ``cannot tell``; for fields, the form or report; empty in a blind case."""
    source: str
    """The model that gave the agent's answer, or ``supplied``; empty if unknown."""
    is_blind: bool
    """True if the row must not reveal the agent's answer, because the expert answers first."""
    deferred_by: str | None
    """The reviewer who deferred the case; None if it is not deferred."""
    deferred_because: str | None
    """The reason for deferring the case."""
    is_barred: bool
    """True if this reviewer must not answer the case, because they have given or seen an answer to it."""
    needs_adjudicator: bool
    """True if only an adjudicator may decide the case and this reviewer is none."""


@dataclass(frozen=True)
class QueuePage:
    """One page of the queue for one reviewer, with the counts for the whole queue."""

    rows: tuple[QueueRow, ...]
    """The cases on this page, in order."""
    pending: int
    """Number of cases that wait and that nobody has open, regardless of search and filters."""
    in_review: int
    """Number of cases that a reviewer has open."""
    done_today: int
    """Number of cases closed since midnight of the session's clock."""
    done_by_me: int
    """Number of cases that this reviewer closed since midnight."""
    deferred: int = 0
    """Number of deferred cases."""
    matching: int = 0
    """Number of cases that match search and filters, on all pages."""
    facets: FacetCounts = field(default_factory=dict)
    """For each filter, its possible values with the number of cases that match the search and all other filters."""
    view: QueueQuery = QueueQuery()
    """The query, with the number of the page that is shown."""
    role: ReviewerRole = "expert"
    """The role of the reviewer who looks at the queue."""
    is_read_only: bool = False
    """True if this reviewer may not decide cases."""


@dataclass(frozen=True)
class ReviewProgress:
    """Numbers for the progress bar of one reviewer's screen."""

    done_by_me: int
    """Number of cases that this reviewer closed since midnight of the session's clock."""
    open_count: int
    """Number of cases that are not closed."""
    median_seconds: float | None
    """Median active seconds of this reviewer's cases today or, if there are none, of all their cases; None if unknown."""


def list_pending_cases_worst_first(index: OutputIndex) -> list[dict[str, Any]]:
    """List the index rows (``store.CASE_COLUMNS``) of the open cases, worst first."""
    return index.list_cases_worst_first(*OPEN_STATUSES)


def list_case_ids_with_packet(output_folder: OutputFolder) -> list[str]:
    """List the case_ids of all packets in the output folder, sorted."""
    names = output_folder.list_json_files(PACKETS_FOLDER)
    return sorted(
        name.removeprefix(_PACKET_PREFIX).removesuffix(".json") for name in names if name.startswith(_PACKET_PREFIX)
    )


def read_review_status(output_folder: OutputFolder, case_id: str) -> ReviewStatus:
    """Derive a case's status from its newest review.

    A reopened case is pending again; a case that was closed as undeterminable is completed.
    """
    return derive_review_status(_read_newest_review(output_folder, case_id))


def derive_closed_case_rows(output_folder: OutputFolder) -> Iterator[dict[str, Any]]:
    """Yield the index rows of closed cases, built from the review files.

    A row has the reviewer, the time and the active seconds. Sorted by case_id.
    """
    for case_id in output_folder.list_subfolder_names(REVIEWS_FOLDER):
        review = (
            _read_newest_review(output_folder, case_id) if output_folder.has_file(packet_file_name(case_id)) else None
        )
        if review and derive_review_status(review) == "completed":
            yield {
                "case_id": case_id,
                "reviewer": review.reviewer,
                "closed_at": review.submitted_at,
                "seconds_active": review.seconds_active,
            }


def derive_review_chain_heads(output_folder: OutputFolder) -> Iterator[ReviewChainHead]:
    """Yield number and hash of each case's newest review file, sorted by case_id."""
    for case_id in output_folder.list_subfolder_names(REVIEWS_FOLDER):
        if revision := find_newest_revision(output_folder, case_id):
            yield ReviewChainHead(case_id, revision, hash_review_file(output_folder, case_id, revision))


def select_rows_matching_facets_and_page(
    index: OutputIndex, queue_query: QueueQuery, now: datetime, reviewer: str
) -> tuple[list[dict[str, Any]], int, FacetCounts, int]:
    """Select the index rows of one page of the queue.

    Return the rows, the number of matching cases on all pages, the facet counts and the number of the page. Finished cases
    that ``reviewer`` must not read yet are left out.
    """
    queue_times = CaseAgeCutoffs(
        format_iso_seconds(now),
        format_iso_seconds(now - timedelta(days=1)),
        format_iso_seconds(now - timedelta(days=7)),
    )
    excluded_reader = reviewer if queue_query.show_finished and index.case_list.has_withheld_cases(reviewer) else None
    groups = index.case_list.count_cases_by_facets(
        queue_times,
        include_finished=queue_query.show_finished,
        name_search=queue_query.search,
        hide_withheld_from=excluded_reader,
    )
    column_filters = {
        _get_filter_column(name): value for name in FILTER_VALUES if (value := getattr(queue_query, name)) is not None
    }
    matching = sum(group["count"] for group in groups if _is_group_matching(group, column_filters))
    page = min(queue_query.page, max(matching - 1, 0) // queue_query.rows)
    rows = (
        index.case_list.list_queue_page(
            queue_times,
            include_finished=queue_query.show_finished,
            name_search=queue_query.search,
            hide_withheld_from=excluded_reader,
            facet_values=column_filters,
            order=queue_query.sort,
            limit=queue_query.rows,
            offset=page * queue_query.rows,
            known_matching_count=matching,
        )
        if matching
        else []
    )
    return (
        rows,
        matching,
        {name: _count_facet_values(groups, _get_filter_column(name), column_filters) for name in FILTER_VALUES},
        page,
    )


def build_queue_row(row: Mapping[str, Any], reviewer: str, tab_id: str, permissions: Permissions) -> QueueRow:
    """Convert a row of the index to the row that this reviewer's tab shows.

    If the agent's answer must stay hidden, issue counts and reason are removed.
    """
    is_hidden, excluded_reviewers = bool(row["is_hidden"]), _split_commas(row["barred"])
    copied_fields = {row_field.name: row[row_field.name] for row_field in fields(QueueRow) if row_field.name in row}
    hidden_fields = {"blocker": 0, "major": 0, "minor": 0, "decision_reason": ""} if is_hidden else {}
    return QueueRow(
        **copied_fields
        | hidden_fields
        | {
            "status": row["review_status"],
            "is_mine": (row["holder"], row["session"]) == (reviewer, tab_id),
            "created_at": row["created_at"] or "",
            "agents": _split_commas(row["agents"]),
            "is_blind": is_hidden,
            "is_barred": reviewer in excluded_reviewers,
            "needs_adjudicator": permissions.is_reserved_for_adjudicator(row["case_id"], excluded_reviewers),
        }
    )


def _read_newest_review(output_folder: OutputFolder, case_id: str) -> Review | None:
    revision = find_newest_revision(output_folder, case_id)
    return read_review(output_folder, case_id, revision) if revision else None


def _get_filter_column(filter_name: str) -> str:
    return "agents" if filter_name == "agent" else filter_name


def _get_group_values(group: Mapping[str, Any], column: str) -> Sequence[str]:
    return _split_commas(group[column]) if column == "agents" else (group[column],)


def _split_commas(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _is_group_matching(group: Mapping[str, Any], column_filters: Mapping[str, str]) -> bool:
    return all(value in _get_group_values(group, column) for column, value in column_filters.items())


def _count_facet_values(
    groups: Iterable[Mapping[str, Any]], column: str, column_filters: Mapping[str, str]
) -> dict[str, int]:
    """Count the cases that match the filters on other columns, by value of one column.

    The value of the active filter is included even with 0 cases, so that the screen can show and clear the filter.
    """
    other_filters = {name: value for name, value in column_filters.items() if name != column}
    counts: dict[str, int] = {column_filters[column]: 0} if column in column_filters else {}
    for group in groups:
        if not other_filters or _is_group_matching(group, other_filters):
            for value in filter(None, _get_group_values(group, column)):
                counts[value] = counts.get(value, 0) + group["count"]
    return dict(sorted(counts.items()))
