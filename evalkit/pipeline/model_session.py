"""Language models of one run, with their cost ledger and concurrency limits."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from typing import Self

from evalkit.errors import ModelSetupError, RunStopped, StoreError, UsageError
from evalkit.llm.circuit_breaker import name_model
from evalkit.llm.client import LanguageModel
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.cost_estimate import EstimatingModel
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.ledger import Journal, Ledger, add_list_price
from evalkit.llm.model import Answer, AnswerT, Model, Provider, Question, Usage
from evalkit.llm.model_families import find_model_facts
from evalkit.llm.model_router import ModelRouter
from evalkit.llm.prompts import use_own_prompts
from evalkit.llm.providers import build_provider, find_family
from evalkit.pipeline.fingerprint import find_base_url, find_own_server
from evalkit.settings import Settings, read_environment_variables

log = logging.getLogger(__name__)

#: Name of the model that is part of evalkit and needs no provider.
EMBEDDED_MODEL_NAME = "embedded"
#: Roles for which models are asked, by profile.
_ROLES_BY_PROFILE = {"full": ("classifier", "v2", "v3", "v4"), "lean": ("classifier", "verifier")}
_EXTRACTION_ROLES = ("extractor", "evaluator", "grader")
#: Failures of a first call that waiting seldom ends: a wrong address.
_UNREACHABLE_CODES = ("LLM-UNREACHABLE", "LLM-MALFORMED")
#: Role of the reviewer if a template has only one reviewer.
_SINGLE_REVIEWER_ROLES = ("semantic_financial",)


class ModelSession:
    """Language models of one run, by role, with a shared cost ledger."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal | None = None,
        *,
        fresh: bool = False,
        for_extraction: bool = False,
        for_template_review: bool = False,
        estimates_only: bool = False,
    ) -> None:
        """Prepare the models that this kind of run asks.

        UsageError if a model has no provider or key, or no known price although dollars are limited. A warning is logged,
        once in a process, if a language model classifies and verifies. ``estimates_only``: send nothing and need no key;
        ``estimated_models`` count what calls would cost. ``for_extraction``: fields are extracted too.
        ``for_template_review``: only templates are built and reviewed.
        """
        name_by_role = (
            _select_template_review_model_names(settings)
            if for_template_review
            else _select_processing_model_names(settings, for_extraction=for_extraction)
        )
        judge_names = settings.reliability_loop.ensemble if for_extraction else ()
        model_names = {settings.models.default, *name_by_role.values(), *judge_names}
        self.estimated_models: list[EstimatingModel] = []
        if estimates_only:
            # An estimate of a fresh run begins no such run: it only sees no earlier answers.
            self.ledger = Ledger(None if fresh else journal)
            self.estimated_models = [
                EstimatingModel(name, self.ledger, find_own_server(name, settings))
                for name in sorted(model_names - {EMBEDDED_MODEL_NAME})
            ]
        else:
            _require_run_limit(model_names, settings)
            self.ledger = Ledger(journal, settings.limits, ignore_earlier_answers=fresh)
        self._language_models: dict[str, LanguageModel] = {model.name: model for model in self.estimated_models} or {
            name: LanguageModel(
                create_provider(name, settings),
                self.ledger,
                AimdLimiter(settings.calls_in_flight),
                base_url=find_own_server(name, settings),
                time_limit_seconds=settings.call_seconds,
                outage_seconds=settings.outage_seconds,
            )
            for name in sorted(model_names - {EMBEDDED_MODEL_NAME})
        }
        self._prompts_folder, self._exit_stack = settings.prompts_folder, AsyncExitStack()
        self._wait_by_document: dict[str, _WaitTime] = defaultdict(_WaitTime)
        timed_models = {
            name: _TimedModel(model, self._wait_by_document) for name, model in self._language_models.items()
        }
        model_by_name: dict[str, Model] = {EMBEDDED_MODEL_NAME: EmbeddedModel(), **timed_models}
        self.model = ModelRouter(
            model_by_name[settings.models.default], {role: model_by_name[name] for role, name in name_by_role.items()}
        )
        self.ensemble: tuple[Model, ...] = tuple(model_by_name[name] for name in judge_names)
        if not for_template_review:
            _warn_of_model_that_checks_itself(
                *(name_by_role.get(role, settings.models.default) for role in _ROLES_BY_PROFILE[settings.profile])
            )

    @property
    def has_language_models(self) -> bool:
        """True if the session uses any language model besides the built-in model."""
        return bool(self._language_models)

    @property
    def setup_error(self) -> ModelSetupError | None:
        """An error of a model's key, name or parameters in this run, or None."""
        return next((model.setup_error for model in self._language_models.values() if model.setup_error), None)

    async def probe_models(self) -> None:
        """Send each language model a short test question before a long run.

        ModelSetupError if a key, name or parameter is refused; RunStopped if a server cannot be reached. A model that is
        only slow or overloaded is asked again when its first question comes.
        """
        failures = await asyncio.gather(*(model.probe() for model in self._language_models.values()))
        for name, failure in zip(self._language_models, failures, strict=True):
            if failure and (not failure.is_transient or failure.code in _UNREACHABLE_CODES):
                error_type = RunStopped if failure.is_transient else ModelSetupError
                raise error_type(
                    f"{name_model(name, failure.message)}, so no document was started",
                    code=failure.code,
                    remedy=failure.remedy,
                )

    async def wait_until_up(self) -> bool:
        """Wait while a model's service is down; return False if no service is down."""
        models_down = [model for model in self._language_models.values() if model.is_down]
        for model in models_down:
            await model.wait_until_up()
        return bool(models_down)

    def get_seconds_waited(self, document_sha256: str) -> float:
        """Return the seconds for which a document has waited for language models."""
        return (
            self._wait_by_document[document_sha256].total_seconds if document_sha256 in self._wait_by_document else 0.0
        )

    def mark_run_finished(self) -> tuple[str, ...]:
        """Mark the ``--fresh`` run as finished; return an error text if that failed.

        A failure is a problem of the run, not an error, because the documents are done.
        """
        try:
            self.ledger.mark_fresh_run_finished()
        except StoreError as error:
            return (f"The end of this run was not recorded, so the next --fresh run reuses its answers: {error}",)
        return ()

    async def __aenter__(self) -> Self:
        """Use the site's own prompts from here on. UsageError if one is unusable."""
        self._exit_stack.enter_context(use_own_prompts(self._prompts_folder))
        # Closing waits for pending calls. If one model fails to close, the others are closed all the same.
        for model in self._language_models.values():
            self._exit_stack.push_async_callback(model.close)
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._exit_stack.aclose()


