"""Google's Gemini, by an API key or through Vertex AI.

One call is one HTTP request: whatever google-genai would repeat, continue or follow by itself is switched off, because
the ledger counts calls. Answers are read from the wire: the SDK's own response types warn about, or lose, what they do
not know.

What was sent and what came back is quoted by many errors and log records of the libraries below. None of them gets out:
errors are translated outside of their ``except`` block, and the libraries' loggers are switched off.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from evalkit.core.remote_services import mute_loggers, parse_retry_after
from evalkit.errors import UsageError
from evalkit.llm.failures import code_of, failed
from evalkit.llm.model import CallFailed, Reply, Request, Usage

if TYPE_CHECKING:
    from google.genai import Client
    from httpx2 import AsyncClient, Response

T = TypeVar("T")

#: httpcore2 quotes response headers and, where a server breaks the protocol, what it sent instead; httpx2 quotes URLs.
_TALKATIVE = ("google_genai", "httpx2", "httpcore2", "httpx", "httpcore")


_NAME = "Gemini"
_REMEDIES = {
    "LLM-KEY": "Check GEMINI_API_KEY (GOOGLE_API_KEY comes before it), or for Vertex AI run "
    "`gcloud auth application-default login`; the project must be allowed to use the model.",
    "LLM-RATE": "Run the same command again later, ask less at once, or raise the quota of the project in Google Cloud.",
}
_FINISH = {
    "MAX_TOKENS": "LLM-TRUNCATED",
    "CONTINUATION": "LLM-TRUNCATED",  # with an offer to go on, which nobody here takes up
    "SAFETY": "LLM-REFUSED",
    "RECITATION": "LLM-REFUSED",
    "BLOCKLIST": "LLM-REFUSED",
    "PROHIBITED_CONTENT": "LLM-REFUSED",
    "SPII": "LLM-REFUSED",
    "LANGUAGE": "LLM-REFUSED",
    "MODEL_ARMOR": "LLM-REFUSED",
    "ESCALATION": "LLM-REFUSED",
}


class Gemini:
    """One of Gemini's models, as a :class:`~evalkit.llm.model.Provider`.

    With ``project`` and ``location`` it is asked through Vertex AI with this computer's Google Cloud login, and
    ``api_key`` is not sent; otherwise with ``api_key``, by default the environment's. ``base_url`` is another server
    that speaks the same protocol.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        project: str | None = None,
        location: str | None = None,
    ) -> None:
        if bool(project) != bool(location):
            # With one of them forgotten, documents would go to another service than was meant.
            raise UsageError(
                "Vertex AI needs a project and a location, and only one of them is set",
                code="SETTINGS",
                remedy="Set both, or neither to use an API key.",
            )
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._project = project
        self._location = location
        self._open: _Open | None = None

    @property
    def name(self) -> str:
        """``gemini:gemini-2.5-flash``."""
        return f"gemini:{self._model}"

    async def send(self, request: Request) -> Reply:
        """Send it once, at its temperature. CallFailed where no whole reply came."""
        return _reply(await self._call(lambda client: self._generate(client, request), request.seconds))

    async def close(self) -> None:
        """Give the connections back; what is sent later opens new ones."""
        left, self._open = self._open, None
        if left is not None and left.loop is asyncio.get_running_loop():
            await left.http.aclose()

    async def _call(self, call: Callable[[Client], Awaitable[T]], seconds: float) -> T:
        """What ``call`` gives. CallFailed for everything that can go wrong with it."""
        try:
            # Before the clock starts, as the first call of a process imports google-genai.
            client = self._client()
            # The HTTP timeout is one for each step of a call: a server that drips bytes would never reach it.
            async with asyncio.timeout(seconds):
                return await call(client)
        except Exception as error:  # noqa: BLE001 - an error of a library could quote the prompt
            failed = _failure(error)
        # Out here, where the error above is not even the context of this one.
        raise failed

    def _client(self) -> Client:
        """The client of the running loop; that of a loop that has ended is dropped, as nothing can be awaited there."""
        loop = asyncio.get_running_loop()
        if self._open is None or self._open.loop is not loop:
            http = _http_client(self._base_url)
            self._open = _Open(loop, http, self._connect(http))
        return self._open.client

    def _connect(self, http: AsyncClient) -> Client:
        from google.genai import Client, types
        from google.genai.client import DebugConfig

        mute_loggers(_TALKATIVE)
        options = types.HttpOptions(
            base_url=self._base_url,
            # v1, the SDK's default for API keys since 3.0, knows fewer models: none that is named `-latest`.
            api_version="v1beta1" if self._project else "v1beta",
            # With a client of our own, aiohttp is never used: where it is installed, the SDK repeats calls over it.
            httpx_async_client=http,
        )
        # Of the environment, or it could make the SDK record prompts into files.
        debugging = DebugConfig(client_mode="")
        if self._project:
            return Client(
                vertexai=True,
                project=self._project,
                location=self._location,
                http_options=options,
                debug_config=debugging,
            )
        try:
            return Client(vertexai=False, api_key=self._api_key, http_options=options, debug_config=debugging)
        except ValueError:
            raise _NoKey from None

    async def _generate(self, client: Client, request: Request) -> str:
        from google.genai import types

        parts = [types.Part(text=request.prompt)]
        parts += [types.Part.from_bytes(data=image, mime_type="image/png") for image in request.images]
        response = await client.aio.models.generate_content(
            model=self._model,
            contents=types.Content(role="user", parts=parts),
            config=types.GenerateContentConfig(
                temperature=request.temperature,
                response_mime_type="application/json",
                response_json_schema=dict(request.schema),
                http_options=_timeout(request.seconds),
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
                # The body as it came. Had it read the body, the SDK would by itself ask on after a CONTINUATION.
                should_return_http_response=True,
            ),
        )
        return (response.sdk_http_response and response.sdk_http_response.body) or ""


