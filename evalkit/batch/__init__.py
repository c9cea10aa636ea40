"""Many documents: which they are, what becomes of each, and how a run is resumed."""

from evalkit.batch.progress import progress_bar
from evalkit.batch.runner import DocumentSummary, RunSummary, aevaluate, arun, evaluate, run

__all__ = ["DocumentSummary", "RunSummary", "aevaluate", "arun", "evaluate", "progress_bar", "run"]
