"""The cases that wait for an expert, by their reviews alone; claims tell who has one open.

:class:`QueuePage` is the part that one expert sees: a page of the list that a :class:`QueueQuery` asks for.
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

#: A case in one of these waits; only ``completed`` ones do not.
OPEN_STATUSES: tuple[ReviewStatus, ...] = ("pending", "in_review", "deferred")

QueueOrder = Literal["worst", "oldest", "newest", "name", "pages"]
FacetCounts = Mapping[str, Mapping[str, int]]

_ROWS_PER_PAGE = 50
_PACKET_PREFIX = f"{PACKETS_FOLDER}/sme_packet_"


@dataclass(frozen=True)
class QueueQuery:
    """A query of the queue; a filter that is None lets everything through."""

    search: str = ""
    """Part of a file name or case id, in upper or lower case; no character has a special meaning."""
    severity: str | None = None
    """Of the worst open issue: BLOCKER, MAJOR, MINOR or none."""
    dominant_type: str | None = None
    """The agent's type of the whole file, or ``cannot tell``."""
    agent: str | None = None
    """Who raised an open issue, or ``V2-PATIENT``: an open question is whose pages these are."""
    review_reason: str | None = None
    """Why the case is in the queue."""
    source: str | None = None
    """The source of the answer: the name of a model, or ``supplied`` by another system."""
    kind: str | None = None
    """Which task asks."""
    age: str | None = None
    """``day``: at most 24 hours old, ``week``: older, at most 7 days, ``older``."""
    sort: QueueOrder = "worst"
    """``pages``: the fewest first. Deferred cases always come after those that wait, finished ones last."""
    show_finished: bool = False
    page: int = 0
    """From 0; behind the last page the last one is given."""
    rows: int = _ROWS_PER_PAGE
    """Rows of a page, at least 1."""

    @classmethod
    def from_message(cls, message: object) -> QueueQuery:
        """Parse the query of a message from the screen.

        Invalid parts are left out, never an error.
        """
        requested = message if isinstance(message, Mapping) else {}
        raw_filters = {
            name: requested[name] for name in ("search", *FILTER_VALUES) if isinstance(requested.get(name), str)
        }
        filters = {name: word.encode(errors="ignore").decode() for name, word in raw_filters.items()}  # no half signs
        page = requested.get("page")
        return cls(
            search=filters.pop("search", "").strip(),
            **{name: text for name, text in filters.items() if text in (FILTER_VALUES[name] or (text,)) and text},
            sort=requested["sort"] if requested.get("sort") in get_args(QueueOrder) else "worst",
            show_finished=requested.get("show_finished") is True,
            # SQLite counts in 64 bits.
            page=min(max(page, 0), 2**31) if isinstance(page, int) else 0,
        )


#: The filters of a view with the values that each may have; None: any.
FILTER_VALUES: dict[str, tuple[str, ...] | None] = {
    "severity": (*IssueSeverity, "none"),
    "dominant_type": None,  # of fields, the form or report
    "agent": (*get_args(ShippedAgent), PATIENT_QUESTIONS),
    "review_reason": get_args(ReviewReason),
    "source": None,
    "kind": tuple(CASE_KINDS),
    "age": ("day", "week", "older"),
}


@dataclass(frozen=True)
class QueueRow:
    """One case of the queue."""

    case_id: str
    doc_id: str
    pdf_filename: str
    pages: int
    blocker: int
    """Open issues of that severity; of a blind case 0."""
    major: int
    minor: int
    decision_reason: str
    """The arbiter's sentence; of a blind case empty."""
    review_reason: ReviewReason
    status: ReviewStatus
    holder: str | None
    """The reviewer who has it open."""
    since: str | None
    """Since when (ISO 8601, UTC)."""
    is_mine: bool
    """True if this very tab has it open."""
    created_at: str
    """When the case was made (ISO 8601, UTC); empty if unknown."""
    kind: str
    agents: tuple[str, ...]
    """Who raised the open issues, sorted; of a blind case nobody."""
    dominant_type: str
    """The agent's type of the whole file, or ``cannot tell``; of fields, the form; of a blind case empty."""
    source: str
    """The source of the answer; empty if unknown."""
    is_blind: bool
    """The agent's answer is shown only after the expert's: nothing here may tell it."""
    deferred_by: str | None
    """Who put it off."""
    deferred_because: str | None
    """Their reason."""
    is_barred: bool
    """True if this reviewer may not do the case, because it is about their own answer."""
    needs_adjudicator: bool
    """True if the case is left to an adjudicator, which this reviewer is not."""


