"""The same from a cluster of real processes as from this machine, whatever happens to the cluster."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import dask
import pytest
from commands import evalkit_command, evalkit_process
from distributed import Client
from distributed.security import Security
from documents.drawing import lines
from documents.scanning import NOTE, printed, scan
from patience import eventually
from samples.demo_runs import read_output_files
from system.dask.clusters import Started, cluster
from system.dask.deadly import deadly_read

import evalkit
from evalkit.doctor import DoctorCheck, run_doctor_checks
from evalkit.documents.readers import resolve_reader_version
from evalkit.errors import DocumentError, ExecutorError, UsageError
from evalkit.pipeline import extract
from evalkit.pipeline.executor import dask as on_dask
from evalkit.pipeline.executor.dask import OpaquePayload, parse_scheduler_address
from evalkit.pipeline.executor.protocol import ReaderConfig
from evalkit.pipeline.executor.reader_pool import ReaderPool
from evalkit.pipeline.run_summary import DocumentSummary
from evalkit.settings import Settings

NAMES = ("quest_cbc", "requisition", "altered_quotes")
NOBODY = "dask://127.0.0.1:1"
PATIENT = "Zacharias_Quillfeather"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def records(samples: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    folder.mkdir()
    for name in NAMES:
        shutil.copy(samples / f"{name}.pdf", folder)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 and nothing else")
    (folder / "scan.pdf").write_bytes(scan(printed(lines(NOTE))))
    return folder


def _only(path: Path, output: Path, started: Started) -> DocumentSummary:
    return evalkit.run([path], output=output, executor=started.executor).documents[0]


def test_the_same_to_the_byte_as_here(records: Path, samples: Path, two: Started, tmp_path: Path) -> None:
    options = {"classifications": samples / "classifications", "production": samples / "production.csv"}
    here = evalkit.run([records], output=tmp_path / "here", extract=True, **options)
    there = evalkit.run([records], output=tmp_path / "there", extract=True, executor=two.executor, **options)
    assert read_output_files(tmp_path / "there") == read_output_files(tmp_path / "here")
    assert len(list((tmp_path / "there" / "results").iterdir())) == len(NAMES) + 2
    assert [one.error for one in there.documents] == [one.error for one in here.documents]
    # Where it was done is no part of the result: what a cluster has finished, this machine need not do again.
    assert all(one.resumed for one in evalkit.run([records], output=tmp_path / "there", **options).documents)


def test_fields_are_extracted_on_the_cluster_too(
    records: Path, two: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    done = on_dask.DaskCluster._run_on_worker

    def noting(cluster, step, *arguments):
        asked.append(step)
        return done(cluster, step, *arguments)

    monkeypatch.setattr(on_dask.DaskCluster, "_run_on_worker", noting)
    here = extract([records / "quest_cbc.pdf"], output=tmp_path / "here")
    there = extract([records / "quest_cbc.pdf"], output=tmp_path / "there", executor=two.executor)
    assert read_output_files(tmp_path / "there") == read_output_files(tmp_path / "here")
    assert there.list_field_rows() == here.list_field_rows()
    assert asked == ["read", "extract"]


def test_a_file_too_large_to_be_sent_is_read_here(
    records: Path, two: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_dask, "read_with_limits", deadly_read)
    shutil.copy(records / "quest_cbc.pdf", records / "crash.pdf")  # for any worker that gets it
    assert "crashed the process" in (_only(records / "crash.pdf", tmp_path / "sent", two).error or "")
    monkeypatch.setattr(on_dask, "_MAX_SENT_BYTES", 100)
    assert _only(records / "crash.pdf", tmp_path / "kept", two).decision == "AUTO_ACCEPT"


def test_crashing_document_fails_alone_and_lost_worker_retries(
    samples: Path, two: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_dask, "read_with_limits", deadly_read)
    folder = tmp_path / "records"
    folder.mkdir()
    names = ("crash", "hang", "first", "kill", "well")
    for number, name in enumerate(names):  # no two of the same bytes
        (folder / f"{name}.pdf").write_bytes((samples / "quest_cbc.pdf").read_bytes() + b"\n%" + str(number).encode())
    settings = Settings(executor=two.executor, read_seconds=2, workers=1)
    run = evalkit.run([folder], output=tmp_path / "there", settings=settings)
    errors = {one.doc_id: one.error for one in run.documents}
    assert {name: (error or "").split(" ")[1:4] for name, error in errors.items()} == {
        "crash": ["crashed", "the", "process"],
        "hang": ["was", "not", "read"],
        "first": [],
        "kill": ["crashed", "the", "process"],
        "well": [],
    }
    assert (folder / "first.done").exists()
    assert [one.decision for one in run.documents if one.doc_id in ("first", "well")] == ["AUTO_ACCEPT"] * 2


def test_document_content_is_not_in_logs_keys_or_disk(
    samples: Path, two: Started, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / PATIENT
    folder.mkdir()
    shutil.copy(samples / "quest_cbc.pdf", folder / f"{PATIENT}.pdf")
    (folder / f"{PATIENT}_2.pdf").write_bytes(b"%PDF-1.4 and nothing else")
    with caplog.at_level(logging.DEBUG):
        evalkit.run([folder], output=tmp_path / "there", executor=two.executor)
    ours = "\n".join(record.getMessage() for record in caplog.records)
    for text in (ours, two.logs()):
        assert PATIENT not in text
        assert "Hemoglobin" not in text
    assert "_describe_worker" in two.logs()  # it is their log
    for path in two.folder.rglob("*"):
        if path.is_file() and "scratch" in str(path):
            assert PATIENT.encode() not in path.read_bytes()
    assert PATIENT not in repr(OpaquePayload(PATIENT)) + str(OpaquePayload(PATIENT))


def test_worker_survives_broken_pdf_and_prints_no_file_name(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Dask sends an error with all that it was raised over; of MuPDF's, that fails, and would end the process."""
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 and nothing else")

    async def read(readers: ReaderPool) -> str:
        with pytest.raises(DocumentError) as refused:
            await readers.read(tmp_path / "broken.pdf", doc_id="broken", processing_timestamp="2026")
        return refused.value.code

    async def read_decided_read(readers: ReaderPool) -> None:
        assert await read(readers) == "READER-DAMAGED"
        await readers.run_in_worker(
            on_dask._describe_environment, "none"
        )  # as before it decides: from a module that loads Dask
        process = await readers.run_in_worker(os.getpid)
        assert await read(readers) == "READER-DAMAGED"
        assert await readers.run_in_worker(os.getpid) == process

    with ReaderPool(1, ReaderConfig(processor_seconds=20)) as readers:
        readers.reads_alone = False  # read alone, each file has a process of its own
        asyncio.run(read_decided_read(readers))
    assert "broken.pdf" not in capfd.readouterr().err


