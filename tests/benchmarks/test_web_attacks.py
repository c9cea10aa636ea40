"""Attacks and honest clients send what they say, to a small server; evalkit's server meets those of the open half."""

import asyncio
import contextlib
import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qs

import pytest
from benchmarks import web_attacks
from benchmarks.first_contact.web_attacks import open as open_half
from benchmarks.first_contact.web_attacks import sealed
from benchmarks.first_contact.web_attacks.client import (
    Answer,
    Attack,
    Client,
    Expectation,
    Observation,
    Visit,
    find_faults,
    frame,
)
from patience import SECONDS

HALVES = (open_half, sealed)
ROWS = [row for half in HALVES for row in (*half.ATTACKS, *half.HONEST_CLIENTS)]
PAGE = b'<form method="post" action="/login"><input type="hidden" name="_xsrf" value="t"><input type="hidden" name="next" value="/"><input name="code" type="password"></form>'
SCREEN = b'<script>{"kernelId": "6a1f0d5e-1111-4222-8333-444455556666"}</script>'


class Stub(asyncio.Protocol):
    """A server that believes everything: it records what comes and answers in the manner of a review server."""

    def __init__(self, codes: set[str], records: list[bytearray]):
        self.codes, self.record, self.waiting, self.is_websocket = codes, bytearray(), b"", False
        self.number = len(records)
        records.append(self.record)  # one a connection, or what one sends would stand amid what another one sends

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.record += data
        self.waiting += data
        while not self.is_websocket and b"\r\n\r\n" in self.waiting and not self.transport.is_closing():
            head, _, body = self.waiting.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            size = int(length[1]) if length else 0
            if size > 3_000_000 or b"ransfer-Encoding" in head or not head[:1].isalpha():
                self.answer(400, close=True)
                return
            if len(body) < size:
                return
            self.waiting = body[size:]
            self.serve(head, body[:size])
        if self.is_websocket and self.waiting:
            if self.waiting[0] not in {0x81, 0x01, 0x82, 0x02, 0x00, 0x89}:
                self.transport.close()
            elif b"kernel_info_request" in data or b"kernel_info_request" in self.waiting[:4096]:
                self.transport.write(frame(1, b"kernel_info_reply", masked=False))

    def serve(self, head: bytes, body: bytes):
        is_known = b"stub=" in head
        if b"ebsocket" in head.lower() and b"upgrade:" in head.lower():
            self.is_websocket = is_known
            self.answer(101 if is_known else 403)
        elif body:
            code = parse_qs(body.decode("utf-8", "replace")).get("code", [""])[0].strip()
            if code in self.codes:
                self.answer(
                    303,
                    b"Location: /\r\nSet-Cookie: stub=%d.%d; HttpOnly; Path=/\r\n" % (self.number, len(self.record)),
                )
            else:
                self.answer(401, page=PAGE)
        elif head.startswith((b"GET / ", b"GET /api/kernels ")) and is_known:
            self.answer(200, page=SCREEN)
        else:
            self.answer(200, page=b"" if head.startswith(b"HEAD") else PAGE)

    def answer(self, status: int, more: bytes = b"", page: bytes = b"", *, close: bool = False):
        length = b"" if status == 101 else b"Content-Length: %d\r\n" % len(page)
        self.transport.write(b"HTTP/1.1 %d X\r\n" % status + more + length + b"\r\n" + page)
        if close:
            self.transport.close()


class Roster:
    """The stub's owner."""

    def __init__(self, codes: set[str]):
        self.codes, self.names, self.calls = codes, {}, []

    def add_reviewer(self, name):
        self.calls.append("add")
        code = f"new0-code-0000-{len(self.calls):04d}"
        self.codes.add(code)
        self.names[name] = code
        return code

    def remove_reviewer(self, name):
        self.calls.append("remove")
        self.codes.discard(self.names.pop(name))

    def stop(self):
        self.calls.append("stop")

    def start(self):
        self.calls.append("start")

    def restart(self):
        self.calls.append("restart")


@contextlib.contextmanager
def serve_stub():
    codes, records, loop = {"hfeq-t3tq-4hz7-8cf4", "k7wd-22mp-x9ce-vb5n"}, [], asyncio.new_event_loop()
    roster = Roster(codes)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(
        loop.create_server(lambda: Stub(codes, records), "127.0.0.1", 0, backlog=200), loop
    ).result()
    names = dict(zip(("dr_lee", "dr_kim"), sorted(codes), strict=True))
    try:
        port = server.sockets[0].getsockname()[1]
        yield Client(port, names, roster, scale=0.005, pace=0.002, size=0.001, lunch_seconds=20), records, roster
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.mark.parametrize("attack", ROWS, ids=[f"row{number}" for number in range(len(ROWS))])
def test_attack_sends_what_it_says(attack):
    with serve_stub() as (client, records, _):
        observation = attack.run(client)
    record = b"".join(records)
    assert re.search(attack.mark, record)
    assert record or not attack.mark
    wanted = attack.expectation
    assert wanted.facts.keys() - {"throttled"} <= observation.facts.keys()
    assert wanted.at_most.keys() | wanted.at_least.keys() <= observation.figures.keys()
    assert observation.statuses or wanted.statuses is None
    assert observation.seconds_to_close or wanted.close_within is None
    assert len(observation.visits) == (attack.visit_after is not None)
    assert all(visit.page_status == 200 and visit.is_logged_in for visit in observation.visits)


