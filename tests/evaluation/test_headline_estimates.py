"""Headlines: all processed documents in the denominator, drawn ones for as many as they stand for."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from evaluation.studies import GENOMIC, NOTE, OTHER, answer, document, escalated_document, labels, study, truth

from evalkit.evaluation.headline_estimates import (
    compute_page_type_accuracy,
    count_audits_for_precision,
    estimate_headlines,
    score_agent_segmentation,
    score_agent_type,
)
from evalkit.evaluation.intervals import estimate_proportion
from evalkit.evaluation.sampling import draw_stratified_sample
from evalkit.evaluation.study import add_review_probabilities


def figure(made, name):
    return next(one for one in estimate_headlines(study(*made)) if one.name == name)


def test_unreadable_pending_and_undeterminable_bound_estimate() -> None:
    made = [
        escalated_document("right", truth=truth()),
        escalated_document("wrong", truth=truth(OTHER)),
        escalated_document("waiting"),
        escalated_document("nobody", truth_status="undeterminable"),
        document("broken", truth_status="unreadable", decision=None, agent_labels=None, review_probability=None),
    ]
    one = figure(made, "Type of the document right")
    assert one.archive_estimate[:3] == pytest.approx((1 / 5, 1 / 5, 4 / 5))
    assert one.reviewed_estimate.value == 1 / 2
    assert (one.population_size, one.reviewed_count, one.wrong_doc_ids) == (5, 2, ("wrong",))


def test_an_audit_stands_for_as_many_as_its_probability_says() -> None:
    made = [escalated_document("hard", truth=truth(OTHER))]
    made += [document(f"audit{number}", truth=truth(), review_probability=0.2) for number in range(2)]
    made += [document(f"unseen{number}", review_probability=0.2) for number in range(7)]
    one = figure(made, "Type of the document right")
    assert one.estimate.value == pytest.approx(9 / 10)
    assert one.reviewed_estimate.value == pytest.approx(2 / 3)
    assert one.estimate.low < 0.5  # two audits say little of nine documents


def test_accepted_documents_nobody_looked_at_are_not_known() -> None:
    one = figure([document("unseen")], "Type right where accepted")
    assert one.estimate[:3] == (None, 0.0, 1.0)


def test_production_is_measured_where_it_has_a_label() -> None:
    made = [
        escalated_document("a", truth=truth(), production_labels=labels(GENOMIC)),
        escalated_document("b", truth=truth(), production_labels=labels(NOTE)),
        escalated_document("c", truth=truth()),
    ]
    one = figure(made, "Production's type right")
    assert (one.estimate.value, one.population_size, one.wrong_doc_ids) == (0.5, 2, ("a",))


@pytest.mark.parametrize(
    ("measure", "made", "value"),
    [
        (score_agent_type, escalated_document("a", truth=truth(), agent_labels=None), 0.0),
        (score_agent_type, escalated_document("a", truth=truth(vouched=frozenset({"segments"}))), None),
        (score_agent_segmentation, escalated_document("a", truth=truth(vouched=frozenset({"dominant_type"}))), None),
        (score_agent_segmentation, escalated_document("a", truth=truth(NOTE, (1, 1, NOTE), (2, 2, NOTE))), 0.0),
        (score_agent_segmentation, escalated_document("a", truth=truth(), agent_labels=None), 0.0),
        (compute_page_type_accuracy, escalated_document("a", truth=truth(NOTE, (1, 1, NOTE), (2, 2, OTHER))), 0.5),
        (compute_page_type_accuracy, escalated_document("a", truth=truth(), page_count=None), None),
    ],
)
def test_only_vouched_parts_count_and_no_answer_is_wrong(measure, made, value) -> None:
    assert measure(made) == value


def simulated(dice: random.Random) -> tuple[list, float]:
    """300 documents and their true share: the hard ones are wrong and escalated more often; others are drawn by chance."""
    made, right = [], 0
    for number in range(300):
        is_hard = dice.random() < 0.3
        is_right = dice.random() < (0.5 if is_hard else 0.97)
        right += is_right
        said = truth() if is_right else truth(OTHER)
        if dice.random() < (0.8 if is_hard else 0.05):
            made.append(escalated_document(f"d{number}", truth=said))
        else:
            made.append(document(f"d{number}", truth=said if dice.random() < 0.2 else None, review_probability=0.2))
    return made, right / 300


def test_estimate_covers_truth_despite_biased_escalation() -> None:
    dice = random.Random(7)
    rounds, covered, naive = 200, 0, 0
    for _ in range(rounds):
        made, share = simulated(dice)
        one = figure(made, "Type of the document right")
        covered += one.archive_estimate.low <= share <= one.archive_estimate.high
        naive += one.reviewed_estimate.low <= share <= one.reviewed_estimate.high
    assert covered / rounds >= 0.94
    assert naive / rounds < 0.2


def test_with_all_truths_known_the_headline_is_the_exact_interval() -> None:
    made = [escalated_document(f"d{number}", truth=truth(OTHER if number < 4 else NOTE)) for number in range(40)]
    one = figure(made, "Type of the document right")
    assert one.archive_estimate[:3] == (0.9, 0.9, 0.9)
    assert one.estimate[:3] == pytest.approx(estimate_proportion(36, 40)[:3])


def test_the_headline_covers_what_the_documents_come_from() -> None:
    dice = random.Random(11)
    rounds, covered, by_archive = 200, 0, 0
    for _ in range(rounds):
        made = []
        for number in range(80):
            said = truth(NOTE if dice.random() < 0.85 else OTHER, review_reason="audit")
            made.append(
                document(f"d{number}", truth=said, review_probability=0.9)
                if dice.random() < 0.9
                else document(f"d{number}")
            )
        one = figure(add_review_probabilities(made), "Type of the document right")
        covered += one.estimate.low <= 0.85 <= one.estimate.high
        by_archive += one.archive_estimate.low <= 0.85 <= one.archive_estimate.high
    assert covered / rounds >= 0.94
    assert by_archive / rounds < 0.9


def populated() -> list:
    """2,000 accepted documents: 200 genomic ones, of which 60 % are wrong, and 1,800 others, of which 1 % are."""
    dice = random.Random(3)
    made = []
    for number in range(2000):
        kind, risk = (GENOMIC, 0.6) if number >= 1800 else (OTHER, 0.01)
        said = truth(NOTE if dice.random() < risk else kind, review_reason="audit")
        seen = {"truth": said} if dice.random() < 0.2 else {}
        made.append((document(f"d{number}", agent_labels=labels(kind), weighting_cell=(0.2,), **seen), said))
    return made


def drawn_again(made: list, reviewed: frozenset[str]) -> list:
    """After 320 more were drawn by type, and those of the given types among them reviewed."""
    draw = draw_stratified_sample(
        study(*(one for one, _ in made)), 320, "type", seed="1", drawn_at="2026-01-01T00:00:00Z"
    )
    strata = {name: (chance, one.value) for one in draw.strata for name, chance in one.probability.items()}
    new = {name for one in draw.strata for name in one.drawn}
    after = []
    for one, said in made:
        chance, value = strata[one.doc_id]
        now = replace(one, inclusion_probability=chance, weighting_cell=(chance, f"1:{value}"))
        if one.doc_id in new:
            is_seen = one.agent_labels.dominant_type in reviewed
            now = replace(
                now,
                review_reason="sample",
                truth_status="reviewed" if is_seen else "pending",
                truth=said if is_seen else None,
            )
        after.append(now)
    return add_review_probabilities(after)


@pytest.mark.parametrize("types", [(), (OTHER,), (GENOMIC,), (OTHER, GENOMIC)])
def test_sample_draw_does_not_bias_figures_during_review(types) -> None:
    made = populated()
    true = sum(said.labels.dominant_type == one.agent_labels.dominant_type for one, said in made) / len(made)
    before = figure(add_review_probabilities(one for one, _ in made), "Type of the document right").estimate
    after = figure(drawn_again(made, frozenset(types)), "Type of the document right").estimate
    assert before.low < true < before.high
    assert after.low < true < after.high
    assert after.value == pytest.approx(true, abs=0.015)


def test_full_draw_does_not_lower_figures_while_pending() -> None:
    audited = [document(f"audited{number}", truth=truth(), weighting_cell=(0.2,)) for number in range(20)]
    unseen = [document(f"unseen{number}", review_reason=None, weighting_cell=(0.2,)) for number in range(80)]
    rare = [
        document(f"rare{number}", inclusion_probability=1.0, truth_status="pending", weighting_cell=(1.0, "1:rare"))
        for number in range(25)
    ]
    assert figure(add_review_probabilities([*audited, *unseen, *rare]), "Type right where accepted").estimate.value == 1
    begun = [replace(one, truth_status="reviewed", truth=truth()) for one in rare[:5]]
    made = add_review_probabilities([*audited, *unseen, *begun, *rare[5:]])
    assert figure(made, "Type right where accepted").estimate.value == 1
    assert [one.review_probability for one in made[-25:]] == [0.2] * 25


@pytest.mark.parametrize("drawn_with", [0.0, None])
def test_reviewed_documents_do_not_represent_undrawable_ones(drawn_with) -> None:
    looked = [document(f"looked{number}", truth=truth(), weighting_cell=(0.2,)) for number in range(50)]
    never = [
        document(f"never{number}", inclusion_probability=drawn_with, review_reason=None, weighting_cell=())
        for number in range(50)
    ]
    estimate = figure(add_review_probabilities([*looked, *never]), "Type right where accepted").estimate
    assert (estimate.value, estimate.high) == (0.5, 1.0)
    assert estimate.low < 0.5


def test_supplied_labels_do_not_count_as_reviewed_audits() -> None:
    """Of ten drawn documents that no label names two were looked at; ten others were drawn and have labels."""
    looked = [document(f"looked{number}", truth=truth()) for number in range(2)]
    waiting = [document(f"waiting{number}", truth_status="pending") for number in range(8)]
    given = [document(f"given{number}", truth=truth(source="GOLD"), review_reason="audit") for number in range(10)]
    made = add_review_probabilities([*looked, *waiting, *given])
    assert [one.review_probability for one in made] == pytest.approx([0.2 * 2 / 10] * 10 + [1.0] * 10)


def test_audits_that_are_disputed_or_put_off_are_not_left_out() -> None:
    made = [document(f"right{number}", truth=truth()) for number in range(90)]
    made += [
        document(f"disputed{number}", truth_status="pending", reviews=(answer(f"disputed{number}"),))
        for number in range(5)
    ]
    made += [document(f"put_off{number}", truth_status="pending", is_deferred=True) for number in range(5)]
    made += [document(f"unseen{number}") for number in range(400)]
    one = figure(made, "Type right where accepted")
    assert one.estimate.low < 0.85
    waiting = [document(f"waiting{number}", truth_status="pending") for number in range(10)]
    assert figure([*made[:90], *waiting], "Type right where accepted").estimate.low > 0.95


@pytest.mark.parametrize(("error_count", "audit_count"), [(2, 100), (10, 200)])
def test_audits_for_a_precision_are_as_many_as_it_takes(error_count, audit_count) -> None:
    def audited(count: int, wrong: int):
        return study(
            *(
                document(
                    f"d{number}", truth=truth(OTHER if number < wrong else NOTE), review_probability=0.05, risk=0.01
                )
                for number in range(count)
            ),
            *(document(f"u{number}", review_probability=0.05, risk=0.01) for number in range(19 * count)),
        )

    needed = count_audits_for_precision(audited(audit_count, error_count), 0.01)
    assert (needed.audit_count, needed.unseen_count) == (audit_count, 19 * audit_count)
    factor = (audit_count + needed.more_audits) / audit_count
    more = count_audits_for_precision(audited(round(audit_count * factor), round(error_count * factor)), 0.01)
    assert more.current_half_width == pytest.approx(0.01, rel=0.06)
    assert count_audits_for_precision(audited(audit_count, error_count), 0.3).more_audits == 0


def test_audits_for_a_precision_before_the_first_audit() -> None:
    needed = count_audits_for_precision(study(document("unseen")), 0.01)
    assert needed[1:3] == (0.5, 0)
    assert 1500 < needed.more_audits < 2500  # of one wrong in twenty


def test_risks_of_the_documents_narrow_the_estimate() -> None:
    dice = random.Random(4)

    def measure(*, is_informative: bool) -> float:
        made = []
        for number in range(1500):
            risk = 0.5 if dice.random() < 0.05 else 0.003
            said = OTHER if dice.random() < risk else NOTE
            known = truth(said) if dice.random() < 0.2 else None
            made.append(
                document(f"d{number}", truth=known, review_probability=0.2, risk=risk if is_informative else 0.03)
            )
        one = figure(made, "Type right where accepted")
        return one.estimate.high - one.estimate.low

    assert measure(is_informative=True) < 0.9 * measure(is_informative=False)
