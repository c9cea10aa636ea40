"""Reading on many machines: a Dask cluster does what the local pool does, to the byte.

Workers get the bytes of a document, and open no path of this machine; each hands them to a reading process of its own, so
that a file that kills its reader, or takes too long, costs no worker. What asks others (language models, Document AI)
stays here: one journal, one set of limits. Dask logs the arguments of a task that raises, shows keys and types on its
dashboard, and may write what it holds to its disk: so tasks never raise, what they take and give is sealed, keys have
twelve digits of a hash, and what a worker writes only its user can read.
"""

from __future__ import annotations

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
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast
from urllib.parse import urlsplit

import dask
from distributed import Client, WorkerPlugin, get_worker
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker
from loky.process_executor import BrokenProcessPool

from evalkit.batch.reading import How, Read, Readers, read_within, timed
from evalkit.documents.file import load
from evalkit.documents.ingest import reader_with
from evalkit.errors import EvalkitError, ExecutorError, UsageError
from evalkit.http import is_near
from evalkit.logs import tell

if TYPE_CHECKING:
    from evalkit.batch.extracting import FieldWork
    from evalkit.classification.orchestrator import Outcome, RetryOrchestrator
    from evalkit.classification.result import UsageReport
    from evalkit.classification.schema import ClassificationOutput
    from evalkit.documents.bundle import DocumentBundle
    from evalkit.documents.ocr import EngineName
    from evalkit.extraction.schema import Extraction

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Documents under way at once, per thread of a worker: one at work, one that is there, one being fetched or written.
_IN_FLIGHT = 3
_LARGEST = 128 * 1024 * 1024
"""Bytes of a file that is sent: it passes through the scheduler's memory. Larger ones are read here."""
_LARGE, _LARGE_AT_ONCE = 16 * 1024 * 1024, 4
"""So many files of at least so many bytes are on their way at once."""
_CONNECT = 20
"""Seconds until the scheduler has answered, until a first worker is there, and until each has said what it is."""
_SILENT = 5
"""Seconds after which whoever waits for one of these is told so, and after which nobody waits for a scheduler's good-bye."""
_WATCH, _ALONE = 1.0, 60.0
"""Seconds between looks at the cluster; seconds without a worker after which nobody waits any longer."""
_AGAIN = "Start the scheduler and the workers, then run the same command again: what is finished is kept."


class Sealed:
    """What goes to a worker or comes back, as bytes that no log and no dashboard can look into."""

    def __init__(self, content: Any) -> None:
        """Sealed before it is handed to Dask, opened only in the process that needs it."""
        self._data = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)

    def opened(self) -> Any:
        """What was sealed."""
        return pickle.loads(self._data)  # noqa: S301 - by ourselves; the cluster runs our code, so it is trusted

    def __repr__(self) -> str:
        return "Sealed()"

    def __sizeof__(self) -> int:
        return len(self._data)


class _Fault(NamedTuple):
    """What a step raised that is no error of ours: where, and of which kind, without a word of the document."""

    kind: str
    where: str


class _Crash(NamedTuple):
    """The step ended the process that did it, twice."""


async def work(step: Sealed) -> Sealed:
    """A task: the function and its arguments, done in a process of this worker. It raises nothing."""
    ocr, expected, function, *arguments = step.opened()
    try:
        if (ours := _once_described(ocr)) != expected:  # a worker that came after the run had begun
            return Sealed(_differs(get_worker().address, expected, ours, ExecutorError))
        processes = await _processes()
        return Sealed(await processes.apply(function, *arguments))
    except BrokenProcessPool:
        return Sealed(_Crash())
    except EvalkitError as error:
        return Sealed(error)
    except Exception as error:  # noqa: BLE001 - Dask would log it with all that the task was given
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Sealed(_Fault(type(error).__name__, where.name))


_pool: Readers | None = None
"""The processes of this worker."""


async def _processes() -> Readers:
    global _pool  # noqa: PLW0603 - tasks share nothing else, and a process for each would cost half a second
    if _pool is None:
        os.umask(0o077)
        # Dask starts workers so that they may have no children. They may: ours end with their parent.
        multiprocessing.current_process().daemon = False
        worker = get_worker()
        _pool = Readers(worker.state.nthreads, How(longest=0))
        await worker.plugin_add(_Ending(), name="evalkit")
    return _pool


