"""The open half: what a stranger or a careless client does, and honest clients who must not be refused."""

from __future__ import annotations

import asyncio
import gzip
import statistics
import time
from functools import partial

from benchmarks.first_contact.web_attacks.client import (
    AWAY,
    CLOSED,
    REFUSED,
    Attack,
    Client,
    Expectation,
    Observation,
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
    "JSON.stringify(Object.entries(localStorage))",
    "JSON.stringify(Object.entries(sessionStorage))",
    "JSON.stringify(history.state)",
    "location.href + ' ' + document.title",
    "document.cookie",
)
attack = partial(register, ATTACKS)
honest = partial(register, HONEST_CLIENTS, visit_after=None)
POST = b"POST {login} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"


def add_request(name, family, description, *requests, statuses=REFUSED, mark=b"", **expected):
    """Add an attack that sends requests once each."""
    act = send_once(*requests)
    ATTACKS.append(Attack(name, family, description, act, Expectation(statuses=statuses, **expected), mark))


@attack(
    "slow headers",
    "200 connections send a header at a byte a second",
    Expectation(close_within=60, memory_mb=200),
    mark=rb"X-Slow: a",
)
async def slow_header_bytes(client: Client) -> Observation:
    """Send one byte a second and see when each connection is closed."""
    observation, connections = Observation(), await client.connect_many(client.many(200))

    async def crawl(connection):
        await connection.send(f"GET {client.layout.login} HTTP/1.1\r\nHost: {client.host}\r\nX-Slow: ".encode())
        await trickle(connection, [b"a"] * 70, partial(client.pause, 1))
        observation.seconds_to_close.append(await connection.wait_closed(0.5))
        connection.close()

    await asyncio.gather(*map(crawl, connections))
    return observation


@attack(
    "slow bodies",
    "100 logins of 500 declared bytes come at a byte every two seconds",
    Expectation(close_within=75),
    mark=rb"Content-Length: 500\r\n",
)
async def slow_login_bodies(client: Client) -> Observation:
    """Send one byte of a login's body every two seconds."""
    observation, connections = Observation(), await client.connect_many(client.many(100))

    async def crawl(connection):
        head = request("POST", client.layout.login, client.headers(("Content-Length", "500")))
        await connection.send(head)
        await trickle(connection, [b"c"] * 42, partial(client.pause, 2))
        observation.seconds_to_close.append(await connection.wait_closed(0.5))
        connection.close()

    await asyncio.gather(*map(crawl, connections))
    return observation


@attack(
    "slow posts",
    "1,000 logins at once declare 1 to 100 MB, send 64 kB, then a byte every three seconds",
    Expectation(memory_mb=200),
    mark=rb"Content-Length: (1|34|67|100)000000\r\n",
    visit_after=12,
)
async def thousand_slow_posts(client: Client) -> Observation:
    """Hold the posts for half a minute."""
    observation, connections = Observation(), await client.connect_many(client.many(1000))

    async def crawl(number, connection):
        size = str((1, 34, 67, 100)[number % 4] * 1_000_000)
        await connection.send(request("POST", client.layout.login, client.headers(("Content-Length", size))))
        if await connection.send(b"x" * client.large(65536), timeout=30):
            await trickle(connection, [b"x"] * 10, partial(client.pause, 3))
        connection.close()

    await asyncio.gather(*(crawl(*row) for row in enumerate(connections)))
    observation.figures["connections"] = len(connections)
    return observation


@attack(
    "endless chunks",
    "a login's chunked body does not end",
    Expectation(at_most={"megabytes": 32}, memory_mb=200),
    mark=rb"Transfer-Encoding: chunked",
)
async def endless_chunked_login(client: Client) -> Observation:
    """Send chunks until the server refuses them, at most 256 MB."""
    observation, connection = Observation(), await client.connect()
    await connection.send(request("POST", client.layout.login, client.headers(("Transfer-Encoding", "chunked"))))
    chunk, sent = b"10000\r\n" + b"z" * 65536 + b"\r\n", 0
    while sent < client.large(256 << 20) and await connection.send(chunk):
        sent += 65536
        await asyncio.sleep(0)
    observation.figures["megabytes"] = sent / 2**20
    connection.close()
    return observation


