"""Draft: what an expert has said about a case and not submitted yet, and the moves that change it.

Every move gives a new draft. Segments always cover the pages 1..total_pages without gap or overlap: they are kept as
first pages, so nothing else can be drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import model_validator

from evalkit.apart import Apart
from evalkit.classification.schema import ClassificationOutput, DocumentType, Segment
from evalkit.classification.v2_consistency import tie_winner
from evalkit.frozen import Frozen
from evalkit.review.fields import FieldAnswer, shown
from evalkit.review.ground_truth import IssueVerdict
from evalkit.review.packet import SMEPacket
from evalkit.statements.template import StatementTemplate

Flag = Literal["other_patient", "duplicate", "out_of_order"]
FLAGS: tuple[Flag, ...] = get_args(Flag)

_Key = TypeVar("_Key", int, str)
_Starts = dict[int, DocumentType | None]
"""The type of each document by its first page."""


class SegmentDraft(Frozen):
    """A run of pages that is one source document."""

    start_page: int
    """From 1."""
    end_page: int
    """The last page, itself included."""
    dominant_type: DocumentType | None
    """None: not chosen yet."""


class SegmentFlag(Frozen):
    """Something about a segment that its type does not say."""

    start_page: int
    """The segment's first page."""
    flag: Flag
    """It is about another patient, stands in the file twice, or its pages are not in their order."""


