"""The parts that need no running server: environment, throttle, sessions, kernels' rules, log."""

import asyncio
import errno
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from places import open_folder
from tornado.httputil import HTTPHeaders
from tornado.web import HTTPError
from traitlets.config import LoggingConfigurable

from evalkit.errors import UsageError
from evalkit.review.roster import ReviewerRoster
from evalkit.serving import kernel_manager, login_sessions
from evalkit.serving.handlers import is_well_formed_message
from evalkit.serving.identity import ReviewerIdentityProvider
from evalkit.serving.kernel_manager import ReviewKernelManager
from evalkit.serving.launch import build_server_environment
from evalkit.serving.login_sessions import (
    LOGIN_HOURS,
    MAX_FAILURES,
    WINDOW_SECONDS,
    LoginSessions,
    LoginThrottle,
)
from evalkit.serving.page import LOG_FD_VARIABLE, LOG_FORMAT_VARIABLE, send_kernel_log_to_server
from evalkit.serving.server_log import RedactingFormatter
from evalkit.settings import ReviewServerSettings
from widgets.workbench import show


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_the_environment_is_constructed_not_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"PATH": "/bin", "TZ": "UTC", "HOME": "/root", "X_API_KEY": "k", "PYTHONPATH": f"a{os.pathsep}/b"}
    given["EVALKIT_PATIENT_SALT"] = "of whom corrected pages are about"
    made = build_server_environment(given, Path("output"))
    assert made == {
        "PATH": "/bin",
        "TZ": "UTC",
        "EVALKIT_PATIENT_SALT": "of whom corrected pages are about",
        "PYTHONPATH": f"{tmp_path}/a{os.pathsep}/b",
        "PYTHONUSERBASE": made["PYTHONUSERBASE"],
        "EVALKIT_OUTPUT": f"{tmp_path}/output",
    }
    assert build_server_environment({}, Path("output"))["PATH"] == os.defpath


def test_kernels_are_let_into_the_database_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/evalkit")
    given = {"PGSSLROOTCERT": "/ca.pem", "X_API_KEY": "k"}
    made = build_server_environment(given, Path("output"), "postgresql://evalkit@db/evalkit")
    assert made == build_server_environment({}, Path("output")) | {
        "EVALKIT_DATABASE": "postgresql://evalkit@db/evalkit",
        "PGPASSFILE": "/home/evalkit/.pgpass",
        "PGSSLROOTCERT": "/ca.pem",
    }
    own = build_server_environment({"PGPASSFILE": "/own"}, Path("output"), "postgresql://evalkit@db/evalkit")
    assert own["PGPASSFILE"] == "/own"
    assert "PGSSLROOTCERT" not in build_server_environment(given, Path("output"))


def test_wrong_codes_are_counted_in_a_sliding_window() -> None:
    clock = Clock()
    throttle = LoginThrottle(clock)
    for _ in range(MAX_FAILURES):
        assert throttle.get_seconds_to_wait("a") == 0
        throttle.record_failure("a")
        clock.now += 1
    assert throttle.get_seconds_to_wait("a") == WINDOW_SECONDS - MAX_FAILURES
    assert throttle.get_seconds_to_wait("b") == 0
    clock.now += WINDOW_SECONDS - MAX_FAILURES
    assert throttle.get_seconds_to_wait("a") == 0
    throttle.record_failure("a")
    assert throttle.get_seconds_to_wait("a") == 1
    clock.now += WINDOW_SECONDS
    assert throttle.get_seconds_to_wait("a") == 0


def test_the_throttle_remembers_only_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_sessions, "_MAX_ADDRESSES", 10)
    throttle = LoginThrottle(Clock())
    for number in range(20):
        for _ in range(MAX_FAILURES + 1):
            throttle.record_failure(f"address {number}")
    remembered = throttle._failures_by_address  # nothing shows it from outside
    assert list(remembered) == [f"address {number}" for number in range(10, 20)]
    assert all(len(failures) == MAX_FAILURES for failures in remembered.values())