@dataclass(frozen=True)
class QueuePage:
    """The part of the queue that a query asks for."""

    rows: tuple[QueueRow, ...]
    """One page."""
    pending: int
    """How many wait, on all pages and with any filter."""
    in_review: int
    """How many are open somewhere."""
    done_today: int
    """How many cases were closed since midnight, by the session's clock."""
    done_by_me: int
    """How many of these by this reviewer."""
    deferred: int = 0
    """How many were put off."""
    matching: int = 0
    """How many cases the view's search and filters leave, on all pages."""
    facets: FacetCounts = field(default_factory=dict)
    """By filter the values that it can have, with the number of cases that the other filters leave of each."""
    view: QueueQuery = QueueQuery()
    """The query, with the page that is shown."""
    role: ReviewerRole = "expert"
    """Of the reviewer who looks."""
    is_read_only: bool = False
    """True if they decide no case."""


@dataclass(frozen=True)
class ReviewProgress:
    """The progress of the work."""

    done_by_me: int
    """How many cases this reviewer closed since midnight, by the session's clock."""
    open_count: int
    """How many are not closed."""
    median_seconds: float | None
    """Active seconds that a case takes this reviewer: today, else ever; None if never measured."""


def list_pending_cases_worst_first(index: OutputIndex) -> list[dict[str, Any]]:
    """List the rows (``store.CASE_COLUMNS``) of the open cases, strictly worst first."""
    return index.list_cases_worst_first(*OPEN_STATUSES)


def list_case_ids_with_packet(output_folder: OutputFolder) -> list[str]:
    """List the ids of all cases that have a packet, sorted."""
    names = output_folder.list_json_files(PACKETS_FOLDER)
    return sorted(
        name.removeprefix(_PACKET_PREFIX).removesuffix(".json") for name in names if name.startswith(_PACKET_PREFIX)
    )


def read_review_status(output_folder: OutputFolder, case_id: str) -> ReviewStatus:
    """Derive a case's status from its reviews.

    A reopened one waits again, an undeterminable one not.
    """
    return derive_review_status(_read_newest_review(output_folder, case_id))


def derive_closed_case_rows(output_folder: OutputFolder) -> Iterator[dict[str, Any]]:
    """Derive the index rows of closed cases (who, when, how long) from the files.

    Sorted by case_id.
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
    """Derive the chain head of each case's reviews from the files; sorted by case_id."""
    for case_id in output_folder.list_subfolder_names(REVIEWS_FOLDER):
        if revision := find_newest_revision(output_folder, case_id):
            yield ReviewChainHead(case_id, revision, hash_review_file(output_folder, case_id, revision))


def select_rows_matching_facets_and_page(
    index: OutputIndex, queue_query: QueueQuery, now: datetime, reviewer: str
) -> tuple[list[dict[str, Any]], int, FacetCounts, int]:
    """Select a page's rows.

    Also the count of matches on all pages, the facets and the page number. Finished cases that ``reviewer``, who
    looks, must not read yet are left out.
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
    """Build the row that this reviewer's tab shows from a row of the index."""
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
    """Count cases by value.

    The active filter's value is included even at 0, so that it can be cleared.
    """
    other_filters = {name: value for name, value in column_filters.items() if name != column}
    counts: dict[str, int] = {column_filters[column]: 0} if column in column_filters else {}
    for group in groups:
        if not other_filters or _is_group_matching(group, other_filters):
            for value in filter(None, _get_group_values(group, column)):
                counts[value] = counts.get(value, 0) + group["count"]
    return dict(sorted(counts.items()))
