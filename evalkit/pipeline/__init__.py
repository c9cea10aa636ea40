"""Runs over many documents: find and read files, decide on them, resume."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalkit.pipeline.api import aevaluate, arun, estimate, evaluate, extract, run
    from evalkit.pipeline.progress import show_progress_bar
    from evalkit.pipeline.run_summary import DocumentSummary, RunSummary

__all__ = [
    "DocumentSummary",
    "RunSummary",
    "aevaluate",
    "arun",
    "estimate",
    "evaluate",
    "extract",
    "run",
    "show_progress_bar",
]

_DEFINING_MODULE = {"DocumentSummary": "run_summary", "RunSummary": "run_summary", "show_progress_bar": "progress"}


def __getattr__(name: str) -> Any:
    # Imported on first use: a process that only reads documents starts in a third of the time without these modules.
    if name not in __all__:
        raise AttributeError(f"module 'evalkit.pipeline' has no attribute {name!r}")
    attribute = getattr(import_module(f"evalkit.pipeline.{_DEFINING_MODULE.get(name, 'api')}"), name)
    globals()[name] = attribute
    return attribute
