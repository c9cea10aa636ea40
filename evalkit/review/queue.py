"""Which cases wait for an expert, by their reviews alone; ``claims`` says who has one open.

:class:`Queue` is what one expert sees of it: a page of the list that a :class:`QueueView` asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from evalkit.issue import Agent, IssueSeverity
from evalkit.review.ground_truth import Review, newest_revision, read_review, review_sha256, status_after
from evalkit.review.opinions import Opinions
from evalkit.review.packet import ReviewReason, ReviewStatus, SMEPacket, moment
from evalkit.review.roles import Role, Standing
from evalkit.store import PACKETS, REVIEWS, Files, Head, Index, Moments, packet_name

#: A case in one of these waits; only ``completed`` ones do not.
OPEN_STATUSES: tuple[ReviewStatus, ...] = ("pending", "in_review", "deferred")

Order = Literal["worst", "oldest", "newest", "name", "pages"]
Facets = Mapping[str, Mapping[str, int]]

_ROWS = 50
_PREFIX = f"{PACKETS}/sme_packet_"


@dataclass(frozen=True)
class QueueView:
    """Which part of the queue is looked at; a filter that is None lets everything through."""

    search: str = ""
    """Part of a file name or case id, whatever its case; no sign in it has a special meaning."""
    severity: str | None = None
    """Of the worst open issue: BLOCKER, MAJOR, MINOR or none."""
    dominant_type: str | None = None
    """The agent's type of the whole file, or ``cannot tell``."""
    agent: str | None = None
    """Who raised an open issue."""
    review_reason: str | None = None
    """Why the case is in the queue."""
    source: str | None = None
    """What gave the answer: the name of a model, or ``supplied`` by another system."""
    kind: str | None = None
    """Which task asks."""
    age: str | None = None
    """``day``: at most 24 hours old, ``week``: older, at most 7 days, ``older``."""
    sort: Order = "worst"
    """``pages``: the fewest first. Deferred cases always come after those that wait, finished ones last."""
    show_finished: bool = False
    page: int = 0
    """From 0; behind the last page the last one is given."""
    rows: int = _ROWS
    """Rows of a page, at least 1."""

    @classmethod
    def of(cls, said: object) -> QueueView:
        """What a page on somebody's screen asks for; what cannot be meant is left out, never an error."""
        given = said if isinstance(said, Mapping) else {}
        words = {name: given[name] for name in ("search", *FILTERS) if isinstance(given.get(name), str)}
        texts = {name: word.encode(errors="ignore").decode() for name, word in words.items()}  # no half signs
        page = given.get("page")
        return cls(
            search=texts.pop("search", "").strip(),
            **{name: text for name, text in texts.items() if text in (FILTERS[name] or (text,)) and text},
            sort=given["sort"] if given.get("sort") in get_args(Order) else "worst",
            show_finished=given.get("show_finished") is True,
            # SQLite counts in 64 bits.
            page=min(max(page, 0), 2**31) if isinstance(page, int) else 0,
        )


