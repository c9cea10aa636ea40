"""The draft: an expert's answer before it is submitted, and its edits.

A draft is immutable: every edit returns a new draft. The drafts of all kinds of case have the same fields; a further kind
adds its fields in a subclass. The segments always cover the pages 1..total_pages without gap or overlap, because edits
work on the segments' first pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import Field, model_validator

from evalkit.classification.schema import DocumentType, Segment
from evalkit.classification.v2_consistency import choose_tie_winner
from evalkit.core.records import SchemaByReference, StrictRecord
from evalkit.issue import PageBox
from evalkit.review.field_answers import FieldAnswer, format_field_value
from evalkit.review.gapless_segments import SegmentDraft, fit_segments_to_file, is_gapless
from evalkit.review.ground_truth import IssueVerdict
from evalkit.review.packet import SMEPacket
from evalkit.statements.statement_template import StatementTemplate

FlagKind = Literal["other_patient", "duplicate", "out_of_order"]
FLAG_KINDS: tuple[FlagKind, ...] = get_args(FlagKind)

MAX_QUOTES, MAX_QUOTE_LENGTH, MAX_QUOTE_BOXES = 200, 4000, 200

_NoteKey = TypeVar("_NoteKey", int, str)
#: The fields of a draft that are taken over with a colleague's answer.
_ADOPTED_FIELDS = (
    *("segments", "dominant_type", "flags", "mixture", "fields", "template", "unmet_sums"),
    *("evidence", "issue_verdicts", "boundaries_decided"),
)
#: The type of each segment, by the segment's first page.
_TypesByStart = dict[int, DocumentType | None]


class SegmentFlag(StrictRecord):
    """Problem of a segment apart from its type: other patient, duplicate, order."""

    start_page: int
    """The segment's first page."""
    flag: FlagKind
    """The problem: the pages are about another patient, are in the file twice, or are out of order."""


class ExpertQuote(StrictRecord):
    """Passage that the expert selected on a page as evidence of a type or of a field."""

    page: Annotated[int, Field(ge=1)]
    """The page of the passage, from 1."""
    snippet: Annotated[str, Field(max_length=MAX_QUOTE_LENGTH)] = ""
    """The selected text; empty if nothing was read there."""
    boxes: Annotated[tuple[PageBox, ...], Field(max_length=MAX_QUOTE_BOXES)] = ()
    """The rectangles of the passage on its page; empty if unknown."""
    document_type: DocumentType | None = None
    """The type that the passage shows; None: the type of the document that contains the page."""
    field_key: str | None = None
    """The key of the field whose value the passage shows; None if it shows a type."""

    @model_validator(mode="after")
    def _require_place(self) -> Self:
        if not (self.snippet.strip() or self.boxes):
            raise ValueError("a quote must have a text or a box")
        if not all(box[0] == self.page and min(box[1:]) >= 0 and max(box[1:]) <= 1 for box in self.boxes):
            raise ValueError("a quote's boxes must be on its page, from 0 to 1")
        return self


