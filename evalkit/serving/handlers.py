"""Request handlers: login form, review page, libraries, kernels, error pages."""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Coroutine
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader
from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import allow_unauthenticated
from jupyter_server.base.handlers import APIHandler, FileFindHandler, JupyterHandler
from tornado import web
from tornado.iostream import StreamBufferFullError
from tornado.websocket import WebSocketClosedError
from typing_extensions import override
from voila.shutdown_kernel_handler import VoilaShutdownKernelHandler  # type: ignore[import-untyped]
from voila.tornado.handler import TornadoVoilaHandler  # type: ignore[import-untyped]
from voila.tornado.kernel_websocket_handler import VoilaKernelWebsocketHandler  # type: ignore[import-untyped]

from evalkit.serving.connection_limits import LimitedHTTPServer
from evalkit.serving.health import HealthCheck
from evalkit.serving.identity import NotOnReviewerRoster, ReviewerIdentityProvider
from evalkit.serving.kernel_manager import ReviewKernelManager
from evalkit.serving.login_sessions import LoginThrottle
from evalkit.serving.server_log import request_id

log = logging.getLogger("evalkit.serving")

_PLAIN_PAGES = Environment(loader=FileSystemLoader(Path(__file__).parent / "pages"), autoescape=True)

#: HTTP headers of every response.
RESPONSE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send no Origin header and the login fails
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_BASE_POLICY = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
#: Content security policy of login form and error pages: no scripts at all.
_SCRIPTLESS_POLICY = f"{_BASE_POLICY}; style-src 'unsafe-inline'; img-src data:"

_SENTENCES_BY_STATUS = {
    403: ("You may not open this page.", "Go back to the start page and log in."),
    404: ("There is no such page.", "Go back to the start page."),
    405: ("There is no such page.", "Go back to the start page."),
    503: (
        "There is no room for another review page.",
        "The server's limit of open pages is reached. Close pages that you do not need, or try again in a few minutes.",
    ),
    429: ("You have many review pages open.", "Close some of the tabs, then open this page again."),
}
_UNEXPECTED_ERROR_SENTENCES = (
    "Something went wrong in evalkit.",
    "Load the page again. Everything that was shown as saved is saved.",
)
_EXPIRED_FORM_SENTENCES = ("The login form has expired.", "Go back to the start page and log in again.")
_UNKNOWN_HOST_SENTENCES = (
    "evalkit cannot be reached at this address.",
    "Use the address that evalkit printed when it was started.",
)
#: Hash of the installed versions of the libraries that the browser loads; it is part of their addresses.
LIBRARY_VERSION = sha256(
    " ".join(version(name) for name in ("voila", "jupyterlab_widgets", "anywidget")).encode()
).hexdigest()[:16]
_LIBRARY_ADDRESSES = ("fullStaticUrl", "fullLabextensionsUrl")
_WEBSOCKET_PROTOCOL = "v1.kernel.websocket.jupyter.org"
#: Beginning of what Voilà sends while it waits for the kernel.
_HEARTBEAT = "<script>window.voila_heartbeat()"
_OFFSET_STRUCT = Struct("<Q")
_MAX_WEBSOCKETS_PER_KERNEL = 3
#: Maximum number of bytes that wait in the server for a page to read them: about a hundred page images.
_MAX_WRITE_BUFFER_BYTES = 64 << 20
#: Allowed number of offsets in a message: those of channel, header, parent, metadata, content and end, then those of a
#: widget's binary buffers.
_MIN_OFFSETS, _MAX_OFFSETS = 6, 1024
_LOGIN_ENDED_SENTENCE = "Your login has ended. Log in again. Everything that was shown as saved is saved."
_MAX_SHOWN_NAME_LENGTH = 60
_CONTROL_CHARACTER_PATTERN = re.compile(rb"[\x00-\x1f\x7f]")
_ADD_REVIEWER_REMEDY = (
    "Ask the administrator of evalkit to add you as a reviewer, or to correct the name of your login."
)


class _RequestIdHandler(JupyterHandler):
    """Base class of handlers: gives each request an id for error page and log."""

    @cached_property
    def error_id(self) -> str:
        """Random id of the request, shown on an error page and written to the log."""
        return secrets.token_hex(4)

    @property
    def kernel_manager(self) -> ReviewKernelManager:
        """The server's kernel manager, which holds the kernels of all open pages."""
        return cast("ReviewKernelManager", self.settings["kernel_manager"])

    @override
    async def prepare(self, **kwargs: Any) -> None:
        request_id.set(self.error_id)
        pending = super().prepare(**kwargs)
        if pending is not None:
            await pending
        if self.current_user:
            server: LimitedHTTPServer = self.settings["http_server"]
            server.exempt_connection(self.request.connection)


