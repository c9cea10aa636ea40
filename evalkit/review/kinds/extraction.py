"""Cases about the fields that were extracted from a document's reports and forms.

Source: contract, ruling 14, applied to fields: an expert vouches for the fields that were on screen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import not_
from typing import Any, Literal

from pydantic import Field
from typing_extensions import override

from evalkit.core.wording import format_page_numbers, format_page_range
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import NotFound, ReviewRefused
from evalkit.extraction.extraction_schema import (
    NOT_PRESENT_VALUE,
    Extraction,
    Extractions,
    FieldPlace,
    FieldStatus,
    FieldValue,
)
from evalkit.extraction.extraction_schema import SCHEMA_VERSION as EXTRACTIONS_VERSION
from evalkit.extraction.field_template import TemplateField, list_field_templates
from evalkit.issue import Issue, IssueSeverity, PageBox, QuoteVerdict
from evalkit.review.case import (
    CaseKind,
    HighlightedPlace,
    RecordLine,
    ReviewCase,
    ViewingRequirements,
)
from evalkit.review.draft import Draft
from evalkit.review.field_answers import (
    ExtractedFields,
    FieldAnswer,
    apply_and_locate_field_answers,
    check_entry_name,
    find_changed_fields,
    format_field_value,
    get_template_field_or_plain_text,
    index_fields_by_key,
    is_extraction_review_required,
    is_repeated_field_entry,
    is_same_as_agent,
    parse_field_answer,
    parse_field_answers,
    resolve_field_key,
    split_field_key_to_index_and_name,
)
from evalkit.review.ground_truth import FieldsGroundTruth, Review, ReviewOutcome
from evalkit.review.packet import ADJUDICATION_SUFFIX, EXTRACTION_SUFFIX, ReviewTask, SMEPacket, build_packet_fields
from evalkit.review.submission import Correction, Submission
from evalkit.store import OutputFolder, extraction_file_name

#: Verdicts with which a passage counts as found in the document, whether or not on the claimed page.
FOUND_VERDICTS = (None, QuoteVerdict.VERBATIM, QuoteVerdict.NOISY, QuoteVerdict.WRONG_PAGE)


class ExtractionPacket(SMEPacket):
    """Stored case about a document's extracted fields."""

    kind: Literal["extraction"] = "extraction"
    extractions: tuple[Extraction, ...] = Field(default=(), exclude_if=not_)
    """The extraction of each report and form of the document, accepted ones included, those without a decision not."""

    @classmethod
    def create(cls, extractions: Extractions, bundle: DocumentBundle, *, created_at: str) -> ExtractionPacket:
        """Build the case about a document with a report or form that was not accepted."""
        judged = tuple(extraction for extraction in extractions.extractions if extraction.decision)
        return cls(
            case_id=extractions.doc_id + EXTRACTION_SUFFIX,
            decision_rule="fields",
            decision_reason=explain_case_escalation(judged),
            created_at=created_at,
            extractions=judged,
            **build_packet_fields(bundle, [issue for extraction in judged for issue in extraction.issues]),
        )

    @property
    @override
    def indexed_type(self) -> str:
        document_types = {extraction.document_type for extraction in self.extractions}
        return document_types.pop() if len(document_types) == 1 else "several"

    @property
    @override
    def task(self) -> ReviewTask:
        tax_names = {template.name for template in list_field_templates("tax")}
        is_tax = all(extraction.template in tax_names for extraction in self.extractions)
        return "tax" if self.extractions and is_tax else "clinical"

    @property
    @override
    def agent_answer(self) -> tuple[ExtractedFields, ...] | None:
        return self.extracted_fields or None

    @property
    def extracted_fields(self) -> tuple[ExtractedFields, ...]:
        """The fields that the agent extracted, one item per report or form."""
        return tuple(map(ExtractedFields.from_extraction, self.extractions))


