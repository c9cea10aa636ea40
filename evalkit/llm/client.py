"""Ask language models, with journal, rate limit, retries and validated answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import time
from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, cast

from pydantic import ValidationError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception
from tenacity.wait import wait_random_exponential

from evalkit.core.clocks import format_zulu_now
from evalkit.core.log_events import log_event
from evalkit.errors import ModelSetupError, RunStopped
from evalkit.llm.answer_normalisation import AnswerShapeError
from evalkit.llm.answer_text import AnswerTextError
from evalkit.llm.circuit_breaker import CircuitBreaker, name_model
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.ledger import Ledger, SpendingLimitError, add_list_price, get_call_usage, sum_usages
from evalkit.llm.model import (
    Answer,
    AnswerT,
    ModelCallError,
    Provider,
    Question,
    Reply,
    Request,
    Usage,
)
from evalkit.llm.model_families import EXPECTED_ANSWER_TOKENS, estimate_input_tokens
from evalkit.llm.prompts import fill_prompt_template
from evalkit.store import ModelCall, hash_canonical_json

log = logging.getLogger(__name__)

#: Calls for a question before it counts as unanswered; the second number holds if the last answer had a wrong shape,
#: because at temperature 0 a model hardly changes its answer.
_MAX_ATTEMPTS, _MAX_ATTEMPTS_IF_UNUSABLE = 5, 2
#: A truncated answer is asked for once more, with this many times the output tokens that did not suffice.
_OUTPUT_ROOM_FACTOR = 4
#: The smallest limit for such a call, because some servers do not count tokens.
_MIN_OUTPUT_ROOM = 16_384
#: Share of a question's time limit that one call may take, so that a hanging call leaves time for another.
_ATTEMPT_TIME_SHARE = 0.5
#: Every call may take at least this many seconds.
_MIN_CALL_SECONDS = 1.0
#: Times that a question is asked anew after an outage of the service.
_MAX_OUTAGES = 3
#: Like failures of a role in a row that stop the run.
_MAX_SETUP_FAILURES = 3
#: Failures by a wrong key, model name or request: no document's fault, unless a test question of the same shape is
#: answered.
_SETUP_CODES = frozenset({"LLM-KEY", "LLM-MODEL", "LLM-REQUEST"})
#: Failures that a service which is down or overloaded causes.
_OUTAGE_CODES = frozenset({"LLM-RATE", "LLM-SERVER", "LLM-UNREACHABLE", "LLM-TIMEOUT", "LLM-MALFORMED"})
#: The role in which test questions are counted.
PROBE_ROLE = "probe"
_PROBE_PROMPT = "This is a test of the connection. Answer with the smallest JSON value that is allowed."
_PROBE_SCHEMA = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}


class LanguageModel:
    """A provider's language model, with retries, limits and a journal of calls."""

    def __init__(
        self,
        provider: Provider,
        ledger: Ledger,
        limiter: AimdLimiter,
        *,
        base_url: str | None = None,
        time_limit_seconds: float = 60,
        outage_seconds: float = 600,
        max_first_wait: float = 1.0,
        max_wait: float = 20.0,
    ) -> None:
        """Set up a model with its limits.

        ``base_url``: the address of a server that the site runs itself. It is part of a question's identity in the
        journal, because another server may run another model under the same name.

        ``time_limit_seconds``: seconds for a question, with all calls and the pauses between them.

        ``outage_seconds``: seconds without any answer, because the service is down, after which RunStopped is raised.

        ``max_first_wait`` and ``max_wait``: upper limits, in seconds, of the first pause and of any pause. The pauses
        are random.
        """
        self._provider = provider
        self._ledger = ledger
        self._limiter = limiter
        self._base_url = base_url
        self._time_limit_seconds = time_limit_seconds
        self._breaker = CircuitBreaker(
            self.name,
            self.probe,
            outage_seconds=outage_seconds,
            first_pause_seconds=max_first_wait,
            max_pause_seconds=max_wait,
        )
        self._setup_failures_by_role: dict[str, int] = {}
        self._probe_lock = asyncio.Lock()
        self.setup_error: ModelSetupError | None = None
        """The latest failure of the key, the name or the parameters of this model."""
        self._explained_codes: set[str] = set()
        self._calls_in_flight: set[asyncio.Future[Any]] = set()
        self._backoff = wait_random_exponential(multiplier=max_first_wait, max=max_wait)

    @property
    def name(self) -> str:
        """Name of the model, as ``--model`` takes it."""
        return self._provider.name

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        """Answer a question from the journal, or ask the model.

        The answer's usage is the cost of all calls for it, even if an earlier run paid. StoreError if the journal
        cannot be written: an answer that is not stored is not used. ModelSetupError if the model refuses the key, its name
        or a test question of this role too; RunStopped if it did so several times in a row, or is down for too long.
        """
        pending_question = PendingQuestion(question, self.name, self._base_url)
        parsed_answer, call_error = self._load_journalled_answer(pending_question), None
        if parsed_answer is None:
            try:
                parsed_answer = await self._call_while_service_works(pending_question)
            except (ModelCallError, SpendingLimitError) as error:
                call_error = error
        usage = sum_usages(
            map(get_call_usage, self._ledger.find_calls_of_latest_answer(pending_question.question_sha256))
        )
        if call_error is None:
            answer_value, changes = cast("ParsedAnswer[AnswerT]", parsed_answer)
            return Answer(question, answer_value, usage=usage, normalisation_changes=changes)
        log_event(
            log,
            logging.WARNING,
            "not answered",
            document_sha256=question.document_sha256,
            step=question.role,
            code=call_error.code,
        )
        if call_error.code not in self._explained_codes:  # how to avoid it is said once
            self._explained_codes.add(call_error.code)
            log.warning("%s (%s). %s", call_error.message, call_error.code, call_error.remedy)
        reason = f"{call_error.message} ({call_error.code})"
        return Answer(question, None, failure=reason, is_unparseable=call_error.code == "LLM-SHAPE", usage=usage)

    def _load_journalled_answer(self, pending_question: PendingQuestion[AnswerT]) -> ParsedAnswer[AnswerT] | None:
        last_call = next(reversed(self._ledger.find_calls_of_latest_answer(pending_question.question_sha256)), None)
        if last_call is None or last_call.answer is None:
            return None
        try:
            return _parse_answer(pending_question.question, last_call.answer)
        except ModelCallError:  # since then, the journal or the code that reads answers has changed
            return None

    async def probe(self, schema: Mapping[str, Any] = _PROBE_SCHEMA, temperature: float = 0.0) -> ModelCallError | None:
        """Send a short test question; return the failure that questions would meet.

        None if the model was reached and took the request, whatever it answers. The answer is counted, not journalled.
        """
        failure = None
        try:
            request = Request(_PROBE_PROMPT, schema, _ATTEMPT_TIME_SHARE * self._time_limit_seconds, (), temperature)
            usage = (await self._provider.send(request)).usage
        except ModelCallError as error:
            usage = error.usage
            failure = error if error.code in _SETUP_CODES | _OUTAGE_CODES else None
        self._ledger.count_usage(PROBE_ROLE, "", add_list_price(self.name, usage))
        return failure

    @property
    def is_down(self) -> bool:
        """True while no calls are made, because the service does not answer."""
        return self._breaker.is_open

    async def wait_until_up(self) -> None:
        """Wait until the service answers. RunStopped if that takes too long."""
        await self._breaker.wait_until_closed()

    async def _call_while_service_works(self, pending_question: PendingQuestion[AnswerT]) -> ParsedAnswer[AnswerT]:
        """Call with retries; tell a fault of the service from one of the question.

        A question that failed finally has failed by its own fault only if a test question is answered.
        """
        role = pending_question.question.role
        for _ in range(_MAX_OUTAGES):
            try:
                parsed_answer = await self._call_with_retries(pending_question)
            except ModelCallError as error:
                call_error = error
                if error.code in _OUTAGE_CODES and error.is_transient:
                    self._breaker.open(error)
                    if await self._breaker.wait_until_closed():
                        pending_question.spent_seconds = 0.0
                        continue
                if error.code in _SETUP_CODES | _OUTAGE_CODES:
                    await self._raise_unless_test_question_is_taken(pending_question, error)
                raise
            self._setup_failures_by_role.pop(role, None)
            return parsed_answer
        raise call_error

    async def _raise_unless_test_question_is_taken(
        self, pending_question: PendingQuestion[AnswerT], error: ModelCallError
    ) -> None:
        """Raise ModelSetupError if the setup is wrong; RunStopped after several in a row.

        A request has failed by its own size or content if a test question with the same schema is taken. A wrong key or
        name, and missing credit, need no test.
        """
        question = pending_question.question
        if error.code == "LLM-REQUEST" or error.is_transient:
            async with self._probe_lock:
                probe_failure = await self.probe(pending_question.schema, question.temperature)
            if probe_failure is None and error.code == "LLM-REQUEST":
                raise ModelCallError(
                    f"{error.message}, but answers a short test question: this request is too long for the model, or its content is refused",
                    code=error.code,
                    remedy="Set window_characters to less than the model can read, or let a person decide.",
                    usage=error.usage,
                )
            if probe_failure is None:
                return
        failures = self._setup_failures_by_role[question.role] = self._setup_failures_by_role.get(question.role, 0) + 1
        message = f"{name_model(self.name, error.message)}, asked as {question.role}"
        self.setup_error = ModelSetupError(message, code=error.code, remedy=error.remedy)
        if failures < _MAX_SETUP_FAILURES:
            raise self.setup_error
        raise RunStopped(
            f"{message}, {failures} times in a row: the run was stopped",
            code=error.code,
            remedy=f"{error.remedy} Then run the same command again: finished documents are kept.",
        )

    async def _call_with_retries(self, pending_question: PendingQuestion[AnswerT]) -> ParsedAnswer[AnswerT]:

        def compute_wait(retry_state: RetryCallState) -> float:
            # A random time is added to the time the provider asks for: else all calls would come back at once.
            wait_seconds = self._backoff(retry_state) + (_get_call_error(retry_state).retry_after or 0.0)
            pending_question.spent_seconds += wait_seconds
            return wait_seconds

        def is_exhausted(retry_state: RetryCallState) -> bool:
            max_attempts = (
                _MAX_ATTEMPTS_IF_UNUSABLE
                if _get_call_error(retry_state).code in _UNUSABLE_ANSWER_CODES
                else _MAX_ATTEMPTS
            )
            return (
                retry_state.attempt_number >= max_attempts
                or pending_question.spent_seconds >= pending_question.get_time_limit_seconds(self._time_limit_seconds)
            )

        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, ModelCallError) and error.is_transient),
            wait=compute_wait,
            stop=is_exhausted,
            reraise=True,
        )
        parsed_answer: ParsedAnswer[AnswerT] = await retrying(self._attempt_call, pending_question)
        return parsed_answer

    async def _attempt_call(self, pending_question: PendingQuestion[AnswerT]) -> ParsedAnswer[AnswerT]:
        """Make one call: send the request, parse the answer, write the journal.

        Cancelling does not stop the call: it is paid, and its answer goes to the journal. ModelCallError,
        SpendingLimitError.
        """
        await self._breaker.wait_until_closed()
        acquired_at = await self._limiter.acquire_slot_and_get_time()
        while self._breaker.is_open:  # it opened while this call waited for its slot
            self._limiter.release_slot()
            await self._breaker.wait_until_closed()
            acquired_at = await self._limiter.acquire_slot_and_get_time()
        call_task = asyncio.ensure_future(self._send_and_release_slot(pending_question, acquired_at))
        self._calls_in_flight.add(call_task)
        call_task.add_done_callback(self._forget_call)
        return await asyncio.shield(call_task)

    def _forget_call(self, call_task: asyncio.Future[Any]) -> None:
        self._calls_in_flight.discard(call_task)
        if not call_task.cancelled():
            call_task.exception()  # looked at: else asyncio prints a traceback if a stopped run no longer waits for it

    async def close(self) -> None:
        """Wait for running calls to end, and close the connections."""
        await asyncio.gather(*self._calls_in_flight, return_exceptions=True)
        await self._provider.close()

    async def _send_and_release_slot(
        self, pending_question: PendingQuestion[AnswerT], slot_acquired_at: float
    ) -> ParsedAnswer[AnswerT]:
        try:
            parsed_answer = await self._send_and_journal(pending_question)
        except ModelCallError as error:
            if error.code == "LLM-RATE" and (error.retry_after or 0) >= self._time_limit_seconds:
                self._breaker.open(error, error.retry_after or 0)
            elif error.code == "LLM-RATE":  # the limiter slows down until the provider takes calls
                self._limiter.record_throttling(slot_acquired_at, error.retry_after)
            elif error.code in _OUTAGE_CODES:
                self._breaker.record_failure(error)
            else:
                self._breaker.record_success()
            raise
        finally:
            self._limiter.release_slot()
        self._limiter.record_success()
        self._breaker.record_success()
        return parsed_answer

    async def _send_and_journal(self, pending_question: PendingQuestion[AnswerT]) -> ParsedAnswer[AnswerT]:
        with self._ledger.reserve_usage_within_limits(
            pending_question.question.document_sha256, self._estimate_usage(pending_question)
        ):
            asked_at, started_at = format_zulu_now("seconds"), time.monotonic()
            reply: Reply | None = None
            try:
                reply = await self._provider.send(pending_question.build_request(self._time_limit_seconds))
                parsed_answer = _parse_answer(
                    pending_question.question, reply.text, has_finish_reason=reply.has_finish_reason
                )
            except ModelCallError as error:
                usage = reply.usage if reply else error.usage
                pending_question.prepare_next_call(error, usage)
                self._journal_call(pending_question, asked_at, started_at, usage, failure_code=error.code)
                raise
            self._journal_call(pending_question, asked_at, started_at, reply.usage, answer_text=reply.text)
            return parsed_answer

    def _estimate_usage(self, pending_question: PendingQuestion[AnswerT]) -> Usage:
        usage = pending_question.estimate_usage()
        return add_list_price(self.name, usage) if self._ledger.limits.has_usd_limit else usage

    def _journal_call(
        self,
        pending_question: PendingQuestion[AnswerT],
        asked_at: str,
        started_monotonic: float,
        usage: Usage,
        *,
        answer_text: str | None = None,
        failure_code: str | None = None,
    ) -> None:
        call_seconds = time.monotonic() - started_monotonic
        pending_question.spent_seconds += call_seconds
        priced_usage = add_list_price(self.name, usage)
        self._ledger.record_call(
            ModelCall(
                question=pending_question.question_sha256,
                document=pending_question.question.document_sha256,
                role=pending_question.question.role,
                model=self.name,
                asked_at=asked_at,
                seconds=round(call_seconds, 3),
                answer=answer_text,
                failure=failure_code,
                input_tokens=priced_usage.input_tokens,
                output_tokens=priced_usage.output_tokens,
                cached_tokens=priced_usage.cached_tokens,
                thought_tokens=priced_usage.thought_tokens,
                cost_usd=priced_usage.cost_usd,
            )
        )


