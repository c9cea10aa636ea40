"""Progress bar of a run, in a terminal or in a notebook."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal

from evalkit.pipeline.batch_execution import ProcessedDocument


@contextmanager
def show_progress_bar(*, stderr: bool = False) -> Iterator[Callable[[ProcessedDocument, int, int], None]]:
    """Show a progress bar in this context; yield the callback for ``on_progress``.

    The bar shows documents done, time left (in the end: time taken), and the calls, tokens and dollars of language
    models so far.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[time_label]}"),
        TextColumn("{task.fields[spent]}"),
    )
    with Progress(*columns, console=Console(stderr=stderr)) as bar:
        task = bar.add_task("Documents", total=None, spent="", time_label="left")
        calls, tokens, cost = 0, 0, Decimal(0)

        def advance(summary: ProcessedDocument, done_count: int, total_count: int) -> None:
            nonlocal calls, tokens, cost
            calls, tokens = calls + summary.calls, tokens + summary.tokens
            cost += Decimal(summary.cost_usd or "NaN")  # with an unknown price the sum is unknown
            price = "price unknown" if cost.is_nan() else f"${cost:.2f}"
            spent = f"{calls} calls, {tokens:,} tokens, {price}" if tokens else ""
            bar.update(task, completed=done_count, total=total_count, description=summary.doc_id[:30], spent=spent)

        try:
            yield advance
        finally:
            bar.update(task, description="Documents", time_label="")
            bar.refresh()  # in a notebook rich leaves out the last update
