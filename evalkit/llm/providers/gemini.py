"""Gemini models by Google, with an API key or through Vertex AI.

One call is one HTTP request: retries, continuations and redirects of google-genai are switched off, because the ledger
counts calls. Responses are parsed here, because the SDK's response types warn about or lose fields that they do not
know.

Many errors and log records of the libraries quote requests and answers. To keep these out of evalkit's errors and logs,
errors are translated outside their ``except`` block, and the libraries' loggers are switched off.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from evalkit.core.records import DiscreetModel
from evalkit.core.remote_services import create_no_redirect_http_client, mute_loggers, parse_retry_after
from evalkit.errors import UsageError
from evalkit.llm.model import ModelCallError, Reply, Request, Usage
from evalkit.llm.model_families import ModelFacts, find_model_facts, load_model_family_table
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
    from google.genai import Client
    from google.genai.types import ThinkingConfig
    from httpx2 import AsyncClient, Response

#: Loggers that quote URLs, response headers, or the bytes of a response that violates the protocol.
_MUTED_LOGGERS = ("google_genai", "httpx2", "httpcore2", "httpx", "httpcore")


def _create_provider(
    model_name: str, base_url: str | None, environment: Mapping[str, str], facts: ModelFacts
) -> GeminiProvider:
    is_vertex = environment.get("GOOGLE_GENAI_USE_VERTEXAI", "").strip().lower() in {"1", "true"}
    # Read here, because the SDK would read these addresses from the environment without checking them.
    base_url = base_url or environment.get("GOOGLE_VERTEX_BASE_URL" if is_vertex else "GOOGLE_GEMINI_BASE_URL")
    checked_url = require_confidential_base_url(base_url, allow_private_network=False) if base_url else None
    if is_vertex:
        project, location = (
            read_credential(environment, "GOOGLE_CLOUD_PROJECT"),
            read_credential(environment, "GOOGLE_CLOUD_LOCATION"),
        )
        if not (project and location):
            raise create_key_error(
                "gemini through Vertex AI needs a project and a location",
                "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION",
            )
        return GeminiProvider(model_name, facts, base_url=checked_url, project=project, location=location)
    api_key = read_credential(environment, "GOOGLE_API_KEY") or read_credential(environment, "GEMINI_API_KEY")
    if not api_key:
        raise create_key_error("gemini needs a key", "GEMINI_API_KEY (or GOOGLE_API_KEY)")
    return GeminiProvider(model_name, facts, base_url=checked_url, api_key=api_key)


FAMILIES = {
    "gemini": ProviderFamily(
        _create_provider,
        environment_variables=(
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_GEMINI_BASE_URL",
            "GOOGLE_GENAI_USE_VERTEXAI",
            "GOOGLE_VERTEX_BASE_URL",
        ),
        description=load_model_family_table().providers["gemini"],
    )
}
_REMEDY_BY_CODE = {
    "LLM-KEY": "Check GEMINI_API_KEY (GOOGLE_API_KEY comes before it), or for Vertex AI run "
    "`gcloud auth application-default login`; the project must be allowed to use the model.",
    "LLM-RATE": "Run the same command again later, lower calls_in_flight, or raise the project's quota in Google Cloud.",
}
_NO_FINISH_REASONS = (None, "", "FINISH_REASON_UNSPECIFIED")
_CODE_BY_FINISH_REASON = {
    "MAX_TOKENS": "LLM-TRUNCATED",
    "CONTINUATION": "LLM-TRUNCATED",  # with an offer to continue, which is not taken
    "SAFETY": "LLM-REFUSED",
    "RECITATION": "LLM-REFUSED",
    "BLOCKLIST": "LLM-REFUSED",
    "PROHIBITED_CONTENT": "LLM-REFUSED",
    "SPII": "LLM-REFUSED",
    "LANGUAGE": "LLM-REFUSED",
    "MODEL_ARMOR": "LLM-REFUSED",
    "ESCALATION": "LLM-REFUSED",
}


class GeminiProvider:
    """A Gemini model, as a :class:`~evalkit.llm.model.Provider`.

    With ``project`` and ``location``, calls go through Vertex AI with this computer's Google Cloud login, and
    ``api_key`` is not sent; without them, ``api_key`` is used. ``base_url``: another server with the same protocol;
    None: Google's. ``facts``: None: those of the table.
    """

    def __init__(
        self,
        model_name: str,
        facts: ModelFacts | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        project: str | None = None,
        location: str | None = None,
    ) -> None:
        if bool(project) != bool(location):
            # If only one is set by mistake, documents would go to the wrong service.
            raise UsageError(
                "Vertex AI needs a project and a location, and only one of them is set",
                code="SETTINGS",
                remedy="Set both the project and the location, or neither of them to use an API key.",
            )
        self._model_name = model_name
        self._facts = facts or find_model_facts(self.name)
        self._fitter = RequestFitter(self.name, self._facts)
        self._base_url = base_url
        self._api_key = api_key
        self._project = project
        self._location = location
        self._connection: _Connection | None = None

    @property
    def name(self) -> str:
        """Name of the model, as ``--model`` takes it: ``gemini:gemini-2.5-flash``."""
        return f"gemini:{self._model_name}"

    async def send(self, request: Request) -> Reply:
        """Send the request once, with the options that the model takes.

        ModelCallError if there is no complete reply; LLM-OPTION if an option was refused.
        """
        options = self._fitter.options
        self._fitter.require_readable(request)
        try:
            # Outside the time limit, because the first call of a process imports google-genai.
            client = self._get_client_of_running_loop()
            # The HTTP timeout applies to each step of a call: a server that sends byte by byte never reaches it.
            async with asyncio.timeout(request.timeout_seconds):
                body = await self._generate_content(client, request, options)
            return _parse_reply(body)
        except ModelCallError:
            raise
        except Exception as error:  # noqa: BLE001 - an error of a library could quote the prompt
            call_error = self._explain_refusal(request, options, error) or _translate_error(error)
        # Raised outside the except block: the library's error, which may quote the prompt, must not become its context.
        raise call_error

    async def close(self) -> None:
        """Close the connections; later requests open new ones."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.event_loop is asyncio.get_running_loop():
            await connection.http_client.aclose()

    def _get_client_of_running_loop(self) -> Client:
        """Return the running event loop's client; drop a client of another loop."""
        event_loop = asyncio.get_running_loop()
        if self._connection is None or self._connection.event_loop is not event_loop:
            http_client = create_no_redirect_http_client(self._base_url or "https:", on_response=_raise_unless_200)
            self._connection = _Connection(event_loop, http_client, self._create_client(http_client))
        return self._connection.client

    def _create_client(self, http_client: AsyncClient) -> Client:
        from google.genai import Client, types
        from google.genai.client import DebugConfig

        mute_loggers(_MUTED_LOGGERS)
        http_options = types.HttpOptions(
            base_url=self._base_url,
            # v1, the SDK's default for API keys since 3.0, lacks some models, such as those that end with `-latest`.
            api_version="v1beta1" if self._project else "v1beta",
            # With this client, the SDK does not use aiohttp, with which it would repeat calls.
            httpx_async_client=http_client,
        )
        # Overrides environment variables that could make the SDK record prompts in files.
        debug_config = DebugConfig(client_mode="")
        if self._project:
            return Client(
                vertexai=True,
                project=self._project,
                location=self._location,
                http_options=http_options,
                debug_config=debug_config,
            )
        return Client(vertexai=False, api_key=self._api_key, http_options=http_options, debug_config=debug_config)

    def _explain_refusal(self, request: Request, options: RequestOptions, error: Exception) -> ModelCallError | None:
        if not isinstance(error, _HttpError) or error.status != 400:
            return None
        return self._fitter.explain_refusal(request, options, _load_json_or_none(error.body))

    async def _generate_content(self, client: Client, request: Request, options: RequestOptions) -> str:
        from google.genai import types

        thinking, has_schema = self._facts.thinking, options.answer_mode == "schema"
        parts = [types.Part(text=build_prompt(request, options))]
        parts += [types.Part.from_bytes(data=image, mime_type="image/png") for image in request.images]
        response = await client.aio.models.generate_content(
            model=self._model_name,
            contents=types.Content(role="user", parts=parts),
            config=types.GenerateContentConfig(
                system_instruction=(request.system_instruction or None) if options.has_system_instruction else None,
                temperature=request.temperature if options.has_temperature else None,
                thinking_config=(
                    _create_thinking_config(thinking.value) if options.has_thinking and thinking else None
                ),
                safety_settings=[
                    types.SafetySetting(category=types.HarmCategory(category), threshold=types.HarmBlockThreshold.OFF)
                    for category in (self._facts.safety.value if self._facts.safety else ())
                ],
                max_output_tokens=self._facts.limit_output_tokens(request.max_output_tokens),
                response_mime_type="text/plain" if options.answer_mode == "prompt" else "application/json",
                response_json_schema=dict(request.answer_schema) if has_schema else None,
                http_options=types.HttpOptions(timeout=max(1, round(request.timeout_seconds * 1000))),
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
                # Return the raw body: if the SDK parsed it, it would send further calls after a CONTINUATION.
                should_return_http_response=True,
            ),
        )
        return (response.sdk_http_response and response.sdk_http_response.body) or ""


