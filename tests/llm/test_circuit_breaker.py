"""When calls wait for a service that is down, and when a run ends because of it."""

from __future__ import annotations

import asyncio

import pytest

from evalkit.errors import RunStopped
from evalkit.llm.circuit_breaker import CircuitBreaker
from evalkit.llm.model import ModelCallError

OUTAGE_SECONDS = 0.2
DOWN = ModelCallError("is down", code="LLM-SERVER", remedy="Wait.", is_transient=True)


def wait(*answers: ModelCallError | None, late_by: float = 0.0, pause_seconds: float = 0.0) -> bool:
    """Wait at an open gate whose test questions are answered so; the last answer is repeated."""
    asked = iter(answers)

    async def probe() -> ModelCallError | None:
        return next(asked, answers[-1])

    async def wait_at_open_gate() -> bool:
        breaker = CircuitBreaker(
            "gemini:m", probe, outage_seconds=OUTAGE_SECONDS, first_pause_seconds=0.01, max_pause_seconds=0.02
        )
        breaker.open(DOWN, pause_seconds)
        await asyncio.sleep(late_by)
        return await breaker.wait_until_closed()

    return asyncio.run(wait_at_open_gate())


def test_calls_go_on_once_a_test_question_is_answered() -> None:
    assert (wait(None), wait(DOWN, None)) == (False, True)


def test_run_stops_when_no_test_question_is_answered() -> None:
    with pytest.raises(RunStopped, match="gemini:m: is down, and takes no calls"):
        wait(DOWN)


def test_who_comes_late_asks_before_the_run_is_stopped() -> None:
    assert wait(None, late_by=2 * OUTAGE_SECONDS) is False


def test_run_stops_at_once_when_the_provider_names_a_longer_pause() -> None:
    with pytest.raises(RunStopped):
        wait(None, pause_seconds=2 * OUTAGE_SECONDS)
