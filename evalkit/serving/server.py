"""The server: Voilà with our login, our routes and none of its own.

Voilà's list of routes is not extended but replaced, so that a newer Voilà cannot open one. There is no route to files:
page images reach the browser as bytes of a widget, and the notebook lies alone in its folder.
"""

from __future__ import annotations

import asyncio
import logging
import re
import signal
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from traitlets.config import Config
from voila.app import Voila  # type: ignore[import-untyped]

from evalkit.review.roster import Roster
from evalkit.serving import log
from evalkit.serving.handlers import (
    Channels,
    ClosePage,
    KernelState,
    LibraryFiles,
    Login,
    Logout,
    Nothing,
    ReviewPage,
    dress,
)
from evalkit.serving.identity import REVIEWER_HEADER, ReviewerIdentity
from evalkit.serving.kernels import ReviewKernels
from evalkit.serving.page import log_format
from evalkit.serving.sessions import Sessions
from evalkit.serving.throttle import Throttle
from evalkit.store import Files

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from jupyterhub.services.auth import HubOAuth

    from evalkit.settings import Review

EXTENSIONS = ("@voila-dashboards/widgets-manager8", "@jupyter-widgets/jupyterlab-manager", "anywidget")
"""The front-end extensions that our widgets need; others are neither loaded nor served."""

_CLOSED_PAGE = 120
"""Seconds that a kernel outlives the connection to its page: a laptop's lid, a train's tunnel."""
_KERNEL = r"(?P<kernel_id>\w+-\w+-\w+-\w+-\w+)"
_BIGGEST_MESSAGE = 8 << 20
"""Bytes that a page may send at once. Images go the other way and are not limited by it."""


def serve(
    listener: socket.socket, notebook: Path, *, output: str, public_url: str, review: Review, prefix: str
) -> None:
    """Serve the notebook below ``prefix`` until SIGINT, SIGTERM or SIGHUP, then end the kernels.

    A prefix is JupyterHub's: it says who is who then.
    """
    log.configure(log_format())
    config = _config()
    if prefix:
        from evalkit.serving.hub import HubIdentity

        config.Voila.identity_provider_class = HubIdentity
    server = ReviewServer.instance(
        config=config,
        base_url=prefix or "/",
        log=logging.getLogger("voila"),
        notebook_path=str(notebook),
        config_file_paths=[],  # a voila.json where the command was typed could open files
        connection_dir_root=str(notebook.parent.parent),  # keys of the kernels' sockets: private, gone at the end
        open_browser=False,
    )
    server.listener, server.public_host = listener, urlsplit(public_url).hostname
    files = Files(output)
    # A page is a hundred requests, and each would ask the bucket.
    remembered = 1 if isinstance(files.root, str) else 0
    server.sessions, server.review = Sessions(Roster(files), remembered=remembered), review
    server.is_of_hub = bool(prefix)
    server.initialize([])
    server.start()


