"""Panel of a case about the fields of reports and forms: values, places, issues."""

import re
from dataclasses import asdict
from typing import Any

import traitlets

from evalkit.core.grouping import split_into_runs
from evalkit.core.wording import format_page_range
from evalkit.extraction.clinical.clinical_rules import get_base_field_name
from evalkit.extraction.extraction_schema import Extraction, FieldValue, IterationRecord
from evalkit.extraction.field_template import FieldNeed
from evalkit.issue import Issue
from evalkit.review import (
    Draft,
    FieldAnswer,
    FieldReviewCase,
    HighlightedPlace,
    describe_issue,
    format_field_value,
    get_issue_answers,
    get_template_field_or_plain_text,
    is_extraction_review_required,
    shows_own_words,
)
from evalkit.review.field_answers import (
    NAMED_ENTRY_FORMATS,
    STATUS_WORDS,
    find_extraction_template,
    is_repeated_field_entry,
)
from evalkit.review.kinds.extraction import ReviewTarget, explain_extraction_escalation
from widgets.case_panel import (
    describe_quote_verdict,
    format_headline,
    format_issue_counts,
    list_colleague_messages,
    list_earlier_reviews,
)
from widgets.screen_widget import CasePanelWidget

#: The words on the screen for the reason why the program stopped reading, by the beginning of the stored reason; any other
#: reason is shown unchanged.
_STOP_REASON_WORDS = {
    "Accepted by the grader": "the form as a whole passed its checks",
    "Quality threshold met": "the quality score reached the threshold",
    "Max": "it was read as often as allowed",
    "Improvement": "reading it again improved too little",
    "Timeout": "the time was up",
    "Wrong tax year": "reading it again would not change the year",
    "Blank form": "there is nothing to read",
}
_MAX_SHOWN_CHARACTERS = 240


class FieldPanel(CasePanelWidget, scripts=("field_panel",), styles=("field_panel",)):
    """Panel that shows one case about fields."""

    place = traitlets.Unicode(help="A sentence about the place of the selected target on the page.")
    values = traitlets.Dict(
        help="The current value of each field: key → ``{value, status, words, is_yours}``; for a deleted entry also ``is_removed``, for an added one the keys of an item of ``case.forms`` under ``item``."
    )
    wanted = traitlets.List(
        trait=traitlets.Unicode(), help="The targets that the expert must still look at before validating."
    )
    checked = traitlets.Dict(
        help="The check of the text that is being typed: ``{field, text, key, typed, value, problem, place}``, with ``is_asked`` if the expert must confirm the value, and ``is_kept`` if it was saved under ``key``."
    )


def render_field_case(case: FieldReviewCase) -> dict[str, Any]:
    """Build ``FieldPanel.case``: everything that stays the same while it is open."""
    packet = case.packet
    first_target_id = case.choose_first_target_id()
    asked_count = sum(map(is_extraction_review_required, packet.extractions))
    asked_words = f"{asked_count} of {len(packet.extractions)} reports and forms" if len(packet.extractions) > 1 else ""
    return {
        "headline": format_headline(packet, case.get_target(first_target_id).issues if first_target_id else ()),
        "subline": " · ".join(filter(None, [format_issue_counts(packet), asked_words])),
        "told": list_colleague_messages(case),
        "refusal": case.explain_permanent_validation_block() or "",
        "opinions": _render_field_opinions(case),
        "forms": [
            _render_form(case, form_index, extraction) for form_index, extraction in enumerate(packet.extractions)
        ],
        "earlier": list_earlier_reviews(case),
    }


def render_field_values(case: FieldReviewCase, draft: Draft) -> dict[str, dict[str, Any]]:
    """Build ``FieldPanel.values``: the draft's current value of each field."""
    added_targets = (case.get_target(key) for key in draft.fields if case.is_added_entry(key))
    return {
        target.target_id: _render_field_value(case.get_current_value(draft, target.target_id))
        | {"is_yours": target.target_id in draft.fields}
        | ({"item": _render_target(case, target)} if case.is_added_entry(target.target_id) else {})
        for target in (*case.targets, *added_targets)
        if target.field_name
    }


