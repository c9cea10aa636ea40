from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from servers.openai import Call, Fault, ModelServer
from servers.strict_providers import RIGHT_KEY, StrictProvider, read_tables

from evalkit.llm.client import LanguageModel
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.ledger import Ledger
from evalkit.llm.model import ModelCallError, Provider, Reply, Request, Usage
from evalkit.llm.model_families import find_model_facts
from evalkit.llm.providers import build_provider
from evalkit.llm.request_options import RequestFitter, send_with_all_options

from .test_client import Aside

ENVIRONMENT = {f"{name}_API_KEY": RIGHT_KEY for name in ("OPENAI", "ANTHROPIC", "GEMINI", "MISTRAL")}
SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "page": {"type": ["integer", "null"]},
        "kinds": {"type": "array", "items": {"type": ["string", "null"], "enum": ["a", "b", None]}},
    },
    "required": ["reasoning", "page", "kinds"],
}
PROMPT = "Mrs Amarante has a rash, and her temperature is 38.4."
RIGHT = '{"reasoning": "r", "page": 1, "kinds": ["a"]}'
FAMILY_BY_SERVER = {"llama_cpp": "llamacpp", "lm_studio": "lmstudio"}
LOCAL = ("ollama:llama3.2", "llamacpp:m", "vllm:m", "openai:house-model")


def build(url: str, name: str, context_tokens: int | None = None) -> Provider:
    base_url = url if name.startswith(("anthropic:", "gemini:")) else f"{url}/v1"
    return build_provider(name, environment=ENVIRONMENT, base_url=base_url, context_tokens=context_tokens)


def send(provider: Provider, times: int = 1, *, prompt: str = PROMPT, temperature: float = 0.0) -> list[Any]:
    """The replies' texts, and the errors' codes."""

    async def repeat() -> list[Any]:
        outcomes: list[Any] = []
        for _ in range(times):
            try:
                request = Request(prompt, SCHEMA, 5, temperature=temperature, measured_field="page")
                outcomes.append((await provider.send(request)).text)
            except ModelCallError as error:
                outcomes.append(error.code)
        await provider.close()
        return outcomes

    return asyncio.run(repeat())


# Providers that refuse what their pages say -------------------------------------------------------------------------


@pytest.mark.parametrize("provider", read_tables()[0])
def test_no_model_is_sent_what_its_provider_refuses(provider: str) -> None:
    with StrictProvider(provider, RIGHT) as server:
        assert server.models
        for model in server.models:
            name = f"{FAMILY_BY_SERVER.get(provider, provider)}:{model}"
            assert (name, send(build(server.url, name))) == (name, [RIGHT])
        assert not [request.model for request in server.requests if request.refused or request.advised]


def test_a_prompt_that_ollama_would_cut_off_is_not_sent() -> None:
    with StrictProvider("ollama", RIGHT) as server:
        long_prompt = "page " * 4_000
        assert send(build(server.url, "ollama:llama3.2:3b"), prompt=long_prompt) == ["LLM-CONTEXT"]
        assert not server.requests
        assert send(build(server.url, "ollama:llama3.2:3b", 32_768), prompt=long_prompt) == [RIGHT]
        assert server.requests[0].truncated  # the setting was not true


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("openai", "openai:gpt-4.1"),
        ("gemini", "gemini:gemini-2.5-flash"),
        ("anthropic", "anthropic:claude-sonnet-4-5"),
        ("vllm", "vllm:Qwen/Qwen2.5-7B-Instruct"),
        ("llama_cpp", "llamacpp:qwen2.5-coder-32b-instruct-q4_k_m.gguf"),
    ],
)
def test_a_context_that_the_server_says_is_too_small_is_named(provider: str, name: str) -> None:
    with StrictProvider(provider, RIGHT, context=2_000) as server:
        assert send(build(server.url, name), 2, prompt="page " * 4_000) == ["LLM-CONTEXT", "LLM-CONTEXT"]
        assert len(server.requests) == 2


# What a server refuses is left out ----------------------------------------------------------------------------------


def refuse(*fields: str, status: int = 400) -> Any:
    """An answer that refuses these kinds of ``response_format``, or other fields, by name."""

    def answer(call: Call) -> str | Fault:
        sent = {*call.body, call.body.get("response_format", {}).get("type")}
        refused = next((field for field in fields if field in sent), None)
        if refused is None:
            return RIGHT
        option = "response_format" if refused.startswith("json") else refused
        return Fault(status, raw=json.dumps({"error": {"message": f"{option}: {refused} is not supported"}}).encode())

    return answer


def shape_of(call: Call) -> tuple[str | None, bool, bool]:
    """The kind of answer that a call asks for; whether its prompt has the schema; whether it has a temperature."""
    content = call.body["messages"][-1]["content"]
    return call.body.get("response_format", {}).get("type"), '"reasoning"' in content, "temperature" in call.body


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("status", [400, 422, 501])
def test_formats_fall_back_from_schema_to_json_to_prompt(name: str, status: int, caplog) -> None:
    with ModelServer(refuse("json_schema", "json_object", status=status)) as server, caplog.at_level(logging.WARNING):
        assert send(build(server.url, name), 4) == ["LLM-OPTION", "LLM-OPTION", RIGHT, RIGHT]
        assert [shape_of(call) for call in server.calls] == [
            ("json_schema", False, True),
            ("json_object", True, True),
            (None, True, True),
            (None, True, True),
        ]
    assert [record.message for record in caplog.records] == [
        f"{name} does not take the schema; from now on it is asked by JSON mode, with the schema in the prompt",
        f"{name} does not take the schema; from now on it is asked by the schema in the prompt alone",
    ]


