"""A small HTTP and WebSocket client over plain sockets that can misbehave, and what is expected of a server that it calls.

A harness gives the port, the reviewers' codes, the words that no answer may hold, and a ``Control``, which does what only the
server's owner can. ``Layout`` names the paths. ``scale``, ``pace`` and ``size`` shrink numbers of connections, pauses and bytes
for a rehearsal; a measurement leaves them at 1. Many connections need a high limit of open files: ``run`` raises it to the hard one.

An answer's status is 0 if the connection ended without an answer, and -1 if it stayed open and silent.
"""

# ruff: noqa: ASYNC109  (every read of a server that may be silent has a limit of its own)
from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import resource
import socket
import struct
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Protocol
from urllib.parse import quote, urlencode

CLOSED, SILENT = 0, -1
REFUSED = (CLOSED, 400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 417, 422, 429, 431, 501, 503, 505)
AWAY = (CLOSED, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405)
SECRETS = re.compile(
    rb"Traceback|File \"/|site-packages|/home/\w|/usr/lib|\.py\b(?!thon)|Tornado(?:Server)?/\d|Python/\d|Jupyter/\d|\bsqlite|root:x:"
)


class Control(Protocol):
    """What the harness does in the server's place."""

    def restart(self) -> None:
        """Stop the server, start it again on the same port, and return when it accepts connections."""

    def stop(self) -> None:
        """Stop the server."""

    def start(self) -> None:
        """Start the server on the same port, and return when it accepts connections."""

    def add_reviewer(self, name: str) -> str:
        """Add a reviewer, or replace the code, and return the code; raise ValueError if the name is refused."""

    def remove_reviewer(self, name: str) -> None:
        """Remove a reviewer from the roster."""


@dataclass(frozen=True)
class Layout:
    """Where things are; a harness replaces what differs."""

    login: str = "/login"
    sign_out: str = "/logout"
    sign_out_method: str = "GET"
    health: str = "/health"
    screen: str = "/"
    private: str = "/"  # a page behind the login; better one that starts no kernel
    static: str = "/static/"
    voila: str = "/voila/"
    channels: str = "/api/kernels/{kernel}/channels?session_id=5ab1e0c4"
    protocol: str = "v1.kernel.websocket.jupyter.org"
    kernel: str = r"kernel_?id\W{1,12}([0-9a-f]{8}-[0-9a-f-]{27})"  # in the screen's page, any case
    removal_seconds: float = 45  # within which a removed reviewer's session ends


@dataclass
class Answer:
    """One answer: status, headers in order, body, seconds until it was whole, and whether the connection ended."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    seconds: float = 0.0
    is_closed: bool = False

    def header(self, name: str) -> str:
        """Return the header's values, joined by commas; empty if it is missing."""
        return ", ".join(value for key, value in self.headers if key.lower() == name.lower())

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies that are set, without those that are deleted by an empty value."""
        pairs = (v.split(";")[0].partition("=") for k, v in self.headers if k.lower() == "set-cookie")
        return {name.strip(): value.strip() for name, _, value in pairs if value.strip(' "')}

    @property
    def bytes(self) -> bytes:
        """Headers and the first 64 kB of the body, in which secrets are looked for."""
        return "\n".join(f"{k}: {v}" for k, v in self.headers).encode("latin-1") + b"\n\n" + self.body[:65536]


@dataclass
class Visit:
    """An honest client's visit during an attack."""

    page_seconds: float
    page_status: int
    is_logged_in: bool


@dataclass
class Observation:
    """What was seen: one status for each attempt, seconds until connections were closed, facts and figures by name."""

    statuses: list[int] = field(default_factory=list)
    seconds_to_close: list[float] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    answers: list[bytes] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)

    def add(self, *answers: Answer) -> None:
        """Note answers: their statuses, and their bytes for the search for secrets."""
        self.statuses += [answer.status for answer in answers]
        self.answers += [answer.bytes for answer in answers[:40]]


