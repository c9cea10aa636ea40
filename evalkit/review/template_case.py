"""One case about a statement template on one expert's screen: what it reads, where that stands, and what a press says.

Source: contract, ruling 14, read for templates: who approves one has seen each page that it reads and each grave issue,
and says in words why sums may be unmet. Pure: every reading follows from the draft's template and the statement's words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from evalkit.documents.bundle import Box
from evalkit.errors import NotFound
from evalkit.issue import Issue, PageBox
from evalkit.review.case import Case, MustSee, notes_of, verdicts_of, words_of_pages
from evalkit.review.draft import Draft
from evalkit.review.field_case import FieldPlace
from evalkit.review.submission import Submission
from evalkit.review.templates import changes, chosen, moved, place_of, renamed, template_of, unmet, with_region
from evalkit.statements.apply import LeftOver
from evalkit.statements.consensus import shown
from evalkit.statements.reading import Reading
from evalkit.statements.record import TemplateCase, ToldIssue
from evalkit.statements.report import Rank
from evalkit.statements.template import StatementTemplate

_LIT = re.compile(r"(?P<what>row|left|outside|sum)\.(?P<at>\d+)")
#: So many readings are kept: what undoing comes back to, and where an edge has just been.
_KEPT = 8


class TemplateReview(Case):
    """A case about a statement template as it was opened."""

    @cached_property
    def told(self) -> TemplateCase:
        """The template and all that was said of it before a person was asked."""
        assert self.packet.template_case is not None  # noqa: S101 - such a case has one
        return self.packet.template_case

    @cached_property
    def agents(self) -> StatementTemplate:
        """The template as it was when the case was made."""
        return template_of(self.packet)

    @cached_property
    def shown(self) -> tuple[ToldIssue, ...]:
        """The issues up to the cap of their category, worst first (contract, ruling 18): a fault that is there in each
        row need not be read thirty times.
        """
        kept = {issue.issue_id for issue in shown([one.issue for one in self.told.issues])}
        some = [one for one in self.told.issues if one.issue.issue_id in kept]
        return tuple(sorted(some, key=lambda one: -Rank[one.issue.severity]))

    def template(self, draft: Draft) -> StatementTemplate:
        """The template as the expert has it."""
        return draft.template or self.agents

    def reading(self, draft: Draft) -> Reading:
        """What the draft's template reads on the statement, and which of its sums that meets."""
        template = self.template(draft)
        if template not in self._readings:
            if len(self._readings) >= _KEPT:
                del self._readings[next(iter(self._readings))]
            self._readings[template] = self._first_reading.with_template(template)
        return self._readings[template]

    def pages_read(self, draft: Draft) -> tuple[int, ...]:
        """The pages on which the template has a region."""
        template, total = self.template(draft), self.packet.total_pages
        return tuple(page for page in range(1, total + 1) if template.regions_on(page, total))

    # What an expert changes

    def with_edge(self, draft: Draft, name: str, to: float) -> Draft:
        """The draft with that edge at ``to``, a fraction of the page. ReviewRefused where there is no such edge."""
        return self._with(draft, moved(self.template(draft), name, to, by=self.agents))

    def with_edge_moved(self, draft: Draft, name: str, by: float) -> Draft:
        """The draft with that edge so much further to the right or down. ReviewRefused."""
        return self.with_edge(draft, name, place_of(self.template(draft), name) + by)

    def with_box(self, draft: Draft, page: int) -> Draft:
        """The draft with a box on that page, which had none. ReviewRefused where it has one."""
        return self._with(draft, with_region(self.template(draft), page, self.packet.total_pages))

    def with_column(self, draft: Draft, at: int, name: str) -> Draft:
        """The draft in which that column, from 0, has that name. ReviewRefused where no row could be read then."""
        return self._with(draft, renamed(self.template(draft), at, name))

    def with_choice(self, draft: Draft, what: str, value: str) -> Draft:
        """The draft with one of ``templates.CHOICES`` made. ReviewRefused for what cannot be chosen."""
        return self._with(draft, chosen(self.template(draft), what, value))

    def _with(self, draft: Draft, template: StatementTemplate) -> Draft:
        return draft.with_template(None if template == self.agents else template)

    # What is looked at

    def place(self, name: str, draft: Draft) -> FieldPlace:
        """Where an issue, ``row.1``, ``left.1``, ``outside.1`` or ``sum.1`` stands, as the draft reads it. NotFound."""
        reading = self.reading(draft)
        if issue := self._by_id.get(name):
            return self._place_of_issue(issue)
        found = _LIT.fullmatch(name)
        statement, at = reading.statement, int(found["at"]) - 1 if found else -1
        listed: dict[str, Sequence[object]] = {
            "row": statement.transactions, "left": statement.left_over, "outside": statement.outside,
            "sum": reading.reconciliation.checks,
        }  # fmt: skip
        if found is None or not 0 <= at < len(listed[found["what"]]):
            raise NotFound(
                f"case {self.packet.case_id!r} has no {name!r}", code="TEMPLATE-ROW", remedy="Choose what is listed."
            )
        if found["what"] == "row":
            row = statement.transactions[at]
            return FieldPlace(row.page, _on(row.page, row.boxes), "found")
        if found["what"] == "sum":
            return self._place_of_sum(reading, at)
        one = (statement.left_over if found["what"] == "left" else statement.outside)[at]
        return FieldPlace(one.page, _on(one.page, [one.box]), "near")

    def first(self) -> str | None:
        """What to look at first: the worst issue."""
        return next((one.issue.issue_id for one in self.shown), None)

    def is_issue(self, name: str) -> bool:
        """Whether that is the id of one of its issues."""
        return name in self._by_id

    def lists(self, name: str, draft: Draft) -> bool:
        """Whether there is anything of that name to look at."""
        try:
            self.place(name, draft)
        except NotFound:
            return False
        return True

    @property
    def must_see(self) -> MustSee:
        """Each page that the template reads as the case was opened, and each critical or high issue that is shown."""
        return self._must_see(self.draft)

    def not_yet_seen(self, draft: Draft) -> MustSee:
        """What of it was not on screen yet; the pages are those that the draft's template reads."""
        wanted = self._must_see(draft)
        return MustSee(
            pages=tuple(page for page in wanted.pages if page not in draft.pages_seen),
            issues=tuple(issue for issue in wanted.issues if issue not in draft.evidence_seen),
        )

    def seen(self, draft: Draft, name: str, page: int) -> Draft:
        """The draft after that page was on screen with that issue, or row, chosen."""
        draft = draft.seen_page(page)
        issue = self._by_id.get(name)
        if issue is None or self._place_of_issue(issue).page != page:
            return draft
        return draft.seen_evidence(name)

    # What is decided

    def is_changed(self, draft: Draft) -> bool:
        """Whether the template differs from the agent's."""
        return draft.template is not None

    def changes(self, draft: Draft) -> tuple[str, ...]:
        """What differs from the agent's template, one sentence each."""
        return tuple(changes(self.agents, self.template(draft)))

    def agrees(self, draft: Draft) -> bool:
        """Whether the template is the agent's."""
        return not self.is_changed(draft)

    def unmet(self, draft: Draft) -> str:
        """What is wrong with the sums, in a sentence; empty where they are met."""
        return unmet(self.reading(draft).reconciliation)

    def why_not_approve(self, draft: Draft) -> str | None:
        """Why the template, changed or not, may not be approved now, in words for a person; None where it may."""
        if sentence := self.refusal():
            return sentence
        if not self.reading(draft).statement.transactions:
            return "The template reads no transaction: correct it, or reject it."
        missing = self.not_yet_seen(draft)
        parts = [*self._issue_words(missing.issues), *([words_of_pages(missing.pages)] if missing.pages else [])]
        if parts:
            return f"{' and '.join(parts)} not yet seen"
        if (wrong := self.unmet(draft)) and not draft.unmet_sums:
            return f"{wrong[:1].upper()}{wrong[1:]}: say why it may be approved, or correct it."
        return None

    def why_not_validate(self, draft: Draft) -> str | None:
        """Why one press may not approve the template as it was; None where it may."""
        return self.why_not_approve(draft) or (self._changed_words if self.is_changed(draft) else None)

    def said(self, draft: Draft, *, validate: bool, undeterminable: str | None) -> Submission:
        """What pressing the button says. ReviewRefused where it cannot be said with this draft."""
        is_validation = self._is_validation(draft, validate=validate, undeterminable=undeterminable)
        is_approval = undeterminable is None
        return Submission(
            agrees=is_validation or None,
            corrected_template=self.template(draft) if is_approval and not is_validation else None,
            unmet_sums=draft.unmet_sums if is_approval and self.unmet(draft) else "",
            correction_notes=notes_of(draft),
            issue_verdicts=verdicts_of(draft),
            undeterminable=undeterminable,
            seconds_active=draft.seconds_active,
            pages_seen=draft.pages_seen,
            evidence_seen=draft.evidence_seen,
        )

    _changed_words = "You have changed the template: approve it with your changes."

    @cached_property
    def _why_it_cannot_stand(self) -> str | None:
        return None

    def _hindrance(self, draft: Draft) -> tuple[str, str] | None:
        if not self.is_changed(draft):
            return "nothing was changed", "Change the template, or approve it as it is."
        why = self.why_not_approve(draft)
        return (why.rstrip("."), "Look at what is missing first.") if why else None

    def _must_see(self, draft: Draft) -> MustSee:
        grave = (one.issue.issue_id for one in self.shown if Rank[one.issue.severity] >= Rank.high)
        return MustSee(pages=self.pages_read(draft), issues=tuple(grave))

    def _place_of_issue(self, issue: Issue) -> FieldPlace:
        """Its page; what stands outside of the regions there is outlined where it is about where they end."""
        pages = self.pages_read(self.draft)
        page = min(max(issue.page or (pages[0] if pages else 1), 1), self.packet.total_pages)
        outside: Sequence[LeftOver] = ()
        if issue.code == "TEMPLATE-BBOX-ACCURACY":
            outside = [one for one in self._first_reading.statement.outside if one.page == page]
        return FieldPlace(page, _on(page, [one.box for one in outside]), "near")

    def _place_of_sum(self, reading: Reading, at: int) -> FieldPlace:
        check = reading.reconciliation.checks[at]
        page = check.page or 1
        boxes = [one.box for one in reading.statement.sums if (one.label, one.page) == (check.label, page)]
        return FieldPlace(page, _on(page, boxes), "found")

    @cached_property
    def _first_reading(self) -> Reading:
        return Reading.of(self.agents, self.bundle)

    @cached_property
    def _readings(self) -> dict[StatementTemplate, Reading]:
        return {self.agents: self._first_reading}

    @cached_property
    def _by_id(self) -> dict[str, Issue]:
        return {issue.issue_id: issue for issue in self.packet.open_issues}


def _on(page: int, boxes: Sequence[Box]) -> tuple[PageBox, ...]:
    return tuple((page, *box) for box in boxes)
