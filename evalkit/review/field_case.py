"""One case about fields on one expert's screen: where each field stands, what must be seen, and what a press says.

Source: contract, ruling 14, read for fields: what an expert stands for follows from what was on screen. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from evalkit.errors import NotFound
from evalkit.extraction.extraction_schema import Extraction, FieldValue
from evalkit.issue import Issue, IssueSeverity, PageBox, QuoteVerdict
from evalkit.review.case import (
    ReviewCase,
    ViewingRequirements,
    collect_issue_verdicts,
    format_page_numbers,
    join_notes_of_draft,
)
from evalkit.review.draft import Draft
from evalkit.review.field_answers import (
    ExtractedFields,
    FieldAnswer,
    format_field_label,
    format_field_value,
    get_template_field_or_plain_text,
    index_fields_by_key,
    is_same_as_agent,
    list_agent_extracted_fields,
    parse_field_answer,
    split_field_key_to_index_and_name,
)
from evalkit.review.packet import ADJUDICATION_SUFFIX, is_extraction_review_required
from evalkit.review.submission import Submission

HighlightStyle = Literal["found", "near"]

#: A quote that stands in the document, wherever it does.
FOUND_VERDICTS = (None, QuoteVerdict.VERBATIM, QuoteVerdict.NOISY, QuoteVerdict.WRONG_PAGE)


@dataclass(frozen=True)
class ReviewTarget:
    """One thing to look at: a field with its issues, or an issue that is about no single field."""

    target_id: str
    """The field's key, or the issue's id."""
    extraction_index: int
    """The position of its report or form in the packet, from 0."""
    field_name: str
    """The field's name; empty of an issue."""
    issues: tuple[Issue, ...]
    """Open ones, worst first."""


@dataclass(frozen=True)
class HighlightedPlace:
    """Where an item stands."""

    page: int
    """The page to show, from 1."""
    boxes: tuple[PageBox, ...]
    """What is lit; empty where it stands nowhere."""
    style: HighlightStyle
    """``found``: it is the value itself; ``near``: only the passage most like it."""


