"""A statement template beside the page: who finds fault with it, what it reads, and whether that meets the sums."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from evalkit.review.draft import Draft
from evalkit.review.template_case import TemplateReview
from evalkit.review.templates import CHOICES, COLUMN_WORDS, column_edges, place_of, region_words
from evalkit.statements.apply import LeftOver, Transaction
from evalkit.statements.reading import Reading
from evalkit.statements.reconcile import Check, CheckName
from evalkit.statements.record import ToldIssue
from evalkit.statements.report import Role
from widgets.assets import css, esm
from widgets.case_panel import earlier, headline, issue_counts, told

#: What a role is called on a person's screen.
ROLES: dict[Role, str] = {
    "layout_geometry": "layout reviewer",
    "semantic_financial": "finance reviewer",
    "arbitrator": "arbitrator",
}
#: What a sum is called where the statement prints no words beside it.
CHECKS: dict[CheckName, str] = {
    "closing_balance": "closing balance",
    "running_balance": "balances beside the rows",
    "carried_balance": "balance carried forward",
    "deposits": "deposits",
    "withdrawals": "withdrawals",
    "section_total": "total of the section",
    "repeated_rows": "repeated rows",
}
_LEFT_AT_MOST = 200
"""So many left-over lines are listed."""


class TemplatePanel(anywidget.AnyWidget):
    """Shows one case about a template; says what was pressed (``select``, ``column``, ``choice``, ``verdict``)."""

    _esm = esm("template_panel")
    _css = css("template_panel")

    case = traitlets.Dict().tag(sync=True)
    """``described_template(case)``."""
    selected = traitlets.Unicode().tag(sync=True)
    """What is open: an issue's id, ``row.1``, ``left.1``, ``outside.1`` or ``sum.1``; empty for none."""
    place = traitlets.Unicode().tag(sync=True)
    """Where it stands, in a sentence."""
    page = traitlets.Int(0).tag(sync=True)
    """The page on screen, whose rows are listed."""
    sums = traitlets.Dict().tag(sync=True)
    """``sums_of(reading)``, and ``reason``: why they may be unmet, in the expert's words."""
    rows = traitlets.List(trait=traitlets.Dict()).tag(sync=True)
    """``{name, date, description, amount, balance, account}`` of the page on screen, in order."""
    counted = traitlets.Unicode().tag(sync=True)
    """How many rows are read, in words."""
    has_box = traitlets.Bool(default_value=True).tag(sync=True)
    """Whether the template reads anything of the page on screen."""
    left = traitlets.List(trait=traitlets.Dict()).tag(sync=True)
    """``{name, page, text, reason}`` of what no transaction took, on all pages."""
    template = traitlets.Dict().tag(sync=True)
    """``choices_of(case, draft)``."""
    seen = traitlets.List(trait=traitlets.Unicode()).tag(sync=True)
    """Issues that were on screen."""
    wanted = traitlets.List(trait=traitlets.Unicode()).tag(sync=True)
    """Issues that must be looked at before the template may be approved, and were not yet."""
    verdicts = traitlets.Dict().tag(sync=True)
    """issue_id → ``{verdict}``."""
    notes = traitlets.Dict().tag(sync=True)
    """issue_id → the expert's note."""
    is_locked = traitlets.Bool(default_value=False).tag(sync=True)
    """It can only be read."""
    answered = traitlets.Int(0).tag(sync=True)
    """The number of the last press (``nth``) whose answer is on screen."""


def described_template(case: TemplateReview) -> dict[str, Any]:
    """A case about a template in the words of the screen; what changes while it is open is told apart."""
    packet, escalation = case.packet, case.told.escalation
    identity = case.agents.identity
    name = " · ".join(filter(None, [identity.bank, identity.statement, f"version {case.agents.version}"]))
    more = len(case.told.issues) - len(case.shown)
    return {
        "headline": headline(packet),
        "subline": f"{name} · {issue_counts(packet)}",
        "told": told(case),
        "recommendation": escalation.recommendation,
        "refusal": case.refusal() or "",
        "issues": [_issue(one) for one in case.shown],
        "more": f"{more} more of the same kinds are in the packet" if more else "",
        "opinions": _opinions(case),
        "history": [
            f"Attempt {one.attempt}: {one.issues} issue{'s' * (one.issues != 1)}"
            + (f", score {one.score:+.2f}" if one.attempt > 1 else "")
            for one in escalation.convergence_history
        ],
        "persistent": [
            {
                "issue_id": one.issue_id,
                "words": f"{one.issue_id}, in attempts {', '.join(map(str, one.reported_in_attempts))}",
                "fixes": list(one.suggested_fixes_tried),
            }
            for one in escalation.persistent_issues
        ],
        "reports": [
            f"The {ROLES[one.reviewer_role]}{f' ({one.reviewer_model})' if one.reviewer_model else ''} "
            f"{'passes' if one.is_passed else 'rejects'} it"
            for one in escalation.all_reviewer_reports[-2:]
        ],
        "arbitration": [one.recommendation for one in escalation.arbitration_reports if one.recommendation],
        "earlier": earlier(case),
    }


