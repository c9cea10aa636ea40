"""The fields of reports and forms beside their pages: what was read, where it stands, what is wrong with it."""

from __future__ import annotations

import re
from typing import Any

import anywidget
import traitlets

from evalkit.extraction.schema import Extraction, FieldStatus, FieldValue, IterationRecord
from evalkit.extraction.template import Need
from evalkit.issue import Issue
from evalkit.review.draft import Draft
from evalkit.review.field_case import FieldCase, Item
from evalkit.review.fields import STATUS_WORDS, FieldAnswer, field_of, form_template, label, shown
from evalkit.review.packet import is_for_a_person, why
from widgets.assets import css, esm
from widgets.case_panel import earlier, headline, issue_counts, told, verdict_words

#: What a grader writes before its sentence, for programs.
_TAGGED = re.compile(r"^\[[A-Z]+:[^\]]*\]\s*")
#: Why a loop ended, by how its own reason begins, for a clinician; any other reason is said as it is.
_STOPPED = {
    "Accepted by the grader": "the checks of the form as a whole were content",
    "Quality threshold met": "the points were enough",
    "Max": "no further attempt is made",
    "Improvement": "another attempt gained too little",
    "Timeout": "the time was up",
    "Wrong tax year": "another attempt would not change the year",
    "Blank form": "there is nothing to read",
}
_LONGEST = 240
"""Characters of a value or passage that are shown."""


class FieldPanel(anywidget.AnyWidget):
    """Shows one case about fields; says what was pressed (``select``, ``field_status``, ``field_check``, …)."""

    _esm = esm("field_panel")
    _css = css("field_panel")

    case = traitlets.Dict().tag(sync=True)
    """``described_fields(case)``."""
    selected = traitlets.Unicode().tag(sync=True)
    """The item that is open: a field's key or an issue's id; empty for none."""
    place = traitlets.Unicode().tag(sync=True)
    """Where the open item stands, in a sentence."""
    values = traitlets.Dict().tag(sync=True)
    """key → ``{value, status, words, is_yours}`` as it stands now."""
    seen = traitlets.List(trait=traitlets.Unicode()).tag(sync=True)
    """Items that were on screen with their place."""
    wanted = traitlets.List(trait=traitlets.Unicode()).tag(sync=True)
    """Items that must be seen before one press may validate, and were not yet."""
    verdicts = traitlets.Dict().tag(sync=True)
    """issue_id → ``{verdict}``."""
    notes = traitlets.Dict().tag(sync=True)
    """issue_id → the expert's note."""
    checked = traitlets.Dict().tag(sync=True)
    """``{field, text, value, problem, is_kept}``: what became of a value that is being typed."""
    is_locked = traitlets.Bool(default_value=False).tag(sync=True)
    """It can only be read."""
    answered = traitlets.Int(0).tag(sync=True)
    """The number of the last press (``nth``) whose answer is on screen."""


def described_fields(case: FieldCase) -> dict[str, Any]:
    """A case about fields in the words of the screen; what changes while it is open is told apart."""
    packet = case.packet
    asked = sum(map(is_for_a_person, packet.extractions))
    counted = f"{asked} of {len(packet.extractions)} reports and forms" if len(packet.extractions) > 1 else ""
    return {
        "headline": headline(packet),
        "subline": " · ".join(filter(None, [issue_counts(packet), counted])),
        "told": told(case),
        "refusal": case.refusal() or "",
        "opinions": _opinions(case),
        "forms": [_form(case, at, one) for at, one in enumerate(packet.extractions)],
        "earlier": earlier(case),
    }


def state(case: FieldCase, draft: Draft) -> dict[str, dict[str, Any]]:
    """``FieldPanel.values`` of a draft."""
    return {
        item.name: _value(case.answered(draft, item.name)) | {"is_yours": item.name in draft.fields}
        for item in case.items
        if item.field
    }


def where(case: FieldCase, name: str, draft: Draft) -> str:
    """Where an item stands, in a sentence: what is lit, or that nothing is."""
    place, item = case.place(name), case.item(name)
    if place.boxes:
        if place.style == "found":
            return f"Lit on page {place.page}{': what the agent read' if name in draft.fields else ''}."
        return f"The passage most like it is outlined on page {place.page}; the value itself stands nowhere."
    if not item.field:
        return f"It is about the whole of {_pages(case.packet.extractions[item.form])}; nothing is lit."
    said = case.answered(draft, name)
    if name in draft.fields and said.value:
        return "The place of your value is looked for when you submit; nothing is lit."
    if said.value:
        return f"The agent read it on page {place.page}, but not where; nothing is lit."
    return f"It was found nowhere on {_pages(case.packet.extractions[item.form])}; nothing is lit."


