"""Executor on a Dask cluster, which produces the same bytes as the local pool.

Workers get the bytes of a document, and open no path of this machine; each passes them to a reading process of its own,
so that a file that crashes its reader, or takes too long, costs no worker. Steps that call others (language models,
Document AI) stay here: one journal, one set of limits. Dask logs the arguments of a task that raises, shows keys and
types on its dashboard, and may spill to its disk: so tasks never raise, their arguments and outcomes are opaque bytes,
keys have twelve digits of a hash, and files of a worker are readable by its user only.
"""

import asyncio
import hashlib
import logging
import multiprocessing
import os
import pickle
import secrets
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from urllib.parse import urlsplit

import dask
from distributed import Client, WorkerPlugin, get_worker
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker
from typing_extensions import override

from evalkit.core.log_events import log_event
from evalkit.core.remote_services import is_local_host
from evalkit.documents import DocumentBundle
from evalkit.documents.ocr import OcrEngineName
from evalkit.documents.page_pictures import PageImage
from evalkit.documents.readers import resolve_reader_version
from evalkit.documents.source_file import read_source_file
from evalkit.errors import EvalkitError, ExecutorError, UsageError
from evalkit.pipeline.executor.protocol import ArgumentT, BundleWithTimings, Executor, OutcomeT, ReaderConfig
from evalkit.pipeline.executor.reader_pool import (
    ReaderPool,
    WorkerDeathError,
    await_read_result,
    read_with_limits,
    run_async_step,
)
from evalkit.pipeline.fingerprint import collect_versions
from evalkit.store import hash_canonical_json

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Documents in flight per thread of a worker: one being processed, one waiting, one being transferred.
_IN_FLIGHT_PER_THREAD = 3
#: Maximum bytes of a file that is sent to a worker through the scheduler's memory. Larger files are read here.
_MAX_SENT_BYTES = 128 * 1024 * 1024
#: Bytes from which a file counts as large, and the number of large files that may be in transit at once.
_LARGE_FILE_BYTES, _MAX_LARGE_FILES_IN_FLIGHT = 16 * 1024 * 1024, 4
#: Seconds to wait for the scheduler; then for a first worker, and for each worker's environment.
_REACH_TIMEOUT, _CONNECT_TIMEOUT = 4, 20
#: Seconds after which a wait for the cluster is announced; also the time limit for closing the connection.
_NOTICE_AFTER_SECONDS = 5
#: Seconds between checks of the cluster; seconds without a worker after which the cluster counts as lost.
_POLL_SECONDS, _NO_WORKER_TIMEOUT = 1.0, 60.0
_RESTART_REMEDY = "Start the scheduler and the workers, then run the same command again: finished documents are kept."


class OpaquePayload:
    """Pickled input or output of a task, which no log and no dashboard can show."""

    def __init__(self, content: Any) -> None:
        """Pickle the content before Dask gets it."""
        self._pickled = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)

    def unpickle(self) -> Any:
        """Return the unpickled content."""
        return pickle.loads(self._pickled)  # noqa: S301 - by ourselves; the cluster runs our code, so it is trusted

    def __repr__(self) -> str:
        return "OpaquePayload()"

    def __sizeof__(self) -> int:
        return len(self._pickled)


class RemoteTaskError(Exception):
    """Unexpected error of a worker about a document, without the document's text."""


async def run_task(payload: OpaquePayload) -> OpaquePayload:
    """Run a pickled function in a process of this worker; return errors as outcomes."""
    ocr_engine, expected_environment, function, *arguments = payload.unpickle()
    try:
        if (
            own_environment := _describe_environment_once(ocr_engine)
        ) != expected_environment:  # a worker that joined after the run had started
            return OpaquePayload(
                _create_mismatch_error(get_worker().address, expected_environment, own_environment, ExecutorError)
            )
        reader_pool = await _get_worker_pool()
        return OpaquePayload(await reader_pool.run_in_worker(function, *arguments))
    except (WorkerDeathError, EvalkitError) as error:
        return OpaquePayload(error)
    except Exception as error:  # noqa: BLE001 - Dask would log it with the task's arguments
        last_frame = traceback.extract_tb(error.__traceback__)[-1]
        return OpaquePayload(RemoteTaskError(type(error).__name__, last_frame.name))


