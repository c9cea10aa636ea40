"""Reading on many machines: a Dask cluster does what the local pool does, to the byte.

Workers get the bytes of a document, never a path of this machine; each hands them to a reading process of its own, so
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
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast
from urllib.parse import urlsplit

import dask
from distributed import Client, WorkerPlugin, get_worker
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker
from loky.process_executor import BrokenProcessPool

from evalkit.batch.reading import How, Read, Readers, read_within, timed
from evalkit.documents.file import load
from evalkit.documents.ingest import reader_with
from evalkit.errors import EvalkitError, ExecutorError, UsageError
from evalkit.http import is_near
from evalkit.logs import tell

if TYPE_CHECKING:
    from evalkit.classification.orchestrator import Outcome, RetryOrchestrator
    from evalkit.documents.bundle import DocumentBundle
    from evalkit.documents.ocr import EngineName

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Documents under way at once, per thread of a worker: one at work, one that is there, one being fetched or written.
_IN_FLIGHT = 3
_LARGEST = 128 * 1024 * 1024
"""Bytes of a file that is sent: it passes through the scheduler's memory. Larger ones are read here."""
_LARGE, _LARGE_AT_ONCE = 16 * 1024 * 1024, 4
"""So many files of at least so many bytes are on their way at once."""
_CONNECT = 20
"""Seconds until the scheduler has answered, and until a first worker is there."""
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
            _pool.__exit__(None, None, None)


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


def _differs(worker: str, ours: dict[str, str], theirs: Any, kind: type[EvalkitError]) -> EvalkitError:
    if isinstance(theirs, dict):
        name = next(name for name in ours if ours[name] != theirs.get(name))
        what = f"has another {name}: {theirs.get(name)} instead of {ours[name]}"
    else:
        what = f"cannot do the work ({type(theirs).__name__})"
    return kind(
        f"the Dask worker {worker} {what}",
        code="EXECUTOR-DIFFERS",
        remedy="Install the same evalkit and the same OCR engine there, from the same lock file.",
    )


