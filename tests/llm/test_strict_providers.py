"""The strict fake providers: each rule refuses what its page refuses, and nothing else. Raw HTTP, no client of ours."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from servers.strict_providers import CHECKS, RIGHT_KEY, StrictProvider, read_tables

TEXT = '{"total": 5}'
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CLOSED = OPEN | {"additionalProperties": False}
LONG = "word " * 400
PATHS = {"anthropic": "/v1/messages", "gemini": "/v1beta/models/{model}:generateContent"}
MODELS = {
    "anthropic": "claude-sonnet-4-6",
    "gemini": "gemini-2.5-flash",
    "llama_cpp": "any.gguf",
    "lm_studio": "any",
    "mistral": "mistral-large-latest",
    "ollama": "llama3.2:3b",
    "openai": "gpt-4.1",
    "vllm": "Qwen/Qwen2.5-7B-Instruct",
}


def chat_format(schema: dict[str, Any], *, strict: bool = True, name: str = "sum") -> dict[str, Any]:
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": name, "strict": strict, "schema": schema}}
    }


def claude_format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def config(**settings: Any) -> dict[str, Any]:
    return {"generationConfig": settings}


def thinking(**settings: Any) -> dict[str, Any]:
    return config(thinkingConfig=settings)


def google_schema(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return config(responseMimeType="application/json", **{kind: schema})


def with_property(schema: dict[str, Any], **part: Any) -> dict[str, Any]:
    return schema | {"properties": {"a": part}}


def nested(levels: int) -> dict[str, Any]:
    schema = CLOSED
    for _ in range(levels - 1):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    return schema


def said(*roles: str) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": "Add."} for role in roles]}


@dataclass(frozen=True)
class Case:
    """A request that breaks a rule, and one beside it that does not."""

    broken: dict[str, Any]
    kept: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    kept_model: str = ""
    broken_headers: dict[str, str] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)


SMALL = {"context": 300}
WRONG_KEY = {"authorization": "Bearer strict-wrong-key-9876543210", "x-api-key": "strict-wrong", "x-goog-api-key": "no"}
CASES = {
    "gemini_key": Case({}, broken_headers=WRONG_KEY),
    "gemini_model": Case({}, model="gemini-9-flash", kept_model="gemini-2.5-pro"),
    "gemini_25_closed": Case({}, kept_model="gemini-3.5-flash"),
    "gemini_unknown_name": Case({"temperature": 0}, config(temperature=0)),
    "gemini_schema_name": Case(google_schema("responseSchema", CLOSED), google_schema("responseSchema", OPEN)),
    "gemini_schema_type_list": Case(
        google_schema("responseSchema", with_property(OPEN, type=["string", "null"])),
        google_schema("responseSchema", with_property(OPEN, type="string", nullable=True)),
    ),
    "gemini_two_schemas": Case(
        config(responseMimeType="application/json", responseSchema=OPEN, responseJsonSchema=OPEN),
        google_schema("responseJsonSchema", CLOSED),
    ),
    "gemini_schema_without_type": Case(config(responseJsonSchema=OPEN), google_schema("responseJsonSchema", OPEN)),
    "gemini_ref_sibling": Case(
        google_schema("responseJsonSchema", with_property(OPEN, **{"$ref": "#/$defs/A", "description": "An A."})),
        google_schema("responseJsonSchema", with_property(OPEN, **{"$ref": "#/$defs/A"})),
    ),
    "gemini_schema_ignored": Case(
        google_schema("responseJsonSchema", with_property(OPEN, type="string", maxLength=3)),
        google_schema("responseJsonSchema", CLOSED),
    ),
    "gemini_level_before_3": Case(thinking(thinkingLevel="LOW"), thinking(thinkingBudget=512)),
    "gemini_level_and_budget": Case(
        thinking(thinkingLevel="LOW", thinkingBudget=512), thinking(thinkingLevel="LOW"), "gemini-3.5-flash"
    ),
    "gemini_25_pro_off": Case(thinking(thinkingBudget=0), thinking(thinkingBudget=128), "gemini-2.5-pro"),
    "gemini_25_pro_budget": Case(thinking(thinkingBudget=127), thinking(thinkingBudget=-1), "gemini-2.5-pro"),
    "gemini_25_flash_budget": Case(thinking(thinkingBudget=24_577), thinking(thinkingBudget=24_576)),
    "gemini_25_lite_budget": Case(thinking(thinkingBudget=511), thinking(thinkingBudget=0), "gemini-2.5-flash-lite"),
    "gemini_minimal": Case(thinking(thinkingLevel="MINIMAL"), thinking(thinkingLevel="LOW"), "gemini-3.1-pro-preview"),
    "gemini_budget_neon": Case(thinking(thinkingBudget=512), thinking(thinkingLevel="low"), "gemini-4-neon"),
    "gemini_budget_4": Case(thinking(thinkingBudget=512), thinking(thinkingLevel="low"), "gemini-4-argon"),
    "gemini_penalty_neon": Case(config(frequencyPenalty=0.1), {}, "gemini-4-neon"),
    "gemini_candidates_neon": Case(config(candidateCount=2), config(candidateCount=1), "gemini-4-neon"),
    "gemini_sampling": Case(config(temperature=0), {}, "gemini-3.1-pro-preview"),
    "gemini_sampling_refused": Case(config(topP=0.9), {}, "gemini-4-argon"),
    "gemini_logprobs": Case(config(responseLogprobs=True), {}, "gemini-3.5-flash"),
    "gemini_tools_and_json": Case(
        {"tools": [{}]} | config(responseMimeType="application/json"), config(responseMimeType="application/json")
    ),
    "gemini_safety_category": Case(
        {"safetySettings": [{"category": "HARM_CATEGORY_IMAGE_HATE", "threshold": "OFF"}]},
        {"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]},
    ),
    "gemini_safety_threshold": Case(
        {"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "NEVER"}]},
        {"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]},
    ),
    "gemini_output": Case(config(maxOutputTokens=65_537), config(maxOutputTokens=65_536)),
    "gemini_context": Case({"contents": [{"parts": [{"text": LONG}]}]}, server=SMALL),
    "openai_key": Case({}, broken_headers=WRONG_KEY),
    "openai_model": Case({}, model="gpt-4.11", kept_model="gpt-5"),
    "openai_max_tokens": Case({"max_tokens": 50}, {"max_completion_tokens": 50}, "gpt-5-mini"),
    "openai_temperature_5": Case({"temperature": 0}, {"temperature": 1}, "gpt-5"),
    "openai_temperature_effort": Case(
        {"temperature": 0, "reasoning_effort": "low"}, {"temperature": 0, "reasoning_effort": "none"}, "gpt-5.4"
    ),
    "openai_sampling_6": Case({"temperature": 1}, {"temperature": 0, "reasoning_effort": "none"}, "gpt-6-luna"),
    "openai_temperature_o": Case({"temperature": 1}, {}, "o3"),
    "openai_sampling_5": Case({"logprobs": True}, {}, "gpt-5"),
    "openai_effort_without_reasoning": Case({"reasoning_effort": "low"}),
    "openai_effort_o": Case({"reasoning_effort": "minimal"}, {"reasoning_effort": "low"}, "o4-mini"),
    "openai_effort_5": Case({"reasoning_effort": "none"}, {"reasoning_effort": "minimal"}, "gpt-5-nano"),
    "openai_effort_51": Case({"reasoning_effort": "minimal"}, {"reasoning_effort": "none"}, "gpt-5.1"),
    "openai_effort_52": Case({"reasoning_effort": "minimal"}, {"reasoning_effort": "xhigh"}, "gpt-5.5"),
    "openai_effort_6_astra": Case({"reasoning_effort": "none"}, {"reasoning_effort": "low"}, "gpt-6-astra"),
    "openai_format_name": Case(chat_format(CLOSED, name="a sum"), chat_format(CLOSED)),
    "openai_open_object": Case(chat_format(OPEN), chat_format(OPEN, strict=False)),
    "openai_optional_key": Case(chat_format(CLOSED | {"required": []}), chat_format(CLOSED)),
    "openai_default": Case(
        chat_format(with_property(CLOSED, type="string", default="b")),
        chat_format(with_property(CLOSED, type="string")),
    ),
    "openai_ref_sibling": Case(
        chat_format(with_property(CLOSED, **{"$ref": "#/$defs/A", "description": "An A."})),
        chat_format(with_property(CLOSED, **{"$ref": "#/$defs/A"})),
    ),
    "openai_schema_depth": Case(chat_format(nested(6)), chat_format(nested(5))),
    "openai_word_json": Case(
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_object"}, "messages": [{"role": "user", "content": "Add, as JSON."}]},
    ),
    "openai_output": Case({"max_tokens": 32_769}, {"max_tokens": 32_768}),
    "openai_context": Case({"messages": [{"role": "user", "content": LONG}]}, server=SMALL),
    "anthropic_key": Case({}, broken_headers=WRONG_KEY),
    "anthropic_model": Case({}, model="claude-sonnet-9", kept_model="claude-sonnet-5-5"),
    "anthropic_extra": Case({"seed": 1}, {"system": "Add."}),
    "anthropic_sampling_version": Case({"temperature": 1}, broken_headers={"anthropic-version": "2026-10-21"}),
    "anthropic_sampling": Case({"temperature": 0}, {"temperature": 1}, "claude-opus-4-7"),
    "anthropic_both": Case({"temperature": 0, "top_p": 0.9}, {"temperature": 0}),
    "anthropic_temperature_range": Case({"temperature": 1.5}, {"temperature": 1}),
    "anthropic_max_tokens_missing": Case({"max_tokens": None}),
    "anthropic_output": Case({"max_tokens": 64_001}, {"max_tokens": 64_000}, "claude-haiku-4-5"),
    "anthropic_budget": Case(
        {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048},
        {"thinking": {"type": "adaptive"}},
        "claude-opus-5",
    ),
    "anthropic_budget_size": Case(
        {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 2048},
        {"thinking": {"type": "enabled", "budget_tokens": 2047}, "max_tokens": 2048},
    ),
    "anthropic_temperature_thinking": Case(
        {"thinking": {"type": "adaptive"}, "temperature": 0}, {"thinking": {"type": "adaptive"}, "temperature": 1}
    ),
    "anthropic_prefill": Case(said("user", "assistant"), said("user", "assistant", "user")),
    "anthropic_open_object": Case(claude_format(OPEN), claude_format(CLOSED)),
    "anthropic_min_items": Case(
        claude_format(with_property(CLOSED, type="array", minItems=2)),
        claude_format(with_property(CLOSED, type="array", minItems=1)),
    ),
    "anthropic_bounds": Case(
        claude_format(with_property(CLOSED, type="number", maximum=1)),
        claude_format(with_property(CLOSED, type="number")),
    ),
    "anthropic_no_schemas": Case(claude_format(CLOSED), {}, "claude-opus-4-1"),
    "anthropic_version_missing": Case({}, broken_headers={"anthropic-version": ""}),
    "anthropic_context": Case({"messages": [{"role": "user", "content": LONG}]}, server=SMALL),
    "mistral_key": Case({}, broken_headers=WRONG_KEY),
    "mistral_model": Case({}, model="mistral-huge", kept_model="mistral-small-latest"),
    "mistral_extra": Case({"max_completion_tokens": 5}, {"max_tokens": 5}),
    "mistral_temperature": Case({"temperature": 1.1}, {"temperature": 0}),
    "mistral_last_role": Case(said("user", "assistant"), said("assistant", "user")),
    "mistral_context": Case({"messages": [{"role": "user", "content": LONG}]}, server=SMALL),
    "ollama_model": Case({}, model="llama9", kept_model="llama3.2:3b"),
    "ollama_effort": Case({"reasoning_effort": "minimal"}, {"reasoning_effort": "none"}),
    "ollama_image": Case(
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/"}}]}]},
        {
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aa"}}]}
            ]
        },
    ),
    "ollama_ignored": Case({"options": {"num_ctx": 8192}}, {"max_tokens": 5}),
    "ollama_context": Case({"messages": [{"role": "user", "content": LONG}]}, server=SMALL),
    "ollama_context_refused": Case({"messages": [{"role": "user", "content": LONG}]}, server=SMALL),
    "llama_cpp_key": Case({}, broken_headers=WRONG_KEY, server={"key": RIGHT_KEY}),
    "llama_cpp_format": Case({"response_format": {"type": "grammar"}}, chat_format(OPEN)),
    "llama_cpp_context": Case({"messages": [{"role": "user", "content": LONG}]}, server=SMALL),
    "vllm_key": Case({}, broken_headers=WRONG_KEY, server={"key": RIGHT_KEY}),
    "vllm_model": Case({}, model="other", kept_model="Qwen/Qwen2.5-7B-Instruct"),
    "vllm_format": Case({"response_format": {"type": "grammar"}}, {"response_format": {"type": "json_object"}}),
    "vllm_format_name": Case(
        {"response_format": {"type": "json_schema", "json_schema": {"schema": OPEN}}}, chat_format(OPEN)
    ),
    "vllm_context": Case({"max_tokens": 300}, {"max_tokens": 290}, server=SMALL),
    "lm_studio_none_loaded": Case({}, server={"models": []}),
    "lm_studio_format": Case({"response_format": {"type": "json_object"}}, chat_format(OPEN)),
    "lm_studio_context": Case({"messages": [{"role": "user", "content": LONG}]}, server=SMALL),
    "lm_studio_context_empty": Case({"messages": [{"role": "user", "content": LONG}]}, server=SMALL),
}
RULES = {rule.name: rule for rule in read_tables()[2]}


def post(
    server: StrictProvider, path: str, body: dict[str, Any], headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    sent = {"authorization": f"Bearer {RIGHT_KEY}", "x-api-key": RIGHT_KEY, "x-goog-api-key": RIGHT_KEY}
    sent = {
        name: value for name, value in (sent | {"anthropic-version": "2023-06-01"} | (headers or {})).items() if value
    }
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
    connection.request("POST", path, json.dumps(body).encode(), sent)
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    return answer.status, content


def ask(
    server: StrictProvider, provider: str, changes: dict[str, Any], model: str = "", **more: Any
) -> tuple[int, Any]:
    model = model or MODELS[provider]
    if provider == "gemini":
        body: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Add."}]}]}
    else:
        body = {"model": model, "messages": [{"role": "user", "content": "Add."}]}
    if provider == "anthropic":
        body["max_tokens"] = 4096
    path = PATHS.get(provider, "/v1/chat/completions").format(model=model)
    return post(server, path, body | changes, **more)


def text_of(provider: str, content: Any) -> str:
    if provider == "gemini":
        return content["candidates"][0]["content"]["parts"][0]["text"]
    if provider == "anthropic":
        return "".join(block["text"] for block in content["content"])
    return content["choices"][0]["message"]["content"]


def test_each_rule_has_a_case_and_a_page() -> None:
    assert CASES.keys() == RULES.keys()
    assert {rule.check for rule in RULES.values()} == set(CHECKS)
    assert {rule.effect for rule in RULES.values()} == {"refuse", "advise", "truncate", "empty"}
    for rule in RULES.values():
        assert rule.source == "unknown" or "http" in rule.source or ".py" in rule.source, rule.name
        assert rule.says.endswith("."), rule.name
        assert rule.effect != "refuse" or rule.status >= 400, rule.name


def test_rules_of_unknown_source_are_off() -> None:
    unknown = {rule.name for rule in RULES.values() if rule.source == "unknown"}
    assert unknown
    for provider in MODELS:
        with StrictProvider(provider, TEXT) as server:
            assert not unknown & {rule.name for rule in server.rules}


@pytest.mark.parametrize("name", CASES)
def test_rule_refuses_what_breaks_it(name: str) -> None:
    rule, case = RULES[name], CASES[name]
    asked = () if rule.is_default else (name,)
    with StrictProvider(rule.provider, TEXT, rules=asked, **case.server) as server:
        status, content = ask(server, rule.provider, case.broken, case.model, headers=case.broken_headers)
        request = server.requests[0]
    if rule.effect == "refuse":
        assert (request.refused, status) == (rule, rule.status)
        assert "<" not in json.dumps(content)  # no placeholder is left
        assert "error" in content or content["object"] == "error"
    elif rule.effect == "advise":
        assert (request.advised, status) == ([rule], 200)
        assert text_of(rule.provider, content) == TEXT
    else:
        assert (request.truncated, status) == (rule, 200)
        assert text_of(rule.provider, content) == (TEXT if rule.effect == "truncate" else "")
        assert len(request.read_text) < len(request.text)


@pytest.mark.parametrize("name", CASES)
def test_rule_takes_what_keeps_it(name: str) -> None:
    rule, case = RULES[name], CASES[name]
    asked = () if rule.is_default else (name,)
    settings = case.server if name != "lm_studio_none_loaded" else {}
    with StrictProvider(rule.provider, TEXT, rules=asked, **settings) as server:
        status, content = ask(server, rule.provider, case.kept, case.kept_model or case.model)
        request = server.requests[0]
    assert (status, request.refused, request.truncated) == (200, None, None), content
    assert rule not in request.advised
    assert text_of(rule.provider, content) == TEXT


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.is_default])
def test_rule_that_is_off_refuses_nothing(name: str) -> None:
    rule, case = RULES[name], CASES[name]
    with StrictProvider(rule.provider, TEXT, without=[name], **case.server) as server:
        ask(server, rule.provider, case.broken, case.model, headers=case.broken_headers)
        request = server.requests[0]
    assert rule not in (request.refused, request.truncated, *request.advised)


def test_wrong_key_of_gemini_is_a_bad_argument() -> None:
    with StrictProvider("gemini", TEXT) as server:
        status, content = ask(server, "gemini", {}, headers=WRONG_KEY)
    assert (status, content["error"]["code"], content["error"]["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert content["error"]["details"][0]["reason"] == "API_KEY_INVALID"


def test_wrong_key_of_openai_is_repeated_in_part() -> None:
    with StrictProvider("openai", TEXT) as server:
        status, content = ask(server, "openai", {}, headers=WRONG_KEY)
    assert (status, content["error"]["code"], content["error"]["param"]) == (401, "invalid_api_key", None)
    assert "strict-w" in content["error"]["message"]
    assert "strict-wrong-key" not in content["error"]["message"]


def test_open_object_is_told_with_its_place() -> None:
    schema = {"type": "object", "properties": {"list": {"type": "array", "items": OPEN}}, "required": ["list"]}
    with StrictProvider("openai", TEXT) as server:
        _, content = ask(server, "openai", chat_format(schema | {"additionalProperties": False}))
    assert content["error"]["message"] == (
        "Invalid schema for response_format 'sum': In context=('properties', 'list', 'items'), "
        "'additionalProperties' is required to be supplied and to be false."
    )


def test_unknown_name_is_told_with_its_place() -> None:
    schema = OPEN | {"properties": {"a": {"type": "string"}, "list": {"type": "array", "items": CLOSED}}}
    with StrictProvider("gemini", TEXT) as server:
        _, content = ask(server, "gemini", google_schema("responseSchema", schema))
    place = "generation_config.response_schema.properties[1].value.items"
    assert f"\"additionalProperties\" at '{place}': Cannot find field." in content["error"]["message"]
    assert content["error"]["details"][0]["fieldViolations"][0]["field"] == place


def test_google_takes_both_spellings() -> None:
    with StrictProvider("gemini", TEXT) as server:
        status, _ = ask(server, "gemini", {"generation_config": {"thinking_config": {"thinking_level": "LOW"}}})
        assert (status, server.requests[0].refused) == (400, RULES["gemini_level_before_3"])


def test_mistral_repeats_the_forbidden_value() -> None:
    with StrictProvider("mistral", TEXT) as server:
        status, content = ask(server, "mistral", {"max_completion_tokens": 32_000})
    detail = content["message"]["detail"][0]
    assert (status, detail["loc"], detail["input"]) == (422, ["body", "max_completion_tokens"], 32_000)


def test_ollama_reads_the_end_and_says_nothing() -> None:
    prompt = "BEGINNING " + LONG + "THE END"
    with StrictProvider("ollama", lambda request: request.read_text[-7:], context=300) as server:
        status, content = ask(server, "ollama", {"messages": [{"role": "user", "content": prompt}]})
        request = server.requests[0]
    assert (status, text_of("ollama", content)) == (200, "THE END")
    assert content["usage"]["prompt_tokens"] == 4 + (300 - 4) // 2 < request.tokens
    assert "error" not in content


def test_window_is_set_on_the_own_protocol_only() -> None:
    body = {"model": "llama3.2:3b", "messages": [{"role": "user", "content": LONG}], "options": {"num_ctx": 4096}}
    body |= {"stream": False}
    with StrictProvider("ollama", TEXT, context=300) as server:
        status, content = post(server, "/api/chat", body)
        post(server, "/v1/chat/completions", body)
        assert (status, content["message"]["content"], content["done_reason"]) == (200, TEXT, "stop")
        assert [request.truncated for request in server.requests] == [None, RULES["ollama_context"]]
        assert post(server, "/api/chat", body | {"model": "other"}) == (404, {"error": "model 'other' not found"})


def test_context_too_small_tells_both_counts() -> None:
    long = {"messages": [{"role": "user", "content": LONG}]}
    with StrictProvider("llama_cpp", TEXT, context=300) as server:
        _, content = ask(server, "llama_cpp", long)
    assert (content["error"]["n_prompt_tokens"], content["error"]["n_ctx"]) == (len(LONG) // 4, 300)
    with StrictProvider("vllm", TEXT, context=300) as server:
        _, content = ask(server, "vllm", {"max_tokens": 300})
    assert "you requested 300 output tokens" in content["error"]["message"]
    assert "a total of at least 301 tokens" in content["error"]["message"]


@pytest.mark.parametrize(
    ("provider", "changes", "finish"),
    [
        ("gemini", config(maxOutputTokens=2), lambda content: content["candidates"][0]["finishReason"] == "MAX_TOKENS"),
        ("openai", {"max_tokens": 2}, lambda content: content["choices"][0]["finish_reason"] == "length"),
        ("anthropic", {"max_tokens": 2}, lambda content: content["stop_reason"] == "max_tokens"),
    ],
)
def test_answer_ends_at_the_limit(provider: str, changes: dict[str, Any], finish: Any) -> None:
    with StrictProvider(provider, TEXT) as server:
        status, content = ask(server, provider, changes)
    assert (status, text_of(provider, content)) == (200, TEXT[:8])
    assert finish(content)


def test_pictures_and_words_are_counted() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aa"}}
    content = [{"type": "text", "text": "Read this."}, image, image]
    with StrictProvider("openai", TEXT) as server:
        ask(
            server,
            "openai",
            {"messages": [{"role": "system", "content": "Add."}, {"role": "user", "content": content}]},
        )
        assert (server.requests[0].text, server.requests[0].images) == ("Add.\nRead this.", 2)


def test_models_are_listed() -> None:
    with StrictProvider("vllm", TEXT) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
        connection.request("GET", "/v1/models")
        listed = json.loads(connection.getresponse().read())
        connection.close()
    assert listed["data"] == [{"id": "Qwen/Qwen2.5-7B-Instruct", "object": "model", "max_model_len": 16384}]


def test_unheard_of_rule_is_an_error() -> None:
    with pytest.raises(ValueError, match="openai has no rules"):
        StrictProvider("openai", TEXT, rules=["gemini_key"])
