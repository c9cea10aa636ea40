from __future__ import annotations

import logging

import pytest

from evalkit.core.model_names import complete_model_name, describe_similar_names
from evalkit.settings import Settings


@pytest.mark.parametrize(
    ("written", "completed"),
    [
        ("gemini-2.5-flash", "gemini:gemini-2.5-flash"),
        ("models/gemini-3.8-flash", "gemini:models/gemini-3.8-flash"),
        ("gpt-5-mini", "openai:gpt-5-mini"),
        ("o4-mini", "openai:o4-mini"),
        ("claude-sonnet-5", "anthropic:claude-sonnet-5"),
        ("claude-unheard-9", "anthropic:claude-unheard-9"),
        # Several providers have these, so documents are not sent to any of them by a guess.
        ("gemma-3-27b-it", "gemma-3-27b-it"),
        ("llama3.2", "llama3.2"),
        ("qwen3:8b", "qwen3:8b"),
        ("mistral-large-latest", "mistral-large-latest"),
        ("gpt-oss:20b", "gpt-oss:20b"),
        # Nobody is known to have these.
        ("house-model", "house-model"),
        ("nobody:gpt-5", "nobody:gpt-5"),
        # Complete already.
        ("embedded", "embedded"),
        ("ollama:gemini-2.5-flash", "ollama:gemini-2.5-flash"),
    ],
)
def test_a_provider_is_added_if_only_one_can_be_meant(written: str, completed: str) -> None:
    assert complete_model_name(written) == completed


def test_the_addition_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    complete_model_name.cache_clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            settings = Settings.load(models={"default": "gpt-4.1-mini", "v4": "gpt-4.1-mini"})
    assert settings.models.all_model_names == {"openai:gpt-4.1-mini"}
    assert [record.message for record in caplog.records] == ["the model gpt-4.1-mini is taken for openai:gpt-4.1-mini"]


@pytest.mark.parametrize(
    ("written", "similar"),
    [
        ("llama3.2", "llamacpp:llama3.2, lmstudio:llama3.2, ollama:llama3.2, vllm:llama3.2, "),
        ("gemnii-2.5-flash", "gemini:gemini-2.5-flash, "),
        ("gemnii:gemini-2.5-pro", "gemini:gemini-2.5-pro, "),
        ("house-model", ""),
    ],
)
def test_similar_names_are_named(written: str, similar: str) -> None:
    assert describe_similar_names(written) == similar
