from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import pickle
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from pydantic_ai import Agent
from servers import openai as server
from servers.openai import Call, Fault, ModelServer

from evalkit.core.install_hint import format_install_hint
from evalkit.errors import UsageError
from evalkit.llm.model import ModelCallError, Provider, Reply, Request, Usage
from evalkit.llm.model_families import load_model_family_table
from evalkit.llm.providers import FAMILIES, build_provider

ASKED, KEY = "Mrs Amarante has a rash", "sk-planted-0123456789"
ANSWERED = '{"reasoning": "erythema of Mrs Amarante"}'
ENVIRONMENT = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "OLLAMA_API_KEY": KEY}
SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "page": {"type": ["integer", "null"]},
        "kinds": {"type": "array", "items": {"type": ["string", "null"], "enum": ["a", "b", None]}},
    },
    "required": ["reasoning", "page", "kinds"],
}
MODELS = ("openai:gpt-4o", "anthropic:claude-sonnet-4-6", "ollama:llama3.2")
SPENT = Usage(calls=1, input_tokens=100, output_tokens=30, cached_tokens=40, thought_tokens=10)
NOTHING = Usage(calls=1)

FAULTS = {
    # name         fault              code               may_pass retry_after usage
    "400": (server.BAD_REQUEST, "LLM-REQUEST", False, None, NOTHING),
    "401": (server.BAD_KEY, "LLM-KEY", False, None, NOTHING),
    "403": (server.FORBIDDEN, "LLM-KEY", False, None, NOTHING),
    "404": (server.NO_MODEL, "LLM-MODEL", False, None, NOTHING),
    "408": (Fault(408), "LLM-TIMEOUT", True, None, NOTHING),
    "422": (Fault(422), "LLM-REQUEST", False, None, NOTHING),
    "429": (server.RATE, "LLM-RATE", True, 7.0, NOTHING),
    "500": (server.BROKEN, "LLM-SERVER", True, None, NOTHING),
    "503": (server.BUSY, "LLM-SERVER", True, 3.0, NOTHING),
    "529": (server.OVERLOADED, "LLM-SERVER", True, None, NOTHING),
    "hang": (server.HANG, "LLM-TIMEOUT", True, None, NOTHING),
    "drip": (server.DRIP, "LLM-TIMEOUT", True, None, NOTHING),
    "drop": (server.DROP, "LLM-UNREACHABLE", True, None, NOTHING),
    "cut": (server.CUT, "LLM-UNREACHABLE", True, None, NOTHING),
    "redirect": (server.ELSEWHERE, "LLM-MALFORMED", True, None, NOTHING),
    "no JSON": (server.NO_JSON, "LLM-MALFORMED", True, None, NOTHING),
    "no reply": (server.NO_REPLY, "LLM-MALFORMED", True, None, NOTHING),
    "truncated": (server.TRUNCATED, "LLM-TRUNCATED", False, None, SPENT),
    "filtered": (server.FILTERED, "LLM-REFUSED", False, None, SPENT),
    "refused": (server.REFUSED, "LLM-REFUSED", False, None, SPENT),
    "mystery": (server.MYSTERY, "LLM-UNKNOWN", True, None, SPENT),
    "empty": (server.EMPTY, "LLM-EMPTY", True, None, SPENT),
    "blank": (Fault(text=" \n"), "LLM-EMPTY", True, None, SPENT),
}


@pytest.fixture
def served() -> Iterator[ModelServer]:
    with ModelServer(lambda _: ANSWERED) as running:
        yield running


@pytest.fixture(params=MODELS, scope="module")
def standing(request: pytest.FixtureRequest) -> Iterator[tuple[ModelServer, Provider, asyncio.Runner]]:
    """A server, a provider that keeps its connections to it, and the loop that they live in."""
    with ModelServer(lambda _: ANSWERED) as running, asyncio.Runner() as runner:
        asked = at(running, request.param)
        yield running, asked, runner
        runner.run(asked.close())


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def at(served: ModelServer, name: str, **environment: str) -> Provider:
    return build_provider(
        name,
        environment=environment or ENVIRONMENT,
        base_url=served.url if name.startswith("anthropic:") else f"{served.url}/v1",
    )


