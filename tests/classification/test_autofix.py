"""AutoFix: sums become exactly 1, counts become right, and nothing else moves."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from builders import (
    GENOMIC,
    NO_EVIDENCE,
    TYPES,
    Json,
    an_issue,
    copy_with,
    copy_without,
    doc2_6,
    doc2_6_answer,
    evidence,
    one_segment,
    parse_answer,
)
from hypothesis import assume, given
from hypothesis import strategies as st

from evalkit.classification.autofix import AutoFixEngine, is_repairable
from evalkit.classification.schema import ClassificationOutput, normalise_shares
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.issue import Issue

SHARES = st.lists(st.integers(0, 10_000), min_size=5, max_size=5).map(lambda parts: [part / 10_000 for part in parts])


def parted(total: int, cuts: list[int]) -> list[float]:
    """Five shares of that many ten-thousandths, cut at these places."""
    edges = [0, *sorted(min(cut, total) for cut in cuts), total]
    return [(end - start) / 10_000 for start, end in pairwise(edges)]


#: Shares that sum to 0.90 … 1.10, but not to 0.99 … 1.01.
REPAIRABLE = st.builds(
    parted,
    st.one_of(st.integers(9_000, 9_899), st.integers(10_101, 11_000)),
    st.lists(st.integers(0, 11_000), min_size=4, max_size=4),
)


def found(answer: ClassificationOutput) -> list[Issue]:
    bundle = doc2_6()
    return [*V1SchemaValidator().validate(answer, bundle), *V2ConsistencyChecker().validate(answer, bundle)]


def mended(value: Json) -> Json:
    answer = parse_answer(value)
    return AutoFixEngine().apply(answer, found(answer))[0].to_json()


def total(shares: list[float]) -> Decimal:
    return sum((Decimal(str(share)) for share in shares), Decimal(0))


def shares_in(value: Json, place: int | None) -> list[float]:
    rows = value["document_mixture"] if place is None else value["segments"][place]["segment_composition"]
    return [row["overall_share" if place is None else "segment_share"] for row in rows]


def with_shares(value: Json, place: int | None, shares: list[float]) -> Json:
    name = (
        "document_mixture.{}.overall_share"
        if place is None
        else f"segments.{place}.segment_composition.{{}}.segment_share"
    )
    return copy_with(value, {name.format(position): share for position, share in enumerate(shares)})


# ----------------------------------------------------------------------------------------------- normalising


@given(SHARES)
def test_normalised_shares_sum_to_1_and_keep_their_order(shares: list[float]) -> None:
    assume(sum(shares) > 0)
    made = normalise_shares(shares)
    assert total(made) == 1
    assert all(share >= 0 for share in made)
    assert all(Decimal(str(share)) == Decimal(str(share)).quantize(Decimal("0.0001")) for share in made)
    in_order = [new for _, new in sorted(zip(shares, made, strict=True))]
    assert all(smaller <= larger for smaller, larger in pairwise(in_order))
    whole = total(shares)
    for old, new in zip(shares, made, strict=True):
        assert abs(Decimal(str(old)) / whole - Decimal(str(new))) < Decimal("0.0001")


@given(st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=9))
def test_normalising_holds_for_any_number_of_shares_of_any_size(shares: list[float]) -> None:
    assume(sum(shares) > 0)
    made = normalise_shares(shares)
    assert total(made) == 1
    assert all(share == 0 for old, share in zip(shares, made, strict=True) if old == 0)


@given(SHARES)
def test_what_is_right_already_stays_as_it_is(shares: list[float]) -> None:
    assume(sum(shares) > 0)
    once = normalise_shares(shares)
    assert normalise_shares(once) == once


@pytest.mark.parametrize("shares", [[], [0.0, 0.0], [1.2, -0.2], [-1.0]])
def test_there_must_be_something_to_divide_by(shares: list[float]) -> None:
    with pytest.raises(ValueError, match="share"):
        normalise_shares(shares)


# --------------------------------------------------------------------------------------------------- repairs


@given(REPAIRABLE, st.sampled_from([0, 1, None]))
def test_share_repair_changes_only_those_shares(shares: list[float], place: int | None) -> None:
    before = with_shares(doc2_6_answer(), place, shares)
    code = "V2-MIXTURE-SHARE-SUM" if place is None else "V2-SEGMENT-SHARE-SUM"
    answer = parse_answer(before)
    raised = [issue for issue in found(answer) if issue.code == code]
    after_answer, (repair,) = AutoFixEngine().apply(answer, raised)
    after = after_answer.to_json()
    assert total(shares_in(after, place)) == 1
    assert with_shares(after, place, shares) == parse_answer(before).to_json()
    assert (repair.issue_id, repair.code) == (raised[0].issue_id, code)
    assert (repair.before, repair.after) == (shares, shares_in(after, place))


@given(st.integers(0, 12_000))
def test_only_sums_near_one_are_repaired(part: int) -> None:
    """Ruling 2: |sum − 1| ≤ 0.10; above that nobody knows what was meant."""
    value = with_shares(one_segment(GENOMIC, 8), 0, [part / 10_000, 0.0, 0.0, 0.0, 0.0])
    after = shares_in(mended(value), 0)
    if 9_000 <= part <= 11_000 and not 9_900 <= part <= 10_100:
        assert total(after) == 1
    else:
        assert after == shares_in(value, 0)


@pytest.mark.parametrize(
    ("fault", "undone"),
    [
        ({"number_of_segments": 7}, {"number_of_segments": 7}),
        ({"segments.0.segment_page_count": 1}, {"segments.0.segment_page_count": 1}),
        ({"segments.1.segment_page_count": 90}, {"segments.1.segment_page_count": 90}),
    ],
)
def test_counts_are_counted_again_and_nothing_else_changes(fault: dict[str, Any], undone: dict[str, Any]) -> None:
    before = copy_with(doc2_6_answer(), fault)
    after = mended(before)
    assert after == parse_answer(doc2_6_answer()).to_json()
    assert copy_with(after, undone) == parse_answer(before).to_json()


@pytest.mark.parametrize("missing", [2, 3, 4])
@pytest.mark.parametrize("place", ["segments.0.segment_composition", "document_mixture"])
def test_missing_types_are_appended_as_no_evidence(place: str, missing: int) -> None:
    value = one_segment(GENOMIC, 8, evidence("BRCA1 c.5266dupC was detected", 2))
    after = mended(copy_without(value, place, missing))
    rows = after["document_mixture"] if place == "document_mixture" else after["segments"][0]["segment_composition"]
    assert [row["document_type"] for row in rows] == [kind for kind in TYPES if kind != TYPES[missing]] + [
        TYPES[missing]
    ]
    added = rows[-1]
    assert added["presence_level"] == NO_EVIDENCE
    assert {added[name] for name in added if name in ("confidence", "segment_share", "overall_share")} == {0.0}
    back = copy_without(after, place, 4)
    assert back == parse_answer(copy_without(value, place, missing)).to_json()


def test_all_repairs_at_once_leave_nothing_to_repair() -> None:
    broken = copy_with(
        doc2_6_answer(),
        {
            "number_of_segments": 9,
            "segments.0.segment_page_count": 2,
            "segments.0.segment_composition.0.segment_share": 0.91,
            "document_mixture.0.overall_share": 0.5,
        },
    )
    issues = found(parse_answer(broken))
    assert sum(issue.auto_fixable for issue in issues) == len(issues) == 4
    assert found(parse_answer(mended(broken))) == []


def test_offering_changes_nothing_and_offers_what_applying_does() -> None:
    answer = parse_answer(copy_with(doc2_6_answer(), {"number_of_segments": 3, "segments.0.segment_page_count": 2}))
    before = answer.to_json()
    offered = AutoFixEngine().propose(answer, found(answer))
    assert answer.to_json() == before
    assert offered == AutoFixEngine().apply(answer, found(answer))[1]
    assert [(one.before, one.after) for one in offered] == [(3, 2), (2, 5)]


@pytest.mark.parametrize(
    "issue",
    [
        an_issue("BLOCKER", agent="V1", code="V1-PAGE-RANGE", auto_fixable=True),
        an_issue("MAJOR", agent="V2", code="V2-SEMANTIC", auto_fixable=True, origin="model"),
        an_issue("BLOCKER", agent="V1", code="V1-SEGMENT-COUNT", auto_fixable=True, origin="model"),
        an_issue("BLOCKER", agent="V1", code="V1-SEGMENT-COUNT", auto_fixable=True, status="dismissed"),
        an_issue("BLOCKER", agent="V1", code="V1-SEGMENT-COUNT", auto_fixable=True, status="repaired"),
    ],
)
def test_issue_outside_repair_table_is_not_repaired(issue: Issue) -> None:
    """Ruling 2: the table decides what is auto-fixable, never the issue's own flag."""
    answer = parse_answer(copy_with(doc2_6_answer(), {"number_of_segments": 3}))
    assert AutoFixEngine().apply(answer, [issue]) == (answer, [])


def test_ambiguous_segment_index_is_not_repaired() -> None:
    answer = parse_answer(
        copy_with(doc2_6_answer(), {"segments.1.segment_index": 1, "segments.0.segment_page_count": 2})
    )
    assert not is_repairable("V1-PAGE-COUNT", answer, 1)
    assert AutoFixEngine().propose(answer, found(answer)) == []


def test_pages_that_run_backwards_have_no_count() -> None:
    answer = parse_answer(copy_with(doc2_6_answer(), {"segments.0.start_page": 9}))
    assert not is_repairable("V1-PAGE-COUNT", answer, 1)
