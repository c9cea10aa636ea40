"""The review queue: search, filters, order and pages of the cases, and progress.

A :class:`QueueQuery` selects cases, a :class:`QueueList` puts them in the order in which one reviewer sees and gets them,
and a :class:`QueuePage` is a page of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from math import ceil
from typing import Any, Literal, get_args

from evalkit.core.clocks import format_iso_seconds
from evalkit.issue import IssueSeverity, ShippedAgent
from evalkit.review.case_files import PATIENT_QUESTIONS, build_closing_row, read_newest_review
from evalkit.review.claiming import ClaimHolder, compute_abandoned_expiry
from evalkit.review.ground_truth import derive_review_status, find_newest_revision, hash_review_file
from evalkit.review.kinds import CASE_KINDS
from evalkit.review.packet import ReviewReason, ReviewStatus, ReviewTask
from evalkit.review.permissions import Permissions, ReviewerRole
from evalkit.store import (
    PACKETS_FOLDER,
    REVIEWS_FOLDER,
    CaseAgeCutoffs,
    ColleagueReply,
    OutputFolder,
    OutputIndex,
    ReviewChainHead,
    packet_file_name,
)
from evalkit.store.change_chain import PREFIX_BY_FOLDER
from evalkit.store.file_names import NAME_PART_PATTERN

#: The statuses of cases that still need a decision: all but ``completed``.
OPEN_STATUSES: tuple[ReviewStatus, ...] = ("pending", "in_review", "deferred")

QueueOrder = Literal["errors", "worst", "oldest", "newest", "name", "pages"]
FacetCounts = Mapping[str, Mapping[str, int]]

_ROWS_PER_PAGE = 50
#: Every so many cases, a reviewer gets an audit or sample, so that these get reviewed too.
AUDIT_INTERVAL = 8
#: The most audits and samples that are interleaved: enough for some 400 cases, after which the list has moved on.
_MAX_WOVEN_CASES = 50
_NO_RESTRICTIONS = Permissions()


@dataclass(frozen=True)
class QueueQuery:
    """Search, filters, order and page of the queue; filter None means every case."""

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
    sort: QueueOrder = "errors"
    """The order; ``errors``: the most expected errors per minute of the expert first, after the cases with a BLOCKER that a
    rule found; ``pages`` means fewest pages first. Deferred cases always follow the pending ones, finished ones are last."""
    show_finished: bool = False
    """True if completed cases are listed too."""
    all_tasks: bool = False
    """True if cases of all tasks are listed, not only those of the reviewer's tasks."""
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
            sort=requested["sort"] if requested.get("sort") in get_args(QueueOrder) else "errors",
            show_finished=requested.get("show_finished") is True,
            all_tasks=requested.get("all_tasks") is True,
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
    """One case in the queue, as shown in one reviewer's browser tab."""

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

    @property
    def can_come_next(self) -> bool:
        """True if the case is waiting and this reviewer may decide it."""
        is_waiting = self.status in ("pending", "in_review") and self.holder is None
        return is_waiting and not (self.is_barred or self.needs_adjudicator)


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
    lost: int = 0
    """Number of cases that cannot be listed, because their packets are missing."""
    matching: int = 0
    """Number of cases on all pages: those that match search and filters, and the audits and samples among them."""
    facets: FacetCounts = field(default_factory=dict)
    """For each filter, its possible values with the number of cases that match the search and all other filters."""
    view: QueueQuery = QueueQuery()
    """The query, with the number of the page that is shown."""
    role: ReviewerRole = "expert"
    """The role of the reviewer who looks at the queue."""
    is_read_only: bool = False
    """True if this reviewer may not decide cases."""
    drawn: int = 0
    """Number of audits and samples that wait for this reviewer, whatever the filters."""
    drawn_since: str | None = None
    """Time at which the oldest of them was created (ISO 8601, UTC)."""
    next_case_id: str = ""
    """The case on this page that comes next; empty if it is on another page, or if there is none."""
    tasks: tuple[ReviewTask, ...] = ()
    """The tasks to which the list is limited unless ``all_tasks`` is set; empty for all."""
    replies: tuple[ColleagueReply, ...] = ()
    """Colleagues' replies to this reviewer's questions about open cases."""


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
    """List the case_ids of all cases in the output folder, sorted."""
    return sorted(list_ids_in_file_names(output_folder, PACKETS_FOLDER, PREFIX_BY_FOLDER[PACKETS_FOLDER]))


