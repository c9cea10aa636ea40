"""Where a typed text stands."""

from __future__ import annotations

import pytest
from builders import DOC2_6, doc2_6, document
from hypothesis import given
from hypothesis import strategies as st

from evalkit.documents.bundle import Page
from evalkit.documents.search import MAX_SEARCH_HITS, find_text_in_document


def said(page: Page, boxes: tuple[tuple[int, float, float, float, float], ...]) -> str:
    """The words inside the boxes, joined by single spaces."""
    inside = [
        page.text[start:end]
        for start, end, x0, y0, x1, y1 in page.words
        for _, left, top, right, bottom in boxes
        if left <= x0 / 10_000 and x1 / 10_000 <= right and top <= y0 / 10_000 and y1 / 10_000 <= bottom
    ]
    return " ".join(inside)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("brca1", [(1, "BRCA1/2"), (2, "BRCA1")]),
        ("Patient:  john\tDOE", [(1, "Patient: John Doe")]),
        ("doe specimen", [(1, "Doe Specimen:")]),
        ("pathogen", [(3, "pathogenic.")]),
        ("(", []),
        ("zebra", []),
        ("", []),
        (" \n", []),
    ],
)
def test_what_is_typed_is_found(text: str, found: list[tuple[int, str]]) -> None:
    bundle = doc2_6()
    hits = find_text_in_document(bundle, text)
    assert [(hit[0][0], said(bundle.page(hit[0][0]), hit)) for hit in hits] == found


def test_an_occurrence_over_a_line_break_has_a_box_on_each_line() -> None:
    (hit,) = find_text_in_document(document("report on the left\nbreast and node"), "left breast")
    assert len(hit) == 2
    assert hit[0][2] < hit[1][2], "the second line is below"
    assert hit[1][1] < hit[0][1], "and begins farther left"


@given(st.data())
def test_any_run_of_words_is_found_however_it_is_typed(data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(DOC2_6)))
    bundle = doc2_6()
    page = bundle.page(number)
    first = data.draw(st.integers(0, len(page.words) - 1))
    last = data.draw(st.integers(first, len(page.words) - 1))
    words = [page.text[start:end] for start, end, *_ in page.words[first : last + 1]]
    gaps = data.draw(st.lists(st.sampled_from([" ", "\n", "\t", "  ", "\u00a0"]), min_size=len(words)))
    typed = "".join(word + gap for word, gap in zip(words, gaps, strict=False))
    typed = data.draw(st.sampled_from([typed, typed.upper(), typed.lower(), typed.swapcase()]))
    hits = [hit for hit in find_text_in_document(bundle, typed) if hit[0][0] == number]
    assert any(" ".join(words) in said(page, hit) for hit in hits)


@given(st.text(max_size=40), st.text(max_size=6))
def test_no_text_breaks_it_and_every_box_is_on_its_page(text: str, typed: str) -> None:
    for hit in find_text_in_document(document(text, text + "\n" + typed), typed):
        assert hit
        for page, x0, y0, x1, y1 in hit:
            assert page in {1, 2}
            assert x0 < x1
            assert y0 < y1


@given(st.text(alphabet="ßİaé Σς", min_size=1, max_size=12))
def test_signs_that_grow_when_folded_keep_their_place(text: str) -> None:
    bundle = document(text)
    for start, end, *_ in bundle.page(1).words:
        word = text[start:end]
        assert any(word in said(bundle.page(1), hit) for hit in find_text_in_document(bundle, word))


def test_words_without_a_place_are_somewhere_on_the_page() -> None:
    page = document("BRCA1 was detected").page(1).model_copy(update={"words": ()})
    assert find_text_in_document(document(page), "detected") == (((1, 0.0, 0.0, 1.0, 1.0),),)


def test_nobody_steps_through_more_than_five_hundred() -> None:
    assert len(find_text_in_document(document("a " * 400, "a " * 400), "a")) == MAX_SEARCH_HITS
