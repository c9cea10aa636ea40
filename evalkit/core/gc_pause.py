"""Pause of the cyclic garbage collector while large documents are parsed."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_gc() -> Iterator[None]:
    """Pause the garbage collector in this context, so that large files parse faster.

    The collector would take most of the time of parsing, and finds no cycles there.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
