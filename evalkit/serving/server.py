"""The web server: Voilà with evalkit's login and only evalkit's routes.

Voilà's list of routes is replaced, not extended, so a newer version of Voilà cannot add routes. There is no route to
files: page images reach the browser as bytes of a widget, and the notebook is the only file in its folder.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tornado.ioloop import IOLoop
from traitlets.config import Config
from typing_extensions import override
from voila.app import Voila  # type: ignore[import-untyped]

from evalkit.review.roster import ReviewerRoster
from evalkit.serving import server_log
from evalkit.serving.connection_limits import LimitedHTTPServer
from evalkit.serving.handlers import (
    LIBRARY_VERSION,
    ClosePageHandler,
    HealthHandler,
    KernelStateHandler,
    KernelWebsocketHandler,
    LibraryFileHandler,
    LoginHandler,
    LogoutHandler,
    NotFoundHandler,
    ReviewPageHandler,
    add_library_version,
    inject_template_context,
)
from evalkit.serving.health import HealthCheck
from evalkit.serving.identity import REVIEWER_HEADER, ReviewerIdentityProvider
from evalkit.serving.kernel_manager import ReviewKernelManager
from evalkit.serving.login_sessions import LoginSessions, LoginThrottle
from evalkit.serving.page import read_log_format
from evalkit.store import open_output_folder
from evalkit.store.change_chain import has_unfinished_command

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from jupyterhub.services.auth import HubOAuth

    from evalkit.settings import ReviewServerSettings

#: Front-end extensions that evalkit's widgets need; no others are loaded or served.
FRONTEND_EXTENSIONS = ("@voila-dashboards/widgets-manager8", "@jupyter-widgets/jupyterlab-manager", "anywidget")

#: Seconds that a kernel stays alive without a connection to its page, such as when a laptop is closed or in a tunnel.
_CLOSED_PAGE_SECONDS = 120
_KERNEL_ID_PATTERN = r"(?P<kernel_id>\w+-\w+-\w+-\w+-\w+)"
#: Maximum number of bytes in one message from a page. Messages to a page, such as images, are not limited.
_MAX_MESSAGE_BYTES = 8 << 20


def serve_notebook(
    listener: socket.socket,
    notebook: Path,
    *,
    output: str,
    public_url: str,
    review_settings: ReviewServerSettings,
    url_prefix: str,
) -> None:
    """Serve the notebook until SIGINT, SIGTERM or SIGHUP, then end all kernels.

    ``output``: the output folder; ``public_url``: the TLS proxy's address, or empty; ``url_prefix``: the prefix set by
    JupyterHub, which then logs reviewers in, or empty.
    """
    server_log.configure_server_log(read_log_format())
    config = _build_config()
    if url_prefix:
        from evalkit.serving.jupyterhub_login import HubIdentityProvider

        config.Voila.identity_provider_class = HubIdentityProvider
    server = ReviewServer.instance(
        config=config,
        base_url=url_prefix or "/",
        log=logging.getLogger("voila"),
        notebook_path=str(notebook),
        config_file_paths=[],  # ignore a voila.json in the current folder, which could allow access to files
        connection_dir_root=str(notebook.parent.parent),  # private folder for the keys of the kernels' sockets
        open_browser=False,
    )
    server.listener, server.public_host = listener, urlsplit(public_url).hostname
    output_folder = open_output_folder(output, os.environ.get("EVALKIT_DATABASE"))
    # Cache for a second: opening a page takes a hundred requests, and each would read the roster from the bucket.
    roster = ReviewerRoster(output_folder, cache_seconds=1 if isinstance(output_folder.root, str) else 0)
    server.sessions, server.review_settings = LoginSessions(roster), review_settings
    server.health_check = HealthCheck(output_folder)
    server.is_hub_service = bool(url_prefix)
    server.initialize([])
    server.start()
    if has_unfinished_command(output_folder):
        server.log.error("The chain of changes lacks what was saved last, until the next run.")
        sys.exit(1)


class ReviewServer(Voila):  # type: ignore[misc]  # Voilà has no types
    """Standalone Voilà application that serves one notebook with evalkit's login."""

    listener: socket.socket
    public_host: str | None
    """Host name of the TLS proxy in front of the server; None without one."""
    sessions: LoginSessions
    review_settings: ReviewServerSettings
    """The settings section ``[review]``: limits for pages, trusted proxies."""
    health_check: HealthCheck
    is_hub_service: bool
    """True if JupyterHub logs reviewers in."""

    @cached_property
    def hub(self) -> HubOAuth:
        """OAuth client of the JupyterHub that started this server."""
        from jupyterhub.services.auth import HubOAuth

        return HubOAuth()

    @override
    def init_settings(self) -> dict[str, Any]:
        xsrf_cookie_options = {"samesite": "Lax", "secure": self.public_host is not None, "path": self.base_url}
        port = self.listener.getsockname()[1]
        settings: dict[str, Any] = super().init_settings()
        identity_provider: ReviewerIdentityProvider = settings["identity_provider"]
        identity_provider.cookie_name = f"evalkit-{port}"  # servers on other ports of the host share the cookies
        identity_provider.secure_cookie = self.public_host is not None
        return {
            **settings,
            "allow_remote_access": False,  # check the Host header, against DNS rebinding
            "local_hostnames": ["localhost", *filter(None, [self.public_host])],
            "xsrf_cookie_kwargs": xsrf_cookie_options,
            "websocket_max_message_size": _MAX_MESSAGE_BYTES,
            # On a slow line; the XSRF token of the login form differs in each response, so compression does not reveal it.
            "compress_response": True,
            "websocket_compression_options": {"compression_level": 3},
            "log_function": lambda handler: None,  # no access log; failures are logged where they happen
        }

    @override
    def init_handlers(self) -> list[Any]:
        # Routes are matched against the undecoded URL, and some proxies send an @ as %40.
        extensions_pattern = "|".join(map(re.escape, FRONTEND_EXTENSIONS)).replace("@", "(?:@|%40)")
        page_arguments = {
            "notebook_path": "sme_review.ipynb",
            "template_paths": self.template_paths,
            "config": self.config,
            "voila_configuration": self.voila_configuration,
        }
        routes: list[Any] = [
            (r"", ReviewPageHandler, page_arguments),
            *self._list_login_routes(),
            (r"logout", LogoutHandler),
            (r"health", HealthHandler, {"health_check": self.health_check}),
            (rf"voila/(?:{LIBRARY_VERSION}/)?static/(.*)", LibraryFileHandler, {"path": self.static_paths}),
            (
                rf"voila/(?:{LIBRARY_VERSION}/)?labextensions/((?:{extensions_pattern})/static/.*)",
                LibraryFileHandler,
                {"path": self.labextensions_path},
            ),
            (rf"voila/api/shutdown/{_KERNEL_ID_PATTERN}", ClosePageHandler),
            (rf"api/kernels/{_KERNEL_ID_PATTERN}", KernelStateHandler),
            (rf"api/kernels/{_KERNEL_ID_PATTERN}/channels", KernelWebsocketHandler),
        ]
        base_pattern = re.escape(self.base_url)
        return [
            *((base_pattern + route, *handler_and_arguments) for route, *handler_and_arguments in routes),
            (r".*", NotFoundHandler),
        ]

    def _list_login_routes(self) -> list[Any]:
        if not self.is_hub_service:
            return [(r"login", LoginHandler, {"throttle": LoginThrottle()})]
        from evalkit.serving.jupyterhub_login import CALLBACK_PATH, HubCallbackHandler, HubLoginHandler

        return [(r"login", HubLoginHandler), (CALLBACK_PATH, HubCallbackHandler)]

    @override
    def listen(self) -> None:
        self.listener.setblocking(False)
        server = self.app.settings["http_server"] = LimitedHTTPServer(
            self.app,
            has_proxy=self.public_host is not None,
            proxies=[str(proxy) for proxy in self.review_settings.proxies],
            max_message_bytes=_MAX_MESSAGE_BYTES,
        )
        server.add_socket(self.listener)
        self.ioloop = IOLoop.current()
        for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(signal_number) is not signal.SIG_IGN:  # nohup
                asyncio.get_event_loop().add_signal_handler(signal_number, self.ioloop.stop)
        self.ioloop.add_callback(self.kernel_manager.start_warm_kernel)
        try:
            self.ioloop.start()
        finally:
            self.kernel_manager.stop_warm_kernel()
            self.stop()


