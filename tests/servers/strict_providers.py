"""Model providers on 127.0.0.1 that refuse what their pages say they refuse.

>>> with StrictProvider("openai", '{"total": 5}') as server:
...     server.url.startswith("http://127.0.0.1:")
True

The rules are data, ``strict_providers.toml``, written from the providers' pages and not from the code that is tested
with them. A rule whose source is unknown, and one that only some versions of a server keep, is off unless a test asks
for it by name. Tokens are counted as a quarter of the characters.
"""

from __future__ import annotations

import json
import re
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

RIGHT_KEY = "strict-right-key-0123456789"
ABSENT = "<absent>"
"""In ``when`` and ``unless``: the field is not sent at all."""

Placeholders = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """One thing that a provider does not take, and what it answers."""

    name: str
    provider: str
    check: str
    source: str
    """The page's address, or ``unknown``."""
    read: date
    says: str
    """What the page says, in other words."""
    models: str = ".*"
    """A regular expression for the whole name."""
    shape: str = ""
    """The protocol that the rule is about, where a provider has two."""
    version: str = ""
    """The rule holds from this ``anthropic-version`` on."""
    fields: Sequence[str] = ()
    values: Sequence[Any] = ()
    allowed: Sequence[Any] = ()
    """Values of a keyword that are taken."""
    known: Sequence[str] = ()
    pattern: str = ""
    required: bool = False
    low: float = 0
    high: float = 0
    when: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    unless: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    effect: str = "refuse"
    """``refuse``; ``truncate``: only a part of the prompt is read; ``empty``: an answer without text; ``advise``."""
    status: int = 200
    body: str = "error"
    """Which of the provider's bodies an error has."""
    message: Any = ""
    type: str = ""
    param: str | None = None
    code: str | None = None
    extra: Sequence[Any] = ()
    quoted: bool = True
    """The wording was seen; otherwise only the status is known."""
    default: bool = True

    @property
    def is_default(self) -> bool:
        """On unless a test says otherwise."""
        return self.default and self.source != "unknown"


@dataclass(frozen=True)
class Model:
    """A model and its limits, where a page gives them."""

    provider: str
    ids: Sequence[str]
    source: str
    context: int | None = None
    output: int | None = None


@dataclass(frozen=True)
class Provider:
    """How a provider is spoken to."""

    shapes: Mapping[str, str]
    """Regular expressions of paths, and the protocol that each speaks."""
    listing: str
    output: Sequence[str]
    """Fields that limit the answer; the first that is sent counts."""
    error: str
    key: str = ""
    """The header of the key, or ``bearer``; empty where none is asked for."""
    serves: Sequence[str] = ()
    """What a local server has loaded; hosted ones have the table of models."""
    context: int | None = None
    native_error: str = ""
    plain_error: str = ""
    listed_error: str = ""
    overflow_error: str = ""