class Cluster:
    """An ``Executor`` of many machines."""

    def __init__(self, executor: str, how: How, *, workers: int, decides: bool) -> None:
        """``executor``: ``dask://HOST:PORT`` of the scheduler.

        ``workers``: processes of this machine, for what is not sent. ``decides``: documents are decided about on the
        workers too, because no language model is asked.
        """
        self._executor = executor
        self._how = how
        self._decides = decides
        self._here = Readers(workers, how)
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._threads = 1
        self._client: Any = None
        self._ours: dict[str, str] = {}
        self._lost: asyncio.Future[ExecutorError]
        self._watching: asyncio.Task[None]

    @property
    def room(self) -> int:
        """See ``Executor``."""
        return self._threads * _IN_FLIGHT

    async def read(self, path: Path, *, doc_id: str, timestamp: str) -> Read:
        """See ``Executor``."""
        data = None if self._how.documentai else await asyncio.to_thread(_to_send, path)
        if data is None:
            return await self._here.read(path, doc_id=doc_id, timestamp=timestamp)
        document = hashlib.sha256(data).hexdigest()
        done = partial(self._done, "read", document, read_within, self._how, path, doc_id, timestamp, data)
        if len(data) < _LARGE:
            return await timed(done(), path.name, self._how)
        async with self._large:
            return await timed(done(), path.name, self._how)

    async def evaluate(self, orchestrator: RetryOrchestrator, bundle: DocumentBundle, supplied: Any) -> Outcome:
        """See ``Executor``."""
        if self._decides:
            with suppress(BrokenProcessPool):  # then here, as without a cluster
                return await self._done("decide", bundle.sha256, decide, orchestrator, bundle, supplied)
        return await orchestrator.evaluate(bundle, supplied)

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

    async def __aenter__(self) -> Self:
        self._lost = asyncio.get_running_loop().create_future()
        address = address_of(self._executor)
        try:
            with dask.config.set(_KEEPS_NOTHING):
                self._client = await Client(  # type: ignore[no-untyped-call]
                    address, asynchronous=True, timeout=_CONNECT, set_as_default=False, name="evalkit"
                )
        except (OSError, TypeError, RuntimeError, ValueError) as error:
            raise UsageError(
                f"the Dask scheduler at {self._executor} does not answer ({type(error).__name__})",
                code="EXECUTOR-UNREACHABLE",
                remedy="Start it (dask scheduler) and mind the port; with TLS, mind Dask's settings for it.",
            ) from None
        try:
            await self._begin()
        except BaseException:
            await self._client.close()
            raise
        self._watching = asyncio.create_task(self._watch())
        return self

    async def _begin(self) -> None:
        """Wait for a worker, and see that all of them are such as this machine. UsageError."""
        until = time.monotonic() + _CONNECT
        while not (await self._look())["n_workers"]:
            if time.monotonic() > until:
                raise UsageError(
                    f"the Dask scheduler at {self._executor} has no workers",
                    code="EXECUTOR-NO-WORKERS",
                    remedy="Start one on each machine: dask worker with the scheduler's address.",
                )
            await asyncio.sleep(0.2)
        try:
            await self._client.run_on_scheduler(_keep_nothing)
        except Exception as error:  # noqa: BLE001 - whatever its Python says of code that it does not have
            raise UsageError(
                f"the Dask scheduler at {self._executor} does not run this evalkit ({type(error).__name__})",
                code="EXECUTOR-DIFFERS",
                remedy="Start it, like the workers, from the same lock file as this machine.",
            ) from None
        self._ours = ours = _described(self._how.ocr)
        told = await self._client.run(_described, self._how.ocr, on_error="return")
        for worker, theirs in sorted(told.items()):
            if theirs != ours and not isinstance(theirs, OSError):  # that one is gone meanwhile
                raise _differs(worker, ours, theirs, UsageError)

    async def _look(self) -> Any:
        """What the scheduler says of itself, without the workers."""
        seen = await self._client.scheduler.identity(n_workers=0)
        self._threads = max(seen["total_threads"], 1)
        return seen

    async def _watch(self) -> None:
        """Follow the cluster as it grows and shrinks; nobody waits for ever for one that is gone."""
        seen = time.monotonic()
        while not self._lost.done():
            await asyncio.sleep(_WATCH)
            if self._client.status in ("closing", "closed"):
                self._ended("the scheduler was lost")
                return
            with suppress(OSError):
                if (await self._look())["n_workers"]:
                    seen = time.monotonic()
            if time.monotonic() - seen > _ALONE:
                self._ended(f"there has been no worker for {_ALONE:.0f} s")

    def _ended(self, why: str) -> ExecutorError:
        """The one error of the run's end, for all who wait."""
        if not self._lost.done():
            self._lost.set_result(ExecutorError(f"{self._executor}: {why}", code="EXECUTOR-LOST", remedy=_AGAIN))
        return self._lost.result()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watching.cancel()
        with suppress(OSError, asyncio.TimeoutError):
            await self._client.close()
        self._here.__exit__(kind, error, trace)


def _to_send(path: Path) -> bytes | None:
    """The file's bytes; None where there are too many to be sent. DocumentError as ``load``."""
    with suppress(OSError):
        if path.stat().st_size > _LARGEST:
            return None
    return load(path)


class RemoteFaultError(Exception):
    """A defect that a document met on a worker."""


def decide(orchestrator: RetryOrchestrator, bundle: DocumentBundle, supplied: Any) -> Outcome:
    """As ``orchestrator.evaluate``, in a process of its own."""
    return asyncio.run(orchestrator.evaluate(bundle, supplied))


def address_of(executor: str) -> str:
    """The scheduler's address as Dask writes it: TLS where Dask is set up for it.

    UsageError where documents would leave the machine in clear for more than a private network.
    """
    parts = urlsplit(executor)
    has_tls = bool(dask.config.get("distributed.comm.tls.ca-file", None))
    if not has_tls and not is_near(parts.hostname or "", private=True):
        raise UsageError(
            f"documents would go to {parts.hostname} in clear",
            code="EXECUTOR-ADDRESS",
            remedy="Set up Dask's TLS (DASK_DISTRIBUTED__COMM__TLS__CA_FILE and the others), or name this computer or, by "
            "its number, one in a private network.",
        )
    return f"{'tls' if has_tls else 'tcp'}://{parts.netloc}"