def _build_config() -> Config:
    return Config(
        {
            "Voila": {"identity_provider_class": ReviewerIdentityProvider},
            "VoilaConfiguration": {
                "template": "evalkit",
                "theme": "light",
                "http_keep_alive_timeout": 2,  # seconds after which it is seen that a starting kernel has ended
                "allow_template_override": "NO",
                "allow_theme_override": "NO",
                "http_header_envs": [REVIEWER_HEADER],
                "extension_allowlist": list(FRONTEND_EXTENSIONS),
                "multi_kernel_manager_class": ReviewKernelManager,
                "prelaunch_hook": inject_template_context,
                "page_config_hook": add_library_version,
            },
            "MappingKernelManager": {
                "cull_idle_timeout": _CLOSED_PAGE_SECONDS,
                "cull_interval": 15,
                "cull_busy": True,
                "buffer_offline_messages": False,  # do not keep images for a page that is closed
            },
            # No restarts: a restarted kernel would be empty behind a page that looks alive, which shows that its kernel ended.
            "KernelRestarter": {"restart_limit": 0},
            "ZMQChannelsWebsocketConnection": {"limit_rate": False},
            "KernelManager": {
                # Otherwise any account on this machine could connect to the kernels' sockets and read the pages.
                "transport_encryption": "required",
                "shutdown_wait_time": 10,  # an ending kernel may wait for the write lock to release its case
            },
        }
    )