def test_a_login_lasts_a_day_and_ends_with_its_code(tmp_path: Path) -> None:
    roster, clock = ReviewerRoster(open_folder(tmp_path)), Clock()
    sessions = LoginSessions(roster, clock)
    code = roster.add_reviewer_or_replace_code("dr_lee")
    assert sessions.log_in_by_code("nonsense") is None
    first = sessions.log_in_by_code(code)
    assert first is not None
    assert first.reviewer == "dr_lee"
    assert sessions.find_valid_session(first.session_id) == first
    assert sessions.find_valid_session("") is None
    clock.now += LOGIN_HOURS * 3600
    assert sessions.find_valid_session(first.session_id) is None
    second, third = sessions.log_in_by_code(code), sessions.log_in_by_code(code)
    assert second.session_id != third.session_id
    sessions.end_session(second.session_id)
    assert sessions.find_valid_session(second.session_id) is None
    assert sessions.find_valid_session(third.session_id) == third
    fourth = sessions.log_in_by_code(roster.add_reviewer_or_replace_code("dr_lee"))
    assert sessions.find_valid_session(third.session_id) is None
    assert sessions.find_valid_session(fourth.session_id) == fourth
    roster.remove_reviewer("dr_lee")
    assert sessions.find_valid_session(fourth.session_id) is None


@pytest.mark.parametrize("meanwhile", ["remove_reviewer", "add_reviewer_or_replace_code"])
def test_a_login_that_began_while_its_code_ended_is_not_good(tmp_path: Path, meanwhile: str) -> None:
    class Slow(ReviewerRoster):
        def find_reviewer_by_code(self, code: str) -> str | None:
            found = super().find_reviewer_by_code(code)
            getattr(super(), meanwhile)("dr_lee")
            return found

    sessions = LoginSessions(Slow(open_folder(tmp_path)))
    session = sessions.log_in_by_code(ReviewerRoster(open_folder(tmp_path)).add_reviewer_or_replace_code("dr_lee"))
    assert session is not None
    assert sessions.find_valid_session(session.session_id) is None


def test_cached_code_hashes_are_read_again_in_time(tmp_path: Path) -> None:
    class Counted(ReviewerRoster):
        looks = 0

        def _read_roster(self) -> object:
            self.looks += 1
            return super()._read_roster()

    clock, roster = Clock(), ReviewerRoster(open_folder(tmp_path))
    old = roster.add_reviewer_or_replace_code("dr_lee")
    cached = Counted(open_folder(tmp_path), cache_seconds=1, clock=clock)
    sessions = LoginSessions(cached, clock)
    first = sessions.log_in_by_code(old)
    new = roster.add_reviewer_or_replace_code("dr_lee")
    for _ in range(9):
        clock.now += 0.1
        assert sessions.find_valid_session(first.session_id) == first
        assert sessions.log_in_or_renew_by_proxy("dr_lee") is not None
        assert sessions.log_in_by_code("guess") is None
    assert cached.looks == 1
    clock.now += 0.2
    assert sessions.find_valid_session(first.session_id) is None
    assert sessions.log_in_by_code(new) is not None
    assert cached.looks == 2


def test_proxy_login_is_shared_and_ends_with_the_roster(tmp_path: Path) -> None:
    roster, clock = ReviewerRoster(open_folder(tmp_path)), Clock()
    sessions = LoginSessions(roster, clock)
    assert sessions.log_in_or_renew_by_proxy("dr_lee") is None
    code = roster.add_reviewer_or_replace_code("dr_lee")
    first = sessions.log_in_or_renew_by_proxy("dr_lee")
    clock.now += LOGIN_HOURS * 3600 - 1
    again = sessions.log_in_or_renew_by_proxy("dr_lee")
    assert again.session_id == first.session_id
    clock.now += LOGIN_HOURS * 3600 - 1
    assert sessions.find_valid_session(first.session_id) == again
    assert sessions.log_in_by_code(code).session_id != first.session_id
    clock.now += 1
    assert sessions.log_in_or_renew_by_proxy("dr_lee").session_id != first.session_id
    roster.add_reviewer_or_replace_code("dr_lee")
    assert sessions.find_valid_session(first.session_id) is None
    for wrong in ("", "dr_le", "DR_LEE", "dr_lee,dr_lee", "dr_lee "):
        assert sessions.log_in_or_renew_by_proxy(wrong) is None


def test_what_a_client_says_about_itself_is_removed(tmp_path: Path) -> None:
    class Parent(LoggingConfigurable):
        sessions, review_settings = LoginSessions(ReviewerRoster(open_folder(tmp_path))), ReviewServerSettings()

    connection = SimpleNamespace(context=SimpleNamespace(address=("127.0.0.1", 50_000)))
    headers = HTTPHeaders({"X-Reviewer": "dr_kim", "X_reviewer": "dr_kim", "Host": "h"})
    handler = SimpleNamespace(
        request=SimpleNamespace(headers=headers, host="h", connection=connection),
        get_signed_cookie=lambda name, **given: None,
    )
    assert ReviewerIdentityProvider(parent=Parent()).get_user(handler) is None
    assert list(headers) == ["Host"]


