"""Pool of processes that read documents, because MuPDF is not thread-safe.

Each process has limits of its resources, so that a malicious file ends only itself.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from loky import ProcessPoolExecutor
from loky.process_executor import BrokenProcessPool
from typing_extensions import override

from evalkit.core.document_cache import forget_document_texts
from evalkit.core.process_pool import create_process_pool
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.mupdf import open_pdf
from evalkit.documents.readers import read_document
from evalkit.errors import DocumentError
from evalkit.pipeline.executor.protocol import (
    ArgumentT,
    BundleWithTimings,
    Executor,
    InterruptedReadError,
    OutcomeT,
    ReaderConfig,
)

if TYPE_CHECKING:
    from PIL import Image

    from evalkit.documents.ocr import OcrEngine
    from evalkit.documents.page_pictures import PageImage
    from evalkit.documents.quality import OcrWord
    from evalkit.documents.scanned_pages import PageOcrSettings

T = TypeVar("T")

#: Documents in flight per reading process: enough that no process is idle while results are written.
_IN_FLIGHT_PER_WORKER = 3
#: Seconds between checks of a dead process's exit code, and the most checks: on a busy machine the system is slow, too.
_EXIT_POLL_SECONDS, _MAX_EXIT_POLLS = 0.05, 200
_MEMORY_ERROR_CODE, _TIMEOUT_ERROR_CODE = "READER-MEMORY", "READER-TIMEOUT"
_DeathReason = tuple[str, str, str]
#: Code, message and remedy by the signal that ended a reading process: those of its two timers.
_TIMER_DEATHS: dict[int | None, _DeathReason] = {
    -signal.SIGPROF: (
        "READER-TOO-SLOW",
        "{file} takes more than {seconds} s of processor time to read",
        "Print the file to a new PDF, and run the new PDF; or raise the setting read_seconds.",
    ),
    -signal.SIGALRM: (
        "READER-TIMEOUT",
        "{file} was not read within {clock_seconds} s: this machine hangs or has too much to do",
        "Run the file again when the machine has less to do.",
    ),
}
_CRASH: _DeathReason = (
    "READER-CRASHED",
    "{file} crashed the process that read it",
    "Print the file to a new PDF, and run the new PDF.",
)


class WorkerDeathError(Exception):
    """Error for a worker process that died while it ran a function.

    ``exit_code`` is negative if a signal ended it; None if unknown.
    """

    def __init__(self, exit_code: int | None) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class WorkerShare(NamedTuple):
    """Share of the pool's worker processes that one document may use."""

    busy_count_path: str
    """File with the number of documents that the pool is reading: its processes share nothing else."""
    worker_count: int

    def count_workers(self) -> int:
        """Return the number of workers that the document may use now, at least one."""
        return max(self.worker_count // int(Path(self.busy_count_path).read_bytes() or 1), 1)


class ReaderPool(Executor):
    """Executor with a pool of reading processes on this machine.

    Each document has a process of its own while it is read, so that a crash concerns this document only. The processes
    end with the pool, and with the run if the run is killed.
    """

    def __init__(self, worker_count: int, reader_config: ReaderConfig, *, page_worker_count: int = 0) -> None:
        """Create a pool of ``worker_count`` processes; each starts when needed.

        ``page_worker_count`` pages, if more than ``worker_count``, are recognised at a time when fewer documents are
        being read.
        """
        self.reads_alone = True
        self._worker_count = worker_count
        self._reader_config = reader_config
        self._free_workers = asyncio.Semaphore(worker_count)
        self._idle_pools: list[ProcessPoolExecutor] = []
        self._busy_pools: set[ProcessPoolExecutor] = set()
        self._busy_count_file = tempfile.NamedTemporaryFile(prefix="evalkit-", buffering=0)  # noqa: SIM115 - closed with the pool
        self._worker_share = WorkerShare(self._busy_count_file.name, max(page_worker_count, worker_count))

    @property
    @override
    def max_in_flight(self) -> int:
        return self._worker_count * _IN_FLIGHT_PER_WORKER

    @override
    async def read(self, path: Path, *, doc_id: str, processing_timestamp: str) -> BundleWithTimings:
        if self.reads_alone:
            self._end_idle_processes()  # memory may be left over from earlier files
        pending_read = self.run_in_worker(read_with_limits, self._reader_config, path, doc_id, processing_timestamp)
        return await await_read_result(pending_read, path.name, self._reader_config, reads_alone=self.reads_alone)

    @override
    async def count_pages(self, path: Path) -> int:
        try:
            return await self.run_in_worker(_count_pages_with_limits, self._reader_config, path)
        except (WorkerDeathError, DocumentError, OSError, MemoryError):
            return 1

    @override
    async def render_page_images(
        self, pdf: Path | bytes, bundle: DocumentBundle, max_images: int, max_pixels: int
    ) -> tuple[PageImage, ...]:
        try:
            return await self.run_in_worker(
                _render_images_with_limits, self._reader_config, pdf, bundle, max_images, max_pixels
            )
        except WorkerDeathError as death:
            raise _build_death_error(Path(bundle.file_path).name, death.exit_code, self._reader_config) from None

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
        """Run a function in a separate process, and return its outcome.

        WorkerDeathError if the process dies.
        """
        async with self._free_workers:
            process_pool = self._idle_pools.pop() if self._idle_pools else create_process_pool(1)
            self._busy_pools.add(process_pool)
            self._write_busy_count()
            is_reusable = False
            try:
                future = process_pool.submit(_run_function, self._worker_share, function, *arguments)
                processes = list(process_pool._processes.values())  # noqa: SLF001 - the errors of loky name no exit code
                outcome: T = await asyncio.wrap_future(future)
                is_reusable = True
                return outcome
            except BrokenProcessPool:
                raise WorkerDeathError(await _await_exit_code(processes)) from None
            except Exception as error:
                is_reusable = getattr(error, "code", None) != _MEMORY_ERROR_CODE
                raise
            finally:
                self._busy_pools.discard(process_pool)
                self._write_busy_count()
                if is_reusable:
                    self._idle_pools.append(process_pool)
                else:
                    process_pool.shutdown(kill_workers=True)  # an interrupted run does not wait for it

    def _write_busy_count(self) -> None:
        os.pwrite(self._busy_count_file.fileno(), b"%4d" % max(len(self._busy_pools), 1), 0)

    def _end_idle_processes(self) -> None:
        while self._idle_pools:
            self._idle_pools.pop().shutdown(kill_workers=True)

    def close(self) -> None:
        """End the processes without waiting for the files that they are reading."""
        self._end_idle_processes()
        for process_pool in tuple(self._busy_pools):
            process_pool.shutdown(kill_workers=True)
        self._busy_count_file.close()

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
    """Seconds during which the OCR engine was running, which are part of ``total_seconds``."""
    has_slow_pages: bool = False
    """True if the OCR engine reached its time limit on a page: read alone, it may not."""
    shown_pdf: bytes | None = None
    """As in ``BundleWithTimings``."""


async def await_read_result(
    pending_read: Awaitable[WorkerReadResult], file_name: str, reader_config: ReaderConfig, *, reads_alone: bool
) -> BundleWithTimings:
    """Await a worker's result, and add timings.

    Errors as ``Executor.read``.
    """
    monotonic_start = time.monotonic()
    try:
        worker_result = await pending_read
        if reads_alone or not worker_result.has_slow_pages:
            return _add_timings(worker_result, monotonic_start)
        error = _build_death_error(file_name, -signal.SIGPROF, reader_config)
    except WorkerDeathError as death:
        error = _build_death_error(file_name, death.exit_code, reader_config)
    except DocumentError as document_error:
        if document_error.code not in (_MEMORY_ERROR_CODE, _TIMEOUT_ERROR_CODE):
            raise
        error = document_error
    if reads_alone:
        raise error
    raise InterruptedReadError(error.message, code=error.code, remedy=error.remedy)


def _add_timings(worker_result: WorkerReadResult, monotonic_start: float) -> BundleWithTimings:
    # The clocks of two machines differ, but agree on durations.
    seconds_by_step = {
        "waiting": max(time.monotonic() - monotonic_start - worker_result.total_seconds, 0.0),
        "reading": worker_result.total_seconds - worker_result.ocr_seconds,
        "recognising": worker_result.ocr_seconds,
    }
    return BundleWithTimings(
        worker_result.bundle,
        {step: round(elapsed, 3) for step, elapsed in seconds_by_step.items()},
        worker_result.shown_pdf,
    )


def _build_death_error(file_name: str, exit_code: int | None, reader_config: ReaderConfig) -> DocumentError:
    code, message, remedy = _TIMER_DEATHS.get(exit_code, _CRASH)
    clock_seconds = reader_config.hang_factor * reader_config.processor_seconds
    return DocumentError(
        message.format(file=file_name, seconds=reader_config.processor_seconds, clock_seconds=clock_seconds),
        code=code,
        remedy=remedy,
    )


async def _await_exit_code(processes: list[Any]) -> int | None:
    for _ in range(_MAX_EXIT_POLLS):
        for process in processes:
            if process.exitcode is not None:
                return int(process.exitcode)
        await asyncio.sleep(_EXIT_POLL_SECONDS)
    return None


def run_async_step(
    function: Callable[[DocumentBundle, ArgumentT], Coroutine[Any, Any, OutcomeT]],
    bundle: DocumentBundle,
    argument: ArgumentT,
) -> OutcomeT:
    """Run a coroutine function in a worker process, and return its outcome."""
    return asyncio.run(function(bundle, argument))


#: Share of the document that this process is reading in the workers of its pool; None in other processes.
_worker_share: WorkerShare | None = None


def _run_function(worker_share: WorkerShare, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a worker process; its errors lose cause and context.

    Cause and context may quote the document, and not all of them can be pickled. Dask, if loaded, would try all the
    same; when that fails, the process ends and prints all of it to the log.
    """
    global _worker_share  # noqa: PLW0603 - a document's reader is created deep in the function
    _worker_share = worker_share
    try:
        return function(*arguments)
    except Exception as error:
        error.__cause__ = error.__context__ = None
        raise
    finally:
        forget_document_texts()


def read_with_limits(
    reader_config: ReaderConfig, path: Path, doc_id: str, processing_timestamp: str, file_bytes: bytes | None = None
) -> WorkerReadResult:
    """Read a document in this process, with limits of time and memory.

    Past a time limit the system kills the process, whatever library is busy. ``file_bytes`` is the file's content if
    the file is on another machine. DocumentError if the memory is used up, or if a page's OCR hangs.
    """
    monotonic_start = time.monotonic()
    effective_limit_mb: int | None = None
    shown_pdfs: list[bytes] = []
    restart_kill_timers = partial(_restart_kill_timers, reader_config)
    try:
        restart_kill_timers()
        documentai = reader_config.documentai and replace(reader_config.documentai, before_chunk=restart_kill_timers)
        engine = None if documentai else _create_ocr_engine(reader_config)
        recogniser = _create_page_ocr_settings(engine, reader_config, restart_kill_timers) if engine else None
        with limit_process_resources(reader_config.memory_limit_mb) as effective_limit_mb:
            bundle = read_document(
                path,
                doc_id=doc_id,
                processing_timestamp=processing_timestamp,
                ocr_settings=recogniser,
                documentai=documentai,
                file_bytes=file_bytes,
                on_shown_pdf=shown_pdfs.append,
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
    except TimeoutError:
        raise _build_death_error(path.name, -signal.SIGALRM, reader_config) from None
    finally:
        _stop_kill_timers()
    seconds = time.monotonic() - monotonic_start
    ocr_seconds, has_slow_pages = (engine.seconds_used, engine.has_slow_pages) if engine else (0.0, False)
    return WorkerReadResult(bundle, seconds, ocr_seconds, has_slow_pages, *shown_pdfs)


def _count_pages_with_limits(reader_config: ReaderConfig, path: Path) -> int:
    with _limit_time_and_memory(reader_config):
        opened_pdf = open_pdf(path, path.name)
        with opened_pdf.document:
            return opened_pdf.total_pages


def _render_images_with_limits(
    reader_config: ReaderConfig, pdf: Path | bytes, bundle: DocumentBundle, max_images: int, max_pixels: int
) -> tuple[PageImage, ...]:
    from evalkit.documents.page_pictures import choose_and_render_page_images

    with _limit_time_and_memory(reader_config):
        return choose_and_render_page_images(pdf, bundle, max_images, max_pixels)


@contextmanager
def _limit_time_and_memory(reader_config: ReaderConfig) -> Iterator[None]:
    try:
        _restart_kill_timers(reader_config)
        with limit_process_resources(reader_config.memory_limit_mb):
            yield
    finally:
        _stop_kill_timers()


def _create_ocr_engine(reader_config: ReaderConfig) -> _TimedOcrEngine | None:
    if reader_config.ocr_engine == "none":
        return None
    from evalkit.documents.ocr import resolve_ocr_engine

    ocr_engine = resolve_ocr_engine(reader_config.ocr_engine)
    return _TimedOcrEngine(ocr_engine) if ocr_engine else None


def _create_page_ocr_settings(
    engine: _TimedOcrEngine, reader_config: ReaderConfig, restart_kill_timers: Callable[[], None]
) -> PageOcrSettings:
    """Create OCR settings; each recognised page restarts the file's time limits."""
    from evalkit.documents.scanned_pages import PageOcrSettings

    settings = PageOcrSettings(engine, reader_config.ocr_page_seconds, restart_kill_timers)
    return replace(settings, count_workers=_worker_share.count_workers) if _worker_share else settings


@dataclass
class _TimedOcrEngine:
    """OCR engine that measures its time, and notes if it reached a time limit.

    Pages may be recognised side by side: the time is that during which any page was.
    """

    engine: OcrEngine
    seconds_used: float = field(default=0.0, init=False)
    has_slow_pages: bool = field(default=False, init=False)
    _running_count: int = field(default=0, init=False)
    _monotonic_start: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

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
        with self._lock:
            self._monotonic_start = self._monotonic_start if self._running_count else time.monotonic()
            self._running_count += 1
        try:
            yield
        except DocumentError as error:
            self.has_slow_pages |= error.code == "OCR-TIMEOUT"
            raise
        finally:
            with self._lock:
                self._running_count -= 1
                if not self._running_count:
                    self.seconds_used += time.monotonic() - self._monotonic_start


def _restart_kill_timers(reader_config: ReaderConfig) -> None:
    """Let the system kill this process at its processor and clock limits.

    A busy machine gives a process little processor time, which is no fault of the document.
    """
    signal.setitimer(signal.ITIMER_PROF, reader_config.processor_seconds)
    signal.alarm(reader_config.hang_factor * reader_config.processor_seconds)


def _stop_kill_timers() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.alarm(0)


_MEGABYTE = 2**20
#: Maximum bytes of a file that a reading process may write; it only writes images for an OCR engine.
_MAX_FILE_BYTES = 1024 * _MEGABYTE


@contextmanager
def limit_process_resources(max_memory_mb: int) -> Iterator[int | None]:
    """Limit address space (0: no limit) and file size, and disable core dumps.

    Yields the effective limit in megabytes, which is lower if the process has a narrower limit already; None if there
    is no limit. The former limits are restored afterwards. Processor time has no limit: the caller has a time limit.
    Child processes are limited as well. MemoryError if the address space is used up.
    """
    wanted_limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: _MAX_FILE_BYTES}
    if max_memory_mb:
        wanted_limits[resource.RLIMIT_AS] = max_memory_mb * _MEGABYTE
    limits_before = {resource_kind: resource.getrlimit(resource_kind) for resource_kind in wanted_limits}
    try:
        for resource_kind, limit in wanted_limits.items():
            _set_limit(resource_kind, limit, limits_before[resource_kind])
        effective_limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        yield None if effective_limit == resource.RLIM_INFINITY else effective_limit // _MEGABYTE
    finally:
        for resource_kind, limits in limits_before.items():
            with suppress(ValueError, OSError):
                resource.setrlimit(resource_kind, limits)


def _set_limit(resource_kind: int, limit: int, limits_before: tuple[int, int]) -> None:
    narrowest = min(
        (candidate for candidate in (limit, *limits_before) if candidate != resource.RLIM_INFINITY), default=limit
    )
    with suppress(ValueError, OSError):  # not every system has every limit
        resource.setrlimit(resource_kind, (narrowest, limits_before[1]))