#: Processes of this worker; None before its first task.
_worker_pool: ReaderPool | None = None


async def _get_worker_pool() -> ReaderPool:
    global _worker_pool  # noqa: PLW0603 - tasks share nothing else, and a process for each would cost half a second
    if _worker_pool is None:
        os.umask(0o077)
        # Dask forbids its workers child processes. Reading processes are harmless: they end with their parent.
        multiprocessing.current_process().daemon = False
        worker = get_worker()
        _worker_pool = ReaderPool(worker.state.nthreads, ReaderConfig(processor_seconds=0))
        await worker.plugin_add(_WorkerCleanup(), name="evalkit")
    return _worker_pool


class _WorkerCleanup(WorkerPlugin):
    """Dask plugin that ends the worker's processes, for which Dask would wait."""

    def teardown(self, worker: Any) -> None:  # noqa: ARG002 - the name is Dask's
        if _worker_pool is not None:
            _worker_pool.close()


def _describe_environment(ocr_engine: OcrEngineName) -> dict[str, str]:
    """Return the versions of reader and tables, which all machines must share."""
    own_types_travel = {"types": None}  # with the step that needs them
    return {
        "reader": resolve_reader_version(ocr_engine),
        "tables": hash_canonical_json(collect_versions() | own_types_travel),
    }


#: Cached for workers, which need the description before every task; their environment does not change while they run.
_describe_environment_once = cache(_describe_environment)


_NO_MESSAGE_LOG = {"distributed.admin.low-level-log-length": 0}


def _disable_message_logs(dask_scheduler: Any) -> None:
    """Keep the scheduler from storing its last messages, which contain documents.

    Messages in transit are not affected.
    """
    dask.config.set(_NO_MESSAGE_LOG)  # for workers that come later
    for stream in (*dask_scheduler.stream_comms.values(), *dask_scheduler.client_comms.values()):
        stream.recent_message_log = deque(maxlen=0)


def _create_mismatch_error(
    worker_address: str, expected: dict[str, str], reported: dict[str, str] | str, error_type: type[EvalkitError]
) -> EvalkitError:
    if isinstance(reported, dict):
        component = next(component for component in expected if expected[component] != reported.get(component))
        difference = (
            f"has a different version of the {component}: {reported.get(component)} instead of {expected[component]}"
        )
    else:
        difference = f"cannot load this program's reader and tables ({reported})"
    return error_type(
        f"the Dask worker {worker_address} {difference}",
        code="EXECUTOR-DIFFERS",
        remedy="Install the same evalkit and OCR engine on the worker as here, from the same lock file.",
    )


def _describe_worker(ocr_engine: OcrEngineName) -> dict[str, str] | str:
    try:
        return _describe_environment(ocr_engine)
    except Exception as error:  # noqa: BLE001 - anything may be missing there
        return type(error).__name__


