"""Pool of processes that read PDFs: MuPDF is not thread-safe, and can crash."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from loky import ProcessPoolExecutor
from loky.process_executor import BrokenProcessPool
from typing_extensions import override

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.readers import read_document
from evalkit.errors import DocumentError
from evalkit.pipeline.executor.protocol import ArgumentT, BundleWithTimings, Executor, OutcomeT, ReaderConfig
from evalkit.pipeline.executor.resource_limits import limit_process_resources

if TYPE_CHECKING:
    from PIL import Image

    from evalkit.documents.ocr import OcrEngine
    from evalkit.documents.quality import OcrWord
    from evalkit.documents.scanned_pages import PageOcrSettings

T = TypeVar("T")

#: Documents in flight per reading process: enough that no process is idle while results are written.
_IN_FLIGHT_PER_WORKER = 3
#: Seconds between a worker's checks that the run is still alive.
_PARENT_POLL_SECONDS = 2
_MEMORY_ERROR_CODE = "READER-MEMORY"


class ReaderPool(Executor):
    """Executor with a pool of reading processes on this machine.

    The processes end with the pool, and with the run if the run is killed.
    """

    def __init__(self, worker_count: int, reader_config: ReaderConfig) -> None:
        """Create a pool of ``worker_count`` processes."""
        self._worker_count = worker_count
        self._reader_config = reader_config
        self._process_pool = create_process_pool(worker_count)

    @property
    @override
    def max_in_flight(self) -> int:
        return self._worker_count * _IN_FLIGHT_PER_WORKER

    @override
    async def read(self, path: Path, *, doc_id: str, processing_timestamp: str) -> BundleWithTimings:
        return await await_read_result(
            self.run_in_worker(read_with_limits, self._reader_config, path, doc_id, processing_timestamp),
            path.name,
            self._reader_config.timeout_seconds,
        )

    @override
    async def run_step(
        self,
        step_name: str,
        function: Callable[[DocumentBundle, ArgumentT], Coroutine[Any, Any, OutcomeT]],
        bundle: DocumentBundle,
        argument: ArgumentT,
    ) -> OutcomeT:
        # Steps run in this process, which has the model's journal.
        return await function(bundle, argument)

    async def run_in_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function in one of the processes, and return its outcome.

        BrokenProcessPool if the function crashes its process twice.
        """
        process_pool = self._process_pool
        try:
            return await _submit_to_pool(process_pool, function, *arguments)
        except BrokenProcessPool:
            if self._process_pool is process_pool:
                self._process_pool = create_process_pool(self._worker_count)
        except DocumentError as error:
            if error.code != _MEMORY_ERROR_CODE:
                raise
            # Memory may be left over from earlier files: retry in a fresh process, and give the next file one too.
            if self._process_pool is process_pool:
                self._process_pool = create_process_pool(self._worker_count)
                process_pool.shutdown(wait=False)  # the old pool finishes the files that it is reading
        # A crash fails all running reads; read alone, only the file that crashed the process fails again.
        single_process_pool = create_process_pool(1)
        try:
            return await _submit_to_pool(single_process_pool, function, *arguments)
        finally:
            single_process_pool.shutdown(kill_workers=True)  # an interrupted run does not wait for it

    def close(self) -> None:
        """End the processes without waiting for the files that they are reading."""
        self._process_pool.shutdown(kill_workers=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class WorkerReadResult(NamedTuple):
    """Bundle that a worker process read, and the seconds it took."""

    bundle: DocumentBundle
    total_seconds: float
    """Seconds from the start to the end of reading."""
    ocr_seconds: float
    """Seconds that the OCR engine took, which are part of ``total_seconds``."""


async def await_read_result(
    pending_read: Awaitable[WorkerReadResult], file_name: str, timeout_seconds: int
) -> BundleWithTimings:
    """Await a worker's result, and add timings; a crash becomes a DocumentError."""
    monotonic_start = time.monotonic()
    try:
        worker_result = await pending_read
    except BrokenProcessPool as error:
        raise DocumentError(
            f"{file_name} crashed the process that read it, or took longer than {timeout_seconds} s",
            code="READER-CRASHED",
            remedy="Print the file to a new PDF, and run the new PDF.",
        ) from error
    # The clocks of two machines differ, but agree on durations.
    waiting_seconds = max(time.monotonic() - monotonic_start - worker_result.total_seconds, 0.0)
    seconds_by_step = {
        "waiting": waiting_seconds,
        "reading": worker_result.total_seconds - worker_result.ocr_seconds,
        "recognising": worker_result.ocr_seconds,
    }
    return BundleWithTimings(
        worker_result.bundle, {step: round(elapsed, 3) for step, elapsed in seconds_by_step.items()}
    )


def run_async_step(
    function: Callable[[DocumentBundle, ArgumentT], Coroutine[Any, Any, OutcomeT]],
    bundle: DocumentBundle,
    argument: ArgumentT,
) -> OutcomeT:
    """Run a coroutine function in a worker process, and return its outcome."""
    return asyncio.run(function(bundle, argument))


async def _submit_to_pool(process_pool: ProcessPoolExecutor, function: Callable[..., T], *arguments: Any) -> T:
    outcome: T = await asyncio.wrap_future(process_pool.submit(_call_without_error_context, function, *arguments))
    return outcome


def _call_without_error_context(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function; errors that it raises lose their cause and context.

    Cause and context may quote the document, and not all of them can be pickled. Dask, if loaded, would try all the
    same; when that fails, the process ends and prints all of it to the log.
    """
    try:
        return function(*arguments)
    except Exception as error:
        error.__cause__ = error.__context__ = None
        raise


def create_process_pool(worker_count: int) -> ProcessPoolExecutor:
    """Create a pool of worker processes that end when this process ends."""
    return ProcessPoolExecutor(max_workers=worker_count, initializer=_exit_with_parent, initargs=(os.getpid(),))


def _exit_with_parent(parent_pid: int) -> None:
    """Watch the run's process in a thread, and end this process when the run is gone."""

    def watch_parent() -> None:
        while os.getppid() == parent_pid:
            time.sleep(_PARENT_POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch_parent, name="parent-watch", daemon=True).start()


def read_with_limits(
    reader_config: ReaderConfig, path: Path, doc_id: str, processing_timestamp: str, file_bytes: bytes | None = None
) -> WorkerReadResult:
    """Read a document in this process, with limits of time and memory.

    Past the time limit the system kills the process, whatever library is busy. ``file_bytes`` is the file's content if
    the file is on another machine. DocumentError if the memory is used up.
    """
    monotonic_start = time.monotonic()
    effective_limit_mb: int | None = None
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(reader_config.timeout_seconds)
    try:
        restart_kill_timer = partial(_restart_kill_timer, reader_config.timeout_seconds)
        documentai = reader_config.documentai and replace(reader_config.documentai, before_chunk=restart_kill_timer)
        engine = None if documentai else _create_ocr_engine(reader_config)
        recogniser = (
            _create_page_ocr_settings(engine, reader_config.ocr_page_seconds, restart_kill_timer) if engine else None
        )
        with limit_process_resources(reader_config.memory_limit_mb) as effective_limit_mb:
            bundle = read_document(
                path,
                doc_id=doc_id,
                processing_timestamp=processing_timestamp,
                ocr_settings=recogniser,
                documentai=documentai,
                file_bytes=file_bytes,
            )
    except MemoryError:
        is_own_limit = effective_limit_mb is None or effective_limit_mb == reader_config.memory_limit_mb
        limit_source = (
            "the setting read_memory_mb" if is_own_limit else "the limit that evalkit was started under (ulimit -v)"
        )
        raise DocumentError(
            f"{path.name} takes more than {'all available' if effective_limit_mb is None else effective_limit_mb} MB of memory to read",
            code=_MEMORY_ERROR_CODE,
            remedy=f"Print the file to a new PDF, and run that; if the file has to be so large, raise {limit_source}.",
        ) from None
    finally:
        signal.alarm(0)
    return WorkerReadResult(bundle, time.monotonic() - monotonic_start, engine.seconds_used if engine else 0.0)


def _create_ocr_engine(reader_config: ReaderConfig) -> _TimedOcrEngine | None:
    if reader_config.ocr_engine == "none":
        return None
    from evalkit.documents.ocr import resolve_ocr_engine

    ocr_engine = resolve_ocr_engine(reader_config.ocr_engine)
    return _TimedOcrEngine(ocr_engine) if ocr_engine else None


def _create_page_ocr_settings(
    engine: _TimedOcrEngine, max_page_seconds: int, restart_kill_timer: Callable[[], None]
) -> PageOcrSettings:
    """Create OCR settings; each recognised page restarts the file's time limit."""
    from evalkit.documents.scanned_pages import PageOcrSettings

    return PageOcrSettings(engine, max_page_seconds, restart_kill_timer)


@dataclass
class _TimedOcrEngine:
    engine: OcrEngine
    seconds_used: float = field(default=0.0, init=False)

    @property
    def name_and_version(self) -> str:
        return self.engine.name_and_version

    def recognise_words(self, image: Image.Image, *, dpi: int, time_limit_seconds: float) -> list[OcrWord]:
        with self._measure_time():
            return self.engine.recognise_words(image, dpi=dpi, time_limit_seconds=time_limit_seconds)

    def detect_clockwise_quarter_turns(self, image: Image.Image, *, dpi: int, time_limit_seconds: float) -> int | None:
        with self._measure_time():
            return self.engine.detect_clockwise_quarter_turns(image, dpi=dpi, time_limit_seconds=time_limit_seconds)

    @contextmanager
    def _measure_time(self) -> Iterator[None]:
        monotonic_start = time.monotonic()
        try:
            yield
        finally:
            self.seconds_used += time.monotonic() - monotonic_start


def _restart_kill_timer(seconds: int) -> None:
    signal.alarm(seconds)
