"""A Gemini on this machine: the REST protocol, its ways to fail, and a record of all that it was asked.

>>> with GeminiServer(lambda call: '{"findings": []}') as server:
...     server.url.startswith("http://127.0.0.1:")
True

It is the worst service that one can get: its errors quote the prompt and the key in bodies and headers, so that a test
for leaks has something to find.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

THOUGHT_TOKENS = 7
CACHED_FROM = 1024
"""Tokens that two prompts must begin with in common before any of them is cheaper."""
RIGHT = '{"findings": [{"reasoning": "The page says so.", "severity": "MINOR", "message": "A remark."}]}'
"""What a fault is put into unless it is told otherwise."""

_PATH = re.compile(
    r"/(?P<version>v1\w*)/(?:projects/[^/]+/locations/[^/]+/publishers/google/)?models/(?P<model>[^/:?]+)"
    r":(?P<method>generateContent|countTokens)(?:\?.*)?"
)
_ROLES = {
    "You are the primary classifier": "classifier",
    "in three ways": "verifier",
    "You check a classification": "V2",
    "You look for traps": "V3",
    "You judge the evidence": "V4",
    "Extract clinical data from this report": "extractor",
    "You are a medical data quality evaluator": "evaluator",
}
_PROBE = "This is a test of the connection."
_BLOCK = 256
_DRIP_SECONDS = 0.05


@dataclass(frozen=True)
class Call:
    """One request, as it arrived."""

    number: int
    """From 1, over all roles."""
    nth: int
    """From 1, among those of its role."""
    role: str
    """Empty where it cannot be told."""
    method: str
    """``generateContent`` or ``countTokens``."""
    model: str
    path: str
    """With the query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    prompt: str
    images: tuple[bytes, ...]
    config: Mapping[str, Any]
    """``generationConfig``."""
    body: Mapping[str, Any]
    cached_tokens: int
    at: float
    """``time.monotonic()``."""

    @property
    def schema(self) -> Any:
        """What the answer is to look like."""
        return self.config.get("responseJsonSchema")

    @property
    def input_tokens(self) -> int:
        """One for four characters."""
        return len(self.prompt) // 4


class Wire(Enum):
    """What becomes of the connection."""

    WHOLE = auto()
    """The answer is sent whole, and the connection kept."""
    SILENT = auto()
    """Nothing is ever sent."""
    CLOSED = auto()
    """It is closed before anything is sent."""
    RESET = auto()
    """The same, the hard way."""
    CUT = auto()
    """It is closed in the middle of the body."""
    DRIP = auto()
    """The body is sent by the byte, and never ends."""
    BABBLE = auto()
    """The answer is sent without any HTTP around it."""