class HtmlHandler(_RequestIdHandler):
    """Base class of handlers whose response a person sees in the browser."""

    @property
    @override
    def content_security_policy(self) -> str:
        return _SCRIPTLESS_POLICY

    @override
    def set_default_headers(self) -> None:
        super().set_default_headers()
        self.clear_header("Server")
        for header_name, content in RESPONSE_HEADERS.items():
            self.set_header(header_name, content)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Send a page that explains the error and what to do.

        The page of an unexpected error also shows the request's id, which the log repeats.
        """
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else None
        sentence, remedy = _SENTENCES_BY_STATUS.get(status_code, _UNEXPECTED_ERROR_SENTENCES)
        if isinstance(error, NotOnReviewerRoster):
            sentence, remedy = (
                f"“{error.reviewer_name[:_MAX_SHOWN_NAME_LENGTH]}” is not the name of a reviewer here.",
                _ADD_REVIEWER_REMEDY,
            )
        elif status_code == 403 and not self.check_host():
            sentence, remedy = _UNKNOWN_HOST_SENTENCES
        elif status_code == 403 and self.request.path == f"{self.base_url}login":
            sentence, remedy = _EXPIRED_FORM_SENTENCES
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Content-Security-Policy", _SCRIPTLESS_POLICY)
        self.send_message_page(sentence, remedy, error_id="" if status_code in _SENTENCES_BY_STATUS else self.error_id)

    def send_message_page(self, sentence: str, remedy: str, error_id: str = "") -> None:
        """Send a page with a sentence, a remedy and a link to the start page."""
        self.finish(
            render_plain_page("message.html", what=sentence, remedy=remedy, error_id=error_id, start=self.base_url)
        )


class LoginFormHandler(HtmlHandler):
    """Base class of handlers that show the form for a reviewer's login code."""

    @property
    def reviewer_identity(self) -> ReviewerIdentityProvider:
        """The server's identity provider, which sets and reads login cookies."""
        return cast("ReviewerIdentityProvider", self.settings["identity_provider"])

    @property
    def next_url(self) -> str:
        """URL to open after the login: the requested page, or else the start page."""
        requested_url = self.get_argument("next", "")
        return (
            requested_url
            if requested_url.startswith(f"{self.base_url}?") and requested_url.isprintable()
            else self.base_url
        )

    def send_login_form(self, notice: str = "", refusal: str = "") -> None:
        """Send the login form with a notice or the reason why the last code was refused."""
        self.finish(
            render_plain_page(
                "login.html",
                notice=notice,
                refusal=refusal,
                next=self.next_url,
                xsrf=self.xsrf_form_html(),
                action=f"{self.base_url}login",
            )
        )


class LoginHandler(LoginFormHandler):
    """Handler of the login with a reviewer's code."""

    def initialize(self, throttle: LoginThrottle) -> None:
        """Store the throttle, which Tornado passes from the route's arguments."""
        self.throttle = throttle

    @allow_unauthenticated
    def get(self) -> None:
        """Send the login form; redirect to the requested page if already logged in."""
        if self.current_user:
            self.redirect(self.next_url)
        else:
            self.send_login_form(_LOGIN_ENDED_SENTENCE if self.reviewer_identity.has_login_cookie(self) else "")

    head = get

    @allow_unauthenticated
    def post(self) -> None:
        """Log in the reviewer with the typed code and redirect to the requested page.

        A wrong code is refused with 401, or with 429 if many wrong codes came from the same address.
        """
        (*_, code) = self.request.body_arguments.get("code", [b""])
        has_control_characters = _CONTROL_CHARACTER_PATTERN.search(code.strip())  # which get_argument would remove
        session = (
            None
            if has_control_characters
            else self.reviewer_identity.sessions.log_in_by_code(code.decode(errors="replace"))
        )
        if session is None:
            self._refuse_code(self.request.remote_ip or "")
        else:
            self.reviewer_identity.write_session_cookie(self, session)
            self.redirect(self.next_url)

    def _refuse_code(self, client_address: str) -> None:
        if seconds_to_wait := self.throttle.get_seconds_to_wait(client_address):
            self.set_status(429)
            self.set_header("Retry-After", str(seconds_to_wait))
        else:
            self.throttle.record_failure(client_address)
            if self.throttle.get_seconds_to_wait(client_address):
                log.warning("many wrong login codes from %s: further ones are refused for a while", client_address)
            self.set_status(401)
        self.send_login_form(refusal="This code is not valid. Check it, or ask for a new one.")


class LogoutHandler(LoginFormHandler):
    """Handler of the logout, which also ends the kernels of the login's open pages."""

    @allow_unauthenticated
    async def post(self) -> None:
        """Log out.

        A link or a form of another site cannot, because it does not know the page's XSRF token.
        """
        reviewer = self.current_user
        self.reviewer_identity.end_session_and_clear_cookie(self)  # first, so that no page opens while kernels end
        if reviewer is not None:
            await self.kernel_manager.end_kernels_of_session(reviewer.session_id)
        if reviewer is not None and reviewer.is_external_login:
            self.send_message_page(
                "Your review pages are closed.",
                "You are still logged in at the site that logged you in here. Log out there too.",
            )
        else:
            self.send_login_form("You are logged out.")


