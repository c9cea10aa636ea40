"""Cache of functions' results by their arguments' identity, for one document.

For arguments that are costly to hash and never change, such as the pages of a document. Nothing is kept when the work
has ended, because pages are patient data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Results, with the arguments, which must live as long as their identities are keys. None: nothing is kept.
_RESULTS: ContextVar[dict[tuple[object, ...], tuple[Any, tuple[object, ...]]] | None] = ContextVar(
    "results by identity", default=None
)


@contextmanager
def keep_results() -> Iterator[None]:
    """Keep the results of ``cache_by_identity`` functions until the end of the block."""
    token = _RESULTS.set({})
    try:
        yield
    finally:
        _RESULTS.reset(token)


def cache_by_identity(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of positional arguments so that ``keep_results`` keeps it.

    >>> @cache_by_identity
    ... def copy_list(rows):
    ...     return list(rows)
    >>> rows = [1, 2]
    >>> with keep_results():
    ...     copy_list(rows) is copy_list(rows), copy_list([1, 2]) is copy_list(rows)
    (True, False)
    >>> copy_list(rows) is copy_list(rows)
    False
    """

    @wraps(function)
    def call(*arguments: P.args, **_no_keywords: P.kwargs) -> R:
        results = _RESULTS.get()
        if results is None:
            return function(*arguments)  # type: ignore[call-arg]
        key = (function, *map(id, arguments))
        if key not in results:
            results[key] = function(*arguments), arguments  # type: ignore[call-arg]
        result: R = results[key][0]
        return result

    return call