class Draft(Frozen):
    """One expert's unsubmitted view of one case."""

    segments: tuple[SegmentDraft, ...]
    """In order; together every page exactly once."""
    dominant_type: DocumentType | None
    """The type of the whole document; None: not chosen yet."""
    is_type_chosen: bool = False
    """Whether the expert chose ``dominant_type`` rather than have it follow from the pages."""
    is_redrawn: bool = False
    """Whether the expert has changed a range or a segment's type."""
    mixture: dict[DocumentType, float] | None = None
    """Share 0..1 by type, where the expert states the shares; None: they are left as they are."""
    mixture_seen: bool = False
    """Whether the shares were on screen."""
    notes: str = ""
    """The expert's words."""
    issue_verdicts: tuple[IssueVerdict, ...] = ()
    """What the expert says about single issues, by issue id."""
    issue_notes: dict[str, str] = {}
    """The expert's words about single issues, with a verdict or without one, by issue id; never blank."""
    flags: tuple[SegmentFlag, ...] = ()
    """In the order of the pages."""
    segment_notes: dict[int, str] = {}
    """The expert's words about single segments, by first page; never blank."""
    fields: dict[str, FieldAnswer] = {}
    """What the expert says about fields, by their keys, where it is not what the agent said."""
    fields_seen: tuple[str, ...] = ()
    """The keys of the fields that were open on screen, in that order."""
    template: Annotated[StatementTemplate, Apart()] | None = None
    """The statement template as the expert has it; None where it is as it was."""
    unmet_sums: str = ""
    """Why the template may be approved although sums are not met, in the expert's words; never blank."""
    page: int = 1
    """The page on screen, from 1."""
    issue_id: str | None = None
    """The issue on screen; in a case about fields also the key of a field, of a template the name of what is lit."""
    pages_seen: tuple[int, ...] = ()
    """The pages that were on screen, sorted."""
    evidence_seen: tuple[str, ...] = ()
    """The ids of the issues whose place was on screen, in that order."""
    seconds_active: float = 0.0
    """How long the expert has worked on it."""

    @model_validator(mode="after")
    def _cover_all_pages(self) -> Self:
        next_page = 1
        for segment in self.segments:
            if segment.start_page != next_page or segment.end_page < segment.start_page:
                raise ValueError("segments must follow each other without gap or overlap")
            next_page = segment.end_page + 1
        if not self.segments:
            raise ValueError("there must be a segment")
        return self

    @model_validator(mode="after")
    def _remark_on_segments_that_are_there(self) -> Self:
        if not {*self.segment_notes, *(one.start_page for one in self.flags)} <= self._starts.keys():
            raise ValueError("flags and notes must name a segment's first page")
        return self

    @classmethod
    def of(cls, packet: SMEPacket) -> Draft:
        """What the agent says; one segment of no type yet where it says nothing that covers the pages."""
        answer = packet.classification
        blank = cls.blank(packet.total_pages)
        return cls(
            segments=covering(answer, packet.total_pages) or blank.segments,
            dominant_type=answer.dominant_type_overall if answer else None,
        )

    @classmethod
    def blank(cls, total_pages: int) -> Draft:
        """Nothing is said yet: one segment of no type."""
        return cls(segments=(SegmentDraft(start_page=1, end_page=total_pages, dominant_type=None),), dominant_type=None)

    @property
    def total_pages(self) -> int:
        """The last page of the document."""
        return self.segments[-1].end_page

    def with_type(self, segment_position: int, kind: DocumentType | None) -> Draft:
        """The segment at that position, from 0, is of that type. IndexError if there is none."""
        return self._redrawn({**self._starts, self._at(segment_position).start_page: kind})

    def split_at(self, page: int) -> Draft:
        """A new document starts on that page, of the same type until the expert says otherwise; undone if one does.

        Undone, its pages belong to the document before. On page 1 a document always starts: nothing changes there.
        ValueError for a page that the document does not have.
        """
        self._require(page)
        starts = self._starts
        if page == 1:
            return self
        if page in starts:
            del starts[page]
        else:
            starts[page] = self._on(page).dominant_type
        return self._redrawn(starts)

    def start_at(self, segment_position: int, page: int) -> Draft:
        """The segment starts on that page; the one before it gives or takes the pages, or is used up.

        A segment keeps at least one page. Pages before the first segment become a document of their own, of the same
        type until the expert says otherwise. IndexError, ValueError as in the other moves.
        """
        self._require(page)
        segment = self._at(segment_position)
        first = min(page, segment.end_page)
        starts = {
            start: kind
            for start, kind in self._starts.items()
            if start == 1 or not min(first, segment.start_page) <= start <= segment.start_page
        }
        return self._redrawn({**starts, first: segment.dominant_type}, moved=(segment.start_page, first))

    def end_at(self, segment_position: int, page: int) -> Draft:
        """The segment ends on that page; the one after it gives or takes the pages, or is used up.

        A segment keeps at least one page. Pages after the last segment become a document of their own, of the same
        type until the expert says otherwise. IndexError, ValueError as in the other moves.
        """
        self._require(page)
        segment = self._at(segment_position)
        last = max(page, segment.start_page)
        if last == segment.end_page:
            return self
        # Whose the first page after it is: when it grows, its own document's; when it shrinks, the next one's.
        after = self._on(min(max(last, segment.end_page) + 1, self.total_pages))
        starts = {
            start: kind
            for start, kind in self._starts.items()
            if not segment.start_page < start <= max(last, segment.end_page) + 1
        }
        if last == self.total_pages:
            return self._redrawn(starts)
        starts[last + 1] = after.dominant_type
        return self._redrawn(starts, moved=None if after == segment else (after.start_page, last + 1))

    def with_dominant(self, kind: DocumentType | None) -> Draft:
        """The whole document is of that type, whatever the pages say; None lets it follow from the pages again."""
        if kind is None:
            return self._changed(dominant_type=_of_most_pages(self.segments), is_type_chosen=False)
        return self._changed(dominant_type=kind, is_type_chosen=True)

    def with_mixture(self, shares: Mapping[DocumentType, float] | None) -> Draft:
        """The expert states the shares (0..1 by type), or None: leaves them as they are."""
        return self._changed(mixture=None if shares is None else dict(shares))

    def seen_mixture(self) -> Draft:
        """The shares were on screen."""
        return self._changed(mixture_seen=True)

    def seen_page(self, page: int) -> Draft:
        """That page is on screen. ValueError for a page that the document does not have."""
        self._require(page)
        return self._changed(page=page, pages_seen=tuple(sorted({*self.pages_seen, page})))

    def seen_evidence(self, issue_id: str) -> Draft:
        """That issue is on screen, with its place in the document."""
        seen = self.evidence_seen if issue_id in self.evidence_seen else (*self.evidence_seen, issue_id)
        return self._changed(issue_id=issue_id, evidence_seen=seen)

    def with_field(self, key: str, said: FieldAnswer | None) -> Draft:
        """What the expert says about a field, in place of what they said before; None: what the agent said."""
        others = {one: value for one, value in self.fields.items() if one != key}
        return self._changed(fields=others if said is None else others | {key: said})

    def seen_field(self, key: str) -> Draft:
        """That field is open on screen, with its place in the document."""
        seen = self.fields_seen if key in self.fields_seen else (*self.fields_seen, key)
        return self._changed(issue_id=key, fields_seen=seen)

    def with_template(self, template: StatementTemplate | None) -> Draft:
        """The template is that; None: as it was. Why sums are not met was said of another one, and is asked anew."""
        return self if template == self.template else self._changed(template=template, unmet_sums="")

    def with_unmet_sums(self, text: str) -> Draft:
        """Why the template may be approved although sums are not met; blank words take it back."""
        return self._changed(unmet_sums=text.strip())

    def with_verdict(self, issue_id: str, verdict: Literal["confirmed", "dismissed"] | None, note: str = "") -> Draft:
        """The expert's verdict on an issue, in place of an earlier one; None takes it back, with its note."""
        kept = [one for one in self.issue_verdicts if one.issue_id != issue_id]
        if verdict is not None:
            kept.append(IssueVerdict(issue_id=issue_id, verdict=verdict, note=note))
        return self._changed(issue_verdicts=tuple(sorted(kept, key=lambda one: one.issue_id)))

    def with_issue_note(self, issue_id: str, text: str) -> Draft:
        """The expert's words about an issue, in place of earlier ones; blank ones take them back."""
        return self._changed(issue_notes=_noted(self.issue_notes, issue_id, text))

    def with_flag(self, segment_position: int, flag: Flag) -> Draft:
        """The segment at that position, from 0, has that flag, or has it no longer if it had. IndexError."""
        one = SegmentFlag(start_page=self._at(segment_position).start_page, flag=flag)
        return self._changed(flags=_in_order({*self.flags} ^ {one}))

    def with_segment_note(self, segment_position: int, text: str) -> Draft:
        """The expert's words about the segment at that position, from 0; blank ones take them back. IndexError."""
        return self._changed(segment_notes=_noted(self.segment_notes, self._at(segment_position).start_page, text))

    def with_notes(self, text: str) -> Draft:
        """The expert's words."""
        return self._changed(notes=text)

    def moved_to(self, fresh: Draft) -> Draft:
        """The draft on a packet that was made anew since, whose case starts with ``fresh``.

        What the expert decided stays, the rest is the new packet's. Issue ids may mean other issues now, so nothing
        counts as seen or judged. Words about an issue, or about a segment that is gone, join the notes; and so do values
        of fields, since a key may mean another form now.
        """
        words = [*self.issue_notes.values(), *(f"{key}: {shown(one)}" for key, one in self.fields.items())]
        if self.total_pages != fresh.total_pages:
            noted = self._notes_and(*words, *self.segment_notes.values())
            return fresh._changed(notes=noted, template=self.template)
        kept: dict[str, Any] = {
            "mixture": self.mixture, "template": self.template, "page": self.page, "seconds_active": self.seconds_active,
        }  # fmt: skip
        if self.is_redrawn:
            kept |= {"segments": self.segments, "dominant_type": self.dominant_type, "is_redrawn": True}
        if self.is_type_chosen:
            kept |= {"dominant_type": self.dominant_type, "is_type_chosen": True}
        if self.is_redrawn or self.segments == fresh.segments:
            kept |= {"flags": self.flags, "segment_notes": self.segment_notes}
        else:
            words += self.segment_notes.values()
        return fresh._changed(**kept, notes=self._notes_and(*words))

    def _notes_and(self, *words: str) -> str:
        return "\n".join(filter(None, (self.notes, *words)))

    @property
    def _starts(self) -> _Starts:
        return {segment.start_page: segment.dominant_type for segment in self.segments}

    def _at(self, position: int) -> SegmentDraft:
        if position < 0:
            raise IndexError(position)
        return self.segments[position]

    def _on(self, page: int) -> SegmentDraft:
        return next(one for one in self.segments if one.start_page <= page <= one.end_page)

    def _require(self, page: int) -> None:
        if not 1 <= page <= self.total_pages:
            raise ValueError(f"the document has no page {page}")

    def _redrawn(self, starts: _Starts, moved: tuple[int, int] | None = None) -> Draft:
        """The draft with these documents; the overall type follows from the pages unless the expert chose it.

        ``moved`` is the first page, before and now, of a document that starts elsewhere: its flags and note go with it.
        """
        first_pages = sorted(starts)
        ends = [*(start - 1 for start in first_pages[1:]), self.total_pages]
        segments = tuple(
            SegmentDraft(start_page=start, end_page=end, dominant_type=starts[start])
            for start, end in zip(first_pages, ends, strict=True)
        )
        if segments == self.segments:
            return self
        overall = self.dominant_type if self.is_type_chosen else _of_most_pages(segments)
        places = {start: start for start in starts}  # where each document that is still there starts now
        if moved:
            before, now = moved
            places.pop(now, None)  # the one that started there is used up
            places[before] = now
        flags = (
            SegmentFlag(start_page=places[one.start_page], flag=one.flag)
            for one in self.flags
            if one.start_page in places
        )
        return self._changed(
            segments=segments,
            dominant_type=overall,
            is_redrawn=True,
            flags=_in_order(flags),
            segment_notes={places[page]: text for page, text in self.segment_notes.items() if page in places},
        )

    def _changed(self, **fields: Any) -> Draft:
        # Not model_copy, which would not check the fields.
        return Draft(**{name: getattr(self, name) for name in Draft.model_fields} | fields)


