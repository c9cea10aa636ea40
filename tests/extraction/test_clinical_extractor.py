"""The extractor's question and answer: what is asked, what is believed, and a language model's server on this machine."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from builders import document, page
from extraction.reports import draw
from extraction.scripted import Scripted, claims
from servers import openai as other_service
from servers.gemini import HANG, GeminiServer, scripted
from servers.openai import ModelServer

from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.clinical.clinical_extractor import (
    ClaimedField,
    ClaimedFields,
    ClinicalExtractor,
    ClinicalQuestion,
    RetryContext,
    ground_claims,
)
from evalkit.extraction.evaluator import ExtractionEvaluator
from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.extraction.field_template import get_field_template
from evalkit.extraction.optimizer import EvaluationFeedback, EvaluationIssue, build_loop_config
from evalkit.extraction.reliability_loop import ReliabilityLoop, ReliabilityLoopResult
from evalkit.issue import Issue
from evalkit.llm.client import LanguageModel
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.ledger import Ledger
from evalkit.llm.model import Model
from evalkit.llm.providers import build_provider
from evalkit.llm.providers.gemini import GeminiProvider

PATHOLOGY = get_field_template("pathology")
REPORT = document(
    "Final Diagnosis\nA. Left breast: Invasive ductal carcinoma, Nottingham grade 2.\nMargins: negative (4 mm)",
    "Immunohistochemistry\nER: positive (95%); PR: positive (70%)",
)


def proved(
    *told: ClaimedField, bundle: DocumentBundle = REPORT, name: str = "pathology"
) -> tuple[dict[str, FieldValue], tuple[Issue, ...]]:
    return ground_claims(told, bundle, range(1, bundle.total_pages + 1), get_field_template(name))


def test_a_proven_value_has_its_place_and_its_normal_form() -> None:
    fields, unproven = proved(
        ClaimedField(
            field="grade", value="Nottingham grade 2", page=1, quote="Invasive ductal carcinoma, Nottingham grade 2"
        )
    )
    grade = fields["grade"]
    assert (grade.status, grade.value, grade.raw, grade.page) == (FieldStatus.FOUND, "2", "Nottingham grade 2", 1)
    assert len(grade.boxes) == 1
    assert unproven == ()


def test_an_altered_value_is_told_by_its_difference() -> None:
    fields, (issue,) = proved(ClaimedField(field="grade", value="Nottingham grade 3", page=1))
    assert fields["grade"].value is None
    assert (issue.location, issue.code) == ("grade", "EXTRACTION-NOT-ON-PAGE")
    assert "“2”" in (issue.difference or "")


def test_a_value_on_another_page_of_the_report_is_found_there() -> None:
    fields, _ = proved(ClaimedField(field="ihcMarkers", item="ER", value="positive (95%)", page=1))
    assert (fields["ihcMarkers.ER"].value, fields["ihcMarkers.ER"].page) == ("positive, 95%", 2)


def test_a_page_of_another_report_proves_nothing() -> None:
    fields, unproven = ground_claims(claims({"ihcMarkers.ER": "positive (95%)"}, page=2).fields, REPORT, [1], PATHOLOGY)
    assert not any(value.is_found for name, value in fields.items() if name.startswith("ihcMarkers"))
    assert len(unproven) == 1


def test_fields_come_in_the_templates_order_and_all_of_them() -> None:
    fields, _ = proved(
        *claims({"date": None, "ihcMarkers.PR": "positive (70%)", "histology": "Invasive ductal carcinoma"}).fields
    )
    names = [name.partition(".")[0] for name in fields]
    assert names == [field.name for field in PATHOLOGY.fields]


def test_fields_that_nobody_asked_for_are_left_out() -> None:
    fields, unproven = proved(ClaimedField(field="diagnosisCode", value="Invasive", page=1))
    assert "diagnosisCode" not in fields
    assert unproven == ()


def test_of_two_claims_the_one_that_stands_counts() -> None:
    fields, unproven = proved(
        ClaimedField(field="grade", value="grade 3", page=1),
        ClaimedField(field="grade", value="Nottingham grade 2", page=1),
    )
    assert fields["grade"].value == "2"
    assert unproven == ()


def test_the_text_itself_is_never_a_models_word() -> None:
    fields, _ = proved(ClaimedField(field="rawText", value="Invasive ductal carcinoma", page=1))
    assert fields["rawText"].value == "\n".join(one.text for one in REPORT.pages)


def test_a_long_text_is_given_by_its_ends() -> None:
    text = "Findings\nA nodule in the right lower lobe is unchanged.\nNo effusion is seen today.\nImpression\nStable."
    bundle = document(text)
    fields, _ = proved(
        ClaimedField(field="findings", page=1, first_words="A nodule in the", last_words="is seen today."),
        ClaimedField(field="impression", page=1, first_words="Worse than", last_words="ever before"),
        bundle=bundle,
        name="radiology",
    )
    assert fields["findings"].raw == "A nodule in the right lower lobe is unchanged.\nNo effusion is seen today."
    assert not fields["impression"].is_found


def test_a_long_text_may_go_on_behind_a_page() -> None:
    bundle = document("Findings\nA nodule in the right lower lobe.", "No effusion is seen today.\nImpression\nStable.")
    ends = {"first_words": "A nodule in the", "last_words": "is seen today."}
    told = ClaimedField(field="findings", page=1, end_page=2, **ends)
    by_ends, _ = proved(told, bundle=bundle, name="radiology")
    placed, _ = ground_claims(
        ClinicalQuestion(bundle, (1, 2), get_field_template("radiology")).offline().fields,
        bundle,
        (1, 2),
        get_field_template("radiology"),
    )
    text = "A nodule in the right lower lobe.\nNo effusion is seen today."
    assert by_ends["findings"].raw == placed["findings"].raw == text
    assert {box[0] for box in placed["findings"].boxes} == {1, 2}
    other, _ = proved(told.model_copy(update={"end_page": 1}), bundle=bundle, name="radiology")
    assert not other["findings"].is_found


def test_items_without_a_name_are_counted() -> None:
    bundle = document("Findings\nA 6 mm nodule and a 9 mm nodule.")
    fields, _ = proved(
        ClaimedField(field="measurements", value="6 mm", page=1),
        ClaimedField(field="measurements", value="9 mm", page=1),
        bundle=bundle,
        name="radiology",
    )
    assert [name for name in fields if name.startswith("measurements")] == ["measurements.1", "measurements.2"]


def test_an_ambiguous_claim_stays_one() -> None:
    fields, _ = proved(ClaimedField(field="grade", status="ambiguous", value="Nottingham grade 2", page=1))
    assert fields["grade"].status is FieldStatus.AMBIGUOUS


def test_a_digit_that_recognition_may_have_misread_is_a_doubt() -> None:
    scan = document(page(1, "Carcinoma, Nottingham grade Z.", status="ocr"))
    fields, (issue,) = proved(ClaimedField(field="grade", value="Nottingham grade 2", page=1), bundle=scan)
    assert fields["grade"].status is FieldStatus.AMBIGUOUS
    assert issue.severity.value == "MAJOR"


HOSTILE = [
    ClaimedField(field="grade", value="", page=0),
    ClaimedField(field="grade", value="\x00" * 5000, page=-3),
    ClaimedField(field="grade", value="2" * 5000, page=10**9, confidence=float("inf")),
    ClaimedField(field="ihcMarkers", item="x" * 5000, value="positive (95%)", page=2, confidence=-1),
    ClaimedField(field="findings", value=None, first_words="", last_words=""),
]


@pytest.mark.parametrize("claim", HOSTILE)
def test_any_answer_is_survived(claim: ClaimedField) -> None:
    fields, _ = proved(claim)
    assert all(len(name) < 100 for name in fields)
    assert all(0 <= value.confidence <= 1 for value in fields.values())


def test_the_prompt_has_the_report_the_fields_and_their_needs() -> None:
    prompt = ClinicalQuestion(REPORT, (1, 2), PATHOLOGY).prompt()
    assert prompt.startswith("<document-")
    assert "Required fields:\n- histology: Cancer type" in prompt
    assert "Important fields:\n- margins:" in prompt
    assert "- ihcMarkers: IHC results as key-value pairs (ER, PR, HER2, Ki-67 and others) (several values)" in prompt
    assert "rawText" not in prompt


def test_pages_outside_the_report_are_not_shown() -> None:
    prompt = ClinicalQuestion(REPORT, (2,), PATHOLOGY).prompt()
    assert "Nottingham" not in prompt


def test_the_embedded_answer_is_what_a_server_can_send() -> None:
    drawn = draw("pathology", 3)
    answer = ClinicalQuestion(drawn.bundle, (1,), PATHOLOGY).offline()
    again = ClaimedFields.model_validate_json(answer.model_dump_json(exclude={"fields": {"__all__": {"spans"}}}))
    assert [one.value for one in again.fields] == [one.value for one in answer.fields]


def test_embedded_model_picks_another_value_after_feedback() -> None:
    torn = document("Histologic grade: 2\nGrade: 3")
    feedback = EvaluationFeedback(0.8, (EvaluationIssue("major", "grade", "it is another one"),))
    first = ClinicalQuestion(torn, (1,), PATHOLOGY).offline()
    previous, _ = ground_claims(first.fields, torn, (1,), PATHOLOGY)
    second = ClinicalQuestion(torn, (1,), PATHOLOGY, RetryContext(feedback, previous, 1)).offline()
    assert [[one.value for one in told.fields if one.field == "grade"] for told in (first, second)] == [["2"], ["3"]]


def test_a_long_report_is_asked_about_in_windows() -> None:
    model = Scripted({"grade": "Nottingham grade 2"})
    extractor = ClinicalExtractor(model, window_characters=120)
    attempt = asyncio.run(extractor.extract(REPORT, [1, 2], PATHOLOGY))
    assert len(model.prompts("extractor")) == 2
    assert attempt.fields["grade"].value == "2"


def test_a_window_that_was_not_answered_fails_the_attempt() -> None:
    extractor = ClinicalExtractor(Scripted({"grade": "Nottingham grade 2"}, None), window_characters=120)
    attempt = asyncio.run(extractor.extract(REPORT, [1, 2], PATHOLOGY))
    assert attempt.failure == "it timed out (LLM-TIMEOUT)"


# ------------------------------------------------------------------------------------------------- real servers


def embedded_answer(bundle: DocumentBundle, kind: str) -> dict[str, Any]:
    """What the embedded model would say, as a language model says it."""
    whole = ClinicalQuestion(bundle, range(1, bundle.total_pages + 1), get_field_template(kind)).offline()
    return json.loads(whole.model_dump_json(exclude={"fields": {"__all__": {"spans"}}}))


def praise(prompt: str) -> str:
    """A judge who finds nothing wrong with any of the values in a prompt."""
    (values,) = re.findall(
        r"<extraction-\w+>\s*(\{.*?\})\s*</extraction", prompt.replace("\\n", "\n").replace('\\"', '"'), re.DOTALL
    )
    names = re.findall(r'"([A-Za-z]+(?:\.[^"]+)?)":', values)
    return json.dumps(
        {
            "field_scores": [
                {"reasoning": "", "field": one, "accurate": True, "score": 1.0, "issue": None} for one in names
            ]
        }
    )


def looped(model: Model, bundle: DocumentBundle, kind: str, **config: Any) -> ReliabilityLoopResult:
    loop = ReliabilityLoop(build_loop_config(**config), model)
    return asyncio.run(loop.execute(bundle, [1], get_field_template(kind)))


def test_gemini_extracts_is_judged_told_and_extracts_again() -> None:
    drawn = draw("pathology", 2)
    full = embedded_answer(drawn.bundle, "pathology")
    poor = {**full, "fields": [one for one in full["fields"] if one["field"] not in ("grade", "margins")]}
    answers = {
        "extractor": [json.dumps(poor), f"```json\n{json.dumps(full)}\n```"],
        "evaluator": [lambda call: praise(call.prompt).replace("true", '"true"')],
    }
    with GeminiServer(scripted(answers)) as server:
        ledger = Ledger()
        model = LanguageModel(
            GeminiProvider("gemini-2.5-flash", base_url=server.url, api_key="k"), ledger, AimdLimiter(4)
        )
        result = looped(model, drawn.bundle, "pathology")
        assert [call.role for call in server.calls] == ["extractor", "evaluator", "extractor", "evaluator"]
    assert "PRIORITY: Focus extraction on these fields: grade" in server.calls[2].prompt
    assert result.met_threshold
    assert result.best_iteration is not None
    judged = "evaluator: field_scores[].accurate: text read as true or false"
    assert [iteration.normalised for iteration in result.history] == [
        (judged,),
        ("extractor: text around the JSON left out", judged),
    ]
    assert {name: result.best_iteration.attempt.fields[name].value for name in ("histology", "grade")} == {
        name: drawn.truth[name].value for name in ("histology", "grade")
    }
    assert ledger.get_usage_in_this_run(drawn.bundle.sha256).calls == 4


def test_another_protocol_works_as_well() -> None:
    drawn = next(one for one in (draw("genomics", seed) for seed in range(50)) if one.layout == "table")

    def answer(call: other_service.Call) -> str:
        asked = json.dumps(call.body)
        return (
            json.dumps(embedded_answer(drawn.bundle, "genomics")) if "Extract clinical data" in asked else praise(asked)
        )

    with ModelServer(answer) as server:
        model = LanguageModel(
            build_provider("openai:m", environment={"OPENAI_API_KEY": "k"}, base_url=f"{server.url}/v1"),
            Ledger(),
            AimdLimiter(4),
        )
        result = looped(model, drawn.bundle, "genomics")
    assert result.decision == "AUTO_ACCEPT"


def test_a_server_that_hangs_is_left_at_the_deadline() -> None:
    drawn = draw("pathology", 2)
    with GeminiServer(scripted([HANG])) as server:
        model = LanguageModel(
            GeminiProvider("m", base_url=server.url, api_key="k"), Ledger(), AimdLimiter(4), time_limit_seconds=1
        )
        result = looped(model, drawn.bundle, "pathology", timeout_ms=150)
    assert (result.stopped_reason, result.iteration_count) == ("Timeout exceeded", 0)


def test_a_judge_that_is_silent_about_values_leaves_no_score() -> None:
    drawn = draw("pathology", 2)
    silent = '{"field_scores": []}'
    answers = {"evaluator": ["{}", silent]}
    with GeminiServer(scripted(answers)) as server:
        judge = LanguageModel(
            GeminiProvider("m", base_url=server.url, api_key="k"),
            Ledger(),
            AimdLimiter(4),
            max_first_wait=0.001,
            max_wait=0.01,
        )
        loop = ReliabilityLoop(extractor=ClinicalExtractor(EmbeddedModel()), evaluator=ExtractionEvaluator(judge))
        result = asyncio.run(loop.execute(drawn.bundle, [1], PATHOLOGY))
    assert (result.final_score, result.decision) == (None, "ESCALATE_TO_SME")
    assert result.failure is not None
    assert "LLM-SHAPE" in result.failure.message
