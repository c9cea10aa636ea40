"""One case about a statement template on one expert's screen: what it reads, where that stands, and what a press says.

Source: contract, ruling 14, read for templates: who approves one has seen each page that it reads and each grave issue,
and says in words why sums may be unmet. Pure: every reading follows from the draft's template and the statement's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from evalkit.documents.bundle import Box
from evalkit.errors import NotFound
from evalkit.issue import Issue, PageBox
from evalkit.review.case import (
    ReviewCase,
    ViewingRequirements,
    collect_issue_verdicts,
    join_notes_of_draft,
)
from evalkit.review.draft import Draft
from evalkit.review.field_case import HighlightedPlace
from evalkit.review.submission import Submission
from evalkit.review.template_editing import (
    add_region_for_page_kind,
    apply_choice,
    describe_template_changes,
    describe_unmet_sums,
    move_template_edge,
    read_packet_template,
    rename_column_with_dependents,
)
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.consensus import keep_worst_issues_per_category
from evalkit.statements.review_cycles import ReportedIssue, TemplateCase
from evalkit.statements.reviewer_report import SeverityRank
from evalkit.statements.statement_template import StatementTemplate

_TARGET_PATTERN = re.compile(r"(?P<what>row|left|outside|sum)\.(?P<at>\d+)")
#: So many readings are kept: what undoing comes back to, and where an edge has just been.
_CACHED_READINGS = 8


class TemplateReviewCase(ReviewCase):
    """A case about a statement template as it was opened."""

    @cached_property
    def template_case(self) -> TemplateCase:
        """The template and all that was said of it before a person was asked."""
        assert self.packet.template_case is not None  # noqa: S101 - such a case has one
        return self.packet.template_case

    @cached_property
    def agent_template(self) -> StatementTemplate:
        """The template as it was when the case was made."""
        return read_packet_template(self.packet)

    @cached_property
    def issues_within_caps(self) -> tuple[ReportedIssue, ...]:
        """The issues up to the cap of their category, worst first (contract, ruling 18): a fault that is there in each
        row need not be read thirty times.
        """
        shown_ids = {
            issue.issue_id
            for issue in keep_worst_issues_per_category(
                [reported_issue.issue for reported_issue in self.template_case.issues]
            )
        }
        within_caps = [
            reported_issue for reported_issue in self.template_case.issues if reported_issue.issue.issue_id in shown_ids
        ]
        return tuple(sorted(within_caps, key=lambda candidate: -SeverityRank[candidate.issue.severity]))

    def get_template(self, draft: Draft) -> StatementTemplate:
        """The template as the expert has it."""
        return draft.template or self.agent_template

    def apply_template(self, draft: Draft) -> AppliedTemplate:
        """What the draft's template reads on the statement, and which of its sums that meets."""
        return self._cached_apply_template(draft.template) if draft.template else self._agent_applied_template

    def list_pages_with_region(self, draft: Draft) -> tuple[int, ...]:
        """The pages on which the template has a region."""
        template, total_pages = self.get_template(draft), self.packet.total_pages
        return tuple(page for page in range(1, total_pages + 1) if template.find_region_indices(page, total_pages))

    # What an expert changes

    def move_edge(self, draft: Draft, edge_name: str, page_fraction: float) -> Draft:
        """The draft with that edge at ``page_fraction``, a fraction of the page. ReviewRefused where there is no such edge."""
        return self._set_template(
            draft,
            move_template_edge(self.get_template(draft), edge_name, page_fraction, opened_template=self.agent_template),
        )

    def add_region_for_page_kind(self, draft: Draft, page: int) -> Draft:
        """The draft with a box on that page, which had none. ReviewRefused where it has one."""
        return self._set_template(
            draft, add_region_for_page_kind(self.get_template(draft), page, self.packet.total_pages)
        )

    def rename_column_with_dependents(self, draft: Draft, column_index: int, name: str) -> Draft:
        """The draft in which that column, from 0, has that name. ReviewRefused where no row could be read then."""
        return self._set_template(draft, rename_column_with_dependents(self.get_template(draft), column_index, name))

    def apply_choice(self, draft: Draft, choice_name: str, value: str) -> Draft:
        """The draft with one of ``TEMPLATE_CHOICES`` made. ReviewRefused for what cannot be chosen."""
        return self._set_template(draft, apply_choice(self.get_template(draft), choice_name, value))

    def _set_template(self, draft: Draft, template: StatementTemplate) -> Draft:
        return draft.set_template(None if template == self.agent_template else template)

    # What is looked at

    def locate_target(self, target_id: str, draft: Draft) -> HighlightedPlace:
        """Where an issue, ``row.1``, ``left.1``, ``outside.1`` or ``sum.1`` stands, as the draft reads it. NotFound."""
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
                f"case {self.packet.case_id!r} has no {target_id!r}",
                code="TEMPLATE-ROW",
                remedy="Choose what is listed.",
            )
        if match["what"] == "row":
            row = statement.transactions[index]
            return HighlightedPlace(row.page, _build_page_boxes(row.page, row.boxes), "found")
        if match["what"] == "sum":
            return self._locate_sum(applied_template, index)
        unread_line = (statement.left_over if match["what"] == "left" else statement.outside)[index]
        return HighlightedPlace(unread_line.page, _build_page_boxes(unread_line.page, [unread_line.box]), "near")

    def choose_first_target_id(self) -> str | None:
        """What to look at first: the worst issue."""
        return next((reported_issue.issue.issue_id for reported_issue in self.issues_within_caps), None)

    def is_issue_id(self, target_id: str) -> bool:
        """Whether that is the id of one of its issues."""
        return target_id in self._issues_by_id

    def has_target(self, target_id: str, draft: Draft) -> bool:
        """Whether there is anything of that name to look at."""
        try:
            self.locate_target(target_id, draft)
        except NotFound:
            return False
        return True

    @property
    def viewing_requirements(self) -> ViewingRequirements:
        """Each page that the template reads as the case was opened, and each critical or high issue that is shown."""
        return self._get_viewing_requirements(self.draft)

    def mark_target_and_page_seen(self, draft: Draft, target_id: str, page: int) -> Draft:
        """The draft after that page was on screen with that issue, or row, chosen."""
        draft = draft.show_page_and_mark_seen(page)
        issue = self._issues_by_id.get(target_id)
        if issue is None or self._locate_issue(issue).page != page:
            return draft
        return draft.show_issue_and_mark_seen(target_id)

    # What is decided

    def has_expert_changes(self, draft: Draft) -> bool:
        """Whether the template differs from the agent's."""
        return draft.template is not None

    def describe_changes(self, draft: Draft) -> tuple[str, ...]:
        """What differs from the agent's template, one sentence each."""
        return tuple(describe_template_changes(self.agent_template, self.get_template(draft)))

    def describe_unmet_sums(self, draft: Draft) -> str:
        """What is wrong with the sums, in a sentence; empty where they are met."""
        return describe_unmet_sums(self.apply_template(draft).reconciliation)

    def explain_approval_block(self, draft: Draft) -> str | None:
        """Why the template, changed or not, may not be approved now, in words for a person; None where it may."""
        if reason := self.explain_permanent_validation_block():
            return reason
        if not self.apply_template(draft).statement.transactions:
            return "The template reads no transaction: correct it, or reject it."
        if unseen_sentence := self._describe_unseen(draft):
            return unseen_sentence
        if (unmet_sentence := self.describe_unmet_sums(draft)) and not draft.unmet_sums:
            return f"{unmet_sentence[:1].upper()}{unmet_sentence[1:]}: say why it may be approved, or correct it."
        return None

    def explain_validation_block(self, draft: Draft) -> str | None:
        """Why one press may not approve the template as it was; None where it may."""
        return self.explain_approval_block(draft) or (
            self._changed_sentence if self.has_expert_changes(draft) else None
        )

    def build_submission(self, draft: Draft, *, validate: bool, undeterminable_reason: str | None) -> Submission:
        """What pressing the button says. ReviewRefused where it cannot be said with this draft."""
        is_validation = self._require_permitted_submission(
            draft, validate=validate, undeterminable_reason=undeterminable_reason
        )
        is_approval = undeterminable_reason is None
        return Submission(
            agrees=is_validation or None,
            corrected_template=self.get_template(draft) if is_approval and not is_validation else None,
            unmet_sums=draft.unmet_sums if is_approval and self.describe_unmet_sums(draft) else "",
            correction_notes=join_notes_of_draft(draft),
            issue_verdicts=collect_issue_verdicts(draft),
            undeterminable=undeterminable_reason,
            seconds_active=draft.seconds_active,
            pages_seen=draft.pages_seen,
            evidence_seen=draft.evidence_seen,
        )

    _changed_sentence = "You have changed the template: approve it with your changes."

    @cached_property
    def _unvalidatable_reason(self) -> str | None:
        return None

    def _find_obstacle_and_remedy(self, draft: Draft) -> tuple[str, str] | None:
        if not self.has_expert_changes(draft):
            return "nothing was changed", "Change the template, or approve it as it is."
        block_reason = self.explain_approval_block(draft)
        return (block_reason.rstrip("."), "Look at what is missing first.") if block_reason else None

    def _get_viewing_requirements(self, draft: Draft) -> ViewingRequirements:
        grave_ids = (
            reported_issue.issue.issue_id
            for reported_issue in self.issues_within_caps
            if SeverityRank[reported_issue.issue.severity] >= SeverityRank.high
        )
        return ViewingRequirements(page_numbers=self.list_pages_with_region(draft), issue_ids=tuple(grave_ids))

    def _locate_issue(self, issue: Issue) -> HighlightedPlace:
        """Its page; what stands outside of the regions there is outlined where it is about where they end."""
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