@attack(
    "declared length",
    "ten gigabytes are declared, with Expect: 100-continue",
    Expectation(statuses=REFUSED),
    mark=rb"Content-Length: 10737418240",
)
async def ten_gigabytes_expected(client: Client) -> Observation:
    """Wait for permission to send; a permission followed by silence is -1."""
    observation = Observation()
    headers = client.headers(("Content-Length", "10737418240"), ("Expect", "100-continue"))
    observation.add(await client.send_raw(request("POST", client.layout.login, headers)))
    return observation


add_request(
    "length_twice",
    "smuggling",
    "two different lengths",
    POST + b"Content-Length: 5\r\nContent-Length: 9\r\n\r\ncode=xxxx",
    mark=rb"Length: 5\r\nContent-Length: 9",
)
add_request(
    "length_negative", "smuggling", "a negative length", POST + b"Content-Length: -1\r\n\r\ncode=x", mark=rb"Length: -1"
)


@attack(
    "smuggling",
    "a length and chunks together; the second request hides in the body",
    Expectation(statuses=REFUSED, facts={"answers": 1}),
    mark=rb"Content-Length: \d+\r\nTransfer-Encoding: chunked",
)
async def length_and_chunks(client: Client) -> Observation:
    """Count the answers: a hidden request that is answered makes two."""
    observation, connection = Observation(), await client.connect()
    hidden = request("GET", "/hidden-request", client.headers())
    rows = (("Content-Length", str(5 + len(hidden))), ("Transfer-Encoding", "chunked"))
    await connection.send(request("POST", client.layout.login, client.headers(*rows), b"0\r\n\r\n" + hidden))
    first = await connection.read_answer(5)
    second = await connection.read_answer(2)
    observation.add(first)
    observation.facts["answers"] = 1 + (second.status > 0)
    connection.close()
    return observation


add_request(
    "ten_thousand_headers",
    "header bombs",
    "10,000 short headers",
    b"GET {login} HTTP/1.1\r\nHost: {host}\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(10_000)) + b"\r\n",
    mark=rb"X-9999: y",
)
add_request(
    "megabyte_path",
    "long URLs",
    "a path of a megabyte",
    b"GET /" + b"a" * 2**20 + b" HTTP/1.1\r\nHost: {host}\r\n\r\n",
    mark=rb"GET /a{1000}",
)
BOMB = gzip.compress(b"code=" + b"\0" * 2**26, mtime=0)
add_request(
    "gzip_login",
    "compressed bodies",
    "a login of 64 MB compressed to 64 kB",
    POST + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB,
    memory_mb=200,
    mark=rb"Content-Encoding: gzip",
)
PARTS = (
    b"".join(b'--b\r\nContent-Disposition: form-data; name="p%d"\r\n\r\nv\r\n' % n for n in range(50_000))
    + b"--b--\r\n"
)
add_request(
    "fifty_thousand_parts",
    "multipart bombs",
    "a form of 50,000 parts",
    b"POST {login} HTTP/1.1\r\nHost: {host}\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n"
    % len(PARTS)
    + PARTS,
    memory_mb=200,
    mark=rb'name="p49999"',
)


@attack(
    "idle connections",
    "2,000 connections ask once and stay, keep-alive",
    Expectation(memory_mb=200),
    mark=rb"Connection: keep-alive",
    visit_after=8,
)
async def idle_after_one_page(client: Client) -> Observation:
    """Ask on each, then be silent for half a minute."""
    observation, connections = Observation(), await client.connect_many(client.many(2000))
    for connection in connections:
        await connection.send(request("GET", client.layout.login, client.headers(("Connection", "keep-alive"))))
    await client.pause(30)
    for connection in connections:
        connection.close()
    observation.figures["connections"] = len(connections)
    return observation


@attack(
    "half-closed connections",
    "300 clients close their direction after the request",
    Expectation(close_within=60),
    mark=rb"X-Half: closed",
)
async def half_closed_after_request(client: Client) -> Observation:
    """Close for writing and wait for the server to close too."""
    observation, connections = Observation(), await client.connect_many(client.many(300))

    async def ask(connection):
        await connection.send(request("GET", client.layout.login, client.headers(("X-Half", "closed"))))
        connection.close_writing()
        observation.seconds_to_close.append(await connection.wait_closed(60 * client.pace + 2))
        connection.close()

    await asyncio.gather(*map(ask, connections))
    return observation


