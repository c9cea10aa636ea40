"""The language models of one run: which are asked, through which ledger, how many at once."""

from __future__ import annotations

from typing import Self

from evalkit.errors import UsageError
from evalkit.llm import ledger
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.gate import Gate
from evalkit.llm.ledger import Journal, Ledger, priced
from evalkit.llm.model import Model, Provider, Usage
from evalkit.llm.providers import provider
from evalkit.llm.remote import LanguageModel
from evalkit.llm.roles import ByRole
from evalkit.settings import Settings, credentials

EMBEDDED = "embedded"
"""The model that needs no provider."""


class Asking:
    """Models by role, which share a ledger and a gate."""

    def __init__(self, settings: Settings, journal: Journal | None = None, *, fresh: bool = False) -> None:
        """UsageError where a model cannot be asked: no such provider, no key, no price for a limit in dollars."""
        models = settings.models
        self.ledger = Ledger(journal, ledger.Limits(**settings.limits.model_dump()), fresh=fresh)
        gate = Gate(settings.calls_in_flight)
        self._remote = {
            name: LanguageModel(provider_of(name, settings), self.ledger, gate, seconds=settings.call_seconds)
            for name in sorted(models.names - {EMBEDDED})
        }
        known: dict[str, Model] = {EMBEDDED: EmbeddedModel(), **self._remote}
        self.model: Model = ByRole(known[models.default], {role: known[name] for role, name in models.by_role.items()})

    @property
    def is_remote(self) -> bool:
        """Whether any language model is asked."""
        return bool(self._remote)

    async def close(self) -> None:
        """Wait for what is under way, and give the connections back."""
        for model in self._remote.values():
            await model.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


def provider_of(name: str, settings: Settings) -> Provider:
    """The provider that a model's name means. UsageError as ``Asking``."""
    if ledger.Limits(**settings.limits.model_dump()).has_money and priced(name, Usage()).cost_usd is None:
        raise UsageError(
            f"nobody knows the price of {name}",
            code="MODEL-PRICE",
            remedy="Limit calls or tokens instead of dollars, or choose a model with a public price.",
        )
    return provider(
        name,
        environment=credentials(),
        gemini_base_url=settings.gemini_base_url,
        openai_base_url=settings.openai_base_url,
        anthropic_base_url=settings.anthropic_base_url,
        ollama_base_url=settings.ollama_base_url,
    )
