"""One kernel per open page: whose it is, and when it ends."""

from __future__ import annotations

import os
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from jupyter_server import CallContext
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.web import HTTPError

from evalkit.serving.page import LOG_DESCRIPTOR

if TYPE_CHECKING:
    from evalkit.serving.sessions import Sessions

MOST = 6
"""Pages that one login may have open: each is a process of some 100 MB."""


class ReviewKernels(AsyncMappingKernelManager):
    """The kernels, each known by the login that opened its page."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)  # type: ignore[no-untyped-call]
        self._sessions_of: dict[str, str] = {}
        self._log = os.dup(2)

    @property
    def sessions(self) -> Sessions:
        """The server's logins."""
        sessions: Sessions = self.parent.sessions  # type: ignore[union-attr]  # the server makes it, as its child
        return sessions

    def is_of(self, kernel_id: str, session_id: str) -> bool:
        """Whether this login opened the page of this kernel."""
        return kernel_id in self and self._sessions_of.get(kernel_id) == session_id

    async def _async_start_kernel(self, **given: Any) -> str:
        session_id = CallContext.get(CallContext.JUPYTER_HANDLER).current_user.session_id
        await self._make_room(session_id)
        # The kernel's standard error is closed: ipykernel writes tracebacks there, whose messages may quote a document.
        given.update(stdout=DEVNULL, stderr=DEVNULL, pass_fds=(self._log,))
        given["env"] = {**given["env"], LOG_DESCRIPTOR: str(self._log)}
        kernel_id = str(uuid4())
        self._sessions_of[kernel_id] = session_id  # before it is there: it counts while it starts
        try:
            return await super()._async_start_kernel(kernel_id=kernel_id, **given)
        except BaseException:
            self._sessions_of.pop(kernel_id, None)
            raise

    start_kernel = _async_start_kernel  # type: ignore[assignment]  # as the base class does

    async def end_session(self, session_id: str) -> None:
        """End the kernels of a login."""
        for kernel_id in filter(self.__contains__, self._kernels_of(session_id)):
            await self._end(kernel_id)

    async def cull_kernel_if_idle(self, kernel_id: str) -> None:
        """End the kernels of closed pages (as configured), and of logins that ended while the page stayed open."""
        if self.sessions.find(self._sessions_of.get(kernel_id, "")) is None:
            await self._end(kernel_id)
        else:
            await super().cull_kernel_if_idle(kernel_id)  # type: ignore[no-untyped-call]

    def remove_kernel(self, kernel_id: str) -> Any:
        """Forget a kernel that has ended."""
        self._sessions_of.pop(kernel_id, None)
        return super().remove_kernel(kernel_id)

    async def _end(self, kernel_id: str) -> None:
        # Not at once: the workbench may have a draft to write.
        await self.shutdown_kernel(kernel_id)  # type: ignore[no-untyped-call]

    def _kernels_of(self, session_id: str) -> list[str]:
        return [kernel_id for kernel_id, owner in self._sessions_of.items() if owner == session_id]

    async def _make_room(self, session_id: str) -> None:
        """A page reloaded in haste leaves kernels behind without telling: the oldest goes first."""
        mine = self._kernels_of(session_id)
        if len(mine) < MOST:
            return
        closed = [kernel_id for kernel_id in mine if self._kernel_connections.get(kernel_id) == 0]
        if not closed:
            raise HTTPError(429)
        await self._end(closed[0])
