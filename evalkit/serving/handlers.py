"""What the server answers: the login form, the page, its libraries, its kernel, and friendly refusals."""

from __future__ import annotations

import json
import logging
import secrets
from functools import cache
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader
from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import allow_unauthenticated
from jupyter_server.base.handlers import APIHandler, FileFindHandler, JupyterHandler
from tornado import web
from tornado.iostream import StreamBufferFullError
from tornado.websocket import WebSocketClosedError
from voila.shutdown_kernel_handler import VoilaShutdownKernelHandler  # type: ignore[import-untyped]
from voila.tornado.handler import TornadoVoilaHandler  # type: ignore[import-untyped]
from voila.tornado.kernel_websocket_handler import VoilaKernelWebsocketHandler  # type: ignore[import-untyped]

from evalkit.serving.identity import NotOnRoster
from evalkit.serving.log import request_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

    from evalkit.serving.identity import ReviewerIdentity
    from evalkit.serving.kernels import ReviewKernels
    from evalkit.serving.throttle import Throttle

log = logging.getLogger("evalkit.serving")

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer browsers send no Origin, and the login fails
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer."""

_CLOSED = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
_PLAIN_POLICY = f"{_CLOSED}; style-src 'unsafe-inline'; img-src data:"
"""Of login form and error pages: no script at all."""

_WORDS = {
    403: ("This is not open to you.", "Go back to the start page and log in."),
    404: ("There is no such page.", "Go back to the start page."),
    405: ("There is no such page.", "Go back to the start page."),
    503: (
        "There is no room for another review page.",
        "As many are open as this server holds. Close those that you do not need, or try again in a few minutes.",
    ),
    429: ("You have many review pages open.", "Close some of the tabs, then open this page again."),
}
_OTHER = ("Something went wrong on our side.", "Load the page again; what was shown as saved is saved.")
_OLD_FORM = ("The login form was too old.", "Go back to the start page and log in again.")
_STRANGE_HOST = ("evalkit does not answer to this address.", "Use the one that it printed when it was started.")
_PROTOCOL = "v1.kernel.websocket.jupyter.org"
_NUMBER = Struct("<Q")
_MOST_WEBSOCKETS = 3
_MOST_UNREAD = 64 << 20
"""Bytes that wait in the server for one page to read them: some hundred pictures of pages."""
_LEAST_OFFSETS, _MOST_OFFSETS = 6, 1024
"""Of channel, header, parent, metadata, content and their end; beyond them of what a widget sends in bytes."""
_LOGIN_ENDED = "Your login has ended. Log in again; what was shown as saved is saved."
_LONGEST_NAME = 60
_ASK = "Ask whoever runs evalkit here to add this name, or to correct the one that is sent."


def page_policy(nonce: str) -> str:
    """The content security policy of the review page.

    Scripts are the libraries of this server, the page's own (by nonce) and widgets, which anywidget imports as blobs.
    There is no ``unsafe-inline`` and no ``unsafe-eval``: an ``onerror`` in a document's text could not run even if it
    were shown as HTML. Styles are injected by JupyterLab's libraries.
    """
    return (
        f"{_CLOSED}; script-src 'self' blob: 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'"
    )


class _Request(JupyterHandler):
    """Knows its request by an id."""

    @property
    def error_id(self) -> str:
        """What an error page shows and the log repeats."""
        if not hasattr(self, "_error_id"):
            self._error_id = secrets.token_hex(4)
        return self._error_id

    async def prepare(self, **given: Any) -> None:
        """Before every method."""
        request_id.set(self.error_id)
        answer = super().prepare(**given)
        if answer is not None:
            await answer


class Friendly(_Request):
    """An answer that a person sees."""

    @property
    def content_security_policy(self) -> str:
        """Of this page."""
        return _PLAIN_POLICY

    def set_default_headers(self) -> None:
        """On every answer."""
        super().set_default_headers()
        self.clear_header("Server")
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def write_error(self, status_code: int, **given: Any) -> None:
        """One sentence of what is, one of what to do; where something failed, the id by which the log knows it."""
        error = given["exc_info"][1] if "exc_info" in given else None
        what, remedy = _WORDS.get(status_code, _OTHER)
        if isinstance(error, NotOnRoster):
            what, remedy = f"“{error.name[:_LONGEST_NAME]}” is not the name of a reviewer here.", _ASK
        elif status_code == 403 and not self.check_host():
            what, remedy = _STRANGE_HOST
        elif status_code == 403 and self.request.path == f"{self.base_url}login":
            what, remedy = _OLD_FORM
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Content-Security-Policy", _PLAIN_POLICY)
        self.show(what, remedy, error_id="" if status_code in _WORDS else self.error_id)

    def show(self, what: str, remedy: str, error_id: str = "") -> None:
        """A page of two sentences, with the way back."""
        self.finish(render("message.html", what=what, remedy=remedy, error_id=error_id, start=self.base_url))


class LoginPage(Friendly):
    """Knows where a login leads to, and shows the form that takes a reviewer's code."""

    @property
    def identity(self) -> ReviewerIdentity:
        """Who is who."""
        identity: ReviewerIdentity = self.settings["identity_provider"]
        return identity

    @property
    def next_page(self) -> str:
        """Where to go after the login: the page that was asked for, never another site."""
        wanted = self.get_argument("next", "")
        return wanted if wanted.startswith(f"{self.base_url}?") and wanted.isprintable() else self.base_url

    def show_form(self, notice: str = "", refusal: str = "") -> None:
        """The form, with a sentence above it: of what has happened, or of why it was not accepted."""
        self.finish(
            render(
                "login.html",
                notice=notice,
                refusal=refusal,
                next=self.next_page,
                xsrf=self.xsrf_form_html(),
                action=f"{self.base_url}login",
            )
        )