def _create_thinking_config(thinking: int | str) -> ThinkingConfig:
    from google.genai import types

    if isinstance(thinking, int):
        return types.ThinkingConfig(thinking_budget=thinking)
    return types.ThinkingConfig(thinking_level=types.ThinkingLevel(thinking.upper()))


class _Connection(NamedTuple):
    event_loop: asyncio.AbstractEventLoop
    http_client: AsyncClient
    client: Client


class _HttpError(Exception):
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.body = body


async def _raise_unless_200(response: Response) -> None:
    """Raise ``_HttpError`` unless the status is 200, so that the SDK sees no failure.

    The SDK's errors quote the body, and the SDK fails at unusual encodings. A redirect would send prompt and key to
    another host.
    """
    if response.status_code != 200:
        raise _HttpError(response.status_code, response.headers, await response.aread())


# Failures ----------------------------------------------------------------------------------------------------------


def _create_gemini_error(
    code: str, note: str = "", *, usage: Usage | None = None, retry_after_seconds: float | None = None
) -> ModelCallError:
    return create_call_error(
        "Gemini", code, note=note, remedy_by_code=_REMEDY_BY_CODE, retry_after_seconds=retry_after_seconds, usage=usage
    )


def _translate_error(error: Exception) -> ModelCallError:
    """Translate a library's error; the message gives its type, never its text."""
    import httpx2
    from google.auth.exceptions import GoogleAuthError
    from google.auth.exceptions import TransportError as LoginUnreachable

    if isinstance(error, _HttpError):
        return _translate_http_error(error)
    codes_and_types: tuple[tuple[str, tuple[type[Exception], ...]], ...] = (
        ("LLM-TIMEOUT", (TimeoutError, httpx2.TimeoutException)),
        # These errors concern a header, and the key is the only header value that users set.
        ("LLM-KEY", (UnicodeEncodeError, httpx2.LocalProtocolError)),
        ("LLM-UNREACHABLE", (httpx2.TransportError, httpx2.InvalidURL, LoginUnreachable)),
        ("LLM-KEY", (GoogleAuthError,)),
        ("LLM-MALFORMED", (json.JSONDecodeError, ValidationError, httpx2.DecodingError)),
    )
    code = next((code for code, error_types in codes_and_types if isinstance(error, error_types)), "LLM-UNKNOWN")
    return _create_gemini_error(code, type(error).__name__)


