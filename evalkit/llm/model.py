"""Questions, and the models that answer them.

A caller who needs an opinion builds a :class:`Question`; a :class:`Model` answers it. A model that cannot answer does
not raise: the :class:`Answer` carries the failure, because "could not answer" is a third outcome next to yes and no,
and the caller must decide what it means.

Below that, a :class:`Provider` sends one request to a language model and returns its reply. It neither retries nor
caches, so that every call is counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ModelError
from evalkit.llm.answer_text import NormalisedAnswer, extract_answer_json
from evalkit.llm.json_schema import build_inlined_json_schema

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class AnswerShapeError(ValueError):
    """An answer contradicts itself; the message quotes nothing of it."""


class Question(ABC, Generic[AnswerT]):
    """A question with its role and the shape of its answer."""

    role: str
    """The asking role: ``classifier``, ``V2``, ``V3``, ``V4``, ``verifier``."""
    answer_type: type[AnswerT]
    """The shape of a valid answer."""
    images: tuple[bytes, ...] = ()
    """PNG pictures that belong to the prompt, in their order."""
    temperature: float = 0.0
    """The randomness of the answer, from 0 on."""
    time_limit_seconds: float | None = None
    """Seconds that it may take, one call all of them; None: the default, which leaves time for a second call."""

    @property
    def document_sha256(self) -> str:
        """SHA-256 of the document that it is about; spending is limited and purged by it."""
        return ""

    def prompt(self) -> str:
        """Return the prompt. Equal prompts of one role are the same question."""
        return self._prompt

    @cached_property
    def _prompt(self) -> str:
        return self.render_prompt()

    @abstractmethod
    def render_prompt(self) -> str:
        """Render the prompt; called once, as it is long."""

    @abstractmethod
    def offline(self) -> AnswerT:
        """Compute the answer without a language model, from the prompt's content alone."""

    def get_answer_schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema that a language model's answer should have."""
        return build_inlined_json_schema(self.answer_type)

    def normalise_answer(self, text: str) -> NormalisedAnswer:
        """Read the JSON of a language model's text.

        AnswerTextError; AnswerShapeError if it contradicts itself.
        """
        return extract_answer_json(text)

    def parse_answer(self, text: str) -> AnswerT:
        """Parse normalised JSON as an answer. pydantic.ValidationError."""
        return self.answer_type.model_validate_json(text)


class DocumentQuestion(Question[AnswerT]):
    """A question about one document."""

    bundle: DocumentBundle

    @property
    def document_sha256(self) -> str:
        """The bundle's SHA-256."""
        return self.bundle.sha256


@dataclass(frozen=True)
class Usage:
    """The cost of answering."""

    calls: int = 0
    input_tokens: int = 0
    """Including cached ones."""
    output_tokens: int = 0
    """Including thoughts."""
    cost_usd: str | None = "0"
    """A decimal number as text; None if the price is unknown."""
    cached_tokens: int = 0
    """The part of the input that the provider had cached."""
    thought_tokens: int = 0
    """The part of the output that is not the answer."""

    def __add__(self, other: Usage) -> Usage:
        is_cost_known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=str(Decimal(self.cost_usd or 0) + Decimal(other.cost_usd or 0)) if is_cost_known else None,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            thought_tokens=self.thought_tokens + other.thought_tokens,
        )


@dataclass(frozen=True)
class Answer(Generic[AnswerT]):
    """A validated answer, or the reason why there is none."""

    question: Question[AnswerT]
    value: AnswerT | None
    failure: str | None = None
    """The reason why there is no value; it quotes no document text."""
    is_unparseable: bool = False
    """The model answered, but in a wrong shape."""
    usage: Usage = field(default_factory=Usage)
    normalisation_changes: tuple[str, ...] = ()
    """What was changed without loss to read the model's answer."""


class Model(Protocol):
    """Anything that answers questions."""

    @property
    def name(self) -> str:
        """The model's name, as ``--model`` names it."""

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        """Answer a question, or give the reason why not.

        StoreError if the answer could not be stored; no other error but cancellation.
        """


@dataclass(frozen=True)
class Request:
    """One call of a language model."""

    prompt: str
    answer_schema: Mapping[str, Any]
    """JSON Schema of the answer."""
    timeout_seconds: float
    """The call may take so long."""
    images: tuple[bytes, ...] = ()
    """PNG pictures."""
    temperature: float = 0.0


@dataclass(frozen=True)
class Reply:
    """A language model's whole reply.

    One that was cut off, refused or empty is a :class:`ModelCallError`.
    """

    text: str
    usage: Usage
    """``calls`` is 1, ``cost_usd`` 0: prices are the ledger's."""


class ModelCallError(ModelError):
    """A call gave no whole reply.

    Codes: ``LLM-KEY`` (401, 403) ``LLM-MODEL`` (404) ``LLM-REQUEST`` (other 4xx) ``LLM-RATE`` (429) ``LLM-SERVER``
    (5xx) ``LLM-UNREACHABLE`` ``LLM-TIMEOUT`` ``LLM-MALFORMED`` (no reply of the protocol) ``LLM-EMPTY`` ``LLM-TRUNCATED``
    ``LLM-REFUSED`` (safety, recitation, blocked prompt) ``LLM-UNKNOWN`` (it stopped for an unknown reason);
    of replies that are whole and of no use: ``LLM-NOT-JSON`` ``LLM-SHAPE``.

    ``is_transient``: the same call may succeed later; ``retry_after``: seconds that the provider asked to wait; ``usage``:
    what it cost all the same. The message quotes neither the prompt nor the reply nor the key.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        remedy: str,
        is_transient: bool = False,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message, code=code, remedy=remedy)
        self.is_transient = is_transient
        self.retry_after = retry_after
        self.usage = usage or Usage(calls=1)


class Provider(Protocol):
    """A service or program that runs language models."""

    @property
    def name(self) -> str:
        """Provider and model, as ``--model`` names them: ``gemini:gemini-2.5-flash``."""

    async def send(self, request: Request) -> Reply:
        """Send a request once, at its temperature.

        ModelCallError without a whole reply; no other error but cancellation.
        """

    async def close(self) -> None:
        """Close the connections."""
