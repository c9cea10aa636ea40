"""Quotes by their first and last words."""

from __future__ import annotations

import json

import pytest
from builders import NOTE, Json, document, one_segment
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.classifier_answer import (
    MAX_EXTRACTED_QUOTE_WORDS,
    extract_quote,
    parse_answer_and_cut_quotes,
)
from evalkit.classification.primary_classifier import ClassifierQuestion
from evalkit.documents.page_pictures import PageImage
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


@pytest.mark.parametrize(
    ("fields", "snippet", "is_seen"),
    [
        ({"words_in_picture": "RECEIVED MAR 05"}, "RECEIVED MAR 05", True),
        ({"words_in_picture": "no mass", "first_words": "no mass", "last_words": "other lobe"}, "no mass in the other lobe", False),
        ({"words_in_picture": "a stamp", "first_words": "not there", "last_words": "nor there"}, "a stamp", True),
        ({"words_in_picture": "a stamp", "page": 7}, "a stamp", True),
        ({"words_in_picture": "a stamp", "snippet": "written out"}, "written out", False),
        ({"first_words": "not there", "last_words": "nor there", "seen_in_picture": True}, "not there … nor there", False),
    ],
)  # fmt: skip
def test_only_words_of_a_picture_count_as_seen(fields: Json, snippet: str, is_seen: bool) -> None:
    quote = {"page": 1, "anchors_found": []} | fields
    answer_json = one_segment(NOTE, 1) | {"self_evaluation": None}
    answer_json["segments"][0]["segment_composition"][0]["top_evidence"] = [quote]
    parsed = parse_answer_and_cut_quotes(json.dumps(answer_json), document(PAGE))
    (found,) = parsed.segments[0].segment_composition[0].top_evidence
    assert (found.snippet, found.seen_in_picture) == (snippet, is_seen)
    assert ("seen_in_picture" in found.model_dump()) is is_seen


def test_words_of_a_picture_are_asked_for_with_pictures_only() -> None:
    image = PageImage(2, b"png", ("image",))
    bundle = document("one", "two", "three")
    blind, seeing = ClassifierQuestion(bundle), ClassifierQuestion(bundle, (2, 3), [PageImage(1, b"other"), image])
    assert (blind.images, seeing.images, seeing.pictured_pages) == ((), (b"png",), (2,))
    assert "PICTURES" not in blind.prompt()
    assert "show page 2, in this order" in seeing.prompt()
    assert "words_in_picture" not in json.dumps(blind.get_answer_schema())
    assert "words_in_picture" in json.dumps(seeing.get_answer_schema())
    assert "seen_in_picture" not in json.dumps(seeing.get_answer_schema())
