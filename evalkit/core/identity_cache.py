"""Cache of a function's results by the identity of its arguments.

For arguments that are costly to hash and never change, such as the pages of a document.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


class _Identity(Generic[T]):
    """Wrapper that is equal only to a wrapper of the same object."""

    def __init__(self, wrapped: T) -> None:
        self.wrapped = wrapped

    def __hash__(self) -> int:
        return id(self.wrapped)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.wrapped is other.wrapped


def cache_by_identity(max_size: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function of positional arguments to keep its last results.

    >>> @cache_by_identity(max_size=2)
    ... def copy_list(rows):
    ...     return list(rows)
    >>> rows = [1, 2]
    >>> copy_list(rows) is copy_list(rows), copy_list([1, 2]) is copy_list(rows)
    (True, False)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @lru_cache(max_size)
        def call_with_wrapped(*identities: _Identity[object]) -> R:
            return function(*(identity.wrapped for identity in identities))  # type: ignore[arg-type, call-arg]

        @wraps(function)
        def call(*arguments: P.args, **_no_keywords: P.kwargs) -> R:
            return call_with_wrapped(*map(_Identity, arguments))

        return call

    return decorate
