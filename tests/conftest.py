"""What holds for every test: the same examples in every run, and no network but this machine's own.

Also the demo's documents and one run over them, made once for all tests that only look.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from once import make_once
from places import in_bucket
from samples.demo_runs import PATIENT_SALT, run_samples
from servers.postgresql import PostgreSQLServer, programs
from tables import EVERY
from warm_pools import keep_pools_warm

from evalkit.pipeline import RunSummary
from evalkit.samples import write_demo_folder
from evalkit.store.change_chain import open_problems

if TYPE_CHECKING:
    from servers.buckets import GcsServer, S3Server

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # in the background; what the tests start would not heed it either
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: Runs into different folders are compared: a patient has the same keys in all of them.
os.environ["EVALKIT_PATIENT_SALT"] = PATIENT_SALT

#: Paid models need a limit of the run; this one is never met.
os.environ["EVALKIT_LIMITS__CALLS_PER_RUN"] = "1000000"

settings.register_profile(
    "evalkit",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("evalkit")

#: What a test of the system needs besides this process: by its fixtures, or by where it lies.
SYSTEM_FIXTURES = {"postgresql", "s3", "gs", "bucket", "install_verifier"}

#: Where memory holds files, and how many bytes must be free there for the files of all tests.
MEMORY_FOLDER, MIN_FREE_BYTES = Path("/dev/shm"), 4 * 2**30

_connect = socket.socket.connect


def pytest_configure() -> None:
    """Keep the tests' files in memory where there is room: ten thousands of small commits would wait for a disk."""
    if can_hold_test_files(MEMORY_FOLDER):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_FOLDER))


def can_hold_test_files(folder: Path) -> bool:
    """Whether there is room for them, and the programs among them may be started."""
    if not os.access(folder, os.W_OK):
        return False
    file_system = os.statvfs(folder)
    is_executable = not file_system.f_flag & os.ST_NOEXEC
    return is_executable and file_system.f_bavail * file_system.f_frsize >= MIN_FREE_BYTES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if EVERY.rows:
        terminalreporter.section("what was tried")
        terminalreporter.write_line(str(EVERY))
        if folder := os.environ.get("EVALKIT_TABLES"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / "faults.md").write_text(f"{EVERY}\n")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The store is tested on both databases; of review, which reaches them through it alone, some tests are enough."""
    if "database" in metafunc.fixturenames:
        is_store = metafunc.definition.path.parent.name in ("store", "stress")
        is_both = is_store or metafunc.definition.get_closest_marker("both_databases")
        metafunc.parametrize("database", ["sqlite", "postgresql"] if is_both else ["sqlite"], indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs more than this process, and begin with it: it takes longest, and the others fill the gaps."""
    for item in items:
        if needs_system(item):
            item.add_marker(pytest.mark.system)
    items.sort(key=lambda item: item.get_closest_marker("system") is None)


def needs_system(item: pytest.Item) -> bool:
    """Whether a test needs browsers, servers, databases, clusters or processes of its own."""
    fixtures = set(getattr(item, "fixturenames", ()))
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    if {"system", "stress"} & set(item.path.parts) or SYSTEM_FIXTURES & {*fixtures, *map(str, parameters)}:
        return True
    # Recognition starts processes of its own; its own module is the smoke that stays.
    if item.path.name != "test_ocr.py" and any(
        "tesseract" in str(mark.kwargs.get("reason")) for mark in item.iter_markers("skipif")
    ):
        return True
    imported = vars(getattr(item, "module", None) or object).values()
    return any(str(getattr(name, "__module__", "")).startswith("servers.") for name in imported)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to reach {address[0]}")
        _connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture(autouse=True)
def _no_earlier_chain_problems() -> None:
    """Forget what an earlier test could not record: a command is its own process."""
    open_problems.clear()


@pytest.fixture(scope="session", autouse=True)
def _warm_pools() -> Iterator[None]:
    with keep_pools_warm():
        yield


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQLServer]:
    if programs() is None:
        pytest.skip("Debian's postgresql is not installed")
    server = PostgreSQLServer()
    yield server
    server.remove()


@pytest.fixture
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the two databases, as whoever sets it up would: each new output folder is in it."""
    if request.param == "postgresql":
        server: PostgreSQLServer = request.getfixturevalue("postgresql")
        monkeypatch.setenv("EVALKIT_DATABASE", server.url)
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    from servers.buckets import S3Server  # moto takes a second to load

    server = S3Server()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def gs() -> Iterator[GcsServer]:
    from servers.buckets import GcsServer

    server = GcsServer()
    yield server
    server.stop()


@pytest.fixture(params=["local", "s3", "gs"])
def output_location(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path | str:
    """Wherever an output folder may lie."""
    return tmp_path / "output" if request.param == "local" else in_bucket(request.param, request, monkeypatch)


@pytest.fixture(params=["s3", "gs"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An output folder in each of the stores."""
    return in_bucket(request.param, request, monkeypatch)


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> Path:
        write_demo_folder(folder)
        return folder

    return make_once(tmp_path_factory, "samples", make)


@pytest.fixture(scope="session")
def finished_run(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    """One run for all workers: its files may be read, and nothing be opened."""
    return make_once(tmp_path_factory, "finished", lambda folder: run_samples(samples, folder / "output"))


@pytest.fixture(scope="session")
def demo_run(finished_run: RunSummary, tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    """Each worker has a copy: who only looks opens the database too, and nobody can copy a folder while it changes."""
    output = tmp_path_factory.mktemp("finished") / "output"
    shutil.copytree(finished_run.output, output)
    return replace(finished_run, output=str(output))