def _translate_http_error(error: _HttpError) -> ModelCallError:
    details = _ErrorDetails.from_body(error.body)
    # The Gemini API answers a wrong key with 400.
    failure_code = get_failure_code_for_http_status(error.status)
    retry_after = parse_retry_after(error.headers.get("retry-after", ""))
    return _create_gemini_error(
        "LLM-KEY" if details.is_key_error else failure_code,
        f"HTTP {error.status} {details.status_name}".rstrip(),
        retry_after_seconds=details.retry_delay_seconds if retry_after is None else retry_after,
    )


class _ErrorDetails(NamedTuple):
    """The parts of an error response that contain no free text."""

    status_name: str = ""
    """Google's name of the error, such as ``RESOURCE_EXHAUSTED``."""
    retry_delay_seconds: float | None = None
    is_key_error: bool = False

    @classmethod
    def from_body(cls, body: bytes) -> _ErrorDetails:
        error = _get_dict_or_empty(_get_dict_or_empty(_load_json_or_none(body)).get("error"))
        raw_details = error.get("details")
        details = [_get_dict_or_empty(detail) for detail in raw_details] if isinstance(raw_details, list) else []
        delays = (parse_retry_after(str(detail.get("retryDelay", ""))) for detail in details)
        return cls(
            status_name=_get_constant_name_or_empty(error.get("status")),
            retry_delay_seconds=next((delay for delay in delays if delay is not None), None),
            is_key_error=any(str(detail.get("reason", "")).startswith("API_KEY_") for detail in details),
        )


