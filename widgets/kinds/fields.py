"""Controller of a case about the fields of reports and forms."""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from evalkit.errors import ReviewRefused, UsageError
from evalkit.review import Draft, FieldReviewCase, HighlightedPlace
from evalkit.review.field_answers import FieldTextCheck, check_field_text, split_entry_text
from widgets.field_panel import (
    FieldPanel,
    build_form_ribbon,
    describe_field_target_place,
    render_field_case,
    render_field_values,
)
from widgets.kinds.controller import Action, CaseController, Message


class FieldsController(CaseController):
    """Controller of an open case about fields."""

    kind = "extraction"
    panel_class = FieldPanel

    case: FieldReviewCase
    panel: FieldPanel
    _unfinished_key = ""  # the field whose value is being typed, or was refused

    @override
    def render_case(self) -> dict[str, Any]:
        self.panel.checked = {}
        return render_field_case(self.case)

    @override
    def render_draft(self) -> None:
        panel = self.panel
        panel.set_traits(
            place=describe_field_target_place(self.case, panel.selected, self.draft) if panel.selected else "",
            values=render_field_values(self.case, self.draft),
            wanted=self.case.list_unseen_target_ids(self.draft),
        )

    @override
    def choose_first_target_id(self) -> str | None:
        return self.case.draft.issue_id or self.case.choose_first_target_id()

    @override
    def locate_target(self, target_id: str) -> HighlightedPlace:
        answer = self.draft.fields.get(target_id)
        if answer and answer.page and answer.boxes:
            return HighlightedPlace(answer.page, answer.boxes, "found")
        return self.case.locate_target(target_id)

    @override
    def build_ribbon_segments(self) -> list[dict[str, Any]]:
        return build_form_ribbon(self.case)

    @override
    def get_open_issue_id(self) -> str:
        issues = self.case.get_target(self.panel.selected).issues if self.panel.selected else ()
        return issues[0].issue_id if issues else ""

    @override
    def require_finished_edit(self) -> None:
        if self._unfinished_key:
            raise UsageError(
                "a value that you have typed is not saved yet",
                code="FIELD-UNFINISHED",
                remedy="Press Enter in the value's line to save it, or Esc to leave the field as it was.",
            )

    def mark_edit_begun_or_ended(self, message: Message) -> None:
        """Record which field's value is being typed, or that typing has ended."""
        self.case.get_agent_value(str(message["field"]))
        self._unfinished_key = str(message["field"]) if message.get("is_open") else ""
        self.panel.checked = {}

    def show_typed_value_check(self, message: Message) -> None:
        """Check the text typed so far against the field's format, and show the result."""
        field_key, text, text_check = str(message["field"]), str(message["text"]), None
        field = self.case.get_field(field_key)
        try:
            if message.get("is_new"):
                entry_name, text = split_entry_text(field, text, self.case.list_entry_names(self.draft, field_key))
                field_key = ".".join([*field_key.split(".")[:2], entry_name])
                field = self.case.get_field(field_key)
        except ReviewRefused as error:
            text_check = FieldTextCheck(None, f"{error.message[:1].upper()}{error.message[1:]}. {error.remedy}")
        text_check = text_check or check_field_text(field, text)
        lost_words = f"Left over: {text_check.lost_words}. " if text_check.lost_words else ""
        self.panel.checked = {
            "field": str(message["field"]),
            "text": str(message["text"]),
            "key": field_key,
            "typed": text.strip(),
            "value": text_check.value,
            "problem": lost_words + text_check.problem,
            "place": {name: message[name] for name in ("page", "boxes") if message.get(name)},
        }

    def set_field_value(self, message: Message) -> None:
        """Save a typed value; keep it in the input if it is refused or reformatted.

        ``confirmed`` is the value that was shown in place of the text, when the expert keeps it.
        """
        self._unfinished_key = str(message["field"])
        self.show_typed_value_check(message)
        checked = self.panel.checked
        if checked["problem"]:
            return
        if checked["value"] not in (checked["typed"], message.get("confirmed")):
            self.panel.checked = {**checked, "is_asked": True}
            return
        page, boxes = checked["place"].get("page"), checked["place"].get("boxes", ())
        answer = {"value": checked["value"], "page": page, "boxes": [[page, *box] for box in boxes]}
        changed_draft = self.case.set_field_answer(self.draft, checked["key"], answer)
        self._unfinished_key = ""
        self.screen.save_and_show_draft(changed_draft)
        self.panel.checked = {**checked, "is_kept": True}

    def rename_entry(self, message: Message) -> Draft:
        """Rename an entry of a repeated field."""
        return self._end_edit(message, self.case.rename_entry(self.draft, str(message["field"]), str(message["name"])))

    def remove_entry(self, message: Message) -> Draft:
        """Delete an entry of a repeated field, with a reason."""
        return self._end_edit(
            message, self.case.remove_entry(self.draft, str(message["field"]), str(message["reason"]))
        )

    def _end_edit(self, message: Message, draft: Draft) -> Draft:
        self._unfinished_key, self.panel.checked = "", {"field": str(message["field"]), "is_kept": True}
        return draft

    def set_field_status(self, message: Message) -> Draft:
        """Set a field's status: found (as it was read), not present, or ambiguous."""
        field_key, status, draft = str(message["field"]), str(message["status"]), self.draft
        read_value, current_value = self.case.get_agent_value(field_key), self.case.get_current_value(draft, field_key)
        new_value = None if status == "not_present" else current_value.value or read_value.value
        return self.case.set_field_answer(draft, field_key, {"status": status, "value": new_value})

    def show_field_place(self, message: Message) -> None:
        """Show one of the places on the page that state the field."""
        field_key = str(message["field"])
        place = self.case.list_places(field_key)[int(message["place"])]
        self.screen.show_place(HighlightedPlace(place.page, place.boxes, "found"), field_key)
        self.panel.place = f"Highlighted on page {place.page}: {place.value}."

    def take_field_reading(self, message: Message) -> Draft:
        """Answer a field with one of the values that the program offers."""
        field_key = str(message["field"])
        reading = self.case.get_agent_value(field_key).candidates[int(message["reading"])]
        return self.case.take_reading(self.draft, field_key, reading)

    actions: ClassVar[dict[str, Action[FieldsController]]] = {
        "field_edit": Action(mark_edit_begun_or_ended),
        "field_check": Action(show_typed_value_check, clears_problem=False),
        "field_value": Action(set_field_value, is_change=True),
        "field_status": Action(set_field_status, is_change=True),
        "field_place": Action(show_field_place),
        "field_reading": Action(take_field_reading, is_change=True),
        "entry_rename": Action(rename_entry, is_change=True),
        "entry_remove": Action(remove_entry, is_change=True),
    }