class Login(LoginPage):
    """Logging in."""

    def initialize(self, throttle: Throttle) -> None:
        """Arguments of the route."""
        self.throttle = throttle

    @allow_unauthenticated
    def get(self) -> None:
        """The form."""
        if self.current_user:
            self.redirect(self.next_page)
        else:
            self.show_form(_LOGIN_ENDED if self.identity.has_cookie(self) else "")

    head = get

    @allow_unauthenticated
    def post(self) -> None:
        """A code was typed."""
        address = self.request.remote_ip or ""
        if wait := self.throttle.wait(address):
            self.set_status(429)
            self.set_header("Retry-After", str(wait))
            self.show_form(refusal=f"Too many wrong codes. Try again in {wait} seconds.")
            return
        session = self.identity.sessions.begin(self.get_body_argument("code", ""))
        if session is None:
            self.throttle.failed(address)
            log.warning("a wrong code was typed")
            self.set_status(401)
            self.show_form(refusal="This code is not known. Check it, or ask for a new one.")
            return
        self.identity.log_in(self, session)
        self.redirect(self.next_page)


class Logout(LoginPage):
    """Ends the login and the kernels of its pages."""

    @allow_unauthenticated
    async def get(self) -> None:
        """Log out. Another site's page must not do it for somebody: browsers say where they were led from."""
        if self.request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise web.HTTPError(403)
        kernels: ReviewKernels = self.settings["kernel_manager"]
        reviewer = self.current_user
        self.identity.log_out(self)  # first: no page opens on it while the others end
        if reviewer is not None:
            await kernels.end_session(reviewer.session_id)
        if reviewer is not None and reviewer.by_other:
            self.show(
                "Your review pages are closed.", "You are still logged in where you logged in: log out there too."
            )
        else:
            self.show_form("You are logged out.")


class ReviewPage(Friendly, TornadoVoilaHandler):  # type: ignore[misc]  # Voilà has no types
    """The notebook, run and rendered."""

    @property
    def nonce(self) -> str:
        """Marks the page's own scripts."""
        if not hasattr(self, "_nonce"):
            self._nonce = secrets.token_urlsafe(18)
        return self._nonce

    @property
    def content_security_policy(self) -> str:
        """Of this page."""
        return page_policy(self.nonce)


def dress(handler: ReviewPage, notebook: Any, cwd: str) -> None:  # noqa: ARG001 - Voilà's prelaunch_hook
    """What the template needs to know of the request."""
    notebook.metadata["evalkit"] = {"nonce": handler.nonce, "error_id": handler.error_id}
    # Reading it sets its cookie. A page without it cannot tell the server that it was closed, and leaves its kernel.
    _ = handler.xsrf_token


class LibraryFiles(Friendly, FileFindHandler):
    """Scripts and styles of the installed libraries. Nothing of ours, and nothing without a login."""

    def set_extra_headers(self, path: str) -> None:  # noqa: ARG002 - the signature is Tornado's
        """The one answer that browsers may keep, if they ask whether it is still good."""
        self.set_header("Cache-Control", "private, no-cache")

    # Jupyter marks its own methods as open to all, for its login page; overriding them closes them.
    def get(self, path: str, include_body: bool = True) -> Coroutine[Any, Any, None]:
        """A file."""
        return super().get(path, include_body)

    def head(self, path: str) -> Awaitable[None]:
        """Its headers."""
        return self.get(path, include_body=False)


