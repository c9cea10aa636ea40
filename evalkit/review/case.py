"""One case on one expert's screen: what must be seen before one press may validate it, and what a press says.

Source: contract, rulings 13 and 14. Pure: nothing here reads or writes a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from evalkit.classification.autofix import AutoFixEngine
from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ReviewRefused
from evalkit.issue import Issue, IssueSeverity
from evalkit.review.context import IssueContext, issue_context
from evalkit.review.corrections import PARTS, Part, faults
from evalkit.review.draft import Draft, SegmentDraft
from evalkit.review.ground_truth import IssueVerdict, Review, Shown
from evalkit.review.opinions import Opinion
from evalkit.review.packet import ADJUDICATION, SMEPacket
from evalkit.review.roles import ONLY_LOOKS
from evalkit.review.submission import VALIDATED_PARTS, Submission
from evalkit.store import Deferral

BLOCKER, MAJOR, MINOR = IssueSeverity.BLOCKER, IssueSeverity.MAJOR, IssueSeverity.MINOR

_Counted = Callable[[Issue], bool]


def is_blind(packet: SMEPacket, revision: int) -> bool:
    """Whether the agent's answer is hidden: ``revision`` is the newest review's number, whose writer was told it."""
    return not revision and packet.is_asked_blind


def _fixable_major(issue: Issue) -> bool:
    return issue.severity is MAJOR and issue.auto_fixable


def _unfixable_major(issue: Issue) -> bool:
    return issue.severity is MAJOR and not issue.auto_fixable


# fmt: off
#: Which open issues each row of the arbiter's table counted when it won.
COUNTED: dict[str, _Counted] = {
    "1":       lambda issue: issue.severity is BLOCKER,
    "2":       lambda issue: issue.severity is MAJOR,
    "3":       _unfixable_major,
    "4":       _unfixable_major,
    "5":       _fixable_major,
    "6":       lambda issue: issue.severity is MINOR,
    "7":       lambda issue: False,
    "8":       lambda issue: True,
    "retries": _fixable_major,
    "cycle":   _fixable_major,
}
# fmt: on

_CLOSED = "This case is closed already."
_WORDS = {BLOCKER: "blocking issue", MAJOR: "major issue", MINOR: "minor issue"}


@dataclass(frozen=True)
class MustSee:
    """What has to be on screen before one press may validate."""

    pages: tuple[int, ...]
    """Each segment's first page, in order."""
    issues: tuple[str, ...]
    """The ids of the issues that the arbiter's winning row counted, worst first."""