def test_a_refused_temperature_is_left_out_from_then_on(caplog) -> None:
    with ModelServer(refuse("temperature")) as server, caplog.at_level(logging.WARNING):
        assert send(build(server.url, "vllm:m"), 3, temperature=0.2) == ["LLM-OPTION", RIGHT, RIGHT]
        assert [shape_of(call)[2] for call in server.calls] == [True, False, False]
        assert [shape_of(call)[0] for call in server.calls] == ["json_schema"] * 3
    assert [record.message for record in caplog.records] == [
        "vllm:m does not take the temperature; it is left out from now on"
    ]


def test_refused_probabilities_are_left_out_from_then_on() -> None:
    with ModelServer(refuse("logprobs")) as server:
        assert send(build(server.url, "vllm:m"), 3) == ["LLM-OPTION", RIGHT, RIGHT]
        assert ["logprobs" in call.body for call in server.calls] == [True, False, False]


@pytest.mark.parametrize("prose", ["The page says so.", '{"answer": "on page 1"}', "[]"])
def test_a_server_that_ignores_the_schema_gets_it_in_the_prompt(prose: str) -> None:
    with ModelServer(lambda call: RIGHT if shape_of(call)[1] else prose) as server:
        assert send(build(server.url, "llamacpp:m"), 3) == ["LLM-OPTION", RIGHT, RIGHT]
        assert len(server.calls) == 3


def test_an_ignored_schema_is_paid_and_a_service_is_not_suspected() -> None:
    with ModelServer(lambda _: "The page says so.") as server:
        provider = build(server.url, "llamacpp:m")
        with pytest.raises(ModelCallError) as caught:
            asyncio.run(provider.send(Request(PROMPT, SCHEMA, 5)))
        assert caught.value.usage.input_tokens == 100
        assert send(build(server.url, "mistral:mistral-large-latest")) == ["The page says so."]


@pytest.mark.parametrize(
    "message",
    [
        f"cannot take: {PROMPT} with temperature 0 and response_format",  # quotes the request
        "unexpected token near '\nHER TEMPERATURE IS 38.4'",  # quotes some words of it
        "temperature response_format " * 100,
        "the model is not happy",
    ],
)
def test_an_error_that_quotes_the_request_names_no_option(message: str) -> None:
    with ModelServer(lambda _: Fault(400, raw=json.dumps({"error": {"message": message}}).encode())) as server:
        assert send(build(server.url, "vllm:m"), 2) == ["LLM-REQUEST", "LLM-REQUEST"]


def test_the_named_parameter_counts_not_the_words() -> None:
    body = {"error": {"message": "temperature is not taken with this response_format", "param": "temperature"}}
    with ModelServer(lambda call: Fault(400, raw=json.dumps(body).encode()) if shape_of(call)[2] else RIGHT) as server:
        assert send(build(server.url, "vllm:m"), 2) == ["LLM-OPTION", RIGHT]
        assert shape_of(server.calls[1])[0] == "json_schema"


def test_simultaneous_refusals_drop_an_option_once() -> None:
    facts = find_model_facts("vllm:m")
    fitter, request = RequestFitter("vllm:m", facts), Request(PROMPT, SCHEMA, 5)
    sent = fitter.options
    errors = [fitter.explain_refusal(request, sent, "response_format is unknown") for _ in range(3)]
    assert [error.code for error in errors if error] == ["LLM-OPTION"] * 3
    assert fitter.options.answer_modes == ("json", "prompt")


def test_pictures_are_not_sent_to_a_model_that_sees_none() -> None:
    with ModelServer(lambda _: RIGHT) as server:
        provider = build_provider("gemini:gemma-3-1b-it", environment={"GEMINI_API_KEY": "k"}, base_url=server.url)
        with pytest.raises(ModelCallError) as caught:
            asyncio.run(provider.send(Request(PROMPT, SCHEMA, 5, (b"\x89PNG",))))
        assert (caught.value.code, caught.value.usage, server.calls) == ("LLM-REQUEST", Usage(), [])


def test_the_client_repeats_the_question_and_journals_each_call() -> None:
    with ModelServer(
        lambda call: (
            refuse("json_schema", "json_object", "temperature")(call)
            if "response_format" in call.body or "temperature" in call.body
            else '{"words": "well"}'
        )
    ) as server:
        model = LanguageModel(
            build(server.url, "vllm:m"), Ledger(), AimdLimiter(4), max_first_wait=0.001, max_wait=0.001
        )

        async def ask_twice() -> list[Any]:
            try:
                return [await model.ask(Aside(temperature)) for temperature in (0.0, 0.5)]
            finally:
                await model.close()

        first, second = asyncio.run(ask_twice())
    assert (first.value.words, first.usage.calls) == ("well", 4)
    assert (second.value.words, second.usage.calls) == ("well", 1)


def test_a_call_outside_of_the_client_can_be_repeated_too() -> None:
    with ModelServer(refuse("json_schema", "temperature")) as server:
        provider = build(server.url, "vllm:m")

        async def ask() -> Reply:
            try:
                return await send_with_all_options(provider, Request(PROMPT, SCHEMA, 5))
            finally:
                await provider.close()

        assert asyncio.run(ask()).text == RIGHT
        assert len(server.calls) == 3