def list_ids_in_file_names(output_folder: OutputFolder, subfolder: str, prefix: str = "") -> set[str]:
    """List the ids in the names of a folder's files; other names are left out."""
    return {
        name[len(prefix) : -len(".json")]
        for name in output_folder.list_file_and_folder_names(subfolder)
        if name.startswith(prefix) and name.endswith(".json") and NAME_PART_PATTERN.fullmatch(name[len(prefix) :])
    }


def derive_closed_case_rows(
    output_folder: OutputFolder, case_ids: Iterable[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the index rows of closed cases, built from the files.

    Of ``case_ids`` if given, otherwise of all cases.
    """
    for case_id in output_folder.list_subfolder_names(REVIEWS_FOLDER) if case_ids is None else case_ids:
        name = packet_file_name(case_id)
        review = read_newest_review(output_folder, case_id) if output_folder.has_file(name) else None
        if review and derive_review_status(review) == "completed":
            issues = output_folder.read_json(name)["issues"] if review.issue_verdicts else ()
            yield build_closing_row(case_id, review, {issue["issue_id"]: issue["code"] for issue in issues})


def derive_review_chain_heads(
    output_folder: OutputFolder, case_ids: Iterable[str] | None = None
) -> Iterator[ReviewChainHead]:
    """Yield number and hash of each case's newest review file.

    Of ``case_ids`` if given, otherwise of all cases.
    """
    for case_id in output_folder.list_subfolder_names(REVIEWS_FOLDER) if case_ids is None else case_ids:
        if revision := find_newest_revision(output_folder, case_id):
            yield ReviewChainHead(case_id, revision, hash_review_file(output_folder, case_id, revision))


class QueueList:
    """The list of cases in the order in which one reviewer gets them.

    From the reviewer's place on, every eighth waiting case is an audit or sample of the reviewer's tasks, whatever the
    filters; the others that match follow the waiting cases.
    """

    def __init__(
        self,
        index: OutputIndex,
        queue_query: QueueQuery,
        now: datetime,
        holder: ClaimHolder,
        permissions: Permissions = _NO_RESTRICTIONS,
        place: str = "",
        broken_case_ids: Container[str] = (),
    ) -> None:
        """Count the cases of the list.

        ``place`` is the case_id after which the reviewer goes on; empty for the top. ``broken_case_ids`` could not be
        opened: they are listed, but do not come next.
        """
        self._broken_case_ids = broken_case_ids
        self._case_list, self.query, self._holder, self._permissions = index.case_list, queue_query, holder, permissions
        self._now = now
        self._cutoffs = CaseAgeCutoffs(
            format_iso_seconds(now),
            format_iso_seconds(now - timedelta(days=1)),
            format_iso_seconds(now - timedelta(days=7)),
        )
        needs_check = queue_query.show_finished and self._case_list.has_withheld_cases(holder.reviewer)
        tasks = () if queue_query.all_tasks else permissions.tasks
        self._scope: dict[str, Any] = {
            "include_finished": queue_query.show_finished,
            "name_search": queue_query.search,
            "hide_withheld_from": holder.reviewer if needs_check else None,
            "tasks": tasks,
        }
        self._filters = {
            _get_filter_column(name): value
            for name in FILTER_VALUES
            if (value := getattr(queue_query, name)) is not None
        }
        groups = self._case_list.count_cases_by_facets(self._cutoffs, **self._scope)
        self.facets = {
            name: _count_facet_values(groups, _get_filter_column(name), self._filters) for name in FILTER_VALUES
        }
        counts = Counter[int]()
        for group in groups:
            counts[group["standing"]] += group["count"] * _is_group_matching(group, self._filters)
        narrowed: dict[str, Any] = {"name_search": queue_query.search, "facet_values": self._filters}
        #: Number of audits and samples that wait for the reviewer, and when the oldest of them was created.
        self.drawn, self.drawn_since = (
            (0, None)
            if permissions.is_read_only
            else self._case_list.count_drawn_cases(holder.reviewer, permissions.tasks)
        )
        #: Position in the list from which audits are interleaved, and at which the search for the next case begins.
        self.place = (
            self._case_list.count_cases_before(place, self._cutoffs, tasks=tasks, order=queue_query.sort, **narrowed)
            if place
            else 0
        )
        first = self.place + AUDIT_INTERVAL - 1 - index.count_closed_cases(reviewer=holder.reviewer) % AUDIT_INTERVAL
        # An audit never follows the last ordinary case: audits that match are listed there anyway.
        slot_count = max(ceil((counts[0] - first) / (AUDIT_INTERVAL - 1)), 0)
        woven_cases = self._case_list.list_drawn_cases(
            self._cutoffs,
            reviewer=holder.reviewer,
            tasks=permissions.tasks,
            limit=min(slot_count, _MAX_WOVEN_CASES) if self.drawn else 0,
            **narrowed,
        )
        self._woven = {first + AUDIT_INTERVAL * number: case["case_id"] for number, case in enumerate(woven_cases)}
        added_count = sum(not case["is_matching"] for case in woven_cases)
        self._unwoven_count = counts.total() - len(woven_cases) + added_count
        self.length, self.waiting = counts.total() + added_count, counts[0] + counts[1] + added_count

    def load_rows(self, start: int, limit: int) -> list[QueueRow]:
        """Load the rows from position ``start`` (from 0) on, at most ``limit``."""
        woven_here = {place: case_id for place, case_id in self._woven.items() if start <= place < start + limit}
        rows = self._case_list.list_queue_page(
            self._cutoffs,
            **self._scope,
            facet_values=self._filters,
            order=self.query.sort,
            limit=limit - len(woven_here),
            offset=start - sum(place < start for place in self._woven),
            known_matching_count=self._unwoven_count,
            left_out_ids=list(self._woven.values()),
            added_ids=list(woven_here.values()),
        )
        row_by_case_id = {row["case_id"]: row for row in rows}
        woven_rows = [(place, row_by_case_id.pop(case_id)) for place, case_id in woven_here.items()]
        page_rows = list(row_by_case_id.values())
        for place, row in woven_rows:
            page_rows.insert(place - start, row)
        return [build_queue_row(row, self._holder, self._now, self._permissions) for row in page_rows]

    def find_next_case_id(self) -> str | None:
        """Find the next case that the reviewer may decide, from a position or the top."""
        for start, end in ((self.place, self.waiting), (0, min(self.place, self.waiting))):
            for position in range(start, end, _ROWS_PER_PAGE):
                for row in self.load_rows(position, min(_ROWS_PER_PAGE, end - position)):
                    if self.can_come_next(row):
                        return row.case_id
        return None

    def can_come_next(self, row: QueueRow) -> bool:
        """Return True if the reviewer may decide a case that could be opened."""
        return row.can_come_next and row.case_id not in self._broken_case_ids


def build_queue_row(row: Mapping[str, Any], holder: ClaimHolder, now: datetime, permissions: Permissions) -> QueueRow:
    """Convert a row of the index to the row that this reviewer's tab shows.

    If the agent's answer must stay hidden, issue counts and reason are removed. The reviewer's own claim in a tab that no
    longer answers is left out, because the reviewer takes it back by opening the case.
    """
    is_hidden, excluded_reviewers = bool(row["is_hidden"]), _split_commas(row["barred"])
    copied_fields = {row_field.name: row[row_field.name] for row_field in fields(QueueRow) if row_field.name in row}
    hidden_fields = {"blocker": 0, "major": 0, "minor": 0, "decision_reason": ""} if is_hidden else {}
    is_mine = (row["holder"], row["session"]) == (holder.reviewer, holder.tab_id)
    is_abandoned = (
        row["holder"] == holder.reviewer and not is_mine and row["expires_at"] <= compute_abandoned_expiry(now)
    )
    return QueueRow(
        **copied_fields
        | hidden_fields
        | ({"holder": None, "since": None} if is_abandoned else {})
        | {
            "status": row["review_status"],
            "is_mine": is_mine,
            "created_at": row["created_at"] or "",
            "agents": _split_commas(row["agents"]),
            "is_blind": is_hidden,
            "is_barred": holder.reviewer in excluded_reviewers,
            "needs_adjudicator": permissions.is_reserved_for_adjudicator(row["case_id"], excluded_reviewers),
        }
    )


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
