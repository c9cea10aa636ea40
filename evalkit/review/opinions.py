"""Several experts' opinions about one case, and what is true in the end.

Source: contract, "Identity". An expert may ask for a second opinion (the case ``….second``, for somebody else); where
the two answers differ a third expert decides (``….adjudication``). Until there is agreement or a decision the document
has no ground truth: a wrong one would cost more than a late one.

All of it follows from review files. That a second opinion is wanted stands in the first expert's review, so that one
file, created at one moment, says both; the packets of the further cases and the ground truth are made from the reviews
and the base packet, and are made again after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from evalkit.errors import NotFound, ReviewRefused, UsageError
from evalkit.review.draft import Draft, SegmentFlag
from evalkit.review.fields import differing, forms, said_alike
from evalkit.review.ground_truth import (
    FieldsGroundTruth,
    GroundTruth,
    Outcome,
    Review,
    TemplateGroundTruth,
    if_readable,
    numbered,
    project,
    status_after,
    withdraw_unbacked,
)
from evalkit.review.packet import (
    ADJUDICATION,
    SECOND,
    ReviewStatus,
    SMEPacket,
    base_of,
    case_row,
    is_frozen,
    mirror_status,
    read_packet,
    source,
    to_json,
)
from evalkit.review.seeded import read_seeded, seeded_by_document, seeded_cases, still_holds, waits
from evalkit.review.templates import edited, said_the_same, template_of
from evalkit.statements.template import StatementTemplate, read_template, write_template
from evalkit.store import Files, Index, digest, ground_truth_name, packet_name, template_name

_Chain = list[tuple[int, Review]]


@dataclass(frozen=True)
class Opinion:
    """One of the two answers of an adjudication. It does not tell whose it is, nor which was first."""

    name: str
    """``A`` or ``B``."""
    draft: Draft
    """What was answered; one segment of no type where the expert could not tell."""
    outcome: Outcome
    """What was decided."""
    notes: str
    """The expert's words."""


