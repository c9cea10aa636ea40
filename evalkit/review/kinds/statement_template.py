"""Cases about a bank-statement template, to correct, approve or reject.

Source: contract, ruling 14, applied to templates: an expert who approves a template has seen each page that it reads and
each critical or high issue, and gives a reason if the sums do not add up. The rows on screen are read anew from the
statement whenever the template changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

from typing_extensions import override

from evalkit.core.records import SchemaByReference
from evalkit.documents.bundle import Box, DocumentBundle
from evalkit.errors import NotFound
from evalkit.issue import Issue, IssueSeverity, PageBox
from evalkit.review.case import CaseKind, HighlightedPlace, ReviewCase, ViewingRequirements
from evalkit.review.draft import Draft
from evalkit.review.ground_truth import GroundTruthRecord, Review, ReviewOutcome, TemplateGroundTruth
from evalkit.review.packet import ReviewTask, SMEPacket, build_packet_fields
from evalkit.review.submission import Correction, Submission, build_incomplete_review_error
from evalkit.review.template_editing import (
    READING_QUESTIONS,
    build_approved_template,
    choose_reading,
    describe_template_changes,
    describe_unmet_sums,
    extract_template_if_edited,
    is_nearly_same_template,
    list_readings,
    move_template_edge,
    parse_corrected_template,
    read_stored_template,
)
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.convergence import EscalationReason
from evalkit.statements.review_cycles import TEMPLATE_CASE_SUFFIX, ReportedIssue, TemplateCase
from evalkit.statements.reviewer_report import SeverityRank, TemplateIssueSeverity, keep_worst_issues_per_category
from evalkit.statements.statement_template import StatementTemplate, parse_template_toml, render_template_toml
from evalkit.store import OutputFolder, template_file_name

_TARGET_PATTERN = re.compile(r"(?P<what>row|left|outside|sum)\.(?P<at>\d+)")
#: The number of templates whose reading is cached, so that Undo and moving an edge back are fast.
_CACHED_READINGS = 8

#: The severity in the review queue for each severity of a template issue (contract, ruling 19).
TEMPLATE_ISSUE_SEVERITIES: dict[TemplateIssueSeverity, IssueSeverity] = {
    "critical": IssueSeverity.BLOCKER,
    "high":     IssueSeverity.BLOCKER,
    "medium":   IssueSeverity.MAJOR,
    "low":      IssueSeverity.MINOR,
}  # fmt: skip
#: Reasons, in a clinician's words, why a template needs a person.
TEMPLATE_ESCALATION_REASONS: dict[EscalationReason, str] = {
    "hypotheses_exhausted":  "every reading of the statement that the program knows was tried or ruled out",
    "max_retries_exceeded":  "the automatic checks still find faults in the template after its last revision",
    "diverging":             "revising the template automatically made it worse",
    "arbitration_uncertain": "the automatic checks disagree about the template, and the program could not settle it",
    "reviewer_failed":       "an automatic check of the template gave no answer",
    "critical_disagreement": "only one of the two automatic checks finds a critical fault in the template",
    "review_disabled":       "only one of the two automatic checks is switched on, so a person approves each template",
}  # fmt: skip


def convert_template_issue(reported_issue: ReportedIssue) -> Issue:
    """Convert a reported template fault to an issue of the case.

    A fault that the arbitrator dismissed stays open, because no model may withdraw a finding.
    """
    template_issue = reported_issue.issue
    return Issue.create(
        reported_issue.reported_by[0] if reported_issue.reported_by else "arbitrator",
        f"TEMPLATE-{template_issue.category.upper().replace('_', '-')}",
        TEMPLATE_ISSUE_SEVERITIES[template_issue.severity],
        template_issue.message,
        location=template_issue.evidence.location,
        suggested_fix=template_issue.suggested_fix,
        page=template_issue.page,
        facts={"finding": template_issue.message.rstrip(".")},
    ).model_copy(update={"issue_id": template_issue.issue_id})


def list_undecided_questions(packet: TemplatePacket, template: StatementTemplate) -> list[str]:
    """List the questions of serious issues that the template leaves undecided."""
    grave_codes = {issue.code for issue in packet.open_issues if issue.severity is IssueSeverity.BLOCKER}
    return [
        name
        for name, question in READING_QUESTIONS.items()
        if question.issue_code in grave_codes and not question.is_decided(template)
    ]


class TemplatePacket(SMEPacket):
    """Stored case about a statement template."""

    kind: Literal["statement_template"] = "statement_template"
    template_case: Annotated[TemplateCase, SchemaByReference()]
    """The template, the issues that the automatic reviewers reported, and the history of its revisions."""

    @classmethod
    def create(cls, template_case: TemplateCase, bundle: DocumentBundle, *, created_at: str) -> TemplatePacket:
        """Build the case about a template and the bank statement it was tested on."""
        return cls(
            case_id=template_case.template_id + TEMPLATE_CASE_SUFFIX,
            decision_rule="statement_template",
            decision_reason=TEMPLATE_ESCALATION_REASONS[template_case.escalation.escalation_reason],
            created_at=created_at,
            template_case=template_case,
            **build_packet_fields(bundle, map(convert_template_issue, template_case.issues)),
        )

    @property
    @override
    def indexed_type(self) -> str:
        return "Statement template"

    @property
    @override
    def task(self) -> ReviewTask:
        return "bank"

    @property
    @override
    def agent_answer(self) -> StatementTemplate:
        """The template as the program built it, parsed from the stored case."""
        return parse_template_toml(self.template_case.template, self.template_case.template_id)


@dataclass(frozen=True)
class TemplateCorrection(Correction):
    """An expert's correction of a statement template."""

    template: StatementTemplate | str | None = None
    """The corrected template or its TOML text; None if the template stays as it is."""
    unmet_sums: str = ""
    """The expert's reason for approving the template although its sums do not add up; empty if none was given."""

    @property
    @override
    def is_change(self) -> bool:
        return self.template is not None


