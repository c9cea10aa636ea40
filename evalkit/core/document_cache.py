"""Caches of function results for one document, emptied when it is done.

``cache_by_identity`` is for arguments that are costly to hash and never change, such as the pages of a document,
``cache_document_text`` for texts and words. Both are patient data: whoever has finished a document, or closes it,
calls ``forget_document_texts``.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Results, with the arguments, which must live as long as their identities are keys. None: nothing is kept.
_RESULTS: ContextVar[dict[tuple[object, ...], tuple[Any, tuple[object, ...]]] | None] = ContextVar(
    "results by identity", default=None
)

_CACHE_CLEARERS: list[Callable[[], None]] = [re.purge]


def cache_document_text(max_count: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function of texts to cache its results until the document ends."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(max_count)(function)
        _CACHE_CLEARERS.append(cached.cache_clear)
        return cached  # type: ignore[return-value]  # keywords and positions stay as they are

    return decorate


def forget_document_texts() -> None:
    """Empty all caches of document texts and of patterns built from them."""
    for clear in _CACHE_CLEARERS:
        clear()
    if "regex" in sys.modules:
        sys.modules["regex"].purge()


@contextmanager
def keep_results() -> Iterator[None]:
    """Keep results of ``cache_by_identity`` functions until the block ends.

    Then all texts of documents are forgotten.
    """
    token = _RESULTS.set({})
    try:
        yield
    finally:
        _RESULTS.reset(token)
        forget_document_texts()


def cache_by_identity(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that ``keep_results`` caches it by its arguments' ids.

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