class _OwnKernel(_Request):
    """The kernel of one's own page; all others do not exist."""

    async def prepare(self, **given: Any) -> None:
        """Before every method."""
        await super().prepare(**given)
        kernels: ReviewKernels = self.settings["kernel_manager"]
        if self.current_user and not kernels.is_of(self.path_kwargs["kernel_id"], self.current_user.session_id):
            raise web.HTTPError(404)


class Channels(_OwnKernel, Friendly, VoilaKernelWebsocketHandler):  # type: ignore[misc]  # Voilà has no types
    """The websocket between page and kernel. Only widget messages pass (Voilà's allowed_message_types)."""

    async def prepare(self, **given: Any) -> None:
        """Before the websocket is opened: of its two protocols Voilà understands only one, which all its pages speak."""
        await super().prepare(**given)
        offered = self.request.headers.get("Sec-WebSocket-Protocol", "").split(",")
        if _PROTOCOL not in map(str.strip, offered):
            raise web.HTTPError(400)

    async def pre_get(self) -> None:
        """Before it is opened. A websocket takes nine descriptors of the server, and a page needs one: while the next is
        opened the last may still be closing.
        """
        self._count()
        await super().pre_get()
        self._count()  # others may have been opened meanwhile

    def _count(self) -> None:
        kernels: ReviewKernels = self.settings["kernel_manager"]
        if kernels.websockets(self.kernel_id) >= _MOST_WEBSOCKETS:
            raise web.HTTPError(429)

    async def open(self, kernel_id: str) -> None:
        """It is opened."""
        self.ws_connection.stream.max_write_buffer_size = _MOST_UNREAD
        await super().open(kernel_id)

    def write_message(self, message: Any, binary: bool = False) -> Any:
        """The kernel says something. Who does not read what was asked for is hung up on; a page asks again by itself."""
        try:
            return super().write_message(message, binary)
        except StreamBufferFullError:
            log.warning("a page does not read what is sent to it: its websocket was closed")
            self.ws_connection.stream.close()
        except WebSocketClosedError:
            pass  # it has ended just now

    def on_message(self, ws_message: str | bytes) -> None:
        """The page says something. Who says what has no end is not listened to: Jupyter believes any number in it."""
        if is_whole(ws_message):
            super().on_message(ws_message)
        else:
            self.close(1003)


def is_whole(message: str | bytes) -> bool:
    """Whether it has the form of the protocol: how many offsets there are, they themselves, then the parts between them.
    All numbers have 8 bytes, little end first.
    """
    if isinstance(message, str) or len(message) < _NUMBER.size:
        return False
    (count,) = _NUMBER.unpack_from(message)
    start = (1 + count) * _NUMBER.size
    if not _LEAST_OFFSETS <= count <= _MOST_OFFSETS or len(message) < start:
        return False
    ends = [start, *(end for (end,) in _NUMBER.iter_unpack(message[_NUMBER.size : start])), len(message)]
    return all(end <= following for end, following in pairwise(ends))


class KernelState(_OwnKernel, Friendly, APIHandler):
    """The page asks whether its kernel is there, and what became of it."""

    def write_error(self, status_code: int, **given: Any) -> None:
        """Of a kernel that is gone the reason, if it was ended here."""
        if status_code == 404 and self._has_run_out():
            self.set_header("Content-Type", "application/json")
            self.finish(json.dumps({"reason": "memory"}))
        else:
            super().write_error(status_code, **given)

    def _has_run_out(self) -> bool:
        kernels: ReviewKernels = self.settings["kernel_manager"]
        user = self.current_user
        return user is not None and kernels.ran_out(self.path_kwargs["kernel_id"], user.session_id)

    def get(self, kernel_id: str) -> None:
        """Its state."""
        kernels: ReviewKernels = self.settings["kernel_manager"]
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(kernels.kernel_model(kernel_id)))  # type: ignore[no-untyped-call]


class ClosePage(_OwnKernel, Friendly, VoilaShutdownKernelHandler):  # type: ignore[misc]  # Voilà has no types
    """The page says that it was closed."""

    async def post(self, kernel_id: str) -> None:
        """End its kernel, once what was pressed last is done."""
        kernels: ReviewKernels = self.settings["kernel_manager"]
        await kernels.settled(kernel_id)
        await ensure_async(super().post(kernel_id))


class Nothing(Friendly):
    """All other addresses."""

    def get(self) -> None:
        """There is nothing."""
        raise web.HTTPError(404)


def render(name: str, **values: Any) -> str:
    """One of the plain pages."""
    return _pages().get_template(name).render(**values)


@cache
def _pages() -> Environment:
    return Environment(loader=FileSystemLoader(Path(__file__).parent / "pages"), autoescape=True)
