"""Progress bar of a run, in a terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalkit.pipeline.run_summary import DocumentSummary, RunProgressCallback


@contextmanager
def show_progress_bar(*, stderr: bool = False) -> Iterator[RunProgressCallback]:
    """Show a progress bar in this context; yield the callback for ``on_progress``.

    The bar shows documents done, time left, and the calls, tokens and dollars of language models so far.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[spent]}"),
    )
    with Progress(*columns, console=Console(stderr=stderr)) as bar:
        task = bar.add_task("Documents", total=None, spent="")
        calls, tokens, cost = 0, 0, Decimal(0)

        def advance(summary: DocumentSummary, done_count: int, total_count: int) -> None:
            nonlocal calls, tokens, cost
            calls, tokens = calls + summary.calls, tokens + summary.tokens
            cost += Decimal(summary.cost_usd or "NaN")  # with an unknown price the sum is unknown
            price = "price unknown" if cost.is_nan() else f"${cost:.2f}"
            spent = f"{calls} calls, {tokens:,} tokens, {price}" if tokens else ""
            bar.update(task, completed=done_count, total=total_count, description=summary.doc_id[:30], spent=spent)

        yield advance
