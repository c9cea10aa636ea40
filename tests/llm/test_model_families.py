from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.llm.model import Request
from evalkit.llm.model_families import ModelFacts, estimate_input_tokens, find_model_facts, load_model_family_table
from evalkit.llm.request_options import RequestFitter, build_prompt

TABLE = load_model_family_table()
FACTS = tuple(ModelFacts.model_fields)
EXAMPLES = [(row, provider) for row in TABLE.families if row.example is not None for provider in row.providers]
SCHEMA = {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]}


# The table -----------------------------------------------------------------------------------------------------------


def test_every_fact_names_a_page_of_the_table() -> None:
    named = {fact.source for row in TABLE.families for name in FACTS if (fact := getattr(row, name)) is not None}
    named |= {provider.address.source for provider in TABLE.providers.values() if provider.address}
    assert named == set(TABLE.sources)


@pytest.mark.parametrize("name", TABLE.sources)
def test_pages_have_an_address_and_a_date_that_has_passed(name: str) -> None:
    assert TABLE.sources[name].address.startswith("https://")
    assert date(2024, 1, 1) < TABLE.sources[name].as_of < date(2026, 12, 31)


def test_rows_are_about_providers_of_the_table_and_not_repeated() -> None:
    assert {provider for row in TABLE.families for provider in row.providers} == set(TABLE.providers)
    assert len({row.name for row in TABLE.families}) == len(TABLE.families)


@pytest.mark.parametrize(("row", "provider"), EXAMPLES, ids=lambda value: getattr(value, "name", value))
def test_examples_get_the_facts_of_their_own_row(row, provider) -> None:
    assert re.match(row.models, row.example)
    facts = find_model_facts(f"{provider}:{row.example}")
    stated = {name for name in FACTS if getattr(row, name) is not None}
    overridden = {name for name in stated if getattr(facts, name) != getattr(row, name)}
    assert overridden <= {"temperature", "answers", "thinking"} if row.name.endswith("(all)") else not overridden


@pytest.mark.parametrize("provider", TABLE.providers)
def test_no_row_hides_behind_an_earlier_one(provider: str) -> None:
    rows = [row for row in TABLE.families if provider in row.providers]
    for number, row in enumerate(rows):
        for earlier in rows[:number]:
            shared = [name for name in FACTS if getattr(row, name) and getattr(earlier, name)]
            hidden = row.example and re.match(earlier.models, row.example) and shared
            assert not hidden or row.name.endswith("(all)"), (earlier.name, row.name, shared)


@pytest.mark.parametrize("row", TABLE.families, ids=lambda row: row.name)
def test_modes_of_answers_are_in_order_without_repetition(row) -> None:
    modes = row.answers.value if row.answers else ("prompt",)
    order = ["schema", "json", "prompt"]
    assert [order.index(mode) for mode in modes] == sorted({order.index(mode) for mode in modes})


# What is unknown stays harmless ----------------------------------------------------------------------------------------


@given(st.sets(st.sampled_from(FACTS)))
def test_what_no_page_states_is_not_sent(unknown: set[str]) -> None:
    known = find_model_facts("openai:o4-mini").model_copy(
        update={
            "temperature": find_model_facts("vllm:m").temperature,
            "logprobs": find_model_facts("vllm:m").logprobs,
            "safety": find_model_facts("gemini:gemini-9").safety,
        }
    )
    facts = known.model_copy(update=dict.fromkeys(unknown))
    options = RequestFitter("openai:o4-mini", facts).options
    assert options.has_temperature is ("temperature" not in unknown)
    assert options.has_probabilities is ("logprobs" not in unknown)
    assert options.has_thinking is ("thinking" not in unknown)
    assert options.answer_modes == (("prompt",) if "answers" in unknown else facts.answers.value)
    assert facts.has_vision is (None if "images" in unknown else True)
    assert (facts.limit_output_tokens(None) is None) is ("output" in unknown)
    assert (facts.context_tokens is None) is ("context" in unknown)
    assert facts.list_values().keys().isdisjoint(unknown)


@pytest.mark.parametrize("name", ["gemini:unheard-of", "nobody:x", "embedded", ""])
def test_nothing_is_known_about_unheard_models(name: str) -> None:
    assert find_model_facts(name).list_values() == {}
    assert find_model_facts(name).compute_window_characters() == 400_000


@given(st.integers(1_024, 4_000_000))
def test_a_window_and_its_instructions_fit_into_the_context(context_tokens: int) -> None:
    facts = find_model_facts("ollama:llama3.2", context_tokens)
    window = facts.compute_window_characters()
    free_tokens = context_tokens - estimate_input_tokens("x" * window, "", {}, ())
    assert window >= context_tokens or context_tokens > 200_000
    assert free_tokens >= min(32_000, context_tokens // 2)
    RequestFitter("ollama:llama3.2", facts).require_readable(Request("x" * window, SCHEMA, 5))


def test_own_servers_have_the_context_that_is_set_and_services_do_not() -> None:
    assert find_model_facts("ollama:llama3.2").context_tokens == 4_096
    assert find_model_facts("ollama:gpt-oss-120b-cloud").context_tokens is None
    assert find_model_facts("ollama:llama3.2", 65_536).context_tokens == 65_536
    assert find_model_facts("gemini:gemini-2.5-flash", 65_536).context_tokens == 1_048_576


@pytest.mark.parametrize(("wanted", "sent"), [(None, 16_384), (20_000, 20_000), (500_000, 100_000)])
def test_the_output_limit_never_exceeds_the_models(wanted: int | None, sent: int) -> None:
    assert find_model_facts("openai:o4-mini").limit_output_tokens(wanted) == sent


def test_a_small_output_limit_is_the_models_own() -> None:
    assert find_model_facts("anthropic:claude-3-haiku").limit_output_tokens(None) == 4_096


def test_prompt_mode_ends_with_the_schema_and_schema_mode_has_none() -> None:
    request = Request("Which page?", SCHEMA, 5, system_instruction="Judge.")
    options = RequestFitter("openai:o4-mini", find_model_facts("openai:o4-mini")).options
    assert build_prompt(request, options) == "Which page?"
    plain = build_prompt(request, options._replace(answer_modes=("prompt",)))
    assert plain.startswith("Which page?\n")
    assert plain.rstrip().endswith('{"properties":{"page":{"type":"integer"}},"required":["page"],"type":"object"}')
    assert "Judge." in build_prompt(request, options._replace(has_system_instruction=False))
