"""Scores and feedback (specification 002, sections 3.3.1 and 6.1)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from builders import document
from extraction.scripted import FINE, Said, Scripted, claims, found_value, judgement_of
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.clinical.clinical_extractor import (
    ClinicalAttempt,
    find_mentioned_fields,
    ground_claims,
    split_pages_by_size,
)
from evalkit.extraction.clinical.field_contradictions import settle_contradictions
from evalkit.extraction.clinical.report_structure import ClinicalReport
from evalkit.extraction.evaluator import (
    DIMENSION_WEIGHTS,
    AccuracyJudgement,
    AccuracyQuestion,
    ExtractionEvaluation,
    ExtractionEvaluator,
    score_accuracy,
    score_completeness,
)
from evalkit.extraction.field_template import get_field_template
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.answer_normalisation import AnswerShapeError
from evalkit.llm.model import Model

PATHOLOGY = get_field_template("pathology")
REPORT = document(
    "Northgate University Hospital\nFinal Diagnosis\nA. Left breast: Invasive ductal carcinoma, Nottingham grade 2.\n"
    "Margins: negative (4 mm)\nER: positive (95%)\nPR: positive (70%)\nReported: 02/07/2025"
)
WHOLE: Said = {
    "histology": "Invasive ductal carcinoma",
    "grade": "Nottingham grade 2",
    "margins": "negative (4 mm)",
    "ihcMarkers.ER": "positive (95%)",
    "ihcMarkers.PR": "positive (70%)",
    "date": "02/07/2025",
    "institution": "Northgate University Hospital",
}


def attempted(said: Said, bundle: DocumentBundle = REPORT, name: str = "pathology") -> ClinicalAttempt:
    pages = tuple(range(1, bundle.total_pages + 1))
    fields, unproven = ground_claims(claims(said).fields, bundle, pages, get_field_template(name))
    template, report = get_field_template(name), ClinicalReport(bundle.pages)
    fields = settle_contradictions(fields, template, report)
    return ClinicalAttempt(bundle, pages, template, report, find_mentioned_fields(template, report), fields, unproven)


def evaluated(said: Said, model: Model | None = None, **more: Any) -> ExtractionEvaluation:
    return asyncio.run(ExtractionEvaluator(model, **more).evaluate(attempted(said)))


def measure_completeness(attempt: ClinicalAttempt) -> float:
    return asyncio.run(ExtractionEvaluator().evaluate(attempt)).score.completeness


def without(*names: str) -> Said:
    return {name: words for name, words in WHOLE.items() if name not in names}


# ------------------------------------------------------------------------------------------------- completeness


def test_completeness_without_important_pathology_fields() -> None:
    data = {"histology": found_value("Invasive ductal carcinoma"), "grade": found_value("2")}
    spoken = {"histology", "grade", "margins", "ihcMarkers"}
    score, breakdown = score_completeness(PATHOLOGY, data, spoken)
    assert score < 0.8
    assert score == pytest.approx(2.0 / 3.4)
    assert {one.field: one.score for one in breakdown} == {
        "histology": 1,
        "grade": 1,
        "margins": 0.5,
        "ihcMarkers": 0.5,
    }


WEIGHED = [
    # found, spoken of besides, score
    (("histology", "grade", "margins", "ihcMarkers.ER", "date", "institution", "rawText"), (), 1.0),
    (("histology",), ("grade",), 0.5),
    (("histology", "grade"), ("margins",), 2 / 2.7),
    (("histology", "grade"), ("date",), 2 / 2.3),
    (("histology", "grade"), (), 1.0),
    (("date",), ("histology", "grade"), 0.3 / 2.3),
    ((), ("histology",), 0.0),
    ((), (), 0.0),
]


@pytest.mark.parametrize(("there", "besides", "score"), WEIGHED)
def test_completeness_is_weighted_by_need(there: tuple[str, ...], besides: tuple[str, ...], score: float) -> None:
    fields = {name: found_value("x") for name in there}
    assert score_completeness(PATHOLOGY, fields, besides)[0] == pytest.approx(score)


def test_an_extra_field_is_outside_the_score() -> None:
    fields = {"histology": found_value("x"), "grade": found_value("2")}
    assert score_completeness(PATHOLOGY, fields | {"stage": found_value("pT1")}, ()) == score_completeness(
        PATHOLOGY, fields, ()
    )


def test_absent_field_is_out_of_the_denominator() -> None:
    biopsy = document("Diagnosis: Invasive ductal carcinoma, grade 2.")
    one = attempted({"histology": "Invasive ductal carcinoma", "grade": "grade 2"}, biopsy)
    assert measure_completeness(one) == 1.0


def test_a_field_that_the_report_says_is_not_told_is_not_missed() -> None:
    told = document("Histologic type: Invasive ductal carcinoma\nGrade: 2\nMargins: Not specified.")
    one = attempted({"histology": "Invasive ductal carcinoma", "grade": "2"}, told)
    assert measure_completeness(one) == 1.0


def test_not_present_is_refused_if_the_text_has_the_field() -> None:
    lazy = evaluated({"histology": "Invasive ductal carcinoma", "grade": None})
    assert "grade" in lazy.feedback.missing_fields
    assert lazy.score.completeness < 0.7


def test_marker_named_in_the_report_but_not_answered_is_missing() -> None:
    lacking = evaluated(without("ihcMarkers.PR"))
    assert lacking.score.completeness < evaluated(WHOLE).score.completeness
    assert any('prints the stain "PR: positive"' in issue.description for issue in lacking.feedback.issues)


# ------------------------------------------------------------------------------------------------- accuracy


def test_a_value_that_is_not_on_the_page_scores_nothing() -> None:
    altered = evaluated(without("grade") | {"grade": "Nottingham grade 3"})
    assert altered.score.accuracy == pytest.approx(6 / 7)
    issue = next(issue for issue in altered.feedback.issues if issue.field == "grade")
    assert issue.severity == "critical"
    assert altered.feedback.priority_fields[0] == "grade"


def test_nothing_claimed_is_not_accurate() -> None:
    assert score_accuracy(PATHOLOGY, {}, ())[0] == 0.0


def test_no_fields_is_a_full_score_if_none_is_required() -> None:
    note = document("Chief complaint: cough for three weeks.")
    one = attempted({}, note, "clinical-notes")
    evaluation = asyncio.run(ExtractionEvaluator().evaluate(one))
    assert evaluation.score.overall == 1.0


def test_a_doubt_on_a_recognised_page_is_worth_half() -> None:
    issue = Issue.create("extractor", "EXTRACTION-NOT-ON-PAGE", IssueSeverity.MAJOR, "misread", location="grade")
    assert score_accuracy(PATHOLOGY, {"histology": found_value("x")}, [issue])[0] == 0.75


def test_the_judges_word_only_lowers() -> None:
    fields = {"histology": found_value("carcinoma", quote="negative for carcinoma"), "grade": found_value("2")}
    praised = score_accuracy(PATHOLOGY, fields, (), [judgement_of(histology=1.0, grade=1.0)])
    assert praised[0] == score_accuracy(PATHOLOGY, fields, ())[0] == 0.5
    assert score_accuracy(PATHOLOGY, fields, (), [judgement_of(grade=0.2)])[0] == pytest.approx(0.1)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(["histology", "grade", "margins", "nothing"]), st.floats(allow_nan=True)))
def test_no_opinion_raises_the_accuracy(scores: dict[str, float]) -> None:
    fields = {
        "histology": found_value("carcinoma"),
        "grade": found_value("grade 2"),
        "margins": found_value("negative"),
    }
    assert (
        0.0
        <= score_accuracy(PATHOLOGY, fields, (), [judgement_of(**scores)])[0]
        <= score_accuracy(PATHOLOGY, fields, ())[0]
    )


def test_inaccurate_judgement_caps_its_own_score() -> None:
    torn = AccuracyJudgement.model_validate({"field_scores": [{"field": "grade", "accurate": False, "score": 1.0}]})
    assert score_accuracy(PATHOLOGY, {"grade": found_value("2")}, (), [torn])[0] == 0.5


def test_an_ensemble_counts_by_its_median() -> None:
    models = [Scripted(judgements=[judgement_of(grade=score)]) for score in (0.0, 0.5, 1.0)]
    told = evaluated(WHOLE, ensemble=models)
    assert told.score.accuracy == pytest.approx((6 + 0.5) / 7)


def test_silent_judges_do_not_lower_the_score() -> None:
    models = [Scripted(judgements=[judgement_of(grade=0.0)]), Scripted(), Scripted()]
    assert evaluated(WHOLE, ensemble=models).score.accuracy == 1.0


def test_one_of_an_ensemble_that_fails_leaves_no_score() -> None:
    models = [Scripted(judgements=[FINE]), Scripted(judgements=[None])]
    told = evaluated(WHOLE, ensemble=models)
    assert (told.score.overall, told.score.accuracy) == (None, None)
    assert told.failure == "it timed out (LLM-TIMEOUT)"


def test_another_reading_of_the_same_field_is_a_contradiction() -> None:
    torn = document("Diagnosis: Invasive ductal carcinoma, grade 2.\nHistologic grade: 3")
    one = attempted({"histology": "Invasive ductal carcinoma", "grade": "grade 2"}, torn)
    for judge in (None, Scripted()):  # whoever judges, and praises it
        told = asyncio.run(ExtractionEvaluator(judge).evaluate(one))
        expected = 'Extracted "3" from page 1, but the source also says "2" on page 1: which is right?'
        assert expected in [issue.description for issue in told.feedback.issues if issue.field == "grade"]


# ------------------------------------------------------------------------------------------------- the whole


def test_the_weights_are_the_specifications() -> None:
    assert DIMENSION_WEIGHTS == {"completeness": 0.3, "accuracy": 0.4, "consistency": 0.15, "clinical_validity": 0.15}


def test_overall_is_the_weighted_sum() -> None:
    told = evaluated(without("grade") | {"grade": "Nottingham grade 3"}).score
    assert told.accuracy is not None
    expected = 0.3 * told.completeness + 0.4 * told.accuracy + 0.15 * told.consistency + 0.15 * told.clinical_validity
    assert told.overall == pytest.approx(expected, abs=1e-4)


def test_a_whole_extraction_has_nothing_to_mend() -> None:
    told = evaluated(WHOLE)
    assert told.score.overall == 1.0
    assert told.feedback.issues == ()


def test_feedback_names_the_worst_first() -> None:
    told = evaluated({"histology": "Invasive ductal carcinoma", "margins": "negative", "date": None}).feedback
    assert [issue.severity for issue in told.issues] == sorted(
        (issue.severity for issue in told.issues), key=("critical", "major", "minor").index
    )
    assert told.missing_fields == ("grade", "ihcMarkers")
    assert told.priority_fields[0] == "grade"
    assert set(told.priority_fields) == {"grade", "ihcMarkers", "margins"}
    assert any("Nottingham score" in said for said in told.suggestions)


def test_the_judge_is_shown_the_whole_report() -> None:
    long = document("word " * 2000 + "\nGrade: 2")
    model = Scripted()
    asyncio.run(ExtractionEvaluator(model).evaluate(attempted({"grade": "2"}, long)))
    (prompt,) = model.prompts("evaluator")
    assert prompt.index("Grade: 2") > 4000
    assert '"grade":"2"' in prompt


def test_pages_are_asked_about_in_windows_and_none_twice() -> None:
    bundle = document("a" * 60, "b" * 60, "c" * 200, "d")
    assert split_pages_by_size(bundle, (1, 2, 3, 4), 130) == [(1, 2), (3,), (4,)]
    assert split_pages_by_size(bundle, (1, 2, 3, 4), None) == [(1, 2, 3, 4)]


def test_two_impressions_of_two_examinations_are_a_contradiction() -> None:
    both = document("CT HEAD\nIMPRESSION: No bleeding.\nCT NECK\nFINDINGS: A crack in C2.\nIMPRESSION: Fracture of C2.")
    one = attempted({"impression": "No bleeding."}, both, "radiology")
    told = asyncio.run(ExtractionEvaluator().evaluate(one))
    assert any("Fracture of C2" in issue.description for issue in told.feedback.issues)


def test_what_a_report_explains_is_no_contradiction() -> None:
    told = document(
        "MSI status: MSS\nTumors are called MSI-H where many markers are unstable.\nKRAS c.35G>A (p.Gly12Asp)"
    )
    one = attempted({"mutations.1": "KRAS c.35G>A (p.Gly12Asp)", "msiStatus": "MSS"}, told, "genomics")
    assert asyncio.run(ExtractionEvaluator().evaluate(one)).feedback.issues == ()


def test_two_specimens_with_opposite_results_are_a_contradiction() -> None:
    text = "A. Diagnosis: Carcinoma, grade 2.\nER: positive (90%); Ki-67: 20%\nB. ER: negative (0%); Ki-67: 40%"
    one = attempted({"ihcMarkers.ER": "positive (90%)", "ihcMarkers.Ki-67": "20%"}, document(text))
    told = asyncio.run(ExtractionEvaluator().evaluate(one))
    said = {issue.field: issue.description for issue in told.feedback.issues}
    assert 'the source also says "negative, 0%"' in said["ihcMarkers.ER"]
    assert 'the source also says "20%"' in said["ihcMarkers.Ki-67"]


def test_a_test_with_two_results_is_a_contradiction() -> None:
    text = (
        "Lab Results\nGlucose 90 mg/dL (Ref: 65-99), Sodium 140 mmol/L (Ref: 135-146)\nGlucose 210 mg/dL (Ref: 65-99)"
    )
    said = {"labValues.Glucose": "90 mg/dL (Ref: 65-99)", "labValues.Sodium": "140 mmol/L (Ref: 135-146)"}
    told = asyncio.run(ExtractionEvaluator().evaluate(attempted(said, document(text), "lab-report")))
    (issue,) = [issue for issue in told.feedback.issues if issue.field.startswith("labValues")]
    assert "210 mg/dL" in issue.description


def test_a_judge_that_leaves_out_a_value_is_told_the_field() -> None:
    attempt = attempted({"grade": "Grade 2", "ihcMarkers.ER": "positive"})
    question = AccuracyQuestion(attempt, attempt.page_numbers)
    assert {"grade", "ihcMarkers.ER"} <= question.asked_values.keys()
    with pytest.raises(AnswerShapeError, match=r"has no score for values of the fields ihcMarkers$"):
        question.parse_answer(judgement_of(grade=1.0).model_dump_json())
    assert question.parse_answer(judgement_of(grade=1.0, ihcMarkers__ER=0.5).model_dump_json())


def test_a_signature_in_a_section_lowers_its_accuracy() -> None:
    report = document("IMPRESSION\nSmall left effusion. No embolism.\nRead by Bertram Oduya, MD\nReported: 02/07/2025")
    said: Said = {"impression": "Small left effusion. No embolism.\nRead by Bertram Oduya, MD"}
    evaluation = asyncio.run(ExtractionEvaluator().evaluate(attempted(said, report, "radiology")))
    assert any(
        "may not belong" in issue.description for issue in evaluation.feedback.issues if issue.severity == "major"
    )


def test_a_result_without_its_unit_is_a_question() -> None:
    attempt = attempted({"labValues.Glucose": "90"}, document("Lab Results\nGlucose 90 mg/dL"), "lab-report")
    issues = asyncio.run(ExtractionEvaluator().evaluate(attempt)).feedback.issues
    assert any('lacks "mg/dL"' in issue.description for issue in issues if issue.severity == "major")


def test_a_date_without_a_label_escalates_nothing() -> None:
    report = document("Final Diagnosis\nInvasive ductal carcinoma, grade 2.\nDr. Bertram Oduya 02/07/2025")
    said: Said = {"histology": "Invasive ductal carcinoma", "grade": "grade 2"}
    issues = asyncio.run(ExtractionEvaluator().evaluate(attempted(said, report))).feedback.issues
    assert {issue.severity for issue in issues if issue.field == "date"} == {"minor"}
