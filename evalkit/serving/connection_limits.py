"""HTTP server with limits on size, time and number of requests without a login.

Strangers can then neither fill the memory nor keep experts out, however many connections they open.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Awaitable, Collection
from http import HTTPStatus
from typing import Any

from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPConnection, HTTPHeaders, HTTPMessageDelegate, RequestStartLine, ResponseStartLine
from tornado.web import Application
from typing_extensions import override

#: Maximum size of a request's body: that of the login form, or of the request that a closed page sends. Answers of
#: experts are messages of websockets, which need a login.
MAX_BODY_BYTES = 8 << 10
#: Size of a request's headers above which it is refused with 431, and at which the connection is closed unread.
MAX_HEADER_BYTES, _MAX_UNREAD_HEADER_BYTES = 16 << 10, 24 << 10
#: Seconds to wait for the headers of a connection's first or next request, and for a body.
_REQUEST_TIMEOUT = 20
#: Maximum number of connections whose last request had no valid login.
_MAX_ANONYMOUS_CONNECTIONS = 1000
_READ_CHUNK_BYTES = 16 << 10
#: Headers by which some proxies name the client. evalkit uses X-Forwarded-For and X-Forwarded-Proto only, and a proxy that
#: sets those two may pass these on from a client.
_UNUSED_PROXY_HEADERS = ("X-Real-Ip", "X-Scheme")


class LimitedHTTPServer(HTTPServer):
    """HTTP server that limits the number of connections without a login."""

    @override
    def initialize(  # type: ignore[override]  # Tornado passes on the constructor's arguments
        self, application: Application, *, has_proxy: bool, proxies: Collection[str], max_message_bytes: int
    ) -> None:
        """Set the limits.

        Args:
            application: the web application.
            has_proxy: True if a TLS proxy in front of the server names its clients in X-Forwarded-For.
            proxies: the addresses from which that proxy connects; if empty, any address of this machine.
            max_message_bytes: maximum size of a websocket message.
        """
        super().initialize(
            application,
            xheaders=has_proxy,
            chunk_size=_READ_CHUNK_BYTES,
            max_header_size=_MAX_UNREAD_HEADER_BYTES,
            max_body_size=MAX_BODY_BYTES,
            max_buffer_size=2 * max_message_bytes,
            idle_connection_timeout=_REQUEST_TIMEOUT,
            body_timeout=_REQUEST_TIMEOUT,
        )
        self._proxies = frozenset(proxies)
        # The limit of open files may be small, and open pages need most of it.
        self._max_anonymous = min(_MAX_ANONYMOUS_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
        #: Connections without a login, by Tornado's context; the one that began its last request first comes first.
        self._anonymous_connections: dict[Any, HTTP1ServerConnection] = {}

    @override
    def start_request(self, server_conn: Any, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        self.exempt_connection(server_conn)
        self._anonymous_connections[server_conn.context] = server_conn
        if len(self._anonymous_connections) > self._max_anonymous:
            self._close_oldest_connection_of_busiest_address()
        is_trusted_proxy = not self._proxies or server_conn.context.address[0] in self._proxies
        return _LimitedRequest(super().start_request(server_conn, request_conn), request_conn, is_trusted_proxy)

    @override
    def on_close(self, server_conn: object) -> None:
        self.exempt_connection(server_conn)
        super().on_close(server_conn)

    def exempt_connection(self, connection: Any) -> None:
        """Exempt a logged-in connection from limits during its request."""
        self._anonymous_connections.pop(connection.context, None)

    def _close_oldest_connection_of_busiest_address(self) -> None:
        count_by_address = Counter(context.address[0] for context in self._anonymous_connections)
        (busiest, _), *_ = count_by_address.most_common(1)
        context = next(context for context in self._anonymous_connections if context.address[0] == busiest)
        self._anonymous_connections.pop(context).stream.close()


class _LimitedRequest(HTTPMessageDelegate):
    """Filter that refuses too large requests before their bodies are read."""

    def __init__(self, delegate: HTTPMessageDelegate, connection: HTTPConnection, is_trusted_proxy: bool) -> None:
        self._delegate, self._connection, self._is_trusted_proxy = delegate, connection, is_trusted_proxy

    @override
    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        if status := _find_refusal_status(start_line, headers):
            self._delegate = HTTPMessageDelegate()  # ignores the rest of the request
            self._refuse(status)
            return None
        for header_name in (*_UNUSED_PROXY_HEADERS, *(() if self._is_trusted_proxy else ("X-Forwarded-For",))):
            headers.pop(header_name, None)
        return self._delegate.headers_received(start_line, headers)

    @override
    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return self._delegate.data_received(chunk)

    @override
    def finish(self) -> None:
        self._delegate.finish()

    @override
    def on_connection_close(self) -> None:
        self._delegate.on_connection_close()

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer without reading the body; Tornado then closes the connection."""
        text = f"{status.phrase}\n".encode()
        headers = HTTPHeaders({"Content-Type": "text/plain", "Content-Length": str(len(text)), "Connection": "close"})
        self._connection.write_headers(ResponseStartLine("HTTP/1.1", status, status.phrase), headers, text)
        self._connection.finish()


def _find_refusal_status(start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders) -> HTTPStatus | None:
    """Find the HTTP status that refuses a request; None if it is small enough."""
    header_bytes = sum(map(len, start_line)) + sum(  # type: ignore[arg-type]  # of a request, three texts
        len(name) + len(value) for name, value in headers.get_all()
    )
    if header_bytes > MAX_HEADER_BYTES:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    content_length = headers.get("Content-Length", "")
    if content_length.isdecimal() and int(content_length[:20]) > MAX_BODY_BYTES:
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    return None
