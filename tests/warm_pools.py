"""Reading processes that outlive a run: the next run in the same place need not start its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from loky import ProcessPoolExecutor

from evalkit.pipeline.executor import reader_pool

_MAX_IDLE_POOLS = 3
"""Pools that wait for the next run: each holds memory."""

create_cold_pool = reader_pool.create_process_pool


class WarmPools:
    """Idle pools, each for runs with the same folder, environment and number of processes: a process inherits these."""

    def __init__(self) -> None:
        self._idle: list[tuple[tuple[object, ...], ProcessPoolExecutor]] = []

    def lend(self, worker_count: int) -> LentPool:
        """An idle pool where one fits, else a new one."""
        surroundings = _describe_surroundings(worker_count)
        for position, (idle_surroundings, pool) in enumerate(self._idle):
            if idle_surroundings == surroundings:
                del self._idle[position]
                return LentPool(self, surroundings, pool)
        return LentPool(self, surroundings, create_cold_pool(worker_count))

    def take_back(self, surroundings: tuple[object, ...], pool: ProcessPoolExecutor) -> None:
        self._idle.append((surroundings, pool))
        if len(self._idle) > _MAX_IDLE_POOLS:
            self._idle.pop(0)[1].shutdown(kill_workers=True)

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].shutdown(kill_workers=True)


class LentPool:
    """A pool for one run, which ends the run's processes unless all of them are sound and have nothing left to do."""

    def __init__(self, owner: WarmPools, surroundings: tuple[object, ...], pool: ProcessPoolExecutor) -> None:
        self._owner, self._surroundings, self._pool = owner, surroundings, pool
        self._unfinished: set[Future[Any]] = set()
        self._is_sound = True

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = self._pool.submit(function, *arguments)
        self._unfinished.add(future)
        future.add_done_callback(self._note_end)
        return future

    def _note_end(self, future: Future[Any]) -> None:
        self._unfinished.discard(future)
        if future.cancelled() or future.exception() is not None:
            self._is_sound = False

    @property
    def _processes(self) -> dict[int, Any]:
        return self._pool._processes

    def shutdown(self, *, wait: bool = True, kill_workers: bool = False) -> None:
        if self._is_sound and not self._unfinished and kill_workers:
            self._owner.take_back(self._surroundings, self._pool)
        else:
            self._pool.shutdown(wait=wait, kill_workers=kill_workers)


def _describe_surroundings(worker_count: int) -> tuple[object, ...]:
    variables = {name: text for name, text in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return worker_count, Path.cwd(), sorted(variables.items()), list(sys.path)


@contextmanager
def keep_pools_warm() -> Iterator[None]:
    """Meanwhile, what reads for runs in this process are lent pools."""
    pools = WarmPools()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader_pool, "create_process_pool", pools.lend)
        yield
    pools.close()
