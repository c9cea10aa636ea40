"""Controller of a case about a template that reads bank statements."""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from evalkit.review import Draft, HighlightedPlace, TemplateReviewCase
from evalkit.review.template_editing import add_region_for_page_kind, apply_choice, rename_column_with_dependents
from evalkit.statements.statement_template import StatementTemplate
from widgets.kinds.controller import Action, CaseController, Message
from widgets.template_panel import (
    TemplatePanel,
    build_region_ribbon,
    build_template_trait,
    describe_row_counts,
    describe_template_target_place,
    list_chosen_readings,
    render_reading_questions,
    render_sum_checks,
    render_template_case,
    render_template_frames,
    render_transactions,
    render_unread_lines,
)


class TemplateController(CaseController):
    """Controller of an open case about a statement template."""

    kind = "statement_template"
    panel_class = TemplatePanel
    labels: ClassVar[dict[str, str]] = {
        "validate": "Approve",
        "correct": "Approve with changes",
        "undeterminable": "Reject",
        "undeterminable_question": "Why can this template not be used?",
        "undeterminable_answer": "Reject it",
    }
    outcome_words: ClassVar[dict[str, str]] = {
        "validated": "approved",
        "corrected": "approved with changes",
        "undeterminable": "rejected",
    }

    case: TemplateReviewCase
    panel: TemplatePanel
    _shown_template: StatementTemplate | None = None  # the template that read the rows on screen

    @override
    def render_case(self) -> dict[str, Any]:
        self.screen.page_pane.strips = []
        return render_template_case(self.case) | {
            "questions": render_reading_questions(self.case, self.screen.render_cut_out)
        }

    @override
    def render_draft(self) -> None:
        case, panel, pane = self.case, self.panel, self.screen.page_pane
        applied_template = case.apply_template(self.draft)
        if self._shown_template not in (None, applied_template.template) and not case.is_issue_id(panel.selected):
            panel.selected = pane.issue_id = ""  # the rows were read anew, so the selected row may no longer exist
            pane.marks = []
        self._shown_template = applied_template.template
        pane.frames = render_template_frames(case, self.draft, self.draft.page, is_locked=self.panel.is_locked)
        panel.set_traits(
            page=self.draft.page,
            has_box=bool(pane.frames),
            place=describe_template_target_place(case, panel.selected, self.draft) if panel.selected else "",
            sums=render_sum_checks(applied_template) | {"reason": self.draft.unmet_sums},
            rows=render_transactions(applied_template, self.draft.page),
            left=render_unread_lines(applied_template),
            counted=describe_row_counts(applied_template, self.draft.page),
            template=build_template_trait(case, self.draft),
            readings=list_chosen_readings(case, self.draft),
            wanted=list(case.find_unseen_requirements(self.draft).issue_ids),
        )

    @override
    def choose_first_target_id(self) -> str | None:
        draft = self.case.draft
        is_there = draft.issue_id and self.case.has_target(draft.issue_id, draft)
        return draft.issue_id if is_there else self.case.choose_first_target_id()

    @override
    def locate_target(self, target_id: str) -> HighlightedPlace:
        return self.case.locate_target(target_id, self.draft)

    @override
    def build_ribbon_segments(self) -> list[dict[str, Any]]:
        return build_region_ribbon(self.case, self.draft)

    @override
    def explain_block(self) -> str | None:
        return self.case.explain_approval_block(self.draft)

    @override
    def can_correct(self) -> bool:
        return self.explain_block() is None and self.case.has_expert_changes(self.draft)

    @override
    def describe_unmet(self) -> str:
        return self.case.describe_unmet_sums(self.draft)

    @override
    def get_open_issue_id(self) -> str:
        return self.panel.selected if self.case.is_issue_id(self.panel.selected) else ""

    def save_unmet_sums_reason(self, message: Message) -> Draft | None:
        """Save the reviewer's reason for approving sums that do not add up."""
        if self.describe_unmet():
            return self.draft.set_unmet_sums_reason(str(message["reason"]))
        self.screen.show_notice("All sums add up: there is nothing to explain.")
        return None

    actions: ClassVar[dict[str, Action[TemplateController]]] = {
        "edge": Action(
            lambda controller, message: controller.case.move_edge(
                controller.draft, str(message["edge"]), float(message["to"])
            ),
            is_change=True,
        ),
        "box": Action(
            lambda controller, message: controller.case.edit_template(
                controller.draft,
                add_region_for_page_kind,
                int(message["page"]),
                controller.case.packet.total_pages,
            ),
            is_change=True,
        ),
        "column": Action(
            lambda controller, message: controller.case.edit_template(
                controller.draft, rename_column_with_dependents, int(message["column"]), str(message["name"])
            ),
            is_change=True,
        ),
        "choice": Action(
            lambda controller, message: controller.case.edit_template(
                controller.draft, apply_choice, str(message["what"]), str(message["value"])
            ),
            is_change=True,
        ),
        "reading": Action(
            lambda controller, message: controller.case.choose_reading(
                controller.draft, str(message["question"]), int(message["number"])
            ),
            is_change=True,
        ),
        "unmet_sums": Action(save_unmet_sums_reason, is_change=True),
    }
