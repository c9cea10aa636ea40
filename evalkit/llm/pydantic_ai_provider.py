"""Providers that are called through the library pydantic-ai.

pydantic-ai knows which model accepts a schema, which refuses a temperature, and how each model counts tokens. Its
agents, retries and tracing are not used. It belongs to the extra ``providers``, and is imported only when a model needs
it.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from evalkit.core.install_hint import format_install_hint
from evalkit.core.remote_services import create_no_redirect_http_client, mute_loggers
from evalkit.errors import UsageError
from evalkit.llm.model import ModelCallError, Reply, Request, Usage
from evalkit.llm.provider_family import (
    ModelCapabilities,
    ProviderFamily,
    create_call_error,
    create_key_error,
    get_failure_code_for_http_status,
    read_credential,
    require_confidential_base_url,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.models.openai import OpenAIChatModel

    ConnectedModel: TypeAlias = OpenAIChatModel | AnthropicModel | OllamaModel

#: Loggers that quote requests, headers and answers; openai and anthropic use httpx2 and httpcore2 for HTTP.
_MUTED_LOGGERS = ("openai", "anthropic", "httpx2", "httpcore2")


def create_pydantic_ai_family(
    family_name: str,
    create_model: Callable[[str, str, str], ConnectedModel],
    *,
    default_base_url: str,
    key_variable: str,
    is_key_required: Callable[[str], bool],
    client_library: str = "openai",
    capabilities: tuple[ModelCapabilities, ...],
    price_list: str | None = None,
    is_free: bool = False,
    is_self_hostable: bool = False,
) -> ProviderFamily:
    """Build a family of models that are called through pydantic-ai.

    ``create_model``: creates a model from its name, the base URL and the key. ``is_key_required``: True if the server
    at a base URL needs a key. ``client_library``: the library that must be installed besides pydantic-ai.
    """

    def create_provider(model_name: str, base_url: str | None, environment: Mapping[str, str]) -> PydanticAIProvider:
        checked_url = require_confidential_base_url(
            base_url or default_base_url, allow_private_network=is_self_hostable
        )
        api_key = read_credential(environment, key_variable)
        if not api_key and is_key_required(checked_url):
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
        return PydanticAIProvider(f"{family_name}:{model_name}", connect)

    return ProviderFamily(
        create_provider,
        environment_variables=(key_variable,),
        capabilities=capabilities,
        price_list=price_list,
        is_free=is_free,
        is_self_hostable=is_self_hostable,
    )


def create_openai_client(base_url: str, api_key: str) -> AsyncOpenAI:
    """Create a client for OpenAI's protocol without retries and redirects."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=api_key, base_url=base_url, http_client=create_no_redirect_http_client(base_url), max_retries=0
    )


class PydanticAIProvider:
    """A provider's language model, called through pydantic-ai.

    The connection belongs to the running event loop; a call in another event loop opens a new connection.
    """

    def __init__(self, model_name: str, create_model: Callable[[], ConnectedModel]) -> None:
        self._model_name = model_name
        self._create_model = create_model
        self._connection: tuple[asyncio.AbstractEventLoop, ConnectedModel] | None = None

    @property
    def name(self) -> str:
        """Name of the model, as ``--model`` takes it."""
        return self._model_name

    async def send(self, request: Request) -> Reply:
        """Send the request once; the temperature is left out if the model refuses it.

        ModelCallError if there is no complete reply.
        """
        outcome: Reply | ModelCallError
        try:
            # The clients' timeout applies to each step of a call: a server that sends byte by byte never reaches it.
            async with asyncio.timeout(request.timeout_seconds):
                outcome = _convert_response(self.name, await self._request_model(request))
        except Exception as error:  # noqa: BLE001 - the libraries pass on any error of their parsers
            outcome = _translate_error(self.name, error)
        # Raised outside the except block: the library's error, which may quote the prompt, must not become its context.
        if isinstance(outcome, ModelCallError):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Close the connections; later requests open new ones."""
        connection, self._connection = self._connection, None
        # A connection of an ended event loop cannot be closed.
        if connection is not None and connection[0] is asyncio.get_running_loop():
            await connection[1].client.close()

    async def _request_model(self, request: Request) -> ModelResponse:
        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import BinaryContent, ModelRequest, SystemPromptPart, UserPromptPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition

        model = self._get_connected_model()
        system_parts = [SystemPromptPart(request.system_instruction)] if request.system_instruction else []
        image_parts = [BinaryContent(image, media_type="image/png") for image in request.images]
        return await model_request(
            model,
            # Some small servers accept only text, so a list of parts is sent only if there are pictures.
            [
                ModelRequest(
                    [*system_parts, UserPromptPart([request.prompt, *image_parts] if image_parts else request.prompt)]
                )
            ],
            model_settings={
                "timeout": request.timeout_seconds,
                "temperature": request.temperature,
                **({"max_tokens": request.max_output_tokens} if request.max_output_tokens else {}),
            },
            model_request_parameters=ModelRequestParameters(
                # "prompted": the schema is part of the prompt, and JSON is enforced if the server can do that.
                output_mode="native" if model.profile.get("supports_json_schema_output") else "prompted",
                output_object=OutputObjectDefinition(
                    _convert_nullable_types_to_any_of(request.answer_schema), name="answer"
                ),
            ),
            instrument=False,
        )

    def _get_connected_model(self) -> ConnectedModel:
        event_loop = asyncio.get_running_loop()
        if self._connection is None or self._connection[0] is not event_loop:
            self._connection = event_loop, self._create_model()
            mute_loggers(_MUTED_LOGGERS)
            # This warning would appear on every call of a model that refuses a temperature.
            warnings.filterwarnings("ignore", "Sampling parameters", UserWarning)
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


def _convert_response(model_name: str, response: ModelResponse) -> Reply | ModelCallError:
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
    has_finish_reason = response.finish_reason == "content_filter" or "finish_reason" in (
        response.provider_details or {}
    )
    if has_finish_reason and response.finish_reason != "stop":
        return create_call_error(
            model_name, _CODE_BY_FINISH_REASON.get(response.finish_reason or "", "LLM-UNKNOWN"), usage=usage
        )
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    return (
        Reply(text, usage, has_finish_reason)
        if text.strip()
        else create_call_error(model_name, "LLM-EMPTY", usage=usage)
    )
