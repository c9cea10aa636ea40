"""Interfaces of questions and answers, and of the models that answer.

A caller builds a :class:`Question`; a :class:`Model` answers it. A model that cannot answer does not raise: the
:class:`Answer` carries the reason, and the caller decides how to go on.

A language model is reached through a :class:`Provider`, which sends one request and returns the reply. Providers
neither retry nor cache, so that every call is counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ModelError
from evalkit.llm.answer_normalisation import build_full_json_schema, normalise_answer
from evalkit.llm.answer_text import NormalisedAnswer
from evalkit.llm.json_schema import build_inlined_json_schema
from evalkit.llm.prompts import fill_prompt_template

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class Question(ABC, Generic[AnswerT]):
    """A question to a model: prompt, pictures, and the type of a valid answer."""

    role: str
    """The role that asks, such as ``classifier``, ``V2``, ``extractor``; each role may have its own model."""
    answer_type: type[AnswerT]
    """The pydantic model that a valid answer has."""
    images: tuple[bytes, ...] = ()
    """PNG pictures that belong to the prompt, in their order."""
    temperature: float = 0.0
    """Randomness of the model's answer; 0: as little as possible."""
    measured_field: str = ""
    """The text field of the answer whose values' probabilities are asked for; empty: none."""
    time_limit_seconds: float | None = None
    """Seconds for the answer, all usable by one call. None: the model's limit, of which a call may use half."""

    @property
    def requested_type(self) -> type[BaseModel]:
        """The pydantic model of the answer that is requested of a language model."""
        return self.answer_type

    @property
    def document_sha256(self) -> str:
        """SHA-256 of the document that the question is about; empty if about none.

        Spending limits and the purge of documents use this hash.
        """
        return ""

    @property
    def system_instruction(self) -> str:
        """System instruction, which is sent with every prompt; empty for none."""
        return ""

    def prompt(self) -> str:
        """Return the prompt, rendered once and then cached.

        Questions of one role with equal prompts are the same question for the journal.
        """
        return self._prompt

    @cached_property
    def _prompt(self) -> str:
        return self.render_prompt()

    @abstractmethod
    def render_prompt(self) -> str:
        """Render the prompt's text; ``prompt`` calls this once."""

    @abstractmethod
    def offline(self) -> AnswerT:
        """Compute the answer without a language model, from the same content."""

    def get_answer_schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema that a language model's answer must follow."""
        return build_inlined_json_schema(self.requested_type)

    def normalise_answer(self, text: str) -> NormalisedAnswer:
        """Return the only JSON value in a language model's text, and the changes made.

        AnswerTextError if there is not exactly one JSON value. AnswerShapeError if the answer contradicts itself or
        has another shape than ``requested_type``.
        """
        return normalise_answer(text, build_full_json_schema(self.requested_type))

    def parse_answer(self, text: str) -> AnswerT:
        """Parse JSON as an answer. pydantic.ValidationError if it has another shape."""
        return self.answer_type.model_validate_json(text)


class DocumentQuestion(Question[AnswerT]):
    """A question about one document."""

    bundle: DocumentBundle
    pictured_pages: tuple[int, ...] = ()
    """Number of the page that each of ``images`` shows, from 1."""

    @property
    def document_sha256(self) -> str:
        """SHA-256 of the document's file."""
        return self.bundle.sha256

    @property
    def system_instruction(self) -> str:
        """Rules about documents, the same for all roles.

        So a provider can cache them with the document.
        """
        return fill_prompt_template("System_Instruction")


@dataclass(frozen=True)
class Usage:
    """The calls, tokens and US dollars that answers cost."""

    calls: int = 0
    input_tokens: int = 0
    """Tokens of prompts, cached tokens included."""
    output_tokens: int = 0
    """Tokens of replies, thought tokens included."""
    cost_usd: str | None = "0"
    """US dollars, a decimal number as text; None if the price is unknown."""
    cached_tokens: int = 0
    thought_tokens: int = 0
    """Output tokens that the model used for reasoning."""

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
    """The reason why ``value`` is None, without document text."""
    is_unparseable: bool = False
    """True if the model answered, but not in the requested shape."""
    usage: Usage = field(default_factory=Usage)
    normalisation_changes: tuple[str, ...] = ()
    """Sentences about the harmless changes that were needed to read the answer, such as removed prose."""


def list_normalisation_changes(answers: Iterable[Answer[Any]]) -> tuple[str, ...]:
    """List the harmless changes needed to read answers, each with its role, once."""
    return tuple(
        sorted({f"{answer.question.role}: {change}" for answer in answers for change in answer.normalisation_changes})
    )


class Model(Protocol):
    """Interface of anything that answers questions."""

    @property
    def name(self) -> str:
        """Name of the model, as ``--model`` takes it."""

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        """Answer a question; the answer carries a failure if the model cannot.

        StoreError if the answer could not be stored; ModelSetupError or RunStopped if no question of this role can be
        answered, which is no document's fault. No other error except cancellation.
        """


@dataclass(frozen=True)
class Request:
    """A request to a language model, for one call."""

    prompt: str
    answer_schema: Mapping[str, Any]
    timeout_seconds: float
    images: tuple[bytes, ...] = ()
    temperature: float = 0.0
    max_output_tokens: int | None = None
    """Output limit that replaces the model family's: an answer did not fit into that; None: the family's."""
    system_instruction: str = ""
    """Rules that stand above the prompt; empty: none."""
    measured_field: str = ""
    """The text field whose values the reply states with their probabilities; empty: none."""


@dataclass(frozen=True)
class Reply:
    """A language model's complete reply.

    If a reply is cut off, refused or empty, :class:`ModelCallError` is raised instead.
    """

    text: str
    usage: Usage
    """Tokens of this call; the ledger adds the price."""
    has_finish_reason: bool = True
    """False if the server does not say why the text ends: it is then complete only if its JSON is."""


class ModelCallError(ModelError):
    """Error for a failed call of a language model, or an unusable reply.

    Codes: ``LLM-KEY`` (401, 403) ``LLM-MODEL`` (404) ``LLM-REQUEST`` (other 4xx) ``LLM-OPTION`` (an optional part was
    refused, and is left out next time) ``LLM-CONTEXT`` (the prompt is too long) ``LLM-RATE`` (429) ``LLM-SERVER``
    (5xx) ``LLM-UNREACHABLE`` ``LLM-TIMEOUT`` ``LLM-MALFORMED`` (the response violates the protocol) ``LLM-EMPTY``
    ``LLM-TRUNCATED`` ``LLM-REFUSED`` (safety, recitation, blocked prompt) ``LLM-UNKNOWN`` (the model stopped for an
    unknown reason); for complete replies that cannot be used: ``LLM-NOT-JSON`` ``LLM-SHAPE``.

    ``is_transient``: the same call may succeed later; ``retry_after``: seconds that the provider asked to wait;
    ``usage``: the cost of the failed call. The message quotes neither the prompt nor the reply nor the key.
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
    """Interface of a service or program that runs a language model."""

    @property
    def name(self) -> str:
        """Provider and model, as ``--model`` names them: ``gemini:gemini-2.5-flash``."""

    async def send(self, request: Request) -> Reply:
        """Send a request once, and return the reply.

        ModelCallError if there is no complete reply. No other error except cancellation.
        """

    async def close(self) -> None:
        """Close the provider's connections."""