@dataclass(frozen=True)
class Fault:
    """A way to fail. ``body(call, answer)`` is a JSON value, or bytes."""

    name: str
    body: Callable[[Call, str], Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wire: Wire = Wire.WHOLE
    answer: str = RIGHT

    def within(self, answer: str) -> Fault:
        """The same fault in another answer."""
        return replace(self, answer=answer)

    def __repr__(self) -> str:
        return self.name


Reaction = str | Fault
Answer = Callable[[Call], Reaction]


def generated(call: Call, text: str, finish: str | None = "STOP", thought: str = "") -> dict[str, Any]:
    """The body of a 200: one candidate with ``text``, and what it cost."""
    parts = [{"text": thought, "thought": True}] if thought else []
    candidate = {"content": {"role": "model", "parts": [*parts, {"text": text}]}, "finishReason": finish, "index": 0}
    return {"candidates": [candidate], "usageMetadata": metered(call, text), "modelVersion": call.model}


def metered(call: Call, text: str) -> dict[str, int]:
    """``usageMetadata``."""
    cached = {"cachedContentTokenCount": call.cached_tokens} if call.cached_tokens else {}
    return cached | {
        "promptTokenCount": call.input_tokens,
        "candidatesTokenCount": len(text) // 4,
        "thoughtsTokenCount": THOUGHT_TOKENS,
        "totalTokenCount": call.input_tokens + len(text) // 4 + THOUGHT_TOKENS,
    }


def quoting(call: Call) -> str:
    """What no error should repeat."""
    return f"your key {call.headers.get('x-goog-api-key')}, your words: {call.prompt[:200]}"


def http_error(
    status: int, *, retry_after: int | str | None = None, retry_delay: str | None = None, reason: str | None = None
) -> Fault:
    """An error of the API: ``retry_after`` as a header, ``retry_delay`` (``12s``) and ``reason`` as its details."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}] if reason else []
    if retry_delay:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retry_delay})
    names = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}

    def body(call: Call, _answer: str) -> dict[str, Any]:
        said = {"code": status, "message": quoting(call), "status": names.get(status, "FAILED"), "details": details}
        return {"error": said}

    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Fault(f"http_error({status})", body, status=status, headers=headers)


def rate_limited(seconds: int) -> Fault:
    """429 that asks to wait."""
    return http_error(429, retry_after=seconds)


def finished(reason: str | None, *, share: float = 1.0) -> Fault:
    """A candidate that ended for ``reason``, with the first ``share`` of the answer."""
    return Fault(
        f"finished({reason})", lambda call, answer: generated(call, answer[: int(len(answer) * share)], reason)
    )


def _changed(name: str, change: Callable[[dict[str, Any]], Any]) -> Fault:
    return Fault(name, lambda call, answer: generated(call, json.dumps(change(json.loads(answer)))))


def _first_for_list(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: (value[0] if value else {}) if isinstance(value, list) else value for key, value in answer.items()}


def _unheard_of_severity(value: Any) -> Any:
    if isinstance(value, list):
        return [_unheard_of_severity(one) for one in value]
    if isinstance(value, dict):
        return {key: "CATASTROPHIC" if key == "severity" else _unheard_of_severity(one) for key, one in value.items()}
    return value


def _with_invented(answer: dict[str, Any]) -> dict[str, Any]:
    return {
        key: [*value, {**(value[0] if value else {}), "issue_id": "V9-INVENTED-001"}]
        if isinstance(value, list)
        else value
        for key, value in answer.items()
    }


BAD_REQUEST = http_error(400)
WRONG_KEY = http_error(400, reason="API_KEY_INVALID")
FORBIDDEN = http_error(403)
NO_SUCH_MODEL = http_error(404)
INTERNAL = http_error(500)
OVERLOADED = http_error(503)
HANG = Fault("HANG", lambda call, answer: b"", wire=Wire.SILENT)
DRIP = Fault("DRIP", generated, wire=Wire.DRIP)
DROPPED = Fault("DROPPED", lambda call, answer: b"", wire=Wire.CLOSED)
RESET = Fault("RESET", lambda call, answer: b"", wire=Wire.RESET)
CUT = Fault("CUT", generated, wire=Wire.CUT)
BABBLE = Fault("BABBLE", lambda call, answer: f"{quoting(call)}\r\n\r\n{answer}".encode(), wire=Wire.BABBLE)
NOT_JSON = Fault("NOT_JSON", lambda call, answer: f"<html>{quoting(call)} {answer}</html>".encode())
NO_RESPONSE = Fault("NO_RESPONSE", lambda call, answer: [quoting(call), answer])
TRUNCATED = finished("MAX_TOKENS", share=0.5)
HALF_JSON = finished("STOP", share=0.5)
SAFETY = finished("SAFETY", share=0)
RECITATION = finished("RECITATION", share=0.3)
UNKNOWN_REASON = finished("GREW_TIRED")
BLOCKED = Fault(
    "BLOCKED",
    lambda call, answer: {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": metered(call, "")},
)
NO_CANDIDATES = Fault("NO_CANDIDATES", lambda call, answer: {"candidates": [], "usageMetadata": metered(call, "")})
EMPTY_TEXT = Fault("EMPTY_TEXT", lambda call, answer: generated(call, ""))
WRONG_SCHEMA = Fault("WRONG_SCHEMA", lambda call, answer: generated(call, '{"verdict": "fine", "score": 3}'))
OBJECT_FOR_LIST = _changed("OBJECT_FOR_LIST", _first_for_list)
UNKNOWN_SEVERITY = _changed("UNKNOWN_SEVERITY", _unheard_of_severity)
INVENTED_IDS = _changed("INVENTED_IDS", _with_invented)
#: No fault at all: thoughts are no part of the answer.
THOUGHTS = Fault("THOUGHTS", lambda call, answer: generated(call, answer, thought="Let me see."))


def scripted(answers: Sequence[Reaction | Answer] | Mapping[str, Sequence[Reaction | Answer]]) -> Answer:
    """The first answer for the first call, and so on; the last one for all that follow. A mapping is by role."""

    def answer(call: Call) -> Reaction:
        listed, number = (answers[call.role], call.nth) if isinstance(answers, Mapping) else (answers, call.number)
        this = listed[min(number, len(listed)) - 1]
        return this(call) if callable(this) else this

    return answer


def role_of(prompt: str) -> str:
    """Whose instructions the prompt ends with: the document before them may say anything."""
    found = max((prompt.rfind(sentence), role) for sentence, role in _ROLES.items())
    return found[1] if found[0] >= 0 else ""


class GeminiServer:
    """Answers on 127.0.0.1 with what ``answer`` says, ``delay`` seconds after it was asked.

    ``answer`` runs in a thread of its own and may take its time. Stopped and started again, the server is at the same
    address and goes on counting.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        delay: float = 0.0,
        port: int = 0,
        role_of: Callable[[str], str] = role_of,
        caches: bool = True,
        answer_probe: Answer = lambda call: "{}",
    ) -> None:
        """``caches``: prompts that begin alike are cheaper, so that costs depend on the order of calls.

        ``answer_probe``: what test questions get; they are in ``probes``, not in ``calls``.
        """
        self.answer = answer
        self.answer_probe = answer_probe
        self.probes: list[Call] = []
        self.delay = delay
        self.calls: list[Call] = []
        self.left: list[Call] = []
        """Those whose caller hung up before there was an answer."""
        self.broken: list[Exception] = []
        """What ``answer`` raised; the caller got 500."""
        self._role_of = role_of
        self._caches = caches
        self._port = port
        self._of_role: Counter[str] = Counter()
        self._prefixes: dict[bytes, str] = {}
        self._thread: threading.Thread | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Base URL, without a version."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def connections(self) -> int:
        """Those that are open."""
        return len(self._connections)

    def start(self) -> Self:
        """Listen; returns when it does."""
        listening = socket.create_server(("127.0.0.1", self._port), backlog=1024)
        self._port = listening.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(listening, ready)), name="gemini")
        self._thread.start()
        ready.wait()
        return self

    def stop(self) -> None:
        """Drop all connections and end all threads."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        if self.broken and error is None:
            raise self.broken[0]

    async def _serve(self, listening: socket.socket, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        with ThreadPoolExecutor(64, thread_name_prefix="gemini-answer") as self._threads:
            server = await asyncio.start_server(self._connected, sock=listening, backlog=1024, limit=1 << 20)
            ready.set()
            await self._stopping.wait()
            server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the caller left, or the server stops
        finally:
            self._connections.discard(task)
            writer.transport.abort() if self._stopping.is_set() else writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read a request and answer it; whether the connection is still good for another."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        path = head[0].split(" ")[1]
        if (call := self._arrived(path, headers, body)) is None:
            return await self._send(
                writer, Fault(path, lambda call, answer: {"error": {"code": 404}}, status=404), b"{}"
            )
        working = asyncio.ensure_future(self._react(call))
        # Whatever comes while a caller waits is its good-bye.
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                self.left.append(call)
                return False
            fault, content = working.result()
        finally:
            working.cancel()
            leaving.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)
        return await self._send(writer, fault, content, call)

    def _arrived(self, path: str, headers: Mapping[str, str], body: bytes) -> Call | None:
        if not (known := _PATH.fullmatch(path)):
            return None
        asked = json.loads(body)
        parts = [part for content in asked.get("contents", []) for part in content["parts"]]
        prompt = "".join(part.get("text", "") for part in parts)
        role = "probe" if prompt.startswith(_PROBE) else self._role_of(prompt)
        self._of_role[role] += 1
        call = Call(
            number=len(self.calls) + 1,
            nth=self._of_role[role],
            role=role,
            method=known["method"],
            model=known["model"],
            path=path,
            headers=headers,
            prompt=prompt,
            images=tuple(
                # Of both alphabets: Google's library sends the one for URLs.
                base64.urlsafe_b64decode(part["inlineData"]["data"].replace("+", "-").replace("/", "_"))
                for part in parts
                if "inlineData" in part
            ),
            config=asked.get("generationConfig", {}),
            body=asked,
            cached_tokens=self._cached(prompt) if self._caches and known["method"] == "generateContent" else 0,
            at=time.monotonic(),
        )
        (self.probes if role == "probe" else self.calls).append(call)
        return call

    def _cached(self, prompt: str) -> int:
        """Tokens of the longest beginning that an earlier prompt had as well."""
        digest, common, alike = hashlib.blake2b(), 0, ""
        for end in range(_BLOCK, len(prompt) + 1, _BLOCK):
            digest.update(prompt[end - _BLOCK : end].encode("utf-8", "surrogatepass"))
            earlier = self._prefixes.setdefault(digest.digest(), prompt)
            if earlier is not prompt:
                common, alike = end, earlier
        while common < min(len(prompt), len(alike)) and prompt[common] == alike[common]:
            common += 1
        return common // 4 if common // 4 >= CACHED_FROM else 0

    async def _react(self, call: Call) -> tuple[Fault, bytes]:
        try:
            answer = self.answer_probe if call.role == "probe" else self.answer
            reaction = await self._loop.run_in_executor(self._threads, answer, call)
        except Exception as error:  # noqa: BLE001 - raised again where the test is
            self.broken.append(error)
            reaction = INTERNAL
        if isinstance(reaction, str) and call.method == "countTokens":
            fault = Fault("", lambda call, answer: {"totalTokens": max(1, call.input_tokens)})
        elif isinstance(reaction, str):
            fault = Fault("", generated, answer=reaction)
        else:
            fault = reaction
        await asyncio.sleep(self.delay)
        if fault.wire is Wire.SILENT:
            await asyncio.Event().wait()
        content = fault.body(call, fault.answer)
        return fault, content if isinstance(content, bytes) else json.dumps(content).encode()

    async def _send(self, writer: asyncio.StreamWriter, fault: Fault, content: bytes, call: Call | None = None) -> bool:
        headers = {
            "Content-Type": "application/json; charset=UTF-8",
            "Content-Length": str(1 << 30 if fault.wire is Wire.DRIP else len(content)),
            **fault.headers,
        }
        if call is not None and fault.name:
            headers["X-Quoting"] = re.sub(r"[^ -~]", " ", quoting(call))
        status = f"HTTP/1.1 {fault.status} {HTTPStatus(fault.status).phrase}"
        head = "\r\n".join([status, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode()
        if fault.wire is Wire.WHOLE:
            writer.write(head + content)
        elif fault.wire is Wire.CUT:
            writer.write(head + content[: len(content) // 2])
        elif fault.wire is Wire.BABBLE:
            writer.write(content)
        elif fault.wire is Wire.RESET:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        elif fault.wire is Wire.DRIP:
            writer.write(head)
            with suppress(ConnectionError):
                for byte in content * 1000:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(_DRIP_SECONDS)
        await writer.drain()
        return fault.wire is Wire.WHOLE
