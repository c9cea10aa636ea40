"""The streams are what their facts say, equal for equal seeds, and know nothing of what is measured on them."""

import ast
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from benchmarks.first_contact.streams import generating
from benchmarks.first_contact.streams.generating import (
    COLUMNS,
    HALVES,
    HERE,
    Stream,
    generate_stream,
    list_kinds,
    read_recipes,
    scale_probabilities,
)

#: A binomial count strays so many standard deviations from its mean in about one of a million cases.
STRAY = 5.0


def streams(half: str, seeds: Iterable[int] = (0,)) -> Iterator[Stream]:
    return (generate_stream(kind, seed) for kind in list_kinds(half) for seed in seeds)


def strays(hits: np.ndarray, chances: np.ndarray | float) -> float:
    """How many standard deviations a count of hits is from what the chances say."""
    chances = np.broadcast_to(chances, hits.shape)
    return abs(hits.sum() - chances.sum()) / max(np.sqrt((chances * (1 - chances)).sum()), 1e-9)


def test_the_generator_imports_nothing_of_evalkit():
    for path in HERE.glob("*.py"):
        tree = ast.parse(path.read_text())
        modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert not any(module.split(".")[0] == "evalkit" for module in modules), path.name


def test_both_halves_have_enough_kinds_of_their_own():
    halves = [set(list_kinds(half)) for half in HALVES]
    assert all(len(half) >= 12 for half in halves)
    assert not halves[0] & halves[1]
    told = (HERE / "README.md").read_text() + (HERE / "open.toml").read_text()
    assert not any(kind in told for kind in halves[1])


@pytest.mark.parametrize("half", HALVES)
def test_equal_seeds_give_equal_streams(half):
    for kind in list_kinds(half):
        first, again, other = (generate_stream(kind, seed) for seed in (3, 3, 4))
        for name in (*COLUMNS, "true_error_rate", "expected_error_rate"):
            assert np.array_equal(getattr(first, name), getattr(again, name))
        assert len(first.day) != len(other.day) or not np.array_equal(first.risk, other.risk)


@pytest.mark.parametrize("half", HALVES)
def test_columns_are_in_order_and_in_range(half):
    for stream in streams(half):
        assert {len(getattr(stream, name)) for name in COLUMNS} == {len(stream.day)}
        assert (np.diff(stream.day) >= 0).all()
        assert stream.day[-1] < stream.days
        assert stream.stratum.max() < stream.strata
        assert (stream.is_accepted ^ stream.is_escalated).all()
        for name in ("risk", "novelty", "reader_quality", "true_error_rate", "expected_error_rate"):
            assert getattr(stream, name).min() >= 0 <= 1 - getattr(stream, name).max(), name
        assert stream.answer_delay_days.min() > 0
        recipe = read_recipes(half)[stream.kind]
        assert 0 < len(stream.day) < 3 * recipe.days * recipe.documents_per_day


@pytest.mark.parametrize("half", HALVES)
def test_accepted_documents_are_wrong_as_often_as_stated(half):
    for stream in streams(half, seeds=(1, 2)):
        for stratum in range(stream.strata):
            chosen = stream.is_accepted & (stream.stratum == stratum)
            if chosen.sum() > 500:
                rates = stream.true_error_rate[stream.day[chosen], stratum]
                assert strays(stream.is_wrong[chosen], rates) < STRAY, (stream.kind, stratum)


@pytest.mark.parametrize("kind", ["fax_weeks", "bad_batches"])
def test_hidden_bad_days_average_to_the_expected_rate(kind):
    drawn = [generate_stream(kind, seed) for seed in range(40)]
    means = np.array([stream.true_error_rate.mean() for stream in drawn])
    assert abs(means.mean() - drawn[0].expected_error_rate.mean()) < STRAY * means.std() / np.sqrt(len(means))
    assert means.std() > 0


