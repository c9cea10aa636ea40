"""Asking a language model: journalled, limited, repeated where it may pass, and read strictly."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from datetime import UTC, datetime
from typing import Any, Generic, cast

from pydantic import ValidationError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception
from tenacity.wait import wait_random_exponential

from evalkit.llm.gate import Gate
from evalkit.llm.ledger import Ledger, LimitReached, priced, total, usage_of
from evalkit.llm.model import A, Answer, CallFailed, Provider, Question, Reply, Request, Usage
from evalkit.store import Call, digest

log = logging.getLogger(__name__)

#: So often a question is asked before it counts as unanswered, however quickly it fails; and so often where the model
#: answers, but not what it was asked for: at temperature 0 it will hardly change its mind.
_ATTEMPTS, _OF_NONSENSE = 5, 2
#: The share of a question's seconds that one attempt may take: one that hangs leaves time for another.
_ATTEMPT = 0.5
_SHORTEST = 1.0
"""Seconds that any call is given."""


class LanguageModel:
    """A provider's model, asked through the ledger."""

    def __init__(
        self,
        provider: Provider,
        ledger: Ledger,
        gate: Gate,
        *,
        seconds: float = 60,
        first_wait: float = 1.0,
        longest_wait: float = 20.0,
    ) -> None:
        """``seconds``: a question may take so long, with all attempts and the waiting between them.

        ``first_wait`` and ``longest_wait``: seconds before the second attempt and before the last, at most; they are
        drawn at random.
        """
        self._provider = provider
        self._ledger = ledger
        self._gate = gate
        self._seconds = seconds
        self._under_way: set[asyncio.Future[Any]] = set()
        self._wait = wait_random_exponential(multiplier=first_wait, max=longest_wait)

    @property
    def name(self) -> str:
        """As ``--model`` names it."""
        return self._provider.name

    async def ask(self, question: Question[A]) -> Answer[A]:
        """The answer from the journal, or the model's; its usage is what it cost, whenever that was paid.

        StoreError where the journal cannot be written: an answer that is not kept is not used.
        """
        asked = _Asked(question, self.name)
        value, failure = self._remembered(asked), None
        if value is None:
            try:
                value = await self._repeated(asked)
            except (CallFailed, LimitReached) as error:
                failure = error
        usage = total(map(usage_of, self._ledger.of(asked.id)))
        if failure is None:
            return Answer(question, value, usage=usage)
        log.warning("%s of document %s: %s", question.role, question.document[:12], failure.code)
        reason = f"{failure.message} ({failure.code})"
        return Answer(question, None, failure=reason, unparseable=failure.code == "LLM-SHAPE", usage=usage)

    def _remembered(self, asked: _Asked[A]) -> A | None:
        for call in reversed(self._ledger.of(asked.id)):
            if call.answer is not None and call.failure is None:
                return asked.question.read(call.answer)
        return None

    async def _repeated(self, asked: _Asked[A]) -> A:
        """The answer, after as many attempts as it takes and may take. CallFailed, LimitReached."""

        def wait(state: RetryCallState) -> float:
            # As long as the provider asked for and a little longer, or all would come back at once.
            seconds = self._wait(state) + (_failure(state).retry_after or 0.0)
            asked.seconds += seconds
            return seconds

        def stop(state: RetryCallState) -> bool:
            most = _OF_NONSENSE if _failure(state).code in _NONSENSE else _ATTEMPTS
            return state.attempt_number >= most or asked.seconds >= self._seconds

        repeated = AsyncRetrying(retry=retry_if_exception(_may_pass), wait=wait, stop=stop, reraise=True)
        answer: A = await repeated(self._once, asked)
        return answer

    async def _once(self, asked: _Asked[A]) -> A:
        """One call: sent, read, journalled. CallFailed, LimitReached.

        Whoever stops waiting for it does not stop it: it is paid for, and the journal will have its answer.
        """
        entered = await self._gate.enter()
        call = asyncio.ensure_future(self._let_in(asked, entered))
        self._under_way.add(call)
        call.add_done_callback(self._under_way.discard)
        return await asyncio.shield(call)

    async def close(self) -> None:
        """Wait for the calls under way, and give the connections back."""
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._provider.close()

    async def _let_in(self, asked: _Asked[A], entered: float) -> A:
        try:
            value = await self._called(asked)
        except CallFailed as error:
            if error.code == "LLM-RATE":
                rest = error.retry_after
                self._gate.too_many(entered, rest if rest is None else min(rest, self._seconds))
            raise
        finally:
            self._gate.leave()
        self._gate.went_well()
        return value

    async def _called(self, asked: _Asked[A]) -> A:
        with self._ledger.begun(asked.question.document):
            asked_at, began = _now(), time.monotonic()
            try:
                reply = await self._provider.send(asked.request(self._seconds))
                value = _read(asked.question, reply)
            except CallFailed as error:
                self._note(asked, asked_at, began, error.usage, failure=error.code)
                raise
            self._note(asked, asked_at, began, reply.usage, answer=reply.text)
            return value

    def _note(
        self,
        asked: _Asked[A],
        asked_at: str,
        began: float,
        usage: Usage,
        *,
        answer: str | None = None,
        failure: str | None = None,
    ) -> None:
        seconds = time.monotonic() - began
        asked.seconds += seconds
        cost = priced(self.name, usage)
        self._ledger.note(
            Call(
                question=asked.id,
                document=asked.question.document,
                role=asked.question.role,
                model=self.name,
                asked_at=asked_at,
                seconds=round(seconds, 3),
                answer=answer,
                failure=failure,
                input_tokens=cost.input_tokens,
                output_tokens=cost.output_tokens,
                cached_tokens=cost.cached_tokens,
                thought_tokens=cost.thought_tokens,
                cost_usd=cost.cost_usd,
            )
        )


class _Asked(Generic[A]):
    """A question under way."""

    def __init__(self, question: Question[A], model: str) -> None:
        self.question = question
        self._prompt, self._schema = question.prompt, question.schema()
        self.seconds = 0.0
        """Spent on calls, and on waiting between them; waiting for a place is not the provider's doing."""
        self.id = digest(
            {
                "model": model,
                "role": question.role,
                "prompt": self._prompt,
                "schema": self._schema,
                "images": [hashlib.sha256(image).hexdigest() for image in question.images],
            }
        )
        """What makes it the same question again."""

    def request(self, seconds: float) -> Request:
        """The call to send, where the question may take so long."""
        left = min(seconds - self.seconds, _ATTEMPT * seconds)
        return Request(self._prompt, self._schema, max(left, _SHORTEST), self.question.images)


def _failure(state: RetryCallState) -> CallFailed:
    return cast("CallFailed", state.outcome and state.outcome.exception())


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, CallFailed) and error.may_pass


#: The model answered, but nothing that can be used.
_NONSENSE = ("LLM-SHAPE", "LLM-NOT-JSON")


def _read(question: Question[A], reply: Reply) -> A:
    """The answer in the reply. CallFailed: LLM-NOT-JSON, LLM-SHAPE."""
    try:
        return question.read(reply.text)
    except ValidationError as error:
        # pydantic's own message quotes what was answered.
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        is_json = first["type"] != "json_invalid"
        where = " → ".join(str(part) for part in first["loc"]) or "the whole"
    raise CallFailed(
        f"the model's answer has not the shape that was asked for, at {where}"
        if is_json
        else "the model's answer is not JSON",
        code="LLM-SHAPE" if is_json else "LLM-NOT-JSON",
        remedy="Run the document again, or choose another model.",
        may_pass=True,
        usage=reply.usage,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
