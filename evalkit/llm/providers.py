"""The language models that ``--model`` can name; all of them but Gemini are asked through pydantic-ai.

pydantic-ai knows which model takes a schema, which refuses a temperature, and how each one counts its tokens. Nothing
else of it is used: no agent, no repeating, no tracing. It belongs to the extra ``providers`` and is imported
when such a model is named.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from evalkit.core.install_hint import format_install_hint
from evalkit.core.remote_services import create_no_redirect_http_client, is_local_host, mute_loggers
from evalkit.errors import UsageError
from evalkit.llm.failures import create_call_error, get_failure_code_for_http_status
from evalkit.llm.model import ModelCallError, Provider, Reply, Request, Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.models.openai import OpenAIChatModel

    ConnectedModel: TypeAlias = OpenAIChatModel | AnthropicModel

#: What quotes requests, headers and answers. The last two carry the HTTP of the first two.
_MUTED_LOGGERS = ("openai", "anthropic", "httpx2", "httpcore2")


def build_provider(
    provider_and_model: str,
    *,
    environment: Mapping[str, str],
    gemini_base_url: str | None = None,
    openai_base_url: str | None = None,
    anthropic_base_url: str | None = None,
    ollama_base_url: str | None = None,
) -> Provider:
    """The provider that ``--model`` names: ``gemini:MODEL``, ``openai:MODEL``, ``anthropic:MODEL``, ``ollama:MODEL``.

    ``environment`` holds the keys. UsageError ``MODEL-NAME``; ``MODEL-KEY``; ``MODEL-ADDRESS``: a base URL that is none,
    or over which documents would cross a network in clear; ``MODEL-EXTRA``: a library is missing.
    """
    service_name, _, service_model = provider_and_model.partition(":")
    if not service_model or service_name not in ("gemini", *_SERVICE_BY_NAME):
        raise UsageError(
            f"there is no model {provider_and_model!r}",
            code="MODEL-NAME",
            remedy="Name embedded, gemini:MODEL, openai:MODEL, anthropic:MODEL or ollama:MODEL.",
        )
    if service_name == "gemini":
        return _create_gemini_provider(service_model, gemini_base_url, environment)
    service_row = _SERVICE_BY_NAME[service_name]
    configured_url = {"openai": openai_base_url, "anthropic": anthropic_base_url, "ollama": ollama_base_url}[
        service_name
    ]
    base_url = _require_confidential_base_url(
        configured_url or service_row.base_url, allow_private_network=service_row.is_self_hostable
    )
    api_key = _read_credential(environment, service_row.key_environment_variable)
    if not api_key and (_is_openai_host(base_url) or not service_row.is_self_hostable):
        raise _create_key_error(f"{service_name} needs a key", service_row.key_environment_variable)
    try:
        import_module(f"pydantic_ai.models.{service_name}")
    except ImportError:
        raise UsageError(
            f"{service_name} needs libraries that are not installed",
            code="MODEL-EXTRA",
            remedy=f"Run {format_install_hint('providers')}.",
        ) from None
    # Servers of one's own seldom want a key, but the client does.
    create_model = partial(service_row.create_model, service_model, base_url, api_key or "none")
    return PydanticAIProvider(provider_and_model, create_model)


class PydanticAIProvider:
    """One language model, asked through pydantic-ai. Its connections belong to the event loop that opened them."""

    def __init__(self, model_name: str, create_model: Callable[[], ConnectedModel]) -> None:
        self._model_name = model_name
        self._create_model = create_model
        self._connection: tuple[asyncio.AbstractEventLoop, ConnectedModel] | None = None

    @property
    def name(self) -> str:
        """As ``--model`` names it."""
        return self._model_name

    async def send(self, request: Request) -> Reply:
        """Send it once, at its temperature where the model has one. ModelCallError where no whole reply came."""
        outcome: Reply | ModelCallError
        try:
            # The clients' timeout is one for each step of a call: a server that drips bytes would never reach it.
            async with asyncio.timeout(request.timeout_seconds):
                outcome = _convert_response(self.name, await self._request_model(request))
        except Exception as error:  # noqa: BLE001 - the libraries raise what their parsers raise
            outcome = _translate_error(self.name, error)
        # Out here, where the error above, which may quote the prompt, is not even the context of this one.
        if isinstance(outcome, ModelCallError):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Give the connections back; what is sent later opens new ones."""
        connection, self._connection = self._connection, None
        # In a loop that has ended nothing can be awaited.
        if connection is not None and connection[0] is asyncio.get_running_loop():
            await connection[1].client.close()

    async def _request_model(self, request: Request) -> ModelResponse:
        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import BinaryContent, ModelRequest, UserPromptPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition

        model = self._get_connected_model()
        image_parts = [BinaryContent(image, media_type="image/png") for image in request.images]
        return await model_request(
            model,
            # Small servers know no list of parts, so a list is sent only where it must be one.
            [ModelRequest([UserPromptPart([request.prompt, *image_parts] if image_parts else request.prompt)])],
            model_settings={"timeout": request.timeout_seconds, "temperature": request.temperature},
            model_request_parameters=ModelRequestParameters(
                # "prompted": the schema stands in the request, and JSON is promised where the server can promise it.
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
            # Said on every call of a model that has no temperature, and known.
            warnings.filterwarnings("ignore", "Sampling parameters", UserWarning)
        return self._connection[1]


# Who can be asked, and where -----------------------------------------------------------------------------------------


def _create_openai_model(model_name: str, base_url: str, api_key: str) -> OpenAIChatModel:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    client = AsyncOpenAI(
        api_key=api_key, base_url=base_url, http_client=create_no_redirect_http_client(base_url), max_retries=0
    )
    if _is_openai_host(base_url):
        # Newer accounts keep what is sent unless they are told not to.
        model_settings = OpenAIChatModelSettings(openai_store=False)
        return OpenAIChatModel(model_name, provider=OpenAIProvider(openai_client=client), settings=model_settings)
    # Whether a schema is kept to is the server's doing, and pydantic-ai judges by the model's name.
    server_provider = OpenAICompatibleProvider(
        "openai-compatible", openai_client=client, profile={"supports_json_schema_output": True}
    )
    return OpenAIChatModel(model_name, provider=server_provider)


def _create_anthropic_model(model_name: str, base_url: str, api_key: str) -> AnthropicModel:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(
        api_key=api_key,
        base_url=base_url,
        http_client=create_no_redirect_http_client(base_url),
        max_retries=0,
        open_telemetry=False,
    )
    return AnthropicModel(
        model_name,
        provider=AnthropicProvider(anthropic_client=client),
        # Without a limit of ours pydantic-ai takes the model's, and streams: an answer of hours, paid in full.
        settings={"max_tokens": 16_384},
    )


def _create_ollama_model(model_name: str, base_url: str, api_key: str) -> OllamaModel:
    from openai import AsyncOpenAI
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    client = AsyncOpenAI(
        api_key=api_key, base_url=base_url, http_client=create_no_redirect_http_client(base_url), max_retries=0
    )
    return OllamaModel(model_name, provider=OllamaProvider(openai_client=client))


@dataclass(frozen=True)
class _ModelService:
    """Where models are asked by one protocol."""

    create_model: Callable[[str, str, str], ConnectedModel]
    """Of model, address and key."""
    base_url: str
    key_environment_variable: str
    """Of the environment, for the key."""
    is_self_hostable: bool
    """Whether people run such servers themselves: often without a key, and without TLS in a private network."""


_SERVICE_BY_NAME = {
    "openai": _ModelService(_create_openai_model, "https://api.openai.com/v1", "OPENAI_API_KEY", is_self_hostable=True),
    "anthropic": _ModelService(
        _create_anthropic_model, "https://api.anthropic.com", "ANTHROPIC_API_KEY", is_self_hostable=False
    ),
    "ollama": _ModelService(_create_ollama_model, "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", is_self_hostable=True),
}


def _create_gemini_provider(model_name: str, base_url: str | None, environment: Mapping[str, str]) -> Provider:
    from evalkit.llm.gemini import GeminiProvider

    is_vertex = environment.get("GOOGLE_GENAI_USE_VERTEXAI", "").strip().lower() in {"1", "true"}
    # The SDK would take these from the environment itself, unchecked.
    base_url = base_url or environment.get("GOOGLE_VERTEX_BASE_URL" if is_vertex else "GOOGLE_GEMINI_BASE_URL")
    checked_url = _require_confidential_base_url(base_url, allow_private_network=False) if base_url else None
    if is_vertex:
        project, location = (
            _read_credential(environment, "GOOGLE_CLOUD_PROJECT"),
            _read_credential(environment, "GOOGLE_CLOUD_LOCATION"),
        )
        if not (project and location):
            raise _create_key_error(
                "gemini through Vertex AI needs both", "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"
            )
        return GeminiProvider(model_name, base_url=checked_url, project=project, location=location)
    api_key = _read_credential(environment, "GOOGLE_API_KEY") or _read_credential(environment, "GEMINI_API_KEY")
    if not api_key:
        raise _create_key_error("gemini needs a key", "GEMINI_API_KEY (or GOOGLE_API_KEY)")
    return GeminiProvider(model_name, base_url=checked_url, api_key=api_key)


def _is_openai_host(base_url: str) -> bool:
    return urlsplit(base_url).hostname == "api.openai.com"


def _read_credential(environment: Mapping[str, str], variable_name: str) -> str:
    credential = environment.get(variable_name, "").strip()
    if not (credential.isascii() and credential.isprintable()):
        raise UsageError(
            f"{variable_name} holds characters that no key has", code="MODEL-KEY", remedy="Copy the key once more."
        )
    return credential


def _create_key_error(reason: str, variable_names: str) -> UsageError:
    return UsageError(reason, code="MODEL-KEY", remedy=f"Set {variable_names}.")


def _require_confidential_base_url(base_url: str, *, allow_private_network: bool) -> str:
    """``base_url``, if what is sent there can be read by nobody on the way. UsageError ``MODEL-ADDRESS``."""
    try:
        url_parts = urlsplit(base_url)
        host, _ = url_parts.hostname, url_parts.port
    except ValueError:
        host = None
    if (
        not host
        or url_parts.scheme not in {"http", "https"}
        or url_parts.username
        or url_parts.password
        or url_parts.query
    ):
        # Not quoted: it may hold a password.
        raise UsageError(
            "the base URL of the model is none, or has a name, password or query in it",
            code="MODEL-ADDRESS",
            remedy="Write it as https://HOST/PATH; keys belong in the environment.",
        )
    if url_parts.scheme == "http" and not is_local_host(host, allow_private_network=allow_private_network):
        allowed_hosts = (
            "this computer or, by its number, one in a private network" if allow_private_network else "this computer"
        )
        raise UsageError(
            f"documents would go to {host} in clear", code="MODEL-ADDRESS", remedy=f"Use https, or {allowed_hosts}."
        )
    return base_url


def _convert_nullable_types_to_any_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` with every "this or null" as two options: Anthropic's library takes no list of types.

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


# What came back ------------------------------------------------------------------------------------------------------


_CODE_BY_FINISH_REASON = {"length": "LLM-TRUNCATED", "content_filter": "LLM-REFUSED"}


def _translate_error(model_name: str, error: Exception) -> ModelCallError:
    """What ``error`` means. Nothing of its text is taken over: it quotes the server, which may quote the prompt."""
    from pydantic_ai import exceptions as library

    match error:
        case library.ModelHTTPError(status_code=status):
            return create_call_error(
                model_name,
                get_failure_code_for_http_status(status),
                note=f"HTTP {status}",
                # An account without credit is told the same status as one that asks too fast.
                is_final=isinstance(error, library.ModelQuotaExceededError),
                retry_after_seconds=error.retry_after,
            )
        case TimeoutError() | library.ModelTimeoutError():
            return create_call_error(model_name, "LLM-TIMEOUT")
        case library.ModelConnectionError():
            return create_call_error(model_name, "LLM-UNREACHABLE")
        case library.UserError() | library.ModelRequestRejectedError():
            # Refused before it was sent, such as a schema that is richer than the model takes.
            return create_call_error(model_name, "LLM-REQUEST", usage=Usage())
    # The libraries do not check what they parse, so a body of another shape raises anything.
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
    if response.finish_reason != "stop":
        return create_call_error(
            model_name, _CODE_BY_FINISH_REASON.get(response.finish_reason or "", "LLM-UNKNOWN"), usage=usage
        )
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    return Reply(text, usage) if text.strip() else create_call_error(model_name, "LLM-EMPTY", usage=usage)
