"""The language models of one run: which are asked, through which ledger, how many at once."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Self

from evalkit.errors import StoreError, UsageError
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.gate import Gate
from evalkit.llm.ledger import Journal, Ledger, Limits, priced
from evalkit.llm.model import A, Answer, Model, Provider, Question, Usage
from evalkit.llm.providers import provider
from evalkit.llm.remote import LanguageModel
from evalkit.llm.roles import ByRole
from evalkit.settings import Settings, credentials

log = logging.getLogger(__name__)

EMBEDDED = "embedded"
"""The model that needs no provider."""
#: Who asks, besides the classifier.
_ROLES = {"full": ("classifier", "v2", "v3", "v4"), "lean": ("classifier", "verifier")}
_EXTRACTING = ("extractor", "evaluator", "grader")
#: Of a template's reviewers, where there is one only.
_ALONE = ("semantic_financial",)


class Asking:
    """Models by role, which share a ledger and a gate."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal | None = None,
        *,
        fresh: bool = False,
        extracts: bool = False,
        reviews: bool = False,
    ) -> None:
        """UsageError where a model cannot be asked: no such provider, no key, no price for a limit in dollars.

        ``extracts``: fields are read too. ``reviews``: only templates are built and reviewed.
        """
        by_role = _reviewing(settings) if reviews else _reading(settings, extracts=extracts)
        judges = settings.reliability_loop.ensemble if extracts else ()
        names = {settings.models.default, *by_role.values(), *judges}
        self.ledger = Ledger(journal, limits_of(settings), fresh=fresh)
        self._remote = {
            name: LanguageModel(
                provider_of(name, settings),
                self.ledger,
                Gate(settings.calls_in_flight),
                address={"openai": settings.openai_base_url, "ollama": settings.ollama_base_url}.get(
                    name.partition(":")[0]
                ),
                seconds=settings.call_seconds,
            )
            for name in sorted(names - {EMBEDDED})
        }
        self._waits: dict[str, _Wait] = defaultdict(_Wait)
        timed = {name: _Timed(model, self._waits) for name, model in self._remote.items()}
        known: dict[str, Model] = {EMBEDDED: EmbeddedModel(), **timed}
        self.model = ByRole(known[settings.models.default], {role: known[name] for role, name in by_role.items()})
        self.ensemble: tuple[Model, ...] = tuple(known[name] for name in judges)

    @property
    def is_remote(self) -> bool:
        """Whether any language model is asked."""
        return bool(self._remote)

    def seconds_on(self, document: str) -> float:
        """How long the document of that SHA-256 has waited for any language model so far."""
        return self._waits[document].seconds if document in self._waits else 0.0

    def end(self) -> None:
        """The run has come to its end. Whatever the journal says to that, its documents are told of."""
        try:
            self.ledger.end()
        except StoreError as error:
            log.warning(
                "the journal was not closed, so that the next --fresh run goes on with this one's answers: %s", error
            )

    async def close(self) -> None:
        """Wait for what is under way, and give the connections back."""
        async with AsyncExitStack() as closing:  # one that fails leaves none of the others open
            for model in self._remote.values():
                closing.push_async_callback(model.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


def _reading(settings: Settings, *, extracts: bool) -> dict[str, str]:
    """Models by role, of those who classify and extract."""
    roles = (*_ROLES[settings.profile], *(_EXTRACTING if extracts else ()))
    return {role: name for role, name in settings.models.by_role.items() if role in roles}


def _reviewing(settings: Settings) -> dict[str, str]:
    """Models by role, of those who review templates."""
    given = settings.vllm_review
    return {role: name for role, name in given.reviewers.by_role.items() if given.enabled or role in _ALONE}


@dataclass
class _Wait:
    """How long somebody has waited for answers that are asked for at once."""

    seconds: float = 0.0
    asked: int = 0
    since: float = 0.0


class _Timed:
    """A model, and how long each document has waited for it and for the others."""

    def __init__(self, model: Model, waits: dict[str, _Wait]) -> None:
        self._model = model
        self._waits = waits

    @property
    def name(self) -> str:
        return self._model.name

    async def ask(self, question: Question[A]) -> Answer[A]:
        wait = self._waits[question.document]
        if not wait.asked:
            wait.since = time.monotonic()
        wait.asked += 1
        try:
            return await self._model.ask(question)
        finally:
            wait.asked -= 1
            if not wait.asked:
                wait.seconds += time.monotonic() - wait.since


def limits_of(settings: Settings) -> Limits:
    """What may be spent; 0 is as much as it takes."""
    return Limits(**{name: limit or None for name, limit in settings.limits.model_dump().items()})


def provider_of(name: str, settings: Settings) -> Provider:
    """The provider that a model's name means. UsageError as ``Asking``."""
    found = provider(
        name,
        environment=credentials(),
        gemini_base_url=settings.gemini_base_url,
        openai_base_url=settings.openai_base_url,
        anthropic_base_url=settings.anthropic_base_url,
        ollama_base_url=settings.ollama_base_url,
    )
    if limits_of(settings).has_money and priced(name, Usage()).cost_usd is None:
        raise UsageError(
            f"nobody knows the price of {name}",
            code="MODEL-PRICE",
            remedy="Limit calls or tokens instead of dollars, or choose a model with a public price.",
        )
    return found
