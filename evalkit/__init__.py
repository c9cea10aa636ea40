"""evalkit: checks if an AI's reading of clinical documents can be trusted.

Public names are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalkit.documents import DocumentBundle
    from evalkit.errors import EvalkitError
    from evalkit.issue import Issue, IssueSeverity
    from evalkit.pipeline import DocumentSummary, RunSummary, aevaluate, arun, evaluate, run
    from evalkit.review import SMEReviewHelper, view
    from widgets.explorer import explore

__all__ = [
    "DocumentBundle",
    "DocumentSummary",
    "EvalkitError",
    "Issue",
    "IssueSeverity",
    "RunSummary",
    "SMEReviewHelper",
    "aevaluate",
    "arun",
    "evaluate",
    "explore",
    "run",
    "view",
]

_DEFINING_MODULE = {
    "DocumentBundle": "evalkit.documents",
    "EvalkitError": "evalkit.errors",
    "Issue": "evalkit.issue",
    "IssueSeverity": "evalkit.issue",
    "SMEReviewHelper": "evalkit.review",
    "explore": "widgets.explorer",
    "view": "evalkit.review",
}


def __getattr__(name: str) -> Any:
    # `evalkit --help` must not load PyMuPDF, pandas or a database, so each name is imported only when it is used.
    if name not in __all__:
        raise AttributeError(f"module 'evalkit' has no attribute {name!r}")
    value = getattr(import_module(_DEFINING_MODULE.get(name, "evalkit.pipeline")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