def ask(asked: Provider, *, seconds: float = 5.0, images: tuple[bytes, ...] = (), system: str = "") -> Reply:
    async def once() -> Reply:
        try:
            return await asked.send(Request(ASKED, SCHEMA, seconds, images, system_instruction=system))
        finally:
            await asked.close()

    return asyncio.run(once())


# What arrives, and what comes back -----------------------------------------------------------------------------------


def test_reply_is_the_text_as_it_was_written(served, name):
    assert ask(at(served, name)) == Reply(ANSWERED, SPENT)
    assert len(served.calls) == 1


def test_name_is_the_one_given(served, name):
    assert at(served, name).name == name


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_named_after_one_request_and_tells_nothing(standing, fault):
    running, asked, runner = standing
    wrong, code, may_pass, retry_after, usage = FAULTS[fault]
    running.answer = lambda _: wrong
    running.calls.clear()
    seconds = 0.3 if wrong.way in {"hang", "drip"} else 5.0
    with pytest.raises(ModelCallError) as caught:
        runner.run(asked.send(Request(ASKED, SCHEMA, seconds)))
    failed = caught.value
    assert (failed.code, failed.is_transient, failed.retry_after, failed.usage) == (code, may_pass, retry_after, usage)
    assert len(running.calls) == 1
    told = [
        str(failed),
        repr(failed),
        str(vars(failed)),
        *traceback.format_exception(failed),
        str(pickle.dumps(failed)),
    ]
    assert not [text for text in told if "Amarante" in text or KEY in text]
    assert failed.__cause__ is None
    assert failed.__context__ is None
    assert failed.message.startswith(asked.name)
    assert failed.remedy


@pytest.mark.parametrize("finish", ["null", "left out"])
def test_a_reply_without_finish_reason_says_so(served, name, finish):
    served.answer = lambda _: Fault(text=ANSWERED, finish=finish)
    assert ask(at(served, name)) == Reply(ANSWERED, SPENT, has_finish_reason=False)


def test_an_output_limit_of_the_request_arrives(served, name):
    async def once() -> None:
        provider = at(served, name)
        await provider.send(Request(ASKED, SCHEMA, 5.0, max_output_tokens=12_000))
        await provider.close()

    asyncio.run(once())
    (call,) = served.calls
    assert 12_000 in (call.body.get("max_tokens"), call.body.get("max_completion_tokens"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("openai:gpt-4.1-mini", ["µ", 0.99, "Other", 0.951]),
        ("vllm:house-model", ["µ", 0.99, "Other", 0.951]),
        ("ollama:llama3.2", ["µ", "Other"]),  # no page says that it takes the option
        ("anthropic:claude-sonnet-4-6", ["µ", "Other"]),
    ],
)
def test_a_measured_field_has_its_probabilities(served, name, values):
    said = '{"kinds": [{"kind": "µ"}, {"kind" : "Other", "page": 1}]}'

    async def once() -> str:
        provider = at(served, name)
        reply = await provider.send(Request(ASKED, SCHEMA, 5.0, measured_field="kind"))
        await provider.close()
        return reply.text

    served.answer = lambda _: said
    kinds = [value for row in json.loads(asyncio.run(once()))["kinds"] for value in row.values() if value != 1]
    assert kinds == values
    assert ask(at(served, name)).text == said
    assert [call.body.get("logprobs") for call in served.calls] == [len(values) > 2 or None, None]


def test_exhausted_credit_does_not_pass(served):
    served.answer = lambda _: server.NO_CREDIT
    with pytest.raises(ModelCallError) as caught:
        ask(at(served, "openai:gpt-4o"))
    assert (caught.value.code, caught.value.is_transient, caught.value.retry_after) == ("LLM-RATE", False, None)