#: Reasons, in a clinician's words, why a report or form needs a person; the first row whose test is true applies.
_EXTRACTION_ESCALATION_REASONS: tuple[tuple[Callable[[Extraction], bool], str], ...] = (
    (lambda extraction: _has_open_issue(extraction, "READER-NO-TEXT"),             "not every page could be read"),
    (lambda extraction: _has_open_issue(extraction, "READER-PAGE-DAMAGED"),        "a page of it is damaged"),
    (lambda extraction: _has_open_issue(extraction, "READER-ADDRESSED-TEXT"),      "words on its pages are meant for a program"),
    (lambda extraction: _has_open_issue(extraction, "-AGENT-FAILED"),              "a step that reads or checks it gave no answer"),
    (lambda extraction: _has_open_issue(extraction, "GRADER-WRONG-YEAR"),          "it is for another tax year"),
    (lambda extraction: _has_open_issue(extraction, "EXTRACTION-NOT-ON-PAGE"),     "a value that the program gave is not on the page"),
    (lambda extraction: _has_open_issue(extraction, "EXTRACTION-NONE"),            "none of the usual fields was found on it"),
    (lambda extraction: _has_open_issue(extraction, "EXTRACTION-TYPE"),            "the type of these pages is in doubt"),
    (lambda extraction: _has_open_issue(extraction, "EXTRACTION-PATIENT"),         "one of its pages may be about another patient"),
    (lambda extraction: not extraction.met_threshold,                   "the program is not sure enough of its values"),
    (lambda extraction: _has_open_issue(extraction, "GRADER-INCONSISTENT"),        "amounts on it contradict each other"),
    (lambda extraction: True,                                    "some of its fields need a person to check them"),
)  # fmt: skip


def _has_open_issue(extraction: Extraction, code_suffix: str) -> bool:
    return any(issue.code.endswith(code_suffix) and issue.status == "open" for issue in extraction.issues)


def explain_case_escalation(extractions: Iterable[Extraction]) -> str:
    """Explain to a clinician why an expert must check a document's fields.

    The reason is that of the first report or form that was not accepted; the number of further ones is added. IndexError if
    all were accepted.
    """
    escalated_extractions = [extraction for extraction in extractions if is_extraction_review_required(extraction)]
    first_extraction = escalated_extractions[0]
    page_words = format_page_range(first_extraction.start_page, first_extraction.end_page)
    more = f"; {len(escalated_extractions) - 1} more to check" if len(escalated_extractions) > 1 else ""
    return f"{first_extraction.document_type} on {page_words}: {explain_extraction_escalation(first_extraction)}{more}"


def explain_extraction_escalation(extraction: Extraction) -> str:
    """Explain to a clinician why an expert must check one report or form."""
    return next(reason for is_matching, reason in _EXTRACTION_ESCALATION_REASONS if is_matching(extraction))


@dataclass(frozen=True)
class ReviewTarget:
    """Item for the expert: a field with its issues, or an issue of the whole form."""

    target_id: str
    """The field's key, or the issue's id."""
    extraction_index: int
    """Index of the report or form in ``ExtractionPacket.extractions``, from 0."""
    field_name: str
    """The field's name; empty if the target is an issue."""
    issues: tuple[Issue, ...]
    """The open issues about the field, worst first; if the target is an issue, only this issue."""


@dataclass(frozen=True)
class FieldsCorrection(Correction):
    """An expert's answers to the fields of a case."""

    answers: Mapping[str, Any] | None = None
    """The answers by field key or field name; None if the expert filled in nothing."""

    @property
    @override
    def is_change(self) -> bool:
        return bool(self.answers)