def sums_of(reading: Reading) -> dict[str, Any]:
    """What the statement prints beside what the rows make; what is not met first, in sight on a small screen."""
    checks = reading.reconciliation.checks
    met = sum(check.is_met for check in checks)
    return {
        "is_met": reading.reconciliation.is_met,
        "words": f"{met} of {len(checks)} met" if checks else "the statement prints none",
        "checks": sorted(
            (_check(number, check) for number, check in enumerate(checks, 1)), key=lambda one: one["is_met"]
        ),
    }


def rows_of(reading: Reading, page: int) -> list[dict[str, Any]]:
    """The transactions that are read from the page."""
    return [_row(at, row) for at, row in enumerate(reading.statement.transactions, 1) if row.page == page]


def left_of(reading: Reading) -> list[dict[str, Any]]:
    """What no transaction took: what looks like one outside of the boxes first, then within them."""
    statement = reading.statement
    outside = [_left("outside", at, one) for at, one in enumerate(statement.outside, 1)]
    within = [_left("left", at, one) for at, one in enumerate(statement.left_over, 1)]
    return [*outside, *within][:_LEFT_AT_MOST]


def counted(reading: Reading, page: int) -> str:
    """How many rows are read, in words."""
    rows = reading.statement.transactions
    here = sum(row.page == page for row in rows)
    return f"{here} on this page, {len(rows)} in all"


def choices_of(case: TemplateReview, draft: Draft) -> dict[str, Any]:
    """What of the template can be chosen, and what is."""
    template = case.template(draft)
    agents = case.agents
    return {
        "columns": [
            {
                "title": one.title or f"column {at + 1}",
                "name": one.name,
                "is_yours": at >= len(agents.columns) or one.name != agents.columns[at].name,
            }
            for at, one in enumerate(template.columns)
        ],
        "names": [[name, words] for name, words in COLUMN_WORDS.items()],
        "choices": [
            {
                "what": what,
                "question": choice.question,
                "value": choice.read(template),
                "options": [list(one) for one in choice.options(template).items()],
                "is_yours": choice.read(template) != choice.read(agents),
            }
            for what, choice in CHOICES.items()
        ],
    }


def frames_of(case: TemplateReview, draft: Draft, page: int, *, is_locked: bool) -> dict[str, Any]:
    """What the template reads on a page, for ``PagePane.frames``: regions, columns, edges, and a tick for each row.

    Edges have a ``name``, an axis that they are moved along, and span ``from`` … ``to``, which are other edges or places.
    """
    template, reading = case.template(draft), case.reading(draft)
    on_page = template.regions_on(page, case.packet.total_pages)
    if not on_page:
        return {}
    regions = [{"name": f"region.{at}", "label": region_words(template, at)} for at in on_page]
    names = dict(column_edges(template, case.agents))
    top = min((template.regions[at].box[1], f"region.{at}.top") for at in on_page)[1]
    bottom = max((template.regions[at].box[3], f"region.{at}.bottom") for at in on_page)[1]
    columns = []
    for at, column in enumerate(template.columns):
        left, right = (_shared(template, names, f"column.{at}.{side}") for side in ("left", "right"))
        columns.append({"label": COLUMN_WORDS[column.name].split(" (")[0], "left": left, "right": right})
    edges = [
        {
            "name": f"region.{at}.{side}",
            "part": "region",
            "label": f"{side} edge of {region_words(template, at)}",
            "axis": "x" if side in ("left", "right") else "y",
            "at": place_of(template, f"region.{at}.{side}"),
            "from": {"name": f"region.{at}.{'top' if side in ('left', 'right') else 'left'}", "at": 0},
            "to": {"name": f"region.{at}.{'bottom' if side in ('left', 'right') else 'right'}", "at": 1},
        }
        for at in on_page
        for side in ("top", "bottom", "left", "right")
    ] + [
        {
            "name": name,
            "part": "column",
            "label": words,
            "axis": "x",
            "at": place_of(template, name),
            "from": {"name": top, "at": 0},
            "to": {"name": bottom, "at": 1},
        }
        for name, words in names.items()
    ]
    statement = reading.statement
    ticks = [
        {"y0": row.boxes[0][1], "y1": row.boxes[0][3], "is_read": True}
        for row in statement.transactions
        if row.page == page
    ] + [
        {"y0": one.box[1], "y1": one.box[3], "is_read": False}
        for one in (*statement.left_over, *statement.outside)
        if one.page == page
    ]
    return {
        "page": page, "is_locked": is_locked, "regions": regions, "columns": columns, "edges": edges, "ticks": ticks,
    }  # fmt: skip