@attack(
    "pipelined requests",
    "500 requests in one write, no answer is read at first",
    Expectation(statuses=(*REFUSED, 200), memory_mb=200),
    mark=rb"X-Pipeline: 1",
)
async def five_hundred_in_one_write(client: Client) -> Observation:
    """Read the answers only after five seconds; the first must be a page or a refusal."""
    observation, connection = Observation(), await client.connect()
    await connection.send(request("GET", client.layout.login, client.headers(("X-Pipeline", "1"))) * 500)
    await client.pause(5)
    observation.add(await connection.read_answer())
    connection.close()
    return observation


@attack(
    "WebSocket before login",
    "a kernel's WebSocket without a cookie",
    Expectation(statuses=AWAY),
    mark=rb"GET /api/kernels/[^ ]*/channels",
)
async def websocket_without_login(client: Client) -> Observation:
    """Guess a kernel's id."""
    observation = Observation()
    target = client.layout.channels.format(kernel="6a1f0d5e-1111-4222-8333-444455556666")
    answer, connection = await client.open_websocket(target)
    observation.add(answer)
    connection.close()
    return observation


@attack(
    "WebSocket frames",
    "a frame declares 512 MB and comes without end, after login",
    Expectation(facts={"opened": True}, at_most={"megabytes": 64}, memory_mb=200),
    mark=rb"\xff{1}\0\0\0\0\x20\0\0\0|\x82\xff\0\0\0\0\x20\0\0\0",
)
async def huge_websocket_frame(client: Client) -> Observation:
    """Send until the server closes, at most 256 MB."""
    observation = Observation()
    _, _, answer, connection = await client.open_channels()
    observation.facts["opened"] = answer.status == 101
    await connection.send(b"\x82\xff" + (512 << 20).to_bytes(8) + b"\0\0\0\0")
    sent = 0
    while sent < client.large(256 << 20) and await connection.send(b"w" * 65536):
        sent += 65536
    observation.figures["megabytes"] = sent / 2**20
    connection.close()
    return observation


@attack(
    "guesses",
    "300 wrong codes from the address at which the right person logs in",
    Expectation(at_least={"guesses": 300}),
    mark=rb"code=",
    visit_after=3,
)
async def guesses_from_the_same_address(client: Client) -> Observation:
    """Guess while the honest visit comes from the same address."""
    observation = Observation()
    answers = await client.guess(map(client.wrong_code, range(client.many(300))))
    observation.facts["somebody logged in"] = any(answer.cookies.keys() - {"_xsrf"} for answer in answers)
    observation.figures["guesses"] = len(answers) / client.scale
    observation.answers = [answer.bytes for answer in answers[:5]]
    return observation


@attack(
    "guesses",
    "wrong codes that resemble one code from sixty addresses",
    Expectation(facts={"right code": True}),
    mark=rb"code=",
    visit_from="127.0.0.99",
    visit_after=2,
)
async def guesses_from_many_addresses(client: Client) -> Observation:
    """Guess from many addresses; then the code's owner comes from another."""
    observation = Observation()
    rows = [
        client.guess(map(client.wrong_code, range(5 * n, 5 * n + 5)), source=f"127.0.0.{n}")
        for n in range(2, 2 + client.many(60))
    ]
    for answers in await asyncio.gather(*rows):
        observation.answers.append(answers[0].bytes)
    observation.facts["right code"] = (await client.log_in(client.code, source="127.0.0.98")).is_logged_in
    return observation


@attack(
    "guesses",
    "every guess names another X-Forwarded-For, to be counted as somebody new",
    Expectation(facts={"throttled": True}),
    mark=rb"X-Forwarded-For: 10\.0\.",
)
async def forwarded_addresses(client: Client) -> Observation:
    """Look for a refusal or a growing delay among 200 guesses."""
    observation, seconds = Observation(), []
    for number in range(client.many(200)):
        answer = (await client.guess([client.wrong_code(number)], ("X-Forwarded-For", f"10.0.{number}.7")))[0]
        seconds.append(answer.seconds)
        if answer.status in {CLOSED, 429, 503} or answer.seconds > 1:
            observation.facts["throttled"] = True
            break
    return observation


