"""What the README says to type for many machines is what the programs take; `make stress` types all of it."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer
from distributed.cli import dask_scheduler, dask_worker
from pipeline.operations import SETUP, TWO_COMMANDS
from places import open_folder

from evalkit.cli import app
from evalkit.pipeline.executor.dask import parse_scheduler_address
from evalkit.settings import Settings
from evalkit.store import resolve_postgresql_url


def test_the_two_commands_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, run = TWO_COMMANDS
    said = dict(word.split("=", 1) for word in shlex.split(settings.removeprefix("export ")))
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    program, name, *words = shlex.split(run)
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    options = command.make_context(name, words).params
    given = Settings.load(executor=options["executor"])
    assert (program, name) == (".venv/bin/evalkit", "run")
    assert set(said.values()) == {given.output, given.database}
    assert resolve_postgresql_url(open_folder(given.output)) == given.database
    assert parse_scheduler_address(given.executor).startswith("tcp://")


def test_documented_cluster_commands_are_valid_and_bind_locally() -> None:
    install, database, scheduler, worker = (shlex.split(command) for command in SETUP)
    extras = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"\w+", install[-1])) == {"dask", "postgresql", "s3"} <= extras.keys()
    assert (database[0], database[4]) == ("createuser", "createdb")
    for words, program in ((scheduler, dask_scheduler), (worker, dask_worker)):
        assert words[:2] == [".venv/bin/dask", program.__name__.rpartition("_")[2]]
        given = program.main.make_context(words[1], words[2:]).params
        assert given["host"].startswith("10.")
        assert given["dashboard_address"].startswith("127.0.0.1:")
    assert given["scheduler"] == parse_scheduler_address(f"dask://{scheduler[scheduler.index('--host') + 1]}:8786")
    assert given["memory_limit"] == "0"