def describe_field_target_place(case: FieldReviewCase, target_id: str, draft: Draft) -> str:
    """Describe which place of a field or issue is highlighted, or why none."""
    place, target = case.locate_target(target_id), case.get_target(target_id)
    extraction = case.packet.extractions[target.extraction_index]
    form_pages = format_page_range(extraction.start_page, extraction.end_page)
    answer = draft.fields.get(target_id)
    if answer and answer.page:
        place = HighlightedPlace(answer.page, answer.boxes, "found")
    if place.boxes and place.style == "found":
        return f"Highlighted on page {place.page}{': the value that the program read' if answer and not answer.page else ''}."
    if place.boxes:
        return f"The most similar passage is outlined on page {place.page}; the value itself was not found."
    if not target.field_name:
        return f"This is about all of {form_pages}; nothing is highlighted."
    current_value = case.get_current_value(draft, target_id)
    if target_id in draft.fields and current_value.value:
        return "The program looks for your value on the page when you submit; nothing is highlighted."
    if current_value.value:
        return f"The program read this value on page {place.page}, but its position is unknown; nothing is highlighted."
    return f"The program found no value on {form_pages}; nothing is highlighted."


def build_form_ribbon(case: FieldReviewCase) -> list[dict[str, Any]]:
    """Build ``PagePane.segments`` by form; a shared page counts for the first form."""
    form_by_page = dict.fromkeys(range(1, case.packet.total_pages + 1), (-1, "no form"))
    for form_index, extraction in reversed([*enumerate(case.packet.extractions)]):
        pages = form_by_page.keys() & range(extraction.start_page, extraction.end_page + 1)
        form_by_page |= dict.fromkeys(pages, (form_index, extraction.document_type))
    return [
        {"start": run[0], "end": run[-1], "type": form_by_page[run[0]][1], "flags": [], "note": ""}
        for run in split_into_runs(form_by_page, lambda run, page: form_by_page[page] == form_by_page[run[0]])
    ]


def _render_form(case: FieldReviewCase, form_index: int, extraction: Extraction) -> dict[str, Any]:
    template = find_extraction_template(extraction)
    return {
        "title": extraction.document_type,
        "about": " · ".join(
            filter(
                None,
                [
                    template.display_name if template else "",
                    format_page_range(extraction.start_page, extraction.end_page),
                    _format_points(extraction.score),
                ],
            )
        ),
        "decision": f"You are asked because {explain_extraction_escalation(extraction)}."
        if is_extraction_review_required(extraction)
        else "Accepted by the program.",
        "is_asked": is_extraction_review_required(extraction),
        "items": [_render_target(case, target) for target in case.targets if target.extraction_index == form_index],
        "history": [
            _render_attempt(extraction, record, is_last=record is extraction.history[-1])
            for record in extraction.history
        ],
        "stopped": f"Stopped: {format_stop_reason(extraction.stopped_reason)}.",
    }


def _render_target(case: FieldReviewCase, target: ReviewTarget) -> dict[str, Any]:
    extraction = case.packet.extractions[target.extraction_index]
    issues = [_render_field_issue(issue) for issue in target.issues]
    if not target.field_name:
        return {
            "name": target.target_id,
            "is_field": False,
            "label": issues[0]["message"],
            "issues": issues,
        }
    template_field, field_value = (
        get_template_field_or_plain_text(extraction, target.field_name),
        case.get_agent_value(target.target_id),
    )
    is_needed = template_field.need in (FieldNeed.REQUIRED, FieldNeed.IMPORTANT)
    return {
        "name": target.target_id,
        "is_field": True,
        "label": template_field.description,
        "location": template_field.location,
        "need": template_field.need.value if is_needed else "",
        "agent": _shorten_text(format_field_value(field_value)),
        "has_value": field_value.value is not None,
        "raw": _shorten_text(field_value.raw or "") if field_value.raw != field_value.value else "",
        "quote": _shorten_text(field_value.quote or "") if field_value.quote not in (field_value.raw, None) else "",
        "places": [
            {"value": place.value, "page": place.page, "quote": _shorten_text(place.quote)}
            for place in (() if case.is_added_entry(target.target_id) else case.list_places(target.target_id))
        ],
        "readings": list(field_value.candidates),
        "confidence": f"{field_value.confidence:.0%} sure" if field_value.is_found else "",
        "issues": issues,
        "group": f"{target.extraction_index + 1}.{get_base_field_name(target.field_name)}"
        if template_field.many
        else "",
        "group_label": template_field.short_label.partition(":")[0] if template_field.many else "",
        "entry_hint": "HER2: 3+" if template_field.format in NAMED_ENTRY_FORMATS else "",
        "is_entry": is_repeated_field_entry(extraction, target.field_name),
        "is_added": case.is_added_entry(target.target_id),
    }


