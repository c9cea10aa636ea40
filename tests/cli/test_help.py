"""The help: quick, whole in 80 columns, and about every command."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from commands import evalkit_command

from evalkit.cli import app


def walk_commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        yield (*path, name), command
        if hasattr(command, "commands"):
            yield from walk_commands(command, (*path, name))


COMMANDS = dict(walk_commands(typer.main.get_command(app)))


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, resource; sys.argv = ['evalkit', '--help']\n"
        "from evalkit.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'pymupdf', 'pandas', 'numpy', 'google', 'sqlalchemy', 'pydantic', 'PIL', 'rich'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "heavy: []" in shown
    for path in COMMANDS:
        assert len(path) > 1 or f"\n  {path[0]} " in shown


@pytest.mark.parametrize("words", [(), ("audit",), ("reviewers",)], ids=str)
def test_help_lists_every_command_with_its_whole_line(words: tuple[str, ...]) -> None:
    lines = evalkit_command(*words, "--help", COLUMNS="80").stdout.splitlines()
    assert not [line for line in lines if line.endswith("...") or len(line) > 80]
    for path, command in COMMANDS.items():
        if path[:-1] == words:
            assert any(line.split() == [path[-1], *first_line(command).split()] for line in lines), path


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_first_line_of_help_is_a_short_sentence(path: tuple[str, ...]) -> None:
    line = first_line(COMMANDS[path])
    assert len(line) <= 45
    assert line.endswith(".")


@pytest.mark.parametrize(
    "path", [path for path, command in COMMANDS.items() if not hasattr(command, "commands")], ids=" ".join
)
def test_help_of_a_command_has_an_example_and_explains_every_option(path: tuple[str, ...]) -> None:
    shown = evalkit_command(*path, "--help", COLUMNS="80")
    assert shown.returncode == 0
    assert f"evalkit {' '.join(path)}" in shown.stdout.split("Example: ")[1]
    assert not [line for line in shown.stdout.splitlines() if len(line) > 80]
    for parameter in COMMANDS[path].params:
        assert (parameter.help or "").rstrip().endswith("."), parameter.name


def first_line(command: Any) -> str:
    return inspect.cleandoc(command.help).split("\n")[0]