@dataclass(frozen=True)
class Expectation:
    """What is right; what is None or empty is not judged."""

    statuses: tuple[int, ...] | None = None
    close_within: float | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    memory_mb: float | None = None  # the server's process without kernels, measured by the harness at the peak
    page_seconds: float = 2.0


@dataclass(frozen=True)
class Attack:
    """A named attack, or an honest client, of a family.

    ``mark`` is a regular expression that the bytes which reach a server match if the attack does what it says.
    ``visit_after`` is the second in which an honest client visits; None: no visit, because the clients are themselves honest.
    """

    name: str
    family: str
    description: str
    act: Callable[[Client], Awaitable[Observation]]
    expectation: Expectation
    mark: bytes = b""
    visit_after: float | None = 1.0
    visit_from: str = "127.0.0.1"

    def run(self, client: Client) -> Observation:
        """Run the attack, with an honest visit during it, and return what was seen."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return asyncio.run(self._run(client))

    async def _run(self, client: Client) -> Observation:
        task = asyncio.ensure_future(self.act(client))
        visits = []
        if self.visit_after is not None:
            await asyncio.wait({task}, timeout=self.visit_after * client.pace)
            visits = [await client.visit(self.visit_from)]
        observation = await task
        observation.visits += visits
        return observation


def find_faults(attack: Attack, observation: Observation, client: Client, memory_mb: float | None = None) -> list[str]:
    """Compare an observation with its expectation; one line for each difference."""
    wanted, faults = attack.expectation, []
    if wanted.statuses is not None:
        odd = sorted({status for status in observation.statuses if status not in wanted.statuses})
        faults += [f"status {', '.join(map(str, odd))}"] if odd else []
        faults += [] if observation.statuses else ["nothing was asked"]
    if wanted.close_within is not None:
        slow = [seconds for seconds in observation.seconds_to_close if seconds > wanted.close_within]
        faults += [f"{len(slow)} connections open after {wanted.close_within:g} s"] if slow else []
    for name, value in wanted.facts.items():
        if observation.facts.get(name) != value:
            faults.append(f"{name}: {observation.facts.get(name)!r} instead of {value!r}")
    infinite = float("inf")
    faults += [f"{n}: over {x:g}" for n, x in wanted.at_most.items() if observation.figures.get(n, infinite) > x]
    faults += [f"{n}: under {x:g}" for n, x in wanted.at_least.items() if observation.figures.get(n, -infinite) < x]
    if wanted.memory_mb is not None and memory_mb is not None and memory_mb > wanted.memory_mb:
        faults.append(f"memory: {memory_mb:.0f} MB")
    for visit in observation.visits:
        faults += _find_visit_faults(visit, wanted.page_seconds)
    for answer in observation.answers:
        if SECRETS.search(answer) or any(word and word in answer for word in client.secrets):
            faults.append("an answer holds a path, a version, a trace or a secret word")
            break
    return faults


def _find_visit_faults(visit: Visit, page_seconds: float) -> list[str]:
    faults = []
    if visit.page_status != 200 or visit.page_seconds > page_seconds:
        faults.append(f"an honest client's login page: status {visit.page_status}, {visit.page_seconds:.1f} s")
    if not visit.is_logged_in:
        faults.append("an honest client's right code was refused")
    return faults


class _Form(HTMLParser):
    """The inputs of a page's first form."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.code = ""
        self.action = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        row = {key: value or "" for key, value in attrs}
        if tag == "form" and not self.action:
            self.action = row.get("action", "")
        if tag == "input" and row.get("name"):
            self.fields[row["name"]] = row.get("value", "")
            if row.get("type") == "password":
                self.code = row["name"]