def test_documents_are_released_when_the_run_ends(samples: Path, two: Started, tmp_path: Path) -> None:
    def held() -> int:
        import gc

        gc.collect()
        return sum(type(one).__name__ == "Sealed" for one in gc.get_objects())

    with Client(two.executor.replace("dask", "tcp"), set_as_default=False) as client:
        before = client.run_on_scheduler(held)  # of a worker that another test has killed
        evalkit.run([samples / f"{name}.pdf" for name in NAMES], output=tmp_path / "there", executor=two.executor)
        assert held() == 0
        # The scheduler is told that nobody wants it any more after the run has ended.
        assert eventually(lambda: client.run_on_scheduler(held) <= before)
        assert set(client.run(held).values()) == {0}


@pytest.mark.stress
def test_a_cluster_that_spills_writes_for_its_user_only(samples: Path, tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster", workers=()) as started:
        started.add("--memory-limit", "1GB")
        evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "there", executor=started.executor)

        def spilled(dask_worker):
            import pathlib

            dask_worker.data["kept"] = b"x" * 5_000_000
            dask_worker.data.evict()
            folder = pathlib.Path(dask_worker.local_directory)
            return [oct(path.stat().st_mode & 0o777) for path in folder.rglob("*") if path.is_file()]

        with Client(started.executor.replace("dask", "tcp"), set_as_default=False) as client:
            (modes,) = client.run(spilled).values()
    assert modes
    assert set(modes) == {"0o600"}