def covering(answer: ClassificationOutput | None, total_pages: int) -> tuple[SegmentDraft, ...]:
    """The segments of an answer in the order of the pages; none where they do not cover the pages exactly."""
    ranges = sorted((one.start_page, one.end_page, at) for at, one in enumerate(answer.segments)) if answer else []
    next_page = 1
    for start, end, _ in ranges:
        if start != next_page or end < start:
            return ()
        next_page = end + 1
    if answer is None or next_page != total_pages + 1:
        return ()
    return tuple(
        SegmentDraft(start_page=start, end_page=end, dominant_type=answer.segments[at].dominant_type)
        for start, end, at in ranges
    )


def _noted(notes: Mapping[_Key, str], key: _Key, text: str) -> dict[_Key, str]:
    others = {one: words for one, words in notes.items() if one != key}
    return others | ({key: text} if text.strip() else {})


def _in_order(flags: Iterable[SegmentFlag]) -> tuple[SegmentFlag, ...]:
    return tuple(sorted(flags, key=lambda one: (one.start_page, FLAGS.index(one.flag))))


def _of_most_pages(segments: tuple[SegmentDraft, ...]) -> DocumentType | None:
    """The type of most pages, ties as ruling 12 breaks them; None while no segment has a type."""
    types = list(dict.fromkeys(one.dominant_type for one in segments if one.dominant_type is not None))
    return tie_winner(types, [_as_segment(one) for one in segments]) if types else None


def _as_segment(draft: SegmentDraft) -> Segment:
    return Segment(
        segment_index=1,
        segment_page_count=draft.end_page - draft.start_page + 1,
        segment_composition=(),
        **draft.model_dump(),
    )