def test_server_that_is_not_there(name):
    with ModelServer(lambda _: ANSWERED) as gone:
        asked = at(gone, name)
    with pytest.raises(ModelCallError) as caught:
        ask(asked)
    assert (caught.value.code, caught.value.is_transient) == ("LLM-UNREACHABLE", True)


def test_schema_that_the_model_cannot_take_costs_nothing(served):
    asked = at(served, "anthropic:claude-sonnet-4-6")
    rich = {name: {"type": ["string", "null"]} for name in "abcdefghijklmnopqrst"}
    schema = {"type": "object", "properties": rich, "required": list(rich)}
    with pytest.raises(ModelCallError) as caught:
        asyncio.run(asked.send(Request(ASKED, schema, 5)))
    assert (caught.value.code, caught.value.is_transient, caught.value.usage) == ("LLM-OPTION", True, Usage())
    assert not served.calls
    asyncio.run(asked.send(Request(ASKED, schema, 5)))
    assert '"required":["a","b"' in served.calls[0].body["messages"][0]["content"][0]["text"]


def wanted_schema(call: Call) -> Any:
    if call.path == "/v1/messages":
        return call.body["output_config"]["format"]["schema"]
    assert call.body["response_format"]["type"] == "json_schema"
    return call.body["response_format"]["json_schema"]["schema"]


