"""How a text speaks: what is counted, whatever the text is about."""

from __future__ import annotations

import math
import time

import pytest
from builders import page
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.offline.acts import (
    compute_log_feature_rates,
    count_features,
    iter_feature_spans,
    load_act_features,
)
from evalkit.classification.offline.second_opinion_types import TYPE_SIGNS, measure_type_signs_on_pages

FEATURES = load_act_features()
REGISTER = (*FEATURES.word_features, *FEATURES.pattern_features)


def count(name: str, text: str) -> int:
    """How often a text shows a feature of register."""
    counts = dict(
        zip((feature.name for feature in REGISTER), count_features(text).word_and_pattern_counts, strict=True)
    )
    return counts[name]


def test_names_and_signs_of_features_are_unique_and_complete() -> None:
    assert len(set(FEATURES.names)) == len(FEATURES.names) == len(REGISTER) + len(TYPE_SIGNS)
    assert set(FEATURES.descriptions) == set(FEATURES.names)
    assert all(FEATURES.descriptions.values())


def test_words_of_features_are_as_they_are_searched() -> None:
    for feature in FEATURES.word_features:
        for word in feature.words:
            assert word == word.lower()
            assert len(word.split()) <= 2
            assert count(feature.name, f"- {word} -") >= 1, (feature.name, word)


@pytest.mark.parametrize(
    ("name", "text", "times"),
    [
        ("reader", "You should bring YOUR card with you.", 3),
        ("reader", "The youth brought a yourt.", 0),
        ("future", "We are going to call. Going home, to rest.", 1),
        ("future", "She is going\nto be seen.".replace("\\\n", "\n"), 1),
        ("kin", "Her mother, her father and her father's aunt.", 3),
        ("absence", "No fever, no rash; not seen without contrast.", 4),
        ("blanks", "Name: ______  Date: ____  [ ] yes [ ] no", 4),
        ("blanks", "Name: Roe  Date: 3/4/2024 [x] yes", 0),
        ("labels without a value", "Name:\nDate of birth:\nAllergies:\n", 3),
        ("labels without a value", "Name: Roe\nSex: female", 0),
        ("labels with a value", "Name: Roe\nSex: female", 2),
        ("money", "$ 30 and £12, not 40 euros", 2),
        ("clock times", "at 08:30 and 17:05, ratio 99:99", 2),
        ("ages", "A 58-year-old woman and a 3 month old child", 2),
        ("results under a heading", "Impression: No acute disease is seen.", 1),
        ("results under a heading", "Impression:\nNo acute disease is seen.", 1),
        ("results under a heading", "Impression: ______\nFindings: pending", 0),
        ("parts of a visit", "Plan: rest, fluids and sleep\nPlan: ____", 1),
        ("variants", "BRCA2 c.68del was detected and is pathogenic", 1),
        ("variants", "pathogenic variants are found in such genes", 0),
    ],
)
def test_a_feature_counts_what_its_name_says(name: str, text: str, times: int) -> None:
    assert count(name, text) == times


def test_signs_are_counted_as_the_second_opinion_counts_them() -> None:
    text = "Gleason 3 + 4. Margins are negative. BP 128/76. CT without contrast."
    strengths = measure_type_signs_on_pages([page(1, text)])
    for kind in {sign.document_type for sign in TYPE_SIGNS}:
        counted = zip(TYPE_SIGNS, count_features(text).type_sign_counts, strict=True)
        assert sum(number * sign.weight for sign, number in counted if sign.document_type is kind) == strengths[kind]


def test_rates_are_of_all_pages_together_and_per_hundred_words() -> None:
    filler = "bread " * 198
    first, second = count_features(f"you your {filler}"), count_features(f"you your {filler}")
    index = FEATURES.names.index("reader")
    assert compute_log_feature_rates([first])[index] == pytest.approx(math.log1p(1.0))
    assert compute_log_feature_rates([first, second]) == pytest.approx(compute_log_feature_rates([first]))
    assert compute_log_feature_rates([count_features(filler), second])[index] == pytest.approx(
        math.log1p(0.5), abs=0.01
    )


def test_a_word_of_a_short_text_weighs_no_more_than_of_sixty() -> None:
    index = FEATURES.names.index("reader")
    short, longer = (compute_log_feature_rates([count_features("you " + "bread " * words)])[index] for words in (0, 59))
    assert short == longer == pytest.approx(math.log1p(100 / 60))
    assert compute_log_feature_rates([count_features("")]) == [0.0] * len(FEATURES.names)


def test_forms_of_types_are_rates_too() -> None:
    """A form that a long record has once is not what the record is."""
    index = FEATURES.names.index("vital signs")
    dense, sparse = (
        compute_log_feature_rates([count_features("BP 128/76 " + "bread " * words)]) for words in (60, 600)
    )
    assert dense[index] > sparse[index] > 0


# ------------------------------------------------------------------------------------------- what can be shown


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("reader", "A line.\n  Bring your card.  \nYour card.", ["your", "Your"]),
        ("future", "A line.\nIt is going to rain.", ["going to"]),
        ("bullets", "a line\n  - PLAN of Care\nmore", ["- "]),
        ("vital signs", "a line\nBP 128/76 today", ["BP 128/76"]),
        ("reader", "Nobody is spoken to.", []),
        ("vital signs", "", []),
    ],
)
def test_each_place_that_shows_a_feature_is_found(name: str, text: str, shown: list[str]) -> None:
    assert [text[start:end].strip(" \n") for start, end in iter_feature_spans(name, text)] == [
        words.strip() for words in shown
    ]


@given(st.text(max_size=300), st.sampled_from(FEATURES.names))
def test_shown_places_are_of_the_text(text: str, name: str) -> None:
    for start, end in iter_feature_spans(name, text):
        assert 0 <= start < end <= len(text)


@given(st.text(max_size=300), st.sampled_from([feature.name for feature in REGISTER]))
def test_a_feature_that_is_shown_is_counted(text: str, name: str) -> None:
    if any(iter_feature_spans(name, text)):
        assert count(name, text) > 0


@given(st.lists(st.text(max_size=200), min_size=1, max_size=4))
def test_any_text_has_a_finite_rate_of_each_feature(texts: list[str]) -> None:
    rates = compute_log_feature_rates([count_features(text) for text in texts])
    assert len(rates) == len(FEATURES.names)
    assert all(rate >= 0 and math.isfinite(rate) for rate in rates)


@pytest.mark.parametrize("unit", ["\n", " ", "Label:\n", '"a', "c.1", "[", "- ", "1 - 2 ", "Plan: \n"])
def test_counting_takes_time_in_proportion_to_the_text(unit: str) -> None:
    began = time.process_time()
    count_features(unit * (40_000 // len(unit)))
    assert time.process_time() - began < 2
