"""Why a person is asked: the arbiter's sentence, and each issue with what the document says."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from evalkit.classification.schema import PresenceLevel
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
    """issue_id → ``{verdict, note}``."""


def described(case: Case) -> dict[str, Any]:
    """A case in the words of the screen."""
    packet = case.packet
    return {
        "headline": headline(packet),
        "subline": subline(packet),
        "refusal": case.refusal() or "",
        "repairs": [
            {"description": one.description, "before": _value(one.before), "after": _value(one.after)}
            for one in packet.proposed_repairs
        ],
        "issues": [_issue(issue) for issue in packet.issues],
        "claims": _claims(packet),
        "earlier": [
            {
                "reviewer": one.reviewer,
                "when": one.submitted_at[:16].replace("T", " "),
                "outcome": one.outcome,
                "notes": one.correction_notes,
            }
            for one in case.reviews
        ],
    }


def headline(packet: SMEPacket) -> str:
    """Why a person is asked, in the arbiter's words."""
    why = {"escalated": "Escalated", "audit": "Audit of an accepted case", "sample": "Drawn for review"}
    return f"{why.get(packet.review_reason, 'Asked for')}: {packet.decision_reason}"


def subline(packet: SMEPacket) -> str:
    """How much there is, in one line."""
    names = {"BLOCKER": "blocking issue", "MAJOR": "major issue", "MINOR": "minor remark"}
    counted = [(sum(one.severity is kind for one in packet.open_issues), names[kind]) for kind in IssueSeverity]
    parts = [f"{count} {name}{'s' * (count > 1)}" for count, name in counted if count]
    answer = packet.classification
    said = (answer.dominant_type_overall or "cannot tell") if answer else "no usable answer"
    return f"{', '.join(parts) or 'no issues'} · the agent says: {said}"


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
        "verdict_words": _verdict(issue),
        "status": issue.status,
    }


def _verdict(issue: Issue) -> str:
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