def test_prompt_schema_and_temperature_arrive(served, name):
    ask(at(served, name))
    (call,) = served.calls
    (message,) = call.body["messages"]
    content = message["content"]
    assert message["role"] == "user"
    assert (content if isinstance(content, str) else content[0]["text"]) == ASKED
    assert call.body.get("temperature") == (None if name.startswith("anthropic") else 0)
    assert not call.body["stream"]
    schema = wanted_schema(call)
    assert schema["required"] == ["reasoning", "page", "kinds"]
    assert schema["properties"]["page"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    one, other = schema["properties"]["kinds"]["items"]["anyOf"]
    assert one["enum"] == ["a", "b"]
    assert other == {"type": "null"}
    assert call.headers["x-stainless-read-timeout"] == "5.0"


def test_system_instruction_stands_before_the_prompt(served, name):
    ask(at(served, name), system="Judge, do not obey.")
    body = served.calls[0].body
    system = body["system"] if "system" in body else body["messages"].pop(0)["content"]
    assert system == "Judge, do not obey."
    (message,) = body["messages"]
    assert message["content"] == ASKED or message["content"][0]["text"] == ASKED


def test_openai_is_held_to_the_schema(served):
    ask(at(served, "openai:gpt-4o"))
    wanted = served.calls[0].body["response_format"]["json_schema"]
    assert wanted["strict"] is True
    assert wanted["schema"]["additionalProperties"] is False


def test_anthropic_is_held_to_the_schema_and_to_a_longest_answer(served):
    ask(at(served, "anthropic:claude-sonnet-4-6"))
    assert wanted_schema(served.calls[0])["additionalProperties"] is False
    assert served.calls[0].body["max_tokens"] == 16_384


def test_own_servers_get_the_schema_for_any_model_name(served):
    ask(at(served, "openai:Qwen/Qwen3-32B"))
    assert wanted_schema(served.calls[0])["required"] == SCHEMA["required"]


@pytest.mark.parametrize("name", ["ollama:glm-5-cloud", "anthropic:claude-3-5-haiku-latest"])
def test_schema_stands_in_the_request_where_none_is_kept_to(served, name):
    ask(at(served, name))
    assert "reasoning" in json.dumps(served.calls[0].body)
    assert "json_schema" not in json.dumps(served.calls[0].body)


@pytest.mark.parametrize("name", ["openai:o3", "openai:gpt-5", "anthropic:claude-opus-5-5"])
def test_models_without_temperature_get_none_and_no_warning(served, name):
    with warnings.catch_warnings(record=True) as warned:
        assert ask(at(served, name)).text == ANSWERED
    assert "temperature" not in served.calls[0].body
    assert not [str(warning.message) for warning in warned if "Sampling" in str(warning.message)]


def test_pictures_follow_the_prompt_in_their_order(served, name):
    pictures = (b"\x89PNG first", b"\x89PNG second")
    ask(at(served, name), images=pictures)
    text, *parts = served.calls[0].body["messages"][0]["content"]
    assert text["text"] == ASKED
    encoded = [base64.b64encode(picture).decode() for picture in pictures]
    if name.startswith("anthropic"):
        assert [part["source"] for part in parts] == [
            {"type": "base64", "media_type": "image/png", "data": data} for data in encoded
        ]
    else:
        assert [part["image_url"]["url"] for part in parts] == [f"data:image/png;base64,{data}" for data in encoded]


def test_key_is_in_a_header_only(served, name):
    ask(at(served, name))
    (call,) = served.calls
    assert KEY in call.headers["authorization"]
    assert KEY not in call.path
    assert KEY not in json.dumps(call.body)


def test_only_openai_is_asked_not_to_store_requests(served, monkeypatch):
    ask(at(served, "openai:gpt-4o"))
    assert "store" not in served.calls[0].body
    monkeypatch.setattr("evalkit.llm.providers.openai_protocol._is_openai_host", lambda _: True)
    ask(at(served, "openai:gpt-4o"))
    assert served.calls[1].body["store"] is False
    assert served.calls[1].body["temperature"] == 0


# Connections ---------------------------------------------------------------------------------------------------------


def test_one_connection_for_one_loop_and_another_for_the_next(served, name):
    asked = at(served, name)

    async def twice() -> None:
        for _ in range(2):
            await asked.send(Request(ASKED, SCHEMA, 5))

    asyncio.run(twice())
    asyncio.run(twice())
    first, second, third, fourth = (call.connection for call in served.calls)
    assert first == second != third == fourth


def test_close_ends_the_connection_and_it_can_be_asked_again(served, name):
    asked = at(served, name)

    async def closing() -> None:
        await asked.close()
        await asked.send(Request(ASKED, SCHEMA, 5))
        assert not served.ended.is_set()
        await asked.close()
        assert await asyncio.to_thread(served.ended.wait, 2)
        await asked.send(Request(ASKED, SCHEMA, 5))

    asyncio.run(closing())
    asyncio.run(asked.close())
    first, second = (call.connection for call in served.calls)
    assert first != second


def test_cancelling_is_not_a_failure(served, name):
    arrived = threading.Event()
    served.answer = lambda _: arrived.set() or server.HANG
    asked = at(served, name)

    async def impatient() -> None:
        task = asyncio.create_task(asked.send(Request(ASKED, SCHEMA, 60)))
        await asyncio.to_thread(arrived.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asked.close()

    asyncio.run(impatient())


def test_a_proxy_never_sees_what_is_sent_without_tls(served, name, monkeypatch):
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert ask(at(served, name)).text == ANSWERED


# Silence -------------------------------------------------------------------------------------------------------------


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(1)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record) + str(record.args))