def _load_json_or_none(body: bytes) -> Any:
    """Return an error response's JSON, without a list around it.

    None if a proxy sent the response.
    """
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return payload[0] if isinstance(payload, list) and payload else payload


def _get_dict_or_empty(json_value: Any) -> dict[str, Any]:
    return json_value if isinstance(json_value, dict) else {}


def _get_constant_name_or_empty(json_value: Any) -> str:
    """Return a constant's name in capitals; empty if the value could be free text."""
    return json_value if isinstance(json_value, str) and re.fullmatch("[A-Z_]{2,40}", json_value) else ""


# Replies ------------------------------------------------------------------------------------------------------------


class _ResponseModel(DiscreetModel):
    """Base class of the response's parts; other fields of the protocol are ignored."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel)


class _Part(_ResponseModel):
    text: str = ""
    thought: bool = False


class _Content(_ResponseModel):
    parts: tuple[_Part, ...] = ()


class _Candidate(_ResponseModel):
    content: _Content = _Content()
    finish_reason: str | None = None


class _PromptFeedback(_ResponseModel):
    block_reason: str = ""


class _UsageMetadata(_ResponseModel):
    prompt_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0
    cached_content_token_count: int = 0


class _GenerateContentResponse(_ResponseModel):
    candidates: tuple[_Candidate, ...] = ()
    prompt_feedback: _PromptFeedback = _PromptFeedback()
    usage_metadata: _UsageMetadata = _UsageMetadata()


def _parse_reply(body: str) -> Reply:
    """Parse a response body: text of the first candidate, and token counts.

    ModelCallError if the text is missing, refused or cut off; ValidationError if the body has another shape.
    """
    response = _GenerateContentResponse.model_validate_json(body)
    token_counts = response.usage_metadata
    usage = Usage(
        calls=1,
        input_tokens=token_counts.prompt_token_count,
        output_tokens=token_counts.candidates_token_count + token_counts.thoughts_token_count,
        cached_tokens=token_counts.cached_content_token_count,
        thought_tokens=token_counts.thoughts_token_count,
    )
    if block_reason := response.prompt_feedback.block_reason:
        raise _create_gemini_error(
            "LLM-REFUSED", f"the prompt was blocked: {_get_constant_name_or_empty(block_reason)}", usage=usage
        )
    if not response.candidates:
        raise _create_gemini_error("LLM-EMPTY", usage=usage)
    candidate = response.candidates[0]
    has_finish_reason = candidate.finish_reason not in _NO_FINISH_REASONS
    if has_finish_reason and candidate.finish_reason != "STOP":
        code = _CODE_BY_FINISH_REASON.get(candidate.finish_reason or "", "LLM-UNKNOWN")
        raise _create_gemini_error(code, _get_constant_name_or_empty(candidate.finish_reason), usage=usage)
    text = "".join(part.text for part in candidate.content.parts if not part.thought)
    if not text.strip():
        raise _create_gemini_error("LLM-EMPTY", usage=usage)
    return Reply(text, usage, has_finish_reason)