@cache
def read_tables() -> tuple[dict[str, Provider], list[Model], list[Rule]]:
    """Read the providers, the models and the rules."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    providers = {name: Provider(**row) for name, row in tables["providers"].items()}
    return providers, [Model(**row) for row in tables["models"]], [Rule(**row) for row in tables["rules"]]


@dataclass
class Request:
    """What arrived, and what became of it."""

    path: str
    headers: Mapping[str, str]
    """Names in small letters."""
    body: dict[str, Any]
    shape: str
    model: str
    text: str
    """All that the model is told: instructions and messages, one after another."""
    images: int
    context: int | None
    """Tokens of the window in which it was read."""
    limits: Model | None
    key: str
    read_text: str = ""
    """The part of ``text`` that the model read."""
    refused: Rule | None = None
    truncated: Rule | None = None
    advised: list[Rule] = field(default_factory=list)
    """Rules that the request keeps against advice."""

    @property
    def tokens(self) -> int:
        """Tokens of the prompt."""
        return len(self.text) // 4


Answer = str | Callable[[Request], str]


class StrictProvider:
    """Serves one provider until its ``with`` block ends; ``requests`` are those so far."""

    def __init__(
        self,
        provider: str,
        answer: Answer,
        *,
        key: str | None = None,
        models: Sequence[str] | None = None,
        context: int | None = None,
        rules: Sequence[str] = (),
        without: Sequence[str] = (),
    ) -> None:
        """Set up a provider.

        Args:
            provider: A name of the table.
            answer: What the model says to every request that is taken, or a function of the request.
            key: The right key; hosted providers have ``RIGHT_KEY``, local servers none.
            models: What is served instead of the table's models.
            context: Tokens of the window, instead of the table's.
            rules: Names of rules that are off by default and on here.
            without: Names of rules that are off here.
        """
        providers, listed, all_rules = read_tables()
        self.protocol = providers[provider]
        self.answer = answer
        hosted = [model for model in listed if model.provider == provider]
        self.key = key if key is not None else RIGHT_KEY if hosted else None
        self.models = list(
            models if models is not None else self.protocol.serves or [name for row in hosted for name in row.ids]
        )
        self.limits = {name: row for row in hosted for name in row.ids}
        self.context = context
        own = [rule for rule in all_rules if rule.provider == provider]
        if unheard := {*rules, *without} - {rule.name for rule in own}:
            raise ValueError(f"{provider} has no rules {sorted(unheard)}")
        self.rules = [rule for rule in own if rule.name in rules or (rule.is_default and rule.name not in without)]
        self.requests: list[Request] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self

    @property
    def url(self) -> str:
        """Without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reply(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        """Judge a request; the status and the body of the answer."""
        request = self._receive(path, headers, body)
        if request is None:
            return 404, {"error": {"message": f"no such path: {path}"}}
        self.requests.append(request)
        for rule in self.rules:
            broken = self._judge(rule, request)
            if broken is None:
                continue
            if rule.effect == "refuse":
                request.refused = rule
                return rule.status, self._error(rule, request, broken)
            if rule.effect == "advise":
                request.advised.append(rule)
            else:
                request.truncated = rule
                return 200, self._shorten(rule, request)
        if body.get("stream", request.shape == "ollama"):  # Ollama's own protocol streams unless told otherwise
            return 501, {"error": {"message": "this server does not stream"}}
        text = self.answer if isinstance(self.answer, str) else self.answer(request)
        return 200, SHAPES[request.shape](request, text, self._output_limit(request), request.tokens)

    def list_models(self) -> Any:
        """List what is served, as the provider does."""
        if self.protocol.listing == "/v1beta/models":
            return {"models": [{"name": f"models/{name}"} for name in self.models]}
        extra = {"max_model_len": self.context or self.protocol.context} if self.protocol.plain_error else {}
        return {"object": "list", "data": [{"id": name, "object": "model", **extra} for name in self.models]}

    def _receive(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Request | None:
        matches = ((re.fullmatch(way + r"(?:\?.*)?", path), shape) for way, shape in self.protocol.shapes.items())
        found, shape = next(((found, shape) for found, shape in matches if found), (None, ""))
        if found is None:
            return None
        model = found.groupdict().get("model") or body.get("model", "")
        limits = self.limits.get(model)
        context = self.context or (limits.context if limits else self.protocol.context)
        if shape == "ollama":
            context = next(iter(read_values(body, "options.num_ctx")), ("", context))[1]
        text, images = read_prompt(body)
        bearer = headers.get("authorization", "")
        key = headers.get(self.protocol.key) or bearer.removeprefix("Bearer ")
        if not key and (found := re.search(r"[?&]key=([^&]*)", path)):
            key = found[1]
        return Request(path, headers, body, shape, model, text, images, context, limits, key, read_text=text)

    def _judge(self, rule: Rule, request: Request) -> Placeholders | None:
        applies = (
            re.fullmatch(rule.models, request.model)
            and rule.shape in {"", request.shape}
            and (not rule.version or request.headers.get("anthropic-version", "") >= rule.version)
            and all(_holds(request.body, path, values) for path, values in rule.when.items())
            and not (rule.unless and all(_holds(request.body, path, values) for path, values in rule.unless.items()))
        )
        return CHECKS[rule.check](self, rule, request) if applies else None

    def _error(self, rule: Rule, request: Request, broken: Placeholders) -> Any:
        name = "native_error" if request.shape == "ollama" else rule.body
        known = {"model": request.model, "key": mask(request.key), "tokens": request.tokens, "limit": request.context}
        name_of_schema = next((value for _, value in read_values(request.body, "response_format.json_schema.name")), "")
        known |= {"name": name_of_schema} | broken
        parts = {
            "status": rule.status,
            "message": fill(rule.message, known),
            "type": rule.type,
            "param": fill(rule.param, known),
            "code": rule.code,
            "extra": fill(list(rule.extra), known),
        }
        return fill(json.loads(getattr(self.protocol, name)), parts | known)

    def _shorten(self, rule: Rule, request: Request) -> Any:
        if rule.effect == "empty":
            request.read_text = ""
            return SHAPES[request.shape](request, "", self._output_limit(request), request.tokens)
        # Ollama: four tokens of the beginning, and as much of the end as fills half of what is left of the window.
        assert request.context
        end = (request.context - 4) // 2
        request.read_text = request.text[: 4 * 4] + request.text[-end * 4 :]
        text = self.answer if isinstance(self.answer, str) else self.answer(request)
        return SHAPES[request.shape](request, text, self._output_limit(request), 4 + end)

    def _output_limit(self, request: Request) -> int | None:
        return next((value for path in self.protocol.output for _, value in read_values(request.body, path)), None)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # connections that are kept alive end with their clients
    request_queue_size = 256
    owner: StrictProvider


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one packet for head and body

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._send(*self.server.owner.reply(self.path, headers, json.loads(sent)))

    def do_GET(self) -> None:
        owner = self.server.owner
        if self.path.partition("?")[0] == owner.protocol.listing:
            self._send(200, owner.list_models())
        else:
            self._send(404, {"error": {"message": f"no such path: {self.path}"}})

    def _send(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's
        """Tests say what went wrong."""


def mask(key: str) -> str:
    """Hide a long key but for its beginning and its end, as OpenAI does."""
    return key if len(key) <= 12 else key[:8] + "*" * (len(key) - 12) + key[-4:]


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Put values into a template: ``<name>`` alone is the value itself, inside of a text its words."""
    if isinstance(template, dict):
        return {key: fill(part, values) for key, part in template.items()}
    if isinstance(template, list):
        return [fill(part, values) for part in template]
    if not isinstance(template, str):
        return template
    if (whole := re.fullmatch(r"<(\w+)>", template)) and whole[1] in values:
        return values[whole[1]]

    def write(found: re.Match[str]) -> str:
        value = values.get(found[1], found[0])
        return value if isinstance(value, str) else json.dumps(value)

    return re.sub(r"<(\w+)>", write, template)


def read_values(body: Any, path: str) -> list[tuple[str, Any]]:
    """Read what is sent under a path, ``a.b[].c``; each value with the index of the last list on its way."""
    found = [("", body)]
    for step in path.split("."):
        name, is_list = step.removesuffix("[]"), step.endswith("[]")
        snake = re.sub(r"([A-Z])", r"_\1", name).lower()  # Google takes both spellings
        parts = [
            (index, part.get(name, part.get(snake)))
            for index, part in found
            if isinstance(part, dict) and part.get(name, part.get(snake)) is not None
        ]
        found = parts
        if is_list:
            listed = [part for _, part in parts if isinstance(part, list)]
            found = [(str(at), item) for part in listed for at, item in enumerate(part)]
    return found


def read_prompt(body: dict[str, Any]) -> tuple[str, int]:
    """Read all that a model is told, in order, and count the pictures."""
    texts: list[str] = []
    images = 0

    def collect(part: Any) -> None:
        nonlocal images
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, list):
            for item in part:
                collect(item)
        elif isinstance(part, dict):
            kinds = {"image_url", "image", "inlineData", "inline_data"}
            images += len(part.get("images", ())) + bool(kinds & {part.get("type"), *part})
            for name in ("parts", "content", "text"):
                collect(part.get(name))

    for name in ("system", "systemInstruction", "system_instruction", "messages", "contents"):
        collect(body.get(name))
    return "\n".join(texts), images


def _holds(body: Any, path: str, values: Sequence[Any]) -> bool:
    sent = [value for _, value in read_values(body, path)]
    return any(value in values for value in sent) if sent else ABSENT in values


# ---- Schemas


@dataclass(frozen=True)
class Node:
    """A part of a schema that is a schema itself."""

    schema: dict[str, Any]
    context: tuple[str, ...]
    """Its way from the root, as OpenAI writes it."""
    proto: str
    """The same as Google writes it."""
    depth: int
    """Objects around it and itself."""


def walk_schema(schema: Any, context: tuple[str, ...] = (), proto: str = "", depth: int = 0) -> Iterator[Node]:
    """Walk through a schema and all that is inside of it."""
    if not isinstance(schema, dict):
        return
    depth += schema.get("type") == "object"
    yield Node(schema, context, proto, depth)
    for place in ("properties", "$defs", "definitions"):
        for at, (name, part) in enumerate(schema.get(place, {}).items()):
            yield from walk_schema(part, (*context, place, name), f"{proto}.{place}[{at}].value", depth)
    for place, written in (("anyOf", "any_of"), ("oneOf", "one_of"), ("allOf", "all_of"), ("prefixItems", "items")):
        for at, part in enumerate(schema.get(place, ())):
            yield from walk_schema(part, (*context, place, str(at)), f"{proto}.{written}[{at}]", depth)
    yield from walk_schema(schema.get("items"), (*context, "items"), f"{proto}.items", depth)


def _nodes(rule: Rule, request: Request) -> Iterator[tuple[Node, Placeholders]]:
    for path in rule.fields:
        snake = re.sub(r"([A-Z])", r"_\1", path).lower()
        for _, schema in read_values(request.body, path):
            for node in walk_schema(schema, proto=snake):
                kind = node.schema.get("type", "object")
                written = "()" if not node.context else str(node.context)
                yield node, {"path": path, "context": written, "proto": node.proto, "kind": kind, "depth": node.depth}


def _keyword(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    for node, known in _nodes(rule, request):
        for keyword in rule.values:
            if keyword in node.schema and node.schema[keyword] not in rule.allowed:
                return known | {"keyword": keyword}
    return None


def _keyword_other_than(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    for node, known in _nodes(rule, request):
        if other := [keyword for keyword in node.schema if keyword not in rule.values]:
            return known | {"keyword": other[0]}
    return None


def _type_list(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    return next((known for node, known in _nodes(rule, request) if isinstance(node.schema.get("type"), list)), None)


def _ref_sibling(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    for node, known in _nodes(rule, request):
        siblings = [keyword for keyword in node.schema if not keyword.startswith("$")]
        if "$ref" in node.schema and siblings:
            return known | {"keyword": siblings[0]}
    return None


def _open_object(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    for node, known in _nodes(rule, request):
        is_object = node.schema.get("type") == "object" or "properties" in node.schema
        if is_object and node.schema.get("additionalProperties") is not False:
            return known
    return None


def _optional_key(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    for node, known in _nodes(rule, request):
        required = node.schema.get("required", ())
        if missing := [name for name in node.schema.get("properties", {}) if name not in required]:
            return known | {"missing": missing[0]}
    return None


def _schema_depth(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    deepest = max(_nodes(rule, request), key=lambda pair: pair[0].depth, default=None)
    return deepest[1] if deepest and deepest[0].depth > rule.high else None


# ---- Everything else


def _sent(rule: Rule, request: Request) -> Iterator[Placeholders]:
    for path in rule.fields:
        name = path.rpartition(".")[2]
        for index, value in read_values(request.body, path):
            yield {"field": name, "path": path, "index": index, "value": value}


def _folded(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


def _is_listed(value: Any, values: Sequence[Any]) -> bool:
    # 0 and False are equal in Python, and are not in JSON
    return any(_folded(value) == _folded(item) and isinstance(value, bool) == isinstance(item, bool) for item in values)


def _other_than(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    return next((sent for sent in _sent(rule, request) if not _is_listed(sent["value"], rule.values)), None)


def _one_of(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    return next((sent for sent in _sent(rule, request) if _is_listed(sent["value"], rule.values)), None)


def _outside(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    for sent in _sent(rule, request):
        value = sent["value"]
        if not _is_listed(value, rule.values) and not rule.low <= value <= rule.high:
            return sent
    return None


def _together(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    return {} if all(read_values(request.body, path) for path in rule.fields) else None


def _missing(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    return None if any(_sent(rule, request)) else {}


def _not_matching(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    sent = list(_sent(rule, request))
    if rule.required and not sent:
        return {}
    return next((one for one in sent if not re.fullmatch(rule.pattern, str(one["value"]))), None)


def _reaches(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    values = [sent["value"] for sent in _sent(rule, request)]
    return {} if len(values) == 2 and values[0] >= values[1] else None


def _unknown_key(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    snakes = {re.sub(r"([A-Z])", r"_\1", name).lower() for name in rule.known}
    for name, value in request.body.items():
        if name not in rule.known and name not in snakes:
            return {"field": name, "value": value}
    return None


def _above_output(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    most = request.limits.output if request.limits else None
    for sent in _sent(rule, request):
        if most is not None and sent["value"] > most:
            return sent | {"limit": most, "above": most + 1}
    return None


def _context(_server: StrictProvider, _rule: Rule, request: Request) -> Placeholders | None:
    return {} if request.context is not None and request.tokens > request.context else None


def _context_with_output(server: StrictProvider, _rule: Rule, request: Request) -> Placeholders | None:
    output = server._output_limit(request) or 0
    total = request.tokens + output
    return {"output": output, "total": total} if request.context is not None and total > request.context else None


def _last_role(_server: StrictProvider, rule: Rule, request: Request) -> Placeholders | None:
    roles = read_values(request.body, "messages[].role")
    return {"value": roles[-1][1]} if roles and roles[-1][1] in rule.values else None


def _if(is_broken: Callable[[StrictProvider, Rule, Request], bool]) -> Callable[..., Placeholders | None]:
    return lambda server, rule, request: {} if is_broken(server, rule, request) else None


CHECKS: dict[str, Callable[[StrictProvider, Rule, Request], Placeholders | None]] = {
    "above_output": _above_output,
    "always": _if(lambda server, rule, request: True),
    "context": _context,
    "context_with_output": _context_with_output,
    "last_role": _last_role,
    "missing": _missing,
    "missing_version": _if(lambda server, rule, request: "anthropic-version" not in request.headers),
    "no_word": _if(lambda server, rule, request: rule.pattern not in request.text.casefold()),
    "none_served": _if(lambda server, rule, request: not server.models),
    "not_matching": _not_matching,
    "one_of": _one_of,
    "open_object": _open_object,
    "optional_key": _optional_key,
    "other_than": _other_than,
    "outside": _outside,
    "present": lambda server, rule, request: next(_sent(rule, request), None),
    "reaches": _reaches,
    "ref_sibling": _ref_sibling,
    "schema_depth": _schema_depth,
    "schema_keyword": _keyword,
    "schema_keyword_other_than": _keyword_other_than,
    "schema_type_list": _type_list,
    "together": _together,
    "unknown_key": _unknown_key,
    "unknown_model": _if(lambda server, rule, request: request.model not in server.models),
    "wrong_key": _if(lambda server, rule, request: server.key is not None and request.key != server.key),
}


# ---- Answers


def _cut(text: str, limit: int | None) -> tuple[str, bool]:
    if limit is None or limit < 0 or len(text) <= limit * 4:
        return text, False
    return text[: limit * 4], True


def _chat(request: Request, text: str, limit: int | None, tokens: int) -> dict[str, Any]:
    text, is_cut = _cut(text, limit)
    output = len(text) // 4
    return {
        "id": "chatcmpl-strict",
        "object": "chat.completion",
        "created": 1,
        "model": request.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "length" if is_cut else "stop",
            }
        ],
        "usage": {"prompt_tokens": tokens, "completion_tokens": output, "total_tokens": tokens + output},
    }


def _anthropic(request: Request, text: str, limit: int | None, tokens: int) -> dict[str, Any]:
    text, is_cut = _cut(text, limit)
    return {
        "id": "msg_strict",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": "max_tokens" if is_cut else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": len(text) // 4},
    }


def _gemini(request: Request, text: str, limit: int | None, tokens: int) -> dict[str, Any]:
    text, is_cut = _cut(text, limit)
    output = len(text) // 4
    content = {"role": "model", "parts": [{"text": text}]}
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": output, "totalTokenCount": tokens + output}
    candidate = {"content": content, "finishReason": "MAX_TOKENS" if is_cut else "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": request.model}


def _ollama(request: Request, text: str, limit: int | None, tokens: int) -> dict[str, Any]:
    text, is_cut = _cut(text, limit)
    return {
        "model": request.model,
        "created_at": "2026-11-27T00:00:00Z",
        "message": {"role": "assistant", "content": text},
        "done": True,
        "done_reason": "length" if is_cut else "stop",
        "prompt_eval_count": tokens,
        "eval_count": len(text) // 4,
    }


SHAPES: dict[str, Callable[[Request, str, int | None, int], dict[str, Any]]] = {
    "anthropic": _anthropic,
    "chat": _chat,
    "gemini": _gemini,
    "gemini_count": lambda request, text, limit, tokens: {"totalTokens": tokens},
    "ollama": _ollama,
}