@dataclass(frozen=True)
class Opinions:
    """A base case and the opinions about it, as the files say at one moment."""

    base: SMEPacket
    chains: dict[str, _Chain]
    """The numbered reviews of the base case and of the cases for further opinions, oldest first, by case_id."""
    knowing: tuple[str, ...] = ()
    """Who has answered a case about the document that a seeded case shows; of any other case, who has learnt its answer
    from a seeded one."""
    is_seeded_waiting: bool = False
    """Whether a seeded case that shows this document waits: its answer must not be read here before."""

    @classmethod
    def read(cls, files: Files, case_id: str, seeded: Mapping[str, Sequence[str]] | None = None) -> Opinions:
        """All opinions about the case that ``case_id`` belongs to. NotFound where its base case is not there.

        Who reads those about many cases looks once which are ``seeded``: by document, as ``seeded_by_document`` says.
        """
        base = read_packet(files, base_of(case_id))
        chains = {one: numbered(files, one) for one in _family(base.case_id)}
        if base.is_seeded:
            return cls(base, chains, _answered(files, base.shown_doc_id))
        if base.kind != "classification":  # what a document is, which a seeded case is about, is not asked here
            return cls(base, chains)
        about = (seeded_by_document(files) if seeded is None else seeded).get(base.doc_id, ())
        told = tuple(review.reviewer for one in about for _, review in numbered(files, one))
        return cls(base, chains, told, is_seeded_waiting=any(waits(files, one) for one in about))

    def with_review(self, case_id: str, review: Review) -> Opinions:
        """The opinions after one more review of a case, which was just written."""
        added = (self.revision(case_id) + 1, review)
        return replace(self, chains={**self.chains, case_id: [*self.chains[case_id], added]})

    def revision(self, case_id: str) -> int:
        """The number of a case's newest review; 0 where there is none."""
        chain = self.chains[case_id]
        return chain[-1][0] if chain else 0

    @cached_property
    def asked(self) -> Review | None:
        """The review that stands on the base case and asks for a second opinion, if it does.

        Never of a seeded case: a colleague's time is worth more than a second answer to a planted fault.
        """
        if self.base.is_seeded:
            return None
        newest = self._closing(self.base.case_id)
        return newest if newest and newest.second_opinion else None

    @cached_property
    def packets(self) -> dict[str, SMEPacket]:
        """The further cases that there must be, by case_id."""
        asked, second = self.asked, self._second
        wanted = {}
        if asked:
            reason = f"a colleague asks for a second opinion: {asked.second_opinion}"
            wanted[self._id(SECOND)] = self._packet(SECOND, reason, asked)
        if second and self._differ:
            reason = "two colleagues gave different answers, and a third decides"
            wanted[self._id(ADJUDICATION)] = self._packet(ADJUDICATION, reason, second)
        return wanted

    def record(self) -> GroundTruth | FieldsGroundTruth | TemplateGroundTruth | None:
        """The document's ground truth; None where there is none, or none yet."""
        chain = self.chains[self.base.case_id]
        # What was asked about gave no ground truth, unless the second opinion agreed with it for a while.
        withheld = {number for number, review in chain if review.second_opinion}
        if self.asked and any(_is_same_answer(self.asked, one) for _, one in self.chains[self._id(SECOND)]):
            withheld.remove(chain[-1][0])
        if self.is_doubtful:
            return None
        if self._differ:
            decided = self.chains[self._id(ADJUDICATION)]
            # Counted on, so that a document's records never have the same number twice.
            chain = [*chain, *((chain[-1][0] + number, review) for number, review in decided)]
        return project(self.base, chain, withheld=withheld)

    def status(self, case_id: str) -> ReviewStatus:
        """Where one of the cases stands, by its reviews."""
        chain = self.chains[case_id]
        return status_after(chain[-1][1] if chain else None)

    def request(self, case_id: str) -> str:
        """Why a colleague asks; empty unless it is the case for a second opinion."""
        return self.asked.second_opinion if self.asked and case_id == self._id(SECOND) else ""

    def answers(self, case_id: str) -> tuple[Opinion, ...]:
        """The two answers, if the case is their adjudication. Their order tells nothing of who came first."""
        if case_id != self._id(ADJUDICATION) or not (self.asked and self._second):
            return ()
        mixed = sorted((self.asked, self._second), key=lambda review: digest(review.model_dump(mode="json")))
        return tuple(
            Opinion(name, self._drawn(review), review.outcome, review.correction_notes)
            for name, review in zip("AB", mixed, strict=True)
        )

    def barred(self, case_id: str) -> tuple[str, ...]:
        """The reviewers who must not answer that case: all who have answered one before it, undone or not.

        Of a seeded case, all who have answered any about the document; and whoever has learnt the first answer from a
        seeded case gives no further opinion.
        """
        if self.base.is_seeded:
            return self.knowing
        before = {SECOND: ("",), ADJUDICATION: ("", SECOND)}.get(case_id.removeprefix(self.base.case_id), ())
        reviews = (review for ending in before for _, review in self.chains[self._id(ending)])
        said = (review.reviewer for review in reviews if review.outcome != "reopened")
        return tuple(dict.fromkeys([*said, *(self.knowing if before else ())]))

    def readable(self, case_id: str, reviewer: str) -> tuple[Review, ...]:
        """The reviews of a case that a reviewer may read: while another opinion is awaited, only their own."""
        is_open = not (self.is_doubtful or self._may_be_seeded_for(reviewer))
        return tuple(review for _, review in self.chains[case_id] if review.reviewer == reviewer or is_open)

    def require_not_barred(self, case_id: str, reviewer: str) -> None:
        """ReviewRefused where the reviewer has given their opinion already."""
        if reviewer in self.barred(case_id):
            raise ReviewRefused(
                f"you have answered case {self.base.case_id!r} already, and case {case_id!r} needs another expert",
                code="REVIEW-BARRED",
                remedy="Leave it to a colleague, and take the next case.",
            )

    def require_readable(self, case_id: str, reviewer: str) -> None:
        """ReviewRefused where the case would tell the reviewer what they must not know: they may be asked next."""
        may_be_asked = self.is_doubtful and reviewer not in self.barred(self._id(SECOND))
        may_be_tested = self.status(case_id) == "completed" and self._may_be_seeded_for(reviewer)
        if (case_id == self.base.case_id and may_be_asked) or may_be_tested:
            raise ReviewRefused(
                f"a further opinion on case {case_id!r} is awaited: until then nobody reads it who has not answered it",
                code="REVIEW-AWAITED",
                remedy="Open it when all opinions are given.",
            )

    def row(self, files: Files, case_id: str) -> dict[str, Any]:
        """The row of the index of one of the cases; what a base case says is left out while an opinion is awaited."""
        packet = self.base if case_id == self.base.case_id else read_packet(files, case_id)
        row = {
            **case_row(packet, self.status(case_id), self.barred(case_id)),
            "source": source(files, packet),
        }
        if case_id == self.base.case_id and self.is_doubtful:
            row |= {"blocker": 0, "major": 0, "minor": 0, "dominant_type": "", "agents": ""}
            row["decision_reason"] = "a further opinion is awaited"
        return row

    def rows(self, files: Files, there: frozenset[str]) -> Iterator[dict[str, Any]]:
        """The rows of the index of those of the cases that are ``there``."""
        return (self.row(files, one) for one in self.chains if one in there)

    def require_writable(
        self, files: Files, index: Index, case_id: str, reviewer: str, now: str, *, is_undo: bool
    ) -> None:
        """ReviewRefused where a further review of the case, by that reviewer at ``now``, would break what rests on it.

        Only under the lock. ``now`` is ISO 8601 in UTC; ``is_undo`` says that the review reopens the case.
        """
        self.require_not_barred(case_id, reviewer)
        if self.base.is_seeded and self.chains[self.base.case_id]:
            raise ReviewRefused(
                f"a fault was planted in case {case_id!r}, and its answer stands",
                code="REVIEW-SEEDED",
                remedy="Nothing follows from it: take the next case.",
            )
        following = {self.base.case_id: self._id(SECOND), self._id(SECOND): self._id(ADJUDICATION)}.get(case_id)
        if following is None or following not in self.packets:
            return
        if is_frozen(files, index, following, now) or index.deferrals.of(following):
            raise ReviewRefused(
                f"a colleague has begun case {following!r}, so what was said in case {case_id!r} stands",
                code="REVIEW-RESTS",
                remedy=f"Whatever is to change is said in case {following!r} now.",
            )
        if case_id == self.base.case_id and not is_undo:
            raise ReviewRefused(
                f"a second opinion on case {case_id!r} was asked for and is awaited",
                code="REVIEW-AWAITED",
                remedy="Wait for it, or reopen the case, which takes the question back.",
            )

    def _may_be_seeded_for(self, reviewer: str) -> bool:
        answered = (review.reviewer for chain in self.chains.values() for _, review in chain)
        return self.is_seeded_waiting and reviewer not in answered

    def _id(self, ending: str) -> str:
        return self.base.case_id + ending

    def _closing(self, case_id: str) -> Review | None:
        """The newest review of a case, if it closes it."""
        return self.chains[case_id][-1][1] if self.status(case_id) == "completed" else None

    @cached_property
    def _second(self) -> Review | None:
        return self._closing(self._id(SECOND)) if self.asked else None

    @property
    def _differ(self) -> bool:
        """Whether there are two answers, and not the same."""
        if self.asked is None or self._second is None:
            return False
        return not _is_same_answer(self.asked, self._second)

    @property
    def is_doubtful(self) -> bool:
        """Whether an opinion was asked for and is still to come."""
        if self._differ:
            return self.status(self._id(ADJUDICATION)) != "completed"
        return self.asked is not None and self._second is None

    def _packet(self, ending: str, reason: str, after: Review) -> SMEPacket:
        return self.base.model_copy(
            update={
                "case_id": self._id(ending),
                "decision_reason": reason,
                "review_status": "pending",
                "review_reason": "requested",
                "inclusion_probability": 1.0,
                "created_at": after.submitted_at,
            }
        )

    def _drawn(self, review: Review) -> Draft:
        said: dict[str, Any] = {"notes": review.correction_notes, "issue_verdicts": review.issue_verdicts}
        if isinstance(review.after, tuple) or self.base.kind == "extraction":
            own = differing(forms(self.base), review.after) if isinstance(review.after, tuple) else {}
            return Draft.of(self.base).model_copy(update=said | {"fields": own})
        if self.base.kind == "statement_template":
            drawn = said | {"template": edited(self.base, review.after), "unmet_sums": review.unmet_sums}
            return Draft.of(self.base).model_copy(update=drawn)
        draft = Draft.of(self.base.model_copy(update={"classification": review.after}))
        starts = {one.start_page for one in draft.segments}
        flags = tuple(
            SegmentFlag(start_page=row["start_page"], flag=row["flag"])
            for row in review.segment_flags
            if "flag" in row and row["start_page"] in starts
        )
        return draft.model_copy(update=said | {"flags": flags})


