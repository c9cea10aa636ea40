"""What a call is estimated to send and to cost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from builders import NOTE, compose_single_type, document, evidence, parse_answer, segment
from builders import answer as make_answer
from PIL import Image

from evalkit.classification.primary_classifier import ClassifierQuestion
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.classification.verifiers import create_shipped_verifiers
from evalkit.documents.render import encode_png
from evalkit.llm.cost_estimate import EstimatingModel
from evalkit.llm.ledger import Ledger
from evalkit.llm.model import ModelCallError, Question, Request
from evalkit.llm.model_families import find_model_facts
from evalkit.llm.request_options import RequestFitter

from .test_client import Aside, Remark

SCHEMA = {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]}


@pytest.mark.parametrize(
    "part",
    [
        {"system_instruction": "x" * 3_000},
        {"answer_schema": SCHEMA | {"description": "x" * 3_000}},
        {"images": (encode_png(Image.new("L", (1_000, 500))),)},
    ],
    ids=["system instruction", "schema", "picture"],
)
def test_all_that_is_sent_counts_for_the_context(part: dict[str, Any]) -> None:
    fitter = RequestFitter("vllm:m", find_model_facts("vllm:m", 2_900))
    request = Request("x" * 6_000, SCHEMA, 5)
    fitter.require_readable(request)
    with pytest.raises(ModelCallError) as caught:
        fitter.require_readable(replace(request, **part))
    assert caught.value.code == "LLM-CONTEXT"


def test_every_question_about_a_full_window_fits_into_a_small_context() -> None:
    facts = find_model_facts("ollama:llama3.2")
    words = "Cough and fever, and no pain. " * 400
    bundle = document(*(words[: facts.compute_window_characters() // 4] for _ in range(4)))
    segments = [
        segment(page, page, page, NOTE, compose_single_type(NOTE, *[evidence(words[:230], page)] * 3))
        for page in range(1, 5)
    ]
    answer = parse_answer(make_answer(*segments, overall=NOTE, shares={NOTE: 1.0}))
    questions: list[Question[Any]] = [ClassifierQuestion(bundle)]
    for verifier in create_shipped_verifiers(V2ConsistencyChecker()):
        questions += verifier.questions(answer, bundle)
    assert len(questions) == 4
    for question in questions:
        request = Request(
            question.prompt(), question.get_answer_schema(), 5, (), 0.0, None, question.system_instruction
        )
        RequestFitter("ollama:llama3.2", facts).require_readable(request)


@pytest.mark.parametrize(("characters", "tokens"), [(10, 1_000), (9_000, 3_004)])
def test_a_long_answer_is_estimated_by_its_length(characters: int, tokens: int) -> None:
    class LongAside(Aside):
        def offline(self) -> Remark:
            return Remark(words="x" * characters)

    model = EstimatingModel("openai:gpt-4.1", Ledger(), None)
    asyncio.run(model.ask(LongAside()))
    assert [usage.output_tokens for usage in model.usage_by_role.values()] == [tokens]
