"""Gemini against a real server on this machine: what each fault becomes, what is sent, and that nothing gets out."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
import traceback
import urllib.request
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from patience import SECONDS, eventually_async
from servers import gemini as service
from servers.gemini import RIGHT, THOUGHT_TOKENS, Answer, Fault, GeminiServer, finished, http_error, scripted

from evalkit.errors import UsageError
from evalkit.llm.model import ModelCallError, Reply, Request, Usage
from evalkit.llm.providers.gemini import GeminiProvider

PROMPT = "PATIENT Jane Roe, born 1950. You look for traps in this."
KEY = "SECRETKEY-31415"
SCHEMA = {"type": "object", "properties": {"findings": {"type": "array"}}, "required": ["findings"]}
PROXY_PAGE = "<html>Zugriff für Sie verweigert</html>".encode("latin-1")

NOTHING = Usage(calls=1)
ASKED = Usage(calls=1, input_tokens=len(PROMPT) // 4, output_tokens=THOUGHT_TOKENS, thought_tokens=THOUGHT_TOKENS)


def spent(characters: int) -> Usage:
    return Usage(
        calls=1,
        input_tokens=len(PROMPT) // 4,
        output_tokens=characters // 4 + THOUGHT_TOKENS,
        thought_tokens=THOUGHT_TOKENS,
    )


def page(status: int, body: bytes = PROXY_PAGE, **headers: str) -> Fault:
    return Fault(f"page({status})", lambda call, answer: body, status=status, headers=headers)


def body(value: Any) -> Fault:
    return Fault("body", lambda call, answer: value)


FAULTS: list[tuple[Fault, str, bool, float | None, Usage]] = [
    # fault                                     code               may pass  wait   cost
    (service.BAD_REQUEST,                       "LLM-REQUEST",     False,    None,  NOTHING),
    (http_error(413),                           "LLM-REQUEST",     False,    None,  NOTHING),
    (service.WRONG_KEY,                         "LLM-KEY",         False,    None,  NOTHING),
    (http_error(401),                           "LLM-KEY",         False,    None,  NOTHING),
    (service.FORBIDDEN,                         "LLM-KEY",         False,    None,  NOTHING),
    (page(403),                                 "LLM-KEY",         False,    None,  NOTHING),
    (service.NO_SUCH_MODEL,                     "LLM-MODEL",       False,    None,  NOTHING),
    (http_error(408),                           "LLM-TIMEOUT",     True,     None,  NOTHING),
    (service.rate_limited(17),                  "LLM-RATE",        True,     17.0,  NOTHING),
    (http_error(429),                           "LLM-RATE",        True,     None,  NOTHING),
    (http_error(429, retry_delay="34.5s"),      "LLM-RATE",        True,     34.5,  NOTHING),
    (http_error(429, retry_after=3, retry_delay="9s"), "LLM-RATE", True,     3.0,   NOTHING),
    (http_error(429, retry_after="soon"),       "LLM-RATE",        True,     None,  NOTHING),
    (http_error(429, retry_after="1e999"),      "LLM-RATE",        True,     None,  NOTHING),
    (http_error(429, retry_after=-5),           "LLM-RATE",        True,     0.0,   NOTHING),
    (page(429, b'["?"]'),                       "LLM-RATE",        True,     None,  NOTHING),
    (page(429, b"[" * 100_000),                 "LLM-RATE",        True,     None,  NOTHING),
    (page(429, b'{"error": {"details": [7, {"retryDelay": null}]}}'), "LLM-RATE", True, None, NOTHING),
    (page(429, b'[{"error": {"details": [{"retryDelay": "2s"}]}}]'), "LLM-RATE", True, 2.0, NOTHING),
    (service.INTERNAL,                          "LLM-SERVER",      True,     None,  NOTHING),
    (service.OVERLOADED,                        "LLM-SERVER",      True,     None,  NOTHING),
    (http_error(503, retry_after=30),           "LLM-SERVER",      True,     30.0,  NOTHING),
    (page(502),                                 "LLM-SERVER",      True,     None,  NOTHING),
    (service.DROPPED,                           "LLM-UNREACHABLE", True,     None,  NOTHING),
    (service.RESET,                             "LLM-UNREACHABLE", True,     None,  NOTHING),
    (service.CUT,                               "LLM-UNREACHABLE", True,     None,  NOTHING),
    (service.BABBLE,                            "LLM-UNREACHABLE", True,     None,  NOTHING),
    (service.NOT_JSON,                          "LLM-MALFORMED",   True,     None,  NOTHING),
    (service.NO_RESPONSE,                       "LLM-MALFORMED",   True,     None,  NOTHING),
    (body({"candidates": "x"}),                 "LLM-MALFORMED",   True,     None,  NOTHING),
    (body({"candidates": [{"finishReason": 5}]}), "LLM-MALFORMED", True,     None,  NOTHING),
    (body(b""),                                 "LLM-MALFORMED",   True,     None,  NOTHING),
    (body(PROXY_PAGE),                          "LLM-MALFORMED",   True,     None,  NOTHING),
    (page(200, b"no gzip", **{"Content-Encoding": "gzip"}), "LLM-MALFORMED", True, None, NOTHING),
    (page(302, b"", Location="/elsewhere"),     "LLM-MALFORMED",   True,     None,  NOTHING),
    (page(204, b""),                            "LLM-MALFORMED",   True,     None,  NOTHING),
    (body({}),                                  "LLM-EMPTY",       True,     None,  NOTHING),
    (service.NO_CANDIDATES,                     "LLM-EMPTY",       True,     None,  ASKED),
    (service.EMPTY_TEXT,                        "LLM-EMPTY",       True,     None,  ASKED),
    (body({"candidates": [{"finishReason": "STOP"}]}), "LLM-EMPTY", True,    None,  NOTHING),
    (service.THOUGHTS.within(" "),              "LLM-EMPTY",       True,     None,  ASKED),
    (service.TRUNCATED,                         "LLM-TRUNCATED",   False,    None,  spent(len(RIGHT) // 2)),
    (finished("CONTINUATION"),                  "LLM-TRUNCATED",   False,    None,  spent(len(RIGHT))),
    (service.SAFETY,                            "LLM-REFUSED",     False,    None,  ASKED),
    (service.RECITATION,                        "LLM-REFUSED",     False,    None,  spent(int(len(RIGHT) * 0.3))),
    (finished("BLOCKLIST"),                     "LLM-REFUSED",     False,    None,  spent(len(RIGHT))),
    (finished("PROHIBITED_CONTENT"),            "LLM-REFUSED",     False,    None,  spent(len(RIGHT))),
    (finished("SPII"),                          "LLM-REFUSED",     False,    None,  spent(len(RIGHT))),
    (finished("LANGUAGE"),                      "LLM-REFUSED",     False,    None,  spent(len(RIGHT))),
    (finished("MODEL_ARMOR"),                   "LLM-REFUSED",     False,    None,  spent(len(RIGHT))),
    (service.BLOCKED,                           "LLM-REFUSED",     False,    None,  ASKED),
    (finished("OTHER"),                         "LLM-UNKNOWN",     True,     None,  spent(len(RIGHT))),
    (service.UNKNOWN_REASON,                    "LLM-UNKNOWN",     True,     None,  spent(len(RIGHT))),
    (finished(PROMPT),                          "LLM-UNKNOWN",     True,     None,  spent(len(RIGHT))),
    (body({"candidates": [{}]}),                "LLM-EMPTY",       True,     None,  NOTHING),
]  # fmt: skip


class Bench:
    """One server and one client for many tests: neither may be any the worse for a fault."""

    def __init__(self) -> None:
        self.reaction: Answer = lambda call: RIGHT
        self.server = GeminiServer(self._answer)
        self.runner = asyncio.Runner()
        self.gemini: GeminiProvider

    def _answer(self, call: service.Call) -> str | Fault:
        return self.reaction(call)

    def ask(self, answer: str | Fault | Answer, *, seconds: float = 20.0, images: tuple[bytes, ...] = ()) -> Reply:
        self.reaction = answer if callable(answer) else lambda call: answer
        return self.runner.run(self.gemini.send(Request(PROMPT, SCHEMA, seconds, images)))


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    bench = Bench()
    with bench.server, bench.runner:
        bench.gemini = GeminiProvider("gemini-9", base_url=bench.server.url, api_key=KEY)
        yield bench
        bench.runner.run(bench.gemini.close())


def asked(gemini: GeminiProvider, *, seconds: float = 20.0) -> Reply:
    return asyncio.run(sent_and_closed(gemini, seconds))


async def sent_and_closed(gemini: GeminiProvider, seconds: float = 20.0) -> Reply:
    try:
        return await gemini.send(Request(PROMPT, SCHEMA, seconds))
    finally:
        await gemini.close()


# What comes back -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code", "may_pass", "retry_after", "usage"), FAULTS, ids=[f"{row[0]} {row[1]}" for row in FAULTS]
)
def test_a_fault_is_one_call_and_one_code(
    bench: Bench, fault: Fault, code: str, may_pass: bool, retry_after: float | None, usage: Usage
) -> None:
    before = len(bench.server.calls)
    with pytest.raises(ModelCallError) as failed:
        bench.ask(fault)
    error = failed.value
    assert (error.code, error.is_transient, error.retry_after, error.usage) == (code, may_pass, retry_after, usage)
    assert len(bench.server.calls) == before + 1
    assert error.message[0].isupper()
    assert not error.message.endswith(".")
    assert error.remedy.endswith(".")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (RIGHT, RIGHT),
        (service.THOUGHTS, RIGHT),
        (service.HALF_JSON, RIGHT[: len(RIGHT) // 2]),
        (service.WRONG_SCHEMA, '{"verdict": "fine", "score": 3}'),
        (finished("STOP").within("µ±≥ \U0001f9ec\u2028"), "µ±≥ \U0001f9ec\u2028"),
    ],
)
def test_a_whole_reply_is_its_text_and_its_cost(bench: Bench, answer: str | Fault, text: str) -> None:
    assert bench.ask(answer) == Reply(text, spent(len(text)))


def test_a_reply_in_parts_is_joined_without_the_thoughts(bench: Bench) -> None:
    parts = [{"text": "{"}, {"text": "hm", "thought": True}, {"functionCall": {"name": "f"}}, {"text": "}"}]
    assert bench.ask(body({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})).text == "{}"


def test_what_a_provider_had_seen_before_is_told() -> None:
    begin = "page " * 2000
    with GeminiServer(lambda call: "{}") as server:

        async def both() -> list[Usage]:
            gemini = GeminiProvider("gemini-9", base_url=server.url, api_key=KEY)
            try:
                return [(await gemini.send(Request(begin + end, SCHEMA, 20))).usage for end in ("V2", "V3", "V3")]
            finally:
                await gemini.close()

        usages = asyncio.run(both())
    assert [usage.cached_tokens for usage in usages] == [0, (len(begin) + 1) // 4, (len(begin) + 2) // 4]
    assert [usage.input_tokens for usage in usages] == [(len(begin) + 2) // 4] * 3


def test_a_date_to_wait_for_is_told_in_seconds(bench: Bench) -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    with pytest.raises(ModelCallError) as failed:
        bench.ask(http_error(503, retry_after=then))
    assert failed.value.retry_after == pytest.approx(39.5, abs=1)


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ModelCallError) as failed:
        asked(GeminiProvider("m", base_url=f"http://127.0.0.1:{port}", api_key=KEY))
    assert (failed.value.code, failed.value.is_transient) == ("LLM-UNREACHABLE", True)


@pytest.mark.parametrize("address", ["ftp://127.0.0.1", "nowhere"])
def test_an_address_that_is_none_is_unreachable(address: str) -> None:
    with pytest.raises(ModelCallError) as failed:
        asked(GeminiProvider("m", base_url=address, api_key=KEY))
    assert failed.value.code == "LLM-UNREACHABLE"


# What is sent --------------------------------------------------------------------------------------------------------


def test_prompt_pictures_and_schema_arrive(bench: Bench) -> None:
    bench.ask(RIGHT, images=(b"\x89PNG one", b"\x89PNG two"), seconds=12.5)
    call = bench.server.calls[-1]
    assert (call.model, call.role, call.prompt) == ("gemini-9", "V3", PROMPT)
    assert call.path == "/v1beta/models/gemini-9:generateContent"
    assert call.images == (b"\x89PNG one", b"\x89PNG two")
    assert call.config == {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
    assert call.schema == SCHEMA
    assert call.headers["x-server-timeout"] == "13"
    parts = call.body["contents"][0]["parts"]
    assert [next(iter(part)) for part in parts] == ["text", "inlineData", "inlineData"]


@pytest.mark.parametrize(("model", "is_taken"), [("gemini-9", True), ("gemma-3-27b-it", False)])
def test_system_instruction_arrives_where_it_is_taken(model: str, is_taken: bool) -> None:
    async def send(gemini: GeminiProvider) -> None:
        await gemini.send(Request(PROMPT, SCHEMA, 20, system_instruction="Judge, do not obey."))
        await gemini.close()

    with GeminiServer(lambda call: RIGHT) as server:
        asyncio.run(send(GeminiProvider(model, base_url=server.url, api_key=KEY)))
    (call,) = server.calls
    if is_taken:
        assert call.body["systemInstruction"]["parts"] == [{"text": "Judge, do not obey."}]
        assert call.prompt == PROMPT
    else:
        assert "systemInstruction" not in call.body
        assert call.prompt.startswith(f"{PROMPT}\n\nJudge, do not obey.")


def test_the_key_goes_into_a_header_and_into_no_address(bench: Bench) -> None:
    bench.ask(RIGHT)
    call = bench.server.calls[-1]
    assert call.headers["x-goog-api-key"] == KEY
    assert KEY not in call.path
    assert KEY not in json.dumps(call.body)


def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name, value in {
        "GEMINI_API_KEY": "another key",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_API_VERSION": "v9",
        "GOOGLE_GENAI_CLIENT_MODE": "record",
        "GOOGLE_GENAI_REPLAYS_DIRECTORY": str(tmp_path),
        "GOOGLE_GENAI_REPLAY_ID": "recorded",
        "GOOGLE_CLOUD_PROJECT": "elsewhere",
    }.items():
        monkeypatch.setenv(name, value)
    with GeminiServer(lambda call: RIGHT) as server:
        asked(GeminiProvider("m", base_url=server.url, api_key=KEY))
    assert server.calls[0].path == "/v1beta/models/m:generateContent"
    assert server.calls[0].headers["x-goog-api-key"] == KEY
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("key", [f"{KEY}\n{KEY}", f"{KEY}ü", f"{KEY}\x00"])
def test_a_key_that_cannot_be_sent_is_not_told_either(key: str) -> None:
    with GeminiServer(lambda call: RIGHT) as server, pytest.raises(ModelCallError) as failed:
        asked(GeminiProvider("m", base_url=server.url, api_key=key))
    assert (failed.value.code, failed.value.is_transient) == ("LLM-KEY", False)
    assert KEY not in whole(failed.value)


def test_vertex_is_asked_with_the_login_of_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.oauth2.credentials import Credentials

    monkeypatch.setattr("google.auth.default", lambda **given: (Credentials(token="LOGIN-27"), "other"))
    monkeypatch.setenv("GOOGLE_API_KEY", "never sent")
    with GeminiServer(lambda call: RIGHT) as server:
        asked(GeminiProvider("gemini-9", base_url=server.url, api_key=KEY, project="clinic", location="europe-west4"))
    (call,) = server.calls
    where = "/v1beta1/projects/clinic/locations/europe-west4/publishers/google/models/gemini-9:generateContent"
    assert (call.model, call.path) == ("gemini-9", where)
    assert call.headers["authorization"] == "Bearer LOGIN-27"
    assert "x-goog-api-key" not in call.headers
    assert call.schema == SCHEMA


@pytest.mark.parametrize(
    ("raised", "code", "may_pass"),
    [
        ("DefaultCredentialsError", "LLM-KEY", False),
        ("RefreshError", "LLM-KEY", False),
        ("TransportError", "LLM-UNREACHABLE", True),
    ],
)
def test_without_a_login_vertex_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, raised: str, code: str, may_pass: bool
) -> None:
    from google.auth import exceptions

    def default(**given: Any) -> None:
        raise getattr(exceptions, raised)(KEY)

    monkeypatch.setattr("google.auth.default", default)
    with GeminiServer(lambda call: RIGHT) as server, pytest.raises(ModelCallError) as failed:
        asked(GeminiProvider("m", base_url=server.url, project="clinic", location="europe-west4"))
    assert (failed.value.code, failed.value.is_transient) == (code, may_pass)
    assert KEY not in whole(failed.value)
    assert server.calls == []


@pytest.mark.parametrize("given", [{"project": "clinic"}, {"location": "europe-west4"}])
def test_half_of_vertex_is_never_taken_for_the_other_service(given: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        GeminiProvider("m", api_key=KEY, **given)


def test_a_redirect_takes_the_key_nowhere() -> None:
    with GeminiServer(lambda call: RIGHT) as other:
        away = page(307, b"", Location=f"{other.url}/v1beta/models/m:generateContent")
        with GeminiServer(lambda call: away) as server, pytest.raises(ModelCallError):
            asked(GeminiProvider("m", base_url=server.url, api_key=KEY))
    assert other.calls == []


def test_the_name_is_that_of_the_option() -> None:
    assert GeminiProvider("gemini-9").name == "gemini:gemini-9"


# Time ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [service.HANG, service.DRIP], ids=str)
def test_a_call_ends_when_its_time_is_up(bench: Bench, fault: Fault) -> None:
    begun = time.monotonic()
    with pytest.raises(ModelCallError) as failed:
        bench.ask(fault, seconds=0.3)
    assert 0.3 <= time.monotonic() - begun < SECONDS
    assert (failed.value.code, failed.value.is_transient, failed.value.usage) == ("LLM-TIMEOUT", True, NOTHING)


def test_a_cancelled_call_hangs_up() -> None:
    arrived = threading.Event()

    def answer(call: service.Call) -> Fault:
        arrived.set()
        return service.HANG

    async def cancel() -> None:
        gemini = GeminiProvider("m", base_url=server.url, api_key=KEY)
        calling = asyncio.create_task(gemini.send(Request(PROMPT, SCHEMA, 60)))
        await asyncio.to_thread(arrived.wait, SECONDS)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert await eventually_async(lambda: server.left == server.calls)
        await gemini.close()

    with GeminiServer(answer) as server:
        asyncio.run(cancel())


@pytest.mark.parametrize("is_closed", [True, False])
def test_one_object_serves_one_loop_after_the_other(is_closed: bool) -> None:
    async def run() -> str:
        try:
            return (await gemini.send(Request(PROMPT, SCHEMA, 20))).text
        finally:
            if is_closed:
                await gemini.close()

    with GeminiServer(lambda call: RIGHT) as server:
        gemini = GeminiProvider("m", base_url=server.url, api_key=KEY)
        assert [asyncio.run(run()) for _ in range(3)] == [RIGHT] * 3
        asyncio.run(gemini.close())


def test_closing_releases_connections_and_allows_new_ones() -> None:
    async def run() -> None:
        for _ in range(2):
            for _ in range(3):
                await gemini.send(Request(PROMPT, SCHEMA, 20))
            assert server.connections == 1
            await gemini.close()
            assert await eventually_async(lambda: server.connections == 0)

    with GeminiServer(lambda call: RIGHT) as server:
        gemini = GeminiProvider("m", base_url=server.url, api_key=KEY)
        asyncio.run(run())


def test_many_calls_wait_at_once() -> None:
    async def run() -> bool:
        gemini = GeminiProvider("m", base_url=server.url, api_key=KEY)
        calls = [asyncio.create_task(gemini.send(Request(PROMPT, SCHEMA, 2 * SECONDS))) for _ in range(64)]
        are_there = await eventually_async(lambda: len(server.calls) == 64)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await gemini.close()
        return are_there

    with GeminiServer(lambda call: service.HANG) as server:
        assert asyncio.run(run())


# What may not get out ------------------------------------------------------------------------------------------------


def whole(error: BaseException) -> str:
    """Everything that an error says, and those it came from."""
    said = []
    chain: list[BaseException | None] = [error]
    while chain:
        if (one := chain.pop()) is not None:
            said += [str(one), repr(one), repr(one.args), repr(vars(one))]
            chain += [one.__cause__, one.__context__]
    return "\n".join([*said, *traceback.format_exception(error)])


@pytest.mark.parametrize("asked_for", [RIGHT, *(row[0] for row in FAULTS), service.HANG, service.DRIP], ids=str)
def test_no_error_log_or_warning_holds_prompt_reply_or_key(
    bench: Bench, asked_for: str | Fault, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    # What the SDK or its loggers had when the client was made may have been changed since.
    caplog.set_level(1)
    for name in list(logging.getLogger().manager.loggerDict):
        caplog.set_level(1, name)
    reply = '{"findings": "REPLY-2718"}'
    told, origins = "", (None, None)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            bench.ask(asked_for.within(reply) if isinstance(asked_for, Fault) else reply, seconds=0.2)
        except ModelCallError as error:
            told, origins = whole(error), (error.__cause__, error.__context__)
    told += "".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    told += "".join(str(one.message) for one in warned) + "".join(capfd.readouterr())
    assert origins == (None, None)
    for secret in ("Jane Roe", "REPLY-2718", KEY):
        assert secret not in told


# The server itself ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["v1", "v1beta", "v1beta1/projects/p/locations/l/publishers/google"])
def test_the_server_speaks_every_address(where: str) -> None:
    with GeminiServer(lambda call: RIGHT) as server:
        asking = json.dumps({"contents": [{"parts": [{"text": "You judge the evidence"}]}]}).encode()
        url = f"{server.url}/{where}/models/m:generateContent"
        with urllib.request.urlopen(urllib.request.Request(url, asking), timeout=10) as answer:
            said = json.load(answer)
    assert said["candidates"][0]["content"]["parts"][0]["text"] == RIGHT
    assert (server.calls[0].role, server.calls[0].model) == ("V4", "m")


def test_the_server_plays_a_script_by_role_and_outlives_a_stop() -> None:
    async def ask(prompt: str) -> str:
        gemini = GeminiProvider("m", base_url=server.url, api_key=KEY)
        try:
            return (await gemini.send(Request(prompt, SCHEMA, 20))).text
        finally:
            await gemini.close()

    script = scripted({"V2": ["a", "b"], "V3": [lambda call: f"V3 number {call.nth}"]})
    server = GeminiServer(script)
    texts, threads = [], set(threading.enumerate())
    for _ in range(2):
        with server:
            texts += [asyncio.run(ask(f"{said}.")) for said in ("You check a classification", "You look for traps")]
        assert set(threading.enumerate()) == threads
        url = server.url
    assert server.url == url
    assert texts == ["a", "V3 number 1", "b", "V3 number 2"]
    assert [call.number for call in server.calls] == [1, 2, 3, 4]
    with server:
        assert asyncio.run(ask("You look for traps. You check a classification.")) == "b"


def test_what_the_answer_raises_is_raised_where_the_test_is() -> None:
    def answer(call: service.Call) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), GeminiServer(answer) as server, pytest.raises(ModelCallError):
        asked(GeminiProvider("m", base_url=server.url, api_key=KEY))


@pytest.mark.parametrize(
    ("fault", "finding"),
    [
        (service.OBJECT_FOR_LIST, {"findings": {"severity": "MINOR"}}),
        (service.UNKNOWN_SEVERITY, {"findings": [{"severity": "CATASTROPHIC"}]}),
        (
            service.INVENTED_IDS,
            {"findings": [{"severity": "MINOR"}, {"severity": "MINOR", "issue_id": "V9-INVENTED-001"}]},
        ),
    ],
    ids=str,
)
def test_the_server_bends_an_answer(bench: Bench, fault: Fault, finding: Any) -> None:
    text = bench.ask(fault.within('{"findings": [{"severity": "MINOR"}]}')).text
    assert json.loads(text) == finding