@attack(
    "odd codes",
    "codes with NUL, line ends and other control characters",
    Expectation(facts={"somebody logged in": False}, statuses=(*REFUSED, 200)),
    mark=rb"%00",
)
async def codes_with_control_characters(client: Client) -> Observation:
    """Put the characters before, inside and after the right code."""
    observation = Observation()
    codes = [
        "\0" + client.code,
        client.code[:5] + "\0" + client.code[5:],
        client.code + "\0x",
        client.code + "\r\n\r\nx",
        "\x1b[2J",
    ]
    answers = await client.guess(codes)
    observation.add(*answers)
    observation.facts["somebody logged in"] = any(answer.status in {302, 303} for answer in answers)
    return observation


@attack(
    "timing",
    "is a code that shares all but its last group with a right one answered more slowly?",
    Expectation(at_most={"milliseconds of difference": 5}),
    mark=rb"code=",
    visit_after=None,
)
async def timing_of_near_codes(client: Client) -> Observation:
    """Compare the median seconds of near and far codes, in turn."""
    observation, near, far = Observation(), [], []
    for number in range(client.many(15)):
        for code, seconds in ((client.wrong_code(number), near), (client.wrong_code(number)[::-1], far)):
            answers = await client.guess([code], source=f"127.0.1.{number + 1}")
            seconds.append(answers[0].seconds)
    observation.figures["milliseconds of difference"] = abs(statistics.median(near) - statistics.median(far)) * 1000
    return observation


@attack(
    "login forgery",
    "another site's page sends the right code without the login page's token",
    Expectation(facts={"somebody logged in": False}, statuses=REFUSED),
    mark=rb"Origin: https://evil\.example",
)
async def login_from_another_site(client: Client) -> Observation:
    """Send the right code as another site's form would."""
    observation = Observation()
    rows = (("Origin", "https://evil.example"), ("Content-Type", "application/x-www-form-urlencoded"))
    answer = await client.send_raw(
        request("POST", client.layout.login, client.headers(*rows), b"code=" + client.code.encode())
    )
    observation.add(answer)
    observation.facts["somebody logged in"] = client.read_login(answer, {}).is_logged_in
    return observation


@attack(
    "session fixation",
    "a session's cookie exists before the login",
    Expectation(facts={"cookies stayed": False, "planted opens": False}),
    mark=rb"=planted",
)
async def planted_session(client: Client) -> Observation:
    """Log in with planted values under the session's own names."""
    observation, first = Observation(), await client.log_in(client.code)
    names = [name for name in first.answer.cookies if name != "_xsrf"]
    planted = dict.fromkeys(names, "planted")
    second = await client.log_in(client.code, cookies=planted)
    observation.facts["cookies stayed"] = not names or any(second.cookies.get(name) == "planted" for name in names)
    observation.facts["planted opens"] = await client.may_enter(planted)
    return observation


@attack(
    "after sign-out",
    "a copied cookie is used again after sign-out",
    Expectation(facts={"before": True, "after": False}),
    mark=rb"Cookie: ",
)
async def cookie_after_sign_out(client: Client) -> Observation:
    """Copy the cookies, sign out, and use the copy."""
    observation, session = Observation(), await client.log_in(client.code)
    observation.facts["before"] = await client.may_enter(session.cookies)
    await client.sign_out(session.cookies)
    observation.facts["after"] = await client.may_enter(session.cookies)
    return observation


@attack(
    "after sign-out",
    "the screen's page is asked of the browser's cache",
    Expectation(facts={"not stored": True}),
    mark=rb"GET / ",
)
async def cached_screen(client: Client) -> Observation:
    """Look at Cache-Control of the screen's page."""
    observation, session = Observation(), await client.log_in(client.code)
    connection = await client.connect()
    await connection.send(request("GET", client.layout.screen, client.headers(cookies=session.cookies)))
    answer = await connection.read_answer(5)
    observation.facts["not stored"] = "no-store" in answer.header("Cache-Control")
    connection.close()
    return observation


