"""What a result's fingerprint says about models, and how much of a document they are asked about at once."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.pipeline.fingerprint import describe_models, find_window_characters
from evalkit.settings import Settings

SMALL, LARGE = "openai:gpt-4", "gemini:gemini-2.5-flash"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 400_000),
        ({"models": {"default": LARGE}}, 504_000),
        ({"models": {"default": LARGE, "v4": SMALL}}, 12_288),
        ({"models": {"default": LARGE}, "reliability_loop": {"ensemble": [LARGE, SMALL]}}, 12_288),
        ({"models": {"default": "ollama:house"}}, 6_144),
        ({"models": {"default": "ollama:house"}, "context_tokens": 64_000}, 96_000),
        ({"models": {"default": SMALL}, "window_characters": 9_000}, 9_000),
    ],
)
def test_window_fits_every_model_in_use(settings: dict[str, Any], expected: int) -> None:
    assert find_window_characters(Settings.model_validate(settings)) == expected


def test_fingerprint_follows_facts_and_servers() -> None:
    def describe(**settings: Any) -> dict[str, Any]:
        return describe_models(Settings.model_validate({"models": {"default": "ollama:house", "v4": LARGE}} | settings))

    assert describe() == describe()
    assert describe()["own_servers"] == [None, None]
    assert describe(ollama_base_url="http://10.0.0.4:11434/v1")["own_servers"][1] == "http://10.0.0.4:11434/v1"
    assert describe(context_tokens=64_000)["model_facts"] != describe()["model_facts"]
    assert describe(mistral_base_url="http://10.0.0.4/v1") == describe()