@pytest.mark.parametrize("half", HALVES)
def test_a_shift_is_where_the_facts_say(half):
    for stream in streams(half):
        if stream.brake == "never":
            assert stream.shift_day is None
        if stream.brake != "after_shift":
            continue
        day, strata = stream.shift_day, list(stream.shift_strata)
        until = stream.return_day or stream.days
        before, after = stream.expected_error_rate[:day, strata], stream.expected_error_rate[day:until, strata]
        assert before.max() < after.min()
        assert after.max() > 0.01
        if stream.return_day:
            assert np.array_equal(stream.expected_error_rate[until], stream.expected_error_rate[0])


def test_a_shift_is_seen_where_the_facts_say():
    for stream in streams("open"):
        if stream.shift_day is None:
            continue
        inside = np.isin(stream.stratum, stream.shift_strata)
        late = (
            inside
            & (stream.day >= (stream.return_day or stream.days) - 20)
            & (stream.day < (stream.return_day or stream.days))
        )
        early = inside & (stream.day < stream.shift_day)
        assert (stream.novelty[late].mean() - stream.novelty[early].mean() > 0.03) == stream.shift_is_visible_in_novelty
        quality = stream.reader_quality[early].mean() - stream.reader_quality[late].mean()
        assert (quality > 0.05) == stream.shift_is_visible_in_quality
        escalated = stream.is_escalated[late].mean() - stream.is_escalated[early].mean()
        assert (escalated > 0.05) == stream.shift_is_visible_in_escalations


def test_answers_are_missing_late_and_wrong_as_the_rows_say():
    for kind, recipe in read_recipes("open").items():
        stream = generate_stream(kind, 0)
        never, wrong = np.isinf(stream.answer_delay_days), stream.is_wrong
        assert strays(never, recipe.unanswered) < STRAY, kind
        assert strays(~stream.expert_says_wrong[wrong], recipe.expert_misses) < STRAY, kind
        assert strays(stream.expert_says_wrong[~wrong], recipe.expert_invents) < STRAY, kind
        assert np.median(stream.answer_delay_days[~never]) == pytest.approx(recipe.delay_median_days, rel=0.1), kind


@pytest.mark.parametrize(("kind", "factor"), [("constant_at", 1.0), ("overconfident", 0.25), ("useless_risks", 1.0)])
def test_stated_risks_are_as_calibrated_as_the_row_says(kind, factor):
    stream = generate_stream(kind, 0)
    accepted = stream.is_accepted
    assert stream.risk[accepted].mean() == pytest.approx(factor * stream.true_error_rate[0, 0], rel=0.06)
    riskiest = accepted & (stream.risk > np.quantile(stream.risk[accepted], 0.9))
    share = stream.is_wrong[riskiest].sum() / stream.is_wrong[accepted].sum()
    assert (share > 0.5) == (kind != "useless_risks")


def test_piles_of_documents_are_wrong_together():
    stream = generate_stream("bad_batches", 1)
    following = stream.is_wrong[1:][stream.is_wrong[:-1] & stream.is_accepted[:-1] & stream.is_accepted[1:]]
    assert following.mean() > 0.3 > 10 * stream.is_wrong[stream.is_accepted].mean()


def test_volumes_follow_the_rows():
    for kind in ("constant_above", "unanswered_at_random", "quiet_year"):
        recipe, stream = read_recipes("open")[kind], generate_stream(kind, 0)
        assert len(stream.day) / recipe.days == pytest.approx(recipe.documents_per_day, rel=0.03)


@pytest.mark.parametrize("rate", [0.0, 0.004, 0.01, 0.05, 1.0])
def test_scaled_probabilities_have_the_rate_as_their_mean(rate):
    stated = np.array([0.0, 0.002, 0.01, 0.028])
    scaled = scale_probabilities(stated, np.full(4, 0.01), np.full(4, rate))
    assert scaled.mean() == pytest.approx(rate)
    assert (np.diff(scaled) >= 0).all()


def test_an_unknown_kind_is_refused():
    with pytest.raises(KeyError):
        generating.generate_stream("no_such_kind", 0)
