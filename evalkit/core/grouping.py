"""Functions that split sequences into groups and runs."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


def group_pairs(pairs: Iterable[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """Map each key to the list of its values, both in their original order.

    >>> group_pairs([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[_Key, list[_Item]] = defaultdict(list)
    for key, item in pairs:
        groups[key].append(item)
    return dict(groups)


def group_by(items: Iterable[_Item], get_key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """Map each key that ``get_key`` returns to the list of its items, in order."""
    return group_pairs((get_key(item), item) for item in items)


def split_into_runs(items: Iterable[_Item], is_continuation: Callable[[list[_Item], _Item], bool]) -> list[list[_Item]]:
    """Split a sequence into runs of neighbours that belong together.

    ``is_continuation(run, item)`` returns True if the item continues the run, and False if it starts a new one.

    >>> split_into_runs([1, 2, 3, 7, 8], lambda run, number: number == run[-1] + 1)
    [[1, 2, 3], [7, 8]]
    """
    runs: list[list[_Item]] = []
    for item in items:
        if runs and is_continuation(runs[-1], item):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs
