"""What the page pane is told, and what it does not send twice."""

from __future__ import annotations

from typing import Any

import pytest
from builders import doc2_6, document, page

from evalkit.documents.bundle import Block
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.documents.search import group_words_into_lines
from evalkit.errors import DocumentError
from widgets.page_pane import MAX_HEADING_LENGTH, PagePane, extract_page_heading


@pytest.fixture
def pane(monkeypatch: pytest.MonkeyPatch) -> PagePane:
    pane = PagePane()
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(pane, "send", lambda content, buffers=None: sent.append(content | {"buffers": buffers}))
    pane._sent_messages = sent
    pane.show_document("case:1", doc2_6(), [{"start": 1, "end": 8, "type": None}], evidence_pages=[2], seen_pages=(1,))
    return pane


def picture(number: int) -> bytes:
    return b"jpeg %d" % number


def broken(number: int) -> bytes:
    raise DocumentError(f"page {number} cannot be drawn", code="READER-PAGE", remedy="Fetch it again.")


def test_a_document_is_told_once_page_by_page(pane: PagePane) -> None:
    assert (pane.total, len(pane.strips), len(pane.headings), len(pane.statuses)) == (8, 8, 8, 8)
    assert pane.headings[0] == "GENOMIC SEQUENCING REPORT"
    assert pane.strips[0]["relation"] == "none"
    assert (pane.evidence, pane.seen) == ([2], [1])


def test_a_page_that_the_browser_has_is_not_drawn_again(pane: PagePane) -> None:
    pane.show_page(3, picture, [], "", is_cached_in_browser=False)
    assert [(one["kind"], one["page"], one["buffers"]) for one in pane._sent_messages] == [("page", 3, [b"jpeg 3"])]
    pane.show_page(4, broken, [], "", is_cached_in_browser=True)
    pane.held = {"version": "case:1", "pages": [3]}
    pane.show_page(3, broken, [], "", is_cached_in_browser=False)
    assert len(pane._sent_messages) == 1
    assert pane.missing == {}
    pane.held = {"version": "case:0", "pages": [5]}  # what it had of another document
    pane.show_page(5, picture, [], "", is_cached_in_browser=False)
    assert pane._sent_messages[-1]["page"] == 5


def test_prefetched_page_is_resent_only_if_dropped(pane: PagePane) -> None:
    pane.render_and_send_images("preview", [4], picture)
    pane.render_and_send_images("page", [4], picture)
    pane.show_page(4, broken, [], "", is_cached_in_browser=False)
    assert (pane.page, pane.missing, len(pane._sent_messages)) == (4, {}, 2)
    pane.held = {"version": "case:1", "pages": [5]}
    pane.show_page(4, picture, [], "", is_cached_in_browser=False)
    assert [(one["kind"], one["page"]) for one in pane._sent_messages[2:]] == [("page", 4)]
    pane.show_document("case:2", doc2_6(), [])
    pane.show_page(4, picture, [], "", is_cached_in_browser=False)
    assert len(pane._sent_messages) == 4


def test_a_page_that_cannot_be_drawn_says_so_until_it_can(pane: PagePane) -> None:
    pane.show_page(3, broken, [], "", is_cached_in_browser=False)
    assert pane.page == 3
    assert pane.missing == {"3": {"what": "page 3 cannot be drawn", "remedy": "Fetch it again."}}
    assert pane._sent_messages[-1] == {"kind": "page", "page": 3, "version": "case:1", "buffers": None}
    pane.render_and_send_images("page", [3], picture)
    assert pane.missing == {}


def test_pages_beyond_the_document_are_passed_over(pane: PagePane) -> None:
    pane.render_and_send_images("preview", [0, 1, 8, 9], picture)
    assert [(one["kind"], one["page"]) for one in pane._sent_messages] == [("preview", 1), ("preview", 8)]


def test_another_document_begins_with_nothing_of_the_last(pane: PagePane) -> None:
    pane.show_page(3, broken, [{"page": 3}], "V4-0001", is_cached_in_browser=False)
    pane.show_search_hits("x", (((3, 0.1, 0.1, 0.2, 0.2),),))
    pane.show_document("case:2", document("One page"), [{"start": 1, "end": 1, "type": None}])
    assert (pane.page, pane.marks, pane.issue_id, pane.missing, pane.hits, pane.found_for) == (0, [], "", {}, [], "")
    assert (pane.headings, pane.evidence, pane.seen) == (["One page"], [], [])


def test_hits_are_numbered_by_occurrence(pane: PagePane) -> None:
    pane.show_search_hits(
        "left breast", (((1, 0.5, 0.1, 0.9, 0.2), (1, 0.1, 0.2, 0.3, 0.3)), ((4, 0.1, 0.1, 0.2, 0.2),))
    )
    assert [(hit["page"], hit["hit"]) for hit in pane.hits] == [(1, 0), (1, 0), (4, 1)]
    assert pane.found_for == "left breast"


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([("paragraph", "Fax from 5550100", True), ("paragraph", "Dear doctor", False)], "Dear doctor"),
        ([("paragraph", "To whom", False), ("heading", "PATHOLOGY\n REPORT", False)], "PATHOLOGY REPORT"),
        ([("heading", "x" * 200, False)], "x" * (MAX_HEADING_LENGTH - 1) + "…"),
        ([], ""),
    ],
)
def test_a_page_is_headed(blocks: list[tuple[str, str, bool]], said: str) -> None:
    made = tuple(Block(type=kind, text=text, box=(0, 0, 1, 1), furniture=is_it) for kind, text, is_it in blocks)
    assert extract_page_heading(page(1, "").model_copy(update={"blocks": made})) == said


def test_red_strip_carries_both_pages_facts_and_ranges() -> None:
    texts = ("Patient: John Doe DOB: 01/15/1970", "Patient: Jane Roe DOB: 03/02/1981", "Patient: Jane Roe Sex: F")
    pages = [page(number, text) for number, text in enumerate(texts, 1)]
    pane = PagePane()
    pane.show_document(
        "case:1",
        document(
            *(one.model_copy(update={"identifiers": find_patient_identifiers(one.text, one.words)}) for one in pages)
        ),
        [{"start": 1, "end": 3, "type": None}],
    )
    strip = pane.strips[1]
    assert (strip["relation"], strip["other"], strip["ranges"]) == ("other", 1, [[1, 1], [2, 3]])
    assert [(one["fact"], one["values"]) for one in strip["differences"]] == [
        ("name", ["John Doe", "Jane Roe"]),
        ("birth date", ["01/15/1970", "03/02/1981"]),
    ]
    assert "differences" not in pane.strips[0]


def test_full_size_picture_carries_its_words_line_by_line(pane: PagePane) -> None:
    pane.render_and_send_images("preview", [1], picture)
    pane.render_and_send_images("page", [1], picture)
    preview, full_size = pane._sent_messages
    assert "lines" not in preview
    words = [word for line in full_size["lines"] for word in line]
    assert [word[0] for word in words] == [doc2_6().page(1).text[word[0] : word[1]] for word in doc2_6().page(1).words]
    assert all(0 <= edge <= 10_000 for word in words for edge in word[1:])


def test_words_read_from_the_right_share_a_line() -> None:
    words = [
        (0, 3, 800, 100, 900, 200),
        (4, 7, 680, 100, 790, 200),
        (8, 11, 560, 100, 670, 200),
        (12, 15, 800, 300, 900, 400),
    ]
    assert [len(line) for line in group_words_into_lines(words)] == [3, 1]
