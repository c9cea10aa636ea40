"""Quotes by their first and last words."""

from __future__ import annotations

import pytest
from builders import document
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.classifier_answer import MAX_EXTRACTED_QUOTE_WORDS, extract_quote
from evalkit.grounding import QuoteLocator

PAGE = "The lobe shows no mass. There is no mass in the other lobe\nFindings: a mass of 2.4 cm is seen, a mass of 3 cm too."


@pytest.mark.parametrize(
    ("paragraph", "first", "last", "expected"),
    [
        (2, "a mass of", "is seen", "a mass of 2.4 cm is seen"),
        (2, "A  MASS OF 3", "cm too", "a mass of 3 cm too"),
        (1, "a mass of", "is seen", "a mass of 2.4 cm is seen"),
        (None, "no mass", "other lobe", "no mass in the other lobe"),
        (9, "There is no mass", "no mass", "There is no mass"),
        (1, "no mass", "no mass", "no mass"),
        (2, "a mass of 2", "is seen", None),
        (1, "obe shows", "no mass", None),
        (1, "other lobe", "The lobe", None),
        (1, "", "no mass", None),
        (1, "no mass", " ", None),
    ],
)
def test_the_shortest_passage_that_begins_and_ends_so(
    paragraph: int | None, first: str, last: str, expected: str | None
) -> None:
    assert extract_quote(document(PAGE).page(1), paragraph, first, last) == expected


def test_two_words_at_both_ends_of_a_page_are_no_quote() -> None:
    page = document("Begin " + "word " * MAX_EXTRACTED_QUOTE_WORDS + "end").page(1)
    assert extract_quote(page, 1, "Begin", "end") is None
    assert extract_quote(page, 1, "word", "end") == "word end"


@given(st.data())
def test_what_was_cut_out_is_found_again(data: st.DataObject) -> None:
    words = data.draw(
        st.lists(
            st.sampled_from(["mass", "no", "cm", "2.4", "lobe", "the", "left", "right", "seen", "(3)"]),
            min_size=4,
            max_size=40,
        )
    )
    bundle = document(" ".join(words))
    start = data.draw(st.integers(0, len(words) - 2))
    end = data.draw(st.integers(start + 1, len(words)))
    found = extract_quote(
        bundle.page(1), 1, " ".join(words[start : start + 2]), " ".join(words[max(end - 2, start) : end])
    )
    if found is not None:
        assert QuoteLocator(bundle).has_quote(found, 1)
        assert found.split()[0] == words[start]