class FieldReviewCase(ReviewCase):
    """An open case about extracted fields."""

    packet: ExtractionPacket
    _changed_sentence = "You have changed fields: submit them as a correction."

    @cached_property
    def agent_extracted_fields(self) -> tuple[ExtractedFields, ...]:
        """The fields that the agent extracted, one item per report or form."""
        return self.packet.extracted_fields

    @cached_property
    def targets(self) -> tuple[ReviewTarget, ...]:
        """All fields and issues that an expert can check, form by form.

        For each report or form, first the issues that concern no single field, then the fields in the template's order.
        """
        return tuple(
            target
            for form_index, extraction in enumerate(self.packet.extractions)
            for target in _iterate_targets(form_index, extraction)
        )

    def get_target(self, target_id: str) -> ReviewTarget:
        """Get a field or issue by its id. NotFound if the case does not have it."""
        target = self._targets_by_id.get(target_id) or self._find_entry_target(target_id)
        if target is None:
            raise NotFound(
                f"case {self.packet.case_id!r} has no field {target_id!r}",
                code="FIELD-NOT-FOUND",
                remedy="SMEReviewHelper.load_packet(case_id).extractions lists the case's fields.",
            )
        return target

    def locate_target(self, target_id: str) -> HighlightedPlace:
        """Find the page and the boxes to highlight for a field or issue.

        These are the place of the value or, if it has none, the passage that one of the issues names. If no place is known,
        the result is a page without boxes: the page of the field or issue or, if unknown, the form's first page. NotFound if
        the case has no such target.
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
        """Choose the field or issue to select on opening; None if there is none.

        This is the target with the worst issue that the expert must see; if there is none, the first target.
        """
        # Of equally grave ones, a field goes before an issue of the whole form, which only sums up.
        first_target = min(
            [target for target in self.targets if self._is_required_target(target)],
            key=lambda target: (target.issues[0].severity.rank, not target.field_name),
            default=None,
        )
        first_target = first_target or next(iter(self.targets), None)
        return first_target.target_id if first_target else None

    def get_agent_value(self, field_key: str) -> FieldValue:
        """Get the agent's value of a field. NotFound if the case has no such field."""
        target = self.get_target(field_key)
        if not target.field_name:
            raise NotFound(f"{field_key!r} is an issue, not a field", code="FIELD-NOT-FOUND", remedy="Choose a field.")
        return self.packet.extractions[target.extraction_index].fields.get(target.field_name, NOT_PRESENT_VALUE)

    def list_places(self, field_key: str) -> tuple[FieldPlace, ...]:
        """List the places of a field's value, then the places of other values.

        Empty if no place states another value. NotFound if the case has no such field.
        """
        value = self.get_agent_value(field_key)
        own_place = FieldPlace(
            value=value.value or "",
            raw=value.raw or "",
            page=value.page or 1,
            quote=value.quote or "",
            boxes=value.boxes,
        )
        return (own_place, *value.places) if value.places else ()

    def take_reading(self, draft: Draft, field_key: str, reading: str) -> Draft:
        """Answer a field with one of the values read for it, at its place on the page.

        ReviewRefused if the reading does not have the field's format; NotFound if there is no such field.
        """
        answer: dict[str, Any] = {"status": FieldStatus.FOUND, "value": reading}
        place = next((place for place in self.get_agent_value(field_key).places if place.value == reading), None)
        if place:
            answer |= {"page": place.page, "boxes": [box for box in place.boxes if box[0] == place.page]}
        return self.set_field_answer(draft, field_key, answer)

    def is_added_entry(self, target_id: str) -> bool:
        """Return True if the target is an entry that the agent does not have."""
        return target_id not in self._targets_by_id

    def list_entry_names(self, draft: Draft, base_key: str) -> list[str]:
        """List the names of a repeated field's entries, including deleted entries.

        ``base_key`` is the key of the field or of any of its entries, e.g. ``1.ihcMarkers``.
        """
        prefix = ".".join(base_key.split(".")[:2]) + "."
        return [key.removeprefix(prefix) for key in self._list_field_keys(draft) if key.startswith(prefix)]

    def rename_entry(self, draft: Draft, field_key: str, new_name: str) -> Draft:
        """Rename an entry of a repeated field: delete it, and add it under the new name.

        ReviewRefused if the name is blank or that of another entry; NotFound if there is no such field.
        """
        answer = self.get_current_value(draft, field_key)
        name = check_entry_name(new_name, self.list_entry_names(draft, field_key))
        boxes = tuple(box for box in answer.boxes if box[0] == answer.page)
        renamed_answer = FieldAnswer(status=answer.status, value=answer.value, page=answer.page, boxes=boxes)
        draft = self.remove_entry(draft, field_key, f"renamed to {name}")
        return draft.set_field_answer(".".join([*field_key.split(".")[:2], name]), renamed_answer)

    def remove_entry(self, draft: Draft, field_key: str, reason: str) -> Draft:
        """Delete an entry of a repeated field, with a reason.

        An entry that the expert added disappears. ReviewRefused if the reason is blank, or if the field is not repeated;
        NotFound if there is no such field.
        """
        if not reason.strip():
            raise ReviewRefused(
                "a reason is required to delete an entry", code="REVIEW-FIELD", remedy="Say why the entry is wrong."
            )
        if self.is_added_entry(field_key):
            return draft.set_field_answer(field_key, None)
        return self.set_field_answer(draft, field_key, {"status": "not_present", "removed": reason.strip()})

    def set_field_answer(self, draft: Draft, field_key: str, raw_answer: object) -> Draft:
        """Set the expert's answer to a field; an answer equal to the agent's removes it.

        ``raw_answer`` is parsed by ``parse_field_answer``. ReviewRefused if it is not valid; NotFound if there is no such
        field.
        """
        agent_value = self.get_agent_value(field_key)
        # Compared before parsing: an expert may agree with an agent's value that does not have the field's format.
        if raw_answer == {"status": agent_value.status, "value": agent_value.value}:
            return draft.set_field_answer(field_key, None)
        expert_answer = parse_field_answer(self.get_field(field_key), raw_answer)
        if (expert_answer.page or 1) > self.packet.total_pages:
            raise ReviewRefused(
                f"the document has no page {expert_answer.page}", code="REVIEW-FIELD", remedy="Select the value again."
            )
        is_moved = expert_answer.page is not None and (expert_answer.page, expert_answer.boxes) != (
            agent_value.page,
            agent_value.boxes,
        )
        is_unchanged = is_same_as_agent(expert_answer, agent_value) and not expert_answer.removed and not is_moved
        return draft.set_field_answer(field_key, None if is_unchanged else expert_answer)

    def get_current_value(self, draft: Draft, field_key: str) -> FieldAnswer | FieldValue:
        """Get the expert's answer to a field, else the agent's value. NotFound."""
        return draft.fields.get(field_key) or self.get_agent_value(field_key)

    @override
    def get_viewing_requirements(self, draft: Draft) -> ViewingRequirements:
        """Get first page and BLOCKER and MAJOR issues of each form that was not accepted."""
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
        """List ids of fields and issues that the expert must still look at, in order."""
        unseen_ids = set(self.find_unseen_requirements(draft).issue_ids)
        return [
            target.target_id for target in self.targets if any(issue.issue_id in unseen_ids for issue in target.issues)
        ]

    @override
    def mark_target_and_page_seen(self, draft: Draft, target_id: str, page: int) -> Draft:
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

    @override
    def has_expert_changes(self, draft: Draft) -> bool:
        return bool(draft.fields)

    @override
    def describe_changes(self, draft: Draft) -> tuple[str, ...]:
        return tuple(
            f"{self.get_field(key).description}: {'added' if self.is_added_entry(key) else format_field_value(self.get_agent_value(key))} → "
            f"{format_field_value(draft.fields[key])}"
            for key in self._list_field_keys(draft)
            if key in draft.fields
        )

    @override
    def describe_record(self, draft: Draft) -> tuple[RecordLine, ...]:
        keys = self._list_field_keys(draft)
        vouched_words = f"You vouch for {len(self._list_vouched_keys(draft))} of {len(keys)} fields"
        changes = (RecordLine(sentence, "field") for sentence in self.describe_changes(draft))
        return (*changes, RecordLine(vouched_words, "vouch"))

    @override
    def _build_answer_fields(self, draft: Draft, *, is_validation: bool, is_undeterminable: bool) -> dict[str, Any]:
        answers = draft.fields if not is_validation and not is_undeterminable else None
        return {
            "corrections": (FieldsCorrection(answers),),
            "vouched": None if is_undeterminable else self._list_vouched_keys(draft),
        }

    def _list_field_keys(self, draft: Draft) -> list[str]:
        """List the keys of all fields, with the expert's added entries behind."""
        return list(dict.fromkeys([*index_fields_by_key(self.agent_extracted_fields), *draft.fields]))

    def _list_vouched_keys(self, draft: Draft) -> tuple[str, ...]:
        """List the keys of the fields that the expert answered or had on screen."""
        return tuple(key for key in self._list_field_keys(draft) if key in {*draft.fields, *draft.fields_seen})

    def get_field(self, field_key: str) -> TemplateField:
        """Get the definition of a field or of an added entry, described by its label."""
        form_index, field_name = split_field_key_to_index_and_name(self.get_target(field_key).target_id)
        return get_template_field_or_plain_text(self.agent_extracted_fields[form_index], field_name)

    def _find_entry_target(self, target_id: str) -> ReviewTarget | None:
        """Find the target of an entry that the agent does not have, but could have."""
        if not re.match(r"[1-9]\d{0,3}\.", target_id):
            return None
        form_index, field_name = split_field_key_to_index_and_name(target_id)
        forms = self.agent_extracted_fields[form_index : form_index + 1]
        is_entry = any(is_repeated_field_entry(form, field_name) for form in forms)
        return ReviewTarget(target_id, form_index, field_name, ()) if is_entry else None

    @cached_property
    @override
    def _unvalidatable_reason(self) -> str | None:
        if any(extraction.history for extraction in self.packet.extractions):
            return None
        return "The program could not read any fields, so there is nothing to validate. Fill in the fields."

    @override
    def _find_obstacle_and_remedy(self, draft: Draft) -> tuple[str, str] | None:
        if not draft.fields:
            return "nothing was changed", "Change a field, or validate the values as they are."
        unseen = self.find_unseen_requirements(draft)
        if self.packet.case_id.endswith(ADJUDICATION_SUFFIX) and unseen.page_numbers:
            page_words = format_page_numbers(unseen.page_numbers)
            return f"{page_words} not yet seen", "Look at the first page of each report and form."
        return None

    def _is_required_target(self, target: ReviewTarget) -> bool:
        return bool(_list_blocker_and_major_issues(target)) and is_extraction_review_required(
            self.packet.extractions[target.extraction_index]
        )

    def _filter_displayable_boxes(self, boxes: tuple[PageBox, ...]) -> tuple[PageBox, ...]:
        """Keep only boxes on existing pages, because no other box can be shown."""
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


