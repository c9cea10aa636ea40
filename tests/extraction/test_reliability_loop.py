"""The loop: it stops in time, returns its best, and gives to a person what it cannot vouch for."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from builders import document
from extraction.reports import LETTERS, draw
from extraction.scripted import FINE, Said, Scripted, claims, judgement_of

from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.clinical.clinical_extractor import LOOKS, ClinicalExtractor
from evalkit.extraction.clinical.clinical_reader import find_values_near_mentions
from evalkit.extraction.clinical.report_structure import ClinicalReport
from evalkit.extraction.evaluator import ExtractionEvaluator
from evalkit.extraction.extraction_schema import Extraction, FieldStatus
from evalkit.extraction.field_template import get_field_template
from evalkit.extraction.optimizer import build_loop_config
from evalkit.extraction.reliability_loop import ReliabilityLoop, ReliabilityLoopResult, build_extraction
from evalkit.extraction.report_extraction import LOOP_METRICS
from evalkit.llm.model import Answer, AnswerT, Model, Question
from evalkit.settings import Settings

PATHOLOGY = get_field_template("pathology")
GRADE = next(field for field in PATHOLOGY.fields if field.name == "grade")
REPORT = document(
    "Final Diagnosis\nA. Left breast: Invasive ductal carcinoma, Nottingham grade 2.\n"
    "Margins: negative (4 mm)\nER: positive (95%); PR: positive (70%)"
)
FULL: Said = {
    "histology": "Invasive ductal carcinoma",
    "grade": "Nottingham grade 2",
    "margins": "negative (4 mm)",
    "ihcMarkers.ER": "positive (95%)",
    "ihcMarkers.PR": "positive (70%)",
}
PARTIAL: Said = {"histology": "Invasive ductal carcinoma"}
BETTER: Said = PARTIAL | {"grade": "Nottingham grade 2"}
ALTERED: Said = FULL | {"grade": "Nottingham grade 3"}


def run(model: Model, bundle: DocumentBundle = REPORT, progress: Any = None, **config: Any) -> ReliabilityLoopResult:
    loop = ReliabilityLoop(build_loop_config(**config), model)
    return asyncio.run(loop.execute(bundle, range(1, bundle.total_pages + 1), PATHOLOGY, progress))


def kept(result: ReliabilityLoopResult) -> Extraction:
    return build_extraction(result, PATHOLOGY, "Pathology Report", (1, 1))


def test_it_iterates_until_the_threshold_is_met() -> None:
    result = run(Scripted(PARTIAL, BETTER, FULL), quality_threshold=0.9)
    assert result.iteration_count == 3
    assert result.final_score is not None
    assert result.final_score >= 0.9
    assert (result.met_threshold, result.stopped_reason) == (True, "Quality threshold met")
    assert result.decision == "AUTO_ACCEPT"


def test_it_stops_at_max_iterations() -> None:
    result = run(Scripted(PARTIAL), max_iterations=3, min_improvement=0.0)
    assert (result.iteration_count, result.stopped_reason) == (3, "Max iterations reached")
    assert result.decision == "ESCALATE_TO_SME"


def test_it_stops_on_a_plateau() -> None:
    result = run(Scripted(PARTIAL), max_iterations=3)
    assert (result.iteration_count, result.stopped_reason) == (2, "Improvement (0.0%) below minimum (5.0%)")


def test_retry_prompt_has_feedback_and_priority_but_no_truth() -> None:
    model = Scripted(PARTIAL, FULL)
    run(model)
    first, second = model.prompts("extractor")
    assert "FEEDBACK" not in first
    assert second.startswith(first.rstrip())
    said = second[len(first.rstrip()) :]
    assert "PRIORITY: Focus extraction on these fields: grade, margins, ihcMarkers" in said
    assert "FEEDBACK FROM QUALITY EVALUATION (Iteration 1)" in said
    assert "Invasive ductal carcinoma" in said, "the attempt before"
    assert "Nottingham grade 2" not in said


def test_the_best_attempt_is_returned_and_not_the_last() -> None:
    worse = BETTER | {"margins": "negative (9 mm)"}
    result = run(Scripted(BETTER, worse), min_improvement=0.0, max_iterations=2)
    assert result.best_iteration is not None
    assert result.best_iteration.iteration_number == 1
    assert result.best_iteration.attempt.fields["grade"].value == "2"
    assert result.final_score == max(one.score.overall or 0 for one in result.history)
    assert result.history[1].improvement is not None
    assert result.history[1].improvement < 0


def test_proven_values_are_kept_between_attempts() -> None:
    forgetful: Said = {
        "margins": "negative (4 mm)",
        "ihcMarkers.ER": "positive (95%)",
        "ihcMarkers.PR": "positive (70%)",
    }
    result = run(Scripted(BETTER, forgetful | {"histology": "Breast"}))
    assert result.best_iteration is not None
    fields = result.best_iteration.attempt.fields
    assert (fields["histology"].value, fields["grade"].value) == ("Invasive ductal carcinoma", "2")
    assert (result.iteration_count, result.decision) == (2, "AUTO_ACCEPT")


def test_each_attempt_is_asked_to_look_in_another_way() -> None:
    model = Scripted(PARTIAL)
    run(model, max_iterations=3, min_improvement=0.0)
    prompts = model.prompts("extractor")
    instructions = [
        {look.instruction for look in LOOKS if look.instruction and look.instruction in prompt} for prompt in prompts
    ]
    assert instructions == [set(), {LOOKS[1].instruction}, {LOOKS[2].instruction}]


def test_the_third_offline_look_finds_values_near_mentions() -> None:
    bundle = document(
        "Diagnosis: Invasive ductal carcinoma.\nDifferentiation of the carcinoma:\nModerately differentiated"
    )
    readings = list(find_values_near_mentions(GRADE, ClinicalReport(bundle.pages)))
    assert [reading.text for reading in readings][:1] == ["Moderately differentiated"]
    history = document("Clinical History\nGrading before surgery was grade 3.")
    assert [reading.text for reading in find_values_near_mentions(GRADE, ClinicalReport(history.pages))][:1] == [
        "grade 3"
    ]


def test_doubted_values_are_not_kept() -> None:
    result = run(Scripted(ALTERED, BETTER, FULL, judgements=[judgement_of(margins=0.5), FINE]), min_improvement=0.0)
    second = result.history[1].attempt.fields
    assert (second["grade"].value, second["margins"].value) == ("2", None)
    assert second["ihcMarkers.ER"].is_found


def test_numbered_entries_are_added_once() -> None:
    page = document("Findings: Lesion of 12 mm, another of 9 mm. Impression: stable.")
    template = get_field_template("radiology")
    said: list[Said] = [{"measurements.1": "12 mm"}, {"measurements.1": "9 mm", "measurements.2": "12 mm"}]
    loop = ReliabilityLoop(build_loop_config(), Scripted(*said))
    result = asyncio.run(loop.execute(page, [1], template))
    fields = result.history[1].attempt.fields
    sizes = {name: value.value for name, value in fields.items() if name.startswith("measurements")}
    assert sizes == {"measurements.1": "12 mm", "measurements.2": "9 mm"}


def test_value_not_on_the_page_is_never_accepted() -> None:
    result = run(Scripted(ALTERED), quality_threshold=0.5)
    assert result.met_threshold
    assert result.decision == "ESCALATE_TO_SME"
    assert result.best_iteration is not None
    assert not result.best_iteration.attempt.fields["grade"].is_found
    issues = {issue.location: issue for issue in kept(result).issues}
    assert issues["grade"].code == "EXTRACTION-NOT-ON-PAGE"
    assert issues["grade"].difference is not None


def test_single_wrong_value_escalates_despite_a_high_score() -> None:
    result = run(Scripted(FULL, judgements=[judgement_of(ihcMarkers__ER=0.5)]), quality_threshold=0.9)
    assert result.met_threshold
    assert result.decision == "ESCALATE_TO_SME"


def test_absent_field_is_not_present_after_one_iteration() -> None:
    biopsy = document("Diagnosis: Invasive ductal carcinoma, grade 2.")
    result = run(Scripted({"histology": "Invasive ductal carcinoma", "grade": "grade 2", "margins": None}), biopsy)
    assert result.iteration_count == 1
    assert result.best_iteration is not None
    assert result.best_iteration.attempt.fields["margins"].status is FieldStatus.NOT_PRESENT
    assert result.decision == "AUTO_ACCEPT"


def test_a_report_without_any_required_field_is_never_accepted() -> None:
    other = document("Northgate Hospital\nReported: 02/07/2025")
    result = run(Scripted({"date": "02/07/2025", "institution": "Northgate Hospital"}), other)
    assert result.final_score == 1.0
    assert result.decision == "ESCALATE_TO_SME"
    assert "EXTRACTION-NONE" in {issue.code for issue in kept(result).issues}


def test_uncertain_extractor_value_escalates() -> None:
    answers = claims(FULL)
    grade = next(one for one in answers.fields if one.field == "grade")
    doubted = [one.model_copy(update={"confidence": 0.8}) if one is grade else one for one in answers.fields]
    result = run(Scripted(answers.model_copy(update={"fields": tuple(doubted)})))
    assert (result.final_score, result.decision) == (1.0, "ESCALATE_TO_SME")
    (issue,) = kept(result).issues
    assert (issue.code, issue.location, issue.page) == ("EXTRACTION-UNSURE", "grade", 1)


def test_mentioned_but_unread_field_is_ambiguous() -> None:
    fields = kept(run(Scripted(PARTIAL))).fields
    assert fields["grade"].status is FieldStatus.AMBIGUOUS
    assert fields["stage"].status is FieldStatus.NOT_PRESENT


def test_what_no_field_has_is_named_and_lies_on_its_page() -> None:
    start = REPORT.page(1).text.index("PR:")
    first_word = (start, start + 3, 1000, 5000, 1400, 5200)
    bundle = REPORT.model_copy(update={"pages": (REPORT.page(1).model_copy(update={"words": (first_word,)}),)})
    issues = kept(run(Scripted({name: said for name, said in FULL.items() if not name.endswith("PR")}), bundle)).issues
    (issue,) = [issue for issue in issues if issue.facts.get("doubt") == "unread"]
    assert (issue.location, issue.page, issue.facts["item"]) == ("ihcMarkers", 1, "PR: positive")
    assert issue.boxes == ((1, 0.1, 0.5, 0.14, 0.52),)


def test_a_judge_that_fails_leaves_no_score_and_a_person_decides() -> None:
    result = run(Scripted(FULL, judgements=[None]))
    assert (result.final_score, result.met_threshold) == (None, False)
    assert result.decision == "ESCALATE_TO_SME"
    extraction = kept(result)
    assert extraction.score is None
    assert extraction.fields["grade"].value == "2", "what was read is kept"
    assert "EVALUATOR-AGENT-FAILED" in {issue.code for issue in extraction.issues}


def test_failing_judge_keeps_the_earlier_score() -> None:
    result = run(Scripted(PARTIAL, FULL, judgements=[FINE, None]))
    assert result.best_iteration is not None
    assert result.best_iteration.iteration_number == 1
    assert result.decision == "ESCALATE_TO_SME"


def test_an_extractor_that_fails_leaves_what_was_read_before() -> None:
    result = run(Scripted(PARTIAL, None))
    assert result.iteration_count == 1
    assert result.stopped_reason == "The extractor gave no usable answer"
    assert "EXTRACTOR-AGENT-FAILED" in {issue.code for issue in kept(result).issues}


class _Hanging:
    """Answers the first calls, then never."""

    name = "hanging"

    def __init__(self, role: str, calls: int) -> None:
        self._role, self._left = role, calls
        self._says = Scripted(PARTIAL)

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        if question.role == self._role:
            self._left -= 1
            if self._left < 0:
                await asyncio.Event().wait()
        return await self._says.ask(question)


HANGS = [("extractor", 0, 0), ("evaluator", 0, 0), ("extractor", 1, 1), ("evaluator", 1, 1)]


@pytest.mark.parametrize(("role", "calls", "finished"), HANGS)
def test_the_deadline_ends_any_call(role: str, calls: int, finished: int) -> None:
    result = run(_Hanging(role, calls), timeout_ms=400, min_improvement=0.0)
    assert (result.iteration_count, result.stopped_reason) == (finished, "Timeout exceeded")
    assert result.decision == "ESCALATE_TO_SME"
    assert {name.partition(".")[0] for name in kept(result).fields} == {field.name for field in PATHOLOGY.fields}
    assert result.processing_seconds < 2


def test_progress_is_told_after_each_attempt() -> None:
    told: list[tuple[int, float | None]] = []
    run(Scripted(PARTIAL, FULL), progress=lambda number, score: told.append((number, score)))
    assert [number for number, _ in told] == [1, 2]
    assert told[1][1] == 1.0


def test_log_line_has_specified_keys_and_no_document_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "evalkit"):
        run(Scripted(PARTIAL, FULL))
    lines = [json.loads(record.message) for record in caplog.records if "marc_iteration" in record.message]
    assert [line["iteration"] for line in lines] == [1, 2]
    assert lines[0]["event"] == "marc_iteration"
    assert lines[0]["documentId"] == REPORT.sha256[:12]
    assert lines[0]["score"].keys() == {"overall", "completeness", "accuracy", "validity", "consistency"}
    assert lines[0]["feedback"] == {
        "issueCount": 4,
        "criticalCount": 1,
        "missingFields": ["grade", "margins", "ihcMarkers"],
    }
    assert (lines[0]["improvement"], lines[1]["improvement"]) == (None, pytest.approx(1 - lines[0]["score"]["overall"]))
    assert "arcinoma" not in caplog.text


def test_the_history_is_kept_with_ids_of_issues_that_are_there() -> None:
    extraction = kept(run(Scripted(PARTIAL, FULL)))
    assert [one.iteration for one in extraction.history] == [1, 2]
    assert "PRIORITY" in extraction.history[0].feedback
    assert extraction.history[1].feedback == ""
    ids = [issue.issue_id for issue in extraction.issues]
    assert len(ids) == len(set(ids))
    assert set(extraction.history[0].issues) <= set(ids)
    assert {issue.status for issue in extraction.issues} == {"repaired"}
    assert Extraction.model_validate_json(extraction.model_dump_json()) == extraction


def test_what_was_below_eight_tenths_is_a_persons_first() -> None:
    low = kept(run(Scripted(PARTIAL), max_iterations=1))
    high = kept(run(Scripted(BETTER | {"margins": "negative (4 mm)"}), max_iterations=1))
    assert [one.score is not None and one.score < 0.8 for one in (low, high)] == [True, False]
    said = [
        next(issue.severity.value for issue in one.issues if issue.code == "EXTRACTION-THRESHOLD")
        for one in (low, high)
    ]
    assert said == ["BLOCKER", "MAJOR"]


def list_alerts(result: ReliabilityLoopResult) -> set[str]:
    measured = kept(result), result.processing_seconds
    return {metric.name for metric in LOOP_METRICS if any(map(metric.is_alert, metric.measure(*measured)))}


def test_metrics_and_their_alerts() -> None:
    good, poor = run(Scripted(FULL)), run(Scripted(PARTIAL))
    measure_iterations = next(metric.measure for metric in LOOP_METRICS if metric.name == "marc.iteration_count")
    assert [list(measure_iterations(kept(result), 0.0)) for result in (good, poor)] == [[1], [2]]
    assert list_alerts(good) == set()
    assert list_alerts(poor) == {"marc.final_score", "marc.improvement_per_iteration"}
    many = run(Scripted(PARTIAL), max_iterations=4, min_improvement=0.0)
    slow = ReliabilityLoopResult(good.best_iteration, good.history, True, "", 46.0)
    assert "marc.iteration_count" in list_alerts(many)
    assert list_alerts(slow) == {"marc.processing_time_ms"}
    nothing = ReliabilityLoopResult(None, (), False, "", 0.0)
    assert list_alerts(nothing) == set()


VARIABLES = {
    "MARC_QUALITY_THRESHOLD": ("0.9", "quality_threshold", 0.9),
    "MARC_MAX_ITERATIONS": ("4", "max_iterations", 4),
    "MARC_MIN_IMPROVEMENT": ("0.01", "min_improvement", 0.01),
    "MARC_TIMEOUT_MS": ("1234", "timeout_ms", 1234),
    "MARC_RELIABILITY_LOOP_ENABLED": ("false", "enabled", False),
}


def test_the_specifications_variables_are_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalkit.toml").write_text("[reliability_loop]\nmax_iterations = 7\nprofile = 'clinical'\n")
    for variable, (said, _, _) in VARIABLES.items():
        monkeypatch.setenv(variable, said)
    loop = Settings.load().reliability_loop
    assert {name: getattr(loop, name) for _, name, _ in VARIABLES.values()} == {
        name: value for _, name, value in VARIABLES.values()
    }
    assert loop.profile == "clinical"
    monkeypatch.setenv("EVALKIT_RELIABILITY_LOOP__MAX_ITERATIONS", "2")
    assert Settings.load().reliability_loop.max_iterations == 2
    assert Settings.load(reliability_loop={"max_iterations": 1}).reliability_loop.max_iterations == 1


@pytest.mark.parametrize("kind", ["pathology", "radiology", "genomics", "lab-report"])
def test_the_embedded_model_uses_the_feedback(kind: str) -> None:
    for seed in range(16):
        drawn = draw(kind, seed)
        if drawn.layout in LETTERS:
            continue
        result = asyncio.run(ReliabilityLoop().execute(drawn.bundle, [1], get_field_template(kind)))
        right = [
            sum(
                one.attempt.fields.get(name) is not None and one.attempt.fields[name].value == known.value
                for name, known in drawn.truth.items()
            )
            for one in (result.history[0], result.best_iteration)
            if one
        ]
        assert right[1] >= right[0]
        assert right[1] == len(drawn.truth), (drawn.layout, seed)


def test_the_second_attempt_finds_what_the_feedback_names() -> None:
    bundle = document("Details\nA nodule of 6 mm.\nResult\nA stable nodule.")
    result = asyncio.run(ReliabilityLoop().execute(bundle, [1], get_field_template("radiology")))
    first, best = (
        iteration.attempt.fields["impression"].value
        for iteration in (result.history[0], result.best_iteration)
        if iteration
    )
    assert (first, best) == (None, "A stable nodule.")


def test_two_models_may_have_the_two_roles() -> None:
    extracts, judges = Scripted(FULL), Scripted(judgements=[judgement_of(grade=0.0)])
    loop = ReliabilityLoop(extractor=ClinicalExtractor(extracts), evaluator=ExtractionEvaluator(judges))
    asyncio.run(loop.execute(REPORT, [1], PATHOLOGY))
    assert {role for role, _ in extracts.asked} == {"extractor"}
    assert {role for role, _ in judges.asked} == {"evaluator"}
