"""The document's own text around an issue: two paragraphs before, three after, and no pretended match."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.documents.bundle import AddressedText
from evalkit.errors import NotFound
from evalkit.issue import QuoteVerdict
from evalkit.review import build_issue_context

PAGES = [
    ["#Smith Hospital", "alpha one", "alpha two", "alpha three", "#Page 1"],
    ["#Smith Hospital", "beta one", "BRCA1 variant c.68_69delAG was detected", "beta three", "#Page 2"],
    ["#Smith Hospital", "gamma one", "gamma two", "gamma three", "#Page 3"],
]
QUOTE = "BRCA1 variant c.68_69delAG was detected"


def context_of(build: Any, issue: Any, pages: Any = PAGES, answer: Any = None) -> Any:
    bundle = build.bundle(pages)
    made = answer or build.single("Genomic Report", pages=len(pages), evidence=[(QUOTE, 2)])
    return build_issue_context(build.packet(build.result(made, [issue]), bundle), issue.issue_id, bundle)


def texts(paragraphs: Any) -> list[tuple[int, str]]:
    return [(one.page, one.text) for one in paragraphs]


def test_context_spans_page_breaks_and_skips_headers(build: Any) -> None:
    context = context_of(build, build.issue(segment_index=1, document_type="Genomic Report", page=2, quote=QUOTE))
    assert texts(context.paragraphs_before) == [(1, "alpha three"), (2, "beta one")]
    assert texts(context.paragraphs_matched) == [(2, QUOTE)]
    assert texts(context.paragraphs_after) == [(2, "beta three"), (3, "gamma one"), (3, "gamma two")]
    assert (context.page_found, context.verdict) == (2, "VERBATIM")
    assert context.note == "The quote is on page 2."


def test_segment_reasoning_and_evidence_come_along(build: Any) -> None:
    context = context_of(build, build.issue(segment_index=1, document_type="Genomic Report", page=2, quote=QUOTE))
    assert context.segment.model_dump() == {
        "segment_index": 1,
        "start_page": 1,
        "end_page": 3,
        "dominant_type": "Genomic Report",
    }
    assert context.reasoning == "because of the headings of segment 1"
    assert [(one.snippet, one.page, one.anchors) for one in context.evidence] == [(QUOTE, 2, ("anchor",))]
    other = context_of(build, build.issue(segment_index=1, document_type="Other", page=2, quote=QUOTE))
    assert other.evidence == ()


def test_at_the_edges_of_the_document_there_is_less(build: Any) -> None:
    first = context_of(build, build.issue(page=1, quote="alpha one"))
    assert first.paragraphs_before == ()
    assert len(first.paragraphs_after) == 3
    last = context_of(build, build.issue(page=3, quote="gamma three"))
    assert texts(last.paragraphs_before) == [(3, "gamma one"), (3, "gamma two")]
    assert last.paragraphs_after == ()


def test_a_quote_over_two_paragraphs_matches_both(build: Any) -> None:
    context = context_of(build, build.issue(page=1, quote="alpha one alpha TWO"))
    assert texts(context.paragraphs_matched) == [(1, "alpha one"), (1, "alpha two")]
    assert texts(context.paragraphs_after)[0] == (1, "alpha three")
    assert context.verdict is QuoteVerdict.NOISY


def test_the_words_that_were_found_are_marked_and_no_others(build: Any) -> None:
    context = context_of(build, build.issue(page=2, quote="variant c.68_69delAG was"))
    (matched,) = context.paragraphs_matched
    assert matched.text[slice(*matched.match_span)] == "variant c.68_69delAG was"
    assert [one.match_span for one in (*context.paragraphs_before, *context.paragraphs_after)] == [None] * 5
    both = context_of(build, build.issue(page=1, quote="one alpha TWO")).paragraphs_matched
    assert [one.text[slice(*one.match_span)] for one in both] == ["one", "alpha two"]


def test_a_quote_on_another_page_is_shown_there_and_said_so(build: Any) -> None:
    context = context_of(build, build.issue(page=1, quote=QUOTE, verdict="WRONG_PAGE", found_page=2))
    assert (context.page_found, context.verdict) == (2, "WRONG_PAGE")
    assert texts(context.paragraphs_matched) == [(2, QUOTE)]
    assert context.note == "The quote is not on page 1 but on page 2."


def test_where_no_page_was_claimed_none_is_wrong(build: Any) -> None:
    context = context_of(build, build.issue(quote="gamma two"))
    assert (context.page_found, context.verdict) == (3, "VERBATIM")


def test_an_absent_quote_is_not_pretended(build: Any) -> None:
    context = context_of(build, build.issue(page=3, quote="zebra crossing in winter", verdict="ABSENT"))
    assert context.paragraphs_matched == context.paragraphs_before == ()
    assert texts(context.paragraphs_after) == [(3, "gamma one"), (3, "gamma two"), (3, "gamma three")]
    assert (context.page_found, context.boxes, context.verdict) == (None, (), "ABSENT")
    assert context.note == "The quote was not found on any page; below is the start of page 3."


def test_the_nearest_passage_is_called_so(build: Any) -> None:
    context = context_of(build, build.issue(page=2, quote="BRCA2 variant c.68_69delAG was detected"))
    assert (context.page_found, context.verdict) == (2, "ALTERED")
    assert context.note.startswith("The quote is not on page 2 in these words; below is the most similar passage")
    assert "% alike" in context.note


def test_a_page_outside_the_file(build: Any) -> None:
    context = context_of(build, build.issue(page=9, quote="zebra crossing in winter"))
    assert context.paragraphs_after == ()
    assert context.note == "The quote was not found on any page; page 9 has no text to show."


def test_an_unreadable_page_is_not_called_a_lie(build: Any) -> None:
    context = context_of(build, build.issue(page=2, quote="zebra crossing"), [["alpha"], [], ["gamma"]])
    assert (
        context.note
        == "The quote could not be searched for, because the page is not readable; page 2 has no text to show."
    )


def test_issue_without_quote_shows_the_agents_evidence(build: Any) -> None:
    context = context_of(build, build.issue("V4-0001", code="V4-EVIDENCE-WEAK", document_type="Genomic Report"))
    assert texts(context.paragraphs_matched) == [(2, QUOTE)]
    assert context.note == "The issue quotes nothing; the program's quote is on page 2."


def test_issue_not_about_evidence_lights_no_quote(build: Any) -> None:
    for issue_id, code in (("V1-0001", "V1-SEGMENT-COUNT"), ("V2-0001", "V2-NO-ACT"), ("V3-0001", "V3-TRAP-VENDOR")):
        context = context_of(build, build.issue(issue_id, code=code, document_type="Genomic Report", page=2))
        assert (context.paragraphs_matched, context.boxes, context.page_found) == ((), (), None)


def test_differing_word_is_marked_in_claim_and_passage(build: Any) -> None:
    quote = "BRCA2 variant c.68_69delAG was detected"
    context = context_of(build, build.issue("V4-0001", code="V4-QUOTE-ALTERED", page=2, quote=quote))
    (matched,) = context.paragraphs_matched
    assert quote[slice(*context.quote_difference_span)] == "BRCA2"
    assert matched.text[slice(*matched.difference_span)] == "BRCA1"
    pages = [["The margin is not involved by tumour and is not near."]]
    left_out = build.issue("V4-0001", code="V4-QUOTE-ALTERED", page=1, quote="The margin is involved by tumour")
    context = context_of(build, left_out, pages, build.single("Other", pages=1))
    (matched,) = context.paragraphs_matched
    assert context.quote_difference_span is None
    assert matched.difference_span == (14, 17)


def test_boundary_doubt_lights_both_page_edges(build: Any) -> None:
    doubt = build.issue(
        "V2-0001", code="V2-BOUNDARY-DOUBT", page=2, segment_index=1, facts={"doubt": "new", "sign": "x"}
    )
    context = context_of(build, doubt)
    assert texts(context.paragraphs_before) == [(1, "alpha two"), (1, "alpha three")]
    assert texts(context.paragraphs_after)[0] == (2, "beta one")
    assert [box[0] for box in context.boxes] == [1, 2]
    first = context_of(build, doubt.model_copy(update={"page": 1}))
    assert (first.paragraphs_before, first.boxes) == ((), ())


def test_hidden_words_are_shown_for_an_issue_about_them(build: Any) -> None:
    bundle = build.bundle(PAGES)
    block = bundle.pages[1].blocks[1].model_copy(update={"hidden": True, "text": "obey me"})
    beside = AddressedText(place="a comment on the page", text="serve me")
    page = bundle.pages[1].model_copy(update={"blocks": (*bundle.pages[1].blocks, block), "addressed": (beside,)})
    bundle = bundle.model_copy(update={"pages": (bundle.pages[0], page, bundle.pages[2])})
    for code, facts, words in (
        ("V3-TRAP-HIDDEN", {"count": 9}, "obey me"),
        ("V3-TRAP-INSTRUCTION", {"visibility": "hidden"}, "obey me"),
        ("V3-TRAP-INSTRUCTION", {"visibility": "visible"}, ""),
        ("READER-ADDRESSED-TEXT", {"visibility": "beside"}, "serve me"),
    ):
        issue = build.issue(code=code, page=2, facts=facts)
        packet = build.packet(build.result(build.single("Other", pages=3), [issue]), bundle)
        assert build_issue_context(packet, issue.issue_id, bundle).hidden_text == words


def test_issue_without_any_quote_shows_start_of_its_page(build: Any) -> None:
    answer = build.single("Genomic Report", pages=3)
    context = context_of(build, build.issue(page=2), answer=answer)
    assert texts(context.paragraphs_after)[0] == (2, "beta one")
    assert context.note == "The issue quotes nothing; below is the start of page 2."
    assert context.verdict is None


def test_page_decides_between_segments_of_equal_index(build: Any) -> None:
    answer = build.answer(
        [build.segment(1, 1, 1, "Other"), build.segment(1, 2, 3, "Genomic Report")], {"Other": 1.0}, "Other"
    )
    assert context_of(build, build.issue(segment_index=1, page=3), answer=answer).segment.start_page == 2
    assert context_of(build, build.issue(segment_index=1), answer=answer).segment.start_page == 1
    assert context_of(build, build.issue(page=2), answer=answer).segment.start_page == 2
    assert context_of(build, build.issue(), answer=answer).segment is None


def test_named_segment_wins_over_the_issues_page(build: Any) -> None:
    answer = build.answer(
        [build.segment(1, 1, 1, "Other"), build.segment(2, 2, 3, "Genomic Report")], {"Other": 1.0}, "Other"
    )
    assert context_of(build, build.issue(segment_index=2, page=1), answer=answer).segment.segment_index == 2


def test_evidence_of_another_page_is_not_shown(build: Any) -> None:
    context = context_of(build, build.issue(document_type="Genomic Report", page=1))
    assert context.paragraphs_matched == ()
    assert context.note == "The issue quotes nothing; below is the start of page 1."


def test_a_case_without_a_classification_still_has_text(build: Any) -> None:
    bundle = build.bundle(PAGES)
    packet = build.packet(build.result(None, [build.issue("V1-0001", code="V1-UNPARSEABLE")]), bundle)
    context = build_issue_context(packet, "V1-0001", bundle)
    assert (context.segment, context.reasoning, context.evidence) == (None, "", ())
    assert texts(context.paragraphs_after)[0] == (1, "alpha one")


def test_an_unknown_issue_is_named(build: Any, workspace: Any) -> None:
    packet = workspace.publish(build.single("Other"))
    with pytest.raises(NotFound, match="V9-0009"):
        workspace.helper().get_issue_context(packet, "V9-0009")


def test_the_helper_reads_the_bundle_itself(build: Any, workspace: Any) -> None:
    packet = workspace.publish(
        build.single("Genomic Report", 3), [build.issue(page=2, quote=QUOTE)], build.bundle(PAGES)
    )
    helper = workspace.helper()
    assert helper.get_issue_context(packet, "V3-0001").page_found == 2
    assert helper.get_issue_context(helper.load_packet("doc2_6"), "V3-0001").page_found == 2


def test_an_issue_stands_for_its_id_and_is_never_printed(build: Any, workspace: Any) -> None:
    packet = workspace.publish(
        build.single("Genomic Report", 3), [build.issue(page=2, quote=QUOTE)], build.bundle(PAGES)
    )
    helper = workspace.helper()
    (issue,) = packet.issues
    assert helper.get_issue_context(packet, issue) == helper.get_issue_context(packet, issue.issue_id)
    for mistaken in (issue.model_copy(update={"issue_id": issue.message}), issue.message, packet):
        with pytest.raises(NotFound) as raised:
            helper.get_issue_context(packet, mistaken)
        assert issue.message not in f"{raised.value!r}{raised.value}"
        assert QUOTE not in f"{raised.value!r}{raised.value}"
