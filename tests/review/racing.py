"""Several calls at one moment."""

import threading
from collections.abc import Callable
from typing import Any

from evalkit.errors import EvalkitError


def together(*calls: Callable[[], Any]) -> list[Any]:
    """What each call gave or raised, all begun at one moment in threads of their own."""
    barrier = threading.Barrier(len(calls))
    outcomes: list[Any] = [None] * len(calls)

    def run(place: int) -> None:
        barrier.wait()
        try:
            outcomes[place] = calls[place]()
        except EvalkitError as error:
            outcomes[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
