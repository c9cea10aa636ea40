"""Python's search for cycles, at rest while a large document is taken apart or put together."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_gc() -> Iterator[None]:
    """No search meanwhile: it takes most of the time that parsing a long document takes, and there is no cycle in one."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