@attack(
    "removed reviewers",
    "a reviewer is removed while logged in",
    Expectation(facts={"before": True, "after": False, "code": False}),
    mark=rb"Cookie: ",
)
async def session_of_a_removed_reviewer(client: Client) -> Observation:
    """Wait as long as the documentation says, then use cookie and code."""
    observation = Observation()
    code = await asyncio.to_thread(client.control.add_reviewer, "dr_leaving")
    session = await client.log_in(code)
    observation.facts["before"] = await client.may_enter(session.cookies)
    await asyncio.to_thread(client.control.remove_reviewer, "dr_leaving")
    await client.pause(client.layout.removal_seconds)
    observation.facts["after"] = await client.may_enter(session.cookies)
    observation.facts["code"] = (await client.log_in(code)).is_logged_in
    return observation


@attack(
    "cookies",
    "flags of the session's cookie",
    Expectation(facts={"HttpOnly": True, "SameSite": True, "Path": True, "Domain": False}),
    mark=rb"code=",
)
async def cookie_flags(client: Client) -> Observation:
    """Read the flags of every new cookie of a login but the token against forgery."""
    observation, session = Observation(), await client.log_in(client.code)
    rows = [v.lower() for k, v in session.answer.headers if k.lower() == "set-cookie" and not v.startswith("_xsrf")]
    observation.facts = {
        "HttpOnly": bool(rows) and all("httponly" in row for row in rows),
        "SameSite": bool(rows) and all("samesite=strict" in row or "samesite=lax" in row for row in rows),
        "Path": bool(rows) and all("path=/" in row for row in rows),
        "Domain": any("domain=" in row for row in rows),
    }
    return observation