def ribbon(case: FieldCase) -> list[dict[str, Any]]:
    """All pages as runs, by the report or form that they belong to; of several on one page the first."""
    types: dict[int, tuple[int, str]] = {}
    for at, one in enumerate(case.packet.extractions):
        for page in range(one.start_page, min(one.end_page, case.packet.total_pages) + 1):
            types.setdefault(page, (at, one.document_type))
    runs: list[dict[str, Any]] = []
    last: tuple[int, str] | None = None
    for page in range(1, case.packet.total_pages + 1):
        own = types.get(page, (-1, "no form"))
        if runs and own == last:
            runs[-1]["end"] = page
        else:
            runs.append({"start": page, "end": page, "type": own[1], "flags": [], "note": ""})
        last = own
    return runs


def _form(case: FieldCase, at: int, one: Extraction) -> dict[str, Any]:
    template = form_template(one)
    return {
        "title": one.document_type,
        "about": " · ".join(filter(None, [template.display_name if template else "", _pages(one), _points(one.score)])),
        "decision": f"You are asked because {why(one)}." if is_for_a_person(one) else "Accepted by the programs.",
        "is_asked": is_for_a_person(one),
        "items": [_item(item, one) for item in case.items if item.form == at],
        "history": [_attempt(one, record, is_last=record is one.history[-1]) for record in one.history],
        "stopped": f"It ended there: {stopped(one.stopped_reason)}.",
    }


def _item(item: Item, one: Extraction) -> dict[str, Any]:
    issues = [_issue(issue) for issue in item.issues]
    if not item.field:
        return {
            "name": item.name,
            "is_field": False,
            "label": issues[0]["message"],
            "issues": issues,
            "is_minor": False,
        }
    field, value = field_of(one, item.field), one.fields[item.field]
    is_wanted = field.need in (Need.REQUIRED, Need.IMPORTANT)
    return {
        "name": item.name,
        "is_field": True,
        "label": label(one, item.field),
        "location": field.location,
        "need": field.need.value if is_wanted else "",
        "agent": _short(shown(value)),
        "has_value": value.value is not None,
        "raw": _short(value.raw or "") if value.raw != value.value else "",
        "quote": _short(value.quote or "") if value.quote not in (value.raw, None) else "",
        "confidence": f"{value.confidence:.0%} sure" if value.is_found else "",
        "issues": issues,
        # What an empty form has a dozen of: shown when it is asked for.
        "is_minor": value.status is FieldStatus.NOT_PRESENT and not issues and not is_wanted,
    }


def _issue(issue: Issue) -> dict[str, Any]:
    return {
        "issue_id": issue.issue_id,
        "severity": issue.severity.value,
        "message": plain(issue.message),
        "fix": issue.suggested_fix,
        "verdict": issue.verdict.value if issue.verdict else "",
        "verdict_words": verdict_words(issue),
    }


def stopped(reason: str) -> str:
    """Why the loop ended, behind "It ended there:"."""
    return next((words for start, words in _STOPPED.items() if reason.startswith(start)), reason)


def _attempt(one: Extraction, record: IterationRecord, *, is_last: bool) -> dict[str, Any]:
    known = form_template(record)
    score = _points(record.score)
    if record.improvement is not None:
        change = f"{abs(record.improvement) * 100:.3g}"
        score += (
            f", {change} {'more' if record.improvement > 0 else 'fewer'} than before"
            if float(change)
            else ", as before"
        )
    messages = {issue.issue_id: plain(issue.message) for issue in one.issues}
    return {
        "title": f"Attempt {record.iteration}: read as {known.display_name if known else record.template}; {score}",
        "found": [messages.get(name, plain(name)) for name in record.issues],
        "feedback": "" if is_last else record.feedback,
        "reasoning": record.reasoning,
    }


def _opinions(case: FieldCase) -> list[dict[str, Any]]:
    """The answers between which an adjudication decides; what only one of them says is marked."""
    said = [{(key, value) for key, value in each.draft.fields.items()} for each in case.opinions]
    common = set.intersection(*said) if said else set()
    return [
        {
            "name": each.name,
            "overall": "undeterminable"
            if each.outcome == "undeterminable"
            else ""
            if each.draft.fields
            else "as the agent said",
            "can_take": each.outcome != "undeterminable" and not case.is_for_reading,
            "notes": each.notes,
            "fields": [
                {"label": _label(case, key), "value": _short(shown(value)), "differs": (key, value) not in common}
                for key, value in each.draft.fields.items()
            ],
        }
        for each in case.opinions
    ]


def _label(case: FieldCase, key: str) -> str:
    item = case.item(key)
    return label(case.packet.extractions[item.form], item.field)


def _value(value: FieldValue | FieldAnswer) -> dict[str, Any]:
    return {"value": value.value or "", "status": value.status.value, "words": STATUS_WORDS[value.status]}


def plain(message: str) -> str:
    """An issue's sentence without what is meant for programs."""
    return _TAGGED.sub("", message)


def _points(score: float | None) -> str:
    return "could not be judged" if score is None else f"{score * 100:.3g} of 100 points"


def _pages(one: Extraction) -> str:
    return f"page {one.start_page}" if one.start_page == one.end_page else f"pages {one.start_page}–{one.end_page}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