class _Ending(WorkerPlugin):
    """Told by Dask when the worker ends: its processes do so first, or it would wait for them."""

    def teardown(self, worker: Any) -> None:  # noqa: ARG002 - the name is Dask's
        if _pool is not None:
            _pool.close()


def _described(ocr: EngineName) -> dict[str, str]:
    """What a worker would read and decide with; workers and this machine have to agree."""
    from evalkit.batch.runner import versions
    from evalkit.store import digest

    return {"reader": reader_with(ocr), "tables": digest(versions())}


#: On a worker, which ends before anything else is installed there, and would ask before every task.
_once_described = cache(_described)


_KEEPS_NOTHING = {"distributed.admin.low-level-log-length": 0}


def _keep_nothing(dask_scheduler: Any) -> None:
    """On the scheduler, which keeps for debugging the last thousand messages to each worker: documents of patients.

    What is on its way is not touched, and what comes later is not kept.
    """
    dask.config.set(_KEEPS_NOTHING)  # for workers that come later
    for stream in (*dask_scheduler.stream_comms.values(), *dask_scheduler.client_comms.values()):
        stream.recent_message_log = deque(maxlen=0)


def _differs(worker: str, ours: dict[str, str], theirs: dict[str, str] | str, kind: type[EvalkitError]) -> EvalkitError:
    if isinstance(theirs, dict):
        name = next(name for name in ours if ours[name] != theirs.get(name))
        what = f"has another {name}: {theirs.get(name)} instead of {ours[name]}"
    else:
        what = f"cannot do the work ({theirs})"
    return kind(
        f"the Dask worker {worker} {what}",
        code="EXECUTOR-DIFFERS",
        remedy="Install the same evalkit and the same OCR engine there, from the same lock file.",
    )


def _told(ocr: EngineName) -> dict[str, str] | str:
    """On a worker: as ``_described``, or the kind of the error. A worker that is lost is an error too, of Dask's."""
    try:
        return _described(ocr)
    except Exception as error:  # noqa: BLE001 - whatever is missing there
        return type(error).__name__