def find_seeing_roles(settings: Settings) -> frozenset[str]:
    """Return the roles, in lower case, whose model is known to accept images.

    Empty if no pictures are to be sent. V3 sees none, because its traps are words.
    """
    if not settings.pictures_per_document:
        return frozenset()
    model_name_by_role = settings.models.model_name_by_role
    return frozenset(
        role
        for role in _ROLES_BY_PROFILE[settings.profile]
        if role != "v3" and find_model_facts(model_name_by_role.get(role, settings.models.default)).has_vision
    )


@cache
def _warn_of_model_that_checks_itself(classifier_name: str, *verifier_names: str) -> None:
    if classifier_name != EMBEDDED_MODEL_NAME and classifier_name in verifier_names:
        log.warning(
            "%s classifies and verifies. A model seldom finds its own errors: "
            "set a model of another family for v2, v3, v4 and verifier in [models] of evalkit.toml",
            classifier_name,
        )


def _select_processing_model_names(settings: Settings, *, for_extraction: bool) -> dict[str, str]:
    roles = (*_ROLES_BY_PROFILE[settings.profile], *(_EXTRACTION_ROLES if for_extraction else ()))
    return {role: name for role, name in settings.models.model_name_by_role.items() if role in roles}


def _select_template_review_model_names(settings: Settings) -> dict[str, str]:
    review_settings = settings.vllm_review
    return {
        role: name
        for role, name in review_settings.reviewers.model_name_by_role.items()
        if review_settings.enabled or role in _SINGLE_REVIEWER_ROLES
    }


@dataclass
class _WaitTime:
    """Time that a document has waited for answers, overlapping calls counted once."""

    total_seconds: float = 0.0
    open_calls: int = 0
    waiting_since: float = 0.0


class _TimedModel:
    """Model wrapper that measures how long each document waits for answers."""

    def __init__(self, model: Model, wait_by_document: dict[str, _WaitTime]) -> None:
        self._model = model
        self._wait_by_document = wait_by_document

    @property
    def name(self) -> str:
        return self._model.name

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        wait_time = self._wait_by_document[question.document_sha256]
        if not wait_time.open_calls:
            wait_time.waiting_since = time.monotonic()
        wait_time.open_calls += 1
        try:
            return await self._model.ask(question)
        finally:
            wait_time.open_calls -= 1
            if not wait_time.open_calls:
                wait_time.total_seconds += time.monotonic() - wait_time.waiting_since


def create_provider(provider_and_model: str, settings: Settings) -> Provider:
    """Create the provider of a model whose name begins with the provider's family.

    UsageError as for ``ModelSession``.
    """
    family = find_family(provider_and_model)
    model_provider = build_provider(
        provider_and_model,
        environment=read_environment_variables(family.environment_variables if family else ()),
        base_url=find_base_url(provider_and_model, settings),
        context_tokens=settings.context_tokens,
    )
    has_price = add_list_price(provider_and_model, Usage()).cost_usd is not None
    if settings.limits.has_usd_limit and not has_price and _is_paid(provider_and_model, settings):
        raise UsageError(
            f"the price of {provider_and_model} is unknown",
            code="MODEL-PRICE",
            remedy="Limit calls or tokens instead of dollars, or choose a model with a public price.",
        )
    return model_provider


#: Code of the error that a paid model has no limit; the command line asks for one.
NO_LIMIT_CODE = "MODEL-LIMIT"


def _require_run_limit(model_names: Iterable[str], settings: Settings) -> None:
    """Raise UsageError if a paid model is asked and nothing limits the run."""
    paid_models = sorted(name for name in model_names if _is_paid(name, settings))
    if paid_models and not settings.limits.has_run_limit:
        raise UsageError(
            f"{', '.join(paid_models)} costs money, and this run has no limit",
            code=NO_LIMIT_CODE,
            remedy="Set usd_per_run, tokens_per_run or calls_per_run in the section [limits] of evalkit.toml, or add "
            "--usd-per-run N to the command (N = 0 allows any cost); `evalkit run --estimate` says what to expect.",
        )


def _is_paid(provider_and_model: str, settings: Settings) -> bool:
    """Return True if the model costs money.

    Unpriced models on a site's own server are free.
    """
    family = find_family(provider_and_model)
    if family is None or family.description.free:
        return False
    has_price = add_list_price(provider_and_model, Usage()).cost_usd is not None
    return has_price or not find_own_server(provider_and_model, settings)
