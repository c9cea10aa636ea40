"""Judges of known sensitivity and specificity: the printed figures are theirs."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace

import pytest
from builders import finding
from evaluation.test_challenge import Silent, packet, plant

from evalkit.cli.render import render_challenge
from evalkit.evaluation.challenge.judge_performance import JUDGE_HEAD, JudgePerformance
from evalkit.evaluation.challenge.mutated_answer import AnswerOrigin, CleanAnswer
from evalkit.evaluation.challenge.report import MutationTestReport
from evalkit.llm.model import Answer, AnswerT, Question, Usage

KINDS = "evidence-courtesy,evidence-reference"
"""What only V4's question finds."""


class Judge(Silent):
    """V4 notices so many of ten planted faults, and raises an alarm about so many of ten answers as they were."""

    def __init__(self, noticed: int, alarms: int, price: str | None = "0.02") -> None:
        self.alarmed_of_ten = {"planted": noticed, "clean": alarms}
        self.price = price
        self.seen: set[str] = set()
        self.judged: Counter[str] = Counter()
        self.alarmed: Counter[str] = Counter()

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        if question.role != "V4":
            return await super().ask(question)
        sha256 = question.document_sha256
        what = "planted" if sha256 in self.seen else "clean"
        self.seen.add(sha256)
        is_alarm = self.judged[what] % 10 < self.alarmed_of_ten[what]
        self.judged[what] += 1
        self.alarmed[what] += is_alarm
        found = [finding("MAJOR").model_dump()] if is_alarm else []
        value = question.answer_type.model_validate({"findings": found})
        return Answer(question, value, usage=Usage(calls=2, input_tokens=9, output_tokens=9, cost_usd=self.price))


def copies(number: int, origin: AnswerOrigin = AnswerOrigin.SUPPLIED) -> list[CleanAnswer]:
    clean = packet()
    hashes = [hashlib.sha256(f"{origin} {copy}".encode()).hexdigest() for copy in range(number)]
    return [
        replace(clean, bundle=clean.bundle.model_copy(update={"sha256": sha256, "doc_id": sha256[:8]}), origin=origin)
        for sha256 in hashes
    ]


def challenge(judge: Judge, *cleans: CleanAnswer) -> MutationTestReport:
    return plant(cleans, KINDS, model=judge, max_cases_per_kind=30, max_places_per_document=2)


def v4(made: MutationTestReport) -> JudgePerformance:
    return next(row for row in made.measure_judges() if row.role == "V4")


@pytest.mark.parametrize(("noticed", "alarms"), [(7, 1), (9, 0), (4, 3), (10, 2)])
def test_sensitivity_and_specificity_are_recovered(noticed: int, alarms: int) -> None:
    judge = Judge(noticed, alarms)
    made = challenge(judge, *copies(20))
    row = v4(made)
    assert (row.detected, row.detection_rate.n) == (judge.alarmed["planted"], judge.judged["planted"])
    assert (row.false_alarms, row.false_alarm_rate.n) == (judge.alarmed["clean"], 20)
    assert row.false_alarm_rate.value == alarms / 10
    assert row.detection_rate.low <= noticed / 10 <= row.detection_rate.high
    # Said or not said are two degrees of suspicion: the area under their curve has this closed form.
    expected = (1 + (row.detection_rate.value or 0) - alarms / 10) / 2
    assert row.auroc.value == pytest.approx(expected)
    assert row.auroc.low < expected <= row.auroc.high


def test_an_error_costs_what_its_judge_was_paid() -> None:
    judge = Judge(5, 0)
    row = v4(challenge(judge, *copies(20)))
    planted, noticed = judge.judged["planted"], judge.alarmed["planted"]
    assert row.calls_per_error.value == pytest.approx(2 * planted / noticed)
    assert row.usd_per_error.value == pytest.approx(0.02 * planted / noticed)
    assert row.usd_per_error.low == pytest.approx(0.02 / row.detection_rate.high)
    assert row.usd_per_error.high == pytest.approx(0.02 / row.detection_rate.low)
    unpriced = v4(challenge(Judge(5, 0, price=None), *copies(20)))
    assert (unpriced.usd_per_error.value, unpriced.calls_per_error) == (None, row.calls_per_error)


def test_a_sleeping_judge_is_seen_in_the_table() -> None:
    made = challenge(Judge(0, 0), *copies(6))
    row = v4(made)
    assert (row.detected, row.auroc.value, row.usd_per_error.value) == (0, 0.5, None)
    assert json.loads(json.dumps(made.to_json(), allow_nan=False))["judges"][-1]["usd_per_error"]["high"] is None
    table = next(part for part in render_challenge(made) if getattr(part, "columns", None) == JUDGE_HEAD)
    cells = dict(zip(JUDGE_HEAD, table.rows[-1], strict=True))
    assert cells["faults noticed"].startswith(f"0 of {row.detection_rate.n}: 0 % (0–")
    assert cells["calls, dollars per fault noticed"] == "unknown; unknown"


def test_unvalidated_answers_are_corrected_for_the_judge() -> None:
    """Of those nobody has validated, one in ten is called wrong: as many as of the right ones, so none is."""
    judge = Judge(9, 1)
    made = challenge(judge, *copies(30), *copies(30, AnswerOrigin.UNVALIDATED))
    row = v4(made)
    assert (row.flagged, row.false_alarm_rate.value) == (3, 0.1)
    assert row.wrong_share.value == 0.0
    assert row.wrong_share.low == 0.0 < row.wrong_share.high < 0.6
    assert v4(challenge(Judge(9, 1), *copies(30))).wrong_share.value is None, "nothing unvalidated was judged"


def test_computed_issues_are_not_the_models() -> None:
    made = plant(copies(4), "label", model=Judge(0, 0))
    assert all(case.caught for case in made.cases)
    assert {row.role: row.detected for row in made.measure_judges()} == {"V2": 0, "V3": 0, "V4": 0}


def test_a_role_without_an_answer_is_not_measured() -> None:
    class Failing(Judge):
        async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
            if question.role == "V4" and question.document_sha256 in self.seen:
                return Answer(question, None, failure="it timed out")
            return await super().ask(question)

    row = v4(challenge(Failing(9, 0), *copies(3)))
    assert (row.detection_rate.n, row.detection_rate.value) == (0, None)