class ExtractionKind(CaseKind[ExtractionPacket, tuple[ExtractedFields, ...]]):
    """The kind of case about a document's extracted fields."""

    packet_class = ExtractionPacket
    case_class = FieldReviewCase
    correction_class = FieldsCorrection
    case_id_suffix = EXTRACTION_SUFFIX
    topic = "fields"
    correction_remedy = "Pass corrected_fields."

    @override
    def reconstruct_draft(
        self, packet: ExtractionPacket, review: Review, answer: tuple[ExtractedFields, ...] | None
    ) -> Draft:
        changed_fields = find_changed_fields(packet.extracted_fields, answer) if answer else {}
        return Draft.from_packet(packet).model_copy(
            update={"fields": changed_fields, "fields_seen": tuple(review.vouched)}
        )

    @override
    def build_review_fields(
        self, outcome: ReviewOutcome, submission: Submission, packet: ExtractionPacket, bundle: DocumentBundle
    ) -> dict[str, Any]:
        answers = submission.get_correction(FieldsCorrection).answers or {}
        vouched_keys = _choose_vouched_fields(packet, submission.vouched, answers, outcome)
        if outcome == "undeterminable":
            return {"after": None, "vouched": vouched_keys}
        if outcome == "validated" and not any(extraction.history for extraction in packet.extractions):
            raise ReviewRefused(
                "no fields could be extracted, so there is nothing to validate",
                code="REVIEW-NOTHING-TO-VALIDATE",
                remedy="Give corrected_fields, or undeterminable='the reason'.",
            )
        answers_by_key = parse_field_answers(packet.case_id, packet.extracted_fields, answers)
        return {
            "after": apply_and_locate_field_answers(packet.extracted_fields, answers_by_key, bundle),
            "vouched": vouched_keys,
        }

    @override
    def is_same_answer(self, first: tuple[ExtractedFields, ...], second: tuple[ExtractedFields, ...]) -> bool:
        first_values, second_values = (
            [(key, value.status, value.value) for key, value in index_fields_by_key(forms).items()]
            for forms in (first, second)
        )
        return first_values == second_values

    @override
    def summarise_answer(self, answer: tuple[ExtractedFields, ...]) -> str:
        return f"{sum(len(form.fields) for form in answer)} fields"

    @override
    def list_answer_sections(self, packet: ExtractionPacket) -> list[tuple[str, list[list[str]] | None]]:
        return [
            (
                f"{extraction.document_type}, pages {extraction.start_page}-{extraction.end_page}: "
                f"{extraction.decision}, {extraction.stopped_reason}",
                [
                    [
                        get_template_field_or_plain_text(extraction, field_name).description,
                        format_field_value(field_value),
                    ]
                    for field_name, field_value in extraction.fields.items()
                    if field_value.value is not None
                ],
            )
            for extraction in packet.extractions
        ]

    @override
    def build_ground_truth(
        self,
        packet: ExtractionPacket,
        review: Review,
        answer: tuple[ExtractedFields, ...],
        record_fields: Mapping[str, Any],
    ) -> FieldsGroundTruth:
        return FieldsGroundTruth(ground_truth_fields=answer, **record_fields)

    @override
    def read_answering_model_name(self, output_folder: OutputFolder, doc_id: str) -> str:
        stored = output_folder.read_json(extraction_file_name(doc_id), max_schema_version=EXTRACTIONS_VERSION)
        return str(stored["model"])


def _choose_vouched_fields(
    packet: ExtractionPacket, vouched: Iterable[str] | None, answers: Mapping[str, Any], outcome: ReviewOutcome
) -> tuple[str, ...]:
    """Choose the keys of the fields for which the expert vouches, in packet order.

    These are the fields named in ``vouched``; if it is None, all fields for a validation and the corrected fields for a
    correction. ReviewRefused for an unknown field.
    """
    keys = list(index_fields_by_key(packet.extracted_fields))
    if outcome == "undeterminable":
        return ()
    if vouched is None and outcome == "validated":
        return tuple(keys)
    names = answers if vouched is None else vouched
    vouched_keys = [resolve_field_key(packet.case_id, packet.extracted_fields, name) for name in names]
    return tuple(key for key in dict.fromkeys([*keys, *vouched_keys]) if key in vouched_keys)
