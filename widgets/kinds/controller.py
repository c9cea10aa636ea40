"""What the screen asks of a kind of case, and what it may use of the screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from evalkit.review.case import HighlightedPlace, ReviewCase
from evalkit.review.draft import Draft
from widgets.page_pane import PagePane
from widgets.screen_widget import CasePanelWidget

Message = dict[str, Any]
OwnerT = TypeVar("OwnerT")


@dataclass(frozen=True)
class Action(Generic[OwnerT]):
    """The answer to one message of the browser.

    ``handle`` gives the changed draft, to be saved and shown, or None. ``is_change``: it changes the expert's answer, is
    ignored in a locked case, and Undo takes it back. ``clears_problem``: it is a press, before which the sentence about
    the last problem goes away. ``ends_edit``: it would lose a value that is being typed, and is refused until that is
    kept or left. ``needs_session``: it is ignored until the page has told which browser tab it is.
    """

    handle: Callable[[OwnerT, Message], Draft | None]
    is_change: bool = False
    clears_problem: bool = True
    ends_edit: bool = False
    needs_session: bool = True


class CaseScreen(Protocol):
    """The part of the workbench that a kind of case may use."""

    page_pane: PagePane

    def save_and_show_draft(self, draft: Draft) -> None:
        """Save the draft, then show it."""

    def show_place(self, place: HighlightedPlace, target_id: str) -> None:
        """Show a page with a place; ``target_id`` counts as seen once it is painted."""

    def show_notice(self, sentence: str) -> None:
        """Show a sentence where the expert is looking."""


class CaseController(Protocol):
    """One open case on the screen; each kind has a subclass with these methods.

    ``kind`` is the ``packet.kind`` of its cases, ``panel_class`` the widget that lists their targets, ``actions`` the
    messages that only they have. ``has_segments``: the expert draws documents and their types. ``labels`` and
    ``outcome_words`` name what is called otherwise than in ``segment_editor.DECISION_LABELS`` and in the record.
    """

    kind: ClassVar[str]
    panel_class: ClassVar[type[CasePanelWidget]]
    actions: ClassVar[Mapping[str, Action[Any]]]
    has_segments: ClassVar[bool] = False
    labels: ClassVar[Mapping[str, str]] = MappingProxyType({})
    outcome_words: ClassVar[Mapping[str, str]] = MappingProxyType({})

    case: ReviewCase
    draft: Draft
    screen: CaseScreen
    panel: CasePanelWidget

    def __init__(self, screen: CaseScreen, case: ReviewCase, panel: CasePanelWidget) -> None:
        self.screen, self.case, self.draft, self.panel = screen, case, case.draft, panel

    def render_case(self) -> dict[str, Any]:
        """Build ``panel.case``: all that stays as it is while the case is open."""

    def render_draft(self) -> None:
        """Show in the panel and on the page what follows from the draft and its page."""

    def choose_first_target_id(self) -> str | None:
        """Choose the target that is open first: the draft's last one, else the worst."""

    def locate_target(self, target_id: str) -> HighlightedPlace:
        """Find the page and the boxes of a target. NotFound."""

    def open_target(self, target_id: str) -> None:
        """Show in the panel what belongs to the target that has just been selected."""

    def mark_target_seen(self, draft: Draft, target_id: str, page: int) -> Draft:
        """Mark a target as seen that was painted together with that page."""

    def build_ribbon_segments(self) -> list[dict[str, Any]]:
        """Build ``PagePane.segments``: all pages as runs."""

    def explain_block(self) -> str | None:
        """Explain why the case cannot be validated, or a blind one submitted, now."""
        if self.case.is_blind:
            return self.case.explain_submission_block(self.draft)
        return self.case.explain_validation_block(self.draft)

    def can_correct(self) -> bool:
        """Whether there is something to submit as a correction, or as a blind answer."""
        if self.case.is_blind:
            return self.explain_block() is None
        is_note_enough = bool(self.case.explain_permanent_validation_block() and self.draft.notes.strip())
        return self.case.has_expert_changes(self.draft) or is_note_enough

    def describe_unmet(self) -> str:
        """Describe what must be explained before a decision; empty for nothing."""
        return ""

    def get_open_issue_id(self) -> str:
        """Return the issue that a note would be about; empty for none."""
        return self.panel.selected

    def require_finished_edit(self) -> None:
        """Raise UsageError while something is being typed that a decision would lose."""
