"""Panel of a classification case: headline, issues with text, program's claims."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import traitlets

from evalkit.classification.schema import ClassificationOutput, PresenceLevel, Segment
from evalkit.classification.v4_evidence_quality import score_evidence
from evalkit.core.wording import format_count, format_page_numbers
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, PageBox, QuoteVerdict
from evalkit.review import (
    IssueContext,
    Review,
    ReviewCase,
    SMEPacket,
    describe_issue,
    get_issue_answers,
    shows_own_words,
)
from evalkit.review.case import HighlightStyle, count_issues
from evalkit.review.issue_context import ContextParagraph
from evalkit.review.kinds.extraction import FOUND_VERDICTS
from widgets.boundary_strip import compare_patient_facts
from widgets.screen_widget import CasePanelWidget

QUOTE_VERDICT_SENTENCES = {
    QuoteVerdict.VERBATIM: "Found, word for word",
    QuoteVerdict.NOISY: "Found; only spacing, capital letters or typographic signs differ",
    QuoteVerdict.WRONG_PAGE: "Not on page {page}, but on page {found}",
    QuoteVerdict.ALTERED: "Altered; the original passage is outlined on page {found}. {difference}",
    QuoteVerdict.UNCERTAIN: "Cannot tell; the most similar passage is outlined on page {found}. {difference}",
    QuoteVerdict.ABSENT: "Not on page {page}, nor on any other",
}
UNREADABLE_PAGE_SENTENCE = "Page {page} could not be read as text: look at the picture of the page"


#: The words on the screen for the flags of a segment.
FLAG_WORDS = {"other_patient": "other patient", "duplicate": "duplicate", "out_of_order": "out of order"}
#: The words on the screen for each presence level of a type in a document.
PRESENCE_WORDS = {
    PresenceLevel.PRIMARY: "main content",
    PresenceLevel.EMBEDDED_RAW: "contained",
    PresenceLevel.MENTION_ONLY: "only mentioned",
    PresenceLevel.NO_EVIDENCE: "no evidence",
}


class CasePanel(CasePanelWidget, scripts=("case_panel",), styles=("case_panel",)):
    """Panel that shows one classification case."""

    context = traitlets.Dict(
        help="The text around the selected issue, see ``render_issue_context``; empty if no issue is selected."
    )
    is_repair_applied = traitlets.Bool(
        default_value=False, help="True if the expert has accepted the automatic repairs that validating applies."
    )
    is_short = traitlets.Bool(
        default_value=False,
        help="True if only the questions ``asked`` of the case are shown, and the rest as accepted.",
    )


def render_case(case: ReviewCase) -> dict[str, Any]:
    """Build ``CasePanel.case``; in a blind case without answer and issues."""
    packet = case.packet
    issues = [] if case.is_blind else packet.issues
    return {
        # The first issue's card asks its question in the place of a headline.
        "headline": f"{'Audit' if packet.review_reason == 'audit' else 'Second opinion'}: {_ask_blindly(packet)}"
        if case.is_blind
        else ""
        if issues
        else format_headline(packet, ()),
        "subline": "The program's answer is hidden until you have given yours."
        if case.is_blind
        else format_case_summary_line(packet),
        "is_blind": case.is_blind,
        "told": list_colleague_messages(case),
        "opinions": _render_opinions(case),
        "refusal": "" if case.is_blind else case.explain_permanent_validation_block() or "",
        "repairs": []
        if case.is_blind
        else [
            {
                "description": repair.description,
                "before": _format_repair_value(repair.before),
                "after": _format_repair_value(repair.after),
            }
            for repair in packet.proposed_repairs
        ],
        "issues": [_render_issue(issue) for issue in issues],
        "claims": [] if case.is_blind else _render_program_claims(packet),
        **_render_short_form(packet),
        "earlier": list_earlier_reviews(case),
    }


def _render_short_form(packet: SMEPacket) -> dict[str, Any]:
    """Build what a case shows that asks only about its doubts.

    These are its questions, and the rest.
    """
    asked_pages = {page for asked in packet.asked_parts for page in asked.pages}
    question_ids = list(dict.fromkeys(name for asked in packet.asked_parts for name in asked.question_ids))
    certainty_by_part = packet.review_plan.certainty_by_part if packet.review_plan and asked_pages else {}
    percents = {part: round(100 * certainty) for part, certainty in certainty_by_part.items()}
    boundaries = sorted(
        int(asked.part.partition(":")[2]) for asked in packet.asked_parts if asked.part.startswith("boundary:")
    )
    return {
        "asked": question_ids,
        "asked_line": f"{format_count(len(question_ids), 'question')} · {len(asked_pages)} of {packet.total_pages} pages to look at",
        "rest_range": " – ".join(f"{percent}" for percent in sorted({min(percents.values()), max(percents.values())}))
        if percents
        else "",
        "rest": [
            {
                "start": segment.start_page,
                "end": segment.end_page,
                "type": segment.dominant_type,
                "percent": percents[f"segment:{segment.segment_index}"],
                "doubt": _describe_doubtful_edges(segment, boundaries),
            }
            for segment in packet.segments
            if f"segment:{segment.segment_index}" in percents
        ],
    }


def _describe_doubtful_edges(segment: Segment, asked_boundaries: Sequence[int]) -> str:
    """Say which asked boundaries may change a document that is listed as sure."""
    pages = [page for page in asked_boundaries if segment.start_page <= page <= segment.end_page + 1]
    return f", apart from the question about {format_page_numbers(pages)}" if pages else ""


def render_closing(case: ReviewCase, outcome_words: Mapping[str, str]) -> dict[str, Any]:
    """Build ``closing`` of a closed case: who decided it, when and how."""
    if (review := case.closing_review) is None or not case.is_completed:
        return {}
    outcome = outcome_words.get(review.outcome, review.outcome).capitalize()
    is_decided = review.outcome != "undeterminable"
    closing = {
        "outcome": f"{outcome} by {review.reviewer} on {_format_time(review)}",
        "notes": review.correction_notes,
        "changes": list(case.describe_changes(case.draft)) if is_decided else [],
        "no_change": "Nothing was changed." if is_decided else "",
    }
    return {"closing": closing, "refusal": ""}


def _format_time(review: Review) -> str:
    return review.submitted_at[:16].replace("T", " ")


def list_earlier_reviews(case: ReviewCase) -> list[dict[str, Any]]:
    """Build the list of the case's earlier reviews that the expert may read."""
    return [
        {
            # Names are hidden from an expert who decides between two answers or who answers a blind case.
            "reviewer": "" if case.opinions or case.is_blind else review.reviewer,
            "when": _format_time(review),
            "outcome": f"{review.outcome}{' after the program’s answer was shown' if review.unblinded else ''}",
            "notes": review.correction_notes,
        }
        for review in case.reviews
    ]


