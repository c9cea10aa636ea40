"""Draws: spread over strata, each with the probability that it says, and kept by later runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest
from evaluation.studies import NOTE, OTHER, document, escalated_document, labels, study
from hypothesis import given
from hypothesis import strategies as st
from places import open_folder

from evalkit.errors import StoreError, UsageError
from evalkit.evaluation.sampling import draw_stratified_sample
from evalkit.pipeline.sample_draws import read_probability_by_drawn_doc_id

NOW = "2026-01-01T00:00:00.000Z"


def planned(made, number, by="type", seed="one"):
    return draw_stratified_sample(study(*made), number, by, seed=seed, drawn_at=NOW)


def test_rare_types_are_drawn_as_often_as_common_ones() -> None:
    common = [document(f"note{number}") for number in range(90)]
    rare = [document(f"other{number}", agent_labels=labels(OTHER)) for number in range(10)]
    draw = planned([*common, *rare], 10)
    assert {one.value: len(one.drawn) for one in draw.strata} == {NOTE: 5, OTHER: 5}
    by_name = {one.value: one for one in draw.strata}
    assert list(by_name[NOTE].probability.values()) == pytest.approx([0.2 + 0.8 * 5 / 90] * 90)
    assert list(by_name[OTHER].probability.values()) == pytest.approx([0.2 + 0.8 * 5 / 10] * 10)


def test_who_was_drawn_before_is_at_risk_and_is_not_drawn_again() -> None:
    made = [document("seen", truth_status="pending"), document("new"), document("worse", truth_status="reviewed")]
    (stratum,) = planned(made, 5).strata
    assert stratum.drawn == ("new",)
    assert stratum.probability == {"seen": 1.0, "new": 1.0, "worse": 1.0}


def test_what_is_in_the_queue_anyway_is_not_drawn() -> None:
    (stratum,) = planned(
        [escalated_document("hard"), document("broken", truth_status="unreadable", decision=None), document("a")], 3
    ).strata
    assert list(stratum.probability) == ["a"]


@pytest.mark.parametrize(
    ("made", "number", "by", "code"),
    [
        ([document("a", truth_status="pending")], 1, "type", "SAMPLE-NOTHING-LEFT"),
        ([], 1, "type", "SAMPLE-NOTHING-LEFT"),
        ([document("a")], 0, "type", "SAMPLE-NUMBER"),
        ([document("a")], 1, "colour", "SAMPLE-BY"),
    ],
)
def test_what_cannot_be_drawn_is_said(made, number, by, code) -> None:
    with pytest.raises(UsageError) as refused:
        planned(made, number, by)
    assert refused.value.code == code


@given(
    rooms=st.lists(st.integers(0, 30), min_size=1, max_size=5),
    number=st.integers(1, 80),
)
def test_strata_are_drawn_evenly_up_to_their_size(rooms, number) -> None:
    made = [
        document(f"{kind}_{at}", agent_labels=labels(f"type {kind}"))
        for kind, room in enumerate(rooms)
        for at in range(room)
    ]
    if not made:
        return
    draw = planned(made, number)
    drawn = {one.value: len(one.drawn) for one in draw.strata}
    assert sum(drawn.values()) == min(number, len(made))
    for one in draw.strata:
        left = len(one.probability) - len(one.drawn)
        assert left >= 0
        assert not left or all(more - len(one.drawn) <= 1 for more in drawn.values())


def test_each_document_is_drawn_as_often_as_its_probability_says() -> None:
    made = [document(f"d{number}", review_probability=0.0) for number in range(8)]
    times = Counter(name for seed in range(2000) for name in planned(made, 2, seed=str(seed)).strata[0].drawn)
    assert fmean(times.values()) == 2000 * 2 / 8
    assert all(abs(count - 500) < 5 * (2000 * 0.25 * 0.75) ** 0.5 for count in times.values())


@pytest.mark.parametrize(
    ("probability", "drawn"), [({"a": 1.5}, ["a"]), ({"a": -0.1}, []), ({"a": 0.5}, ["b"]), ({"a": "often"}, ["a"])]
)
def test_a_draw_that_cannot_have_been_is_a_damaged_file(tmp_path: Path, probability: dict, drawn: list) -> None:
    stratum = {"value": NOTE, "probability": probability, "drawn": drawn}
    files = open_folder(tmp_path)
    files.write_json("draws/0001.json", {"schema_version": 1, "by": "type", "drawn_at": NOW, "strata": [stratum]})
    with pytest.raises(StoreError, match=r"draws/0001\.json lacks fields"):
        read_probability_by_drawn_doc_id(files)


@pytest.mark.parametrize(
    ("lost", "found"), [("draws/0001.json", "draws/0002.json"), ("draws/0002.json", "draws/copy.json")]
)
def test_a_lost_draw_is_missed_and_a_stray_file_is_none(tmp_path: Path, lost: str, found: str) -> None:
    files = open_folder(tmp_path)
    for name in {"draws/0001.json", "draws/0002.json", found} - {lost}:
        files.write_json(name, {"schema_version": 1, "by": "type", "drawn_at": NOW, "strata": []})
    with pytest.raises(StoreError, match=f"{lost} is missing, but {found} exists"):
        read_probability_by_drawn_doc_id(files)
