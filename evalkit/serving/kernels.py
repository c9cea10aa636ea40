"""One kernel per open page: whose it is, and when it ends."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Mapping
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from jupyter_server import CallContext
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from psutil import Error as NoProcess
from psutil import Process
from tornado.ioloop import IOLoop, PeriodicCallback
from tornado.web import HTTPError

from evalkit.serving.page import HUB, LOG_DESCRIPTOR, MEMORY_MB
from evalkit.serving.reserve import Reserve, register

if TYPE_CHECKING:
    from evalkit.serving.identity import ReviewerIdentity
    from evalkit.serving.sessions import Session, Sessions
    from evalkit.settings import Review

log = logging.getLogger("evalkit.serving")

LEFT = "evalkit-left"
"""The cookie by which a page that is being left says which kernel is its own; the template sets it."""
MOST = 6
"""Pages that one login may have open: each is a process of some 100 MB."""
_LOOKED_EVERY = 1000
"""Milliseconds between two looks at what the pages use."""
_REMEMBERED = 1000
_SETTLES, _CALM = 5.0, 0.1
"""Seconds at most for the last presses on a page that was closed; and between two looks whether they are done."""
_OPENED = 5
"""Seconds after which a page has opened, on a machine that has much to do."""
_ANSWERED = 5
"""Seconds for whoever let somebody in to say whether they still would: the kernels are looked at one after the other."""


class ReviewKernels(AsyncMappingKernelManager):
    """The kernels, each known by the login that opened its page."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)  # type: ignore[no-untyped-call]
        self._sessions_of: dict[str, str] = {}
        self._ran_out: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED)
        register()
        self.reserve = Reserve()
        self._filling: object | None = None
        self._log = os.dup(2)
        self._watch = PeriodicCallback(self.end_too_large, _LOOKED_EVERY)

    @property
    def sessions(self) -> Sessions:
        """The server's logins."""
        sessions: Sessions = self.parent.sessions  # type: ignore[union-attr]  # the server makes it, as its child
        return sessions

    def is_of(self, kernel_id: str, session_id: str) -> bool:
        """Whether this login opened the page of this kernel."""
        return kernel_id in self and self._sessions_of.get(kernel_id) == session_id

    def websockets(self, kernel_id: str) -> int:
        """How many are open to a kernel."""
        count: int = self._kernel_connections.get(kernel_id, 0)
        return count

    @property
    def review(self) -> Review:
        """How many pages there may be, and how large."""
        review: Review = self.parent.review  # type: ignore[union-attr]  # as above
        return review

    def ran_out(self, kernel_id: str, session_id: str) -> bool:
        """Whether this login's kernel was ended because it used more memory than a page may."""
        return (kernel_id, session_id) in self._ran_out

    def end_too_large(self) -> None:
        """End the kernels that use more memory than a page may. At once: in the next second it could be all there is,
        and what was shown as saved is on the disk.
        """
        for kernel_id, session_id in list(self._sessions_of.items()):
            pid = self._pid(kernel_id)
            if pid is None:
                continue
            try:
                process = Process(pid)
                used = process.memory_info().rss >> 20
                if used > self.review.page_memory_mb:
                    process.kill()  # the others are still to be looked at, if it has just ended by itself
                    self._ran_out.append((kernel_id, session_id))
                    log.warning("a page used %d MB of memory and was ended: page_memory_mb is less", used)
            except (NoProcess, OSError):  # it has ended, or cannot be looked at: the others can
                continue

    def _pid(self, kernel_id: str) -> int | None:
        """None while the kernel starts."""
        pid: int | None = getattr(self.get_kernel(kernel_id).provisioner, "pid", None) if kernel_id in self else None
        return pid

    async def _async_start_kernel(self, **given: Any) -> str:
        asking = CallContext.get(CallContext.JUPYTER_HANDLER)
        session_id = asking.current_user.session_id
        # The kernel's standard error is closed: ipykernel writes tracebacks there, whose messages may quote a document.
        given.update(stdout=DEVNULL, stderr=DEVNULL, pass_fds=(self._log,), env=self._known(given["env"]))
        if self.review.page_memory_mb and not self._watch.is_running():
            self._watch.start()
        kernel_id = str(uuid4())
        self._sessions_of[kernel_id] = session_id  # before it is there: it counts while it starts
        try:
            await self._make_room(session_id, asking.get_cookie(LEFT, ""))
            self._fill_later()
            return await super()._async_start_kernel(kernel_id=kernel_id, **given)
        except BaseException:
            self._sessions_of.pop(kernel_id, None)
            raise

    start_kernel = _async_start_kernel  # type: ignore[assignment]  # as the base class does

    def fill_reserve(self) -> None:
        """Have a kernel in reserve. Where there cannot be one, pages open as well, only later."""
        # The specification's part too: malloc reads it before anything is loaded.
        specification = self.kernel_spec_manager.get_kernel_spec("python3")  # type: ignore[union-attr]  # the server's
        environ = {**os.environ, **specification.env}
        try:
            self.reserve.fill(specification.argv, self._known(environ))
        except OSError as error:
            log.warning("no kernel can be kept in reserve (%s)", error.strerror)

    def end_reserve(self) -> None:
        """Have none any more."""
        self._fill_not()
        self.reserve.end()

    def _fill_later(self) -> None:
        """When the page that opens now has opened, and no other has come meanwhile: to load takes a processor."""
        self._fill_not()
        self._filling = IOLoop.current().call_later(_OPENED, self.fill_reserve)

    def _fill_not(self) -> None:
        if self._filling is not None:
            IOLoop.current().remove_timeout(self._filling)

    def _known(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What a kernel gets to know of that environment, and what the server tells each."""
        known = {name: value for name, value in environ.items() if not name.startswith(HUB)}
        return {**known, LOG_DESCRIPTOR: str(self._log), MEMORY_MB: str(self.review.page_memory_mb)}

    async def settled(self, kernel_id: str) -> None:
        """Wait until a kernel does nothing any more, but not for ever: to end it passes over what waits."""
        calm = 0
        for _ in range(round(_SETTLES / _CALM)):
            await asyncio.sleep(_CALM)
            if kernel_id not in self:
                return
            # Between two messages it does nothing for a moment.
            calm = calm + 1 if getattr(self.get_kernel(kernel_id), "execution_state", "idle") == "idle" else 0
            if calm == 2:
                return

    async def end_session(self, session_id: str) -> None:
        """End the kernels of a login."""
        await asyncio.gather(*map(self._end, filter(self.__contains__, self._kernels_of(session_id))))

    async def cull_kernel_if_idle(self, kernel_id: str) -> None:
        """End the kernels of closed pages (as configured), and of logins that ended while the page stayed open."""
        session = self.sessions.find(self._sessions_of.get(kernel_id, ""))
        if session is None or not await self._is_upheld(session):
            await self._end(kernel_id)
        else:
            await super().cull_kernel_if_idle(kernel_id)  # type: ignore[no-untyped-call]

    async def _is_upheld(self, session: Session) -> bool:
        identity: ReviewerIdentity = self.parent.identity_provider  # type: ignore[union-attr]  # as above
        try:
            return await asyncio.wait_for(identity.stands_by(session), _ANSWERED)
        except (HTTPError, TimeoutError):
            return True  # who cannot be asked has not said no: nobody loses their page by that

    def remove_kernel(self, kernel_id: str) -> Any:
        """Forget a kernel that has ended."""
        self._sessions_of.pop(kernel_id, None)
        return super().remove_kernel(kernel_id)

    async def _end(self, kernel_id: str) -> None:
        self._sessions_of.pop(kernel_id, None)  # it makes room once, however many pages are opened meanwhile
        await self.settled(kernel_id)
        if kernel_id in self:
            # Not at once: the workbench may have a draft to write.
            await self.shutdown_kernel(kernel_id)  # type: ignore[no-untyped-call]

    def _kernels_of(self, session_id: str) -> list[str]:
        return [kernel_id for kernel_id, owner in self._sessions_of.items() if owner == session_id]

    async def _make_room(self, session_id: str, left: str = "") -> None:
        """For one more page of this login, which is counted already. ``left`` is the kernel of the page that it replaces,
        if it does: a page that is loaded again is there until the new one comes.

        A page reloaded in haste leaves kernels behind without telling: the oldest goes first. Another login's never does:
        it may be that of a page that is only just opening.
        """
        mine = self._kernels_of(session_id)
        has_many = len(mine) > MOST
        if not has_many and not 0 < self.review.pages < len(self._sessions_of):
            return
        closed = [kernel_id for kernel_id in mine if self._kernel_connections.get(kernel_id) == 0]
        if not closed and left in mine:
            closed = [left]
        if not closed:
            raise HTTPError(429 if has_many else 503)
        await self._end(closed[0])
