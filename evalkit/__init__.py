"""evalkit: checks if an AI's reading of clinical documents can be trusted.

Public names are imported on first use.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalkit.documents import DocumentBundle
    from evalkit.errors import EvalkitError
    from evalkit.evaluation import export_ground_truth as export
    from evalkit.evaluation import load_ground_truth
    from evalkit.evaluation.api import compare, report
    from evalkit.evaluation.challenge import challenge
    from evalkit.issue import Issue, IssueSeverity
    from evalkit.notebook_tables import show
    from evalkit.pipeline import (
        DocumentSummary,
        RunSummary,
        aevaluate,
        arun,
        estimate,
        evaluate,
        extract,
        run,
        show_progress_bar,
    )
    from evalkit.review import SMEReviewHelper, view
    from evalkit.settings import Settings
    from widgets.explorer import explore

    __version__: str

__all__ = [
    "DocumentBundle",
    "DocumentSummary",
    "EvalkitError",
    "Issue",
    "IssueSeverity",
    "RunSummary",
    "SMEReviewHelper",
    "Settings",
    "aevaluate",
    "arun",
    "challenge",
    "compare",
    "estimate",
    "evaluate",
    "explore",
    "export",
    "extract",
    "load_ground_truth",
    "report",
    "run",
    "show",
    "show_progress_bar",
    "view",
]

_DEFINING_MODULE = {
    "DocumentBundle": "evalkit.documents",
    "EvalkitError": "evalkit.errors",
    "Issue": "evalkit.issue",
    "IssueSeverity": "evalkit.issue",
    "SMEReviewHelper": "evalkit.review",
    "Settings": "evalkit.settings",
    "challenge": "evalkit.evaluation.challenge",
    "compare": "evalkit.evaluation.api",
    "export": "evalkit.evaluation",
    "explore": "widgets.explorer",
    "load_ground_truth": "evalkit.evaluation",
    "report": "evalkit.evaluation.api",
    "show": "evalkit.notebook_tables",
    "view": "evalkit.review",
}
#: Names that their module calls otherwise.
_NAME_IN_MODULE = {"export": "export_ground_truth"}


def __getattr__(name: str) -> Any:
    # `evalkit --help` must not load PyMuPDF, pandas or a database, so each name is imported only when it is used.
    if name == "__version__":
        return version("evalkit")
    if name not in __all__:
        raise AttributeError(f"module 'evalkit' has no attribute {name!r}")
    module = import_module(_DEFINING_MODULE.get(name, "evalkit.pipeline"))
    value = getattr(module, _NAME_IN_MODULE.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