def test_jupyterhub_user_is_reviewer_only_in_jupyterlab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "dr_lee")
    monkeypatch.delenv("SERVER_SOFTWARE", raising=False)
    assert show(tmp_path).children[0].reviewer == "dr_lee"
    assert show(tmp_path, reviewer="dr_kim").children[0].reviewer == "dr_kim"
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5")
    with pytest.raises(UsageError):
        show(tmp_path)
    monkeypatch.setenv("HTTP_X_REVIEWER", "dr_ray")
    assert show(tmp_path).children[0].reviewer == "dr_ray"
    assert "JUPYTERHUB_USER" not in build_server_environment(os.environ, tmp_path)


@pytest.mark.parametrize(
    ("offsets", "length", "expected"),
    [
        ([56, 61, 63, 65, 67, 69], 69, True),
        ([56, 61, 63, 65, 67, 69, 80], 80, False),  # the first part begins among the offsets
        ([64, 69, 71, 73, 75, 77, 90], 90, True),  # with bytes of a widget
        ([56, 61, 63, 65, 67, 69], 68, False),
        ([56, 61, 63, 62, 67, 69], 69, False),
        ([56, 2**63, 63, 65, 67, 69], 69, False),
        ([48, 53, 55, 57, 59], 59, False),
        ([9000, *1100 * [9001]], 9001, False),
        (500_000 * [8_000_000, 4_000_008], 8_000_008, False),  # it would be copied half a million times
        ([], 8, False),
    ],
)
def test_a_message_of_a_page_has_parts_that_follow_each_other(offsets: list[int], length: int, expected: bool) -> None:
    numbers = b"".join(number.to_bytes(8, "little") for number in (len(offsets), *offsets))
    assert is_well_formed_message(numbers.ljust(length, b"x")) is expected


class Kernels(ReviewKernelManager):
    """Kernels of one login that are nothing but names, with so many websockets each; whichever is ended is noted."""

    review_settings = ReviewServerSettings()
    sessions = None

    def __init__(self, websockets: dict[str, int], **settings: int) -> None:
        self.session_id_by_kernel_id = dict.fromkeys(websockets, "s")
        self.kernel_id_by_websocket = {}
        self._kernel_connections = websockets  # Jupyter Server's own, where each websocket is counted
        self.review_settings = ReviewServerSettings(**settings)
        self.ended: list[str] = []

    def __contains__(self, kernel_id: object) -> bool:
        return kernel_id not in self.ended

    async def wait_until_idle(self, kernel_id: str) -> None:
        await asyncio.sleep(0)

    async def shutdown_kernel(self, kernel_id: str, now: bool = False, restart: bool = False) -> None:
        await asyncio.sleep(0)
        self.ended.append(kernel_id)


class Websocket:
    """A websocket of a page, which notes with which code it was closed."""

    def __init__(self) -> None:
        self.closed_with: list[int] = []

    def close(self, code: int) -> None:
        self.closed_with.append(code)


def test_a_hasty_browser_keeps_a_handful_of_kernels() -> None:
    names = [
        f"k{number}" for number in range(kernel_manager.MAX_PAGES_PER_LOGIN + 1)
    ]  # the one that is being opened counts
    websockets = dict.fromkeys(names, 1)
    kernels = Kernels(websockets, pages=0)
    with pytest.raises(HTTPError, match="429"):
        asyncio.run(kernels.end_kernel_to_make_room("s"))
    websockets |= {"k2": 0, "k4": 0}
    asyncio.run(kernels.end_kernel_to_make_room("s"))
    assert kernels.ended == ["k2"]
    asyncio.run(kernels.end_kernel_to_make_room("s"))
    assert kernels.ended == ["k2"]


@pytest.mark.parametrize(("left", "expected"), [("k1", ["k1"]), ("of another login", []), ("", [])])
def test_reloaded_page_takes_its_own_place_at_the_limit(left: str, expected: list[str]) -> None:
    kernels = Kernels({"k1": 1, "k2": 1}, pages=3)
    kernels.session_id_by_kernel_id |= {"new": "s", "of another login": "t"}
    if expected:
        asyncio.run(kernels.end_kernel_to_make_room("s", left))
    else:
        with pytest.raises(HTTPError, match="503"):
            asyncio.run(kernels.end_kernel_to_make_room("s", left))
    assert kernels.ended == expected