def _render_field_issue(issue: Issue) -> dict[str, Any]:
    return {
        "issue_id": issue.issue_id,
        "severity": issue.severity.value,
        "message": describe_issue(issue),
        "answers": asdict(get_issue_answers(issue)),
        "detail": issue.message if shows_own_words(issue) and describe_issue(issue) != issue.message else "",
        "fix": issue.suggested_fix if shows_own_words(issue) else "",
        "verdict": issue.verdict.value if issue.verdict else "",
        "verdict_words": describe_quote_verdict(issue),
    }


def format_stop_reason(raw_stop_reason: str) -> str:
    """Format why the program stopped reading a form, for the screen."""
    return next(
        (words for reason_prefix, words in _STOP_REASON_WORDS.items() if raw_stop_reason.startswith(reason_prefix)),
        raw_stop_reason,
    )


def _render_attempt(extraction: Extraction, record: IterationRecord, *, is_last: bool) -> dict[str, Any]:
    template = find_extraction_template(record)
    score_words = _format_points(record.score)
    if record.improvement is not None:
        point_difference = f"{abs(record.improvement) * 100:.3g}"
        score_words += (
            f", {point_difference} {'more' if record.improvement > 0 else 'fewer'} than before"
            if float(point_difference)
            else ", as before"
        )
    sentence_by_issue_id = {issue.issue_id: describe_issue(issue) for issue in extraction.issues}
    return {
        "title": f"Reading {record.iteration}: as {template.display_name if template else record.template}; {score_words}",
        "found": [sentence_by_issue_id.get(reference, _strip_grader_tag(reference)) for reference in record.issues],
        "feedback": "" if is_last else record.feedback,
        "reasoning": record.reasoning,
    }


def _render_field_opinions(case: FieldReviewCase) -> list[dict[str, Any]]:
    answers_by_opinion = [
        {(field_key, answer) for field_key, answer in opinion.draft.fields.items()} for opinion in case.opinions
    ]
    common_answers = set.intersection(*answers_by_opinion) if answers_by_opinion else set()
    return [
        {
            "name": opinion.label,
            "overall": "nobody can tell"
            if opinion.outcome == "undeterminable"
            else ""
            if opinion.draft.fields
            else "as the program read it",
            "can_take": opinion.outcome != "undeterminable" and not case.is_locked,
            "notes": opinion.notes,
            "fields": [
                {
                    "label": case.get_field(field_key).description,
                    "value": _shorten_text(format_field_value(answer)),
                    "differs": (field_key, answer) not in common_answers,
                }
                for field_key, answer in opinion.draft.fields.items()
            ],
        }
        for opinion in case.opinions
    ]


def _render_field_value(field_value: FieldValue | FieldAnswer) -> dict[str, Any]:
    is_removed = isinstance(field_value, FieldAnswer) and bool(field_value.removed)
    return {
        "value": field_value.value or "",
        "status": field_value.status.value,
        "words": format_field_value(field_value) if is_removed else STATUS_WORDS[field_value.status],
    } | ({"is_removed": True} if is_removed else {})


def _format_points(score: float | None) -> str:
    return "could not be judged" if score is None else f"{score * 100:.3g} of 100 points"


def _shorten_text(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else text[: _MAX_SHOWN_CHARACTERS - 1].rstrip() + "…"


def _strip_grader_tag(message: str) -> str:
    """Remove the grader's tag, such as ``[ERROR:wrong_year:2020]``, from a message."""
    return re.sub(r"^\[[A-Z]+:[^\]]*\]\s*", "", message)
