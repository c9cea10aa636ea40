"""The offline default: it calls what a question brings, and a defect there is a failed answer, not a crash."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel

from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Answer, Question


class Sum(BaseModel):
    """A number."""

    total: int


class Addition(Question[Sum]):
    """Two and three, or nothing to add."""

    role = "V2"
    answer_type = Sum

    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    def render_prompt(self) -> str:
        raise AssertionError("the embedded model is sent no prompt")

    def offline(self) -> Sum:
        if not self.numbers:
            raise ZeroDivisionError("nothing about the patient may leak from here")
        return Sum(total=sum(self.numbers))


def ask(*numbers: int) -> Answer[Sum]:
    return asyncio.run(EmbeddedModel().ask(Addition(*numbers)))


def test_it_answers_with_the_questions_own_computation() -> None:
    assert EmbeddedModel().name == "embedded"
    answer = ask(2, 3)
    assert (answer.value, answer.failure, answer.is_unparseable) == (Sum(total=5), None, False)
    assert (answer.usage.calls, answer.usage.input_tokens, answer.usage.cost_usd) == (1, 0, "0")


def test_a_defect_is_a_failed_answer_that_quotes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    answer = ask()
    assert answer.value is None
    assert not answer.is_unparseable
    assert answer.failure
    assert "ZeroDivisionError" in answer.failure
    assert "patient" not in answer.failure + caplog.text
