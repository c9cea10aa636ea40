"""Fault kinds: wrong evidence for a type, misleading pages, and prompt injection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from evalkit.classification.schema import (
    REPORT_TYPES,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
    TypePresence,
)
from evalkit.classification.v4_evidence_quality import MIN_SNIPPET_WORDS
from evalkit.documents.bundle import Page
from evalkit.evaluation.challenge.mutated_answer import (
    ABSENT,
    OTHER_TYPE,
    FaultNotApplicableError,
    Json,
    MutatedAnswer,
    MutationOperator,
    RandomSource,
    add_block,
    append_page,
    draw_candidate,
    draw_quoted_claim,
    draw_text,
    list_quoted_claims,
    load_fault_texts,
    move_share,
    normalise_quote,
    recompute_totals_and_check_type,
    require_applicable,
)
from evalkit.evaluation.challenge.quote_faults import load_quote_faults

#: A type's share above this stays the largest share even after up to 0.3 of it is moved to another type.
_MIN_DIVISIBLE_SHARE = 0.65
_GENOMIC_TYPE = DocumentType.GENOMIC_REPORT.value
_REPORT_TYPE_NAMES = tuple(document_type.value for document_type in REPORT_TYPES)


def _plant_no_evidence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Remove all quotes of a segment's type and set its confidence to 0.97."""
    _, claim = draw_quoted_claim(mutated_answer, random_source)
    claim.update(top_evidence=[], confidence=0.97)


def _plant_invented_presence(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, level: PresenceLevel, is_quoted: bool
) -> None:
    """Claim a further type for a segment, unquoted or with the right type's quote.

    Unless the invented level is PRIMARY, part of the right type's share is moved to the invented type.
    """
    segment, claim = draw_quoted_claim(mutated_answer, random_source)
    is_primary = level is PresenceLevel.PRIMARY
    absent_rows = [
        row
        for row in segment["segment_composition"]
        if row["presence_level"] == ABSENT and (is_primary or row["document_type"] != OTHER_TYPE)
    ]
    quotes = [random_source.choice(claim["top_evidence"]) | {"anchors_found": []}] if is_quoted else []
    row = draw_candidate(random_source, absent_rows)
    row.update(presence_level=level.value, confidence=0.9 if is_quoted else 0.8, top_evidence=quotes)
    if not is_primary:
        require_applicable(claim["segment_share"] > _MIN_DIVISIBLE_SHARE)
        move_share(claim, row, "segment_share", random_source.uniform(0.15, 0.3))
    recompute_totals_and_check_type(mutated_answer)


def _plant_low_confidence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    _, claim = draw_quoted_claim(mutated_answer, random_source)
    claim["confidence"] = round(random_source.uniform(0.02, 0.4), 2)


def _plant_elided_quote(mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str) -> None:
    """Add a sentence; quote it without the words that reverse its meaning."""
    segment, claim = draw_quoted_claim(mutated_answer, random_source)
    page_number = random_source.randint(segment["start_page"], segment["end_page"])
    require_applicable(mutated_answer.bundle.page(page_number).status.is_readable)
    sentence = draw_text(text_key, random_source)
    mutated_answer.bundle = add_block(mutated_answer.bundle, page_number, re.sub(r"[\[\]]", "", sentence))
    _replace_quote(claim, re.sub(r"\s*\[.*?\]\s*", " … ", sentence).strip(" …"), page_number, random_source)


def _plant_altered_quote(mutated_answer: MutatedAnswer, random_source: RandomSource, *, kind: str) -> None:
    segment, claim = draw_quoted_claim(mutated_answer, random_source)
    altered_quote = mutated_answer.clean_answer.quotable_text.draw_altered_quote(
        kind, segment["start_page"], segment["end_page"], random_source
    )
    if altered_quote is None:
        raise FaultNotApplicableError
    _replace_quote(claim, altered_quote.text, altered_quote.page, random_source)