@pytest.mark.parametrize(
    ("how", "why"),
    [(signal.SIGKILL, "the scheduler was lost"), (signal.SIGSTOP, "no worker, or no answer, for 3 s")],
    ids=["killed", "hanging"],
)
def test_a_lost_scheduler_ends_the_run_which_can_go_on(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals, why: str
) -> None:
    monkeypatch.setattr(on_dask, "read_with_limits", deadly_read)
    monkeypatch.setattr(on_dask, "_NO_WORKER_TIMEOUT", 3)
    folder = tmp_path / "records"
    folder.mkdir()
    for number in range(8):
        slow = (samples / "quest_cbc.pdf").read_bytes() + b"\n%" + str(number).encode()
        (folder / f"slow{number:02}.pdf").write_bytes(slow)
    done: list[str] = []
    with cluster(tmp_path / "cluster", workers=(1,)) as started:

        def told(summary, number: int, of: int) -> None:
            done.append(summary.doc_id)
            if number == 2:
                monkeypatch.setattr(on_dask, "_REACH_TIMEOUT", 1)
                started.scheduler.send_signal(how)

        with pytest.raises(ExecutorError) as lost:
            evalkit.run([folder], output=tmp_path / "out", executor=started.executor, on_progress=told)
    assert lost.value.code == "EXECUTOR-LOST"
    assert lost.value.message.endswith(why)
    again = evalkit.run([folder], output=tmp_path / "out")
    assert {one.doc_id for one in again.documents if one.resumed} >= set(done[:2])
    assert all(one.decision == "AUTO_ACCEPT" for one in again.documents)


def test_a_cluster_that_is_not_there_is_wrong_usage(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert on_dask._REACH_TIMEOUT < 5
    monkeypatch.setattr(on_dask, "_REACH_TIMEOUT", 1)
    for executor, code in ((NOBODY, "EXECUTOR-UNREACHABLE"), ("dusk://127.0.0.1:1", "SETTINGS")):
        with pytest.raises(UsageError) as refused:
            evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "out", executor=executor)
        assert refused.value.code == code


def test_doctor_connects_to_the_cluster_without_complaint(
    two: Started, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Client(two.executor.replace("dask", "tcp"), set_as_default=False) as client:
        client.wait_for_workers(2)  # another test may have killed one
    found = check_executor(Settings(executor=two.executor))
    assert (found.is_fine, found.found) == (True, f"{two.executor}: 2 workers")
    caplog.clear()  # of how long it took to load evalkit there
    monkeypatch.setattr(on_dask, "_NOTICE_AFTER_SECONDS", 4)
    cluster = on_dask.DaskCluster(
        two.executor, ReaderConfig(processor_seconds=0), local_workers=1, decides_on_workers=False
    )

    async def stay() -> None:
        async with cluster:
            await asyncio.sleep(4.5)

    asyncio.run(stay())
    assert complaints(caplog) == []


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == on_dask.__name__]


@contextmanager
def answering(what: bytes) -> Iterator[str]:
    """An address at which something else says this, or where it is nothing, takes calls in silence."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                while what:
                    server.accept()[0].sendall(what)

        Thread(target=answer, daemon=True).start()
        yield f"dask://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("what", [b"", b"SSH-2.0-OpenSSH_9.2\r\n"], ids=["nothing", "something else"])
def test_unreachable_scheduler_is_reported_after_a_timeout(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: bytes
) -> None:
    assert on_dask._REACH_TIMEOUT < 5, "whoever waits is told within five seconds"
    monkeypatch.setattr(on_dask, "_REACH_TIMEOUT", 1)
    monkeypatch.setattr(on_dask, "_NOTICE_AFTER_SECONDS", 0.1)
    with answering(what) as executor:
        found = check_executor(Settings(executor=executor))
    assert not found.is_fine
    assert found.found.startswith(f"the Dask scheduler at {executor} does not answer (")
    assert found.remedy
    if not what:
        assert complaints(caplog) == [f"waiting up to 1 s for the Dask scheduler at {executor}"]


def test_a_worker_that_hangs_or_lacks_something_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with cluster(tmp_path / "cluster", (1, 1)) as started:
        with Client(started.executor.replace("dask", "tcp"), set_as_default=False) as client:
            client.wait_for_workers(2)
            workers = client.run(_process)
        with monkeypatch.context() as patch:
            patch.setattr(on_dask, "_describe_worker", _lacking)
            found = check_executor(Settings(executor=started.executor))
        assert not found.is_fine
        assert found.found.endswith("cannot load this program's reader and tables (PermissionError)")
        monkeypatch.setattr(on_dask, "_CONNECT_TIMEOUT", 5)
        (hanging, process), (_, other) = workers.items()
        os.kill(process, signal.SIGSTOP)
        found = check_executor(Settings(executor=started.executor))
        assert (found.is_fine, found.found) == (
            True,
            f"{started.executor}: 1 workers; without an answer: {hanging}",
        )
        assert any(hanging in one and "does not answer" in one for one in complaints(caplog))
        os.kill(other, signal.SIGSTOP)
        found = check_executor(Settings(executor=started.executor))
        assert not found.is_fine
        assert "no worker that is ready" in found.found


def check_executor(settings: Settings) -> DoctorCheck:
    """The doctor's line about where PDFs are read."""
    return next(check for check in run_doctor_checks(settings) if check.name == "executor")


