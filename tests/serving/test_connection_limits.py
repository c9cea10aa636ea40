"""Limits of the HTTP server, on a real port with an application that echoes what it was told."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import SECONDS
from tornado.httputil import HTTPHeaders, RequestStartLine
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler

from evalkit.serving import connection_limits
from evalkit.serving.connection_limits import MAX_BODY_BYTES, MAX_HEADER_BYTES, LimitedHTTPServer

PROXY = {"X-Forwarded-For": "10.0.0.1, 10.0.0.2", "X-Real-Ip": "10.0.0.3", "X-Scheme": "https"}


class Echo(RequestHandler):
    """Tells size and address; a request with a cookie is logged in, as in evalkit's own handlers."""

    def prepare(self) -> None:
        if self.request.headers.get("Cookie"):
            self.settings["server"].exempt_connection(self.request.connection)

    def get(self) -> None:
        self.finish({"ip": self.request.remote_ip, "protocol": self.request.protocol})

    def post(self) -> None:
        self.finish({"bytes": len(self.request.body)})


class Socket(Echo, WebSocketHandler):
    """A websocket that stays open."""

    def get(self, *arguments: Any) -> Any:
        return WebSocketHandler.get(self, *arguments)


@asynccontextmanager
async def listening(**settings: Any) -> AsyncIterator[int]:
    app = Application([("/", Echo), ("/socket", Socket)])
    server = LimitedHTTPServer(app, **{"has_proxy": False, "proxies": (), "max_message_bytes": 1 << 20} | settings)
    app.settings["server"] = server
    (listener,) = bind_sockets(0, "127.0.0.1")
    server.add_sockets([listener])
    try:
        yield listener.getsockname()[1]
    finally:
        server.stop()
        await server.close_all_connections()


class Connection:
    """A connection from one of this machine's addresses."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int, address: str = "127.0.0.1") -> "Connection":
        return cls(*await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0)))

    async def ask(self, method: str = "GET", body: bytes = b"", path: str = "/", **headers: str) -> tuple[int, bytes]:
        lines = [f"{method} {path} HTTP/1.1", "Host: x", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next((line[15:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), b"0")
        return int(head.split()[1]), await self.reader.readexactly(int(length))

    async def is_closed(self, seconds: float = SECONDS) -> bool:
        try:
            return await asyncio.wait_for(self.reader.read(), seconds) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True


def test_a_large_request_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "_REQUEST_TIMEOUT", 3600)  # nothing is closed for its slowness

    async def ask() -> None:
        async with listening() as port:
            for length, status in ((MAX_BODY_BYTES, 200), (MAX_BODY_BYTES + 1, 413), (10**30, 413)):
                connection = await Connection.open(port)
                sent = b"x" * length if status == 200 else b""
                answered, text = await connection.ask("POST", sent, Content_Length=str(length))
                assert (answered, status == 413) == (status, text == b"Request Entity Too Large\n")
                assert await connection.is_closed(0.2) is (status == 413)
            for size, status in ((MAX_HEADER_BYTES - 100, 200), (MAX_HEADER_BYTES, 431)):
                connection = await Connection.open(port)
                assert (await connection.ask(Cookie="c" * size))[0] == status
            connection = await Connection.open(port)
            connection.writer.write(b"GET / HTTP/1.1\r\nCookie: " + 64_000 * b"c")
            assert await connection.is_closed()
            assert (await (await Connection.open(port)).ask())[0] == 200

    asyncio.run(ask())


@pytest.mark.parametrize("length", ["-1", "+5", "5, 6", "0x10", "five", "٥", "²", ""])
def test_a_length_that_is_no_number_is_a_bad_request(length: str) -> None:
    async def ask() -> None:
        async with listening() as port:
            connection = await Connection.open(port)
            connection.writer.write(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\nhello".encode())
            assert (await connection.reader.readline()).split()[1] == b"400"
            assert (await (await Connection.open(port)).ask())[0] == 200

    asyncio.run(ask())


def test_an_endless_body_in_chunks_is_ended() -> None:
    async def ask() -> None:
        async with listening() as port:
            connection = await Connection.open(port)
            connection.writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n" + b"1001\r\n")
            assert (await connection.reader.readline()).split()[1] == b"400"

    asyncio.run(ask())


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["nothing", "headers", "body", "chunks", "next request"],
)
def test_a_slow_or_idle_client_is_disconnected(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "_REQUEST_TIMEOUT", 0.5)

    async def ask() -> None:
        async with listening() as port:
            connection = await Connection.open(port)
            connection.writer.write(sent)
            await asyncio.wait_for(connection.reader.read(), SECONDS)

    asyncio.run(ask())


def test_the_oldest_of_the_busiest_address_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "_MAX_ANONYMOUS_CONNECTIONS", 5)

    async def ask() -> None:
        async with listening() as port:
            honest = await Connection.open(port, "127.0.0.2")
            expert = await Connection.open(port)
            upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
            status, _ = await expert.ask(path="/socket", Cookie="c", Sec_WebSocket_Key="x" * 22 + "==", **upgrade)
            assert status == 101
            strangers = [await Connection.open(port) for _ in range(4)]
            assert (await strangers[0].ask())[0] == 200, "now the second is the oldest"
            further = [await Connection.open(port) for _ in range(3)]
            assert [await stranger.is_closed(0.3) for stranger in (*strangers, *further)] == [
                *(False, True, True, True),
                *(False, False, False),
            ]
            assert await honest.is_closed(0.1) is False
            assert await expert.is_closed(0.1) is False
            assert (await honest.ask())[0] == 200

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"ip": "127.0.0.1", "protocol": "http"}),
        ({"has_proxy": True}, {"ip": "10.0.0.2", "protocol": "http"}),
        ({"has_proxy": True, "proxies": ["127.0.0.1"]}, {"ip": "10.0.0.2", "protocol": "http"}),
        ({"has_proxy": True, "proxies": ["127.0.0.9"]}, {"ip": "127.0.0.1", "protocol": "http"}),
    ],
)
def test_only_the_proxy_names_its_clients(settings: dict[str, Any], expected: dict[str, str]) -> None:
    async def ask() -> dict[str, str]:
        async with listening(**settings) as port:
            return json.loads((await (await Connection.open(port)).ask(**PROXY))[1])

    assert asyncio.run(ask()) == expected


@settings(deadline=None)
@given(st.integers(0, 40_000), st.text("0123456789", min_size=1, max_size=40))
def test_every_size_is_refused_or_within_the_limits(header_bytes: int, content_length: str) -> None:
    headers = HTTPHeaders({"Cookie": "c" * header_bytes, "Content-Length": content_length})
    status = connection_limits._find_refusal_status(RequestStartLine("POST", "/login", "HTTP/1.1"), headers)
    if status is None:
        assert header_bytes < MAX_HEADER_BYTES
        assert int(content_length) <= MAX_BODY_BYTES
    elif status == 413:
        assert int(content_length) > MAX_BODY_BYTES
    else:
        assert header_bytes > MAX_HEADER_BYTES - 200
