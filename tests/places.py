"""Where an output folder may lie."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from servers.postgresql import PostgreSQLServer

from evalkit.store import OutputFolder, OutputIndex, open_output_folder

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


def open_folder(root: Path | str, database_url: str | None = None) -> OutputFolder:
    """The output folder there, in the database that the test has set."""
    return open_output_folder(root, database_url or os.environ.get("EVALKIT_DATABASE"))


def open_index(root: Path | str, database_url: str | None = None) -> OutputIndex:
    """The index of the output folder there, in the database that the test has set."""
    return OutputIndex(open_folder(root, database_url))
