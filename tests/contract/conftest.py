"""The surface is that of a user's environment, without the limit that the other tests have."""

import pytest


@pytest.fixture(autouse=True)
def _no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALKIT_LIMITS__CALLS_PER_RUN")