class DaskCluster(Executor):
    """Executor whose workers run on the machines of a Dask cluster."""

    def __init__(
        self, executor_url: str, reader_config: ReaderConfig, *, local_workers: int, decides_on_workers: bool
    ) -> None:
        """Prepare the cluster of the scheduler at ``executor_url`` (``dask://HOST:PORT``).

        ``local_workers``: processes of this machine, for documents that are not sent. ``decides_on_workers``: decisions
        and field extraction run on the workers too, because no language model is asked.
        """
        self.reads_alone = True
        self._executor_url = executor_url
        self._reader_config = reader_config
        self._decides_on_workers = decides_on_workers
        self._local_pool = ReaderPool(local_workers, reader_config)
        self._large_file_slots = asyncio.Semaphore(_MAX_LARGE_FILES_IN_FLIGHT)
        self._thread_count = 1
        self._client: Any = None
        self._own_environment: dict[str, str] = {}
        self._environment_by_worker: dict[str, dict[str, str] | str | None] = {}
        self._cluster_loss: asyncio.Future[ExecutorError]
        self._watch_task: asyncio.Task[None]

    @property
    @override
    def max_in_flight(self) -> int:
        return self._thread_count * _IN_FLIGHT_PER_THREAD

    @override
    async def read(self, path: Path, *, doc_id: str, processing_timestamp: str) -> BundleWithTimings:
        file_size = await asyncio.to_thread(_get_file_size, path)
        if self._reader_config.documentai or file_size > _MAX_SENT_BYTES:
            self._local_pool.reads_alone = self.reads_alone
            return await self._local_pool.read(path, doc_id=doc_id, processing_timestamp=processing_timestamp)
        async with (
            self._large_file_slots if file_size >= _LARGE_FILE_BYTES else nullcontext()
        ):  # waited for before a large file is loaded into this machine's memory
            file_bytes = await asyncio.to_thread(read_source_file, path)
            pending_read = self._run_on_worker(
                "read",
                hashlib.sha256(file_bytes).hexdigest(),
                read_with_limits,
                self._reader_config,
                path,
                doc_id,
                processing_timestamp,
                file_bytes,
            )
            return await await_read_result(pending_read, path.name, self._reader_config, reads_alone=self.reads_alone)

    @override
    async def count_pages(self, path: Path) -> int:
        return await self._local_pool.count_pages(path)

    @override
    async def render_page_images(
        self, pdf: Path | bytes, bundle: DocumentBundle, max_images: int, max_pixels: int
    ) -> tuple[PageImage, ...]:
        return await self._local_pool.render_page_images(pdf, bundle, max_images, max_pixels)

    @override
    async def run_step(
        self,
        step_name: str,
        function: Callable[[DocumentBundle, ArgumentT], Coroutine[Any, Any, OutcomeT]],
        bundle: DocumentBundle,
        argument: ArgumentT,
    ) -> OutcomeT:
        # On a worker, or here if a language model is asked: its journal is here.
        if self._decides_on_workers:
            with suppress(WorkerDeathError):  # after a crash, the step runs here, as without a cluster
                return await self._run_on_worker(step_name, bundle.sha256, run_async_step, function, bundle, argument)
        return await function(bundle, argument)

    async def _run_on_worker(
        self, step_name: str, document_sha256: str, function: Callable[..., T], *arguments: Any
    ) -> T:
        """Run a function on a worker, or here if workers were lost over it repeatedly.

        WorkerDeathError if the function's process dies; the function's own EvalkitErrors; ExecutorError.
        """
        if self._cluster_loss.done():
            raise self._cluster_loss.result()
        if self._client.status != "running":  # the client's tasks are lost, even if it reconnects
            raise self._record_loss("the connection to the scheduler was lost")
        # A key is never used twice, not even in two runs: Dask would take both tasks for the same.
        future = self._client.submit(
            run_task,
            OpaquePayload((self._reader_config.ocr_engine, self._own_environment, function, *arguments)),
            key=f"{step_name}-{document_sha256[:12]}-{secrets.token_hex(4)}",
            pure=False,
        )
        pending_answer = asyncio.ensure_future(future.result())
        try:
            await asyncio.wait({pending_answer, self._cluster_loss}, return_when=asyncio.FIRST_COMPLETED)
            if not pending_answer.done():
                raise self._cluster_loss.result()
            outcome = pending_answer.result().unpickle()
        except KilledWorker:
            log_event(
                log,
                logging.WARNING,
                "workers were lost over this document, so it is processed here",
                document_sha256=document_sha256,
                step=step_name,
            )
            return await self._local_pool.run_in_worker(function, *arguments)
        except (FutureCancelledError, OSError):
            raise self._record_loss("the connection to the scheduler was lost") from None
        finally:
            pending_answer.cancel()
            future.release()
        if isinstance(outcome, (WorkerDeathError, EvalkitError, RemoteTaskError)):
            raise outcome
        return cast("T", outcome)

    async def connect_and_describe(self) -> str:
        """Connect as a run would, and say how many workers have the same evalkit.

        UsageError as for a run.
        """
        async with self:
            silent_workers = [
                worker for worker, environment in self._environment_by_worker.items() if environment is None
            ]
            description = f"{self._executor_url}: {len(self._environment_by_worker) - len(silent_workers)} workers"
            return f"{description}; without an answer: {', '.join(silent_workers)}" if silent_workers else description

    async def __aenter__(self) -> Self:
        self._cluster_loss = asyncio.get_running_loop().create_future()
        self._own_environment = _describe_environment(self._reader_config.ocr_engine)
        try:
            await self._connect_and_check(parse_scheduler_address(self._executor_url))
        except BaseException:
            await self._close()
            raise
        self._watch_task = asyncio.create_task(self._watch_cluster())
        return self

    async def _connect_and_check(self, address: str) -> None:
        try:
            await self._connect(address)
            await self._wait_for_worker()
            await self._check_environments()
        except EvalkitError:
            raise
        except Exception as error:  # noqa: BLE001 - Dask raises anything if it is lost, hangs or is no scheduler
            raise UsageError(
                f"the Dask scheduler at {self._executor_url} does not answer ({type(error).__name__})",
                code="EXECUTOR-UNREACHABLE",
                remedy="Start the scheduler (dask scheduler) and check the port; with TLS, check Dask's settings for TLS.",
            ) from None

    async def _connect(self, address: str) -> None:
        with dask.config.set(_NO_MESSAGE_LOG):
            self._client = Client(  # type: ignore[no-untyped-call]
                address, asynchronous=True, timeout=_REACH_TIMEOUT, set_as_default=False, name="evalkit"
            )
            async with self._limit_and_announce_wait(
                f"the Dask scheduler at {self._executor_url}", _REACH_TIMEOUT
            ):  # Dask itself has no limit for the handshake
                await self._client

    async def _wait_for_worker(self) -> None:
        try:
            async with self._limit_and_announce_wait(f"a worker of the Dask scheduler at {self._executor_url}"):
                await self._client.wait_for_workers(1)
                await self._count_workers_and_update_threads()
        except TimeoutError:
            raise self._create_no_worker_error() from None

    def _create_no_worker_error(self) -> UsageError:
        return UsageError(
            f"the Dask scheduler at {self._executor_url} has no worker that is ready",
            code="EXECUTOR-NO-WORKERS",
            remedy="Start a worker on each machine: dask worker with the scheduler's address. A worker that lacks memory is not ready.",
        )

    async def _check_environments(self) -> None:
        """Raise UsageError unless scheduler and workers run this program's version.

        A worker that is lost or hangs is only logged: the scheduler will give it up.
        """
        async with self._limit_and_announce_wait(f"the Dask scheduler at {self._executor_url}"):
            try:
                await self._client.run_on_scheduler(_disable_message_logs)
            except OSError:
                raise
            except Exception as error:  # noqa: BLE001 - its Python raises anything if it lacks our code
                raise UsageError(
                    f"the Dask scheduler at {self._executor_url} does not run the same evalkit as this machine ({type(error).__name__})",
                    code="EXECUTOR-DIFFERS",
                    remedy="Start scheduler and workers from an installation with the same lock file as this machine.",
                ) from None
            workers = list((await self._client.scheduler.identity())["workers"])
        self._environment_by_worker = dict(
            zip(workers, await asyncio.gather(*map(self._ask_worker_environment, workers)), strict=True)
        )
        for worker, environment in self._environment_by_worker.items():
            if environment is None:
                log.warning("the Dask worker %s does not answer: its tasks wait until Dask gives it up", worker)
            elif environment != self._own_environment:
                raise _create_mismatch_error(worker, self._own_environment, environment, UsageError)
        if not any(self._environment_by_worker.values()):
            raise self._create_no_worker_error()

    async def _ask_worker_environment(self, worker: str) -> dict[str, str] | str | None:
        """Return a worker's environment, or the name of the error's type.

        None if the worker is lost or hangs.
        """
        try:
            async with self._limit_and_announce_wait(f"the Dask worker {worker}"):
                answer_by_worker = await self._client.run(
                    _describe_worker, self._reader_config.ocr_engine, workers=[worker], on_error="return"
                )
        except TimeoutError:
            return None
        environment = answer_by_worker[worker]
        if isinstance(environment, CommClosedError):
            return None
        return environment if isinstance(environment, dict | str) else type(environment).__name__

    @asynccontextmanager
    async def _limit_and_announce_wait(
        self, awaited_description: str, max_seconds: float | None = None
    ) -> AsyncIterator[None]:
        """Log a long wait for the cluster, and raise TimeoutError at the time limit."""
        max_seconds = max_seconds or _CONNECT_TIMEOUT
        notice = asyncio.get_running_loop().call_later(
            _NOTICE_AFTER_SECONDS, log.warning, "waiting up to %d s for %s", max_seconds, awaited_description
        )
        try:
            async with asyncio.timeout(max_seconds):
                yield
        finally:
            notice.cancel()

    async def _count_workers_and_update_threads(self) -> int:
        scheduler_info = await self._client.scheduler.identity(n_workers=0)
        self._thread_count = max(scheduler_info["total_threads"], 1)
        return int(scheduler_info["n_workers"])

    async def _watch_cluster(self) -> None:
        last_seen = time.monotonic()
        while not self._cluster_loss.done():
            await asyncio.sleep(_POLL_SECONDS)
            if self._client.status in ("closing", "closed"):
                self._record_loss("the connection to the scheduler was lost")
                return
            with suppress(Exception):  # Dask raises anything if it is lost or hangs
                async with asyncio.timeout(_CONNECT_TIMEOUT):
                    if await self._count_workers_and_update_threads():
                        last_seen = time.monotonic()
            if time.monotonic() - last_seen > _NO_WORKER_TIMEOUT:
                self._record_loss(f"no worker, or no answer, for {_NO_WORKER_TIMEOUT:.0f} s")

    def _record_loss(self, reason: str) -> ExecutorError:
        """Record that the cluster is lost; return the error that waiting tasks raise."""
        if not self._cluster_loss.done():
            self._cluster_loss.set_result(
                ExecutorError(f"{self._executor_url}: {reason}", code="EXECUTOR-LOST", remedy=_RESTART_REMEDY)
            )
        return self._cluster_loss.result()

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch_task.cancel()
        await self._close()

    async def _close(self) -> None:
        self._local_pool.close()
        if self._client is not None:
            with suppress(OSError):
                async with asyncio.timeout(_NOTICE_AFTER_SECONDS):
                    await self._client.close()