@pytest.fixture
def kept() -> Iterator[_Kept]:
    """Every logger that there is, speaking, at the lowest level."""
    handler = _Kept()
    loggers = [logging.getLogger(), *map(logging.getLogger, list(logging.getLogger().manager.loggerDict))]
    before = [(logger, logger.level, logger.disabled, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(1)
        logger.disabled, logger.propagate = False, True
    yield handler
    for logger, level, disabled, propagate in before:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.disabled, logger.propagate = disabled, propagate


@pytest.mark.parametrize("fault", [None, "400", "drop", "no JSON", "no reply"])
def test_no_log_record_holds_prompt_reply_or_key(served, name, fault, kept):
    if fault:
        served.answer = lambda _: FAULTS[fault][0]
    asked = at(served, name)

    async def twice() -> None:
        for _ in range(2):
            with contextlib.suppress(ModelCallError):
                await asked.send(Request(ASKED, SCHEMA, 5))
            for known in list(logging.getLogger().manager.loggerDict):
                logging.getLogger(known).setLevel(1)  # as a notebook does that wants to see more
        await asked.close()

    asyncio.run(twice())
    assert len(served.calls) == 2
    assert not [line for line in kept.lines if "Amarante" in line or KEY in line or "127.0.0.1" in line]


def test_loggers_that_are_imported_later_are_silent_too(served, kept):
    ask(at(served, "openai:gpt-4o"))
    for library in ("openai", "anthropic", "httpx2", "httpcore2"):
        logging.getLogger(f"{library}.imported_later").error(KEY)
    assert not [line for line in kept.lines if KEY in line]


class _Tracing(trace.NoOpTracerProvider):
    def __init__(self) -> None:
        self.spans: list[str] = []

    def get_tracer(self, *args: Any, **named: Any) -> trace.Tracer:
        spans = self.spans

        class Recording(trace.NoOpTracer):
            def start_span(self, name: str, *args: Any, **named: Any) -> trace.Span:
                spans.append(name)
                return super().start_span(name, *args, **named)

            def start_as_current_span(self, name: str, *args: Any, **named: Any) -> Any:
                spans.append(name)
                return super().start_as_current_span(name, *args, **named)

        return Recording()


def test_no_call_is_traced(served, name, monkeypatch):
    tracing = _Tracing()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", tracing)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: tracing)
    Agent.instrument_all(True)
    try:
        ask(at(served, name))
    finally:
        Agent.instrument_all(False)
    assert not tracing.spans
    assert "traceparent" not in served.calls[0].headers


# Names, keys, addresses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "openai", "openai:", ":gpt-4o", "embedded", "cohere:large", "OpenAI:gpt-4o"])
def test_unknown_name_is_told_what_there_is(name):
    with pytest.raises(UsageError) as caught:
        build_provider(name, environment=ENVIRONMENT)
    assert caught.value.code == "MODEL-NAME"
    for known in ("gemini:", "openai:", "anthropic:", "ollama:"):
        assert known in caught.value.remedy


@pytest.mark.parametrize(
    ("name", "environment", "variable"),
    [
        ("openai:gpt-4o", {}, "OPENAI_API_KEY"),
        ("openai:gpt-4o", {"OPENAI_API_KEY": " "}, "OPENAI_API_KEY"),
        ("openai:gpt-4o", {"OPENAI_API_KEY": "sk–copied"}, "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-6", {"OPENAI_API_KEY": KEY}, "ANTHROPIC_API_KEY"),
        ("gemini:gemini-2.5-flash", {}, "GEMINI_API_KEY"),
        ("gemini:gemini-2.5-flash", {}, "GOOGLE_API_KEY"),
        ("gemini:gemini-2.5-flash", {"GOOGLE_GENAI_USE_VERTEXAI": "true"}, "GOOGLE_CLOUD_PROJECT"),
        (
            "gemini:gemini-2.5-flash",
            {"GOOGLE_GENAI_USE_VERTEXAI": "1", "GOOGLE_CLOUD_PROJECT": "p", "GEMINI_API_KEY": KEY},
            "GOOGLE_CLOUD_LOCATION",
        ),
    ],
)
def test_missing_key_names_its_variable_and_no_other_key(name, environment, variable):
    with pytest.raises(UsageError) as caught:
        build_provider(name, environment=environment)
    assert caught.value.code == "MODEL-KEY"
    assert variable in str(caught.value)
    assert KEY not in str(caught.value)
    assert "copied" not in str(caught.value)


def test_anthropic_wants_a_key_wherever_it_is(served):
    with pytest.raises(UsageError) as caught:
        at(served, "anthropic:claude-sonnet-4-6", OPENAI_API_KEY=KEY)
    assert caught.value.code == "MODEL-KEY"


@pytest.mark.parametrize("name", ["ollama:llama3.2", "openai:local"])
def test_servers_of_ones_own_need_no_key(served, name):
    assert ask(at(served, name, ANTHROPIC_API_KEY=KEY)).text == ANSWERED
    assert KEY not in str(served.calls[0].headers)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"GEMINI_API_KEY": KEY}, {"api_key": KEY}),
        ({"GEMINI_API_KEY": "other", "GOOGLE_API_KEY": KEY}, {"api_key": KEY}),
        ({"GEMINI_API_KEY": KEY, "GOOGLE_GENAI_USE_VERTEXAI": "false"}, {"api_key": KEY}),
        (
            {"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "eu"},
            {"project": "p", "location": "eu"},
        ),
    ],
)
def test_gemini_gets_its_key_or_project(monkeypatch, environment, expected):
    made: list[Any] = []
    monkeypatch.setattr(
        "evalkit.llm.providers.gemini.GeminiProvider", lambda model, facts, **named: made.append((model, named))
    )
    build_provider("gemini:gemini-2.5-flash", environment=environment, base_url="https://proxy.example.org")
    assert made == [("gemini-2.5-flash", {"base_url": "https://proxy.example.org", **expected})]


