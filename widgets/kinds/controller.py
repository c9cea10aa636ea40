"""Interfaces between the workbench and the controllers of kinds of case."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from evalkit.issue import PageBox
from evalkit.review import Draft, HighlightedPlace, ReviewCase
from widgets.page_pane import PagePane
from widgets.screen_widget import CasePanelWidget

Message = dict[str, Any]
OwnerT = TypeVar("OwnerT")


@dataclass(frozen=True)
class Action(Generic[OwnerT]):
    """Handler of one browser message, with the rules that apply before it is called.

    ``handle`` returns the changed draft, which the workbench saves and shows, or None. ``is_change``: the message changes
    the expert's answer, is ignored in a locked case, and can be undone. ``clears_problem``: the sentence about the last
    problem is removed first. ``ends_edit``: the message is refused while a value is being typed that would be lost.
    ``needs_session``: the message is ignored until the browser has sent the id of its tab.
    """

    handle: Callable[[OwnerT, Message], Draft | None]
    is_change: bool = False
    clears_problem: bool = True
    ends_edit: bool = False
    needs_session: bool = True


class CaseScreen(Protocol):
    """Part of the workbench that a case's controller may use."""

    page_pane: PagePane

    def save_and_show_draft(self, draft: Draft) -> None:
        """Save the draft and show it."""

    def show_place(self, place: HighlightedPlace, target_id: str) -> None:
        """Show a page with highlights; the target counts as seen once it is painted."""

    def show_target(self, target_id: str | None, page: int | None = None) -> None:
        """Save the draft and show a target, selected, on its page or on ``page``."""

    def render_cut_out(self, word_box: PageBox) -> str:
        """Draw a word's surroundings as a data URL; empty if that is impossible."""

    def show_notice(self, sentence: str) -> None:
        """Show a sentence to the expert as the latest problem."""


class CaseController(Protocol):
    """Controller of one open case on the screen; each kind of case has a subclass.

    ``kind`` is the ``packet.kind`` of its cases, ``panel_class`` the widget that lists their targets, ``actions`` the
    handlers of messages that only this kind has. ``has_segments``: the expert answers with segments and their types.
    ``labels`` replaces entries of ``segment_editor.DECISION_LABELS``; ``outcome_words`` replaces the words for a review's
    outcome.
    """

    kind: ClassVar[str]
    panel_class: ClassVar[type[CasePanelWidget]]
    actions: ClassVar[Mapping[str, Action[Any]]]
    has_segments: ClassVar[bool] = False
    labels: ClassVar[Mapping[str, str]] = MappingProxyType({})
    outcome_words: ClassVar[Mapping[str, str]] = MappingProxyType({"undeterminable": "closed as undeterminable"})

    case: ReviewCase
    draft: Draft
    screen: CaseScreen
    panel: CasePanelWidget

    def __init__(self, screen: CaseScreen, case: ReviewCase, panel: CasePanelWidget) -> None:
        self.screen, self.case, self.draft, self.panel = screen, case, case.draft, panel

    def render_case(self) -> dict[str, Any]:
        """Build ``panel.case``: everything that does not change while the case is open."""

    def render_draft(self) -> None:
        """Update the panel and the page viewer from the draft and the page on screen."""

    def choose_first_target_id(self) -> str | None:
        """Choose what is selected on opening: the draft's last target, else the worst."""

    def locate_target(self, target_id: str) -> HighlightedPlace:
        """Find page and boxes to highlight for a target. NotFound if there is none."""

    def open_target(self, target_id: str) -> None:
        """Show the details of the newly selected target in the panel."""

    def answer_issue(self, issue_id: str, verdict: Literal["confirmed", "dismissed"] | None) -> Draft:
        """Return the draft with a verdict and its effect; None undoes both."""
        return self.draft.set_issue_verdict(issue_id, verdict)

    def choose_next_place(self, issue_id: str) -> tuple[int, str] | None:
        """Choose page and target to show after an issue was answered; None to stay there."""

    def build_ribbon_segments(self) -> list[dict[str, Any]]:
        """Build ``PagePane.segments``: runs of pages that together cover the file."""

    def explain_block(self) -> str | None:
        """Explain why the case cannot be decided yet; None if it can."""
        if self.case.is_blind:
            return self.case.explain_submission_block(self.draft)
        return self.case.explain_validation_block(self.draft)

    def can_correct(self) -> bool:
        """Return True if the draft can be submitted as a correction or blind answer."""
        if self.case.is_blind:
            return self.explain_block() is None
        is_note_enough = bool(self.case.explain_permanent_validation_block() and self.draft.notes.strip())
        return self.case.has_expert_changes(self.draft) or is_note_enough

    def describe_unmet(self) -> str:
        """Describe what the expert must give a reason for; empty if nothing."""
        return ""

    def get_open_issue_id(self) -> str:
        """Return the id of the issue to which a new note would belong; empty for none."""
        return self.panel.selected

    def require_finished_edit(self) -> None:
        """Raise UsageError if the next action would lose a value being typed."""