def reproject(files: Files, case_id: str, seeded: Mapping[str, Sequence[str]] | None = None) -> list[dict[str, Any]]:
    """Make all files that follow from a case's reviews again; the index's rows of the cases about it.

    That is: ground truth, the packets of further opinions, the packets' mirrors of the status. Heals a crash after a
    review was written; without reviews nothing changes. The caller holds the lock. ``seeded`` as of ``Opinions.read``.
    NotFound where the base case has no packet.
    """
    opinions = Opinions.read(files, case_id, seeded)
    return list(opinions.rows(files, settle(files, opinions)))


def settle(files: Files, opinions: Opinions) -> frozenset[str]:
    """Make all files again that follow from the reviews, as ``reproject``; which of the cases there are now.

    The caller holds the lock.
    """
    # First of all, so that nobody takes for true what is in doubt by now.
    _settle_record(files, opinions)
    there = {opinions.base.case_id}  # it was read
    for one, chain in opinions.chains.items():
        is_base, status = one == opinions.base.case_id, opinions.status(one)
        if not is_base and _settle_packet(files, one, opinions.packets.get(one), is_begun=bool(chain)):
            there.add(one)
        if one in there and not (is_base and opinions.base.review_status == status):
            mirror_status(files, one, status)
    return frozenset(there)