#: The filters of a view with the values that each may have; None: any.
FILTERS: dict[str, tuple[str, ...] | None] = {
    "severity": (*IssueSeverity, "none"),
    "dominant_type": None,  # of fields, the form or report
    "agent": get_args(Agent),
    "review_reason": get_args(ReviewReason),
    "source": None,
    "kind": get_args(SMEPacket.model_fields["kind"].annotation),
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
    """Whether this very tab has it open."""
    created_at: str
    """When the case was made (ISO 8601, UTC); empty where that is not known."""
    kind: str
    agents: tuple[str, ...]
    """Who raised the open issues, sorted; of a blind case nobody."""
    dominant_type: str
    """The agent's type of the whole file, or ``cannot tell``; of fields, the form; of a blind case empty."""
    source: str
    """What gave the answer; empty where that is not known."""
    is_blind: bool
    """The agent's answer is shown only after the expert's: nothing here may tell it."""
    deferred_by: str | None
    """Who put it off."""
    deferred_because: str | None
    """Their reason."""
    is_barred: bool
    """Whether this reviewer may not do the case, because it is about their own answer."""
    needs_adjudicator: bool
    """Whether the case is left to an adjudicator, which this reviewer is not."""


@dataclass(frozen=True)
class Queue:
    """What there is to do, as far as its view shows it."""

    rows: tuple[QueueRow, ...]
    """One page."""
    pending: int
    """How many wait, whatever the view shows."""
    in_review: int
    """How many are open somewhere."""
    done_today: int
    """How many cases were closed since midnight, by the desk's clock."""
    done_by_me: int
    """How many of these by this reviewer."""
    deferred: int = 0
    """How many were put off."""
    matching: int = 0
    """How many cases the view's search and filters leave, on all pages."""
    facets: Facets = field(default_factory=dict)
    """By filter the values that it can have, with the number of cases that the other filters leave of each."""
    view: QueueView = QueueView()
    """What was asked for, with the page that is shown."""
    role: Role = "expert"
    """Of the reviewer who looks."""
    only_looks: bool = False
    """Whether they decide no case."""


@dataclass(frozen=True)
class Progress:
    """How far the work is."""

    done_today: int
    """How many cases were closed since midnight, by the desk's clock."""
    done_by_me: int
    """How many of these by this reviewer."""
    left: int
    """How many are not closed."""
    median_seconds: float | None
    """Active seconds that a case takes this reviewer: today, else ever; None where it was never measured."""


def pending(index: Index) -> list[dict[str, Any]]:
    """The rows (``store.CASE_COLUMNS``) of the cases that wait, strictly worst first."""
    return index.cases(*OPEN_STATUSES)


def case_ids(files: Files) -> list[str]:
    """All cases that have a packet, sorted."""
    names = files.names(PACKETS)
    return sorted(name.removeprefix(_PREFIX).removesuffix(".json") for name in names if name.startswith(_PREFIX))


def review_status(files: Files, case_id: str) -> ReviewStatus:
    """Where a case stands, by its reviews: a reopened one waits again, an undeterminable one does not."""
    return status_after(_newest(files, case_id))


def rebuild_closings(files: Files) -> Iterator[dict[str, Any]]:
    """The index's rows of closed cases (who, when, how long), from packets and reviews alone; sorted by case_id."""
    for case_id in files.folders(REVIEWS):
        review = _newest(files, case_id) if files.exists(packet_name(case_id)) else None
        if review and status_after(review) == "completed":
            yield {
                "case_id": case_id,
                "reviewer": review.reviewer,
                "closed_at": review.submitted_at,
                "seconds_active": review.seconds_active,
            }


def newest_heads(files: Files) -> Iterator[Head]:
    """What vouches for the newest review of each case, by the files alone; sorted by case_id."""
    for case_id in files.folders(REVIEWS):
        if revision := newest_revision(files, case_id):
            yield Head(case_id, revision, review_sha256(files, case_id, revision))


def listed(index: Index, view: QueueView, now: datetime, reader: str) -> tuple[list[dict[str, Any]], int, Facets, int]:
    """The rows of the view's page, how many match on all pages, the facets, and the page that it became.

    ``reader`` is the reviewer who looks: finished cases that they must not read yet are left out.
    """
    at = Moments(moment(now), moment(now - timedelta(days=1)), moment(now - timedelta(days=7)))
    kept_from = reader if view.show_finished and index.case_list.withholds(reader) else None
    groups = index.case_list.groups(at, is_finished_shown=view.show_finished, search=view.search, reader=kept_from)
    wanted = {_column(name): value for name in FILTERS if (value := getattr(view, name)) is not None}
    matching = sum(group["count"] for group in groups if _matches(group, wanted))
    page = min(view.page, max(matching - 1, 0) // view.rows)
    shown = (
        index.case_list.page(
            at,
            is_finished_shown=view.show_finished,
            search=view.search,
            reader=kept_from,
            facets=wanted,
            order=view.sort,
            limit=view.rows,
            offset=page * view.rows,
            matching=matching,
        )
        if matching
        else []
    )
    return shown, matching, {name: _counts(groups, _column(name), wanted) for name in FILTERS}, page


def queue_row(row: Mapping[str, Any], reviewer: str, session: str, standing: Standing) -> QueueRow:
    """A row of the index as this reviewer's tab shows it."""
    is_hidden, barred = bool(row["is_hidden"]), _split(row["barred"])
    plain = {one.name: row[one.name] for one in fields(QueueRow) if one.name in row}
    blind = {"blocker": 0, "major": 0, "minor": 0, "decision_reason": ""} if is_hidden else {}
    said = (
        plain
        | blind
        | {
            "status": row["review_status"],
            "is_mine": (row["holder"], row["session"]) == (reviewer, session),
            "created_at": row["created_at"] or "",
            "agents": _split(row["agents"]),
            "is_blind": is_hidden,
            "is_barred": reviewer in barred,
            "needs_adjudicator": standing.needs_adjudicator(row["case_id"], barred),
        }
    )
    return QueueRow(**said)


def _row(files: Files, case_id: str) -> dict[str, Any]:
    return Opinions.read(files, case_id).row(files, case_id)


def _newest(files: Files, case_id: str) -> Review | None:
    newest = newest_revision(files, case_id)
    return read_review(files, case_id, newest) if newest else None


def _column(name: str) -> str:
    return "agents" if name == "agent" else name


def _values(group: Mapping[str, Any], column: str) -> Sequence[str]:
    return _split(group[column]) if column == "agents" else (group[column],)


def _split(joined: str) -> tuple[str, ...]:
    return tuple(filter(None, joined.split(",")))


def _matches(group: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    return all(value in _values(group, column) for column, value in wanted.items())


def _counts(groups: Iterable[Mapping[str, Any]], column: str, wanted: Mapping[str, str]) -> dict[str, int]:
    """By value; the value that is filtered by is among them even where nothing has it, so that it can be let go."""
    others = {name: value for name, value in wanted.items() if name != column}
    counts: dict[str, int] = {wanted[column]: 0} if column in wanted else {}
    for group in groups:
        if not others or _matches(group, others):
            for value in filter(None, _values(group, column)):
                counts[value] = counts.get(value, 0) + group["count"]
    return dict(sorted(counts.items()))