class Draft(StrictRecord):
    """One expert's unsubmitted answer to a case, with what was on screen."""

    segments: tuple[SegmentDraft, ...]
    """The segments in page order; together they cover every page exactly once."""
    dominant_type: DocumentType | None
    """The overall type of the file; None if not chosen yet."""
    is_type_chosen: bool = False
    """True if the expert chose ``dominant_type``; False if it is the type of most pages."""
    is_redrawn: bool = False
    """True if the expert has changed a segment's page range or type."""
    mixture: dict[DocumentType, float] | None = None
    """The shares (0..1 by type) that the expert stated; None if the expert did not change the shares."""
    mixture_seen: bool = False
    """True if the shares were on screen."""
    notes: str = ""
    """The expert's notes on the whole case."""
    issue_verdicts: tuple[IssueVerdict, ...] = ()
    """The expert's verdicts on single issues, sorted by issue_id."""
    issue_notes: dict[str, str] = {}
    """The expert's notes on single issues, with or without a verdict, by issue_id; never blank."""
    flags: tuple[SegmentFlag, ...] = ()
    """The flags of the segments, in page order."""
    segment_notes: dict[int, str] = {}
    """The expert's notes on single segments, by the segment's first page; never blank."""
    evidence: tuple[ExpertQuote, ...] = ()
    """The passages that the expert selected as evidence, in that order."""
    boundaries_decided: tuple[int, ...] = ()
    """The pages for which the expert decided whether a document begins there, ascending."""
    shows_everything: bool = False
    """True if the expert opened the whole file of a case that asks only about its doubts."""
    fields: dict[str, FieldAnswer] = {}
    """The expert's answers that differ from the agent's, by field key."""
    fields_seen: tuple[str, ...] = ()
    """The keys of the fields that were open on screen, in that order."""
    template: Annotated[StatementTemplate, SchemaByReference()] | None = None
    """The statement template as the expert changed it; None if unchanged."""
    unmet_sums: str = ""
    """The expert's reason for approving the template although its sums do not add up; empty if none was given."""
    page: int = 1
    """The page on screen, from 1."""
    issue_id: str | None = None
    """The selected issue; in a case about fields or a template, the id of whatever is selected there."""
    pages_seen: tuple[int, ...] = ()
    """The pages that were on screen, ascending."""
    evidence_seen: tuple[str, ...] = ()
    """The ids of the issues whose place in the document was on screen, in that order."""
    seconds_active: float = 0.0
    """Seconds for which the expert has actively worked on the case."""

    @model_validator(mode="after")
    def _require_page_coverage_and_known_places(self) -> Self:
        if not self.segments:
            raise ValueError("an answer needs at least one segment (a range of pages)")
        if not is_gapless(self.segments, self.total_pages):
            raise ValueError("segments must cover pages 1, 2, … in order, without gap or overlap")
        if not {*self.segment_notes, *(flag.start_page for flag in self.flags)} <= self._types_by_start.keys():
            raise ValueError("every flag and segment note must name the first page of a segment")
        if any(quote.page > self.total_pages for quote in self.evidence):
            raise ValueError("every quote must be on a page of the document")
        return self

    @classmethod
    def from_packet(cls, packet: SMEPacket) -> Draft:
        """Create a draft that equals the agent's answer, its segments fitted to the file.

        Without a segment that has a page in the file, the draft has one segment of all pages, without a type.
        """
        classification = packet.classification
        blank_draft = cls.create_blank(packet.total_pages)
        if classification is None:
            return blank_draft
        segments, _ = fit_segments_to_file(classification.segments, packet.total_pages)
        return cls(segments=segments or blank_draft.segments, dominant_type=classification.dominant_type_overall)

    @classmethod
    def create_blank(cls, total_pages: int) -> Draft:
        """Create an empty draft: one segment of all pages, without a type."""
        return cls(segments=(SegmentDraft(start_page=1, end_page=total_pages, dominant_type=None),), dominant_type=None)

    @property
    def total_pages(self) -> int:
        """Number of pages of the file."""
        return self.segments[-1].end_page

    def set_segment_type(self, segment_position: int, document_type: DocumentType | None) -> Draft:
        """Set the type of a segment, counted from 0. IndexError if it does not exist."""
        return self._redraw_segments(
            {**self._types_by_start, self._get_segment(segment_position).start_page: document_type}
        )

    def toggle_boundary(self, page: int) -> Draft:
        """Start a segment on a page or, if one starts there, join it to the previous one.

        A new segment has the type of the segment that it was split from, a joined one the type of the previous segment, if
        that has a type. On page 1 nothing changes, because a segment always
        starts there. ValueError if the file has no such page.
        """
        self._require_page(page)
        types_by_start = self._types_by_start
        if page == 1:
            return self
        if page in types_by_start:
            joined_type = types_by_start.pop(page)
            start_before = max(start for start in types_by_start if start < page)
            types_by_start[start_before] = types_by_start[start_before] or joined_type
        else:
            types_by_start[page] = self._find_segment_of_page(page).dominant_type
        return self._redraw_segments(types_by_start)

    def decide_boundary(self, page: int, *, begins: bool, next_start: int | None = None) -> Draft:
        """Record whether a document begins on a page, and change the segments to match.

        The segment that begins on ``page`` moves to ``next_start`` if none begins on ``page``, and back if one does. Without
        ``next_start`` it is joined to the segment before, or split off. On page 1 a document always begins. ValueError if the
        file has no such page.
        """
        self._require_page(page)
        draft, starts = self, [segment.start_page for segment in self.segments]
        if begins != (page in starts):
            old_start, new_start = (next_start, page) if begins else (page, next_start)
            if (
                old_start in starts
                and new_start is not None
                and new_start <= self._find_segment_of_page(old_start).end_page
            ):
                draft = self.move_segment_start(starts.index(old_start), new_start)
            else:
                draft = self.toggle_boundary(page)
        return draft.model_copy(update={"boundaries_decided": tuple(sorted({*draft.boundaries_decided, page}))})

    def set_type_of_pages(self, first_page: int, last_page: int, document_type: DocumentType | None) -> Draft:
        """Set a type for whole segments; for other page ranges, create such a segment.

        ValueError if the file has no such page.
        """
        self._require_page(first_page)
        self._require_page(last_page)
        first_page, last_page = sorted((first_page, last_page))
        types_by_start = self._types_by_start
        following_page = last_page + 1
        are_whole = first_page in types_by_start and following_page in {*types_by_start, self.total_pages + 1}
        if following_page <= self.total_pages:
            types_by_start.setdefault(following_page, self._find_segment_of_page(following_page).dominant_type)
        for start in [start for start in types_by_start if first_page <= start <= last_page]:
            if are_whole:
                types_by_start[start] = document_type
            else:
                del types_by_start[start]
        return self._redraw_segments(types_by_start | {first_page: document_type})

    def move_segment_start(self, segment_position: int, page: int) -> Draft:
        """Move the first page of a segment (counted from 0) to ``page``.

        The previous segment loses or gains these pages, or disappears. The moved segment keeps at least one page. If the
        file's first segment is moved, the pages before it become a new segment of the same type. IndexError if there is no
        such segment; ValueError if the file has no such page.
        """
        self._require_page(page)
        segment = self._get_segment(segment_position)
        first_page = min(page, segment.end_page)
        types_by_start = {
            start: document_type
            for start, document_type in self._types_by_start.items()
            if start == 1 or not min(first_page, segment.start_page) <= start <= segment.start_page
        }
        return self._redraw_segments(
            {**types_by_start, first_page: segment.dominant_type}, moved_start=(segment.start_page, first_page)
        )

    def move_segment_end(self, segment_position: int, page: int) -> Draft:
        """Move the last page of a segment (counted from 0) to ``page``.

        The next segment loses or gains these pages, or disappears. The moved segment keeps at least one page. If the file's
        last segment is moved, the pages after it become a new segment of the same type. IndexError if there is no such
        segment; ValueError if the file has no such page.
        """
        self._require_page(page)
        segment = self._get_segment(segment_position)
        last_page = max(page, segment.start_page)
        if last_page == segment.end_page:
            return self
        # The segment that gives its type to the first page after the moved end: if the segment grows, the one that had this
        # page before; if it shrinks, the next segment.
        following_segment = self._find_segment_of_page(min(max(last_page, segment.end_page) + 1, self.total_pages))
        types_by_start = {
            start: document_type
            for start, document_type in self._types_by_start.items()
            if not segment.start_page < start <= max(last_page, segment.end_page) + 1
        }
        if last_page == self.total_pages:
            return self._redraw_segments(types_by_start)
        types_by_start[last_page + 1] = following_segment.dominant_type
        return self._redraw_segments(
            types_by_start,
            moved_start=None if following_segment == segment else (following_segment.start_page, last_page + 1),
        )

    def set_dominant_type(self, document_type: DocumentType | None) -> Draft:
        """Set the file's overall type; None restores the type of most pages."""
        if document_type is None:
            return self._replace_fields(dominant_type=_choose_type_of_most_pages(self.segments), is_type_chosen=False)
        return self._replace_fields(dominant_type=document_type, is_type_chosen=True)

    def set_mixture(self, shares: Mapping[DocumentType, float] | None) -> Draft:
        """Set the expert's shares (0..1 by type); None removes them."""
        return self._replace_fields(mixture=None if shares is None else dict(shares))

    def mark_mixture_seen(self) -> Draft:
        """Record that the shares were on screen."""
        return self._replace_fields(mixture_seen=True)

    def show_page_and_mark_seen(self, page: int) -> Draft:
        """Make a page the current one and record it as seen.

        ValueError if the file has no such page.
        """
        self._require_page(page)
        return self._replace_fields(page=page, pages_seen=tuple(sorted({*self.pages_seen, page})))

    def show_issue_and_mark_seen(self, issue_id: str) -> Draft:
        """Select an issue and record that its place in the document was on screen."""
        return self._replace_fields(
            issue_id=issue_id, evidence_seen=tuple(dict.fromkeys([*self.evidence_seen, issue_id]))
        )

    def add_quote(self, quote: ExpertQuote) -> Draft:
        """Add a passage as evidence, unless the draft already has it.

        ValueError if the file has no such page, or if there are ``MAX_QUOTES`` quotes.
        """
        self._require_page(quote.page)
        if len(self.evidence) >= MAX_QUOTES:
            raise ValueError(f"a case has at most {MAX_QUOTES} quotes")
        return self if quote in self.evidence else self._replace_fields(evidence=(*self.evidence, quote))

    def remove_quote(self, position: int) -> Draft:
        """Remove a quote, counted from 0. IndexError if it does not exist."""
        if not 0 <= position < len(self.evidence):
            raise IndexError(position)
        return self._replace_fields(evidence=(*self.evidence[:position], *self.evidence[position + 1 :]))

    def set_field_answer(self, field_key: str, answer: FieldAnswer | None) -> Draft:
        """Set the expert's answer to a field; None restores the agent's answer."""
        other_answers = {
            other_key: other_answer for other_key, other_answer in self.fields.items() if other_key != field_key
        }
        return self._replace_fields(fields=other_answers if answer is None else other_answers | {field_key: answer})

    def show_field_and_mark_seen(self, field_key: str) -> Draft:
        """Select a field and record that it was on screen with its place in the document."""
        return self._replace_fields(
            issue_id=field_key, fields_seen=tuple(dict.fromkeys([*self.fields_seen, field_key]))
        )

    def set_template(self, template: StatementTemplate | None) -> Draft:
        """Set the expert's template; None restores the agent's template.

        A change deletes the reason for approving sums that do not add up, because the sums may differ now.
        """
        return self if template == self.template else self._replace_fields(template=template, unmet_sums="")

    def set_unmet_sums_reason(self, text: str) -> Draft:
        """Save the reason for approving a template whose sums do not add up.

        Blank text removes the reason.
        """
        return self._replace_fields(unmet_sums=text.strip())

    def set_issue_verdict(
        self, issue_id: str, verdict: Literal["confirmed", "dismissed"] | None, note: str = ""
    ) -> Draft:
        """Set the expert's verdict on an issue; None removes the verdict and its note."""
        verdicts = [issue_verdict for issue_verdict in self.issue_verdicts if issue_verdict.issue_id != issue_id]
        if verdict is not None:
            verdicts.append(IssueVerdict(issue_id=issue_id, verdict=verdict, note=note))
        return self._replace_fields(
            issue_verdicts=tuple(sorted(verdicts, key=lambda listed_verdict: listed_verdict.issue_id))
        )

    def set_issue_note(self, issue_id: str, text: str) -> Draft:
        """Set the expert's note on an issue; blank text removes the note."""
        return self._replace_fields(issue_notes=_replace_note(self.issue_notes, issue_id, text))

    def toggle_segment_flag(self, segment_position: int, flag: FlagKind) -> Draft:
        """Add a flag to a segment, counted from 0, or remove the flag if it is set.

        IndexError if there is no such segment.
        """
        segment_flag = SegmentFlag(start_page=self._get_segment(segment_position).start_page, flag=flag)
        return self._replace_fields(flags=_sort_flags({*self.flags} ^ {segment_flag}))

    def split_off_flagged_pages(self, first_page: int, last_page: int, flag: FlagKind) -> Draft:
        """Separate a page range from its neighbours and flag its segments.

        Segments that already begin within the range keep their first pages. ValueError if the file has no such page.
        """
        self._require_page(first_page)
        self._require_page(last_page)
        boundary_pages = [page for page in (first_page, last_page + 1) if page <= self.total_pages]
        draft = self._redraw_segments(
            {page: self._find_segment_of_page(page).dominant_type for page in boundary_pages} | self._types_by_start
        )
        for position, segment in enumerate(draft.segments):
            is_flagged = SegmentFlag(start_page=segment.start_page, flag=flag) in draft.flags
            if first_page <= segment.start_page <= last_page and not is_flagged:
                draft = draft.toggle_segment_flag(position, flag)
        return draft

    def set_segment_note(self, segment_position: int, text: str) -> Draft:
        """Set the note on a segment, counted from 0; blank text removes the note.

        IndexError if there is no such segment.
        """
        return self._replace_fields(
            segment_notes=_replace_note(self.segment_notes, self._get_segment(segment_position).start_page, text)
        )

    def set_notes(self, text: str) -> Draft:
        """Set the expert's notes on the whole case."""
        return self._replace_fields(notes=text)

    def rebase_onto(self, new_draft: Draft) -> Draft:
        """Transfer the expert's work to the first draft of the case's new version.

        The segments, types, shares and template that the expert set are kept; everything else comes from the new packet.
        Verdicts and what was seen are dropped, because an issue_id may now stand for another issue. Notes on issues or on
        segments that no longer exist are appended to the notes on the case, and so are answers to fields, because a field key
        may now stand for another form.
        """
        note_lines = [
            *self.issue_notes.values(),
            *(f"{key}: {format_field_value(answer)}" for key, answer in self.fields.items()),
        ]
        if self.total_pages != new_draft.total_pages:
            quoted_words = (f"page {quote.page}: “{quote.snippet}”" for quote in self.evidence if quote.snippet)
            notes = self._join_notes(*note_lines, *self.segment_notes.values(), *quoted_words)
            return new_draft._replace_fields(notes=notes, template=self.template)
        carried_fields: dict[str, Any] = {
            "mixture": self.mixture, "template": self.template, "page": self.page, "seconds_active": self.seconds_active,
            "evidence": self.evidence,
        }  # fmt: skip
        if self.is_redrawn:
            carried_fields |= {
                "segments": self.segments, "dominant_type": self.dominant_type, "is_redrawn": True,
                "boundaries_decided": self.boundaries_decided,
            }  # fmt: skip
        if self.is_type_chosen:
            carried_fields |= {"dominant_type": self.dominant_type, "is_type_chosen": True}
        if self.is_redrawn or self.segments == new_draft.segments:
            carried_fields |= {"flags": self.flags, "segment_notes": self.segment_notes}
        else:
            note_lines += self.segment_notes.values()
        return new_draft._replace_fields(**carried_fields, notes=self._join_notes(*note_lines))

    def adopt_answer(self, answer: Draft) -> Draft:
        """Replace the answer by a colleague's answer; keep pages seen and own notes.

        A note on a document that the colleague's answer does not have is appended to the notes on the case.
        """
        first_pages = {segment.start_page for segment in answer.segments}
        return self._replace_fields(
            **{name: getattr(answer, name) for name in _ADOPTED_FIELDS},
            is_redrawn=True,
            is_type_chosen=True,
            segment_notes={page: text for page, text in self.segment_notes.items() if page in first_pages},
            notes=self._join_notes(*(text for page, text in self.segment_notes.items() if page not in first_pages)),
        )

    def _join_notes(self, *note_lines: str) -> str:
        return "\n".join(filter(None, (self.notes, *note_lines)))

    @property
    def _types_by_start(self) -> _TypesByStart:
        return {segment.start_page: segment.dominant_type for segment in self.segments}

    def _get_segment(self, position: int) -> SegmentDraft:
        if position < 0:
            raise IndexError(position)
        return self.segments[position]

    def _find_segment_of_page(self, page: int) -> SegmentDraft:
        return next(segment for segment in self.segments if segment.start_page <= page <= segment.end_page)

    def _require_page(self, page: int) -> None:
        if not 1 <= page <= self.total_pages:
            raise ValueError(f"the document has no page {page}")

    def _redraw_segments(self, types_by_start: _TypesByStart, moved_start: tuple[int, int] | None = None) -> Draft:
        """Replace the segments by those with the given first pages and types.

        Unless the expert chose the overall type, it becomes the type of most pages. ``moved_start`` is the old and the new
        first page of a segment that was moved, so that its flags and note move with it.
        """
        first_pages = sorted(types_by_start)
        ends = [*(start - 1 for start in first_pages[1:]), self.total_pages]
        segments = tuple(
            SegmentDraft(start_page=start, end_page=end, dominant_type=types_by_start[start])
            for start, end in zip(first_pages, ends, strict=True)
        )
        if segments == self.segments:
            return self
        overall_type = self.dominant_type if self.is_type_chosen else _choose_type_of_most_pages(segments)
        new_starts = {
            start: start for start in types_by_start
        }  # old first page → new first page of each segment that still exists
        if moved_start:
            old_start, new_start = moved_start
            new_starts.pop(new_start, None)  # the segment that started there was absorbed
            new_starts[old_start] = new_start
        flags = (
            SegmentFlag(start_page=new_starts[flag.start_page], flag=flag.flag)
            for flag in self.flags
            if flag.start_page in new_starts
        )
        type_by_page = {
            page: segment.dominant_type
            for segment in segments
            for page in range(segment.start_page, segment.end_page + 1)
        }
        # A quote that shows its document's type shows the new one, if the expert changes the type.
        evidence = (
            quote.model_copy(update={"document_type": type_by_page[quote.page]})
            if quote.document_type is self._find_segment_of_page(quote.page).dominant_type
            else quote
            for quote in self.evidence
        )
        return self._replace_fields(
            segments=segments,
            evidence=tuple(evidence),
            boundaries_decided=tuple(
                sorted({*self.boundaries_decided} | (self._types_by_start.keys() ^ types_by_start.keys()))
            ),
            dominant_type=overall_type,
            is_redrawn=True,
            flags=_sort_flags(flags),
            segment_notes={new_starts[page]: text for page, text in self.segment_notes.items() if page in new_starts},
        )

    def _replace_fields(self, **fields: Any) -> Self:
        # The constructor validates the fields; model_copy would not.
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | fields)


def _replace_note(notes: Mapping[_NoteKey, str], key: _NoteKey, text: str) -> dict[_NoteKey, str]:
    other_notes = {other_key: other_note for other_key, other_note in notes.items() if other_key != key}
    return other_notes | ({key: text} if text.strip() else {})


def _sort_flags(flags: Iterable[SegmentFlag]) -> tuple[SegmentFlag, ...]:
    return tuple(sorted(flags, key=lambda flag: (flag.start_page, FLAG_KINDS.index(flag.flag))))


def _choose_type_of_most_pages(segments: tuple[SegmentDraft, ...]) -> DocumentType | None:
    """Choose the type that most pages have; ties are broken as in ruling 12.

    None if no segment has a type.
    """
    document_types = list(
        dict.fromkeys(segment.dominant_type for segment in segments if segment.dominant_type is not None)
    )
    typed_segments = [
        Segment(
            segment_index=1,
            segment_page_count=segment.end_page - segment.start_page + 1,
            segment_composition=(),
            **segment.model_dump(),
        )
        for segment in segments
    ]
    return choose_tie_winner(document_types, typed_segments) if document_types else None