class ParsedAnswer(NamedTuple, Generic[AnswerT]):
    """A valid answer, and the harmless changes that were needed to read it."""

    answer: AnswerT
    changes: tuple[str, ...]


class PendingQuestion(Generic[AnswerT]):
    """A question on its way to the model, with its attempts and deadline."""

    def __init__(self, question: Question[AnswerT], model_name: str, base_url: str | None) -> None:
        self.question = question
        self.prompt, self.schema = question.prompt(), question.get_answer_schema()
        #: The fault of the last answer; the next call's prompt names it.
        self.answer_fault: str | None = None
        #: The output limit of the next calls, after an answer was truncated.
        self.max_output_tokens: int | None = None
        #: Seconds spent on calls and on pauses between them, without waiting for a free slot.
        self.spent_seconds = 0.0
        #: The question's identity in the journal.
        self.question_sha256 = hash_canonical_json(
            {
                "model": model_name,
                "address": base_url,
                "role": question.role,
                "prompt": self.prompt,
                "schema": self.schema,
                "images": [hashlib.sha256(image).hexdigest() for image in question.images],
                # Left out at 0, so that answers journalled before there were other temperatures stay valid.
                **({"temperature": question.temperature} if question.temperature else {}),
                **({"system": question.system_instruction} if question.system_instruction else {}),
            }
        )

    def estimate_usage(self) -> Usage:
        """Estimate the tokens of a call, rather too many; reasoning is not counted."""
        question = self.question
        input_tokens = estimate_input_tokens(self.prompt, question.system_instruction, self.schema, question.images)
        return Usage(calls=1, input_tokens=input_tokens, output_tokens=EXPECTED_ANSWER_TOKENS)

    def build_request(self, default_limit_seconds: float) -> Request:
        """Build the request to send, with the remaining time as its timeout."""
        time_limit = self.get_time_limit_seconds(default_limit_seconds)
        timeout_seconds = min(
            time_limit - self.spent_seconds,
            time_limit if self.question.time_limit_seconds else _ATTEMPT_TIME_SHARE * time_limit,
        )
        return Request(
            fill_prompt_template("Repeated_Question", question=self.prompt, fault=self.answer_fault)
            if self.answer_fault
            else self.prompt,
            self.schema,
            max(timeout_seconds, _MIN_CALL_SECONDS),
            self.question.images,
            self.question.temperature,
            self.max_output_tokens,
            self.question.system_instruction,
            self.question.measured_field,
        )

    def prepare_next_call(self, error: ModelCallError, usage: Usage) -> None:
        """Add to the next call what was wrong with the last answer."""
        if error.code in _UNUSABLE_ANSWER_CODES:
            self.answer_fault = error.message
        error.is_transient |= error.code == "LLM-TRUNCATED" and self.max_output_tokens is None
        if error.code == "LLM-TRUNCATED":
            self.max_output_tokens = max(_OUTPUT_ROOM_FACTOR * usage.output_tokens, _MIN_OUTPUT_ROOM)

    def get_time_limit_seconds(self, default_limit_seconds: float) -> float:
        """Return the question's own time limit, or the default if it has none."""
        return self.question.time_limit_seconds or default_limit_seconds


