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
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from evalkit.core.install_hint import format_install_hint
from evalkit.core.remote_services import is_local_host, mute_loggers
from evalkit.errors import UsageError
from evalkit.llm.failures import code_of, failed
from evalkit.llm.model import CallFailed, Provider, Reply, Request, Usage

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel

    Connected: TypeAlias = OpenAIChatModel | AnthropicModel
    Connect: TypeAlias = Callable[[], Connected]

#: What quotes requests, headers and answers. The last two carry the HTTP of the first two.
_TALKATIVE = ("openai", "anthropic", "httpx2", "httpcore2")


def provider(
    name: str,
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
    service, _, model = name.partition(":")
    if not model or service not in ("gemini", *_SERVICES):
        raise UsageError(
            f"there is no model {name!r}",
            code="MODEL-NAME",
            remedy="Name embedded, gemini:MODEL, openai:MODEL, anthropic:MODEL or ollama:MODEL.",
        )
    if service == "gemini":
        return _gemini(model, gemini_base_url, environment)
    row = _SERVICES[service]
    given = {"openai": openai_base_url, "anthropic": anthropic_base_url, "ollama": ollama_base_url}[service]
    address = _checked(given or row.address, private=row.has_own_servers)
    key = _key(environment, row.variable)
    if not key and (_is_openai(address) or not row.has_own_servers):
        raise _no_key(f"{service} needs a key", row.variable)
    try:
        # Servers of one's own seldom want a key, but the client does.
        connect = row.connect(model, address, key or "none")
    except ImportError:
        raise UsageError(
            f"{service} needs libraries that are not installed",
            code="MODEL-EXTRA",
            remedy=f"Run {format_install_hint('providers')}.",
        ) from None
    return PydanticAIProvider(name, connect)


class PydanticAIProvider:
    """One language model, asked through pydantic-ai. Its connections belong to the event loop that opened them."""

    def __init__(self, name: str, connect: Connect) -> None:
        self._name = name
        self._connect = connect
        self._open: tuple[asyncio.AbstractEventLoop, Connected] | None = None

    @property
    def name(self) -> str:
        """As ``--model`` names it."""
        return self._name

    async def send(self, request: Request) -> Reply:
        """Send it once, at its temperature where the model has one. CallFailed where no whole reply came."""
        outcome: Reply | CallFailed
        try:
            # The clients' timeout is one for each step of a call: a server that drips bytes would never reach it.
            async with asyncio.timeout(request.seconds):
                outcome = _outcome(self.name, await self._ask(request))
        except Exception as error:  # noqa: BLE001 - the libraries raise what their parsers raise
            outcome = _failure(self.name, error)
        # Out here, where the error above, which may quote the prompt, is not even the context of this one.
        if isinstance(outcome, CallFailed):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Give the connections back; what is sent later opens new ones."""
        left, self._open = self._open, None
        # In a loop that has ended nothing can be awaited.
        if left is not None and left[0] is asyncio.get_running_loop():
            await left[1].client.close()

    async def _ask(self, request: Request) -> ModelResponse:
        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import BinaryContent, ModelRequest, UserPromptPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition

        model = self._connected()
        pictures = [BinaryContent(image, media_type="image/png") for image in request.images]
        return await model_request(
            model,
            # Small servers know no list of parts, so a list is sent only where it must be one.
            [ModelRequest([UserPromptPart([request.prompt, *pictures] if pictures else request.prompt)])],
            model_settings={"timeout": request.seconds, "temperature": request.temperature},
            model_request_parameters=ModelRequestParameters(
                # "prompted": the schema stands in the request, and JSON is promised where the server can promise it.
                output_mode="native" if model.profile.get("supports_json_schema_output") else "prompted",
                output_object=OutputObjectDefinition(_with_options(request.schema), name="answer"),
            ),
            instrument=False,
        )

    def _connected(self) -> Connected:
        loop = asyncio.get_running_loop()
        if self._open is None or self._open[0] is not loop:
            self._open = loop, self._connect()
            mute_loggers(_TALKATIVE)
            # Said on every call of a model that has no temperature, and known.
            warnings.filterwarnings("ignore", "Sampling parameters", UserWarning)
        return self._open[1]


# Who can be asked, and where -----------------------------------------------------------------------------------------


def _openai(model: str, address: str, key: str) -> Connect:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    def connect() -> OpenAIChatModel:
        client = AsyncOpenAI(api_key=key, base_url=address, http_client=_http(address), max_retries=0)
        if _is_openai(address):
            # Newer accounts keep what is sent unless they are told not to.
            kept = OpenAIChatModelSettings(openai_store=False)
            return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client), settings=kept)
        # Whether a schema is kept to is the server's doing, and pydantic-ai judges by the model's name.
        server = OpenAICompatibleProvider(
            "openai-compatible", openai_client=client, profile={"supports_json_schema_output": True}
        )
        return OpenAIChatModel(model, provider=server)

    return connect


def _anthropic(model: str, address: str, key: str) -> Connect:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    def connect() -> AnthropicModel:
        client = AsyncAnthropic(
            api_key=key, base_url=address, http_client=_http(address), max_retries=0, open_telemetry=False
        )
        return AnthropicModel(
            model,
            provider=AnthropicProvider(anthropic_client=client),
            # Without a limit of ours pydantic-ai takes the model's, and streams: an answer of hours, paid in full.
            settings={"max_tokens": 16_384},
        )

    return connect


def _ollama(model: str, address: str, key: str) -> Connect:
    from openai import AsyncOpenAI
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    def connect() -> OllamaModel:
        client = AsyncOpenAI(api_key=key, base_url=address, http_client=_http(address), max_retries=0)
        return OllamaModel(model, provider=OllamaProvider(openai_client=client))

    return connect


@dataclass(frozen=True)
class _Service:
    """Where models are asked by one protocol."""

    connect: Callable[[str, str, str], Connect]
    """Of model, address and key. ImportError where the libraries are missing."""
    address: str
    variable: str
    """Of the environment, for the key."""
    has_own_servers: bool
    """Whether people run such servers themselves: often without a key, and without TLS in a private network."""


_SERVICES = {
    "openai": _Service(_openai, "https://api.openai.com/v1", "OPENAI_API_KEY", has_own_servers=True),
    "anthropic": _Service(_anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY", has_own_servers=False),
    "ollama": _Service(_ollama, "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", has_own_servers=True),
}


def _gemini(model: str, base_url: str | None, environment: Mapping[str, str]) -> Provider:
    from evalkit.llm.gemini import Gemini

    is_vertex = environment.get("GOOGLE_GENAI_USE_VERTEXAI", "").strip().lower() in {"1", "true"}
    # The SDK would take these from the environment itself, unchecked.
    base_url = base_url or environment.get("GOOGLE_VERTEX_BASE_URL" if is_vertex else "GOOGLE_GEMINI_BASE_URL")
    address = _checked(base_url, private=False) if base_url else None
    if is_vertex:
        project, location = _key(environment, "GOOGLE_CLOUD_PROJECT"), _key(environment, "GOOGLE_CLOUD_LOCATION")
        if not (project and location):
            raise _no_key("gemini through Vertex AI needs both", "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION")
        return Gemini(model, base_url=address, project=project, location=location)
    key = _key(environment, "GOOGLE_API_KEY") or _key(environment, "GEMINI_API_KEY")
    if not key:
        raise _no_key("gemini needs a key", "GEMINI_API_KEY (or GOOGLE_API_KEY)")
    return Gemini(model, base_url=address, api_key=key)


def _is_openai(address: str) -> bool:
    return urlsplit(address).hostname == "api.openai.com"


def _key(environment: Mapping[str, str], variable: str) -> str:
    key = environment.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(
            f"{variable} holds characters that no key has", code="MODEL-KEY", remedy="Copy the key once more."
        )
    return key


def _no_key(why: str, variables: str) -> UsageError:
    return UsageError(why, code="MODEL-KEY", remedy=f"Set {variables}.")


def _checked(address: str, *, private: bool) -> str:
    """``address``, if what is sent there can be read by nobody on the way. UsageError ``MODEL-ADDRESS``."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in {"http", "https"} or parts.username or parts.password or parts.query:
        # Not quoted: it may hold a password.
        raise UsageError(
            "the base URL of the model is none, or has a name, password or query in it",
            code="MODEL-ADDRESS",
            remedy="Write it as https://HOST/PATH; keys belong in the environment.",
        )
    if parts.scheme == "http" and not is_local_host(host, allow_private_network=private):
        near = "this computer or, by its number, one in a private network" if private else "this computer"
        raise UsageError(
            f"documents would go to {host} in clear", code="MODEL-ADDRESS", remedy=f"Use https, or {near}."
        )
    return address


def _http(address: str) -> AsyncClient:
    from httpx2 import AsyncClient, Limits

    return AsyncClient(
        # How many calls run at once is decided above; one that waits for a connection here would time out.
        limits=Limits(max_connections=None, max_keepalive_connections=None),
        # A redirect would take the document to whatever host it names.
        follow_redirects=False,
        # The environment's proxies see all of what is sent without TLS.
        trust_env=address.startswith("https:"),
    )


def _with_options(schema: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` with every "this or null" as two options: Anthropic's library takes no list of types.

    >>> _with_options({"type": ["string", "null"], "enum": ["a", None]})
    {'anyOf': [{'type': 'string', 'enum': ['a']}, {'type': 'null'}]}
    """
    whole = dict(schema)
    if "items" in whole:
        whole["items"] = _with_options(whole["items"])
    if "properties" in whole:
        whole["properties"] = {name: _with_options(value) for name, value in whole["properties"].items()}
    if not isinstance(whole.get("type"), list):
        return whole
    (kind,) = (kind for kind in whole["type"] if kind != "null")
    whole["type"] = kind
    if "enum" in whole:
        whole["enum"] = [value for value in whole["enum"] if value is not None]
    return {"anyOf": [whole, {"type": "null"}]}


# What came back ------------------------------------------------------------------------------------------------------


_FINISH = {"length": "LLM-TRUNCATED", "content_filter": "LLM-REFUSED"}


def _failure(name: str, error: Exception) -> CallFailed:
    """What ``error`` means. Nothing of its text is taken over: it quotes the server, which may quote the prompt."""
    from pydantic_ai import exceptions as library

    match error:
        case library.ModelHTTPError(status_code=status):
            return failed(
                name,
                code_of(status),
                note=f"HTTP {status}",
                # An account without credit is told the same status as one that asks too fast.
                final=isinstance(error, library.ModelQuotaExceededError),
                retry_after=error.retry_after,
            )
        case TimeoutError() | library.ModelTimeoutError():
            return failed(name, "LLM-TIMEOUT")
        case library.ModelConnectionError():
            return failed(name, "LLM-UNREACHABLE")
        case library.UserError() | library.ModelRequestRejectedError():
            # Refused before it was sent, such as a schema that is richer than the model takes.
            return failed(name, "LLM-REQUEST", usage=Usage())
    # The libraries do not check what they parse, so a body of another shape raises anything.
    return failed(name, "LLM-MALFORMED", note=type(error).__name__)


def _outcome(name: str, response: ModelResponse) -> Reply | CallFailed:
    from pydantic_ai.messages import TextPart

    counted = response.usage
    usage = Usage(
        calls=1,
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        cached_tokens=counted.cache_read_tokens,
        thought_tokens=counted.output_reasoning_tokens,
    )
    if response.finish_reason != "stop":
        return failed(name, _FINISH.get(response.finish_reason or "", "LLM-UNKNOWN"), usage=usage)
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    return Reply(text, usage) if text.strip() else failed(name, "LLM-EMPTY", usage=usage)