def test_concurrent_pages_do_not_share_one_freed_place() -> None:
    kernels = Kernels({"k1": 0, "k2": 0, "k3": 1}, pages=3)

    async def opened(kernel_id: str) -> None:
        kernels.session_id_by_kernel_id[kernel_id] = "s"
        await kernels.end_kernel_to_make_room("s")

    async def at_once() -> list[BaseException | None]:
        return await asyncio.gather(*map(opened, ("n1", "n2", "n3")), return_exceptions=True)

    first, second, third = asyncio.run(at_once())
    assert (kernels.ended, first, second) == (["k1", "k2"], None, None)
    assert isinstance(third, HTTPError)
    assert third.status_code == 503


def test_process_ending_during_memory_check_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Large:
        def __init__(self, pid: int) -> None:
            self.pid = pid
            if pid == hidden:
                raise OSError(errno.EMFILE, "Too many open files")

        def memory_info(self) -> SimpleNamespace:
            return SimpleNamespace(rss=2 << 30)

        def kill(self) -> None:
            if self.pid == gone:
                raise psutil.NoSuchProcess(gone)
            killed.append(self.pid)

    gone, hidden, killed = 1 << 30, 1 << 31, []  # no process has these numbers
    monkeypatch.setattr(kernel_manager, "Process", Large)
    pids = {"starts": None, "gone": gone, "hidden": hidden, "large": gone + 1}
    monkeypatch.setattr(
        ReviewKernelManager,
        "get_kernel",
        lambda self, kernel_id: SimpleNamespace(provisioner=SimpleNamespace(pid=pids[kernel_id])),
    )
    kernels = ReviewKernelManager(parent=LoggingConfigurable())
    monkeypatch.setattr(ReviewKernelManager, "__contains__", lambda self, kernel_id: True)
    monkeypatch.setattr(ReviewKernelManager, "review_settings", ReviewServerSettings())
    kernels.session_id_by_kernel_id |= dict.fromkeys(pids, "s")
    kernels.end_oversized_kernels()
    assert killed == [gone + 1]
    assert [kernel_id for kernel_id in pids if kernels.is_ended_for_memory(kernel_id, "s")] == ["large"]


@pytest.mark.parametrize(
    ("states", "looks"),
    [
        (["idle"] * 9, 2),
        (["busy", "busy", "idle", "busy", "idle", "idle", "idle"], 6),  # between two messages it is idle too
        (["idle", None], 1),  # it has ended by itself
        (["busy"] * 99, 50),
    ],
)
def test_a_closed_page_has_time_for_its_last_presses(
    monkeypatch: pytest.MonkeyPatch, states: list[str | None], looks: int
) -> None:
    class Fake(ReviewKernelManager):
        def __init__(self) -> None:
            self.looked = 0

        def __contains__(self, kernel_id: object) -> bool:
            return states[self.looked] is not None

        def get_kernel(self, kernel_id: str) -> SimpleNamespace:
            self.looked += 1
            return SimpleNamespace(execution_state=states[self.looked - 1])

    slept = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("asyncio.sleep", sleep)
    fake = Fake()
    asyncio.run(fake.wait_until_idle("k"))
    assert fake.looked == looks
    assert sum(slept) <= 5.01


def test_a_logout_waits_for_the_last_presses_on_all_its_pages() -> None:
    """The login has ended then: the look at what is left of ended logins must find nothing to end in the meantime."""
    told: list[str] = []

    class Fake(ReviewKernelManager):
        def __init__(self) -> None:
            self.kernel_id_by_websocket = {}
            self.alive = {"one", "two", "closing", "another's"}
            self.session_id_by_kernel_id = {**dict.fromkeys(self.alive, "lee"), "another's": "kim", "ended": "lee"}

        def __contains__(self, kernel_id: object) -> bool:
            return kernel_id in self.alive

        async def wait_until_idle(self, kernel_id: str) -> None:
            assert kernel_id not in self.session_id_by_kernel_id
            await asyncio.sleep(0)
            told.append(f"{kernel_id} has settled")
            self.alive.discard("closing")

        async def shutdown_kernel(self, kernel_id: str, now: bool = False, restart: bool = False) -> None:
            assert f"{kernel_id} has settled" in told
            told.append(f"{kernel_id} is ended")

    asyncio.run(Fake().end_kernels_of_session("lee"))
    assert sorted(told) == ["closing has settled", "one has settled", "one is ended", "two has settled", "two is ended"]