def _plant_invented_quote(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    segment, claim = draw_quoted_claim(mutated_answer, random_source)
    page_number = random_source.randint(segment["start_page"], segment["end_page"])
    _replace_quote(claim, draw_text("invented_quotes", random_source), page_number, random_source)


def _replace_quote(claim: Json, text: str, page_number: int, random_source: RandomSource) -> None:
    quote_index = random_source.randrange(len(claim["top_evidence"]))
    claim["top_evidence"][quote_index] = {"snippet": text, "page": page_number, "anchors_found": []}


def _plant_moved_quote(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Move a quote to a page of the same segment that does not contain it."""
    moves = [
        (quote, page.page_num)
        for segment in mutated_answer.segments
        for row in segment["segment_composition"]
        for quote in row["top_evidence"]
        for page in mutated_answer.bundle.iter_pages(segment["start_page"], segment["end_page"])
        if page.page_num != quote["page"]
        and page.status.is_readable
        and normalise_quote(quote["snippet"]) not in _normalise_text_of_page_and_next(mutated_answer, page)
    ]
    quote, page = draw_candidate(random_source, moves)
    quote.update(page=page, anchors_found=[])


def _normalise_text_of_page_and_next(mutated_answer: MutatedAnswer, page: Page) -> str:
    """Normalise the text of a page and the next, where a quote may continue."""
    return normalise_quote(
        "".join(nearby_page.text for nearby_page in mutated_answer.bundle.iter_pages(page.page_num, page.page_num + 1))
    )


def _plant_quote_of_other_segment(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    quoted_claims = list_quoted_claims(mutated_answer)
    require_applicable(len(quoted_claims) > 1)
    (_, claim), (_, other_claim) = random_source.sample(quoted_claims, 2)
    claim["top_evidence"][0] = random_source.choice(other_claim["top_evidence"])


def _plant_quote_outside_file(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    _, claim = draw_quoted_claim(mutated_answer, random_source)
    random_source.choice(claim["top_evidence"])["page"] = random_source.choice(
        (0, mutated_answer.bundle.total_pages + random_source.randint(1, 4))
    )


def _plant_invented_anchor(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    _, claim = draw_quoted_claim(mutated_answer, random_source)
    quote = random_source.choice(claim["top_evidence"])
    anchor = draw_text("anchors", random_source)
    quote["anchors_found"].append(anchor)
    require_applicable(normalise_quote(anchor) not in normalise_quote(mutated_answer.bundle.page(quote["page"]).text))


def _plant_replaced_evidence(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str, is_furniture: bool = False
) -> None:
    """Replace a type's evidence by one quote of a line that is added to the page."""
    segment, claim = draw_quoted_claim(mutated_answer, random_source)
    page_number = random_source.randint(segment["start_page"], segment["end_page"])
    text = draw_text(text_key, random_source)
    require_applicable(mutated_answer.bundle.page(page_number).status.is_readable)
    mutated_answer.bundle = add_block(
        mutated_answer.bundle, page_number, text, is_first=is_furniture, is_furniture=is_furniture
    )
    claim.update(top_evidence=[{"snippet": text, "page": page_number, "anchors_found": []}], confidence=0.9)


def _plant_routine_vendor(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """List a routine laboratory among the vendors of a file with a genomic report."""
    require_applicable(any(segment["dominant_type"] == _GENOMIC_TYPE for segment in mutated_answer.segments))
    mutated_answer.answer_json["vendor_signals"].append(random_source.choice(load_fault_texts()["vendors"]))


def _plant_first_line(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str, segment_types: Sequence[str]
) -> None:
    """Insert a line (letterhead, order form) at the top of a segment of a given type."""
    segments = [segment for segment in mutated_answer.segments if segment["dominant_type"] in segment_types]
    page_number = draw_candidate(random_source, segments)["start_page"]
    mutated_answer.bundle = add_block(
        mutated_answer.bundle, page_number, draw_text(text_key, random_source), is_first=True
    )


def _plant_mislabelled_page(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str, claimable_types: Sequence[str]
) -> None:
    """Append a page and claim it as a document of a type that it is not."""
    page_template: Mapping[str, Any] = random_source.choice(load_fault_texts()[text_key])
    page_number, paragraphs = append_page(mutated_answer, page_template["page"], random_source)
    quotable_lines = [line for line in paragraphs if MIN_SNIPPET_WORDS <= len(line.split()) <= 40]
    claimed_type = random_source.choice(
        [type_name for type_name in claimable_types if type_name in page_template.get("as", claimable_types)]
    )
    evidence = tuple(
        Evidence(snippet=line, page=page_number)
        for line in random_source.sample(quotable_lines, min(2, len(quotable_lines)))
    )
    mutated_answer.segments.append(_build_segment(claimed_type, page_number, evidence).model_dump(mode="json"))
    recompute_totals_and_check_type(mutated_answer)


def _build_segment(claimed_type: str, page_number: int, evidence: tuple[Evidence, ...]) -> Segment:
    def build_presence(document_type: DocumentType) -> TypePresence:
        is_claimed = document_type.value == claimed_type
        return TypePresence(
            document_type=document_type,
            presence_level=PresenceLevel.PRIMARY if is_claimed else PresenceLevel.NO_EVIDENCE,
            confidence=0.85 if is_claimed else 0.0,
            segment_share=1.0 if is_claimed else 0.0,
            top_evidence=evidence if is_claimed else (),
        )

    return Segment(
        segment_index=page_number,
        start_page=page_number,
        end_page=page_number,
        segment_page_count=1,
        dominant_type=DocumentType(claimed_type),
        segment_composition=tuple(map(build_presence, DocumentType)),
    )


def _plant_extra_text(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str, is_hidden: bool
) -> None:
    readable_pages = [page.page_num for page in mutated_answer.bundle.pages if page.status.is_readable]
    text = draw_text(text_key, random_source)
    mutated_answer.bundle = add_block(
        mutated_answer.bundle, random_source.choice(readable_pages), text, is_hidden=is_hidden
    )


# fmt: off
EVIDENCE_FAULTS: tuple[MutationOperator, ...] = (
    MutationOperator("evidence-none", "a type has high confidence but no quote", ("V1", "V4"), "structural", _plant_no_evidence),
    MutationOperator("presence-no-evidence", "a second type is PRIMARY, without a quote", ("V1", "V4"), "structural", partial(_plant_invented_presence, level=PresenceLevel.PRIMARY, is_quoted=False)),
    MutationOperator("presence-raw", "an invented EMBEDDED_RAW with a share, without a quote", ("V4-PRESENCE-UNSUPPORTED",), "structural", partial(_plant_invented_presence, level=PresenceLevel.EMBEDDED_RAW, is_quoted=False)),
    MutationOperator("presence-mention", "an invented MENTION_ONLY with a share, without a quote", ("V4-PRESENCE-UNSUPPORTED",), "structural", partial(_plant_invented_presence, level=PresenceLevel.MENTION_ONLY, is_quoted=False)),
    MutationOperator("unsure", "a type is PRIMARY at a confidence below the floor", ("V2-UNSURE",), "structural", _plant_low_confidence),
    MutationOperator("evidence-outside-file", "evidence on a page that does not exist", ("V4",), "structural", _plant_quote_outside_file),
    MutationOperator("evidence-outside-segment", "evidence from another segment", ("V4",), "structural", _plant_quote_of_other_segment),
    MutationOperator("quote-invented", "a quote that appears nowhere", ("V4",), "structural", _plant_invented_quote),
    MutationOperator("quote-moved", "a quote claimed for another page", ("V4",), "quote", _plant_moved_quote),
    MutationOperator("anchor-invented", "an anchor that is not on the page", ("V4",), "quote", _plant_invented_anchor),
    *(MutationOperator(f"quote-{kind}", f"a quote altered: {row['description']}", ("V4",), "quote", partial(_plant_altered_quote, kind=kind)) for kind, row in load_quote_faults().items()),
    *(MutationOperator(f"quote-elided-{kind}", f"a quote with an ellipsis that hides a {kind}", ("V4-QUOTE",), "quote", partial(_plant_elided_quote, text_key=f"elided_{kind}")) for kind in ("negation", "hedge", "history", "question")),
    MutationOperator("presence-strange", "a second type is PRIMARY, with a quote of the first", ("V2", "V4"), "semantic", partial(_plant_invented_presence, level=PresenceLevel.PRIMARY, is_quoted=True)),
    MutationOperator("presence-raw-strange", "an invented EMBEDDED_RAW, with a quote of another type", ("V4-PRESENCE-UNSUPPORTED",), "semantic", partial(_plant_invented_presence, level=PresenceLevel.EMBEDDED_RAW, is_quoted=True)),
    MutationOperator("presence-mention-strange", "an invented MENTION_ONLY, with a quote of another type", ("V4-PRESENCE-UNSUPPORTED",), "semantic", partial(_plant_invented_presence, level=PresenceLevel.MENTION_ONLY, is_quoted=True)),
    MutationOperator("evidence-reference", "the only evidence is a reference to another document", ("V4",), "semantic", partial(_plant_replaced_evidence, text_key="references")),
    MutationOperator("evidence-courtesy", "the only evidence could appear in any document", ("V4",), "semantic", partial(_plant_replaced_evidence, text_key="courtesies")),
    MutationOperator("evidence-header", "the only evidence is the header of the page", ("V3", "V4"), "semantic", partial(_plant_replaced_evidence, text_key="headers", is_furniture=True)),
    MutationOperator("trap-vendor", "a routine laboratory listed as vendor of a genomic report", ("V3",), "structural", _plant_routine_vendor),
    MutationOperator("trap-letterhead", "a routine laboratory's letterhead, not listed as vendor", ("V3",), "semantic", partial(_plant_first_line, text_key="letterheads", segment_types=(_GENOMIC_TYPE,))),
    MutationOperator("trap-keyword", "administrative words on a page claimed as a report", ("V3",), "structural", partial(_plant_first_line, text_key="administrative_lines", segment_types=_REPORT_TYPE_NAMES)),
    MutationOperator("trap-form", "a form, order or cover sheet claimed as a report", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="forms", claimable_types=_REPORT_TYPE_NAMES)),
    MutationOperator("trap-panel", "a routine panel claimed as a genomic report", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="panels", claimable_types=(_GENOMIC_TYPE,))),
    MutationOperator("trap-boilerplate", "a laboratory's text about its method claimed as a result", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="boilerplates", claimable_types=(_GENOMIC_TYPE,))),
    MutationOperator("trap-quoted", "a report quoted in a note or letter claimed as the report", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="quoting_notes", claimable_types=_REPORT_TYPE_NAMES)),
    MutationOperator("instruction", "instructions to a model in the page's text", ("V3",), "semantic", partial(_plant_extra_text, text_key="instructions", is_hidden=False)),
    MutationOperator("instruction-hidden", "instructions to a model in hidden text", ("V3",), "semantic", partial(_plant_extra_text, text_key="instructions", is_hidden=True)),
    MutationOperator("text-hidden", "hidden text that contradicts the page", ("V3",), "semantic", partial(_plant_extra_text, text_key="hidden_reports", is_hidden=True)),
)
# fmt: on