def _get_file_size(path: Path) -> int:
    """Return a file's size in bytes; 0 if the file is not accessible.

    Reading the file reports the error.
    """
    try:
        return path.stat().st_size
    except OSError:
        return 0


def parse_scheduler_address(executor_url: str) -> str:
    """Convert ``dask://HOST:PORT`` to Dask's form, with TLS if Dask is set up for it.

    UsageError if the URL is not an address, or if documents would leave a private network unencrypted.
    """
    try:
        url_parts = urlsplit(executor_url)
        _ = url_parts.port  # raises ValueError if the port is out of range
    except ValueError:
        raise UsageError(
            f"{executor_url} is not an address",
            code="EXECUTOR-ADDRESS",
            remedy="Write the scheduler's address as dask://HOST:PORT.",
        ) from None
    has_tls = bool(dask.config.get("distributed.comm.tls.ca-file", None))
    if not has_tls and not is_local_host(url_parts.hostname or "", allow_private_network=True):
        raise UsageError(
            f"documents would be sent unencrypted to {url_parts.hostname}",
            code="EXECUTOR-ADDRESS",
            remedy="Set up Dask's TLS (DASK_DISTRIBUTED__COMM__TLS__CA_FILE and the related settings), or use a "
            "scheduler on this computer or at an IP address of a private network.",
        )
    return f"{'tls' if has_tls else 'tcp'}://{url_parts.netloc}"
