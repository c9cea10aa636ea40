"""Why a person is asked: the arbiter's sentence, and each issue with what the document says."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from evalkit.classification.schema import DocumentType, PresenceLevel, type_definitions
from evalkit.classification.v4_evidence_quality import band, quality_score
from evalkit.issue import Issue, IssueSeverity, PageBox, QuoteVerdict
from evalkit.review import IssueContext, SMEPacket
from evalkit.review.context import Paragraph
from evalkit.review.desk import Case
from widgets.assets import css, esm

GROUP = {"IG-1": "structure", "IG-2": "consistency", "IG-3": "evidence", "IG-4": "domain trap"}
WORDS = {
    QuoteVerdict.VERBATIM: "Found, word for word",
    QuoteVerdict.NOISY: "Found; only spacing, case or signs differ",
    QuoteVerdict.WRONG_PAGE: "Not on page {page}, but on page {found}",
    QuoteVerdict.ALTERED: "Altered; the passage is outlined on page {found}. {difference}",
    QuoteVerdict.UNCERTAIN: "Cannot tell; the nearest passage is outlined on page {found}. {difference}",
    QuoteVerdict.ABSENT: "Not on page {page}, nor on any other",
}
NOT_READ = "Page {page} could not be read as text: look at the picture"


#: What a draft's flags are called.
FLAG_WORDS = {"other_patient": "other patient", "duplicate": "duplicate", "out_of_order": "out of order"}


def _types() -> list[dict[str, Any]]:
    names = ("definition", "includes", "excludes")
    return [
        {"type": kind.value, **{name: type_definitions()[kind.value][name] for name in names}} for kind in DocumentType
    ]


class CasePanel(anywidget.AnyWidget):
    """Shows one case; says what was chosen (custom messages ``select``, ``verdict``, ``evidence``)."""

    _esm = esm("case_panel")
    _css = css("case_panel")

    case = traitlets.Dict().tag(sync=True)
    """``described(case)``."""
    selected = traitlets.Unicode().tag(sync=True)
    """The issue that is open; empty for none."""
    context = traitlets.Dict().tag(sync=True)
    """``surroundings(context)`` of the selected issue; empty without one."""
    seen = traitlets.List(trait=traitlets.Unicode()).tag(sync=True)
    """Issues whose place was on screen."""
    verdicts = traitlets.Dict().tag(sync=True)
    """issue_id → ``{verdict}``."""
    answered = traitlets.Int(0).tag(sync=True)
    """The number of the last press (``nth``) whose answer is on screen."""
    notes = traitlets.Dict().tag(sync=True)
    """issue_id → the expert's note."""
    is_repair_applied = traitlets.Bool(default_value=False).tag(sync=True)
    """Whether the expert has accepted what validating will repair."""
    is_locked = traitlets.Bool(default_value=False).tag(sync=True)
    """Whether nothing can be said of the case."""
    types = traitlets.List(trait=traitlets.Dict(), default_value=_types()).tag(sync=True)
    """What the five types mean: ``{type, definition, includes, excludes}``."""


def described(case: Case) -> dict[str, Any]:
    """A case in the words of the screen; of a blind one nothing that the agent or a check has said."""
    packet = case.packet
    issues = [] if case.is_blind else packet.issues
    return {
        "headline": blind_headline(packet) if case.is_blind else headline(packet),
        "subline": "What the agent said is hidden until you have given your answer."
        if case.is_blind
        else subline(packet),
        "is_blind": case.is_blind,
        "told": told(case),
        "opinions": _opinions(case),
        "refusal": "" if case.is_blind else case.refusal() or "",
        "repairs": []
        if case.is_blind
        else [
            {"description": one.description, "before": _value(one.before), "after": _value(one.after)}
            for one in packet.proposed_repairs
        ],
        "issues": [_issue(issue) for issue in issues],
        "claims": [] if case.is_blind else _claims(packet),
        "earlier": earlier(case),
    }


def earlier(case: Case) -> list[dict[str, Any]]:
    """What was said about the case before."""
    return [
        {
            # Whoever decides between two answers, or gives a second one, should not know whose the others are.
            "reviewer": "" if case.opinions or case.is_blind else one.reviewer,
            "when": one.submitted_at[:16].replace("T", " "),
            "outcome": one.outcome,
            "notes": one.correction_notes,
        }
        for one in case.reviews
    ]


def told(case: Case) -> list[str]:
    """What colleagues left for whoever opens the case, a sentence each."""
    sentences = [case.planted] if case.planted else []
    if case.request:
        sentences.append(f"A colleague asks: {case.request}")
    if case.deferral:
        sentences.append(
            f"Deferred by {case.deferral.reviewer} on {case.deferral.deferred_at[:10]}: {case.deferral.reason}"
        )
    return sentences


def _opinions(case: Case) -> list[dict[str, Any]]:
    """The answers between which an adjudication decides, side by side; what only one of them says is marked."""
    drawn = [
        {(one.start_page, one.end_page, one.dominant_type) for one in each.draft.segments} for each in case.opinions
    ]
    common = set.intersection(*drawn) if drawn else set()
    return [
        {
            "name": each.name,
            "overall": "undeterminable"
            if each.outcome == "undeterminable"
            else each.draft.dominant_type or "cannot tell",
            "can_take": each.outcome != "undeterminable" and not case.is_for_reading,
            "notes": each.notes,
            "segments": [
                {
                    "start": one.start_page,
                    "end": one.end_page,
                    "type": one.dominant_type,
                    "differs": (one.start_page, one.end_page, one.dominant_type) not in common,
                    "flags": [FLAG_WORDS[flag.flag] for flag in each.draft.flags if flag.start_page == one.start_page],
                }
                for one in each.draft.segments
            ],
        }
        for each in case.opinions
    ]


