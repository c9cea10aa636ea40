"""Output to the terminal: results on standard output, notes on standard error."""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import typer

#: Width of a table in characters if standard output is not a terminal.
_PIPE_WIDTH = 160


class ConsoleTable(NamedTuple):
    """A table to print: the names of its columns, and rows of cells as text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


#: A text of one or more lines, or a table.
Printable = str | ConsoleTable


def print_outcome(blocks: Iterable[Printable], build_json: Callable[[], Any], *, as_json: bool) -> None:
    """Print the result as JSON if ``as_json``, otherwise as texts and tables."""
    if as_json:
        print_json(build_json())
    else:
        print_blocks(*blocks)


def print_blocks(*blocks: Printable) -> None:
    """Print texts and tables; replace control characters, which documents may contain."""
    for block in blocks:
        if isinstance(block, ConsoleTable):
            _print_table(block)
        else:
            typer.echo("\n".join(map(_replace_control_characters, block.split("\n"))))


def print_json(content: Any) -> None:
    """Print the content as indented JSON; escape file names that are not text."""
    text = json.dumps(content, ensure_ascii=False, indent=2)
    # Python keeps bytes of a file name that are not text as lone surrogates; they are written as \udcff.
    typer.echo(text.encode("utf-8", "backslashreplace").decode())


def print_notes(*lines: str) -> None:
    """Print lines on standard error; ignore write errors, replace control characters."""
    for line in lines:
        with suppress(OSError):
            typer.echo(_replace_control_characters(line), err=True)


def is_no_chain_problem(record: logging.LogRecord) -> bool:
    """Return False for log records about the hash chain, which are printed later."""
    return record.name != "evalkit.store.change_chain"


def pop_chain_problems() -> list[str]:
    """Return, once, what could not be recorded in the hash chains of changes."""
    if "evalkit.store.change_chain" not in sys.modules:  # loading it would take longer than some commands
        return []
    from evalkit.store.change_chain import open_problems

    return [open_problems.pop(writer) for writer in [*open_problems]]


def redirect_closed_streams_to_null() -> None:
    """Connect standard streams that were closed at the start to the null device.

    Otherwise the next opened file would get their descriptors, and the processes that read PDFs could not start.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # Python had found it closed
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))


def discard_pending_output() -> None:
    """Discard output that could not be written, so that Python does not retry at exit."""
    null_descriptor = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(null_descriptor, descriptor)


def _print_table(table: ConsoleTable) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rich_table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        rich_table.add_column(column, overflow="fold")
    for row in table.rows:
        rich_table.add_row(*(Text(_replace_control_characters(cell)) for cell in row))  # file names are not markup
    console = Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    console.print(rich_table)


def _replace_control_characters(text: str) -> str:
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
