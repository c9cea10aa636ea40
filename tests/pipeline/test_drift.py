"""Detectors of rising error rates: what they find, and what cannot mislead them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.pipeline import drift
from evalkit.pipeline.drift import AuditSequence, compute_drift_evidence, find_brakes_by_stratum, find_unusual_runs
from evalkit.pipeline.event_log import LoggedEvent


def build_audits(wrong_positions, count=500, unanswered=()) -> AuditSequence:
    is_wrong, is_answered = np.zeros(count, dtype=bool), np.ones(count, dtype=bool)
    is_wrong[list(wrong_positions)] = True
    is_answered[list(unanswered)] = False
    return AuditSequence(np.full(count, 0.01), is_answered, is_wrong & is_answered, np.ones(count))


def find_highest_level(audits: AuditSequence, first_position: int = 0) -> float:
    return max((evidence.level for evidence in compute_drift_evidence(audits, first_position)), default=0.0)


USUAL_ERRORS = (40, 180, 330)
SHIFT_ERRORS = (410, 418, 425, 440, 446, 460)


def test_rising_error_rate_is_found():
    evidence = compute_drift_evidence(build_audits((*USUAL_ERRORS, *SHIFT_ERRORS)))
    first = next(item for item in evidence if item.level >= 1)
    assert first.position in SHIFT_ERRORS
    assert 395 <= first.first_position <= 410


def test_usual_errors_are_no_drift():
    assert find_highest_level(build_audits(range(30, 500, 60))) < 1


def test_error_at_low_risk_counts_for_more():
    audits = build_audits((*USUAL_ERRORS, *SHIFT_ERRORS[:3]))
    doubtful = np.zeros(500, dtype=bool)
    doubtful[::4] = True
    doubtful[list(USUAL_ERRORS)] = True
    sure_errors = audits._replace(risks=np.where(doubtful, 0.05, 0.0001))
    doubtful[list(SHIFT_ERRORS)] = True
    doubtful_errors = audits._replace(risks=np.where(doubtful, 0.05, 0.0001))
    assert find_highest_level(sure_errors) > 10 * find_highest_level(doubtful_errors)


def test_a_warning_alone_brakes_nothing_but_helps_errors():
    audits = build_audits((*USUAL_ERRORS, *SHIFT_ERRORS[:3]))
    weights = np.ones(500)
    weights[400] += drift.WARNING_WEIGHT
    warned = audits._replace(start_weights=weights)
    assert find_highest_level(warned) > 5 * find_highest_level(audits)
    assert find_highest_level(build_audits(USUAL_ERRORS)._replace(start_weights=weights)) < 1


def test_no_change_is_searched_before_enough_earlier_audits():
    assert find_highest_level(build_audits((50, 60, 70, 80, 90, 100), count=190)) < 1


def test_a_stratum_that_is_bad_from_the_start_is_braked():
    evidence = compute_drift_evidence(build_audits(range(0, 150, 3), count=150))
    first = next(item for item in evidence if item.level >= 1)
    assert (first.first_position, first.position < 75) == (0, True)
    assert find_highest_level(build_audits(range(0, 150, 3), count=150), first_position=140) < 1
    assert find_highest_level(build_audits(range(9, 150, 10), count=150)) < 1  # the highest rate that is tolerated


def test_errors_before_a_release_are_not_found_again():
    audits = build_audits((*USUAL_ERRORS, *SHIFT_ERRORS))
    assert find_highest_level(audits, SHIFT_ERRORS[-1] + 1) == 0


def test_an_empty_sequence_has_no_evidence():
    assert compute_drift_evidence(build_audits((), count=0)) == []


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 499), max_size=200))
def test_missing_answers_to_right_audits_raise_nothing(waiting):
    wrong = (*USUAL_ERRORS, *SHIFT_ERRORS)
    complete = compute_drift_evidence(build_audits(wrong))
    level_by_position = {item.position: item.level for item in complete}
    for item in compute_drift_evidence(build_audits(wrong, unanswered=waiting.difference(wrong))):
        assert item.level <= level_by_position[item.position] + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.integers(1, len(SHIFT_ERRORS)), st.sets(st.integers(461, 499)))
def test_audits_that_wait_do_not_change_earlier_evidence(answered_count, waiting):
    wrong = (*USUAL_ERRORS, *SHIFT_ERRORS)
    early = compute_drift_evidence(build_audits(wrong, unanswered={*waiting, *SHIFT_ERRORS[answered_count:]}))
    complete = compute_drift_evidence(build_audits(wrong))
    assert early == complete[: len(early)]
    assert len(early) == len(complete) - len(SHIFT_ERRORS) + answered_count


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(500)))
def test_order_of_answers_does_not_matter(order):
    """The state after all answers is one state: built answer by answer in any order, it is the same sequence."""
    complete = build_audits((*USUAL_ERRORS, *SHIFT_ERRORS))
    is_answered, is_wrong = np.zeros(500, dtype=bool), np.zeros(500, dtype=bool)
    for position in order:
        is_answered[position], is_wrong[position] = True, complete.is_found_wrong[position]
    assert compute_drift_evidence(
        AuditSequence(complete.risks, is_answered, is_wrong, np.ones(500))
    ) == compute_drift_evidence(complete)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 3), st.integers(0, 40), st.integers(1, 6))
def test_each_ratio_is_one_on_average(earlier_wrong, earlier_right, count):
    """Over all outcomes of the next audits, weighted by their chance without a change: why the run length holds."""
    table = drift._ERRORS
    start = np.array([[float(earlier_wrong)]]), np.array([[float(earlier_wrong + earlier_right)]])
    usual_wrong = earlier_wrong + table["prior_wrong"]
    usual_right = earlier_right + table["prior_count"] - table["prior_wrong"]
    total = 0.0
    for outcome in range(2**count):
        wrong, right, chance = usual_wrong, usual_right, 1.0
        for bit in range(count):
            is_wrong = outcome >> bit & 1
            chance *= (wrong if is_wrong else right) / (wrong + right)
            wrong, right = wrong + is_wrong, right + 1 - is_wrong
        since = np.array([[float(outcome.bit_count())]]), np.array([[float(count)]])
        total += chance * float(np.exp(drift._compute_log_ratios(*start, *since, table)[0]))
    assert total == pytest.approx(1.0)


def build_event(kind, stratum="Other | inbox") -> LoggedEvent:
    return LoggedEvent(
        kind=kind,
        recorded_at="2026-03-01T00:00:00Z",
        recorded_by="evalkit",
        stratum=stratum,
        facts={},
        prev_sha256=None,
    )


@pytest.mark.parametrize(
    ("kinds", "is_braked"),
    [
        ((), False),
        (("braked",), True),
        (("braked", "released"), False),
        (("braked", "released", "braked"), True),
        (("released",), False),
        (("braked", "certified"), True),
    ],
)
def test_the_newest_brake_or_release_holds(kinds, is_braked):
    events = [build_event(kind) for kind in kinds]
    assert bool(find_brakes_by_stratum(events)) is is_braked


def test_brakes_of_other_strata_stay():
    events = [
        build_event("braked", "Other | a"),
        build_event("braked", "Other | b"),
        build_event("released", "Other | a"),
    ]
    assert list(find_brakes_by_stratum(events)) == ["Other | b"]


def test_unusual_runs_are_counted_from_their_beginning():
    shares = np.array([0.1, 0.12, 0.09] * 10 + [0.35, 0.4])
    assert find_unusual_runs(shares * 200, np.full(32, 200.0)) in (2, 3)


def test_usual_runs_give_no_warning():
    shares = np.array([0.1, 0.14, 0.07, 0.12] * 20)
    assert find_unusual_runs(shares * 200, np.full(80, 200.0)) is None


def test_first_runs_give_no_warning():
    assert find_unusual_runs(np.array([10.0] * 5 + [100.0] * 5), np.full(10, 100.0)) is None
