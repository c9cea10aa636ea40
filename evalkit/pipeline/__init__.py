"""Many documents: which they are, what becomes of each, and how a run is resumed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalkit.pipeline.progress import show_progress_bar
    from evalkit.pipeline.run_summary import DocumentSummary, RunSummary
    from evalkit.pipeline.runner import aevaluate, arun, evaluate, run

__all__ = ["DocumentSummary", "RunSummary", "aevaluate", "arun", "evaluate", "run", "show_progress_bar"]

_DEFINING_MODULE = {"DocumentSummary": "run_summary", "RunSummary": "run_summary", "show_progress_bar": "progress"}


def __getattr__(name: str) -> Any:
    # A process that reads needs this package for `reading` alone: without the rest it starts in a third of the time.
    if name not in __all__:
        raise AttributeError(f"module 'evalkit.pipeline' has no attribute {name!r}")
    attribute = getattr(import_module(f"evalkit.pipeline.{_DEFINING_MODULE.get(name, 'runner')}"), name)
    globals()[name] = attribute
    return attribute
