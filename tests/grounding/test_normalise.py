"""The canonical form: what is equal although it looks different, and what is not although it looks alike."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.grounding.normalise import build_canonical_text, canonicalise


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Genomic  Report", "genomic\nreport"),
        ("\u00a0Genomic\tReport ", "GENOMIC REPORT"),
        ("ﬁndings of the ﬂow", "findings of the flow"),
        ("patient’s “own” words", 'patient\'s "own" words'),
        ("malig-\nnant", "malignant"),
        ("malig\u00adnant", "malignant"),
        ("non-small cell", "nonsmall cell"),
        ("3–5 mm", "3-5 mm"),
        ("BRCA1 − negative", "BRCA1 - negative"),
        ("ｐａｇｅ", "page"),
        ("5 µg", "5 μg"),
        ("a\u200bb", "ab"),
        ("• first", "· first"),
    ],
)
def test_these_are_the_same_words(one: str, other: str) -> None:
    assert build_canonical_text(one).text == build_canonical_text(other).text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10³ cells", "103 cells"),
        ("10² cells", "10³ cells"),
        ("H₂O", "H2O"),
        ("3-5 mm", "35 mm"),
        ("3–\n5 mm", "35 mm"),
        ("1.2 mm", "12 mm"),
        ("T-2 weighted", "T2 weighted"),
        ("2-fold", "2fold"),
        ("1,200", "1200"),
        ("c.5266dupC", "c.5266dupG"),
        ("BRCA1", "BRCA2"),
        ("1/2", "12"),
        ("<0.5", "0.5"),
        ("+4", "-4"),
        ("5 mg", "5 µg"),
        ("é", "e"),
    ],
)
def test_these_are_not(one: str, other: str) -> None:
    assert build_canonical_text(one).text != build_canonical_text(other).text


@given(st.text(max_size=200))
def test_every_canonical_character_knows_where_it_came_from(text: str) -> None:
    form = build_canonical_text(text)
    assert len(form.original_indices) == len(form.text)
    assert list(form.original_indices) == sorted(form.original_indices)
    assert all(0 <= origin < len(text) for origin in form.original_indices)
    for start in range(len(form.text)):
        first, last = form.get_original_span(start, start + 1)
        assert form.text[start] in (
            build_canonical_text(text[first:last]).text or " "
        )  # a space stands between numbers only


@given(st.one_of(st.text("aB1 2.,-\n\0", max_size=12), st.text(max_size=20)))
def test_the_short_way_gives_the_same_text(text: str) -> None:
    assert canonicalise(text) == build_canonical_text(text).text


@given(st.text(alphabet="abc ABC-\n\t12.,", max_size=60))
def test_canonical_is_canonical(text: str) -> None:
    once = build_canonical_text(text).text
    assert not any(character.isupper() for character in once)
    assert re.fullmatch(r"(\S|(?<=[\d.,]) (?=[\d.,]))*", once)
    assert build_canonical_text(once.replace("-", "–")).text.replace("-", "") == once.replace("-", "")