def test_kernels_and_websockets_end_with_their_login(tmp_path: Path) -> None:
    roster, websockets = ReviewerRoster(open_folder(tmp_path)), {name: Websocket() for name in ("dr_lee", "dr_kim")}
    kernels, sessions = Kernels({}), LoginSessions(roster)
    kernels.sessions = sessions
    for name, websocket in websockets.items():
        session = sessions.log_in_by_code(roster.add_reviewer_or_replace_code(name))
        kernels.session_id_by_kernel_id[name] = session.session_id
        kernels.kernel_id_by_websocket[websocket] = name
    asyncio.run(kernels.end_kernels_of_ended_sessions())
    assert kernels.ended == []
    roster.add_reviewer_or_replace_code("dr_lee")
    asyncio.run(kernels.end_kernels_of_ended_sessions())
    assert kernels.ended == ["dr_lee"]
    assert (websockets["dr_lee"].closed_with, websockets["dr_kim"].closed_with) == ([1008], [])


def test_a_roster_that_cannot_be_read_ends_no_page(tmp_path: Path) -> None:
    roster, kernels = ReviewerRoster(open_folder(tmp_path)), Kernels({})
    kernels.sessions = LoginSessions(roster)
    session = kernels.sessions.log_in_by_code(roster.add_reviewer_or_replace_code("dr_lee"))
    kernels.session_id_by_kernel_id["k"] = session.session_id
    (tmp_path / "reviewers.json").write_text("{}")
    asyncio.run(kernels.end_kernels_of_ended_sessions())
    assert kernels.ended == []


def test_log_omits_exception_messages_and_queries() -> None:
    try:
        int("Jane Roe")
    except ValueError:
        caught = sys.exc_info()
    record = logging.LogRecord("x", logging.ERROR, "f", 1, "GET /a?case=%s (::1)\nJane Roe", ("roe",), caught)
    text = RedactingFormatter("text").format(record)
    assert text.startswith("ERROR - x: GET /a?… (::1)\n")
    assert "test_server_parts.py" in text
    assert text.endswith("ValueError")
    assert "roe" not in text.lower()
    told = json.loads(RedactingFormatter("json").format(record))
    assert (told["level"], told["request"], told["message"], told["error"]) == (
        "ERROR",
        "-",
        "GET /a?… (::1)",
        "ValueError",
    )
    assert "test_server_parts.py" in told["raised"]
    assert "roe" not in json.dumps(told).lower()


def test_a_kernel_logs_to_the_server(tmp_path: Path) -> None:
    logger = logging.getLogger("evalkit")
    before = logger.handlers[:], logger.propagate
    try:
        send_kernel_log_to_server({})
        assert logger.handlers == before[0]
        with (tmp_path / "log").open("w") as target:
            send_kernel_log_to_server({LOG_FD_VARIABLE: str(target.fileno())})
        logging.getLogger("evalkit.widgets").warning("said")
        assert (tmp_path / "log").read_text() == "WARNING evalkit.widgets: said\n"
        with (tmp_path / "json").open("w") as target:
            send_kernel_log_to_server({LOG_FD_VARIABLE: str(target.fileno()), LOG_FORMAT_VARIABLE: "json"})
        logging.getLogger("evalkit.widgets").warning("said")
        assert json.loads((tmp_path / "json").read_text())["message"] == "said"
    finally:
        for handler in set(logger.handlers) - set(before[0]):
            logger.removeHandler(handler)
            handler.stream.close()
        logger.propagate = before[1]


def test_a_kernel_cannot_take_all_memory_between_two_looks() -> None:
    program = (
        "from evalkit.serving.kernel import limit_kernel_memory\n"
        "limit_kernel_memory({}); limit_kernel_memory({'EVALKIT_PAGE_MEMORY_MB': '0'}); kept = bytearray(900 << 20); del kept\n"
        "limit_kernel_memory({'EVALKIT_PAGE_MEMORY_MB': '100'}); kept = bytearray(500 << 20); del kept\n"
        "try: bytearray(900 << 20)\n"
        "except MemoryError: print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"