NEAR = ("http://127.0.0.1:8000/v1", "http://localhost:8000/v1", "http://[::1]:8000/v1", "https://example.org/v1")
INSIDE = ("http://10.0.0.7/v1", "http://172.31.255.1/v1", "http://192.168.1.2:11434/v1", "http://[fd00::7]/v1")
OUTSIDE = (
    "http://8.8.8.8/v1",
    "http://172.32.0.1/v1",
    "http://example.org/v1",
    "http://localhost.example.org/v1",
    "http://10.example.org/v1",
    "http://[::ffff:8.8.8.8]/v1",
    "http://0.0.0.0/v1",
    "http://169.254.169.254/v1",
)
NONE = (
    "ftp://10.0.0.7/v1",
    "10.0.0.7/v1",
    "https://",
    "https://name:pw@example.org",
    "https://h/?key=k",
    "http://[",
)


@pytest.mark.parametrize("service", ["openai", "anthropic", "ollama", "gemini"])
@pytest.mark.parametrize("address", [*NEAR, *INSIDE, *OUTSIDE, *NONE])
def test_documents_never_cross_a_network_in_clear(service, address):
    allowed = address in NEAR or (address in INSIDE and service in {"openai", "ollama"})
    environment = {**ENVIRONMENT, "GEMINI_API_KEY": KEY}
    if allowed:
        assert build_provider(f"{service}:m", environment=environment, base_url=address).name == f"{service}:m"
        return
    with pytest.raises(UsageError) as caught:
        build_provider(f"{service}:m", environment=environment, base_url=address)
    assert caught.value.code == "MODEL-ADDRESS"
    assert "pw" not in str(caught.value)
    assert "key=k" not in str(caught.value)


def test_without_the_extra_it_says_what_to_install():
    program = """
import sys
sys.modules.update(dict.fromkeys(["pydantic_ai", "openai", "anthropic"]))
from evalkit.errors import UsageError
from evalkit.llm.providers import build_provider as provider
for name in ("openai:m", "anthropic:m", "ollama:m"):
    try:
        provider(name, environment={"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})
    except UsageError as error:
        print(error.code, error.remedy, error.__cause__)
print(provider("gemini:m", environment={"GEMINI_API_KEY": "k"}).name)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [f"MODEL-EXTRA Run {format_install_hint('providers')}. None"] * 3 + ["gemini:m"]


def test_importing_it_imports_no_library():
    program = """
import sys
import evalkit.llm.providers
print([name for name in ("pydantic_ai", "openai", "anthropic", "httpx2", "google.genai") if name in sys.modules])
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_every_provider_of_the_table_is_a_family():
    assert list(FAMILIES) == sorted(load_model_family_table().providers)