class ReviewPageHandler(HtmlHandler, TornadoVoilaHandler):  # type: ignore[misc]  # Voilà has no types
    """Handler of the review page: runs the notebook in a new kernel and renders it."""

    kernel_id = ""
    """The page's kernel, once the kernel manager starts it."""

    @cached_property
    def nonce(self) -> str:
        """Random nonce that allows the page's inline scripts in its security policy."""
        return secrets.token_urlsafe(18)

    @property
    @override
    def content_security_policy(self) -> str:
        # Allowed scripts: this server's libraries, the page's inline scripts (by nonce) and widgets, which anywidget
        # imports as blobs. Scripts have no ``unsafe-inline`` and no ``unsafe-eval``: an ``onerror`` in a document's text
        # could not run even if the text were shown as HTML. JupyterLab's libraries inject inline styles.
        return (
            f"{_BASE_POLICY}; script-src 'self' blob: 'nonce-{self.nonce}'; style-src 'self' 'unsafe-inline'; "
            "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'"
        )

    @cached_property
    def trouble(self) -> str:
        """HTML message that is shown if the page cannot be opened."""
        return render_plain_page("trouble.html", error_id=self.error_id)

    @override
    async def get_generator(self, path: str | None = None) -> AsyncIterator[str]:
        # A kernel that ends before it answers, for want of memory or because its port was taken meanwhile, would leave Voilà
        # sending heartbeats to a page that waits forever.
        async for html in super().get_generator(path):
            is_waiting = html.startswith(_HEARTBEAT)
            yield "\n" if is_waiting else html  # its script has no nonce
            if is_waiting and not await self.kernel_manager.is_kernel_alive(self.kernel_id):
                log.error("error %s: the kernel of a page ended before it answered", self.error_id)
                finish = f'<script nonce="{self.nonce}">window.voila_finish();</script>'
                yield f"{self.trouble}</div></main>{finish}</body></html>"
                return


def inject_template_context(handler: ReviewPageHandler, notebook: Any, cwd: str) -> None:  # noqa: ARG001 - Voilà's prelaunch_hook
    """Pass nonce and failure text to the page template; set the XSRF cookie."""
    notebook.metadata["evalkit"] = {"nonce": handler.nonce, "trouble": handler.trouble}
    # Reading the token sets its cookie. Without the cookie, a page could not report its closing and its kernel would stay.
    _ = handler.xsrf_token