def list_colleague_messages(case: ReviewCase) -> list[str]:
    """List colleagues' reasons for a second opinion or a deferral, as sentences."""
    asked, deferral = case.second_opinion_reason, case.deferral
    sentences = (
        case.feedback,
        f"A colleague asks for your opinion: {asked}" if asked else "",
        f"Deferred by {deferral.reviewer} on {deferral.deferred_at[:10]}: {deferral.reason}" if deferral else "",
    )
    return list(filter(None, sentences))


def _render_opinions(case: ReviewCase) -> list[dict[str, Any]]:
    segment_keys_by_opinion = [
        {(segment.start_page, segment.end_page, segment.dominant_type) for segment in opinion.draft.segments}
        for opinion in case.opinions
    ]
    common_segment_keys = set.intersection(*segment_keys_by_opinion) if segment_keys_by_opinion else set()
    return [
        {
            "name": opinion.label,
            "overall": "nobody can tell"
            if opinion.outcome == "undeterminable"
            else opinion.draft.dominant_type or "cannot tell",
            "can_take": opinion.outcome != "undeterminable" and not case.is_locked,
            "notes": opinion.notes,
            "segments": [
                {
                    "start": segment.start_page,
                    "end": segment.end_page,
                    "type": segment.dominant_type,
                    "differs": (segment.start_page, segment.end_page, segment.dominant_type) not in common_segment_keys,
                    "flags": [
                        FLAG_WORDS[flag.flag] for flag in opinion.draft.flags if flag.start_page == segment.start_page
                    ],
                }
                for segment in opinion.draft.segments
            ],
        }
        for opinion in case.opinions
    ]


