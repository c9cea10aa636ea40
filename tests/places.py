"""Where an output folder may lie."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest
from servers.postgresql import PostgreSQLServer

if TYPE_CHECKING:
    from servers.buckets import GcsServer, S3Server


def in_bucket(scheme: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An output folder of its own in that store, with the environment that it takes."""
    server: S3Server | GcsServer = request.getfixturevalue(scheme)
    database: PostgreSQLServer = request.getfixturevalue("postgresql")
    for name, value in {**server.environment, "EVALKIT_DATABASE": database.url}.items():
        monkeypatch.setenv(name, value)
    server.faults.end()
    return f"{scheme}://hospital/{secrets.token_hex(4)}/output"
