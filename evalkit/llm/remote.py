"""Asking a language model: journalled, limited, repeated where it may pass, and read strictly."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from datetime import UTC, datetime
from typing import Any, Generic, cast

from pydantic import ValidationError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception
from tenacity.wait import wait_random_exponential

from evalkit.core.log_events import log_event
from evalkit.llm.gate import Gate
from evalkit.llm.ledger import Ledger, LimitReached, priced, total, usage_of
from evalkit.llm.model import A, Answer, CallFailed, Provider, Question, Request, Usage
from evalkit.store import ModelCall, hash_canonical_json, reject_duplicate_keys

log = logging.getLogger(__name__)

#: So often a question is asked before it counts as unanswered, however quickly it fails; and so often where the model
#: answers, but not what it was asked for: at temperature 0 it will hardly change its mind.
_ATTEMPTS, _OF_NONSENSE = 5, 2
#: The share of a question's seconds that one attempt may take: one that hangs leaves time for another.
_ATTEMPT = 0.5
_SHORTEST = 1.0
"""Seconds that any call is given."""
_LONGEST_REST = 86_400.0
"""Seconds that a provider may ask for."""
#: To tell before a call what it will cost: characters of a token, at least, and tokens of an answer.
_CHARACTERS, _ANSWER = 3, 1_000


class LanguageModel:
    """A provider's model, asked through the ledger."""

    def __init__(
        self,
        provider: Provider,
        ledger: Ledger,
        gate: Gate,
        *,
        address: str | None = None,
        seconds: float = 60,
        first_wait: float = 1.0,
        longest_wait: float = 20.0,
    ) -> None:
        """``address``: of a server of one's own, where a model of that name may be another one.

        ``seconds``: a question may take so long, with all attempts and the waiting between them.

        ``first_wait`` and ``longest_wait``: seconds before the second attempt and before the last, at most; they are
        drawn at random.
        """
        self._provider = provider
        self._ledger = ledger
        self._gate = gate
        self._address = address
        self._seconds = seconds
        self._resting_until = 0.0
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
        asked = _Asked(question, self.name, self._address)
        value, failure = self._remembered(asked), None
        if value is None:
            try:
                value = await self._repeated(asked)
            except (CallFailed, LimitReached) as error:
                failure = error
        usage = total(map(usage_of, self._ledger.of(asked.id)))
        if failure is None:
            return Answer(question, value, usage=usage)
        log_event(
            log,
            logging.WARNING,
            "not answered",
            document_sha256=question.document,
            step=question.role,
            code=failure.code,
        )
        reason = f"{failure.message} ({failure.code})"
        return Answer(question, None, failure=reason, unparseable=failure.code == "LLM-SHAPE", usage=usage)

    def _remembered(self, asked: _Asked[A]) -> A | None:
        last = next(reversed(self._ledger.of(asked.id)), None)
        if last is None or last.answer is None:
            return None
        try:
            return _read(asked.question, last.answer)
        except CallFailed:  # the journal, or the code that reads it, is another one than then
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
            return state.attempt_number >= most or asked.seconds >= asked.most(self._seconds)

        repeated = AsyncRetrying(retry=retry_if_exception(_may_pass), wait=wait, stop=stop, reraise=True)
        answer: A = await repeated(self._once, asked)
        return answer

    async def _once(self, asked: _Asked[A]) -> A:
        """One call: sent, read, journalled. CallFailed, LimitReached.

        Whoever stops waiting for it does not stop it: it is paid for, and the journal will have its answer.
        """
        if (rest := self._resting_until - time.monotonic()) > 0:
            raise _resting(rest)
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
            if error.code == "LLM-RATE" and (error.retry_after or 0) < self._seconds:
                self._gate.too_many(entered, error.retry_after)
            elif error.code == "LLM-RATE":  # nobody waits so long: until then, nothing is sent at all
                self._resting_until = time.monotonic() + min(error.retry_after or 0, _LONGEST_REST)
            raise
        finally:
            self._gate.leave()
        self._gate.went_well()
        return value

    async def _called(self, asked: _Asked[A]) -> A:
        with self._ledger.begun(asked.question.document, self._expected(asked)):
            asked_at, began = _now(), time.monotonic()
            try:
                reply = await self._provider.send(asked.request(self._seconds))
            except CallFailed as error:
                self._note(asked, asked_at, began, error.usage, failure=error.code)
                raise
            try:
                value = _read(asked.question, reply.text)
            except CallFailed as error:
                self._note(asked, asked_at, began, reply.usage, failure=error.code)
                raise
            self._note(asked, asked_at, began, reply.usage, answer=reply.text)
            return value

    def _expected(self, asked: _Asked[A]) -> Usage:
        """What a call will cost, about."""
        usage = Usage(calls=1, input_tokens=len(asked.prompt) // _CHARACTERS, output_tokens=_ANSWER)
        return priced(self.name, usage) if self._ledger.has_money else usage

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
            ModelCall(
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

    def __init__(self, question: Question[A], model: str, address: str | None) -> None:
        self.question = question
        self.prompt, self._schema = question.prompt(), question.schema()
        self.seconds = 0.0
        """Spent on calls, and on waiting between them; waiting for a place is not the provider's doing."""
        self.id = hash_canonical_json(
            {
                "model": model,
                "address": address,
                "role": question.role,
                "prompt": self.prompt,
                "schema": self._schema,
                "images": [hashlib.sha256(image).hexdigest() for image in question.images],
                # Left out at 0, where what was answered before there were any others is still the answer.
                **({"temperature": question.temperature} if question.temperature else {}),
            }
        )
        """What makes it the same question again."""

    def request(self, seconds: float) -> Request:
        """The call to send, where the question may take so long."""
        most = self.most(seconds)
        left = min(most - self.seconds, most if self.question.seconds else _ATTEMPT * most)
        return Request(self.prompt, self._schema, max(left, _SHORTEST), self.question.images, self.question.temperature)

    def most(self, seconds: float) -> float:
        """The seconds that it may take, where questions without a limit of their own may take ``seconds``."""
        return self.question.seconds or seconds


def _failure(state: RetryCallState) -> CallFailed:
    return cast("CallFailed", state.outcome and state.outcome.exception())


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, CallFailed) and error.may_pass


#: The model answered, but nothing that can be used.
_NONSENSE = ("LLM-SHAPE", "LLM-NOT-JSON")


def _read(question: Question[A], text: str) -> A:
    """The answer that the text is. CallFailed: LLM-NOT-JSON, LLM-SHAPE; neither quotes it."""
    try:
        json.loads(text, object_pairs_hook=reject_duplicate_keys)
        return question.parse_answer(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        known = json.dumps(question.schema())
        # A name that is not the schema's is the model's own words, which may be the document's.
        told = [part if isinstance(part, int) or f'"{part}"' in known else "…" for part in first["loc"]]
        code, what = (
            "LLM-SHAPE",
            f"has not the shape that was asked for, at {' → '.join(map(str, told)) or 'the whole'}",
        )
    except (ValueError, RecursionError):
        code, what = "LLM-NOT-JSON", "is not JSON"
    except Exception as error:  # noqa: BLE001 - the call is paid, and must be journalled whatever the answer does here
        code, what = "LLM-SHAPE", f"could not be read ({type(error).__name__})"
    raise CallFailed(
        f"the model's answer {what}",
        code=code,
        remedy="Run the document again, or choose another model.",
        may_pass=True,
    )


def _resting(seconds: float) -> CallFailed:
    return CallFailed(
        f"the provider wanted no calls for another {seconds:.0f} seconds",
        code="LLM-RATE",
        remedy="Run the same command again later: what was answered is kept.",
        usage=Usage(),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