def enter(files: Files, index: Index, opinions: Opinions, there: frozenset[str]) -> None:
    """Tell the index which cases there are about the base case, and where each stands; the caller holds the lock.

    ``there``: those that have a packet, as ``settle`` said.
    """
    for row in opinions.rows(files, there):
        index.put_case(row)
    index.drop_cases(*(opinions.chains.keys() - there))


def settle_seeded(files: Files, index: Index, now: str, doc_id: str | None = None) -> None:
    """Put the seeded cases (of one document, or all) into the queue that belong there; the caller holds the lock.

    One of which the planted part's truth is another by now is taken out, unless somebody has begun it at ``now`` (ISO 8601, UTC).
    Heals a crash after one was written down. StoreError where one cannot be read.
    """
    for case_id, shown in list(seeded_cases(files)):
        if doc_id not in (None, shown):
            continue
        seeded, name = read_seeded(files, case_id), packet_name(case_id)
        is_begun = is_frozen(files, index, case_id, now) or index.deferrals.of(case_id) is not None
        if not is_begun and not still_holds(files, seeded):
            files.remove(name)
        elif not files.exists(name):
            files.write(name, to_json(seeded.packet))
        if files.exists(name):
            row = Opinions.read(files, case_id).row(files, case_id)
            if is_begun:
                row.pop("review_status")  # claims have a say in it
            index.put_case(row)
        else:
            index.drop_cases(case_id)


def _settle_record(files: Files, opinions: Opinions) -> None:
    if not opinions.chains[opinions.base.case_id]:
        return  # silver stays
    name = ground_truth_name(opinions.base.case_id)
    record = opinions.record()
    if record is None:
        files.remove(name)
    elif if_readable(files, name) != (value := record.model_dump(mode="json")):
        files.write(name, value)
    if opinions.base.kind == "classification":
        withdraw_unbacked(files, opinions.base.doc_id)
    if opinions.base.kind == "statement_template":
        _settle_template(files, opinions, record)


def _settle_template(files: Files, opinions: Opinions, record: object) -> None:
    """The template's file as the reviews leave it: stable as it was approved, else the draft that it was before.

    A version that was made since is none of these reviews' business, and a draft that somebody has changed stays.
    """
    draft = template_of(opinions.base)
    name = template_name(draft.template_id)
    stored = _stored_template(files, name)
    if isinstance(record, TemplateGroundTruth):
        wanted = record.ground_truth_template
        if stored is None or (stored != wanted and stored.version <= wanted.version):
            files.write_text(name, write_template(wanted))
        return
    left = [review.after for chain in opinions.chains.values() for _, review in chain]
    if stored is None or (stored != draft and stored in left):
        files.write_text(name, write_template(draft))


def _stored_template(files: Files, name: str) -> StatementTemplate | None:
    """None where there is no such file, or no template in it."""
    try:
        return read_template(files.raw(name).decode(), name)
    except (NotFound, UsageError, UnicodeDecodeError):
        return None


def _settle_packet(files: Files, case_id: str, wanted: SMEPacket | None, *, is_begun: bool) -> bool:
    """Write or withdraw a further case's packet; whether there is one now.

    One that was reviewed stays what its reviewer had before their eyes.
    """
    name = packet_name(case_id)
    if wanted is None:
        if is_begun:
            return files.exists(name)
        files.remove(name)
        return False
    stored = if_readable(files, name)
    if stored is None or not (is_begun or stored | {"review_status": "pending"} == to_json(wanted)):
        files.write(name, to_json(wanted))
    return True


def _family(case_id: str) -> Iterator[str]:
    yield from (case_id, case_id + SECOND, case_id + ADJUDICATION)


def _answered(files: Files, doc_id: str) -> tuple[str, ...]:
    """Everybody who has answered a case about a document."""
    chains = (numbered(files, one) for one in _family(doc_id))
    return tuple(dict.fromkeys(review.reviewer for chain in chains for _, review in chain))


def _is_same_answer(one: Review, other: Review) -> bool:
    """Whether two experts agree."""
    if isinstance(one.after, StatementTemplate) and isinstance(other.after, StatementTemplate):
        return bool(one.unmet_sums) == bool(other.unmet_sums) and said_the_same(one.after, other.after)
    return _answer(one) == _answer(other)


def _answer(review: Review) -> tuple[Any, ...]:
    """What two experts must have said alike to agree, whether the agent had said it or not."""
    if review.after is None:
        return (review.outcome,)
    if isinstance(review.after, tuple):
        return tuple(said_alike(review.after))
    if isinstance(review.after, StatementTemplate):
        return (review.after,)
    segments = [(one.start_page, one.end_page, one.dominant_type) for one in review.after.segments]
    return review.after.dominant_type_overall, segments