def add_library_version(page_config: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Return Voilà's page configuration with the version in the libraries' addresses."""
    return {
        name: setting.replace("/voila/", f"/voila/{LIBRARY_VERSION}/") if name in _LIBRARY_ADDRESSES else setting
        for name, setting in page_config.items()
    }


class LibraryFileHandler(HtmlHandler, FileFindHandler):
    """Handler of scripts and styles of installed libraries; requires a login."""

    @override
    def set_headers(self) -> None:
        super().set_headers()
        # An address that contains the libraries' version always answers the same, so that a browser never asks again.
        is_permanent = f"/{LIBRARY_VERSION}/" in self.request.path
        self.set_header("Cache-Control", f"private, {'max-age=31536000, immutable' if is_permanent else 'no-cache'}")

    # Jupyter marks these methods as public for its login page; the overriding methods require a login.
    @override
    def get(self, path: str, include_body: bool = True) -> Coroutine[Any, Any, None]:
        return super().get(path, include_body)

    @override
    def head(self, path: str) -> Awaitable[None]:
        return self.get(path, include_body=False)


class _OwnKernelHandler(_RequestIdHandler):
    """Base class of handlers for one kernel; 404 if it belongs to another login."""

    @override
    async def prepare(self, **kwargs: Any) -> None:
        await super().prepare(**kwargs)
        if self.current_user and not self.kernel_manager.is_kernel_of_session(
            self.path_kwargs["kernel_id"], self.current_user.session_id
        ):
            raise web.HTTPError(404)


class KernelWebsocketHandler(_OwnKernelHandler, HtmlHandler, VoilaKernelWebsocketHandler):  # type: ignore[misc]  # Voilà has no types
    """Handler of the websocket between a page and its kernel.

    It passes only widget messages (Voilà's allowed_message_types).
    """

    @override
    async def prepare(self, **kwargs: Any) -> None:
        await super().prepare(**kwargs)
        offered_protocols = self.request.headers.get("Sec-WebSocket-Protocol", "").split(",")
        if _WEBSOCKET_PROTOCOL not in map(str.strip, offered_protocols):
            raise web.HTTPError(400)  # Voilà does not support Jupyter's other websocket protocol

    @override
    async def pre_get(self) -> None:
        # A websocket takes nine file descriptors. A page needs one websocket, but its previous one may still be closing.
        self._require_websocket_slot()
        await super().pre_get()
        self._require_websocket_slot()  # other websockets may have been opened meanwhile

    def _require_websocket_slot(self) -> None:
        if self.kernel_manager.count_websockets(self.kernel_id) >= _MAX_WEBSOCKETS_PER_KERNEL:
            raise web.HTTPError(429)

    @override
    async def open(self, kernel_id: str) -> None:
        self.ws_connection.stream.max_write_buffer_size = _MAX_WRITE_BUFFER_BYTES
        self.kernel_manager.kernel_id_by_websocket[self] = kernel_id
        await super().open(kernel_id)

    @override
    def on_close(self) -> None:
        self.kernel_manager.kernel_id_by_websocket.pop(self, None)
        super().on_close()

    @override
    def write_message(self, message: Any, binary: bool = False) -> Any:
        try:
            return super().write_message(message, binary)
        except StreamBufferFullError:  # the page opens a new websocket automatically
            log.warning("closed the websocket of a page that does not read its messages")
            self.ws_connection.stream.close()
        except WebSocketClosedError:
            pass  # the page was closed in this moment

    @override
    def on_message(self, ws_message: str | bytes) -> None:
        if is_well_formed_message(ws_message):  # Jupyter itself does not check the offsets in a message
            super().on_message(ws_message)
        else:
            self.close(1003)


def is_well_formed_message(message: str | bytes) -> bool:
    """Return True if a websocket message has valid offsets.

    A message consists of the number of offsets, the offsets (8 bytes each, little-endian) and the parts between them.
    """
    if isinstance(message, str) or len(message) < _OFFSET_STRUCT.size:
        return False
    (offset_count,) = _OFFSET_STRUCT.unpack_from(message)
    first_part_start = (1 + offset_count) * _OFFSET_STRUCT.size
    if not _MIN_OFFSETS <= offset_count <= _MAX_OFFSETS or len(message) < first_part_start:
        return False
    boundaries = [
        first_part_start,
        *(boundary for (boundary,) in _OFFSET_STRUCT.iter_unpack(message[_OFFSET_STRUCT.size : first_part_start])),
        len(message),
    ]
    return all(boundary <= next_boundary for boundary, next_boundary in pairwise(boundaries))


class KernelStateHandler(_OwnKernelHandler, HtmlHandler, APIHandler):
    """Handler of a kernel's state; its error 404 says if memory was exceeded."""

    @override
    def write_error(self, status_code: int, **kwargs: Any) -> None:
        # Asked only here: a request that was refused for its method or its user has none.
        if (
            status_code == 404
            and (reviewer := self.current_user) is not None
            and self.kernel_manager.is_ended_for_memory(self.path_kwargs["kernel_id"], reviewer.session_id)
        ):
            self.set_header("Content-Type", "application/json")
            self.finish(json.dumps({"reason": "memory"}))
        else:
            super().write_error(status_code, **kwargs)

    def get(self, kernel_id: str) -> None:
        """Send the kernel's state as JSON (Jupyter's kernel model)."""
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(self.kernel_manager.kernel_model(kernel_id)))  # type: ignore[no-untyped-call]


class ClosePageHandler(_OwnKernelHandler, HtmlHandler, VoilaShutdownKernelHandler):  # type: ignore[misc]  # Voilà has no types
    """Handler of the request that a page sends when it is closed."""

    async def post(self, kernel_id: str) -> None:
        """End the page's kernel after it has handled its last messages."""
        await self.kernel_manager.wait_until_idle(kernel_id)
        await ensure_async(super().post(kernel_id))


class HealthHandler(HtmlHandler):
    """Handler of the health check: state and version, without a login."""

    def initialize(self, health_check: HealthCheck) -> None:
        """Store the check, which Tornado passes from the route's arguments."""
        self.health_check = health_check

    @allow_unauthenticated
    async def get(self) -> None:
        """Send 200; 503 if output folder or database cannot be used."""
        is_usable = await self.health_check.is_output_usable()
        self.set_status(200 if is_usable else 503)
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps({"state": "ok" if is_usable else "unavailable", "version": version("evalkit")}))

    head = get


class NotFoundHandler(HtmlHandler):
    """Handler of all addresses without a route: answers 404."""

    def get(self) -> None:
        """Answer 404."""
        raise web.HTTPError(404)


def render_plain_page(template_name: str, **variables: Any) -> str:
    """Render a template of ``pages/`` (login form, message) to HTML."""
    return _PLAIN_PAGES.get_template(template_name).render(**variables)
