"""A language model's server on 127.0.0.1: OpenAI's chat completions and Anthropic's messages.

Its error bodies quote what was sent, prompt and key, as the worst of real servers do.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

CACHED, INPUT, THOUGHT, OUTPUT = 40, 100, 10, 30
"""Tokens of every reply; cached ones are part of the input, thoughts of the output."""


@dataclass(frozen=True)
class Call:
    """What one request sent."""

    path: str
    headers: Mapping[str, str]
    """Names in small letters."""
    body: dict[str, Any]
    connection: tuple[str, int]
    """The client's end: equal for calls over one connection."""


@dataclass(frozen=True)
class Fault:
    """How a call goes wrong."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = "fault"
    """What an error calls itself."""
    finish: Literal["stop", "length", "filtered", "refused", "mystery", "null", "left out"] = "stop"
    text: str = ""
    raw: bytes | None = None
    """The body as it is sent, instead of one of the protocol."""
    way: Literal["answer", "hang", "drop", "cut", "drip"] = "answer"
    """``drop``: the connection is closed without an answer; ``cut``: within it; ``drip``: it never comes to an end."""


BAD_REQUEST, BAD_KEY, FORBIDDEN, NO_MODEL = Fault(400), Fault(401), Fault(403), Fault(404)
RATE = Fault(429, {"Retry-After": "7", "x-should-retry": "true"})
NO_CREDIT = Fault(429, {"Retry-After": "7"}, code="insufficient_quota")
ELSEWHERE = Fault(307, {"Location": "/v1/elsewhere"})
BROKEN, BUSY, OVERLOADED = Fault(500), Fault(503, {"Retry-After": "3"}), Fault(529)
HANG, DROP, CUT, DRIP = Fault(way="hang"), Fault(way="drop"), Fault(way="cut"), Fault(way="drip")
NO_JSON, NO_REPLY = Fault(raw=b"<html>proxy</html>"), Fault(raw=b'{"hello": "world"}')
TRUNCATED, FILTERED = Fault(finish="length", text='{"find'), Fault(finish="filtered", text='{"find')
REFUSED, MYSTERY, EMPTY = Fault(finish="refused"), Fault(finish="mystery", text="{}"), Fault(text="")

Answer = Callable[[Call], str | Fault]


class ModelServer:
    """Serves until its ``with`` block ends. ``answer`` says what each call gets; ``calls`` are those so far."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.calls: list[Call] = []
        self.over = threading.Event()
        self.ended = threading.Event()  # a connection, by whichever side
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self

    @property
    def url(self) -> str:
        """Without a path: OpenAI's clients add ``/v1`` to it, Anthropic's add nothing."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # connections that are kept alive end with their clients
    request_queue_size = 256
    owner: ModelServer


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one packet for head and body
    protocols: ClassVar[dict[str, Callable[[Call, Fault], dict[str, Any]]]]

    def finish(self) -> None:
        with contextlib.suppress(OSError):  # clients that have gone are a part of the tests
            super().finish()
        self.server.owner.ended.set()

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        call = Call(self.path, headers, json.loads(sent), self.client_address)
        owner = self.server.owner
        owner.calls.append(call)
        if self.path not in self.protocols:
            self._send(404, {}, b'{"error": {"message": "no such path"}}')
            return
        said = owner.answer(call)
        fault = Fault(text=said) if isinstance(said, str) else said
        if fault.way == "hang":
            owner.over.wait()
        if fault.way in {"hang", "drop"}:
            self.close_connection = True
            return
        body = fault.raw
        if body is None and fault.status != 200:
            quoted = f"cannot take {json.dumps(call.body)} with {headers}"
            error = {"type": fault.code, "code": fault.code, "message": quoted}
            body = json.dumps({"type": "error", "error": error}).encode()
        elif body is None:
            body = json.dumps(self.protocols[self.path](call, fault)).encode()
        self._send(fault.status, fault.headers, body, way=fault.way)

    def _send(self, status: int, headers: Mapping[str, str], body: bytes, *, way: str = "answer") -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if way == "drip":
            self._drip()
        self.wfile.write(body[: len(body) // 2] if way == "cut" else body)
        self.close_connection = self.close_connection or way != "answer"

    def _drip(self) -> None:
        """Spaces, which may stand before JSON, until the client has gone."""
        with contextlib.suppress(OSError):
            while not self.server.owner.over.wait(0.02):
                self.wfile.write(b" ")
                self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's
        """Tests say what went wrong."""


def _chat_completion(call: Call, fault: Fault) -> dict[str, Any]:
    finish = {"filtered": "content_filter", "refused": "stop", "null": None}.get(fault.finish, fault.finish)
    message = {"role": "assistant", "content": fault.text}
    if fault.finish == "refused":
        message = {"role": "assistant", "content": None, "refusal": "I cannot help with " + json.dumps(call.body)}
    # each character is a token of probability 0.99
    tokens = [
        {"token": letter, "bytes": list(letter.encode()), "logprob": math.log(0.99), "top_logprobs": []}
        for letter in fault.text
    ]
    logprobs = {"content": tokens} if call.body.get("logprobs") else None
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": call.body["model"],
        "choices": [_leave_out({"index": 0, "message": message, "finish_reason": finish, "logprobs": logprobs})],
        "usage": {
            "prompt_tokens": INPUT,
            "completion_tokens": OUTPUT,
            "total_tokens": INPUT + OUTPUT,
            "prompt_tokens_details": {"cached_tokens": CACHED},
            "completion_tokens_details": {"reasoning_tokens": THOUGHT},
        },
    }


def _message(call: Call, fault: Fault) -> dict[str, Any]:
    finish = {"stop": "end_turn", "length": "max_tokens", "filtered": "refusal", "refused": "refusal", "null": None}
    return _leave_out({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": call.body["model"],
        "content": [{"type": "text", "text": fault.text}] if fault.text else [],
        "stop_reason": finish.get(fault.finish, fault.finish),
        "stop_sequence": None,
        "usage": {
            "input_tokens": INPUT - CACHED,
            "cache_read_input_tokens": CACHED,
            "cache_creation_input_tokens": 0,
            "output_tokens": OUTPUT,
            "output_tokens_details": {"thinking_tokens": THOUGHT},
        },
    })  # fmt: skip


def _leave_out(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value != "left out"}


_Handler.protocols = {"/v1/chat/completions": _chat_completion, "/v1/messages": _message}
