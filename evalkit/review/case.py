"""One case on one expert's screen: what must be seen before one press may validate it, and what a press says.

Source: contract, rulings 13 and 14. Pure: nothing here reads or writes a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from evalkit.review.draft import Draft
from evalkit.review.ground_truth import Review
from evalkit.review.packet import SMEPacket
from evalkit.review.submission import VALIDATED_PARTS, Submission

BLOCKER, MAJOR, MINOR = IssueSeverity.BLOCKER, IssueSeverity.MAJOR, IssueSeverity.MINOR

_Counted = Callable[[Issue], bool]


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
    """What the expert had said before, or what the agent says."""
    saved_at: str | None
    """When a restored draft was saved (ISO 8601, UTC); None where nothing was restored."""
    is_completed: bool
    """It is closed: open for reading, without a claim."""
    reviews: tuple[Review, ...]
    """What was submitted about it, oldest first."""

    def context(self, issue_id: str) -> IssueContext:
        """One of the issues with the document's text around it. NotFound if there is no such issue."""
        if issue_id not in self._contexts:  # a screen asks again at every turn of a page
            self._contexts[issue_id] = issue_context(self.packet, issue_id, self.bundle)
        return self._contexts[issue_id]

    def mixture(self, draft: Draft) -> tuple[tuple[DocumentType, float], ...]:
        """The shares 0..1 that the review would leave: the expert's, else by pages of what they drew, else the agent's.

        Pages of no type yet count for none.
        """
        if draft.mixture is not None:
            return tuple(draft.mixture.items())
        if self._repaired is not None and "segments" not in self._differences(draft):
            return tuple((entry.document_type, entry.overall_share) for entry in self._repaired.document_mixture)
        pages: Counter[DocumentType | None] = Counter()
        for one in draft.segments:
            pages[one.dominant_type] += one.end_page - one.start_page + 1
        return tuple((kind, pages[kind] / draft.total_pages) for kind in DocumentType)

    @cached_property
    def must_see(self) -> MustSee:
        """All that has to be on screen before one press may validate."""
        segments = self.packet.classification.segments if self.packet.classification else ()
        first_pages = {one.start_page for one in segments if 1 <= one.start_page <= self.packet.total_pages}
        # A row that is not in the table yet could have counted anything.
        counted = COUNTED.get(self.packet.decision_rule, COUNTED["8"])
        ids = (issue.issue_id for issue in self.packet.open_issues if counted(issue))
        return MustSee(pages=tuple(sorted(first_pages)), issues=tuple(ids))

    def not_yet_seen(self, draft: Draft) -> MustSee:
        """What of it was not on screen yet."""
        return MustSee(
            pages=tuple(page for page in self.must_see.pages if page not in draft.pages_seen),
            issues=tuple(issue for issue in self.must_see.issues if issue not in draft.evidence_seen),
        )

    def refusal(self) -> str | None:
        """Why nobody can validate this case, whatever they have seen, in a sentence for a clinician; else None."""
        if self.is_completed:
            return "This case is closed already."
        if self.packet.classification is None:
            return "The classifier gave no usable answer, so there is nothing to agree with."
        if not (remaining := self._faults):
            return None
        more = f" ({len(remaining) - 1} more like this)" if len(remaining) > 1 else ""
        return f"This answer breaks a rule, so it can only be corrected: {remaining[0].message}{more}."

    def why_not_validate(self, draft: Draft) -> str | None:
        """Why one press may not validate now, in words for a clinician; None where it may."""
        if sentence := self.refusal():
            return sentence
        if self.is_changed(draft):
            return "You have changed the classification: submit it as a correction."
        missing = self.not_yet_seen(draft)
        parts = [*self._issue_words(missing.issues), *_page_words(missing.pages)]
        return f"{_joined(parts)} not yet seen" if parts else None

    def is_changed(self, draft: Draft) -> bool:
        """Whether ranges, types or shares differ from the agent's; notes and verdicts are no change."""
        return bool(self._differences(draft))

    def said(self, draft: Draft, *, validate: bool, undeterminable: str | None) -> Submission:
        """What pressing the button says. ReviewRefused where it cannot be said with this draft."""
        if validate and undeterminable is not None:
            raise _refused("a case cannot be validated and undeterminable at once", "Choose one of them.")
        corrects: frozenset[Part] = frozenset()
        if validate:
            if reason := self.why_not_validate(draft):
                raise _refused(reason.rstrip("."), "Look at what is missing, or submit a correction.")
        elif undeterminable is None:
            corrects = self._corrections(draft)
        return Submission(
            agrees=validate or None,
            corrected_dominant_type=draft.dominant_type if "dominant_type" in corrects else None,
            corrected_segments=draft.segments if "segments" in corrects else None,
            corrected_mixture=_entries(draft) if "mixture" in corrects else None,
            correction_notes=draft.notes,
            issue_verdicts=draft.issue_verdicts,
            undeterminable=undeterminable,
            vouched=self._vouched(draft) if validate else None,
            seconds_active=draft.seconds_active,
            pages_seen=draft.pages_seen,
            evidence_seen=draft.evidence_seen,
        )

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

    def _corrections(self, draft: Draft) -> frozenset[Part]:
        """The parts that the draft corrects; the type goes with segments, and with words alone."""
        parts = self._differences(draft)
        if not parts and not draft.notes.strip():
            raise _refused("nothing was changed", "Change a range, a type or the shares, or write a note.")
        if not parts or "segments" in parts:
            parts |= {"dominant_type"}
        untyped = [at for at, one in enumerate(draft.segments, 1) if one.dominant_type is None]
        if "segments" in parts and untyped:
            raise _refused(f"document {untyped[0]} of the file has no type yet", "Choose its type.")
        if "dominant_type" in parts and draft.dominant_type is None:
            raise _refused("the file has no type yet", "Choose its type, or say why nobody can tell.")
        return parts

    def _issue_words(self, ids: Sequence[str]) -> Iterator[str]:
        severities = [issue.severity for issue in self.packet.open_issues if issue.issue_id in ids]
        for severity, group in groupby(severities):
            count = len(list(group))
            yield f"{count} {_WORDS[severity]}{'s' if count > 1 else ''}"


def _page_words(pages: Sequence[int]) -> Iterator[str]:
    if pages:
        yield f"page{'s' if len(pages) > 1 else ''} {_joined([str(page) for page in pages])}"


def _joined(words: Sequence[str]) -> str:
    """``1``, ``1 and 2``, ``1, 2 and 3``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _entries(draft: Draft) -> list[dict[str, Any]]:
    return [{"document_type": kind, "overall_share": share} for kind, share in (draft.mixture or {}).items()]


def _refused(message: str, remedy: str) -> ReviewRefused:
    return ReviewRefused(message, code="REVIEW-INCOMPLETE", remedy=remedy)
