"""A progress bar, for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalkit.batch.runner import DocumentSummary, Progress


@contextmanager
def progress_bar(*, stderr: bool = False) -> Iterator[Progress]:
    """What ``run(on_progress=…)`` takes; the bar stands while the context is open."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=stderr)) as bar:
        task = bar.add_task("Documents", total=None)

        def advance(summary: DocumentSummary, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, description=summary.doc_id[:30])

        yield advance