class _Open(NamedTuple):
    """A client and the loop that its connections live in."""

    loop: asyncio.AbstractEventLoop
    http: AsyncClient
    client: Client


class _NoKey(Exception):
    """There is no key, neither given nor in the environment."""


class _HttpError(Exception):
    """The server answered with another status than 200."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.body = body


def _http_client(base_url: str | None) -> AsyncClient:
    from httpx2 import AsyncClient, Limits

    return AsyncClient(
        # How many calls run at once is decided above; one that waits for a connection here would time out.
        limits=Limits(max_connections=None, max_keepalive_connections=None),
        event_hooks={"response": [_must_be_200]},
        # What is not encrypted takes no way by a proxy.
        trust_env=not (base_url or "").startswith("http:"),
    )


async def _must_be_200(response: Response) -> None:
    """Before the SDK sees it, whose errors quote the body, and which fails on one in an old encoding.

    Before a redirect is followed, too: it would carry prompt and key to whatever host it names.
    """
    if response.status_code != 200:
        raise _HttpError(response.status_code, response.headers, await response.aread())


def _timeout(seconds: float) -> Any:
    from google.genai import types

    return types.HttpOptions(timeout=max(1, round(seconds * 1000)))


# What went wrong on the way ------------------------------------------------------------------------------------------


def _failed(code: str, note: str = "", *, usage: Usage | None = None, retry_after: float | None = None) -> CallFailed:
    return failed(_NAME, code, note=note, remedies=_REMEDIES, retry_after=retry_after, usage=usage)


def _failure(error: Exception) -> CallFailed:
    """What an error of the libraries below means. Its type is said, never its text."""
    import httpx2
    from google.auth.exceptions import GoogleAuthError
    from google.auth.exceptions import TransportError as LoginUnreachable

    if isinstance(error, _HttpError):
        return _http_failure(error)
    if isinstance(error, _NoKey):
        return _failed("LLM-KEY", "none is set", usage=Usage())
    kinds: tuple[tuple[str, tuple[type[Exception], ...]], ...] = (
        ("LLM-TIMEOUT", (TimeoutError, httpx2.TimeoutException)),
        # Of all that is sent, only the key goes into a header as it was given.
        ("LLM-KEY", (UnicodeEncodeError, httpx2.LocalProtocolError)),
        ("LLM-UNREACHABLE", (httpx2.TransportError, httpx2.InvalidURL, LoginUnreachable)),
        ("LLM-KEY", (GoogleAuthError,)),
        ("LLM-MALFORMED", (json.JSONDecodeError, ValidationError, httpx2.DecodingError)),
    )
    code = next((code for code, types in kinds if isinstance(error, types)), "LLM-UNKNOWN")
    return _failed(code, type(error).__name__)


def _http_failure(error: _HttpError) -> CallFailed:
    details = _Details.of(error.body)
    # The Gemini API answers a wrong key with 400.
    by_status = code_of(error.status)
    asked_to_wait = parse_retry_after(error.headers.get("retry-after", ""))
    return _failed(
        "LLM-KEY" if details.is_about_the_key else by_status,
        f"HTTP {error.status} {details.status}".rstrip(),
        retry_after=details.retry_delay if asked_to_wait is None else asked_to_wait,
    )


class _Details(NamedTuple):
    """What the body of an error says that is safe to know: no free text."""

    status: str = ""
    """Google's own name of it, ``RESOURCE_EXHAUSTED``."""
    retry_delay: float | None = None
    is_about_the_key: bool = False

    @classmethod
    def of(cls, body: bytes) -> _Details:
        try:
            whole = json.loads(body)
        except (ValueError, RecursionError):  # not the API answers, but something between here and there
            return cls()
        error = _as_dict(_as_dict(whole[0] if isinstance(whole, list) and whole else whole).get("error"))
        listed = error.get("details")
        details = [_as_dict(one) for one in listed] if isinstance(listed, list) else []
        delays = (parse_retry_after(str(one.get("retryDelay", ""))) for one in details)
        return cls(
            status=_constant(error.get("status")),
            retry_delay=next((delay for delay in delays if delay is not None), None),
            is_about_the_key=any(str(one.get("reason", "")).startswith("API_KEY_") for one in details),
        )


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _constant(value: Any) -> str:
    """A name in capitals; nothing where it could be anybody's words."""
    return value if isinstance(value, str) and re.fullmatch("[A-Z_]{2,40}", value) else ""


