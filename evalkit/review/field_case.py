"""One case about fields on one expert's screen: where each field stands, what must be seen, and what a press says.

Source: contract, ruling 14, read for fields: what an expert stands for follows from what was on screen. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from evalkit.errors import NotFound
from evalkit.extraction.schema import Extraction, FieldValue
from evalkit.issue import Issue, IssueSeverity, PageBox, QuoteVerdict
from evalkit.review.case import Case, MustSee, notes_of, verdicts_of, words_of_pages
from evalkit.review.draft import Draft
from evalkit.review.fields import FieldAnswer, FormFields, answer, field_of, forms, is_same, keyed, label, parted, shown
from evalkit.review.packet import ADJUDICATION, is_for_a_person
from evalkit.review.submission import Submission

Style = Literal["found", "near"]

#: A quote that stands in the document, wherever it does.
STANDS = (None, QuoteVerdict.VERBATIM, QuoteVerdict.NOISY, QuoteVerdict.WRONG_PAGE)


@dataclass(frozen=True)
class Item:
    """One thing to look at: a field with its issues, or an issue that is about no single field."""

    name: str
    """The field's key, or the issue's id."""
    form: int
    """The position of its report or form in the packet, from 0."""
    field: str
    """The field's name; empty of an issue."""
    issues: tuple[Issue, ...]
    """Open ones, worst first."""


@dataclass(frozen=True)
class FieldPlace:
    """Where an item stands."""

    page: int
    """The page to show, from 1."""
    boxes: tuple[PageBox, ...]
    """What is lit; empty where it stands nowhere."""
    style: Style
    """``found``: it is the value itself; ``near``: only the passage most like it."""


