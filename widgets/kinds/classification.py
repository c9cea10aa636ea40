"""Controller of a classification case on the screen: boundaries, types, patients."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar, Literal

from typing_extensions import override

from evalkit.classification.schema import DocumentType, Segment, normalise_shares
from evalkit.documents.patient_banner import PageRange, list_page_ranges_by_person
from evalkit.errors import UsageError
from evalkit.review import (
    BoundaryDoubt,
    ClassificationReviewCase,
    Draft,
    ExpertQuote,
    HighlightedPlace,
    IssueContext,
    get_issue_answers,
)
from evalkit.review.kinds.classification import BOUNDARY_CODES
from widgets.boundary_strip import render_boundary_doubt
from widgets.case_panel import PRESENCE_WORDS, CasePanel, choose_highlight_style, render_case, render_issue_context
from widgets.kinds.controller import Action, CaseController, Message

#: Key of a segment: its first page, its last page and its type.
_SegmentKey = tuple[int, int, DocumentType | None]


class ClassificationController(CaseController):
    """Controller of an open classification case."""

    kind = "classification"
    panel_class = CasePanel
    has_segments = True

    case: ClassificationReviewCase
    panel: CasePanel

    @override
    def render_case(self) -> dict[str, Any]:
        self.panel.context = {}
        return render_case(self.case)

    @override
    def render_draft(self) -> None:
        starts = {segment.start_page for segment in self.draft.segments}
        # Both answers are stored as a change: the boundary tells which of them was given.
        joined = {
            issue.issue_id: {"verdict": "dismissed"}
            for issue in self.case.packet.open_issues
            if issue.issue_id in self.panel.verdicts
            and issue.page not in starts
            and get_issue_answers(issue).effect == "decide_boundary"
        }
        self.panel.set_traits(
            is_repair_applied=self._is_repair_confirmed(),
            is_short=self.case.is_short(self.draft),
            verdicts=self.panel.verdicts | joined,
        )
        self.screen.page_pane.set_traits(
            can_separate=not self.panel.is_locked,
            can_quote=not self.panel.is_locked,
            doubts=[
                rendered | {"begins": doubt.page in starts, "is_decided": self._is_decided(doubt)}
                for doubt, rendered in self._rendered_doubts
            ],
            offer={} if self.panel.is_locked else self._find_further_patient_pages(),
        )

    @override
    def choose_first_target_id(self) -> str | None:
        open_ids = [issue.issue_id for issue in self.case.packet.open_issues]
        asked_ids = [name for asked in self.case.packet.asked_parts for name in asked.question_ids]
        first_id = next(iter(asked_ids if self.case.is_short(self.case.draft) else open_ids), None)
        return None if self.case.is_blind else self.case.draft.issue_id or first_id

    @override
    def locate_target(self, target_id: str) -> HighlightedPlace:
        context = self.case.get_issue_context(target_id)
        page = context.page_found or context.issue.page or (context.segment.start_page if context.segment else 1)
        shown_page = min(max(page, 1), self.case.packet.total_pages)
        return HighlightedPlace(shown_page, context.boxes, choose_highlight_style(context.verdict))

    @override
    def open_target(self, target_id: str) -> None:
        context = self.case.get_issue_context(target_id)
        self.panel.context = render_issue_context(context, self.case.bundle, self.screen.render_cut_out)

    @override
    def build_ribbon_segments(self) -> list[dict[str, Any]]:
        confidence_by_segment = {} if self.case.is_blind else _index_confidence(self.case.packet.segments)
        return [
            {
                "start": segment.start_page,
                "end": segment.end_page,
                "type": segment.dominant_type,
                "flags": [flag.flag for flag in self.draft.flags if flag.start_page == segment.start_page],
                "note": self.draft.segment_notes.get(segment.start_page, ""),
                **confidence_by_segment.get((segment.start_page, segment.end_page, segment.dominant_type), {}),
            }
            for segment in self.draft.segments
        ]

    def show_quote_location(self, message: Message) -> Draft | None:
        """Find a quote of the program's claims, show its page and highlight it."""
        quote_location = self.case.quote_locator.locate(str(message["snippet"]), int(message["page"]))
        if quote_location.page_number is None:
            self.screen.show_notice("This quote was not found in the file’s text.")
        page = quote_location.page_number or int(message["page"])
        if not 1 <= page <= self.case.packet.total_pages:
            return None
        style = choose_highlight_style(quote_location.verdict)
        self.screen.show_place(HighlightedPlace(page, quote_location.boxes, style), "")
        return self.draft

    def add_quote(self, message: Message) -> Draft:
        """Add a selected or drawn passage as a quote of its document's type."""
        try:
            return self.draft.add_quote(
                ExpertQuote(
                    page=message["page"],
                    snippet=" ".join(str(message["text"]).split()),
                    boxes=message["boxes"],
                    document_type=message.get("document_type"),
                )
            )
        except ValueError:  # its message quotes the document
            raise UsageError(
                "this passage cannot be a quote", code="QUOTE-UNUSABLE", remedy="Select a shorter passage of one page."
            ) from None

    def set_mixture(self, message: Message) -> Draft | None:
        """Set the expert's shares of the file, scaled so that they add up to 100 %."""
        percent_by_type = {
            DocumentType(document_type): max(float(percent), 0.0)
            for document_type, percent in message["percent"].items()
        }
        if sum(percent_by_type.values()) <= 0:
            self.screen.show_notice("The shares cannot all be 0.")
            return None
        shares = normalise_shares(percent_by_type.values())
        return self.draft.set_mixture(dict(zip(percent_by_type, shares, strict=True)))

    def toggle_repairable_issues_confirmed(self, _: Message) -> Draft:
        """Confirm all issues that validating repairs, or undo this."""
        draft = self.draft
        verdict: Literal["confirmed"] | None = None if self._is_repair_confirmed() else "confirmed"
        for issue_id in self._list_repairable_issue_ids():
            draft = draft.set_issue_verdict(issue_id, verdict)
        return draft

    def decide_boundary(self, message: Message) -> None:
        """Record if a document begins on a page in doubt; show the next doubt."""
        page = int(message["page"])
        self.draft = self.case.answer_boundary(self.draft, page, begins=bool(message["begins"]))
        undecided = [doubt for doubt in self.case.boundary_doubts if not self._is_decided(doubt)]
        following = next((doubt for doubt in undecided if doubt.page > page), undecided[0] if undecided else None)
        is_short = self.case.is_short(self.draft)
        # In a short case, the type of a new document comes first.
        is_untyped = is_short and (page, None) in [
            (part.start_page, part.dominant_type) for part in self.draft.segments
        ]
        if following is not None and not is_untyped:
            self.screen.show_target(following.issue_id, following.page)
        elif (
            is_short
            and not is_untyped
            and self.panel.selected
            and (place := self.choose_next_place(self.panel.selected))
        ):
            self.screen.show_target(place[1], place[0])
        else:
            self.screen.save_and_show_draft(self.draft)

    def _is_decided(self, doubt: BoundaryDoubt) -> bool:
        judged_ids = {listed.issue_id for listed in self.draft.issue_verdicts}
        return doubt.page in self.draft.boundaries_decided or doubt.issue_id in judged_ids

    @cached_property
    def _rendered_doubts(self) -> list[tuple[BoundaryDoubt, dict[str, Any]]]:
        return [(doubt, render_boundary_doubt(self.case, doubt)) for doubt in self.case.boundary_doubts]

    @override
    def answer_issue(self, issue_id: str, verdict: Literal["confirmed", "dismissed"] | None) -> Draft:
        context = self.case.get_issue_context(issue_id)
        effect, page = get_issue_answers(context.issue).effect, context.issue.page or 0
        draft, is_confirmed = self.draft.set_issue_verdict(issue_id, verdict), verdict == "confirmed"
        if any(page == doubt.page for doubt in self.case.boundary_doubts) and context.issue.code in BOUNDARY_CODES:
            begins = None if verdict is None else is_confirmed != (effect == "join_document")
            return self.case.answer_boundary(self.draft, page, begins=begins)
        if _asks_for_document_type(context) and context.segment and not is_confirmed:
            return self._restore_type(draft, context.segment.start_page)
        if effect == "other_patient":
            return self._flag_patient_pages(draft, page, is_other=is_confirmed)
        return draft

    @override
    def choose_next_place(self, issue_id: str) -> tuple[int, str] | None:
        """Choose the next required question, else the first required unseen page."""
        verdict_by_id = {listed.issue_id: listed.verdict for listed in self.draft.issue_verdicts}
        is_type_open = get_issue_answers(self.case.get_issue_context(issue_id).issue).effect == "choose_type"
        if issue_id not in verdict_by_id or (is_type_open and verdict_by_id[issue_id] == "confirmed"):
            return None
        required_ids = self.case.get_viewing_requirements(self.draft).issue_ids
        next_id = next((required_id for required_id in required_ids if required_id not in verdict_by_id), None)
        if next_id:
            return self.locate_target(next_id).page, next_id
        unseen_pages = self.case.find_unseen_requirements(self.draft).page_numbers
        return (unseen_pages[0], issue_id) if unseen_pages else None

    def _restore_type(self, draft: Draft, page: int) -> Draft:
        """Give the document on a page the type that the program gave it."""
        if not 1 <= page <= draft.total_pages:
            return draft
        agent_draft = self.case.agent_draft
        programs_type = agent_draft.segments[_find_segment_position(agent_draft, page)].dominant_type
        return draft.set_segment_type(_find_segment_position(draft, page), programs_type)

    def _flag_patient_pages(self, draft: Draft, page: int, *, is_other: bool) -> Draft:
        """Separate and flag the pages of the patient of a page, or join and unflag them."""
        for first, last in [self._extend_to_document(*pages) for pages in self._find_patient_ranges(page)]:
            if is_other:
                draft = draft.split_off_flagged_pages(first, last, "other_patient")
                continue
            # Boundaries that the expert drew without calling the pages another patient's are left alone.
            flagged_starts = [flag.start_page for flag in draft.flags if flag.flag == "other_patient"]
            for start in (start for start in flagged_starts if first <= start <= last):
                draft = draft.toggle_segment_flag(_find_segment_position(draft, start), "other_patient")
            for boundary in (first, last + 1) if first in flagged_starts else ():
                if boundary <= draft.total_pages:
                    draft = self.case.restore_boundary(draft, boundary)
        return draft

    def _find_patient_ranges(self, page: int) -> tuple[PageRange, ...]:
        all_ranges = self._page_ranges_by_person
        return next((ranges for ranges in all_ranges if any(first <= page <= last for first, last in ranges)), ())

    def set_type_as_answer(self, message: Message) -> Draft:
        """Set a document's type, and answer the selected issue if it asks for the type."""
        page, document_type = int(message["page"]), DocumentType(message["type"])
        draft = self.draft.set_segment_type(self.find_segment_index(message), document_type)
        context = self.case.get_issue_context(self.panel.selected) if self.panel.selected else None
        if not context or not context.segment or not _asks_for_document_type(context):
            return draft
        segment = context.segment
        is_same_document = segment.start_page <= page <= segment.end_page
        verdict: Literal["confirmed", "dismissed"] = (
            "dismissed" if document_type is segment.dominant_type else "confirmed"
        )
        return draft.set_issue_verdict(context.issue.issue_id, verdict) if is_same_document else draft

    def separate_patient_pages(self, message: Message) -> Draft:
        """Separate another patient's page, or all of their pages, and flag them."""
        page, draft = int(message["page"]), self.draft
        for first, last in self._find_patient_ranges(page):
            if message.get("rest") or first <= page <= last:
                draft = draft.split_off_flagged_pages(*self._extend_to_document(first, last), "other_patient")
        return draft

    def _extend_to_document(self, first: int, last: int) -> PageRange:
        """Extend a patient's pages to their whole document if it names nobody else."""
        others = [pages for ranges in self._page_ranges_by_person for pages in ranges if pages != (first, last)]
        for segment in self.draft.segments:
            start, end = segment.start_page, segment.end_page
            if start <= first and last <= end and not any(begin <= end and start <= stop for begin, stop in others):
                return start, end
        return first, last

    @cached_property
    def _page_ranges_by_person(self) -> list[tuple[PageRange, ...]]:
        return list_page_ranges_by_person(self.case.bundle)

    def _find_further_patient_pages(self) -> dict[str, Any]:
        flagged_starts = {flag.start_page for flag in self.draft.flags if flag.flag == "other_patient"}
        separated_pages = {
            page
            for segment in self.draft.segments
            if segment.start_page in flagged_starts
            for page in range(segment.start_page, segment.end_page + 1)
        }
        for ranges in self._page_ranges_by_person:
            pages = [page for first, last in ranges for page in range(first, last + 1)]
            separated = [page for page in pages if page in separated_pages]
            if separated and len(separated) < len(pages):
                return {"page": separated[0], "pages": [page for page in pages if page not in separated_pages]}
        return {}

    def _list_repairable_issue_ids(self) -> set[str]:
        packet = self.case.packet
        return {issue.issue_id for issue in packet.open_issues if issue.auto_fixable and packet.proposed_repairs}

    def _is_repair_confirmed(self) -> bool:
        repairable_ids = self._list_repairable_issue_ids()
        confirmed_ids = {listed.issue_id for listed in self.draft.issue_verdicts if listed.verdict == "confirmed"}
        return bool(repairable_ids) and confirmed_ids >= repairable_ids

    def find_segment_index(self, message: Message) -> int:
        """Find the index (from 0) of the segment that contains the message's page."""
        return _find_segment_position(self.draft, int(message["page"]))

    actions: ClassVar[dict[str, Action[ClassificationController]]] = {
        "evidence": Action(show_quote_location),
        "quote": Action(add_quote, is_change=True),
        "unquote": Action(
            lambda controller, message: controller.draft.remove_quote(int(message["position"])), is_change=True
        ),
        "type": Action(set_type_as_answer, is_change=True),
        "split": Action(
            lambda controller, message: controller.draft.toggle_boundary(int(message["page"])),
            is_change=True,
        ),
        "start_at": Action(
            lambda controller, message: controller.draft.move_segment_start(
                int(message["segment"]), int(message["page"])
            ),
            is_change=True,
        ),
        "end_at": Action(
            lambda controller, message: controller.draft.move_segment_end(
                int(message["segment"]), int(message["page"])
            ),
            is_change=True,
        ),
        "dominant": Action(
            lambda controller, message: controller.draft.set_dominant_type(DocumentType(message["type"])),
            is_change=True,
        ),
        "flag": Action(
            lambda controller, message: controller.draft.toggle_segment_flag(
                controller.find_segment_index(message), message["flag"]
            ),
            is_change=True,
        ),
        "segment_note": Action(
            lambda controller, message: controller.draft.set_segment_note(
                controller.find_segment_index(message), str(message["text"])
            ),
            is_change=True,
        ),
        "separate": Action(separate_patient_pages, is_change=True),
        "boundary": Action(decide_boundary, is_change=True),
        "type_pages": Action(
            lambda controller, message: controller.draft.set_type_of_pages(
                int(message["first"]), int(message["last"]), DocumentType(message["type"])
            ),
            is_change=True,
        ),
        "repair": Action(toggle_repairable_issues_confirmed, is_change=True),
        "show_everything": Action(
            lambda controller, _: controller.draft.model_copy(update={"shows_everything": True}), is_change=True
        ),
        "mixture": Action(set_mixture, is_change=True),
        "mixture_seen": Action(lambda controller, _: controller.draft.mark_mixture_seen()),
    }


def _find_segment_position(draft: Draft, page: int) -> int:
    return next(
        position for position, segment in enumerate(draft.segments) if segment.start_page <= page <= segment.end_page
    )


def _index_confidence(segments: Iterable[Segment]) -> dict[_SegmentKey, dict[str, Any]]:
    """Map each of the program's segments to its confidence (0..1) and presence level."""
    return {
        (segment.start_page, segment.end_page, segment.dominant_type): {
            "confidence": presence.confidence,
            "presence": PRESENCE_WORDS[presence.presence_level],
        }
        for segment in segments
        for presence in reversed(segment.segment_composition)  # the first of two presences of one type counts
        if presence.document_type == segment.dominant_type
    }


def _asks_for_document_type(context: IssueContext) -> bool:
    """Return True if an issue asks for its document's own type, not for a second one."""
    own_types = (None, context.segment.dominant_type if context.segment else context.issue.document_type)
    return get_issue_answers(context.issue).effect == "choose_type" and context.issue.document_type in own_types