# What came back ------------------------------------------------------------------------------------------------------


class _Wire(BaseModel):
    """The part of the protocol that is read here; whatever else a server sends is its own affair."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel)


class _Part(_Wire):
    text: str = ""
    thought: bool = False


class _Content(_Wire):
    parts: tuple[_Part, ...] = ()


class _Candidate(_Wire):
    content: _Content = _Content()
    finish_reason: str = ""


class _PromptFeedback(_Wire):
    block_reason: str = ""


class _UsageMetadata(_Wire):
    prompt_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0
    cached_content_token_count: int = 0


class _GenerateContentResponse(_Wire):
    candidates: tuple[_Candidate, ...] = ()
    prompt_feedback: _PromptFeedback = _PromptFeedback()
    usage_metadata: _UsageMetadata = _UsageMetadata()


def _reply(body: str) -> Reply:
    """The text of the first candidate, if it is whole."""
    response = _read(body)
    if response is None:
        raise _failed("LLM-MALFORMED")
    usage = _usage(response.usage_metadata)
    if blocked := response.prompt_feedback.block_reason:
        raise _failed("LLM-REFUSED", f"it was the prompt: {_constant(blocked)}", usage=usage)
    if not response.candidates:
        raise _failed("LLM-EMPTY", usage=usage)
    candidate = response.candidates[0]
    if candidate.finish_reason != "STOP":
        code = _FINISH.get(candidate.finish_reason, "LLM-UNKNOWN")
        raise _failed(code, _constant(candidate.finish_reason), usage=usage)
    text = "".join(part.text for part in candidate.content.parts if not part.thought)
    if not text.strip():
        raise _failed("LLM-EMPTY", usage=usage)
    return Reply(text, usage)


def _read(body: str) -> _GenerateContentResponse | None:
    try:
        return _GenerateContentResponse.model_validate_json(body)
    except ValidationError:
        return None


def _usage(counted: _UsageMetadata) -> Usage:
    return Usage(
        calls=1,
        input_tokens=counted.prompt_token_count,
        output_tokens=counted.candidates_token_count + counted.thoughts_token_count,
        cached_tokens=counted.cached_content_token_count,
        thought_tokens=counted.thoughts_token_count,
    )