@dataclass(frozen=True)
class Case:
    """A case as it was opened."""

    packet: SMEPacket
    bundle: DocumentBundle
    revision: int
    """The number of the newest review when it was opened; 0: none."""
    draft: Draft
    """What the expert had said before; else what the agent says, or in a blind case nothing."""
    saved_at: str | None
    """When a restored draft was saved (ISO 8601, UTC); None where nothing was restored."""
    is_completed: bool
    """It is closed: open for reading, without a claim."""
    reviews: tuple[Review, ...]
    """What was submitted about it, oldest first; while another opinion is awaited only one's own."""
    opinions: tuple[Opinion, ...] = ()
    """The two answers that an adjudication decides between; none in any other case."""
    request: str = ""
    """Why a colleague asks for a second opinion; empty in any other case."""
    deferral: Deferral | None = None
    """Who has put the case off, and why; None where nobody has."""
    planted: str = ""
    """Of a finished seeded case, what is told of its fault; empty before, and in any other case."""
    only_looks: bool = False
    """Whether this reviewer may look at cases, and decide none."""

    def context(self, issue_id: str) -> IssueContext:
        """One of the issues with the document's text around it. NotFound if there is no such issue."""
        if issue_id not in self._contexts:  # a screen asks again at every turn of a page
            self._contexts[issue_id] = issue_context(self.packet, issue_id, self.bundle)
        return self._contexts[issue_id]

    @property
    def is_for_reading(self) -> bool:
        """Whether nothing can be said here: it is closed, or not this reviewer's to decide."""
        return self.is_completed or self.only_looks

    @property
    def is_blind(self) -> bool:
        """Whether nothing that the agent said may be shown before the expert has answered."""
        return is_blind(self.packet, self.revision)

    def mixture(self, draft: Draft) -> tuple[tuple[DocumentType, float], ...]:
        """The shares 0..1 that the review would leave: the expert's, else by pages of what they drew, else the agent's.

        Pages of no type yet count for none. In a blind case the agent's are never told.
        """
        if draft.mixture is not None:
            return tuple(draft.mixture.items())
        if self._repaired is not None and not self.is_blind and "segments" not in self._differences(draft):
            return tuple((entry.document_type, entry.overall_share) for entry in self._repaired.document_mixture)
        pages: Counter[DocumentType | None] = Counter()
        for one in draft.segments:
            pages[one.dominant_type] += one.end_page - one.start_page + 1
        return tuple((kind, pages[kind] / draft.total_pages) for kind in DocumentType)

    @cached_property
    def must_see(self) -> MustSee:
        """All that has to be on screen before one press may validate.

        In a blind case it is the segments that the expert had drawn on opening: ``not_yet_seen`` follows the draft.
        """
        if self.is_blind:
            return _own(self.draft)
        segments = self.packet.classification.segments if self.packet.classification else ()
        first_pages = {one.start_page for one in segments if 1 <= one.start_page <= self.packet.total_pages}
        # A row that is not in the table yet could have counted anything.
        counted = COUNTED.get(self.packet.decision_rule, COUNTED["8"])
        ids = (issue.issue_id for issue in self.packet.open_issues if counted(issue))
        return MustSee(pages=tuple(sorted(first_pages)), issues=tuple(ids))

    def not_yet_seen(self, draft: Draft) -> MustSee:
        """What of it was not on screen yet."""
        must_see = _own(draft) if self.is_blind else self.must_see
        return MustSee(
            pages=tuple(page for page in must_see.pages if page not in draft.pages_seen),
            issues=tuple(issue for issue in must_see.issues if issue not in draft.evidence_seen),
        )

    def refusal(self) -> str | None:
        """Why this reviewer cannot validate this case, whatever they have seen, in a sentence for a clinician; else None.

        Always None in a blind case: it would tell about the agent's answer.
        """
        if self.is_for_reading:
            return self._why_for_reading
        return None if self.is_blind else self._why_it_cannot_stand

    @property
    def _why_for_reading(self) -> str:
        return _CLOSED if self.is_completed else ONLY_LOOKS

    @cached_property
    def _why_it_cannot_stand(self) -> str | None:
        if self.packet.classification is None:
            return "The classifier gave no usable answer, so there is nothing to agree with."
        if not (remaining := self._faults):
            return None
        more = f" ({len(remaining) - 1} more like this)" if len(remaining) > 1 else ""
        return f"This answer breaks a rule, so it can only be corrected: {remaining[0].message}{more}."

    def why_not_validate(self, draft: Draft) -> str | None:
        """Why one press may not validate now, in words for a clinician; None where it may.

        In a blind case none may: see ``why_not_submit``.
        """
        if self.is_blind:
            return "Give your own answer: what the agent said is shown after it."
        if sentence := self.refusal():
            return sentence
        if self.is_changed(draft):
            return self._changed_words
        missing = self.not_yet_seen(draft)
        parts = [*self._issue_words(missing.issues), *([words_of_pages(missing.pages)] if missing.pages else [])]
        return f"{_joined(parts)} not yet seen" if parts else None

    def why_not_submit(self, draft: Draft) -> str | None:
        """Why the draft cannot be submitted now, as an answer or a correction; None where it can.

        Whether its overall type and shares keep to the rules is only found on submitting.
        """
        if self.is_for_reading:
            return self._why_for_reading
        hindrance = self._hindrance(draft)
        return hindrance[0] if hindrance else None

    def is_changed(self, draft: Draft) -> bool:
        """Whether ranges, types or shares differ from the agent's; notes, flags and verdicts are no change.

        In a blind case: whether the expert has given an answer, a type for every segment.
        """
        return not _untyped(draft) if self.is_blind else bool(self._differences(draft))

    def changes(self, draft: Draft) -> tuple[str, ...]:
        """What differs from the agent's answer, one sentence each; nothing in a blind case, where it is not told."""
        return () if self.is_blind else tuple(_changes(self._agents, draft))

    def agrees(self, draft: Draft) -> bool:
        """Whether ranges, types and the overall type are the agent's. Not to be shown before a blind case is closed."""
        return not self._differences(draft) - {"mixture"}

    def said(self, draft: Draft, *, validate: bool, undeterminable: str | None) -> Submission:
        """What pressing the button says. ReviewRefused where it cannot be said with this draft."""
        validate = self._is_validation(draft, validate=validate, undeterminable=undeterminable)
        corrects: frozenset[Part] = frozenset()
        if not validate and undeterminable is None:
            corrects = self._corrections(draft)
            validate = not corrects
        return Submission(
            agrees=validate or None,
            corrected_dominant_type=draft.dominant_type if "dominant_type" in corrects else None,
            corrected_segments=draft.segments if "segments" in corrects else None,
            corrected_mixture=_entries(draft) if "mixture" in corrects else None,
            correction_notes=notes_of(draft),
            issue_verdicts=verdicts_of(draft),
            undeterminable=undeterminable,
            vouched=self._vouched(draft) if validate else None,
            seconds_active=draft.seconds_active,
            pages_seen=draft.pages_seen,
            evidence_seen=draft.evidence_seen,
            shown=Shown(agent=not self.is_blind),
            segment_flags=tuple(_segment_flags(draft)),
        )

    _changed_words = "You have changed the classification: submit it as a correction."

    def _is_validation(self, draft: Draft, *, validate: bool, undeterminable: str | None) -> bool:
        """Whether the press validates. ReviewRefused where what it says cannot be said with this draft."""
        if validate and undeterminable is not None:
            raise _refused("a case cannot be validated and undeterminable at once", "Choose one of them.")
        if validate and (reason := self.why_not_validate(draft)):
            raise _refused(reason.rstrip("."), "Look at what is missing, or submit what you say instead.")
        if not validate and undeterminable is None and (hindrance := self._hindrance(draft)):
            raise _refused(*hindrance)
        return validate

    @cached_property
    def _contexts(self) -> dict[str, IssueContext]:
        return {}

    @cached_property
    def _repaired(self) -> ClassificationOutput | None:
        """What validating would make true."""
        answer = self.packet.classification
        return AutoFixEngine().apply(answer, self.packet.open_issues)[0] if answer else None

    @cached_property
    def _faults(self) -> list[Issue]:
        return faults(self._repaired, self.bundle, VALIDATED_PARTS) if self._repaired else []

    def _vouched(self, draft: Draft) -> tuple[Part, ...]:
        if self.is_blind:
            return VALIDATED_PARTS  # shares were neither shown nor stated
        # Having looked at shares that break a rule must not stand in the way of what does not depend on them.
        shares_hold = self._repaired is not None and not faults(self._repaired, self.bundle, PARTS)
        return PARTS if draft.mixture_seen and shares_hold else VALIDATED_PARTS

    @cached_property
    def _agents(self) -> Draft:
        return Draft.of(self.packet)

    def _differences(self, draft: Draft) -> frozenset[Part]:
        differs: dict[Part, bool] = {
            "dominant_type": draft.dominant_type != self._agents.dominant_type,
            "segments": draft.segments != self._agents.segments,
            "mixture": draft.mixture is not None,
        }
        return frozenset(part for part, is_other in differs.items() if is_other)

    def _hindrance(self, draft: Draft) -> tuple[str, str] | None:
        """Why the draft is neither an answer nor a correction, and what to do."""
        parts = frozenset(VALIDATED_PARTS) if self.is_blind else self._differences(draft)
        if not parts and not (self.refusal() and draft.notes.strip()):
            return "nothing was changed", "Change a range, a type or the shares, or validate what is there."
        if "segments" in parts and (untyped := _untyped(draft)):
            where = _where([(one.start_page, one.end_page) for one in untyped])
            return f"{where} {'have' if where.startswith('pages') else 'has'} no type yet", "Choose a type."
        if draft.dominant_type is None and parts != {"mixture"}:
            return "the file has no type yet", "Choose its type, or say why nobody can tell."
        # Whoever takes over an answer, or gives one blind, must have looked where its documents begin.
        unseen = [one.start_page for one in draft.segments if one.start_page not in draft.pages_seen]
        if unseen and (self.is_blind or self.packet.case_id.endswith(ADJUDICATION)):
            return f"{words_of_pages(unseen)} not yet seen", "Look where each of your documents begins."
        return None

    def _corrections(self, draft: Draft) -> frozenset[Part]:
        """The parts that the draft corrects; the type goes with segments, and with words alone.

        None where a blind answer turns out to be what the agent said, and that can stand: it is validated.
        """
        parts = self._differences(draft)
        if self.is_blind:
            if not parts and self._why_it_cannot_stand is None:
                return parts
            return parts | set(VALIDATED_PARTS)  # the expert has drawn it all
        return parts | {"dominant_type"} if not parts or "segments" in parts else parts

    def _issue_words(self, ids: Sequence[str]) -> Iterator[str]:
        severities = [issue.severity for issue in self.packet.open_issues if issue.issue_id in ids]
        for severity, group in groupby(severities):
            count = len(list(group))
            yield f"{count} {_WORDS[severity]}{'s' if count > 1 else ''}"