class TemplateReviewCase(ReviewCase):
    """An open case about a statement template."""

    packet: TemplatePacket
    _changed_sentence = "You have changed the template: approve it with your changes."

    @cached_property
    def agent_template(self) -> StatementTemplate:
        """The template as the program built it."""
        return self.packet.agent_answer

    @cached_property
    def issues_within_caps(self) -> tuple[ReportedIssue, ...]:
        """Issues to show, worst first, at most so many per category (ruling 18).

        Without the maximum, the expert would read the same fault once for each row.
        """
        shown_ids = {
            issue.issue_id
            for issue in keep_worst_issues_per_category(
                [reported_issue.issue for reported_issue in self.packet.template_case.issues]
            )
        }
        within_caps = [
            reported_issue
            for reported_issue in self.packet.template_case.issues
            if reported_issue.issue.issue_id in shown_ids
        ]
        return tuple(sorted(within_caps, key=lambda candidate: -SeverityRank[candidate.issue.severity]))

    def get_template(self, draft: Draft) -> StatementTemplate:
        """Get the expert's changed template or, if unchanged, the program's template."""
        return draft.template or self.agent_template

    def apply_template(self, draft: Draft) -> AppliedTemplate:
        """Read the statement with the draft's template and check its sums; cached."""
        return self._cached_apply_template(draft.template) if draft.template else self._agent_applied_template

    def list_pages_with_region(self, draft: Draft) -> tuple[int, ...]:
        """List the pages on which the template reads a region, ascending from 1."""
        template, total_pages = self.get_template(draft), self.packet.total_pages
        return tuple(page for page in range(1, total_pages + 1) if template.find_region_indices(page, total_pages))

    # Edits of the draft's template
    def move_edge(self, draft: Draft, edge_name: str, page_fraction: float) -> Draft:
        """Move an edge of the template, see ``move_template_edge``; return the new draft.

        ``page_fraction`` is the position as a fraction 0..1 of the page. ReviewRefused if there is no such edge.
        """
        return self.edit_template(
            draft, move_template_edge, edge_name, page_fraction, opened_template=self.agent_template
        )

    def choose_reading(self, draft: Draft, question_name: str, number: int) -> Draft:
        """Choose interpretation 0 or 1 of an open question; return the new draft.

        ReviewRefused if there is no such question or reading.
        """
        return self.edit_template(draft, choose_reading, question_name, number, opened_template=self.agent_template)

    def apply_both_readings(self, question_name: str) -> list[AppliedTemplate]:
        """Read the statement with both interpretations of a question."""
        return [self._cached_apply_template(reading) for reading in list_readings(self.agent_template, question_name)]

    def edit_template(
        self, draft: Draft, edit: Callable[..., StatementTemplate], *arguments: Any, **options: Any
    ) -> Draft:
        """Apply an edit of ``template_editing`` to the draft's template.

        The template comes before ``arguments``. ReviewRefused as the edit.
        """
        template = edit(self.get_template(draft), *arguments, **options)
        return draft.set_template(None if template == self.agent_template else template)

    # Places on the page
    def locate_target(self, target_id: str, draft: Draft) -> HighlightedPlace:
        """Find the page and the boxes to highlight for an issue, a row, a line or a sum.

        ``target_id`` is an issue_id or, counted from 1, ``row.N`` (a transaction), ``left.N`` (a line in a box that no row
        took), ``outside.N`` (a line outside every box) or ``sum.N`` (a sum check). NotFound if there is no such target.
        """
        applied_template = self.apply_template(draft)
        if issue := self._issues_by_id.get(target_id):
            return self._locate_issue(issue)
        match = _TARGET_PATTERN.fullmatch(target_id)
        statement, index = applied_template.statement, int(match["at"]) - 1 if match else -1
        targets_by_kind: dict[str, Sequence[object]] = {
            "row": statement.transactions, "left": statement.left_over, "outside": statement.outside,
            "sum": applied_template.reconciliation.checks,
        }  # fmt: skip
        if match is None or not 0 <= index < len(targets_by_kind[match["what"]]):
            raise NotFound(
                f"case {self.packet.case_id!r} has no issue, row, line or sum {target_id!r}",
                code="TEMPLATE-ROW",
                remedy="Choose an item from the lists on screen.",
            )
        if match["what"] == "row":
            row = statement.transactions[index]
            return HighlightedPlace(row.page, _build_page_boxes(row.page, row.boxes), "found")
        if match["what"] == "sum":
            return self._locate_sum(applied_template, index)
        unread_line = (statement.left_over if match["what"] == "left" else statement.outside)[index]
        return HighlightedPlace(unread_line.page, _build_page_boxes(unread_line.page, [unread_line.box]), "near")

    def choose_first_target_id(self) -> str | None:
        """Choose the issue to select on opening: the worst issue, or None."""
        return next((reported_issue.issue.issue_id for reported_issue in self.issues_within_caps), None)

    def is_issue_id(self, target_id: str) -> bool:
        """Return True if the target is an open issue, not a row, line or sum."""
        return target_id in self._issues_by_id

    def has_target(self, target_id: str, draft: Draft) -> bool:
        """Return True if the case has a target with this id."""
        try:
            self.locate_target(target_id, draft)
        except NotFound:
            return False
        return True

    @override
    def mark_target_and_page_seen(self, draft: Draft, target_id: str, page: int) -> Draft:
        draft = draft.show_page_and_mark_seen(page)
        issue = self._issues_by_id.get(target_id)
        if issue is None or self._locate_issue(issue).page != page:
            return draft
        return draft.show_issue_and_mark_seen(target_id)

    # Decisions

    @override
    def has_expert_changes(self, draft: Draft) -> bool:
        return draft.template is not None

    @override
    def describe_changes(self, draft: Draft) -> tuple[str, ...]:
        return tuple(describe_template_changes(self.agent_template, self.get_template(draft)))

    def describe_unmet_sums(self, draft: Draft) -> str:
        """Describe which sums do not add up; empty if all sums add up."""
        return describe_unmet_sums(self.apply_template(draft).reconciliation)

    def explain_approval_block(self, draft: Draft) -> str | None:
        """Explain why the draft's template cannot be approved now; None if it can."""
        if reason := self.explain_permanent_validation_block():
            return reason
        if not self.apply_template(draft).statement.transactions:
            return "The template reads no row of this statement: correct it, or reject it."
        if unseen_sentence := self._describe_unseen(draft):
            return unseen_sentence
        if list_undecided_questions(self.packet, self.get_template(draft)):
            return "Choose first which of the two readings is right."
        if (unmet_sentence := self.describe_unmet_sums(draft)) and not draft.unmet_sums:
            return f"{unmet_sentence[:1].upper()}{unmet_sentence[1:]}: say why the template may be approved, or correct it."
        return None

    @override
    def explain_validation_block(self, draft: Draft) -> str | None:
        return self.explain_approval_block(draft) or (
            self._changed_sentence if self.has_expert_changes(draft) else None
        )

    @override
    def _build_answer_fields(self, draft: Draft, *, is_validation: bool, is_undeterminable: bool) -> dict[str, Any]:
        is_approval = not is_undeterminable
        correction = TemplateCorrection(
            template=self.get_template(draft) if is_approval and not is_validation else None,
            unmet_sums=draft.unmet_sums if is_approval and self.describe_unmet_sums(draft) else "",
        )
        return {"corrections": (correction,)}

    @property
    @override
    def _unvalidatable_reason(self) -> str | None:
        return None

    @override
    def _find_obstacle_and_remedy(self, draft: Draft) -> tuple[str, str] | None:
        if not self.has_expert_changes(draft):
            return "nothing was changed", "Change the template, or approve it as it is."
        block_reason = self.explain_approval_block(draft)
        return (block_reason.rstrip("."), "Do first what the message names.") if block_reason else None

    @override
    def get_viewing_requirements(self, draft: Draft) -> ViewingRequirements:
        """Get the pages that the template reads, and shown critical or high issues."""
        grave_ids = (
            reported_issue.issue.issue_id
            for reported_issue in self.issues_within_caps
            if SeverityRank[reported_issue.issue.severity] >= SeverityRank.high
        )
        return ViewingRequirements(page_numbers=self.list_pages_with_region(draft), issue_ids=tuple(grave_ids))

    def _locate_issue(self, issue: Issue) -> HighlightedPlace:
        """Find the page of an issue.

        For an issue about the edges of regions, the boxes are the lines outside every region on this page.
        """
        page_numbers = self.list_pages_with_region(self.draft)
        page = min(max(issue.page or (page_numbers[0] if page_numbers else 1), 1), self.packet.total_pages)
        is_about_edges = issue.code == "TEMPLATE-BBOX-ACCURACY"
        unread_lines = self._agent_applied_template.statement.outside if is_about_edges else ()
        boxes = [unread_line.box for unread_line in unread_lines if unread_line.page == page]
        return HighlightedPlace(page, _build_page_boxes(page, boxes), "near")

    def _locate_sum(self, applied_template: AppliedTemplate, check_index: int) -> HighlightedPlace:
        check = applied_template.reconciliation.checks[check_index]
        page = check.page or 1
        boxes = [
            printed_sum.box
            for printed_sum in applied_template.statement.sums
            if (printed_sum.label, printed_sum.page) == (check.label, page)
        ]
        return HighlightedPlace(page, _build_page_boxes(page, boxes), "found")

    @cached_property
    def _agent_applied_template(self) -> AppliedTemplate:
        return AppliedTemplate.create(self.agent_template, self.bundle)

    @cached_property
    def _cached_apply_template(self) -> Callable[[StatementTemplate], AppliedTemplate]:
        return lru_cache(maxsize=_CACHED_READINGS)(self._agent_applied_template.apply_other_template)

    @cached_property
    def _issues_by_id(self) -> dict[str, Issue]:
        return {issue.issue_id: issue for issue in self.packet.open_issues}