class ReviewServer(Voila):  # type: ignore[misc]  # Voilà has no types
    """Standalone Voilà for one notebook."""

    listener: socket.socket
    public_host: str | None
    """The host of the TLS proxy before us, if there is one."""
    sessions: Sessions
    review: Review
    """How many pages there may be, and which proxy may say who the reviewer is."""
    is_of_hub: bool
    """Whether JupyterHub says who is who."""

    @cached_property
    def hub(self) -> HubOAuth:
        """The hub that has started this server; how it is asked stands in the environment."""
        from jupyterhub.services.auth import HubOAuth

        return HubOAuth()

    def init_settings(self) -> dict[str, Any]:
        """Settings of the Tornado application."""
        cookie = {"samesite": "Lax", "secure": self.public_host is not None, "path": self.base_url}
        port = self.listener.getsockname()[1]
        settings: dict[str, Any] = super().init_settings()
        identity: ReviewerIdentity = settings["identity_provider"]
        identity.cookie_name = f"evalkit-{port}"  # cookies know hosts, not ports
        identity.secure_cookie = self.public_host is not None
        return {
            **settings,
            "allow_remote_access": False,  # check the Host header: a stranger's page may have rebound its name to us
            "local_hostnames": ["localhost", *filter(None, [self.public_host])],
            "xsrf_cookie_kwargs": cookie,
            "websocket_max_message_size": _BIGGEST_MESSAGE,
            "log_function": lambda handler: None,  # failures are logged where they happen; addresses are not
        }

    def init_handlers(self) -> list[Any]:
        """All routes there are."""
        # Routes see addresses as they are sent, and some proxies send an @ as %40.
        extensions = "|".join(map(re.escape, EXTENSIONS)).replace("@", "(?:@|%40)")
        page = {
            "notebook_path": "sme_review.ipynb",
            "template_paths": self.template_paths,
            "config": self.config,
            "voila_configuration": self.voila_configuration,
        }
        routes: list[Any] = [
            (r"", ReviewPage, page),
            *self._login_routes(),
            (r"logout", Logout),
            (r"voila/static/(.*)", LibraryFiles, {"path": self.static_paths}),
            (rf"voila/labextensions/((?:{extensions})/static/.*)", LibraryFiles, {"path": self.labextensions_path}),
            (rf"voila/api/shutdown/{_KERNEL}", ClosePage),
            (rf"api/kernels/{_KERNEL}", KernelState),
            (rf"api/kernels/{_KERNEL}/channels", Channels),
        ]
        base = re.escape(self.base_url)
        return [*((base + route, *handler) for route, *handler in routes), (r".*", Nothing)]

    def _login_routes(self) -> list[Any]:
        if not self.is_of_hub:
            return [(r"login", Login, {"throttle": Throttle()})]
        from evalkit.serving.hub import CALLBACK, HubCallback, HubLogin

        return [(r"login", HubLogin), (CALLBACK, HubCallback)]

    def listen(self) -> None:
        """Serve on the inherited socket until told to stop."""
        self.listener.setblocking(False)
        # Only a proxy of our own may say from which address a request came.
        server = HTTPServer(self.app, xheaders=self.public_host is not None, max_body_size=_BIGGEST_MESSAGE)
        server.add_socket(self.listener)
        self.ioloop = IOLoop.current()
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(one) is not signal.SIG_IGN:  # nohup
                asyncio.get_event_loop().add_signal_handler(one, self.ioloop.stop)
        self.ioloop.add_callback(self.kernel_manager.fill_reserve)
        try:
            self.ioloop.start()
        finally:
            self.kernel_manager.end_reserve()
            self.stop()


def _config() -> Config:
    config = Config()
    voila = config.VoilaConfiguration
    voila.template, voila.theme = "evalkit", "light"
    voila.allow_template_override = voila.allow_theme_override = "NO"
    voila.http_header_envs = [REVIEWER_HEADER]
    voila.extension_allowlist = list(EXTENSIONS)
    voila.multi_kernel_manager_class = ReviewKernels
    voila.prelaunch_hook = dress
    config.Voila.identity_provider_class = ReviewerIdentity
    config.MappingKernelManager.cull_idle_timeout = _CLOSED_PAGE
    config.MappingKernelManager.cull_interval = 15
    config.MappingKernelManager.cull_busy = True
    config.MappingKernelManager.buffer_offline_messages = False  # images for a page that is gone
    # A restarted kernel is an empty one behind a page that looks alive. The page is told instead that it is dead.
    config.KernelRestarter.restart_limit = 0
    config.ZMQChannelsWebsocketConnection.limit_rate = False
    # Its sockets are this machine's, and any account on it could connect to them and read the pages.
    config.KernelManager.transport_encryption = "required"
    config.KernelManager.shutdown_wait_time = 10  # a kernel that ends may wait for its turn to give a case back
    return config