def where(case: TemplateReview, name: str, draft: Draft) -> str:
    """Where what is chosen stands, in a sentence: what is lit, or that nothing is."""
    place = case.place(name, draft)
    if not place.boxes:
        return f"It is about page {place.page}; nothing is lit."
    if place.style == "near":
        return f"Outlined on page {place.page}."
    return f"Lit on page {place.page}."


def ribbon(case: TemplateReview, draft: Draft) -> list[dict[str, Any]]:
    """All pages as runs, by the regions that read them."""
    total, template = case.packet.total_pages, case.template(draft)
    runs: list[dict[str, Any]] = []
    for page in range(1, total + 1):
        on_page = template.regions_on(page, total)
        words = region_words(template, on_page[0]).removeprefix("transactions on ") if on_page else "no box"
        kind = words.partition(",")[0]
        if runs and runs[-1]["type"] == kind:
            runs[-1]["end"] = page
        else:
            runs.append({"start": page, "end": page, "type": kind, "flags": [], "note": "", "divider": "other boxes"})
    return runs


def _shared(template: Any, names: dict[str, str], name: str) -> str:
    """The edge itself, or the one of its neighbour that stands for both."""
    if name in names:
        return name
    place = place_of(template, name)
    return min(names, key=lambda other: abs(place_of(template, other) - place))


def _issue(one: ToldIssue) -> dict[str, Any]:
    issue, settled = one.issue, one.resolution
    arbitrator = ""
    if settled is not None:
        words = "nobody" if settled.winning_reviewer == "neither" else f"the {ROLES[settled.winning_reviewer]}"
        arbitrator = f"Arbitrator: sides with {words}, {settled.final_severity}, {settled.confidence:.0%} sure"
        arbitrator += f": {settled.reasoning}" if settled.reasoning else "."
    evidence = issue.evidence
    facts = (("expected", evidence.expected), ("actual", evidence.actual), ("part of the template", evidence.location))
    return {
        "issue_id": issue.issue_id,
        "severity": issue.severity,
        "by": " and ".join(ROLES[role] for role in one.reported_by),
        "where": " · ".join(
            filter(
                None,
                [issue.category.replace("_", " ").replace("bbox", "box"), f"page {issue.page}" if issue.page else ""],
            )
        ),
        "message": issue.message,
        "fix": issue.suggested_fix,
        "evidence": "; ".join(f"{label}: {text}" for label, text in facts if text),
        "arbitrator": arbitrator,
    }


def _opinions(case: TemplateReview) -> list[dict[str, Any]]:
    """The answers between which an adjudication decides."""
    return [
        {
            "name": each.name,
            "overall": "rejected"
            if each.outcome == "undeterminable"
            else ""
            if each.draft.template
            else "approved as it was",
            "can_take": each.outcome != "undeterminable" and not case.is_for_reading,
            "changes": list(case.changes(each.draft)),
            "notes": each.notes,
        }
        for each in case.opinions
    ]


def _check(number: int, check: Check) -> dict[str, Any]:
    return {
        "name": f"sum.{number}",
        "label": check.label or CHECKS[check.name],
        "account": check.account,
        "expected": f"{check.expected:,.2f}",
        "found": f"{check.found:,.2f}",
        "difference": f"{check.difference:+,.2f}",
        "is_met": check.is_met,
        "message": check.message,
    }


def _row(at: int, row: Transaction) -> dict[str, Any]:
    return {
        "name": f"row.{at}",
        "date": row.date,
        "description": row.description,
        "amount": f"{row.amount:,.2f}",
        "balance": "" if row.balance is None else f"{row.balance:,.2f}",
        "account": row.account,
    }


def _left(what: str, at: int, one: LeftOver) -> dict[str, Any]:
    reason = "it stands outside of every box" if what == "outside" else one.reason
    return {"name": f"{what}.{at}", "page": one.page, "text": one.text, "reason": reason}
