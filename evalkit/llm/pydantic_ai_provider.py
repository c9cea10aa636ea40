"""Providers that are called through the library pydantic-ai.

pydantic-ai speaks the protocols and knows how each model counts tokens. Its agents, retries and tracing are not used.
It belongs to the extra ``providers``, and is imported only when a model needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urlsplit

from evalkit.core.install_hint import format_install_hint
from evalkit.core.remote_services import mute_loggers
from evalkit.errors import UsageError
from evalkit.llm.answer_text import state_probabilities
from evalkit.llm.model import ModelCallError, Reply, Request, Usage
from evalkit.llm.model_families import ModelFacts, load_model_family_table
from evalkit.llm.provider_family import (
    ProviderFamily,
    create_call_error,
    create_key_error,
    get_failure_code_for_http_status,
    read_credential,
    require_confidential_base_url,
)
from evalkit.llm.request_options import RequestFitter, RequestOptions, build_prompt

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
    from pydantic_ai.settings import ThinkingLevel

    ConnectedModel: TypeAlias = OpenAIChatModel | AnthropicModel

#: Loggers that quote requests, headers and answers; openai and anthropic use httpx2 and httpcore2 for HTTP.
_MUTED_LOGGERS = ("openai", "anthropic", "httpx2", "httpcore2")


def create_pydantic_ai_family(
    family_name: str,
    create_model: Callable[[str, str, str], ConnectedModel],
    *,
    default_base_url: str,
    key_variable: str,
    client_library: str = "openai",
) -> ProviderFamily:
    """Build a family of models that are called through pydantic-ai.

    ``create_model``: creates a model from its name, the base URL and the key. ``client_library``: the library that must
    be installed besides pydantic-ai. A site's own server needs no key.
    """
    description = load_model_family_table().providers[family_name]

    def create_provider(
        model_name: str, base_url: str | None, environment: Mapping[str, str], facts: ModelFacts
    ) -> PydanticAIProvider:
        checked_url = require_confidential_base_url(
            base_url or default_base_url, allow_private_network=description.self_hostable
        )
        api_key = read_credential(environment, key_variable)
        is_own_server = description.free or (
            description.self_hostable and urlsplit(checked_url).hostname != urlsplit(default_base_url).hostname
        )
        if not (api_key or is_own_server):
            raise create_key_error(f"{family_name} needs a key", key_variable)
        try:
            import_module(f"pydantic_ai.models.{client_library}")  # it imports the client library too
        except ImportError:
            raise UsageError(
                f"{family_name} needs libraries that are not installed",
                code="MODEL-EXTRA",
                remedy=f"Run {format_install_hint('providers')}.",
            ) from None
        # Servers that a site runs itself seldom need a key, but the client library does.
        connect = partial(create_model, model_name, checked_url, api_key or "none")
        return PydanticAIProvider(f"{family_name}:{model_name}", connect, facts)

    return ProviderFamily(create_provider, environment_variables=(key_variable,), description=description)


class PydanticAIProvider:
    """A provider's language model, called through pydantic-ai.

    The connection belongs to the running event loop; a call in another event loop opens a new connection.
    """

    def __init__(self, model_name: str, create_model: Callable[[], ConnectedModel], facts: ModelFacts) -> None:
        self._model_name = model_name
        self._create_model = create_model
        self._facts = facts
        self._fitter = RequestFitter(model_name, facts)
        self._connection: tuple[asyncio.AbstractEventLoop, ConnectedModel] | None = None

    @property
    def name(self) -> str:
        """Name of the model, as ``--model`` takes it."""
        return self._model_name

    async def send(self, request: Request) -> Reply:
        """Send the request once, with the options that the model takes.

        ModelCallError if there is no complete reply; LLM-OPTION if an option was refused.
        """
        options = self._fitter.options
        self._fitter.require_readable(request)
        outcome: Reply | ModelCallError
        try:
            # The clients' timeout applies to each step of a call: a server that sends byte by byte never reaches it.
            async with asyncio.timeout(request.timeout_seconds):
                outcome = _convert_response(
                    self.name, await self._request_model(request, options), request.measured_field
                )
        except Exception as error:  # noqa: BLE001 - the libraries pass on any error of their parsers
            outcome = self._explain_refusal(request, options, error) or _translate_error(self.name, error)
        # Raised outside the except block: the library's error, which may quote the prompt, must not become its context.
        if isinstance(outcome, ModelCallError):
            raise outcome
        self._fitter.require_schema(request, options, outcome)
        return outcome

    async def close(self) -> None:
        """Close the connections; later requests open new ones."""
        connection, self._connection = self._connection, None
        # A connection of an ended event loop cannot be closed.
        if connection is not None and connection[0] is asyncio.get_running_loop():
            await connection[1].client.close()

    def _explain_refusal(self, request: Request, options: RequestOptions, error: Exception) -> ModelCallError | None:
        from pydantic_ai import exceptions as library

        match error:
            case library.ModelHTTPError(status_code=400 | 413 | 415 | 422 | 501, body=body):
                return self._fitter.explain_refusal(request, options, body)
            case library.ModelHTTPError():  # a wrong key, which the library counts as a wrong use of it, too
                return None
            case library.UserError() | library.ModelRequestRejectedError():
                # The library refuses schemas that a model cannot take before it sends anything.
                return self._fitter.explain_refusal(request, options, {"param": "json_schema"}, usage=Usage())
        return None

    async def _request_model(self, request: Request, options: RequestOptions) -> ModelResponse:
        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import BinaryContent, ModelRequest, SystemPromptPart, UserPromptPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition
        from pydantic_ai.settings import ModelSettings

        settings = ModelSettings(timeout=request.timeout_seconds)
        parameters = ModelRequestParameters()
        if options.answer_mode == "schema":
            schema = _convert_nullable_types_to_any_of(request.answer_schema)
            parameters = ModelRequestParameters(
                output_mode="native", output_object=OutputObjectDefinition(schema, name="answer")
            )
        elif options.answer_mode == "json":
            settings["extra_body"] = {"response_format": {"type": "json_object"}}
        if options.has_temperature:
            settings["temperature"] = request.temperature
        if options.has_thinking and self._facts.thinking:
            settings["thinking"] = cast("ThinkingLevel", self._facts.thinking.value)
        if options.has_probabilities and request.measured_field:
            cast("OpenAIChatModelSettings", settings)["openai_logprobs"] = True
        if output_limit := self._facts.limit_output_tokens(request.max_output_tokens):
            settings["max_tokens"] = output_limit
        has_system_part = request.system_instruction and options.has_system_instruction
        system_parts = [SystemPromptPart(request.system_instruction)] if has_system_part else []
        prompt = build_prompt(request, options)
        image_parts = [BinaryContent(image, media_type="image/png") for image in request.images]
        return await model_request(
            self._get_connected_model(),
            # Some small servers accept only text, so a list of parts is sent only if there are pictures.
            [ModelRequest([*system_parts, UserPromptPart([prompt, *image_parts] if image_parts else prompt)])],
            model_settings=settings,
            model_request_parameters=parameters,
            instrument=False,
        )

    def _get_connected_model(self) -> ConnectedModel:
        event_loop = asyncio.get_running_loop()
        if self._connection is None or self._connection[0] is not event_loop:
            self._connection = event_loop, self._create_model()
            mute_loggers(_MUTED_LOGGERS)
        return self._connection[1]


def _convert_nullable_types_to_any_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Replace nullable types by ``anyOf``: Anthropic's library takes no type lists.

    >>> _convert_nullable_types_to_any_of({"type": ["string", "null"], "enum": ["a", None]})
    {'anyOf': [{'type': 'string', 'enum': ['a']}, {'type': 'null'}]}
    """
    expanded_schema = dict(schema)
    if "items" in expanded_schema:
        expanded_schema["items"] = _convert_nullable_types_to_any_of(expanded_schema["items"])
    if "properties" in expanded_schema:
        expanded_schema["properties"] = {
            field_name: _convert_nullable_types_to_any_of(value)
            for field_name, value in expanded_schema["properties"].items()
        }
    if not isinstance(expanded_schema.get("type"), list):
        return expanded_schema
    (json_type,) = (json_type for json_type in expanded_schema["type"] if json_type != "null")
    expanded_schema["type"] = json_type
    if "enum" in expanded_schema:
        expanded_schema["enum"] = [value for value in expanded_schema["enum"] if value is not None]
    return {"anyOf": [expanded_schema, {"type": "null"}]}