class FieldReviewCase(ReviewCase):
    """A case about fields as it was opened."""

    @cached_property
    def agent_extracted_fields(self) -> tuple[ExtractedFields, ...]:
        """What the agent extracted."""
        return list_agent_extracted_fields(self.packet)

    @cached_property
    def targets(self) -> tuple[ReviewTarget, ...]:
        """All that can be looked at, in the order of forms and templates; of each form the issues without a field first."""
        return tuple(
            target
            for form_index, extraction in enumerate(self.packet.extractions)
            for target in _iterate_targets(form_index, extraction)
        )

    def get_target(self, target_id: str) -> ReviewTarget:
        """One of them. NotFound, naming it."""
        target = self._targets_by_id.get(target_id)
        if target is None:
            raise NotFound(
                f"case {self.packet.case_id!r} has no field {target_id!r}",
                code="FIELD-NOT-FOUND",
                remedy="Its fields are in packet.extractions.",
            )
        return target

    def locate_target(self, target_id: str) -> HighlightedPlace:
        """Where an item stands: the value's own place, failing that the passage that its issue tells of. NotFound.

        What stands nowhere has its form's first page and nothing lit.
        """
        target = self.get_target(target_id)
        form = self.packet.extractions[target.extraction_index]
        field_value = form.fields.get(target.field_name)
        if field_value and (boxes := self._filter_displayable_boxes(field_value.boxes)):
            return HighlightedPlace(boxes[0][0], boxes, "found")
        for issue in target.issues:
            if boxes := self._filter_displayable_boxes(issue.boxes):
                return HighlightedPlace(boxes[0][0], boxes, "found" if issue.verdict in FOUND_VERDICTS else "near")
        page = (field_value.page if field_value else None) or next(
            (other_issue.page for other_issue in target.issues if other_issue.page), None
        )
        return HighlightedPlace(self._clamp_page_number(page or form.start_page), (), "near")

    def choose_first_target_id(self) -> str | None:
        """What to look at first: the worst of what must be seen, else the first field."""
        required_targets = [target for target in self.targets if self._is_required_target(target)]
        first_target = min(
            required_targets, key=lambda required_target: required_target.issues[0].severity.rank, default=None
        )
        first_target = first_target or next(iter(self.targets), None)
        return first_target.target_id if first_target else None

    def get_agent_value(self, field_key: str) -> FieldValue:
        """What the agent says in a field. NotFound."""
        target = self.get_target(field_key)
        if not target.field_name:
            raise NotFound(f"{field_key!r} is no field", code="FIELD-NOT-FOUND", remedy="Choose a field.")
        return self.packet.extractions[target.extraction_index].fields[target.field_name]

    def set_field_answer(self, draft: Draft, field_key: str, raw_answer: object) -> Draft:
        """The draft in which the expert says that of the field; as the agent says it, it is no change. ReviewRefused."""
        agent_value = self.get_agent_value(field_key)
        form_index, field_name = split_field_key_to_index_and_name(field_key)
        # What the agent read may not be written as such a value is, and can be agreed with all the same.
        if raw_answer == {"status": agent_value.status, "value": agent_value.value}:
            return draft.set_field_answer(field_key, None)
        expert_answer = parse_field_answer(
            get_template_field_or_plain_text(self.agent_extracted_fields[form_index], field_name), raw_answer
        )
        return draft.set_field_answer(
            field_key, None if is_same_as_agent(expert_answer, agent_value) else expert_answer
        )

    def get_current_value(self, draft: Draft, field_key: str) -> FieldAnswer | FieldValue:
        """What stands in the field now: the expert's word, else the agent's. NotFound."""
        return draft.fields.get(field_key) or self.get_agent_value(field_key)

    @cached_property
    def viewing_requirements(self) -> ViewingRequirements:
        """All that has to be on screen before one press may validate: each form that goes to a person, and its issues."""
        escalated_extractions = [
            extraction for extraction in self.packet.extractions if is_extraction_review_required(extraction)
        ]
        page_numbers = {self._clamp_page_number(extraction.start_page) for extraction in escalated_extractions}
        grave_ids = [
            issue.issue_id
            for target in self.targets
            if self._is_required_target(target)
            for issue in _list_blocker_and_major_issues(target)
        ]
        ordered_ids = dict.fromkeys(issue.issue_id for issue in self.packet.open_issues if issue.issue_id in grave_ids)
        return ViewingRequirements(page_numbers=tuple(sorted(page_numbers)), issue_ids=tuple(ordered_ids))

    def list_unseen_target_ids(self, draft: Draft) -> list[str]:
        """The items that have to be looked at and were not yet, in order."""
        unseen_ids = set(self.find_unseen_requirements(draft).issue_ids)
        return [
            target.target_id for target in self.targets if any(issue.issue_id in unseen_ids for issue in target.issues)
        ]

    def mark_target_and_page_seen(self, draft: Draft, target_id: str, page: int) -> Draft:
        """The draft after that item was on screen with that page."""
        draft = draft.show_page_and_mark_seen(page)
        target = self.get_target(target_id)
        if self.locate_target(target_id).page != page:
            return draft
        for issue in target.issues:
            draft = draft.show_issue_and_mark_seen(issue.issue_id)
        return (
            draft.show_field_and_mark_seen(target_id)
            if target.field_name
            else draft.show_issue_and_mark_seen(target_id)
        )

    def has_expert_changes(self, draft: Draft) -> bool:
        """Whether a field differs from the agent's."""
        return bool(draft.fields)

    def describe_changes(self, draft: Draft) -> tuple[str, ...]:
        """What differs from the agent's answer, one sentence each, in the order of the fields."""
        return tuple(
            f"{format_field_label(self.agent_extracted_fields[target.extraction_index], target.field_name)}: {format_field_value(self.get_agent_value(target.target_id))} → "
            f"{format_field_value(draft.fields[target.target_id])}"
            for target in self.targets
            if target.target_id in draft.fields
        )

    def build_submission(self, draft: Draft, *, validate: bool, undeterminable_reason: str | None) -> Submission:
        """What pressing the button says. ReviewRefused where it cannot be said with this draft."""
        is_validation = self._require_permitted_submission(
            draft, validate=validate, undeterminable_reason=undeterminable_reason
        )
        vouched_keys = (
            key
            for key in index_fields_by_key(self.agent_extracted_fields)
            if key in draft.fields or key in draft.fields_seen
        )
        return Submission(
            agrees=is_validation or None,
            corrected_fields=draft.fields if not is_validation and undeterminable_reason is None else None,
            correction_notes=join_notes_of_draft(draft),
            issue_verdicts=collect_issue_verdicts(draft),
            undeterminable=undeterminable_reason,
            vouched=None if undeterminable_reason is not None else tuple(vouched_keys),
            seconds_active=draft.seconds_active,
            pages_seen=draft.pages_seen,
            evidence_seen=draft.evidence_seen,
        )

    _changed_sentence = "You have changed fields: submit them as a correction."

    @cached_property
    def _unvalidatable_reason(self) -> str | None:
        if any(extraction.history for extraction in self.packet.extractions):
            return None
        return "No fields could be extracted, so there is nothing to agree with."

    def _find_obstacle_and_remedy(self, draft: Draft) -> tuple[str, str] | None:
        if not draft.fields:
            return "nothing was changed", "Change a field, or validate what is there."
        unseen = self.find_unseen_requirements(draft)
        if self.packet.case_id.endswith(ADJUDICATION_SUFFIX) and unseen.page_numbers:
            page_words = format_page_numbers(unseen.page_numbers)
            return f"{page_words} not yet seen", "Look at each report and form yourself."
        return None

    def _is_required_target(self, target: ReviewTarget) -> bool:
        return bool(_list_blocker_and_major_issues(target)) and is_extraction_review_required(
            self.packet.extractions[target.extraction_index]
        )

    def _filter_displayable_boxes(self, boxes: tuple[PageBox, ...]) -> tuple[PageBox, ...]:
        """Those that can be lit at all: nobody is told that something is which is not."""
        return tuple(box for box in boxes if self._clamp_page_number(box[0]) == box[0])

    def _clamp_page_number(self, page_number: int) -> int:
        return min(max(page_number, 1), self.packet.total_pages)

    @cached_property
    def _targets_by_id(self) -> dict[str, ReviewTarget]:
        return {target.target_id: target for target in self.targets}


def _iterate_targets(form_index: int, extraction: Extraction) -> Iterator[ReviewTarget]:
    open_issues = sorted(
        (issue for issue in extraction.issues if issue.status == "open"), key=lambda issue: issue.severity.rank
    )
    for issue in open_issues:
        if issue.location not in extraction.fields:
            yield ReviewTarget(issue.issue_id, form_index, "", (issue,))
    for field_name in extraction.fields:
        field_issues = tuple(issue for issue in open_issues if issue.location == field_name)
        yield ReviewTarget(f"{form_index + 1}.{field_name}", form_index, field_name, field_issues)


def _list_blocker_and_major_issues(target: ReviewTarget) -> list[Issue]:
    return [issue for issue in target.issues if issue.severity is not IssueSeverity.MINOR]
