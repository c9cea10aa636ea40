"""Printing: text, tables, JSON, and one-line notes on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import typer

_PIPE_WIDTH = 160
"""Characters of a table's line in a pipe, which has no width of its own."""


class ConsoleTable(NamedTuple):
    """Rows of text under the names of their columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


Printable = str | ConsoleTable
"""A text of one or more lines, or a table."""


def print_outcome(blocks: Iterable[Printable], build_json: Callable[[], Any], *, as_json: bool) -> None:
    """Print the blocks, or only the JSON if it is requested."""
    if as_json:
        print_json(build_json())
    else:
        print_blocks(*blocks)


def print_blocks(*blocks: Printable) -> None:
    """Print texts and tables, without control characters of documents and file names."""
    for block in blocks:
        if isinstance(block, ConsoleTable):
            _print_table(block)
        else:
            typer.echo("\n".join(map(_replace_control_characters, block.split("\n"))))


def print_json(content: Any) -> None:
    """Print indented JSON."""
    text = json.dumps(content, ensure_ascii=False, indent=2)
    # A file name may have bytes that are no text; Python has them as halves of characters, which JSON writes as \udcff.
    typer.echo(text.encode("utf-8", "backslashreplace").decode())


def print_notes(*lines: str) -> None:
    """Print lines on standard error, if it can be written, without control characters."""
    for line in lines:
        with suppress(OSError):
            typer.echo(_replace_control_characters(line), err=True)


def redirect_closed_streams_to_null() -> None:
    """Open closed standard streams on the null device.

    A file that is opened later would otherwise take their descriptors, and reading processes could not start.
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
    """Discard buffered output: Python would try to write it again when it ends."""
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