def _where(ranges: Sequence[tuple[int, int]]) -> str:
    """``page 4``, ``pages 4–6``, ``pages 1, 4–6 and 8``."""
    is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    words = [f"{first}" if first == last else f"{first}–{last}" for first, last in ranges]
    return f"page{'' if is_one else 's'} {_joined(words)}"


def words_of_pages(pages: Iterable[int]) -> str:
    """``page 4``, ``pages 1 and 8``."""
    return _where(_single(pages))


def _single(pages: Iterable[int]) -> list[tuple[int, int]]:
    return [(page, page) for page in pages]


def _own(draft: Draft) -> MustSee:
    """What has to be on screen of one's own segments."""
    return MustSee(pages=tuple(one.start_page for one in draft.segments), issues=())


def _untyped(draft: Draft) -> list[SegmentDraft]:
    return [one for one in draft.segments if one.dominant_type is None]


def _changes(agents: Draft, draft: Draft) -> Iterator[str]:
    before, after = ({one.start_page for one in each.segments} for each in (agents, draft))
    for page in sorted(before ^ after):
        is_new = page in after
        yield (
            f"A new document starts on page {page}" if is_new else f"Pages {page - 1} and {page} belong to one document"
        )
    types = {page: one.dominant_type for one in agents.segments for page in range(one.start_page, one.end_page + 1)}
    for one in draft.segments:
        for kind, pages in groupby(range(one.start_page, one.end_page + 1), key=types.__getitem__):
            if kind is not one.dominant_type:
                first, *others = pages
                where = _where([(first, others[-1] if others else first)]).capitalize()
                yield f"{where}: {_named(kind)} → {_named(one.dominant_type)}"
    if draft.dominant_type is not agents.dominant_type:
        yield f"The whole file: {_named(agents.dominant_type)} → {_named(draft.dominant_type)}"
    if draft.mixture is not None:
        shares = (f"{kind} {round(100 * share, 2):g} %" for kind, share in draft.mixture.items() if share)
        yield f"Shares of the file: {', '.join(shares)}"