def headline(packet: SMEPacket) -> str:
    """Why a person is asked, in the arbiter's words."""
    why = {"escalated": "Escalated", "audit": "Audit of an accepted case", "sample": "Drawn for review"}
    return f"{why.get(packet.review_reason, 'Asked for')}: {packet.decision_reason}"


def blind_headline(packet: SMEPacket) -> str:
    """Why a person is asked who must not know what the agent says, or whether a check complained."""
    return "Audit: which documents are these?" if packet.review_reason == "audit" else "A second opinion is asked for"


def subline(packet: SMEPacket) -> str:
    """How much there is, in one line."""
    answer = packet.classification
    said = (answer.dominant_type_overall or "cannot tell") if answer else "no usable answer"
    score = quality_score(issue for issue in packet.open_issues if issue.agent == "V4")
    quality = f" · evidence quality {score:.2f}, {band(score)}" if answer else ""
    return f"{issue_counts(packet)} · the agent says: {said}{quality}"


def issue_counts(packet: SMEPacket) -> str:
    """How many open issues there are of each severity."""
    names = {"BLOCKER": "blocking issue", "MAJOR": "major issue", "MINOR": "minor remark"}
    counted = [(sum(one.severity is kind for one in packet.open_issues), names[kind]) for kind in IssueSeverity]
    return ", ".join(f"{count} {name}{'s' * (count > 1)}" for count, name in counted if count) or "no issues"


def _issue(issue: Issue) -> dict[str, Any]:
    places = [f"segment {issue.segment_index}" if issue.segment_index is not None else None]
    places.append(f"page {issue.page}" if issue.page else None)
    return {
        "issue_id": issue.issue_id,
        "severity": issue.severity.value,
        "group": GROUP.get(issue.ig_id, issue.ig_id),
        "where": " · ".join(place for place in places if place),
        "message": issue.message,
        "fix": issue.suggested_fix,
        "quote": issue.quote or "",
        "verdict": issue.verdict.value if issue.verdict else "",
        "verdict_words": verdict_words(issue),
        "status": issue.status,
    }


def verdict_words(issue: Issue) -> str:
    """What comparing its quote with the document found, in a sentence; empty without a quote."""
    if issue.verdict is None:
        return ""
    words = WORDS[issue.verdict]
    if issue.verdict is QuoteVerdict.UNCERTAIN and issue.found_page is None:
        words = NOT_READ
    difference = issue.difference or ""
    return words.format(page=issue.page, found=issue.found_page, difference=difference[:1].upper() + difference[1:])


def _claims(packet: SMEPacket) -> list[dict[str, Any]]:
    return [
        {
            "segment": segment.segment_index,
            "start": segment.start_page,
            "end": segment.end_page,
            "type": segment.dominant_type,
            "reasoning": segment.reasoning,
            "types": [
                {
                    "type": one.document_type,
                    "presence": one.presence_level,
                    "confidence": f"{one.confidence:.2f}",
                    "share": f"{one.segment_share:.2f}",
                    "evidence": [{"page": quote.page, "snippet": quote.snippet} for quote in one.top_evidence],
                }
                for one in segment.segment_composition
                if one.presence_level is not PresenceLevel.NO_EVIDENCE
            ],
        }
        for segment in (packet.classification.segments if packet.classification else ())
    ]


def surroundings(context: IssueContext) -> dict[str, Any]:
    """The context of an issue: two paragraphs before, the matched ones with the match marked, three after."""
    style = style_of(context.verdict)
    plain = [{"text": one.text} for one in context.paragraphs_before]
    matched = [{"text": one.text, "mark": _in_browser(one), "style": style} for one in context.paragraphs_matched]
    after = [{"text": one.text} for one in context.paragraphs_after]
    return {
        "issue_id": context.issue.issue_id,
        "note": context.note,
        "reasoning": context.reasoning,
        "paragraphs": [*plain, *matched, *after],
    }


def _in_browser(paragraph: Paragraph) -> tuple[int, ...]:
    """The mark in UTF-16 units, which is how a browser counts; empty without one."""
    return tuple(len(paragraph.text[:at].encode("utf-16-le")) // 2 for at in paragraph.mark or ())


def style_of(verdict: QuoteVerdict | None) -> str:
    """How a place is lit: filled only if it is the quote, wherever it stands; else outlined."""
    lit = (None, QuoteVerdict.VERBATIM, QuoteVerdict.NOISY, QuoteVerdict.WRONG_PAGE)
    return "found" if verdict in lit else "near"


def marks_of(boxes: tuple[PageBox, ...], style: str) -> list[dict[str, Any]]:
    """Boxes as the page pane takes them."""
    return [{"page": page, "x0": x0, "y0": y0, "x1": x1, "y1": y1, "style": style} for page, x0, y0, x1, y1 in boxes]


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
