"""The comparison of champion and challenger, and the answers that are left out."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from builders import document as build_bundle
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evalkit.classification.schema import DocumentType
from evalkit.classification.training.site_weights import SiteDocument
from evalkit.evaluation.learning import (
    AnsweredFile,
    FileOutcome,
    compute_sign_test_p_value,
    judge_outcomes,
    screen_answers,
)

RIGHT, WRONG, ASKED = (
    FileOutcome("Other", (), is_accepted=True),
    FileOutcome("Clinical Note", (), is_accepted=True),
    FileOutcome("Other", (), is_accepted=False),
)
BUNDLE = build_bundle("text")


def answered(number: int = 0, reviewer: str | None = None, weight: float = 1.0) -> AnsweredFile:
    return AnsweredFile(
        BUNDLE,
        "Other",
        (),
        f"2026-0{number % 3 + 1}-05T12:00:00Z",
        frozenset({reviewer or f"dr_{number % 3}"}),
        is_blind=True,
        is_correction=False,
        weight=weight,
    )


def judge(*pairs, **more):
    files = [(answered(number), *pair) for number, pair in enumerate(pairs)]
    return judge_outcomes(files, max_p_value=0.05, **more)


@given(st.integers(0, 12), st.integers(0, 12))
def test_equal_weights_give_mcnemars_exact_test(wins, losses):
    expected = binomtest(wins, wins + losses, alternative="greater").pvalue if wins + losses else 1.0
    assert compute_sign_test_p_value([2.5] * wins + [-2.5] * losses) == pytest.approx(expected)


@given(st.lists(st.sampled_from([-5.0, -1.0, 1.0, 5.0, 20.0]), max_size=9))
def test_unequal_weights_give_the_share_of_all_signs(gains):
    sums = [
        sum(sign * abs(gain) for sign, gain in zip(signs, gains, strict=True))
        for signs in product((1, -1), repeat=len(gains))
    ]
    expected = Fraction(sum(total >= sum(gains) for total in sums), len(sums))
    assert compute_sign_test_p_value(gains) == pytest.approx(float(expected))


def test_a_clear_gain_has_no_obstacle():
    facts, obstacles = judge(*[(WRONG, RIGHT)] * 12, *[(RIGHT, RIGHT)] * 20)
    assert obstacles == []
    assert (facts["wrong_champion"], facts["wrong_challenger"], facts["only_challenger_right"]) == (12, 0, 12)


@pytest.mark.parametrize(
    ("pairs", "obstacle"),
    [
        ([(WRONG, RIGHT)] * 4 + [(RIGHT, RIGHT)] * 30, "not shown"),
        ([(RIGHT, RIGHT)] * 40, "not shown"),
        (
            [(FileOutcome("Clinical Note", (), is_accepted=False), RIGHT)] * 12 + [(ASKED, WRONG)],
            "more wrong answers would be accepted: 1",
        ),
    ],
)
def test_obstacles_are_named(pairs, obstacle):
    _, obstacles = judge(*pairs)
    assert any(obstacle in text for text in obstacles), obstacles


def test_a_gain_of_one_reviewer_is_none():
    files = [(answered(number, "dr_x"), WRONG, RIGHT) for number in range(12)]
    files += [(answered(number), RIGHT, RIGHT) for number in range(20)]
    _, obstacles = judge_outcomes(files, max_p_value=0.05)
    assert obstacles == ["without dr_x, the new weights are right no more often"]


def test_figures_count_the_files_that_each_represents():
    facts, _ = judge_outcomes([(answered(weight=5.0), WRONG, ASKED), (answered(1), ASKED, RIGHT)], max_p_value=0.05)
    assert (facts["wrong_accepted_champion"], facts["needlessly_escalated_challenger"]) == (5, 5)
    assert facts["needlessly_escalated_champion"] == 1


def test_right_means_what_was_vouched_for():
    segments = ((1, 1, "Other"), (2, 2, "Other"))
    assert RIGHT.is_right(answered())
    assert not RIGHT.is_right(answered()._replace(segments=segments))
    assert RIGHT._replace(segments=segments).is_right(answered()._replace(segments=segments))


def test_an_answer_about_a_file_is_learned_whole_or_not():
    """A wrong type of one document of a file leaves out its other document, which other weeks support."""
    supports = {"mixed": (0.99, 0.1), "unlikely": (0.49,), "likely": (0.51,), "whole": (0.9, 0.6)}
    rows = [(name, support) for name, shares in supports.items() for support in shares]
    documents = [
        SiteDocument(
            name,
            (build_bundle(f"text {number}").pages[0],),
            DocumentType.OTHER,
            str(number),
            "2026-W07",
            frozenset(),
            True,
        )
        for number, (name, _) in enumerate(rows)
    ]
    is_learned, left_out = screen_answers(
        SimpleNamespace(documents=documents, compute_support=lambda _: np.array([support for _, support in rows]))
    )
    assert [name for (name, _), is_kept in zip(rows, is_learned, strict=True) if is_kept] == [
        "likely",
        "whole",
        "whole",
    ]
    assert [(row.who, row.answers) for row in left_out] == [("", 3)]