def _ask_blindly(packet: SMEPacket) -> str:
    """Build the question of a case in which no doubt may be named."""
    if packet.total_pages == 1:
        return "of which type is this page?"
    return "on which pages does a document begin, and of which type is each?"


def format_headline(packet: SMEPacket, issues: Sequence[Issue]) -> str:
    """Format a case's headline: the worst issue, or why an expert is asked."""
    if issues:
        return describe_issue(issues[0])
    reason_words = {"audit": "Drawn from the accepted cases", "sample": "Drawn for review"}
    return f"{reason_words.get(packet.review_reason, 'A person is asked')}: {packet.decision_reason}"


def format_case_summary_line(packet: SMEPacket) -> str:
    """Format issue counts, the program's answer and its quality in one line."""
    classification = packet.classification
    program_type = (classification.dominant_type_overall or "cannot tell") if classification else "no usable answer"
    quality_words = f" · {_describe_quotes(classification, packet.open_issues)}" if classification else ""
    asked_words = f"{packet.decision_reason} · " if packet.review_reason == "requested" else ""
    return f"{asked_words}{format_issue_counts(packet)} · the program says: {program_type}{quality_words}"


def _describe_quotes(classification: ClassificationOutput, issues: Sequence[Issue]) -> str:
    """Describe how many of the quotes are in doubt.

    That none is says nothing about the type.
    """
    if score_evidence(classification, issues) is None:
        return "quotes not checked"
    quotes = {
        (quote.page, quote.snippet)
        for segment in classification.segments
        for presence in segment.segment_composition
        for quote in presence.top_evidence
    }
    doubted = {issue.quote for issue in issues if get_issue_answers(issue).effect == "strike_quote"}
    count = sum(snippet in doubted for _, snippet in quotes)
    doubt_words = f"{count} of {format_count(len(quotes), 'quote')} doubted" if count else "no quote doubted"
    return doubt_words if quotes else "no quotes"


def format_issue_counts(packet: SMEPacket) -> str:
    """Format the number of open issues of each severity."""
    return ", ".join(count_issues(packet.open_issues)) or "no doubts"


def _render_issue(issue: Issue) -> dict[str, Any]:
    return {
        "issue_id": issue.issue_id,
        "severity": issue.severity.value,
        "where": " · ".join(
            f"{noun} {number}" for noun, number in (("document", issue.segment_index), ("page", issue.page)) if number
        ),
        "message": describe_issue(issue),
        "answers": asdict(get_issue_answers(issue)),
        "detail": issue.message if shows_own_words(issue) and describe_issue(issue) != issue.message else "",
        "fix": issue.suggested_fix if shows_own_words(issue) else "",
        "page": issue.page,
        "quote": issue.quote or "",
        "is_claim": issue.verdict is not None,
        "status": issue.status,
    }


def describe_quote_verdict(issue: Issue) -> str:
    """Describe how an issue's quote compares with the document; empty without a quote."""
    if issue.verdict is None:
        return ""
    sentence_format = QUOTE_VERDICT_SENTENCES[issue.verdict]
    if issue.verdict is QuoteVerdict.UNCERTAIN and issue.found_page is None:
        sentence_format = UNREADABLE_PAGE_SENTENCE
    difference = issue.difference or ""
    return sentence_format.format(
        page=issue.page, found=issue.found_page, difference=difference[:1].upper() + difference[1:]
    )


