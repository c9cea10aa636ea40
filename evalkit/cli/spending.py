"""Question for a spending limit on the first use of a paid model."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from evalkit.cli.terminal import print_notes
from evalkit.errors import UsageError

if TYPE_CHECKING:
    from evalkit.pipeline.run_estimate import RunEstimate

T = TypeVar("T")

_SETTINGS_FILE = Path("evalkit.toml")


def run_within_budget(
    run: Callable[[Decimal | float | None], T],
    usd_per_run: float | None,
    estimate: Callable[[], RunEstimate] | None = None,
) -> T:
    """Run; if a paid model has no spending limit, ask for a limit and run again.

    Without a terminal the UsageError remains, which names the option and the settings. ``estimate`` gives the suggested
    limit.
    """
    from evalkit.pipeline.model_session import NO_LIMIT_CODE

    try:
        return run(usd_per_run)
    except UsageError as error:
        if error.code != NO_LIMIT_CODE or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        print_notes(f"{error.message}.")
    suggestion = None
    if estimate:
        print_notes("Estimating: every document is read, no model is asked.")
        run_estimate = estimate()
        suggestion = run_estimate.suggest_usd_limit()
        print_notes(f"Estimate: {run_estimate.usage.calls} calls, {run_estimate.format_cost()}, without reasoning.")
    limit = typer.prompt(
        "Highest cost of one run in US dollars (0: no limit)", default=suggestion, type=Decimal, err=True
    )
    _store_limit(limit)
    return run(limit)


def _store_limit(limit: Decimal) -> None:
    """Add the limit to this folder's evalkit.toml, unless it has a section for limits."""
    text = _SETTINGS_FILE.read_text("utf-8") if _SETTINGS_FILE.exists() else ""
    if "limits" in tomllib.loads(text):
        print_notes(f"To keep this limit, write usd_per_run = {limit} into the section [limits] of {_SETTINGS_FILE}.")
        return
    with _SETTINGS_FILE.open("a", encoding="utf-8") as file:
        file.write("\n" * bool(text) + f"[limits]\nusd_per_run = {limit}\n")
    print_notes(f"Kept in {_SETTINGS_FILE.absolute()}: usd_per_run = {limit}")