@attack(
    "cookies",
    "a session's cookie with one character changed, shortened, or empty",
    Expectation(facts={"opened": 0}),
    mark=rb"Cookie: ",
)
async def altered_cookies(client: Client) -> Observation:
    """Change each session's cookie at ten places and cut it at five."""
    observation, session, opened = Observation(), await client.log_in(client.code), 0
    for name, value in session.cookies.items():
        if name == "_xsrf":
            continue
        places = [round(n * (len(value) - 2) / 9) for n in range(10)]
        forged = [value[:p] + ("A" if value[p : p + 1] != "A" else "B") + value[p + 1 :] for p in places]
        forged += [value[: len(value) * n // 5] for n in range(5)]
        for other in forged:
            opened += await client.may_enter({**session.cookies, name: other})
    observation.facts["opened"] = opened
    return observation


@attack(
    "Host header",
    "another host's name, which an attacker's page resolves to this machine",
    Expectation(statuses=REFUSED, facts={"reflected": False}),
    mark=rb"Host: rebind\.evil\.example",
)
async def host_of_another_site(client: Client) -> Observation:
    """Ask for the login page under a foreign name; the answer may not repeat it."""
    observation = Observation()
    for target in (client.layout.login, client.layout.screen):
        observation.add(await client.send_raw(request("GET", target, [("Host", f"rebind.evil.example:{client.port}")])))
    observation.facts["reflected"] = any(b"evil.example" in answer for answer in observation.answers)
    return observation


STATIC = (
    "../../../../etc/passwd",
    "..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "....//....//etc/passwd",
    "/etc/passwd",
    "..%5c..%5cetc%5cpasswd",
)


@attack(
    "path traversal",
    "files outside of the static folder",
    Expectation(statuses=AWAY, facts={"leaked": False}),
    mark=rb"GET /static/\.\./",
)
async def traversal_in_static(client: Client) -> Observation:
    """Ask without a login and with it."""
    observation, session = Observation(), await client.log_in(client.code)
    for cookies in ({}, session.cookies):
        observation.add(*[await client.get(client.layout.static + path, cookies=cookies) for path in STATIC])
    observation.facts["leaked"] = any(b"root:" in answer for answer in observation.answers)
    return observation


DOORS = (
    "/api/kernels",
    "/api/contents",
    "/api/sessions",
    "/api/kernelspecs",
    "/api/status",
    "/files/",
    "/terminals/1",
    "/api/terminals",
    "/nbconvert/html/x.ipynb",
    "/tree",
    "/lab",
    "/voila/tree",
    "/api/shutdown",
    "/metrics",
    "/api/me",
)
add_request(
    "jupyter_doors",
    "Jupyter's doors",
    "Jupyter's interfaces without a login",
    *[b"GET %s HTTP/1.1\r\nHost: {host}\r\n\r\n" % door.encode() for door in DOORS],
    statuses=AWAY,
    mark=rb"GET /nbconvert/html/x",
)
NEXT = (
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example",
    "https:evil.example",
    "javascript:alert(1)",
    "/%0d%0aLocation:%20https://evil.example",
)


@attack(
    "open redirects",
    "the login page's next leads to another site",
    Expectation(facts={"led away": 0}),
    mark=rb"next=https?%3A",
)
async def next_to_another_site(client: Client) -> Observation:
    """Log in with each next, in the form and in the query."""
    observation, led = Observation(), 0
    for target in NEXT:
        session = await client.log_in(client.code, next=target)
        place = session.answer.header("Location")
        led += not place.startswith((f"http://{client.host}/", "/")) and bool(place)
        led += place.startswith(("//", "/\\"))
    observation.facts["led away"] = led
    return observation


@attack(
    "header injection",
    "line ends in path, query and form",
    Expectation(facts={"injected": False}),
    mark=rb"%0d%0aX-Injected",
)
async def injected_headers(client: Client) -> Observation:
    """Look for the injected header in every answer."""
    observation = Observation()
    line = "%0d%0aX-Injected:%20yes"
    answers = [await client.get(t + line) for t in ("/", client.layout.login + "?next=/", "/static/", "/login/")]
    session = await client.log_in(client.code, next="/\r\nX-Injected: yes")
    observation.facts["injected"] = any(a.header("X-Injected") for a in (*answers, session.answer))
    return observation


@attack(
    "Origin",
    "another site's page opens a logged-in reviewer's WebSocket",
    Expectation(statuses=AWAY, facts={"kernel": True}),
    mark=rb"Origin: https://evil\.example",
)
async def websocket_of_another_site(client: Client) -> Observation:
    """Use the right cookie with foreign origins, and with none that is a site."""
    observation, session = Observation(), await client.log_in(client.code)
    kernel = await client.open_screen(session)
    observation.facts["kernel"] = bool(kernel)
    for origin in (
        "https://evil.example",
        "null",
        f"http://127.0.0.1.evil.example:{client.port}",
        "http://127.0.0.1:1",
    ):
        answer, connection = await client.open_websocket(
            client.layout.channels.format(kernel=kernel), cookies=session.cookies, origin=origin
        )
        observation.add(answer)
        connection.close()
    return observation


@attack(
    "framing", "the login page inside another site's frame", Expectation(facts={"framed": False}), mark=rb"GET /login"
)
async def framed_login(client: Client) -> Observation:
    """Read frame-ancestors and X-Frame-Options."""
    observation = Observation()
    answer = await client.get(client.layout.login)
    policy = answer.header("Content-Security-Policy")
    fine = "frame-ancestors 'none'" in policy or "frame-ancestors 'self'" in policy
    observation.facts["framed"] = not fine and not answer.header("X-Frame-Options")
    return observation


add_request(
    "broken_requests",
    "error pages",
    "requests that are no HTTP: their answers name no version, path or trace",
    b"GET\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost {host}\r\n\r\n",
    b"GET /nothing-here HTTP/1.1\r\nHost: {host}\r\n\r\n",
    statuses=(*REFUSED, 302),
    mark=rb"GET /nothing-here",
)
add_request(
    "odd_methods",
    "methods",
    "TRACE, PUT, DELETE and PATCH of the login page",
    *[
        b"%s {login} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n" % m
        for m in (b"TRACE", b"PUT", b"DELETE", b"PATCH")
    ],
    mark=rb"TRACE /login",
)


@attack(
    "health",
    "a stranger asks 100 times how the server is",
    Expectation(statuses=(200, 204, 503), facts={"cookies": False}, at_most={"bytes": 200, "seconds": 5}),
    mark=rb"GET /health",
)
async def health_for_a_stranger(client: Client) -> Observation:
    """Ask in a row; the answer is short and sets no cookie."""
    observation, start = Observation(), time.monotonic()
    answers = [await client.get(client.layout.health) for _ in range(client.many(100))]
    observation.add(*answers)
    observation.figures["seconds"] = time.monotonic() - start
    observation.figures["bytes"] = max(len(answer.body) for answer in answers)
    observation.facts["cookies"] = any(answer.cookies for answer in answers)
    return observation


IN = Expectation(facts={"logged in": True})


@honest(
    "slow line",
    "a review of 300 kB goes out at 20 kB/s over the screen's WebSocket",
    Expectation(facts={"answered": True}),
    mark=rb"slow review",
)
async def review_over_a_slow_line(client: Client) -> Observation:
    """Send one large message slowly and expect an answer to it."""
    observation = Observation()
    _, _, _, connection = await client.open_channels()
    data = frame(2, kernel_message("kernel_info_request", {}, "slow review " * client.large(25_000)))
    await trickle(connection, [data[n : n + 2000] for n in range(0, len(data), 2000)], partial(client.pause, 0.1))
    observation.facts["answered"] = await wait_for_message(connection, b"kernel_info_reply")
    connection.close()
    return observation


@honest("slow line", "a login arrives in pieces of 40 bytes, five a second", IN, mark=rb"code=")
async def login_in_small_pieces(client: Client) -> Observation:
    """Send the login request slowly."""
    observation = Observation()
    _, form, cookies = await client.open_login()
    data, connection = client.build_login(form, cookies, client.code), await client.connect()
    await trickle(connection, [data[n : n + 40] for n in range(0, len(data), 40)], partial(client.pause, 0.2))
    observation.facts["logged in"] = client.read_login(await connection.read_answer(), cookies).is_logged_in
    connection.close()
    return observation


@honest("mistypes", "four wrong codes, a second apart, then the right one", IN, mark=rb"code=")
async def four_mistakes(client: Client) -> Observation:
    """Make typing errors in the last group."""
    observation = Observation()
    for number in range(4):
        await client.log_in(client.wrong_code(number))
        await client.pause(1)
    observation.facts["logged in"] = (await client.log_in(client.code)).is_logged_in
    return observation


@honest(
    "many at once",
    "twenty clinicians log in at eight o'clock through one address",
    Expectation(facts={"logged in": 20}),
    mark=rb"code=",
)
async def twenty_at_eight(client: Client) -> Observation:
    """Log in twenty times at once with both codes."""
    observation, codes = Observation(), list(client.codes.values())
    sessions = await asyncio.gather(*(client.log_in(codes[n % len(codes)]) for n in range(20)))
    observation.facts["logged in"] = sum(session.is_logged_in for session in sessions)
    return observation


@honest("large notes", "a note of 200 kB in one message", Expectation(facts={"answered": True}), mark=rb"a long note")
async def large_note(client: Client) -> Observation:
    """Send the note at once."""
    observation = Observation()
    _, _, _, connection = await client.open_channels()
    await connection.send(frame(2, kernel_message("kernel_info_request", {}, "a long note " * 17_000)))
    observation.facts["answered"] = await wait_for_message(connection, b"kernel_info_reply")
    connection.close()
    return observation


@honest(
    "idle",
    "a screen is left alone over lunch and then used",
    Expectation(facts={"answered": True}),
    mark=rb"kernel_info_request",
)
async def idle_over_lunch(client: Client) -> Observation:
    """Answer the server's pings and nothing else for a while."""
    observation = Observation()
    _, _, _, connection = await client.open_channels()
    await wait_for_message(connection, b"\0 no such word", client.lunch_seconds * client.pace)
    await connection.send(frame(2, kernel_message("kernel_info_request", {})))
    observation.facts["answered"] = await wait_for_message(connection, b"kernel_info_reply")
    connection.close()
    return observation


@honest(
    "reconnecting",
    "a laptop sleeps for twenty seconds; its WebSocket comes back",
    Expectation(statuses=(101,)),
    mark=rb"/channels",
)
async def websocket_after_sleep(client: Client) -> Observation:
    """Drop the connection and open it anew to the same kernel."""
    observation = Observation()
    session, kernel, first, connection = await client.open_channels()
    connection.reset()
    await client.pause(20)
    second, connection = await client.open_websocket(
        client.layout.channels.format(kernel=kernel), cookies=session.cookies
    )
    observation.add(first, second)
    connection.close()
    return observation


@honest("tabs", "two tabs of one browser", Expectation(facts={"kernels": 2}), mark=rb"Cookie: ")
async def two_tabs(client: Client) -> Observation:
    """Open the screen twice with one session."""
    observation, session = Observation(), await client.log_in(client.code)
    observation.facts["kernels"] = len({await client.open_screen(session), await client.open_screen(session)} - {""})
    return observation


@honest("password managers", "a password manager adds fields of its own to the form", IN, mark=rb"username=dr_lee")
async def password_manager(client: Client) -> Observation:
    """Send a user's name beside the code."""
    observation = Observation()
    session = await client.log_in(client.code, username="dr_lee", remember="on", autofill="1")
    observation.facts["logged in"] = session.is_logged_in
    return observation


@honest("IPv6", "the IPv6 loopback address, if the server offers it", Expectation(statuses=(CLOSED, 200)), mark=b"")
async def ipv6_loopback(client: Client) -> Observation:
    """A refused connection is fine; an accepted one must serve the login page."""
    observation = Observation()
    try:
        connection = await client.connect(host="::1")
    except OSError:
        observation.statuses.append(CLOSED)
        return observation
    await connection.send(request("GET", client.layout.login, [("Host", f"[::1]:{client.port}")]))
    observation.add(await connection.read_answer())
    connection.close()
    return observation


@honest("keep-alive", "thirty pages over one connection", Expectation(statuses=(200,)), mark=rb"Connection: keep-alive")
async def thirty_pages_on_one_connection(client: Client) -> Observation:
    """Ask, read, wait a little, and ask again."""
    observation, connection = Observation(), await client.connect()
    for _ in range(30):
        await connection.send(request("GET", client.layout.login, client.headers(("Connection", "keep-alive"))))
        observation.add(await connection.read_answer())
        await client.pause(0.2)
    connection.close()
    return observation


@honest("proxies", "a proxy adds its headers", IN, mark=rb"X-Request-Id: ")
async def headers_of_a_proxy(client: Client) -> Observation:
    """Log in with the headers of common proxies; a client's own claim of a name is not among them."""
    rows = (
        ("X-Forwarded-For", "10.1.2.3, 10.9.9.9"),
        ("X-Forwarded-Proto", "http"),
        ("Via", "1.1 proxy"),
        ("X-Request-Id", "7f3a"),
        ("Forwarded", "for=10.1.2.3"),
        ("traceparent", "00-" + "a" * 32 + "-" + "b" * 16 + "-01"),
    )
    observation = Observation()
    observation.facts["logged in"] = (await client.log_in(client.code, *rows)).is_logged_in
    return observation


@honest("cookies", "a browser that brings fifty cookies of the hospital's other services", IN, mark=rb"portal49=")
async def fifty_cookies(client: Client) -> Observation:
    """Send 5 kB of other cookies."""
    observation = Observation()
    session = await client.log_in(client.code, cookies={f"portal{n}": "v" * 90 for n in range(50)})
    observation.facts["logged in"] = session.is_logged_in
    return observation


@honest("Unicode", "a reviewer whose name has letters beyond ASCII", IN, mark=rb"code=")
async def reviewer_with_an_umlaut(client: Client) -> Observation:
    """A name that the roster refuses by its rule counts as logged in."""
    observation = Observation()
    try:
        code = await asyncio.to_thread(client.control.add_reviewer, "dr_jörg_müller")
    except ValueError:
        observation.facts["logged in"] = True
        return observation
    observation.facts["logged in"] = (await client.log_in(code)).is_logged_in
    return observation


@honest(
    "old proxies",
    "headers in lower case and without a blank after the colon",
    Expectation(statuses=(200,)),
    mark=rb"accept-language:de",
)
async def lower_case_headers(client: Client) -> Observation:
    """Write the request by hand."""
    observation = Observation()
    observation.add(
        await client.send_raw(
            f"GET {client.layout.login} HTTP/1.1\r\nhost:{client.host}\r\naccept-language:de\r\n\r\n".encode()
        )
    )
    return observation


@honest(
    "prefetching",
    "a browser opens six connections at once and uses two",
    Expectation(statuses=(200,)),
    mark=rb"GET /login",
)
async def six_connections_two_used(client: Client) -> Observation:
    """Leave four connections silent for ten seconds."""
    observation, connections = Observation(), await client.connect_many(6)
    for connection in connections[:2]:
        await connection.send(request("GET", client.layout.login, client.headers()))
        observation.add(await connection.read_answer())
    await client.pause(10)
    observation.add(await client.get(client.layout.login))
    for connection in connections:
        connection.close()
    return observation