def _render_program_claims(packet: SMEPacket) -> list[dict[str, Any]]:
    return [
        {
            "segment": segment.segment_index,
            "start": segment.start_page,
            "end": segment.end_page,
            "type": segment.dominant_type,
            "reasoning": segment.reasoning,
            "types": [
                {
                    "type": presence.document_type,
                    "presence": PRESENCE_WORDS[presence.presence_level],
                    "confidence": f"{presence.confidence:.2f}",
                    "share": f"{presence.segment_share:.2f}",
                    "evidence": [
                        {
                            "page": quote.page,
                            "place": f"{'picture of ' if quote.seen_in_picture else ''}page {quote.page}",
                            "snippet": quote.snippet,
                        }
                        for quote in presence.top_evidence
                    ],
                }
                for presence in segment.segment_composition
                if presence.presence_level is not PresenceLevel.NO_EVIDENCE
            ],
        }
        for segment in packet.segments
    ]


def render_issue_context(
    context: IssueContext, bundle: DocumentBundle, render_cut_out: Callable[[PageBox], str]
) -> dict[str, Any]:
    """Build ``CasePanel.context``: an issue's passages, with match and difference.

    ``render_cut_out`` draws a doubtful word as a data address. A question about two pages' patients has what both pages
    state, as ``facts``.

    A passage is ``{label, paragraphs}``. Without a match there is none, but for a boundary: the text on both sides.
    """
    before, after = context.paragraphs_before, context.paragraphs_after
    fact_pages = _find_compared_pages(context.issue, bundle)
    passages = []
    if context.page_found:
        passages = [(f"Page {context.page_found} says", (*before, *context.paragraphs_matched, *after))]
    elif before and after:
        passages = [(f"Page {before[0].page} ends", before), (f"Page {after[0].page} begins", after)]
    return {
        "issue_id": context.issue.issue_id,
        "quote_word": _convert_to_utf16_span(context.issue.quote or "", context.quote_difference_span),
        "style": choose_highlight_style(context.verdict),
        "passages": [
            {"label": label, "paragraphs": [_render_paragraph(paragraph) for paragraph in paragraphs]}
            for label, paragraphs in passages
        ],
        "fact_pages": fact_pages,
        "facts": compare_patient_facts(bundle, fact_pages),
        "hidden": context.hidden_text,
        "cut_outs": [
            {"readings": list(filter(None, word[:2])), "pictures": list(filter(None, map(render_cut_out, word.boxes)))}
            for word in context.doubtful_words
        ],
    }


def _find_compared_pages(issue: Issue, bundle: DocumentBundle) -> list[int]:
    """Find the two pages whose patients an issue compares; empty if it does not."""
    pages = [issue.facts.get("other_page"), issue.page]
    return [page for page in pages if type(page) is int and 1 <= page <= bundle.total_pages] if all(pages) else []


def _render_paragraph(paragraph: ContextParagraph) -> dict[str, Any]:
    spans = (paragraph.match_span, paragraph.difference_span)
    mark, word = (_convert_to_utf16_span(paragraph.text, span) for span in spans)
    return {"text": paragraph.text, "mark": mark, "word": word}


def _convert_to_utf16_span(text: str, span: tuple[int, int] | None) -> tuple[int, ...]:
    """Convert a span to UTF-16 offsets, which JavaScript strings use; empty for None."""
    return tuple(len(text[:offset].encode("utf-16-le")) // 2 for offset in span or ())


def choose_highlight_style(verdict: QuoteVerdict | None) -> HighlightStyle:
    """Choose ``found`` (filled) if the passage equals the quote, else ``near``."""
    return "found" if verdict in FOUND_VERDICTS else "near"


def build_page_marks(boxes: tuple[PageBox, ...], style: str) -> list[dict[str, Any]]:
    """Build ``PagePane.marks`` from boxes."""
    return [{"page": page, "x0": x0, "y0": y0, "x1": x1, "y1": y1, "style": style} for page, x0, y0, x1, y1 in boxes]


def _format_repair_value(repair_value: Any) -> str:
    """Join the values; fractional ones are shares of the file, in percent."""
    values = repair_value if isinstance(repair_value, list | tuple) else [repair_value]
    return ", ".join(f"{100 * value:.4g}%" if isinstance(value, float) else str(value) for value in values)