def _build_page_boxes(page: int, boxes: Sequence[Box]) -> tuple[PageBox, ...]:
    return tuple((page, *box) for box in boxes)


class TemplateKind(CaseKind[TemplatePacket, StatementTemplate]):
    """The kind of case about a template that reads a bank's statements."""

    packet_class = TemplatePacket
    case_class = TemplateReviewCase
    correction_class = TemplateCorrection
    case_id_suffix = TEMPLATE_CASE_SUFFIX
    is_named_after_document = False
    topic = "a statement template"
    correction_remedy = "Pass corrected_template."

    @override
    def reconstruct_draft(self, packet: TemplatePacket, review: Review, answer: StatementTemplate | None) -> Draft:
        template = extract_template_if_edited(packet.agent_answer, answer)
        return Draft.from_packet(packet).model_copy(update={"template": template, "unmet_sums": review.unmet_sums})

    @override
    def build_review_fields(
        self, outcome: ReviewOutcome, submission: Submission, packet: TemplatePacket, bundle: DocumentBundle
    ) -> dict[str, Any]:
        if outcome == "undeterminable":
            return {"after": None}
        correction, agent_template = submission.get_correction(TemplateCorrection), packet.agent_answer
        final_template = (
            agent_template
            if correction.template is None
            else parse_corrected_template(agent_template, correction.template)
        )
        applied_template, reason = AppliedTemplate.create(final_template, bundle), correction.unmet_sums
        if not applied_template.statement.transactions:
            raise build_incomplete_review_error(
                "the template reads no row of this statement",
                "Correct the template, or say why nobody can: undeterminable='the reason'.",
            )
        if list_undecided_questions(packet, final_template):
            raise build_incomplete_review_error(
                "nobody has decided which of the two readings is right",
                'Pass corrected_template with sign_proof = ["person"] in [amounts], and without alternative_formats in [dates].',
            )
        if (unmet_sentence := describe_unmet_sums(applied_template.reconciliation)) and not reason:
            raise build_incomplete_review_error(
                unmet_sentence,
                "Give a reason to approve a template whose sums do not add up (unmet_sums), or correct the template.",
            )
        if not unmet_sentence and reason:
            raise build_incomplete_review_error("unmet_sums was given, but all sums add up", "Leave unmet_sums out.")
        approved_template = build_approved_template(agent_template, final_template)
        return {"after": approved_template, "vouched": ("template",), "unmet_sums": reason}

    @override
    def is_same_answer(self, first: StatementTemplate, second: StatementTemplate) -> bool:
        return is_nearly_same_template(first, second)

    @override
    def summarise_answer(self, answer: StatementTemplate) -> str:
        return f"template, version {answer.version}"

    @override
    def list_answer_sections(self, packet: TemplatePacket) -> list[tuple[str, list[list[str]] | None]]:
        return [(packet.template_case.template.removesuffix("\n"), None)]

    @override
    def build_ground_truth(
        self, packet: TemplatePacket, review: Review, answer: StatementTemplate, record_fields: Mapping[str, Any]
    ) -> TemplateGroundTruth:
        return TemplateGroundTruth(ground_truth_template=answer, unmet_sums=review.unmet_sums, **record_fields)

    @override
    def write_projected_files(
        self,
        output_folder: OutputFolder,
        packet: TemplatePacket,
        record: GroundTruthRecord | None,
        answers: Sequence[StatementTemplate | None],
    ) -> None:
        """Write the template's file as decided by the reviews.

        An approved template is written with the status stable; without approval, the draft from the packet is restored. A
        newer version, and a draft that was edited elsewhere, are not overwritten.
        """
        draft_template = packet.agent_answer
        name = template_file_name(draft_template.template_id)
        stored_template = read_stored_template(output_folder, draft_template.template_id)
        if isinstance(record, TemplateGroundTruth):
            approved_template = record.ground_truth_template
            if stored_template is None or (
                stored_template != approved_template and stored_template.version <= approved_template.version
            ):
                output_folder.write_text(name, render_template_toml(approved_template))
        elif stored_template is None or (stored_template != draft_template and stored_template in answers):
            output_folder.write_text(name, render_template_toml(draft_template))
