"""Reading PDFs in processes of their own: MuPDF is not thread-safe, and a file that kills it must not end the run."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

from loky import ProcessPoolExecutor
from loky.process_executor import BrokenProcessPool

from evalkit.batch.confinement import confined
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.ingest import read, reader_with
from evalkit.errors import DocumentError

if TYPE_CHECKING:
    from PIL import Image

    from evalkit.batch.extracting import FieldWork
    from evalkit.classification.orchestrator import Outcome, RetryOrchestrator
    from evalkit.classification.result import UsageReport
    from evalkit.classification.schema import ClassificationOutput
    from evalkit.documents.documentai import DocumentAi
    from evalkit.documents.ocr import Engine, EngineName
    from evalkit.documents.quality import Recognised
    from evalkit.documents.scanned import Recogniser
    from evalkit.extraction.schema import Extraction

T = TypeVar("T")

#: Documents under way at once, per reading process: enough that none waits for the others' writing.
_IN_FLIGHT = 3
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


class Read(NamedTuple):
    """A document that was read, and what that took."""

    bundle: DocumentBundle
    seconds: dict[str, float]
    """``recognising`` pages that are pictures, all other ``reading``, and ``waiting`` for whoever reads."""


class Executor(Protocol):
    """What reads documents, and where no language model has to be asked, decides about them and reads their fields."""

    @property
    def room(self) -> int:
        """How many documents should be under way to keep it busy; this may change."""

    async def read(self, path: Path, *, doc_id: str, timestamp: str) -> Read:
        """The bundle of a PDF. DocumentError where it cannot be read, also where it ends the process that reads it."""

    async def evaluate(self, orchestrator: RetryOrchestrator, bundle: DocumentBundle, supplied: Any) -> Outcome:
        """As ``orchestrator.evaluate``."""

    async def extract(
        self, work: FieldWork, bundle: DocumentBundle, classification: ClassificationOutput | None
    ) -> tuple[tuple[Extraction, ...], UsageReport]:
        """As ``work.extract``."""


class Readers:
    """A pool of reading processes; they end with it, and with the run if that is killed."""

    def __init__(self, workers: int, how: How) -> None:
        """``workers`` processes."""
        self._workers = workers
        self._how = how
        self._pool = processes(workers)

    @property
    def room(self) -> int:
        """See ``Executor``."""
        return self._workers * _IN_FLIGHT

    async def read(self, path: Path, *, doc_id: str, timestamp: str) -> Read:
        """See ``Executor``."""
        return await timed(self.apply(read_within, self._how, path, doc_id, timestamp), path.name, self._how)

    async def evaluate(self, orchestrator: RetryOrchestrator, bundle: DocumentBundle, supplied: Any) -> Outcome:
        """See ``Executor``; here, where the model's journal is."""
        return await orchestrator.evaluate(bundle, supplied)

    async def extract(
        self, work: FieldWork, bundle: DocumentBundle, classification: ClassificationOutput | None
    ) -> tuple[tuple[Extraction, ...], UsageReport]:
        """See ``Executor``; here, as ``evaluate``."""
        return await work.extract(bundle, classification)

    async def apply(self, function: Callable[..., T], *arguments: Any) -> T:
        """What the function makes of these in one of the processes. BrokenProcessPool where it ends that."""
        pool = self._pool
        try:
            return await _in(pool, function, *arguments)
        except BrokenProcessPool:
            if self._pool is pool:
                self._pool = processes(self._workers)
        except DocumentError as error:
            if error.code != _MEMORY:
                raise
            # What files before it left in the process is not this one's fault; and the next must not suffer from this one.
            if self._pool is pool:
                self._pool = processes(self._workers)
                pool.shutdown(wait=False)  # what it is reading it reads to the end
        # All that was under way fails together; done alone, only the guilty one fails again.
        alone = processes(1)
        try:
            return await _in(alone, function, *arguments)
        finally:
            alone.shutdown(kill_workers=True)  # who is interrupted waits for nothing that is not wanted any more

    def close(self) -> None:
        """End the processes; whatever is still being read is not wanted any more."""
        self._pool.shutdown(kill_workers=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Done(NamedTuple):
    """What the process that read says."""

    bundle: DocumentBundle
    seconds: float
    """From beginning to end."""
    recognising: float
    """Of these, those of the OCR engine."""


async def timed(work: Awaitable[Done], name: str, how: How) -> Read:
    """What reading came to; ``name`` is the file's, for the error where it ended its process."""
    began = time.monotonic()
    try:
        done = await work
    except BrokenProcessPool as error:
        raise DocumentError(
            f"{name} ended the process that read it, or took longer than {how.longest} s",
            code="READER-CRASHED",
            remedy="Print it to a new PDF and run that one.",
        ) from error
    # Clocks of two machines do not agree on the time, but on how long something took.
    waited = max(time.monotonic() - began - done.seconds, 0.0)
    seconds = {"waiting": waited, "reading": done.seconds - done.recognising, "recognising": done.recognising}
    return Read(done.bundle, {step: round(took, 3) for step, took in seconds.items()})


async def _in(pool: ProcessPoolExecutor, function: Callable[..., T], *arguments: Any) -> T:
    made: T = await asyncio.wrap_future(pool.submit(_alone, function, *arguments))
    return made


def _alone(function: Callable[..., T], *arguments: Any) -> T:
    """What the function makes of these; what it raises leaves the process without what that was raised over.

    That may quote the document, and some of it cannot be sent. Where Dask is loaded it would be sent all the same; when
    that fails, the process ends and prints all of it to the log.
    """
    try:
        return function(*arguments)
    except Exception as error:
        error.__cause__ = error.__context__ = None
        raise


def processes(workers: int) -> ProcessPoolExecutor:
    """So many processes, which end with this one."""
    return ProcessPoolExecutor(max_workers=workers, initializer=_die_with, initargs=(os.getpid(),))


def _die_with(parent: int) -> None:
    """End this process when the run that it reads for was killed: nobody else would."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def read_within(how: How, path: Path, doc_id: str, timestamp: str, data: bytes | None = None) -> Done:
    """Read in this process; past the limit the system ends the process, which no library can hold up.

    ``data`` are the file's bytes where it is on another machine.
    """
    began = time.monotonic()
    held: int | None = None
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(how.longest)
    try:
        begin_anew = partial(_begin_anew, how.longest)
        documentai = how.documentai and replace(how.documentai, before_each=begin_anew)
        engine = None if documentai else _engine(how)
        recogniser = _recogniser(engine, how.ocr_seconds, begin_anew) if engine else None
        with confined(how.memory_mb) as held:
            bundle = read(
                path, doc_id=doc_id, timestamp=timestamp, recogniser=recogniser, documentai=documentai, data=data
            )
    except MemoryError:
        is_ours = held is None or held == how.memory_mb
        limit = "the setting read_memory_mb" if is_ours else "the limit that evalkit was started under (ulimit -v)"
        raise DocumentError(
            f"{path.name} takes more than {'all' if held is None else held} MB of memory to read",
            code=_MEMORY,
            remedy=f"Print it to a new PDF and run that one; if it is to be so large, raise {limit}.",
        ) from None
    finally:
        signal.alarm(0)
    return Done(bundle, time.monotonic() - began, engine.seconds if engine else 0.0)


def _engine(how: How) -> _TimedEngine | None:
    """Made in the process that reads."""
    if how.ocr == "none":
        return None
    from evalkit.documents.ocr import engine

    found = engine(how.ocr)
    return _TimedEngine(found) if found else None


def _recogniser(engine: _TimedEngine, seconds: int, begin_anew: Callable[[], None]) -> Recogniser:
    """Each page that it has done gives the file its whole time again."""
    from evalkit.documents.scanned import Recogniser

    return Recogniser(engine, seconds, begin_anew)


@dataclass
class _TimedEngine:
    """An OCR engine, and how long it has been at work."""

    engine: Engine
    seconds: float = field(default=0.0, init=False)

    @property
    def name_and_version(self) -> str:
        return self.engine.name_and_version

    def recognise(self, image: Image.Image, *, dpi: int, seconds: float) -> list[Recognised]:
        with self._running():
            return self.engine.recognise(image, dpi=dpi, seconds=seconds)

    def turn(self, image: Image.Image, *, dpi: int, seconds: float) -> int | None:
        with self._running():
            return self.engine.turn(image, dpi=dpi, seconds=seconds)

    @contextmanager
    def _running(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - began


def _begin_anew(seconds: int) -> None:
    signal.alarm(seconds)
