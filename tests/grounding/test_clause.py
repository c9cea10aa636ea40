"""What stands beside a quote: the quick look must let through to the close one all that the close one would find."""

from __future__ import annotations

from itertools import product

import pytest
from builders import document
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.grounding import QuoteLocator
from evalkit.grounding.locate import widen_to_whole_words
from evalkit.grounding.omitted_context import (
    _MAX_CHARACTERS_BEFORE,
    _find_cue_after,
    _find_cue_before,
    find_omitted_context,
)

CUES = (
    "no", "not", "No evidence of", "w/o", "r/o", "cannot", "can't", "don’t", "denies", "family history", "risk of", "if",
    "negative for", "mother", "0", "0/18", "0,", "10", "1.0", "10³", "10^50000", "Ø", "n/a", "no longer", "is", "has been",
    "clearly", "like-\nly", "un-\nlikely", "un–\nlikely", "with-\nout", "no\u0301", "n\xadot", "№", "ﬁnd", "İİİİ no", "ſ",
)  # fmt: skip
OTHERS = ("piano", "nodule", "of", "and", "the", "or", "for", "with", "but", "because", "A-", "5mg", "Cells", "é", "?")
BETWEEN = (" ", " ", " ", "\n", "\n\n", "\t", ". ", ".", ", ", ": ", ":", "; ", "-", "\xa0", "(", "'", " " * 40)

TEXTS = st.lists(st.tuples(st.sampled_from(CUES + OTHERS * 3), st.sampled_from(BETWEEN)), min_size=2, max_size=50).map(
    lambda parts: "".join(map("".join, parts))
)


@settings(max_examples=200)
@given(TEXTS, st.data())
def test_what_the_close_look_finds_is_found(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    start, end = widen_to_whole_words(text, start, data.draw(st.integers(start + 1, len(text))))
    assert find_omitted_context(text, start, end) == (
        _find_cue_before(text, start, end) or _find_cue_after(text, start, end)
    )


@pytest.mark.parametrize(("cue", "between"), list(product((*CUES, "piano", "100"), (" ", "\n"))))
def test_a_cue_on_the_edge_of_what_is_looked_at(cue: str, between: str) -> None:
    """Every way in which the edge can cut it."""
    for length in range(_MAX_CHARACTERS_BEFORE - len(cue) - len(between) - 2, _MAX_CHARACTERS_BEFORE + 2):
        text = f"Seen: {cue}{between}{'x' * length} cells in the duct"
        start, end = text.index("cells"), len(text)
        assert find_omitted_context(text, start, end) == (
            _find_cue_before(text, start, end) or _find_cue_after(text, start, end)
        )


def test_a_cue_behind() -> None:
    for cue, one, other in product((*CUES, "?"), BETWEEN, BETWEEN):
        text = f"A mass{one}{cue}{other}not seen"
        assert find_omitted_context(text, 2, 6) == (_find_cue_before(text, 2, 6) or _find_cue_after(text, 2, 6))


def test_a_clause_that_may_end_behind_a_cue() -> None:
    """Every way in which two signs can end it, or not, behind a word that lets it go on, or not."""
    for cue, last, one, other, first in product(("no", "if"), ("OF", "seen"), BETWEEN, BETWEEN, ("cells", "Cells")):
        text = f"Mass\n{cue} duct {last}{one}{other}{first} in the duct"
        start, end = text.index(first), len(text)
        assert find_omitted_context(text, start, end) == (
            _find_cue_before(text, start, end) or _find_cue_after(text, start, end)
        )


@pytest.mark.parametrize(
    ("first", "second", "quote"),
    [
        ("There is no evidence of\ninvasive", "carcinoma in the duct", "invasive carcinoma in the duct"),
        ("No.\nInvasive", "carcinoma in the duct", "Invasive carcinoma in the duct"),
        ("Invasive carcinoma in", "the duct is not seen", "Invasive carcinoma in the duct"),
        ("Family history: breast", "cancer in two cousins", "breast cancer in two cousins"),
    ],
)
def test_what_runs_on_to_the_next_page_is_read_as_if_on_one(first: str, second: str, quote: str) -> None:
    apart = QuoteLocator(document(first, second)).locate(quote, 1)
    together = QuoteLocator(document(f"{first}\n{second}")).locate(quote, 1)
    assert (apart.verdict, apart.difference_text) == (together.verdict, together.difference_text)