_CODE_BY_FINISH_REASON = {"length": "LLM-TRUNCATED", "content_filter": "LLM-REFUSED"}


def _translate_error(model_name: str, error: Exception) -> ModelCallError:
    """Translate a library's error, without its text, which may quote the prompt."""
    from pydantic_ai import exceptions as library

    match error:
        case library.ModelHTTPError(status_code=status):
            return create_call_error(
                model_name,
                get_failure_code_for_http_status(status),
                note=f"HTTP {status}",
                # Too many calls and missing credit have the same status, but missing credit is not worth a retry.
                is_final=isinstance(error, library.ModelQuotaExceededError),
                retry_after_seconds=error.retry_after,
            )
        case TimeoutError() | library.ModelTimeoutError():
            return create_call_error(model_name, "LLM-TIMEOUT")
        case library.ModelConnectionError():
            return create_call_error(model_name, "LLM-UNREACHABLE")
        case library.UserError() | library.ModelRequestRejectedError():
            # The library refused the request before sending, for example because the model takes no such schema.
            return create_call_error(model_name, "LLM-REQUEST", usage=Usage())
    # The libraries do not validate responses, so a body of another shape may raise any error.
    return create_call_error(model_name, "LLM-MALFORMED", note=type(error).__name__)


def _convert_response(model_name: str, response: ModelResponse, measured_field: str) -> Reply | ModelCallError:
    from pydantic_ai.messages import TextPart

    token_counts = response.usage
    usage = Usage(
        calls=1,
        input_tokens=token_counts.input_tokens,
        output_tokens=token_counts.output_tokens,
        cached_tokens=token_counts.cache_read_tokens,
        thought_tokens=token_counts.output_reasoning_tokens,
    )
    # The library takes a missing reason of OpenAI's protocol for "stop"; only the details tell the difference.
    details = response.provider_details or {}
    has_finish_reason = response.finish_reason == "content_filter" or "finish_reason" in details
    if has_finish_reason and response.finish_reason != "stop":
        return create_call_error(
            model_name, _CODE_BY_FINISH_REASON.get(response.finish_reason or "", "LLM-UNKNOWN"), usage=usage
        )
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    if measured_field:
        tokens = [
            (bytes(token["bytes"] or token["token"].encode()), token["logprob"])
            for token in details.get("logprobs", ())
        ]
        text = state_probabilities(text, tokens, measured_field)
    return (
        Reply(text, usage, has_finish_reason)
        if text.strip()
        else create_call_error(model_name, "LLM-EMPTY", usage=usage)
    )
