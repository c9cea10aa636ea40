"""The models of a run: which roles they have, and what is said about it."""

from __future__ import annotations

import logging

import pytest

from evalkit.pipeline import model_session
from evalkit.pipeline.model_session import ModelSession
from evalkit.settings import Settings

ONE, OTHER = "openai:one", "ollama:other"


@pytest.mark.parametrize(
    ("models", "profile", "is_warned"),
    [
        ({"default": ONE}, "full", True),
        ({"default": ONE}, "lean", True),
        ({"default": ONE, "v2": OTHER, "v3": OTHER, "v4": OTHER}, "full", False),
        ({"default": ONE, "v2": OTHER, "v3": OTHER}, "full", True),
        ({"default": ONE, "v2": OTHER, "v3": OTHER, "v4": OTHER}, "lean", True),
        ({"default": ONE, "verifier": OTHER}, "lean", False),
        ({"default": OTHER, "classifier": ONE}, "full", False),
        ({"default": "embedded"}, "full", False),
    ],
)
def test_a_model_that_checks_itself_is_warned_of_once(
    models: dict[str, str],
    profile: str,
    is_warned: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    model_session._warn_of_model_that_checks_itself.cache_clear()
    settings = Settings(models=models, profile=profile)
    with caplog.at_level(logging.WARNING, logger="evalkit"):
        for _ in range(2):
            ModelSession(settings)
        ModelSession(settings, for_template_review=True)
    warned = [record.getMessage() for record in caplog.records if "classifies and verifies" in record.getMessage()]
    assert len(warned) == is_warned
    assert all(line.startswith(f"{ONE} classifies") for line in warned)
