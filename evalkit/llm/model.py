"""A question becomes a validated answer.

Whoever needs an opinion builds a :class:`Question`; a :class:`Model` answers it. A model that cannot answer does not
raise: the :class:`Answer` carries the failure, because "could not say" is a third outcome beside yes and no, and the
one who asked must decide what it means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

A = TypeVar("A", bound=BaseModel)


class Question(ABC, Generic[A]):
    """What is asked, by whom, and what shape the answer must have."""

    role: str
    """Who asks: ``classifier``, ``V2``, ``V3``, ``V4``."""
    answer_type: type[A]
    """The shape of a valid answer."""

    @abstractmethod
    def prompt(self) -> str:
        """The whole text a language model is sent. Equal prompts of one role are the same question."""

    @abstractmethod
    def offline(self) -> A:
        """The answer that can be computed here without any language model, from what the prompt contains alone."""


@dataclass(frozen=True)
class Usage:
    """What answering cost."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: str = "0"
    """A decimal number as text."""


@dataclass(frozen=True)
class Answer(Generic[A]):
    """A validated answer, or the reason why there is none."""

    question: Question[A]
    value: A | None
    failure: str | None = None
    """Why there is no value, in words that quote no document text."""
    unparseable: bool = False
    """The model answered, but not in the shape asked for."""
    usage: Usage = field(default_factory=Usage)


class Model(Protocol):
    """Anything that answers questions."""

    @property
    def name(self) -> str:
        """As ``--model`` names it."""
        ...

    async def ask(self, question: Question[A]) -> Answer[A]:
        """Answer, or say why not. Raises nothing but cancellation."""
        ...