def _process() -> int:
    return os.getpid()


def test_an_error_of_a_workers_own_is_no_lost_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(ocr: str) -> None:
        raise PermissionError

    monkeypatch.setattr(on_dask, "_describe_environment", refused)
    assert on_dask._describe_worker("none") == "PermissionError"


def _lacking(ocr: str) -> str:
    return "PermissionError"


@pytest.mark.parametrize(
    "executor", ["dask://[abc]:1", "dask://[::::]:8786", "dask://127.0.0.1:99999", "dask://scheduler.example.org:8786"]
)
def test_doctor_says_that_an_address_cannot_be_used(executor: str) -> None:
    shown = evalkit_command("doctor", "--executor", executor, "--json")
    assert shown.returncode == 1
    (found,) = (one for one in json.loads(shown.stdout) if one["name"] == "executor")
    assert not found["is_fine"]
    assert found["remedy"]


def test_broken_settings_of_dask_itself_are_a_line(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.yaml").write_text("distributed: [\n")
    monkeypatch.setenv("DASK_CONFIG", str(tmp_path))  # which is read when Dask is loaded
    shown = evalkit_process("run", samples / "quest_cbc.pdf", "--output", tmp_path / "out", "--executor", NOBODY)
    assert shown.returncode == 2
    assert shown.stderr.startswith("evalkit: Dask's own settings cannot be read"), shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_cluster_without_workers_is_wrong_usage(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_dask, "_CONNECT_TIMEOUT", 3)
    with cluster(tmp_path / "cluster", ()) as started, pytest.raises(UsageError) as refused:
        evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "out", executor=started.executor)
    assert refused.value.code == "EXECUTOR-NO-WORKERS"


def test_a_worker_with_another_reader_is_refused_by_name(
    samples: Path, two: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_dask, "resolve_reader_version", lambda ocr: f"{resolve_reader_version(ocr)} of tomorrow")
    with pytest.raises(UsageError) as refused:
        evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "out", executor=two.executor)
    assert refused.value.code == "EXECUTOR-DIFFERS"
    assert "tcp://127.0.0.1" in refused.value.message
    assert "a different version of the reader" in refused.value.message


@pytest.mark.stress
def test_tls_of_dask_is_honoured(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    security = Security.temporary()
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    certificate.write_text(security.tls_ca_file)
    key.write_text(security.tls_worker_key)
    tls = "distributed.comm.tls"
    files = {f"{tls}.ca-file": str(certificate), f"{tls}.client.cert": str(certificate), f"{tls}.client.key": str(key)}
    environment = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(certificate)}
    for who in ("WORKER", "SCHEDULER"):
        environment[f"DASK_DISTRIBUTED__COMM__TLS__{who}__CERT"] = str(certificate)
        environment[f"DASK_DISTRIBUTED__COMM__TLS__{who}__KEY"] = str(key)
    environment["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] = "True"
    environment["DASK_DISTRIBUTED__COMM__DEFAULT_SCHEME"] = "tls"
    with cluster(tmp_path / "cluster", (1,), environment) as started:
        address = started.executor
        assert address.startswith("tls://")
        executor = address.replace("tls://", "dask://")
        with dask.config.set(files):
            run = evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "out", executor=executor)
        assert run.documents[0].decision == "AUTO_ACCEPT"
        monkeypatch.setattr(on_dask, "_CONNECT_TIMEOUT", 2)
        with pytest.raises(UsageError):  # in clear it is not answered
            evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "clear", executor=executor)


@pytest.mark.parametrize(
    ("executor", "address"),
    [
        ("dask://127.0.0.1:8786", "tcp://127.0.0.1:8786"),
        ("dask://localhost:8786", "tcp://localhost:8786"),
        ("dask://10.1.2.3:8786", "tcp://10.1.2.3:8786"),
        ("dask://[::1]:8786", "tcp://[::1]:8786"),
        ("dask://8.8.8.8:8786", None),
        ("dask://scheduler.example.org:8786", None),
    ],
)
def test_documents_go_in_clear_to_near_machines_only(executor: str, address: str | None) -> None:
    if address is None:
        with pytest.raises(UsageError, match="sent unencrypted"):
            parse_scheduler_address(executor)
        with dask.config.set({"distributed.comm.tls.ca-file": "ca.pem"}):
            assert parse_scheduler_address(executor) == executor.replace("dask", "tls")
    else:
        assert parse_scheduler_address(executor) == address