class FieldCase(Case):
    """A case about fields as it was opened."""

    @cached_property
    def agents(self) -> tuple[FormFields, ...]:
        """What the agent extracted."""
        return forms(self.packet)

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """All that can be looked at, in the order of forms and templates; of each form the issues without a field first."""
        return tuple(item for at, one in enumerate(self.packet.extractions) for item in _items(at, one))

    def item(self, name: str) -> Item:
        """One of them. NotFound, naming it."""
        found = self._by_name.get(name)
        if found is None:
            raise NotFound(
                f"case {self.packet.case_id!r} has no field {name!r}",
                code="FIELD-NOT-FOUND",
                remedy="Its fields are in packet.extractions.",
            )
        return found

    def place(self, name: str) -> FieldPlace:
        """Where an item stands: the value's own place, failing that the passage that its issue tells of. NotFound.

        What stands nowhere has its form's first page and nothing lit.
        """
        item = self.item(name)
        form = self.packet.extractions[item.form]
        value = form.fields.get(item.field)
        if value and (boxes := self._on_its_pages(value.boxes)):
            return FieldPlace(boxes[0][0], boxes, "found")
        for told in item.issues:
            if boxes := self._on_its_pages(told.boxes):
                return FieldPlace(boxes[0][0], boxes, "found" if told.verdict in STANDS else "near")
        page = (value.page if value else None) or next((one.page for one in item.issues if one.page), None)
        return FieldPlace(self._within(page or form.start_page), (), "near")

    def first(self) -> str | None:
        """What to look at first: the worst of what must be seen, else the first field."""
        wanted = [item for item in self.items if self._must_see_item(item)]
        chosen = min(wanted, key=lambda item: item.issues[0].severity.rank, default=None)
        chosen = chosen or next(iter(self.items), None)
        return chosen.name if chosen else None

    def agents_value(self, key: str) -> FieldValue:
        """What the agent says in a field. NotFound."""
        item = self.item(key)
        if not item.field:
            raise NotFound(f"{key!r} is no field", code="FIELD-NOT-FOUND", remedy="Choose a field.")
        return self.packet.extractions[item.form].fields[item.field]

    def with_answer(self, draft: Draft, key: str, given: object) -> Draft:
        """The draft in which the expert says that of the field; as the agent says it, it is no change. ReviewRefused."""
        agents = self.agents_value(key)
        at, name = parted(key)
        # What the agent read may not be written as such a value is, and can be agreed with all the same.
        if given == {"status": agents.status, "value": agents.value}:
            return draft.with_field(key, None)
        said = answer(field_of(self.agents[at], name), given)
        return draft.with_field(key, None if is_same(said, agents) else said)

    def answered(self, draft: Draft, key: str) -> FieldAnswer | FieldValue:
        """What stands in the field now: the expert's word, else the agent's. NotFound."""
        return draft.fields.get(key) or self.agents_value(key)

    @cached_property
    def must_see(self) -> MustSee:
        """All that has to be on screen before one press may validate: each form that goes to a person, and its issues."""
        asked = [one for one in self.packet.extractions if is_for_a_person(one)]
        pages = {self._within(one.start_page) for one in asked}
        issues = [issue.issue_id for item in self.items if self._must_see_item(item) for issue in _grave(item)]
        wanted = dict.fromkeys(issue.issue_id for issue in self.packet.open_issues if issue.issue_id in issues)
        return MustSee(pages=tuple(sorted(pages)), issues=tuple(wanted))

    def must_see_items(self, draft: Draft) -> list[str]:
        """The items that have to be looked at and were not yet, in order."""
        missing = set(self.not_yet_seen(draft).issues)
        return [item.name for item in self.items if any(issue.issue_id in missing for issue in item.issues)]

    def seen(self, draft: Draft, name: str, page: int) -> Draft:
        """The draft after that item was on screen with that page."""
        draft = draft.seen_page(page)
        item = self.item(name)
        if self.place(name).page != page:
            return draft
        for issue in item.issues:
            draft = draft.seen_evidence(issue.issue_id)
        return draft.seen_field(name) if item.field else draft.seen_evidence(name)

    def is_changed(self, draft: Draft) -> bool:
        """Whether a field differs from the agent's."""
        return bool(draft.fields)

    def changes(self, draft: Draft) -> tuple[str, ...]:
        """What differs from the agent's answer, one sentence each, in the order of the fields."""
        return tuple(
            f"{label(self.agents[item.form], item.field)}: {shown(self.agents_value(item.name))} → "
            f"{shown(draft.fields[item.name])}"
            for item in self.items
            if item.name in draft.fields
        )

    def agrees(self, draft: Draft) -> bool:
        """Whether all fields are the agent's."""
        return not draft.fields

    def said(self, draft: Draft, *, validate: bool, undeterminable: str | None) -> Submission:
        """What pressing the button says. ReviewRefused where it cannot be said with this draft."""
        is_validation = self._is_validation(draft, validate=validate, undeterminable=undeterminable)
        return Submission(
            agrees=is_validation or None,
            corrected_fields=draft.fields if not is_validation and undeterminable is None else None,
            correction_notes=notes_of(draft),
            issue_verdicts=verdicts_of(draft),
            undeterminable=undeterminable,
            vouched=None if undeterminable is not None else self._stood_for(draft),
            seconds_active=draft.seconds_active,
            pages_seen=draft.pages_seen,
            evidence_seen=draft.evidence_seen,
        )

    _changed_words = "You have changed fields: submit them as a correction."

    @cached_property
    def _why_it_cannot_stand(self) -> str | None:
        if any(one.history for one in self.packet.extractions):
            return None
        return "No fields could be extracted, so there is nothing to agree with."

    def _hindrance(self, draft: Draft) -> tuple[str, str] | None:
        if not draft.fields:
            return "nothing was changed", "Change a field, or validate what is there."
        missing = self.not_yet_seen(draft)
        if self.packet.case_id.endswith(ADJUDICATION) and missing.pages:
            where = words_of_pages(missing.pages)
            return f"{where} not yet seen", "Look at each report and form yourself."
        return None

    def _stood_for(self, draft: Draft) -> tuple[str, ...]:
        return tuple(key for key in keyed(self.agents) if key in draft.fields or key in draft.fields_seen)

    def _must_see_item(self, item: Item) -> bool:
        return bool(_grave(item)) and is_for_a_person(self.packet.extractions[item.form])

    def _on_its_pages(self, boxes: tuple[PageBox, ...]) -> tuple[PageBox, ...]:
        """Those that can be lit at all: nobody is told that something is which is not."""
        return tuple(box for box in boxes if self._within(box[0]) == box[0])

    def _within(self, page: int) -> int:
        return min(max(page, 1), self.packet.total_pages)

    @cached_property
    def _by_name(self) -> dict[str, Item]:
        return {item.name: item for item in self.items}


def _items(at: int, one: Extraction) -> Iterator[Item]:
    still_open = sorted(
        (issue for issue in one.issues if issue.status == "open"), key=lambda issue: issue.severity.rank
    )
    for issue in still_open:
        if issue.location not in one.fields:
            yield Item(issue.issue_id, at, "", (issue,))
    for name in one.fields:
        own = tuple(issue for issue in still_open if issue.location == name)
        yield Item(f"{at + 1}.{name}", at, name, own)


def _grave(item: Item) -> list[Issue]:
    return [issue for issue in item.issues if issue.severity is not IssueSeverity.MINOR]