def request(
    method: str, target: str, headers: Iterable[tuple[str, str]] = (), body: bytes | None = None, version: str = "1.1"
) -> bytes:
    """Build a request's bytes; a body adds its Content-Length unless a header declares one."""
    rows = list(headers)
    declared = {name.lower() for name, _ in rows}
    if body is not None and not declared & {"content-length", "transfer-encoding"}:
        rows.append(("Content-Length", str(len(body))))
    lines = [f"{method} {target} HTTP/{version}", *(f"{name}: {value}" for name, value in rows)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def frame(opcode: int, payload: bytes, *, fin: bool = True, masked: bool = True, reserved: int = 0) -> bytes:
    """Build a WebSocket frame; the mask is zero, so that the payload stays readable."""
    first, bit, length = (0x80 if fin else 0) | reserved | opcode, 0x80 if masked else 0, len(payload)
    if length < 126:
        head = struct.pack("!BB", first, bit | length)
    elif length < 65536:
        head = struct.pack("!BBH", first, bit | 126, length)
    else:
        head = struct.pack("!BBQ", first, bit | 127, length)
    return head + (b"\0\0\0\0" if masked else b"") + payload


class Connection:
    """One connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer, self.began = reader, writer, time.monotonic()

    async def send(self, data: bytes, timeout: float = 20) -> bool:
        """Send bytes; False if the server has closed the connection or takes nothing more."""
        try:
            self.writer.write(data)
            await asyncio.wait_for(self.writer.drain(), timeout)
        except (OSError, TimeoutError):
            return False
        return not self.writer.is_closing() and not self.reader.at_eof()

    async def read_answer(self, timeout: float = 10, *, head_only: bool = False, limit: int = 8 << 20) -> Answer:
        """Read one answer; the body at most up to the limit."""
        start, answer = time.monotonic(), Answer(SILENT)
        try:
            async with asyncio.timeout(timeout):
                await self._read(answer, head_only, limit)
        except TimeoutError:
            pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            answer.is_closed = True
            answer.status = CLOSED if answer.status == SILENT else answer.status
        answer.seconds = time.monotonic() - start
        return answer

    async def _read(self, answer: Answer, head_only: bool, limit: int) -> None:
        while True:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            status = int(head[0].split(" ")[1])
            answer.headers = [(k.strip(), v.strip()) for k, _, v in (line.partition(":") for line in head[1:] if line)]
            if status != 100:
                answer.status = status
                break
        length = answer.header("Content-Length")
        if head_only or status in {101, 204, 304}:
            return
        if "chunked" in answer.header("Transfer-Encoding").lower():
            while size := int((await self.reader.readline()).split(b";")[0], 16):
                answer.body += (await self.reader.readexactly(size + 2))[:-2]
                if len(answer.body) > limit:
                    return
            await self.reader.readline()
        elif length:
            answer.body = await self.reader.readexactly(min(int(length), limit))
        else:
            while part := await self.reader.read(65536):
                answer.body += part
            answer.is_closed = True

    async def wait_closed(self, timeout: float) -> float:
        """Read until the server closes; return the seconds since the connection was made, or infinity."""
        try:
            async with asyncio.timeout(timeout):
                while await self.reader.read(65536):
                    pass
        except TimeoutError:
            return float("inf")
        except OSError:
            pass
        return time.monotonic() - self.began

    async def read_frame(self, timeout: float = 10) -> tuple[int, bytes]:
        """Read a WebSocket frame as opcode and payload; opcode 8 if the connection ended, -1 if nothing came."""
        try:
            async with asyncio.timeout(timeout):
                first, second = await self.reader.readexactly(2)
                size = second & 0x7F
                if size >= 126:
                    size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8))
                return first & 15, await self.reader.readexactly(size)
        except TimeoutError:
            return -1, b""
        except (OSError, asyncio.IncompleteReadError):
            return 8, b""

    def close_writing(self) -> None:
        """Close our direction only."""
        with contextlib.suppress(OSError):
            self.writer.write_eof()

    def reset(self) -> None:
        """End the connection with a reset instead of a farewell."""
        sock = self.writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()


@dataclass
class Session:
    """A browser's cookies, and the answer to its login."""

    cookies: dict[str, str]
    answer: Answer
    is_logged_in: bool
    before: dict[str, str] = field(default_factory=dict)

    @property
    def header(self) -> tuple[str, str]:
        """The header that sends the cookies."""
        return cookie_header(self.cookies)


def cookie_header(cookies: Mapping[str, str]) -> tuple[str, str]:
    """Build the Cookie header."""
    return "Cookie", "; ".join(f"{name}={value}" for name, value in cookies.items())


@dataclass(frozen=True)
class Client:
    """The server's address, the reviewers' codes, what no answer may hold, and how large everything is."""

    port: int
    codes: Mapping[str, str]
    control: Control
    layout: Layout = Layout()
    secrets: Sequence[bytes] = ()  # words of documents, codes, names, the output folder
    scale: float = 1.0
    pace: float = 1.0
    size: float = 1.0
    lunch_seconds: float = 90.0

    @property
    def host(self) -> str:
        """The Host header of an honest client."""
        return f"127.0.0.1:{self.port}"

    @property
    def code(self) -> str:
        """The first reviewer's code."""
        return next(iter(self.codes.values()))

    @property
    def other_code(self) -> str:
        """The second reviewer's code."""
        return list(self.codes.values())[1]

    def many(self, number: int) -> int:
        """Scale a number of connections or guesses."""
        return max(2, round(number * self.scale))

    def large(self, number: int) -> int:
        """Scale a number of bytes or headers."""
        return max(64, round(number * self.size))

    async def pause(self, seconds: float) -> None:
        """Wait for a scaled number of seconds."""
        await asyncio.sleep(seconds * self.pace)

    def wrong_code(self, number: int) -> str:
        """Make a wrong code of the right one's shape: one group is changed."""
        letters = "bcdfghjkmnpqrstvwxyz"
        group = "".join(letters[(number // 20**place) % 20] for place in range(4))
        return f"{self.code[:-4]}{group}" if not self.code.endswith(group) else f"{self.code[:-4]}bbbz"

    async def connect(self, source: str = "127.0.0.1", *, window: int = 0, host: str = "127.0.0.1") -> Connection:
        """Connect from a loopback address; a window limits what the kernel receives unread."""
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            sock.setblocking(False)
            if window:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
            if ":" not in host:
                sock.bind((source, 0))
            loop = asyncio.get_running_loop()
            await asyncio.wait_for(loop.sock_connect(sock, (host, self.port)), 20)
            reader, writer = await asyncio.open_connection(sock=sock, limit=window or 2**20)
        except BaseException:
            sock.close()
            raise
        return Connection(reader, writer)

    async def connect_many(self, number: int, sources: Sequence[str] = ("127.0.0.1",)) -> list[Connection]:
        """Make many connections, from the addresses in turn; those that are refused are left out."""
        connections = []
        for number_done in range(number):
            with contextlib.suppress(OSError, TimeoutError):
                connections.append(await self.connect(sources[number_done % len(sources)]))
        return connections

    async def send_raw(
        self, data: bytes, *, source: str = "127.0.0.1", timeout: float = 10, head_only: bool = False
    ) -> Answer:
        """Send bytes on a connection of their own and read one answer; status 0 if the server does not take them."""
        try:
            connection = await self.connect(source)
        except (OSError, TimeoutError):
            return Answer(CLOSED, is_closed=True)
        try:
            await connection.send(data)
            return await connection.read_answer(timeout, head_only=head_only)
        finally:
            connection.close()

    def headers(self, *more: tuple[str, str], cookies: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
        """Headers of a browser: Host first, then the others, then cookies."""
        return [("Host", self.host), *more, *([cookie_header(cookies)] if cookies else [])]

    async def get(
        self, target: str, *more: tuple[str, str], cookies: Mapping[str, str] | None = None, source: str = "127.0.0.1"
    ) -> Answer:
        """Ask for a page as a browser does."""
        return await self.send_raw(request("GET", target, self.headers(*more, cookies=cookies)), source=source)

    async def open_login(
        self,
        *more: tuple[str, str],
        cookies: Mapping[str, str] | None = None,
        source: str = "127.0.0.1",
        query: str = "",
    ) -> tuple[Answer, _Form, dict[str, str]]:
        """Open the login page; return the answer, its form and the cookies after it."""
        answer = await self.get(self.layout.login + query, *more, cookies=cookies, source=source)
        form = _Form()
        form.feed(answer.body.decode("utf-8", "replace"))
        return answer, form, {**(cookies or {}), **answer.cookies}

    def build_login(
        self, form: _Form, cookies: Mapping[str, str], code: str | bytes, *more: tuple[str, str], **fields: str
    ) -> bytes:
        """Build the login form's request with a code."""
        values: dict[str, str | bytes] = {**form.fields, **fields, form.code or "code": code}
        rows = [("Origin", f"http://{self.host}"), ("Content-Type", "application/x-www-form-urlencoded"), *more]
        body = urlencode(values, quote_via=quote).encode()
        return request("POST", form.action or self.layout.login, self.headers(*rows, cookies=cookies), body)

    async def log_in(
        self,
        code: str | bytes,
        *more: tuple[str, str],
        source: str = "127.0.0.1",
        cookies: Mapping[str, str] | None = None,
        query: str = "",
        **fields: str,
    ) -> Session:
        """Open the login page and send a code as a browser does."""
        _, form, before = await self.open_login(*more, cookies=cookies, source=source, query=query)
        answer = await self.send_raw(self.build_login(form, before, code, *more, **fields), source=source)
        return self.read_login(answer, before)

    def read_login(self, answer: Answer, before: Mapping[str, str]) -> Session:
        """Say whether an answer logs somebody in: it redirects, away from the login page, and sets a new cookie."""
        new = {name: value for name, value in answer.cookies.items() if before.get(name) != value}
        is_away = answer.status in {302, 303} and not answer.header("Location").startswith(self.layout.login)
        return Session({**before, **answer.cookies}, answer, bool(is_away and new), dict(before))

    async def may_enter(self, cookies: Mapping[str, str], target: str = "") -> bool:
        """Say whether a page behind the login opens with these cookies."""
        connection = await self.connect()
        await connection.send(request("GET", target or self.layout.private, self.headers(cookies=cookies)))
        answer = await connection.read_answer(5, limit=65536)
        connection.close()
        return answer.status == 200 and b'type="password"' not in answer.body

    async def sign_out(self, cookies: Mapping[str, str]) -> Answer:
        """Sign out as the screen does; a POST carries the token against forgery."""
        rows = [("Origin", f"http://{self.host}"), ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "navigate")]
        headers, body = self.headers(*rows, cookies=cookies), None
        if self.layout.sign_out_method == "POST":
            headers.append(("Content-Type", "application/x-www-form-urlencoded"))
            body = urlencode({"_xsrf": cookies.get("_xsrf", "")}).encode()
        return await self.send_raw(request(self.layout.sign_out_method, self.layout.sign_out, headers, body))

    async def visit(self, source: str = "127.0.0.1") -> Visit:
        """Open the login page and log in with the second reviewer's code; the form comes from the timed page."""
        start = time.monotonic()
        try:
            page, form, cookies = await self.open_login(source=source)
            seconds = time.monotonic() - start
            answer = await self.send_raw(self.build_login(form, cookies, self.other_code), source=source)
        except (OSError, TimeoutError):
            return Visit(time.monotonic() - start, CLOSED, False)
        return Visit(seconds, page.status, self.read_login(answer, cookies).is_logged_in)

    async def guess(
        self, codes: Iterable[str | bytes], *more: tuple[str, str], source: str = "127.0.0.1"
    ) -> list[Answer]:
        """Try codes one after another with one login page, as a program does."""
        _, form, cookies = await self.open_login(source=source)
        return [await self.send_raw(self.build_login(form, cookies, code, *more), source=source) for code in codes]

    async def open_screen(self, session: Session) -> str:
        """Open the experts' screen and return its kernel's id; empty if the page names none within a minute."""
        connection = await self.connect()
        await connection.send(request("GET", self.layout.screen, self.headers(cookies=session.cookies)))
        seen, pattern = b"", re.compile(self.layout.kernel.encode(), re.IGNORECASE)
        try:
            async with asyncio.timeout(60):
                while part := await connection.reader.read(65536):
                    seen += part
                    if found := pattern.search(seen):
                        return found[1].decode()
        except (OSError, TimeoutError):
            pass
        finally:
            connection.close()
        return ""

    async def open_websocket(
        self,
        target: str,
        *more: tuple[str, str],
        cookies: Mapping[str, str] | None = None,
        origin: str = "",
        without: Sequence[str] = (),
    ) -> tuple[Answer, Connection]:
        """Ask for a WebSocket; return the answer and the connection, which is open if the status is 101."""
        rows = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", base64.b64encode(os.urandom(16)).decode()),
            ("Sec-WebSocket-Protocol", self.layout.protocol),
            ("Origin", origin or f"http://{self.host}"),
        ]
        named = {name for name, _ in more}
        rows = [row for row in rows if row[0] not in without and row[0] not in named]
        connection = await self.connect()
        await connection.send(request("GET", target, self.headers(*rows, *more, cookies=cookies)))
        return await connection.read_answer(), connection

    async def open_channels(self, *more: tuple[str, str], code: str = "") -> tuple[Session, str, Answer, Connection]:
        """Log in, open a screen and its WebSocket."""
        session = await self.log_in(code or self.code)
        kernel = await self.open_screen(session)
        target = self.layout.channels.format(kernel=kernel)
        answer, connection = await self.open_websocket(target, *more, cookies=session.cookies)
        return session, kernel, answer, connection


def kernel_message(kind: str, content: object, padding: object = "") -> bytes:
    """Build a message of Jupyter's v1 protocol as a binary frame's payload; the padding lies in its metadata.

    Little-endian 64-bit numbers come first: how many offsets, then where each part begins, then the end.
    """
    header = {
        "msg_id": uuid.uuid4().hex,
        "msg_type": kind,
        "session": "w",
        "username": "",
        "version": "5.3",
        "date": "",
    }
    records = (header, {}, {"padding": padding}, content)
    parts = [b"shell", *(json.dumps(record, ensure_ascii=False).encode() for record in records)]
    offsets = [8 * (len(parts) + 2)]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets) + b"".join(parts)


async def wait_for_message(connection: Connection, word: bytes, timeout: float = 30) -> bool:
    """Read frames until one holds the word; pings are answered."""
    end = time.monotonic() + timeout
    while (left := end - time.monotonic()) > 0:
        opcode, payload = await connection.read_frame(left)
        if opcode in {8, -1}:
            return False
        if opcode == 9:
            await connection.send(frame(10, payload))
        if word in payload:
            return True
    return False


async def trickle(connection: Connection, parts: Iterable[bytes], wait: Callable[[], Awaitable[None]]) -> bool:
    """Send parts with a wait after each; False as soon as the server no longer takes them."""
    for part in parts:
        if not await connection.send(part):
            return False
        await wait()
    return True


Act = Callable[[Client], Awaitable[Observation]]


def register(
    rows: list[Attack], family: str, description: str, expectation: Expectation, **options: object
) -> Callable[[Act], Act]:
    """Append the decorated function to the rows as an attack of its name."""

    def add(act: Act) -> Act:
        rows.append(Attack(act.__name__, family, description, act, expectation, **options))
        return act

    return add


def send_once(*requests: bytes) -> Act:
    """Make the act that sends each request on a connection of its own; ``{host}``, ``{port}`` and ``{login}`` are filled in."""

    async def act(client: Client) -> Observation:
        observation = Observation()
        words = {b"{host}": client.host, b"{port}": str(client.port), b"{login}": client.layout.login}
        for template in requests:
            data = template
            for word, value in words.items():
                data = data.replace(word, value.encode())
            observation.add(await client.send_raw(data, timeout=15))
        return observation

    return act
