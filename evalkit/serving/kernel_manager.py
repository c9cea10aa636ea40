"""Kernels of open pages: which login owns a kernel, and when it ends."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Mapping
from subprocess import DEVNULL
from typing import Any
from uuid import uuid4

from jupyter_core.utils import ensure_async
from jupyter_server import CallContext
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from psutil import Error as NoProcess
from psutil import Process
from tornado.ioloop import IOLoop, PeriodicCallback
from tornado.web import HTTPError
from tornado.websocket import WebSocketHandler
from typing_extensions import override

from evalkit.errors import EvalkitError
from evalkit.serving.identity import ReviewerIdentityProvider, ReviewServerPart
from evalkit.serving.login_sessions import LoginSession
from evalkit.serving.page import HUB_VARIABLE_PREFIX, LOG_FD_VARIABLE, PAGE_MEMORY_VARIABLE
from evalkit.serving.warm_kernel import WarmKernel, register_warm_kernel_provisioner

log = logging.getLogger("evalkit.serving")

#: Cookie with the kernel id of the page that the browser is leaving or reloading; the page template sets it.
LEFT_PAGE_COOKIE = "evalkit-left"
#: Maximum number of open pages per login; each page is a process of some 100 MB.
MAX_PAGES_PER_LOGIN = 6
#: Milliseconds between two checks of the kernels' memory, and of the logins that opened their pages.
_MEMORY_CHECK_MILLISECONDS, _LOGIN_CHECK_MILLISECONDS = 1000, 2000
_MAX_REMEMBERED_KERNELS = 1000
#: Maximum seconds to wait for a closed page's kernel to handle its last messages, and seconds between two checks.
_MAX_IDLE_WAIT_SECONDS, _IDLE_POLL_SECONDS = 5.0, 0.1
#: Seconds to wait, while a page opens, before the next kernel is preloaded.
_PAGE_OPENING_SECONDS = 5
#: Maximum seconds to wait for JupyterHub to confirm a login; kernels are checked one after the other.
_CONFIRMATION_TIMEOUT = 5


class ReviewKernelManager(ReviewServerPart, AsyncMappingKernelManager):
    """Kernel manager that records the login of each kernel and enforces limits."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self.session_id_by_kernel_id: dict[str, str] = {}
        """Session id of the login that opened each kernel's page, from before the kernel starts until it is told to
        end."""
        self._kernels_ended_for_memory: deque[tuple[str, str]] = deque(maxlen=_MAX_REMEMBERED_KERNELS)
        register_warm_kernel_provisioner()
        self.warm_kernel = WarmKernel()
        self._warm_start_timer: object | None = None
        self._log_fd = os.dup(2)
        self._memory_watch = PeriodicCallback(self.end_oversized_kernels, _MEMORY_CHECK_MILLISECONDS)
        self._login_watch = PeriodicCallback(self.end_kernels_of_ended_sessions, _LOGIN_CHECK_MILLISECONDS)
        self.kernel_id_by_websocket: dict[WebSocketHandler, str] = {}
        """All open websockets."""

    def is_kernel_of_session(self, kernel_id: str, session_id: str) -> bool:
        """Return True if the kernel runs and this login opened its page."""
        return kernel_id in self and self.session_id_by_kernel_id.get(kernel_id) == session_id

    async def is_kernel_alive(self, kernel_id: str) -> bool:
        """Return True if the kernel's process runs."""
        return kernel_id in self and await ensure_async(self.get_kernel(kernel_id).is_alive())

    def count_websockets(self, kernel_id: str) -> int:
        """Return the number of open websockets to a kernel."""
        return int(self._kernel_connections.get(kernel_id, 0))

    def is_ended_for_memory(self, kernel_id: str, session_id: str) -> bool:
        """Return True if this login's kernel was killed for exceeding ``page_memory_mb``."""
        return (kernel_id, session_id) in self._kernels_ended_for_memory

    def end_oversized_kernels(self) -> None:
        """Kill the kernels that use more memory than ``page_memory_mb``.

        They are killed at once, because a second later they could use all memory. Reviews shown as saved are on disk.
        """
        for kernel_id, session_id in list(self.session_id_by_kernel_id.items()):
            pid = getattr(self.get_kernel(kernel_id).provisioner, "pid", None) if kernel_id in self else None
            if pid is None:  # the kernel is starting
                continue
            try:
                process = Process(pid)
                used_mb = process.memory_info().rss >> 20
                if used_mb > self.review_settings.page_memory_mb:
                    process.kill()  # NoProcess if the kernel has just ended by itself
                    self._kernels_ended_for_memory.append((kernel_id, session_id))
                    log.warning(
                        "ended a page that used %d MB of memory: the limit is the setting page_memory_mb", used_mb
                    )
            except (NoProcess, OSError):  # the kernel has ended or cannot be checked; go on with the others
                continue

    async def _async_start_kernel(self, **kwargs: Any) -> str:
        handler = CallContext.get(CallContext.JUPYTER_HANDLER)
        session_id = handler.current_user.session_id
        # The kernel's standard error is closed: ipykernel writes tracebacks there, whose messages may quote a document.
        kwargs.update(
            stdout=DEVNULL, stderr=DEVNULL, pass_fds=(self._log_fd,), env=self._build_kernel_environment(kwargs["env"])
        )
        if self.review_settings.page_memory_mb and not self._memory_watch.is_running():
            self._memory_watch.start()
        if not self._login_watch.is_running():
            self._login_watch.start()
        handler.kernel_id = kernel_id = str(uuid4())
        self.session_id_by_kernel_id[kernel_id] = session_id  # a starting kernel counts towards the limits
        try:
            await self.end_kernel_to_make_room(session_id, handler.get_cookie(LEFT_PAGE_COOKIE, ""))
            # Preloading keeps a processor busy, so it waits until no page has been opened for some seconds.
            self._cancel_warm_start()
            self._warm_start_timer = IOLoop.current().call_later(_PAGE_OPENING_SECONDS, self.start_warm_kernel)
            return await super()._async_start_kernel(kernel_id=kernel_id, **kwargs)
        except BaseException:
            self.session_id_by_kernel_id.pop(kernel_id, None)
            raise

    start_kernel = _async_start_kernel  # type: ignore[assignment]  # as the base class does

    def start_warm_kernel(self) -> None:
        """Start a spare kernel, so that pages open faster; log it if that fails."""
        # The specification's variables must be set at the start, because malloc reads them before anything is loaded.
        kernel_spec = self.kernel_spec_manager.get_kernel_spec("python3")  # type: ignore[union-attr]  # the server's
        environ = {**os.environ, **kernel_spec.env}
        try:
            self.warm_kernel.start_unless_running(kernel_spec.argv, self._build_kernel_environment(environ))
        except OSError as error:
            log.warning("cannot start a kernel in reserve (%s)", error.strerror)

    def stop_warm_kernel(self) -> None:
        """Stop the spare kernel, and cancel its scheduled start."""
        self._cancel_warm_start()
        self.warm_kernel.stop()

    def _cancel_warm_start(self) -> None:
        if self._warm_start_timer is not None:
            IOLoop.current().remove_timeout(self._warm_start_timer)

    def _build_kernel_environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Build a kernel's environment variables, without those of JupyterHub."""
        inherited = {name: value for name, value in environ.items() if not name.startswith(HUB_VARIABLE_PREFIX)}
        return {
            **inherited,
            LOG_FD_VARIABLE: str(self._log_fd),
            PAGE_MEMORY_VARIABLE: str(self.review_settings.page_memory_mb),
        }

    async def wait_until_idle(self, kernel_id: str) -> None:
        """Wait until a kernel is idle, at most five seconds.

        Ending a busy kernel would drop its waiting messages.
        """
        idle_polls = 0
        for _ in range(round(_MAX_IDLE_WAIT_SECONDS / _IDLE_POLL_SECONDS)):
            await asyncio.sleep(_IDLE_POLL_SECONDS)
            if kernel_id not in self:
                return
            # A kernel is idle for a moment between two messages, so it must be idle twice in a row.
            idle_polls = (
                idle_polls + 1 if getattr(self.get_kernel(kernel_id), "execution_state", "idle") == "idle" else 0
            )
            if idle_polls == 2:
                return

    async def end_kernels_of_session(self, session_id: str) -> None:
        """End the kernels of all pages that a login opened, each when it is idle."""
        kernel_ids = set(filter(self.__contains__, self._list_kernel_ids(session_id)))
        for websocket in [key for key, kernel_id in self.kernel_id_by_websocket.items() if kernel_id in kernel_ids]:
            websocket.close(1008)  # "policy violation"; the kernel still handles the messages that have arrived
        await asyncio.gather(*map(self._end_kernel_when_idle, kernel_ids))

    async def end_kernels_of_ended_sessions(self) -> None:
        """End the pages of logins that expired, or whose code was changed or removed."""
        try:
            ended_session_ids = await asyncio.to_thread(
                self.sessions.list_ended_sessions, list(self.session_id_by_kernel_id.values())
            )
        except EvalkitError:
            return  # the roster cannot be read now; each request that needs it fails with an error in the log
        await asyncio.gather(*map(self.end_kernels_of_session, ended_session_ids))

    async def cull_kernel_if_idle(self, kernel_id: str) -> None:
        """End a kernel whose login ended, or whose page was closed some time ago."""
        session = self.sessions.find_valid_session(self.session_id_by_kernel_id.get(kernel_id, ""))
        if session is not None and not await self._is_login_confirmed(session):
            await self.end_kernels_of_session(session.session_id)
        else:
            await super().cull_kernel_if_idle(kernel_id)  # type: ignore[no-untyped-call]

    async def _is_login_confirmed(self, session: LoginSession) -> bool:
        identity_provider: ReviewerIdentityProvider = self.parent.identity_provider
        try:
            return await asyncio.wait_for(identity_provider.is_login_confirmed(session), _CONFIRMATION_TIMEOUT)
        except (HTTPError, TimeoutError):
            return True  # if the hub does not answer, keep the page

    @override
    def remove_kernel(self, kernel_id: str) -> Any:
        self.session_id_by_kernel_id.pop(kernel_id, None)
        return super().remove_kernel(kernel_id)

    async def _end_kernel_when_idle(self, kernel_id: str) -> None:
        self.session_id_by_kernel_id.pop(kernel_id, None)  # at once, so that it is not chosen again to make room
        await self.wait_until_idle(kernel_id)
        if kernel_id in self:
            # Shut down, not killed: the review screen may have to save a draft.
            await self.shutdown_kernel(kernel_id)  # type: ignore[no-untyped-call]

    def _list_kernel_ids(self, session_id: str) -> list[str]:
        return [
            kernel_id
            for kernel_id, owner_session_id in self.session_id_by_kernel_id.items()
            if owner_session_id == session_id
        ]

    async def end_kernel_to_make_room(self, session_id: str, replaced_kernel_id: str = "") -> None:
        """End one of the login's unused kernels if a new page exceeds the limit of pages.

        ``replaced_kernel_id``: the kernel of the page that is being reloaded, if any; it still has a connection.

        Pages that are reloaded quickly leave kernels without a connection: the oldest of these is ended first. A kernel
        of another login is never ended, because its page may be just opening. If no kernel can be ended: HTTPError 429
        if the login's limit is exceeded, 503 if the server's limit is.
        """
        own_kernel_ids = self._list_kernel_ids(session_id)
        is_over_login_limit = len(own_kernel_ids) > MAX_PAGES_PER_LOGIN
        if not is_over_login_limit and not 0 < self.review_settings.pages < len(self.session_id_by_kernel_id):
            return
        closed_kernel_ids = [kernel_id for kernel_id in own_kernel_ids if self._kernel_connections.get(kernel_id) == 0]
        if not closed_kernel_ids and replaced_kernel_id in own_kernel_ids:
            closed_kernel_ids = [replaced_kernel_id]
        if not closed_kernel_ids:
            raise HTTPError(429 if is_over_login_limit else 503)
        await self._end_kernel_when_idle(closed_kernel_ids[0])