def _named(kind: DocumentType | None) -> str:
    return kind.value if kind else "no type"


def verdicts_of(draft: Draft) -> tuple[IssueVerdict, ...]:
    """What the expert says about single issues, with the words about each."""
    return tuple(
        one.model_copy(update={"note": draft.issue_notes.get(one.issue_id, one.note)}) for one in draft.issue_verdicts
    )


def notes_of(draft: Draft) -> str:
    """The expert's words; those about an issue without a verdict have no other place."""
    judged = {one.issue_id for one in draft.issue_verdicts}
    about = (f"{issue_id}: {text}" for issue_id, text in sorted(draft.issue_notes.items()) if issue_id not in judged)
    return "\n".join(filter(None, [draft.notes, *about]))


def _segment_flags(draft: Draft) -> Iterator[dict[str, Any]]:
    for index, one in enumerate(draft.segments, 1):
        place = {"segment_index": index, "start_page": one.start_page, "end_page": one.end_page}
        yield from (place | {"flag": flag.flag} for flag in draft.flags if flag.start_page == one.start_page)
        if one.start_page in draft.segment_notes:
            yield place | {"note": draft.segment_notes[one.start_page]}


def _joined(words: Sequence[str]) -> str:
    """``1``, ``1 and 2``, ``1, 2 and 3``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _entries(draft: Draft) -> list[dict[str, Any]]:
    return [{"document_type": kind, "overall_share": share} for kind, share in (draft.mixture or {}).items()]


def _refused(message: str, remedy: str) -> ReviewRefused:
    return ReviewRefused(message, code="REVIEW-INCOMPLETE", remedy=remedy)
