"""Reading PDFs in processes of their own: MuPDF is not thread-safe, and a file that kills it must not end the run."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from loky import ProcessPoolExecutor
from loky.process_executor import BrokenProcessPool

from evalkit.batch.confinement import confined
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.ingest import read, reader_with
from evalkit.errors import DocumentError

if TYPE_CHECKING:
    from evalkit.documents.documentai import DocumentAi
    from evalkit.documents.ocr import EngineName
    from evalkit.documents.scanned import Recogniser

_WATCH = 2
"""Seconds between looks at whether the run still lives."""
_MEMORY = "READER-MEMORY"


class How(NamedTuple):
    """What reads, and how long it may take."""

    longest: int
    """Seconds for one file, or until its next page is recognised or its next portion sent."""
    ocr: EngineName = "none"
    """What recognises pages that are pictures."""
    ocr_seconds: int = 30
    """Seconds that recognising one page once may take."""
    documentai: DocumentAi | None = None
    """What reads instead of this machine."""
    memory_mb: int = 0
    """Megabytes of address space that reading one file may take; 0: as much as there is."""

    @property
    def reader(self) -> str:
        """Name and version, as bundles carry them."""
        return reader_with(self.ocr, self.documentai)


class Readers:
    """A pool of reading processes; they end with it, and with the run if that is killed."""

    def __init__(self, workers: int, how: How) -> None:
        """``workers`` processes."""
        self._workers = workers
        self._how = how
        self._pool = _pool(workers)

    async def read(self, path: Path, *, doc_id: str, timestamp: str) -> DocumentBundle:
        """The bundle of a PDF. DocumentError, also where the file ends the process that reads it."""
        pool = self._pool
        try:
            return await self._read_in(pool, path, doc_id, timestamp)
        except BrokenProcessPool:
            if self._pool is pool:
                self._pool = _pool(self._workers)
            # All files that were being read fail together; read alone, only the guilty one fails again.
            return await self._read_alone(path, doc_id, timestamp)
        except DocumentError as error:
            if error.code != _MEMORY:
                raise
            if self._pool is pool:
                self._pool = _pool(self._workers)
                pool.shutdown(wait=False)  # what it is reading it reads to the end
            # What files before it left in the process is not this one's fault; and the next must not suffer from this one.
            return await self._read_alone(path, doc_id, timestamp)

    async def _read_alone(self, path: Path, doc_id: str, timestamp: str) -> DocumentBundle:
        with _pool(1) as pool:
            try:
                return await self._read_in(pool, path, doc_id, timestamp)
            except BrokenProcessPool as error:
                raise DocumentError(
                    f"{path.name} ended the process that read it, or took longer than {self._how.longest} s",
                    code="READER-CRASHED",
                    remedy="Print it to a new PDF and run that one.",
                ) from error

    async def _read_in(self, pool: ProcessPoolExecutor, path: Path, doc_id: str, timestamp: str) -> DocumentBundle:
        work = pool.submit(_read_within, self._how, path, doc_id, timestamp)
        bundle: DocumentBundle = await asyncio.wrap_future(work)
        return bundle

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(kill_workers=True)  # whatever is still being read is not wanted any more


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(max_workers=workers, initializer=_die_with, initargs=(os.getpid(),))


def _die_with(parent: int) -> None:
    """End this process when the run that it reads for was killed: nobody else would."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _read_within(how: How, path: Path, doc_id: str, timestamp: str) -> DocumentBundle:
    """Read in this process; past the limit the system ends the process, which no library can hold up."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(how.longest)
    try:
        begin_anew = partial(_begin_anew, how.longest)
        documentai = how.documentai and replace(how.documentai, before_each=begin_anew)
        recogniser = None if documentai else _recogniser(how, begin_anew)
        with confined(how.memory_mb):
            return read(path, doc_id=doc_id, timestamp=timestamp, recogniser=recogniser, documentai=documentai)
    except MemoryError:
        raise DocumentError(
            f"{path.name} takes more than {how.memory_mb or 'all'} MB of memory to read",
            code=_MEMORY,
            remedy="Print it to a new PDF and run that one; if it is to be so large, raise the setting read_memory_mb.",
        ) from None
    finally:
        signal.alarm(0)


def _recogniser(how: How, begin_anew: Callable[[], None]) -> Recogniser | None:
    """Made in the process that reads; each page that it has done gives the file its whole time again."""
    if how.ocr == "none":
        return None
    from evalkit.documents.ocr import engine
    from evalkit.documents.scanned import Recogniser

    found = engine(how.ocr)
    return Recogniser(found, how.ocr_seconds, begin_anew) if found else None


def _begin_anew(seconds: int) -> None:
    signal.alarm(seconds)