def _get_call_error(retry_state: RetryCallState) -> ModelCallError:
    return cast("ModelCallError", retry_state.outcome and retry_state.outcome.exception())


#: The end of a JSON value, or of a fence or tag around it.
_ENDS_LIKE_JSON = re.compile(r"[}\]\"][\s`;]*(?:</\w+>\s*)?\Z")
#: Failures of calls that gave an answer, but not a usable one.
_UNUSABLE_ANSWER_CODES = ("LLM-SHAPE", "LLM-NOT-JSON")


def _require_end(text: str) -> None:
    """Raise AnswerTextError if words follow the JSON: they may be a second thought."""
    if not _ENDS_LIKE_JSON.search(text):
        raise AnswerTextError("it is cut off")


def _parse_answer(question: Question[AnswerT], text: str, *, has_finish_reason: bool = True) -> ParsedAnswer[AnswerT]:
    """Parse an answer's text.

    ModelCallError LLM-NOT-JSON or LLM-SHAPE; LLM-TRUNCATED if the text is not JSON and nothing says why it ends. The
    message quotes nothing of the answer.
    """
    try:
        json_value, changes = question.normalise_answer(text)
        if not has_finish_reason:
            _require_end(text)
        return ParsedAnswer(question.parse_answer(json.dumps(json_value)), changes)
    except AnswerShapeError as error:
        code, problem = "LLM-SHAPE", f"has not the shape that was asked for: {error}"
    except ValidationError as error:
        first_error = error.errors(include_input=False, include_url=False, include_context=False)[0]
        schema_json = json.dumps(question.get_answer_schema())
        # A name that is not in the schema comes from the model, and may quote the document.
        error_path = [
            path_part if isinstance(path_part, int) or f'"{path_part}"' in schema_json else "…"
            for path_part in first_error["loc"]
        ]
        code, problem = (
            "LLM-SHAPE",
            f"has not the shape that was asked for, at {' → '.join(map(str, error_path)) or 'the whole'}"
            # The messages of evalkit's own validators may quote the answer.
            + ("" if first_error["type"] == "value_error" else f": {first_error['msg']}"),
        )
    except AnswerTextError as error:
        code, problem = "LLM-NOT-JSON", f"is not one JSON value: {error}"
    except (ValueError, RecursionError):
        code, problem = "LLM-NOT-JSON", "is not JSON"
    except Exception as error:  # noqa: BLE001 - the call is paid, and must be journalled even if parsing has a defect
        code, problem = "LLM-SHAPE", f"could not be read ({type(error).__name__})"
    is_truncated = code == "LLM-NOT-JSON" and not has_finish_reason
    raise ModelCallError(
        f"the model's answer {problem}",
        code="LLM-TRUNCATED" if is_truncated else code,
        remedy="Run the same command again, or choose another model.",
        is_transient=not is_truncated,  # a truncated answer is asked for again with more room, not just again
    )