def test_halves_are_large_enough_and_share_no_idea():
    for half in HALVES:
        assert len(half.ATTACKS) >= 30
        assert len(half.HONEST_CLIENTS) >= 15
        assert all(row.visit_after is None for row in half.HONEST_CLIENTS)
    for key in ("name", "description"):
        assert max(Counter(getattr(row, key) for row in ROWS).values()) == 1
    assert not set(open_half.EXPRESSIONS) & set(sealed.EXPRESSIONS)


def test_a_believing_server_is_found_at_fault():
    by_name = {attack.name: attack for attack in open_half.ATTACKS}
    for name in (
        "altered_cookies",
        "login_from_another_site",
        "cookie_after_sign_out",
        "jupyter_doors",
        "framed_login",
    ):
        with serve_stub() as (client, _, _):
            assert find_faults(by_name[name], by_name[name].run(client), client), name


def test_honest_clients_are_served_by_a_believing_server():
    by_name = {attack.name: attack for attack in open_half.HONEST_CLIENTS}
    for name in ("twenty_at_eight", "four_mistakes", "large_note", "websocket_after_sleep", "fifty_cookies"):
        with serve_stub() as (client, _, _):
            assert find_faults(by_name[name], by_name[name].run(client), client) == [], name


@pytest.mark.parametrize(
    ("expectation", "observation", "memory", "fault"),
    [
        (Expectation(statuses=(400,)), Observation(statuses=[400, 200]), None, "status 200"),
        (Expectation(statuses=(400,)), Observation(), None, "nothing was asked"),
        (Expectation(close_within=5), Observation(seconds_to_close=[4, float("inf")]), None, "1 connections"),
        (Expectation(facts={"a": 1}), Observation(), None, "a: None instead of 1"),
        (Expectation(at_most={"a": 1}), Observation(), None, "a: over 1"),
        (Expectation(at_least={"a": 1}), Observation(figures={"a": 0}), None, "a: under 1"),
        (Expectation(memory_mb=200), Observation(), 201, "memory: 201 MB"),
        (Expectation(), Observation(visits=[Visit(2.5, 200, True)]), None, "login page"),
        (Expectation(), Observation(visits=[Visit(0.1, 200, False)]), None, "right code was refused"),
        (Expectation(), Observation(answers=[b"Server: TornadoServer/6.4"]), None, "a path, a version"),
        (Expectation(), Observation(answers=[b"a Melanoma word"]), None, "secret word"),
    ],
)
def test_faults_are_named(expectation, observation, memory, fault):
    client = Client(1, {}, Roster(set()), secrets=(b"Melanoma",))
    attack = Attack("x", "x", "x", None, expectation)
    [found] = find_faults(attack, observation, client, memory)
    assert fault in found
    fine = Observation(
        [400], [1], {"a": 1}, {"a": 1}, [Answer(400, [("Server", "evalkit")]).bytes], [Visit(1, 200, True)]
    )
    assert find_faults(attack, fine, client, 199) == []


#: Rows of the open half that take longer than four seconds, open hundreds of connections or compare times.
LONG = {
    *("slow_header_bytes", "slow_login_bodies", "thousand_slow_posts", "idle_after_one_page"),
    *(
        "half_closed_after_request",
        "five_hundred_in_one_write",
        "session_of_a_removed_reviewer",
        "timing_of_near_codes",
    ),
    *("review_over_a_slow_line", "six_connections_two_used", "websocket_after_sleep", "idle_over_lunch"),
}


@pytest.fixture(scope="module")
def review_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple]:
    with (
        web_attacks.open_half("open"),
        web_attacks.serve_and_connect(tmp_path_factory.mktemp("attacked")) as server_and_client,
    ):
        yield server_and_client


@pytest.mark.parametrize("is_honest", [False, True], ids=["attacks", "honest clients"])
@pytest.mark.parametrize("is_long", [False, pytest.param(True, marks=pytest.mark.stress)], ids=["quick", "long"])
def test_the_review_server_meets_the_open_half(review_server: tuple, is_honest: bool, is_long: bool) -> None:
    rows = open_half.HONEST_CLIENTS if is_honest else open_half.ATTACKS
    # How soon a page comes is measured by the command of the benchmark: here other tests run beside it.
    chosen = [
        replace(row, expectation=replace(row.expectation, page_seconds=SECONDS))
        for row in rows
        if (row.name in LONG) is is_long
    ]
    assert len(chosen) >= 4
    outcomes = web_attacks.run_rows(chosen, *review_server)
    assert {outcome.row.name: outcome.faults for outcome in outcomes if outcome.faults} == {}