class Cluster:
    """An ``Executor`` of many machines."""

    def __init__(self, executor: str, how: How, *, workers: int, decides: bool) -> None:
        """``executor``: ``dask://HOST:PORT`` of the scheduler.

        ``workers``: processes of this machine, for what is not sent. ``decides``: documents are decided about on the
        workers too, and their fields read, because no language model is asked.
        """
        self._executor = executor
        self._how = how
        self._decides = decides
        self._here = Readers(workers, how)
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._threads = 1
        self._client: Any = None
        self._ours: dict[str, str] = {}
        self._answers: dict[str, dict[str, str] | str | None] = {}
        self._lost: asyncio.Future[ExecutorError]
        self._watching: asyncio.Task[None]

    @property
    def room(self) -> int:
        """See ``Executor``."""
        return self._threads * _IN_FLIGHT

    async def read(self, path: Path, *, doc_id: str, timestamp: str) -> Read:
        """See ``Executor``."""
        size = await asyncio.to_thread(_size, path)
        if self._how.documentai or size > _LARGEST:
            return await self._here.read(path, doc_id=doc_id, timestamp=timestamp)
        async with self._large if size >= _LARGE else nullcontext():  # before it is loaded: it is memory here, too
            data = await asyncio.to_thread(load, path)
            document = hashlib.sha256(data).hexdigest()
            done = self._done("read", document, read_within, self._how, path, doc_id, timestamp, data)
            return await timed(done, path.name, self._how)

    async def evaluate(self, orchestrator: RetryOrchestrator, bundle: DocumentBundle, supplied: Any) -> Outcome:
        """See ``Executor``."""
        return await self._about("decide", orchestrator.evaluate, bundle, supplied)

    async def extract(
        self, work: FieldWork, bundle: DocumentBundle, classification: ClassificationOutput | None
    ) -> tuple[tuple[Extraction, ...], UsageReport]:
        """See ``Executor``."""
        return await self._about("extract", work.extract, bundle, classification)

    async def _about(
        self,
        step: str,
        answer: Callable[[DocumentBundle, Any], Coroutine[Any, Any, T]],
        bundle: DocumentBundle,
        given: Any,
    ) -> T:
        """The answer about a document: on a worker, or here where a language model's journal is."""
        if self._decides:
            with suppress(BrokenProcessPool):  # then here, as without a cluster
                return await self._done(step, bundle.sha256, to_its_end, answer, bundle, given)
        return await answer(bundle, given)

    async def _done(self, step: str, document: str, function: Callable[..., T], *arguments: Any) -> T:
        """What the function makes of these on a worker, or here where workers were lost over it again and again.

        BrokenProcessPool where it ends the process that does it; what the function raises of ours; ExecutorError.
        """
        if self._lost.done():
            raise self._lost.result()
        if self._client.status != "running":  # what it had been given is lost, though it may yet find its way back
            raise self._ended("the scheduler was lost")
        # Never the same key twice: to Dask that would be one task, also of two runs.
        key = f"{step}-{document[:12]}-{secrets.token_hex(4)}"
        future = self._client.submit(work, Sealed(self._step(function, *arguments)), key=key, pure=False)
        answer = asyncio.ensure_future(future.result())
        try:
            await asyncio.wait({answer, self._lost}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise self._lost.result()
            made = answer.result().opened()
        except KilledWorker:
            tell(log, logging.WARNING, "workers were lost over it, so it is done here", document=document, step=step)
            return await self._here.apply(function, *arguments)
        except (FutureCancelledError, OSError):
            raise self._ended("the scheduler was lost") from None
        finally:
            answer.cancel()
            future.release()
        if isinstance(made, EvalkitError):
            raise made
        if isinstance(made, _Crash):
            raise BrokenProcessPool
        if isinstance(made, _Fault):
            raise RemoteFaultError(made.kind, made.where)
        return cast("T", made)

    def _step(self, function: Callable[..., T], *arguments: Any) -> tuple[Any, ...]:
        return self._how.ocr, self._ours, function, *arguments

    async def described(self) -> str:
        """Look for it, as a run would: how many workers, such as this machine, are there. UsageError as for a run."""
        async with self:
            silent = [worker for worker, told in self._answers.items() if told is None]
            found = f"{self._executor}: {len(self._answers) - len(silent)} workers"
            return f"{found}; without an answer: {', '.join(silent)}" if silent else found

    async def __aenter__(self) -> Self:
        self._lost = asyncio.get_running_loop().create_future()
        self._ours = _described(self._how.ocr)
        try:
            await self._open(address_of(self._executor))
        except BaseException:
            await self._close()
            raise
        self._watching = asyncio.create_task(self._watch())
        return self

    async def _open(self, address: str) -> None:
        """Have the scheduler's answer, a worker, and the word of all workers that they are such as this machine. UsageError."""
        try:
            await self._connect(address)
            await self._find_worker()
            await self._compare()
        except EvalkitError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever Dask makes of one that is lost, hangs or is no scheduler
            raise UsageError(
                f"the Dask scheduler at {self._executor} does not answer ({type(error).__name__})",
                code="EXECUTOR-UNREACHABLE",
                remedy="Start it (dask scheduler) and mind the port; with TLS, mind Dask's settings for it.",
            ) from None

    async def _connect(self, address: str) -> None:
        with dask.config.set(_KEEPS_NOTHING):
            self._client = Client(  # type: ignore[no-untyped-call]
                address, asynchronous=True, timeout=_CONNECT, set_as_default=False, name="evalkit"
            )
            async with self._waiting(f"the Dask scheduler at {self._executor}"):  # Dask waits for ever for its greeting
                await self._client

    async def _find_worker(self) -> None:
        try:
            async with self._waiting(f"a worker of the Dask scheduler at {self._executor}"):
                await self._client.wait_for_workers(1)
                await self._look()
        except TimeoutError:
            raise self._no_worker() from None

    def _no_worker(self) -> UsageError:
        return UsageError(
            f"the Dask scheduler at {self._executor} has no worker that is ready",
            code="EXECUTOR-NO-WORKERS",
            remedy="Start one on each machine: dask worker with the scheduler's address. One that lacks memory is not ready.",
        )

    async def _compare(self) -> None:
        """See that the scheduler runs this evalkit, and which workers do, such as this machine. UsageError.

        One that is lost or hangs keeps nobody from working with the others: the scheduler will give it up.
        """
        async with self._waiting(f"the Dask scheduler at {self._executor}"):
            try:
                await self._client.run_on_scheduler(_keep_nothing)
            except OSError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever its Python says of code that it does not have
                raise UsageError(
                    f"the Dask scheduler at {self._executor} does not run this evalkit ({type(error).__name__})",
                    code="EXECUTOR-DIFFERS",
                    remedy="Start it, like the workers, from the same lock file as this machine.",
                ) from None
            workers = list((await self._client.scheduler.identity())["workers"])
        self._answers = dict(zip(workers, await asyncio.gather(*map(self._asked, workers)), strict=True))
        for worker, told in self._answers.items():
            if told is None:
                log.warning("the Dask worker %s does not answer: what it is given waits until Dask gives it up", worker)
            elif told != self._ours:
                raise _differs(worker, self._ours, told, UsageError)
        if not any(self._answers.values()):
            raise self._no_worker()

    async def _asked(self, worker: str) -> dict[str, str] | str | None:
        """What it would read and decide with, or the kind of its error; None where it is lost or hangs."""
        try:
            async with self._waiting(f"the Dask worker {worker}"):
                answers = await self._client.run(_told, self._how.ocr, workers=[worker], on_error="return")
        except TimeoutError:
            return None
        told = answers[worker]
        if isinstance(told, CommClosedError):
            return None
        return told if isinstance(told, dict | str) else type(told).__name__

    @asynccontextmanager
    async def _waiting(self, what: str) -> AsyncIterator[None]:
        """For a step on the way to the cluster: who waits is told for ``what``, and TimeoutError ends it."""
        told = asyncio.get_running_loop().call_later(_SILENT, log.warning, "waiting up to %d s for %s", _CONNECT, what)
        try:
            async with asyncio.timeout(_CONNECT):
                yield
        finally:
            told.cancel()

    async def _look(self) -> int:
        """How many workers there are now."""
        seen = await self._client.scheduler.identity(n_workers=0)
        self._threads = max(seen["total_threads"], 1)
        return int(seen["n_workers"])

    async def _watch(self) -> None:
        """Follow the cluster as it grows and shrinks; nobody waits for ever for one that is gone."""
        seen = time.monotonic()
        while not self._lost.done():
            await asyncio.sleep(_WATCH)
            if self._client.status in ("closing", "closed"):
                self._ended("the scheduler was lost")
                return
            with suppress(Exception):  # whatever Dask makes of one that is lost or hangs: it has not answered
                async with asyncio.timeout(_CONNECT):
                    if await self._look():
                        seen = time.monotonic()
            if time.monotonic() - seen > _ALONE:
                self._ended(f"for {_ALONE:.0f} s it has had no worker, or not answered")

    def _ended(self, why: str) -> ExecutorError:
        """The one error of the run's end, for all who wait."""
        if not self._lost.done():
            self._lost.set_result(ExecutorError(f"{self._executor}: {why}", code="EXECUTOR-LOST", remedy=_AGAIN))
        return self._lost.result()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watching.cancel()
        await self._close()

    async def _close(self) -> None:
        self._here.close()
        if self._client is not None:
            with suppress(OSError):
                async with asyncio.timeout(_SILENT):
                    await self._client.close()


def _size(path: Path) -> int:
    """Of the file, in bytes; 0 where it cannot be seen, which ``load`` tells."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


class RemoteFaultError(Exception):
    """A defect that a document met on a worker."""


def to_its_end(
    answer: Callable[[DocumentBundle, Any], Coroutine[Any, Any, T]], bundle: DocumentBundle, given: Any
) -> T:
    """What comes of it, in a process of its own."""
    return asyncio.run(answer(bundle, given))


def address_of(executor: str) -> str:
    """The scheduler's address as Dask writes it: TLS where Dask is set up for it.

    UsageError where it is none, and where documents would leave the machine in clear for more than a private network.
    """
    try:
        parts = urlsplit(executor)
        _ = parts.port  # which has a range
    except ValueError:
        raise UsageError(
            f"{executor} is no address", code="EXECUTOR-ADDRESS", remedy="Write dask://HOST:PORT, the scheduler's."
        ) from None
    has_tls = bool(dask.config.get("distributed.comm.tls.ca-file", None))
    if not has_tls and not is_near(parts.hostname or "", private=True):
        raise UsageError(
            f"documents would go to {parts.hostname} in clear",
            code="EXECUTOR-ADDRESS",
            remedy="Set up Dask's TLS (DASK_DISTRIBUTED__COMM__TLS__CA_FILE and the others), or name this computer or, by "
            "its number, one in a private network.",
        )
    return f"{'tls' if has_tls else 'tcp'}://{parts.netloc}"
